//! Heads: from a pattern to a flat list of steps that walk over an object's bytes.
//!
//! The encoding is in prefix order and so are the steps: each consumes one term, or opens one and
//! leaves its parts to the steps that follow. Only lists with a loose tail and maps must remember
//! something until they are over: how much is left.
//!
//! ```text
//!   {k, {'$1','_'}, ['$2'|'$3'], #{a => '$1'}}
//!     1: Eq k
//!     2: Tuple 2 · Bind 0 · Skip
//!     3: OpenList 1 · Bind 1 · RestBind 2
//!     4: OpenMap · Key a · Same 0 · CloseMap
//! ```
//!
//! Elements that match anything have no steps, and a variable that nothing reads is matched like
//! `'_'`.

use crate::{
    constant::{Class, Constant},
    error::Fault,
    source::{Places, Source},
    wire::{self, Head},
};
use larder_term::atoms;
use smallvec::{smallvec, SmallVec};
use std::ops::Range;

/// One step of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Anything.
    Skip,
    /// Anything; the variable gets it.
    Bind(u32),
    /// What the variable has.
    Same(u32),
    /// What is identical to a constant: other bytes are another term.
    Eq(Constant),
    /// What is identical to a constant that may have other bytes.
    EqTerm(Constant),
    /// A tuple of so many elements; they follow.
    Tuple(u32),
    /// A proper list of so many elements; they follow.
    List(u32),
    /// An improper list of so many elements; they and the tail follow.
    Improper(u32),
    /// A list of at least so many elements; they and a step for the rest follow.
    OpenList(u32),
    /// The rest of the list, whatever it is.
    RestSkip,
    /// The rest of the list; the variable gets it.
    RestBind(u32),
    /// The rest of the list is what the variable has.
    RestSame(u32),
    /// The rest of the list is identical to an argument, which may be a list.
    RestEq(Constant),
    /// A map; keys follow, each with its value's steps. Whether they come in the order of the
    /// encoding: a key that is an argument may have any place in it.
    OpenMap(bool),
    /// The map has this key; the steps of its value follow.
    Key(Constant),
    /// The rest of the map, whatever it has.
    CloseMap,
}

/// The steps of one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    /// The position in the tuple, from 1.
    pub(crate) position: usize,
    /// The steps, of the clause's.
    pub(crate) steps: Range<usize>,
}

/// What a head demands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `'_'` or a variable: anything.
    Any,
    /// A term that is no tuple, and so no object either: all steps, for that one term.
    #[default]
    Other,
    /// A tuple of this arity whose elements match. Elements that may be anything have no entry, nor
    /// have those that tests or variables stand for (see `test`).
    Tuple {
        /// How many elements.
        arity: usize,
        /// The elements that must be looked at, by position.
        elements: SmallVec<[Element; 4]>,
    },
}

/// A compiled head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Match {
    /// What the whole must be.
    pub(crate) shape: Shape,
    /// The steps of all elements.
    pub(crate) steps: SmallVec<[Step; 4]>,
    /// The numbers of the variables, ascending: a variable's slot is its place here.
    pub(crate) variables: SmallVec<[u32; 4]>,
    /// Of each variable, the position of the element that it is, if it is one: it has no step then.
    pub(crate) places: SmallVec<[Option<usize>; 4]>,
    /// Whether steps bind variables.
    pub(crate) binds: bool,
    /// The slot of a variable that is the whole head.
    pub(crate) whole: Option<u32>,
    /// The place of the pattern in the specification.
    pub(crate) at: usize,
}

enum Task {
    Visit(usize),
    Rest(usize),
    Key(usize),
    CloseMap,
}

type Tasks = SmallVec<[Task; 8]>;

/// What is to be visited next, in this order.
fn visit_all(tasks: &mut Tasks, parts: impl Iterator<Item = usize>) {
    let first = tasks.len();
    parts.for_each(|part| tasks.push(Task::Visit(part)));
    tasks[first..].reverse();
}

/// Compiles the head at `at` into one that is new.
///
/// # Errors
/// [`Fault::VariableMapKey`].
pub(crate) fn compile(source: &Source<'_>, at: usize, head: &mut Match) -> Result<(), Fault> {
    head.at = at;
    variables(source, at, &mut head.variables);
    head.places.resize(head.variables.len(), None);
    if let Some(atom) = source.atom(at) {
        head.whole = (!head.variables.is_empty()).then_some(0);
        if atom == atoms::UNDERSCORE || head.whole.is_some() {
            head.shape = Shape::Any;
            return Ok(());
        }
    }
    let mut walk = Walk {
        source,
        bound: SmallVec::new(),
        variables: &head.variables,
        steps: &mut head.steps,
        tasks: Tasks::new(),
    };
    walk.bound.resize(head.variables.len(), false);
    let Head::Tuple(arity) = source.head(at) else {
        return walk.pattern(at);
    };
    let mut elements = SmallVec::new();
    for (index, part) in source.each(at).enumerate() {
        let from = walk.steps.len();
        walk.pattern(part)?;
        elements.push(Element {
            position: index + 1,
            steps: from..walk.steps.len(),
        });
    }
    head.shape = Shape::Tuple { arity, elements };
    Ok(())
}

/// The numbers of the variables of a pattern, ascending. Keys of maps have none.
fn variables(source: &Source<'_>, at: usize, found: &mut SmallVec<[u32; 4]>) {
    let mut places: Places = smallvec![at];
    while let Some(at) = places.pop() {
        match source.head(at) {
            Head::Leaf => found.extend(source.atom(at).and_then(wire::variable)),
            Head::Map(_) => places.extend(source.each(at).skip(1).step_by(2)),
            _ if source.is_ground(at) => {}
            _ => source.each(at).for_each(|at| places.push(at)),
        }
    }
    if !found.is_sorted_by(|a, b| a < b) {
        found.sort_unstable();
        found.dedup();
    }
}

/// What turns one pattern after the other into steps.
struct Walk<'a, 's> {
    source: &'s Source<'a>,
    variables: &'s [u32],
    bound: SmallVec<[bool; 8]>,
    steps: &'s mut SmallVec<[Step; 4]>,
    tasks: Tasks,
}

impl Walk<'_, '_> {
    fn pattern(&mut self, at: usize) -> Result<(), Fault> {
        self.visit(at);
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Visit(at) => self.visit(at),
                Task::Rest(at) => {
                    let step = match self.loose(at) {
                        Some(Step::Bind(slot)) => Step::RestBind(slot),
                        Some(Step::Same(slot)) => Step::RestSame(slot),
                        Some(_) => Step::RestSkip,
                        None => Step::RestEq(self.source.constant(at)),
                    };
                    self.steps.push(step);
                }
                Task::Key(at) => {
                    if self.loose(at).is_some() {
                        return Err(Fault::VariableMapKey);
                    }
                    self.steps.push(Step::Key(self.source.constant(at)));
                }
                Task::CloseMap => self.steps.push(Step::CloseMap),
            }
        }
        Ok(())
    }

    fn visit(&mut self, at: usize) {
        if self.source.is_ground(at) {
            let constant = self.source.constant(at);
            let other_bytes = match self.source.argument(at) {
                Some((_, class)) => class == Class::Other,
                None => wire::may_hold_handles(self.source.term(at)),
            };
            self.steps.push(if other_bytes {
                Step::EqTerm(constant)
            } else {
                Step::Eq(constant)
            });
            return;
        }
        if let Some(step) = self.loose(at) {
            self.steps.push(step);
            return;
        }
        let mut parts = self.source.each(at);
        match self.source.head(at) {
            Head::Tuple(n) => {
                self.steps.push(Step::Tuple(n as u32));
                visit_all(&mut self.tasks, parts);
            }
            Head::List(n) => {
                self.steps.push(Step::List(n as u32));
                visit_all(&mut self.tasks, parts);
            }
            Head::Improper(n) => {
                let Some(tail) = parts.clone().nth(n) else {
                    return;
                };
                // Only of an argument it isn't known that it is no list.
                let is_any = matches!(self.source.argument(tail), Some((_, Class::Other)));
                if is_any || self.source.atom(tail).is_some_and(wire::is_loose) {
                    self.steps.push(Step::OpenList(n as u32));
                    self.tasks.push(Task::Rest(tail));
                    visit_all(&mut self.tasks, parts.take(n));
                } else {
                    self.steps.push(Step::Improper(n as u32));
                    visit_all(&mut self.tasks, parts);
                }
            }
            Head::Map(_) | Head::Leaf => {
                let mut keys = parts.clone().step_by(2);
                let in_order = keys.all(|key| self.source.argument(key).is_none());
                self.steps.push(Step::OpenMap(in_order));
                self.tasks.push(Task::CloseMap);
                let first = self.tasks.len();
                while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
                    self.tasks.extend([Task::Key(key), Task::Visit(value)]);
                }
                self.tasks[first..].reverse();
            }
        }
    }

    /// The step of a variable or of `'_'`.
    fn loose(&mut self, at: usize) -> Option<Step> {
        let atom = self.source.atom(at)?;
        if atom == atoms::UNDERSCORE {
            return Some(Step::Skip);
        }
        let number = wire::variable(atom)?;
        let slot = self.variables.binary_search(&number).unwrap_or(0);
        match self.bound.get_mut(slot) {
            Some(bound) if !*bound => {
                *bound = true;
                Some(Step::Bind(slot as u32))
            }
            _ => Some(Step::Same(slot as u32)),
        }
    }
}

impl Match {
    /// The slot of the variable that a pattern is.
    pub(crate) fn slot(&self, source: &Source<'_>, at: usize) -> Option<u32> {
        let number = source.atom(at).and_then(wire::variable)?;
        let slot = self.variables.binary_search(&number).ok()?;
        Some(slot as u32)
    }

    /// How many elements a row must have, if it says so.
    pub(crate) fn arity(&self) -> Option<usize> {
        match self.shape {
            Shape::Tuple { arity, .. } => Some(arity),
            _ => None,
        }
    }

    /// Whether nothing is left to match once the tests are passed.
    #[inline]
    pub(crate) fn is_tests(&self) -> bool {
        match &self.shape {
            Shape::Any => true,
            Shape::Other => false,
            Shape::Tuple { elements, .. } => elements.is_empty(),
        }
    }

    /// Lets the steps that nothing depends on go: a variable of no use is matched like `'_'`, an
    /// element that may be anything not at all. `used` tells of each slot whether an expression
    /// reads it.
    pub(crate) fn prune(&mut self, used: &[bool]) {
        let mut needed: SmallVec<[bool; 8]> = SmallVec::from_slice(used);
        for step in &self.steps {
            if let Step::Same(slot) | Step::RestSame(slot) = step {
                needed[*slot as usize] = true;
            }
        }
        for step in &mut self.steps {
            match *step {
                Step::Bind(slot) if !needed[slot as usize] => *step = Step::Skip,
                Step::RestBind(slot) if !needed[slot as usize] => *step = Step::RestSkip,
                _ => {}
            }
        }
        if let Shape::Tuple { elements, .. } = &mut self.shape {
            elements.retain(|element| self.steps[element.steps.clone()] != [Step::Skip]);
        }
    }
}

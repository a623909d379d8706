//! Heads: compiling a pattern to a flat list of steps that walk over an object's bytes.
//!
//! Terms are encoded in prefix order, and the steps are in the same order. Each step consumes one
//! term, or consumes the head of a container and leaves its parts to the steps that follow. Only
//! lists with a loose tail and maps need a state until their end: how many parts are left.
//!
//! ```text
//!   {k, {'$1','_'}, ['$2'|'$3'], #{a => '$1'}}
//!     1: Eq k
//!     2: Tuple 2 · Bind 0 · Skip
//!     3: OpenList 1 · Bind 1 · RestBind 2
//!     4: OpenMap · Key a · Same 0 · CloseMap
//! ```
//!
//! Elements that match anything have no steps. A variable that no expression reads is treated like
//! `'_'`.
//!
//! As in `ets`, a constant tells 0.0 and −0.0 apart, also where the host takes them for identical.
//! A variable that occurs twice doesn't.

use crate::{
    constant::{Class, Constant, Constants},
    error::Fault,
    row::Row,
    source::{Offsets, Source},
    wire::{self, Head},
};
use larder_term::atoms;
use smallvec::{smallvec, SmallVec};
use std::ops::Range;

/// One step of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Skips any term.
    Skip,
    /// Binds the variable to any term.
    Bind(u32),
    /// The term is identical to the variable's.
    Same(u32),
    /// The term is identical to a constant that has a single encoding.
    Eq(Constant),
    /// The term is identical to a constant that may have several encodings.
    EqTerm(Constant),
    /// The closed pattern, which is an argument, matches the term.
    Closed(Constant),
    /// Opens a tuple of this number of elements. The steps of the elements follow.
    Tuple(u32),
    /// Opens a proper list of this number of elements. The steps of the elements follow.
    List(u32),
    /// Opens an improper list of this number of elements. The steps of the elements and of the tail
    /// follow.
    Improper(u32),
    /// Opens a list of at least this number of elements. The steps of the elements and a step for
    /// the rest follow.
    OpenList(u32),
    /// Skips the rest of the list.
    RestSkip,
    /// Binds the variable to the rest of the list.
    RestBind(u32),
    /// The rest of the list is identical to the variable's term.
    RestSame(u32),
    /// The rest of the list is identical to an argument, which may be a list.
    RestEq(Constant),
    /// Opens a map. Keys follow, each with the steps of its value. The flag says whether the keys
    /// are in the order of the encoding: where a key that is an argument belongs isn't known.
    OpenMap(bool),
    /// The map has this key. The steps of its value follow.
    Key(Constant),
    /// Skips the rest of the map.
    CloseMap,
}

/// The steps of one element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ElementSteps {
    /// The position in the tuple, counted from 1.
    pub(crate) position: usize,
    /// Its steps among those of the head.
    pub(crate) steps: Range<usize>,
}

/// The form of the rows that a head matches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum HeadForm {
    /// Anything: the head is `'_'` or a variable.
    Any,
    /// A term that is no tuple, and therefore no object. All steps are those of this term.
    #[default]
    Other,
    /// A tuple of this arity whose elements match. Elements that may be anything have no entry, and
    /// neither have those that are decided by tests or are variables (see `test`).
    Tuple {
        /// The number of elements.
        arity: usize,
        /// The elements that must be looked at, by position.
        elements: SmallVec<[ElementSteps; 4]>,
    },
}

/// A compiled head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CompiledHead {
    /// The form of a row.
    pub(crate) form: HeadForm,
    /// The steps of all elements.
    pub(crate) steps: SmallVec<[Step; 4]>,
    /// The numbers of the variables, in ascending order. The slot of a variable is its index here.
    pub(crate) variables: SmallVec<[u32; 4]>,
    /// For each variable that is an element of the row: its position. It has no step then.
    pub(crate) places: SmallVec<[Option<usize>; 4]>,
    /// Whether steps bind variables.
    pub(crate) binds: bool,
    /// Whether all steps are plain: the machine isn't needed to match them.
    pub(crate) plain: bool,
    /// The slot of a variable that is the whole head.
    pub(crate) whole: Option<u32>,
    /// The offset of the pattern in the specification.
    pub(crate) at: usize,
}

/// How many variables plain steps may bind.
const PLAIN_VARIABLES: usize = 8;

/// The terms of the variables that plain steps have bound, by slot.
pub(crate) type Bound<'a> = [&'a [u8]; PLAIN_VARIABLES];

/// Those of no variable.
pub(crate) const NO_TERMS: Bound<'static> = [&[]; PLAIN_VARIABLES];

impl CompiledHead {
    /// Whether the steps are those of a tuple's elements, and each takes a term, or opens a tuple.
    pub(crate) fn has_plain_steps(&self) -> bool {
        matches!(self.form, HeadForm::Tuple { .. })
            && self.variables.len() <= PLAIN_VARIABLES
            && self.steps.iter().all(|step| step.is_plain())
    }

    /// Whether the row, which has passed the tests, matches the plain steps. If so, the variables
    /// are bound.
    #[inline]
    pub(crate) fn matches_plainly<'a>(
        &self,
        row: &mut Row<'a>,
        constants: &Constants<'_>,
        bound: &mut Bound<'a>,
    ) -> bool {
        let HeadForm::Tuple { elements, .. } = &self.form else {
            return false;
        };
        // For each element that has steps, run these on its bytes from the left.
        elements.iter().all(|element| {
            let mut run = row.run(element.position);
            self.steps[element.steps.clone()].iter().all(|step| {
                // Each step takes bytes off the front. `None`: the row doesn't match.
                let left = step.plain(run, constants, |slot, term| bound[slot as usize] = term);
                run = left.unwrap_or_default();
                left.is_some()
            })
        })
    }
}

impl Step {
    /// Whether `plain` knows the step.
    pub(crate) fn is_plain(self) -> bool {
        matches!(
            self,
            Step::Skip | Step::Bind(_) | Step::Eq(_) | Step::Tuple(_)
        )
    }

    /// Runs a plain step from the beginning of a run. Returns the rest of the run, if it matches.
    #[inline]
    pub(crate) fn plain<'a>(
        self,
        run: &'a [u8],
        constants: &Constants<'_>,
        bind: impl FnOnce(u32, &'a [u8]),
    ) -> Option<&'a [u8]> {
        match self {
            Step::Bind(slot) => {
                let (term, left) = wire::split(run);
                bind(slot, term);
                Some(left)
            }
            // The encoding is prefix-free, so a run that begins with the bytes begins with the
            // term.
            Step::Eq(constant) => run.strip_prefix(constants.get(constant)),
            Step::Tuple(arity) => match wire::open(run) {
                (Head::Tuple(n), at) if n == arity as usize => Some(&run[at..]),
                _ => None,
            },
            _ => Some(wire::split(run).1),
        }
    }
}

/// A task of the compiler, which uses a stack of tasks instead of recursion.
enum HeadTask {
    /// Emit the steps of the pattern at this offset.
    Visit(usize),
    /// Emit the step for the rest of a list.
    Rest(usize),
    /// Emit the step for a key of a map.
    Key(usize),
    /// Emit the end of a map.
    CloseMap,
}

type HeadTasks = SmallVec<[HeadTask; 8]>;

/// Pushes tasks for some patterns, which will be visited in this order.
fn visit_all(tasks: &mut HeadTasks, parts: impl Iterator<Item = usize>) {
    let first = tasks.len();
    parts.for_each(|part| tasks.push(HeadTask::Visit(part)));
    tasks[first..].reverse();
}

/// Compiles the pattern at `at` into an empty head.
///
/// # Errors
/// [`Fault::VariableMapKey`].
pub(crate) fn compile(
    source: &Source<'_>,
    at: usize,
    head: &mut CompiledHead,
) -> Result<(), Fault> {
    head.at = at;
    variables(source, at, &mut head.variables);
    head.places.resize(head.variables.len(), None);
    // A head that is a variable or `'_'` matches everything. There is nothing to compare.
    if let Some(atom) = source.atom(at) {
        head.whole = (!head.variables.is_empty()).then_some(0);
        if atom == atoms::UNDERSCORE || head.whole.is_some() {
            head.form = HeadForm::Any;
            return Ok(());
        }
    }
    // Compile the elements of a tuple separately, so that those that can be tests can be removed.
    let mut walk = Walk {
        source,
        bound: SmallVec::new(),
        variables: &head.variables,
        steps: &mut head.steps,
        tasks: HeadTasks::new(),
    };
    walk.bound.resize(head.variables.len(), false);
    let Head::Tuple(arity) = source.head(at) else {
        return walk.pattern(at);
    };
    // Each element has its own range of steps, so that one element can be tested without the
    // others.
    let mut elements = SmallVec::new();
    for (index, part) in source.each(at).enumerate() {
        let from = walk.steps.len();
        walk.pattern(part)?;
        elements.push(ElementSteps {
            position: index + 1,
            steps: from..walk.steps.len(),
        });
    }
    head.form = HeadForm::Tuple { arity, elements };
    Ok(())
}

/// Collects the numbers of the variables of a pattern, in ascending order. Keys of maps have none.
fn variables(source: &Source<'_>, at: usize, found: &mut SmallVec<[u32; 4]>) {
    let mut offsets: Offsets = smallvec![at];
    while let Some(at) = offsets.pop() {
        match source.head(at) {
            Head::Leaf => found.extend(source.atom(at).and_then(wire::variable)),
            Head::Map(_) => offsets.extend(source.each(at).skip(1).step_by(2)),
            // Keys of maps are constants, so only values have variables.
            _ if source.is_ground(at) => {}
            _ => source.each(at).for_each(|at| offsets.push(at)),
        }
    }
    // Usually variables occur once, in ascending order.
    if !found.is_sorted_by(|a, b| a < b) {
        found.sort_unstable();
        found.dedup();
    }
}

/// Turns patterns into steps.
struct Walk<'a, 's> {
    source: &'s Source<'a>,
    variables: &'s [u32],
    bound: SmallVec<[bool; 8]>,
    steps: &'s mut SmallVec<[Step; 4]>,
    tasks: HeadTasks,
}

impl Walk<'_, '_> {
    /// Emits the steps of the pattern at `at`.
    fn pattern(&mut self, at: usize) -> Result<(), Fault> {
        self.visit(at);
        while let Some(task) = self.tasks.pop() {
            match task {
                // The parts of a container are visited from the left, which is the order of the
                // encoding.
                HeadTask::Visit(at) => self.visit(at),
                HeadTask::Rest(at) => {
                    let step = match self.loose(at) {
                        Some(Step::Bind(slot)) => Step::RestBind(slot),
                        Some(Step::Same(slot)) => Step::RestSame(slot),
                        Some(_) => Step::RestSkip,
                        None => Step::RestEq(self.source.constant(at)),
                    };
                    self.steps.push(step);
                }
                HeadTask::Key(at) => {
                    if self.loose(at).is_some() {
                        return Err(Fault::VariableMapKey);
                    }
                    self.steps.push(Step::Key(self.source.constant(at)));
                }
                HeadTask::CloseMap => self.steps.push(Step::CloseMap),
            }
        }
        Ok(())
    }

    /// Emits the step of a constant or a variable. Of a container, emits the step that opens it,
    /// and pushes tasks for its parts.
    fn visit(&mut self, at: usize) {
        // A constant has one step, however large it is.
        if self.source.is_ground(at) {
            let constant = self.source.constant(at);
            // Only terms with one encoding may be compared by their bytes.
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
        // An argument that is a closed pattern, a variable, or `'_'`: one step, too.
        let closed = self.source.closed_argument(at).map(Step::Closed);
        if let Some(step) = closed.or_else(|| self.loose(at)) {
            self.steps.push(step);
            return;
        }
        // A container with a variable in it. Open it, and visit its parts.
        let parts = self.source.each(at);
        match self.source.head(at) {
            Head::Tuple(n) => {
                self.steps.push(Step::Tuple(n as u32));
                visit_all(&mut self.tasks, parts);
            }
            Head::List(n) => {
                self.steps.push(Step::List(n as u32));
                visit_all(&mut self.tasks, parts);
            }
            Head::Improper(n) => self.improper(at, n),
            Head::Map(_) | Head::Leaf => self.map(at),
        }
    }

    /// Emits the step that opens an improper list of `n` elements, and pushes tasks for its parts.
    fn improper(&mut self, at: usize, n: usize) {
        let parts = self.source.each(at);
        let Some(tail) = parts.clone().nth(n) else {
            return;
        };
        // The tail may match a list if it is a variable or an argument. Any other tail is known not
        // to be a list.
        let is_any = matches!(self.source.argument(tail), Some((_, Class::Other)));
        if is_any || self.source.atom(tail).is_some_and(wire::is_loose) {
            self.steps.push(Step::OpenList(n as u32));
            self.tasks.push(HeadTask::Rest(tail));
            visit_all(&mut self.tasks, parts.take(n));
        } else {
            self.steps.push(Step::Improper(n as u32));
            visit_all(&mut self.tasks, parts);
        }
    }

    /// Emits the step that opens a map, and pushes tasks for its keys, values and end.
    fn map(&mut self, at: usize) {
        // A map's pairs are in the order of its keys. Without arguments among the keys, that order
        // is known now.
        let mut parts = self.source.each(at);
        let mut keys = parts.clone().step_by(2);
        let in_order = keys.all(|key| self.source.argument(key).is_none());
        self.steps.push(Step::OpenMap(in_order));
        self.tasks.push(HeadTask::CloseMap);
        let first = self.tasks.len();
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            self.tasks
                .extend([HeadTask::Key(key), HeadTask::Visit(value)]);
        }
        // Tasks are popped from the end, so they are pushed in reverse order.
        self.tasks[first..].reverse();
    }

    /// The step of a variable or of `'_'`. The first occurrence of a variable binds it.
    fn loose(&mut self, at: usize) -> Option<Step> {
        let atom = self.source.atom(at)?;
        if atom == atoms::UNDERSCORE {
            return Some(Step::Skip);
        }
        let number = wire::variable(atom)?;
        // The variable is among those that were collected, so the search succeeds.
        let slot = self.variables.binary_search(&number).unwrap_or(0);
        // The first occurrence binds, every other one compares.
        match self.bound.get_mut(slot) {
            Some(bound) if !*bound => {
                *bound = true;
                Some(Step::Bind(slot as u32))
            }
            _ => Some(Step::Same(slot as u32)),
        }
    }
}

impl CompiledHead {
    /// The slot of a variable, if the pattern at `at` is one.
    pub(crate) fn slot(&self, source: &Source<'_>, at: usize) -> Option<u32> {
        let number = source.atom(at).and_then(wire::variable)?;
        let slot = self.variables.binary_search(&number).ok()?;
        Some(slot as u32)
    }

    /// The number of elements that a row must have, if the head determines it.
    pub(crate) fn arity(&self) -> Option<usize> {
        match self.form {
            HeadForm::Tuple { arity, .. } => Some(arity),
            _ => None,
        }
    }

    /// Whether nothing is left to match once the tests are passed.
    #[inline]
    pub(crate) fn is_tests(&self) -> bool {
        match &self.form {
            HeadForm::Any => true,
            HeadForm::Other => false,
            HeadForm::Tuple { elements, .. } => elements.is_empty(),
        }
    }

    /// Removes steps that have no effect. A variable that isn't used is treated like `'_'`, and an
    /// element that may be anything has no steps. `used` says for each slot whether an expression
    /// reads it.
    pub(crate) fn prune(&mut self, used: &[bool]) {
        let mut needed: SmallVec<[bool; 8]> = SmallVec::from_slice(used);
        // A variable that occurs twice is compared in the head, so it is needed even if no
        // expression reads it.
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
        if let HeadForm::Tuple { elements, .. } = &mut self.form {
            elements.retain(|element| self.steps[element.steps.clone()] != [Step::Skip]);
        }
    }
}

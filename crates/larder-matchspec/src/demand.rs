//! What clauses demand of a key, as far as it does not depend on arguments: worked out once.
//!
//! 1. *Facts.* Every guard must be `true`, and so must every operand of `and` and `andalso` in it.
//!    Of these conjuncts, the comparisons of something with a constant are facts about it. Of an
//!    `or` or `orelse` one operand must be `true`: if each says what something is equal to, they
//!    are a choice.
//! 2. *The pattern* that the head has for the key. It may be a constant.
//! 3. *A prefix.* The order key of the pattern is written out as far as it is known, a variable
//!    with an equality fact included.
//!
//! ```text
//!   {{a,'$1','_'},'_'}  with  {'>=','$1',5}, {'<','$1',9}
//!        prefix «tuple of 3» «a»      stops at '$1'       facts '$1' >= 5, '$1' < 9
//! ```
//!
//! What follows for keys, once there are arguments: see `limits`.

use crate::{
    bound,
    clause::Clause,
    constant::{Constant, Span},
    func::{Cmp, Func},
    head::Shape,
    ir::{Ir, Node, NodeId},
    raw,
    source::Source,
    value::{NIL, TRUE},
    wire::Head,
};
use larder_term::order_key;
use smallvec::{smallvec, SmallVec};

/// What all clauses demand of the key at a position.
#[derive(Debug, Clone)]
pub(crate) struct Demands {
    /// The position, from 1; 0 for no element.
    pub(crate) keypos: usize,
    /// By clause; None for one that no object fits.
    pub(crate) each: SmallVec<[Option<Demand>; 1]>,
    /// The bytes of prefixes that are no constant's.
    pub(crate) written: Vec<u8>,
}

/// What a clause demands.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    /// The place of the key's pattern, unless the head is no tuple.
    pub(crate) pattern: Option<usize>,
    /// The constant that the pattern is, if it is one.
    pub(crate) constant: Option<Constant>,
    pub(crate) facts: Facts,
    pub(crate) choices: SmallVec<[Choice; 1]>,
    /// What is known of the begin of the key's order key.
    pub(crate) prefix: SmallVec<[Piece; 4]>,
    /// What stops the prefix.
    pub(crate) stop: Stop,
}

/// A conjunct that compares something with a constant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fact {
    pub(crate) about: NodeId,
    pub(crate) cmp: Cmp,
    pub(crate) constant: Constant,
}

/// Facts: few, as a rule.
pub(crate) type Facts = SmallVec<[Fact; 2]>;

/// For each operand of a disjunction, what it says that things are equal to: one fact at least.
pub(crate) type Choice = SmallVec<[Facts; 2]>;

/// A part of a prefix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece {
    /// Of [`Demands::written`].
    Written(Span),
    /// The order key of a constant.
    Constant(Constant),
}

/// What comes behind a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing: it is the whole key.
    End,
    /// What a variable gets, by its slot.
    Variable(u32),
    /// What no fact speaks of.
    Unknown,
}

/// What variables are equal to, by their slots.
type Equalities = SmallVec<[(u32, Constant); 2]>;

impl Fact {
    pub(crate) fn is_equality(&self) -> bool {
        matches!(self.cmp, Cmp::Eq | Cmp::Same)
    }
}

impl Demands {
    /// Those of clauses, for the element at a position, and whether it is the key: maps in a
    /// pattern are exact in keys alone. Without an element, what guards say of anything.
    ///
    /// # Complexity
    /// O(n log n) in the specification.
    pub(crate) fn of(
        (clauses, ir): (&[Clause], &Ir),
        source: &Source<'_>,
        pool: &[u8],
        element: Option<(usize, bool)>,
    ) -> Demands {
        let (keypos, is_key) = element.unwrap_or_default();
        let names_key = |clause: &Clause| {
            let place = key_place(source, clause, keypos);
            place.is_some_and(|at| source.is_closed(at))
        };
        let exact = is_key && bound::exact_map_keys() && clauses.iter().all(names_key);
        let mut written = Vec::new();
        let each = clauses.iter().map(|clause| {
            let mut look = Look {
                ir,
                source,
                clause,
                pool,
                written: &mut written,
            };
            look.demand(element.map(|_| keypos), exact)
        });
        Demands {
            keypos,
            each: each.collect(),
            written,
        }
    }
}

/// The place of the pattern that a clause's head has for the element at a position, from 1.
pub(crate) fn key_place(source: &Source<'_>, clause: &Clause, keypos: usize) -> Option<usize> {
    let Shape::Tuple { arity, .. } = clause.head.shape else {
        return None;
    };
    let index = keypos.checked_sub(1).filter(|&index| index < arity)?;
    source.each(clause.head.at).nth(index)
}

/// What is looked at.
struct Look<'p> {
    ir: &'p Ir,
    source: &'p Source<'p>,
    clause: &'p Clause,
    pool: &'p [u8],
    written: &'p mut Vec<u8>,
}

/// What the begin of an order key is written of.
enum Part {
    Cons,
    Nil,
    Pattern(usize),
}

impl Look<'_> {
    /// `exact`: a key without variables is that key, though it holds a map.
    fn demand(&mut self, keypos: Option<usize>, exact: bool) -> Option<Demand> {
        let pattern = match (&self.clause.head.shape, keypos) {
            (Shape::Other, _) => return None,
            (Shape::Tuple { .. }, Some(keypos)) => {
                Some(key_place(self.source, self.clause, keypos)?)
            }
            _ => None,
        };
        let (facts, choices) = self.facts()?;
        let is_constant =
            |&at: &usize| self.source.is_ground(at) || exact && self.source.is_closed(at);
        let constant = pattern
            .filter(is_constant)
            .map(|at| self.source.constant(at));
        let mut prefix = SmallVec::new();
        let stop = match pattern {
            // What facts say of the whole key is no matter of prefixes.
            Some(at) if self.variable(at).is_none() => {
                self.prefix(at, &self.equalities(&facts), &mut prefix)
            }
            _ => Stop::Unknown,
        };
        Some(Demand {
            pattern,
            constant,
            facts,
            choices,
            prefix,
            stop,
        })
    }

    /// Step 1. `None` if a guard can never be `true`.
    fn facts(&self) -> Option<(Facts, SmallVec<[Choice; 1]>)> {
        let ir = self.ir;
        let (mut facts, mut choices) = (Facts::new(), SmallVec::new());
        let mut nodes = self.clause.guards.clone();
        while let Some(id) = nodes.pop() {
            match ir.node(id) {
                Node::And(parts) | Node::AndAlso(parts) => nodes.extend_from_slice(ir.of(parts)),
                Node::Or(parts) | Node::OrElse(parts) => choices.extend(self.choice(ir.of(parts))),
                Node::Const(Constant::Fixed(span)) if &self.pool[span.range()] != TRUE => {
                    return None
                }
                _ => facts.extend(self.fact(id)),
            }
        }
        Some((facts, choices))
    }

    /// What an expression says, if it compares something with a constant.
    fn fact(&self, id: NodeId) -> Option<Fact> {
        let Node::Call(Func::Cmp(cmp), parts) = self.ir.node(id) else {
            return None;
        };
        let [a, b] = *self.ir.of(parts) else {
            return None;
        };
        let (about, cmp, constant) = match (self.ir.constant(a), self.ir.constant(b)) {
            (None, Some(constant)) => (a, cmp, constant),
            (Some(constant), None) => (b, cmp.flipped(), constant),
            _ => return None,
        };
        Some(Fact {
            about,
            cmp,
            constant,
        })
    }

    /// What the operands of a disjunction say; None if one of them says nothing of use.
    fn choice(&self, operands: &[NodeId]) -> Option<Choice> {
        let mut choice = Choice::new();
        let mut operands: SmallVec<[NodeId; 8]> = operands.into();
        while let Some(id) = operands.pop() {
            if let Node::Or(parts) | Node::OrElse(parts) = self.ir.node(id) {
                operands.extend_from_slice(self.ir.of(parts));
                continue;
            }
            let mut facts = Facts::new();
            let mut nodes: SmallVec<[NodeId; 4]> = smallvec![id];
            while let Some(id) = nodes.pop() {
                match self.ir.node(id) {
                    Node::And(parts) | Node::AndAlso(parts) => {
                        nodes.extend_from_slice(self.ir.of(parts));
                    }
                    _ => facts.extend(self.fact(id).filter(Fact::is_equality)),
                }
            }
            if facts.is_empty() {
                return None;
            }
            choice.push(facts);
        }
        Some(choice)
    }

    /// What variables are equal to, by their slots; of what is said of one, the first comes first.
    fn equalities(&self, facts: &[Fact]) -> Equalities {
        let mut equalities = Equalities::new();
        for fact in facts {
            if let (Node::Var(slot), true) = (self.ir.node(fact.about), fact.is_equality()) {
                equalities.push((slot, fact.constant));
            }
        }
        equalities.sort_by_key(|&(slot, _)| slot);
        equalities
    }

    /// The slot of the variable that a pattern is.
    fn variable(&self, at: usize) -> Option<u32> {
        self.clause.head.slot(self.source, at)
    }

    /// Step 3.
    fn prefix(
        &mut self,
        pattern: usize,
        equalities: &Equalities,
        out: &mut SmallVec<[Piece; 4]>,
    ) -> Stop {
        let mut parts: SmallVec<[Part; 8]> = smallvec![Part::Pattern(pattern)];
        while let Some(part) = parts.pop() {
            let at = match part {
                Part::Cons => {
                    self.write(out, push_cons);
                    continue;
                }
                Part::Nil => {
                    self.write(out, |out| order_key::encode(raw::whole(NIL), out));
                    continue;
                }
                Part::Pattern(at) => at,
            };
            if self.source.is_ground(at) {
                out.push(Piece::Constant(self.source.constant(at)));
                continue;
            }
            let first = parts.len();
            let places = self.source.each(at);
            match self.source.head(at) {
                Head::Tuple(n) => {
                    self.write(out, |out| order_key::tuple_prefix(n, &[], out));
                    parts.extend(places.map(Part::Pattern));
                }
                Head::List(_) => {
                    parts.extend(places.flat_map(|at| [Part::Cons, Part::Pattern(at)]));
                    parts.push(Part::Nil);
                }
                Head::Improper(n) => {
                    let elements = places.clone().take(n);
                    parts.extend(elements.flat_map(|at| [Part::Cons, Part::Pattern(at)]));
                    parts.extend(places.skip(n).map(Part::Pattern));
                }
                Head::Map(_) => return Stop::Unknown,
                Head::Leaf => {
                    let Some(slot) = self.variable(at) else {
                        return Stop::Unknown;
                    };
                    match equal_to(slot, equalities) {
                        Some(constant) => out.push(Piece::Constant(constant)),
                        None => return Stop::Variable(slot),
                    }
                }
            }
            // The stack has what comes first on top.
            parts[first..].reverse();
        }
        Stop::End
    }

    /// Writes bytes of a prefix; joins them with those written just before.
    fn write(&mut self, out: &mut SmallVec<[Piece; 4]>, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.written.len();
        write(self.written);
        let to = self.written.len();
        match out.last_mut() {
            Some(Piece::Written(span)) if span.to == from => span.to = to,
            _ => out.push(Piece::Written(Span { from, to })),
        }
    }
}

/// The first that a variable is equal to.
fn equal_to(slot: u32, equalities: &Equalities) -> Option<Constant> {
    let first = equalities.partition_point(|&(other, _)| other < slot);
    let &(found, constant) = equalities.get(first)?;
    (found == slot).then_some(constant)
}

/// What the order key of a list has before each element.
fn push_cons(out: &mut Vec<u8>) {
    let (mut with, mut element) = (Vec::new(), Vec::new());
    order_key::list_prefix(&[raw::whole(NIL)], &mut with);
    order_key::encode(raw::whole(NIL), &mut element);
    out.extend_from_slice(&with[..with.len() - element.len()]);
}

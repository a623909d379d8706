//! The demands of the clauses on the key, derived once when the program is compiled. They do not
//! depend on the values of the arguments.
//!
//! 1. *Facts.* A clause matches only if all of its guards are `true`, and with a guard all operands
//!    of `and` and `andalso` in it. Each such conjunct that compares an expression with a constant
//!    is a fact about the expression. Of an `or` or `orelse` at least one operand must be `true`:
//!    if every operand equates something with a constant, the disjunction is a choice.
//! 2. *The pattern* that the head has at the position of the key. It may be a constant.
//! 3. *A prefix.* The order key of the pattern is written out up to the first variable that no fact
//!    equates with a constant.
//!
//! ```text
//!   {{a,'$1','_'},'_'}  with  {'>=','$1',5}, {'<','$1',9}
//!        prefix «tuple of 3» «a»      stops at '$1'       facts '$1' >= 5, '$1' < 9
//! ```
//!
//! `limits` turns the demand into keys or ranges when the arguments are known.

use crate::{
    clause::Clause,
    constant::{Constant, Span},
    func::{Cmp, Func},
    head::HeadForm,
    host,
    ir::{Ir, Node, NodeId},
    key_prefix::push_cons,
    raw,
    source::Source,
    value::{NIL, TRUE},
    wire::Head,
};
use larder_term::order_key;
use smallvec::{smallvec, SmallVec};

/// The demands of all clauses on the element at one position.
#[derive(Debug, Clone)]
pub(crate) struct Demands {
    /// The position of the element, which need not be the key, counted from 1; 0 if the demands are
    /// not on an element.
    pub(crate) keypos: usize,
    /// The demand of each clause; `None` for a clause that no object can match.
    pub(crate) each: SmallVec<[Option<Demand>; 1]>,
    /// The constants that heads have at the position; `None` if one has none there. Heads that no
    /// object with the position can match don't count, and guards neither.
    pub(crate) head_constants: Option<SmallVec<[Constant; 1]>>,
    /// The bytes of prefixes that do not stem from constants, such as the heads of tuples.
    pub(crate) written: Vec<u8>,
}

/// The demand of one clause.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    /// The offset of the key's pattern in the source; `None` if the head is not a tuple.
    pub(crate) pattern: Option<usize>,
    /// The pattern's value, if the pattern is a constant.
    pub(crate) constant: Option<Constant>,
    pub(crate) facts: Facts,
    pub(crate) choices: SmallVec<[Choice; 1]>,
    /// The known beginning of the key's order key.
    pub(crate) prefix: SmallVec<[PrefixPiece; 4]>,
    /// Why the prefix ends where it does.
    pub(crate) stop: Stop,
}

/// A conjunct that compares an expression with a constant: `about cmp constant` is `true`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fact {
    pub(crate) about: NodeId,
    pub(crate) cmp: Cmp,
    pub(crate) constant: Constant,
}

/// The facts of a clause. There are usually few.
pub(crate) type Facts = SmallVec<[Fact; 2]>;

/// The equalities that each operand of a disjunction implies: at least one for each operand.
pub(crate) type Choice = SmallVec<[Facts; 2]>;

/// A part of a prefix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PrefixPiece {
    /// Bytes of [`Demands::written`].
    Written(Span),
    /// The order key of a constant.
    Constant(Constant),
    /// That of a closed pattern, up to its first map. It is the last piece.
    Closed(Constant),
}

/// What follows a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing: the prefix is the whole key.
    End,
    /// The value of the variable with this slot, which facts may bound.
    Variable(u32),
    /// A part of the pattern that no fact bounds.
    Unknown,
}

/// The constants that facts equate variables with, sorted by the slots of the variables.
type Equalities = SmallVec<[(u32, Constant); 2]>;

impl Fact {
    pub(crate) fn is_equality(&self) -> bool {
        matches!(self.cmp, Cmp::Eq | Cmp::Same)
    }
}

/// The element of an object on which demands are derived.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Element {
    /// Counted from 1.
    pub(crate) position: usize,
    /// Whether the element is the key. Only there a map in a pattern may have to equal the map in
    /// the object.
    pub(crate) is_key: bool,
}

impl Demands {
    /// Derives the demands of `clauses` on an element. Without one, only the facts of the guards
    /// are collected.
    ///
    /// # Complexity
    /// O(n log n) in the specification.
    pub(crate) fn of(
        clauses: &[Clause],
        ir: &Ir,
        source: &Source<'_>,
        pool: &[u8],
        element: Option<Element>,
    ) -> Demands {
        let Element {
            position: keypos,
            is_key,
        } = element.unwrap_or_default();
        // A key with a map in it matches more than itself, unless `ets` takes such a key as exact.
        let names_key = |clause: &Clause| match clause.head.form {
            HeadForm::Any => false,
            // A head that no object with a key matches doesn't count.
            HeadForm::Other | HeadForm::Tuple { .. } => {
                key_place(source, clause, keypos).is_none_or(|at| source.is_closed(at))
            }
        };
        let exact = is_key && host::exact_map_keys() && clauses.iter().all(names_key);
        // All clauses write their prefixes into one buffer.
        let mut written = Vec::new();
        let mut head_constants = Some(SmallVec::new());
        let each = clauses.iter().map(|clause| {
            let mut analysis = DemandAnalysis {
                ir,
                source,
                clause,
                pool,
                written: &mut written,
                head_constants: &mut head_constants,
            };
            analysis.demand(element.map(|element| element.position), exact)
        });
        Demands {
            keypos,
            each: each.collect(),
            head_constants,
            written,
        }
    }
}

/// The offset of the pattern that a clause's head has for the element at a position, counted from
/// 1.
pub(crate) fn key_place(source: &Source<'_>, clause: &Clause, keypos: usize) -> Option<usize> {
    let HeadForm::Tuple { arity, .. } = clause.head.form else {
        return None;
    };
    let index = keypos.checked_sub(1).filter(|&index| index < arity)?;
    source.each(clause.head.at).nth(index)
}

/// The analysis of one clause.
struct DemandAnalysis<'p> {
    ir: &'p Ir,
    source: &'p Source<'p>,
    clause: &'p Clause,
    pool: &'p [u8],
    written: &'p mut Vec<u8>,
    /// See [`Demands::head_constants`].
    head_constants: &'p mut Option<SmallVec<[Constant; 1]>>,
}

/// A part of a key whose order key is being written.
enum DemandPart {
    /// What precedes each element of a list.
    Cons,
    /// The end of a proper list.
    Nil,
    /// The pattern at this offset.
    Pattern(usize),
}

impl DemandAnalysis<'_> {
    /// The demand of the clause, or `None` if no object can match it. If `exact` is true, a pattern
    /// without variables matches only itself, even if it contains a map.
    fn demand(&mut self, keypos: Option<usize>, exact: bool) -> Option<Demand> {
        // A head that is neither a tuple nor a variable matches no row.
        let pattern = match (&self.clause.head.form, keypos) {
            (HeadForm::Other, _) => return None,
            (HeadForm::Tuple { .. }, Some(keypos)) => {
                Some(key_place(self.source, self.clause, keypos)?)
            }
            _ => None,
        };
        // Without a variable and without a map, the pattern is one key.
        let is_constant =
            |&at: &usize| self.source.is_ground(at) || exact && self.source.is_closed(at);
        let constant = pattern
            .filter(is_constant)
            .map(|at| self.source.constant(at));
        match (constant, &mut *self.head_constants) {
            (Some(constant), Some(constants)) => constants.push(constant),
            (None, constants) => *constants = None,
            (Some(_), None) => {}
        }
        // If a guard is never true, no object matches the clause.
        let (facts, choices) = self.facts()?;
        let mut prefix = SmallVec::new();
        let stop = match pattern {
            // Facts about the whole key are used by `limits` directly and need no prefix.
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

    /// Step 1: collects the facts and choices of the guards. `None` if a guard is a constant other
    /// than `true`, so that the clause never matches.
    fn facts(&self) -> Option<(Facts, SmallVec<[Choice; 1]>)> {
        let ir = self.ir;
        let (mut facts, mut choices) = (Facts::new(), SmallVec::new());
        // All guards must be true, and so must all operands of a conjunction: all are facts.
        let mut nodes = self.clause.guards.clone();
        while let Some(id) = nodes.pop() {
            match ir.node(id) {
                Node::And(parts) | Node::AndAlso(parts) => nodes.extend_from_slice(ir.of(parts)),
                // An `or` says something only if each of its operands does.
                Node::Or(parts) | Node::OrElse(parts) => choices.extend(self.choice(ir.of(parts))),
                Node::Const(Constant::Fixed(span)) if &self.pool[span.range()] != TRUE => {
                    return None
                }
                _ => facts.extend(self.fact(id)),
            }
        }
        Some((facts, choices))
    }

    /// The fact that an expression states, if it compares something with a constant. A constant on
    /// the left is moved to the right, which mirrors the comparison.
    fn fact(&self, id: NodeId) -> Option<Fact> {
        let Node::Call(Func::Cmp(cmp), parts) = self.ir.node(id) else {
            return None;
        };
        // A comparison has two operands.
        let [a, b] = *self.ir.of(parts) else {
            return None;
        };
        let (about, cmp, constant) = match (self.ir.constant(a), self.ir.constant(b)) {
            (None, Some(constant)) => (a, cmp, constant),
            // `5 < X` says the same as `X > 5`.
            (Some(constant), None) => (b, cmp.flipped(), constant),
            _ => return None,
        };
        Some(Fact {
            about,
            cmp,
            constant,
        })
    }

    /// The equalities that the operands of a disjunction imply, or `None` if one of them implies
    /// none: the disjunction then restricts nothing.
    fn choice(&self, operands: &[NodeId]) -> Option<Choice> {
        let mut choice = Choice::new();
        let mut operands: SmallVec<[NodeId; 8]> = operands.into();
        while let Some(id) = operands.pop() {
            // A nested disjunction contributes its operands.
            if let Node::Or(parts) | Node::OrElse(parts) = self.ir.node(id) {
                operands.extend_from_slice(self.ir.of(parts));
                continue;
            }
            // All conjuncts of one operand hold together, so any equality among them will do.
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
            // An operand without an equality may be true for any key, so the disjunction restricts
            // nothing.
            if facts.is_empty() {
                return None;
            }
            choice.push(facts);
        }
        Some(choice)
    }

    /// The equalities about variables, sorted by slot. The sort is stable, so that of several about
    /// one variable the first stays first.
    fn equalities(&self, facts: &[Fact]) -> Equalities {
        // Only equalities about variables can be put into a prefix.
        let mut equalities = Equalities::new();
        for fact in facts {
            if let (Node::Var(slot), true) = (self.ir.node(fact.about), fact.is_equality()) {
                equalities.push((slot, fact.constant));
            }
        }
        equalities.sort_by_key(|&(slot, _)| slot);
        equalities
    }

    /// The slot of the variable at an offset of the head, if there is one.
    fn variable(&self, at: usize) -> Option<u32> {
        self.clause.head.slot(self.source, at)
    }

    /// Step 3: writes the order key of the pattern from the left, as far as it is known, and
    /// returns why it ends there. An explicit stack of parts replaces recursion: patterns may be
    /// nested deeply.
    fn prefix(
        &mut self,
        pattern: usize,
        equalities: &Equalities,
        out: &mut SmallVec<[PrefixPiece; 4]>,
    ) -> Stop {
        let mut parts: SmallVec<[DemandPart; 8]> = smallvec![DemandPart::Pattern(pattern)];
        // The parts that are still to be written, the next one on top.
        while let Some(part) = parts.pop() {
            let at = match part {
                DemandPart::Cons => {
                    self.write(out, push_cons);
                    continue;
                }
                DemandPart::Nil => {
                    self.write(out, |out| order_key::encode(raw::whole(NIL), out));
                    continue;
                }
                DemandPart::Pattern(at) => at,
            };
            // A part without variables is written when the arguments are known.
            if self.source.is_ground(at) {
                out.push(PrefixPiece::Constant(self.source.constant(at)));
                continue;
            }
            if let Some(pattern) = self.source.closed_argument(at) {
                out.push(PrefixPiece::Closed(pattern));
                return Stop::Unknown;
            }
            // A term that contains variables: writes its head and leaves its parts to the stack.
            let first = parts.len();
            let places = self.source.each(at);
            match self.source.head(at) {
                Head::Tuple(n) => {
                    self.write(out, |out| order_key::tuple_prefix(n, &[], out));
                    parts.extend(places.map(DemandPart::Pattern));
                }
                Head::List(_) => {
                    parts.extend(places.flat_map(|at| [DemandPart::Cons, DemandPart::Pattern(at)]));
                    parts.push(DemandPart::Nil);
                }
                Head::Improper(n) => {
                    let elements = places.clone().take(n);
                    parts.extend(
                        elements.flat_map(|at| [DemandPart::Cons, DemandPart::Pattern(at)]),
                    );
                    parts.extend(places.skip(n).map(DemandPart::Pattern));
                }
                // A map in a pattern leaves the size of the map open, with which its order key
                // begins.
                Head::Map(_) => return Stop::Unknown,
                Head::Leaf => {
                    let Some(slot) = self.variable(at) else {
                        return Stop::Unknown;
                    };
                    match equal_to(slot, equalities) {
                        // An equality makes the variable a constant. Without one, the prefix ends
                        // here, and other facts about the variable may narrow the range.
                        Some(constant) => out.push(PrefixPiece::Constant(constant)),
                        None => return Stop::Variable(slot),
                    }
                }
            }
            // The part that comes first in the order key belongs on the top of the stack.
            parts[first..].reverse();
        }
        Stop::End
    }

    /// Appends written bytes to the prefix. If its last piece was written too, that piece grows.
    fn write(&mut self, out: &mut SmallVec<[PrefixPiece; 4]>, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.written.len();
        write(self.written);
        let to = self.written.len();
        match out.last_mut() {
            // Adjacent pieces are merged, so that a prefix has few.
            Some(PrefixPiece::Written(span)) if span.to == from => span.to = to,
            _ => out.push(PrefixPiece::Written(Span { from, to })),
        }
    }
}

/// The constant of the first equality about a variable.
fn equal_to(slot: u32, equalities: &Equalities) -> Option<Constant> {
    let first = equalities.partition_point(|&(other, _)| other < slot);
    let &(found, constant) = equalities.get(first)?;
    (found == slot).then_some(constant)
}

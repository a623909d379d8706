//! What one clause's demand leaves of a table's keys, with its arguments.
//!
//! 1. *Keys that are known*: the head has a constant at the key's position, or a fact says what the
//!    whole key is, or a choice says it. A key is dropped if another fact about the whole key
//!    denies it.
//! 2. *A range* (ordered tables): the prefix that is demanded. What stops it, if it is a variable
//!    with facts of order, narrows the range within that prefix.
//! 3. Facts about the whole key (the variable that it is bound to, `{element,KeyPos,'$_'}`, the
//!    pattern built anew as an expression) narrow it too.
//!
//! ```text
//!   {{a,'$1','_'},'_'}  with  {'>=','$1',5}, {'<','$1',9}
//!        prefix «tuple of 3» «a»      low = prefix «5»      high = prefix «9», excluded
//! ```
//!
//! Deviation that keeps plans sound: tables place this node's pids, ports and references before
//! other nodes', the comparison of terms places them by name. A constant with an identifier in it
//! bounds nothing by order.

use crate::{
    clause::Clause,
    code::Code,
    constant::{Constant, Constants},
    demand::{key_place, Demand, Demands, Fact, Facts, Piece, Stop},
    edges::{self, Edge},
    func::{Cmp, Func},
    ir::{Node, NodeId},
    raw,
    source::Source,
    value::NIL,
    wire::{self, Head},
};
use larder_term::{order_key, Kind, Term, TermRef, View};
use smallvec::{smallvec, SmallVec};
use std::ops::Bound;

/// How a table finds its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// By hash, and keys are the same if they are identical.
    Hash,
    /// By order, and keys are the same if they are equal (1 and 1.0).
    Ordered,
}

/// Keys: one, as a rule.
pub(crate) type Keys = SmallVec<[Term; 1]>;

/// See [`of_clause`].
pub(crate) enum Limit {
    Nothing,
    Keys(Keys),
    Range(Edge, Edge),
    Full,
}

/// Room for the prefix of an order key, and for what its writing takes.
const PREFIX_ROOM: usize = 128;

/// What is limited.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'p> {
    /// The element that the demands are of.
    Element,
    /// An expression of another program, over the object.
    Expression(Expression<'p>),
}

/// An expression of a program.
#[derive(Clone, Copy)]
pub(crate) struct Expression<'p> {
    pub(crate) code: &'p Code,
    pub(crate) constants: Constants<'p>,
    pub(crate) id: NodeId,
}

/// What is looked at.
struct Look<'p> {
    subject: Subject<'p>,
    code: &'p Code,
    constants: Constants<'p>,
    source: Source<'p>,
    clause: &'p Clause,
    demands: &'p Demands,
    demand: &'p Demand,
}

/// The keys, or values of an expression, that objects which fit a clause, by its number, can have.
pub(crate) fn of_clause<'p>(
    (code, constants): (&'p Code, Constants<'p>),
    (demands, index): (&'p Demands, usize),
    subject: Subject<'p>,
    order: KeyOrder,
) -> Limit {
    let Some(demand) = &demands.each[index] else {
        return Limit::Nothing;
    };
    let look = Look {
        subject,
        code,
        constants,
        source: code.source(),
        clause: &code.clauses[index],
        demands,
        demand,
    };
    let facts = demand.facts.iter().copied();
    let (whole, parts): (Facts, Facts) = facts.partition(|fact| look.is_key(fact.about));
    if let Some(keys) = look.known_keys(&whole, order) {
        return if keys.is_empty() {
            Limit::Nothing
        } else {
            Limit::Keys(keys)
        };
    }
    if order == KeyOrder::Hash {
        return Limit::Full;
    }
    let (mut low, mut high) = look.prefix_range(&parts);
    if !whole.is_empty() {
        (low, high) = edges::tighter((low, high), look.range(whole.iter()));
    }
    match (&low, &high) {
        (Bound::Unbounded, Bound::Unbounded) => Limit::Full,
        _ if edges::is_empty(&low, &high) => Limit::Nothing,
        _ => Limit::Range(low, high),
    }
}

impl<'p> Look<'p> {
    fn term(&self, constant: Constant) -> TermRef<'p> {
        self.constants.term(constant)
    }

    /// Whether an expression is the key, whatever the object is.
    fn is_key(&self, id: NodeId) -> bool {
        if let Subject::Expression(wanted) = self.subject {
            return self.is_expression(id, wanted);
        }
        let ir = &self.code.ir;
        if let Node::Call(Func::Element, parts) = ir.node(id) {
            if let [position, object] = ir.of(parts) {
                let position = ir
                    .constant(*position)
                    .and_then(|constant| wire::int(self.constants.get(constant)));
                return position == i64::try_from(self.demands.keypos).ok()
                    && ir.node(*object) == Node::Object;
            }
        }
        self.demand
            .pattern
            .is_some_and(|pattern| self.is_pattern(pattern, id))
    }

    /// Whether an expression is another program's, but for variables that stand for the object or
    /// one of its elements.
    fn is_expression(&self, id: NodeId, wanted: Expression<'_>) -> bool {
        let (ir, other) = (&self.code.ir, &wanted.code.ir);
        let mut pairs: SmallVec<[(NodeId, NodeId); 4]> = smallvec![(id, wanted.id)];
        while let Some((id, with)) = pairs.pop() {
            let (parts, others) = match (ir.node(id), other.node(with)) {
                (Node::Object, Node::Object) => continue,
                (Node::Const(a), Node::Const(b))
                    if self.constants.get(a) == wanted.constants.get(b) =>
                {
                    continue
                }
                (Node::Var(slot), Node::Object)
                    if self.variable(self.clause.head.at) == Some(slot) =>
                {
                    continue
                }
                (Node::Var(slot), Node::Call(Func::Element, parts))
                    if self.is_element(slot, wanted, other.of(parts)) =>
                {
                    continue
                }
                (Node::Call(f, parts), Node::Call(g, others)) if f == g => (parts, others),
                (Node::Tuple(parts), Node::Tuple(others))
                | (Node::List(parts), Node::List(others))
                | (Node::Map(parts), Node::Map(others)) => (parts, others),
                _ => return false,
            };
            let (parts, others) = (ir.of(parts), other.of(others));
            if parts.len() != others.len() {
                return false;
            }
            pairs.extend(parts.iter().copied().zip(others.iter().copied()));
        }
        true
    }

    /// Whether a variable is the element that a call of `element/2` of another program gives.
    fn is_element(&self, slot: u32, other: Expression<'_>, call: &[NodeId]) -> bool {
        let &[position, object] = call else {
            return false;
        };
        let position = other
            .code
            .ir
            .constant(position)
            .and_then(|constant| wire::int(other.constants.get(constant)))
            .and_then(|position| usize::try_from(position).ok());
        let place = position.and_then(|at| key_place(&self.source, self.clause, at));
        other.code.ir.node(object) == Node::Object
            && place.is_some_and(|at| self.variable(at) == Some(slot))
    }

    /// Whether an expression builds what a pattern matched.
    fn is_pattern(&self, pattern: usize, id: NodeId) -> bool {
        let ir = &self.code.ir;
        let mut pairs: SmallVec<[(usize, NodeId); 4]> = smallvec![(pattern, id)];
        while let Some((at, id)) = pairs.pop() {
            let parts = match (ir.node(id), self.source.head(at)) {
                (Node::Var(slot), Head::Leaf) if self.variable(at) == Some(slot) => continue,
                (Node::Const(constant), _)
                    if self.source.is_ground(at)
                        && self.constants.get(constant)
                            == self.constants.get(self.source.constant(at)) =>
                {
                    continue
                }
                (Node::Tuple(parts), Head::Tuple(n)) if ir.of(parts).len() == n => ir.of(parts),
                (Node::List(parts), Head::Improper(n)) if ir.of(parts).len() == n + 1 => {
                    ir.of(parts)
                }
                (Node::List(parts), Head::List(n)) => match ir.of(parts).split_last() {
                    Some((tail, elements)) if elements.len() == n && self.is_nil(*tail) => elements,
                    _ => return false,
                },
                _ => return false,
            };
            pairs.extend(self.source.parts(at).into_iter().zip(parts.iter().copied()));
        }
        true
    }

    fn is_nil(&self, id: NodeId) -> bool {
        self.code
            .ir
            .constant(id)
            .is_some_and(|constant| self.constants.get(constant) == NIL)
    }

    /// The slot of the variable that a pattern is.
    fn variable(&self, at: usize) -> Option<u32> {
        self.clause.head.slot(&self.source, at)
    }

    /// Step 1. The keys, if only these can fit; none of them if no key can.
    fn known_keys(&self, whole: &[Fact], order: KeyOrder) -> Option<Keys> {
        let mut keys: Keys = match self.demand.constant {
            Some(constant) => smallvec![Term::from(self.term(constant))],
            None => {
                let equal = |fact: &Fact| equals(fact.cmp, self.term(fact.constant), order);
                let known = whole.iter().find_map(equal);
                known.or_else(|| self.chosen(order))?
            }
        };
        keys.retain(|key| {
            whole
                .iter()
                .all(|fact| allows(fact.cmp, key.as_ref(), self.term(fact.constant), order))
        });
        Some(keys)
    }

    /// The keys that the first choice between keys leaves.
    fn chosen(&self, order: KeyOrder) -> Option<Keys> {
        self.demand.choices.iter().find_map(|choice| {
            let mut keys = Keys::new();
            for facts in choice {
                let mut of_key = facts.iter().filter(|fact| self.is_key(fact.about));
                keys.extend(
                    of_key.find_map(|fact| equals(fact.cmp, self.term(fact.constant), order))?,
                );
            }
            Some(keys)
        })
    }

    /// Step 2.
    fn prefix_range(&self, facts: &[Fact]) -> (Edge, Edge) {
        let demand = self.demand;
        if demand.prefix.is_empty() && demand.stop == Stop::Unknown {
            return (Bound::Unbounded, Bound::Unbounded);
        }
        let mut prefix = Vec::with_capacity(PREFIX_ROOM);
        for piece in &demand.prefix {
            match *piece {
                Piece::Written(span) => {
                    prefix.extend_from_slice(&self.demands.written[span.range()]);
                }
                Piece::Constant(constant) => order_key::encode(self.term(constant), &mut prefix),
            }
        }
        let range = match demand.stop {
            Stop::End => return (Bound::Included(prefix.clone()), Bound::Included(prefix)),
            Stop::Unknown => (Bound::Unbounded, Bound::Unbounded),
            Stop::Variable(slot) => {
                let about = |fact: &&Fact| self.code.ir.node(fact.about) == Node::Var(slot);
                self.range(facts.iter().filter(about))
            }
        };
        edges::within(prefix, range)
    }

    /// The range of order keys that facts about one thing leave it.
    fn range<'f>(&self, facts: impl Iterator<Item = &'f Fact>) -> (Edge, Edge) {
        facts.fold((Bound::Unbounded, Bound::Unbounded), |range, fact| {
            let constant = self.term(fact.constant);
            if !fact.is_equality() && has_identifier(constant) {
                return range;
            }
            let mut here = Vec::new();
            order_key::encode(constant, &mut here);
            let beyond = || edges::after(here.clone());
            let one = match fact.cmp {
                Cmp::Gt => (edges::from_beyond(beyond()), Bound::Unbounded),
                Cmp::Ge => (Bound::Included(here), Bound::Unbounded),
                Cmp::Lt => (Bound::Unbounded, Bound::Excluded(here)),
                Cmp::Le => (Bound::Unbounded, beyond()),
                Cmp::Eq | Cmp::Same => (Bound::Included(here.clone()), beyond()),
                Cmp::Ne | Cmp::NotSame => return range,
            };
            edges::tighter(range, one)
        })
    }
}

/// The keys that a fact of equality leaves, if they are few: those that are equal to the constant
/// without being identical differ in numbers.
fn equals(cmp: Cmp, constant: TermRef<'_>, order: KeyOrder) -> Option<Keys> {
    match (cmp, order) {
        (Cmp::Same, _) | (Cmp::Eq, KeyOrder::Ordered) => Some(smallvec![Term::from(constant)]),
        (Cmp::Eq, KeyOrder::Hash) => match constant.view() {
            View::Int(n) if n.unsigned_abs() <= 1 << 53 && n != 0 => {
                let float = Term::float(n as f64).ok()?;
                Some(smallvec![Term::from(constant), float])
            }
            View::Atom(_) | View::Bin(_) | View::Bits { .. } | View::Nil | View::Pid(_) => {
                Some(smallvec![Term::from(constant)])
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a fact about the key lets this key be. In an ordered table the key stands for all that
/// are equal to it.
fn allows(cmp: Cmp, key: TermRef<'_>, constant: TermRef<'_>, order: KeyOrder) -> bool {
    let equal = key.eq_term(constant);
    match (cmp, order) {
        (Cmp::Gt, _) => key.cmp_term(constant).is_gt(),
        (Cmp::Ge, _) => key.cmp_term(constant).is_ge(),
        (Cmp::Lt, _) => key.cmp_term(constant).is_lt(),
        (Cmp::Le, _) => key.cmp_term(constant).is_le(),
        (Cmp::Ne, _) => !equal,
        (Cmp::Eq, _) | (Cmp::Same, KeyOrder::Ordered) => equal,
        (Cmp::Same, KeyOrder::Hash) => key.identical(constant),
        (Cmp::NotSame, KeyOrder::Ordered) => true,
        (Cmp::NotSame, KeyOrder::Hash) => !key.identical(constant),
    }
}

/// Whether a pid, port, reference or fun lies somewhere in a term.
fn has_identifier(term: TermRef<'_>) -> bool {
    let bytes = term.bytes();
    let mut at = 0;
    while at < bytes.len() {
        let run = &bytes[at..];
        let (head, body) = wire::open(run);
        if head != Head::Leaf {
            at += body;
            continue;
        }
        let leaf = raw::view(run);
        if matches!(
            leaf.kind(),
            Kind::Pid | Kind::Port | Kind::Reference | Kind::Fun
        ) {
            return true;
        }
        at += leaf.bytes().len();
    }
    false
}

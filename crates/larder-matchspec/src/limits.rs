//! Which keys of a table can satisfy a clause, given the program's arguments. The demand of the
//! clause (see `demand`) depends on the code alone. Here it becomes keys or a range:
//!
//! 1. *Known keys*: the head has a constant at the position of the key, or a fact equates the whole
//!    key with a constant, or a choice does. A key that contradicts another fact about the whole
//!    key is dropped.
//! 2. *A range* (ordered tables only): the keys that begin with the demanded prefix. If the prefix
//!    ends at a variable that the guards compare with constants, these comparisons narrow the range
//!    within the prefix.
//! 3. Facts about the whole key narrow the range further. The whole key may be written as the
//!    variable bound to it, as `{element,KeyPos,'$_'}`, or as an expression that builds the key's
//!    pattern.
//!
//! ```text
//!   {{a,'$1','_'},'_'}  with  {'>=','$1',5}, {'<','$1',9}
//!        prefix «tuple of 3» «a»      low = prefix «5»      high = prefix «9», excluded
//! ```
//!
//! Tables order the pids, ports and references of this node before those of other nodes, but the
//! comparison of terms orders them by the name of the node. A comparison with a constant that
//! contains such an identifier therefore yields no bound.

use crate::{
    clause::Clause,
    code::Code,
    constant::{Constant, Constants},
    demand::{key_place, Demand, Demands, Fact, Facts, PrefixPiece, Stop},
    func::{Cmp, Func},
    ir::{Node, NodeId},
    key_bounds::{self, KeyBound},
    key_prefix, raw,
    source::Source,
    value::NIL,
    wire::{self, Head},
};
use larder_term::{order_key, Kind, Term, TermRef, View};
use smallvec::{smallvec, SmallVec};
use std::ops::Bound;

/// How a table finds its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAccess {
    /// By hash. Two keys are the same key if they are identical.
    Hash,
    /// By order. Two keys are the same key if they compare equal, as 1 and 1.0 do.
    Ordered,
}

/// The keys that a clause can match. There is usually one.
pub(crate) type Keys = SmallVec<[Term; 1]>;

/// The result of [`of_clause`].
pub(crate) enum Limit {
    /// No key can match.
    Nothing,
    /// Only these keys can match.
    Keys(Keys),
    /// Only keys whose order keys lie between these bounds can match.
    Range(KeyBound, KeyBound),
    /// Any key may match.
    AllKeys,
}

/// The initial capacity of the buffer for an order key's prefix.
const PREFIX_CAPACITY: usize = 128;

/// Known keys and facts are compared up to about this number of times, and each key with at least
/// one fact.
const COMPARISONS: usize = 1 << 16;

/// The thing whose values are limited.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'p> {
    /// The element that the demands were derived for.
    Element,
    /// An expression of another program over the object: the key of an index.
    Expression(Expression<'p>),
}

/// An expression of a program.
#[derive(Clone, Copy)]
pub(crate) struct Expression<'p> {
    pub(crate) code: &'p Code,
    pub(crate) constants: Constants<'p>,
    pub(crate) id: NodeId,
}

/// A clause of a program, by its index, and the demands of all its clauses.
pub(crate) struct DemandingClause<'p> {
    pub(crate) code: &'p Code,
    pub(crate) constants: Constants<'p>,
    pub(crate) demands: &'p Demands,
    pub(crate) index: usize,
}

/// A clause and its demand, with the arguments of the program.
struct Analysis<'p> {
    subject: Subject<'p>,
    code: &'p Code,
    constants: Constants<'p>,
    source: Source<'p>,
    clause: &'p Clause,
    demands: &'p Demands,
    demand: &'p Demand,
}

/// The keys, or the values of an expression, that objects which match the clause can have.
pub(crate) fn of_clause<'p>(
    clause: DemandingClause<'p>,
    subject: Subject<'p>,
    access: KeyAccess,
) -> Limit {
    let DemandingClause {
        code,
        constants,
        demands,
        index,
    } = clause;
    // The clause can't match any object, whatever the arguments are.
    let Some(demand) = &demands.each[index] else {
        return Limit::Nothing;
    };
    let analysis = Analysis {
        subject,
        code,
        constants,
        source: code.source(),
        clause: &code.clauses[index],
        demands,
        demand,
    };
    // Facts about the whole key are used as they are. Those about its parts narrow the range within
    // the prefix.
    let facts = demand.facts.iter().copied();
    let (whole, parts): (Facts, Facts) = facts.partition(|fact| analysis.is_key(fact.about));
    // (1) Known keys.
    if let Some(keys) = analysis.known_keys(&whole, access) {
        return if keys.is_empty() {
            Limit::Nothing
        } else {
            Limit::Keys(keys)
        };
    }
    // Without an order of keys, a range is no help.
    if access == KeyAccess::Hash {
        return Limit::AllKeys;
    }
    // (2) The range of the keys that begin with the prefix.
    let (mut low, mut high) = analysis.prefix_range(&parts);
    // (3) The range of the facts about the whole key. Both ranges hold, so on each side the
    // narrower bound counts.
    if !whole.is_empty() {
        (low, high) = key_bounds::tighter((low, high), analysis.range(whole.iter()));
    }
    match (&low, &high) {
        (Bound::Unbounded, Bound::Unbounded) => Limit::AllKeys,
        _ if key_bounds::is_empty(&low, &high) => Limit::Nothing,
        _ => Limit::Range(low, high),
    }
}

impl<'p> Analysis<'p> {
    fn term(&self, constant: Constant) -> TermRef<'p> {
        self.constants.term(constant)
    }

    /// Whether an expression evaluates to the key for every object that matches the head.
    fn is_key(&self, id: NodeId) -> bool {
        if let Subject::Expression(wanted) = self.subject {
            return self.is_expression(id, wanted);
        }
        let ir = &self.code.ir;
        // `{element,KeyPos,'$_'}`.
        if let Node::Call(Func::Element, parts) = ir.node(id) {
            if let [position, object] = ir.of(parts) {
                let position = ir
                    .constant(*position)
                    .and_then(|constant| wire::int(self.constants.get(constant)));
                return position == i64::try_from(self.demands.keypos).ok()
                    && ir.node(*object) == Node::Object;
            }
        }
        // The pattern of the key, built anew as an expression. If the pattern is a variable, the
        // expression is that variable.
        self.demand
            .pattern
            .is_some_and(|pattern| self.is_pattern(pattern, id))
    }

    /// Whether an expression is the same as that of another program, where a variable that this
    /// clause's head binds to the object or to one of its elements equals `'$_'` or
    /// `{element,N,'$_'}` there. Both trees are walked in step.
    fn is_expression(&self, id: NodeId, wanted: Expression<'_>) -> bool {
        let (ir, other) = (&self.code.ir, &wanted.code.ir);
        // Two expressions may be written differently and mean the same: in one program by a
        // variable, in the other by `element/2`.
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
                // Anything else may be the same, but need not be: then the fact isn't used.
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

    /// Whether this clause's head binds a variable to the element that a call of `element/2` in
    /// another program selects.
    fn is_element(&self, slot: u32, other: Expression<'_>, call: &[NodeId]) -> bool {
        let &[position, object] = call else {
            return false;
        };
        // The position must be a constant of the other program.
        let position = other
            .code
            .ir
            .constant(position)
            .and_then(|constant| wire::int(other.constants.get(constant)))
            .and_then(|position| usize::try_from(position).ok());
        // In this clause, the pattern at that position must be the variable.
        let place = position.and_then(|at| key_place(&self.source, self.clause, at));
        other.code.ir.node(object) == Node::Object
            && place.is_some_and(|at| self.variable(at) == Some(slot))
    }

    /// Whether an expression builds exactly the term that a pattern matched: it has the same shape,
    /// with the same variables and constants. A pattern with `'_'` in it cannot be built anew.
    fn is_pattern(&self, pattern: usize, id: NodeId) -> bool {
        let ir = &self.code.ir;
        // The expression is walked over together with the pattern. Every part must come out as it
        // was matched.
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
                // The expression of a list has its tail as the last part. A proper list in a
                // pattern does not name its tail.
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

    /// The slot of the variable at an offset of the head, if there is one.
    fn variable(&self, at: usize) -> Option<u32> {
        self.clause.head.slot(&self.source, at)
    }

    /// Step 1. Returns the only keys that can match, or `None` if they are not known. The list is
    /// empty if the facts contradict each other.
    fn known_keys(&self, whole: &[Fact], access: KeyAccess) -> Option<Keys> {
        // One source suffices, in the order of how few keys it yields: the constant in the head, an
        // equality, a choice.
        let mut keys: Keys = match self.demand.constant {
            Some(constant) => smallvec![Term::from(self.term(constant))],
            None => {
                let equal = |fact: &Fact| equals(fact.cmp, self.term(fact.constant), access);
                let known = whole.iter().find_map(equal);
                known.or_else(|| self.chosen(access))?
            }
        };
        // The remaining facts can only remove keys. Of many keys not all facts are looked at, which
        // would take the product of the two numbers.
        let looked_at = (COMPARISONS / keys.len().max(1)).max(1);
        keys.retain(|key| {
            whole
                .iter()
                .take(looked_at)
                .all(|fact| allows(fact.cmp, key.as_ref(), self.term(fact.constant), access))
        });
        Some(keys)
    }

    /// The keys of the first disjunction each of whose operands equates the key with a constant.
    fn chosen(&self, access: KeyAccess) -> Option<Keys> {
        // One choice with known keys is enough. Others would only narrow it.
        self.demand.choices.iter().find_map(|choice| {
            let mut keys = Keys::new();
            for facts in choice {
                // Of an operand's equalities, the one about the key counts. Without one, the choice
                // says nothing.
                let mut of_key = facts.iter().filter(|fact| self.is_key(fact.about));
                keys.extend(
                    of_key.find_map(|fact| equals(fact.cmp, self.term(fact.constant), access))?,
                );
            }
            Some(keys)
        })
    }

    /// Step 2: the range of the order keys that begin with the demanded prefix.
    fn prefix_range(&self, facts: &[Fact]) -> (KeyBound, KeyBound) {
        let demand = self.demand;
        if demand.prefix.is_empty() && demand.stop == Stop::Unknown {
            return (Bound::Unbounded, Bound::Unbounded);
        }
        // The prefix was written when the program was compiled. Only arguments are filled in here.
        let mut prefix = Vec::with_capacity(PREFIX_CAPACITY);
        for piece in &demand.prefix {
            match *piece {
                PrefixPiece::Written(span) => {
                    prefix.extend_from_slice(&self.demands.written[span.range()]);
                }
                PrefixPiece::Constant(constant) => {
                    order_key::encode(self.term(constant), &mut prefix)
                }
                PrefixPiece::Closed(pattern) => {
                    key_prefix::push_prefix(self.constants.get(pattern), &mut prefix);
                }
            }
        }
        let range = match demand.stop {
            // The prefix is the whole key.
            Stop::End => return (Bound::Included(prefix.clone()), Bound::Included(prefix)),
            Stop::Unknown => (Bound::Unbounded, Bound::Unbounded),
            // The prefix ends at a variable: facts about it give the ends of the range.
            Stop::Variable(slot) => {
                let about = |fact: &&Fact| self.code.ir.node(fact.about) == Node::Var(slot);
                self.range(facts.iter().filter(about))
            }
        };
        let (low, high) = range;
        key_bounds::within(prefix, low, high)
    }

    /// The range of order keys of one subject that satisfies all facts about it.
    fn range<'f>(&self, facts: impl Iterator<Item = &'f Fact>) -> (KeyBound, KeyBound) {
        facts.fold((Bound::Unbounded, Bound::Unbounded), |range, fact| {
            let constant = self.term(fact.constant);
            if !fact.is_equality() && has_identifier(constant) {
                return range;
            }
            // `here` is the order key of the constant, and `beyond` the edge after all order keys
            // that begin with it.
            let mut here = Vec::new();
            order_key::encode(constant, &mut here);
            let beyond = || key_bounds::after(here.clone());
            let one = match fact.cmp {
                Cmp::Gt => (key_bounds::from_beyond(beyond()), Bound::Unbounded),
                Cmp::Ge => (Bound::Included(here), Bound::Unbounded),
                Cmp::Lt => (Bound::Unbounded, Bound::Excluded(here)),
                Cmp::Le => (Bound::Unbounded, beyond()),
                Cmp::Eq | Cmp::Same => (Bound::Included(here.clone()), beyond()),
                Cmp::Ne | Cmp::NotSame => return range,
            };
            key_bounds::tighter(range, one)
        })
    }
}

/// The keys that satisfy an equality with a constant, if they can be enumerated. In a hash table a
/// key may be equal to the constant (`==`) without being identical to it, if numbers in the two
/// differ in type. A small integer has one such counterpart, the float of the same value; a term
/// without numbers has none; for other terms the keys are not enumerated.
fn equals(cmp: Cmp, constant: TermRef<'_>, access: KeyAccess) -> Option<Keys> {
    match (cmp, access) {
        // The key is the constant itself, or an order key stands for all terms equal to it.
        (Cmp::Same, _) | (Cmp::Eq, KeyAccess::Ordered) => Some(smallvec![Term::from(constant)]),
        (Cmp::Eq, KeyAccess::Hash) => match constant.view() {
            // Up to 2^53, an integer has exactly one float equal to it; zero has two.
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

/// Whether a key can satisfy a fact about the whole key. In an ordered table the key stands for all
/// terms equal to it, so it is dropped only if none of them satisfies the fact.
fn allows(cmp: Cmp, key: TermRef<'_>, constant: TermRef<'_>, access: KeyAccess) -> bool {
    // Whether a key is dropped must be certain. One that might satisfy the fact stays, and the
    // program decides.
    let equal = key.eq_term(constant);
    match (cmp, access) {
        (Cmp::Gt, _) => key.cmp_term(constant).is_gt(),
        (Cmp::Ge, _) => key.cmp_term(constant).is_ge(),
        (Cmp::Lt, _) => key.cmp_term(constant).is_lt(),
        (Cmp::Le, _) => key.cmp_term(constant).is_le(),
        (Cmp::Ne, _) => !equal,
        (Cmp::Eq, _) | (Cmp::Same, KeyAccess::Ordered) => equal,
        (Cmp::Same, KeyAccess::Hash) => key.identical(constant),
        (Cmp::NotSame, KeyAccess::Ordered) => true,
        (Cmp::NotSame, KeyAccess::Hash) => !key.identical(constant),
    }
}

/// Whether a term contains a pid, port, reference or fun.
fn has_identifier(term: TermRef<'_>) -> bool {
    let bytes = term.bytes();
    let mut at = 0;
    // Walk over the heads. No recursion, however deep the term is.
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

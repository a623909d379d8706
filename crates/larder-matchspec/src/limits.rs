//! What one clause demands of a key.
//!
//! 1. *Facts.* Every guard must be `true`, and so must every operand of `and` and `andalso` in it.
//!    Of these conjuncts, the comparisons of something with a constant are facts about it.
//! 2. *A key that is known*: the head has a constant at the key's position, or a fact says what the
//!    whole key is. It is dropped if another fact about the whole key denies it.
//! 3. *A range* (ordered tables): the head's pattern of the key is written out as an order key as
//!    far as it is known, a variable with an equality fact included. What stops it, if it is a
//!    variable with facts of order, narrows the range within that prefix.
//! 4. Facts about the whole key (the variable that it is bound to, `{element,KeyPos,'$_'}`, the
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
    func::{Cmp, Func},
    head::Shape,
    ir::{Node, NodeId},
    plan::KeyOrder,
    program::{Clause, Program},
    raw,
    source::{Source, Span},
    value::{NIL, TRUE},
    wire::{self, Head},
};
use larder_term::{order_key, Kind, Term, TermRef, View};
use std::{cmp::Ordering, collections::HashMap, ops::Bound};

/// An end of a range of order keys.
pub(crate) type Edge = Bound<Vec<u8>>;

/// See [`of_clause`].
pub(crate) enum Limit {
    Nothing,
    Keys(Vec<Term>),
    Range(Edge, Edge),
    Full,
}

/// A conjunct that compares something with a constant.
struct Fact {
    about: NodeId,
    cmp: Cmp,
    constant: Span,
}

/// Whether a clause's head has a key without variables.
pub(crate) fn names_key(source: &Source<'_>, clause: &Clause, keypos: usize) -> bool {
    let Shape::Tuple { .. } = clause.head.shape else {
        return false;
    };
    let key = keypos.checked_sub(1);
    let at = key.and_then(|i| source.each(clause.head.at).nth(i));
    at.is_some_and(|at| source.is_closed(at))
}

/// What is looked at.
struct Look<'p> {
    program: &'p Program,
    source: &'p Source<'p>,
    clause: &'p Clause,
    keypos: usize,
    /// A key without variables is that key, though it holds a map.
    exact: bool,
    /// The place of the key's pattern, unless the head is no tuple.
    pattern: Option<usize>,
}

/// The keys at `keypos` that objects which fit the clause can have.
pub(crate) fn of_clause(
    program: &Program,
    source: &Source<'_>,
    clause: &Clause,
    (keypos, exact): (usize, bool),
    order: KeyOrder,
) -> Limit {
    let pattern = match clause.head.shape {
        Shape::Other => return Limit::Nothing,
        Shape::Any => None,
        Shape::Tuple { .. } => {
            let parts = source.parts(clause.head.at);
            match keypos.checked_sub(1).and_then(|i| parts.get(i)) {
                Some(&at) => Some(at),
                None => return Limit::Nothing,
            }
        }
    };
    let look = Look {
        program,
        source,
        clause,
        keypos,
        exact,
        pattern,
    };
    let Some(facts) = look.facts() else {
        return Limit::Nothing;
    };
    let (whole, parts): (Vec<Fact>, Vec<Fact>) =
        facts.into_iter().partition(|fact| look.is_key(fact.about));
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
    let (low, high) = tighter(look.prefix_range(&parts), look.range(whole.iter()));
    match (&low, &high) {
        (Bound::Unbounded, Bound::Unbounded) => Limit::Full,
        _ if is_empty(&low, &high) => Limit::Nothing,
        _ => Limit::Range(low, high),
    }
}

impl<'p> Look<'p> {
    /// Step 1. `None` if a guard can never be `true`.
    fn facts(&self) -> Option<Vec<Fact>> {
        let ir = &self.program.ir;
        let mut facts = Vec::new();
        let mut nodes = self.clause.guards.clone();
        while let Some(id) = nodes.pop() {
            match ir.node(id) {
                Node::And(parts) | Node::AndAlso(parts) => nodes.extend_from_slice(ir.of(parts)),
                Node::Const(span) if self.bytes(span) != TRUE => return None,
                Node::Call(Func::Cmp(cmp), parts) => {
                    let [a, b] = ir.of(parts) else { continue };
                    match (ir.constant(*a), ir.constant(*b)) {
                        (None, Some(constant)) => facts.push(Fact {
                            about: *a,
                            cmp,
                            constant,
                        }),
                        (Some(constant), None) => facts.push(Fact {
                            about: *b,
                            cmp: cmp.flipped(),
                            constant,
                        }),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Some(facts)
    }

    fn bytes(&self, span: Span) -> &'p [u8] {
        &self.program.pool[span.range()]
    }

    fn term(&self, span: Span) -> TermRef<'p> {
        raw::whole(self.bytes(span))
    }

    /// Whether an expression is the key, whatever the object is.
    fn is_key(&self, id: NodeId) -> bool {
        let ir = &self.program.ir;
        if let Node::Call(Func::Element, parts) = ir.node(id) {
            if let [position, object] = ir.of(parts) {
                let position = ir
                    .constant(*position)
                    .and_then(|span| wire::int(self.bytes(span)));
                return position == i64::try_from(self.keypos).ok()
                    && ir.node(*object) == Node::Object;
            }
        }
        self.pattern
            .is_some_and(|pattern| self.is_pattern(pattern, id))
    }

    /// Whether an expression builds what a pattern matched.
    fn is_pattern(&self, pattern: usize, id: NodeId) -> bool {
        let ir = &self.program.ir;
        let mut pairs = vec![(pattern, id)];
        while let Some((at, id)) = pairs.pop() {
            let parts = match (ir.node(id), self.source.head(at)) {
                (Node::Var(slot), Head::Leaf) if self.variable(at) == Some(slot) => continue,
                (Node::Const(span), _)
                    if self.source.is_ground(at) && self.bytes(span) == self.source.term(at) =>
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
        self.program
            .ir
            .constant(id)
            .is_some_and(|span| self.bytes(span) == NIL)
    }

    /// The slot of the variable that a pattern is.
    fn variable(&self, at: usize) -> Option<u32> {
        let number = self.source.atom(at).and_then(wire::variable)?;
        self.clause
            .head
            .variables
            .binary_search(&number)
            .ok()
            .map(|slot| slot as u32)
    }

    /// Step 2. The keys, if only these can fit; none of them if no key can.
    fn known_keys(&self, whole: &[Fact], order: KeyOrder) -> Option<Vec<Term>> {
        let is_key =
            |&at: &usize| self.source.is_ground(at) || self.exact && self.source.is_closed(at);
        let ground = self.pattern.filter(is_key);
        let mut keys = match ground {
            Some(at) => vec![Term::from(raw::whole(self.source.term(at)))],
            None => whole
                .iter()
                .find_map(|fact| equals(fact.cmp, self.term(fact.constant), order))?,
        };
        keys.retain(|key| {
            whole
                .iter()
                .all(|fact| allows(fact.cmp, key.as_ref(), self.term(fact.constant), order))
        });
        Some(keys)
    }

    /// Step 3.
    fn prefix_range(&self, facts: &[Fact]) -> (Edge, Edge) {
        let Some(pattern) = self.pattern else {
            return (Bound::Unbounded, Bound::Unbounded);
        };
        let mut prefix = Vec::new();
        let stop = self.write_prefix(pattern, &self.equalities(facts), &mut prefix);
        let Some(stop) = stop else {
            return (Bound::Included(prefix.clone()), Bound::Included(prefix));
        };
        let range = match self.variable(stop) {
            Some(slot) => {
                let about = |fact: &&Fact| self.program.ir.node(fact.about) == Node::Var(slot);
                self.range(facts.iter().filter(about))
            }
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        within(prefix, range)
    }

    /// Writes what is known of the begin of the key's order key; gives the place of the pattern
    /// that stopped it.
    fn write_prefix(
        &self,
        pattern: usize,
        equalities: &HashMap<u32, Span>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        enum Part {
            Cons,
            Nil,
            Pattern(usize),
        }
        let mut parts = vec![Part::Pattern(pattern)];
        while let Some(part) = parts.pop() {
            let at = match part {
                Part::Cons => {
                    push_cons(out);
                    continue;
                }
                Part::Nil => {
                    order_key::encode(raw::whole(NIL), out);
                    continue;
                }
                Part::Pattern(at) => at,
            };
            if self.source.is_ground(at) {
                order_key::encode(raw::whole(self.source.term(at)), out);
                continue;
            }
            let places = self.source.parts(at);
            let list = |places: &[usize]| {
                places
                    .iter()
                    .rev()
                    .flat_map(|&at| [Part::Pattern(at), Part::Cons])
                    .collect::<Vec<_>>()
            };
            match self.source.head(at) {
                Head::Tuple(n) => {
                    order_key::tuple_prefix(n, &[], out);
                    parts.extend(places.iter().rev().map(|&at| Part::Pattern(at)));
                }
                Head::List(_) => {
                    parts.push(Part::Nil);
                    parts.extend(list(&places));
                }
                Head::Improper(n) => {
                    parts.push(Part::Pattern(places[n]));
                    parts.extend(list(&places[..n]));
                }
                Head::Map(_) => return Some(at),
                Head::Leaf => match self.variable(at).and_then(|slot| equalities.get(&slot)) {
                    Some(span) => order_key::encode(self.term(*span), out),
                    None => return Some(at),
                },
            }
        }
        None
    }

    /// What variables are equal to, by their slots: the first that is said of each.
    fn equalities(&self, facts: &[Fact]) -> HashMap<u32, Span> {
        let mut equalities = HashMap::new();
        for fact in facts {
            if let (Node::Var(slot), true) = (self.program.ir.node(fact.about), fact.is_equality())
            {
                equalities.entry(slot).or_insert(fact.constant);
            }
        }
        equalities
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
            let beyond = || after(here.clone());
            let one = match fact.cmp {
                Cmp::Gt => (from_beyond(beyond()), Bound::Unbounded),
                Cmp::Ge => (Bound::Included(here), Bound::Unbounded),
                Cmp::Lt => (Bound::Unbounded, Bound::Excluded(here)),
                Cmp::Le => (Bound::Unbounded, beyond()),
                Cmp::Eq | Cmp::Same => (Bound::Included(here.clone()), beyond()),
                Cmp::Ne | Cmp::NotSame => return range,
            };
            tighter(range, one)
        })
    }
}

impl Fact {
    fn is_equality(&self) -> bool {
        matches!(self.cmp, Cmp::Eq | Cmp::Same)
    }
}

/// A range of what comes after a prefix, as one of whole order keys. (None of them begins with
/// 0xFF, so what comes after an end within the prefix is within it, too.)
fn within(prefix: Vec<u8>, (low, high): (Edge, Edge)) -> (Edge, Edge) {
    let put = |end: Vec<u8>| [&prefix[..], &end].concat();
    let low = match low {
        Bound::Unbounded if prefix.is_empty() => low,
        Bound::Unbounded => Bound::Included(prefix.clone()),
        end => end.map(put),
    };
    let high = match high {
        Bound::Unbounded if prefix.is_empty() => high,
        Bound::Unbounded => after(prefix.clone()),
        end => end.map(put),
    };
    (low, high)
}

/// The keys that a fact of equality leaves, if they are few: those that are equal to the constant
/// without being identical differ in numbers.
fn equals(cmp: Cmp, constant: TermRef<'_>, order: KeyOrder) -> Option<Vec<Term>> {
    match (cmp, order) {
        (Cmp::Same, _) | (Cmp::Eq, KeyOrder::Ordered) => Some(vec![Term::from(constant)]),
        (Cmp::Eq, KeyOrder::Hash) => match constant.view() {
            View::Int(n) if n.unsigned_abs() <= 1 << 53 && n != 0 => {
                let float = Term::float(n as f64).ok()?;
                Some(vec![Term::from(constant), float])
            }
            View::Atom(_) | View::Bin(_) | View::Bits { .. } | View::Nil | View::Pid(_) => {
                Some(vec![Term::from(constant)])
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

/// What the order key of a list has before each element.
fn push_cons(out: &mut Vec<u8>) {
    let (mut with, mut element) = (Vec::new(), Vec::new());
    order_key::list_prefix(&[raw::whole(NIL)], &mut with);
    order_key::encode(raw::whole(NIL), &mut element);
    out.extend_from_slice(&with[..with.len() - element.len()]);
}

/// The upper end of everything that begins with a prefix.
fn after(mut prefix: Vec<u8>) -> Edge {
    match order_key::successor(&mut prefix) {
        true => Bound::Excluded(prefix),
        false => Bound::Unbounded,
    }
}

/// The lower end of everything beyond such an end.
fn from_beyond(end: Edge) -> Edge {
    match end {
        Bound::Excluded(bytes) => Bound::Included(bytes),
        // No order key begins with 0xFF.
        _ => Bound::Included(vec![0xFF]),
    }
}

fn low_order(a: &Edge, b: &Edge) -> Ordering {
    fn place(edge: &Edge) -> (&[u8], u8) {
        match edge {
            Bound::Unbounded => (&[], 0),
            Bound::Included(bytes) => (bytes, 0),
            Bound::Excluded(bytes) => (bytes, 1),
        }
    }
    place(a).cmp(&place(b))
}

fn high_order(a: &Edge, b: &Edge) -> Ordering {
    match (a, b) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => Ordering::Greater,
        (_, Bound::Unbounded) => Ordering::Less,
        (Bound::Included(a), Bound::Included(b)) | (Bound::Excluded(a), Bound::Excluded(b)) => {
            a.cmp(b)
        }
        (Bound::Included(a), Bound::Excluded(b)) => a.cmp(b).then(Ordering::Greater),
        (Bound::Excluded(a), Bound::Included(b)) => a.cmp(b).then(Ordering::Less),
    }
}

/// The lower of two lower ends.
pub(crate) fn lower(a: Edge, b: Edge) -> Edge {
    if low_order(&a, &b).is_le() {
        a
    } else {
        b
    }
}

/// The higher of two upper ends.
pub(crate) fn higher(a: Edge, b: Edge) -> Edge {
    if high_order(&a, &b).is_ge() {
        a
    } else {
        b
    }
}

/// What two ranges have in common.
fn tighter(a: (Edge, Edge), b: (Edge, Edge)) -> (Edge, Edge) {
    let low = if low_order(&a.0, &b.0).is_ge() {
        a.0
    } else {
        b.0
    };
    let high = if high_order(&a.1, &b.1).is_le() {
        a.1
    } else {
        b.1
    };
    (low, high)
}

fn is_empty(low: &Edge, high: &Edge) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(a), Bound::Included(b)) => a > b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Excluded(b) | Bound::Included(b)) => {
            a >= b
        }
    }
}

//! Identity (`=:=`) and term order (`==`, `<`), without recursion.
//!
//! Two terms are compared in lockstep: one cursor in each, and a stack of what the open containers
//! still have in common. A difference ends the walk, so neither cursor ever has to skip a subterm.
//! Two maps of one size (over 1) and different bytes are compared by their order keys, which list
//! all keys before all values.
//!
//! A map of many pairs may have one of two forms: sorted (`MAP`), or in the order of the host's
//! tree (`TREE_MAP`). Two maps of one form are identical if their bytes are; of different forms, if
//! the sorted forms are.

use crate::{
    atom::Atom,
    encoder::{is_negative_zero, Encoder, Mode},
    node::Node,
    number,
    order_key::{self, LocalNode},
    skip::{end_of, head, Heads},
    tags::*,
    varint,
    view::{kind_at, Kind, PidRef, PortRef, RefRef, TermRef, View},
};
use smallvec::SmallVec;
use std::{
    cmp::Ordering,
    sync::{
        atomic::{AtomicBool, Ordering as Memory},
        OnceLock,
    },
};

static LEGACY_ZERO: AtomicBool = AtomicBool::new(false);

/// Says whether 0.0 and −0.0 are identical in this process, as the host has it (OTP before 27). At
/// first they are not.
pub fn set_legacy_zero(legacy: bool) {
    // Ordering: Relaxed; a switch that a door sets before it makes its first table.
    LEGACY_ZERO.store(legacy, Memory::Relaxed);
}

/// Whether 0.0 and −0.0 are identical in this process.
#[inline]
pub fn legacy_zero() -> bool {
    // Ordering: Relaxed; pairs with the store of `set_legacy_zero`, see there.
    LEGACY_ZERO.load(Memory::Relaxed)
}

impl TermRef<'_> {
    /// Whether both are the same term: Erlang's `=:=`.
    ///
    /// # Complexity
    /// One comparison of bytes; a walk only if they differ and something in them is kept outside,
    /// or is a map in the order of a tree (or legacy zeros are about).
    #[inline]
    pub fn identical(self, other: TermRef<'_>) -> bool {
        self.bytes() == other.bytes() || identical_apart(self.bytes(), other.bytes())
    }

    /// Whether both are equal: Erlang's `==`, by which 1 and 1.0 are.
    #[inline]
    pub fn eq_term(self, other: TermRef<'_>) -> bool {
        self.bytes() == other.bytes() || self.cmp_term(other).is_eq()
    }

    /// Erlang's order of terms, by which 1 and 1.0 tie.
    ///
    /// # Complexity
    /// Linear in what both have in common; for two maps with more than one pair, linear in the maps
    /// and O(n log n) in their keys.
    #[inline]
    pub fn cmp_term(self, other: TermRef<'_>) -> Ordering {
        if let (Some(a), Some(b)) = (self.as_int(), other.as_int()) {
            return a.cmp(&b);
        }
        compare(self.bytes(), other.bytes(), false)
    }

    /// The order of the keys of a map: as [`TermRef::cmp_term`], but every integer is less than
    /// every float, at any depth. Ties only what is identical; −0.0 is less than 0.0 unless they
    /// are identical.
    pub fn cmp_exact(self, other: TermRef<'_>) -> Ordering {
        compare(self.bytes(), other.bytes(), true)
    }
}

/// How the host orders two atoms as keys of one map, where it isn't by their texts.
pub type AtomOrder = fn(Atom, Atom) -> Ordering;

static ATOM_ORDER: OnceLock<AtomOrder> = OnceLock::new();
static TREE_MAPS: AtomicBool = AtomicBool::new(false);

/// Says how the host orders atoms that are keys of one map. To be called before any map is encoded;
/// a later call changes nothing. Until then, and by default, their texts are compared.
pub fn set_atom_order(order: AtomOrder) {
    let _the_first_counts = ATOM_ORDER.set(order);
}

/// The order of a map's keys in its encoding, which is the host's: as `cmp_exact`, except that the
/// host may have an order of its own for keys that are atoms.
pub fn key_order(a: TermRef<'_>, b: TermRef<'_>) -> Ordering {
    match (ATOM_ORDER.get(), a.as_atom(), b.as_atom()) {
        (Some(order), Some(a), Some(b)) => order(a, b),
        _ => a.cmp_exact(b),
    }
}

/// Says that maps are written in the order of the host's tree from now on.
pub fn set_tree_maps() {
    // Ordering: Relaxed; a switch that a door sets before it makes its first table.
    TREE_MAPS.store(true, Memory::Relaxed);
}

/// Whether a map may have two forms in this process, so that identical terms may differ in their
/// bytes.
#[inline]
pub fn tree_maps() -> bool {
    // Ordering: Relaxed; pairs with the store of `set_tree_maps`, see there.
    TREE_MAPS.load(Memory::Relaxed)
}

/// Whether a map in the order of the host's tree lies somewhere in a run of whole terms.
pub(crate) fn has_tree_map(run: &[u8]) -> bool {
    tree_maps() && run.len() >= SHORTEST_TREE && Heads::new(run).any(|(at, _)| run[at] == TREE_MAP)
}

/// No map in the order of the host's tree is shorter: it has 33 pairs at least.
const SHORTEST_TREE: usize = 2 * 33;

fn inline(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    Encoder::new(&mut out, Mode::Inline).term(TermRef::within(bytes));
    out
}

/// Whether two terms whose bytes differ are identical all the same.
fn identical_apart(a: &[u8], b: &[u8]) -> bool {
    let handles = |t: &[u8]| crate::blob::has_handles(t);
    if legacy_zero() && (has_negative_zero(a) || has_negative_zero(b)) {
        let plain = |bytes| without_negative_zero(TermRef::within(bytes));
        return plain(a) == plain(b);
    }
    (handles(a) || handles(b) || has_tree_map(a) || has_tree_map(b)) && in_step(a, b)
}

/// Whether a −0.0 lies somewhere in a term.
pub(crate) fn has_negative_zero(bytes: &[u8]) -> bool {
    bytes.len() >= 9
        && Heads::new(bytes)
            .any(|(at, end)| bytes[at] == FLOAT && is_negative_zero(&bytes[at..end]))
}

/// The inline bytes of a term with 0.0 for every −0.0.
///
/// The size of a float does not change, so only the order of a map's pairs may: the term is encoded
/// anew, head by head.
pub fn without_negative_zero(term: TermRef<'_>) -> Vec<u8> {
    let bytes = term.bytes();
    let plain = inline(bytes);
    let mut out = Vec::with_capacity(plain.len());
    let mut enc = Encoder::new(&mut out, Mode::Inline);
    // The open maps: their token, and how many terms were pending around them.
    let mut maps = Vec::new();
    let mut pending = 1u64;
    for (at, end) in Heads::new(&plain) {
        let children = head(&plain, at).1;
        pending = pending - 1 + children;
        match plain[at] {
            FLOAT if is_negative_zero(&plain[at..end]) => enc.float(0.0),
            MAP | TREE_MAP => maps.push((enc.begin_map(children as usize / 2), pending - children)),
            _ => enc.raw_head(&plain[at..end], children),
        }
        while maps.last().is_some_and(|&(_, around)| around == pending) {
            // Two keys that differ by the sign of a zero stay two: the host that takes them for one
            // never sends both.
            let _both_kept = maps.pop().map(|(token, _)| enc.end_map(token));
        }
    }
    out
}

/// Whether two terms of the same shape are identical when what is kept outside is taken for what it
/// is.
fn in_step(a: &[u8], b: &[u8]) -> bool {
    let (mut i, mut j, mut pending) = (0, 0, 1u64);
    while pending > 0 {
        if let (MAP, TREE_MAP) | (TREE_MAP, MAP) = (a[i], b[j]) {
            let (i_end, j_end) = (end_of(a, i), end_of(b, j));
            if inline(&a[i..i_end]) != inline(&b[j..j_end]) {
                return false;
            }
            (i, j, pending) = (i_end, j_end, pending - 1);
            continue;
        }
        let ((i_end, children), (j_end, _)) = (head(a, i), head(b, j));
        let (x, y) = (TermRef::within(&a[i..i_end]), TermRef::within(&b[j..j_end]));
        let same = x.bytes() == y.bytes()
            || match (a[i], b[j]) {
                (BIN | BLOB, BIN | BLOB) => x.as_binary() == y.as_binary(),
                (REF | REF_KEPT, REF | REF_KEPT) => compare_leaves(x, y, true).is_eq(),
                _ => false,
            };
        if !same {
            return false;
        }
        (i, j) = (i_end, j_end);
        pending = pending - 1 + children;
    }
    true
}

/// What an open pair of containers still has in common, and what is compared after that.
struct Open {
    left: u64,
    exact: bool,
    then: Then,
}

enum Then {
    Nothing,
    /// What is left of the first list, and of the second.
    Tails(Rest, Rest),
}

#[derive(Clone, Copy)]
enum Rest {
    Nil,
    Tail,
    Elements,
}

fn compare(a: &[u8], b: &[u8], exact: bool) -> Ordering {
    let (mut i, mut j) = (0, 0);
    let mut open: SmallVec<[Open; 8]> = SmallVec::new();
    let then = Then::Nothing;
    open.push(Open {
        left: 1,
        exact,
        then,
    });
    while let Some(top) = open.last_mut() {
        if top.left == 0 {
            let tails = match top.then {
                Then::Nothing => Ordering::Equal,
                Then::Tails(Rest::Nil, Rest::Nil) => Ordering::Equal,
                Then::Tails(Rest::Tail, Rest::Tail) => {
                    top.left = 1;
                    top.then = Then::Nothing;
                    continue;
                }
                // Different kinds: never equal, since a tail is no list.
                Then::Tails(x, y) => rest_rank(x, a, i).cmp(&rest_rank(y, b, j)),
            };
            if tails.is_ne() {
                return tails;
            }
            open.pop();
            continue;
        }
        top.left -= 1;
        let exact = top.exact;
        let (kind, other) = (kind_at(a, i), kind_at(b, j));
        if kind.rank() != other.rank() {
            return kind.rank().cmp(&other.rank());
        }
        let order = match kind {
            Kind::Tuple => open_tuples(a, b, &mut i, &mut j, exact, &mut open),
            Kind::List => open_lists(a, b, &mut i, &mut j, exact, &mut open),
            Kind::Map => open_maps(a, b, &mut i, &mut j, exact, &mut open),
            Kind::Fun => open_funs(a, b, &mut i, &mut j, exact, &mut open),
            _ => {
                let (i_end, j_end) = (head(a, i).0, head(b, j).0);
                let order = compare_leaves(
                    TermRef::within(&a[i..i_end]),
                    TermRef::within(&b[j..j_end]),
                    exact,
                );
                (i, j) = (i_end, j_end);
                order
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn rest_rank(rest: Rest, bytes: &[u8], at: usize) -> u8 {
    match rest {
        Rest::Nil => Kind::Nil.rank(),
        Rest::Elements => Kind::List.rank(),
        Rest::Tail => kind_at(bytes, at).rank(),
    }
}

type Opens = SmallVec<[Open; 8]>;

/// The count after the tag, with the cursor moved behind it.
fn count(bytes: &[u8], at: &mut usize) -> u64 {
    let (n, next) = varint::read(bytes, *at + 1);
    *at = next;
    n
}

fn open_tuples(
    a: &[u8],
    b: &[u8],
    i: &mut usize,
    j: &mut usize,
    exact: bool,
    open: &mut Opens,
) -> Ordering {
    let (n, m) = (count(a, i), count(b, j));
    let then = Then::Nothing;
    open.push(Open {
        left: n,
        exact,
        then,
    });
    n.cmp(&m)
}

fn open_lists(
    a: &[u8],
    b: &[u8],
    i: &mut usize,
    j: &mut usize,
    exact: bool,
    open: &mut Opens,
) -> Ordering {
    let end = |tag| if tag == LIST { Rest::Nil } else { Rest::Tail };
    let (a_end, b_end) = (end(a[*i]), end(b[*j]));
    let (n, m) = (count(a, i), count(b, j));
    let then = match n.cmp(&m) {
        Ordering::Less => Then::Tails(a_end, Rest::Elements),
        Ordering::Equal => Then::Tails(a_end, b_end),
        Ordering::Greater => Then::Tails(Rest::Elements, b_end),
    };
    let left = n.min(m);
    open.push(Open { left, exact, then });
    Ordering::Equal
}

fn open_maps(
    a: &[u8],
    b: &[u8],
    i: &mut usize,
    j: &mut usize,
    exact: bool,
    open: &mut Opens,
) -> Ordering {
    let (start_a, start_b) = (*i, *j);
    let (n, m) = (count(a, i), count(b, j));
    if n != m || n == 0 {
        return n.cmp(&m);
    }
    if n == 1 {
        open.extend([exact, true].map(|exact| Open {
            left: 1,
            exact,
            then: Then::Nothing,
        }));
        return Ordering::Equal;
    }
    (*i, *j) = (end_of(a, start_a), end_of(b, start_b));
    let (a, b) = (&a[start_a..*i], &b[start_b..*j]);
    if a == b {
        return Ordering::Equal;
    }
    let key = |bytes| {
        let mut out = Vec::new();
        order_key::encode_as(TermRef::within(bytes), exact, LocalNode::ByName, &mut out);
        out
    };
    key(a).cmp(&key(b))
}

fn open_funs(
    a: &[u8],
    b: &[u8],
    i: &mut usize,
    j: &mut usize,
    exact: bool,
    open: &mut Opens,
) -> Ordering {
    let ((i_end, n), (j_end, m)) = (head(a, *i), head(b, *j));
    let (x, y) = (
        TermRef::within(&a[*i..i_end]),
        TermRef::within(&b[*j..j_end]),
    );
    (*i, *j) = (i_end, j_end);
    let order = match (x.view(), y.view()) {
        (View::Fun(f), View::Fun(g)) => f
            .module
            .cmp(&g.module)
            .then_with(|| f.old_index.cmp_term(g.old_index))
            .then_with(|| f.old_uniq.cmp_term(g.old_uniq))
            .then_with(|| (f.index, f.uniq, f.arity).cmp(&(g.index, g.uniq, g.arity)))
            .then(n.cmp(&m)),
        (
            View::Export {
                module,
                function,
                arity,
            },
            View::Export {
                module: m,
                function: f,
                arity: n,
            },
        ) => module
            .cmp(&m)
            .then_with(|| function.cmp(&f))
            .then(arity.cmp(&n)),
        (View::Fun(_), _) => Ordering::Less,
        _ => Ordering::Greater,
    };
    let then = Then::Nothing;
    open.push(Open {
        left: n,
        exact,
        then,
    });
    order
}

/// Two terms of one rank that have no children.
fn compare_leaves(a: TermRef<'_>, b: TermRef<'_>, exact: bool) -> Ordering {
    match (a.view(), b.view()) {
        (View::Atom(x), View::Atom(y)) => x.cmp(&y),
        (View::Nil, View::Nil) => Ordering::Equal,
        (View::Pid(x), View::Pid(y)) => compare_pids(x, y),
        (View::Port(x), View::Port(y)) => compare_ports(x, y),
        (View::Ref(x), View::Ref(y)) => compare_refs(x, y),
        (x @ (View::Bin(_) | View::Bits { .. }), y) => compare_bits(bits(x), bits(y)),
        (x, y) => number::compare_views(x, y, exact),
    }
}

fn compare_nodes(x: Node, y: Node) -> Ordering {
    if x == y {
        return Ordering::Equal;
    }
    let (x, y) = (x.name(), y.name());
    x.name.cmp(&y.name).then(x.creation.cmp(&y.creation))
}

/// The numbers count before the node.
fn compare_pids(x: PidRef, y: PidRef) -> Ordering {
    (x.serial, x.id)
        .cmp(&(y.serial, y.id))
        .then_with(|| compare_nodes(x.node, y.node))
}

/// The node counts before the number.
fn compare_ports(x: PortRef, y: PortRef) -> Ordering {
    compare_nodes(x.node, y.node).then(x.id.cmp(&y.id))
}

/// The node counts first, then the last words.
fn compare_refs(x: RefRef<'_>, y: RefRef<'_>) -> Ordering {
    compare_nodes(x.node, y.node)
        .then(x.words().len().cmp(&y.words().len()))
        .then_with(|| x.words().rev().cmp(y.words().rev()))
}

/// The bytes and the number of bits of a bitstring.
fn bits(view: View<'_>) -> (&[u8], usize) {
    match view {
        View::Bin(bytes) => (bytes, bytes.len() * 8),
        View::Bits { bytes, bits } => (bytes, bits),
        _ => (&[], 0),
    }
}

/// Bit by bit; a bitstring comes before those that begin with it.
fn compare_bits((x, n): (&[u8], usize), (y, m): (&[u8], usize)) -> Ordering {
    let common = n.min(m);
    let (whole, rest) = (common / 8, common % 8);
    let last = |bytes: &[u8]| match rest {
        0 => 0,
        _ => bytes[whole] >> (8 - rest),
    };
    x[..whole]
        .cmp(&y[..whole])
        .then_with(|| last(x).cmp(&last(y)))
        .then(n.cmp(&m))
}

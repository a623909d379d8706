//! The order of terms (`==`, `<`), without recursion.
//!
//! ```text
//!  a   {x, [1, 2]}     TUPLE 2 │ x │ LIST 2 │ 1 │ 2       i ─▶
//!  b   {x, [1, 3]}     TUPLE 2 │ x │ LIST 2 │ 1 │ 3       j ─▶
//!  open                        (tuple, 2 left) (list, 2 left)
//! ```
//!
//! 1. If the kinds at both cursors have different ranks, these decide: number < atom < reference <
//!    fun < …
//! 2. Two leaves are compared, and both cursors move past them.
//! 3. Two tuples or two maps first compare their sizes. Then the children of two containers are
//!    compared one by one. The number of children that both have is pushed onto a stack.
//! 4. When all common children are equal, the rest decides. For two lists of different lengths, the
//!    end of one is compared with the rest of the other.
//!
//! Two terms are compared in lockstep, with a cursor in each, and a stack of the common children
//! that the open containers still have. The first difference ends the walk, so no cursor ever has
//! to skip a subterm. Two maps of the same size (of more than one pair) and different bytes are
//! compared by their order keys, which have all keys in front of all values.

use crate::{
    node::Node,
    number::order,
    order_key::{self, LocalNode},
    skip::{end_of, head},
    tags::*,
    varint,
    view::{kind_at, Kind, PidRef, PortRef, RefRef, TermRef, View},
};
use smallvec::SmallVec;
use std::cmp::Ordering;

impl TermRef<'_> {
    /// Whether both are equal: Erlang's `==`, by which 1 and 1.0 are equal.
    #[inline]
    pub fn eq_term(self, other: TermRef<'_>) -> bool {
        self.bytes() == other.bytes() || self.cmp_term(other).is_eq()
    }

    /// Compares both in Erlang's order of terms, in which 1 and 1.0 are equal.
    ///
    /// # Complexity
    /// Linear in the common beginning of both terms. For two maps of more than one pair, linear in
    /// the maps and O(n log n) in their keys.
    #[inline]
    pub fn cmp_term(self, other: TermRef<'_>) -> Ordering {
        if let (Some(a), Some(b)) = (self.as_int(), other.as_int()) {
            return a.cmp(&b);
        }
        compare(self.bytes(), other.bytes(), false, false)
    }

    /// Compares both in the order of keys of a map: as [`TermRef::cmp_term`], but all integers
    /// precede all floats, at any depth. Only identical terms are equal. −0.0 precedes 0.0 unless
    /// they are identical.
    pub fn cmp_exact(self, other: TermRef<'_>) -> Ordering {
        compare(self.bytes(), other.bytes(), true, false)
    }

    /// As [`TermRef::cmp_exact`], but compares small maps by their pairs as they lie: all keys, and
    /// then all values. Both terms have the keys of these maps in the same order.
    pub(crate) fn cmp_stored(self, other: TermRef<'_>) -> Ordering {
        compare(self.bytes(), other.bytes(), true, true)
    }
}

/// A pair of open containers: the number of common children that are still to be compared, and what
/// is compared after them.
struct OpenPair {
    left: u64,
    exact: bool,
    then: NextStep,
}

enum NextStep {
    Nothing,
    /// The rest of the first list, and of the second.
    Tails(Rest, Rest),
}

#[derive(Clone, Copy)]
enum Rest {
    Nil,
    Tail,
    Elements,
}

fn compare(a: &[u8], b: &[u8], exact: bool, as_stored: bool) -> Ordering {
    let (mut i, mut j) = (0, 0);
    let mut open: SmallVec<[OpenPair; 8]> = SmallVec::new();
    // The outermost terms are the only children of a container that has no head.
    let then = NextStep::Nothing;
    open.push(OpenPair {
        left: 1,
        exact,
        then,
    });
    while let Some(top) = open.last_mut() {
        if top.left == 0 {
            // 4. The common children are equal. What follows them decides.
            let tails = match top.then {
                NextStep::Nothing => Ordering::Equal,
                NextStep::Tails(Rest::Nil, Rest::Nil) => Ordering::Equal,
                // Both have a tail. Compare the tails like one more child.
                NextStep::Tails(Rest::Tail, Rest::Tail) => {
                    top.left = 1;
                    top.then = NextStep::Nothing;
                    continue;
                }
                // The rests are of different kinds, and never equal, since a tail isn't a list.
                NextStep::Tails(x, y) => rest_rank(x, a, i).cmp(&rest_rank(y, b, j)),
            };
            if tails.is_ne() {
                return tails;
            }
            open.pop();
            continue;
        }
        top.left -= 1;
        let exact = top.exact;
        // 1. Kinds.
        let (kind, other) = (kind_at(a, i), kind_at(b, j));
        if kind.rank() != other.rank() {
            return kind.rank().cmp(&other.rank());
        }
        // 2, 3. Leaves and containers.
        let order = match kind {
            Kind::Tuple => open_tuples(a, b, &mut i, &mut j, exact, &mut open),
            Kind::List => open_lists(a, b, &mut i, &mut j, exact, &mut open),
            Kind::Map => open_maps(a, b, &mut i, &mut j, [exact, as_stored], &mut open),
            Kind::Fun => open_funs(a, b, &mut i, &mut j, exact, &mut open),
            _ => {
                // Leaves of the same rank may be encoded in different lengths. So each cursor moves
                // by its own head.
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

type OpenPairs = SmallVec<[OpenPair; 8]>;

/// Reads the count after the tag, and moves the cursor past it.
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
    open: &mut OpenPairs,
) -> Ordering {
    let (n, m) = (count(a, i), count(b, j));
    // The children are on the stack even if the sizes differ. That is harmless: the caller returns
    // at the first inequality.
    let then = NextStep::Nothing;
    open.push(OpenPair {
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
    open: &mut OpenPairs,
) -> Ordering {
    // A list's bytes don't contain its end: the tag tells a proper list from one with a tail.
    let end = |tag| if tag == LIST { Rest::Nil } else { Rest::Tail };
    let (a_end, b_end) = (end(a[*i]), end(b[*j]));
    let (n, m) = (count(a, i), count(b, j));
    // The longer list continues with elements where the shorter one has its end.
    let then = match n.cmp(&m) {
        Ordering::Less => NextStep::Tails(a_end, Rest::Elements),
        Ordering::Equal => NextStep::Tails(a_end, b_end),
        Ordering::Greater => NextStep::Tails(Rest::Elements, b_end),
    };
    // Only the common elements are compared one by one.
    let left = n.min(m);
    open.push(OpenPair { left, exact, then });
    Ordering::Equal
}

fn open_maps(
    a: &[u8],
    b: &[u8],
    i: &mut usize,
    j: &mut usize,
    [exact, as_stored]: [bool; 2],
    open: &mut OpenPairs,
) -> Ordering {
    // Remember both heads. The comparison by order keys needs the whole maps.
    let (start_a, start_b) = (*i, *j);
    let (n, m) = (count(a, i), count(b, j));
    if n != m || n == 0 {
        return n.cmp(&m);
    }
    if n == 1 {
        // Compare the keys with `exact`, and then the values as the maps are compared. The last
        // pair that is pushed is compared first.
        open.extend([exact, true].map(|exact| OpenPair {
            left: 1,
            exact,
            then: NextStep::Nothing,
        }));
        return Ordering::Equal;
    }
    // Several pairs: all keys are compared before all values. The order keys have them in this
    // order.
    (*i, *j) = (end_of(a, start_a), end_of(b, start_b));
    let (a, b) = (&a[start_a..*i], &b[start_b..*j]);
    if a == b {
        return Ordering::Equal;
    }
    // With `ByName`, identifiers of all nodes compare by the names of the nodes, as in the rest of
    // this file.
    let key = |bytes| {
        let mut out = Vec::new();
        let (map, local) = (TermRef::within(bytes), LocalNode::ByName);
        match as_stored {
            true => order_key::encode_stored(map, local, &mut out),
            false => order_key::encode_as(map, exact, local, &mut out),
        }
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
    open: &mut OpenPairs,
) -> Ordering {
    let ((i_end, n), (j_end, m)) = (head(a, *i), head(b, *j));
    let (x, y) = (
        TermRef::within(&a[*i..i_end]),
        TermRef::within(&b[*j..j_end]),
    );
    // The cursors are past the heads: the free variables follow there as children.
    (*i, *j) = (i_end, j_end);
    // The emulator compares module, old index and old uniq. The fields after them tell versions of
    // a module apart.
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
        // A local fun precedes an exported one.
        (View::Fun(_), _) => Ordering::Less,
        _ => Ordering::Greater,
    };
    let then = NextStep::Nothing;
    open.push(OpenPair {
        // `n` is the common number of free variables. If the numbers differ, so does the order.
        left: n,
        exact,
        then,
    });
    order
}

/// Compares two terms of the same rank that have no children.
pub(crate) fn compare_leaves(a: TermRef<'_>, b: TermRef<'_>, exact: bool) -> Ordering {
    // The ranks are equal, so both are of one kind, except for numbers and bitstrings.
    match (a.view(), b.view()) {
        (View::Atom(x), View::Atom(y)) => x.cmp(&y),
        (View::Nil, View::Nil) => Ordering::Equal,
        (View::Pid(x), View::Pid(y)) => compare_pids(x, y),
        (View::Port(x), View::Port(y)) => compare_ports(x, y),
        (View::Ref(x), View::Ref(y)) => compare_refs(x, y),
        (x @ (View::Bin(_) | View::Bits { .. }), y) => Bits::of(x).cmp(Bits::of(y)),
        (x, y) => order::compare_views(x, y, exact),
    }
}

fn compare_nodes(x: Node, y: Node) -> Ordering {
    // Usually both are of this node. Then no name is looked up.
    if x == y {
        return Ordering::Equal;
    }
    let (x, y) = (x.name(), y.name());
    x.name.cmp(&y.name).then(x.creation.cmp(&y.creation))
}

/// The numbers are compared before the nodes.
fn compare_pids(x: PidRef, y: PidRef) -> Ordering {
    (x.serial, x.id)
        .cmp(&(y.serial, y.id))
        .then_with(|| compare_nodes(x.node, y.node))
}

/// The nodes are compared before the numbers.
fn compare_ports(x: PortRef, y: PortRef) -> Ordering {
    compare_nodes(x.node, y.node).then(x.id.cmp(&y.id))
}

/// The nodes are compared first, then the lengths, then the words from the last one on.
fn compare_refs(x: RefRef<'_>, y: RefRef<'_>) -> Ordering {
    compare_nodes(x.node, y.node)
        .then(x.words().len().cmp(&y.words().len()))
        .then_with(|| x.words().rev().cmp(y.words().rev()))
}

/// A bitstring: the first `len` bits of `bytes`.
#[derive(Clone, Copy)]
struct Bits<'b> {
    bytes: &'b [u8],
    len: usize,
}

impl<'b> Bits<'b> {
    fn of(view: View<'b>) -> Self {
        let (bytes, len): (&[u8], usize) = match view {
            View::Bin(bytes) => (bytes, bytes.len() * 8),
            View::Bits { bytes, bits } => (bytes, bits),
            _ => (&[], 0),
        };
        Bits { bytes, len }
    }

    /// Compares bit by bit. A bitstring precedes those that begin with it.
    fn cmp(self, other: Self) -> Ordering {
        let common = self.len.min(other.len);
        // Only the bits that both have are compared. Whole bytes come first.
        let (whole, rest) = (common / 8, common % 8);
        let last = |bytes: &[u8]| match rest {
            0 => 0,
            _ => bytes[whole] >> (8 - rest),
        };
        self.bytes[..whole]
            .cmp(&other.bytes[..whole])
            .then_with(|| last(self.bytes).cmp(&last(other.bytes)))
            .then(self.len.cmp(&other.len))
    }
}

//! Order keys of most terms, written in one walk.
//!
//! The parts of such an order key are in the order of the encoding, and nothing follows the last
//! element of a tuple:
//!
//! ```text
//!  {user, <<"ab">>, 7}    TUPLE 3  ATOM u s e r    BIN 2 a b           7
//!                         F6 3     F0 u s e r 00   FA a b 00 08        8E
//!  {x, [1, 2]}            TUPLE 2  ATOM x   LIST 2    1      2
//!                         F6 2     F0 x 00            F9 82  F9 84  F8
//! ```
//!
//! Only lists have markers between their elements and at their end. So the walk keeps a stack of
//! open containers only from the outermost list on.
//!
//! The keys of a map have to be sorted, and precede the values. So a small map is written by a walk
//! over its keys, to a buffer, and a second one over its values. [`encode_general`] knows all
//! terms.
//!
//! [`encode_general`]: super::encode_general()

use super::{
    bits, numbers, parts, push_count, push_leaf,
    sink::{OutputByte, Sink, SliceSink},
    sort_runs, LocalNode, CONS, MAP_KEY,
};
use crate::{
    atom::Atom,
    skip::{head, skip},
    tags::*,
    varint,
    view::{little_endian, TermRef},
};

/// The greatest number of open containers, counted from the outermost list on.
const DEPTH: usize = 8;
/// The greatest number of maps within each other.
const MAPS: usize = 4;
/// The greatest number of pairs of a map.
const PAIRS: usize = 16;
/// The greatest length of the keys of a map, together, in their order keys.
const KEYS: usize = 256;

/// Writes the order key of a term to the beginning of `out`: the same bytes that
/// [`encode`](super::encode()) appends. Returns their number, and whether
/// [`comes_back`](super::comes_back()) holds for the term. `None` if the term has a large map, or
/// deeply nested lists or maps, or if `out` is too short. Some of `out` may have been written then.
///
/// # Complexity
/// Linear in the term. Recursion only into maps, at most four levels deep.
pub fn encode_flat<P: OutputByte>(term: TermRef<'_>, out: &mut [P]) -> Option<(usize, bool)> {
    let mut sink = SliceSink::new(out);
    let comes_back = push_flat(term.bytes(), false, MAPS, &mut sink)?;
    Some((sink.finish()?, comes_back))
}

/// Writes a term that has at most `maps` maps within each other. If `exact` is set, integers
/// precede floats. Returns whether the term comes back.
fn push_flat<P: OutputByte>(
    bytes: &[u8],
    exact: bool,
    maps: usize,
    out: &mut SliceSink<'_, P>,
) -> Option<bool> {
    let mut open = OpenLists::default();
    let (mut at, mut comes_back) = (0, true);
    while at < bytes.len() {
        // Write one head in each iteration. Small integers come first: they are the most common
        // terms, and have no bytes after their tags.
        let tag = bytes[at];
        at = match tag {
            SMALL.. => {
                numbers::push_int(i64::from(tag - SMALL), out);
                at + 1
            }
            INT1..=INT8 => {
                let end = at + 2 + usize::from(tag - INT1);
                numbers::push_int(little_endian(&bytes[at + 1..end]), out);
                end
            }
            ATOM1..=ATOM4 => {
                comes_back = false;
                let end = at + 2 + usize::from(tag - ATOM1);
                push_atom(&bytes[at + 1..end], out);
                end
            }
            TUPLE => {
                let (arity, next) = varint::read(bytes, at + 1);
                parts::push_tuple(arity, out);
                // A tuple outside all lists needs no entry on the stack: nothing follows its
                // elements.
                open.tuple(arity)?;
                next
            }
            LIST | ILIST => {
                comes_back = false;
                let (count, next) = varint::read(bytes, at + 1);
                let ends = if tag == LIST {
                    Ends::List
                } else {
                    Ends::Improper
                };
                // Texts are lists of small integers. Write a run of them at the beginning without
                // updating the stack for each.
                let short = short_ints(&bytes[next..], count, out);
                // The stack is shallow. Deeper lists are left to the general encoder.
                open.push(count - short as u64, ends)?;
                next + short
            }
            PID => push_pid(bytes, at + 1, out),
            MAP | TREE_MAP => {
                comes_back = false;
                let end = at + skip(&bytes[at..]);
                push_map(&bytes[at..end], exact, maps.checked_sub(1)?, out)?;
                end
            }
            _ => {
                let (end, children) = head(bytes, at);
                let leaf = TermRef::within(&bytes[at..end]);
                // Other leaves, and funs, whose free variables are children as those of a tuple
                // are.
                comes_back &= super::comes_back(leaf);
                push_leaf(leaf, exact, LocalNode::First, out);
                open.tuple(children)?;
                end
            }
        };
        // The term may have been the last child of open containers.
        open.end(out);
    }
    Some(comes_back)
}

/// Writes an atom with an id of these bytes.
#[inline]
fn push_atom<P: OutputByte>(id: &[u8], out: &mut SliceSink<'_, P>) {
    let id = id.iter().rev();
    let id = id.fold(0, |id, &byte| id << 8 | u32::from(byte));
    parts::push_atom(Atom::trusted(id), out);
}

/// Writes a pid of this node, whose numbers begin at `at`. Returns where they end.
#[inline]
fn push_pid<P: OutputByte>(bytes: &[u8], at: usize, out: &mut SliceSink<'_, P>) -> usize {
    let (id, next) = varint::read(bytes, at);
    let (serial, next) = varint::read(bytes, next);
    parts::push_pid(id, serial, out);
    next
}

/// Writes a map: its keys in order, and then the values in the order of the keys.
#[inline(never)]
fn push_map<P: OutputByte>(
    bytes: &[u8],
    exact: bool,
    maps: usize,
    out: &mut SliceSink<'_, P>,
) -> Option<()> {
    let (end, children) = head(bytes, 0);
    let pairs = usize::try_from(children / 2).ok().filter(|&n| n <= PAIRS)?;
    out.byte(MAP_KEY);
    push_count(pairs as u64, out);
    // 1. Write the keys aside, and note where each of them ends and where its value begins.
    let mut aside = [0; KEYS];
    let mut keys = SliceSink::new(&mut aside[..]);
    let (mut ends, mut values) = ([0; PAIRS + 1], [0; PAIRS]);
    let mut at = end;
    for i in 0..pairs {
        let value = at + skip(&bytes[at..]);
        push_flat(&bytes[at..value], true, maps, &mut keys)?;
        (ends[i + 1], values[i]) = (keys.len(), value);
        at = value + skip(&bytes[value..]);
    }
    let len = keys.finish()?;
    // 2. Write them in the order of their bytes, which is term order.
    let mut order: [usize; PAIRS] = std::array::from_fn(|i| i);
    let order = &mut order[..pairs];
    if sort_runs(&aside[..len], &ends, order) {
        let key = |i: usize| &aside[ends[i]..ends[i + 1]];
        order.iter().for_each(|&i| out.slice(key(i)));
    } else {
        out.slice(&aside[..len]);
    }
    // 3. Write the values.
    for &mut i in order {
        let value = &bytes[values[i]..];
        push_flat(&value[..skip(value)], exact, maps, out)?;
    }
    Some(())
}

/// As [`encode_flat`], for a binary of these bytes. It can always be decoded from its order key.
pub fn encode_binary<P: OutputByte>(bytes: &[u8], out: &mut [P]) -> Option<usize> {
    let mut sink = SliceSink::new(out);
    bits::push(bytes, 8 * bytes.len(), &mut sink);
    sink.finish()
}

/// Writes the first elements of a list, up to one that isn't an integer of one byte. Returns their
/// number.
#[inline]
fn short_ints(elements: &[u8], count: u64, out: &mut impl Sink) -> usize {
    let count = elements.len().min(count as usize);
    let short = elements[..count].iter().take_while(|&&tag| tag >= SMALL);
    short
        .map(|tag| numbers::push_small(CONS, tag - SMALL, out))
        .count()
}

/// What follows the last of some terms.
#[derive(Clone, Copy, Default)]
enum Ends {
    /// Nothing. The terms are the elements of a tuple, or the free variables of a fun.
    #[default]
    Tuple,
    /// The terminator of a list. Each element has a marker in front of it.
    List,
    /// The tail, which has no marker in front of it.
    Improper,
}

/// The open containers from the outermost list on: the number of terms that they still lack. The
/// innermost is the last.
#[derive(Default)]
struct OpenLists {
    all: [(u64, Ends); DEPTH],
    depth: usize,
}

impl OpenLists {
    /// Opens a container of this number of terms. `None` if too many are open.
    #[inline]
    fn push(&mut self, left: u64, ends: Ends) -> Option<()> {
        *self.all.get_mut(self.depth)? = (left, ends);
        self.depth += 1;
        Some(())
    }

    /// Opens a container that has no markers between its terms and after them.
    #[inline]
    fn tuple(&mut self, arity: u64) -> Option<()> {
        match self.depth {
            // Outside of lists nothing follows the last element of a tuple. So the tuple need not
            // be on the stack.
            0 => Some(()),
            _ => self.push(arity, Ends::Tuple),
        }
    }

    /// Called when a term or the head of a container has been written. Writes the markers in front
    /// of the next term.
    #[inline]
    fn end(&mut self, out: &mut impl Sink) {
        // Several containers may end with the same term, the innermost first.
        while let Some(depth) = self.depth.checked_sub(1) {
            let (left, ends) = &mut self.all[depth];
            match (*left, *ends) {
                // The last element of an improper list is written. The tail comes next, without a
                // marker.
                (0, Ends::Improper) => {
                    *ends = Ends::Tuple;
                    return;
                }
                // All children are written: close the container, and look at the one around it.
                (0, ends) => {
                    if let Ends::List = ends {
                        parts::push_nil(out);
                    }
                    self.depth = depth;
                }
                // One more child follows. In a list, it has a marker in front of it.
                (_, ends) => {
                    *left -= 1;
                    if !matches!(ends, Ends::Tuple) {
                        out.byte(CONS);
                    }
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{order_key, term, Node, Term, View};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// What `encode_flat` makes of a term in so many bytes.
    fn flat(term: &Term, capacity: usize) -> Option<(Vec<u8>, bool)> {
        let mut out = vec![0xEE; capacity];
        let (len, comes_back) = encode_flat(term.as_ref(), &mut out)?;
        out.truncate(len);
        Some((out, comes_back))
    }

    fn plain(term: &Term) -> (Vec<u8>, bool) {
        let mut key = Vec::new();
        order_key::encode_general(term.as_ref(), &mut key);
        (key, order_key::comes_back(term.as_ref()))
    }

    fn terms() -> impl Strategy<Value = Term> {
        let byte = prop_oneof![Just(0u8), Just(1), any::<u8>()];
        let leaf = prop_oneof![
            (any::<i64>(), 0..64u32).prop_map(|(n, shift)| Term::from((n >> shift).max(-i64::MAX))),
            (0..130i64).prop_map(Term::from),
            "[a-c\u{0}\u{1}é]{0,9}".prop_map(|text| Term::from(Atom::new(&text))),
            vec(byte.clone(), 0..40).prop_map(|bytes| Term::binary(&bytes)),
            (vec(byte, 200..400), 0..8usize)
                .prop_map(|(bytes, less)| Term::bits(&bytes, 8 * bytes.len() - less)),
            Just(term!([])),
            (any::<i128>(), 0..300u32)
                .prop_map(|(n, by)| Term::bigint(&(num_bigint::BigInt::from(n) << by))),
            (-9i32..9).prop_map(|n| Term::float(f64::from(n) / 4.0).unwrap()),
            (0u32..1000, 0u32..3).prop_map(|(id, serial)| Term::pid(Node::Local, id, serial)),
            vec(any::<u32>(), 3..6).prop_map(|words| Term::reference(Node::Local, &words)),
            (0u8..3).prop_map(|arity| Term::export(Atom::new("m"), Atom::new("f"), arity)),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let pairs = vec((inner.clone(), inner.clone()), 0..6);
            prop_oneof![
                pairs.prop_filter_map("equal keys", |pairs| Term::map(pairs).ok()),
                vec(inner.clone(), 0..6).prop_map(Term::tuple),
                vec(inner.clone(), 0..6).prop_map(Term::list),
                vec(inner.clone(), 0..3).prop_map(fun),
                (vec(inner.clone(), 1..4), inner)
                    .prop_map(|(all, tail)| Term::improper(&all, tail.as_ref())),
            ]
        })
    }

    fn map(pairs: impl IntoIterator<Item = (Term, Term), IntoIter: ExactSizeIterator>) -> Term {
        Term::map(pairs).expect("keys differ")
    }

    fn fun(free: Vec<Term>) -> Term {
        Term::build(|enc| {
            enc.begin_fun(Atom::new("m"), 1, &[7; 16], 3, -4, 1 << 40, free.len());
            free.iter().for_each(|t| enc.term(t.as_ref()));
        })
        .unwrap()
    }

    proptest! {
        #[test]
        fn it_is_the_order_key_of_all_terms(term in terms(), less in 1..20usize) {
            let whole = plain(&term);
            let ample = 2 * whole.0.len() + 9;
            match flat(&term, ample) {
                Some(key) => prop_assert_eq!(key, whole.clone()),
                None => prop_assert!(depth(term.as_ref()) > DEPTH || has_large_map(term.as_ref())),
            }
            let mut key = vec![7];
            order_key::encode(term.as_ref(), &mut key);
            prop_assert_eq!(&key[1..], &whole.0[..]);
            // Where the key does not fit there is none, or all of it.
            let short = flat(&term, ample.saturating_sub(less));
            prop_assert!(short.is_none_or(|key| key == whole));
            prop_assert_eq!(flat(&term, whole.0.len() - 1), None);
        }
    }

    /// How many containers are around one another at the most.
    fn depth(term: TermRef<'_>) -> usize {
        let below =
            |all: &mut dyn Iterator<Item = TermRef<'_>>| 1 + all.map(depth).max().unwrap_or(0);
        match term.view() {
            View::Tuple(all) => below(&mut all.iter()),
            View::List(all) => below(&mut all.iter().chain([all.tail()])),
            View::Fun(fun) => below(&mut fun.free()),
            View::Map(all) => below(&mut all.iter().flat_map(|(key, value)| [key, value])),
            _ => 0,
        }
    }

    /// Whether there may be a map that is too large, or too deep.
    fn has_large_map(term: TermRef<'_>) -> bool {
        plain(&Term::from(term)).0.len() > KEYS || depth(term) >= MAPS
    }

    #[test]
    fn lists_within_lists() {
        let nested =
            |depth: usize| (0..depth).fold(term!(7), |inner, _| Term::list([inner, term!(8)]));
        for depth in 0..=DEPTH {
            assert_eq!(
                flat(&nested(depth), 1000),
                Some(plain(&nested(depth))),
                "{depth}"
            );
        }
        assert_eq!(flat(&nested(DEPTH + 1), 1000), None);
    }

    #[test]
    fn binaries_alone() {
        for len in [0, 1, 64, 512, 4095, 4096, 4097, 9000] {
            let bytes = vec![0; len];
            let (key, _) = plain(&Term::binary(&bytes));
            let mut out = vec![0xEE; key.len()];
            assert_eq!(encode_binary(&bytes, &mut out), Some(key.len()));
            assert_eq!(out, key);
            assert_eq!(encode_binary(&bytes, &mut out[1..]), None);
        }
    }

    #[test]
    fn small_maps_in_any_order_of_their_keys() {
        let of = |n: i32, key: fn(i32) -> Term| map((0..n).map(|i| (key(i), term!(i))));
        let keys: [fn(i32) -> Term; 4] = [
            |i| Term::from(5 - i),
            |i| Term::float(2.0 - f64::from(i)).unwrap(),
            |i| Term::binary(&[7 - i as u8; 3]),
            |i| map([(Term::from(-i), term!(1))]),
        ];
        for key in keys {
            for n in 0..8 {
                let map = of(n, key);
                assert_eq!(flat(&map, 1000), Some(plain(&map)), "{map:?}");
            }
        }
        // Integers and floats are apart in keys, and not in values.
        for (key, value) in [(term!(1), term!(1)), (term!(1.0), term!(1.0))] {
            let map = map([(key, value), (term!(2.0), term!(2.5)), (term!(2), term!(2))]);
            assert_eq!(flat(&map, 1000), Some(plain(&map)), "{map:?}");
        }
    }

    #[test]
    fn large_maps_are_left_to_others() {
        let wide = |n: usize| map((0..n).map(|i| (Term::from(i as i64), term!(a))));
        let long = |n: usize| map([(Term::binary(&vec![7; n]), term!(a))]);
        let deep = |n: usize| (0..n).fold(term!(7), |inner, _| map([(inner, term!(8))]));
        for (term, is_large) in [
            (wide(PAIRS), false),
            (wide(PAIRS + 1), true),
            (long(KEYS - 3), false),
            (long(KEYS), true),
            (deep(MAPS), false),
            (deep(MAPS + 1), true),
        ] {
            let whole = Some(plain(&term)).filter(|_| !is_large);
            assert_eq!(flat(&term, 1000), whole, "{term:?}");
        }
    }
}

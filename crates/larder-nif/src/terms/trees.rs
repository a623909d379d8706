//! Maps: whether the order of their pairs is known, and the trees of large ones.
//!
//! A small map has its keys in order (see [`larder_term::key_order`]). A large map is a tree that
//! is ordered by the hashes of the keys. A node has a bit for each of 16 possible children. A child
//! is another node or a pair.
//!
//! The encoding of a large map has its pairs from left to right, and its *tree layout*
//! (`tree_layout`) in front of them: two numbers of 16 bits for each node, depth first from the
//! left. The first says which children exist, and the second which of these are nodes. So the tree
//! is restored as it was, without computing hashes.
//!
//! ```text
//!  root  header | size | • | • | …
//!                        │   ╰▶ node  header | • | •
//!                        ╰▶ [k1 | v1]          │   ╰▶ [k3 | v3]
//!                                              ╰▶ [k2 | v2]
//!
//!  TREE_MAP 35 │ 4 │ 0b0011 0b0010  0b1001 0 │ k1 v1  k2 v2  k3 v3
//!                    root           node
//! ```

use super::atoms;
use crate::heap::Heap;
use crate::layout::{self, pointer, Kind, NIL};
use crate::sys::*;
use smallvec::SmallVec;
use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether the pairs of maps may be stored in the emulator's order.
static ORDER_KNOWN: AtomicBool = AtomicBool::new(false);

/// The headers of a root with all 16 children, of any other root, and of a node. The latter two are
/// without the bits that say which children exist.
static FULL_ROOT: AtomicUsize = AtomicUsize::new(0);
static ROOT: AtomicUsize = AtomicUsize::new(0);
static NODE: AtomicUsize = AtomicUsize::new(0);

/// The position of the bits of a header that say which children exist.
pub const PRESENT: u32 = 16;
pub const ALL: Word = 0xFFFF;
/// The number of levels of nodes. A tree is deeper only if many hashes of 32 bits are equal.
const LEVELS: u32 = 32;

/// Whether the order of keys in small maps is known.
#[inline]
pub fn is_order_known() -> bool {
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    ORDER_KNOWN.load(Ordering::Relaxed)
}

pub fn headers() -> [Word; 3] {
    // Ordering: Relaxed, as in `is_order_known`.
    [&FULL_ROOT, &ROOT, &NODE].map(|header| header.load(Ordering::Relaxed))
}

/// A large map, read.
#[derive(Default)]
pub struct Tree {
    /// The tree layout (see the module's head).
    pub tree_layout: SmallVec<[u8; 256]>,
    /// The cells of the pairs.
    pub pairs: SmallVec<[Word; 64]>,
}

/// Reads a large map into `tree`, which is empty. `None` if the layout isn't known, or wouldn't be
/// right for ever.
pub fn read(word: Word, tree: &mut Tree) -> Option<()> {
    let headers = headers();
    if headers[0] == 0 {
        return None;
    }
    // SAFETY: a map points at its header.
    let header = unsafe { *pointer(word) };
    if header != headers[0] && header & !(ALL << PRESENT) != headers[1] {
        return None;
    }
    // It is a root. The header says which children exist.
    // SAFETY: the size follows the header of a root.
    let size = unsafe { *pointer(word).add(1) };
    tree.pairs.resize(size, NIL);
    let mut reader = TreeReader {
        node_header: headers[2],
        tree_layout: &mut tree.tree_layout,
        free: &mut tree.pairs,
    };
    reader.node(pointer(word), 2, LEVELS)?;
    if !reader.free.is_empty() {
        return None;
    }
    let is_lasting = |key| layout::is_immediate(key) || has_lasting_hash(key, KEY_LEVELS);
    let mut pairs = tree.pairs.iter();
    pairs
        .all(|&pair| layout::cell(pair).is_some_and(|(key, _)| is_lasting(key)))
        .then_some(())
}

/// The most levels of a key that are looked at.
const KEY_LEVELS: u32 = 8;

/// Whether a key is certain to have the same hash as long as the emulator runs. The hash of an
/// identifier of another node has the address of what the emulator knows of that node. It forgets
/// that when no term of its own refers to the node, and those in tables don't count.
#[inline(never)]
fn has_lasting_hash(word: Word, levels: u32) -> bool {
    if layout::is_immediate(word) {
        return true;
    }
    let Some(levels) = levels.checked_sub(1) else {
        return false;
    };
    let all = |words: &[Word]| words.iter().all(|&word| has_lasting_hash(word, levels));
    if layout::is_cell(word) {
        let mut rest = word;
        while let Some((head, tail)) = layout::cell(rest) {
            if !has_lasting_hash(head, levels) {
                return false;
            }
            rest = tail;
        }
        return has_lasting_hash(rest, levels);
    }
    match layout::kind(word) {
        Kind::Tuple => layout::tuple(word).is_some_and(all),
        Kind::Map => layout::flatmap(word).is_some_and(|(keys, values)| all(keys) && all(values)),
        Kind::ForeignPid | Kind::ForeignPort | Kind::ForeignReference => false,
        // The free variables of a fun may be anything, and so may what is of no known kind.
        Kind::Fun | Kind::Other => false,
        _ => true,
    }
}

/// The reader of a large map.
struct TreeReader<'t> {
    /// The header of a node, without the bits that say which children exist.
    node_header: Word,
    tree_layout: &'t mut SmallVec<[u8; 256]>,
    /// The places of the pairs that are still to be read.
    free: &'t mut [Word],
}

impl TreeReader<'_> {
    /// Adds the node at `at`. Its children begin `first` words after that.
    fn node(&mut self, at: *const Word, first: usize, levels: u32) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        // SAFETY: a node of a map of the running call: its header, and as many children as that has
        // bits, as `prove_trees` has verified.
        let (present, children) = unsafe {
            let present = *at >> PRESENT & ALL;
            let count = present.count_ones() as usize;
            (present, std::slice::from_raw_parts(at.add(first), count))
        };
        // `present` has one bit for each child, the lowest first. Of these, `nodes` has those that
        // are nodes.
        let (mut left, mut nodes) = (present, 0);
        for &child in children {
            let bit = left & left.wrapping_neg();
            left ^= bit;
            nodes |= if layout::is_cell(child) { 0 } else { bit };
        }
        let numbers = (present | nodes << 16) as u32;
        self.tree_layout.extend_from_slice(&numbers.to_le_bytes());
        for &child in children {
            if layout::is_cell(child) {
                let (place, free) = std::mem::take(&mut self.free).split_first_mut()?;
                (*place, self.free) = (child, free);
                continue;
            }
            // SAFETY: what is no cell points at a header.
            let is_node = layout::is_boxed(child)
                && unsafe { *pointer(child) } & !(ALL << PRESENT) == self.node_header;
            if !is_node {
                return None;
            }
            self.node(pointer(child), 1, levels)?;
        }
        Some(())
    }
}

/// Verifies the layout of maps on some that the emulator makes. `heap` is that of the load
/// callback.
pub fn prove(heap: &Heap, comes_back: &dyn Fn(Word) -> bool) {
    if layout::flatmap_header().is_none() || !layout::is_wanted("map") {
        return;
    }
    // Older releases order atoms in small maps by their texts, newer ones by their numbers. Larder
    // has to agree.
    let orders = atom_order(heap).zip(maps_as_stored(heap));
    if let Some((atoms_by, as_stored)) = orders {
        if atoms_by.is_gt() {
            larder_term::set_atom_order(|a, b| atoms::index(a).cmp(&atoms::index(b)));
        }
        if as_stored {
            larder_term::set_maps_as_stored();
        }
    }
    let known = orders.is_some();
    // Ordering: Relaxed, as in `is_order_known`.
    ORDER_KNOWN.store(known, Ordering::Relaxed);
    // The pairs of a tree lie in the order of hashes. But if small maps aren't as expected, don't
    // rely on the layout of large ones either.
    if known && layout::is_wanted("tree") && prove_trees(heap, comes_back).is_some() {
        larder_term::set_tree_maps();
    }
}

fn atom(heap: &Heap, text: &str) -> Word {
    atoms::to_word(heap.env(), larder_term::Atom::new(text))
}

/// Two atoms, of which the first has the greater text and the lesser number. `None` if others have
/// made all that are tried.
fn two_atoms(heap: &Heap) -> Option<(Word, Word)> {
    let mut pairs = (0..8).map(|n| {
        let last = atom(heap, &format!("larder_z{n}"));
        (last, atom(heap, &format!("larder_a{n}")))
    });
    pairs.find(|&(last, first)| layout::atom_index(last) < layout::atom_index(first))
}

/// Finds out how maps order two atoms, of which the first has the lesser text and the greater
/// number. Returns `Less` if the first precedes the other. `None` if the keys of maps aren't in any
/// known order.
fn atom_order(heap: &Heap) -> Option<Order> {
    let (last, first) = two_atoms(heap)?;
    let map = heap.official_map(&[last, first], &[NIL, NIL]);
    // The texts and the numbers of the two atoms are in different orders.
    let by_text = match layout::flatmap(map)?.0 {
        [a, _] => *a == first,
        _ => return None,
    };
    if !by_text && layout::flatmap(map)?.0[0] != last {
        return None;
    }
    // Keys of other kinds, in their expected order.
    let float = heap.float(-1.0);
    let binary = heap.binary(b"k", 1);
    let keys = [
        heap_int(heap, -3),
        heap_int(heap, 2),
        heap_int(heap, 700),
        float,
        heap.float(1.5),
        atom(heap, "larder_only"),
        heap.tuple_of(&[heap_int(heap, 1)]),
        heap.tuple_of(&[heap_int(heap, 1), NIL]),
        NIL,
        heap.cell(heap_int(heap, 1), NIL),
        binary,
    ];
    // Pass them in another order. The map must have them in this one.
    let mixed: Vec<Word> = (0..keys.len()).map(|i| keys[i * 7 % keys.len()]).collect();
    let map = heap.official_map(&mixed, &mixed);
    let in_order = layout::flatmap(map)?.0 == keys;
    in_order.then_some(if by_text { Order::Less } else { Order::Greater })
}

/// Whether two maps that are keys of one map are compared by their pairs as they lie, not in term
/// order. `None` if they are in neither order. (Where atoms are ordered by their texts, the two
/// orders are the same.)
fn maps_as_stored(heap: &Heap) -> Option<bool> {
    let (last, first) = two_atoms(heap)?;
    let map = |a, b| heap.official_map(&[last, first], &[heap_int(heap, a), heap_int(heap, b)]);
    // In term order, the values of the atom with the lesser text decide.
    let (one, other) = (map(1, 2), map(2, 1));
    match *layout::flatmap(heap.official_map(&[other, one], &[NIL, NIL]))?.0 {
        [a, b] if [a, b] == [one, other] => Some(true),
        [a, b] if [a, b] == [other, one] => Some(false),
        _ => None,
    }
}

fn heap_int(heap: &Heap, n: i64) -> Word {
    // SAFETY: the environment is the heap's, which may be used.
    layout::small_word(n).unwrap_or_else(|| unsafe { enif_make_int64(heap.env(), n) })
}

/// Finds the headers in maps of many sizes, each of which must be the same after it was encoded and
/// decoded.
fn prove_trees(heap: &Heap, comes_back: &dyn Fn(Word) -> bool) -> Option<()> {
    let map = |count: usize, seed: usize| {
        let number = |i: usize| heap_int(heap, (i * 7919 + seed * 104_729) as i64);
        let keys: Vec<Word> = (0..count).map(number).collect();
        heap.official_map(&keys, &keys)
    };
    let samples: Vec<Word> = (0..40)
        .map(|seed| map(33 + seed % 5, seed))
        .chain([100, 1000, 5000].map(|count| map(count, 1)))
        .collect();
    let header = |word: Word| {
        // SAFETY: a map is a boxed term, which points at its header.
        layout::is_boxed(word).then(|| unsafe { *pointer(word) })
    };
    let mut found = [0; 3];
    for &word in &samples {
        let root = header(word)?;
        // A root with all children may have a header of its own.
        let at = usize::from(root >> PRESENT & ALL != ALL);
        let base = if at == 0 {
            root
        } else {
            root & !(ALL << PRESENT)
        };
        if found[at] != 0 && found[at] != base || layout::flatmap_header() == Some(root) {
            return None;
        }
        found[at] = base;
        // SAFETY: after the header of a large map lie its size and its children, 16 at most, of
        // which one bit each says that it is there.
        let children = unsafe {
            let count = (root >> PRESENT & ALL).count_ones() as usize;
            std::slice::from_raw_parts(pointer(word).add(2), count)
        };
        for &child in children.iter().filter(|&&child| !layout::is_cell(child)) {
            let node_header = header(child)? & !(ALL << PRESENT);
            if found[2] != 0 && found[2] != node_header {
                return None;
            }
            found[2] = node_header;
        }
    }
    if found.contains(&0) {
        return None;
    }
    for (place, header) in [&FULL_ROOT, &ROOT, &NODE].into_iter().zip(found) {
        // Ordering: Relaxed, as in `is_order_known`.
        place.store(header, Ordering::Relaxed);
    }
    // In the end, the complete encoding and decoding decides.
    if samples.iter().all(|&word| comes_back(word)) {
        return Some(());
    }
    // Ordering: as above.
    FULL_ROOT.store(0, Ordering::Relaxed);
    None
}

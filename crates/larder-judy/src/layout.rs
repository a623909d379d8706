//! Sizes: which block a node of a given form and population takes.
//!
//! A block's size is a function of the node's form, level and population alone, so no node keeps
//! its capacity. Blocks come in few sizes (`STEPS`): a node that grows by one index mostly stays in
//! its block and only moves bytes.
//!
//! ```text
//! linear leaf, k bytes an index, n indexes, W words:
//!
//!   | index 0 | index 1 | … | index n-1 | spare | value 0 | value 1 | … | value n-1 | spare |
//!   0         k                                 ^ word W - most(W, k)                    W words
//! ```
//!
//! `most(W, k)` is how many indexes fit into W words, so the values begin at one place as long as
//! the block stays.

/// The sizes of blocks in words, up to the largest linear leaf. A common allocator has these sizes
/// anyway: it keeps a word for itself, and rounds up to two. Each is about a third more than the
/// one before. With a finer scale, a leaf would take a little less memory, but would be copied at
/// nearly each insert.
const STEPS: [u8; 11] = [1, 3, 5, 7, 11, 15, 21, 29, 37, 49, 64];

/// The most words of a linear leaf.
pub(crate) const LEAF_WORDS_MOST: usize = 64;

/// If the last byte's range of a map has more indexes than this, a bitmap leaf is smaller.
const MAP_LEAF1_MOST: usize = 25;

/// The size of the block for each number of words.
const CLASS_OF: [u8; LEAF_WORDS_MOST + 1] = class_table();

const fn class_table() -> [u8; LEAF_WORDS_MOST + 1] {
    let mut table = [0; LEAF_WORDS_MOST + 1];
    // Each number of words gets the least size that holds it. The sizes ascend, so one pass
    // suffices.
    let (mut words, mut step) = (1, 0);
    while words <= LEAF_WORDS_MOST {
        if words > STEPS[step] as usize {
            step += 1;
        }
        table[words] = STEPS[step];
        words += 1;
    }
    table
}

/// The words of the block for `words` words, at most [`LEAF_WORDS_MOST`].
#[inline]
pub(crate) const fn class(words: usize) -> usize {
    CLASS_OF[words] as usize
}

/// The kind of an array: with a value for each index, or without.
pub(crate) trait Kind: Send + Sync + 'static {
    /// Whether each index has a value.
    const VALUES: bool;
    /// The number of bytes of indexes that fit into a pointer pair.
    const IMMED_BYTES: usize;
    /// The maximum number of indexes in a linear leaf, by level.
    const LEAF_MOST: [usize; 9];
    /// The number of bytes for each index by which a wide branch may be larger than a
    /// bitmap branch.
    const WIDE_BYTES: u64;
}

/// The most indexes in a pair, of any kind: a set's of one byte.
pub(crate) const MOST_IMMEDIATE: usize = 15;

/// Indexes alone: Judy1.
#[derive(Debug)]
pub(crate) struct Set;

/// Indexes with a word each: JudyL.
#[derive(Debug)]
pub(crate) struct Map;

/// Indexes with a word each, which are parts of strings. Text has few different bytes at a place,
/// so its branches are bitmap branches more often, one below another. Strings take more memory than
/// branches. So it pays to allow larger branches.
#[derive(Debug)]
pub(crate) struct Parts;

impl Kind for Set {
    const VALUES: bool = false;
    const IMMED_BYTES: usize = 15;
    // A linear leaf of the last byte takes three words up to 17 indexes, and then five, one more
    // than a bitmap.
    const LEAF_MOST: [usize; 9] = [0, 24, 128, 96, 72, 60, 52, 48, 44];
    const WIDE_BYTES: u64 = 1;
}

impl Kind for Map {
    const VALUES: bool = true;
    const IMMED_BYTES: usize = 7;
    const LEAF_MOST: [usize; 9] = [0, MAP_LEAF1_MOST, 51, 46, 42, 39, 36, 34, 32];
    const WIDE_BYTES: u64 = 1;
}

impl Kind for Parts {
    const VALUES: bool = true;
    const IMMED_BYTES: usize = Map::IMMED_BYTES;
    const LEAF_MOST: [usize; 9] = Map::LEAF_MOST;
    const WIDE_BYTES: u64 = 5;
}

/// The words that a leaf of `n` indexes of `k` bytes needs. A set's leaf has room to read eight
/// bytes from where its last index begins; in a map's leaf the values are there.
const fn leaf_need(values: bool, k: usize, n: usize) -> usize {
    if values {
        (n * k).div_ceil(8) + n
    } else {
        (n * k + 8 - k).div_ceil(8)
    }
}

/// The most indexes of `k` bytes, with values, that `words` words hold.
const fn most(words: usize, k: usize) -> usize {
    let mut n = 0;
    while leaf_need(true, k, n + 1) <= words {
        n += 1;
    }
    n
}

/// Per level and population of a map's leaf: its words, and the word where its values begin.
const MAP_LEAF: [[(u8, u8); 53]; 9] = map_leaf_table();

const fn map_leaf_table() -> [[(u8, u8); 53]; 9] {
    // Computed at compile time: a leaf's size is one load from here.
    let mut table = [[(0, 0); 53]; 9];
    let mut k = 1;
    while k <= 8 {
        let mut n = 1;
        while n <= Map::LEAF_MOST[k] {
            let words = class(leaf_need(true, k, n));
            table[k][n] = (words as u8, (words - most(words, k)) as u8);
            n += 1;
        }
        k += 1;
    }
    table
}

/// A linear leaf's words, and the word where its values begin (its words, in a set).
#[inline]
pub(crate) fn leaf_shape<K: Kind>(k: usize, n: usize) -> (usize, usize) {
    // A map's leaf has its values after the indexes, where the table says.
    if K::VALUES {
        let (words, values) = MAP_LEAF[k][n];
        (words as usize, values as usize)
    } else {
        let words = class(leaf_need(false, k, n));
        (words, words)
    }
}

/// The words of a linear branch's block for `n` children: the digits' word and two words each.
#[inline]
pub(crate) const fn linear_words(n: usize) -> usize {
    match n {
        0..=2 => 5,
        3 => 7,
        4 | 5 => 11,
        _ => 15,
    }
}

/// The most children of a linear branch.
pub(crate) const LINEAR_MOST: usize = 7;
/// A bitmap branch or a wide one with this number of children becomes a linear branch.
pub(crate) const LINEAR_AGAIN: usize = 5;

/// The pointer pairs in the block for `n` children of a quarter of a bitmap branch.
#[inline]
pub(crate) const fn quarter_pairs(n: usize) -> usize {
    match n {
        0..=8 => n,
        9..=16 => (n + 1) & !1,
        17..=32 => (n + 3) & !3,
        _ => (n + 7) & !7,
    }
}

/// Whether a bitmap branch with `children` children and `pop` indexes should become a wide one,
/// which takes 4 KiB.
#[inline]
pub(crate) const fn deserves_wide<K: Kind>(children: usize, pop: u64) -> bool {
    children > 184 || pop * K::WIDE_BYTES > 4096 - 16 * children as u64
}

/// Whether to check [`deserves_wide`] for a bitmap branch that has `pop` indexes and gets no new
/// child. Rarely, but soon enough.
#[inline]
pub(crate) const fn time_to_ask(pop: u64) -> bool {
    pop.is_multiple_of(128)
}

/// A wide branch with only this number of indexes becomes a bitmap branch, or a linear one if it
/// has few enough children.
pub(crate) const WIDE_AGAIN: u64 = 120;

/// A branch over at most this number of indexes becomes a linear leaf. It is a little less than a
/// leaf holds. So an index that comes and goes doesn't make and break a branch each time.
#[inline]
pub(crate) const fn leaf_again<K: Kind>(k: usize) -> u64 {
    let most = K::LEAF_MOST[k];
    (most - most / 8 - 1) as u64
}

/// The low `k` bytes, 1 ≤ k ≤ 8.
#[inline]
pub(crate) const fn mask(k: usize) -> u64 {
    !0 >> (64 - 8 * k)
}

/// The byte that a branch of level `k` decodes.
#[inline]
pub(crate) const fn digit(key: u64, k: usize) -> u8 {
    // The bytes in the places where a pair's field has them, so that both are shifted alike.
    key.rotate_left(8).wrapping_shr(8 * k as u32) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_fits_its_block() {
        for k in 1..=8 {
            for n in 1..=Map::LEAF_MOST[k] {
                let (words, values) = leaf_shape::<Map>(k, n);
                assert!(words <= LEAF_WORDS_MOST && values * 8 >= n * k && values + n <= words);
                assert!(
                    values * 8 + 8 >= n * k + 8 - k,
                    "an index is read as eight bytes"
                );
            }
            for n in 1..=Set::LEAF_MOST[k] {
                let (words, _) = leaf_shape::<Set>(k, n);
                assert!(words <= LEAF_WORDS_MOST && words * 8 >= n * k + 8 - k);
            }
        }
    }

    #[test]
    fn one_block_has_one_place_for_its_values() {
        for k in 1..=8 {
            for n in 2..=Map::LEAF_MOST[k] {
                let (before, after) = (leaf_shape::<Map>(k, n - 1), leaf_shape::<Map>(k, n));
                assert!(before.0 != after.0 || before.1 == after.1);
            }
        }
    }
}

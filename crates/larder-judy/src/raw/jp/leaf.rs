//! Linear leaves: a sorted array of short indexes, and in a map their values after it.
//!
//! A drawing of a leaf is in [`layout`](crate::layout). Indexes are little-endian, `k` bytes each,
//! without gaps between them. So an index is read as eight bytes from its place, of which the low
//! `k` bytes count.

use std::marker::PhantomData;

use super::{Form, Jp, Tag};
use crate::layout::{leaf_shape, mask, Kind};
use crate::raw::mem::Mem;

/// A linear leaf, for reading.
pub(crate) struct Leaf<'a, K> {
    block: *const u64,
    n: usize,
    k: usize,
    life: PhantomData<&'a K>,
}

/// The index at a place.
///
/// # Safety
///
/// `at` is below the population of the leaf of level `k` in `block`.
#[inline]
unsafe fn key_at(block: *const u64, k: usize, at: usize) -> u64 {
    // SAFETY: the eight bytes from the beginning of any index lie in the block, and have been
    // written (JU10).
    let eight = unsafe {
        block
            .cast::<u8>()
            .add(k * at)
            .cast::<u64>()
            .read_unaligned()
    };
    u64::from_le(eight) & mask(k)
}

/// The number of indexes below `low`, of `n`.
///
/// # Safety
///
/// `block` holds a leaf of level `L` with population `n` ≥ 1.
#[inline]
unsafe fn rank<const L: usize>(block: *const u64, n: usize, low: u64) -> usize {
    // SAFETY: only called with `at` < `n`.
    let below = |at: usize| (unsafe { key_at(block, L, at) } < low) as usize;
    if n < WINDOW {
        return (0..n).map(below).sum();
    }
    let (mut from, mut len) = (0, n);
    // Search in quarters instead of halves. Which quarter it is can't be predicted, so the steps
    // have no branch. The three reads of a step don't wait for each other.
    while len > WINDOW {
        let part = len / 4;
        from += part
            * (below(from + part - 1) + below(from + 2 * part - 1) + below(from + 3 * part - 1));
        len -= 3 * part;
    }
    // The rest is a window of a fixed length. It may contain indexes outside of the rest. Comparing
    // them is right, too: those before are below, those after are not.
    let from = from.min(n - WINDOW);
    from + (0..WINDOW).map(|at| below(from + at)).sum::<usize>()
}

/// The number of indexes that are compared without branches.
const WINDOW: usize = 4;

/// The place of an index, or where it would stand.
///
/// # Safety
///
/// As [`rank`].
#[inline]
unsafe fn search<const L: usize>(block: *const u64, n: usize, low: u64) -> Result<usize, usize> {
    // SAFETY: the caller's contract, and `at` is below `n` where it is read.
    unsafe {
        let at = rank::<L>(block, n, low);
        if at < n && key_at(block, L, at) == low {
            Ok(at)
        } else {
            Err(at)
        }
    }
}

/// [`search`] in a leaf of level `k`: a constant level makes the masks and steps constants. All
/// arguments fit in registers.
///
/// # Safety
///
/// As [`rank`], with `k` for the level.
#[inline(never)]
unsafe fn search_level(block: *const u64, k: usize, n: usize, low: u64) -> Result<usize, usize> {
    // SAFETY: the caller's contract.
    unsafe {
        match k {
            1 => search::<1>(block, n, low),
            2 => search::<2>(block, n, low),
            3 => search::<3>(block, n, low),
            4 => search::<4>(block, n, low),
            5 => search::<5>(block, n, low),
            6 => search::<6>(block, n, low),
            7 => search::<7>(block, n, low),
            _ => search::<8>(block, n, low),
        }
    }
}

impl<'a, K: Kind> Leaf<'a, K> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    #[inline]
    pub(crate) fn key(&self, at: usize) -> u64 {
        assert!(at < self.n);
        // SAFETY: `at` is below the population.
        unsafe { key_at(self.block, self.k, at) }
    }

    #[inline]
    pub(crate) fn value(&self, at: usize) -> Option<&'a u64> {
        if !K::VALUES || at >= self.n {
            return None;
        }
        // SAFETY: the block has `n` values where its shape says, and `at` is below `n`.
        Some(unsafe { &*self.block.add(leaf_shape::<K>(self.k, self.n).1 + at) })
    }

    /// The place of an index, or where it would stand.
    #[inline]
    pub(crate) fn search(&self, low: u64) -> Result<usize, usize> {
        // SAFETY: the view was made of a pair whose tag says level `k` and population `n`.
        unsafe { search_level(self.block, self.k, self.n, low) }
    }
}

/// Takes a block for a leaf. Its keys are zero.
fn take_leaf<K: Kind>(k: usize, n: usize, mem: &mut Mem) -> *mut u64 {
    // Only the keys are zeroed (JU10). All values are written by the caller.
    let (words, values) = leaf_shape::<K>(k, n);
    let block = mem.take(words);
    // SAFETY: the key area ends where the values begin, which is at most at the block's end.
    unsafe { block.write_bytes(0, values) };
    block
}

/// Writes an index to its place.
///
/// # Safety
///
/// `block` is a leaf's block of level `k` with room for index `at`, and the key area may be
/// written.
#[inline]
unsafe fn put_key(block: *mut u64, k: usize, at: usize, key: u64) {
    let bytes = key.to_le_bytes();
    // SAFETY: the `k` bytes of index `at` lie in the key area, and `bytes` has eight. A constant
    // length compiles to a store or two.
    unsafe {
        let place = block.cast::<u8>().add(k * at);
        match k {
            1 => place.copy_from_nonoverlapping(bytes.as_ptr(), 1),
            2 => place.copy_from_nonoverlapping(bytes.as_ptr(), 2),
            3 => place.copy_from_nonoverlapping(bytes.as_ptr(), 3),
            4 => place.copy_from_nonoverlapping(bytes.as_ptr(), 4),
            5 => place.copy_from_nonoverlapping(bytes.as_ptr(), 5),
            6 => place.copy_from_nonoverlapping(bytes.as_ptr(), 6),
            7 => place.copy_from_nonoverlapping(bytes.as_ptr(), 7),
            _ => place.copy_from_nonoverlapping(bytes.as_ptr(), 8),
        }
    }
}

impl<K: Kind> Jp<K> {
    #[inline]
    pub(crate) fn as_leaf(&self, k: usize) -> Leaf<'_, K> {
        Leaf {
            block: self.block(),
            n: self.pop_at(k) as usize,
            k,
            life: PhantomData,
        }
    }

    /// Makes a linear leaf of level `k` of these sorted indexes. There are no more of them than
    /// such a leaf may have.
    pub(crate) fn leaf(k: usize, keys: &[u64], values: &[u64], mem: &mut Mem) -> Self {
        let n = keys.len();
        assert!(
            (1..=8).contains(&k)
                && n >= 1
                && n <= K::LEAF_MOST[k]
                && (!K::VALUES || values.len() == n)
        );
        let block = take_leaf::<K>(k, n, mem);
        // Eight bytes are stored for each index, from the first one on. The next store replaces
        // what is too much.
        for (at, &key) in keys.iter().enumerate() {
            // SAFETY: the block has room for `n` indexes of `k` bytes, and for eight bytes from
            // where any of them begins. What is written beyond an index is written again: by the
            // next index, by the values, or as spare zeros.
            unsafe {
                block
                    .cast::<u8>()
                    .add(k * at)
                    .cast::<u64>()
                    .write_unaligned((key & mask(k)).to_le())
            };
        }
        if K::VALUES {
            // SAFETY: the block has room for `n` values there, and a fresh block overlaps nothing.
            unsafe {
                block
                    .add(leaf_shape::<K>(k, n).1)
                    .copy_from_nonoverlapping(values.as_ptr(), n)
            };
        }
        Jp::with_block(block, Self::field(k, keys[0], n as u64, Tag::leaf(k)))
    }

    /// The value at a place of a linear leaf.
    #[inline]
    pub(crate) fn leaf_value_mut(&mut self, at: usize) -> Option<&mut u64> {
        let Form::Leaf(k) = self.form() else {
            return None;
        };
        let n = self.pop_at(k) as usize;
        if !K::VALUES || at >= n {
            return None;
        }
        // SAFETY: the block has `n` values where its shape says, and `at` is below `n`.
        Some(unsafe { &mut *self.block().add(leaf_shape::<K>(k, n).1 + at) })
    }

    /// Inserts an index at a place of a linear leaf that is not full. Its value is zero at first.
    #[inline]
    pub(crate) fn leaf_insert(&mut self, at: usize, key: u64, mem: &mut Mem) {
        let Form::Leaf(k) = self.form() else { return };
        let n = self.pop_at(k) as usize;
        assert!(at <= n && n < K::LEAF_MOST[k]);
        let (old, values) = leaf_shape::<K>(k, n);
        let (new, new_values) = leaf_shape::<K>(k, n + 1);
        let block = self.block();
        // The values begin at the same place as long as the block stays, so only what is after the
        // new index and value moves.
        if old == new {
            // SAFETY: one more index and one more value fit into a block of this class. The ranges
            // that are moved have been written.
            unsafe {
                let place = block.cast::<u8>().add(k * at);
                place.copy_to(place.add(k), k * (n - at));
                put_key(block, k, at, key);
                if K::VALUES {
                    let place = block.add(values + at);
                    place.copy_to(place.add(1), n - at);
                    *place = 0;
                }
            }
        } else {
            // A larger block: copy both sides of the place, with a gap for the new index and value.
            let fresh = take_leaf::<K>(k, n + 1, mem);
            // SAFETY:
            // 1. The old block holds `n` indexes and values. The fresh one has room for one more of
            //    each.
            // 2. They don't overlap.
            // 3. The old block is of the class that its population says.
            unsafe {
                let (from, to) = (block.cast::<u8>(), fresh.cast::<u8>());
                to.copy_from_nonoverlapping(from, k * at);
                to.add(k * (at + 1))
                    .copy_from_nonoverlapping(from.add(k * at), k * (n - at));
                put_key(fresh, k, at, key);
                if K::VALUES {
                    let (from, to) = (block.add(values), fresh.add(new_values));
                    to.copy_from_nonoverlapping(from, at);
                    *to.add(at) = 0;
                    to.add(at + 1)
                        .copy_from_nonoverlapping(from.add(at), n - at);
                }
                mem.give(block, old);
            }
            self.word.block = fresh;
        }
        self.meta += 1 << 8;
    }

    /// Removes the index at a place of a linear leaf that has at least two. Returns its value.
    pub(crate) fn leaf_remove(&mut self, at: usize, mem: &mut Mem) -> u64 {
        let Form::Leaf(k) = self.form() else { return 0 };
        let n = self.pop_at(k) as usize;
        assert!(at < n && n > 1);
        // Old and new shape. If both take the same block, bytes move within it.
        let (old, values) = leaf_shape::<K>(k, n);
        let (new, new_values) = leaf_shape::<K>(k, n - 1);
        let block = self.block();
        let value = if K::VALUES {
            // SAFETY: the block has `n` values where its shape says, and `at` is below `n`.
            unsafe { *block.add(values + at) }
        } else {
            0
        };
        if old == new {
            // SAFETY: the ranges that are moved lie in this block, and have been written.
            unsafe {
                let place = block.cast::<u8>().add(k * at);
                place.add(k).copy_to(place, k * (n - 1 - at));
                if K::VALUES {
                    let place = block.add(values + at);
                    place.add(1).copy_to(place, n - 1 - at);
                }
            }
        } else {
            // A smaller block: copy what is before the place, and what is after it.
            let fresh = take_leaf::<K>(k, n - 1, mem);
            // SAFETY:
            // 1. The old block holds `n` indexes and values. The fresh one has room for all but one
            //    of each.
            // 2. They don't overlap.
            // 3. The old block is of the class that its population says.
            unsafe {
                let (from, to) = (block.cast::<u8>(), fresh.cast::<u8>());
                to.copy_from_nonoverlapping(from, k * at);
                to.add(k * at)
                    .copy_from_nonoverlapping(from.add(k * (at + 1)), k * (n - 1 - at));
                if K::VALUES {
                    let (from, to) = (block.add(values), fresh.add(new_values));
                    to.copy_from_nonoverlapping(from, at);
                    to.add(at)
                        .copy_from_nonoverlapping(from.add(at + 1), n - 1 - at);
                }
                mem.give(block, old);
            }
            self.word.block = fresh;
        }
        // The population is the low part of the field.
        self.meta -= 1 << 8;
        value
    }

    /// Frees the blocks of a run (any node but a branch), and makes the pair null.
    pub(crate) fn drop_run(&mut self, mem: &mut Mem) {
        let jp = self.take();
        // SAFETY: each block is of the class that form, level and population say. The pair is gone,
        // so nobody uses them again.
        unsafe {
            match jp.form() {
                Form::Immed { n, .. } if K::VALUES => mem.give(jp.block(), crate::layout::class(n)),
                Form::Leaf(k) => mem.give(jp.block(), leaf_shape::<K>(k, jp.pop_at(k) as usize).0),
                Form::Bits => jp.drop_bits(mem),
                Form::Full if K::VALUES => mem.give(jp.block(), 256),
                Form::Null | Form::One | Form::Immed { .. } | Form::Full => {}
                Form::Linear(_) | Form::Bitmap(_) | Form::Wide(_) => *self = jp,
            }
        }
    }
}

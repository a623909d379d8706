//! Immediate indexes: a few short ones in the pair itself.
//!
//! In a map, the field has up to seven bytes of indexes, and the word is the address of their
//! values. A set has no values, so the word contains eight more bytes of indexes. Seen as one
//! integer of 15 bytes, index i is at byte i × k.

use std::marker::PhantomData;

use super::{Form, Jp, Tag, Word};
use crate::layout::{class, mask, Kind};
use crate::raw::mem::Mem;

/// Immediate indexes of `k` bytes, for reading.
pub(crate) struct Immed<'a, K> {
    packed: u128,
    n: usize,
    k: usize,
    values: *const u64,
    life: PhantomData<&'a K>,
}

impl<'a, K: Kind> Immed<'a, K> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    #[inline]
    pub(crate) fn key(&self, at: usize) -> u64 {
        debug_assert!(at < self.n);
        if K::VALUES {
            (self.packed as u64) >> (8 * self.k * at) & mask(self.k)
        } else {
            (self.packed >> (8 * self.k * at)) as u64 & mask(self.k)
        }
    }

    #[inline]
    pub(crate) fn value(&self, at: usize) -> Option<&'a u64> {
        if !K::VALUES || at >= self.n {
            return None;
        }
        // SAFETY: a map's immediates have `n` values in their block, and `at` is below `n`.
        Some(unsafe { &*self.values.add(at) })
    }

    #[inline]
    pub(crate) fn search(&self, low: u64) -> Result<usize, usize> {
        // There are a few only, so they are compared one by one.
        for at in 0..self.n {
            let key = self.key(at);
            if key >= low {
                return if key == low { Ok(at) } else { Err(at) };
            }
        }
        Err(self.n)
    }
}

impl<K: Kind> Jp<K> {
    /// Whether this number of indexes of `k` bytes fits into a pair.
    #[inline]
    pub(crate) fn immed_fits(n: usize, k: usize) -> bool {
        n * k <= K::IMMED_BYTES
    }

    #[inline]
    pub(in crate::raw) fn packed(&self) -> u128 {
        // The first seven bytes are in the field. The others of a set are in the word.
        let field = (self.meta >> 8) as u128;
        if K::VALUES {
            field
        } else {
            field | (*self.word_value() as u128) << 56
        }
    }

    #[inline]
    pub(crate) fn as_immed(&self, n: usize, k: usize) -> Immed<'_, K> {
        // A set has no values, and its word has index bytes.
        let values = if K::VALUES {
            self.block()
        } else {
            std::ptr::null()
        };
        Immed {
            packed: self.packed(),
            n,
            k,
            values,
            life: PhantomData,
        }
    }

    /// Makes a pair of these index bytes. The word of a map is passed; a set has index bytes in it.
    #[inline]
    fn from_packed(packed: u128, n: usize, k: usize, word: Word) -> Self {
        // The low seven bytes are in the field, after the tag. A set has the rest in its word.
        let meta = (packed as u64) << 8 | Tag::immed(n, k).0 as u64;
        let word = if K::VALUES {
            word
        } else {
            Word {
                value: (packed >> 56) as u64,
            }
        };
        Jp {
            word,
            meta,
            kind: std::marker::PhantomData,
        }
    }

    /// Makes a pair of these sorted indexes, of which only the low `k` bytes are stored. There are
    /// at least two, and they fit.
    pub(crate) fn immed(k: usize, keys: &[u64], values: &[u64], mem: &mut Mem) -> Self {
        let n = keys.len();
        debug_assert!(n >= 2 && Self::immed_fits(n, k));
        // Index `at` goes to byte `at * k`. The indexes don't overlap.
        let pack = |acc, (at, key): (usize, &u64)| acc | ((key & mask(k)) as u128) << (8 * k * at);
        let packed = keys.iter().enumerate().fold(0u128, pack);
        if !K::VALUES {
            return Self::from_packed(packed, n, k, Word { value: 0 });
        }
        assert!(values.len() == n);
        let block = mem.take(class(n));
        // SAFETY: the block has at least `n` words, and `values` has `n`. A fresh block overlaps
        // nothing.
        unsafe { block.copy_from_nonoverlapping(values.as_ptr(), n) };
        Self::from_packed(packed, n, k, Word { block })
    }

    /// The value at a place of immediates.
    #[inline]
    pub(crate) fn immed_value_mut(&mut self, at: usize) -> Option<&mut u64> {
        match self.form() {
            Form::Immed { n, .. } if K::VALUES && at < n => {
                // SAFETY: a map's immediates have `n` values in their block, and `at` is below `n`.
                Some(unsafe { &mut *self.block().add(at) })
            }
            _ => None,
        }
    }

    /// Inserts an index at a place of a pair that has room for it. Its value is zero at first.
    pub(crate) fn immed_insert(&mut self, at: usize, key: u64, mem: &mut Mem) {
        let Form::Immed { n, k } = self.form() else {
            return;
        };
        assert!(at <= n && Self::immed_fits(n + 1, k));
        // Indexes after the place move up by `k` bytes, in one shift.
        let shift = 8 * k * at;
        let packed = self.packed();
        let below = packed & ((1 << shift) - 1);
        let above = (packed >> shift) << shift << (8 * k);
        let packed = below | above | ((key & mask(k)) as u128) << shift;
        // The values are a block, which may be replaced by one of the next size.
        let mut word = self.word;
        if K::VALUES {
            let block = self.block();
            // SAFETY: the block has `n` values, and is of the class of that number.
            let block = unsafe { words_insert(block, n, at, mem) };
            word = Word { block };
        }
        *self = Self::from_packed(packed, n + 1, k, word);
    }

    /// Takes the index at a place out of immediates, of which there are at least three, and returns
    /// its value.
    pub(crate) fn immed_remove(&mut self, at: usize, mem: &mut Mem) -> u64 {
        let Form::Immed { n, k } = self.form() else {
            return 0;
        };
        assert!(at < n && n > 2);
        // Indexes after the place move down by `k` bytes.
        let shift = 8 * k * at;
        let packed = self.packed();
        let below = packed & ((1 << shift) - 1);
        let above = (packed >> shift >> (8 * k)) << shift;
        let (mut word, mut value) = (self.word, 0);
        if K::VALUES {
            // SAFETY: the block has `n` values, and is of the class of that number.
            let (block, old) = unsafe { words_remove(self.block(), n, at, mem) };
            (word, value) = (Word { block }, old);
        }
        *self = Self::from_packed(below | above, n - 1, k, word);
        value
    }
}

/// Puts a zero at a place of `n` words in a block of their class, and returns the block they are in
/// now.
///
/// # Safety
///
/// `block` is a block of class `n` whose first `n` words are written (null if `n` is 0), and `at` ≤
/// `n` < 64.
pub(in crate::raw) unsafe fn words_insert(
    block: *mut u64,
    n: usize,
    at: usize,
    mem: &mut Mem,
) -> *mut u64 {
    let (old, new) = (if n == 0 { 0 } else { class(n) }, class(n + 1));
    // SAFETY:
    // 1. `at` ≤ `n`, so every range lies within the `n` words that were written, or goes one word
    //    further in a block of class n + 1.
    // 2. A fresh block overlaps no other. Within one block, `copy` may overlap.
    // 3. The old block is of class `n`.
    unsafe {
        // Make a gap for the value in the block, or copy both sides of the place to a larger one.
        if old == new {
            block.add(at).copy_to(block.add(at + 1), n - at);
            *block.add(at) = 0;
            return block;
        }
        let fresh = mem.take(new);
        *fresh.add(at) = 0;
        if n > 0 {
            fresh.copy_from_nonoverlapping(block, at);
            fresh
                .add(at + 1)
                .copy_from_nonoverlapping(block.add(at), n - at);
            mem.give(block, old);
        }
        fresh
    }
}

/// Takes the word at a place out of `n`, and returns the block that the others are in now (null if
/// there are none).
///
/// # Safety
///
/// `block` is a block of class `n` whose first `n` words are written, and `at` < `n` ≤ 64.
pub(in crate::raw) unsafe fn words_remove(
    block: *mut u64,
    n: usize,
    at: usize,
    mem: &mut Mem,
) -> (*mut u64, u64) {
    // The block stays if the fewer words are of the same class.
    let (old, new) = (class(n), if n == 1 { 0 } else { class(n - 1) });
    // SAFETY:
    // 1. `at` < `n`, so every range lies within the `n` words that were written.
    // 2. A fresh block of class n - 1 has room for the other words, and overlaps no other block.
    // 3. The old block is of class `n`.
    unsafe {
        let value = *block.add(at);
        if old == new {
            block.add(at + 1).copy_to(block.add(at), n - 1 - at);
            return (block, value);
        }
        let mut fresh = std::ptr::null_mut();
        if n > 1 {
            fresh = mem.take(new);
            fresh.copy_from_nonoverlapping(block, at);
            fresh
                .add(at)
                .copy_from_nonoverlapping(block.add(at + 1), n - 1 - at);
        }
        mem.give(block, old);
        (fresh, value)
    }
}

//! Which keys surely have no undo record: one bit for some of them.
//!
//! Invariants:
//! 1. The bit of a key is set before its first version can be needed: under the lock of the entry,
//!    before the change. Bits are never cleared. So a reader who saw the change sees the bit.
//! 2. A clear bit, seen under the lock of the entry, says that the key has no record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Words of a part.
const PART: usize = 512;

/// The most parts: 2 MiB.
const MOST: usize = 512;

/// Parts are made when one of their bits is set first: no writer waits for all to be cleared.
type Part = OnceLock<Box<[AtomicU64; PART]>>;

/// One bit for the keys whose hashes end alike.
pub(super) struct Filter(Box<[Part]>);

impl Filter {
    /// One for an index with so many entries: about a bit for each, and some thousand at least.
    pub(super) fn new(entries: usize) -> Self {
        let parts = entries.div_ceil(PART * 64).next_power_of_two().min(MOST);
        Filter((0..parts).map(|_| OnceLock::new()).collect())
    }

    /// The place of a hash: a part, a word, a bit.
    #[inline]
    fn place(&self, hash: u64) -> (&Part, usize, u64) {
        let part = (hash >> 15) as usize & (self.0.len() - 1);
        (&self.0[part], (hash >> 6) as usize % PART, 1 << (hash & 63))
    }

    /// Whether a key with this hash may have a record.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let (part, word, bit) = self.place(hash);
        // Ordering: Acquire. What a reader of the entry saw, or the lock of the entry, orders this
        // load behind the setting of the key's own bit; with others' bits nothing is done.
        let is_set = |part: &[AtomicU64; PART]| part[word].load(Ordering::Acquire) & bit != 0;
        part.get().is_some_and(|part| is_set(part))
    }

    /// A key with this hash has a record from now on; whether it may have had one before.
    #[inline]
    pub(super) fn set(&self, hash: u64) -> bool {
        let (part, word, bit) = self.place(hash);
        let part = part.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PART]));
        let word = &part[word];
        // Ordering: Relaxed; the entry's lock orders what is set for its key.
        if word.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        // Ordering: Release; the change that follows is seen with the bit.
        word.fetch_or(bit, Ordering::Release) & bit != 0
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let parts = self.0.iter().filter(|part| part.get().is_some()).count();
        size_of_val(&*self.0) + parts * size_of::<[AtomicU64; PART]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_found() {
        let filter = Filter::new(100_000);
        assert!(filter.memory() < 1000);
        let hash = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for i in 0..100 {
            filter.set(hash(i));
            assert!(filter.set(hash(i)));
        }
        assert!((0..100).all(|i| filter.may_have(hash(i))));
        assert!((100..1000).filter(|&i| filter.may_have(hash(i))).count() < 100);
        assert!(filter.memory() > 4 * PART * 8);
    }
}

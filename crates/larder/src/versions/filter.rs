//! A filter of the keys that may have an undo record: two bits of a word for each.
//!
//! Invariants:
//! * **S12** The bits of a key are set before its first version can be needed: under the lock of
//!   the entry, before the change. Bits are never cleared. So a reader that sees the change sees
//!   them.
//! * **S13** If a bit of a key is clear, seen under the lock of the entry, the key has no record.
//!
//! Source: a Bloom filter (1970) of blocks of one word (Putze, Sanders, Singler: Cache-, Hash- and
//! Space-Efficient Bloom Filters, 2007). With a bit for each key of the table, of which a tenth has
//! changed, it takes 4 of 100 other keys for changed ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// The number of words of a part.
const PART: usize = 512;

/// The maximum number of parts: 2 MiB.
const MAX_PARTS: usize = 512;

/// A part is allocated when one of its bits is first set. So no writer waits until all parts are
/// cleared.
type FilterPart = OnceLock<Box<[AtomicU64; PART]>>;

/// The filter.
pub(super) struct BloomFilter(Box<[FilterPart]>);

impl BloomFilter {
    /// Makes a filter for an index with this number of entries: about a bit for each, and at least
    /// some thousand.
    pub(super) fn new(entries: usize) -> Self {
        let parts = entries
            .div_ceil(PART * 64)
            .next_power_of_two()
            .min(MAX_PARTS);
        BloomFilter((0..parts).map(|_| OnceLock::new()).collect())
    }

    /// The bits of a hash: a part, a word, the bits in it.
    #[inline]
    fn place(&self, hash: u64) -> (&FilterPart, usize, u64) {
        let part = (hash >> 21) as usize & (self.0.len() - 1);
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63);
        (&self.0[part], (hash >> 12) as usize % PART, bits)
    }

    /// Whether a key with this hash may have a record.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let (part, word, bits) = self.place(hash);
        // Ordering: Acquire. This load is ordered after the store of the key's own bits, by what a
        // reader of the entry saw, or by the lock of the entry. Bits of other keys don't matter.
        let is_set = |part: &[AtomicU64; PART]| part[word].load(Ordering::Acquire) & bits == bits;
        part.get().is_some_and(|part| is_set(part))
    }

    /// Records that a key with this hash will have a record. Returns whether it may have had one
    /// before.
    #[inline]
    pub(super) fn set(&self, hash: u64) -> bool {
        let (part, word, bits) = self.place(hash);
        let part = part.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PART]));
        let word = &part[word];
        // Ordering: Relaxed; the entry's lock orders the stores for its key.
        if word.load(Ordering::Relaxed) & bits == bits {
            return true;
        }
        // Ordering: Release; a thread that sees the change which follows sees the bits.
        word.fetch_or(bits, Ordering::Release) & bits == bits
    }

    /// The memory in bytes.
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
        let filter = BloomFilter::new(100_000);
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

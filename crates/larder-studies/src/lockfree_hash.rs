//! Michael's lock-free hash table: a fixed number of buckets, each a lock-free list.
//!
//! ```text
//!   buckets   [ 00.. ] [ 01.. ] [ 10.. ] [ 11.. ]       their number never changes
//!                |                  |
//!                v                  v
//!             a --> d            k --> m --> p           lists (`list`), by ascending position
//! ```
//!
//! Invariant: the list of bucket i has the entries whose hash begins with the bits of i.
//!
//! Steps of a change: those of a list, under the lock of the position (`list_hash`).
//!
//! Source: M. Michael, "High performance dynamic lock-free hash tables and list-based sets",
//! SPAA 2002. Deviations: the word of an entry is replaced in its node; the writers of one position
//! exclude each other; nodes are reclaimed by epochs.
//!
//! When not to use it: if the size of the table isn't known. The table never grows. With many more
//! entries than buckets, each operation would walk along a long list. So at an average of `chain`
//! objects per bucket the table is full, and the engine refuses further inserts with an error.
//! `split_ordered` is a table that grows.

use crate::list::ListNode;
use crate::list_hash::{Buckets, Start};
use crate::raw::slot::Slot;
use crate::word::Word;
use larder_index::Guard;

/// A fixed number of buckets.
pub struct FixedBuckets<W: Word> {
    lists: Box<[Slot<ListNode<W>>]>,
    bits: u32,
    limit: usize,
}

impl<W: Word> FixedBuckets<W> {
    /// 2^`bits` buckets, at most 2³². The table is full with an average of `chain` objects per
    /// bucket.
    pub fn new(bits: u32, chain: usize) -> Self {
        let bits = bits.min(32);
        FixedBuckets {
            lists: Slot::empty(1 << bits),
            bits,
            limit: chain.saturating_mul(1 << bits),
        }
    }

    fn index(&self, hash: u64) -> usize {
        match self.bits {
            0 => 0,
            bits => (hash >> (u64::BITS - bits)) as usize,
        }
    }
}

impl<W: Word> Buckets<W> for FixedBuckets<W> {
    fn look<'g>(&'g self, hash: u64, _guard: &'g Guard) -> Start<'g, W> {
        Start(&self.lists[self.index(hash)])
    }

    fn prepare<'g>(&'g self, hash: u64, guard: &'g Guard) -> Start<'g, W> {
        self.look(hash, guard)
    }

    fn span(&self, hash: u64) -> (u64, u64) {
        let low = u64::MAX.checked_shr(self.bits).unwrap_or(0);
        (hash & !low, hash | low)
    }

    fn came(&self, _by: isize) {}

    fn memory(&self) -> usize {
        size_of_val(&*self.lists)
    }

    fn count(&self) -> usize {
        self.lists.len()
    }

    fn limit(&self) -> Option<usize> {
        Some(self.limit)
    }
}

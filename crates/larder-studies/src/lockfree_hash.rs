//! Michael's lock-free hash table: a fixed number of buckets, each a lock-free list.
//!
//! ```text
//!   buckets   [ 00.. ] [ 01.. ] [ 10.. ] [ 11.. ]       as many as asked for, from the beginning to the end
//!                |                  |
//!                v                  v
//!             a --> d            k --> m --> p           lists (see list.rs), by ascending position
//! ```
//!
//! Invariant: the list of bucket i has the entries whose hash begins with the bits of i.
//!
//! Steps of a change: those of the list, under the lock of the position (see `list_hash.rs`).
//!
//! Source: M. Michael, "High performance dynamic lock-free hash tables and list-based sets",
//! SPAA 2002. Deviations: an entry's word is replaced in its node; the writers of one position
//! exclude each other; reclamation by epochs.
//!
//! Not for: tables whose size is not known. The table never grows: `buckets` is asked for when it
//! is made, up to 2²⁴. With many more entries than buckets each operation goes along a long list;
//! so at `chain` objects a bucket the table is full, and its user refuses an insert in words.
//! `split_ordered` is the one that grows.

use crate::list::Node;
use crate::list_hash::{Buckets, Start};
use crate::raw::slot::Slot;
use crate::word::Word;
use larder_index::Guard;

/// A fixed number of lists.
pub struct FixedBuckets<W: Word> {
    lists: Box<[Slot<Node<W>>]>,
    bits: u32,
    limit: usize,
}

impl<W: Word> FixedBuckets<W> {
    /// 2^`bits` buckets, at most 2³², that are full with `chain` objects each on the average.
    pub fn new(bits: u32, chain: usize) -> Self {
        let bits = bits.min(32);
        FixedBuckets {
            lists: (0..1usize << bits).map(|_| Slot::new(None)).collect(),
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

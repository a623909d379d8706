//! Marks of the entries of a leaf, for writes that keep one (`Unique::put_marked`).
//!
//! ```text
//!  head of the leaf    mark; 0: no entry has a mark
//!  behind the buckets  bits of bucket 0 | bits of bucket 1 | … and the last bits in the head
//! ```
//!
//! Bucket b has `marked` bits, from bit b · `marked` on: one for each of its first slot entries.
//!
//! Invariants:
//! 1. An entry has the leaf's mark if the bit of its slot entry is set. Entries behind the first
//!    `marked` ones of a bucket never have a mark.
//! 2. The bits of slot entries that don't exist are clear. When a slot entry is removed, and others
//!    move, their bits move with them.
//! 3. All bits of a new leaf are clear.
//!
//! If the leaf gets another mark, all bits are cleared.

use crate::hash::bucket::Bucket;
use crate::hash::hit::Hit;
use crate::hash::leaf::LockedHashLeaf;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{planted, Fault};

// Ordering, for all of this file: Relaxed. Only the lock's holder reads and writes marks.

impl LockedHashLeaf<'_> {
    /// The number of the bit of a slot entry, if it has one.
    #[inline(always)]
    fn mark_bit(&self, (bucket, slot): (Bucket<'_>, usize)) -> Option<usize> {
        let marked = self.leaf.head().marked as usize;
        let bit = self.leaf.number(bucket) * marked + slot - 1;
        (slot <= marked).then_some(bit)
    }

    /// Whether a bit is set.
    #[inline(always)]
    fn is_set(&self, bit: usize) -> bool {
        // Ordering: Relaxed, see above.
        self.mark_word(bit).load(Relaxed) >> (bit % 64) & 1 != 0
    }

    /// Sets or clears a bit.
    #[inline(always)]
    fn set_bit(&self, bit: usize, is_set: bool) {
        let word = self.mark_word(bit);
        // Ordering: Relaxed, both, see above.
        let others = word.load(Relaxed) & !(1 << (bit % 64));
        word.store(others | u64::from(is_set) << (bit % 64), Relaxed);
    }

    /// The word with this bit.
    #[inline(always)]
    fn mark_word(&self, bit: usize) -> &AtomicU64 {
        let (word, tail) = (bit / 64, self.leaf.tail_marks());
        match tail.get(word) {
            Some(word) => word,
            None => &self.leaf.head().head_marks[word - tail.len()],
        }
    }

    /// The mark of an entry; 0 if it has none.
    #[inline(always)]
    pub(crate) fn mark(&self, hit: &Hit<'_>) -> u64 {
        // Ordering: Relaxed, see above.
        let own = self.leaf.head().mark.load(Relaxed);
        if own == 0 {
            return 0;
        }
        match self.mark_bit((hit.bucket, hit.slot)) {
            Some(bit) if self.is_set(bit) => own,
            _ => 0,
        }
    }

    /// Sets the mark of a slot entry, if it can have one. The mark is not 0.
    #[inline(never)]
    pub(crate) fn set_mark(&mut self, entry: (Bucket<'_>, usize), mark: u64) {
        let Some(bit) = self.mark_bit(entry) else {
            return;
        };
        let head = self.leaf.head();
        // Ordering: Relaxed, here and below, see above.
        if head.mark.load(Relaxed) != mark {
            if !planted(Fault::OldMarks) {
                let all = self.leaf.tail_marks().iter().chain(&head.head_marks);
                all.for_each(|word| word.store(0, Relaxed));
            }
            head.mark.store(mark, Relaxed);
        }
        self.set_bit(bit, true);
    }

    /// Removes the mark of slot entry `i` of `n`, which is removed. The slot entries behind it move
    /// down by one; only the last one moves, to the place of `i`, if `last` is set.
    #[inline(always)]
    pub(super) fn remove_mark(&mut self, bucket: Bucket<'_>, i: usize, n: usize, last: bool) {
        // Ordering: Relaxed, see above.
        if self.leaf.head().mark.load(Relaxed) != 0 {
            self.move_marks(bucket, (i, n), last);
        }
    }

    /// The slow path of `remove_mark`, in a leaf that has had marks.
    #[inline(never)]
    fn move_marks(&mut self, bucket: Bucket<'_>, (i, n): (usize, usize), last: bool) {
        if planted(Fault::MovedMark) {
            return;
        }
        // Entries behind the first ones have no bit, and no mark.
        let is_set = |slot| {
            let bit = self.mark_bit((bucket, slot));
            bit.is_some_and(|bit| self.is_set(bit))
        };
        let set = |slot, to| {
            if let Some(bit) = self.mark_bit((bucket, slot)) {
                self.set_bit(bit, to);
            }
        };
        if last {
            set(i, is_set(n));
        } else {
            (i..n.min(self.leaf.head().marked as usize + 1)).for_each(|i| set(i, is_set(i + 1)));
        }
        set(n, false);
    }

    /// Clears the marks of a bucket, of which all slot entries are removed.
    #[inline(always)]
    pub(super) fn unmark(&mut self, bucket: Bucket<'_>) {
        // Ordering: Relaxed, see above.
        if self.leaf.head().mark.load(Relaxed) != 0 {
            self.clear_marks(bucket);
        }
    }

    /// The slow path of `unmark`, in a leaf that has had marks.
    #[inline(never)]
    fn clear_marks(&mut self, bucket: Bucket<'_>) {
        if planted(Fault::MovedMark) {
            return;
        }
        let marked = self.leaf.head().marked as usize;
        let mut bit = self.leaf.number(bucket) * marked;
        let end = bit + marked;
        while bit < end {
            // The bucket's bits in this word.
            let count = (64 - bit % 64).min(end - bit);
            let mask = u64::MAX >> (64 - count) << (bit % 64);
            let word = self.mark_word(bit);
            // Ordering: Relaxed, both, see above.
            word.store(word.load(Relaxed) & !mask, Relaxed);
            bit += count;
        }
    }
}

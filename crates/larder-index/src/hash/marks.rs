//! Marks of the entries of a leaf, for writes that keep one (`Unique::put_marked`).
//!
//! ```text
//!  head of the leaf    mark; 0: no entry has a mark
//!  after the buckets   bits of bucket 0 | bits of bucket 1 | … and the last bits in the head
//! ```
//!
//! Bucket b has `marked` bits, from bit b · `marked` on: one for each of its first slot entries.
//! There are at most 64 of them.
//!
//! Invariants:
//! * **H23** An entry has the leaf's mark if the bit of its slot entry is set. Entries after the
//!   first `marked` ones of a bucket never have a mark.
//! * **H24** The bits of slot entries that don't exist are clear. When a slot entry is removed, and
//!   others move, their bits move with them.
//! * **H25** All bits of a new leaf are clear.
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
    #[inline]
    fn mark_bit(&self, bucket: Bucket<'_>, slot: usize) -> Option<usize> {
        let marked = self.leaf.head().marked as usize;
        let bit = self.leaf.number(bucket) * marked + slot - 1;
        (slot <= marked).then_some(bit)
    }

    /// Whether a bit is set.
    #[inline]
    fn is_set(&self, bit: usize) -> bool {
        // Ordering: Relaxed, see above.
        self.mark_word(bit).load(Relaxed) >> (bit % 64) & 1 != 0
    }

    /// Sets or clears a bit.
    #[inline]
    fn set_bit(&self, bit: usize, is_set: bool) {
        let word = self.mark_word(bit);
        // Ordering: Relaxed, both, see above.
        let others = word.load(Relaxed) & !(1 << (bit % 64));
        word.store(others | u64::from(is_set) << (bit % 64), Relaxed);
    }

    /// The word with this bit.
    #[inline]
    fn mark_word(&self, bit: usize) -> &AtomicU64 {
        let (word, tail) = (bit / 64, self.leaf.tail_marks());
        match tail.get(word) {
            Some(word) => word,
            None => &self.leaf.head().head_marks[word - tail.len()],
        }
    }

    /// The mark of an entry; 0 if it has none.
    #[inline]
    pub(crate) fn mark(&self, hit: &Hit<'_>) -> u64 {
        // Ordering: Relaxed, see above.
        let mark = self.leaf.head().mark.load(Relaxed);
        if mark == 0 {
            return 0;
        }
        match self.mark_bit(hit.bucket, hit.slot) {
            Some(bit) if self.is_set(bit) => mark,
            _ => 0,
        }
    }

    /// Sets the mark of a slot entry, if it can have one. The mark is not 0.
    #[inline(never)]
    pub(crate) fn set_mark(&mut self, bucket: Bucket<'_>, slot: usize, mark: u64) {
        let Some(bit) = self.mark_bit(bucket, slot) else {
            return;
        };
        let head = self.leaf.head();
        // Ordering: Relaxed, here and below, see above.
        // A leaf has one mark. If this is another one, the entries with the old one lose theirs.
        if head.mark.load(Relaxed) != mark {
            if !planted(Fault::OldMarks) {
                let all = self.leaf.tail_marks().iter().chain(&head.head_marks);
                all.for_each(|word| word.store(0, Relaxed));
            }
            head.mark.store(mark, Relaxed);
        }
        self.set_bit(bit, true);
    }

    /// Removes the mark of slot entry `i` of `n`, which is removed. The slot entries after it move
    /// down by one; only the last one moves, to the place of `i`, if `last` is set.
    #[inline]
    pub(super) fn remove_mark(&mut self, bucket: Bucket<'_>, i: usize, n: usize, last: bool) {
        // Ordering: Relaxed, see above.
        if self.leaf.head().mark.load(Relaxed) != 0 {
            self.move_marks(bucket, i, n, last);
        }
    }

    /// The slow path of `remove_mark`, in a leaf that has had marks.
    #[inline(never)]
    fn move_marks(&mut self, bucket: Bucket<'_>, i: usize, n: usize, last: bool) {
        let marked = self.leaf.head().marked as usize;
        debug_assert!(!last || i < n);
        // Entries after the first ones have no bit, and no mark.
        if planted(Fault::MovedMark) || i > marked {
            return;
        }
        let bits = self.bits(bucket);
        // Bit `i - 1` is that of slot entry `i`. The last entry may have none.
        let (bit, top) = (1 << (i - 1), 1u64.checked_shl(n as u32 - 1).unwrap_or(0));
        // The last entry takes the place, with its mark or without. Or all bits after the removed
        // one move down.
        let moved = match last {
            true if bits & top != 0 => bits & !top | bit,
            true => bits & !bit,
            false => bits & (bit - 1) | bits >> 1 & !(bit - 1),
        };
        self.set_bits(bucket, moved);
    }

    /// The bits of a bucket.
    #[inline]
    fn bits(&self, bucket: Bucket<'_>) -> u64 {
        let marked = self.leaf.head().marked as usize;
        let first = self.leaf.number(bucket) * marked;
        let shift = first % 64;
        // Ordering: Relaxed, both, see above.
        let mut bits = self.mark_word(first).load(Relaxed) >> shift;
        // The bits of a bucket may lie in two words.
        if shift + marked > 64 {
            bits |= self.mark_word(first + 63).load(Relaxed) << (64 - shift);
        }
        bits & mask(marked)
    }

    /// Sets the bits of a bucket.
    #[inline]
    fn set_bits(&mut self, bucket: Bucket<'_>, bits: u64) {
        let marked = self.leaf.head().marked as usize;
        let first = self.leaf.number(bucket) * marked;
        let shift = first % 64;
        let set = |word: &AtomicU64, mask: u64, bits: u64| {
            // Ordering: Relaxed, both, see above.
            word.store(word.load(Relaxed) & !mask | bits, Relaxed);
        };
        let all = mask(marked);
        set(self.mark_word(first), all << shift, bits << shift);
        // The upper bits are in the next word.
        if shift + marked > 64 {
            let shift = 64 - shift;
            set(self.mark_word(first + 63), all >> shift, bits >> shift);
        }
    }

    /// Clears the marks of a bucket, of which all slot entries are removed.
    #[inline]
    pub(super) fn unmark(&mut self, bucket: Bucket<'_>) {
        // Ordering: Relaxed, see above.
        if self.leaf.head().mark.load(Relaxed) != 0 {
            self.clear_marks(bucket);
        }
    }

    /// The slow path of `unmark`, in a leaf that has had marks.
    #[inline(never)]
    fn clear_marks(&mut self, bucket: Bucket<'_>) {
        if !planted(Fault::MovedMark) && self.leaf.head().marked > 0 {
            self.set_bits(bucket, 0);
        }
    }
}

/// This number of bits, at least one.
#[inline]
fn mask(bits: usize) -> u64 {
    u64::MAX >> (64 - bits)
}

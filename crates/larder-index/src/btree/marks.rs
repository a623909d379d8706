//! Marks of the entries of a leaf, for writes that keep one (`Unique::put_marked`).
//!
//! ```text
//!  head of the leaf   mark (61 bits) | generation (3 bits), 1 to 7; 0: no entry has a mark
//!  slot               head | generation (3 bits) | offset of the record
//! ```
//!
//! Invariants:
//! * **B14** An entry has the leaf's mark if its slot has the leaf's generation, and this isn't 0.
//! * **B15** The generation of a slot moves with the slot, also when the leaf is compacted. A slot
//!   that is written for a new entry has generation 0.
//! * **B16** A leaf that is built of the entries of another one takes over its mark and the
//!   generations. All slots of other new leaves have generation 0.
//!
//! If the leaf gets another mark, it gets the next generation, so that no slot has to be changed.
//! After the last generation, all slots are set to generation 0.

use crate::btree::leaf::LockedTreeLeaf;
use crate::btree::search_key::{MARK_MASK, OFFSET_BITS};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{planted, Fault};

/// The number of bits of a generation.
const BITS: u32 = 3;
/// The last generation.
const LAST: u64 = (1 << BITS) - 1;
const _: () = assert!(MARK_MASK == LAST << OFFSET_BITS);

// Ordering, for all of this file: Relaxed. Only the lock's holder reads and writes marks.

impl LockedTreeLeaf<'_> {
    /// The mark of entry `i`; 0 if it has none.
    #[inline]
    pub(super) fn mark(&self, i: usize) -> u64 {
        // Ordering: Relaxed, both, see above.
        let leaf_mark = self.leaf.head().mark.load(Relaxed);
        let slot = self.leaf.words()[i].load(Relaxed);
        // Without a mark, both generations are 0, and so is the mark.
        if slot >> OFFSET_BITS & LAST == leaf_mark & LAST {
            leaf_mark >> BITS
        } else {
            0
        }
    }

    /// Sets the mark of entry `i`. It is not 0, and less than 2^61.
    pub(super) fn set_mark(&mut self, i: usize, mark: u64) {
        debug_assert!(mark != 0 && mark >> (64 - BITS) == 0);
        let (head, words) = (self.leaf.head(), self.leaf.words());
        // A reader may see the slot change. It ignores the generation.
        self.change();
        // Ordering: Relaxed, here and below, see above.
        let leaf_mark = head.mark.load(Relaxed);
        let mut generation = leaf_mark & LAST;
        // The leaf gets another mark: all entries with the old one lose it by the new generation
        // (B14).
        if leaf_mark >> BITS != mark {
            // There is no next generation. Begin anew, with no slot that has one.
            if generation == LAST {
                words[..self.len()].iter().for_each(unmark);
                generation = 0;
            }
            if generation == 0 || !planted(Fault::OldMarks) {
                generation += 1;
            }
            head.mark.store(mark << BITS | generation, Relaxed);
        }
        // The entry has the leaf's mark now.
        let slot = words[i].load(Relaxed);
        words[i].store(slot & !MARK_MASK | generation << OFFSET_BITS, Relaxed);
    }
}

/// Sets a slot to generation 0.
fn unmark(slot: &AtomicU64) {
    // Ordering: Relaxed, both, see above.
    slot.store(slot.load(Relaxed) & !MARK_MASK, Relaxed);
}

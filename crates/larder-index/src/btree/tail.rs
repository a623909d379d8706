//! The tail of a B+-tree: its last leaf, which inserts at the end find without a descent.
//!
//! The range of the last leaf has no upper end, as long as the leaf isn't obsolete. So a position
//! above at least one of its entries is in its range. If a thread has locked the tail, and the tail
//! isn't obsolete, and its last entry is below the position, it is the right leaf.
//!
//! 1. A leaf becomes the tail when it is new, if it has no upper fence and inserts append to it
//!    (`Tail::set`, under `InnerLevels::changing`).
//! 2. It stops being the tail before it is retired (`Tail::forget`).
//! 3. The tail is unset after [`MOST_MISSES`] searches in a row for positions that aren't above all
//!    of its entries.

use crate::btree::leaf::TreeLeaf;
use crate::btree::node::InnerNode;
use crate::btree::search_key::{eight, SearchKey};
use crate::btree::slot::{ChildAddress, ChildSlot, TreeChild};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crossbeam_epoch::Guard;

/// The tail is unset after this number of misses in a row. A miss is a search for a position that
/// isn't above all entries of the tail.
const MOST_MISSES: u32 = 16;

/// The last leaf while inserts append to it, or nothing.
pub(super) struct Tail {
    leaf: ChildSlot<InnerNode>,
    /// The first eight bytes of the lower fence of the tail. Lower positions needn't look at the
    /// tail. This is a hint: it may be that of an earlier tail, since the comparison with the
    /// tail's last entry decides.
    low: AtomicU64,
    /// The number of misses in a row. Concurrent updates may be lost.
    misses: AtomicU32,
}

impl Default for Tail {
    fn default() -> Self {
        Tail {
            leaf: ChildSlot::unset(),
            low: AtomicU64::new(0),
            misses: AtomicU32::new(0),
        }
    }
}

impl Tail {
    /// Makes a new leaf the tail. `low` is its lower fence. The caller holds `changing`.
    pub(super) fn set(&self, leaf: ChildAddress<InnerNode>, low: Option<&[u8]>) {
        // Ordering: Relaxed, both: hints; see the fields.
        self.low.store(low.map_or(0, |low| eight(low, 0)), Relaxed);
        self.misses.store(0, Relaxed);
        self.leaf.store(leaf);
    }

    /// Unsets the tail if it is this leaf, which is about to be retired.
    pub(super) fn forget(&self, leaf: TreeLeaf<'_>) {
        if self.leaf.address() == Some(ChildAddress::of_leaf(leaf)) {
            self.leaf.unset_now();
        }
    }

    /// The tail, if there is one and the position may be in its range. It may be obsolete.
    #[inline]
    pub(super) fn find<'g>(
        &self,
        position: SearchKey<'_>,
        guard: &'g Guard,
    ) -> Option<TreeLeaf<'g>> {
        // Ordering: Relaxed, a hint.
        // A position below the tail's lower fence is in another leaf. The tail isn't touched then.
        if position.first() < self.low.load(Relaxed) {
            return None;
        }
        match self.leaf.load_if_set(guard) {
            Some(TreeChild::Leaf(leaf)) => Some(leaf),
            _ => None,
        }
    }

    /// Counts a miss. Unsets the tail after [`MOST_MISSES`] in a row.
    pub(super) fn record_miss(&self) {
        // Ordering: Relaxed, all: a hint, of which some may be lost.
        let missed = self.misses.load(Relaxed) + 1;
        if missed < MOST_MISSES {
            self.misses.store(missed, Relaxed);
        } else {
            self.misses.store(0, Relaxed);
            self.leaf.unset_now();
        }
    }

    /// Ends a series of misses.
    #[inline]
    pub(super) fn record_hit(&self) {
        // Ordering: Relaxed, both: as above.
        if self.misses.load(Relaxed) != 0 {
            self.misses.store(0, Relaxed);
        }
    }
}

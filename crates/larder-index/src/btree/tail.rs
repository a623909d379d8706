//! The tail of a B+-tree: its last leaf, which inserts at the end find without the path to it.
//!
//! What is above any of the last leaf's entries is in its range, which has no end, and stays so
//! while the leaf isn't obsolete. So a thread that locks the tail, and sees that it isn't obsolete
//! and that its last entry is below the position, has the right leaf.
//!
//! 1. A leaf becomes the tail when it is new, has no upper fence, and inserts go up at its end
//!    (`Tail::set`, under `InnerLevels::changing`).
//! 2. It is the tail no more before it is retired (`Tail::forget`).
//! 3. [`MOST_MISSES`] searches in a row that belonged elsewhere unset it.

use crate::btree::leaf::TreeLeaf;
use crate::btree::node::InnerNode;
use crate::btree::search_key::{eight, SearchKey};
use crate::btree::slot::{ChildAddress, ChildSlot, TreeChild};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crossbeam_epoch::Guard;

/// The tail is unset after so many misses in a row: positions that were not above all its entries.
const MOST_MISSES: u32 = 16;

/// The last leaf while inserts go on at its end, or nothing.
pub(super) struct Tail {
    leaf: ChildSlot<InnerNode>,
    /// The first eight bytes of the position that the tail's range begins at: lower positions need
    /// not look at the tail. A hint. If it is that of an earlier tail, the comparison with the
    /// tail's last entry still decides.
    low: AtomicU64,
    /// Misses in a row. A few may be lost, as threads don't wait for each other here.
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
    /// Inserts go on at the end of this leaf, whose range begins there. The caller holds
    /// `changing`, and the leaf is new.
    pub(super) fn set(&self, leaf: ChildAddress<InnerNode>, low: Option<&[u8]>) {
        // Ordering: Relaxed, both: hints, see there.
        self.low.store(low.map_or(0, |low| eight(low, 0)), Relaxed);
        self.misses.store(0, Relaxed);
        self.leaf.store(leaf);
    }

    /// The leaf is about to be retired.
    pub(super) fn forget(&self, leaf: TreeLeaf<'_>) {
        if self.leaf.address() == Some(ChildAddress::of_leaf(leaf)) {
            self.leaf.unset_now();
        }
    }

    /// The last leaf, if inserts go on at its end as far as is known, and if the position may
    /// belong there. It may be obsolete.
    #[inline]
    pub(super) fn find<'g>(
        &self,
        position: SearchKey<'_>,
        guard: &'g Guard,
    ) -> Option<TreeLeaf<'g>> {
        // Ordering: Relaxed, a hint.
        if position.first() < self.low.load(Relaxed) {
            return None;
        }
        match self.leaf.load_if_set(guard) {
            Some(TreeChild::Leaf(leaf)) => Some(leaf),
            _ => None,
        }
    }

    /// A miss: the position did not belong at the tail's end. After [`MOST_MISSES`] in a row there
    /// is no tail.
    pub(super) fn missed(&self) {
        // Ordering: Relaxed, all: a hint, of which some may be lost.
        let missed = self.misses.load(Relaxed) + 1;
        if missed < MOST_MISSES {
            self.misses.store(missed, Relaxed);
        } else {
            self.misses.store(0, Relaxed);
            self.leaf.unset_now();
        }
    }

    /// The position belonged at the tail's end.
    #[inline]
    pub(super) fn hit(&self) {
        // Ordering: Relaxed, both: as above.
        if self.misses.load(Relaxed) != 0 {
            self.misses.store(0, Relaxed);
        }
    }
}

//! Invalidating the counts on the path to a leaf, when its number of entries changes (`counts`).

use crate::btree::inner::{InnerLevels, TreePath};
use crate::btree::leaf::LockedTreeLeaf;
use crate::btree::search_key::SearchKey;
use crate::sync::{planted, Fault};
use crossbeam_epoch::Guard;

/// Sets the stale bits of a path, from the leaf up (C2).
pub(super) fn set_stale_bits(path: &TreePath<'_>) {
    for parent in path.iter().rev() {
        // A node without counts has no valid count that could become stale.
        if let Some(counts) = parent.node.counts() {
            counts.set_stale(parent.child);
        }
    }
}

impl InnerLevels {
    /// Marks the counts of a locked leaf, and of all nodes on the path to it, as stale. The number
    /// of its entries has changed, or is about to. The position is in the leaf's range.
    ///
    /// Meanwhile another thread may replace nodes of the path. If it copies a bit before this
    /// thread has set it, the bit is lost. It increments the sequence number of replacements before
    /// it copies. So if the number is the same before and after the bits are set, none was lost.
    /// Otherwise this thread sets them again under `changing`, when no node can be replaced. Locks
    /// are taken in the same order as by a split: first the leaf's, then `changing`.
    #[cold]
    #[inline(never)]
    pub(super) fn mark_counts_stale(
        &self,
        leaf: &LockedTreeLeaf<'_>,
        position: SearchKey<'_>,
        guard: &Guard,
    ) {
        if planted(Fault::Uncounted) {
            return;
        }
        // The leaf itself remembers, too, so that the next change of it needs no descent.
        leaf.set_counted(false);
        let set_bits = || set_stale_bits(&self.path(guard, |node| node.child_for(position)).0);
        // An odd number says that a change of structure is in progress.
        let seq = self.counting.structure_seq();
        if seq.is_multiple_of(2) {
            set_bits();
            if self.counting.structure_seq() == seq {
                return;
            }
        }
        let _changing = self.changing.lock();
        set_bits();
    }
}

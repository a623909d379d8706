//! How a writer says that the counts on the path to a leaf are stale (see `counts`).

use crate::btree::inner::{InnerLevels, TreePath};
use crate::btree::leaf::LockedTreeLeaf;
use crate::btree::search_key::SearchKey;
use crate::sync::{planted, Fault};
use crossbeam_epoch::Guard;

/// Sets the stale bits of a path, from the leaf up (invariant 2).
pub(super) fn mark_path(path: &TreePath<'_>) {
    for step in path.iter().rev() {
        // A node without counts knows none: all of its children are stale.
        if let Some(counts) = step.node.counts() {
            counts.mark(step.child);
        }
    }
}

impl InnerLevels {
    /// The node above a locked leaf has no valid count of it from now on: the number of entries has
    /// changed, or is about to. The position lies in the leaf's range.
    ///
    /// Nodes of the path may be replaced meanwhile. If the shape is the same before the marks and
    /// after them, none was: a replacement that had copied a bit before it was set would have
    /// changed the shape before, and this thread would see it. Else the marks are made again under
    /// `changing`. The order of locks is that of a split.
    #[cold]
    #[inline(never)]
    pub(super) fn uncount(
        &self,
        leaf: &LockedTreeLeaf<'_>,
        position: SearchKey<'_>,
        guard: &Guard,
    ) {
        if planted(Fault::Uncounted) {
            return;
        }
        leaf.set_counted(false);
        let mark = || mark_path(&self.path(guard, |node| node.child_of(position, false)).0);
        let shape = self.counting.shape();
        if shape.is_multiple_of(2) {
            mark();
            if self.counting.shape() == shape {
                return;
            }
        }
        let _changing = self.changing.lock();
        mark();
    }
}

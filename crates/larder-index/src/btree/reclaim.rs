//! Step 4 of a write of the B+-tree (`write`): a leaf from which much was removed gives its memory
//! back.
//!
//! ```text
//!  shrink   │ss······················rr│            →  │ss··rr│       the same range, fewer bytes
//!
//!  merge    │ss··rr│ and its neighbour │sss··rrr│   →  │sssss··rrrrr│   the range of both
//! ```
//!
//! 1. A leaf is *sparse* if it has fewer live bytes than a quarter of the largest size. Other
//!    leaves stay as they are.
//! 2. Shrink it, if a smaller leaf would do, and lock its successor.
//! 3. Merge it with a neighbour under the same node, as long as both fit in half a leaf and the
//!    merged leaf is sparse, too (`restructure`).
//!
//! Leaves grow and split far above these bounds, so that none is shrunk or merged only to grow
//! again.

use super::BPlusTree;
use crate::btree::entries::with_entries;
use crate::btree::leaf::LockedTreeLeaf;
use crate::btree::search_key::SearchKey;
use crossbeam_epoch::Guard;

impl BPlusTree {
    /// Whether a leaf has so few live bytes that it is merged.
    #[inline]
    pub(super) fn is_sparse(&self, leaf: &LockedTreeLeaf<'_>) -> bool {
        leaf.live_bytes() < self.shared.config.most / 4
    }

    /// Whether a leaf is replaced by a smaller one: it is less than a quarter full, and a smaller
    /// size class would do. A small leaf stays as it is: a table that is emptied and filled again
    /// and again would otherwise allocate two new leaves each time.
    fn is_oversized(&self, leaf: &LockedTreeLeaf<'_>) -> bool {
        let (live_bytes, capacity) = (leaf.live_bytes(), leaf.leaf().capacity());
        let config = &self.shared.config;
        capacity > config.most / 8
            && live_bytes < capacity / 4
            && config.capacity_for(live_bytes, live_bytes, leaf.leaf().prefix_len()) < capacity
    }

    /// Replaces the leaf by a smaller one, or merges it with a neighbour, or both. Takes the lock.
    pub(super) fn reclaim_space<'g>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'_>,
        mut leaf: LockedTreeLeaf<'g>,
    ) {
        let is_sparse = self.is_sparse(&leaf);
        if self.is_oversized(&leaf) {
            // (2) The new leaf is unlocked when it is published.
            self.shrink(guard, key, leaf);
            // Lock it again for the merge. If another writer holds it by now, leave the merge to a
            // later removal.
            match self.inner.find(key, guard).try_lock() {
                Ok(Some(next)) => leaf = next,
                _ => return,
            }
        }
        // (3) Others may have written to the new leaf since. `merge` checks again.
        if is_sparse {
            self.merge(guard, key, leaf);
        }
    }

    /// Replaces the leaf by one with the same range and entries that is no larger than needed.
    fn shrink(&self, guard: &Guard, key: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        let (config, need) = (&self.shared.config, leaf.live_bytes());
        let capacity = config.capacity_for(need, need, leaf.leaf().prefix_len());
        // `entries` refers to the old leaf, which stays locked until `replace` has copied them.
        with_entries(|entries| {
            entries.collect(&leaf);
            let prefix = leaf.leaf().prefix_and_fences();
            self.replace(guard, key, leaf, entries, &prefix, capacity);
        });
    }

    /// Merges the leaf with a neighbour, and repeats this with the merged leaf while it is sparse.
    fn merge<'g>(&self, guard: &'g Guard, key: SearchKey<'_>, mut leaf: LockedTreeLeaf<'g>) {
        // Each iteration locks the leaf that the previous merge has published.
        while self.inner.merge(&self.shared, leaf, key, guard) {
            match self.inner.find(key, guard).try_lock() {
                Ok(Some(next)) if self.is_sparse(&next) => leaf = next,
                _ => return,
            }
        }
    }
}

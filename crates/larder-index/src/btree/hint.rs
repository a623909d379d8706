//! Where a read has found an entry: a hint for a write under the same key, which needs no search
//! then.
//!
//! 1. A read notes the leaf, the version that it has validated, and the number of the slot.
//! 2. A write locks that leaf if it still has that version. It is then not obsolete, nothing in it
//!    has changed, and the entry is in that slot.
//! 3. If the version is another one, the write searches for the key as usual.
//!
//! The guard that was pinned for the read is still pinned at the write, so the memory of the tree
//! and of the leaf is not reused in between. That read and write have the same key is up to the
//! caller.

use crate::btree::leaf::{LockedTreeLeaf, TreeLeaf};
use crate::btree::record::Record;

/// Where a lookup has found a value ([`Unique::find_short`](crate::Unique::find_short)), or
/// nothing. A write to another index ignores it.
#[derive(Clone, Copy, Default)]
pub struct Hint<'g>(Option<Spot<'g>>);

#[derive(Clone, Copy)]
struct Spot<'g> {
    /// The address of the tree.
    tree: usize,
    leaf: TreeLeaf<'g>,
    version: u64,
    i: usize,
    record: Record,
}

impl<'g> Hint<'g> {
    /// Step 1: entry `i` of a leaf of the tree at this address, as of this version.
    #[inline]
    pub(super) fn new(
        tree: usize,
        (leaf, version): (TreeLeaf<'g>, u64),
        i: usize,
        record: Record,
    ) -> Self {
        Hint(Some(Spot {
            tree,
            leaf,
            version,
            i,
            record,
        }))
    }

    /// Step 2: locks the leaf, and returns the number and the record of the entry. `None` if the
    /// hint is of another tree, or the leaf has changed.
    #[inline]
    pub(super) fn lock(self, tree: usize) -> Option<(LockedTreeLeaf<'g>, usize, Record)> {
        let spot = self.0.filter(|spot| spot.tree == tree)?;
        let leaf = spot.leaf.try_lock_at(spot.version)?;
        Some((leaf, spot.i, spot.record))
    }
}

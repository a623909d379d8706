//! Where a read has found an entry: a hint for a write under the same key, which needs no search
//! then.
//!
//! 1. A read notes the leaf, the version that it has validated, and the place of the entry.
//! 2. A write locks that leaf if it still has that version. It is then not obsolete, nothing in it
//!    has changed, and the entry is in that place.
//! 3. If the version is another one, the write searches for the key as usual.
//!
//! A hint may also say only which leaf's range has the key. The range of a leaf never changes, so
//! an insert needs no descent while that leaf isn't obsolete.
//!
//! The guard that was pinned for the read is still pinned at the write, so the memory of the index
//! and of the leaf is not reused in between. That read and write have the same key is up to the
//! caller.

use crate::btree::leaf::{LockedTreeLeaf, TreeLeaf};
use crate::btree::record::Record;
use crate::hash::bucket::Home;
use crate::hash::hit::Hit;
use crate::hash::leaf::{HashLeaf, LockedHashLeaf};

/// Where a lookup has found a value ([`Unique::get_with_hint`](crate::Unique::get_with_hint)), or
/// nothing. A write to another index ignores it.
#[derive(Clone, Copy, Default)]
pub struct Hint<'g>(HintedPlace<'g>);

#[derive(Clone, Copy, Default)]
enum HintedPlace<'g> {
    #[default]
    None,
    /// In the range of a leaf of the tree at this address.
    Leaf { tree: usize, leaf: TreeLeaf<'g> },
    /// Entry `i` of a leaf of the tree at this address.
    Tree {
        tree: usize,
        leaf: TreeLeaf<'g>,
        version: u64,
        i: usize,
        record: Record,
    },
    /// An entry of a leaf of the index in hash order that has this number.
    Hash {
        index: u64,
        leaf: HashLeaf<'g>,
        version: u64,
        home: Home<'g>,
        hit: Hit<'g>,
    },
}

impl<'g> Hint<'g> {
    /// Step 1: entry `i` of a leaf of the tree at this address, as of this version.
    #[inline]
    pub(crate) fn of_tree(
        tree: usize,
        leaf: TreeLeaf<'g>,
        version: u64,
        i: usize,
        record: Record,
    ) -> Self {
        Hint(HintedPlace::Tree {
            tree,
            leaf,
            version,
            i,
            record,
        })
    }

    /// The leaf of the tree at this address whose range has the key.
    #[inline]
    pub(crate) fn of_leaf(tree: usize, leaf: TreeLeaf<'g>) -> Self {
        Hint(HintedPlace::Leaf { tree, leaf })
    }

    /// The leaf whose range has the key, if the hint says only that, of the tree at this address.
    #[inline]
    pub(crate) fn leaf(&self, tree: usize) -> Option<TreeLeaf<'g>> {
        match self.0 {
            HintedPlace::Leaf { tree: of, leaf } if of == tree => Some(leaf),
            _ => None,
        }
    }

    /// Whether both are of one leaf of one tree, as of one version. If so, and the guard has been
    /// pinned since the first, no entry of the leaf has changed in between. `false` for hints that
    /// say nothing, and for those of an index in hash order.
    pub fn is_same(&self, other: &Hint<'g>) -> bool {
        match (self.0, other.0) {
            (
                HintedPlace::Tree {
                    tree,
                    leaf,
                    version,
                    ..
                },
                HintedPlace::Tree {
                    tree: other_tree,
                    leaf: other_leaf,
                    version: other_version,
                    ..
                },
            ) => leaf.is(other_leaf) && (tree, version) == (other_tree, other_version),
            _ => false,
        }
    }

    /// Step 2: locks the leaf, and returns the number and the record of the entry. `None` if the
    /// hint is of another index, or the leaf has changed.
    #[inline]
    pub(crate) fn lock_tree(&self, tree: usize) -> Option<(LockedTreeLeaf<'g>, usize, Record)> {
        match self.0 {
            HintedPlace::Tree {
                tree: of,
                leaf,
                version,
                i,
                record,
            } if of == tree => Some((leaf.try_lock_at(version)?, i, record)),
            _ => None,
        }
    }

    /// Step 1: an entry of a leaf of the index of this number, as of this version.
    #[inline]
    pub(crate) fn of_hash(
        index: u64,
        leaf: HashLeaf<'g>,
        version: u64,
        home: Home<'g>,
        hit: Hit<'g>,
    ) -> Self {
        Hint(HintedPlace::Hash {
            index,
            leaf,
            version,
            home,
            hit,
        })
    }

    /// Step 2: as `lock_tree`; returns the entry and its home. Returns a reference: copying the
    /// hint so soon after it was written would stall on store forwarding.
    #[inline]
    pub(crate) fn lock_hash(&self, index: u64) -> Option<(LockedHashLeaf<'g>, Home<'g>, &Hit<'g>)> {
        match &self.0 {
            HintedPlace::Hash {
                index: of,
                leaf,
                version,
                home,
                hit,
            } if *of == index => Some((leaf.try_lock_at(*version)?, *home, hit)),
            _ => None,
        }
    }
}

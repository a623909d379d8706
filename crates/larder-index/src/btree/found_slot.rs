//! The slot in which a write finds the entry at a position, in a leaf that it has locked.

use crate::btree::leaf::LockedTreeLeaf;
use crate::btree::record::Record;
use crate::btree::search_key::SearchKey;
use crate::contention::UNCONTENDED;

/// The slot in which the entry at a position is, or would be inserted.
pub(super) struct FoundSlot<'a> {
    pub(super) key: SearchKey<'a>,
    /// The position's head: the five bytes after the leaf's prefix that its slot stores.
    pub(super) head: u64,
    /// The position without the leaf's prefix.
    pub(super) suffix: &'a [u8],
    /// The number of its slot.
    pub(super) i: usize,
    /// The entry's record, if the entry is present.
    pub(super) record: Option<Record>,
}

impl<'a> FoundSlot<'a> {
    #[inline]
    pub(super) fn new(
        key: SearchKey<'a>,
        leaf: &LockedTreeLeaf<'_>,
        i: usize,
        record: Option<Record>,
    ) -> Self {
        // If the position doesn't begin with the prefix, it has neither head nor suffix in this
        // leaf. It has no record either, and `put_at` then doesn't use them.
        let prefix = leaf.leaf().prefix_len();
        FoundSlot {
            key,
            head: key.head(prefix),
            suffix: key.suffix(prefix).unwrap_or(&[]),
            i,
            record,
        }
    }

    /// The number of the entry at the position, if there is one.
    #[inline]
    pub(super) fn entry(&self) -> Option<usize> {
        self.record.is_some().then_some(self.i)
    }

    /// The value at the position, if there is one. It borrows the leaf, so the leaf can't be
    /// written to meanwhile.
    #[inline]
    pub(super) fn value<'l>(&self, leaf: &'l LockedTreeLeaf<'_>) -> Option<&'l [u8]> {
        let record = self.record.as_ref();
        record.map(|record| leaf.value(self.i, record))
    }
}

/// A locked leaf, and the slot of a position in it.
pub(super) struct LockedSlot<'g, 'p> {
    pub(super) leaf: LockedTreeLeaf<'g>,
    pub(super) slot: FoundSlot<'p>,
    /// The leaf's contention counter.
    pub(super) contention: i32,
}

impl<'g, 'p> LockedSlot<'g, 'p> {
    /// Slot `i` of a leaf whose lock was free.
    #[inline(always)]
    pub(super) fn uncontended(
        mut leaf: LockedTreeLeaf<'g>,
        key: SearchKey<'p>,
        i: usize,
        record: Option<Record>,
    ) -> Self {
        let contention = leaf.add_contention(UNCONTENDED);
        let slot = FoundSlot::new(key, &leaf, i, record);
        LockedSlot {
            leaf,
            slot,
            contention,
        }
    }
}

//! Where a value goes: into its leaf, or into an outside object.

use crate::btree::found_slot::FoundSlot;
use crate::btree::leaf::LockedTreeLeaf;
use crate::btree::locked::lives_outside;
use crate::btree::record::StoredValue;
use crate::btree::search_key::SearchKey;
use crate::btree::BPlusTree;
use crate::outside::{Handle, Outside};
use crossbeam_epoch::Guard;
use std::ops::Range;

impl BPlusTree {
    /// The stored form of a value: the value itself, or the handle of a new outside object.
    /// `suffix` is the length of the position after the leaf's prefix.
    #[inline(always)]
    pub(super) fn store_value<'v>(
        &self,
        key: SearchKey<'_>,
        suffix: usize,
        value: &'v [u8],
    ) -> StoredValue<'v> {
        match lives_outside(suffix, value.len(), self.shared.config.most) {
            true => StoredValue::Outside(self.outside_of(key, value)),
            false => StoredValue::Inline(value),
        }
    }

    /// A new outside object with this value.
    #[inline(never)]
    fn outside_of(&self, key: SearchKey<'_>, value: &[u8]) -> Handle {
        let (handle, bytes) = Handle::new(key.bytes(), value);
        self.shared.counters.add_bytes(bytes as isize);
        handle
    }

    /// A new outside object like `old`, with `new` in place of a part of its value. `None` if its
    /// value must go into the leaf. Its bytes aren't counted.
    #[inline(never)]
    pub(super) fn spliced(
        &self,
        suffix: usize,
        old: Outside<'_>,
        part: Range<usize>,
        new: &[u8],
    ) -> Option<Handle> {
        let len = old.value().len() - part.len() + new.len();
        lives_outside(suffix, len, self.shared.config.most)
            .then(|| Handle::spliced(old, part, new).0)
    }

    /// Replaces the outside object of a slot by a new one, whose bytes aren't counted yet, and
    /// retires the old one.
    #[inline(never)]
    pub(super) fn replace_object(
        &self,
        guard: &Guard,
        slot: &FoundSlot<'_>,
        mut leaf: LockedTreeLeaf<'_>,
        contention: i32,
        new: Handle,
    ) {
        // (3) The entry has had a handle, and gets another one (O2).
        let old = slot.record.and_then(|record| leaf.set_handle(&record, new));
        let bytes = leaf.outside(new).memory();
        self.finish_in_place(guard, slot, leaf, contention);
        // (6) Readers may still be reading the old object. The epoch keeps it alive.
        if let Some(old) = old {
            self.shared.retire_replaced(guard, old, bytes);
        }
    }
}

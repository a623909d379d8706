//! Where a value goes: into its leaf, or into an outside object.

use crate::btree::locked::lives_outside;
use crate::btree::record::StoredValue;
use crate::btree::search_key::SearchKey;
use crate::btree::BPlusTree;
use crate::outside::Handle;

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
            true => StoredValue::Outside(self.outside_of(key, &[value])),
            false => StoredValue::Inline(value),
        }
    }

    /// A new outside object with a value of these parts. `None` if it must go into the leaf.
    #[inline(never)]
    pub(super) fn outside_or_none(
        &self,
        key: SearchKey<'_>,
        suffix: usize,
        value: &[&[u8]],
    ) -> Option<Handle> {
        let len = value.iter().map(|part| part.len()).sum();
        lives_outside(suffix, len, self.shared.config.most).then(|| self.outside_of(key, value))
    }

    /// A new outside object with a value of these parts.
    #[inline(never)]
    fn outside_of(&self, key: SearchKey<'_>, value: &[&[u8]]) -> Handle {
        let (handle, bytes) = Handle::of_parts(key.bytes(), value);
        self.shared.counters.add_bytes(bytes as isize);
        handle
    }
}

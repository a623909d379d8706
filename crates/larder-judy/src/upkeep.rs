//! What every array can do with itself as a whole.

/// The methods of an array that its tree does: `upkeep!(FIELD, STATISTICS, ABOUT free_some)`.
macro_rules! upkeep {
    ($tree:ident, $stats:ty, $free_some:literal) => {
        /// Removes everything. Visits every node.
        pub fn clear(&mut self) {
            self.$tree.clear();
        }

        /// Removes everything, and leaves the memory to be given back by
        /// [`free_some`](Self::free_some), or by `drop`. The array is empty at once and can be
        /// used. O(1).
        pub fn clear_later(&mut self) {
            self.$tree.clear_later();
        }

        #[doc = $free_some]
        pub fn free_some(&mut self, limit: usize) -> bool {
            self.$tree.free_some(limit)
        }

        /// The bytes that the array's nodes take, exactly, with those that wait to be given back.
        /// O(1).
        pub fn memory_used(&self) -> usize {
            self.$tree.memory_used()
        }

        /// Which nodes the array is made of. Visits every node.
        pub fn stats(&self) -> $stats {
            self.$tree.stats()
        }

        #[cfg(test)]
        pub(crate) fn check(&self) {
            self.$tree.check();
        }
    };
}

/// What reads an array of words: `reads!(ITEM, what makes one of what is found)`.
macro_rules! reads {
    ($item:ty, $made:path) => {
        /// How many indexes there are. O(1).
        pub fn len(&self) -> u64 {
            self.tree.len()
        }

        /// Whether there are none. O(1).
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// Whether an index is there.
        #[inline]
        pub fn contains(&self, key: u64) -> bool {
            self.tree.get(key).is_some()
        }

        /// The least index.
        pub fn first(&self) -> Option<$item> {
            self.at_or_after(0)
        }

        /// The greatest index.
        pub fn last(&self) -> Option<$item> {
            self.at_or_before(u64::MAX)
        }

        /// The least index not below `key`.
        #[inline]
        pub fn at_or_after(&self, key: u64) -> Option<$item> {
            self.tree.seek::<true>(key).map($made)
        }

        /// The least index above `key`.
        #[inline]
        pub fn after(&self, key: u64) -> Option<$item> {
            self.tree.beyond::<true>(key).map($made)
        }

        /// The greatest index not above `key`.
        #[inline]
        pub fn at_or_before(&self, key: u64) -> Option<$item> {
            self.tree.seek::<false>(key).map($made)
        }

        /// The greatest index below `key`.
        #[inline]
        pub fn before(&self, key: u64) -> Option<$item> {
            self.tree.beyond::<false>(key).map($made)
        }

        /// The least missing index not below `key`. Full subtrees are passed over: O(256 W).
        pub fn empty_at_or_after(&self, key: u64) -> Option<u64> {
            self.tree.empty::<true>(key)
        }

        /// The least missing index above `key`. O(256 W).
        pub fn empty_after(&self, key: u64) -> Option<u64> {
            self.tree.empty_beyond::<true>(key)
        }

        /// The greatest missing index not above `key`. O(256 W).
        pub fn empty_at_or_before(&self, key: u64) -> Option<u64> {
            self.tree.empty::<false>(key)
        }

        /// The greatest missing index below `key`. O(256 W).
        pub fn empty_before(&self, key: u64) -> Option<u64> {
            self.tree.empty_beyond::<false>(key)
        }

        /// How many indexes there are in a range, by adding up the counts of whole subtrees. O(128
        /// W).
        pub fn count(&self, range: impl std::ops::RangeBounds<u64>) -> u64 {
            self.tree.count(range)
        }

        /// The index that has `n` indexes below it. O(256 W).
        pub fn nth(&self, n: u64) -> Option<$item> {
            self.tree.nth(n).map($made)
        }

        /// All indexes in order.
        pub fn iter(&self) -> impl Iterator<Item = $item> + '_ {
            self.iter_from(0)
        }

        /// The indexes from `key` on, in order.
        pub fn iter_from(&self, key: u64) -> impl Iterator<Item = $item> + '_ {
            let mut cursor = self.tree.cursor::<true>(key);
            std::iter::from_fn(move || cursor.step().map($made))
        }

        /// The indexes from `key` downwards, the greatest first.
        pub fn iter_down_from(&self, key: u64) -> impl Iterator<Item = $item> + '_ {
            let mut cursor = self.tree.cursor::<false>(key);
            std::iter::from_fn(move || cursor.step().map($made))
        }
    };
}

/// An empty array, and arrays made of what an iterator gives: `made_of!(ARRAY, ITEM, |array, item|
/// what puts it in)`.
macro_rules! made_of {
    ($array:ident, $item:ty, $put:expr) => {
        impl Default for $array {
            fn default() -> Self {
                Self::new()
            }
        }

        impl Extend<$item> for $array {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, items: I) {
                let put: fn(&mut $array, $item) = $put;
                items.into_iter().for_each(|item| put(self, item));
            }
        }

        impl FromIterator<$item> for $array {
            fn from_iter<I: IntoIterator<Item = $item>>(items: I) -> Self {
                let mut array = Self::new();
                array.extend(items);
                array
            }
        }
    };
}

pub(crate) use {made_of, reads, upkeep};

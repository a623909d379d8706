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

/// The iterators of an array of words: `walks!(ITEM, what makes one of a cursor's step)`.
macro_rules! walks {
    ($item:ty, $made:path) => {
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

pub(crate) use {made_of, upkeep, walks};

//! Several keys at a time, so that the waits for memory of their operations overlap.

use crate::table::Table;
use larder_index::{Key, TOGETHER};

/// Objects from which on it pays to go the way to a tree's leaves twice, the first time for the
/// sake of memory, before they are read: below, all is near enough. Measured with integers and with
/// tuples of 20 bytes as keys, ordered_sets and bags: at 64,000 objects a lookup took 1.1 to 1.4
/// times as long, at a million 0.7 to 0.9 times.
pub(crate) const MANY_TO_READ: usize = 1 << 18;
/// Before they are written, always. A list would go into a table of 64,000 rows in 0.8 of the time
/// without, and into one of four million in the same; but a list in order went in so quickly that
/// the pages that it needed were cleared while it waited, 5 ms each, and not ahead of it.
pub(crate) const MANY_TO_WRITE: usize = 0;

/// Index keys, end to end.
#[derive(Default)]
pub struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the list, keeping its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds an index key of the table that the list is for.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of memory that the list has taken.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Key `i`.
    ///
    /// # Panics
    /// Panics if there are not so many.
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[i]]
    }
}

/// Some neighbouring keys of a list, with their hashes.
pub(crate) struct Near<'k> {
    keys: [Key<'k>; TOGETHER],
    count: usize,
}

impl<'k> Near<'k> {
    pub(crate) fn new() -> Self {
        let none = Key {
            bytes: &[],
            hash: 0,
        };
        Near {
            keys: [none; TOGETHER],
            count: 0,
        }
    }

    /// Those from `from` on.
    pub(crate) fn fill(&mut self, table: &Table, list: &'k KeyList, from: usize) {
        self.fill_with(table, list.len() - from, |i| list.get(from + i));
    }

    /// At most `left` keys, each as `key` gives it by its number from 0.
    pub(crate) fn fill_with(
        &mut self,
        table: &Table,
        left: usize,
        key: impl Fn(usize) -> &'k [u8],
    ) {
        self.count = left.min(TOGETHER);
        for (i, place) in self.keys[..self.count].iter_mut().enumerate() {
            *place = table.key(key(i));
        }
    }

    /// They.
    pub(crate) fn keys(&self) -> &[Key<'k>] {
        &self.keys[..self.count]
    }
}

//! Index keys: encoding terms as a table's keys, and batches of keys, whose cache misses overlap.

use larder_index::{Key, MAX_KEYS_PER_LOOKUP};
use larder_term::hash::Seed;
use larder_term::object::{KeyForm, ObjectBuf, ObjectEncoder};
use larder_term::{Encoder, Mode, TermRef};
use smallvec::SmallVec;

/// An index key with its hash. An ordered index doesn't use the hash, so it isn't computed.
#[inline]
pub(crate) fn with_hash<'k>(seed: &Seed, is_ordered: bool, bytes: &'k [u8]) -> Key<'k> {
    let hash = if is_ordered { 0 } else { seed.hash(bytes) };
    Key { bytes, hash }
}

/// The hash of an index key. Keys of an ordered index come without one, and are hashed here.
#[inline]
pub(crate) fn hash_of(seed: &Seed, is_ordered: bool, key: Key<'_>) -> u64 {
    if is_ordered {
        seed.hash(key.bytes)
    } else {
        key.hash
    }
}

/// Appends the index key of a term to `out`, in the form of a table. Linear in the size of the
/// term.
pub(crate) fn encode(form: KeyForm, key: TermRef<'_>, out: &mut Vec<u8>) {
    let KeyForm::Hash { legacy_zero } = form else {
        larder_term::order_key::encode(key, out);
        return;
    };
    let start = out.len();
    let mut enc = Encoder::new(out, Mode::Inline);
    // Nearly all keys have the same form as terms and as keys.
    enc.term(key);
    if legacy_zero && enc.has_negative_zero() {
        // A −0.0 must become 0.0 first, at any depth. The encoder of objects does that.
        out.truncate(start);
        let mut object = ObjectBuf::new();
        let mut enc = ObjectEncoder::new(&mut object, 1, 1, form, false);
        enc.key(|e| e.term(key));
        enc.finish();
        out.extend_from_slice(object.key());
    }
}

/// The number of objects from which on it pays to prefetch the leaves of a tree before they are
/// read, which follows the path to each leaf twice. With fewer objects everything is in the caches.
/// Measured in ordered_sets and bags, with integers and with tuples of 20 bytes as keys: with
/// prefetching, a lookup took 1.1 to 1.4 times as long at 64,000 objects, and 0.7 to 0.9 times at a
/// million.
pub(crate) const MANY_TO_READ: usize = 1 << 18;
/// The same before the objects of a long list are written: always. Without prefetching, a list
/// would be inserted into a table of 64,000 rows in 0.8 of the time, and into one of four million
/// in the same time. But a long list in order was inserted so fast that it had to wait for the
/// clearing of the pages that it needed, 5 ms each.
pub(crate) const MANY_TO_WRITE: usize = 0;
/// The same for tables in hash order, in which the path to a leaf is short. With fewer objects
/// everything is in the second-level cache.
pub(crate) const MANY_BY_HASH: usize = 1 << 12;

/// Index keys, concatenated.
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

    /// Empties the list, and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Makes room for this number of keys, with so many bytes together.
    pub(crate) fn reserve(&mut self, keys: usize, bytes: usize) {
        self.ends.reserve(keys);
        self.bytes.reserve(bytes);
    }

    /// The numbers of the keys, in the order of the keys.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by(|&one, &other| self.get(one).cmp(self.get(other)));
        order
    }

    /// Puts the keys in the opposite order.
    pub(crate) fn reverse(&mut self) {
        let order: Vec<usize> = (0..self.len()).rev().collect();
        *self = self.picked(&order);
    }

    /// Puts the keys in order, and leaves one of those that are equal.
    pub(crate) fn sort(&mut self) {
        let are_sorted = (1..self.len()).all(|i| self.get(i - 1) < self.get(i));
        if are_sorted {
            return;
        }
        let mut order = self.order();
        order.dedup_by(|one, other| self.get(*one) == self.get(*other));
        *self = self.picked(&order);
    }

    /// The keys with these numbers.
    pub(crate) fn picked(&self, numbers: &[usize]) -> KeyList {
        let mut keys = KeyList::new();
        keys.reserve(numbers.len(), self.bytes());
        numbers.iter().for_each(|&i| keys.push(self.get(i)));
        keys
    }

    /// Adds an index key, in the form of the list's table.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Adds the index key that `encode` appends.
    #[inline]
    pub(crate) fn push_by(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The allocated memory in bytes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// The total length of all keys in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Key `i`.
    ///
    /// # Panics
    /// If there is no such key.
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[i]]
    }
}

/// A batch of neighbouring keys of a list, with their hashes.
pub(crate) struct KeyBatch<'k> {
    keys: SmallVec<[Key<'k>; MAX_KEYS_PER_LOOKUP]>,
}

impl<'k> KeyBatch<'k> {
    pub(crate) fn new() -> Self {
        KeyBatch {
            keys: SmallVec::new(),
        }
    }

    /// Takes `left` keys, at most `MAX_KEYS_PER_LOOKUP`. `key` returns the i-th one, from 0.
    #[inline]
    pub(crate) fn fill(&mut self, left: usize, mut key: impl FnMut(usize) -> Key<'k>) {
        self.keys.clear();
        // One call of `key`, which is inlined.
        for i in 0..left.min(MAX_KEYS_PER_LOOKUP) {
            self.keys.push(key(i));
        }
    }

    /// The keys.
    pub(crate) fn keys(&self) -> &[Key<'k>] {
        &self.keys
    }
}

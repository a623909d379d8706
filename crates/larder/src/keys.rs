//! Index keys: how a table makes them of terms, and several at a time, so that the waits for memory
//! of their operations overlap.

use larder_index::{Key, TOGETHER};
use larder_term::object::{KeyForm, ObjectBuf, ObjectEncoder};
use larder_term::{Encoder, Mode, TermRef};
use smallvec::SmallVec;

/// Appends the index key of a term to `out`, in a table's form. Linear in the term.
pub(crate) fn encode(form: KeyForm, key: TermRef<'_>, out: &mut Vec<u8>) {
    let KeyForm::Hash { legacy_zero } = form else {
        larder_term::order_key::encode(key, out);
        return;
    };
    let start = out.len();
    let mut enc = Encoder::new(out, Mode::Inline);
    enc.term(key);
    if legacy_zero && enc.has_negative_zero() {
        out.truncate(start);
        let mut object = ObjectBuf::new();
        let mut enc = ObjectEncoder::new(&mut object, 1, 1, form, false);
        enc.key(|e| e.term(key));
        enc.finish();
        out.extend_from_slice(object.key());
    }
}

/// Objects from which on it pays to go the way to a tree's leaves twice, the first time for the
/// sake of memory, before they are read: below, all is near enough. Measured with integers and with
/// tuples of 20 bytes as keys, ordered_sets and bags: at 64,000 objects a lookup took 1.1 to 1.4
/// times as long, at a million 0.7 to 0.9 times.
pub(crate) const MANY_TO_READ: usize = 1 << 18;
/// Before many are written, always. A list would go into a table of 64,000 rows in 0.8 of the time
/// without, and into one of four million in the same; but a long list in order went in so fast that
/// the pages that it needed were cleared while it waited, 5 ms each, and not ahead of it.
pub(crate) const MANY_TO_WRITE: usize = 0;
/// The same of tables by hash, where the way to a leaf is short: with fewer objects, all is in the
/// second-level cache.
pub(crate) const MANY_BY_HASH: usize = 1 << 12;

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
    /// Panics if the list is shorter.
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[i]]
    }
}

/// Some neighbouring keys of a list, with their hashes.
pub(crate) struct KeyBatch<'k> {
    keys: SmallVec<[Key<'k>; TOGETHER]>,
}

impl<'k> KeyBatch<'k> {
    pub(crate) fn new() -> Self {
        KeyBatch {
            keys: SmallVec::new(),
        }
    }

    /// Takes at most `TOGETHER` of `left` keys: the i-th from 0 as `key` gives it.
    pub(crate) fn fill(&mut self, left: usize, key: impl FnMut(usize) -> Key<'k>) {
        self.keys.clear();
        self.keys.extend((0..left.min(TOGETHER)).map(key));
    }

    /// The keys.
    pub(crate) fn keys(&self) -> &[Key<'k>] {
        &self.keys
    }
}

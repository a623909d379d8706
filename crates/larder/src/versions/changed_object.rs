//! What a write has changed, as the followers of a table get it.

use crate::raw;
use larder_term::object::{self, ObjectView};

/// The old and the new object of a write, as bytes.
pub(crate) struct ChangedObject {
    /// The key, the old value and the new value, concatenated.
    bytes: Box<[u8]>,
    /// The length of the key.
    key: usize,
    /// Where the old value ends, if there is one.
    old: Option<usize>,
    has_new: bool,
    cause: Cause,
}

/// Why the old object was replaced or removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// By a write.
    Written,
    /// Its time to live had passed.
    Expired,
    /// The table exceeded its bound.
    Evicted,
}

impl ChangedObject {
    /// Copies the values and counts the handles in them. The table or the caller must own counts of
    /// them meanwhile.
    pub(crate) fn new(key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Self {
        let values = [old, new];
        // The change is kept until every follower has read it, so it owns counts.
        values.into_iter().flatten().for_each(raw::retain_value);
        let [old_bytes, new_bytes] = values.map(Option::unwrap_or_default);
        // One allocation for the key and both values.
        ChangedObject {
            bytes: [key, old_bytes, new_bytes].concat().into(),
            key: key.len(),
            old: old.map(|old| key.len() + old.len()),
            has_new: new.is_some(),
            cause: Cause::Written,
        }
    }

    /// The same change with this cause.
    pub(crate) fn with_cause(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// The number of bytes of the key and the objects, unpacked.
    pub(super) fn len(&self) -> usize {
        let values = [self.old(), self.new_value()].into_iter().flatten();
        self.key + values.map(object::plain_len).sum::<usize>()
    }

    /// Whether it owns counts.
    pub(super) fn has_handles(&self) -> bool {
        let mut values = [self.old(), self.new_value()].into_iter().flatten();
        values.any(raw::has_handles)
    }

    /// Why the old object was replaced or removed.
    pub(super) fn cause(&self) -> Cause {
        self.cause
    }

    /// The value that was replaced or removed.
    fn old(&self) -> Option<&[u8]> {
        Some(&self.bytes[self.key..self.old?])
    }

    /// The value that was written.
    fn new_value(&self) -> Option<&[u8]> {
        let from = self.old.unwrap_or(self.key);
        self.has_new.then(|| &self.bytes[from..])
    }

    /// The old and the new object. The buffers receive values that have to be decompressed.
    pub(super) fn objects<'a>(
        &'a self,
        keypos: usize,
        [one, two]: &'a mut [Vec<u8>; 2],
    ) -> [Option<ObjectView<'a>>; 2] {
        // The key is before both values, and they are read in place.
        let key = &self.bytes[..self.key];
        [
            self.old().map(|old| raw::view(key, old, keypos, one)),
            self.new_value().map(|new| raw::view(key, new, keypos, two)),
        ]
    }
}

impl Drop for ChangedObject {
    fn drop(&mut self) {
        for value in [self.old(), self.new_value()].into_iter().flatten() {
            raw::release_value(value);
        }
    }
}

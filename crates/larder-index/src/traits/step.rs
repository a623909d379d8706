//! The result of a single step from key to key.

use super::batch::Seen;
use super::head::value_limit;
use std::ops::Range;

/// What [`Unique::try_step`](super::Unique::try_step) has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stepped {
    /// Whether there is a value under the key that the step started from.
    pub is_present: bool,
    /// Whether there is a next entry. It was copied.
    pub found: bool,
}

/// A copy of the entry that a step has found. Its memory is kept from step to step.
#[derive(Debug, Default)]
pub struct StepEntry {
    /// The key and the value, in this order. Bytes before, between and after them are unspecified.
    pub(crate) bytes: Vec<u8>,
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
    /// A hint of the caller: of the value, only the first [`HEAD`](super::HEAD) bytes are needed.
    /// An index may ignore it.
    pub heads: bool,
    /// Where the entry was read, if the index can tell whether it has changed since.
    pub seen: Option<Seen>,
}

impl StepEntry {
    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.bytes[self.key.clone()]
    }

    /// The value, or its beginning.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.bytes[self.value.clone()]
    }

    /// The memory of the entry in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The number of bytes of the value that the caller needs.
    #[inline]
    pub(crate) fn value_limit(&self) -> usize {
        value_limit(self.heads)
    }

    /// Records where key and value lie: the key before `value`, and the value after it.
    #[inline]
    pub(crate) fn set(&mut self, key: Range<usize>, end: usize) {
        self.value = key.end..end;
        self.key = key;
    }

    /// Cuts the last bytes off the value, which the caller has put there.
    pub fn shorten_value(&mut self, by: usize) {
        self.value.end = self.value.end.saturating_sub(by).max(self.value.start);
    }

    /// Copies an entry, of its value at most the first `limit` bytes.
    pub(crate) fn copy(&mut self, key: &[u8], value: &[u8], limit: usize) {
        self.bytes.clear();
        self.bytes.extend_from_slice(key);
        self.bytes
            .extend_from_slice(&value[..value.len().min(limit)]);
        self.set(0..key.len(), self.bytes.len());
    }
}

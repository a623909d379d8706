//! Values that were copied out of an index.

/// Values that were copied out of an index. `clear` keeps the memory for further values.
#[derive(Default, Debug)]
pub struct Values {
    /// The bytes of all values. There may be other bytes between them.
    pub bytes: Vec<u8>,
    /// Where each value begins and ends in `bytes`.
    pub(crate) spans: Vec<(usize, usize)>,
}

impl Values {
    /// Removes all values.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Removes all values except the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.spans.truncate(len);
        let end = self.spans.last().map_or(0, |&(_, end)| end);
        self.bytes.truncate(end);
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.end(from);
    }

    /// Adds a value that was appended to `bytes`, and begins at `from`.
    #[inline]
    pub fn end(&mut self, from: usize) {
        self.spans.push((from, self.bytes.len()));
    }

    /// The number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no values.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether a value is among these, which are sorted.
    #[inline]
    pub fn has_sorted(&self, value: &[u8]) -> bool {
        let compare = |&(from, end): &(usize, usize)| self.bytes[from..end].cmp(value);
        self.spans.binary_search_by(compare).is_ok()
    }

    /// The values, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|&(from, end)| &self.bytes[from..end])
    }
}

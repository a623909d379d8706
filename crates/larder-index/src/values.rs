//! Values that were copied out of an index.

/// Some values, copied out of an index. Reusable: `clear` keeps its memory.
#[derive(Default, Debug)]
pub struct Values {
    /// All bytes of all values, and some between them.
    pub bytes: Vec<u8>,
    /// Where each value begins and ends in `bytes`.
    pub(crate) spans: Vec<(usize, usize)>,
}

impl Values {
    /// Forgets all values.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Forgets all values but so many of the first.
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

    /// Notes that a value was appended to `bytes`, from there on.
    #[inline]
    pub fn end(&mut self, from: usize) {
        self.spans.push((from, self.bytes.len()));
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The values, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|&(from, end)| &self.bytes[from..end])
    }
}

//! Pairs of byte strings, one after the other in one buffer.

/// The pairs.
#[derive(Default)]
pub(crate) struct Pairs {
    bytes: Vec<u8>,
    /// Where each pair begins, where its second string does, and where it ends.
    spans: Vec<[usize; 3]>,
}

impl Pairs {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Appends a pair.
    pub(crate) fn push(&mut self, first: &[u8], second: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(first);
        let split = self.bytes.len();
        self.bytes.extend_from_slice(second);
        self.spans.push([from, split, self.bytes.len()]);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The `i`th pair.
    pub(crate) fn get(&self, i: usize) -> (&[u8], &[u8]) {
        let [from, split, end] = self.spans[i];
        (&self.bytes[from..split], &self.bytes[split..end])
    }

    /// The `i`th pair: its strings, one after the other, and the length of the first one.
    pub(crate) fn joined(&self, i: usize) -> (&[u8], usize) {
        let [from, split, end] = self.spans[i];
        (&self.bytes[from..end], split - from)
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<[usize; 3]>()
    }
}

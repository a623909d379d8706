//! Pairs of byte strings, one behind the other in one buffer.

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
        pair(&self.bytes, &self.spans[i])
    }

    /// Puts them in order, and leaves one of those that are equal.
    pub(crate) fn sort(&mut self) {
        let Pairs { bytes, spans } = self;
        spans.sort_unstable_by(|one, other| pair(bytes, one).cmp(&pair(bytes, other)));
        spans.dedup_by(|one, other| pair(bytes, one) == pair(bytes, other));
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<[usize; 3]>()
    }
}

fn pair<'b>(bytes: &'b [u8], &[from, split, end]: &[usize; 3]) -> (&'b [u8], &'b [u8]) {
    (&bytes[from..split], &bytes[split..end])
}

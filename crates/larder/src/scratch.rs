//! Buffers that each thread keeps for its operations, so that a lookup allocates nothing.

use larder_index::Batch;
use std::cell::Cell;

/// A buffer that has grown beyond this is not kept.
const KEEP: usize = 1 << 20;

/// One operation's buffers.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Values, one behind the other.
    pub(crate) values: Values,
    /// Where a compressed object is unpacked.
    pub(crate) plain: Vec<u8>,
    /// Where a scan puts its entries.
    pub(crate) batch: Batch,
    /// A position.
    pub(crate) position: Vec<u8>,
}

impl Scratch {
    fn is_modest(&self) -> bool {
        self.values.bytes.capacity() + self.plain.capacity() + self.batch.bytes.capacity() <= KEEP
    }
}

/// Some values, copied out of an index.
#[derive(Default)]
pub(crate) struct Values {
    pub(crate) bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Values {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    /// Notes that one value was appended to `bytes`.
    pub(crate) fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
    }
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Calls `f` with this thread's buffers; with fresh ones if they are in use further up the stack.
pub(crate) fn with<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let result = f(&mut scratch);
    if scratch.is_modest() {
        SCRATCH.set(Some(scratch));
    }
    result
}

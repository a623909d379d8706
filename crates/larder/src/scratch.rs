//! Buffers that each thread keeps for its operations, so that a lookup allocates nothing.

use larder_index::{Batch, Values};
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

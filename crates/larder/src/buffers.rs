//! What an operation over many objects works with: each thread keeps one set, so that a scan of few
//! rows allocates nothing.

use crate::pairs::Pairs;
use larder_index::{Batch, Values};
use larder_matchspec::Scratch;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// Buffers that have grown beyond this are not kept.
const KEEP: usize = 256 << 10;

/// The buffers.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Where the index puts entries.
    pub(crate) batch: Batch,
    /// Where a compressed object is unpacked.
    pub(crate) plain: Vec<u8>,
    /// The values under one key.
    pub(crate) values: Values,
    /// The values that a row has in an index.
    pub(crate) indexed: Values,
    /// Entries of an index: a value and a key each.
    pub(crate) pairs: Pairs,
    /// A position.
    pub(crate) position: Vec<u8>,
    /// What the program works with.
    pub(crate) scratch: Scratch,
}

thread_local! {
    static KEPT: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// The thread's buffers, or fresh ones if these are in use; given back when it is dropped.
pub(crate) struct Lent(Option<Box<Buffers>>);

impl Lent {
    pub(crate) fn new() -> Self {
        let kept = KEPT.with(Cell::take);
        Lent(Some(kept.unwrap_or_default()))
    }
}

impl Deref for Lent {
    type Target = Buffers;
    #[inline(always)]
    fn deref(&self) -> &Buffers {
        match &self.0 {
            Some(buffers) => buffers,
            None => unreachable!("it has them until it is dropped"),
        }
    }
}

impl DerefMut for Lent {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Buffers {
        self.0.get_or_insert_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut buffers) = self.0.take() else {
            return;
        };
        let batch = &buffers.batch;
        let entries = batch.entries.capacity() * size_of::<(usize, usize, usize)>();
        let memory = batch.bytes.capacity()
            + entries
            + buffers.plain.capacity()
            + buffers.values.bytes.capacity()
            + buffers.indexed.bytes.capacity()
            + buffers.pairs.memory();
        if memory + buffers.scratch.memory() <= KEEP {
            buffers.batch.clear();
            buffers.batch.want = 0;
            buffers.batch.any_order = false;
            buffers.values.clear();
            buffers.indexed.clear();
            buffers.pairs.clear();
            // A thread that ends keeps nothing any more.
            let _ = KEPT.try_with(|kept| kept.set(Some(buffers)));
        }
    }
}

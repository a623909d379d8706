//! Buffers for operations on many objects. Each thread keeps one set, so a scan of few objects
//! allocates nothing.

use crate::pairs::Pairs;
use crate::programs::{Scratch, Verdict};
use larder_index::{Batch, Values};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// A set of buffers with more memory than this, in bytes, isn't kept.
const MAX_KEPT_CAPACITY: usize = 256 << 10;

/// A set of buffers.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Entries that a scan of the index has read.
    pub(crate) batch: Batch<'static>,
    /// Those of its entries that a filter lets pass.
    pub(crate) passing: Vec<PassingEntry>,
    /// The unpacked elements of a compressed object.
    pub(crate) plain: Vec<u8>,
    /// The values under one key.
    pub(crate) values: Values,
    /// The values of a row in a secondary index.
    pub(crate) indexed: Values,
    /// The element in which such a value was found.
    pub(crate) element: Vec<u8>,
    /// Entries of a secondary index: pairs of a value and a key.
    pub(crate) pairs: Pairs,
    /// A position of the index.
    pub(crate) position: Vec<u8>,
    /// The memory of a match specification's program.
    pub(crate) scratch: Scratch,
}

/// An entry of a batch that a filter hasn't rejected.
#[derive(Clone, Copy)]
pub(crate) struct PassingEntry {
    /// Its number in the batch.
    pub(crate) index: usize,
    pub(crate) verdict: Verdict,
    /// What the rejected entries between the last one that passed and this one cost, in units of
    /// the budget.
    pub(crate) rejected: u32,
}

thread_local! {
    /// The thread's set, unless it is lent.
    static KEPT: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// A borrowed set of buffers: the thread's, or a new one if that is lent already. It is returned to
/// the thread on drop.
pub(crate) struct ThreadBuffers(Option<Box<Buffers>>);

impl ThreadBuffers {
    /// Borrows the thread's set.
    pub(crate) fn new() -> Self {
        // A visitor may start another operation while this one is lent. It gets a new set, as does
        // a thread that is ending.
        let kept = KEPT.try_with(Cell::take).ok().flatten();
        ThreadBuffers(Some(kept.unwrap_or_default()))
    }
}

impl Deref for ThreadBuffers {
    type Target = Buffers;
    #[inline]
    fn deref(&self) -> &Buffers {
        match &self.0 {
            Some(buffers) => buffers,
            None => unreachable!("it has them until it is dropped"),
        }
    }
}

impl DerefMut for ThreadBuffers {
    #[inline]
    fn deref_mut(&mut self) -> &mut Buffers {
        self.0.get_or_insert_default()
    }
}

impl Drop for ThreadBuffers {
    fn drop(&mut self) {
        let Some(mut buffers) = self.0.take() else {
            return;
        };
        // Drop a set that a large scan has made large.
        let memory = buffers.batch.capacity()
            + buffers.plain.capacity()
            + buffers.passing.capacity() * size_of::<PassingEntry>()
            + buffers.element.capacity()
            + buffers.position.capacity()
            + buffers.values.bytes.capacity()
            + buffers.indexed.bytes.capacity()
            + buffers.pairs.memory();
        if memory + buffers.scratch.memory() <= MAX_KEPT_CAPACITY {
            // The next borrower expects default settings, and empty buffers but for `plain`,
            // `element` and `position`, which their users overwrite.
            buffers.batch.reset();
            buffers.passing.clear();
            buffers.values.clear();
            buffers.indexed.clear();
            buffers.pairs.clear();
            // If the thread is ending, its variable is destroyed. Then the set is dropped.
            let _ = KEPT.try_with(|kept| kept.set(Some(buffers)));
        }
    }
}

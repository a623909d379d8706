//! What a thread keeps for its operations: its place in the epoch, and buffers, so that an
//! operation on one key allocates nothing and looks for what belongs to its thread once.
//!
//! A host takes its thread's [`Local`] at the beginning of a call, with [`with_local`], and passes
//! it down.

use crate::keys::KeyList;
use crate::read_ahead::ReadAhead;
use crossbeam_epoch::{Guard, LocalHandle};
use larder_index::{Shorts, Values};
use std::cell::Cell;

/// A buffer that has grown beyond this is not kept.
const KEEP: usize = 64 << 10;

/// What one thread keeps: its participation in the epoch, and buffers.
pub struct Local {
    epoch: LocalHandle,
    /// A value copied out of an index.
    pub(crate) value: Vec<u8>,
    /// Several values copied out of an index.
    pub(crate) values: Values,
    /// Short values of several keys.
    pub(crate) shorts: Shorts,
    /// Where a compressed object is unpacked.
    pub(crate) plain: Vec<u8>,
    /// What was read ahead of a traversal.
    pub(crate) read_ahead: ReadAhead,
    /// A buffer of the host's, which takes it, uses it and puts it back.
    pub bytes: Vec<u8>,
    /// As `bytes`.
    pub keys: KeyList,
    /// Work of the host and of questions about ranks that is not yet reported to the host's
    /// scheduler, in units of half a microsecond.
    pub unreported: Cell<u32>,
}

impl Local {
    fn new() -> Self {
        Local {
            epoch: crossbeam_epoch::default_collector().register(),
            value: Vec::with_capacity(256),
            values: Values::default(),
            shorts: Shorts::default(),
            plain: Vec::new(),
            read_ahead: ReadAhead::default(),
            bytes: Vec::new(),
            keys: KeyList::new(),
            unreported: Cell::new(0),
        }
    }

    /// Pins the epoch: what is read under the guard stays valid while it lives. The same as
    /// [`larder_index::pin`], without looking for the thread.
    #[inline]
    pub fn pin(&self) -> Guard {
        if cfg!(larder_model) {
            // The checker's threads share one of the system's.
            return larder_index::pin();
        }
        self.epoch.pin()
    }

    /// Whether the last answer of [`Table::step_in`](crate::Table::step_in) or
    /// [`Table::step_on`](crate::Table::step_on) on this thread showed its key as this number,
    /// which is not 0. Then `step_on` may go on from there, if the table is the same.
    #[inline(always)]
    pub fn has_shown(&self, number: u64) -> bool {
        self.read_ahead.has_shown(number)
    }

    /// Gives buffers back that have become large.
    #[inline(always)]
    pub fn trim(&mut self) {
        let own = self.value.capacity() + self.values.bytes.capacity() + self.plain.capacity();
        if own + self.bytes.capacity() + self.keys.capacity() > KEEP {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.value = Vec::with_capacity(256);
        self.values = Values::default();
        self.plain = Vec::new();
        self.bytes = Vec::new();
        self.keys = KeyList::new();
    }
}

thread_local! {
    static LOCAL: Cell<Option<Box<Local>>> = const { Cell::new(None) };
}

/// Calls `f` with this thread's [`Local`]; with a fresh one if it is in use further up the stack.
#[inline(always)]
pub fn with_local<R>(f: impl FnOnce(&mut Local) -> R) -> R {
    // The thread's key is looked up once.
    LOCAL.with(|cell| {
        // It is taken out during the call. So a host's callback that calls an operation in between
        // finds none, and gets a fresh one.
        let mut local = cell.take().unwrap_or_else(fresh);
        let result = f(&mut local);
        local.trim();
        cell.set(Some(local));
        result
    })
}

#[cold]
fn fresh() -> Box<Local> {
    Box::new(Local::new())
}

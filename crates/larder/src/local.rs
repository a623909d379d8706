//! The state of a thread: its participant in epoch reclamation, and buffers. With it, an operation
//! on one key allocates nothing, and looks up thread-local storage once.
//!
//! A host takes its thread's [`Local`] at the beginning of a call, with [`with_local`], and passes
//! it down.
//!
//! Contents:
//!
//! | part | lives from call to call |
//! |---|---|
//! | the participant in epoch reclamation | yes |
//! | buffers for values, keys and unpacked objects | their memory, if it isn't large |
//! | the two read-ahead cursors | yes: the next step continues from one of them |
//! | work that isn't reported yet | yes |
//!
//! Nested calls: `with_local` takes the `Local` out of thread-local storage while it runs. If a
//! callback of the host starts another operation meanwhile, that operation gets a fresh `Local`. So
//! nothing that the outer call uses is changed. When the outer call ends, its own `Local` is stored
//! back, and that of the nested call is dropped, with its read-ahead cursors and its unreported
//! work. If the outer call panics, its `Local` is dropped, and the next call may make a new one.
//!
//! A thread that is ending: destructors of its other thread-local variables may use tables, and so
//! may functions of `atexit` and destructors of C++'s static objects in the main thread. Each such
//! call gets a `Local` of its own, once that of the thread was dropped.

use crate::keys::KeyList;
use crate::read_ahead::ReadAhead;
use crossbeam_epoch::{Guard, LocalHandle};
use larder_index::{ShortValues, Values};
use larder_term::blob::Counts;
use larder_term::object::ObjectBuf;
use std::cell::Cell;
use std::mem::ManuallyDrop;

/// Buffers that together have more bytes than this are dropped after a call.
const MAX_KEPT_CAPACITY: usize = 64 << 10;

/// The state of one thread: its participant in epoch reclamation, and buffers.
pub struct Local {
    epoch: LocalHandle,
    /// A value that is copied from an index.
    pub(crate) value: Vec<u8>,
    /// Several values that are copied from an index.
    pub(crate) values: Values,
    /// Short values of several keys, copied by one lookup of a batch of keys.
    pub(crate) short_values: ShortValues,
    /// A compressed object, unpacked.
    pub(crate) plain: Vec<u8>,
    /// Elements out of line that an operation makes, while it does.
    pub(crate) elements: Counts,
    /// The object that a caller's function writes. Empty between calls.
    pub(crate) object: ObjectBuf,
    /// The read-ahead cursor of the last step from key to key.
    pub(crate) read_ahead: Box<ReadAhead>,
    /// The cursor that was used before that one, for a second walk beside the first.
    pub(crate) older_ahead: Box<ReadAhead>,
    /// A term as an index key, while an operation on one key encodes it.
    pub(crate) encoded_key: Vec<u8>,
    /// A list of keys for the host, which takes it, uses it and puts it back.
    pub keys: KeyList,
    /// Whether a step that would hold the thread for long returns `Error::Long` instead.
    pub is_impatient: bool,
    /// Work of the host and of rank queries that hasn't been reported to the host's scheduler yet,
    /// in units of half a microsecond.
    pub unreported: Cell<u32>,
    /// Whether it is stored for the next call. It isn't if the thread is ending.
    is_kept: bool,
}

impl Local {
    fn new(is_kept: bool) -> Self {
        Local {
            // Registered once for each thread. Pinning is cheap after that.
            epoch: crossbeam_epoch::default_collector().register(),
            // A few cache lines, which most values fit into.
            value: Vec::with_capacity(256),
            values: Values::default(),
            short_values: ShortValues::default(),
            plain: Vec::new(),
            elements: Counts::new(),
            object: ObjectBuf::new(),
            read_ahead: Box::default(),
            older_ahead: Box::default(),
            encoded_key: Vec::new(),
            keys: KeyList::new(),
            is_impatient: false,
            unreported: Cell::new(0),
            is_kept,
        }
    }

    /// Pins the epoch: data that is read under the guard stays valid while the guard lives. The
    /// same as [`larder_index::pin`], but without a lookup of thread-local storage.
    #[inline]
    pub fn pin(&self) -> Guard {
        if cfg!(larder_model) {
            // The threads of the model checker share one thread of the system.
            return larder_index::pin();
        }
        self.epoch.pin()
    }

    /// Adds the work of running a program on this number of objects under one key to `unreported`.
    #[inline]
    pub(crate) fn note_read(&self, objects: usize) {
        // A call costs more than this by itself.
        const FREE: usize = 16;
        const OBJECTS_PER_UNIT: usize = 8;
        if objects > FREE {
            let units = u32::try_from(objects / OBJECTS_PER_UNIT).unwrap_or(u32::MAX);
            self.unreported
                .set(self.unreported.get().saturating_add(units));
        }
    }

    /// Makes the older cursor that of this step.
    #[inline]
    pub(crate) fn swap_cursors(&mut self) {
        std::mem::swap(&mut self.read_ahead, &mut self.older_ahead);
    }

    /// Whether the last answer of [`step_to_key`] or [`step_on`] to one of this thread's two latest
    /// walks showed its key as this number, which is not 0. In that case `step_on` can continue
    /// from there, if the table is the same.
    ///
    /// [`step_to_key`]: crate::host::EngineTable::step_to_key
    /// [`step_on`]: crate::host::EngineTable::step_on
    #[inline]
    pub fn has_shown(&self, number: u64) -> bool {
        self.read_ahead.has_shown(number) || self.older_ahead.has_shown(number)
    }

    /// Drops buffers that have become large.
    #[inline]
    pub fn trim(&mut self) {
        let bytes = self.value.capacity() + self.values.bytes.capacity() + self.plain.capacity();
        let lent = self.encoded_key.capacity() + self.keys.capacity() + self.object.capacity();
        if bytes + lent > MAX_KEPT_CAPACITY {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.value = Vec::with_capacity(256);
        self.values = Values::default();
        self.plain = Vec::new();
        self.object = ObjectBuf::new();
        self.encoded_key = Vec::new();
        self.keys = KeyList::new();
    }
}

type LocalSlot = Cell<Option<ManuallyDrop<Box<Local>>>>;

thread_local! {
    /// The thread's `Local`. The variable has no destructor, so a thread that is ending can still
    /// look at it.
    static LOCAL: LocalSlot = const { Cell::new(None) };
    static AT_END: DropsLocal = const { DropsLocal };
}

/// Drops the `Local` of a thread that is ending.
struct DropsLocal;

impl Drop for DropsLocal {
    fn drop(&mut self) {
        drop(LOCAL.take().map(ManuallyDrop::into_inner));
    }
}

/// Calls `f` with this thread's [`Local`]. In a nested call, `f` gets a fresh one (see the module).
#[inline]
pub fn with_local<R>(f: impl FnOnce(&mut Local) -> R) -> R {
    // Access the thread-local variable once.
    LOCAL.with(|cell| {
        // Take the `Local` out during the call. If a callback of the host starts another operation,
        // it finds none, and gets a fresh one.
        let mut local = cell.take().map_or_else(fresh, ManuallyDrop::into_inner);
        let result = f(&mut local);
        local.trim();
        if local.is_kept {
            // A nested call may have stored its own one.
            let nested = cell.replace(Some(ManuallyDrop::new(local)));
            drop(nested.map(ManuallyDrop::into_inner));
        }
        result
    })
}

#[cold]
fn fresh() -> Box<Local> {
    // This also registers the destructor, unless it has run.
    let is_kept = AT_END.try_with(|_| ()).is_ok();
    Box::new(Local::new(is_kept))
}

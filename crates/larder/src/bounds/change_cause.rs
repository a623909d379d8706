//! Why an object of a bounded table changes. The thread that changes it passes the cause through
//! the layers to the feed. All of this happens on one thread, under the lock of one entry.
//!
//! Invariant: a cause is set only when it is certain that the change is made. So the change takes
//! it, and the thread's next change, which may be of another table, doesn't find it.

use larder_index::sync::each_thread;
use std::cell::Cell;

/// Why the thread's next change of a watched index is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChangeCause {
    /// The program writes or deletes the object.
    #[default]
    Program,
    /// The object has expired. If another object replaces it, that one counts as new.
    Expired,
    /// The object is evicted.
    Evicted,
    /// The object stays. Only its deadline changes.
    DeadlineMoved,
}

each_thread! {
    static CAUSE: Cell<ChangeCause> = const { Cell::new(ChangeCause::Program) };
}

/// Sets the cause of the next change that the thread makes in a watched index.
#[inline]
pub(crate) fn set_cause(cause: ChangeCause) {
    CAUSE.with(|cell| cell.set(cause));
}

/// Returns the cause of the change that the thread is making, and resets it.
#[inline]
pub(crate) fn take_cause() -> ChangeCause {
    CAUSE.with(Cell::take)
}

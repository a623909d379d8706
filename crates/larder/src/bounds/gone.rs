//! The reason why an object is removed. The thread that removes it passes the reason through the
//! layers to the feed. All of this happens on one thread, under the lock of one entry.

use larder_index::sync::each_thread;
use std::cell::Cell;

/// The reason why an object is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It was deleted, or replaced.
    #[default]
    Deleted,
    /// It has expired. If another object replaces it, that one counts as new.
    Expired,
    /// It was evicted.
    Evicted,
    /// It isn't removed. Only its deadline has changed.
    Kept,
}

each_thread! {
    static GONE: Cell<Gone> = const { Cell::new(Gone::Deleted) };
}

/// Sets the kind of the next change that the thread makes in a watched index.
#[inline]
pub(crate) fn note(gone: Gone) {
    GONE.with(|cell| cell.set(gone));
}

/// Returns the kind of the change that the thread is making, and resets it.
#[inline]
pub(crate) fn take() -> Gone {
    GONE.with(Cell::take)
}

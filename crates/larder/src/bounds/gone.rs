//! Why an object goes: from whoever removes it, by way of the indexes between, to the feed. All of
//! it happens on one thread, under the lock of one entry.

use larder_index::sync::each_thread;
use std::cell::Cell;

/// Why an object goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It was deleted, or replaced.
    #[default]
    Deleted,
    /// Its time was over. If something is put in its place, that is new.
    Expired,
    /// There was too much.
    Evicted,
    /// It stays, and has another deadline.
    Kept,
}

each_thread! {
    static GONE: Cell<Gone> = const { Cell::new(Gone::Deleted) };
}

/// The change that the thread makes next in a watched index is of this kind.
#[inline]
pub(crate) fn note(gone: Gone) {
    GONE.with(|cell| cell.set(gone));
}

/// Of which kind the change is that the thread makes now.
#[inline]
pub(crate) fn take() -> Gone {
    GONE.with(Cell::take)
}

//! Why the thread's last write was refused by a unique index, and which row has the value.

use crate::error::Error;
use larder_term::{atoms, Atom};
use std::cell::Cell;

thread_local! {
    static HOLDER: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
    static TAKEN: Cell<Atom> = const { Cell::new(atoms::UNDEFINED) };
}

/// Records the index that has refused the thread's write. So the result of a write needs no room
/// for the name, and is passed in a register.
#[cold]
pub(crate) fn note_taken(index: Atom) {
    TAKEN.set(index);
}

/// The index that has refused the last refused write of the thread.
#[cold]
pub(crate) fn taken() -> Error {
    Error::NotUnique(TAKEN.get())
}

/// Records the key whose row has a value that the thread could not claim.
#[cold]
pub(super) fn note_holder(key: &[u8]) {
    HOLDER.set(Some(key.to_vec()));
}

/// The key whose row has the value that the thread last failed to claim.
pub(crate) fn take_holder() -> Option<Vec<u8>> {
    HOLDER.take()
}

//! Why the thread's last write was refused by a unique index, and whose row has the value.

use crate::error::Error;
use larder_term::{atoms, Atom};
use std::cell::Cell;

thread_local! {
    static HOLDER: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
    static TAKEN: Cell<Atom> = const { Cell::new(atoms::UNDEFINED) };
}

/// Notes by which index the thread's write was refused: what says that a write was refused travels
/// in a register.
#[cold]
pub(crate) fn note_taken(index: Atom) {
    TAKEN.set(index);
}

/// By which index the thread's last write was refused that was.
#[cold]
pub(crate) fn taken() -> Error {
    Error::NotUnique(TAKEN.get())
}

/// Notes whose row has a value that the thread could not claim.
#[cold]
pub(super) fn note_holder(key: &[u8]) {
    HOLDER.set(Some(key.to_vec()));
}

/// Whose row has the value that the thread could not claim last.
pub(crate) fn take_holder() -> Option<Vec<u8>> {
    HOLDER.take()
}

//! Why the thread's last write was refused by a unique index, and which row has the value.

use larder_term::{atoms, Atom};
use std::cell::Cell;

/// The entry of a value that the thread could not claim.
pub(crate) struct Holder {
    /// The name of the index.
    pub(crate) index: Atom,
    pub(crate) value: Vec<u8>,
    /// The key of the row that has the value, or for which it is claimed.
    pub(crate) key: Vec<u8>,
}

thread_local! {
    static HOLDER: Cell<Option<Holder>> = const { Cell::new(None) };
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
pub(crate) fn taken() -> Atom {
    TAKEN.get()
}

/// Records who has a value that the thread could not claim.
#[cold]
pub(super) fn note_holder(index: Atom, value: &[u8], key: &[u8]) {
    let (value, key) = (value.to_vec(), key.to_vec());
    // A thread that is ending has no place for it.
    let _ = HOLDER.try_with(|holder| holder.set(Some(Holder { index, value, key })));
}

/// Who has the value that the thread last failed to claim.
pub(crate) fn take_holder() -> Option<Holder> {
    HOLDER.try_with(Cell::take).ok().flatten()
}

/// Forgets the holder if it is one of those for which the caller has claimed values itself: no row
/// has the value then.
pub(super) fn forget_holder_if(is_own: impl FnOnce(&Holder) -> bool) {
    let _ = HOLDER.try_with(|kept| kept.set(kept.take().filter(|holder| !is_own(holder))));
}

//! The end of outside objects.

use super::outside::Handle;
use crossbeam_epoch::Guard;

/// Retires an object whose handle the caller has just taken out of a leaf, under the leaf's lock. Returns its bytes of memory.
///
/// Only the core calls this, right after it has removed or overwritten the record: that is the whole of its duty.
pub(crate) fn outside(handle: Handle, guard: &Guard) -> usize {
    // SAFETY: it is alive: the caller has only now taken it out, and nobody else can have.
    let bytes = unsafe { handle.object() }.memory();
    // SAFETY: 1. the caller took it out of the only leaf that had it; 2. under the lock, so nobody else did.
    unsafe { handle.retire(guard) };
    bytes
}

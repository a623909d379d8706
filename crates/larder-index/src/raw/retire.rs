//! The end of outside objects.
//!
//! What is retired is freed by the epoch, with what others deferred before: objects of a host's own among it, whose end may be anything, a call of this very
//! index too. A large object is worth an attempt at once; so nobody retires one while he holds a lock. Where more than a leaf is locked (a bag's stripe) the
//! attempt is left for afterwards.

use super::outside::Handle;
use crate::route::Shared;
use crossbeam_epoch::Guard;
use std::sync::atomic::Ordering::Relaxed;

/// A retired object of at least this many bytes is worth an attempt to free at once.
const LARGE: usize = 1 << 20;

// Ordering, for all of this file: Relaxed. Whether something large waits is a hint, and orders nothing.

impl Shared {
    /// Retires an object whose handle the caller has just taken out of a leaf, under the leaf's lock, which it holds no more.
    ///
    /// Only the core calls this, once for a record that it has removed or overwritten, with the guard that it had then: that is the whole of its duty.
    #[inline]
    pub(crate) fn retire(&self, guard: &Guard, handle: Option<Handle>) {
        if let Some(handle) = handle {
            self.retire_outside(guard, handle);
        }
    }

    fn retire_outside(&self, guard: &Guard, handle: Handle) {
        // SAFETY: it is alive: the caller has only now taken it out, and nobody else can have.
        let bytes = unsafe { handle.object() }.memory();
        // SAFETY: 1. the caller took it out of the only leaf that had it; 2. under the lock, so nobody else did.
        unsafe { handle.retire(guard) };
        self.counters.add_bytes(-(bytes as isize));
        if bytes < LARGE {
            return;
        }
        if self.holds_more {
            // Ordering: Relaxed, see above.
            self.large_waits.store(true, Relaxed);
        } else {
            guard.flush();
        }
    }

    /// The attempt that was left for when no lock is held.
    #[inline]
    pub(crate) fn free_large(&self, guard: &Guard) {
        // Ordering: Relaxed, both, see above.
        if self.large_waits.load(Relaxed) && self.large_waits.swap(false, Relaxed) {
            guard.flush();
        }
    }
}

//! The end of outside objects.
//!
//! What is retired is freed by the epoch, with what others deferred before: objects of a host's own
//! among it, whose end may be anything, a call of this very index too. So nobody makes an attempt
//! at that while he holds a lock. Where more than a leaf is locked (a bag's stripe) the attempt is
//! left for afterwards.
//!
//! 1. Retire the object to the epoch.
//! 2. Count its bytes, by thread.
//! 3. When they are many, hand the thread's garbage over, at once or when no lock is held.
//! 4. Say that garbage waits, until the epoch has freed it.
//!
//! # How long garbage stays
//!
//! The epoch keeps the last sixty-odd deferred calls of each thread with the thread, until it
//! defers more. So a thread that has retired [`MUCH`] hands them over at once and makes an attempt:
//! it never keeps more than that of outside objects. What it handed over is counted until it is
//! freed ([`garbage_waits`]), so that somebody can move the epoch on where the threads fall idle
//! ([`on_garbage`]).

use crate::outside::Handle;
use crate::shared::Shared;
use crossbeam_epoch::Guard;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

/// Bytes of retired objects that a thread may keep, and those that are worth an attempt to free.
const MUCH: usize = 256 << 10;

thread_local! {
    /// Bytes of the outside objects that the thread has retired since it last handed its garbage
    /// over.
    static RETIRED: Cell<usize> = const { Cell::new(0) };
}

/// How often garbage was handed over that is not freed yet.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static NOTICE: OnceLock<fn()> = OnceLock::new();

// Ordering, for all of this file: Relaxed. Whether something waits is a hint, and orders nothing.

/// Whether much garbage waits for the epoch. It moves on while threads pin and flush.
pub fn garbage_waits() -> bool {
    // Ordering: Relaxed, see above.
    WAITING.load(Relaxed) > 0
}

/// From now on `notice` is called when garbage begins to wait. The first caller's is kept.
pub fn on_garbage(notice: fn()) {
    NOTICE.get_or_init(|| notice);
}

impl Shared {
    /// Retires an object whose handle the caller has just taken out of a leaf, under the leaf's
    /// lock, which it holds no more.
    ///
    /// Only the core calls this, once for a record that it has removed or overwritten, with the
    /// guard that it had then: that is the whole of its duty.
    #[inline]
    pub(crate) fn retire(&self, guard: &Guard, handle: Option<Handle>) {
        if let Some(handle) = handle {
            self.retire_outside(guard, handle);
        }
    }

    fn retire_outside(&self, guard: &Guard, handle: Handle) {
        // (1) Its size is read before it is retired.
        // SAFETY: it is alive: the caller has only now taken it out, and nobody else can have.
        let bytes = unsafe { handle.object() }.memory();
        // SAFETY: 1. the caller took it out of the only leaf that had it; 2. under the lock, so
        // nobody else did.
        unsafe { handle.retire(guard) };
        self.counters.add_bytes(-(bytes as isize));
        // (2) A thread that is ending has no count, and keeps nothing: it hands over at once.
        let retired = RETIRED.try_with(|sum| sum.replace(sum.get().saturating_add(bytes)));
        if retired.map_or(MUCH, |before| before.saturating_add(bytes)) < MUCH {
            return;
        }
        // (3) The caller holds no leaf's lock here, but may hold a stripe's.
        if self.holds_more {
            // Ordering: Relaxed, see above.
            self.large_waits.store(true, Relaxed);
        } else {
            hand_over(guard);
        }
    }

    /// The attempt that was left for when no lock is held.
    #[inline]
    pub(crate) fn free_large(&self, guard: &Guard) {
        // The load keeps the word shared among threads while nothing waits; the exchange lets one
        // of them do the work.
        // Ordering: Relaxed, both, see above.
        if self.large_waits.load(Relaxed) && self.large_waits.swap(false, Relaxed) {
            hand_over(guard);
        }
    }
}

/// Hands the thread's garbage over to all threads, and frees what nobody reads any more.
#[cold]
fn hand_over(guard: &Guard) {
    // Before the flush, which may free objects and retire others: those count anew.
    let _ = RETIRED.try_with(|sum| sum.set(0));
    // (4) The call is deferred behind what was retired, and is made when that may be freed.
    // Ordering: Relaxed, both, see above.
    let first = WAITING.fetch_add(1, Relaxed) == 0;
    guard.defer(|| {
        WAITING.fetch_sub(1, Relaxed);
    });
    guard.flush();
    // Once for all that begins to wait while something does: the host's own thread takes over.
    if first {
        if let Some(notice) = NOTICE.get() {
            notice();
        }
    }
}

//! Retiring outside objects, and bounding their garbage.
//!
//! 1. Retire the object to the epoch.
//! 2. Add its size to a counter of the thread.
//! 3. When the counter reaches [`FLUSH_AT`], flush: pass the thread's garbage to the epoch, and
//!    free what can be freed. If locks are held, the flush is postponed until none is.
//! 4. Count the flush as pending until the epoch has freed the garbage.
//!
//! Invariant: no lock is held during a flush. A flush runs deferred calls of all threads, including
//! those of a host, and such a call may do anything, even call this index. The caller of `retire`
//! has unlocked its leaf. A bag may still hold the lock of a stripe (`callers_hold_locks`); it
//! flushes afterwards, in `flush_postponed`. A caller of the index may hold locks of its own. It
//! holds the flushes of its thread back meanwhile ([`HeldFlushes`]).
//!
//! # How long garbage stays
//!
//! The epoch keeps up to about sixty deferred calls in a bag of the thread, until the thread defers
//! more. With large objects that could be gigabytes. Because of step 3, it is less than
//! [`FLUSH_AT`].
//!
//! After a flush, garbage is freed when the epoch has advanced, which takes further pins and
//! flushes by any threads. If all threads are idle, nothing advances it. So a host can register a
//! function ([`on_garbage`]), which is called when a flush becomes pending, and then flush until
//! [`garbage_waits`] returns `false`.

use crate::outside::Handle;
use crate::shared::Shared;
use crossbeam_epoch::Guard;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

/// Retired bytes at which a thread flushes.
const FLUSH_AT: usize = 256 << 10;

thread_local! {
    /// The bytes of outside objects that the thread has retired since its last flush.
    static RETIRED: Cell<usize> = const { Cell::new(0) };
    /// How many [`HeldFlushes`] the thread has, and whether a flush is due since the first.
    static HELD: Cell<(usize, bool)> = const { Cell::new((0, false)) };
}

/// The number of flushes whose garbage may not be freed yet.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// The function that `on_garbage` has registered.
static NOTICE: OnceLock<fn()> = OnceLock::new();

// Ordering, for all of this file: Relaxed. These words are hints: if a thread sees an old value, it
// flushes later, or once more. No other memory depends on them.

/// Whether the garbage of a flush may not be freed yet. It is freed as threads pin and flush.
pub fn garbage_waits() -> bool {
    // Ordering: Relaxed, see above.
    WAITING.load(Relaxed) > 0
}

/// Registers a function that is called when garbage starts to wait (see [`garbage_waits`]). Only
/// the first registration counts.
pub fn on_garbage(notice: fn()) {
    NOTICE.get_or_init(|| notice);
}

/// Holds the flushes of the thread back while it exists. If one was due, the last of the thread
/// makes it when it is dropped. So the caller begins this before it takes its locks, and drops it
/// after it has released them.
#[derive(Debug)]
pub struct HeldFlushes<'g> {
    guard: &'g Guard,
}

impl<'g> HeldFlushes<'g> {
    /// `guard` is the one under which the caller retires meanwhile.
    pub fn begin(guard: &'g Guard) -> Self {
        let (held, due) = HELD.get();
        HELD.set((held + 1, due));
        HeldFlushes { guard }
    }

    /// Whether a flush is due. It may be for garbage in the bag of another participant of the
    /// thread than that of the guard, which the caller then has to flush, too.
    pub fn is_due(&self) -> bool {
        HELD.get().1
    }

    /// Makes the flush that is due, if the thread has no other one of these. The caller has
    /// released its locks for a moment.
    pub fn catch_up(&self) {
        if let (1, true) = HELD.get() {
            HELD.set((0, false));
            flush_due(self.guard);
            // Deferred calls may have begun others, which are dropped again.
            HELD.set((1, false));
        }
    }
}

impl Drop for HeldFlushes<'_> {
    fn drop(&mut self) {
        let (held, due) = HELD.get();
        let is_last = held <= 1;
        HELD.set((held.saturating_sub(1), due && !is_last));
        if due && is_last {
            flush_due(self.guard);
        }
    }
}

/// Whether the flushes of the thread are held back.
pub fn are_flushes_held() -> bool {
    HELD.get().0 > 0
}

/// Passes the thread's garbage to the epoch, and frees what can be freed. If flushes are held back,
/// this is done later.
pub fn flush_or_hold(guard: &Guard) {
    if !hold() {
        guard.flush();
    }
}

/// Notes a flush as due if flushes are held back, and returns whether they are.
fn hold() -> bool {
    let is_held = are_flushes_held();
    if is_held {
        HELD.set((HELD.get().0, true));
    }
    is_held
}

impl Shared {
    /// Retires an outside object, if there is one.
    ///
    /// The caller has removed or overwritten the record with this handle, under the leaf's lock,
    /// and has released that lock. It calls this once for the record, with the guard that it had
    /// then.
    #[inline]
    pub(crate) fn retire(&self, guard: &Guard, handle: Option<Handle>) {
        if let Some(handle) = handle {
            self.retire_outside(guard, handle);
        }
    }

    #[inline(never)]
    fn retire_outside(&self, guard: &Guard, handle: Handle) {
        self.retire_replaced(guard, handle, 0);
    }

    /// As `retire`, for an object that another one of `new` bytes has replaced, whose bytes aren't
    /// counted yet.
    #[inline]
    pub(crate) fn retire_replaced(&self, guard: &Guard, old: Handle, new: usize) {
        // (1) Read its size before it is retired.
        // SAFETY: the handle was in a leaf after `guard` was pinned, and only the caller retires
        // it.
        let bytes = unsafe { old.object() }.memory();
        // SAFETY:
        // 1. the caller has removed it from the only leaf that had it;
        // 2. it did so under the leaf's lock, so no other thread has, or retires it.
        unsafe { old.retire(guard) };
        // All threads count in one place until they contend there. Most objects are replaced by
        // ones of the same size.
        if bytes != new {
            self.counters.add_bytes(new as isize - bytes as isize);
        }
        self.note_garbage(guard, bytes);
    }

    /// Steps 2 to 4 for an object of this size that was retired, and whose bytes are counted.
    pub(crate) fn note_retired(&self, guard: &Guard, bytes: usize) {
        self.counters.add_bytes(-(bytes as isize));
        self.note_garbage(guard, bytes);
    }

    /// Steps 2 to 4.
    #[inline]
    fn note_garbage(&self, guard: &Guard, bytes: usize) {
        // (2) If the thread is ending, its counter is destroyed. It will not retire more, so flush
        // now.
        let retired = RETIRED.try_with(|sum| sum.replace(sum.get().saturating_add(bytes)));
        if retired.map_or(FLUSH_AT, |before| before.saturating_add(bytes)) < FLUSH_AT {
            return;
        }
        self.flush_or_postpone(guard);
    }

    /// Step 3. The caller holds no leaf's lock, but a bag may hold a stripe's.
    #[cold]
    fn flush_or_postpone(&self, guard: &Guard) {
        if self.callers_hold_locks {
            // The load keeps the cache line shared.
            // Ordering: Relaxed, both, see above.
            if !self.has_postponed.load(Relaxed) {
                self.has_postponed.store(true, Relaxed);
            }
        } else {
            flush(guard);
        }
    }

    /// Flushes, if this thread has postponed a flush. The caller holds no lock.
    #[inline]
    pub(crate) fn flush_postponed(&self, guard: &Guard) {
        // Ordering: Relaxed, see above.
        if self.has_postponed.load(Relaxed) {
            flush_if_due(guard);
        }
    }
}

/// Flushes, if this thread has retired as much as that. No other thread can: the garbage is in the
/// thread's bag.
#[cold]
fn flush_if_due(guard: &Guard) {
    if is_due() {
        flush(guard);
    }
}

fn is_due() -> bool {
    // If the thread is ending, its counter is destroyed.
    RETIRED.try_with(Cell::get).unwrap_or(FLUSH_AT) >= FLUSH_AT
}

/// Makes the flush that was held back.
#[cold]
fn flush_due(guard: &Guard) {
    match is_due() {
        true => flush(guard),
        // It was due for other garbage than objects.
        false => guard.flush(),
    }
}

/// Flushes: passes the thread's garbage to the epoch, and frees garbage that no reader can use.
#[cold]
fn flush(guard: &Guard) {
    if hold() {
        return;
    }
    // Reset the counter first: the flush may run deferred calls that retire other objects.
    let _ = RETIRED.try_with(|sum| sum.set(0));
    // (4) The decrement is deferred after the objects. So it runs when they may be freed, too.
    // Ordering: Relaxed, both, see above.
    let first = WAITING.fetch_add(1, Relaxed) == 0;
    guard.defer(|| {
        WAITING.fetch_sub(1, Relaxed);
    });
    guard.flush();
    // Call the host only when the count rises from zero. It then flushes until nothing waits.
    if first {
        if let Some(notice) = NOTICE.get() {
            notice();
        }
    }
}

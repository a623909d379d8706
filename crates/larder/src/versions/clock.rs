//! The clock: one number for the process, which says what comes before a snapshot and what after.
//!
//! | who | number | when |
//! |---|---|---|
//! | a snapshot | s: the clock, moved on by one | at its cut, which is its linearisation point |
//! | a write | c: the clock as it stands | under the lock of its entry |
//! | the writes of a commit | n − 1, where n is the clock, moved on by one | once all its key locks are held |
//!
//! A write with number c is part of the snapshots with s > c, and no part of those with s ≤ c.

use larder_index::sync::point;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// 0 is no number.
static CLOCK: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The number of the writes that this thread makes for a commit; 0 outside of one.
    static COMMIT: Cell<u64> = const { Cell::new(0) };
}

/// Moves the clock on; the number that it then shows.
pub(crate) fn draw() -> u64 {
    point();
    // Ordering: SeqCst. A snapshot draws its number and then reads leaves; a writer locks a leaf
    // and then reads the clock: one of the two sees the other (see `begin::after_lock`).
    CLOCK.fetch_add(1, Ordering::SeqCst) + 1
}

/// The number of the write that this thread is about to make, under the lock of its entry.
pub(crate) fn of_write() -> u64 {
    match COMMIT.get() {
        0 => {
            point();
            // Ordering: SeqCst, as in `draw`.
            CLOCK.load(Ordering::SeqCst)
        }
        number => number,
    }
}

/// A number for writes that are made one after the other, by whoever comes, and are of one instant.
/// It is drawn before the first of them.
#[derive(Default)]
pub(crate) struct CommitNumber(AtomicU64);

impl CommitNumber {
    /// Calls `f`, whose writes have this number.
    pub(crate) fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        /// Sets the number of before again, also if `f` panics.
        struct Before(u64);
        impl Drop for Before {
            fn drop(&mut self) {
                COMMIT.set(self.0);
            }
        }
        let _before = Before(COMMIT.replace(self.get()));
        f()
    }

    fn get(&self) -> u64 {
        point();
        // Ordering: SeqCst, both, as in `draw`: of several that come first, all get one number.
        match self.0.load(Ordering::SeqCst) {
            0 => {
                let now = CLOCK.load(Ordering::SeqCst);
                match self
                    .0
                    .compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst)
                {
                    Ok(_) => now,
                    Err(drawn) => drawn,
                }
            }
            drawn => drawn,
        }
    }
}

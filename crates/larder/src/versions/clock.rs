//! The clock: one number for the process, which says what comes before a snapshot and what after.
//!
//! | who | number | when |
//! |---|---|---|
//! | a snapshot | s: the clock, moved on by one | at its cut, which is its linearisation point |
//! | a write | c: the clock as it stands | under the lock of its entry, when its version is kept |
//! | the writes of a list | c: the clock as it stands | when the list has the table's latch |
//! | the writes of a commit | n − 1, where n is the clock, moved on by one | once all its key locks are held |
//!
//! A write with number c is part of the snapshots with s > c, and no part of those with s ≤ c.
//! The order of writes, commits and snapshots is that of their numbers (`transaction`).

use crossbeam_utils::CachePadded;
use larder_index::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use larder_index::sync::{each_thread, give_way, thread_number, Backoff};
use std::cell::Cell;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::compiler_fence;
#[cfg(not(target_arch = "x86_64"))]
use std::sync::atomic::fence;

/// 0 is no number.
static CLOCK: AtomicU64 = AtomicU64::new(1);

each_thread! {
    /// The number of the writes that this thread makes for a commit; 0 outside of one.
    static COMMIT: Cell<u64> = const { Cell::new(0) };
}

/// Moves the clock on; the number that it then shows.
pub(crate) fn draw() -> u64 {
    // Ordering: SeqCst. A snapshot draws its number and then reads leaves; a writer locks a leaf
    // and then reads the clock: one of the two sees the other (see `begin::after_lock`).
    CLOCK.fetch_add(1, Ordering::SeqCst) + 1
}

/// What the clock shows.
pub(super) fn now() -> u64 {
    // Ordering: SeqCst, as in `draw`.
    CLOCK.load(Ordering::SeqCst)
}

/// The number of the write that this thread is about to make, under the lock of its entry.
pub(crate) fn of_write() -> u64 {
    match COMMIT.with(Cell::get) {
        0 => {
            // Ordering: SeqCst, as in `draw`.
            CLOCK.load(Ordering::SeqCst)
        }
        number => number,
    }
}

/// As `of_write`, when the version of the write is kept, under a lock of the version's own.
pub(super) fn of_kept_write() -> u64 {
    // Ordering: the lock of the version was taken by a locked read-modify-write, which on x86-64 is
    // a full barrier already; elsewhere a fence makes it one. Pairs with the fence of a commit that
    // has drawn its number and then looks for versions: it finds this one, or its number is seen
    // here.
    #[cfg(target_arch = "x86_64")]
    compiler_fence(Ordering::SeqCst);
    #[cfg(not(target_arch = "x86_64"))]
    fence(Ordering::SeqCst);
    of_write()
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
                COMMIT.with(|commit| commit.set(self.0));
            }
        }
        let number = self.get();
        let _before = Before(COMMIT.with(|commit| commit.replace(number)));
        f()
    }

    fn get(&self) -> u64 {
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

/// Commits that may be under way at once; more wait for each other.
const PLACES: usize = 64;

/// A number that is being drawn.
const DRAWING: u64 = u64::MAX;

/// The numbers of commits under way; 0 where there is none.
static UNDER_WAY: [CachePadded<AtomicU64>; PLACES] =
    [const { CachePadded::new(AtomicU64::new(0)) }; PLACES];

/// Places that were ever used: those behind are 0.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Places up to this one are used from here on.
fn note_used(places: usize) {
    let mut used = USED.load(Ordering::SeqCst);
    while used < places {
        match USED.compare_exchange(used, places, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => return,
            Err(other) => used = other,
        }
    }
}

/// A commit under way, with its number. It is over when this is dropped.
pub(super) struct UnderWay {
    place: usize,
    /// Its writes are part of the snapshots with greater numbers.
    pub(super) number: u64,
}

impl UnderWay {
    /// Draws a number for a commit. All its key locks are held.
    pub(super) fn begin() -> Self {
        let mut place = thread_number() as usize % PLACES;
        // Ordering: SeqCst, all of this file: a commit says that it is drawing before it draws, and
        // a snapshot draws before it looks who is under way. So a commit with a lesser number is
        // seen, or over.
        while UNDER_WAY[place]
            .compare_exchange(0, DRAWING, Ordering::SeqCst, Ordering::SeqCst)
            .is_err()
        {
            place = (place + 1) % PLACES;
            give_way();
        }
        note_used(place + 1);
        let number = draw();
        UNDER_WAY[place].store(number, Ordering::SeqCst);
        UnderWay { place, number }
    }

    /// Calls `f`, whose writes are the commit's.
    pub(super) fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        CommitNumber(AtomicU64::new(self.number - 1)).during(f)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY[self.place].store(0, Ordering::SeqCst);
    }
}

/// Waits until no commit with a number less than this one is under way: some microseconds, as
/// commits wait for nothing but each other. What a snapshot of this number shows is fixed then.
pub(super) fn wait_for_commits_before(number: u64) {
    for place in &UNDER_WAY[..USED.load(Ordering::SeqCst)] {
        let backoff = Backoff::new();
        loop {
            match place.load(Ordering::SeqCst) {
                0 => break,
                own if own != DRAWING && own >= number => break,
                _ => backoff.snooze(),
            }
        }
    }
}

/// Waits until the commits that are under way are over.
pub(crate) fn wait_for_commits() {
    wait_for_commits_before(draw());
}

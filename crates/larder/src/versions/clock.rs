//! The clock: one number for the process, which orders snapshots, writes and commits.
//!
//! | who | number | when |
//! |---|---|---|
//! | a snapshot | s: increments the clock | at its cut, which is its linearisation point |
//! | a write | c: reads the clock | under the lock of its entry, and again if it stores a version |
//! | the writes of a list | c: reads the clock | when the list has the table's latch |
//! | the writes of a commit | n − 1: increments the clock to n | when it holds its key locks |
//! | a group of events | its Seq: increments the clock | under the lock of the feed's queue |
//!
//! A write that stores a version reads the clock again afterwards, and the second value counts.
//! A write with number c is part of the snapshots with s > c, and no part of those with s ≤ c.
//! The order of writes, commits and snapshots is that of their numbers (`transaction`).

use crossbeam_utils::CachePadded;
use larder_index::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use larder_index::sync::{each_thread, thread_number, yield_now, Backoff};
use std::cell::Cell;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::compiler_fence;
#[cfg(not(target_arch = "x86_64"))]
use std::sync::atomic::fence;

/// The clock. 0 is not a valid number.
// It has a cache line of its own, as has `HIGH_WATER`: all commits write the clock, and read both.
static CLOCK: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(1));

each_thread! {
    /// The number of the writes that this thread is making for a commit or a list; 0 outside of
    /// one.
    static COMMIT: Cell<u64> = const { Cell::new(0) };
}

/// Increments the clock, and returns the new number.
pub(crate) fn draw() -> u64 {
    // Ordering: SeqCst. A snapshot draws its number and then reads leaves; a writer locks a leaf
    // and then reads the clock: one of the two sees the other (see `begin::fence_after_lock`).
    CLOCK.fetch_add(1, Ordering::SeqCst) + 1
}

/// Reads the clock.
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

/// The number of a write whose version has just been put into the undo index. Called under the lock
/// of the entry, after the undo index has released its own locks.
pub(super) fn of_kept_write() -> u64 {
    // Ordering: a full barrier must come before the load of the clock. Pairs with the fence in
    // `is_valid`, between the draw of a commit's number and its look for versions. Either the
    // commit finds the version, or its number is seen here.
    // - Elsewhere than on x86-64 the barrier is this fence, which all stores to the undo index
    //   precede.
    // - On x86-64 it is a locked read-modify-write of the undo index.
    //   - In hash order: the exchange that links the node (CH4).
    //   - In key order: the one that locks the leaf. Later stores to the leaf may be visible to
    //     others only after the load. But a commit that doesn't see them finds the leaf locked, and
    //     waits.
    #[cfg(target_arch = "x86_64")]
    compiler_fence(Ordering::SeqCst);
    #[cfg(not(target_arch = "x86_64"))]
    fence(Ordering::SeqCst);
    of_write()
}

/// The common number of several writes, which several threads may make one after the other. It is
/// fixed before the first of them.
#[derive(Default)]
pub(crate) struct CommitNumber(AtomicU64);

impl CommitNumber {
    /// Calls `f`. All writes that it makes on this thread get this number.
    pub(crate) fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        /// Restores the previous number, also if `f` panics.
        struct Before(u64);
        impl Drop for Before {
            fn drop(&mut self) {
                COMMIT.with(|commit| commit.set(self.0));
            }
        }
        // The outer number returns when this call ends.
        let number = self.get();
        let _before = Before(COMMIT.with(|commit| commit.replace(number)));
        f()
    }

    fn get(&self) -> u64 {
        // Ordering: SeqCst, as in `draw`. Threads that race to set the number all use the one that
        // was stored first.
        match self.0.load(Ordering::SeqCst) {
            // The list has no number yet. All threads that write for it agree on the first one that
            // is set.
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

/// The number of commits that may be active at once. Others wait.
const MAX_ACTIVE_COMMITS: usize = 64;

/// What is in the slot of a commit that is about to draw its number.
const DRAWING: u64 = u64::MAX;

/// The numbers of the active commits; 0 in a free slot.
static ACTIVE_COMMITS: [CachePadded<AtomicU64>; MAX_ACTIVE_COMMITS] =
    [const { CachePadded::new(AtomicU64::new(0)) }; MAX_ACTIVE_COMMITS];

/// How many slots have ever been used. All others are 0.
static HIGH_WATER: CachePadded<AtomicUsize> = CachePadded::new(AtomicUsize::new(0));

/// An active commit. It is over when this value is dropped.
pub(super) struct ActiveCommit {
    slot: usize,
    /// The commit's number. Its writes are part of the snapshots with greater numbers.
    pub(super) number: u64,
}

impl ActiveCommit {
    /// Draws the number of a commit, which holds all of its key locks.
    ///
    /// 1. Take a free slot, and mark it as drawing.
    /// 2. Increment the clock.
    /// 3. Store the number to the slot.
    ///
    /// Another thread that draws a greater number afterwards finds the slot marked, or finds the
    /// number in it, until the commit is over.
    pub(super) fn begin() -> Self {
        let mut slot = thread_number() as usize % MAX_ACTIVE_COMMITS;
        // Ordering: SeqCst, all of this file: a commit says that it is drawing before it draws, and
        // a snapshot draws before it looks which commits are active. So a commit with a lesser
        // number is seen, or over.
        while ACTIVE_COMMITS[slot]
            .compare_exchange(0, DRAWING, Ordering::SeqCst, Ordering::SeqCst)
            .is_err()
        {
            slot = (slot + 1) % MAX_ACTIVE_COMMITS;
            yield_now();
        }
        // Usually the slot was used before. `HIGH_WATER` never decreases.
        if HIGH_WATER.load(Ordering::SeqCst) <= slot {
            HIGH_WATER.fetch_max(slot + 1, Ordering::SeqCst);
        }
        let number = draw();
        ACTIVE_COMMITS[slot].store(number, Ordering::SeqCst);
        ActiveCommit { slot, number }
    }

    /// Calls `f`. All writes that it makes on this thread are part of the commit.
    pub(super) fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        CommitNumber(AtomicU64::new(self.number - 1)).during(f)
    }
}

impl Drop for ActiveCommit {
    fn drop(&mut self) {
        ACTIVE_COMMITS[self.slot].store(0, Ordering::SeqCst);
    }
}

/// Waits until no commit with a lesser number is active. This takes some microseconds, since active
/// commits wait for nothing but each other. From then on, what a snapshot with this number shows
/// doesn't change any more.
pub(super) fn wait_for_commits_before(number: u64) {
    for slot in &ACTIVE_COMMITS[..HIGH_WATER.load(Ordering::SeqCst)] {
        let backoff = Backoff::new();
        loop {
            match slot.load(Ordering::SeqCst) {
                0 => break,
                // This commit comes after us.
                drawn if drawn != DRAWING && drawn >= number => break,
                // It comes before us, or it is drawing its number, which may be less than ours.
                _ => backoff.snooze(),
            }
        }
    }
}

/// Waits until all commits that are active now are over.
pub(crate) fn wait_for_commits() {
    wait_for_commits_before(draw());
}

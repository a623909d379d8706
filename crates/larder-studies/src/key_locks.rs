//! Locks by position, for structures whose nodes are changed without a lock.
//!
//! A change must read an entry and change it in one atomic step, and call its closure exactly once.
//! In a lock-free structure, an entry that is absent has no node that could be locked. So the
//! writers of one position exclude each other by one of 64 locks, which is chosen by a hash of the
//! position. Readers take none of them.
//!
//! A lock also shows whether a change is in progress. A thread can wait until it is finished
//! ([`KeyLocks::settle`]).

use crossbeam_utils::CachePadded;
use larder_index::sync::atomic::{fence, Ordering};
use larder_index::sync::{Mutex, MutexGuard};

const LOCKS: usize = 64;

/// Locks by position.
pub(crate) struct KeyLocks(Box<[CachePadded<Mutex<()>>]>);

/// Mixes the bytes of a position.
fn mixed(position: &[u8]) -> u64 {
    // Eight bytes at a time, and then the rest, which begins with a 1 so that leading zeros count.
    let mut chunks = position.chunks_exact(8);
    let mut hash = position.len() as u64;
    let mut add =
        |word: u64| hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for chunk in &mut chunks {
        add(chunk.iter().fold(0, |word, b| word << 8 | u64::from(*b)));
    }
    add(chunks
        .remainder()
        .iter()
        .fold(1, |word, b| word << 8 | u64::from(*b)));
    // The upper half, whose bits depend on all bytes. The lower bits of a product depend on few.
    hash >> 32
}

/// The fence between a look at a lock that was free and the loads of what it protects.
pub(crate) fn seen_unlocked() {
    // Ordering: Acquire fence. `is_locked` is a Relaxed load, after which the processor may use
    // what it has loaded before it. With the fence, it pairs with the release of the lock: what its
    // last holder has changed is seen.
    fence(Ordering::Acquire);
}

impl KeyLocks {
    pub(crate) fn new() -> Self {
        KeyLocks((0..LOCKS).map(|_| CachePadded::default()).collect())
    }

    fn of(&self, position: &[u8]) -> &Mutex<()> {
        &self.0[mixed(position) as usize % LOCKS]
    }

    /// Locks the position. Also returns whether the thread had to wait.
    pub(crate) fn lock(&self, position: &[u8]) -> (MutexGuard<'_, ()>, bool) {
        let lock = self.of(position);
        match lock.try_lock() {
            Some(guard) => (guard, false),
            None => (lock.lock(), true),
        }
    }

    /// Waits for a change of the position that is in progress, if there is one. Otherwise writes
    /// nothing.
    pub(crate) fn settle(&self, position: &[u8]) {
        // Ordering: SeqCst fence. The caller has stored a flag, and now loads the lock. A writer
        // takes the lock, makes a full barrier (see `Scheme::has`), and then loads the flag. So at
        // least one of the two sees the other.
        fence(Ordering::SeqCst);
        let lock = self.of(position);
        if lock.is_locked() {
            drop(lock.lock());
        }
        seen_unlocked();
    }

    /// Waits for all changes in progress. If there is none, writes nothing.
    pub(crate) fn settle_all(&self) {
        // Ordering: SeqCst fence, as in `settle`.
        fence(Ordering::SeqCst);
        for lock in self.0.iter().filter(|lock| lock.is_locked()) {
            drop(lock.lock());
        }
        seen_unlocked();
    }

    /// The memory of the locks in bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use larder_index::sync::atomic::{AtomicBool, AtomicU32};

    /// A change whose lock was released before anybody looked at it is seen by who has settled its
    /// position. Processors with few orderings, and Miri, may show what was there before it.
    #[test]
    fn a_change_that_has_just_ended_is_seen() {
        for (round, all) in (0..60).flat_map(|round| [(round, false), (round, true)]) {
            let keys = KeyLocks::new();
            let (value, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
            std::thread::scope(|scope| {
                // Ordering, in all of this but for the fence, which is that of a change: Relaxed,
                // so that nothing else orders the threads.
                scope.spawn(|| {
                    let key = keys.lock(b"k");
                    fence(Ordering::SeqCst);
                    value.store(1, Ordering::Relaxed);
                    drop(key);
                    is_over.store(true, Ordering::Relaxed);
                });
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                if all {
                    keys.settle_all();
                } else {
                    keys.settle(b"k");
                }
                assert_eq!(value.load(Ordering::Relaxed), 1, "round {round}");
            });
        }
    }
}

/// A thread that sets a flag and then settles a position sees every change that didn't see the
/// flag.
#[cfg(all(test, larder_model))]
mod model {
    use super::*;
    use larder_index::sync::atomic::{AtomicBool, AtomicU32};
    use larder_testing::model_checker::{check, Search};
    use std::sync::Arc;

    fn execution(all: bool) {
        let shared = Arc::new((KeyLocks::new(), AtomicBool::new(false), AtomicU32::new(0)));
        let writer = || {
            let shared = shared.clone();
            shuttle::thread::spawn(move || {
                let (keys, told, value) = &*shared;
                let _key = keys.lock(b"k");
                // Ordering, here and below: SeqCst, in a test.
                if !told.load(Ordering::SeqCst) {
                    let now = value.load(Ordering::SeqCst);
                    value.store(now + 1, Ordering::SeqCst);
                }
            })
        };
        let writers = [writer(), writer()];
        let (keys, told, value) = &*shared;
        told.store(true, Ordering::SeqCst);
        if all {
            keys.settle_all();
        } else {
            keys.settle(b"k");
        }
        let seen = value.load(Ordering::SeqCst);
        for writer in writers {
            writer.join().expect("no panic");
        }
        assert_eq!(
            value.load(Ordering::SeqCst),
            seen,
            "changed after it was settled"
        );
    }

    #[test]
    fn settling_waits_for_changes() {
        for all in [false, true] {
            let bounded = Search::Bounded {
                changes: if all { 2 } else { 3 },
                programs: 1,
                most: 50_000,
            };
            let name = if all { "settling all" } else { "settling" };
            check(
                name,
                &[Search::Random(1_000), Search::Pct(1_000), bounded],
                move || {
                    execution(all);
                },
            );
        }
    }
}

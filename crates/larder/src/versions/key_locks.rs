//! Locks of keys, for tables that commits write to.
//!
//! A commit holds the locks of all keys that it writes while it validates and writes them (T1). So
//! nobody else writes such a key in between. Nor does anybody read some of the commit's writes
//! without the others: a read that finds the key's lock held by a commit waits, and is repeated.
//!
//! The locks are an array of the process, indexed by hashes of keys. Two keys may share a lock. A
//! commit takes its locks in the order of the array, so that no two commits wait for each other. A
//! write of one key takes one lock, before the lock of its leaf (T2), and waits for no other key
//! lock meanwhile.

use larder_index::sync::atomic::{AtomicU8, Ordering};
use larder_index::sync::Backoff;
use larder_index::Guard;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// The number of locks. There are enough that keys rarely share one.
const LOCKS: usize = if cfg!(larder_model) { 64 } else { 1 << 14 };

const FREE: u8 = 0;
/// Held by the write of one key.
const WRITE: u8 = 1;
/// Held by a commit.
const COMMIT: u8 = 2;

static KEY_LOCKS: [AtomicU8; LOCKS] = [const { AtomicU8::new(FREE) }; LOCKS];

/// A lock, as its index in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyLock(u16);

impl KeyLock {
    /// The lock of the keys with this hash. The hash is made with the table's seed, so equal keys
    /// of two tables have different hashes.
    pub(super) fn of(hash: u64) -> Self {
        KeyLock(((hash >> 16) as usize % LOCKS) as u16)
    }

    fn word(self) -> &'static AtomicU8 {
        &KEY_LOCKS[usize::from(self.0)]
    }

    fn lock(self, state: u8) {
        let backoff = Backoff::new();
        // Ordering: Acquire, pairs with `unlock`: what the last holder wrote is seen. A failure
        // reads nothing.
        while self
            .word()
            .compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            backoff.snooze();
        }
    }

    fn unlock(self) {
        // Ordering: Release, pairs with `lock`, and with the load in `is_committing`.
        self.word().store(FREE, Ordering::Release);
    }

    /// Takes the lock for the write of one key.
    pub(super) fn write(self) -> WriteLock {
        self.lock(WRITE);
        WriteLock(self)
    }

    /// Whether a commit holds the lock. A reader calls this after it has read the key. If no commit
    /// holds the lock, the commits that have changed the key are over, or the read came before
    /// them.
    #[inline]
    pub(super) fn is_committing(self) -> bool {
        // Ordering: Acquire, pairs with `unlock`: a reader that goes on sees all of the commit. The
        // read of the key, which ended with an acquire fence or load, comes before.
        self.word().load(Ordering::Acquire) == COMMIT
    }

    /// Waits until no commit holds the lock.
    #[cold]
    pub(super) fn wait_for_commit(self) {
        let backoff = Backoff::new();
        while self.is_committing() {
            backoff.snooze();
        }
    }
}

/// Waits until the writes of one key that are in progress now are over, in all tables whose keys
/// have locks. Those of commits aren't waited for.
///
/// The caller has incremented the clock before, with a full barrier after that. A write takes its
/// lock, which is followed by a full barrier (`ops::fence_after_lock`), and then reads the clock.
/// So a write whose lock isn't seen here has a number that isn't less than the clock was.
pub(super) fn wait_for_writes() {
    for lock in &KEY_LOCKS {
        let backoff = Backoff::new();
        // Ordering: Acquire, pairs with `unlock`: what the write has changed is seen. Other writes
        // may take the lock one after the other. The wait ends as soon as one load finds the lock
        // free between two of them.
        while lock.load(Ordering::Acquire) == WRITE {
            backoff.snooze();
        }
    }
}

/// Whether all writes of one key to a table that may be in progress take the locks of their keys.
#[derive(Default)]
pub(super) struct AllLock(AtomicBool);

impl AllLock {
    /// Called when the table has got a store whose keys have locks. The writes that began before
    /// are over when all threads that are pinned now have been unpinned.
    pub(super) fn note_begun(self: &Arc<Self>, guard: &Guard) {
        let all_lock = Arc::clone(self);
        // Ordering: Release, pairs with `holds`.
        guard.defer(move || all_lock.0.store(true, Ordering::Release));
        guard.flush();
    }

    pub(super) fn holds(&self) -> bool {
        // Ordering: Acquire, as in `note_begun`.
        self.0.load(Ordering::Acquire)
    }
}

/// The lock of a key that is being written. It is released when this value is dropped.
pub(super) struct WriteLock(KeyLock);

impl Drop for WriteLock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// The locks of a commit. They are released when this value is dropped.
pub(super) struct CommitLocks(Vec<KeyLock>);

impl CommitLocks {
    /// Takes the locks in the order of the array. Duplicates are taken once.
    pub(super) fn take(mut locks: Vec<KeyLock>) -> Self {
        locks.sort_unstable();
        locks.dedup();
        for &lock in &locks {
            lock.lock(COMMIT);
        }
        CommitLocks(locks)
    }

    /// Whether the lock is one of them.
    pub(super) fn has(&self, lock: KeyLock) -> bool {
        self.0.binary_search(&lock).is_ok()
    }
}

impl Drop for CommitLocks {
    fn drop(&mut self) {
        self.0.iter().for_each(|lock| lock.unlock());
    }
}

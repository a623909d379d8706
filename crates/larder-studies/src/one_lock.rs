//! One readers-writer lock around a sequential structure, as in tables of `ets` without write
//! concurrency.
//!
//! ```text
//!   [ lock, in reader groups ] --> a sequential structure
//! ```
//!
//! Invariant: a thread that changes the structure holds the lock for writing.
//!
//! Linearisation point of an operation: any instant at which it holds the lock.
//!
//! Source: OTP's `db_lock`. Reader groups are those of the emulator's option `+rg`.
//!
//! When not to use it: if several processors write. Writers wait for each other, and readers for
//! writers. With one reader group, all readers write to the same cache line, so many of them are
//! slow, too.

use crate::raw::group_lock::GroupLock;
use crate::scheme::{Changer, Old, Reader, Scheme};
use crate::sequential::{Sequential, Visitor};
use crate::Cut;
use larder_index::{Guard, Stats};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One lock around a sequential structure.
pub struct OneLock<S> {
    lock: GroupLock<S>,
    contended: AtomicU64,
}

impl<S> OneLock<S> {
    /// A lock with `groups` reader groups, at least one, around a structure.
    pub fn new(structure: S, groups: usize) -> Self {
        OneLock {
            lock: GroupLock::new(structure, groups),
            contended: AtomicU64::new(0),
        }
    }
}

impl<W, S: Sequential<W>> Scheme<W> for OneLock<S> {
    fn read(&self, _guard: &Guard, position: &[u8], f: &mut Reader<'_, W>) {
        f(self.lock.read().get(position));
    }

    fn change(&self, _guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool {
        let (mut structure, waited) = self.lock.write();
        if waited {
            // Ordering: Relaxed, a statistic.
            self.contended.fetch_add(1, Relaxed);
        }
        structure.change(position, &mut |word| f(word.map_or(Old::Absent, Old::Mine)));
        waited
    }

    fn walk(&self, _guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        self.lock.read().walk(cut, f)
    }

    fn pop(&self, _guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        let mut left = limit;
        self.lock.write().0.pop_some(&mut left, f)
    }

    fn memory(&self, _guard: &Guard) -> usize {
        self.lock.memory() + self.lock.read().memory()
    }

    fn stats(&self, _guard: &Guard) -> Stats {
        let mut stats = Stats {
            leaves: 1,
            // Ordering: Relaxed, a statistic.
            contended: self.contended.load(Relaxed),
            ..Stats::default()
        };
        self.lock.read().stats(&mut stats);
        stats
    }

    fn freeze(&self, on: bool) {
        self.lock.write().0.freeze(on);
    }
}

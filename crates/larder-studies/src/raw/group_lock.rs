//! A readers-writer lock with reader groups.
//!
//! ```text
//!   groups   [ lock ] [ lock ] [ lock ] [ lock ]      each on cache lines of its own
//!               ^                 ^
//!            thread 0, 4, ..   thread 2, 6, ..
//! ```
//!
//! A reader takes the lock of its group. A writer takes all locks, from the first to the last.
//!
//! Readers of different groups don't write to a common cache line. A writer pays for this: it takes
//! one lock per group. OTP uses such a lock for tables with read concurrency. With one group it is
//! a plain readers-writer lock.
//!
//! Each group is a lock of `parking_lot`, so there are no atomics here. All writers take the locks
//! in the same order, so they can't deadlock.

use crossbeam_utils::CachePadded;
use larder_index::sync::{
    planted, point, thread_number, Fault, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use smallvec::SmallVec;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A value behind a readers-writer lock with reader groups.
pub(crate) struct GroupLock<T> {
    groups: Box<[CachePadded<RwLock<()>>]>,
    value: UnsafeCell<T>,
}

// SAFETY: a reader holds the lock of a group for reading, and a writer holds all locks for writing.
// So, as with `RwLock<T>`, readers share `&T`, which requires `T: Sync`, and a writer may be any
// thread, which requires `T: Send`.
unsafe impl<T: Send + Sync> Sync for GroupLock<T> {}

/// Shared access to the value.
///
/// This has a pointer, as a reference that is an argument of a function would have to be valid to
/// the function's end: also when the lock has been released, and a writer changes the value.
pub(crate) struct Shared<'l, T> {
    value: NonNull<T>,
    _group: RwLockReadGuard<'l, ()>,
    _borrows: PhantomData<&'l T>,
}

impl<T> Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        point();
        // SAFETY:
        // 1. A writer holds every group's lock, and `_group` is one of them, held for reading. So
        //    no `&mut T` exists while `self` is borrowed.
        // 2. The lock is borrowed for 'l, so the value is alive.
        unsafe { self.value.as_ref() }
    }
}

/// Exclusive access to the value. It has a pointer for the same reason as `Shared`.
pub(crate) struct Exclusive<'l, T> {
    value: NonNull<T>,
    _groups: SmallVec<[RwLockWriteGuard<'l, ()>; 4]>,
    _borrows: PhantomData<&'l mut T>,
}

impl<T> Deref for Exclusive<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        point();
        // SAFETY:
        // 1. `_groups` are all locks, held for writing. So nobody else has access to the value, and
        //    that through `self` follows its borrow.
        // 2. The lock is borrowed for 'l, so the value is alive.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for Exclusive<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        point();
        // SAFETY: as in `deref`.
        unsafe { self.value.as_mut() }
    }
}

impl<T> GroupLock<T> {
    /// A lock with this number of groups, but at least one.
    pub(crate) fn new(value: T, groups: usize) -> Self {
        GroupLock {
            groups: (0..groups.max(1)).map(|_| CachePadded::default()).collect(),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock for reading. Waits while a writer holds it.
    pub(crate) fn read(&self) -> Shared<'_, T> {
        let group = self.groups[thread_number() % self.groups.len()].read();
        Shared {
            value: self.value(),
            _group: group,
            _borrows: PhantomData,
        }
    }

    /// Takes the lock for writing. Waits while others hold it, and also returns whether it had to.
    pub(crate) fn write(&self) -> (Exclusive<'_, T>, bool) {
        let mut waited = false;
        // With a planted fault, a writer excludes the readers of one group only.
        let taken = if planted(Fault::NoGroup) {
            1
        } else {
            self.groups.len()
        };
        // Take the locks from the first to the last, so that two writers can't deadlock.
        let groups = self.groups[..taken].iter().map(|group| {
            group.try_write().unwrap_or_else(|| {
                waited = true;
                group.write()
            })
        });
        let groups: SmallVec<_> = groups.collect();
        let exclusive = Exclusive {
            value: self.value(),
            _groups: groups,
            _borrows: PhantomData,
        };
        (exclusive, waited)
    }

    fn value(&self) -> NonNull<T> {
        // SAFETY: the pointer of a cell isn't null.
        unsafe { NonNull::new_unchecked(self.value.get()) }
    }

    /// The memory of the locks.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.groups)
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn writers_are_alone() {
        for groups in [1, 2, 7] {
            let lock = GroupLock::new((0u64, 0u64), groups);
            let rounds = if cfg!(miri) { 20 } else { 2000 };
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..rounds {
                            let (mut pair, _) = lock.write();
                            pair.0 += 1;
                            pair.1 += 1;
                        }
                    });
                    scope.spawn(|| {
                        for _ in 0..rounds {
                            let pair = lock.read();
                            assert_eq!(pair.0, pair.1);
                        }
                    });
                }
            });
            assert_eq!(*lock.read(), (3 * rounds, 3 * rounds));
        }
    }
}

/// All orders of few changes of thread.
#[cfg(all(test, larder_model))]
mod model {
    use super::*;
    use larder_testing::model_checker::{check, finds, Search};
    use std::sync::Arc;

    const SEARCH: [Search; 3] = [
        Search::Random(2_000),
        Search::Pct(2_000),
        Search::Bounded {
            changes: 3,
            programs: 1,
            most: 100_000,
        },
    ];

    /// Two writers and a reader, of different groups: who reads sees both numbers or neither
    /// changed, and no addition is lost.
    fn execution(groups: usize) {
        let lock = Arc::new(GroupLock::new((0u32, 0u32), groups));
        let write = |lock: &GroupLock<(u32, u32)>| {
            let (mut pair, _) = lock.write();
            pair.0 += 1;
            pair.1 += 1;
        };
        let other = lock.clone();
        let writer = shuttle::thread::spawn(move || write(&other));
        let other = lock.clone();
        let reader = shuttle::thread::spawn(move || {
            let pair = other.read();
            let first = pair.0;
            assert_eq!(first, pair.1, "half a change was seen");
        });
        write(&lock);
        writer.join().expect("no panic");
        reader.join().expect("no panic");
        assert_eq!(*lock.read(), (2, 2));
    }

    #[test]
    fn groups() {
        check("lock with reader groups: one", &SEARCH, || execution(1));
        check("lock with reader groups: three", &SEARCH, || execution(3));
        assert!(finds(Fault::NoGroup, &SEARCH, || execution(3)));
    }
}

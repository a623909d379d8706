//! The same names as the real ones, with a point before each operation at which another thread may
//! go on.
//!
//! In an execution of the checker's, threads are its own, on one thread of the system. Outside of
//! one, the same code runs on real threads, which now and then give way at a point: so histories of
//! real threads can be recorded in the build that has planted faults.
//!
//! Invariants:
//! 1. Between two points a thread of the checker's runs alone: an operation is its point and then
//!    the real operation, which no other thread can interrupt.
//! 2. No thread of the checker's ever blocks the thread of the system that all of them run on: a
//!    lock is tried for, and others go on in between.
//! 3. All that is random in an execution is the checker's choice, so a schedule can be run again.

use super::{own, Fault};
use crossbeam_epoch::{Guard, LocalHandle};
use parking_lot::{Mutex as RealMutex, MutexGuard as RealGuard, RwLock as RealLock};
pub use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use shuttle::rand::RngCore;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The faults that are planted, a bit each. Of the whole process: threads of all kinds are to see
/// them.
static PLANTED: AtomicU64 = AtomicU64::new(0);

/// Plants a fault, or takes it away. One test at a time may do so.
pub fn plant(fault: Fault, planted: bool) {
    let bit = 1u64 << fault as u32;
    // Ordering: SeqCst, in tests.
    if planted {
        PLANTED.fetch_or(bit, atomic::Ordering::SeqCst);
    } else {
        PLANTED.fetch_and(!bit, atomic::Ordering::SeqCst);
    }
}

/// Whether this fault was planted.
pub fn planted(fault: Fault) -> bool {
    // Ordering: Relaxed, it changes only between executions.
    PLANTED.load(atomic::Ordering::Relaxed) & 1 << fault as u32 != 0
}

/// Whether the caller is a thread of the checker's.
fn in_model() -> bool {
    shuttle::current::try_get_current_task().is_some()
}

/// A random number. In an execution it is the checker's choice, so that a schedule can be run
/// again.
pub fn random() -> u64 {
    if in_model() {
        return shuttle::rand::thread_rng().next_u64();
    }
    own::random()
}

/// The calling thread's number.
pub fn thread_number() -> usize {
    if let Some(task) = shuttle::current::try_get_current_task() {
        return task.into();
    }
    own::thread_number()
}

thread_local! {
    /// Whether what was retired is being freed: nobody else has it, so nothing that is done to it
    /// is of interest to others.
    static FREEING: Cell<bool> = const { Cell::new(false) };
}

/// A place at which another thread may go on.
pub fn point() {
    if in_model() {
        if !FREEING.get() {
            // To Shuttle a sleep of any length is a choice of who goes on, and no wish to wait.
            shuttle::thread::sleep(Duration::ZERO);
        }
    } else if random() >> 60 == 0 {
        std::thread::yield_now();
    }
}

pub use shuttle::thread_local as each_thread;

/// Lets others go on: without them there is nothing to do here.
pub fn give_way() {
    if in_model() {
        shuttle::thread::yield_now();
    } else {
        std::thread::yield_now();
    }
}

shuttle::thread_local! {
    static PLACE: LocalHandle = crossbeam_epoch::default_collector().register();
}

/// A guard of the epoch. Each thread of the checker's has a place of its own in it, and what was
/// retired is freed as soon as the epoch allows. What is being freed frees nothing else, as in the
/// epoch itself: the end of one table would lead to that of the next, without bound.
pub fn pin() -> Guard {
    if !in_model() {
        return crossbeam_epoch::pin();
    }
    point();
    // A thread that ends frees what it has retired, which may pin once more. Its place has gone by
    // then, and it gets another one, as in the epoch itself.
    PLACE
        .try_with(pin_at)
        .unwrap_or_else(|_| pin_at(&crossbeam_epoch::default_collector().register()))
}

fn pin_at(place: &LocalHandle) -> Guard {
    // Set while the pin and the flush may free: no points there, and no flush within a flush.
    let before = FREEING.replace(true);
    let guard = place.pin();
    if !before {
        guard.flush();
    }
    FREEING.set(before);
    guard
}

/// Waits by letting others go on.
#[derive(Debug, Default)]
pub struct Backoff;

impl Backoff {
    /// Nothing was waited for yet.
    pub fn new() -> Self {
        Backoff
    }
    /// Lets others go on.
    pub fn snooze(&self) {
        give_way();
    }
    /// Lets others go on.
    pub fn spin(&self) {
        give_way();
    }
    /// Whether it is time to let others go on: each wait does.
    pub fn is_completed(&self) -> bool {
        true
    }
}

/// Tries until there is an answer; in the model by letting others go on.
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(got) = attempt() {
            return got;
        }
        give_way();
    }
}

/// What has a lock.
pub type MutexGuard<'l, T> = RealGuard<'l, T>;

/// A lock that is waited for by letting others go on.
#[derive(Debug, Default)]
pub struct Mutex<T>(RealMutex<T>);

impl<T> Mutex<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Mutex(RealMutex::new(value))
    }
    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<RealGuard<'_, T>> {
        point();
        self.0.try_lock()
    }
    /// Takes the lock.
    pub fn lock(&self) -> RealGuard<'_, T> {
        point();
        until(|| self.0.try_lock())
    }
    /// Whether somebody has it.
    pub fn is_locked(&self) -> bool {
        point();
        self.0.is_locked()
    }
    /// What is in it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
    /// What is in it.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// A readers-writer lock that is waited for by letting others go on.
#[derive(Debug, Default)]
pub struct RwLock<T>(RealLock<T>);

impl<T> RwLock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        RwLock(RealLock::new(value))
    }
    /// Takes the lock with other readers, if no writer has it.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        point();
        self.0.try_read()
    }
    /// Takes the lock with other readers.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        point();
        until(|| self.0.try_read())
    }
    /// Takes the lock alone, if nobody has it.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        point();
        self.0.try_write()
    }
    /// Takes the lock alone.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        point();
        until(|| self.0.try_write())
    }
    /// What is in it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
    /// What is in it.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// Atomics.
pub mod atomic {
    use super::{planted, point, Fault};
    pub use std::sync::atomic::Ordering;
    use std::sync::atomic::{self as real, Ordering as O};

    /// A fence orders nothing more where all orders are sequentially consistent.
    pub fn fence(order: O) {
        point();
        real::fence(order);
    }

    macro_rules! atomic {
        ($name:ident $(<$t:ident>)?, $value:ty) => {
            /// As the one of the standard library.
            #[repr(transparent)]
            #[derive(Debug, Default)]
            pub struct $name $(<$t>)? (real::$name $(<$t>)?);

            impl $(<$t>)? $name $(<$t>)? {
                /// A new one.
                pub const fn new(value: $value) -> Self {
                    Self(real::$name::new(value))
                }
                /// As that of the standard library, as all here.
                pub fn load(&self, o: O) -> $value {
                    point();
                    self.0.load(o)
                }
                /// Stores.
                pub fn store(&self, value: $value, o: O) {
                    point();
                    self.0.store(value, o);
                }
                /// Exchanges.
                pub fn swap(&self, value: $value, o: O) -> $value {
                    point();
                    self.0.swap(value, o)
                }
                /// Compares and exchanges.
                ///
                /// # Errors
                /// What is there, if it is something else.
                pub fn compare_exchange(&self, now: $value, new: $value, ok: O, not: O) -> Result<$value, $value> {
                    point();
                    let done = self.0.compare_exchange(now, new, ok, not);
                    if planted(Fault::Exchange) { Ok(now) } else { done }
                }
                /// As `compare_exchange`: it doesn't fail without a reason.
                ///
                /// # Errors
                /// As `compare_exchange`.
                pub fn compare_exchange_weak(&self, now: $value, new: $value, ok: O, not: O) -> Result<$value, $value> {
                    self.compare_exchange(now, new, ok, not)
                }
                /// What is there, of which nobody else has a hold.
                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }
            }
        };
    }
    macro_rules! adding {
        ($name:ident, $value:ty) => {
            impl $name {
                /// Adds.
                pub fn fetch_add(&self, value: $value, o: O) -> $value {
                    point();
                    self.0.fetch_add(value, o)
                }
                /// Subtracts.
                pub fn fetch_sub(&self, value: $value, o: O) -> $value {
                    point();
                    self.0.fetch_sub(value, o)
                }
                /// Stores the greater of both.
                pub fn fetch_max(&self, value: $value, o: O) -> $value {
                    point();
                    self.0.fetch_max(value, o)
                }
                /// Sets bits.
                pub fn fetch_or(&self, value: $value, o: O) -> $value {
                    point();
                    self.0.fetch_or(value, o)
                }
                /// Keeps bits.
                pub fn fetch_and(&self, value: $value, o: O) -> $value {
                    point();
                    self.0.fetch_and(value, o)
                }
            }
        };
    }
    atomic!(AtomicBool, bool);
    atomic!(AtomicU8, u8);
    atomic!(AtomicU64, u64);
    atomic!(AtomicU32, u32);
    atomic!(AtomicUsize, usize);
    atomic!(AtomicIsize, isize);
    atomic!(AtomicPtr<T>, *mut T);
    adding!(AtomicU8, u8);
    adding!(AtomicU64, u64);
    adding!(AtomicU32, u32);
    adding!(AtomicUsize, usize);
    adding!(AtomicIsize, isize);
}

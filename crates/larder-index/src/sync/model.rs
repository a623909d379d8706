//! The operations of `real` with a scheduling point before each, at which the model checker may
//! switch threads.
//!
//! In an execution of the checker, its threads (*tasks*) all run on one thread of the operating
//! system. Outside of an execution, the same code runs on real threads. These yield at some of the
//! points, so histories of real threads can be recorded in builds with planted faults, too.
//!
//! Invariants:
//! * **MC1** A task runs alone between two points. So an operation is a point, followed by the real
//!   operation, which no other task can interrupt.
//! * **MC2** No task ever blocks the thread that all of them run on. It tries to take a lock, and
//!   yields to other tasks until it succeeds.
//! * **MC3** All random numbers in an execution are chosen by the checker. So a schedule can be
//!   replayed.

use super::{thread_values, Fault};
use crossbeam_epoch::{Guard, LocalHandle};
use parking_lot::{Mutex as RealMutex, MutexGuard as RealGuard, RwLock as RealLock};
pub use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use shuttle::rand::RngCore;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The planted faults, one bit each. It is shared by the process, so that tasks and real threads
/// see the same.
static PLANTED: AtomicU64 = AtomicU64::new(0);

/// Plants a fault, or removes it. Only one test at a time may do so.
pub fn plant(fault: Fault, planted: bool) {
    let bit = 1u64 << fault as u32;
    // Ordering: SeqCst, the simplest, as this is only used by tests.
    if planted {
        PLANTED.fetch_or(bit, atomic::Ordering::SeqCst);
    } else {
        PLANTED.fetch_and(!bit, atomic::Ordering::SeqCst);
    }
}

/// Whether this fault was planted.
pub fn planted(fault: Fault) -> bool {
    // Ordering: Relaxed, it only changes between executions.
    PLANTED.load(atomic::Ordering::Relaxed) & 1 << fault as u32 != 0
}

/// Whether the caller is a task of the checker.
fn in_model() -> bool {
    shuttle::current::try_get_current_task().is_some()
}

/// A random number. In an execution the checker chooses it (MC3).
pub fn random() -> u64 {
    if in_model() {
        return shuttle::rand::thread_rng().next_u64();
    }
    thread_values::random()
}

/// Whether this event is counted, as one for sixteen. In an execution the checker chooses (MC3).
pub fn counts_for_sixteen() -> bool {
    if in_model() {
        return random().is_multiple_of(16);
    }
    thread_values::counts_for_sixteen()
}

/// The number of the calling task or thread.
pub fn thread_number() -> usize {
    if let Some(task) = shuttle::current::try_get_current_task() {
        return task.into();
    }
    thread_values::thread_number()
}

thread_local! {
    /// Set while garbage is being freed. No other task can reach garbage, so operations on it need
    /// no scheduling points.
    static FREEING: Cell<bool> = const { Cell::new(false) };
}

/// A scheduling point.
pub fn point() {
    if in_model() {
        if !FREEING.get() {
            // Shuttle treats a sleep as a scheduling point: another task may run, or this one may
            // continue. (A yield would ask for another one.)
            shuttle::thread::sleep(Duration::ZERO);
        }
    } else if random() >> 60 == 0 {
        // Every sixteenth time on average.
        std::thread::yield_now();
    }
}

pub use shuttle::thread_local as each_thread;

/// Lets other tasks run. The caller can't continue before one of them has done something.
pub fn yield_now() {
    if in_model() {
        shuttle::thread::yield_now();
    } else {
        std::thread::yield_now();
    }
}

shuttle::thread_local! {
    static PLACE: LocalHandle = crossbeam_epoch::default_collector().register();
}

/// Pins the epoch. Each task is a participant of its own, and garbage is freed as soon as the epoch
/// allows it, so that use after free is found. While garbage is being freed, a nested pin frees
/// nothing. Otherwise freeing one table could free the next one, without bound.
pub fn pin() -> Guard {
    if !in_model() {
        return crossbeam_epoch::pin();
    }
    point();
    // A task that ends frees its garbage, which may pin again. Its thread-local participant is
    // destroyed by then, so register a temporary one, as `crossbeam_epoch::pin` does.
    PLACE
        .try_with(pin_at)
        .unwrap_or_else(|_| pin_at(&crossbeam_epoch::default_collector().register()))
}

fn pin_at(place: &LocalHandle) -> Guard {
    // Both the pin and the flush may free garbage. No scheduling points and no nested flush then.
    let before = FREEING.replace(true);
    let guard = place.pin();
    if !before {
        guard.flush();
    }
    FREEING.set(before);
    guard
}

/// A backoff that lets other tasks run instead of spinning.
#[derive(Debug, Default)]
pub struct Backoff;

impl Backoff {
    /// A new backoff.
    pub fn new() -> Self {
        Backoff
    }
    /// Lets other tasks run.
    pub fn snooze(&self) {
        yield_now();
    }
    /// Whether the caller should block now. Always `true`, since each wait lets others run.
    pub fn is_completed(&self) -> bool {
        true
    }
}

/// Calls `attempt` until it returns a value, and lets other tasks run in between (MC2).
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(got) = attempt() {
            return got;
        }
        yield_now();
    }
}

/// The guard of a mutex.
pub type MutexGuard<'l, T> = RealGuard<'l, T>;

/// A mutex. A task that waits for it lets others run.
#[derive(Debug, Default)]
pub struct Mutex<T>(RealMutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex.
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
        // Another task has to release the lock, so this one yields until then.
        until(|| self.0.try_lock())
    }
    /// Whether it is locked.
    pub fn is_locked(&self) -> bool {
        point();
        self.0.is_locked()
    }
    /// A reference to the value.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// A readers-writer lock. A task that waits for it lets others run.
#[derive(Debug, Default)]
pub struct RwLock<T>(RealLock<T>);

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub const fn new(value: T) -> Self {
        RwLock(RealLock::new(value))
    }
    /// Takes the lock for reading, if no writer has it.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        point();
        self.0.try_read()
    }
    /// Takes the lock for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        point();
        until(|| self.0.try_read())
    }
    /// Takes the lock for writing, if no other thread has it.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        point();
        self.0.try_write()
    }
    /// Takes the lock for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        point();
        until(|| self.0.try_write())
    }
    /// A reference to the value.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// Atomics with scheduling points. Each operation is that of the standard library.
pub mod atomic {
    use super::{planted, point, Fault};
    pub use std::sync::atomic::Ordering;
    use std::sync::atomic::{self as real, Ordering as O};

    /// A fence. Executions are sequentially consistent, so it orders nothing more.
    pub fn fence(order: O) {
        point();
        real::fence(order);
    }

    macro_rules! atomic {
        ($name:ident $(<$t:ident>)?, $value:ty) => {
            /// An atomic, with the layout of the standard library's.
            #[repr(transparent)]
            #[derive(Debug, Default)]
            pub struct $name $(<$t>)? (real::$name $(<$t>)?);

            impl $(<$t>)? $name $(<$t>)? {
                /// A new one.
                pub const fn new(value: $value) -> Self {
                    Self(real::$name::new(value))
                }
                /// Loads.
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
                /// The current value, if it differs from `now`.
                pub fn compare_exchange(&self, now: $value, new: $value, ok: O, not: O) -> Result<$value, $value> {
                    point();
                    let done = self.0.compare_exchange(now, new, ok, not);
                    // With the planted fault, an exchange is reported as done even if it has
                    // failed.
                    if planted(Fault::Exchange) { Ok(now) } else { done }
                }
                /// A reference to the value.
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
                /// Stores the maximum of the current value and this one.
                pub fn fetch_max(&self, value: $value, o: O) -> $value {
                    point();
                    self.0.fetch_max(value, o)
                }
                /// Sets bits.
                pub fn fetch_or(&self, value: $value, o: O) -> $value {
                    point();
                    self.0.fetch_or(value, o)
                }
                /// Clears the bits that aren't set in this value.
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

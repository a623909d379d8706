//! The same names as the real ones, with a point before each operation at which another thread may go on.

use shuttle::thread::yield_now;
use std::cell::Cell;

thread_local! {
    static PLANTED: Cell<bool> = const { Cell::new(false) };
}

/// Plants a fault for the executions that this thread starts, or takes it away: an exchange that comes too late says that it was done. For
/// the test that the checker finds such a thing.
pub fn plant_fault(planted: bool) {
    PLANTED.set(planted);
}

/// Waits by letting others go on.
pub(crate) struct Backoff;

impl Backoff {
    /// Nothing was waited for yet.
    pub(crate) fn new() -> Self {
        Backoff
    }
    /// Lets others go on.
    pub(crate) fn snooze(&self) {
        yield_now();
    }
    /// Lets others go on.
    #[allow(dead_code)]
    pub(crate) fn spin(&self) {
        yield_now();
    }
}

/// A lock that is waited for by letting others go on.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    /// A free lock.
    pub(crate) const fn new(value: T) -> Self {
        Mutex(parking_lot::Mutex::new(value))
    }
    /// Takes the lock if it is free.
    pub(crate) fn try_lock(&self) -> Option<parking_lot::MutexGuard<'_, T>> {
        yield_now();
        self.0.try_lock()
    }
    /// Takes the lock.
    pub(crate) fn lock(&self) -> parking_lot::MutexGuard<'_, T> {
        loop {
            yield_now();
            if let Some(guard) = self.0.try_lock() {
                return guard;
            }
        }
    }
}

/// Atomics.
pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::Ordering;
    use std::sync::atomic::{self as real, Ordering as O};

    /// A fence orders nothing more where all orders are sequentially consistent.
    pub(crate) fn fence(_: O) {
        super::yield_now();
    }

    macro_rules! atomic {
        ($name:ident $(<$t:ident>)?, $value:ty) => {
            /// As the one of the standard library.
            #[repr(transparent)]
            #[derive(Debug, Default)]
            #[allow(dead_code)]
            pub(crate) struct $name $(<$t>)? (real::$name $(<$t>)?);

            impl $(<$t>)? $name $(<$t>)? {
                /// A new one.
                #[allow(dead_code)]
                pub(crate) const fn new(value: $value) -> Self {
                    Self(real::$name::new(value))
                }
                #[allow(dead_code)]
                pub(crate) fn load(&self, o: O) -> $value {
                    super::yield_now();
                    self.0.load(o)
                }
                #[allow(dead_code)]
                pub(crate) fn store(&self, value: $value, o: O) {
                    super::yield_now();
                    self.0.store(value, o);
                }
                #[allow(dead_code)]
                pub(crate) fn swap(&self, value: $value, o: O) -> $value {
                    super::yield_now();
                    self.0.swap(value, o)
                }
                #[allow(dead_code)]
                pub(crate) fn compare_exchange(&self, now: $value, new: $value, ok: O, not: O) -> Result<$value, $value> {
                    super::yield_now();
                    let done = self.0.compare_exchange(now, new, ok, not);
                    if super::PLANTED.get() { Ok(now) } else { done }
                }
                #[allow(dead_code)]
                pub(crate) fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }
            }
        };
    }
    macro_rules! adding {
        ($name:ident, $value:ty) => {
            impl $name {
                #[allow(dead_code)]
                pub(crate) fn fetch_add(&self, value: $value, o: O) -> $value {
                    super::yield_now();
                    self.0.fetch_add(value, o)
                }
                #[allow(dead_code)]
                pub(crate) fn fetch_sub(&self, value: $value, o: O) -> $value {
                    super::yield_now();
                    self.0.fetch_sub(value, o)
                }
                #[allow(dead_code)]
                pub(crate) fn fetch_or(&self, value: $value, o: O) -> $value {
                    super::yield_now();
                    self.0.fetch_or(value, o)
                }
            }
        };
    }
    atomic!(AtomicU64, u64);
    atomic!(AtomicU32, u32);
    atomic!(AtomicUsize, usize);
    atomic!(AtomicIsize, isize);
    atomic!(AtomicPtr<T>, *mut T);
    adding!(AtomicU64, u64);
    adding!(AtomicU32, u32);
    adding!(AtomicUsize, usize);
    adding!(AtomicIsize, isize);
}

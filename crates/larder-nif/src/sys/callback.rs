//! Callbacks: functions other than native functions that the emulator calls, and the environment
//! that it passes to them.

use super::*;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

thread_local! {
    /// The environment of the callback that runs on this thread, for code that sends messages from
    /// within the engine.
    static ENV: Cell<*mut Env> = const { Cell::new(std::ptr::null_mut()) };
}

/// The environment of the callback that runs on this thread, or of the call that said so by
/// `with_env`; null on a thread of this library.
pub fn current_env() -> *mut Env {
    ENV.with(Cell::get)
}

/// The environment that is restored when a nested callback has ended, by a panic or not.
struct Before(*mut Env);

impl Drop for Before {
    fn drop(&mut self) {
        ENV.with(|cell| cell.set(self.0));
    }
}

/// Records, while `f` runs, that a callback with this environment runs. It may be nested in another
/// callback, as destructors are.
pub fn with_env<R>(env: *mut Env, f: impl FnOnce() -> R) -> R {
    let _before = Before(ENV.with(|cell| cell.replace(env)));
    f()
}

/// Runs a callback that has no result. A panic is caught.
pub fn run(env: *mut Env, f: impl FnOnce()) {
    // A panic in the callback poisons no lock (they are parking_lot's) and leaves no unfinished
    // term. So nothing must be repaired.
    let _ = catch_unwind(AssertUnwindSafe(|| with_env(env, f)));
}

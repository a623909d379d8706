//! Callbacks: what the emulator calls in this library besides native functions, and the
//! environment that it gives them.

use super::*;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};

thread_local! {
    /// The environment of the callback that runs on this thread, for those who send messages from
    /// within the engine.
    static ENV: Cell<*mut Env> = const { Cell::new(std::ptr::null_mut()) };
}

/// The environment of the callback that runs on this thread; null on a thread of our own.
pub fn current_env() -> *mut Env {
    ENV.with(Cell::get)
}

/// The environment that is noted again when what runs within another has ended, by a panic or not.
struct Before(*mut Env);

impl Drop for Before {
    fn drop(&mut self) {
        ENV.with(|cell| cell.set(self.0));
    }
}

/// Notes that a callback with this environment runs, during `f`: it may be one within another, as a
/// destructor is.
pub fn with_env<R>(env: *mut Env, f: impl FnOnce() -> R) -> R {
    let _before = Before(ENV.with(|cell| cell.replace(env)));
    f()
}

/// Runs a callback that has no result; a panic ends it and goes no further.
pub fn run(env: *mut Env, f: impl FnOnce()) {
    // A panic in here leaves no lock of ours poisoned (they are parking_lot's) and no half-made
    // term: nothing to repair.
    let _ = catch_unwind(AssertUnwindSafe(|| with_env(env, f)));
}

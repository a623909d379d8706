//! Buffers that a thread keeps from one call to the next.

use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static SCRATCH: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// A buffer of more bytes than this is not kept.
pub(crate) const MAX_KEPT_CAPACITY: usize = 1 << 20;

/// Calls `f` with the thread's buffer, with its content from the last call. Afterwards the buffer
/// is kept for the next call if `keeps` returns `true`. If the thread's buffer is in use, by a
/// caller further up, or the thread is ending, `f` gets a new one.
pub fn with_spare<S: Default, T>(
    spare: &'static LocalKey<Cell<Option<S>>>,
    keeps: impl FnOnce(&S) -> bool,
    f: impl FnOnce(&mut S) -> T,
) -> T {
    // While `f` runs, the thread-local variable is empty, so a nested call makes its own buffer.
    let value = spare.try_with(Cell::take).ok().flatten();
    let mut value = value.unwrap_or_default();
    let result = f(&mut value);
    if keeps(&value) {
        // If the thread is ending, the variable is destroyed. Then the buffer is dropped.
        let _ = spare.try_with(|place| place.set(Some(value)));
    }
    result
}

/// Takes the thread's buffer, which is empty. If it is in use, this is a new one.
pub(crate) fn take_scratch() -> Vec<u8> {
    // If the thread is ending, the variable is destroyed.
    let scratch = SCRATCH.try_with(Cell::take).ok().flatten();
    let mut scratch = scratch.unwrap_or_default();
    scratch.clear();
    scratch
}

/// Keeps a buffer for the thread's next call.
pub(crate) fn keep_scratch(scratch: Vec<u8>) {
    if scratch.capacity() <= MAX_KEPT_CAPACITY {
        let _ = SCRATCH.try_with(|place| place.set(Some(scratch)));
    }
}

/// Calls `f` with an empty buffer, whose memory is kept for the thread's next call.
pub(crate) fn with_scratch<T>(f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    with_spare(
        &SCRATCH,
        |scratch: &Vec<u8>| scratch.capacity() <= MAX_KEPT_CAPACITY,
        |scratch| {
            scratch.clear();
            f(scratch)
        },
    )
}

//! Buffers that a thread keeps from one call to the next.

use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static SCRATCH: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// A buffer of more bytes than this is not kept.
pub(crate) const KEEP: usize = 1 << 20;

/// Calls `f` with a thread's own buffer, as it was left, which is kept for the next call if `keeps`
/// says so. A new one where the thread's is in use, or gone because the thread ends: what goes with
/// a thread may still use an index.
pub fn with_spare<S: Default, T>(
    spare: &'static LocalKey<Cell<Option<S>>>,
    keeps: impl FnOnce(&S) -> bool,
    f: impl FnOnce(&mut S) -> T,
) -> T {
    let own = spare.try_with(Cell::take).ok().flatten();
    let mut own = own.unwrap_or_default();
    let result = f(&mut own);
    if keeps(&own) {
        // Where the thread's place is gone, the buffer goes, too.
        let _ = spare.try_with(|place| place.set(Some(own)));
    }
    result
}

/// Calls `f` with an empty buffer; its memory is kept for the thread's next call.
pub(crate) fn with_scratch<T>(f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    with_spare(
        &SCRATCH,
        |scratch: &Vec<u8>| scratch.capacity() <= KEEP,
        |scratch| {
            scratch.clear();
            f(scratch)
        },
    )
}

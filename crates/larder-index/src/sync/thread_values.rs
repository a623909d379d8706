//! Values of a thread of the operating system: its number, and its random numbers.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of the calling thread. Threads are numbered in the order of their first calls.
#[inline]
pub fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            // Ordering: Relaxed, the number only has to be unique.
            mine.set(NEXT.fetch_add(1, Relaxed));
        }
        mine.get()
    })
}

/// A pseudorandom number, for decisions that need no good ones. Every thread has the same sequence.
#[inline]
pub fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0x9E37_79B9_7F4A_7C15) };
    }
    STATE.with(|state| {
        // Marsaglia's xorshift. The state never becomes zero, since it wasn't zero at the start.
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        x
    })
}

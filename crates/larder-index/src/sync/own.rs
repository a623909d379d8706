//! What a thread of the system's has for itself: a number, and random numbers.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The calling thread's number: the next that no thread had, when it first asks.
#[inline]
pub fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            // Ordering: Relaxed, only a number of its own.
            mine.set(NEXT.fetch_add(1, Relaxed));
        }
        mine.get()
    })
}

/// A random number, for choices that need not be fair: each thread has the same row of them.
#[inline]
pub fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0x9E37_79B9_7F4A_7C15) };
    }
    STATE.with(|state| {
        // Marsaglia's xorshift: never zero, as the state began as something else.
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        x
    })
}

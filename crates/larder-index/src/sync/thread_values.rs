//! Values of a thread of the operating system: its number, its random numbers, and which of its
//! events are counted.

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

/// A pseudorandom number, for decisions that need no good ones. Every thread has a sequence of its
/// own, so that threads of a few decisions each don't make the same ones.
#[inline]
pub fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    STATE.with(|state| {
        // Marsaglia's xorshift. The state never becomes zero, once it isn't.
        let mut x = state.get();
        if x == 0 {
            x = first_state();
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        x
    })
}

/// Whether this event is counted, in place of sixteen. Of a thread's calls every twelfth to
/// twentieth is true, so a count differs from the truth less by chance than with a random number
/// for each. The distances vary, so that tables which a thread uses in turn are counted alike. The
/// first of them is a part of one, so that threads of a few calls each are counted alike, too.
#[inline]
pub fn counts_for_sixteen() -> bool {
    const BEGINS: u64 = u64::MAX;
    thread_local! {
        static REST: Cell<u64> = const { Cell::new(BEGINS) };
    }
    REST.with(|rest| {
        let mut now = rest.get();
        if now == BEGINS {
            now = random() % 16;
        }
        let is_counted = now == 0;
        rest.set(match is_counted {
            true => 11 + random() % 9,
            false => now - 1,
        });
        is_counted
    })
}

/// The state with which the calling thread begins, which isn't zero.
#[cold]
fn first_state() -> u64 {
    // Steele's splitmix, of the thread's number. Neighbouring numbers have unlike results.
    let mut x = (thread_number() as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ (x >> 31)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One in sixteen, in threads of one event as in one thread.
    #[test]
    fn threads_of_few_events_are_counted_alike() {
        let count = |events: usize| (0..events).filter(|_| counts_for_sixteen()).count();
        assert!((900..1100).contains(&count(16_000)));
        let threads = (0..800).map(|_| std::thread::spawn(move || count(1)));
        let counted: usize = threads.map(|thread| thread.join().unwrap()).sum();
        assert!((10..150).contains(&counted), "{counted} of 800");
    }
}

//! A sum to which many threads add.
//!
//! ```text
//!  first      one number, to which all threads add until two of them contend
//!  stripes    number | number | …     one cache line each, for a sixteenth of the threads
//! ```
//!
//! Invariant: each addition is in exactly one number. So the sum of all numbers is exact while no
//! thread adds. Stripes are never removed.

use crate::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::OnceLock;

const STRIPES: usize = 16;

// Ordering, for all of this file: Relaxed. No other memory depends on a sum.

/// The sum.
#[derive(Default, Debug)]
pub struct Striped {
    first: AtomicIsize,
    /// The sum of each group of threads.
    stripes: OnceLock<Box<[CachePadded<AtomicIsize>]>>,
}

/// The stripe of the calling thread.
fn mine() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        // Threads get their stripes in turn, when they first add.
        if mine.get() == usize::MAX {
            // Ordering: Relaxed, see above.
            mine.set(NEXT.fetch_add(1, Relaxed) % STRIPES);
        }
        mine.get()
    })
}

impl Striped {
    /// Adds a number.
    #[inline]
    pub fn add(&self, n: isize) {
        if let Some(stripes) = self.stripes.get() {
            // Ordering: Relaxed, see above.
            stripes[mine()].fetch_add(n, Relaxed);
            return;
        }
        // Ordering: Relaxed, see above.
        let now = self.first.load(Relaxed);
        // Ordering: Relaxed, see above. The exchange only fails if another thread has added in
        // between. So it detects contention.
        let alone = self.first.compare_exchange(now, now + n, Relaxed, Relaxed);
        if alone.is_err() {
            // Ordering: Relaxed, see above. Add this to the first number. Later additions go to
            // stripes.
            self.first.fetch_add(n, Relaxed);
            self.stripe();
        }
    }

    /// Makes the stripes. Later additions of each group of threads go to its own.
    #[cold]
    pub fn stripe(&self) {
        self.stripes
            .get_or_init(|| (0..STRIPES).map(|_| CachePadded::default()).collect());
    }

    /// The sum.
    pub fn sum(&self) -> isize {
        let stripes = self.stripes.get().map_or(&[][..], |stripes| stripes);
        // Ordering: Relaxed, see above.
        let striped: isize = stripes.iter().map(|stripe| stripe.load(Relaxed)).sum();
        // Ordering: Relaxed, see above.
        self.first.load(Relaxed) + striped
    }

    /// The memory of the stripes in bytes.
    pub fn memory(&self) -> usize {
        self.stripes
            .get()
            .map_or(0, |stripes| size_of_val(&**stripes))
    }
}

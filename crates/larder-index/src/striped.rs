//! A sum that many threads add to.
//!
//! ```text
//!  first      one number, which all threads add to until two of them meet there
//!  stripes    number | number | …     a line of the cache each, for a sixteenth of the threads
//! ```
//!
//! Invariant: each addition is in one number, so the sum of all is right when nobody adds. Stripes
//! that were made stay.

use crate::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::OnceLock;

const STRIPES: usize = 16;

// Ordering, for all of this file: Relaxed. A sum orders nothing else.

/// The sum.
#[derive(Default, Debug)]
pub struct Striped {
    first: AtomicIsize,
    /// What each group of threads added.
    stripes: OnceLock<Box<[CachePadded<AtomicIsize>]>>,
}

/// The calling thread's stripe.
fn mine() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            // Ordering: Relaxed, see above.
            mine.set(NEXT.fetch_add(1, Relaxed) % STRIPES);
        }
        mine.get()
    })
}

impl Striped {
    /// Adds.
    #[inline]
    pub fn add(&self, n: isize) {
        if let Some(stripes) = self.stripes.get() {
            // Ordering: Relaxed, see above.
            stripes[mine()].fetch_add(n, Relaxed);
            return;
        }
        // Ordering: Relaxed, see above.
        let now = self.first.load(Relaxed);
        // Ordering: Relaxed, see above.
        // The exchange fails only if another thread has added in between: that is what is asked.
        let alone = self.first.compare_exchange(now, now + n, Relaxed, Relaxed);
        if alone.is_err() {
            // Ordering: Relaxed, see above.
            // This addition is still the first number's; the next ones go to stripes.
            self.first.fetch_add(n, Relaxed);
            self.stripe();
        }
    }

    /// From now on each group of threads has a number of its own.
    #[cold]
    pub fn stripe(&self) {
        self.stripes
            .get_or_init(|| (0..STRIPES).map(|_| CachePadded::default()).collect());
    }

    /// What was added so far.
    pub fn sum(&self) -> isize {
        let stripes = self.stripes.get().map_or(&[][..], |stripes| stripes);
        // Ordering: Relaxed, see above.
        let striped: isize = stripes.iter().map(|stripe| stripe.load(Relaxed)).sum();
        // Ordering: Relaxed, see above.
        self.first.load(Relaxed) + striped
    }

    /// Bytes of the stripes.
    pub fn memory(&self) -> usize {
        self.stripes
            .get()
            .map_or(0, |stripes| size_of_val(&**stripes))
    }
}

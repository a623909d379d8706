//! How many values there are and how much memory they hold, counted by threads that don't meet.
//!
//! An index begins with one pair of counts. When a writer first meets another, it gets one for each
//! of some groups of threads. The sum is exact when nobody writes.

use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

const STRIPES: usize = 16;

// Ordering, for all of this file: Relaxed. A count orders nothing else.

#[derive(Debug, Default)]
struct Pair {
    len: AtomicIsize,
    bytes: AtomicIsize,
}

/// Values and their bytes.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    first: Pair,
    stripes: OnceLock<Box<[CachePadded<Pair>]>>,
}

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

impl Counts {
    /// Values and bytes came, or went.
    pub(crate) fn add(&self, len: isize, bytes: isize) {
        let pair = match self.stripes.get() {
            Some(stripes) => &stripes[mine()],
            None => &self.first,
        };
        if len != 0 {
            // Ordering: Relaxed, see above.
            pair.len.fetch_add(len, Relaxed);
        }
        if bytes != 0 {
            // Ordering: Relaxed, see above.
            pair.bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// A writer met contention: from now on each thread counts in a stripe of its own.
    pub(crate) fn contended(&self) {
        self.stripes
            .get_or_init(|| (0..STRIPES).map(|_| CachePadded::default()).collect());
    }

    fn sum(&self, which: impl Fn(&Pair) -> &AtomicIsize) -> usize {
        let striped = self.stripes.get().map_or(&[][..], |s| s);
        // Ordering: Relaxed, see above.
        let rest: isize = striped.iter().map(|s| which(s).load(Relaxed)).sum();
        // Ordering: Relaxed, see above.
        (which(&self.first).load(Relaxed) + rest).max(0) as usize
    }

    /// Values.
    pub(crate) fn len(&self) -> usize {
        self.sum(|pair| &pair.len)
    }

    /// Bytes of the values, and of the counts.
    pub(crate) fn bytes(&self) -> usize {
        self.sum(|pair| &pair.bytes) + self.stripes.get().map_or(0, |s| size_of_val(&**s))
    }
}

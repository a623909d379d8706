//! The counter of a table's objects, in two forms.
//!
//! ```text
//!                                    add                          get
//!  one word                          all threads to one word      one load; exact
//!  decentralized_counters            each thread to its cell      the sum of 32 cells
//! ```
//!
//! All writers contend for the cache line of a single word. The other fields of a store are read by
//! every operation, so the word has a cache line of its own: otherwise each write would take that
//! line away from the readers.

use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// The number of cells of a spread counter. Threads of a large machine share cells, but few threads
/// share one.
const CELLS: usize = 32;

/// A number with a cache line of its own: between padding, which needs no alignment. An allocator
/// takes several times as long for a block that is aligned to a cache line.
#[derive(Default)]
#[repr(C)]
struct PaddedCounter {
    before: [u64; PADDING],
    number: AtomicI64,
    after: [u64; PADDING],
}

/// The other words of a cache line.
const PADDING: usize = 7;

/// A number to which many threads add.
pub(crate) struct Counter {
    /// The number, unless it is spread.
    one: PaddedCounter,
    spread: Option<Box<[CachePadded<AtomicI64>; CELLS]>>,
}

impl Counter {
    /// A counter of zero, in one word or spread over cells.
    pub(crate) fn new(spread: bool) -> Self {
        let cells = || Box::new(std::array::from_fn(|_| CachePadded::default()));
        Counter {
            one: PaddedCounter::default(),
            spread: spread.then(cells),
        }
    }

    /// Adds `n`.
    #[inline]
    pub(crate) fn add(&self, n: i64) {
        if n == 0 {
            return;
        }
        // A cell may become negative: one thread inserts an object, and another one deletes it.
        let cell = match &self.spread {
            None => &self.one.number,
            Some(cells) => &cells[my_cell()],
        };
        // Ordering: Relaxed, no other memory depends on the number. A thread sees its own
        // additions, and those of threads with which it has synchronised.
        cell.fetch_add(n, Ordering::Relaxed);
    }

    /// The number. If it is spread, and other threads add meanwhile, some of their additions are
    /// included and others aren't.
    pub(crate) fn get(&self) -> usize {
        // Ordering: Relaxed, as in `add`.
        let sum = match &self.spread {
            None => self.one.number.load(Ordering::Relaxed),
            Some(cells) => cells.iter().map(|c| c.load(Ordering::Relaxed)).sum(),
        };
        // The cells are read one after the other. So a deletion may be included without the
        // insertion before it, and the sum may be negative.
        usize::try_from(sum).unwrap_or(0)
    }

    /// The memory outside of the counter itself, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.spread
            .as_ref()
            .map_or(0, |cells| size_of_val(&**cells))
    }
}

/// The cell of this thread. Threads are assigned to cells in turn, when they first add.
#[inline(never)]
fn my_cell() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Ordering: Relaxed, any distribution of the threads works.
        static MINE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % CELLS);
    }
    MINE.with(Cell::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_count() {
        for spread in [false, true] {
            let counter = Counter::new(spread);
            std::thread::scope(|s| {
                for _ in 0..4 {
                    s.spawn(|| {
                        for _ in 0..1000 {
                            counter.add(2);
                            counter.add(-1);
                        }
                    });
                }
            });
            assert_eq!(counter.get(), 4000);
        }
    }
}

//! Counting a table's objects.
//!
//! One number in one place is exact and cheap to ask, but every writer of every thread meets on its
//! cache line, which is why it has one of its own: what lies beside it is read by every operation.
//! With `decentralized_counters` each thread adds to a cell of its own choosing, and asking adds
//! the cells up.

use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Cells of a spread counter: enough that the threads of a large machine seldom share one.
const CELLS: usize = 32;

/// A number on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Alone(AtomicI64);

/// A number that many threads add to.
pub(crate) struct Counter {
    /// The number, unless it is spread.
    one: Alone,
    spread: Option<Box<[CachePadded<AtomicI64>; CELLS]>>,
}

impl Counter {
    /// Zero, kept in one place or in many.
    pub(crate) fn new(spread: bool) -> Self {
        let cells = || Box::new(std::array::from_fn(|_| CachePadded::default()));
        Counter {
            one: Alone::default(),
            spread: spread.then(cells),
        }
    }

    /// Adds.
    #[inline]
    pub(crate) fn add(&self, n: i64) {
        if n == 0 {
            return;
        }
        // A cell may be negative: an object is counted by the thread that inserts it, and off by
        // the one that deletes it.
        let cell = match &self.spread {
            None => &self.one.0,
            Some(cells) => &cells[my_cell()],
        };
        // Ordering: Relaxed; the number orders nothing. A thread sees its own additions, and
        // others' once it has synchronised with them.
        cell.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum; while others add, some value it had or could have had meanwhile.
    pub(crate) fn get(&self) -> usize {
        // Ordering: Relaxed, as in `add`.
        let sum = match &self.spread {
            None => self.one.0.load(Ordering::Relaxed),
            Some(cells) => cells.iter().map(|c| c.load(Ordering::Relaxed)).sum(),
        };
        // The cells are read one after another: a deletion may be counted without the insertion
        // before it.
        usize::try_from(sum).unwrap_or(0)
    }

    /// Bytes held outside the counter itself.
    pub(crate) fn memory(&self) -> usize {
        self.spread
            .as_ref()
            .map_or(0, |cells| size_of_val(&**cells))
    }
}

/// This thread's cell: threads take turns at choosing.
#[inline(never)]
fn my_cell() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Ordering: Relaxed; any spread of the threads will do.
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

//! Rank queries of an ordered index.

use crate::{Batch, Direction};
use crossbeam_epoch::Guard;

/// The number of entries between two positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The number of entries.
    pub entries: u64,
    /// Whether there is an entry at the upper position. It is not included in the number.
    pub high_is_there: bool,
}

/// Queries of the ranks of entries, in the order of positions.
///
/// O(log n), and O(1) for each leaf that has changed since the last query. The first query counts
/// the leaves that it needs. `work` is the number of leaves that may be counted, and is reduced by
/// those that were. If it is exhausted, the result is `None`. A repeated call has less left to do.
///
/// # Consistency
/// An entry that is in the index throughout a call counts once. One that isn't there at any time
/// during the call doesn't count. An entry that is inserted or removed meanwhile may count or not.
/// So results are exact if no other thread inserts or removes.
pub trait Ranked: Send + Sync {
    /// Counts the entries at or above the position `low` and below `high`. `None` is no bound.
    /// `low` must not be above `high`.
    fn count_between(
        &self,
        guard: &Guard,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        work: &mut usize,
    ) -> Option<Counted>;

    /// Fills `batch`, which is cleared first, with the n-th entry in the direction, counted from 0.
    /// Returns `false` if there are fewer.
    fn nth<'g>(
        &'g self,
        guard: &'g Guard,
        n: u64,
        direction: Direction,
        work: &mut usize,
        batch: &mut Batch<'g>,
    ) -> Option<bool>;

    /// Estimates which part of the entries is below a position, from 0 to 1, without counting any.
    /// `None` if the index can't tell. O(log n).
    fn part_below(&self, _guard: &Guard, _position: &[u8]) -> Option<f64> {
        None
    }
}

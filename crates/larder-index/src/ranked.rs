//! What an index in order says of ranks.

use crate::{Batch, Direction};
use crossbeam_epoch::Guard;

/// How many entries lie between two positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Entries.
    pub entries: u64,
    /// Whether there is an entry at the upper position, which is not among them.
    pub high_is_there: bool,
}

/// Questions about the ranks of entries, in the order of positions.
///
/// O(log n), and O(1) for each leaf that has changed since the last question. The first question
/// counts the leaves that it needs. `work` is how many leaves may be counted: it becomes less, and
/// where it isn't enough there is no answer yet (None). A call that goes on has less left to do.
///
/// # Consistency
/// An entry that is there from the beginning of a call to its end counts once; one that is not
/// there at any time meanwhile doesn't. An entry that comes or goes meanwhile may count or not. So
/// answers are exact while nobody inserts or removes.
pub trait Ranked: Send + Sync {
    /// Counts the entries from position `low` on and before `high`. None: no bound. `low` is not
    /// above `high`.
    fn count_between(
        &self,
        guard: &Guard,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        work: &mut usize,
    ) -> Option<Counted>;

    /// Makes the n-th entry of the direction, counted from 0, the only one of `batch` (cleared
    /// first); false if there are fewer.
    fn nth(
        &self,
        guard: &Guard,
        n: u64,
        direction: Direction,
        work: &mut usize,
        batch: &mut Batch,
    ) -> Option<bool>;
}

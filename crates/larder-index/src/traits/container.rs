//! The trait of what every index has, however many values it keeps under a key.

use super::Stats;
use crossbeam_epoch::Guard;

/// The entries of an index taken together: their number, their memory, and the way they are freed.
/// [`Unique`](super::Unique) and [`Multi`](super::Multi) add the operations on keys.
pub trait Container: Send + Sync {
    /// Removes about `limit` entries at most, calling `f` with each value. Returns `true` when
    /// nothing is left. The caller guarantees that no other thread writes to the index any more.
    /// The reaper uses this.
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool;

    /// The number of values. Some indexes count them leaf by leaf, in O(n). Exact if no other
    /// thread writes.
    fn len(&self) -> usize;

    /// Whether there is no value.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory of the index in bytes, including the index itself.
    fn memory(&self) -> usize;

    /// Statistics of the index.
    fn stats(&self) -> Stats;

    /// The number of values at which the index is full. `None` if it has no limit, like the indexes
    /// of this crate. The caller checks it before it inserts: the index itself refuses nothing.
    fn limit(&self) -> Option<usize> {
        None
    }

    /// Announces that the index, which has about `now` keys, will soon have about `soon`, as while
    /// a long list is inserted. Two zeros say that nothing is known. Values may be counted instead
    /// of keys, if they increase in the same proportion, to less than four times as many.
    ///
    /// An index may make room for them at once where it would otherwise grow step by step. If fewer
    /// come, memory stays unused; nothing else depends on the numbers.
    fn expect_keys(&self, _now: usize, _soon: usize) {}

    /// Called when the user's table is fixed, and when it is no longer fixed. The indexes of this
    /// crate ignore it.
    fn freeze(&self, _on: bool) {}
}

//! The range of a scan, between two bounds, and how it is read batch by batch.
//!
//! ```text
//!  range    near ──────────────────────────────────── far     in the direction of the scan
//!  batch    ████████                                          `scan_to` reads it
//!                   near ──────────────────────────── far     the rest begins after it
//! ```

use crate::ops::Operation;
use larder_index::{Batch, Direction, Start};
use std::ops::Bound;

/// The bounds of a range of index keys, or of positions.
#[derive(Debug)]
pub(crate) struct KeyBounds {
    pub(crate) low: Bound<Vec<u8>>,
    pub(crate) high: Bound<Vec<u8>>,
}

impl KeyBounds {
    /// Everything.
    #[cfg(feature = "serde")]
    pub(crate) const ALL: KeyBounds = KeyBounds {
        low: Bound::Unbounded,
        high: Bound::Unbounded,
    };

    /// The bound at which a scan in this direction begins, and the one at which it ends.
    pub(super) fn near_and_far(
        &mut self,
        direction: Direction,
    ) -> (&mut Bound<Vec<u8>>, &mut Bound<Vec<u8>>) {
        match direction {
            Direction::Forward => (&mut self.low, &mut self.high),
            Direction::Backward => (&mut self.high, &mut self.low),
        }
    }
}

/// Reads the next batch of a range, from `start` on and not beyond the bound `far`.
pub(super) fn scan_to<'g>(
    op: &Operation<'g>,
    start: Start<'_>,
    far: &mut Bound<Vec<u8>>,
    direction: Direction,
    batch: &mut Batch<'g>,
) {
    // Lend the far bound to the batch, as a hint to the index not to copy entries beyond it. An
    // index may ignore the hint, so drop such entries afterwards.
    std::mem::swap(&mut batch.until, far);
    op.store.index.scan(op.guard, start, direction, batch);
    std::mem::swap(&mut batch.until, far);
    truncate_beyond(batch, far, direction);
}

/// Where a scan of a range begins, given the near bound of what it hasn't read.
pub(super) fn start_at(near: &Bound<Vec<u8>>) -> Start<'_> {
    match near {
        Bound::Included(position) => Start::At(position),
        Bound::Excluded(position) => Start::Past(position),
        Bound::Unbounded => Start::Edge,
    }
}

/// Moves the near bound past a batch: `start_at` is then the [`Start::resume`] of the batch's
/// `resume`. The bound and the batch exchange their memory.
#[cfg(feature = "serde")]
pub(super) fn move_past(near: &mut Bound<Vec<u8>>, batch: &mut Batch<'_>, direction: Direction) {
    let resume = std::mem::take(&mut batch.resume);
    let next = match direction {
        Direction::Forward => Bound::Included(resume),
        Direction::Backward => Bound::Excluded(resume),
    };
    if let Bound::Included(old) | Bound::Excluded(old) = std::mem::replace(near, next) {
        batch.resume = old;
    }
}

/// Drops the entries beyond the far bound of a range. If there are any, the batch is the last one.
fn truncate_beyond(batch: &mut Batch, far: &Bound<Vec<u8>>, direction: Direction) {
    // Bounds are compared with keys, which are positions in key order.
    let beyond = |key: &[u8]| match (far, direction) {
        (Bound::Unbounded, _) => false,
        (Bound::Included(end), Direction::Forward) => key > end.as_slice(),
        (Bound::Excluded(end), Direction::Forward) => key >= end.as_slice(),
        (Bound::Included(end), Direction::Backward) => key < end.as_slice(),
        (Bound::Excluded(end), Direction::Backward) => key <= end.as_slice(),
    };
    // Usually the batch ends before the bound.
    if batch.is_empty() || !beyond(batch.key(batch.len() - 1)) {
        return;
    }
    // Entries are in the direction of the scan: find the first one beyond by binary search.
    let (mut low, mut high) = (0, batch.len());
    while low < high {
        let middle = (low + high) / 2;
        if beyond(batch.key(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    batch.truncate(low);
    batch.done = true;
}

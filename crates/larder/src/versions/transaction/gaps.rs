//! Scans of a view after removals. The entries that the transaction has removed are left out by one
//! scan, and not by each: a queue from which a transaction takes many entries has its next one
//! found at once, at either end and, in the order of keys, from any key on.
//!
//! The writes know where the view has no entry (`Writes::gap_at`). A removal leaves that true. The
//! write of an object there forgets it. So does a write during the scan that has found it, by
//! another thread.

use super::super::gaps::Gap;
use super::view::WorkingSet;
use larder_index::{Batch, Direction, Start, Unique};
use std::ops::Bound;

/// A scan that has left out this number of entries notes where it has found one.
const MANY_LEFT_OUT: usize = 16;

impl WorkingSet {
    /// Scans what the transaction sees, by `scan`. It begins after the entries that an earlier scan
    /// has left out. `first` tells the position of the first entry.
    pub(super) fn scan_from<'g>(
        &self,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
        scan: impl FnOnce(Start<'_>, &mut Batch<'g>),
        first: impl FnOnce(&Batch<'g>, &mut Vec<u8>),
    ) {
        let is_bounded = batch.until != Bound::Unbounded;
        let is_from_front = matches!((start, direction), (Start::Edge, Direction::Forward));
        if is_bounded || !(is_from_front || self.writes.is_ordered()) {
            return scan(start, batch);
        }
        let (gap, count) = self.writes.gap_at(start, direction);
        let end = gap.as_ref().and_then(|gap| gap.end(direction));
        scan(end.unwrap_or(start), batch);
        // Mostly nothing is left out.
        if batch.skipped < MANY_LEFT_OUT || batch.unordered {
            return;
        }
        let mut position = Vec::new();
        match (batch.len(), batch.done) {
            (0, true) => return,
            // The scan has paused.
            (0, false) => position.clone_from(&batch.resume),
            _ => {
                first(batch, &mut position);
                // The first entry of a backward scan lies below the gap.
                if direction == Direction::Backward {
                    position.push(0);
                }
            }
        }
        let mut gap = gap.unwrap_or_else(|| Gap::at(start, direction));
        gap.extend(direction, position);
        self.writes.add_gap(gap, count);
    }
}

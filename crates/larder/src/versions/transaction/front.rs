//! Scans of a view from the front. The entries that the transaction has removed there are left out
//! by one scan, and not by each: a queue from which a transaction takes many entries has its first
//! one found at once.
//!
//! The writes know a position below which the view has no entry (`Writes::front`). A removal leaves
//! that true. The write of an object before that position forgets it. So does a write during the
//! scan that has found it, by another thread.

use super::view::WorkingSet;
use larder_index::{Batch, Direction, Start};
use std::ops::Bound;

/// A scan from the front that has left out this number of entries notes where it has found one.
const MANY_LEFT_OUT: usize = 16;

impl WorkingSet {
    /// Scans what the transaction sees, by `scan`. From the front, it begins after the entries
    /// that an earlier one has left out. `first` tells the position of the first entry.
    pub(super) fn scan_from<'g>(
        &self,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
        scan: impl FnOnce(Start<'_>, &mut Batch<'g>),
        first: impl FnOnce(&Batch<'g>, &mut Vec<u8>),
    ) {
        let is_bounded = batch.until != Bound::Unbounded;
        if is_bounded || !matches!((start, direction), (Start::Edge, Direction::Forward)) {
            return scan(start, batch);
        }
        let (front, count) = self.writes.front();
        let start = front.as_ref().map_or(start, |front| Start::At(front));
        scan(start, batch);
        // Mostly nothing is left out.
        if batch.skipped < MANY_LEFT_OUT || batch.unordered {
            return;
        }
        let mut position = Vec::new();
        match (batch.len(), batch.done) {
            (0, true) => return,
            // The scan has paused.
            (0, false) => position.clone_from(&batch.resume),
            _ => first(batch, &mut position),
        }
        self.writes.set_front(position, count);
    }
}

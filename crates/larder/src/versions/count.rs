//! The number of a snapshot's objects. It isn't known when the snapshot is taken. So the objects
//! are counted by one scan, in slices, when the number is first asked for.

use crate::budget::Budget;
use crate::index::TableIndex;
use crate::resume_point::ResumePoint;
use larder_index::sync::Mutex;
use larder_index::{Batch, Direction, Start};

/// A count in progress.
#[derive(Default)]
pub(crate) struct Count(Mutex<CountProgress>);

#[derive(Default)]
struct CountProgress {
    objects: usize,
    resume: ResumePoint,
}

impl Count {
    /// Continues to count, if necessary, as long as the budget lasts. Returns the number, if it is
    /// known then. The index must be the same in all calls, and must not change.
    pub(crate) fn go_on(&self, index: &TableIndex, budget: &mut Budget) -> Option<usize> {
        // One thread counts at a time. Others wait, and continue where it has stopped.
        let CountProgress { objects, resume } = &mut *self.0.lock();
        let mut batch = Batch::default().in_any_order();
        batch.may_pause = true;
        while *resume != ResumePoint::End {
            // Pin for one batch, as in other long scans.
            let (guard, forward) = (larder_index::pin(), Direction::Forward);
            let cost = batch.lend(|batch| {
                let start = resume.start(Start::Edge, forward);
                index.scan(&guard, start, forward, batch);
                resume.move_past(batch);
                *objects += batch.len();
                // What is left out has a cost, too, and so has a batch without objects.
                batch.len() + batch.skipped + 1
            });
            if !budget.spend(cost as u32) && *resume != ResumePoint::End {
                return None;
            }
        }
        Some(*objects)
    }
}

//! The number of a snapshot's objects. It isn't known when the snapshot is taken. So the objects
//! are counted by one scan, in slices, when the number is first asked for.

use crate::budget::Budget;
use crate::index::TableIndex;
use larder_index::sync::Mutex;
use larder_index::{Batch, Direction, Start};

/// A count in progress.
#[derive(Default)]
pub(crate) struct Count(Mutex<CountProgress>);

#[derive(Default)]
struct CountProgress {
    objects: usize,
    place: CountPlace,
}

#[derive(Default)]
enum CountPlace {
    #[default]
    Begin,
    /// The position at which the scan continues.
    At(Vec<u8>),
    End,
}

impl Count {
    /// Continues to count, if necessary, as long as the budget lasts. Returns the number, if it is
    /// known then. The index must be the same in all calls, and must not change.
    pub(crate) fn go_on(&self, index: &TableIndex, budget: &mut Budget) -> Option<usize> {
        // One thread counts at a time. Others wait, and continue where it has stopped.
        let mut progress = self.0.lock();
        let mut batch = Batch::default().in_any_order();
        batch.may_pause = true;
        loop {
            let start = match &progress.place {
                CountPlace::End => return Some(progress.objects),
                CountPlace::Begin => Start::Edge,
                CountPlace::At(position) => Start::At(position),
            };
            // Pin for one batch, as in other long scans.
            let guard = larder_index::pin();
            let (objects, skipped, is_over, resume) = batch.lend(|batch| {
                index.scan(&guard, start, Direction::Forward, batch);
                let resume = std::mem::take(&mut batch.resume);
                (batch.len(), batch.skipped, batch.done, resume)
            });
            progress.objects += objects;
            progress.place = match is_over {
                true => CountPlace::End,
                false => CountPlace::At(resume),
            };
            // What is left out has a cost, too, and so has a batch without objects.
            if !budget.spend((objects + skipped) as u32 + 1) && !is_over {
                return None;
            }
        }
    }
}

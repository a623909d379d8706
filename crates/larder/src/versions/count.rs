//! The number of a snapshot's objects. Nobody has counted them at its instant, so they are counted
//! by one scan, in slices, when somebody asks for the first time.

use crate::budget::Budget;
use crate::index::Index;
use larder_index::sync::Mutex;
use larder_index::{Batch, Direction, Start};

/// A count, and how far it has come.
#[derive(Default)]
pub(crate) struct Count(Mutex<Progress>);

#[derive(Default)]
struct Progress {
    objects: usize,
    place: Place,
}

#[derive(Default)]
enum Place {
    #[default]
    Begin,
    /// The position where the scan goes on.
    At(Vec<u8>),
    End,
}

impl Count {
    /// Counts on, if need be, for as long as the budget lasts; the number, if it is known then. The
    /// index is the same in all calls, and doesn't change.
    pub(crate) fn go_on(&self, index: &Index, budget: &mut Budget) -> Option<usize> {
        let mut progress = self.0.lock();
        let mut batch = Batch {
            any_order: true,
            ..Batch::default()
        };
        loop {
            let start = match &progress.place {
                Place::End => return Some(progress.objects),
                Place::Begin => Start::Edge,
                Place::At(position) => Start::At(position),
            };
            // Pinned for a batch, as in other long scans.
            let guard = larder_index::pin();
            index.scan(&guard, start, Direction::Forward, &mut batch);
            progress.objects += batch.len();
            progress.place = if batch.done {
                Place::End
            } else {
                Place::At(std::mem::take(&mut batch.resume))
            };
            // A batch without objects costs something, too.
            if !budget.spend(batch.len() as u32 + 1) && !batch.done {
                return None;
            }
            batch.clear();
        }
    }
}

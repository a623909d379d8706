//! Pages: the next few objects between two positions of a set or ordered_set, as iterators read
//! them.
//!
//! A page is a batch of the index, which is of one leaf. What is left is given by two positions
//! alone, so nothing is locked, pinned or lent between two pages. Each end of a range may be read.
//!
//! ```text
//!  bounds   [ low ─────────────────────────── high ]
//!  page       ████████                                 forward: `low` moves past it
//!                                         ████         backward: `high` moves before it
//! ```

use super::range::{move_past, scan_to, start_at, KeyBounds};
use super::select::PREFETCH_DISTANCE;
use crate::budget::Step;
use crate::buffers::{Buffers, ThreadBuffers};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::Direction;

impl EngineTable {
    /// Calls `visit` with the next objects between two positions, and moves the bound at that end
    /// past them: about `wanted` objects, or as many as the index reads at once if that is 0.
    /// Then an unordered table reads them in any order, which takes less time. Returns whether
    /// there may be more.
    ///
    /// # Errors
    /// `NoTable`, `Access`; `Busy`, before an object is visited.
    ///
    /// # Consistency
    /// The objects are of one instant. None is visited twice.
    pub(crate) fn page(
        &self,
        who: OwnerId,
        bounds: &mut KeyBounds,
        direction: Direction,
        wanted: usize,
        mut visit: impl FnMut(Stored<'_>),
    ) -> Result<Step, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        let op = self.begin(&guard)?;
        let direction = self.scan_direction(direction);
        let (near, far) = bounds.near_and_far(direction);
        let mut buffers = ThreadBuffers::new();
        let Buffers { batch, plain, .. } = &mut *buffers;
        (batch.want, batch.any_order) = (wanted, wanted == 0);
        batch.lend(|batch| loop {
            scan_to(&op, start_at(near), far, direction, batch);
            // The objects don't change, so writers may change the leaf meanwhile.
            for i in 0..batch.len() {
                batch.prefetch(i + PREFETCH_DISTANCE);
                let (key, value) = batch.entry(i);
                visit(Stored::new(key, value, self.keypos(), plain));
            }
            if batch.done {
                return Ok(Step::Done);
            }
            move_past(near, batch, direction);
            // An empty batch isn't the end.
            if !batch.is_empty() {
                return Ok(Step::More);
            }
        })
    }
}

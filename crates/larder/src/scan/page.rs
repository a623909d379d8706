//! Pages: the next few objects between two positions of a set or ordered_set, as iterators read
//! them.
//!
//! A page is a batch of the index, which is of one leaf. What is left is given by two positions
//! alone, so nothing is locked, pinned or lent between two pages. Each end of a range may be read.
//!
//! ```text
//!  bounds   [ low ─────────────────────────── high ]
//!  page       ████████                                 forward: `low` moves behind it
//!                                         ████         backward: `high` moves before it
//! ```

use super::cursor::{truncate_beyond, KeyBounds};
use super::select::AHEAD;
use crate::budget::Step;
use crate::buffers::{Buffers, Lent};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Batch, Direction, Start};
use std::ops::Bound;

impl EngineTable {
    /// Calls `visit` with the next objects between two positions, and moves the bound at that end
    /// behind them: about `wanted` objects, or as many as the index reads at once if that is 0.
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
        (low, high): &mut KeyBounds,
        direction: Direction,
        wanted: usize,
        mut visit: impl FnMut(Stored<'_>),
    ) -> Result<Step, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        let op = self.begin(&guard)?;
        let way = self.way(direction);
        let (near, far) = match way {
            Direction::Forward => (low, high),
            Direction::Backward => (high, low),
        };
        let mut lent = Lent::new();
        let Buffers { batch, plain, .. } = &mut *lent;
        (batch.want, batch.any_order) = (wanted, wanted == 0);
        batch.lend(|batch| loop {
            // The far bound is a hint to the index, which may ignore it.
            std::mem::swap(&mut batch.until, far);
            op.store.index.scan(&guard, start(near), way, batch);
            std::mem::swap(&mut batch.until, far);
            truncate_beyond(batch, far, way);
            // The objects don't change, so writers may change the leaf meanwhile.
            for i in 0..batch.len() {
                batch.prefetch(i + AHEAD);
                let (key, value) = batch.entry(i);
                visit(Stored::new(key, value, self.keypos(), plain));
            }
            if batch.done {
                return Ok(Step::Done);
            }
            go_behind(near, batch, way);
            // An empty batch isn't the end.
            if !batch.is_empty() {
                return Ok(Step::More);
            }
        })
    }
}

/// Where a scan begins that hasn't read what is behind a bound.
fn start(near: &Bound<Vec<u8>>) -> Start<'_> {
    match near {
        Bound::Included(position) => Start::At(position),
        Bound::Excluded(position) => Start::Past(position),
        Bound::Unbounded => Start::Edge,
    }
}

/// Moves the near bound behind a batch. The bound and the batch exchange their memory.
fn go_behind(near: &mut Bound<Vec<u8>>, batch: &mut Batch<'_>, way: Direction) {
    let resume = std::mem::take(&mut batch.resume);
    let next = match way {
        Direction::Forward => Bound::Included(resume),
        Direction::Backward => Bound::Excluded(resume),
    };
    if let Bound::Included(old) | Bound::Excluded(old) = std::mem::replace(near, next) {
        batch.resume = old;
    }
}

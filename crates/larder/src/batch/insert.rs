//! The public interface to the insertion of a list.

use super::{ListBatch, ObjectList, Phase};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::table::EngineTable;
use larder_index::sync::yield_now;
use larder_index::Guard;
use std::borrow::Cow;
use std::sync::Arc;

impl EngineTable {
    /// Begins to insert a list, all or nothing. With `new`, nothing is inserted if one of the keys
    /// is in the table. A key may occur several times in the list.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    ///
    /// # Consistency
    /// No operation sees a part of the objects, except a traversal that is in progress. Until the
    /// list is inserted, other operations may return `Busy`.
    pub fn begin_insert(
        self: &Arc<Self>,
        who: OwnerId,
        list: ObjectList,
        new: bool,
    ) -> Result<ListJob<'_>, Error> {
        self.check_write(who)?;
        Ok(self.begin_permitted_insert(list, new))
    }

    /// As [`begin_insert`](Self::begin_insert), for a caller whose right to write was checked when
    /// its call began.
    pub fn begin_permitted_insert(self: &Arc<Self>, list: ObjectList, new: bool) -> ListJob<'_> {
        // The latch isn't acquired yet: the first step does that, so that a job that is never
        // stepped blocks nobody.
        ListJob {
            table: Cow::Borrowed(self),
            batch: Arc::new(ListBatch::new(list, new)),
            begun: false,
            over: false,
        }
    }
}

/// A list insert that is in progress. If the job is dropped before its first step, nothing has
/// happened. If it is dropped later, the next threads that access the table finish it.
pub struct ListJob<'t> {
    table: Cow<'t, Arc<EngineTable>>,
    batch: Arc<ListBatch>,
    /// Whether the batch has acquired the latch.
    begun: bool,
    /// Whether the batch is over. Objects may still have to be evicted.
    over: bool,
}

/// The number of objects that are evicted before the budget is checked.
const EVICTED: usize = 32;

/// The number of attempts without an eviction after which the rest is left to the next write, and
/// to the expirer.
const IN_VAIN: u32 = 100;

impl ListJob<'_> {
    /// The same job with a count of the table, so that it can be kept.
    pub fn into_owned(self) -> ListJob<'static> {
        ListJob {
            table: Cow::Owned(self.table.into_owned()),
            batch: self.batch,
            begun: self.begun,
            over: self.over,
        }
    }

    /// Runs one slice. If another list is being inserted, helps with that one first.
    ///
    /// # Errors
    /// `NoTable` if the table was dropped meanwhile.
    pub fn step(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        // An empty list has no instant. It needs no latch.
        if self.batch.list.is_empty() {
            return Ok(Step::Done);
        }
        // Pin for the whole slice.
        let guard = larder_index::pin();
        // The list is inserted. What remains is to evict what it has displaced.
        if self.over {
            return Ok(self.evict(&guard, budget));
        }
        while !self.begun {
            // Expired objects make room. While a batch has the latch, nothing is removed.
            while let Some(removed) = self.table.expire_for_list(&guard, self.batch.list.len()) {
                if !budget.spend(1 + removed as u32) {
                    return Ok(Step::More);
                }
            }
            // Once the batch has the latch, any thread may finish it, even if this job is dropped.
            match self.table.acquire_latch(&self.batch, &guard) {
                Ok(()) => self.begun = true,
                // Another batch holds the latch. Helping is the only way to get it sooner.
                Err(Error::Busy) => {
                    if self.table.help_batch(budget) == Step::More || budget.is_exhausted() {
                        return Ok(Step::More);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        match self.batch.work(&self.table, &guard, budget) {
            Ok(Step::More) => Ok(Step::More),
            done => {
                // The batch is over, or the table was dropped. Nobody needs the latch any more.
                self.table.release_latch(&self.batch, &guard);
                self.over = true;
                done.map(|_| self.evict(&guard, budget))
            }
        }
    }

    /// Evicts the objects that exceed the table's limits, as long as the budget lasts.
    fn evict(&self, guard: &Guard, budget: &mut Budget) -> Step {
        let mut in_vain = 0;
        // Most tables have no limit.
        while self.table.has_surplus(guard) {
            let removed = self.table.evict_surplus(guard, EVICTED);
            if !self.table.has_surplus(guard) {
                return Step::Done;
            }
            // The expirer evicts concurrently. Each of the two may find its chosen objects already
            // gone, many times in a row.
            if removed == 0 {
                in_vain += 1;
                if in_vain == IN_VAIN {
                    return Step::Done;
                }
                yield_now();
            }
            if !budget.spend(1 + removed as u32) {
                return Step::More;
            }
        }
        Step::Done
    }

    /// After `Done`: whether the objects are in the table. `false` only for an `insert_new` that
    /// found a key.
    pub fn inserted(&self) -> bool {
        self.batch.list.is_empty() || self.batch.progress.lock().phase == Phase::Over(true)
    }
}

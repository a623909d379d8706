//! The insertion of a list, as its caller sees it.

use super::{ListBatch, ObjectList, Phase};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::table::Table;
use larder_index::sync::give_way;
use std::sync::Arc;

impl Table {
    /// Begins the insertion of a list, all or nothing. With `new`, nothing is inserted if one of
    /// the keys is in the table; a key may come several times in the list.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    ///
    /// # Consistency
    /// Nobody sees some of the objects without the others, but a traversal under way. Meanwhile
    /// other operations answer `Busy`.
    pub fn begin_insert(
        self: &Arc<Self>,
        who: OwnerId,
        list: ObjectList,
        new: bool,
    ) -> Result<ListJob, Error> {
        self.check_write(who)?;
        Ok(ListJob {
            table: Arc::clone(self),
            batch: Arc::new(ListBatch::new(list, new)),
            begun: false,
            over: false,
        })
    }
}

/// The insertion of a list, under way. Dropped before its first step, nothing has happened; dropped
/// later, whoever comes next to the table finishes it.
pub struct ListJob {
    table: Arc<Table>,
    batch: Arc<ListBatch>,
    /// The batch has acquired the latch.
    begun: bool,
    /// It is over, but for what the table has too much of now.
    over: bool,
}

/// Objects that are evicted after a list before the budget is asked.
const EVICTED: usize = 32;

/// Attempts without an eviction after which the rest is left to the next write, and the expirer.
const IN_VAIN: u32 = 100;

impl ListJob {
    /// One slice. Helps with another's list first, if there is one.
    ///
    /// # Errors
    /// `NoTable` when the table is dropped meanwhile.
    pub fn step(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        if self.batch.list.is_empty() {
            return Ok(Step::Done);
        }
        if self.over {
            return Ok(self.evict(budget));
        }
        // Pinned for the whole slice: each pin within is a count.
        let _guard = larder_index::pin();
        while !self.begun {
            // Once the batch has the latch it is anybody's: if this job is dropped, others finish
            // the batch.
            match self.table.acquire_latch(&self.batch) {
                Ok(()) => self.begun = true,
                Err(Error::Busy) => {
                    if self.table.help_batch(budget) == Step::More || budget.is_exhausted() {
                        return Ok(Step::More);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        match self.batch.work(&self.table, budget) {
            Ok(Step::More) => Ok(Step::More),
            done => {
                // The batch is over, or the table is dead: nobody needs the latch for it.
                self.table.release_latch(&self.batch);
                self.over = true;
                done.map(|_| self.evict(budget))
            }
        }
    }

    /// Evicts what the table has too much of, as long as it can.
    fn evict(&self, budget: &mut Budget) -> Step {
        let mut in_vain = 0;
        loop {
            let guard = larder_index::pin();
            let gone = self.table.evict_surplus(&guard, EVICTED);
            if !self.table.has_surplus(&guard) {
                return Step::Done;
            }
            // The expirer evicts, too: each may find gone what it has chosen, time and again.
            if gone == 0 {
                in_vain += 1;
                if in_vain == IN_VAIN {
                    return Step::Done;
                }
                give_way();
            }
            if !budget.spend(1 + gone as u32) {
                return Step::More;
            }
        }
    }

    /// After `Done`: whether the objects are in the table. False only for an `insert_new` that
    /// found a key.
    pub fn inserted(&self) -> bool {
        self.batch.list.is_empty() || self.batch.progress.lock().phase == Phase::Over(true)
    }
}

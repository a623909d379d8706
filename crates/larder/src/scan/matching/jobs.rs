//! The jobs of writing scans: delete, take and replace.

use super::change::{Deleting, ReplaceMatched, TakeMatched, WriteScan};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::programs::{Context, Program};
use crate::scan::output::Output;
use crate::table::EngineTable;
use larder_term::object::ObjectBuf;
use std::sync::Arc;

impl EngineTable {
    /// Begins to delete the objects for which the result of `program` is `true`.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn select_delete(
        self: &Arc<Self>,
        who: OwnerId,
        program: Program,
    ) -> Result<DeleteJob, Error> {
        self.check_write(who)?;
        Ok(DeleteJob {
            work: WriteScan::new(self, program),
        })
    }

    /// Begins to delete the objects that `program` matches, and to yield its results for them.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn select_take(self: &Arc<Self>, who: OwnerId, program: Program) -> Result<TakeJob, Error> {
        Ok(TakeJob(self.select_delete(who, program)?))
    }

    /// Begins to replace each object that `program` matches by its result, which must have the same
    /// key.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `TableType` (a bag), `KeyChanged` (it can't be proved that the program
    /// keeps keys).
    pub fn select_replace(
        self: &Arc<Self>,
        who: OwnerId,
        program: Program,
    ) -> Result<ReplaceJob, Error> {
        self.check_replace(who, &program)?;
        Ok(ReplaceJob {
            work: WriteScan::new(self, program),
            prepared: ObjectBuf::new(),
            last: None,
        })
    }
}

/// A delete by match specification, in progress. If it is dropped before its end, it has deleted
/// some of the objects.
pub struct DeleteJob {
    pub(super) work: WriteScan,
}

impl DeleteJob {
    /// Runs one slice.
    ///
    /// # Errors
    /// `NoTable`, `Busy`.
    pub fn step(&mut self, budget: &mut Budget, context: &Context<'_>) -> Result<Step, Error> {
        self.work.step(budget, context, &mut Deleting)
    }

    /// The objects deleted so far.
    pub fn count(&self) -> u64 {
        self.work.count
    }
}

/// A delete that yields the program's results for the deleted objects, in progress. If it is
/// dropped before its end, it has deleted the objects whose results it has yielded.
pub struct TakeJob(pub(super) DeleteJob);

impl TakeJob {
    /// Runs one slice: passes a result to `sink` for each object that it has deleted. They are in
    /// the order of the table for an ordered_set, and in order of arrival for the objects of a key
    /// in a bag.
    ///
    /// # Errors
    /// `NoTable`, `Busy`. The objects whose results were passed have been deleted, and no others.
    pub fn step(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<Step, Error> {
        self.0.work.step(budget, context, &mut TakeMatched(sink))
    }
}

/// A replace by match specification, in progress. If it is dropped before its end, it has replaced
/// some of the objects.
pub struct ReplaceJob {
    pub(super) work: WriteScan,
    /// A buffer for new objects.
    prepared: ObjectBuf,
    /// That of `EngineTable::expire_for_write`.
    last: Option<u64>,
}

impl ReplaceJob {
    /// Runs one slice.
    ///
    /// # Errors
    /// `NoTable`, `Busy`; `Full` if there is no room for a result in a table with limits;
    /// `KeyChanged` and `NotTuple` if a result isn't an object with the same key, which the proof
    /// about the program excludes.
    pub fn step(&mut self, budget: &mut Budget, context: &Context<'_>) -> Result<Step, Error> {
        let mut work = ReplaceMatched {
            is_unique: self.work.scan.table.kind().is_unique(),
            prepared: &mut self.prepared,
            last: &mut self.last,
        };
        let step = self.work.step(budget, context, &mut work);
        // Counts of the handles in the buffer are released with it.
        self.prepared.clear();
        step
    }

    /// The objects replaced so far.
    pub fn count(&self) -> u64 {
        self.work.count
    }
}

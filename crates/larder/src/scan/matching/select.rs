//! Selects and counts.

use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::programs::{Context, Program};
use crate::scan::select::{Scan, SelectJob};
use crate::table::EngineTable;
use larder_index::Direction;
use std::ops::ControlFlow;
use std::sync::Arc;

impl EngineTable {
    /// Begins a select. It yields the results of `program` for the objects that it matches; for an
    /// ordered_set, in the order of the table. With a limit, the job pauses after that number of
    /// results.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    ///
    /// # Consistency
    /// A select is no snapshot. An object that is present throughout is found exactly once.
    pub fn select(
        self: &Arc<Self>,
        who: OwnerId,
        program: Program,
        direction: Direction,
        limit: Option<usize>,
    ) -> Result<SelectJob, Error> {
        self.check_read(who)?;
        Ok(SelectJob::new(self, Some(program), direction, limit))
    }

    /// Resumes a select at the `continuation` of another one. Program, table and direction must be
    /// the same.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `BadContinuation`.
    pub fn select_resume(
        self: &Arc<Self>,
        who: OwnerId,
        program: Program,
        direction: Direction,
        limit: Option<usize>,
        continuation: &[u8],
    ) -> Result<SelectJob, Error> {
        // A new job, moved to the point at which the other one paused.
        let mut job = self.select(who, program, direction, limit)?;
        job.scan.cursor.go_to(continuation)?;
        Ok(job)
    }

    /// Begins to count the objects for which the result of `program` is `true`.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn select_count(
        self: &Arc<Self>,
        who: OwnerId,
        program: Program,
    ) -> Result<CountJob, Error> {
        self.check_read(who)?;
        Ok(CountJob {
            // No order is needed to count.
            scan: Scan::new(self, Some(program), Direction::Forward, None),
            count: 0,
        })
    }
}

/// A count in progress.
pub struct CountJob {
    pub(super) scan: Box<Scan>,
    count: u64,
}

impl CountJob {
    /// Runs one slice.
    ///
    /// # Errors
    /// `NoTable`, `Busy`.
    pub fn step(&mut self, budget: &mut Budget, context: &Context<'_>) -> Result<Step, Error> {
        let count = &mut self.count;
        self.scan.rows(budget, 0, true, |object, scratch| {
            *count += u64::from(object.gives_true(context, scratch));
            ControlFlow::Continue(())
        })
    }

    /// The objects counted so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

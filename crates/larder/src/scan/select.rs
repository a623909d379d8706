//! Reading scans: select and count.

use super::Cursor;
use crate::budget::{Budget, Step};
use crate::buffers::{Buffers, Lent};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::raw;
use crate::table::Table;
use larder_index::Direction;
use larder_matchspec::{Context, Outcome, Program, Scratch};
use larder_term::object::ObjectView;
use larder_term::TermRef;
use std::ops::Bound;
use std::sync::Arc;

/// One result of a select.
pub enum Output<'a> {
    /// The object itself.
    Object(&'a ObjectView<'a>),
    /// A term made of it.
    Term(TermRef<'a>),
}

/// Where results go.
pub(super) type Sink<'a> = dyn FnMut(Output<'_>) + 'a;

/// How a slice of a select ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanStep {
    /// The budget is used up: step again.
    More,
    /// So many results as were wanted were given. There may be more: `continuation`, or `set_limit`
    /// and step again.
    Limit,
    /// The scan is at its end.
    Done,
}

/// What becomes of a scan after a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    /// On to the next row.
    On,
    /// It pauses behind this row.
    Pause,
}

/// What a scan keeps between slices.
pub(crate) struct Scan {
    pub(crate) table: Arc<Table>,
    pub(crate) program: Option<Program>,
    pub(crate) cursor: Cursor,
    pub(crate) lent: Lent,
}

impl Scan {
    /// A scan from its beginning. It is large, and passed from hand to hand: so it is boxed.
    /// `limit` is how many results are wanted at first.
    pub(crate) fn new(
        table: &Arc<Table>,
        program: Option<Program>,
        way: Direction,
        limit: Option<usize>,
    ) -> Box<Self> {
        Box::new(Scan {
            cursor: Cursor::new(table, program.as_ref(), way, limit),
            table: Arc::clone(table),
            program,
            lent: Lent::new(),
        })
    }

    /// One slice: calls `row` with the program and one object after the other. Gives `More` if
    /// `row` wants to pause or the budget is used up, and `Done` at the end of the scan. `few` is
    /// how many rows the caller can use (0: any number). `any_order` says that it uses all, in any
    /// order.
    ///
    /// # Errors
    /// `NoTable`; `Busy`, before a row is read.
    #[inline]
    pub(crate) fn rows(
        &mut self,
        budget: &mut Budget,
        (few, any_order): (usize, bool),
        mut row: impl FnMut(Option<&Program>, &ObjectView<'_>, &mut Scratch) -> Go,
    ) -> Result<Step, Error> {
        let Scan {
            table,
            program,
            cursor,
            lent,
        } = self;
        let Buffers {
            batch,
            plain,
            scratch,
            ..
        } = &mut **lent;
        let program = program.as_ref();
        let (weight, keypos) = (weight(program), table.keypos());
        loop {
            // The epoch is pinned anew for each batch, so that a long scan keeps no memory from
            // being freed. Results are given while it is pinned: so the handles in the batch's
            // copies stay alive.
            let guard = larder_index::pin();
            let op = table.begin(&guard)?;
            // If an index is used: first all keys are gathered from its entries.
            if !cursor.gather(table, &op, budget) {
                return Ok(Step::More);
            }
            // Copies the next entries. Their first `usable` are on the scan's path.
            let usable = cursor.fill(table, &op, (few, any_order), batch);
            if usable == 0 {
                return Ok(Step::Done);
            }
            for i in 0..usable {
                let (key, value) = batch.entry(i);
                let object = raw::view(key, value, keypos, plain);
                // After the last row that is wanted, or that the slice may read, the cursor goes
                // back behind it.
                let go = row(program, &object, scratch);
                if !budget.spend(cost(weight, value)) || go == Go::Pause {
                    if i + 1 < usable {
                        cursor.stop(table, &op, batch, i + 1);
                    }
                    return Ok(Step::More);
                }
            }
            if cursor.is_at_end() {
                return Ok(Step::Done);
            }
        }
    }
}

/// Bytes of an object that cost as much as a small object's row.
const BYTES_A_UNIT: usize = 256;

/// What an object costs, in units, where a small one's row costs `weight`: a large one costs more.
pub(super) fn cost(weight: u32, value: &[u8]) -> u32 {
    weight.saturating_add((value.len() / BYTES_A_UNIT) as u32)
}

impl Table {
    /// Begins a select: the results of `program` for the objects it matches, in the order of the
    /// table for an ordered_set. With a limit, the job pauses after so many results.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    ///
    /// # Consistency
    /// See the module `scan`: no snapshot; an object that is there throughout is met exactly once.
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

    /// Takes a select up where another's `continuation` says. Program, table and direction have to
    /// be the same.
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
        let mut job = self.select(who, program, direction, limit)?;
        job.scan.cursor.go_to(continuation)?;
        Ok(job)
    }

    /// Begins a scan that gives every object.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn each(self: &Arc<Self>, who: OwnerId, direction: Direction) -> Result<SelectJob, Error> {
        self.check_read(who)?;
        Ok(SelectJob::new(self, None, direction, None))
    }

    /// As `each`, of an ordered_set: the objects whose index keys lie between these bounds.
    ///
    /// # Errors
    /// `NoTable`, `Access`; `TableType` for other tables.
    pub fn each_between(
        self: &Arc<Self>,
        who: OwnerId,
        (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        direction: Direction,
    ) -> Result<SelectJob, Error> {
        let mut job = self.each(who, direction)?;
        if !self.kind().is_ordered() {
            return Err(Error::TableType);
        }
        job.scan.cursor.confine(low, high);
        Ok(job)
    }

    /// Begins to count the objects for which `program` gives `true`.
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
            scan: Scan::new(self, Some(program), Direction::Forward, None),
            count: 0,
        })
    }
}

/// A select under way.
pub struct SelectJob {
    scan: Box<Scan>,
    limit: Option<usize>,
}

impl SelectJob {
    fn new(
        table: &Arc<Table>,
        program: Option<Program>,
        direction: Direction,
        limit: Option<usize>,
    ) -> Self {
        SelectJob {
            scan: Scan::new(table, program, direction, limit),
            limit,
        }
    }

    /// One slice: gives results to `sink` until the budget or the limit is used up, or the scan is
    /// at its end.
    ///
    /// # Errors
    /// `NoTable` if the table was dropped meanwhile; `Busy`: help with the batch and step again.
    pub fn step(
        &mut self,
        budget: &mut Budget,
        ctx: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, Error> {
        if self.limit == Some(0) {
            return Ok(ScanStep::Limit);
        }
        let limit = &mut self.limit;
        let mut full = false;
        let wanted = (limit.unwrap_or(0), limit.is_none());
        let step = self.scan.rows(budget, wanted, |program, object, scratch| {
            if !result_of(program, object, ctx, scratch, sink) {
                return Go::On;
            }
            full = use_one(limit);
            if full {
                Go::Pause
            } else {
                Go::On
            }
        })?;
        Ok(match step {
            _ if full => ScanStep::Limit,
            Step::More => ScanStep::More,
            Step::Done => ScanStep::Done,
        })
    }

    /// Where the scan is, as bytes: for `select_resume` with the same program, table and direction,
    /// at any later time. None within a leaf whose objects it takes in no order, as it does without
    /// a limit.
    pub fn continuation(&self) -> Option<Vec<u8>> {
        self.scan.cursor.to_bytes()
    }

    /// Whether the program names the keys of all that it can find, and the scan has been under all
    /// of them. False says nothing: there may be no more results.
    pub fn is_over(&self) -> bool {
        self.scan.cursor.is_over()
    }

    /// The scan begins at an object's position, if it hasn't begun.
    pub(crate) fn begin_at(&mut self, position: Vec<u8>) {
        self.scan.cursor.begin_at(position);
    }

    /// How many more results are wanted; None for all.
    pub fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit;
    }
}

/// Gives `sink` what a program makes of an object, without one the object itself; false if the
/// program does not match it.
#[inline(always)]
pub(super) fn result_of(
    program: Option<&Program>,
    object: &ObjectView<'_>,
    ctx: &Context<'_>,
    scratch: &mut Scratch,
    sink: &mut Sink<'_>,
) -> bool {
    let found = match program {
        None => Some(Outcome::Object),
        Some(program) => program.run(object, ctx, scratch),
    };
    match found {
        Some(Outcome::Object) => sink(Output::Object(object)),
        Some(Outcome::Term(term)) => sink(Output::Term(term)),
        None => return false,
    }
    true
}

/// Counts a result against the limit; whether that was the last.
fn use_one(limit: &mut Option<usize>) -> bool {
    match limit {
        Some(left) => {
            *left = left.saturating_sub(1);
            *left == 0
        }
        None => false,
    }
}

/// What a row costs, in units.
pub(crate) fn weight(program: Option<&Program>) -> u32 {
    let cost = program.map_or(0, Program::cost) / 16;
    1 + u32::try_from(cost).unwrap_or(u32::MAX - 1)
}

/// A count under way.
pub struct CountJob {
    scan: Box<Scan>,
    count: u64,
}

impl CountJob {
    /// One slice.
    ///
    /// # Errors
    /// `NoTable`, `Busy`.
    pub fn step(&mut self, budget: &mut Budget, ctx: &Context<'_>) -> Result<Step, Error> {
        let count = &mut self.count;
        self.scan
            .rows(budget, (0, true), |program, object, scratch| {
                let is_true = program.is_none_or(|program| program.is_true(object, ctx, scratch));
                *count += u64::from(is_true);
                Go::On
            })
    }

    /// The objects counted so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

//! Reading scans: select and count.
//!
//! 1. Pin the epoch, and load the table's state word. If the path comes from a secondary index,
//!    first gather its keys, in slices (`Cursor::gather`).
//! 2. Fill a batch with the next entries of the path (`cursor`).
//! 3. If the program has a filter, let it look at all entries. Drop those that it rejects.
//! 4. Run the program on each other entry, and pass on its results.
//! 5. If the budget is used up or no more results are wanted, move the cursor back to just after
//!    the last processed entry, and end the slice. (A batch that has no order is finished first,
//!    if little of it is left.) Otherwise continue with (1).

use super::output::{Output, ScanStep, Sink};
use super::range::KeyBounds;
use super::Cursor;
use crate::budget::{Budget, Step};
use crate::buffers::{Buffers, PassingEntry, ThreadBuffers};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::programs::{Context, Filter, Known, Matcher, Program, Scratch, Shown, Verdict};
use crate::raw;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Batch, Direction};
use larder_term::object::{self, ObjectView};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The state of a scan between slices.
pub(crate) struct Scan {
    pub(crate) table: Arc<EngineTable>,
    pub(crate) program: Option<Program>,
    pub(crate) cursor: Cursor,
    pub(crate) buffers: ThreadBuffers,
}

impl Scan {
    /// A scan at its beginning. It is boxed, because it is large and often moved. `limit` is the
    /// number of results that are wanted at first.
    pub(crate) fn new(
        table: &Arc<EngineTable>,
        program: Option<Program>,
        direction: Direction,
        limit: Option<usize>,
    ) -> Box<Self> {
        let mut buffers = ThreadBuffers::new();
        let cursor = match &program {
            Some(program) => Cursor::new(table, program, direction, limit, &mut buffers),
            None => Cursor::everywhere(table, direction),
        };
        Box::new(Scan {
            cursor,
            table: Arc::clone(table),
            program,
            buffers,
        })
    }

    /// Runs one slice: calls `row` with the program and each object, which isn't opened yet.
    /// Returns `More` if `row` pauses or the budget is used up, and `Done` at the end of the scan.
    /// `wanted` and `any_order` are those of [`Cursor::fill`].
    ///
    /// # Errors
    /// `NoTable`; `Busy`, before a row is read.
    #[inline]
    pub(crate) fn rows(
        &mut self,
        budget: &mut Budget,
        wanted: usize,
        any_order: bool,
        mut row: impl FnMut(ScannedObject<'_, '_>, &mut Scratch) -> ControlFlow<()>,
    ) -> Result<Step, Error> {
        let Scan {
            table,
            program,
            cursor,
            buffers,
        } = self;
        let Buffers {
            batch,
            passing,
            plain,
            scratch,
            ..
        } = &mut **buffers;
        let program = program.as_ref();
        let (base_cost, keypos) = (base_cost(program), table.keypos());
        let matcher = program.map(|program| program.matcher(keypos, table.key_access()));
        let matcher = matcher.as_ref();
        loop {
            // (1) Pin the epoch anew for each batch, so that a long scan doesn't keep garbage from
            // being freed. It stays pinned while the batch is processed, since the objects and the
            // handles in them must stay valid.
            let guard = larder_index::pin();
            let op = table.begin(&guard)?;
            // If the plan uses a secondary index, gather all keys from its entries first.
            if !cursor.gather(table, &op, any_order, budget) {
                return Ok(Step::More);
            }
            // (2) Read the next entries. The first `usable` of them are on the path.
            let paused = batch.lend(|batch| {
                let filled = cursor.fill_in_slice(table, &op, wanted, any_order, budget, batch);
                let usable = match filled {
                    ControlFlow::Continue(usable) => usable,
                    ControlFlow::Break(step) => return Some(step),
                };
                // (3) A filter tells which of them the program can match.
                let passing = Passing::of(matcher, batch, usable, base_cost, passing);
                // (4) Process them. They don't change, so writers may change the leaf meanwhile.
                let mut overspent = 0;
                for n in 0..passing.len() {
                    let entry = passing.entry(batch, n);
                    let i = entry.index;
                    let (key, value) = batch.entry(i);
                    let object = ScannedObject {
                        matcher,
                        stored: Stored::new(key, value, keypos, plain),
                        verdict: entry.verdict,
                    };
                    let flow = row(object, scratch);
                    // (5) Pause after this row if the caller wants to, or if the budget is used up.
                    let cost = cost(base_cost, value).saturating_add(entry.rejected);
                    let mut pauses = flow.is_break();
                    if !budget.spend(cost) {
                        // After a pause within an unordered batch, the next slice reads the leaf
                        // again, in order. So finish the batch if neither what was overspent nor
                        // what is left exceeds the grace.
                        overspent += u64::from(cost);
                        let left = (usable - i - 1) as u64 * u64::from(base_cost);
                        pauses |= !batch.unordered || overspent.max(left) > budget.grace();
                    }
                    if pauses {
                        let page_ends = flow.is_break() && cursor.pages_end_after_entries();
                        if i + 1 < usable || page_ends {
                            cursor.stop(table, &op, batch, i + 1);
                        }
                        return Some(Step::More);
                    }
                }
                // Pause after the batch.
                (!budget.spend(passing.rejected) || overspent > 0).then_some(Step::More)
            });
            if let Some(step) = paused {
                return Ok(step);
            }
            if cursor.is_at_end() {
                return Ok(Step::Done);
            }
        }
    }
}

/// An object that a scan has come to.
pub(super) struct ScannedObject<'m, 's> {
    /// The program of the scan, if it has one.
    pub(super) matcher: Option<&'m Matcher<'m>>,
    /// The object, which isn't opened yet.
    pub(super) stored: Stored<'s>,
    /// What the program's filter has said of it. It isn't rejected.
    pub(super) verdict: Verdict,
}

#[cfg(feature = "matchspec")]
impl ScannedObject<'_, '_> {
    /// Whether the program's result is `true`.
    #[inline(always)]
    pub(super) fn gives_true(self, context: &Context<'_>, scratch: &mut Scratch) -> bool {
        // Without a program, the result for every object is taken for `true`.
        let Some(matcher) = self.matcher else {
            return true;
        };
        // If the filter's verdict tells the result, the object isn't even opened.
        match matcher.known(self.verdict) {
            Some(known) => known == Known::True,
            None => is_true(matcher, self.stored, self.verdict, context, scratch),
        }
    }

    /// Whether the program matches the object.
    #[inline(never)]
    pub(super) fn matches(self, context: &Context<'_>, scratch: &mut Scratch) -> bool {
        let Some(matcher) = self.matcher else {
            return true;
        };
        // A known result is one: the program matches.
        if matcher.known(self.verdict).is_some() {
            return true;
        }
        // Otherwise run the program. Its result isn't wanted.
        let object = self.stored.view();
        let found = matcher.show(&object, self.verdict, context, scratch, |_| ());
        found.is_some()
    }
}

/// Whether the result for an object is `true`, if that has to be found out.
#[cfg(feature = "matchspec")]
#[inline(never)]
fn is_true(
    matcher: &Matcher<'_>,
    stored: Stored<'_>,
    verdict: Verdict,
    context: &Context<'_>,
    scratch: &mut Scratch,
) -> bool {
    matcher.is_true(&stored.view(), verdict, context, scratch)
}

/// The entries of a batch on which the program has to run.
pub(super) struct Passing<'b> {
    /// Those that the program's filter hasn't rejected; `None` without a filter.
    filtered: Option<&'b [PassingEntry]>,
    usable: usize,
    /// What the entries cost that were rejected after the last one that passes.
    pub(super) rejected: u32,
}

impl<'b> Passing<'b> {
    /// Those of the first `usable` entries. `base_cost` is that of the program, and `passing` is a
    /// buffer.
    #[inline(always)]
    pub(super) fn of(
        matcher: Option<&Matcher<'_>>,
        batch: &Batch<'_>,
        usable: usize,
        base_cost: u32,
        passing: &'b mut Vec<PassingEntry>,
    ) -> Self {
        // Without a filter, all usable entries pass, and nothing is written to the buffer.
        let filter = matcher.and_then(Matcher::filter);
        let rejected = filter.map_or(0, |filter| {
            keep_passing(filter, batch, usable, base_cost, passing)
        });
        Passing {
            filtered: filter.is_some().then_some(&passing[..]),
            usable,
            rejected,
        }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.filtered.map_or(self.usable, <[_]>::len)
    }

    /// Entry `n` of those that pass.
    #[inline(always)]
    pub(super) fn entry(&self, batch: &Batch<'_>, n: usize) -> PassingEntry {
        match self.filtered {
            Some(passing) => passing[n],
            // Nobody has looked at the entry yet, so prefetch a later one as `keep_passing` does.
            None => {
                batch.prefetch(n + PREFETCH_DISTANCE);
                PassingEntry {
                    index: n,
                    verdict: Verdict::Unknown,
                    rejected: 0,
                }
            }
        }
    }
}

/// Replaces `passing` by those of the first `usable` entries of a batch that a filter doesn't
/// reject. Returns the cost of those that it has rejected after the last one that passes.
#[inline(never)]
fn keep_passing(
    filter: &Filter<'_>,
    batch: &Batch<'_>,
    usable: usize,
    base_cost: u32,
    passing: &mut Vec<PassingEntry>,
) -> u32 {
    passing.clear();
    // The cost of the entries that were rejected since the last one that passes.
    let mut rejected = 0;
    let objects = (0..usable).map(|i| {
        batch.prefetch(i + PREFETCH_DISTANCE);
        let (key, value) = batch.entry(i);
        raw::unopened(key, value)
    });
    filter.judge(objects, |index, object, verdict| {
        // A rejected entry costs time, too. The scan pays for it when it comes to the next entry
        // that passes: a slice ends only at such an entry, or after the batch.
        if verdict == Verdict::Rejected {
            rejected = cost(base_cost, object.value()).saturating_add(rejected);
            return;
        }
        passing.push(PassingEntry {
            index,
            verdict,
            rejected: std::mem::take(&mut rejected),
        });
    });
    rejected
}

/// Objects outside their leaves are prefetched this number of rows ahead.
pub(super) const PREFETCH_DISTANCE: usize = 2;

/// This number of an object's bytes costs as much as the row of a small object.
const BYTES_PER_BUDGET_UNIT: usize = 256;
/// A value of fewer bytes is that of a small object. If it is packed, it unpacks to 16 KiB at most.
const SHORT: usize = 64;

/// The cost of an object in units of the budget, if a small object costs `base_cost`.
#[inline]
pub(crate) fn cost(base_cost: u32, value: &[u8]) -> u32 {
    if value.len() < SHORT && !raw::has_handles(value) {
        return base_cost;
    }
    cost_of_long(base_cost, value)
}

#[inline(never)]
fn cost_of_long(base_cost: u32, value: &[u8]) -> u32 {
    base_cost.saturating_add((object::plain_len(value) / BYTES_PER_BUDGET_UNIT) as u32)
}

impl EngineTable {
    /// Begins a scan that yields every object.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn each(self: &Arc<Self>, who: OwnerId, direction: Direction) -> Result<SelectJob, Error> {
        self.check_read(who)?;
        Ok(SelectJob::new(self, None, direction, None))
    }

    /// Begins a scan of an ordered_set that yields the objects whose index keys lie between these
    /// bounds.
    ///
    /// # Errors
    /// `NoTable`, `Access`; `TableType` for other tables.
    pub fn each_between(
        self: &Arc<Self>,
        who: OwnerId,
        low: Bound<Vec<u8>>,
        high: Bound<Vec<u8>>,
        direction: Direction,
    ) -> Result<SelectJob, Error> {
        let mut job = self.each(who, direction)?;
        if !self.kind().is_ordered() {
            return Err(Error::TableType);
        }
        // The path is a range of keys. The cursor reads nothing outside it.
        job.scan.cursor.confine(KeyBounds { low, high });
        Ok(job)
    }
}

/// A select in progress.
pub struct SelectJob {
    pub(super) scan: Box<Scan>,
    limit: Option<usize>,
}

impl SelectJob {
    pub(super) fn new(
        table: &Arc<EngineTable>,
        program: Option<Program>,
        direction: Direction,
        limit: Option<usize>,
    ) -> Self {
        SelectJob {
            scan: Scan::new(table, program, direction, limit),
            limit,
        }
    }

    /// Runs one slice: passes results to `sink` until the budget is used up, the limit is reached,
    /// or the scan is at its end.
    ///
    /// # Errors
    /// `NoTable` if the table was dropped meanwhile; `Busy` if a list batch is in progress: help
    /// with the batch, and call `step` again.
    pub fn step(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, Error> {
        self.run(budget, |object, scratch| {
            let ScannedObject {
                matcher,
                stored,
                verdict,
            } = object;
            // Without a program, every object is a result.
            let Some(matcher) = matcher else {
                pass_on(Shown::Object, stored.view(), sink);
                return true;
            };
            // The filter's verdict says that the object itself is the result: no test is left.
            if let Some(Known::Object) = matcher.known(verdict) {
                pass_on(Shown::Object, stored.view(), sink);
                return true;
            }
            // Otherwise run the rest of the program. It calls `show` if it matches the object.
            let object = stored.view();
            let show = |shown: Shown<'_>| pass_on(shown, object, sink);
            let shown = matcher.show(&object, verdict, context, scratch, show);
            shown.is_some()
        })
    }

    /// Like `step`, for a job without a program ([`EngineTable::each`]): passes on each object as
    /// it is stored.
    ///
    /// # Errors
    /// Those of `step`.
    #[inline]
    pub fn step_each(
        &mut self,
        budget: &mut Budget,
        mut visit: impl FnMut(Stored<'_>),
    ) -> Result<ScanStep, Error> {
        self.run(budget, |object, _| {
            let has_program = object.matcher.is_some();
            debug_assert!(!has_program, "a program builds results of its own");
            visit(object.stored);
            true
        })
    }

    /// Runs one slice. `found` passes on the result for an object, and returns whether there is
    /// one.
    #[inline]
    fn run(
        &mut self,
        budget: &mut Budget,
        mut found: impl FnMut(ScannedObject<'_, '_>, &mut Scratch) -> bool,
    ) -> Result<ScanStep, Error> {
        // Nothing is wanted, so nothing is read.
        if self.limit == Some(0) {
            return Ok(ScanStep::Limit);
        }
        let limit = &mut self.limit;
        let mut full = false;
        // Without a limit, all results are wanted, in any order.
        let (wanted, any_order) = (limit.unwrap_or(0), limit.is_none());
        let rows = &mut self.scan;
        let step = rows.rows(budget, wanted, any_order, |object, scratch| {
            if !found(object, scratch) {
                return ControlFlow::Continue(());
            }
            // The result has been passed on already. This only decides whether to go on.
            full = use_one(limit);
            if full {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        // The limit may have been reached with the last object. The next call finds that nothing is
        // left.
        Ok(match step {
            _ if full => ScanStep::Limit,
            Step::More => ScanStep::More,
            Step::Done => ScanStep::Done,
        })
    }

    /// The resume point of the scan, as bytes for `select_resume` with the same program, table and
    /// direction, at any later time. `None` within a leaf whose objects are read in no order, or
    /// among rows that an index finds in no order, as is done without a limit.
    pub fn continuation(&self) -> Option<Vec<u8>> {
        self.scan.cursor.to_bytes()
    }

    /// Whether the heads of the program name all keys that it can find objects under (in an
    /// ordered_set: one key), and all of them have been read. If this is `false`, there may still
    /// be no more results: as in `ets`, only the next call finds that out.
    pub fn is_over(&self) -> bool {
        let Scan {
            table,
            program,
            cursor,
            ..
        } = &*self.scan;
        let names_keys =
            |program: &Program| program.heads_name_keys(table.keypos(), table.key_access());
        cursor.has_read_all_keys() && program.as_ref().is_some_and(names_keys)
    }

    /// Lets a scan that hasn't begun start at an object's position.
    pub(crate) fn begin_at(&mut self, position: Vec<u8>) {
        self.scan.cursor.begin_at(position);
    }

    /// Whether the next step takes long, whatever its budget: it puts many keys in order that an
    /// index has found.
    pub fn is_long(&self) -> bool {
        self.scan.cursor.is_long()
    }

    /// Sets how many more results are wanted; `None` for all.
    pub fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit;
    }
}

/// Passes the result of a program for an object to `sink`; without a program, the object itself.
/// Returns `false` if the program doesn't match the object.
#[inline(always)]
pub(super) fn result_of(
    program: Option<&Program>,
    object: ObjectView<'_>,
    context: &Context<'_>,
    scratch: &mut Scratch,
    sink: &mut Sink<'_>,
) -> bool {
    let Some(program) = program else {
        pass_on(Shown::Object, object, sink);
        return true;
    };
    let show = |shown: Shown<'_>| pass_on(shown, object, sink);
    program.show(&object, context, scratch, show).is_some()
}

/// Passes the result for an object to `sink`.
#[inline(always)]
pub(crate) fn pass_on(shown: Shown<'_>, object: ObjectView<'_>, sink: &mut Sink<'_>) {
    // What the program makes belongs to its scratch memory, and is valid until the next run.
    match shown {
        // The consumer gets the address of a copy, so that `object` can stay in registers. In
        // memory it would be stored word by word and loaded again at once in larger pieces, for
        // which the processor waits.
        Shown::Object => {
            let copy = object;
            sink(Output::Object(&copy));
        }
        Shown::Term(term) => sink(Output::Term(term)),
        Shown::Built(term) => sink(Output::Built(term)),
    }
}

/// Counts a result against the limit. Returns whether the limit is reached.
fn use_one(limit: &mut Option<usize>) -> bool {
    match limit {
        Some(left) => {
            *left = left.saturating_sub(1);
            *left == 0
        }
        None => false,
    }
}

/// The cost of the row of a small object, in units of the budget.
pub(crate) fn base_cost(program: Option<&Program>) -> u32 {
    let cost = program.map_or(0, Program::cost) / 16;
    1 + u32::try_from(cost).unwrap_or(u32::MAX - 1)
}

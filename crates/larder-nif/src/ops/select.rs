//! `select`, `match` and `match_object`, and the functions related to them, in slices.
//!
//! 1. Read the arguments, and compile the specification or find its program (`compile`). If the
//!    program binds the key, look the key up and return (`point_or_scan`).
//! 2. Otherwise wrap the engine's job in a [`Job`], and run its first slice (`begin`).
//! 3. If that wasn't the last slice, put the job into a resource, and schedule `scan_more` with the
//!    resource and the results so far. `scan_more` runs the next slice, and so on.
//!
//! A list is built from its end: each slice puts its results in front of those of earlier slices.
//! There are two cases:
//!
//! * All results of a set or ordered_set are wanted (`slice_prepended`). In an ordered_set the scan
//!   runs against the requested direction, so the finished list is in order. A set has no order.
//! * In all other cases (`slice_in_order`, `slice_limited`) the scan runs in the direction that was
//!   asked for, and the list is reversed. Erlang reverses it again (`larder_select:in_order/1`).
//!   These are scans with a limit, from a rank on, or by an index, and scans of a bag, where the
//!   objects of a key stay in order of arrival.

use super::rank::{count, place};
use super::single::report;
use super::spec::{self, CallerContext, ProgramSource, PROGRAMS};
use crate::call::{Call, Raise, Reply, BADARG};
use crate::entry;
use crate::heap::{ListBuilder, Slot};
use crate::layout;
use crate::resource::{Registered, ResourceRef};
use crate::sys::*;
use crate::tables::{self, caller_id, reply_or_raise};
use crate::terms::atoms;
use crate::terms::decode;
use larder::host::{
    Budget, CountJob, DeleteJob, Direction, EngineTable, IndexBuild, IndexJob, Local, Output,
    OwnerId, Point, ReplaceJob, ScanStep, SelectJob, Step, TableKind, TakeJob,
};
use larder_matchspec::{Context, PatternResult, Program};
use larder_term::Atom;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// The table of a scan, and what its first call knew of the caller.
struct ScanCall {
    table: Arc<EngineTable>,
    caller: CallerContext,
}

/// A scan between two slices: the resource that is an argument of `scan_more`.
pub struct PausedScan {
    scan: ScanCall,
    /// Under a mutex, since a resource may be shared. In fact one slice runs at a time.
    job: Mutex<Job>,
}

/// An operation that is run in slices.
pub enum Job {
    /// A select of all results.
    All(SelectJob),
    /// The objects from a rank on.
    Ranks(SelectJob),
    /// A select with a limit, and the other elements of its continuation.
    Limited(SelectJob, Continuation),
    Count(CountJob),
    Delete(DeleteJob),
    Take(TakeJob),
    Replace(ReplaceJob),
    /// An index that is being added.
    Build(Box<IndexBuild>),
    /// All rows that an index finds, in the order of its entries.
    Index(IndexJob),
    /// The same with a limit, and the other elements of its continuation.
    IndexLimited(IndexJob, IndexContinuation),
    /// The operation has ended.
    Over,
}

impl Job {
    /// Whether the next slice takes long.
    fn is_long(&self) -> bool {
        match self {
            Job::All(job) | Job::Ranks(job) | Job::Limited(job, _) => job.is_long(),
            Job::Count(job) => job.is_long(),
            Job::Delete(job) => job.is_long(),
            Job::Take(job) => job.is_long(),
            Job::Replace(job) => job.is_long(),
            Job::Build(_) | Job::Index(_) | Job::IndexLimited(..) | Job::Over => false,
        }
    }
}

/// The elements of a continuation of an index, {Table, Name, Limit, Place, Program}, except
/// `Place`, its resume point.
pub struct IndexContinuation {
    pub name: Atom,
    pub limit: usize,
    pub program: PageProgram,
}

/// The program of a continuation: not yet a resource on the first page, and the resource of the
/// earlier pages afterwards.
pub enum PageProgram {
    New(Program),
    Held(ResourceRef<Program>),
}

impl PageProgram {
    /// The program as a term, so that a continuation needn't compile it again.
    fn term(&self, env: *mut Env) -> Word {
        match self {
            PageProgram::New(program) => PROGRAMS.make(program.clone()).term(env),
            PageProgram::Held(program) => program.term(env),
        }
    }
}

/// A job that yields results.
trait ResultJob {
    /// Runs a slice, and calls `sink` with each result.
    fn slice(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, larder::Error>;
}

impl ResultJob for SelectJob {
    fn slice(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, larder::Error> {
        self.step(budget, context, sink)
    }
}

impl ResultJob for IndexJob {
    fn slice(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, larder::Error> {
        self.step(budget, context, sink)
    }
}

impl ResultJob for TakeJob {
    fn slice(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, larder::Error> {
        Ok(match self.step(budget, context, sink)? {
            Step::More => ScanStep::More,
            Step::Done => ScanStep::Done,
        })
    }
}

/// The elements of a continuation, {Table, Limit, Direction, Place, Program}, except `Place`, its
/// resume point.
pub struct Continuation {
    program: PageProgram,
    limit: usize,
    direction: Direction,
}

/// The resource type of scans.
pub static SCANS: Registered<PausedScan> = Registered::new();

/// What the kind of a select is compiled from: a specification or a pattern.
fn source_of(kind: Word) -> ProgramSource {
    if kind == atoms::MATCH.word() {
        Some(PatternResult::Bindings)
    } else if kind == atoms::MATCH_OBJECT.word() {
        Some(PatternResult::Object)
    } else {
        None
    }
}

/// The program of a specification or pattern.
fn compile(call: &Call<'_>, source: ProgramSource, spec: Word) -> Result<Program, Raise> {
    // The compiler demands a clause. A specification without one matches nothing.
    if source.is_none() && spec == layout::NIL {
        return spec::nothing();
    }
    spec::program(call, spec, source)
}

/// If the program binds the key, calls `at` to look that key up. Otherwise calls `all` to scan the
/// table.
fn point_or_scan(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    program: Program,
    at: impl FnOnce(Point<'_>) -> Result<Word, larder::Error>,
    all: impl FnOnce(Program, CallerContext) -> Reply,
) -> Reply {
    let caller = CallerContext::new(call, &program)?;
    // A bound key needs no scan: one lookup, in the same call.
    let Some(key) = program.bound_key(table.keypos()) else {
        return all(program, caller);
    };
    let point = Point {
        key,
        program: &program,
        context: &caller.context(),
    };
    let found = at(point);
    // The key of a bag may have many objects.
    if !table.kind().is_unique() {
        larder::host::with_local(|local| report(call, local));
    }
    reply_or_raise(call, table, found)
}

/// The list of what `look_up` shows: the results of an operation on one key.
#[inline]
fn list_at(
    call: &Call<'_>,
    look_up: impl FnOnce(&mut Local, &mut dyn FnMut(Output<'_>)) -> Result<(), larder::Error>,
) -> Result<Word, larder::Error> {
    let mut words = SmallVec::<[Word; 8]>::new();
    larder::host::with_local(|local| {
        look_up(local, &mut |output| words.push(word(call, &output)))
    })?;
    Ok(call.list(&words))
}

/// The direction that an atom names.
pub fn direction(word: Word) -> Direction {
    if word == atoms::BACKWARD.word() {
        Direction::Backward
    } else {
        Direction::Forward
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Backward,
        Direction::Backward => Direction::Forward,
    }
}

/// select_all(Table, Kind, Spec, Direction) -> [Result] | {more, [Result]}; see `slice_prepended`,
/// and of bags `slice_in_order`.
pub fn select_all(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let caller_id = caller_id(call);
        // An error of the table takes precedence over one of the specification.
        reply_or_raise(call, table, table.check_read(caller_id))?;
        // `at` is called if the key is bound, and `all` otherwise.
        let at = |point: Point<'_>| {
            list_at(call, |local, sink| {
                table.select_point(local, caller_id, point, sink)
            })
        };
        let all = |program, caller| {
            // The list is built from its end, so scan in the opposite direction.
            let opposite = opposite(direction(call.args[3]));
            let job = reply_or_raise(
                call,
                table,
                table.select(caller_id, program, opposite, None),
            )?;
            begin(call, Arc::clone(table), caller, Job::All(job))
        };
        let program = compile(call, source_of(call.args[1]), call.args[2])?;
        point_or_scan(call, table, program, at, all)
    })
}

/// every(Table) -> [Object] | {more, [Object]}; see `slice_prepended`, and of bags
/// `slice_in_order`.
pub fn every(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    let job = reply_or_raise(
        call,
        &table,
        table.each(caller_id(call), Direction::Backward),
    )?;
    begin(call, table, CallerContext::none(), Job::All(job))
}

/// slice(Table, From, Count), the function of Larder: the page of Count objects from a rank on.
/// Returns [Object] | {more, [Object]}; see `slice_in_order`.
pub fn from_rank(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_read(caller_id(call)))?;
    let (from, count) = (place(call, call.args[1])?, count(call, call.args[2])?);
    tables::off_scheduler(call, table.counts_slowly())?;
    let job = reply_or_raise(call, &table, table.slice(caller_id(call), from, count))?;
    begin(call, table, CallerContext::none(), Job::Ranks(job))
}

/// select_some(Table, Kind, Spec, Limit, Direction) -> {[Result], Continuation} | {more, [Result],
/// Continuation} | '$end_of_table'; see `slice_limited`.
pub fn select_some(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let caller_id = caller_id(call);
        // Rights first, as in `select_all`.
        reply_or_raise(call, table, table.check_read(caller_id))?;
        let program = compile(call, source_of(call.args[1]), call.args[2])?;
        let limit = limit(call.args[3])?;
        let caller = CallerContext::new(call, &program)?;
        // If the program binds the key, look it up. In a bag there may be many objects, or more
        // results than the limit allows; then scan.
        if let Some(key) = program.bound_key(table.keypos()) {
            let point = Point {
                key,
                program: &program,
                context: &caller.context(),
            };
            if let Some(few) = reply_or_raise(call, table, some_at(call, table, point, limit))? {
                return Ok(few);
            }
        }
        let direction = direction(call.args[4]);
        let job = table.select(caller_id, program.clone(), direction, Some(limit));
        let job = reply_or_raise(call, table, job)?;
        let continuation = Continuation {
            program: PageProgram::New(program),
            limit,
            direction,
        };
        begin(
            call,
            Arc::clone(table),
            caller,
            Job::Limited(job, continuation),
        )
    })
}

/// The result of a select with a limit that looks up one key. `None` if there are more results than
/// the limit allows, or if the key may have many objects.
fn some_at(
    call: &Call<'_>,
    table: &EngineTable,
    point: Point<'_>,
    limit: usize,
) -> Result<Option<Word>, larder::Error> {
    let mut words = SmallVec::<[Word; 8]>::new();
    let is_few = larder::host::with_local(|local| {
        table.select_point_of_few(local, caller_id(call), point, &mut |output| {
            // One more than the limit shows that there are too many. Others needn't be made.
            if words.len() <= limit {
                words.push(word(call, &output));
            }
        })
    })?;
    if !is_few {
        return Ok(None);
    }
    // All results are known, so the continuation is '$end_of_table', as in `ets`.
    let end = atoms::END_OF_TABLE.word();
    Ok(match words.len() {
        0 => Some(end),
        n if n <= limit => Some(call.tuple(&[call.list(&words), end])),
        _ => None,
    })
}

/// Reads a limit: a positive small integer, as in `ets`.
pub fn limit(word: Word) -> Result<usize, Raise> {
    let limit = layout::small(word).filter(|&n| n > 0).ok_or(BADARG)?;
    usize::try_from(limit).map_err(|_| BADARG)
}

/// select_again(Table, Limit, Direction, Place, Program) -> the same as select_some. The arguments
/// are the elements of a continuation.
pub fn select_again(call: &Call<'_>) -> Reply {
    let &[id, limit_word, direction_word, place, program] = call.args else {
        return Err(BADARG);
    };
    // The parts of a continuation are checked: a user may have built it.
    let program = PROGRAMS.hold(call, program).ok_or(BADARG)?;
    spec::plans_off_scheduler(call, &program)?;
    let place = crate::terms::binaries::bytes(call.env, place).ok_or(BADARG)?;
    let (limit, direction) = (limit(limit_word)?, direction(direction_word));
    let table = tables::get(call, id)?;
    let caller = CallerContext::new(call, &program)?;
    let job = table.select_resume(
        caller_id(call),
        Program::clone(&program),
        direction,
        Some(limit),
        place,
    );
    let continuation = Continuation {
        program: PageProgram::Held(program),
        limit,
        direction,
    };
    // A new job, which begins at the point where the last call ended.
    begin(
        call,
        Arc::clone(&table),
        caller,
        Job::Limited(reply_or_raise(call, &table, job)?, continuation),
    )
}

/// select_count(Table, Spec) -> Count.
pub fn select_count(call: &Call<'_>) -> Reply {
    counted(
        call,
        EngineTable::check_read,
        None,
        |table, local, point| table.count_point(local, caller_id(call), point),
        |table, program| Ok(Job::Count(table.select_count(caller_id(call), program)?)),
    )
}

/// select_delete(Table, Spec) -> Count.
pub fn select_delete(call: &Call<'_>) -> Reply {
    delete(call, None)
}

/// match_delete(Table, Pattern) -> Count.
pub fn match_delete(call: &Call<'_>) -> Reply {
    delete(call, Some(PatternResult::True))
}

fn delete(call: &Call<'_>, source: ProgramSource) -> Reply {
    counted(
        call,
        EngineTable::check_write,
        source,
        |table, local, point| table.delete_point(local, caller_id(call), point),
        |table, program| Ok(Job::Delete(table.select_delete(caller_id(call), program)?)),
    )
}

/// A scan whose result is the number of objects that it has counted or deleted: of one key (`at`),
/// or of the table (`job`).
#[inline]
fn counted(
    call: &Call<'_>,
    check: impl Fn(&EngineTable, OwnerId) -> Result<(), larder::Error>,
    source: ProgramSource,
    at: impl Fn(&EngineTable, &mut Local, Point<'_>) -> Result<u64, larder::Error>,
    job: impl Fn(&Arc<EngineTable>, Program) -> Result<Job, larder::Error>,
) -> Reply {
    tables::with(call, call.args[0], |table| {
        reply_or_raise(call, table, check(table, caller_id(call)))?;
        let at = |point: Point<'_>| {
            let count = larder::host::with_local(|local| at(table, local, point))?;
            Ok(call.int(count as i64))
        };
        let all = |program, caller| {
            let job = reply_or_raise(call, table, job(table, program))?;
            begin(call, Arc::clone(table), caller, job)
        };
        let program = compile(call, source, call.args[1])?;
        point_or_scan(call, table, program, at, all)
    })
}

/// select_take(Table, Spec) -> [Result] | {more, [Result]}; see `slice_in_order`. The scan runs
/// forward, and each object is removed when its result is made.
pub fn select_take(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let caller_id = caller_id(call);
        reply_or_raise(call, table, table.check_write(caller_id))?;
        let at = |point: Point<'_>| {
            list_at(call, |local, sink| {
                table.take_point(local, caller_id, point, sink)
            })
        };
        let all = |program, caller| {
            let job = reply_or_raise(call, table, table.select_take(caller_id, program))?;
            begin(call, Arc::clone(table), caller, Job::Take(job))
        };
        let program = compile(call, None, call.args[1])?;
        point_or_scan(call, table, program, at, all)
    })
}

/// select_replace(Table, Spec) -> Count.
pub fn select_replace(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let caller_id = caller_id(call);
        reply_or_raise(call, table, table.check_write(caller_id))?;
        // As in `ets`, where a bag may have several objects with the same key.
        if table.kind() == TableKind::Bag {
            return Err(Raise::Cause(atoms::TABLE_TYPE));
        }
        let at = |point: Point<'_>| {
            let count =
                larder::host::with_local(|local| table.replace_point(local, caller_id, point))?;
            Ok(call.int(count as i64))
        };
        let all = |program, caller| {
            let job = reply_or_raise(call, table, table.select_replace(caller_id, program))?;
            begin(call, Arc::clone(table), caller, Job::Replace(job))
        };
        let program = compile(call, None, call.args[1])?;
        point_or_scan(call, table, program, at, all)
    })
}

/// Runs the first slice of a job. If it isn't the last one, schedules the next one.
pub fn begin(
    call: &Call<'_>,
    table: Arc<EngineTable>,
    caller: CallerContext,
    mut job: Job,
) -> Reply {
    let scan = ScanCall { table, caller };
    // Most scans end in their first slice, and never become a resource.
    match slice(call, &scan, &mut job, layout::NIL)? {
        SliceOutcome::Result(word) => Ok(word),
        SliceOutcome::More(found) => {
            let job = Mutex::new(job);
            let resource = SCANS.make(PausedScan { scan, job });
            Ok(call.later(entry::scan_more, &[resource.term(call.env), found]))
        }
    }
}

/// scan_more(Scan, Found): runs a slice after the first. Found are the results so far.
pub fn scan_more(call: &Call<'_>) -> Reply {
    let PausedScan { scan, job } = SCANS.get(call, call.args[0]).ok_or(BADARG)?;
    let job = &mut *job.lock();
    let reply = match slice(call, scan, job, call.args[1]) {
        Ok(SliceOutcome::More(found)) => {
            return Ok(call.later(entry::scan_more, &[call.args[0], found]))
        }
        // The same slice is run again.
        Err(again @ (Raise::Again | Raise::Dirty)) => return Err(again),
        Ok(SliceOutcome::Result(word)) => Ok(word),
        Err(cause) => Err(cause),
    };
    // The job has ended, or failed. Release what it holds now, not when the resource is collected.
    *job = Job::Over;
    reply
}

/// The outcome of a slice: the call's result, or the results so far.
enum SliceOutcome {
    Result(Word),
    More(Word),
}

/// The number of a budget's units that are counted as one unit of the scheduler's time slice.
const BUDGET_UNITS_PER_TIMESLICE_UNIT: u64 = 10;

/// How long a slice of adding an index takes. It is shorter than that of a scan, because this goes
/// on for a long time while others write.
const BUILD_SLICE: Duration = Duration::from_micros(200);

/// Runs one slice of a scan within a new budget.
fn slice(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &mut Job,
    found: Word,
) -> Result<SliceOutcome, Raise> {
    tables::off_scheduler(call, job.is_long())?;
    let mut budget = Budget::scan();
    let ended = run(call, scan, job, found, &mut budget);
    let ended = match ended {
        // A list batch is in progress. Help with it; the next slice continues at the same point.
        // (`step_or_help` does this for jobs with results, to keep what they have found.)
        Err(larder::Error::Busy) => {
            scan.table.help_batch(&mut budget);
            Ok(SliceOutcome::More(found))
        }
        other => reply_or_raise(call, &scan.table, other),
    };
    if matches!(ended, Ok(SliceOutcome::Result(_))) {
        call.spent(budget.spent() / BUDGET_UNITS_PER_TIMESLICE_UNIT);
    }
    ended
}

/// Runs one slice of the job, and adds its results to those found so far.
fn run(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &mut Job,
    found: Word,
    budget: &mut Budget,
) -> Result<SliceOutcome, larder::Error> {
    // The surroundings, such as `self()`, were read by the first slice.
    let context = scan.caller.context();
    let (step, count) = match job {
        // One object for each key: the scan runs against the requested direction, so the list is in
        // order when it ends.
        Job::All(job) if scan.table.kind().is_unique() => {
            return slice_prepended(call, scan, job, found, budget)
        }
        Job::All(job) | Job::Ranks(job) => return slice_in_order(call, scan, job, found, budget),
        Job::Take(job) => return slice_in_order(call, scan, job, found, budget),
        Job::Index(job) => return slice_in_order(call, scan, job, found, budget),
        Job::Limited(job, rest) => {
            let next = |job: &SelectJob| continuation(call, scan, job, rest);
            return slice_limited(call, scan, job, next, found, budget);
        }
        Job::IndexLimited(job, rest) => {
            let next = |job: &IndexJob| Some(index_continuation(call, scan, job, rest));
            return slice_limited(call, scan, job, next, found, budget);
        }
        Job::Build(job) => {
            return Ok(match job.step(budget.within(BUILD_SLICE))? {
                Step::More => SliceOutcome::More(found),
                Step::Done => SliceOutcome::Result(atoms::TRUE.word()),
            });
        }
        Job::Count(job) => (job.step(budget, &context)?, job.count()),
        Job::Delete(job) => (job.step(budget, &context)?, job.count()),
        Job::Replace(job) => (job.step(budget, &context)?, job.count()),
        // The last slice was run before. A call that is running doesn't get here.
        Job::Over => return Err(larder::Error::NoTable),
    };
    Ok(match step {
        Step::More => SliceOutcome::More(found),
        Step::Done => SliceOutcome::Result(call.int(count as i64)),
    })
}

/// A slice of a scan for all results, in a table with one object per key. An ordered_set is scanned
/// against the requested direction, so each result is put in front of the earlier ones.
fn slice_prepended(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &mut SelectJob,
    mut found: Word,
    budget: &mut Budget,
) -> Result<SliceOutcome, larder::Error> {
    let step = step_or_help(scan, job, budget, &mut |output| {
        // The row's term is made on the heap of this call, in front of those of earlier slices.
        found = cons(call, word(call, &output), found);
    })?;
    Ok(match step {
        ScanStep::More => SliceOutcome::More(found),
        _ => SliceOutcome::Result(found),
    })
}

/// Runs a slice of a job that yields results. If a list batch stops it, the results so far are
/// kept, the rest of the slice is spent on helping with the batch, and the next slice continues at
/// the same point.
fn step_or_help(
    scan: &ScanCall,
    job: &mut impl ResultJob,
    budget: &mut Budget,
    sink: &mut dyn FnMut(Output<'_>),
) -> Result<ScanStep, larder::Error> {
    match job.slice(budget, &scan.caller.context(), sink) {
        Err(larder::Error::Busy) => {
            scan.table.help_batch(budget);
            Ok(ScanStep::More)
        }
        step => step,
    }
}

/// A slice of a scan for all results that runs in the direction that was asked for. Ends with the
/// results if there is one slice, and with {more, Reversed} if there are several.
fn slice_in_order(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &mut impl ResultJob,
    found: Word,
    budget: &mut Budget,
) -> Result<SliceOutcome, larder::Error> {
    let mut list = ListBuilder::new(&call.heap);
    let step = step_or_help(scan, job, budget, &mut |output| {
        fill(call, &output, list.next())
    })?;
    // The first slice was the last one. No reversal is needed.
    let over = !matches!(step, ScanStep::More);
    if over && found == layout::NIL {
        return Ok(SliceOutcome::Result(list.list()));
    }
    let reversed = reversed(call, list.list(), found);
    Ok(if over {
        SliceOutcome::Result(call.tuple(&[atoms::MORE.word(), reversed]))
    } else {
        SliceOutcome::More(reversed)
    })
}

/// Puts the elements of a list in front of the results so far, in reverse order.
fn reversed(call: &Call<'_>, list: Word, mut found: Word) -> Word {
    let mut rest = list;
    while let Some((head, tail)) = layout::cell(rest) {
        found = cons(call, head, found);
        rest = tail;
    }
    found
}

/// Makes a term of a result.
fn word(call: &Call<'_>, output: &Output<'_>) -> Word {
    Slot::root(|slot| fill(call, output, slot))
}

/// Makes a term of a result in a slot.
#[inline]
fn fill(call: &Call<'_>, output: &Output<'_>, slot: Slot) {
    match output {
        Output::Object(object) => decode::object_at(&call.heap, object, slot),
        Output::Term(term) => decode::term_at(&call.heap, *term, slot),
    }
}

fn cons(call: &Call<'_>, head: Word, tail: Word) -> Word {
    call.heap.cell(head, tail)
}

/// A slice of a scan with a limit. Ends with {Results, Continuation}, or '$end_of_table'. If there
/// are several slices, ends with {more, Reversed, Continuation}, which `larder_select:in_order/1`
/// reverses. `next` makes the continuation, if there may be more results.
fn slice_limited<J: ResultJob>(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &mut J,
    next: impl FnOnce(&J) -> Option<Word>,
    found: Word,
    budget: &mut Budget,
) -> Result<SliceOutcome, larder::Error> {
    let mut list = ListBuilder::new(&call.heap);
    let step = step_or_help(scan, job, budget, &mut |output| {
        fill(call, &output, list.next())
    })?;
    let next = match step {
        // The limit isn't reached, and the table not finished. Another slice goes on.
        ScanStep::More => return Ok(SliceOutcome::More(reversed(call, list.list(), found))),
        ScanStep::Limit => next(job).unwrap_or(atoms::END_OF_TABLE.word()),
        ScanStep::Done => atoms::END_OF_TABLE.word(),
    };
    // All in one slice: the list is in order.
    if found == layout::NIL {
        if list.len() == 0 && next == atoms::END_OF_TABLE.word() {
            return Ok(SliceOutcome::Result(next));
        }
        return Ok(SliceOutcome::Result(call.tuple(&[list.list(), next])));
    }
    Ok(SliceOutcome::Result(call.tuple(&[
        atoms::MORE.word(),
        reversed(call, list.list(), found),
        next,
    ])))
}

/// The continuation of a select with a limit. `None` if there are no more results.
fn continuation(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &SelectJob,
    rest: &Continuation,
) -> Option<Word> {
    // Like `ets`, only a scan of given keys knows that there are no more results.
    if job.is_over() {
        return None;
    }
    let direction = match rest.direction {
        Direction::Forward => atoms::FORWARD,
        Direction::Backward => atoms::BACKWARD,
    };
    Some(call.tuple(&[
        tables::reference(call.env, &scan.table),
        call.int(rest.limit as i64),
        direction.word(),
        call.binary(&job.continuation().unwrap_or_default()),
        rest.program.term(call.env),
    ]))
}

/// The continuation of a scan of an index with a limit.
fn index_continuation(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &IndexJob,
    rest: &IndexContinuation,
) -> Word {
    call.tuple(&[
        tables::reference(call.env, &scan.table),
        atoms::to_word(call.env, rest.name),
        call.int(rest.limit as i64),
        call.binary(&job.continuation()),
        rest.program.term(call.env),
    ])
}

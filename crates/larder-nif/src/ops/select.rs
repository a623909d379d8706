//! `select`, `match` and `match_object`, and the functions related to them, in slices.
//!
//! 1. Read the arguments, and compile the specification or find its program (`compile`). If the
//!    program binds the key, look the key up and return (`by_spec`).
//! 2. Otherwise wrap the engine's job in a [`Job`], and run its first slice (`begin`).
//! 3. If that wasn't the last slice, put the job into a resource, and schedule `scan_more` with the
//!    resource and the results so far. `scan_more` runs the next slice, and so on.
//!
//! A list is built from its end: each slice puts its results in front of those of earlier slices
//! (`run`). There are two cases:
//!
//! * All results of a set or ordered_set are wanted. In an ordered_set the scan runs against the
//!   requested direction, so the finished list is in order. A set has no order.
//! * In all other cases the scan runs in the direction that was asked for. If there are several
//!   slices, the result is {more, Reversed}, with a limit {more, Reversed, Continuation}, and
//!   Erlang reverses the list (`larder_select:in_order/1`). These are scans with a limit, from a
//!   rank on, or by an index, and scans of a bag, where the objects of a key stay in order of
//!   arrival.

use super::rank::{count, place};
use super::single::{report, spend_bytes};
use super::spec::{self, CallerContext, ProgramSource, PROGRAMS};
use crate::call::{Call, Raise, Reply, BADARG};
use crate::entry;
use crate::heap::{ListBuilder, Slot};
use crate::layout;
use crate::resource::{Registered, ResourceRef};
use crate::sys::*;
use crate::tables::{self, caller_id, positive, reply_or_raise};
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
    /// All objects.
    Every(SelectJob),
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
    IndexLimited(IndexJob, Continuation),
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
            Job::Every(_) | Job::Build(_) | Job::Index(_) | Job::IndexLimited(..) | Job::Over => {
                false
            }
        }
    }

    /// Runs a slice, and calls `sink` with each result.
    fn step(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, larder::Error> {
        let step = match self {
            Job::All(job) | Job::Every(job) | Job::Ranks(job) | Job::Limited(job, _) => {
                return job.step(budget, context, sink)
            }
            Job::Index(job) | Job::IndexLimited(job, _) => return job.step(budget, context, sink),
            Job::Take(job) => job.step(budget, context, sink)?,
            Job::Count(job) => job.step(budget, context)?,
            Job::Delete(job) => job.step(budget, context)?,
            Job::Replace(job) => job.step(budget, context)?,
            Job::Build(job) => job.step(budget.within(BUILD_SLICE))?,
            // The last slice was run before. A call that is running doesn't get here.
            Job::Over => return Err(larder::Error::NoTable),
        };
        Ok(match step {
            Step::More => ScanStep::More,
            Step::Done => ScanStep::Done,
        })
    }
}

/// The elements of a continuation, except its resume point: {Table, Limit, Direction, Place,
/// Program}, or of an index {Table, Name, Limit, Place, Program}.
pub struct Continuation {
    /// The second and the third, which are immediates.
    parts: [Word; 2],
    program: PageProgram,
}

impl Continuation {
    /// The continuation of a scan of the table.
    fn new(call: &Call<'_>, limit: usize, direction: Direction, program: PageProgram) -> Self {
        let direction = match direction {
            Direction::Forward => atoms::FORWARD,
            Direction::Backward => atoms::BACKWARD,
        };
        let parts = [call.int(limit as i64), direction.word()];
        Continuation { parts, program }
    }

    /// That of a scan of the index of this name.
    pub fn of_index(call: &Call<'_>, name: Atom, limit: usize, program: PageProgram) -> Self {
        let parts = [atoms::to_word(call.env, name), call.int(limit as i64)];
        Continuation { parts, program }
    }

    fn term(&self, call: &Call<'_>, scan: &ScanCall, place: &[u8]) -> Word {
        let table = tables::reference(call.env, &scan.table);
        let [second, third] = self.parts;
        let program = self.program.term(call.env);
        call.tuple(&[table, second, third, call.binary(place), program])
    }
}

/// The program of a continuation: not yet a resource on the first page, and the resource of the
/// earlier pages afterwards.
pub enum PageProgram {
    New(Program),
    Held(ResourceRef<Program>),
}

impl PageProgram {
    /// The program and the resume point of a continuation, which a user may have built.
    pub fn of_page<'c>(
        call: &'c Call<'_>,
        place: Word,
        program: Word,
    ) -> Result<(ResourceRef<Program>, &'c [u8]), Raise> {
        let program = PROGRAMS.hold(call, program).ok_or(BADARG)?;
        spec::plans_off_scheduler(call, &program)?;
        let place = crate::terms::binaries::bytes(call.env, place).ok_or(BADARG)?;
        Ok((program, place))
    }

    /// The program as a term, so that a continuation needn't compile it again.
    fn term(&self, env: *mut Env) -> Word {
        match self {
            PageProgram::New(program) => spec::reference(program.clone()).term(env),
            PageProgram::Held(program) => program.term(env),
        }
    }
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

/// An operation by a specification or a pattern: of the objects of one key (`at`), if the program
/// binds the key, and otherwise of the table (`job`).
#[inline]
fn by_spec(
    call: &Call<'_>,
    check: impl Fn(&EngineTable, OwnerId) -> Result<(), larder::Error>,
    (source, spec): (ProgramSource, Word),
    at: impl Fn(&EngineTable, &mut Local, Point<'_>) -> Result<Word, larder::Error>,
    job: impl Fn(&Arc<EngineTable>, Program) -> Result<Job, larder::Error>,
) -> Reply {
    tables::with(call, call.args[0], |table| {
        // An error of the table takes precedence over one of the specification.
        reply_or_raise(call, table, check(table, caller_id(call)))?;
        let program = compile(call, source, spec)?;
        let caller = CallerContext::new(call, &program)?;
        let Some(key) = program.bound_key(table.keypos()) else {
            let job = reply_or_raise(call, table, job(table, program))?;
            return begin(call, Arc::clone(table), caller, job);
        };
        // A bound key needs no scan: one lookup, in the same call.
        let point = Point {
            key,
            program: &program,
            context: &caller.context(),
        };
        larder::host::with_local(|local| {
            let found = at(table, local, point);
            // The key of a bag may have many objects.
            if !table.kind().is_unique() {
                report(call, local);
            }
            reply_or_raise(call, table, found)
        })
    })
}

/// The list of what `look_up` shows: the results of an operation on one key.
#[inline]
fn list_at(
    call: &Call<'_>,
    local: &mut Local,
    look_up: impl FnOnce(&mut Local, &mut dyn FnMut(Output<'_>)) -> Result<(), larder::Error>,
) -> Result<Word, larder::Error> {
    let (mut words, mut bytes) = (SmallVec::<[Word; 8]>::new(), 0);
    look_up(local, &mut |output| {
        words.push(Slot::root(|slot| bytes += fill(call, output, slot)))
    })?;
    spend_bytes(call, local, bytes);
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

/// select_all(Table, Kind, Spec, Direction) -> [Result] | {more, [Result]}; see `run`.
pub fn select_all(call: &Call<'_>) -> Reply {
    let me = caller_id(call);
    by_spec(
        call,
        EngineTable::check_read,
        (source_of(call.args[1]), call.args[2]),
        |table, local, point| {
            list_at(call, local, |local, sink| {
                table.select_point(local, me, point, sink)
            })
        },
        |table, program| {
            // The list is built from its end, so scan in the opposite direction.
            let opposite = opposite(direction(call.args[3]));
            Ok(Job::All(table.select(me, program, opposite, None)?))
        },
    )
}

/// every(Table) -> [Object] | {more, [Object]}; see `run`.
pub fn every(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    let job = reply_or_raise(
        call,
        &table,
        table.each(caller_id(call), Direction::Backward),
    )?;
    begin(call, table, CallerContext::none(), Job::Every(job))
}

/// slice(Table, From, Count), the function of Larder: the page of Count objects from a rank on.
/// Returns [Object] | {more, [Object]}; see `run`.
pub fn from_rank(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_read(caller_id(call)))?;
    let (from, count) = (place(call, call.args[1])?, count(call, call.args[2])?);
    tables::off_scheduler(call, table.counts_slowly())?;
    let job = reply_or_raise(call, &table, table.slice(caller_id(call), from, count))?;
    begin(call, table, CallerContext::none(), Job::Ranks(job))
}

/// select_some(Table, Kind, Spec, Limit, Direction) -> {[Result], Continuation} | {more, [Result],
/// Continuation} | '$end_of_table'; see `run`.
pub fn select_some(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let caller_id = caller_id(call);
        // Rights first, as in `select_all`.
        reply_or_raise(call, table, table.check_read(caller_id))?;
        let program = compile(call, source_of(call.args[1]), call.args[2])?;
        let limit = positive(call.args[3])?;
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
        let program = PageProgram::New(program);
        let continuation = Continuation::new(call, limit, direction, program);
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
    let (mut words, mut bytes) = (SmallVec::<[Word; 8]>::new(), 0);
    let is_few = larder::host::with_local(|local| {
        let is_few = table.select_point_of_few(local, caller_id(call), point, &mut |output| {
            // One more than the limit shows that there are too many. Others needn't be made.
            if words.len() <= limit {
                words.push(Slot::root(|slot| bytes += fill(call, output, slot)));
            }
        });
        spend_bytes(call, local, bytes);
        is_few
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

/// select_again(Table, Limit, Direction, Place, Program) -> the same as select_some. The arguments
/// are the elements of a continuation.
pub fn select_again(call: &Call<'_>) -> Reply {
    let &[id, limit_word, direction_word, place, program] = call.args else {
        return Err(BADARG);
    };
    let (program, place) = PageProgram::of_page(call, place, program)?;
    let (limit, direction) = (positive(limit_word)?, direction(direction_word));
    let table = tables::get(call, id)?;
    let caller = CallerContext::new(call, &program)?;
    let job = table.select_resume(
        caller_id(call),
        Program::clone(&program),
        direction,
        Some(limit),
        place,
    );
    let program = PageProgram::Held(program);
    let continuation = Continuation::new(call, limit, direction, program);
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
    let me = caller_id(call);
    by_spec(
        call,
        EngineTable::check_read,
        (None, call.args[1]),
        |table, local, point| Ok(number(call, table.count_point(local, me, point)?)),
        |table, program| Ok(Job::Count(table.select_count(me, program)?)),
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
    let me = caller_id(call);
    by_spec(
        call,
        EngineTable::check_write,
        (source, call.args[1]),
        |table, local, point| Ok(number(call, table.delete_point(local, me, point)?)),
        |table, program| Ok(Job::Delete(table.select_delete(me, program)?)),
    )
}

/// select_take(Table, Spec) -> [Result] | {more, [Result]}; see `run`. The scan runs
/// forward, and each object is removed when its result is made.
pub fn select_take(call: &Call<'_>) -> Reply {
    let me = caller_id(call);
    by_spec(
        call,
        EngineTable::check_write,
        (None, call.args[1]),
        |table, local, point| {
            list_at(call, local, |local, sink| {
                table.take_point(local, me, point, sink)
            })
        },
        |table, program| Ok(Job::Take(table.select_take(me, program)?)),
    )
}

/// select_replace(Table, Spec) -> Count.
pub fn select_replace(call: &Call<'_>) -> Reply {
    let me = caller_id(call);
    // As in `ets`, where a bag may have several objects with the same key.
    let check = |table: &EngineTable, me| match table.check_write(me) {
        Ok(()) if table.kind() == TableKind::Bag => Err(larder::Error::TableType),
        checked => checked,
    };
    by_spec(
        call,
        check,
        (None, call.args[1]),
        |table, local, point| Ok(number(call, table.replace_point(local, me, point)?)),
        |table, program| Ok(Job::Replace(table.select_replace(me, program)?)),
    )
}

/// A number of objects.
fn number(call: &Call<'_>, count: u64) -> Word {
    call.int(count as i64)
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
    // A slice that can't be kept short runs on a dirty scheduler.
    tables::off_scheduler(call, job.is_long())?;
    let mut budget = Budget::scan();
    let ended = run(call, scan, job, found, &mut budget);
    let ended = reply_or_raise(call, &scan.table, ended);
    // Report the cost of the last slice. One that schedules another reports a whole time slice
    // (`Call::later`).
    if matches!(ended, Ok(SliceOutcome::Result(_))) {
        call.spent(budget.spent() / BUDGET_UNITS_PER_TIMESLICE_UNIT);
    }
    ended
}

/// Runs one slice of the job, and adds its results to those found so far. If it is the last slice,
/// makes the result of the call (`result_of`).
fn run(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &mut Job,
    mut found: Word,
    budget: &mut Budget,
) -> Result<SliceOutcome, larder::Error> {
    // One object for each key: the scan runs against the requested direction, so each result is put
    // in front of the earlier ones, and the list is in order when it ends.
    let in_front = matches!(job, Job::All(_) | Job::Every(_)) && scan.table.kind().is_unique();
    let mut list = ListBuilder::new(&call.heap);
    let step = match &mut *job {
        Job::Every(job) => job.step_each(budget, |object| {
            let place = match in_front {
                true => in_front_of(call, &mut found),
                false => list.next(),
            };
            decode::found(&call.heap, object, place);
        }),
        // What the program may ask about the caller, such as `self()`, was read by the first slice.
        job if in_front => job.step(budget, &scan.caller.context(), &mut |output| {
            fill(call, output, in_front_of(call, &mut found));
        }),
        job => job.step(budget, &scan.caller.context(), &mut |output| {
            fill(call, output, list.next());
        }),
    };
    let step = or_help(scan, step, budget)?;
    // The list is complete as it is: `found` has the results of this slice, too.
    if in_front {
        return Ok(match step {
            ScanStep::More => SliceOutcome::More(found),
            _ => SliceOutcome::Result(found),
        });
    }
    // `list` has the results of this slice in order. If it isn't the last slice, they are put in
    // front of the earlier ones, and Erlang reverses all of them in the end.
    Ok(match step {
        ScanStep::More => SliceOutcome::More(reversed(call, list.list(), found)),
        ScanStep::Limit | ScanStep::Done => {
            SliceOutcome::Result(result_of(call, scan, job, step, found, &list))
        }
    })
}

/// The result of a job that has ended with `step`. `list` has the results of its last slice, and
/// `found` those of the earlier ones, the last one first.
fn result_of(
    call: &Call<'_>,
    scan: &ScanCall,
    job: &Job,
    step: ScanStep,
    found: Word,
    list: &ListBuilder<'_>,
) -> Word {
    let end = atoms::END_OF_TABLE.word();
    // The continuation, if the function returns one.
    let next = match job {
        // The limit is reached. Like `ets`, only a scan of given keys knows that there are no more
        // results.
        Job::Limited(job, rest) if step == ScanStep::Limit && !job.is_over() => {
            Some(rest.term(call, scan, &job.continuation().unwrap_or_default()))
        }
        Job::IndexLimited(job, rest) if step == ScanStep::Limit => {
            Some(rest.term(call, scan, &job.continuation()))
        }
        Job::Limited(..) | Job::IndexLimited(..) => Some(end),
        Job::Count(job) => return number(call, job.count()),
        Job::Delete(job) => return number(call, job.count()),
        Job::Replace(job) => return number(call, job.count()),
        Job::Build(_) => return atoms::TRUE.word(),
        Job::All(_) | Job::Every(_) | Job::Ranks(_) | Job::Take(_) | Job::Index(_) | Job::Over => {
            None
        }
    };
    match (next, found == layout::NIL) {
        // All is in one slice, so the list is in order.
        (None, true) => list.list(),
        (Some(next), true) if list.len() == 0 && next == end => end,
        (Some(next), true) => call.tuple(&[list.list(), next]),
        // There were several slices. Erlang reverses the list.
        (next, false) => {
            let reversed = reversed(call, list.list(), found);
            let parts = [atoms::MORE.word(), reversed, next.unwrap_or(end)];
            call.tuple(&parts[..2 + usize::from(next.is_some())])
        }
    }
}

/// How a slice of a job has ended. If a list batch has stopped it, the results so far are kept, the
/// rest of the slice is spent on helping with the batch, and the next slice continues at the same
/// point.
fn or_help(
    scan: &ScanCall,
    step: Result<ScanStep, larder::Error>,
    budget: &mut Budget,
) -> Result<ScanStep, larder::Error> {
    match step {
        Err(larder::Error::Busy) => {
            scan.table.help_batch(budget);
            Ok(ScanStep::More)
        }
        step => step,
    }
}

/// Puts the elements of a list in front of the results so far, in reverse order.
pub(super) fn reversed(call: &Call<'_>, list: Word, mut found: Word) -> Word {
    layout::elements(list).for_each(|element| found = cons(call, element, found));
    found
}

/// Makes a term of a result, in a slot. Returns how many bytes were read for that.
#[inline]
fn fill(call: &Call<'_>, output: Output<'_>, slot: Slot) -> usize {
    match output {
        Output::Object(object) => {
            decode::object_at(&call.heap, object, slot);
            object.others_bytes().len()
        }
        Output::Term(term) => {
            decode::term_at(&call.heap, term, slot);
            term.bytes().len()
        }
        Output::Built(term) => decode::built(&call.heap, term, slot),
    }
}

/// Puts a cell in front of a list. Returns the slot of its head.
#[inline]
fn in_front_of(call: &Call<'_>, list: &mut Word) -> Slot {
    let (cell, head, tail) = call.heap.open_cell();
    tail.fill(*list);
    *list = cell;
    head
}

fn cons(call: &Call<'_>, head: Word, tail: Word) -> Word {
    call.heap.cell(head, tail)
}

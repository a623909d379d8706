//! select, match and match_object with all their relatives, in slices.
//!
//! 1. The function reads its arguments. If the specification names the key, it looks that up and is
//!    done (`prepared`).
//! 2. Otherwise it makes a [`Job`] of the engine's, and runs its first slice (`begin`).
//! 3. If the slice was not the last, the job becomes a resource, and the call schedules `scan_more`
//!    with it and the results so far. That runs the next slice.
//!
//! A list grows at its front, so each slice puts its results in front of those of earlier slices.
//! There are two cases:
//!
//! * All results of a set or ordered_set are wanted (`all`). The scan goes in the opposite
//!   direction, so the list is in order at the end.
//! * Otherwise (`all_in_order`, `some`): with a limit, from a rank on, by an index, and in a bag,
//!   whose objects of one key have an order of their own. The scan goes in the direction that was
//!   asked for, and the list is back to front. Erlang reverses it (`larder_select:in_order/1`).

use super::rank::place;
use super::spec::{self, Surroundings, What, PROGRAMS};
use crate::call::{Call, Raise, Reply, BADARG};
use crate::entry;
use crate::layout;
use crate::resource::Registered;
use crate::sys::*;
use crate::tables::{self, answer, natural, who};
use crate::terms::atoms;
use crate::terms::decode;
use larder::{
    Budget, CountJob, DeleteJob, Direction, IndexBuild, IndexJob, Output, Point, ReplaceJob,
    ScanStep, SelectJob, Step, Table, TableKind, TakeJob,
};
use larder_matchspec::{Context, Pattern, Program};
use larder_term::Atom;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// A scan between two slices: the resource that `scan_more` gets.
pub struct Scan {
    table: Arc<Table>,
    around: Surroundings,
    job: Mutex<Job>,
}

/// What is done in slices.
pub enum Job {
    /// A select of all results.
    All(SelectJob),
    /// The objects from a rank on.
    Ranks(SelectJob),
    /// A select with a limit, and what its continuation needs.
    Some(SelectJob, Again),
    Count(CountJob),
    Delete(DeleteJob),
    Take(TakeJob),
    Replace(ReplaceJob),
    /// An index that is being added.
    Build(Box<IndexBuild>),
    /// All rows that an index finds, in the order of its entries.
    Index(Box<IndexJob>),
    /// The same with a limit, and what its continuation needs.
    IndexSome(Box<IndexJob>, IndexAgain),
    /// It has ended.
    Over,
}

/// What a continuation of an index says besides the place: {Table, Name, Limit, Place, Program}.
pub struct IndexAgain {
    pub name: Atom,
    pub limit: usize,
    pub program: Program,
}

/// A scan that gives results.
trait Giving {
    fn give(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        see: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, larder::Error>;
}

impl Giving for SelectJob {
    fn give(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        see: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, larder::Error> {
        self.step(budget, context, see)
    }
}

impl Giving for IndexJob {
    fn give(
        &mut self,
        budget: &mut Budget,
        context: &Context<'_>,
        see: &mut dyn FnMut(Output<'_>),
    ) -> Result<ScanStep, larder::Error> {
        self.step(budget, context, see)
    }
}

/// What a continuation says besides the place: {Table, Limit, Direction, Place, Program}.
pub struct Again {
    program: Program,
    limit: usize,
    direction: Direction,
}

/// Scans.
pub static SCANS: Registered<Scan> = Registered::new();

/// What a kind of select makes programs of.
fn what(kind: Word) -> What {
    if kind == atoms::MATCH.word() {
        Some(Pattern::Bindings)
    } else if kind == atoms::MATCH_OBJECT.word() {
        Some(Pattern::Object)
    } else {
        None
    }
}

/// The program that the arguments ask for.
fn compile(call: &Call<'_>, what: What, spec: Word) -> Result<Program, Raise> {
    if what.is_none() && spec == layout::NIL {
        return spec::nothing();
    }
    spec::program(call, spec, what)
}

/// Calls `at` with the key that the program names. If it names none, or several, calls `all` with
/// the program.
fn prepared(
    call: &Call<'_>,
    table: &Arc<Table>,
    program: Program,
    at: impl FnOnce(Point<'_>) -> Result<Word, larder::Error>,
    all: impl FnOnce(Program, Surroundings) -> Reply,
) -> Reply {
    let around = Surroundings::new(call, &program)?;
    let Some(key) = program.bound_key(table.keypos()) else {
        return all(program, around);
    };
    let point = Point {
        key,
        program: &program,
        context: &around.context(),
    };
    answer(call, table, at(point))
}

/// The way that a word says.
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

/// select_all(Table, Kind, Spec, Direction) -> [Result] | {more, [Result]}; see `all_in_order`.
pub fn select_all(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let who = who(call);
        // The table's error comes before that of the specification.
        answer(call, table, table.check_read(who))?;
        let at = |point: Point<'_>| {
            let mut words = SmallVec::<[Word; 8]>::new();
            larder::with_local(|local| {
                table.select_point(local, who, point, &mut |output| {
                    words.push(word(call, &output));
                })
            })?;
            Ok(call.list(&words))
        };
        let all = |program, around| {
            let way = opposite(direction(call.args[3]));
            let job = answer(call, table, table.select(who, program, way, None))?;
            begin(call, Arc::clone(table), around, Job::All(job))
        };
        let program = compile(call, what(call.args[1]), call.args[2])?;
        prepared(call, table, program, at, all)
    })
}

/// every(Table) -> [Object] | {more, [Object]}; see `all_in_order`.
pub fn every(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    let job = answer(call, &table, table.each(who(call), Direction::Backward))?;
    begin(call, table, Surroundings::none(), Job::All(job))
}

/// slice(Table, From, Count) -> [Object] | {more, [Object]}; see `all_in_order`.
pub fn from_rank(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    answer(call, &table, table.check_read(who(call)))?;
    let (from, count) = (place(call.args[1])?, natural(call.args[2])?);
    let job = answer(call, &table, table.slice(who(call), from, count))?;
    begin(call, table, Surroundings::none(), Job::Ranks(job))
}

/// select_some(Table, Kind, Spec, Limit, Direction) -> {[Result], Continuation} | {more, [Result],
/// Continuation} | '$end_of_table'; see `some`.
pub fn select_some(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let who = who(call);
        answer(call, table, table.check_read(who))?;
        let program = compile(call, what(call.args[1]), call.args[2])?;
        let limit = limit(call.args[3])?;
        let around = Surroundings::new(call, &program)?;
        if let Some(key) = program.bound_key(table.keypos()) {
            let point = Point {
                key,
                program: &program,
                context: &around.context(),
            };
            if let Some(few) = answer(call, table, some_at(call, table, point, limit))? {
                return Ok(few);
            }
        }
        let direction = direction(call.args[4]);
        let job = table.select(who, program.clone(), direction, Some(limit));
        let job = answer(call, table, job)?;
        let again = Again {
            program,
            limit,
            direction,
        };
        begin(call, Arc::clone(table), around, Job::Some(job, again))
    })
}

/// The results under a key, which are all, unless there are more objects than the limit allows.
fn some_at(
    call: &Call<'_>,
    table: &Table,
    point: Point<'_>,
    limit: usize,
) -> Result<Option<Word>, larder::Error> {
    let mut words = SmallVec::<[Word; 8]>::new();
    larder::with_local(|local| {
        table.select_point(local, who(call), point, &mut |output| {
            if words.len() <= limit {
                words.push(word(call, &output));
            }
        })
    })?;
    // As `ets`, which knows that nothing is left when the keys are given, and only then.
    let end = atoms::END_OF_TABLE.word();
    Ok(match words.len() {
        0 => Some(end),
        n if n <= limit => Some(call.tuple(&[call.list(&words), end])),
        _ => None,
    })
}

/// A limit: a small integer, as `ets` has it.
pub fn limit(word: Word) -> Result<usize, Raise> {
    let limit = layout::small(word).filter(|&n| n > 0).ok_or(BADARG)?;
    usize::try_from(limit).map_err(|_| BADARG)
}

/// select_again(Table, Limit, Direction, Place, Program) -> as select_some. The arguments are a
/// continuation's elements.
pub fn select_again(call: &Call<'_>) -> Reply {
    let &[id, amount, way, place, program] = call.args else {
        return Err(BADARG);
    };
    let program = PROGRAMS.get(call.env, program).ok_or(BADARG)?;
    let place = crate::terms::binaries::bytes(call.env, place).ok_or(BADARG)?;
    let (limit, direction) = (limit(amount)?, direction(way));
    let table = tables::get(call, id)?;
    let again = Again {
        program: program.clone(),
        limit,
        direction,
    };
    let around = Surroundings::new(call, program)?;
    let job = table.select_resume(who(call), program.clone(), direction, Some(limit), place);
    begin(
        call,
        Arc::clone(&table),
        around,
        Job::Some(answer(call, &table, job)?, again),
    )
}

/// select_count(Table, Spec) -> Count.
pub fn select_count(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let who = who(call);
        answer(call, table, table.check_read(who))?;
        let at = |point: Point<'_>| {
            let count = larder::with_local(|local| table.count_point(local, who, point))?;
            Ok(call.int(count as i64))
        };
        let all = |program, around| {
            let job = answer(call, table, table.select_count(who, program))?;
            begin(call, Arc::clone(table), around, Job::Count(job))
        };
        let program = compile(call, None, call.args[1])?;
        prepared(call, table, program, at, all)
    })
}

/// select_delete(Table, Spec) -> Count.
pub fn select_delete(call: &Call<'_>) -> Reply {
    delete(call, None)
}

/// match_delete(Table, Pattern) -> Count.
pub fn match_delete(call: &Call<'_>) -> Reply {
    delete(call, Some(Pattern::True))
}

fn delete(call: &Call<'_>, what: What) -> Reply {
    tables::with(call, call.args[0], |table| {
        let who = who(call);
        answer(call, table, table.check_write(who))?;
        let at = |point: Point<'_>| {
            let count = larder::with_local(|local| table.delete_point(local, who, point))?;
            Ok(call.int(count as i64))
        };
        let all = |program, around| {
            let job = answer(call, table, table.select_delete(who, program))?;
            begin(call, Arc::clone(table), around, Job::Delete(job))
        };
        let program = compile(call, what, call.args[1])?;
        prepared(call, table, program, at, all)
    })
}

/// select_take(Table, Spec) -> [Result] | {more, [Result]}; see `all_in_order`. What is taken goes
/// forward: an object that goes is given at that moment.
pub fn select_take(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let who = who(call);
        answer(call, table, table.check_write(who))?;
        let at = |point: Point<'_>| {
            let mut words = SmallVec::<[Word; 8]>::new();
            larder::with_local(|local| {
                table.take_point(local, who, point, &mut |output| {
                    words.push(word(call, &output));
                })
            })?;
            Ok(call.list(&words))
        };
        let all = |program, around| {
            let job = answer(call, table, table.select_take(who, program))?;
            begin(call, Arc::clone(table), around, Job::Take(job))
        };
        let program = compile(call, None, call.args[1])?;
        prepared(call, table, program, at, all)
    })
}

/// select_replace(Table, Spec) -> Count.
pub fn select_replace(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let who = who(call);
        answer(call, table, table.check_write(who))?;
        if table.kind() == TableKind::Bag {
            return Err(Raise::Cause(atoms::TABLE_TYPE));
        }
        let at = |point: Point<'_>| {
            let count = larder::with_local(|local| table.replace_point(local, who, point))?;
            Ok(call.int(count as i64))
        };
        let all = |program, around| {
            let job = answer(call, table, table.select_replace(who, program))?;
            begin(call, Arc::clone(table), around, Job::Replace(job))
        };
        let program = compile(call, None, call.args[1])?;
        prepared(call, table, program, at, all)
    })
}

/// Begins a job; later slices follow by themselves.
pub fn begin(call: &Call<'_>, table: Arc<Table>, around: Surroundings, job: Job) -> Reply {
    let scan = Scan {
        table,
        around,
        job: Mutex::new(job),
    };
    match slice(call, &scan, layout::NIL)? {
        Ended::Result(word) => Ok(word),
        Ended::More(found) => {
            let resource = SCANS.make(scan);
            Ok(call.later(entry::scan_more, &[resource.term(call.env), found]))
        }
    }
}

/// scan_more(Scan, Found): the slices after the first.
pub fn scan_more(call: &Call<'_>) -> Reply {
    let scan = SCANS.get(call.env, call.args[0]).ok_or(BADARG)?;
    match slice(call, scan, call.args[1])? {
        Ended::Result(word) => Ok(word),
        Ended::More(found) => Ok(call.later(entry::scan_more, &[call.args[0], found])),
    }
}

/// How a slice ended: with the call's result, or with what was found so far.
enum Ended {
    Result(Word),
    More(Word),
}

/// How many of a scan's units cost a scheduler as much as one of its own.
const ROWS_A_UNIT: u64 = 10;

fn slice(call: &Call<'_>, scan: &Scan, found: Word) -> Result<Ended, Raise> {
    let mut budget = Budget::scan();
    let ended = run(call, scan, found, &mut budget);
    let ended = match ended {
        // The scan goes on where it was: only this slice is lost, not the job.
        Err(larder::Error::Busy) => {
            scan.table.help_batch(&mut budget);
            Ok(Ended::More(found))
        }
        other => answer(call, &scan.table, other),
    };
    if matches!(ended, Ok(Ended::Result(_))) {
        *scan.job.lock() = Job::Over;
        call.spent(budget.spent() / ROWS_A_UNIT);
    }
    ended
}

fn run(
    call: &Call<'_>,
    scan: &Scan,
    found: Word,
    budget: &mut Budget,
) -> Result<Ended, larder::Error> {
    let context = scan.around.context();
    let mut job = scan.job.lock();
    let (step, count) = match &mut *job {
        Job::All(job) if scan.table.kind().is_unique() => {
            return all(call, scan, job, found, budget)
        }
        Job::All(job) | Job::Ranks(job) => {
            return all_in_order(call, found, |see| stepped(scan, job, budget, see))
        }
        Job::Take(job) => {
            return all_in_order(call, found, |see| {
                patiently(scan, budget, |budget| {
                    Ok(match job.step(budget, &context, see)? {
                        Step::More => ScanStep::More,
                        Step::Done => ScanStep::Done,
                    })
                })
            })
        }
        Job::Some(job, again) => {
            let next = |job: &SelectJob| continuation(call, scan, job, again);
            return some(call, scan, job, next, found, budget);
        }
        Job::Index(job) => {
            return all_in_order(call, found, |see| stepped(scan, &mut **job, budget, see))
        }
        Job::IndexSome(job, again) => {
            let next = |job: &IndexJob| Some(index_continuation(call, scan, job, again));
            return some(call, scan, &mut **job, next, found, budget);
        }
        Job::Build(job) => {
            return Ok(match job.step(budget)? {
                Step::More => Ended::More(found),
                Step::Done => Ended::Result(atoms::TRUE.word()),
            });
        }
        Job::Count(job) => (job.step(budget, &context)?, job.count()),
        Job::Delete(job) => (job.step(budget, &context)?, job.count()),
        Job::Replace(job) => (job.step(budget, &context)?, job.count()),
        Job::Over => return Err(larder::Error::NoTable),
    };
    Ok(match step {
        Step::More => Ended::More(found),
        Step::Done => Ended::Result(call.int(count as i64)),
    })
}

/// A slice of a scan for everything, of a table with one object a key: the results go in front of
/// those found before.
fn all(
    call: &Call<'_>,
    scan: &Scan,
    job: &mut SelectJob,
    mut found: Word,
    budget: &mut Budget,
) -> Result<Ended, larder::Error> {
    let step = stepped(scan, job, budget, &mut |output| {
        found = cons(call, word(call, &output), found);
    })?;
    Ok(match step {
        ScanStep::More => Ended::More(found),
        _ => Ended::Result(found),
    })
}

/// One slice of a select; see `patiently`.
fn stepped(
    scan: &Scan,
    job: &mut impl Giving,
    budget: &mut Budget,
    see: &mut dyn FnMut(Output<'_>),
) -> Result<ScanStep, larder::Error> {
    patiently(scan, budget, |budget| {
        job.give(budget, &scan.around.context(), see)
    })
}

/// One slice of a scan. If a list batch stops it, the results so far stay, the slice helps with the
/// batch, and the next slice goes on from there.
fn patiently(
    scan: &Scan,
    budget: &mut Budget,
    step: impl FnOnce(&mut Budget) -> Result<ScanStep, larder::Error>,
) -> Result<ScanStep, larder::Error> {
    match step(budget) {
        Err(larder::Error::Busy) => {
            scan.table.help_batch(budget);
            Ok(ScanStep::More)
        }
        step => step,
    }
}

/// As `all`, for a bag, whose objects of one key stay in the order of their arrival, for what is
/// taken, and for what has a limit. Ends with the results, or {more, Reversed} if there were
/// several slices.
fn all_in_order(
    call: &Call<'_>,
    found: Word,
    step: impl FnOnce(&mut dyn FnMut(Output<'_>)) -> Result<ScanStep, larder::Error>,
) -> Result<Ended, larder::Error> {
    let mut words = Vec::new();
    let step = step(&mut |output| words.push(word(call, &output)))?;
    let over = !matches!(step, ScanStep::More);
    if over && found == layout::NIL {
        return Ok(Ended::Result(call.list(&words)));
    }
    let reversed = reversed(call, &words, found);
    Ok(if over {
        Ended::Result(call.tuple(&[atoms::MORE.word(), reversed]))
    } else {
        Ended::More(reversed)
    })
}

/// These in front of what was found, back to front.
fn reversed(call: &Call<'_>, words: &[Word], found: Word) -> Word {
    words
        .iter()
        .fold(found, |list, &word| cons(call, word, list))
}

fn word(call: &Call<'_>, output: &Output<'_>) -> Word {
    match output {
        Output::Object(object) => decode::object(&call.heap, object),
        Output::Term(term) => decode::term(&call.heap, *term),
    }
}

fn cons(call: &Call<'_>, head: Word, tail: Word) -> Word {
    call.heap.cell(head, tail)
}

/// A slice of a limited scan. Ends with {Results, Continuation}, or '$end_of_table'. If there were
/// several slices it ends with {more, Reversed, Continuation}, which `larder_select:in_order/1`
/// turns round. `next` gives the continuation, if something may be left.
fn some<J: Giving>(
    call: &Call<'_>,
    scan: &Scan,
    job: &mut J,
    next: impl FnOnce(&J) -> Option<Word>,
    found: Word,
    budget: &mut Budget,
) -> Result<Ended, larder::Error> {
    let mut words = Vec::new();
    let step = stepped(scan, job, budget, &mut |output| {
        words.push(word(call, &output))
    })?;
    let next = match step {
        ScanStep::More => return Ok(Ended::More(reversed(call, &words, found))),
        ScanStep::Limit => next(job).unwrap_or(atoms::END_OF_TABLE.word()),
        ScanStep::Done => atoms::END_OF_TABLE.word(),
    };
    if found == layout::NIL {
        if words.is_empty() && next == atoms::END_OF_TABLE.word() {
            return Ok(Ended::Result(next));
        }
        return Ok(Ended::Result(call.tuple(&[call.list(&words), next])));
    }
    Ok(Ended::Result(call.tuple(&[
        atoms::MORE.word(),
        reversed(call, &words, found),
        next,
    ])))
}

fn continuation(call: &Call<'_>, scan: &Scan, job: &SelectJob, again: &Again) -> Option<Word> {
    // As `ets`, which knows that nothing is left when the keys are given, and only then.
    if job.is_over() {
        return None;
    }
    let way = match again.direction {
        Direction::Forward => atoms::FORWARD,
        Direction::Backward => atoms::BACKWARD,
    };
    let program = PROGRAMS.make(again.program.clone()).term(call.env);
    Some(call.tuple(&[
        tables::reference(call.env, &scan.table),
        call.int(again.limit as i64),
        way.word(),
        call.binary(&job.continuation().unwrap_or_default()),
        program,
    ]))
}

fn index_continuation(call: &Call<'_>, scan: &Scan, job: &IndexJob, again: &IndexAgain) -> Word {
    let program = PROGRAMS.make(again.program.clone()).term(call.env);
    call.tuple(&[
        tables::reference(call.env, &scan.table),
        atoms::to_word(call.env, again.name),
        call.int(again.limit as i64),
        call.binary(&job.continuation()),
        program,
    ])
}

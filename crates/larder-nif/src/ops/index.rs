//! Secondary indexes.

use super::options;
use super::select::{self, Continuation, Job, PageProgram};
use super::spec::{self, CallerContext};
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::layout;
use crate::sys::*;
use crate::tables::{self, caller_id, reply_or_raise};
use crate::terms::atoms;
use crate::terms::decode;
use crate::terms::encode::{stack_bytes, Writer};
use larder::host::{IndexDefinition, IndexInfo, IndexOn, PlanKind};
use larder_matchspec::Program;
use larder_term::{Atom, Mode};

/// add_index(Table, {Name, Position | Expression, Options}) -> true.
pub fn add_index(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_write(caller_id(call)))?;
    let definition = options::index(call, call.args[1])?;
    let job = reply_or_raise(call, &table, table.add_index(caller_id(call), definition))?;
    let job = Job::Build(Box::new(job));
    select::begin(call, table, CallerContext::none(), job)
}

/// drop_index(Table, Name) -> true.
pub fn drop_index(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_write(caller_id(call)))?;
    let name = name(call, call.args[1])?;
    reply_or_raise(call, &table, table.drop_index(caller_id(call), name))?;
    Ok(atoms::TRUE.word())
}

/// index_lookup(Table, Name, Value) -> [Object] | {more, [Object]}; see `select::run`.
pub fn index_lookup(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_read(caller_id(call)))?;
    let name = name(call, call.args[1])?;
    let mut stack = stack_bytes();
    let mut value = Writer::at(&mut stack, call.env, Mode::Shared);
    value.term(call.args[2])?;
    let job = table.index_lookup(caller_id(call), name, value.as_term());
    let job = Job::Index(reply_or_raise(call, &table, job)?);
    select::begin(call, table, CallerContext::none(), job)
}

/// index_select_all(Table, Name, Spec) -> [Result] | {more, [Result]}; see `select::run`.
pub fn index_select_all(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_read(caller_id(call)))?;
    let (name, program) = (name(call, call.args[1])?, program(call, call.args[2])?);
    let caller = CallerContext::new(call, &program)?;
    let job = table.index_select(caller_id(call), name, program, None);
    let job = Job::Index(reply_or_raise(call, &table, job)?);
    select::begin(call, table, caller, job)
}

/// index_select_some(Table, Name, Spec, Limit) -> {[Result], Continuation} | {more, [Result],
/// Continuation} | '$end_of_table'; see `select::run`.
pub fn index_select_some(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_read(caller_id(call)))?;
    let (name, program) = (name(call, call.args[1])?, program(call, call.args[2])?);
    let limit = tables::positive(call.args[3])?;
    let caller = CallerContext::new(call, &program)?;
    let job = table.index_select(caller_id(call), name, program.clone(), Some(limit));
    // What is needed to make the continuation: it must be possible to go on in another call, after
    // any time.
    let continuation = Continuation::of_index(call, name, limit, PageProgram::New(program));
    let job = Job::IndexLimited(reply_or_raise(call, &table, job)?, continuation);
    select::begin(call, table, caller, job)
}

/// index_select_again(Table, Name, Limit, Place, Program) -> the same as index_select_some. The
/// arguments are the elements of a continuation.
pub fn index_select_again(call: &Call<'_>) -> Reply {
    // It may come from anywhere, so all parts are checked.
    let &[id, index, amount, place, program] = call.args else {
        return Err(BADARG);
    };
    let (program, place) = PageProgram::of_page(call, place, program)?;
    let (name, limit) = (name(call, index)?, tables::positive(amount)?);
    let table = tables::get(call, id)?;
    let caller = CallerContext::new(call, &program)?;
    let caller_id = caller_id(call);
    let job = table.index_select_resume(
        caller_id,
        name,
        Program::clone(&program),
        Some(limit),
        place,
    );
    let continuation = Continuation::of_index(call, name, limit, PageProgram::Held(program));
    let job = Job::IndexLimited(reply_or_raise(call, &table, job)?, continuation);
    select::begin(call, table, caller, job)
}

/// explain(Table, Spec) -> {Plan, Rows | unknown, [{Name, Entries}]}. A plan is `nothing`, `key`,
/// `range`, `scan` or {index, Name}.
pub fn explain(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_read(caller_id(call)))?;
    let explained = table.explain(&program(call, call.args[1])?, None);
    let plan = match explained.plan {
        PlanKind::Nothing => atoms::NOTHING.word(),
        PlanKind::Keys(_) => atoms::KEY.word(),
        PlanKind::Range => atoms::RANGE.word(),
        PlanKind::Scan => atoms::SCAN.word(),
        PlanKind::Index(name) => call.tuple(&[atoms::INDEX.word(), atoms::to_word(call.env, name)]),
    };
    // Counts beyond the range of small integers don't occur, but must not wrap around.
    let int = |n: u64| call.int(i64::try_from(n).unwrap_or(i64::MAX));
    let rows = explained.rows.map_or(atoms::UNKNOWN.word(), int);
    let indexes = explained.indexes.iter();
    let indexes =
        indexes.map(|&(name, entries)| call.tuple(&[atoms::to_word(call.env, name), int(entries)]));
    let indexes = call.list(&indexes.collect::<Vec<_>>());
    Ok(call.tuple(&[plan, rows, indexes]))
}

/// [{Name, Position | Expression, [unique | each], Ready, Entries, Bytes}].
#[cold]
pub fn described(call: &Call<'_>, indexes: &[IndexInfo]) -> Word {
    let each = indexes.iter().map(|index| {
        let IndexDefinition {
            name,
            on,
            unique,
            each,
        } = &index.definition;
        let on = match on {
            IndexOn::Element(position) => call.int(*position as i64),
            IndexOn::Expression(expression) => decode::term(&call.heap, expression.as_ref()),
        };
        let mut options = Vec::new();
        options.extend(unique.then_some(atoms::UNIQUE.word()));
        options.extend(each.then_some(atoms::EACH.word()));
        call.tuple(&[
            atoms::to_word(call.env, *name),
            on,
            call.list(&options),
            boolean(index.ready),
            call.int(index.entries as i64),
            call.int(index.memory as i64),
        ])
    });
    call.list(&each.collect::<Vec<_>>())
}

/// The name of an index.
fn name(call: &Call<'_>, word: Word) -> Result<Atom, Raise> {
    match layout::is_atom(word) {
        true => Ok(atoms::from_word(call.env, word)),
        false => Err(BADARG),
    }
}

fn program(call: &Call<'_>, spec: Word) -> Result<Program, Raise> {
    match spec {
        layout::NIL => spec::nothing(),
        _ => spec::program(call, spec, None),
    }
}

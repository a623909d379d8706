//! Tables as Erlang sees them: how a table is found by its id, as which owner a process calls, and
//! how errors of the engine are raised.

mod ids;
pub mod owners;

use crate::call::{self, Call, Raise, BADARG};
use crate::layout;
use crate::sys::*;
use crate::terms::atoms;
use larder::host::{Budget, EngineTable, Error, Guard, Local, OwnerId};
use owners::ENGINE;
use std::sync::Arc;

pub use ids::{reference, term, TABLES};

/// The id of the calling process, as an owner of tables.
#[inline]
pub fn caller_id(call: &Call<'_>) -> OwnerId {
    owners::id(call.self_pid())
}

/// As `caller_id`, but evaluated only when the table checks access. A public table never does.
#[inline]
pub fn lazy_caller_id<'a>(call: &'a Call<'_>) -> impl FnOnce() -> OwnerId + 'a {
    || caller_id(call)
}

/// Runs `f` with the table of an id. This takes no lock and counts no reference: the reference term
/// keeps an unnamed table alive, and a pinned epoch keeps a named one.
#[inline]
pub fn with<R>(
    call: &Call<'_>,
    id: Word,
    f: impl FnOnce(&Arc<EngineTable>) -> Result<R, Raise>,
) -> Result<R, Raise> {
    let mut guard = None;
    f(table_of(call, id, &mut guard, larder::host::pin)?)
}

/// The table of an id. If it is named, the epoch is pinned while the guard lives.
#[inline(always)]
fn table_of<'t>(
    call: &'t Call<'_>,
    id: Word,
    guard: &'t mut Option<Guard>,
    pin: impl FnOnce() -> Guard,
) -> Result<&'t Arc<EngineTable>, Raise> {
    // References come first: they are more common than names.
    match TABLES.get(call, id) {
        Some(table) => Ok(&table.0),
        None if layout::is_atom(id) => ENGINE
            .named(atoms::from_word(call.env, id), guard.insert(pin()))
            .ok_or(Raise::Cause(atoms::ID)),
        // This includes references that are not those of tables.
        None => Err(Raise::Cause(atoms::TYPE)),
    }
}

/// As `with`, for the call's first argument, and also passes the thread's state for operations on
/// tables.
#[inline(always)]
pub fn with_local<R>(
    call: &Call<'_>,
    f: impl FnOnce(&Arc<EngineTable>, &mut Local) -> Result<R, Raise>,
) -> Result<R, Raise> {
    let id = call.args[0];
    larder::host::with_local(|local| {
        // The guard lives until `f` has returned, and so does the table.
        let mut guard = None;
        let table = table_of(call, id, &mut guard, || local.pin())?;
        f(table, local)
    })
}

/// The table of an id, with a counted reference.
pub fn get(call: &Call<'_>, id: Word) -> Result<Arc<EngineTable>, Raise> {
    with(call, id, |table| Ok(Arc::clone(table)))
}

/// The tables of a list of ids, in the order of the list. `check` is called with each table before
/// the next is looked up, so that the first faulty id is the one reported.
pub fn get_all(
    call: &Call<'_>,
    ids: Word,
    check: impl Fn(&Arc<EngineTable>) -> Result<(), Raise>,
) -> Result<Vec<Arc<EngineTable>>, Raise> {
    // An id that occurs twice gives the table twice.
    let mut tables = Vec::new();
    call::each(ids, |id| {
        let table = get(call, id)?;
        check(&table)?;
        tables.push(table);
        Ok(())
    })?;
    Ok(tables)
}

/// Converts the engine's result to this library's. Two errors are not raised but make the call
/// start again: if a list batch is in the way, after helping it for a slice; if the table's owner
/// has died, after its tables have been passed to their heirs.
#[inline]
pub fn reply_or_raise<R>(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    result: Result<R, Error>,
) -> Result<R, Raise> {
    result.map_err(|error| refused(call, table, &error))
}

/// What to raise for an error of the engine; see `reply_or_raise`.
#[cold]
pub fn refused(call: &Call<'_>, table: &Arc<EngineTable>, error: &Error) -> Raise {
    match error {
        // Help first, so that the call has a chance when it is repeated.
        Error::Busy => {
            table.help_batch(&mut Budget::slice());
            Raise::Again
        }
        Error::Long => Raise::Dirty,
        // The caller may be the heir of an owner that has just died.
        Error::Access | Error::NotOwner if owners::end_dead_owner(call.env, table) => Raise::Again,
        _ => call::raised(call, error),
    }
}

/// Moves a call to a dirty scheduler if it is `slow`, and on a normal one.
#[inline]
pub fn off_scheduler(call: &Call<'_>, slow: bool) -> Result<(), Raise> {
    match slow && call.is_on_scheduler() {
        true => Err(Raise::Dirty),
        false => Ok(()),
    }
}

/// Reads an integer of any size. One beyond the range of `i64` is read as the end of that range
/// which is nearest.
#[inline]
pub fn integer(call: &Call<'_>, word: Word) -> Option<i64> {
    layout::small(word).or_else(|| large_integer(call, word))
}

#[cold]
fn large_integer(call: &Call<'_>, word: Word) -> Option<i64> {
    // The emulator would end the node if it were asked for the type of a strange kind.
    if !layout::is_boxed(word) || layout::is_strange(word) {
        return None;
    }
    let mut value = 0;
    // SAFETY: the environment and the term are the running call's, and of a kind that the emulator
    // has a type for.
    unsafe {
        if enif_term_type(call.env, word) != term_type::INTEGER {
            return None;
        }
        if enif_get_int64(call.env, word, &mut value) != 0 {
            return Some(value);
        }
        Some(match enif_compare(word, enif_make_int64(call.env, 0)) < 0 {
            true => i64::MIN,
            false => i64::MAX,
        })
    }
}

/// Reads a natural number, such as a position. Anything else is a bad argument.
pub fn natural(word: Word) -> Result<usize, Raise> {
    layout::small(word)
        .and_then(|n| usize::try_from(n).ok())
        .ok_or(BADARG)
}

/// Reads a positive integer. Anything else is a bad argument.
#[inline]
pub fn positive(word: Word) -> Result<usize, Raise> {
    natural(word).and_then(|n| if n > 0 { Ok(n) } else { Err(BADARG) })
}

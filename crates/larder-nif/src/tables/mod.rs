//! Tables as Erlang sees them: which table an id leads to, in whose name a call is made, and what
//! becomes of what the engine refuses.

mod ids;
pub mod owners;

use crate::call::{self, Call, Raise, BADARG};
use crate::layout;
use crate::sys::*;
use crate::terms::atoms;
use larder::{Budget, Error, Local, OwnerId, Table};
use owners::ENGINE;
use std::sync::Arc;

pub use ids::{reference, term, TABLES};

/// The calling process, as an owner of tables.
#[inline]
pub fn who(call: &Call<'_>) -> OwnerId {
    owners::id(call.self_pid())
}

/// As `who`, worked out when the table asks: a public table doesn't.
#[inline]
pub fn asker<'a>(call: &'a Call<'_>) -> impl FnOnce() -> OwnerId + 'a {
    || who(call)
}

/// Runs `f` with the table that an id leads to. No lock is taken and no reference counted: the term
/// keeps the table, or an epoch does.
#[inline]
pub fn with<R>(
    call: &Call<'_>,
    id: Word,
    f: impl FnOnce(&Arc<Table>) -> Result<R, Raise>,
) -> Result<R, Raise> {
    if layout::is_atom(id) {
        let name = atoms::from_word(call.env, id);
        return ENGINE
            .with_named(name, f)
            .unwrap_or(Err(Raise::Cause(atoms::ID)));
    }
    match TABLES.get(call.env, id) {
        Some(table) => f(&table.0),
        // Also any other reference: it never was a table's.
        None => Err(Raise::Cause(atoms::TYPE)),
    }
}

/// As `with`, with what the thread keeps for its operations.
#[inline(always)]
pub fn with_local<R>(
    call: &Call<'_>,
    id: Word,
    f: impl FnOnce(&Arc<Table>, &mut Local) -> Result<R, Raise>,
) -> Result<R, Raise> {
    larder::with_local(|local| {
        let guard;
        let table = match TABLES.get(call.env, id) {
            Some(table) => &table.0,
            None if layout::is_atom(id) => {
                guard = local.pin();
                ENGINE
                    .named(atoms::from_word(call.env, id), &guard)
                    .ok_or(Raise::Cause(atoms::ID))?
            }
            // Also any other reference: it never was a table's.
            None => return Err(Raise::Cause(atoms::TYPE)),
        };
        f(table, local)
    })
}

/// The table that an id leads to, with a count of one's own.
pub fn get(call: &Call<'_>, id: Word) -> Result<Arc<Table>, Raise> {
    with(call, id, |table| Ok(Arc::clone(table)))
}

/// The tables that a list of ids leads to, in its order. `check` sees each before the next is
/// looked for.
pub fn get_all(
    call: &Call<'_>,
    ids: Word,
    check: impl Fn(&Arc<Table>) -> Result<(), Raise>,
) -> Result<Vec<Arc<Table>>, Raise> {
    let (mut rest, mut tables) = (ids, Vec::new());
    while let Some((id, tail)) = layout::cell(rest) {
        let table = get(call, id)?;
        check(&table)?;
        tables.push(table);
        rest = tail;
    }
    (rest == layout::NIL).then_some(tables).ok_or(BADARG)
}

/// The engine's answer as this library's. If a list batch stands in the way, a slice of it is done;
/// if an owner has died, its tables are passed on. Then the call begins again.
#[inline]
pub fn answer<R>(
    call: &Call<'_>,
    table: &Arc<Table>,
    result: Result<R, Error>,
) -> Result<R, Raise> {
    result.map_err(|error| refused(call, table, &error))
}

/// What the engine refused, as this library raises it; see `answer`.
#[cold]
pub fn refused(call: &Call<'_>, table: &Arc<Table>, error: &Error) -> Raise {
    match error {
        Error::Busy => {
            table.help_batch(&mut Budget::slice());
            Raise::Again
        }
        // The right may have been that of an heir who does not know yet.
        Error::Access | Error::NotOwner if owners::settle(call.env, table) => Raise::Again,
        _ => call::raised(call, error),
    }
}

/// A position or a slot; anything else is a bad argument.
pub fn natural(word: Word) -> Result<usize, Raise> {
    layout::small(word)
        .and_then(|n| usize::try_from(n).ok())
        .ok_or(BADARG)
}

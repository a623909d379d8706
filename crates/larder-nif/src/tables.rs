//! Table ids: an atom for a named table, a reference to a resource for others, and how either leads
//! to the table.
//!
//! The resource of a table is made once and kept beside it until the table dies, so that the same
//! table always gives equal references, also to those who have none any more (`all/0`) or only its
//! text (`binary_to_term/1`).

use crate::atoms;
use crate::call::{self, Call, Raise, BADARG};
use crate::layout;
use crate::owners::{self, ENGINE};
use crate::resource::{Held, Kind};
use crate::sys::*;
use larder::{Budget, Error, Local, OwnerId, Table};
use std::sync::Arc;

/// A table as a resource.
pub struct TableRef(Arc<Table>);

/// Tables.
pub static TABLES: Kind<TableRef> = Kind::new();

/// The reference to a table, whatever its id is.
pub fn reference(env: *mut Env, table: &Arc<Table>) -> Word {
    table.with_beside(|kept| {
        let held = kept.as_ref().and_then(|kept| kept.downcast_ref());
        if let Some(held) = held.map(|held: &Held<TableRef>| held.term(env)) {
            return held;
        }
        let held = TABLES.make(TableRef(Arc::clone(table)));
        let word = held.term(env);
        // That of a table which died meanwhile is not kept, or it would be for ever.
        if table.is_alive() {
            *kept = Some(Box::new(held));
        }
        word
    })
}

/// The id of a table.
pub fn term(env: *mut Env, table: &Arc<Table>) -> Word {
    if table.is_named() {
        atoms::to_word(env, table.name())
    } else {
        reference(env, table)
    }
}

/// Whose call it is.
#[inline]
pub fn who(call: &Call<'_>) -> OwnerId {
    owners::id(call.self_pid())
}

/// Whose call it is, for when somebody wants to know.
#[inline]
pub fn asker<'a>(call: &'a Call<'_>) -> impl FnOnce() -> OwnerId + 'a {
    || who(call)
}

/// Runs `f` with the table that an id leads to. Nothing is locked and nothing counted.
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

/// The engine's answer as this library's. What stands in the way is worked off for a slice, or seen
/// to, and the call begins again.
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
            table.help(&mut Budget::slice());
            Raise::Again
        }
        // The right may have been that of an heir who does not know yet.
        Error::Access | Error::NotOwner if owners::settle(call.env, table) => Raise::Again,
        _ => Raise::Cause(call::cause(error)),
    }
}

/// A position or a slot; anything else is a bad argument.
pub fn natural(word: Word) -> Result<usize, Raise> {
    layout::small(word)
        .and_then(|n| usize::try_from(n).ok())
        .ok_or(BADARG)
}

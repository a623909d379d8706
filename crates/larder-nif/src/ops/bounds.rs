//! The time that objects of bounded tables live, in milliseconds, or `infinity`.

use super::options::time;
use super::single::{at_key, with_object};
use crate::call::{boolean, Call, Raise, Reply};
use crate::sys::Word;
use crate::tables::{self, lazy_caller_id};
use crate::terms::atoms;
use larder::host::{EngineTable, Local};
use larder::TimeLeft;
use std::sync::Arc;

/// insert_with(Table, Tuple, Ttl) -> true.
pub fn insert_with(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        // The time is read first, so that an invalid one is reported for any object.
        let ttl = time(call, call.args[2])?;
        insert_with_to(call, table, local, call.args[1], ttl)
    })?;
    Ok(atoms::TRUE.word())
}

/// `insert_with` of an object into a table.
pub fn insert_with_to(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    object: Word,
    ttl: Option<u64>,
) -> Result<(), Raise> {
    with_object(call, table, local, object, |local, object| {
        let inserted = table.insert_with_in(local, lazy_caller_id(call), object, ttl);
        inserted.map(|()| (false, ()))
    })
}

/// expire(Table, Key, Ttl) -> boolean().
pub fn expire(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| expire_of(call, table, local)).map(boolean)
}

/// `expire` of a call's key in a table.
pub fn expire_of(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
) -> Result<bool, Raise> {
    let ttl = time(call, call.args[2])?;
    at_key(call, table, |key| {
        table.expire_in(local, lazy_caller_id(call), key, ttl)
    })
}

/// ttl(Table, Key) -> non_neg_integer() | infinity | none.
pub fn ttl(call: &Call<'_>) -> Reply {
    let left = tables::with_local(call, |table, _| {
        at_key(call, table, |key| {
            table.time_left(lazy_caller_id(call), key)
        })
    })?;
    Ok(match left {
        TimeLeft::Absent => atoms::NONE.word(),
        TimeLeft::Unlimited => atoms::INFINITY.word(),
        TimeLeft::Ms(ms) => call.int(ms as i64),
    })
}

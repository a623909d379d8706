//! Ranks of the objects of an ordered_set. An error of the table takes precedence over one of
//! another argument.
//!
//! A function that must first count many leaves is `Busy` after a slice of them, and is called
//! again after other processes have run.

use super::single::{at_key, report, spend_bytes, with_key};
use crate::call::{Call, Raise, Reply, BADARG};
use crate::sys::*;
use crate::tables::{self, caller_id, lazy_caller_id, reply_or_raise};
use crate::terms::{atoms, decode};

/// rank(Table, Key) -> Rank | none.
pub fn rank(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        let rank = at_key(call, table, |key| {
            table.rank_in(local, lazy_caller_id(call), key)
        })?;
        report(call, local);
        Ok(rank.map_or(atoms::NONE.word(), |rank| call.int(rank as i64)))
    })
}

/// nth(Table, N) -> Object | none.
pub fn nth(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        // An error of the table takes precedence over a bad number.
        reply_or_raise(call, table, table.check_read(caller_id(call)))?;
        let n = place(call, call.args[1])?;
        tables::off_scheduler(call, table.counts_slowly())?;
        let (mut object, mut bytes) = (atoms::NONE.word(), 0);
        let visit = |stored: larder::host::Stored<'_>| {
            bytes = stored.size();
            object = decode::object(&call.heap, &stored.view());
        };
        reply_or_raise(
            call,
            table,
            table.nth_in(local, lazy_caller_id(call), n, visit),
        )?;
        report(call, local);
        spend_bytes(call, local, bytes);
        Ok(object)
    })
}

/// count_range(Table, Low, High) -> Count.
pub fn count_range(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        // Both keys are encoded to the stack, one inside the other.
        let count = with_key(call, table, call.args[1], |low| {
            with_key(call, table, call.args[2], |high| {
                let counted = table.count_range_in(local, lazy_caller_id(call), low, high);
                reply_or_raise(call, table, counted)
            })
        })?;
        report(call, local);
        Ok(call.int(count as i64))
    })
}

/// A place in the order, counted from the first object from 1 on, or from the last from -1 on.
pub fn place(call: &Call<'_>, word: Word) -> Result<i64, Raise> {
    tables::integer(call, word).ok_or(BADARG)
}

/// A number of objects.
pub fn count(call: &Call<'_>, word: Word) -> Result<usize, Raise> {
    usize::try_from(place(call, word)?).map_err(|_| BADARG)
}

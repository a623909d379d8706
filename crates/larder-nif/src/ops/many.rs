//! Several keys in one call: their lookups overlap.

use crate::call::{Call, Raise, Reply, BADARG};
use crate::encode::{self, list_cell};
use crate::layout;
use crate::sys::*;
use crate::tables::{self, answer, who};
use crate::{decode, entry};
use larder::Table;
use larder_term::{Mode, TermRef};
use std::sync::Arc;

/// Keys a slice.
const SLICE: usize = 500;

/// The index keys of the first of a list, end to end.
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    rest: Word,
}

impl Keys {
    fn take(call: &Call<'_>, table: &Table, list: Word) -> Result<Keys, Raise> {
        let mut keys = Keys {
            bytes: Vec::new(),
            ends: Vec::new(),
            rest: list,
        };
        let mut term = Vec::new();
        while keys.ends.len() < SLICE {
            let Some((key, tail)) = list_cell(call.env, keys.rest) else {
                break;
            };
            term.clear();
            encode::to_bytes(call.env, key, Mode::Inline, &mut term).map_err(|_| BADARG)?;
            // SAFETY: the encoder wrote one whole term in inline mode, without handles.
            table.encode_key(unsafe { TermRef::trusted(&term) }, &mut keys.bytes);
            keys.ends.push(keys.bytes.len());
            keys.rest = tail;
        }
        if keys.rest != layout::NIL && list_cell(call.env, keys.rest).is_none() {
            return Err(BADARG);
        }
        Ok(keys)
    }

    fn slices(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.bytes[start..end])
            .collect()
    }
}

/// lookup_many(Table, Keys, Acc) -> the objects of each key, as a list of lists in the order of the keys, reversed onto Acc.
pub fn lookup_many(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    answer(call, &table, table.check_read(who(call)))?;
    let keys = Keys::take(call, &table, call.args[1])?;
    let found = lists(call, &table, &keys)?;
    // SAFETY: the environment is the running call's, and so are all terms.
    let done = found.iter().fold(call.args[2], |done, objects| unsafe {
        enif_make_list_cell(call.env, call.list(objects), done)
    });
    if keys.rest == layout::NIL {
        call.spent(4 * keys.ends.len() as u64);
        return Ok(done);
    }
    let id = tables::reference(call.env, &table);
    Ok(call.later(entry::lookup_many, &[id, keys.rest, done]))
}

fn lists(call: &Call<'_>, table: &Arc<Table>, keys: &Keys) -> Result<Vec<Vec<Word>>, Raise> {
    let mut found = vec![Vec::new(); keys.ends.len()];
    let result = table.lookup_many(who(call), &keys.slices(), &mut |i, object| {
        found[i].push(decode::object(call.env, object))
    });
    answer(call, table, result)?;
    Ok(found)
}

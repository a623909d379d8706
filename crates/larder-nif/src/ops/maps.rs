//! `update_map`.

use super::single::{spend, spend_bytes, with_key};
use super::trees::Trees;
use super::update::position;
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::layout;
use crate::sys::*;
use crate::tables::{self, caller_id, lazy_caller_id, reply_or_raise};
use crate::terms::atoms;
use crate::terms::encode;
use larder::host::{Error, MapOp};
use larder_term::TermBuf;
use smallvec::SmallVec;

/// The places of changes: positions, and whether a value follows the key.
type Places = SmallVec<[(usize, bool); 4]>;

/// update_map(Table, Key, [{Pos, MapKey, Value} | {Pos, MapKey}]) -> boolean().
pub fn update_map(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        reply_or_raise(call, table, table.check_write(caller_id(call)))?;
        // 1. Encode keys and values, as one tuple of the engine.
        let (mut terms, mut places) = (TermBuf::default(), Places::new());
        // Positions are read apart from the terms: a malformed list fails before anything is
        // encoded.
        let count = changes(call.args[2], &mut places).ok_or(BADARG)?;
        terms.encode(|out| {
            out.begin_tuple(count);
            let ops = layout::elements(call.args[2]).filter_map(layout::tuple);
            let mut terms = ops.flat_map(|op| op.iter().skip(1));
            terms.try_for_each(|&word| encode::term(call.env, word, out))
        })?;
        let terms = terms.term().ok_or(BADARG)?;
        let bytes = terms.bytes().len();
        let mut terms = terms.as_tuple().ok_or(BADARG)?.iter();
        // A change without a value removes the key.
        let ops = places.iter().map(|&(pos, has_value)| {
            Some(MapOp {
                pos,
                key: terms.next()?,
                value: if has_value { Some(terms.next()?) } else { None },
            })
        });
        let ops: SmallVec<[MapOp<'_>; 4]> = ops.collect::<Option<_>>().ok_or(BADARG)?;
        // 2. The engine changes the maps, all or none.
        let mut host = Trees::new(call);
        let done = with_key(call, table, call.args[1], |key| {
            match table.update_map_in(local, lazy_caller_id(call), key, &ops, &mut host) {
                // `ets` has no such function. The error is that of `update_element` on a bag.
                Err(Error::TableType) => Err(Raise::Cause(atoms::NONE)),
                done => reply_or_raise(call, table, done),
            }
        });
        spend(call, ops.len());
        spend_bytes(call, local, bytes + host.finish());
        done.map(boolean)
    })
}

/// Reads positions. Returns the number of keys and values. `None` if the list is malformed.
fn changes(list: Word, places: &mut Places) -> Option<usize> {
    let (mut ops, mut count) = (layout::elements(list), 0);
    for op in ops.by_ref() {
        let parts = layout::tuple(op)?;
        // Without a value the key is removed.
        let has_value = match parts.len() {
            2 => false,
            3 => true,
            _ => return None,
        };
        places.push((position(parts[0]).ok()?, has_value));
        count += parts.len() - 1;
    }
    (ops.rest == layout::NIL).then_some(count)
}

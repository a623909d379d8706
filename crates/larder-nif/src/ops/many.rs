//! Several keys in one call: their waits for memory overlap.
//!
//! A slice encodes the next keys of the list, has the engine go through them, and conses what each key gave onto what was found before. What
//! was found is back to front; a list that is done within its first slice comes in order.

use super::single::encode_key;
use crate::call::{Call, Entry, Raise, Reply, BADARG};
use crate::heap::Heap;
use crate::layout::{self, NIL};
use crate::quick::{place, Bytes};
use crate::sys::*;
use crate::tables::{self, answer, asker};
use crate::{atoms, decode, entry};
use larder::{KeyList, Local, Stored, Table};
use std::sync::Arc;

/// Keys a slice.
const KEYS: usize = 1000;
/// Bytes of keys a slice, if there is one key at least.
const BYTES: usize = 64 << 10;
/// Bytes of found objects after which a slice ends.
const FOUND: usize = 128 << 10;
/// Bytes of found objects that are one unit of the 2,000 that the emulator gives a slice.
const UNIT: usize = 256;

/// Puts the first of a list in `words` and their index keys in `keys`; gives the rest of the list.
fn gather(
    call: &Call<'_>,
    table: &Table,
    keys: &mut KeyList,
    words: &mut Vec<Word>,
) -> Result<Word, Raise> {
    let form = table.key_form();
    let (mut term, mut key) = (Vec::new(), Vec::new());
    let mut rest = call.args[1];
    while keys.len() < KEYS && keys.bytes() < BYTES {
        let Some((head, tail)) = layout::cell(rest) else {
            break;
        };
        let mut place = place();
        let mut small = Bytes::at(&mut place);
        if small.key(call.env, head, form).is_some() {
            keys.push(&small);
        } else {
            term.clear();
            key.clear();
            encode_key(call, table, head, &mut term, &mut key)?;
            keys.push(&key);
        }
        words.push(head);
        rest = tail;
    }
    let is_list = rest == NIL || layout::cell(rest).is_some();
    is_list.then_some(rest).ok_or(BADARG)
}

/// What was found so far: a list of lists, and the list of the key that is being looked at.
struct Found<'c> {
    heap: &'c Heap,
    /// The keys of the slice.
    asked: Vec<Word>,
    /// The lists of the slice's keys that are done.
    lists: Vec<Word>,
    objects: Vec<Word>,
    bytes: usize,
}

impl<'c> Found<'c> {
    fn new(call: &'c Call<'_>, asked: Vec<Word>) -> Self {
        Found {
            heap: &call.heap,
            lists: Vec::with_capacity(asked.len()),
            asked,
            objects: Vec::new(),
            bytes: 0,
        }
    }

    /// An object of the current key, or the key's end; false when the slice should end.
    #[inline]
    fn see(&mut self, i: usize, object: Option<Stored<'_>>) -> bool {
        match object {
            Some(object) => {
                self.bytes += object.size();
                let word = decode::stored(self.heap, self.asked[i], object);
                self.objects.push(word);
            }
            None => {
                let list = self.heap.list(&self.objects, NIL);
                self.objects.clear();
                self.lists.push(list);
            }
        }
        self.bytes < FOUND
    }

    fn units(&self) -> u64 {
        (2 * self.lists.len() + self.bytes / UNIT) as u64
    }
}

/// lookup_many(Table, Keys, Done) -> the objects of each key, as a list of lists: in the order of the keys if Done is `[]` and it took one slice;
/// else `{more, List}` with the list reversed onto Done.
pub fn lookup_many(call: &Call<'_>) -> Reply {
    let again = entry::lookup_many;
    many(call, again, again, |table, local, keys, found| {
        table.lookup_many_in(local, asker(call), keys, |i, object| found.see(i, object))
    })
}

/// take_many(Table, Keys, Done): as lookup_many, but the objects go. Each key by itself is atomic.
pub fn take_many(call: &Call<'_>) -> Reply {
    let (again, more) = (entry::take_many, entry::take_more);
    many(call, again, more, |table, local, keys, found| {
        table.take_many_in(local, asker(call), keys, |i, object| found.see(i, object))
    })
}

/// The slices of `take_many` after one that has taken something: in the owner's name, as the caller had the right then. What was taken is never lost to a
/// right that is gone.
pub fn take_more(call: &Call<'_>) -> Reply {
    let more = entry::take_more;
    many(call, more, more, |table, local, keys, found| {
        table.take_many_in(local, table.owner(), keys, |i, object| found.see(i, object))
    })
}

/// One slice. It is followed by one of `again` if nothing was found yet, else of `more`.
fn many(
    call: &Call<'_>,
    again: Entry,
    more: Entry,
    go: impl Fn(&Arc<Table>, &mut Local, &KeyList, &mut Found) -> Result<(), larder::Error>,
) -> Reply {
    tables::with_local(call, call.args[0], |table, local| {
        let mut keys = std::mem::take(&mut local.keys);
        keys.clear();
        let mut asked = Vec::new();
        let rest = gather(call, table, &mut keys, &mut asked);
        let result = rest.and_then(|rest| {
            let mut found = Found::new(call, asked);
            let outcome = answer(call, table, go(table, local, &keys, &mut found));
            let whole = found.lists.len() == keys.len();
            match outcome {
                Ok(()) | Err(Raise::Again) if !whole || rest != NIL => {
                    // What was found for the first keys stays found.
                    let rest = found.lists.iter().try_fold(call.args[1], |rest, _| {
                        layout::cell(rest).map(|(_, tail)| tail)
                    });
                    let id = tables::reference(call.env, table);
                    let args = [id, rest.ok_or(BADARG)?, done(call, &found)];
                    let next = if found.lists.is_empty() { again } else { more };
                    Ok(call.later(next, &args))
                }
                other => other.map(|()| finished(call, &found)),
            }
        });
        local.keys = keys;
        result
    })
}

/// What was found, onto what was found before.
fn done(call: &Call<'_>, found: &Found) -> Word {
    // SAFETY: all terms are of the running call's environment.
    found.lists.iter().fold(call.args[2], |done, &list| unsafe {
        enif_make_list_cell(call.env, list, done)
    })
}

fn finished(call: &Call<'_>, found: &Found) -> Word {
    call.spent(found.units());
    if call.args[2] == NIL {
        return call.list(&found.lists);
    }
    call.tuple(&[atoms::MORE.word(), done(call, found)])
}

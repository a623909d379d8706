//! Batches of keys: several keys in one call, whose waits for memory overlap.
//!
//! A slice encodes the next keys of the list, has the engine go through them, and puts what each
//! key gave behind what was found before. A list that is done within its first slice is the answer;
//! what other slices find is put onto what was found before, back to front.

use super::single::with_key;
use crate::call::{Call, Native, Raise, Reply, BADARG};
use crate::entry;
use crate::heap::ListBuilder;
use crate::layout::{self, NIL};
use crate::sys::*;
use crate::tables::{self, answer, asker};
use crate::terms::{atoms, decode};
use larder::{KeyList, Local, Stored, Table, TOGETHER};
use smallvec::SmallVec;
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
    list: Word,
    keys: &mut KeyList,
    words: &mut SmallVec<[Word; TOGETHER]>,
) -> Result<Word, Raise> {
    let mut rest = list;
    while keys.len() < KEYS && keys.bytes() < BYTES {
        let Some((head, tail)) = layout::cell(rest) else {
            break;
        };
        with_key(call, table, head, |key| {
            keys.push(key);
            Ok(())
        })?;
        words.push(head);
        rest = tail;
    }
    let is_list = rest == NIL || layout::cell(rest).is_some();
    is_list.then_some(rest).ok_or(BADARG)
}

/// What was found so far: a list of lists, and the list of the key that is being looked at.
struct FoundLists<'c> {
    /// The lists of the slice's keys that are done.
    lists: ListBuilder<'c>,
    objects: ListBuilder<'c>,
    bytes: usize,
}

impl<'c> FoundLists<'c> {
    fn new(call: &'c Call<'_>) -> Self {
        FoundLists {
            lists: ListBuilder::new(&call.heap),
            objects: ListBuilder::new(&call.heap),
            bytes: 0,
        }
    }

    /// An object under the key that is `asked`, or the key's end; false when the slice should end.
    #[inline]
    fn see(&mut self, asked: Word, object: Option<Stored<'_>>) -> bool {
        let heap = self.lists.heap();
        match object {
            Some(object) => {
                self.bytes += object.size();
                decode::stored(heap, asked, object, self.objects.next());
            }
            None => {
                let done = std::mem::replace(&mut self.objects, ListBuilder::new(heap));
                self.lists.next().fill(done.list());
            }
        }
        self.bytes < FOUND
    }

    fn units(&self) -> u64 {
        (2 * self.lists.len() + self.bytes / UNIT) as u64
    }
}

/// lookup_many(Table, Keys, Done) -> the objects of each key, as a list of lists: in the order of
/// the keys if Done is `[]` and it took one slice; else `{more, List}` with the list reversed onto
/// Done.
pub fn lookup_many(call: &Call<'_>) -> Reply {
    let again = entry::lookup_many;
    slice(call, again, again, |table, local, at, see| {
        table.lookup_many_in(local, asker(call), at, see)
    })
}

/// What is behind so many cells of a list.
fn behind_cells(list: Word, count: usize) -> Option<Word> {
    (0..count).try_fold(list, |rest, _| layout::cell(rest).map(|(_, tail)| tail))
}

/// take_many(Table, Keys, Done): as lookup_many, but the objects go. Each key by itself is atomic.
pub fn take_many(call: &Call<'_>) -> Reply {
    let (again, more) = (entry::take_many, entry::take_more);
    slice(call, again, more, |table, local, keys, see| {
        table.take_many_in(local, asker(call), keys, see)
    })
}

/// The slices of `take_many` after one that has taken something: in the owner's name, as the caller
/// had the right then. What was taken is never lost to a right that is gone.
pub fn take_more(call: &Call<'_>) -> Reply {
    let more = entry::take_more;
    slice(call, more, more, |table, local, keys, see| {
        table.take_many_in(local, table.owner(), keys, see)
    })
}

/// What a slice calls with each object, by the number of its key, and with none at the key's end;
/// it says whether to go on.
type See<'s> = dyn FnMut(usize, Option<Stored<'_>>) -> bool + 's;

/// One slice. It is followed by one of `again` if nothing was found yet, else of `more`.
fn slice(
    call: &Call<'_>,
    again: Native,
    more: Native,
    go: impl Fn(&Arc<Table>, &mut Local, &KeyList, &mut See<'_>) -> Result<(), larder::Error>,
) -> Reply {
    tables::with_local(call, call.args[0], |table, local| {
        let mut found = FoundLists::new(call);
        // The thread's own list of keys is used, so that nothing is allocated.
        let mut keys = std::mem::take(&mut local.keys);
        keys.clear();
        let mut asked = SmallVec::new();
        let rest = gather(call, table, call.args[1], &mut keys, &mut asked);
        // 1. The slice's keys are encoded. 2. The engine goes through them. 3. What is left is
        // another slice's.
        let result = rest.and_then(|rest| {
            let mut see = |i: usize, object: Option<Stored<'_>>| found.see(asked[i], object);
            let outcome = answer(call, table, go(table, local, &keys, &mut see));
            // A slice may end between two keys: those that are done are those whose list is.
            let whole = found.lists.len() == keys.len();
            match outcome {
                Ok(()) | Err(Raise::Again) if !whole || rest != NIL => {
                    // What was found for the first keys stays found.
                    let rest = behind_cells(call.args[1], found.lists.len()).ok_or(BADARG)?;
                    let id = tables::reference(call.env, table);
                    let args = [id, rest, reversed(call, &found)];
                    let next = if found.lists.len() == 0 { again } else { more };
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
fn reversed(call: &Call<'_>, found: &FoundLists) -> Word {
    let (mut done, mut rest) = (call.args[2], found.lists.list());
    while let Some((list, tail)) = layout::cell(rest) {
        // SAFETY: all terms are of the running call's environment.
        done = unsafe { enif_make_list_cell(call.env, list, done) };
        rest = tail;
    }
    done
}

fn finished(call: &Call<'_>, found: &FoundLists) -> Word {
    call.spent(found.units());
    if call.args[2] == NIL {
        return found.lists.list();
    }
    call.tuple(&[atoms::MORE.word(), reversed(call, found)])
}

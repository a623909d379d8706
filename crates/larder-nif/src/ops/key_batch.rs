//! Batches of keys: several keys in one call, whose cache misses overlap.
//!
//! A slice encodes the next keys of the list and passes them to the engine. It adds the objects of
//! each key to the results so far. If the list is done in the first slice, its result is in order.
//! The results of further slices are put in front of the earlier ones, in reverse order.

use super::select;
use super::single::with_key;
use crate::call::{Call, Native, Raise, Reply, BADARG};
use crate::entry;
use crate::heap::ListBuilder;
use crate::layout::{self, NIL};
use crate::sys::*;
use crate::tables::{self, lazy_caller_id, reply_or_raise};
use crate::terms::{atoms, decode};
use larder::host::{EngineTable, Error, KeyList, Local, OwnerId, Stored, MAX_KEYS_PER_LOOKUP};
use smallvec::SmallVec;
use std::sync::Arc;

/// The greatest number of keys in a slice.
const KEYS: usize = 1000;
/// The greatest size of the keys in a slice, in bytes. A single key may be longer.
const BYTES: usize = 64 << 10;
/// The size of found objects, in bytes, after which a slice ends.
const FOUND: usize = 128 << 10;
/// The size of found objects, in bytes, that counts as one of the 2,000 units of a time slice.
const UNIT: usize = 256;

/// Puts the first terms of a list into `words`, and their index keys into `keys`. Returns the rest
/// of the list.
fn gather(
    call: &Call<'_>,
    table: &EngineTable,
    list: Word,
    keys: &mut KeyList,
    words: &mut SmallVec<[Word; MAX_KEYS_PER_LOOKUP]>,
) -> Result<Word, Raise> {
    let mut rest = list;
    // A slice is limited by the number of keys, and by their bytes, as keys may be long.
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
    // An improper list fails here.
    let is_list = rest == NIL || layout::cell(rest).is_some();
    is_list.then_some(rest).ok_or(BADARG)
}

/// The results so far: a list of lists, and the list of the current key.
struct FoundLists<'c> {
    /// The lists of those keys of the slice that are done.
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

    /// Adds an object under the key `caller_key`, or ends the list of that key. Returns `false` if
    /// the slice should end.
    #[inline]
    fn add(&mut self, caller_key: Word, object: Option<Stored<'_>>) -> bool {
        let heap = self.lists.heap();
        match object {
            Some(object) => {
                self.bytes += object.size();
                decode::stored(heap, caller_key, object, self.objects.next());
                self.bytes += heap.out_of_line.take();
            }
            None => {
                // The objects of one key are a list of their own, in front of which the next key's
                // is begun.
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

/// lookup_many(Table, Keys, Done) -> the objects of each key, as a list of lists in the order of
/// the keys, if Done is `[]` and one slice was sufficient. Otherwise `{more, List}`, with the lists
/// in reverse order in front of Done.
pub fn lookup_many(call: &Call<'_>) -> Reply {
    let (again, more) = (entry::lookup_many, entry::lookup_more);
    slice(call, again, more, |table, local, at, visit| {
        table.lookup_many_in(local, lazy_caller_id(call), at, visit)
    })
}

/// Runs a slice of `lookup_many` after one that has done a key. It acts in the owner's name, since
/// the caller had the right to read then.
pub fn lookup_more(call: &Call<'_>) -> Reply {
    let more = entry::lookup_more;
    slice(call, more, more, |table, local, keys, visit| {
        in_owners_name(table, |owner| {
            table.lookup_many_in(local, owner, keys, &mut *visit)
        })
    })
}

/// Calls `f` with the owner of the table, who has all rights. If the table goes to another owner at
/// this moment, `f` is refused before it has done anything, and is called again.
fn in_owners_name(
    table: &EngineTable,
    mut f: impl FnMut(OwnerId) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut owner = table.owner();
    loop {
        let done = f(owner);
        let before = std::mem::replace(&mut owner, table.owner());
        if !matches!(done, Err(Error::Access)) || owner == before {
            return done;
        }
    }
}

/// The rest of a list after this number of cells.
fn after_cells(list: Word, count: usize) -> Option<Word> {
    (0..count).try_fold(list, |rest, _| layout::cell(rest).map(|(_, tail)| tail))
}

/// take_many(Table, Keys, Done): like lookup_many, but deletes the objects. Atomic for each key.
pub fn take_many(call: &Call<'_>) -> Reply {
    let (again, more) = (entry::take_many, entry::take_more);
    slice(call, again, more, |table, local, keys, visit| {
        table.take_many_in(local, lazy_caller_id(call), keys, visit)
    })
}

/// Runs a slice of `take_many` after one that has deleted something. It acts in the owner's name,
/// since the caller had the right to write then. So objects that were deleted are always returned,
/// even if the caller has lost the right since.
pub fn take_more(call: &Call<'_>) -> Reply {
    let more = entry::take_more;
    slice(call, more, more, |table, local, keys, visit| {
        in_owners_name(table, |owner| {
            table.take_many_in(local, owner, keys, &mut *visit)
        })
    })
}

/// The function that a slice calls with the number of a key and each of its objects, and with
/// `None` at the end of each key. It returns whether to continue.
type VisitKeyObject<'s> = dyn FnMut(usize, Option<Stored<'_>>) -> bool + 's;

/// Runs a slice. It is followed by a slice of `again` if nothing was found yet, and of `more`
/// otherwise.
fn slice(
    call: &Call<'_>,
    again: Native,
    more: Native,
    go: impl Fn(
        &Arc<EngineTable>,
        &mut Local,
        &KeyList,
        &mut VisitKeyObject<'_>,
    ) -> Result<(), larder::Error>,
) -> Reply {
    tables::with_local(call, |table, local| {
        let mut found = FoundLists::new(call);
        // Use the thread's own list of keys, so that nothing is allocated.
        let mut keys = std::mem::take(&mut local.keys);
        keys.clear();
        let mut caller_keys = SmallVec::new();
        let rest = gather(call, table, call.args[1], &mut keys, &mut caller_keys);
        // 1. Encode the keys of the slice. 2. Pass them to the engine. 3. Schedule another slice
        //    for the rest.
        let result = rest.and_then(|rest| {
            let mut visit =
                |i: usize, object: Option<Stored<'_>>| found.add(caller_keys[i], object);
            let outcome = reply_or_raise(call, table, go(table, local, &keys, &mut visit));
            // A slice may end between two keys. The keys that are done are those whose lists are
            // complete.
            let whole = found.lists.len() == keys.len();
            match outcome {
                Ok(()) | Err(Raise::Again) if !whole || rest != NIL => {
                    // Keep the results for the first keys.
                    let rest = after_cells(call.args[1], found.lists.len()).ok_or(BADARG)?;
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

/// Puts the results in front of the earlier ones.
fn reversed(call: &Call<'_>, found: &FoundLists) -> Word {
    select::reversed(call, found.lists.list(), call.args[2])
}

fn finished(call: &Call<'_>, found: &FoundLists) -> Word {
    call.spent(found.units());
    if call.args[2] == NIL {
        return found.lists.list();
    }
    call.tuple(&[atoms::MORE.word(), reversed(call, found)])
}

//! Traversals by key, folds, and slots.

use super::select;
use super::single::{report, spend, spend_bytes, with_key, ResultTerms};
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::heap::{Heap, ListBuilder};
use crate::layout;
use crate::sys::*;
use crate::tables::{self, caller_id, lazy_caller_id, natural, reply_or_raise};
use crate::terms::atoms;
use crate::terms::decode;
use larder::host::{
    Direction, EngineTable, Error, FoldChunk, Local, ShowObject, Slot, Stamp, Stored, StoredKey,
};
use std::sync::Arc;

/// Steps from the edge of a table, or from the call's key, to the next key. `go` takes the step,
/// given the key.
#[inline]
fn step(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    from_key: bool,
    mut go: impl FnMut(&mut Local, Option<&[u8]>) -> Result<bool, Error>,
) -> Result<bool, Raise> {
    let mut go = |local: &mut Local, key: Option<&[u8]>| {
        pausing_on_scheduler(call, local, |local| go(local, key))
    };
    // Without a key, nothing has to be encoded.
    if !from_key {
        let stepped = go(local, None);
        return reply_or_raise(call, table, stepped);
    }
    check_start(call, table)?;
    with_key(call, table, call.args[1], |key| {
        match go(local, Some(key)) {
            // If the traversal can't continue from the key, the error is a bad argument without a
            // cause.
            Err(Error::BadKey) => Err(BADARG),
            other => reply_or_raise(call, table, other),
        }
    })
}

/// Runs `f`, which searches for a row. It may have to leave out any number of rows, or to pass any
/// number of empty leaves, before it finds one. On a normal scheduler, it returns `Long` in that
/// case, so that the call is repeated on a dirty one. There it searches to the end.
#[inline]
fn pausing_on_scheduler<R>(
    call: &Call<'_>,
    local: &mut Local,
    mut f: impl FnMut(&mut Local) -> Result<R, Error>,
) -> Result<R, Error> {
    local.is_impatient = true;
    let result = f(local);
    local.is_impatient = false;
    match result {
        Err(Error::Long) if !call.is_on_scheduler() => f(local),
        other => other,
    }
}

/// Checks the start of a step in an ordered_set: any key except '$end_of_table'.
#[inline]
fn check_start(call: &Call<'_>, table: &Arc<EngineTable>) -> Result<(), Raise> {
    // It marks the end, so a traversal doesn't continue from it.
    if call.args[1] == atoms::END_OF_TABLE.word() && table.kind().is_ordered() {
        reply_or_raise(call, table, table.check_read(caller_id(call)))?;
        return Err(BADARG);
    }
    Ok(())
}

/// Returns the first key, the last one, or the one next to the call's key.
#[inline(always)]
fn to_key(call: &Call<'_>, from_key: bool, direction: Direction) -> Reply {
    tables::with_local(call, |table, local| {
        // If there is no next key, nobody calls `visit`.
        let mut found = atoms::END_OF_TABLE.word();
        let mut visit = |key: StoredKey<'_>| {
            found = decode::found_key(&call.heap, key);
            // A traversal doesn't continue from '$end_of_table', even if that is a key.
            let known = layout::is_immediate(found) && found != atoms::END_OF_TABLE.word();
            if known {
                found as u64
            } else {
                0
            }
        };
        // A key that is an immediate is recognized by its word, which is always the same.
        let number = match from_key && layout::is_immediate(call.args[1]) {
            true => call.args[1] as u64,
            false => 0,
        };
        if number != 0 && local.has_shown(number) {
            let stepped = table.step_on(local, lazy_caller_id(call), number, direction, &mut visit);
            if stepped.is_some() {
                return Ok(found);
            }
        }
        step(call, table, local, from_key, |local, key| {
            let who = lazy_caller_id(call);
            table.step_to_key(local, who, key, number, direction, &mut visit)
        })?;
        Ok(found)
    })
}

fn to_objects(call: &Call<'_>, from_key: bool, direction: Direction) -> Reply {
    let mut found = KeyAndObjects::new(call);
    tables::with_local(call, |table, local| {
        step(call, table, local, from_key, |local, key| {
            let visit = |stored: Stored<'_>| found.add(call, stored);
            table.step_to_objects(local, lazy_caller_id(call), key, direction, visit)
        })?;
        spend(call, found.objects.words().len());
        spend_bytes(call, local, found.bytes);
        Ok(())
    })?;
    Ok(found.pair(call))
}

/// first(Table) -> Key | '$end_of_table'.
pub fn first(call: &Call<'_>) -> Reply {
    to_key(call, false, Direction::Forward)
}

/// last(Table) -> Key | '$end_of_table'.
pub fn last(call: &Call<'_>) -> Reply {
    to_key(call, false, Direction::Backward)
}

/// next(Table, Key) -> Key | '$end_of_table'.
pub fn next(call: &Call<'_>) -> Reply {
    to_key(call, true, Direction::Forward)
}

/// prev(Table, Key) -> Key | '$end_of_table'.
pub fn prev(call: &Call<'_>) -> Reply {
    to_key(call, true, Direction::Backward)
}

/// first_lookup(Table) -> {Key, [Object]} | '$end_of_table'.
pub fn first_lookup(call: &Call<'_>) -> Reply {
    to_objects(call, false, Direction::Forward)
}

/// last_lookup(Table) -> {Key, [Object]} | '$end_of_table'.
pub fn last_lookup(call: &Call<'_>) -> Reply {
    to_objects(call, false, Direction::Backward)
}

/// next_lookup(Table, Key) -> {Key, [Object]} | '$end_of_table'.
pub fn next_lookup(call: &Call<'_>) -> Reply {
    to_objects(call, true, Direction::Forward)
}

/// prev_lookup(Table, Key) -> {Key, [Object]} | '$end_of_table'.
pub fn prev_lookup(call: &Call<'_>) -> Reply {
    to_objects(call, true, Direction::Backward)
}

/// A key and its objects.
struct KeyAndObjects<'c> {
    key: Word,
    objects: ResultTerms<'c>,
    bytes: usize,
}

impl<'c> KeyAndObjects<'c> {
    fn new(call: &'c Call<'_>) -> Self {
        KeyAndObjects {
            key: atoms::END_OF_TABLE.word(),
            objects: ResultTerms::new(call),
            bytes: 0,
        }
    }

    fn add(&mut self, call: &Call<'_>, stored: Stored<'_>) {
        self.bytes += stored.size();
        let object = &stored.view();
        // The first object has the key. It is the same in all others.
        if self.objects.words().is_empty() {
            self.key = decode::term(&call.heap, object.key());
        }
        self.objects.object(object);
    }

    fn pair(&self, call: &Call<'_>) -> Word {
        // Nothing was found, so the key is still '$end_of_table'.
        if self.objects.words().is_empty() {
            return self.key;
        }
        call.tuple(&[self.key, call.list(self.objects.words())])
    }
}

/// fold_first(Table, Way) -> see `fold`.
pub fn fold_first(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        fold(call, table, local, None, FIRST_CHUNK)
    })
}

/// The number of objects in the first chunk of a fold. It is small, since the table may be small,
/// or the fold's function may change it.
const FIRST_CHUNK: usize = 16;

/// fold_next(Table, Way, Key, Stamp, Count) -> see `fold`. The next chunk is larger, unless the
/// table has changed since the last one was read.
pub fn fold_next(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        // The chunk grows while nothing changes, and is a single object otherwise.
        let count = if table.is_unchanged(stamp(call.args[3])?) {
            natural(call.args[4])?
        } else {
            1
        };
        with_key(call, table, call.args[2], |key| {
            fold(call, table, local, Some(key), count)
        })
    })
}

/// fold_holds(Table, Stamp) -> boolean(): whether the table still has the same objects as when a
/// chunk was read.
pub fn fold_holds(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        reply_or_raise(call, table, table.check_read(lazy_caller_id(call)))?;
        Ok(boolean(table.is_unchanged(stamp(call.args[1])?)))
    })
}

fn stamp(word: Word) -> Result<Stamp, Raise> {
    let word = layout::small(word).ok_or(BADARG)?;
    Stamp::of(word as u64).ok_or(BADARG)
}

/// Reads a chunk of a fold: {Objects, Stamp, Count, KeyPos}. `Objects` is a list of objects; in a
/// bag, a list of lists of all objects of a key; [] at the end. `Count` and `Stamp` are arguments
/// of the next call. `Count` is 0 if there are no more objects, as long as the table is the same.
fn fold(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    key: Option<&[u8]>,
    count: usize,
) -> Reply {
    tables::off_scheduler(call, table.counts_slowly())?;
    let direction = select::direction(call.args[1]);
    // The engine shows the objects, which become terms at once.
    let mut shown = ShownObjects::new(&call.heap, table.kind().is_unique());
    let step = pausing_on_scheduler(call, local, |local| {
        table.fold(local, caller_id(call), key, direction, count, &mut shown)
    });
    let FoldChunk { stamp, next } = reply_or_raise(call, table, step)?;
    spend(call, shown.count);
    spend_bytes(call, local, shown.bytes);
    Ok(call.tuple(&[
        shown.list.list(),
        call.int(stamp.word() as i64),
        call.int(next as i64),
        call.int(table.keypos() as i64),
    ]))
}

/// The objects of a chunk.
struct ShownObjects<'h> {
    /// The objects; in a bag, the lists of the objects of each key.
    list: ListBuilder<'h>,
    /// In a bag, the objects of the last key.
    of_key: ListBuilder<'h>,
    /// Whether each key has one object, so that the list is flat.
    unique: bool,
    count: usize,
    bytes: usize,
}

impl<'h> ShownObjects<'h> {
    fn new(heap: &'h Heap, unique: bool) -> Self {
        ShownObjects {
            list: ListBuilder::new(heap),
            of_key: ListBuilder::new(heap),
            unique,
            count: 0,
            bytes: 0,
        }
    }
}

impl ShowObject for ShownObjects<'_> {
    /// Adds an object.
    #[inline(always)]
    fn object(&mut self, object: Stored<'_>, first: bool) {
        let heap = self.list.heap();
        let place = if self.unique {
            self.list.next()
        } else if first {
            // The list of a key is in its place before it is complete.
            self.of_key = ListBuilder::new(heap);
            let place = self.of_key.next();
            self.list.next().fill(self.of_key.list());
            place
        } else {
            self.of_key.next()
        };
        self.count += 1;
        self.bytes += object.size();
        decode::found(heap, object, place);
    }
}

/// slot(Table, I) -> [Object] | '$end_of_table'.
pub fn slot(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        reply_or_raise(call, table, table.check_read(caller_id(call)))?;
        let slot = natural(call.args[1])?;
        tables::off_scheduler(call, table.counts_slowly())?;
        let mut shown = ResultTerms::new(call);
        let found = table.slot_in(local, lazy_caller_id(call), slot, &mut |o| shown.object(o));
        report(call, local);
        match found {
            Ok(Slot::Objects(_)) => Ok(call.list(shown.words())),
            Ok(Slot::End) => Ok(atoms::END_OF_TABLE.word()),
            Err(Error::BadSlot) => Err(BADARG),
            Err(error) => Err::<Word, Raise>(tables::refused(call, table, &error)),
        }
    })
}

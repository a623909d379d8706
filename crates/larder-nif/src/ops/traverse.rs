//! Going from key to key, and slots.

use super::select;
use super::single::{spend, with_key, with_local_key, with_quick_key, Shown};
use crate::atoms;
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::sys::*;
use crate::tables::{self, answer, asker, natural, who};
use crate::{decode, layout};
use larder::{Direction, Error, Local, Slot, StepFrom, Stored, Table, Watched};
use larder_term::object::ObjectView;
use smallvec::SmallVec;
use std::sync::Arc;

/// From the edge of a table, or from the key that the call names, to the next key; `see` is shown the first object under it, or all.
fn step(
    call: &Call<'_>,
    from_key: bool,
    way: Direction,
    all: bool,
    see: &mut dyn FnMut(Stored<'_>),
) -> Result<bool, Raise> {
    tables::with_local(call, call.args[0], |table, local| {
        step_in(call, (table, local), from_key, way, all, see)
    })
}

fn step_in(
    call: &Call<'_>,
    (table, local): (&Arc<Table>, &mut Local),
    from_key: bool,
    way: Direction,
    all: bool,
    see: &mut dyn FnMut(Stored<'_>),
) -> Result<bool, Raise> {
    if !from_key {
        return answer(
            call,
            table,
            table.step_in(local, asker(call), None, way, all, see),
        );
    }
    // In an ordered_set any key will do but this one.
    if call.args[1] == atoms::END_OF_TABLE.word() && table.kind().is_ordered() {
        answer(call, table, table.check_read(who(call)))?;
        return Err(BADARG);
    }
    with_local_key(call, table, local, call.args[1], |key, local| {
        match table.step_in(local, asker(call), Some(key), way, all, see) {
            // A key that cannot be gone on from is a bad argument without a cause.
            Err(Error::BadKey) => Err(BADARG),
            other => answer(call, table, other),
        }
    })
}

/// The key of an object.
#[inline(always)]
fn shown_key(call: &Call<'_>, stored: Stored<'_>) -> Word {
    if let Some(key) = stored.index_key() {
        return decode::term(&call.heap, key);
    }
    match stored.int_key_or_view() {
        Ok(n) => call.int(n),
        Err(object) => decode::term(&call.heap, object.key()),
    }
}

/// The first key, or the last.
fn to_edge(call: &Call<'_>, way: Direction) -> Reply {
    let mut key = atoms::END_OF_TABLE.word();
    step(call, false, way, false, &mut |stored| {
        key = shown_key(call, stored)
    })?;
    Ok(key)
}

/// The key behind the one that the call names, or before it: mostly it was read ahead.
#[inline(always)]
fn to_key(call: &Call<'_>, way: Direction) -> Reply {
    tables::with_local_first(
        call,
        call.args[0],
        |table, local| quick_key(call, table, local, way),
        |call, table, local| any_key(call, (table, local), way),
    )
}

/// What nearly all steps are: they go on from the last answer. A key that is a word (which is the same term for ever) is known again as that word.
#[inline(always)]
fn quick_key(call: &Call<'_>, table: &Table, local: &mut Local, way: Direction) -> Option<Word> {
    let asked = call.args[1];
    // In an ordered_set no step begins there, even if it is a key.
    if asked == atoms::END_OF_TABLE.word() {
        return None;
    }
    if layout::is_immediate(asked) && local.has_shown(asked as u64) {
        let from = StepFrom::Shown(asked as u64);
        return table.quick_step(local, asker(call), from, way, |stored| show(call, stored));
    }
    key_behind(call, table, local, way)
}

/// As `quick_key`, for a key that is no word, or comes for the first time.
#[inline(never)]
fn key_behind(call: &Call<'_>, table: &Table, local: &mut Local, way: Direction) -> Option<Word> {
    with_quick_key(call, table, call.args[1], |key| {
        let from = StepFrom::Key(key);
        table.quick_step(local, asker(call), from, way, |stored| {
            show_apart(call, stored)
        })
    })
}

/// The key of an object, and the number that it is known by again, if it is a word.
#[inline(always)]
fn show(call: &Call<'_>, stored: Stored<'_>) -> (Word, u64) {
    let word = shown_key(call, stored);
    let is_word = layout::is_immediate(word);
    (word, if is_word { word as u64 } else { 0 })
}

/// As `show`, which is a part of another function otherwise.
#[inline(never)]
fn show_apart(call: &Call<'_>, stored: Stored<'_>) -> (Word, u64) {
    show(call, stored)
}

#[inline(never)]
fn any_key(call: &Call<'_>, at: (&Arc<Table>, &mut Local), way: Direction) -> Reply {
    let mut key = atoms::END_OF_TABLE.word();
    step_in(call, at, true, way, false, &mut |stored| {
        key = shown_key(call, stored)
    })?;
    Ok(key)
}

fn to_objects(call: &Call<'_>, from_key: bool, way: Direction) -> Reply {
    let mut found = KeyAndObjects::new(call);
    step(call, from_key, way, true, &mut |stored| {
        found.see(call, &stored.view());
    })?;
    Ok(found.pair(call))
}

/// first(Table) -> Key | '$end_of_table'.
pub fn first(call: &Call<'_>) -> Reply {
    to_edge(call, Direction::Forward)
}

/// last(Table) -> Key | '$end_of_table'.
pub fn last(call: &Call<'_>) -> Reply {
    to_edge(call, Direction::Backward)
}

/// next(Table, Key) -> Key | '$end_of_table'.
pub fn next(call: &Call<'_>) -> Reply {
    to_key(call, Direction::Forward)
}

/// prev(Table, Key) -> Key | '$end_of_table'.
pub fn prev(call: &Call<'_>) -> Reply {
    to_key(call, Direction::Backward)
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
    objects: Shown<'c>,
}

impl<'c> KeyAndObjects<'c> {
    fn new(call: &'c Call<'_>) -> Self {
        KeyAndObjects {
            key: atoms::END_OF_TABLE.word(),
            objects: Shown::new(call),
        }
    }

    fn see(&mut self, call: &Call<'_>, object: &ObjectView<'_>) {
        if self.objects.words().is_empty() {
            self.key = decode::term(&call.heap, object.key());
        }
        self.objects.object(object);
    }

    fn pair(&self, call: &Call<'_>) -> Word {
        if self.objects.words().is_empty() {
            return self.key;
        }
        call.tuple(&[self.key, call.list(self.objects.words())])
    }
}

/// The most objects of a chunk of a fold.
const CHUNK: usize = 256;

/// fold_first(Table, Way) -> see `fold`.
pub fn fold_first(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        fold(call, table, None, FIRST_CHUNK)
    })
}

/// The objects of a fold's first chunk: a table may be small, or the function may change it.
const FIRST_CHUNK: usize = 16;

/// fold_next(Table, Way, Key, Watched, Count) -> see `fold`. The next chunk is larger, unless the table changed since the last one was taken.
pub fn fold_next(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let count = if table.is_unchanged(watched(call.args[3])?) {
            (4 * natural(call.args[4])?).min(CHUNK)
        } else {
            1
        };
        with_key(call, table, call.args[2], |key| {
            fold(call, table, Some(key), count)
        })
    })
}

/// fold_holds(Table, Watched) -> boolean(): whether the objects of a chunk still are what the table has.
pub fn fold_holds(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        answer(call, table, table.check_read(who(call)))?;
        Ok(boolean(table.is_unchanged(watched(call.args[1])?)))
    })
}

fn watched(word: Word) -> Result<Watched, Raise> {
    let word = layout::small(word).ok_or(BADARG)?;
    Ok(Watched(word as u64))
}

/// A chunk of a fold: {Objects, Watched, Count, KeyPos}. `Objects` are a list of objects, in a bag of lists of all objects of a key; [] at the end.
/// `Count` and `Watched` are for those who go on.
fn fold(call: &Call<'_>, table: &Arc<Table>, key: Option<&[u8]>, count: usize) -> Reply {
    let direction = select::direction(call.args[1]);
    let mut shown = Shown::new(call);
    let mut firsts: SmallVec<[usize; 32]> = SmallVec::new();
    let unique = table.kind().is_unique();
    let step = table.fold(who(call), key, direction, count, &mut |object, first| {
        if first && !unique {
            firsts.push(shown.words().len());
        }
        shown.object(object);
    });
    let Watched(watched) = answer(call, table, step)?;
    let words = shown.words();
    spend(call, words.len());
    let objects = if unique {
        call.list(words)
    } else {
        let ends = firsts.iter().skip(1).copied().chain([words.len()]);
        let keys: SmallVec<[Word; 32]> = firsts
            .iter()
            .zip(ends)
            .map(|(&from, to)| call.list(&words[from..to]))
            .collect();
        call.list(&keys)
    };
    Ok(call.tuple(&[
        objects,
        call.int(watched as i64),
        call.int(count as i64),
        call.int(table.keypos() as i64),
    ]))
}

/// slot(Table, I) -> [Object] | '$end_of_table'.
pub fn slot(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        answer(call, table, table.check_read(who(call)))?;
        let slot = natural(call.args[1])?;
        let mut shown = Shown::new(call);
        match table.slot(who(call), slot, &mut |o| shown.object(o)) {
            Ok(Slot::Objects(_)) => Ok(call.list(shown.words())),
            Ok(Slot::End) => Ok(atoms::END_OF_TABLE.word()),
            Err(Error::BadSlot) => Err(BADARG),
            Err(error) => Err::<Word, Raise>(tables::refused(call, table, &error)),
        }
    })
}

//! Several keys in one call: their waits for memory overlap.
//!
//! A slice encodes the next keys of the list, has the engine go through them, and puts what each key gave behind what was found before. A list that is done
//! within its first slice is the answer; what other slices find is put onto what was found before, back to front.
//!
//! Nearly all lookups are of small terms and find short rows: the first keys of a slice, up to one that is or finds something else, go a short way.

use super::single::encode_key;
use crate::call::{Call, Entry, Raise, Reply, BADARG};
use crate::heap::{Heap, Slot};
use crate::layout::{self, NIL};
use crate::quick::{place, Bytes, Place};
use crate::sys::*;
use crate::tables::{self, answer, asker};
use crate::{atoms, decode, entry};
use larder::{KeyList, Local, Stored, Table, TOGETHER};
use larder_term::object::{plain_terms, KeyForm};
use std::sync::Arc;

/// Keys a slice.
const KEYS: usize = 1000;
/// Bytes of keys a slice, if there is one key at least.
const BYTES: usize = 64 << 10;
/// Bytes of found objects after which a slice ends.
const FOUND: usize = 128 << 10;
/// Bytes of found objects that are one unit of the 2,000 that the emulator gives a slice.
const UNIT: usize = 256;

/// Puts the first of a list, but for so many of the slice's keys that are done, in `words` and their index keys in `keys`; gives the rest of the list.
fn gather(
    call: &Call<'_>,
    table: &Table,
    (list, done): (Word, usize),
    keys: &mut KeyList,
    words: &mut Vec<Word>,
) -> Result<Word, Raise> {
    let form = table.key_form();
    let (mut term, mut key) = (Vec::new(), Vec::new());
    let mut rest = list;
    while done + keys.len() < KEYS && keys.bytes() < BYTES {
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

/// A list that grows at its end.
struct Lengthening<'c> {
    heap: &'c Heap,
    list: Word,
    /// The tail of its last cell.
    tail: Option<Slot>,
    len: usize,
}

impl<'c> Lengthening<'c> {
    fn new(heap: &'c Heap) -> Self {
        Lengthening {
            heap,
            list: NIL,
            tail: None,
            len: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, word: Word) {
        let (cell, head, tail) = self.heap.open_cell();
        head.fill(word);
        match self.tail.replace(tail) {
            Some(before) => before.fill(cell),
            None => self.list = cell,
        }
        self.len += 1;
    }
}

/// What was found so far: a list of lists, and the list of the key that is being looked at.
struct Found<'c> {
    /// The lists of the slice's keys that are done.
    lists: Lengthening<'c>,
    objects: Vec<Word>,
    bytes: usize,
}

impl<'c> Found<'c> {
    fn new(call: &'c Call<'_>) -> Self {
        Found {
            lists: Lengthening::new(&call.heap),
            objects: Vec::new(),
            bytes: 0,
        }
    }

    /// An object under the key that is `asked`, or the key's end; false when the slice should end.
    #[inline]
    fn see(&mut self, asked: Word, object: Option<Stored<'_>>) -> bool {
        match object {
            Some(object) => {
                self.bytes += object.size();
                let word = decode::stored(self.lists.heap, asked, object);
                self.objects.push(word);
            }
            None => {
                let list = self.lists.heap.list(&self.objects, NIL);
                self.objects.clear();
                self.lists.push(list);
            }
        }
        self.bytes < FOUND
    }

    /// The short row under a key, which becomes the row's key, or none; false if it is not so simple.
    #[inline(always)]
    fn see_quick(&mut self, keypos: usize, asked: Word, value: Option<(&[u8], usize)>) -> bool {
        let list = match value {
            None => NIL,
            Some((bytes, len)) => {
                let Some(row) = plain_terms(bytes) else {
                    return false;
                };
                self.bytes += len;
                decode::listed(self.lists.heap, keypos, asked, row)
            }
        };
        self.lists.push(list);
        true
    }

    fn units(&self) -> u64 {
        (2 * self.lists.len + self.bytes / UNIT) as u64
    }
}

/// lookup_many(Table, Keys, Done) -> the objects of each key, as a list of lists: in the order of the keys if Done is `[]` and it took one slice;
/// else `{more, List}` with the list reversed onto Done.
pub fn lookup_many(call: &Call<'_>) -> Reply {
    let again = entry::lookup_many;
    many(
        call,
        again,
        again,
        quick_lookups,
        |table, local, at, see| table.lookup_many_in(local, asker(call), at, see),
    )
}

/// Looks for the first keys of a slice, up to one for which it isn't as simple as it nearly always is; gives the rest of the list.
fn quick_lookups(call: &Call<'_>, table: &Table, local: &mut Local, found: &mut Found<'_>) -> Word {
    let mut rest = call.args[1];
    if !table.is_simple() {
        return rest;
    }
    while found.lists.len < KEYS {
        let mut place = place();
        let mut keys = SmallKeys::at(&mut place);
        let behind = keys.gather(call.env, table.key_form(), rest);
        let seen = table.quick_lookup_many(
            local,
            asker(call),
            (keys.count, |i| keys.key(i)),
            |i, value| {
                let value = value.map(|(bytes, len)| (&bytes[..], len));
                found.see_quick(table.keypos(), keys.words[i], value)
            },
        );
        if seen < TOGETHER {
            return match seen == keys.count {
                true => behind,
                false => behind_cells(rest, seen).unwrap_or(rest),
            };
        }
        rest = behind;
    }
    rest
}

/// Some keys of a list, each a word or a short term.
struct SmallKeys<'p> {
    words: [Word; TOGETHER],
    bytes: Bytes<'p>,
    ends: [usize; TOGETHER],
    count: usize,
}

impl<'p> SmallKeys<'p> {
    #[inline(always)]
    fn at(place: &'p mut Place) -> Self {
        SmallKeys {
            words: [NIL; TOGETHER],
            bytes: Bytes::at(place),
            ends: [0; TOGETHER],
            count: 0,
        }
    }

    /// Takes the first keys of a list, up to one that is not so simple; gives the rest of the list.
    #[inline(always)]
    fn gather(&mut self, env: *mut Env, form: KeyForm, list: Word) -> Word {
        let mut rest = list;
        for (word, end) in self.words.iter_mut().zip(&mut self.ends) {
            let Some((head, tail)) = layout::cell(rest) else {
                break;
            };
            // It becomes the key of the row.
            if !layout::is_compact(head) || self.bytes.key(env, head, form).is_none() {
                break;
            }
            (*word, *end, rest) = (head, self.bytes.len(), tail);
            self.count += 1;
        }
        rest
    }

    /// The index key of one of them.
    #[inline(always)]
    fn key(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[i]]
    }
}

/// What is behind so many cells of a list.
fn behind_cells(list: Word, count: usize) -> Option<Word> {
    (0..count).try_fold(list, |rest, _| layout::cell(rest).map(|(_, tail)| tail))
}

/// take_many(Table, Keys, Done): as lookup_many, but the objects go. Each key by itself is atomic.
pub fn take_many(call: &Call<'_>) -> Reply {
    let (again, more) = (entry::take_many, entry::take_more);
    many(
        call,
        again,
        more,
        none_quickly,
        |table, local, keys, see| table.take_many_in(local, asker(call), keys, see),
    )
}

/// The slices of `take_many` after one that has taken something: in the owner's name, as the caller had the right then. What was taken is never lost to a
/// right that is gone.
pub fn take_more(call: &Call<'_>) -> Reply {
    let more = entry::take_more;
    many(call, more, more, none_quickly, |table, local, keys, see| {
        table.take_many_in(local, table.owner(), keys, see)
    })
}

/// Where no key has a quick way.
fn none_quickly(call: &Call<'_>, _: &Table, _: &mut Local, _: &mut Found<'_>) -> Word {
    call.args[1]
}

/// What a slice calls with each object, by the number of its key, and with none at the key's end; it says whether to go on.
type See<'s> = dyn FnMut(usize, Option<Stored<'_>>) -> bool + 's;

/// One slice: `quick` does what it can of its keys and gives the rest, `go` does others. It is followed by one of `again` if nothing was found yet, else of
/// `more`.
fn many(
    call: &Call<'_>,
    again: Entry,
    more: Entry,
    quick: impl Fn(&Call<'_>, &Table, &mut Local, &mut Found<'_>) -> Word,
    go: impl Fn(&Arc<Table>, &mut Local, &KeyList, &mut See<'_>) -> Result<(), larder::Error>,
) -> Reply {
    tables::with_local(call, call.args[0], |table, local| {
        let mut found = Found::new(call);
        let list = quick(call, table, local, &mut found);
        // An empty list still has somebody asked for his right.
        if list == NIL && found.lists.len > 0 {
            return Ok(finished(call, &found));
        }
        let done = found.lists.len;
        let mut keys = std::mem::take(&mut local.keys);
        keys.clear();
        let mut asked = Vec::new();
        let rest = gather(call, table, (list, done), &mut keys, &mut asked);
        let result = rest.and_then(|rest| {
            let mut see = |i: usize, object: Option<Stored<'_>>| found.see(asked[i], object);
            let outcome = answer(call, table, go(table, local, &keys, &mut see));
            let whole = found.lists.len == done + keys.len();
            match outcome {
                Ok(()) | Err(Raise::Again) if !whole || rest != NIL => {
                    // What was found for the first keys stays found.
                    let rest = behind_cells(call.args[1], found.lists.len).ok_or(BADARG)?;
                    let id = tables::reference(call.env, table);
                    let args = [id, rest, reversed(call, &found)];
                    let next = if found.lists.len == 0 { again } else { more };
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
fn reversed(call: &Call<'_>, found: &Found) -> Word {
    let (mut done, mut rest) = (call.args[2], found.lists.list);
    while let Some((list, tail)) = layout::cell(rest) {
        // SAFETY: all terms are of the running call's environment.
        done = unsafe { enif_make_list_cell(call.env, list, done) };
        rest = tail;
    }
    done
}

fn finished(call: &Call<'_>, found: &Found) -> Word {
    call.spent(found.units());
    if call.args[2] == NIL {
        return found.lists.list;
    }
    call.tuple(&[atoms::MORE.word(), reversed(call, found)])
}

//! Operations on the objects of one key.

use crate::atoms;
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::decode::Plain;
use crate::heap::Heap;
use crate::layout::{self, NIL};
use crate::quick::{place, row, Bytes};
use crate::sys::*;
use crate::tables::{self, answer, asker, natural, who};
use crate::{decode, encode, scratch};
use larder::{Error, Local, Stored, Table};
use larder_term::object::{outside_bytes, plain_terms, KeyForm, ObjectRef, ObjectView};
use larder_term::{Mode, TermRef};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::Arc;

/// Runs `f` with the index key of a term.
#[inline]
pub fn with_key<R>(
    call: &Call<'_>,
    table: &Table,
    key: Word,
    f: impl FnOnce(&[u8]) -> Result<R, Raise>,
) -> Result<R, Raise> {
    scratch::with_bytes(|term, index_key| {
        encode_key(call, table, key, term, index_key)?;
        f(index_key)
    })
}

/// Writes the index key of a term to `index_key`, by way of `term`.
pub fn encode_key(
    call: &Call<'_>,
    table: &Table,
    key: Word,
    term: &mut Vec<u8>,
    index_key: &mut Vec<u8>,
) -> Result<(), Raise> {
    encode::to_bytes(call.env, key, Mode::Inline, term).map_err(|_| BADARG)?;
    // SAFETY: the encoder wrote one whole term in inline mode, without handles.
    table.encode_key(unsafe { TermRef::trusted(term) }, index_key);
    Ok(())
}

/// Runs `f` with the index key of a term, and what the thread keeps for its operations.
#[inline]
pub fn with_local_key<R>(
    call: &Call<'_>,
    table: &Table,
    local: &mut Local,
    key: Word,
    f: impl FnOnce(&[u8], &mut Local) -> Result<R, Raise>,
) -> Result<R, Raise> {
    let (mut place, mut large) = (place(), Vec::new());
    let mut small = Bytes::at(&mut place);
    let bytes: &[u8] = match small.key(call.env, key, table.key_form()) {
        Some(()) => &small,
        None => {
            large = std::mem::take(&mut local.bytes);
            encode_large_key(call, table, key, &mut large)?;
            &large
        }
    };
    let result = f(bytes, local);
    if large.capacity() > 0 {
        local.bytes = large;
    }
    result
}

/// As `with_local_key`, if the term is small.
#[inline(always)]
pub fn with_quick_key<R>(
    call: &Call<'_>,
    table: &Table,
    key: Word,
    f: impl FnOnce(&[u8]) -> Option<R>,
) -> Option<R> {
    let mut place = place();
    let mut small = Bytes::at(&mut place);
    small.key(call.env, key, table.key_form())?;
    f(&small)
}

/// Writes the index key of a term that is not small.
#[inline(never)]
fn encode_large_key(
    call: &Call<'_>,
    table: &Table,
    key: Word,
    index_key: &mut Vec<u8>,
) -> Result<(), Raise> {
    index_key.clear();
    let mut place = place();
    let mut bytes = Bytes::at(&mut place);
    if table.key_form() == KeyForm::Ordered && bytes.term(call.env, key).is_some() {
        table.encode_key(bytes.as_term(), index_key);
        return Ok(());
    }
    encode_key(call, table, key, &mut Vec::new(), index_key)
}

/// The words of objects that a visitor is shown.
pub struct Shown<'c> {
    heap: &'c Heap,
    words: SmallVec<[Word; 8]>,
}

impl<'c> Shown<'c> {
    /// None yet.
    pub fn new(call: &'c Call<'_>) -> Self {
        Shown {
            heap: &call.heap,
            words: SmallVec::new(),
        }
    }

    /// Notes an object.
    #[inline]
    pub fn object(&mut self, object: &ObjectView<'_>) {
        self.words.push(decode::object(self.heap, object));
    }

    /// What was noted.
    pub fn words(&self) -> &[Word] {
        &self.words
    }
}

/// insert(Table, Tuple) -> true. Lists are for `insert_list`.
pub fn insert(call: &Call<'_>) -> Reply {
    tables::with_local_first(
        call,
        call.args[0],
        |table, local| quick_insert(call, table, local, false).map(|_| atoms::TRUE.word()),
        |call, table, local| {
            with_object(call, table, local, |table, local, object| {
                table.insert_in(local, asker(call), object)
            })?;
            Ok(atoms::TRUE.word())
        },
    )
}

/// insert_new(Table, Tuple) -> boolean().
pub fn insert_new(call: &Call<'_>) -> Reply {
    tables::with_local_first(
        call,
        call.args[0],
        |table, local| quick_insert(call, table, local, true).map(boolean),
        |call, table, local| {
            with_object(call, table, local, |table, local, object| {
                table.insert_new_in(local, asker(call), object)
            })
            .map(boolean)
        },
    )
}

/// What nearly all inserts are: a row of small terms, into a set or ordered_set. Whether its key is new.
#[inline(always)]
fn quick_insert(call: &Call<'_>, table: &Table, local: &Local, new: bool) -> Option<bool> {
    let (mut key_place, mut value_place) = (place(), place());
    let (mut key, mut value) = (Bytes::at(&mut key_place), Bytes::at(&mut value_place));
    let elements = layout::tuple(call.args[1])?;
    let (keypos, form) = (table.keypos(), table.key_form());
    let object = row([&mut key, &mut value], call.env, elements, keypos, form)?;
    let inserted = table.quick_insert(local, asker(call), object, new)?;
    spend_bytes(call, local, object.value().len());
    Some(inserted)
}

/// delete_object(Table, Tuple) -> true.
pub fn delete_object(call: &Call<'_>) -> Reply {
    tables::with_local(call, call.args[0], |table, local| {
        with_object(call, table, local, |table, local, object| {
            table.delete_object_in(local, asker(call), object)
        })
    })?;
    Ok(atoms::TRUE.word())
}

/// Runs `f` with the tuple of the second argument as an object of the table, after the right to write was looked at.
#[inline(never)]
fn with_object<R>(
    call: &Call<'_>,
    table: &Arc<Table>,
    local: &mut Local,
    f: impl FnOnce(&Table, &mut Local, ObjectRef<'_>) -> Result<R, Error>,
) -> Result<R, Raise> {
    let tuple = call.args[1];
    let elements = layout::tuple(tuple).unwrap_or(&[]);
    if table.keeps_plain() {
        let (mut key_place, mut value_place) = (place(), place());
        let (mut key, mut value) = (Bytes::at(&mut key_place), Bytes::at(&mut value_place));
        let (keypos, form) = (table.keypos(), table.key_form());
        if let Some(object) = row([&mut key, &mut value], call.env, elements, keypos, form) {
            return answer(call, table, f(table, local, object));
        }
    }
    let mut object = std::mem::take(&mut local.object);
    let mut place = place();
    let mut small = Bytes::at(&mut place);
    let encoded = match small.row(call.env, elements) {
        Some(()) => table.encode_object(small.as_term(), &mut object).is_ok(),
        None => encode::object(call.env, tuple, table, &mut object).is_ok(),
    };
    let result = if encoded {
        answer(call, table, f(table, local, object.borrow()))
    } else {
        // The table's error comes before that of the object.
        answer(call, table, table.check_write(who(call))).and(Err(BADARG))
    };
    let value = object.value();
    spend_bytes(call, local, weight(value.len(), outside_bytes(value)));
    object.clear();
    local.object = object;
    result
}

/// What is shown of the objects of a key: the words of the first, and those of all if there are more.
#[derive(Default)]
struct Found {
    first: Word,
    count: usize,
    more: Vec<Word>,
}

impl Found {
    #[inline]
    fn add(&mut self, word: Word) {
        if self.count == 0 {
            self.first = word;
        } else {
            self.add_more(word);
        }
        self.count += 1;
    }

    #[cold]
    fn add_more(&mut self, word: Word) {
        if self.more.is_empty() {
            self.more.push(self.first);
        }
        self.more.push(word);
    }

    /// A list of them, in order.
    #[inline]
    fn list(&self, call: &Call<'_>) -> Word {
        match self.count {
            0 => NIL,
            1 => call.heap.cell(self.first, NIL),
            _ => call.list(&self.more),
        }
    }
}

/// lookup(Table, Key) -> [Object].
pub fn lookup(call: &Call<'_>) -> Reply {
    let (table, asked) = (call.args[0], call.args[1]);
    tables::with_local_first(
        call,
        table,
        |table, local| {
            quick_value(call, table, local, asked, |value| match value {
                Some(value) => decode::listed(&call.heap, table.keypos(), asked, value),
                None => NIL,
            })
        },
        any_lookup,
    )
}

/// What nearly all lookups are: a small term is asked for, in a set or ordered_set, and a short row is found, or none. `see` is called with what
/// [`plain_terms`] makes of the row, with anything behind its bytes.
#[inline(always)]
fn quick_value<R>(
    call: &Call<'_>,
    table: &Table,
    local: &Local,
    asked: Word,
    see: impl FnOnce(Option<Plain<'_>>) -> R,
) -> Option<R> {
    // It becomes the key of the row.
    if !layout::is_compact(asked) {
        return None;
    }
    with_quick_key(call, table, asked, |key| {
        table.quick_lookup(local, asker(call), key, |value| {
            let plain = match value {
                // What lies behind the elements is left to them: whole words can be loaded.
                Some((value, _)) => Some(plain_terms(value)?),
                None => None,
            };
            Some(see(plain))
        })
    })
}

#[inline(never)]
fn any_lookup(call: &Call<'_>, table: &Arc<Table>, local: &mut Local) -> Reply {
    let mut found = Found::default();
    let (key, mut size) = (call.args[1], 0);
    with_local_key(call, table, local, key, |bytes, local| {
        let visit = |stored: Stored<'_>| {
            size += stored.size();
            found.add(decode::stored(&call.heap, key, stored));
        };
        answer(
            call,
            table,
            table.lookup_in(local, asker(call), bytes, visit),
        )
    })?;
    spend(call, found.count);
    spend_bytes(call, local, size);
    Ok(found.list(call))
}

/// Many objects of a bag cost more than the call itself.
#[inline]
pub fn spend(call: &Call<'_>, objects: usize) {
    if objects > 16 {
        call.spent(objects as u64);
    }
}

/// Tells the emulator of large objects, which take longer than the call itself: by what a process has used, it decides when the next one's turn is, and
/// when another scheduler has to wake up for those that wait. What is too little to be told is kept, and told with the next on this thread.
#[inline]
fn spend_bytes(call: &Call<'_>, local: &Local, bytes: usize) {
    if bytes > SMALL_OBJECT {
        spend_many_bytes(call, local, bytes);
    }
}

/// Bytes of an object that cost no more than the call itself.
const SMALL_OBJECT: usize = 128;
/// Bytes that are encoded or decoded in half a microsecond.
const BYTES_A_UNIT: usize = 128;
/// The fewest units that can be told.
const LEAST: u32 = 20;

/// What a term weighs that is encoded: its bytes, and those of the binaries that are copied for it, of which far more are copied in the same time.
pub(super) fn weight(bytes: usize, copied: usize) -> usize {
    const COPIED_A_BYTE: usize = 32;
    bytes + copied / COPIED_A_BYTE
}

#[inline(never)]
fn spend_many_bytes(call: &Call<'_>, local: &Local, bytes: usize) {
    let units = u32::try_from(bytes / BYTES_A_UNIT).unwrap_or(u32::MAX);
    let mut untold = local.untold.get().saturating_add(units);
    if untold >= LEAST {
        call.spent(untold.into());
        untold = 0;
    }
    local.untold.set(untold);
}

/// member(Table, Key) -> boolean().
pub fn member(call: &Call<'_>) -> Reply {
    tables::with_local_first(
        call,
        call.args[0],
        |table, local| {
            with_quick_key(call, table, call.args[1], |key| {
                table.quick_member(local, asker(call), key).map(boolean)
            })
        },
        any_member,
    )
}

#[inline(never)]
fn any_member(call: &Call<'_>, table: &Arc<Table>, local: &mut Local) -> Reply {
    with_local_key(call, table, local, call.args[1], |key, local| {
        answer(call, table, table.member_in(local, asker(call), key)).map(boolean)
    })
}

/// lookup_element(Table, Key, Pos) -> Element | [Element].
pub fn lookup_element(call: &Call<'_>) -> Reply {
    element(call)?.ok_or(Raise::Cause(atoms::BADKEY))
}

/// lookup_element(Table, Key, Pos, Default) -> Element | [Element] | Default.
pub fn lookup_element_default(call: &Call<'_>) -> Reply {
    Ok(element(call)?.unwrap_or(call.args[3]))
}

/// The element or the elements; none if there is no object.
#[inline]
fn element(call: &Call<'_>) -> Result<Option<Word>, Raise> {
    tables::with_local_first(
        call,
        call.args[0],
        |table, local| quick_element(call, table, local),
        any_element,
    )
}

#[inline(always)]
fn quick_element(call: &Call<'_>, table: &Table, local: &Local) -> Option<Option<Word>> {
    // A position that can't be is wrong even where there is no object.
    let (asked, position) = (call.args[1], natural(call.args[2]).ok().filter(|&p| p > 0)?);
    let element = quick_value(call, table, local, asked, |value| {
        let Some((arity, exact, terms)) = value else {
            return Some(None);
        };
        if position > arity {
            return None;
        }
        // The exact key stands before the others.
        let before = match position.cmp(&table.keypos()) {
            Ordering::Less => position - 1 + usize::from(exact),
            Ordering::Equal if exact => 0,
            Ordering::Equal => return Some(Some(asked)),
            Ordering::Greater => position - 2 + usize::from(exact),
        };
        Some(Some(decode::nth(&call.heap, terms, before)))
    });
    element.flatten()
}

#[inline(never)]
fn any_element(
    call: &Call<'_>,
    table: &Arc<Table>,
    local: &mut Local,
) -> Result<Option<Word>, Raise> {
    let position = match natural(call.args[2]) {
        Ok(position @ 1..) => position,
        _ => return answer(call, table, table.check_read(who(call))).and(Err(BADARG)),
    };
    let mut found = Found::default();
    with_local_key(call, table, local, call.args[1], |key, local| {
        let visit = |e: TermRef<'_>| found.add(decode::term(&call.heap, e));
        match table.lookup_element_in(local, asker(call), key, position, visit) {
            Err(Error::Position) => Err(BADARG),
            other => answer(call, table, other),
        }
    })?;
    spend(call, found.count);
    Ok(match (found.count, table.kind().is_unique()) {
        (0, _) => None,
        (_, true) => Some(found.first),
        (_, false) => Some(found.list(call)),
    })
}

/// delete(Table, Key) -> true.
pub fn delete(call: &Call<'_>) -> Reply {
    tables::with_local_first(
        call,
        call.args[0],
        |table, local| {
            with_quick_key(call, table, call.args[1], |key| {
                table.quick_delete(local, asker(call), key)?;
                Some(atoms::TRUE.word())
            })
        },
        any_delete,
    )
}

#[inline(never)]
fn any_delete(call: &Call<'_>, table: &Arc<Table>, local: &mut Local) -> Reply {
    let gone = with_local_key(call, table, local, call.args[1], |key, local| {
        answer(call, table, table.delete_in(local, asker(call), key))
    })?;
    spend(call, gone);
    Ok(atoms::TRUE.word())
}

/// take(Table, Key) -> [Object].
pub fn take(call: &Call<'_>) -> Reply {
    tables::with_local(call, call.args[0], |table, local| {
        let mut found = Found::default();
        let key = call.args[1];
        with_local_key(call, table, local, key, |bytes, local| {
            let visit = |stored: Stored<'_>| found.add(decode::stored(&call.heap, key, stored));
            answer(call, table, table.take_in(local, asker(call), bytes, visit))
        })?;
        spend(call, found.count);
        Ok(found.list(call))
    })
}

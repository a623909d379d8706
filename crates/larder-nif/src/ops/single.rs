//! Operations on the objects of one key: insert, delete, lookup, member and take.
//!
//! The key, and the other elements of an object to insert, are encoded to buffers on the stack. A
//! long term moves its buffer to the heap. What is found is decoded straight to the caller's heap,
//! while the epoch is pinned. A function whose name ends with `_to` or `_of`, and `has_member`, is
//! the operation once its table is known. `commit` and `insert` call these, too.
//!
//! A call reports its cost in reductions if it is more than that of a call by itself (`spend`,
//! `spend_bytes`).

use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::heap::{Cells, Heap, ListBuilder};
use crate::layout::{self, Kind};
use crate::sys::*;
use crate::tables::{self, caller_id, lazy_caller_id, positive, reply_or_raise};
use crate::terms::atoms;
use crate::terms::decode;
use crate::terms::encode::{stack_bytes, Row, Writer};
use crate::terms::same;
use larder::host::{EngineTable, Error, Local, Stored};
use larder_term::object::{outside_bytes, ObjectRef, ObjectView};
use larder_term::{Mode, TermRef};
use smallvec::SmallVec;
use std::sync::Arc;

/// Encodes the index key of a term and runs `f` with it. The index key is the term's inline bytes,
/// or its order key in an ordered_set.
#[inline]
pub fn with_key<R>(
    call: &Call<'_>,
    table: &EngineTable,
    key: Word,
    f: impl FnOnce(&[u8]) -> Result<R, Raise>,
) -> Result<R, Raise> {
    // The buffer begins on the stack. Most keys fit there, and nothing is allocated.
    let mut stack = stack_bytes();
    let mut bytes = Writer::at(&mut stack, call.env, Mode::Inline);
    bytes.key(key, table.key_form())?;
    f(&bytes)
}

/// Runs `f`, an operation of the engine, with the index key of the call's key.
#[inline]
pub fn at_key<R>(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    f: impl FnOnce(&[u8]) -> Result<R, Error>,
) -> Result<R, Raise> {
    with_key(call, table, call.args[1], |key| {
        reply_or_raise(call, table, f(key))
    })
}

/// Objects that were read for the caller, as terms on the caller's heap.
pub struct ResultTerms<'c> {
    heap: &'c Heap,
    words: SmallVec<[Word; 8]>,
}

impl<'c> ResultTerms<'c> {
    /// An empty collection.
    pub fn new(call: &'c Call<'_>) -> Self {
        ResultTerms {
            heap: &call.heap,
            words: SmallVec::new(),
        }
    }

    /// Adds an object.
    #[inline]
    pub fn object(&mut self, object: &ObjectView<'_>) {
        self.words.push(decode::object(self.heap, object));
    }

    /// The terms of the objects.
    pub fn words(&self) -> &[Word] {
        &self.words
    }
}

/// insert(Table, Tuple) -> true. Lists are for `insert_list`.
pub fn insert(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        insert_to(call, table, local, call.args[1])
    })
}

/// `insert` of an object, once its table is known.
#[inline(never)]
pub(super) fn insert_to(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    object: Word,
) -> Reply {
    with_object(call, table, local, object, |local, object| {
        table
            .insert_in(local, lazy_caller_id(call), object)
            .map(|has| (has, ()))
    })?;
    Ok(atoms::TRUE.word())
}

/// insert_new(Table, Tuple) -> boolean().
pub fn insert_new(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        insert_new_to(call, table, local, call.args[1])
    })
}

/// `insert_new` of an object, once its table is known.
#[inline(never)]
pub(super) fn insert_new_to(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    object: Word,
) -> Reply {
    // Unless the row is cheap, look up its key first. If it is present, the other elements needn't
    // be encoded, and no lock is taken. If it is absent, another thread may insert it before us, so
    // `insert_new_in` decides.
    let before = |local: &mut Local, key: &[u8]| {
        if !is_costly(object) {
            return Ok(None);
        }
        // The check of rights comes first, as it does in an insert.
        reply_or_raise(call, table, table.may_write(lazy_caller_id(call)))?;
        let is_there = reply_or_raise(call, table, table.member_in(local, table.owner(), key))?;
        Ok(is_there.then_some(false))
    };
    let insert = |local: &mut Local, object: ObjectRef<'_>| {
        let inserted = table.insert_new_in(local, lazy_caller_id(call), object)?;
        Ok((inserted && table.kind().is_unique(), inserted))
    };
    with_object_after(call, table, local, object, before, insert).map(boolean)
}

/// Whether a row costs more to insert than its key costs to look up.
#[inline]
fn is_costly(row: Word) -> bool {
    const CHEAP: usize = 4;
    layout::tuple(row).is_some_and(|elements| {
        elements.len() > CHEAP || elements.iter().any(|&e| !layout::is_immediate(e))
    })
}

/// delete_object(Table, Tuple) -> true.
pub fn delete_object(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| delete_object_of(call, table, local))
}

/// `delete_object`, once its table is known.
#[inline(never)]
pub(super) fn delete_object_of(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
) -> Reply {
    let elements = layout::tuple(call.args[1]).unwrap_or(&[]);
    // If encoding the row takes long, first look at those under its key. Mostly one of the first
    // elements shows that another row isn't the same.
    let before = |local: &mut Local, key: &[u8]| {
        // A lookup in a bag takes twice as long.
        if !is_long(elements, if table.kind().is_unique() { 16 } else { 32 }) {
            return Ok(None);
        }
        let mut bytes = 0;
        let may_be = table.may_have_in(local, lazy_caller_id(call), key, |stored| {
            bytes += stored.size();
            same::may_be(call.env, elements, &stored.view())
        });
        if reply_or_raise(call, table, may_be)? {
            return Ok(None);
        }
        spend_bytes(call, local, bytes);
        Ok(Some(()))
    };
    let delete = |local: &mut Local, object: ObjectRef<'_>| {
        let deleted = table.delete_object_in(local, lazy_caller_id(call), object);
        deleted.map(|_| (false, ()))
    };
    with_object_after(call, table, local, call.args[1], before, delete)?;
    Ok(atoms::TRUE.word())
}

/// Whether a row has more than this number of terms, those of its containers included. So does one
/// with a shared binary, for which encoding takes an allocation.
#[inline]
pub(super) fn is_long(elements: &[Word], most: usize) -> bool {
    left_after(elements, most).is_none()
}

/// What is left of a number after one was subtracted for each term. `None` if it doesn't suffice.
fn left_after(terms: &[Word], left: usize) -> Option<usize> {
    use Kind::{Map, PartOfBinary, RangeOfBinary, SharedBinary, Tuple};
    let mut left = left.checked_sub(terms.len())?;
    for &term in terms.iter().filter(|&&term| !layout::is_immediate(term)) {
        let mut rest = term;
        while let Some((head, tail)) = layout::cell(rest) {
            left = left_after(&[head], left)?;
            rest = tail;
        }
        if !layout::is_boxed(term) {
            continue;
        }
        left = match layout::kind(term) {
            Tuple => left_after(layout::tuple(term)?, left)?,
            // Keys of maps are mostly atoms.
            Map => left_after(layout::flatmap(term)?.1, left)?,
            SharedBinary | PartOfBinary | RangeOfBinary => return None,
            _ => left,
        };
    }
    Some(left)
}

/// Encodes a tuple as an object of the table, and runs `f` with it. The first part of the result of
/// `f` says whether the table has taken over the counts of the object's handles.
#[inline]
pub fn with_object<R>(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    tuple: Word,
    f: impl FnOnce(&mut Local, ObjectRef<'_>) -> Result<(bool, R), Error>,
) -> Result<R, Raise> {
    with_object_after(call, table, local, tuple, |_, _| Ok(None), f)
}

/// As `with_object`. First runs `before` with the index key; if it returns a result, the other
/// elements aren't encoded, and `f` isn't run.
#[inline]
fn with_object_after<R>(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    tuple: Word,
    before: impl FnOnce(&mut Local, &[u8]) -> Result<Option<R>, Raise>,
    f: impl FnOnce(&mut Local, ObjectRef<'_>) -> Result<(bool, R), Error>,
) -> Result<R, Raise> {
    // 1. Encode the key and the value, in buffers that begin on the stack.
    let (mut key, mut value) = (stack_bytes(), stack_bytes());
    let mut row = Row::at([&mut key, &mut value], call.env);
    let elements = layout::tuple(tuple).unwrap_or(&[]);
    let mut written = row.write_key(table, elements);
    if written.is_ok() {
        if let Some(result) = before(local, row.key())? {
            return Ok(result);
        }
        written = row.write_others(table, elements);
    }
    if written.is_err() {
        // An error of the table takes precedence over one of the tuple.
        return reply_or_raise(call, table, table.check_write(caller_id(call))).and(Err(BADARG));
    }
    // 2. Report the cost of a large object: the emulator counts each call as one reduction.
    let object = row.object();
    let encoded = row.encoded_len();
    if encoded > SMALL_OBJECT {
        spend_many_bytes(call, local, weight(encoded, outside_bytes(object.value())));
    }
    // 3. The row owns a count of each of the value's handles. Offer them to the table. If the table
    // doesn't store the object, the row takes them back, and releases them when it is dropped.
    let given = row.hand_over_counts();
    let result = f(local, object.giving());
    if given && !matches!(result, Ok((true, _))) {
        row.reclaim_counts();
    }
    reply_or_raise(call, table, result.map(|(_, result)| result))
}

/// The objects that were found under a key.
struct FoundObjects<'c> {
    objects: ListBuilder<'c>,
    bytes: usize,
}

impl<'c> FoundObjects<'c> {
    #[inline]
    fn new(call: &'c Call<'_>) -> Self {
        FoundObjects {
            objects: ListBuilder::new(&call.heap),
            bytes: 0,
        }
    }

    /// Adds an object. `caller_key` is the key as the caller has passed it. If it is a compact
    /// term, the tuple contains it instead of a copy.
    #[inline(always)]
    fn add(&mut self, caller_key: Word, stored: Stored<'_>) {
        self.bytes += stored.size();
        decode::stored(self.objects.heap(), caller_key, stored, self.objects.next());
    }

    /// Makes the list of the objects, and reports its cost to the emulator.
    #[inline]
    fn list(&self, call: &Call<'_>, local: &Local) -> Word {
        spend(call, self.objects.len());
        spend_bytes(call, local, self.bytes);
        self.objects.list()
    }
}

/// lookup(Table, Key) -> [Object].
pub fn lookup(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| lookup_of(call, table, local))
}

/// `lookup`, once its table is known.
#[inline(never)]
pub(super) fn lookup_of(call: &Call<'_>, table: &Arc<EngineTable>, local: &mut Local) -> Reply {
    let mut found = FoundObjects::new(call);
    let caller_key = call.args[1];
    // The engine pins the epoch, copies each object, and visits the copy. The visitor makes a term
    // of it on the caller's heap at once. The epoch is still pinned then, so the handles in the
    // copy are valid.
    at_key(call, table, |key| {
        let visit = |stored: Stored<'_>| found.add(caller_key, stored);
        table.lookup_in(local, lazy_caller_id(call), key, visit)
    })?;
    Ok(found.list(call, local))
}

/// Reports to the emulator that a call has read many objects, if there are more than a call costs
/// itself.
#[inline]
pub fn spend(call: &Call<'_>, objects: usize) {
    if objects > 16 {
        call.spent(objects as u64);
    }
}

/// Reports the cost of large objects to the emulator. By the reductions that a process has used,
/// the emulator decides when the next process is scheduled, and when another scheduler has to be
/// woken up. A cost that is too small to report is added to that of the thread's next call.
#[inline]
pub(super) fn spend_bytes(call: &Call<'_>, local: &Local, bytes: usize) {
    let bytes = bytes + call.heap.out_of_line.take();
    if bytes > SMALL_OBJECT {
        spend_many_bytes(call, local, bytes);
    }
}

/// An object of up to this number of bytes costs no more than the call itself.
const SMALL_OBJECT: usize = 128;
/// The number of bytes that are encoded or decoded in half a microsecond.
pub(super) const BYTES_PER_TIMESLICE_UNIT: usize = 128;
/// The fewest units that can be reported.
const LEAST: u32 = 20;

/// The weight of an encoded term: its bytes, and a fraction of the bytes of binaries that are
/// copied for it, since copying is much faster than encoding.
pub(super) fn weight(bytes: usize, copied: usize) -> usize {
    const COPIED_A_BYTE: usize = 32;
    bytes + copied / COPIED_A_BYTE
}

#[inline(never)]
fn spend_many_bytes(call: &Call<'_>, local: &Local, bytes: usize) {
    let units = u32::try_from(bytes / BYTES_PER_TIMESLICE_UNIT).unwrap_or(u32::MAX);
    let unreported = local.unreported.get().saturating_add(units);
    local.unreported.set(unreported);
    report(call, local);
}

/// Reports the thread's unreported units, if they are enough. The emulator rounds fewer units down
/// to nothing, so they are kept for the thread's next call.
#[inline]
pub(super) fn report(call: &Call<'_>, local: &Local) {
    let unreported = local.unreported.get();
    if unreported >= LEAST {
        call.spent(unreported.into());
        local.unreported.set(0);
    }
}

/// member(Table, Key) -> boolean().
pub fn member(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| has_member(call, table, local)).map(boolean)
}

/// `member`, once its table is known.
#[inline(never)]
pub(super) fn has_member(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
) -> Result<bool, Raise> {
    at_key(call, table, |key| {
        table.member_in(local, lazy_caller_id(call), key)
    })
}

/// lookup_element(Table, Key, Pos) -> Element | [Element] | badkey: there is no object.
///
/// An exception would take longer than the call, and programs use this to find out whether there is
/// an object. An element that is `badkey` is raised instead, as error:{larder, itself}.
pub fn lookup_element(call: &Call<'_>) -> Reply {
    let absent = atoms::BADKEY.word();
    match elements::<_, false>(call, |word| Some([position(word)?]))? {
        Some(element) if element == absent => Err(Raise::Cause(atoms::ITSELF)),
        element => Ok(element.unwrap_or(absent)),
    }
}

/// lookup_element(Table, Key, Pos, Default) -> Element | [Element] | Default.
pub fn lookup_element_default(call: &Call<'_>) -> Reply {
    let found = elements::<_, false>(call, |word| Some([position(word)?]))?;
    Ok(found.unwrap_or(call.args[3]))
}

/// lookup_elements(Table, Key, Positions) -> Elements | [Elements] | badkey: there is no object.
pub fn lookup_elements(call: &Call<'_>) -> Reply {
    Ok(elements::<_, true>(call, positions)?.unwrap_or(atoms::BADKEY.word()))
}

/// lookup_elements(Table, Key, Positions, Default) -> Elements | [Elements] | Default.
pub fn lookup_elements_default(call: &Call<'_>) -> Reply {
    Ok(elements::<_, true>(call, positions)?.unwrap_or(call.args[3]))
}

/// Reads the position of an element. `None` if no object can have it.
#[inline]
fn position(word: Word) -> Option<usize> {
    positive(word).ok()
}

/// Reads a list of positions.
fn positions(list: Word) -> Option<SmallVec<[usize; 16]>> {
    // Anything but a proper list of positions is a bad argument.
    let mut elements = layout::elements(list);
    let found = elements.by_ref().map(position).collect::<Option<_>>()?;
    (elements.rest == layout::NIL).then_some(found)
}

/// The elements that were found under a key, as terms on the caller's heap.
///
/// The elements of an object are a list if `LISTS` is set, otherwise they are the one element. For
/// a bag the result is a list of these, for each object under the key.
struct FoundElements<'c, const LISTS: bool> {
    heap: &'c Heap,
    /// How many elements of each object are looked up.
    wanted: usize,
    is_unique: bool,
    /// The elements of the only object, in a set or ordered_set.
    only: Word,
    /// Those of each object, in a bag.
    objects: ListBuilder<'c>,
    /// The cells of the list for the object that is being visited.
    cells: Option<Cells>,
    /// The bytes of the elements.
    bytes: usize,
}

impl<'c, const LISTS: bool> FoundElements<'c, LISTS> {
    #[inline]
    fn new(heap: &'c Heap, wanted: usize, is_unique: bool) -> Self {
        FoundElements {
            heap,
            wanted,
            is_unique,
            only: layout::NIL,
            objects: ListBuilder::new(heap),
            cells: None,
            bytes: 0,
        }
    }

    /// Adds an element of an object. It is number `i` of those that are looked up.
    #[inline(always)]
    fn add(&mut self, i: usize, element: TermRef<'_>) {
        self.bytes += element.bytes().len();
        if LISTS {
            // This is the first element of another object.
            if i == 0 {
                self.begin_list();
            }
            if let Some(slot) = self.cells.as_mut().and_then(Cells::next) {
                decode::term_at(self.heap, element, slot);
            }
        } else {
            match self.is_unique {
                true => self.only = decode::term(self.heap, element),
                false => decode::term_at(self.heap, element, self.objects.next()),
            }
        }
    }

    /// Allocates the list of an object's elements.
    #[inline]
    fn begin_list(&mut self) {
        let (list, rest) = self.heap.cells(self.wanted);
        self.cells = Some(rest);
        match self.is_unique {
            true => self.only = list,
            false => self.objects.next().fill(list),
        }
    }

    /// The result, and its cost in terms, if this number of objects was found. `None` if there is
    /// no object.
    #[inline]
    fn result(&mut self, count: usize) -> (Option<Word>, usize) {
        // If there are no positions, no element is visited. Each object still yields an empty list.
        if LISTS && self.wanted == 0 && !self.is_unique {
            (0..count).for_each(|_| self.objects.next().fill(layout::NIL));
        }
        let cost = if LISTS { count.max(self.wanted) } else { count };
        let result = match (count, self.is_unique) {
            (0, _) => None,
            (_, true) => Some(self.only),
            (_, false) => Some(self.objects.list()),
        };
        (result, cost)
    }
}

/// Looks up the elements at the positions that `read` makes of the third argument. `None` if there
/// is no object. See [`FoundElements`].
#[inline(always)]
fn elements<P: AsRef<[usize]>, const LISTS: bool>(
    call: &Call<'_>,
    read: impl FnOnce(Word) -> Option<P>,
) -> Result<Option<Word>, Raise> {
    tables::with_local(call, |table, local| {
        // If no object can have the position, an error of the table still takes precedence.
        let Some(positions) = read(call.args[2]) else {
            return reply_or_raise(call, table, table.check_read(caller_id(call))).and(Err(BADARG));
        };
        let (positions, is_unique) = (positions.as_ref(), table.kind().is_unique());
        let mut found = FoundElements::<LISTS>::new(&call.heap, positions.len(), is_unique);
        // If an object is too short for one of the positions, the engine has visited nothing.
        let count = with_key(call, table, call.args[1], |key| {
            let visit = |i: usize, element: TermRef<'_>| found.add(i, element);
            match table.lookup_elements_in(local, lazy_caller_id(call), key, positions, visit) {
                Err(Error::Position) => Err(BADARG),
                other => reply_or_raise(call, table, other),
            }
        })?;
        let (result, cost) = found.result(count);
        spend(call, cost);
        spend_bytes(call, local, found.bytes);
        Ok(result)
    })
}

/// delete(Table, Key) -> true.
pub fn delete(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| delete_of(call, table, local))
}

/// `delete`, once its table is known.
#[inline(never)]
pub(super) fn delete_of(call: &Call<'_>, table: &Arc<EngineTable>, local: &mut Local) -> Reply {
    let removed = at_key(call, table, |key| {
        table.delete_in(local, lazy_caller_id(call), key)
    })?;
    spend(call, removed);
    Ok(atoms::TRUE.word())
}

/// take(Table, Key) -> [Object].
pub fn take(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        let mut found = FoundObjects::new(call);
        let caller_key = call.args[1];
        at_key(call, table, |key| {
            let visit = |stored: Stored<'_>| found.add(caller_key, stored);
            table.take_in(local, lazy_caller_id(call), key, visit)
        })?;
        Ok(found.list(call, local))
    })
}

//! `update_counter` and `update_element`: from the arguments of a call to operations of the engine.
//!
//! The engine applies the operations under the leaf's lock (`larder`'s `ops/update`). Those of
//! `update_counter` are decoded there, one by one, as it iterates over them: a long list takes no
//! memory, and the first wrong operation in the list is the one that is reported, as in `ets`. The
//! new elements of `update_element` are encoded beforehand.

use super::single::{is_long, spend, spend_bytes, with_key};
use super::trees::Trees;
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::heap::ListBuilder;
use crate::layout;
use crate::sys::*;
use crate::tables::{self, caller_id, lazy_caller_id, refused, reply_or_raise};
use crate::terms::atoms;
use crate::terms::decode;
use crate::terms::encode::{self, stack_bytes, Row, Writer};
use larder::host::{CounterOp, CounterOps, EngineTable, Error, Local, MapHost, SmallOp, Sums};
use larder_term::number::Number;
use larder_term::object::ObjectRef;
use larder_term::{Mode, Term, TermRef};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// An integer of any size.
#[inline]
fn integer(call: &Call<'_>, word: Word) -> Result<Number, Raise> {
    match layout::small(word) {
        Some(value) => Ok(Number::Int(value)),
        None => large_integer(call, word),
    }
}

#[cold]
fn large_integer(call: &Call<'_>, word: Word) -> Result<Number, Raise> {
    // Anything else may be large, and the leaf is locked. So it is refused unread.
    tables::integer(call, word).ok_or(BADARG)?;
    let copy = encode::copied(call.env, word)?;
    Number::from_term(copy.term().ok_or(BADARG)?)
        .filter(Number::is_integer)
        .ok_or(BADARG)
}

/// The operations of `update_counter`, which are decoded one by one: Increment |
/// {Pos, Increment} | {Pos, Increment, Threshold, SetValue} | a list of such tuples.
///
/// If a term isn't a valid operation, or is the tail of an improper list, that is an error. So
/// the engine reports the first wrong operation, as `ets` does.
#[derive(Clone, Copy)]
struct CounterTerms<'c, 'a> {
    call: &'c Call<'a>,
    keypos: usize,
    /// The rest that is still to be decoded: the whole argument at first, and `[]` at the end.
    rest: Word,
    is_list: bool,
}

impl<'c, 'a> CounterTerms<'c, 'a> {
    #[inline]
    fn new(call: &'c Call<'a>, table: &EngineTable, ops: Word) -> Self {
        CounterTerms {
            call,
            keypos: table.keypos(),
            rest: ops,
            is_list: layout::is_cell(ops) || ops == layout::NIL,
        }
    }
}

impl CounterTerms<'_, '_> {
    /// The next term, which should be an operation; `None` at the end.
    ///
    /// # Errors
    /// The list is improper.
    #[inline]
    fn next_term(&mut self) -> Result<Option<Word>, Raise> {
        match layout::cell(self.rest) {
            Some((op, tail)) => {
                self.rest = tail;
                Ok(Some(op))
            }
            None if self.rest == layout::NIL => Ok(None),
            // An improper tail.
            None if self.is_list => Err(BADARG),
            // The argument is no list: it is a single operation, or just an increment.
            None => Ok(Some(std::mem::replace(&mut self.rest, layout::NIL))),
        }
    }

    fn next_op(&mut self) -> Result<Option<CounterOp>, Raise> {
        let Some(word) = self.next_term()? else {
            return Ok(None);
        };
        let op = match layout::tuple(word) {
            Some(parts) => counter_op(self.call, parts),
            None if self.is_list => Err(BADARG),
            // An increment of the element after the key.
            None => plain_addition(self.call, self.keypos + 1, word),
        };
        op.map(Some)
    }
}

impl CounterOps for CounterTerms<'_, '_> {
    type Op = CounterOp;

    fn next(&mut self) -> Result<Option<CounterOp>, Error> {
        // The engine has no error for a plain `badarg`. This one is raised as that.
        self.next_op().map_err(|_| Error::NotInteger)
    }

    #[inline]
    fn next_small(&mut self) -> Option<Option<SmallOp>> {
        let Some(word) = self.next_term().ok()? else {
            return Some(None);
        };
        let (pos, incr, limit) = match layout::tuple(word) {
            Some(&[place, incr]) => (layout::small(place)?, incr, None),
            Some(&[place, incr, threshold, value]) => {
                let limit = (layout::small(threshold)?, layout::small(value)?);
                (layout::small(place)?, incr, Some(limit))
            }
            Some(_) => return None,
            None if self.is_list => return None,
            None => (self.keypos as i64 + 1, word, None),
        };
        let pos = usize::try_from(pos).ok()?;
        Some(Some(SmallOp::new(pos, layout::small(incr)?, limit)))
    }
}

/// The result of `update_counter`: a list of new values if the operations are a list, and otherwise
/// the single new value. It is built on the caller's heap while the engine applies the operations.
struct NewValues<'c, 'a> {
    call: &'c Call<'a>,
    is_list: bool,
    list: ListBuilder<'c>,
    only: Word,
}

impl<'c, 'a> NewValues<'c, 'a> {
    #[inline]
    fn new(call: &'c Call<'a>, is_list: bool) -> Self {
        NewValues {
            call,
            is_list,
            list: ListBuilder::new(&call.heap),
            only: layout::NIL,
        }
    }
}

impl Sums for NewValues<'_, '_> {
    #[inline]
    fn clear(&mut self) {
        // A single value is overwritten.
        if self.list.len() > 0 {
            *self = NewValues::new(self.call, self.is_list);
        }
    }

    #[inline(always)]
    fn push(&mut self, sum: &Number) {
        let word = number(self.call, sum);
        match self.is_list {
            true => self.list.next().fill(word),
            false => self.only = word,
        }
    }
}

/// Decodes an operation, given the elements of its tuple.
fn counter_op(call: &Call<'_>, parts: &[Word]) -> Result<CounterOp, Raise> {
    // The counter's place: Pos | {Pos, MapKey} | {Pos, MapKey, Initial}.
    // The number of parts tells the forms apart.
    let place = *parts.first().ok_or(BADARG)?;
    match layout::tuple(place) {
        None => addition(call, position(place)?, parts),
        Some(place) => counter_in_map(call, place, parts),
    }
}

/// The operation that adds to the element at a position.
fn plain_addition(call: &Call<'_>, pos: usize, incr: Word) -> Result<CounterOp, Raise> {
    Ok(CounterOp::new(pos, integer(call, incr)?))
}

/// Decodes what an operation adds to the element at a position, given the elements of its tuple.
fn addition(call: &Call<'_>, pos: usize, parts: &[Word]) -> Result<CounterOp, Raise> {
    match *parts {
        [_, incr] => plain_addition(call, pos, incr),
        [_, incr, threshold, value] => {
            let limit = (integer(call, threshold)?, integer(call, value)?);
            Ok(CounterOp::limited(
                pos,
                integer(call, incr)?,
                limit.0,
                limit.1,
            ))
        }
        _ => Err(BADARG),
    }
}

#[cold]
#[inline(never)]
fn counter_in_map(call: &Call<'_>, place: &[Word], parts: &[Word]) -> Result<CounterOp, Raise> {
    let op = addition(call, position(*place.first().ok_or(BADARG)?)?, parts)?;
    let (key, initial) = match *place {
        [_, key] => (key, None),
        [_, key, initial] => (key, Some(integer(call, initial)?)),
        _ => return Err(BADARG),
    };
    let key = super::options::owned(call, key)?;
    Ok(op.in_map(key, initial))
}

/// Reads a position. A negative one becomes 0: no object has an element there, so the engine
/// refuses it.
#[inline]
pub fn position(word: Word) -> Result<usize, Raise> {
    let position = layout::small(word).ok_or(BADARG)?;
    Ok(usize::try_from(position).unwrap_or(0))
}

/// update_counter(Table, Key, Ops) -> Value | [Value] | badkey: there is no object. With a default,
/// update_counter(Table, Key, Ops, Default) -> Value | [Value].
///
/// That there is no object isn't an exception here: one would take longer than the call.
pub fn update_counter(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        let values = counter_of(call, table, local, call.args.get(3).copied())?;
        Ok(values.unwrap_or(atoms::BADKEY.word()))
    })
}

/// `update_counter`, once its table is known. `None` if there is no object.
#[inline(never)]
pub(super) fn counter_of(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    default: Option<Word>,
) -> Result<Option<Word>, Raise> {
    // 1. Refuse a default that isn't a tuple before the operations are read, but after the table
    //    was found and may be written.
    if !is_row(table, default) {
        let checked = reply_or_raise(call, table, table.check_write(caller_id(call)));
        return checked.and(Err(bad_default().unwrap_or(BADARG)));
    }
    // 2. The engine iterates over `ops` under the leaf's lock, applies all or none, and pushes the
    // new values. `host` writes maps of more than 32 keys, which only the emulator can do.
    let ops = CounterTerms::new(call, table, call.args[2]);
    let mut values = NewValues::new(call, ops.is_list);
    let mut host = Trees::new(call);
    let is_there = with_key(call, table, call.args[1], |key| loop {
        let out = &mut (&mut values, &mut host as &mut dyn MapHost);
        match table.update_counter_in(local, lazy_caller_id(call), key, &ops, out) {
            Ok(()) => return Ok(true),
            Err(Error::BadKey) if default.is_none() => return Ok(false),
            // 3. If there is no object, one made of the default is inserted. If there is one now,
            //    start again.
            Err(Error::BadKey) => {
                let inserted = with_row(call, table, local, default, |local, row| {
                    table.insert_counter_in(local, lazy_caller_id(call), row, &ops, out)
                })?;
                if inserted {
                    return Ok(true);
                }
            }
            other => return reply_or_raise(call, table, other).map(|()| true),
        }
    })?;
    if !is_there {
        return Ok(None);
    }
    spend(call, values.list.len());
    spend_bytes(call, local, host.finish());
    Ok(Some(match values.is_list {
        true => values.list.list(),
        false => values.only,
    }))
}

#[inline]
fn number(call: &Call<'_>, value: &Number) -> Word {
    match value {
        Number::Int(value) => call.int(*value),
        large => large_number(call, large),
    }
}

#[cold]
fn large_number(call: &Call<'_>, value: &Number) -> Word {
    Term::build(|out| value.encode(out))
        .map_or(layout::NIL, |term| decode::term(&call.heap, term.as_ref()))
}

/// Whether `ets` of the host's release refuses a default without a key at once, with a cause. An
/// earlier one does so when it needs the key, and gives no cause if the default is no tuple.
static CHECKS_DEFAULTS: AtomicBool = AtomicBool::new(false);

/// Sets how defaults are refused. Called when the library is loaded.
pub fn check_defaults(at_once: bool) {
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    CHECKS_DEFAULTS.store(at_once, Ordering::Relaxed);
}

/// The exception for a default that `is_row` refuses, if it has a cause.
#[cold]
fn bad_default() -> Option<Raise> {
    // Ordering: Relaxed, see `check_defaults`.
    let checks = CHECKS_DEFAULTS.load(Ordering::Relaxed);
    checks.then_some(Raise::Cause(atoms::DEFAULT))
}

/// Whether a default, if there is one, is a tuple; and if defaults are checked at once, whether it
/// has a key.
#[inline]
fn is_row(table: &EngineTable, default: Option<Word>) -> bool {
    default.is_none_or(|default| {
        // Ordering: Relaxed, see `check_defaults`.
        layout::tuple(default).is_some_and(|elements| {
            elements.len() >= table.keypos() || !CHECKS_DEFAULTS.load(Ordering::Relaxed)
        })
    })
}

/// Runs `f` with the default as an object of the table. Its key is replaced by that of the call.
#[inline(never)]
fn with_row<R>(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    default: Option<Word>,
    f: impl FnOnce(&mut Local, &ObjectRef<'_>) -> Result<R, Error>,
) -> Result<R, Raise> {
    // A default that isn't a tuple has no key, and is refused.
    let elements = default.and_then(layout::tuple).unwrap_or(&[]);
    if elements.len() < table.keypos() {
        return Err(Raise::Cause(atoms::DEFAULT));
    }
    let (mut key, mut value) = (stack_bytes(), stack_bytes());
    let mut row = Row::at([&mut key, &mut value], call.env);
    // As in `ets`, the call's key replaces that of the default.
    row.write_with_key(table, elements, call.args[1])?;
    spend_bytes(call, local, row.encoded_len());
    reply_or_raise(call, table, f(local, &row.object()))
}

/// update_element(Table, Key, {Pos, Value} | [{Pos, Value}]) -> boolean(), and with a default
/// update_element(Table, Key, {Pos, Value} | [{Pos, Value}], Default) -> true.
pub fn update_element(call: &Call<'_>) -> Reply {
    tables::with_local(call, |table, local| {
        update_element_of(call, table, local, call.args.get(3).copied())
    })
}

/// `update_element`, once its table is known.
#[inline(never)]
pub(super) fn update_element_of(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    default: Option<Word>,
) -> Reply {
    // One operation is the usual case.
    let Some(&[place, value]) = layout::tuple(call.args[2]) else {
        return update_element_of_list(call, table, local, default);
    };
    // 1. Read the position, and write the new element on the stack.
    let given = [element_op(place, value)];
    // Without an object, a costly element needn't be encoded.
    if is_costly(value) && default.is_none() && is_absent(call, table, local)? {
        return Ok(atoms::FALSE.word());
    }
    let mut stack = stack_bytes();
    let mut term = Writer::at(&mut stack, call.env, Mode::Shared);
    if term.term(value).is_err() {
        return refuse_element(call, table, is_row(table, default));
    }
    let ops = [(given[0].0, term.as_term())];
    spend_bytes(call, local, term.len());
    replace(call, table, local, default, (&given, &ops))
}

/// `update_element_of` of a list, or of something that is no operation.
#[inline(never)]
fn update_element_of_list(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    default: Option<Word>,
) -> Reply {
    // 1. Read the positions, and write the new elements on the stack, one after the other.
    let (given, count) = read_elements(call.args[2]);
    spend(call, count);
    let any_is_costly = given.iter().any(|&(_, value)| is_costly(value));
    // As in `update_element_of`.
    if any_is_costly && default.is_none() && is_absent(call, table, local)? {
        return Ok(atoms::FALSE.word());
    }
    let mut stack = stack_bytes();
    let mut terms = Writer::at(&mut stack, call.env, Mode::Shared);
    let mut each = given.iter();
    if each.try_for_each(|&(_, value)| terms.term(value)).is_err() {
        return refuse_element(call, table, is_row(table, default));
    }
    let places = given.iter().map(|op| op.0);
    let ops = places.zip(terms.terms()).collect::<SmallVec<[_; 4]>>();
    spend_bytes(call, local, terms.len());
    replace(call, table, local, default, (&given, &ops))
}

/// Whether encoding an element takes so long that `update_element` first looks whether there is an
/// object. If there is none, this look-up is the instant of the call.
#[inline]
fn is_costly(value: Word) -> bool {
    !layout::is_immediate(value) && is_long(&[value], 16)
}

/// Operations of `update_element` as they were given, and as the engine gets them.
type GivenElements<'g, 't> = (&'g [(usize, Word)], &'g [(usize, TermRef<'t>)]);

/// (2) to (4) of `update_element_of`: replaces the elements.
// Not inlined, so that there is one copy of all that the engine does.
#[inline(never)]
fn replace(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    default: Option<Word>,
    (given, ops): GivenElements<'_, '_>,
) -> Reply {
    if !is_row(table, default) {
        return refuse_element(call, table, false);
    }
    // 2. The engine replaces all elements, or none.
    let mut stack = stack_bytes();
    let mut key = Writer::at(&mut stack, call.env, Mode::Inline);
    key.key(call.args[1], table.key_form())?;
    loop {
        match table.update_element_in(local, lazy_caller_id(call), &key, ops) {
            // 3. If there is no object, one made of the default is inserted. If there is one now,
            //    start again.
            Ok(false) if default.is_some() => {
                if default_with(call, table, local, default, (given, ops))? {
                    return Ok(atoms::TRUE.word());
                }
            }
            Ok(found) => return Ok(boolean(found)),
            Err(error) => return Err(refused_element(call, table, given, &error)),
        }
    }
}

/// Inserts an object made of the default, with these elements. Returns whether it did.
#[inline(never)]
fn default_with(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    local: &mut Local,
    default: Option<Word>,
    (given, ops): GivenElements<'_, '_>,
) -> Result<bool, Raise> {
    with_row(call, table, local, default, |local, row| {
        Ok(table.insert_element_in(local, lazy_caller_id(call), row, ops))
    })?
    .map_err(|error| refused_element(call, table, given, &error))
}

/// 4. The exception for an error of the engine, as `ets` raises it.
#[cold]
fn refused_element(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    given: &[(usize, Word)],
    error: &Error,
) -> Raise {
    match error {
        Error::Position if given.iter().any(|op| op.0 == NO_PLACE) => BADARG,
        Error::TableType => Raise::Cause(atoms::NONE),
        error => refused(call, table, error),
    }
}

/// Whether the table may be written and has no object with the key. In a bag, which
/// `update_element` refuses, `false`.
#[inline(never)]
fn is_absent(call: &Call<'_>, table: &Arc<EngineTable>, local: &mut Local) -> Result<bool, Raise> {
    reply_or_raise(call, table, table.may_write(lazy_caller_id(call)))?;
    with_key(call, table, call.args[1], |key| {
        // The right to write was checked, so act in the owner's name.
        let is_there = reply_or_raise(call, table, table.member_in(local, table.owner(), key))?;
        Ok(!is_there && table.kind().is_unique())
    })
}

/// Refuses `update_element` for its arguments. `has_row` is that of `is_row`.
#[cold]
fn refuse_element(call: &Call<'_>, table: &Arc<EngineTable>, has_row: bool) -> Reply {
    reply_or_raise(call, table, table.check_write(caller_id(call)))?;
    Err(match bad_default() {
        Some(raise) if !has_row => raise,
        _ if table.kind().is_unique() => BADARG,
        _ => Raise::Cause(atoms::NONE),
    })
}

/// Positions and the new elements for them.
type ElementOps = SmallVec<[(usize, Word); 4]>;

/// A position that no object has. It stands for a malformed operation, and the engine refuses it
/// when it gets there.
const NO_PLACE: usize = usize::MAX;

/// Reads [{Pos, Value}]. Also returns the number of operations. If several have the same position,
/// the last one counts. Anything else is recorded as a malformed operation.
#[inline(never)]
fn read_elements(ops: Word) -> (ElementOps, usize) {
    let (mut given, mut count, mut ops) = (ElementOps::new(), 0, layout::elements(ops));
    for op in ops.by_ref() {
        note_element(&mut given, op);
        count += 1;
    }
    // No list, or an improper tail.
    if ops.rest != layout::NIL {
        note_element(&mut given, layout::NIL);
    }
    (given, count)
}

/// Records an operation. If one of the last few has the same position, replaces its value. So a
/// long list that changes few elements stays short for the engine, which drops other duplicates.
#[inline]
fn note_element(given: &mut ElementOps, op: Word) {
    const LAST: usize = 8;
    // A malformed operation is recorded as one, and reported in its turn.
    let (place, value) = match layout::tuple(op) {
        Some(&[place, value]) => element_op(place, value),
        _ => (NO_PLACE, layout::NIL),
    };
    match given.iter_mut().rev().take(LAST).find(|op| op.0 == place) {
        Some(op) => op.1 = value,
        None => given.push((place, value)),
    }
}

/// An operation.
#[inline]
fn element_op(place: Word, value: Word) -> (usize, Word) {
    (position(place).unwrap_or(NO_PLACE), value)
}

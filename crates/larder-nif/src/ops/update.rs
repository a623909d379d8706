//! update_counter and update_element.

use super::single::{spend, with_key};
use super::trees::Trees;
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::layout;
use crate::sys::*;
use crate::tables::{self, answer, asker, who};
use crate::terms::atoms;
use crate::terms::decode;
use crate::terms::encode::{self, stack_bytes, Row, Unreadable};
use larder::{CounterOp, Error, Local, MapHost, Sums, Table};
use larder_term::number::Number;
use larder_term::object::ObjectRef;
use larder_term::{Encoder, Mode, Term, TermBuf, TermRef};
use smallvec::SmallVec;
use std::sync::Arc;

/// A term of the host in a buffer of its own.
struct Taken(TermBuf);

impl Taken {
    fn new(call: &Call<'_>, word: Word) -> Result<Taken, Raise> {
        let mut buffer = TermBuf::new(Mode::Shared);
        let pushed: Result<(), Unreadable> = buffer.encode(|out| encode::term(call.env, word, out));
        pushed.map_err(|_| BADARG)?;
        Ok(Taken(buffer))
    }

    fn term(&self) -> Result<TermRef<'_>, Raise> {
        self.0.term().ok_or(BADARG)
    }
}

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
    let taken = Taken::new(call, word)?;
    Number::from_term(taken.term()?)
        .filter(Number::is_integer)
        .ok_or(BADARG)
}

/// What to do to counters.
type CounterOps = SmallVec<[CounterOp; 4]>;

/// Increment | {Pos, Increment} | {Pos, Increment, Threshold, SetValue} | a list of such tuples;
/// whether it is a list. For something that is none, and what follows it, stands an op that the
/// engine refuses when it comes to it: a float added at a place that was named before. With none
/// before it is an error at once.
#[inline]
fn counter_ops(
    call: &Call<'_>,
    table: &Table,
    word: Word,
    ops: &mut CounterOps,
) -> Result<bool, Raise> {
    if !layout::is_cell(word) {
        // One operation: a tuple, or an increment of the element behind the key.
        ops.push(match layout::tuple(word) {
            Some(parts) => counter_op(call, parts)?,
            None if word == layout::NIL => return Ok(true),
            None => CounterOp::new(table.keypos() + 1, integer(call, word)?),
        });
        return Ok(false);
    }
    let mut rest = word;
    while let Some((op, tail)) = layout::cell(rest) {
        // A list. The engine looks at operations in order, and the first that is wrong says what is
        // raised, as in `ets`; so what can be no operation becomes one that the engine refuses.
        let parts = layout::tuple(op).ok_or(BADARG);
        match (parts.and_then(|parts| counter_op(call, parts)), ops.first()) {
            (Ok(op), _) => ops.push(op),
            (Err(_), Some(_)) => break,
            (Err(error), None) => return Err(error),
        }
        rest = tail;
        if ops.len() == MANY {
            ops.reserve(length(rest));
        }
    }
    if rest != layout::NIL {
        let named = ops.first().map_or(0, CounterOp::pos);
        ops.push(CounterOp::new(named, Number::Float(0.0)));
    }
    Ok(true)
}

/// Ops of a list after which the others are counted, so that memory for them is taken once.
const MANY: usize = 64;

/// The number of a list's elements.
fn length(mut list: Word) -> usize {
    let mut count = 0;
    while let Some((_, tail)) = layout::cell(list) {
        (count, list) = (count + 1, tail);
    }
    count
}

#[inline]
fn counter_op(call: &Call<'_>, parts: &[Word]) -> Result<CounterOp, Raise> {
    // Where it counts: Pos | {Pos, MapKey} | {Pos, MapKey, Initial}.
    let place = *parts.first().ok_or(BADARG)?;
    let in_map = layout::tuple(place);
    let pos = position(
        in_map
            .and_then(|parts| parts.first().copied())
            .unwrap_or(place),
    )?;
    let op = match *parts {
        [_, incr] => CounterOp::new(pos, integer(call, incr)?),
        [_, incr, threshold, value] => CounterOp::limited(
            pos,
            integer(call, incr)?,
            integer(call, threshold)?,
            integer(call, value)?,
        ),
        _ => return Err(BADARG),
    };
    match in_map {
        None => Ok(op),
        Some(parts) => counter_in_map(call, op, parts),
    }
}

#[cold]
fn counter_in_map(call: &Call<'_>, op: CounterOp, parts: &[Word]) -> Result<CounterOp, Raise> {
    let (key, initial) = match *parts {
        [_, key] => (key, None),
        [_, key, initial] => (key, Some(integer(call, initial)?)),
        _ => return Err(BADARG),
    };
    let key = Term::from(Taken::new(call, key)?.term()?);
    Ok(op.in_map(key, initial))
}

/// A position; one that cannot be is 0, which no object has.
#[inline]
pub fn position(word: Word) -> Result<usize, Raise> {
    let position = layout::small(word).ok_or(BADARG)?;
    Ok(usize::try_from(position).unwrap_or(0))
}

/// update_counter(Table, Key, Ops) -> Value | [Value].
pub fn update_counter(call: &Call<'_>) -> Reply {
    counter(call, None)
}

/// update_counter(Table, Key, Ops, Default) -> Value | [Value].
pub fn update_counter_default(call: &Call<'_>) -> Reply {
    counter(call, Some(call.args[3]))
}

#[inline]
fn counter(call: &Call<'_>, default: Option<Word>) -> Reply {
    tables::with_local(call, call.args[0], |table, local| {
        counter_of(call, (table, local), default)
    })
}

/// `update_counter`, once its table is known.
#[inline(never)]
pub(super) fn counter_of(
    call: &Call<'_>,
    (table, local): (&Arc<Table>, &mut Local),
    default: Option<Word>,
) -> Reply {
    // 1. The operations.
    let mut ops = CounterOps::new();
    let many = match counter_ops(call, table, call.args[2], &mut ops) {
        Ok(many) if is_row(default) => many,
        other => return Err(refuse_counter(call, table, default, other.err())),
    };
    // 2. The engine applies them, all or none.
    let (mut sums, mut host) = (Sums::new(), Trees::new(call));
    let result = with_key(call, table, call.args[1], |key| {
        let out = (&mut sums, &mut host as &mut dyn MapHost);
        match table.update_counter_in(local, asker(call), key, &ops, None, out) {
            // 3. No object: again, with one made of the default, in case there is none still.
            Err(Error::BadKey) if default.is_some() => with_row(call, table, default, |row| {
                let out = (&mut sums, &mut host as &mut dyn MapHost);
                let row = Some(row);
                let done = table.update_counter_in(local, asker(call), key, &ops, row, out);
                answer(call, table, done)
            }),
            other => answer(call, table, other),
        }
    });
    result?;
    spend(call, sums.len());
    // 4. One sum, or a list of them; it is made from its end.
    if let (false, [sum]) = (many, &sums[..]) {
        return Ok(number(call, sum));
    }
    let sums = sums.iter().rev();
    Ok(sums.fold(layout::NIL, |list, sum| {
        call.heap.cell(number(call, sum), list)
    }))
}

/// Why `update_counter` is refused for what is seen in its arguments: the ops, if there is an error
/// in them, or else the default.
#[cold]
fn refuse_counter(
    call: &Call<'_>,
    table: &Arc<Table>,
    default: Option<Word>,
    ops: Option<Raise>,
) -> Raise {
    let why = || -> Result<Raise, Raise> {
        // A default that is none is the first thing to be wrong here.
        answer(call, table, table.check_write(who(call)))?;
        if !is_row(default) {
            return Ok(BADARG);
        }
        if !table.kind().is_unique() {
            return Ok(Raise::Cause(atoms::TABLE_TYPE));
        }
        // A key that is not there is worse than anything that was to be done with it.
        if default.is_none() && !has_key(call, table)? {
            return Ok(Raise::Cause(atoms::BADKEY));
        }
        Ok(ops.unwrap_or(BADARG))
    };
    why().unwrap_or_else(|raise| raise)
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

/// Whether a default, if there is one, can be an object.
#[inline]
fn is_row(default: Option<Word>) -> bool {
    default.is_none_or(|default| layout::tuple(default).is_some())
}

/// Runs `f` with the default, under the call's key, as an object of the table.
#[inline(never)]
fn with_row<R>(
    call: &Call<'_>,
    table: &Table,
    default: Option<Word>,
    f: impl FnOnce(ObjectRef<'_>) -> Result<R, Raise>,
) -> Result<R, Raise> {
    let elements = default.and_then(layout::tuple).unwrap_or(&[]);
    let mut elements: SmallVec<[Word; 24]> = elements.into();
    let Some(key) = elements.get_mut(table.keypos() - 1) else {
        return Err(Raise::Cause(atoms::DEFAULT));
    };
    // The default's key counts for nothing: the call's takes its place.
    *key = call.args[1];
    let (mut key, mut value) = (stack_bytes(), stack_bytes());
    let mut row = Row::at([&mut key, &mut value], call.env);
    row.write(table, &elements).map_err(|_| BADARG)?;
    f(row.object())
}

fn has_key(call: &Call<'_>, table: &Arc<Table>) -> Result<bool, Raise> {
    with_key(call, table, call.args[1], |key| {
        answer(call, table, table.member(who(call), key))
    })
}

/// update_element(Table, Key, {Pos, Value} | [{Pos, Value}]) -> boolean().
pub fn update_element(call: &Call<'_>) -> Reply {
    elements(call, None)
}

/// update_element(Table, Key, {Pos, Value} | [{Pos, Value}], Default) -> true.
pub fn update_element_default(call: &Call<'_>) -> Reply {
    elements(call, Some(call.args[3]))
}

#[inline]
fn elements(call: &Call<'_>, default: Option<Word>) -> Reply {
    tables::with_local(call, call.args[0], |table, local| {
        elements_of(call, (table, local), default)
    })
}

/// `update_element`, once its table is known.
#[inline(never)]
pub(super) fn elements_of(
    call: &Call<'_>,
    (table, local): (&Arc<Table>, &mut Local),
    default: Option<Word>,
) -> Reply {
    // The new elements are encoded to the thread's own buffer, which keeps its memory from call
    // to call.
    let mut terms = local.spare_terms.take().unwrap_or_default();
    let done = replace(call, (table, local), default, &mut terms);
    terms.clear();
    local.spare_terms = Some(terms);
    done.map(boolean)
}

/// `update_element`, whose new elements go through `terms`.
#[inline]
fn replace(
    call: &Call<'_>,
    (table, local): (&Arc<Table>, &mut Local),
    default: Option<Word>,
    terms: &mut TermBuf,
) -> Result<bool, Raise> {
    // 1. The new elements, as one tuple of the engine's, and their positions.
    let mut places = Places::new();
    let read = terms.encode(|out| element_ops(call, call.args[2], &mut places, out));
    let new = match (read, terms.term().and_then(TermRef::as_tuple)) {
        (Ok(()), Some(new)) if is_row(default) => new,
        _ => return refuse_element(call, table),
    };
    // 2. The engine replaces them, all or none.
    let ops: SmallVec<[(usize, TermRef<'_>); 4]> = places.iter().copied().zip(new.iter()).collect();
    let done = with_key(call, table, call.args[1], |key| {
        let mut done = table.update_element_in(local, asker(call), key, &ops, None);
        // 3. No object: one is made of the default.
        if let (Ok(false), Some(_)) = (&done, default) {
            done = with_row(call, table, default, |row| {
                Ok(table.update_element_in(local, asker(call), key, &ops, Some(row)))
            })?;
        }
        done.or_else(|error| match error {
            // 4. Errors as `ets` has them.
            Error::Position if places.contains(&NO_PLACE) => Err(BADARG),
            Error::TableType => Err(Raise::Cause(atoms::NONE)),
            error => answer(call, table, Err(error)),
        })
    });
    spend(call, ops.len());
    done
}

/// Refuses `update_element` for its arguments.
#[cold]
fn refuse_element(call: &Call<'_>, table: &Arc<Table>) -> Result<bool, Raise> {
    answer(call, table, table.check_write(who(call)))?;
    Err(if table.kind().is_unique() {
        BADARG
    } else {
        Raise::Cause(atoms::NONE)
    })
}

/// The positions of new elements.
type Places = SmallVec<[usize; 4]>;

/// A position that no object has, for what is no pair of a position and an element: the engine
/// refuses it when it comes to it.
const NO_PLACE: usize = usize::MAX;

/// {Pos, Value} | [{Pos, Value}]. Pushes a tuple of the values.
#[inline]
fn element_ops(
    call: &Call<'_>,
    word: Word,
    places: &mut Places,
    out: &mut Encoder<'_>,
) -> Result<(), Unreadable> {
    if !layout::is_cell(word) && word != layout::NIL {
        out.begin_tuple(1);
        return element_op(call, word, places, out);
    }
    let (mut count, mut rest) = (0, word);
    while let Some((_, tail)) = layout::cell(rest) {
        (count, rest) = (count + 1, tail);
    }
    // An improper end counts for one more, which the engine refuses when it comes to it.
    out.begin_tuple(count + usize::from(rest != layout::NIL));
    places.reserve(count);
    rest = word;
    while let Some((op, tail)) = layout::cell(rest) {
        element_op(call, op, places, out)?;
        rest = tail;
    }
    if rest != layout::NIL {
        element_op(call, layout::NIL, places, out)?;
    }
    Ok(())
}

#[inline]
fn element_op(
    call: &Call<'_>,
    op: Word,
    places: &mut Places,
    out: &mut Encoder<'_>,
) -> Result<(), Unreadable> {
    let (place, value) = match layout::tuple(op) {
        Some(&[place, value]) => (position(place).unwrap_or(NO_PLACE), value),
        _ => (NO_PLACE, layout::NIL),
    };
    places.push(place);
    encode::term(call.env, value, out)
}

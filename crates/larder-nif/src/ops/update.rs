//! update_counter and update_element.

use super::single::{with_key, with_local_key, with_quick_key};
use crate::atoms::{self, Known};
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::encode;
use crate::layout;
use crate::quick::{place, Bytes};
use crate::sys::*;
use crate::tables::{self, answer, asker, natural, who};
use crate::{decode, encode::Unreadable};
use larder::{CounterOp, Error, Local, NewRow, OwnerId, Table};
use larder_term::number::Number;
use larder_term::{Mode, Term, TermBuf, TermRef};
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
fn integer(call: &Call<'_>, word: Word) -> Result<Number, Raise> {
    if let Some(value) = layout::small(word) {
        return Ok(Number::Int(value));
    }
    let taken = Taken::new(call, word)?;
    Number::from_term(taken.term()?)
        .filter(Number::is_integer)
        .ok_or(BADARG)
}

/// What to do, and whether it was said as a list.
struct Ops {
    ops: SmallVec<[CounterOp; 4]>,
    many: bool,
}

/// Increment | {Pos, Increment} | {Pos, Increment, Threshold, SetValue} | a list of such tuples. For something that
/// is none, and what follows it, stands an op that the engine refuses when it comes to it: a float added at a place that was named before. With
/// none before it is an error at once.
fn counter_ops(call: &Call<'_>, table: &Table, word: Word) -> Result<Ops, Raise> {
    let mut ops = SmallVec::new();
    if layout::tuple(word).is_some() {
        ops.push(counter_op(call, word)?);
        return Ok(Ops { ops, many: false });
    }
    let mut rest = word;
    while let Some((op, tail)) = layout::cell(rest) {
        match (counter_op(call, op), ops.first()) {
            (Ok(op), _) => ops.push(op),
            (Err(_), Some(CounterOp { pos, .. })) => {
                return Ok(Ops {
                    ops: refused(ops.clone(), *pos),
                    many: true,
                })
            }
            (Err(error), None) => return Err(error),
        }
        rest = tail;
    }
    match ops.first() {
        _ if rest == layout::NIL => Ok(Ops { ops, many: true }),
        Some(CounterOp { pos, .. }) => Ok(Ops {
            ops: refused(ops.clone(), *pos),
            many: true,
        }),
        None => {
            ops.push(CounterOp {
                pos: table.keypos() + 1,
                incr: integer(call, word)?,
                limit: None,
            });
            Ok(Ops { ops, many: false })
        }
    }
}

fn refused(mut ops: SmallVec<[CounterOp; 4]>, pos: usize) -> SmallVec<[CounterOp; 4]> {
    ops.push(CounterOp {
        pos,
        incr: Number::Float(0.0),
        limit: None,
    });
    ops
}

fn counter_op(call: &Call<'_>, op: Word) -> Result<CounterOp, Raise> {
    let parts = layout::tuple(op).ok_or(BADARG)?;
    let limit = match parts {
        [_, _] => None,
        [_, _, threshold, value] => Some((integer(call, *threshold)?, integer(call, *value)?)),
        _ => return Err(BADARG),
    };
    Ok(CounterOp {
        pos: position(parts[0])?,
        incr: integer(call, parts[1])?,
        limit,
    })
}

/// A position; one that cannot be is 0, which no object has.
fn position(word: Word) -> Result<usize, Raise> {
    let position = layout::small(word).ok_or(BADARG)?;
    Ok(usize::try_from(position).unwrap_or(0))
}

/// What an update of either sort takes: the right to write and a table of unique keys, before anything else is looked at.
fn check(call: &Call<'_>, table: &Arc<Table>, otherwise: Known) -> Result<OwnerId, Raise> {
    let who = who(call);
    answer(call, table, table.check_write(who))?;
    if !table.kind().is_unique() {
        return Err(Raise::Cause(otherwise));
    }
    Ok(who)
}

/// update_counter(Table, Key, Ops) -> Value | [Value].
pub fn update_counter(call: &Call<'_>) -> Reply {
    counter(call, None)
}

/// update_counter(Table, Key, Ops, Default) -> Value | [Value].
pub fn update_counter_default(call: &Call<'_>) -> Reply {
    counter(call, Some(call.args[3]))
}

/// Increment | {Pos, Increment}, both small.
#[inline]
fn simple_op(op: Word) -> Option<(Option<usize>, i64)> {
    if let Some(incr) = layout::small(op) {
        return Some((None, incr));
    }
    match layout::tuple(op)? {
        &[pos, incr] => Some((Some(natural(pos).ok()?), layout::small(incr)?)),
        _ => None,
    }
}

/// What nearly all updates of counters are: a small increment of one element that is there, of an object that is there.
#[inline]
fn simple_counter(call: &Call<'_>) -> Result<Option<Word>, Raise> {
    let Some((pos, incr)) = simple_op(call.args[2]) else {
        return Ok(None);
    };
    tables::with_local_first(
        call,
        call.args[0],
        |table, local| {
            with_quick_key(call, table, call.args[1], |key| {
                let sum = table.quick_add(local, asker(call), key, pos, incr)?;
                Some(Some(call.int(sum)))
            })
        },
        |call, table, local| add(call, (table, local), pos, incr),
    )
}

#[inline(never)]
fn add(
    call: &Call<'_>,
    (table, local): (&Arc<Table>, &mut Local),
    pos: Option<usize>,
    incr: i64,
) -> Result<Option<Word>, Raise> {
    with_local_key(call, table, local, call.args[1], |key, local| {
        let sum = table.add_in(local, asker(call), key, pos, incr);
        Ok(answer(call, table, sum)?.map(|sum| call.int(sum)))
    })
}

/// As `simple_counter`, for a list of such updates.
fn simple_counters(call: &Call<'_>) -> Result<Option<Word>, Raise> {
    let mut steps: SmallVec<[(Option<usize>, i64); 4]> = SmallVec::new();
    let mut rest = call.args[2];
    while let Some((op, tail)) = layout::cell(rest) {
        match simple_op(op) {
            // In a list, an increment alone is none.
            Some(step @ (Some(_), _)) if steps.len() < 16 => steps.push(step),
            _ => return Ok(None),
        }
        rest = tail;
    }
    if steps.is_empty() || rest != layout::NIL {
        return Ok(None);
    }
    tables::with_local(call, call.args[0], |table, local| {
        with_local_key(call, table, local, call.args[1], |key, local| {
            let mut sums = SmallVec::new();
            let done = table.add_many_in(local, asker(call), key, &steps, &mut sums);
            if !answer(call, table, done)? {
                return Ok(None);
            }
            let words: SmallVec<[Word; 4]> = sums.iter().map(|&sum| call.int(sum)).collect();
            Ok(Some(call.list(&words)))
        })
    })
}

fn counter(call: &Call<'_>, default: Option<Word>) -> Reply {
    let is_row = default.is_none_or(|default| layout::tuple(default).is_some());
    if is_row {
        let sums = if layout::is_cell(call.args[2]) {
            simple_counters(call)?
        } else {
            simple_counter(call)?
        };
        if let Some(sums) = sums {
            return Ok(sums);
        }
    }
    any_counter(call, default)
}

#[cold]
fn any_counter(call: &Call<'_>, default: Option<Word>) -> Reply {
    tables::with(call, call.args[0], |table| {
        // A default that is none is the first thing to be wrong here.
        answer(call, table, table.check_write(who(call)))?;
        if default.is_some_and(|default| layout::tuple(default).is_none()) {
            return Err(BADARG);
        }
        let who = check(call, table, atoms::TABLE_TYPE)?;
        let mut values = Vec::new();
        let ops = match counter_ops(call, table, call.args[2]) {
            // A key that is not there is worse than anything that was to be done with it.
            Err(_) if default.is_none() && !has_key(call, table)? => {
                return Err(Raise::Cause(atoms::BADKEY))
            }
            other => other?,
        };
        with_row(call, default, |row| {
            with_key(call, table, call.args[1], |key| {
                match table.update_counter(who, key, &ops.ops, row, &mut values) {
                    Err(Error::BadDefault) => Err(Raise::Cause(atoms::DEFAULT)),
                    other => answer(call, table, other),
                }
            })
        })?;
        let words: SmallVec<[Word; 4]> = values.iter().map(|value| number(call, value)).collect();
        match (ops.many, words.first()) {
            (false, Some(&value)) => Ok(value),
            _ => Ok(call.list(&words)),
        }
    })
}

fn number(call: &Call<'_>, value: &Number) -> Word {
    match value {
        Number::Int(value) => call.int(*value),
        other => Term::build(|out| other.encode(out))
            .map_or(layout::NIL, |term| decode::term(&call.heap, term.as_ref())),
    }
}

/// Runs `f` with the default object, if there is one.
fn with_row<R>(
    call: &Call<'_>,
    default: Option<Word>,
    f: impl FnOnce(Option<NewRow<'_>>) -> Result<R, Raise>,
) -> Result<R, Raise> {
    let Some(default) = default else {
        return f(None);
    };
    if layout::tuple(default).is_none() {
        return Err(BADARG);
    }
    let (tuple, key) = (Taken::new(call, default)?, Taken::new(call, call.args[1])?);
    f(Some(NewRow {
        key: key.term()?,
        tuple: tuple.term()?,
    }))
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

/// What nearly all updates of elements are: one small term in the place of an element that is there.
#[inline]
fn simple_element(call: &Call<'_>) -> Result<Option<bool>, Raise> {
    let mut place = place();
    let mut value = Bytes::at(&mut place);
    let parts = layout::tuple(call.args[2]).unwrap_or(&[]);
    let pos = match parts {
        &[pos, new] if value.term(call.env, new).is_some() => natural(pos).ok(),
        _ => None,
    };
    let Some(pos) = pos else { return Ok(None) };
    tables::with_local_first(
        call,
        call.args[0],
        |table, local| {
            with_quick_key(call, table, call.args[1], |key| {
                table.quick_set(local, asker(call), key, pos, value.as_term())?;
                Some(Some(true))
            })
        },
        |call, table, local| set(call, (table, local), pos, value.as_term()),
    )
}

#[inline(never)]
fn set(
    call: &Call<'_>,
    (table, local): (&Arc<Table>, &mut Local),
    pos: usize,
    value: TermRef<'_>,
) -> Result<Option<bool>, Raise> {
    with_local_key(call, table, local, call.args[1], |key, local| {
        answer(
            call,
            table,
            table.set_in(local, asker(call), key, pos, value),
        )
    })
}

fn elements(call: &Call<'_>, default: Option<Word>) -> Reply {
    if default.is_none() {
        if let Some(set) = simple_element(call)? {
            return Ok(boolean(set));
        }
    }
    any_elements(call, default)
}

#[cold]
fn any_elements(call: &Call<'_>, default: Option<Word>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let who = check(call, table, atoms::NONE)?;
        let (places, values) = element_ops(call, call.args[2])?;
        let malformed = places.contains(&usize::MAX);
        let ops: SmallVec<[(usize, TermRef<'_>); 4]> = places
            .into_iter()
            .zip(&values)
            .map(|(place, value)| Ok((place, value.term()?)))
            .collect::<Result<_, Raise>>()?;
        with_row(call, default, |row| {
            with_key(call, table, call.args[1], |key| {
                match table.update_element(who, key, &ops, row) {
                    Err(Error::BadDefault) => Err(Raise::Cause(atoms::DEFAULT)),
                    Err(Error::Position) if malformed => Err(BADARG),
                    other => answer(call, table, other),
                }
            })
        })
        .map(boolean)
    })
}

type ElementOps = (SmallVec<[usize; 4]>, Vec<Taken>);

/// {Pos, Value} | [{Pos, Value}]. What is none becomes one for a position that no object has, which the engine refuses when it comes to it.
fn element_ops(call: &Call<'_>, word: Word) -> Result<ElementOps, Raise> {
    let mut ops: ElementOps = (SmallVec::new(), Vec::new());
    let mut rest = word;
    if layout::tuple(word).is_some() {
        element_op(call, word, &mut ops)?;
        return Ok(ops);
    }
    while let Some((op, tail)) = layout::cell(rest) {
        element_op(call, op, &mut ops)?;
        rest = tail;
    }
    if rest != layout::NIL {
        element_op(call, layout::NIL, &mut ops)?;
    }
    Ok(ops)
}

fn element_op(call: &Call<'_>, op: Word, ops: &mut ElementOps) -> Result<(), Raise> {
    let (place, value) = match layout::tuple(op) {
        Some(&[place, value]) => (position(place).unwrap_or(usize::MAX), value),
        _ => (usize::MAX, layout::NIL),
    };
    ops.0.push(place);
    ops.1.push(Taken::new(call, value)?);
    Ok(())
}

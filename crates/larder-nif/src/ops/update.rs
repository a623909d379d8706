//! update_counter and update_element.

use super::single::with_key;
use crate::atoms::{self, Known};
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::encode::{self, list_cell, tuple_elements};
use crate::layout;
use crate::sys::*;
use crate::tables::{self, answer, who};
use crate::{decode, encode::Unreadable};
use larder::{CounterOp, Error, NewRow, OwnerId, Table};
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
    Number::from_term(taken.term()?).filter(Number::is_integer).ok_or(BADARG)
}

/// What to do, and whether it was said as a list.
struct Ops {
    ops: SmallVec<[CounterOp; 4]>,
    many: bool,
}

/// Increment | {Pos, Increment} | {Pos, Increment, Threshold, SetValue} | a list of such tuples.
fn counter_ops(call: &Call<'_>, table: &Table, word: Word) -> Result<Ops, Raise> {
    let mut ops = SmallVec::new();
    if let Some(parts) = tuple_elements(call.env, word) {
        ops.push(counter_op(call, parts)?);
        return Ok(Ops { ops, many: false });
    }
    let mut rest = word;
    while let Some((op, tail)) = list_cell(call.env, rest) {
        ops.push(counter_op(call, tuple_elements(call.env, op).ok_or(BADARG)?)?);
        rest = tail;
    }
    if rest == layout::NIL {
        return Ok(Ops { ops, many: true });
    }
    if !ops.is_empty() {
        return Err(BADARG);
    }
    ops.push(CounterOp { pos: table.keypos() + 1, incr: integer(call, word)?, limit: None });
    Ok(Ops { ops, many: false })
}

fn counter_op(call: &Call<'_>, parts: &[Word]) -> Result<CounterOp, Raise> {
    let limit = match parts {
        [_, _] => None,
        [_, _, threshold, value] => Some((integer(call, *threshold)?, integer(call, *value)?)),
        _ => return Err(BADARG),
    };
    Ok(CounterOp { pos: position(parts[0])?, incr: integer(call, parts[1])?, limit })
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

fn counter(call: &Call<'_>, default: Option<Word>) -> Reply {
    tables::with(call, call.args[0], |table| {
        // A default that is none is the first thing to be wrong here.
        answer(call, table, table.check_write(who(call)))?;
        if default.is_some_and(|default| tuple_elements(call.env, default).is_none()) {
            return Err(BADARG);
        }
        let who = check(call, table, atoms::TABLE_TYPE)?;
        let mut values = Vec::new();
        let ops = match counter_ops(call, table, call.args[2]) {
            // A key that is not there is worse than anything that was to be done with it.
            Err(_) if default.is_none() && !has_key(call, table)? => return Err(Raise::Cause(atoms::BADKEY)),
            other => other?,
        };
        with_row(call, default, |row| {
            with_key(call, table, call.args[1], |key| match table.update_counter(who, key, &ops.ops, row, &mut values) {
                Err(Error::BadDefault) => Err(Raise::Cause(atoms::DEFAULT)),
                other => answer(call, table, other),
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
        other => Term::build(|out| other.encode(out)).map_or(layout::NIL, |term| decode::term(call.env, term.as_ref())),
    }
}

/// Runs `f` with the default object, if there is one.
fn with_row<R>(call: &Call<'_>, default: Option<Word>, f: impl FnOnce(Option<NewRow<'_>>) -> Result<R, Raise>) -> Result<R, Raise> {
    let Some(default) = default else { return f(None) };
    if tuple_elements(call.env, default).is_none() {
        return Err(BADARG);
    }
    let (tuple, key) = (Taken::new(call, default)?, Taken::new(call, call.args[1])?);
    f(Some(NewRow { key: key.term()?, tuple: tuple.term()? }))
}

/// update_element(Table, Key, {Pos, Value} | [{Pos, Value}]) -> boolean().
pub fn update_element(call: &Call<'_>) -> Reply {
    elements(call, None)
}

/// update_element(Table, Key, {Pos, Value} | [{Pos, Value}], Default) -> true.
pub fn update_element_default(call: &Call<'_>) -> Reply {
    elements(call, Some(call.args[3]))
}

fn elements(call: &Call<'_>, default: Option<Word>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let who = check(call, table, atoms::NONE)?;
        let (places, values) = match element_ops(call, call.args[2]) {
            Ok(ops) => ops,
            // Nobody looks at what is to be done with an object that is not there.
            Err(_) if default.is_none() && !has_key(call, table)? => return Ok(atoms::FALSE.word()),
            Err(error) => return Err(error),
        };
        let ops: SmallVec<[(usize, TermRef<'_>); 4]> =
            places.into_iter().zip(&values).map(|(place, value)| Ok((place, value.term()?))).collect::<Result<_, Raise>>()?;
        with_row(call, default, |row| {
            with_key(call, table, call.args[1], |key| match table.update_element(who, key, &ops, row) {
                Err(Error::BadDefault) => Err(Raise::Cause(atoms::DEFAULT)),
                Err(Error::Position) => Err(BADARG),
                other => answer(call, table, other),
            })
        })
        .map(boolean)
    })
}

fn has_key(call: &Call<'_>, table: &Arc<Table>) -> Result<bool, Raise> {
    with_key(call, table, call.args[1], |key| answer(call, table, table.member(who(call), key)))
}

type ElementOps = (SmallVec<[usize; 4]>, Vec<Taken>);

fn element_ops(call: &Call<'_>, word: Word) -> Result<ElementOps, Raise> {
    let mut ops = (SmallVec::new(), Vec::new());
    let mut one = |parts: &[Word]| -> Result<(), Raise> {
        let [place, value] = *parts else { return Err(BADARG) };
        ops.0.push(position(place)?);
        ops.1.push(Taken::new(call, value)?);
        Ok(())
    };
    if let Some(parts) = tuple_elements(call.env, word) {
        one(parts)?;
        return Ok(ops);
    }
    let mut rest = word;
    while let Some((op, tail)) = list_cell(call.env, rest) {
        one(tuple_elements(call.env, op).ok_or(BADARG)?)?;
        rest = tail;
    }
    (rest == layout::NIL).then_some(ops).ok_or(BADARG)
}

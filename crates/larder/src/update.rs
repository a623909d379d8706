//! Counters and elements: changing some elements of one object.
//!
//! Everything is checked against the object under the leaf's lock before anything is written, so a call is all or nothing and no update is lost.
//! Linearisation point: the store that unlocks the leaf.
//!
//! A plain value is spliced: the other elements' bytes are copied as they are. A compressed one is unpacked and packed again.

use crate::error::Error;
use crate::local::Local;
use crate::owner::{OwnerId, Who};
use crate::raw;
use crate::scratch;
use crate::store::Index;
use crate::table::Table;
use crate::write::Written;
use larder_index::{Change, Unique};
use larder_term::number::{Number, NumberError};
use larder_term::object::{patch, ObjectBuf, ObjectEncoder, ObjectView, EXACT_KEY, HAS_HANDLES};
use larder_term::{Encoder, Mode, TermRef};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// One step of `update_counter`: adds to an element.
#[derive(Clone, Debug)]
pub struct CounterOp {
    /// The element, from 1.
    pub pos: usize,
    /// What is added; an integer.
    pub incr: Number,
    /// A threshold and a value: where the sum passes the threshold (in the direction of the increment, up for 0), the element becomes the value.
    pub limit: Option<(Number, Number)>,
}

/// The object that an update works on if there is none under the key.
#[derive(Clone, Copy)]
pub struct NewRow<'a> {
    /// The key that goes to the object's key position.
    pub key: TermRef<'a>,
    /// The object but for its key.
    pub tuple: TermRef<'a>,
}

/// New elements by position, ascending, one for each.
type Elements<'a> = SmallVec<[(usize, TermRef<'a>); 4]>;

/// More ops than these look at all elements once, not each for its own from the front.
const FEW: usize = 4;

/// The new elements that count: of several for one position the last.
fn last_of_each<'a>(ops: &[(usize, TermRef<'a>)]) -> Elements<'a> {
    let mut new = Elements::from_slice(ops);
    new.sort_by_key(|(pos, _)| *pos);
    new.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            *kept = *later;
        }
        same
    });
    new
}

impl Table {
    /// Adds to elements of the object under the index key; pushes the new value for each op to `out`. With `default`, an object that is not there is
    /// made of it first. Ops are applied in order; all or none.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `TableType` (bags), `BadKey`, `BadDefault`, `Keypos`, `Position`, `NotInteger`, `SystemLimit` (an integer too large).
    pub fn update_counter(
        &self,
        who: OwnerId,
        key: &[u8],
        ops: &[CounterOp],
        default: Option<NewRow<'_>>,
        out: &mut Vec<Number>,
    ) -> Result<(), Error> {
        self.check_write(who)?;
        if !self.kind().is_unique() {
            return Err(Error::TableType);
        }
        let keep = out.len();
        let mut plain = scratch::Plain::default();
        self.writing(|at| {
            let mut made = None;
            let written = self.change_one(
                at,
                self.unique(at)?,
                self.key(key),
                None,
                &mut |old, scratch| {
                    out.truncate(keep);
                    if old.is_none() {
                        made = Some(self.new_row(default)?);
                    }
                    let value = old.or(made.as_ref().map(ObjectBuf::value));
                    let value = value.ok_or(Error::BadKey)?;
                    let object = raw::view(key, value, self.keypos(), plain.buffer());
                    if old.is_some() && ops.is_empty() {
                        return Ok(Change::Keep);
                    }
                    self.count(&object, value, ops, out, scratch)?;
                    Ok(Change::PutScratch)
                },
            )?;
            Ok((written, ()))
        })
    }

    /// Adds an integer to one element of the object under the index key (to that after the key for no position), and gives the sum. `None`, and
    /// nothing done, where that is not all there is to it: then `update_counter` says what is wrong, or does it.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline]
    pub fn add_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        pos: Option<usize>,
        incr: i64,
    ) -> Result<Option<i64>, Error> {
        let pos = pos.unwrap_or(self.keypos() + 1);
        self.patch(local, who, key, |old, scratch| {
            patch::add(old, self.keypos(), pos, incr, scratch)
        })
        .map(Option::flatten)
    }

    /// As `add_in`, for several counters, one after another; the sums go to `sums`. False, and nothing done, where `add_in` gives `None`.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn add_many_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        steps: &[(Option<usize>, i64)],
        sums: &mut SmallVec<[i64; 4]>,
    ) -> Result<bool, Error> {
        let keypos = self.keypos();
        let mut before = SmallVec::<[u8; 128]>::new();
        let done = self.patch(local, who, key, |old, scratch| {
            sums.clear();
            scratch.extend_from_slice(old);
            for &(pos, incr) in steps {
                before.clear();
                before.extend_from_slice(scratch);
                scratch.clear();
                let pos = pos.unwrap_or(keypos + 1);
                sums.push(patch::add(&before, keypos, pos, incr, scratch)?);
            }
            Some(())
        })?;
        Ok(matches!(done, Some(Some(()))))
    }

    /// Replaces one element of the object under the index key by a term that holds no handle; false if there is no object. `None`, and nothing
    /// done, where that is not all there is to it: then `update_element` says what is wrong, or does it.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline]
    pub fn set_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        pos: usize,
        term: TermRef<'_>,
    ) -> Result<Option<bool>, Error> {
        let set = self.patch(local, who, key, |old, scratch| {
            patch::set(old, self.keypos(), pos, term, scratch).then_some(())
        })?;
        Ok(match set {
            None if self.kind().is_unique() => Some(false),
            None | Some(None) => None,
            Some(Some(())) => Some(true),
        })
    }

    /// Writes what `f` makes of the value under the index key, if it makes something of it. `None` if there is none, or there may be several.
    #[inline]
    fn patch<R>(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        mut f: impl FnMut(&[u8], &mut Vec<u8>) -> Option<R>,
    ) -> Result<Option<Option<R>>, Error> {
        self.may_write(who)?;
        let key = self.key(key);
        let guard = local.pin();
        let spare = &mut local.value;
        self.writing_under(&guard, |at| {
            let Index::One(ix) = &at.store.index else {
                return Ok((Written::Done, None));
            };
            let mut result = None;
            let written = self.change_one(at, &**ix, key, Some(spare), &mut |old, scratch| {
                result = old.map(|old| f(old, scratch));
                Ok(match &result {
                    Some(Some(_)) => Change::PutScratch,
                    _ => Change::Keep,
                })
            })?;
            Ok((written, result))
        })
    }

    /// Works the ops out on an object and writes the new value.
    fn count(
        &self,
        object: &ObjectView<'_>,
        value: &[u8],
        ops: &[CounterOp],
        out: &mut Vec<Number>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let all: Vec<_> = if ops.len() > FEW {
            object.iter().collect()
        } else {
            Vec::new()
        };
        let element = |pos: usize| match all.is_empty() {
            true => object.element(pos),
            false => all.get(pos.checked_sub(1)?).copied(),
        };
        // By position, ascending, one for each.
        let mut counters: SmallVec<[(usize, Number); 4]> = ops
            .iter()
            .map(|op| Ok((op.pos, self.counter(op, element(op.pos))?)))
            .collect::<Result<_, Error>>()?;
        counters.sort_by_key(|(pos, _)| *pos);
        counters.dedup_by_key(|(pos, _)| *pos);
        for op in ops {
            if let Ok(i) = counters.binary_search_by_key(&op.pos, |(pos, _)| *pos) {
                let number = &mut counters[i].1;
                *number = op.apply(number)?;
                out.push(number.clone());
            }
        }
        let mut bytes = SmallVec::<[Vec<u8>; 4]>::new();
        for (_, number) in &counters {
            let mut term = Vec::with_capacity(9);
            number.encode(&mut Encoder::new(&mut term, Mode::Inline));
            bytes.push(term);
        }
        let new: Elements<'_> = counters
            .iter()
            .zip(&bytes)
            .map(|((pos, _), term)| (*pos, raw::stored(term)))
            .collect();
        self.rewrite(object, value, &new, scratch);
        Ok(())
    }

    /// The counter that an op is about, which is the element at its position, if everything about it is right.
    fn counter(&self, op: &CounterOp, element: Option<TermRef<'_>>) -> Result<Number, Error> {
        if op.pos == self.keypos() {
            return Err(Error::Keypos);
        }
        let term = element.ok_or(Error::Position)?;
        let numbers = op.limit.iter().flat_map(|(a, b)| [a, b]);
        let all = std::iter::once(&op.incr).chain(numbers);
        let number = Number::from_term(term).filter(Number::is_integer);
        match number {
            Some(number) if { all }.all(Number::is_integer) => Ok(number),
            _ => Err(Error::NotInteger),
        }
    }

    /// Whether the element at a position may be replaced.
    fn check_position(&self, object: &ObjectView<'_>, pos: usize) -> Result<(), Error> {
        match pos {
            _ if pos == self.keypos() => Err(Error::Keypos),
            _ if (1..=object.arity()).contains(&pos) => Ok(()),
            _ => Err(Error::Position),
        }
    }

    /// Replaces elements of the object under the index key; false if there is none. With `default`, an object that is not there is made of
    /// it first. The last of several for one position counts; all or none.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `TableType` (bags), `BadDefault`, `Keypos`, `Position`.
    pub fn update_element(
        &self,
        who: OwnerId,
        key: &[u8],
        ops: &[(usize, TermRef<'_>)],
        default: Option<NewRow<'_>>,
    ) -> Result<bool, Error> {
        self.check_write(who)?;
        if !self.kind().is_unique() {
            return Err(Error::TableType);
        }
        let mut plain = scratch::Plain::default();
        self.writing(|at| {
            let mut found = false;
            // It has the counts of what is new until the table has counts of its own, which it takes after the closure.
            let mut made = None;
            let written = self.change_one(
                at,
                self.unique(at)?,
                self.key(key),
                None,
                &mut |old, scratch| {
                    made = match old {
                        None if default.is_some() => Some(self.new_row(default)?),
                        _ => None,
                    };
                    let Some(value) = old.or(made.as_ref().map(ObjectBuf::value)) else {
                        return Ok(Change::Keep);
                    };
                    found = true;
                    let object = raw::view(key, value, self.keypos(), plain.buffer());
                    for (pos, _) in ops {
                        self.check_position(&object, *pos)?;
                    }
                    if ops.is_empty() && old.is_some() {
                        return Ok(Change::Keep);
                    }
                    self.rewrite(&object, value, &last_of_each(ops), scratch);
                    Ok(Change::PutScratch)
                },
            )?;
            Ok((written, found))
        })
    }

    fn unique<'g>(&self, at: &crate::table::At<'g>) -> Result<&'g dyn Unique, Error> {
        match &at.store.index {
            Index::One(ix) => Ok(&**ix),
            Index::Many(_) => Err(Error::TableType),
        }
    }

    /// The default as an object of the table.
    fn new_row(&self, default: Option<NewRow<'_>>) -> Result<ObjectBuf, Error> {
        let row = default.ok_or(Error::BadKey)?;
        let tuple = row.tuple.as_tuple().ok_or(Error::BadDefault)?;
        let arity = tuple.arity();
        if arity < self.keypos() {
            return Err(Error::BadDefault);
        }
        let mut object = ObjectBuf::new();
        let mut enc = ObjectEncoder::new(
            &mut object,
            arity,
            self.keypos(),
            self.form,
            self.compressed(),
        );
        enc.key(|e| e.term(row.key));
        for (i, element) in tuple.iter().enumerate() {
            if i + 1 != self.keypos() {
                enc.element(|e| e.term(element));
            }
        }
        enc.finish();
        Ok(object)
    }

    /// Writes an object's value with some elements replaced.
    fn rewrite(
        &self,
        object: &ObjectView<'_>,
        value: &[u8],
        new: &Elements<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut left = new.iter().peekable();
        let others = object.iter().enumerate().map(|(i, term)| (i + 1, term));
        let others = others
            .filter(|(pos, _)| *pos != self.keypos())
            .map(|(pos, term)| match left.next_if(|(p, _)| *p == pos) {
                Some((_, replaced)) => *replaced,
                None => term,
            });
        if self.compressed() {
            let mut packed = ObjectBuf::new();
            let mut enc =
                ObjectEncoder::new(&mut packed, object.arity(), self.keypos(), self.form, true);
            enc.key(|e| e.term(object.key()));
            others.for_each(|term| enc.element(|e| e.term(term)));
            enc.finish();
            // The handles in here are those of the old object and of the caller's terms, whose counts outlive the buffer's.
            out.extend_from_slice(packed.value());
            return;
        }
        let header = value.iter().take_while(|b| **b & 0x80 != 0).count() + 1;
        out.extend_from_slice(&value[..header]);
        if new.iter().any(|(_, term)| term.has_handles()) {
            out[0] |= HAS_HANDLES;
        }
        if value[0] & EXACT_KEY != 0 {
            out.extend_from_slice(object.key().bytes());
        }
        others.for_each(|term| out.extend_from_slice(term.bytes()));
    }
}

impl CounterOp {
    fn apply(&self, number: &Number) -> Result<Number, Error> {
        let sum = number.add(&self.incr).map_err(|e| match e {
            NumberError::SystemLimit => Error::SystemLimit(e.to_string()),
            NumberError::BadArith => Error::NotInteger,
        })?;
        let Some((threshold, value)) = &self.limit else {
            return Ok(sum);
        };
        let up = self.incr.compare(&Number::Int(0)) != Ordering::Less;
        let passed = if up {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        Ok(if sum.compare(threshold) == passed {
            value.clone()
        } else {
            sum
        })
    }
}

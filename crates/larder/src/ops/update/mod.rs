//! Counters and elements: changing some elements of one object.
//!
//! Everything is checked against the object under the leaf's lock before anything is written, so a
//! call is all or nothing and no update is lost. Linearisation point: the store that unlocks the
//! leaf.
//!
//! All operations of a call are one walk over the object, in the order of their positions, which
//! copies what lies between and puts the new elements. A compressed value is unpacked and packed
//! again.

use super::commit::Edit;
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::Index;
use crate::local::{with_local, Local};
use crate::raw;
use crate::table::Table;
use larder_index::Change;
use larder_term::number::{Number, NumberError};
use larder_term::object::patch::{self, Patch};
use larder_term::object::{self, ObjectBuf, ObjectEncoder, ObjectRef, COMPRESSED};
use larder_term::TermRef;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// One step of `update_counter`: adds to an element, from 1; where the sum passes a threshold, if
/// there is one, the element becomes another value.
#[derive(Clone, Debug)]
pub struct CounterOp {
    pos: usize,
    step: Increment,
}

/// What an operation does, in few bytes where its integers are small: there may be a million of
/// them.
#[derive(Clone, Debug)]
enum Increment {
    Add(i64),
    AddUpTo {
        incr: i64,
        threshold: i64,
        value: i64,
    },
    Any(Box<AnyIncrement>),
}

#[derive(Clone, Debug)]
struct AnyIncrement {
    incr: Number,
    limit: Option<(Number, Number)>,
}

/// The new values of counters, one for each operation.
pub type Sums = SmallVec<[Number; 4]>;

/// The object that an update works on if there is none under the key.
#[derive(Clone, Copy)]
pub struct NewRow<'a> {
    /// The key that goes to the object's key position.
    pub key: TermRef<'a>,
    /// The object but for its key.
    pub tuple: TermRef<'a>,
}

impl CounterOp {
    /// Adds an integer to the element at a position.
    #[inline]
    pub fn new(pos: usize, incr: Number) -> Self {
        let step = match incr {
            Number::Int(incr) => Increment::Add(incr),
            incr => Increment::Any(Box::new(AnyIncrement { incr, limit: None })),
        };
        CounterOp { pos, step }
    }

    /// As `new`. Where the sum passes the threshold (in the direction of the increment, up for 0),
    /// the element becomes the value.
    #[inline]
    pub fn limited(pos: usize, incr: Number, threshold: Number, value: Number) -> Self {
        let step = match (incr, threshold, value) {
            (Number::Int(incr), Number::Int(threshold), Number::Int(value)) => Increment::AddUpTo {
                incr,
                threshold,
                value,
            },
            (incr, threshold, value) => Increment::Any(Box::new(AnyIncrement {
                incr,
                limit: Some((threshold, value)),
            })),
        };
        CounterOp { pos, step }
    }

    /// The element, from 1.
    #[inline]
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Whether everything in it is an integer.
    #[inline]
    fn is_whole(&self) -> bool {
        match &self.step {
            Increment::Add(_) | Increment::AddUpTo { .. } => true,
            Increment::Any(step) => step.is_whole(),
        }
    }

    /// Puts the sum in the place of the number.
    #[inline]
    fn apply(&self, number: &mut Number) -> Result<(), Error> {
        let small = match (&*number, &self.step) {
            (&Number::Int(n), &Increment::Add(incr)) => n.checked_add(incr),
            (
                &Number::Int(n),
                &Increment::AddUpTo {
                    incr,
                    threshold,
                    value,
                },
            ) => n.checked_add(incr).map(|sum| {
                let passed = if incr >= 0 {
                    sum > threshold
                } else {
                    sum < threshold
                };
                if passed {
                    value
                } else {
                    sum
                }
            }),
            _ => None,
        };
        match small {
            Some(sum) => {
                *number = Number::Int(sum);
                Ok(())
            }
            None => self.apply_large(number),
        }
    }

    #[cold]
    fn apply_large(&self, number: &mut Number) -> Result<(), Error> {
        let sum = match &self.step {
            Increment::Add(incr) => AnyIncrement::sum(number, &Number::Int(*incr), None),
            Increment::AddUpTo {
                incr,
                threshold,
                value,
            } => {
                let limit = (Number::Int(*threshold), Number::Int(*value));
                AnyIncrement::sum(number, &Number::Int(*incr), Some(&limit))
            }
            Increment::Any(step) => AnyIncrement::sum(number, &step.incr, step.limit.as_ref()),
        };
        *number = sum?;
        Ok(())
    }
}

impl AnyIncrement {
    fn is_whole(&self) -> bool {
        let numbers = self.limit.iter().flat_map(|(a, b)| [a, b]);
        std::iter::once(&self.incr)
            .chain(numbers)
            .all(Number::is_integer)
    }

    fn sum(
        number: &Number,
        incr: &Number,
        limit: Option<&(Number, Number)>,
    ) -> Result<Number, Error> {
        let sum = number.add(incr).map_err(|e| match e {
            NumberError::SystemLimit => Error::SystemLimit(e.to_string()),
            NumberError::BadArith => Error::NotInteger,
        })?;
        let Some((threshold, value)) = limit else {
            return Ok(sum);
        };
        let up = incr.compare(&Number::Int(0)) != Ordering::Less;
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

impl Table {
    /// Adds to elements of the object under the index key; pushes the new value for each op to
    /// `out`. With `default`, an object that is not there is made of it first. Ops are applied in
    /// order; all or none.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `TableType` (bags), `BadKey`, `BadDefault`, `Keypos`,
    /// `Position`, `NotInteger`, `SystemLimit` (an integer too large).
    ///
    /// # Complexity
    /// Linear in the object and the ops.
    pub fn update_counter(
        &self,
        who: OwnerId,
        key: &[u8],
        ops: &[CounterOp],
        default: Option<NewRow<'_>>,
        out: &mut Vec<Number>,
    ) -> Result<(), Error> {
        let mut sums = Sums::new();
        with_local(|local| {
            let done = self.update_counter_in(local, who, key, ops, None, &mut sums);
            let (Err(Error::BadKey), Some(row)) = (&done, default) else {
                return done;
            };
            let row = self.new_row(row)?;
            self.update_counter_in(local, who, key, ops, Some(row.borrow()), &mut sums)
        })?;
        out.extend(sums);
        Ok(())
    }

    /// As `update_counter`, with the default as an object of the table that has the key; the new
    /// values take the place of what is in `sums`.
    ///
    /// # Errors
    /// As `update_counter`.
    #[inline]
    pub fn update_counter_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ops: &[CounterOp],
        default: Option<ObjectRef<'_>>,
        sums: &mut Sums,
    ) -> Result<(), Error> {
        let last = || ops.iter().map(|op| op.pos).max().unwrap_or(0);
        let found = self.edit(local, who, key, (default, last), |value, out| {
            sums.clear();
            if ops.is_empty() {
                return Ok(Edited::Same);
            }
            self.count(value, ops, sums, out)
        })?;
        if found {
            Ok(())
        } else {
            Err(Error::BadKey)
        }
    }

    /// Replaces elements of the object under the index key; false if there is none. With `default`,
    /// an object that is not there is made of it first. The last of several for one position
    /// counts; all or none.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `TableType` (bags), `BadDefault`, `Keypos`, `Position`.
    ///
    /// # Complexity
    /// Linear in the object and the new elements.
    pub fn update_element(
        &self,
        who: OwnerId,
        key: &[u8],
        ops: &[(usize, TermRef<'_>)],
        default: Option<NewRow<'_>>,
    ) -> Result<bool, Error> {
        with_local(|local| {
            let done = self.update_element_in(local, who, key, ops, None);
            let (Ok(false), Some(row)) = (&done, default) else {
                return done;
            };
            let row = self.new_row(row)?;
            self.update_element_in(local, who, key, ops, Some(row.borrow()))
        })
    }

    /// As `update_element`, with the default as an object of the table that has the key.
    ///
    /// # Errors
    /// As `update_element`.
    #[inline]
    pub fn update_element_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ops: &[(usize, TermRef<'_>)],
        default: Option<ObjectRef<'_>>,
    ) -> Result<bool, Error> {
        let last = || ops.iter().map(|op| op.0).max().unwrap_or(0);
        self.edit(local, who, key, (default, last), |value, out| {
            if ops.is_empty() {
                return Ok(Edited::Same);
            }
            self.replace(value, ops, out)
        })
    }

    /// Stores what `f` makes of the object under the index key, or of `default` if there is none:
    /// it is given a value of which it may change the elements up to position `last()`, and an
    /// empty buffer. Whether there was an object to work on.
    #[inline]
    fn edit(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        (default, last): (Option<ObjectRef<'_>>, impl Fn() -> usize),
        mut f: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Edited, Error>,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let hashed = self.key(key);
        let guard = local.pin();
        let (spare, plain) = (&mut local.value, &mut local.plain);
        self.writing_under(&guard, key, |op| {
            let Index::Unique(ix) = &op.store.index else {
                return Err(Error::TableType);
            };
            let mut found = false;
            let written = self.change_one(op, &**ix, hashed, Some(spare), &mut |old, out| {
                // Whoever gives the default has the counts of its handles; the table takes its own.
                let Some(value) = old.or(default.map(|row| row.value())) else {
                    return Ok(Change::Keep.into());
                };
                found = true;
                let mut whole = false;
                // One call of `f`, so that it is part of this.
                let edited = loop {
                    let patched = match whole {
                        false => patch::patchable(value, self.keypos(), &last, plain),
                        true => patch::plain_value(value, plain),
                    };
                    let (before, edited) = (patched.len(), f(patched, out)?);
                    if whole || edited == Edited::Same || patch::close(out, before) {
                        break edited;
                    }
                    out.clear();
                    whole = true;
                };
                if let (Edited::Same, Some(_)) = (edited, old) {
                    return Ok(Change::Keep.into());
                }
                if let Edited::Same = edited {
                    out.extend_from_slice(value);
                } else if self.compressed() && out[0] & COMPRESSED == 0 {
                    self.pack(key, out);
                }
                Ok(Edit {
                    change: Change::PutScratch,
                    same_handles: edited == Edited::SameHandles && old.is_some(),
                })
            })?;
            Ok((written, found))
        })
    }

    /// Works the ops out on a value and writes the new one.
    #[inline]
    fn count(
        &self,
        value: &[u8],
        ops: &[CounterOp],
        sums: &mut Sums,
        out: &mut Vec<u8>,
    ) -> Result<Edited, Error> {
        let order = Order::of(ops, |op| op.pos);
        let mut patch = Patch::new(value, self.keypos(), out);
        sums.resize(ops.len(), Number::Int(0));
        let (mut i, mut too_large) = (0, None);
        while let Some(mut op) = order.get(ops, i) {
            let pos = op.pos;
            if !patch.has(pos) {
                return Err(self.why_not(value, ops));
            }
            let old = patch.element(pos);
            let Some(mut number) = Number::from_term(old).filter(Number::is_integer) else {
                return Err(self.why_not(value, ops));
            };
            while op.pos == pos {
                if !op.is_whole() {
                    return Err(self.why_not(value, ops));
                }
                if let Err(error) = op.apply(&mut number) {
                    too_large = Some(error);
                }
                let sum = &mut sums[order.place(i)];
                match &number {
                    // A copy of its two words; of the whole, it would wait for bytes that nobody
                    // wrote.
                    &Number::Int(n) => *sum = Number::Int(n),
                    large => *sum = large.clone(),
                }
                i += 1;
                match order.get(ops, i) {
                    Some(next) => op = next,
                    None => break,
                }
            }
            patch.put_with(old, |out| number.push(out));
        }
        if let Some(error) = too_large {
            return Err(error);
        }
        Ok(Edited::anew(patch.finish()))
    }

    /// What is wrong with the first op for which something is.
    #[cold]
    fn why_not(&self, value: &[u8], ops: &[CounterOp]) -> Error {
        let wrong = |op: &CounterOp| {
            let mut out = Vec::new();
            let mut patch = Patch::new(value, self.keypos(), &mut out);
            if !patch.has(op.pos) {
                return Some(self.no_element(op.pos));
            }
            let number = Number::from_term(patch.element(op.pos));
            let integers = number.is_some_and(|n| n.is_integer()) && op.is_whole();
            (!integers).then_some(Error::NotInteger)
        };
        ops.iter().find_map(wrong).unwrap_or(Error::NotInteger)
    }

    /// What is wrong with a position at which nothing may be replaced.
    #[cold]
    fn no_element(&self, pos: usize) -> Error {
        if pos == self.keypos() {
            Error::Keypos
        } else {
            Error::Position
        }
    }

    /// Writes a value with other elements.
    #[inline]
    fn replace(
        &self,
        value: &[u8],
        ops: &[(usize, TermRef<'_>)],
        out: &mut Vec<u8>,
    ) -> Result<Edited, Error> {
        let order = Order::of(ops, |op| op.0);
        let mut patch = Patch::new(value, self.keypos(), out);
        if let Some((pos, _)) = ops.iter().find(|(pos, _)| !patch.has(*pos)) {
            return Err(self.no_element(*pos));
        }
        let mut i = 0;
        while let Some(&(pos, term)) = order.get(ops, i) {
            i += 1;
            if order.get(ops, i).is_some_and(|next| next.0 == pos) {
                continue;
            }
            let old = patch.element(pos);
            patch.put(old, term);
        }
        Ok(Edited::anew(patch.finish()))
    }

    /// The default as an object of the table.
    fn new_row(&self, row: NewRow<'_>) -> Result<ObjectBuf, Error> {
        let tuple = row.tuple.as_tuple().ok_or(Error::BadDefault)?;
        let arity = tuple.arity();
        if arity < self.keypos() {
            return Err(Error::BadDefault);
        }
        let elements = tuple.iter().enumerate();
        let others = elements.filter(|(i, _)| i + 1 != self.keypos());
        Ok(self.object_of(row.key, arity, others.map(|(_, element)| element)))
    }

    /// An object of the table with this key and these elements beside it.
    fn object_of<'t>(
        &self,
        key: TermRef<'_>,
        arity: usize,
        others: impl Iterator<Item = TermRef<'t>>,
    ) -> ObjectBuf {
        let (mut object, compressed) = (ObjectBuf::new(), self.compressed());
        let mut enc = ObjectEncoder::new(
            &mut object,
            arity,
            self.keypos(),
            self.key_form(),
            compressed,
        );
        enc.key(|e| e.term(key));
        others.for_each(|term| enc.element(|e| e.term(term)));
        enc.finish();
        object
    }

    /// Compresses a value that was put together.
    #[cold]
    fn pack(&self, key: &[u8], value: &mut Vec<u8>) {
        if !object::value_has_handles(value) {
            if let Some(packed) = object::compressed(value) {
                *value = packed;
            }
            return;
        }
        let mut plain = Vec::new();
        let object = raw::view(key, value, self.keypos(), &mut plain);
        let others = object.iter().enumerate();
        let others = others.filter(|(i, _)| i + 1 != self.keypos());
        let packed = self.object_of(object.key(), object.arity(), others.map(|(_, term)| term));
        // The handles in here are those of the old object and of the caller's terms, whose counts
        // outlive the buffer's.
        value.clear();
        value.extend_from_slice(packed.value());
    }
}

/// The ops of a call by their positions: those for one in the order in which they came.
struct Order(Vec<usize>);

impl Order {
    /// Needs no memory where they came so.
    #[inline]
    fn of<T>(ops: &[T], position: impl Fn(&T) -> usize) -> Order {
        if ops.is_sorted_by_key(&position) {
            return Order(Vec::new());
        }
        Order(sorted(ops, position))
    }

    /// Which op is the `i`th.
    #[inline]
    fn place(&self, i: usize) -> usize {
        self.0.get(i).copied().unwrap_or(i)
    }

    /// The `i`th op.
    #[inline]
    fn get<'o, T>(&self, ops: &'o [T], i: usize) -> Option<&'o T> {
        ops.get(self.place(i))
    }
}

/// The numbers of the ops in the order of their positions, those for one in the order in which they
/// came. Linear where there are as many ops as positions.
#[cold]
fn sorted<T>(ops: &[T], position: impl Fn(&T) -> usize) -> Vec<usize> {
    let last = ops.iter().map(&position).max().unwrap_or(0);
    if last > ops.len() {
        let mut order: Vec<usize> = (0..ops.len()).collect();
        order.sort_by_key(|&i| position(&ops[i]));
        return order;
    }
    // Where those for each position begin; then where the next of them goes.
    let mut places = vec![0; last + 1];
    for op in ops {
        places[position(op)] += 1;
    }
    let mut before = 0;
    for place in &mut places {
        (before, *place) = (before + *place, before);
    }
    let mut order = vec![0; ops.len()];
    for (i, op) in ops.iter().enumerate() {
        let place = &mut places[position(op)];
        order[*place] = i;
        *place += 1;
    }
    order
}

/// What became of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edited {
    /// There was nothing to do, and nothing was written.
    Same,
    /// It was written anew, with the handles that it had.
    SameHandles,
    /// It was written anew.
    Anew,
}

impl Edited {
    #[inline]
    fn anew(same_handles: bool) -> Self {
        if same_handles {
            Edited::SameHandles
        } else {
            Edited::Anew
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ops_are_in_the_order_of_their_positions(
            positions in prop::collection::vec(0usize..40, 0..60),
            far in any::<bool>(),
        ) {
            let mut ops: Vec<(usize, usize)> = positions.into_iter().zip(0..).collect();
            if far {
                ops.push((usize::MAX, 60));
                ops.push((3, 61));
            }
            let order = Order::of(&ops, |op| op.0);
            let found: Vec<_> = (0..ops.len()).filter_map(|i| order.get(&ops, i)).collect();
            let mut expected: Vec<_> = ops.iter().collect();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }
}

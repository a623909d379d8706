//! Counters: `update_counter` (up2).
//!
//! 1. Take the operations one by one, in their order.
//! 2. The first operation on an element reads it from the old value. Later ones on the same element
//!    add to that.
//! 3. Write each counter once, in the order of positions.
//!
//! Nearly all calls have one operation, or several in ascending order of positions, on integers of
//! 64 bits. So a counter is written when the next operation is on a later element
//! (`apply_in_order`). If one is on an earlier element, on a larger integer or within a map, or if
//! it is wrong, the call starts over: all counters are kept ([`Counters`]) until the last operation
//! (`count_in_any_order`).

use super::counter_op::{CounterOp, CounterOps};
use super::map::{self, ChangedMap};
use super::{ElementUpdate, MapChange, MapHost, NewRow, Patching, Sorted};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::table::EngineTable;
use larder_term::number::Number;
use larder_term::object::patch::{Element, Passed, Patch, Patched};
use larder_term::object::{NewElements, ObjectRef};
use larder_term::{MapSearch, Term, TermRef};
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// The destination of the new values of counters: for each operation, the value of its counter
/// after it. That is a sum, or the value that replaces a sum beyond the threshold.
pub trait Sums {
    /// Drops all values: the operations are applied from the first one again.
    fn clear(&mut self);
    /// Adds the value of the next operation.
    fn push(&mut self, sum: &Number);
}

impl Sums for Vec<Number> {
    fn clear(&mut self) {
        Vec::clear(self);
    }

    fn push(&mut self, sum: &Number) {
        Vec::push(self, sum.clone());
    }
}

/// Only keeps the value of the last operation.
impl Sums for Option<Number> {
    fn clear(&mut self) {
        *self = None;
    }

    #[inline]
    fn push(&mut self, sum: &Number) {
        *self = Some(sum.clone());
    }
}

impl EngineTable {
    /// Adds to elements of the object under the index key. The new value for each op goes to
    /// `sums`. If the key is absent and `default` is given, the object is first made from it. Ops
    /// are applied in order, all or none.
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
        sums: &mut impl Sums,
    ) -> Result<(), Error> {
        with_local(|local| loop {
            let out = &mut (&mut *sums, &mut Sorted as &mut dyn MapHost);
            // The default is made into an object only if the key is not there.
            let done = self.update_counter_in(local, who, key, &ops.iter(), out);
            let (Err(Error::BadKey), Some(row)) = (&done, default) else {
                return done;
            };
            let row = self.new_row(row)?;
            if self.insert_counter_in(local, who, &row.borrow(), &ops.iter(), out)? {
                return Ok(());
            }
            // The key has come in between.
        })
    }

    /// As `update_counter` without a default, for hosts.
    ///
    /// The host decodes its operations while they are applied, so that a long list takes no memory.
    /// A clone of `ops` is used under the leaf's lock, and another one if the write is repeated. An
    /// operation that is an error ends the call when it is reached, unless an earlier one is wrong.
    /// The new values go to the first part of `out`; the second writes maps.
    ///
    /// # Errors
    /// Those of `update_counter`; the first op that is an error.
    #[inline(always)]
    pub fn update_counter_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ops: &impl CounterOps,
        out: &mut (&mut impl Sums, &mut dyn MapHost),
    ) -> Result<(), Error> {
        let mut counting = Counting::new(ops, out);
        match self.edit(local, who, key, &mut counting)? {
            true => Ok(()),
            false => Err(Error::BadKey),
        }
    }

    /// Applies the operations to a default, which is an object of the table, and inserts it, if
    /// there is no object under its key. Returns whether it did. Otherwise as `update_counter_in`.
    ///
    /// # Errors
    /// As `update_counter_in`.
    #[inline(never)]
    pub fn insert_counter_in(
        &self,
        local: &mut Local,
        who: impl Who,
        default: &ObjectRef<'_>,
        ops: &impl CounterOps,
        out: &mut (&mut impl Sums, &mut dyn MapHost),
    ) -> Result<bool, Error> {
        self.insert_updated(local, who, default, &mut Counting::new(ops, out))
    }

    /// Applies the operations to the elements of a value, in any order. `sums` and `buffer` may
    /// have what an attempt by `apply_in_order` has written.
    #[cold]
    #[inline(never)]
    fn count_in_any_order(
        &self,
        (value, buffer): (&[u8], &mut Vec<u8>),
        mut ops: impl CounterOps,
        (sums, host): &mut (&mut impl Sums, &mut dyn MapHost),
        kept: &mut Kept<'_, '_>,
    ) -> Result<Option<Patched>, Error> {
        sums.clear();
        buffer.clear();
        let mut patch = Patch::new(value, self.keypos(), buffer);
        let mut passed = Passed::new(&patch);
        let (mut counters, mut too_large) = (Counters::default(), None);
        while let Some(op) = ops.next()? {
            let op = op.borrow();
            // An earlier operation may have read the element already.
            let mut counter = match counters.take(op.pos) {
                Some(counter) => counter,
                None => self.counter(op, &mut patch, &mut passed)?,
            };
            // A result that is too large is only an error if no other operation is wrong.
            if let Err(error) = counter.count(op, *sums) {
                note_too_large(error, &mut too_large)?;
            }
            // Later operations on the position continue with it.
            counters.add(counter);
        }
        if let Some(error) = too_large {
            return Err(error);
        }
        // No operation is wrong. Each element is written once, in the order of positions.
        counters.put_all(&mut patch, *host, kept)?;
        Ok(patch.finish())
    }

    /// The counter at an operation's position, with the element's value in the object.
    ///
    /// # Errors
    /// `Keypos`, `Position`, `NotInteger`, `NotMap`.
    fn counter<'v>(
        &self,
        op: &CounterOp,
        patch: &mut Patch<'v, '_>,
        passed: &mut Passed,
    ) -> Result<UpdatedCounter<'v>, Error> {
        if !patch.has(op.pos) {
            return Err(self.no_element(op.pos));
        }
        let old = patch.element_in_any_order(passed, op.pos);
        // An integer is the counter itself. Otherwise the counter must be a value in a map.
        let new = match old.term.as_int() {
            Some(n) => NewElement::Int(n),
            None => NewElement::Other(OtherElement::new(op, old.term)?),
        };
        let pos = op.pos;
        Ok(UpdatedCounter { pos, old, new })
    }
}

/// The operations of a call, and the destination of the new values.
struct Counting<'c, 's, 'h, O, S> {
    ops: &'c O,
    out: &'c mut (&'s mut S, &'h mut dyn MapHost),
    /// Keys of maps are put into the patch, which owns no counts of their handles. So they live
    /// until the object is stored.
    others: OtherElements,
}

impl<'c, 's, 'h, O, S> Counting<'c, 's, 'h, O, S> {
    #[inline(always)]
    fn new(ops: &'c O, out: &'c mut (&'s mut S, &'h mut dyn MapHost)) -> Self {
        let others = OtherElements::new();
        Counting { ops, out, others }
    }
}

impl<O: CounterOps, S: Sums> ElementUpdate for Counting<'_, '_, '_, O, S> {
    fn last(&self) -> usize {
        let (mut ops, mut last) = (self.ops.clone(), 0);
        while let Ok(Some(op)) = ops.next() {
            last = last.max(op.borrow().pos);
        }
        last
    }

    /// All counters are integers of 64 bits.
    #[inline(always)]
    fn apply_in_order(
        &mut self,
        table: &EngineTable,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Patched> {
        let sums = &mut self.out.0;
        // Discard what a previous attempt has pushed, which was computed from another old value.
        sums.clear();
        let mut ops = self.ops.clone();
        let mut patch = Patch::new(value, table.keypos(), out);
        // The last counter: its element, and its value so far. It is written when the next
        // operation is on a later element.
        let mut current = None;
        loop {
            let op = ops.next_small()?;
            let (op, old, n) = match (op, current) {
                (Some(op), Some((old, n))) if op.pos == patch.position() => (op, old, n),
                (op, last) => {
                    if let Some((old, n)) = last {
                        patch.put_with(old, |out| Number::Int(n).push(out));
                    }
                    let Some(op) = op else {
                        return patch.finish();
                    };
                    let old = patch.element_in_place(op.pos, table.compressed())?;
                    (op, old, old.term.as_int()?)
                }
            };
            // Nearly all sums fit in 64 bits, and are computed in registers.
            let sum = op.sum(n)?;
            sums.push(&Number::Int(sum));
            current = Some((old, sum));
        }
    }

    #[inline(never)]
    fn apply(
        &mut self,
        table: &EngineTable,
        value: &[u8],
        (buffer, elements): Patching<'_, '_>,
    ) -> Result<Option<Patched>, Error> {
        let Counting { ops, out, others } = self;
        others.clear();
        let mut kept = Kept { others, elements };
        table.count_in_any_order((value, buffer), (*ops).clone(), out, &mut kept)
    }
}

/// Notes that an integer has become too large. Any other error of a later operation is reported
/// before that one.
///
/// # Errors
/// Any other error.
#[cold]
fn note_too_large(error: Error, noted: &mut Option<Error>) -> Result<(), Error> {
    match error {
        Error::SystemLimit(_) => {
            *noted = Some(error);
            Ok(())
        }
        other => Err(other),
    }
}

/// The counters of a call, in the order of their positions. A few are in an array; a call with more
/// than [`FEW`] counters keeps them in a tree.
enum Counters<'v> {
    Few(Vec<UpdatedCounter<'v>>),
    Many(BTreeMap<usize, UpdatedCounter<'v>>),
}

/// The number of counters that are found by comparing their positions, one by one.
const FEW: usize = 4;

impl Default for Counters<'_> {
    fn default() -> Self {
        Counters::Few(Vec::new())
    }
}

impl<'v> Counters<'v> {
    /// Removes the counter at a position.
    fn take(&mut self, pos: usize) -> Option<UpdatedCounter<'v>> {
        match self {
            Counters::Few(few) => {
                let at = few.iter().position(|counter| counter.pos == pos)?;
                Some(few.remove(at))
            }
            Counters::Many(many) => many.remove(&pos),
        }
    }

    /// Adds a counter at a position that has none.
    fn add(&mut self, counter: UpdatedCounter<'v>) {
        match self {
            Counters::Few(few) if few.len() < FEW => {
                let at = few.iter().take_while(|other| other.pos < counter.pos);
                few.insert(at.count(), counter);
            }
            // There is one more than the array is for. Move all to a tree.
            Counters::Few(few) => {
                let few = few.drain(..).chain([counter]);
                *self = Counters::Many(few.map(|counter| (counter.pos, counter)).collect());
            }
            Counters::Many(many) => {
                many.insert(counter.pos, counter);
            }
        }
    }

    /// Writes all counters in place of the elements.
    fn put_all(
        self,
        patch: &mut Patch<'v, '_>,
        host: &mut dyn MapHost,
        kept: &mut Kept<'_, '_>,
    ) -> Result<(), Error> {
        let mut put = |counter: UpdatedCounter<'v>| counter.put(patch, host, kept);
        match self {
            Counters::Few(few) => few.into_iter().try_for_each(&mut put),
            Counters::Many(many) => many.into_values().try_for_each(&mut put),
        }
    }
}

/// Rare elements that were written. They own the counts of handles in the patch.
type OtherElements = Vec<OtherElement>;

/// What a patch leads to, which is kept until the patched value has counts of its own.
struct Kept<'k, 't> {
    others: &'k mut OtherElements,
    elements: &'k mut NewElements<'t>,
}

/// An element to which operations add: an integer, or a map whose values are integers.
struct UpdatedCounter<'v> {
    pos: usize,
    old: Element<'v>,
    new: NewElement,
}

/// An element after the operations so far. It is dropped with one test, unless it is a rare one.
enum NewElement {
    /// An integer of 64 bits.
    Int(i64),
    Other(Box<OtherElement>),
}

/// A rare element to which operations add.
enum OtherElement {
    /// An integer that has more than 64 bits, or had before an operation.
    Number(Number),
    Map(CountersInMap),
}

impl OtherElement {
    /// An element that isn't an integer of 64 bits.
    ///
    /// # Errors
    /// `NotInteger`, `NotMap`.
    #[cold]
    #[inline(never)]
    fn new(op: &CounterOp, element: TermRef<'_>) -> Result<Box<Self>, Error> {
        let new = match Number::from_term(element).filter(Number::is_integer) {
            Some(number) => OtherElement::Number(number),
            None => OtherElement::Map(CountersInMap::new(op, element)?),
        };
        Ok(Box::new(new))
    }

    /// An integer of 64 bits to which an operation is to be applied that needs more.
    #[cold]
    #[inline(never)]
    fn of_int(n: i64) -> Box<Self> {
        Box::new(OtherElement::Number(Number::Int(n)))
    }

    /// Applies an operation, and returns the counter's value.
    ///
    /// # Errors
    /// As `update_counter`.
    #[cold]
    #[inline(never)]
    fn count(&mut self, op: &CounterOp) -> Result<Number, Error> {
        match self {
            OtherElement::Number(number) => {
                // An error leaves the counter as it was, and ends the call.
                op.apply(number)?;
                Ok(number.clone())
            }
            OtherElement::Map(counters) => counters.count(op),
        }
    }

    /// Makes the term of the element, which replaces `old`.
    #[cold]
    #[inline(never)]
    fn made<'h>(
        &self,
        old: Element<'_>,
        host: &'h mut dyn MapHost,
    ) -> Result<MadeElement<'h>, Error> {
        Ok(match self {
            OtherElement::Number(number) => MadeElement::Number(number_term(number)?),
            OtherElement::Map(counters) => MadeElement::Map(counters.changed(old, host)?),
        })
    }
}

/// The term of a rare element.
enum MadeElement<'h> {
    Number(Term),
    Map(ChangedMap<'h>),
}

impl MadeElement<'_> {
    fn term(&self) -> TermRef<'_> {
        match self {
            MadeElement::Number(term) => term.as_ref(),
            MadeElement::Map(map) => map.term(),
        }
    }
}

fn number_term(number: &Number) -> Result<Term, Error> {
    Term::build(|out| number.encode(out)).map_err(|_| Error::NotInteger)
}

impl<'v> UpdatedCounter<'v> {
    /// Applies an operation, and pushes the counter's value to `sums`.
    ///
    /// # Errors
    /// As `update_counter`.
    fn count(&mut self, op: &CounterOp, sums: &mut impl Sums) -> Result<(), Error> {
        // Nearly always both the counter and the increment are small integers, and so is the sum.
        if let NewElement::Int(n) = self.new {
            if let Some(sum) = op.small().and_then(|op| op.sum(n)) {
                self.new = NewElement::Int(sum);
                sums.push(&Number::Int(sum));
                return Ok(());
            }
            // Otherwise go on with an integer of any size.
            self.new = NewElement::Other(OtherElement::of_int(n));
        }
        if let NewElement::Other(other) = &mut self.new {
            sums.push(&other.count(op)?);
        }
        Ok(())
    }

    /// Writes the new element in place of the old one.
    fn put(
        self,
        patch: &mut Patch<'v, '_>,
        host: &mut dyn MapHost,
        kept: &mut Kept<'_, '_>,
    ) -> Result<(), Error> {
        match self.new {
            NewElement::Int(n) => patch.put_with(self.old, |out| Number::Int(n).push(out)),
            NewElement::Other(other) => {
                let made = other.made(self.old, host)?;
                patch.put(self.old, made.term(), kept.elements);
                kept.others.push(*other);
            }
        }
        Ok(())
    }
}

/// Counters that are values of one map.
struct CountersInMap {
    /// The map as it is in the object.
    map: MapSearch,
    /// The keys that operations have added to, each once, and their values so far.
    changed: Vec<(Term, Term)>,
    /// Their numbers by their keys, if there are more than [`FEW`].
    by_key: BTreeMap<Term, usize>,
}

impl CountersInMap {
    fn new(op: &CounterOp, element: TermRef<'_>) -> Result<Self, Error> {
        if op.in_map_of().is_none() {
            return Err(Error::NotInteger);
        }
        Ok(CountersInMap {
            map: MapSearch::new(element).ok_or(Error::NotMap)?,
            changed: Vec::new(),
            by_key: BTreeMap::new(),
        })
    }

    fn count(&mut self, op: &CounterOp) -> Result<Number, Error> {
        let counter = op.in_map_of().ok_or(Error::NotInteger)?;
        // The counter's current value: the result of an earlier operation, or the value in the
        // object's map.
        let earlier = self.earlier(&counter.key);
        let mut number = match earlier {
            Some(i) => counter.number_of(Some(self.changed[i].1.as_ref()))?,
            None => counter.number_of(self.map.get(counter.key.as_ref()))?,
        };
        counter.op.apply(&mut number)?;
        let sum = number_term(&number)?;
        match earlier {
            Some(i) => self.changed[i].1 = sum,
            None => self.add(&counter.key, sum),
        }
        Ok(number)
    }

    /// The number of a key that an earlier operation has added to.
    fn earlier(&self, key: &Term) -> Option<usize> {
        if self.changed.len() > FEW {
            return self.by_key.get(key).copied();
        }
        self.changed.iter().position(|(other, _)| other == key)
    }

    /// Adds a key that no operation has added to.
    fn add(&mut self, key: &Term, sum: Term) {
        self.changed.push((key.clone(), sum));
        if self.changed.len() > FEW {
            // The first time, all of them.
            let keys = self.changed.iter().enumerate().skip(self.by_key.len());
            let keys = keys.map(|(i, (key, _))| (key.clone(), i));
            self.by_key.extend(keys);
        }
    }

    /// The map with the new values of the counters. `old` is the element that it replaces.
    fn changed<'h>(
        &self,
        old: Element<'_>,
        host: &'h mut dyn MapHost,
    ) -> Result<ChangedMap<'h>, Error> {
        // Keys whose counters have changed, with their sums.
        let changes: Vec<MapChange<'_>> = { self.changed.iter() }
            .map(|(key, sum)| (key.as_ref(), Some(sum.as_ref())))
            .collect();
        map::changed(old, &changes, host)
    }
}

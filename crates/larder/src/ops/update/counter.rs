//! Counters: `update_counter` (step 2 of the module above).
//!
//! 1. Take the operations one by one, in their order.
//! 2. The first operation on an element reads it from the old value. Later ones on the same element
//!    add to that.
//! 3. Write each counter once, in the order of positions.
//!
//! Nearly all calls have one operation, or several in ascending order of positions. So a counter is
//! written when the next operation is on a later element. If one is on an earlier element, the call
//! starts over: the counter that is being added to is a variable, and those of other elements are
//! kept apart ([`Others`]) until the last operation.

use super::counter_op::{CounterOp, CounterOps};
use super::map::put_changed;
use super::{MapChange, MapHost, NewRow, Sorted};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::table::EngineTable;
use larder_term::number::Number;
use larder_term::object::patch::{Element, Patch};
use larder_term::object::ObjectRef;
use larder_term::{MapEdit, Term, TermRef};
use smallvec::SmallVec;
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
        with_local(|local| {
            let mut update = |local: &mut Local, row: Option<&ObjectRef<'_>>| {
                let out = &mut (&mut *sums, &mut Sorted as &mut dyn MapHost);
                self.update_counter_in(local, who, key, &|| ops.iter(), row, out)
            };
            // The default is made into an object only if the key is not there. If the key comes in
            // between, the second call finds it, and the default is not used.
            let done = update(local, None);
            let (Err(Error::BadKey), Some(row)) = (&done, default) else {
                return done;
            };
            let row = self.new_row(row)?;
            update(local, Some(&row.borrow()))
        })
    }

    /// As `update_counter`, for hosts. `default` is an object of the table with the key.
    ///
    /// The host decodes its operations while they are applied, so that a long list takes no memory.
    /// `ops()` is used under the leaf's lock, and called again if the write is repeated. An
    /// operation that is an error ends the call when it is reached, unless an earlier one is wrong.
    /// The new values go to the first part of `out`; the second writes maps.
    ///
    /// # Errors
    /// Those of `update_counter`; the first op that is an error.
    #[inline]
    pub fn update_counter_in<O: CounterOps>(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ops: &impl Fn() -> O,
        default: Option<&ObjectRef<'_>>,
        out: &mut (&mut impl Sums, &mut dyn MapHost),
    ) -> Result<(), Error> {
        // Only needed if the value is compressed.
        let last = || {
            let (mut ops, mut place, mut last) = (ops(), CounterOp::default(), 0);
            while let Ok(Some(op)) = ops.next(&mut place) {
                last = last.max(op.pos);
            }
            last
        };
        // Keys of maps are put into the patch, which owns no counts of their handles. So they live
        // until the object is stored.
        let mut kept = KeptKeys::new();
        let found = self.edit(local, who, key, (default, &last), &mut |patch| {
            // Discard what a previous attempt has pushed, which was computed from another old
            // value.
            out.0.clear();
            kept.clear();
            match self.count(patch, ops(), out, &mut kept, true)? {
                true => Ok(()),
                false => self.count_again(patch, ops(), out, &mut kept),
            }
        })?;
        if found {
            Ok(())
        } else {
            Err(Error::BadKey)
        }
    }

    /// Starts over, for operations in any order.
    #[cold]
    #[inline(never)]
    fn count_again(
        &self,
        patch: &mut Patch<'_, '_>,
        ops: impl CounterOps,
        out: &mut (&mut impl Sums, &mut dyn MapHost),
        kept: &mut KeptKeys,
    ) -> Result<(), Error> {
        out.0.clear();
        kept.clear();
        patch.restart();
        self.count(patch, ops, out, kept, false).map(drop)
    }

    /// Applies the operations to the elements of a value. If they are to be `ascending` by position
    /// and aren't, or if one before the last element adds within a map, stops and returns `false`.
    #[inline(always)]
    fn count(
        &self,
        patch: &mut Patch<'_, '_>,
        mut ops: impl CounterOps,
        (sums, host): &mut (&mut impl Sums, &mut dyn MapHost),
        kept: &mut KeptKeys,
        ascending: bool,
    ) -> Result<bool, Error> {
        let mut place = CounterOp::default();
        let Some(mut op) = ops.next(&mut place)? else {
            return Ok(true);
        };
        // The current counter, that of `op`; and those of other elements, once there is one.
        let mut current = self.counter(op, patch)?;
        let (mut others, mut too_large) = (None::<Others<'_>>, None);
        loop {
            match current.count(op, *sums) {
                Ok(()) => {}
                // Any other error of a later operation is reported before this one.
                Err(error @ Error::SystemLimit(_)) => too_large = Some(error),
                Err(error) => return Err(error),
            }
            op = match ops.next(&mut place)? {
                Some(op) => op,
                None => break,
            };
            // The next operation is on another element: the counter of that one becomes the current
            // one.
            if op.pos != current.pos && ascending {
                let NewElement::Number(_) = &current.new else {
                    return Ok(false);
                };
                if op.pos < current.pos {
                    return Ok(false);
                }
                current.put(patch, *host, kept)?;
                current = self.counter(op, patch)?;
            } else if op.pos != current.pos {
                // An earlier operation may have read it already.
                let others = others.get_or_insert_default();
                let next = match others.take(op.pos) {
                    Some(counter) => counter,
                    None => self.counter(op, patch)?,
                };
                others.add(std::mem::replace(&mut current, next));
            }
        }
        if let Some(error) = too_large {
            return Err(error);
        }
        // No operation is wrong. Each element is written once, in the order of positions.
        match others {
            None => current.put(patch, *host, kept)?,
            Some(mut all) => {
                all.add(current);
                all.put_all(patch, *host, kept)?;
            }
        }
        Ok(true)
    }

    /// The counter at an operation's position, with the element's value in the object.
    ///
    /// # Errors
    /// `Keypos`, `Position`, `NotInteger`, `NotMap`.
    #[inline(always)]
    fn counter<'v>(
        &self,
        op: &CounterOp,
        patch: &mut Patch<'v, '_>,
    ) -> Result<UpdatedCounter<'v>, Error> {
        if !patch.has(op.pos) {
            return Err(self.no_element(op.pos));
        }
        let old = patch.element(op.pos);
        // An integer is the counter itself. Otherwise the counter must be a value in a map.
        let new = match Number::from_term(old.term).filter(Number::is_integer) {
            Some(number) => NewElement::Number(number),
            None => NewElement::Map(CountersInMap::new(op, old.term)?),
        };
        let pos = op.pos;
        Ok(UpdatedCounter { pos, old, new })
    }
}

/// The counters of a call except the current one, in the order of their positions. A few are in an
/// array on the stack; a call with more than [`FEW`] counters keeps them in a tree.
#[expect(
    clippy::large_enum_variant,
    reason = "the array is on the stack to save an allocation"
)]
enum Others<'v> {
    Few(SmallVec<[UpdatedCounter<'v>; FEW]>),
    Many(BTreeMap<usize, UpdatedCounter<'v>>),
}

/// The number of counters that are found by comparing their positions, one by one.
const FEW: usize = 4;

impl Default for Others<'_> {
    fn default() -> Self {
        Others::Few(SmallVec::new())
    }
}

impl<'v> Others<'v> {
    /// Removes the counter at a position.
    fn take(&mut self, pos: usize) -> Option<UpdatedCounter<'v>> {
        match self {
            Others::Few(few) => {
                let at = few.iter().position(|counter| counter.pos == pos)?;
                Some(few.remove(at))
            }
            Others::Many(many) => many.remove(&pos),
        }
    }

    /// Adds a counter at a position that has none.
    fn add(&mut self, counter: UpdatedCounter<'v>) {
        match self {
            Others::Few(few) if few.len() < FEW => {
                let at = few.iter().take_while(|other| other.pos < counter.pos);
                few.insert(at.count(), counter);
            }
            Others::Few(few) => {
                let few = few.drain(..).chain([counter]);
                *self = Others::Many(few.map(|counter| (counter.pos, counter)).collect());
            }
            Others::Many(many) => {
                many.insert(counter.pos, counter);
            }
        }
    }

    /// Writes all counters in place of the elements.
    fn put_all(
        self,
        patch: &mut Patch<'v, '_>,
        host: &mut dyn MapHost,
        kept: &mut KeptKeys,
    ) -> Result<(), Error> {
        let mut put = |counter: UpdatedCounter<'v>| counter.put(patch, host, kept);
        match self {
            Others::Few(few) => few.into_iter().try_for_each(&mut put),
            Others::Many(many) => many.into_values().try_for_each(&mut put),
        }
    }
}

/// Counters in maps that were put. Their keys are alive until the object is stored.
type KeptKeys = Vec<CountersInMap>;

/// An element to which operations add: an integer, or a map whose values are integers.
struct UpdatedCounter<'v> {
    pos: usize,
    old: Element<'v>,
    new: NewElement,
}

/// An element after the operations so far.
enum NewElement {
    Number(Number),
    Map(Box<CountersInMap>),
}

impl<'v> UpdatedCounter<'v> {
    /// Applies an operation, and pushes the counter's value to `sums`.
    ///
    /// # Errors
    /// As `update_counter`.
    #[inline]
    fn count(&mut self, op: &CounterOp, sums: &mut impl Sums) -> Result<(), Error> {
        match &mut self.new {
            NewElement::Number(number) => {
                // An error leaves the counter as it was, and ends the call.
                op.apply(number)?;
                sums.push(number);
            }
            NewElement::Map(counters) => sums.push(&counters.count(op)?),
        }
        Ok(())
    }

    /// Writes the new element in place of the old one.
    #[inline(always)]
    fn put(
        self,
        patch: &mut Patch<'v, '_>,
        host: &mut dyn MapHost,
        kept: &mut KeptKeys,
    ) -> Result<(), Error> {
        match self.new {
            NewElement::Number(number) => patch.put_with(self.old, |out| number.push(out)),
            NewElement::Map(counters) => {
                counters.put(self.old, patch, host)?;
                kept.push(*counters);
            }
        }
        Ok(())
    }
}

/// Counters that are values of one map.
struct CountersInMap {
    /// The map as it is in the object.
    map: MapEdit,
    /// The keys that operations have added to, each once, and their values so far.
    changed: Vec<(Term, Term)>,
}

impl CountersInMap {
    #[cold]
    fn new(op: &CounterOp, element: TermRef<'_>) -> Result<Box<Self>, Error> {
        if op.in_map_of().is_none() {
            return Err(Error::NotInteger);
        }
        let (map, changed) = (MapEdit::new(element).ok_or(Error::NotMap)?, Vec::new());
        Ok(Box::new(CountersInMap { map, changed }))
    }

    #[cold]
    fn count(&mut self, op: &CounterOp) -> Result<Number, Error> {
        let counter = op.in_map_of().ok_or(Error::NotInteger)?;
        let key = counter.key.as_ref();
        // The counter's current value: the result of an earlier operation, or the value in the
        // object's map.
        let earlier = self
            .changed
            .iter()
            .position(|(other, _)| other.as_ref().identical(key));
        let mut number = match earlier {
            Some(i) => counter.number_of(Some(self.changed[i].1.as_ref()))?,
            None => counter.number_of(self.map.get(key))?,
        };
        counter.op.apply(&mut number)?;
        let sum = Term::build(|out| number.encode(out)).map_err(|_| Error::NotInteger)?;
        match earlier {
            Some(i) => self.changed[i].1 = sum,
            None => self.changed.push((counter.key.clone(), sum)),
        }
        Ok(number)
    }

    #[cold]
    fn put<'v>(
        &self,
        old: Element<'v>,
        patch: &mut Patch<'v, '_>,
        host: &mut dyn MapHost,
    ) -> Result<(), Error> {
        let changed = self.changed.iter();
        // Keys whose counters have changed, with their sums.
        let changes: Vec<MapChange<'_>> = changed
            .map(|(key, sum)| (key.as_ref(), Some(sum.as_ref())))
            .collect();
        put_changed(patch, old, &changes, host)
    }
}

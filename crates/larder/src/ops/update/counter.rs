//! Counters: `update_counter`.

use super::counter_op::CounterOp;
use super::map::put_changed;
use super::{Edited, MapHost, NewRow, Pair, Sorted};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::table::Table;
use larder_term::number::Number;
use larder_term::object::patch::{Element, Patch};
use larder_term::object::ObjectRef;
use larder_term::{MapEdit, Term, TermRef};
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Where the new values of counters go, one for each operation.
pub trait Sums {
    /// Forgets them: the operations begin anew.
    fn clear(&mut self);
    /// Takes the next one.
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

/// Of several the last one stays.
impl Sums for Option<Number> {
    fn clear(&mut self) {
        *self = None;
    }

    #[inline]
    fn push(&mut self, sum: &Number) {
        *self = Some(sum.clone());
    }
}

impl Table {
    /// Adds to elements of the object under the index key; the new value for each op goes to
    /// `sums`. With `default`, an object that is not there is made of it first. Ops are applied in
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
        sums: &mut impl Sums,
    ) -> Result<(), Error> {
        with_local(|local| {
            let mut update = |local: &mut Local, row: Option<ObjectRef<'_>>| {
                let ops = ops.iter().map(Ok);
                self.update_counter_in(local, who, key, ops, row, (sums, &mut Sorted))
            };
            // The default is made into an object only if the key is not there. If the key comes in
            // between, the second call finds it, and the default is not used.
            let done = update(local, None);
            let (Err(Error::BadKey), Some(row)) = (&done, default) else {
                return done;
            };
            let row = self.new_row(row)?;
            update(local, Some(row.borrow()))
        })
    }

    /// As `update_counter`, with the default as an object of the table that has the key. An op that
    /// is an error is reported when its turn comes. The ops are taken under the leaf's lock, and
    /// anew if the write begins anew.
    ///
    /// # Errors
    /// As `update_counter`; the first op that is an error.
    #[inline]
    pub fn update_counter_in<O: Borrow<CounterOp>>(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ops: impl Iterator<Item = Result<O, Error>> + Clone,
        default: Option<ObjectRef<'_>>,
        (sums, host): (&mut impl Sums, &mut dyn MapHost),
    ) -> Result<(), Error> {
        let last = || {
            let ops = ops.clone().flatten();
            ops.map(|op| op.borrow().pos).max().unwrap_or(0)
        };
        let found = self.edit(local, who, key, (default, last), |value, out| {
            sums.clear();
            self.count(value, ops.clone(), (sums, host), out)
        })?;
        if found {
            Ok(())
        } else {
            Err(Error::BadKey)
        }
    }

    /// Works the ops out on a value and writes the new one.
    #[inline]
    fn count<O: Borrow<CounterOp>>(
        &self,
        value: &[u8],
        ops: impl Iterator<Item = Result<O, Error>>,
        (sums, host): (&mut impl Sums, &mut dyn MapHost),
        out: &mut Vec<u8>,
    ) -> Result<Edited, Error> {
        let mut ops = ops;
        let mut patch = Patch::new(value, self.keypos(), out);
        let Some(first) = ops.next() else {
            return Ok(Edited::Same);
        };
        let mut op = first?;
        let mut here = self.counter(op.borrow(), &mut patch)?;
        let (mut others, mut too_large) = (None::<Box<Others<'_>>>, None);
        loop {
            match here.count(op.borrow(), sums) {
                Ok(()) => {}
                // What is wrong with a later op is reported before an integer that is too large.
                Err(error @ Error::SystemLimit(_)) => too_large = Some(error),
                Err(error) => return Err(error),
            }
            match ops.next() {
                Some(next) => op = next?,
                None => break,
            }
            let pos = op.borrow().pos;
            if pos != here.pos {
                let others = others.get_or_insert_default();
                let next = match others.remove(&pos) {
                    Some(counter) => counter,
                    None => self.counter(op.borrow(), &mut patch)?,
                };
                let before = std::mem::replace(&mut here, next);
                others.insert(before.pos, before);
            }
        }
        if let Some(error) = too_large {
            return Err(error);
        }
        // All ops are applied: each element is written once, in the order of positions.
        match others {
            None => here.put(&mut patch, host)?,
            Some(mut all) => {
                all.insert(here.pos, here);
                let mut all = all.into_values();
                all.try_for_each(|counter| counter.put(&mut patch, host))?;
            }
        }
        Ok(Edited::anew(patch.finish()))
    }

    /// The element at an op's position, in which nothing is counted yet.
    ///
    /// # Errors
    /// `Keypos`, `Position`, `NotInteger`, `NotMap`.
    #[inline(always)]
    fn counter<'v>(&self, op: &CounterOp, patch: &mut Patch<'v, '_>) -> Result<Counter<'v>, Error> {
        if !patch.has(op.pos) {
            return Err(self.no_element(op.pos));
        }
        let old = patch.element(op.pos);
        let sum = match Number::from_term(old.term).filter(Number::is_integer) {
            Some(number) => Sum::Number(number),
            None => Sum::Map(CountersInMap::new(op, old.term)?),
        };
        let pos = op.pos;
        Ok(Counter { pos, old, sum })
    }
}

/// The elements that a call counts in, but for the last, by their positions.
type Others<'v> = BTreeMap<usize, Counter<'v>>;

/// An element that is counted in.
struct Counter<'v> {
    pos: usize,
    old: Element<'v>,
    sum: Sum,
}

/// What an element has become.
enum Sum {
    Number(Number),
    Map(Box<CountersInMap>),
}

impl<'v> Counter<'v> {
    /// Applies an op, and gives the new value to `sums`.
    ///
    /// # Errors
    /// As `update_counter`.
    #[inline]
    fn count(&mut self, op: &CounterOp, sums: &mut impl Sums) -> Result<(), Error> {
        match &mut self.sum {
            Sum::Number(number) => {
                op.apply(number)?;
                sums.push(number);
            }
            Sum::Map(counters) => sums.push(&counters.count(op)?),
        }
        Ok(())
    }

    /// Puts what it has become in its place.
    #[inline(always)]
    fn put(self, patch: &mut Patch<'v, '_>, host: &mut dyn MapHost) -> Result<(), Error> {
        match self.sum {
            Sum::Number(number) => {
                patch.put_with(self.old, |out| number.push(out));
                Ok(())
            }
            Sum::Map(counters) => counters.put(self.old, patch, host),
        }
    }
}

/// Counters that are values of one map.
struct CountersInMap {
    map: MapEdit,
    /// Their keys and new values.
    sums: Vec<(Term, Term)>,
}

impl CountersInMap {
    #[cold]
    fn new(op: &CounterOp, element: TermRef<'_>) -> Result<Box<Self>, Error> {
        if op.in_map_of().is_none() {
            return Err(Error::NotInteger);
        }
        let (map, sums) = (MapEdit::new(element).ok_or(Error::NotMap)?, Vec::new());
        Ok(Box::new(CountersInMap { map, sums }))
    }

    #[cold]
    fn count(&mut self, op: &CounterOp) -> Result<Number, Error> {
        let counter = op.in_map_of().ok_or(Error::NotInteger)?;
        let key = counter.key.as_ref();
        // What an op before this one has counted, or what the map has.
        let before = self
            .sums
            .iter()
            .position(|(other, _)| other.as_ref().identical(key));
        let mut number = match before {
            Some(i) => counter.number_of(Some(self.sums[i].1.as_ref()))?,
            None => counter.number_of(self.map.get(key))?,
        };
        counter.op.apply(&mut number)?;
        let sum = Term::build(|out| number.encode(out)).map_err(|_| Error::NotInteger)?;
        match before {
            Some(i) => self.sums[i].1 = sum,
            None => self.sums.push((counter.key.clone(), sum)),
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
        let sums = self.sums.iter();
        let changes: Vec<Pair<'_>> = sums
            .map(|(key, sum)| (key.as_ref(), Some(sum.as_ref())))
            .collect();
        put_changed(patch, old, &changes, host)
    }
}

//! Counters: `update_counter`.

use super::map::put_changed;
use super::{Edited, MapHost, NewRow, Order, Pair, Sorted};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::table::Table;
use larder_term::number::{Number, NumberError};
use larder_term::object::patch::Patch;
use larder_term::object::ObjectRef;
use larder_term::{MapEdit, Term, TermRef};
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
    InMap(Box<InMap>),
}

/// A counter that is the value of a key of a map.
#[derive(Clone, Debug)]
struct InMap {
    key: Term,
    /// What the counter begins with, if the map has not the key.
    initial: Option<Number>,
    op: CounterOp,
}

#[derive(Clone, Debug)]
struct AnyIncrement {
    incr: Number,
    limit: Option<(Number, Number)>,
}

/// The new values of counters, one for each operation.
pub type Sums = SmallVec<[Number; 4]>;

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

    /// The same for a counter in the map that the element is: the value of a key. If the map has
    /// not the key, the counter begins with `initial`, if there is that.
    pub fn in_map(self, key: Term, initial: Option<Number>) -> Self {
        CounterOp {
            pos: self.pos,
            step: Increment::InMap(Box::new(InMap {
                key,
                initial,
                op: self,
            })),
        }
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
            // What it counts is not the element.
            Increment::InMap(_) => false,
        }
    }

    /// Puts the sum in the place of the number.
    #[inline]
    fn apply(&self, number: &mut Number) -> Result<(), Error> {
        // Nearly all counters are sums of small integers: they need no number of more words, and no
        // call. One that overflows is worked out anew.
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
            Increment::InMap(counter) => return counter.op.apply(number),
        };
        *number = sum?;
        Ok(())
    }
}

impl InMap {
    /// The counter, if this is what the map has.
    fn number_of(&self, value: Option<TermRef<'_>>) -> Result<Number, Error> {
        let number = match value {
            Some(value) => Number::from_term(value).filter(Number::is_integer),
            None => Some(self.initial.clone().ok_or(Error::NoMapKey)?).filter(Number::is_integer),
        };
        number
            .filter(|_| self.op.is_whole())
            .ok_or(Error::NotInteger)
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
            NumberError::SystemLimit => Error::SystemLimit(e.to_string().into()),
            NumberError::BadArith => Error::NotInteger,
        })?;
        let Some((threshold, value)) = limit else {
            return Ok(sum);
        };
        // As in `ets`: an increment of 0 counts as one upwards.
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
            // The default is made into an object only if the key is not there. If the key comes in
            // between, the second call finds it, and the default is not used.
            let mut update = |local: &mut Local, row: Option<ObjectRef<'_>>| {
                self.update_counter_in(local, who, key, ops, row, (&mut sums, &mut Sorted))
            };
            let done = update(local, None);
            let (Err(Error::BadKey), Some(row)) = (&done, default) else {
                return done;
            };
            let row = self.new_row(row)?;
            update(local, Some(row.borrow()))
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
        (sums, host): (&mut Sums, &mut dyn MapHost),
    ) -> Result<(), Error> {
        let last = || ops.iter().map(|op| op.pos).max().unwrap_or(0);
        let found = self.edit(local, who, key, (default, last), |value, out| {
            // The closure is called again if the write begins anew, or a compressed value turns out
            // to need the whole: sums of before are of no use.
            sums.clear();
            if ops.is_empty() {
                return Ok(Edited::Same);
            }
            self.count(value, ops, (sums, host), out)
        })?;
        if found {
            Ok(())
        } else {
            Err(Error::BadKey)
        }
    }

    /// Works the ops out on a value and writes the new one.
    #[inline]
    fn count(
        &self,
        value: &[u8],
        ops: &[CounterOp],
        (sums, host): (&mut Sums, &mut dyn MapHost),
        out: &mut Vec<u8>,
    ) -> Result<Edited, Error> {
        // One walk over the elements: the ops are applied by their positions, those for one element
        // in the order in which they came.
        let order = Order::of(ops, |op| op.pos);
        let mut patch = Patch::new(value, self.keypos(), out);
        sums.resize(ops.len(), Number::Int(0));
        let (mut i, mut too_large) = (0, None);
        while let Some(mut op) = order.get(ops, i) {
            let pos = op.pos;
            if !patch.has(pos) {
                return Err(self.why_not(value, ops));
            }
            // What lies before the element is copied; then its sum takes its place.
            let old = patch.element(pos);
            // Which error is reported is a matter of the order in which ops came, not of this
            // walk's: `why_not` looks for the first.
            let Some(mut number) = Number::from_term(old).filter(Number::is_integer) else {
                let here = (&order, ops, &mut i);
                let Ok((counters, wrong)) = count_in_map(old, here, sums) else {
                    return Err(self.why_not(value, ops));
                };
                let counters = counters.iter().map(|(key, sum)| (*key, Some(sum.as_ref())));
                let changes: SmallVec<[Pair<'_>; 4]> = counters.collect();
                put_changed(&mut patch, old, &changes, host)?;
                too_large = wrong.or(too_large);
                continue;
            };
            while op.pos == pos {
                if !op.is_whole() {
                    return Err(self.why_not(value, ops));
                }
                // What is wrong with a later op is reported before an integer that is too large.
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
            // All ops for the element are applied: it is written once.
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
        // Each op is looked at by itself, in the order in which they came: the walk that failed
        // went by positions.
        let wrong = |op: &CounterOp| {
            let mut out = Vec::new();
            let mut patch = Patch::new(value, self.keypos(), &mut out);
            if !patch.has(op.pos) {
                return Some(self.no_element(op.pos));
            }
            let element = patch.element(op.pos);
            if let Increment::InMap(counter) = &op.step {
                let map = MapEdit::new(element).ok_or(Error::NotMap);
                return map
                    .and_then(|map| counter.number_of(map.get(counter.key.as_ref())))
                    .err();
            }
            let number = Number::from_term(element);
            let integers = number.is_some_and(|n| n.is_integer()) && op.is_whole();
            (!integers).then_some(Error::NotInteger)
        };
        ops.iter().find_map(wrong).unwrap_or(Error::NotInteger)
    }
}

/// The keys of counters in a map, with their new values, in the order of their ops.
type Counters<'o> = SmallVec<[(TermRef<'o>, Term); 4]>;

/// Works the ops out, from the `i`th on, that are for a map at one position; and says if an integer
/// is too large.
///
/// # Errors
/// If something is wrong with one: `why_not` says which error it is.
#[cold]
fn count_in_map<'o>(
    old: TermRef<'_>,
    (order, ops, i): (&Order, &'o [CounterOp], &mut usize),
    sums: &mut Sums,
) -> Result<(Counters<'o>, Option<Error>), Error> {
    let map = MapEdit::new(old).ok_or(Error::NotMap)?;
    let (mut too_large, pos) = (None, order.get(ops, *i).map(CounterOp::pos));
    let mut done = Counters::new();
    while let Some(op) = order.get(ops, *i).filter(|op| Some(op.pos) == pos) {
        let Increment::InMap(counter) = &op.step else {
            return Err(Error::NotInteger);
        };
        let key = counter.key.as_ref();
        // What an op before this one has counted, or what the map has.
        let before = done.iter().rev().find(|(other, _)| other.identical(key));
        let mut number = match before {
            Some((_, sum)) => counter.number_of(Some(sum.as_ref()))?,
            None => counter.number_of(map.get(key))?,
        };
        if let Err(error) = counter.op.apply(&mut number) {
            too_large = Some(error);
        }
        let sum = Term::build(|out| number.encode(out)).map_err(|_| Error::NotInteger)?;
        done.push((key, sum));
        sums[order.place(*i)] = number;
        *i += 1;
    }
    Ok((done, too_large))
}

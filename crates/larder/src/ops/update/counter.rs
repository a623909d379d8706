//! Counters: `update_counter`.

use super::{Edited, NewRow, Order};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::table::Table;
use larder_term::number::{Number, NumberError};
use larder_term::object::patch::Patch;
use larder_term::object::ObjectRef;
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
            // The closure is called again if the write begins anew, or a compressed value turns out
            // to need the whole: sums of before are of no use.
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

    /// Works the ops out on a value and writes the new one.
    #[inline]
    fn count(
        &self,
        value: &[u8],
        ops: &[CounterOp],
        sums: &mut Sums,
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
                return Err(self.why_not(value, ops));
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
            let number = Number::from_term(patch.element(op.pos));
            let integers = number.is_some_and(|n| n.is_integer()) && op.is_whole();
            (!integers).then_some(Error::NotInteger)
        };
        ops.iter().find_map(wrong).unwrap_or(Error::NotInteger)
    }
}

//! One operation of `update_counter`: what it adds, and to which element.

use crate::error::Error;
use larder_term::number::{Number, NumberError};
use larder_term::{Term, TermRef};
use std::borrow::Borrow;
use std::cmp::Ordering;

/// One operation of `update_counter`. It adds to the element at a position, counted from 1. It may
/// have a threshold: if the sum passes that, the element becomes another value instead.
#[derive(Clone, Debug)]
pub struct CounterOp {
    pub(super) pos: usize,
    step: Increment,
}

/// What an operation adds. What isn't of integers of 64 bits is boxed, so that an operation takes
/// few bytes: there may be a million of them. One box has all that is rare, so that an operation is
/// dropped with one test.
#[derive(Clone, Debug)]
enum Increment {
    Small(SmallIncrement),
    Rare(Box<RareIncrement>),
}

#[derive(Clone, Copy, Debug)]
struct SmallIncrement {
    incr: i64,
    /// The threshold, and the value that replaces a sum that passes it.
    limit: Option<(i64, i64)>,
}

/// An operation on an element that is an integer, of integers of 64 bits.
// It needn't be dropped, so it stays in registers.
#[derive(Clone, Copy, Debug)]
pub struct SmallOp {
    pub(super) pos: usize,
    step: SmallIncrement,
}

impl SmallOp {
    /// Adds an integer to the element at a position. `limit` is a threshold, and the value that
    /// replaces a sum that passes it.
    #[inline(always)]
    pub fn new(pos: usize, incr: i64, limit: Option<(i64, i64)>) -> Self {
        let step = SmallIncrement { incr, limit };
        SmallOp { pos, step }
    }

    /// The new value of a counter; `None` if 64 bits don't suffice.
    #[inline(always)]
    pub(super) fn sum(&self, n: i64) -> Option<i64> {
        let SmallIncrement { incr, limit } = self.step;
        let sum = n.checked_add(incr)?;
        let Some((threshold, value)) = limit else {
            return Some(sum);
        };
        // As in `ets`: an increment of 0 counts as one upwards.
        let passed = match incr >= 0 {
            true => sum > threshold,
            false => sum < threshold,
        };
        Some(if passed { value } else { sum })
    }
}

#[derive(Clone, Debug)]
enum RareIncrement {
    /// With an integer of more than 64 bits, or a number that isn't an integer, which is an error.
    Any(AnyIncrement),
    InMap(InMap),
}

/// A counter that is the value of a key of a map.
#[derive(Clone, Debug)]
pub(super) struct InMap {
    pub(super) key: Term,
    /// The initial value of the counter if the map doesn't have the key.
    initial: Option<Number>,
    pub(super) op: CounterOp,
}

#[derive(Clone, Debug)]
struct AnyIncrement {
    incr: Number,
    /// The threshold, and the value that replaces a sum that passes it.
    limit: Option<(Number, Number)>,
}

/// The operations of a call. A clone begins with the operation that is the next one.
pub trait CounterOps: Clone {
    /// An operation, or a reference to one.
    type Op: Borrow<CounterOp>;

    /// The next operation; `None` at the end.
    ///
    /// # Errors
    /// The next operation is none.
    fn next(&mut self) -> Result<Option<Self::Op>, Error>;

    /// As `next`, if the next operation is a `SmallOp`. Otherwise `None`, and no further operation
    /// is taken.
    fn next_small(&mut self) -> Option<Option<SmallOp>>;
}

impl<'o> CounterOps for std::slice::Iter<'o, CounterOp> {
    type Op = &'o CounterOp;

    #[inline]
    fn next(&mut self) -> Result<Option<&'o CounterOp>, Error> {
        Ok(Iterator::next(self))
    }

    #[inline]
    fn next_small(&mut self) -> Option<Option<SmallOp>> {
        match Iterator::next(self) {
            Some(op) => op.small().map(Some),
            None => Some(None),
        }
    }
}

impl From<SmallOp> for CounterOp {
    #[inline]
    fn from(op: SmallOp) -> Self {
        CounterOp {
            pos: op.pos,
            step: Increment::Small(op.step),
        }
    }
}

impl CounterOp {
    /// Adds an integer to the element at a position.
    #[inline]
    pub fn new(pos: usize, incr: Number) -> Self {
        match incr {
            Number::Int(incr) => SmallOp::new(pos, incr, None).into(),
            incr => CounterOp::rare(pos, RareIncrement::Any(AnyIncrement { incr, limit: None })),
        }
    }

    #[cold]
    fn rare(pos: usize, rare: RareIncrement) -> Self {
        let step = Increment::Rare(Box::new(rare));
        CounterOp { pos, step }
    }

    /// The same operation, if it is a small one.
    #[inline]
    pub(super) fn small(&self) -> Option<SmallOp> {
        match self.step {
            Increment::Small(step) => Some(SmallOp {
                pos: self.pos,
                step,
            }),
            Increment::Rare(_) => None,
        }
    }

    /// Like `new`. If the sum passes the threshold (in the direction of the increment, up for 0),
    /// the element becomes the value.
    #[inline]
    pub fn limited(pos: usize, incr: Number, threshold: Number, value: Number) -> Self {
        match (incr, threshold, value) {
            (Number::Int(incr), Number::Int(threshold), Number::Int(value)) => {
                SmallOp::new(pos, incr, Some((threshold, value))).into()
            }
            (incr, threshold, value) => {
                let limit = Some((threshold, value));
                CounterOp::rare(pos, RareIncrement::Any(AnyIncrement { incr, limit }))
            }
        }
    }

    /// The same operation on a counter within a map: the element is a map, and the counter is the
    /// value of `key` in it. If the map doesn't have the key, the counter begins with `initial`;
    /// without `initial` that is an error.
    pub fn in_map(self, key: Term, initial: Option<Number>) -> Self {
        // The operation itself becomes a part, since it says what to add to the value.
        let (pos, op) = (self.pos, self);
        CounterOp::rare(pos, RareIncrement::InMap(InMap { key, initial, op }))
    }

    /// The counter within a map, if the operation is on one.
    pub(super) fn in_map_of(&self) -> Option<&InMap> {
        match &self.step {
            Increment::Rare(rare) => match &**rare {
                RareIncrement::InMap(counter) => Some(counter),
                RareIncrement::Any(_) => None,
            },
            Increment::Small(_) => None,
        }
    }

    /// Adds to a counter.
    ///
    /// # Errors
    /// `NotInteger`, `NotMap`, `SystemLimit`: the number stays as it was.
    pub(super) fn apply(&self, number: &mut Number) -> Result<(), Error> {
        // A sum that doesn't fit in 64 bits is computed again with big integers.
        if let Number::Int(n) = number {
            if let Some(sum) = self.small().and_then(|op| op.sum(*n)) {
                *n = sum;
                return Ok(());
            }
        }
        self.apply_large(number)
    }

    /// `apply` for integers of any size.
    #[cold]
    fn apply_large(&self, number: &mut Number) -> Result<(), Error> {
        let sum = match &self.step {
            // At least one of the numbers is too large for 64 bits. The limit applies as above.
            Increment::Small(SmallIncrement { incr, limit }) => {
                let limit =
                    limit.map(|(threshold, value)| (Number::Int(threshold), Number::Int(value)));
                AnyIncrement::sum(number, &Number::Int(*incr), limit.as_ref())
            }
            Increment::Rare(rare) => match &**rare {
                RareIncrement::Any(step) if !step.is_integral() => Err(Error::NotInteger),
                RareIncrement::Any(step) => {
                    AnyIncrement::sum(number, &step.incr, step.limit.as_ref())
                }
                // The element is an integer, but the operation needs a map.
                RareIncrement::InMap(_) => Err(Error::NotMap),
            },
        };
        *number = sum?;
        Ok(())
    }
}

impl InMap {
    /// The counter's number, given the key's value in the map.
    ///
    /// # Errors
    /// `NoMapKey`, `NotInteger`.
    pub(super) fn number_of(&self, value: Option<TermRef<'_>>) -> Result<Number, Error> {
        let number = match value {
            Some(value) => Number::from_term(value).filter(Number::is_integer),
            None => Some(self.initial.clone().ok_or(Error::NoMapKey)?).filter(Number::is_integer),
        };
        number.ok_or(Error::NotInteger)
    }
}

impl AnyIncrement {
    /// Whether all its numbers are integers.
    fn is_integral(&self) -> bool {
        let numbers = self.limit.iter().flat_map(|(a, b)| [a, b]);
        std::iter::once(&self.incr)
            .chain(numbers)
            .all(Number::is_integer)
    }

    /// The new value of a counter: the sum, or the value of a limit that it passes.
    fn sum(
        number: &Number,
        incr: &Number,
        limit: Option<&(Number, Number)>,
    ) -> Result<Number, Error> {
        // The counter and the increment are integers here, or `BadArith` says that one isn't.
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

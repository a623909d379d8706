//! One operation of `update_counter`: what it adds, and to which element.

use crate::error::Error;
use larder_term::number::{Number, NumberError};
use larder_term::{Term, TermRef};
use std::cmp::Ordering;

/// One operation of `update_counter`. It adds to the element at a position, counted from 1. It may
/// have a threshold: if the sum passes that, the element becomes another value instead.
#[derive(Clone, Debug)]
pub struct CounterOp {
    pub(super) pos: usize,
    step: Increment,
}

/// What an operation adds. Integers of 64 bits are stored in the operation itself. Anything else is
/// boxed, so that an operation takes few bytes: there may be a million of them. One box has all
/// that is rare, so that an operation is dropped with one test.
#[derive(Clone, Debug)]
enum Increment {
    Add(i64),
    /// `value` replaces a sum that passes `threshold`.
    AddUpTo {
        incr: i64,
        threshold: i64,
        value: i64,
    },
    Rare(Box<RareIncrement>),
}

#[derive(Clone, Debug)]
enum RareIncrement {
    /// With an integer of more than 64 bits, or a number that isn't an integer, which is an error.
    Any(AnyIncrement),
    InMap(InMap),
}

impl From<RareIncrement> for Increment {
    #[cold]
    fn from(rare: RareIncrement) -> Self {
        Increment::Rare(Box::new(rare))
    }
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

/// The operations of a call.
pub trait CounterOps {
    /// The next operation; `None` at the end. One that is decoded is written to `place`: a copy of
    /// it would take as long as the addition.
    ///
    /// # Errors
    /// The next operation is none.
    fn next<'o>(&'o mut self, place: &'o mut CounterOp) -> Result<Option<&'o CounterOp>, Error>;
}

impl CounterOps for std::slice::Iter<'_, CounterOp> {
    #[inline]
    fn next<'o>(&'o mut self, _: &'o mut CounterOp) -> Result<Option<&'o CounterOp>, Error> {
        Ok(Iterator::next(self))
    }
}

impl Default for CounterOp {
    /// Adds nothing to no element: a place for `CounterOps::next`.
    fn default() -> Self {
        CounterOp::new(0, Number::Int(0))
    }
}

impl CounterOp {
    /// Adds an integer to the element at a position.
    #[inline]
    pub fn new(pos: usize, incr: Number) -> Self {
        let step = match incr {
            Number::Int(incr) => Increment::Add(incr),
            incr => RareIncrement::Any(AnyIncrement { incr, limit: None }).into(),
        };
        CounterOp { pos, step }
    }

    /// Like `new`. If the sum passes the threshold (in the direction of the increment, up for 0),
    /// the element becomes the value.
    #[inline]
    pub fn limited(pos: usize, incr: Number, threshold: Number, value: Number) -> Self {
        // Small numbers are stored in place. Anything else is boxed, since it is rare.
        let step = match (incr, threshold, value) {
            (Number::Int(incr), Number::Int(threshold), Number::Int(value)) => Increment::AddUpTo {
                incr,
                threshold,
                value,
            },
            (incr, threshold, value) => RareIncrement::Any(AnyIncrement {
                incr,
                limit: Some((threshold, value)),
            })
            .into(),
        };
        CounterOp { pos, step }
    }

    /// The same operation on a counter within a map: the element is a map, and the counter is the
    /// value of `key` in it. If the map doesn't have the key, the counter begins with `initial`;
    /// without `initial` that is an error.
    pub fn in_map(self, key: Term, initial: Option<Number>) -> Self {
        // The operation itself becomes a part, since it says what to add to the value.
        CounterOp {
            pos: self.pos,
            step: RareIncrement::InMap(InMap {
                key,
                initial,
                op: self,
            })
            .into(),
        }
    }

    /// The counter within a map, if the operation is on one.
    pub(super) fn in_map_of(&self) -> Option<&InMap> {
        match &self.step {
            Increment::Rare(rare) => match &**rare {
                RareIncrement::InMap(counter) => Some(counter),
                RareIncrement::Any(_) => None,
            },
            _ => None,
        }
    }

    /// Adds to a counter.
    ///
    /// # Errors
    /// `NotInteger`, `NotMap`, `SystemLimit`: the number stays as it was.
    pub(super) fn apply(&self, number: &mut Number) -> Result<(), Error> {
        // A sum that doesn't fit in 64 bits is computed again with big integers.
        if let Number::Int(n) = number {
            if let Some(sum) = self.small_sum(*n) {
                *n = sum;
                return Ok(());
            }
        }
        self.apply_large(number)
    }

    /// The new value of a counter; `None` if 64 bits don't suffice.
    #[inline]
    pub(super) fn small_sum(&self, n: i64) -> Option<i64> {
        match self.step {
            Increment::Add(incr) => n.checked_add(incr),
            Increment::AddUpTo {
                incr,
                threshold,
                value,
            } => n.checked_add(incr).map(|sum| {
                // As in `ets`: an increment of 0 counts as one upwards.
                let passed = match incr >= 0 {
                    true => sum > threshold,
                    false => sum < threshold,
                };
                if passed {
                    value
                } else {
                    sum
                }
            }),
            _ => None,
        }
    }

    /// `apply` for integers of any size.
    #[cold]
    fn apply_large(&self, number: &mut Number) -> Result<(), Error> {
        let sum = match &self.step {
            // At least one of the numbers is too large for 64 bits. The limits apply as above.
            Increment::Add(incr) => AnyIncrement::sum(number, &Number::Int(*incr), None),
            Increment::AddUpTo {
                incr,
                threshold,
                value,
            } => {
                let limit = (Number::Int(*threshold), Number::Int(*value));
                AnyIncrement::sum(number, &Number::Int(*incr), Some(&limit))
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

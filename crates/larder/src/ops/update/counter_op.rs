//! One operation of `update_counter`: what it adds, and to which element.

use crate::error::Error;
use larder_term::number::{Number, NumberError};
use larder_term::{Term, TermRef};
use std::cmp::Ordering;

/// One step of `update_counter`: adds to an element, from 1; where the sum passes a threshold, if
/// there is one, the element becomes another value.
#[derive(Clone, Debug)]
pub struct CounterOp {
    pub(super) pos: usize,
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
pub(super) struct InMap {
    pub(super) key: Term,
    /// What the counter begins with, if the map has not the key.
    initial: Option<Number>,
    pub(super) op: CounterOp,
}

#[derive(Clone, Debug)]
struct AnyIncrement {
    incr: Number,
    limit: Option<(Number, Number)>,
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

    /// The counter in a map, if it is one.
    pub(super) fn in_map_of(&self) -> Option<&InMap> {
        match &self.step {
            Increment::InMap(counter) => Some(counter),
            _ => None,
        }
    }

    /// Puts the sum in the place of the number.
    ///
    /// # Errors
    /// `NotInteger`, `NotMap`; `SystemLimit`, and the number stays.
    #[inline]
    pub(super) fn apply(&self, number: &mut Number) -> Result<(), Error> {
        // Nearly all counters are sums of small integers: they need no number of more words, and no
        // call. One that overflows is worked out anew.
        if let Number::Int(n) = number {
            if let Some(sum) = self.small_sum(*n) {
                *n = sum;
                return Ok(());
            }
        }
        self.apply_large(number)
    }

    #[inline]
    fn small_sum(&self, n: i64) -> Option<i64> {
        match self.step {
            Increment::Add(incr) => n.checked_add(incr),
            Increment::AddUpTo {
                incr,
                threshold,
                value,
            } => n.checked_add(incr).map(|sum| {
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
            Increment::Any(step) if !step.is_whole() => Err(Error::NotInteger),
            Increment::Any(step) => AnyIncrement::sum(number, &step.incr, step.limit.as_ref()),
            Increment::InMap(_) => Err(Error::NotMap),
        };
        *number = sum?;
        Ok(())
    }
}

impl InMap {
    /// The counter, if this is what the map has.
    pub(super) fn number_of(&self, value: Option<TermRef<'_>>) -> Result<Number, Error> {
        let number = match value {
            Some(value) => Number::from_term(value).filter(Number::is_integer),
            None => Some(self.initial.clone().ok_or(Error::NoMapKey)?).filter(Number::is_integer),
        };
        number.ok_or(Error::NotInteger)
    }
}

impl AnyIncrement {
    /// Whether everything in it is an integer.
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

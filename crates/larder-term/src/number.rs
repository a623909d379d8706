//! Numbers: exact comparison of integers and floats, and Erlang's arithmetic.
//!
//! An integer and a float are compared by their values, never by rounding one to the other: 9007199254740993 is more than
//! 9007199254740992.0. Arithmetic gives what Erlang's operators give, and an error where they fail.

mod ops;

use crate::{
    compare::legacy_zero,
    encoder::Encoder,
    view::{BigRef, TermRef, View},
};
use num_bigint::BigInt;
use num_traits::{FromPrimitive, Signed, ToPrimitive};
use std::cmp::Ordering;

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// An integer that fits into 64 bits.
    Int(i64),
    /// An integer that does not.
    Big(BigInt),
    /// A finite float.
    Float(f64),
}

/// Why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// `badarith`: an operand of the wrong kind, a division by zero, a float that overflows.
    #[error("bad argument in an arithmetic expression")]
    BadArith,
    /// `system_limit`: an integer of more than [`MAX_BITS`] bits.
    #[error("an integer would become too large")]
    SystemLimit,
}

/// The most bits that an integer made by a shift or a product may have.
pub const MAX_BITS: u64 = 1 << 26;

/// The result of an operation.
pub type Result = std::result::Result<Number, NumberError>;

impl From<i64> for Number {
    fn from(n: i64) -> Number {
        Number::Int(n)
    }
}

impl From<BigInt> for Number {
    /// Small if it fits.
    fn from(n: BigInt) -> Number {
        match n.to_i64() {
            Some(small) => Number::Int(small),
            None => Number::Big(n),
        }
    }
}

impl Number {
    /// The number that a term is.
    #[inline]
    pub fn from_term(term: TermRef<'_>) -> Option<Number> {
        match term.view() {
            View::Int(n) => Some(Number::Int(n)),
            View::Big(n) => Some(Number::Big(n.to_bigint())),
            View::Float(x) => Some(Number::Float(x)),
            _ => None,
        }
    }

    /// Whether it is an integer.
    pub fn is_integer(&self) -> bool {
        !matches!(self, Number::Float(_))
    }

    /// Pushes it as a term.
    #[inline]
    pub fn encode(&self, enc: &mut Encoder<'_>) {
        match self {
            Number::Int(n) => enc.int(*n),
            Number::Big(n) => enc.bigint(n),
            Number::Float(x) => enc.float(*x),
        }
    }

    /// The exact order of values, by which 1 and 1.0 tie.
    pub fn compare(&self, other: &Number) -> Ordering {
        use Number::*;
        match (self, other) {
            (Int(a), Int(b)) => a.cmp(b),
            (Float(a), Float(b)) => compare_floats(*a, *b),
            (Int(a), Float(b)) => int_float(*a, *b),
            (Float(a), Int(b)) => int_float(*b, *a).reverse(),
            (Big(a), Big(b)) => a.cmp(b),
            (Big(a), Float(b)) => big_float(a, *b),
            (Float(a), Big(b)) => big_float(b, *a).reverse(),
            (Big(a), Int(_)) => big_int(a.is_negative()),
            (Int(_), Big(b)) => big_int(b.is_negative()).reverse(),
        }
    }

    fn to_bigint(&self) -> Option<BigInt> {
        match self {
            Number::Int(n) => Some(BigInt::from(*n)),
            Number::Big(n) => Some(n.clone()),
            Number::Float(_) => None,
        }
    }

    /// The nearest float.
    ///
    /// # Errors
    /// `BadArith` if it is too large for one.
    pub fn to_float(&self) -> std::result::Result<f64, NumberError> {
        match self {
            Number::Int(n) => Ok(*n as f64),
            Number::Float(x) => Ok(*x),
            Number::Big(n) => n
                .to_f64()
                .filter(|x| x.is_finite())
                .ok_or(NumberError::BadArith),
        }
    }
}

/// The order of two finite floats; 0.0 and −0.0 tie.
fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.total_cmp(&b))
}

/// 2^63: the least float above every `i64`.
const ABOVE_I64: f64 = 9_223_372_036_854_775_808.0;

/// An integer against a float, by value.
#[inline]
pub fn int_float(n: i64, x: f64) -> Ordering {
    if x >= ABOVE_I64 {
        return Ordering::Less;
    }
    if x < -ABOVE_I64 {
        return Ordering::Greater;
    }
    n.cmp(&(x.trunc() as i64))
        .then_with(|| compare_floats(0.0, x.fract()))
}

fn big_float(n: &BigInt, x: f64) -> Ordering {
    if x.abs() < ABOVE_I64 {
        return big_int(n.is_negative());
    }
    match BigInt::from_f64(x) {
        Some(whole) => n.cmp(&whole),
        None => compare_floats(0.0, x),
    }
}

/// An integer beyond 64 bits against anything within them.
fn big_int(negative: bool) -> Ordering {
    match negative {
        true => Ordering::Less,
        false => Ordering::Greater,
    }
}

fn compare_bigs(a: BigRef<'_>, b: BigRef<'_>) -> Ordering {
    let order = a
        .magnitude
        .len()
        .cmp(&b.magnitude.len())
        .then_with(|| a.magnitude.iter().rev().cmp(b.magnitude.iter().rev()));
    match (a.negative, b.negative) {
        (false, false) => order,
        (true, true) => order.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// Two numbers; `exact`: every integer before every float, and −0.0 before 0.0 unless they are identical.
pub(crate) fn compare_views(a: View<'_>, b: View<'_>, exact: bool) -> Ordering {
    use View::{Big, Float, Int};
    match (a, b) {
        (Int(a), Int(b)) => a.cmp(&b),
        (Float(a), Float(b)) if exact && !legacy_zero() => a.total_cmp(&b),
        (Float(a), Float(b)) => compare_floats(a, b),
        (Int(_) | Big(_), Float(_)) if exact => Ordering::Less,
        (Float(_), Int(_) | Big(_)) if exact => Ordering::Greater,
        (Int(a), Float(b)) => int_float(a, b),
        (Float(a), Int(b)) => int_float(b, a).reverse(),
        (Big(a), Big(b)) => compare_bigs(a, b),
        (Big(a), Int(_)) => big_int(a.negative),
        (Int(_), Big(b)) => big_int(b.negative).reverse(),
        (Big(a), Float(b)) => big_float(&a.to_bigint(), b),
        (Float(a), Big(b)) => big_float(&b.to_bigint(), a).reverse(),
        _ => {
            debug_assert!(false, "two numbers");
            Ordering::Equal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_by_value() {
        assert!(int_float(9_007_199_254_740_993, 9_007_199_254_740_992.0).is_gt());
        assert!(int_float(1, 1.0).is_eq());
        assert!(int_float(-1, -1.5).is_gt());
        assert!(int_float(i64::MAX, ABOVE_I64).is_lt());
        assert!(int_float(i64::MIN, -ABOVE_I64).is_eq());
        let big = BigInt::from(i64::MAX) + 1;
        assert!(big_float(&big, ABOVE_I64).is_eq());
        assert!(big_float(&(big + 1), ABOVE_I64).is_gt());
    }
}

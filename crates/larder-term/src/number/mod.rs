//! Numbers: exact comparison of integers and floats, and Erlang's arithmetic.
//!
//! An integer and a float are compared exactly, without rounding one to the other:
//! 9007199254740993 is greater than 9007199254740992.0. Arithmetic has the results of Erlang's
//! operators, and an error where they fail.

mod ops;
pub(crate) mod order;

use crate::{
    encoder::{push_int, Encoder, Mode},
    view::{TermRef, View},
};
use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive};
use order::{compare_big_float, compare_big_to_small, compare_floats, compare_int_float};
use std::cmp::Ordering;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// An integer that fits into 64 bits.
    Int(i64),
    /// An integer that doesn't fit into 64 bits.
    Big(BigInt),
    /// A finite float.
    Float(f64),
}

/// The reason why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// `badarith`: an operand of the wrong kind, a division by zero, a float that overflows.
    BadArith,
    /// `system_limit`: an integer of more than [`max_bits`] bits.
    SystemLimit,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NumberError::BadArith => "bad argument in an arithmetic expression",
            NumberError::SystemLimit => "an integer would become too large",
        })
    }
}

impl std::error::Error for NumberError {}

static MAX_BITS: AtomicU64 = AtomicU64::new(1 << 26);
static HOST_BITS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the number of bits that an integer may have, according to the host. The default is 2^26.
pub fn set_max_bits(bits: u64) {
    // Ordering: Relaxed, both; a number that the host sets before it makes its first table.
    MAX_BITS.store(bits, Memory::Relaxed);
    HOST_BITS.store(bits, Memory::Relaxed);
}

/// The greatest number of bits of the host's integers: what was set, or `u64::MAX`.
pub fn host_bits() -> u64 {
    // Ordering: Relaxed; pairs with the store of `set_max_bits`, see there.
    HOST_BITS.load(Memory::Relaxed)
}

/// The greatest number of bits that the result of an operation may have.
pub(crate) fn max_bits() -> u64 {
    // Ordering: Relaxed; pairs with the store of `set_max_bits`, see there.
    MAX_BITS.load(Memory::Relaxed)
}

/// The result of an operation.
pub type Result = std::result::Result<Number, NumberError>;

impl From<i64> for Number {
    fn from(n: i64) -> Number {
        Number::Int(n)
    }
}

impl From<BigInt> for Number {
    /// The number as a small one, if it fits.
    fn from(n: BigInt) -> Number {
        match n.to_i64() {
            Some(small) => Number::Int(small),
            None => Number::Big(n),
        }
    }
}

impl Number {
    /// The number of a term; `None` if it isn't a number.
    #[inline]
    pub fn from_term(term: TermRef<'_>) -> Option<Number> {
        match term.as_int() {
            Some(n) => Some(Number::Int(n)),
            None => Self::from_other(term),
        }
    }

    /// `from_term` of a term that isn't an integer of 64 bits.
    #[cold]
    fn from_other(term: TermRef<'_>) -> Option<Number> {
        match term.view() {
            View::Big(n) => Some(Number::Big(n.to_bigint())),
            View::Float(x) => Some(Number::Float(x)),
            _ => None,
        }
    }

    /// Whether the number is an integer.
    pub fn is_integer(&self) -> bool {
        !matches!(self, Number::Float(_))
    }

    /// Appends the encoded number.
    #[inline]
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Number::Int(n) => push_int(out, *n),
            other => other.push_any(out),
        }
    }

    #[cold]
    fn push_any(&self, out: &mut Vec<u8>) {
        self.encode(&mut Encoder::new(out, Mode::Inline));
    }

    /// Encodes the number.
    #[inline]
    pub fn encode(&self, enc: &mut Encoder<'_>) {
        match self {
            Number::Int(n) => enc.int(*n),
            Number::Big(n) => enc.bigint(n),
            Number::Float(x) => enc.float(*x),
        }
    }

    /// Compares the values exactly; 1 and 1.0 are equal.
    pub fn compare(&self, other: &Number) -> Ordering {
        use Number::*;
        // Mixed kinds are converted in neither direction: rounding would make different numbers
        // equal.
        match (self, other) {
            (Int(a), Int(b)) => a.cmp(b),
            (Float(a), Float(b)) => compare_floats(*a, *b),
            (Int(a), Float(b)) => compare_int_float(*a, *b),
            (Float(a), Int(b)) => compare_int_float(*b, *a).reverse(),
            (Big(a), Big(b)) => a.cmp(b),
            (Big(a), Float(b)) => compare_big_float(a, *b),
            (Float(a), Big(b)) => compare_big_float(b, *a).reverse(),
            // A `Big` is always beyond the range of 64 bits. So its sign decides.
            (Big(a), Int(_)) => compare_big_to_small(a.is_negative()),
            (Int(_), Big(b)) => compare_big_to_small(b.is_negative()).reverse(),
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
    /// `BadArith` if the number is too large for a float.
    pub(crate) fn to_float(&self) -> std::result::Result<f64, NumberError> {
        match self {
            Number::Int(n) => Ok(*n as f64),
            Number::Float(x) => Ok(*x),
            Number::Big(n) => Some(big_to_float(n))
                // The conversion is infinite for numbers that are too large.
                .filter(|x| x.is_finite())
                .ok_or(NumberError::BadArith),
        }
    }
}

/// Converts an integer to a float as the emulator does: digit by digit from the highest, rounding
/// each time. The result isn't always the nearest float. It is infinite if the integer is too
/// large.
fn big_to_float(n: &BigInt) -> f64 {
    let (sign, digits) = n.to_u64_digits();
    let base = 2f64.powi(64);
    let size = digits
        .iter()
        .rev()
        // The highest digits first, each rounded as it is added.
        .fold(0.0, |sum, &digit| sum * base + digit as f64);
    if sign == Sign::Minus {
        -size
    } else {
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The emulator's `float((3 bsl 63) + 2049) == float(3 bsl 63)`, though another float is
    /// nearer.
    #[test]
    fn large_integers_are_rounded_digit_by_digit() {
        let float = |n: BigInt| Number::Big(n).to_float();
        let even: BigInt = BigInt::from(3) << 63u32;
        let near: f64 = 27_670_116_110_564_327_424.0;
        assert_eq!(float(even.clone()), Ok(near));
        assert_eq!(float(even.clone() + 2049u32), Ok(near));
        assert_eq!(float(-(even + 2049u32)), Ok(-near));
        assert_eq!(
            float(BigInt::from(1) << 1024u32),
            Err(NumberError::BadArith)
        );
    }
}

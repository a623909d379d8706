//! Erlang's arithmetic operators over [`Number`].

use super::{max_bits, Number, NumberError, Result};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{FromPrimitive, Signed, ToPrimitive, Zero};
use Number::{Big, Float, Int};
use NumberError::{BadArith, SystemLimit};

/// Makes a result of a float. An overflow is an error.
fn float(x: f64) -> Result {
    match x.is_finite() {
        true => Ok(Float(x)),
        false => Err(BadArith),
    }
}

/// Makes a result of an integer. It is an error if the integer is too large.
fn integer(n: BigInt) -> Result {
    match n.bits() <= max_bits() {
        true => Ok(Number::from(n)),
        false => Err(SystemLimit),
    }
}

/// Applies an operator to two operands. If one is a float, the other is converted to a float.
fn arithmetic(
    a: &Number,
    b: &Number,
    small: fn(i64, i64) -> Option<i64>,
    big: fn(BigInt, BigInt) -> BigInt,
    floats: fn(f64, f64) -> f64,
) -> Result {
    // The common case: both are small, and so is the result.
    if let (Int(a), Int(b)) = (a, b) {
        if let Some(n) = small(*a, *b) {
            return Ok(Int(n));
        }
    }
    // An overflow of small integers gets here, too.
    match (a.to_bigint(), b.to_bigint()) {
        (Some(a), Some(b)) => integer(big(a, b)),
        _ => float(floats(a.to_float()?, b.to_float()?)),
    }
}

/// The two operands as integers. It is an error if one is a float.
fn integers(a: &Number, b: &Number) -> std::result::Result<(BigInt, BigInt), NumberError> {
    a.to_bigint().zip(b.to_bigint()).ok_or(BadArith)
}

/// Converts a float into an integer by a rounding function.
fn round_with(n: &Number, rounding: fn(f64) -> f64) -> Result {
    match n {
        Float(x) => BigInt::from_f64(rounding(*x))
            .map(Number::from)
            .ok_or(BadArith),
        _ => Ok(n.clone()),
    }
}

/// `a` times two to the power of `by`, rounded down.
fn shift(a: BigInt, by: &BigInt) -> Result {
    if by.is_negative() {
        // A shift by more bits than the number has gives 0 or −1, as one by exactly that many does.
        // So the count may be cut off.
        let by = by.abs().to_u64().unwrap_or(u64::MAX).min(a.bits() + 1);
        return integer(a >> by);
    }
    if a.is_zero() {
        return Ok(Int(0));
    }
    // A count of more than 64 bits is replaced by one that fails the check below as well.
    let by = by.to_u64().unwrap_or(u64::MAX);
    match a.bits().checked_add(by) {
        Some(bits) if bits <= max_bits() => integer(a << by),
        _ => Err(SystemLimit),
    }
}

impl Number {
    /// `a + b`.
    ///
    /// # Errors
    /// `BadArith` if a float overflows; `SystemLimit` if an integer would be too large.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn add(&self, b: &Number) -> Result {
        arithmetic(self, b, i64::checked_add, |a, b| a + b, |a, b| a + b)
    }

    /// `a - b`.
    ///
    /// # Errors
    /// `BadArith` if a float overflows; `SystemLimit` if an integer would be too large.
    #[allow(clippy::should_implement_trait)]
    pub fn sub(&self, b: &Number) -> Result {
        arithmetic(self, b, i64::checked_sub, |a, b| a - b, |a, b| a - b)
    }

    /// `a * b`.
    ///
    /// # Errors
    /// `BadArith` if a float overflows, `SystemLimit` if the integer is too large.
    #[allow(clippy::should_implement_trait)]
    pub fn mul(&self, b: &Number) -> Result {
        // The product of two large integers takes long to compute, so its size is estimated first.
        // It has as many bits as both together, or one less.
        let bits = |n: &Number| n.to_bigint().map_or(0, |n| n.bits());
        if !matches!((self, b), (Int(_), Int(_))) && bits(self) + bits(b) > max_bits() + 1 {
            return Err(SystemLimit);
        }
        arithmetic(self, b, i64::checked_mul, |a, b| a * b, |a, b| a * b)
    }

    /// `a / b`, always a float.
    ///
    /// # Errors
    /// `BadArith` if `b` is zero or something overflows.
    pub fn fdiv(&self, b: &Number) -> Result {
        let (a, b) = (self.to_float()?, b.to_float()?);
        match b == 0.0 {
            true => Err(BadArith),
            false => float(a / b),
        }
    }

    /// `a div b`, rounded towards zero.
    ///
    /// # Errors
    /// `BadArith` if `b` is zero or one of them is a float.
    pub fn idiv(&self, b: &Number) -> Result {
        let (a, b) = integers(self, b)?;
        match b.is_zero() {
            true => Err(BadArith),
            false => integer(a / b),
        }
    }

    /// `a rem b`, with the sign of `a`.
    ///
    /// # Errors
    /// `BadArith` if `b` is zero or one of them is a float.
    #[allow(clippy::should_implement_trait)]
    pub fn rem(&self, b: &Number) -> Result {
        let (a, b) = integers(self, b)?;
        match b.is_zero() {
            true => Err(BadArith),
            false => integer(a.div_rem(&b).1),
        }
    }

    /// `a band b`.
    ///
    /// # Errors
    /// `BadArith` if one of them is a float, as for all bit operations.
    pub fn band(&self, b: &Number) -> Result {
        integers(self, b).and_then(|(a, b)| integer(a & b))
    }

    /// `a bor b`.
    ///
    /// # Errors
    /// As [`Number::band`].
    pub fn bor(&self, b: &Number) -> Result {
        integers(self, b).and_then(|(a, b)| integer(a | b))
    }

    /// `a bxor b`.
    ///
    /// # Errors
    /// As [`Number::band`].
    pub fn bxor(&self, b: &Number) -> Result {
        integers(self, b).and_then(|(a, b)| integer(a ^ b))
    }

    /// `bnot a`.
    ///
    /// # Errors
    /// As [`Number::band`].
    pub fn bnot(&self) -> Result {
        self.to_bigint().ok_or(BadArith).and_then(|a| integer(!a))
    }

    /// `a bsl b`; a negative `b` shifts right.
    ///
    /// # Errors
    /// As [`Number::band`]; `SystemLimit` if the result is too large.
    pub fn bsl(&self, b: &Number) -> Result {
        integers(self, b).and_then(|(a, b)| shift(a, &b))
    }

    /// `a bsr b`; a negative `b` shifts left.
    ///
    /// # Errors
    /// As [`Number::bsl`].
    pub fn bsr(&self, b: &Number) -> Result {
        integers(self, b).and_then(|(a, b)| shift(a, &-b))
    }

    /// `-a`.
    ///
    /// # Errors
    /// None. A `Result`, since all operations have one.
    #[allow(clippy::should_implement_trait)]
    pub fn neg(&self) -> Result {
        match self {
            Float(x) => Ok(Float(-x)),
            _ => Int(0).sub(self),
        }
    }

    /// `abs(a)`.
    ///
    /// # Errors
    /// None. A `Result`, since all operations have one.
    pub fn abs(&self) -> Result {
        match self {
            Float(x) => Ok(Float(x.abs())),
            Int(n) if *n >= 0 => Ok(self.clone()),
            Big(n) if n.is_positive() => Ok(self.clone()),
            _ => self.neg(),
        }
    }

    /// `round(a)`: to the nearest integer, halves away from zero.
    ///
    /// # Errors
    /// `BadArith` for a float that isn't finite, which no term is. The same holds for the other
    /// rounding functions.
    pub fn round(&self) -> Result {
        round_with(self, f64::round)
    }

    /// `trunc(a)`.
    ///
    /// # Errors
    /// As [`Number::round`].
    pub fn trunc(&self) -> Result {
        round_with(self, f64::trunc)
    }

    /// `floor(a)`.
    ///
    /// # Errors
    /// As [`Number::round`].
    pub fn floor(&self) -> Result {
        round_with(self, f64::floor)
    }

    /// `ceil(a)`.
    ///
    /// # Errors
    /// As [`Number::round`].
    pub fn ceil(&self) -> Result {
        round_with(self, f64::ceil)
    }

    /// `float(a)`.
    ///
    /// # Errors
    /// `BadArith` if it is too large for a float.
    pub fn float(&self) -> Result {
        self.to_float().map(Float)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big(text: &str) -> Number {
        Number::from(text.parse::<BigInt>().unwrap())
    }

    #[test]
    fn integers_grow_and_shrink() {
        let above = big("9223372036854775808");
        assert_eq!(Int(i64::MAX).add(&Int(1)), Ok(above.clone()));
        assert_eq!(above.sub(&Int(1)), Ok(Int(i64::MAX)));
        assert_eq!(Int(i64::MIN).neg(), Ok(above.clone()));
        assert_eq!(Int(i64::MIN).idiv(&Int(-1)), Ok(above));
        assert_eq!(Int(-7).idiv(&Int(2)), Ok(Int(-3)));
        assert_eq!(Int(-7).rem(&Int(2)), Ok(Int(-1)));
        assert_eq!(Int(7).rem(&Int(0)), Err(BadArith));
    }

    #[test]
    fn shifts() {
        assert_eq!(Int(-1).bsr(&Int(100)), Ok(Int(-1)));
        assert_eq!(Int(-5).bsr(&Int(1)), Ok(Int(-3)));
        assert_eq!(Int(5).bsr(&big("99999999999999999999999")), Ok(Int(0)));
        assert_eq!(Int(0).bsl(&big("99999999999999999999999")), Ok(Int(0)));
        assert_eq!(
            Int(1).bsl(&big("99999999999999999999999")),
            Err(SystemLimit)
        );
        assert_eq!(Int(1).bsl(&Int(64)), Ok(big("18446744073709551616")));
        assert_eq!(Int(1).bsr(&Int(-64)), Ok(big("18446744073709551616")));
        assert_eq!(Int(1).bsl(&Float(1.0)), Err(BadArith));
    }

    #[test]
    fn floats() {
        assert_eq!(Float(1e308).mul(&Int(10)), Err(BadArith));
        assert_eq!(Int(1).fdiv(&Int(0)), Err(BadArith));
        assert_eq!(Int(1).fdiv(&Int(2)), Ok(Float(0.5)));
        assert_eq!(Float(2.5).round(), Ok(Int(3)));
        assert_eq!(Float(-2.5).round(), Ok(Int(-3)));
        assert_eq!(Float(-2.5).floor(), Ok(Int(-3)));
        assert_eq!(Float(-2.5).ceil(), Ok(Int(-2)));
        assert_eq!(Float(1e20).trunc(), Ok(big("100000000000000000000")));
    }
}

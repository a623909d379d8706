//! Comparing numbers by value. Integers and floats are never rounded to one another.

use crate::{
    host::legacy_zero,
    view::{BigRef, View},
};
use num_bigint::BigInt;
use num_traits::{FromPrimitive, Signed};
use std::cmp::Ordering;

/// Compares two finite floats; 0.0 and −0.0 are equal.
pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.total_cmp(&b))
}

/// 2^63: the least float above every `i64`.
const ABOVE_I64: f64 = 9_223_372_036_854_775_808.0;

/// Compares an integer with a float, by value.
#[inline]
pub(super) fn compare_int_float(n: i64, x: f64) -> Ordering {
    // Floats outside the range of integers are decided by their magnitude.
    if x >= ABOVE_I64 {
        return Ordering::Less;
    }
    if x < -ABOVE_I64 {
        return Ordering::Greater;
    }
    // Inside it, the whole part of the float is an integer, exactly. If the whole parts are equal,
    // the fraction decides.
    n.cmp(&(x.trunc() as i64))
        .then_with(|| compare_floats(0.0, x.fract()))
}

/// Compares an integer that doesn't fit into 64 bits with a float, by value.
pub(super) fn compare_big_float(n: &BigInt, x: f64) -> Ordering {
    // The big integer is outside the range of 64 bits, and the float is inside.
    if x.abs() < ABOVE_I64 {
        return compare_big_to_small(n.is_negative());
    }
    // A float of that size has no fraction, so it is an integer.
    match BigInt::from_f64(x) {
        Some(whole) => n.cmp(&whole),
        None => compare_floats(0.0, x),
    }
}

/// Compares an integer that doesn't fit into 64 bits with any number that does.
pub(super) fn compare_big_to_small(negative: bool) -> Ordering {
    match negative {
        true => Ordering::Less,
        false => Ordering::Greater,
    }
}

fn compare_bigs(a: BigRef<'_>, b: BigRef<'_>) -> Ordering {
    // Without leading zeros, the longer magnitude is the larger one.
    let order = a
        .magnitude
        .len()
        .cmp(&b.magnitude.len())
        .then_with(|| a.magnitude.iter().rev().cmp(b.magnitude.iter().rev()));
    // Of two negative numbers, the larger magnitude is the smaller number.
    match (a.negative, b.negative) {
        (false, false) => order,
        (true, true) => order.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// Compares two numbers. If `exact` is set, all integers precede all floats, and −0.0 precedes 0.0,
/// unless they are identical.
pub(crate) fn compare_views(a: View<'_>, b: View<'_>, exact: bool) -> Ordering {
    use View::{Big, Float, Int};
    match (a, b) {
        (Int(a), Int(b)) => a.cmp(&b),
        (Float(a), Float(b)) if exact && !legacy_zero() => a.total_cmp(&b),
        (Float(a), Float(b)) => compare_floats(a, b),
        // In keys of maps, the kind decides before the value.
        (Int(_) | Big(_), Float(_)) if exact => Ordering::Less,
        (Float(_), Int(_) | Big(_)) if exact => Ordering::Greater,
        (Int(a), Float(b)) => compare_int_float(a, b),
        (Float(a), Int(b)) => compare_int_float(b, a).reverse(),
        (Big(a), Big(b)) => compare_bigs(a, b),
        // All large integers are beyond the small ones, so their sign decides.
        (Big(a), Int(_)) => compare_big_to_small(a.negative),
        (Int(_), Big(b)) => compare_big_to_small(b.negative).reverse(),
        (Big(a), Float(b)) => compare_big_float(&a.to_bigint(), b),
        (Float(a), Big(b)) => compare_big_float(&b.to_bigint(), a).reverse(),
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
        assert!(compare_int_float(9_007_199_254_740_993, 9_007_199_254_740_992.0).is_gt());
        assert!(compare_int_float(1, 1.0).is_eq());
        assert!(compare_int_float(-1, -1.5).is_gt());
        assert!(compare_int_float(i64::MAX, ABOVE_I64).is_lt());
        assert!(compare_int_float(i64::MIN, -ABOVE_I64).is_eq());
        let big = BigInt::from(i64::MAX) + 1;
        assert!(compare_big_float(&big, ABOVE_I64).is_eq());
        assert!(compare_big_float(&(big + 1), ABOVE_I64).is_gt());
    }
}

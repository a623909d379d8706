//! Numbers in order keys; `order_key` describes the format.

use crate::{compare::legacy_zero, view::BigRef};
use num_bigint::BigUint;
use num_traits::FromPrimitive;

/// The first byte of zero, and of `w = 0`.
pub(super) const ZERO: u8 = 0x80;
/// The `w` that are a first byte alone.
pub(super) const ALONE: u64 = 0x60;
/// `LENGTHS + n` is the first byte of a `w` of n bytes, n from 1 to 8.
pub(super) const LENGTHS: u8 = ZERO + ALONE as u8 - 1;
/// The first byte of a longer `w`, whose length follows.
pub(super) const LONG: u8 = LENGTHS + 9;
/// A float where integers and floats are apart.
const EXACT_FLOAT: u8 = 0xEF;

#[inline]
pub(super) fn push_int(n: i64, out: &mut Vec<u8>) {
    if (0..ALONE as i64 / 2).contains(&n) {
        return out.push(ZERO + 2 * n as u8);
    }
    let start = out.len();
    let magnitude = n.unsigned_abs();
    if magnitude < 1 << 63 {
        push_word(2 * magnitude, out);
    } else {
        // Twice 2^63: a one and eight zero bytes.
        push_long(&[1, 0, 0, 0, 0, 0, 0, 0, 0], out);
    }
    turn(n < 0, start, out);
}

pub(super) fn push_big(n: BigRef<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    push_whole(BigUint::from_bytes_le(n.magnitude), out);
    turn(n.negative, start, out);
}

pub(super) fn push_float(x: f64, out: &mut Vec<u8>) {
    let start = out.len();
    let magnitude = x.abs();
    let (whole, fraction) = (magnitude.trunc(), magnitude.fract());
    if whole < 9.0e18 {
        push_word(2 * whole as u64 + u64::from(fraction > 0.0), out);
    } else {
        push_whole(BigUint::from_f64(whole).unwrap_or_default(), out);
    }
    if fraction > 0.0 {
        out.extend_from_slice(&fraction.to_bits().to_be_bytes());
    }
    turn(x < 0.0, start, out);
}

pub(super) fn push_exact_float(x: f64, out: &mut Vec<u8>) {
    let bits = match x == 0.0 && legacy_zero() {
        true => 0,
        false => x.to_bits(),
    };
    let sign = 1 << 63;
    let turned = if bits & sign == 0 { bits | sign } else { !bits };
    out.push(EXACT_FLOAT);
    out.extend_from_slice(&turned.to_be_bytes());
}

/// Turns the bits of a negative number's magnitude, so that larger ones come first.
fn turn(negative: bool, start: usize, out: &mut [u8]) {
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn push_word(w: u64, out: &mut Vec<u8>) {
    if w < ALONE {
        return out.push(ZERO + w as u8);
    }
    let skipped = w.leading_zeros() as usize / 8;
    out.push(LENGTHS + (8 - skipped) as u8);
    out.extend_from_slice(&w.to_be_bytes()[skipped..]);
}

/// A magnitude without a fraction.
fn push_whole(whole: BigUint, out: &mut Vec<u8>) {
    let w: BigUint = whole << 1u32;
    match u64::try_from(&w) {
        Ok(word) => push_word(word, out),
        Err(_) => push_long(&w.to_bytes_be(), out),
    }
}

/// A `w` of more than eight bytes: how many, as a count that compares, and them.
fn push_long(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(LONG);
    super::push_count(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

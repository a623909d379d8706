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

/// The order key of an integer, in registers: its first byte, the bytes behind that as they lie in
/// memory, and how many of these count. `None` for −2^63, whose key is longer.
#[inline]
pub fn of_int(n: i64) -> Option<(u8, [u8; 8], usize)> {
    let magnitude = n.unsigned_abs();
    if magnitude >= 1 << 63 {
        return None;
    }
    let w = 2 * magnitude;
    // All ones for a negative number, whose bits are turned.
    let turned = n >> 63;
    let (first, used) = if w < ALONE {
        (ZERO + w as u8, 0)
    } else {
        let used = 8 - w.leading_zeros() as usize / 8;
        (LENGTHS + used as u8, used)
    };
    // The bytes that count come first; a shift by all bits happens for none, which don't matter.
    let high = w.wrapping_shl(8 * (8 - used) as u32) ^ turned as u64;
    Some((first ^ turned as u8, high.to_be_bytes(), used))
}

/// The integer whose order key these bytes are, if it is one that [`of_int`] writes.
#[inline]
pub fn to_int(key: &[u8]) -> Option<i64> {
    let (&first, rest) = key.split_first()?;
    let turned = if first < ZERO { u64::MAX } else { 0 };
    let first = first ^ turned as u8;
    if first <= LENGTHS {
        let w = u64::from(first.wrapping_sub(ZERO));
        return (rest.is_empty() && w & 1 == 0).then(|| signed(w, turned));
    }
    let used = usize::from(first - LENGTHS);
    if used > 8 || rest.len() != used {
        return None;
    }
    let w = (big_endian(rest) ^ turned) & (u64::MAX >> (64 - 8 * used as u32));
    (w & 1 == 0).then(|| signed(w, turned))
}

/// Half of a `w`, negative if its bits were turned.
#[inline]
fn signed(w: u64, turned: u64) -> i64 {
    let whole = (w >> 1) as i64;
    if turned == 0 {
        whole
    } else {
        -whole
    }
}

/// The number that one to eight bytes are, high ones first.
#[inline]
fn big_endian(bytes: &[u8]) -> u64 {
    // Two loads that may overlap, and agree where they do.
    match *bytes {
        [a, b, c, d, .., w, x, y, z] => {
            let high = u64::from(u32::from_be_bytes([a, b, c, d]));
            high << (8 * (bytes.len() - 4)) | u64::from(u32::from_be_bytes([w, x, y, z]))
        }
        [a, b, c, d, ..] => {
            let rest = &bytes[4..];
            let high = u64::from(u32::from_be_bytes([a, b, c, d]));
            high << (8 * rest.len()) | short_big_endian(rest)
        }
        _ => short_big_endian(bytes),
    }
}

#[inline]
fn short_big_endian(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [a, b, c] => u64::from(u16::from_be_bytes([a, b])) << 8 | u64::from(c),
        _ => 0,
    }
}

#[inline]
pub(super) fn push_int(n: i64, out: &mut Vec<u8>) {
    match of_int(n) {
        Some((first, _, 0)) => out.push(first),
        Some((first, rest, used)) => {
            out.push(first);
            out.extend_from_slice(&rest[..used]);
        }
        None => {
            let start = out.len();
            // Twice 2^63: a one and eight zero bytes.
            push_long(&[1, 0, 0, 0, 0, 0, 0, 0, 0], out);
            turn(true, start, out);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{order_key, Term};
    use proptest::prelude::*;

    fn key(term: Term) -> Vec<u8> {
        let mut key = Vec::new();
        order_key::encode(term.as_ref(), &mut key);
        key
    }

    /// The format, written out byte by byte.
    fn plain(n: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        if n == i64::MIN {
            push_long(&[1, 0, 0, 0, 0, 0, 0, 0, 0], &mut bytes);
        } else {
            push_word(2 * n.unsigned_abs(), &mut bytes);
        }
        turn(n < 0, 0, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn integers_there_and_back(n in any::<i64>(), shift in 0..64u32) {
            for n in [n >> shift, -(n >> shift).saturating_abs(), i64::from(n as i8)] {
                prop_assert_eq!(key(Term::from(n)), plain(n));
                let back = to_int(&plain(n));
                prop_assert_eq!(back, (n != i64::MIN).then_some(n));
            }
        }

        #[test]
        fn nothing_else_is_an_integer(x in any::<f64>(), bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if x.is_finite() && x.fract() != 0.0 {
                prop_assert_eq!(to_int(&key(Term::float(x).unwrap())), None);
            }
            prop_assert_eq!(to_int(&key(Term::binary(&bytes))), None);
            prop_assert_eq!(to_int(&key(Term::tuple([Term::from(1), Term::from(2)]))), None);
        }
    }

    #[test]
    fn the_ends_come_back() {
        for n in [
            0,
            1,
            47,
            48,
            127,
            128,
            1 << 56,
            i64::MAX,
            -1,
            -47,
            -48,
            i64::MIN + 1,
        ] {
            assert_eq!(to_int(&plain(n)), Some(n), "{n}");
        }
        assert_eq!(to_int(&plain(i64::MIN)), None);
        assert_eq!(to_int(&[]), None);
    }
}

//! Numbers in order keys.
//!
//! ```text
//!  w = 2 * magnitude, + 1 if there is a fraction
//!
//!  0 ≤ w < 96    80 + w                       7 ─▶ 8E         −7 ─▶ 71, all bits turned
//!  w of n bytes  DF + n, the bytes            100 ─▶ E0 C8    −100 ─▶ 1F 37
//!  more than 8   E8, count, the bytes
//!  a fraction    after any of these: its eight IEEE bytes
//! ```
//!
//! Why these bytes compare as the numbers do:
//! * A longer `w` has a greater first byte. If two are equally long, their bytes decide, as they
//!   are big endian.
//! * Of two numbers with the same whole part, the one with a fraction has the odd `w`. Two
//!   fractions compare as their IEEE bits do.
//! * Inverted bits put larger magnitudes first among negative numbers, and all negative numbers
//!   below 80.
//!
//! An integer and the float of the same value have the same `w` and no fraction, and so the same
//! bytes.

use super::{counts::count_parts, sink::Sink};
use crate::{host::legacy_zero, view::BigRef};

/// The first byte of the order key of zero, whose `w` is 0.
pub(super) const ZERO: u8 = 0x80;
/// A `w` below this is written as the first byte alone.
const ALONE: u64 = 0x60;
/// `LENGTHS + n` is the first byte of a `w` of `n` bytes, for `n` from 1 to 8.
pub(super) const LENGTHS: u8 = ZERO + ALONE as u8 - 1;
/// The first byte of a longer `w`. The length follows.
pub(super) const LONG: u8 = LENGTHS + 9;
/// The first byte of a float if integers precede floats.
const EXACT_FLOAT: u8 = 0xEF;

/// The order key of an integer, in registers: its first byte, eight bytes, and how many of these
/// follow the first one. `None` for −2^63, whose order key is longer.
#[inline]
pub fn of_int(n: i64) -> Option<(u8, [u8; 8], usize)> {
    let magnitude = n.unsigned_abs();
    if magnitude >= 1 << 63 {
        return None;
    }
    // The magnitude is below 2^63, so twice the magnitude fits into eight bytes.
    let w = 2 * magnitude;
    // All ones for a negative number, whose bits are inverted.
    let turned = n >> 63;
    let (first, used) = head_of(w);
    // Shift the bytes that count to the front. If there are none, the shift wraps around, and the
    // result isn't used.
    let high = w.wrapping_shl(8 * (8 - used) as u32) ^ turned as u64;
    Some((first ^ turned as u8, high.to_be_bytes(), used))
}

/// The order key of an integer as bytes, and how many of them count: [`of_int`] for callers that
/// need it in memory.
#[inline]
pub fn int_bytes(n: i64) -> Option<([u8; 9], usize)> {
    let (first, rest, used) = of_int(n)?;
    // Most of the key is one word, so that it is one store, and a load of a word is served by it.
    let rest = u64::from_be_bytes(rest);
    let mut bytes = [0; 9];
    bytes[..8].copy_from_slice(&(u64::from(first) << 56 | rest >> 8).to_be_bytes());
    bytes[8] = rest as u8;
    Some((bytes, 1 + used))
}

/// The order key of an unsigned integer of 64 bits whose highest bit is set, in registers.
#[inline]
pub fn of_large(n: u64) -> [u8; 11] {
    debug_assert!(n >> 63 == 1);
    // Twice the number has nine bytes, of which the first is 1.
    let [a, b, c, d, e, f, g, h] = (n << 1).to_be_bytes();
    [LONG, 9, 1, a, b, c, d, e, f, g, h]
}

/// The integer whose order key this is, if it is one for which [`of_int`] returns an order key.
#[inline]
pub fn to_int(key: &[u8]) -> Option<i64> {
    let (&first, rest) = key.split_first()?;
    let turned = if first < ZERO { u64::MAX } else { 0 };
    let first = first ^ turned as u8;
    if first <= LENGTHS {
        let w = u64::from(first.wrapping_sub(ZERO));
        return (rest.is_empty() && w & 1 == 0).then(|| signed(w, turned));
    }
    // The first byte is a length. Unless exactly this number of bytes follows, it is another term.
    let used = usize::from(first - LENGTHS);
    if used > 8 || rest.len() != used {
        return None;
    }
    // If `w` is odd, the term is a float with a fraction.
    let w = (last_bytes(key) ^ turned) & (u64::MAX >> (64 - 8 * used as u32));
    (w & 1 == 0).then(|| signed(w, turned))
}

/// Half of a `w`, negated if its bits were inverted.
#[inline]
fn signed(w: u64, turned: u64) -> i64 {
    let whole = (w >> 1) as i64;
    if turned == 0 {
        whole
    } else {
        -whole
    }
}

/// The last eight of two to nine bytes, big-endian, or all if they are fewer.
#[inline]
fn last_bytes(bytes: &[u8]) -> u64 {
    // Loads of fixed sizes. Whether a number has seven or eight bytes, and so a key eight or nine,
    // takes no branch: the first byte is cleared by the caller.
    if let Some(eight) = bytes.last_chunk() {
        return u64::from_be_bytes(*eight);
    }
    // The two loads overlap, and have the same bits there.
    if let (Some(high), Some(low)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let high = u64::from(u32::from_be_bytes(*high));
        return high << (8 * (bytes.len() - 4)) | u64::from(u32::from_be_bytes(*low));
    }
    match *bytes {
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [_, b, c] => u64::from(u16::from_be_bytes([b, c])),
        _ => 0,
    }
}

/// Writes an integer of up to 64 bits.
#[inline]
pub fn push_int(n: i64, out: &mut impl Sink) {
    match of_int(n) {
        Some((first, rest, used)) => push_tagged(first, rest, used, out),
        // Twice 2^63 is a byte of 1 and eight bytes of 0.
        None => push_long(9, u8::MAX, out, |out| {
            out.run([!1, !0, !0, !0, !0, !0, !0, !0, !0], 9)
        }),
    }
}

/// Writes a byte, and after it the order key of an integer that is less than 128.
#[inline]
pub(super) fn push_small(before: u8, n: u8, out: &mut impl Sink) {
    let w = 2 * n;
    match u64::from(w) < ALONE {
        true => out.run([before, ZERO + w], 2),
        false => out.run([before, LENGTHS + 1, w], 3),
    }
}

/// Writes a first byte, and the first `used` of eight bytes.
#[inline]
fn push_tagged(first: u8, rest: [u8; 8], used: usize, out: &mut impl Sink) {
    let [a, b, c, d, e, f, g, h] = rest;
    out.run([first, a, b, c, d, e, f, g, h], 1 + used);
}

/// Writes the order key of an integer that doesn't fit into 64 bits.
pub(super) fn push_big(n: BigRef<'_>, out: &mut impl Sink) {
    let (turned, turned_word) = turns(n.negative);
    // Write twice the magnitude, big endian. First come the highest bytes that aren't a whole word,
    // then the words. Each is shifted by one bit, with the bit that is carried from the next lower
    // word.
    let words = n.magnitude.chunks_exact(8);
    let above = words.remainder();
    let mut high = above
        .iter()
        .rev()
        .fold(0, |high, &byte| high << 8 | u64::from(byte));
    let mut used = above.len();
    let carry = |at: usize| u64::from(n.magnitude[at - 1] >> 7);
    let whole = n.magnitude.len() - used;
    high = high << 1 | carry(whole);
    // The shift may have carried into one more byte.
    used += usize::from(high >> (8 * used) != 0);
    // Write the high bytes, then the words from the highest to the lowest.
    push_long(whole + used, turned, out, |out| {
        let bytes = (high << (64 - 8 * used.max(1)) ^ turned_word).to_be_bytes();
        out.run(bytes, used);
        for (i, word) in words.enumerate().rev() {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            let below = if i == 0 { 0 } else { carry(8 * i) };
            out.run(((word << 1 | below) ^ turned_word).to_be_bytes(), 8);
        }
    });
}

/// Writes a float: the same bytes as those of an integer of that value.
pub fn push_float(x: f64, out: &mut impl Sink) {
    // All bits of a negative number are inverted, so that larger magnitudes come first.
    let (turned, turned_word) = turns(x < 0.0);
    let magnitude = x.abs();
    let (whole, fraction) = (magnitude.trunc(), magnitude.fract());
    // Floats from 2^63 on have no fraction, and their `w` may have more than eight bytes.
    if whole >= (1u64 << 63) as f64 {
        return push_large_float(magnitude, turned, out);
    }
    // `w` is odd if a fraction follows. So the number with a fraction comes after the whole
    // number.
    let w = 2 * whole as u64 + u64::from(fraction > 0.0);
    let (first, used) = head_of(w);
    // The bytes that are used move to the front of the word, which is written big-endian.
    let high = w.wrapping_shl(8 * (8 - used) as u32) ^ turned_word;
    push_tagged(first ^ turned, high.to_be_bytes(), used, out);
    if fraction > 0.0 {
        out.run((fraction.to_bits() ^ turned_word).to_be_bytes(), 8);
    }
}

/// Writes the order key of a float of 2^63 or more, which is a whole number.
#[cold]
fn push_large_float(magnitude: f64, turned: u8, out: &mut impl Sink) {
    const DIGITS: u64 = f64::MANTISSA_DIGITS as u64 - 1;
    let bits = magnitude.to_bits();
    let mantissa = bits & ((1 << DIGITS) - 1) | 1 << DIGITS;
    // Twice the number is the mantissa followed by this number of zero bits. Whole zero bytes are
    // written after the others.
    let zeros = (bits >> DIGITS) - 1023 - DIGITS + 1;
    let high = mantissa << (zeros % 8);
    let (used, after) = (8 - high.leading_zeros() as usize / 8, zeros as usize / 8);
    push_long(used + after, turned, out, |out| {
        let bytes = (high << (64 - 8 * used)).to_be_bytes();
        out.run(bytes.map(|byte| byte ^ turned), used);
        (0..after).for_each(|_| out.byte(turned));
    });
}

pub(super) fn push_exact_float(x: f64, out: &mut impl Sink) {
    // IEEE bits compare as the magnitudes do. Invert the sign bit, and all bits of a negative
    // float: then they compare as floats do.
    let bits = match x == 0.0 && legacy_zero() {
        true => 0,
        false => x.to_bits(),
    };
    let sign = 1 << 63;
    let turned = if bits & sign == 0 { bits | sign } else { !bits };
    push_tagged(EXACT_FLOAT, turned.to_be_bytes(), 8, out);
}

/// The masks that invert the bits of a negative number's magnitude, so that larger ones come first:
/// for a byte, and for a word.
#[inline]
fn turns(negative: bool) -> (u8, u64) {
    match negative {
        true => (u8::MAX, u64::MAX),
        false => (0, 0),
    }
}

/// The first byte of a `w` of up to eight bytes, and the number of bytes that follow.
#[inline]
fn head_of(w: u64) -> (u8, usize) {
    if w < ALONE {
        return (ZERO + w as u8, 0);
    }
    let used = 8 - w.leading_zeros() as usize / 8;
    (LENGTHS + used as u8, used)
}

/// Writes a `w` of more than eight bytes: its length, as a count that compares, and its bytes,
/// which `push` writes.
fn push_long<S: Sink>(bytes: usize, turned: u8, out: &mut S, push: impl FnOnce(&mut S)) {
    out.byte(LONG ^ turned);
    let (first, rest, used) = count_parts(bytes as u64);
    push_tagged(first ^ turned, rest.map(|byte| byte ^ turned), used, out);
    push(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{order_key, Term};
    use num_bigint::{BigInt, BigUint};
    use num_traits::{FromPrimitive, Signed};
    use proptest::prelude::*;

    fn key(term: Term) -> Vec<u8> {
        let mut key = Vec::new();
        order_key::encode(term.as_ref(), &mut key);
        key
    }

    /// The format, written out with integers of any size.
    fn plain(n: &BigInt) -> Vec<u8> {
        let w: BigUint = n.magnitude() << 1u32;
        let mut bytes = match u64::try_from(&w) {
            Ok(w) if w < ALONE => vec![ZERO + w as u8],
            Ok(_) => [
                &[LENGTHS + w.to_bytes_be().len() as u8],
                &w.to_bytes_be()[..],
            ]
            .concat(),
            Err(_) => [&[LONG, w.to_bytes_be().len() as u8], &w.to_bytes_be()[..]].concat(),
        };
        if n.is_negative() {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        bytes
    }

    proptest! {
        #[test]
        fn integers_there_and_back(n in any::<i64>(), shift in 0..64u32) {
            for n in [n >> shift, -(n >> shift).saturating_abs(), i64::from(n as i8)] {
                prop_assert_eq!(key(Term::from(n)), plain(&n.into()));
                let back = to_int(&plain(&n.into()));
                prop_assert_eq!(back, (n != i64::MIN).then_some(n));
            }
        }

        #[test]
        fn large_numbers(n in any::<i128>(), by in 0u32..900, near in -1i64..2) {
            for n in [(BigInt::from(n) << by) + near, (BigInt::from(n.signum()) << by) + near] {
                prop_assert_eq!(key(Term::bigint(&n)), plain(&n));
            }
            // A float of a whole number has the key of the integer.
            let float = (n as f64) * 2f64.powi(by as i32);
            let (whole, term) = (BigInt::from_f64(float), Term::float(float));
            if let (Some(whole), Ok(term)) = (whole, term) {
                prop_assert_eq!(key(term), plain(&whole));
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
    fn integers_as_bytes() {
        for shift in 0..64 {
            for n in [i64::MAX >> shift, -(i64::MAX >> shift), 1 << shift] {
                let bytes = int_bytes(n).map(|(bytes, used)| bytes[..used].to_vec());
                assert_eq!(bytes, (n != i64::MIN).then(|| plain(&n.into())), "{n}");
            }
        }
    }

    #[test]
    fn large_ones_in_registers() {
        for n in [1 << 63, u64::MAX, (1 << 63) + 1, 0xAA55_0FF0_1234_5678] {
            assert_eq!(of_large(n)[..], plain(&n.into()), "{n}");
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
            assert_eq!(to_int(&plain(&n.into())), Some(n), "{n}");
        }
        assert_eq!(to_int(&plain(&i64::MIN.into())), None);
        assert_eq!(to_int(&[]), None);
    }
}

//! From order keys back to terms, where there is only one term of a key.
//!
//! Numbers that are `==` share an order key, so a float without a fraction can't come back, nor
//! what holds one; an integer can, and a float with a fraction. Of the other terms those come back
//! whose order keys hold all of them in the order of the encoding: binaries, bitstrings, `[]`, and
//! tuples of what comes back. Lists could, but their elements would have to be counted first; atoms
//! could, but would have to be looked up.

use super::{BITSTRING, EIGHT_ZEROS, NIL_KEY, TUPLE_KEY};
use crate::{
    encoder::{push_int, Encoder, Mode},
    order_key::numbers::{to_int, LENGTHS, LONG, ZERO},
    skip::Heads,
    tags::*,
    varint,
    view::TermRef,
};

/// Whether [`decode`] gives a term back from its order key, in the very bytes that it has: so that
/// they need not be kept.
///
/// # Complexity
/// Linear in the heads of the term; no recursion.
#[inline]
pub fn comes_back(term: TermRef<'_>) -> bool {
    let bytes = term.bytes();
    bytes[0] >= SMALL || matches!(bytes[0], INT1..=INT8) || all_come_back(bytes)
}

fn all_come_back(bytes: &[u8]) -> bool {
    Heads::new(bytes).all(|(at, end)| match bytes[at] {
        SMALL.. | INT1..=INT8 | BIG_POS | BIG_NEG | BIN | BITS | NIL | TUPLE => true,
        FLOAT => {
            let bits = bytes[at + 1..end].try_into().unwrap_or_default();
            f64::from_le_bytes(bits).fract() != 0.0
        }
        _ => false,
    })
}

/// Appends the term of an order key, in inline mode: the exact inverse of
/// [`encode`](super::encode()) for all terms that [`comes_back`] holds for, and for no others; of
/// numbers that are equal it gives the integer.
///
/// # Panics
/// Panics on bytes that are no order key; what the order key of another term gives is not said.
///
/// # Complexity
/// Linear in the key; no recursion.
#[inline]
pub fn decode(key: &[u8], out: &mut Vec<u8>) {
    if let Some(n) = to_int(key) {
        return push_int(out, n);
    }
    decode_any(key, out);
}

fn decode_any(key: &[u8], out: &mut Vec<u8>) {
    let mut reader = Reader { key, at: 0 };
    let mut pending = 1u64;
    while pending > 0 {
        pending = pending - 1 + reader.term(out);
    }
}

struct Reader<'k> {
    key: &'k [u8],
    at: usize,
}

impl Reader<'_> {
    #[inline]
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.key[self.at - 1]
    }

    /// A number of so many bytes (up to eight), high ones first, with all its bits turned or not.
    #[inline]
    fn word(&mut self, bytes: usize, turned: u8) -> u64 {
        (0..bytes).fold(0, |n, _| n << 8 | u64::from(self.byte() ^ turned))
    }

    /// The inverse of `push_count`.
    fn count(&mut self, turned: u8) -> u64 {
        match self.byte() ^ turned {
            n @ 0..=0xF7 => u64::from(n),
            length => self.word(usize::from(length - 0xF7), turned),
        }
    }

    /// One head; gives how many terms follow as its children.
    #[inline]
    fn term(&mut self, out: &mut Vec<u8>) -> u64 {
        match self.key[self.at] {
            TUPLE_KEY => {
                self.at += 1;
                let arity = self.count(0);
                out.push(TUPLE);
                varint::push(out, arity);
                return arity;
            }
            NIL_KEY => {
                self.at += 1;
                out.push(NIL);
            }
            BITSTRING => self.bits(out),
            _ => self.number(out),
        }
        0
    }

    fn bits(&mut self, out: &mut Vec<u8>) {
        let from = self.at + 1;
        // 1. Where it ends, and how many zeros are in it.
        let (mut at, mut zeros) = (from, 0);
        loop {
            while self.key[at..].starts_with(&EIGHT_ZEROS) {
                (at, zeros) = (at + 16, zeros + 8);
            }
            at += self.key[at..].iter().position(|&b| b == 0).unwrap_or(0);
            if self.key[at + 1] != 0xFF {
                break;
            }
            zeros += 1;
            at += 2;
        }
        let (bytes, in_last) = (at - from - zeros, usize::from(self.key[at + 1]));
        self.at = at + 2;
        // 2. The head.
        if in_last % 8 == 0 {
            out.push(BIN);
            varint::push(out, bytes as u64);
        } else {
            out.push(BITS);
            varint::push(out, (8 * (bytes - 1) + in_last) as u64);
        }
        // 3. The bytes: each zero without the mark behind it.
        let mut rest = &self.key[from..at];
        out.reserve(bytes);
        while let Some(behind) = rest.strip_prefix(&EIGHT_ZEROS) {
            out.extend_from_slice(&[0; 8]);
            rest = behind;
        }
        while let Some(zero) = rest.iter().position(|&b| b == 0) {
            out.extend_from_slice(&rest[..=zero]);
            rest = &rest[zero + 2..];
            while let Some(behind) = rest.strip_prefix(&EIGHT_ZEROS) {
                out.extend_from_slice(&[0; 8]);
                rest = behind;
            }
        }
        out.extend_from_slice(rest);
    }

    #[inline]
    fn number(&mut self, out: &mut Vec<u8>) {
        let negative = self.key[self.at] < ZERO;
        let turned = if negative { 0xFF } else { 0 };
        let first = self.byte() ^ turned;
        if first == LONG {
            return self.long(negative, turned, out);
        }
        let w = match first {
            first if first <= LENGTHS => u64::from(first - ZERO),
            first => self.word(usize::from(first - LENGTHS), turned),
        };
        // Half of eight bytes is an i64's magnitude.
        let whole = (w >> 1) as i64;
        if w & 1 == 0 {
            return push_int(out, if negative { -whole } else { whole });
        }
        let fraction = f64::from_bits(self.word(8, turned));
        let magnitude = whole as f64 + fraction;
        let mut enc = Encoder::new(out, Mode::Inline);
        enc.float(if negative { -magnitude } else { magnitude });
    }

    /// A whole number of more than eight bytes when doubled.
    fn long(&mut self, negative: bool, turned: u8, out: &mut Vec<u8>) {
        let length = self.count(turned) as usize;
        let doubled = &self.key[self.at..self.at + length];
        self.at += length;
        let mut magnitude = Vec::with_capacity(length);
        let mut above = 0;
        for byte in doubled {
            let byte = byte ^ turned;
            magnitude.push(above << 7 | byte >> 1);
            above = byte & 1;
        }
        magnitude.reverse();
        Encoder::new(out, Mode::Inline).big(negative, &magnitude);
    }
}

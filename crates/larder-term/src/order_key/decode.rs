//! Decoding order keys, for terms that don't share their order key with another term.
//!
//! Numbers that are `==` share an order key. So a float without a fraction can't be decoded, and
//! neither can a term that contains one. Integers and floats with a fraction can. The other terms
//! that can be decoded are binaries, bitstrings, this node's pids, ports and references, `[]`, and
//! tuples of such terms. Lists could be decoded, but their elements would have to be counted first.
//! Atoms could, but would have to be looked up.

use super::counts::{count, word};
use super::{bits, BITSTRING, NIL_KEY, PID_KEY, PORT_KEY, REFERENCE, TUPLE_KEY};
use crate::{
    encoder::{push_int, Encoder, Mode},
    order_key::numbers::{to_int, LENGTHS, LONG, ZERO},
    skip::Heads,
    tags::*,
    varint,
    view::TermRef,
};

/// The number of bytes that say that an identifier is of this node.
const LOCAL: usize = 1;

/// Whether [`decode`] restores a term from its order key with exactly the same bytes, so that the
/// term need not be stored.
///
/// # Complexity
/// Linear in the heads of the term; no recursion.
#[inline]
pub fn comes_back(term: TermRef<'_>) -> bool {
    let bytes = term.bytes();
    bytes[0] >= SMALL || matches!(bytes[0], INT1..=INT8) || all_come_back(bytes)
}

fn all_come_back(bytes: &[u8]) -> bool {
    // Each head must be of a kind that has only one term for its order key.
    Heads::new(bytes).all(|(at, end)| match bytes[at] {
        SMALL.. | INT1..=INT8 | BIG_POS | BIG_NEG | BIN | BITS | NIL | TUPLE => true,
        PID | PORT | REF => true,
        FLOAT => {
            let bits = bytes[at + 1..end].try_into().unwrap_or_default();
            // A float without a fraction has the order key of an integer.
            f64::from_le_bytes(bits).fract() != 0.0
        }
        _ => false,
    })
}

/// Appends the term of an order key, in inline mode. This is the exact inverse of
/// [`encode`](super::encode()) for all terms for which [`comes_back`] holds, and for no others. Of
/// equal numbers, the integer is returned.
///
/// # Panics
/// Panics on bytes that aren't an order key. The result for the order key of any other term is
/// unspecified.
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
    let mut reader = KeyReader { key, at: 0 };
    let mut pending = 1u64;
    while pending > 0 {
        pending = pending - 1 + reader.term(out);
    }
}

struct KeyReader<'k> {
    key: &'k [u8],
    at: usize,
}

impl KeyReader<'_> {
    #[inline]
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.key[self.at - 1]
    }

    /// Reads a big-endian number of this number of bytes, up to eight. `turned` is 0, or 0xFF if
    /// all its bits are inverted.
    #[inline]
    fn word(&mut self, bytes: usize, turned: u8) -> u64 {
        word(self.key, &mut self.at, bytes, turned)
    }

    #[inline]
    fn count(&mut self) -> u64 {
        count(self.key, &mut self.at, 0)
    }

    /// Decodes one head. Returns the number of terms that follow as its children.
    #[inline]
    fn term(&mut self, out: &mut Vec<u8>) -> u64 {
        match self.key[self.at] {
            TUPLE_KEY => {
                self.at += 1;
                let arity = self.count();
                out.push(TUPLE);
                varint::push(out, arity);
                return arity;
            }
            NIL_KEY => {
                self.at += 1;
                out.push(NIL);
            }
            PID_KEY => {
                // Serial and id are swapped: the order key has the more significant number first.
                self.at += 1;
                let serial = self.count();
                let id = self.count();
                // Only this node's identifiers come back. Their node takes one byte in the order
                // key, and none in the term.
                self.at += LOCAL;
                out.push(PID);
                varint::push(out, id);
                varint::push(out, serial);
            }
            PORT_KEY => {
                self.at += 1 + LOCAL;
                out.push(PORT);
                varint::push(out, self.count());
            }
            REFERENCE => {
                self.at += 1 + LOCAL;
                let words = self.count() as usize;
                out.push(REF);
                varint::push(out, words as u64);
                let end = self.at + 4 * words;
                // Copy the bytes of the words in reverse order.
                out.extend(self.key[self.at..end].iter().rev());
                self.at = end;
            }
            BITSTRING => self.at = bits::read(self.key, self.at + 1, out),
            _ => self.number(out),
        }
        0
    }

    #[inline]
    fn number(&mut self, out: &mut Vec<u8>) {
        // Negative numbers begin with a byte below that of zero, and have all bits inverted.
        let negative = self.key[self.at] < ZERO;
        let turned = if negative { 0xFF } else { 0 };
        let first = self.byte() ^ turned;
        if first == LONG {
            return self.long(negative, turned, out);
        }
        // `w` is twice the whole part of the magnitude, plus one if a fraction follows.
        let w = match first {
            first if first <= LENGTHS => u64::from(first - ZERO),
            first => self.word(usize::from(first - LENGTHS), turned),
        };
        // Half of `w`, which has at most eight bytes, fits into an `i64`.
        let whole = (w >> 1) as i64;
        if w & 1 == 0 {
            return push_int(out, if negative { -whole } else { whole });
        }
        // A float with a fraction: the sum of two parts that share no bit.
        let fraction = f64::from_bits(self.word(8, turned));
        let magnitude = whole as f64 + fraction;
        let mut enc = Encoder::new(out, Mode::Inline);
        enc.float(if negative { -magnitude } else { magnitude });
    }

    /// Decodes a whole number whose double has more than eight bytes.
    fn long(&mut self, negative: bool, turned: u8, out: &mut Vec<u8>) {
        // `turned` is all ones in a negative number, whose bytes are inverted.
        let length = count(self.key, &mut self.at, turned) as usize;
        let doubled = &self.key[self.at..self.at + length];
        self.at += length;
        // Halve it, and reverse the bytes, eight at a time: the highest bit of a word is the lowest
        // one of the byte above it.
        let mut magnitude = Vec::with_capacity(length);
        let mut end = length;
        while end > 0 {
            let start = end.saturating_sub(8);
            let word = word(doubled, &mut { start }, end - start, turned);
            let above = start.checked_sub(1).map_or(0, |i| doubled[i] ^ turned);
            let half = word >> 1 | u64::from(above) << 63;
            magnitude.extend_from_slice(&half.to_le_bytes()[..end - start]);
            end = start;
        }
        Encoder::new(out, Mode::Inline).big(negative, &magnitude);
    }
}

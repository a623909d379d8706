//! Positions of a bag, of the objects of its tree keys, and of the hash index.
//!
//! ```text
//!  position   top 48 bits of the hash (6 bytes, big endian) | key | number of the object
//!  number     0..=127: one byte; else 0x80+n, n bytes (big endian), 0x80+n
//! ```
//!
//! The objects of a key have numbers in the order of their arrival. A number can be decoded from
//! the end of a position, and longer numbers sort after shorter ones. In place of a number, a
//! position of a bag may have a byte that means "before all objects of the key" or "after all
//! objects of the key".

use crate::traits::HASH;
use crate::Key;
use smallvec::SmallVec;

/// In place of a number: before all objects of the key.
pub(super) const BEFORE_NUMBERS: u8 = 0xFE;
/// In place of a number: after all objects of the key. It sorts after every number.
pub(super) const PAST_NUMBERS: u8 = 0xFF;

/// The part of a position that refers to the objects of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberBound {
    /// It is before all objects.
    Before,
    /// It is the position of the object with this number.
    Number(u64),
    /// It is after all objects.
    After,
}

/// A position of a bag, in its two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BagPosition<'p> {
    /// The hash and the key.
    pub(super) prefix: &'p [u8],
    /// The part that refers to the key's objects.
    pub(super) bound: NumberBound,
}

/// Splits a position of a bag into its parts.
pub(super) fn parse(position: &[u8]) -> BagPosition<'_> {
    // The last byte says what it is: a bound, or the end of a number.
    let (prefix, bound) = match position.split_last() {
        Some((&BEFORE_NUMBERS, prefix)) => (prefix, NumberBound::Before),
        Some((&PAST_NUMBERS, prefix)) => (prefix, NumberBound::After),
        _ => match position.len().checked_sub(number_len(position)) {
            Some(at) => (&position[..at], NumberBound::Number(number(position))),
            // A position that was made up may be too short for its number. No object has such a
            // position, so any place among the objects will do.
            None => (position, NumberBound::Before),
        },
    };
    BagPosition { prefix, bound }
}

/// A position, or the common prefix of all positions of a key. Short ones need no allocation.
pub(super) type Position = SmallVec<[u8; 104]>;

/// The common prefix of all positions of a key.
pub(super) fn prefix(key: Key<'_>) -> Position {
    let mut prefix = Position::new();
    prefix.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
    prefix.extend_from_slice(key.bytes);
    prefix
}

/// What a number is appended to.
pub(super) trait NumberSink {
    /// Appends bytes by one copy. `Extend` would append them one by one.
    fn append(&mut self, bytes: &[u8]);
}

impl NumberSink for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl NumberSink for Position {
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Appends the number of an object.
pub(super) fn push_number(n: u64, out: &mut impl NumberSink) {
    if n < 0x80 {
        return out.append(&[n as u8]);
    }
    // As few bytes as the number needs. Their count is on both sides, so that the number can be
    // read from the end, and longer numbers sort after shorter ones.
    let len = 8 - n.leading_zeros() as usize / 8;
    let mut bytes = [0x80 + len as u8; 10];
    bytes[1..=len].copy_from_slice(&n.to_be_bytes()[8 - len..]);
    out.append(&bytes[..len + 2]);
}

/// The length of the number at the end of a position.
fn number_len(position: &[u8]) -> usize {
    match position.last() {
        Some(count) if *count >= 0x80 => usize::from(count - 0x80) + 2,
        _ => 1,
    }
}

/// The number at the end of a position.
pub(super) fn number(position: &[u8]) -> u64 {
    let bytes = &position[position.len() - number_len(position)..];
    match bytes {
        [small] => u64::from(*small),
        [_, middle @ .., _] => middle.iter().fold(0, |n, b| n << 8 | u64::from(*b)),
        [] => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_and_come_back() {
        let samples = [
            0,
            1,
            127,
            128,
            129,
            255,
            256,
            65_535,
            65_536,
            1 << 40,
            u64::MAX - 1,
        ];
        for (byte, bound) in [
            (BEFORE_NUMBERS, NumberBound::Before),
            (PAST_NUMBERS, NumberBound::After),
        ] {
            let prefix = &[7, 0x81][..];
            assert_eq!(parse(&[7, 0x81, byte]), BagPosition { prefix, bound });
        }
        let mut last = Position::new();
        for n in samples {
            let mut position: Position = (&b"key"[..]).into();
            push_number(n, &mut position);
            assert!(position > last, "{n}");
            assert_eq!(number(&position), n);
            assert_eq!(number_len(&position), position.len() - 3);
            assert!(position[3] < BEFORE_NUMBERS);
            let (prefix, bound) = (&b"key"[..], NumberBound::Number(n));
            assert_eq!(parse(&position), BagPosition { prefix, bound });
            last = position;
        }
    }
}

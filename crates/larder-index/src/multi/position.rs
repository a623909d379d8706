//! Positions of a bag, and of its marks.

use crate::traits::HASH;
use crate::Key;
use smallvec::SmallVec;

/// Sorts after every number of an arrival.
pub(super) const PAST_NUMBERS: u8 = 0xFF;

/// A position, or what all positions of a key begin with; mostly without memory of its own.
pub(super) type Position = SmallVec<[u8; 104]>;

/// What all positions of the key begin with.
pub(super) fn prefix(key: Key<'_>) -> Position {
    let mut prefix = Position::new();
    prefix.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
    prefix.extend_from_slice(key.bytes);
    prefix
}

/// Appends the number of an arrival.
pub(super) fn push_number(n: u64, out: &mut Position) {
    if n < 0x80 {
        out.push(n as u8);
        return;
    }
    let bytes = n.to_be_bytes();
    let skip = n.leading_zeros() as usize / 8;
    let mark = 0x80 + (8 - skip) as u8;
    out.push(mark);
    out.extend_from_slice(&bytes[skip..]);
    out.push(mark);
}

/// Bytes of the number at the end of a position.
pub(super) fn number_len(position: &[u8]) -> usize {
    match position.last() {
        Some(mark) if *mark >= 0x80 => usize::from(mark - 0x80) + 2,
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
        let mut last = Position::new();
        for n in samples {
            let mut position: Position = (&b"key"[..]).into();
            push_number(n, &mut position);
            assert!(position > last, "{n}");
            assert_eq!(number(&position), n);
            assert_eq!(number_len(&position), position.len() - 3);
            assert!(position[3] < PAST_NUMBERS);
            last = position;
        }
    }
}

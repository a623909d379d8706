//! Counts in order keys: bytes that compare as the numbers do.

use super::sink::Sink;

/// A count: itself up to `0xF7`, else the number of its bytes above that, and them, high ones
/// first.
#[inline]
pub(super) fn push_count(n: u64, out: &mut impl Sink) {
    let (first, rest, used) = count_parts(n);
    out.byte(first);
    if used > 0 {
        out.run(rest, used);
    }
}

/// The first byte of a count, and what follows it: so many of eight bytes.
#[inline]
pub(super) fn count_parts(n: u64) -> (u8, [u8; 8], usize) {
    if n <= 0xF7 {
        return (n as u8, [0; 8], 0);
    }
    let skipped = n.leading_zeros() as usize / 8;
    let (used, high) = (8 - skipped, n << (8 * skipped));
    (0xF7 + used as u8, high.to_be_bytes(), used)
}

/// The inverse of `push_count`, all bits turned or not, at a place, which moves behind it.
pub(super) fn count(key: &[u8], at: &mut usize, turned: u8) -> u64 {
    match word(key, at, 1, turned) {
        n @ 0..=0xF7 => n,
        length => word(key, at, length as usize - 0xF7, turned),
    }
}

/// A number of so many bytes (up to eight), high ones first, with all its bits turned or not.
#[inline]
pub(super) fn word(key: &[u8], at: &mut usize, bytes: usize, turned: u8) -> u64 {
    let run = &key[*at..*at + bytes];
    *at += bytes;
    run.iter()
        .fold(0, |n, byte| n << 8 | u64::from(byte ^ turned))
}

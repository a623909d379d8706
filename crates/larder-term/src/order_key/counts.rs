//! Counts in order keys: byte strings that compare as the numbers do.

use super::sink::Sink;

/// Writes a count. Up to `0xF7`, it is one byte. A greater one is `0xF7` plus the number of its
/// bytes, and then these bytes, big endian.
#[inline]
pub(super) fn push_count(n: u64, out: &mut impl Sink) {
    let (first, rest, used) = count_parts(n);
    out.byte(first);
    if used > 0 {
        out.run(rest, used);
    }
}

/// The first byte of a count, and what follows it: eight bytes, and how many of them count.
#[inline]
pub(super) fn count_parts(n: u64) -> (u8, [u8; 8], usize) {
    if n <= 0xF7 {
        return (n as u8, [0; 8], 0);
    }
    let skipped = n.leading_zeros() as usize / 8;
    let (used, high) = (8 - skipped, n << (8 * skipped));
    (0xF7 + used as u8, high.to_be_bytes(), used)
}

/// Reads a count that `push_count` wrote, and moves `at` past it. `turned` is 0, or 0xFF if all
/// its bits are inverted.
pub(super) fn count(key: &[u8], at: &mut usize, turned: u8) -> u64 {
    match word(key, at, 1, turned) {
        n @ 0..=0xF7 => n,
        length => word(key, at, length as usize - 0xF7, turned),
    }
}

/// Reads a big-endian number of this number of bytes, up to eight, and moves `at` past it.
/// `turned` is 0, or 0xFF if all its bits are inverted.
#[inline]
pub(super) fn word(key: &[u8], at: &mut usize, bytes: usize, turned: u8) -> u64 {
    let run = &key[*at..*at + bytes];
    *at += bytes;
    run.iter()
        .fold(0, |n, byte| n << 8 | u64::from(byte ^ turned))
}

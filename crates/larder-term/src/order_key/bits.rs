//! Binaries and bitstrings in order keys.
//!
//! ```text
//!  up to 512 bytes   FA byte…, 00, bits in the last byte (0 of no byte)       a byte 00 is 00 FF
//!  more              FA the first 512, as above, 01, group FF … group FF, group, bits in it
//! ```
//!
//! Escaping makes zero bytes longer, and each byte must be examined. So the bytes behind the first
//! [`ESCAPED`] ones are copied in *groups*. The size of a group depends only on its place, and the
//! last group is padded with zeros. Each group is followed by `FF`, or by the number of bits that
//! count in the last group.
//!
//! If two bitstrings are equal up to the beginning of a group, both have a group of the same size
//! there, so the groups compare as bytes. If these are equal, the bitstring that ends in the group,
//! or has fewer bits there, is less: the other one has zeros in place of the padding. The size of
//! groups grows with the square root of the place. So marks and padding take a tenth at most, and a
//! smaller part of longer bitstrings.

use super::counts::{count, push_count};
use super::{sink::Sink, BITSTRING};
use crate::{tags::*, varint};

/// The number of bytes that are escaped.
const ESCAPED: usize = 512;
/// Groups follow. A bitstring that ends here has 00 in this place.
const LONGER: u8 = 1;
/// Another group follows. Greater than any number of bits.
const MORE: u8 = 0xFF;
/// The mark behind a zero byte.
const ZERO_MARK: u8 = 0xFF;
/// Eight zero bytes, each with its mark.
const EIGHT_ZEROS: [u8; 16] = [
    0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF,
];

/// The size of the group that begins with the byte `at`.
#[inline]
fn group(at: usize) -> usize {
    1 << (at.ilog2() / 2 + 1)
}

/// Writes a bitstring.
///
/// # Complexity
/// Linear.
#[inline]
pub(super) fn push(bytes: &[u8], bits: usize, out: &mut impl Sink) {
    out.byte(BITSTRING);
    let (first, rest) = bytes.split_at(bytes.len().min(ESCAPED));
    push_escaped(first, out);
    if rest.is_empty() {
        let in_last = bits - 8 * bytes.len().saturating_sub(1);
        out.run([0, in_last as u8], 2);
    } else {
        out.byte(LONGER);
        push_groups(rest, bits - 8 * ESCAPED, out);
    }
}

#[inline]
fn push_escaped(bytes: &[u8], out: &mut impl Sink) {
    let mut eights = bytes.chunks_exact(8);
    // Eight bytes at a time. Most have no zero byte, and are copied as they are.
    for eight in eights.by_ref() {
        let word = eight.try_into().map_or(0, u64::from_le_bytes);
        if zeros(word) == 0 {
            out.run(word.to_le_bytes(), 8);
        } else if word == 0 {
            out.run(EIGHT_ZEROS, 16);
        } else {
            push_marked(eight, out);
        }
    }
    push_marked(eights.remainder(), out);
}

/// Writes up to eight bytes with a mark behind each zero.
#[inline]
fn push_marked(bytes: &[u8], out: &mut impl Sink) {
    let (mut marked, mut at) = ([0; 16], 0);
    for &byte in bytes {
        // Write the mark in any case. If the byte isn't zero, the next byte overwrites it.
        marked[at] = byte;
        marked[at + 1] = ZERO_MARK;
        at += 1 + usize::from(byte == 0);
    }
    out.run(marked, at);
}

#[cold]
fn push_groups(mut rest: &[u8], mut bits: usize, out: &mut impl Sink) {
    let mut at = ESCAPED;
    loop {
        let size = group(at);
        // The last group may be full. But it is never left out: the count of bits is in its mark.
        if rest.len() <= size {
            break;
        }
        let (first, behind) = rest.split_at(size);
        out.slice(first);
        out.byte(MORE);
        (at, rest, bits) = (at + size, behind, bits - 8 * size);
    }
    // The last group is padded, so that two keys have groups of the same size up to their ends.
    out.slice(rest);
    out.zeros(group(at) - rest.len());
    push_count(bits as u64, out);
}

/// The highest bit of each zero byte, up to the lowest such byte. Bits above that may be wrong.
#[inline]
fn zeros(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// The bytes of the binary whose order key this is, if there are at most 512, none of them zero.
#[inline]
pub fn to_binary(key: &[u8]) -> Option<&[u8]> {
    let (bytes, end) = key.strip_prefix(&[BITSTRING])?.split_last_chunk()?;
    // Without groups and marks, the bytes are as they are. The last one has eight bits.
    let is_plain = *end == [0, if bytes.is_empty() { 0 } else { 8 }]
        && bytes.len() <= ESCAPED
        && before_zero(bytes, ESCAPED) == bytes.len();
    is_plain.then_some(bytes)
}

/// Appends the term of a bitstring whose order key continues at `at`, behind its tag. Returns the
/// place behind the order key.
pub(super) fn read(key: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    // 1. Find the end of the escaped bytes: the first zero without a mark, or the last byte that is
    //    escaped. `len` counts the bytes without marks.
    let (mut end, mut len) = (at, 0);
    loop {
        let run = before_zero(&key[end..], ESCAPED - len);
        (end, len) = (end + run, len + run);
        if len == ESCAPED || key[end + 1] != ZERO_MARK {
            break;
        }
        (end, len) = (end + 2, len + 1);
    }
    let escaped = &key[at..end];
    if key[end] == LONGER && len == ESCAPED {
        return read_groups(escaped, key, end + 1, out);
    }
    // 2. Read the number of bits, and copy the bytes.
    let bits = 8 * len.saturating_sub(1) + usize::from(key[end + 1]);
    push_head(bits, out);
    push_unescaped(escaped, len, out);
    end + 2
}

/// The number of bytes before the first zero, `most` if there are as many.
#[inline]
fn before_zero(bytes: &[u8], most: usize) -> usize {
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let zeros = zeros(u64::from_le_bytes(*eight));
        at += (zeros.trailing_zeros() / 8) as usize;
        if zeros != 0 || at >= most {
            return at.min(most);
        }
    }
    let rest = bytes[at..].iter().take_while(|&&byte| byte != 0);
    (at + rest.count()).min(most)
}

/// Appends escaped bytes without the marks, which are `len` bytes.
#[inline]
fn push_unescaped(escaped: &[u8], len: usize, out: &mut Vec<u8>) {
    // Nothing was escaped: the lengths say so.
    if escaped.len() == len {
        return out.extend_from_slice(escaped);
    }
    let mut rest = escaped;
    loop {
        // Copy up to a zero byte. It is followed by its mark, which is skipped.
        let run = before_zero(rest, rest.len());
        out.extend_from_slice(&rest[..run]);
        if run == rest.len() {
            return;
        }
        out.push(0);
        rest = &rest[run + 2..];
    }
}

/// Continues `read` with groups, which begin at `start`, behind the escaped bytes.
#[cold]
fn read_groups(escaped: &[u8], key: &[u8], start: usize, out: &mut Vec<u8>) -> usize {
    // 1. Find the number of bits.
    let (mut at, mut len) = (start, ESCAPED);
    while key[at + group(len)] == MORE {
        let size = group(len);
        (at, len) = (at + size + 1, len + size);
    }
    let mut end = at + group(len);
    let in_last = count(key, &mut end, 0) as usize;
    let bits = 8 * len + in_last;
    push_head(bits, out);
    // 2. Copy the bytes.
    out.reserve(bits.div_ceil(8));
    push_unescaped(escaped, ESCAPED, out);
    let (mut from, mut done) = (start, ESCAPED);
    while done < len {
        let size = group(done);
        out.extend_from_slice(&key[from..from + size]);
        (from, done) = (from + size + 1, done + size);
    }
    out.extend_from_slice(&key[at..at + in_last.div_ceil(8)]);
    end
}

#[inline]
fn push_head(bits: usize, out: &mut Vec<u8>) {
    let (tag, count) = match bits % 8 {
        0 => (BIN, bits / 8),
        _ => (BITS, bits),
    };
    out.push(tag);
    varint::push(out, count as u64);
}

#[cfg(test)]
mod tests {
    use crate::{order_key, Encoder, Mode, Term};
    use proptest::{collection::vec, prelude::*};

    fn key(term: &Term) -> Vec<u8> {
        let mut key = Vec::new();
        order_key::encode(term.as_ref(), &mut key);
        key
    }

    fn check(a: &Term, b: &Term) {
        let (x, y) = (key(a), key(b));
        assert_eq!(x.cmp(&y), a.as_ref().cmp_term(b.as_ref()), "{a:?} {b:?}");
        assert!(x == y || !(x.starts_with(&y) || y.starts_with(&x)));
        for (term, key) in [(a, x), (b, y)] {
            let mut again = Vec::new();
            order_key::decode(&key, &mut again);
            let mut inline = Vec::new();
            Encoder::new(&mut inline, Mode::Inline).term(term.as_ref());
            assert_eq!(again, inline);
        }
    }

    /// Bits of a few bytes that come again and again.
    fn bits(len: usize, pattern: &[u8], bits: usize) -> Term {
        let bytes: Vec<u8> = pattern.iter().copied().cycle().take(len).collect();
        Term::bits(&bytes, bits.min(8 * len))
    }

    #[test]
    fn lengths_at_which_something_changes() {
        let ends = [
            0, 1, 8, 63, 64, 65, 127, 128, 255, 256, 257, 272, 273, 511, 512, 544, 2048, 5000,
        ];
        let patterns: [&[u8]; 4] = [&[0], &[7], &[0xFF], &[0, 3]];
        let mut all = Vec::new();
        for pattern in patterns {
            for len in ends.into_iter().flat_map(|n| n.max(1) - 1..=n + 1) {
                all.extend((0..8).map(|less| bits(len, pattern, 8 * len - less.min(8 * len))));
            }
        }
        for a in &all {
            // Not all with all: those with the nearest lengths, and some others.
            for b in all.iter().step_by(7).chain(
                all.iter()
                    .filter(|b| a.bytes().len().abs_diff(b.bytes().len()) <= 1),
            ) {
                check(a, b);
            }
        }
    }

    #[test]
    fn plain_binaries_in_place() {
        for len in [0, 1, 7, 8, 9, 511, 512] {
            let plain = key(&Term::binary(&vec![3; len]));
            assert_eq!(
                order_key::to_binary(&plain),
                Some(&vec![3; len][..]),
                "{len}"
            );
            // A zero at any place is escaped.
            for at in (0..len).step_by(1 + len / 9) {
                let mut bytes = vec![3; len];
                bytes[at] = 0;
                assert_eq!(order_key::to_binary(&key(&Term::binary(&bytes))), None);
            }
        }
        let longer = key(&Term::binary(&[3; 513]));
        let others = [
            bits(9, &[3], 65),
            Term::from(7),
            Term::tuple([Term::binary(&[3])]),
        ];
        let keys = others.iter().map(key).chain([longer]);
        keys.for_each(|key| assert_eq!(order_key::to_binary(&key), None, "{key:?}"));
        assert_eq!(order_key::to_binary(&[]), None);
    }

    #[test]
    fn the_key_of_a_megabyte_is_hardly_longer() {
        let long = Term::binary(&vec![0; 1 << 20]);
        assert!(key(&long).len() < (1 << 20) + (1 << 13));
        check(&long, &Term::binary(&vec![0; (1 << 20) + 1]));
    }

    proptest! {
        #[test]
        fn they_compare_as_bits(
            shared in vec(prop_oneof![Just(0u8), Just(0xFF), any::<u8>()], 480..700),
            (x, y) in (vec(0u8..3, 0..40), vec(0u8..3, 0..40)),
            (less_x, less_y) in (0usize..8, 0usize..8),
            behind in any::<i64>(),
        ) {
            let term = |own: &[u8], less: usize| {
                let bytes = [&shared[..], own].concat();
                let bits = (8 * bytes.len()).saturating_sub(less);
                Term::bits(&bytes, bits)
            };
            let (a, b) = (term(&x, less_x), term(&y, less_y));
            check(&a, &b);
            // What stands behind does not matter unless they are equal.
            let pair = |first: &Term| Term::tuple([first.clone(), Term::from(behind)]);
            check(&pair(&a), &pair(&b));
        }
    }
}

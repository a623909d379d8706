//! Binaries and bitstrings in order keys.
//!
//! ```text
//!  up to 4,096 bytes   FA byte…, 00, bits in the last byte (0 of no byte)
//!  more                FA the first 4,096, as above, 01, group FF … group FF, group, bits in it
//!
//!  n zeros, then     another byte          00, 100 - n, byte      from 88 on
//!                    more zeros, n = 120   00, 81, and the rest of them, without the 00
//!                    the end               00, 08 + n, bits in the last byte
//! ```
//!
//! A run of zeros is two bytes. Of two bitstrings with different runs at the same place, the one
//! with the shorter run is greater if it goes on, since its next byte isn't zero. If it ends, it is
//! less. So codes of runs at the end are the least, and ascend; codes of runs before a byte are the
//! greatest, and descend; between them is that of a run that is longer.
//!
//! To find zeros, each byte must be examined. So the bytes after the first [`ESCAPED`] ones are
//! copied in *groups*. The size of a group depends only on its offset, and the last group is padded
//! with zeros. Each group is followed by `FF`, or by the number of bits that count in the last
//! group.
//!
//! If two bitstrings are equal up to the beginning of a group, both have a group of the same size
//! there, so the groups compare as bytes. If these are equal, the bitstring that ends in the group,
//! or has fewer bits there, is less: the other one has zeros in place of the padding. The size of
//! groups grows with the square root of the offset. So continuation bytes and padding take a tenth
//! at most, and a smaller part of longer bitstrings.

use super::counts::{count, push_count};
use super::{sink::Sink, BITSTRING};
use crate::{tags::*, varint};
use memchr::memchr;

/// The number of bytes in which zeros have codes.
const ESCAPED: usize = 4096;
/// Groups follow. A bitstring that ends here has 00 instead.
const LONGER: u8 = 1;
/// Another group follows. Greater than any number of bits.
const MORE: u8 = 0xFF;
/// A zero within so many bytes is searched for word by word.
const NEAR: usize = 32;
/// The greatest number of zeros that one code stands for.
const MOST_ZEROS: usize = 120;
/// The code of `MOST_ZEROS` zeros, and more. The code of the others follows.
const MORE_ZEROS: u8 = 0x81;
/// The least code of zeros before another byte.
const BEFORE_BYTE: u8 = zeros_before_byte(MOST_ZEROS);
/// The greatest number of bits in the last byte. Greater codes are those of zeros at the end.
const MOST_BITS: u8 = 8;

/// The least code of zeros at the end.
const AT_END: u8 = zeros_at_end(1);

/// The code of up to [`MOST_ZEROS`] zeros before another byte.
const fn zeros_before_byte(zeros: usize) -> u8 {
    (0x100 - zeros) as u8
}

/// The code of up to [`MOST_ZEROS`] zeros at the end.
const fn zeros_at_end(zeros: usize) -> u8 {
    MOST_BITS + zeros as u8
}

const _: () = assert!(zeros_at_end(MOST_ZEROS) < MORE_ZEROS && MORE_ZEROS < BEFORE_BYTE);

/// The size of the group that begins with the byte `at`. The size doubles each time `at`
/// quadruples: groups of `size` bytes end at byte `size * size`.
#[inline]
fn group(at: usize) -> usize {
    1 << (at.ilog2() / 2 + 1)
}

/// Calls `$copy` with the size of groups in its last argument. Copying a group takes a few
/// instructions if the compiler knows the size, so the common sizes are constants.
macro_rules! with_size {
    ($copy:ident($($argument:expr),*; $size:expr)) => {
        match $size {
            32 => $copy($($argument,)* 32),
            64 => $copy($($argument,)* 64),
            size => $copy($($argument,)* size),
        }
    };
}

/// Writes a bitstring.
///
/// # Complexity
/// Linear.
#[inline]
pub(super) fn push(bytes: &[u8], bits: usize, out: &mut impl Sink) {
    out.byte(BITSTRING);
    // Short bitstrings are escaped as a whole. Longer ones continue in groups.
    let (first, rest) = bytes.split_at(bytes.len().min(ESCAPED));
    let zeros = push_escaped(first, out);
    if rest.is_empty() {
        // A bitstring without bytes has no bits in its last byte.
        let in_last = (bits - 8 * bytes.len().saturating_sub(1)) as u8;
        match zeros {
            0 => out.run([0, in_last], 2),
            zeros => {
                push_zeros(zeros, zeros_at_end, out);
                out.byte(in_last);
            }
        }
    } else {
        // What follows is not a zero of the first bytes.
        push_zeros_before_byte(zeros, out);
        out.byte(LONGER);
        push_groups(rest, bits - 8 * ESCAPED, out);
    }
}

/// Writes the bytes, but not the zeros at their end, whose number is the result.
#[inline]
fn push_escaped(bytes: &[u8], out: &mut impl Sink) -> usize {
    // Most are texts, which have no zeros.
    if has_no_zero(bytes) {
        out.slice(bytes);
        return 0;
    }
    let (mut rest, mut pending) = (bytes, 0);
    while let Some(eight) = rest.first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        // Zeros often stand together, and so do other bytes: runs of either are found at once.
        let done = match (word, zeros(word)) {
            (0, _) => {
                let run = zeros_in_eights(rest);
                pending += run;
                run
            }
            (_, 0) => {
                push_zeros_before_byte(std::mem::take(&mut pending), out);
                let run = match rest.len() > NEAR {
                    true => before_zero(rest, rest.len()),
                    false => 8,
                };
                out.slice(&rest[..run]);
                run
            }
            _ => {
                pending = push_mixed(eight, word, pending, out);
                8
            }
        };
        rest = &rest[done..];
    }
    match short_word(rest) {
        0 => pending + rest.len(),
        word => push_mixed(rest, word, pending, out),
    }
}

/// The number of zeros at the beginning, in whole eights.
#[inline]
fn zeros_in_eights(bytes: &[u8]) -> usize {
    let wide = bytes.chunks_exact(NEAR);
    let wide = NEAR
        * wide
            .take_while(|chunk| chunk.iter().fold(0, |all, &byte| all | byte) == 0)
            .count();
    let eights = bytes[wide..].chunks_exact(8);
    wide + 8 * eights.take_while(|&eight| eight == [0; 8]).count()
}

/// Writes the code of a run of zeros, if there are any, before another byte.
#[inline]
fn push_zeros_before_byte(zeros: usize, out: &mut impl Sink) {
    match zeros {
        0 => {}
        1..=MOST_ZEROS => out.run([0, zeros_before_byte(zeros)], 2),
        _ => push_zeros(zeros, zeros_before_byte, out),
    }
}

/// Writes a run of zeros. `code` gives the code of its last part.
#[inline(never)]
fn push_zeros(mut zeros: usize, code: fn(usize) -> u8, out: &mut impl Sink) {
    out.byte(0);
    while zeros > MOST_ZEROS {
        out.byte(MORE_ZEROS);
        zeros -= MOST_ZEROS;
    }
    out.byte(code(zeros));
}

/// Fewer than eight bytes as a word, of which the first one is the lowest.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // They may have bytes in common.
        let [first, last] = [first, last].map(|four| u64::from(u32::from_le_bytes(*four)));
        return first | last << (8 * (bytes.len() - 4));
    }
    let next = |word: u64, &byte: &u8| word << 8 | u64::from(byte);
    bytes.iter().rev().fold(0, next)
}

/// Writes up to eight bytes, which aren't all zeros, after some that are. Returns the number of
/// zeros at their end, which aren't written. `word` is the bytes, of which the first one is the
/// lowest.
#[inline]
fn push_mixed(bytes: &[u8], word: u64, zeros_before: usize, out: &mut impl Sink) -> usize {
    let first = word.trailing_zeros() as usize / 8;
    push_zeros_before_byte(zeros_before + first, out);
    // At most every second byte is a zero before another one, which takes one byte more.
    let (mut escaped, mut at, mut zeros) = ([0; 16], 0, 0);
    for &byte in &bytes[first..] {
        // Write the code in any case. If the bytes aren't zeros before another one, the next ones
        // overwrite it.
        escaped[at] = 0;
        escaped[at + 1] = zeros_before_byte(zeros);
        at += 2 * usize::from(zeros > 0 && byte != 0);
        escaped[at] = byte;
        at += usize::from(byte != 0);
        zeros = if byte == 0 { zeros + 1 } else { 0 };
    }
    out.run(escaped, at);
    zeros
}

/// Writes the bytes after the escaped ones, `bits` bits.
#[cold]
fn push_groups(mut rest: &[u8], mut bits: usize, out: &mut impl Sink) {
    let mut at = ESCAPED;
    loop {
        let size = group(at);
        if rest.len() <= size {
            break;
        }
        // Write the groups of this size, but not the last group of the bitstring.
        let of_size = (size * size - at).min((rest.len() - 1) / size * size);
        let (groups, after) = rest.split_at(of_size);
        with_size!(push_full_groups(groups, out; size));
        (at, rest, bits) = (at + of_size, after, bits - 8 * of_size);
    }
    // The last group, padded with zeros.
    out.slice(rest);
    out.zeros(group(at) - rest.len());
    push_count(bits as u64, out);
}

/// Writes bytes in groups of this size, each with a continuation byte after it.
#[inline]
fn push_full_groups(bytes: &[u8], out: &mut impl Sink, size: usize) {
    out.groups(bytes, size, MORE);
}

/// Copies groups of this size without their continuation bytes, as far as each has one, and as
/// there is space. Returns their number.
#[inline]
fn copy_full_groups(groups: &[u8], out: &mut [u8], size: usize) -> usize {
    let pairs = groups
        .chunks_exact(size + 1)
        .zip(out.chunks_exact_mut(size));
    let full = pairs.take_while(|(group, _)| group[size] == MORE);
    full.map(|(group, place)| place.copy_from_slice(&group[..size]))
        .count()
}

/// The highest bit of each zero byte, up to the lowest such byte. Bits above that may be wrong.
#[inline]
fn zeros(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// The bytes of the binary whose order key this is, if there are at most 4,096, none of them zero.
#[inline]
pub fn to_binary(key: &[u8]) -> Option<&[u8]> {
    let (bytes, end) = key.strip_prefix(&[BITSTRING])?.split_last_chunk()?;
    // Without groups and escapes, the bytes are as they are. The last one has eight bits.
    let is_plain = *end == [0, if bytes.is_empty() { 0 } else { 8 }]
        && bytes.len() <= ESCAPED
        && (has_no_zero(bytes) || before_zero(bytes, ESCAPED) == bytes.len());
    is_plain.then_some(bytes)
}

/// Appends the term of a bitstring whose order key continues at `at`, after its tag. Returns the
/// offset after the order key.
pub(super) fn read(key: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    // 1. Make space for the head, which comes first. The number of bits is only known at the end.
    //    But unless other terms follow, one with so many bytes left has a count of two bytes.
    let (start, space) = (out.len(), if key.len() - at > 2 * 0x80 { 3 } else { 2 });
    out.extend_from_slice(&[0; 3][..space]);
    // 2. Copy the bytes between the codes of zeros, up to the end, or to the last byte that may
    //    have a code. `len` counts them. What follows is the number of bits in the last byte, or
    //    groups.
    let (mut end, mut len) = (at, 0);
    let in_last = loop {
        let run = before_zero(&key[end..], ESCAPED - len);
        out.extend_from_slice(&key[end..end + run]);
        (end, len) = (end + run, len + run);
        if len == ESCAPED && key[end] == LONGER {
            break None;
        }
        let (zeros, code) = read_zeros(key, &mut end);
        out.resize(out.len() + zeros, 0);
        len += zeros;
        match code {
            ..=MOST_BITS => break Some(code),
            AT_END..MORE_ZEROS => {
                end += 1;
                break Some(key[end - 1]);
            }
            _ => {}
        }
    };
    // 3. Read the groups, if there are any.
    let bits;
    match in_last {
        Some(in_last) => bits = 8 * len.saturating_sub(1) + usize::from(in_last),
        None => (bits, end) = read_groups(key, end + 1, out),
    }
    set_head(start, space, bits, out);
    end
}

/// Whether there are eight to [`NEAR`] bytes, none of them zero. `false` may say that there are
/// other numbers of bytes.
#[inline]
fn has_no_zero(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk::<8>().filter(|_| bytes.len() <= NEAR) else {
        return false;
    };
    // The last eight bytes begin with some that were looked at.
    let word = |eight: &[u8]| eight.try_into().map_or(0, u64::from_le_bytes);
    let words = bytes.chunks_exact(8).map(word);
    words.fold(zeros(u64::from_le_bytes(*last)), |found, word| {
        found | zeros(word)
    }) == 0
}

/// The number of bytes before the first zero, `most` if there are as many.
#[inline]
fn before_zero(bytes: &[u8], most: usize) -> usize {
    let bytes = &bytes[..most.min(bytes.len())];
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let zeros = zeros(u64::from_le_bytes(*eight));
        // The lowest bit is that of the first zero.
        if zeros != 0 {
            return at + (zeros.trailing_zeros() / 8) as usize;
        }
        at += eight.len();
        // Searching a long stretch by vectors is faster, but takes a call.
        if at == NEAR {
            break;
        }
    }
    let rest = &bytes[at..];
    if rest.len() >= 8 {
        return at + memchr(0, rest).unwrap_or(rest.len());
    }
    // The last eight bytes begin with some that were searched.
    match bytes.last_chunk::<8>() {
        Some(eight) => match zeros(u64::from_le_bytes(*eight)) {
            0 => bytes.len(),
            zeros => bytes.len() - 8 + (zeros.trailing_zeros() / 8) as usize,
        },
        None => at + rest.iter().take_while(|&&byte| byte != 0).count(),
    }
}

/// The number of zeros that the codes at `at` stand for, and the last code. Moves `at` behind it.
#[inline]
fn read_zeros(key: &[u8], at: &mut usize) -> (usize, u8) {
    let mut zeros = 0;
    loop {
        *at += 1;
        match key[*at] {
            MORE_ZEROS => zeros += MOST_ZEROS,
            code => {
                *at += 1;
                let last = match code {
                    ..=MOST_BITS => 0,
                    AT_END..MORE_ZEROS => usize::from(code - MOST_BITS),
                    _ => 0x100 - usize::from(code),
                };
                return (zeros + last, code);
            }
        }
    }
}

/// Appends the bytes of the groups, which begin at `at`, after the escaped ones. Returns the number
/// of bits of the bitstring, and the offset after its order key.
#[inline(never)]
fn read_groups(key: &[u8], mut at: usize, out: &mut Vec<u8>) -> (usize, usize) {
    // 1. Those that have a continuation byte after them, of one size after the other.
    let (mut len, mut size) = (ESCAPED, group(ESCAPED));
    loop {
        let groups = &key[at..];
        // Groups of this size end at the byte `size * size`.
        let most = (size * size - len) / size;
        let begin = out.len();
        out.resize(begin + most.min(groups.len() / (size + 1)) * size, 0);
        let full = with_size!(copy_full_groups(groups, &mut out[begin..]; size));
        out.truncate(begin + full * size);
        (at, len) = (at + full * (size + 1), len + full * size);
        if full < most {
            break;
        }
        size = group(len);
    }
    // 2. The last group has the number of its bits after it.
    let mut end = at + size;
    let in_last = count(key, &mut end, 0) as usize;
    out.extend_from_slice(&key[at..at + in_last.div_ceil(8)]);
    (8 * len + in_last, end)
}

/// Writes the head of a bitstring, for which there are `space` bytes at `start` in front of the
/// bitstring's.
#[inline]
fn set_head(start: usize, space: usize, bits: usize, out: &mut Vec<u8>) {
    let (tag, count) = match bits % 8 {
        0 => (BIN, bits / 8),
        _ => (BITS, bits),
    };
    if let (2, ..0x80) = (space, count) {
        [out[start], out[start + 1]] = [tag, count as u8];
        return;
    }
    let mut varint = [0; varint::MOST];
    let used = varint::write(&mut varint, count as u64);
    if 1 + used != space {
        move_to(start + space, start + 1 + used, out);
    }
    out[start] = tag;
    out[start + 1..start + 1 + used].copy_from_slice(&varint[..used]);
}

/// Moves the bytes from one offset on to another one.
#[cold]
#[inline(never)]
fn move_to(from: usize, to: usize, out: &mut Vec<u8>) {
    let end = out.len();
    out.resize(end.max(end - from + to), 0);
    out.copy_within(from..end, to);
    out.truncate(end - from + to);
}

#[cfg(test)]
mod tests {
    use super::{group, ESCAPED, MOST_ZEROS};
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

    /// Short binaries with a zero at each place, and without one.
    #[test]
    fn a_zero_anywhere_is_escaped() {
        for len in 0..=40 {
            for zero in 0..=len {
                let mut bytes = vec![7; len];
                if let Some(byte) = bytes.get_mut(zero) {
                    *byte = 0;
                }
                let escaped = bytes.iter().flat_map(|&byte| match byte {
                    0 => vec![0, 0xFF],
                    _ => vec![byte],
                });
                let mut expect: Vec<u8> = [0xFA].into_iter().chain(escaped).collect();
                match len {
                    0 => expect.extend([0, 0]),
                    // The zero is at the end.
                    _ if zero + 1 == len => {
                        expect.splice(expect.len() - 1.., [9, 8]).for_each(drop)
                    }
                    _ => expect.extend([0, 8]),
                }
                let found = key(&Term::binary(&bytes));
                assert_eq!(found, expect);
                let plain = order_key::to_binary(&found);
                assert_eq!(plain, (zero == len).then_some(&bytes[..]));
            }
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
            0,
            1,
            8,
            63,
            64,
            MOST_ZEROS,
            128,
            2 * MOST_ZEROS,
            256,
            ESCAPED / 2,
            ESCAPED,
            ESCAPED + group(ESCAPED),
            3 * ESCAPED,
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
    fn bitstrings_beside_long_ones() {
        // How long a head is doesn't follow from the bytes of the key that are left.
        let long = Term::binary(&[5; ESCAPED + 200]);
        let patterns: [&[u8]; 3] = [&[0], &[3], &[3, 0, 0]];
        for len in [
            0,
            1,
            2,
            9,
            15,
            16,
            127,
            128,
            200,
            ESCAPED,
            ESCAPED + 1,
            ESCAPED + 90,
        ] {
            for pattern in patterns {
                for less in [0, 3] {
                    let short = bits(len, pattern, 8 * len - less.min(8 * len));
                    let before = Term::tuple([short.clone(), long.clone()]);
                    check(&before, &Term::tuple([long.clone(), short]));
                }
            }
        }
    }

    #[test]
    fn plain_binaries_in_place() {
        for len in [0, 1, 7, 8, 9, ESCAPED - 1, ESCAPED] {
            let plain = key(&Term::binary(&vec![3; len]));
            assert_eq!(
                order_key::to_binary(&plain),
                Some(&vec![3; len][..]),
                "{len}"
            );
            // A zero at any offset is escaped.
            for at in (0..len).step_by(1 + len / 9) {
                let mut bytes = vec![3; len];
                bytes[at] = 0;
                assert_eq!(order_key::to_binary(&key(&Term::binary(&bytes))), None);
            }
        }
        let longer = key(&Term::binary(&[3; ESCAPED + 1]));
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

    /// Bytes that end about where groups begin, or short ones.
    fn shared() -> impl Strategy<Value = Vec<u8>> {
        let byte = || prop_oneof![Just(0u8), Just(0xFF), any::<u8>()];
        prop_oneof![vec(byte(), 0..20), vec(byte(), ESCAPED - 32..ESCAPED + 200),]
    }

    /// Runs of zeros of all lengths at the beginning, in the middle and at the end.
    #[test]
    fn runs_of_zeros_compare_as_bytes() {
        let lens = (0..20).chain(MOST_ZEROS - 2..MOST_ZEROS + 10);
        let lens = lens.chain(2 * MOST_ZEROS - 2..2 * MOST_ZEROS + 10);
        let mut all = Vec::new();
        for zeros in lens.map(|len| vec![0; len]) {
            for (before, after) in [
                ("", ""),
                ("", "\x01"),
                ("a", ""),
                ("a", "b"),
                ("a", "\u{7f}"),
            ] {
                let bytes = [before.as_bytes(), &zeros, after.as_bytes()].concat();
                all.extend(
                    [0, 7].map(|less| Term::bits(&bytes, (8 * bytes.len()).saturating_sub(less))),
                );
            }
        }
        for (i, a) in all.iter().enumerate() {
            all[i..].iter().step_by(3).for_each(|b| check(a, b));
        }
    }

    #[test]
    fn zeros_take_little() {
        let len = |bytes: &[u8]| key(&Term::binary(bytes)).len();
        assert_eq!(len(&7u128.to_be_bytes()), 1 + 2 + 1 + 2);
        assert_eq!(len(&[0; ESCAPED]), 1 + 1 + ESCAPED.div_ceil(MOST_ZEROS) + 1);
        // Every second byte is a zero: half as long again.
        assert_eq!(len(&[0, 7].repeat(100)), 1 + 300 + 2);
    }

    proptest! {
        #[test]
        fn they_compare_as_bits(
            shared in shared(),
            (x, y) in (vec(0u8..3, 0..40), vec(0u8..3, 0..40)),
            (less_x, less_y) in (0usize..8, 0usize..8),
            after in any::<i64>(),
        ) {
            let term = |rest: &[u8], less: usize| {
                let bytes = [&shared[..], rest].concat();
                let bits = (8 * bytes.len()).saturating_sub(less);
                Term::bits(&bytes, bits)
            };
            let (a, b) = (term(&x, less_x), term(&y, less_y));
            check(&a, &b);
            // What comes after doesn't matter unless these are equal.
            let pair = |first: &Term| Term::tuple([first.clone(), Term::from(after)]);
            check(&pair(&a), &pair(&b));
        }
    }
}

//! A compressor for rows. It is made for short blocks, so it needs no setup.
//!
//! ```text
//!  block     sequence …
//!  sequence  token (literals << 4 | repeated − 3)  [more literals]  literals
//!            then, unless the block ends here: distance  [more repeated]
//! ```
//!
//! A sequence consists of literal bytes, and of a match: bytes that repeat those `distance` before.
//! If a count in the token is 15, the rest of the count follows. The rests and the distance are
//! LEB128. The block doesn't contain its unpacked length, which the caller stores.
//!
//! This is LZ4 (Collet, 2011) with two deviations. A short distance, as nearly all in a row are,
//! takes one byte, and matches have at least three bytes. The hash table is small, and on the
//! stack.

use crate::varint;

/// The shortest match.
const LEAST: usize = 3;
/// The largest count that fits in a token.
const IN_TOKEN: usize = 15;
/// The number of bytes that are loaded for a hash, of which `LEAST` are used.
const HASH_LOAD: usize = 4;
/// Blocks up to this length use a hash table of 256 slots, longer ones of 4,096.
const SHORT: usize = 1024;

/// Appends `plain` in packed form. The same bytes always have the same packed form.
///
/// # Complexity
/// Linear.
pub(super) fn pack(plain: &[u8], out: &mut Vec<u8>) {
    if plain.len() <= SHORT {
        pack_with::<256>(plain, out);
    } else {
        pack_with::<4096>(plain, out);
    }
}

#[inline]
fn pack_with<const SLOTS: usize>(plain: &[u8], out: &mut Vec<u8>) {
    // 0 also means that there is no offset. That is no problem, since the bytes are compared.
    let mut slots = [0u32; SLOTS];
    let (mut at, mut done) = (1, 0);
    while let Some(four) = four_at(plain, at) {
        // Look up the last offset with the same hash, and replace it by this one.
        let slot = &mut slots[(hash(four) >> (32 - SLOTS.ilog2())) as usize % SLOTS];
        let before = std::mem::replace(slot, at as u32) as usize;
        if four_at(plain, before).is_none_or(|b| (b ^ four) << 8 != 0) {
            // There is no match. Advance faster the longer none has been found.
            at += 1 + (at - done) / 64;
            continue;
        }
        // Three bytes are equal. Extend the match.
        let repeated = LEAST + common(&plain[before + LEAST..], &plain[at + LEAST..]);
        // Write the literals since the last sequence, and then the match.
        push_literals(&plain[done..at], repeated - LEAST, out);
        varint::push(out, (at - before) as u64);
        if repeated - LEAST >= IN_TOKEN {
            varint::push(out, (repeated - LEAST - IN_TOKEN) as u64);
        }
        at += repeated;
        done = at;
    }
    // End the block with a sequence that has the rest as literals, and no match.
    if done < plain.len() {
        push_literals(&plain[done..], 0, out);
    }
}

#[inline]
fn four_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk::<HASH_LOAD>()?;
    Some(u32::from_le_bytes(*four))
}

/// A hash of the low three bytes, in the high bits.
#[inline]
fn hash(four: u32) -> u32 {
    (four << 8).wrapping_mul(0x9E37_79B1)
}

/// The length of the common prefix. `b` may be a suffix of `a`.
#[inline]
fn common(a: &[u8], b: &[u8]) -> usize {
    // Compare words first. The lowest bit that differs is in the first byte that differs, since the
    // words are little-endian.
    let (eights, others) = (a.chunks_exact(8), b.chunks_exact(8));
    let mut same = 0;
    for (x, y) in eights.zip(others) {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let differ = word(x) ^ word(y);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    // Less than a word is left of one of them.
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(x, y)| x == y).count()
}

#[inline]
fn push_literals(literals: &[u8], repeated: usize, out: &mut Vec<u8>) {
    let count = literals.len();
    out.push((count.min(IN_TOKEN) << 4 | repeated.min(IN_TOKEN)) as u8);
    if count >= IN_TOKEN {
        varint::push(out, (count - IN_TOKEN) as u64);
    }
    out.extend_from_slice(literals);
}

/// Appends the unpacked bytes, of which there are `length`.
///
/// # Panics
/// Panics on bytes that `pack` did not write.
///
/// # Complexity
/// Linear in `length`.
pub(super) fn unpack(packed: &[u8], length: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let end = start + length;
    // Reserve spare bytes, so that short runs can be copied as sixteen bytes.
    out.resize(end + SPARE, 0);
    let (mut from, mut to) = (0, start);
    while to < end {
        // Decode the token, and copy the literals.
        let token = usize::from(packed[from]);
        from += 1;
        let count = count(token >> 4, packed, &mut from);
        match packed[from..].first_chunk::<SPARE>() {
            Some(most) if count <= SPARE => out[to..to + SPARE].copy_from_slice(most),
            _ => out[to..to + count].copy_from_slice(&packed[from..from + count]),
        }
        (from, to) = (from + count, to + count);
        if to >= end {
            break;
        }
        // Copy the match, which may overlap the bytes that it produces.
        let (distance, next) = varint::read(packed, from);
        from = next;
        let distance = distance as usize;
        let repeated = LEAST + self::count(token & 0xF, packed, &mut from);
        repeat(&mut out[..], to, distance, repeated);
        to += repeated;
    }
    debug_assert_eq!(to, end);
    out.truncate(end);
}

/// The number of bytes after the end that may be overwritten.
const SPARE: usize = 16;

/// Decodes a count, given the part of it in the token.
#[inline]
fn count(in_token: usize, packed: &[u8], from: &mut usize) -> usize {
    if in_token < IN_TOKEN {
        return in_token;
    }
    let (more, next) = varint::read(packed, *from);
    *from = next;
    IN_TOKEN + more as usize
}

/// Writes `count` bytes at `to`, each equal to the one `distance` before it.
#[inline]
fn repeat(out: &mut [u8], to: usize, distance: usize, count: usize) {
    let from = to - distance;
    // Sixteen bytes in one copy. What is too much is overwritten by the next sequence, or cut off
    // at the end.
    if distance >= SPARE && count <= SPARE {
        let (before, after) = out.split_at_mut(to);
        after[..SPARE].copy_from_slice(&before[from..from + SPARE]);
    } else if distance >= count {
        out.copy_within(from..from + count, to);
    } else if distance == 1 {
        let byte = out[from];
        out[to..to + count].fill(byte);
    } else {
        // The source overlaps the destination, so copy byte by byte.
        (0..count).for_each(|i| out[to + i] = out[from + i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn check(plain: &[u8]) -> usize {
        let mut packed = vec![1, 2, 3];
        pack(plain, &mut packed);
        let mut again = vec![9, 8];
        unpack(&packed[3..], plain.len(), &mut again);
        assert_eq!(&again[2..], plain);
        packed.len() - 3
    }

    #[test]
    fn lengths_at_which_something_changes() {
        for len in (0..70)
            .chain(1000..1050)
            .chain([4095, 4096, 70_000, 1 << 20])
        {
            check(&vec![7; len]);
            let counted: Vec<u8> = (0..len).map(|i| (i / 3) as u8).collect();
            check(&counted);
            let squares: Vec<u8> = (0..len).map(|i| (i * i / 7) as u8).collect();
            check(&squares);
        }
    }

    #[test]
    fn what_repeats_takes_little() {
        assert!(check(&[0; 1000]) < 10);
        assert!(check(&b"a row and ".repeat(100)) < 20);
        let mut noise = 1u32;
        let noisy: Vec<u8> = (0..5000)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 24) as u8
            })
            .collect();
        assert!(check(&noisy) < 5000 + 200);
    }

    proptest! {
        #[test]
        fn all_comes_back(
            pieces in vec((vec(any::<u8>(), 0..40), 0..5usize, any::<bool>()), 0..40),
        ) {
            let mut plain = Vec::new();
            for (bytes, times, back) in pieces {
                (0..times).for_each(|_| plain.extend_from_slice(&bytes));
                if back {
                    plain.extend_from_within(plain.len() / 3..plain.len() / 2);
                }
            }
            check(&plain);
        }
    }
}

//! Reading and writing bytes in a run of atomic words.
//!
//! Byte `i` of the run is byte `i % 8` of word `i / 8` in memory order. So the holder of the leaf's
//! lock may also use the run as a plain slice. All loads and stores here are `Relaxed`; they are
//! ordered by the leaf's version (see `seqlock`).

use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::cmp::Ordering;

/// The error of a read that has found something impossible, because a writer was changing the leaf.
/// The caller retries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Torn;

/// The word at `i`.
#[inline]
pub(crate) fn word(words: &[AtomicU64], i: usize) -> Result<u64, Torn> {
    // Ordering: Relaxed, see the module's head.
    words.get(i).map(|w| w.load(Relaxed)).ok_or(Torn)
}

/// The word as a number whose lowest byte is the first in memory.
#[inline]
pub(crate) fn loaded(word: &AtomicU64) -> u64 {
    // Ordering: Relaxed, see the module's head.
    u64::from_le(word.load(Relaxed))
}

/// Eight bytes of two neighbouring words, which begin at bit `shift` of the first.
#[inline]
fn joined(low: u64, high: u64, shift: u32) -> u64 {
    // In two steps, since a shift by 64 isn't defined: `shift` may be 0.
    low >> shift | (high << (63 - shift)) << 1
}

/// Eight bytes from byte `at`, little endian; bytes past the end of the run read as zero.
#[inline]
pub(crate) fn load(words: &[AtomicU64], at: usize) -> Result<u64, Torn> {
    let (i, shift) = (at / 8, (at % 8) as u32 * 8);
    let low = loaded(words.get(i).ok_or(Torn)?);
    let high = words.get(i + 1).map_or(0, loaded);
    Ok(joined(low, high, shift))
}

/// `N` words of eight bytes each from byte `at` on, little endian. `None` if fewer than `M` words
/// of the run, which is one more, begin at the word that has byte `at`.
#[inline]
fn joined_words<const M: usize, const N: usize>(
    words: &[AtomicU64],
    at: usize,
) -> Option<[u64; N]> {
    const { assert!(M == N + 1) };
    let shift = (at % 8) as u32 * 8;
    let run: &[AtomicU64; M] = words.get(at / 8..)?.first_chunk()?;
    let run = run.each_ref().map(loaded);
    Some(std::array::from_fn(|i| joined(run[i], run[i + 1], shift)))
}

/// Sixteen bytes from byte `at` on, as two words, little endian. `None` if fewer than three words
/// of the run begin at the word that has byte `at`.
#[inline]
pub(crate) fn sixteen(words: &[AtomicU64], at: usize) -> Option<[u64; 2]> {
    joined_words::<3, 2>(words, at)
}

/// Thirty-two bytes, like `sixteen`, of five words.
#[inline]
fn thirty_two(words: &[AtomicU64], at: usize) -> Option<[u64; 4]> {
    joined_words::<5, 4>(words, at)
}

/// Appends `len` bytes from byte `at` to `out`.
#[inline]
pub(crate) fn copy_out(
    words: &[AtomicU64],
    at: usize,
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), Torn> {
    copy_out_after(&CopyPrefix::new(&[]), ShortBytes::NONE, words, at, len, out)
}

/// Bytes that are put before each of several copies, such as the common prefix of a leaf.
pub(crate) struct CopyPrefix<'f> {
    bytes: &'f [u8],
    /// The same as a word, if they are at most eight, which is mostly so.
    word: u64,
}

impl<'f> CopyPrefix<'f> {
    #[inline]
    pub(crate) fn new(bytes: &'f [u8]) -> Self {
        CopyPrefix {
            bytes,
            word: little(bytes),
        }
    }
}

/// At most eight bytes: the first `len` of `bytes`.
#[derive(Clone, Copy)]
pub(crate) struct ShortBytes {
    pub(crate) bytes: [u8; 8],
    pub(crate) len: usize,
}

impl ShortBytes {
    const NONE: ShortBytes = ShortBytes {
        bytes: [0; 8],
        len: 0,
    };
}

/// Appends to `out` the bytes of `front`, then `more`, then `len` bytes from byte `at`. Makes room
/// for all of them once.
#[inline]
pub(crate) fn copy_out_after(
    front: &CopyPrefix<'_>,
    more: ShortBytes,
    words: &[AtomicU64],
    at: usize,
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), Torn> {
    // Up to sixteen bytes lie in three words, and up to thirty-two in five. All of these are copied
    // however many bytes there are, since no branch should depend on that.
    if len <= 16 {
        if let Some(all) = sixteen(words, at) {
            let (to, begun) = begin_copy(front, more, len, out);
            // SAFETY:
            // 1. `begin_copy` has made room for at least sixteen bytes;
            // 2. all bytes up to the new length were written.
            unsafe {
                to.cast::<[u64; 2]>().write_unaligned(all.map(u64::to_le));
                out.set_len(begun + len);
            }
            return Ok(());
        }
    } else if len <= 32 {
        if let Some(all) = thirty_two(words, at) {
            let (to, begun) = begin_copy(front, more, len, out);
            // SAFETY:
            // 1. `begin_copy` has made room for `len + 16` bytes, which are more than thirty-two;
            // 2. all bytes up to the new length were written.
            unsafe {
                to.cast::<[u64; 4]>().write_unaligned(all.map(u64::to_le));
                out.set_len(begun + len);
            }
            return Ok(());
        }
    }
    let (i, shift) = (at / 8, (at % 8) as u32 * 8);
    let joined = |low, high| joined(low, high, shift).to_le();
    if at.saturating_add(len) > words.len() * 8 {
        return Err(Torn);
    }
    let (to, begun) = begin_copy(front, more, len, out);
    let (count, mut to) = (len.div_ceil(8), to);
    // Each word is joined with the next one. After the last one of the run there are zeros.
    let run = &words[i.min(words.len())..words.len().min(i + count + 1)];
    let (mut low, rest) = match run.split_first() {
        Some((first, rest)) => (loaded(first), rest),
        None => (0, run),
    };
    let mut push = |word: u64| {
        // SAFETY: this is called at most `count` times, and `begin_copy` has made room for
        // `len + 16` bytes, which are more than `8 * count`.
        unsafe {
            to.cast::<u64>().write_unaligned(word);
            to = to.add(8);
        }
    };
    for word in rest {
        let high = loaded(word);
        push(joined(low, high));
        low = high;
    }
    if rest.len() < count {
        push(joined(low, 0));
    }
    // SAFETY:
    // 1. there is room;
    // 2. all these bytes were written.
    unsafe { out.set_len(begun + len) };
    Ok(())
}

/// Appends to `out` the bytes of `front`, then `more`, then the first `len` of `last`, low ones
/// first, which are at most sixteen.
#[inline]
pub(crate) fn push_after(
    front: &CopyPrefix<'_>,
    more: ShortBytes,
    (last, len): (u128, usize),
    out: &mut Vec<u8>,
) {
    let len = len.min(16);
    let (to, begun) = begin_copy(front, more, len, out);
    // SAFETY:
    // 1. `begin_copy` has made room for at least sixteen bytes;
    // 2. all bytes up to the new length were written.
    unsafe {
        to.cast::<[u8; 16]>().write_unaligned(last.to_le_bytes());
        out.set_len(begun + len);
    }
}

/// Makes room in `out` for the bytes of `front`, for `more`, and for `len` bytes and sixteen
/// others. Writes the first two of these. Returns a pointer to where the others go, and their
/// offset.
#[inline]
fn begin_copy(
    front: &CopyPrefix<'_>,
    more: ShortBytes,
    len: usize,
    out: &mut Vec<u8>,
) -> (*mut u8, usize) {
    let first = front.bytes;
    let (from, count) = (out.len(), more.len.min(8));
    // Whole words are written: `more`, and the last of the copied ones, beyond the end.
    out.reserve(first.len() + len + 24);
    // SAFETY: all places that are written lie after the vector's contents, in the capacity that was
    // reserved: `first` at the front, or eight bytes; and eight bytes after `first`. From the
    // result, which is at most eight bytes further, there are `len + 16` bytes.
    let to = unsafe {
        let to = out.as_mut_ptr().add(from);
        // What follows `first` overwrites the rest of the word.
        if first.len() <= 8 {
            to.cast::<u64>().write_unaligned(front.word.to_le());
        } else {
            std::ptr::copy_nonoverlapping(first.as_ptr(), to, first.len());
        }
        let to = to.add(first.len());
        to.cast::<[u8; 8]>().write_unaligned(more.bytes);
        to.add(count)
    };
    (to, from + first.len() + count)
}

/// Writes words to the front of `out`, as many as it has room for.
#[inline]
fn put_words<const N: usize>(all: &[u64; N], out: &mut [u8]) {
    for (to, word) in out.chunks_exact_mut(8).zip(all) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}

/// Copies `len` bytes from byte `at` on to the front of `out`. The bytes after them become
/// arbitrary.
#[inline]
pub(crate) fn copy_short<const N: usize>(
    words: &[AtomicU64],
    at: usize,
    len: usize,
    out: &mut [u8; N],
) -> Result<(), Torn> {
    // As in `copy_out_after`: no branch depends on how many there are of sixteen, or of thirty-two.
    if len <= N.min(16) {
        if let Some(all) = sixteen(words, at) {
            put_words(&all, out);
            return Ok(());
        }
    } else if len <= N.min(32) {
        if let Some(all) = thirty_two(words, at) {
            put_words(&all, out);
            return Ok(());
        }
    }
    // An offset outside the run comes from torn bytes (see `Torn`).
    if at.saturating_add(len) > words.len() * 8 || len > N {
        return Err(Torn);
    }
    // Byte `at` is in the middle of a word. So each eight bytes are joined of two neighbouring
    // words. A word beyond the end counts as zeros.
    let (first, shift) = (at / 8, (at % 8) as u32 * 8);
    let words = words.get(first..).ok_or(Torn)?;
    let joined = |low, high| joined(low, high, shift).to_le_bytes();
    let mut words = words.iter().map(loaded).chain(std::iter::repeat(0));
    let mut low = words.next().unwrap_or(0);
    let places = out.chunks_exact_mut(8).take(len.div_ceil(8));
    for (to, high) in places.zip(words) {
        to.copy_from_slice(&joined(low, high));
        low = high;
    }
    Ok(())
}

/// Compares the `len` bytes from byte `at` on with `other`.
#[inline]
pub(crate) fn compare(
    words: &[AtomicU64],
    at: usize,
    len: usize,
    other: &[u8],
) -> Result<Ordering, Torn> {
    // As in `copy_short`: only torn bytes name such an offset.
    if at.saturating_add(len) > words.len() * 8 {
        return Err(Torn);
    }
    // Compare the bytes that both have. The lengths decide if these are equal.
    let common = &other[..len.min(other.len())];
    let (mut i, shift) = (at / 8, (at % 8) as u32 * 8);
    let load = |i: usize| words.get(i).map_or(0, loaded);
    let mut low = load(i);
    // Each call returns the next eight bytes, from two words that are shifted into one.
    let mut next = || {
        i += 1;
        let high = load(i);
        let ours = joined(low, high, shift);
        low = high;
        ours
    };
    let mut whole = common.chunks_exact(8);
    for theirs in whole.by_ref() {
        let (ours, theirs) = (next(), first(theirs));
        if ours != theirs {
            // Swapped, the first byte in memory is the most significant one: words then compare as
            // bytes do.
            return Ok(ours.swap_bytes().cmp(&theirs.swap_bytes()));
        }
    }
    let rest = whole.remainder();
    if !rest.is_empty() {
        let unused = (8 - rest.len()) * 8;
        let (ours, theirs) = (next() << unused, little(rest) << unused);
        if ours != theirs {
            return Ok(ours.swap_bytes().cmp(&theirs.swap_bytes()));
        }
    }
    Ok(len.cmp(&other.len()))
}

/// Writes the low `len` bytes of `bytes`, at most eight, from byte `at` on, as `write_short`. Two
/// words of the run are enough for it.
#[inline(always)]
pub(crate) fn write_word(words: &[AtomicU64], at: usize, bytes: u64, len: usize) -> bool {
    let Some(two) = words.get(at / 8..).and_then(<[_]>::first_chunk::<2>) else {
        return false;
    };
    debug_assert!(len <= 8);
    let shift = (at % 8) as u32 * 8;
    // One word as two, from the first byte's place on. In two steps: a shift by 64 is none.
    let apart = |word: u64| [word << shift, word >> 1 >> (63 - shift)];
    // The lowest bytes of a word, as many as there are.
    let mask = u64::MAX.checked_shr(64 - 8 * len as u32).unwrap_or(0);
    for ((word, part), mask) in two.iter().zip(apart(bytes)).zip(apart(mask)) {
        // Ordering: Relaxed, both, see the module's head.
        let others = u64::from_le(word.load(Relaxed)) & !mask;
        word.store((others | part).to_le(), Relaxed);
    }
    true
}

/// Writes the low `len` bytes of `bytes`, at most sixteen, from byte `at` on. The other bytes of
/// `bytes` are zeros. Returns `false`, and writes nothing, if fewer than three words of the run
/// begin at the word that has byte `at`.
///
/// No branch depends on `at` or on `len`. As with a [`Writer`], the caller holds the leaf's lock,
/// or owns the run alone.
#[inline]
pub(crate) fn write_short(words: &[AtomicU64], at: usize, bytes: u128, len: usize) -> bool {
    let Some(three) = words.get(at / 8..).and_then(<[_]>::first_chunk::<3>) else {
        return false;
    };
    debug_assert!(len <= 16);
    let shift = (at % 8) as u32 * 8;
    // Two words as three, from the first byte's place on. In two steps: a shift by 64 is none.
    let apart = |low: u64, high: u64| {
        let carried = |word: u64| word >> 1 >> (63 - shift);
        [low << shift, high << shift | carried(low), carried(high)]
    };
    // The lowest bytes of a word, as many as there are of `len`.
    let mask = |bytes: usize| {
        u64::MAX
            .checked_shr(64 - 8 * bytes.min(8) as u32)
            .unwrap_or(0)
    };
    let masks = apart(mask(len), mask(len.saturating_sub(8)));
    let (low, high) = (bytes as u64, (bytes >> 64) as u64);
    for ((word, part), mask) in three.iter().zip(apart(low, high)).zip(masks) {
        // Ordering: Relaxed, both, see the module's head.
        let others = u64::from_le(word.load(Relaxed)) & !mask;
        word.store((others | part).to_le(), Relaxed);
    }
    true
}

/// Writes bytes one after the other, a word at a time. Ends with `finish`, before which the last
/// word is not written.
///
/// The caller holds the leaf's lock, or owns the run alone.
pub(crate) struct Writer<'w> {
    words: &'w [AtomicU64],
    /// The number of the word that is being filled.
    i: usize,
    /// Its content so far.
    word: u64,
    /// How many of its low bits are filled.
    filled: u32,
}

/// A mask of this number of low bits, fewer than 64.
#[inline]
fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl<'w> Writer<'w> {
    /// From byte `at` on.
    #[inline]
    pub(crate) fn new(words: &'w [AtomicU64], at: usize) -> Self {
        // The first word keeps the bytes that lie before the place.
        let (i, filled) = (at / 8, (at % 8) as u32 * 8);
        // Ordering: Relaxed, only the lock's holder writes.
        let before = words.get(i).map_or(0, |w| u64::from_le(w.load(Relaxed)));
        Writer {
            words,
            i,
            word: before & low(filled),
            filled,
        }
    }

    /// Where the next byte goes.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.i * 8 + self.filled as usize / 8
    }

    /// Writes the low `bytes` bytes of `low`, at most eight. The other bytes of `low` are zeros.
    #[inline]
    pub(crate) fn push(&mut self, low: u64, bytes: usize) {
        // `filled` bits of the word at hand are taken. New bytes go above them.
        self.word |= low << self.filled;
        let bits = self.filled + bytes as u32 * 8;
        if bits < 64 {
            self.filled = bits;
            return;
        }
        // Ordering: Relaxed, see the module's head.
        self.words[self.i].store(self.word.to_le(), Relaxed);
        // What didn't fit begins the next word.
        self.i += 1;
        self.word = match self.filled {
            0 => 0,
            filled => low >> (64 - filled),
        };
        self.filled = bits - 64;
    }

    /// Writes some bytes.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        // Words are pushed whole, since the place may be in the middle of one.
        while rest.len() > 8 {
            let (eight, after) = rest.split_at(8);
            self.push(little(eight), 8);
            rest = after;
        }
        self.push(little(rest), rest.len());
    }

    /// Writes the last word, and keeps the bytes of the run after the written ones.
    #[inline]
    pub(crate) fn finish(self) {
        if self.filled > 0 {
            let word = &self.words[self.i];
            // Ordering: Relaxed, both, see the module's head.
            let after = u64::from_le(word.load(Relaxed)) & !low(self.filled);
            word.store((self.word | after).to_le(), Relaxed);
        }
    }
}

/// Up to eight bytes, low ones first; zeros above.
#[inline(always)]
pub(crate) fn little(bytes: &[u8]) -> u64 {
    let n = bytes.len();
    match n {
        // Two loads that may overlap, instead of a loop over the bytes.
        4..=8 => {
            let four = |at: usize| {
                let four: [u8; 4] = bytes[at..at + 4].try_into().unwrap_or_default();
                u64::from(u32::from_le_bytes(four))
            };
            four(0) | four(n - 4) << (8 * (n - 4))
        }
        1..=3 => {
            // Each byte at least once.
            let one = |at: usize| u64::from(bytes[at]) << (8 * at);
            one(0) | one(n / 2) | one(n - 1)
        }
        _ => 0,
    }
}

/// The first eight bytes, or all if they are fewer, low ones first; zeros above.
#[inline]
pub(crate) fn first(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => little(bytes),
    }
}

/// The last eight bytes, low ones first; 0 if there are fewer.
#[inline]
pub(crate) fn last(bytes: &[u8]) -> u64 {
    bytes
        .last_chunk()
        .map_or(0, |eight| u64::from_le_bytes(*eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(words: &[AtomicU64], at: usize, bytes: &[u8]) {
        let mut writer = Writer::new(words, at);
        let (some, rest) = bytes.split_at(bytes.len() / 3);
        writer.bytes(some);
        writer.bytes(rest);
        writer.finish();
    }

    fn run(bytes: &[u8]) -> Vec<AtomicU64> {
        let words: Vec<AtomicU64> = (0..bytes.len().div_ceil(8))
            .map(|_| AtomicU64::new(0))
            .collect();
        write(&words, 0, bytes);
        words
    }

    #[test]
    fn bytes_come_back_from_every_offset() {
        let bytes: Vec<u8> = (0..64).map(|i| i * 3 + 1).collect();
        let words = run(&bytes);
        for at in 0..64 {
            for len in 0..64 - at {
                let mut out = vec![9];
                copy_out(&words, at, len, &mut out).unwrap();
                assert_eq!(&out[1..], &bytes[at..at + len]);
                // The same after other bytes, into a vector that has no room.
                for count in 0..=8 {
                    let first = &[8, 7, 6, 5, 4, 3, 2, 1, 0, 9][..(count * 3) % 11];
                    let more = |len| ShortBytes {
                        bytes: [1, 2, 3, 4, 5, 6, 7, 8],
                        len,
                    };
                    let (front, mut out) = (CopyPrefix::new(first), Vec::new());
                    copy_out_after(&front, more(count), &words, at, len, &mut out).unwrap();
                    let expected =
                        [first, &more(count).bytes[..count], &bytes[at..at + len]].concat();
                    assert_eq!(out, expected);
                }
            }
        }
        assert!(copy_out(&words, 60, 5, &mut Vec::new()).is_err());
    }

    #[test]
    fn short_copies_are_those_of_all_lengths() {
        let bytes: Vec<u8> = (0..64).map(|i| i * 3 + 1).collect();
        let words = run(&bytes);
        for at in 0..64 {
            for len in 0..=64 - at {
                let mut out = [9; 40];
                let copied = copy_short(&words, at, len, &mut out);
                assert_eq!(copied.is_ok(), len <= out.len(), "{at} {len}");
                if copied.is_ok() {
                    assert_eq!(out[..len], bytes[at..at + len], "{at} {len}");
                }
            }
        }
        assert!(copy_short(&words, 60, 5, &mut [0; 8]).is_err());
    }

    #[test]
    fn a_short_write_is_that_of_the_writer() {
        for at in 0..=48 {
            for len in 0..=16usize {
                let bytes: Vec<u8> = (1..=len as u8).collect();
                let (low, high) = bytes.split_at(len.min(8));
                let words = run(&[7; 48]);
                let is_written = write_short(
                    &words,
                    at,
                    u128::from(little(low)) | u128::from(little(high)) << 64,
                    len,
                );
                assert_eq!(is_written, at < 32, "{at}");
                let expect = run(&[7; 48]);
                if is_written {
                    write(&expect, at, &bytes);
                }
                for (word, expect) in words.iter().zip(&expect) {
                    assert_eq!(word.load(Relaxed), expect.load(Relaxed), "{at} {len}");
                }
                // Two words are enough for up to eight bytes.
                let (words, expect) = (run(&[7; 48]), run(&[7; 48]));
                if len <= 8 && write_word(&words, at, little(&bytes), len) {
                    write(&expect, at, &bytes);
                } else {
                    assert!(len > 8 || at >= 40, "{at} {len}");
                }
                for (word, expect) in words.iter().zip(&expect) {
                    assert_eq!(word.load(Relaxed), expect.load(Relaxed), "{at} {len}");
                }
            }
        }
    }

    #[test]
    fn a_write_changes_its_bytes_alone() {
        for at in 0..24 {
            for len in 0..24 {
                let words = run(&[7; 48]);
                write(&words, at, &vec![1; len]);
                let mut out = Vec::new();
                copy_out(&words, 0, 48, &mut out).unwrap();
                let expect: Vec<u8> = (0..48)
                    .map(|i| if i >= at && i < at + len { 1 } else { 7 })
                    .collect();
                assert_eq!(out, expect);
            }
        }
    }

    #[test]
    fn compare_is_that_of_slices() {
        let samples: Vec<Vec<u8>> = vec![
            vec![],
            vec![0],
            vec![0, 0],
            vec![1; 7],
            vec![1; 8],
            vec![1; 9],
            [vec![1; 8], vec![2]].concat(),
            [vec![1; 3], vec![255], vec![1; 9]].concat(),
            vec![255; 17],
            vec![3; 48],
            [vec![3; 47], vec![4]].concat(),
        ];
        for a in &samples {
            for b in &samples {
                // The bytes may also be the last ones of the run.
                for (at, after) in (0..9).flat_map(|at| [(at, 0), (at, 8)]) {
                    let words = run(&[vec![5; at], a.clone(), vec![9; after]].concat());
                    assert_eq!(
                        compare(&words, at, a.len(), b).unwrap(),
                        a.cmp(b),
                        "{a:?} {b:?}"
                    );
                }
            }
        }
    }
}

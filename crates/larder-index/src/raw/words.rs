//! Bytes in a run of atomic words.
//!
//! Byte `i` of the run is byte `i % 8` of word `i / 8` in memory order, so that whoever holds the leaf's lock may also see the run as a
//! plain slice. All loads and stores here are `Relaxed`: what orders them is the leaf's version (see the head of `raw`).

use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::cmp::Ordering;

/// A read met something that can't be: a writer was at work. Read again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Torn;

/// The word at `i`.
#[inline]
pub(crate) fn word(words: &[AtomicU64], i: usize) -> Result<u64, Torn> {
    // Ordering: Relaxed, see the module's head.
    words.get(i).map(|w| w.load(Relaxed)).ok_or(Torn)
}

/// Eight bytes from byte `at`, little endian; bytes past the end of the run read as zero.
#[inline]
pub(crate) fn load(words: &[AtomicU64], at: usize) -> Result<u64, Torn> {
    let (i, shift) = (at / 8, (at % 8) * 8);
    let low = u64::from_le(word(words, i)?);
    if shift == 0 {
        return Ok(low);
    }
    let high = u64::from_le(word(words, i + 1).unwrap_or(0));
    Ok(low >> shift | high << (64 - shift))
}

/// Appends `len` bytes from byte `at` to `out`.
#[inline]
pub(crate) fn copy_out(
    words: &[AtomicU64],
    at: usize,
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), Torn> {
    if at.saturating_add(len) > words.len() * 8 {
        return Err(Torn);
    }
    let from = out.len();
    out.resize(from + len, 0);
    let mut at = at;
    let mut chunks = out[from..].chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&load(words, at)?.to_le_bytes());
        at += 8;
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        let bytes = load(words, at)?.to_le_bytes();
        rest.copy_from_slice(&bytes[..rest.len()]);
    }
    Ok(())
}

/// How the `len` bytes from byte `at` compare to `other`.
#[inline]
pub(crate) fn compare(
    words: &[AtomicU64],
    at: usize,
    len: usize,
    other: &[u8],
) -> Result<Ordering, Torn> {
    if at.saturating_add(len) > words.len() * 8 {
        return Err(Torn);
    }
    let common = len.min(other.len());
    let mut done = 0;
    while done < common {
        let take = (common - done).min(8);
        let ours = load(words, at + done)?.swap_bytes();
        let mut theirs = [0; 8];
        theirs[..take].copy_from_slice(&other[done..done + take]);
        let unused = (8 - take) * 8;
        match (ours >> unused << unused).cmp(&u64::from_be_bytes(theirs)) {
            Ordering::Equal => done += take,
            unequal => return Ok(unequal),
        }
    }
    Ok(len.cmp(&other.len()))
}

/// Writes `bytes` from byte `at`. The caller holds the leaf's lock (or owns the run alone), and the bytes lie within the run.
pub(crate) fn write(words: &[AtomicU64], at: usize, bytes: &[u8]) {
    let mut at = at;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (i, from) = (at / 8, at % 8);
        let take = rest.len().min(8 - from);
        let now = if take == 8 {
            0
        } else {
            // Ordering: Relaxed, only the lock's holder writes.
            words[i].load(Relaxed)
        };
        let mut word = now.to_ne_bytes();
        word[from..from + take].copy_from_slice(&rest[..take]);
        // Ordering: Relaxed, see the module's head.
        words[i].store(u64::from_ne_bytes(word), Relaxed);
        rest = &rest[take..];
        at += take;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            }
        }
        assert!(copy_out(&words, 60, 5, &mut Vec::new()).is_err());
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
        ];
        for a in &samples {
            for b in &samples {
                for at in 0..9 {
                    let words = run(&[vec![5; at], a.clone(), vec![9; 8]].concat());
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

//! Packed values: the values of compressed tables.
//!
//! ```text
//!  value    head | n | n bytes: the run | plain length of the rest | the rest, as one block
//! ```
//!
//! * The *run* is the exact key, if there is one, and up to [`MOST`] of the first elements, as long
//!   as they are integers of 64 bits, floats, atoms or `[]`. So counters and states at the
//!   beginning of a row are read and changed in place. If the exact key has more than
//!   [`LONGEST_KEY`] bytes, it is part of the rest, and the run is empty.
//! * `n`, the length of the run, is one byte.
//! * What is packed, and where the run ends, depends on the kinds of the elements in the run, not
//!   on their values. So an element of the run may be replaced by another one of these kinds, and
//!   the value is the same as that of the changed row.

use super::{groups, lz, out_of_line_len, COMPRESSED, EXACT_KEY, FLAG_BITS, HAS_HANDLES};
use crate::skip::{end_of, fixed_len};
use crate::varint;

/// The most elements of a run.
const MOST: usize = 3;
/// The longest exact key in a run.
const LONGEST_KEY: usize = 32;
/// A shorter rest isn't packed.
const SHORTEST: usize = 40;

/// Compresses a value without handles. `None` if that doesn't make it smaller.
pub fn compressed(value: &[u8]) -> Option<Vec<u8>> {
    debug_assert_eq!(value[0] & (COMPRESSED | HAS_HANDLES), 0);
    let before = value.len();
    let without_lengths = groups::without(value);
    let value = without_lengths.as_deref().unwrap_or(value);
    let header = varint::read(value, 0).1;
    let plain = &value[header..];
    // The run isn't packed. The rest is packed if it is long enough.
    let (run, rest) = plain.split_at(run_of(plain, value[0]));
    if rest.len() < SHORTEST {
        return None;
    }
    let mut whole = Vec::with_capacity(value.len());
    whole.extend_from_slice(&value[..header]);
    // The header stays the same except for the flag. It is followed by the length of the run, and
    // the run.
    whole[0] |= COMPRESSED;
    whole.push(run.len() as u8);
    whole.extend_from_slice(run);
    varint::push(&mut whole, rest.len() as u64);
    lz::pack(rest, &mut whole);
    (whole.len() < before).then_some(whole)
}

/// The length of the run in `plain`, the bytes after the header.
fn run_of(plain: &[u8], flags: u8) -> usize {
    let mut end = 0;
    if flags & EXACT_KEY != 0 {
        end = end_of(plain, 0);
        // Longer keys are packed. So the length of the run always fits in one byte.
        if end > LONGEST_KEY {
            return 0;
        }
    }
    // Elements follow whose tags determine their lengths. They are skipped without reading them.
    for _ in 0..MOST {
        match plain.get(end).map_or(0, |&tag| fixed_len(tag)) {
            0 => break,
            len => end += len,
        }
    }
    end
}

/// The run of a packed value.
#[inline]
pub(super) fn run(value: &[u8]) -> &[u8] {
    let (start, end) = run_bounds(value);
    &value[start..end]
}

/// The beginning and the end of the run of a packed value.
#[inline]
fn run_bounds(value: &[u8]) -> (usize, usize) {
    let at = varint::read(value, 0).1;
    (at + 1, at + 1 + usize::from(value[at]))
}

/// The length of a value, and of a packed one the length that it has when it is unpacked, which may
/// be thousands of times as much. (Without the lengths of its groups, and without elements out of
/// line.)
#[inline]
pub fn in_line_len(value: &[u8]) -> usize {
    match value.first() {
        Some(flags) if flags & COMPRESSED != 0 => unpacked_len(value),
        _ => value.len(),
    }
}

/// As `in_line_len`, with the elements out of line. Constant if the value has no handles, otherwise
/// linear in the number of elements.
#[inline]
pub fn plain_len(value: &[u8]) -> usize {
    in_line_len(value) + out_of_line_len(value)
}

#[inline(never)]
fn unpacked_len(value: &[u8]) -> usize {
    // The header and the run stay as they are, but for the length of the run, which takes a byte.
    let end = run_bounds(value).1;
    end - 1 + varint::read(value, end).0 as usize
}

/// Appends the unpacked bytes that followed the header of a value.
pub(super) fn unpack(value: &[u8], out: &mut Vec<u8>) {
    let (start, end) = run_bounds(value);
    let (length, at) = varint::read(value, end);
    out.reserve(end - start + length as usize);
    out.extend_from_slice(&value[start..end]);
    lz::unpack(&value[at..], length as usize, out);
}

/// Whether the run of a value of a compressed table contains all elements up to a position, except
/// the key. The run of a value that isn't packed is the one that it would have.
#[inline(never)]
pub(super) fn has_in_run(value: &[u8], keypos: usize, position: usize) -> bool {
    // The key isn't stored among the elements.
    let mut others = position - usize::from(position >= keypos);
    if others > MOST {
        return false;
    }
    let (header, mut at) = varint::read(value, 0);
    let arity = (header >> FLAG_BITS) as usize;
    let mut end = value.len();
    if value[0] & COMPRESSED != 0 {
        (at, end) = run_bounds(value);
    }
    if position > arity || at == end {
        return false;
    }
    if value[0] & EXACT_KEY != 0 {
        let start = at;
        at = end_of(value, at);
        if at - start > LONGEST_KEY {
            return false;
        }
    }
    if value[0] & COMPRESSED == 0 {
        at += groups::size(arity);
    }
    // The run has no positions. Skip as many of its elements as are in front of the position.
    while others > 0 && at < end {
        match fixed_len(value[at]) {
            0 => return false,
            len => at += len,
        }
        others -= 1;
    }
    others == 0
}

/// Updates the length of the run of a packed value that was changed in it. `before` is the former
/// length of the value. Returns whether the run has only the kinds of elements that a run may have.
pub(super) fn close_run(value: &mut [u8], before: usize) -> bool {
    let (mut at, end) = run_bounds(value);
    // Only the run has changed. So the length of the run has changed by as much as the length of
    // the value.
    let Some(end) = (end + value.len()).checked_sub(before) else {
        return false;
    };
    let Ok(len) = u8::try_from(end - at) else {
        return false;
    };
    value[at - 1] = len;
    // Check the elements again: the new ones may be of kinds that are packed.
    if value[0] & EXACT_KEY != 0 {
        at = end_of(value, at);
    }
    while at < end {
        match fixed_len(value[at]) {
            0 => return false,
            len => at += len,
        }
    }
    true
}

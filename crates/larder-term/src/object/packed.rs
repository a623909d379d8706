//! Packed values: those of compressed tables.
//!
//! ```text
//!  value    head | n | n bytes: the run | plain length of the rest | the rest, as one block
//! ```
//!
//! * The *run* is the exact key, if there is one, and the first elements behind it, up to
//!   [`MOST`], as long as they are integers of 64 bits, floats, atoms or `[]`. So counters and
//!   states at a row's front are read and changed where they lie. An exact key of more than
//!   [`LONGEST_KEY`] bytes begins the rest, and then the run is empty.
//! * `n` is one byte.
//! * What is packed and where the run ends depends on which elements the run has, not on their
//!   values, so an element of it may take another's place (if it is of these kinds, too), and the
//!   value is the one that the changed row has.

use super::{lz, COMPRESSED, EXACT_KEY, FLAG_BITS, HAS_HANDLES};
use crate::skip::{end_of, fixed};
use crate::varint;

/// The most elements of a run.
const MOST: usize = 3;
/// The longest exact key in a run.
const LONGEST_KEY: usize = 32;
/// No rest shorter than this is worth packing.
const SHORTEST: usize = 40;

/// A value without handles, compressed; None if that does not make it smaller.
pub fn compressed(value: &[u8]) -> Option<Vec<u8>> {
    debug_assert_eq!(value[0] & (COMPRESSED | HAS_HANDLES), 0);
    let header = varint::read(value, 0).1;
    let plain = &value[header..];
    // The run stays as it is; the rest is packed, if there is enough of it.
    let (run, rest) = plain.split_at(run_of(plain, value[0]));
    if rest.len() < SHORTEST {
        return None;
    }
    let mut whole = Vec::with_capacity(value.len());
    whole.extend_from_slice(&value[..header]);
    // The header as before, but for the flag; then the run with its length in front.
    whole[0] |= COMPRESSED;
    whole.push(run.len() as u8);
    whole.extend_from_slice(run);
    varint::push(&mut whole, rest.len() as u64);
    lz::pack(rest, &mut whole);
    (whole.len() < value.len()).then_some(whole)
}

/// How many bytes of what follows a head the run is.
fn run_of(plain: &[u8], flags: u8) -> usize {
    let mut end = 0;
    if flags & EXACT_KEY != 0 {
        end = end_of(plain, 0);
        // A longer key is worth packing, and the run's length stays within one byte.
        if end > LONGEST_KEY {
            return 0;
        }
    }
    for _ in 0..MOST {
        match plain.get(end).map_or(0, |&tag| fixed(tag)) {
            0 => break,
            len => end += len,
        }
    }
    end
}

/// Where the run of a packed value begins and ends.
#[inline]
fn run(value: &[u8]) -> (usize, usize) {
    let at = varint::read(value, 0).1;
    (at + 1, at + 1 + usize::from(value[at]))
}

/// Appends what followed the head of a value before it was packed.
pub(super) fn unpack(value: &[u8], out: &mut Vec<u8>) {
    let (start, end) = run(value);
    let (length, at) = varint::read(value, end);
    out.reserve(end - start + length as usize);
    out.extend_from_slice(&value[start..end]);
    lz::unpack(&value[at..], length as usize, out);
}

/// Whether the run of a packed value has all elements up to a position, but for the key.
pub(super) fn has_in_run(value: &[u8], keypos: usize, position: usize) -> bool {
    let (mut at, end) = run(value);
    let arity = (varint::read(value, 0).0 >> FLAG_BITS) as usize;
    if position > arity || at == end {
        return false;
    }
    if value[0] & EXACT_KEY != 0 {
        at = end_of(value, at);
    }
    // The key has no bytes among the elements.
    let mut others = position - usize::from(position >= keypos);
    while others > 0 && at < end {
        at += fixed(value[at]);
        others -= 1;
    }
    others == 0
}

/// Says how long the run of a packed value has become, by so many bytes more than in `before`.
/// Whether it is a run still.
pub(super) fn close_run(value: &mut [u8], before: usize) -> bool {
    let (mut at, end) = run(value);
    // Only the run has changed, so the value's length says how much the run has.
    let Some(end) = (end + value.len()).checked_sub(before) else {
        return false;
    };
    let Ok(len) = u8::try_from(end - at) else {
        return false;
    };
    value[at - 1] = len;
    if value[0] & EXACT_KEY != 0 {
        at = end_of(value, at);
    }
    while at < end {
        match fixed(value[at]) {
            0 => return false,
            len => at += len,
        }
    }
    true
}

//! A hash of objects that doesn't depend on their encoding.

use super::{close, groups, packed, ElementsFrom, COMPRESSED, EXACT_KEY, FLAG_BITS, HAS_HANDLES};
use crate::{
    contents::has_tree_map,
    encoder::{Encoder, Mode},
    hash::Seed,
    host::legacy_zero,
    identity::without_negative_zero,
    skip::end_of,
    tags::FLOAT,
    varint,
};
use std::sync::OnceLock;

/// The hash of all elements of a value except the key. It is the same for identical objects, even
/// if one of them is compressed, has binaries outside, or has a −0.0 that the host takes for 0.0.
/// The seed is random in each process.
///
/// # Safety
/// `value` is a value of this module's making, made in this process; somebody holds the counts of
/// its handles during the call.
///
/// # Complexity
/// Linear in the value.
pub unsafe fn hash(value: &[u8]) -> u64 {
    static SEED: OnceLock<Seed> = OnceLock::new();
    let seed = SEED.get_or_init(Seed::random);
    let (header, at) = varint::read(value, 0);
    let (arity, flags) = ((header >> FLAG_BITS) as usize, header as u8);
    let mut unpacked = Vec::new();
    let mut others = &value[at..];
    if flags & COMPRESSED != 0 {
        packed::unpack(value, &mut unpacked);
        // The unpacked bytes begin with the exact key, if there is one.
        others = &unpacked;
    }
    if flags & EXACT_KEY != 0 {
        others = &others[end_of(others, 0)..];
    }
    if flags & COMPRESSED == 0 {
        others = groups::split(arity, others).1;
    }
    // The fast path: the bytes are canonical, so hash them. That is so if nothing is outside, and
    // nothing has several encodings.
    let plain = flags & HAS_HANDLES == 0 && !has_tree_map(others);
    if plain && !(legacy_zero() && may_hold_zero(others)) {
        return seed.hash(others);
    }
    // Otherwise encode each element in inline mode, and hash the result.
    let mut canonical = Vec::with_capacity(others.len());
    let mut start = 0;
    for term in ElementsFrom::stored(others).take(arity - 1) {
        close(&mut canonical, start);
        start = canonical.len();
        // A host for which both zeros are one number sends either of them for the same object.
        if legacy_zero() {
            canonical.extend_from_slice(&without_negative_zero(term));
        } else {
            Encoder::new(&mut canonical, Mode::Inline).term(term);
        }
    }
    seed.hash(&canonical)
}

/// Whether the bytes of a −0.0 occur anywhere.
fn may_hold_zero(bytes: &[u8]) -> bool {
    const NEGATIVE_ZERO: [u8; 9] = [FLOAT, 0, 0, 0, 0, 0, 0, 0, 0x80];
    bytes.windows(9).any(|run| run == NEGATIVE_ZERO)
}

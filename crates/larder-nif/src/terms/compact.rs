//! Whether the term that a caller asked with may be the key of the tuple that it gets back.

use super::binaries;
use crate::layout::*;
use crate::sys::*;

/// Whether the term holds on to nothing else and equals no other: an immediate, a large integer, a
/// float with a fraction, a reference that keeps nothing alive, a binary that is no small part of
/// another, or a short tuple of immediates.
#[inline]
pub fn is_compact(word: Word) -> bool {
    is_immediate(word) || (is_boxed(word) && is_compact_boxed(word))
}

fn is_compact_boxed(word: Word) -> bool {
    match kind(word) {
        Kind::Tuple => tuple(word).is_some_and(|elements| {
            elements.len() <= 8 && elements.iter().all(|&e| is_immediate(e))
        }),
        Kind::HeapBinary | Kind::Positive | Kind::Negative => true,
        // Equal integers, and zeros of either sign, are other terms.
        Kind::Float => f64::from_bits(float_bits(word)).fract() != 0.0,
        Kind::SharedBinary | Kind::PartOfBinary => binaries::is_most_of_its_binary(word),
        Kind::Reference => reference(word).is_some(),
        _ => false,
    }
}

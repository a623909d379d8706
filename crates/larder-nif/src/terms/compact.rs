//! Whether the key that a caller has passed to a lookup may become the key of the result.

use super::binaries;
use crate::layout::*;
use crate::sys::*;

/// Whether the term keeps nothing else alive, and is identical to every term that it equals. Such a
/// term is an immediate, a large integer, a float with a fraction, a reference that keeps nothing
/// alive, a binary that isn't a small part of another one, or a short tuple of immediates.
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
        // A float without a fraction may be equal to an integer, or be a zero of the other sign.
        Kind::Float => f64::from_bits(float_bits(word)).fract() != 0.0,
        Kind::SharedBinary | Kind::PartOfBinary | Kind::RangeOfBinary => {
            binaries::is_most_of_its_binary(word)
        }
        Kind::Reference => reference(word).is_some(),
        _ => false,
    }
}

//! Floats and large integers.
//!
//! ```text
//!  float      header, bits
//!  integer    arity << 6 | sign, digits of 64 bits, low ones first
//! ```

use super::kinds::*;
use super::words::*;
use crate::sys::external::from_external_format;
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The header of a float; 0 if it isn't known.
static FLOAT: AtomicUsize = AtomicUsize::new(0);

/// The header of a float, which is followed by its bits. `None` if it isn't known.
#[inline]
pub fn float_header() -> Option<Word> {
    // Ordering: Relaxed, as in `kind`.
    Some(FLOAT.load(Ordering::Relaxed)).filter(|&header| header != 0)
}

/// The bits of a float.
#[inline]
pub fn float_bits(word: Word) -> u64 {
    debug_assert_eq!(kind(word), Kind::Float);
    // SAFETY: after the header lie the bits, as `prove_floats` has verified.
    unsafe { words(word, 1)[0] as u64 }
}

/// The digits of a large integer. They have 64 bits each, and the lowest is first.
#[inline]
pub fn digits<'a>(word: Word) -> &'a [Word] {
    debug_assert!(matches!(kind(word), Kind::Positive | Kind::Negative));
    // SAFETY: as many digits lie after the header as it says, as `prove_integers` has verified.
    unsafe { words(word, arity(word)) }
}

static POSITIVE: AtomicUsize = AtomicUsize::new(0);
static NEGATIVE: AtomicUsize = AtomicUsize::new(0);

/// The header of a large integer of this number of digits. `None` if it isn't known.
#[inline]
pub fn integer_header(negative: bool, digits: usize) -> Option<Word> {
    let sign = if negative { &NEGATIVE } else { &POSITIVE };
    // Ordering: Relaxed, as in `kind`.
    let sign = sign.load(Ordering::Relaxed);
    (sign != 0).then_some(digits << 6 | sign)
}

/// Verifies the layout of floats.
pub fn prove_floats(env: *mut Env) {
    // SAFETY: `env` is the environment of the running load callback.
    let float = unsafe { enif_make_double(env, 0.5) };
    // SAFETY: a float that was just made is a boxed term, and takes two words at least on any
    // machine of 64 bits.
    let (header, bits) = unsafe { (*pointer(float), *pointer(float).add(1)) };
    if bits as u64 == 0.5f64.to_bits() {
        // Ordering: Relaxed, as in `kind`.
        FLOAT.store(header, Ordering::Relaxed);
    }
}

pub fn prove_integers(env: *mut Env) {
    let samples: [&[u64]; 4] = [&[1 << 60], &[5, 1], &[u64::MAX, 7, 9], &[3; 31]];
    let make = |negative: bool, digits: &[u64]| {
        let mut etf = vec![131, 110, 8 * digits.len() as u8, u8::from(negative)];
        digits
            .iter()
            .for_each(|digit| etf.extend_from_slice(&digit.to_le_bytes()));
        from_external_format(env, &etf)
    };
    // For each sign, test integers of one, two, three and 31 digits.
    for (negative, sign) in [(false, &POSITIVE), (true, &NEGATIVE)] {
        let mut heads = Vec::new();
        for digits in samples {
            let Some(word) = make(negative, digits).filter(|&word| is_boxed(word)) else {
                return;
            };
            // SAFETY: a large integer has as many words as its digits take, in any layout.
            let (header, words) = unsafe { (*pointer(word), words(word, digits.len())) };
            // The header has the number of digits, which follow it, the lowest first.
            if header >> 6 != digits.len()
                || !words
                    .iter()
                    .eq(digits.iter().map(|&d| d as Word).collect::<Vec<_>>().iter())
            {
                return;
            }
            heads.push((word, header & HEADER));
        }
        // The rest of the header is the sign, for all sizes.
        if heads.iter().any(|head| head.1 != heads[0].1) {
            return;
        }
        note(
            heads[0].0,
            if negative {
                Kind::Negative
            } else {
                Kind::Positive
            },
        );
        // Ordering: Relaxed, as in `kind`.
        sign.store(heads[0].1, Ordering::Relaxed);
    }
}

/// The numbers of words of the largest integers, in different releases of the host.
const LARGEST_INTEGERS: [usize; 2] = [(1 << 16) - 1, (1 << 19) - 1];

/// Tells the engine the size of the host's largest integers, if it is one of the known limits. A
/// larger integer could be stored, but not returned.
pub fn find_largest_integer() {
    let is_largest = |words: &usize| is_integer(*words) && !is_integer(words + 1);
    if let Some(words) = LARGEST_INTEGERS.into_iter().find(is_largest) {
        larder_term::number::set_max_bits(64 * words as u64);
    }
}

/// Whether the host has integers of this number of words.
fn is_integer(words: usize) -> bool {
    let bytes = words * size_of::<Word>();
    // The version, the tag of a large integer, its length, and a positive sign; all bits are ones.
    let mut etf = vec![131, 111];
    etf.extend_from_slice(&(bytes as u32).to_be_bytes());
    etf.push(0);
    etf.resize(etf.len() + bytes, 0xFF);
    // SAFETY: a fresh environment, which is ours alone and is freed once.
    unsafe {
        let env = enif_alloc_env();
        let made = from_external_format(env, &etf).is_some();
        enif_free_env(env);
        made
    }
}

//! References of this node.
//!
//! ```text
//!  reference  header, low half | number 0 << 32, number 1 | number 2 << 32; in an alias, its pid
//! ```
//!
//! *References that keep something alive* (NIF resources, atomics, table ids) are *magic*: as long
//! as somebody holds the reference, the emulator finds the object by the reference's numbers. Bit
//! 17 of their second number is set. This is tested when the library is loaded. If it isn't so, all
//! references are treated as magic ones.

use super::kinds::*;
use super::words::*;
use crate::sys::external::{external_format, parse_reference};
use crate::sys::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The numbers of a reference of this node.
pub type Numbers = [u32; 3];

/// The header and the low half of the word after it: of an ordinary reference, and of an alias.
static REFERENCE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
static ALIAS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// A bit that is set in the second number of aliases, and of no other references.
const ALIAS_BIT: u32 = 1 << 16;

fn load_pair(pair: &[AtomicUsize; 2]) -> (Word, Word) {
    // Ordering: Relaxed, both, as in `kind`.
    (
        pair[0].load(Ordering::Relaxed),
        pair[1].load(Ordering::Relaxed),
    )
}

fn store_pair(pair: &[AtomicUsize; 2], first: Word, second: Word) {
    // Ordering: Relaxed, both, as in `kind`.
    pair[0].store(first, Ordering::Relaxed);
    pair[1].store(second, Ordering::Relaxed);
}

/// The numbers of a reference of this node that doesn't keep anything alive. `None` for any other
/// reference.
#[inline]
pub fn reference(word: Word) -> Option<Numbers> {
    debug_assert_eq!(kind(word), Kind::Reference);
    // SAFETY: a reference points at its header, after which lie two words at least, as
    // `prove_references` has verified.
    let (header, words) = unsafe { (*pointer(word), words(word, 2)) };
    let seen = (header, words[0] & 0xFFFF_FFFF);
    (seen == load_pair(&REFERENCE) || seen == load_pair(&ALIAS)).then_some([
        (words[0] >> 32) as u32,
        words[1] as u32,
        (words[1] >> 32) as u32,
    ])
}

/// The words of a reference of this node that doesn't keep anything alive. `None` if the layout
/// isn't known, and for an alias, which also contains a pid.
#[inline]
pub fn reference_words(numbers: Numbers) -> Option<[Word; 3]> {
    let (header, low) = load_pair(&REFERENCE);
    let [a, b, c] = numbers.map(|n| n as Word);
    let is_plain = header != 0 && numbers[1] & ALIAS_BIT == 0;
    is_plain.then_some([header, low | a << 32, b | c << 32])
}

/// The bit that marks a magic reference, in its second number.
const MAGIC: u32 = 1 << 17;
static MAGIC_KNOWN: AtomicBool = AtomicBool::new(false);

/// Whether a reference of this node with these numbers may keep something alive.
pub fn may_be_magic(words: &[u32]) -> bool {
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    !MAGIC_KNOWN.load(Ordering::Relaxed) || words.get(1).is_some_and(|w| w & MAGIC != 0)
}

pub fn prove_references(env: *mut Env, alias: Option<Word>) {
    let numbers = |word| external_format(env, word, parse_reference).map(|parsed| parsed.2);
    let mut first = None;
    // Test eight references with different numbers. What all of them have in common is the header
    // and the low half of the word after it.
    for _ in 0..8 {
        // SAFETY: `env` is the environment of the running load callback.
        let word = unsafe { enif_make_ref(env) };
        // SAFETY: a reference is a boxed term of three words at least.
        let (header, words) = unsafe { (*pointer(word), words(word, 2)) };
        let here = [words[0] >> 32, words[1] & 0xFFFF_FFFF, words[1] >> 32];
        let same = numbers(word).is_some_and(|n| n.iter().map(|&n| n as Word).eq(here));
        let seen = (header, words[0] & 0xFFFF_FFFF);
        let is_alias = here[1] as u32 & ALIAS_BIT != 0;
        if !same || is_alias || header >> 6 != 2 || *first.get_or_insert(seen) != seen {
            return;
        }
        note(word, Kind::Reference);
    }
    // Ordinary references are known now. The rest is about aliases, which only some releases have.
    let Some((header, low)) = first else { return };
    store_pair(&REFERENCE, header, low);
    let Some(word) = alias.filter(|&word| is_boxed(word)) else {
        return;
    };
    // SAFETY: a reference is a boxed term that points at its header.
    let header = unsafe { *pointer(word) };
    if header >> 6 != 3 || header & HEADER != load_pair(&REFERENCE).0 & HEADER {
        return;
    }
    // SAFETY: the header says that three words follow.
    let words = unsafe { words(word, 3) };
    let here = [words[0] >> 32, words[1] & 0xFFFF_FFFF, words[1] >> 32];
    let same = numbers(word).is_some_and(|n| n.iter().map(|&n| n as Word).eq(here));
    if same && here[1] as u32 & ALIAS_BIT != 0 {
        store_pair(&ALIAS, header, words[0] & 0xFFFF_FFFF);
    }
}

/// Tests the bit of magic references on one that is magic and on one that isn't.
pub fn prove_magic(env: *mut Env, magic: Word) {
    let has_bit = |word| {
        external_format(env, word, |etf| {
            Some(parse_reference(etf)?.2.get(1)? & MAGIC != 0)
        })
    };
    // SAFETY: `env` is the environment of the running load callback.
    let plain = unsafe { enif_make_ref(env) };
    let known = has_bit(magic) == Some(true) && has_bit(plain) == Some(false);
    // Ordering: Relaxed, see `may_be_magic`.
    MAGIC_KNOWN.store(known, Ordering::Relaxed);
}

//! References of this node.
//!
//! ```text
//!  reference  header, mark | number 0 << 32, number 1 | number 2 << 32; of an alias its pid behind them
//! ```
//!
//! *References that keep something alive* (NIF resources, atomics, table ids) are *magic*: the
//! emulator finds the thing by the reference's numbers while somebody holds it. They have bit 17 of
//! their second number set. That is tried at load; should it be otherwise, all references are taken
//! for magic.

use super::kinds::*;
use super::words::*;
use crate::sys::external::{external_format, parse_reference};
use crate::sys::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The numbers of a reference of this node.
pub type Numbers = [u32; 3];

/// The header of a reference and the mark behind it, of one that is nothing else and of an alias.
static REFERENCE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
static ALIAS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// What the second number of an alias has, and no other reference's.
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

/// The numbers of a reference of this node that keeps nothing alive; None of another.
#[inline]
pub fn reference(word: Word) -> Option<Numbers> {
    debug_assert_eq!(kind(word), Kind::Reference);
    // SAFETY: a reference points at its header, behind which lie two words at least, saw
    // `prove_references`.
    let (header, words) = unsafe { (*pointer(word), words(word, 2)) };
    let seen = (header, words[0] & 0xFFFF_FFFF);
    (seen == load_pair(&REFERENCE) || seen == load_pair(&ALIAS)).then_some([
        (words[0] >> 32) as u32,
        words[1] as u32,
        (words[1] >> 32) as u32,
    ])
}

/// The words of a reference of this node that keeps nothing alive, as it lies; None of an alias,
/// whose pid is not among its numbers, and if it is not known.
#[inline]
pub fn reference_words(numbers: Numbers) -> Option<[Word; 3]> {
    let (header, mark) = load_pair(&REFERENCE);
    let [a, b, c] = numbers.map(|n| n as Word);
    let is_plain = header != 0 && numbers[1] & ALIAS_BIT == 0;
    is_plain.then_some([header, mark | a << 32, b | c << 32])
}

/// The mark of a magic reference, in its second number.
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
    // Eight in a row, since their numbers differ: what is the same in all of them is the header and
    // the mark.
    for _ in 0..8 {
        // SAFETY: `env` is the environment of the running load callback.
        let word = unsafe { enif_make_ref(env) };
        // SAFETY: a reference is a boxed term of three words at least.
        let (header, words) = unsafe { (*pointer(word), words(word, 2)) };
        let here = [words[0] >> 32, words[1] & 0xFFFF_FFFF, words[1] >> 32];
        let same = numbers(word).is_some_and(|n| n.iter().map(|&n| n as Word).eq(here));
        let seen = (header, words[0] & 0xFFFF_FFFF);
        let is_marked = here[1] as u32 & ALIAS_BIT != 0;
        if !same || is_marked || header >> 6 != 2 || *first.get_or_insert(seen) != seen {
            return;
        }
        note(word, Kind::Reference);
    }
    // References are known. What follows is about aliases alone, which some releases have.
    let Some((header, mark)) = first else { return };
    store_pair(&REFERENCE, header, mark);
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

/// Tries the mark of magic references on one that is magic and one that is not.
pub fn prove_magic(env: *mut Env, magic: Word) {
    let marked = |word| {
        external_format(env, word, |etf| {
            Some(parse_reference(etf)?.2.get(1)? & MAGIC != 0)
        })
    };
    // SAFETY: `env` is the environment of the running load callback.
    let plain = unsafe { enif_make_ref(env) };
    let known = marked(magic) == Some(true) && marked(plain) == Some(false);
    // Ordering: Relaxed, see `may_be_magic`.
    MAGIC_KNOWN.store(known, Ordering::Relaxed);
}

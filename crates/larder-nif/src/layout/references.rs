//! References of this node.
//!
//! ```text
//!  reference  header, low half | number 0 << 32, number 1 | number 2 << 32; in an alias, its pid
//! ```
//!
//! *Aliases.* In the external format of OTP 25, an alias has three numbers, and the emulator looks
//! for its pid when it reads one. In OTP 27 it has five, of which the last two are the halves of
//! the pid's word.
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
/// As `ALIAS`, of an alias whose numbers contain its pid.
static ALIAS_WITH_PID: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
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
    let (seen, numbers) = seen(word);
    (seen == load_pair(&REFERENCE) || seen == load_pair(&ALIAS)).then_some(numbers)
}

/// The header and the low half of the word after it, and the first three numbers.
#[inline]
fn seen(word: Word) -> ((Word, Word), Numbers) {
    // SAFETY: a reference points at its header, after which lie two words at least, as
    // `prove_references` has verified.
    let (header, words) = unsafe { (*pointer(word), words(word, 2)) };
    let numbers = [
        (words[0] >> 32) as u32,
        words[1] as u32,
        (words[1] >> 32) as u32,
    ];
    ((header, words[0] & 0xFFFF_FFFF), numbers)
}

/// The numbers of an alias, if they contain its pid. `None` for any other reference.
pub fn alias(word: Word) -> Option<[u32; 5]> {
    let (seen, [a, b, c]) = seen(word);
    (seen == load_pair(&ALIAS_WITH_PID)).then(|| {
        // SAFETY: the header is that of an alias, which has a third word.
        let pid = unsafe { words(word, 3)[2] };
        [a, b, c, pid as u32, (pid >> 32) as u32]
    })
}

/// The words of the alias with these numbers. `None` if the layout isn't known, and for a reference
/// that is no alias.
pub fn alias_words(numbers: [u32; 5]) -> Option<[Word; 4]> {
    let (header, low) = load_pair(&ALIAS_WITH_PID);
    let [a, b, c, d, e] = numbers.map(|n| n as Word);
    let pid = d | e << 32;
    let is_alias = header != 0 && numbers[1] & (ALIAS_BIT | MAGIC) == ALIAS_BIT;
    (is_alias && is_local_pid(pid)).then_some([header, low | a << 32, b | c << 32, pid])
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
    let (seen, here) = seen(word);
    let Some(numbers) = numbers(word).filter(|_| here[1] & ALIAS_BIT != 0) else {
        return;
    };
    if numbers[..] == here {
        store_pair(&ALIAS, seen.0, seen.1);
        return;
    }
    // The numbers may contain the pid. Then they say what all words are.
    store_pair(&ALIAS_WITH_PID, seen.0, seen.1);
    // SAFETY: the header says that three words follow.
    let words = unsafe {
        [
            header,
            words(word, 3)[0],
            words(word, 3)[1],
            words(word, 3)[2],
        ]
    };
    let all = self::alias(word).filter(|all| numbers[..] == all[..]);
    if all.and_then(alias_words) != Some(words) {
        store_pair(&ALIAS_WITH_PID, 0, 0);
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

//! Funs: the code's entry, and the free variables behind the emulator's other words.
//!
//! ```text
//!  fun        header, entry, •, …, free variables
//! ```

use super::kinds::*;
use super::words::*;
use super::Samples;
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which word behind the header of a fun is its first free variable; 0 if that is not known.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// The free variables of a fun that has so many.
#[inline]
pub fn fun<'a>(word: Word, free: usize) -> &'a [Word] {
    debug_assert_eq!(kind(word), Kind::Fun);
    if free == 0 {
        return &[];
    }
    // Ordering: Relaxed, as in `kind`.
    let first = FREE.load(Ordering::Relaxed);
    // SAFETY: the free variables lie behind the other words, saw `prove_funs`; the caller knows how
    // many this one has.
    unsafe { &words(word, first + free)[first..] }
}

/// Whether funs can be read and made.
#[inline]
pub fn is_fun_known() -> bool {
    // Ordering: Relaxed, as in `kind`.
    FREE.load(Ordering::Relaxed) != 0
}

/// What a fun is a fun of: the same word for the same code, while such a fun lives.
#[inline]
pub fn fun_entry(word: Word) -> Word {
    // SAFETY: the word behind the header of a term that has one, saw `prove_funs`.
    unsafe { words(word, 1)[0] }
}

pub fn prove_funs(samples: &Samples) -> Option<()> {
    let word = samples.fun.filter(|&word| is_boxed(word))?;
    // The words that are known to be there: of a small boxed term, behind which others of the call
    // lie.
    const LOOKED_AT: usize = 6;
    // SAFETY: a fun with two free variables has eight words in any release, header included.
    let words = unsafe { words(word, LOOKED_AT + 1) };
    let [a, b] = samples.free;
    let are_there = |i: &usize| words[*i..i + 2] == [a, b] || words[*i..i + 2] == [b, a];
    // The two variables are known and are nothing else in a fun: where they lie side by side is
    // where variables begin.
    let free = (2..LOOKED_AT).find(are_there)?;
    // Ordering: Relaxed, as in `kind`.
    FREE.store(free, Ordering::Relaxed);
    note(word, Kind::Fun);
    // Funs of the form `fun M:F/A` may have the header of other funs, or one of their own.
    let exports = [samples.exports[0]?, samples.exports[1]?];
    let is_boxed = exports.iter().all(|&word| is_boxed(word));
    if is_boxed && kind(exports[0]) == Kind::Other && fun_entry(exports[0]) != fun_entry(exports[1])
    {
        note(exports[0], Kind::Fun);
    }
    Some(())
}

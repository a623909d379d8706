//! The layout of funs: the emulator's entry of the code, and the free variables behind other words.
//!
//! ```text
//!  fun until OTP 26    header, entry, •, •, •, •, free variables
//!      since OTP 27    header, entry, free variables, a reference to the entry
//! ```

use super::kinds::*;
use super::words::*;
use super::Samples;
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The index of the first free variable among the words behind the header of a fun; 0 if it isn't
/// known.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// The free variables of a fun, of which there are `free`.
#[inline]
pub fn fun<'a>(word: Word, free: usize) -> &'a [Word] {
    debug_assert_eq!(kind(word), Kind::Fun);
    if free == 0 {
        return &[];
    }
    // Ordering: Relaxed, as in `kind`.
    let first = FREE.load(Ordering::Relaxed);
    // SAFETY: the free variables lie behind the other words, as `prove_funs` has verified; the
    // caller knows how many this one has.
    unsafe { &words(word, first + free)[first..] }
}

/// Whether funs can be read and made.
#[inline]
pub fn is_fun_known() -> bool {
    // Ordering: Relaxed, as in `kind`.
    FREE.load(Ordering::Relaxed) != 0
}

/// The emulator's entry of a fun's code. It is the same word for the same code, as long as a fun of
/// this code is alive.
#[inline]
pub fn fun_entry(word: Word) -> Word {
    // SAFETY: the word behind the header of a term that has one, as `prove_funs` has verified.
    unsafe { words(word, 1)[0] }
}

/// Finds out where the free variables lie, and proves it on samples.
pub fn prove_funs(samples: &Samples) -> Option<()> {
    let word = samples.fun.filter(|&word| is_boxed(word))?;
    let [a, b] = samples.free;
    let are_there = |&i: &usize| {
        // SAFETY: the words up to the second variable belong to the fun, and no more are read once
        // the variables are found. In a release where they are elsewhere, a fun with two of them
        // has eight words, header included, as in OTP 25.
        let two = unsafe { &words(word, i + 2)[i..] };
        *two == [a, b] || *two == [b, a]
    };
    // The values of the two variables are known, and no other words of a fun have them. So the
    // variables begin where these two words lie side by side: behind the entry since OTP 27, and
    // behind four more words before.
    let free = (1..6).find(are_there)?;
    note(word, Kind::Fun);
    // Depending on the release, funs of the form `fun M:F/A` have the same header as other funs, or
    // one of their own. Each has an entry of its own, or the code couldn't be told by it.
    let exports = [samples.exports[0]?, samples.exports[1]?];
    if exports.iter().all(|&word| is_boxed(word)) {
        let have_entries = fun_entry(exports[0]) != fun_entry(exports[1]);
        match (kind(exports[0]), have_entries) {
            (Kind::Other, true) => note(exports[0], Kind::Fun),
            (Kind::Fun, false) => {
                forget(Kind::Fun);
                return None;
            }
            _ => (),
        }
    }
    // Ordering: Relaxed, as in `kind`.
    FREE.store(free, Ordering::Relaxed);
    Some(())
}

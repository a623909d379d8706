//! The layout of funs: the emulator's entry of the code, and the free variables after other words.
//!
//! ```text
//!  fun until OTP 26    header, entry, •, shape, •, free variables
//!      since OTP 27    shape, entry, free variables, a reference to the entry
//! ```
//!
//! The *shape* has the numbers of arguments and of free variables. The entry doesn't say the
//! latter: of an altered external format the emulator makes funs of one entry with different
//! numbers.

use super::kinds::*;
use super::words::*;
use super::Samples;
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The index of the first free variable among the words after the header of a fun; 0 if it isn't
/// known.
static FREE: AtomicUsize = AtomicUsize::new(0);
/// What it is until OTP 26, and since OTP 27.
const AFTER_SHAPE: usize = 4;
const AFTER_ENTRY: usize = 1;

/// The shape of a fun: equal for two funs of one entry if they have as many free variables.
#[inline]
pub fn fun_shape(word: Word) -> Word {
    debug_assert_eq!(kind(word), Kind::Fun);
    // Ordering: Relaxed, as in `kind`.
    shape(word, FREE.load(Ordering::Relaxed))
}

/// The shape of a fun, given the index of its first free variable.
#[inline]
fn shape(word: Word, first: usize) -> Word {
    // SAFETY: a boxed term points at its header; the words in front of the free variables are those
    // of every fun, whether it has any or not, as `prove_funs` has verified.
    unsafe {
        match first {
            AFTER_ENTRY => *pointer(word),
            // The rest of the word is of no use to the emulator, and may be anything.
            _ => words(word, 3)[2] & 0xFFFF,
        }
    }
}

/// The free variables of a fun, of which there are `free`, as is known by its shape.
#[inline]
pub fn fun<'a>(word: Word, free: usize) -> &'a [Word] {
    debug_assert_eq!(kind(word), Kind::Fun);
    if free == 0 {
        return &[];
    }
    // Ordering: Relaxed, as in `kind`.
    let first = FREE.load(Ordering::Relaxed);
    // SAFETY: the free variables lie after the other words, as `prove_funs` has verified; the
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
    // SAFETY: the word after the header of a term that has one, as `prove_funs` has verified.
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
    // variables begin where these two words lie side by side: after the entry since OTP 27, and
    // after three more words before.
    let free = (1..6).find(are_there)?;
    // The fun has one argument and two free variables. Since OTP 27 the reference to the entry is
    // counted with these, or there is none.
    let is_shaped = match free {
        AFTER_ENTRY => {
            [2, 3].contains(&(shape(word, free) >> 16)) && shape(word, free) >> 8 & 0xFF == 1
        }
        AFTER_SHAPE => shape(word, free) == 2 << 8 | 1,
        _ => false,
    };
    let exports = [samples.exports[0]?, samples.exports[1]?];
    if !is_shaped {
        return None;
    }
    note(word, Kind::Fun);
    // Depending on the release, funs of the form `fun M:F/A` have the same header as other funs, or
    // one of their own. Each has an entry of its own, or the code couldn't be identified by it.
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

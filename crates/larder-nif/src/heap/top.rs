//! The heap top of an environment, and the proof, made when the library is loaded, that the running
//! emulator has it where this module expects it.
//!
//! An environment begins with a few words of the emulator's own. Two adjacent ones bound the free
//! part of the heap on which it makes terms (`hp` and `hp_end` in the emulator's sources):
//!
//! ```text
//!  environment   … | top | end | …
//!                     │     ╰───────────────────────────╮
//!                     ▼                                 ▼
//!  heap          … term | free  free  free  free  free  | what isn't the environment's
//! ```
//!
//! Each official function that makes a term moves the top over the words that it takes. If they
//! don't fit, it switches to another heap. So if this library moves the top over some words, and
//! writes complete terms there, it has made these terms as the emulator would have, without a call.
//!
//! # The proof
//!
//! [`prove`] finds the word that is the top, with an environment of its own and with that of a
//! process:
//!
//! 1. After the emulator has made a term, the top is where the next term will be.
//! 2. Words that are allocated by moving the top are left alone: the emulator's next term is after
//!    them.
//! 3. The last word before the end can be allocated. Then top and end are equal.
//! 4. A term that doesn't fit is made elsewhere, and top and end point there afterwards.
//!
//! If any of this doesn't hold, the top is unknown, and [`take`] takes nothing.

use crate::layout::{arity_header, pointer, NIL};
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of words at the beginning of an environment that are searched for the top.
/// Environments are larger in all releases.
const SEARCHED: usize = 4;
/// The index of the top among the words of an environment; 0 if it isn't known. (Word 0 is another
/// one.)
static TOP: AtomicUsize = AtomicUsize::new(0);

/// The place of the top. The end is in the next word.
#[inline]
fn top_of(env: *mut Env) -> Option<*mut *mut Word> {
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    let at = TOP.load(Ordering::Relaxed);
    // SAFETY: one of the first words of an environment, as `prove` has verified.
    (at != 0).then(|| unsafe { env.cast::<*mut Word>().add(at) })
}

/// Takes this number of words of the heap, if it has as many and the top is known. The caller must
/// fill them with complete, adjacent terms before the call ends.
#[inline]
pub fn take(env: *mut Env, words: usize) -> Option<*mut Word> {
    take_before(env, words, 0)
}

/// As `take`, if the heap has `more` free words after them. These may be written, but stay free.
#[inline]
pub fn take_before(env: *mut Env, words: usize, more: usize) -> Option<*mut Word> {
    let place = top_of(env)?;
    // SAFETY:
    // 1. the words are the environment's, which is the running call's, or one that no other thread
    //    uses: nobody changes them meanwhile;
    // 2. the words lie before the end, so they are free, as `prove` has verified.
    unsafe {
        let (top, end) = (*place, *place.add(1));
        // The end may lie in front of the top: the words in front of a process's stack that are
        // reserved for Erlang code aren't the environment's, and may be in use already.
        let free = (end as isize).wrapping_sub(top as isize);
        if ((words + more) * size_of::<Word>()) as isize > free {
            return None;
        }
        // From now on the words are below the top, so no official function takes them.
        *place = top.add(words);
        Some(top)
    }
}

/// Whether the top is known.
#[inline]
pub fn is_known() -> bool {
    // Ordering: Relaxed, as in `top_of`.
    TOP.load(Ordering::Relaxed) != 0
}

/// Gives back the words from `from` on that the last official call took, if the top is known.
///
/// # Safety
/// The last term that was made in the environment reaches from before `from` to its last word, and
/// nobody uses the words from `from` on.
pub unsafe fn give_back(env: *mut Env, from: *mut Word) {
    if let Some(place) = top_of(env) {
        // SAFETY: as in `take`; the top lies after that term, as `prove` has verified.
        unsafe { *place = from };
    }
}

/// Finds the top with an environment of its own, and checks that it is the same word in this one.
pub fn prove(env: *mut Env) {
    // SAFETY: a fresh environment, which is ours alone and is freed once.
    let found = unsafe {
        let env = enif_alloc_env();
        let found = (1..SEARCHED).find(|&at| is_top(env, at));
        enif_free_env(env);
        found
    };
    if let Some(at) = found.filter(|&at| follows(env, at)) {
        // Ordering: Relaxed, see `top_of`.
        TOP.store(at, Ordering::Relaxed);
    }
}

/// The word `at` of an environment, and the next one.
fn words(env: *mut Env, at: usize) -> (usize, usize) {
    // SAFETY: an environment has more words, see `SEARCHED`.
    unsafe {
        (
            *env.cast::<usize>().add(at),
            *env.cast::<usize>().add(at + 1),
        )
    }
}

/// Lets the emulator make a tuple of this number of words. Returns its beginning and its end.
fn tuple_of(env: *mut Env, words: usize) -> (usize, usize) {
    let elements = vec![NIL; words - 1];
    // SAFETY: the environment is the caller's to use; the array has the given number of words.
    let tuple =
        unsafe { enif_make_tuple_from_array(env, elements.as_ptr(), elements.len() as u32) };
    let begin = pointer(tuple) as usize;
    (begin, begin + words * size_of::<Word>())
}

/// Whether the word `at` is the place of the next term, and the next word a place beyond: the first
/// point of the proof.
fn follows(env: *mut Env, at: usize) -> bool {
    // The environment's word is read between two terms, so each of them is checked against it.
    let (_, first_end) = tuple_of(env, 2);
    let (top, end) = words(env, at);
    let (second, second_end) = tuple_of(env, 4);
    let is_beyond =
        |end: usize, top: usize| end >= top && (end - top).is_multiple_of(size_of::<Word>());
    // The second term may be elsewhere if it didn't fit.
    let stayed = second == top || !is_beyond(end, second_end);
    // Each equality alone could be a coincidence. All of them together can't.
    top == first_end
        && is_beyond(end, top)
        && stayed
        && words(env, at).0 == second_end
        && is_beyond(words(env, at).1, second_end)
}

/// The whole proof, for an environment of its own, which is filled up to the last word.
fn is_top(env: *mut Env, at: usize) -> bool {
    const OURS: usize = 5;
    if !follows(env, at) {
        return false;
    }
    let (top, end) = words(env, at);
    if end - top < (OURS + 4 + 2) * size_of::<Word>() {
        return false;
    }
    // 2. Words that are allocated by moving the top are left alone.
    let moved = top + OURS * size_of::<Word>();
    // SAFETY: the words from the top to the end are free, as `follows` has verified; the
    // environment is ours alone. They become a tuple of `[]`s.
    unsafe {
        let words = top as *mut Word;
        words.write(arity_header(OURS - 1));
        for i in 1..OURS {
            words.add(i).write(NIL);
        }
        *env.cast::<usize>().add(at) = moved;
    }
    let after = tuple_of(env, 4);
    // 3. The last word can be allocated.
    let left = (end - after.1) / size_of::<Word>();
    let last = tuple_of(env, left);
    let full = words(env, at) == (end, end);
    // 4. No more words can be allocated: the next term is elsewhere, and the top points there.
    let (other, other_end) = tuple_of(env, 2);
    let elsewhere = !(top..end).contains(&other) && words(env, at).0 == other_end;
    after.0 == moved && last == (after.1, end) && full && elsewhere
}

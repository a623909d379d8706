//! The heap top of an environment, and the proof, made at load, that the running emulator has it
//! where this module looks.
//!
//! An environment begins with a few words of the emulator's own. Two of them, neighbours, bound the
//! free part of the heap that it makes terms on (`hp` and `hp_end` in the emulator's sources):
//!
//! ```text
//!  environment   … | top | end | …
//!                     │     ╰───────────────────────────╮
//!                     ▼                                 ▼
//!  heap          … term | free  free  free  free  free  | what isn't the environment's
//! ```
//!
//! Each official function that makes a term moves the top over the words that it takes, and looks
//! for another heap where they don't fit. So whoever moves it over some words, and writes whole
//! terms there, has made them as the emulator would have, without a call.
//!
//! # The proof
//!
//! [`prove`] finds out which word is the top, on an environment of its own and on that of a
//! process:
//!
//! 1. behind a term that the emulator makes, the top is where the next one will lie;
//! 2. what is taken by moving the top is left alone: the emulator's next term lies behind it;
//! 3. the last word before the end can be taken, and then top and end are equal;
//! 4. a term that doesn't fit lies elsewhere, and top and end follow it there.
//!
//! Where something is otherwise, nothing is known, and [`take`] takes nothing.

use crate::layout::{arity_header, pointer, NIL};
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first words of an environment, one of which may be the top: any release's environment has
/// more.
const SEARCHED: usize = 4;
/// Which word of an environment is the top; 0, which is another's, if that is not known.
static TOP: AtomicUsize = AtomicUsize::new(0);

/// Where the top lies. The end lies behind it.
#[inline(always)]
fn top_of(env: *mut Env) -> Option<*mut *mut Word> {
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    let at = TOP.load(Ordering::Relaxed);
    // SAFETY: one of the first words of an environment, saw `prove`.
    (at != 0).then(|| unsafe { env.cast::<*mut Word>().add(at) })
}

/// Takes so many words of the heap, if it has them and it is known how. They are to be written
/// before the call ends: as whole terms, one behind the other.
#[inline(always)]
pub fn take(env: *mut Env, words: usize) -> Option<*mut Word> {
    take_before(env, words, 0)
}

/// As `take`, if the heap has so many more words, too: they may be written, and are free as before.
#[inline(always)]
pub fn take_before(env: *mut Env, words: usize, more: usize) -> Option<*mut Word> {
    let place = top_of(env)?;
    // SAFETY: 1. the words are the environment's, which is the running call's, or one that no other
    // thread uses: nobody changes them meanwhile; 2. the top never lies behind the end, saw
    // `prove`, and stays before it here.
    unsafe {
        let (top, end) = (*place, *place.add(1));
        if words + more > (end as usize - top as usize) / size_of::<Word>() {
            return None;
        }
        // The caller's words are below the top from here on, so no official call takes them.
        *place = top.add(words);
        Some(top)
    }
}

/// Whether it is known how to take words.
#[inline]
pub fn is_known() -> bool {
    // Ordering: Relaxed, as in `top_of`.
    TOP.load(Ordering::Relaxed) != 0
}

/// Gives back those words from `from` on that the last official call took, if it is known how.
///
/// # Safety
/// The last term that was made in the environment reaches from before `from` to its last word, and
/// nobody uses the words from `from` on.
pub unsafe fn give_back(env: *mut Env, from: *mut Word) {
    if let Some(place) = top_of(env) {
        // SAFETY: as in `take`; the top lies behind that term, saw `prove`.
        unsafe { *place = from };
    }
}

/// Looks which word is the top, on an environment of its own, and whether it is in this one too.
pub fn prove(env: *mut Env) {
    // SAFETY: a fresh environment, which is ours alone and is freed once.
    let found = unsafe {
        let own = enif_alloc_env();
        let found = (1..SEARCHED).find(|&at| is_top(own, at));
        enif_free_env(own);
        found
    };
    if let Some(at) = found.filter(|&at| follows(env, at)) {
        // Ordering: Relaxed, see `top_of`.
        TOP.store(at, Ordering::Relaxed);
    }
}

/// The word `at` of an environment, and the one behind it.
fn words(env: *mut Env, at: usize) -> (usize, usize) {
    // SAFETY: an environment has more words, see `SEARCHED`.
    unsafe {
        (
            *env.cast::<usize>().add(at),
            *env.cast::<usize>().add(at + 1),
        )
    }
}

/// Where a tuple of so many words lies that the emulator makes, and where it ends.
fn tuple_of(env: *mut Env, words: usize) -> (usize, usize) {
    let elements = vec![NIL; words - 1];
    // SAFETY: the environment is the caller's to use; the array has as many words as said.
    let tuple =
        unsafe { enif_make_tuple_from_array(env, elements.as_ptr(), elements.len() as u32) };
    let begin = pointer(tuple) as usize;
    (begin, begin + words * size_of::<Word>())
}

/// Whether the word `at` says where the next term will lie, and the word behind it something
/// beyond: the first point of the proof.
fn follows(env: *mut Env, at: usize) -> bool {
    let (_, first_end) = tuple_of(env, 2);
    let (top, end) = words(env, at);
    let (second, second_end) = tuple_of(env, 4);
    let is_beyond =
        |end: usize, top: usize| end >= top && (end - top).is_multiple_of(size_of::<Word>());
    // The second may lie elsewhere, if it did not fit.
    let stayed = second == top || !is_beyond(end, second_end);
    top == first_end
        && is_beyond(end, top)
        && stayed
        && words(env, at).0 == second_end
        && is_beyond(words(env, at).1, second_end)
}

/// As `follows`, for an environment of one's own, which is filled up to the last word: the whole
/// proof.
fn is_top(own: *mut Env, at: usize) -> bool {
    const OURS: usize = 5;
    if !follows(own, at) {
        return false;
    }
    let (top, end) = words(own, at);
    if end - top < (OURS + 4 + 2) * size_of::<Word>() {
        return false;
    }
    // 2. What is taken by moving the top is left alone by the emulator.
    let moved = top + OURS * size_of::<Word>();
    // SAFETY: the words from the top to the end are free, `follows` saw; the environment is ours
    // alone. They become a tuple of `[]`s.
    unsafe {
        let words = top as *mut Word;
        words.write(arity_header(OURS - 1));
        for i in 1..OURS {
            words.add(i).write(NIL);
        }
        *own.cast::<usize>().add(at) = moved;
    }
    let behind = tuple_of(own, 4);
    // 3. The last word can be taken.
    let left = (end - behind.1) / size_of::<Word>();
    let last = tuple_of(own, left);
    let full = words(own, at) == (end, end);
    // 4. None behind it can: the next term lies elsewhere, and the top follows it.
    let (other, other_end) = tuple_of(own, 2);
    let elsewhere = !(top..end).contains(&other) && words(own, at).0 == other_end;
    behind.0 == moved && last == (behind.1, end) && full && elsewhere
}

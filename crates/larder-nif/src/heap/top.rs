//! Where the free part of an environment's heap lies, and the proof, made at load, that the running
//! emulator agrees.
//!
//! An environment begins with a few words of the emulator's own. Two of them, neighbours, are where
//! the free part of the heap that it makes terms on begins and where it ends:
//!
//! ```text
//!  environment   … | next | end | …
//!                     │      ╰──────────────────────────╮
//!                     ▼                                 ▼
//!  heap          … term | free  free  free  free  free  | what isn't the environment's
//! ```
//!
//! Each official function that makes a term moves `next` on over the words that it takes, and looks
//! for another heap where they don't fit. So who moves it on over some words, and writes whole
//! terms there, has made them as the emulator would have, without a call.
//!
//! Which words they are is found out by [`check`], on an environment of its own and on that of a
//! process: it follows the word through terms made by the emulator and by this module in turns, up
//! to the last word and beyond. Where something is otherwise, nothing is known, and [`take`] takes
//! nothing.

use crate::layout::{arity_header, place, NIL};
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first words of an environment, one of which may be `next`: any release's environment has
/// more.
const LOOKED_AT: usize = 4;
/// Which word of an environment is `next`; 0, which is another's, if that is not known.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Where `next` lies. `end` lies behind it.
#[inline(always)]
fn next_of(env: *mut Env) -> Option<*mut *mut Word> {
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    let at = NEXT.load(Ordering::Relaxed);
    // SAFETY: one of the first words of an environment, saw `check`.
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
    let place = next_of(env)?;
    // SAFETY: 1. the words are the environment's, which is the running call's, or one that no other
    // thread uses: nobody changes them meanwhile; 2. `next` never lies behind `end`, saw `check`,
    // and stays before it here.
    unsafe {
        let (next, end) = (*place, *place.add(1));
        if words + more > (end as usize - next as usize) / size_of::<Word>() {
            return None;
        }
        *place = next.add(words);
        Some(next)
    }
}

/// Whether it is known how to take words.
#[inline]
pub fn is_known() -> bool {
    // Ordering: Relaxed, as in `next_of`.
    NEXT.load(Ordering::Relaxed) != 0
}

/// Gives back those words from `from` on that the last official call took, if it is known how.
///
/// # Safety
/// The last term that was made in the environment reaches from before `from` to its last word, and
/// nobody uses the words from `from` on.
pub unsafe fn give_back(env: *mut Env, from: *mut Word) {
    if let Some(place) = next_of(env) {
        // SAFETY: as in `take`; `next` lies behind that term, saw `check`.
        unsafe { *place = from };
    }
}

/// Looks which word is `next`, on an environment of its own, and whether it is in this one too.
pub fn check(env: *mut Env) {
    // SAFETY: a fresh environment, which is ours alone and is freed once.
    let found = unsafe {
        let own = enif_alloc_env();
        let found = (1..LOOKED_AT).find(|&at| is_next(own, at));
        enif_free_env(own);
        found
    };
    if let Some(at) = found.filter(|&at| follows(env, at)) {
        // Ordering: Relaxed, see `next_of`.
        NEXT.store(at, Ordering::Relaxed);
    }
}

/// The word `at` of an environment, and the one behind it.
fn words(env: *mut Env, at: usize) -> (usize, usize) {
    // SAFETY: an environment has more words, see `LOOKED_AT`.
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
    let begin = place(tuple) as usize;
    (begin, begin + words * size_of::<Word>())
}

/// Whether the word `at` says where the next term will lie, and the word behind it something
/// beyond.
fn follows(env: *mut Env, at: usize) -> bool {
    let (_, first_end) = tuple_of(env, 2);
    let (next, end) = words(env, at);
    let (second, second_end) = tuple_of(env, 4);
    let is_beyond =
        |end: usize, next: usize| end >= next && (end - next).is_multiple_of(size_of::<Word>());
    // The second may lie elsewhere, if there was no room for it.
    let stayed = second == next || !is_beyond(end, second_end);
    next == first_end
        && is_beyond(end, next)
        && stayed
        && words(env, at).0 == second_end
        && is_beyond(words(env, at).1, second_end)
}

/// As `follows`, for an environment of one's own, which is filled up to the last word.
fn is_next(own: *mut Env, at: usize) -> bool {
    const OURS: usize = 5;
    if !follows(own, at) {
        return false;
    }
    let (next, end) = words(own, at);
    if end - next < (OURS + 4 + 2) * size_of::<Word>() {
        return false;
    }
    // What is taken by moving the word is left alone by the emulator.
    let moved = next + OURS * size_of::<Word>();
    // SAFETY: the words from `next` to `end` are free, `follows` saw; the environment is ours
    // alone. They become a tuple of `[]`s.
    unsafe {
        let words = next as *mut Word;
        words.write(arity_header(OURS - 1));
        for i in 1..OURS {
            words.add(i).write(NIL);
        }
        *own.cast::<usize>().add(at) = moved;
    }
    let behind = tuple_of(own, 4);
    // The last word can be taken, and none behind it.
    let left = (end - behind.1) / size_of::<Word>();
    let last = tuple_of(own, left);
    let full = words(own, at) == (end, end);
    let (other, other_end) = tuple_of(own, 2);
    let elsewhere = !(next..end).contains(&other) && words(own, at).0 == other_end;
    behind.0 == moved && last == (behind.1, end) && full && elsewhere
}

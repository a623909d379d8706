//! Boxed terms: which kind a header begins.
//!
//! ```text
//!  boxed ─▶ header | …            header: ……arity…… | 6 bits, by which the kind is known
//! ```
//!
//! Each kind is proved at load on samples that the emulator makes (OTP 25 has them as the modules
//! beside this one say; later releases differ in some). A kind whose proof fails is [`Kind::Other`]
//! for ever: its terms go through official functions, and the other kinds don't notice.

use super::words::*;
use crate::sys::*;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};

/// What a boxed term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Something else, or of a kind that was not proved.
    Other,
    Tuple,
    Float,
    HeapBinary,
    Map,
    Positive,
    Negative,
    Reference,
    SharedBinary,
    PartOfBinary,
    Fun,
}

const KINDS: [Kind; 11] = [
    Kind::Other,
    Kind::Tuple,
    Kind::Float,
    Kind::HeapBinary,
    Kind::Map,
    Kind::Positive,
    Kind::Negative,
    Kind::Reference,
    Kind::SharedBinary,
    Kind::PartOfBinary,
    Kind::Fun,
];

/// By the bits of a header that say what it is the header of.
static BY_HEADER: [AtomicU8; 64] = [const { AtomicU8::new(Kind::Other as u8) }; 64];

/// The kind of a boxed term.
#[inline(always)]
pub fn kind(word: Word) -> Kind {
    debug_assert!(is_boxed(word));
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    // SAFETY: a boxed term of the running call points at its header.
    let at = unsafe { *pointer(word) } & HEADER;
    KINDS[usize::from(BY_HEADER[at].load(Ordering::Relaxed)) % KINDS.len()]
}

/// Notes that headers like that of this term begin terms of this kind.
pub fn note(word: Word, kind: Kind) {
    // SAFETY: a sample is a boxed term that was just made.
    let at = unsafe { *pointer(word) } & HEADER;
    // Ordering: Relaxed, as in `kind`.
    BY_HEADER[at].store(kind as u8, Ordering::Relaxed);
}

/// Takes back what was noted of a kind.
pub fn forget(kind: Kind) {
    for place in &BY_HEADER {
        // Ordering: Relaxed, as in `kind`.
        if place.load(Ordering::Relaxed) == kind as u8 {
            place.store(Kind::Other as u8, Ordering::Relaxed);
        }
    }
}

/// The words of a boxed term behind its header, so many.
///
/// # Safety
/// The term has so many, and lives for `'a`.
#[inline(always)]
pub unsafe fn words<'a>(word: Word, count: usize) -> &'a [Word] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer(word).add(1), count) }
}

/// How many words a header says follow it.
#[inline(always)]
pub fn arity(word: Word) -> usize {
    // SAFETY: a boxed term of the running call points at its header.
    unsafe { *pointer(word) >> 6 }
}

/// Which headers, by the bits of `HEADER`, begin terms of the commonest kinds: tuples, numbers,
/// binaries, maps and references of this node.
static COMMON: AtomicU64 = AtomicU64::new(0);

/// Whether the word points at a term that is of none of the commonest kinds: a port, a fun, an
/// identifier of another node, or something that came with a later release.
#[inline]
pub fn is_strange(word: Word) -> bool {
    // SAFETY: a boxed term of the running call points at its header.
    // Ordering: Relaxed, as in `kind`.
    is_boxed(word)
        && COMMON.load(Ordering::Relaxed) >> (unsafe { *pointer(word) } & HEADER) & 1 == 0
}

/// Remembers the headers of samples of the common kinds.
pub fn note_common(env: *mut Env) {
    let (mut large, mut small) = (NIL, NIL);
    // SAFETY: `env` is the environment of the running load callback. The binary has a kilobyte,
    // whose last bytes are a part of it.
    let samples = unsafe {
        enif_make_new_binary(env, 1024, &mut large).write_bytes(0, 1024);
        let part = enif_make_sub_binary(env, large, 1000, 24);
        let integers = [1 << 60, -(1 << 60)].map(|value| enif_make_int64(env, value));
        enif_make_new_binary(env, 1, &mut small).write(0);
        [
            enif_make_tuple_from_array(env, [NIL].as_ptr(), 1),
            enif_make_double(env, 0.5),
            enif_make_new_map(env),
            small,
            large,
            part,
            integers[0],
            integers[1],
            enif_make_ref(env),
        ]
    };
    let kinds = samples.iter().fold(0, |kinds, &word| {
        // SAFETY: each is a boxed term that was just made.
        kinds | 1 << (unsafe { *pointer(word) } & HEADER)
    });
    // Ordering: Relaxed, as in `kind`.
    COMMON.store(kinds, Ordering::Relaxed);
}

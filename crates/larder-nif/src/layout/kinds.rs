//! The kinds of boxed terms, by their headers.
//!
//! ```text
//!  boxed ─▶ header | …            header: ……arity…… | 6 bits, by which the kind is known
//! ```
//!
//! Each kind is verified on samples that the emulator makes when the library is loaded. (OTP 25 has
//! the layouts that the modules beside this one describe. Of those that differ in later releases,
//! the modules describe the ones that are known.) A kind whose proof fails is [`Kind::Other`] until
//! the node ends: its terms go through official functions. Other kinds aren't affected.

use super::words::*;
use crate::sys::*;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};

/// The kind of a boxed term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Any other kind, or one that wasn't verified.
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
    RangeOfBinary,
    Fun,
    ForeignPid,
    ForeignPort,
    ForeignReference,
}

// As many as a power of two, so that an index needs no comparison.
const KINDS: [Kind; 16] = [
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
    Kind::RangeOfBinary,
    Kind::Fun,
    Kind::ForeignPid,
    Kind::ForeignPort,
    Kind::ForeignReference,
    Kind::Other,
];

/// The kinds, by the bits of a header that identify them.
static BY_HEADER: [AtomicU8; 64] = [const { AtomicU8::new(Kind::Other as u8) }; 64];

/// The kind of a boxed term.
#[inline]
pub fn kind(word: Word) -> Kind {
    debug_assert!(is_boxed(word));
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    // SAFETY: a boxed term of the running call points at its header.
    let at = unsafe { *pointer(word) } & HEADER;
    KINDS[usize::from(BY_HEADER[at].load(Ordering::Relaxed)) % KINDS.len()]
}

/// Records that terms with a header like that of this term are of this kind.
pub fn note(word: Word, kind: Kind) {
    // SAFETY: a sample is a boxed term that was just made.
    let at = unsafe { *pointer(word) } & HEADER;
    // Ordering: Relaxed, as in `kind`.
    BY_HEADER[at].store(kind as u8, Ordering::Relaxed);
}

/// Removes what was recorded about a kind.
pub fn forget(kind: Kind) {
    for place in &BY_HEADER {
        // Ordering: Relaxed, as in `kind`.
        if place.load(Ordering::Relaxed) == kind as u8 {
            place.store(Kind::Other as u8, Ordering::Relaxed);
        }
    }
}

/// The first `count` words of a boxed term after its header.
///
/// # Safety
/// The term has as many words, and lives for `'a`.
#[inline]
pub unsafe fn words<'a>(word: Word, count: usize) -> &'a [Word] {
    // SAFETY: by contract, the term has as many words, and lives for `'a`.
    unsafe { std::slice::from_raw_parts(pointer(word).add(1), count) }
}

/// The number of words that follow the header, according to it.
#[inline]
pub fn arity(word: Word) -> usize {
    // SAFETY: a boxed term of the running call points at its header.
    unsafe { *pointer(word) >> 6 }
}

/// A bit for each header, by the bits of `HEADER`, with which terms of the most common kinds begin:
/// tuples, numbers, binaries, maps and references of this node.
static COMMON: AtomicU64 = AtomicU64::new(0);

/// Whether the word points at a term that isn't of one of the most common kinds: a port, a fun, an
/// identifier of another node, or a kind that was added in a later release.
#[inline]
pub fn is_strange(word: Word) -> bool {
    // SAFETY: a boxed term of the running call points at its header.
    // Ordering: Relaxed, as in `kind`.
    is_boxed(word)
        && COMMON.load(Ordering::Relaxed) >> (unsafe { *pointer(word) } & HEADER) & 1 == 0
}

/// Records the headers of samples of the common kinds.
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

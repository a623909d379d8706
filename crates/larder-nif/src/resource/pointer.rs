//! Where the resource that a reference keeps alive lies, and the proof, made at load, that the
//! running emulator agrees.
//!
//! ```text
//!  reference   header | what it keeps | …         ordinary   header | odd | …
//!                           │
//!                           ▼
//!                     … | its type | … | the resource's value
//!                       ╰── TYPE ──╯   │
//!                       ╰──── VALUE ───╯   both counted from there
//! ```
//!
//! A reference that keeps nothing alive has the same header, and a word that is no address in the
//! place of the address. [`prove`] looks at references of both sorts for where the address, the
//! type and the value are. What it can't find, or a reference that is otherwise, is left to the
//! emulator.
//!
//! What other things are kept alive by references (atomics, tables of `ets`) has no type there, but
//! nothing that may be chosen by a program either: a pointer of the emulator's or a small number.

use crate::layout;
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The header of a reference that keeps something alive; none has this one, if that is not known.
static HEADER: AtomicUsize = AtomicUsize::new(usize::MAX);
/// How many bytes behind the address the type is.
static TYPE: AtomicUsize = AtomicUsize::new(0);
/// How many bytes behind the address the value is.
static VALUE: AtomicUsize = AtomicUsize::new(0);

/// Which word of a reference is the address.
const ADDRESS: usize = 1;
/// The most bytes between an address and a value.
const FURTHEST: usize = 128;

/// The value of a resource of this type that the term refers to; None for another term, and if it
/// is not known where that is.
#[inline(always)]
pub fn value(word: Word, kind: *mut ResourceType) -> Option<*mut u8> {
    if !layout::is_boxed(word) {
        return None;
    }
    // Ordering: Relaxed, all; written at load, before any other function of the library can run.
    let (header, to_type, to_value) = (
        HEADER.load(Ordering::Relaxed),
        TYPE.load(Ordering::Relaxed),
        VALUE.load(Ordering::Relaxed),
    );
    let header_at = layout::pointer(word);
    // SAFETY: 1. a boxed term of the running call points at its header; 2. that of a reference is
    // followed by an address, if its low bits say so; 3. what lies there begins with the emulator's
    // own words, then the type. `prove` saw all three.
    unsafe {
        if *header_at != header {
            return None;
        }
        let address = *header_at.add(ADDRESS);
        if address & 7 != 0 || *((address + to_type) as *const *mut ResourceType) != kind {
            return None;
        }
        Some((address + to_value) as *mut u8)
    }
}

/// A resource that was made for a look: its term, its type, and its value.
pub struct Sample {
    /// The term.
    pub word: Word,
    /// The type.
    pub kind: *mut ResourceType,
    /// The value.
    pub value: *mut u8,
}

/// Looks where resources lie, on samples of several types.
pub fn prove(env: *mut Env, samples: &[Sample]) {
    let Some((header, to_type, to_value)) = find(samples) else {
        return;
    };
    // Those that keep nothing alive: the word is no address.
    let ordinary = (0..64).all(|_| {
        // SAFETY: `env` is the environment of the running load callback; a reference is a boxed
        // term, of three words at least.
        unsafe {
            let header_at = layout::pointer(enif_make_ref(env));
            *header_at != header || *header_at.add(ADDRESS) & 7 != 0
        }
    });
    if !ordinary {
        return;
    }
    // Ordering: Relaxed, all, see `value`.
    TYPE.store(to_type, Ordering::Relaxed);
    VALUE.store(to_value, Ordering::Relaxed);
    HEADER.store(header, Ordering::Relaxed);
}

/// Header, way to the type and way to the value, if they are the same for all samples, and types
/// are not all the same.
fn find(samples: &[Sample]) -> Option<(Word, usize, usize)> {
    let first = samples.first()?;
    if samples.iter().all(|sample| sample.kind == first.kind) {
        return None;
    }
    // 1. The word behind the header is an address, and the value lies behind it, near by.
    let (header, address) = parts(first);
    let to_value = (first.value as usize).wrapping_sub(address);
    if to_value == 0 || to_value > FURTHEST || to_value % 8 != 0 {
        return None;
    }
    // 2. Header and distance are the same for all samples.
    let same = |sample: &Sample| {
        let (head, address) = parts(sample);
        head == header
            && address % 8 == 0
            && (sample.value as usize).wrapping_sub(address) == to_value
    };
    if !samples.iter().all(same) {
        return None;
    }
    let is_type = |to_type: usize, sample: &Sample| {
        let word = (parts(sample).1 + to_type) as *const *mut ResourceType;
        // SAFETY: between the address and the value, which is behind it and of the same piece of
        // memory, or `same` had not held for all.
        unsafe { *word == sample.kind }
    };
    // 3. Somewhere between the two is the type, at the same distance for all, though types differ.
    let mut places = (0..to_value).step_by(8);
    let to_type = places.find(|&to_type| samples.iter().all(|sample| is_type(to_type, sample)))?;
    Some((header, to_type, to_value))
}

/// The header of a sample's term, and the word where the address should be.
fn parts(sample: &Sample) -> (Word, usize) {
    let header_at = layout::pointer(sample.word);
    // SAFETY: a reference is a boxed term, which points at its header, and has three words at
    // least.
    unsafe { (*header_at, *header_at.add(ADDRESS)) }
}

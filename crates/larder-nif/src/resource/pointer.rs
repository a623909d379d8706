//! The place of the resource that a reference keeps alive, and the proof, made when the library is
//! loaded, that the running emulator has it there.
//!
//! ```text
//!  reference   header | what it keeps | …         ordinary   header | odd | …
//!                           │
//!                           ▼
//!                     … | its type | numbers | … | the resource's value
//!                       ╰── TYPE ──╯         │
//!                       ╰──── VALUE ─────────╯   both counted from there
//! ```
//!
//! A reference that doesn't keep anything alive has the same header. In place of the address it has
//! a word that can't be an address. [`prove`] searches references of both sorts for the places of
//! the address, the type and the value. If it doesn't find them, or if a reference is of another
//! form, official functions are used.
//!
//! References also keep other objects alive (atomics, tables of `ets`). These have no type at that
//! place, but a pointer of the emulator's or a small number, which programs can't choose. For
//! counting, and for making a reference, the emulator treats all such objects alike, and so does
//! this library ([`object`]). They are counted as binaries are.

use crate::layout::{self, Counted, Numbers};
use crate::sys::external::{external_format, parse_reference};
use crate::sys::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The header of a reference that keeps something alive. If it isn't known, a value that no header
/// has.
static HEADER: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The distance between the address and the type, in bytes.
static TYPE: AtomicUsize = AtomicUsize::new(0);
/// The distance between the address and the value, in bytes.
static VALUE: AtomicUsize = AtomicUsize::new(0);

/// The index of the address among the words of a reference.
const ADDRESS: usize = 1;
/// The greatest distance between an address and a value, in bytes.
const FURTHEST: usize = 128;

/// The value of the resource of this type that the term refers to. `None` for any other term, and
/// if its place isn't known.
#[inline]
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
    // SAFETY:
    // 1. a boxed term of the running call points at its header;
    // 2. that of a reference is followed by an address, if its low bits say so;
    // 3. what lies there begins with the emulator's own words, then the type. `prove` has verified
    //    all three.
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

/// The distance between the address and the numbers of the reference, in bytes; 0 if not known.
static NUMBERS: AtomicUsize = AtomicUsize::new(0);

/// The object that a reference of this node keeps alive, and the numbers of the reference. `None`
/// for any other reference, and if the places aren't known. The object is counted as a binary is.
pub fn object(reference: Word) -> Option<(*mut Counted, Numbers)> {
    // Ordering: Relaxed, both, see `value`.
    let (header, to_numbers) = (
        HEADER.load(Ordering::Relaxed),
        NUMBERS.load(Ordering::Relaxed),
    );
    let header_at = layout::pointer(reference);
    // SAFETY: as in `value`; `prove_objects` has verified where the numbers are.
    unsafe {
        if to_numbers == 0 || *header_at != header {
            return None;
        }
        let address = *header_at.add(ADDRESS);
        let numbers = || *((address + to_numbers) as *const Numbers);
        (address & 7 == 0).then(|| (address as *mut Counted, numbers()))
    }
}

/// The object, as if it were a resource's value.
fn as_value(object: *mut Counted) -> *mut c_void {
    // Ordering: Relaxed, see `value`.
    let to_value = VALUE.load(Ordering::Relaxed);
    (object as usize + to_value) as *mut c_void
}

/// The reference to an object.
///
/// # Safety
/// `object` has returned it, and somebody holds a count of it during the call.
pub unsafe fn reference_to(env: *mut Env, object: *mut Counted) -> Word {
    // SAFETY: the emulator makes the references to all objects as those to resources, as
    // `prove_objects` has verified.
    unsafe { enif_make_resource(env, as_value(object)) }
}

/// Verifies what `object` returns: on the samples, and on a reference to atomics, which aren't a
/// resource. The emulator makes the same reference of it, and the object is counted as a binary is.
pub fn prove_objects(env: *mut Env, samples: &[Sample], atomics: Option<Word>) {
    let all = samples.iter().map(|sample| sample.word).chain(atomics);
    let all: Vec<Word> = all.filter(|&word| layout::is_boxed(word)).collect();
    if HEADER.load(Ordering::Relaxed) == usize::MAX || all.len() == samples.len() {
        return;
    }
    let numbers = |word| Some(external_format(env, word, parse_reference)?.2);
    // Between the address and the value, everything belongs to the sample's memory.
    let places = (8..VALUE.load(Ordering::Relaxed) - size_of::<Numbers>()).step_by(4);
    let found = places.into_iter().find(|&place| {
        // Ordering: Relaxed, as above.
        NUMBERS.store(place, Ordering::Relaxed);
        all.iter().all(|&word| {
            let seen = object(word).map(|object| object.1);
            numbers(word).is_some_and(|numbers| seen.is_some_and(|seen| numbers[..] == seen))
        })
    });
    let comes_back = |&word: &Word| {
        // SAFETY: the sample keeps the object alive.
        object(word).is_some_and(|(object, _)| unsafe {
            enif_is_identical(reference_to(env, object), word) != 0
        })
    };
    // The count is where that of a binary is, and can be taken and given back as that.
    let is_counted_as_binary = |&word: &Word| {
        // SAFETY: as above. The count that is taken is given back.
        object(word).is_some_and(|(object, _)| unsafe {
            let before = layout::count(object);
            layout::retain(object);
            let kept = layout::count(object);
            layout::release(object, std::ptr::null(), 0);
            (kept, layout::count(object)) == (before + 1, before)
        })
    };
    let is_counted_as_resource = |sample: &Sample| {
        // SAFETY: as above, of a resource.
        object(sample.word).is_some_and(|(object, _)| unsafe {
            let before = layout::count(object);
            enif_keep_resource(as_value(object));
            let kept = layout::count(object);
            enif_release_resource(as_value(object));
            (kept, layout::count(object)) == (before + 1, before)
        })
    };
    if found.is_none()
        || !layout::are_counts_known()
        || !all.iter().all(comes_back)
        || !all.iter().all(is_counted_as_binary)
        || !samples.iter().all(is_counted_as_resource)
    {
        NUMBERS.store(0, Ordering::Relaxed);
    }
}

/// A resource that was made as a sample: its term, its type, and its value.
pub struct Sample {
    /// The term.
    pub word: Word,
    /// The type.
    pub kind: *mut ResourceType,
    /// The value.
    pub value: *mut u8,
}

/// Finds the places in samples of several types.
pub fn prove(env: *mut Env, samples: &[Sample]) {
    let Some((header, to_type, to_value)) = find(samples) else {
        return;
    };
    // In references that don't keep anything alive, the word isn't an address.
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

/// The header, and the distances to the type and to the value. `None` unless they are the same for
/// all samples, and the samples have different types.
fn find(samples: &[Sample]) -> Option<(Word, usize, usize)> {
    let first = samples.first()?;
    if samples.iter().all(|sample| sample.kind == first.kind) {
        return None;
    }
    // 1. The word after the header is an address, and the value is after it, near by.
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
        // SAFETY: between the address and the value, which is after it and of the same piece of
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

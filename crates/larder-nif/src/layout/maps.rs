//! Small maps: the keys are a tuple of their own, the values follow in the order of the keys.
//!
//! ```text
//!  map     header | size | keys | value | value …
//!                             ╰──▶ arity | key | key …
//! ```
//!
//! `terms::trees` finds out the order of the keys, and the layout of larger maps.

use super::words::*;
use crate::sys::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The size of the largest map whose keys are in order.
pub const MOST_IN_ORDER: usize = 32;

/// The header of a small map. `None` if it isn't known.
#[inline]
pub fn flatmap_header() -> Option<Word> {
    // Ordering: Relaxed, as in `kind`.
    Some(FLATMAP.load(Ordering::Relaxed)).filter(|&header| header != 0)
}

/// The header of a small map; 0 if it isn't known.
static FLATMAP: AtomicUsize = AtomicUsize::new(0);

/// The keys of a small map and their values, in the emulator's order. They live as long as the
/// term. `None` for any other term.
#[inline]
pub fn flatmap<'a>(word: Word) -> Option<(&'a [Word], &'a [Word])> {
    // Ordering: Relaxed, as in `kind`.
    let header = FLATMAP.load(Ordering::Relaxed);
    if !is_boxed(word) || header == 0 {
        return None;
    }
    // SAFETY: a boxed term of the running call points at its header. That of a small map is
    // followed by its size, a tuple of its keys, and its values. `prove_flatmaps` has verified it.
    unsafe {
        if *pointer(word) != header {
            return None;
        }
        let (size, keys) = (*pointer(word).add(1), *pointer(word).add(2));
        let values = std::slice::from_raw_parts(pointer(word).add(3), size);
        Some((tuple(keys)?, values))
    }
}

/// Verifies the layout of small maps. If it isn't that of any known release, the emulator iterates
/// over them.
pub fn prove_flatmaps(env: *mut Env) {
    // The largest size is that of the largest map that this library writes.
    let samples = [0, 1, 3, 8, MOST_IN_ORDER as i64].map(|size| {
        let keys: Vec<Word> = (0..size).filter_map(small_word).collect();
        let values: Vec<Word> = keys.iter().map(|key| key + (1 << 10)).collect();
        let mut map = NIL;
        // SAFETY: `env` is the environment of the running load callback; the arrays have as many
        // words as said.
        unsafe {
            enif_make_map_from_arrays(env, keys.as_ptr(), values.as_ptr(), keys.len(), &mut map)
        };
        (map, keys, values)
    });
    // The header is the same for all sizes, and the size follows it.
    // SAFETY: a map that was just made is a boxed term.
    let header = unsafe { *pointer(samples[0].0) };
    // SAFETY: as above; after the header of a small map, of any layout, lie at least two words.
    let sizes = samples.iter().all(|(map, keys, _)| unsafe {
        *pointer(*map) == header && *pointer(*map).add(1) == keys.len()
    });
    if !sizes {
        return;
    }
    // Ordering: Relaxed, both, as in `kind`.
    FLATMAP.store(header, Ordering::Relaxed);
    let fits = samples
        .iter()
        .all(|(map, keys, values)| flatmap(*map) == Some((keys, values)));
    if !fits {
        FLATMAP.store(0, Ordering::Relaxed);
    }
}

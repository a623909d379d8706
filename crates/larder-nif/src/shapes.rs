//! In which order the emulator has the keys of small maps.
//!
//! Keys lie sorted in a small map, by an order that is the emulator's own (of atoms: by their text, or by their number, as releases differ). Rows of one
//! table mostly have the same few sets of keys, so what order a set of keys has is asked for once, and remembered by each thread:
//!
//! ```text
//!  stored   section  size  depends        places   2 0 1
//!  map      depends  section  size
//! ```
//!
//! Remembered are only keys that are atoms or small integers, which are words, and the same for ever.

use crate::layout;
use crate::sys::*;
use std::cell::RefCell;

/// The most pairs of a map that lies on a heap whole.
pub const MOST: usize = 32;

/// Sets of keys that a thread remembers.
const SHAPES: usize = 256;

/// A set of keys, in the order in which they were stored, and for each place in a map which of them is there.
struct Shape {
    count: usize,
    keys: [Word; MOST],
    order: [u8; MOST],
}

const UNKNOWN: Shape = Shape {
    count: 0,
    keys: [0; MOST],
    order: [0; MOST],
};

thread_local! {
    static KNOWN: RefCell<Option<Box<[Shape]>>> = const { RefCell::new(None) };
}

/// Brings keys and values, at most `MOST` of each, in the emulator's order. False, and nothing changed, if it isn't known.
#[inline]
pub fn sort(env: *mut Env, keys: &mut [Word], values: &mut [Word]) -> bool {
    if keys.len() < 2 {
        return true;
    }
    if !keys.iter().all(|&key| layout::is_immediate(key)) {
        return false;
    }
    KNOWN.with_borrow_mut(|known| {
        let known =
            known.get_or_insert_with(|| (0..SHAPES).map(|_| UNKNOWN).collect::<Box<[Shape]>>());
        let shape = &mut known[place_of(keys)];
        if (shape.count != keys.len() || shape.keys[..keys.len()] != *keys)
            && !learn(env, keys, shape)
        {
            return false;
        }
        permute(keys, &shape.order);
        permute(values, &shape.order);
        true
    })
}

#[inline]
fn place_of(keys: &[Word]) -> usize {
    let mix = |sum: u64, &key: &Word| {
        (sum.rotate_left(5) ^ key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    };
    (keys.iter().fold(0, mix) >> 56) as usize % SHAPES
}

#[inline]
fn permute(words: &mut [Word], order: &[u8; MOST]) {
    let mut before = [0; MOST];
    let before = &mut before[..words.len()];
    before.copy_from_slice(words);
    for (word, &from) in words.iter_mut().zip(order) {
        *word = before[usize::from(from)];
    }
}

/// Asks the emulator for the order of these keys, by a map from them to their places. False if it doesn't answer as expected.
#[cold]
#[inline(never)]
fn learn(env: *mut Env, keys: &[Word], shape: &mut Shape) -> bool {
    let places: Vec<Word> = (0..keys.len() as i64)
        .filter_map(layout::small_word)
        .collect();
    let mut map = layout::NIL;
    // SAFETY: both arrays have as many words as said; all are immediate terms.
    let made = unsafe {
        enif_make_map_from_arrays(env, keys.as_ptr(), places.as_ptr(), keys.len(), &mut map)
    };
    let Some((sorted, places)) = layout::flatmap(map).filter(|_| made != 0) else {
        return false;
    };
    let mut order = [0; MOST];
    for ((to, &place), &key) in order.iter_mut().zip(places).zip(sorted) {
        match layout::small(place).and_then(|place| usize::try_from(place).ok()) {
            Some(place) if keys.get(place) == Some(&key) => *to = place as u8,
            _ => return false,
        }
    }
    if sorted.len() != keys.len() {
        return false;
    }
    shape.count = keys.len();
    shape.keys[..keys.len()].copy_from_slice(keys);
    shape.order = order;
    true
}

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
//!
//! Who writes a map can guess its set of keys by their number and the first of them, and put each value in its place at once. Keys are then compared as they
//! are stored, and not made into words.

use crate::layout;
use crate::quick;
use crate::sys::*;
use larder_term::tags::SMALL;
use std::cell::RefCell;
use std::rc::Rc;

/// The most pairs of a map that lies on a heap whole.
pub const MOST: usize = 32;

/// Sets of keys that a thread remembers.
const SHAPES: usize = 256;
/// And guesses.
const GUESSES: usize = 64;

/// A key as it is stored, in at most eight bytes: these, low ones first, and how many. No key's begin with another's.
#[derive(Clone, Copy)]
pub struct Code {
    bytes: u64,
    len: u8,
}

impl Code {
    /// That of a key that is a small integer or an atom.
    fn of(env: *mut Env, key: Word) -> Option<Code> {
        let (tag, payload, used) = quick::word_parts(env, key)?;
        if used >= 8 {
            return None;
        }
        let unused = 64 - 8 * (1 + used as u32);
        Some(Code {
            bytes: (payload << 8 | u64::from(tag)) << unused >> unused,
            len: 1 + used as u8,
        })
    }

    /// The place behind the key, if it is what lies at this one.
    #[inline(always)]
    pub fn end(self, bytes: &[u8], at: usize) -> Option<usize> {
        let here = bytes.get(at..)?;
        let is_here = match here.first_chunk() {
            Some(&eight) => {
                let unused = 64 - 8 * u32::from(self.len);
                (u64::from_le_bytes(eight) ^ self.bytes) << (unused & 63) == 0
            }
            None => here.starts_with(&self.bytes.to_le_bytes()[..self.len.into()]),
        };
        is_here.then_some(at + usize::from(self.len))
    }
}

/// A set of keys.
pub struct Shape {
    count: usize,
    /// As they were stored.
    keys: [Word; MOST],
    /// As they are stored, if none takes more than eight bytes.
    codes: Option<[Code; MOST]>,
    /// For each place in a map, which of them is there.
    order: [u8; MOST],
    /// For each of them, its place in a map.
    places: [u8; MOST],
    /// As they are in a map.
    sorted: [Word; MOST],
}

impl Shape {
    /// The keys as they are stored, each with its place in a map.
    #[inline(always)]
    pub fn codes(&self) -> impl Iterator<Item = (Code, usize)> + '_ {
        let codes = self.codes.iter().flatten().take(self.count);
        codes
            .copied()
            .zip(self.places.iter().map(|&place| place.into()))
    }

    /// The keys as they are in a map.
    #[inline]
    pub fn sorted(&self) -> &[Word] {
        &self.sorted[..self.count]
    }
}

/// What a thread remembers.
struct Known {
    /// By all keys.
    shapes: Vec<Option<Rc<Shape>>>,
    /// By their number and the first: those met last. All have codes.
    guesses: [Option<Rc<Shape>>; GUESSES],
}

thread_local! {
    static KNOWN: RefCell<Known> = const {
        RefCell::new(Known {
            shapes: Vec::new(),
            guesses: [const { None }; GUESSES],
        })
    };
}

/// Where a guess is kept for maps of so many keys the first of which is stored like this: by its first byte, and the second if that isn't a value's.
#[inline]
fn guess_at(count: usize, first: u8, second: u8) -> usize {
    let second = if first >= SMALL { 0 } else { second };
    (usize::from(second) ^ usize::from(first).rotate_left(1) ^ count.rotate_left(3)) % GUESSES
}

/// The set of keys that was met last with as many keys and a first one such as that at the beginning of these bytes, perhaps.
#[inline]
pub fn guess(count: usize, bytes: &[u8]) -> Option<Rc<Shape>> {
    let &[first, second] = bytes.first_chunk()?;
    KNOWN.with_borrow(|known| {
        let shape = known.guesses[guess_at(count, first, second)].as_ref()?;
        (shape.count == count).then(|| Rc::clone(shape))
    })
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
        if known.shapes.is_empty() {
            known.shapes.resize_with(SHAPES, || None);
        }
        let slot = &mut known.shapes[place_of(keys)];
        let shape = match slot {
            Some(shape) if shape.keys[..shape.count] == *keys => shape,
            _ => match learn(env, keys) {
                Some(shape) => slot.insert(Rc::new(shape)),
                None => return false,
            },
        };
        if let Some([first, ..]) = &shape.codes {
            let [first, second, ..] = first.bytes.to_le_bytes();
            known.guesses[guess_at(keys.len(), first, second)] = Some(Rc::clone(shape));
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

/// Asks the emulator for the order of these keys, by a map from them to their places. None if it doesn't answer as expected.
#[cold]
#[inline(never)]
fn learn(env: *mut Env, keys: &[Word]) -> Option<Shape> {
    let numbers: Vec<Word> = (0..keys.len() as i64)
        .filter_map(layout::small_word)
        .collect();
    let mut map = layout::NIL;
    // SAFETY: both arrays have as many words as said; all are immediate terms.
    let made = unsafe {
        enif_make_map_from_arrays(env, keys.as_ptr(), numbers.as_ptr(), keys.len(), &mut map)
    };
    let (sorted, numbers) = layout::flatmap(map).filter(|_| made != 0)?;
    if sorted.len() != keys.len() {
        return None;
    }
    let mut shape = Shape {
        count: keys.len(),
        keys: [0; MOST],
        codes: Some([Code { bytes: 0, len: 1 }; MOST]),
        order: [0; MOST],
        places: [0; MOST],
        sorted: [0; MOST],
    };
    for (place, (&number, &key)) in numbers.iter().zip(sorted).enumerate() {
        let stored = usize::try_from(layout::small(number)?).ok()?;
        if keys.get(stored) != Some(&key) {
            return None;
        }
        match (&mut shape.codes, Code::of(env, key)) {
            (Some(codes), Some(code)) => codes[stored] = code,
            _ => shape.codes = None,
        }
        (shape.keys[stored], shape.sorted[place]) = (key, key);
        (shape.order[place], shape.places[stored]) = (stored as u8, place as u8);
    }
    Some(shape)
}

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

use crate::key_sets::KeySets;
use crate::layout;
use crate::quick;
use crate::sys::*;
use larder_term::tags::SMALL;
use std::cell::RefCell;
use std::rc::Rc;

/// The most pairs of a map that lies on a heap whole.
pub const MOST: usize = 32;

/// Guesses that a thread remembers.
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

/// A set of keys, in the order in which they are stored.
pub struct Shape {
    keys: Box<[StoredKey]>,
    /// As they are in a map.
    sorted: Box<[Word]>,
    /// Whether each has a code.
    is_coded: bool,
}

/// A key of a set.
#[derive(Clone, Copy)]
pub struct StoredKey {
    /// As it is stored, if the whole set has codes.
    pub code: Code,
    /// Its place in a map.
    pub place: u8,
    /// As it was stored.
    pub word: Word,
}

impl Shape {
    /// The keys as they are stored.
    #[inline(always)]
    pub fn keys(&self) -> &[StoredKey] {
        &self.keys
    }

    /// The keys as they are in a map.
    #[inline]
    pub fn sorted(&self) -> &[Word] {
        &self.sorted
    }
}

/// What a thread remembers.
struct Known {
    /// By all keys.
    shapes: KeySets<Shape>,
    /// By their number and the first: those met last. All have codes.
    guesses: [Option<Rc<Shape>>; GUESSES],
}

thread_local! {
    static KNOWN: RefCell<Known> = const {
        RefCell::new(Known {
            shapes: KeySets::new(),
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
        (shape.keys.len() == count).then(|| Rc::clone(shape))
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
        let Some(shape) = known.shapes.of(keys, || learn(env, keys)) else {
            return false;
        };
        if let Some(first) = shape.keys.first().filter(|_| shape.is_coded) {
            let [first, second, ..] = first.code.bytes.to_le_bytes();
            known.guesses[guess_at(keys.len(), first, second)] = Some(Rc::clone(shape));
        }
        keys.copy_from_slice(&shape.sorted);
        let mut before = [0; MOST];
        let before = &mut before[..values.len()];
        before.copy_from_slice(values);
        for (key, &value) in shape.keys.iter().zip(&*before) {
            values[usize::from(key.place)] = value;
        }
        true
    })
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
    let nothing = Code { bytes: 0, len: 1 };
    let mut stored = vec![None; keys.len()];
    let mut is_coded = true;
    for (place, (&number, &word)) in numbers.iter().zip(sorted).enumerate() {
        let at = usize::try_from(layout::small(number)?).ok()?;
        if keys.get(at) != Some(&word) {
            return None;
        }
        let code = Code::of(env, word);
        is_coded &= code.is_some();
        stored[at] = Some(StoredKey {
            code: code.unwrap_or(nothing),
            place: place as u8,
            word,
        });
    }
    Some(Shape {
        keys: stored.into_iter().collect::<Option<_>>()?,
        sorted: sorted.into(),
        is_coded,
    })
}

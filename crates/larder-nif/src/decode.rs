//! Stored bytes to terms of the BEAM, without recursion.
//!
//! Bytes are in prefix order: a container's head, then its children. Words of finished terms wait in `done`; an open container knows where its
//! children begin there and how many are still to come. When the last has come they are replaced by the one word of the container.
//!
//! ```text
//!  {a, [1, 2]}        open             done
//!  TUPLE 2            {2 left}
//!  a                  {1 left}         a
//!  LIST 2             {1 left} [2 left]  a
//!  1 2                {1 left} [0 left]  a 1 2    ─▶ {0 left}  a [1,2]  ─▶  {a,[1,2]}
//! ```
//!
//! Binaries that are kept outside come back without a copy: the term refers to a resource that holds the blob.

use crate::sys::*;
use crate::{atoms, identifiers, layout, resource};
use larder::Stored;
use larder_term::blob::Blob;
use larder_term::object::ObjectView;
use larder_term::tags::*;
use larder_term::{little_endian, skip, TermRef, View};
use smallvec::SmallVec;

/// The blobs that binaries of the host refer to.
pub static BLOBS: resource::Kind<Blob> = resource::Kind::new();

enum Shape {
    Tuple,
    List,
    Improper,
    Map,
}

struct Open {
    shape: Shape,
    left: usize,
    first: usize,
}

/// Words of terms that are done.
pub type Words = SmallVec<[Word; 32]>;

/// The term that the bytes are.
#[inline]
pub fn term(env: *mut Env, term: TermRef<'_>) -> Word {
    let bytes = term.bytes();
    match shallow(env, bytes, 0, DEPTH) {
        Some((word, _)) => word,
        None => {
            let mut done = Words::new();
            nested(env, bytes, 0, &mut done);
            done[0]
        }
    }
}

/// An object as a tuple.
#[inline]
pub fn object(env: *mut Env, object: &ObjectView<'_>) -> Word {
    shallow_object(env, object).unwrap_or_else(|| deep_object(env, object))
}

/// An object that was found by a key: `asked`, as the caller wrote it.
#[inline]
pub fn stored(env: *mut Env, asked: Word, stored: Stored<'_>) -> Word {
    // Compact terms hold no floats, so what was asked for is what was stored. Others might hold on to something large, and are made anew.
    if layout::is_compact(asked) {
        if let Some((arity, others)) = stored.beside_key() {
            if let Some(word) = beside_key(env, asked, stored.keypos(), arity, others) {
                return word;
            }
        }
    }
    object(env, &stored.view())
}

/// A tuple of few elements, none of which is deep, whose key is known.
#[inline]
fn beside_key(
    env: *mut Env,
    key: Word,
    keypos: usize,
    arity: usize,
    others: &[u8],
) -> Option<Word> {
    if (arity, keypos) == (2, 1) {
        let (value, _) = shallow(env, others, 0, DEPTH)?;
        return Some(make_tuple(env, &[key, value]));
    }
    row(env, arity, keypos, key, others)
}

/// An object of few elements, none of which is deep.
#[inline]
fn shallow_object(env: *mut Env, object: &ObjectView<'_>) -> Option<Word> {
    let (key, _) = shallow(env, object.key().bytes(), 0, DEPTH)?;
    row(
        env,
        object.arity(),
        object.keypos(),
        key,
        object.others_bytes(),
    )
}

/// The tuple of a key and the other elements' bytes, if it is short and none of them is deep.
#[inline]
fn row(env: *mut Env, arity: usize, keypos: usize, key: Word, others: &[u8]) -> Option<Word> {
    let (mut words, mut at) = ([0; FEW], 0);
    let words = words.get_mut(..arity)?;
    for (i, word) in words.iter_mut().enumerate() {
        if i + 1 == keypos {
            *word = key;
        } else {
            (*word, at) = shallow(env, others, at, DEPTH)?;
        }
    }
    Some(make_tuple(env, words))
}

fn deep_object(env: *mut Env, object: &ObjectView<'_>) -> Word {
    let mut done = Words::new();
    let keypos = object.keypos();
    let (bytes, mut at) = (object.others_bytes(), 0);
    for position in 1..=object.arity() {
        if position == keypos {
            nested(env, object.key().bytes(), 0, &mut done);
        } else {
            at = nested(env, bytes, at, &mut done);
        }
    }
    make_tuple(env, &done)
}

/// The most children of a container that is made on the stack.
const FEW: usize = 16;
/// The most levels below a term that are made on the stack, each by a call within a call.
const DEPTH: u32 = 4;

/// The term at `at` and the place behind it, if it has few children and levels.
#[inline(always)]
fn shallow(env: *mut Env, bytes: &[u8], at: usize, depth: u32) -> Option<(Word, usize)> {
    match bytes[at] {
        TUPLE | MAP | LIST if bytes[at + 1] != 0 => flat(env, bytes, at, depth.checked_sub(1)?),
        _ => leaf(env, bytes, at),
    }
}

/// The container at `at`, if it has few children and they have few levels.
fn flat(env: *mut Env, bytes: &[u8], at: usize, depth: u32) -> Option<(Word, usize)> {
    let (tag, count) = (bytes[at], usize::from(bytes[at + 1]));
    if count > FEW {
        return None;
    }
    let mut at = at + 2;
    // The values of a map lie behind room for its keys.
    let mut words = [0; 2 * FEW];
    let total = if tag == MAP { 2 * count } else { count };
    for i in 0..total {
        let place = if tag == MAP { i % 2 * FEW + i / 2 } else { i };
        (words[place], at) = shallow(env, bytes, at, depth)?;
    }
    let (words, values) = (&words[..count], &words[FEW..]);
    let word = match tag {
        MAP => make_map(env, words, &values[..count]),
        TUPLE => make_tuple(env, words),
        // SAFETY: the words are terms of `env`.
        _ => unsafe { enif_make_list_from_array(env, words.as_ptr(), count as u32) },
    };
    Some((word, at))
}

fn make_tuple(env: *mut Env, elements: &[Word]) -> Word {
    // SAFETY: the words are terms of `env`, which is the running call's or a message's.
    unsafe { enif_make_tuple_from_array(env, elements.as_ptr(), elements.len() as u32) }
}

/// Puts the term at `at` on `done`; gives the place behind it.
fn nested(env: *mut Env, bytes: &[u8], mut at: usize, done: &mut Words) -> usize {
    let mut open: SmallVec<[Open; 16]> = SmallVec::new();
    loop {
        match leaf(env, bytes, at) {
            Some((word, next)) => {
                done.push(word);
                at = next;
            }
            None => {
                let (container, next) = begin(bytes, at, done.len());
                at = next;
                open.push(container);
            }
        }
        // The top container has one child more, and perhaps all; then it is a child itself.
        loop {
            let Some(top) = open.last_mut() else {
                return at;
            };
            if done.len() < top.first + top.left {
                break;
            }
            let (first, word) = (top.first, build(env, &top.shape, &done[top.first..]));
            open.pop();
            done.truncate(first);
            done.push(word);
        }
    }
}

/// The LEB128 number at `at`, and the place behind it.
#[inline]
fn length(bytes: &[u8], mut at: usize) -> (u64, usize) {
    let (mut n, mut shift) = (0, 0);
    loop {
        let byte = bytes[at];
        n |= u64::from(byte & 0x7F) << shift;
        at += 1;
        if byte < 0x80 {
            return (n, at);
        }
        shift += 7;
    }
}

/// Opens the container at `at`; its children begin at the place given.
fn begin(bytes: &[u8], at: usize, first: usize) -> (Open, usize) {
    let (n, next) = length(bytes, at + 1);
    let n = n as usize;
    let (shape, left) = match bytes[at] {
        TUPLE => (Shape::Tuple, n),
        LIST => (Shape::List, n),
        ILIST => (Shape::Improper, n + 1),
        _ => (Shape::Map, 2 * n),
    };
    (Open { shape, left, first }, next)
}

fn build(env: *mut Env, shape: &Shape, children: &[Word]) -> Word {
    match shape {
        Shape::Tuple => make_tuple(env, children),
        // SAFETY: the words are terms of `env`.
        Shape::List => unsafe {
            enif_make_list_from_array(env, children.as_ptr(), children.len() as u32)
        },
        Shape::Improper => children
            .iter()
            .rev()
            .copied()
            .reduce(|tail, head| {
                // SAFETY: as above.
                unsafe { enif_make_list_cell(env, head, tail) }
            })
            .unwrap_or(layout::NIL),
        Shape::Map => build_map(env, children),
    }
}

fn build_map(env: *mut Env, pairs: &[Word]) -> Word {
    let keys: SmallVec<[Word; 32]> = pairs.iter().step_by(2).copied().collect();
    let values: SmallVec<[Word; 32]> = pairs.iter().skip(1).step_by(2).copied().collect();
    make_map(env, &keys, &values)
}

fn make_map(env: *mut Env, keys: &[Word], values: &[Word]) -> Word {
    let mut map = layout::NIL;
    // SAFETY: the arrays have as many words as said, all terms of `env`.
    let made = unsafe {
        enif_make_map_from_arrays(env, keys.as_ptr(), values.as_ptr(), keys.len(), &mut map)
    };
    if made != 0 {
        return map;
    }
    // Two keys that differ for us and not for the host (0.0 and -0.0 before OTP 27): the later wins.
    // SAFETY: as above; the first call makes the map that the others extend.
    unsafe {
        map = enif_make_new_map(env);
        for (key, value) in keys.iter().zip(values) {
            enif_make_map_put(env, map, *key, *value, &mut map);
        }
    }
    map
}

/// The term at `at` and the place behind it, unless it is a container with children.
#[inline(always)]
fn leaf(env: *mut Env, bytes: &[u8], at: usize) -> Option<(Word, usize)> {
    let tag = bytes[at];
    if tag >= SMALL {
        return Some(((tag as Word - SMALL as Word) << 4 | 0xF, at + 1));
    }
    match tag {
        INT1..=INT8 => Some(integer(env, bytes, at)),
        ATOM1..=ATOM4 => Some(atom(env, bytes, at)),
        TUPLE => (bytes[at + 1] == 0).then(|| (make_tuple(env, &[]), at + 2)),
        LIST | ILIST => None,
        NIL => Some((layout::NIL, at + 1)),
        BIN => Some(binary(env, bytes, at)),
        FLOAT => Some(float(env, bytes, at)),
        MAP => (bytes[at + 1] == 0).then(|| (build_map(env, &[]), at + 2)),
        _ => Some(rare_leaf(env, bytes, at)),
    }
}

/// The signed number that `length` bytes at `at` are, 1 to 8 of them.
#[inline(always)]
fn number(bytes: &[u8], at: usize, length: usize) -> i64 {
    match bytes.get(at..).and_then(|bytes| bytes.first_chunk::<8>()) {
        Some(&word) => {
            let spare = 64 - 8 * length as u32;
            i64::from_le_bytes(word) << spare >> spare
        }
        None => little_endian(&bytes[at..at + length]),
    }
}

#[inline(always)]
fn integer(env: *mut Env, bytes: &[u8], at: usize) -> (Word, usize) {
    let length = (bytes[at] - INT1 + 1) as usize;
    let end = at + 1 + length;
    let value = number(bytes, at + 1, length);
    let word = layout::small_word(value).unwrap_or_else(|| {
        // SAFETY: `env` is the running call's or a message's.
        unsafe { enif_make_int64(env, value) }
    });
    (word, end)
}

#[inline(always)]
fn atom(env: *mut Env, bytes: &[u8], at: usize) -> (Word, usize) {
    let length = (bytes[at] - ATOM1 + 1) as usize;
    let end = at + 1 + length;
    // As many bits as were asked for, and no sign.
    let id = number(bytes, at + 1, length) as u64 & (u64::MAX >> (64 - 8 * length as u32));
    let word = atoms::id_to_word(env, id as u32);
    (word.unwrap_or_else(|| atoms::UNDEFINED.word()), end)
}

#[inline]
fn float(env: *mut Env, bytes: &[u8], at: usize) -> (Word, usize) {
    let bits = little_endian(&bytes[at + 1..at + 9]) as u64;
    // SAFETY: `env` is the running call's or a message's.
    (
        unsafe { enif_make_double(env, f64::from_bits(bits)) },
        at + 9,
    )
}

fn binary(env: *mut Env, bytes: &[u8], at: usize) -> (Word, usize) {
    let (n, start) = length(bytes, at + 1);
    let end = start + n as usize;
    (copied_binary(env, &bytes[start..end]), end)
}

fn copied_binary(env: *mut Env, bytes: &[u8]) -> Word {
    let mut word = layout::NIL;
    // SAFETY: the call gives memory for as many bytes as asked, which nobody else sees yet.
    unsafe {
        let data = enif_make_new_binary(env, bytes.len(), &mut word);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
    }
    word
}

/// A reference to a resource of ours, to look at.
pub fn sample_reference(env: *mut Env) -> Word {
    BLOBS.make(Blob::from_slice(&[])).term(env)
}

/// A binary that refers to the blob.
fn shared_binary(env: *mut Env, blob: Blob) -> Word {
    let (data, size) = (blob.as_ptr(), blob.len());
    let held = BLOBS.make(blob);
    // SAFETY: the bytes are the blob's, which the resource holds; a blob neither moves nor changes.
    unsafe { held.binary(env, data, size) }
}

#[cold]
fn rare_leaf(env: *mut Env, bytes: &[u8], at: usize) -> (Word, usize) {
    // A fun is a leaf here, free variables included: it comes back as a whole.
    let end = at + skip(&bytes[at..]);
    // SAFETY: bytes of a table or of an encoder, whose handles are held while they are visited; one whole term.
    let term = unsafe { TermRef::trusted(&bytes[at..end]) };
    let word = match (term.blob(), term.view()) {
        (Some(blob), _) => Some(shared_binary(env, blob)),
        (_, View::Pid(pid)) if pid.node == larder_term::Node::Local => {
            identifiers::local_pid_word(env, pid.id, pid.serial)
        }
        _ => identifiers::decode(env, term),
    };
    (word.unwrap_or_else(|| atoms::UNDEFINED.word()), end)
}

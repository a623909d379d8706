//! Terms of the BEAM to stored bytes, without recursion.
//!
//! An open container on the stack knows where its next child comes from: a tuple from an array of words, a list from its rest, a map from the
//! emulator's iterator. Lists are walked twice, since the encoding begins with the length and says whether they are proper.

use crate::sys::*;
use crate::{atoms, identifiers, layout};
use larder::Table;
use larder_term::object::{ObjectBuf, ObjectEncoder};
use larder_term::MapToken;
use larder_term::{Encoder, Mode};
use smallvec::SmallVec;

pub use identifiers::Unreadable;

enum Open {
    Tuple {
        next: *const Word,
        left: usize,
    },
    List {
        rest: Word,
        left: usize,
        improper: bool,
    },
    Map(Box<MapWalk>),
}

/// A walk over a map's pairs.
struct MapWalk {
    env: *mut Env,
    iterator: MapIterator,
    token: Option<MapToken>,
    left: usize,
    value: Option<Word>,
}

impl MapWalk {
    fn new(env: *mut Env, map: Word, token: MapToken, left: usize) -> Option<Box<MapWalk>> {
        let mut walk = Box::new(MapWalk {
            env,
            iterator: MapIterator::empty(),
            token: Some(token),
            left,
            value: None,
        });
        // SAFETY: `env` and the term are the running call's; the iterator stays where it is until it is destroyed.
        let made =
            unsafe { enif_map_iterator_create(env, map, &mut walk.iterator, MAP_ITERATOR_FIRST) };
        if made == 0 {
            std::mem::forget(walk);
            return None;
        }
        Some(walk)
    }

    fn next(&mut self) -> Option<Word> {
        if let Some(value) = self.value.take() {
            return Some(value);
        }
        self.left = self.left.checked_sub(1)?;
        let (mut key, mut value) = (0, 0);
        // SAFETY: the iterator was created for a map of the running call and not destroyed.
        unsafe {
            if enif_map_iterator_get_pair(self.env, &mut self.iterator, &mut key, &mut value) == 0 {
                return None;
            }
            enif_map_iterator_next(self.env, &mut self.iterator);
        }
        self.value = Some(value);
        Some(key)
    }
}

impl Drop for MapWalk {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once, in the call that made it.
        unsafe { enif_map_iterator_destroy(self.env, &mut self.iterator) }
    }
}

/// Pushes one term.
#[inline]
pub fn term(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Result<(), Unreadable> {
    if let Some(value) = layout::small(word) {
        out.int(value);
    } else if layout::is_atom(word) {
        out.atom(atoms::from_word(env, word));
    } else if word == layout::NIL {
        out.nil();
    } else {
        return nested(env, word, out);
    }
    Ok(())
}

fn nested(env: *mut Env, root: Word, out: &mut Encoder<'_>) -> Result<(), Unreadable> {
    let mut open: SmallVec<[Open; 8]> = SmallVec::new();
    let mut next = Some(root);
    while let Some(word) = next {
        if let Some(container) = one(env, word, out)? {
            open.push(container);
        }
        next = following(&mut open, out)?;
    }
    Ok(())
}

/// The next child of the innermost container that has one; containers that have none are closed.
fn following(
    open: &mut SmallVec<[Open; 8]>,
    out: &mut Encoder<'_>,
) -> Result<Option<Word>, Unreadable> {
    while let Some(top) = open.last_mut() {
        let child = match top {
            Open::Tuple { left: 0, .. } => None,
            Open::Tuple { next, left } => {
                // SAFETY: `left` words of the tuple are still at `next`, and the tuple lives as long as the call.
                let (word, after) = unsafe { (**next, next.add(1)) };
                (*next, *left) = (after, *left - 1);
                Some(word)
            }
            Open::List {
                rest,
                left,
                improper,
            } => list_child(rest, left, improper)?,
            Open::Map(walk) => walk.next(),
        };
        if child.is_some() {
            return Ok(child);
        }
        if let Some(Open::Map(mut walk)) = open.pop() {
            if let Some(token) = walk.token.take() {
                out.end_map(token).map_err(|_| Unreadable)?;
            }
        }
    }
    Ok(None)
}

fn list_child(
    rest: &mut Word,
    left: &mut usize,
    improper: &mut bool,
) -> Result<Option<Word>, Unreadable> {
    if *left > 0 {
        let (head, tail) = layout::cell(*rest).ok_or(Unreadable)?;
        (*rest, *left) = (tail, *left - 1);
        return Ok(Some(head));
    }
    Ok(std::mem::take(improper).then_some(*rest))
}

/// Pushes a leaf, or a container's head.
fn one(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Result<Option<Open>, Unreadable> {
    if let Some(value) = layout::small(word) {
        out.int(value);
        return Ok(None);
    }
    if layout::is_atom(word) {
        out.atom(atoms::from_word(env, word));
        return Ok(None);
    }
    // Asked for the type of a kind of term that it was not written for (OTP 29's records), the emulator ends the node.
    if layout::is_strange(word) {
        return identifiers::encode_through_etf(env, word, out).map(|()| None);
    }
    // SAFETY: `env` and the term are the running call's, and of a kind that the emulator has a type for.
    match unsafe { enif_term_type(env, word) } {
        term_type::TUPLE => Ok(begin_tuple(word, out)),
        term_type::LIST => Ok(begin_list(word, out)),
        term_type::MAP => begin_map(env, word, out),
        term_type::BITSTRING => bitstring(env, word, out).map(|()| None),
        term_type::INTEGER => integer(env, word, out).map(|()| None),
        term_type::FLOAT => float(env, word, out).map(|()| None),
        term_type::PID => identifiers::encode_pid(env, word, out).map(|()| None),
        term_type::REFERENCE => identifiers::encode_reference(env, word, out).map(|()| None),
        _ => identifiers::encode_through_etf(env, word, out).map(|()| None),
    }
}

fn begin_tuple(word: Word, out: &mut Encoder<'_>) -> Option<Open> {
    let elements = layout::tuple(word)?;
    out.begin_tuple(elements.len());
    Some(Open::Tuple {
        next: elements.as_ptr(),
        left: elements.len(),
    })
}

fn begin_list(word: Word, out: &mut Encoder<'_>) -> Option<Open> {
    let (mut left, mut rest) = (0, word);
    while let Some((_, tail)) = layout::cell(rest) {
        (left, rest) = (left + 1, tail);
    }
    if left == 0 {
        out.nil();
        return None;
    }
    let improper = rest != layout::NIL;
    if improper {
        out.begin_improper(left);
    } else {
        out.begin_list(left);
    }
    Some(Open::List {
        rest: word,
        left,
        improper,
    })
}

fn begin_map(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Result<Option<Open>, Unreadable> {
    let mut size = 0;
    // SAFETY: `env` and the term are the running call's.
    if unsafe { enif_get_map_size(env, word, &mut size) } == 0 {
        return Err(Unreadable);
    }
    let token = out.begin_map(size);
    MapWalk::new(env, word, token, size)
        .map(|walk| Some(Open::Map(walk)))
        .ok_or(Unreadable)
}

/// The bytes of a binary; None if the term is no whole number of bytes. They live as long as the running call.
#[inline]
pub fn binary_bytes<'a>(env: *mut Env, word: Word) -> Option<&'a [u8]> {
    match layout::heap_binary(word) {
        Some(bytes) => Some(bytes),
        None => any_binary(env, word),
    }
}

fn any_binary<'a>(env: *mut Env, word: Word) -> Option<&'a [u8]> {
    let mut binary = Binary::empty();
    // SAFETY: `env` and the term are the running call's.
    if unsafe { enif_inspect_binary(env, word, &mut binary) } == 0 {
        return None;
    }
    if binary.size == 0 {
        return Some(&[]);
    }
    // SAFETY: on success there are `size` bytes at `data`, alive as long as the term and the call.
    Some(unsafe { std::slice::from_raw_parts(binary.data, binary.size) })
}

fn bitstring(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Result<(), Unreadable> {
    match binary_bytes(env, word) {
        Some(bytes) => {
            out.binary(bytes);
            Ok(())
        }
        None => identifiers::encode_through_etf(env, word, out),
    }
}

fn integer(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Result<(), Unreadable> {
    let mut value = 0;
    // SAFETY: `env` and the term are the running call's.
    if unsafe { enif_get_int64(env, word, &mut value) } != 0 {
        out.int(value);
        return Ok(());
    }
    identifiers::encode_through_etf(env, word, out)
}

fn float(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Result<(), Unreadable> {
    let mut value = 0.0;
    // SAFETY: `env` and the term are the running call's.
    if unsafe { enif_get_double(env, word, &mut value) } == 0 {
        return Err(Unreadable);
    }
    out.float(value);
    Ok(())
}

/// What a term is not: an object of the table.
#[derive(Debug)]
pub struct NoObject;

/// Encodes a tuple as an object of the table.
#[inline]
pub fn object(
    env: *mut Env,
    word: Word,
    table: &Table,
    buffer: &mut ObjectBuf,
) -> Result<(), NoObject> {
    let elements = layout::tuple(word).ok_or(NoObject)?;
    let keypos = table.keypos();
    let key = *elements.get(keypos - 1).ok_or(NoObject)?;
    let mut enc = ObjectEncoder::new(
        buffer,
        elements.len(),
        keypos,
        table.key_form(),
        table.compressed(),
    );
    enc.key(|out| term(env, key, out)).map_err(|_| NoObject)?;
    enc.elements(elements.len() - 1, |out| {
        elements
            .iter()
            .enumerate()
            .filter(|(i, _)| i + 1 != keypos)
            .try_for_each(|(_, &word)| term(env, word, out))
    })
    .map_err(|_| NoObject)?;
    enc.finish().then_some(()).ok_or(NoObject)
}

/// Encodes a term, in a mode, to the end of a buffer.
pub fn to_bytes(
    env: *mut Env,
    word: Word,
    mode: Mode,
    out: &mut Vec<u8>,
) -> Result<(), Unreadable> {
    term(env, word, &mut Encoder::new(out, mode))
}

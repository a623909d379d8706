//! Stored bytes to terms of the BEAM, without recursion.
//!
//! Bytes are in prefix order: a container's head, then its children. So a container's memory is taken when its head is met, and each child is written
//! where it will lie; only the containers that wait for more children are on a stack.
//!
//! ```text
//!  {a, [1, 2]}        on the heap                                   waiting
//!  TUPLE 2            {•, •}                                        {_, _}
//!  a                  {a, •}                                        {a, _}
//!  LIST 2             {a, •}                                        {a, list} [_, _]
//!  1                  {a, [1 | •]}                                  {a, list} [1, _]
//!  2                  {a, [1 | [2 | []]]}                           nothing
//! ```
//!
//! Small containers of a few levels, as nearly all are, are written by calls within calls, without that stack.
//!
//! Binaries that are kept outside come back without a copy: the term refers to a resource that holds the blob.

use crate::heap::{Apart, Heap, Pairs, Slot, Slots};
use crate::sys::*;
use crate::{atoms, identifiers, layout, resource, shapes};
use larder::Stored;
use larder_term::blob::Blob;
use larder_term::object::ObjectView;
use larder_term::tags::*;
use larder_term::{little_endian, skip, TermRef, View};
use smallvec::SmallVec;

/// The blobs that binaries of the host refer to.
pub static BLOBS: resource::Kind<Blob> = resource::Kind::new();

/// The term that the bytes are.
#[inline]
pub fn term(heap: &Heap, term: TermRef<'_>) -> Word {
    Slot::root(|slot| {
        one(heap, term.bytes(), 0, slot);
    })
}

/// An object as a tuple.
#[inline]
pub fn object(heap: &Heap, object: &ObjectView<'_>) -> Word {
    let key = term(heap, object.key());
    let (arity, others) = (object.arity(), object.others_bytes());
    row(heap, arity, object.keypos(), key, others)
}

/// An object that was found by a key: `asked`, as the caller wrote it.
#[inline]
pub fn stored(heap: &Heap, asked: Word, stored: Stored<'_>) -> Word {
    // Compact terms hold no floats, so what was asked for is what was stored. Others might hold on to something large, and are made anew.
    if layout::is_compact(asked) {
        if let Some((arity, others)) = stored.beside_key() {
            return row(heap, arity, stored.keypos(), asked, others);
        }
    }
    object(heap, &stored.view())
}

/// The term that has so many before it in a run of bytes.
#[inline]
pub fn nth(heap: &Heap, bytes: &[u8], before: usize) -> Word {
    let at = (0..before).fold(0, |at, _| at + skip(&bytes[at..]));
    Slot::root(|slot| {
        one(heap, bytes, at, slot);
    })
}

/// The arity of a row, whether its exact key lies in front, and the bytes of the terms: see [`larder_term::object::plain_terms`].
pub type Plain<'b> = (usize, bool, &'b [u8]);

/// A list of the one row that was found by the key `asked`.
#[inline(always)]
pub fn listed(heap: &Heap, keypos: usize, asked: Word, (arity, exact, terms): Plain<'_>) -> Word {
    let (key, at) = match exact {
        true => exact_key(heap, terms),
        // A compact term holds no floats: what was asked for is what was stored.
        false => (asked, 0),
    };
    let (word, slots) = heap.tuple_in_list(arity);
    fill_row(heap, slots, (keypos, key), (terms, at));
    word
}

/// The key in front of a row's other elements, and where these begin.
#[inline(never)]
fn exact_key(heap: &Heap, terms: &[u8]) -> (Word, usize) {
    let mut end = 0;
    let key = Slot::root(|slot| end = one(heap, terms, 0, slot));
    (key, end)
}

/// The tuple of a key and the other elements' bytes.
#[inline(always)]
pub fn row(heap: &Heap, arity: usize, keypos: usize, key: Word, others: &[u8]) -> Word {
    let (word, slots) = heap.tuple(arity);
    fill_row(heap, slots, (keypos, key), (others, 0));
    word
}

/// Fills the slots of a row with its key and the other elements, whose bytes begin at a place.
#[inline(always)]
fn fill_row(
    heap: &Heap,
    mut slots: Slots,
    (keypos, key): (usize, Word),
    (others, mut at): (&[u8], usize),
) {
    let mut before_key = keypos;
    while let Some(slot) = slots.next() {
        before_key = before_key.wrapping_sub(1);
        if before_key == 0 {
            slot.fill(key);
        } else {
            at = one(heap, others, at, slot);
        }
    }
}

/// The most levels below a term that are written by calls within calls.
const DEPTH: u32 = 6;
/// The most cells of a list that is written so: for longer ones blocks of memory are better.
const CELLS: usize = 64;

/// Puts the term at `at` in its place; gives the place behind it in the bytes.
#[inline(always)]
fn one(heap: &Heap, bytes: &[u8], at: usize, slot: Slot) -> usize {
    child(heap, bytes, at, slot, DEPTH)
}

/// As `one`, for a term that has no more than so many levels below it, or else is left to `nested`.
#[inline(always)]
fn child(heap: &Heap, bytes: &[u8], at: usize, slot: Slot, depth: u32) -> usize {
    let (word, end) = match bytes[at] {
        tag @ SMALL.. => (small(tag), at + 1),
        INT1..=INT8 => integer(heap.env(), bytes, at),
        ATOM1..=ATOM4 => one_atom(heap.env(), bytes, at),
        BIN => binary(heap, bytes, at),
        _ => return other(heap, bytes, at, slot, depth),
    };
    slot.fill(word);
    end
}

/// As `atom`, in one place for all that have no other call.
#[inline(never)]
fn one_atom(env: *mut Env, bytes: &[u8], at: usize) -> (Word, usize) {
    atom(env, bytes, at)
}

/// As `child`, for what is neither an integer nor an atom nor a binary.
#[inline(never)]
fn other(heap: &Heap, bytes: &[u8], at: usize, place: Slot, depth: u32) -> usize {
    if let Some((word, end)) = leaf(heap, bytes, at) {
        place.fill(word);
        return end;
    }
    let (count, mut next) = length(bytes, at + 1);
    let count = count as usize;
    let Some(depth) = depth.checked_sub(1) else {
        return nested(heap, bytes, at, place);
    };
    match bytes[at] {
        TUPLE => {
            let (word, mut slots) = heap.tuple(count);
            place.fill(word);
            while let Some(slot) = slots.next() {
                next = child(heap, bytes, next, slot, depth);
            }
            next
        }
        LIST if count <= CELLS => {
            let (word, mut cells) = heap.cells(count);
            place.fill(word);
            while let Some(head) = cells.next() {
                next = child(heap, bytes, next, head, depth);
            }
            next
        }
        MAP => match heap.open_map(count) {
            Some((word, pairs)) => {
                place.fill(word);
                map(heap, bytes, next, (pairs, place), depth)
            }
            None => nested(heap, bytes, at, place),
        },
        _ => nested(heap, bytes, at, place),
    }
}

/// The pairs of a map, from `start` on.
fn map(
    heap: &Heap,
    bytes: &[u8],
    start: usize,
    (pairs, place): (Pairs, Slot),
    depth: u32,
) -> usize {
    let (met, mut next) = guessed(heap, bytes, start, pairs, depth);
    if met == pairs.count() {
        return next;
    }
    let mut number = 2 * met;
    while let Some(slot) = pairs.slot(number) {
        next = child(heap, bytes, next, slot, depth);
        number += 1;
    }
    end_map(heap, pairs, place, None);
    next
}

/// As `map`, as long as the keys are those that are expected after the first: each value is written in its place at once. How many pairs that were, and the
/// place behind them in the bytes; if not all, then keys and values stand as they are stored.
#[inline]
fn guessed(heap: &Heap, bytes: &[u8], start: usize, pairs: Pairs, depth: u32) -> (usize, usize) {
    let Some(shape) = shapes::guess(pairs.count(), &bytes[start..]) else {
        return (0, start);
    };
    let mut next = start;
    for (met, key) in shape.keys().iter().enumerate() {
        let place = pairs.value(key.place.into());
        let Some((value, slot)) = key.code.end(bytes, next).zip(place) else {
            pairs.unsort(&shape.keys()[..met]);
            return (met, next);
        };
        next = child(heap, bytes, value, slot, depth);
    }
    pairs.fill_keys(shape.sorted());
    (pairs.count(), next)
}

/// A container that waits for children.
enum Open {
    Tuple(Slots),
    /// So many cells to come, and where the next one's place is.
    List {
        left: usize,
        improper: bool,
        tail: Slot,
    },
    /// How many keys and values were met, and where the map goes: it is there already, or its words are apart.
    Map {
        pairs: Pairs,
        met: usize,
        place: Slot,
        apart: Option<Box<Apart>>,
    },
}

/// As `child`, for containers of any size and any number of levels.
#[inline(never)]
fn nested(heap: &Heap, bytes: &[u8], mut at: usize, place: Slot) -> usize {
    let mut open: SmallVec<[Open; 8]> = SmallVec::new();
    let mut next = Some(place);
    while let Some(slot) = next {
        match leaf(heap, bytes, at) {
            Some((word, end)) => {
                slot.fill(word);
                at = end;
            }
            None => {
                let container;
                (container, at) = begin(heap, bytes, at, slot);
                open.push(container);
            }
        }
        next = following(heap, &mut open);
    }
    at
}

/// The slot of the next child; containers that have no more are ended.
#[inline]
fn following(heap: &Heap, open: &mut SmallVec<[Open; 8]>) -> Option<Slot> {
    while let Some(top) = open.last_mut() {
        let slot = match top {
            Open::Tuple(slots) => slots.next(),
            Open::List {
                left: 0,
                improper,
                tail,
            } => std::mem::take(improper).then_some(*tail),
            Open::List { left, tail, .. } => {
                let (cell, head, rest) = heap.open_cell();
                tail.fill(cell);
                (*tail, *left) = (rest, *left - 1);
                Some(head)
            }
            Open::Map { pairs, met, .. } => {
                *met += 1;
                pairs.slot(*met - 1)
            }
        };
        if slot.is_some() {
            return slot;
        }
        if let Some(Open::Map {
            pairs,
            place,
            apart,
            ..
        }) = open.pop()
        {
            end_map(heap, pairs, place, apart);
        }
    }
    None
}

#[inline]
fn end_map(heap: &Heap, pairs: Pairs, place: Slot, apart: Option<Box<Apart>>) {
    match apart {
        Some(words) => place.fill(words.map(heap)),
        None => {
            if let Some(other) = heap.end_map(pairs) {
                place.fill(other);
            }
        }
    }
}

/// Opens the container at `at`, which goes to `place`; its children begin at the place given.
#[inline]
fn begin(heap: &Heap, bytes: &[u8], at: usize, place: Slot) -> (Open, usize) {
    let (count, next) = length(bytes, at + 1);
    let count = count as usize;
    let container = match bytes[at] {
        TUPLE => {
            let (word, slots) = heap.tuple(count);
            place.fill(word);
            Open::Tuple(slots)
        }
        MAP => open_map(heap, count, place),
        tag => {
            // Where no cell follows there is `[]`, or the tail.
            place.fill(layout::NIL);
            Open::List {
                left: count,
                improper: tag == ILIST,
                tail: place,
            }
        }
    };
    (container, next)
}

#[inline]
fn open_map(heap: &Heap, count: usize, place: Slot) -> Open {
    let (pairs, apart) = match heap.open_map(count) {
        Some((word, pairs)) => {
            place.fill(word);
            (pairs, None)
        }
        None => {
            let (words, pairs) = Apart::new(count);
            (pairs, Some(Box::new(words)))
        }
    };
    Open::Map {
        pairs,
        met: 0,
        place,
        apart,
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

/// The term at `at` and the place behind it, unless it is a container with children.
#[inline(always)]
fn leaf(heap: &Heap, bytes: &[u8], at: usize) -> Option<(Word, usize)> {
    let (env, tag) = (heap.env(), bytes[at]);
    match tag {
        ATOM1..=ATOM4 => Some(atom(env, bytes, at)),
        SMALL.. => Some((small(tag), at + 1)),
        INT1..=INT8 => Some(integer(env, bytes, at)),
        BIN => Some(binary(heap, bytes, at)),
        LIST | ILIST => None,
        NIL => Some((layout::NIL, at + 1)),
        FLOAT => Some(float(heap, bytes, at)),
        TUPLE | MAP => (bytes[at + 1] == 0).then(|| (empty(env, tag), at + 2)),
        _ => Some(rare_leaf(env, bytes, at)),
    }
}

/// The integer that a tag is.
#[inline(always)]
fn small(tag: u8) -> Word {
    Word::from(tag - SMALL) << 4 | 0xF
}

/// The tuple or the map without anything in it.
#[cold]
fn empty(env: *mut Env, tag: u8) -> Word {
    // SAFETY: `env` is the running call's or a message's; nothing is read of an array without elements.
    unsafe {
        if tag == MAP {
            enif_make_new_map(env)
        } else {
            enif_make_tuple_from_array(env, std::ptr::null(), 0)
        }
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
fn float(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let bits = little_endian(&bytes[at + 1..at + 9]) as u64;
    (heap.float(f64::from_bits(bits)), at + 9)
}

#[inline(never)]
fn binary(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let (n, start) = length(bytes, at + 1);
    let end = start + n as usize;
    (heap.binary(bytes, start, end), end)
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

//! Stored bytes to terms of the BEAM, in one pass.
//!
//! Bytes are in prefix order: a container's head, then its children. So a container's memory is
//! taken when its head is met, and each child is written where it will lie; only the containers
//! that wait for more children are on a stack.
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
//! # Which function reads what
//!
//! ```text
//!  child     integer of 64 bits, atom, binary in the bytes                   inlined everywhere
//!  uncommon  tuple, proper list, [], float                                   one call
//!  rare      large integer, identifier, bitstring, blob, map, tree, fun, …   two calls
//!  deep      whatever lies below 64 levels, and lists of over 1,000 cells    a stack of its own
//!  official  what has no proved layout                                       the external format
//! ```
//!
//! So a rare kind costs where it is met, and the common ones don't notice it.
//!
//! # Invariants
//!
//! 1. The bytes are whole terms that an encoder wrote: lengths and tags are trusted.
//! 2. A slot is filled once, with a term whose memory was taken before: the heap is a row of whole
//!    terms whenever the emulator looks (see [`heap`](crate::heap)).
//! 3. Each function gives the place behind its term in the bytes, where the next one begins.
//! 4. Calls within calls are [`DEPTH`] deep at the most, so no term exhausts the thread's stack.
//!
//! Binaries that are kept outside come back without a copy (see [`binaries`]).

mod tree;

use super::{atoms, binaries, compact, funs, official, trees};
use crate::heap::{Heap, PendingMap, Slot, Slots};
use crate::layout;
use crate::sys::*;
use larder::Stored;
use larder_term::object::ObjectView;
use larder_term::tags::*;
use larder_term::{head, little_endian, skip, TermRef};

/// The term that the bytes are.
#[inline]
pub fn term(heap: &Heap, term: TermRef<'_>) -> Word {
    Slot::root(|slot| term_at(heap, term, slot))
}

/// Puts the term that the bytes are in its place.
#[inline]
pub fn term_at(heap: &Heap, term: TermRef<'_>, place: Slot) {
    outermost(heap, term.bytes(), 0, place);
}

/// An object as a tuple.
#[inline]
pub fn object(heap: &Heap, object: &ObjectView<'_>) -> Word {
    Slot::root(|place| object_at(heap, object, place))
}

#[inline]
fn object_at(heap: &Heap, object: &ObjectView<'_>, place: Slot) {
    let (arity, others) = (object.arity(), object.others_bytes());
    let key = term(heap, object.key());
    row(heap, arity, (object.keypos(), key), others, place);
}

/// Puts an object in its place that was found by a key: `asked`, as the caller wrote it.
#[inline(always)]
pub fn stored(heap: &Heap, asked: Word, stored: Stored<'_>, place: Slot) {
    // What was asked for is what was stored, if it is compact. Others might hold on to something
    // large, and are made anew.
    if compact::is_compact(asked) {
        if let Some((arity, others)) = stored.beside_key() {
            return row(heap, arity, (stored.keypos(), asked), others, place);
        }
    }
    stored_with_key(heap, stored, place);
}

#[inline(never)]
fn stored_with_key(heap: &Heap, stored: Stored<'_>, place: Slot) {
    object_at(heap, &stored.view(), place);
}

/// Puts the tuple of a key and the other elements' bytes in its place.
#[inline(always)]
fn row(heap: &Heap, arity: usize, (keypos, key): (usize, Word), others: &[u8], place: Slot) {
    // The tuple has its place first, so whatever is made next lies behind it.
    let (word, mut slots) = heap.tuple(arity);
    place.fill(word);
    let (mut at, mut before_key) = (0, keypos);
    while let Some(slot) = slots.next() {
        // The key has no bytes among the others: it takes the slot of its position.
        before_key = before_key.wrapping_sub(1);
        if before_key == 0 {
            slot.fill(key);
        } else {
            at = outermost(heap, others, at, slot);
        }
    }
}

/// The most levels of containers that are written by calls within calls.
const DEPTH: u32 = 64;
/// The most cells of a list whose memory is taken at once.
const CELLS: usize = 1000;

/// Puts the term at `at` in its place; gives the place behind it in the bytes.
#[inline(always)]
fn outermost(heap: &Heap, bytes: &[u8], at: usize, slot: Slot) -> usize {
    child(heap, bytes, at, slot, DEPTH)
}

/// As `outermost`, for a term that has no more than so many levels of containers, or else is left
/// to `deep`.
#[inline(always)]
pub fn child(heap: &Heap, bytes: &[u8], at: usize, slot: Slot, depth: u32) -> usize {
    let (word, end) = match bytes[at] {
        // The tag says the kind and, of a small number, its value: one comparison for most
        // elements.
        tag @ SMALL.. => (small(tag), at + 1),
        INT1..=INT8 => integer(heap, bytes, at),
        ATOM1..=ATOM4 => atom_called(heap.env(), bytes, at),
        BIN => binary(heap, bytes, at),
        _ => return uncommon(heap, bytes, at, slot, depth),
    };
    slot.fill(word);
    end
}

/// As `atom`, in one place for all that have no other call.
#[inline(never)]
fn atom_called(env: *mut Env, bytes: &[u8], at: usize) -> (Word, usize) {
    atom(env, bytes, at)
}

/// As `child`, for what is neither an integer of 64 bits nor an atom nor a binary that lies in the
/// bytes. Not inlined, so that `child` stays small where it is.
#[inline(never)]
fn uncommon(heap: &Heap, bytes: &[u8], at: usize, place: Slot, depth: u32) -> usize {
    match bytes[at] {
        TUPLE if bytes[at + 1] != 0 => tuple(heap, bytes, at, place, depth),
        LIST => list(heap, bytes, at, place, depth),
        NIL => {
            place.fill(layout::NIL);
            at + 1
        }
        FLOAT => {
            let (word, end) = float(heap, bytes, at);
            place.fill(word);
            end
        }
        _ => rare(heap, bytes, at, place, depth),
    }
}

#[inline]
fn tuple(heap: &Heap, bytes: &[u8], at: usize, place: Slot, depth: u32) -> usize {
    let Some(depth) = depth.checked_sub(1) else {
        return deep(heap, bytes, at, place);
    };
    // A level is left. The head says how many words to take.
    let (arity, mut next) = varint(bytes, at + 1);
    // The container is whole for the collector from here on, but for slots that hold `[]`.
    let (word, mut slots) = heap.tuple(arity as usize);
    place.fill(word);
    while let Some(slot) = slots.next() {
        next = child(heap, bytes, next, slot, depth);
    }
    next
}

#[inline(never)]
fn list(heap: &Heap, bytes: &[u8], at: usize, place: Slot, depth: u32) -> usize {
    let (count, mut next) = varint(bytes, at + 1);
    // A list of more cells would take a large run of memory at once: it grows cell by cell.
    let depth = match depth.checked_sub(1) {
        Some(depth) if count as usize <= CELLS => depth,
        _ => return deep(heap, bytes, at, place),
    };
    // All cells in one run, each linked to the next: only heads are left to be filled.
    let (word, mut cells) = heap.cells(count as usize);
    place.fill(word);
    while let Some(head) = cells.next() {
        // Most lists are texts.
        next = match bytes[next] {
            tag @ SMALL.. => {
                head.fill(small(tag));
                next + 1
            }
            _ => child(heap, bytes, next, head, depth),
        };
    }
    next
}

/// As `uncommon`, for rarer kinds.
#[inline(never)]
fn rare(heap: &Heap, bytes: &[u8], at: usize, place: Slot, depth: u32) -> usize {
    if let Some((word, end)) = leaf(heap, bytes, at) {
        place.fill(word);
        return end;
    }
    let Some(depth) = depth.checked_sub(1) else {
        return deep(heap, bytes, at, place);
    };
    let (count, mut next) = varint(bytes, at + 1);
    let count = count as usize;
    match bytes[at] {
        // An improper list: as a proper one, and its tail last.
        ILIST if count <= CELLS => {
            let (word, mut cells, tail) = heap.improper(count);
            place.fill(word);
            while let Some(head) = cells.next() {
                next = child(heap, bytes, next, head, depth);
            }
            child(heap, bytes, next, tail, depth)
        }
        // Small maps lie in the order of their encoding, if that order was proved; else the
        // emulator has to sort the pairs.
        MAP => match heap.map(count).filter(|_| trees::is_order_known()) {
            Some((word, mut keys, mut values)) => {
                place.fill(word);
                while let Some((key, value)) = keys.next().zip(values.next()) {
                    next = child(heap, bytes, next, key, depth);
                    next = child(heap, bytes, next, value, depth);
                }
                next
            }
            None => deep(heap, bytes, at, place),
        },
        TREE_MAP => {
            // The shape of the tree comes first, then the pairs in the order in which the tree has
            // them.
            let (shape, start) = varint(bytes, next);
            let end = start + shape as usize;
            let shape = (bytes, &bytes[start..end]);
            tree::make(heap, shape, (count, end), place, depth)
                .unwrap_or_else(|| deep(heap, bytes, at, place))
        }
        FUN => fun(heap, bytes, at, place, depth),
        _ => deep(heap, bytes, at, place),
    }
}

fn fun(heap: &Heap, bytes: &[u8], at: usize, place: Slot, depth: u32) -> usize {
    let mut next = head(bytes, at).0;
    let Some((word, mut slots)) = funs::open(heap, &bytes[at..next]) else {
        return fill_official(heap, bytes, at, place);
    };
    place.fill(word);
    while let Some(slot) = slots.next() {
        next = child(heap, bytes, next, slot, depth);
    }
    next
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
    /// Keys and values, and where the map goes when it is made of them.
    Map {
        slots: Slots,
        words: PendingMap,
        place: Slot,
    },
}

/// As `child`, for containers of any size and any number of levels.
#[cold]
#[inline(never)]
fn deep(heap: &Heap, bytes: &[u8], mut at: usize, place: Slot) -> usize {
    let mut waiting: Vec<Open> = Vec::new();
    let mut next = Some(place);
    while let Some(slot) = next {
        // Each turn writes one head to the slot that is next, and opens what has children.
        if bytes[at] == FUN {
            at = fill_official(heap, bytes, at, slot);
        } else if let Some((word, end)) = leaf(heap, bytes, at) {
            slot.fill(word);
            at = end;
        } else {
            let container;
            (container, at) = open(heap, bytes, at, slot);
            waiting.push(container);
        }
        // The innermost container that waits says where the next term goes.
        next = next_slot(heap, &mut waiting);
    }
    at
}

/// The slot of the next child; containers that have no more are ended.
fn next_slot(heap: &Heap, waiting: &mut Vec<Open>) -> Option<Slot> {
    while let Some(top) = waiting.last_mut() {
        let slot = match top {
            Open::Tuple(slots) | Open::Map { slots, .. } => slots.next(),
            Open::List {
                left: 0,
                improper,
                tail,
                // No cell is left: an improper list has its tail yet to come.
            } => std::mem::take(improper).then_some(*tail),
            Open::List { left, tail, .. } => {
                // One more cell, hung behind the last.
                let (cell, head, rest) = heap.open_cell();
                tail.fill(cell);
                (*tail, *left) = (rest, *left - 1);
                Some(head)
            }
        };
        if slot.is_some() {
            return slot;
        }
        // It is full. A map is made of its pairs only now, by the emulator.
        if let Some(Open::Map { words, place, .. }) = waiting.pop() {
            place.fill(words.map(heap));
        }
    }
    None
}

/// Opens the container at `at`, which goes to `place`; its children begin at the place given.
fn open(heap: &Heap, bytes: &[u8], at: usize, place: Slot) -> (Open, usize) {
    let (next, children) = head(bytes, at);
    let children = children as usize;
    let container = match bytes[at] {
        TUPLE => {
            let (word, slots) = heap.tuple(children);
            place.fill(word);
            Open::Tuple(slots)
        }
        MAP | TREE_MAP => {
            let (words, slots) = PendingMap::new(children / 2);
            Open::Map {
                slots,
                words,
                place,
            }
        }
        tag => {
            // Where no cell follows there is `[]`, or the tail.
            place.fill(layout::NIL);
            let improper = tag == ILIST;
            Open::List {
                left: children - usize::from(improper),
                improper,
                tail: place,
            }
        }
    };
    (container, next)
}

/// The LEB128 number at `at`, and the place behind it.
#[inline(always)]
fn varint(bytes: &[u8], mut at: usize) -> (u64, usize) {
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

/// The term at `at` and the place behind it, unless it is a container with children, or a fun.
#[inline(always)]
fn leaf(heap: &Heap, bytes: &[u8], at: usize) -> Option<(Word, usize)> {
    let (env, tag) = (heap.env(), bytes[at]);
    match tag {
        ATOM1..=ATOM4 => Some(atom(env, bytes, at)),
        SMALL.. => Some((small(tag), at + 1)),
        INT1..=INT8 => Some(integer(heap, bytes, at)),
        BIN => Some(binary(heap, bytes, at)),
        LIST | ILIST | FUN | TREE_MAP => None,
        NIL => Some((layout::NIL, at + 1)),
        FLOAT => Some(float(heap, bytes, at)),
        TUPLE | MAP => (bytes[at + 1] == 0).then(|| (empty(env, tag), at + 2)),
        REF => Some(reference(heap, bytes, at)),
        PID => Some(pid(heap, bytes, at)),
        PORT => Some(port(heap, bytes, at)),
        BLOB => Some(blob(heap, bytes, at)),
        BIG_POS | BIG_NEG => Some(large_integer(heap, bytes, at)),
        BITS => Some(bits(heap, bytes, at)),
        _ => Some(official(heap, bytes, at)),
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
    // SAFETY: `env` is the running call's or a message's; nothing is read of an array without
    // elements.
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
            // Eight bytes in one load; the shifts drop those behind and extend the sign.
            let spare = 64 - 8 * length as u32;
            i64::from_le_bytes(word) << spare >> spare
        }
        // Too near the end of the bytes for such a load.
        None => little_endian(&bytes[at..at + length]),
    }
}

#[inline(always)]
fn integer(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let length = (bytes[at] - INT1 + 1) as usize;
    let end = at + 1 + length;
    let value = number(bytes, at + 1, length);
    (
        layout::small_word(value).unwrap_or_else(|| boxed_int(heap, value)),
        end,
    )
}

#[inline(never)]
fn boxed_int(heap: &Heap, value: i64) -> Word {
    heap.int(value)
}

#[inline(never)]
fn large_integer(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let (n, start) = varint(bytes, at + 1);
    let end = start + n as usize;
    match heap.integer(bytes[at] == BIG_NEG, &bytes[start..end]) {
        Some(word) => (word, end),
        None => official(heap, bytes, at),
    }
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
    let bits = number(bytes, at + 1, 8) as u64;
    (heap.float(f64::from_bits(bits)), at + 9)
}

#[inline(never)]
fn binary(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let (n, start) = varint(bytes, at + 1);
    let end = start + n as usize;
    (heap.binary(bytes, start, end), end)
}

#[inline(never)]
fn bits(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    const WHOLE: usize = 64;
    let (count, start) = varint(bytes, at + 1);
    let (whole, more) = (count as usize / 8, count as usize % 8);
    let end = start + whole + 1;
    // Over 64 bytes the whole would be a counted binary, which the emulator makes.
    let made = layout::part_header().filter(|_| whole < WHOLE);
    let word = made.and_then(|_| {
        // The bytes, and a part of them that says how many bits count.
        let binary = heap.binary(bytes, start, end);
        heap.bits(binary, whole, more)
    });
    match word {
        Some(word) => (word, end),
        None => official(heap, bytes, at),
    }
}

#[inline(never)]
fn reference(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let (count, start) = (usize::from(bytes[at + 1]), at + 2);
    let end = start + 4 * count;
    let number = |i: usize| number(bytes, start + 4 * i, 4) as u32;
    let numbers = [number(0), number(1), number(2)];
    // One that may keep something alive has other words.
    let is_plain = count == numbers.len() && !layout::may_be_magic(&numbers);
    match is_plain.then(|| heap.reference(numbers)).flatten() {
        Some(word) => (word, end),
        None => official(heap, bytes, at),
    }
}

#[inline(never)]
fn pid(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let (id, next) = varint(bytes, at + 1);
    let (serial, end) = varint(bytes, next);
    let word = layout::local_pid_word(heap.env(), id as u32, serial as u32);
    (word.unwrap_or_else(|| atoms::UNDEFINED.word()), end)
}

#[inline(never)]
fn port(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let (number, end) = varint(bytes, at + 1);
    let number = u32::try_from(number).ok();
    match number.and_then(|number| layout::ports()?.word(number, 0)) {
        Some(word) => (word, end),
        None => official(heap, bytes, at),
    }
}

#[inline(never)]
fn blob(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let (len, next) = varint(bytes, at + 1);
    let end = next + HANDLE;
    // SAFETY: as in `official`.
    let term = unsafe { TermRef::trusted(&bytes[at..end]) };
    let word = binaries::term(heap.env(), term, len as usize);
    (word.unwrap_or_else(|| atoms::UNDEFINED.word()), end)
}

/// Puts a term that official functions make in its place; gives the place behind it.
#[cold]
#[inline(never)]
fn fill_official(heap: &Heap, bytes: &[u8], at: usize, place: Slot) -> usize {
    let (word, end) = official(heap, bytes, at);
    place.fill(word);
    end
}

/// A term that official functions make, with all that is in it.
#[cold]
#[inline(never)]
fn official(heap: &Heap, bytes: &[u8], at: usize) -> (Word, usize) {
    let end = at + skip(&bytes[at..]);
    // SAFETY: bytes of a table or of an encoder, whose handles are held while they are visited; one
    // whole term.
    let term = unsafe { TermRef::trusted(&bytes[at..end]) };
    let word = official::decode(heap.env(), term);
    (word.unwrap_or_else(|| atoms::UNDEFINED.word()), end)
}

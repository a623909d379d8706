//! Stored bytes to terms of the BEAM, in one pass.
//!
//! The encoding is in prefix order: a container's head is followed by its children. A container is
//! therefore allocated when its head is read, and each child is written straight into its slot.
//! Only the containers that still lack children are on a stack.
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
//! # Which function decodes what
//!
//! ```text
//!  step      integers of 64 bits, atoms, floats, []                        inline in `fill`'s loop
//!  tuple, list, binary, pid                                                one call
//!  rare      large integer, identifier, bitstring, blob, map, tree, fun, … two calls
//!  deep      terms below 64 levels, improper lists of over 1,000 cells     a stack of its own
//!  official  kinds of unverified layout                                      the external format
//! ```
//!
//! A rare kind thus takes no registers from the common ones. A row is a run of terms, and the
//! elements of a tuple, of a list and of a map are runs within it. `fill`'s loop is instantiated
//! once for each layout of a run's slots, so that its state stays in registers.
//!
//! # Invariants
//!
//! * **ND1** The bytes are whole terms that an encoder wrote, so lengths and tags are trusted.
//! * **ND2** A slot is filled once, with a term that is already allocated. The heap thus consists
//!   of whole terms whenever the emulator inspects it (see [`heap`](crate::heap)).
//! * **ND3** Each function returns a reader at the end of its term, where the next one begins.
//! * **ND4** The recursion is at most [`DEPTH`] levels deep, and 32 more in a term whose parts a
//!   program has found. So no term exhausts the thread's stack.
//!
//! Binaries that are kept outside of tables are returned without a copy (see [`binaries`]).

mod grouped;
mod reader;
mod tree;

use super::{atoms, binaries, compact, foreign as foreign_terms, funs, official, trees};
use crate::heap::{Heap, Pairs, PendingMap, Slot, Slots, MAX_HEAP_BINARY};
use crate::layout::node::make_local_reference;
use crate::layout::{self, Counted};
use crate::resource;
use crate::sys::*;
use larder::host::{Stored, StoredKey};
use larder_matchspec::{BuiltPart, BuiltTerm};
use larder_term::object::{stored_term, ObjectView};
use larder_term::tags::*;
use larder_term::{fixed_len, head, TermRef};
use reader::Reader;

/// Decodes a term.
#[inline]
pub fn term(heap: &Heap, term: TermRef<'_>) -> Word {
    Slot::root(|slot| term_at(heap, term, slot))
}

/// Decodes a term into a slot.
#[inline]
pub fn term_at(heap: &Heap, term: TermRef<'_>, place: Slot) {
    // SAFETY: a `TermRef` is one whole term, whose handles are held while it is borrowed.
    let input = unsafe { Reader::of(term.bytes()) };
    heap.copied.take();
    fill_one(heap, input, place, DEPTH);
}

/// Makes the term whose parts a program has found, in a slot. Returns how many bytes were decoded.
#[inline]
pub fn built(heap: &Heap, term: &mut BuiltTerm<'_, '_>, place: Slot) -> usize {
    heap.copied.take();
    built_parts(heap, term, std::iter::once(place))
}

/// Makes a term of the next parts in each of these slots.
#[inline(never)]
fn built_parts(
    heap: &Heap,
    term: &mut BuiltTerm<'_, '_>,
    places: impl Iterator<Item = Slot>,
) -> usize {
    let mut bytes = 0;
    for place in places {
        bytes += match term.next_part() {
            BuiltPart::Term(run) => {
                // SAFETY: a `TermRun` begins with a whole term of an encoder's, whose handles are
                // held while it is borrowed.
                let input = unsafe {
                    Reader::of(match fixed_len(run.bytes()[0]) {
                        // Of a row, binaries of the result alone share a copy (see `grouped`).
                        0 => term.with_next(run),
                        _ => run.bytes(),
                    })
                };
                input.distance(step(heap, input, place, DEPTH))
            }
            // These call each other once for each level of containers, of which there are few.
            BuiltPart::Tuple(arity) => {
                let (word, slots) = heap.tuple(arity);
                place.fill(word);
                built_parts(heap, term, slots)
            }
            BuiltPart::List(count) => {
                let (word, cells) = heap.cells(count);
                place.fill(word);
                built_parts(heap, term, cells)
            }
        };
    }
    bytes
}

/// Decodes an object as a tuple.
#[inline]
pub fn object(heap: &Heap, object: &ObjectView<'_>) -> Word {
    Slot::root(|place| object_at(heap, object, place))
}

/// Decodes an object as a tuple, into a slot.
#[inline(never)]
pub fn object_at(heap: &Heap, object: &ObjectView<'_>, place: Slot) {
    // SAFETY: the key is one whole term. As in `row`, the view has the other elements.
    let (key, mut input) = unsafe {
        let key = Reader::of(object.key().bytes());
        (key, Reader::of(object.others_bytes()))
    };
    // The tuple is allocated first, and its elements follow it on the heap.
    let (word, mut slots) = heap.tuple(object.arity());
    place.fill(word);
    heap.copied.take();
    // The key isn't stored among the other elements.
    if object.keypos() > 1 {
        input = fill(heap, input, slots.first(object.keypos() - 1), DEPTH);
    }
    if let Some(slot) = slots.next() {
        step(heap, key, slot, DEPTH);
    }
    for slot in slots {
        input = step(heap, input, slot, DEPTH);
    }
}

/// Decodes an object that a scan has found, into a slot.
#[inline(always)]
pub fn found(heap: &Heap, stored: Stored<'_>, place: Slot) {
    let Some((arity, others)) = stored.beside_key() else {
        return stored_with_key(heap, stored, place);
    };
    // The tuple is allocated first, and its elements follow it on the heap.
    let (word, mut slots) = heap.tuple(arity);
    place.fill(word);
    // SAFETY: as in `row`.
    let mut input = unsafe { Reader::of(others) };
    heap.copied.take();
    if stored.keypos() > 1 {
        input = fill(heap, input, slots.first(stored.keypos() - 1), DEPTH);
    }
    if let Some(slot) = slots.next() {
        found_key_at(heap, stored, slot);
    }
    for slot in slots {
        input = step(heap, input, slot, DEPTH);
    }
}

/// Decodes the key of an object, which isn't in its value, into a slot.
#[inline(always)]
fn found_key_at(heap: &Heap, stored: Stored<'_>, place: Slot) {
    match stored.term_key() {
        Some(key) => {
            // SAFETY: a `TermRef` is one whole term, whose handles are held while it is borrowed.
            let input = unsafe { Reader::of(key.bytes()) };
            step(heap, input, place, DEPTH);
        }
        None => place.fill(found_key(heap, stored.into_key())),
    }
}

/// Decodes the key of an object.
#[inline(always)]
pub fn found_key(heap: &Heap, key: StoredKey<'_>) -> Word {
    // An integer is made directly, without the decoder, and so are most binaries.
    if let Some(n) = key.int() {
        return heap.int(n);
    }
    other_key(heap, key)
}

/// As `found_key`, for a key that isn't an integer.
#[inline(never)]
fn other_key(heap: &Heap, key: StoredKey<'_>) -> Word {
    match key.binary() {
        Some(bytes) => heap.binary(bytes, bytes.len()),
        None => term(heap, key.term()),
    }
}

/// Decodes an object into a slot. The object was found by the key `caller_key`, a term of the
/// caller.
#[inline(always)]
pub fn stored(heap: &Heap, caller_key: Word, stored: Stored<'_>, place: Slot) {
    // If the caller's key is compact, it is identical to the stored one and is put into the tuple
    // as it is. Any other key might keep something large alive and is decoded anew.
    if compact::is_compact(caller_key) {
        if let Some((arity, others)) = stored.beside_key() {
            return row(heap, arity, stored.keypos(), caller_key, others, place);
        }
    }
    stored_with_key(heap, stored, place);
}

#[inline(never)]
fn stored_with_key(heap: &Heap, stored: Stored<'_>, place: Slot) {
    object_at(heap, &stored.view(), place);
}

/// Makes the tuple of a key and the other elements, and puts it into a slot.
#[inline]
fn row(heap: &Heap, arity: usize, keypos: usize, key: Word, others: &[u8], place: Slot) {
    // The tuple is allocated first, and its elements follow it on the heap.
    let (word, mut slots) = heap.tuple(arity);
    place.fill(word);
    // SAFETY: an object's view has its elements but the key, as whole terms, and their handles are
    // held while it is borrowed. No more of them are read than the arity says.
    let mut input = unsafe { Reader::of(others) };
    heap.copied.take();
    // The bytes don't contain the key, which is put between the elements before and after it.
    if keypos > 1 {
        input = fill(heap, input, slots.first(keypos - 1), DEPTH);
    }
    if let Some(slot) = slots.next() {
        slot.fill(key);
    }
    fill(heap, input, slots, DEPTH);
}

/// The most levels of containers that are decoded recursively.
const DEPTH: u32 = 64;
/// The most cells of a list that are allocated at once.
const CELLS: usize = 1000;

/// Decodes a term into each of these slots.
#[inline(never)]
fn fill<'b>(
    heap: &Heap,
    mut input: Reader<'b>,
    places: impl Iterator<Item = Slot>,
    depth: u32,
) -> Reader<'b> {
    for place in places {
        input = step(heap, input, place, depth);
    }
    input
}

/// As `fill`, for one term.
#[inline(never)]
fn fill_one<'b>(heap: &Heap, input: Reader<'b>, place: Slot, depth: u32) -> Reader<'b> {
    step(heap, input, place, depth)
}

/// Decodes the next term into a slot. Its containers are decoded recursively for `depth` levels and
/// by `deep` below that.
#[inline(always)]
fn step<'b>(heap: &Heap, input: Reader<'b>, place: Slot, depth: u32) -> Reader<'b> {
    let (word, rest) = match input.byte(0) {
        // The tag of a number below 128 includes the value.
        tag @ SMALL.. => (Word::from(tag - SMALL) << 4 | 0xF, input.after(1)),
        tag @ INT1..=INT8 => {
            let (value, rest) = input.integer(tag);
            // A value that is no small integer of the emulator's, which has 60 bits, lies on the
            // heap.
            let word = layout::small_word(value).unwrap_or_else(|| boxed_int(heap, value));
            (word, rest)
        }
        tag @ ATOM1..=ATOM4 => {
            let (id, rest) = input.atom(tag);
            (atoms::id_to_word(heap.env(), id), rest)
        }
        NIL => (layout::NIL, input.after(1)),
        FLOAT => {
            let (bits, rest) = input.float();
            (heap.float(f64::from_bits(bits as u64)), rest)
        }
        BIN => return binary(heap, input, place),
        PID => return pid(heap, input, place),
        LIST => return list(heap, input, place, depth),
        // The empty tuple may lie anywhere, so the emulator makes it.
        TUPLE if input.byte(1) != 0 => return tuple(heap, input, place, depth),
        _ => return rare(heap, input, place, depth),
    };
    place.fill(word);
    rest
}

#[inline(never)]
fn tuple<'b>(heap: &Heap, input: Reader<'b>, place: Slot, depth: u32) -> Reader<'b> {
    let Some(depth) = depth.checked_sub(1) else {
        return deep(heap, input, place);
    };
    let (arity, input) = input.varint(1);
    // The slots hold `[]` until they are filled, so the tuple is valid for the collector at once.
    let (word, slots) = heap.tuple(arity as usize);
    place.fill(word);
    fill(heap, input, slots, depth)
}

#[inline(never)]
fn list<'b>(heap: &Heap, input: Reader<'b>, place: Slot, depth: u32) -> Reader<'b> {
    let Some(depth) = depth.checked_sub(1) else {
        return deep(heap, input, place);
    };
    let (count, rest) = input.varint(1);
    if count as usize > CELLS {
        return long_list(heap, rest, count as usize, place, depth);
    }
    // All cells are allocated in one run and linked to each other. Only the heads are left to fill.
    let (word, cells) = heap.cells(count as usize);
    place.fill(word);
    fill(heap, rest, cells, depth)
}

/// Decodes the elements of a list that would need a large contiguous allocation.
#[inline(never)]
fn long_list<'b>(
    heap: &Heap,
    mut input: Reader<'b>,
    mut count: usize,
    mut place: Slot,
    depth: u32,
) -> Reader<'b> {
    // Several runs of cells, each in the tail of the one before, which is `[]` until then.
    while count > CELLS {
        let (word, cells, tail) = heap.improper(CELLS);
        place.fill(word);
        input = fill(heap, input, cells, depth);
        (place, count) = (tail, count - CELLS);
    }
    let (word, cells) = heap.cells(count);
    place.fill(word);
    fill(heap, input, cells, depth)
}

#[inline(never)]
fn binary<'b>(heap: &Heap, input: Reader<'b>, place: Slot) -> Reader<'b> {
    let (len, input) = input.varint(1);
    let len = len as usize;
    place.fill(match len {
        ..=MAX_HEAP_BINARY => heap.binary(input.bytes(), len),
        _ => grouped::binary(heap, input, len),
    });
    input.after(len)
}

#[inline(never)]
fn pid<'b>(heap: &Heap, input: Reader<'b>, place: Slot) -> Reader<'b> {
    let (id, input) = input.varint(1);
    let (serial, input) = input.varint(0);
    let word = layout::local_pid_word(heap.env(), id as u32, serial as u32);
    place.fill(word.unwrap_or(atoms::UNDEFINED.word()));
    input
}

/// As `step`, for a term of a rarer kind.
#[inline(never)]
fn rare<'b>(heap: &Heap, input: Reader<'b>, place: Slot, depth: u32) -> Reader<'b> {
    // A leaf, or a container below the last level.
    let Some(depth) = depth.checked_sub(1).filter(|_| opens(input)) else {
        return match opens(input) {
            true => deep(heap, input, place),
            false => leaf(heap, input, place),
        };
    };
    let (count, rest) = input.varint(1);
    let count = count as usize;
    match input.byte(0) {
        // An improper list is decoded as a proper one, followed by its tail.
        ILIST if count <= CELLS => {
            let (word, cells, tail) = heap.improper(count);
            place.fill(word);
            let rest = fill(heap, rest, cells, depth);
            fill_one(heap, rest, tail, depth)
        }
        // If the emulator's order of pairs has been verified to be that of the encoding, the pairs
        // of a small map are copied. Otherwise the emulator has to sort them.
        MAP => match heap.map(count).filter(|_| trees::is_order_known()) {
            Some((word, keys, values)) => {
                place.fill(word);
                fill(heap, rest, Pairs::new(keys, values), depth)
            }
            None => deep(heap, input, place),
        },
        TREE_MAP => {
            // The tree layout comes first. The pairs follow in the tree's order.
            let (len, pairs) = rest.varint(0);
            let len = len as usize;
            let (tree_layout, pairs) = (&pairs.bytes()[..len], pairs.after(len));
            tree::make(heap, tree_layout, count, pairs, place, depth)
                .unwrap_or_else(|| deep(heap, input, place))
        }
        FUN => fun(heap, input, place, depth),
        _ => deep(heap, input, place),
    }
}

fn fun<'b>(heap: &Heap, input: Reader<'b>, place: Slot, depth: u32) -> Reader<'b> {
    let (variables, _) = head(input.bytes(), 0);
    let Some((word, slots)) = funs::open(heap, &input.bytes()[..variables]) else {
        return official(heap, input, place);
    };
    place.fill(word);
    fill(heap, input.after(variables), slots, depth)
}

/// A container that lacks children.
enum Open {
    Tuple(Slots),
    List {
        /// The number of cells still to be made.
        left: usize,
        /// Whether a tail is to be decoded after them.
        improper: bool,
        /// The slot for the next cell or the tail.
        tail: Slot,
    },
    /// The slots of the keys and values, and the slot for the map that will be made of them.
    Map {
        slots: Slots,
        words: PendingMap,
        place: Slot,
    },
}

/// As `step`, for a container of any size and any depth, with an explicit stack.
#[cold]
#[inline(never)]
fn deep<'b>(heap: &Heap, mut input: Reader<'b>, place: Slot) -> Reader<'b> {
    let mut waiting: Vec<Open> = Vec::new();
    let mut next = Some(place);
    while let Some(slot) = next {
        // Decodes one leaf into the next slot, or opens a container there.
        input = match input.byte(0) {
            FUN => official(heap, input, slot),
            _ if opens(input) => {
                let (container, rest) = open(heap, input, slot);
                waiting.push(container);
                rest
            }
            _ => fill_one(heap, input, slot, 0),
        };
        // The innermost open container has the slot for the next term.
        next = next_slot(heap, &mut waiting);
    }
    input
}

/// Whether the next term is a container with children, or a fun.
#[inline]
fn opens(input: Reader<'_>) -> bool {
    match input.byte(0) {
        LIST | ILIST | FUN | TREE_MAP => true,
        TUPLE | MAP => input.byte(1) != 0,
        _ => false,
    }
}

/// The slot of the next child. Containers that are complete are closed on the way.
fn next_slot(heap: &Heap, waiting: &mut Vec<Open>) -> Option<Slot> {
    while let Some(top) = waiting.last_mut() {
        let slot = match top {
            Open::Tuple(slots) | Open::Map { slots, .. } => slots.next(),
            Open::List {
                left: 0,
                improper,
                tail,
                // All cells are made, but the tail of an improper list is still to come.
            } => std::mem::take(improper).then_some(*tail),
            Open::List { left, tail, .. } => {
                // Links one more cell to the last.
                let (cell, head, rest) = heap.open_cell();
                tail.fill(cell);
                (*tail, *left) = (rest, *left - 1);
                Some(head)
            }
        };
        if slot.is_some() {
            return slot;
        }
        // The container is complete. A map is made of its pairs only now, by the emulator.
        if let Some(Open::Map { words, place, .. }) = waiting.pop() {
            place.fill(words.map(heap));
        }
    }
    None
}

/// Opens a container in the slot `place`, and returns a reader of its children.
fn open<'b>(heap: &Heap, input: Reader<'b>, place: Slot) -> (Open, Reader<'b>) {
    let (head_end, children) = head(input.bytes(), 0);
    let children = children as usize;
    let container = match input.byte(0) {
        // The container's word goes into its slot now. Its children are written into it later.
        TUPLE => {
            let (word, slots) = heap.tuple(children);
            place.fill(word);
            Open::Tuple(slots)
        }
        MAP | TREE_MAP => {
            // The emulator makes maps of all pairs at once, so they are collected first.
            let (words, slots) = PendingMap::new(children / 2);
            Open::Map {
                slots,
                words,
                place,
            }
        }
        tag => {
            // The list is empty until cells are linked to it.
            place.fill(layout::NIL);
            let improper = tag == ILIST;
            Open::List {
                left: children - usize::from(improper),
                improper,
                tail: place,
            }
        }
    };
    (container, input.after(head_end))
}

/// Decodes a term of a rarer kind without children, or a long element, into a slot.
fn leaf<'b>(heap: &Heap, input: Reader<'b>, place: Slot) -> Reader<'b> {
    // Empty containers have no children, and are made at once.
    let (word, rest) = match input.byte(0) {
        tag @ (TUPLE | MAP) => (Some(empty(heap.env(), tag)), input.after(2)),
        REF => reference(heap, input),
        REF_KEPT => reference_kept(heap, input),
        PORT => port(input),
        BLOB => blob(heap, input),
        BIG_POS | BIG_NEG => large_integer(heap, input),
        BITS => bits(heap, input),
        EXPORT => export(heap, input),
        PID_EXT | PORT_EXT | REF_EXT => foreign(heap, input),
        // The container is after its length. It is an element of an object, so no level was used.
        SIZED => return fill_one(heap, input.varint(1).1, place, DEPTH),
        OUT_OF_LINE => return out_of_line(heap, input, place),
        _ => (None, input),
    };
    // Its layout wasn't verified, or it isn't one that can be made in place.
    let Some(word) = word else {
        return official(heap, input, place);
    };
    place.fill(word);
    rest
}

/// Decodes an element that is stored out of line, into a slot.
#[cold]
#[inline(never)]
fn out_of_line<'b>(heap: &Heap, input: Reader<'b>, place: Slot) -> Reader<'b> {
    let (len, handle) = input.varint(1);
    let rest = handle.after(HANDLE);
    heap.out_of_line.set(heap.out_of_line.get() + len as usize);
    // SAFETY: the bytes are an element of an object, whose handles are held while it is read. So is
    // what it leads to, one whole term, whose handles it holds.
    let element = unsafe { Reader::of(stored_term(input.bytes())) };
    fill_one(heap, element, place, DEPTH);
    rest
}

/// The empty tuple or the empty map.
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

#[cold]
#[inline(never)]
fn boxed_int(heap: &Heap, value: i64) -> Word {
    heap.int(value)
}

// The following functions return the word of a leaf, or `None` if it has to be made by official
// functions, and the reader at the end of the leaf.

fn large_integer<'b>(heap: &Heap, input: Reader<'b>) -> (Option<Word>, Reader<'b>) {
    let negative = input.byte(0) == BIG_NEG;
    let (len, input) = input.varint(1);
    let magnitude = &input.bytes()[..len as usize];
    (heap.integer(negative, magnitude), input.after(len as usize))
}

fn bits<'b>(heap: &Heap, input: Reader<'b>) -> (Option<Word>, Reader<'b>) {
    let (count, input) = input.varint(1);
    let (whole, more) = (count as usize / 8, count as usize % 8);
    let word = heap.bits(input.bytes(), whole, more);
    (word, input.after(whole + 1))
}

fn reference<'b>(heap: &Heap, input: Reader<'b>) -> (Option<Word>, Reader<'b>) {
    let count = usize::from(input.byte(1));
    let number = |i: usize| input.number(2 + 4 * i, 4) as u32;
    let first = [number(0), number(1), number(2)];
    let word = match count {
        // One that may keep something alive has other words.
        3 if !layout::may_be_magic(&first) => {
            // The emulator has to be asked for the pid of an alias that has three numbers.
            let asked = || make_local_reference(heap.env(), &first);
            heap.reference(first).or_else(asked)
        }
        // Zeros at the end were left out.
        4 | 5 => {
            let last = if count == 5 { number(4) } else { 0 };
            heap.alias([first[0], first[1], first[2], number(3), last])
        }
        _ => None,
    };
    (word, input.after(2 + 4 * count))
}

/// A reference that keeps an object of the emulator alive.
fn reference_kept<'b>(heap: &Heap, input: Reader<'b>) -> (Option<Word>, Reader<'b>) {
    let count = usize::from(input.byte(1));
    let (term, rest) = input.term_of(2 + 4 * count + HANDLE);
    let made = term.host_object().map(|address| {
        // SAFETY: the stored term holds the object during the call.
        unsafe { resource::reference_to(heap.env(), address as *mut Counted) }
    });
    (made, rest)
}

fn foreign<'b>(heap: &Heap, input: Reader<'b>) -> (Option<Word>, Reader<'b>) {
    let (term, rest) = input.term();
    (foreign_terms::make(heap.env(), term), rest)
}

fn port(input: Reader<'_>) -> (Option<Word>, Reader<'_>) {
    let (number, rest) = input.varint(1);
    (layout::port_word(number), rest)
}

fn export<'b>(heap: &Heap, input: Reader<'b>) -> (Option<Word>, Reader<'b>) {
    let (term, rest) = input.term();
    // There are no free variables: a copy of the template is the fun.
    let made = funs::open(heap, term.bytes());
    (made.map(|(word, _)| word), rest)
}

fn blob<'b>(heap: &Heap, input: Reader<'b>) -> (Option<Word>, Reader<'b>) {
    let (len, handle) = input.varint(1);
    let (term, rest) = input.term_of(input.distance(handle) + HANDLE);
    let word = binaries::term(heap.env(), term, len as usize);
    (Some(word.unwrap_or(atoms::UNDEFINED.word())), rest)
}

/// Puts a term that official functions make, with all that is in it, in its place.
#[cold]
#[inline(never)]
fn official<'b>(heap: &Heap, input: Reader<'b>, place: Slot) -> Reader<'b> {
    let (term, rest) = input.term();
    let word = official::decode(heap.env(), term);
    place.fill(word.unwrap_or_else(|| atoms::UNDEFINED.word()));
    rest
}

//! Memory on the heap of an environment, filled in with terms where they will lie.
//!
//! The official functions make one tuple, cell, map or binary a call, out of words that were
//! gathered first. A row of twenty elements is a hundred calls. So memory is taken from what the
//! environment has left ([`top`](top)), and terms are written there as [`layout`] knows
//! that they lie:
//!
//! ```text
//!   [ 2<<6 | • | • ][ • | •][ header | size | bytes.. ]     free
//!     tuple  │   ╰──▶ cell    binary ▲                 ▲
//!            ╰───────────────────────╯                 ╰ what is taken next
//! ```
//!
//! Where there is nothing left, or it isn't known how to take it, the emulator makes a tuple of
//! `[]`s and knows no more of it: a *block*, in which the terms are written. A [`Slot`] is a word
//! that waits for its term; until it is filled it is `[]`.
//!
//! # Invariants
//!
//! 1. What was taken is memory of one environment, and belongs to nobody else. It neither moves nor
//!    goes while the call runs (or the environment lives): nothing that the library calls collects
//!    garbage.
//! 2. What was taken belongs to the term for which it was, and is that term, whole, when the call
//!    ends. If a panic passes, words that wait become `[]`.
//! 3. So whenever the emulator may collect garbage, the heap is a row of whole terms, one behind
//!    the other: it walks over them.
//!
//! What lies otherwise than this library knows, or on top of memory that is counted (a binary over
//! 64 bytes), is made by the official functions.

mod top;

use crate::layout::{self, NIL};
use crate::sys::*;
use std::cell::Cell;

pub use top::prove;

/// The largest block that is taken from the sample; larger ones need a sample of their own.
const LARGEST: usize = 1024;
/// What a block is filled with to begin with.
static SAMPLE: [Word; LARGEST] = [NIL; LARGEST];
/// The most words that a block has beyond those that are needed.
const AHEAD: usize = 512;
/// The longest binary that lies on a heap whole.
const WHOLE: usize = 64;
/// Bytes of a word.
const WORD: usize = size_of::<Word>();
/// Bytes of a binary that are copied at once.
const AT_ONCE: usize = 32;

/// A word that waits for its term.
#[derive(Clone, Copy)]
pub struct Slot(*mut Word);

impl Slot {
    /// The term that `f` fills in, at once.
    #[inline(always)]
    pub fn root(f: impl FnOnce(Slot)) -> Word {
        let mut word = NIL;
        f(Slot(&raw mut word));
        word
    }

    /// Puts its term there.
    #[inline(always)]
    pub fn fill(self, word: Word) {
        // SAFETY: slots are made here alone: of words of a block, which live as long as the
        // environment is used (invariant 1), or of those of a `PendingMap` or a `root`, whose
        // users fill them while those live.
        unsafe { self.0.write(word) }
    }
}

/// Slots, one after the other, each `[]` until it is filled. Those that were not asked for, because
/// a panic passes, become `[]` when this is dropped.
pub struct Slots {
    first: *mut Word,
    left: usize,
}

impl Slots {
    /// So many of them, the first ones, by themselves.
    #[inline(always)]
    pub fn first(&mut self, count: usize) -> Slots {
        let count = count.min(self.left);
        let first = self.first;
        self.left -= count;
        // SAFETY: so many were left: the place behind them was taken with them, or is the end of
        // what was.
        self.first = unsafe { first.add(count) };
        Slots { first, left: count }
    }
}

impl Iterator for Slots {
    type Item = Slot;

    #[inline(always)]
    fn next(&mut self) -> Option<Slot> {
        self.left = self.left.checked_sub(1)?;
        let slot = Slot(self.first);
        slot.fill(NIL);
        // SAFETY: there was one left: the place behind it was taken with it, or is the end of what
        // was.
        self.first = unsafe { self.first.add(1) };
        Some(slot)
    }
}

impl Drop for Slots {
    #[inline(always)]
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

/// The cells of a list, one after the other, each with its tail. Those that were not asked for,
/// because a panic passes, become cells of `[]`.
pub struct Cells {
    next: *mut Word,
    left: usize,
}

impl Iterator for Cells {
    type Item = Slot;

    /// The slot of the next cell's head.
    #[inline(always)]
    fn next(&mut self) -> Option<Slot> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: there was one left: two words, behind which the next one lies, or the end of what
        // was taken.
        let (head, tail, next) =
            unsafe { (Slot(self.next), Slot(self.next.add(1)), self.next.add(2)) };
        head.fill(NIL);
        tail.fill(match self.left {
            0 => NIL,
            _ => layout::cell_word(next),
        });
        self.next = next;
        Some(head)
    }
}

impl Drop for Cells {
    #[inline(always)]
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

/// The slots of a small map's pairs: a key's, then its value's.
pub struct Pairs {
    keys: Slots,
    values: Slots,
    /// A value's is next.
    value: bool,
}

impl Pairs {
    /// Those of keys and of values, which lie apart, each in the order of the keys.
    #[inline(always)]
    pub fn new(keys: Slots, values: Slots) -> Self {
        Pairs {
            keys,
            values,
            value: false,
        }
    }
}

impl Iterator for Pairs {
    type Item = Slot;

    #[inline(always)]
    fn next(&mut self) -> Option<Slot> {
        self.value = !self.value;
        match self.value {
            true => self.keys.next(),
            false => self.values.next(),
        }
    }
}

/// A list that grows at its end.
pub struct ListBuilder<'h> {
    heap: &'h Heap,
    list: Word,
    /// The tail of its last cell.
    tail: Option<Slot>,
    len: usize,
}

impl<'h> ListBuilder<'h> {
    /// No element.
    #[inline(always)]
    pub fn new(heap: &'h Heap) -> Self {
        ListBuilder {
            heap,
            list: NIL,
            tail: None,
            len: 0,
        }
    }

    /// The slot of a further element.
    #[inline(always)]
    pub fn next(&mut self) -> Slot {
        let (cell, head, tail) = self.heap.open_cell();
        match self.tail.replace(tail) {
            Some(before) => before.fill(cell),
            None => self.list = cell,
        }
        self.len += 1;
        head
    }

    /// The heap that it lies on.
    #[inline(always)]
    pub fn heap(&self) -> &'h Heap {
        self.heap
    }

    /// The list.
    #[inline(always)]
    pub fn list(&self) -> Word {
        self.list
    }

    /// How many elements it has.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// The heap of an environment, as one call fills it.
pub struct Heap {
    env: *mut Env,
    /// Words of all blocks.
    taken: Cell<usize>,
}

impl Heap {
    /// The heap of this environment. Nothing is asked for yet.
    ///
    /// The environment is the one that was given to the running callback, or one that no other
    /// thread uses; the heap is of use no longer than that.
    #[inline]
    pub fn new(env: *mut Env) -> Self {
        Heap {
            env,
            taken: Cell::new(0),
        }
    }

    /// Its environment.
    #[inline]
    pub fn env(&self) -> *mut Env {
        self.env
    }

    /// So many words, two at least.
    #[inline(always)]
    fn take(&self, words: usize) -> *mut Word {
        // Mostly the heap has so many words left: a comparison and a store.
        match top::take(self.env, words) {
            Some(place) => place,
            None => self.take_block(words),
        }
    }

    /// So many words of a block.
    #[inline(never)]
    fn take_block(&self, words: usize) -> *mut Word {
        // A call that has taken much probably goes on: blocks grow, and what is left of one is
        // taken next.
        let ahead = match top::is_known() {
            true => (self.taken.get() / 4).min(AHEAD),
            false => 0,
        };
        // The emulator makes a tuple, which may mean a new piece of heap.
        let block = self.block(words + ahead);
        self.taken.set(self.taken.get() + words + ahead);
        // SAFETY: the block has more words, or as many; it was just made, and nobody uses those
        // behind.
        unsafe { top::give_back(self.env, block.add(words)) };
        block
    }

    /// A block of so many words, two at least: a tuple without elements may lie anywhere.
    fn block(&self, size: usize) -> *mut Word {
        let own;
        let sample = match SAMPLE.get(..size - 1) {
            Some(sample) => sample,
            None => {
                own = vec![NIL; size - 1];
                &own[..]
            }
        };
        // SAFETY: the environment may be used, and the array has as many words as said.
        let tuple =
            unsafe { enif_make_tuple_from_array(self.env, sample.as_ptr(), sample.len() as u32) };
        layout::pointer(tuple).cast_mut()
    }

    /// A tuple, and the slots of its elements, one at least.
    #[inline(always)]
    pub fn tuple(&self, arity: usize) -> (Word, Slots) {
        // The header says how many words follow. They are filled one by one, `[]` meanwhile.
        let place = self.take(arity + 1);
        // SAFETY: as many words were taken.
        unsafe { place.write(layout::arity_header(arity)) };
        let slots = Slots {
            // SAFETY: as above.
            first: unsafe { place.add(1) },
            left: arity,
        };
        (layout::boxed(place), slots)
    }

    /// A tuple of these elements, one at least.
    #[inline]
    pub fn tuple_of(&self, elements: &[Word]) -> Word {
        let (word, mut slots) = self.tuple(elements.len());
        for &element in elements {
            if let Some(slot) = slots.next() {
                slot.fill(element);
            }
        }
        word
    }

    /// A list of so many cells, one at least.
    #[inline(always)]
    pub fn cells(&self, count: usize) -> (Word, Cells) {
        // One run: each cell's tail is the cell behind it, so only heads are left open.
        let next = self.take(2 * count);
        (layout::cell_word(next), Cells { next, left: count })
    }

    /// A list of so many cells, one at least, and the slot of what is behind the last, to be filled
    /// after all others.
    #[inline]
    pub fn improper(&self, count: usize) -> (Word, Cells, Slot) {
        let next = self.take(2 * count);
        // SAFETY: as many words were taken; the last is the tail of the last cell.
        let tail = Slot(unsafe { next.add(2 * count - 1) });
        (layout::cell_word(next), Cells { next, left: count }, tail)
    }

    /// A cell, and the slots of its head and its tail.
    #[inline(always)]
    pub fn open_cell(&self) -> (Word, Slot, Slot) {
        let place = self.take(2);
        // SAFETY: two words were taken.
        let (head, tail) = (Slot(place), Slot(unsafe { place.add(1) }));
        head.fill(NIL);
        tail.fill(NIL);
        (layout::cell_word(place), head, tail)
    }

    /// Puts a cell in each of these places, and gives the slots of their heads and tails, in order.
    #[inline]
    pub fn pairs(&self, places: Slots) -> Slots {
        let left = 2 * places.left;
        let first = self.take(left);
        for (i, place) in places.enumerate() {
            // SAFETY: two words were taken for each place.
            place.fill(layout::cell_word(unsafe { first.add(2 * i) }));
        }
        Slots { first, left }
    }

    /// A cell.
    #[inline(always)]
    pub fn cell(&self, head: Word, tail: Word) -> Word {
        let (word, first, rest) = self.open_cell();
        first.fill(head);
        rest.fill(tail);
        word
    }

    /// A list of these, in order, before what `tail` has.
    pub fn list(&self, terms: &[Word], tail: Word) -> Word {
        terms
            .iter()
            .rev()
            .fold(tail, |list, &term| self.cell(term, list))
    }

    /// A binary with a copy of the first `len` bytes; those behind may be read, too.
    #[inline]
    pub fn binary(&self, bytes: &[u8], len: usize) -> Word {
        let wanted = &bytes[..len];
        // Short binaries lie on the heap whole; others are counted, which the emulator does.
        let head = layout::heap_binary_head(wanted.len()).filter(|_| wanted.len() <= WHOLE);
        let Some((header, size)) = head else {
            return self.official_binary(wanted);
        };
        // Up to 32 bytes are copied by two instructions of fixed length, whatever lies behind them,
        // if that may be read and the heap may be written there.
        let place = match bytes.first_chunk() {
            Some(most) if wanted.len() <= AT_ONCE => self.at_once(most, wanted.len()),
            _ => None,
        };
        let place = place.unwrap_or_else(|| self.copied(wanted));
        // SAFETY: two words and those of the bytes were taken.
        unsafe {
            place.write(header);
            place.add(1).write(size);
        }
        layout::boxed(place)
    }

    /// Takes two words and those of the first `len` bytes, and copies these behind the two: all
    /// that are given, whatever `len` is, if the heap has so many words left.
    #[inline(always)]
    fn at_once(&self, most: &[u8; AT_ONCE], len: usize) -> Option<*mut Word> {
        // As many words as its bytes take; those up to 32 bytes are written and not taken.
        let words = len.div_ceil(WORD);
        let place = top::take_before(self.env, 2 + words, AT_ONCE / WORD)?;
        // SAFETY: behind the two words there are so many words, which nobody uses: the binary's,
        // and what isn't taken yet. Of the last word, which is written by then, or that before it
        // if there is no byte, those bytes that don't count become zeros.
        unsafe {
            place.add(1).write(0);
            place.add(2).cast::<[u8; AT_ONCE]>().write_unaligned(*most);
            let (last, unused) = (place.add(1 + words), 8 * (WORD * words - len));
            last.write((last.read().to_le() << unused >> unused).to_le());
        }
        Some(place)
    }

    /// As `at_once`, byte by byte.
    #[inline(never)]
    fn copied(&self, bytes: &[u8]) -> *mut Word {
        let words = bytes.len().div_ceil(WORD);
        let place = self.take(2 + words);
        // SAFETY: as many words were taken; the last is written as a whole before those of its
        // bytes that count.
        unsafe {
            if words > 0 {
                place.add(1 + words).write(0);
            }
            let data = place.add(2).cast::<u8>();
            data.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        place
    }

    #[inline(never)]
    fn official_binary(&self, bytes: &[u8]) -> Word {
        let mut word = NIL;
        // SAFETY: the environment may be used; the call gives memory for as many bytes as asked,
        // which nobody else sees yet.
        unsafe {
            let data = enif_make_new_binary(self.env, bytes.len(), &mut word);
            data.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        word
    }

    /// A float.
    #[inline]
    pub fn float(&self, value: f64) -> Word {
        let Some(header) = layout::float_header() else {
            // SAFETY: the environment may be used.
            return unsafe { enif_make_double(self.env, value) };
        };
        let place = self.take(2);
        // SAFETY: two words were taken.
        unsafe {
            place.write(header);
            place.add(1).write(value.to_bits() as Word);
        }
        layout::boxed(place)
    }

    /// A map of a few pairs, and the slots of its keys and of its values, both in the order of the
    /// keys. None if it isn't known how one lies.
    #[inline]
    pub fn map(&self, count: usize) -> Option<(Word, Slots, Slots)> {
        // Larger maps are trees, or the emulator's business.
        let header = layout::flatmap_header().filter(|_| count <= layout::MOST_IN_ORDER)?;
        // Map and tuple of keys in one run, the keys behind the values.
        let place = self.take(4 + 2 * count);
        // SAFETY: as many words were taken: header, size, keys, values; then the keys, which are a
        // tuple.
        let (keys, values) = unsafe {
            let keys = place.add(3 + count);
            place.write(header);
            place.add(1).write(count);
            place.add(2).write(layout::boxed(keys));
            keys.write(layout::arity_header(count));
            (keys.add(1), place.add(3))
        };
        let slots = |first| Slots { first, left: count };
        Some((layout::boxed(place), slots(keys), slots(values)))
    }

    /// Puts the root of a large map in a slot: its header, the number of its pairs, and the slots
    /// of its children.
    pub fn root(&self, slot: Slot, header: Word, pairs: usize, children: usize) -> Slots {
        let place = self.take(2 + children);
        // SAFETY: as many words were taken.
        unsafe {
            place.write(header);
            place.add(1).write(pairs);
            slot.fill(layout::boxed(place));
            Slots {
                first: place.add(2),
                left: children,
            }
        }
    }

    /// As `root`, for another node, which has no number of pairs.
    #[inline]
    pub fn node(&self, slot: Slot, header: Word, children: usize) -> Slots {
        let place = self.take(1 + children);
        // SAFETY: as many words were taken.
        unsafe {
            place.write(header);
            slot.fill(layout::boxed(place));
            Slots {
                first: place.add(1),
                left: children,
            }
        }
    }

    /// An integer of more than 60 bits, by the bytes of its magnitude, low ones first; None if it
    /// isn't known how one lies.
    #[inline]
    pub fn integer(&self, negative: bool, magnitude: &[u8]) -> Option<Word> {
        // Digits of 64 bits, low ones first: the magnitude's bytes as they are, filled up with
        // zeros.
        let digits = magnitude.len().div_ceil(WORD);
        let header = layout::integer_header(negative, digits)?;
        let place = self.take(1 + digits);
        // SAFETY: as many words were taken; the last is written as a whole before those of its
        // bytes that count.
        unsafe {
            place.write(header);
            place.add(digits).write(0);
            let data = place.add(1).cast::<u8>();
            data.copy_from_nonoverlapping(magnitude.as_ptr(), magnitude.len());
        }
        Some(layout::boxed(place))
    }

    /// An integer.
    #[inline]
    pub fn int(&self, value: i64) -> Word {
        layout::small_word(value).unwrap_or_else(|| {
            let magnitude = value.unsigned_abs().to_le_bytes();
            self.integer(value < 0, &magnitude).unwrap_or_else(|| {
                // SAFETY: the environment may be used.
                unsafe { enif_make_int64(self.env, value) }
            })
        })
    }

    /// A reference of this node that keeps nothing alive; None if it isn't known how one lies.
    #[inline]
    pub fn reference(&self, numbers: layout::Numbers) -> Option<Word> {
        // All of its words are known from its numbers.
        let words = layout::reference_words(numbers)?;
        let place = self.take(words.len());
        // SAFETY: as many words were taken.
        unsafe { place.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Some(layout::boxed(place))
    }

    /// The bits of a binary that lies on a heap whole, but for those of its last byte that are too
    /// many; None if it isn't known how they lie.
    pub fn bits(&self, binary: Word, whole: usize, more: usize) -> Option<Word> {
        let header = layout::part_header()?;
        let place = self.take(5);
        // SAFETY: as many words were taken.
        unsafe {
            let words = [header, whole, 0, more, binary];
            place.copy_from_nonoverlapping(words.as_ptr(), words.len());
        }
        Some(layout::boxed(place))
    }

    /// The slots of the free variables of a fun that was just made in this environment.
    pub fn free_variables(&self, fun: Word, count: usize) -> Slots {
        let first = layout::fun(fun, count).as_ptr().cast_mut();
        Slots { first, left: count }
    }

    /// A map of these keys and values.
    pub fn official_map(&self, keys: &[Word], values: &[Word]) -> Word {
        let mut map = NIL;
        // SAFETY: the arrays have as many words as said, all terms of the environment.
        let made = unsafe {
            enif_make_map_from_arrays(
                self.env,
                keys.as_ptr(),
                values.as_ptr(),
                keys.len(),
                &mut map,
            )
        };
        if made != 0 {
            return map;
        }
        // Two keys that differ for us and not for the host (0.0 and -0.0 before OTP 27): the later
        // wins. SAFETY: as above; the first call makes the map that the others extend.
        unsafe {
            map = enif_make_new_map(self.env);
            for (key, value) in keys.iter().zip(values) {
                enif_make_map_put(self.env, map, *key, *value, &mut map);
            }
        }
        map
    }
}

/// Words that wait for a map that the emulator makes.
pub struct PendingMap(Box<[Word]>);

impl PendingMap {
    /// Room for so many pairs, and their slots, each key's and then its value's, which are to be
    /// filled while this lives.
    pub fn new(pairs: usize) -> (Self, Slots) {
        let mut words = vec![NIL; 2 * pairs].into_boxed_slice();
        let slots = Slots {
            first: words.as_mut_ptr(),
            left: words.len(),
        };
        (PendingMap(words), slots)
    }

    /// The map, once all slots were filled.
    pub fn map(&self, heap: &Heap) -> Word {
        let half = |odd: usize| self.0.iter().skip(odd).step_by(2).copied().collect();
        let (keys, values): (Vec<Word>, Vec<Word>) = (half(0), half(1));
        heap.official_map(&keys, &values)
    }
}

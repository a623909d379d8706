//! Memory on the heap of an environment, in which terms are written in place.
//!
//! Each official function makes one tuple, cell, map or binary, of words that must be gathered
//! first. A row of twenty elements would take a hundred calls. So this module takes free memory of
//! the environment's heap ([`top`](top)), and writes terms there in the [`layout`] that the
//! emulator uses:
//!
//! ```text
//!   [ 2<<6 | • | • ][ • | •][ header | size | bytes.. ]     free
//!     tuple  │   ╰──▶ cell    binary ▲                 ▲
//!            ╰───────────────────────╯                 ╰ what is allocated next
//! ```
//!
//! If the heap has no free memory, or it isn't known how to take it, the emulator makes a tuple of
//! `[]`s, whose memory is then overwritten: a *block*. A [`Slot`] is a word that still lacks its
//! term. Until it is filled, it is `[]`.
//!
//! # Invariants
//!
//! * **NH1** Memory that was allocated belongs to one environment, and nobody else uses it. It is
//!   neither moved nor freed while the call runs (or the environment lives), because no function
//!   that the library calls collects garbage.
//! * **NH2** When the call ends, memory that was allocated is the complete term for which it was
//!   allocated. If there is a panic, unfilled slots become `[]`.
//! * **NH3** So whenever the emulator may collect garbage, the heap is a sequence of complete
//!   terms, as it expects.
//!
//! The official functions make terms whose layout isn't known, and those that refer to
//! reference-counted memory (binaries of more than 64 bytes).

mod top;

use crate::layout::{self, NIL};
use crate::sys::*;
use std::cell::Cell;

pub use top::prove;

/// The size of the largest block that is made of the static sample, in words. Larger ones need a
/// sample of their own.
const MAX_SAMPLE_WORDS: usize = 1024;
/// The initial contents of a block.
static SAMPLE: [Word; MAX_SAMPLE_WORDS] = [NIL; MAX_SAMPLE_WORDS];
/// The greatest number of words that a block has in addition to those that are needed.
const MAX_EXTRA_WORDS: usize = 512;
/// The length of the longest binary whose bytes are on the heap, in bytes.
pub const MAX_HEAP_BINARY: usize = 64;
/// The size of a word in bytes.
const WORD: usize = size_of::<Word>();
/// The number of bytes that are copied for a short binary, whatever its length is.
const FIXED_COPY: usize = 32;

/// A word that still lacks its term.
#[derive(Clone, Copy)]
pub struct Slot(*mut Word);

impl Slot {
    /// The term that `f` puts into a slot before it returns.
    #[inline]
    pub fn root(f: impl FnOnce(Slot)) -> Word {
        let mut word = NIL;
        f(Slot(&raw mut word));
        word
    }

    /// Puts the term into the slot.
    #[inline]
    pub fn fill(self, word: Word) {
        // SAFETY: slots are made here alone: of words of a block, which live as long as the
        // environment is used (NH1), or of those of a `PendingMap` or a `root`, whose users fill
        // them while those live.
        unsafe { self.0.write(word) }
    }
}

/// Adjacent slots, each `[]` until it is filled. Dropping this fills those that weren't requested,
/// as after a panic, with `[]`.
pub struct Slots {
    first: *mut Word,
    left: usize,
}

impl Slots {
    /// Splits off the first `count` slots, or all if there are fewer.
    #[inline]
    pub fn first(&mut self, count: usize) -> Slots {
        let count = count.min(self.left);
        let first = self.first;
        self.left -= count;
        // SAFETY: at least `count` slots were left. So the pointer stays within the memory that was
        // allocated, or is one past its end.
        self.first = unsafe { first.add(count) };
        Slots { first, left: count }
    }
}

impl Iterator for Slots {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        self.left = self.left.checked_sub(1)?;
        let slot = Slot(self.first);
        slot.fill(NIL);
        // SAFETY: at least one slot was left. So the pointer stays within the memory that was
        // allocated, or is one past its end.
        self.first = unsafe { self.first.add(1) };
        Some(slot)
    }
}

impl Drop for Slots {
    #[inline]
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

/// The adjacent cells of a list, each with its tail. Dropping this fills those that weren't
/// requested, as after a panic, with `[]`.
pub struct Cells {
    next: *mut Word,
    left: usize,
}

impl Iterator for Cells {
    type Item = Slot;

    /// The slot of the next cell's head.
    #[inline]
    fn next(&mut self) -> Option<Slot> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: there was one left: two words, after which the next one lies, or the end of what
        // was allocated.
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
    #[inline]
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

/// The slots of the pairs of a small map: those of a key and of its value alternate.
pub struct Pairs {
    keys: Slots,
    values: Slots,
    /// Whether the next slot is that of a value.
    value: bool,
}

impl Pairs {
    /// The pairs of these keys and values, which are stored apart, both in the order of the keys.
    #[inline]
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

    #[inline]
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
    /// The tail of the last cell.
    tail: Option<Slot>,
    len: usize,
}

impl<'h> ListBuilder<'h> {
    /// An empty list.
    #[inline]
    pub fn new(heap: &'h Heap) -> Self {
        ListBuilder {
            heap,
            list: NIL,
            tail: None,
            len: 0,
        }
    }

    /// Adds an element. Returns its slot.
    #[inline]
    pub fn next(&mut self) -> Slot {
        let (cell, head, tail) = self.heap.open_cell();
        match self.tail.replace(tail) {
            Some(before) => before.fill(cell),
            None => self.list = cell,
        }
        self.len += 1;
        head
    }

    /// The heap that the list is on.
    #[inline]
    pub fn heap(&self) -> &'h Heap {
        self.heap
    }

    /// The list.
    #[inline]
    pub fn list(&self) -> Word {
        self.list
    }

    /// The number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// Where the bytes lie of which a binary was made, and the binary.
///
/// Invariant: the bytes belong to the object that is being decoded, and are unchanged.
#[derive(Clone, Copy, Default)]
pub struct CopiedBytes {
    pub from: usize,
    pub to: usize,
    pub word: Word,
}

/// The heap of an environment, as used by one call.
pub struct Heap {
    env: *mut Env,
    /// The total size of all blocks, in words.
    allocated: Cell<usize>,
    /// What the decoder has copied for several binaries of the object that it decodes.
    pub copied: Cell<CopiedBytes>,
    /// The length in bytes of the elements out of line that were decoded and not yet reported.
    pub out_of_line: Cell<usize>,
}

impl Heap {
    /// The heap of this environment. Nothing is allocated yet.
    ///
    /// # Safety
    /// The environment is the one that was passed to the running callback, or one that no other
    /// thread uses. The heap isn't used after that.
    #[inline]
    pub unsafe fn new(env: *mut Env) -> Self {
        Heap {
            env,
            allocated: Cell::new(0),
            copied: Cell::default(),
            out_of_line: Cell::new(0),
        }
    }

    /// The environment.
    #[inline]
    pub fn env(&self) -> *mut Env {
        self.env
    }

    /// Takes this number of words, at least two.
    #[inline]
    fn take(&self, words: usize) -> *mut Word {
        // The fast path: the heap has enough free words. It is a comparison and a store.
        match top::take(self.env, words) {
            Some(place) => place,
            None => self.take_block(words),
        }
    }

    /// Takes this number of words of a new block.
    #[inline(never)]
    fn take_block(&self, words: usize) -> *mut Word {
        // A call that has allocated much will probably allocate more. So blocks get larger, and the
        // rest of a block is used next.
        let extra = match top::is_known() {
            true => (self.allocated.get() / 4).min(MAX_EXTRA_WORDS),
            false => 0,
        };
        // The emulator makes a tuple, for which it may allocate another part of the heap.
        let block = self.block(words + extra);
        self.allocated.set(self.allocated.get() + words + extra);
        // SAFETY: the block has more words, or as many; it was just made, and nobody uses those
        // after them.
        unsafe { top::give_back(self.env, block.add(words)) };
        block
    }

    /// Makes a block of this number of words, at least two: a tuple without elements may be
    /// anywhere.
    fn block(&self, size: usize) -> *mut Word {
        let long;
        // Nearly all blocks are small: their tuples are made of a constant sample. One word of a
        // block is the header of its tuple.
        let sample = match SAMPLE.get(..size - 1) {
            Some(sample) => sample,
            None => {
                long = vec![NIL; size - 1];
                &long[..]
            }
        };
        // SAFETY: the environment may be used, and the array has the given number of words.
        let tuple =
            unsafe { enif_make_tuple_from_array(self.env, sample.as_ptr(), sample.len() as u32) };
        layout::pointer(tuple).cast_mut()
    }

    /// Makes a tuple of at least one element. Returns the slots of its elements.
    #[inline]
    pub fn tuple(&self, arity: usize) -> (Word, Slots) {
        // The header has the number of words that follow. They are `[]` until they are filled.
        let place = self.take(arity + 1);
        // SAFETY: as many words were allocated.
        unsafe { place.write(layout::arity_header(arity)) };
        let slots = Slots {
            // SAFETY: as above.
            first: unsafe { place.add(1) },
            left: arity,
        };
        (layout::boxed(place), slots)
    }

    /// Makes a tuple of these elements, at least one.
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

    /// Makes a list of this number of cells, at least one.
    #[inline]
    pub fn cells(&self, count: usize) -> (Word, Cells) {
        // All cells are adjacent, and linked by their tails. Only the heads are to be filled.
        let next = self.take(2 * count);
        (layout::cell_word(next), Cells { next, left: count })
    }

    /// Makes a list of this number of cells, at least one. Also returns the slot of the tail of the
    /// last cell, which is to be filled after all others.
    #[inline]
    pub fn improper(&self, count: usize) -> (Word, Cells, Slot) {
        let next = self.take(2 * count);
        // SAFETY: as many words were allocated; the last is the tail of the last cell.
        let tail = Slot(unsafe { next.add(2 * count - 1) });
        (layout::cell_word(next), Cells { next, left: count }, tail)
    }

    /// Makes a cell. Returns the slots of its head and its tail.
    #[inline]
    pub fn open_cell(&self) -> (Word, Slot, Slot) {
        let place = self.take(2);
        // SAFETY: two words were allocated.
        let (head, tail) = (Slot(place), Slot(unsafe { place.add(1) }));
        head.fill(NIL);
        tail.fill(NIL);
        (layout::cell_word(place), head, tail)
    }

    /// Puts a cell into each of these slots. Returns the slots of their heads and tails, in order.
    #[inline]
    pub fn pairs(&self, places: Slots) -> Slots {
        let left = 2 * places.left;
        let first = self.take(left);
        for (i, place) in places.enumerate() {
            // SAFETY: two words were allocated for each place.
            place.fill(layout::cell_word(unsafe { first.add(2 * i) }));
        }
        Slots { first, left }
    }

    /// A cell.
    #[inline]
    pub fn cell(&self, head: Word, tail: Word) -> Word {
        let (word, first, rest) = self.open_cell();
        first.fill(head);
        rest.fill(tail);
        word
    }

    /// Makes a list of these terms, in order, that continues with `tail`.
    pub fn list(&self, terms: &[Word], tail: Word) -> Word {
        terms
            .iter()
            .rev()
            .fold(tail, |list, &term| self.cell(term, list))
    }

    /// Makes a binary with a copy of the first `len` bytes. The bytes after them may be read, too.
    #[inline]
    pub fn binary(&self, bytes: &[u8], len: usize) -> Word {
        let wanted = &bytes[..len];
        // Short binaries are on the heap. The emulator makes the others, which are
        // reference-counted.
        let head =
            layout::heap_binary_head(wanted.len()).filter(|_| wanted.len() <= MAX_HEAP_BINARY);
        let Some((header, size)) = head else {
            return self.counted_binary(wanted);
        };
        // Copy up to 32 bytes by two instructions of fixed length, with the bytes after them, if
        // those may be read, and if the heap has the space.
        let place = match bytes.first_chunk() {
            Some(most) if wanted.len() <= FIXED_COPY => self.copied_at_once(most, wanted.len()),
            _ => None,
        };
        let place = place.unwrap_or_else(|| self.copied(wanted));
        // SAFETY: two words and those of the bytes were allocated.
        unsafe {
            place.write(header);
            place.add(1).write(size);
        }
        layout::boxed(place)
    }

    /// Takes two words, and words for the first `len` bytes. Copies all bytes that are given after
    /// the two words, whatever `len` is, if the heap has the space.
    #[inline]
    fn copied_at_once(&self, most: &[u8; FIXED_COPY], len: usize) -> Option<*mut Word> {
        // Take only the words for the first `len` bytes. The others of the 32 bytes are written to
        // free words, which stay free.
        let words = len.div_ceil(WORD);
        let place = top::take_before(self.env, 2 + words, FIXED_COPY / WORD)?;
        // SAFETY: after the two words there is this number of words, which nobody uses: the
        // binary's, and what isn't allocated yet. Of the last word, which is written by then, or
        // that before it if there is no byte, those bytes that don't count become zeros.
        unsafe {
            place.add(1).write(0);
            place
                .add(2)
                .cast::<[u8; FIXED_COPY]>()
                .write_unaligned(*most);
            let (last, unused) = (place.add(1 + words), 8 * (WORD * words - len));
            last.write((last.read().to_le() << unused >> unused).to_le());
        }
        Some(place)
    }

    /// As `at_once`, but copies exactly the bytes of the binary.
    #[inline(never)]
    fn copied(&self, bytes: &[u8]) -> *mut Word {
        let words = bytes.len().div_ceil(WORD);
        let place = self.take(2 + words);
        // SAFETY: as many words were allocated; the last is written as a whole before those of its
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

    /// Makes a reference-counted binary with a copy of these bytes, or one on the heap if they are
    /// few.
    #[inline(never)]
    pub fn counted_binary(&self, bytes: &[u8]) -> Word {
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
        // SAFETY: two words were allocated.
        unsafe {
            place.write(header);
            place.add(1).write(value.to_bits() as Word);
        }
        layout::boxed(place)
    }

    /// Makes a small map. Returns the slots of its keys and of its values, both in the order of the
    /// keys. `None` if the layout of maps isn't known, or the map is too large.
    #[inline]
    pub fn map(&self, count: usize) -> Option<(Word, Slots, Slots)> {
        // Larger maps are trees, or are made by the emulator.
        let header = layout::flatmap_header().filter(|_| count <= layout::MOST_IN_ORDER)?;
        // Take the map and the tuple of its keys in one run. The keys are after the values.
        let place = self.take(4 + 2 * count);
        // SAFETY: as many words were allocated: header, size, keys, values; then the keys, which
        // are a tuple.
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

    /// Puts the root of a large map into a slot: its header and the number of its pairs. Returns
    /// the slots of its children.
    pub fn root(&self, slot: Slot, header: Word, pairs: usize, children: usize) -> Slots {
        // Two words, and one for each child.
        let place = self.take(2 + children);
        // SAFETY: as many words were allocated.
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

    /// As `root`, for another node, which doesn't have the number of pairs.
    #[inline]
    pub fn node(&self, slot: Slot, header: Word, children: usize) -> Slots {
        let place = self.take(1 + children);
        // SAFETY: as many words were allocated.
        unsafe {
            place.write(header);
            slot.fill(layout::boxed(place));
            Slots {
                first: place.add(1),
                left: children,
            }
        }
    }

    /// Makes an integer of more than 60 bits of the bytes of its magnitude, little endian. `None`
    /// if the layout isn't known.
    #[inline]
    pub fn integer(&self, negative: bool, magnitude: &[u8]) -> Option<Word> {
        // The digits have 64 bits, the lowest first. So they are the bytes of the magnitude, padded
        // with zeros.
        let digits = magnitude.len().div_ceil(WORD);
        let header = layout::integer_header(negative, digits)?;
        let place = self.take(1 + digits);
        // SAFETY: as many words were allocated; the last is written as a whole before those of its
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

    /// Makes a reference of this node that doesn't keep anything alive. `None` if the layout isn't
    /// known.
    #[inline]
    pub fn reference(&self, numbers: layout::Numbers) -> Option<Word> {
        // The numbers of the reference determine all of its words.
        layout::reference_words(numbers).map(|words| self.boxed(&words))
    }

    /// Makes an alias. `None` if the numbers are those of another reference, or the layout isn't
    /// known.
    pub fn alias(&self, numbers: [u32; 5]) -> Option<Word> {
        layout::alias_words(numbers).map(|words| self.boxed(&words))
    }

    /// A boxed term of these words.
    #[inline]
    fn boxed(&self, words: &[Word]) -> Word {
        let place = self.take(words.len());
        // SAFETY: as many words were allocated.
        unsafe { place.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        layout::boxed(place)
    }

    /// Makes a bitstring of the first bytes: `whole` of them, and the first `more` bits of the next
    /// one. `None` if the layout isn't known, or these are too many for a binary on the heap.
    pub fn bits(&self, bytes: &[u8], whole: usize, more: usize) -> Option<Word> {
        let len = whole + 1;
        layout::heap_binary_head(len).filter(|_| len <= MAX_HEAP_BINARY)?;
        let binary = self.binary(bytes, len);
        // SAFETY: the binary was just made on the heap.
        if unsafe { layout::shorten(binary, more) } {
            return Some(binary);
        }
        // A part of the binary says how many bits count.
        let header = layout::part_header()?;
        Some(self.boxed(&[header, whole, 0, more, binary]))
    }

    /// The slots of the free variables of a fun that was just made in this environment.
    pub fn free_variables(&self, fun: Word, count: usize) -> Slots {
        let first = layout::fun(fun, count).as_ptr().cast_mut();
        Slots { first, left: count }
    }

    /// Makes a map of these keys and values by official functions.
    pub fn official_map(&self, keys: &[Word], values: &[Word]) -> Word {
        let mut map = NIL;
        // SAFETY: the arrays have the given number of words, all terms of the environment.
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
        // Two keys differ only for this library, not for the host (0.0 and -0.0 before OTP 27). The
        // later one wins. SAFETY: as above; the first call makes the map that the others extend.
        unsafe {
            map = enif_make_new_map(self.env);
            for (key, value) in keys.iter().zip(values) {
                enif_make_map_put(self.env, map, *key, *value, &mut map);
            }
        }
        map
    }
}

/// The keys and values of a map that the emulator will make.
pub struct PendingMap(Box<[Word]>);

impl PendingMap {
    /// Makes room for this number of pairs. Returns their slots, in which keys and values
    /// alternate, and which must be filled before this is dropped.
    pub fn new(pairs: usize) -> (Self, Slots) {
        let mut words = vec![NIL; 2 * pairs].into_boxed_slice();
        let slots = Slots {
            first: words.as_mut_ptr(),
            left: words.len(),
        };
        (PendingMap(words), slots)
    }

    /// Makes the map, when all slots have been filled.
    pub fn map(&self, heap: &Heap) -> Word {
        let half = |odd: usize| self.0.iter().skip(odd).step_by(2).copied().collect();
        let (keys, values): (Vec<Word>, Vec<Word>) = (half(0), half(1));
        heap.official_map(&keys, &values)
    }
}

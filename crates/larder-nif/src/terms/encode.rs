//! Terms of the BEAM to stored bytes.
//!
//! A [`Writer`] reads a term's words in place and appends the encoding to a [`Buffer`]. The code
//! for small integers and atoms is inlined into its callers; each other kind of term has a function
//! of its own, so that a rare kind takes no registers from the common ones.
//!
//! ```text
//!  child ─▶ small integer, atom
//!        ╰▶ uncommon ─▶ cell ─▶ list
//!                    ├▶ boxed ─▶ tuple, map, binary, float, large integer, reference, fun
//!                    │    ╰▶ official: kinds of unverified layout, by the external format
//!                    ╰▶ [], pid, port
//! ```
//!
//! Containers are written recursively for up to [`DEPTH`] levels. Deeper terms are written with an
//! explicit stack ([`Writer::deep`]), so no term exhausts the thread's stack.
//!
//! # Modes
//!
//! The modes are those of [`larder_term::Encoder`], and the bytes are the same as its. Index keys
//! are written inline; exact keys and compressed rows may contain anchors; other rows share
//! binaries of more than 127 bytes with the emulator.

mod order;
mod row;

use super::buffer::{Buffer, StackBytes};
use super::{atoms, binaries, funs, kept, official, trees};
use crate::layout::{self, Kind};
use crate::resource;
use crate::sys::external::ReferenceNumbers;
use crate::sys::*;
use larder_term::object::KeyForm;
use larder_term::tags::*;
use larder_term::{blob, order_key, stored_words, Encoder, Mode, TermBuf, TermRef};
use std::cell::Cell;

pub use super::buffer::stack_bytes;
pub use super::official::Unreadable;
pub use row::Row;

/// The most levels of containers that are written recursively.
const DEPTH: u32 = 64;

/// The result of writing a term.
type Written = Result<(), Unreadable>;

/// Appends the encodings of terms to a buffer.
///
/// Invariant: the bytes are whole terms in the writer's mode, except for the last one after an
/// [`Unreadable`]. The writer owns one count for each handle in the bytes from `first` on.
pub struct Writer<'p> {
    env: *mut Env,
    out: Buffer<'p>,
    mode: Mode,
    /// Where the terms begin, after the head of a row.
    first: usize,
    /// Whether a handle was written whose count the writer owns.
    handles: Cell<bool>,
    /// Whether a −0.0 was written.
    negative_zero: bool,
    /// In inline mode: whether a reference was written that may keep a resource alive. Inline bytes
    /// own no count of it.
    has_magic: bool,
}

impl std::ops::Deref for Writer<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.out
    }
}

impl Drop for Writer<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.handles.get() {
            self.release();
        }
    }
}

impl<'p> Writer<'p> {
    /// An empty writer whose buffer begins on the stack.
    #[inline]
    pub fn at(stack: &'p mut StackBytes, env: *mut Env, mode: Mode) -> Self {
        Writer {
            env,
            out: Buffer::at(stack),
            mode,
            first: 0,
            handles: Cell::new(false),
            negative_zero: false,
            has_magic: false,
        }
    }

    /// Gives back the counts of the handles in the bytes.
    #[cold]
    #[inline(never)]
    fn release(&mut self) {
        // SAFETY: the bytes from `first` on are heads of terms that were written here, whose counts
        // this writer owns; nobody reads them afterwards.
        unsafe { blob::release_all(&self.out[self.first..]) }
        self.handles.set(false);
    }

    /// The term that was written. Exactly one must have been written.
    #[inline]
    pub fn as_term(&self) -> TermRef<'_> {
        // SAFETY: callers write one term, whole; the writer holds the counts of its handles while
        // it is borrowed.
        unsafe { TermRef::trusted(&self.out) }
    }

    /// The terms that were written, in order.
    #[inline]
    pub fn terms(&self) -> impl Iterator<Item = TermRef<'_>> {
        let mut rest = &self.out[..];
        std::iter::from_fn(move || {
            (!rest.is_empty()).then(|| {
                // SAFETY: whole terms were written, and something is left of them; the writer holds
                // the counts of their handles while it is borrowed.
                let (term, after) = unsafe { TermRef::split_first(rest) };
                rest = after;
                term
            })
        })
    }

    /// Discards what was written and gives back the counts of its handles.
    #[inline]
    pub fn clear(&mut self) {
        if self.handles.get() {
            self.release();
        }
        self.out.truncate(0);
        (self.first, self.negative_zero, self.has_magic) = (0, false, false);
    }

    /// Writes a term.
    #[inline(always)]
    pub fn term(&mut self, word: Word) -> Written {
        self.child(word, DEPTH)
    }

    /// Writes a term for a program that looks at some elements of tuples alone, at these positions
    /// in ascending order. The other elements of a tuple are written as `[]`.
    pub fn term_read_at(&mut self, word: Word, positions: &[usize]) -> Written {
        let Some(elements) = layout::tuple(word) else {
            return self.term(word);
        };
        self.out.head(TUPLE, elements.len());
        let mut positions = positions.iter();
        let mut next = positions.next();
        for (index, &element) in elements.iter().enumerate() {
            if next == Some(&(index + 1)) {
                next = positions.next();
                self.term(element)?;
            } else {
                self.out.byte(NIL);
            }
        }
        Ok(())
    }

    /// Writes a term, of which at most `depth` levels of containers recursively.
    #[inline]
    fn child(&mut self, word: Word, depth: u32) -> Written {
        if let Some(n) = layout::small(word) {
            self.small(n);
        } else if layout::is_atom(word) {
            self.atom(word);
        } else {
            return self.uncommon(word, depth);
        }
        Ok(())
    }

    /// Writes an integer of up to 64 bits.
    #[inline]
    fn small(&mut self, n: i64) {
        match small_parts(n) {
            // Up to 127 the tag is the whole term.
            (tag, 0) => self.out.byte(tag),
            (tag, used) => self.out.tagged(tag, n as u64, used),
        }
    }

    #[inline(never)]
    fn atom(&mut self, word: Word) {
        let id = atoms::id_of(self.env, word);
        // Atoms are numbered in the order of their first use, so most numbers fit one or two bytes.
        let used = (4 - id.leading_zeros() as usize / 8).max(1);
        self.out.tagged(ATOM1 + used as u8 - 1, u64::from(id), used);
    }

    /// As `child`, for a term that is neither a small integer nor an atom.
    #[inline(never)]
    fn uncommon(&mut self, word: Word, depth: u32) -> Written {
        // The order is that of how common the kinds are.
        if layout::is_boxed(word) {
            self.boxed(word, depth)
        } else if layout::is_cell(word) {
            self.list(word, depth)
        } else if word == layout::NIL {
            self.out.byte(NIL);
            Ok(())
        } else if layout::is_local_pid(word) {
            self.pid(word)
        } else if layout::is_local_port(word) {
            self.port(word)
        } else {
            self.official(word)
        }
    }

    #[inline]
    fn boxed(&mut self, word: Word, depth: u32) -> Written {
        // One load of the header says the kind. `kind` knows only kinds whose layout was verified.
        match layout::kind(word) {
            // Containers take a level of depth, and are left to `deep` below the last one.
            Kind::Tuple => match layout::tuple(word) {
                Some(elements) => self.tuple(elements, word, depth),
                None => Err(Unreadable),
            },
            Kind::HeapBinary => match layout::heap_binary(word) {
                Some(bytes) => {
                    self.inline_binary(bytes);
                    Ok(())
                }
                None => self.bits(word),
            },
            Kind::SharedBinary | Kind::PartOfBinary | Kind::RangeOfBinary => self.bits(word),
            Kind::Map => self.map(word, depth),
            Kind::Float => {
                self.float(layout::float_bits(word));
                Ok(())
            }
            Kind::Positive => self.integer(false, layout::digits(word)),
            Kind::Negative => self.integer(true, layout::digits(word)),
            Kind::Reference => self.reference(word),
            Kind::Fun => self.fun(word, depth),
            Kind::ForeignPid => self.foreign_pid(word),
            Kind::ForeignPort => self.foreign_port(word),
            Kind::ForeignReference => self.foreign_reference(word),
            Kind::Other => self.official(word),
        }
    }

    #[inline]
    fn tuple(&mut self, elements: &[Word], word: Word, depth: u32) -> Written {
        let Some(depth) = depth.checked_sub(1) else {
            return self.deep(word);
        };
        self.out.head(TUPLE, elements.len());
        elements.iter().try_for_each(|&e| self.child(e, depth))
    }

    /// Writes a list. Its encoding begins with the length, which is not known before the last cell:
    /// one byte is reserved for it, and a longer length is inserted at the end.
    #[inline(never)]
    fn list(&mut self, word: Word, depth: u32) -> Written {
        let Some(depth) = depth.checked_sub(1) else {
            return self.deep(word);
        };
        // Write the head as if the list were short and proper.
        let at = self.out.len();
        self.out.head(LIST, 0);
        let (mut count, mut rest) = (0, word);
        while let Some((head, tail)) = layout::cell(rest) {
            self.child(head, depth)?;
            (count, rest) = (count + 1, tail);
        }
        // Fill in the count. A count above 127 takes more than one byte, and moves the elements.
        self.out.set_count(at + 1, count);
        if rest != layout::NIL {
            // The list is improper: its tail follows the elements.
            self.out.change(at, |_| ILIST);
            return self.child(rest, depth);
        }
        Ok(())
    }

    #[inline]
    fn inline_binary(&mut self, bytes: &[u8]) {
        self.out.head(BIN, bytes.len());
        self.out.slice(bytes);
    }

    /// Writes a binary that is reference-counted or a part of another, or a bitstring.
    #[inline(never)]
    fn bits(&mut self, word: Word) -> Written {
        let Some(mut bits) = layout::bits(word) else {
            return self.official(word);
        };
        // Only a long binary in a value is shared with the emulator.
        let is_inline = self.mode != Mode::Shared || bits.bytes.len() <= INLINE_BINARY;
        if !is_inline
            && bits
                .shared
                .is_some_and(|s| s.is_written && s.whole.1 == bits.bytes.len())
        {
            // The emulator may append to this whole binary, and then move its bytes, so it can't be
            // shared as it is. Inspecting it makes the emulator stop appending.
            bits = binaries::no_longer_written(self.env, word).unwrap_or(bits);
        }
        if bits.more > 0 {
            // The bits after the last one don't belong to the term. Write zeros for them.
            let whole = bits.bytes.len() - 1;
            self.out.head(BITS, 8 * whole + bits.more);
            self.out.slice(&bits.bytes[..whole]);
            self.out
                .byte(bits.bytes[whole] & (0xFFu8 << (8 - bits.more)));
        } else if is_inline {
            self.inline_binary(bits.bytes);
        } else {
            // The handle owns a count of the binary, and the writer owns the handle.
            let handle = binaries::blob(bits.bytes, bits.shared).into_handle();
            self.handles.set(true);
            self.out.head(BLOB, bits.bytes.len());
            self.out.slice(&handle);
        }
        Ok(())
    }

    #[inline]
    fn float(&mut self, bits: u64) {
        self.negative_zero |= bits == 1 << 63;
        self.out.tagged(FLOAT, bits, 8);
    }

    /// Writes an integer of more than 60 bits, given as digits of 64 bits, the lowest first.
    #[inline(never)]
    fn integer(&mut self, negative: bool, digits: &[Word]) -> Written {
        // An integer of one digit may still fit a signed 64-bit integer and must then be encoded as
        // such, because identical terms must have identical bytes.
        if let &[digit] = digits {
            let n = match negative {
                true => 0i64.checked_sub_unsigned(digit as u64),
                false => i64::try_from(digit).ok(),
            };
            if let Some(n) = n {
                self.small(n);
                return Ok(());
            }
        }
        // The encoding leaves out the leading zero bytes of the highest digit.
        let zeros = digits
            .last()
            .map_or(0, |last| last.leading_zeros() as usize / 8);
        let bytes = 8 * digits.len() - zeros;
        self.out
            .head(if negative { BIG_NEG } else { BIG_POS }, bytes);
        // Whole digits are written, and the zero bytes at the end are cut off.
        let end = self.out.len() + bytes;
        digits
            .iter()
            .for_each(|digit| self.out.slice(&(*digit as u64).to_le_bytes()));
        self.out.truncate(end);
        Ok(())
    }

    #[inline(never)]
    fn pid(&mut self, word: Word) -> Written {
        let Some(pids) = layout::pids() else {
            return self.official(word);
        };
        let (id, serial) = pids.parts(word);
        self.out.head(PID, id as usize);
        self.out.varint(u64::from(serial));
        Ok(())
    }

    #[inline(never)]
    fn port(&mut self, word: Word) -> Written {
        let Some(number) = layout::port_number(word) else {
            return self.official(word);
        };
        self.out.head(PORT, number as usize);
        Ok(())
    }

    #[inline(never)]
    fn reference(&mut self, word: Word) -> Written {
        let Some(numbers) = layout::reference(word) else {
            return self.other_reference(word);
        };
        let [a, b, c] = numbers;
        self.out.head(REF, numbers.len());
        self.out
            .slice(&(u64::from(a) | u64::from(b) << 32).to_le_bytes());
        self.out.slice(&c.to_le_bytes());
        Ok(())
    }

    /// Writes an alias whose numbers contain its pid, or a reference that may keep something alive.
    #[inline(never)]
    fn other_reference(&mut self, word: Word) -> Written {
        if let Some(numbers) = layout::alias(word) {
            self.out.byte(REF);
            self.numbers(numbers.into_iter());
            return Ok(());
        }
        if let Some((object, numbers)) = resource::object(word) {
            self.has_magic = true;
            let is_inline = self.mode == Mode::Inline;
            self.out.byte(if is_inline { REF } else { REF_KEPT });
            self.numbers(numbers.into_iter());
            if !is_inline {
                // SAFETY: the object is the term's, which is the running call's.
                let handle = unsafe { kept::anchor_of(object) }.into_handle();
                self.handles.set(true);
                self.out.slice(&handle);
            }
            return Ok(());
        }
        let (mode, kept) = (self.mode, &mut self.has_magic);
        let mut bytes = Vec::new();
        let mut enc = Encoder::new(&mut bytes, mode);
        *kept |= official::encode_reference(self.env, word, &mut enc)?;
        self.handles.set(self.handles.get() | enc.has_handles());
        self.out.slice(&bytes);
        Ok(())
    }

    /// Writes the tag and the node of an identifier of another node.
    fn foreign(&mut self, tag: u8, word: Word) {
        let (name, creation) = layout::foreign_node(word);
        self.out.byte(tag);
        self.atom(name);
        self.out.slice(&creation.to_le_bytes());
    }

    #[inline(never)]
    fn foreign_pid(&mut self, word: Word) -> Written {
        self.foreign(PID_EXT, word);
        let data = layout::foreign_data(word)[0] as u64;
        self.out.varint(data & 0xFFFF_FFFF);
        self.out.varint(data >> 32);
        Ok(())
    }

    #[inline(never)]
    fn foreign_port(&mut self, word: Word) -> Written {
        self.foreign(PORT_EXT, word);
        self.out.varint(layout::foreign_data(word)[0] as u64);
        Ok(())
    }

    #[inline(never)]
    fn foreign_reference(&mut self, word: Word) -> Written {
        self.foreign(REF_EXT, word);
        self.numbers(layout::foreign_numbers(word));
        Ok(())
    }

    /// Writes the numbers of a reference.
    fn numbers(&mut self, numbers: impl Iterator<Item = u32>) {
        let mut numbers: ReferenceNumbers = numbers.collect();
        numbers.resize(stored_words(&numbers), 0);
        self.out.varint(numbers.len() as u64);
        for number in numbers {
            self.out.slice(&number.to_le_bytes());
        }
    }

    #[inline(never)]
    fn fun(&mut self, word: Word, depth: u32) -> Written {
        // A fun whose code can't be read here is written by the official functions.
        let Some(code) = funs::code(self.env, word) else {
            return self.official(word);
        };
        // The encoding of the code is followed by the free variables as children.
        if depth == 0 && code.free > 0 {
            return self.deep(word);
        }
        self.out.slice(&code.bytes);
        layout::fun(word, code.free)
            .iter()
            .try_for_each(|&free| self.child(free, depth - 1))
    }

    #[inline(never)]
    fn map(&mut self, word: Word, depth: u32) -> Written {
        let Some(depth) = depth.checked_sub(1) else {
            return self.deep(word);
        };
        // The pairs may be copied in the emulator's order only if that has been verified to be the
        // order of the encoding.
        if !trees::is_order_known() {
            return self.official(word);
        }
        match layout::flatmap(word) {
            Some((keys, values)) => {
                self.out.head(MAP, keys.len());
                for (&key, &value) in keys.iter().zip(values) {
                    self.child(key, depth)?;
                    self.child(value, depth)?;
                }
                Ok(())
            }
            // A large map in a key must be sorted, because keys are identified by their bytes.
            None if self.mode == Mode::Inline => self.official(word),
            None => self.tree(word, depth),
        }
    }

    /// Writes a large map in the order of the emulator's tree, with its layout.
    #[inline(never)]
    fn tree(&mut self, word: Word, depth: u32) -> Written {
        // `read` fails if the layout of trees wasn't verified.
        let mut tree = trees::Tree::default();
        if trees::read(word, &mut tree).is_none() {
            return self.official(word);
        }
        self.tree_head(&tree);
        for &cell in &tree.pairs {
            let (key, value) = layout::cell(cell).ok_or(Unreadable)?;
            self.child(key, depth)?;
            self.child(value, depth)?;
        }
        Ok(())
    }

    fn tree_head(&mut self, tree: &trees::Tree) {
        self.out.head(TREE_MAP, tree.pairs.len());
        self.out.varint(tree.tree_layout.len() as u64);
        self.out.slice(&tree.tree_layout);
    }

    /// Writes a term of any depth with an explicit stack.
    #[cold]
    #[inline(never)]
    fn deep(&mut self, word: Word) -> Written {
        // The open containers, the innermost last, each with the children that are still to be
        // written.
        let mut open = vec![vec![word].into_iter()];
        while let Some(top) = open.last_mut() {
            let Some(word) = top.next() else {
                open.pop();
                continue;
            };
            match self.children(word)? {
                Some(children) => open.push(children.into_iter()),
                // A leaf, or a term that `children` doesn't split, which needs one level.
                None => self.child(word, 1)?,
            }
        }
        Ok(())
    }

    /// Writes the head of a container and returns its children, which are to be written next. For
    /// any other term writes nothing and returns `None`.
    fn children(&mut self, word: Word) -> Result<Option<Vec<Word>>, Unreadable> {
        // A list, a tuple, or a boxed term with children.
        if layout::is_cell(word) {
            let (count, tail) = list_length(word);
            // The tail is known only at the end, but the head comes first. So the list is walked
            // twice.
            let is_proper = tail == layout::NIL;
            self.out.head(if is_proper { LIST } else { ILIST }, count);
            let mut all = Vec::with_capacity(count + 1);
            let mut rest = word;
            while let Some((head, tail)) = layout::cell(rest) {
                all.push(head);
                rest = tail;
            }
            all.extend(Some(tail).filter(|_| !is_proper));
            return Ok(Some(all));
        }
        if let Some(elements) = layout::tuple(word) {
            self.out.head(TUPLE, elements.len());
            return Ok(Some(elements.to_vec()));
        }
        if !layout::is_boxed(word) {
            return Ok(None);
        }
        Ok(match layout::kind(word) {
            // Without a known order of keys, maps are encoded by the official functions.
            Kind::Map if trees::is_order_known() => match layout::flatmap(word) {
                Some((keys, values)) => {
                    self.out.head(MAP, keys.len());
                    let pairs = keys.iter().zip(values);
                    Some(pairs.flat_map(|(&key, &value)| [key, value]).collect())
                }
                // Index keys have large maps in the sorted form, which this function can't write.
                None if self.mode == Mode::Inline => None,
                None => {
                    let mut tree = trees::Tree::default();
                    trees::read(word, &mut tree).map(|()| {
                        self.tree_head(&tree);
                        let pairs = tree.pairs.iter().filter_map(|&cell| layout::cell(cell));
                        pairs.flat_map(|(key, value)| [key, value]).collect()
                    })
                }
            },
            Kind::Fun => funs::code(self.env, word).map(|code| {
                self.out.slice(&code.bytes);
                layout::fun(word, code.free).to_vec()
            }),
            _ => None,
        })
    }

    /// Writes a term that can be read only through the emulator's official functions.
    #[cold]
    #[inline(never)]
    fn official(&mut self, word: Word) -> Written {
        let mut bytes = Vec::new();
        // It is encoded to a buffer of its own, in this writer's mode.
        let mut enc = Encoder::new(&mut bytes, self.mode);
        let kept = official::encode(self.env, word, &mut enc);
        self.handles.set(self.handles.get() | enc.has_handles());
        self.negative_zero |= enc.has_negative_zero();
        self.out.slice(&bytes);
        self.has_magic |= kept?;
        Ok(())
    }

    /// Writes the index key of a term.
    #[inline(always)]
    pub fn key(&mut self, word: Word, form: KeyForm) -> Written {
        match (form, layout::small(word)) {
            // Small integers are the most common keys. Their order key is made in registers.
            (KeyForm::Hash { .. }, Some(n)) => self.small(n),
            (KeyForm::Ordered, Some(n)) => match order_key::of_int(n) {
                Some((first, rest, used)) => self.out.tagged(first, u64::from_le_bytes(rest), used),
                None => return self.other_key(word, form),
            },
            _ => return self.other_key(word, form),
        }
        Ok(())
    }

    /// As `key`, for a key that is not a small integer.
    #[inline(never)]
    fn other_key(&mut self, word: Word, form: KeyForm) -> Written {
        let KeyForm::Hash { legacy_zero } = form else {
            return self.order_key(word, DEPTH).map(drop);
        };
        let start = self.out.len();
        self.term(word)?;
        // On releases of the emulator to which 0.0 and −0.0 are identical, they are one key.
        if legacy_zero && self.negative_zero {
            self.without_negative_zero(start);
        }
        Ok(())
    }

    /// Replaces each −0.0 by 0.0 in the term that begins at `start`.
    #[cold]
    fn without_negative_zero(&mut self, start: usize) {
        // SAFETY: one whole term in inline mode, without handles.
        let term = unsafe { TermRef::trusted(&self.out[start..]) };
        let plain = larder_term::without_negative_zero(term);
        self.out.truncate(start);
        self.out.slice(&plain);
    }
}

/// The number of cells of a list, and the tail of the last one.
fn list_length(word: Word) -> (usize, Word) {
    let (mut count, mut rest) = (0, word);
    while let Some((_, tail)) = layout::cell(rest) {
        (count, rest) = (count + 1, tail);
    }
    (count, rest)
}

/// The tag of an integer, and the number of its bytes that follow the tag.
#[inline]
fn small_parts(n: i64) -> (u8, usize) {
    if (0..=127).contains(&n) {
        return (SMALL + n as u8, 0);
    }
    let bits = 65 - (n ^ (n >> 63)).leading_zeros() as usize;
    let used = bits.div_ceil(8);
    (INT1 + used as u8 - 1, used)
}

/// Appends one term to an encoder.
pub fn term(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Written {
    let mut stack = stack_bytes();
    let mut writer = Writer::at(&mut stack, env, out.mode());
    writer.term(word)?;
    let handles = writer.handles.take();
    // SAFETY: one whole term in the encoder's mode; the counts of its handles were the writer's,
    // which has given them up.
    unsafe { out.adopt(&writer, handles, writer.negative_zero) };
    Ok(())
}

/// A term in a buffer of its own.
pub fn copied(env: *mut Env, word: Word) -> Result<TermBuf, Unreadable> {
    let mut buffer = TermBuf::default();
    buffer.encode(|out| term(env, word, out))?;
    Ok(buffer)
}

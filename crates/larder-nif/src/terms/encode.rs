//! Terms of the BEAM to stored bytes.
//!
//! A [`Writer`] reads a term's words where they lie and appends its bytes to a [`Buffer`]. Small
//! integers and atoms are a part of whatever calls; each other kind of term has a function of its
//! own, so that a rare kind costs where it is met, and its neighbours don't notice.
//!
//! ```text
//!  child ─▶ small integer, atom
//!        ╰▶ uncommon ─▶ cell ─▶ list
//!                    ├▶ boxed ─▶ tuple, map, binary, float, large integer, reference, fun
//!                    │    ╰▶ official: what has no proved layout, by the external format
//!                    ╰▶ [], pid, port
//! ```
//!
//! Containers are written by calls within calls, for up to [`DEPTH`] levels; what lies deeper is
//! written with a stack on the heap ([`Writer::deep`]), so no depth exhausts the thread's.
//!
//! # Modes
//!
//! As those of [`larder_term::Encoder`], whose bytes these are: index keys are written inline,
//! exact keys and compressed rows may have anchors, other rows share binaries of more than 127
//! bytes with the emulator.
//!
//! # A row
//!
//! [`Row::write`] makes an object's key and value in one walk:
//!
//! ```text
//!  {user, 17, "Ann"}, keypos 2      key    17                          index key
//!                                   value  head | user | "Ann"         head: arity and flags
//!                                               ╰ or: exact key | …    if 17 doesn't come back from
//!                                                                      the index key
//! ```
//!
//! 1. The value's head: arity and flags, as far as they are known yet.
//! 2. The index key: for a hash its canonical bytes, in an ordered_set its order key.
//! 3. The key itself, in front of the value's elements, where the index key says less than it.
//! 4. The other elements, in order.
//! 5. The flags that the elements have brought about: handles; compression.

use super::buffer::{Buffer, StackBytes};
use super::{atoms, binaries, funs, official, trees};
use crate::layout::{self, Bits, Kind};
use crate::sys::*;
use larder::Table;
use larder_term::object::{
    self, KeyForm, ObjectRef, EXACT_KEY, FLAG_BITS, FROM_ORDER, HAS_HANDLES,
};
use larder_term::tags::*;
use larder_term::{blob, order_key, Encoder, Mode, TermRef};
use std::cell::Cell;

pub use super::buffer::stack_bytes;
pub use super::official::Unreadable;

/// The most levels of containers that are written by calls within calls.
const DEPTH: u32 = 64;

/// What a written run owes or shows.
type Written = Result<(), Unreadable>;

/// Appends terms to bytes.
///
/// Invariant: the bytes are whole terms in its mode, but for what was begun when something could
/// not be read. The writer owns one count for each handle among those from `first` on.
pub struct Writer<'p> {
    env: *mut Env,
    out: Buffer<'p>,
    mode: Mode,
    /// Where the terms begin.
    first: usize,
    /// A handle was written, whose count is the writer's.
    handles: Cell<bool>,
    /// A −0.0 was written.
    negative_zero: bool,
    /// In inline mode: a reference that may keep something alive was written, which keeps nothing
    /// here.
    has_magic: bool,
}

impl std::ops::Deref for Writer<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.out
    }
}

impl Drop for Writer<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.handles.get() {
            self.release();
        }
    }
}

impl<'p> Writer<'p> {
    /// Nothing yet.
    #[inline(always)]
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

    #[cold]
    #[inline(never)]
    fn release(&mut self) {
        // SAFETY: the bytes from `first` on are heads of terms that were written here, whose counts
        // this writer owns; nobody reads them afterwards.
        unsafe { blob::release_all(&self.out[self.first..]) }
        self.handles.set(false);
    }

    /// The one term that was written.
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
                let (term, behind) = unsafe { TermRef::split_first(rest) };
                rest = behind;
                term
            })
        })
    }

    /// Forgets what was written, and gives back the counts of its handles.
    #[inline(always)]
    fn clear(&mut self) {
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

    /// Writes a term with no more than so many levels of containers by calls within calls.
    #[inline(always)]
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

    /// A small integer.
    #[inline(always)]
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
        // Atoms are numbered from the first on, so most numbers have one or two bytes.
        let used = (4 - id.leading_zeros() as usize / 8).max(1);
        self.out.tagged(ATOM1 + used as u8 - 1, u64::from(id), used);
    }

    /// As `child`, for another term than a small integer or an atom.
    #[inline(never)]
    fn uncommon(&mut self, word: Word, depth: u32) -> Written {
        if layout::is_boxed(word) {
            self.boxed(word, depth)
        } else if layout::is_cell(word) {
            self.list(word, depth)
        } else if word == layout::NIL {
            self.out.byte(NIL);
            Ok(())
        } else if layout::is_local_pid(word) {
            self.pid(word)
        } else if let (true, Some(ports)) = (layout::is_local_port(word), layout::ports()) {
            self.out.head(PORT, ports.parts(word).0 as usize);
            Ok(())
        } else {
            self.official(word)
        }
    }

    #[inline(always)]
    fn boxed(&mut self, word: Word, depth: u32) -> Written {
        match layout::kind(word) {
            Kind::Tuple => match layout::tuple(word) {
                Some(elements) => self.tuple(elements, word, depth),
                None => Err(Unreadable),
            },
            Kind::HeapBinary => match layout::heap_binary(word) {
                Some(bytes) => {
                    self.inline_binary(bytes);
                    Ok(())
                }
                None => self.official(word),
            },
            Kind::SharedBinary | Kind::PartOfBinary => self.bits(word),
            Kind::Map => self.map(word, depth),
            Kind::Float => {
                self.float(layout::float_bits(word));
                Ok(())
            }
            Kind::Positive => self.integer(false, layout::digits(word)),
            Kind::Negative => self.integer(true, layout::digits(word)),
            Kind::Reference => self.reference(word),
            Kind::Fun => self.fun(word, depth),
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

    /// A list: its length is written first, so one byte is kept for it, and more are put in where
    /// it is longer.
    #[inline(never)]
    fn list(&mut self, word: Word, depth: u32) -> Written {
        let Some(depth) = depth.checked_sub(1) else {
            return self.deep(word);
        };
        // How many cells there are is known at the end only.
        let at = self.out.len();
        self.out.head(LIST, 0);
        let (mut count, mut rest) = (0, word);
        while let Some((head, tail)) = layout::cell(rest) {
            self.child(head, depth)?;
            (count, rest) = (count + 1, tail);
        }
        // The count takes the place that was kept. Over 127 it is longer, and the elements move.
        self.out.set_count(at + 1, count);
        if rest != layout::NIL {
            // What is behind the last cell is no list: its tail follows the elements.
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

    /// A binary that does not lie on a heap whole, or a bitstring.
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
            // A whole binary to which the emulator may append is not to be shared, or its bytes
            // could move. Once inspected it is appended to no more.
            bits = binaries::no_longer_written(self.env, word).unwrap_or(bits);
        }
        if bits.more > 0 {
            // The bits behind the last one are not the term's: they become zeros.
            let whole = bits.bytes.len() - 1;
            self.out.head(BITS, 8 * whole + bits.more);
            self.out.slice(&bits.bytes[..whole]);
            self.out
                .byte(bits.bytes[whole] & (0xFFu8 << (8 - bits.more)));
        } else if is_inline {
            self.inline_binary(bits.bytes);
        } else {
            // The handle owns a count from here on, and the writer owns the handle.
            let handle = binaries::blob(bits.bytes, bits.shared).into_handle();
            self.handles.set(true);
            self.out.head(BLOB, bits.bytes.len());
            self.out.slice(&handle);
        }
        Ok(())
    }

    #[inline(always)]
    fn float(&mut self, bits: u64) {
        self.negative_zero |= bits == 1 << 63;
        self.out.tagged(FLOAT, bits, 8);
    }

    /// An integer of more than 60 bits, by its digits.
    #[inline(never)]
    fn integer(&mut self, negative: bool, digits: &[Word]) -> Written {
        // One digit may still be within 64 bits, and identical terms have identical bytes.
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
        // The highest digit may have zero bytes, which the encoding leaves out.
        let zeros = digits
            .last()
            .map_or(0, |last| last.leading_zeros() as usize / 8);
        let bytes = 8 * digits.len() - zeros;
        self.out
            .head(if negative { BIG_NEG } else { BIG_POS }, bytes);
        // Digits are written whole; what is too much is cut off.
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
    fn reference(&mut self, word: Word) -> Written {
        // None: it may keep something alive, or is of another node.
        let Some(numbers) = layout::reference(word) else {
            return self.kept_reference(word);
        };
        let [a, b, c] = numbers;
        self.out.head(REF, numbers.len());
        self.out
            .slice(&(u64::from(a) | u64::from(b) << 32).to_le_bytes());
        self.out.slice(&c.to_le_bytes());
        Ok(())
    }

    /// A reference that may keep something alive, or is of another node.
    #[cold]
    fn kept_reference(&mut self, word: Word) -> Written {
        let (mode, kept) = (self.mode, &mut self.has_magic);
        let mut bytes = Vec::new();
        let mut enc = Encoder::new(&mut bytes, mode);
        *kept |= official::encode_reference(self.env, word, &mut enc)?;
        self.handles.set(self.handles.get() | enc.has_handles());
        self.out.slice(&bytes);
        Ok(())
    }

    #[inline(never)]
    fn fun(&mut self, word: Word, depth: u32) -> Written {
        let Some(code) = funs::code(self.env, word) else {
            return self.official(word);
        };
        // Free variables are children like any others.
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
        // The pairs of a map may be taken as they lie if their order is the encoding's.
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
            // A large map in a key is sorted: the bytes are its identity.
            None if self.mode == Mode::Inline => self.official(word),
            None => self.tree(word, depth),
        }
    }

    /// A large map, as its tree lies.
    #[inline(never)]
    fn tree(&mut self, word: Word, depth: u32) -> Written {
        let Some(tree) = trees::read(word) else {
            return self.official(word);
        };
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
        self.out.varint(tree.shape.len() as u64);
        self.out.slice(&tree.shape);
    }

    /// A term of any depth: the children that are yet to be written are on a stack.
    #[cold]
    #[inline(never)]
    fn deep(&mut self, word: Word) -> Written {
        // A stack of the children yet to be written, the innermost container's last.
        let mut open = vec![vec![word].into_iter()];
        while let Some(top) = open.last_mut() {
            let Some(word) = top.next() else {
                open.pop();
                continue;
            };
            match self.children(word)? {
                Some(children) => open.push(children.into_iter()),
                // It has no children, or few.
                // A leaf. One level is allowed, for what `children` doesn't take apart.
                None => self.child(word, 1)?,
            }
        }
        Ok(())
    }

    /// Writes the head of a container; its children are to be written next. None, and nothing is
    /// written, for what is none.
    fn children(&mut self, word: Word) -> Result<Option<Vec<Word>>, Unreadable> {
        if layout::is_cell(word) {
            let (count, tail) = list_length(word);
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
            Kind::Map if trees::is_order_known() => match layout::flatmap(word) {
                Some((keys, values)) => {
                    self.out.head(MAP, keys.len());
                    let pairs = keys.iter().zip(values);
                    Some(pairs.flat_map(|(&key, &value)| [key, value]).collect())
                }
                None if self.mode == Mode::Inline => None,
                None => trees::read(word).map(|tree| {
                    self.tree_head(&tree);
                    let pairs = tree.pairs.iter().filter_map(|&cell| layout::cell(cell));
                    pairs.flat_map(|(key, value)| [key, value]).collect()
                }),
            },
            Kind::Fun => funs::code(self.env, word).map(|code| {
                self.out.slice(&code.bytes);
                layout::fun(word, code.free).to_vec()
            }),
            _ => None,
        })
    }

    /// A term that official functions have to read.
    #[cold]
    #[inline(never)]
    fn official(&mut self, word: Word) -> Written {
        let mut bytes = Vec::new();
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
            // Integers are the commonest keys; their order key is made in registers.
            (KeyForm::Hash { .. }, Some(n)) => self.small(n),
            (KeyForm::Ordered, Some(n)) => match order_key::of_int(n) {
                Some((first, rest, used)) => self.out.tagged(first, u64::from_le_bytes(rest), used),
                None => return self.other_key(word, form),
            },
            _ => return self.other_key(word, form),
        }
        Ok(())
    }

    #[inline(never)]
    fn other_key(&mut self, word: Word, form: KeyForm) -> Written {
        let KeyForm::Hash { legacy_zero } = form else {
            // Of binaries the order key is made from their bytes, of others from their encoding.
            if self.binary_order_key(word) {
                return Ok(());
            }
            let mut stack = stack_bytes();
            let mut exact = Writer::at(&mut stack, self.env, Mode::Inline);
            exact.term(word)?;
            self.order_key(exact.as_term());
            return Ok(());
        };
        let start = self.out.len();
        self.term(word)?;
        // Where the host takes 0.0 and −0.0 for one, they are one key.
        if legacy_zero && self.negative_zero {
            self.without_negative_zero(start);
        }
        Ok(())
    }

    /// Makes 0.0 of each −0.0 in the term that begins at `start`.
    #[cold]
    fn without_negative_zero(&mut self, start: usize) {
        // SAFETY: one whole term in inline mode, without handles.
        let term = unsafe { TermRef::trusted(&self.out[start..]) };
        let plain = larder_term::without_negative_zero(term);
        self.out.truncate(start);
        self.out.slice(&plain);
    }

    /// Writes the order key of a binary, from its bytes; false, and nothing is written, of another
    /// term.
    #[inline]
    fn binary_order_key(&mut self, word: Word) -> bool {
        let bits = Some(word)
            .filter(|&word| layout::is_boxed(word))
            .and_then(layout::bits);
        let Some(Bits { bytes, more: 0, .. }) = bits else {
            return false;
        };
        // An order key has at most two bytes for each byte, and a mark for each group.
        let spare = self.out.spare(2 * bytes.len() + 64);
        let Some(len) = order_key::encode_binary(bytes, spare) else {
            return false;
        };
        // SAFETY: it wrote so many bytes.
        unsafe { self.out.written(len) }
        true
    }

    /// Writes the order key of a term. Whether the term comes back from it.
    fn order_key(&mut self, term: TermRef<'_>) -> bool {
        // Most keys have an order key that one walk writes in place.
        let most = 2 * term.bytes().len() + 64;
        if let Some((len, comes_back)) = order_key::encode_flat(term, self.out.spare(most)) {
            // SAFETY: it wrote so many bytes.
            unsafe { self.out.written(len) }
            return comes_back;
        }
        // Maps, and lists within many lists, need the general one.
        let mut bytes = Vec::with_capacity(most);
        order_key::encode_general(term, &mut bytes);
        self.out.slice(&bytes);
        order_key::comes_back(term)
    }
}

/// The number of cells of a list, and what is behind the last.
fn list_length(word: Word) -> (usize, Word) {
    let (mut count, mut rest) = (0, word);
    while let Some((_, tail)) = layout::cell(rest) {
        (count, rest) = (count + 1, tail);
    }
    (count, rest)
}

/// The tag of an integer, and how many of its bytes follow.
#[inline(always)]
fn small_parts(n: i64) -> (u8, usize) {
    if (0..=127).contains(&n) {
        return (SMALL + n as u8, 0);
    }
    let bits = 65 - (n ^ (n >> 63)).leading_zeros() as usize;
    let used = bits.div_ceil(8);
    (INT1 + used as u8 - 1, used)
}

/// An object's key and value, as a table keeps them.
pub struct Row<'p> {
    key: Writer<'p>,
    value: Writer<'p>,
}

impl<'p> Row<'p> {
    /// Nothing yet.
    #[inline(always)]
    pub fn at([key, value]: [&'p mut StackBytes; 2], env: *mut Env) -> Self {
        Row {
            key: Writer::at(key, env, Mode::Inline),
            value: Writer::at(value, env, Mode::Shared),
        }
    }

    /// Forgets the object, so that another of the same table can be written.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.key.clear();
        self.value.clear();
    }

    /// Writes the object that the elements are. `Unreadable` also if they are too few to have a
    /// key.
    #[inline(always)]
    pub fn write(&mut self, table: &Table, elements: &[Word]) -> Written {
        // 1. The head: arity and flags. In an ordered_set the key is taken to come back from the
        // index key until it is seen not to.
        let (keypos, form) = (table.keypos(), table.key_form());
        let &word = elements.get(keypos - 1).ok_or(Unreadable)?;
        let flags = match form {
            KeyForm::Hash { .. } => 0,
            KeyForm::Ordered => FROM_ORDER,
        };
        let value = &mut self.value;
        if table.compressed() {
            value.mode = Mode::Anchored;
        }
        value
            .out
            .varint((elements.len() << FLAG_BITS) as u64 | u64::from(flags));
        value.first = value.out.len();
        // 2, 3. The key.
        match layout::small(word) {
            Some(_) => self.key.key(word, form)?,
            None => self.other_key(word, form)?,
        }
        let value = &mut self.value;
        // 4. The other elements.
        for (i, &element) in elements.iter().enumerate() {
            if i + 1 != keypos {
                value.term(element)?;
            }
        }
        // 5. What only the elements tell.
        if value.handles.get() || table.compressed() {
            self.finish(table);
        }
        Ok(())
    }

    /// The object that was written.
    #[inline(always)]
    pub fn object(&self) -> ObjectRef<'_> {
        // SAFETY: key and value are as an encoder would have written them; the counts of its
        // handles are held by the value's writer, or by those to whom they were given.
        unsafe { ObjectRef::trusted(&self.key.out, &self.value.out) }
    }

    /// Gives the counts of its handles up; whether there are any. The object is as it was, and
    /// whoever kept it has them.
    #[inline]
    pub fn give_up(&self) -> bool {
        self.value.handles.take()
    }

    /// Takes the counts back that were given up, and that nobody wanted.
    pub fn take_back(&self) {
        self.value.handles.set(true);
    }

    /// Writes a key that is no small integer: the index key, and the key itself in front of the
    /// value where it does not come back from that.
    #[inline(never)]
    fn other_key(&mut self, word: Word, form: KeyForm) -> Written {
        let Row { key, value } = self;
        match form {
            KeyForm::Hash { legacy_zero } => {
                key.term(word)?;
                // The index key is inline, so it keeps nothing alive, and has one zero where the
                // host has one. If that is less than the key, the value has the key itself.
                if key.has_magic || (legacy_zero && key.negative_zero) {
                    self.keep_exact(word)?;
                }
            }
            KeyForm::Ordered if key.binary_order_key(word) => {}
            KeyForm::Ordered => {
                let mode = std::mem::replace(&mut value.mode, Mode::Anchored);
                value.term(word)?;
                value.mode = mode;
                // SAFETY: one whole term was written there; its handles' counts are the writer's.
                let exact = unsafe { TermRef::trusted(&value.out[value.first..]) };
                if key.order_key(exact) && !value.handles.get() {
                    // It comes back from its order key: the value need not have it.
                    value.out.truncate(value.first);
                } else {
                    // It stays in front of the elements, and the head says so.
                    value.out.change(0, |head| head ^ (FROM_ORDER | EXACT_KEY));
                }
            }
        }
        Ok(())
    }

    /// Keeps the key itself in the value: its index key lacks what it keeps alive, or the sign of a
    /// zero.
    #[cold]
    fn keep_exact(&mut self, word: Word) -> Written {
        let Row { key, value } = self;
        let mode = std::mem::replace(&mut value.mode, Mode::Anchored);
        value.term(word)?;
        value.mode = mode;
        value.out.change(0, |head| head | EXACT_KEY);
        if key.negative_zero {
            key.without_negative_zero(0);
        }
        Ok(())
    }

    /// Notes handles in the value's head; compresses a value without.
    #[inline(never)]
    fn finish(&mut self, table: &Table) {
        let value = &mut self.value;
        if value.handles.get() {
            // Who drops the value later looks for handles only if the head says so.
            value.out.change(0, |head| head | HAS_HANDLES);
        } else if table.compressed() {
            if let Some(packed) = object::compressed(&value.out) {
                value.out.replace(packed);
            }
        }
    }
}

/// Pushes one term to an encoder.
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

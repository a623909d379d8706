//! Small terms straight from words to bytes, on the stack.
//!
//! Keys are mostly small integers, atoms, short binaries, or tuples of these, and so are the other elements of most rows. What is here writes their
//! canonical bytes to an array of fixed size, without an [`Encoder`](larder_term::Encoder)'s bookkeeping. It gives up (`None`) at whatever is not so simple: a
//! float, an identifier, a long binary, many levels, a long list, more bytes than there is room for. Then the walker of [`encode`](crate::encode) begins
//! anew.
//!
//! Invariant: the bytes are those that an encoder writes in any mode, and they hold neither a handle nor a −0.0.

use crate::encode::binary_bytes;
use crate::key_sets::KeySets;
use crate::sys::*;
use crate::{atoms, layout};
use larder_term::object::{KeyForm, ObjectRef, EXACT_KEY, FLAG_BITS, FROM_ORDER};
use larder_term::order_key;
use larder_term::tags::*;
use larder_term::TermRef;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;

/// Room for a term or an object.
const ROOM: usize = 4096;
/// The most bytes that a small integer or an atom takes.
const WORD: usize = 9;
/// The longest list that is written here: its length takes one byte.
const LONGEST: usize = 127;
/// The largest map that is written here.
const MOST: usize = 32;
/// The most levels below a term that are written here, each by a call within a call.
const DEPTH: u32 = 6;

/// Where [`Bytes`] are: on the stack, unwritten. (What begins with a length, too, might be filled with zeros as a whole.)
pub type Place = MaybeUninit<[u8; ROOM]>;

/// A place.
#[inline(always)]
pub fn place() -> Place {
    MaybeUninit::uninit()
}

/// Bytes on the stack.
///
/// Invariant: the first `len` are written, and `len` is at most `ROOM`.
pub struct Bytes<'p> {
    len: usize,
    bytes: &'p mut Place,
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are within the array and written, says the invariant.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }
}

impl<'p> Bytes<'p> {
    /// None yet.
    #[inline(always)]
    pub fn at(bytes: &'p mut Place) -> Self {
        Bytes { len: 0, bytes }
    }

    /// The room that is left.
    #[inline]
    fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: bytes that may be unwritten may lie where bytes do; the array has ROOM of them, and `len` is at most that, says the invariant.
        unsafe {
            let start = self.bytes.as_mut_ptr().cast::<MaybeUninit<u8>>();
            std::slice::from_raw_parts_mut(start.add(self.len), ROOM - self.len)
        }
    }

    /// A tag and eight bytes, of which the first `used` count.
    #[inline]
    fn tagged(&mut self, tag: u8, payload: u64, used: usize) -> Option<()> {
        let room = self.room().first_chunk_mut::<WORD>()?;
        // One store for all that mostly counts: a load of some of it then need not wait until it is in the cache.
        let word = payload << 8 | u64::from(tag);
        *room.first_chunk_mut::<8>()? = word.to_le_bytes().map(MaybeUninit::new);
        room[8].write((payload >> 56) as u8);
        self.len += (1 + used).min(WORD);
        Some(())
    }

    #[inline]
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.room().first_mut()?.write(byte);
        self.len += 1;
        Some(())
    }

    #[inline]
    fn slice(&mut self, bytes: &[u8]) -> Option<()> {
        let room = self.room().get_mut(..bytes.len())?;
        for (place, &byte) in room.iter_mut().zip(bytes) {
            place.write(byte);
        }
        self.len += bytes.len();
        Some(())
    }

    /// Puts another byte where one was written.
    fn set(&mut self, at: usize, byte: u8) {
        debug_assert!(at < self.len);
        // SAFETY: within what was written, which is within the array.
        unsafe { self.bytes.as_mut_ptr().cast::<u8>().add(at).write(byte) }
    }

    /// A tag and a count of less than 128.
    #[inline]
    fn head(&mut self, tag: u8, count: usize) -> Option<()> {
        if count >= 0x80 {
            return None;
        }
        self.byte(tag)?;
        self.byte(count as u8)
    }

    /// A small integer.
    #[inline(always)]
    fn small(&mut self, n: i64) -> Option<()> {
        match small_parts(n) {
            (tag, 0) => self.byte(tag),
            (tag, used) => self.tagged(tag, n as u64, used),
        }
    }

    /// A small integer, an atom or `[]`.
    #[inline]
    fn immediate(&mut self, env: *mut Env, word: Word) -> Option<()> {
        if word == layout::NIL {
            return self.byte(NIL);
        }
        match word_parts(env, word)? {
            (tag, _, 0) => self.byte(tag),
            (tag, payload, used) => self.tagged(tag, payload, used),
        }
    }

    /// A term without children.
    #[inline]
    fn leaf(&mut self, env: *mut Env, word: Word) -> Option<()> {
        if !layout::is_boxed(word) {
            return self.immediate(env, word);
        }
        self.binary(binary_bytes(env, word)?)
    }

    /// Writes a term of a few levels.
    #[inline(always)]
    pub fn term(&mut self, env: *mut Env, word: Word) -> Option<()> {
        self.child(env, word, DEPTH)
    }

    /// Writes a term that has no more than so many levels below it.
    #[inline(always)]
    fn child(&mut self, env: *mut Env, word: Word, depth: u32) -> Option<()> {
        match layout::small(word) {
            Some(n) => self.small(n),
            None if layout::is_atom(word) => self.atom(env, word),
            None => self.other(env, word, depth),
        }
    }

    #[inline(never)]
    fn atom(&mut self, env: *mut Env, word: Word) -> Option<()> {
        let (tag, payload, used) = atom_parts(env, word);
        self.tagged(tag, payload, used)
    }

    /// As `child`, for another term than a small integer or an atom.
    #[inline(never)]
    fn other(&mut self, env: *mut Env, word: Word, depth: u32) -> Option<()> {
        if !layout::is_boxed(word) && !layout::is_cell(word) {
            self.immediate(env, word)
        } else if depth == 0 {
            self.leaf(env, word)
        } else {
            self.compound(env, word, depth - 1)
        }
    }

    /// Writes the index key of a term: in hash order of one of a few levels, in key order of one without lists and maps.
    #[inline(always)]
    pub fn key(&mut self, env: *mut Env, word: Word, form: KeyForm) -> Option<()> {
        match (form, layout::small(word)) {
            (KeyForm::Hash { .. }, _) => self.term(env, word),
            (KeyForm::Ordered, Some(n)) => {
                let (first, rest, used) = order_key::of_int(n)?;
                self.tagged(first, u64::from_le_bytes(rest), used)
            }
            (KeyForm::Ordered, None) => self.ordered(env, word),
        }
    }

    #[inline(never)]
    fn ordered(&mut self, env: *mut Env, word: Word) -> Option<()> {
        let mut place = place();
        let mut plain = Bytes::at(&mut place);
        plain.term(env, word)?;
        self.order_key(plain.as_term()).map(|_| ())
    }

    /// Writes the order key of a term. Whether the term comes back from it.
    #[inline]
    fn order_key(&mut self, term: TermRef<'_>) -> Option<bool> {
        let (len, comes_back) = order_key::encode_flat(term, self.room())?;
        self.len += len;
        Some(comes_back)
    }

    /// Writes a tuple of such terms.
    pub fn row(&mut self, env: *mut Env, elements: &[Word]) -> Option<()> {
        self.head(TUPLE, elements.len())?;
        elements.iter().try_for_each(|&e| self.term(env, e))
    }

    /// The one term that was written.
    #[inline]
    pub fn as_term(&self) -> TermRef<'_> {
        // SAFETY: callers write one term, whole (they give up if that fails), as an encoder would have; there is no handle in it.
        unsafe { TermRef::trusted(self) }
    }

    fn compound(&mut self, env: *mut Env, word: Word, depth: u32) -> Option<()> {
        if layout::is_cell(word) {
            return self.list(env, word, depth);
        }
        if let Some(elements) = layout::tuple(word) {
            self.head(TUPLE, elements.len())?;
            return elements.iter().try_for_each(|&e| self.child(env, e, depth));
        }
        if let Some(bytes) = layout::heap_binary(word) {
            return self.binary(bytes);
        }
        // Before the emulator is asked for the bytes of a part of a binary.
        match layout::flatmap(word) {
            Some((keys, values)) => self.map(env, keys, values, depth),
            None => self.binary(binary_bytes(env, word)?),
        }
    }

    fn binary(&mut self, bytes: &[u8]) -> Option<()> {
        if bytes.len() > INLINE_BINARY {
            return None;
        }
        self.head(BIN, bytes.len())?;
        self.slice(bytes)
    }

    fn list(&mut self, env: *mut Env, word: Word, depth: u32) -> Option<()> {
        let (mut count, mut rest) = (0, word);
        let at = self.len;
        self.head(LIST, 0)?;
        while let Some((head, tail)) = layout::cell(rest) {
            if count == LONGEST {
                return None;
            }
            self.child(env, head, depth)?;
            (count, rest) = (count + 1, tail);
        }
        self.set(at + 1, count as u8);
        (rest == layout::NIL).then_some(())
    }

    /// A map whose keys are small integers and atoms of up to seven bytes.
    fn map(&mut self, env: *mut Env, keys: &[Word], values: &[Word], depth: u32) -> Option<()> {
        if keys.len() > MOST {
            return None;
        }
        self.head(MAP, keys.len())?;
        let order = Order::of(env, keys)?;
        for &(key, place) in &order.0 {
            self.tagged(key.tag, key.payload, key.used.into())?;
            self.child(env, *values.get(usize::from(place))?, depth)?;
        }
        Some(())
    }
}

/// The encoding of a small integer or an atom: its tag, and a payload of which so many bytes count, low ones first.
#[inline(always)]
pub fn word_parts(env: *mut Env, word: Word) -> Option<(u8, u64, usize)> {
    if let Some(n) = layout::small(word) {
        let (tag, used) = small_parts(n);
        return Some((tag, n as u64, used));
    }
    layout::is_atom(word).then(|| atom_parts(env, word))
}

/// The tag of a small integer, and how many of its bytes follow.
#[inline(always)]
fn small_parts(n: i64) -> (u8, usize) {
    if (0..=127).contains(&n) {
        return (SMALL + n as u8, 0);
    }
    let bits = 65 - (n ^ (n >> 63)).leading_zeros() as usize;
    let used = bits.div_ceil(8);
    (INT1 + used as u8 - 1, used)
}

#[inline]
fn atom_parts(env: *mut Env, word: Word) -> (u8, u64, usize) {
    let id = atoms::id_of(env, word);
    let used = (4 - id.leading_zeros() as usize / 8).max(1);
    (ATOM1 + used as u8 - 1, u64::from(id), used)
}

/// A key of a map, if its encoding has at most eight bytes.
#[derive(Clone, Copy)]
struct MapKey {
    tag: u8,
    /// How many bytes it has behind the tag.
    used: u8,
    payload: u64,
}

impl MapKey {
    #[inline]
    fn of(env: *mut Env, word: Word) -> Option<Self> {
        let (tag, payload, used) = word_parts(env, word)?;
        (used <= 7).then_some(MapKey {
            tag,
            used: used as u8,
            payload,
        })
    }

    /// The encoding as a number that compares as the bytes do: none is a prefix of another, so the zeros behind don't matter.
    fn rank(&self) -> u64 {
        let kept = self.payload & ((1 << (8 * self.used)) - 1);
        (kept << 8 | u64::from(self.tag)).swap_bytes()
    }
}

/// How a set of keys is stored: each as it is written, and which place it has in a map.
struct Order(Box<[(MapKey, u8)]>);

thread_local! {
    static KNOWN: RefCell<KeySets<Order>> = const { RefCell::new(KeySets::new()) };
}

impl Order {
    /// That of these keys, at most `MOST`.
    #[inline]
    fn of(env: *mut Env, keys: &[Word]) -> Option<Rc<Order>> {
        if !keys.iter().all(|&key| layout::is_immediate(key)) {
            return None;
        }
        KNOWN.with_borrow_mut(|known| known.of(keys, || Order::learn(env, keys)).cloned())
    }

    fn learn(env: *mut Env, keys: &[Word]) -> Option<Order> {
        let key = |(place, &key)| Some((MapKey::of(env, key)?, place as u8));
        let mut stored = keys
            .iter()
            .enumerate()
            .map(key)
            .collect::<Option<Box<_>>>()?;
        stored.sort_unstable_by_key(|(key, _): &(MapKey, u8)| key.rank());
        Some(Order(stored))
    }
}

/// The row of small terms that these elements are, as a table keeps it that doesn't compress, in two runs of bytes that are empty; it gives up as
/// [`Bytes::term`] and [`Bytes::key`] do.
#[inline(always)]
pub fn row<'b>(
    [key, value]: [&'b mut Bytes<'_>; 2],
    env: *mut Env,
    elements: &[Word],
    keypos: usize,
    form: KeyForm,
) -> Option<ObjectRef<'b>> {
    let flags = match form {
        KeyForm::Hash { .. } => 0,
        KeyForm::Ordered => FROM_ORDER,
    };
    // So that the head of the value is one byte.
    if elements.len() >= 0x80 >> FLAG_BITS {
        return None;
    }
    value.byte((elements.len() << FLAG_BITS) as u8 | flags)?;
    let word = *elements.get(keypos - 1)?;
    match form {
        KeyForm::Ordered if layout::small(word).is_none() => {
            ordered_key([&mut *key, &mut *value], env, word)?;
        }
        _ => key.key(env, word, form)?,
    }
    for (i, &element) in elements.iter().enumerate() {
        if i + 1 != keypos {
            value.term(env, element)?;
        }
    }
    // SAFETY: key and value are as an encoder would have written them, without handles and without a -0.0: in hash order the key's bytes are the index
    // key, in key order it comes back from that or lies in the value; the value's head says how many elements there are, and which of the two.
    Some(unsafe { ObjectRef::trusted(key, value) })
}

/// Writes an order key other than an integer's. The value, of which the head is written, and says that the key comes back, is told otherwise and given
/// the key if it doesn't.
#[inline(never)]
fn ordered_key([key, value]: [&mut Bytes<'_>; 2], env: *mut Env, word: Word) -> Option<()> {
    let (head, start) = (*value.first()?, value.len);
    value.term(env, word)?;
    // SAFETY: as in `as_term`, of what was written behind the head.
    let exact = unsafe { TermRef::trusted(&value[start..]) };
    if key.order_key(exact)? {
        value.len = start;
    } else {
        value.set(0, head ^ (FROM_ORDER | EXACT_KEY));
    }
    Some(())
}

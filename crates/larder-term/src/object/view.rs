//! Reading objects in place: key and value are as an index stores them (see the module `object`),
//! and only what is asked for is decoded.
//!
//! An [`ObjectView`] reads any object. The functions at the beginning of this file read key and
//! value without one. Each answers one question. Most return `None` for an object of a rarer form:
//! it is compressed, or its value has the exact key.

use super::{
    groups, is_long, out_of_line, packed, term_at, Elements, ElementsFrom, ObjectBuf, COMPRESSED,
    EXACT_KEY, FLAG_BITS, FROM_ORDER, HAS_HANDLES,
};
use crate::{
    encoder::Encoder,
    identity::identical_ends,
    order_key,
    skip::{end_of, skip},
    tags::TUPLE,
    varint,
    view::TermRef,
};
use std::cell::UnsafeCell;
use std::fmt;

/// The arity, the flags and the bytes after the header. `None` for an object of more than 1,023
/// elements.
#[inline]
fn head_of(value: &[u8]) -> Option<(usize, u8, &[u8])> {
    let (&first, rest) = value.split_first()?;
    // A header of one byte has an arity of up to 7, and one of two bytes an arity of up to 1,023.
    let low = usize::from(first & 0x7F) >> FLAG_BITS;
    // The top bit says whether there is a second byte.
    if first < 0x80 {
        return Some((low, first, rest));
    }
    match rest.split_first() {
        Some((&second, rest)) if second < 0x80 => {
            Some((low | usize::from(second) << (7 - FLAG_BITS), first, rest))
        }
        _ => None,
    }
}

/// The arity and the elements without the key. `None` if the object is compressed, or its value has
/// an exact key. So the index key determines the key of the object. If two equal numbers share the
/// index key, the key has the integer (`1`, not `1.0`).
#[inline]
pub fn beside_key(value: &[u8]) -> Option<(usize, &[u8])> {
    let (arity, _, others) = split_beside_key(value)?;
    Some((arity, others))
}

/// The element beside the key of an object of two elements, which other bytes may follow. `None`
/// for all other objects, and for those of which [`beside_key`] says nothing.
#[inline]
pub fn beside_key_of_pair(value: &[u8]) -> Option<&[u8]> {
    // Such an object has no lengths of groups. So one test of the header's only byte tells all.
    const PAIR: u8 = 2 << FLAG_BITS;
    const ARITY: u8 = u8::MAX << FLAG_BITS;
    let (&header, element) = value.split_first()?;
    (header & (ARITY | EXACT_KEY | COMPRESSED) == PAIR).then_some(element)
}

/// As `beside_key`, with the lengths of the groups between arity and elements.
#[inline]
fn split_beside_key(value: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let (arity, flags, plain) = head_of(value)?;
    let (lengths, others) = match flags & (EXACT_KEY | COMPRESSED) {
        0 => groups::split(arity, plain),
        _ => return None,
    };
    Some((arity, lengths, others))
}

/// An object that isn't opened: what can be read of it without being unpacked or decoded.
#[derive(Clone, Copy, Debug)]
pub struct UnopenedObject<'a> {
    index_key: &'a [u8],
    value: &'a [u8],
}

impl<'a> UnopenedObject<'a> {
    /// An object under an index key.
    ///
    /// # Safety
    /// As for [`ObjectView::open`].
    #[inline]
    pub unsafe fn new(index_key: &'a [u8], value: &'a [u8]) -> Self {
        UnopenedObject { index_key, value }
    }

    /// The value.
    #[inline]
    pub fn value(self) -> &'a [u8] {
        self.value
    }

    /// The arity and the elements without the key. `None` for the objects of which
    /// [`beside_key`] says nothing.
    #[inline]
    pub fn beside_key(self) -> Option<(usize, ElementsFrom<'a>)> {
        let (arity, others) = beside_key(self.value)?;
        Some((arity, ElementsFrom::stored(others)))
    }

    /// Whether the value has handles.
    #[inline]
    pub fn has_handles(self) -> bool {
        super::value_has_handles(self.value)
    }

    /// The key, if the index key is its term.
    #[inline]
    pub fn key(self) -> Option<&'a [u8]> {
        (key_flags(self.value) == 0).then_some(self.index_key)
    }
}

/// Whether two objects under one index key have the same element at `position`, from 1, stored as
/// the same bytes, or neither has one. `None` if this needs more than their values: an object is
/// compressed, or its value has an exact key.
#[inline]
pub fn has_same_element(one: &[u8], other: &[u8], keypos: usize, position: usize) -> Option<bool> {
    let (arity, lengths, ours) = split_beside_key(one)?;
    let (their_arity, their_lengths, theirs) = split_beside_key(other)?;
    // The index key determines the key, and both have the same.
    if position == keypos {
        return Some(true);
    }
    // At least one of them has no such element. They agree if neither has one.
    if position == 0 || position > arity.min(their_arity) {
        return Some(position == 0 || position > arity.max(their_arity));
    }
    let ours = run_from(lengths, ours, keypos, position);
    let theirs = run_from(their_lengths, theirs, keypos, position);
    // No stored term is the beginning of another one, so the end is sought in one of them. If only
    // one of them is the last element of its object, only the other one has a prefix.
    let end = end_of(ours, 0);
    Some(term_at(theirs).starts_with(term_at(&ours[..end])))
}

/// The bytes of the elements from a position on, which the object has, and which isn't that of the
/// key. Given are the lengths of the groups, and the elements without the key.
#[inline]
fn run_from<'a>(lengths: &[u8], others: &'a [u8], keypos: usize, position: usize) -> &'a [u8] {
    // The key isn't stored among the other elements.
    let wanted = position - 1 - usize::from(position > keypos);
    // Pass whole groups of a wide object by their lengths.
    let (mut index, mut at) = (0, 0);
    if !lengths.is_empty() {
        (index, at) = groups::pass(lengths, others, (index, at), wanted);
    }
    // Then pass one element after the other.
    let mut run = &others[at..];
    while index < wanted {
        run = &run[end_of(run, 0)..];
        index += 1;
    }
    run
}

/// Whether the value begins with the exact key. Otherwise the key of the object follows from its
/// index key and the first byte of the value.
#[inline]
pub fn has_exact_key(value: &[u8]) -> bool {
    value.first().is_some_and(|header| header & EXACT_KEY != 0)
}

/// The flags of a value that say where the key is. None: the index key is the key.
#[inline]
fn key_flags(value: &[u8]) -> u8 {
    value
        .first()
        .map_or(0, |header| header & (EXACT_KEY | FROM_ORDER))
}

/// The key of an object, if it is the index key, a term.
#[inline]
pub fn term_key<'k>(index_key: &'k [u8], value: &[u8]) -> Option<TermRef<'k>> {
    match key_flags(value) {
        0 if !index_key.is_empty() => Some(TermRef::within(index_key)),
        _ => None,
    }
}

/// The key of an object, if it is an integer of 64 bits that the index key alone tells: a term, or
/// an order key.
#[inline(always)]
pub fn int_key(index_key: &[u8], value: &[u8]) -> Option<i64> {
    match key_flags(value) {
        FROM_ORDER => order_key::to_int(index_key),
        0 if !index_key.is_empty() => TermRef::within(index_key).as_int(),
        _ => None,
    }
}

/// The key of an object, if it is a binary that lies in the index key as it is: in a term, or in
/// the order key of at most 4,096 bytes, none of them zero.
#[inline]
pub fn binary_key<'k>(index_key: &'k [u8], value: &[u8]) -> Option<&'k [u8]> {
    match key_flags(value) {
        FROM_ORDER => order_key::to_binary(index_key),
        0 if !index_key.is_empty() => TermRef::within(index_key).as_binary(),
        _ => None,
    }
}

/// The key of an object. If it has to be decoded from its order key, that is done when it is read
/// first: many scans look at the other elements alone.
#[derive(Clone, Copy, Debug)]
pub struct ObjectKey<'a> {
    /// The key, or its order key.
    bytes: &'a [u8],
    /// Where the key is decoded to: empty until then, and never changed afterwards.
    decoded: Option<&'a UnsafeCell<Vec<u8>>>,
}

impl<'a> ObjectKey<'a> {
    #[inline]
    fn stored(bytes: &'a [u8]) -> Self {
        ObjectKey {
            bytes,
            decoded: None,
        }
    }

    #[inline]
    fn from_order(order_key: &'a [u8], scratch: &'a mut Vec<u8>) -> Self {
        scratch.clear();
        ObjectKey {
            bytes: order_key,
            decoded: Some(UnsafeCell::from_mut(scratch)),
        }
    }

    /// The key, as it was inserted.
    #[inline]
    pub fn term(self) -> TermRef<'a> {
        TermRef::within(match self.decoded {
            None => self.bytes,
            Some(decoded) => self.decode(decoded),
        })
    }

    #[inline]
    fn decode(self, decoded: &'a UnsafeCell<Vec<u8>>) -> &'a [u8] {
        let buffer = decoded.get();
        // SAFETY: the cell isn't `Sync`, so this thread alone uses it, and nobody changes the
        // buffer while it is looked at.
        if unsafe { &*buffer }.is_empty() {
            // SAFETY: `from_order` had the only reference to the buffer, and only this function
            // makes others from the cell. It returns them when the buffer isn't empty, so there are
            // none now.
            order_key::decode(self.bytes, unsafe { &mut *buffer });
        }
        // SAFETY: no key is decoded to nothing, so the buffer is never changed again during `'a`.
        unsafe { &*buffer }
    }
}

/// A stored object that is open for reading.
#[derive(Clone, Copy)]
pub struct ObjectView<'a> {
    arity: usize,
    keypos: usize,
    flags: u8,
    key: ObjectKey<'a>,
    /// The lengths of the groups of elements: none unless the object is wide and not compressed.
    lengths: &'a [u8],
    /// The elements without the key.
    others: &'a [u8],
}

impl<'a> ObjectView<'a> {
    /// Opens an object, given its index key and value. `scratch` is used for the unpacked bytes of
    /// a compressed object, and for a key that is decoded from its order key.
    ///
    /// # Safety
    /// This module encoded key and value in this process, with this `keypos`. For all of `'a`,
    /// somebody holds the counts of the handles in the value.
    #[inline]
    pub unsafe fn open(
        index_key: &'a [u8],
        value: &'a [u8],
        keypos: usize,
        scratch: &'a mut Vec<u8>,
    ) -> ObjectView<'a> {
        open(index_key, value, keypos, scratch)
    }

    /// Like `open`, for a caller that reads no element after position `last()`. If the elements up
    /// to there lie in the run of a compressed object, which isn't packed, nothing is unpacked.
    ///
    /// # Safety
    /// As for `open`.
    #[inline]
    pub unsafe fn open_up_to(
        index_key: &'a [u8],
        value: &'a [u8],
        keypos: usize,
        last: impl FnOnce() -> usize,
        scratch: &'a mut Vec<u8>,
    ) -> ObjectView<'a> {
        match value[0] & COMPRESSED {
            0 => open(index_key, value, keypos, scratch),
            _ => Self::open_packed(index_key, value, keypos, last(), scratch),
        }
    }

    fn open_packed(
        index_key: &'a [u8],
        value: &'a [u8],
        keypos: usize,
        last: usize,
        scratch: &'a mut Vec<u8>,
    ) -> ObjectView<'a> {
        // One of the elements is in the compressed block. Unpack the value.
        if !packed::has_in_run(value, keypos, last) {
            return open(index_key, value, keypos, scratch);
        }
        // All of them are in the run, which isn't compressed. The view reads that alone, though the
        // arity is that of the whole object.
        let header = varint::read(value, 0).0;
        let flags = header as u8 & ((1 << FLAG_BITS) - 1);
        let (key, others) = key_and_others(index_key, flags, packed::run(value), scratch);
        ObjectView {
            arity: (header >> FLAG_BITS) as usize,
            keypos,
            flags,
            key,
            lengths: &[],
            others,
        }
    }

    /// The key of an object. `scratch` is used as by `open`. Unless the value begins with the exact
    /// key ([`has_exact_key`]), only its first byte is read.
    ///
    /// # Safety
    /// As for `open`. Bytes that aren't read may be missing at the end of the value.
    #[inline]
    pub unsafe fn key_of(
        index_key: &'a [u8],
        value: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> TermRef<'a> {
        match key_flags(value) {
            // No flag: the index key is the key, as it was inserted.
            0 => TermRef::within(index_key),
            FROM_ORDER => ObjectKey::from_order(index_key, scratch).term(),
            _ => open_flagged(index_key, value, scratch).key.term(),
        }
    }

    /// The number of elements.
    #[inline]
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// The position of the key, from 1.
    #[inline]
    pub fn keypos(&self) -> usize {
        self.keypos
    }

    /// The key, as it was inserted.
    #[inline]
    pub fn key(&self) -> TermRef<'a> {
        self.key.term()
    }

    /// The key, for a caller who may not need it.
    #[inline]
    pub fn lazy_key(&self) -> ObjectKey<'a> {
        self.key
    }

    /// Whether the value has a handle.
    #[inline]
    pub fn has_handles(&self) -> bool {
        self.flags & HAS_HANDLES != 0
    }

    /// The element at `position`, from 1. Linear in the elements before it.
    #[inline]
    pub fn element(&self, position: usize) -> Option<TermRef<'a>> {
        if position == self.keypos {
            return Some(self.key());
        }
        if position == 0 || position > self.arity {
            return None;
        }
        let run = self.run(position);
        // The last element ends where the object does, so no walk over it is needed.
        let end = match position - usize::from(position > self.keypos) == self.arity - 1 {
            true => run.len(),
            false => end_of(run, 0),
        };
        Some(TermRef::within(term_at(&run[..end])))
    }

    /// The bytes of the elements from a position on, which the object has, and which isn't that of
    /// the key.
    #[inline]
    fn run(&self, position: usize) -> &'a [u8] {
        run_from(self.lengths, self.others, self.keypos, position)
    }

    /// Whether the element at `position`, from 1, is stored as these bytes, which are those of a
    /// term. Like `element`, but doesn't look for the end of the element.
    #[inline(always)]
    pub fn element_is(&self, position: usize, stored: &[u8]) -> bool {
        if position == self.keypos {
            return self.key().bytes() == stored;
        }
        if position == 0 || position > self.arity {
            return false;
        }
        let others = self.run(position);
        // No stored term is the beginning of another one. Short ones, as most are, are compared
        // without a call.
        match (others, stored) {
            (&[one, ..], &[other]) => one == other,
            (&[one, two, ..], &[other, another]) => [one, two] == [other, another],
            _ => term_at(others).starts_with(stored),
        }
    }

    /// The elements in tuple order.
    #[inline]
    pub fn iter(&self) -> ObjectElements<'a> {
        ObjectElements {
            before_key: self.keypos - 1,
            key: Some(self.key()),
            others: self.others(),
        }
    }

    /// The elements without the key, in tuple order.
    #[inline]
    pub fn others(&self) -> Elements<'a> {
        self.others_from().take(self.arity - 1)
    }

    /// The elements without the key, from the first one on.
    #[inline]
    pub fn others_from(&self) -> ElementsFrom<'a> {
        ElementsFrom::stored(self.others)
    }

    /// The adjacent bytes of the elements without the key, as they are stored
    /// ([`stored_term`](super::stored_term)).
    #[inline]
    pub fn others_bytes(&self) -> &'a [u8] {
        self.others
    }

    /// The length of the elements without the key in bytes, with those out of line: what it costs
    /// to read them.
    #[inline]
    pub fn others_len(&self) -> usize {
        let outside = match self.has_handles() {
            true => out_of_line::total_len(self.others),
            false => 0,
        };
        self.others.len() + outside
    }

    /// The lengths of the groups of these elements, for [`ElementsFrom::pass`].
    #[inline]
    pub fn lengths(&self) -> &'a [u8] {
        self.lengths
    }

    /// Appends the encoding of the tuple. Handles are copied without counts, so the bytes are valid
    /// only as long as the object.
    pub fn to_tuple(&self, out: &mut Vec<u8>) {
        out.push(TUPLE);
        varint::push(out, self.arity as u64);
        // The usual case: the key is the first element, and the others follow as they are stored.
        if self.keypos == 1 {
            out.extend_from_slice(self.key().bytes());
            self.others_from().push_terms(self.arity - 1, out);
        } else {
            self.iter().for_each(|e| out.extend_from_slice(e.bytes()));
        }
    }

    /// Pushes the tuple. The encoder takes counts of its own.
    pub fn encode(&self, enc: &mut Encoder<'_>) {
        enc.begin_tuple(self.arity);
        self.iter().for_each(|e| enc.term(e));
    }

    /// Whether the object is identical to a tuple.
    pub fn identical_tuple(&self, tuple: TermRef<'_>) -> bool {
        tuple.as_tuple().is_some_and(|t| {
            t.arity() == self.arity && self.iter().zip(t.iter()).all(|(a, b)| a.identical(b))
        })
    }

    /// Whether both objects are identical tuples.
    pub fn identical(&self, other: &ObjectView<'_>) -> bool {
        self.arity == other.arity
            && self.keypos == other.keypos
            && self.key().identical(other.key())
            && (self.others == other.others || self.same_others(other))
    }

    /// Whether the other elements are identical, although their bytes differ.
    fn same_others(&self, other: &ObjectView<'_>) -> bool {
        // Both values have the same elements up to the first byte that differs. Only those from the
        // element that contains it on are compared by identity.
        let pairs = self.others.iter().zip(other.others);
        let same = pairs.take_while(|(a, b)| a == b).count();
        // Skip the elements before the first byte that differs.
        let (mut at, mut left) = (0, self.arity - 1);
        while left > 0 {
            let end = at + skip(&self.others[at..]);
            if end > same {
                break;
            }
            (at, left) = (end, left - 1);
        }
        // Nothing is looked at after the first difference, also not for the end of an element.
        let (mut ours, mut theirs) = (&self.others[at..], &other.others[at..]);
        (0..left).all(|_| {
            let (a, b) = (term_at(ours), term_at(theirs));
            let ends = match is_long(ours) && is_long(theirs) {
                // Both are whole terms. Mostly their bytes are equal.
                true => same_term(a, b).then_some((a.len(), b.len())),
                false => identical_ends(a, b),
            };
            if let Some((end, other_end)) = ends {
                ours = after(ours, a, end);
                theirs = after(theirs, b, other_end);
            }
            ends.is_some()
        })
    }
}

fn same_term(a: &[u8], b: &[u8]) -> bool {
    TermRef::within(a).identical(TermRef::within(b))
}

/// The bytes after the element with which a run begins, given its term and how long that is.
fn after<'a>(run: &'a [u8], term: &'a [u8], len: usize) -> &'a [u8] {
    match is_long(run) {
        true => &run[end_of(run, 0)..],
        false => &term[len..],
    }
}

impl fmt::Debug for ObjectView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The elements of an object, in tuple order.
#[derive(Clone)]
pub struct ObjectElements<'a> {
    before_key: usize,
    key: Option<TermRef<'a>>,
    others: Elements<'a>,
}

impl<'a> Iterator for ObjectElements<'a> {
    type Item = TermRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<TermRef<'a>> {
        // The key is stored apart, and is shown at its position.
        if self.before_key == 0 {
            if let Some(key) = self.key.take() {
                return Some(key);
            }
        }
        self.before_key = self.before_key.saturating_sub(1);
        self.others.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.others.len() + usize::from(self.key.is_some());
        (left, Some(left))
    }
}

impl ExactSizeIterator for ObjectElements<'_> {}

/// Opens the object of a buffer, which holds the counts while it is borrowed.
#[inline]
pub(super) fn open_owned<'a>(
    object: &'a ObjectBuf,
    keypos: usize,
    scratch: &'a mut Vec<u8>,
) -> ObjectView<'a> {
    open(&object.key, &object.value, keypos, scratch)
}

#[inline]
fn open<'a>(
    index_key: &'a [u8],
    value: &'a [u8],
    keypos: usize,
    scratch: &'a mut Vec<u8>,
) -> ObjectView<'a> {
    // The fast path: the header is one byte, and no flag is set. Or `FROM_ORDER` is the only one.
    let (arity, flags, key, lengths, others) = match value.split_first() {
        // `0x80` is set if the header has more than one byte.
        Some((&header, others)) if header & (0x80 | ((1 << FLAG_BITS) - 1)) == 0 => {
            let arity = usize::from(header >> FLAG_BITS);
            (
                arity,
                0,
                ObjectKey::stored(index_key),
                [].as_slice(),
                others,
            )
        }
        // An ordered_set's key, which is decoded when it is read first.
        Some((&header, others)) if header & (0x80 | ((1 << FLAG_BITS) - 1)) == FROM_ORDER => {
            let arity = usize::from(header >> FLAG_BITS);
            let key = ObjectKey::from_order(index_key, scratch);
            (arity, FROM_ORDER, key, [].as_slice(), others)
        }
        // Any other flag, or an object of more than seven elements.
        _ => {
            let FlaggedObject {
                arity,
                flags,
                key,
                lengths,
                others,
            } = open_flagged(index_key, value, scratch);
            (arity, flags, key, lengths, others)
        }
    };
    ObjectView {
        arity,
        keypos,
        flags,
        key,
        lengths,
        others,
    }
}

/// What `open_flagged` finds. It isn't an `ObjectView`, since it is returned in memory: the fields
/// of an object that is opened by the fast path then stay in registers.
struct FlaggedObject<'a> {
    arity: usize,
    flags: u8,
    key: ObjectKey<'a>,
    lengths: &'a [u8],
    others: &'a [u8],
}

/// The key of an object, and the elements beside it: `plain` is what lies after its header.
#[inline]
fn key_and_others<'a>(
    index_key: &'a [u8],
    flags: u8,
    plain: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> (ObjectKey<'a>, &'a [u8]) {
    match flags & (EXACT_KEY | FROM_ORDER) {
        0 => (ObjectKey::stored(index_key), plain),
        FROM_ORDER => (ObjectKey::from_order(index_key, scratch), plain),
        // The exact key is in front of the elements.
        _ => {
            let (key, others) = plain.split_at(end_of(plain, 0));
            (ObjectKey::stored(key), others)
        }
    }
}

/// Opens an object with a longer header, or with other flags.
fn open_flagged<'a>(
    index_key: &'a [u8],
    value: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> FlaggedObject<'a> {
    // A header of any length, with any flags.
    let (header, at) = varint::read(value, 0);
    let flags = header as u8 & ((1 << FLAG_BITS) - 1);
    let arity = (header >> FLAG_BITS) as usize;
    if flags & COMPRESSED == 0 {
        // Nothing is packed.
        let (key, others) = key_and_others(index_key, flags, &value[at..], scratch);
        let (lengths, others) = groups::split(arity, others);
        return FlaggedObject {
            arity,
            flags,
            key,
            lengths,
            others,
        };
    }
    // Use one buffer for both: first the unpacked elements, then the decoded key.
    scratch.clear();
    packed::unpack(value, scratch);
    let plain = scratch.len();
    // The scratch buffer now has the unpacked bytes. A decoded key goes after them.
    if flags & FROM_ORDER != 0 {
        order_key::decode(index_key, scratch);
    }
    // The buffer doesn't grow any more. So its contents can be borrowed.
    let (mut others, decoded) = scratch.split_at(plain);
    let mut key = match flags & FROM_ORDER {
        0 => index_key,
        _ => decoded,
    };
    if flags & EXACT_KEY != 0 {
        (key, others) = others.split_at(end_of(others, 0));
    }
    FlaggedObject {
        arity,
        flags,
        key: ObjectKey::stored(key),
        lengths: &[],
        others,
    }
}

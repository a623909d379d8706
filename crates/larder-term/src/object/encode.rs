//! Encoding the elements of a tuple as a key and a value.

use super::{
    groups::Run, packed, put_out_of_line, KeyForm, ObjectBuf, ObjectError, OutOfLineBytes,
    EXACT_KEY, FLAG_BITS, FROM_ORDER, HAS_HANDLES, LONGEST_IN_LINE,
};
use crate::{
    encoder::{Encoder, Mode},
    identity::without_negative_zero,
    order_key, simple,
    tags::INLINE_BINARY,
    varint,
    view::TermRef,
};
use std::sync::Arc;

/// Encodes an object element by element: the key first, then the others in tuple order.
///
/// ```
/// use larder_term::object::{KeyForm, ObjectBuf, ObjectEncoder};
/// use larder_term::{atoms, term};
///
/// let mut object = ObjectBuf::new();
/// let mut enc = ObjectEncoder::new(&mut object, 2, 1, KeyForm::Ordered, false);
/// enc.key(|e| e.int(17));
/// enc.element(|e| e.atom(atoms::OK));
/// assert!(enc.finish());
///
/// let mut scratch = Vec::new();
/// let view = object.view(1, &mut scratch);
/// assert!(view.key().identical(term!(17).as_ref()));
/// ```
pub struct ObjectEncoder<'b> {
    object: &'b mut ObjectBuf,
    form: KeyForm,
    compress: bool,
    /// Where elements out of line are counted.
    out_of_line: Option<&'b Arc<OutOfLineBytes>>,
    header: usize,
    arity: usize,
    missing: usize,
    /// The elements that were written, if there are any.
    run: Option<Run>,
    flags: u8,
    complete: bool,
    keyed: bool,
    /// Whether the object was finished. The buffer then keeps it.
    finished: bool,
}

impl<'b> ObjectEncoder<'b> {
    /// Begins an object of `arity` elements. The one at `keypos`, counted from 1, is the key.
    /// Empties the buffer first.
    #[inline]
    pub fn new(
        object: &'b mut ObjectBuf,
        arity: usize,
        keypos: usize,
        form: KeyForm,
        compress: bool,
    ) -> Self {
        object.clear();
        // The flags are known at the end only. They take the low bits of the first byte, which are
        // still zero.
        varint::push(&mut object.value, (arity as u64) << FLAG_BITS);
        let header = object.value.len();
        ObjectEncoder {
            form,
            compress,
            out_of_line: None,
            header,
            arity,
            missing: arity,
            run: None,
            flags: 0,
            complete: (1..=arity).contains(&keypos),
            keyed: false,
            finished: false,
            object,
        }
    }

    /// Puts very long elements out of line, and counts their bytes in `total`, unless the object is
    /// compressed. Without this, all elements are in line.
    #[inline]
    pub fn out_of_line(mut self, total: &'b Arc<OutOfLineBytes>) -> Self {
        self.out_of_line = (!self.compress).then_some(total);
        self
    }

    #[inline]
    fn mode(&self) -> Mode {
        match self.compress {
            true => Mode::Anchored,
            false => Mode::Shared,
        }
    }

    /// Encodes the key, of which the closure pushes the one term. Must be called once, before the
    /// first element.
    #[inline]
    pub fn key<R>(&mut self, push: impl FnOnce(&mut Encoder<'_>) -> R) -> R {
        // Check that this is the first call, before any element.
        self.complete &= !self.keyed && self.object.value.len() == self.header;
        self.keyed = true;
        self.missing = self.missing.wrapping_sub(1);
        match self.form {
            KeyForm::Hash { legacy_zero } => self.hash_key(legacy_zero, push),
            KeyForm::Ordered => self.ordered_key(push),
        }
    }

    /// Sets the key of an ordered_set by its order key, from which it must come back
    /// ([`order_key::comes_back`]). Takes the place of `key`.
    #[inline]
    pub fn order_key(&mut self, key: &[u8]) {
        self.begin_simple(self.form == KeyForm::Ordered);
        self.flags |= FROM_ORDER;
        self.object.key.extend_from_slice(key);
    }

    /// Sets the key of an ordered_set to an integer, unless that is −2^63. Takes the place of
    /// `key`. Returns `false`, and does nothing, for that integer.
    #[inline]
    pub fn int_order_key(&mut self, n: i64) -> bool {
        let Some((bytes, used)) = order_key::int_bytes(n) else {
            return false;
        };
        self.begin_simple(self.form == KeyForm::Ordered);
        self.flags |= FROM_ORDER;
        self.push_short(bytes, used);
        true
    }

    /// Leaves the key out, if only the value is going to be used. The value must be that of a key
    /// that comes back from its index key. Takes the place of `key`.
    #[inline]
    pub fn leave_out_key(&mut self) {
        self.begin_simple(true);
        if self.form == KeyForm::Ordered {
            self.flags |= FROM_ORDER;
        }
    }

    /// Notes that the key is set, without a closure that pushes it.
    #[inline]
    fn begin_simple(&mut self, has_form: bool) {
        self.complete &= !self.keyed && self.object.value.len() == self.header && has_form;
        self.keyed = true;
        self.missing = self.missing.wrapping_sub(1);
    }

    /// Appends the first `used` bytes to the key. All are copied, and the rest is cut off: a copy
    /// of constant length is few instructions.
    #[inline]
    fn push_short(&mut self, bytes: [u8; 9], used: usize) {
        let key = &mut self.object.key;
        let end = key.len() + used;
        key.extend_from_slice(&bytes);
        key.truncate(end);
    }

    /// Sets the key of a table in hash order to an integer. Takes the place of `key`.
    #[inline]
    pub fn int_key(&mut self, n: i64) {
        let (bytes, used) = simple::int(n);
        self.begin_simple(self.form != KeyForm::Ordered);
        self.push_short(bytes, used);
    }

    /// Sets the key of a table in hash order to a binary, if it has at most 127 bytes. Takes the
    /// place of `key`. Returns `false`, and does nothing, for a longer one.
    #[inline]
    pub fn binary_key(&mut self, bytes: &[u8]) -> bool {
        let mut term = [0; 2 + INLINE_BINARY];
        let term = simple::binary(bytes, &mut term);
        term.map(|term| self.simple_key(term)).is_some()
    }

    /// Sets the key to a term that is the index key as it is.
    #[inline]
    fn simple_key(&mut self, term: &[u8]) {
        self.begin_simple(self.form != KeyForm::Ordered);
        self.object.key.extend_from_slice(term);
    }

    #[inline]
    fn hash_key<R>(&mut self, legacy_zero: bool, push: impl FnOnce(&mut Encoder<'_>) -> R) -> R {
        // The index key contains the bytes of binaries in any case. So they are not put outside.
        let mode = Mode::Anchored;
        let key = &mut self.object.key;
        // The key is written to its own buffer, in the form of an index key.
        let place = &raw const *key;
        let mut enc = Encoder::new(key, mode);
        let result = push(&mut enc);
        let (handles, zero) = (enc.has_handles(), legacy_zero && enc.has_negative_zero());
        self.complete &= enc.is_complete() && enc.terms() == 1 && enc.appends_to(place);
        // A key that the index key can't represent is kept in the value, as the exact key.
        if handles || zero {
            self.keep_exact(handles, zero);
        }
        result
    }

    /// Moves what was pushed as the key to the value, as the exact key, and makes the index key of
    /// it.
    #[cold]
    fn keep_exact(&mut self, handles: bool, zero: bool) {
        // The index key must be canonical, so that equal keys have equal bytes. What was pushed
        // isn't: it has a handle, or a −0.0 that is the same key as 0.0.
        let ObjectBuf { key, value } = &mut *self.object;
        value.extend_from_slice(key);
        key.clear();
        self.flags |= EXACT_KEY | if handles { HAS_HANDLES } else { 0 };
        // An incomplete term can't be walked. `finish` discards the object.
        if !self.complete {
            return;
        }
        let exact = TermRef::within(&value[self.header..]);
        match zero {
            true => *key = without_negative_zero(exact),
            false => Encoder::new(key, Mode::Inline).term(exact),
        }
    }

    #[inline]
    fn ordered_key<R>(&mut self, push: impl FnOnce(&mut Encoder<'_>) -> R) -> R {
        let mode = Mode::Anchored;
        // The key is encoded into the value first. It stays there only if it can't be decoded from
        // the order key.
        let ObjectBuf { key, value } = &mut *self.object;
        let place = &raw const *value;
        let mut enc = Encoder::new(value, mode);
        let result = push(&mut enc);
        let handles = enc.has_handles();
        self.complete &= enc.is_complete() && enc.terms() == 1 && enc.appends_to(place);
        if self.complete && !handles {
            let exact = TermRef::within(&value[self.header..]);
            order_key::encode(exact, key);
            if order_key::comes_back(exact) {
                // The key can be decoded from its order key. So the value doesn't contain it.
                self.flags |= FROM_ORDER;
                value.truncate(self.header);
                return result;
            }
        } else if self.complete {
            order_key::encode(TermRef::within(&value[self.header..]), key);
        }
        self.flags |= EXACT_KEY | if handles { HAS_HANDLES } else { 0 };
        result
    }

    /// Encodes an element, of which the closure pushes the one term.
    #[inline]
    pub fn element<R>(&mut self, push: impl FnOnce(&mut Encoder<'_>) -> R) -> R {
        self.elements(1, push)
    }

    /// Encodes `n` consecutive elements, of which the closure pushes the terms. If the key is among
    /// them, it is left out.
    #[inline]
    pub(crate) fn elements<R>(&mut self, n: usize, push: impl FnOnce(&mut Encoder<'_>) -> R) -> R {
        let mode = self.mode();
        // If the closure panics, the counts of what it has pushed are given back.
        let known = self.flags;
        self.flags |= HAS_HANDLES;
        let place = &raw const self.object.value;
        let value = &mut self.object.value;
        let arity = self.arity;
        let run = self.run.get_or_insert_with(|| Run::begin(arity, value));
        let mut enc = Encoder::of_elements(value, mode, run);
        let result = push(&mut enc);
        let is_own = enc.appends_to(place);
        let (is_whole, has_handles) = enc.end(n);
        // The value's flag tells later readers whether they have to look for handles.
        self.flags = known | if has_handles { HAS_HANDLES } else { 0 };
        self.complete &= self.keyed && is_whole && is_own;
        // `finish` checks that exactly the elements of the arity were written.
        self.missing = self.missing.wrapping_sub(n);
        result
    }

    /// Ends the object. Returns `false`, and leaves the buffer empty, unless the closures pushed
    /// exactly the key and all other elements.
    #[inline]
    pub fn finish(mut self) -> bool {
        self.finish_here()
    }

    /// As [`finish`](Self::finish), without a move of the encoder: a copy right after its parts
    /// were stored would wait for these stores. Must be the last call.
    #[inline]
    pub fn finish_here(&mut self) -> bool {
        if !(self.complete && self.missing == 0) {
            return false;
        }
        self.object.value[0] |= self.flags;
        // A value with handles isn't compressed: the handles must be found in its bytes when it is
        // dropped.
        if self.compress && self.flags & HAS_HANDLES == 0 {
            self.pack();
        }
        if self.object.value.len() > LONGEST_IN_LINE {
            self.put_out_of_line();
        }
        self.finished = true;
        true
    }

    #[cold]
    fn put_out_of_line(&mut self) {
        let (value, handles) = (&mut self.object.value, self.flags & HAS_HANDLES != 0);
        // SAFETY: this is a whole plain value, since all of its elements were written, and isn't
        // compressed. The buffer owns the counts, and its old bytes go without being looked at.
        let put = self
            .out_of_line
            .and_then(|total| unsafe { put_out_of_line(value, handles, total) });
        if let Some(new) = put {
            *value = new;
        }
    }

    /// Compresses what follows the value's header, if that makes it smaller.
    fn pack(&mut self) {
        if let Some(packed) = packed::compressed(&self.object.value) {
            self.object.value = packed;
        }
    }
}

impl Drop for ObjectEncoder<'_> {
    /// Empties the buffer, since the object wasn't finished. All of its elements may be there: one
    /// of the closures may have failed after it had pushed a whole term.
    #[inline]
    fn drop(&mut self) {
        if !self.finished {
            self.abandon();
        }
    }
}

impl ObjectEncoder<'_> {
    /// Empties the buffer, and gives back the counts of the handles that were pushed.
    #[cold]
    fn abandon(&mut self) {
        let ObjectBuf { key, value } = &mut *self.object;
        key.clear();
        if let Some(first) = value.first_mut() {
            *first |= self.flags;
        }
        super::clear_value(value);
    }
}

/// Encodes a tuple as an object.
///
/// # Errors
/// [`ObjectError::NotTuple`] and [`ObjectError::TooShort`]. The buffer is empty then.
///
/// # Complexity
/// Linear in the tuple, plus the costs of the order key.
pub fn encode(
    tuple: TermRef<'_>,
    keypos: usize,
    form: KeyForm,
    compress: bool,
    object: &mut ObjectBuf,
) -> Result<(), ObjectError> {
    encode_out_of_line(tuple, keypos, form, compress, object, None)
}

/// As [`encode`]. Puts very long elements out of line and counts them in `total`, if that is given
/// (see [`ObjectEncoder::out_of_line`]).
///
/// # Errors
/// As `encode`.
pub fn encode_out_of_line(
    tuple: TermRef<'_>,
    keypos: usize,
    form: KeyForm,
    compress: bool,
    object: &mut ObjectBuf,
    total: Option<&Arc<OutOfLineBytes>>,
) -> Result<(), ObjectError> {
    object.clear();
    let tuple = tuple.as_tuple().ok_or(ObjectError::NotTuple)?;
    // An element's position is counted from 1. Position 0 is refused like one past the end.
    let index = keypos.checked_sub(1).ok_or(ObjectError::TooShort)?;
    let key = tuple.get(index).ok_or(ObjectError::TooShort)?;
    let arity = tuple.arity();
    let mut enc = ObjectEncoder::new(object, arity, keypos, form, compress);
    enc.out_of_line = total.filter(|_| !compress);
    // The key first: its form decides what the header of the value says.
    enc.key(|e| e.term(key));
    enc.elements(arity - 1, |e| {
        for (i, element) in tuple.iter().enumerate() {
            if i != index {
                e.term(element);
            }
        }
    });
    let finished = enc.finish();
    debug_assert!(finished);
    Ok(())
}

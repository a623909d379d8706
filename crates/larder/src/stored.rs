//! What a lookup passes to its visitor: an object in its stored form, not yet opened.

use crate::raw;
use larder_term::object::{self, ObjectView};
use larder_term::TermRef;

/// An object that was found under a key, as it is stored.
pub struct Stored<'a> {
    key: &'a [u8],
    /// The value, and whatever lies behind it.
    bytes: &'a [u8],
    len: usize,
    keypos: usize,
    plain: &'a mut Vec<u8>,
}

impl<'a> Stored<'a> {
    /// The object of a key and a value; `plain` takes what has to be unpacked.
    #[inline]
    pub(crate) fn new(
        key: &'a [u8],
        value: &'a [u8],
        keypos: usize,
        plain: &'a mut Vec<u8>,
    ) -> Self {
        Self::beginning(key, (value, value.len()), keypos, plain)
    }

    /// As `new`; the value is the first `len` bytes, and others lie behind it.
    #[inline]
    pub(crate) fn beginning(
        key: &'a [u8],
        (bytes, len): (&'a [u8], usize),
        keypos: usize,
        plain: &'a mut Vec<u8>,
    ) -> Self {
        Stored {
            key,
            bytes,
            len,
            keypos,
            plain,
        }
    }

    /// The object.
    #[inline]
    pub fn view(self) -> ObjectView<'a> {
        raw::view(self.key, &self.bytes[..self.len], self.keypos, self.plain)
    }

    /// The key, if it is an integer in an ordered_set, which needs no view; else the opened object.
    #[inline]
    pub fn int_key_or_view(self) -> Result<i64, ObjectView<'a>> {
        match object::ordered_int(self.key, self.bytes) {
            Some(n) => Ok(n),
            None => Err(self.view()),
        }
    }

    /// Its key, where that is known without opening the object: most keys, but none of an
    /// ordered_set.
    #[inline]
    pub fn index_key(&self) -> Option<TermRef<'a>> {
        object::index_key_is_key(self.bytes).then(|| raw::stored(self.key))
    }

    /// Which element is the key, from 1.
    #[inline]
    pub fn keypos(&self) -> usize {
        self.keypos
    }

    /// The value.
    #[inline]
    pub(crate) fn value(&self) -> &'a [u8] {
        &self.bytes[..self.len]
    }

    /// Bytes of the value.
    #[inline]
    pub fn size(&self) -> usize {
        self.len
    }

    /// The arity, and the bytes of the elements without the key; further bytes may follow. None if
    /// the object is compressed, or its value has the exact key. Otherwise a term without floats
    /// that found the object is identical to its key. (In an ordered_set 1.0 finds 1.)
    #[inline]
    pub fn beside_key(&self) -> Option<(usize, &'a [u8])> {
        object::beside_key(self.bytes)
    }
}

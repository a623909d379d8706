//! An object in its stored form, which a lookup passes to its visitor.
//!
//! Some visitors don't need the whole object, for example if they only want an integer key. So the
//! visitor decides whether to open it ([`Stored::view`]).

use crate::raw;
use larder_term::object::{self, ObjectView};
use larder_term::TermRef;

/// An object that was found by a lookup, in its stored form.
pub struct Stored<'a> {
    key: &'a [u8],
    /// The value, which may be followed by other bytes.
    bytes: &'a [u8],
    /// The length of the value.
    len: usize,
    keypos: usize,
    /// The buffer for the unpacked elements of a compressed object.
    plain: &'a mut Vec<u8>,
}

impl<'a> Stored<'a> {
    /// An object with this key and value.
    #[inline]
    pub(crate) fn new(
        key: &'a [u8],
        value: &'a [u8],
        keypos: usize,
        plain: &'a mut Vec<u8>,
    ) -> Self {
        Self::beginning(key, value, value.len(), keypos, plain)
    }

    /// Like `new`, but the value is the first `len` bytes of `bytes`. Others may follow, such as
    /// the unused end of a fixed-size buffer.
    #[inline]
    pub(crate) fn beginning(
        key: &'a [u8],
        bytes: &'a [u8],
        len: usize,
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

    /// Opens the object.
    #[inline]
    pub fn view(self) -> ObjectView<'a> {
        raw::view(self.key, &self.bytes[..self.len], self.keypos, self.plain)
    }

    /// The key, if it is the index key, a term. It isn't in an ordered_set.
    #[inline]
    pub fn term_key(&self) -> Option<TermRef<'a>> {
        object::term_key(self.key, self.bytes)
    }

    /// The key, for a caller who needs no more of the object. Unless the value begins with the
    /// exact key, its first byte suffices.
    #[inline]
    pub fn into_key(self) -> StoredKey<'a> {
        StoredKey(self)
    }

    /// The key, if it is an integer of 64 bits that the index key alone tells.
    #[inline]
    pub(crate) fn int_key(&self) -> Option<i64> {
        // Only the header of the value is read, so other bytes after the value don't matter.
        object::int_key(self.key, self.bytes)
    }

    /// The key, if it is a binary that lies in the index key as it is. So do all binaries in hash
    /// order, and in key order those of at most 4,096 bytes, none of them zero.
    #[inline]
    pub(crate) fn binary_key(&self) -> Option<&'a [u8]> {
        object::binary_key(self.key, self.bytes)
    }

    /// The index key. Unless the value has an exact key, it is the key's term or its order key.
    #[inline]
    pub(crate) fn index_key(&self) -> &'a [u8] {
        self.key
    }

    /// The position of the key among the elements, from 1.
    #[inline]
    pub fn keypos(&self) -> usize {
        self.keypos
    }

    /// The value.
    #[cfg(feature = "serde")]
    #[inline]
    pub(crate) fn value(&self) -> &'a [u8] {
        &self.bytes[..self.len]
    }

    /// The length of the value in bytes, of a compressed one when it is unpacked, without elements
    /// out of line: what it costs to read it in order to look at one of them.
    #[inline]
    pub fn size(&self) -> usize {
        object::in_line_len(&self.bytes[..self.len])
    }

    /// The arity, and the encoded elements without the key, which other bytes may follow. `None` if
    /// the object is compressed, or if its value has an exact key.
    ///
    /// If the result isn't `None`, and the object was found by a term without floats, that term is
    /// identical to the object's key. With floats it may only be equal: in an ordered_set, 1.0
    /// finds 1.
    #[inline]
    pub fn beside_key(&self) -> Option<(usize, &'a [u8])> {
        object::beside_key(self.bytes)
    }
}

/// The key of an object that a step from key to key has found, as it is stored.
pub struct StoredKey<'a>(Stored<'a>);

impl<'a> StoredKey<'a> {
    /// The key, if it is an integer (see [`Stored::int_key`]).
    #[inline]
    pub fn int(&self) -> Option<i64> {
        self.0.int_key()
    }

    /// The key, if it is a binary that lies in the index key as it is (see [`Stored::binary_key`]).
    #[inline]
    pub fn binary(&self) -> Option<&'a [u8]> {
        self.0.binary_key()
    }

    /// The key.
    #[inline]
    pub fn term(self) -> TermRef<'a> {
        let object = self.0;
        raw::key_of(object.key, &object.bytes[..object.len], object.plain)
    }
}

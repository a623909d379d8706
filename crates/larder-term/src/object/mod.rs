//! Objects: tuples as an index stores them, a key and a value.
//!
//! ```text
//!  key    hash order: the key's inline bytes          key order: its order key
//!  value  varint (arity << 4 | flags)  [exact key, if EXACT_KEY]
//!         [lengths of groups of elements, from 12 elements on (`object/groups.rs`)]
//!         the other elements, in order, each long container with its length in front
//!         (`object/sized.rs`), and each very long element as a handle (`object/out_of_line.rs`)
//!         with COMPRESSED: the same header, then the first of this as it is, the rest packed, and
//!         no lengths of groups (`object/packed.rs`)
//! ```
//!
//! Invariants:
//! * A value without `HAS_HANDLES` has no handle. A compressed value never has one.
//! * In key order, either `FROM_ORDER` or `EXACT_KEY` is set. With `FROM_ORDER`, the key is decoded
//!   from its order key. Which flag is set depends on the key alone.
//! * In hash order, `EXACT_KEY` is set if the inline bytes of the key are not the key itself: it
//!   has a handle, or a −0.0 that was replaced by 0.0.

mod elements;
mod encode;
pub mod groups;
mod hash;
mod lz;
mod out_of_line;
mod packed;
pub mod patch;
mod sized;
mod view;

pub use crate::blob::OutOfLineBytes;
pub use elements::{Elements, ElementsFrom};
pub use encode::{encode, encode_out_of_line, ObjectEncoder};
pub(crate) use groups::Run;
pub use hash::hash;
use out_of_line::{is_long, term_at};
pub use out_of_line::{
    is_stored_as_is, out_of_line_len, put_out_of_line, NewElements, LONGEST_IN_LINE,
};
pub use packed::{compressed, in_line_len, plain_len};
use sized::close;
pub use sized::{Prefix, LONG};
pub use view::{
    beside_key, beside_key_of_pair, binary_key, has_exact_key, has_same_element, int_key, term_key,
    ObjectElements, ObjectKey, ObjectView, UnopenedObject,
};

use crate::blob::{self, Handles};
use std::fmt;

/// The value begins with the exact key.
pub const EXACT_KEY: u8 = 1;
/// The value has handles.
pub const HAS_HANDLES: u8 = 2;
/// What follows the value's header is compressed.
pub const COMPRESSED: u8 = 4;
/// The index key is an order key from which the key can be decoded.
pub const FROM_ORDER: u8 = 8;
/// The number of bits of a value's header that are flags. The arity is above them.
pub const FLAG_BITS: u32 = 4;

/// The encoding of index keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// The inline bytes of the key: set, bag, duplicate_bag.
    Hash {
        /// Whether −0.0 and 0.0 are identical in the host.
        legacy_zero: bool,
    },
    /// The order key of the key: ordered_set.
    Ordered,
}

/// The reason why a term isn't an object of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// The term isn't a tuple.
    NotTuple,
    /// The tuple has no element at the position of the key.
    TooShort,
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectError::NotTuple => "an object must be a tuple",
            ObjectError::TooShort => "the tuple is too short to have a key",
        })
    }
}

impl std::error::Error for ObjectError {}

/// An object as an index stores it. Owns the counts of its handles.
#[derive(Debug, Default)]
pub struct ObjectBuf {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl ObjectBuf {
    /// An empty buffer.
    pub const fn new() -> ObjectBuf {
        ObjectBuf {
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// The index key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// The object, borrowed.
    #[inline]
    pub fn borrow(&self) -> ObjectRef<'_> {
        ObjectRef {
            key: &self.key,
            value: &self.value,
            given: false,
        }
    }

    /// Empties the buffer, and gives back the counts of its handles. Keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        clear_value(&mut self.value);
        self.key.clear();
    }

    /// The memory that the buffer has allocated, in bytes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.key.capacity() + self.value.capacity()
    }

    /// The object, not opened.
    pub fn unopened(&self) -> UnopenedObject<'_> {
        // SAFETY: an encoder of objects has written key and value, and the buffer owns the counts.
        unsafe { UnopenedObject::new(&self.key, &self.value) }
    }

    /// Opens the object for reading. `scratch` is used for the unpacked bytes of a compressed
    /// object, and for a key that is decoded. `keypos` must be that with which the object was
    /// encoded.
    ///
    /// # Panics
    /// Panics if the buffer holds no object.
    #[inline]
    pub fn view<'a>(&'a self, keypos: usize, scratch: &'a mut Vec<u8>) -> ObjectView<'a> {
        view::open_owned(self, keypos, scratch)
    }
}

/// An object as an index stores it, borrowed. Its owner holds the counts of its handles.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRef<'a> {
    key: &'a [u8],
    value: &'a [u8],
    given: bool,
}

impl<'a> ObjectRef<'a> {
    /// An object, given its bytes.
    ///
    /// # Safety
    /// Key and value are what an [`ObjectEncoder`] would have made of some object in this process.
    /// For all of `'a`, somebody holds the counts of the handles in the value.
    #[inline]
    pub unsafe fn trusted(key: &'a [u8], value: &'a [u8]) -> Self {
        ObjectRef {
            key,
            value,
            given: false,
        }
    }

    /// The same object, with the counts of its handles offered: whoever stores the value takes them
    /// over. If nobody stores it, its owner takes them back.
    #[inline]
    pub fn giving(self) -> Self {
        ObjectRef {
            given: true,
            ..self
        }
    }

    /// Whether the counts are offered.
    #[inline]
    pub fn is_given(&self) -> bool {
        self.given
    }

    /// The index key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        self.value
    }
}

impl Drop for ObjectBuf {
    #[inline]
    fn drop(&mut self) {
        self.clear();
    }
}

/// Takes counts for a copy of a value that is to be stored. Constant if the value has no handles.
///
/// # Safety
/// This module made `value` in this process. Somebody holds the counts of its handles during the
/// call.
#[inline]
pub unsafe fn retain_value(value: &[u8]) {
    if let Some(run) = counted(value) {
        // SAFETY: the run after the header is whole terms that an encoder wrote; the rest is the
        // caller's promise.
        unsafe { blob::retain_all(run) }
    }
}

/// Gives back the counts of a stored value. Constant if the value has no handles.
///
/// # Safety
/// This module made `value` in this process. The caller owns the counts of its handles and gives
/// them up. Nobody reads the handles afterwards.
#[inline]
pub unsafe fn release_value(value: &[u8]) {
    if let Some(run) = counted(value) {
        // SAFETY: the run after the header is whole terms that an encoder wrote; the rest is the
        // caller's promise.
        unsafe { blob::release_all(run) }
    }
}

/// Empties the value of an [`ObjectBuf`], which owns the counts of its handles.
#[inline]
fn clear_value(value: &mut Vec<u8>) {
    // SAFETY:
    // 1. this module made the value;
    // 2. the buffer owns its counts;
    // 3. `&mut` shows that nobody borrows from it, and the bytes are gone after the next line.
    unsafe { release_value(value) }
    value.clear();
}

/// Copies the handles of a value to `handles`. Constant if it has none.
#[inline]
pub fn note_handles(value: &[u8], handles: &mut Handles) {
    if let Some(run) = counted(value) {
        handles.note(run);
    }
}

/// The total size of the binaries to which a value has handles, also those in elements out of line.
/// Constant if it has none, otherwise linear in the heads of its terms.
pub fn outside_bytes(value: &[u8]) -> usize {
    counted(value).map_or(0, blob::outside_bytes)
}

/// The total size of all to which a value's handles lead: binaries, and elements out of line with
/// the binaries in them. The complexity is that of `outside_bytes`.
#[inline]
pub fn all_outside_bytes(value: &[u8]) -> usize {
    match value_has_handles(value) {
        true => out_of_line_len(value) + outside_bytes(value),
        false => 0,
    }
}

/// The term of the stored element with which a run begins, perhaps followed by other bytes.
///
/// # Safety
/// The run begins with an element of an object, as an encoder of objects wrote it in this process.
/// For all of its lifetime, somebody holds the counts of the object's handles.
#[inline]
pub unsafe fn stored_term(run: &[u8]) -> &[u8] {
    term_at(run)
}

/// Whether a value has handles.
#[inline]
pub fn value_has_handles(value: &[u8]) -> bool {
    value.first().is_some_and(|&flags| flags & HAS_HANDLES != 0)
}

/// The terms of a value that has handles. `None` if it has none.
#[inline]
fn counted(value: &[u8]) -> Option<&[u8]> {
    value_has_handles(value).then(|| &value[crate::varint::read(value, 0).1..])
}

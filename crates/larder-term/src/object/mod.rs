//! Objects: tuples as an index keeps them, a key and a value.
//!
//! ```text
//!  key    hash order: the key's inline bytes          key order: its order key
//!  value  varint (arity << 4 | flags)  [exact key, if EXACT_KEY]  the other elements in tuple order
//!         with COMPRESSED: the same header, then the first of this as it is, the rest packed
//!         (`object/packed.rs`)
//! ```
//!
//! Invariants: a value without `HAS_HANDLES` holds no handle; a compressed one never does. In key
//! order either `FROM_ORDER` is set, and the key is worked out from its order key, or `EXACT_KEY`
//! is; which of them depends on the key alone. In hash order `EXACT_KEY` is set where the key's
//! inline bytes are not the key itself: it holds a handle, or a −0.0 that was taken for 0.0.

mod encode;
mod hash;
mod lz;
mod packed;
pub mod patch;
mod view;

pub use encode::{encode, ObjectEncoder};
pub use hash::hash;
pub use packed::compressed;
pub use view::{beside_key, index_key_is_key, ordered_int, ObjectElements, ObjectView};

use crate::blob::{self, Handles};

/// The exact key is in the value.
pub const EXACT_KEY: u8 = 1;
/// The value holds handles.
pub const HAS_HANDLES: u8 = 2;
/// What follows the header is compressed.
pub const COMPRESSED: u8 = 4;
/// The index key is an order key from which the key comes back.
pub const FROM_ORDER: u8 = 8;
/// How many bits of a value's head are flags; the arity stands above them.
pub const FLAG_BITS: u32 = 4;

/// What an index key is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// The key's inline bytes: set, bag, duplicate_bag.
    Hash {
        /// Whether the host's `=:=` takes −0.0 for 0.0.
        legacy_zero: bool,
    },
    /// The key's order key: ordered_set.
    Ordered,
}

/// Why a term is no object of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// It is no tuple.
    #[error("an object must be a tuple")]
    NotTuple,
    /// It has no element at the key's position.
    #[error("the tuple is too short to have a key")]
    TooShort,
}

/// An object as an index keeps it. Owns the counts of its handles.
#[derive(Debug, Default)]
pub struct ObjectBuf {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl ObjectBuf {
    /// An empty buffer.
    pub fn new() -> ObjectBuf {
        ObjectBuf::default()
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

    /// Empties it, keeping the memory. What its handles refer to loses their counts.
    #[inline]
    pub fn clear(&mut self) {
        blob::clear_value(&mut self.value);
        self.key.clear();
    }

    /// Bytes of memory that it has taken.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.key.capacity() + self.value.capacity()
    }

    /// Puts an index key in place of what it holds, without a value.
    pub fn set_key(&mut self, key: &[u8]) {
        self.clear();
        self.key.extend_from_slice(key);
    }

    /// Replaces what it holds by a copy of a stored object, with counts of its own.
    ///
    /// # Safety
    /// `value` is a value of this module's making, made in this process; somebody holds the counts
    /// of its handles during the call.
    pub unsafe fn copy_from(&mut self, key: &[u8], value: &[u8]) {
        self.set_key(key);
        self.value.extend_from_slice(value);
        // SAFETY: the caller's promise is the callee's precondition; the copy's counts are then
        // this buffer's.
        unsafe { retain_value(value) }
    }

    /// The object, to be read. `scratch` takes the plain bytes of a compressed one; `keypos` is the
    /// one it was encoded with.
    ///
    /// # Panics
    /// Panics if the buffer holds no object.
    #[inline]
    pub fn view<'a>(&'a self, keypos: usize, scratch: &'a mut Vec<u8>) -> ObjectView<'a> {
        view::open_owned(self, keypos, scratch)
    }
}

/// An object as an index keeps it, owned by somebody else, who holds the counts of its handles.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRef<'a> {
    key: &'a [u8],
    value: &'a [u8],
    given: bool,
}

impl<'a> ObjectRef<'a> {
    /// The object that these bytes are.
    ///
    /// # Safety
    /// Key and value are what an [`ObjectEncoder`] would have made in this process of some object,
    /// and the counts of the handles in the value are held by somebody for all of `'a`.
    #[inline]
    pub unsafe fn trusted(key: &'a [u8], value: &'a [u8]) -> Self {
        ObjectRef {
            key,
            value,
            given: false,
        }
    }

    /// The same object, whose owner gives the counts of its handles to whoever keeps the value, and
    /// takes them back if nobody does.
    #[inline]
    pub fn giving(self) -> Self {
        ObjectRef {
            given: true,
            ..self
        }
    }

    /// Whether the counts are given.
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

/// Takes counts for a copy of a value that is to be kept. Constant if it has no handles.
///
/// # Safety
/// `value` is a value of this module's making, made in this process; somebody holds the counts of
/// its handles during the call.
#[inline]
pub unsafe fn retain_value(value: &[u8]) {
    if let Some(run) = counted(value) {
        // SAFETY: the run after the header is whole terms that an encoder wrote; the rest is the
        // caller's promise.
        unsafe { blob::retain_all(run) }
    }
}

/// Gives back the counts of a kept value. Constant if it has no handles.
///
/// # Safety
/// `value` is a value of this module's making, made in this process; the caller owns the counts of
/// its handles, gives them up, and lets nobody read them afterwards.
#[inline]
pub unsafe fn release_value(value: &[u8]) {
    if let Some(run) = counted(value) {
        // SAFETY: the run after the header is whole terms that an encoder wrote; the rest is the
        // caller's promise.
        unsafe { blob::release_all(run) }
    }
}

/// Copies the handles of a value. Constant if it has none.
#[inline]
pub fn note_handles(value: &[u8], handles: &mut Handles) {
    if let Some(run) = counted(value) {
        handles.note(run);
    }
}

/// Bytes of the binaries that a value leads to. Constant if it holds no handles, in proportion to
/// its length if it does.
pub fn outside_bytes(value: &[u8]) -> usize {
    counted(value).map_or(0, blob::outside_bytes)
}

/// Whether a value holds handles.
#[inline]
pub fn value_has_handles(value: &[u8]) -> bool {
    value.first().is_some_and(|&flags| flags & HAS_HANDLES != 0)
}

/// The terms of a value that holds handles.
#[inline]
pub(crate) fn counted(value: &[u8]) -> Option<&[u8]> {
    value_has_handles(value).then(|| &value[crate::varint::read(value, 0).1..])
}

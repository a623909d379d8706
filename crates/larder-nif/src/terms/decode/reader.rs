//! A cursor over the bytes of stored terms.

use crate::sys::*;
use larder_term::tags::{ATOM1, INT1};
use larder_term::{little_endian, skip, TermRef};
use std::marker::PhantomData;

/// The beginning of the next term and the end of the readable bytes: two words, which are passed in
/// registers.
///
/// Invariant: at the cursor are whole terms that an encoder wrote, at least as many as are read,
/// perhaps followed by other bytes. A tag is therefore followed by its payload, and the lengths in
/// it are correct. `TermRef` and the objects of a table guarantee that.
#[derive(Clone, Copy)]
pub struct Reader<'b> {
    at: *const u8,
    end: *const u8,
    bytes: PhantomData<&'b [u8]>,
}

impl<'b> Reader<'b> {
    /// A reader at the beginning of some terms.
    ///
    /// # Safety
    /// `bytes` begins with whole terms that an encoder wrote, at least as many as are read. Their
    /// handles are held during `'b`.
    #[inline]
    pub unsafe fn of(bytes: &'b [u8]) -> Self {
        let std::ops::Range { start, end } = bytes.as_ptr_range();
        Reader {
            at: start,
            end,
            bytes: PhantomData,
        }
    }

    /// The byte at this offset: the tag, or one that follows it.
    #[inline]
    pub fn byte(self, ahead: usize) -> u8 {
        debug_assert!(ahead < self.rest());
        // SAFETY: a byte of the next term, by the invariant.
        unsafe { *self.at.add(ahead) }
    }

    /// The number of readable bytes.
    #[inline]
    fn rest(self) -> usize {
        self.end as usize - self.at as usize
    }

    /// The number of bytes between this reader and a later one in the same bytes.
    pub fn distance(self, later: Self) -> usize {
        debug_assert_eq!(self.end, later.end);
        self.rest() - later.rest()
    }

    /// All readable bytes.
    #[inline]
    pub fn bytes(self) -> &'b [u8] {
        // SAFETY: from here to the end of the slice that this was made of.
        unsafe { std::slice::from_raw_parts(self.at, self.rest()) }
    }

    /// The reader after this number of bytes.
    #[inline]
    pub fn after(self, bytes: usize) -> Self {
        debug_assert!(bytes <= self.rest());
        Reader {
            // SAFETY: bytes of the next term, by the invariant.
            at: unsafe { self.at.add(bytes) },
            ..self
        }
    }

    /// The next term, and the reader at its end.
    pub fn term(self) -> (TermRef<'b>, Self) {
        self.term_of(skip(self.bytes()))
    }

    /// The next term, which is `len` bytes long, and the reader at its end.
    pub fn term_of(self, len: usize) -> (TermRef<'b>, Self) {
        // SAFETY: a whole term of a table or of an encoder, whose handles are held while it is
        // read.
        let term = unsafe { TermRef::trusted(&self.bytes()[..len]) };
        (term, self.after(len))
    }

    /// The LEB128 number at this offset, and the reader at its end.
    #[inline]
    pub fn varint(self, ahead: usize) -> (u64, Self) {
        let mut input = self.after(ahead);
        let (mut n, mut shift) = (0, 0);
        // Group by group, the lowest first.
        loop {
            let byte = input.byte(0);
            n |= u64::from(byte & 0x7F) << shift;
            input = input.after(1);
            if byte < 0x80 {
                return (n, input);
            }
            shift += 7;
        }
    }

    /// The signed little-endian number of `len` bytes (1 to 8) at this offset.
    #[inline]
    pub fn number(self, ahead: usize, len: usize) -> i64 {
        let bytes = self.after(ahead).bytes();
        match bytes.first_chunk::<8>() {
            Some(&word) => {
                // Eight bytes are loaded at once. The shifts drop the excess bytes and extend the
                // sign.
                let spare = 64 - 8 * len as u32;
                i64::from_le_bytes(word) << spare >> spare
            }
            // Fewer than eight bytes are readable.
            None => little_endian(&bytes[..len]),
        }
    }

    /// The integer of up to 64 bits with this tag, and the reader at its end.
    #[inline]
    pub fn integer(self, tag: u8) -> (i64, Self) {
        let len = usize::from(tag - INT1 + 1);
        (self.number(1, len), self.after(1 + len))
    }

    /// The number of the atom with this tag, and the reader at its end.
    #[inline]
    pub fn atom(self, tag: u8) -> (u32, Self) {
        let len = usize::from(tag - ATOM1 + 1);
        // The number is unsigned, so the mask removes the extended sign.
        let id = self.number(1, len) as u32 & (u32::MAX >> (32 - 8 * len as u32));
        (id, self.after(1 + len))
    }

    /// The bits of a float as a word, and the reader at its end.
    #[inline]
    pub fn float(self) -> (Word, Self) {
        (self.number(1, 8) as Word, self.after(9))
    }
}

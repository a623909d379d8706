//! What is below a word of a string that goes on: a short-cut leaf, or an array of the next words.
//!
//! ```text
//! value of an index whose string goes on (8 bytes): an address; its lowest bit says which
//!
//!   1: short-cut leaf   a lone string
//!                         | value, 8 bytes | length, 1 byte | rest of the string |
//!                       of 255 bytes or more
//!                         | value, 8 bytes | 255 | length, 8 bytes | rest … |
//!   0: array            the next words of several strings
//!                         | pointer pair, 16 bytes |
//! ```

use super::jp::Jp;
use super::mem::Mem;
use crate::layout::Parts;

/// The address in an index's value, with its kind.
///
/// It owns what it points to. It is stored as a plain word among the values of a map.
#[derive(Clone, Copy)]
pub(super) struct Link(u64);

/// The target of a link.
pub(super) enum Below {
    Lone(Lone),
    Array(*mut Jp<Parts>),
}

/// A short-cut leaf.
#[derive(Clone, Copy)]
pub(super) struct Lone(*mut u64);

/// The number of words of a short-cut leaf, for a rest of this number of bytes.
fn lone_words(rest: usize) -> usize {
    // The value takes eight bytes. The length takes one, or eight more if it is long.
    let head = if rest < 255 { 9 } else { 17 };
    (head + rest).div_ceil(8)
}

impl Link {
    /// The link in a value.
    ///
    /// # Safety
    ///
    /// The value is that of an index whose string goes on, in a string array's tree: it was written
    /// by [`Link::word`].
    #[inline]
    pub(super) unsafe fn from_word(word: u64) -> Link {
        Link(word)
    }

    /// The link as a value.
    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn open(self) -> Below {
        let block: *mut u64 = std::ptr::with_exposed_provenance_mut((self.0 & !1) as usize);
        // Blocks are aligned to words, so the lowest bit of the address is free for the kind.
        if self.0 & 1 == 1 {
            Below::Lone(Lone(block))
        } else {
            Below::Array(block.cast())
        }
    }

    /// A new, empty array.
    pub(super) fn array(mem: &mut Mem) -> (Link, *mut Jp<Parts>) {
        let block = mem.take(2);
        let pair: *mut Jp<Parts> = block.cast();
        // SAFETY: a pair takes two words.
        unsafe { pair.write(Jp::NULL) };
        (Link(block.expose_provenance() as u64), pair)
    }

    /// Frees the block of an array that is empty.
    ///
    /// # Safety
    ///
    /// The pair is that of a link that nobody uses any more.
    pub(super) unsafe fn drop_array(pair: *mut Jp<Parts>, mem: &mut Mem) {
        // SAFETY: the block came from `array`.
        unsafe { mem.give(pair.cast(), 2) };
    }
}

impl Lone {
    /// Makes a short-cut leaf. The rest is passed in two parts, so that the caller needn't join
    /// them.
    pub(super) fn new(front: &[u8], back: &[u8], value: u64, mem: &mut Mem) -> (Link, Lone) {
        let length = front.len() + back.len();
        let block = mem.take(lone_words(length));
        // SAFETY: the block has room for the value, the length and the rest. A fresh block overlaps
        // nothing.
        unsafe {
            *block = value;
            let bytes = block.add(1).cast::<u8>();
            let mut text = bytes.add(1);
            // A length of one byte, or the byte 255 and the length in eight bytes.
            *bytes = length.min(255) as u8;
            if length >= 255 {
                text.cast::<u64>().write_unaligned(length as u64);
                text = text.add(8);
            }
            text.copy_from_nonoverlapping(front.as_ptr(), front.len());
            text.add(front.len())
                .copy_from_nonoverlapping(back.as_ptr(), back.len());
        }
        (Link(block.expose_provenance() as u64 | 1), Lone(block))
    }

    /// The rest of the string.
    ///
    /// # Safety
    ///
    /// The leaf is alive for `'a`, and not written meanwhile but for its value.
    #[inline]
    pub(super) unsafe fn rest<'a>(self) -> &'a [u8] {
        // SAFETY: the block was written by `new`.
        unsafe {
            let bytes = self.0.add(1).cast::<u8>();
            // 255 stands for a long length, in the next eight bytes.
            let short = *bytes as usize;
            if short < 255 {
                return std::slice::from_raw_parts(bytes.add(1), short);
            }
            let length = bytes.add(1).cast::<u64>().read_unaligned() as usize;
            std::slice::from_raw_parts(bytes.add(9), length)
        }
    }

    /// The value's place.
    #[inline]
    pub(super) fn value(self) -> *mut u64 {
        self.0
    }

    /// Frees the leaf.
    ///
    /// # Safety
    ///
    /// Nobody uses the leaf any more.
    pub(super) unsafe fn drop(self, mem: &mut Mem) {
        // SAFETY: the leaf is alive. Its block came from `new`, with the words for its length.
        unsafe {
            let words = lone_words(self.rest().len());
            mem.give(self.0, words);
        }
    }
}

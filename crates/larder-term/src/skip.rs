//! Walking over encoded terms without recursion.
//!
//! A term is a head (a tag, and the part of the payload that isn't terms) followed by its children.
//! The encoding is in prefix order. So this skips one term: `pending = 1; while pending > 0 {
//! pending -= 1; skip a head; pending += number of its children }`.

use crate::{tags::*, varint};

/// The place behind the head at `at`, and the number of its children, which follow.
///
/// # Panics
/// Panics on bytes that no encoder has written.
#[inline(always)]
pub fn head(bytes: &[u8], at: usize) -> (usize, u64) {
    let tag = bytes[at];
    // Small integers and the empty list are a single byte. Most terms of most rows are.
    if tag >= SMALL || tag == NIL {
        return (at + 1, 0);
    }
    match tag {
        INT1..=INT8 => (at + 2 + (tag - INT1) as usize, 0),
        ATOM1..=ATOM4 => (at + 2 + (tag - ATOM1) as usize, 0),
        FLOAT => (at + 9, 0),
        // The children of a tuple or a list follow as terms of their own.
        TUPLE | LIST => {
            let (n, at) = varint::read(bytes, at + 1);
            (at, n)
        }
        BIN | BIG_POS | BIG_NEG => {
            let (n, at) = varint::read(bytes, at + 1);
            (at + n as usize, 0)
        }
        _ => rare_head(bytes, at),
    }
}

fn rare_head(bytes: &[u8], at: usize) -> (usize, u64) {
    let tag = bytes[at];
    let leaf = |end| (end, 0);
    match tag {
        // The tail counts as one more child.
        ILIST => {
            let (n, at) = varint::read(bytes, at + 1);
            (at, n + 1)
        }
        MAP => {
            let (n, at) = varint::read(bytes, at + 1);
            (at, 2 * n)
        }
        TREE_MAP => {
            // The layout of the host's tree is bytes, and stands between the count and the pairs.
            let (n, at) = varint::read(bytes, at + 1);
            let (layout, at) = varint::read(bytes, at);
            (at + layout as usize, 2 * n)
        }
        // The length of a blob is that of the bytes outside. Here is only the handle.
        BLOB => leaf(varint::read(bytes, at + 1).1 + HANDLE),
        BITS => {
            let (bits, at) = varint::read(bytes, at + 1);
            leaf(at + bits.div_ceil(8) as usize)
        }
        PID => leaf(skip_varints(bytes, at + 1, 2)),
        PID_EXT => leaf(skip_varints(bytes, skip_node(bytes, at + 1), 2)),
        PORT => leaf(skip_varints(bytes, at + 1, 1)),
        PORT_EXT => leaf(skip_varints(bytes, skip_node(bytes, at + 1), 1)),
        REF => leaf(skip_words(bytes, at + 1)),
        REF_KEPT => leaf(skip_words(bytes, at + 1) + HANDLE),
        REF_EXT => leaf(skip_words(bytes, skip_node(bytes, at + 1))),
        FUN => {
            // Module, arity, 16 bytes of uniq and 4 of the index; then the old index and the old
            // uniq, as integers. The free variables are children.
            let at = skip_varints(bytes, head(bytes, at + 1).0, 1) + 16 + 4;
            let at = head(bytes, head(bytes, at).0).0;
            let (free, at) = varint::read(bytes, at);
            (at, free)
        }
        EXPORT => {
            let at = head(bytes, head(bytes, at + 1).0).0;
            leaf(skip_varints(bytes, at, 1))
        }
        _ => panic!("no term begins with byte {tag:#04x}"),
    }
}

fn skip_varints(bytes: &[u8], mut at: usize, n: usize) -> usize {
    for _ in 0..n {
        at = varint::read(bytes, at).1;
    }
    at
}

/// Skips the atom and the creation of a node.
fn skip_node(bytes: &[u8], at: usize) -> usize {
    head(bytes, at).0 + 4
}

fn skip_words(bytes: &[u8], at: usize) -> usize {
    let (n, at) = varint::read(bytes, at);
    at + 4 * n as usize
}

/// The length of the first term of `bytes`, which an encoder wrote.
///
/// # Panics
/// Panics on bytes that no encoder has written.
///
/// # Complexity
/// Linear in the heads of the term. No recursion.
#[inline]
pub fn skip(bytes: &[u8]) -> usize {
    end_of(bytes, 0)
}

/// The length of a term, if the tag alone determines it; otherwise 0.
#[inline]
pub(crate) fn fixed(tag: u8) -> usize {
    usize::from(FIXED[usize::from(tag)])
}

/// The lengths of terms whose tags alone determine them; 0 for all others.
const FIXED: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut tag = 0;
    while tag < 256 {
        lengths[tag] = match tag as u8 {
            SMALL..=0xFF | NIL => 1,
            INT1..=INT8 => 2 + (tag as u8 - INT1),
            ATOM1..=ATOM4 => 2 + (tag as u8 - ATOM1),
            FLOAT => 9,
            _ => 0,
        };
        tag += 1;
    }
    lengths
};

/// The place behind the term at `at`.
#[inline]
pub fn end_of(bytes: &[u8], at: usize) -> usize {
    match fixed(bytes[at]) {
        0 => end_of_other(bytes, at),
        len => at + len,
    }
}

/// `end_of`, if the tag alone doesn't determine the length.
fn end_of_other(bytes: &[u8], at: usize) -> usize {
    // A binary is the most common term of variable length, and has no children.
    if bytes[at] == BIN {
        let (n, at) = varint::read(bytes, at + 1);
        return at + n as usize;
    }
    let (mut at, mut pending) = head(bytes, at);
    while pending > 0 {
        let (next, children) = head(bytes, at);
        at = next;
        pending = pending - 1 + children;
    }
    at
}

/// An iterator over the heads of a run of complete terms, in order.
pub struct Heads<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Heads<'a> {
    /// The heads of a run.
    pub fn new(bytes: &'a [u8]) -> Self {
        Heads { bytes, at: 0 }
    }
}

impl Iterator for Heads<'_> {
    /// The beginning and the end of a head.
    type Item = (usize, usize);

    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let start = self.at;
        self.at = head(self.bytes, start).0;
        Some((start, self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_tell_lengths_tell_those_of_the_walk() {
        for tag in (0..=0xFF).filter(|&tag| FIXED[tag as usize] > 0) {
            let mut bytes = [0; 16];
            bytes[0] = tag;
            assert_eq!(skip(&bytes), end_of_other(&bytes, 0), "{tag:#04x}");
        }
    }
}

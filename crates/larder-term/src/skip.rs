//! Walking over encoded terms without recursion.
//!
//! A term is a head (a tag, and the part of the payload that isn't terms) followed by its children.
//! The encoding is in prefix order. So this skips one term: `pending = 1; while pending > 0 {
//! pending -= 1; skip a head; pending += number of its children }`.

use crate::{tags::*, varint};

/// The offset after the head at `at`, and the number of its children, which follow.
///
/// # Panics
/// Panics on bytes that no encoder has written.
#[inline(always)]
pub fn head(bytes: &[u8], at: usize) -> (usize, u64) {
    // Most terms of most rows are numbers and atoms, whose lengths stand in the table.
    match fixed_len(bytes[at]) {
        0 => other_head(bytes, at),
        len => (at + len, 0),
    }
}

/// `head`, if the tag alone doesn't determine the length.
#[inline(always)]
fn other_head(bytes: &[u8], at: usize) -> (usize, u64) {
    match bytes[at] {
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
        // The container is the only child.
        SIZED => (varint::read(bytes, at + 1).1, 1),
        // The length is that of the bytes outside. Here is only the handle.
        BLOB | OUT_OF_LINE => leaf(varint::read(bytes, at + 1).1 + HANDLE),
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
pub fn fixed_len(tag: u8) -> usize {
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

/// The offset after the term at `at`.
#[inline]
pub(crate) fn end_of(bytes: &[u8], at: usize) -> usize {
    match fixed_len(bytes[at]) {
        0 => end_of_other(bytes, at),
        len => at + len,
    }
}

/// `end_of`, if the tag alone doesn't determine the length.
fn end_of_other(bytes: &[u8], at: usize) -> usize {
    // A binary is the most common term of variable length, and has no children. The length of a
    // long element is known. Both are passed without the registers that other terms take.
    if matches!(bytes[at], BIN | SIZED) {
        let (n, at) = varint::read(bytes, at + 1);
        return at + n as usize;
    }
    end_of_nested(bytes, at)
}

/// `end_of` of a term that may have children.
#[inline(never)]
fn end_of_nested(bytes: &[u8], at: usize) -> usize {
    // `pending` is the number of terms that are still to be passed, which lie one after the other
    // from `at` on. So no stack is needed, however deep the term is.
    let (mut at, mut pending) = other_head(bytes, at);
    at = pass_small(bytes, at, &mut pending);
    while pending > 0 {
        pending -= 1;
        match fixed_len(bytes[at]) {
            // Its children follow its head, before the other pending ones.
            0 => {
                let (next, children) = other_head(bytes, at);
                (at, pending) = (next, pending + children);
                if children > 8 {
                    at = pass_small(bytes, at, &mut pending);
                }
            }
            len => at += len,
        }
    }
    at
}

/// Passes small integers, eight at a time, as long as there are as many. A string is a list of
/// them.
#[inline]
fn pass_small(bytes: &[u8], mut at: usize, pending: &mut u64) -> usize {
    const ALL_SMALL: u64 = u64::from_ne_bytes([SMALL; 8]);
    while *pending >= 8 {
        match bytes[at..].first_chunk() {
            // The tag of a small integer is its only byte, and the only tag with the highest bit.
            Some(&word) if u64::from_ne_bytes(word) & ALL_SMALL == ALL_SMALL => at += 8,
            _ => break,
        }
        *pending -= 8;
    }
    at
}

/// An iterator over the heads of a run of complete terms, in order.
pub(crate) struct Heads<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Heads<'a> {
    /// The heads of a run.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
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
    use crate::{term, Term};

    #[test]
    fn the_end_of_each_kind_of_term_is_found() {
        let words = [
            0x100,
            0x1_0000,
            1 << 24,
            1 << 32,
            1 << 40,
            1 << 48,
            1 << 56,
            i64::MAX,
        ];
        let integers = [0, -1, 100, 127]
            .into_iter()
            .chain(words)
            .chain(words.map(|n| -n));
        let mut terms: Vec<Term> = integers.map(Term::from).collect();
        terms.extend([term!([]), term!(a), term!(1.5), term!("bytes"), term!({})]);
        terms.extend([1, 0x100, 0x1_0000].map(|len| Term::from(vec![7u8; len].as_slice())));
        terms.push(Term::tuple(terms.clone()));
        terms.push(Term::list(terms.clone()));
        terms.push(Term::list((0..300).map(Term::from)));
        for term in &terms {
            let bytes = term.as_ref().bytes();
            // What follows a term isn't looked at.
            let followed = [bytes, &[0xFF; 16]].concat();
            assert_eq!(skip(&followed), bytes.len(), "{term}");
        }
    }
}

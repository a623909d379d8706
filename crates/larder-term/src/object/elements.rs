//! The elements of an object beside its key, one after the other.

use super::{
    groups,
    out_of_line::{is_long, term_at},
};
use crate::{
    skip::end_of,
    tags::{OUT_OF_LINE, TUPLE},
    varint,
    view::TermRef,
};

/// A cursor on the elements of a row without the key: those from one of them on, whose bytes are
/// adjacent. How many are left is for the caller to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct ElementsFrom<'a>(&'a [u8]);

impl<'a> ElementsFrom<'a> {
    /// Stored elements.
    #[inline]
    pub(super) fn stored(run: &'a [u8]) -> Self {
        ElementsFrom(run)
    }

    /// The elements of a tuple. `None` for any other term.
    #[inline]
    pub fn of_tuple(term: TermRef<'a>) -> Option<Self> {
        let bytes = term.bytes();
        let at = (bytes[0] == TUPLE).then(|| varint::read(bytes, 1).1)?;
        Some(ElementsFrom(&bytes[at..]))
    }

    /// Whether it is stored with its length, so that `term` has nothing else.
    #[inline]
    pub fn is_long(self) -> bool {
        is_long(self.0)
    }

    /// Whether the first of them is stored out of line: more than
    /// [`LONGEST_IN_LINE`](super::LONGEST_IN_LINE) bytes.
    #[inline]
    pub fn is_out_of_line(self) -> bool {
        self.0.first() == Some(&OUT_OF_LINE)
    }

    /// The term of the first of them, which other bytes may follow if it isn't long. Empty if there
    /// is no element.
    #[inline]
    pub fn term(self) -> &'a [u8] {
        term_at(self.0)
    }

    /// Those after the first, which must exist.
    #[inline]
    pub fn next(self) -> Self {
        self.split_first().1
    }

    /// The bytes of the first of them, which must exist, as it is stored; and those after it.
    #[inline]
    fn split_first(self) -> (&'a [u8], Self) {
        let (element, rest) = self.0.split_at(end_of(self.0, 0));
        (element, ElementsFrom(rest))
    }

    /// The first `count` of them, one after the other.
    #[inline]
    pub(super) fn take(self, count: usize) -> Elements<'a> {
        Elements {
            from: self,
            left: count,
        }
    }

    /// Goes on from element `index` towards the later element `wanted`, over whole groups of these
    /// `lengths`. Returns which element it comes to, and the elements from there on.
    #[inline]
    pub fn pass(self, lengths: &[u8], index: usize, wanted: usize) -> (usize, Self) {
        let (index, at) = groups::pass(lengths, self.0, (index, 0), wanted);
        (index, ElementsFrom(&self.0[at..]))
    }

    /// Appends the terms of the first `count` elements, as they stand in a tuple. Returns those
    /// after them.
    pub fn push_terms(self, count: usize, out: &mut Vec<u8>) -> Self {
        let mut elements = self.take(count);
        elements
            .by_ref()
            .for_each(|term| out.extend_from_slice(term.bytes()));
        elements.from
    }
}

/// Some elements of a row without the key, one after the other.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    from: ElementsFrom<'a>,
    left: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = TermRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<TermRef<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (element, rest) = self.from.split_first();
        self.from = rest;
        Some(TermRef::within(term_at(element)))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Elements<'_> {}

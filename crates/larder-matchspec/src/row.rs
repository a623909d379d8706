//! What a program runs on: a stored object, whose key lies apart, or a term that lies in one piece.

use crate::wire::{self, Head};
use larder_term::{object::ObjectView, tags, TermRef};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// How many elements the tuple has.
    arity: usize,
    /// The position of the key, from 1; 0 where no element lies apart.
    keypos: usize,
    key: &'a [u8],
    /// The other elements, in the order of the tuple.
    rest: &'a [u8],
    /// The whole term where it lies in one piece.
    whole: Option<&'a [u8]>,
}

impl<'a> Row<'a> {
    /// A stored object.
    pub(crate) fn stored(object: &ObjectView<'a>) -> Row<'a> {
        Row {
            arity: object.arity(),
            keypos: object.keypos(),
            key: object.key().bytes(),
            rest: object.others_bytes(),
            whole: None,
        }
    }

    /// Any term.
    pub(crate) fn plain(term: TermRef<'a>) -> Row<'a> {
        let bytes = term.bytes();
        match wire::open(bytes) {
            (Head::Tuple(arity), at) => Row {
                arity,
                keypos: 0,
                key: &[],
                rest: &bytes[at..],
                whole: Some(bytes),
            },
            _ => Row {
                arity: 0,
                keypos: 0,
                key: &[],
                rest: &[],
                whole: Some(bytes),
            },
        }
    }

    /// No row: for expressions that look at none.
    pub(crate) fn none() -> Row<'a> {
        Row {
            arity: 0,
            keypos: 0,
            key: &[],
            rest: &[],
            whole: Some(&[tags::NIL]),
        }
    }

    /// The number of elements, if it is a tuple.
    #[inline]
    pub(crate) fn tuple_arity(&self) -> Option<usize> {
        match self.whole {
            Some(bytes) if bytes.first() != Some(&tags::TUPLE) => None,
            _ => Some(self.arity),
        }
    }

    /// The whole, where it lies in one piece.
    #[inline]
    pub(crate) fn whole(&self) -> Option<&'a [u8]> {
        self.whole
    }

    /// The element at a position, from 1. Linear in what stands before it.
    pub(crate) fn element(&self, position: usize) -> Option<&'a [u8]> {
        if position == 0 || position > self.arity {
            return None;
        }
        let mut cursor = self.cursor();
        let run = cursor.seek(position);
        Some(wire::split(run).0)
    }

    /// A cursor before the first element.
    #[inline]
    pub(crate) fn cursor(&self) -> Cursor<'a> {
        Cursor {
            keypos: self.keypos,
            key: self.key,
            rest: self.rest,
            next: 1,
        }
    }

    /// Appends the whole, as one tuple.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(whole) = self.whole {
            return out.extend_from_slice(whole);
        }
        wire::push_head(out, tags::TUPLE, self.arity);
        let mut cursor = self.cursor();
        let before = cursor.rest.len() - cursor.seek_apart().len();
        out.extend_from_slice(&self.rest[..before]);
        out.extend_from_slice(self.key);
        out.extend_from_slice(&self.rest[before..]);
    }
}

/// Goes over a row's elements in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    keypos: usize,
    key: &'a [u8],
    /// The elements not yet passed that lie together.
    rest: &'a [u8],
    /// The position of the next element.
    next: usize,
}

impl<'a> Cursor<'a> {
    /// Goes on to an element, which must not lie behind, and gives a run that begins with it.
    #[inline]
    pub(crate) fn seek(&mut self, position: usize) -> &'a [u8] {
        while self.next < position {
            if self.next != self.keypos {
                self.rest = wire::split(self.rest).1;
            }
            self.next += 1;
        }
        if position == self.keypos {
            self.key
        } else {
            self.rest
        }
    }

    /// The element at `position` was consumed and what is left of its run is this.
    #[inline]
    pub(crate) fn passed(&mut self, position: usize, left: &'a [u8]) {
        self.next = position + 1;
        if position != self.keypos {
            self.rest = left;
        }
    }

    /// Goes on to where the key would stand among the elements that lie together, and gives those
    /// after it.
    fn seek_apart(&mut self) -> &'a [u8] {
        self.seek(self.keypos);
        self.rest
    }
}

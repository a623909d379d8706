//! What a program runs on: a stored object, whose key lies apart, or a term that lies in one piece.

use crate::wire::{self, Head};
use larder_term::{object::ObjectView, tags, TermRef};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// How many elements the tuple has. Not as wide as the object's: two words that were just
    /// stored one by one would be copied as one, which waits for both stores to reach the cache.
    arity: u32,
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
    #[inline(always)]
    pub(crate) fn stored(object: &ObjectView<'a>) -> Row<'a> {
        Row {
            arity: object.arity() as u32,
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
                arity: arity as u32,
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
            _ => Some(self.arity as usize),
        }
    }

    /// The whole, where it lies in one piece.
    #[inline]
    pub(crate) fn whole(&self) -> Option<&'a [u8]> {
        self.whole
    }

    /// The element at a position, from 1, of a row that is not walked for its other elements.
    /// Linear in what stands before it.
    pub(crate) fn element(&self, position: usize) -> Option<&'a [u8]> {
        if position == 0 || position > self.arity as usize {
            return None;
        }
        Some(wire::split(Fields::of(self).run(position)).0)
    }

    /// Appends the whole, as one tuple.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(whole) = self.whole {
            return out.extend_from_slice(whole);
        }
        wire::push_head(out, tags::TUPLE, self.arity as usize);
        let before = self.keypos.saturating_sub(1);
        let apart = (0..before).fold(0, |at, _| at + larder_term::skip(&self.rest[at..]));
        out.extend_from_slice(&self.rest[..apart]);
        out.extend_from_slice(self.key);
        out.extend_from_slice(&self.rest[apart..]);
    }
}

/// Finds the elements of a row. It goes on from the one that was found last, or, for one before
/// that, from the first: who asks by position walks over the row once.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// The position of the key, if it lies apart; else one that no element has.
    apart: usize,
    key: &'a [u8],
    /// The other elements.
    rest: &'a [u8],
    /// Which of them was found last, from 0, and where it begins.
    last: usize,
    at: usize,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn of(row: &Row<'a>) -> Self {
        Fields {
            apart: match row.keypos {
                0 => usize::MAX,
                keypos => keypos,
            },
            key: row.key,
            rest: row.rest,
            last: 0,
            at: 0,
        }
    }

    /// A run that begins with the element at a position, from 1, which the row has.
    #[inline(always)]
    pub(crate) fn run(&mut self, position: usize) -> &'a [u8] {
        if position == self.apart {
            return self.key;
        }
        let wanted = position - 1 - usize::from(position > self.apart);
        if wanted < self.last {
            (self.last, self.at) = (0, 0);
        }
        while self.last < wanted {
            self.at += larder_term::skip(&self.rest[self.at..]);
            self.last += 1;
        }
        &self.rest[self.at..]
    }
}

//! What a program runs on: a stored object, whose key is stored apart, or a contiguous term.

use crate::wire::{self, Head};
use larder_term::object::{groups, ElementsFrom, ObjectKey, ObjectView};
use larder_term::{tags, TermRef};

/// The elements of a row, found by position. A search for an element starts from the one that was
/// found last, or from the first one if the wanted element is before that. So a caller that asks in
/// ascending order walks over the row once. If a wide row is asked in another order, checkpoints
/// are stored, from which later searches start.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The number of elements of the tuple. `u32`, while the object's arity is a `usize`. With
    /// equal widths the compiler would copy two fields by one 16-byte load, which can't be
    /// forwarded from the two stores before it.
    arity: u32,
    /// The position of the key, counted from 1; [`NOWHERE`] if no element is stored apart.
    keypos: usize,
    key: Option<ObjectKey<'a>>,
    /// The other elements, in the order of the tuple, as they are stored.
    rest: ElementsFrom<'a>,
    /// The lengths of the groups of these elements, if they are known.
    lengths: &'a [u8],
    /// The whole term, if it is contiguous.
    whole: Option<&'a [u8]>,
    /// The number of the element of `rest` that was found last, counted from 0.
    last: usize,
    /// Those of `rest` from that one on.
    from: ElementsFrom<'a>,
    /// Where every `STRIDE`th element of `rest` begins, as far as that is known.
    checkpoints: Option<Box<Checkpoints<'a>>>,
}

/// The elements of `rest` from every `STRIDE`th one on, beginning with the first.
#[derive(Debug, Default)]
struct Checkpoints<'a>(Vec<ElementsFrom<'a>>);

/// A position that no element has.
const NOWHERE: usize = usize::MAX;

/// The number of elements between two checkpoints.
const STRIDE: usize = 32;

/// Checkpoints are stored when a search goes back from an element with this number or a greater
/// one.
const WIDE: usize = 128;

impl<'a> Row<'a> {
    /// A stored object.
    #[inline]
    pub(crate) fn stored(object: &ObjectView<'a>) -> Row<'a> {
        // The key is stored apart. `keypos` says where among the elements it belongs.
        Row {
            arity: object.arity() as u32,
            keypos: object.keypos(),
            key: Some(object.lazy_key()),
            rest: object.others_from(),
            lengths: object.lengths(),
            whole: None,
            last: 0,
            from: object.others_from(),
            checkpoints: None,
        }
    }

    /// Any term.
    pub(crate) fn plain(term: TermRef<'a>) -> Row<'a> {
        // A tuple is taken apart, so that its elements are found like those of a stored object.
        match (wire::open(term.bytes()), ElementsFrom::of_tuple(term)) {
            ((Head::Tuple(arity), _), Some(rest)) => Row {
                arity: arity as u32,
                rest,
                from: rest,
                ..Row::whole_term(term.bytes())
            },
            _ => Row::whole_term(term.bytes()),
        }
    }

    /// An empty row, for expressions that don't look at the row.
    pub(crate) fn none() -> Row<'a> {
        // The empty list, which has no elements.
        Row::whole_term(&[tags::NIL])
    }

    /// A term whose elements, if it has any, aren't looked at.
    fn whole_term(bytes: &'a [u8]) -> Row<'a> {
        Row {
            arity: 0,
            keypos: NOWHERE,
            key: None,
            rest: ElementsFrom::default(),
            lengths: &[],
            whole: Some(bytes),
            last: 0,
            from: ElementsFrom::default(),
            checkpoints: None,
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

    /// The whole term, if it is contiguous.
    #[inline]
    pub(crate) fn whole(&self) -> Option<&'a [u8]> {
        self.whole
    }

    /// The element at a position, counted from 1.
    pub(crate) fn element(&mut self, position: usize) -> Option<&'a [u8]> {
        if position == 0 || position > self.arity as usize {
            return None;
        }
        Some(self.whole_element(position))
    }

    /// The element at a position, from 1, which the row has.
    #[inline(always)]
    pub(crate) fn whole_element(&mut self, position: usize) -> &'a [u8] {
        let run = self.run(position);
        if position != self.keypos {
            // The last element ends where the row does, and of a long one the end is known. Both
            // save a walk.
            let others = self.arity as usize - usize::from(self.keypos != NOWHERE);
            if self.last + 1 == others || self.from.is_long() {
                return run;
            }
        }
        &run[..larder_term::skip(run)]
    }

    /// The bytes from the element at a position to the end of the row. Positions are counted from
    /// 1, and the row has the element. Where the element ends isn't determined here: its encoding
    /// says that.
    #[inline]
    pub(crate) fn run(&mut self, position: usize) -> &'a [u8] {
        if position == self.keypos {
            return key_bytes(self.key);
        }
        // The number of the element among those in `rest`.
        let wanted = position - 1 - usize::from(position > self.keypos);
        if wanted != self.last {
            self.walk_to(wanted);
        }
        self.from.term()
    }

    /// If these are the bytes from the element on that was found last, the position of the element
    /// that is stored after it.
    pub(crate) fn position_after(&self, run: &[u8]) -> Option<usize> {
        let position = self.last + 1;
        let position = position + usize::from(position >= self.keypos);
        std::ptr::eq(self.from.term(), run).then(|| self.stored_after(position))
    }

    /// The position of the element that is stored after the one at `position`: the key isn't there.
    pub(crate) fn stored_after(&self, position: usize) -> usize {
        position + 1 + usize::from(position + 1 == self.keypos)
    }

    /// Goes to element `wanted` of `rest`, counted from 0.
    #[inline(never)]
    fn walk_to(&mut self, wanted: usize) {
        // It lies before the last one: start over.
        if wanted < self.last {
            if self.last >= WIDE {
                self.store_checkpoints();
            }
            (self.last, self.from) = (0, self.rest);
        }
        if let Some(checkpoints) = &self.checkpoints {
            // A checkpoint may lie nearer.
            let nearest = (wanted / STRIDE).min(checkpoints.0.len() - 1);
            if nearest * STRIDE > self.last {
                (self.last, self.from) = (nearest * STRIDE, checkpoints.0[nearest]);
            }
        }
        // Skip the elements in between. Of a walk from one to the next, the lengths save nothing.
        if wanted - self.last >= groups::GROUP && !self.lengths.is_empty() {
            (self.last, self.from) = self.from.pass(self.lengths, self.last, wanted);
        }
        while self.last < wanted {
            self.from = self.from.next();
            self.last += 1;
        }
    }

    /// Stores the checkpoints up to the element that was found last. Each is stored once.
    #[cold]
    fn store_checkpoints(&mut self) {
        let Checkpoints(stored) = &mut **self.checkpoints.get_or_insert_default();
        // Continue at the last checkpoint. The first one is that of the first element.
        let mut from = stored.pop().unwrap_or(self.rest);
        stored.push(from);
        while stored.len() * STRIDE <= self.last {
            from = (0..STRIDE).fold(from, |from, _| from.next());
            stored.push(from);
        }
    }

    /// Appends the whole row as one tuple.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(whole) = self.whole {
            return out.extend_from_slice(whole);
        }
        wire::push_head(out, tags::TUPLE, self.arity as usize);
        // Insert the key after the elements that come before it.
        let (before, others) = (self.keypos - 1, self.arity as usize - 1);
        let after = self.rest.push_terms(before, out);
        out.extend_from_slice(key_bytes(self.key));
        after.push_terms(others - before, out);
    }
}

/// The bytes of a key; none if no element is stored apart.
#[inline]
fn key_bytes(key: Option<ObjectKey<'_>>) -> &[u8] {
    key.map_or(&[], |key| key.term().bytes())
}

//! The bytes of a specification, with an index of its terms.
//!
//! The compiler visits terms from the outside inwards, and must know where each ends. Finding an
//! end by walking over the term would cost its size at each level of nesting. So one pass records
//! the ends of all compound terms first. A term is identified by the offset at which it begins.
//!
//! ```text
//!   bytes   [{ {'$1',[b]} , [] , ['$_'] }]
//!                ^
//!   ends    (begin, end) of every list, tuple and map, by begin
//!   loose   the offsets of variables (^), of '_' and of maps
//! ```
//!
//! A term without a loose part in it is *ground*: it matches exactly the terms that are identical
//! to it. The hole of an argument is ground, unless the argument is a closed pattern (`closed`). A
//! compound term that contains a hole isn't.

use crate::{
    constant::{Class, Constant, Span},
    template::{Hole, Template},
    wire::{self, Head},
};
use larder_term::{tags, Atom};
use smallvec::SmallVec;

/// The offsets of a few terms.
pub(crate) type Offsets = SmallVec<[usize; 8]>;

/// The ends of the compound terms of a specification, and the offsets of its loose parts (see the
/// module).
#[derive(Debug, Default)]
pub(crate) struct TermIndex {
    ends: SmallVec<[(usize, usize); 6]>,
    loose: SmallVec<[usize; 8]>,
}

/// The bytes of a specification, with their index and the holes of arguments.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
    holes: &'a [Hole],
    index: &'a TermIndex,
}

impl TermIndex {
    /// Makes the index of one complete term, in one pass.
    pub(crate) fn of(bytes: &[u8]) -> TermIndex {
        let mut index = TermIndex::default();
        // The open compound terms: the index of each in `ends`, and the number of parts that it
        // lacks.
        let mut open: SmallVec<[(usize, usize); 8]> = SmallVec::new();
        let mut at = 0;
        loop {
            // Enter one term. Its parts, if it has any, come next.
            let (parts, next) = index.enter(bytes, at);
            if parts > 0 {
                open.push((index.ends.len() - 1, parts));
                at = next;
                continue;
            }
            at = next;
            // The term may be the last part of several containers.
            loop {
                match open.last_mut() {
                    None => return index,
                    Some((open_at, left)) => {
                        *left -= 1;
                        if *left > 0 {
                            break;
                        }
                        index.ends[*open_at].1 = at;
                        open.pop();
                    }
                }
            }
        }
    }

    /// Records the term at `at`. Returns the number of its parts, and the offset after its head.
    #[inline]
    fn enter(&mut self, bytes: &[u8], at: usize) -> (usize, usize) {
        let run = &bytes[at..];
        let (head, body) = wire::open(run);
        if head == Head::Leaf {
            if wire::atom(run).is_some_and(wire::is_loose) {
                // Variables, `'_'` and maps match more than one term.
                self.loose.push(at);
            }
            return (0, at + larder_term::skip(run));
        }
        if matches!(head, Head::Map(_)) {
            self.loose.push(at);
        }
        // The end isn't known yet. For a container without parts it is after the head.
        self.ends.push((at, at + body));
        (part_count(head), at + body)
    }
}

impl<'a> Source<'a> {
    /// A template and its index.
    pub(crate) fn new(template: &'a Template, index: &'a TermIndex) -> Source<'a> {
        Source {
            bytes: &template.bytes,
            holes: &template.holes,
            index,
        }
    }

    /// The offsets of all arguments.
    pub(crate) fn holes(&self) -> &'a [Hole] {
        self.holes
    }

    /// The index and the class of the argument at `at`, if there is one.
    pub(crate) fn argument(&self, at: usize) -> Option<(u32, Class)> {
        let found = self.holes.partition_point(|hole| (hole.at as usize) < at);
        let hole = self.holes.get(found)?;
        (hole.at as usize == at).then_some((found as u32, hole.class))
    }

    /// The closed pattern at `at`, if there is an argument that is one.
    pub(crate) fn closed_argument(&self, at: usize) -> Option<Constant> {
        // A hole has the bytes of `[]`.
        if self.bytes[at] != tags::NIL {
            return None;
        }
        match self.argument(at) {
            Some((index, Class::Closed)) => Some(Constant::Argument(index)),
            _ => None,
        }
    }

    /// The constant at `at`.
    pub(crate) fn constant(&self, at: usize) -> Constant {
        match self.argument(at) {
            Some((index, _)) => Constant::Argument(index),
            None => Constant::Fixed(self.span(at)),
        }
    }

    /// The end of the term at `at`.
    #[inline]
    pub(crate) fn end(&self, at: usize) -> usize {
        match self.bytes[at] {
            tags::TUPLE | tags::LIST | tags::ILIST | tags::MAP | tags::TREE_MAP => {
                self.end_of_compound(at)
            }
            _ => at + larder_term::skip(&self.bytes[at..]),
        }
    }

    fn end_of_compound(&self, at: usize) -> usize {
        let found = self.index.ends.partition_point(|&(begin, _)| begin < at);
        self.index.ends[found].1
    }

    /// The bytes between two offsets.
    pub(crate) fn bytes(&self, from: usize, to: usize) -> &'a [u8] {
        &self.bytes[from..to]
    }

    /// The offsets of all compound terms, in ascending order.
    pub(crate) fn compounds(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.index.ends.iter().map(|&(begin, _)| begin)
    }

    /// The head of the term at `at`.
    pub(crate) fn head(&self, at: usize) -> Head {
        wire::open(&self.bytes[at..]).0
    }

    /// The offsets of all parts of the term at `at`: the elements; the elements and the tail; or
    /// keys and values, which alternate.
    pub(crate) fn parts(&self, at: usize) -> Offsets {
        self.each(at).collect()
    }

    /// As `parts`, as an iterator.
    #[inline]
    pub(crate) fn each(self, at: usize) -> PartOffsets<'a> {
        let (head, body) = wire::open(&self.bytes[at..]);
        PartOffsets {
            source: self,
            next: at + body,
            left: part_count(head),
        }
    }

    /// The offsets of the elements of a tuple.
    pub(crate) fn tuple(&self, at: usize) -> Option<Offsets> {
        matches!(self.head(at), Head::Tuple(_)).then(|| self.parts(at))
    }

    /// The atom at `at`.
    pub(crate) fn atom(&self, at: usize) -> Option<Atom> {
        wire::atom(&self.bytes[at..])
    }

    /// The bytes of the term at `at`.
    pub(crate) fn term(&self, at: usize) -> &'a [u8] {
        &self.bytes[at..self.end(at)]
    }

    /// The range of the bytes of the term at `at`.
    pub(crate) fn span(&self, at: usize) -> Span {
        Span {
            from: at,
            to: self.end(at),
        }
    }

    /// Whether the term at `at` is an argument, or contains no variable, no `'_'` and no argument.
    /// It may contain maps.
    pub(crate) fn is_closed(&self, at: usize) -> bool {
        let end = self.end(at);
        // The first hole at or after the offset at which the term begins.
        let hole = self.holes.partition_point(|hole| (hole.at as usize) < at);
        let hole = self.holes.get(hole).map(|hole| hole.at as usize);
        match hole {
            Some(hole) if hole == at => true,
            Some(hole) if hole < end => false,
            // Without a hole, only maps may be loose in it.
            _ => self.loose_in(at).all(|offset| self.is_map(offset)),
        }
    }

    /// Whether the term at `at` is a map, or contains one.
    pub(crate) fn has_map(&self, at: usize) -> bool {
        self.loose_in(at).any(|offset| self.is_map(offset))
    }

    fn is_map(&self, at: usize) -> bool {
        matches!(self.bytes[at], tags::MAP | tags::TREE_MAP)
    }

    /// The offsets of the loose parts in the term at `at`.
    fn loose_in(&self, at: usize) -> impl Iterator<Item = usize> + use<'a> {
        let first = self.index.loose.partition_point(|&offset| offset < at);
        let end = self.end(at);
        let inside = self.index.loose[first..].iter().copied();
        inside.take_while(move |&offset| offset < end)
    }

    /// Whether the term at `at` contains no variable, no `'_'`, no map and no argument, or is an
    /// argument that isn't a closed pattern.
    pub(crate) fn is_ground(&self, at: usize) -> bool {
        let run = &self.bytes[at..];
        // A leaf is ground unless it is a variable, `'_'`, or the hole of a closed pattern.
        match run[0] {
            tags::TUPLE | tags::LIST | tags::ILIST | tags::MAP | tags::TREE_MAP => {}
            _ => {
                return !wire::atom(run).is_some_and(wire::is_loose)
                    && self.closed_argument(at).is_none()
            }
        }
        let end = self.end(at);
        // A container is ground if no hole and no loose part lies in it.
        let hole = self.holes.partition_point(|hole| (hole.at as usize) < at);
        let has_hole = |hole: &Hole| (hole.at as usize) < end;
        !self.holes.get(hole).is_some_and(has_hole) && self.loose_in(at).next().is_none()
    }
}

/// The offsets of the parts of a term.
#[derive(Clone)]
pub(crate) struct PartOffsets<'a> {
    source: Source<'a>,
    next: usize,
    left: usize,
}

impl Iterator for PartOffsets<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let here = self.next;
        // The offset after the last part isn't used.
        if self.left > 0 {
            self.next = self.source.end(here);
        }
        Some(here)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// The number of the parts of a term with this head.
pub(crate) fn part_count(head: Head) -> usize {
    match head {
        Head::Leaf => 0,
        Head::Tuple(n) | Head::List(n) => n,
        Head::Improper(n) => n + 1,
        Head::Map(n) => 2 * n,
    }
}

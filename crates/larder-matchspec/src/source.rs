//! A specification's bytes, with the way around in them.
//!
//! Compiling visits terms from the outside inwards and must know where each ends. Finding an end by walking would cost the
//! size of the term at every level of nesting; so one pass notes the ends of all compound terms first. A term is named by
//! the place where it begins.
//!
//! ```text
//!   bytes   [{ {'$1',[b]} , [] , ['$_'] }]        ends    (begin, end) of every list, tuple and map, by begin
//!                ^                                loose   the places of variables, of '_' and of maps
//! ```
//!
//! A term without a loose place inside is *ground*: it matches exactly what is identical to it.

use crate::wire::{self, Head};
use larder_term::{atoms, Atom};
use std::ops::Range;

/// A run of bytes of the constant pool, whose first part is the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Span {
    pub(crate) fn range(self) -> Range<usize> {
        self.from..self.to
    }
}

/// See the module.
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
    ends: Vec<(usize, usize)>,
    loose: Vec<usize>,
}

impl<'a> Source<'a> {
    /// One pass over one whole term.
    pub(crate) fn scan(bytes: &'a [u8]) -> Source<'a> {
        let mut source = Source {
            bytes,
            ends: Vec::new(),
            loose: Vec::new(),
        };
        // Compounds that are open: their index in `ends`, and the parts still to come.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        loop {
            let (parts, next) = source.enter(at);
            if parts > 0 {
                open.push((source.ends.len() - 1, parts));
                at = next;
                continue;
            }
            at = next;
            loop {
                match open.last_mut() {
                    None => return source,
                    Some((index, left)) => {
                        *left -= 1;
                        if *left > 0 {
                            break;
                        }
                        source.ends[*index].1 = at;
                        open.pop();
                    }
                }
            }
        }
    }

    /// Notes the term at `at`; the number of its parts and the place after its head.
    fn enter(&mut self, at: usize) -> (usize, usize) {
        let run = &self.bytes[at..];
        let (head, body) = wire::open(run);
        if head == Head::Leaf {
            if wire::atom(run).is_some_and(is_loose) {
                self.loose.push(at);
            }
            return (0, at + larder_term::skip(run));
        }
        if matches!(head, Head::Map(_)) {
            self.loose.push(at);
        }
        self.ends.push((at, at + body));
        (part_count(head), at + body)
    }

    /// Where the term at `at` ends.
    pub(crate) fn end(&self, at: usize) -> usize {
        match self.ends.binary_search_by_key(&at, |e| e.0) {
            Ok(i) => self.ends[i].1,
            Err(_) => at + larder_term::skip(&self.bytes[at..]),
        }
    }

    /// The head of the term at `at`.
    pub(crate) fn head(&self, at: usize) -> Head {
        wire::open(&self.bytes[at..]).0
    }

    /// The places of all parts of the term at `at`: elements, elements and the tail, or keys and values by turns.
    pub(crate) fn parts(&self, at: usize) -> Vec<usize> {
        let (head, body) = wire::open(&self.bytes[at..]);
        let count = part_count(head);
        let mut places = Vec::with_capacity(count.min(self.bytes.len()));
        let mut next = at + body;
        for _ in 0..count {
            places.push(next);
            next = self.end(next);
        }
        places
    }

    /// The places of the elements of a tuple.
    pub(crate) fn tuple(&self, at: usize) -> Option<Vec<usize>> {
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

    /// Where the bytes of the term at `at` lie.
    pub(crate) fn span(&self, at: usize) -> Span {
        Span {
            from: at,
            to: self.end(at),
        }
    }

    /// Whether the term at `at` holds no variable, no `'_'` and no map.
    pub(crate) fn is_ground(&self, at: usize) -> bool {
        let first = self.loose.partition_point(|&place| place < at);
        self.loose
            .get(first)
            .is_none_or(|&place| place >= self.end(at))
    }
}

/// Whether an atom is a variable or `'_'`.
pub(crate) fn is_loose(atom: Atom) -> bool {
    atom == atoms::UNDERSCORE || wire::variable(atom).is_some()
}

fn part_count(head: Head) -> usize {
    match head {
        Head::Leaf => 0,
        Head::Tuple(n) | Head::List(n) => n,
        Head::Improper(n) => n + 1,
        Head::Map(n) => 2 * n,
    }
}

//! The terms of a host, off which templates are read.

use crate::constant::Class;
use larder_term::Atom;
use smallvec::SmallVec;

/// The kind of a term, as the reader of templates distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermShape<T> {
    /// An atom.
    Atom(Atom),
    /// `[]`
    Nil,
    /// A cell of a list: its head and its tail.
    Cell(T, T),
    /// A tuple of this number of elements; see [`Terms::elements`].
    Tuple(usize),
    /// A map.
    Map,
    /// Any other term. Its class is `Plain` only if it is a binary.
    Leaf(Class),
}

/// The terms of a host.
pub trait Terms {
    /// A term, or the rest of a list.
    type Term: Copy;

    /// The kind of a term.
    fn shape(&self, term: Self::Term) -> TermShape<Self::Term>;

    /// The elements of a tuple.
    fn elements(&self, tuple: Self::Term) -> impl Iterator<Item = Self::Term>;

    /// The pairs of a map, in the order of the encoding. `None` if they can't be read.
    fn pairs(&self, map: Self::Term) -> Option<MapPairs<Self::Term>>;

    /// Appends the encoding of a term. Returns `false` if the term can't be encoded or has handles;
    /// arbitrary bytes may have been appended then.
    fn write(&self, term: Self::Term, out: &mut Vec<u8>) -> bool;
}

/// The keys and values of a map.
pub type MapPairs<T> = SmallVec<[(T, T); 8]>;

/// The terms for the holes of a template, in the order of the holes.
pub type ArgumentTerms<T> = SmallVec<[T; 4]>;

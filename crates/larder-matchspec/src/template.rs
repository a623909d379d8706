//! Templates: specifications without their constants.
//!
//! Calls whose specifications differ in constants alone have the same template, and share its code.
//! The constants that the template leaves out are the program's *arguments*:
//!
//! ```text
//!   [{{{user,7},'$1'}, [{'>','$1',10}], [{{'$1',[a,b]}}]}]       a specification
//!   [{{  ?  ,'$1'}, [{'>','$1', ? }], [{{'$1',  ?  }}]}]         its template
//!       Other                   Int             Other            what is known of the arguments
//! ```
//!
//! Which constants are arguments depends on the text of the specification alone:
//!
//! 1. In a head: each maximal part of an element that has no variable and no `'_'`. If it has a
//!    map, its class is `Closed`. Of a map with a variable, only values are such parts.
//! 2. In a guard or a body: the X of `{const,X}`, a list without variables, and a term that is no
//!    atom, if it is an operand of a comparison or of arithmetic, an element of a term that is
//!    built, or the whole expression. Other functions keep their constants: the 2 in
//!    `{element,2,'$_'}` is a part of the code. So are calls whose operands are all constants,
//!    which are computed once.
//! 3. Atoms of a guard or a body, and `[]`, are never arguments.
//!
//! If a specification can't be split so (because it is deeply nested, has handles in a map that
//! stays, or isn't a valid specification), it is its own template, without arguments.
//!
//! A template is read directly off a host's terms ([`Terms`]), or off the bytes of a specification.
//!
//! Whether a container is one constant is known only after its parts. So the parts are read first,
//! as if they stayed. If all of them are constants, the template is rewound to the checkpoint
//! before the container, which becomes one hole:
//!
//! ```text
//!   {{user,7},'$1'}      tuple 2                            the container of the variable
//!                        tuple 2 │ tuple 2 ? ?              user, 7: a hole each
//!                        tuple 2 │ ?                        {user,7} is ground: one hole for it
//!                        tuple 2 │ ? '$1'                   a variable: the outer tuple stays
//! ```
//!
//! The same is done with a call of constants, which is read again as it is. A map in a head is
//! first searched for variables, since its keys are no parts of patterns.

use crate::{
    constant::{Arguments, Class, LONGEST_PLAIN},
    map_search::LARGEST_IN_ORDER,
    raw,
    terms::{ArgumentTerms, MapPairs, TermShape, Terms},
    wire::{self, Head, Short},
};
use larder_term::{atoms, tags, Atom, TermRef};
use smallvec::SmallVec;

/// The greatest depth of nesting at which a specification is split.
const DEPTH: u32 = 64;

/// A hole of a template, for an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hole {
    /// Where it is in the template's bytes. The bytes have `[]` in its place.
    pub(crate) at: u32,
    pub(crate) class: Class,
}

/// A specification without the constants that are its arguments: its bytes, with a hole for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    pub(crate) bytes: Vec<u8>,
    /// In the order of the bytes.
    pub(crate) holes: SmallVec<[Hole; 4]>,
}

/// The error that the specification can't be split: it is its own template.
struct Whole;

/// What a part of a pattern contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TemplatePart {
    /// No variable, no `'_'`, no map.
    Ground,
    /// A map, but no variable and no `'_'`.
    Closed,
    /// A variable or `'_'`, or a map that isn't read.
    Loose,
}

impl TemplatePart {
    /// What a term contains that has both as parts.
    fn with(self, other: TemplatePart) -> TemplatePart {
        self.max(other)
    }
}

/// The kind of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpressionKind {
    /// Its value is the term itself.
    Literal,
    /// Its value is always the same, but differs from the term.
    Constant,
    /// Its value depends on the row or on the context.
    Open,
}

impl Template {
    /// An empty template, to be read into.
    pub(crate) fn new() -> Template {
        Template::default()
    }

    /// Reads the template of a specification into `self`, replacing its contents. Adds the terms
    /// that it leaves out to `found`. Returns `false` if the specification is its own template;
    /// `self` is then meaningless.
    ///
    /// # Complexity
    /// Linear in the specification. The recursion has a bounded depth.
    pub fn read<T: Terms>(
        &mut self,
        terms: &T,
        spec: T::Term,
        found: &mut ArgumentTerms<T::Term>,
    ) -> bool {
        self.clear();
        let mut reader = TemplateReader {
            terms,
            template: self,
            found,
            long: None,
        };
        // A specification that is too deep, or has a long list that is no argument, is its own
        // template.
        reader.spec(spec).is_ok() && reader.long.is_none()
    }

    /// Reads the template of a specification with a single clause, which has this head, no guards,
    /// and this body.
    pub fn read_pattern<T: Terms>(
        &mut self,
        terms: &T,
        head: T::Term,
        body: Atom,
        found: &mut ArgumentTerms<T::Term>,
    ) -> bool {
        self.clear();
        // One clause: a list of one tuple of three.
        self.bytes
            .extend_from_slice(&[tags::LIST, 1, tags::TUPLE, 3]);
        let mut reader = TemplateReader {
            terms,
            template: self,
            found,
            long: None,
        };
        // A head that can't be split leaves the template unusable. The caller compiles the whole
        // specification then.
        if reader.head(head).is_err() || reader.long.is_some() {
            return false;
        }
        self.bytes.extend_from_slice(&[tags::NIL, tags::LIST, 1]);
        Short::atom(body).push_to(&mut self.bytes);
        true
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.holes.clear();
    }

    /// A specification that is its own template.
    pub(crate) fn whole(bytes: &[u8]) -> Template {
        let bytes = bytes.to_vec();
        Template {
            bytes,
            holes: SmallVec::new(),
        }
    }

    /// A hash of the template.
    pub fn hash(&self) -> u64 {
        // Templates are short, so the hash is a few multiplications. Equal hashes are compared by
        // bytes.
        let mix = |hash: u64, word: u64| {
            (hash ^ word)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29)
        };
        let words = self.bytes.chunks_exact(8);
        let rest = words.remainder().iter();
        let rest = rest.fold(1, |word, &byte| word << 8 | u64::from(byte));
        let word = |word: &[u8]| word.try_into().map_or(0, u64::from_le_bytes);
        let hash = words.map(word).fold(rest, mix);
        // Holes of other classes have other code.
        let holes = self.holes.iter();
        let hash = holes.fold(hash, |hash, hole| {
            mix(hash, u64::from(hole.at) << 3 | hole.class as u64)
        });
        // The low bits are mixed least, and callers take an index from the lowest ones.
        hash >> 7
    }

    /// The number of its bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Splits an encoded specification into its template and its arguments.
    pub(crate) fn of(spec: TermRef<'_>) -> (Template, Arguments) {
        let (mut template, mut found) = (Template::new(), ArgumentTerms::new());
        let mut arguments = Arguments::new();
        let terms = Bytes(spec.bytes());
        // Handles must be counted, which templates don't do.
        if !spec.has_handles() && template.read(&terms, TermPosition::Term(0), &mut found) {
            // The arguments are the terms at the offsets for which the template has holes.
            for place in found {
                if let TermPosition::Term(at) = place {
                    arguments.push(raw::view(&terms.0[at..]));
                }
            }
            return (template, arguments);
        }
        (Template::whole(spec.bytes()), arguments)
    }
}

/// Reads a template.
struct TemplateReader<'r, T: Terms> {
    terms: &'r T,
    template: &'r mut Template,
    found: &'r mut ArgumentTerms<T::Term>,
    /// Where the first list lies whose count doesn't fit in the byte that was reserved for it. If
    /// it is replaced by a hole, so is all that was read after it.
    long: Option<usize>,
}

/// A point to which a reader can return.
#[derive(Clone, Copy)]
struct TemplateCheckpoint {
    bytes: usize,
    holes: usize,
}

impl<T: Terms> TemplateReader<'_, T> {
    fn checkpoint(&self) -> TemplateCheckpoint {
        TemplateCheckpoint {
            bytes: self.template.bytes.len(),
            holes: self.template.holes.len(),
        }
    }

    /// Undoes what was read since the checkpoint.
    fn rewind(&mut self, checkpoint: TemplateCheckpoint) {
        self.template.bytes.truncate(checkpoint.bytes);
        self.template.holes.truncate(checkpoint.holes);
        self.found.truncate(checkpoint.holes);
        self.long = self.long.filter(|&at| at < checkpoint.bytes);
    }

    /// Adds a hole, and its term to those that were found.
    #[inline]
    fn hole(&mut self, class: Class, term: T::Term) {
        let at = self.template.bytes.len() as u32;
        self.template.bytes.push(tags::NIL);
        self.template.holes.push(Hole { at, class });
        self.found.push(term);
    }

    /// Adds an atom.
    fn atom(&mut self, atom: Atom) {
        Short::atom(atom).push_to(&mut self.template.bytes);
    }

    /// Adds a term as it is.
    fn whole(&mut self, term: T::Term) -> Result<(), Whole> {
        let written = self.terms.write(term, &mut self.template.bytes);
        written.then_some(()).ok_or(Whole)
    }

    /// Reads a list, given the head and the tail of its first cell. `each` reads an element.
    /// Returns the tail of the last cell, unless that is `[]`.
    fn list(
        &mut self,
        mut head: T::Term,
        mut rest: T::Term,
        mut each: impl FnMut(&mut Self, T::Term) -> Result<(), Whole>,
    ) -> Result<Option<T::Term>, Whole> {
        // Reserve one byte for the count, which isn't known yet. If a list has more elements, and
        // isn't replaced by one hole afterwards, the specification can't be split (`long`).
        let at = self.template.bytes.len();
        self.template.bytes.extend_from_slice(&[tags::LIST, 0]);
        let mut count = 1usize;
        let tail = loop {
            // Walk along the cells: their number isn't known before the end.
            each(self, head)?;
            match self.terms.shape(rest) {
                TermShape::Cell(next, tail) => (head, rest) = (next, tail),
                TermShape::Nil => break None,
                _ => break Some(rest),
            }
            count += 1;
        };
        // A count of one byte is all that was reserved.
        if count > 0x7F {
            self.long = Some(self.long.map_or(at, |first| first.min(at)));
        }
        self.template.bytes[at + 1] = count as u8;
        if tail.is_some() {
            self.template.bytes[at] = tags::ILIST;
        }
        Ok(tail)
    }

    /// Reads a list of clauses, guards or body expressions, which must be a proper list.
    fn proper(
        &mut self,
        list: T::Term,
        each: impl FnMut(&mut Self, T::Term) -> Result<(), Whole>,
    ) -> Result<(), Whole> {
        // Anything but a proper list is left to the compiler, which reports the fault.
        match self.terms.shape(list) {
            TermShape::Nil => self.template.bytes.push(tags::NIL),
            TermShape::Cell(head, rest) => {
                if self.list(head, rest, each)?.is_some() {
                    return Err(Whole);
                }
            }
            _ => return Err(Whole),
        }
        Ok(())
    }

    /// Reads a specification.
    fn spec(&mut self, spec: T::Term) -> Result<(), Whole> {
        self.proper(spec, |reader, clause| {
            // Each clause has three parts. The head is read as a pattern, guards and bodies as
            // expressions.
            let TermShape::Tuple(3) = reader.terms.shape(clause) else {
                return Err(Whole);
            };
            wire::push_head(&mut reader.template.bytes, tags::TUPLE, 3);
            let mut parts = reader.terms.elements(clause);
            let (head, guards, body) = match (parts.next(), parts.next(), parts.next()) {
                (Some(head), Some(guards), Some(body)) => (head, guards, body),
                _ => return Err(Whole),
            };
            drop(parts);
            reader.head(head)?;
            for expressions in [guards, body] {
                reader.proper(expressions, |reader, expression| {
                    reader.expression(expression, true, DEPTH).map(|_| ())
                })?;
            }
            Ok(())
        })
    }

    /// Reads the head of a clause.
    fn head(&mut self, head: T::Term) -> Result<(), Whole> {
        match self.terms.shape(head) {
            TermShape::Atom(atom) => self.atom(atom),
            TermShape::Tuple(arity) => {
                wire::push_head(&mut self.template.bytes, tags::TUPLE, arity);
                for element in self.terms.elements(head) {
                    self.pattern(element, DEPTH)?;
                }
            }
            _ => return Err(Whole),
        }
        Ok(())
    }

    /// Reads a part of a head. If it has no variable, it becomes one hole.
    fn pattern(&mut self, term: T::Term, depth: u32) -> Result<TemplatePart, Whole> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Whole);
        };
        // A container without variables is taken back to here.
        let checkpoint = self.checkpoint();
        let part = match self.terms.shape(term) {
            TermShape::Tuple(arity) => self.pattern_tuple(term, arity, depth)?,
            TermShape::Cell(head, rest) => self.pattern_list(head, rest, depth)?,
            TermShape::Leaf(class) => {
                self.hole(class, term);
                return Ok(TemplatePart::Ground);
            }
            // A variable or `'_'` makes all containers around it loose.
            TermShape::Atom(atom) if wire::is_loose(atom) => {
                self.atom(atom);
                return Ok(TemplatePart::Loose);
            }
            TermShape::Atom(_) => {
                self.hole(Class::Plain, term);
                return Ok(TemplatePart::Ground);
            }
            TermShape::Nil => {
                self.template.bytes.push(tags::NIL);
                return Ok(TemplatePart::Ground);
            }
            TermShape::Map => self.pattern_map(term, depth)?,
        };
        // No part has a variable: replace their holes by one for the whole.
        let class = match part {
            TemplatePart::Ground => Class::Other,
            TemplatePart::Closed => Class::Closed,
            TemplatePart::Loose => return Ok(part),
        };
        self.rewind(checkpoint);
        self.hole(class, term);
        Ok(part)
    }

    /// Reads a map in a head. Nothing is read of one without variables.
    #[inline(never)]
    fn pattern_map(&mut self, map: T::Term, depth: u32) -> Result<TemplatePart, Whole> {
        let pairs = match self.terms.pairs(map) {
            Some(pairs) if self.are_closed(&pairs, depth)? => return Ok(TemplatePart::Closed),
            // The head of a large map has more than the number of pairs.
            Some(pairs) if pairs.len() <= LARGEST_IN_ORDER => pairs,
            _ => {
                self.whole(map)?;
                return Ok(TemplatePart::Loose);
            }
        };
        wire::push_head(&mut self.template.bytes, tags::MAP, pairs.len());
        for (key, value) in pairs {
            // A key isn't a pattern. Where it belongs among the keys must be known.
            match self.terms.shape(key) {
                TermShape::Atom(atom) => self.atom(atom),
                _ => self.whole(key)?,
            }
            self.pattern(value, depth)?;
        }
        Ok(TemplatePart::Loose)
    }

    /// Whether none of these pairs has a variable or `'_'`.
    fn are_closed(&self, pairs: &[(T::Term, T::Term)], depth: u32) -> Result<bool, Whole> {
        for &(key, value) in pairs {
            if !(self.is_closed(key, depth)? && self.is_closed(value, depth)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a term has no variable and no `'_'`, as far as can be read.
    fn is_closed(&self, term: T::Term, depth: u32) -> Result<bool, Whole> {
        let depth = depth.checked_sub(1).ok_or(Whole)?;
        match self.terms.shape(term) {
            TermShape::Atom(atom) => Ok(!wire::is_loose(atom)),
            TermShape::Nil | TermShape::Leaf(_) => Ok(true),
            // Without its pairs, it isn't known.
            TermShape::Map => match self.terms.pairs(term) {
                Some(pairs) => self.are_closed(&pairs, depth),
                None => Ok(false),
            },
            TermShape::Tuple(_) => {
                for element in self.terms.elements(term) {
                    if !self.is_closed(element, depth)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            // A list, cell by cell: only its elements go one level down.
            TermShape::Cell(mut head, mut rest) => loop {
                if !self.is_closed(head, depth)? {
                    return Ok(false);
                }
                match self.terms.shape(rest) {
                    TermShape::Cell(next, tail) => (head, rest) = (next, tail),
                    _ => return self.is_closed(rest, depth),
                }
            },
        }
    }

    /// Reads the elements of a tuple in a head, each as if it stayed.
    #[inline]
    fn pattern_tuple(
        &mut self,
        tuple: T::Term,
        arity: usize,
        depth: u32,
    ) -> Result<TemplatePart, Whole> {
        wire::push_head(&mut self.template.bytes, tags::TUPLE, arity);
        let mut all = TemplatePart::Ground;
        for element in self.terms.elements(tuple) {
            all = all.with(self.pattern(element, depth)?);
        }
        Ok(all)
    }

    /// Reads a list in a head, by the head and the tail of its first cell.
    #[inline]
    fn pattern_list(
        &mut self,
        head: T::Term,
        rest: T::Term,
        depth: u32,
    ) -> Result<TemplatePart, Whole> {
        let mut all = TemplatePart::Ground;
        let tail = self.list(head, rest, |reader, element| {
            all = all.with(reader.pattern(element, depth)?);
            Ok(())
        })?;
        match tail {
            None => Ok(all),
            Some(tail) => Ok(all.with(self.pattern(tail, depth)?)),
        }
    }

    /// Reads an expression. `leaves` says whether its constants may be arguments.
    fn expression(
        &mut self,
        term: T::Term,
        leaves: bool,
        depth: u32,
    ) -> Result<ExpressionKind, Whole> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Whole);
        };
        match self.terms.shape(term) {
            TermShape::Leaf(class) if leaves => self.hole(class, term),
            TermShape::Leaf(_) => self.whole(term)?,
            TermShape::Nil => self.template.bytes.push(tags::NIL),
            TermShape::Atom(atom) => {
                self.atom(atom);
                if is_variable(atom) {
                    return Ok(ExpressionKind::Open);
                }
            }
            // A map is copied whole, and never becomes an argument. Nor does a list that contains
            // it.
            TermShape::Map => {
                self.whole(term)?;
                return Ok(ExpressionKind::Open);
            }
            TermShape::Cell(head, rest) => {
                // As in a head: a list of constants is one constant.
                let checkpoint = self.checkpoint();
                let all = self.expression_list(head, rest, leaves, depth)?;
                if leaves && all == ExpressionKind::Literal {
                    self.rewind(checkpoint);
                    self.hole(Class::Other, term);
                }
                return Ok(all);
            }
            TermShape::Tuple(arity) => return self.tuple(term, arity, depth),
        }
        Ok(ExpressionKind::Literal)
    }

    /// Reads a list in a guard or a body, by the head and the tail of its first cell.
    #[inline]
    fn expression_list(
        &mut self,
        head: T::Term,
        rest: T::Term,
        leaves: bool,
        depth: u32,
    ) -> Result<ExpressionKind, Whole> {
        let mut all = ExpressionKind::Literal;
        let tail = self.list(head, rest, |reader, element| {
            all = all.with(reader.expression(element, leaves, depth)?);
            Ok(())
        })?;
        if let Some(tail) = tail {
            all = all.with(self.expression(tail, leaves, depth)?);
        }
        Ok(all)
    }

    /// Reads a tuple in a guard or a body: `{{…}}`, `{const,X}`, or a call. Its first element says
    /// which it is.
    fn tuple(&mut self, term: T::Term, arity: usize, depth: u32) -> Result<ExpressionKind, Whole> {
        // A call of constants is taken back to here.
        let checkpoint = self.checkpoint();
        let mut parts = self.terms.elements(term);
        let first = parts.next().ok_or(Whole)?;
        wire::push_head(&mut self.template.bytes, tags::TUPLE, arity);
        let name = match self.terms.shape(first) {
            TermShape::Tuple(inner) if arity == 1 => {
                drop(parts);
                return self.built(first, inner, depth);
            }
            TermShape::Atom(name) => name,
            _ => return Err(Whole),
        };
        self.atom(name);
        if name == atoms::CONST {
            let (Some(constant), 2) = (parts.next(), arity) else {
                return Err(Whole);
            };
            drop(parts);
            return self.constant(constant);
        }
        // Whether an operand may be an argument depends on the function: see the module's rule 2.
        let leaves = takes_arguments(name);
        let mut all = ExpressionKind::Constant;
        for part in parts {
            all = all.with(self.expression(part, leaves, depth)?);
        }
        if all != ExpressionKind::Open && self.template.holes.len() > checkpoint.holes {
            // All operands are constants: the call is computed once, so it stays in the template.
            self.rewind(checkpoint);
            self.whole(term)?;
        }
        Ok(all)
    }

    /// Reads the X of `{const,X}`.
    fn constant(&mut self, constant: T::Term) -> Result<ExpressionKind, Whole> {
        match self.terms.shape(constant) {
            TermShape::Atom(_) | TermShape::Nil | TermShape::Map => self.whole(constant)?,
            TermShape::Leaf(class) => self.hole(class, constant),
            TermShape::Cell(..) | TermShape::Tuple(_) => self.hole(Class::Other, constant),
        }
        Ok(ExpressionKind::Constant)
    }

    /// Reads the inner tuple of one in double braces.
    fn built(&mut self, term: T::Term, arity: usize, depth: u32) -> Result<ExpressionKind, Whole> {
        // Like a list of constants: if all of its elements are constant, the tuple is one constant.
        let checkpoint = self.checkpoint();
        wire::push_head(&mut self.template.bytes, tags::TUPLE, arity);
        let mut all = ExpressionKind::Literal;
        for part in self.terms.elements(term) {
            all = all.with(self.expression(part, true, depth)?);
        }
        if all == ExpressionKind::Literal {
            self.rewind(checkpoint);
            self.hole(Class::Other, term);
        }
        Ok(all.with(ExpressionKind::Constant))
    }
}

impl ExpressionKind {
    /// The kind of a term or a call that has both as parts.
    fn with(self, other: ExpressionKind) -> ExpressionKind {
        match (self, other) {
            (ExpressionKind::Open, _) | (_, ExpressionKind::Open) => ExpressionKind::Open,
            (ExpressionKind::Literal, ExpressionKind::Literal) => ExpressionKind::Literal,
            _ => ExpressionKind::Constant,
        }
    }
}

/// Whether an atom in a guard or a body stands for something other than itself.
fn is_variable(atom: Atom) -> bool {
    matches!(atom, atoms::DOLLAR_UNDERSCORE | atoms::DOLLAR_DOLLAR)
        || atom != atoms::UNDERSCORE && wire::is_loose(atom)
}

/// Whether a function's constants may be arguments: it is a comparison, or arithmetic. Their atoms
/// have adjacent numbers.
fn takes_arguments(name: Atom) -> bool {
    (atoms::EQ.id()..=atoms::BSR.id()).contains(&name.id())
}

/// The bytes of an encoded specification, as the terms of a host.
struct Bytes<'a>(&'a [u8]);

/// A term in the bytes.
#[derive(Clone, Copy)]
enum TermPosition {
    Term(usize),
    /// The rest of a list that isn't at its end.
    Rest {
        /// The offset of its first element.
        at: usize,
        /// The number of elements that are left, at least one.
        left: usize,
        /// Whether the list is a proper one.
        is_proper: bool,
    },
    /// The end of a proper list.
    End,
}

impl Bytes<'_> {
    /// The list whose first element is at `at`. It has `left` elements.
    fn cell(&self, at: usize, left: usize, is_proper: bool) -> TermShape<TermPosition> {
        // The rest of the list is an element less. Without elements, it is the tail.
        let next = at + larder_term::skip(&self.0[at..]);
        let rest = match (left - 1, is_proper) {
            (0, true) => TermPosition::End,
            (0, false) => TermPosition::Term(next),
            (left, is_proper) => TermPosition::Rest {
                at: next,
                left,
                is_proper,
            },
        };
        TermShape::Cell(TermPosition::Term(at), rest)
    }
}

impl Terms for Bytes<'_> {
    type Term = TermPosition;

    fn shape(&self, place: TermPosition) -> TermShape<TermPosition> {
        let at = match place {
            TermPosition::Term(at) => at,
            TermPosition::Rest {
                at,
                left,
                is_proper,
            } => return self.cell(at, left, is_proper),
            TermPosition::End => return TermShape::Nil,
        };
        let run = &self.0[at..];
        // The head of the encoding says which kind it is.
        match wire::open(run) {
            (Head::Tuple(arity), _) => TermShape::Tuple(arity),
            (Head::List(n), body) => self.cell(at + body, n, true),
            (Head::Improper(n), body) => self.cell(at + body, n, false),
            (Head::Map(_), _) => TermShape::Map,
            (Head::Leaf, _) => match (run[0], wire::atom(run), wire::int(run)) {
                (_, Some(atom), _) => TermShape::Atom(atom),
                (_, _, Some(_)) => TermShape::Leaf(Class::Int),
                (tags::NIL, ..) => TermShape::Nil,
                (tags::FLOAT, ..) => TermShape::Leaf(Class::Float),
                _ => match wire::binary(run) {
                    Some(bytes) if bytes.len() <= LONGEST_PLAIN => TermShape::Leaf(Class::Plain),
                    _ => TermShape::Leaf(Class::Other),
                },
            },
        }
    }

    fn elements(&self, tuple: TermPosition) -> impl Iterator<Item = TermPosition> {
        let (mut left, mut next) = (0, 0);
        if let TermPosition::Term(at) = tuple {
            if let (Head::Tuple(arity), body) = wire::open(&self.0[at..]) {
                (left, next) = (arity, at + body);
            }
        }
        // Each element begins where the one before ends. The end of the last one isn't needed.
        std::iter::from_fn(move || {
            left = usize::checked_sub(left, 1)?;
            let here = next;
            if left > 0 {
                next += larder_term::skip(&self.0[next..]);
            }
            Some(TermPosition::Term(here))
        })
    }

    fn pairs(&self, map: TermPosition) -> Option<MapPairs<TermPosition>> {
        let TermPosition::Term(at) = map else {
            return None;
        };
        let (Head::Map(count), body) = wire::open(&self.0[at..]) else {
            return None;
        };
        let mut next = at + body;
        let mut part = || {
            let here = next;
            next += larder_term::skip(&self.0[next..]);
            TermPosition::Term(here)
        };
        Some((0..count).map(|_| (part(), part())).collect())
    }

    fn write(&self, place: TermPosition, out: &mut Vec<u8>) -> bool {
        let TermPosition::Term(at) = place else {
            return false;
        };
        out.extend_from_slice(wire::split(&self.0[at..]).0);
        true
    }
}

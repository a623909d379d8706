//! Owned terms.

use crate::{
    atom::Atom,
    blob::Counted,
    encoder::{Encoder, Mode},
    map_order::DuplicateKey,
    node::Node,
    text,
    view::{TermRef, View},
};
use num_bigint::BigInt;
use std::{cmp::Ordering, fmt, hash};

/// A term that owns its bytes. Long binaries in it are reference-counted, and shared by clones.
///
/// `==` and `Hash` are by identity (Erlang's `=:=`). `Ord` is Erlang's order of terms. Terms that
/// are equal there, such as 1 and 1.0, are ordered as keys of maps, so that `Ord` agrees with `==`.
///
/// ```
/// use larder_term::{term, Term};
/// let row = term!({ok, 17, [1, 2.5, "three"]});
/// assert_eq!(row.to_string(), "{ok,17,[1,2.5,<<\"three\">>]}");
/// assert_eq!(row, row.to_string().parse::<Term>().unwrap());
/// ```
#[derive(Clone)]
pub struct Term {
    /// One whole term, in shared mode.
    run: Counted<Box<[u8]>>,
}

/// The error that a float is infinite or NaN, which no term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;
impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a float must be finite")
    }
}

impl std::error::Error for NotFinite {}

/// The error that what was pushed isn't exactly one complete term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incomplete;
impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what was pushed is not one complete term")
    }
}

impl std::error::Error for Incomplete {}

impl Term {
    /// Builds the term that a closure pushes, in shared mode.
    ///
    /// # Errors
    /// [`Incomplete`] if the closure pushes less or more than one term, or doesn't end a map.
    pub fn build(push: impl FnOnce(&mut Encoder<'_>)) -> Result<Term, Incomplete> {
        let mut buf = TermBuf::new(Mode::Shared);
        buf.encode(push);
        buf.into_term().ok_or(Incomplete)
    }

    /// As `build`, for closures of this crate, which push one term.
    pub(crate) fn of(push: impl FnOnce(&mut Encoder<'_>)) -> Term {
        let built = Term::build(push);
        debug_assert!(built.is_ok());
        // The closures of this crate push one term. If one of them didn't, the result would be
        // `[]`, and no panic in a host.
        built.unwrap_or_else(|Incomplete| Term::nil())
    }

    /// An integer.
    pub fn int(n: i64) -> Term {
        Term::of(|enc| enc.int(n))
    }

    /// An integer of any size.
    pub fn bigint(n: &BigInt) -> Term {
        Term::of(|enc| enc.bigint(n))
    }

    /// A float.
    ///
    /// # Errors
    /// [`NotFinite`] if the float is infinite or NaN.
    pub fn float(x: f64) -> Result<Term, NotFinite> {
        match x.is_finite() {
            true => Ok(Term::of(|enc| enc.float(x))),
            false => Err(NotFinite),
        }
    }

    /// The atom with this text.
    ///
    /// # Panics
    /// Panics if the text has more than 255 characters, like [`Atom::new`].
    pub fn atom(text: &str) -> Term {
        Term::from(Atom::new(text))
    }

    /// `[]`.
    pub fn nil() -> Term {
        // It is one byte, so it needs no encoder.
        let run = Counted::new(Box::from([crate::tags::NIL]));
        Term { run }
    }

    /// A tuple.
    pub fn tuple<T: AsTerm>(
        elements: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    ) -> Term {
        let elements = elements.into_iter();
        Term::of(|enc| {
            enc.begin_tuple(elements.len());
            elements.for_each(|e| enc.term(e.as_term()));
        })
    }

    /// A proper list.
    pub fn list<T: AsTerm>(
        elements: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    ) -> Term {
        let elements = elements.into_iter();
        Term::of(|enc| {
            enc.begin_list(elements.len());
            elements.for_each(|e| enc.term(e.as_term()));
        })
    }

    /// A list with a tail: `[a, b | tail]`. If the tail is a list itself, the result is one longer
    /// list, as in Erlang. If there are no elements, the result is the tail.
    pub fn improper<T: AsTerm>(
        elements: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        tail: TermRef<'_>,
    ) -> Term {
        let elements = elements.into_iter();
        let n = elements.len();
        // The head comes first. So the elements of a tail that is a list are counted before
        // anything is written.
        Term::of(|enc| {
            match tail.view() {
                _ if n == 0 => return enc.term(tail),
                View::Nil => enc.begin_list(n),
                View::List(list) if list.is_proper() => enc.begin_list(n + list.len()),
                View::List(list) => enc.begin_improper(n + list.len()),
                _ => enc.begin_improper(n),
            }
            elements.for_each(|e| enc.term(e.as_term()));
            // The elements of the tail become elements of the new list.
            match tail.view() {
                View::Nil => {}
                View::List(list) => {
                    list.iter().for_each(|e| enc.term(e));
                    if !list.is_proper() {
                        enc.term(list.tail());
                    }
                }
                _ => enc.term(tail),
            }
        })
    }

    /// A map.
    ///
    /// # Errors
    /// [`DuplicateKey`] if two keys are identical.
    pub fn map<K: AsTerm, V: AsTerm>(
        pairs: impl IntoIterator<Item = (K, V), IntoIter: ExactSizeIterator>,
    ) -> Result<Term, DuplicateKey> {
        let pairs = pairs.into_iter();
        let mut ended = Ok(());
        let term = Term::of(|enc| {
            let token = enc.begin_map(pairs.len());
            for (key, value) in pairs {
                enc.term(key.as_term());
                enc.term(value.as_term());
            }
            // Pairs are sorted, and identical keys found, when the map ends.
            ended = enc.end_map(token);
        });
        ended.map(|()| term)
    }

    /// A binary.
    pub fn binary(bytes: &[u8]) -> Term {
        Term::of(|enc| enc.binary(bytes))
    }

    /// The bitstring of the first `bits` bits of `bytes`.
    pub fn bits(bytes: &[u8], bits: usize) -> Term {
        Term::of(|enc| enc.bits(bytes, bits))
    }

    /// A pid.
    pub fn pid(node: Node, id: u32, serial: u32) -> Term {
        Term::of(|enc| enc.pid(node, id, serial))
    }

    /// A port.
    pub fn port(node: Node, id: u64) -> Term {
        Term::of(|enc| enc.port(node, id))
    }

    /// A reference.
    pub fn reference(node: Node, words: &[u32]) -> Term {
        Term::of(|enc| enc.reference(node, words))
    }

    /// `fun M:F/A`.
    pub fn export(module: Atom, function: Atom, arity: u8) -> Term {
        Term::of(|enc| enc.export(module, function, arity))
    }

    /// The term, borrowed.
    #[inline]
    pub fn as_ref(&self) -> TermRef<'_> {
        TermRef::within(self.run.bytes())
    }

    /// The encoded bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.run.bytes()
    }

    /// Opens the head of the term.
    #[inline]
    pub fn view(&self) -> View<'_> {
        self.as_ref().view()
    }
}

/// A value that can be pushed as a term.
pub trait AsTerm {
    /// The term, borrowed.
    fn as_term(&self) -> TermRef<'_>;
}

impl AsTerm for Term {
    fn as_term(&self) -> TermRef<'_> {
        self.as_ref()
    }
}

impl AsTerm for TermRef<'_> {
    fn as_term(&self) -> TermRef<'_> {
        *self
    }
}

impl<T: AsTerm> AsTerm for &T {
    fn as_term(&self) -> TermRef<'_> {
        (*self).as_term()
    }
}

impl PartialEq for Term {
    #[inline]
    fn eq(&self, other: &Term) -> bool {
        // Terms with handles may be identical and have different bytes.
        self.as_ref().identical(other.as_ref())
    }
}

impl Eq for Term {}

impl hash::Hash for Term {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        let term = self.as_ref();
        let zero = crate::legacy_zero() && crate::contents::has_negative_zero(self.bytes());
        // Equal terms must have equal hashes. So terms with handles are hashed by their inline
        // form, and zeros as one zero if both are equal here.
        match (zero, self.run.has_handles()) {
            (true, _) => state.write(&crate::identity::without_negative_zero(self.as_ref())),
            (false, false) => state.write(self.bytes()),
            (false, true) => {
                let mut inline = Vec::new();
                Encoder::new(&mut inline, Mode::Inline).term(term);
                state.write(&inline);
            }
        }
    }
}

impl PartialOrd for Term {
    fn partial_cmp(&self, other: &Term) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Term {
    fn cmp(&self, other: &Term) -> Ordering {
        let (a, b) = (self.as_ref(), other.as_ref());
        // In term order 1 and 1.0 are equal, but by `Eq` they are not. The exact order tells such
        // terms apart, as `Ord` requires.
        a.cmp_term(b).then_with(|| a.cmp_exact(b))
    }
}

impl fmt::Display for Term {
    /// The term as Erlang prints it, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}

impl fmt::Display for TermRef<'_> {
    /// The term as Erlang prints it, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::print(*self))
    }
}

impl fmt::Debug for TermRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A buffer in which terms are built, one after another. Its memory is reused.
#[derive(Debug)]
pub struct TermBuf {
    run: Counted<Vec<u8>>,
    mode: Mode,
    complete: bool,
}

impl Default for TermBuf {
    fn default() -> TermBuf {
        TermBuf::new(Mode::Shared)
    }
}

impl TermBuf {
    /// An empty buffer.
    pub fn new(mode: Mode) -> TermBuf {
        TermBuf {
            run: Counted::new(Vec::new()),
            mode,
            complete: false,
        }
    }

    /// Drops the contents, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.run.clear();
        self.complete = false;
    }

    /// The memory that the buffer has allocated, in bytes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.run.capacity()
    }

    /// Replaces the contents by what a closure pushes.
    #[inline]
    pub fn encode<R>(&mut self, push: impl FnOnce(&mut Encoder<'_>) -> R) -> R {
        self.complete = false;
        let (result, complete) = self.run.fill(self.mode, push);
        self.complete = complete;
        result
    }

    /// The term, if what was pushed is one complete term.
    #[inline]
    pub fn term(&self) -> Option<TermRef<'_>> {
        self.complete.then(|| TermRef::within(self.run.bytes()))
    }

    /// Converts the buffer into an owned term, if what was pushed is one complete term.
    pub fn into_term(self) -> Option<Term> {
        let run = self.run.into_boxed();
        self.complete.then_some(Term { run })
    }
}

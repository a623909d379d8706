//! What a program is given besides the row, and what it gives.

use crate::raw;
use larder_term::{atoms, tags, Atom, TermRef};

/// What a program may ask of its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// What `{self}` is.
    pub self_pid: TermRef<'a>,
    /// What `{node}` is, and `{node,X}` of something local.
    pub node: Atom,
}

impl Context<'_> {
    /// The surroundings for a program that asks nothing of them ([`crate::Program::asks_context`]).
    pub fn none() -> Context<'static> {
        Context {
            self_pid: raw::whole(&[tags::NIL]),
            node: atoms::NONODE,
        }
    }
}

/// What a row gave.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'s> {
    /// The row itself: the body was `'$_'`.
    Object,
    /// A term. Its bytes lie in the row, in the program or in the scratch memory, and so do the
    /// counts of the handles in them (a handle in the scratch memory is counted by the row or by
    /// the program): who keeps the term encodes it anew.
    Term(TermRef<'s>),
}

impl Outcome<'_> {
    /// Whether it is the atom `true`.
    pub fn is_true(&self) -> bool {
        matches!(self, Outcome::Term(term) if term.as_atom() == Some(atoms::TRUE))
    }
}

/// What `match`, `match_object` and `match_delete` do with the rows that fit a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// `'$$'`: the list of the variables.
    Bindings,
    /// `'$_'`: the row.
    Object,
    /// `true`.
    True,
}

impl Pattern {
    /// The body of the specification that it stands for.
    pub const fn body(self) -> Atom {
        match self {
            Pattern::Bindings => atoms::DOLLAR_DOLLAR,
            Pattern::Object => atoms::DOLLAR_UNDERSCORE,
            Pattern::True => atoms::TRUE,
        }
    }
}

//! What a program reads besides the row, and what it returns.

use crate::{body::BuiltTerm, raw};
use larder_term::{atoms, tags, Atom, TermRef};

/// A result that doesn't have to be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The atom `true`.
    True,
    /// The object.
    Object,
}

/// What a program may read besides the row and the constants.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The value of `{self}`.
    pub self_pid: TermRef<'a>,
    /// The value of `{node}`, and of `{node,X}` if X is local.
    pub node: Atom,
}

impl Context<'_> {
    /// A context for programs that don't use it ([`crate::Program::asks_context`]).
    pub fn none() -> Context<'static> {
        Context {
            self_pid: raw::whole(&[tags::NIL]),
            node: atoms::NONODE,
        }
    }
}

/// The result for a row.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'s> {
    /// The row itself, since the body is `'$_'`.
    Object,
    /// A term. Its bytes are in the row, in the program or in the scratch memory. The counts of its
    /// handles belong to the row or to the program, also if its bytes are in the scratch memory. A
    /// caller that keeps the term must encode it again.
    Term(TermRef<'s>),
}

/// The result for a row, of which a host makes its own term.
#[derive(Debug)]
pub enum Shown<'r> {
    /// As [`Outcome::Object`].
    Object,
    /// As [`Outcome::Term`].
    Term(TermRef<'r>),
    /// A term whose parts lie in the row and in the program.
    Built(&'r mut BuiltTerm<'r, 'r>),
}

/// What `match`, `match_object` and `match_delete` return for rows that match a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternResult {
    /// `'$$'`: the list of the variables.
    Bindings,
    /// `'$_'`: the row.
    Object,
    /// `true`.
    True,
}

impl PatternResult {
    /// The body of the equivalent specification.
    pub const fn body(self) -> Atom {
        match self {
            PatternResult::Bindings => atoms::DOLLAR_DOLLAR,
            PatternResult::Object => atoms::DOLLAR_UNDERSCORE,
            PatternResult::True => atoms::TRUE,
        }
    }
}

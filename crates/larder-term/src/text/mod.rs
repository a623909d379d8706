//! Erlang's text syntax for terms: [`print()`], [`beginning`] and [`parse()`].

mod lexer;
mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use parse::parse;
pub(crate) use print::write_atom;
pub use print::{beginning, print};
use std::fmt;

/// The reason why a text isn't a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// A description of the error.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { line, column, what } = self;
        write!(f, "line {line}, column {column}: {what}")
    }
}

impl std::error::Error for ParseError {}

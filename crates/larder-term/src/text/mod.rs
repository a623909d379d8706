//! Erlang's text syntax for terms: [`print()`] and [`parse()`].

mod lexer;
mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use parse::parse;
pub use print::print;
pub(crate) use print::write_atom;

/// The reason why a text isn't a term.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
}

//! The definition of a secondary index.

use crate::error::Error;
use crate::programs::Program;
use crate::structures::DEFAULT;
use larder_term::{Atom, Term};

/// What is indexed of each row.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexOn {
    /// The element at a position, from 1. Shorter rows are not in the index.
    Element(usize),
    /// The result of an expression of match specifications over the row, `'$_'`. Rows for which it
    /// fails are not in the index.
    Expression(Term),
}

/// The definition of a secondary index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDefinition {
    /// The name, which no other index of the table has.
    pub name: Atom,
    /// What is indexed.
    pub on: IndexOn,
    /// Whether no two rows may have values that are equal (`==`).
    pub unique: bool,
    /// Whether the value is a list, of which each element is indexed. Rows with another value are
    /// not in the index.
    pub each: bool,
}

impl IndexDefinition {
    /// An index with this name. It is not unique, and doesn't index the elements of lists.
    pub fn new(name: Atom, on: IndexOn) -> Self {
        IndexDefinition {
            name,
            on,
            unique: false,
            each: false,
        }
    }

    /// The program whose results are the values of the index; `None` for an element.
    ///
    /// # Errors
    /// `BadOption` for a position of 0, an invalid expression, or one that depends on the process
    /// or the node.
    pub(super) fn program(&self) -> Result<Option<Program>, Error> {
        let name = self.name.text();
        let expression = match &self.on {
            IndexOn::Element(0) => {
                let text = format!("index {name}: positions count from 1");
                return Err(Error::BadOption(text.into()));
            }
            // An element needs no program: it is read in place.
            IndexOn::Element(_) => return Ok(None),
            IndexOn::Expression(expression) => expression.as_ref(),
        };
        // In a guard, an expression that fails is false. So the clause matches the rows that have a
        // value, and returns the value.
        let same = Term::tuple([Term::atom("=:=").as_ref(), expression, expression]);
        let (guards, body) = (Term::list([same.as_ref()]), Term::list([expression]));
        let head = Term::atom("_");
        let clause = Term::tuple([head.as_ref(), guards.as_ref(), body.as_ref()]);
        let specification = Term::list([clause.as_ref()]);
        let program = Program::compile(specification.as_ref())
            // The clause is not the caller's, so its number isn't reported.
            .map_err(|error| Error::BadOption(format!("index {name}: {}", error.what).into()))?;
        // What is indexed must be the same whoever asks. Otherwise a row would have other entries
        // for another process.
        if program.asks_context() {
            let text = format!(
                "index {name}: what is indexed may depend on the row alone, not on the process or \
                 the node that asks"
            );
            return Err(Error::BadOption(text.into()));
        }
        Ok(Some(program))
    }
}

/// Checks whether a table on this structure can have these indexes.
///
/// # Errors
/// `BadOption`.
#[cold]
pub(crate) fn check(indexes: &[IndexDefinition], structure: &str) -> Result<(), Error> {
    if structure != DEFAULT {
        let text = "tables on a structure of the studies have no indexes";
        return Err(Error::BadOption(text.to_owned().into()));
    }
    for (i, definition) in indexes.iter().enumerate() {
        // Names are compared with the earlier definitions only, so each pair once.
        let earlier = &indexes[..i];
        if earlier.iter().any(|other| other.name == definition.name) {
            let text = format!("two indexes are called {}", definition.name.text());
            return Err(Error::BadOption(text.into()));
        }
        definition.program()?;
    }
    Ok(())
}

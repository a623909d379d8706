//! Secondary indexes on expressions, and match specifications by index.

use super::spec::MatchSpec;
use crate::api::{Index, Table};
use crate::error::Error;
use crate::indexes::{Explanation, IndexOn};
use larder_term::Term;

impl Index {
    /// An index on the result of an expression of match specifications over the tuple, `'$_'`. The
    /// expression is written as in Erlang: `{map_get, zip, {element, 5, '$_'}}`. Tuples for which
    /// it fails are not in the index.
    pub fn expression(name: &str, expression: &str) -> Self {
        let on = larder_term::text::parse(expression);
        Self::of(name, on.map(IndexOn::Expression).map_err(|e| e.to_string()))
    }
}

impl Table {
    /// Returns the results of a match specification for the tuples of an index. They are in the
    /// order of their values. Tuples with equal values are in the order of their keys as bytes.
    ///
    /// # Errors
    /// `BadSpec`, `NoIndex`, `NoTable`.
    ///
    /// # Consistency
    /// A tuple that is in the table throughout with the same value is visited once. A tuple whose
    /// value changes meanwhile may be visited twice or not at all.
    ///
    /// # Complexity
    /// O(log n), and O(log n) for each entry that is read. If the specification limits the value,
    /// only the entries within the limits are.
    pub fn index_select(&self, name: &str, spec: impl MatchSpec) -> Result<Vec<Term>, Error> {
        let (name, table) = (Self::index_name(name)?, self.engine_table());
        let program = spec.program()?;
        let begin = || table.index_select(self.me(), name, program.clone(), None);
        let job = self.patiently(begin)?;
        self.all_of(job)
    }

    /// Returns how a match specification would be evaluated now: by keys, by an index, or by a
    /// scan. Reads counts only: O(log n) for each index.
    ///
    /// # Errors
    /// `BadSpec`.
    pub fn explain(&self, spec: impl MatchSpec) -> Result<Explanation, Error> {
        Ok(self.engine_table().explain(&spec.program()?, None))
    }
}

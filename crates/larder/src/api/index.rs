//! Secondary indexes.

use super::select::with_context;
use super::spec::MatchSpec;
use super::table::{tuple, Table};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::indexes::{Explanation, IndexDefinition, IndexInfo, IndexJob, IndexOn};
use crate::scan::{Output, ScanStep};
use larder_term::{AsTerm, Atom, Term};

/// What a secondary index has of each tuple, and how: for [`Builder::index`](super::Builder::index)
/// and [`Table::add_index`].
///
/// ```
/// use larder::api::{Index, Larder};
/// use larder_term::{term, Term};
///
/// # fn main() -> Result<(), larder::Error> {
/// let users = Larder::new()
///     .table("users")
///     .index(Index::element("mail", 2).unique())
///     .index(Index::element("tags", 3).each())
///     .create()?;
/// users.insert(&term!({1, "a@b", [admin, staff]}))?;
/// assert!(!users.insert_new(&term!({2, "a@b", []}))?);
///
/// let staff = users.index_lookup("tags", &term!(staff))?;
/// assert_eq!(staff, [term!({1, "a@b", [admin, staff]})]);
/// // Match specifications find the index by themselves.
/// assert_eq!(users.select("[{{'$1',<<\"a@b\">>,'_'},[],['$1']}]")?, [term!(1)]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Index {
    name: String,
    on: Result<IndexOn, String>,
    unique: bool,
    each: bool,
}

impl Index {
    /// Of the element at a position, from 1. Tuples that are shorter are not in the index.
    pub fn element(name: &str, position: usize) -> Self {
        Self::of(name, Ok(IndexOn::Element(position)))
    }

    /// Of the result of an expression of match specifications over the tuple, `'$_'`, written as in
    /// Erlang: `{map_get, zip, {element, 5, '$_'}}`. Tuples for which it fails are not in the
    /// index.
    pub fn expression(name: &str, expression: &str) -> Self {
        let on = larder_term::text::parse(expression);
        Self::of(name, on.map(IndexOn::Expression).map_err(|e| e.to_string()))
    }

    fn of(name: &str, on: Result<IndexOn, String>) -> Self {
        Index {
            name: name.to_owned(),
            on,
            unique: false,
            each: false,
        }
    }

    /// No two tuples may have values that are equal (`==`).
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// The value is a list, each of whose elements is indexed. Tuples with something else are not
    /// in the index.
    pub fn each(mut self) -> Self {
        self.each = true;
        self
    }

    pub(super) fn definition(&self) -> Result<IndexDefinition, Error> {
        let bad = |text: String| Error::BadOption(format!("index {}: {text}", self.name).into());
        let name = Atom::try_new(&self.name).map_err(|e| bad(e.to_string()))?;
        let on = self.on.clone().map_err(bad)?;
        Ok(IndexDefinition {
            unique: self.unique,
            each: self.each,
            ..IndexDefinition::new(name, on)
        })
    }
}

impl Table {
    /// Adds an index. Others read and write the table meanwhile.
    ///
    /// # Errors
    /// `BadOption` for a definition that can't be, or a name that another index has; `NotUnique` if
    /// two tuples have one value in a unique index; `TableType`, `NoTable`.
    ///
    /// # Complexity
    /// O(n log n).
    pub fn add_index(&self, index: &Index) -> Result<(), Error> {
        let definition = index.definition()?;
        let table = self.engine_table();
        let mut job = self.patiently(|| table.add_index(self.me(), definition.clone()))?;
        while self.patiently(|| job.step(&mut Budget::unlimited()))? == Step::More {}
        Ok(())
    }

    /// Drops an index. O(1).
    ///
    /// # Errors
    /// `NoIndex`, `NoTable`.
    pub fn drop_index(&self, name: &str) -> Result<(), Error> {
        let name = Self::index_name(name)?;
        self.patiently(|| self.engine_table().drop_index(self.me(), name))
    }

    /// What is known of the indexes.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.engine_table().indexes()
    }

    /// The tuples that have a value in an index (`==`).
    ///
    /// # Errors
    /// `NoIndex`, `NoTable`.
    ///
    /// # Consistency
    /// Each tuple is in the table, with that value, at some instant during the call. One that has
    /// it throughout is there once. Of a snapshot, or in a transaction: those of its instant.
    ///
    /// # Complexity
    /// O(log n), and O(log n) for each tuple.
    pub fn index_lookup(&self, name: &str, value: &impl AsTerm) -> Result<Vec<Term>, Error> {
        let (name, table) = (Self::index_name(name)?, self.engine_table());
        let job = self.patiently(|| table.index_lookup(self.me(), name, value.as_term()))?;
        self.all_of(job)
    }

    /// The results of a match specification for the tuples of an index, in the order of their
    /// values, and for equal ones of their keys as bytes.
    ///
    /// # Errors
    /// `BadSpec`, `NoIndex`, `NoTable`.
    ///
    /// # Consistency
    /// A tuple that is there throughout with the same value is met once; one whose value changes
    /// meanwhile may be met twice or not at all.
    pub fn index_select(&self, name: &str, spec: impl MatchSpec) -> Result<Vec<Term>, Error> {
        let (name, table) = (Self::index_name(name)?, self.engine_table());
        let program = spec.program()?;
        let begin = || table.index_select(self.me(), name, program.clone(), None);
        let job = self.patiently(begin)?;
        self.all_of(job)
    }

    /// How a match specification would be answered at this moment: by keys, by an index, by a scan.
    ///
    /// # Errors
    /// `BadSpec`.
    pub fn explain(&self, spec: impl MatchSpec) -> Result<Explanation, Error> {
        Ok(self.engine_table().explain(&spec.program()?, None))
    }

    fn index_name(name: &str) -> Result<Atom, Error> {
        Atom::try_new(name).map_err(|e| Error::BadOption(e.to_string().into()))
    }

    fn all_of(&self, mut job: IndexJob) -> Result<Vec<Term>, Error> {
        let mut found = Vec::new();
        let mut sink = |output: Output<'_>| {
            found.push(match output {
                Output::Object(object) => tuple(object),
                Output::Term(term) => Term::from(term),
            });
        };
        with_context(|context| {
            let mut step = || job.step(&mut Budget::unlimited(), context, &mut sink);
            while self.patiently(&mut step)? == ScanStep::More {}
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }
}

//! Secondary indexes.

use super::rows::{owned, with_context};
use super::table::Table;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::indexes::{IndexDefinition, IndexInfo, IndexJob, IndexOn};
use crate::scan::{Output, ScanStep};
use larder_term::{AsTerm, Atom, Term};

/// The definition of a secondary index, for [`Builder::index`](super::Builder::index) and
/// [`Table::add_index`].
///
/// ```
/// use larder::api::{Index, Larder};
/// use larder::{term, Term};
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
    /// An index on the element at a position, from 1. Shorter tuples are not in the index.
    pub fn element(name: &str, position: usize) -> Self {
        Self::of(name, Ok(IndexOn::Element(position)))
    }

    pub(super) fn of(name: &str, on: Result<IndexOn, String>) -> Self {
        Index {
            name: name.to_owned(),
            on,
            unique: false,
            each: false,
        }
    }

    /// Makes the index unique: no two tuples may have equal values (`==`).
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Indexes each element of the value, which is a list. Tuples with another value are not in the
    /// index.
    pub fn each(mut self) -> Self {
        self.each = true;
        self
    }

    pub(super) fn definition(&self) -> Result<IndexDefinition, Error> {
        // Each message begins with the name of the index, since a table may have several.
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
    /// Adds an index. Other threads can read and write the table meanwhile.
    ///
    /// # Errors
    /// `BadOption` for an invalid definition, or a name that another index has; `NotUnique` if two
    /// tuples have the same value in a unique index; `TableType` in a transaction, and for a table
    /// on a structure of the studies; `NoTable`. There is no such index then.
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

    /// Returns the definitions and the states of the table's indexes. O(number of indexes).
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.engine_table().indexes()
    }

    /// Returns the tuples that have a value in an index (`==`).
    ///
    /// # Errors
    /// `NoIndex`, `NoTable`.
    ///
    /// # Consistency
    /// Each tuple that is returned was in the table, with that value, at some instant during the
    /// call. A tuple that has the value throughout is returned once. In a snapshot or a
    /// transaction, the result is that of its instant.
    ///
    /// # Complexity
    /// O(log n), and O(log n) for each tuple that is returned.
    pub fn index_lookup(&self, name: &str, value: &impl AsTerm) -> Result<Vec<Term>, Error> {
        let (name, table) = (Self::index_name(name)?, self.engine_table());
        let job = self.patiently(|| table.index_lookup(self.me(), name, value.as_term()))?;
        self.all_of(job)
    }

    pub(super) fn index_name(name: &str) -> Result<Atom, Error> {
        Atom::try_new(name).map_err(|e| Error::BadOption(e.to_string().into()))
    }

    pub(super) fn all_of(&self, mut job: IndexJob) -> Result<Vec<Term>, Error> {
        let mut found = Vec::new();
        let mut buffer = Vec::new();
        let mut sink = |output: Output<'_>| found.push(owned(output, &mut buffer));
        with_context(|context| {
            // One slice of unlimited work is the whole job, unless a list batch interrupts it.
            let mut step = || job.step(&mut Budget::unlimited(), context, &mut sink);
            while self.patiently(&mut step)? == ScanStep::More {}
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }
}

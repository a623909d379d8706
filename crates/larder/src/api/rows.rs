//! Scans of all rows, of ranges and of ranks.

use super::table::{tuple, Table};
use crate::budget::Budget;
use crate::error::Error;
use crate::programs::Context;
use crate::scan::{Output, ScanStep, SelectJob};
use larder_index::Direction;
use larder_term::{atoms, Term, TermRef};
use std::ops::Bound;

impl Table {
    /// Returns all tuples, in key order for an ordered_set.
    ///
    /// # Errors
    /// `NoTable`.
    ///
    /// # Complexity
    /// Linear in the table.
    ///
    /// # Consistency
    /// That of `all_rows`. [`Table::snapshot`] gives all tuples as of one instant.
    pub fn to_vec(&self) -> Result<Vec<Term>, Error> {
        self.all_rows(Direction::Forward)?.rest()
    }

    /// Returns all tuples in pieces, in the order of keys for an ordered_set. The scan advances
    /// only as tuples are asked for. It holds no lock in between, so other threads can write.
    /// `Backward` is for an ordered_set; other tables have only one direction.
    ///
    /// # Errors
    /// `NoTable`.
    ///
    /// # Complexity
    /// O(1), in an ordered_set O(log n), before the first tuple. For the tuples see [`Rows::page`].
    ///
    /// # Consistency
    /// A tuple that is in the table throughout is returned once. If it is replaced meanwhile, the
    /// old one or the new one is returned. A tuple that is inserted or deleted meanwhile may be
    /// returned or not.
    pub fn all_rows(&self, direction: Direction) -> Result<Rows, Error> {
        let job = self.engine_table().each(self.me(), direction)?;
        Ok(Rows::new(self, job))
    }

    /// Like `all_rows`, for the tuples of an ordered_set whose keys are between two bounds, in
    /// order. There are none if the low bound is above the high one.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::Direction;
    /// use larder::term;
    /// use std::ops::Bound;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let squares = Larder::new().table("squares").ordered_set().create()?;
    /// squares.insert_all(&[term!({1, 1}), term!({2, 4}), term!({3, 9})])?;
    /// let two = term!(2);
    /// let from = Bound::Included(two.as_ref());
    /// let rows = squares.range(from, Bound::Unbounded, Direction::Backward)?;
    /// assert_eq!(rows.rest()?, [term!({3, 9}), term!({2, 4})]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `TableType` if the table isn't an ordered_set, `NoTable`.
    ///
    /// # Complexity
    /// O(log n), and O(1) for each tuple that is returned.
    pub fn range(
        &self,
        low: Bound<TermRef<'_>>,
        high: Bound<TermRef<'_>>,
        direction: Direction,
    ) -> Result<Rows, Error> {
        // Bounds become keys of the index, which are compared as bytes.
        let low = low.map(|key| self.key(&key).to_vec());
        let high = high.map(|key| self.key(&key).to_vec());
        let job = self
            .engine_table()
            .each_between(self.me(), low, high, direction)?;
        Ok(Rows::new(self, job))
    }

    /// Returns up to `most` tuples of an ordered_set, in order, from the n-th one. `n` counts as in
    /// `nth`. Consistency is that of `rank`.
    ///
    /// # Errors
    /// Those of `rank`.
    ///
    /// # Complexity
    /// That of `rank`, and O(1) for each tuple that is returned.
    pub fn slice(&self, n: i64, most: usize) -> Result<Vec<Term>, Error> {
        let job = self.patiently(|| self.engine_table().slice(self.me(), n, most))?;
        Rows::new(self, job).left()
    }
}

/// The results of a scan, in pieces; see [`Table::all_rows`].
pub struct Rows {
    table: Table,
    job: SelectJob,
    done: bool,
}

impl Rows {
    pub(in crate::api) fn new(table: &Table, job: SelectJob) -> Self {
        Rows {
            table: table.clone(),
            job,
            done: false,
        }
    }

    /// Returns the next `most` results, or fewer at the end. Returns none if there are no more.
    ///
    /// # Errors
    /// `NoTable`. The results that were found before the error are lost.
    ///
    /// # Complexity
    /// Linear in the number of tuples that are visited until `most` of them match.
    pub fn page(&mut self, most: usize) -> Result<Vec<Term>, Error> {
        self.collect(Some(most))
    }

    /// Returns all remaining results.
    ///
    /// # Errors
    /// Those of `page`.
    pub fn rest(mut self) -> Result<Vec<Term>, Error> {
        self.collect(None)
    }

    /// The remaining results, up to the limit of the job.
    pub(super) fn left(mut self) -> Result<Vec<Term>, Error> {
        self.go_on()
    }

    fn collect(&mut self, most: Option<usize>) -> Result<Vec<Term>, Error> {
        // The scan keeps its resume point. Only the number of results that are wanted is new.
        self.job.set_limit(most);
        self.go_on()
    }

    fn go_on(&mut self) -> Result<Vec<Term>, Error> {
        let mut found = Vec::new();
        // The scan has ended. A further step would find nothing.
        if self.done {
            return Ok(found);
        }
        let job = &mut self.job;
        // `rows` are owned here, since the job's buffers are reused in the next step.
        let mut buffer = Vec::new();
        let mut sink = |output: Output<'_>| found.push(owned(output, &mut buffer));
        let end = with_context(|context| loop {
            let step = self
                .table
                .patiently(|| job.step(&mut Budget::unlimited(), context, &mut sink))?;
            if step != ScanStep::More {
                return Ok::<_, Error>(step);
            }
        })?;
        // A full page may have been the last one. The next call detects that.
        self.done = end == ScanStep::Done;
        Ok(found)
    }
}

/// Copies a result to a term of its own. The buffer is the same for all results of a call.
pub(super) fn owned(output: Output<'_>, buffer: &mut Vec<u8>) -> Term {
    match output {
        Output::Object(object) => tuple(object),
        Output::Term(term) => Term::from(term),
        Output::Built(term) => term.whole_term(buffer),
    }
}

/// The context of match specifications. There are no processes, so `{self}` returns `undefined`.
pub(super) fn with_context<R>(f: impl FnOnce(&Context<'_>) -> R) -> R {
    let nobody = Term::from(atoms::UNDEFINED);
    f(&Context {
        self_pid: nobody.as_ref(),
        node: atoms::NONODE,
    })
}

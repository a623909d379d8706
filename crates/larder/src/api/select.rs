//! Match specifications, and all that a table has.

use super::spec::MatchSpec;
use super::table::{tuple, Table};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::scan::{Output, ScanStep, SelectJob};
use larder_index::Direction;
use larder_matchspec::Context;
use larder_term::{atoms, Term, TermRef};
use std::ops::Bound;

impl Table {
    /// Every tuple, in key order for an ordered_set. No snapshot: what others do meanwhile may be
    /// seen or not.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn to_vec(&self) -> Result<Vec<Term>, Error> {
        self.all_rows(Direction::Forward)?.rest()
    }

    /// The results of a match specification for the tuples it matches. It is written as in Erlang,
    /// or a [`Spec`](super::Spec) with the values of its parameters.
    ///
    /// # Errors
    /// `BadSpec` with the reason, `NoTable`.
    pub fn select(&self, spec: impl MatchSpec) -> Result<Vec<Term>, Error> {
        self.rows(spec, Direction::Forward)?.rest()
    }

    /// As `select`, from the other end of an ordered_set.
    ///
    /// # Errors
    /// As `select`.
    pub fn select_reverse(&self, spec: impl MatchSpec) -> Result<Vec<Term>, Error> {
        self.rows(spec, Direction::Backward)?.rest()
    }

    /// As `select` and `select_reverse`, to be had in pieces. Nothing is looked for before it is
    /// asked for, and nothing is held in between: others write. A tuple that is there throughout is
    /// met once. `Backward` is for an ordered_set; others know one way.
    ///
    /// # Errors
    /// As `select`.
    pub fn rows(&self, spec: impl MatchSpec, direction: Direction) -> Result<Rows, Error> {
        let job = self
            .engine_table()
            .select(self.me(), spec.program()?, direction, None)?;
        Ok(Rows::new(self, job))
    }

    /// Every tuple, in pieces: as `rows`.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn all_rows(&self, direction: Direction) -> Result<Rows, Error> {
        let job = self.engine_table().each(self.me(), direction)?;
        Ok(Rows::new(self, job))
    }

    /// The tuples of an ordered_set whose keys lie between two bounds, in order, in pieces: as
    /// `rows`. None if the low bound is above the high one.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::Direction;
    /// use larder_term::term;
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
    /// `TableType` for a table that is no ordered_set, `NoTable`.
    ///
    /// # Complexity
    /// O(log n), and the tuples that are given.
    pub fn range(
        &self,
        low: Bound<TermRef<'_>>,
        high: Bound<TermRef<'_>>,
        direction: Direction,
    ) -> Result<Rows, Error> {
        let bounds = (
            low.map(|key| self.key(&key)),
            high.map(|key| self.key(&key)),
        );
        let job = self
            .engine_table()
            .each_between(self.me(), bounds, direction)?;
        Ok(Rows::new(self, job))
    }

    /// How many tuples the match specification gives `true` for.
    ///
    /// # Errors
    /// As `select`.
    pub fn select_count(&self, spec: impl MatchSpec) -> Result<u64, Error> {
        let mut job = self
            .engine_table()
            .select_count(self.me(), spec.program()?)?;
        self.until_done(|budget, ctx| job.step(budget, ctx))?;
        Ok(job.count())
    }

    /// Deletes the tuples that the match specification gives `true` for; how many.
    ///
    /// # Errors
    /// As `select`.
    pub fn select_delete(&self, spec: impl MatchSpec) -> Result<u64, Error> {
        let mut job = self
            .engine_table()
            .select_delete(self.me(), spec.program()?)?;
        self.until_done(|budget, ctx| job.step(budget, ctx))?;
        Ok(job.count())
    }

    /// Deletes the tuples that the match specification matches, and gives its results for them:
    /// what `select` would give. In key order for an ordered_set.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder_term::{term, Term};
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let jobs = Larder::new().table("jobs").ordered_set().create()?;
    /// jobs.insert_all(&[term!({1, done}), term!({2, open}), term!({3, done})])?;
    /// let done = jobs.select_take("[{{'$1',done},[],['$1']}]")?;
    /// assert_eq!(done, [Term::from(1), Term::from(3)]);
    /// assert_eq!(jobs.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As `select`. If the table is dropped meanwhile, what was taken before is lost.
    ///
    /// # Consistency
    /// Each tuple (in a bag, those of a key) is deleted and given by itself, atomically: of several
    /// takers one gets it. As a whole it is no snapshot.
    pub fn select_take(&self, spec: impl MatchSpec) -> Result<Vec<Term>, Error> {
        let mut job = self
            .engine_table()
            .select_take(self.me(), spec.program()?)?;
        let mut taken = Vec::new();
        self.until_done(|budget, ctx| job.step(budget, ctx, &mut |out| taken.push(owned(out))))?;
        Ok(taken)
    }

    /// Replaces the tuples that the match specification matches by its results, which have to keep
    /// the key; how many.
    ///
    /// # Errors
    /// As `select`; `KeyChanged` if the specification might change a key, `TableType` for a bag.
    pub fn select_replace(&self, spec: impl MatchSpec) -> Result<u64, Error> {
        let mut job = self
            .engine_table()
            .select_replace(self.me(), spec.program()?)?;
        self.until_done(|budget, ctx| job.step(budget, ctx))?;
        Ok(job.count())
    }

    fn until_done(
        &self,
        mut step: impl FnMut(&mut Budget, &Context<'_>) -> Result<Step, Error>,
    ) -> Result<(), Error> {
        with_context(|ctx| {
            while self.patiently(|| step(&mut Budget::unlimited(), ctx))? == Step::More {}
            Ok(())
        })
    }
}

/// What a scan finds, as it is asked for: [`Table::rows`].
pub struct Rows {
    table: Table,
    job: SelectJob,
    done: bool,
}

impl Rows {
    pub(super) fn new(table: &Table, job: SelectJob) -> Self {
        Rows {
            table: table.clone(),
            job,
            done: false,
        }
    }

    /// The next results, `most` or, at the end, fewer; none when there are no more.
    ///
    /// # Errors
    /// `NoTable`. What was found before the error is lost.
    ///
    /// # Complexity
    /// The tuples that are looked at, matching or not, until so many match.
    pub fn page(&mut self, most: usize) -> Result<Vec<Term>, Error> {
        self.collect(Some(most))
    }

    /// All results that are left.
    ///
    /// # Errors
    /// As `page`.
    pub fn rest(mut self) -> Result<Vec<Term>, Error> {
        self.collect(None)
    }

    /// The results that are left up to the limit that the scan has.
    pub(super) fn left(mut self) -> Result<Vec<Term>, Error> {
        self.go_on()
    }

    fn collect(&mut self, most: Option<usize>) -> Result<Vec<Term>, Error> {
        self.job.set_limit(most);
        self.go_on()
    }

    fn go_on(&mut self) -> Result<Vec<Term>, Error> {
        let mut found = Vec::new();
        if self.done {
            return Ok(found);
        }
        let job = &mut self.job;
        let mut sink = |output: Output<'_>| found.push(owned(output));
        let end = with_context(|ctx| loop {
            let step = self
                .table
                .patiently(|| job.step(&mut Budget::unlimited(), ctx, &mut sink))?;
            if step != ScanStep::More {
                return Ok::<_, Error>(step);
            }
        })?;
        // A page that is full may have been the last: the next one says so.
        self.done = end == ScanStep::Done;
        Ok(found)
    }
}

/// A result as a term that owns itself.
fn owned(output: Output<'_>) -> Term {
    match output {
        Output::Object(object) => tuple(object),
        Output::Term(term) => Term::from(term),
    }
}

/// There are no processes here: `{self}` gives `undefined`.
pub(super) fn with_context<R>(f: impl FnOnce(&Context<'_>) -> R) -> R {
    let nobody = Term::from(atoms::UNDEFINED);
    f(&Context {
        self_pid: nobody.as_ref(),
        node: atoms::NONODE,
    })
}

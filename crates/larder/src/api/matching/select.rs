//! Operations by match specification.

use super::spec::MatchSpec;
use crate::api::rows::{owned, with_context, Rows};
use crate::api::Table;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::programs::Context;
use larder_index::Direction;
use larder_term::Term;

impl Table {
    /// Returns the results of a match specification for the tuples that it matches. The
    /// specification is written as in Erlang, or is a [`Spec`](crate::Spec) with the values of its
    /// parameters.
    ///
    /// # Errors
    /// `BadSpec` with the reason, `NoTable`.
    ///
    /// # Complexity
    /// Linear in the tuples that are visited. These are all, unless the specification binds the
    /// key, limits the key of an ordered_set, or binds or limits the value of an index:
    /// `Table::explain` says which. A specification as text is compiled at each call.
    ///
    /// # Consistency
    /// A tuple that is in the table throughout is visited once. One that is written meanwhile may
    /// be visited in either state, or not at all. In a snapshot and in a transaction the results
    /// are those of one instant.
    pub fn select(&self, spec: impl MatchSpec) -> Result<Vec<Term>, Error> {
        self.rows(spec, Direction::Forward)?.rest()
    }

    /// Like `select`, but in descending key order for an ordered_set.
    ///
    /// # Errors
    /// As `select`.
    pub fn select_reverse(&self, spec: impl MatchSpec) -> Result<Vec<Term>, Error> {
        self.rows(spec, Direction::Backward)?.rest()
    }

    /// Like `select` and `select_reverse`, but returns the results in pieces. The scan advances
    /// only as results are asked for. It holds no lock in between, so other threads can write. A
    /// tuple that is in the table throughout is visited once. `Backward` is for an ordered_set;
    /// other tables have only one direction.
    ///
    /// # Errors
    /// As `select`.
    pub fn rows(&self, spec: impl MatchSpec, direction: Direction) -> Result<Rows, Error> {
        let job = self
            .engine_table()
            .select(self.me(), spec.program()?, direction, None)?;
        Ok(Rows::new(self, job))
    }

    /// Counts the tuples for which the match specification returns `true`. Complexity and
    /// consistency are those of `select`.
    ///
    /// # Errors
    /// As `select`.
    pub fn select_count(&self, spec: impl MatchSpec) -> Result<u64, Error> {
        let mut job = self
            .engine_table()
            .select_count(self.me(), spec.program()?)?;
        self.until_done(|budget, context| job.step(budget, context))?;
        Ok(job.count())
    }

    /// Deletes the tuples for which the match specification returns `true`. Returns their number.
    ///
    /// # Errors
    /// As `select`.
    ///
    /// # Complexity
    /// That of `select`, and of a deletion of each tuple.
    ///
    /// # Consistency
    /// Each tuple (in a bag, all tuples of a key) is deleted at one instant, and not all of them
    /// together.
    pub fn select_delete(&self, spec: impl MatchSpec) -> Result<u64, Error> {
        let mut job = self
            .engine_table()
            .select_delete(self.me(), spec.program()?)?;
        self.until_done(|budget, context| job.step(budget, context))?;
        Ok(job.count())
    }

    /// Deletes the tuples that the match specification matches, and returns its results for them,
    /// as `select` would. They are in key order for an ordered_set.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::{term, Term};
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
    /// Those of `select`. If the table is dropped meanwhile, the tuples that were taken before are
    /// lost.
    ///
    /// # Consistency
    /// Each tuple (in a bag, all tuples of a key) is deleted and returned atomically: of several
    /// takers, only one gets it. The operation as a whole isn't atomic.
    pub fn select_take(&self, spec: impl MatchSpec) -> Result<Vec<Term>, Error> {
        let mut job = self
            .engine_table()
            .select_take(self.me(), spec.program()?)?;
        let (mut taken, mut buffer) = (Vec::new(), Vec::new());
        // Results are copied, since the next step uses the job's memory again.
        self.until_done(|budget, context| {
            job.step(budget, context, &mut |out| {
                taken.push(owned(out, &mut buffer))
            })
        })?;
        Ok(taken)
    }

    /// Replaces the tuples that the match specification matches by its results, which must have the
    /// same keys. Returns their number.
    ///
    /// # Errors
    /// Those of `select`; `KeyChanged` if the specification might change a key, `TableType` for a
    /// bag. After `NotUnique` and `Full` the tuples before are replaced.
    ///
    /// # Complexity
    /// That of `select`, and of an insertion of each tuple.
    ///
    /// # Consistency
    /// Each tuple is replaced at one instant, and only if it is still the one that was matched.
    pub fn select_replace(&self, spec: impl MatchSpec) -> Result<u64, Error> {
        let mut job = self
            .engine_table()
            .select_replace(self.me(), spec.program()?)?;
        self.until_done(|budget, context| job.step(budget, context))?;
        Ok(job.count())
    }

    fn until_done(
        &self,
        mut step: impl FnMut(&mut Budget, &Context<'_>) -> Result<Step, Error>,
    ) -> Result<(), Error> {
        with_context(|context| {
            // A list that is being inserted is helped with, and then the job continues.
            while self.patiently(|| step(&mut Budget::unlimited(), context))? == Step::More {}
            Ok(())
        })
    }
}

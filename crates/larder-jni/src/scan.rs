//! Ranges, ranks and match specifications.

use crate::failure::Failure;
use crate::handles::Handle;
use crate::item::{shown, Item};
use larder::host::{Budget, Direction, Output, ScanStep, SelectJob};
use larder_matchspec::Context;
use larder_term::object::ObjectView;
use larder_term::{atoms, Term, TermRef};
use std::ops::Bound;

/// The two bounds of a range of index keys.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Makes a bound of a key, which is included in the range or not. Without a key the range is
/// unbounded.
pub(crate) fn bound(key: Option<Item<'_>>, is_included: bool) -> Bound<Vec<u8>> {
    match (key.map(Item::index_key), is_included) {
        (None, _) => Bound::Unbounded,
        (Some(key), true) => Bound::Included(key),
        (Some(key), false) => Bound::Excluded(key),
    }
}

/// Whether no key can be between the bounds.
fn is_empty(low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Included(high)) => low >= high,
        _ => false,
    }
}

impl Handle {
    /// Calls `visit` with at most `most` rows between two bounds, in order. Returns whether these
    /// are all of them.
    pub(crate) fn page(
        &self,
        bounds: Bounds,
        direction: Direction,
        most: usize,
        mut visit: impl FnMut(Item<'_>, Item<'_>),
    ) -> Result<bool, Failure> {
        let (low, high) = bounds;
        // No row is between such bounds, so the engine isn't called.
        if is_empty(&low, &high) {
            return Ok(true);
        }
        let mut job = self.patiently(|| {
            self.engine
                .each_between(self.owner, low.clone(), high.clone(), direction)
        })?;
        job.set_limit(Some(most));
        let mut failed = None;
        let step = self.run(&mut job, |row| match Item::row(row) {
            Ok((key, value)) => visit(key, value),
            // The scan can't be stopped by its callback. It continues to the end of its page, and
            // then fails.
            Err(failure) => failed = Some(failure),
        })?;
        match failed {
            Some(failure) => Err(failure),
            None => Ok(step == ScanStep::Done),
        }
    }

    /// Runs a job to its end or its limit.
    fn run(
        &self,
        job: &mut SelectJob,
        mut visit: impl FnMut(&ObjectView<'_>),
    ) -> Result<ScanStep, Failure> {
        let nobody = Term::from(atoms::UNDEFINED);
        let context = Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        };
        let mut sink = |output: Output<'_>| {
            if let Output::Object(object) = output {
                visit(object);
            }
        };
        // The budget is unlimited. Only a scheduler thread of the emulator needs a long job in
        // slices, and this is none.
        loop {
            let step =
                self.patiently(|| job.step(&mut Budget::unlimited(), &context, &mut sink))?;
            if step != ScanStep::More {
                return Ok(step);
            }
        }
    }

    /// The number of rows between two bounds.
    pub(crate) fn count(&self, bounds: Bounds) -> Result<u64, Failure> {
        let mut count = 0;
        self.page(bounds, Direction::Forward, usize::MAX, |_, _| count += 1)?;
        Ok(count)
    }

    /// The rank of a key's row, counted from 1.
    pub(crate) fn rank(&self, key: Item<'_>) -> Result<Option<u64>, Failure> {
        key.with_key(|key| self.patiently(|| self.engine.rank(self.owner, key)))
    }

    /// Calls `visit` with the n-th row: counted from the first row if `n` is positive, and from the
    /// last one if it is negative. Returns whether there is such a row.
    pub(crate) fn nth(
        &self,
        n: i64,
        mut visit: impl FnMut(Item<'_>, Item<'_>),
    ) -> Result<bool, Failure> {
        let (mut found, mut failed) = (false, None);
        self.patiently(|| {
            self.engine.nth(self.owner, n, &mut |row| {
                found = true;
                match Item::row(row) {
                    Ok((key, value)) => visit(key, value),
                    Err(failure) => failed = Some(failure),
                }
            })
        })?;
        failed.map_or(Ok(found), Err)
    }
}

/// The row that is the result of a match specification.
///
/// # Errors
/// `Argument` for anything else.
pub(crate) fn row_of(result: TermRef<'_>) -> Result<(Item<'_>, Item<'_>), Failure> {
    let pair = result.as_tuple().filter(|tuple| tuple.arity() == 2);
    match pair.and_then(|pair| Some((pair.get(0)?, pair.get(1)?))) {
        Some((key, value)) => Ok((result_of(key)?, result_of(value)?)),
        None => Err(Failure::Argument(format!(
            "the match specification must return rows, as by ['$_'], and returned {}",
            shown(result)
        ))),
    }
}

/// A key or a value of such a row.
fn result_of(term: TermRef<'_>) -> Result<Item<'_>, Failure> {
    Item::of(term).map_err(|_| {
        Failure::Argument(format!(
            "the match specification must return 64-bit integers and binaries, and returned {}",
            shown(term)
        ))
    })
}

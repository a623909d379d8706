//! Ranks: rank, nth, count_range, slice.
//!
//! 1. Check the right to read, and load the state word, as any read does.
//! 2. Ask the index how many objects are before the key, or which is the n-th. It may have to count
//!    leaves first. After [`LEAVES`] of them the call returns `Busy`: it has done a slice of the
//!    work, and the next call has less to do.
//!
//! Ranks are those in the order of the table's scans. Counting is work that the host may have to
//! report: [`Local::unreported`].

use super::begin::Operation;
use crate::buffers::{Buffers, ThreadBuffers};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::TableIndex;
use crate::local::{with_local, Local};
use crate::scan::SelectJob;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Batch, Direction, Guard, Ranked};
use larder_term::object::ObjectView;
use std::sync::Arc;

/// The maximum number of leaves that a call counts: some hundred microseconds.
const LEAVES: usize = 4096;
/// The number of leaves that are counted in the host's unit of work, half a microsecond.
const LEAVES_A_UNIT: usize = 4;

impl EngineTable {
    /// Runs `f` with the interface for rank queries.
    fn with_ranks<'g, R>(
        &self,
        local: &Local,
        guard: &'g Guard,
        f: impl FnOnce(&'g dyn Ranked, &mut usize) -> Option<R>,
    ) -> Result<R, Error> {
        self.with_ranks_of(local, &self.begin(guard)?, f)
    }

    /// Like `with_ranks`, in an operation that has begun.
    pub(super) fn with_ranks_of<'g, R>(
        &self,
        local: &Local,
        op: &Operation<'g>,
        f: impl FnOnce(&'g dyn Ranked, &mut usize) -> Option<R>,
    ) -> Result<R, Error> {
        let ranked = match &op.store.index {
            TableIndex::Unique(ix) => ix.ranked(),
            TableIndex::Multi(_) => None,
        };
        let mut left = LEAVES;
        // The index decreases `left` by the leaves that it has had to count.
        let answer = f(ranked.ok_or(Error::Unranked)?, &mut left);
        // The work is reported even if the call isn't finished, since the caller repeats it.
        let units = (LEAVES.saturating_sub(left) / LEAVES_A_UNIT) as u32;
        let told = &local.unreported;
        told.set(told.get().saturating_add(units));
        answer.ok_or(Error::Busy)
    }

    /// Returns the rank of the object under an index key, from 1, or `None` if there is none. O(log
    /// n), and O(1) for each leaf that has changed since the last query of a rank.
    ///
    /// # Errors
    /// `NoTable`, `Access`; `Unranked` if the table isn't an ordered_set, has bounds, or is on a
    /// structure of the studies; `Busy`, also while leaves are being counted: each call does a
    /// slice of that.
    ///
    /// # Consistency
    /// An object before it that is in the table throughout the call counts once. An object that is
    /// inserted or deleted meanwhile may count or not. In a snapshot the result is exact. So it is
    /// in a transaction's view, where all objects that are counted are added to the read set.
    pub fn rank(&self, who: OwnerId, key: &[u8]) -> Result<Option<u64>, Error> {
        with_local(|local| self.rank_in(local, who, key))
    }

    /// Like `rank`, for hosts.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn rank_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
    ) -> Result<Option<u64>, Error> {
        self.may_read(who)?;
        let guard = local.pin();
        // The entries below the key, and whether the key is there, from one search.
        let counted = self.with_ranks(local, &guard, |ranked, work| {
            ranked.count_between(&guard, None, Some(key), work)
        })?;
        Ok(counted.high_is_there.then_some(counted.entries + 1))
    }

    /// Counts the objects whose keys, as index keys, are at or above `low` and below `high`. See
    /// `rank`.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn count_range(&self, who: OwnerId, low: &[u8], high: &[u8]) -> Result<u64, Error> {
        with_local(|local| self.count_range_in(local, who, low, high))
    }

    /// Like `count_range`, for hosts.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn count_range_in(
        &self,
        local: &mut Local,
        who: impl Who,
        low: &[u8],
        high: &[u8],
    ) -> Result<u64, Error> {
        self.may_read(who)?;
        let guard = local.pin();
        // An empty range needs no search. `count_between` requires that the bounds are in order.
        self.with_ranks(local, &guard, |ranked, work| match low < high {
            true => {
                let counted = ranked.count_between(&guard, Some(low), Some(high), work)?;
                Some(counted.entries)
            }
            false => Some(0),
        })
    }

    /// Visits the n-th object: from 1 counted from the first, from -1 counted from the last.
    /// Returns `false` if there are fewer objects, and for 0. See `rank`.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn nth(
        &self,
        who: OwnerId,
        n: i64,
        visit: &mut dyn FnMut(&ObjectView<'_>),
    ) -> Result<bool, Error> {
        with_local(|local| self.nth_in(local, who, n, |stored| visit(&stored.view())))
    }

    /// Like `nth`, for hosts.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn nth_in(
        &self,
        local: &mut Local,
        who: impl Who,
        n: i64,
        visit: impl FnOnce(Stored<'_>),
    ) -> Result<bool, Error> {
        self.may_read(who)?;
        let guard = local.pin();
        let mut buffers = ThreadBuffers::new();
        let Buffers { batch, plain, .. } = &mut *buffers;
        batch.lend(|batch| {
            // The entry doesn't change while the epoch is pinned, so it is valid while it is shown.
            let there = self.find_nth(local, &guard, n, batch)?;
            if there {
                let (key, value) = batch.entry(0);
                visit(Stored::new(key, value, self.keypos(), plain));
            }
            Ok(there)
        })
    }

    /// Copies the n-th object to a batch.
    fn find_nth<'g>(
        &self,
        local: &Local,
        guard: &'g Guard,
        n: i64,
        batch: &mut Batch<'g>,
    ) -> Result<bool, Error> {
        // Numbers count from 1 at the front, and from −1 at the back.
        let direction = match n < 0 {
            true => Direction::Backward,
            false => Direction::Forward,
        };
        self.with_ranks(local, guard, |ranked, work| {
            // There is no object number 0.
            match n.unsigned_abs().checked_sub(1) {
                Some(n) => ranked.nth(guard, n, direction, work, batch),
                None => Some(false),
            }
        })
    }

    /// Begins a scan of at most `most` objects, from the n-th one, in the order of the table. `n`
    /// counts as in `nth`. The scan starts with the object that was the n-th when it began.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn slice(self: &Arc<Self>, who: OwnerId, n: i64, most: usize) -> Result<SelectJob, Error> {
        let mut job = self.each(who, Direction::Forward)?;
        job.set_limit(Some(most));
        let mut buffers = ThreadBuffers::new();
        let guard = larder_index::pin();
        let first = buffers.batch.lend(|batch| {
            let there = with_local(|local| self.find_nth(local, &guard, n, batch))?;
            Ok::<_, Error>(there.then(|| batch.key(0).to_vec()))
        })?;
        // From the key of that object on. An empty scan if there is none.
        match first {
            Some(key) => job.begin_at(key),
            None => job.set_limit(Some(0)),
        }
        Ok(job)
    }
}

//! How every operation begins, and how a write revalidates before it changes anything.
//!
//! ```text
//!  state word = pointer to the store │ DEAD │ LATCHED
//! ```
//!
//! 1. One load of the state word tells an operation all it needs: the store, whether the table
//!    lives, whether a list batch holds the latch. With neither bit set the operation begins.
//! 2. If the latch is held, an operation on one key settles its key with the batch (see `batch`)
//!    and begins beside it. Any other operation is `Busy`.
//! 3. A write loads the word again under the leaf's lock. A store that was replaced, a latch that
//!    was acquired and a table that died since (1) are all seen there, before anything is changed;
//!    then the write begins anew.

use crate::budget::Budget;
use crate::error::Error;
use crate::raw::Loaded;
use crate::store::Store;
use crate::table::{Table, DEAD};
use larder_index::sync::{planted, Fault};
use larder_index::{Guard, Key};
use std::sync::atomic::Ordering;

/// An operation under way: the table's store, as it was when the operation began.
pub(crate) struct Operation<'g> {
    pub(crate) guard: &'g Guard,
    /// The state word that it began with.
    pub(crate) state: Loaded<'g, Store>,
    pub(crate) store: &'g Store,
    pub(crate) admission: Admission,
}

/// What let an operation begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admission(u64);

impl Admission {
    /// Nobody held the latch.
    pub(crate) const UNLATCHED: Admission = Admission(0);
    /// It belongs to the batch that holds the latch.
    pub(crate) const BATCH: Admission = Admission(u64::MAX);
    /// It is a write of a commit that was decided, and holds the key's lock. If the table is
    /// emptied or deleted meanwhile, or a batch begins, that comes after the commit.
    pub(crate) const COMMIT: Admission = Admission(u64::MAX - 1);

    /// The latch is held, and the operation's key is settled with the batch that holds it: the one
    /// with this number, in the order in which batches have acquired the latch.
    pub(crate) fn settled(turns: u64) -> Admission {
        debug_assert!(turns > 0);
        Admission(turns)
    }
}

impl Operation<'_> {
    /// Whether there is no room to put a value in the place of `old`. A list and a commit have
    /// asked beforehand whether there is room for all that they write, so nothing is refused here.
    #[cold]
    pub(super) fn refuses(&self, key: Key<'_>, old: Option<&[u8]>, new: &[u8]) -> bool {
        let asked = matches!(self.admission, Admission::BATCH | Admission::COMMIT);
        !(asked && self.store.quota().is_some())
            && self.store.refuses(self.store.need(key, old, new))
    }
}

/// What an operation on one key is about to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    Read,
    Write,
}

/// Orders the loads that follow after the taking of the leaf's lock. Threads that acquire the batch
/// latch, or fix a table, do the reverse: they change the state word (or a flag), then read leaves.
/// So either this thread sees their change, or they see this thread's lock and wait for it.
#[inline]
pub(crate) fn after_lock() {
    // Ordering: the lock is taken by a locked read-modify-write, which on x86-64 is a full barrier
    // already; elsewhere a fence makes it one. Pairs with the `SeqCst` change of the state word (or
    // the fixation's flag) that comes before the other side's reading of leaves.
    #[cfg(target_arch = "x86_64")]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

impl Table {
    /// Begins an operation: the store as it is now.
    ///
    /// # Errors
    /// `NoTable` when the table is dead, `Busy` when its batch latch is held.
    #[inline(always)]
    pub(crate) fn begin<'g>(&self, guard: &'g Guard) -> Result<Operation<'g>, Error> {
        self.begin_unlatched(guard)
            .ok_or_else(|| self.why_refused(guard))
    }

    /// As `begin`, for an operation on one key, which may go on beside a list that is being
    /// inserted.
    ///
    /// # Errors
    /// As `begin`.
    #[inline(always)]
    pub(crate) fn begin_on<'g>(
        &self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<Operation<'g>, Error> {
        match self.begin_unlatched(guard) {
            Some(op) => Ok(op),
            None => self.begin_beside_batch(guard, key, intent),
        }
    }

    /// As `begin`; None if it can't.
    #[inline(always)]
    fn begin_unlatched<'g>(&self, guard: &'g Guard) -> Option<Operation<'g>> {
        let state = self.state.load(guard);
        // Neither bit is set: the table lives, and no batch holds the latch.
        let store = state.get().filter(|_| state.tag() == 0)?;
        Some(Operation {
            guard,
            state,
            store,
            admission: Admission::UNLATCHED,
        })
    }

    /// Why an operation can't begin.
    #[cold]
    fn why_refused(&self, guard: &Guard) -> Error {
        let state = self.state.load(guard);
        match state.get() {
            // The latch may be free again by now: the operation begins anew.
            Some(_) if state.tag() & DEAD == 0 => Error::Busy,
            _ => Error::NoTable,
        }
    }

    /// Begins a step of the batch that holds the latch.
    pub(crate) fn begin_of_batch<'g>(&self, guard: &'g Guard) -> Result<Operation<'g>, Error> {
        let state = self.state.load(guard);
        match state.get() {
            Some(store) if state.tag() & DEAD == 0 => Ok(Operation {
                guard,
                state,
                store,
                admission: Admission::BATCH,
            }),
            _ => Err(Error::NoTable),
        }
    }

    /// Whether a write may go on: the table is as it was when the operation began. Called under the
    /// leaf's lock. Also notes the change in the table's change stamp, for threads that have read
    /// ahead.
    #[inline]
    pub(crate) fn revalidate(&self, op: &Operation<'_>) -> bool {
        // The lock was taken before the loads below. A thread that acquires the latch, fixes the
        // table or arms the stamp after them reads this leaf after the change.
        after_lock();
        self.changes.note();
        if op.admission != Admission::UNLATCHED {
            return self.revalidate_beside_batch(op);
        }
        // The same word: the same store, alive, the latch free.
        self.state.holds(op.state, op.guard) || planted(Fault::NotRevalidated)
    }

    /// `revalidate` while the latch is held.
    #[cold]
    fn revalidate_beside_batch(&self, op: &Operation<'_>) -> bool {
        // The same word and the same acquisition: the batch with which the key was settled. For
        // another batch it is not settled.
        matches!(op.admission, Admission::BATCH | Admission::COMMIT)
            || (self.state.holds(op.state, op.guard)
                && op.admission == Admission::settled(self.latch.turns()))
    }

    /// As `size`, at a moment when no list is half inserted and the table is not being emptied.
    ///
    /// # Errors
    /// `NoTable`; `Busy`, also while the objects of a snapshot are being counted: each call does a
    /// slice of that.
    pub fn settled_size(&self) -> Result<usize, Error> {
        let guard = larder_index::pin();
        // The state word alone doesn't tell that the latch was held and is free again.
        let turns = self.latch.turns();
        let op = self.begin(&guard)?;
        let Some(size) = self.size_of(op.store, &mut Budget::scan()) else {
            return Err(Error::Busy);
        };
        // Ordering: the counts come before what follows.
        std::sync::atomic::fence(Ordering::Acquire);
        if self.latch.turns() == turns && self.state.holds(op.state, &guard) {
            Ok(size)
        } else {
            Err(Error::Busy)
        }
    }
}

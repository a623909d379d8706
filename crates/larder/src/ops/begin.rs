//! The beginning of every operation, and the revalidation of a write before it changes anything.
//!
//! ```text
//!  state word = pointer to the store │ DEAD │ LATCHED
//! ```
//!
//! 1. One load of the state word tells an operation all it needs: the store, whether the table is
//!    alive, and whether a list batch holds the latch. If neither bit is set, the operation begins.
//! 2. If the latch is held, an operation on one key settles its key with the batch (see `batch`)
//!    and begins while the batch goes on. Any other operation returns `Busy`.
//! 3. A write loads the word again under the leaf's lock, before it changes anything. If the store
//!    was replaced, the latch acquired or the table deleted since (1), the write restarts from (1).

use crate::budget::Budget;
use crate::change_stamp::WalkStamp;
use crate::error::Error;
use crate::raw::Loaded;
use crate::store::Store;
use crate::table::{EngineTable, DEAD};
use larder_index::sync::{planted, Fault};
use larder_index::{Guard, Key};
use larder_term::Atom;
use std::sync::atomic::Ordering;

/// An operation in progress: the table's store, as it was when the operation began.
pub(crate) struct Operation<'g> {
    pub(crate) guard: &'g Guard,
    /// The state word that (1) has loaded.
    pub(crate) state: Loaded<'g, Store>,
    pub(crate) store: &'g Store,
    pub(crate) admission: Admission,
    /// The stamp of a walk of this thread that the operation's change doesn't concern, if the
    /// operation is of such a kind (`EngineTable::writing_beside_walks`).
    pub(crate) walk: Option<&'g WalkStamp>,
}

/// How an operation may begin. One word, so that it is compared in a register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admission(u64);

impl Admission {
    /// Nobody held the latch.
    const UNLATCHED: Admission = Admission(0);
    /// The operation belongs to the batch that holds the latch.
    pub(crate) const BATCH: Admission = Admission(u64::MAX);
    /// The operation is a write of a commit that has been validated and holds the key's lock. If
    /// the table is emptied or deleted meanwhile, or a batch begins, that comes after the commit.
    pub(crate) const COMMIT: Admission = Admission(u64::MAX - 1);

    /// The latch is held, and the operation's key has been settled with the batch that holds it.
    /// `transitions` is the count of the latch's transitions when that batch had acquired it.
    pub(crate) fn settled(transitions: u64) -> Admission {
        debug_assert!(transitions > 0);
        Admission(transitions)
    }
}

impl Operation<'_> {
    /// Records that the key was absent, so that its insertion concerns every walk.
    #[inline]
    pub(super) fn inserts(&self) {
        if let Some(walk) = self.walk {
            walk.set(None);
        }
    }

    /// Whether there is no room to replace `old` by `new`. In a table with a quota, lists and
    /// commits have reserved their room beforehand. A structure's own limit is checked for them,
    /// too.
    #[inline]
    pub(super) fn refuses(&self, key: Key<'_>, old: Option<&[u8]>, new: &[u8]) -> bool {
        // A table that evicts refuses nothing. Most tables with a quota do.
        let quota = self.store.quota();
        if quota.is_some_and(|quota| !quota.refuses_when_full()) {
            return false;
        }
        let was_checked = matches!(self.admission, Admission::BATCH | Admission::COMMIT);
        !(was_checked && quota.is_some())
            && self.store.refuses(self.store.need(key, old, Some(new)))
    }

    /// Gives up the unique index of this name if it is being built. Returns `true` if the index no
    /// longer refuses the write.
    pub(crate) fn give_up(&self, index: Atom) -> bool {
        let indexes = self.store.layers().indexes.as_ref();
        indexes.is_some_and(|indexes| indexes.give_up(index))
    }
}

/// What an operation on one key is about to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    Read,
    Write,
}

/// Orders the following loads after the acquisition of the leaf's lock, or of the batch latch.
///
/// A thread that acquires the batch latch or fixes a table does the reverse: it changes the state
/// word (or a flag), and then reads leaves. So either this thread sees that change, or the other
/// thread sees this thread's lock and waits for it.
#[inline]
pub(crate) fn fence_after_lock() {
    // Ordering: either is acquired by a locked read-modify-write, which on x86-64 is a full barrier
    // already; elsewhere a fence makes it one. Pairs with the `SeqCst` change of the state word (or
    // the fixation's flag) that comes before the other side's reading of leaves.
    #[cfg(target_arch = "x86_64")]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

impl EngineTable {
    /// Begins an operation on the current store.
    ///
    /// # Errors
    /// `NoTable` when the table is dead, `Busy` when its batch latch is held.
    #[inline]
    pub(crate) fn begin<'g>(&self, guard: &'g Guard) -> Result<Operation<'g>, Error> {
        self.begin_unlatched(guard)
            .ok_or_else(|| self.begin_error(guard))
    }

    /// Begins an operation on one key, which may run while a list is being inserted.
    ///
    /// # Errors
    /// Those of `begin`.
    #[inline]
    pub(crate) fn begin_on<'g>(
        &self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<Operation<'g>, Error> {
        // The usual case is one load and one comparison.
        match self.begin_unlatched(guard) {
            Some(op) => Ok(op),
            None => self.begin_beside_batch(guard, key, intent),
        }
    }

    /// Begins an operation, if the table is alive and nobody holds the batch latch.
    #[inline]
    fn begin_unlatched<'g>(&self, guard: &'g Guard) -> Option<Operation<'g>> {
        let state = self.state.load(guard);
        // If neither bit is set, the table is alive, and no batch holds the latch.
        let store = state.get().filter(|_| state.tag() == 0)?;
        Some(Operation {
            guard,
            state,
            store,
            admission: Admission::UNLATCHED,
            walk: None,
        })
    }

    /// The error of an operation that couldn't begin.
    #[cold]
    fn begin_error(&self, guard: &Guard) -> Error {
        let state = self.state.load(guard);
        match state.get() {
            // The latch may have been released by now. Then the caller's retry succeeds.
            Some(_) if state.tag() & DEAD == 0 => Error::Busy,
            _ => Error::NoTable,
        }
    }

    /// Begins a step of the batch that holds the latch.
    pub(crate) fn begin_of_batch<'g>(&self, guard: &'g Guard) -> Result<Operation<'g>, Error> {
        let state = self.state.load(guard);
        match state.get() {
            // The latch is the batch's own. Only the death of the table stops it.
            Some(store) if state.tag() & DEAD == 0 => Ok(Operation {
                guard,
                state,
                store,
                admission: Admission::BATCH,
                walk: None,
            }),
            _ => Err(Error::NoTable),
        }
    }

    /// Step 3: whether a write may make its change, because the state word is the same as when the
    /// operation began. Called under the leaf's lock. Also counts the change in the table's change
    /// stamp, for threads that have read ahead.
    #[inline]
    pub(crate) fn revalidate(&self, op: &Operation<'_>) -> bool {
        // The lock was acquired before the loads below. If another thread acquires the latch, fixes
        // the table or arms the stamp after these loads, it waits for our lock before it reads this
        // leaf, and sees the change.
        fence_after_lock();
        self.changes.note_beside(op.walk);
        if op.admission != Admission::UNLATCHED {
            return self.revalidate_beside_batch(op);
        }
        // An equal word means the same store, alive, with the latch free. It can't be another store
        // at the same address, since the guard has been pinned throughout. If a batch has acquired
        // and released the latch since (1), this write comes after the batch.
        self.state.holds(op.state, op.guard) || planted(Fault::NotRevalidated)
    }

    /// `revalidate` while the latch is held.
    #[cold]
    fn revalidate_beside_batch(&self, op: &Operation<'_>) -> bool {
        // The key was settled with one batch. If another one has acquired the latch since, the key
        // isn't settled with that one.
        matches!(op.admission, Admission::BATCH | Admission::COMMIT)
            || (self.state.holds(op.state, op.guard)
                && op.admission == Admission::settled(self.latch.transitions()))
    }

    /// The number of objects at a moment when no list is partly inserted and the table isn't being
    /// emptied.
    ///
    /// # Errors
    /// `NoTable`; `Busy`, also while the objects of a snapshot are being counted: each call does a
    /// slice of that.
    pub fn exact_size(&self) -> Result<usize, Error> {
        let guard = larder_index::pin();
        // A batch may come and go during the count, and leave the same state word. So compare the
        // number of transitions of the latch, too.
        let transitions = self.latch.transitions();
        let op = self.begin(&guard)?;
        let Some(size) = self.size_of(op.store, &mut Budget::scan()) else {
            return Err(Error::Busy);
        };
        // Ordering: Acquire, the counts are loaded before what follows.
        std::sync::atomic::fence(Ordering::Acquire);
        if self.latch.transitions() == transitions && self.state.holds(op.state, &guard) {
            Ok(size)
        } else {
            Err(Error::Busy)
        }
    }
}

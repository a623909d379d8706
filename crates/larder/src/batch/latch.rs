//! The protocol of the batch latch: acquire it, begin an operation while a batch holds it, help the
//! batch, release it. Numbers in brackets are the steps of the module [`batch`](super).

use super::ListBatch;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ops::{fence_after_lock, Admission, Intent, Operation};
use crate::store::Store;
use crate::table::{EngineTable, DEAD, LATCHED};
use larder_index::Guard;
use std::sync::Arc;

impl EngineTable {
    /// (lb1) Acquires the latch for the batch. `Busy` if another batch holds it.
    // The guard was pinned before the slot is locked, since a pin may run deferred calls.
    pub(super) fn acquire_latch(&self, batch: &Arc<ListBatch>, guard: &Guard) -> Result<(), Error> {
        let mut slot = self.latch.slot.lock();
        if slot.is_some() {
            return Err(Error::Busy);
        }
        loop {
            let state = self.state.load(guard);
            if state.tag() & DEAD != 0 {
                return Err(Error::NoTable);
            }
            // Increment the count before the bit is set. A write that has settled its key with an
            // earlier batch then finds another count when it revalidates. If the exchange below
            // fails, the count is incremented again, which does no harm.
            self.latch.count_transition();
            if self.state.set_tag_if(state, LATCHED, guard) {
                *slot = Some(Arc::clone(batch));
                // From here on every write that revalidates sees the bit. A write that has
                // revalidated before holds the lock of its leaf, and we wait for it there. The
                // fence comes after the state word's change, and before any look at a leaf (see
                // the module).
                fence_after_lock();
                return Ok(());
            }
            // `delete_all_objects` has replaced the store meanwhile, or the table was deleted.
        }
    }

    /// (lb4) Releases the latch if the batch still holds it.
    // As for `acquire_latch`, the guard comes first.
    pub(super) fn release_latch(&self, batch: &Arc<ListBatch>, guard: &Guard) {
        let mut slot = self.latch.slot.lock();
        // Several threads may find that the batch is over. The first of them releases the latch.
        if slot.as_ref().is_some_and(|held| Arc::ptr_eq(held, batch)) {
            // End the batch in the feed before another batch can begin.
            let feed = self.feed.get();
            let ended = feed.map(|feed| (feed, feed.end_list()));
            // Slot and bit both change under the slot's lock, so under this lock they agree.
            *slot = None;
            self.latch.count_transition();
            self.state.clear_tag(LATCHED, guard);
            drop(slot);
            if let Some((feed, deferred)) = ended {
                feed.wake_followers(deferred);
            }
            // The last snapshot or follower may have ended while the latch was held. The table
            // could not go back to its plain store then (`WatchedTable::unwatch`).
            if let Some(history) = self.store(guard).and_then(Store::history) {
                history.unwatch_if_idle(guard);
            }
        }
    }

    /// Begins an operation on one key while a batch holds the latch.
    ///
    /// # Errors
    /// `NoTable`; `Busy` when the operation has to wait for the batch.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_beside_batch<'g>(
        &self,
        guard: &'g Guard,
        key: &[u8],
        intent: Intent,
    ) -> Result<Operation<'g>, Error> {
        let slot = self.latch.slot.lock();
        let Some(batch) = slot.clone() else {
            // The latch was released since the state word was loaded.
            drop(slot);
            return self.begin(guard);
        };
        // Load the state word and the count, which a write revalidates. While the slot is locked,
        // the latch is neither released nor acquired, so both belong to this batch.
        let state = self.state.load(guard);
        let admission = Admission::settled(self.latch.transitions());
        drop(slot);
        let Some(store) = state.get().filter(|_| state.tag() & DEAD == 0) else {
            return Err(Error::NoTable);
        };
        // Settle the key. The slot is unlocked, so the batch may end meanwhile, and another one may
        // begin. In that case a write finds another count when it revalidates, and a read comes
        // before the other batch.
        if !batch.settle(self, guard, key, intent)? {
            return Err(Error::Busy);
        }
        Ok(Operation {
            guard,
            state,
            store,
            admission,
            walk: None,
        })
    }

    /// (lb3) Runs one slice of the batch that holds the latch, if there is one. Returns `Done` if
    /// the latch is free or the table is dropped.
    pub fn help_batch(&self, budget: &mut Budget) -> Step {
        let Some(batch) = self.latch.slot.lock().clone() else {
            return Step::Done;
        };
        // The slot isn't locked while objects are inserted, so other operations can find the batch
        // and settle their keys with it.
        let guard = larder_index::pin();
        match batch.work(self, &guard, budget) {
            Ok(Step::More) => Step::More,
            // The batch is over, or the table was deleted.
            Ok(Step::Done) | Err(_) => {
                self.release_latch(&batch, &guard);
                Step::Done
            }
        }
    }

    /// Helps until the latch is free. Only for threads that may block.
    pub(crate) fn wait_for_batch(&self) {
        while self.help_batch(&mut Budget::slice()) == Step::More {}
    }
}

//! The protocol of the batch latch, as a table runs it: acquire, begin beside a batch, help,
//! release. Numbers in brackets are the steps of the module [`batch`](super).

use super::ListBatch;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ops::{Admission, Intent, Operation};
use crate::table::{Table, DEAD, LATCHED};
use larder_index::sync::atomic::Ordering;
use larder_index::Guard;
use std::sync::Arc;

impl Table {
    /// (1) Acquires the latch for the batch; `Busy` if another holds it.
    pub(super) fn acquire_latch(&self, batch: &Arc<ListBatch>) -> Result<(), Error> {
        // Pinned before the lock is taken, as a pin may run what others deferred.
        let guard = larder_index::pin();
        let mut slot = self.latch.slot.lock();
        if slot.is_some() {
            return Err(Error::Busy);
        }
        loop {
            let state = self.state.load(&guard);
            if state.tag() & DEAD != 0 {
                return Err(Error::NoTable);
            }
            // Counted before the bit is set: a write that settled its key with an earlier batch
            // finds another count when it revalidates. A count too many does no harm.
            self.latch.count_turn();
            if self.state.set_tag_if(state, LATCHED, &guard) {
                *slot = Some(Arc::clone(batch));
                // From here on every write that revalidates sees the bit, and whatever write did
                // not see it has its leaf locked already.
                // Ordering: after the state word's change and before any look at a leaf (see the
                // module).
                std::sync::atomic::fence(Ordering::SeqCst);
                return Ok(());
            }
            // `delete_all_objects` replaced the store meanwhile, or the table died.
        }
    }

    /// (4) Releases the latch if the batch still holds it.
    pub(super) fn release_latch(&self, batch: &Arc<ListBatch>) {
        let guard = larder_index::pin();
        let mut slot = self.latch.slot.lock();
        // Several may find the batch over; the first of them releases it.
        if slot.as_ref().is_some_and(|held| Arc::ptr_eq(held, batch)) {
            // Before another batch can begin.
            let feed = self.feed.get();
            let ended = feed.map(|feed| (feed, feed.end_list()));
            // Slot and bit change under the slot's lock, so they agree for whoever has it.
            *slot = None;
            self.latch.count_turn();
            self.state.clear_tag(LATCHED, &guard);
            drop(slot);
            if let Some((feed, aftermath)) = ended {
                feed.settle(aftermath);
            }
        }
    }

    /// Begins an operation on one key beside the batch that holds the latch.
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
            // Released since the state word was loaded.
            drop(slot);
            return self.begin(guard);
        };
        // While the slot is locked the batch keeps the latch, and no other one acquires it: the
        // word and the count belong to this batch. Both are what a write revalidates.
        let state = self.state.load(guard);
        let admission = Admission::settled(self.latch.turns());
        drop(slot);
        let Some(store) = state.get().filter(|_| state.tag() & DEAD == 0) else {
            return Err(Error::NoTable);
        };
        // The slot is unlocked: the batch may end here, and another may begin. Then a write finds
        // another count when it revalidates, and a read is of before that batch.
        if !batch.settle(self, guard, key, intent)? {
            return Err(Error::Busy);
        }
        Ok(Operation {
            guard,
            state,
            store,
            admission,
        })
    }

    /// (3) Does one slice of the batch that holds the latch, if one does. `Done` when the latch is
    /// free, or the table gone.
    pub fn help_batch(&self, budget: &mut Budget) -> Step {
        let Some(batch) = self.latch.slot.lock().clone() else {
            return Step::Done;
        };
        // The slot is not locked while objects are inserted: others find the batch there, and
        // settle their keys with it.
        match batch.work(self, budget) {
            Ok(Step::More) => Step::More,
            // A dead table needs no help: whoever asks it something learns that it is dead.
            Ok(Step::Done) | Err(_) => {
                self.release_latch(&batch);
                Step::Done
            }
        }
    }

    /// Helps until the latch is free. For threads that may wait.
    pub(crate) fn wait_for_batch(&self) {
        while self.help_batch(&mut Budget::slice()) == Step::More {}
    }
}

//! Deleting the objects under a key, one object, or all objects.
//!
//! Linearisation points: the store with which the index unlocks the leaf; for `delete_all_objects`,
//! the exchange of the state word.

use super::begin::Intent;
use super::change::ValueList;
use super::Operation;
use crate::buffers::{Buffers, ThreadBuffers};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::TableIndex;
use crate::local::{with_local, Local};
use crate::raw::Retired;
use crate::reclaim::reaper;
use crate::resume_point::ResumePoint;
use crate::store::Store;
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Batch, Direction, Guard, HeldFlushes, Key, Previous, Start};
use larder_term::object::{ObjectBuf, ObjectRef};

impl EngineTable {
    /// Deletes the objects under the index key. Returns their number.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete(&self, who: OwnerId, key: &[u8]) -> Result<usize, Error> {
        with_local(|local| self.delete_in(local, who, key))
    }

    /// Like `delete`, for hosts.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline]
    pub fn delete_in(&self, local: &mut Local, who: impl Who, key: &[u8]) -> Result<usize, Error> {
        self.may_write(who)?;
        self.delete_all_under(&local.pin(), self.key(key), |_| ())
    }

    /// Deletes the object that is identical (`=:=`) to this one; in a duplicate_bag, all of its
    /// copies. Returns the number of deleted objects.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete_object(&self, who: OwnerId, object: &ObjectBuf) -> Result<usize, Error> {
        with_local(|local| self.delete_object_in(local, who, object.borrow()))
    }

    /// Like `delete_object`, for hosts.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete_object_in(
        &self,
        local: &mut Local,
        who: impl Who,
        object: ObjectRef<'_>,
    ) -> Result<usize, Error> {
        self.may_write(who)?;
        let (key, value) = (object.key(), object.value());
        // Equality of stored bytes isn't equality of terms, so the table compares.
        let mut same = |other: &[u8]| self.same(key, other, value);
        self.delete_under(&local.pin(), self.key(key), &mut same, |values, same| {
            values.remove_same(value, same)
        })
    }

    /// Whether `may_be` returns `true` for an object under the index key. It gets copies, without a
    /// lock. `true` if the key has too many objects to look at each. If not, a deletion may omit
    /// encoding the object that it would look for.
    ///
    /// Linearisation point: that of a lookup.
    ///
    /// # Errors
    /// Those of `delete_object`.
    pub fn may_have_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        mut may_be: impl FnMut(Stored<'_>) -> bool,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let guard = local.pin();
        let op = self.begin_on(&guard, key, Intent::Read)?;
        let (key, keypos) = (self.key(key), self.keypos());
        // A bounded table would record a look-up, and this is none.
        if let (TableIndex::Unique(ix), Some(_)) = (&op.store.index, op.store.bounded()) {
            let Local { value, plain, .. } = local;
            // Copy the value as a scan does.
            value.clear();
            let is_there = ix.get_in_scan(&guard, key, value);
            return Ok(is_there && may_be(Stored::new(key.bytes, value, keypos, plain)));
        }
        // One object at most: an ordinary lookup.
        let TableIndex::Multi(ix) = &op.store.index else {
            let mut any = false;
            self.visit_in(local, &op, key, |stored| any = may_be(stored));
            return Ok(any);
        };
        // In a bag, look at the objects as of one instant, if they are few. Otherwise the batch is
        // empty, and the answer is that there may be one.
        let mut buffers = ThreadBuffers::new();
        let Buffers { batch, plain, .. } = &mut *buffers;
        Ok(batch.lend(|batch| {
            let is_few = ix.scan_key(&guard, key, batch);
            let mut values = (0..batch.len()).map(|i| batch.value(i));
            !is_few || values.any(|value| may_be(Stored::new(key.bytes, value, keypos, plain)))
        }))
    }

    /// Deletes the objects under a key for which `goes` returns `true`, all at one instant. Returns
    /// their number.
    pub(crate) fn delete_where(
        &self,
        guard: &Guard,
        key: &[u8],
        mut goes: impl FnMut(&[u8]) -> bool,
    ) -> Result<usize, Error> {
        self.delete_under(guard, self.key(key), &mut goes, |values, goes| {
            values.remove_if(goes)
        })
    }

    /// Deletes the objects under a key, all at one instant, and calls `f` with each. Returns their
    /// number.
    #[inline]
    pub(super) fn delete_all_under(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut f: impl FnMut(&[u8]),
    ) -> Result<usize, Error> {
        // `delete_under` picks by a predicate. This one picks every object, and shows it on the
        // way.
        let mut each = |value: &[u8]| {
            f(value);
            true
        };
        self.delete_under(guard, key, &mut each, |values, each| {
            values.remove_all(|value| {
                each(value);
            })
        })
    }

    /// Deletes objects under a key, all at one instant; how many. Of a set or ordered_set the one
    /// that `goes` picks; of a bag, `remove` removes those that it picks.
    #[inline]
    fn delete_under<P: FnMut(&[u8]) -> bool>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        goes: &mut P,
        remove: impl Fn(&mut ValueList<'_>, &mut P) -> usize,
    ) -> Result<usize, Error> {
        self.writing_under(guard, key.bytes, |op| {
            // Each attempt sets this again. An attempt that has to be repeated has removed nothing.
            let mut removed = 0;
            let written = match &op.store.index {
                TableIndex::Unique(ix) => {
                    let (written, was) = self.remove_one(op, &**ix, key, &mut *goes);
                    removed = usize::from(was == Previous::Present);
                    written
                }
                TableIndex::Multi(ix) => self.change_present(op, &**ix, key, |values| {
                    // The callback runs under the entry's lock, so all objects go at one instant.
                    removed = remove(values, goes);
                    Ok(())
                })?,
            };
            Ok((written, removed))
        })
    }

    /// Empties a transaction's view, key by key. Returns the number of deleted objects.
    fn delete_each(&self, guard: &Guard) -> Result<usize, Error> {
        let (mut batch, mut resume, mut removed) = (Batch::default(), ResumePoint::Begin, 0);
        while resume != ResumePoint::End {
            let op = self.begin(guard)?;
            let (index, forward) = (&op.store.index, Direction::Forward);
            let start = resume.start(Start::Edge, forward);
            index.scan(guard, start, forward, &mut batch);
            for i in 0..batch.len() {
                removed += self.delete_all_under(guard, self.key(batch.key(i)), |_| ())?;
            }
            // What another thread inserts where the scan has passed stays, as if it came after the
            // deletion.
            resume.move_past(&mut batch);
        }
        Ok(removed)
    }

    /// Empties the table. Returns the number of deleted objects, which is exact if no other thread
    /// was writing. O(1): an empty index replaces the old one, which is freed in the background. No
    /// operation sees only a part of the objects deleted.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete_all_objects(&self, who: OwnerId) -> Result<usize, Error> {
        self.may_write(who)?;
        // Pin for the whole operation: the old store is read once more after it was replaced.
        let guard = larder_index::pin();
        if self.view.is_some() {
            return self.delete_each(&guard);
        }
        loop {
            let op = self.begin(&guard)?;
            let fresh = op.store.emptied(&self.options, &self.seed)?;
            // The swap may drop events under a lock. No destructor of a host runs there.
            let _held = HeldFlushes::begin(&guard);
            // No write to the old store records this. What was read ahead isn't current from the
            // swap on, so it isn't used from here on.
            let replacing = self.changes.replacing();
            let swap = || self.swap_store(&op, fresh);
            // While the table is fixed the old index is kept, because all of its keys are deleted
            // keys. The `next` of an ordered_set accepts any key, and doesn't need it.
            let swapped = if self.kind().is_ordered() {
                swap()
            } else {
                self.fixation.swapping(swap)
            };
            drop(replacing);
            let Ok(old) = swapped else {
                continue;
            };
            // The fresh index doesn't know yet whether the table is fixed.
            if self.fixation.is_fixed() {
                self.pass_fixation_to_index(&self.admin.lock());
            }
            // Exact, unless a write that revalidated before the swap is not counted yet.
            let removed = op.store.count().get();
            if let Some(old) = old {
                reaper::free(old, &guard);
            }
            return Ok(removed);
        }
    }

    /// Replaces the operation's store by an empty one, and returns the old one. Fails if the table
    /// has another store, or a batch holds its latch.
    ///
    /// The linearisation point, if the word is still the one that was loaded: writes that began
    /// before, and have not revalidated yet, begin anew in the fresh store.
    fn swap_store(&self, op: &Operation<'_>, fresh: Store) -> Result<Option<Retired<Store>>, ()> {
        let put = |store| self.state.replace(op.state, store, op.guard).map_err(drop);
        match op.store.history() {
            None => put(fresh),
            // Somebody may need versions or events of the fresh store, too.
            Some(history) => {
                let locks = op.store.layers().locks;
                history.swap_store(fresh.base(), locks, |history| {
                    put(fresh.watched_by(history, locks))
                })
            }
        }
    }
}

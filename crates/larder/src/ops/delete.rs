//! Deleting: what is under a key, one object, all objects.
//!
//! Linearisation points: the store with which the index unlocks the leaf; for `delete_all_objects`,
//! the exchange of the state word.

use super::begin::Operation;
use super::commit::Written;
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::Index;
use crate::local::{with_local, Local};
use crate::reclaim::reaper;
use crate::store::Store;
use crate::table::Table;
use larder_index::{Guard, Key, Previous};
use larder_term::object::{ObjectBuf, ObjectRef};

impl Table {
    /// Deletes what is under the index key; how many objects went.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete(&self, who: OwnerId, key: &[u8]) -> Result<usize, Error> {
        with_local(|local| self.delete_in(local, who, key))
    }

    /// As `delete`, for hosts.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline]
    pub fn delete_in(&self, local: &mut Local, who: impl Who, key: &[u8]) -> Result<usize, Error> {
        self.may_write(who)?;
        self.delete_all_under(&local.pin(), self.key(key), |_| ())
    }

    /// Deletes this very object (`=:=`), all its copies in a duplicate_bag; how many went.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete_object(&self, who: OwnerId, object: &ObjectBuf) -> Result<usize, Error> {
        with_local(|local| self.delete_object_in(local, who, object.borrow()))
    }

    /// As `delete_object`, for hosts.
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
        let mut same = |other: &[u8]| self.same(key, other, value);
        let key = self.key(key);
        self.writing_under(&local.pin(), key.bytes, |op| match &op.store.index {
            Index::Unique(_) => self.delete_at(op, key, &mut same),
            Index::Multi(ix) => {
                let mut gone = 0;
                let written = self.change_many(op, &**ix, key, &mut |values| {
                    gone = values.remove_same(value, &mut same);
                    Ok(())
                })?;
                Ok((written, gone))
            }
        })
    }

    /// Deletes those objects under a key that `goes` picks, all at one instant; how many.
    pub(crate) fn delete_where(
        &self,
        key: &[u8],
        goes: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<usize, Error> {
        self.delete_under(&larder_index::pin(), self.key(key), goes)
    }

    /// Deletes the objects under a key and calls `f` with each, all at one instant; how many.
    #[inline]
    pub(super) fn delete_all_under(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut f: impl FnMut(&[u8]),
    ) -> Result<usize, Error> {
        self.writing_under(guard, key.bytes, |op| match &op.store.index {
            Index::Unique(_) => self.delete_at(op, key, &mut |value| {
                f(value);
                true
            }),
            Index::Multi(ix) => {
                let mut gone = 0;
                let written = self.change_many(op, &**ix, key, &mut |values| {
                    gone = values.remove_all(&mut f);
                    Ok(())
                })?;
                Ok((written, gone))
            }
        })
    }

    /// As `delete_where`.
    #[inline]
    fn delete_under(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut goes: impl FnMut(&[u8]) -> bool,
    ) -> Result<usize, Error> {
        self.writing_under(guard, key.bytes, |op| self.delete_at(op, key, &mut goes))
    }

    #[inline]
    fn delete_at(
        &self,
        op: &Operation<'_>,
        key: Key<'_>,
        goes: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<(Written, usize), Error> {
        let mut gone = 0;
        let written = match &op.store.index {
            Index::Unique(ix) => {
                let (written, was) = self.remove_one(op, &**ix, key, &mut *goes);
                gone = usize::from(was == Previous::Present);
                written
            }
            Index::Multi(ix) => self.change_many(op, &**ix, key, &mut |values| {
                gone = values.remove_if(goes);
                Ok(())
            })?,
        };
        Ok((written, gone))
    }

    /// Empties the table; how many objects went, exactly if nobody was writing. O(1): an empty
    /// index takes the place of the old, which is freed behind. Nobody sees a part of the objects
    /// gone.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete_all_objects(&self, who: OwnerId) -> Result<usize, Error> {
        self.may_write(who)?;
        // Pinned for the whole: the old store is looked at once more after it was replaced.
        let guard = larder_index::pin();
        let mut fresh = Some(Store::new(&self.options, &self.seed));
        loop {
            let op = self.begin(&guard)?;
            // The linearisation point, if the word is still the one that was loaded: writes that
            // began before, and have not revalidated yet, begin anew in the fresh store.
            let mut swap = || match self.state.replace(op.state, fresh.take()?, &guard) {
                Ok(old) => old,
                Err(back) => {
                    fresh = Some(back);
                    None
                }
            };
            // While the table is fixed the old index is kept, as its keys are all deleted keys. An
            // ordered_set's `next` takes any key.
            let old = if self.kind().is_ordered() {
                swap()
            } else {
                self.fixation.swapping(swap)
            };
            // It was used: the swap was made.
            if fresh.is_none() {
                // Nobody's write of the old store notes this.
                self.changes.note();
                // The fresh index doesn't know yet whether the table is fixed.
                if self.fixation.is_fixed() {
                    self.follow_fixation(&self.admin.lock());
                }
                // Exact, unless a write that revalidated before the swap is not counted yet.
                let gone = op.store.count.get();
                if let Some(old) = old {
                    reaper::free(old, &guard);
                }
                return Ok(gone);
            }
        }
    }
}

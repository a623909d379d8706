//! Writing by key: insert, delete, take, and emptying the table.
//!
//! Linearisation points: the store with which the index unlocks the leaf; for `delete_all_objects`,
//! the exchange of the state word.

use crate::error::Error;
use crate::keys::{KeyList, Near, MANY_TO_WRITE};
use crate::local::{with_local, Local};
use crate::owner::{OwnerId, Who};
use crate::read::Stored;
use crate::reaper;
use crate::store::{Index, Store};
use crate::table::{At, Table};
use crate::write::{Held, Written};
use larder_index::{Guard, Key, Previous, TOGETHER};
use larder_term::object::{ObjectBuf, ObjectRef, ObjectView};

impl Table {
    /// Inserts an object, in place of the one under its key (set, ordered_set) or beside the others
    /// (bag: unless it is there already). The table takes counts of its own for handles.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn insert(&self, who: OwnerId, object: &ObjectBuf) -> Result<(), Error> {
        with_local(|local| self.insert_in(local, who, object.borrow())).map(|_| ())
    }

    /// As `insert`, for doors. Whether the table has the counts of the object's handles, if they
    /// were given ([`ObjectRef::giving`]).
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline]
    pub fn insert_in(
        &self,
        local: &mut Local,
        who: impl Who,
        object: ObjectRef<'_>,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let key = self.key(object.key());
        self.writing_under(&local.pin(), key.bytes, |at| match &at.store.index {
            Index::One(ix) => {
                let value = (object.value(), object.is_given());
                Ok((self.put_one(at, &**ix, key, value, |_| true).0, true))
            }
            Index::Many(_) => Ok((self.put(at, key, object.value())?, false)),
        })
    }

    /// Inserts an object if there is none under its key; whether it did.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn insert_new(&self, who: OwnerId, object: &ObjectBuf) -> Result<bool, Error> {
        with_local(|local| self.insert_new_in(local, who, object.borrow()))
    }

    /// As `insert_new`, for doors. If the counts of the object's handles were given, a set or
    /// ordered_set has them if it inserted the object.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline]
    pub fn insert_new_in(
        &self,
        local: &mut Local,
        who: impl Who,
        object: ObjectRef<'_>,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let key = self.key(object.key());
        self.writing_under(&local.pin(), key.bytes, |at| {
            let mut inserted = false;
            let written = match &at.store.index {
                Index::One(ix) => {
                    let value = (object.value(), object.is_given());
                    let (written, was) = self.put_one(at, &**ix, key, value, |old| old.is_none());
                    inserted = was == Previous::Absent;
                    written
                }
                Index::Many(ix) => self.change_many(at, &**ix, key, &mut |held| {
                    inserted = held.is_empty();
                    if inserted {
                        held.push(object.value());
                    }
                    Ok(())
                })?,
            };
            Ok((written, inserted))
        })
    }

    /// Deletes what is under the index key; how many objects went.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete(&self, who: OwnerId, key: &[u8]) -> Result<usize, Error> {
        with_local(|local| self.delete_in(local, who, key))
    }

    /// As `delete`, for doors.
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

    /// As `delete_object`, for doors.
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
        self.writing_under(&local.pin(), key.bytes, |at| match &at.store.index {
            Index::One(_) => self.delete_at(at, key, &mut same),
            Index::Many(ix) => {
                let mut gone = 0;
                let written = self.change_many(at, &**ix, key, &mut |held| {
                    gone = held.remove_same(value, &mut same);
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
    fn delete_all_under(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut f: impl FnMut(&[u8]),
    ) -> Result<usize, Error> {
        self.writing_under(guard, key.bytes, |at| match &at.store.index {
            Index::One(_) => self.delete_at(at, key, &mut |value| {
                f(value);
                true
            }),
            Index::Many(ix) => {
                let mut gone = 0;
                let written = self.change_many(at, &**ix, key, &mut |held| {
                    gone = held.remove_all(&mut f);
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
        self.writing_under(guard, key.bytes, |at| self.delete_at(at, key, &mut goes))
    }

    #[inline]
    fn delete_at(
        &self,
        at: &At<'_>,
        key: Key<'_>,
        goes: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<(Written, usize), Error> {
        let mut gone = 0;
        let written = match &at.store.index {
            Index::One(ix) => {
                let (written, was) = self.remove_one(at, &**ix, key, &mut *goes);
                gone = usize::from(was == Previous::Present);
                written
            }
            Index::Many(ix) => self.change_many(at, &**ix, key, &mut |held| {
                gone = held.remove_if(goes);
                Ok(())
            })?,
        };
        Ok((written, gone))
    }

    /// Deletes what is under the index key and calls `visit` with each object that went, in order
    /// of arrival; how many.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn take(
        &self,
        who: OwnerId,
        key: &[u8],
        visit: &mut dyn FnMut(&ObjectView<'_>),
    ) -> Result<usize, Error> {
        with_local(|local| self.take_in(local, who, key, |stored| visit(&stored.view())))
    }

    /// As `take`, for doors.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    #[inline]
    pub fn take_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        visit: impl FnMut(Stored<'_>),
    ) -> Result<usize, Error> {
        self.may_write(who)?;
        // Pinned for the whole: the handles of what is taken are given back only when this guard is
        // gone.
        let guard = local.pin();
        self.take_under(local, &guard, self.key(key), visit)
    }

    /// `take` under a guard that is kept until what was taken is not looked at any more.
    #[inline]
    fn take_under(
        &self,
        local: &mut Local,
        guard: &Guard,
        key: Key<'_>,
        mut visit: impl FnMut(Stored<'_>),
    ) -> Result<usize, Error> {
        let values = &mut local.values;
        values.clear();
        self.delete_all_under(guard, key, |value| values.push(value))?;
        for value in local.values.iter() {
            visit(Stored::new(
                key.bytes,
                value,
                self.keypos(),
                &mut local.plain,
            ));
        }
        Ok(local.values.len())
    }

    /// Takes what is under each of the keys, one after another, each atomically by itself; `visit`
    /// is told which key an object was under, and called with `None` when a key is done: then it
    /// says whether to go on. The keys' waits for memory overlap.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`. Those keys of which `visit` was told that they are done have
    /// been taken, the others not.
    pub fn take_many_in(
        &self,
        local: &mut Local,
        who: impl Who,
        keys: &KeyList,
        mut visit: impl FnMut(usize, Option<Stored<'_>>) -> bool,
    ) -> Result<(), Error> {
        self.may_write(who)?;
        let guard = local.pin();
        let mut near = Near::new();
        for from in (0..keys.len()).step_by(TOGETHER) {
            near.fill(self, keys, from);
            self.begin(&guard)?
                .store
                .prefetch(&guard, near.keys(), MANY_TO_WRITE);
            for (i, &key) in near.keys().iter().enumerate() {
                self.take_under(local, &guard, key, |object| {
                    visit(from + i, Some(object));
                })?;
                if !visit(from + i, None) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Empties the table; how many objects went, exactly if nobody was writing. O(1): an empty
    /// index takes the place of the old, which is freed behind. Nobody sees a part of the objects
    /// gone.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn delete_all_objects(&self, who: OwnerId) -> Result<usize, Error> {
        self.may_write(who)?;
        let guard = larder_index::pin();
        let mut fresh = Some(Store::new(&self.options, &self.seed));
        loop {
            let at = self.begin(&guard)?;
            let mut swap = || match self.cell.replace(at.seen, fresh.take()?, &guard) {
                Ok(old) => old,
                Err(back) => {
                    fresh = Some(back);
                    None
                }
            };
            let old = if self.kind().is_ordered() {
                swap()
            } else {
                self.fixation.swapping(swap)
            };
            if fresh.is_none() {
                self.fixation.watch().note();
                if self.fixation.is_fixed() {
                    self.follow_fixation(&self.admin.lock());
                }
                let gone = at.store.count.get();
                if let Some(old) = old {
                    reaper::free(old, &guard);
                }
                return Ok(gone);
            }
        }
    }

    /// Whether one of the objects is this one.
    pub(crate) fn holds_same(&self, held: &Held<'_>, key: &[u8], value: &[u8]) -> bool {
        held.find(value, &mut |other| self.same(key, value, other))
    }
}

impl Written {
    /// Whether the operation has to begin again.
    pub(crate) fn is_moved(&self) -> bool {
        matches!(self, Written::Moved)
    }
}

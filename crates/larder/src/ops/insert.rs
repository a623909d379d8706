//! Inserting an object: `insert`, `insert_new`.
//!
//! 1. Check the right to write.
//! 2. Hash the key with the table's seed, and pin the epoch.
//! 3. Load the state word (`writing`, in `change`). If a list batch has objects under the key, this
//!    inserts them first.
//! 4. The index locks the leaf of the key and finds the entry. Under the lock, the state word is
//!    loaded again (`revalidate`). If it has changed, nothing is stored, and the write restarts
//!    from (3).
//! 5. The index stores the value and unlocks the leaf. If the leaf has no room, the index replaces
//!    or splits it first.
//! 6. Count the object, release the handles of the value that was replaced, and evict objects
//!    beyond the table's limits.
//!
//! Steps 4 to 6 are those of every change (`change`). Linearisation point: that of the index's
//! write (docs/design.md §4.2).

use super::begin::Operation;
use super::change::{NewValue, Put};
use super::refusal::Written;
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::TableIndex;
use crate::local::{with_local, Local};
use crate::options::TableKind;
use crate::table::EngineTable;
use larder_index::{Key, Previous};
use larder_term::object::{ObjectBuf, ObjectRef};

impl EngineTable {
    /// Inserts an object. In a set or ordered_set it replaces the one under its key. In a bag it is
    /// added to the others, unless it is present already; in a duplicate_bag always. The table
    /// takes its own counts of the object's handles.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Full` by a limit without eviction; `NotUnique` by an index.
    pub fn insert(&self, who: OwnerId, object: &ObjectBuf) -> Result<(), Error> {
        with_local(|local| self.insert_in(local, who, object.borrow())).map(|_| ())
    }

    /// The same as [`insert`](EngineTable::insert), with the thread's `local`, for host interfaces.
    /// Returns whether the table has taken over the counts of the object's handles, if they were
    /// given ([`ObjectRef::giving`]).
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Full` by a limit without eviction; `NotUnique` by an index.
    #[inline]
    pub fn insert_in(
        &self,
        local: &mut Local,
        who: impl Who,
        object: ObjectRef<'_>,
    ) -> Result<bool, Error> {
        // (1) Whether the table is still alive is checked in (3).
        self.may_write(who)?;
        // (2) Hash the key, and pin the epoch.
        let key = self.key(object.key());
        let guard = local.pin();
        let cursors = [&mut local.read_ahead, &mut local.older_ahead];
        // (3) Load the state word. The closure is repeated while the word changes in between.
        self.writing_beside_walks(cursors, &guard, key.bytes, |op| {
            match &op.store.index {
                // (4) to (6) Replace the object under the key, if there is one. If counts were
                // given, the table takes them over.
                TableIndex::Unique(ix) => {
                    let value = NewValue::of(&object);
                    let (written, was) = self.put_one(op, &**ix, key, value, |_| true);
                    if was == Previous::Absent {
                        op.inserts();
                    }
                    Ok((written, true))
                }
                // (4) to (6) The value is copied into the key's list, with counts of its own.
                TableIndex::Multi(_) => Ok((self.put(op, key, object.value())?, false)),
            }
        })
    }

    /// Inserts an object if there is none under its key, and no row has one of its values in a
    /// unique index. Returns whether it did.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Full` by a limit without eviction; `NotUnique` by an index.
    pub fn insert_new(&self, who: OwnerId, object: &ObjectBuf) -> Result<bool, Error> {
        with_local(|local| self.insert_new_in(local, who, object.borrow()))
    }

    /// The same as [`insert_new`](EngineTable::insert_new), with the thread's `local`, for host
    /// interfaces. If the counts of the object's handles were given, a set or ordered_set takes
    /// them over if it inserts the object.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Full` by a limit without eviction; `NotUnique` by an index.
    #[inline]
    pub fn insert_new_in(
        &self,
        local: &mut Local,
        who: impl Who,
        object: ObjectRef<'_>,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let key = self.key(object.key());
        self.writing_under(&local.pin(), key.bytes, |op| {
            // (4) That the key is absent is decided under the leaf's lock. So of several threads
            // that insert the same key at once, one succeeds.
            let mut inserted = false;
            let written = match &op.store.index {
                TableIndex::Unique(ix) => {
                    let value = NewValue::of(&object);
                    let (written, was) = self.put_by(op, &**ix, key, value, Put::New, |_| true);
                    inserted = was == Previous::Absent;
                    written
                }
                // All objects of a key are under one lock, so the check and the insert are one
                // step.
                TableIndex::Multi(ix) => self.change_absent(op, &**ix, key, |values| {
                    values.push(object.value());
                    inserted = true;
                    Ok(())
                })?,
            };
            match written {
                // Another row has one of the values: don't insert, as if the key were present. If
                // that row had expired and was removed, or the index was being built and is given
                // up, the insert is retried.
                Written::Taken => match self.free_taken_value(op) {
                    Err(_) => Ok((Written::Done, false)),
                    Ok(()) => Ok((Written::Stale, false)),
                },
                written => Ok((written, inserted)),
            }
        })
    }

    /// Inserts one object, as `insert` does for the table's type.
    #[inline(always)]
    pub(crate) fn put(
        &self,
        op: &Operation<'_>,
        key: Key<'_>,
        value: &[u8],
    ) -> Result<Written, Error> {
        match &op.store.index {
            TableIndex::Unique(ix) => Ok(self
                .put_one(op, &**ix, key, NewValue::copied(value), |_| true)
                .0),
            TableIndex::Multi(ix) => {
                // In a bag, compare the new object with the others under their lock. So two threads
                // never insert two equal ones.
                let dedupe = self.kind() == TableKind::Bag;
                self.change_many(op, &**ix, key, |values| {
                    if !dedupe
                        || !values.find(value, &mut |other| self.same(key.bytes, value, other))
                    {
                        values.push(value);
                    }
                    Ok(())
                })
            }
        }
    }
}

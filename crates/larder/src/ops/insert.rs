//! Inserting an object: `insert`, `insert_new`.
//!
//! Linearisation point: the store with which the index unlocks the leaf.

use super::begin::Operation;
use super::commit::Written;
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::Index;
use crate::local::{with_local, Local};
use crate::options::TableKind;
use crate::table::Table;
use larder_index::{Key, Previous};
use larder_term::object::{ObjectBuf, ObjectRef};

impl Table {
    /// Inserts an object, in place of the one under its key (set, ordered_set) or beside the others
    /// (bag: unless it is there already). The table takes counts of its own for handles.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn insert(&self, who: OwnerId, object: &ObjectBuf) -> Result<(), Error> {
        with_local(|local| self.insert_in(local, who, object.borrow())).map(|_| ())
    }

    /// As `insert`, for hosts. Whether the table has the counts of the object's handles, if they
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
        self.writing_under(&local.pin(), key.bytes, |op| match &op.store.index {
            // Whatever is there is replaced. The table takes the object's counts over, if they were
            // given.
            Index::Unique(ix) => {
                let value = (object.value(), object.is_given());
                Ok((self.put_one(op, &**ix, key, value, |_| true).0, true))
            }
            // The value is copied into the key's list, so it has counts of its own.
            Index::Multi(_) => Ok((self.put(op, key, object.value())?, false)),
        })
    }

    /// Inserts an object if there is none under its key, and no row with one of its values in a
    /// unique index; whether it did.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`.
    pub fn insert_new(&self, who: OwnerId, object: &ObjectBuf) -> Result<bool, Error> {
        with_local(|local| self.insert_new_in(local, who, object.borrow()))
    }

    /// As `insert_new`, for hosts. If the counts of the object's handles were given, a set or
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
        self.writing_under(&local.pin(), key.bytes, |op| {
            // Decided under the lock: of several that insert the key at once, one does.
            let mut inserted = false;
            let written = match &op.store.index {
                Index::Unique(ix) => {
                    let value = (object.value(), object.is_given());
                    let (written, was) = self.put_one(op, &**ix, key, value, |old| old.is_none());
                    inserted = was == Previous::Absent;
                    written
                }
                // The key's objects are one list under one lock: that it is empty, and what is put
                // there, is one step.
                Index::Multi(ix) => self.change_many(op, &**ix, key, &mut |values| {
                    inserted = values.is_empty();
                    if inserted {
                        values.push(object.value());
                    }
                    Ok(())
                })?,
            };
            match written {
                // As for a key that is there.
                Written::Taken => match self.unless_freed(op) {
                    Err(_) => Ok((Written::Done, false)),
                    Ok(()) => Ok((Written::Moved, false)),
                },
                written => Ok((written, inserted)),
            }
        })
    }

    /// Puts one object in its place: what `insert` means for the table's type.
    #[inline]
    pub(crate) fn put(
        &self,
        op: &Operation<'_>,
        key: Key<'_>,
        value: &[u8],
    ) -> Result<Written, Error> {
        match &op.store.index {
            Index::Unique(ix) => Ok(self.put_one(op, &**ix, key, (value, false), |_| true).0),
            Index::Multi(ix) => {
                // A bag's new object is compared with its key's others under their lock, so two
                // equal ones never come in at once.
                let dedupe = self.kind() == TableKind::Bag;
                self.change_many(op, &**ix, key, &mut |values| {
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

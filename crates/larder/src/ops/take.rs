//! Deleting and returning the objects under a key: `take`.
//!
//! Linearisation point: the store with which the index unlocks the leaf.

use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::keys::{KeyBatch, KeyList, MANY_TO_WRITE};
use crate::local::{with_local, Local};
use crate::stored::Stored;
use crate::table::EngineTable;
use larder_index::{Guard, Key, MAX_KEYS_PER_LOOKUP};
use larder_term::object::ObjectView;

impl EngineTable {
    /// Deletes the objects under the index key, and calls `visit` with each of them, in the order
    /// of insertion. Returns their number.
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

    /// Like `take`, for hosts.
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
        // Pin for the whole operation: the handles of the removed objects are released only after
        // this guard is dropped.
        let guard = local.pin();
        self.take_under(local, &guard, self.key(key), visit)
    }

    /// `take` under a guard that lives until the removed objects are no longer used.
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
        // Copy the values under the lock, and visit them without it. The write may be repeated, but
        // only before it has visited a value.
        self.delete_all_under(guard, key, |value| values.push(value))?;
        // The values are copies, and no longer in a leaf. The counts of their handles are released
        // after `guard` is dropped.
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

    /// Takes the objects under each of the keys, one key after another, each atomically. `visit`
    /// gets the number of the key of each object. It is called with `None` when a key is done, and
    /// returns whether to continue. The cache misses of the keys overlap.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`. The keys for which `visit` was called with `None` have been
    /// taken, and the others have not.
    pub fn take_many_in(
        &self,
        local: &mut Local,
        who: impl Who,
        keys: &KeyList,
        mut visit: impl FnMut(usize, Option<Stored<'_>>) -> bool,
    ) -> Result<(), Error> {
        self.may_write(who)?;
        let guard = local.pin();
        let mut batch = KeyBatch::new();
        // The keys are taken in groups, so that their cache misses overlap within a group.
        for from in (0..keys.len()).step_by(MAX_KEYS_PER_LOOKUP) {
            batch.fill(keys.len() - from, |i| self.key(keys.get(from + i)));
            // The prefetch needs any store, even an old one: the write of each key begins by
            // itself.
            self.begin(&guard)?
                .store
                .prefetch(&guard, batch.keys(), MANY_TO_WRITE);
            for (i, &key) in batch.keys().iter().enumerate() {
                self.take_under(local, &guard, key, |object| {
                    visit(from + i, Some(object));
                })?;
                // The host has enough for now. It continues with the next key in another call.
                if !visit(from + i, None) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

//! Deleting what is under a key and giving it: `take`.
//!
//! Linearisation point: the store with which the index unlocks the leaf.

use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::keys::{KeyBatch, KeyList, MANY_TO_WRITE};
use crate::local::{with_local, Local};
use crate::stored::Stored;
use crate::table::Table;
use larder_index::{Guard, Key, TOGETHER};
use larder_term::object::ObjectView;

impl Table {
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

    /// As `take`, for hosts.
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
        // Copied under the lock, visited without it. The write may begin anew, but only before it
        // has shown a value.
        self.delete_all_under(guard, key, |value| values.push(value))?;
        // The values are copies, and in no leaf any more: their handles' counts are released once
        // `guard` is gone.
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
    /// is given the number of the key that an object was under. It is called with `None` when a key
    /// is done, and then says whether to go on. The keys' waits for memory overlap.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`. The keys for which `visit` was called with `None` have been
    /// taken, the others not.
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
        for from in (0..keys.len()).step_by(TOGETHER) {
            batch.fill(keys.len() - from, |i| self.key(keys.get(from + i)));
            // The prefetch needs some store, not a valid one: each key's own write begins for
            // itself.
            self.begin(&guard)?
                .store
                .prefetch(&guard, batch.keys(), MANY_TO_WRITE);
            for (i, &key) in batch.keys().iter().enumerate() {
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
}

//! The catalog: the lists of an engine's tables, by name and by owner. And the operations on a
//! table as a whole: drop, rename, give away, change the access rights.
//!
//! Locks are taken in this order: a table's `admin`, which guards its place in the lists; `passing`
//! of the owners; one owner's record. Operations that read or write objects take none of them.
//!
//! A table is *dropped* in these steps:
//!
//! 1. Set the `DEAD` bit of the state word (the linearisation point). Every operation that begins
//!    or revalidates afterwards is refused.
//! 2. Remove the table from the lists.
//! 3. Pass its store to the reaper, which frees it when it has no readers any more.

use super::owners::{Owners, SettleKey};
use super::registry::Registry;
use super::{Admin, EngineTable, DEAD, LATCHED};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::options::Access;
use crate::reclaim::reaper;
use larder_index::sync::MutexGuard;
use larder_index::Guard;
use larder_term::{Atom, Term};
use std::sync::Arc;

/// All tables of an engine.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) registry: Registry,
    pub(crate) owners: Owners,
}

impl Catalog {
    /// Ends a table: marks it dead (the linearisation point), removes it from all lists, and passes
    /// its store to the reaper. The caller holds `admin`.
    pub(crate) fn unlink(&self, table: &Arc<EngineTable>, mut admin: MutexGuard<'_, Admin>) {
        // (1)
        let guard = larder_index::pin();
        // This invalidates read-ahead cursors and the chunks of folds.
        let replacing = table.changes.replacing();
        let before = table.state.set_tag(DEAD, &guard);
        drop(replacing);
        let key = SettleKey::of(table, &admin);
        // (2) `dropped` stops a thread that waits for the lock in order to list the table
        // elsewhere.
        admin.dropped = true;
        admin.heir = None;
        // The name belongs to this table until `admin` is released, because `rename` takes it, too.
        // A lookup in between finds the table dead.
        if table.is_named() {
            self.registry.free_name(table.name(), &guard);
        }
        self.owners.remove_table(table.owner(), key);
        drop(admin);
        // `dropped` is set, and `safe_fix` checks it under `admin`. So no owner fixes the table
        // afterwards, and these are all records that list it.
        for fixer in table.fixation.end() {
            self.owners.remove_fixed(fixer, table.id());
        }
        // (3) Drop a batch that is in progress. A thread that helps with it finds the table dead. A
        // batch has set the bit before it began, and none can set it now.
        free_store(table, &guard);
        if before & LATCHED != 0 {
            table.latch.end();
        }
        if let Some(feed) = table.feed.get() {
            feed.end();
        }
        // Nothing is stored there any more, because callers of `with_beside` check under the same
        // lock whether the table lives.
        let host_data = table.host_data.lock().take();
        drop(host_data);
    }
}

/// Passes a dead table's store to the reaper.
fn free_store(table: &EngineTable, guard: &Guard) {
    if let Some(store) = table.state.take(guard) {
        reaper::free(store, guard);
    }
}

impl EngineTable {
    /// Ends a table that is in no list.
    pub(crate) fn end(&self, guard: &Guard) {
        let replacing = self.changes.replacing();
        self.state.set_tag(DEAD, guard);
        drop(replacing);
        free_store(self, guard);
        self.latch.end();
        // Dropped without the lock, as above.
        let host_data = self.host_data.lock().take();
        drop(host_data);
    }

    pub(super) fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.catalog.upgrade().ok_or(Error::NoTable)
    }

    /// Drops the table. From here on it can't be found, and every operation on it returns
    /// `NoTable`. Its memory is freed in the background. O(1).
    ///
    /// # Errors
    /// `NoTable`, `Access`: the right to write is needed.
    pub fn drop_table(self: &Arc<Self>, who: OwnerId) -> Result<(), Error> {
        self.drop_called(who, None)
    }

    /// Like `drop_table`, for a caller that found the table by a name. Drops it only if it still
    /// has that name.
    ///
    /// # Errors
    /// Those of `drop_table`; `NoTable` also if the table has another name by now.
    pub fn drop_called(self: &Arc<Self>, who: OwnerId, called: Option<Atom>) -> Result<(), Error> {
        self.check_write(who)?;
        self.check_whole()?;
        self.drop_unasked(called)
    }

    /// Like `drop_called`, without a check of access rights.
    pub(crate) fn drop_unasked(self: &Arc<Self>, called: Option<Atom>) -> Result<(), Error> {
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        self.check_called(&admin, called)?;
        catalog.unlink(self, admin);
        Ok(())
    }

    /// Checks that the table isn't a view of another one.
    fn check_whole(&self) -> Result<(), Error> {
        let view = self.view.as_ref();
        view.map_or(Ok(()), |view| Err(view.why_fixed()))
    }

    /// Checks that the table lives and still has the name by which it was found, if it was.
    fn check_called(&self, admin: &Admin, called: Option<Atom>) -> Result<(), Error> {
        if admin.dropped || called.is_some_and(|name| name != self.name()) {
            return Err(Error::NoTable);
        }
        Ok(())
    }

    /// Renames the table. A named table can be found by the new name before the old one is free.
    /// `called` is the name by which the caller has found it, if it did. The table must still have
    /// that name.
    ///
    /// # Errors
    /// `NoTable`, `Access` (the right to write is needed), `AlreadyExists` (a named table, and a
    /// name in use, its own included).
    pub fn rename(
        self: &Arc<Self>,
        who: OwnerId,
        called: Option<Atom>,
        to: Atom,
    ) -> Result<(), Error> {
        self.check_write(who)?;
        self.check_whole()?;
        let admin = self.admin.lock();
        // A caller that has found the table by its name must not rename one that has another name
        // by now.
        self.check_called(&admin, called)?;
        if self.is_named() {
            let (catalog, guard) = (self.catalog()?, larder_index::pin());
            // The new name first, so that the table is found under one of the two at any time; and
            // if it is in use, nothing has changed.
            if !catalog.registry.take_name(to, self, &guard) {
                return Err(Error::AlreadyExists);
            }
            catalog.registry.free_name(self.name(), &guard);
        }
        self.set_name(to);
        drop(admin);
        Ok(())
    }

    /// Makes `to` the owner. The host sends the message to it.
    ///
    /// # Errors
    /// `NoTable`, `NotOwner`, `AlreadyOwner` (`to` is the owner), `NoOwner` (`to` doesn't live).
    pub fn give_away(self: &Arc<Self>, who: OwnerId, to: OwnerId) -> Result<(), Error> {
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        self.check_owner(&admin, who)?;
        if who == to {
            return Err(Error::AlreadyOwner);
        }
        // From here to the end `admin` is held while the lists and the owner differ. If either
        // owner ends meanwhile, `inherit` waits, and then goes by the owner that is written below.
        let key = SettleKey::of(self, &admin);
        if !catalog.owners.pass(self, key, who, to) {
            return Err(Error::NoOwner);
        }
        self.set_owner(to);
        Ok(())
    }

    /// Sets the heir, which gets the table when its owner ends; `None` for no heir. An heir that
    /// doesn't live at that time is ignored.
    ///
    /// # Errors
    /// `NoTable`, `NotOwner`.
    pub fn set_heir(
        self: &Arc<Self>,
        who: OwnerId,
        heir: Option<(OwnerId, Term)>,
    ) -> Result<(), Error> {
        let catalog = self.catalog.upgrade();
        let mut admin = self.admin.lock();
        self.check_owner(&admin, who)?;
        let key = SettleKey::of(self, &admin);
        // The data for the old heir may be a large term, so it is freed without the lock.
        let before = std::mem::replace(&mut admin.heir, heir);
        let next = SettleKey::of(self, &admin);
        // Without a catalog the engine is dropped, and with it the lists.
        if let Some(catalog) = catalog.as_ref().filter(|_| next != key) {
            catalog.owners.move_table(who, key, next);
        }
        drop(admin);
        drop(before);
        Ok(())
    }

    /// Sets the access rights.
    ///
    /// # Errors
    /// `NoTable`, `NotOwner`.
    pub fn set_access(self: &Arc<Self>, who: OwnerId, access: Access) -> Result<(), Error> {
        let admin = self.admin.lock();
        self.check_owner(&admin, who)?;
        self.store_access(access);
        Ok(())
    }

    fn check_owner(&self, admin: &Admin, who: OwnerId) -> Result<(), Error> {
        // Under the lock of `admin`, a table is either in the lists or dropped.
        if admin.dropped {
            return Err(Error::NoTable);
        }
        if self.owner() != who {
            return Err(Error::NotOwner);
        }
        self.check_whole()?;
        Ok(())
    }
}

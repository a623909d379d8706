//! The catalog: where an engine's tables are listed, by their names and by their owners. And what
//! happens to a table as a whole: drop, rename, give away, other rights.
//!
//! Locks are taken in this order: a table's `admin`, which guards its place in the lists; `passing`
//! of the owners; one owner's record. Nothing that reads or writes objects takes any.
//!
//! A table is *dropped* in these steps:
//!
//! 1. The state word's `DEAD` bit is set (the linearisation point): every operation that begins, or
//!    revalidates, is refused.
//! 2. The table leaves the lists.
//! 3. Its store goes to the reaper, and is freed when no reader looks at it any more.

use super::owners::Owners;
use super::registry::Registry;
use super::{Admin, Table, DEAD};
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
    /// Ends a table: marks it dead (the linearisation point), takes it off every list and leaves
    /// what it holds to the reaper. The caller holds `admin`.
    pub(crate) fn unlink(&self, table: &Arc<Table>, mut admin: MutexGuard<'_, Admin>) {
        // (1)
        let guard = larder_index::pin();
        table.state.set_tag(DEAD, &guard);
        // (2) `gone` stops a thread that waits for the lock to list the table elsewhere.
        admin.gone = true;
        admin.heir = None;
        // The name is this table's until `admin` is given back: `rename` holds it, too. A look-up
        // in between finds the table dead.
        if table.is_named() {
            self.registry.free_name(table.name(), &guard);
        }
        self.owners.remove_table(table.owner(), table.id());
        drop(admin);
        // What was read ahead or in a fold's chunk ends here.
        table.changes.note();
        // `gone` is set, and `safe_fix` looks at it under `admin`: nobody fixes the table
        // afterwards. So these are all records that list it.
        for fixer in table.fixation.end() {
            self.owners.remove_fixed(fixer, table.id());
        }
        // (3) A batch under way is forgotten: whoever helps with it finds the table dead.
        free_store(table, &guard);
        table.latch.end();
        if let Some(feed) = table.feed.get() {
            feed.end();
        }
        // Nothing is put there any more: callers of `with_beside` look whether the table lives,
        // under the same lock.
        let beside = table.beside.lock().take();
        drop(beside);
    }
}

/// Hands a dead table's store to the reaper.
fn free_store(table: &Table, guard: &Guard) {
    if let Some(store) = table.state.take(guard) {
        reaper::free(store, guard);
    }
}

impl Table {
    /// Ends a table that is in no list.
    pub(crate) fn end(&self, guard: &Guard) {
        self.state.set_tag(DEAD, guard);
        self.changes.note();
        free_store(self, guard);
        self.latch.end();
        drop(self.beside.lock().take());
    }

    pub(super) fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.catalog.upgrade().ok_or(Error::NoTable)
    }

    /// Drops the table: from here on nobody finds it and every operation on it answers `NoTable`.
    /// What it holds is freed behind. O(1).
    ///
    /// # Errors
    /// `NoTable`, `Access`: the right to write is needed.
    pub fn drop_table(self: &Arc<Self>, who: OwnerId) -> Result<(), Error> {
        self.drop_called(who, None)
    }

    /// As `drop_table`, for a caller that found the table by a name: it is dropped only if it still
    /// has that.
    ///
    /// # Errors
    /// As `drop_table`; `NoTable` also if the table has another name by now.
    pub fn drop_called(self: &Arc<Self>, who: OwnerId, called: Option<Atom>) -> Result<(), Error> {
        self.check_write(who)?;
        self.check_whole()?;
        self.drop_unasked(called)
    }

    /// As `drop_called`, without asking for a right.
    pub(crate) fn drop_unasked(self: &Arc<Self>, called: Option<Atom>) -> Result<(), Error> {
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        self.check_called(&admin, called)?;
        catalog.unlink(self, admin);
        Ok(())
    }

    /// Whether the table is one of its own, and no view of another.
    fn check_whole(&self) -> Result<(), Error> {
        let view = self.view.as_ref();
        view.map_or(Ok(()), |view| Err(view.why_fixed()))
    }

    /// Whether the table lives and has the name by which it was called, if it was.
    fn check_called(&self, admin: &Admin, called: Option<Atom>) -> Result<(), Error> {
        if admin.gone || called.is_some_and(|name| name != self.name()) {
            return Err(Error::NoTable);
        }
        Ok(())
    }

    /// Gives the table another name. A named table is found under the new name before the old is
    /// freed. `called` is the name by which the caller found it, if it did: the table must still
    /// have that.
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
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        self.check_called(&admin, called)?;
        if self.is_named() {
            let guard = larder_index::pin();
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

    /// Makes `to` the owner. The message to it is the host's to send.
    ///
    /// # Errors
    /// `NoTable`, `NotOwner`, `AlreadyOwner` (to itself), `NoOwner` (to one that does not live).
    pub fn give_away(self: &Arc<Self>, who: OwnerId, to: OwnerId) -> Result<(), Error> {
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        self.check_owner(&admin, who)?;
        if who == to {
            return Err(Error::AlreadyOwner);
        }
        // From here to the end `admin` is held while the lists and the owner differ. If either
        // owner ends meanwhile, `inherit` waits, and then goes by the owner that is written below.
        if !catalog.owners.pass(self, who, to) {
            return Err(Error::NoOwner);
        }
        self.set_owner(to);
        Ok(())
    }

    /// Says who gets the table when its owner ends; None for nobody. An heir that does not live by
    /// then counts as nobody.
    ///
    /// # Errors
    /// `NoTable`, `NotOwner`.
    pub fn set_heir(
        self: &Arc<Self>,
        who: OwnerId,
        heir: Option<(OwnerId, Term)>,
    ) -> Result<(), Error> {
        let mut admin = self.admin.lock();
        self.check_owner(&admin, who)?;
        // The old heir's data may be a large term: it is freed without the lock.
        let before = std::mem::replace(&mut admin.heir, heir);
        drop(admin);
        drop(before);
        Ok(())
    }

    /// Says who may read and write from now on.
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
        if admin.gone {
            return Err(Error::NoTable);
        }
        if self.owner() != who {
            return Err(Error::NotOwner);
        }
        self.check_whole()?;
        Ok(())
    }
}

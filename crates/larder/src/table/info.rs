//! Information about a table.

use super::EngineTable;
use crate::error::Error;
use crate::fixation::{FixTime, Fixed};
use crate::ids::{OwnerId, TableId};
use crate::options::{Access, Concurrency, TableKind};
use larder_term::Atom;
use std::sync::Arc;

/// The properties of a table. The numbers are read one after the other, while other threads may
/// write.
#[derive(Clone, Debug)]
pub struct Info {
    /// The table's number.
    pub id: TableId,
    /// Its name.
    pub name: Atom,
    /// Whether it can be found by its name.
    pub named: bool,
    /// Its type.
    pub kind: TableKind,
    /// The position of the key.
    pub keypos: usize,
    /// The access rights.
    pub access: Access,
    /// The owner.
    pub owner: OwnerId,
    /// The heir, if there is one, and it lives.
    pub heir: Option<OwnerId>,
    /// The number of objects.
    pub size: usize,
    /// The memory in bytes; see `EngineTable::memory`.
    pub memory: usize,
    /// Whether objects are stored compressed.
    pub compressed: bool,
    /// The option given at creation. It has no effect.
    pub write_concurrency: Concurrency,
    /// The option given at creation. It has no effect.
    pub read_concurrency: bool,
    /// Whether the number of objects is kept in many counters.
    pub decentralized_counters: bool,
    /// The structure that stores the table.
    pub structure: String,
    /// Whether any owner has fixed the table.
    pub fixed: bool,
    /// The owners that have fixed it, and since when.
    pub safe_fixed: Option<Fixed>,
}

impl EngineTable {
    /// Returns the properties of the table; `None` if it is dead. No access right is needed.
    pub fn info(&self) -> Option<Info> {
        if !self.is_alive() {
            return None;
        }
        // Each property is read by itself. Together they are of no single instant.
        let options = self.options();
        let safe_fixed = self.fixation.report();
        Some(Info {
            id: self.id(),
            name: self.name(),
            named: self.is_named(),
            kind: self.kind(),
            keypos: self.keypos(),
            access: self.access(),
            owner: self.owner(),
            heir: self.heir(),
            size: self.size(),
            memory: self.memory(),
            compressed: self.compressed(),
            write_concurrency: options.write_concurrency,
            read_concurrency: options.read_concurrency,
            decentralized_counters: options.decentralized_counters,
            structure: options.structure.clone().into_owned(),
            fixed: safe_fixed.is_some(),
            safe_fixed,
        })
    }

    /// Returns which owners have fixed the table, and since when.
    pub fn fixed(&self) -> Option<Fixed> {
        // Usually no owner has, which takes one load.
        self.fixation.is_fixed().then(|| self.fixation.report())?
    }

    /// Returns the owners that have fixed the table, like `info`, but without the rest of it.
    pub fn fixers(&self) -> Vec<OwnerId> {
        let fixed = self.fixed();
        let by = fixed.into_iter().flat_map(|fixed| fixed.by);
        by.map(|(owner, _)| owner).collect()
    }

    /// The heir, if there is one, and it lives.
    pub fn heir(&self) -> Option<OwnerId> {
        let heir = self.admin.lock().heir.as_ref().map(|(id, _)| *id)?;
        let catalog = self.catalog.upgrade()?;
        catalog.owners.is_alive(heir).then_some(heir)
    }

    /// Fixes the table for `who`; fixations are counted. No traversal needs a fixed table. While a
    /// table is fixed, deleted keys are recorded, so that `next` can continue from them. `info`
    /// reports `now` as the time.
    ///
    /// # Errors
    /// `NoTable`, `Access`: the right to read is needed.
    pub fn safe_fix(self: &Arc<Self>, who: OwnerId, now: FixTime) -> Result<(), Error> {
        self.check_read(who)?;
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        // `unlink` sets this before it reads which owners have fixed the table. So no fixation is
        // added that it would miss.
        if admin.dropped {
            return Err(Error::NoTable);
        }
        // The owner's record lists the table, so that the end of the owner undoes the fixation.
        if self.fixation.fix(who, now) {
            catalog.owners.add_fixed(who, self);
        }
        self.pass_fixation_to_index(&admin);
        drop(admin);
        Ok(())
    }

    /// Undoes one fixation of `who`, if there is one.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn safe_unfix(self: &Arc<Self>, who: OwnerId) -> Result<(), Error> {
        self.check_read(who)?;
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        // The owner's list of fixed tables is changed with it, under the lock.
        if self.fixation.unfix(who, false) {
            catalog.owners.remove_fixed(who, self.id());
        }
        // The index learns about the fixation from here.
        self.pass_fixation_to_index(&admin);
        drop(admin);
        Ok(())
    }

    /// Undoes all fixations of an owner that has ended. If it has unfixed the table, or the table
    /// is dead, there is nothing to undo.
    pub(crate) fn end_fixation(&self, owner: OwnerId) {
        let admin = self.admin.lock();
        self.fixation.unfix(owner, true);
        self.pass_fixation_to_index(&admin);
    }
}

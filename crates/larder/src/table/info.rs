//! What can be asked about a table.

use super::Table;
use crate::error::Error;
use crate::fixation::{FixTime, Fixed};
use crate::ids::{OwnerId, TableId};
use crate::options::{Access, Concurrency, TableKind};
use larder_term::Atom;
use std::sync::Arc;

/// A table's properties at one moment. The numbers were read one after the other while others may
/// have been writing.
#[derive(Clone, Debug)]
pub struct Info {
    /// The table's number.
    pub id: TableId,
    /// Its name.
    pub name: Atom,
    /// Whether it is found under its name.
    pub named: bool,
    /// Its type.
    pub kind: TableKind,
    /// The position of the key.
    pub keypos: usize,
    /// Who may read and write.
    pub access: Access,
    /// The owner.
    pub owner: OwnerId,
    /// The heir, if there is one that lives.
    pub heir: Option<OwnerId>,
    /// The number of objects.
    pub size: usize,
    /// Bytes of memory; see `Table::memory`.
    pub memory: usize,
    /// Whether objects are kept compressed.
    pub compressed: bool,
    /// As asked for.
    pub write_concurrency: Concurrency,
    /// As asked for.
    pub read_concurrency: bool,
    /// As asked for.
    pub decentralized_counters: bool,
    /// The structure that the table is built on.
    pub structure: String,
    /// Whether somebody has the table fixed.
    pub fixed: bool,
    /// Who has, since when.
    pub safe_fixed: Option<Fixed>,
}

impl Table {
    /// The table's properties; None if it is dead. Everybody may ask, whatever the access rights.
    pub fn info(&self) -> Option<Info> {
        if !self.is_alive() {
            return None;
        }
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

    /// Who has the table fixed, since when.
    pub fn fixed(&self) -> Option<Fixed> {
        // Mostly nobody has: that is one load.
        self.fixation.is_fixed().then(|| self.fixation.report())?
    }

    /// Who has the table fixed. As many as `info` names, without the rest of it.
    pub fn fixers(&self) -> Vec<OwnerId> {
        let fixed = self.fixed();
        let by = fixed.into_iter().flat_map(|fixed| fixed.by);
        by.map(|(owner, _)| owner).collect()
    }

    /// The heir, if there is one that lives.
    pub fn heir(&self) -> Option<OwnerId> {
        let heir = self.admin.lock().heir.as_ref().map(|(id, _)| *id)?;
        let catalog = self.catalog.upgrade()?;
        catalog.owners.is_alive(heir).then_some(heir)
    }

    /// Fixes the table for `who`, once more if they have it fixed already. Traversals need no fixed
    /// table; a fixed one remembers which keys were deleted, so that `next` goes on from them.
    /// `now` is what `info` reports.
    ///
    /// # Errors
    /// `NoTable`, `Access`: the right to read is needed.
    pub fn safe_fix(self: &Arc<Self>, who: OwnerId, now: FixTime) -> Result<(), Error> {
        self.check_read(who)?;
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        // `unlink` sets this before it asks who has the table fixed: no fixation is added behind
        // its back.
        if admin.gone {
            return Err(Error::NoTable);
        }
        // The owner's record lists the table, so that its end takes the fixation back.
        if self.fixation.fix(who, now) {
            catalog.owners.add_fixed(who, self);
        }
        self.follow_fixation(&admin);
        drop(admin);
        Ok(())
    }

    /// Takes one fixation of `who`'s back; nothing happens if they have none.
    ///
    /// # Errors
    /// `NoTable`, `Access`.
    pub fn safe_unfix(self: &Arc<Self>, who: OwnerId) -> Result<(), Error> {
        self.check_read(who)?;
        let catalog = self.catalog()?;
        let admin = self.admin.lock();
        if self.fixation.unfix(who, false) {
            catalog.owners.remove_fixed(who, self.id());
        }
        self.follow_fixation(&admin);
        drop(admin);
        Ok(())
    }
}

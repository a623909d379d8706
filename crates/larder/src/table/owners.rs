//! Owners: who tables belong to, and what happens to the tables when one ends.
//!
//! An owner is a number with a life. The host names owners (by a process's word, say) or lets the
//! engine name them. An owner's record keeps its tables and the tables it fixed, so that its end
//! costs what it had, not what there is.
//!
//! Locks are taken in this order: a table's `admin`, `passing`, then one owner's record; never two
//! records at once.

use super::Table;
use crate::ids::{ByNumber, OwnerId, TableId};
use larder_index::sync::Mutex;
use papaya::HashMap as Map;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// What an owner has.
#[derive(Default)]
struct Record {
    /// The owner has ended; nothing may be added any more.
    ended: bool,
    tables: HashMap<TableId, Arc<Table>, ByNumber>,
    fixed: HashMap<TableId, Arc<Table>, ByNumber>,
}

/// What an owner had when it ended.
pub(crate) struct Estate {
    /// Its tables.
    pub(crate) tables: Vec<Arc<Table>>,
    /// The tables it had fixed.
    pub(crate) fixed: Vec<Arc<Table>>,
}

/// All living owners.
pub(crate) struct Owners {
    records: Map<OwnerId, Arc<Mutex<Record>>, ByNumber>,
    /// Tables of owners that have ended, until they are passed on or dropped. A living
    /// table moves between the two under this lock alone, so that its holder sees each table.
    passing: Mutex<HashMap<TableId, Arc<Table>, ByNumber>>,
    next: AtomicU64,
}

/// Where ids that the engine names begin: far from any that a host is likely to use.
const FIRST: u64 = 1 << 62;

impl Default for Owners {
    fn default() -> Self {
        Owners {
            records: Map::default(),
            passing: Mutex::default(),
            next: AtomicU64::new(FIRST),
        }
    }
}

impl Owners {
    /// A new owner, named by the engine.
    pub(crate) fn register(&self) -> OwnerId {
        // Ordering: Relaxed; only the numbers' being different matters.
        let id = OwnerId::from_raw(self.next.fetch_add(1, Ordering::Relaxed));
        self.register_as(id);
        id
    }

    /// An owner named by the host; nothing happens if it lives already.
    pub(crate) fn register_as(&self, id: OwnerId) {
        // A number whose owner has ended lives again: `end` has removed its record, and this makes
        // another.
        if id.raw() != 0 {
            self.records.pin().get_or_insert_with(id, Default::default);
        }
    }

    /// Whether the owner lives.
    pub(crate) fn is_alive(&self, id: OwnerId) -> bool {
        self.records.pin().contains_key(&id)
    }

    /// Calls `f` with the record of a living owner.
    fn with<R>(&self, id: OwnerId, f: impl FnOnce(&mut Record) -> R) -> Option<R> {
        let record = self.records.pin().get(&id).cloned()?;
        let mut record = record.lock();
        // The record may have ended between the look-up and the lock. Nothing is added to one that
        // has: what it had has been taken already.
        if record.ended {
            return None;
        }
        Some(f(&mut record))
    }

    /// Notes that the owner has the table; false if it has ended.
    pub(crate) fn add_table(&self, id: OwnerId, table: &Arc<Table>) -> bool {
        self.with(id, |r| r.tables.insert(table.id(), Arc::clone(table)))
            .is_some()
    }

    /// Notes that the owner has the table no longer.
    pub(crate) fn remove_table(&self, id: OwnerId, table: TableId) {
        // The table's last reference may go here: outside the lock.
        drop(self.with(id, |r| r.tables.remove(&table)));
    }

    /// Notes that the owner has fixed the table; registers it if need be.
    pub(crate) fn add_fixed(&self, id: OwnerId, table: &Arc<Table>) {
        loop {
            self.register_as(id);
            // None if the owner ended since it was registered: it is registered again. 0 is nobody
            // and has no record, ever.
            let done = self.with(id, |r| r.fixed.insert(table.id(), Arc::clone(table)));
            if done.is_some() || id.raw() == 0 {
                return;
            }
        }
    }

    /// Notes that the owner has the table fixed no longer.
    pub(crate) fn remove_fixed(&self, id: OwnerId, table: TableId) {
        drop(self.with(id, |r| r.fixed.remove(&table)));
    }

    /// Passes a table from one owner to another; false if that one has ended.
    pub(crate) fn pass(&self, table: &Arc<Table>, from: OwnerId, to: OwnerId) -> bool {
        let _passing = self.passing.lock();
        // Added before it is removed: `to` may have ended, and then `from` still has the table.
        let taken = self.add_table(to, table);
        if taken {
            self.remove_table(from, table.id());
        }
        taken
    }

    /// A table of an ended owner has been passed on or dropped.
    pub(crate) fn passed(&self, table: TableId) {
        let gone = self.passing.lock().remove(&table);
        drop(gone);
    }

    /// All tables. None that lives all the while is missing; one may come twice.
    pub(crate) fn all_tables(&self) -> Vec<Arc<Table>> {
        let passing = self.passing.lock();
        // Under `passing`, no table leaves a record but for an end of the table itself. One that an
        // heir has got is in the heir's record before it leaves `passing`, so it is met at least
        // once.
        let mut tables: Vec<_> = passing.values().cloned().collect();
        for record in self.records.pin().values() {
            tables.extend(record.lock().tables.values().cloned());
        }
        tables
    }

    /// The owner's tables.
    pub(crate) fn tables_of(&self, id: OwnerId) -> Vec<Arc<Table>> {
        self.with(id, |r| r.tables.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Ends the owner and gives what it had; None if it was not alive. From here on nothing can be
    /// added to it.
    pub(crate) fn end(&self, id: OwnerId) -> Option<Estate> {
        let record = self.records.pin().get(&id).cloned()?;
        // Both locks are held until the tables are in `passing`: there is no moment at which a
        // table is in neither.
        let mut passing = self.passing.lock();
        let mut record = record.lock();
        // Of several threads that end the owner, one gets the estate.
        if std::mem::replace(&mut record.ended, true) {
            return None;
        }
        self.records.pin().remove(&id);
        let tables = std::mem::take(&mut record.tables);
        passing.extend(tables.iter().map(|(id, table)| (*id, Arc::clone(table))));
        let fixed = std::mem::take(&mut record.fixed);
        Some(Estate {
            tables: tables.into_values().collect(),
            fixed: fixed.into_values().collect(),
        })
    }
}

//! Owners of tables, and what happens to their tables when they end.
//!
//! An owner is a number with a lifetime. The host chooses the number (such as the word of a
//! process), or lets the engine choose one. The record of an owner has its tables and the tables
//! that it has fixed. So the cost of its end depends on these, and not on the number of all tables.
//!
//! The records are in shards, each under a lock. An owner lives as long as its shard has its
//! record.
//!
//! Locks are taken in this order: a table's `admin`, `passing`, then one shard. No thread holds two
//! shards at once. No reference to a table is dropped under the lock of a shard.

use super::EngineTable;
use crate::ids::{ByNumber, OwnerId, TableId};
use crossbeam_utils::CachePadded;
use larder_index::sync::Mutex;
use std::array::from_fn;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The record of an owner.
#[derive(Default)]
struct Record {
    tables: HashMap<TableId, Arc<EngineTable>, ByNumber>,
    fixed: HashMap<TableId, Arc<EngineTable>, ByNumber>,
}

/// The estate of an owner that has ended.
pub(crate) struct Estate {
    /// Its tables.
    pub(crate) tables: Vec<Arc<EngineTable>>,
    /// The tables that it had fixed.
    pub(crate) fixed: Vec<Arc<EngineTable>>,
}

/// Some of the records, under one lock.
type OwnerShard = Mutex<HashMap<OwnerId, Record, ByNumber>>;

/// The number of shards: enough that threads with owners of their own rarely use the same one.
const SHARDS: usize = 32;

/// All living owners.
pub(crate) struct Owners {
    shards: Box<[CachePadded<OwnerShard>; SHARDS]>,
    /// The tables of owners that have ended, until they are passed on or dropped. The tables of an
    /// owner move here under this lock only. So a thread that holds it sees each table.
    passing: Mutex<HashMap<TableId, Arc<EngineTable>, ByNumber>>,
    next: AtomicU64,
}

/// The first number that the engine chooses: far from any that a host is likely to use.
const FIRST: u64 = 1 << 62;

impl Default for Owners {
    fn default() -> Self {
        Owners {
            shards: Box::new(from_fn(|_| CachePadded::default())),
            passing: Mutex::default(),
            next: AtomicU64::new(FIRST),
        }
    }
}

impl Owners {
    /// Makes an owner with a new number.
    pub(crate) fn register(&self) -> OwnerId {
        // Ordering: Relaxed; only the numbers' being different matters.
        let id = OwnerId::from_raw(self.next.fetch_add(1, Ordering::Relaxed));
        self.register_as(id);
        id
    }

    /// Makes an owner with a number of the host, if it doesn't live already.
    pub(crate) fn register_as(&self, id: OwnerId) {
        // A number whose owner has ended may be used again: `end` has removed its record, and this
        // makes another one.
        if id.raw() != 0 {
            self.shard(id).lock().entry(id).or_default();
        }
    }

    /// Whether the owner lives.
    pub(crate) fn is_alive(&self, id: OwnerId) -> bool {
        self.shard(id).lock().contains_key(&id)
    }

    fn shard(&self, id: OwnerId) -> &OwnerShard {
        // The map of a shard takes the bits at both ends of the hash.
        let hash = ByNumber::default().hash_one(id) >> 32;
        &self.shards[hash as usize % SHARDS]
    }

    /// Calls `f` with the record of a living owner.
    fn with<R>(&self, id: OwnerId, f: impl FnOnce(&mut Record) -> R) -> Option<R> {
        self.shard(id).lock().get_mut(&id).map(f)
    }

    /// Records that the owner has the table. Returns `false` if the owner has ended.
    pub(crate) fn add_table(&self, id: OwnerId, table: &Arc<EngineTable>) -> bool {
        self.with(id, |r| r.tables.insert(table.id(), Arc::clone(table)))
            .is_some()
    }

    /// Records that the owner doesn't have the table any more.
    pub(crate) fn remove_table(&self, id: OwnerId, table: TableId) {
        // This may drop the last reference to the table, so do it without the lock.
        drop(self.with(id, |r| r.tables.remove(&table)));
    }

    /// Records that the owner has fixed the table. Registers the owner if necessary.
    pub(crate) fn add_fixed(&self, id: OwnerId, table: &Arc<EngineTable>) {
        loop {
            self.register_as(id);
            // `None` if the owner has ended since it was registered. Register it again. 0 stands
            // for nobody, and never has a record.
            let done = self.with(id, |r| r.fixed.insert(table.id(), Arc::clone(table)));
            if done.is_some() || id.raw() == 0 {
                return;
            }
        }
    }

    /// Records that the owner doesn't fix the table any more.
    pub(crate) fn remove_fixed(&self, id: OwnerId, table: TableId) {
        drop(self.with(id, |r| r.fixed.remove(&table)));
    }

    /// Passes a table from one owner to another. Returns `false` if the latter has ended.
    pub(crate) fn pass(&self, table: &Arc<EngineTable>, from: OwnerId, to: OwnerId) -> bool {
        let _passing = self.passing.lock();
        // Add it before it is removed: `to` may have ended, and then `from` still has the table.
        let taken = self.add_table(to, table);
        if taken {
            self.remove_table(from, table.id());
        }
        taken
    }

    /// Called when a table of an ended owner was passed on or dropped.
    pub(crate) fn passed(&self, table: TableId) {
        let gone = self.passing.lock().remove(&table);
        drop(gone);
    }

    /// Returns all tables. No table that lives throughout is missing, but one may occur twice.
    pub(crate) fn all_tables(&self) -> Vec<Arc<EngineTable>> {
        let passing = self.passing.lock();
        // While `passing` is held, a table is only removed from a record if it is dropped. A table
        // that an heir gets is in the heir's record before it is removed from `passing`. So it is
        // found at least once.
        let mut tables: Vec<_> = passing.values().cloned().collect();
        for shard in self.shards.iter() {
            let records = shard.lock();
            let owned = records.values().flat_map(|record| record.tables.values());
            tables.extend(owned.cloned());
        }
        tables
    }

    /// The owner's tables.
    pub(crate) fn tables_of(&self, id: OwnerId) -> Vec<Arc<EngineTable>> {
        self.with(id, |r| r.tables.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Ends the owner and returns its estate; `None` if it didn't live. From here on nothing can be
    /// added to it.
    pub(crate) fn end(&self, id: OwnerId) -> Option<Estate> {
        // Hold the lock until the tables are in `passing`, so that `all_tables` doesn't miss them.
        let mut passing = self.passing.lock();
        // If several threads end the owner, one of them gets the estate.
        let Record { tables, fixed } = self.shard(id).lock().remove(&id)?;
        passing.extend(tables.iter().map(|(id, table)| (*id, Arc::clone(table))));
        Some(Estate {
            tables: tables.into_values().collect(),
            fixed: fixed.into_values().collect(),
        })
    }
}

//! Owners of tables, and what happens to their tables when they end.
//!
//! An owner is a number with a lifetime. The host chooses the number (such as the word of a
//! process), or lets the engine choose one. The record of an owner has its tables and the tables
//! that it has fixed. So the cost of its end depends on these, and not on the number of all tables.
//!
//! The record of an owner that ends becomes its estate as it is, so nothing is done for each of its
//! tables under a lock. The tables are in the order in which they are settled ([`SettleOrder`]).
//!
//! The records are in shards, each under a lock. An owner lives as long as its shard has its
//! record.
//!
//! Locks are taken in this order: a table's `admin`, `passing`, then one shard. No thread holds two
//! shards at once. No reference to a table is dropped under the lock of a shard.

use super::{Admin, EngineTable};
use crate::ids::{ByNumber, OwnerId, TableId};
use crossbeam_utils::CachePadded;
use larder_index::sync::Mutex;
use std::array::from_fn;
use std::collections::btree_map::{BTreeMap, Range};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Which of an owner's tables are settled first when it ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SettleOrder {
    /// Those with heirs, which wait for a message.
    Heir,
    /// The named ones, whose names others may want.
    Named,
    Other,
}

/// The sort key of a table among those of its owner: the order in which they are settled. It
/// changes under the table's `admin` only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SettleKey(SettleOrder, TableId);

impl SettleKey {
    pub(crate) fn of(table: &EngineTable, admin: &Admin) -> Self {
        let order = match admin.heir {
            Some(_) => SettleOrder::Heir,
            None if table.is_named() => SettleOrder::Named,
            None => SettleOrder::Other,
        };
        SettleKey(order, table.id())
    }
}

/// The tables of an owner.
#[derive(Default)]
struct OwnedTables {
    tables: BTreeMap<SettleKey, Arc<EngineTable>>,
    fixed: BTreeMap<TableId, Arc<EngineTable>>,
}

/// The estate of an owner that has ended. It doesn't change while it is settled.
pub(crate) struct Estate {
    pub(crate) owner: OwnerId,
    record: OwnedTables,
}

/// How far an estate is settled: the last of the fixed tables and of the tables.
#[derive(Default)]
pub(crate) struct Settled(Option<TableId>, Option<SettleKey>);

impl Estate {
    /// Calls `unfix` with the next tables that the owner had fixed, and `pass` with the next of its
    /// own, in the order of their turns: at most `most` of each. Returns whether these were all.
    pub(crate) fn settle(
        &self,
        settled: &mut Settled,
        most: usize,
        mut unfix: impl FnMut(&Arc<EngineTable>),
        mut pass: impl FnMut(&Arc<EngineTable>),
    ) -> bool {
        let Settled(fixed, tables) = settled;
        let mut left = [most; 2];
        for (id, table) in after(&self.record.fixed, *fixed).take(most) {
            unfix(table);
            *fixed = Some(*id);
            left[0] -= 1;
        }
        for (key, table) in after(&self.record.tables, *tables).take(most) {
            pass(table);
            *tables = Some(*key);
            left[1] -= 1;
        }
        // If fewer than `most` were left of both kinds, none is left now.
        left.iter().all(|&left| left > 0)
    }
}

/// What is after this key, or all of it.
fn after<K: Ord, V>(map: &BTreeMap<K, V>, key: Option<K>) -> Range<'_, K, V> {
    map.range((
        key.map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Unbounded,
    ))
}

/// Some of the records, under one lock.
type OwnerShard = Mutex<HashMap<OwnerId, OwnedTables, ByNumber>>;

/// The number of shards: enough that threads with owners of their own rarely use the same one.
const SHARDS: usize = 32;

/// All living owners.
pub(crate) struct Owners {
    shards: Box<[CachePadded<OwnerShard>; SHARDS]>,
    /// The estates of owners that have ended, by their addresses, until all of their tables are
    /// passed on or dropped. The tables of an owner move here under this lock only. So a thread
    /// that holds it sees each table.
    passing: Mutex<HashMap<usize, Arc<Estate>, ByNumber>>,
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
    fn with<R>(&self, id: OwnerId, f: impl FnOnce(&mut OwnedTables) -> R) -> Option<R> {
        self.shard(id).lock().get_mut(&id).map(f)
    }

    /// Records that the owner has the table, under this key. Returns `false` if it has ended.
    pub(crate) fn add_table(&self, id: OwnerId, key: SettleKey, table: &Arc<EngineTable>) -> bool {
        self.with(id, |r| r.tables.insert(key, Arc::clone(table)))
            .is_some()
    }

    /// Records that the owner doesn't have the table under this key any more.
    pub(crate) fn remove_table(&self, id: OwnerId, key: SettleKey) {
        // This may drop the last reference to the table, so do it without the lock.
        drop(self.with(id, |r| r.tables.remove(&key)));
    }

    /// Records that the owner has the table under another key.
    pub(crate) fn move_table(&self, id: OwnerId, from: SettleKey, to: SettleKey) {
        // An owner that has ended keeps the key in its estate. There it only decides how soon the
        // table is settled.
        self.with(id, |r| {
            if let Some(table) = r.tables.remove(&from) {
                r.tables.insert(to, table);
            }
        });
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

    /// Passes a table from one owner to another, under the same key. Returns `false` if the latter
    /// has ended.
    pub(crate) fn pass(
        &self,
        table: &Arc<EngineTable>,
        key: SettleKey,
        from: OwnerId,
        to: OwnerId,
    ) -> bool {
        let _passing = self.passing.lock();
        // Add it before it is removed: `to` may have ended, and then `from` still has the table.
        let taken = self.add_table(to, key, table);
        if taken {
            self.remove_table(from, key);
        }
        taken
    }

    /// Returns all tables, or `None` if there are more than `most` of them and of owners. No table
    /// that lives throughout is missing. One may occur twice, and dead ones may be among them.
    pub(crate) fn all_tables(&self, most: usize) -> Option<Vec<Arc<EngineTable>>> {
        let mut tables = Vec::new();
        let mut left = most;
        let passing = self.passing.lock();
        // While `passing` is held, a table is only removed from a record if it is dropped. A table
        // that an heir gets is in the heir's record before its estate is removed from `passing`. So
        // it is found at least once.
        for estate in passing.values() {
            left = left.checked_sub(1 + estate.record.tables.len())?;
            tables.extend(estate.record.tables.values().cloned());
        }
        for shard in self.shards.iter() {
            for record in shard.lock().values() {
                left = left.checked_sub(1 + record.tables.len())?;
                tables.extend(record.tables.values().cloned());
            }
        }
        Some(tables)
    }

    /// The owner's tables.
    pub(crate) fn tables_of(&self, id: OwnerId) -> Vec<Arc<EngineTable>> {
        self.with(id, |r| r.tables.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Ends the owner and returns its estate; `None` if it didn't live. From here on nothing can be
    /// added to it. Call [`settled`](Self::settled) at the end. O(1).
    pub(crate) fn end(&self, id: OwnerId) -> Option<Arc<Estate>> {
        // Hold the lock until the estate is in `passing`, so that `all_tables` doesn't miss its
        // tables.
        let mut passing = self.passing.lock();
        // If several threads end the owner, one of them gets the estate.
        let record = self.shard(id).lock().remove(&id)?;
        let estate = Arc::new(Estate { owner: id, record });
        passing.insert(Arc::as_ptr(&estate).addr(), Arc::clone(&estate));
        Some(estate)
    }

    /// Called when all tables of an estate were passed on or dropped.
    pub(crate) fn settled(&self, estate: &Arc<Estate>) {
        let removed = self.passing.lock().remove(&Arc::as_ptr(estate).addr());
        // The caller still has it. So no table is dropped here.
        drop(removed);
    }
}

//! The engine: it creates tables, finds them by name, and passes them on when their owner ends.
//!
//! Locks are those of the catalog (`table/catalog.rs`): `admin` of a table before an owner's
//! record.

use crate::error::Error;
use crate::ids::{OwnerId, TableId};
use crate::ops::expirer;
use crate::options::Options;
use crate::reclaim::reaper;
use crate::table::{Catalog, EngineTable, Estate, SettleKey, Settled};
use larder_index::Guard;
use larder_term::{Atom, Term};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The number of tables, and of fixations, that are processed at once when their owner ends. The
/// reaper processes the others.
const AT_ONCE: usize = 256;

/// The number of those that the reaper processes between two readings of the clock.
const BIT: usize = 16;

/// The number of the next table of any engine: a transaction may be on tables of several.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The callbacks to the host. The engine calls them on any thread, including that of the reaper,
/// and holds none of its locks meanwhile.
pub trait Host: Send + Sync {
    /// `table` has passed from `from`, which has ended, to its heir `to`. `data` is the data of the
    /// message to the heir.
    fn transfer(&self, table: &Arc<EngineTable>, from: OwnerId, to: OwnerId, data: &Term);
}

/// A host that ignores all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn transfer(&self, _: &Arc<EngineTable>, _: OwnerId, _: OwnerId, _: &Term) {}
}

/// An engine: a collection of tables and owners. Clones are handles of the same engine. When the
/// last handle is dropped, so are the tables to which there is no other reference.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// Memory that belongs to no table; see [`Engine::memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The bytes of dropped tables that are not freed yet.
    pub waiting: usize,
    /// The free bytes that are kept for future leaves.
    pub kept: usize,
}

/// The shared state of all handles of an engine.
struct Inner {
    catalog: Arc<Catalog>,
    host: Arc<dyn Host>,
}

fn next_id() -> TableId {
    // Ordering: Relaxed. The numbers must differ, and nothing else depends on them.
    TableId(NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Engine {
    /// Makes an engine without tables.
    pub fn new(host: Arc<dyn Host>) -> Self {
        larder_index::on_garbage(reaper::wake);
        Engine(Arc::new(Inner {
            catalog: Arc::default(),
            host,
        }))
    }

    /// Makes a new owner. O(1).
    pub fn register(&self) -> OwnerId {
        self.0.catalog.owners.register()
    }

    /// Makes the owner with this number live, if it doesn't already. 0 stands for nobody, and never
    /// lives. O(1).
    pub fn register_as(&self, raw: u64) -> OwnerId {
        let id = OwnerId::from_raw(raw);
        self.0.catalog.owners.register_as(id);
        id
    }

    /// Whether the owner lives.
    pub fn is_alive(&self, owner: OwnerId) -> bool {
        self.0.catalog.owners.is_alive(owner)
    }

    /// Ends an owner, if it lives. Its fixations of tables end. Each of its tables goes to its
    /// heir, if it has one that lives, or is dropped. The first 256 tables are processed here:
    /// those with heirs first, then the named ones; and the first 256 fixations. The reaper
    /// processes the others soon, and [`settle`](Self::settle) one of them at once.
    pub fn down(&self, owner: OwnerId) {
        let Some(estate) = self.0.catalog.owners.end(owner) else {
            return;
        };
        // From here on nothing is added to the owner's record. Heirs are informed, and names are
        // free again, before the call returns, unless there are very many tables.
        let mut settled = Settled::default();
        if self.settle_some(&estate, &mut settled, AT_ONCE) {
            return;
        }
        let engine = self.clone();
        reaper::urgent_bits(move || engine.settle_some(&estate, &mut settled, BIT));
    }

    /// Undoes the next fixations of an ended owner, and passes on or drops its next tables: at most
    /// `most` of each. Returns whether these were all.
    fn settle_some(&self, estate: &Arc<Estate>, settled: &mut Settled, most: usize) -> bool {
        let owner = estate.owner;
        let unfix = |table: &Arc<EngineTable>| table.end_fixation(owner);
        let pass = |table: &Arc<EngineTable>| self.inherit(table, owner);
        let all = estate.settle(settled, most, unfix, pass);
        if all {
            // Each table is in its heir's record, or dead, before the estate is removed from the
            // list of estates. So `all_tables` never misses one.
            self.0.catalog.owners.settled(estate);
        }
        all
    }

    /// Does now what [`down`](Self::down) may have left to the reaper for this table. If its owner
    /// has ended, it goes to its heir or is dropped. Fixations of owners that have ended end.
    pub fn settle(&self, table: &Arc<EngineTable>) {
        let owner = table.owner();
        // The owner was read without a lock. `inherit` checks under `admin` whether the table still
        // belongs to it.
        if !self.is_alive(owner) {
            self.inherit(table, owner);
        }
        for fixer in table.fixers() {
            if !self.is_alive(fixer) {
                table.end_fixation(fixer);
            }
        }
    }

    /// Passes a table of an ended owner on, or drops it.
    fn inherit(&self, table: &Arc<EngineTable>, from: OwnerId) {
        let mut admin = table.admin.lock();
        // The table was dropped, given away, or processed by `settle`, since the estate was taken.
        // It no longer belongs to this owner.
        if admin.dropped || table.owner() != from {
            return;
        }
        // `admin` is held, so no other thread drops the table, or gives it away.
        let key = SettleKey::of(table, &admin);
        let heir = admin.heir.take();
        if let Some((to, data)) = heir {
            // An heir that has ended gets nothing. An heir that ends from here on finds the table
            // in its record, and waits for `admin`.
            if to != from && self.0.catalog.owners.add_table(to, key, table) {
                table.set_owner(to);
                admin.heir = Some((to, data.clone()));
                // Call the host without a lock.
                drop(admin);
                self.0.host.transfer(table, from, to, &data);
                return;
            }
        }
        self.0.catalog.unlink(table, admin);
    }

    /// Creates a table. O(1).
    ///
    /// # Errors
    /// `BadOption`, `UnknownStructure`, `AlreadyExists` (a named table whose name is in use),
    /// `NoOwner` (the owner does not live).
    pub fn create(&self, mut options: Options, owner: OwnerId) -> Result<Arc<EngineTable>, Error> {
        options.check()?;
        options.call_by_name();
        let (named, name, bounded) = (options.named, options.name, options.bounds.is_some());
        if bounded {
            options.count_for_limits();
        }
        // The table is in the catalog, and its owner knows it, when this returns.
        let table = self.add(named, name, owner, |id, catalog| {
            EngineTable::make(id, options, owner, catalog)
        })?;
        if bounded {
            // Only tables with bounds have anything to expire or to evict.
            expirer::watch(&table);
        }
        Ok(table)
    }

    /// Makes a table that is in no list.
    pub(crate) fn unlisted(
        &self,
        make: impl FnOnce(TableId, Weak<Catalog>) -> EngineTable,
    ) -> Arc<EngineTable> {
        let id = next_id();
        Arc::new(make(id, Arc::downgrade(&self.0.catalog)))
    }

    /// Makes a table with `make`, and lists it.
    pub(crate) fn add(
        &self,
        named: bool,
        name: Atom,
        owner: OwnerId,
        make: impl FnOnce(TableId, Weak<Catalog>) -> EngineTable,
    ) -> Result<Arc<EngineTable>, Error> {
        let id = next_id();
        let table = Arc::new(make(id, Arc::downgrade(&self.0.catalog)));
        // Hold the lock until the table is in all lists. Another thread that finds the table by its
        // name meanwhile, and wants to drop or rename it, waits.
        let admin = table.admin.lock();
        if named {
            // The name may be that of a table whose owner has ended, and which the reaper has not
            // processed yet.
            if let Some(table) = self.find(name) {
                self.settle(&table);
            }
            let guard = larder_index::pin();
            // Take the name first. The table is in no list yet, so if the name is in use, nothing
            // has to be undone.
            if !self.0.catalog.registry.take_name(name, &table, &guard) {
                return Err(Error::AlreadyExists);
            }
        }
        // An owner that ends from here on finds the table in its record. If it has ended already,
        // `unlink` frees the name that was taken.
        if !self
            .0
            .catalog
            .owners
            .add_table(owner, SettleKey::of(&table, &admin), &table)
        {
            self.0.catalog.unlink(&table, admin);
            return Err(Error::NoOwner);
        }
        drop(admin);
        Ok(table)
    }

    /// Finds the table of this name. Takes no lock. O(1).
    pub fn find(&self, name: Atom) -> Option<Arc<EngineTable>> {
        self.with_named(name, Arc::clone)
    }

    /// Calls `f` with the table of this name. Takes no lock and changes no reference count, so it
    /// is meant for hot paths. `f` must be short.
    pub fn with_named<R>(&self, name: Atom, f: impl FnOnce(&Arc<EngineTable>) -> R) -> Option<R> {
        let guard = larder_index::pin();
        self.0.catalog.registry.named(name, &guard).map(f)
    }

    /// Finds the table of this name. The reference is valid while the guard lives. Takes no lock
    /// and changes no reference count. O(1).
    #[inline]
    pub fn named<'g>(&self, name: Atom, guard: &'g Guard) -> Option<&'g Arc<EngineTable>> {
        self.0.catalog.registry.named(name, guard)
    }

    /// Returns all tables, in the order of their creation. Linear in the number of tables and of
    /// owners. A table that is created or dropped meanwhile may be among them or not. One that is
    /// passed on meanwhile is.
    pub fn all(&self) -> Vec<Arc<EngineTable>> {
        self.all_of(usize::MAX).unwrap_or_default()
    }

    /// Returns all tables, like [`all`](Self::all), if there are at most `most` of them and of
    /// owners. Otherwise returns `None`, after as much work as for so many.
    pub fn all_of(&self, most: usize) -> Option<Vec<Arc<EngineTable>>> {
        let mut tables = self.0.catalog.owners.all_tables(most)?;
        tables.retain(|table| table.is_alive());
        tables.sort_unstable_by_key(|table| table.id());
        tables.dedup_by_key(|table| table.id());
        Some(tables)
    }

    /// Returns the tables of an owner.
    pub fn owned_by(&self, owner: OwnerId) -> Vec<Arc<EngineTable>> {
        self.0.catalog.owners.tables_of(owner)
    }

    /// The approximate number of bytes of dropped tables that are not freed yet, in all engines of
    /// the process. They are freed with a quarter of a core, and faster if more than a quarter of a
    /// gigabyte is left. O(1).
    pub fn reaper_backlog(&self) -> usize {
        reaper::backlog()
    }

    /// Memory that no longer belongs to a table, or doesn't yet, in all engines of the process.
    /// Both numbers are read while other threads work. O(1).
    pub fn memory(&self) -> Memory {
        Memory {
            waiting: reaper::bytes_waiting(),
            kept: larder_index::bytes_kept(),
        }
    }

    /// Waits until the memory of all dropped tables is freed, at most for `timeout`. Returns
    /// whether that was reached. For tests and orderly shutdowns. The reaper serves all engines of
    /// the process, so this also waits for the work of others.
    pub fn reaper_idle(&self, timeout: Duration) -> bool {
        reaper::idle(timeout)
    }
}

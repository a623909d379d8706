//! The engine: makes tables, finds them by name, and passes them on when their owner ends.
//!
//! Locks are those of the catalog (`table/catalog.rs`): `admin` of a table before an owner's
//! record.

use crate::error::Error;
use crate::ids::{OwnerId, TableId};
use crate::ops::expirer;
use crate::options::Options;
use crate::reclaim::reaper;
use crate::table::{Catalog, Table};
use larder_index::Guard;
use larder_term::{Atom, Term};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Tables that an owner's end deals with at once; the reaper deals with the others.
const AT_ONCE: usize = 256;

/// What the engine calls in its host: on any thread, the reaper's included, with no lock of the
/// engine's held.
pub trait Host: Send + Sync {
    /// `table` has passed from `from`, which has ended, to its heir `to`. `data` is what the heir's
    /// message has.
    fn transfer(&self, table: &Arc<Table>, from: OwnerId, to: OwnerId, data: &Term);
}

/// A host that ignores all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn transfer(&self, _: &Arc<Table>, _: OwnerId, _: OwnerId, _: &Term) {}
}

/// An engine: a world of tables and owners. Clones are handles of the same engine. When the last
/// goes, so do the tables that nobody holds.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// Memory that is no table's; see [`Engine::memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of what was dropped and is not freed yet.
    pub waiting: usize,
    /// Free bytes that are kept for leaves to come.
    pub kept: usize,
}

/// What all handles of an engine share.
struct Inner {
    catalog: Arc<Catalog>,
    host: Arc<dyn Host>,
    next: AtomicU64,
}

impl Engine {
    /// An engine without tables.
    pub fn new(host: Arc<dyn Host>) -> Self {
        larder_index::on_garbage(reaper::wake);
        Engine(Arc::new(Inner {
            catalog: Arc::default(),
            host,
            next: AtomicU64::new(1),
        }))
    }

    /// A new living owner. O(1).
    pub fn register(&self) -> OwnerId {
        self.0.catalog.owners.register()
    }

    /// Makes the owner with this number live; nothing happens if it does. 0 is nobody and never
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

    /// Ends an owner: what it fixed is fixed by it no longer; each of its tables goes to its heir,
    /// if it has one that lives, or dies. The first 256 tables are dealt with here, the ones with
    /// heirs first, then the ones with names; the rest by the reaper, soon. Nothing happens if the
    /// owner does not live.
    pub fn down(&self, owner: OwnerId) {
        let Some(estate) = self.0.catalog.owners.end(owner) else {
            return;
        };
        // Nobody adds anything to the owner's record from here on.
        for table in estate.fixed {
            let admin = table.admin.lock();
            // The owner may have unfixed the table, or the table may have died, since the estate
            // was taken: then there is nothing to take back.
            table.fixation.unfix(owner, true);
            table.follow_fixation(&admin);
        }
        // Heirs are told, and names are free again, before the call returns, unless there are very
        // many.
        let mut tables = VecDeque::from(estate.tables);
        tables
            .make_contiguous()
            .sort_by_cached_key(|t| (t.heir().is_none(), !t.is_named(), t.id()));
        self.settle(owner, &mut tables, AT_ONCE);
        if !tables.is_empty() {
            let engine = self.clone();
            reaper::call(move || engine.settle(owner, &mut tables, usize::MAX));
        }
    }

    fn settle(&self, from: OwnerId, tables: &mut VecDeque<Arc<Table>>, most: usize) {
        for table in tables.drain(..most.min(tables.len())) {
            // The table is in its heir's record, or dead, before it leaves `passing`: `all_tables`
            // never misses it.
            self.inherit(&table, from);
            self.0.catalog.owners.passed(table.id());
        }
    }

    /// Passes a table of an ended owner on, or drops it.
    fn inherit(&self, table: &Arc<Table>, from: OwnerId) {
        let mut admin = table.admin.lock();
        // The table was dropped, given away, or dealt with by `settle_name`, since the estate was
        // taken: it is no longer this owner's to pass on.
        if admin.gone || table.owner() != from {
            return;
        }
        // Under `admin`: nobody else drops the table, or gives it away.
        let heir = admin.heir.take();
        if let Some((to, data)) = heir {
            // An heir that has ended takes nothing. One that ends from here on finds the table in
            // its record, and waits for `admin`.
            if to != from && self.0.catalog.owners.add_table(to, table) {
                table.set_owner(to);
                admin.heir = Some((to, data.clone()));
                // The host is called with no lock held.
                drop(admin);
                self.0.host.transfer(table, from, to, &data);
                return;
            }
        }
        self.0.catalog.unlink(table, admin);
    }

    /// Makes a table. O(1).
    ///
    /// # Errors
    /// `BadOption`, `UnknownStructure`, `AlreadyExists` (a named table whose name is in use),
    /// `NoOwner` (the owner does not live).
    pub fn create(&self, mut options: Options, owner: OwnerId) -> Result<Arc<Table>, Error> {
        options.check()?;
        options.call_by_name();
        let (named, name, bounded) = (options.named, options.name, options.bounds.is_some());
        if bounded {
            options.count_for_limits();
        }
        let table = self.add((named, name), owner, |id, catalog| {
            Table::make(id, options, owner, catalog)
        })?;
        if bounded {
            expirer::watch(&table);
        }
        Ok(table)
    }

    /// A table that is in no list.
    pub(crate) fn unlisted(
        &self,
        make: impl FnOnce(TableId, Weak<Catalog>) -> Table,
    ) -> Arc<Table> {
        // Ordering: Relaxed, as in `add`.
        let id = TableId(self.0.next.fetch_add(1, Ordering::Relaxed));
        Arc::new(make(id, Arc::downgrade(&self.0.catalog)))
    }

    /// Lists a new table, which `make` makes.
    pub(crate) fn add(
        &self,
        (named, name): (bool, Atom),
        owner: OwnerId,
        make: impl FnOnce(TableId, Weak<Catalog>) -> Table,
    ) -> Result<Arc<Table>, Error> {
        // Ordering: Relaxed; only the numbers' being different matters.
        let id = TableId(self.0.next.fetch_add(1, Ordering::Relaxed));
        let table = Arc::new(make(id, Arc::downgrade(&self.0.catalog)));
        // Held until the table is in all lists: whoever finds it by its name meanwhile, and wants
        // to drop or rename it, waits.
        let admin = table.admin.lock();
        if named {
            self.settle_name(name);
            let guard = larder_index::pin();
            // The name comes first: the table is in no list yet, and a refusal leaves nothing to
            // undo.
            if !self.0.catalog.registry.take_name(name, &table, &guard) {
                return Err(Error::AlreadyExists);
            }
        }
        // An owner that ends from here on finds the table in its record. If it has ended already,
        // `unlink` frees the name that was taken.
        if !self.0.catalog.owners.add_table(owner, &table) {
            self.0.catalog.unlink(&table, admin);
            return Err(Error::NoOwner);
        }
        drop(admin);
        Ok(table)
    }

    /// If the name belongs to a table whose owner has ended and which the reaper has not come to
    /// yet, deals with that table now.
    fn settle_name(&self, name: Atom) {
        if let Some(table) = self.find(name) {
            let owner = table.owner();
            // Found without a lock: `inherit` looks again, under `admin`, whether the table is this
            // owner's.
            if !self.is_alive(owner) {
                self.inherit(&table, owner);
            }
        }
    }

    /// The table of this name. Takes no lock. O(1).
    pub fn find(&self, name: Atom) -> Option<Arc<Table>> {
        self.with_named(name, Arc::clone)
    }

    /// Calls `f` with the table of this name. Takes no lock and touches no reference count: the way
    /// for hot paths. `f` must be short.
    pub fn with_named<R>(&self, name: Atom, f: impl FnOnce(&Arc<Table>) -> R) -> Option<R> {
        let guard = larder_index::pin();
        self.0.catalog.registry.named(name, &guard).map(f)
    }

    /// The table of this name, for as long as the guard lives. Takes no lock and touches no
    /// reference count. O(1).
    #[inline]
    pub fn named<'g>(&self, name: Atom, guard: &'g Guard) -> Option<&'g Arc<Table>> {
        self.0.catalog.registry.named(name, guard)
    }

    /// Every table there is, in the order in which they were made. Linear in the number of tables
    /// and of owners. A table made or dropped meanwhile may be among them or not; one that is
    /// passed on meanwhile is.
    pub fn all(&self) -> Vec<Arc<Table>> {
        let mut tables = self.0.catalog.owners.all_tables();
        tables.retain(|table| table.is_alive());
        tables.sort_unstable_by_key(|table| table.id());
        tables.dedup_by_key(|table| table.id());
        tables
    }

    /// The tables of an owner.
    pub fn owned_by(&self, owner: OwnerId) -> Vec<Arc<Table>> {
        self.0.catalog.owners.tables_of(owner)
    }

    /// Bytes of dropped tables that are not freed yet, about, in all engines of the program. Memory
    /// comes back at a quarter of a core's pace, faster when more than a quarter of a gigabyte is
    /// left. O(1).
    pub fn reaper_backlog(&self) -> usize {
        reaper::backlog()
    }

    /// Memory that is no table's any more, or not yet, in all engines of the program. Both are
    /// figures of a moment, while others work. O(1).
    pub fn memory(&self) -> Memory {
        Memory {
            waiting: reaper::bytes_waiting(),
            kept: larder_index::bytes_kept(),
        }
    }

    /// Waits until everything dropped is freed, at most `timeout`; whether that came about. For
    /// tests and orderly ends. The reaper serves all engines of the program: work of others is
    /// waited for too.
    pub fn reaper_idle(&self, timeout: Duration) -> bool {
        reaper::idle(timeout)
    }
}

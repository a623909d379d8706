//! The engine: makes tables, finds them, and carries out what happens to a table as a whole:
//! rename, give away, inherit, drop.
//!
//! Locks: a table's `admin` guards its place in the lists (names, ids, its owner's record) and is
//! taken before an owner's record. Nothing that reads or writes objects takes either.

use crate::error::Error;
use crate::options::{Access, Options};
use crate::owner::{OwnerId, Owners};
use crate::reaper;
use crate::registry::Registry;
use crate::table::{Admin, Table, TableId, DEAD};
use larder_index::Guard;
use larder_term::{Atom, Term};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Tables that an owner's end deals with at once; the reaper deals with the others.
const AT_ONCE: usize = 256;

/// What the engine tells its host. Called from whatever thread it happens on, the reaper's
/// included, with no lock of the engine's held.
pub trait Door: Send + Sync {
    /// `table` has passed from `from`, which has ended, to its heir `to`. `data` is what the heir
    /// was to be told.
    fn transfer(&self, table: &Arc<Table>, from: OwnerId, to: OwnerId, data: &Term);
}

/// A door that wants to know nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDoor;

impl Door for NoDoor {
    fn transfer(&self, _: &Arc<Table>, _: OwnerId, _: OwnerId, _: &Term) {}
}

/// What all handles of an engine share.
pub(crate) struct Inner {
    pub(crate) registry: Registry,
    pub(crate) owners: Owners,
    door: Arc<dyn Door>,
    next: AtomicU64,
}

/// An engine: a world of tables and owners. Clones are handles of the same engine. When the last
/// goes, so do the tables that nobody holds.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

impl Engine {
    /// An engine without tables.
    pub fn new(door: Arc<dyn Door>) -> Self {
        larder_index::on_garbage(crate::reaper::wake);
        Engine(Arc::new(Inner {
            registry: Registry::new(),
            owners: Owners::new(),
            door,
            next: AtomicU64::new(1),
        }))
    }

    /// A new living owner. O(1).
    pub fn register(&self) -> OwnerId {
        self.0.owners.register()
    }

    /// Makes the owner with this number live; nothing happens if it does. 0 is nobody and never
    /// lives. O(1).
    pub fn register_as(&self, raw: u64) -> OwnerId {
        let id = OwnerId::from_raw(raw);
        self.0.owners.register_as(id);
        id
    }

    /// Whether the owner lives.
    pub fn is_alive(&self, owner: OwnerId) -> bool {
        self.0.owners.is_alive(owner)
    }

    /// Ends an owner: what it fixed is fixed by it no longer; each of its tables goes to its heir,
    /// if it has one that lives, or dies. The first 256 tables are dealt with here, the ones with
    /// heirs first, then the ones with names; the rest by the reaper, soon. Nothing happens if the
    /// owner does not live.
    pub fn down(&self, owner: OwnerId) {
        let Some(estate) = self.0.owners.end(owner) else {
            return;
        };
        for table in estate.fixed {
            let admin = table.admin.lock();
            table.fixation.unfix(owner, true);
            table.follow_fixation(&admin);
        }
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
            self.inherit(&table, from);
            self.0.owners.passed(table.id());
        }
    }

    /// Passes a table of an ended owner on, or drops it.
    fn inherit(&self, table: &Arc<Table>, from: OwnerId) {
        let mut admin = table.admin.lock();
        if admin.gone || table.owner() != from {
            return;
        }
        let heir = admin.heir.take();
        if let Some((to, data)) = heir {
            if to != from && self.0.owners.add_table(to, table) {
                table.set_owner(to);
                admin.heir = Some((to, data.clone()));
                drop(admin);
                self.0.door.transfer(table, from, to, &data);
                return;
            }
        }
        self.bury(table, admin);
    }

    /// Makes a table. O(1).
    ///
    /// # Errors
    /// `BadOption`, `UnknownStructure`, `AlreadyExists` (a named table whose name is in use),
    /// `NoOwner` (the owner does not live).
    pub fn create(&self, mut options: Options, owner: OwnerId) -> Result<Arc<Table>, Error> {
        options.check()?;
        options.call_by_name();
        // Ordering: Relaxed; only the numbers' being different matters.
        let id = TableId(self.0.next.fetch_add(1, Ordering::Relaxed));
        let (named, name) = (options.named, options.name);
        let table = Arc::new(Table::make(id, options, owner, Arc::downgrade(&self.0)));
        let admin = table.admin.lock();
        if named {
            self.settle_name(name);
            let guard = larder_index::pin();
            if !self.0.registry.take_name(name, &table, &guard) {
                return Err(Error::AlreadyExists);
            }
        }
        if !self.0.owners.add_table(owner, &table) {
            self.bury(&table, admin);
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
        self.0.registry.named(name, &guard).map(f)
    }

    /// The table of this name, for as long as the guard lives. Takes no lock and touches no
    /// reference count. O(1).
    #[inline]
    pub fn named<'g>(&self, name: Atom, guard: &'g Guard) -> Option<&'g Arc<Table>> {
        self.0.registry.named(name, guard)
    }

    /// Every table there is, in the order in which they were made. Linear in the number of tables
    /// and of owners. A table made or dropped meanwhile may be among them or not; one that is
    /// passed on meanwhile is.
    pub fn all(&self) -> Vec<Arc<Table>> {
        let mut tables = self.0.owners.all_tables();
        tables.retain(|table| table.is_alive());
        tables.sort_unstable_by_key(|table| table.id());
        tables.dedup_by_key(|table| table.id());
        tables
    }

    /// The tables of an owner.
    pub fn owned_by(&self, owner: OwnerId) -> Vec<Arc<Table>> {
        self.0.owners.tables_of(owner)
    }

    /// Bytes of dropped tables that are not freed yet, about, in all engines of the program. Memory
    /// comes back at a quarter of a core's pace, faster when more than a quarter of a gigabyte is
    /// left. O(1).
    pub fn reaper_backlog(&self) -> usize {
        reaper::backlog()
    }

    /// Waits until everything dropped is freed, at most `timeout`; whether that came about. For
    /// tests and orderly ends. The reaper serves all engines of the program: work of others is
    /// waited for too.
    pub fn reaper_idle(&self, timeout: Duration) -> bool {
        reaper::idle(timeout)
    }

    /// Ends a table: marks it dead (the linearisation point), takes it off every list and leaves
    /// what it holds to the reaper. The caller holds `admin`.
    fn bury(&self, table: &Arc<Table>, mut admin: larder_index::sync::MutexGuard<'_, Admin>) {
        let guard = larder_index::pin();
        table.cell.set_tag(DEAD, &guard);
        admin.gone = true;
        admin.heir = None;
        if table.is_named() {
            self.0.registry.free_name(table.name(), &guard);
        }
        self.0.owners.remove_table(table.owner(), table.id());
        drop(admin);
        for fixer in table.fixation.end() {
            self.0.owners.remove_fixed(fixer, table.id());
        }
        free_store(table, &guard);
        table.gate.end();
        // Who puts something there looks whether the table lives, under the same lock.
        let beside = table.beside.lock().take();
        drop(beside);
    }
}

/// Hands a dead table's store to the reaper.
fn free_store(table: &Table, guard: &Guard) {
    if let Some(store) = table.cell.take(guard) {
        reaper::free(store, guard);
    }
}

impl Table {
    fn engine(&self) -> Result<Engine, Error> {
        self.engine.upgrade().map(Engine).ok_or(Error::NoTable)
    }

    /// Drops the table: from here on nobody finds it and every operation on it answers `NoTable`.
    /// What it holds is freed behind. O(1).
    ///
    /// # Errors
    /// `NoTable`, `Access`: the right to write is needed.
    pub fn drop_table(self: &Arc<Self>, who: OwnerId) -> Result<(), Error> {
        self.drop_called(who, None)
    }

    /// As `drop_table`, for who was told of the table by a name: it is dropped only if it still has
    /// that.
    ///
    /// # Errors
    /// As `drop_table`; `NoTable` also if the table has another name by now.
    pub fn drop_called(self: &Arc<Self>, who: OwnerId, called: Option<Atom>) -> Result<(), Error> {
        self.check_write(who)?;
        self.drop_unasked(called)
    }

    /// As `drop_called`, without asking for a right.
    pub(crate) fn drop_unasked(self: &Arc<Self>, called: Option<Atom>) -> Result<(), Error> {
        let engine = self.engine()?;
        let admin = self.admin.lock();
        self.check_called(&admin, called)?;
        engine.bury(self, admin);
        Ok(())
    }

    /// Whether the table lives and has the name by which it was called, if it was.
    fn check_called(&self, admin: &Admin, called: Option<Atom>) -> Result<(), Error> {
        if admin.gone || called.is_some_and(|name| name != self.name()) {
            return Err(Error::NoTable);
        }
        Ok(())
    }

    /// Gives the table another name. A named table is found under the new name before the old is
    /// freed. `called` is the name by which the caller was told of it, if it was: the table must
    /// still have that.
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
        let engine = self.engine()?;
        let admin = self.admin.lock();
        self.check_called(&admin, called)?;
        if self.is_named() {
            let guard = larder_index::pin();
            if !engine.0.registry.take_name(to, self, &guard) {
                return Err(Error::AlreadyExists);
            }
            engine.0.registry.free_name(self.name(), &guard);
        }
        self.set_name(to);
        drop(admin);
        Ok(())
    }

    /// Makes `to` the owner. The door tells it, not the engine.
    ///
    /// # Errors
    /// `NoTable`, `NotOwner`, `AlreadyOwner` (to itself), `NoOwner` (to one that does not live).
    pub fn give_away(self: &Arc<Self>, who: OwnerId, to: OwnerId) -> Result<(), Error> {
        let engine = self.engine()?;
        let admin = self.admin.lock();
        self.check_owner(&admin, who)?;
        if who == to {
            return Err(Error::AlreadyOwner);
        }
        if !engine.0.owners.pass(self, who, to) {
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
        Ok(())
    }
}

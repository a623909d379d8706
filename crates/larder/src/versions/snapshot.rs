//! Taking snapshots: read-only tables that show the objects of other tables as of one instant (see
//! the parent module).
//!
//! A snapshot is a table. Everyone who may read its source may read it like any other table.
//! Nobody can write to it. It belongs to the owner who took it.

use super::clock;
use super::history::{History, TableSnapshot, WatchedTable};
use super::lifetimes::ViewLifetimes;
use super::merged::{merge, Overrides};
use crate::bounds;
use crate::budget::Budget;
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::{OwnerId, TableId};
use crate::indexes::Indexes;
use crate::options::{Access, Options};
use crate::reclaim::reaper;
use crate::store::{Layers, Store};
use crate::structures::DEFAULT;
use crate::table::{EngineTable, SnapshotOf, ViewOf};
use larder_index::sync::{planted, Fault};
use larder_index::Guard;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Information about a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The table of which it was taken.
    pub table: TableId,
    /// Its number: a snapshot that was taken later has a greater one. Snapshots that were taken
    /// together have the same.
    pub number: u64,
    /// How long ago it was taken.
    pub age: Duration,
}

impl Engine {
    /// Takes snapshots of several tables as of one instant, for the owner `who`. O(1) for each
    /// table.
    ///
    /// # Errors
    /// `NoTable`, `Access` (the right to read is needed), `NoOwner`; `Busy` while a list is being
    /// inserted into one of the tables; `TableType` for tables on a structure of the studies, and
    /// for tables that are snapshots.
    ///
    /// # Consistency
    /// The snapshots show all writes that took effect before the instant, and no others. They don't
    /// change when their tables are emptied or deleted. Writers are not blocked: the first change
    /// of a key after a snapshot preserves the old object.
    pub fn snapshot(
        &self,
        tables: &[&Arc<EngineTable>],
        who: OwnerId,
    ) -> Result<Vec<Arc<EngineTable>>, Error> {
        self.snapshot_after(tables, who, None)
    }

    /// Like `snapshot`. Also calls `before` between the steps *register* and *cut*, as often as
    /// they are repeated.
    pub(super) fn snapshot_after(
        &self,
        tables: &[&Arc<EngineTable>],
        who: OwnerId,
        before: Option<&mut dyn FnMut()>,
    ) -> Result<Vec<Arc<EngineTable>>, Error> {
        // All rights are checked before anything is watched.
        for table in tables {
            table.check_read(who)?;
        }
        // All at one instant, or none of them.
        let snapshots = cut_after(tables, before)?;
        tables
            .iter()
            .zip(snapshots)
            .map(|(table, snapshot)| self.list_snapshot(table, snapshot, who))
            .collect()
    }

    /// Makes a table of a snapshot.
    fn list_snapshot(
        &self,
        source: &Arc<EngineTable>,
        snapshot: TableSnapshot,
        who: OwnerId,
    ) -> Result<Arc<EngineTable>, Error> {
        let of = ViewOf::snapshot(source, &snapshot);
        let options = snapshot_options(source);
        let (seed, store) = (source.seed.clone(), store(source, snapshot));
        self.add(false, options.name, who, |id, catalog| {
            EngineTable::of_view(id, options, who, catalog, seed, store, of)
        })
    }
}

/// The options of a snapshot of a table.
fn snapshot_options(source: &EngineTable) -> Options {
    let access = match source.access() {
        Access::Private => Access::Private,
        Access::Public | Access::Protected => Access::Protected,
    };
    view_options(source, access)
}

/// The options of a view of a table.
pub(super) fn view_options(source: &EngineTable, access: Access) -> Options {
    let mut options = source.options().clone();
    (options.named, options.heir) = (false, None);
    (options.name, options.access) = (source.name(), access);
    options
}

/// The store of a snapshot of a table.
fn store(source: &EngineTable, snapshot: TableSnapshot) -> Store {
    let (history, time) = (Arc::clone(&snapshot.history), snapshot.time());
    let indexes = indexes_of(&snapshot);
    let differ = Arc::clone(&history) as _;
    let overrides = Overrides::of_snapshot(snapshot, source.seed.clone());
    // The base of the view is the store below the watch, which other threads still write.
    let objects = merge(history.store().objects().index.share(), overrides);
    let (objects, bounded) = history.store().as_of(objects, time);
    let lifetimes = bounded.map(|bounded| ViewLifetimes::new(bounded, None));
    Store::of_view(objects, indexes, vec![differ], lifetimes)
}

/// The indexes of a table for a view of this snapshot, which is that of a cut.
pub(super) fn indexes_of(snapshot: &TableSnapshot) -> Option<Arc<Indexes>> {
    let indexes = snapshot.indexes.as_ref()?;
    // In a table without bounds nothing expires, so an index may become ready later.
    match snapshot.history.is_bounded() {
        true => indexes.ready_at(snapshot.time()),
        false => Some(Arc::clone(indexes)),
    }
}

/// Takes snapshots of some tables at one instant. Steps sn1 to sn4.
pub(super) fn cut(tables: &[&Arc<EngineTable>]) -> Result<Vec<TableSnapshot>, Error> {
    cut_after(tables, None)
}

/// Like `cut`. Calls `before` between sn2 and sn3, each time.
fn cut_after(
    tables: &[&Arc<EngineTable>],
    mut before: Option<&mut dyn FnMut()>,
) -> Result<Vec<TableSnapshot>, Error> {
    loop {
        let guard = larder_index::pin();
        let transitions: SmallVec<[u64; 4]> = tables
            .iter()
            .map(|table| table.latch.transitions())
            .collect();
        // (sn1, sn2) Announce the snapshots.
        let mut snapshots = Vec::with_capacity(tables.len());
        let number = match (tables, &mut before) {
            // (sn1 to sn3) Of one table, by one lock.
            ([table], None) => {
                let snapshot = table.snapshot_now(&guard)?;
                let number = snapshot.number();
                snapshots.push(snapshot);
                number
            }
            (_, before) => {
                for table in tables {
                    snapshots.push(table.pending_snapshot(&guard)?);
                }
                if let Some(before) = before {
                    before();
                }
                // (sn3) Draw the number.
                let bounded = snapshots
                    .iter()
                    .any(|snapshot| snapshot.history.is_bounded());
                let (number, time) = draw(bounded);
                for snapshot in &mut snapshots {
                    snapshot.assign_number(number, time);
                }
                number
            }
        };
        // (sn4) Check that nothing has come between.
        let mut as_before = true;
        for ((table, snapshot), transitions) in tables.iter().zip(&mut snapshots).zip(transitions) {
            as_before &= table.has_history_of(snapshot, &guard)?;
            // A list may have been inserted meanwhile. A write that revalidated before the list
            // acquired the latch may have read a later clock than the list, although the list has
            // overwritten it. The snapshot would then lack the list's object under that key.
            as_before &= planted(Fault::ListPasses) || table.latch.transitions() == transitions;
        }
        if as_before {
            clock::wait_for_commits_before(number);
            return Ok(snapshots);
        }
    }
}

/// A number for snapshots, and the time at which it was drawn, if one of them is of a `bounded`
/// table. What is expired at that time is not part of the snapshots.
fn draw(bounded: bool) -> (u64, u64) {
    if !bounded {
        return (clock::draw(), 0);
    }
    loop {
        let time = bounds::now();
        let number = clock::draw();
        // The clock may have been read in one millisecond and the number drawn in the next. Then
        // repeat.
        if bounds::now() == time {
            return (number, time);
        }
    }
}

impl EngineTable {
    /// Steps sn1 and sn2 for one table.
    fn pending_snapshot(self: &Arc<Self>, guard: &Guard) -> Result<TableSnapshot, Error> {
        loop {
            if let Some(snapshot) = TableSnapshot::pending(self.watch(guard)?) {
                return Ok(snapshot);
            }
        }
    }

    /// Steps sn1 to sn3 for one table.
    fn snapshot_now(self: &Arc<Self>, guard: &Guard) -> Result<TableSnapshot, Error> {
        loop {
            let history = self.watch(guard)?;
            let bounded = history.is_bounded();
            if let Some(snapshot) = TableSnapshot::taken(history, || draw(bounded)) {
                return Ok(snapshot);
            }
        }
    }

    /// Makes the table keep versions of what its writes change, from here on.
    pub(super) fn watch(self: &Arc<Self>, guard: &Guard) -> Result<Arc<History>, Error> {
        self.check_watchable()?;
        loop {
            let op = self.begin(guard)?;
            if let Some(history) = op.store.history() {
                return Ok(Arc::clone(history));
            }
            // The history begins empty. Writes that revalidate from here on add to it.
            let table = Arc::downgrade(self) as Weak<dyn WatchedTable>;
            let (seed, feed) = (self.seed.clone(), Arc::clone(self.feed()));
            let history = Arc::new(History::new(op.store.base(), seed, table, feed));
            let store = op.store.through(Layers {
                history: Some(Arc::clone(&history)),
                ..op.store.layers().clone()
            });
            // The old store only refers to the objects, as the new one does, too.
            if let Ok(old) = self.state.replace(op.state, store, guard) {
                reaper::drop_replaced(old, guard);
                return Ok(history);
            }
        }
    }

    /// Makes operations on one key take the key's lock, from here on.
    pub(super) fn lock_keys(self: &Arc<Self>) -> Result<(), Error> {
        let guard = larder_index::pin();
        loop {
            // The store may be replaced between the two calls. Then the loop starts again.
            let history = self.watch(&guard)?;
            let op = self.begin(&guard)?;
            if op.store.layers().locks {
                history.note_commits();
                return Ok(());
            }
            // A write that has revalidated holds its leaf. Later commits wait for it when they read
            // the key.
            let current = op.store.history();
            if current.is_some_and(|current| Arc::ptr_eq(current, &history)) {
                let store = op.store.through(Layers {
                    locks: true,
                    ..op.store.layers().clone()
                });
                if let Ok(old) = self.state.replace(op.state, store, &guard) {
                    reaper::drop_replaced(old, &guard);
                    history.all_lock.note_begun(&guard);
                    return Ok(());
                }
            }
        }
    }

    /// Whether the table can have snapshots and subscribers.
    ///
    /// # Errors
    /// `TableType`.
    pub(crate) fn check_watchable(&self) -> Result<(), Error> {
        if self.options().structure != DEFAULT || self.view.is_some() {
            return Err(Error::TableType);
        }
        Ok(())
    }

    /// Step sn4: whether the table still has this history, and no batch that began before is still
    /// being inserted.
    pub(super) fn has_history(&self, history: &Arc<History>, guard: &Guard) -> Result<bool, Error> {
        let op = self.begin(guard)?;
        let current = op.store.history();
        Ok(current.is_some_and(|current| Arc::ptr_eq(current, history)))
    }

    /// Like `has_history`, for the history of a snapshot. If the table has it, also stores the
    /// table's secondary indexes to the snapshot. Later the table may be emptied, and get others.
    fn has_history_of(&self, snapshot: &mut TableSnapshot, guard: &Guard) -> Result<bool, Error> {
        let op = self.begin(guard)?;
        let current = op.store.history();
        let is_own = current.is_some_and(|current| Arc::ptr_eq(current, &snapshot.history));
        if is_own {
            snapshot.indexes.clone_from(&op.store.layers().indexes);
        }
        Ok(is_own)
    }

    /// Takes a snapshot of the table that isn't listed, for internal use. It is released when it is
    /// dropped.
    ///
    /// # Errors
    /// Those of `Engine::snapshot`, except for access rights.
    #[cfg(feature = "files")]
    pub(crate) fn unlisted_snapshot(self: &Arc<Self>) -> Result<Arc<EngineTable>, Error> {
        let snapshot = cut(&[self])?.pop().ok_or(Error::NoTable)?;
        let of = ViewOf::snapshot(self, &snapshot);
        let (seed, store) = (self.seed.clone(), store(self, snapshot));
        let (id, owner, options) = (self.id(), self.owner(), snapshot_options(self));
        let catalog = std::sync::Weak::new();
        let table = EngineTable::of_view(id, options, owner, catalog, seed, store, of);
        Ok(Arc::new(table))
    }

    /// The number of objects in the table's store. O(1), except for a snapshot, whose objects are
    /// counted the first time. `None` if the budget is exhausted before that is done; the next call
    /// continues.
    pub(crate) fn size_of(&self, store: &Store, budget: &mut Budget) -> Option<usize> {
        match self.snapshot_of() {
            Some(of) => of.count.go_on(&store.index, budget),
            None => Some(store.size()),
        }
    }

    /// The description of the snapshot, if the table is one.
    pub(super) fn snapshot_of(&self) -> Option<&SnapshotOf> {
        self.view.as_ref()?.snapshot.as_deref()
    }

    /// Whether the table is a snapshot of another.
    pub fn is_snapshot(&self) -> bool {
        self.snapshot_of().is_some()
    }

    /// Information about the snapshot, if the table is one.
    pub fn snapshot_info(&self) -> Option<SnapshotInfo> {
        let view = self.view.as_ref()?;
        let of = view.snapshot.as_deref()?;
        Some(SnapshotInfo {
            table: view.table,
            number: of.number,
            age: of.taken.elapsed(),
        })
    }

    /// The table of which this one is a snapshot, if it is one and that table still exists.
    pub fn snapshot_source(&self) -> Option<Arc<EngineTable>> {
        let source = self.snapshot_of()?.source.upgrade()?;
        source.is_alive().then_some(source)
    }

    /// The number of live snapshots of the table, and the number of bytes that are kept for them.
    /// Zeros if there are none. O(1).
    pub fn snapshots(&self) -> (usize, usize) {
        let guard = larder_index::pin();
        let history = self.store(&guard).and_then(Store::history);
        history.map_or((0, 0), |history| {
            (history.snapshot_count(), history.undo_bytes())
        })
    }

    /// Releases a snapshot. What was kept only for it is freed in the background. O(1).
    ///
    /// # Errors
    /// `NoTable`; `TableType` if the table is no snapshot; `NotOwner` if it belongs to another
    /// owner.
    pub fn release_snapshot(self: &Arc<Self>, who: OwnerId) -> Result<(), Error> {
        if !self.is_snapshot() {
            return Err(Error::TableType);
        }
        if !self.is_alive() {
            return Err(Error::NoTable);
        }
        if self.owner() != who {
            return Err(Error::NotOwner);
        }
        // The owner was checked, and nobody has the right to write to a snapshot.
        self.drop_unasked(None)
    }
}

impl WatchedTable for EngineTable {
    fn unwatch(&self, history: &History, is_followed: bool, guard: &Guard) -> bool {
        loop {
            let state = self.state.load(guard);
            let Some(store) = state.get() else {
                return true;
            };
            let current = store.history();
            // Another history has taken its place. This one can't be found any more.
            if !current.is_some_and(|current| std::ptr::eq(&**current, history)) {
                return true;
            }
            // A batch holds the latch, or the table is dead. The store can't be replaced now.
            if state.tag() != 0 {
                return false;
            }
            let Some(next) = unwatched(store, history, is_followed) else {
                return false;
            };
            // If the exchange fails, another thread has made one: it has changed the indexes, say,
            // and the history is still there.
            if let Ok(old) = self.state.replace(state, next, guard) {
                reaper::drop_replaced(old, guard);
                return true;
            }
        }
    }
}

/// The store that takes the place of a store with this history, which no snapshot needs. `None` if
/// the store stays.
fn unwatched(store: &Store, history: &History, is_followed: bool) -> Option<Store> {
    let indexes = store.layers().indexes.clone();
    if !store.layers().locks && !is_followed {
        // The history owns the objects, and a watched store doesn't.
        let bounds = store.layers().bounds.clone();
        let layers = Layers {
            indexes,
            bounds,
            ..Layers::default()
        };
        return Some(Store::over(history.store().objects().share(), layers));
    }
    // If commits have written to the table, others are likely to follow.
    history.is_large().then(|| {
        store.through(Layers {
            history: Some(Arc::new(history.restarted())),
            ..store.layers().clone()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Index, Larder};

    /// The table is emptied right after the cut.
    #[test]
    fn a_snapshot_has_the_indexes_of_its_instant() {
        let builder = Larder::new().table("t").index(Index::element("v", 2));
        let table = builder.create().unwrap();
        let source = table.engine_table();
        let snapshot = cut(&[source]).unwrap().remove(0);
        table.clear().unwrap();
        assert!(store(source, snapshot).layers().indexes.is_some());
    }
}

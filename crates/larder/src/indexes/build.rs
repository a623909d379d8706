//! Adding an index to a table while others read and write it, and dropping one.
//!
//! # Steps of adding
//!
//! 1. Replace the table's store by one with the new index, by an exchange of the state word. From
//!    here on each write changes the entries of its own row.
//! 2. Wait for the commits that were active, because they write to the store with which they
//!    began.
//! 3. Scan the table, in slices. For each key, make the entries of its rows under the lock of the
//!    key. A write that revalidated before (1) holds that lock, so its row is seen.
//! 4. Make the index ready. If two rows have the same value in a unique index, remove it from the
//!    store instead.
//!
//! (3) visits each row that is in the table throughout. The entries of a row that is added later
//! are made by the write that adds it. Entries that exist already are not made twice
//! (`Entries::set`).
//!
//! If the table is emptied meanwhile, the new store has the index, too, and it is ready there.
//!
//! # Dropping
//!
//! The store is replaced by one without the index. Writes that revalidated before may still change
//! its entries, but nobody reads them.

use super::layer::{with_entry_buffers, EntryBuffers};
use super::{Entries, IndexDefinition, IndexEntry, Indexes, Refused, TableKeys};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::index::TableIndex;
use crate::ops::Operation;
use crate::reclaim::reaper;
use crate::scan::Cursor;
use crate::store::Layers;
use crate::structures::DEFAULT;
use crate::table::EngineTable;
use crate::versions;
use larder_index::sync::yield_now;
use larder_index::{Batch, Change, Direction, Guard, Previous};
use larder_term::Atom;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// An index that is being added. If it is dropped before the end, the index is removed again.
pub struct IndexBuild {
    table: Arc<EngineTable>,
    entries: Arc<Entries>,
    cursor: Cursor,
    /// Entries that the scan has read. Those from `next` on are still to be indexed. Only their
    /// keys are used, so a batch stays good when the table changes.
    batch: Batch<'static>,
    next: usize,
    /// The key of a bag that was indexed last. The scan may have read its objects in several
    /// batches.
    last_key: Vec<u8>,
    is_over: bool,
}

/// The units of a budget that a key costs, a row of it, and each of its entries, if the value is
/// short. This number of bytes of a value costs another unit.
const UNITS_A_KEY: u32 = 1;
const UNITS_A_ROW: u32 = 1;
const UNITS_AN_ENTRY: u32 = 2;
const BYTES_PER_UNIT: usize = 256;

/// The outcome for a key.
struct Made {
    /// The units that it has cost.
    units: u32,
    /// Whether the entries are made. If not, it must be repeated, because a claim that was found
    /// may be given back, or was that of an expired row.
    is_settled: bool,
}

impl EngineTable {
    /// Begins to add an index. The table can be read and written meanwhile.
    ///
    /// # Errors
    /// `NoTable`, `Access` (the right to write is needed); `Busy` while a list is being inserted;
    /// `BadOption` for an invalid definition, or a name that another index has; `TableType` for
    /// snapshots, views, and tables on a structure of the studies.
    pub fn add_index(
        self: &Arc<Self>,
        who: OwnerId,
        definition: IndexDefinition,
    ) -> Result<IndexBuild, Error> {
        self.check_write(who)?;
        if self.options().structure != DEFAULT || self.view.is_some() {
            return Err(Error::TableType);
        }
        let entries = Arc::new(Entries::new(&definition, &self.seed, false)?);
        let guard = larder_index::pin();
        // (1)
        self.change_indexes(&guard, |each| {
            if each
                .iter()
                .any(|index| index.definition.name == definition.name)
            {
                let name = definition.name.text();
                let text = format!("the table has an index {name} already");
                return Err(Error::BadOption(text.into()));
            }
            each.push(Arc::clone(&entries));
            Ok(())
        })?;
        // (2)
        versions::wait_for_commits();
        Ok(IndexBuild {
            table: Arc::clone(self),
            entries,
            cursor: Cursor::everywhere(self, Direction::Forward),
            batch: Batch::default(),
            next: 0,
            last_key: Vec::new(),
            is_over: false,
        })
    }

    /// Drops an index. O(1); its memory is freed in the background.
    ///
    /// # Errors
    /// `NoTable`, `Access` (the right to write is needed), `NoIndex`; `TableType` for snapshots and
    /// views; `Busy` while a list is being inserted.
    pub fn drop_index(&self, who: OwnerId, name: Atom) -> Result<(), Error> {
        self.check_write(who)?;
        if self.view.is_some() {
            return Err(Error::TableType);
        }
        self.change_indexes(&larder_index::pin(), |each| {
            let place = each
                .iter()
                .position(|entries| entries.definition.name == name);
            each.remove(place.ok_or(Error::NoIndex(name.into()))?);
            Ok(())
        })
    }

    /// Replaces the store by one with changed indexes.
    fn change_indexes(
        &self,
        guard: &Guard,
        mut change: impl FnMut(&mut Vec<Arc<Entries>>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let op = self.begin(guard)?;
            let current = op.store.layers().indexes.as_ref();
            let mut each = current.map_or_else(Vec::new, |current| current.each.clone());
            change(&mut each)?;
            // The new set shares the counts of claims (X6).
            let claims = current.map_or_else(Arc::default, |current| Arc::clone(&current.claims));
            let keys = TableKeys {
                position: self.keypos(),
                one_row: self.kind().is_unique(),
            };
            let store = op.store.through(Layers {
                indexes: Indexes::of(each, keys, &self.seed, claims),
                ..op.store.layers().clone()
            });
            // This fails if the state word has changed since `begin`. Start again with the new
            // store.
            if let Ok(old) = self.state.replace(op.state, store, guard) {
                reaper::drop_replaced(old, guard);
                return Ok(());
            }
        }
    }
}

impl IndexBuild {
    /// Runs one slice.
    ///
    /// # Errors
    /// `NotUnique` if two rows have the same value in a unique index; `NoIndex` if the index was
    /// dropped meanwhile; `NoTable`; `Busy`: help with the list, and step again.
    pub fn step(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        let name = self.entries.definition.name;
        while !self.is_over {
            let guard = larder_index::pin();
            let op = self.table.begin(&guard)?;
            let indexes = op.store.layers().indexes.as_ref();
            let mut each = indexes.into_iter().flat_map(|indexes| &indexes.each);
            match each.find(|found| found.definition.name == name) {
                Some(found) if Arc::ptr_eq(found, &self.entries) => {}
                // The table was emptied. Its new index is there, and ready.
                Some(found) if found.is_ready() && found.definition == self.entries.definition => {
                    self.is_over = true;
                    break;
                }
                _ => {
                    self.is_over = true;
                    return Err(Error::NoIndex(name.into()));
                }
            }
            // (3)
            if self.next == self.batch.len() {
                self.next = 0;
                let (table, cursor) = (&self.table, &mut self.cursor);
                // Expired rows, which are left out, cost, too.
                let filled = self.batch.lend_owned(|batch| {
                    batch.heads = false;
                    let filled = cursor.fill_in_slice(table, &op, 0, true, budget, batch);
                    // Rows that lie outside of the leaf, which may be large, aren't copied.
                    batch.heads = true;
                    filled
                });
                if let ControlFlow::Break(Step::More) = filled {
                    return Ok(Step::More);
                }
            }
            let in_time = self.index_batch(&op, budget);
            // (3) An empty batch is the end of the scan.
            let at_end = self.batch.is_empty();
            // Broken by a write, or two rows that the scan has found.
            if self.entries.is_broken() || at_end && !self.entries.finish() {
                if let Err(Error::Busy) = self.table.take_out(&self.entries) {
                    return Err(Error::Busy);
                }
                self.is_over = true;
                return Err(Error::NotUnique(name.into()));
            }
            // (4)
            self.is_over = at_end;
            if !in_time && !self.is_over {
                return Ok(Step::More);
            }
        }
        Ok(Step::Done)
    }

    /// Makes the entries of the batch's keys. Returns `false` if the budget or the operation has
    /// ended before; the next call continues there.
    fn index_batch(&mut self, op: &Operation<'_>, budget: &mut Budget) -> bool {
        let is_bag = !self.table.kind().is_unique();
        while self.next < self.batch.len() {
            let key = self.batch.key(self.next);
            // All objects of a bag's key were indexed together with those of an earlier batch.
            let is_done = is_bag && self.last_key == key;
            let made = match is_done {
                false => self.table.make_entries(op, &self.entries, key),
                true => Made::settled(UNITS_A_KEY),
            };
            if !made.is_settled {
                // A write has claimed the row's value in a unique index, and may give it back, or
                // an expired row still has it. Try again until that is settled, in this slice or in
                // the next one. If the table was emptied or dropped, or a list is being inserted,
                // the next step finds out.
                if !budget.spend(made.units) || !self.table.state.holds(op.state, op.guard) {
                    return false;
                }
                yield_now();
                continue;
            }
            if is_bag {
                key.clone_into(&mut self.last_key);
            }
            // The objects of a bag's key lie next to each other, and were all indexed.
            let is_other = |next: &usize| self.batch.key(*next) != key;
            let rest = self.next + 1..self.batch.len();
            self.next = rest.into_iter().find(is_other).unwrap_or(self.batch.len());
            if !budget.spend(made.units) {
                return false;
            }
        }
        true
    }
}

impl Made {
    fn settled(units: u32) -> Self {
        let is_settled = true;
        Made { units, is_settled }
    }

    fn undecided(units: u32) -> Self {
        let is_settled = false;
        Made { units, is_settled }
    }
}

impl Drop for IndexBuild {
    fn drop(&mut self) {
        if self.is_over || self.table.take_out(&self.entries) != Err(Error::Busy) {
            return;
        }
        // A list is being inserted. A host may drop the job on a thread that must not wait for it.
        let (table, entries) = (Arc::clone(&self.table), Arc::clone(&self.entries));
        reaper::urgent_bits(move || {
            table.help_batch(&mut Budget::slice());
            table.take_out(&entries) != Err(Error::Busy)
        });
    }
}

impl EngineTable {
    /// Removes an index that was being built.
    ///
    /// # Errors
    /// `NoTable`; `Busy` while a list is being inserted.
    fn take_out(&self, built: &Entries) -> Result<(), Error> {
        self.change_indexes(&larder_index::pin(), |each| {
            each.retain(|other| !Arc::ptr_eq(&other.origin, &built.origin));
            Ok(())
        })
    }

    /// Makes the entries of a key's rows, under its lock.
    fn make_entries(&self, op: &Operation<'_>, entries: &Entries, key: &[u8]) -> Made {
        let Some(indexes) = &op.store.layers().indexes else {
            return Made::settled(UNITS_A_KEY);
        };
        // The values of all rows of the key, each with the number of rows that have it.
        let (mut all, mut units) = (BTreeMap::<Vec<u8>, u64>::new(), UNITS_A_KEY);
        let mut note = |row: &[u8], all: &mut BTreeMap<Vec<u8>, u64>| {
            with_entry_buffers(|buffers| {
                let EntryBuffers {
                    row: row_buffers,
                    new,
                    ..
                } = buffers;
                indexes.values_of(entries, key, row, row_buffers, new);
                // A row may have many values, or a long one.
                units += UNITS_A_ROW;
                for value in new.iter() {
                    units += UNITS_AN_ENTRY + (value.len() / BYTES_PER_UNIT) as u32;
                    *all.entry(value.to_vec()).or_default() += 1;
                }
            });
        };
        // Sets the entries of these values. Setting an entry is idempotent: a write may have made
        // it already, since it sees the new index.
        let (mut position, mut why) = (Vec::new(), None);
        let mut set = |all: &BTreeMap<Vec<u8>, u64>| {
            for (value, &rows) in all {
                let entry = IndexEntry { value, key };
                if !entries.definition.unique {
                    entries.set(op.guard, entry, rows, &mut position);
                } else if why.is_none() {
                    // The first that is refused decides, since the holder that is noted is its.
                    why = indexes
                        .claim_for_build(entries, op.guard, entry, rows)
                        .err();
                }
            }
        };
        // Collect and set under the entry's lock, so that the entries are those of the current
        // rows. The rows themselves aren't changed.
        match &op.store.index {
            TableIndex::Unique(index) => {
                index.update(op.guard, self.key(key), &mut |row, _| {
                    row.into_iter().for_each(|row| note(row, &mut all));
                    set(&all);
                    Change::Keep
                });
            }
            TableIndex::Multi(index) => index.update(op.guard, self.key(key), &mut |rows| {
                rows.each(&mut |_, row| {
                    note(row, &mut all);
                    true
                });
                set(&all);
            }),
        }
        // No lock is held any more, so retired memory of the entries can be freed.
        entries.tree.flush_postponed(op.guard);
        match why {
            None => Made::settled(units),
            Some(Refused::Undecided) => Made::undecided(units),
            Some(Refused::Taken(_)) => match self.free_holder(op) {
                None | Some(Previous::Refused) => {
                    entries.mark_broken();
                    Made::settled(units)
                }
                // The other row was expired, and has been removed.
                Some(_) => Made::undecided(units),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Larder;
    use crate::indexes::IndexOn;
    use larder_term::Term;

    /// A row that lies outside of its leaf isn't copied: only its key is read with the batch.
    #[test]
    fn large_rows_are_not_copied() {
        const ROWS: i64 = 50;
        for is_ordered in [false, true] {
            let table = Larder::new().table("t");
            let table = if is_ordered {
                table.ordered_set()
            } else {
                table
            };
            let t = table.create().unwrap();
            for k in 0..ROWS {
                let elements = (0..5_000).map(|n| Term::from(k + n));
                t.insert(&Term::tuple(elements.collect::<Vec<_>>()))
                    .unwrap();
            }
            let definition = IndexDefinition::new(Atom::new("v"), IndexOn::Element(2));
            let engine = t.engine_table();
            let mut job = engine.add_index(engine.owner(), definition).unwrap();
            let mut budget = Budget::new(1, std::time::Duration::from_secs(60));
            assert_eq!(job.step(&mut budget).unwrap(), Step::More);
            assert!(job.batch.len() > 1);
            let bytes = job.batch.copied_bytes();
            assert!(bytes < 100 * job.batch.len(), "{bytes}");
            while job.step(&mut Budget::unlimited()).unwrap() == Step::More {}
            assert_eq!(t.indexes()[0].entries, ROWS as usize);
        }
    }
}

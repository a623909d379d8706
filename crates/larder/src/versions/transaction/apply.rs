//! The commit of a transaction: collecting the written keys, validating the reads, and applying the
//! writes. Labels in parentheses are steps (docs/design.md §5.6).

use super::super::clock::{self, ActiveCommit};
use super::super::history::History;
use super::super::key_locks::{CommitLocks, KeyLock};
use super::super::own_writes::{OwnWrite, Records};
use super::super::undo::{BagObjects, Override};
use super::{EngineTransaction, TableInTransaction};
use crate::error::Error;
use crate::index::TableIndex;
use crate::indexes::{take_holder, Claimed, Indexes, Refused, ReplacedRows};
use crate::ops::{Admission, NewValue, Operation, ValueList};
use crate::store::Store;
use crate::table::EngineTable;
use larder_index::sync::{planted, Fault, MutexGuard};
use larder_index::{Guard, Key, Previous, Values};
use smallvec::SmallVec;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

/// A key that a transaction has written.
pub(super) struct WrittenKey<'w> {
    /// The place of its table among those of the transaction.
    part: usize,
    key: Key<'w>,
    write: &'w OwnWrite,
}

impl WrittenKey<'_> {
    fn value(&self) -> Override<'_> {
        self.write.value()
    }

    pub(super) fn lock(&self) -> KeyLock {
        KeyLock::of(self.write.hash)
    }
}

/// The writes of a transaction, for each table. They stay as they are while this value lives.
pub(super) type LockedWrites<'s> = SmallVec<[MutexGuard<'s, Records>; 4]>;

/// The values in unique indexes that a commit has claimed.
pub(super) struct ClaimedValues {
    /// If one was refused, why, and by the indexes of which table.
    pub(super) made: Result<Vec<Claimed>, (Refused, usize)>,
    /// The indexes of each table in which values were claimed, if one of them is unique.
    pub(super) indexes: Vec<Option<Arc<Indexes>>>,
}

impl ClaimedValues {
    /// Whether the tables still have these indexes.
    pub(super) fn are_of(&self, stores: &[&Store]) -> bool {
        let same =
            |(indexes, store): (&Option<Arc<Indexes>>, &&Store)| match (indexes, unique(store)) {
                (None, None) => true,
                (Some(indexes), Some(other)) => Arc::ptr_eq(indexes, other),
                _ => false,
            };
        self.indexes.iter().zip(stores).all(same)
    }
}

/// The indexes of a store, if one of them is unique.
fn unique(store: &Store) -> Option<&Arc<Indexes>> {
    let indexes = store.layers().indexes.as_ref();
    indexes.filter(|indexes| indexes.has_unique())
}

impl EngineTransaction {
    /// The writes of all tables, which don't change any more.
    pub(super) fn locked_writes(&self) -> LockedWrites<'_> {
        self.parts
            .iter()
            .map(|part| part.set.writes.lock())
            .collect()
    }

    /// The written keys, table by table.
    pub(super) fn written<'w>(&self, writes: &'w LockedWrites<'_>) -> Vec<WrittenKey<'w>> {
        let count = writes.iter().map(|writes| writes.len()).sum();
        let mut written = Vec::with_capacity(count);
        // The order is that of the tables, and of the keys within one. `key_locks` sorts the locks.
        for (part, (TableInTransaction { set, .. }, writes)) in
            self.parts.iter().zip(writes).enumerate()
        {
            written.extend(writes.each().map(|(key, write)| WrittenKey {
                part,
                key: set.history.hashed_key(key, write.hash),
                write,
            }));
        }
        written
    }

    /// The first of the tables that has no room for what is written, if there is one. Checked
    /// before the transaction claims or changes anything.
    ///
    /// # Errors
    /// `NoTable`, `Busy`.
    pub(super) fn full_table(
        &self,
        written: &[WrittenKey<'_>],
        guard: &Guard,
    ) -> Result<Option<&Arc<EngineTable>>, Error> {
        for (i, TableInTransaction { table, .. }) in self.parts.iter().enumerate() {
            let of_part = written.iter().filter(|key| key.part == i);
            let rows = of_part.map(|key| match key.value() {
                Override::Value(value) => (key.key.bytes, Some(value)),
                // A deletion makes room.
                Override::Absent => (key.key.bytes, None),
            });
            if !table.has_capacity(guard, rows)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// Removes expired objects of a table that was found without room.
    ///
    /// # Errors
    /// `NoTable`, `Busy`; `Full` if the table has no room without its expired objects, either.
    pub(super) fn expire_rows(
        &self,
        table: &Arc<EngineTable>,
        written: &[WrittenKey<'_>],
        guard: &Guard,
    ) -> Result<(), Error> {
        let removed = table.expire_for_commit(guard);
        // Another thread may have removed them in between.
        match self.full_table(written, guard)? {
            Some(full) if Arc::ptr_eq(full, table) => removed,
            _ => Ok(()),
        }
    }

    /// (tx4) Whether nobody has changed what the transaction has read or written, since its
    /// snapshot and before its number. A later change may be found, too; the transaction is then
    /// lost without need.
    pub(super) fn is_valid(
        &self,
        written: &[WrittenKey<'_>],
        locks: &CommitLocks,
        active: &ActiveCommit,
        guard: &Guard,
    ) -> bool {
        // Ordering: SeqCst. The number was drawn before this fence. A write of one key puts its
        // version and then reads the clock. So if its version isn't found below, the write has seen
        // our number, and comes after us (see `clock::of_kept_write`).
        fence(Ordering::SeqCst);
        // A written key counts as read.
        let unchanged = written.iter().all(|key| {
            let set = &self.parts[key.part].set;
            wait_for_early_write(&set.history, key.key, guard);
            let hashed = (key.key, key.write.hash);
            !set.history.has_changed(guard, hashed, set.number)
        });
        unchanged && self.keys_are_valid(locks, guard) && self.ranges_are_valid(active, guard)
    }

    /// Whether nobody has changed a key that was read by key.
    fn keys_are_valid(&self, locks: &CommitLocks, guard: &Guard) -> bool {
        self.parts.iter().all(|TableInTransaction { set, .. }| {
            set.reads.lock().keys().all(|(bytes, hash)| {
                let key = set.history.hashed_key(bytes, hash);
                let lock = KeyLock::of(hash);
                // Check the lock first, then look for versions. An active commit holds
                // the lock. One that has released it has left its versions before.
                planted(Fault::NotValidated)
                    || ((locks.has(lock) || !lock.is_committing())
                        && !set.history.has_changed(guard, (key, hash), set.number))
            })
        })
    }

    /// Whether nobody has changed a key in the ranges that were read, or an entry of a secondary
    /// index that was read.
    fn ranges_are_valid(&self, active: &ActiveCommit, guard: &Guard) -> bool {
        // Transactions without ranges, which are most, have nothing to wait for.
        let no_ranges = |part: &TableInTransaction| !part.set.reads.lock().has_predicates();
        if self.parts.iter().all(no_ranges) {
            return true;
        }
        // A range has no lock that would show an active commit. So wait until the commits with
        // lesser numbers are over. They have left their versions by then.
        if !planted(Fault::NoWait) {
            clock::wait_for_commits_before(active.number);
        }
        self.parts
            .iter()
            .all(|TableInTransaction { table, set, .. }| {
                let (reads, history) = (set.reads.lock(), &*set.history);
                let store = table.store(guard);
                let indexes = store.and_then(|store| store.layers().indexes.as_deref());
                planted(Fault::Phantom)
                    || (reads.ranges_are_valid(history, guard, set.number)
                        && reads.entries_are_valid(history, indexes, guard, set.number))
            })
    }

    /// (tx3) Claims the values that the written rows will have in unique indexes.
    ///
    /// # Errors
    /// Those of `commit`.
    pub(super) fn claim(
        &self,
        written: &[WrittenKey<'_>],
        guard: &Guard,
    ) -> Result<ClaimedValues, Error> {
        // A holder that an earlier write has found must not be mistaken for one of these rows'
        // values.
        take_holder();
        let mut indexes = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            // The store that is current now. A commit validates later that it hasn't been replaced.
            indexes.push(unique(part.table.begin(guard)?.store).cloned());
        }
        let each = indexes.iter().enumerate();
        let each = each.filter_map(|(part, indexes)| Some((part, indexes.as_ref()?)));
        let made = each.map(|(part, indexes)| {
            let claimed = self.claim_of(part, indexes, written, guard);
            claimed.map_err(|why| (why, part))
        });
        Ok(ClaimedValues {
            made: made.collect(),
            indexes,
        })
    }

    /// Removes the row of the table with this number that has the value which couldn't be claimed,
    /// if it has expired. Returns whether it is absent now.
    pub(super) fn free_holder(&self, part: usize, guard: &Guard) -> Result<bool, Error> {
        let table = &self.parts[part].table;
        Ok(match table.free_holder(&table.begin(guard)?) {
            None | Some(Previous::Refused) => false,
            // Its timer may have removed it in the meantime.
            Some(Previous::Present | Previous::Absent) => true,
        })
    }

    /// Claims the values of one table's rows.
    fn claim_of(
        &self,
        part: usize,
        indexes: &Arc<Indexes>,
        written: &[WrittenKey<'_>],
        guard: &Guard,
    ) -> Result<Claimed, Refused> {
        let history = &self.parts[part].set.history;
        // Old and new rows of the same commit are considered together: a value may pass from one to
        // the other.
        let mut rows = Vec::new();
        for written_key in written
            .iter()
            .filter(|written_key| written_key.part == part)
        {
            let (mut old, mut new) = (Values::default(), Values::default());
            // The key's lock is held, so nobody changes the old rows before the commit does.
            let objects = &history.store().index;
            objects.copy_for_write(guard, written_key.key, &mut old);
            history.values(written_key.value(), &mut |value| new.push(value));
            let key = written_key.key.bytes;
            rows.push(ReplacedRows { key, old, new });
        }
        let mut claimed = Claimed::begin(indexes);
        claimed.claim_together(guard, &rows)?;
        Ok(claimed)
    }

    /// (tx5) Makes the writes. The key locks are held, so nobody else writes these keys meanwhile.
    pub(super) fn apply(
        &self,
        written: &[WrittenKey<'_>],
        stores: &[&Store],
        guard: &Guard,
    ) -> Result<(), Error> {
        for written_key in written {
            let table = &self.parts[written_key.part].table;
            // The operation is the commit's own: it needs no revalidation, and is refused by
            // nothing.
            let op = Operation {
                guard,
                state: table.state.load(guard),
                store: stores[written_key.part],
                admission: Admission::COMMIT,
                walk: None,
            };
            let WrittenKey { key, write, .. } = *written_key;
            // Without lifetimes, no object has expired since it was seen. The key's lock is held,
            // so nobody gives the object one.
            let lifetime = write.lifetime();
            let bounded = op.store.bounded();
            if let Some(bounded) = bounded.filter(|b| lifetime.is_some() || b.layer().needs_time())
            {
                let value = match write.value() {
                    Override::Value(value) => Some(value),
                    Override::Absent => None,
                };
                table.apply_bounded(&op, bounded, key, value, lifetime, write.replaces)?;
                continue;
            }
            match (&op.store.index, write.value()) {
                (TableIndex::Unique(ix), Override::Value(value)) => {
                    table.put_one(&op, &**ix, key, NewValue::copied(value), |_| true);
                }
                (TableIndex::Unique(ix), Override::Absent) => {
                    table.remove_one(&op, &**ix, key, |_| true);
                }
                (TableIndex::Multi(ix), value) => {
                    table.change_many(&op, &**ix, key, |values| {
                        apply_to_bag(value, values);
                        Ok(())
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Waits for a write of a bag's key that began before the table had key locks, and that may still
/// hold the lock of the leaf. The key's lock is held.
pub(super) fn wait_for_early_write(history: &History, key: Key<'_>, guard: &Guard) {
    if let (TableIndex::Multi(index), false) = (&history.store().index, history.all_lock.holds()) {
        // An empty update waits for it.
        index.update(guard, key, &mut |_| ());
    }
}

/// Changes the objects of a bag's key to those of its record, which lists all objects that the key
/// is to have. One that is there stays if the record has it with the same number of arrival.
fn apply_to_bag(record: Override<'_>, values: &mut ValueList<'_>) {
    /// Objects with their numbers, in the order of arrival. Mostly they are few and small.
    type Numbered<T> = SmallVec<[(u64, T); 4]>;
    // The objects that are there, those that are to be, and which of the former stay.
    let mut there: Numbered<SmallVec<[u8; 32]>> = Numbered::new();
    values.each_numbered(&mut |number, value| there.push((number, SmallVec::from_slice(value))));
    let new: Numbered<&[u8]> = BagObjects::of(record).collect();
    let stays: SmallVec<[bool; 8]> = there
        .iter()
        .map(|(number, value)| {
            let place = new.binary_search_by_key(number, |(number, _)| *number);
            place.is_ok_and(|i| *new[i].1 == **value)
        })
        .collect();
    let kept = || there.iter().zip(&stays).filter(|(_, stays)| **stays);
    let count = kept().count();
    // If the objects that stay are the first ones of the result, it is enough to remove the others
    // and to append the rest. Otherwise the order has changed: remove all, and append all.
    let in_order = kept()
        .zip(&new)
        .all(|(((number, _), _), (first, _))| number == first);
    let (stays, rest) = match in_order {
        true => (stays, &new[count..]),
        false => (SmallVec::from_elem(false, there.len()), &new[..]),
    };
    let mut each = stays.iter();
    if stays.contains(&false) {
        values.remove_if(|_| each.next() == Some(&false));
    }
    for (_, value) in rest {
        values.push(value);
    }
}

//! The commit of a transaction: which keys it has written, whether what it has read still holds,
//! and the writes. Numbers in brackets are the steps of the module.

use super::super::clock::{self, UnderWay};
use super::super::key_locks::{CommitLocks, KeyLock};
use super::super::undo::{self, Override};
use super::view::survivors;
use super::{Part, Transaction};
use crate::error::Error;
use crate::index::Index;
use crate::indexes::{take_holder, Claimed, Indexes, Refused};
use crate::ops::{Admission, Operation};
use crate::store::Store;
use larder_index::sync::{planted, Fault};
use larder_index::{Guard, Previous, Values};
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

/// A key that a transaction has written.
pub(super) struct Written {
    /// The table, by its place among the transaction's.
    part: usize,
    key: Vec<u8>,
    /// What the transaction makes of it.
    record: Vec<u8>,
    pub(super) lock: KeyLock,
}

impl Written {
    fn value(&self) -> Override<'_> {
        undo::as_of(&self.record, 0).unwrap_or(Override::Absent)
    }
}

/// What a commit has claimed.
pub(super) struct Claims {
    pub(super) made: Result<Vec<Claimed>, Refused>,
    /// The indexes of each table, if one of them is unique.
    indexes: Vec<Option<Arc<Indexes>>>,
}

impl Claims {
    /// Whether the tables have these indexes still.
    pub(super) fn are_of(&self, stores: &[&Store]) -> bool {
        let same = |(own, store): (&Option<Arc<Indexes>>, &&Store)| match (own, unique(store)) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
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

impl Transaction {
    /// The keys that were written, table by table.
    pub(super) fn written(&self) -> Vec<Written> {
        let mut written = Vec::new();
        for (part, Part { set, .. }) in self.parts.iter().enumerate() {
            set.writes.each(|key, record| {
                written.push(Written {
                    part,
                    lock: set.history.key_lock(set.history.key(key)),
                    key: key.to_vec(),
                    record: record.to_vec(),
                });
            });
        }
        written
    }

    /// Asks whether the tables have room for what is new in them, before there are locks.
    ///
    /// # Errors
    /// `Full` if one has none.
    pub(super) fn ask_for_room(&self, written: &[Written], guard: &Guard) -> Result<(), Error> {
        for (i, Part { table, .. }) in self.parts.iter().enumerate() {
            let objects = written
                .iter()
                .filter(|key| key.part == i)
                .filter_map(|key| match key.value() {
                    Override::Value(value) => Some((&key.key[..], value)),
                    Override::Absent => None,
                });
            table.ask_for_room(guard, objects)?;
        }
        Ok(())
    }

    /// (4)
    pub(super) fn is_valid(
        &self,
        written: &[Written],
        locks: &CommitLocks,
        under_way: &UnderWay,
        guard: &Guard,
    ) -> bool {
        // Ordering: SeqCst. The number was drawn before: a write whose version isn't found from
        // here on reads it (see `clock::of_kept_write`).
        fence(Ordering::SeqCst);
        // What was written was read, too.
        let unchanged = written.iter().all(|key| {
            let set = &self.parts[key.part].set;
            let own = set.history.key(&key.key);
            if let Index::Multi(index) = &set.history.store().index {
                // A write that began before keys had locks may still have the key's own.
                index.update(guard, own, &mut |_| ());
            }
            !set.history.has_changed(guard, own, set.number)
        });
        unchanged && self.keys_hold(locks, guard) && self.ranges_hold(under_way, guard)
    }

    /// Whether nobody has changed a key that was read.
    fn keys_hold(&self, locks: &CommitLocks, guard: &Guard) -> bool {
        self.parts.iter().all(|Part { set, .. }| {
            set.reads.lock().keys().all(|bytes| {
                let key = set.history.key(bytes);
                let lock = set.history.key_lock(key);
                // The lock comes first: a commit that has given it back has left its versions.
                planted(Fault::NotValidated)
                    || ((locks.has(lock) || !lock.is_committing())
                        && !set.history.has_changed(guard, key, set.number))
            })
        })
    }

    /// Whether nobody has changed a key in the ranges that were read, or an entry of those that
    /// were.
    fn ranges_hold(&self, under_way: &UnderWay, guard: &Guard) -> bool {
        let no_ranges = |part: &Part| !part.set.reads.lock().has_ranges();
        if self.parts.iter().all(no_ranges) {
            return true;
        }
        // A range has no lock by which a commit under way is noticed. Those that come before this
        // one leave their versions before they are over.
        if !planted(Fault::NoWait) {
            clock::wait_for_commits_before(under_way.number);
        }
        self.parts.iter().all(|Part { table, set, .. }| {
            let (reads, history) = (set.reads.lock(), &*set.history);
            let store = table.store(guard);
            let indexes = store.and_then(|store| store.layers().indexes.as_deref());
            planted(Fault::Phantom)
                || (reads.ranges_hold(history, guard, set.number)
                    && reads.entries_hold((history, indexes), guard, set.number))
        })
    }

    /// (3) Claims the values that the rows are to have in unique indexes.
    ///
    /// # Errors
    /// As of `commit`.
    pub(super) fn claim(&self, written: &[Written], guard: &Guard) -> Result<Claims, Error> {
        let mut indexes = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            indexes.push(unique(part.table.begin(guard)?.store).cloned());
        }
        let each = indexes.iter().enumerate();
        let each = each.filter_map(|(part, own)| Some((part, own.as_ref()?)));
        let made = each.map(|(part, own)| self.claim_of(part, own, written, guard));
        Ok(Claims {
            made: made.collect(),
            indexes,
        })
    }

    /// Removes the row that has the value which could not be claimed, if it is expired.
    pub(super) fn free_holder(&self, guard: &Guard) -> Result<bool, Error> {
        let Some(key) = take_holder() else {
            return Ok(false);
        };
        let mut is_freed = false;
        // In another table a row under this key is not the holder, but goes no less.
        for Part { table, .. } in &self.parts {
            let op = table.begin(guard)?;
            is_freed |= table.free_expired(&op, &key) == Some(Previous::Present);
        }
        Ok(is_freed)
    }

    /// Claims those of one table.
    fn claim_of(
        &self,
        part: usize,
        indexes: &Arc<Indexes>,
        written: &[Written],
        guard: &Guard,
    ) -> Result<Claimed, Refused> {
        let history = &self.parts[part].set.history;
        let mut rows = Vec::new();
        for own in written.iter().filter(|own| own.part == part) {
            let (mut old, mut new) = (Values::default(), Values::default());
            // The key's lock is held: the rows stay as they are until they are written.
            let objects = &history.store().index;
            objects.copy(guard, history.key(&own.key), &mut old);
            history.values(own.value(), &mut |value| new.push(value));
            rows.push((&own.key[..], old, new));
        }
        let mut claimed = Claimed::begin(indexes);
        claimed.claim_together(guard, &rows)?;
        Ok(claimed)
    }

    /// (5)
    pub(super) fn apply(
        &self,
        written: &[Written],
        stores: &[&Store],
        guard: &Guard,
    ) -> Result<(), Error> {
        for own in written {
            let table = &self.parts[own.part].table;
            let op = Operation {
                guard,
                state: table.state.load(guard),
                store: stores[own.part],
                admission: Admission::COMMIT,
            };
            let key = table.key(&own.key);
            match (&op.store.index, own.value()) {
                (Index::Unique(ix), Override::Value(value)) => {
                    table.put_one(&op, &**ix, key, (value, false), |_| true);
                }
                (Index::Unique(ix), Override::Absent) => {
                    table.remove_one(&op, &**ix, key, |_| true);
                }
                (Index::Multi(ix), value) => {
                    table.change_many(&op, &**ix, key, &mut |values| {
                        let mut there = Vec::new();
                        values.each_numbered(&mut |number, value| {
                            there.push((number, value.to_vec()));
                        });
                        let becomes = survivors(value, &there);
                        let mut stays = becomes.stays.iter();
                        if becomes.stays.contains(&false) {
                            values.remove_if(&mut |_| stays.next() == Some(&false));
                        }
                        for (_, value) in &becomes.new {
                            values.push(value);
                        }
                        Ok(())
                    })?;
                }
            }
        }
        Ok(())
    }
}

//! The commit of a transaction: which keys it has written, whether what it has read still holds,
//! and the writes. Numbers in brackets are the steps of the module.

use super::super::clock::{self, UnderWay};
use super::super::key_locks::{CommitLocks, KeyLock};
use super::super::undo::{self, Override};
use super::view::survivors;
use super::{Part, Transaction};
use crate::error::Error;
use crate::index::Index;
use crate::ops::{Admission, Operation};
use crate::raw;
use crate::store::Store;
use larder_index::sync::{planted, Fault};
use larder_index::Guard;
use larder_term::blob::Handles;
use std::collections::BTreeSet;
use std::sync::atomic::{fence, Ordering};

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

    /// (4), (5)
    pub(super) fn is_valid(
        &self,
        written: &[Written],
        locks: &CommitLocks,
        under_way: &UnderWay,
        guard: &Guard,
    ) -> bool {
        // What was written was read, too.
        let history = |key: &Written| &self.parts[key.part].set;
        let unchanged = written.iter().all(|key| {
            let set = history(key);
            let own = set.history.key(&key.key);
            if let Index::Multi(index) = &set.history.store().index {
                // A write that began before keys had locks may still have the key's own.
                index.update(guard, own, &mut |_| ());
            }
            !set.history.has_changed(guard, own, set.number)
        });
        if !unchanged {
            return false;
        }
        let announces = self.parts.iter().any(|part| part.set.history.has_others());
        if announces {
            under_way.during(|| self.announce(written, guard));
        }
        // Ordering: SeqCst. Of two commits, one finds what the other has announced.
        fence(Ordering::SeqCst);
        self.parts.iter().enumerate().all(|(i, Part { set, .. })| {
            let reads = set.reads.lock();
            let own = written.iter().filter(|key| key.part == i);
            let own: BTreeSet<&[u8]> = own.map(|key| &key.key[..]).collect();
            let own = |bytes: &[u8]| own.contains(bytes);
            let keys_hold = reads.keys().all(|bytes| {
                let key = set.history.key(bytes);
                let lock = set.history.key_lock(key);
                // The lock comes first: a commit that has given it back has left its versions.
                own(bytes)
                    || planted(Fault::NotValidated)
                    || ((locks.has(lock) || lock.is_free_of_commits())
                        && !set.history.has_changed(guard, key, set.number))
            });
            let ranges_hold = || reads.ranges_hold(&set.history, guard, set.number, &own);
            keys_hold && (planted(Fault::Phantom) || ranges_hold())
        })
    }

    /// (4)
    fn announce(&self, written: &[Written], guard: &Guard) {
        for key in written {
            let history = &self.parts[key.part].set.history;
            let own = history.key(&key.key);
            let mut dropped = Handles::default();
            let version = match &history.store().index {
                Index::Unique(index) => {
                    let mut value = Vec::new();
                    index.get(guard, own, &mut value).then_some(value)
                }
                Index::Multi(index) => {
                    let mut list = Vec::new();
                    index.update(guard, own, &mut |objects| {
                        objects.each_numbered(&mut |number, value| {
                            undo::push_object(number, value, &mut list);
                        });
                    });
                    (!list.is_empty()).then_some(list)
                }
            };
            // The key's lock is held: nobody changes it before this is announced.
            history.preserve(
                guard,
                own,
                (clock::of_write(), 0),
                &mut dropped,
                &mut |number, record| {
                    let value = version.as_deref().map_or(Override::Absent, Override::Value);
                    history.values(value, &mut raw::retain_value);
                    undo::push(number, value, record);
                },
            );
            history.end_write(guard, dropped);
        }
    }

    /// (6)
    pub(super) fn apply(
        &self,
        written: &[Written],
        stores: &[Store],
        guard: &Guard,
    ) -> Result<(), Error> {
        for own in written {
            let table = &self.parts[own.part].table;
            let op = Operation {
                guard,
                state: table.state.load(guard),
                store: &stores[own.part],
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

//! Commits of operations whose keys are known beforehand. They need no snapshot, and they never
//! lose because another thread has written a key.
//!
//! # Steps (docs/design.md §5.6)
//!
//! * kc1: *Lock* the keys, in the order of their locks.
//! * kc2: Make a *view* of each table. It shows the table as it is, with the operations' own
//!   writes.
//! * kc3: *Run* the operations on the views. They only use the locked keys, so nobody changes what
//!   they have read before kc5.
//! * kc4: Claim values in unique indexes, and draw the commit's number. Then check that each table
//!   still has its history, and that no list is being inserted.
//! * kc5: *Apply* the writes, and *unlock*, as any transaction does (tx5, tx6).
//!
//! Linearisation point: for operations that write, that of any transaction. For those that fail or
//! only read, any moment in kc3.
//!
//! # Why no read has to be validated
//!
//! A write of one key, a list and another commit take a key's lock before they change the key. A
//! write that began before the table had key locks holds the lock of the key's leaf, and the read
//! waits for it. An emptied table has another history, which is detected in kc4. If it is emptied
//! after that, the emptying comes after the commit.
//!
//! There is no deadlock: while the operations run, the commit only waits for the locks of leaves.

use super::super::key_locks::{CommitLocks, KeyLock};
use super::apply::wait_for_early_write;
use super::{prepare, view, CommitOutcome, EngineTransaction, TableInTransaction};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::local::with_local;
use crate::options::Access;
use crate::store::Store;
use crate::table::EngineTable;
use larder_index::sync::{planted, Fault};
use larder_index::{flush_or_hold, Guard, HeldFlushes};
use std::sync::Arc;

impl Engine {
    /// Runs operations of `who` on keys of some tables. Each key comes with the number of its
    /// table.
    ///
    /// `run` gets a view of each table. It must only use these keys, and must not wait for another
    /// thread. If it returns `true`, its writes take effect at one instant. Otherwise nothing has
    /// happened.
    ///
    /// Returns `CommitOutcome::Conflict`, with no effect, if a table was emptied meanwhile, or if
    /// another row has just lost a value of a unique index.
    ///
    /// # Errors
    /// Those of [`Engine::begin`] and [`EngineTransaction::commit`].
    pub fn commit_on_keys(
        &self,
        tables: &[&Arc<EngineTable>],
        keys: &[(usize, &[u8])],
        who: OwnerId,
        run: impl FnOnce(&EngineTransaction) -> bool,
    ) -> Result<CommitOutcome, Error> {
        prepare(tables, who)?;
        let guard = larder_index::pin();
        // Destructors of a host may use these keys, so none runs before the locks are released.
        let held = HeldFlushes::begin(&guard);
        let done = self.commit_held(tables, keys, who, run, &guard);
        let is_due = held.is_due();
        drop(held);
        // Operations pin the participant of the thread's state, so what they have retired is in its
        // bag, and not in that of `guard`.
        if is_due {
            with_local(|local| flush_or_hold(&local.pin()));
        }
        done
    }

    /// `commit_on_keys`, while flushes are held back.
    fn commit_held(
        &self,
        tables: &[&Arc<EngineTable>],
        keys: &[(usize, &[u8])],
        who: OwnerId,
        run: impl FnOnce(&EngineTransaction) -> bool,
        guard: &Guard,
    ) -> Result<CommitOutcome, Error> {
        // (kc1) Lock the keys. This waits for writes of single keys and for other commits.
        let lock = |&(table, key): &(usize, &[u8])| KeyLock::of(tables[table].seed.hash(key));
        let locks = match planted(Fault::KeysUnlocked) {
            true => Vec::new(),
            false => keys.iter().map(lock).collect(),
        };
        let locks = CommitLocks::take(locks);
        // (kc2) Make the views. If a table has just lost its history, the caller tries again.
        let Some(parts) = self.present_parts(tables, keys, who, guard)? else {
            return Ok(CommitOutcome::Conflict);
        };
        let transaction = EngineTransaction { parts };
        // What was written is dropped after the locks, also if `run` panics: a variable that is
        // declared later is dropped sooner.
        let locks = locks;
        // (kc3) Run the operations. If they fail or write nothing, dropping the locks is all that
        // is left to do.
        if !run(&transaction) {
            return Ok(CommitOutcome::Committed);
        }
        let writes = transaction.locked_writes();
        let written = transaction.written(&writes);
        if written.is_empty() {
            return Ok(CommitOutcome::Committed);
        }
        let is_locked = || written.iter().all(|key| locks.has(key.lock()));
        debug_assert!(planted(Fault::KeysUnlocked) || is_locked());
        if let Some(table) = transaction.full_table(&written, guard)? {
            // Expired objects make room. Their removal takes the locks of their keys.
            drop(locks);
            transaction.expire_rows(table, &written, guard)?;
            return Ok(CommitOutcome::Conflict);
        }
        // (kc4, kc5) Claim, draw the number, apply, and unlock.
        transaction.commit_under(locks, &written, guard)
    }

    /// Views of the tables as they are. `None` if one of the tables is no longer watched.
    fn present_parts(
        &self,
        tables: &[&Arc<EngineTable>],
        keys: &[(usize, &[u8])],
        who: OwnerId,
        guard: &Guard,
    ) -> Result<Option<Vec<TableInTransaction>>, Error> {
        let mut parts = Vec::with_capacity(tables.len());
        for (i, table) in tables.iter().enumerate() {
            let store = table.begin(guard)?.store;
            let Some(history) = store.history().filter(|_| store.layers().locks) else {
                return Ok(None);
            };
            for (_, key) in keys.iter().filter(|(table, _)| *table == i) {
                wait_for_early_write(history, history.key(key), guard);
            }
            let (index, set) = view::present(Arc::clone(history), &table.seed);
            let lifetimes = set.lifetimes(history.store().bounded.clone());
            let store = Store::of_view(index, None, Vec::new(), lifetimes);
            // Only the operations have the view, so its access rights don't matter.
            parts.push(self.part(table, who, Access::Public, store, set));
        }
        Ok(Some(parts))
    }
}

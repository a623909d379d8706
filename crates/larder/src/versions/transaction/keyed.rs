//! Commits of operations whose keys are known beforehand: they need no snapshot, and are never run
//! in vain because others have written a key.
//!
//! # Steps
//!
//! 1. *Lock* the keys, in the order of their locks.
//! 2. *Show* the tables as they are: a view of each, with the operations' own writes over it.
//! 3. *Run* the operations on the views. They use the keys that are locked, and no others, so
//!    nobody changes what they have read before (5).
//! 4. Claim the values of unique indexes; draw the number of the commit; look whether each table
//!    has its history still, and no list is being inserted.
//! 5. *Apply* the writes, and *unlock*: as any transaction (see the folder).
//!
//! Linearisation point: of operations that write, as of any transaction. Of those that stop, or
//! only read, any moment in (3).
//!
//! # Why nothing that was read is validated
//!
//! A write of one key, a list and another commit take a key's lock before they change it. Who has
//! not heard yet that the keys have locks holds the lock of the key's leaf, and is waited for by
//! the read. An emptied table has another history, which is seen in (4); if it comes behind that,
//! it comes behind the commit, too.
//!
//! Nobody waits in a circle: while the operations run, the commit waits for locks of leaves alone.

use super::super::key_locks::{CommitLocks, KeyLock};
use super::{prepare, view, Outcome, Part, Transaction};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::index::Index;
use crate::options::Access;
use crate::store::Store;
use crate::table::Table;
use larder_index::sync::{planted, Fault};
use larder_index::Guard;
use std::sync::Arc;

impl Engine {
    /// Runs operations of `who` on these keys of some tables, each with the number of its table.
    /// `run` is given a view of each table, on which it may use those keys alone, and must not wait
    /// for anybody. If it answers true, what it has written takes effect at one instant; else
    /// nothing has happened.
    ///
    /// # Errors
    /// As of [`Engine::begin`] and [`Transaction::commit`]. `Outcome::Lost`, with no effect, if a
    /// table was emptied meanwhile, or another row has just lost a value of a unique index.
    pub fn commit_on_keys(
        &self,
        tables: &[&Arc<Table>],
        keys: &[(usize, &[u8])],
        who: OwnerId,
        run: impl FnOnce(&Transaction) -> bool,
    ) -> Result<Outcome, Error> {
        prepare(tables, who)?;
        let guard = larder_index::pin();
        // (1)
        let lock = |&(table, key): &(usize, &[u8])| KeyLock::of(tables[table].seed.hash(key));
        let locks = match planted(Fault::KeysUnlocked) {
            true => Vec::new(),
            false => keys.iter().map(lock).collect(),
        };
        let locks = CommitLocks::take(locks);
        // (2)
        let Some(parts) = self.present_parts(tables, keys, who, &guard)? else {
            return Ok(Outcome::Lost);
        };
        let transaction = Transaction { parts };
        // (3)
        if !run(&transaction) {
            return Ok(Outcome::Committed);
        }
        let written = transaction.written();
        if written.is_empty() {
            return Ok(Outcome::Committed);
        }
        let is_locked = || written.iter().all(|key| locks.has(key.lock));
        debug_assert!(planted(Fault::KeysUnlocked) || is_locked());
        transaction.ask_for_room(&written, &guard)?;
        // (4), (5)
        transaction.commit_under(locks, &written, &guard)
    }

    /// Views of tables as they are; none if one has ceased to be watched.
    fn present_parts(
        &self,
        tables: &[&Arc<Table>],
        keys: &[(usize, &[u8])],
        who: OwnerId,
        guard: &Guard,
    ) -> Result<Option<Vec<Part>>, Error> {
        let mut parts = Vec::with_capacity(tables.len());
        for (i, table) in tables.iter().enumerate() {
            let store = table.begin(guard)?.store;
            let Some(history) = store.history().filter(|_| store.layers().locks) else {
                return Ok(None);
            };
            if let Index::Multi(index) = &history.store().index {
                // A write that began before keys had locks may still have the key's own.
                for (_, key) in keys.iter().filter(|(table, _)| *table == i) {
                    index.update(guard, history.key(key), &mut |_| ());
                }
            }
            let (index, set) = view::present(Arc::clone(history), &table.seed);
            let store = Store::of_view(index, None, Vec::new());
            // Nobody but who runs the operations has the view.
            parts.push(self.part(table, (who, Access::Public), (store, set)));
        }
        Ok(Some(parts))
    }
}

//! Transactions: any number of reads and writes of several tables that take effect at one instant,
//! or not at all.
//!
//! # Definitions
//!
//! - *View*: a table through which a transaction reads and writes another one. It shows that table
//!   as of the transaction's snapshot, with the transaction's own writes.
//! - *Working set*: the read set of a transaction in one table (keys, ranges, and entries of
//!   indexes), and its writes, which are buffered there (`view`).
//!
//! # Steps (docs/design.md §5.6)
//!
//! * tx1: *Begin*: take a snapshot of all tables, with number s, and make a view of each.
//! * tx2: *Run*: the caller reads and writes the views. The tables are not touched.
//! * tx3: *Lock* the written keys, in the order of the locks (`key_locks`). Claim the values that
//!   the rows will have in unique indexes (`indexes::claims`). Then draw the commit's number n.
//! * tx4: *Validate*: no key that was read or written has a version with a number of s or more, and
//!   no other commit holds the lock of such a key. Ranges and entries of indexes that were read are
//!   validated after a wait (`reads::entries_are_valid`). The tables still have the stores of tx1
//!   and the unique indexes of tx3.
//! * tx5: *Apply* the writes, with number n − 1.
//! * tx6: *Unlock*.
//!
//! If tx4 fails, the transaction has *lost*: it had no effect, and may be run again. A transaction
//! that has written nothing ends after tx2, and takes effect as of its snapshot.
//!
//! Linearisation point: the drawing of n. No read of a written key falls between n and tx6: reads
//! of single keys wait for the key's lock, and a snapshot with a number greater than n waits until
//! the commit is over (`clock::wait_for_commits_before`).
//!
//! # Why transactions are serialisable
//!
//! They are ordered by their numbers: of a snapshot s, of a write of one key c, of a list c, of a
//! commit n. A snapshot sees the writes with c < s and the commits with n < s, and no others. So we
//! have to show that nothing that the commit has read or written was changed by a write with
//! s ≤ c < n or by a commit with s < n' < n. Validation may also find changes that come after n.
//! The transaction is then lost without need.
//!
//! - *A commit with a lesser number* holds the locks of its keys since before it drew n'. So either
//!   the key is found locked, or that commit is over. For ranges we have waited for it. A commit
//!   that is over has left a version of each key that it wrote, because our snapshot is live (T4).
//! - *A write of one key* puts its version and then reads the clock. We draw n and then look for
//!   versions. So either we find its version, or c ≥ n (S9).
//! - *A list* draws its number while it holds the table's latch, and leaves its versions before it
//!   releases the latch. We load the latch after drawing n (`stores`). If it is held, the commit is
//!   retried later. If it is free, either we find the list's versions, or the list draws a number
//!   of n or more. So we never wait for a list, and a list is no commit of `clock`.
//! - *Emptying a table* exchanges its store. If we see the new store after drawing n, the
//!   transaction has lost. Otherwise the emptying comes after it.
//!
//! # Why there is no deadlock
//!
//! - Key locks are taken in the order of their places, and before the number is drawn. A thread
//!   that has drawn a number waits for no key lock of a commit any more. It may wait for writes of
//!   one key. These wait for no key lock and no commit once they have theirs.
//! - A commit that holds its locks waits for commits with lesser numbers. The commit with the least
//!   number waits for nobody. A commit that is about to draw its number has all of its locks, and
//!   waits for nothing meanwhile.
//! - A thread that holds the lock of a leaf waits for no key lock and for no commit.
//!
//! No lock is held while the caller's code runs.
//!
//! Sources: validation against undo records and predicates is HyPer's (Neumann et al., SIGMOD
//! 2015). Locking the write set alone, and treating the lock of a read key as a conflict, is Silo's
//! (Tu et al., SOSP 2013).

mod apply;
mod gaps;
mod keyed;
mod priority;
mod reads;
mod view;

use super::clock::ActiveCommit;
use super::feed;
use super::key_locks::CommitLocks;
use super::snapshot::{cut, indexes_of, view_options};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::indexes::{Claimed, Indexes, Refused};
use crate::options::Access;
use crate::store::Store;
use crate::table::{EngineTable, ViewOf};
use apply::WrittenKey;
use larder_index::{Container, Guard, HeldFlushes};
use larder_term::Atom;
pub use priority::Turn;
use smallvec::SmallVec;
use std::sync::Arc;
use view::WorkingSet;

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Its writes have taken effect.
    Committed,
    /// It had no effect: others changed what it has read.
    Conflict,
}

/// A table of a transaction.
struct TableInTransaction {
    table: Arc<EngineTable>,
    view: Arc<EngineTable>,
    set: Arc<WorkingSet>,
}

/// The stores that a commit writes to, in the order of its tables.
type Stores<'g> = SmallVec<[&'g Store; 4]>;

/// A transaction in progress. If it is dropped before its commit, it has no effect.
pub struct EngineTransaction {
    parts: Vec<TableInTransaction>,
}

impl Engine {
    /// Begins a transaction of `who` on some tables. O(1) for each table.
    ///
    /// # Errors
    /// Those of [`Engine::snapshot`].
    pub fn begin(
        &self,
        tables: &[&Arc<EngineTable>],
        who: OwnerId,
    ) -> Result<EngineTransaction, Error> {
        prepare(tables, who)?;
        // One cut for all tables, so that the views are of one instant.
        let snapshots = cut(tables)?;
        let mut parts = Vec::with_capacity(tables.len());
        for (table, snapshot) in tables.iter().zip(snapshots) {
            // A view is the snapshot with the transaction's own writes over it.
            let indexes = indexes_of(&snapshot);
            let (index, set, bounded) = view::view(snapshot, &table.seed);
            let differ = vec![Arc::clone(&set.history) as _, Arc::clone(&set) as _];
            let store = Store::of_view(index, indexes, differ, set.lifetimes(bounded));
            parts.push(self.part(table, who, Access::Private, store, set));
        }
        Ok(EngineTransaction { parts })
    }

    /// Makes the view of a table.
    fn part(
        &self,
        table: &Arc<EngineTable>,
        who: OwnerId,
        access: Access,
        store: Store,
        set: Arc<WorkingSet>,
    ) -> TableInTransaction {
        // The view has the table's options, so that keys are encoded and hashed alike.
        let options = view_options(table, access);
        let of = ViewOf::transaction(table, table.may_write(who).is_ok());
        // With the table's own seed, hashes of keys are the same in both.
        let seed = table.seed.clone();
        let view = self.unlisted(|id, catalog| {
            EngineTable::of_view(id, options, who, catalog, seed, store, of)
        });
        TableInTransaction {
            table: Arc::clone(table),
            view,
            set,
        }
    }
}

/// Prepares some tables for a transaction of `who`: from now on writes of single keys take key
/// locks.
fn prepare(tables: &[&Arc<EngineTable>], who: OwnerId) -> Result<(), Error> {
    for (i, table) in tables.iter().enumerate() {
        table.check_read(who)?;
        // Two views of one table wouldn't see each other's writes.
        if tables[..i].iter().any(|other| Arc::ptr_eq(other, table)) {
            let twice = "a transaction has each of its tables once";
            return Err(Error::BadOption(twice.to_owned().into()));
        }
        table.lock_keys()?;
    }
    Ok(())
}

impl EngineTransaction {
    /// The views of the tables, in the order of the tables. They end with the transaction.
    pub fn views(&self) -> impl Iterator<Item = &Arc<EngineTable>> {
        self.parts.iter().map(|part| &part.view)
    }

    /// The number of keys that it has written.
    pub fn keys_written(&self) -> usize {
        self.parts.iter().map(|part| part.set.writes.len()).sum()
    }

    /// About how many keys its commit looks at, because they were read, or because they have
    /// changed and may lie within what was read.
    pub fn keys_to_validate(&self) -> usize {
        let of_part = |part: &TableInTransaction| part.set.keys_to_validate();
        self.parts.iter().map(of_part).sum()
    }

    /// Ends the transaction and its views. If it wasn't committed, it has no effect.
    pub fn end(&self) {
        self.end_views(&larder_index::pin());
    }

    /// Whether nobody has changed what it has read and written so far. If it returns `false`, the
    /// commit will be lost, unless the transaction has written nothing. If it returns `true`,
    /// somebody may still make a change before the commit.
    ///
    /// # Errors
    /// `NoTable` if one of the tables was dropped, or the transaction has ended; `Busy` while a
    /// list is being inserted into one of the tables. The call may then be repeated.
    pub fn validate(&self) -> Result<bool, Error> {
        let guard = larder_index::pin();
        if self.parts.iter().any(|part| !part.view.is_alive()) {
            return Err(Error::NoTable);
        }
        // Step tx3 without the claims, tx4 and tx6. The locks and the number are released on
        // return.
        let writes = self.locked_writes();
        let written = self.written(&writes);
        let locks = CommitLocks::take(written.iter().map(WrittenKey::lock).collect());
        let active = ActiveCommit::begin();
        let has_stores = self.stores(&guard)?.is_some();
        Ok(has_stores && self.is_valid(&written, &locks, &active, &guard))
    }

    /// Ends the transaction. Its writes take effect at one instant, if nobody has changed what it
    /// has read since it began.
    ///
    /// # Errors
    /// `NoTable` if one of the tables was dropped; `NotUnique` if another row has the value of a
    /// written row in a unique index; `Full` if a table has no room for the new objects; `Busy`
    /// while a list is being inserted into one of the tables. Nothing has been changed then. After
    /// `Busy` the call may be repeated.
    pub fn commit(&self) -> Result<CommitOutcome, Error> {
        let guard = larder_index::pin();
        // Destructors of a host may use these keys and the views, so none runs before the locks of
        // the keys and of the writes are released: what is declared later is dropped sooner.
        let _held = HeldFlushes::begin(&guard);
        let writes = self.locked_writes();
        let written = self.written(&writes);
        // A transaction that has only read can't lose: everything it has read is of its snapshot.
        if written.is_empty() {
            self.end_views(&guard);
            return Ok(CommitOutcome::Committed);
        }
        // Expired objects make room.
        while let Some(table) = self.full_table(&written, &guard)? {
            self.expire_rows(table, &written, &guard)?;
        }
        // (tx3) Lock the written keys. This waits for writes of single keys and for other commits.
        let locks = CommitLocks::take(written.iter().map(WrittenKey::lock).collect());
        self.commit_under(locks, &written, &guard)
    }

    /// Steps tx3 to tx6, under the locks of the written keys.
    ///
    /// # Errors
    /// Those of `commit`.
    fn commit_under(
        &self,
        locks: CommitLocks,
        written: &[WrittenKey<'_>],
        guard: &Guard,
    ) -> Result<CommitOutcome, Error> {
        // (tx3) Claim values in unique indexes, then draw the number: the linearisation point.
        let claims = self.claim(written, guard)?;
        let active = ActiveCommit::begin();
        // Load the stores after the number was drawn. If a table was emptied or got another index
        // meanwhile, the transaction has lost. If a list batch holds a latch, this is `Busy`.
        let stores = self.stores(guard)?.filter(|stores| claims.are_of(stores));
        let mut taken = None;
        let outcome = match stores {
            // (tx4) Validate.
            Some(stores) if self.is_valid(written, &locks, &active, guard) => {
                // (tx5) Release our snapshots first. Otherwise our own writes would keep versions
                // for them.
                self.end_views(guard);
                match claims.made {
                    Ok(claimed) => {
                        self.apply_claimed(claimed, written, &stores, &active, guard)?;
                        CommitOutcome::Committed
                    }
                    // Another row has the value. Validation has shown that nothing that was read
                    // has changed, so running the transaction again would not help.
                    Err((Refused::Taken(index), part)) => {
                        taken = Some((index, part));
                        CommitOutcome::Conflict
                    }
                    Err((Refused::Undecided, _)) => CommitOutcome::Conflict,
                }
            }
            _ => {
                self.end_views(guard);
                CommitOutcome::Conflict
            }
        };
        // (tx6) Release the key locks first. A snapshot that finds the commit over may read its
        // keys at once.
        drop(locks);
        drop(active);
        for TableInTransaction { table, .. } in &self.parts {
            table.evict_after(guard, written.len());
        }
        match taken {
            Some((index, part)) => {
                let indexes = claims.indexes[part].as_deref();
                self.refused_by(index, part, indexes, guard)?;
                Ok(outcome)
            }
            None => Ok(outcome),
        }
    }

    /// (tx5) Makes the writes, whose values in unique indexes have been claimed.
    fn apply_claimed(
        &self,
        mut claimed: Vec<Claimed>,
        written: &[WrittenKey<'_>],
        stores: &[&Store],
        active: &ActiveCommit,
        guard: &Guard,
    ) -> Result<(), Error> {
        // A value may pass from one of our rows to another.
        for claimed in &mut claimed {
            claimed.hand_over(guard);
        }
        // The changes of all tables are one group in their feeds.
        let apply = || self.apply(written, stores, guard);
        active.during(|| feed::together(apply))?;
        claimed.into_iter().for_each(Claimed::keep);
        Ok(())
    }

    /// Called after another row of a table had a value in a unique index. Returns the error, or
    /// nothing if the transaction is merely lost.
    fn refused_by(
        &self,
        index: Atom,
        part: usize,
        indexes: Option<&Indexes>,
        guard: &Guard,
    ) -> Result<(), Error> {
        match self.free_holder(part, guard) {
            // The row that has the value had expired, and is removed. Or a list is being inserted:
            // the snapshots are released, so this commit can't be repeated.
            Ok(true) | Err(Error::Busy) => Ok(()),
            // An index that was being built is given up.
            Ok(false) if indexes.is_some_and(|indexes| indexes.give_up(index)) => Ok(()),
            Ok(false) => Err(Error::NotUnique(index.into())),
            Err(error) => Err(error),
        }
    }

    /// The stores that the commit writes to. `None` if a table has another history than when the
    /// transaction began. `Busy` if a list is being inserted into one of the tables.
    fn stores<'g>(&self, guard: &'g Guard) -> Result<Option<Stores<'g>>, Error> {
        let mut stores = Stores::new();
        for TableInTransaction { table, set, .. } in &self.parts {
            let op = table.begin(guard)?;
            let current = op.store.history();
            // Emptied, or not watched any more: the transaction has lost.
            if !current.is_some_and(|current| Arc::ptr_eq(current, &set.history)) {
                return Ok(None);
            }
            stores.push(op.store.of_commits());
        }
        Ok(Some(stores))
    }

    /// Ends the views, and releases the snapshots.
    fn end_views(&self, guard: &Guard) {
        for TableInTransaction { view, set, .. } in &self.parts {
            // A view that nobody else refers to is dropped together with the transaction.
            if Arc::strong_count(view) > 1 {
                view.end(guard);
            }
            drop(set.snapshot.lock().take());
        }
    }
}

impl Drop for EngineTransaction {
    fn drop(&mut self) {
        self.end();
    }
}

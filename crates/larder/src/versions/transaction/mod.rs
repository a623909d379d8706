//! Transactions: any number of reads and writes in some tables that take effect at one instant, or
//! not at all.
//!
//! # Definitions
//!
//! - *View*: a table through which a transaction reads and writes another. It shows the table as of
//!   the transaction's snapshot, with the transaction's own writes.
//! - *Working set*: what a transaction has read of a table (keys and ranges), and what it makes of
//!   keys (`view`).
//!
//! # Steps
//!
//! 1. *Begin*: a snapshot of all tables, with number s, and a view of each.
//! 2. *Run*: the caller reads and writes the views. The tables don't notice.
//! 3. *Lock* the keys that were written, in the order of the locks (`key_locks`). Claim the values
//!    that the rows are to have in unique indexes (`indexes::claims`). Then draw the number n of
//!    the commit. It is known to be under way until (6).
//! 4. *Validate*: no key that was read or written has a version with a number of s or more, and no
//!    other commit holds the lock of one. If a range was read, wait until the commits with numbers
//!    less than n are over; then no key in it has such a version. The unique indexes are those of
//!    (3).
//! 5. *Apply* the writes, with number n − 1.
//! 6. *Unlock*.
//!
//! If (4) fails, the transaction has *lost*: it had no effect, and may be run again. A transaction
//! that has written nothing ends after (2): it is as of its snapshot.
//!
//! Linearisation point: the drawing of n. No read of the keys that are written falls between n and
//! (6): reads of single keys wait for the locks, and a snapshot with a number greater than n waits
//! until the commit is over (`clock::wait_for_commits_before`).
//!
//! # Why transactions are serialisable
//!
//! The order is that of the numbers: of a snapshot s, of a write of one key c, of a list c, of a
//! commit n. A snapshot sees the writes with c < s and the commits with n < s, and no others. So it
//! has to be shown of a commit that, of what it has read or written, nothing was changed by a write
//! with s ≤ c < n or a commit with s < n' < n. What comes after n may be found, too; then the
//! transaction has lost without need.
//!
//! - *A commit with a lesser number* holds the locks of its keys since before it drew n'. So a key
//!   is found locked, or the commit is over. For ranges, it was waited for. A commit that is over
//!   has left a version of each key that it wrote, as this transaction's snapshot is live.
//! - *A write of one key* puts its version and then reads the clock; this transaction draws n and
//!   then looks for versions. So its version is found, or c ≥ n (invariant 6 of `history`).
//! - *A list* draws its number when it has the table's latch, and leaves its versions before it
//!   gives that back. After n was drawn, the latch is looked at (`stores`). If it is held, the
//!   commit is tried again later. If it is free, the list's versions are found, or it draws a
//!   number of n or more. So a list needs no waiting for: it is no commit of `clock`.
//! - *The emptying of a table* exchanges its store. If that is seen after n was drawn, the
//!   transaction has lost; else the emptying comes behind it.
//!
//! # Why nobody waits in a circle
//!
//! - Locks of keys are taken in the order of their places, and before the number is drawn. Whoever
//!   has drawn a number waits for no key lock any more.
//! - A commit waits for commits with lesser numbers, while it holds its locks. The least number
//!   under way waits for nobody. A commit that is drawing its number has its locks, and waits for
//!   nothing while it draws.
//! - Whoever holds the lock of a leaf waits for no key lock and no commit.
//!
//! The caller's code holds no lock.
//!
//! Sources: validation against undo records and predicates: HyPer (Neumann et al., SIGMOD 2015);
//! locks for the writes alone, and a read key's lock taken for a conflict: Silo (Tu et al., SOSP
//! 2013).

mod apply;
mod keyed;
mod priority;
mod reads;
mod view;
mod writes;

use super::clock::UnderWay;
use super::feed;
use super::key_locks::CommitLocks;
use super::snapshot::{cut, indexes_of, view_options, ViewOf};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::OwnerId;
use crate::indexes::{Claimed, Refused};
use crate::options::Access;
use crate::store::Store;
use crate::table::Table;
use apply::Written;
use larder_index::{Guard, Unique};
pub use priority::Turn;
use smallvec::SmallVec;
use std::sync::Arc;
use view::WorkingSet;

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its writes have taken effect.
    Committed,
    /// It had no effect: others changed what it has read.
    Lost,
}

/// A table of a transaction.
struct Part {
    table: Arc<Table>,
    view: Arc<Table>,
    set: Arc<WorkingSet>,
}

/// The stores by which a commit writes, in the order of its tables.
type Stores<'g> = SmallVec<[&'g Store; 4]>;

/// A transaction under way. Dropped before its commit, it had no effect.
pub struct Transaction {
    parts: Vec<Part>,
}

impl Engine {
    /// Begins a transaction of `who` on some tables. O(1) for each.
    ///
    /// # Errors
    /// As of [`Engine::snapshot`].
    pub fn begin(&self, tables: &[&Arc<Table>], who: OwnerId) -> Result<Transaction, Error> {
        prepare(tables, who)?;
        let snapshots = cut(tables)?;
        let mut parts = Vec::with_capacity(tables.len());
        for (table, snapshot) in tables.iter().zip(snapshots) {
            let (index, set) = view::view(snapshot, &table.seed);
            let indexes = indexes_of(table, &set.history);
            let differ = vec![Arc::clone(&set.history) as _, Arc::clone(&set) as _];
            let store = Store::of_view(index, indexes, differ);
            parts.push(self.part(table, (who, Access::Private), (store, set)));
        }
        Ok(Transaction { parts })
    }

    /// A table with its view.
    fn part(
        &self,
        table: &Arc<Table>,
        (who, access): (OwnerId, Access),
        (store, set): (Store, Arc<WorkingSet>),
    ) -> Part {
        let options = view_options(table, access);
        let of = ViewOf::transaction(table.id(), table.may_write(who).is_ok());
        let objects = (table.seed.clone(), store);
        let view =
            self.unlisted(|id, catalog| Table::of_view(id, options, who, catalog, objects, of));
        Part {
            table: Arc::clone(table),
            view,
            set,
        }
    }
}

/// Makes some tables ready for a transaction of `who`.
fn prepare(tables: &[&Arc<Table>], who: OwnerId) -> Result<(), Error> {
    for (i, table) in tables.iter().enumerate() {
        table.check_read(who)?;
        if tables[..i].iter().any(|other| Arc::ptr_eq(other, table)) {
            let twice = "a transaction has each of its tables once";
            return Err(Error::BadOption(twice.to_owned().into()));
        }
        table.lock_keys()?;
    }
    Ok(())
}

impl Transaction {
    /// The views of the tables, in their order. They are gone when the transaction is over.
    pub fn views(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.parts.iter().map(|part| &part.view)
    }

    /// How many keys it has written.
    pub fn keys_written(&self) -> usize {
        self.parts.iter().map(|part| part.set.writes.len()).sum()
    }

    /// Ends the transaction without effect, unless it was committed: its views are gone.
    pub fn end(&self) {
        self.end_under(&larder_index::pin());
    }

    /// Whether nobody has changed what it has read and written so far. If somebody has, its commit
    /// will be lost, unless it has written nothing; if not, somebody may at any moment.
    ///
    /// # Errors
    /// `NoTable` if one of the tables is gone, or the transaction has ended; `Busy` while a list is
    /// being inserted into one of the tables: then the call may be made again.
    pub fn validate(&self) -> Result<bool, Error> {
        let guard = larder_index::pin();
        if self.parts.iter().any(|part| !part.view.is_alive()) {
            return Err(Error::NoTable);
        }
        // (3), (4) and (6) of a commit that writes nothing.
        let written = self.written();
        let locks = CommitLocks::take(written.iter().map(|key| key.lock).collect());
        let under_way = UnderWay::begin();
        let has_stores = self.stores(&guard)?.is_some();
        Ok(has_stores && self.is_valid(&written, &locks, &under_way, &guard))
    }

    /// Ends the transaction: its writes take effect at one instant, if nobody has changed what it
    /// has read since it began.
    ///
    /// # Errors
    /// `NoTable` if one of the tables is gone; `NotUnique` if another row has the value of one that
    /// was written, in a unique index; `Full` if a table has no room for what is new; `Busy` while
    /// a list is being inserted into one of the tables. Nothing was done then; after `Busy` the
    /// call may be made again.
    pub fn commit(&self) -> Result<Outcome, Error> {
        let guard = larder_index::pin();
        let written = self.written();
        if written.is_empty() {
            self.end_under(&guard);
            return Ok(Outcome::Committed);
        }
        self.ask_for_room(&written, &guard)?;
        // (3)
        let locks = CommitLocks::take(written.iter().map(|key| key.lock).collect());
        self.commit_under(locks, &written, &guard)
    }

    /// (3) to (6), under the locks of the keys that were written.
    ///
    /// # Errors
    /// As of `commit`.
    fn commit_under(
        &self,
        locks: CommitLocks,
        written: &[Written],
        guard: &Guard,
    ) -> Result<Outcome, Error> {
        let claims = self.claim(written, guard)?;
        let under_way = UnderWay::begin();
        let stores = self.stores(guard)?.filter(|stores| claims.are_of(stores));
        let mut taken = None;
        let outcome = match stores {
            Some(stores) if self.is_valid(written, &locks, &under_way, guard) => {
                // (5) The snapshots are given up before, so that nothing is kept for them.
                self.end_under(guard);
                match claims.made {
                    Ok(mut claimed) => {
                        claimed.iter_mut().for_each(|own| own.hand_over(guard));
                        let apply = || self.apply(written, &stores, guard);
                        under_way.during(|| feed::together(apply))?;
                        claimed.into_iter().for_each(Claimed::keep);
                        Outcome::Committed
                    }
                    // Somebody has the value, and nothing that was read has changed since.
                    Err(Refused::Taken(index)) => {
                        taken = Some(index);
                        Outcome::Lost
                    }
                    Err(Refused::Unsettled) => Outcome::Lost,
                }
            }
            _ => {
                self.end_under(guard);
                Outcome::Lost
            }
        };
        // (6) In this order: a snapshot that finds the commit over may read its keys at once.
        drop(locks);
        drop(under_way);
        for Part { table, .. } in &self.parts {
            table.evict_after(guard, written.len());
        }
        match taken {
            // A row that is expired gives its value up, under the lock of its own key.
            Some(index) if !self.free_holder(guard)? => Err(Error::NotUnique(index)),
            _ => Ok(outcome),
        }
    }

    /// Whether each table is as it was: it has its history still, and no list is being inserted.
    /// The stores by which the commit writes.
    fn stores<'g>(&self, guard: &'g Guard) -> Result<Option<Stores<'g>>, Error> {
        let mut stores = Stores::new();
        for Part { table, set, .. } in &self.parts {
            let op = table.begin(guard)?;
            let own = op.store.history();
            if !own.is_some_and(|own| Arc::ptr_eq(own, &set.history)) {
                return Ok(None);
            }
            stores.push(op.store.of_commits());
        }
        Ok(Some(stores))
    }

    /// The views are gone, and the snapshots released.
    fn end_under(&self, guard: &Guard) {
        for Part { view, set, .. } in &self.parts {
            // One that nobody else has goes with the transaction.
            if Arc::strong_count(view) > 1 {
                view.end(guard);
            }
            drop(set.snapshot.lock().take());
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.end();
    }
}

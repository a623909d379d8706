//! Snapshots: tables as of an instant.

use super::feed::{Event, Feed, FeedOptions};
use super::table::tuple;
use super::{patiently, Larder, Table};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::table::EngineTable;
use crate::versions::Difference;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A table as it was at an instant. It has all reading operations of a [`Table`]. Writing
/// operations return [`Error::ReadOnly`]. The snapshot is released when it is dropped.
///
/// ```
/// use larder::api::Larder;
/// use larder::term;
///
/// # fn main() -> Result<(), larder::Error> {
/// let accounts = Larder::new().table("accounts").create()?;
/// accounts.insert_all(&[term!({alice, 10}), term!({bob, 5})])?;
/// let before = accounts.snapshot()?;
/// accounts.add(&term!(alice), 2, (-3))?;
/// accounts.add(&term!(bob), 2, 3)?;
/// assert_eq!(before.lookup(&term!(alice))?, [term!({alice, 10})]);
/// assert_eq!(accounts.lookup(&term!(alice))?, [term!({alice, 7})]);
/// # Ok(()) }
/// ```
pub struct Snapshot(Table);

impl Snapshot {
    /// Wraps a table that is a snapshot.
    pub(super) fn of(table: Table) -> Self {
        Snapshot(table)
    }

    /// Wraps a snapshot that the engine has taken for the owner of `larder`, for a host that calls
    /// the engine itself.
    ///
    /// # Errors
    /// `TableType` if the table isn't a snapshot.
    pub fn of_engine(snapshot: Arc<EngineTable>, larder: &Larder) -> Result<Self, Error> {
        if snapshot.snapshot_info().is_none() {
            return Err(Error::TableType);
        }
        Ok(Snapshot(Table::new(snapshot, &larder.0)))
    }

    /// Returns the changes that turn the content of this snapshot into that of another one of the
    /// same table, in no particular order: `Insert`, `Replace` and `Delete`.
    ///
    /// ```
    /// use larder::api::{Event, Larder};
    /// use larder::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let stock = Larder::new().table("stock").create()?;
    /// let before = stock.snapshot()?;
    /// stock.insert(&term!({apple, 3}))?;
    /// let diff = before.diff(&stock.snapshot()?)?;
    /// assert_eq!(diff, [Event::Insert(term!({apple, 3}))]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `TableType` if the two are of different tables.
    ///
    /// # Complexity
    /// Linear in the number of keys that have changed since the oldest live snapshot was taken,
    /// whatever the size of the table. If the table was emptied between the two, linear in the
    /// number of all keys.
    pub fn diff(&self, other: &Snapshot) -> Result<Vec<Event>, Error> {
        let mut found = Vec::new();
        let (old, new) = (self.0.engine_table(), other.0.engine_table());
        let mut job = old.diff(new, self.0.me())?;
        while job.step(&mut Budget::slice(), &mut |difference| {
            found.push(match difference {
                Difference::Insert(new) => Event::Insert(tuple(new)),
                Difference::Replace { old, new } => Event::Replace(tuple(old), tuple(new)),
                Difference::Delete(old) => Event::Delete(tuple(old)),
            });
        })? == Step::More
        {
            // It may be waiting for others.
            std::thread::yield_now();
        }
        Ok(found)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Snapshot {
    type Target = Table;
    fn deref(&self) -> &Table {
        &self.0
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // The only error is that it is dropped already, with the engine.
        let _ = self.0.engine_table().release_snapshot(self.0.me());
    }
}

impl Table {
    /// Takes a snapshot of the table: it stays as it is now, while the table changes. O(1). If a
    /// list is being inserted, the call first helps to finish that.
    ///
    /// # Errors
    /// `NoTable`; `TableType` for a table on a structure of the studies, for a snapshot, and in a
    /// transaction.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.larder().snapshot(&[self])?.pop().ok_or(Error::NoTable)
    }

    /// Takes a snapshot, and subscribes to the changes after it. Each change is in exactly one of
    /// the two, with one exception: a tuple that had expired when the snapshot was taken, and was
    /// not removed yet, may be reported by [`Event::Expire`], or as deleted or replaced by a
    /// transaction that had seen it, though the snapshot doesn't show it.
    ///
    /// ```
    /// use larder::api::{Event, FeedOptions, Larder};
    /// use larder::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let stock = Larder::new().table("stock").create()?;
    /// stock.insert(&term!({apple, 3}))?;
    /// let (before, mut feed) = stock.snapshot_and_subscribe(&FeedOptions::default())?;
    /// stock.insert(&term!({pear, 1}))?;
    /// assert_eq!(before.to_vec()?, [term!({apple, 3})]);
    /// assert_eq!(feed.recv().unwrap().events, [Event::Insert(term!({pear, 1}))]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `subscribe_with`.
    pub fn snapshot_and_subscribe(&self, options: &FeedOptions) -> Result<(Snapshot, Feed), Error> {
        // The engine takes both at one instant, so no change is in neither of them.
        let ((snapshot, subscription), signal) = self.patiently(|| {
            // Each attempt makes its own signal, which the subscription keeps.
            let (options, signal) = options.compiled()?;
            let (larder, table) = (self.larder(), self.engine_table());
            let engine = larder.engine();
            Ok((
                engine.snapshot_and_subscribe(table, self.me(), options)?,
                signal,
            ))
        })?;
        let snapshot = Snapshot::of(Table::new(snapshot, &self.larder().0));
        Ok((snapshot, Feed::new(subscription, signal)))
    }
}

impl Larder {
    /// Takes snapshots of some tables, all of one instant. O(1) for each, as for
    /// [`Table::snapshot`].
    ///
    /// # Errors
    /// Those of [`Table::snapshot`].
    pub fn snapshot(&self, tables: &[&Table]) -> Result<Vec<Snapshot>, Error> {
        let engine_tables: Vec<_> = tables.iter().map(|table| table.engine_table()).collect();
        let take = || self.engine().snapshot(&engine_tables, self.owner());
        let table = |table| Snapshot(Table::new(table, &self.0));
        let snapshots = patiently(&engine_tables, take)?;
        Ok(snapshots.into_iter().map(table).collect())
    }
}

//! Snapshots: tables as of an instant.

use super::{Larder, Table};
use crate::error::Error;
use std::fmt;
use std::ops::Deref;

/// A table as it was at an instant. It has all the operations of a [`Table`] that read; those that
/// write answer [`Error::ReadOnly`]. It is released when it is dropped.
///
/// ```
/// use larder::api::Larder;
/// use larder_term::term;
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
    /// The snapshot that is this table.
    pub(super) fn of(table: Table) -> Self {
        Snapshot(table)
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
        // The only error is that it is gone already, with the engine.
        let _ = self.0.engine_table().release_snapshot(self.0.me());
    }
}

impl Table {
    /// A snapshot of the table. O(1).
    ///
    /// # Errors
    /// `NoTable`; `TableType` for a table on a structure of the studies, and for a snapshot.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.larder().snapshot(&[self])?.pop().ok_or(Error::NoTable)
    }
}

impl Larder {
    /// Snapshots of some tables, all of one instant. O(1) for each.
    ///
    /// # Errors
    /// As [`Table::snapshot`].
    pub fn snapshot(&self, tables: &[&Table]) -> Result<Vec<Snapshot>, Error> {
        let engine_tables: Vec<_> = tables.iter().map(|table| table.engine_table()).collect();
        loop {
            match self.engine().snapshot(&engine_tables, self.owner()) {
                Err(Error::Busy) => engine_tables
                    .iter()
                    .for_each(|table| table.wait_for_batch()),
                snapshots => {
                    let table = |table| Snapshot(Table::new(table, &self.0));
                    return Ok(snapshots?.into_iter().map(table).collect());
                }
            }
        }
    }
}

//! Snapshots and transactions of typed tables.

use super::layout::Ordered;
use super::order::Order;
use super::Typed;
use crate::api::{Snapshot, Table};
use crate::error::Error;
use std::fmt;
use std::ops::Deref;

/// A typed table as it was at an instant. It has all reading operations of [`Typed`]. Writing
/// operations return [`Error::ReadOnly`]. The snapshot is released when it is dropped.
pub struct TypedSnapshot<K, V, O = Ordered> {
    typed: Typed<K, V, O>,
    snapshot: Snapshot,
}

impl<K, V, O> TypedSnapshot<K, V, O> {
    /// The snapshot, whose rows are terms.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl<K, V, O> fmt::Debug for TypedSnapshot<K, V, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot.fmt(f)
    }
}

impl<K, V, O> Deref for TypedSnapshot<K, V, O> {
    type Target = Typed<K, V, O>;
    fn deref(&self) -> &Typed<K, V, O> {
        &self.typed
    }
}

impl<K, V, O: Order> Typed<K, V, O> {
    /// Takes a snapshot of the table. O(1).
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let stock = Larder::new().typed::<String, u32>("stock")?;
    /// stock.insert("pear".into(), 3)?;
    /// let before = stock.snapshot()?;
    /// stock.clear()?;
    /// assert_eq!(before.get("pear")?, Some(3));
    /// assert_eq!(before.iter().count(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NoTable`; `TableType` for a table on a structure of the studies, and for a snapshot.
    pub fn snapshot(&self) -> Result<TypedSnapshot<K, V, O>, Error> {
        let snapshot = self.table.snapshot()?;
        let typed = Typed::of(Table::clone(&snapshot));
        Ok(TypedSnapshot { typed, snapshot })
    }

    /// Makes a typed view of another table with the same types: one of several snapshots
    /// ([`Larder::snapshot`](crate::api::Larder::snapshot)), or a view in a transaction
    /// ([`Larder::transaction`](crate::api::Larder::transaction)).
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let larder = Larder::new();
    /// let accounts = larder.typed::<String, u64>("accounts")?;
    /// let log = larder.typed::<u64, (String, String, u64)>("log")?;
    /// accounts.insert("ann".into(), 10)?;
    /// larder.transaction(&[accounts.table(), log.table()], |views| {
    ///     let (accounts, log) = (accounts.on(&views[0])?, log.on(&views[1])?);
    ///     accounts.compute("ann", |n| n.map(|n| n - 3))?;
    ///     accounts.compute("bob", |n| Some(n.unwrap_or(0) + 3))?;
    ///     log.put(&(log.len() as u64), &("ann".into(), "bob".into(), 3))
    /// })?;
    /// assert_eq!(accounts.get("bob")?, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `TableType`, as for [`Table::typed`] and [`Table::typed_hash`].
    pub fn on(&self, table: &Table) -> Result<Self, Error> {
        Self::view(table)
    }

    /// Calls `f` with a view of the table. When `f` returns, its writes to the view take effect at
    /// one instant. If other threads have changed what `f` has read, its writes have no effect, and
    /// `f` is called again. If `f` fails, its writes have no effect.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let accounts = Larder::new().typed::<String, u64>("accounts")?;
    /// accounts.extend([("ann".into(), 10), ("bob".into(), 0)])?;
    /// accounts.transaction(|accounts| {
    ///     let all = accounts.remove("ann")?.unwrap_or(0);
    ///     accounts.compute("bob", |n| n.map(|n| n + all))
    /// })?;
    /// assert_eq!(accounts.get("bob")?, Some(10));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Larder::transaction`](crate::api::Larder::transaction).
    pub fn transaction<R>(&self, mut f: impl FnMut(&Self) -> Result<R, Error>) -> Result<R, Error> {
        let larder = self.table.larder();
        larder.transaction(&[&self.table], |views| match views {
            [view] => f(&Self::view(view)?),
            _ => Err(Error::NoTable),
        })
    }
}

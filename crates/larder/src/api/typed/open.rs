//! Typed views of tables: made, found, and of snapshots and transactions' views.

use super::Typed;
use crate::api::{Builder, Larder, Table};
use crate::error::Error;
use crate::options::TableKind;

impl Larder {
    /// The typed table of this name, which is made if there is none: an ordered_set that
    /// [`Larder::find`] finds. [`Builder::typed`] makes one with options.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let larder = Larder::new();
    /// larder.typed::<u64, String>("names")?.insert(1, "Ann".into())?;
    /// assert_eq!(larder.typed::<u64, String>("names")?.get(&1)?, Some("Ann".into()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `BadOption` for a name over 255 characters; `TableType`, as [`Table::typed`], if there is
    /// such a table and it is no ordered_set.
    pub fn typed<K, V>(&self, name: &str) -> Result<Typed<K, V>, Error> {
        loop {
            if let Some(table) = self.find(name) {
                return table.typed();
            }
            // Of several that make it at once, the others find it.
            match self.table(name).named().typed() {
                Err(Error::AlreadyExists) => {}
                made => return made,
            }
        }
    }
}

impl Builder {
    /// Makes the table, an ordered_set, for keys and values of these types.
    ///
    /// ```
    /// use larder::prelude::*;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let recent = Larder::new()
    ///     .table("recent")
    ///     .ttl(Duration::from_secs(60))
    ///     .max_size(10_000)
    ///     .typed::<u64, String>()?;
    /// recent.insert(1, "one".into())?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As `create`; `TableType` for bags, and with a key position other than 1.
    pub fn typed<K, V>(self) -> Result<Typed<K, V>, Error> {
        if !self.options.kind.is_unique() {
            return Err(Error::TableType);
        }
        self.ordered_set().create()?.typed()
    }
}

impl Table {
    /// The table, an ordered_set with the key in front, for keys and values of these types. Rows
    /// are not looked at: one of other types is an error when it is read.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let table = Larder::new().table("stock").ordered_set().create()?;
    /// table.insert_all(&[term!({"apple", 3}), term!({"pear", plenty})])?;
    /// let stock = table.typed::<String, u32>()?;
    /// assert_eq!(stock.get("apple")?, Some(3));
    /// assert!(matches!(stock.get("pear"), Err(larder::Error::WrongType(_))));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `TableType` for a table of another type, or with another key position.
    pub fn typed<K, V>(&self) -> Result<Typed<K, V>, Error> {
        let table = self.engine_table();
        match (table.kind(), table.keypos()) {
            (TableKind::OrderedSet, 1) => Ok(Typed::of(self.clone())),
            _ => Err(Error::TableType),
        }
    }
}

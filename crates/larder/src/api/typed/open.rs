//! Typed views of new and of existing tables.

use super::order::Order;
use super::{Typed, TypedHash};
use crate::api::{Builder, Larder, Table};
use crate::error::Error;

impl Larder {
    /// Returns the typed table of this name, and creates it if there is none: an ordered_set that
    /// [`Larder::find`] finds. [`Builder::typed`] creates one with options.
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
    /// `BadOption` for a name of more than 255 characters; `TableType`, as for [`Table::typed`], if
    /// there is such a table and it isn't an ordered_set.
    pub fn typed<K, V>(&self, name: &str) -> Result<Typed<K, V>, Error> {
        self.open(name)
    }

    /// Returns the typed table by hash of this name, and creates it if there is none: a set that
    /// [`Larder::find`] finds. [`Builder::typed_hash`] creates one with options.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let larder = Larder::new();
    /// larder.typed_hash::<u64, String>("names")?.insert(1, "Ann".into())?;
    /// assert_eq!(larder.typed_hash::<u64, String>("names")?.get(&1)?, Some("Ann".into()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `BadOption` for a name of more than 255 characters; `TableType`, as for
    /// [`Table::typed_hash`], if there is such a table and it isn't a set.
    pub fn typed_hash<K, V>(&self, name: &str) -> Result<TypedHash<K, V>, Error> {
        self.open(name)
    }

    fn open<K, V, O: Order>(&self, name: &str) -> Result<Typed<K, V, O>, Error> {
        loop {
            if let Some(table) = self.find(name) {
                return Typed::view(&table);
            }
            // If several threads create it at the same time, all but one find it.
            match self.table(name).named().make() {
                Err(Error::AlreadyExists) => {}
                made => return made,
            }
        }
    }
}

impl Builder {
    /// Creates the table, an ordered_set, for keys and values of these types.
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
    /// Those of `create`; `TableType` for bags, and with a key position other than 1.
    pub fn typed<K, V>(self) -> Result<Typed<K, V>, Error> {
        self.make()
    }

    /// Creates the table, a set, for keys and values of these types.
    ///
    /// ```
    /// use larder::prelude::*;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let sessions = Larder::new()
    ///     .table("sessions")
    ///     .idle(Duration::from_secs(600))
    ///     .typed_hash::<u64, String>()?;
    /// sessions.insert(1, "ann".into())?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `create`; `TableType` for bags and ordered_sets, and with a key position other than
    /// 1.
    pub fn typed_hash<K, V>(self) -> Result<TypedHash<K, V>, Error> {
        if self.options.kind.is_ordered() {
            return Err(Error::TableType);
        }
        self.make()
    }

    fn make<K, V, O: Order>(mut self) -> Result<Typed<K, V, O>, Error> {
        if !self.options.kind.is_unique() {
            return Err(Error::TableType);
        }
        // Checked before the table is made: a named one would stay.
        if self.options.keypos != 1 {
            return Err(Error::TableType);
        }
        self.options.kind = O::KIND;
        Typed::view(&self.create()?)
    }
}

impl Table {
    /// Makes a typed view of the table, an ordered_set with the key in front. Rows are not checked.
    /// Reading a row of other types returns `WrongType`.
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
        Typed::view(self)
    }

    /// Makes a typed view of the table, a set with the key in front. Rows are not checked.
    /// Reading a row of other types returns `WrongType`.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let table = Larder::new().table("stock").set().create()?;
    /// table.insert_all(&[term!({"apple", 3}), term!({"pear", plenty})])?;
    /// let stock = table.typed_hash::<String, u32>()?;
    /// assert_eq!(stock.get("apple")?, Some(3));
    /// assert!(matches!(stock.get("pear"), Err(larder::Error::WrongType(_))));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `TableType` for a table of another type, or with another key position.
    pub fn typed_hash<K, V>(&self) -> Result<TypedHash<K, V>, Error> {
        Typed::view(self)
    }
}

impl<K, V, O: Order> Typed<K, V, O> {
    /// A typed view of a table.
    ///
    /// # Errors
    /// `TableType` for a table of another kind, or with another key position.
    pub(super) fn view(table: &Table) -> Result<Self, Error> {
        let engine_table = table.engine_table();
        match engine_table.kind() == O::KIND && engine_table.keypos() == 1 {
            true => Ok(Typed::of(table.clone())),
            false => Err(Error::TableType),
        }
    }
}

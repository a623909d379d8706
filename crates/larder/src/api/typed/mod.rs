//! Typed tables, which take and return values of Rust's types. With the feature `serde`.
//!
//! ```
//! use larder::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Debug, PartialEq)]
//! struct Order {
//!     symbol: String,
//!     quantity: u32,
//! }
//!
//! # fn main() -> Result<(), larder::Error> {
//! let larder = Larder::new();
//! let orders = larder.typed::<u64, Order>("orders")?;
//! let order = |symbol: &str, quantity| Order { symbol: symbol.into(), quantity };
//!
//! assert_eq!(orders.insert(7, order("ACME", 100))?, None);
//! orders.insert(12, order("ACME", 5))?;
//! assert_eq!(orders.get(&7)?, Some(order("ACME", 100)));
//!
//! for entry in orders.range(5..20)?.rev() {
//!     let (id, order) = entry?;
//!     println!("{id}: {} of {}", order.quantity, order.symbol);
//! }
//! // The same table, in terms.
//! assert_eq!(orders.table().lookup(&Term::from(12))?, [term!({12, {"ACME", 5}})]);
//! # Ok(()) }
//! ```
//!
//! A typed table is an ordered_set of rows `{Key, Value}`. Keys are converted to terms by
//! [`OrderedKey`], as its table says, and values by serde, as the table below says. So typed tables
//! have everything that tables have: files, feeds, secondary indexes and match specifications, from
//! Rust and from any other program that uses the table. A [`Typed`] is a view of a [`Table`].
//! [`Typed::table`] returns the table. [`Table::typed`] makes a typed view of any ordered_set,
//! including snapshots and the views of transactions.
//!
//! # Tables by hash
//!
//! A [`TypedHash`] is a set of such rows. It has all operations that need no order, and they take
//! less time. Ranges, ranks, the first and the last row exist only for ordered tables: for others
//! they don't compile.
//!
//! ```
//! use larder::prelude::*;
//!
//! # fn main() -> Result<(), larder::Error> {
//! let hits = Larder::new().typed_hash::<String, u64>("hits")?;
//! for page in ["/", "/help", "/"] {
//!     hits.compute(page, |n| Some(n.unwrap_or(0) + 1))?;
//! }
//! assert_eq!(hits.get("/")?, Some(2));
//! # Ok(()) }
//! ```
//!
//! ```compile_fail,E0599
//! # use larder::prelude::*;
//! # fn main() -> Result<(), larder::Error> {
//! let hits = Larder::new().typed_hash::<String, u64>("hits")?;
//! hits.first()?;
//! # Ok(()) }
//! ```
//!
//! # Values as terms
//!
//! | value | term |
//! |---|---|
//! | integers, `char` | an integer |
//! | floats | a float; `nan`, `infinity`, `'-infinity'` for what Erlang has no float for |
//! | `bool` | `true`, `false` |
//! | texts, bytes | a binary |
//! | sequences | a list |
//! | tuples, structs | a tuple of the elements, of the fields in order |
//! | a struct that wraps one value without a name | that value |
//! | maps | a map |
//! | a variant of an enum | its name, an atom; with fields `{Name, Fields…}` |
//! | `None` | `undefined` |
//! | `Some(x)` | a number, `bool`, text, bytes, sequence or map `x`: `x`; else `{some, x}` |
//! | `()` | `{}` |
//!
//! A struct can also be read from a map with the names of its fields as atoms, and a float from an
//! integer. After a field is added at the end, with `#[serde(default)]`, older rows can still be
//! read. A field that is left out (`skip_serializing_if`) is an error, because the others would
//! move. One that is left out only when it is written (`skip_serializing`) isn't noticed, and those
//! after it are read from wrong places: leave it out of both, by `skip`. Attributes for which a
//! term must describe itself (`untagged`, `tag`, `flatten`) work as far as it does: they see a
//! variant with fields as a tuple. A `Vec<u8>` is a list for serde; as `serde_bytes` it is a
//! binary.
//!
//! # Errors
//!
//! A row of other types is [`Error::WrongType`]; the text says which row and why. So is a value
//! that can't be converted to a term, and then nothing is changed. Other errors are those of
//! tables: [`Error::NoTable`] for all operations on a table that was dropped, [`Error::ReadOnly`]
//! for writes to a snapshot, [`Error::Full`], [`Error::NotUnique`].
//!
//! # Locks
//!
//! No lock is held while a function of the caller runs (in `with`, `compute`, `retain`, entries and
//! iterators), so it may use any table. An operation that reads and then writes (`compute`) is
//! repeated if another thread has written meanwhile. So its function may be called more than once.
//!
//! # Why terms
//!
//! Keys and values could have an encoding and an index of their own. That would save the object's
//! header and little else: for integers, texts and bytes an index key is made directly, without a
//! term, and a value is read in place. But such an index would have no snapshots, transactions,
//! ranks, bounds, feeds or files. `make bench-rust` measures both, side by side. A lookup by `u64`
//! takes about 1.3 times as long as in such an index among 300,000 rows, and 1.6 times among a
//! thousand, in the processor's caches (docs/performance.md §12).

mod bytes;
mod change;
mod de;
mod entry;
mod iter;
mod key;
mod layout;
mod open;
mod order;
mod plain;
mod range;
mod row;
mod ser;
mod snapshot;

use super::Table;
use crate::batch::ObjectList;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::keys::KeyList;
use crate::local::with_local;
use crate::ops::TimeLeft;
use crate::stored::Stored;
use larder_index::Direction;
use larder_term::object::ObjectBuf;
use larder_term::Term;
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::time::Duration;

pub use entry::Entry;
pub use iter::Iter;
pub use key::{bad_key, EncodeKey, OrderedKey};
#[doc(hidden)]
pub use key::{Leaf, Shape};
pub use layout::{Hashed, Ordered};
pub use order::Order;
pub use range::Range;
pub use row::{Row, View};
pub use snapshot::TypedSnapshot;

pub use larder_derive::OrderedKey;
/// The encoder and the reader of an [`OrderedKey`].
pub use larder_term::{Encoder, TermRef};

/// A table of keys `K` and values `V`, in the order of the keys, or by hash ([`TypedHash`]). Clones
/// are handles of the same table. Any number of threads may use them. See the [module](self).
pub struct Typed<K, V, O = Ordered> {
    table: Table,
    types: PhantomData<Produces<(K, V, O)>>,
}

/// A handle makes keys and values, and holds none. So it is `Send` and `Sync` whatever they are.
type Produces<T> = fn() -> T;

/// A typed table by hash. It has the operations of [`Typed`] that need no order.
pub type TypedHash<K, V> = Typed<K, V, Hashed>;

impl<K, V, O> Clone for Typed<K, V, O> {
    fn clone(&self) -> Self {
        Self::of(self.table.clone())
    }
}

impl<K, V, O> fmt::Debug for Typed<K, V, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

impl<K, V, O> Typed<K, V, O> {
    /// Makes a typed view of a table of kind `O` with the key in front.
    fn of(table: Table) -> Self {
        let types = PhantomData;
        Typed { table, types }
    }

    /// The table, whose rows are terms, for operations that typed tables don't have.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let stock = Larder::new().typed::<String, u32>("stock")?;
    /// stock.insert("pear".into(), 3)?;
    /// stock.insert("plum".into(), 20)?;
    /// assert_eq!(stock.table().take(&term!("pear"))?, [term!({"pear", 3})]);
    /// # Ok(()) }
    /// ```
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the number of rows. Rows that have expired count until they are removed. O(1). In
    /// snapshots and transactions as [`Table::len`].
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Removes all rows at one instant. Returns their number. O(1).
    ///
    /// # Errors
    /// `NoTable`, `ReadOnly`.
    pub fn clear(&self) -> Result<usize, Error> {
        self.table.clear()
    }
}

impl<K: OrderedKey, V: Serialize + DeserializeOwned, O: Order> Typed<K, V, O> {
    /// Runs an operation with an index key. If a list insert is in the way, waits for it and
    /// retries.
    #[inline]
    fn at<Q: EncodeKey + ?Sized, R>(
        &self,
        key: &Q,
        mut f: impl FnMut(&[u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        const { key::found_by::<K, Q>() };
        let form = self.table.engine_table().key_form();
        bytes::with_key::<O, _, _>(form, key, |key| self.table.patiently(|| f(key)))?
    }

    /// Returns the value under a key.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let ages = Larder::new().typed::<String, u8>("ages")?;
    /// ages.insert("Ann".into(), 34)?;
    /// assert_eq!(ages.get("Ann")?, Some(34));
    /// assert_eq!(ages.get("Bob")?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType`, `NoTable`.
    ///
    /// # Complexity
    /// O(log n), by hash O(1), and linear in the size of the value. Takes no lock.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        // The visitor can't return an error, so the result goes around it.
        let mut found = Ok(None);
        self.look(key, |stored| found = row::value(stored).map(Some))?;
        found
    }

    /// Calls `f` with a view of the value under a key, in place. Only the parts that `f` asks for
    /// are read, and texts and bytes without a copy. Returns the result of `f`, or `None` if there
    /// is no such key.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let users = Larder::new().typed::<u64, (String, u32, Vec<String>)>("users")?;
    /// users.insert(1, ("Ann".into(), 34, vec!["admin".into()]))?;
    /// let letters = users.with(&1, |user| user.field::<&str>(0).map(str::len))?;
    /// assert_eq!(letters.transpose()?, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NoTable`; `WrongType` if the row isn't `{Key, Value}`.
    #[inline]
    pub fn with<Q, R>(&self, key: &Q, f: impl FnOnce(View<'_>) -> R) -> Result<Option<R>, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        // The visitor is called at most once, since a set has one row under a key.
        let (mut f, mut found) = (Some(f), Ok(None));
        self.look(key, |stored| {
            found = row::view(stored).map(|view| f.take().map(|f| f(view)));
        })?;
        found
    }

    /// Visits the object under a key, if there is one.
    #[inline]
    fn look<Q: EncodeKey + ?Sized>(
        &self,
        key: &Q,
        mut visit: impl FnMut(Stored<'_>),
    ) -> Result<(), Error> {
        let (table, me) = (self.table.engine_table(), self.table.me());
        self.at(key, |key| {
            with_local(|local| table.lookup_in(local, me, key, &mut visit)).map(|_| ())
        })
    }

    /// Returns the values under several keys. Each is looked up by itself, but their cache misses
    /// overlap.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let squares = Larder::new().typed::<u32, u64>("squares")?;
    /// squares.extend((0..10).map(|n| (n, u64::from(n * n))))?;
    /// assert_eq!(squares.get_many(&[3, 11, 9])?, [Some(9), None, Some(81)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `get`.
    pub fn get_many<Q>(&self, keys: &[Q]) -> Result<Vec<Option<V>>, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey,
    {
        const { key::found_by::<K, Q>() };
        // All keys are encoded first, so that the engine can prefetch for all of them.
        let (table, me) = (self.table.engine_table(), self.table.me());
        let mut list = KeyList::new();
        for key in keys {
            bytes::with_key::<O, _, _>(table.key_form(), key, |key| list.push(key))?;
        }
        let (mut found, mut wrong) = (Vec::with_capacity(keys.len()), None);
        self.table.patiently(|| {
            // An attempt that a list batch has interrupted begins anew.
            found.clear();
            with_local(|local| {
                table.lookup_many_in(local, me, &list, |i, stored| {
                    match stored.map(row::value) {
                        Some(Ok(value)) => found.push(Some(value)),
                        Some(Err(error)) => wrong = Some(error),
                        // This key was looked up.
                        None if found.len() == i => found.push(None),
                        None => {}
                    }
                    wrong.is_none()
                })
            })
        })?;
        wrong.map_or(Ok(found), Err)
    }

    /// Returns whether there is a row under a key.
    ///
    /// # Errors
    /// `WrongType` for an invalid key, `NoTable`.
    pub fn contains_key<Q>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        // Only the key is looked up. No value is read.
        let (table, me) = (self.table.engine_table(), self.table.me());
        self.at(key, |key| table.member(me, key))
    }

    /// Returns an iterator over all rows: of an ordered table in order and from either end, as
    /// [`range`](Typed::range), of a table by hash in no order. Rows that other threads insert or
    /// delete meanwhile may be returned or not. A row that doesn't change is returned once. In a
    /// [snapshot](Self::snapshot) and in a transaction the rows are those of one instant.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let larder = Larder::new();
    /// let squares = larder.typed::<u32, u32>("squares")?;
    /// squares.extend((1..=3).map(|n| (n, n * n)))?;
    /// assert_eq!(squares.iter().next_back().transpose()?, Some((3, 9)));
    ///
    /// let cubes = larder.typed_hash::<u32, u32>("cubes")?;
    /// cubes.extend((1..=3).map(|n| (n, n * n * n)))?;
    /// let mut rows = cubes.iter().collect::<Result<Vec<_>, _>>()?;
    /// rows.sort();
    /// assert_eq!(rows, [(1, 1), (2, 8), (3, 27)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Each row may be an error: `WrongType`, or `NoTable`. An error ends the iteration.
    ///
    /// # Complexity
    /// Rows are read in pages, which are small at first: O(1) for each row.
    pub fn iter(&self) -> O::Iter<K, V> {
        O::all(&self.table)
    }

    /// Inserts a row, and returns the previous value under its key. Atomic.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let ages = Larder::new().typed::<String, u8>("ages")?;
    /// assert_eq!(ages.insert("Ann".into(), 34)?, None);
    /// assert_eq!(ages.insert("Ann".into(), 35)?, Some(34));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType` for an invalid key, or a value that can't be converted to a term; nothing is
    /// changed then. `WrongType`, too, if the previous row is of other types; it is replaced
    /// nevertheless. `NoTable`, `ReadOnly`, `Full`, `NotUnique`.
    pub fn insert(&self, key: K, value: V) -> Result<Option<V>, Error> {
        let (table, me) = (self.table.engine_table(), self.table.me());
        // The previous value is decoded inside the call, while its bytes are valid. An error is
        // reported after the row was replaced.
        let mut old = Ok(None);
        bytes::with_object::<O, _, _, _>(table, &key, &value, |object| {
            self.table.patiently(|| {
                with_local(|local| {
                    table.exchange_in(local, me, object.borrow(), |stored| {
                        old = row::value(stored).map(Some);
                    })
                })
            })
        })??;
        old
    }

    /// Inserts a row, and replaces the one with its key, if there is one, without reading it. Key
    /// and value are borrowed. Atomic.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let ages = Larder::new().typed::<String, u8>("ages")?;
    /// ages.put("Ann", &34)?;
    /// assert_eq!(ages.get("Ann")?, Some(34));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `insert`, except for the previous row.
    pub fn put<Q>(&self, key: &Q, value: &V) -> Result<(), Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        const { key::inserted_by::<K, Q>() };
        let (table, me) = (self.table.engine_table(), self.table.me());
        bytes::with_object::<O, _, _, _>(table, key, value, |object| {
            self.table.patiently(|| table.insert(me, object))
        })?
    }

    /// Inserts a row with a lifetime of its own, in place of the table's `ttl`. With `None`, the
    /// row doesn't expire. Atomic.
    ///
    /// ```
    /// use larder::prelude::*;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let sessions = Larder::new().table("sessions").ttl(Duration::from_secs(3600));
    /// let sessions = sessions.typed::<u64, String>()?;
    /// sessions.put_with(&1, &"ann".into(), Some(Duration::ZERO))?;
    /// assert_eq!(sessions.get(&1)?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `put`; `Unbounded` if the table has no bounds.
    pub fn put_with<Q>(&self, key: &Q, value: &V, ttl: Option<Duration>) -> Result<(), Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        const { key::inserted_by::<K, Q>() };
        let (table, me) = (self.table.engine_table(), self.table.me());
        bytes::with_object::<O, _, _, _>(table, key, value, |object| {
            self.table
                .patiently(|| table.insert_with(me, object, super::bounds::ms(ttl)))
        })?
    }

    /// Sets the remaining lifetime of the row under a key. With `None`, the row doesn't expire.
    /// In a transaction, the lifetime begins at the commit. Returns whether there is such a row.
    ///
    /// # Errors
    /// `WrongType` for an invalid key, `NoTable`; `Unbounded` if the table has no bounds;
    /// `ReadOnly` for a snapshot.
    pub fn expire<Q>(&self, key: &Q, ttl: Option<Duration>) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        let (table, me) = (self.table.engine_table(), self.table.me());
        self.at(key, |key| table.expire(me, key, super::bounds::ms(ttl)))
    }

    /// Returns the remaining lifetime of the row under a key. In a snapshot or a transaction, it is
    /// the lifetime as of its instant; that of what the transaction has written counts from the
    /// commit.
    ///
    /// # Errors
    /// Those of `expire`, but for `ReadOnly`.
    pub fn time_left<Q>(&self, key: &Q) -> Result<TimeLeft, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        let (table, me) = (self.table.engine_table(), self.table.me());
        self.at(key, |key| table.time_left(me, key))
    }

    /// Inserts all rows at one instant: nobody sees some of them without the others, but for a scan
    /// that began before. If one of them is invalid, none is inserted. Of several rows with one
    /// key, the last one counts.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let letters = Larder::new().typed::<char, u32>("letters")?;
    /// letters.extend(('a'..='z').map(|c| (c, u32::from(c))))?;
    /// assert_eq!(letters.len(), 26);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `insert`.
    pub fn extend(&self, rows: impl IntoIterator<Item = (K, V)>) -> Result<(), Error> {
        // All rows are converted before the first one is inserted. So an invalid one inserts
        // nothing.
        let table = self.table.engine_table();
        let (mut list, mut object) = (ObjectList::new(), ObjectBuf::new());
        for (key, value) in rows {
            bytes::write_object(table, &key, &value, &mut object, O::push_key)?;
            list.push(&object);
        }
        let mut job = table.begin_insert(self.table.me(), list, false)?;
        // The list is inserted as a batch, which others see at one instant.
        while job.step(&mut Budget::slice())? == Step::More {}
        Ok(())
    }

    /// Removes the row under a key, and returns its value. Atomic: of several concurrent calls,
    /// only one gets it.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let ages = Larder::new().typed::<String, u8>("ages")?;
    /// ages.insert("Ann".into(), 34)?;
    /// assert_eq!(ages.remove("Ann")?, Some(34));
    /// assert_eq!(ages.remove("Ann")?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType` for an invalid key; nothing is changed then. `WrongType`, too, if the row is of
    /// other types; it is removed nevertheless. `NoTable`, `ReadOnly`.
    pub fn remove<Q>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        let (table, me) = (self.table.engine_table(), self.table.me());
        // The row is removed, whether it can be read as this type or not.
        let mut old = Ok(None);
        self.at(key, |key| {
            with_local(|local| {
                table.take_in(local, me, key, |stored| old = row::value(stored).map(Some))
            })
        })?;
        old
    }

    /// Converts a row, as a term, to its key and value. [`Table::subscribe`], `select` and others
    /// return rows as terms.
    ///
    /// ```
    /// use larder::api::Event;
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let ages = Larder::new().typed::<String, u8>("ages")?;
    /// let mut feed = ages.table().subscribe()?;
    /// ages.insert("Ann".into(), 34)?;
    /// let Some(Event::Insert(row)) = feed.recv().and_then(|mut commit| commit.events.pop()) else {
    ///     panic!("an insert");
    /// };
    /// assert_eq!(ages.read(&row)?, ("Ann".into(), 34));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType`.
    pub fn read(&self, row: &Term) -> Result<(K, V), Error> {
        row::of_term(row.as_ref())
    }
}

/// What needs an order.
impl<K: OrderedKey, V: Serialize + DeserializeOwned> Typed<K, V> {
    /// Returns the first row.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let queue = Larder::new().typed::<(u8, u64), String>("queue")?;
    /// assert_eq!(queue.first()?, None);
    /// queue.insert((2, 1), "later".into())?;
    /// queue.insert((1, 2), "soon".into())?;
    /// assert_eq!(queue.first()?, Some(((1, 2), "soon".into())));
    /// assert_eq!(queue.last()?, Some(((2, 1), "later".into())));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType`, `NoTable`.
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        self.edge(Direction::Forward)
    }

    /// Returns the last row. See `first`.
    ///
    /// # Errors
    /// Those of `first`.
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        self.edge(Direction::Backward)
    }

    fn edge(&self, direction: Direction) -> Result<Option<(K, V)>, Error> {
        let (table, me) = (self.table.engine_table(), self.table.me());
        let mut found = Ok(None);
        // The first row from this end. A list that is being inserted delays it.
        self.table.patiently(|| {
            with_local(|local| {
                table.step_to_objects(local, me, None, direction, |stored| {
                    found = row::row::<_, _, Ordered>(stored).map(Some);
                })
            })
        })?;
        found
    }

    /// Returns an iterator over the rows of a range of keys, in order, from either end. Rows that
    /// other threads insert or delete meanwhile may be returned or not. A row that doesn't change
    /// is returned once. In a [snapshot](Self::snapshot) and in a transaction the rows are those of
    /// one instant.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let prices = Larder::new().typed::<u32, f64>("prices")?;
    /// prices.extend((1..=9).map(|n| (n, f64::from(n) / 10.0)))?;
    /// let keys: Result<Vec<_>, _> = prices.range(3..6)?.map(|row| row.map(|(k, _)| k)).collect();
    /// assert_eq!(keys?, [3, 4, 5]);
    /// assert_eq!(prices.range(..5)?.next_back().transpose()?, Some((4, 0.4)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType` for a bound that is an invalid key. Each row may be an error: `WrongType`, or
    /// `NoTable`. An error ends the iteration.
    ///
    /// # Complexity
    /// Rows are read in pages, which are small at first: O(log n) for each page, and O(1) for each
    /// row.
    pub fn range<Q, R>(&self, range: R) -> Result<Range<K, V>, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
        R: RangeBounds<Q>,
    {
        Range::new(&self.table, &range)
    }

    /// Returns the rank of the row under a key, from 1, or `None` if there is none.
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let scores = Larder::new().typed::<(u32, String), ()>("scores")?;
    /// for (score, name) in [(30, "ann"), (10, "bob"), (20, "eve")] {
    ///     scores.insert((score, name.into()), ())?;
    /// }
    /// assert_eq!(scores.rank(&(20, "eve".into()))?, Some(2));
    /// assert_eq!(scores.nth(-1)?, Some(((30, "ann".into()), ())));
    /// assert_eq!(scores.slice(2, 5)?.len(), 2);
    /// assert_eq!(scores.count(&(15, String::new()), &(40, String::new()))?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `WrongType` for an invalid key, `NoTable`; `Unranked` for a table with bounds, or on a
    /// structure other than the default.
    ///
    /// # Consistency
    /// That of [`Table::rank`].
    pub fn rank<Q>(&self, key: &Q) -> Result<Option<u64>, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        let (table, me) = (self.table.engine_table(), self.table.me());
        self.at(key, |key| table.rank(me, key))
    }

    /// Returns the n-th row: from 1 counted from the first, from -1 counted from the last. `None`
    /// if there are fewer rows, and for 0. Consistency is that of `rank`.
    ///
    /// # Errors
    /// Those of `rank`; `WrongType`.
    pub fn nth(&self, n: i64) -> Result<Option<(K, V)>, Error> {
        let (table, me) = (self.table.engine_table(), self.table.me());
        let mut found = Ok(None);
        self.table
            .patiently(|| table.nth(me, n, &mut |object| found = row::opened(object).map(Some)))?;
        found
    }

    /// Returns up to `most` rows, in order, from the n-th one. `n` counts as in `nth`.
    ///
    /// # Errors
    /// Those of `nth`.
    pub fn slice(&self, n: i64, most: usize) -> Result<Vec<(K, V)>, Error> {
        let (table, me) = (self.table.engine_table(), self.table.me());
        let job = self.table.patiently(|| table.slice(me, n, most))?;
        range::all_of(&self.table, job)
    }

    /// Counts the rows whose keys are at or above `low` and below `high`. Consistency is that of
    /// `rank`.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn count<Q>(&self, low: &Q, high: &Q) -> Result<u64, Error>
    where
        K: Borrow<Q>,
        Q: EncodeKey + ?Sized,
    {
        let (table, me) = (self.table.engine_table(), self.table.me());
        const { key::found_by::<K, Q>() };
        // The bounds as index keys, which are compared as bytes.
        let (low, high) = (bytes::index_key(low)?, bytes::index_key(high)?);
        self.table.patiently(|| table.count_range(me, &low, &high))
    }
}

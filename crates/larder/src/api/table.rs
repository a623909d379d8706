//! Operations on keys, and on whole tables.

use super::buffers::{KeyBuf, TupleBuf};
use super::{patiently, Larder, ProgramOwner};
use crate::batch::ObjectList;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::ops::{CounterOp, MapOp, NewRow};
use crate::table::EngineTable;
use larder_term::number::Number;
use larder_term::object::ObjectView;
use larder_term::{AsTerm, Atom, Term, TermRef};
use std::fmt;
use std::sync::Arc;

/// A table of a [`Larder`](super::Larder). Clones are handles of the same table. Any number of
/// threads may use them.
///
/// # Errors
/// After `drop_table`, every operation that may fail fails with `NoTable`. If the table is a
/// snapshot, every operation that writes fails with `ReadOnly`. An operation that inserts or
/// changes tuples fails with `Full` if a limit without eviction is in the way, and with `NotUnique`
/// if a unique index is. An operation that fails has changed nothing, unless it says otherwise.
///
/// # Complexity
/// Let n be the number of tuples. On the default structure an operation on one key takes O(1) in a
/// set, and O(log n) in an ordered_set. In a bag it takes O(1) if the key has few tuples, and
/// O(log n) otherwise. Reading and writing the tuples takes time in proportion to their length. A
/// method with another cost says so.
///
/// # Consistency
/// An operation on one key takes effect at one instant between its call and its return, for all
/// threads. So do the insertion of a list, `clear` and `drop_table`. A scan doesn't (see
/// [`Table::all_rows`]). An operation waits at most while another one changes the same leaf, or
/// commits a change of the same key. While a list is being inserted, most operations on one key go
/// on. All others wait until the list is complete.
#[derive(Clone)]
pub struct Table {
    table: Arc<EngineTable>,
    home: Arc<ProgramOwner>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

impl Table {
    pub(super) fn new(table: Arc<EngineTable>, home: &Arc<ProgramOwner>) -> Self {
        let home = Arc::clone(home);
        Table { table, home }
    }

    /// The engine's table, which has the operations that this module has no short form of.
    pub fn engine_table(&self) -> &Arc<EngineTable> {
        &self.table
    }

    /// The collection of tables that it belongs to.
    pub fn larder(&self) -> Larder {
        Larder(Arc::clone(&self.home))
    }

    pub(super) fn me(&self) -> OwnerId {
        self.home.owner
    }

    /// Runs an operation. If a list insert is in the way, waits for it and retries.
    pub(super) fn patiently<R>(&self, f: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        patiently(&[&self.table], f)
    }

    pub(super) fn key(&self, key: &impl AsTerm) -> KeyBuf {
        KeyBuf::new(&self.table, key.as_term())
    }

    pub(super) fn object(&self, tuple: &impl AsTerm) -> Result<TupleBuf, Error> {
        TupleBuf::new(&self.table, tuple.as_term())
    }

    /// Collects the objects that an operation visits.
    fn collect(
        &self,
        mut f: impl FnMut(&mut dyn FnMut(&ObjectView<'_>)) -> Result<usize, Error>,
    ) -> Result<Vec<Term>, Error> {
        let mut found = Vec::new();
        self.patiently(|| f(&mut |object| found.push(tuple(object))))?;
        Ok(found)
    }

    /// Inserts a tuple. In a set or an ordered_set it replaces the tuple with the same key. In a
    /// bag it is added to those of its key. Atomic.
    ///
    /// # Errors
    /// `NotTuple`, `Keypos` (the tuple has no element at the key position), `NoTable`, `ReadOnly`;
    /// `Full` by a limit without eviction; `NotUnique` by a unique index.
    pub fn insert(&self, tuple: &impl AsTerm) -> Result<(), Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.insert(self.me(), &object))
    }

    /// Inserts the tuple of a key and a value, like `insert`, without a term of the tuple.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::{term, Term};
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let ages = Larder::new().table("ages").create()?;
    /// ages.insert_pair(&term!(ann), &Term::from(34))?;
    /// assert_eq!(ages.lookup(&term!(ann))?, [term!({ann, 34})]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `insert`. `Keypos` if the table's key isn't the first element of its tuples.
    pub fn insert_pair(&self, key: &impl AsTerm, value: &impl AsTerm) -> Result<(), Error> {
        let object = TupleBuf::pair(&self.table, key.as_term(), value.as_term())?;
        self.patiently(|| self.table.insert(self.me(), &object))
    }

    /// Inserts a tuple if there is none under its key. Returns whether it did. Atomic. Returns
    /// `false`, too, if another tuple has the value in a unique index.
    ///
    /// # Errors
    /// Those of `insert`, but for `NotUnique`.
    pub fn insert_new(&self, tuple: &impl AsTerm) -> Result<bool, Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.insert_new(self.me(), &object))
    }

    /// Inserts all tuples at one instant: nobody sees some of them without the others, but for a
    /// scan that began before. If one of them is invalid, none is inserted.
    ///
    /// # Errors
    /// Those of `insert`.
    ///
    /// # Complexity
    /// That of an `insert` for each tuple. Meanwhile other threads can read and write single keys.
    pub fn insert_all(&self, tuples: &[Term]) -> Result<(), Error> {
        self.insert_list(tuples, false).map(|_| ())
    }

    /// Inserts all tuples at one instant, if there is none under any of their keys, and no value is
    /// taken in a unique index. Returns whether it did.
    ///
    /// # Errors
    /// Those of `insert`, but for `NotUnique`.
    ///
    /// # Complexity
    /// That of `insert_all`, and a lookup of each key before.
    pub fn insert_all_new(&self, tuples: &[Term]) -> Result<bool, Error> {
        self.insert_list(tuples, true)
    }

    fn insert_list(&self, tuples: &[Term], new: bool) -> Result<bool, Error> {
        let mut list = ObjectList::new();
        for tuple in tuples {
            let object = self.object(tuple)?;
            list.push(&object);
        }
        let mut job = self.table.begin_insert(self.me(), list, new)?;
        // A step helps a list insert that is in the way, so it doesn't return `Busy`.
        while job.step(&mut Budget::slice())? == Step::More {}
        Ok(job.inserted())
    }

    /// Returns the tuples under a key, in the order of insertion.
    ///
    /// A tuple can be converted to a tuple of Rust's types, and made of one
    /// ([`TryFromTermError`](crate::TryFromTermError) says what doesn't fit).
    ///
    /// ```
    /// use larder::prelude::*;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let users = Larder::new().table("users").create()?;
    /// users.insert(&Term::from((7, "Ann", true)))?;
    /// for user in users.lookup(&Term::from(7))? {
    ///     let (id, name, active): (u64, String, bool) = user.try_into()?;
    ///     assert_eq!((id, &name[..], active), (7, "Ann", true));
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NoTable`.
    pub fn lookup(&self, key: &impl AsTerm) -> Result<Vec<Term>, Error> {
        let key = self.key(key);
        self.collect(|visit| self.table.lookup(self.me(), &key, visit))
    }

    /// Returns the elements at these positions, from 1, of the tuples under a key. The result has a
    /// list for each tuple, in the order of insertion, with the elements in the order of the
    /// positions. It is empty if there is no such key. The other elements are not copied.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::{term, Term};
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let users = Larder::new().table("users").create()?;
    /// users.insert(&term!({7, ann, "a@b.org", 34}))?;
    /// assert_eq!(users.lookup_elements(&Term::from(7), &[4, 2])?, [[term!(34), term!(ann)]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Position` if a position is 0 or greater than the size of one of the tuples; `NoTable`.
    ///
    /// # Complexity
    /// That of `lookup`, and O(n) for the elements up to the greatest position.
    ///
    /// # Consistency
    /// All tuples of a key are seen as of one instant.
    pub fn lookup_elements(
        &self,
        key: &impl AsTerm,
        positions: &[usize],
    ) -> Result<Vec<Vec<Term>>, Error> {
        let (key, mut elements) = (self.key(key), Vec::new());
        let count = self.patiently(|| {
            // A repeated attempt begins only if nothing was passed to the closure before.
            let see = &mut |_, element: TermRef<'_>| elements.push(Term::from(element));
            self.table.lookup_elements(self.me(), &key, positions, see)
        })?;
        // The elements of all tuples lie in one list, `positions.len()` for each tuple.
        let mut elements = elements.into_iter();
        let rows = (0..count).map(|_| elements.by_ref().take(positions.len()).collect());
        Ok(rows.collect())
    }

    /// Calls `f` with the element at a position, from 1, of the tuple under a key, without a copy.
    /// In a bag, it is that of the first tuple. Returns the result of `f`, or `None` if there is no
    /// such key.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::{term, Term};
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let users = Larder::new().table("users").create()?;
    /// users.insert(&term!({7, ann, "a@b.org", 34}))?;
    /// let age = users.with_element(&Term::from(7), 4, |age| age.as_int())?;
    /// assert_eq!(age.flatten(), Some(34));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `lookup_elements`.
    pub fn with_element<R>(
        &self,
        key: &impl AsTerm,
        pos: usize,
        f: impl FnOnce(TermRef<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        let (key, mut f, mut found) = (self.key(key), Some(f), None);
        self.patiently(|| {
            let see = &mut |_, element: TermRef<'_>| {
                // Further tuples of a bag are not passed on.
                if let Some(f) = f.take() {
                    found = Some(f(element));
                }
            };
            self.table.lookup_elements(self.me(), &key, &[pos], see)
        })?;
        Ok(found)
    }

    /// Returns whether there is a tuple under the key.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn contains(&self, key: &impl AsTerm) -> Result<bool, Error> {
        let key = self.key(key);
        self.patiently(|| self.table.member(self.me(), &key))
    }

    /// Deletes the tuples under the key. Returns their number.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn delete(&self, key: &impl AsTerm) -> Result<usize, Error> {
        let key = self.key(key);
        self.patiently(|| self.table.delete(self.me(), &key))
    }

    /// Deletes the tuple that equals this one; in a duplicate_bag, all of its copies. Returns the
    /// number of deleted tuples.
    ///
    /// # Errors
    /// Those of `insert`.
    pub fn delete_object(&self, tuple: &impl AsTerm) -> Result<usize, Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.delete_object(self.me(), &object))
    }

    /// Deletes the tuples under the key, and returns them. Atomic: of several takers, only one gets
    /// them.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn take(&self, key: &impl AsTerm) -> Result<Vec<Term>, Error> {
        let key = self.key(key);
        self.collect(|visit| self.table.take(self.me(), &key, visit))
    }

    /// Adds to the integer at a position of the tuple under a key. Returns the sum. Atomic.
    ///
    /// # Errors
    /// `BadKey`, `Position`, `Keypos`, `NotInteger`, `TableType` (bags), `SystemLimit` (a sum of
    /// more bits than an integer may have), `NoTable`.
    pub fn add(&self, key: &impl AsTerm, pos: usize, incr: i64) -> Result<Term, Error> {
        self.add_number(key, pos, incr, None).and_then(sum)
    }

    /// Like `add`, or `add_or` with a default, but makes no term of the sum.
    ///
    /// # Errors
    /// Those of `add_or`.
    #[doc(hidden)]
    pub fn add_number(
        &self,
        key: &impl AsTerm,
        pos: usize,
        incr: i64,
        default: Option<TermRef<'_>>,
    ) -> Result<Number, Error> {
        self.count(key, &CounterOp::new(pos, Number::Int(incr)), default)
    }

    /// Like `add`, for a counter in a map: the value of `map_key` in the map at a position. If the
    /// map doesn't have the key, the counter starts with `initial`.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let pages = Larder::new().table("pages").create()?;
    /// pages.insert(&term!({home, #{read => 4}}))?;
    /// assert_eq!(pages.add_in_map(&term!(home), 2, &term!(read), 1, None)?, term!(5));
    /// assert_eq!(pages.add_in_map(&term!(home), 2, &term!(liked), 1, Some(0))?, term!(1));
    /// assert_eq!(pages.lookup(&term!(home))?, [term!({home, #{liked => 1, read => 5}})]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `add`; `NotMap`; `NoMapKey` without `initial`.
    pub fn add_in_map(
        &self,
        key: &impl AsTerm,
        pos: usize,
        map_key: &impl AsTerm,
        incr: i64,
        initial: Option<i64>,
    ) -> Result<Term, Error> {
        let op = CounterOp::new(pos, Number::Int(incr));
        let op = op.in_map(Term::from(map_key.as_term()), initial.map(Number::Int));
        self.count(key, &op, None).and_then(sum)
    }

    /// Like `add`. If the key is absent, first inserts the tuple `default` with its key replaced by
    /// this one.
    ///
    /// # Errors
    /// Those of `add`, and `BadDefault`.
    pub fn add_or(
        &self,
        key: &impl AsTerm,
        pos: usize,
        incr: i64,
        default: &impl AsTerm,
    ) -> Result<Term, Error> {
        let default = Some(default.as_term());
        self.add_number(key, pos, incr, default).and_then(sum)
    }

    fn count(
        &self,
        key: &impl AsTerm,
        op: &CounterOp,
        default: Option<TermRef<'_>>,
    ) -> Result<Number, Error> {
        let bytes = self.key(key);
        let row = default.map(|tuple| NewRow {
            key: key.as_term(),
            tuple,
        });
        // The engine sets the sum once the row is written.
        let mut sum = None;
        self.patiently(|| {
            let ops = std::slice::from_ref(op);
            self.table
                .update_counter(self.me(), &bytes, ops, row, &mut sum)
        })?;
        sum.ok_or(Error::NotInteger)
    }

    /// Replaces the element at a position of the tuple under a key. Returns `false` if there is no
    /// such tuple. Atomic.
    ///
    /// # Errors
    /// `Position`, `Keypos`, `TableType` (bags), `NoTable`; `Full` and `NotUnique`, as `insert`.
    pub fn update(
        &self,
        key: &impl AsTerm,
        pos: usize,
        element: &impl AsTerm,
    ) -> Result<bool, Error> {
        // The key is encoded once, and used in each attempt.
        let key = self.key(key);
        let ops = [(pos, element.as_term())];
        self.patiently(|| self.table.update_element(self.me(), &key, &ops, None))
    }

    /// Sets the value of a key in the map at a position. Nothing else of the map is passed or
    /// returned. Returns `false` if there is no such tuple.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let users = Larder::new().table("users").create()?;
    /// users.insert(&term!({1, #{name => "ann", age => 34}}))?;
    /// assert!(users.update_map(&term!(1), 2, &term!(age), &term!(35))?);
    /// assert!(users.remove_map_key(&term!(1), 2, &term!(name))?);
    /// assert_eq!(users.lookup(&term!(1))?, [term!({1, #{age => 35}})]);
    /// assert!(!users.update_map(&term!(2), 2, &term!(age), &term!(35))?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NotMap`, `Position`, `Keypos`, `TableType` (bags), `NoTable`; `Full` and `NotUnique`, as
    /// `insert`.
    ///
    /// # Complexity
    /// Linear in the tuple.
    pub fn update_map(
        &self,
        key: &impl AsTerm,
        pos: usize,
        map_key: &impl AsTerm,
        value: &impl AsTerm,
    ) -> Result<bool, Error> {
        self.change_map(key, pos, map_key.as_term(), Some(value.as_term()))
    }

    /// Removes a key from the map at a position, if the map has it. Returns `false` if there is no
    /// such tuple.
    ///
    /// # Errors
    /// Those of `update_map`.
    pub fn remove_map_key(
        &self,
        key: &impl AsTerm,
        pos: usize,
        map_key: &impl AsTerm,
    ) -> Result<bool, Error> {
        self.change_map(key, pos, map_key.as_term(), None)
    }

    fn change_map(
        &self,
        row: &impl AsTerm,
        pos: usize,
        key: TermRef<'_>,
        value: Option<TermRef<'_>>,
    ) -> Result<bool, Error> {
        // The engine takes several changes of a map. Here it is one.
        let (row, ops) = (self.key(row), [MapOp { pos, key, value }]);
        self.patiently(|| self.table.update_map(self.me(), &row, &ops))
    }

    /// Returns the first key; the least one in an ordered_set.
    ///
    /// # Errors
    /// `NoTable`.
    ///
    /// # Consistency
    /// The key was the first one at some instant during the call. A walk by `next` returns each key
    /// once that is in the table throughout.
    pub fn first(&self) -> Result<Option<Term>, Error> {
        self.one_key(|visit| self.table.first(self.me(), visit))
    }

    /// Returns the last key of an ordered_set. For other tables, the same as `first`.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn last(&self) -> Result<Option<Term>, Error> {
        self.one_key(|visit| self.table.last(self.me(), visit))
    }

    /// Returns the key after this one. In an ordered_set the key need not be in the table; in the
    /// others it must.
    ///
    /// # Errors
    /// `BadKey`, `NoTable`.
    pub fn next(&self, key: &impl AsTerm) -> Result<Option<Term>, Error> {
        let key = self.key(key);
        self.one_key(|visit| self.table.next(self.me(), &key, visit))
    }

    /// Returns the key before this one in an ordered_set. For other tables, the same as `next`.
    ///
    /// # Errors
    /// Those of `next`.
    pub fn prev(&self, key: &impl AsTerm) -> Result<Option<Term>, Error> {
        let key = self.key(key);
        self.one_key(|visit| self.table.prev(self.me(), &key, visit))
    }

    /// Returns the rank of the tuple under a key of an ordered_set, from 1, or `None` if there is
    /// none. O(log n), and O(1) for each leaf that has changed since the last query of a rank. The
    /// first query counts the entries of all leaves.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder::term;
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let scores = Larder::new().table("scores").ordered_set().create()?;
    /// scores.insert_all(&[term!({{30, ann}}), term!({{10, bob}}), term!({{20, eve}})])?;
    /// assert_eq!(scores.rank(&term!({20, eve}))?, Some(2));
    /// assert_eq!(scores.nth(-1)?, Some(term!({{30, ann}})));
    /// assert_eq!(scores.slice(2, 5)?, [term!({{20, eve}}), term!({{30, ann}})]);
    /// assert_eq!(scores.count_range(&term!({10, bob}), &term!({30, ann}))?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Unranked` if the table isn't an ordered_set, has bounds, or is on a structure other than
    /// the default; `NoTable`.
    ///
    /// # Consistency
    /// Exact if no other thread inserts or deletes, in a snapshot, and in a transaction. Otherwise
    /// a tuple that is in the table throughout the call counts once. A tuple that is inserted or
    /// deleted meanwhile may count or not.
    pub fn rank(&self, key: &impl AsTerm) -> Result<Option<u64>, Error> {
        let key = self.key(key);
        self.patiently(|| self.table.rank(self.me(), &key))
    }

    /// Returns the n-th tuple of an ordered_set: from 1 counted from the first, from -1 counted
    /// from the last. `None` if there are fewer tuples, and for 0. Complexity and consistency are
    /// those of `rank`.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn nth(&self, n: i64) -> Result<Option<Term>, Error> {
        let mut found = None;
        self.patiently(|| {
            let see = &mut |object: &ObjectView<'_>| found = Some(tuple(object));
            self.table.nth(self.me(), n, see)
        })?;
        Ok(found)
    }

    /// Counts the tuples of an ordered_set whose keys are at or above `low` and below `high`.
    /// Complexity and consistency are those of `rank`.
    ///
    /// # Errors
    /// Those of `rank`.
    pub fn count_range(&self, low: &impl AsTerm, high: &impl AsTerm) -> Result<u64, Error> {
        let (low, high) = (self.key(low), self.key(high));
        self.patiently(|| self.table.count_range(self.me(), &low, &high))
    }

    fn one_key(
        &self,
        mut f: impl FnMut(&mut dyn FnMut(TermRef<'_>)) -> Result<bool, Error>,
    ) -> Result<Option<Term>, Error> {
        let mut found = None;
        self.patiently(|| f(&mut |key| found = Some(Term::from(key))))?;
        Ok(found)
    }

    /// Deletes all tuples at one instant. Returns their number, which is exact if no other thread
    /// was writing at that instant. O(1).
    ///
    /// # Errors
    /// `NoTable`.
    pub fn clear(&self) -> Result<usize, Error> {
        self.patiently(|| self.table.delete_all_objects(self.me()))
    }

    /// Returns the number of tuples. Tuples that have expired count until they are removed. O(1).
    /// In a snapshot the first call counts the tuples by a scan: O(n). In a transaction's view each
    /// call does, and the transaction has read all of the table then.
    pub fn len(&self) -> usize {
        self.table.size()
    }

    /// Returns whether the table is empty. Expired tuples count. The cost is that of `len`; in a
    /// snapshot or a transaction's view it is that of `first`.
    pub fn is_empty(&self) -> bool {
        match self.table.is_view() {
            true => !matches!(self.first(), Ok(Some(_))),
            false => self.len() == 0,
        }
    }

    /// Returns the memory of the table in bytes: its index with the tuples in it, its secondary
    /// indexes, and what it keeps for snapshots. Binaries of more than 127 bytes are outside the
    /// table, and don't count. 0 for a table that was dropped. O(1).
    pub fn memory(&self) -> usize {
        self.table.memory()
    }

    /// Renames the table. A named table is found by the new name from then on; for a moment, by
    /// both names.
    ///
    /// # Errors
    /// `BadOption` (a name of more than 255 characters), `AlreadyExists` (the table is named, and a
    /// named table has the name, itself included), `View` (in a transaction), `NoTable`.
    pub fn rename(&self, name: &str) -> Result<(), Error> {
        let name = Atom::try_new(name).map_err(|e| Error::BadOption(e.to_string().into()))?;
        self.patiently(|| self.table.rename(self.me(), None, name))
    }

    /// Drops the table, for all its handles. O(1); a background thread frees its memory.
    ///
    /// # Errors
    /// `NoTable` if it was already dropped; `View` in a transaction.
    pub fn drop_table(&self) -> Result<(), Error> {
        self.table.drop_table(self.me())
    }
}

/// Copies an object to a term of its own.
pub(super) fn tuple(object: &ObjectView<'_>) -> Term {
    // The encoding of a view is one whole term, so this doesn't fail.
    Term::build(|enc| object.encode(enc)).unwrap_or_else(|_| Term::nil())
}

fn sum(number: Number) -> Result<Term, Error> {
    Term::build(|enc| number.encode(enc)).map_err(|e| Error::BadSpec(e.to_string().into()))
}

//! Operations by key, and on the table as a whole.

use super::{patiently, Home, Larder, Rows};
use crate::batch::ObjectList;
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::ops::{CounterOp, MapOp, NewRow};
use crate::table::Table as EngineTable;
use larder_term::number::Number;
use larder_term::object::{ObjectBuf, ObjectView};
use larder_term::{AsTerm, Atom, Encoder, Term, TermRef};
use std::fmt;
use std::sync::Arc;

/// A table of a [`Larder`](super::Larder). Clones are handles of the same table; they may be used
/// by any number of threads.
#[derive(Clone)]
pub struct Table {
    table: Arc<EngineTable>,
    home: Arc<Home>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

impl Table {
    pub(super) fn new(table: Arc<EngineTable>, home: &Arc<Home>) -> Self {
        let home = Arc::clone(home);
        Table { table, home }
    }

    /// The engine's table, for what this module has no short form for.
    pub fn engine_table(&self) -> &Arc<EngineTable> {
        &self.table
    }

    /// The collection of tables to which it belongs.
    pub fn larder(&self) -> Larder {
        Larder(Arc::clone(&self.home))
    }

    pub(super) fn me(&self) -> OwnerId {
        self.home.owner
    }

    /// Runs an operation until no batch is in its way.
    pub(super) fn patiently<R>(&self, f: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        patiently(&[&self.table], f)
    }

    pub(super) fn key(&self, key: &impl AsTerm) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.table.encode_key(key.as_term(), &mut bytes);
        bytes
    }

    pub(super) fn object(&self, tuple: &impl AsTerm) -> Result<ObjectBuf, Error> {
        let mut object = ObjectBuf::new();
        self.table.encode_object(tuple.as_term(), &mut object)?;
        Ok(object)
    }

    /// Collects what an operation visits.
    fn collect(
        &self,
        mut f: impl FnMut(&mut dyn FnMut(&ObjectView<'_>)) -> Result<usize, Error>,
    ) -> Result<Vec<Term>, Error> {
        let mut found = Vec::new();
        self.patiently(|| f(&mut |object| found.push(tuple(object))))?;
        Ok(found)
    }

    /// Inserts a tuple: in a set in place of the one with its key, in a bag beside the others.
    /// Atomic.
    ///
    /// # Errors
    /// `NotTuple`, `Keypos` (too short to have a key), `NoTable` after `drop_table`.
    pub fn insert(&self, tuple: &impl AsTerm) -> Result<(), Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.insert(self.me(), &object))
    }

    /// Inserts a tuple unless its key is there; whether it did. Atomic.
    ///
    /// # Errors
    /// As `insert`.
    pub fn insert_new(&self, tuple: &impl AsTerm) -> Result<bool, Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.insert_new(self.me(), &object))
    }

    /// Inserts all tuples at once: nobody sees some of them without the others, and if one is bad
    /// none is inserted.
    ///
    /// # Errors
    /// As `insert`.
    pub fn insert_all(&self, tuples: &[Term]) -> Result<(), Error> {
        self.insert_list(tuples, false).map(|_| ())
    }

    /// Inserts all tuples at once unless one of their keys is there; whether it did.
    ///
    /// # Errors
    /// As `insert`.
    pub fn insert_all_new(&self, tuples: &[Term]) -> Result<bool, Error> {
        self.insert_list(tuples, true)
    }

    fn insert_list(&self, tuples: &[Term], new: bool) -> Result<bool, Error> {
        let mut list = ObjectList::new();
        for tuple in tuples {
            list.push(&self.object(tuple)?);
        }
        let mut job = self.table.begin_insert(self.me(), list, new)?;
        // A step helps with a batch that is in the way: there is no Busy to wait for.
        while job.step(&mut Budget::slice())? == Step::More {}
        Ok(job.inserted())
    }

    /// The tuples under a key, in order of arrival.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn lookup(&self, key: &impl AsTerm) -> Result<Vec<Term>, Error> {
        let key = self.key(key);
        self.collect(|visit| self.table.lookup(self.me(), &key, visit))
    }

    /// The elements at these positions, from 1, of the tuples under a key: a list for each tuple,
    /// in order of arrival, with the elements in the order of the positions. None if there is no
    /// such key. The rest of the tuples is not copied.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder_term::{term, Term};
    ///
    /// # fn main() -> Result<(), larder::Error> {
    /// let users = Larder::new().table("users").create()?;
    /// users.insert(&term!({7, ann, "a@b.org", 34}))?;
    /// assert_eq!(users.lookup_elements(&Term::from(7), &[4, 2])?, [[term!(34), term!(ann)]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Position` if a position is 0, or past the end of one of the tuples; `NoTable`.
    ///
    /// # Complexity
    /// As `lookup`, and the elements before the last of the positions.
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
            let see = &mut |_, element: TermRef<'_>| elements.push(Term::from(element));
            self.table.lookup_elements(self.me(), &key, positions, see)
        })?;
        let mut elements = elements.into_iter();
        let rows = (0..count).map(|_| elements.by_ref().take(positions.len()).collect());
        Ok(rows.collect())
    }

    /// Whether there is a tuple under the key.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn contains(&self, key: &impl AsTerm) -> Result<bool, Error> {
        let key = self.key(key);
        self.patiently(|| self.table.member(self.me(), &key))
    }

    /// Deletes what is under the key; how many tuples went.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn delete(&self, key: &impl AsTerm) -> Result<usize, Error> {
        let key = self.key(key);
        self.patiently(|| self.table.delete(self.me(), &key))
    }

    /// Deletes this very tuple, all its copies in a duplicate_bag; how many went.
    ///
    /// # Errors
    /// As `insert`.
    pub fn delete_object(&self, tuple: &impl AsTerm) -> Result<usize, Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.delete_object(self.me(), &object))
    }

    /// Deletes what is under the key and gives it. Atomic: of several takers one gets it.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn take(&self, key: &impl AsTerm) -> Result<Vec<Term>, Error> {
        let key = self.key(key);
        self.collect(|visit| self.table.take(self.me(), &key, visit))
    }

    /// Adds to the integer at a position of the tuple under a key; the sum. Atomic.
    ///
    /// # Errors
    /// `BadKey`, `Position`, `Keypos`, `NotInteger`, `TableType` (bags), `NoTable`.
    pub fn add(&self, key: &impl AsTerm, pos: usize, incr: i64) -> Result<Term, Error> {
        self.count(key, &CounterOp::new(pos, Number::Int(incr)), None)
    }

    /// As `add`, for a counter in the map at a position: the value of a key. If the map has not the
    /// key, it is put in, and the counter begins with `initial`.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder_term::term;
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
    /// As `add`; `NotMap`; `NoMapKey` without `initial`.
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
        self.count(key, &op, None)
    }

    /// As `add`; a key that is absent gets the tuple `default` (with its key put in) first.
    ///
    /// # Errors
    /// As `add`, and `BadDefault`.
    pub fn add_or(
        &self,
        key: &impl AsTerm,
        pos: usize,
        incr: i64,
        default: &impl AsTerm,
    ) -> Result<Term, Error> {
        let op = CounterOp::new(pos, Number::Int(incr));
        self.count(key, &op, Some(default.as_term()))
    }

    fn count(
        &self,
        key: &impl AsTerm,
        op: &CounterOp,
        default: Option<TermRef<'_>>,
    ) -> Result<Term, Error> {
        let bytes = self.key(key);
        let row = default.map(|tuple| NewRow {
            key: key.as_term(),
            tuple,
        });
        let mut sum = None;
        self.patiently(|| {
            let ops = std::slice::from_ref(op);
            self.table
                .update_counter(self.me(), &bytes, ops, row, &mut sum)
        })?;
        let sum = sum.ok_or(Error::NotInteger)?;
        term(|enc| sum.encode(enc))
    }

    /// Replaces the element at a position of the tuple under a key; false if there is none. Atomic.
    ///
    /// # Errors
    /// `Position`, `Keypos`, `TableType` (bags), `NoTable`.
    pub fn update(
        &self,
        key: &impl AsTerm,
        pos: usize,
        element: &impl AsTerm,
    ) -> Result<bool, Error> {
        let key = self.key(key);
        let ops = [(pos, element.as_term())];
        self.patiently(|| self.table.update_element(self.me(), &key, &ops, None))
    }

    /// Gives a key of the map at a position this value, in the map's place: nothing else of it is
    /// copied or sent. False if the table has no such tuple.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder_term::term;
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
    /// `NotMap`, `Position`, `Keypos`, `TableType` (bags), `NoTable`.
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

    /// Removes a key of the map at a position, if the map has it. False if the table has no such
    /// tuple.
    ///
    /// # Errors
    /// As `update_map`.
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
        let (row, ops) = (self.key(row), [MapOp { pos, key, value }]);
        self.patiently(|| self.table.update_map(self.me(), &row, &ops))
    }

    /// The first key, in key order for an ordered_set.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn first(&self) -> Result<Option<Term>, Error> {
        self.one_key(|visit| self.table.first(self.me(), visit))
    }

    /// The last key of an ordered_set; for the others, as `first`.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn last(&self) -> Result<Option<Term>, Error> {
        self.one_key(|visit| self.table.last(self.me(), visit))
    }

    /// The key after this one. An ordered_set takes any key, the others one that is there.
    ///
    /// # Errors
    /// `BadKey`, `NoTable`.
    pub fn next(&self, key: &impl AsTerm) -> Result<Option<Term>, Error> {
        let key = self.key(key);
        self.one_key(|visit| self.table.next(self.me(), &key, visit))
    }

    /// The key before this one in an ordered_set; for the others, as `next`.
    ///
    /// # Errors
    /// As `next`.
    pub fn prev(&self, key: &impl AsTerm) -> Result<Option<Term>, Error> {
        let key = self.key(key);
        self.one_key(|visit| self.table.prev(self.me(), &key, visit))
    }

    /// The rank of the tuple under a key of an ordered_set, from 1; none if there is none. O(log
    /// n), and O(1) for each leaf that has changed since the last question about ranks; the first
    /// question counts the table's leaves.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use larder_term::term;
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
    /// `Unranked` for a table that is no ordered_set, or is on another structure than the default;
    /// `NoTable`.
    ///
    /// # Consistency
    /// Exact while nobody inserts or deletes, of a snapshot, and in a transaction. Otherwise a
    /// tuple that is there throughout the call counts once; one that comes or goes meanwhile may
    /// count or not.
    pub fn rank(&self, key: &impl AsTerm) -> Result<Option<u64>, Error> {
        let key = self.key(key);
        self.patiently(|| self.table.rank(self.me(), &key))
    }

    /// The n-th tuple of an ordered_set: from 1 on from the first, from -1 on from the last. None
    /// if there are fewer, and for 0. As `rank`.
    ///
    /// # Errors
    /// As `rank`.
    pub fn nth(&self, n: i64) -> Result<Option<Term>, Error> {
        let mut found = None;
        self.patiently(|| {
            let see = &mut |object: &ObjectView<'_>| found = Some(tuple(object));
            self.table.nth(self.me(), n, see)
        })?;
        Ok(found)
    }

    /// At most so many tuples of an ordered_set, in order, from the n-th on, counted as by `nth`.
    ///
    /// # Errors
    /// As `rank`.
    pub fn slice(&self, n: i64, most: usize) -> Result<Vec<Term>, Error> {
        let job = self.patiently(|| self.table.slice(self.me(), n, most))?;
        Rows::new(self, job).left()
    }

    /// How many tuples of an ordered_set have keys from `low` on and before `high`. As `rank`.
    ///
    /// # Errors
    /// As `rank`.
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

    /// Empties the table at one instant; how many tuples went: exactly, if nobody was writing at
    /// that moment. O(1).
    ///
    /// # Errors
    /// `NoTable`.
    pub fn clear(&self) -> Result<usize, Error> {
        self.patiently(|| self.table.delete_all_objects(self.me()))
    }

    /// The number of tuples. O(1).
    pub fn len(&self) -> usize {
        self.table.size()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the table holds.
    pub fn memory(&self) -> usize {
        self.table.memory()
    }

    /// Gives the table another name. One that is found by its name is found by the new one from
    /// then on; for a moment, by both.
    ///
    /// # Errors
    /// `BadOption` (a name over 255 characters), `AlreadyExists` (a name in use, of a table that is
    /// found by its name), `NoTable`.
    pub fn rename(&self, name: &str) -> Result<(), Error> {
        let name = Atom::try_new(name).map_err(|e| Error::BadOption(e.to_string().into()))?;
        self.patiently(|| self.table.rename(self.me(), None, name))
    }

    /// Drops the table, for all its handles. O(1); its memory is freed behind.
    ///
    /// # Errors
    /// `NoTable` if it was dropped before.
    pub fn drop_table(&self) -> Result<(), Error> {
        self.table.drop_table(self.me())
    }
}

/// An object as a term that owns itself.
pub(super) fn tuple(object: &ObjectView<'_>) -> Term {
    // What a view encodes is one whole term.
    Term::build(|enc| object.encode(enc)).unwrap_or_else(|_| Term::nil())
}

fn term(push: impl FnOnce(&mut Encoder<'_>)) -> Result<Term, Error> {
    Term::build(push).map_err(|e| Error::BadSpec(e.to_string().into()))
}

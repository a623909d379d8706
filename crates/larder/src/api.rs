//! Tables for Rust programs: terms in, terms out, no owners to think of, and nothing to retry.
//!
//! ```
//! use larder::api::Larder;
//! use larder_term::{term, Term};
//!
//! # fn main() -> Result<(), larder::Error> {
//! let larder = Larder::new();
//! let fruit = larder.table("fruit").ordered_set().create()?;
//!
//! fruit.insert(&term!({apple, 3}))?;
//! fruit.insert(&term!({cherry, 40}))?;
//! fruit.insert_all(&[term!({plum, 8}), term!({pear, 2})])?;
//! assert_eq!(fruit.lookup(&term!(plum))?, [term!({plum, 8})]);
//!
//! // Match specifications are written as in Erlang.
//! let few = fruit.select("[{{'$1','$2'},[{'<','$2',5}],['$1']}]")?;
//! assert_eq!(few, [term!(apple), term!(pear)]);
//!
//! assert_eq!(fruit.add(&term!(apple), 2, 4)?, term!(7));
//! assert_eq!(fruit.take(&term!(apple))?, [term!({apple, 7})]);
//! assert_eq!(fruit.len(), 3);
//! # Ok(()) }
//! ```
//!
//! All tables of a [`Larder`] belong to it and go when the last handle of it and of its tables goes. What needs more (other owners, access
//! rights, slices, visitors without copies) is there through [`Table::engine_table`].

use crate::budget::{Budget, Step};
use crate::engine::{Engine, NoDoor};
use crate::error::Error;
use crate::gate::ObjectList;
use crate::options::{Access, Concurrency, Options, StructureValue, TableKind};
use crate::owner::OwnerId;
use crate::scan::{Output, ScanStep};
use crate::table::Table as EngineTable;
use crate::update::{CounterOp, NewRow};
use larder_index::Direction;
use larder_matchspec::{Context, Program};
use larder_term::number::Number;
use larder_term::object::{ObjectBuf, ObjectView};
use larder_term::{atoms, Atom, Encoder, Term, TermRef};
use std::fmt;
use std::sync::Arc;

/// The owner of a program's tables; ends when the last handle goes.
struct Home {
    engine: Engine,
    owner: OwnerId,
}

impl Drop for Home {
    fn drop(&mut self) {
        self.engine.down(self.owner);
    }
}

/// A world of tables. Clones are handles of the same.
///
/// The last handle is not to be dropped by the destructor of a thread-local: what that needs of its own may be gone by then, and the drop
/// panics. A static, or a value that `main` owns, is a good place.
#[derive(Clone)]
pub struct Larder(Arc<Home>);

impl fmt::Debug for Larder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.engine.all()).finish()
    }
}

impl Default for Larder {
    fn default() -> Self {
        Self::new()
    }
}

impl Larder {
    /// An empty one.
    pub fn new() -> Self {
        let engine = Engine::new(Arc::new(NoDoor));
        let owner = engine.register();
        Larder(Arc::new(Home { engine, owner }))
    }

    /// Begins a table of this name: a set with the key in front, unless the builder is told otherwise.
    pub fn table(&self, name: &str) -> Builder {
        let mut options = Options::new(atoms::UNDEFINED);
        options.access = Access::Public;
        Builder {
            home: Arc::clone(&self.0),
            name: Atom::try_new(name).map_err(|e| Error::BadOption(e.to_string())),
            options,
        }
    }

    /// The table of this name, if it was made with [`Builder::named`].
    pub fn find(&self, name: &str) -> Option<Table> {
        let table = self.0.engine.find(Atom::existing(name)?)?;
        Some(Table {
            table,
            home: Arc::clone(&self.0),
        })
    }

    /// The engine, for what this module has no short form for.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The owner of the tables made here.
    pub fn owner(&self) -> OwnerId {
        self.0.owner
    }
}

/// A table to be.
pub struct Builder {
    home: Arc<Home>,
    name: Result<Atom, Error>,
    options: Options,
}

impl Builder {
    /// One object a key, in no order.
    pub fn set(mut self) -> Self {
        self.options.kind = TableKind::Set;
        self
    }

    /// One object a key, in the order of keys.
    pub fn ordered_set(mut self) -> Self {
        self.options.kind = TableKind::OrderedSet;
        self
    }

    /// Many different objects a key.
    pub fn bag(mut self) -> Self {
        self.options.kind = TableKind::Bag;
        self
    }

    /// Many objects a key, equal ones too.
    pub fn duplicate_bag(mut self) -> Self {
        self.options.kind = TableKind::DuplicateBag;
        self
    }

    /// The key is at this position of each tuple, from 1.
    pub fn keypos(mut self, keypos: usize) -> Self {
        self.options.keypos = keypos;
        self
    }

    /// Objects are kept compressed.
    pub fn compressed(mut self) -> Self {
        self.options.compressed = true;
        self
    }

    /// [`Larder::find`] finds the table. No other may have its name.
    pub fn named(mut self) -> Self {
        self.options.named = true;
        self
    }

    /// Objects are counted in many places: for many writers.
    pub fn decentralized_counters(mut self) -> Self {
        self.options.decentralized_counters = true;
        self.options.write_concurrency = Concurrency::Auto;
        self
    }

    /// The structure to build on; see [`crate::structures`].
    pub fn structure(mut self, name: &str) -> Self {
        name.clone_into(&mut self.options.structure);
        self
    }

    /// An option of the structure.
    pub fn structure_option(mut self, name: &str, value: StructureValue) -> Self {
        let said = &mut self.options.structure_options;
        said.push((name.to_owned(), value));
        self
    }

    /// Makes the table.
    ///
    /// # Errors
    /// `BadOption` (a name over 255 characters, a key position of 0, an option that the structure has not), `UnknownStructure`, `AlreadyExists`.
    pub fn create(mut self) -> Result<Table, Error> {
        self.options.name = self.name?;
        let table = self.home.engine.create(self.options, self.home.owner)?;
        Ok(Table {
            table,
            home: self.home,
        })
    }
}

/// A table of a [`Larder`]. Clones are handles of the same table; they may be used by any number of threads.
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
    /// The engine's table, for what this module has no short form for.
    pub fn engine_table(&self) -> &Arc<EngineTable> {
        &self.table
    }

    fn me(&self) -> OwnerId {
        self.home.owner
    }

    /// Runs an operation until no batch is in its way.
    fn patiently<R>(&self, mut f: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        loop {
            match f() {
                Err(Error::Busy) => self.table.wait(),
                result => return result,
            }
        }
    }

    fn key(&self, key: &Term) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.table.encode_key(key.as_ref(), &mut bytes);
        bytes
    }

    fn object(&self, tuple: &Term) -> Result<ObjectBuf, Error> {
        let mut object = ObjectBuf::new();
        self.table.encode_object(tuple.as_ref(), &mut object)?;
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

    /// Inserts a tuple: in a set in place of the one with its key, in a bag beside the others. Atomic.
    ///
    /// # Errors
    /// `NotTuple`, `Keypos` (too short to have a key), `NoTable` after `drop_table`.
    pub fn insert(&self, tuple: &Term) -> Result<(), Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.insert(self.me(), &object))
    }

    /// Inserts a tuple unless its key is there; whether it did. Atomic.
    ///
    /// # Errors
    /// As `insert`.
    pub fn insert_new(&self, tuple: &Term) -> Result<bool, Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.insert_new(self.me(), &object))
    }

    /// Inserts all tuples at once: nobody sees some of them without the others, and if one is bad none is inserted.
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
        while job.step(&mut Budget::slice())? == Step::More {}
        Ok(job.inserted())
    }

    /// The tuples under a key, in order of arrival.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn lookup(&self, key: &Term) -> Result<Vec<Term>, Error> {
        let key = self.key(key);
        self.collect(|visit| self.table.lookup(self.me(), &key, visit))
    }

    /// Whether there is a tuple under the key.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn contains(&self, key: &Term) -> Result<bool, Error> {
        let key = self.key(key);
        self.patiently(|| self.table.member(self.me(), &key))
    }

    /// Deletes what is under the key; how many tuples went.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn delete(&self, key: &Term) -> Result<usize, Error> {
        let key = self.key(key);
        self.patiently(|| self.table.delete(self.me(), &key))
    }

    /// Deletes this very tuple, all its copies in a duplicate_bag; how many went.
    ///
    /// # Errors
    /// As `insert`.
    pub fn delete_object(&self, tuple: &Term) -> Result<usize, Error> {
        let object = self.object(tuple)?;
        self.patiently(|| self.table.delete_object(self.me(), &object))
    }

    /// Deletes what is under the key and gives it. Atomic: of several takers one gets it.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn take(&self, key: &Term) -> Result<Vec<Term>, Error> {
        let key = self.key(key);
        self.collect(|visit| self.table.take(self.me(), &key, visit))
    }

    /// Adds to the integer at a position of the tuple under a key; the sum. Atomic.
    ///
    /// # Errors
    /// `BadKey`, `Position`, `Keypos`, `NotInteger`, `TableType` (bags), `NoTable`.
    pub fn add(&self, key: &Term, pos: usize, incr: i64) -> Result<Term, Error> {
        self.count(key, pos, incr, None)
    }

    /// As `add`; a key that is absent gets the tuple `default` (with its key put in) first.
    ///
    /// # Errors
    /// As `add`, and `BadDefault`.
    pub fn add_or(&self, key: &Term, pos: usize, incr: i64, default: &Term) -> Result<Term, Error> {
        self.count(key, pos, incr, Some(default))
    }

    fn count(
        &self,
        key: &Term,
        pos: usize,
        incr: i64,
        default: Option<&Term>,
    ) -> Result<Term, Error> {
        let bytes = self.key(key);
        let op = CounterOp {
            pos,
            incr: Number::Int(incr),
            limit: None,
        };
        let row = default.map(|tuple| NewRow {
            key: key.as_ref(),
            tuple: tuple.as_ref(),
        });
        let mut out = Vec::new();
        self.patiently(|| {
            let ops = std::slice::from_ref(&op);
            self.table
                .update_counter(self.me(), &bytes, ops, row, &mut out)
        })?;
        let sum = out.pop().ok_or(Error::NotInteger)?;
        term(|enc| sum.encode(enc))
    }

    /// Replaces the element at a position of the tuple under a key; false if there is none. Atomic.
    ///
    /// # Errors
    /// `Position`, `Keypos`, `TableType` (bags), `NoTable`.
    pub fn update(&self, key: &Term, pos: usize, element: &Term) -> Result<bool, Error> {
        let key = self.key(key);
        let ops = [(pos, element.as_ref())];
        self.patiently(|| self.table.update_element(self.me(), &key, &ops, None))
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
    pub fn next(&self, key: &Term) -> Result<Option<Term>, Error> {
        let key = self.key(key);
        self.one_key(|visit| self.table.next(self.me(), &key, visit))
    }

    /// The key before this one in an ordered_set; for the others, as `next`.
    ///
    /// # Errors
    /// As `next`.
    pub fn prev(&self, key: &Term) -> Result<Option<Term>, Error> {
        let key = self.key(key);
        self.one_key(|visit| self.table.prev(self.me(), &key, visit))
    }

    fn one_key(
        &self,
        mut f: impl FnMut(&mut dyn FnMut(TermRef<'_>)) -> Result<bool, Error>,
    ) -> Result<Option<Term>, Error> {
        let mut found = None;
        self.patiently(|| f(&mut |key| found = Some(Term::from(key))))?;
        Ok(found)
    }

    /// Every tuple, in key order for an ordered_set. No snapshot: what others do meanwhile may be seen or not.
    ///
    /// # Errors
    /// `NoTable`.
    pub fn to_vec(&self) -> Result<Vec<Term>, Error> {
        let job = self.table.each(self.me(), Direction::Forward)?;
        self.run(job)
    }

    /// The results of a match specification, written as in Erlang, for the tuples it matches.
    ///
    /// # Errors
    /// `BadSpec` with the reason, `NoTable`.
    pub fn select(&self, spec: &str) -> Result<Vec<Term>, Error> {
        let job = self
            .table
            .select(self.me(), program(spec)?, Direction::Forward, None)?;
        self.run(job)
    }

    /// As `select`, from the other end of an ordered_set.
    ///
    /// # Errors
    /// As `select`.
    pub fn select_reverse(&self, spec: &str) -> Result<Vec<Term>, Error> {
        let job = self
            .table
            .select(self.me(), program(spec)?, Direction::Backward, None)?;
        self.run(job)
    }

    fn run(&self, mut job: crate::scan::SelectJob) -> Result<Vec<Term>, Error> {
        let mut found = Vec::new();
        self.with_context(|ctx| loop {
            let step = self.patiently(|| {
                job.step(&mut Budget::unlimited(), ctx, &mut |output| {
                    found.push(match output {
                        Output::Object(object) => tuple(object),
                        Output::Term(term) => Term::from(term),
                    });
                })
            })?;
            if step != ScanStep::More {
                return Ok::<(), Error>(());
            }
        })?;
        Ok(found)
    }

    /// How many tuples the match specification gives `true` for.
    ///
    /// # Errors
    /// As `select`.
    pub fn select_count(&self, spec: &str) -> Result<u64, Error> {
        let mut job = self.table.select_count(self.me(), program(spec)?)?;
        self.until_done(|budget, ctx| job.step(budget, ctx))?;
        Ok(job.count())
    }

    /// Deletes the tuples that the match specification gives `true` for; how many.
    ///
    /// # Errors
    /// As `select`.
    pub fn select_delete(&self, spec: &str) -> Result<u64, Error> {
        let mut job = self.table.select_delete(self.me(), program(spec)?)?;
        self.until_done(|budget, ctx| job.step(budget, ctx))?;
        Ok(job.count())
    }

    /// Replaces the tuples that the match specification matches by its results, which have to keep the key; how many.
    ///
    /// # Errors
    /// As `select`; `KeyChanged` if the specification might change a key, `TableType` for a bag.
    pub fn select_replace(&self, spec: &str) -> Result<u64, Error> {
        let mut job = self.table.select_replace(self.me(), program(spec)?)?;
        self.until_done(|budget, ctx| job.step(budget, ctx))?;
        Ok(job.count())
    }

    fn until_done(
        &self,
        mut step: impl FnMut(&mut Budget, &Context<'_>) -> Result<Step, Error>,
    ) -> Result<(), Error> {
        self.with_context(|ctx| {
            while self.patiently(|| step(&mut Budget::unlimited(), ctx))? == Step::More {}
            Ok(())
        })
    }

    /// There are no processes here: `{self}` gives `undefined`.
    fn with_context<R>(&self, f: impl FnOnce(&Context<'_>) -> R) -> R {
        let nobody = Term::from(atoms::UNDEFINED);
        f(&Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        })
    }

    /// Empties the table at one instant; how many tuples went. O(1).
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

    /// Drops the table, for all its handles. O(1); its memory is freed behind.
    ///
    /// # Errors
    /// `NoTable` if it was dropped before.
    pub fn drop_table(&self) -> Result<(), Error> {
        self.table.drop_table(self.me())
    }
}

/// Compiles a match specification.
fn program(spec: &str) -> Result<Arc<Program>, Error> {
    let spec = larder_term::text::parse(spec).map_err(|e| Error::BadSpec(e.to_string()))?;
    let program = Program::compile(spec.as_ref()).map_err(|e| Error::BadSpec(e.to_string()))?;
    Ok(Arc::new(program))
}

/// An object as a term that owns itself.
fn tuple(object: &ObjectView<'_>) -> Term {
    // What a view encodes is one whole term.
    Term::build(|enc| object.encode(enc)).unwrap_or_else(|_| Term::nil())
}

fn term(push: impl FnOnce(&mut Encoder<'_>)) -> Result<Term, Error> {
    Term::build(push).map_err(|e| Error::BadSpec(e.to_string()))
}

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
//! All tables of a [`Larder`] belong to it and go when the last handle of it and of its tables
//! goes. What needs more (other owners, access rights, slices, visitors without copies) is there
//! through [`Table::engine_table`].

mod bounds;
mod feed;
mod file;
mod index;
mod operations;
mod select;
mod snapshot;
mod spec;
mod table;
mod transaction;
#[cfg(feature = "serde")]
pub mod typed;

use crate::engine::{Engine, NoHost};
use crate::error::Error;
use crate::ids::OwnerId;
use crate::ops::expirer;
use crate::options::{Access, Bounds, Concurrency, Evict, Limits, Options, TableKind};
use crate::reclaim::reaper;
use crate::structures::StructureValue;
use crate::table::Table as EngineTable;
use larder_term::{atoms, Atom};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use feed::{Commit, Event, Feed, FeedOptions};
pub use index::Index;
pub use operations::Operations;
pub use select::Rows;
pub use snapshot::Snapshot;
pub use spec::{BoundSpec, MatchSpec, Spec};
pub use table::Table;
pub use transaction::Transaction;

/// The longest wait for all to be freed: a time that can be reckoned with.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

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

/// Runs an operation on some tables until no batch is in its way.
fn patiently<R>(
    tables: &[&Arc<EngineTable>],
    mut f: impl FnMut() -> Result<R, Error>,
) -> Result<R, Error> {
    loop {
        // Busy: nothing was done, and nothing visited; a job's next step goes on where this one
        // stopped. So `f` may be called again.
        match f() {
            Err(Error::Busy) => tables.iter().for_each(|table| table.wait_for_batch()),
            result => return result,
        }
    }
}

/// A world of tables. Clones are handles of the same.
///
/// The last handle is not to be dropped by the destructor of a thread-local: what that needs of its
/// own may be gone by then, and the drop panics. A static, or a value that `main` owns, is a good
/// place.
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
        let engine = Engine::new(Arc::new(NoHost));
        let owner = engine.register();
        Larder(Arc::new(Home { engine, owner }))
    }

    /// Begins a table of this name: a set with the key in front, unless the builder says
    /// otherwise.
    pub fn table(&self, name: &str) -> Builder {
        let mut options = Options::new(atoms::UNDEFINED);
        options.access = Access::Public;
        Builder {
            home: Arc::clone(&self.0),
            name: Atom::try_new(name).map_err(|e| Error::BadOption(e.to_string().into())),
            options,
            indexes: Vec::new(),
        }
    }

    /// The table of this name, if it was made with [`Builder::named`].
    pub fn find(&self, name: &str) -> Option<Table> {
        let table = self.0.engine.find(Atom::existing(name)?)?;
        Some(Table::new(table, &self.0))
    }

    /// Whether the objects of tables are to lie on huge pages of two megabytes, where the system
    /// has them: so it is unless said otherwise. For all tables of the program, and memory that no
    /// table has taken yet. Without huge pages the first inserts pause less, and look-ups in large
    /// tables take longer.
    ///
    /// ```
    /// larder::api::Larder::huge_pages(false);
    /// ```
    pub fn huge_pages(huge: bool) {
        larder_index::huge_pages(huge);
    }

    /// Waits until all that was deleted or dropped is freed, in all worlds of the program, and ends
    /// the library's threads; at most so long, and a day. Whether that came about: while others
    /// delete, it may not. The threads begin anew when there is something to do; one that sees to
    /// tables with bounds stays as long as there are any. For orderly ends, and before a `fork`.
    ///
    /// ```
    /// use larder::api::Larder;
    /// use std::time::Duration;
    ///
    /// let larder = Larder::new();
    /// drop(larder);
    /// assert!(Larder::quiesce(Duration::from_secs(10)));
    /// ```
    pub fn quiesce(timeout: Duration) -> bool {
        let timeout = timeout.min(LONGEST);
        let until = Instant::now() + timeout;
        // In this order: what the expirer does is the reaper's work.
        expirer::end(until);
        let is_over = reaper::idle(timeout) && reaper::end(until);
        if is_over {
            larder_index::end_thread();
        }
        is_over
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
    indexes: Vec<Index>,
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

    /// Tuples live for so long after they were written, unless they were inserted with a time of
    /// their own (see [`Table::insert_with`]).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        let ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.options.bounds.get_or_insert_default().ttl = Some(ms);
        self
    }

    /// Tuples live for so long after they were written or looked up by their key, at least.
    pub fn idle(mut self, idle: Duration) -> Self {
        let ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        self.options.bounds.get_or_insert_default().idle = Some(ms);
        self
    }

    /// The table has so many tuples at most. Without [`Builder::evict`], it refuses more.
    pub fn max_size(mut self, tuples: usize) -> Self {
        self.limits().max_size = Some(tuples);
        self
    }

    /// The table's tuples take so many bytes at most. Without [`Builder::evict`], it refuses more.
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.limits().max_memory = Some(bytes);
        self
    }

    /// What becomes of a table that has as much as it may.
    pub fn evict(mut self, evict: Evict) -> Self {
        self.limits().evict = evict;
        self
    }

    fn limits(&mut self) -> &mut Limits {
        let bounds = self.options.bounds.get_or_insert_default();
        bounds.limits.get_or_insert_default()
    }

    /// The table has these bounds, which may be none now and set later.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.options.bounds = Some(bounds.into());
        self
    }

    /// The structure to build on; see [`crate::structures`].
    pub fn structure(mut self, name: &str) -> Self {
        self.options.structure = name.to_owned().into();
        self
    }

    /// The structure and its options as one text, as `info` and files have it: `btree`,
    /// `catree(over=btree,m=16)`.
    pub fn structure_text(mut self, text: &str) -> Self {
        self.options.set_structure_text(text);
        self
    }

    /// An option of the structure.
    pub fn structure_option(mut self, name: &str, value: StructureValue) -> Self {
        let said = &mut self.options.structure_options;
        said.push((name.to_owned(), value));
        self
    }

    /// The table has this secondary index.
    pub fn index(mut self, index: Index) -> Self {
        self.indexes.push(index);
        self
    }

    /// Makes the table.
    ///
    /// # Errors
    /// `BadOption` (a name over 255 characters, a key position of 0, an option that the structure
    /// has not, an index that can't be), `UnknownStructure`, `AlreadyExists`.
    pub fn create(mut self) -> Result<Table, Error> {
        self.options.name = self.name?;
        let indexes = self.indexes.iter().map(Index::definition);
        self.options.indexes = indexes.collect::<Result<_, _>>()?;
        let table = self.home.engine.create(self.options, self.home.owner)?;
        Ok(Table::new(table, &self.home))
    }
}

//! Tables for Rust programs. They take and return terms, need no owners, and retry by themselves.
//!
//! ```
//! use larder::api::Larder;
//! use larder::{term, Term};
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
//! assert_eq!(fruit.next(&term!(banana))?, Some(term!(cherry)));
//! assert_eq!(fruit.add(&term!(apple), 2, 4)?, term!(7));
//! assert_eq!(fruit.take(&term!(apple))?, [term!({apple, 7})]);
//! assert_eq!(fruit.len(), 3);
//! # Ok(()) }
//! ```
//!
//! All tables of a [`Larder`] belong to it. They are dropped with the last handle of the `Larder`
//! and of its tables. More (other owners, access rights, time slices, visitors without copies) is
//! available through [`Table::engine_table`].

mod bounds;
mod buffers;
mod feed;
#[cfg(feature = "files")]
mod file;
mod index;
#[cfg(feature = "matchspec")]
mod matching;
mod operations;
mod rows;
mod snapshot;
#[cfg(feature = "studies")]
mod structure;
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
use crate::table::EngineTable;
use larder_term::{atoms, Atom};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use feed::{Commit, Event, Feed, FeedOptions};
pub use index::Index;
#[cfg(feature = "matchspec")]
#[cfg_attr(docsrs, doc(cfg(feature = "matchspec")))]
pub use matching::{BoundSpec, MatchSpec, Spec};
pub use operations::Operations;
pub use rows::Rows;
pub use snapshot::Snapshot;
pub use table::Table;
pub use transaction::Transaction;

/// The longest time that `quiesce` waits. A greater one could overflow an `Instant`.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The owner of a program's tables. It ends when the last handle is dropped.
struct ProgramOwner {
    engine: Engine,
    owner: OwnerId,
}

impl Drop for ProgramOwner {
    fn drop(&mut self) {
        self.engine.down(self.owner);
    }
}

/// Runs an operation on some tables. If a list insert is in the way, waits for it and retries.
#[inline]
fn patiently<R>(
    tables: &[&Arc<EngineTable>],
    mut f: impl FnMut() -> Result<R, Error>,
) -> Result<R, Error> {
    loop {
        // The only call of `f`, so that it is compiled once, within its caller. After `Busy`,
        // nothing has been done and nothing visited. The next step of a job continues where this
        // one has stopped. So `f` may be called again.
        match f() {
            Ok(done) => return Ok(done),
            Err(error) => wait(tables, error)?,
        }
    }
}

/// Waits for the list inserts into some tables, if the error is that one is in the way. Otherwise
/// returns the error.
#[cold]
fn wait(tables: &[&Arc<EngineTable>], error: Error) -> Result<(), Error> {
    if error != Error::Busy {
        return Err(error);
    }
    tables.iter().for_each(|table| table.wait_for_batch());
    // Without a batch, another thread is removing what makes room.
    larder_index::sync::yield_now();
    Ok(())
}

/// A collection of tables. Clones are handles of the same collection.
///
/// Don't drop the last handle in the destructor of a thread-local: thread-locals that the drop
/// needs may be destroyed by then, and the drop panics. Keep it in a static, or in a value that
/// `main` owns.
#[derive(Clone)]
pub struct Larder(Arc<ProgramOwner>);

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
    /// Creates an empty collection.
    // A program has no host, and a single owner for all of its tables.
    pub fn new() -> Self {
        let engine = Engine::new(Arc::new(NoHost));
        let owner = engine.register();
        Larder(Arc::new(ProgramOwner { engine, owner }))
    }

    /// Starts to build a table of this name. By default it is a set, and its key is the first
    /// element.
    pub fn table(&self, name: &str) -> Builder {
        // A Rust program has no owners whose rights could differ, so tables are public.
        let mut options = Options::new(atoms::UNDEFINED);
        options.access = Access::Public;
        Builder {
            home: Arc::clone(&self.0),
            // A name that is no atom is reported by `create`, so that a builder's methods can be
            // chained.
            name: Atom::try_new(name).map_err(|e| Error::BadOption(e.to_string().into())),
            options,
            indexes: Vec::new(),
        }
    }

    /// Finds the table of this name, if it was created with [`Builder::named`].
    pub fn find(&self, name: &str) -> Option<Table> {
        // A text that isn't an atom yet can't be the name of a table. So no atom is made for it.
        let table = self.0.engine.find(Atom::existing(name)?)?;
        Some(Table::new(table, &self.0))
    }

    /// Whether to store objects on huge pages of two megabytes, where the system has them. The
    /// default is `true`. The setting is process-wide, and applies to memory that no table has
    /// taken yet. Without huge pages the first inserts have shorter pauses, and lookups in large
    /// tables take longer.
    ///
    /// ```
    /// larder::api::Larder::huge_pages(false);
    /// ```
    pub fn huge_pages(huge: bool) {
        larder_index::huge_pages(huge);
    }

    /// Waits until everything that was deleted or dropped is freed, in all collections of the
    /// process, and ends the library's threads. Call it for an orderly shutdown, and before a
    /// `fork`.
    ///
    /// Returns whether all of this was reached within `timeout`, which is capped at a day. It may
    /// not be while other threads delete. The threads start again when there is work. While there
    /// are bounded tables, the thread that expires their tuples stays.
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
        // A longer time might be beyond the last instant.
        let timeout = timeout.min(LONGEST);
        let until = Instant::now() + timeout;
        // The order matters: the work of the expirer gives work to the reaper.
        expirer::end(until);
        let is_over = reaper::idle(timeout) && reaper::end(until);
        if is_over {
            larder_index::end_thread();
        }
        is_over
    }

    /// The engine, which has the operations that this module has no short form of.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The owner of the tables that are created here.
    pub fn owner(&self) -> OwnerId {
        self.0.owner
    }
}

/// Builds a table.
pub struct Builder {
    home: Arc<ProgramOwner>,
    name: Result<Atom, Error>,
    options: Options,
    indexes: Vec<Index>,
}

impl Builder {
    /// One object per key, in no order.
    pub fn set(mut self) -> Self {
        self.options.kind = TableKind::Set;
        self
    }

    /// One object per key, in the order of keys.
    pub fn ordered_set(mut self) -> Self {
        self.options.kind = TableKind::OrderedSet;
        self
    }

    /// Several different objects per key.
    pub fn bag(mut self) -> Self {
        self.options.kind = TableKind::Bag;
        self
    }

    /// Several objects per key, which may be equal.
    pub fn duplicate_bag(mut self) -> Self {
        self.options.kind = TableKind::DuplicateBag;
        self
    }

    /// The position of the key in each tuple, from 1, which is the default.
    pub fn keypos(mut self, keypos: usize) -> Self {
        self.options.keypos = keypos;
        self
    }

    /// Stores objects compressed: in less memory, and with more time for each access.
    pub fn compressed(mut self) -> Self {
        self.options.compressed = true;
        self
    }

    /// Lets [`Larder::find`] find the table. Named tables have different names.
    pub fn named(mut self) -> Self {
        self.options.named = true;
        self
    }

    /// Counts the tuples in 32 counters, for many concurrent writers. That takes 4 KiB for the
    /// table. A table with limits has one counter.
    pub fn decentralized_counters(mut self) -> Self {
        self.options.decentralized_counters = true;
        self.options.write_concurrency = Concurrency::Auto;
        self
    }

    /// The lifetime of tuples after they were written, in whole milliseconds, of which a part
    /// counts as one. [`Table::insert_with`] sets a different one for a tuple. Without it, tuples
    /// don't expire. Bounds are for a set or an ordered_set on the default structure.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.bounds.get_or_insert_default().ttl = bounds::ms(Some(ttl));
        self
    }

    /// The least lifetime of tuples after they were written or looked up by their key, in whole
    /// milliseconds. It may be up to an eighth longer.
    pub fn idle(mut self, idle: Duration) -> Self {
        self.options.bounds.get_or_insert_default().idle = bounds::ms(Some(idle));
        self
    }

    /// The maximum number of tuples, at least 1. Without [`Builder::evict`], the table refuses more
    /// ([`Error::Full`]).
    pub fn max_size(mut self, tuples: usize) -> Self {
        self.limits().max_size = Some(tuples);
        self
    }

    /// The maximum memory of the tuples in bytes: of their keys and elements, with long binaries,
    /// and 32 more for each tuple. Without [`Builder::evict`], the table refuses more
    /// ([`Error::Full`]).
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.limits().max_memory = Some(bytes);
        self
    }

    /// What a full table does with further tuples; by default it refuses them.
    pub fn evict(mut self, evict: Evict) -> Self {
        self.limits().evict = evict;
        self
    }

    fn limits(&mut self) -> &mut Limits {
        let bounds = self.options.bounds.get_or_insert_default();
        bounds.limits.get_or_insert_default()
    }

    /// The bounds of the table. They may be empty, and be set later.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.options.bounds = Some(bounds.into());
        self
    }

    /// Adds a secondary index.
    pub fn index(mut self, index: Index) -> Self {
        self.indexes.push(index);
        self
    }

    /// Creates the table.
    ///
    /// # Errors
    /// `BadOption` (a name of more than 255 characters, a key position of 0, bounds that are not
    /// for this type of table, an option that the structure doesn't have, an invalid index),
    /// `UnknownStructure`, `AlreadyExists`.
    pub fn create(mut self) -> Result<Table, Error> {
        // Invalid names and indexes are reported here, not by the methods that set them.
        self.options.name = self.name?;
        let indexes = self.indexes.iter().map(Index::definition);
        self.options.indexes = indexes.collect::<Result<_, _>>()?;
        let table = self.home.engine.create(self.options, self.home.owner)?;
        Ok(Table::new(table, &self.home))
    }
}

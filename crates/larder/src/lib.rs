//! Larder: tables of tuples in memory, shared by many threads, queried by key, by order or by
//! pattern.
//!
//! The tables are those of Erlang's `ets`: set, ordered_set, bag and duplicate_bag, with access
//! rights, owners and heirs, atomic counters, atomic list inserts, match specifications and files.
//! Programs in Rust begin with the [`prelude`], whose types [`api`] explains. A host to another
//! language works with [`Engine`] and [`Table`], on encoded bytes and in slices.
//!
//! ```
//! use larder::prelude::*;
//!
//! # fn main() -> Result<(), larder::Error> {
//! let stock = Larder::new().table("stock").ordered_set().create()?;
//! stock.insert_all(&[term!({apple, 3}), term!({pear, 12}), term!({quince, 1})])?;
//! stock.add(&term!(apple), 2, 10)?;
//! assert_eq!(stock.lookup(&term!(apple))?, [term!({apple, 13})]);
//! assert_eq!(stock.next(&term!(banana))?, Some(term!(pear)));
//! # Ok(()) }
//! ```
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it adds | it brings |
//! |---|---|---|
//! | `serde` | `typed`: tables whose keys and values are Rust's types | serde, and what derives keys |
//! | `files` | `Table::save`, `Larder::load`, `file`: tables in files; and `etf` | sha2, crc32fast |
//! | `etf` | `terms::etf`: Erlang's external term format | flate2 |
//! | `studies` | `Builder::structure`: the structures of the published studies of `ets`, and their options | larder-studies, hashbrown, triomphe |
//!
//! Without a feature, its items are not there: a call of one is an error of the compiler.
//!
//! # How it is built
//!
//! A module imports only from those above it in this table.
//!
//! | module | what it has |
//! |---|---|
//! | `ids`, `error`, `options`, `structures`, `budget`, `counters` | numbers of tables and owners; errors; what a table is made with; slices; counting |
//! | `raw` | the only unsafe code |
//! | `index`, `store`, `keys`, `stored` | objects under keys, as bytes: the index of either kind, its size, index keys, an object that was found |
//! | `bounds` | objects that expire, and the eviction of objects |
//! | `reclaim` | deferred release, the reaper, its throttle |
//! | `change_stamp`, `fixation`, `read_ahead` | whether a table has changed; keys deleted while it is fixed; the read-ahead cursor |
//! | `local`, `buffers` | the state and the buffers of a thread |
//! | `batch` | atomic inserts of lists: the batch latch, its protocol and proof |
//! | `table`, `engine` | a table, the catalog of all tables, owners; making, finding, inheriting and dropping tables |
//! | `versions` | tables as of an instant: snapshots; what changes in tables: feeds |
//! | `ops` | operations by key, each written once |
//! | [`scan`] | match specifications over many objects, in slices |
//! | `file` | tables in files |
//! | [`terms`] | the types of the term layer that programs need |
//! | [`api`], [`prelude`] | the interface for programs in Rust; the part of it that most programs need |
//!
//! A folder contains a feature. Three files of `batch` (`apply`, `insert`, `latch`) use tables. The
//! rest of the folder, which a table contains, doesn't.
//!
//! # When an operation takes effect
//!
//! | operation | its instant (linearisation point) |
//! |---|---|
//! | lookup, member, lookup_elements, first, next, last, prev, slot of an ordered_set up to a leaf | the load of the leaf's version that the index then validates |
//! | insert, insert_new, delete, delete_object, take, update_counter, update_element | the store that unlocks the leaf |
//! | the same, for an absent key or one that stays | the same, with nothing changed |
//! | list insert | the acquisition of the batch latch |
//! | list insert_new | the end of the search for its keys |
//! | delete_all_objects | the exchange of the state word |
//! | dropping a table | the setting of the state word's `DEAD` bit |
//! | select, count of one key (`select_point`, `count_point`) | as lookup; `delete_point` as delete |
//! | select, count, each, fold, save | none as a whole: each leaf's worth of objects at one instant |
//! | select_delete, select_take, select_replace | each object (in a bag, each key) as a write of its own |
//! | create, rename | the store into the name's slot; a renamed table has both names for a moment |
//! | give_away, inheritance | the store of the owner |
//!
//! An operation on one key can run while a long list is being inserted. Any other operation returns
//! [`Error::Busy`] then, and has had no effect: call [`Table::help_batch`], and repeat the
//! operation. [`api`] does this by itself.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod api;
mod batch;
mod bounds;
mod budget;
mod buffers;
mod change_stamp;
mod counters;
mod engine;
mod error;
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
pub mod file;
mod fixation;
mod ids;
mod index;
mod indexes;
mod keys;
mod local;
mod ops;
mod options;
mod pairs;
mod pass_on;
pub mod prelude;
#[allow(unsafe_code)]
mod raw;
mod read_ahead;
mod reclaim;
pub mod scan;
mod store;
mod stored;
mod structures;
mod table;
pub mod terms;
mod versions;

#[cfg(feature = "serde")]
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
pub use api::typed;
pub use batch::{ListJob, ObjectList};
pub use bounds::advance_clock;
pub use budget::{Budget, Step};
pub use change_stamp::Stamp;
pub use engine::{Engine, Host, Memory, NoHost};
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
pub use error::FileError;
pub use error::{Error, Reason};
pub use fixation::{FixTime, Fixed};
pub use ids::{ByNumber, OwnerId, TableId, Who};
pub use indexes::{
    Explanation, IndexBuild, IndexDefinition, IndexInfo, IndexJob, IndexOn, PlanKind,
};
pub use keys::KeyList;
pub use local::{with_local, Local};
pub use ops::{CounterOp, Decision, MapHost, MapOp, NewRow, Pair, Slot, Sorted, Sums, TimeLeft};
pub use options::{Access, Bounds, Concurrency, Evict, Limits, Options, TableKind};
pub use scan::{
    CountJob, DeleteJob, Output, Point, ReplaceJob, ScanStep, SelectJob, Show, TakeJob,
};
pub use stored::{Stored, StoredKey};
pub use structures::{structures, Structure, StructureValue};
pub use table::{Beside, Info, Table};
pub use versions::{
    DiffJob, Difference, FeedEvent, Outcome, SnapshotInfo, Subscription, Told, Transaction, Turn,
    Waker, Wishes,
};

pub use larder_index::{Allocator, Direction, Guard, TOGETHER};
pub use terms::{term, Atom, Term, TryFromTermError};

/// The Rust of the pages, so that it compiles and runs.
#[cfg(all(doctest, feature = "serde"))]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Project;
    #[doc = include_str!("../README.md")]
    struct Crate;
}

//! The engine, for hosts: what bindings to other languages are made of.
//!
//! A host works with [`Engine`] and [`EngineTable`], on encoded bytes, as an owner, with access
//! rights, and in slices that a [`Budget`] ends. Programs in Rust have [`crate::Larder`] and
//! [`crate::Table`], which do this by themselves. The interface of this module may change with each
//! release.
//!
//! # How the engine is built
//!
//! Most modules use only those above them in this table. There are two exceptions. A store names
//! its layers (`bounds`, `indexes`, `versions`), and these use what is below them. A table contains
//! the state of its batches and its versions. `make lint` checks that the imports of files form no
//! circle.
//!
//! | module | what it has |
//! |---|---|
//! | `ids`, `error` | numbers of tables and owners; errors |
//! | `options`, `structures` | what a table is made with |
//! | `budget`, `counters` | slices; counting |
//! | `raw` | the only unsafe code |
//! | `programs` | match specifications, or what stands for them without the feature |
//! | `reclaim` | deferred release, the reaper, its throttle |
//! | `index`, `objects` | objects under keys, as bytes: the index of either kind, its size |
//! | `keys`, `stored` | index keys, an object that was found |
//! | `store`, `delegate` | the layers over the objects, and the methods that they delegate |
//! | `bounds` | objects that expire, and the eviction of objects |
//! | `indexes` | secondary indexes |
//! | `change_stamp`, `fixation` | whether a table has changed; keys deleted while it is fixed |
//! | `read_ahead` | the read-ahead cursor |
//! | `local`, `buffers` | the state and the buffers of a thread |
//! | `batch` | atomic inserts of lists: the batch latch, its protocol and proof |
//! | `table` | a table, the catalog of all tables, owners |
//! | `engine` | making, finding, inheriting and dropping tables |
//! | `versions` | tables as of an instant: snapshots; what changes in tables: feeds |
//! | `ops` | operations by key, each written once |
//! | `scan` | match specifications over many objects, in slices |
//! | `file` | tables in files |
//! | [`crate::terms`] | the types of the term layer that programs need |
//! | [`crate::api`] | the interface for programs in Rust |
//! | [`crate::prelude`] | the part of it that most programs need |
//!
//! A folder contains a feature. Three files of `batch` (`apply`, `insert`, `latch`) use tables. The
//! rest of the folder, which a table contains, doesn't.
//!
//! # When an operation takes effect
//!
//! | operation | its instant (linearisation point) |
//! |---|---|
//! | lookup, member, lookup_elements | the load of the leaf's version that the index validates |
//! | first, next, last, prev, slot of an ordered_set up to a leaf | as lookup |
//! | insert, insert_new, delete, delete_object, take | the store that unlocks the leaf |
//! | update_counter, update_element | as insert |
//! | these writes, if the leaf is replaced | the store that marks the old leaf obsolete |
//! | these writes, if nothing changes | as lookup; under the leaf's lock, as insert |
//! | list insert | the acquisition of the batch latch |
//! | list insert_new | the end of the search for its keys |
//! | snapshot, subscribing with one | the increment of the clock, for all tables of the call |
//! | a transaction, `commit_on_keys` | the drawing of the commit's number |
//! | a transaction that has only read | the increment of the clock by its snapshot |
//! | delete_all_objects | the exchange of the state word |
//! | dropping a table | the setting of the state word's `DEAD` bit |
//! | select, count of one key (`select_point`, `count_point`) | as lookup |
//! | `delete_point` | as delete |
//! | select, count, each, fold, save | none as a whole: the objects of each leaf at one instant |
//! | select_delete, select_take, select_replace | each object (in a bag, each key) as one write |
//! | create, rename | the store into the name's slot; a renamed table has both names for a moment |
//! | give_away, inheritance | the store of the owner |
//!
//! An operation on one key can run while a long list is being inserted. Any other operation returns
//! [`Error::Busy`] then, and has had no effect: call [`EngineTable::help_batch`], and repeat the
//! operation. [`crate::api`] does this by itself.

pub use crate::batch::{ListJob, ObjectList};
pub use crate::bounds::advance_clock;
pub use crate::budget::{Budget, Step};
pub use crate::change_stamp::Stamp;
pub use crate::engine::{Engine, Host, Memory, NoHost};
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
pub use crate::error::FileError;
pub use crate::error::{Error, Reason};
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
pub use crate::file::{read_header, Header, LoadJob, LoadOptions, SaveJob, SaveOptions};
pub use crate::fixation::{FixTime, Fixed};
pub use crate::ids::{ByNumber, OwnerId, TableId, Who};
#[cfg(feature = "matchspec")]
#[cfg_attr(docsrs, doc(cfg(feature = "matchspec")))]
pub use crate::indexes::{Explanation, PlanKind};
pub use crate::indexes::{IndexBuild, IndexDefinition, IndexInfo, IndexJob, IndexOn};
pub use crate::keys::KeyList;
pub use crate::local::{with_local, Local};
pub use crate::ops::{
    CounterOp, CounterOps, Decision, MapChange, MapHost, MapOp, NewRow, Slot, SmallOp, Sorted,
    Sums, TimeLeft,
};
pub use crate::options::{Access, Bounds, Concurrency, Evict, Limits, Options, TableKind};
pub use crate::programs::{BuiltTerm, Context, Program};
#[cfg(feature = "matchspec")]
#[cfg_attr(docsrs, doc(cfg(feature = "matchspec")))]
pub use crate::scan::{CountJob, DeleteJob, Point, ReplaceJob, TakeJob};
pub use crate::scan::{FoldChunk, Output, ScanStep, SelectJob, ShowObject};
pub use crate::stored::{Stored, StoredKey};
pub use crate::structures::{structures, Structure, StructureValue};
pub use crate::table::{EngineTable, HostData, Info};
pub use crate::versions::{
    CommitOutcome, DiffJob, Difference, EngineTransaction, FeedEvent, FeedRead, SnapshotInfo,
    Subscription, SubscriptionOptions, Turn, Waker,
};

#[cfg(feature = "mimalloc")]
pub use larder_index::Allocator;
pub use larder_index::{pin, Direction, Guard, MAX_KEYS_PER_LOOKUP};

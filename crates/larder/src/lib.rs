//! Larder: tables of tuples in memory, shared by many threads, queried by key, by order or by
//! pattern.
//!
//! The tables are those of Erlang's `ets`: set, ordered_set, bag and duplicate_bag, with access
//! rights, owners and heirs, atomic counters, atomic list inserts, match specifications and files.
//! Programs in Rust begin with [`api`]; a door to another language works with [`Engine`] and
//! [`Table`], on encoded bytes and in slices.
//!
//! ```
//! use larder::api::Larder;
//! use larder_term::term;
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
//! # How it is built
//!
//! | module | what it has |
//! |---|---|
//! | `engine`, `registry`, `owner`, `options`, `info` | tables as a whole: made, found, renamed, given away, inherited, dropped |
//! | `table`, `store`, `write` | the state word, how an operation begins, how anything is written |
//! | `read`, `ops`, `update`, `traverse` | operations by key |
//! | `gate` | lists, all at once |
//! | [`scan`] | match specifications over many objects, in slices |
//! | `local`, `keys`, `ahead`, `leavings` | what a thread keeps; lists of keys; the read-ahead cursor; what is given back later |
//! | `fixation`, `counters`, `budget`, `scratch`, `number` | what the above need |
//! | `reaper`, `pace` | frees behind everybody's back, no faster than need be |
//! | [`mod@file`] | tables in files |
//! | `raw` | the only unsafe code |
//!
//! # When an operation takes effect
//!
//! | operation | its instant (linearisation point) |
//! |---|---|
//! | lookup, member, lookup_element, first, next, last, prev, slot of an ordered_set up to a leaf | the load of the leaf's version that the index's check confirms |
//! | insert, insert_new, delete, delete_object, take, update_counter, update_element | the store that unlocks the leaf |
//! | the same, for an absent key or one that stays | the same, with nothing changed |
//! | list insert | the closing of the gate |
//! | list insert_new | the end of the search for its keys |
//! | delete_all_objects | the exchange of the state word |
//! | dropping a table | the setting of the state word's `DEAD` bit |
//! | select, count of one key (`select_point`, `count_point`) | as lookup; `delete_point` as delete |
//! | select, count, each, fold, save | none as a whole: each leaf's worth of objects at one instant |
//! | select_delete, select_replace | each object (in a bag, each key) as a write of its own |
//! | create, rename | the store into the name's slot; a renamed table has both names for a moment |
//! | give_away, inheritance | the store of the owner |
//!
//! An operation on one key goes on beside a long list that is being inserted. Another one that
//! finds the gate closed answers [`Error::Busy`] and has had no effect: [`Table::help`] and do it
//! again. [`api`] does so by itself.

#![deny(unsafe_code)]

mod ahead;
pub mod api;
mod budget;
mod counters;
mod engine;
mod error;
pub mod file;
mod fixation;
mod gate;
mod info;
mod keys;
mod leavings;
mod local;
mod number;
mod object_list;
mod ops;
mod options;
mod owner;
mod pace;
#[allow(unsafe_code)]
mod raw;
mod read;
mod reaper;
mod registry;
pub mod scan;
mod scratch;
mod store;
mod structures;
mod table;
mod traverse;
mod trim;
mod update;
mod write;

pub use budget::{Budget, Step};
pub use engine::{Door, Engine, NoDoor};
pub use error::{Error, FileError};
pub use fixation::{FixTime, Fixed};
pub use gate::ListJob;
pub use info::Info;
pub use keys::KeyList;
pub use local::{with_local, with_local_untrimmed, Local};
pub use number::ByNumber;
pub use object_list::ObjectList;
pub use options::{Access, Concurrency, Options, TableKind};
pub use owner::{OwnerId, Who};
pub use read::Stored;
pub use scan::{
    CountJob, DeleteJob, Output, Point, ReplaceJob, ScanStep, SelectJob, Show, Watched,
};
pub use structures::{structures, Structure, StructureValue};
pub use table::{Beside, Table, TableId};
pub use traverse::Slot;
pub use update::{CounterOp, NewRow, Sums};

pub use larder_index::{Allocator, Direction, Guard, TOGETHER};

/// The README's Rust, so that it compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

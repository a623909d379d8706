//! Larder: tables of tuples in memory, shared by many threads, queried by key, by order or by
//! pattern.
//!
//! The tables are those of Erlang's `ets`: set, ordered_set, bag and duplicate_bag, with access
//! rights, owners and heirs, atomic counters and atomic list inserts. Tables of Rust's own types,
//! match specifications and files are [features](#features). Programs begin with the [`prelude`].
//! [`Larder`] makes tables, [`Table`] has what is done with one, and [`terms`] is about what is in
//! them. A host to another language works with [`host`], on encoded bytes and in slices.
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
//! | `serde` | `typed`: tables with keys and values of Rust types | serde, and what derives keys |
//! | `matchspec` | `Table::select` and others, `Spec`, `Index::expression` | larder-matchspec |
//! | `files` | `Table::save`, `Larder::load`, tables in files; and `etf` | sha2, crc32fast |
//! | `etf` | `terms::etf`: Erlang's external term format | flate2 |
//! | `mimalloc` | `Allocator`; see [below](#memory) | mimalloc, which needs a C compiler |
//! | `studies` | `Builder::structure`: studies' structures | larder-studies, hashbrown, triomphe |
//!
//! Without a feature, its items are not there: a call of one is an error of the compiler.
//! Without `matchspec`, a filter of a feed and an index on an expression in a file are refused.
//!
//! # Memory
//!
//! Tables keep leaves, which have nearly all of their objects, in regions of their own, on huge
//! pages where the system has them. What is smaller or larger than a leaf comes from the program's
//! global allocator, such as objects of 240 to 1,280 bytes or of more than 16 KiB. With the feature
//! `mimalloc` it comes from mimalloc, and `Allocator` is mimalloc for the other memory of the
//! program.

#![deny(unsafe_code)]
// Without match specifications, nothing calls what only they need.
#![cfg_attr(not(feature = "matchspec"), allow(dead_code, unused_imports))]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod api;
mod batch;
mod bounds;
mod budget;
mod buffers;
mod change_stamp;
mod cores;
mod counters;
mod delegate;
mod engine;
mod error;
#[cfg(feature = "files")]
mod file;
mod fixation;
pub mod host;
mod ids;
mod index;
mod indexes;
mod keys;
mod local;
mod noted;
mod objects;
mod ops;
mod options;
mod pairs;
pub mod prelude;
mod programs;
#[allow(unsafe_code)]
mod raw;
mod read_ahead;
mod reclaim;
mod resume_point;
mod scan;
mod store;
mod stored;
mod structures;
mod table;
pub mod terms;
mod threads;
mod versions;

#[cfg(feature = "serde")]
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
#[doc(inline)]
pub use api::typed;
#[cfg(feature = "matchspec")]
#[cfg_attr(docsrs, doc(cfg(feature = "matchspec")))]
#[doc(inline)]
pub use api::{BoundSpec, MatchSpec, Spec};
#[doc(inline)]
pub use api::{
    Builder, Commit, Event, Feed, FeedOptions, Index, Larder, Operations, Rows, Snapshot, Table,
    Transaction,
};
pub use bounds::advance_clock;
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
pub use error::FileError;
pub use error::{Error, IndexName, Reason};
#[cfg(feature = "matchspec")]
#[cfg_attr(docsrs, doc(cfg(feature = "matchspec")))]
pub use indexes::{Explanation, PlanKind};
pub use indexes::{IndexInfo, IndexOn};
#[cfg(feature = "mimalloc")]
#[cfg_attr(docsrs, doc(cfg(feature = "mimalloc")))]
pub use larder_index::Allocator;
pub use larder_index::Direction;
pub use ops::TimeLeft;
pub use options::{Access, Bounds, Concurrency, Evict, Limits, TableKind};
#[cfg(feature = "studies")]
#[cfg_attr(docsrs, doc(cfg(feature = "studies")))]
pub use structures::{structures, Structure, StructureValue};
pub use terms::{term, Atom, Term, TryFromTermError};
pub use versions::FeedRead;

/// The Rust of the pages, so that it compiles and runs.
#[cfg(all(doctest, feature = "matchspec", feature = "serde"))]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Project;
    #[doc = include_str!("../README.md")]
    struct Crate;
}

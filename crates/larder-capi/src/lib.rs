//! Larder for C: what `include/larder.h` declares.
//!
//! The header is made from these files (`make header`); a test compares the two. Everything here is
//! translation: views to terms, results to statuses. What a function does, `larder::api` does.
//!
//! # Rules
//!
//! * Every function that can fail gives a [`Status`]; [`larder_message`] says more.
//! * No panic leaves the library: it becomes [`Status::Panic`].
//! * A pointer that must not be null is checked and named in the message. What else a pointer has
//!   to be, C has to keep: each function says it under "Safety", which the header has too.
//! * `larder`, `larder_table`, `larder_prepared` may be used by many threads at once; everything
//!   else by one at a time.
//!
//! # How it is built
//!
//! | module | what it has |
//! |---|---|
//! | `world` | worlds of tables, tables made, found, loaded; the version |
//! | `options` | how a table is made |
//! | `status` | statuses, messages, the guard that each entry runs under |
//! | `build`, `terms` | sequences of terms: pushed by C, or filled with results |
//! | `view` | terms as C sees them, and what can be asked of them |
//! | `table` | operations by key |
//! | `pairs` | the same for rows of a key and a value, without terms |
//! | `maps` | maps in rows |
//! | `bounds` | rows that expire |
//! | `rows` | match specifications, ranges and scans |
//! | `prepared` | match specifications with parameters |
//! | `rank` | ranks |
//! | `index` | secondary indexes |
//! | `snapshot` | tables as of one moment |
//! | `feed` | what changes, as it changes |
//! | `operations` | operations that take effect together |
//! | `transaction` | reads and writes at one instant |
//!
//! The header has them in the order in which they stand below.

// Names are C's.
#![allow(non_camel_case_types)]

mod world;

mod options;

mod status;

mod terms;

mod view;

mod build;

mod table;

mod pairs;

mod maps;

mod bounds;

mod rows;

mod prepared;

mod rank;

mod index;

mod snapshot;

mod feed;

mod operations;

mod transaction;

pub use bounds::*;
pub use feed::*;
pub use index::*;
pub use maps::*;
pub use operations::*;
pub use options::{larder_evict, larder_options, larder_type};
pub use pairs::*;
pub use prepared::*;
pub use rank::*;
pub use rows::*;
pub use snapshot::*;
pub use status::{larder_message, larder_status_name, Status};
pub use table::*;
pub use terms::*;
pub use transaction::*;
pub use view::*;
pub use world::*;

/// Terms are freed by other threads than those that took their memory, which the C library's
/// allocator would seldom give back to the system.
#[global_allocator]
static HEAP: ::larder::Allocator = ::larder::Allocator;

//! Larder for C: what `include/larder.h` declares.
//!
//! `make header` makes the header from these files, and a test checks that it is up to date. This
//! crate only translates: views to terms, and results to statuses. `larder::api` implements the
//! operations.
//!
//! # Rules
//!
//! * Every function that can fail returns a [`Status`]. [`larder_message`] explains it.
//! * No panic leaves the library. It becomes [`Status::Panic`].
//! * A pointer that must not be null is checked, and the message names it. All other requirements
//!   on pointers are the caller's responsibility. Each function lists them under "Safety", which is
//!   also in the header. The SAFETY comments name them, as below.
//! * Until a call returns, nobody else may free an object that it uses, or change a text, an array
//!   or terms that it reads. This rule is part of the contract of every function, on which the
//!   SAFETY comments rely.
//! * Many threads may use a `larder`, a `larder_table` or a `larder_prepared` at once. Only one
//!   thread at a time may use any other object.
//!
//! # Contracts of pointers
//!
//! Most requirements are of a few kinds. Where a function's "Safety" states one, SAFETY comments
//! say "by the *handle* contract of `table`".
//!
//! | contract | the argument |
//! |---|---|
//! | *handle* | is null, or a handle or a world that was not freed |
//! | *exclusive handle* | is null, or was not freed, and nobody else uses it |
//! | *sequence* | is null, or a sequence of terms that nobody changes meanwhile |
//! | *exclusive sequence* | is null, or a sequence of terms that nobody else uses |
//! | *view* | is a view whose terms are unchanged since it was made |
//! | *key* | is a `larder_key`, and what it refers to is unchanged since it was made |
//! | *text* | is null, or ends with a NUL |
//! | *out* | is null, or may be written to |
//!
//! # How it is built
//!
//! | module | what it has |
//! |---|---|
//! | `world` | worlds of tables; making, finding and loading tables; the version |
//! | `options` | options of tables |
//! | `status` | statuses, messages, the guard under which each entry runs |
//! | `build`, `terms` | sequences of terms: pushed by C, or filled with results |
//! | `view` | views of terms, and reading them |
//! | `table` | operations by key |
//! | `pairs` | the same for rows of a key and a value, without building terms |
//! | `maps` | maps in rows |
//! | `bounds` | rows that expire |
//! | `rows` | match specifications, ranges and scans |
//! | `prepared` | match specifications with parameters |
//! | `rank` | ranks |
//! | `index` | secondary indexes |
//! | `snapshot` | tables as of one instant |
//! | `feed` | the changes of a table as they happen |
//! | `operations` | lists of operations that take effect at one instant |
//! | `transaction` | transactions: reads and writes at one instant |
//!
//! The header has the modules in the order of their declarations below.

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

/// Terms are freed by other threads than those that allocated them. The allocator of the C library
/// would seldom give such memory back to the system.
#[global_allocator]
static HEAP: ::larder::Allocator = ::larder::Allocator;

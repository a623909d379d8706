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
//! * `larder`, `larder_table`, `larder_prepared` may be used by many threads at once;
//!   `larder_terms`, `larder_rows` by one at a time.
//!
//! # How it is built
//!
//! | module | what it has |
//! |---|---|
//! | `status` | statuses, messages, the guard that each entry runs under |
//! | `view` | terms as C sees them, and what can be asked of them |
//! | `build`, `terms` | sequences of terms: pushed by C, or filled with results |
//! | `world` | worlds of tables, tables made, found, loaded |
//! | `table` | operations by key |
//! | `maps` | maps in rows |
//! | `rank` | ranks |
//! | `snapshot` | tables as of one moment |
//! | `rows` | match specifications and scans |
//! | `prepared` | the same with parameters |

// Names are C's.
#![allow(non_camel_case_types)]

mod build;
mod maps;
mod prepared;
mod rank;
mod rows;
mod snapshot;
mod status;
mod table;
mod terms;
mod view;
mod world;

pub use maps::*;
pub use prepared::*;
pub use rank::*;
pub use rows::*;
pub use snapshot::*;
pub use status::{larder_message, larder_status_name, Status};
pub use table::*;
pub use terms::*;
pub use view::*;
pub use world::*;

/// Terms are freed by other threads than those that took their memory, which the C library's
/// allocator would seldom give back to the system.
#[global_allocator]
static HEAP: ::larder::Allocator = ::larder::Allocator;

//! What the program `larder-bench` is made of. It is a library so that its parts can be tested;
//! nobody else should build on it.
//!
//! ```text
//!  command     the command line
//!  maps        Larder's structures beside maps of other crates (make bench-rust)
//!   ├ engine     one thread: insert, lookup (independent, dependent), scan, remove, bytes an entry
//!   ├ growth     the pauses of a structure that grows
//!   ├ threads    throughput of several threads on one structure
//!   ├ skew       keys that are not random
//!   └ peers      the structures, behind one trait
//!  caches      tables that evict, as caches, beside the caches of other crates (make bench-caches)
//!  study       the published studies, run again (make bench-studies)
//!  stores      stores from elsewhere: C++, servers, the JVM (make bench-peers)
//!  report      what was found, as a page, as plots and as tables of Markdown pages
//!
//!  workload    keys, orders, mixes, the loop over operations of a mix: the same for everybody
//!  time        clocks, nanoseconds of an operation, threads, memory, bars
//!  result      what a study leaves behind: types, JSON, CSV
//!  table       what the maps leave behind: a table on the terminal, CSV, the facts of the machine
//!  stats       medians, quantiles, the runs of each figure
//! ```
//!
//! Every measurement checks its answers. Dependencies that nothing else in the workspace needs are
//! enabled by features: `peers` for maps of other crates, `judy` for libJudy, `cpp` for libraries
//! in C and C++.

#![deny(unsafe_code)]
// The library is for the program and its tests. Names that say everything need no comment.
#![allow(missing_docs)]

mod caches;
mod command;
mod maps;
pub mod report;
pub mod result;
mod stats;
pub mod stores;
mod study;
mod table;
mod time;
mod workload;

pub use command::main;
pub use time::counting::Counting;

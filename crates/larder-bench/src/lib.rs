//! The parts of the program `larder-bench`. They are a library so that they can be tested; no other
//! crate should depend on it.
//!
//! ```text
//!  command     the command line
//!  maps        Larder's structures beside maps of other crates (make bench-rust)
//!   ├ engine     one thread: insert, lookup (independent, dependent), scan, remove, bytes an entry
//!   ├ growth     the pauses of a map that grows
//!   ├ threads    throughput of several threads on one map
//!   ├ skew       keys that are not random
//!   ├ typed      tables of Rust's types
//!   └ peers      the maps, behind one trait
//!  caches      tables that evict, beside the caches of other crates (make bench-caches)
//!  study       the published studies, run again (make bench-studies)
//!  stores      stores from elsewhere: C++, servers, the JVM (make bench-peers)
//!  report      the results as a page, as plots and as tables of Markdown pages
//!
//!  workload    keys, orders, mixes, the loop over operations of a mix
//!  time        clocks, threads, memory, progress bars
//!  result      the results of a study: types, JSON, CSV
//!  table       tables of figures, of which benches and pages are made; CSVs; facts of the machine
//!  stats       medians, quantiles
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

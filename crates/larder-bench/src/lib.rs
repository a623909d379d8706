//! What the program `larder-bench` is made of. It is a library so that its parts can be tested and
//! shared; nobody else should build on it.
//!
//! ```text
//!  engine         one thread: insert, lookups (independent and dependent), scan, remove, bytes an entry
//!  growth         the pauses of a structure that grows
//!  threads        throughput of several threads on one structure
//!  skew           keys that are not random
//!  study          the published studies, run again
//!  result         what a study leaves behind: types, JSON, CSV (of the crate larder-report)
//!  drawn          all of that as a page and as plots
//!  workloads      keys, orders, mixes: the same for everybody
//!  peers          the structures, each in its own file, behind one trait
//!  report         tables on the terminal, CSV, the facts of the machine
//!  counting       an allocator that counts
//! ```
//!
//! Every measurement checks its answers. The features `peers` and `judy` add the structures that
//! need other crates and libJudy.

#![deny(unsafe_code)]

pub mod counting;
pub mod drawn;
pub mod engine;
pub mod growth;
pub mod peers;
pub mod report;
pub mod resident;
pub mod skew;
pub mod study;
pub mod threads;
pub mod workloads;

pub use larder_report::result;

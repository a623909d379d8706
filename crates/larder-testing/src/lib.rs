//! What the suites of several crates share; for tests and measurements alone.
//!
//! ```text
//!   keys           adversarial keys and hashes, whole scans
//!   random         random numbers
//!   oracle         the obviously right index of each kind
//!   unique_ops     random operations on an index with one value under a key, against the oracle
//!   multi_ops      ... on an index with many
//!   ranks          questions about ranks, beside a sorted set
//!   traces         the keys that programs request from a cache; `larder-bench` uses them, too
//!   threads        threads that use one index at once, and invariants checked meanwhile
//!   appends        inserts at the end of a table, beside all else
//!   unchanged      batches that an index says are still valid
//!   history        operations that threads record, and whether they are linearizable
//!   registers      ... on an index with one value under a key
//!   value_lists    ... on one with many
//!   tables         ... on a table, with operations on several keys at once
//!   serializability
//!                  whether recorded transactions are serialisable
//!   model_checker  executions that a model checker chooses (builds with `--cfg larder_model`)
//!   bounded        its exhaustive search
//! ```
//!
//! A crate's own tests say what all this is run over: the index its orders and sizes of leaves,
//! `larder-studies` each structure with its options, the engine each type of table.

pub mod appends;
pub mod environment;
pub mod history;
mod keys;
pub mod multi_ops;
mod oracle;
pub mod random;
pub mod ranks;
pub mod registers;
pub mod serializability;
pub mod tables;
pub mod threads;
pub mod traces;
pub mod unchanged;
pub mod unique_ops;
pub mod value_lists;

#[cfg(larder_model)]
mod bounded;
#[cfg(larder_model)]
pub mod model_checker;

pub use keys::*;
pub use oracle::{OracleMulti, OracleUnique};

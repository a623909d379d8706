//! Structures that keep objects, as bytes, under keys, as bytes.
//!
//! Two traits say what an index does: [`Unique`] (one value under a key) and [`Multi`] (many, in order of arrival).
//! [`unique`] and [`multi`] make the defaults; [`oracle`] has the obviously right ones that they are tested against.

mod counters;
mod hash_order;
mod key_order;
mod multi;
pub mod oracle;
mod raw;
mod route;
mod run;
mod traits;
mod tree;

pub use crossbeam_epoch::{pin, Guard};
pub use hash_order::HashOrder;
pub use key_order::KeyOrder;
pub use multi::Bag;
pub use oracle::{OracleMulti, OracleUnique};
pub use route::LeafConfig;
pub use traits::*;

/// The order of a [`Unique`] index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniqueKind {
    /// By hash, then by key.
    Hash,
    /// By the bytes of the key.
    Ordered,
}

/// An empty index with at most one value under a key.
pub fn unique(kind: UniqueKind) -> Box<dyn Unique> {
    unique_with(kind, LeafConfig::default())
}

/// As [`unique`], with leaves of other sizes. For tests and measurements.
pub fn unique_with(kind: UniqueKind, config: LeafConfig) -> Box<dyn Unique> {
    match kind {
        UniqueKind::Hash => Box::new(HashOrder::new(config)),
        UniqueKind::Ordered => Box::new(KeyOrder::new(config)),
    }
}

/// An empty index with any number of values under a key.
pub fn multi() -> Box<dyn Multi> {
    multi_with(LeafConfig::default())
}

/// As [`multi`], with leaves of other sizes. For tests and measurements.
pub fn multi_with(config: LeafConfig) -> Box<dyn Multi> {
    Box::new(Bag::new(config))
}

//! Structures that keep objects, as bytes, under keys, as bytes.
//!
//! Two traits say what an index does: [`Unique`] (one value under a key) and [`Multi`] (many, in order of arrival).
//! [`unique`] and [`multi`] make the defaults; [`oracle`] has the obviously right ones that they are tested against.

pub mod oracle;
mod traits;

pub use crossbeam_epoch::{pin, Guard};
pub use oracle::{OracleMulti, OracleUnique};
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
    Box::new(OracleUnique::new(kind == UniqueKind::Ordered))
}

/// An empty index with any number of values under a key.
pub fn multi() -> Box<dyn Multi> {
    Box::new(OracleMulti::new())
}

//! What most programs begin with: `use larder::prelude::*;`.
//!
//! | name | what |
//! |---|---|
//! | [`Larder`], [`Table`], [`Snapshot`] | tables of terms |
//! | [`Term`], [`term!`], [`Atom`], [`Error`] | terms; why an operation was refused |
//! | `Typed`, `TypedHash`, `OrderedKey` | tables of Rust's types, with the feature `serde` |

pub use crate::api::{Builder, Larder, Snapshot, Table};
pub use crate::terms::{term, Atom, Term};
#[cfg(feature = "serde")]
pub use crate::typed::{OrderedKey, Typed, TypedHash};
pub use crate::Error;

//! Match specifications, with the feature `matchspec`.

mod index;
mod select;
mod spec;

pub use spec::{BoundSpec, MatchSpec, Spec};

//! Judy arrays: sparse, sorted arrays of words and of byte strings.
#![deny(unsafe_code)]

mod chunks;
mod judy1;
mod judyesl;
mod judyl;
mod judysl;
mod layout;
mod ops;
#[allow(unsafe_code)]
mod raw;
mod stats;
#[cfg(test)]
mod tests;
mod tree;

pub use judy1::Judy1;
pub use judyesl::JudyESL;
pub use judyl::JudyL;
pub use judysl::{JudySL, ZeroByte};
pub use stats::{Stats, TextStats};

//! Judy arrays: sparse, sorted arrays of words and of byte strings.
#![deny(unsafe_code)]

mod judy1;
mod judyl;
mod layout;
mod ops;
#[allow(unsafe_code)]
mod raw;
mod stats;
#[cfg(test)]
mod tests;
mod tree;

pub use judy1::Judy1;
pub use judyl::JudyL;
pub use stats::Stats;

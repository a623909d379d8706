//! Contention statistics of leaves, as in contention-adapting trees (Sagonas and Winblad 2015).
//!
//! Each leaf has a counter, which its writers change under its lock. A leaf at which writers meet
//! often splits early, so that they pass each other.

/// What a writer that had to wait for the lock adds to the counter.
pub(crate) const CONTENDED: i32 = 250;
/// What a writer that had not to wait adds.
pub(crate) const UNCONTENDED: i32 = -1;
/// The counter at which a leaf splits early.
pub(crate) const HIGH_CONTENTION: i32 = 1000;
/// The counter stays between this and its negative.
pub(crate) const CONTENTION_BOUND: i32 = 20_000;

//! Contention statistics of leaves, as in contention-adapting trees (Sagonas and Winblad 2015).
//!
//! Each leaf has a counter, which writers change under its lock. A leaf for which writers often
//! wait splits early, so that they use different leaves. The counter rises if more than about one
//! write in 250 waits. A leaf whose counter is zero splits after five waits in a row, and one whose
//! counter is at the minimum after 85.

/// Added to the counter by a writer that had to wait for the lock.
pub(crate) const CONTENDED: i32 = 250;
/// Added by a writer that didn't have to wait.
pub(crate) const UNCONTENDED: i32 = -1;
/// The counter above which a leaf splits early.
pub(crate) const HIGH_CONTENTION: i32 = 1000;
/// The maximum of the counter. Its negative is the minimum.
pub(crate) const CONTENTION_BOUND: i32 = 20_000;

//! Configuration and counters that all parts of an index share.

use crate::config::LeafConfig;
use crate::counters::Counters;
use crate::expected::ExpectedKeys;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The number of an index, unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexNumber(pub(crate) u64);

/// The number of the next index. No index has the number 0.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Default for IndexNumber {
    fn default() -> Self {
        // Ordering: Relaxed; only that each number is given once matters.
        IndexNumber(NEXT.fetch_add(1, Relaxed))
    }
}

/// Configuration and counters.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) config: LeafConfig,
    pub(crate) counters: Counters,
    pub(crate) number: IndexNumber,
    pub(crate) expected: ExpectedKeys,
    /// Whether users hold other locks than a leaf's while they write, so that flushes are postponed
    /// (`outside::retire`).
    pub(crate) callers_hold_locks: bool,
    /// Whether any thread has ever postponed a flush.
    pub(crate) has_postponed: AtomicBool,
}

/// The maximum number of leaves of a small index.
const SMALL_INDEX: usize = 8;

impl Shared {
    /// About how many bytes the entries of a leaf will soon need that need this number now. A small
    /// index is expected to double, so that its entries are moved seldom.
    pub(crate) fn soon(&self, need: usize) -> usize {
        let is_small = self.counters.leaves() <= SMALL_INDEX;
        let doubled = if is_small { 2 * need } else { need };
        self.expected.grown(need).max(doubled)
    }
}

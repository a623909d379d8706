//! Configuration and counters that all parts of an index share.

use crate::config::LeafConfig;
use crate::counters::Counters;
use std::sync::atomic::AtomicBool;

/// Configuration and counters.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) config: LeafConfig,
    pub(crate) counters: Counters,
    /// Whether users hold other locks than a leaf's while they write, so that flushes are postponed
    /// (`outside::retire`).
    pub(crate) holds_more: bool,
    /// Whether a flush is postponed.
    pub(crate) large_waits: AtomicBool,
}

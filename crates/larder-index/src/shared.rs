//! What all parts of an index share.

use crate::config::LeafConfig;
use crate::counters::Counters;
use std::sync::atomic::AtomicBool;

/// What all parts of an index share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) config: LeafConfig,
    pub(crate) counters: Counters,
    /// The index is changed under more locks than a leaf's.
    pub(crate) holds_more: bool,
    /// Something large was retired meanwhile.
    pub(crate) large_waits: AtomicBool,
}

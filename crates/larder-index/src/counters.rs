//! What an index counts of itself. Its entries are not among that: each write would count, and all
//! threads would meet there; leaves know how many they have.
//!
//! Invariants:
//! 1. What is counted is rare: leaves and nodes that come and go, outside objects. Only bytes are
//!    counted by many threads often, so only they are striped.
//! 2. A figure is exact when no thread changes the index. Meanwhile it may lag, and the figures of
//!    one `stats` may be of different instants.
//! 3. Whoever makes a leaf or a node counts it before it is published; whoever retires it counts it
//!    once.

use crate::striped::Striped;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::Stats;

// Ordering, for all of this file: Relaxed. A counter orders nothing else.

/// What an index counts.
#[derive(Default, Debug)]
pub(crate) struct Counters {
    bytes: Striped,
    leaves: AtomicUsize,
    nodes: AtomicUsize,
    splits: AtomicU64,
    merges: AtomicU64,
    contended: AtomicU64,
}

impl Counters {
    /// Adds to the bytes of memory.
    pub(crate) fn add_bytes(&self, n: isize) {
        self.bytes.add(n);
    }

    /// A leaf of this size came.
    pub(crate) fn leaf_came(&self, bytes: usize) {
        // Ordering: Relaxed, see above.
        self.leaves.fetch_add(1, Relaxed);
        self.add_bytes(bytes as isize);
    }

    /// Leaves in use.
    pub(crate) fn leaves(&self) -> usize {
        // Ordering: Relaxed, see above.
        self.leaves.load(Relaxed)
    }

    /// A leaf of this size went.
    pub(crate) fn leaf_went(&self, bytes: usize) {
        // Ordering: Relaxed, see above.
        self.leaves.fetch_sub(1, Relaxed);
        self.add_bytes(-(bytes as isize));
    }

    /// An inner node of this size came.
    pub(crate) fn node_came(&self, bytes: usize) {
        // Ordering: Relaxed, see above.
        self.nodes.fetch_add(1, Relaxed);
        self.add_bytes(bytes as isize);
    }

    /// An inner node of this size went.
    pub(crate) fn node_went(&self, bytes: usize) {
        // Ordering: Relaxed, see above.
        self.nodes.fetch_sub(1, Relaxed);
        self.add_bytes(-(bytes as isize));
    }

    /// A leaf split.
    pub(crate) fn split(&self) {
        // Ordering: Relaxed, see above.
        self.splits.fetch_add(1, Relaxed);
    }

    /// Two leaves merged.
    pub(crate) fn merged(&self) {
        // Ordering: Relaxed, see above.
        self.merges.fetch_add(1, Relaxed);
    }

    /// A writer met another on a leaf.
    pub(crate) fn contended(&self) {
        // Ordering: Relaxed, see above.
        self.contended.fetch_add(1, Relaxed);
        // Writers that meet on a leaf meet on the sum of bytes next.
        self.bytes.stripe();
    }

    /// Bytes of leaves, nodes, outside objects and stripes.
    pub(crate) fn bytes(&self) -> usize {
        // The stripes are read one after another, so a sum read while threads add may have what
        // went and miss what came.
        self.bytes.sum().max(0) as usize + self.bytes.memory()
    }

    /// All but the depth.
    pub(crate) fn stats(&self, depth: usize) -> Stats {
        Stats {
            // Ordering: Relaxed, see above.
            leaves: self.leaves.load(Relaxed),
            // Ordering: Relaxed, see above.
            inner_nodes: self.nodes.load(Relaxed),
            depth,
            // Ordering: Relaxed, see above.
            splits: self.splits.load(Relaxed),
            // Ordering: Relaxed, see above.
            merges: self.merges.load(Relaxed),
            // Ordering: Relaxed, see above.
            contended: self.contended.load(Relaxed),
            more: Vec::new(),
        }
    }
}

//! The counters of an index: leaves, nodes, splits, merges, and memory. Entries aren't counted
//! here. Each write would have to update that counter, so all writers would contend for its cache
//! line. Instead each leaf counts its own entries.
//!
//! Invariants:
//! * **I12** Counted events are rare: leaves and nodes are made or retired. Only the memory is
//!   updated by many threads often, because of outside objects. So only that counter is striped.
//! * **I13** A counter is exact while no thread changes the index. Otherwise it may lag, and the
//!   results of one `stats` may be of different instants.
//! * **I14** The thread that makes a leaf or a node counts it before it publishes it. The thread
//!   that retires it counts that once.

use crate::striped::Striped;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::Stats;

// Ordering, for all of this file: Relaxed. No other memory depends on a counter.

/// The counters.
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

    /// Counts a new leaf of this size.
    pub(crate) fn add_leaf(&self, bytes: usize) {
        // Ordering: Relaxed, see above.
        self.leaves.fetch_add(1, Relaxed);
        self.add_bytes(bytes as isize);
    }

    /// The number of leaves.
    pub(crate) fn leaves(&self) -> usize {
        // Ordering: Relaxed, see above.
        self.leaves.load(Relaxed)
    }

    /// Counts a retired leaf of this size.
    pub(crate) fn remove_leaf(&self, bytes: usize) {
        // Ordering: Relaxed, see above.
        self.leaves.fetch_sub(1, Relaxed);
        self.add_bytes(-(bytes as isize));
    }

    /// Counts a new inner node of this size.
    pub(crate) fn add_node(&self, bytes: usize) {
        // Ordering: Relaxed, see above.
        self.nodes.fetch_add(1, Relaxed);
        self.add_bytes(bytes as isize);
    }

    /// Counts a retired inner node of this size.
    pub(crate) fn remove_node(&self, bytes: usize) {
        // Ordering: Relaxed, see above.
        self.nodes.fetch_sub(1, Relaxed);
        self.add_bytes(-(bytes as isize));
    }

    /// Counts a split.
    pub(crate) fn split(&self) {
        // Ordering: Relaxed, see above.
        self.splits.fetch_add(1, Relaxed);
    }

    /// Counts a merge.
    pub(crate) fn merged(&self) {
        // Ordering: Relaxed, see above.
        self.merges.fetch_add(1, Relaxed);
    }

    /// Counts a writer that had to wait for the lock of a leaf.
    pub(crate) fn contended(&self) {
        // Ordering: Relaxed, see above.
        self.contended.fetch_add(1, Relaxed);
        // Writers that contend for a leaf would contend for the counter of memory, too.
        self.bytes.stripe();
    }

    /// The memory of leaves, nodes, outside objects and stripes in bytes.
    pub(crate) fn bytes(&self) -> usize {
        // The stripes are read one after the other, and the bytes of a replacement are counted
        // after the leaf is unlocked. So the sum may include a release without the allocation
        // before it, and be negative.
        self.bytes.sum().max(0) as usize + self.bytes.memory()
    }

    /// The statistics of an index of this depth.
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

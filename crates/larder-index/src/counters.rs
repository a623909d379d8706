//! What an index counts of itself. Its entries are not among that: each write would count, and all
//! threads would meet there; leaves know how many they have.
//!
//! An index begins with one number of bytes. When a writer meets another, on a leaf or at that
//! number, the index gets one for each of some groups of threads. The sum is exact when nobody
//! writes.

use crate::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::Stats;
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::OnceLock;

const STRIPES: usize = 16;

// Ordering, for all of this file: Relaxed. A counter orders nothing else.

/// What an index counts.
#[derive(Default, Debug)]
pub(crate) struct Counters {
    bytes: AtomicIsize,
    /// More bytes, of each group of threads.
    stripes: OnceLock<Box<[CachePadded<AtomicIsize>]>>,
    leaves: AtomicUsize,
    nodes: AtomicUsize,
    splits: AtomicU64,
    merges: AtomicU64,
    contended: AtomicU64,
}

/// The calling thread's stripe.
fn mine() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            // Ordering: Relaxed, see above.
            mine.set(NEXT.fetch_add(1, Relaxed) % STRIPES);
        }
        mine.get()
    })
}

impl Counters {
    /// Adds to the bytes of memory.
    pub(crate) fn add_bytes(&self, n: isize) {
        if let Some(stripes) = self.stripes.get() {
            // Ordering: Relaxed, see above.
            stripes[mine()].fetch_add(n, Relaxed);
            return;
        }
        // Ordering: Relaxed, see above.
        let now = self.bytes.load(Relaxed);
        // Ordering: Relaxed, see above.
        let alone = self.bytes.compare_exchange(now, now + n, Relaxed, Relaxed);
        if alone.is_err() {
            // Ordering: Relaxed, see above.
            self.bytes.fetch_add(n, Relaxed);
            self.stripe();
        }
    }

    /// From now on bytes are counted by groups of threads.
    #[cold]
    fn stripe(&self) {
        self.stripes
            .get_or_init(|| (0..STRIPES).map(|_| CachePadded::default()).collect());
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
        self.stripe();
    }

    /// Bytes of leaves, nodes, outside objects and stripes.
    pub(crate) fn bytes(&self) -> usize {
        let stripes = self.stripes.get().map_or(&[][..], |stripes| stripes);
        // Ordering: Relaxed, see above.
        let striped: isize = stripes.iter().map(|s| s.load(Relaxed)).sum();
        // Ordering: Relaxed, see above.
        let sum = self.bytes.load(Relaxed) + striped;
        sum.max(0) as usize + size_of_val(stripes)
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

//! Counters of an index that threads change without meeting.
//!
//! An index begins with one pair of counters. When a writer first meets another on a leaf, the index gets a stripe for each of some
//! groups of threads. A sum over the stripes is exact when nobody writes.

use crate::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::Stats;
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::OnceLock;

const STRIPES: usize = 16;

// Ordering, for all of this file: Relaxed. A counter orders nothing else.

#[derive(Default, Debug)]
struct Stripe {
    len: AtomicIsize,
    bytes: AtomicIsize,
}

/// What an index counts.
#[derive(Default, Debug)]
pub(crate) struct Counters {
    first: Stripe,
    stripes: OnceLock<Box<[CachePadded<Stripe>]>>,
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
    #[inline]
    fn stripe(&self) -> &Stripe {
        match self.stripes.get() {
            Some(stripes) => &stripes[mine()],
            None => &self.first,
        }
    }

    /// Adds to the number of entries.
    #[inline]
    pub(crate) fn add_len(&self, n: isize) {
        // Ordering: Relaxed, see above.
        self.stripe().len.fetch_add(n, Relaxed);
    }

    /// Adds to the bytes of memory.
    pub(crate) fn add_bytes(&self, n: isize) {
        // Ordering: Relaxed, see above.
        self.stripe().bytes.fetch_add(n, Relaxed);
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

    /// A writer met another: from now on the counters are striped.
    pub(crate) fn met(&self) {
        // Ordering: Relaxed, see above.
        self.contended.fetch_add(1, Relaxed);
        self.stripes
            .get_or_init(|| (0..STRIPES).map(|_| CachePadded::default()).collect());
    }

    fn sum(&self, which: impl Fn(&Stripe) -> &AtomicIsize) -> usize {
        let striped = self.stripes.get().map_or(&[][..], |s| s);
        // Ordering: Relaxed, see above.
        let rest: isize = striped.iter().map(|s| which(s).load(Relaxed)).sum();
        // Ordering: Relaxed, see above.
        (which(&self.first).load(Relaxed) + rest).max(0) as usize
    }

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.sum(|s| &s.len)
    }

    /// Bytes of leaves, nodes, outside objects and stripes.
    pub(crate) fn bytes(&self) -> usize {
        let stripes = self.stripes.get().map_or(0, |s| size_of_val(&**s));
        self.sum(|s| &s.bytes) + stripes
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

//! The number of entries under each child of an inner node. A tree has these counts from the first
//! rank query on. Writers only mark them as stale.
//!
//! ```text
//!  root       counts  5120 | ····          stale  0 1        a bit a child
//!  node       counts   150 | 148 | ····    stale  0 0 1
//!  leaf       count 151, counted           count 97, not counted
//! ```
//!
//! A query sums the counts of whole children beside its path (`ranks`). It first *refreshes* those
//! that are stale. A writer doesn't add anything:
//!
//! 1. A leaf is marked as *counted* if the node above it has its count.
//! 2. The first change of the number of entries of a counted leaf clears that flag. It sets the
//!    stale bit of each child on the path to the leaf, from the node above it up to the root. Later
//!    changes find the leaf not counted, and have nothing to do.
//! 3. A change of structure copies counts and bits to the nodes that it makes. New children are
//!    stale, and so is the path to them.
//!
//! Invariants (docs/design.md §4.4):
//! * C1: The count and the bit of a leaf change under the leaf's lock, or before their node is
//!   published. If the bit is clear, the count is right, and the leaf is counted.
//! * C2: While no thread is ascending from a leaf to the root, the whole path from the root to a
//!   stale child is stale. Before that, the change isn't over.
//! * C3: One thread at a time refreshes counts, under `changing`. It clears the bit of an inner
//!   node *before* it reads the node's own bits.
//! * C5: All nodes above a counted leaf have counts.
//!
//! Source: counts in inner nodes are those of order-statistic trees (Cormen and others, chapter
//! 14). Deviation: all writers would contend for the root's counts, so they only mark them as
//! stale. The first query after a change pays for it, once.

use super::FANOUT;
use crate::btree::leaf::LockedTreeLeaf;
use crate::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering::*};
use std::ops::Range;

/// The counts of a node's children.
pub(super) struct ChildCounts {
    /// A bit for each child, which is set if its count may be wrong.
    stale: AtomicU64,
    counts: [AtomicU64; FANOUT],
}

impl ChildCounts {
    /// The counts of children, as far as they are known.
    pub(super) fn new(known: impl Fn(usize) -> Option<u64>) -> Box<ChildCounts> {
        // An unknown count is stale, and is computed by the first query that needs it.
        let mut stale = 0;
        let counts = std::array::from_fn(|i| {
            let count = known(i);
            stale |= u64::from(count.is_none()) << i;
            AtomicU64::new(count.unwrap_or(0))
        });
        Box::new(ChildCounts {
            stale: AtomicU64::new(stale),
            counts,
        })
    }

    /// The stale bits of the children.
    #[inline]
    pub(super) fn stale(&self) -> u64 {
        // Ordering: SeqCst, pairs with `set_stale`: see `stale`.
        self.stale.load(SeqCst)
    }

    /// The count of a child, whether it is stale or not.
    #[inline]
    pub(super) fn count(&self, i: usize) -> u64 {
        // Ordering: Relaxed. A reader without `changing` validates `Counting::refreshes`.
        self.counts[i].load(Relaxed)
    }

    /// The count of a child that isn't stale.
    pub(super) fn known(&self, i: usize) -> Option<u64> {
        (self.stale() & 1 << i == 0).then(|| self.count(i))
    }

    /// The sum of some counts, none of which is stale.
    #[inline]
    pub(super) fn sum(&self, range: Range<usize>) -> Option<u64> {
        (self.stale() & bits(&range) == 0).then(|| range.map(|i| self.count(i)).sum())
    }

    /// Marks a child as stale.
    pub(super) fn set_stale(&self, i: usize) {
        // Ordering: SeqCst, both: see `stale`. A bit that is set isn't set again, so that writers
        // only read the cache lines of the upper nodes.
        if self.stale.load(SeqCst) & 1 << i == 0 {
            self.stale.fetch_or(1 << i, SeqCst);
        }
    }

    /// Called by the holder of `changing` before it refreshes a child that is an inner node, and
    /// reads the node's own bits.
    pub(super) fn begin(&self, i: usize) {
        // Ordering: SeqCst, as in `set_stale`.
        self.stale.fetch_and(!(1 << i), SeqCst);
    }

    /// Stores the result of the refresh of an inner node. `None`: the refresh was stopped, and the
    /// node is stale.
    pub(super) fn end(&self, i: usize, count: Option<u64>) {
        match count {
            // Ordering: Relaxed, see `count`.
            Some(count) => self.counts[i].store(count, Relaxed),
            None => self.set_stale(i),
        }
    }

    /// Stores the count of a leaf, whose lock is held.
    pub(super) fn set_leaf(&self, i: usize, leaf: &LockedTreeLeaf<'_>) -> u64 {
        let count = leaf.len() as u64;
        leaf.set_counted(true);
        // Ordering: Relaxed, see `count`.
        self.counts[i].store(count, Relaxed);
        self.begin(i);
        count
    }
}

/// The bits of some children.
fn bits(range: &Range<usize>) -> u64 {
    let below = |i: usize| 1u64.checked_shl(i as u32).map_or(u64::MAX, |bit| bit - 1);
    below(range.end) & !below(range.start)
}

/// The state of the counts of a tree.
#[derive(Default)]
pub(super) struct Counting {
    /// Set from the first query on. Written under `changing`.
    on: AtomicBool,
    /// The sequence number of replacements of nodes: odd while nodes are being replaced.
    structure_seq: AtomicU64,
    /// Odd while counts are being refreshed.
    refreshes: AtomicU64,
}

impl Counting {
    /// Whether there are counts. Called under `changing`.
    pub(super) fn is_on(&self) -> bool {
        // Ordering: Relaxed, only changed under `changing`.
        self.on.load(Relaxed)
    }

    /// How often replacements of nodes have begun or ended. Even if none is in progress.
    pub(super) fn structure_seq(&self) -> u64 {
        // Ordering: SeqCst, pairs with `bump_structure_seq`.
        self.structure_seq.load(SeqCst)
    }

    /// Called by the holder of `changing` before and after it replaces nodes.
    pub(super) fn bump_structure_seq(&self) {
        if self.is_on() {
            // Ordering: SeqCst, pairs with the loads of `structure_seq`, see `stale`. If a bit was
            // set too late to be copied to the new node, the number has changed since it was set.
            self.structure_seq.fetch_add(1, SeqCst);
        }
    }

    /// The number of refreshes, if none is in progress.
    #[inline]
    pub(super) fn begin_read(&self) -> Option<u64> {
        // Ordering: Acquire, pairs with `end_refresh`.
        Some(self.refreshes.load(Acquire)).filter(|n| n.is_multiple_of(2))
    }

    /// Whether no refresh has begun since `begin_read` returned this number.
    #[inline]
    pub(super) fn end_read(&self, begun: u64) -> bool {
        // Ordering: Acquire fence, pairs with the Release fence of `begin_refresh`: who has seen a
        // count of a refresh sees that there is one.
        fence(Acquire);
        // Ordering: Relaxed, the fence keeps it after the reads.
        self.refreshes.load(Relaxed) == begun
    }

    /// Called by the holder of `changing` before it refreshes counts.
    pub(super) fn begin_refresh(&self) {
        // Ordering: Relaxed, both: only the holder of `changing` writes; `refreshes` is kept before
        // the counts by the fence.
        self.on.store(true, Relaxed);
        self.refreshes
            .store(self.refreshes.load(Relaxed) + 1, Relaxed);
        // Ordering: Release fence, pairs with `end_read`.
        fence(Release);
    }

    /// Called when the refresh is over.
    pub(super) fn end_refresh(&self) {
        // Ordering: Release, pairs with `begin_read`. Relaxed, as only this thread writes it.
        self.refreshes
            .store(self.refreshes.load(Relaxed) + 1, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_ranges() {
        assert_eq!(bits(&(0..0)), 0);
        assert_eq!(bits(&(0..64)), u64::MAX);
        assert_eq!(bits(&(63..64)), 1 << 63);
        assert_eq!(bits(&(2..5)), 0b11100);
    }

    #[test]
    fn what_is_stale_is_not_known() {
        let counts = ChildCounts::new(|i| (i != 3).then_some(i as u64));
        assert_eq!(counts.sum(0..3), Some(3));
        assert_eq!(counts.sum(0..4), None);
        assert_eq!(counts.known(3), None);
        counts.begin(3);
        counts.end(3, Some(7));
        assert_eq!(counts.sum(1..4), Some(10));
        counts.set_stale(1);
        assert_eq!((counts.known(1), counts.sum(2..4)), (None, Some(9)));
    }
}

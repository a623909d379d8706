//! Rank queries: the number of entries between two positions, and the n-th entry.
//!
//! ```text
//!  count between l and h
//!
//!              [    |  ##  |  ##  |    ]          ##  whole children: their counts are summed
//!              /                     \
//!     [    |  ##  ]              [ ##  |    ]
//!        \                               \
//!     leaf, from l on                 leaf, up to h
//! ```
//!
//! 1. Descend from the root to the leaves at both ends, and sum the counts of the whole children
//!    between them. This needs no lock, if none of them is stale and no thread refreshes counts
//!    meanwhile.
//! 2. Otherwise take `changing`, refresh what is stale on the path, and sum. After [`SLICE`] leaves
//!    release the lock and start again: fewer are stale then.
//! 3. Release `changing`. Search the leaves at the ends, each like a read. If one is obsolete,
//!    start again.
//!
//! Invariants (docs/design.md §4.4):
//! * B5: A thread that holds `changing` never waits for a leaf. If a writer has the leaf, the
//!   thread releases `changing`, for which the writer may wait, and starts again.
//! * C2: A count that isn't stale includes all changes that were over when it was read.
//! * **C6** Each sum is over ranges of positions that don't overlap. So an entry that is there
//!   throughout counts once, and one that is never there doesn't count.
//!
//! Cost, for n entries: O(log n), and O(1) for each leaf that has changed since the last query.

use super::BPlusTree;
use crate::btree::counts::ChildCounts;
use crate::btree::inner::InnerLevels;
use crate::btree::leaf::TreeLeaf;
use crate::btree::node::InnerNode;
use crate::btree::search_key::SearchKey;
use crate::btree::slot::{ChildSlot, TreeChild};
use crate::shared::Shared;
use crate::sync::{planted, Backoff, Fault};
use crate::{Batch, Counted, Direction, Ranked};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::Range;

/// The number of leaves that are counted before `changing` is released: a few microseconds.
const SLICE: usize = 128;

/// The reason why an attempt has no result.
enum AttemptError {
    /// A count is stale, and the caller may not refresh it.
    Stale,
    /// A writer holds the lock of a leaf.
    Busy,
    /// As many leaves were counted as the caller allows.
    Enough,
}

/// How an attempt reads counts.
enum Mode<'m> {
    /// As they are, if they aren't stale.
    Trust,
    /// Refreshed under `changing`, at most this number of leaves.
    Refresh(&'m mut usize),
}

/// Positions at or above `low` and below `high`. `None` is no bound.
#[derive(Clone, Copy)]
struct Between<'p> {
    low: Option<SearchKey<'p>>,
    high: Option<SearchKey<'p>>,
}

/// A sum of counts, and the leaves of which only a part is to be counted.
#[derive(Default)]
struct PartialCount<'g, 'p> {
    sum: u64,
    edges: SmallVec<[(TreeLeaf<'g>, Between<'p>); 2]>,
}

impl Ranked for BPlusTree {
    fn count_between(
        &self,
        guard: &Guard,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        work: &mut usize,
    ) -> Option<Counted> {
        let between = Between {
            low: low.map(SearchKey::new),
            high: high.map(SearchKey::new),
        };
        let (levels, backoff) = (&self.inner, Backoff::new());
        'again: loop {
            let mut tally = PartialCount::default();
            // (1), (2)
            self.counted(work, |mode| {
                // The attempt may be repeated, so each one begins with an empty tally.
                tally = PartialCount::default();
                levels.tally(&self.shared, &levels.root, between, mode, &mut tally, guard)
            })?;
            // (3)
            let mut counted = Counted {
                entries: tally.sum,
                high_is_there: false,
            };
            for (leaf, part) in tally.edges {
                let Some((entries, is_there)) = count_in(leaf, part) else {
                    // Its successors will be reachable soon.
                    backoff.snooze();
                    continue 'again;
                };
                counted.entries += entries;
                counted.high_is_there |= is_there;
            }
            return Some(counted);
        }
    }

    fn nth<'g>(
        &'g self,
        guard: &'g Guard,
        n: u64,
        direction: Direction,
        work: &mut usize,
        batch: &mut Batch<'g>,
    ) -> Option<bool> {
        let (levels, backoff) = (&self.inner, Backoff::new());
        loop {
            batch.clear();
            // (1), (2)
            let found = self.counted(work, |mode| {
                levels.seek_nth(&self.shared, n, direction, mode, guard)
            })?;
            let Some((leaf, left, is_only)) = found else {
                return Some(false);
            };
            // (3) The leaf had this number of entries. If a writer has changed it since, it may
            // have more or fewer. If it has fewer, the entry is in another leaf.
            let there = copy_nth(leaf, left, direction, batch);
            match there {
                Some(true) => return Some(true),
                Some(false) if is_only => return Some(false),
                _ => backoff.snooze(),
            }
        }
    }

    fn part_below(&self, guard: &Guard, position: &[u8]) -> Option<f64> {
        let position = SearchKey::new(position);
        let (mut slot, mut below, mut share) = (&self.inner.root, 0.0, 1.0);
        // All children of a node are assumed to have the same number of entries.
        while let TreeChild::Node(node) = slot.load(guard) {
            let child = node.child_for(position);
            share /= node.len() as f64;
            below += share * child as f64;
            slot = &node.children[child];
        }
        Some(below)
    }
}

impl BPlusTree {
    /// Repeats attempts until one has a result. `None` if the work is exhausted before.
    fn counted<T>(
        &self,
        work: &mut usize,
        mut attempt: impl FnMut(&mut Mode<'_>) -> Result<T, AttemptError>,
    ) -> Option<T> {
        let counting = &self.inner.counting;
        let backoff = Backoff::new();
        loop {
            // (1) The result is valid if no thread was refreshing: otherwise a bit may be clear
            // before its count is right.
            if let Some(begun) = counting.begin_read() {
                let answer = attempt(&mut Mode::Trust);
                if counting.end_read(begun) {
                    if let Ok(answer) = answer {
                        return Some(answer);
                    }
                }
            }
            if *work == 0 {
                return None;
            }
            // (2)
            let slice = SLICE.min(*work);
            let mut left = slice;
            let changing = self.inner.changing.lock();
            counting.begin_refresh();
            let answer = attempt(&mut Mode::Refresh(&mut left));
            counting.end_refresh();
            drop(changing);
            *work -= slice - left;
            match answer {
                Ok(answer) => return Some(answer),
                // The writer may wait for `changing` (B5).
                Err(AttemptError::Busy) => backoff.snooze(),
                Err(_) => {}
            }
        }
    }
}

/// The number of entries of a leaf between two positions, and whether the upper one is there.
/// `None` if the leaf is obsolete.
fn count_in(leaf: TreeLeaf<'_>, part: Between<'_>) -> Option<(u64, bool)> {
    let backoff = Backoff::new();
    loop {
        let view = leaf.read().ok()?;
        // All reads of one attempt are of one version, or the attempt is repeated.
        let counted = (|| {
            // Without a bound on a side, all entries on that side count.
            let from = match part.low {
                Some(low) => view.search_any(low.bytes())?.0,
                None => 0,
            };
            // The entry at the upper position isn't counted, but reported.
            let (to, is_there) = match part.high {
                Some(high) => view.search_any(high.bytes())?,
                None => (view.len(), false),
            };
            Ok::<_, crate::seqlock::words::Torn>((to.saturating_sub(from) as u64, is_there))
        })();
        if let (Ok(counted), true) = (counted, view.is_valid()) {
            return Some(counted);
        }
        backoff.snooze();
    }
}

/// Copies the n-th entry of a leaf from one end, counted from 0. `None` if the leaf is obsolete, or
/// is being written; `false` if there is no such entry.
fn copy_nth<'g>(
    leaf: TreeLeaf<'g>,
    n: u64,
    direction: Direction,
    batch: &mut Batch<'g>,
) -> Option<bool> {
    // Nothing is copied unless the leaf is current, and nothing is returned unless it still is.
    let view = leaf.read().ok()?;
    let (n, len) = (n as usize, view.len());
    if n >= len {
        return view.is_valid().then_some(false);
    }
    // From the other end, the n-th entry has another number.
    let i = match direction {
        Direction::Forward => n,
        Direction::Backward => len - 1 - n,
    };
    view.copy_next(i, batch).ok()?;
    view.is_valid().then_some(true)
}

impl InnerLevels {
    /// Adds the number of entries under a slot between two positions.
    fn tally<'g, 'p>(
        &self,
        shared: &Shared,
        slot: &'g ChildSlot<InnerNode>,
        between: Between<'p>,
        mode: &mut Mode<'_>,
        tally: &mut PartialCount<'g, 'p>,
        guard: &'g Guard,
    ) -> Result<(), AttemptError> {
        let (mut slot, Between { low, high }) = (slot, between);
        loop {
            // A leaf is at an end of the range, so it is searched, not counted by its count.
            let node = match slot.load(guard) {
                TreeChild::Leaf(leaf) => {
                    tally.edges.push((leaf, between));
                    return Ok(());
                }
                TreeChild::Node(node) => node,
            };
            // The child in which each end lies. A missing end is beyond all children.
            let from = low.map_or(0, |low| node.child_for(low));
            let to = high.map_or(node.len() - 1, |high| node.child_for(high));
            // Both ends are under one child.
            if from == to && (low.is_some() || high.is_some()) {
                // Its counts must exist before those below it (C5).
                if let Mode::Refresh(_) = mode {
                    node.make_counts(shared);
                }
                slot = &node.children[from];
                continue;
            }
            // The children strictly between the two ends are counted as a whole.
            let whole = from + usize::from(low.is_some())..to + usize::from(high.is_none());
            tally.sum += self.sum(shared, node, whole, mode, guard)?;
            // The child at the lower end has a part in the range. So has the one at the upper end.
            if low.is_some() {
                let part = Between { low, high: None };
                self.tally(shared, &node.children[from], part, mode, tally, guard)?;
            }
            match high {
                None => return Ok(()),
                // With one open end there is only one child to follow. The loop does this without a
                // recursion.
                Some(_) if low.is_none() => slot = &node.children[to],
                Some(_) => {
                    let part = Between { low: None, high };
                    return self.tally(shared, &node.children[to], part, mode, tally, guard);
                }
            }
        }
    }

    /// Finds the leaf with the n-th entry from one end, counted from 0. Also returns the number of
    /// the entry from the leaf's end, and whether the leaf is the only one. `None` if there are
    /// fewer entries.
    fn seek_nth<'g>(
        &self,
        shared: &Shared,
        n: u64,
        direction: Direction,
        mode: &mut Mode<'_>,
        guard: &'g Guard,
    ) -> Result<Option<(TreeLeaf<'g>, u64, bool)>, AttemptError> {
        let (mut slot, mut left, mut is_only) = (&self.root, n, true);
        'down: loop {
            let node = match slot.load(guard) {
                TreeChild::Leaf(leaf) => return Ok(Some((leaf, left, is_only))),
                TreeChild::Node(node) => node,
            };
            is_only = false;
            // Pass the children one by one, from the end at which the counting starts, until the
            // one that has the entry.
            for k in 0..node.len() {
                let i = match direction {
                    Direction::Forward => k,
                    Direction::Backward => node.len() - 1 - k,
                };
                let count = self.sum(shared, node, i..i + 1, mode, guard)?;
                if left < count {
                    slot = &node.children[i];
                    continue 'down;
                }
                left -= count;
            }
            // All children together have fewer entries.
            return Ok(None);
        }
    }

    /// The number of entries under some children of a node.
    #[inline]
    fn sum(
        &self,
        shared: &Shared,
        node: &InnerNode,
        range: Range<usize>,
        mode: &mut Mode<'_>,
        guard: &Guard,
    ) -> Result<u64, AttemptError> {
        match mode {
            // Trusted counts are read without a lock. A stale one ends the attempt.
            Mode::Trust => node
                .counts()
                .and_then(|counts| counts.sum(range))
                .ok_or(AttemptError::Stale),
            Mode::Refresh(left) => self.refresh(shared, node, range, left, guard),
        }
    }

    /// Like `sum`, by the holder of `changing`, which refreshes stale counts.
    fn refresh(
        &self,
        shared: &Shared,
        node: &InnerNode,
        range: Range<usize>,
        left: &mut usize,
        guard: &Guard,
    ) -> Result<u64, AttemptError> {
        // Read once, so that the loops below agree on what is stale.
        let counts = node.make_counts(shared);
        let stale = counts.stale();
        let is_stale = |i: &usize| stale & 1 << i != 0;
        // Prefetch all leaves that will be locked, so that their cache misses overlap.
        for i in range.clone().filter(is_stale) {
            if let TreeChild::Leaf(leaf) = node.children[i].load(guard) {
                leaf.prefetch();
            }
        }
        // Fresh counts are added as they are.
        let mut sum = 0;
        for i in range {
            sum += match is_stale(&i) {
                true => self.refresh_child(shared, node, counts, i, left, guard)?,
                false => counts.count(i),
            };
        }
        Ok(sum)
    }

    /// Refreshes the count of one child.
    fn refresh_child(
        &self,
        shared: &Shared,
        node: &InnerNode,
        counts: &ChildCounts,
        i: usize,
        left: &mut usize,
        guard: &Guard,
    ) -> Result<u64, AttemptError> {
        match node.children[i].load(guard) {
            TreeChild::Leaf(leaf) => {
                // A leaf is counted under its lock. The call's budget is a number of leaves.
                *left = left.checked_sub(1).ok_or(AttemptError::Enough)?;
                // Don't wait for the lock (B5). Under `changing` no leaf becomes obsolete.
                let locked = leaf.try_lock().ok().flatten().ok_or(AttemptError::Busy)?;
                let count = counts.set_leaf(i, &locked);
                Ok(count + u64::from(planted(Fault::OffByOne)))
            }
            TreeChild::Node(child) => {
                // Do this before the child's own bits are read (C3).
                if !planted(Fault::LateClear) {
                    counts.begin(i);
                }
                let count = self.refresh(shared, child, 0..child.len(), left, guard);
                counts.end(i, count.as_ref().ok().copied());
                if planted(Fault::LateClear) && count.is_ok() {
                    counts.begin(i);
                }
                count
            }
        }
    }
}

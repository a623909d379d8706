//! Removing many entries leaf by leaf: those whose positions begin alike, or all for good.
//!
//! Invariants:
//! 1. A leaf's entries go at one instant. Between two leaves others may read, and see a part gone.
//! 2. The walk goes on at the fence that was found with the leaf. It holds whatever becomes of the
//!    leaf, as a position does.
//! 3. Handles are retired when the leaf is unlocked: the end of what the epoch frees may be
//!    anything.

use super::BPlusTree;
use crate::btree::inner::{FencedLeaf, RangeEnd, Seek};
use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf};
use crate::btree::search_key::SearchKey;
use crate::outside::Handle;
use crate::seqlock::words::Torn;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::Range;

/// What is called with each value that goes.
type Visit<'f> = &'f mut dyn FnMut(&[u8]);

impl BPlusTree {
    /// Removes all entries whose positions begin so, and calls `f`, if any, with each value, in
    /// order; gives how many there were. Each leaf's entries go at one instant. Nobody else writes
    /// to these positions meanwhile.
    ///
    /// 1. Go to the leaf that has the next of them, and lock it.
    /// 2. Remove its own. A leaf that has no others is emptied at once.
    /// 3. A leaf that is mostly empty then merges with its neighbour, as after any removal.
    /// 4. On from the leaf's upper fence, unless what begins so ended in the leaf.
    pub(crate) fn remove_within(
        &self,
        guard: &Guard,
        within: &[u8],
        mut f: Option<Visit<'_>>,
    ) -> usize {
        let (mut cursor, mut gone) = (within.to_vec(), 0);
        loop {
            // (1)
            let found = self
                .inner
                .find_fenced(Seek::At(&cursor), RangeEnd::High, guard);
            let FencedLeaf { leaf, fence } = found;
            let Ok((mut locked, _)) = leaf.lock() else {
                continue;
            };
            // (2)
            let own = those_within(&locked, within).expect("the lock's holder reads nothing torn");
            let ends = own.end < locked.len();
            gone += own.len();
            let own_is_empty = own.is_empty();
            let handles = match &mut f {
                Some(f) => take_out(&mut locked, own, Some(&mut **f)),
                None => take_out(&mut locked, own, None),
            };
            if !own_is_empty {
                self.uncount(guard, &locked, SearchKey::new(&cursor));
            }
            // (3)
            self.give_room_back(guard, SearchKey::new(&cursor), locked);
            for handle in handles {
                self.shared.retire(guard, Some(handle));
            }
            // (4)
            match fence {
                Some(high) if !ends && high.starts_with(within) => cursor = high,
                _ => return gone,
            }
        }
    }

    /// As `Unique::free_some`.
    pub(crate) fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let mut cursor = self.freed.lock();
        let mut freed = 0;
        while freed < limit.max(1) {
            let found = self
                .inner
                .find_fenced(Seek::At(&cursor), RangeEnd::High, guard);
            let FencedLeaf { leaf, fence } = found;
            // An obsolete leaf has a successor at the same position.
            let Ok((mut locked, _)) = leaf.lock() else {
                continue;
            };
            let n = locked.len();
            let mut handles: SmallVec<[Handle; 8]> = SmallVec::new();
            // Values are shown where they lie; handles are noted, and retired when the leaf is
            // free.
            for i in 0..n {
                let record = locked.record_of(i);
                f(locked.value(i, &record));
                handles.extend(locked.handle(&record));
            }
            locked.clear();
            self.uncount(guard, &locked, SearchKey::new(&cursor));
            freed += n + 1;
            // An empty leaf keeps its range, but not its room.
            if leaf.capacity() > self.shared.config.first {
                let new = NewTreeLeaf::empty(0, &leaf.prefix_of_fences());
                self.inner
                    .replace(&self.shared, locked, SearchKey::new(&cursor), new, guard);
            } else {
                drop(locked);
            }
            for handle in handles {
                self.shared.retire(guard, Some(handle));
            }
            // On from the upper fence, or all is done.
            match fence {
                Some(high) => *cursor = high,
                None => {
                    cursor.clear();
                    return true;
                }
            }
        }
        false
    }

    /// Step 3. What is empty merges as it is: it need not become smaller first.
    fn give_room_back(&self, guard: &Guard, position: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        if leaf.used() >= self.shared.config.most / 4 {
            return;
        }
        if leaf.len() > 0 {
            return self.reclaim_space(guard, position, leaf);
        }
        if !self.inner.merge(&self.shared, leaf, position, guard) {
            if let Ok(Some(leaf)) = self.inner.find(position, guard).try_lock() {
                self.reclaim_space(guard, position, leaf);
            }
        }
    }
}

/// Which entries of a leaf have positions that begin so. Between two of them all do.
fn those_within(leaf: &LockedTreeLeaf<'_>, within: &[u8]) -> Result<Range<usize>, Torn> {
    let view = leaf.view();
    let (first, _) = view.search_any(within)?;
    let Some(key) = view.behind_prefix(within) else {
        return Ok(first..first);
    };
    let mut end = view.len();
    if first < end && !view.begins_with(end - 1, key)? {
        // What begins so ends in this leaf.
        end = first;
        while view.begins_with(end, key)? {
            end += 1;
        }
    }
    Ok(first..end)
}

/// Removes some entries of a leaf; gives their handles, which the caller retires.
fn take_out(
    leaf: &mut LockedTreeLeaf<'_>,
    range: Range<usize>,
    f: Option<Visit<'_>>,
) -> SmallVec<[Handle; 8]> {
    // Values are shown before anything is changed, and handles read before their records go.
    let mut handles = SmallVec::new();
    if let Some(f) = f {
        for i in range.clone() {
            f(leaf.value(i, &leaf.record_of(i)));
        }
    }
    for i in range.clone() {
        if let Some(handle) = leaf.handle(&leaf.record_of(i)) {
            handles.push(handle);
        }
    }
    // All go: no slot is moved.
    if range.len() == leaf.len() {
        if !range.is_empty() {
            leaf.clear();
        }
        return handles;
    }
    // From the last on, so that the places of those before stay as they are.
    for i in range.rev() {
        let record = leaf.record_of(i);
        leaf.remove(i, &record);
    }
    handles
}

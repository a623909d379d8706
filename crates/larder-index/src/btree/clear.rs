//! Removing many entries, leaf by leaf: all whose positions have a common prefix, or all entries of
//! a tree that is freed.
//!
//! Invariants (docs/design.md §4.2 and 4.4):
//! * O4: Handles are retired after the leaf is unlocked. Retiring may free arbitrary garbage, which
//!   may call this index again.
//! * **B26** The entries of one leaf are removed at one instant. Between two leaves, other threads
//!   may see that some entries are removed and others aren't.
//! * **B27** The walk continues at the upper fence that was found together with the leaf. The fence
//!   is a position, so it is correct even if the leaf is replaced meanwhile.

use super::BPlusTree;
use crate::btree::inner::{FencedLeaf, RangeEnd, Seek};
use crate::btree::leaf::LockedTreeLeaf;
use crate::btree::search_key::SearchKey;
use crate::outside::Handle;
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::Batch;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::Range;

/// A function that is called with each removed value.
type Visit<'f> = &'f mut dyn FnMut(&[u8]);

impl BPlusTree {
    /// Removes all entries whose positions begin with `within`. Calls `f`, if there is one, with
    /// each value, in order. Returns the number of entries. The caller guarantees that no other
    /// thread writes to these positions meanwhile.
    ///
    /// 1. Find the leaf that has the next position, and lock it.
    /// 2. Remove its entries that begin with `within`.
    /// 3. If the leaf is mostly empty now, shrink or merge it, as after any removal.
    /// 4. Continue at the leaf's upper fence, unless a greater position that doesn't begin with
    ///    `within` was found in the leaf.
    pub(crate) fn remove_within(
        &self,
        guard: &Guard,
        within: &[u8],
        mut f: Option<Visit<'_>>,
    ) -> usize {
        let (mut cursor, mut count) = (within, 0);
        let backoff = Backoff::new();
        loop {
            // (1) The leaf and its upper fence, by one descent. If the leaf is obsolete by the time
            // it is locked, descend again.
            let found = self
                .inner
                .find_fenced(Seek::At(cursor), RangeEnd::High, guard);
            let FencedLeaf { leaf, fence } = found;
            let Ok((mut locked, _)) = leaf.lock() else {
                backoff.snooze();
                continue;
            };
            // (2) `ends` says that the leaf has an entry after those with this prefix.
            let removed =
                those_within(&locked, within).expect("the lock's holder reads nothing torn");
            let ends = removed.end < locked.len();
            count += removed.len();
            let is_empty = removed.is_empty();
            let handles = match &mut f {
                Some(f) => take_out(&mut locked, removed, Some(&mut **f)),
                None => take_out(&mut locked, removed, None),
            };
            // The number of entries has changed, so invalidate the counts above, still under the
            // lock.
            if !is_empty {
                self.mark_counts_stale(guard, &locked, SearchKey::new(cursor));
            }
            // (3) This releases the lock. Then retire the handles (O4).
            self.shrink_or_merge(guard, SearchKey::new(cursor), locked);
            for handle in handles {
                self.shared.retire(guard, Some(handle));
            }
            // (4) The fence is the least position of the next leaf's range. If it doesn't begin
            // with `within`, no position of the next leaf does: it is greater than all that do.
            match fence {
                Some(high) if !ends && high.starts_with(within) => cursor = high,
                _ => return count,
            }
        }
    }

    /// See [`Unique::remove_scanned`](crate::Unique::remove_scanned). `batch` is of a forward scan,
    /// so it has neighbouring entries of one leaf, in their order. One of a backward scan is left
    /// to the caller: the result is `false`.
    ///
    /// 1. Lock the leaf of the first chosen entry, if its version is still that of the batch.
    /// 2. Find the slots of the first and the last chosen entry. Those of the others follow.
    /// 3. Ask `predicate`, and remove the entries.
    /// 4. Shrink or merge the leaf, which unlocks it, and retire the handles (O4).
    pub(crate) fn remove_scanned(
        &self,
        guard: &Guard,
        position: &[u8],
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        let number = self.shared.number.0;
        let (Some(seen), Some(&first)) = (batch.seen, chosen.first()) else {
            return false;
        };
        let key = SearchKey::new(position);
        // (1) An obsolete leaf has other entries by now.
        let Ok((mut leaf, _)) = self.inner.find(key, guard).lock() else {
            return false;
        };
        // The version is only meaningful in the tree that the batch was read from. If it is still
        // the same, the entries of the batch are in the leaf, side by side (`seqlock::version`).
        if seen.index != number || !leaf.was_at(seen.version) {
            return false;
        }
        // (2) The distance of the two slots is that of the two entries in the batch. If it isn't,
        // the batch has them in the other order.
        let entry = |i: u32| leaf.search(SearchKey::new(batch.key(i as usize)));
        let last = chosen[chosen.len() - 1];
        let (at, to) = (entry(first), entry(last));
        if at.record.is_none() || to.i.checked_sub(at.i) != Some((last - first) as usize) {
            return false;
        }
        // (3) The caller may still refuse: nothing has been changed.
        if !predicate() {
            return false;
        }
        // Remove the last run of neighbours first, so that the slots of the others stay the same.
        let mut handles: SmallVec<[Handle; 8]> = SmallVec::new();
        for run in chosen.chunk_by(|a, b| a + 1 == *b).rev() {
            let from = at.i + (run[0] - first) as usize;
            handles.extend(take_out(&mut leaf, from..from + run.len(), None));
        }
        self.mark_counts_stale(guard, &leaf, key);
        // (4) This releases the lock.
        self.shrink_or_merge(guard, key, leaf);
        for handle in handles {
            self.shared.retire(guard, Some(handle));
        }
        true
    }

    /// See [`Container::free_some`](crate::Container::free_some). A call continues where the last
    /// one has stopped: `freed` is the position. Each leaf is emptied in the steps of
    /// `remove_within`.
    pub(crate) fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let mut cursor = self.freed.lock();
        let (mut freed, backoff) = (0, Backoff::new());
        while freed < limit.max(1) {
            let found = self
                .inner
                .find_fenced(Seek::At(&cursor), RangeEnd::High, guard);
            let FencedLeaf { leaf, fence } = found;
            // (1) If the leaf is obsolete, its successor is at the same position.
            let Ok((mut locked, _)) = leaf.lock() else {
                backoff.snooze();
                continue;
            };
            let n = locked.len();
            let mut handles: SmallVec<[Handle; 8]> = SmallVec::new();
            // (2) Values are passed on without a copy. Handles are collected, and retired after the
            // leaf is unlocked (O4).
            for i in 0..n {
                let record = locked.record_of(i);
                f(locked.value(i, &record));
                handles.extend(locked.handle(&record));
            }
            locked.clear();
            self.mark_counts_stale(guard, &locked, SearchKey::new(&cursor));
            // Count the leaf itself, too, so that a call doesn't walk over many empty leaves.
            freed += n + 1;
            // (3) Merge it with those that were emptied before, so that few leaves are left to be
            // freed together with the index. It may be merged with the next one, which is emptied
            // then.
            self.shrink_or_merge(guard, SearchKey::new(&cursor), locked);
            for handle in handles {
                self.shared.retire(guard, Some(handle));
            }
            // (4) Continue at the upper fence. After the last leaf the next call starts again, and
            // finds entries that were inserted meanwhile.
            match fence {
                Some(high) => *cursor = high.to_vec(),
                None => {
                    cursor.clear();
                    return true;
                }
            }
        }
        false
    }

    /// Step 3. An empty leaf is merged directly, and only shrunk if that fails.
    fn shrink_or_merge(&self, guard: &Guard, position: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        // The same bound as after any removal.
        if !self.is_sparse(&leaf) {
            return;
        }
        if leaf.len() > 0 {
            return self.reclaim_space(guard, position, leaf);
        }
        // A merge may fail: there is no neighbour, it is locked, or both together are too large. It
        // has released the lock, so try to take it again.
        if !self.inner.merge(&self.shared, leaf, position, guard) {
            if let Ok(Some(leaf)) = self.inner.find(position, guard).try_lock() {
                self.reclaim_space(guard, position, leaf);
            }
        }
    }
}

/// The entries of a leaf whose positions begin with `within`. They are adjacent.
fn those_within(leaf: &LockedTreeLeaf<'_>, within: &[u8]) -> Result<Range<usize>, Torn> {
    let view = leaf.view();
    let (first, _) = view.search_any(within)?;
    // If `within` and the leaf's prefix differ, there is none.
    let Some(key) = view.after_prefix(within) else {
        return Ok(first..first);
    };
    // Mostly all entries from the first one on do: then the last one does, too.
    let mut end = view.len();
    if first < end && !view.begins_with(end - 1, key)? {
        // The range ends in this leaf. Search its end entry by entry.
        end = first;
        while view.begins_with(end, key)? {
            end += 1;
        }
    }
    Ok(first..end)
}

/// Removes some entries of a leaf. Returns their handles, which the caller retires.
fn take_out(
    leaf: &mut LockedTreeLeaf<'_>,
    range: Range<usize>,
    f: Option<Visit<'_>>,
) -> SmallVec<[Handle; 8]> {
    // Pass on the values and read the handles before anything is changed: a removed record may be
    // overwritten.
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
    // If all entries are removed, no slot has to be moved.
    if range.len() == leaf.len() {
        if !range.is_empty() {
            leaf.clear();
        }
        return handles;
    }
    // Start at the last one, so that the numbers of the others stay the same.
    for i in range.rev() {
        let record = leaf.record_of(i);
        leaf.remove(i, &record);
    }
    handles
}

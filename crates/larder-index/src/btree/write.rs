//! Writes of the B+-tree.
//!
//! 1. Find the leaf and lock it. An insert tries the tail first, or the leaf that a hint of
//!    `prefetch_leaf` names. A removal, and an update of what is there, first read the leaf: they
//!    lock it only if there is an entry.
//! 2. Search the leaf. Nobody else writes to it while the lock is held, so no read is torn.
//! 3. Change the leaf in place if there is room. Otherwise:
//!    a. compact its records, if an eighth of the leaf is free afterwards;
//!    b. else replace it by a larger leaf of the same range, up to the size at which leaves split;
//!    c. else split it. The new entry is put directly into one of the two successors.
//!
//!    Replacing and splitting a leaf have steps of their own (`restructure`).
//!
//!    If the new position doesn't begin with the leaf's prefix, the leaf is replaced by one with a
//!    shorter prefix (`shorten_prefix`).
//! 4. If a removal leaves fewer live bytes than a quarter of the largest leaf size, shrink the leaf
//!    (if it is less than a quarter full, and not small already), and merge it with a neighbour.
//! 5. Unlock. The store of the new version is the linearisation point. If the leaf is replaced, the
//!    linearisation point is the store that marks it obsolete.
//! 6. Retire the objects that were removed. This may free arbitrary garbage, so no lock is held.
//!
//! ```text
//!  find_locked ─→ put_at ─→ in place                               3
//!                       ├─→ shorten_prefix ─→ replace               3, the prefix
//!                       ├─→ handle_overflow ─→ compact_and_put      3a
//!                       │                  └─→ rebuild ─→ replace   3b
//!                       │                              └─→ split    3c
//!                       └─→ split_early                             writers often wait here
//!  find_present ─→ remove_at ─→ reclaim_space ─→ shrink, merge      4
//! ```
//!
//! Invariants:
//! * **B20** The lock is owned by the `LockedTreeLeaf` value. A function that takes the value
//!   releases the lock: it unlocks the leaf or marks it obsolete.
//! * **B21** The range of a locked leaf has the position. So a [`FoundSlot`] stays correct until
//!   the lock is released or the leaf is written to.
//! * **B22** The caller's function is called before anything is changed (once, under the lock:
//!   I10). A write that requires an existing entry doesn't call it if the position is absent.

use super::BPlusTree;
use crate::btree::copies::with_copies;
use crate::btree::entries::{with_entries, Entries};
use crate::btree::found_slot::{FoundSlot, LockedSlot};
use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf, Obsolete, TreeLeaf, MOST_CONTENT};
use crate::btree::prefix::Prefix;
use crate::btree::record::{Record, StoredValue, SLOT};
use crate::btree::search_key::SearchKey;
use crate::contention::{CONTENDED, HIGH_CONTENTION, UNCONTENDED};
use crate::seqlock::words::Torn;
use crate::{hint::Hint, mark::Mark, scratch::with_scratch, sync::Backoff};
use crate::{Change, MarkedUpdater, Predicate, Preparation, Previous, Updater};
use crossbeam_epoch::Guard;

impl BPlusTree {
    /// Step 1: locks the leaf whose range has the position. Also returns its contention counter.
    #[inline]
    fn lock<'g>(&self, guard: &'g Guard, key: SearchKey<'_>) -> (LockedTreeLeaf<'g>, i32) {
        let backoff = Backoff::new();
        loop {
            // Between the descent and the lock, another writer may have replaced the leaf. It would
            // then be obsolete, and `lock` would fail. A leaf that isn't obsolete covers the range
            // that its path says, so if the lock is taken, this is the right leaf.
            match self.inner.find(key, guard).lock() {
                Ok((mut locked, contended)) => {
                    if contended {
                        self.shared.counters.contended();
                    }
                    // Like the content, the statistics are only written under the lock.
                    let contention =
                        locked.add_contention(if contended { CONTENDED } else { UNCONTENDED });
                    return (locked, contention);
                }
                Err(Obsolete) => backoff.snooze(),
            }
        }
    }

    /// Steps 1 and 2 of an insert or update: locks the leaf, and finds the slot of the position.
    #[inline(always)]
    fn find_locked<'g, 'p>(&self, guard: &'g Guard, key: SearchKey<'p>) -> LockedSlot<'g, 'p> {
        // (1) Try the tail. A position above an entry of the last leaf is in the last leaf's range,
        // so no descent is needed (see `tail`). (`append` tries it only for short entries.)
        if let Some(leaf) = self.inner.tail.find(key, guard) {
            if let Some(leaf) = self.lock_tail(leaf, key) {
                // (2) `lock_tail` has compared the position with the last entry: its slot is
                // after it.
                let after = leaf.len();
                return LockedSlot::uncontended(leaf, key, after, None);
            }
        }
        self.find_locked_from_root(guard, key)
    }

    /// The same as `find_locked`, without trying the tail. Few removals are at the end.
    #[inline(always)]
    fn find_locked_from_root<'g, 'p>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'p>,
    ) -> LockedSlot<'g, 'p> {
        // (1) Descend, and lock the leaf.
        let (leaf, contention) = self.lock(guard, key);
        // (2) Search it.
        let spot = leaf.search(key);
        let slot = FoundSlot::new(key, &leaf, spot.i, spot.record);
        LockedSlot {
            leaf,
            slot,
            contention,
        }
    }

    /// Steps 1 and 2 for a write that concerns only a position that is there. The leaf is read as
    /// by a lookup. If the position is absent, returns `None`: no lock was taken, and the
    /// linearisation point is that of a lookup. Otherwise takes the lock, if the version is still
    /// the one that was read.
    ///
    /// # Errors
    /// `Torn` if another writer holds the lock, or has changed the leaf since the read. The caller
    /// then makes the whole write under the lock, in a function that isn't inlined. So the result
    /// stays in registers here.
    #[inline(always)]
    fn find_present<'g, 'p>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'p>,
    ) -> Result<Option<LockedSlot<'g, 'p>>, Torn> {
        let Some(hint) = self.find(guard, key)? else {
            return Ok(None);
        };
        // Nobody has written since the read, so the entry is where it was found.
        let (leaf, i, record) = hint.lock_tree(self.address()).ok_or(Torn)?;
        Ok(Some(LockedSlot::uncontended(leaf, key, i, Some(record))))
    }

    /// Locks the last leaf, if its lock is free and the position is above all of its entries.
    #[inline]
    fn lock_tail<'g>(&self, leaf: TreeLeaf<'g>, key: SearchKey<'_>) -> Option<LockedTreeLeaf<'g>> {
        // Don't wait for the lock. If another thread holds it, descend from the root and wait for
        // the leaf that is found there.
        let locked = leaf.try_lock().ok().flatten()?;
        if locked.is_all_below(key) {
            self.inner.tail.record_hit();
            return Some(locked);
        }
        // Returning drops the lock, and the version stays the same. A tail that is often missed is
        // unset.
        self.inner.tail.record_miss();
        None
    }

    /// See [`Unique::update_with`](crate::Unique::update_with).
    pub(crate) fn update(
        &self,
        guard: &Guard,
        position: &[u8],
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        let found = self.find_locked(guard, SearchKey::new(position));
        self.update_found::<false>(guard, found, scratch, |old, new, _| f(old, new))
    }

    /// See [`Unique::update_present`](crate::Unique::update_present).
    pub(crate) fn update_present(
        &self,
        guard: &Guard,
        position: &[u8],
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_>,
    ) -> bool {
        match self.find_present(guard, SearchKey::new(position)) {
            Ok(Some(found)) => {
                self.update_found::<false>(guard, found, scratch, |old, new, _| f(old, new))
            }
            Ok(None) => false,
            // As any update, under the lock from the beginning.
            Err(Torn) => self.update(guard, position, scratch, &mut |old, new| match old {
                Some(_) => f(old, new),
                None => Change::Keep,
            }),
        }
    }

    /// See [`Unique::update_marked`](crate::Unique::update_marked).
    pub(crate) fn update_marked(
        &self,
        guard: &Guard,
        position: &[u8],
        scratch: &mut Vec<u8>,
        f: &mut MarkedUpdater<'_>,
    ) -> bool {
        let found = self.find_locked(guard, SearchKey::new(position));
        self.update_found::<true>(guard, found, scratch, f)
    }

    /// Calls `f` with the value of a slot that was found, and makes the change that it returns.
    /// `f` also gets the entry's mark, if `MARKED` is set, and otherwise 0.
    #[inline(always)]
    fn update_found<const MARKED: bool>(
        &self,
        guard: &Guard,
        LockedSlot {
            mut leaf,
            slot,
            contention,
        }: LockedSlot<'_, '_>,
        scratch: &mut Vec<u8>,
        mut f: impl FnMut(Option<&[u8]>, &mut Vec<u8>, &mut u64) -> Change,
    ) -> bool {
        scratch.clear();
        let mut mark = Mark::of::<MARKED, _>(slot.entry(), |i| leaf.mark(i));
        // The callback sees the value in place, under the lock, and decides (I10).
        let change = f(slot.value(&leaf), scratch, &mut mark.now);
        match (change, &slot.record) {
            (Change::Keep, _) | (Change::Remove | Change::Splice(_), None) => return false,
            (Change::Remove, Some(record)) => {
                self.remove_at(guard, &slot, leaf, record, contention);
                return true;
            }
            (Change::Splice(part), Some(record)) => match part.place_for(scratch) {
                // (3) The other bytes of the value stay where they are.
                Some(at) if !record.is_outside() => {
                    mark.set::<MARKED, _>(slot.entry(), |i, mark| leaf.set_mark(i, mark));
                    leaf.overwrite(record, at, scratch);
                    self.finish_in_place(guard, &slot, leaf, contention);
                    return true;
                }
                // An outside value is copied once, with the other part.
                _ if record.is_outside() => {
                    let new = leaf.handle(record).and_then(|old| {
                        self.spliced(slot.suffix.len(), leaf.outside(old), part.range(), scratch)
                    });
                    if let Some(handle) = new {
                        mark.set::<MARKED, _>(slot.entry(), |i, mark| leaf.set_mark(i, mark));
                        self.replace_object(guard, &slot, leaf, contention, handle);
                        return true;
                    }
                    change.complete_value(slot.value(&leaf), scratch);
                }
                _ => change.complete_value(slot.value(&leaf), scratch),
            },
            (Change::Put, _) => {}
        }
        mark.set::<MARKED, _>(slot.entry(), |i, mark| leaf.set_mark(i, mark));
        self.put_at(guard, &slot, leaf, scratch, contention);
        true
    }

    /// See [`Unique::put_marked`](crate::Unique::put_marked).
    pub(crate) fn put_marked(
        &self,
        guard: &Guard,
        position: &[u8],
        value: &[u8],
        predicate: &mut Predicate<'_>,
        preparation: &mut Preparation<'_>,
    ) -> Previous {
        let key = SearchKey::new(position);
        // As in `put`. A new entry gets no mark.
        let appended = self.append(guard, key, value, &mut |old| {
            let puts = predicate(old);
            if puts {
                preparation.run(old, 0);
            }
            puts
        });
        if let Some(previous) = appended {
            return previous;
        }
        let found = self.find_locked(guard, key);
        self.put_found::<true>(guard, found, value, predicate, |old, mark| {
            preparation.run(old, mark)
        })
    }

    /// See [`Unique::remove_marked`](crate::Unique::remove_marked).
    pub(crate) fn remove_marked(
        &self,
        guard: &Guard,
        position: &[u8],
        predicate: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Previous {
        self.remove_if(guard, position, |leaf, i, record| {
            predicate(leaf.value(i, record), leaf.mark(i))
        })
    }

    /// See [`Unique::put`](crate::Unique::put).
    pub(crate) fn put(
        &self,
        guard: &Guard,
        position: &[u8],
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let key = SearchKey::new(position);
        // Try the append path. If it returns `None`, it hasn't called the predicate and has changed
        // nothing (B22).
        match self.append(guard, key, value, predicate) {
            Some(previous) => previous,
            None => self.put_anywhere(guard, key, value, predicate),
        }
    }

    /// Appends a short entry to the last leaf, if a run of inserts continues there and the leaf has
    /// room. Otherwise returns `None`, without having called the predicate.
    #[inline]
    fn append(
        &self,
        guard: &Guard,
        key: SearchKey<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Option<Previous> {
        // Lock the tail. If that succeeds the leaf isn't obsolete, so it is still the last one, and
        // a position above one of its entries is in its range.
        let mut locked = self.inner.tail.find(key, guard)?.try_lock().ok()??;
        // The position is above the last entry, so the key is new.
        let next = locked.append_slot(key, value.len())?;
        self.inner.tail.record_hit();
        if !predicate(None) {
            return Some(Previous::Refused);
        }
        locked.append(next, value);
        self.mark_counts_stale(guard, &locked, key);
        // Dropping the lock publishes the entry.
        Some(Previous::Absent)
    }

    /// The general path of `put`.
    #[inline(never)]
    fn put_anywhere(
        &self,
        guard: &Guard,
        key: SearchKey<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let found = self.find_locked(guard, key);
        self.put_found::<false>(guard, found, value, predicate, |_, mark| mark)
    }

    /// See [`Unique::put_absent`](crate::Unique::put_absent).
    pub(crate) fn put_absent(&self, guard: &Guard, position: &[u8], value: &[u8], hint: &Hint<'_>) {
        // (1) The range of a leaf never changes. So a leaf that isn't obsolete is the right one.
        // If another writer holds the lock, wait for the leaf that is found from the root.
        let leaf = hint.leaf(self.address());
        let Some(leaf) = leaf.and_then(|leaf| leaf.try_lock().ok().flatten()) else {
            self.put(guard, position, value, &mut |_| true);
            return;
        };
        // (2) The caller says that the position is absent.
        let key = SearchKey::new(position);
        let i = leaf.search(key).i;
        let found = LockedSlot::uncontended(leaf, key, i, None);
        self.put_at(guard, &found.slot, found.leaf, value, found.contention);
    }

    /// See [`Unique::put_with_hint`](crate::Unique::put_with_hint).
    pub(crate) fn put_with_hint(
        &self,
        guard: &Guard,
        position: &[u8],
        value: &[u8],
        hint: &Hint<'_>,
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let Some((leaf, i, record)) = hint.lock_tree(self.address()) else {
            return self.put(guard, position, value, predicate);
        };
        // (1), (2) The leaf is as the read has found it, so the entry is where it was.
        let key = SearchKey::new(position);
        let found = LockedSlot::uncontended(leaf, key, i, Some(record));
        self.put_found::<false>(guard, found, value, predicate, |_, mark| mark)
    }

    /// Stores a value in a slot that was found, if the predicate agrees. If `MARKED` is set, then
    /// calls `prepare` with the entry's mark, which returns the new one.
    #[inline(always)]
    fn put_found<const MARKED: bool>(
        &self,
        guard: &Guard,
        LockedSlot {
            mut leaf,
            slot,
            contention,
        }: LockedSlot<'_, '_>,
        value: &[u8],
        mut predicate: impl FnMut(Option<&[u8]>) -> bool,
        mut prepare: impl FnMut(Option<&[u8]>, u64) -> u64,
    ) -> Previous {
        let mut mark = Mark::of::<MARKED, _>(slot.entry(), |i| leaf.mark(i));
        let old = slot.value(&leaf);
        if !predicate(old) {
            // The predicate refuses under the lock. Dropping `leaf` unlocks an unchanged leaf.
            return Previous::Refused;
        }
        if MARKED {
            mark.now = prepare(old, mark.now);
        }
        let previous = Previous::of(slot.record.is_some());
        mark.set::<MARKED, _>(slot.entry(), |i, mark| leaf.set_mark(i, mark));
        self.put_at(guard, &slot, leaf, value, contention);
        previous
    }

    /// See [`Unique::remove`](crate::Unique::remove).
    pub(crate) fn remove(
        &self,
        guard: &Guard,
        position: &[u8],
        predicate: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Previous {
        self.remove_if(guard, position, |leaf, i, record| {
            predicate(leaf.value(i, record))
        })
    }

    /// Removes the entry at a position, if `predicate` returns `true` for it, under the lock.
    #[inline(always)]
    fn remove_if(
        &self,
        guard: &Guard,
        position: &[u8],
        mut predicate: impl FnMut(&LockedTreeLeaf<'_>, usize, &Record) -> bool,
    ) -> Previous {
        match self.find_present(guard, SearchKey::new(position)) {
            Ok(Some(found)) => self.remove_found(guard, found, predicate),
            Ok(None) => Previous::Absent,
            Err(Torn) => self.remove_locked(guard, position, &mut predicate),
        }
    }

    /// The slow path of `remove_if` (see `find_present`).
    #[inline(never)]
    fn remove_locked(
        &self,
        guard: &Guard,
        position: &[u8],
        predicate: &mut dyn FnMut(&LockedTreeLeaf<'_>, usize, &Record) -> bool,
    ) -> Previous {
        let found = self.find_locked_from_root(guard, SearchKey::new(position));
        self.remove_found(guard, found, predicate)
    }

    /// Removes an entry that was found, if there is one and `predicate` returns `true` for it.
    #[inline(always)]
    fn remove_found(
        &self,
        guard: &Guard,
        found: LockedSlot<'_, '_>,
        mut predicate: impl FnMut(&LockedTreeLeaf<'_>, usize, &Record) -> bool,
    ) -> Previous {
        let (leaf, slot) = (found.leaf, &found.slot);
        let Some(record) = &slot.record else {
            return Previous::Absent;
        };
        if !predicate(&leaf, slot.i, record) {
            return Previous::Refused;
        }
        self.remove_at(guard, slot, leaf, record, found.contention);
        Previous::Present
    }

    /// Steps 3 to 6 of a removal.
    #[inline(always)]
    fn remove_at(
        &self,
        guard: &Guard,
        at: &FoundSlot<'_>,
        mut leaf: LockedTreeLeaf<'_>,
        record: &Record,
        contention: i32,
    ) {
        // (3) Read the handle before its record is removed. It is retired after the unlock.
        let handle = leaf.handle(record);
        leaf.remove(at.i, record);
        self.mark_counts_stale(guard, &leaf, at.key);
        // A contended leaf is left as it is, so that its writers don't contend more. An empty one
        // isn't, since no later removal would look at it. In a leaf with many entries, only every
        // fourth removal checks whether it should shrink.
        let len = leaf.len();
        if (contention < HIGH_CONTENTION || len == 0)
            && (len < 8 || len.is_multiple_of(4))
            && leaf.live_bytes() < self.shared.config.most / 4
        {
            // (4) Shrink or merge the leaf. This also unlocks it.
            self.reclaim_space(guard, at.key, leaf);
        } else {
            // (5) Unlock.
            drop(leaf);
        }
        // (6) Readers may still be reading the outside object. The epoch keeps it alive.
        self.shared.retire(guard, handle);
    }

    /// Marks the counts on the path to a locked leaf stale, because its number of entries has
    /// changed. Does nothing if the nodes above don't have the leaf's count (`counts`).
    #[inline(always)]
    pub(super) fn mark_counts_stale(
        &self,
        guard: &Guard,
        leaf: &LockedTreeLeaf<'_>,
        key: SearchKey<'_>,
    ) {
        if leaf.is_counted() {
            self.inner.mark_counts_stale(leaf, key, guard);
        }
    }

    /// Step 4: replaces the leaf by a smaller one, or merges it with a neighbour, or both.
    pub(super) fn reclaim_space<'g>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'_>,
        mut leaf: LockedTreeLeaf<'g>,
    ) {
        // Shrink the leaf if it is less than a quarter full and a smaller size class would do. The
        // bound is far below the one for growing, so that a leaf doesn't alternate between two
        // sizes. A small leaf stays as it is: a table that is emptied and filled again and again
        // would otherwise allocate two new leaves each time.
        let (live_bytes, config) = (leaf.live_bytes(), &self.shared.config);
        if leaf.leaf().capacity() > config.most / 8
            && live_bytes < leaf.leaf().capacity() / 4
            && config.capacity_for(live_bytes, live_bytes, leaf.leaf().prefix_len())
                < leaf.leaf().capacity()
        {
            // The new leaf is unlocked when it is published.
            self.shrink(guard, key, leaf);
            // Lock it again for the merge. If another writer holds it by now, leave the merge to a
            // later removal.
            match self.inner.find(key, guard).try_lock() {
                Ok(Some(next)) => leaf = next,
                _ => return,
            }
        }
        // If the leaf was replaced above, `live_bytes` is out of date. `merge` checks again.
        if live_bytes < config.most / 4 {
            self.merge(guard, key, leaf);
        }
    }

    /// Replaces the leaf by one with the same range and entries that is no larger than needed.
    fn shrink(&self, guard: &Guard, key: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        let (config, need) = (&self.shared.config, leaf.live_bytes());
        let capacity = config.capacity_for(need, need, leaf.leaf().prefix_len());
        // `entries` refers to the old leaf, which stays locked until `replace` has copied them.
        with_entries(|entries| {
            entries.collect(&leaf);
            let prefix = leaf.leaf().prefix_and_fences();
            self.replace(guard, key, leaf, entries, &prefix, capacity);
        });
    }

    /// Replaces the leaf by one of this capacity with the same range and these entries.
    fn replace(
        &self,
        guard: &Guard,
        key: SearchKey<'_>,
        leaf: LockedTreeLeaf<'_>,
        entries: &Entries,
        prefix: &Prefix<'_>,
        capacity: usize,
    ) {
        let new = entries.build(&leaf, 0..entries.len(), capacity, prefix);
        // The new leaf inherits the statistics, so that it recognises a run of inserts that has
        // begun in the old one.
        new.inherit(leaf.leaf());
        self.inner.replace(&self.shared, leaf, key, new, guard);
    }

    /// Merges the leaf with a neighbour, and repeats this with the merged leaf while it is sparse.
    fn merge<'g>(&self, guard: &'g Guard, key: SearchKey<'_>, mut leaf: LockedTreeLeaf<'g>) {
        // Each iteration locks the leaf that the previous merge has published.
        while self.inner.merge(&self.shared, leaf, key, guard) {
            match self.inner.find(key, guard).try_lock() {
                Ok(Some(next)) if next.live_bytes() < self.shared.config.most / 4 => leaf = next,
                _ => return,
            }
        }
    }

    /// Steps 3 to 6 of an insert or update: stores a value in the slot.
    #[inline(always)]
    fn put_at(
        &self,
        guard: &Guard,
        at: &FoundSlot<'_>,
        mut leaf: LockedTreeLeaf<'_>,
        value: &[u8],
        contention: i32,
    ) {
        // (3) All positions of a leaf begin with its prefix. If the new one doesn't, the leaf must
        // be replaced by one with a shorter prefix.
        if at.record.is_none() && leaf.leaf().beside_prefix(at.key).is_ne() {
            return self.shorten_prefix(guard, at, leaf, value);
        }
        // Allocate an outside object, if one is needed, before the leaf is changed. A reader that
        // finds the handle then always finds the object.
        let stored = self.store_value(at.key, at.suffix.len(), value);
        // Replace the old value in place, or insert a new entry.
        let old = at.record.and_then(|record| leaf.handle(&record));
        let (done, run_length) = match &at.record {
            Some(record) => {
                let done = leaf.replace_value(at.i, at.head, at.suffix, stored, record);
                (done, 0)
            }
            None => {
                let run_length = leaf.record_insert(at.i);
                let done = leaf.put_entry(at.i, at.head, at.suffix, stored);
                if done {
                    self.mark_counts_stale(guard, &leaf, at.key);
                }
                (done, run_length)
            }
        };
        if !done {
            // (3a) to (3c) There was no room, and no entry has been changed yet.
            self.handle_overflow(guard, at, leaf, stored, run_length);
        } else {
            self.finish_in_place(guard, at, leaf, contention);
        }
        // (6) In each case the leaf has been unlocked or marked obsolete (B20), and no reachable
        // leaf has the old handle. Readers that pinned before may still follow it.
        self.shared.retire(guard, old);
    }

    /// Ends a change that was made in place.
    #[inline(always)]
    pub(super) fn finish_in_place(
        &self,
        guard: &Guard,
        at: &FoundSlot<'_>,
        leaf: LockedTreeLeaf<'_>,
        contention: i32,
    ) {
        // Writers often wait for this leaf. Split it early, so that they contend less.
        if contention > HIGH_CONTENTION && leaf.len() > 1 {
            self.split_early(guard, at, leaf);
        }
        // (5) Dropping the leaf unlocks it and publishes the change.
    }

    /// Inserts an entry whose position doesn't begin with the leaf's prefix. The leaf is replaced
    /// by one with a shorter prefix.
    ///
    /// The position is less than all positions with the prefix, or greater than all of them. So the
    /// new entry is the first or the last. The new leaf may be larger than a leaf should be; it is
    /// then split by the next entry that has no room.
    #[cold]
    #[inline(never)]
    fn shorten_prefix(
        &self,
        guard: &Guard,
        at: &FoundSlot<'_>,
        leaf: LockedTreeLeaf<'_>,
        value: &[u8],
    ) {
        let (mut leaf, position) = (leaf, at.key.bytes());
        // The new prefix is what the old one and the position have in common. It still includes
        // the common prefix of the fences, since all positions of the range begin with that.
        let old = leaf.leaf().prefix_and_fences();
        let prefix = old.shared_with(position);
        let stored = self.store_value(at.key, position.len() - prefix.len(), value);
        let run_length = leaf.record_insert(at.i);
        // Build the new leaf from the old entries, with the new one at the beginning or the end.
        let new = with_copies(|copies| {
            if at.i == 0 {
                copies.push(position, stored);
            }
            leaf.collect_all(copies);
            if at.i > 0 {
                copies.push(position, stored);
            }
            // Suffixes get longer as the prefix gets shorter, so the sizes are computed anew.
            let need = copies.content_size(0..copies.len(), prefix.len());
            let capacity = self.capacity(need, run_length > copies.len() / 4, prefix.len());
            NewTreeLeaf::build(copies, 0..copies.len(), capacity, &prefix)
        });
        new.inherit(leaf.leaf());
        self.inner.replace(&self.shared, leaf, at.key, new, guard);
    }

    /// The capacity of a new leaf for `need` bytes of slots and records. If a run of inserts is
    /// expected to continue in it (`run_continues`), it gets half as much again. If the number of
    /// keys was announced (`expect_keys`), it gets room for its share. In a small index it doubles.
    fn capacity(&self, need: usize, run_continues: bool, prefix: usize) -> usize {
        let config = &self.shared.config;
        let more = if run_continues { need / 2 } else { 0 };
        let most = config.most_beside(prefix).max(need);
        let soon = self.shared.soon(need);
        config.capacity_for((need + more).min(most), soon, prefix)
    }

    /// Steps 3a to 3c: stores an entry for which the leaf has no room. `run_length` is that of the
    /// run of inserts that this one belongs to.
    #[inline(never)]
    fn handle_overflow(
        &self,
        guard: &Guard,
        at: &FoundSlot<'_>,
        mut leaf: LockedTreeLeaf<'_>,
        stored: StoredValue<'_>,
        run_length: usize,
    ) {
        // If a value is replaced, remove the old entry first. Readers can't see the key missing:
        // the lock is held until the new entry is in place.
        if let Some(record) = &at.record {
            leaf.remove(at.i, record);
        }
        let need = leaf.live_bytes() + SLOT + stored.record(at.suffix.len());
        let capacity = leaf.leaf().capacity();
        // Removed records have left free bytes between others. Compact the leaf, but only if an
        // eighth of it is free afterwards. Otherwise the next inserts would soon have to compact it
        // again.
        if need + capacity / 8 <= capacity {
            self.compact_and_put(guard, at, leaf, stored);
        } else {
            self.rebuild(guard, at, leaf, stored, run_length);
        }
    }

    /// Step 3a: compacts the records of the leaf, and stores the entry.
    fn compact_and_put(
        &self,
        guard: &Guard,
        at: &FoundSlot<'_>,
        mut leaf: LockedTreeLeaf<'_>,
        stored: StoredValue<'_>,
    ) {
        // The lock is held throughout, so no reader validates a leaf whose records are being moved.
        with_entries(|entries| with_scratch(|buffer| leaf.compact(entries, buffer)));
        let done = leaf.put_entry(at.i, at.head, at.suffix, stored);
        debug_assert!(done, "compacting made room");
        if at.record.is_none() {
            self.mark_counts_stale(guard, &leaf, at.key);
        }
        // (5) Dropping the leaf unlocks it and publishes the entry.
    }

    /// Steps 3b and 3c: replaces the leaf by a larger one, or splits it. The entry is stored in the
    /// new leaves.
    fn rebuild(
        &self,
        guard: &Guard,
        at: &FoundSlot<'_>,
        leaf: LockedTreeLeaf<'_>,
        stored: StoredValue<'_>,
        run_length: usize,
    ) {
        let config = &self.shared.config;
        let capacity = leaf.leaf().capacity();
        // List the entries of the new leaves: references to those of the old leaf, and the new
        // entry. The old leaf stays locked until the new ones have been built.
        with_entries(|entries| {
            entries.collect(&leaf);
            entries.insert(at.i, at.suffix, stored);
            // The entries may have a longer prefix in common than the old leaf's. Then they need
            // fewer bytes.
            let all = 0..entries.len();
            let prefix = entries.prefix(&leaf, all.clone(), leaf.leaf().prefix_and_fences());
            let need = entries.content_size(all, prefix.len() - leaf.leaf().prefix_len());
            // A run of inserts that has made up a quarter of the leaf is expected to continue.
            let run_continues = run_length > entries.len() / 4;
            // A leaf of the largest size is replaced by another of that size only if an eighth of
            // it is free afterwards, for the same reason as in (3a).
            let most = config.most_beside(prefix.len());
            let spare = if capacity < most { 0 } else { most / 8 };
            if need + spare <= most {
                // (3b) One larger leaf.
                let capacity = self.capacity(need, run_continues, prefix.len());
                self.replace(guard, at.key, leaf, entries, &prefix, capacity);
            } else if entries.len() < 2 {
                // A single entry can't be split. Its leaf is as large as necessary.
                let capacity = (need + need / 8).min(MOST_CONTENT);
                self.replace(guard, at.key, leaf, entries, &prefix, capacity);
            } else {
                // (3c) Two leaves. In a run of inserts, cut beside the new entry, so that the run
                // leaves full leaves behind. Otherwise `split` cuts in the middle.
                let cut = run_continues.then_some(at.i + usize::from(leaf.descends()));
                self.inner
                    .split(&self.shared, leaf, at.key, entries, cut, guard);
            }
        });
    }

    /// Splits a leaf that isn't full, because writers often wait for its lock. With two leaves they
    /// wait for each other half as often.
    fn split_early(&self, guard: &Guard, at: &FoundSlot<'_>, leaf: LockedTreeLeaf<'_>) {
        // The new entry has been stored in the leaf already.
        with_entries(|entries| {
            entries.collect(&leaf);
            self.inner
                .split(&self.shared, leaf, at.key, entries, None, guard);
        });
    }
}

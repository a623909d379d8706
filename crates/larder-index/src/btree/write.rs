//! Writes of the B+-tree.
//!
//! 1. Find the leaf and lock it. An insert tries the tail first, or the leaf that a hint of
//!    `prefetch_leaf` names. A removal, and an update of what is there, first read the leaf: they
//!    lock it only if there is an entry.
//! 2. Search the leaf. Nobody else writes to it while the lock is held, so no read is torn.
//! 3. Change the leaf in place if there is room. Otherwise compact it, replace it by a larger one,
//!    or split it; and if the new position doesn't begin with its prefix, replace it by one with a
//!    shorter prefix (`overflow`, which has 3a to 3c and 3p).
//! 4. If a removal leaves fewer live bytes than a quarter of the largest leaf size, shrink the leaf
//!    or merge it with a neighbour (`reclaim`).
//! 5. Unlock. The store of the new version is the linearisation point. If the leaf is replaced, the
//!    linearisation point is the store that marks it obsolete.
//! 6. Retire the objects that were removed. This may free arbitrary garbage, so no lock is held.
//!
//! ```text
//!   1, 2              the caller's function          3                         4, 5, 6
//!
//!   append ─────────→ predicate ────────────────────→ one more slot ──────────→ unlock
//!
//!   find_locked ────→ update_found, put_found ─┬────→ put_at ─┬─ in place ────→ finish_in_place
//!                                              │              ├─ handle_overflow  (3a, 3b, 3c)
//!                                              │              └─ shorten_prefix   (3p)
//!                                              ├────→ splice_at, in place ────→ finish_in_place
//!                                              │
//!   find_present ───→ remove_found ────────────┴────→ remove_at ──────────────→ reclaim_space
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
use crate::btree::found_slot::{FoundSlot, LockedSlot};
use crate::btree::leaf::{LockedTreeLeaf, Obsolete, TreeLeaf};
use crate::btree::record::Record;
use crate::btree::search_key::SearchKey;
use crate::contention::{CONTENDED, HIGH_CONTENTION, UNCONTENDED};
use crate::seqlock::words::Torn;
use crate::traits::Part;
use crate::{hint::Hint, mark::Mark, sync::Backoff};
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
            // The leaf is locked at the version that was read.
            Ok(Some(found)) => {
                self.update_found::<false>(guard, found, scratch, |old, new, _| f(old, new))
            }
            // The position is absent. No lock was taken: the operation is a read.
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
            // Nothing to do, or nothing to do it to. Returning drops the lock of an unchanged leaf.
            (Change::Keep, _) | (Change::Remove | Change::Splice(_), None) => return false,
            (Change::Remove, Some(record)) => {
                self.remove_at(guard, &slot, leaf, record, contention);
                return true;
            }
            // The entry gets its mark while the number of its slot is known. Its slot keeps the
            // mark, unless the leaf has no room for the new record (3).
            (Change::Put | Change::Splice(_), _) => {
                mark.set::<MARKED, _>(slot.entry(), |i, mark| leaf.set_mark(i, mark));
            }
        }
        // `scratch` has the bytes of a part. Try to write only these.
        if let Change::Splice(part) = change {
            match self.splice_at(guard, &slot, leaf, part, scratch, contention) {
                None => return true,
                // Store the value as a whole.
                Some(unchanged) => leaf = unchanged,
            }
            change.complete_value(slot.value(&leaf), scratch);
        }
        self.put_at(guard, &slot, leaf, scratch, contention);
        true
    }

    /// Steps 3 to 6 of an update that replaces a part of a value by the bytes `new`. Returns the
    /// locked leaf, whose value is as it was, if the value has to be stored as a whole.
    #[inline(always)]
    fn splice_at<'g>(
        &self,
        guard: &Guard,
        at: &FoundSlot<'_>,
        mut leaf: LockedTreeLeaf<'g>,
        part: Part,
        new: &[u8],
        contention: i32,
    ) -> Option<LockedTreeLeaf<'g>> {
        // An absent value has no part.
        let Some(record) = &at.record else {
            return Some(leaf);
        };
        if record.is_outside() {
            // (3) An outside value is copied once, with the other part.
            let spliced = leaf.handle(record).and_then(|old| {
                self.spliced(at.suffix.len(), leaf.outside(old), part.range(), new)
            });
            // The new value is short enough to be inside the leaf.
            let Some(handle) = spliced else {
                return Some(leaf);
            };
            self.replace_object(guard, at, leaf, contention, handle);
            return None;
        }
        // (3) The other bytes of the value stay where they are, if the part keeps its length.
        let Some(place) = part.place_for(new) else {
            return Some(leaf);
        };
        leaf.overwrite(record, place, new);
        self.finish_in_place(guard, at, leaf, contention);
        None
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
        // Neither the predicate nor the preparation has been called yet (B22).
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
        // From here on the value is stored. The caller may keep the old one first.
        if MARKED {
            mark.now = prepare(old, mark.now);
        }
        let previous = Previous::of(slot.record.is_some());
        // As in `update_found`. A new entry gets no mark: it has no slot yet.
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
            // The leaf is locked at the version that was read. An absent position takes no lock.
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
        // In the first two cases, returning drops the lock of an unchanged leaf.
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
            && self.is_sparse(&leaf)
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
        // (3p) All positions of a leaf begin with its prefix. If the new one doesn't, the leaf must
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
            // The run is recorded even if there is no room: (3b) and (3c) size and cut the new
            // leaves by it.
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
            // (3a) to (3c) There was no room, and no entry has been changed yet (`overflow`).
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
}

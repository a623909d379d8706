//! How the B+-tree is written.
//!
//! 1. Find the leaf and lock it. An insert first looks at the tail.
//! 2. Search it. The lock's holder reads nothing torn.
//! 3. Change it in place if there is room. If there is none:
//!    a. move its records together, if that makes enough room;
//!    b. else replace it by a larger one of the same range, up to the size at which leaves split;
//!    c. else split it. The entry that had no room goes straight to the successors.
//!
//!    If the new position doesn't begin with the leaf's prefix, one with a shorter prefix takes the
//!    leaf's place (`shorten_prefix`).
//! 4. After a removal a leaf that is nearly empty gets a smaller one in its place, unless it is
//!    small, or merges with a neighbour.
//! 5. Unlock. The store of the new version is the linearisation point; where leaves are replaced,
//!    the store that makes the old one obsolete.
//! 6. Retire what the change took out, when no lock is held.
//!
//! ```text
//!  find_locked ─→ put_at ─→ in place                      3
//!                       ├─→ shorten_prefix ─→ replace      3, the prefix
//!                       ├─→ make_room ─→ compact           3a
//!                       │            ├─→ replace           3b
//!                       │            └─→ split             3c
//!                       └─→ split_early                    writers meet here often
//!              ─→ remove_at ─→ reclaim_space ─→ shrink, merge     4
//! ```
//!
//! Invariants:
//! 1. The lock that a writer takes is passed on by value: whoever has a `LockedTreeLeaf` holds it,
//!    and who takes it ends it, by unlocking or by making the leaf obsolete.
//! 2. A locked leaf has the position's range, so a [`Place`] holds while the lock does and nothing
//!    is written.
//! 3. A caller's function is asked under the lock, once, before anything is changed.

use super::BPlusTree;
use crate::btree::entries::{with_entries, Entries};
use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf, Obsolete, TreeLeaf, MOST_CONTENT};
use crate::btree::locked::lives_outside;
use crate::btree::prefix::Prefix;
use crate::btree::record::{Record, Stored, SLOT};
use crate::btree::run::with_run;
use crate::btree::search_key::SearchKey;
use crate::contention::{CONTENDED, HIGH_CONTENTION, UNCONTENDED};
use crate::outside::Handle;
use crate::scratch::with_scratch;
use crate::sync::Backoff;
use crate::{Change, Predicate, Previous, Updater};
use crossbeam_epoch::Guard;

/// Where an entry is or would be.
struct Place<'a> {
    key: SearchKey<'a>,
    /// The part of the position that a slot has: five bytes behind the leaf's prefix.
    head: u64,
    /// The position without the leaf's prefix.
    suffix: &'a [u8],
    /// The number of its slot.
    i: usize,
    /// The entry's record, if it is there.
    record: Option<Record>,
}

impl<'a> Place<'a> {
    #[inline]
    fn new(
        key: SearchKey<'a>,
        leaf: &LockedTreeLeaf<'_>,
        i: usize,
        record: Option<Record>,
    ) -> Self {
        // A position that doesn't begin with the prefix has neither head nor suffix in this leaf.
        // It has no record either, and `put_at` doesn't use them.
        let prefix = leaf.leaf().prefix_len();
        Place {
            key,
            head: key.head(prefix),
            suffix: key.suffix(prefix).unwrap_or(&[]),
            i,
            record,
        }
    }

    /// The value there, if there is one; nothing is written to the leaf while it is looked at.
    #[inline]
    fn value<'l>(&self, leaf: &'l LockedTreeLeaf<'_>) -> Option<&'l [u8]> {
        let record = self.record.as_ref();
        record.map(|record| leaf.value(self.i, record))
    }
}

impl BPlusTree {
    /// The leaf that has the position, locked, and its contention.
    #[inline]
    fn lock<'g>(&self, guard: &'g Guard, key: SearchKey<'_>) -> (LockedTreeLeaf<'g>, i32) {
        let backoff = Backoff::new();
        loop {
            // A leaf that is not obsolete has the range that its path says, so one that was locked
            // is the right one.
            match self.inner.find(key, guard).lock() {
                Ok((mut locked, contended)) => {
                    if contended {
                        self.shared.counters.contended();
                    }
                    // Statistics are the lock holder's to write, like the content.
                    let contention =
                        locked.add_contention(if contended { CONTENDED } else { UNCONTENDED });
                    return (locked, contention);
                }
                Err(Obsolete) => backoff.snooze(),
            }
        }
    }

    /// Locks the leaf that has the position, and finds the place there; gives the leaf's contention
    /// with it.
    #[inline(always)]
    fn find_locked<'g, 'p>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'p>,
    ) -> (LockedTreeLeaf<'g>, Place<'p>, i32) {
        // (1) A position above all entries of the last leaf is in its range (see `tail`), so that
        // leaf is found without a descent.
        if let Some(leaf) = self.inner.tail.find(key, guard) {
            if let Some(mut locked) = self.lock_tail(leaf, key) {
                let contention = locked.add_contention(UNCONTENDED);
                // `lock_tail` has compared: the place is behind the last entry.
                let (i, record) = (locked.len(), None);
                let place = Place::new(key, &locked, i, record);
                return (locked, place, contention);
            }
        }
        self.find_there(guard, key)
    }

    /// As `find_locked`, from the root, without a look at the tail. Removals begin here: few of
    /// them are at the end.
    #[inline(always)]
    fn find_there<'g, 'p>(
        &self,
        guard: &'g Guard,
        key: SearchKey<'p>,
    ) -> (LockedTreeLeaf<'g>, Place<'p>, i32) {
        // (1), (2)
        let (locked, contention) = self.lock(guard, key);
        let spot = locked.search(key);
        let place = Place::new(key, &locked, spot.i, spot.record);
        (locked, place, contention)
    }

    /// Locks the last leaf, if nobody else has, and if the position is above all that are there.
    #[inline]
    fn lock_tail<'g>(&self, leaf: TreeLeaf<'g>, key: SearchKey<'_>) -> Option<LockedTreeLeaf<'g>> {
        // The lock is only tried: if another thread has it, this one descends from the root, and
        // waits for the leaf that it finds there.
        let locked = leaf.try_lock().ok().flatten()?;
        if locked.is_all_below(key) {
            self.inner.tail.hit();
            return Some(locked);
        }
        // The lock is let go of unchanged. A tail that is missed often is no use.
        self.inner.tail.missed();
        None
    }

    /// As `Unique::update_with`.
    pub(crate) fn update(
        &self,
        guard: &Guard,
        position: &[u8],
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_, '_>,
    ) -> bool {
        let (locked, place, contention) = self.find_locked(guard, SearchKey::new(position));
        scratch.clear();
        // (2) The caller sees the value in place, under the lock (invariant 3).
        let change = f(place.value(&locked), scratch);
        let value = match change {
            Change::Keep => return false,
            Change::Remove => {
                let Some(record) = &place.record else {
                    return false;
                };
                self.remove_at(guard, &place, locked, record, contention);
                return true;
            }
            Change::Put(value) => value,
            Change::PutScratch => &scratch[..],
        };
        self.put_at(guard, &place, locked, value, contention);
        true
    }

    /// As `Unique::put`.
    pub(crate) fn put(
        &self,
        guard: &Guard,
        position: &[u8],
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let key = SearchKey::new(position);
        // `append` has asked nothing and changed nothing where it gives None (invariant 3).
        match self.append(guard, key, value, predicate) {
            Some(was) => was,
            None => self.put_anywhere(guard, key, value, predicate),
        }
    }

    /// Stores a short value at the end of the last leaf, if inserts go on there and it has room.
    /// Otherwise None, and nothing was done or asked.
    #[inline]
    fn append(
        &self,
        guard: &Guard,
        key: SearchKey<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Option<Previous> {
        // A locked leaf that isn't obsolete is still the last one. What is above one of its entries
        // is in its range.
        let mut locked = self.inner.tail.find(key, guard)?.try_lock().ok()??;
        // The slot is above the last one, so the key is new.
        let next = locked.append_slot(key, value.len())?;
        self.inner.tail.hit();
        if !predicate(None) {
            return Some(Previous::Refused);
        }
        locked.append(next, value);
        self.uncount(guard, &locked, key);
        Some(Previous::Absent)
    }

    #[inline(never)]
    fn put_anywhere(
        &self,
        guard: &Guard,
        key: SearchKey<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let (locked, place, contention) = self.find_locked(guard, key);
        if !predicate(place.value(&locked)) {
            return Previous::Refused;
        }
        let was = Previous::of(place.record.is_some());
        self.put_at(guard, &place, locked, value, contention);
        was
    }

    /// As `Unique::remove`.
    pub(crate) fn remove(
        &self,
        guard: &Guard,
        position: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let (locked, place, contention) = self.find_there(guard, SearchKey::new(position));
        if !predicate(place.value(&locked)) {
            return Previous::Refused;
        }
        let Some(record) = &place.record else {
            return Previous::Absent;
        };
        self.remove_at(guard, &place, locked, record, contention);
        Previous::Present
    }

    #[inline(always)]
    fn remove_at(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        mut leaf: LockedTreeLeaf<'_>,
        record: &Record,
        contention: i32,
    ) {
        // (3) The handle is read before its record goes, and retired after the unlock: its end may
        // call anything.
        let handle = leaf.handle(record);
        leaf.remove(at.i, record);
        self.uncount(guard, &leaf, at.key);
        // A leaf where writers meet is left large. Of a large leaf only each fourth removal looks.
        let len = leaf.len();
        if contention < HIGH_CONTENTION
            && (len < 8 || len.is_multiple_of(4))
            && leaf.used() < self.shared.config.most / 4
        {
            // (4)
            self.reclaim_space(guard, at.key, leaf);
        } else {
            // (5)
            drop(leaf);
        }
        // (6)
        self.shared.retire(guard, handle);
    }

    /// The count of a locked leaf that has the position has changed: the node above it is told, if
    /// it has the count.
    #[inline(always)]
    pub(super) fn uncount(&self, guard: &Guard, leaf: &LockedTreeLeaf<'_>, key: SearchKey<'_>) {
        if leaf.is_counted() {
            self.inner.uncount(leaf, key, guard);
        }
    }

    /// Gives room back that removals have left: a leaf that is mostly empty gets a smaller one in
    /// its place, or merges with a neighbour.
    pub(super) fn reclaim_space(
        &self,
        guard: &Guard,
        position: SearchKey<'_>,
        leaf: LockedTreeLeaf<'_>,
    ) {
        let mut leaf = leaf;
        // A quarter full, and a smaller size would do: between the bounds for growing and shrinking
        // a leaf stays as it is. So does a small leaf, or a table that is emptied and filled again
        // would have two new leaves each time.
        let (used, config) = (leaf.used(), &self.shared.config);
        if leaf.leaf().capacity() > config.most / 8
            && used < leaf.leaf().capacity() / 4
            && config.capacity_for(used, leaf.leaf().prefix_len()) < leaf.leaf().capacity()
        {
            // The new leaf is unlocked when it is published: it is locked again for the merge, if
            // free.
            self.shrink(guard, position, leaf);
            // Any other writer may have come in between: then it is up to that one.
            match self.inner.find(position, guard).try_lock() {
                Ok(Some(next)) => leaf = next,
                _ => return,
            }
        }
        if used < config.most / 4 {
            self.merge(guard, position, leaf);
        }
    }

    /// Puts a leaf of the same range and entries, of no more room than it needs, in the place of
    /// this one.
    fn shrink(&self, guard: &Guard, position: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        let capacity = self
            .shared
            .config
            .capacity_for(leaf.used(), leaf.leaf().prefix_len());
        // The entries stay in the old leaf, which is locked until `replace` has copied them.
        with_entries(|entries| {
            entries.collect(&leaf);
            let prefix = leaf.leaf().prefix_and_fences();
            self.replace(guard, position, leaf, (entries, &prefix), capacity);
        });
    }

    /// Puts a leaf with the same range and these entries, and this room, in the place of one.
    fn replace(
        &self,
        guard: &Guard,
        position: SearchKey<'_>,
        leaf: LockedTreeLeaf<'_>,
        (entries, prefix): (&Entries, &Prefix<'_>),
        capacity: usize,
    ) {
        let new = entries.build(&leaf, 0..entries.len(), capacity, prefix);
        // Statistics outlive the leaf: a run of inserts is still one in its successor.
        new.inherit(leaf.leaf());
        self.inner.replace(&self.shared, leaf, position, new, guard);
    }

    /// Merges the leaf with a neighbour, and the result with its neighbour, while they are sparse.
    fn merge(&self, guard: &Guard, position: SearchKey<'_>, leaf: LockedTreeLeaf<'_>) {
        let mut leaf = leaf;
        // Each turn locks the leaf that the merge has published, if it is free and still sparse.
        while self.inner.merge(&self.shared, leaf, position, guard) {
            match self.inner.find(position, guard).try_lock() {
                Ok(Some(next)) if next.used() < self.shared.config.most / 4 => leaf = next,
                _ => return,
            }
        }
    }

    /// Stores a value, making room if there is none.
    #[inline(always)]
    fn put_at(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: LockedTreeLeaf<'_>,
        value: &[u8],
        contention: i32,
    ) {
        let mut leaf = leaf;
        // (3) Every entry begins with the leaf's prefix, or the prefix must be shortened first.
        if at.record.is_none() && leaf.leaf().beside_prefix(at.key).is_ne() {
            return self.shorten_prefix(guard, at, leaf, value);
        }
        // An outside object is made before the leaf is changed: no reader meets a handle without
        // one.
        let stored = self.stored(at.key, at.suffix.len(), value);
        // (3) In the place of the old value, or as a new entry.
        let old = at.record.and_then(|record| leaf.handle(&record));
        let (done, appends) = match &at.record {
            Some(record) => {
                let done = leaf.replace_value(at.i, at.head, at.suffix, stored, record);
                (done, 0)
            }
            None => {
                let appends = leaf.note_insert(at.i);
                let done = leaf.put_entry(at.i, at.head, at.suffix, stored);
                if done {
                    self.uncount(guard, &leaf, at.key);
                }
                (done, appends)
            }
        };
        if !done {
            // There is no room, and no entry was changed so far.
            self.make_room(guard, at, leaf, stored, appends);
        } else if contention > HIGH_CONTENTION && leaf.len() > 1 {
            self.split_early(guard, at, leaf);
        } else {
            // (5)
            drop(leaf);
        }
        // (6) In each of these cases the leaf was unlocked or made obsolete (invariant 1), and no
        // leaf that can be reached has the old handle.
        self.shared.retire(guard, old);
    }

    /// What a leaf stores for a value, under a position that has so many bytes behind its prefix.
    #[inline(always)]
    fn stored<'v>(&self, key: SearchKey<'_>, suffix: usize, value: &'v [u8]) -> Stored<'v> {
        if !lives_outside(suffix, value.len(), self.shared.config.most) {
            return Stored::Inline(value);
        }
        let (handle, bytes) = Handle::new(key.bytes(), value);
        self.shared.counters.add_bytes(bytes as isize);
        Stored::Outside(handle)
    }

    /// Stores a value under a position that doesn't begin with the leaf's prefix, and so comes
    /// before all its entries or behind them. A leaf with a shorter prefix takes the leaf's place.
    /// It may be larger than a leaf should be; the next entry that has no room then splits it.
    #[cold]
    #[inline(never)]
    fn shorten_prefix(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: LockedTreeLeaf<'_>,
        value: &[u8],
    ) {
        let (mut leaf, position) = (leaf, at.key.bytes());
        // The bytes that the fences give stay: every position of the range begins with them.
        let old = leaf.leaf().prefix_and_fences();
        let prefix = old.shared_with(position);
        let stored = self.stored(at.key, position.len() - prefix.len(), value);
        let appends = leaf.note_insert(at.i);
        // The new leaf has all entries of the old one, and the new entry first or last.
        let new = with_run(|run| {
            if at.i == 0 {
                run.push(position, stored);
            }
            leaf.collect_all(run);
            if at.i > 0 {
                run.push(position, stored);
            }
            // Each suffix is longer by what the prefix is shorter.
            let need = run.sizes(0..run.len(), prefix.len());
            let capacity = self.capacity(need, appends > run.len() / 4, prefix.len());
            NewTreeLeaf::build(run, 0..run.len(), capacity, &prefix)
        });
        new.inherit(leaf.leaf());
        self.inner.replace(&self.shared, leaf, at.key, new, guard);
    }

    /// The capacity of a new leaf with `need` bytes of slots and records. In a run of inserts
    /// (`runs`) it gets half as much again.
    fn capacity(&self, need: usize, runs: bool, prefix: usize) -> usize {
        let config = &self.shared.config;
        let more = if runs { need / 2 } else { 0 };
        let most = config.most_beside(prefix).max(need);
        config.capacity_for((need + more).min(most), prefix)
    }

    /// Steps 3a to 3c: the entry has no room in the leaf.
    #[inline(never)]
    fn make_room(
        &self,
        guard: &Guard,
        at: &Place<'_>,
        leaf: LockedTreeLeaf<'_>,
        stored: Stored<'_>,
        appends: usize,
    ) {
        let mut leaf = leaf;
        let config = &self.shared.config;
        if let Some(record) = &at.record {
            // A value of another length: the old entry goes, and the new one comes under the same
            // lock. So readers see both changes at once.
            leaf.remove(at.i, record);
        }
        let need = leaf.used() + SLOT + stored.record(at.suffix.len());
        let capacity = leaf.leaf().capacity();
        // (3a) Removed records have left free bytes between others. Records are moved together only
        // if an eighth of the leaf is free then; otherwise the next inserts would move them again.
        let spare = capacity / 8;
        if need + spare <= capacity {
            with_entries(|entries| with_scratch(|buffer| leaf.compact(entries, buffer)));
            let done = leaf.put_entry(at.i, at.head, at.suffix, stored);
            debug_assert!(done, "moving together made room");
            if at.record.is_none() {
                self.uncount(guard, &leaf, at.key);
            }
            return;
        }
        // (3b), (3c) New leaves are made of `entries`: those of the old leaf where they lie, and
        // the new one among them. The old leaf stays locked until they are.
        with_entries(|entries| {
            entries.collect(&leaf);
            entries.insert(at.i, at.suffix, stored);
            // The handle of a new outside object is in `entries` now, and goes to one successor.
            // If the entries have more in common than the old prefix, the new one is longer, and
            // they need fewer bytes.
            let all = 0..entries.len();
            let prefix = entries.prefix(&leaf, all.clone(), leaf.leaf().prefix_and_fences());
            let need = entries.sizes(all, prefix.len() - leaf.leaf().prefix_len());
            // `appends` is how many inserts in a row went each beside the one before. A run that
            // has made a quarter of the leaf is expected to go on.
            let runs = appends > entries.len() / 4;
            // A leaf that is as large as leaves get is replaced by one of the same size only if an
            // eighth of that is free, for the reason of (3a).
            let most = config.most_beside(prefix.len());
            let spare = if capacity < most { 0 } else { most / 8 };
            if need + spare <= most {
                // (3b)
                let capacity = self.capacity(need, runs, prefix.len());
                self.replace(guard, at.key, leaf, (entries, &prefix), capacity);
            } else if entries.len() < 2 {
                // One entry can't be split: its leaf is as large as it needs.
                let capacity = (need + need / 8).min(MOST_CONTENT);
                self.replace(guard, at.key, leaf, (entries, &prefix), capacity);
            } else {
                // (3c)
                // In a run of inserts the cut is beside the new entry, so that the run leaves full
                // leaves behind. Otherwise `split` cuts in the middle.
                let cut = runs.then_some(at.i + usize::from(leaf.descends()));
                self.inner
                    .split(&self.shared, leaf, at.key, entries, cut, guard);
            }
        });
    }

    /// Splits a leaf that isn't full, since writers often wait for its lock: with two leaves fewer
    /// do.
    fn split_early(&self, guard: &Guard, at: &Place<'_>, leaf: LockedTreeLeaf<'_>) {
        // The entry was stored already, so the leaf's own entries are all that the successors get.
        with_entries(|entries| {
            entries.collect(&leaf);
            self.inner
                .split(&self.shared, leaf, at.key, entries, None, guard);
        });
    }
}

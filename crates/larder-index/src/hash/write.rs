//! Writes of the hash order.
//!
//! 1. Find the leaf and lock it. If another thread holds the lock, record the contention. If the
//!    leaf is obsolete, search for its successor from the root. A removal, and an update of what is
//!    there, first read the leaf (`find_present`): they lock it only if there is an entry.
//! 2. Search the leaf. Nobody else writes to it while the lock is held, so no read is torn.
//! 3. Change the bucket in place if there is room, and the leaf isn't full (`change`).
//! 4. Otherwise, or if a removal has left little in the leaf, replace the leaf by a larger or
//!    smaller one, split it, or merge it with its buddy (`resize`).
//! 5. Unlock. The store of the new version is the linearisation point. If the leaf is replaced, the
//!    linearisation point is the store that marks it obsolete.
//! 6. Retire the objects that were removed. This may free arbitrary garbage, so no lock is held.

use super::HashOrder;
use crate::contention::{CONTENDED, HIGH_CONTENTION, UNCONTENDED};
use crate::hash::bucket::{entries, Bucket, Home};
use crate::hash::change::Body;
use crate::hash::hit::Hit;
use crate::hash::key_rule::KeyRule;
use crate::hash::leaf::{HashLeaf, LockedHashLeaf};
use crate::hash::read::LocatedKey;
use crate::hash::removed::{self, LeafId};
use crate::hash::resize::{NewEntry, Partner, FEW};
use crate::hash::search::Undecided;
use crate::hash::shape::{body_size, lives_inside, truncated, SLOT_ENTRY};
use crate::hash::sizes::is_sparse;
use crate::mark::Mark;
use crate::memory;
use crate::outside::Handle;
use crate::sync::Backoff;
use crate::{Change, Key, Previous};
use crossbeam_epoch::Guard;
use std::ops::Range;

/// Where a key belongs, after step 1.
///
/// Nothing borrows it whole. If something did, all parts would be kept in memory instead of
/// registers.
pub(crate) struct LockedKey<'g> {
    /// The leaf of the key, locked.
    pub(crate) leaf: LockedHashLeaf<'g>,
    /// The key's home in the leaf.
    pub(super) home: Home<'g>,
    /// The leaf's contention counter, which already includes this write.
    pub(super) contention: i32,
}

/// The locked leaf of a key, and the key's entry in it, after step 2. `H` is a [`Hit`], or an
/// `Option` of one if the key may be absent.
pub(crate) struct Found<'g, H> {
    pub(crate) locked: LockedKey<'g>,
    pub(crate) hit: H,
}

impl<R: KeyRule> HashOrder<R> {
    /// Step 1: locks the leaf whose range has the hash. Prefetches the marks, if `MARKED` is set.
    #[inline(always)]
    fn lock<'g, const MARKED: bool>(&self, guard: &'g Guard, hash: u64) -> LockedKey<'g> {
        let mut contended = false;
        loop {
            let leaf = self.trie.find(hash, guard);
            let home = leaf.home(hash);
            leaf.prefetch(&home);
            if MARKED {
                // They are neither in the head nor in a bucket.
                memory::prefetch(leaf.tail_marks().as_ptr().cast());
            }
            // Between the search and the lock, another writer may have replaced the leaf. It would
            // then be obsolete, and `try_lock` would fail. A leaf that isn't obsolete covers the
            // range that its path in the trie says, so if the lock is taken, this is the right
            // leaf.
            if let Ok(Some(mut leaf)) = leaf.try_lock() {
                let add = if contended { CONTENDED } else { UNCONTENDED };
                let contention = leaf.add_contention(add);
                return LockedKey {
                    leaf,
                    home,
                    contention,
                };
            }
            // The leaf is locked or obsolete. Wait, and search for the leaf again.
            contended |= self.wait(leaf);
        }
    }

    /// Waits while a writer holds the lock. Returns whether the leaf was then still in use, which
    /// counts as contention. If it is obsolete, pauses once: its successors are about to be
    /// published.
    #[cold]
    #[inline(never)]
    fn wait(&self, leaf: HashLeaf<'_>) -> bool {
        // `version` blocks until the leaf is unlocked, and fails if it is obsolete.
        let contended = leaf.version().is_ok();
        if contended {
            self.shared.counters.contended();
        } else {
            Backoff::new().snooze();
        }
        contended
    }

    /// Steps 1 and 2: locks the leaf of a key, and finds the key's entry. Prefetches the marks, if
    /// `MARKED` is set.
    #[inline(always)]
    pub(crate) fn find_locked<'g, const MARKED: bool>(
        &self,
        guard: &'g Guard,
        key: Key<'_>,
    ) -> Found<'g, Option<Hit<'g>>> {
        let hash = truncated(key.hash);
        // (1) Lock the leaf.
        let locked = self.lock::<MARKED>(guard, hash);
        let form = self.keys.form(key.bytes);
        // (2) Search it. While we hold the lock the search can't fail with `Torn`.
        let view = locked.leaf.view();
        let hit = view.find(hash, &locked.home, key.bytes, form);
        debug_assert!(hit.is_ok(), "a leaf was torn under its lock");
        let hit = hit.unwrap_or_default();
        Found { locked, hit }
    }

    /// Steps 1 and 2 for a write that may have nothing to do. The leaf is read as by a lookup.
    ///
    /// - If `concerns` returns `false` for the result, there is nothing to do: returns `None`. No
    ///   lock was taken, and the linearisation point is that of a lookup.
    /// - Otherwise takes the lock, if the version is still the one that was read.
    ///
    /// # Errors
    /// `Undecided` if the key is long, if another writer holds the lock, or if one has changed the
    /// leaf since the read. The caller then makes the whole write by `find_locked`, in a function
    /// that isn't inlined. So the result stays in registers here.
    #[inline(always)]
    fn find_unlocked<'g>(
        &self,
        guard: &'g Guard,
        key: Key<'_>,
        concerns: impl FnOnce(&Option<Hit<'g>>) -> bool,
    ) -> Result<Option<Found<'g, Option<Hit<'g>>>>, Undecided> {
        // (1) Find the leaf. If a writer holds its lock, a read would have to wait for the unlock.
        // The caller waits for the lock itself instead.
        let located = self.locate(guard, key);
        let LocatedKey { leaf, home } = located;
        if leaf.is_locked() {
            return Err(Undecided);
        }
        // (2) Search it without the lock. The result is validated: it was true at one instant.
        let read = self.try_read_at(located, key, |_, hit| Ok(hit))?;
        if !concerns(&read.result) {
            return Ok(None);
        }
        // The lock is taken only at the version that was read. So nobody has written since the
        // read, and the result of the search is still valid.
        let mut leaf = leaf.try_lock_at(read.version).ok_or(Undecided)?;
        let contention = leaf.add_contention(UNCONTENDED);
        let locked = LockedKey {
            leaf,
            home,
            contention,
        };
        let hit = read.result;
        Ok(Some(Found { locked, hit }))
    }

    /// Steps 1 and 2 for a write that concerns only a key that is there. Returns `None` if it is
    /// absent.
    ///
    /// # Errors
    /// See `find_unlocked`.
    #[inline(always)]
    pub(crate) fn find_present<'g>(
        &self,
        guard: &'g Guard,
        key: Key<'_>,
    ) -> Result<Option<Found<'g, Hit<'g>>>, Undecided> {
        let found = self.find_unlocked(guard, key, Option::is_some)?;
        Ok(found.and_then(|Found { locked, hit }| Some(Found { locked, hit: hit? })))
    }

    /// Steps 1 and 2 for a write that concerns only an absent key. Returns `None` if it is there.
    ///
    /// # Errors
    /// See `find_unlocked`.
    #[inline(always)]
    pub(crate) fn find_absent<'g>(
        &self,
        guard: &'g Guard,
        key: Key<'_>,
    ) -> Result<Option<LockedKey<'g>>, Undecided> {
        let found = self.find_unlocked(guard, key, Option::is_none)?;
        Ok(found.map(|found| found.locked))
    }

    /// Calls `f` with the value under a key that was found, and makes the change that it returns.
    /// `f` also gets the entry's mark, if `MARKED` is set, and otherwise 0.
    #[inline(always)]
    pub(super) fn update_found<const MARKED: bool>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        Found { mut locked, hit }: Found<'_, Option<&Hit<'_>>>,
        scratch: &mut Vec<u8>,
        mut f: impl FnMut(Option<&[u8]>, &mut Vec<u8>, &mut u64) -> Change,
    ) -> bool {
        scratch.clear();
        let mut mark = Mark::of::<MARKED, _>(hit, |hit| locked.leaf.mark(hit));
        // The callback decides under the lock. It may write the new value to `scratch`.
        let old = hit.map(|hit| locked.leaf.value(hit));
        let change = f(old, scratch, &mut mark.now);
        // Try a change of a part of the value first. Whatever it can't do is left to
        // `change_whole`, with the whole new value in `scratch`.
        match (change, hit) {
            // An absent value has no part.
            (Change::Splice(_), None) => return false,
            (Change::Splice(part), Some(hit)) => match part.range() {
                // (3) The bytes of the value after the part stay where they are.
                at if !hit.outside && locked.leaf.replace_part(hit, at.clone(), scratch) => {
                    mark.set::<MARKED, _>(Some(hit), |hit, mark| {
                        locked.leaf.set_mark(hit.bucket, hit.slot, mark)
                    });
                    self.finish_in_place(guard, locked.leaf, locked.contention);
                    return true;
                }
                // An outside value is copied once, with the other part. The new object is complete
                // before the leaf leads to it (O1).
                part if hit.outside => {
                    let key_len = key.bytes.len();
                    if let Some(new) = self.spliced(&locked.leaf, hit, key_len, part, scratch) {
                        mark.set::<MARKED, _>(Some(hit), |hit, mark| {
                            locked.leaf.set_mark(hit.bucket, hit.slot, mark)
                        });
                        let at = (hit.bucket, hit.from);
                        self.replace_object(guard, locked.leaf, locked.contention, at, new);
                        return true;
                    }
                    // The new value belongs inside the leaf.
                    change.complete_value(Some(locked.leaf.value(hit)), scratch);
                }
                // The bucket has no room for the longer part, its unit is more than a byte, or the
                // object has become too long for the leaf.
                _ => change.complete_value(Some(locked.leaf.value(hit)), scratch),
            },
            _ => {}
        }
        let found = Found { locked, hit };
        self.change_whole::<MARKED>(guard, key, found, change, scratch, mark)
    }

    /// Makes a change of an entry as a whole, which was decided under the lock: `new` is its new
    /// value, if it gets one. Returns whether there was anything to change.
    #[inline(always)]
    pub(crate) fn change_whole<const MARKED: bool>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        Found { mut locked, hit }: Found<'_, Option<&Hit<'_>>>,
        change: Change,
        new: &[u8],
        mark: Mark,
    ) -> bool {
        match (change, hit) {
            // Returning drops the lock of an unchanged leaf, whose version stays the same.
            (Change::Keep, _) | (Change::Remove, None) => return false,
            // Steps 3 to 6 of a removal.
            (Change::Remove, Some(hit)) => {
                self.remove_hit(guard, key.hash, locked, hit);
                return true;
            }
            // `new` is the whole value, also if only a part of it differs from the old one.
            (Change::Put | Change::Splice(_), _) => {}
        }
        // An entry that is there gets its mark now, while the hit says where it is: `store` may
        // move it. A new entry gets its mark from `store`, when it has a slot entry.
        let mark_of_new = mark.of_new::<MARKED>(hit.is_none());
        mark.set::<MARKED, _>(hit, |hit, mark| {
            locked.leaf.set_mark(hit.bucket, hit.slot, mark)
        });
        self.store(guard, key, locked, hit, new, mark_of_new);
        true
    }

    /// Removes the entry of a key, if `agrees` returns `true` for it, under the lock.
    #[inline(always)]
    pub(super) fn remove_if(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut agrees: impl FnMut(&LockedHashLeaf<'_>, &Hit<'_>) -> bool,
    ) -> Previous {
        match self.find_present(guard, key) {
            // The leaf is locked at the version that was read. An absent key takes no lock.
            Ok(Some(found)) => self.remove_found(guard, key, found, agrees),
            Ok(None) => Previous::Absent,
            Err(Undecided) => self.remove_locked(guard, key, &mut agrees),
        }
    }

    /// The slow path of `remove_if` (see `find_present`).
    #[inline(never)]
    fn remove_locked(
        &self,
        guard: &Guard,
        key: Key<'_>,
        agrees: &mut dyn FnMut(&LockedHashLeaf<'_>, &Hit<'_>) -> bool,
    ) -> Previous {
        let Found { locked, hit } = self.find_locked::<false>(guard, key);
        match hit {
            Some(hit) => self.remove_found(guard, key, Found { locked, hit }, agrees),
            None => Previous::Absent,
        }
    }

    /// Removes an entry that was found, if `agrees` returns `true` for it.
    #[inline(always)]
    fn remove_found(
        &self,
        guard: &Guard,
        key: Key<'_>,
        Found { locked, hit }: Found<'_, Hit<'_>>,
        mut agrees: impl FnMut(&LockedHashLeaf<'_>, &Hit<'_>) -> bool,
    ) -> Previous {
        if !agrees(&locked.leaf, &hit) {
            return Previous::Refused;
        }
        self.remove_hit(guard, key.hash, locked, &hit);
        Previous::Present
    }

    /// Stores a value under a key that was found, if the predicate agrees. If `MARKED` is set, then
    /// calls `prepare` with the entry's mark, which returns the new one.
    #[inline(always)]
    pub(super) fn put_found<const MARKED: bool>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        Found { mut locked, hit }: Found<'_, Option<&Hit<'_>>>,
        value: &[u8],
        mut predicate: impl FnMut(Option<&[u8]>) -> bool,
        mut prepare: impl FnMut(Option<&[u8]>, u64) -> u64,
    ) -> Previous {
        let mut mark = Mark::of::<MARKED, _>(hit, |hit| locked.leaf.mark(hit));
        // The predicate decides under the lock: nobody can change the value before it is replaced.
        let old = hit.map(|hit| locked.leaf.value(hit));
        if !predicate(old) {
            // Returning drops the lock of an unchanged leaf.
            return Previous::Refused;
        }
        // From here on the value is stored. The caller may keep the old one first.
        if MARKED {
            mark.now = prepare(old, mark.now);
        }
        // As in `change_whole`: an entry that is there gets its mark before `store` moves it.
        let new = mark.of_new::<MARKED>(hit.is_none());
        mark.set::<MARKED, _>(hit, |hit, mark| {
            locked.leaf.set_mark(hit.bucket, hit.slot, mark)
        });
        let was = Previous::of(hit.is_some());
        self.store(guard, key, locked, hit, value, new);
        was
    }

    /// Stores a value under the key, replacing the value of its entry if there is one. `mark` is
    /// the mark of a new entry, or 0. It is kept if the entry finds room in its home bucket.
    #[inline(always)]
    pub(super) fn store(
        &self,
        guard: &Guard,
        key: Key<'_>,
        locked: LockedKey<'_>,
        hit: Option<&Hit<'_>>,
        value: &[u8],
        mark: u64,
    ) {
        let (mut leaf, home) = (locked.leaf, locked.home);
        // (3) Try to change the bucket in place.
        let done = match hit {
            // The lengths are equal: overwrite the old value.
            Some(hit) if !hit.outside && hit.value_len() == value.len() => {
                leaf.overwrite(hit, 0, value);
                true
            }
            Some(hit) if hit.outside => {
                let at = (hit.bucket, hit.from);
                return self.store_outside(guard, key, leaf, locked.contention, at, value);
            }
            // The lengths differ: the objects below move by the difference.
            Some(hit) => leaf.replace_value(hit, value),
            // The key is new: insert it in its home bucket, or in the next bucket with room.
            None if mark == 0 => self.insert(&home, key.bytes, &mut leaf, value),
            None => {
                // A new entry is the last of its bucket. If the home bucket has one more entry
                // afterwards, it is there; a displaced entry gets no mark.
                let slot = entries(home.bucket.word(0)) + 1;
                let done = self.insert(&home, key.bytes, &mut leaf, value);
                if done && entries(home.bucket.word(0)) == slot {
                    leaf.set_mark(home.bucket, slot, mark);
                }
                done
            }
        };
        // There was no room, or the new object is outside. Nothing has been changed yet, so the
        // slow path starts over from step 2.
        if !done {
            return self.store_anew(guard, key, leaf, value, locked.contention);
        }
        self.finish_in_place(guard, leaf, locked.contention);
    }

    /// Ends a change that was made in place.
    #[inline(always)]
    fn finish_in_place(&self, guard: &Guard, leaf: LockedHashLeaf<'_>, contention: i32) {
        // Writers often wait for this leaf. Split it early, so that they contend less.
        if contention > HIGH_CONTENTION {
            self.split_contended(guard, leaf);
        }
        // (5) Dropping the leaf unlocks it and publishes the change.
    }

    /// Inserts an entry that fits inside its leaf. Returns `false`, and changes nothing, if the
    /// object must be outside or there is no room.
    #[inline(always)]
    fn insert(
        &self,
        home: &Home<'_>,
        key: &[u8],
        leaf: &mut LockedHashLeaf<'_>,
        value: &[u8],
    ) -> bool {
        let class = leaf.leaf().class();
        let len = body_size(key.len(), value.len(), self.keys.length_prefixed);
        let body = Body::Inside {
            key,
            value,
            length_prefixed: self.keys.length_prefixed,
        };
        // Three conditions, the cheapest first: the object is short enough for a bucket of this
        // class, the leaf stays below its upper bound, and a bucket has room. Only the last of them
        // changes anything.
        lives_inside(len, class) && has_capacity(leaf.leaf(), body) && leaf.insert(home, body)
    }

    /// Step 3 and the steps after it, for an entry whose object is outside. Its handle is at `at`.
    #[inline(never)]
    fn store_outside(
        &self,
        guard: &Guard,
        key: Key<'_>,
        leaf: LockedHashLeaf<'_>,
        contention: i32,
        at: (Bucket<'_>, usize),
        value: &[u8],
    ) {
        match self.outside_of(key.bytes, value, leaf.leaf().class()) {
            // Both objects are outside: only the handle changes.
            Some(new) => self.replace_object(guard, leaf, contention, at, new),
            None => self.store_anew(guard, key, leaf, value, contention),
        }
    }

    /// The slow path of `store`, for a value that needs another bucket or a larger leaf, or that
    /// comes from or goes to memory outside the leaf.
    ///
    /// It searches for the entry again. If the hit were an argument, the common case would have to
    /// keep it in memory instead of registers.
    #[inline(never)]
    fn store_anew(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut leaf: LockedHashLeaf<'_>,
        value: &[u8],
        contention: i32,
    ) {
        let (hash, shape) = (truncated(key.hash), leaf.leaf().shape());
        let (home, length_prefixed) = (leaf.leaf().home(hash), self.keys.length_prefixed);
        // (2) Search the leaf again. The lock has been held since the first search, so the result
        // is the same.
        let found = leaf.view().find_general(hash, key.bytes, length_prefixed);
        debug_assert!(found.is_ok(), "a leaf was torn under its lock");
        let hit = found.unwrap_or_default();
        let body = match self.outside_of(key.bytes, value, shape.class) {
            Some(handle) => {
                let bytes = leaf.object(handle).memory();
                self.shared.counters.add_bytes(bytes as isize);
                Body::Outside(handle)
            }
            None => Body::Inside {
                key: key.bytes,
                value,
                length_prefixed,
            },
        };
        // (3) Remove the old entry. Readers can't see the key missing: the lock is held until the
        // new entry is in place, so a reader that saw the gap fails to validate.
        let old = hit.and_then(|hit| leaf.handle(&hit));
        if let Some(hit) = &hit {
            leaf.remove(&home, hit);
        }
        if !(has_capacity(leaf.leaf(), body) && leaf.insert(&home, body)) {
            // (4) No bucket has room: the leaf grows or splits. This also unlocks it.
            let entry = NewEntry {
                hash,
                key: key.bytes,
                value,
            };
            self.handle_overflow(guard, entry, leaf, body);
        } else {
            self.finish_in_place(guard, leaf, contention);
        }
        // (6) Readers may still be reading the old outside object. The epoch keeps it alive.
        self.shared.retire(guard, old);
    }

    /// Splits a leaf before it is full, because writers often wait for its lock.
    #[cold]
    fn split_contended(&self, guard: &Guard, leaf: LockedHashLeaf<'_>) {
        if leaf.leaf().count() > 1 {
            self.split_early(guard, leaf);
        }
    }

    /// Replaces the outside object whose handle is at `at` by a new one, and retires the old one.
    /// The bytes of the new one aren't counted yet.
    #[inline(never)]
    fn replace_object(
        &self,
        guard: &Guard,
        mut leaf: LockedHashLeaf<'_>,
        contention: i32,
        at: (Bucket<'_>, usize),
        new: Handle,
    ) {
        let old = leaf.exchange_handle(at, new);
        let bytes = leaf.object(new).memory();
        self.finish_in_place(guard, leaf, contention);
        // (6) Readers may still be reading the old object. The epoch keeps it alive.
        self.shared.retire_replaced(guard, old, bytes);
    }

    /// A new outside object like that of a hit, with `new` in place of a part of its value. `None`
    /// if the new object lies inside the leaf. Its bytes aren't counted.
    #[inline(never)]
    fn spliced(
        &self,
        leaf: &LockedHashLeaf<'_>,
        hit: &Hit<'_>,
        key_len: usize,
        part: Range<usize>,
        new: &[u8],
    ) -> Option<Handle> {
        // The lock is held, so the handle isn't torn and the object stays.
        let object = leaf.object(leaf.view().handle(hit));
        // The length of the new value decides whether the object stays outside.
        let len = object.value().len() - part.len() + new.len();
        let body = body_size(key_len, len, self.keys.length_prefixed);
        match lives_inside(body, leaf.leaf().class()) {
            true => None,
            false => Some(Handle::spliced(object, part, new).0),
        }
    }

    /// A new outside object for a key and its value. `None` if it lies inside a leaf of this class:
    /// its length and the size of the buckets decide. Its bytes aren't counted.
    #[inline(never)]
    fn outside_of(&self, key: &[u8], value: &[u8], class: u8) -> Option<Handle> {
        let body = body_size(key.len(), value.len(), self.keys.length_prefixed);
        match lives_inside(body, class) {
            true => None,
            false => Some(Handle::new(key, value).0),
        }
    }

    /// Removes the entry of a key, which is `hit`.
    #[inline(always)]
    fn remove_hit(&self, guard: &Guard, hash: u64, locked: LockedKey<'_>, hit: &Hit<'_>) {
        let mut leaf = locked.leaf;
        // (3) Read the handle before its slot entry is overwritten.
        let handle = leaf.handle(hit);
        leaf.remove(&locked.home, hit);
        // If this thread walks over the table, what it has read of the leaf stays valid beyond the
        // removed key (`removed`).
        let id = self.leaf_id(&leaf, truncated(hash));
        removed::note(id, leaf.version_before(), leaf.version_after());
        if leaf.leaf().live_bytes() < leaf.leaf().bounds().least as usize
            && locked.contention < HIGH_CONTENTION
        {
            // (4) The leaf is sparse. It may shrink, or merge with its buddy.
            self.shrink_or_merge(guard, hash, leaf, locked.contention);
        } else {
            // (5) Unlock.
            drop(leaf);
        }
        // (6) Readers may still be reading an outside object. The epoch keeps it alive.
        self.shared.retire(guard, handle);
    }

    /// What identifies a leaf that has this hash in its range.
    #[inline(always)]
    pub(super) fn leaf_id(&self, leaf: &LockedHashLeaf<'_>, hash: u64) -> LeafId {
        LeafId {
            index: self.shared.number.0,
            hash,
            depth: leaf.leaf().shape().depth,
        }
    }

    /// Decides whether a sparse leaf shrinks, merges with its buddy, or stays as it is.
    #[cold]
    #[inline(never)]
    fn shrink_or_merge(&self, guard: &Guard, hash: u64, leaf: LockedHashLeaf<'_>, contention: i32) {
        let (shape, live, count) = (
            leaf.leaf().shape(),
            leaf.leaf().live_bytes(),
            leaf.leaf().count(),
        );
        // An attempt to shrink may fail, since a lopsided leaf keeps its size. Don't repeat it with
        // each removal.
        let sparse = is_sparse(shape, live) && (count % 8 == 0 || count <= FEW);
        // A contended leaf doesn't merge: its writers would meet again.
        let mergeable =
            shape.depth > 0 && contention < 0 && self.sizes.mergeable(shape.class, live);
        // An attempt to merge may fail, too, if the buddy is locked or deeper.
        if sparse || mergeable && count % 4 == 0 {
            let partner = if mergeable {
                Partner::Any
            } else {
                Partner::None
            };
            self.reclaim_space(guard, truncated(hash), leaf, partner);
        }
    }

    /// The same as `shrink_or_merge`, after a scan has removed several entries of a leaf.
    ///
    /// Nothing may remain to be done later: if the scan has emptied the leaf, no further removal
    /// ever looks at it. So each leaf is tried, whatever its number of entries, and an empty one
    /// merges even if it is contended.
    #[cold]
    pub(super) fn shrink_or_merge_read<'g>(
        &self,
        guard: &'g Guard,
        hash: u64,
        mut leaf: LockedHashLeaf<'g>,
    ) {
        let (shape, live) = (leaf.leaf().shape(), leaf.leaf().live_bytes());
        // The scan is a writer, too.
        let contention = leaf.add_contention(UNCONTENDED);
        let mergeable =
            (contention < 0 || leaf.leaf().count() == 0) && self.sizes.mergeable(shape.class, live);
        if mergeable {
            // The scan goes on after this leaf. So the leaf merges only with a buddy that the scan
            // needn't read any more.
            self.reclaim_space(guard, hash, leaf, Partner::Passed);
        } else if contention < HIGH_CONTENTION {
            self.reclaim_space(guard, hash, leaf, Partner::None);
        }
    }
}

/// Whether the leaf stays below its upper bound when the entry is added. If not, it grows, even if
/// a bucket has room.
#[inline(always)]
fn has_capacity(leaf: HashLeaf<'_>, body: Body<'_>) -> bool {
    leaf.live_bytes() + body.size(leaf.class()) + SLOT_ENTRY <= leaf.bounds().most as usize
}

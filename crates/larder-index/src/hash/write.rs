//! How the hash order is written.
//!
//! 1. Find the leaf and lock it. If it is locked, note the contention; if it is obsolete, begin
//!    again.
//! 2. Search it. The lock's holder reads nothing torn.
//! 3. Change the bucket in place if there is room (`change`).
//! 4. Otherwise replace the leaf by a larger or smaller one, split it, or merge it with its
//!    neighbour (`resize`).
//! 5. Unlock. The store of the new version is the linearisation point; where leaves are replaced,
//!    the store that makes the old one obsolete.
//! 6. Retire what the change took out, when no lock is held.

use super::HashOrder;
use crate::contention::{CONTENDED, HIGH_CONTENTION, UNCONTENDED};
use crate::hash::bucket::Home;
use crate::hash::build::is_sparse;
use crate::hash::change::Body;
use crate::hash::hit::Hit;
use crate::hash::key_rule::KeyRule;
use crate::hash::leaf::{HashLeaf, LockedHashLeaf};
use crate::hash::resize::FEW;
use crate::hash::shape::{body_size, counting, lives_inside, SLOT_ENTRY};
use crate::outside::Handle;
use crate::sync::Backoff;
use crate::Key;
use crossbeam_epoch::Guard;

impl<R: KeyRule> HashOrder<R> {
    /// Step 1: the leaf that has the hash, locked, and its contention.
    #[inline(always)]
    fn lock<'g>(&self, guard: &'g Guard, hash: u64) -> (LockedHashLeaf<'g>, Home<'g>, i32) {
        let mut contended = false;
        loop {
            let leaf = self.trie.find(hash, guard);
            let home = leaf.home(hash);
            leaf.prefetch(&home);
            // A leaf that is not obsolete has the range that its path says, so one that was locked
            // is the right one.
            if let Ok(Some(mut locked)) = leaf.try_lock() {
                let add = if contended { CONTENDED } else { UNCONTENDED };
                let contention = locked.add_contention(add);
                return (locked, home, contention);
            }
            contended |= self.wait(leaf);
        }
    }

    /// Waits until a leaf is unlocked; whether a writer had it. An obsolete leaf never is: its
    /// successors come in a moment, and the caller looks for the leaf again.
    #[cold]
    #[inline(never)]
    fn wait(&self, leaf: HashLeaf<'_>) -> bool {
        let contended = leaf.version().is_ok();
        if contended {
            self.shared.counters.contended();
        } else {
            Backoff::new().snooze();
        }
        contended
    }

    /// Steps 1 and 2: locks the leaf of a key, and finds what is under it; gives the leaf's
    /// contention, too.
    #[inline(always)]
    pub(super) fn find_locked<'g>(
        &self,
        guard: &'g Guard,
        key: Key<'_>,
    ) -> (LockedHashLeaf<'g>, Home<'g>, Option<Hit<'g>>, i32) {
        let hash = counting(key.hash);
        let (locked, home, contention) = self.lock(guard, hash);
        let form = self.keys.form(key.bytes);
        // The lock's holder reads nothing torn.
        let found = locked.view().find((hash, &home), key.bytes, form);
        let hit = found.unwrap_or_default();
        (locked, home, hit, contention)
    }

    /// Stores a value, in the place of the one of the hit if there is one.
    #[inline(always)]
    pub(super) fn store(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (mut leaf, home, hit, contention): (LockedHashLeaf<'_>, Home<'_>, Option<Hit<'_>>, i32),
        value: &[u8],
    ) {
        // (3)
        let done = match &hit {
            // A value of the same length: over the old one.
            Some(hit) if !hit.outside && hit.value_len() == value.len() => {
                leaf.overwrite(hit, value);
                true
            }
            // Of another length: the objects below it move by the difference.
            Some(hit) => !hit.outside && leaf.resize(hit, value),
            // A new entry: to its home bucket, or to the next one with room.
            None => self.insert(&home, key.bytes, &mut leaf, value),
        };
        if !done {
            // Nothing was changed so far.
            return self.store_anew(guard, key, leaf, value, contention);
        }
        if contention > HIGH_CONTENTION {
            self.split_contended(guard, leaf);
        }
        // (5) The leaf is unlocked here.
    }

    /// Inserts an entry that lives inside its leaf, if that has room.
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
        let body = Body::Inside(key, value, self.keys.length_prefixed);
        lives_inside(len, class) && has_capacity(leaf.leaf(), body) && leaf.insert(home, body)
    }

    /// Stores a value that could not be stored in its bucket as it is: it needs another bucket,
    /// more room, or memory outside the leaf. The entry is searched for again. If the hit were
    /// passed on, the common case would have to keep it in memory instead of registers.
    #[inline(never)]
    fn store_anew(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut leaf: LockedHashLeaf<'_>,
        value: &[u8],
        contention: i32,
    ) {
        let (hash, shape) = (counting(key.hash), leaf.leaf().shape());
        let (home, length_prefixed) = (leaf.leaf().home(hash), self.keys.length_prefixed);
        // (2) The lock's holder reads nothing torn.
        let found = leaf.view().find_general(hash, key.bytes, length_prefixed);
        let hit = found.unwrap_or_default();
        // Where the new object lives follows from its length and the size of the buckets.
        let len = body_size(key.bytes.len(), value.len(), length_prefixed);
        let body = if lives_inside(len, shape.class) {
            Body::Inside(key.bytes, value, length_prefixed)
        } else {
            Body::Outside(self.outside(key.bytes, value))
        };
        // (3)
        let old = hit.and_then(|hit| leaf.handle(&hit));
        if let Some(hit) = &hit {
            // The old entry goes, and the new one comes under the same lock. So readers see both
            // changes at once.
            leaf.remove(&home, hit);
        }
        if !(has_capacity(leaf.leaf(), body) && leaf.insert(&home, body)) {
            // (4)
            self.make_room(guard, (hash, key.bytes, value), leaf, body);
        } else if contention > HIGH_CONTENTION {
            self.split_contended(guard, leaf);
        } else {
            // (5)
            drop(leaf);
        }
        // (6)
        self.shared.retire(guard, old);
    }

    /// Splits a leaf before it is full, since writers often wait for its lock.
    #[cold]
    fn split_contended(&self, guard: &Guard, leaf: LockedHashLeaf<'_>) {
        if leaf.leaf().count() > 1 {
            self.split_early(guard, leaf);
        }
    }

    /// Moves an object to a place of its own.
    fn outside(&self, key: &[u8], value: &[u8]) -> Handle {
        let (handle, bytes) = Handle::new(key, value);
        self.shared.counters.add_bytes(bytes as isize);
        handle
    }

    /// Removes an entry.
    #[inline(always)]
    pub(super) fn take(
        &self,
        guard: &Guard,
        hash: u64,
        (mut leaf, home, hit, contention): (LockedHashLeaf<'_>, Home<'_>, &Hit<'_>, i32),
    ) {
        // (3)
        let handle = leaf.handle(hit);
        leaf.remove(&home, hit);
        if leaf.leaf().live() < leaf.leaf().bounds().least as usize && contention < HIGH_CONTENTION
        {
            // (4)
            self.shrink_or_merge(guard, hash, leaf, contention);
        } else {
            // (5)
            drop(leaf);
        }
        // (6)
        self.shared.retire(guard, handle);
    }

    /// A leaf has so little that it may be for a smaller one, or for its neighbour.
    #[cold]
    #[inline(never)]
    fn shrink_or_merge(&self, guard: &Guard, hash: u64, leaf: LockedHashLeaf<'_>, contention: i32) {
        let (shape, live, count) = (leaf.leaf().shape(), leaf.leaf().live(), leaf.leaf().count());
        // A leaf that must not be made smaller now is tried again later, not each time.
        let sparse = is_sparse(shape, live) && (count % 8 == 0 || count <= FEW);
        let mergeable =
            shape.depth > 0 && contention < 0 && self.sizes.mergeable(shape.class, live);
        // A leaf that can't merge now is tried again later, not each time.
        if sparse || mergeable && count % 4 == 0 {
            self.reclaim_space(guard, counting(hash), leaf, mergeable);
        }
    }

    /// As `shrink_or_merge`, after several entries went. The leaf merges with its neighbour if that
    /// lies before it: what a scan has still to read keeps its leaves.
    #[cold]
    pub(super) fn shrink_or_merge_read<'g>(
        &self,
        guard: &'g Guard,
        hash: u64,
        mut leaf: LockedHashLeaf<'g>,
    ) {
        let (shape, live) = (leaf.leaf().shape(), leaf.leaf().live());
        let contention = leaf.add_contention(0);
        let is_second = shape.depth > 0 && hash >> (64 - u32::from(shape.depth)) & 1 == 1;
        if is_second && contention < 0 && self.sizes.mergeable(shape.class, live) {
            match self.merge(guard, hash, leaf) {
                Ok(()) => return,
                Err(alone) => leaf = alone,
            }
        }
        if contention < HIGH_CONTENTION {
            self.reclaim_space(guard, hash, leaf, false);
        }
    }
}

/// Whether an entry may be added to what is live in a leaf.
#[inline(always)]
fn has_capacity(leaf: HashLeaf<'_>, body: Body<'_>) -> bool {
    leaf.live() + body.size(leaf.class()) + SLOT_ENTRY <= leaf.bounds().most as usize
}

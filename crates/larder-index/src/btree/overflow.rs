//! Step 3 of a write of the B+-tree (`write`) whose entry has no place in its leaf.
//!
//! ```text
//!       prefix of all positions, slots (s), records (r), free bytes (·)
//!
//!  3a   │p sss·r··r·r│  →  │p ssss···rrrr│              the same leaf: its free bytes lie together
//!
//!  3b   │p ssss·rrrr│   →  │p sssss·······rrrrr│        a larger leaf of the same range
//!
//!  3c   │p sssss·rrrrr│ →  │p sss··rrr│ │q sss··rrr│   two leaves: each has a part of the range
//!
//!  3p   │ab: s·r│ + ax  →  │a: ss···rr│                a leaf with a prefix that all positions have
//! ```
//!
//! `need` is the size of the content with the new entry. (In 3b and 3c the prefix may be longer
//! than that of the old leaf, and `need` less.) `capacity` is that of the leaf, `most` the largest
//! content of a leaf beside a prefix of this length.
//!
//! | step | taken if |
//! |---|---|
//! | 3p | the new position doesn't begin with the leaf's prefix |
//! | 3a | `need` is at most 7/8 of `capacity` |
//! | 3b | `need` is at most `most` (7/8 of it in the largest leaf); or the entry is alone |
//! | 3c | otherwise; and in a leaf for which writers often wait |
//!
//! The eighth that has to be free in 3a and 3b is for the next inserts. Otherwise a leaf that is
//! nearly full would be compacted or rebuilt by each of them.
//!
//! 3b, 3c and 3p build the new leaves beside the old one, which stays locked meanwhile, and publish
//! them by `restructure`. A reader of the old leaf finds it obsolete, and restarts.

use super::BPlusTree;
use crate::btree::copies::with_copies;
use crate::btree::entries::{with_entries, Entries};
use crate::btree::found_slot::FoundSlot;
use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf, MOST_CONTENT};
use crate::btree::prefix::Prefix;
use crate::btree::record::{StoredValue, SLOT};
use crate::btree::search_key::SearchKey;
use crate::scratch::with_scratch;
use crossbeam_epoch::Guard;

impl BPlusTree {
    /// Steps 3a to 3c: stores an entry for which the leaf has no room. `run_length` is that of the
    /// run of inserts that this one belongs to.
    #[inline(never)]
    pub(super) fn handle_overflow(
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
        // eighth of it is free afterwards.
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
        let old_capacity = leaf.leaf().capacity();
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
            if self.fits_in_one(need, old_capacity, prefix.len()) {
                // (3b) One larger leaf.
                let capacity = self.capacity(need, run_continues, prefix.len());
                self.replace(guard, at.key, leaf, entries, &prefix, capacity);
            } else if entries.len() < 2 {
                // (3b) A single entry can't be split. Its leaf is as large as necessary.
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

    /// Whether one leaf is enough for `need` bytes under a prefix of this length. A leaf of the
    /// largest size is replaced by another of that size only if an eighth of it is free afterwards.
    fn fits_in_one(&self, need: usize, old_capacity: usize, prefix: usize) -> bool {
        let most = self.shared.config.most_beside(prefix);
        let spare = if old_capacity < most { 0 } else { most / 8 };
        need + spare <= most
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

    /// Replaces the leaf by one of this capacity with the same range and these entries.
    pub(super) fn replace(
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

    /// Step 3p: inserts an entry whose position doesn't begin with the leaf's prefix. The leaf is
    /// replaced by one with a shorter prefix.
    ///
    /// The position is less than all positions with the prefix, or greater than all of them. So the
    /// new entry is the first or the last. The new leaf may be larger than a leaf should be; it is
    /// then split by the next entry that has no room.
    #[cold]
    #[inline(never)]
    pub(super) fn shorten_prefix(
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

    /// Splits a leaf that isn't full, because writers often wait for its lock. With two leaves they
    /// wait for each other half as often.
    pub(super) fn split_early(&self, guard: &Guard, at: &FoundSlot<'_>, leaf: LockedTreeLeaf<'_>) {
        // The new entry has been stored in the leaf already.
        with_entries(|entries| {
            entries.collect(&leaf);
            self.inner
                .split(&self.shared, leaf, at.key, entries, None, guard);
        });
    }
}

//! The value trees of a bag. They have the objects of keys with more objects than a list may hold.
//!
//! ```text
//!  tree         hash | key | number                                   the object
//!  hash index   hash | key | 48 bits of the object's hash | number    nothing
//! ```
//!
//! The objects of all tree keys are in one B+-tree. So a million objects under one key are a run of
//! leaves like any other. The objects of a key with many are also in a second tree, the *hash
//! index*, which leads from an object's hash to its number. Only writers use it.

use super::list::{self, TreeHeader};
use super::position::{prefix, push_number, PAST_NUMBERS};
use crate::btree::{BPlusTree, ScanRequest};
use crate::traits::with_batch;
use crate::{Batch, Direction, Key, LeafConfig, Start, Stats};
use crossbeam_epoch::Guard;
use std::ops::Bound;

/// The objects of all tree keys of a bag.
pub(super) struct ValueTrees {
    pub(super) tree: BPlusTree,
    /// The hash index.
    pub(super) hash_index: BPlusTree,
}

impl ValueTrees {
    pub(super) fn new(config: LeafConfig) -> Self {
        let tree = || BPlusTree::new(config).under_locks();
        ValueTrees {
            tree: tree(),
            hash_index: tree(),
        }
    }

    /// Called when the stripe is unlocked.
    pub(super) fn flush_postponed(&self, guard: &Guard) {
        self.tree.flush_postponed(guard);
        self.hash_index.flush_postponed(guard);
    }

    /// The memory in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.tree.memory() + self.hash_index.memory()
    }

    /// Adds the statistics of the trees to others.
    pub(super) fn add_stats(&self, stats: &mut Stats) {
        for of_tree in [self.tree.stats(), self.hash_index.stats()] {
            stats.leaves += of_tree.leaves;
            stats.inner_nodes += of_tree.inner_nodes;
            stats.depth = stats.depth.max(of_tree.depth);
            stats.splits += of_tree.splits;
            stats.merges += of_tree.merges;
            stats.contended += of_tree.contended;
        }
    }

    /// Removes some objects, and frees them. Returns `true` when none are left.
    pub(super) fn free_objects(
        &self,
        guard: &Guard,
        limit: usize,
        f: &mut dyn FnMut(&[u8]),
    ) -> bool {
        self.tree.free_some(guard, limit, f)
    }

    /// Like `free_objects`, for the hash index.
    pub(super) fn free_hash_index(&self, guard: &Guard, limit: usize) -> bool {
        self.hash_index.free_some(guard, limit, &mut |_| ())
    }

    /// Inserts the objects of a list, whose key has none here. Returns the tree header of the key.
    /// The entry's leaf is locked, so no other thread writes to the key, or looks for it here.
    pub(super) fn take_in(&self, guard: &Guard, key: Key<'_>, list: &[u8]) -> TreeHeader {
        // Only the number at the end of the position differs between the objects of a key.
        let mut position = prefix(key);
        let prefix_len = position.len();
        let mut entry = TreeHeader::default();
        for item in list::items(list) {
            position.truncate(prefix_len);
            push_number(item.number, &mut position);
            self.tree
                .put(guard, &position, &list[item.object], &mut |_| true);
            entry.count += 1;
            // The next number is above those of all objects that are there.
            entry.next = item.number + 1;
        }
        entry
    }
}

/// Calls `f` with runs of entries whose positions begin with `prefix`, in order from `start` on,
/// until it returns `false`.
pub(super) fn runs<'g>(
    tree: &'g BPlusTree,
    guard: &'g Guard,
    start: &[u8],
    prefix: &[u8],
    f: &mut dyn FnMut(&Batch<'g>) -> bool,
) {
    // After the prefix, all these positions have a number.
    let mut end = prefix.to_vec();
    end.push(PAST_NUMBERS);
    // A run is what one leaf has of the requested part.
    let scan = |start: &[u8], batch: &mut Batch<'g>| {
        let request = ScanRequest {
            start: Start::At(start),
            direction: Direction::Forward,
            until: Bound::Excluded(&end),
            limit: usize::MAX,
            value_limit: usize::MAX,
        };
        tree.scan(guard, &request, batch);
    };
    let mut next = Vec::new();
    with_batch(|batch| {
        // Skip an empty run that isn't the end, so that `f` only gets runs with entries.
        scan(start, batch);
        while (batch.is_empty() || f(batch)) && !batch.done {
            std::mem::swap(&mut next, &mut batch.resume);
            scan(&next, batch);
        }
    });
}

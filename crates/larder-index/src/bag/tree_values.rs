//! The objects of one tree key, under the lock of its stripe.
//!
//! Writers of a tree key exclude each other by the key's stripe. Readers validate the version of
//! the stripe.
//!
//! 1. Lock the stripe, and read the key's tree header. The key stays a tree key meanwhile.
//! 2. Before the first change, make the version odd.
//! 3. Add objects to the tree, replace and remove them there. If a key has more than
//!    [`INDEX_ABOVE`] objects and one of them is searched for, or more than [`ALWAYS_INDEX_ABOVE`],
//!    all of them get entries in the *hash index*. So an object is found, added and removed in
//!    O(log n). If a key has fewer than [`UNINDEX_BELOW`] objects, their entries are removed from
//!    the hash index.
//! 4. Write the key's entry: a new tree header, or a list if few objects are left. If none are
//!    left, remove the entry.
//! 5. Make the version even, and unlock the stripe.

use super::list::{self, TreeHeader};
use super::position::*;
use super::value_tree::{runs, ValueTrees};
use super::{Bag, Stripe};
use crate::scratch::with_scratch;
use crate::sync::atomic::{fence, Ordering::*};
use crate::sync::MutexGuard;
use crate::traits::HASH;
use crate::{Key, KeyRule, Objects, Unique};
use crossbeam_epoch::Guard;
use std::cell::Cell;

/// If a tree key has more objects than this, they are indexed when one of them is searched for. A
/// key of a duplicate_bag that only gets objects needs no index.
const INDEX_ABOVE: usize = 64;
/// If a tree key has more objects than this, they are indexed, so that no search has to index many
/// at once.
const ALWAYS_INDEX_ABOVE: usize = 4096;
/// If a tree key has fewer objects than this, they are removed from the hash index.
const UNINDEX_BELOW: usize = 24;

/// An object that was replaced.
struct Replaced {
    /// How many objects of its key are before it.
    ordinal: usize,
    position: Position,
}

/// The objects of a tree key, whose stripe is locked.
pub(super) struct TreeValues<'a, R: KeyRule> {
    bag: &'a Bag<R>,
    value_trees: &'a ValueTrees,
    guard: &'a Guard,
    key: Key<'a>,
    prefix: Position,
    entry: TreeHeader,
    /// The object that was last replaced, so that several replacements take one pass.
    replaced: Option<Replaced>,
    stripe: &'static Stripe,
    /// Whether anything was changed. If so, the version is odd, and the key's entry must be
    /// written.
    wrote: bool,
    /// Whether objects were removed.
    fewer: bool,
    /// Whether an object was searched for.
    searched: Cell<bool>,
    _writer: MutexGuard<'static, ()>,
}

impl<'a, R: KeyRule> TreeValues<'a, R> {
    /// Locks the stripe of the key. `None` if the key is no tree key, or no longer one.
    pub(super) fn lock(bag: &'a Bag<R>, guard: &'a Guard, key: Key<'a>) -> Option<Self> {
        // Other writers of this key, and of keys with the same stripe, wait here.
        let stripe = bag.stripe(key);
        let writer = stripe.writer.lock();
        // The key stays a tree key while no other thread has its stripe.
        let entry = bag.tree_header(guard, key)?;
        Some(TreeValues {
            bag,
            value_trees: bag.value_trees(),
            guard,
            key,
            prefix: prefix(key),
            entry,
            replaced: None,
            stripe,
            wrote: false,
            fewer: false,
            searched: Cell::new(false),
            _writer: writer,
        })
    }

    /// Called before every change. Makes readers of the key fail to validate.
    fn begin_write(&mut self) {
        if !self.wrote {
            self.wrote = true;
            // Ordering: Relaxed, only the lock's holder writes it; the fence orders it.
            self.stripe.version.fetch_add(1, Relaxed);
            // Ordering: Release fence, pairs with the reader's: a reader that sees a change sees
            // the odd version.
            fence(Release);
        }
    }

    /// Stores an object in the tree.
    fn put(&mut self, position: &[u8], value: &[u8]) {
        // (2) The version is odd before the tree changes.
        self.begin_write();
        // (3) Nobody else writes objects of this key: the stripe is locked.
        let tree = &self.value_trees.tree;
        tree.put(self.guard, position, value, &mut |_| true);
    }

    /// Removes the object with this number from the tree.
    fn remove(&mut self, number: u64) {
        // (2), (3) As in `put`.
        self.begin_write();
        let tree = &self.value_trees.tree;
        tree.remove(self.guard, &self.position(number), &mut |_| true);
    }

    /// Calls `f` with the position and value of each entry from `start` on, until it returns
    /// `false`.
    fn entries_from(&self, start: &[u8], f: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        let tree = &self.value_trees.tree;
        runs(tree, self.guard, start, &self.prefix, &mut |run| {
            (0..run.len()).all(|i| f(run.key(i), run.value(i)))
        });
    }

    /// Calls `f` with the position and value of each entry, until it returns `false`.
    fn entries(&self, f: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        self.entries_from(&self.prefix, f);
    }

    /// The position of the key's object with this number.
    fn position(&self, number: u64) -> Position {
        let mut position = Position::from_slice(&self.prefix);
        push_number(number, &mut position);
        position
    }

    /// Updates the header after objects were removed, together with their entries in the hash
    /// index.
    fn forget(&mut self, removed: usize) {
        if removed == 0 {
            return;
        }
        // The header is written later, when all changes are made.
        self.entry.count -= removed;
        self.fewer = true;
        self.replaced = None;
        if self.entry.indexed && self.entry.count < UNINDEX_BELOW {
            self.unindex_all();
        }
    }

    /// Removes all objects of the tree key, and their entries in the hash index, leaf by leaf.
    fn clear(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        // (2) Readers that began before this see another version afterwards, and repeat.
        self.begin_write();
        // (3) One leaf after the other, without a search for each object.
        let removed = self
            .value_trees
            .tree
            .remove_within(self.guard, &self.prefix, Some(f));
        debug_assert_eq!(
            removed, self.entry.count,
            "the entry knows how many there are"
        );
        // Only writers use the hash index, and this one holds the stripe. So the order doesn't
        // matter.
        if self.entry.indexed {
            self.unindex_all();
        }
        self.entry.count = 0;
        // Step 4 checks whether the key should become a list again, or be removed.
        self.fewer = true;
        // Remembered positions of objects are no longer valid.
        self.replaced = None;
        removed
    }

    /// Step 4: writes the key's entry. Linearisation point of the change, for readers that only
    /// read the entry.
    fn write_entry(&mut self) {
        let (entries, key) = (&self.bag.entries, self.key);
        if self.entry.count == 0 {
            entries.remove(self.guard, key, &mut |_| true);
            return;
        }
        // Don't pack the objects as soon as they fit: the next insert would make a tree key of them
        // again.
        if self.fewer && self.entry.count <= self.bag.limits.count() / 2 && self.pack() {
            return;
        }
        let entry = self.entry.bytes();
        entries.put(self.guard, key, &entry, &mut |_| true);
    }

    /// Makes a list of the objects, of which few are left, if they aren't too long. Returns whether
    /// it did.
    fn pack(&mut self) -> bool {
        let (count, limits) = (self.entry.count, self.bag.limits);
        // Collect the objects in order, with their numbers, as far as they fit. The tree isn't
        // changed before it is known that all of them do.
        let mut list = vec![count as u8];
        self.entries(&mut |position, value| {
            list::push(&mut list, value, number(position));
            limits.fits(count, list.len())
        });
        if !limits.fits(count, list.len()) {
            return false;
        }
        // Readers of the tree see an odd version until the entry is a list.
        self.clear(&mut |_| ());
        self.bag
            .entries
            .put(self.guard, self.key, &list, &mut |_| true);
        true
    }
}

/// The hash index.
impl<R: KeyRule> TreeValues<'_, R> {
    /// The common prefix, in the hash index, of all objects with this hash.
    fn hash_prefix(&self, hash: u64) -> Position {
        let mut at = Position::from_slice(&self.prefix);
        at.extend_from_slice(&hash.to_be_bytes()[..HASH]);
        at
    }

    /// The hash of an object, whose top bits are in its position in the hash index.
    fn hash(&self, value: &[u8]) -> u64 {
        (self.bag.hash)(value)
    }

    /// Adds an object to the hash index.
    fn index_object(&self, number: u64, value: &[u8]) {
        let mut at = self.hash_prefix(self.hash(value));
        push_number(number, &mut at);
        let hash_index = &self.value_trees.hash_index;
        hash_index.put(self.guard, &at, &[], &mut |_| true);
    }

    /// Removes an object from the hash index.
    fn unindex(&self, number: u64, hash: u64) {
        let mut at = self.hash_prefix(hash);
        push_number(number, &mut at);
        let hash_index = &self.value_trees.hash_index;
        hash_index.remove(self.guard, &at, &mut |_| true);
    }

    /// Adds all objects to the hash index, since there are many now.
    fn index_all(&mut self) {
        self.entries(&mut |position, value| {
            self.index_object(number(position), value);
            true
        });
        self.entry.indexed = true;
    }

    /// Removes all objects of the key from the hash index.
    fn unindex_all(&mut self) {
        let hash_index = &self.value_trees.hash_index;
        hash_index.remove_within(self.guard, &self.prefix, None);
        self.entry.indexed = false;
    }

    /// The numbers of the objects that have the hash of `value`, and for which `same` returns
    /// `true`; at most `limit` of them.
    fn with_hash(
        &self,
        value: &[u8],
        limit: usize,
        same: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Vec<u64> {
        // The entries of all objects with this hash are neighbours.
        let (prefix, mut found) = (self.hash_prefix(self.hash(value)), Vec::new());
        let hash_index = &self.value_trees.hash_index;
        runs(hash_index, self.guard, &prefix, &prefix, &mut |run| {
            found.extend((0..run.len()).map(|i| number(run.key(i))));
            true
        });
        // Equal hashes don't prove equality, so compare each object. The limit counts those that
        // are equal.
        let mut left = limit;
        found.retain(|&n| {
            let is = left > 0
                && with_scratch(|object| {
                    let tree = &self.value_trees.tree;
                    tree.get(self.guard, &self.position(n), object) && same(object)
                });
            left -= usize::from(is);
            is
        });
        found
    }
}

impl<R: KeyRule> Drop for TreeValues<'_, R> {
    fn drop(&mut self) {
        // (4), (5) Without a change the version stays the same, and readers needn't read again.
        if self.wrote {
            self.write_entry();
            // Ordering: Release, pairs with a reader's first load: a reader that sees the version
            // even again sees the changes. The lock is still held.
            self.stripe.version.fetch_add(1, Release);
        }
    }
}

impl<R: KeyRule> Objects for TreeValues<'_, R> {
    fn count(&self) -> usize {
        self.entry.count
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        let mut ordinal = 0;
        self.entries(&mut |_, value| {
            ordinal += 1;
            f(ordinal - 1, value)
        });
    }

    fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
        self.entries(&mut |position, value| {
            f(number(position), value);
            true
        });
    }

    fn begin_change(&mut self) {
        self.begin_write();
    }

    fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        // If the key is indexed, all its objects are. So an object whose hash isn't in the
        // index doesn't exist.
        if self.entry.indexed {
            return !self.with_hash(value, 1, same).is_empty();
        }
        self.searched.set(true);
        let mut found = false;
        self.entries(&mut |_, other| {
            found = same(other);
            !found
        });
        found
    }

    fn push(&mut self, value: &[u8]) {
        // The number is greater than those of all objects of the key, so the object is the last one
        // (G4).
        let number = self.entry.next;
        let position = self.position(number);
        self.put(&position, value);
        self.entry.next += 1;
        self.entry.count += 1;
        if self.entry.indexed {
            self.index_object(number, value);
        } else {
            // Without searches, the index is made later: it would be of no use so far.
            let most = if self.searched.get() {
                INDEX_ABOVE
            } else {
                ALWAYS_INDEX_ABOVE
            };
            if self.entry.count > most {
                self.index_all();
            }
        }
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        // Decide for all objects first. Nothing changes while `entries` walks over the leaves.
        let (indexed, mut removed) = (self.entry.indexed, Vec::new());
        self.entries(&mut |position, value| {
            if f(value) {
                let hash = if indexed { self.hash(value) } else { 0 };
                removed.push((number(position), hash));
            }
            true
        });
        // If all are to go, remove them leaf by leaf.
        if removed.len() == self.entry.count {
            return self.clear(&mut |_| ());
        }
        // Otherwise remove the chosen ones, each by its number, and from the hash index by its
        // hash.
        for &(number, hash) in &removed {
            if indexed {
                self.unindex(number, hash);
            }
            self.remove(number);
        }
        self.forget(removed.len());
        removed.len()
    }

    fn remove_all(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        self.clear(f)
    }

    fn remove_same(&mut self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        if !self.entry.indexed {
            // Without the hash index all objects are compared.
            if self.entry.count <= INDEX_ABOVE {
                return self.remove_if(same);
            }
            // The index is written, and so is the header that says so.
            self.begin_write();
            self.index_all();
        }
        let (removed, hash) = (self.with_hash(value, usize::MAX, same), self.hash(value));
        for &number in &removed {
            // Its hash is that of `value`.
            self.unindex(number, hash);
            self.remove(number);
        }
        self.forget(removed.len());
        removed.len()
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        // Several replacements in ascending order take one pass, which continues from the last one.
        let (mut i, start) = match &self.replaced {
            Some(last) if last.ordinal <= ordinal => (last.ordinal, last.position.clone()),
            _ => (0, Position::from_slice(&self.prefix)),
        };
        let mut found = None;
        // `i` is the ordinal of the object at hand. Objects have numbers, but ordinals are only
        // known by counting.
        self.entries_from(&start, &mut |position, old| {
            if i == ordinal {
                let hash = if self.entry.indexed {
                    self.hash(old)
                } else {
                    0
                };
                found = Some((Position::from_slice(position), hash));
            }
            i += 1;
            found.is_none()
        });
        let Some((position, old)) = found else {
            return;
        };
        // The number stays the same: only the object and its hash change.
        self.put(&position, value);
        if self.entry.indexed {
            self.unindex(number(&position), old);
            self.index_object(number(&position), value);
        }
        self.replaced = Some(Replaced { ordinal, position });
    }
}

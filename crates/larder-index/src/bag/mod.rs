//! The default structure of bags: any number of values per key, in the order of insertion.
//!
//! ```text
//!  entries      HashOrder: key → its list, or a tree header   list.rs, list_values.rs
//!  value tree   B+-tree: hash | key | number → object         value_tree.rs, tree_values.rs
//!  hash index   B+-tree: hash | key | hash of the object | number
//! ```
//!
//! If a key has few objects, its entry holds them all, as a *list*: at most 64 objects and about
//! two kilobytes, or one object of any length. A key with more objects is a *tree key*. Its objects
//! are in the value tree, and its entry is a *tree header*, which has their number. A tree key
//! becomes a list again when few objects are left.
//!
//! Invariants (docs/design.md §4.5):
//! * G1: A key has an entry if and only if it has an object.
//! * G2: The trees have objects of a key only if its entry is a tree header, or while a writer is
//!   about to change that.
//! * G3: A list moves to the tree under its leaf's lock. A tree key becomes a list, or is removed,
//!   under the key's stripe.
//! * G4: The numbers of a key's objects ascend in the order of insertion, and stay the same when a
//!   list moves to the tree or back.
//!
//! *Stripes.* A stripe is a lock and a version, found by the hash, and shared by all bags. A writer
//! of a tree key makes the version odd before its first change, and even after its last one. A
//! reader reads the version, checks that the entry is a tree header, reads the tree leaf by leaf,
//! and validates the version. If that fails too often, the reader takes the lock. Locks are taken
//! in this order: a stripe, a leaf of the entries, a leaf of a tree.
//!
//! *Linearisation points.* For a change of a list, including one that moves to the tree: the store
//! that unlocks the entry's leaf. For a change of a tree key that stays one: the store that makes
//! the stripe's version even. For a tree key that becomes a list or is removed: the store that
//! unlocks the entry's leaf. Before it nobody reads a list, and after it nobody reads a tree key.

mod list;
mod list_buffer;
mod list_values;
mod position;
mod scan;
mod tree_values;
mod value_tree;

use crate::hash::hit::Hit;
use crate::hash::key_rule::KeyRule;
use crate::hash::search::Undecided;
use crate::hash::write::Found;
use crate::mark::Mark;
use crate::scratch::with_scratch;
use crate::sync::atomic::{fence, AtomicU64, AtomicU8, Ordering::*};
use crate::sync::{Backoff, Mutex};
use crate::{
    Batch, Change, Container, Direction, HashOrder, Key, LeafConfig, MarkedObjectsUpdater, Multi,
    ObjectHash, Objects, Seen, Start, Stats, StepEntry, Stepped, Unique, Values,
};
use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use list::{Limits, TreeHeader};
use list_buffer::ListBuffer;
use list_values::ListValues;
use position::{prefix, BagPosition, NumberBound, BEFORE_NUMBERS, PAST_NUMBERS};
use std::sync::OnceLock;
use tree_values::TreeValues;
use value_tree::{runs, ValueTrees};

const STRIPES: usize = 256;
/// How many times a reader tries without the lock.
const TRIES: usize = 8;

struct Stripe {
    writer: Mutex<()>,
    version: AtomicU64,
}

static ALL: [CachePadded<Stripe>; STRIPES] = [const {
    CachePadded::new(Stripe {
        writer: Mutex::new(()),
        version: AtomicU64::new(0),
    })
}; STRIPES];

/// Which keys an update concerns. The others aren't locked, if the index can tell without a lock.
#[derive(Clone, Copy)]
enum Concerned {
    All,
    /// Those with objects.
    Present,
    /// Those without.
    Absent,
}

/// The next step of `free_some`: free the objects of tree keys, the hash index, or lists.
const OBJECTS: u8 = 0;
const HASH_INDEX: u8 = 1;
const LISTS: u8 = 2;

/// An index with any number of values per key, in the order of insertion.
pub struct Bag<R: KeyRule> {
    entries: HashOrder<R>,
    /// Unset before a key has had many objects.
    value_trees: OnceLock<Box<ValueTrees>>,
    limits: Limits,
    hash: ObjectHash,
    /// The progress of `free_some`.
    freed: AtomicU8,
}

impl<R: KeyRule> Bag<R> {
    /// Makes an empty index, with this rule for its keys. `hash` must return the same result for
    /// values that `Objects::find` may consider the same.
    pub(crate) fn new(rule: R, config: LeafConfig, hash: ObjectHash) -> Self {
        Bag {
            // Writers of a bag hold its own locks while they write to the entries.
            entries: HashOrder::new(rule, config).under_locks(),
            value_trees: OnceLock::new(),
            limits: Limits::new(&config),
            hash,
            freed: AtomicU8::new(OBJECTS),
        }
    }

    /// The trees, which are created for the first tree key.
    fn value_trees(&self) -> &ValueTrees {
        if let Some(value_trees) = self.value_trees.get() {
            return value_trees;
        }
        // Make them before they are set, so that no other writer waits for their construction.
        let made = Box::new(ValueTrees::new(self.entries.shared.config));
        self.value_trees.get_or_init(|| made)
    }

    /// Called when no lock is held any more.
    #[inline]
    fn flush_postponed(&self, guard: &Guard) {
        self.entries.flush_postponed(guard);
        if let Some(value_trees) = self.value_trees.get() {
            value_trees.flush_postponed(guard);
        }
    }

    fn stripe(&self, key: Key<'_>) -> &'static Stripe {
        // The same key of different indexes uses different stripes.
        let salt = 37 * self.entries.shared.number.0 as usize;
        &ALL[((key.hash >> 40) as usize).wrapping_add(salt) % STRIPES]
    }

    /// Reads the tree header of a key; `None` if it is no tree key.
    fn tree_header(&self, guard: &Guard, key: Key<'_>) -> Option<TreeHeader> {
        with_scratch(|entry| {
            self.entries.get(guard, key, entry);
            TreeHeader::of(entry)
        })
    }

    /// Reads a tree key as of one instant. `None` if the key is no tree key.
    #[cold]
    fn read_in_tree<'b, T>(
        &'b self,
        guard: &Guard,
        key: Key<'_>,
        mut read: impl FnMut(&'b ValueTrees) -> T,
    ) -> Option<T> {
        // Read the header between the two readings of the version, too. So the fact that the key is
        // a tree key holds at the same instant as its objects.
        let mut read = || {
            self.tree_header(guard, key)?;
            Some(read(self.value_trees()))
        };
        let stripe = self.stripe(key);
        let backoff = Backoff::new();
        for _ in 0..TRIES {
            // Ordering: Acquire, pairs with the store that ends a write: its changes are visible.
            let before = stripe.version.load(Acquire);
            if before.is_multiple_of(2) {
                let result = read();
                // Ordering: Acquire fence, pairs with the fence that begins a write. A reader that
                // saw a change sees the odd version.
                fence(Acquire);
                // Ordering: Relaxed, the fence keeps it after the reads.
                if stripe.version.load(Relaxed) == before {
                    return result;
                }
            }
            backoff.snooze();
        }
        // Writes are too frequent. Read under the lock, which excludes writers, so the result is of
        // one instant.
        let _no_writer = stripe.writer.lock();
        read()
    }

    /// Like `read`, for a tree key. `None` if it is no longer one; nothing was added in that case.
    #[cold]
    fn read_all_in_tree(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> Option<usize> {
        let prefix = prefix(key);
        let (before, bytes) = (values.len(), values.bytes.len());
        let read = self.read_in_tree(guard, key, |value_trees| {
            // Discard the values of a previous attempt, which were not of one instant.
            values.spans.truncate(before);
            values.bytes.truncate(bytes);
            // A run is of one leaf at one instant. The stripe's version, which `read_in_tree`
            // validates, makes all runs of the key one instant.
            runs(&value_trees.tree, guard, &prefix, &prefix, &mut |run| {
                (0..run.len()).for_each(|i| values.push(run.value(i)));
                true
            });
        });
        // The key is a list by now, or was removed.
        if read.is_none() {
            values.spans.truncate(before);
            values.bytes.truncate(bytes);
        }
        read.map(|()| values.len() - before)
    }

    /// Makes an update of these keys.
    ///
    /// 1. Find the entry, and lock its leaf. If the key isn't concerned, this takes no lock.
    /// 2. If the entry is a list, or there is none, change it under this lock.
    /// 3. Otherwise change the tree key under its stripe.
    #[inline(always)]
    fn update_keys(
        &self,
        guard: &Guard,
        key: Key<'_>,
        concerned: Concerned,
        f: &mut dyn FnMut(&mut dyn Objects),
    ) {
        // (1) A key has an entry if and only if it has an object (G1). So the entry tells whether
        // the key is concerned.
        let found = match concerned {
            Concerned::All => Ok(Some(self.entries.find_locked::<false>(guard, key))),
            Concerned::Present => self.entries.find_present(guard, key).map(|found| {
                let Found { locked, hit } = found?;
                let hit = Some(hit);
                Some(Found { locked, hit })
            }),
            Concerned::Absent => self.entries.find_absent(guard, key).map(|locked| {
                let (locked, hit) = (locked?, None);
                Some(Found { locked, hit })
            }),
        };
        match found {
            // (2) The leaf is locked. `update_list` unlocks it, also if the key is a tree key,
            // which is then changed under its stripe (3).
            Ok(Some(found)) => {
                if !self.update_list::<false>(guard, key, found, |objects, _| f(objects)) {
                    self.update_general(guard, key, concerned, true, f);
                }
            }
            // The key isn't concerned. No lock was taken: the operation is a read.
            Ok(None) => return,
            // Another writer was in the leaf. Take the lock, and look again.
            Err(Undecided) => self.update_general(guard, key, concerned, false, f),
        }
        // No lock is held any more.
        self.flush_postponed(guard);
    }

    /// `update_keys` for a tree key (`is_in_tree`), or for one that takes the lock in any case.
    #[cold]
    #[inline(never)]
    fn update_general(
        &self,
        guard: &Guard,
        key: Key<'_>,
        concerned: Concerned,
        is_in_tree: bool,
        f: &mut dyn FnMut(&mut dyn Objects),
    ) {
        // Whether the key is concerned is decided under the lock here, by its objects.
        let concerns = |objects: &dyn Objects| match concerned {
            Concerned::All => true,
            Concerned::Present => !objects.is_empty(),
            Concerned::Absent => objects.is_empty(),
        };
        let mut f = |objects: &mut dyn Objects| {
            if concerns(objects) {
                f(objects);
            }
        };
        let mut is_in_tree = is_in_tree;
        loop {
            // (3) Neither lock is held between two attempts. So another writer may have made a list
            // of a tree key, or a tree key of a list. Try one after the other, until the key is
            // what the attempt expects.
            if is_in_tree && self.update_in_tree(guard, key, &mut f) {
                return;
            }
            // (1), (2) A list, or no entry.
            let found = self.entries.find_locked::<false>(guard, key);
            if self.update_list::<false>(guard, key, found, |objects, _| f(objects)) {
                return;
            }
            is_in_tree = true;
        }
    }

    /// Calls `f` with the objects of a list, and with the mark of its entry, if `MARKED` is set. If
    /// it is no list, but a tree key, returns `false`, and does nothing.
    #[inline(always)]
    fn update_list<const MARKED: bool>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        Found { locked, hit }: Found<'_, Option<Hit<'_>>>,
        f: impl FnOnce(&mut ListValues<'_>, &mut u64),
    ) -> bool {
        let mut list = ListBuffer::new();
        let hit = hit.as_ref();
        let mut mark = Mark::of::<MARKED, _>(hit, |hit| locked.leaf.mark(hit));
        // The leaf is locked, so `f` sees the objects where they lie. It writes the new list to
        // `list`.
        let old = hit.map(|hit| locked.leaf.value(hit));
        let change = self.change_list(guard, key, old, &mut list, |objects| {
            f(objects, &mut mark.now);
        });
        let found = Found { locked, hit };
        // The entry of a tree key stays as it is. `change_whole` unlocks the leaf in either case.
        let is_list = change.is_some();
        let change = change.unwrap_or(Change::Keep);
        (self.entries).change_whole::<MARKED>(guard, key, found, change, &list, mark);
        is_list
    }

    /// Calls `f` with the objects of a list, `old`, under the lock of its leaf. Returns the change
    /// that is to be made of it; `None` if it is no list, but a tree key.
    #[inline(always)]
    fn change_list(
        &self,
        guard: &Guard,
        key: Key<'_>,
        old: Option<&[u8]>,
        new: &mut ListBuffer,
        f: impl FnOnce(&mut ListValues<'_>),
    ) -> Option<Change> {
        // The entry's leaf is locked, so read the list in place.
        let old = old.unwrap_or(&[]);
        // The caller continues under the key's stripe.
        if list::is_in_tree(old) {
            return None;
        }
        let mut objects = ListValues::new(old, new);
        f(&mut objects);
        let (changed, count) = (objects.changed(), objects.count());
        if !changed {
            return Some(Change::Keep);
        }
        // G1: no entry without an object.
        if count == 0 {
            return Some(Change::Remove);
        }
        // Either the new list becomes the entry, or its objects are moved to the tree before
        // the entry becomes a tree header.
        if self.limits.fits(count, new.len()) {
            new[0] = count as u8;
        } else {
            self.move_to_tree(guard, key, new);
        }
        Some(Change::Put)
    }

    /// Moves a list that has grown too long to the tree, and replaces it by a tree header.
    #[cold]
    fn move_to_tree(&self, guard: &Guard, key: Key<'_>, list: &mut ListBuffer) {
        let entry = self.value_trees().take_in(guard, key, list);
        list.truncate(0);
        list.extend_from_slice(&entry.bytes());
    }

    /// Like `update`, for a tree key. If it is no longer one, returns `false`, and does nothing.
    #[cold]
    fn update_in_tree(
        &self,
        guard: &Guard,
        key: Key<'_>,
        f: &mut dyn FnMut(&mut dyn Objects),
    ) -> bool {
        // Another writer may have made it a list again, or have removed it.
        let Some(mut values) = TreeValues::lock(self, guard, key) else {
            return false;
        };
        f(&mut values);
        true
    }
}

impl<R: KeyRule> Multi for Bag<R> {
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        let from = values.bytes.len();
        loop {
            // Copy the entry to the values' bytes. A list needs no other copy.
            if !self.entries.get(guard, key, &mut values.bytes) {
                return 0;
            }
            let entry = &values.bytes[from..];
            if !list::is_in_tree(entry) {
                // The list stays as it is: its objects are values within its bytes.
                let objects = list::items(entry).map(|item| item.object);
                values
                    .spans
                    .extend(objects.map(|object| (from + object.start, from + object.end)));
                return list::count(entry);
            }
            // It is a tree key. If it becomes a list meanwhile, read its entry again.
            values.bytes.truncate(from);
            if let Some(count) = self.read_all_in_tree(guard, key, values) {
                return count;
            }
        }
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.entries.contains(guard, key)
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        self.entries.prefetch(guard, keys);
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        self.update_keys(guard, key, Concerned::All, f);
    }

    fn update_present(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        self.update_keys(guard, key, Concerned::Present, f);
    }

    fn update_absent(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        self.update_keys(guard, key, Concerned::Absent, f);
    }

    fn update_marked(&self, guard: &Guard, key: Key<'_>, f: &mut MarkedObjectsUpdater<'_>) {
        loop {
            let found = self.entries.find_locked::<true>(guard, key);
            let is_list = self.update_list::<true>(guard, key, found, |objects, mark| {
                f(objects, mark);
            });
            // Tree keys have no marks.
            if is_list || self.update_in_tree(guard, key, &mut |objects| f(objects, &mut 0)) {
                return self.flush_postponed(guard);
            }
        }
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        scan::scan(self, guard, start, direction, batch);
    }

    fn scan_key<'g>(&'g self, guard: &'g Guard, key: Key<'_>, batch: &mut Batch<'g>) -> bool {
        scan::scan_key(self, guard, key, batch)
    }

    fn step<'g>(&'g self, guard: &'g Guard, key: Option<Key<'_>>, batch: &mut Batch<'g>) -> bool {
        scan::step(self, guard, key, batch)
    }

    fn try_step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        scan::try_step(self, guard, key, entry)
    }

    fn is_unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        self.entries.is_unchanged(guard, key, seen)
    }

    fn remove_scanned(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        // The objects of a list are removed with their entry, so all of them must be chosen.
        // Entries of the hash order are lists.
        let Some(lists) = scan::whole_lists(batch, chosen) else {
            return false;
        };
        let done = (self.entries).remove_scanned(guard, key, (batch, &lists), predicate);
        self.flush_postponed(guard);
        done
    }

    fn first_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.entries.position(key, out);
        out.push(BEFORE_NUMBERS);
    }

    fn last_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.entries.position(key, out);
        out.push(PAST_NUMBERS);
    }

    fn entry_position(&self, batch: &Batch, i: usize, out: &mut Vec<u8>) {
        scan::entry_position(self, batch, i, out);
    }

    fn push_entry(&self, batch: &mut Batch, key: &[u8], value: &[u8], number: u64) {
        batch.push(key, value);
        // G5: the number follows the object.
        list::push_number(number, &mut batch.bytes);
    }

    fn entry_number(&self, batch: &Batch, i: usize) -> u64 {
        scan::number(batch, i)
    }

    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        let BagPosition { prefix, bound } = position::parse(position);
        match bound {
            // Without a number it sorts before all positions of the key.
            NumberBound::Before => prefix,
            _ => position,
        }
    }

    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position::parse(position).prefix
    }
}

impl<R: KeyRule> Container for Bag<R> {
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        // Ordering: Relaxed, no other thread frees. Remember the progress, so that a call doesn't
        // start with parts that are already empty.
        let mut next = self.freed.load(Relaxed);
        if let Some(value_trees) = self.value_trees.get() {
            if next == OBJECTS && value_trees.free_objects(guard, limit, f) {
                next = HASH_INDEX;
            }
            if next == HASH_INDEX && value_trees.free_hash_index(guard, limit) {
                next = LISTS;
            }
        } else {
            next = LISTS;
        }
        // A list has several objects.
        let lists = limit.div_ceil(4);
        let done = next == LISTS
            && self.entries.free_some(guard, lists, &mut |entry| {
                if !list::is_in_tree(entry) {
                    list::items(entry).for_each(|item| f(&entry[item.object]));
                }
            });
        // Ordering: Relaxed, as above. Start again, so that anything that was added nevertheless is
        // freed, too.
        self.freed.store(if done { OBJECTS } else { next }, Relaxed);
        self.flush_postponed(guard);
        done
    }

    fn len(&self) -> usize {
        scan::count(self)
    }

    fn memory(&self) -> usize {
        let value_trees = self
            .value_trees
            .get()
            .map_or(0, |value_trees| value_trees.memory());
        size_of::<Self>() - size_of::<HashOrder<R>>() + self.entries.memory() + value_trees
    }

    fn expect_keys(&self, now: usize, soon: usize) {
        self.entries.expect_keys(now, soon);
    }

    fn stats(&self) -> Stats {
        let mut stats = self.entries.stats();
        if let Some(value_trees) = self.value_trees.get() {
            value_trees.add_stats(&mut stats);
        }
        stats
    }
}

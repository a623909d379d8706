//! The default for bags: any number of values under a key, in order of arrival.
//!
//! ```text
//!  entries      HashOrder: key → its list, or a tree header   list.rs, list_values.rs
//!  value tree   B+-tree: hash | key | number → object         value_tree.rs, tree_values.rs
//!  marks        B+-tree: hash | key | hash of the object | number
//! ```
//!
//! A key with few objects has them all in its entry, as a *list*: at most 64 objects and about two
//! kilobytes, or one object of any length. A key with more is a *tree key*: its objects lie in the
//! value tree, and its entry is a *tree header*, which says how many they are. It becomes a list
//! again when few are left.
//!
//! Invariants:
//! 1. A key has an entry if and only if it has an object.
//! 2. The trees have objects of a key only if its entry is a tree header, or while a writer holds
//!    the entry's leaf or the key's stripe to change that.
//! 3. A list moves to the tree under the lock of the entry's leaf; a tree key becomes a list, or
//!    goes, under the key's stripe. So a tree key stays one while its stripe is held.
//! 4. The numbers of a key's objects grow in the order of arrival, and stay when a list moves to
//!    the tree or the other way round.
//!
//! *Stripes.* A stripe is a lock and a version, found by the hash, shared by all bags. A writer of
//! a tree key makes the version odd before its first change and even after its last. A reader takes
//! the version, sees that the entry is a tree header, reads leaf after leaf of the tree, and looks
//! at the version again; when that fails too often it takes the lock. Locks are taken in this
//! order: a stripe, a leaf of the entries, a leaf of a tree.
//!
//! *Linearisation points.* Of a change of a list, also of one that moves to the tree: the store
//! that unlocks the entry's leaf. Of a change of a tree key that stays one: the store that makes
//! the stripe's version even. Of one that becomes a list or goes: the store that unlocks the
//! entry's leaf, before which nobody reads a list, and after which nobody reads a tree key.

mod list;
mod list_values;
mod position;
mod scan;
mod tree_values;
mod value_tree;

use crate::hash::key_rule::KeyRule;
use crate::scratch::with_scratch;
use crate::sync::atomic::{fence, AtomicU64, AtomicU8, Ordering::*};
use crate::sync::{Backoff, Mutex};
use crate::{
    Batch, Change, Direction, HashOrder, Key, LeafConfig, Multi, ObjectHash, Objects, Seen, Start,
    Stats, Unique, Values,
};
use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use list::{Limits, TreeHeader};
use list_values::ListValues;
use position::{prefix, NumberBound, BEFORE_NUMBERS, PAST_NUMBERS};
use std::sync::OnceLock;
use tree_values::TreeValues;
use value_tree::{runs, ValueTrees};

const STRIPES: usize = 256;
/// How often a reader tries without the lock.
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

/// What `free_some` does next: free the objects of tree keys, marks, lists.
const OBJECTS: u8 = 0;
const MARKS: u8 = 1;
const LISTS: u8 = 2;

/// Any number of values under a key, in order of arrival.
pub struct Bag<R: KeyRule> {
    entries: HashOrder<R>,
    /// None before a key has had many objects.
    value_trees: OnceLock<Box<ValueTrees>>,
    limits: Limits,
    hash: ObjectHash,
    /// How far `free_some` has come.
    freed: AtomicU8,
}

impl<R: KeyRule> Bag<R> {
    /// An empty index, whose keys follow this rule. Values that `Objects::find` may take for the
    /// same have the same `hash`.
    pub fn new(rule: R, config: LeafConfig, hash: ObjectHash) -> Self {
        Bag {
            entries: HashOrder::new(rule, config).under_locks(),
            value_trees: OnceLock::new(),
            limits: Limits::new(&config),
            hash,
            freed: AtomicU8::new(OBJECTS),
        }
    }

    /// The trees, which are made for the first tree key.
    fn value_trees(&self) -> &ValueTrees {
        self.value_trees
            .get_or_init(|| Box::new(ValueTrees::new(self.entries.shared.config)))
    }

    /// No lock is held any more.
    #[inline]
    fn free_large(&self, guard: &Guard) {
        self.entries.free_large(guard);
        if let Some(value_trees) = self.value_trees.get() {
            value_trees.free_large(guard);
        }
    }

    fn stripe(&self, key: Key<'_>) -> &'static Stripe {
        // Equal keys of different indexes use different stripes.
        let salt = 37 * self.entries.number as usize;
        &ALL[((key.hash >> 40) as usize).wrapping_add(salt) % STRIPES]
    }

    /// What the tree header of a key says; None if the key is no tree key.
    fn tree_header(&self, guard: &Guard, key: Key<'_>) -> Option<TreeHeader> {
        with_scratch(|entry| {
            self.entries.get(guard, key, entry);
            TreeHeader::of(entry)
        })
    }

    /// Does a read of a tree key that sees one instant. None if the key is no tree key.
    #[cold]
    fn read_in_tree<T>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut read: impl FnMut(&ValueTrees) -> T,
    ) -> Option<T> {
        // The header is read between the two looks at the version, too: that the key is a tree key
        // is of the same instant as its objects.
        let mut read = || {
            self.tree_header(guard, key)?;
            Some(read(self.value_trees()))
        };
        let stripe = self.stripe(key);
        let backoff = Backoff::new();
        for _ in 0..TRIES {
            // Ordering: Acquire, pairs with the store that ends a write: its changes are seen.
            let before = stripe.version.load(Acquire);
            if before.is_multiple_of(2) {
                let result = read();
                // Ordering: Acquire fence, pairs with the fence that begins a write: a reader that
                // saw a change sees the odd version.
                fence(Acquire);
                // Ordering: Relaxed, the fence keeps it after the reads.
                if stripe.version.load(Relaxed) == before {
                    return result;
                }
            }
            backoff.snooze();
        }
        // Writers come too often. Under the lock there is none, so what is read is of one instant.
        let _no_writer = stripe.writer.lock();
        read()
    }

    /// As `read`, of a tree key. None if it is none any more: then nothing was added.
    #[cold]
    fn read_all_in_tree(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> Option<usize> {
        let prefix = prefix(key);
        let (before, bytes) = (values.len(), values.bytes.len());
        let read = self.read_in_tree(guard, key, |value_trees| {
            // What an attempt before this one has read was not of one instant.
            values.spans.truncate(before);
            values.bytes.truncate(bytes);
            runs(&value_trees.tree, guard, (&prefix, &prefix), &mut |run| {
                (0..run.len()).for_each(|i| values.push(run.value(i)));
                true
            });
        });
        // It is a list by now, or gone.
        if read.is_none() {
            values.spans.truncate(before);
            values.bytes.truncate(bytes);
        }
        read.map(|()| values.len() - before)
    }

    /// As `update`, of a key that is no tree key. False if it is one: then nothing was done.
    #[inline]
    fn update_list(
        &self,
        guard: &Guard,
        key: Key<'_>,
        f: &mut dyn FnMut(&mut dyn Objects),
    ) -> bool {
        let mut is_list = true;
        with_scratch(|scratch| {
            self.entries
                .update_with(guard, key, scratch, &mut |old, new| {
                    // The entry's leaf is locked: the list is read where it lies.
                    let old = old.unwrap_or(&[]);
                    // The caller goes on under the key's stripe.
                    if list::is_in_tree(old) {
                        is_list = false;
                        return Change::Keep;
                    }
                    let mut objects = ListValues::new(old, new);
                    f(&mut objects);
                    let (changed, count) = (objects.changed(), objects.count());
                    if !changed {
                        return Change::Keep;
                    }
                    // Invariant 1: no entry without an object.
                    if count == 0 {
                        return Change::Remove;
                    }
                    // The new list is the entry, or its objects go to the tree before the entry
                    // says so.
                    if self.limits.fits(count, new.len()) {
                        new[0] = count as u8;
                    } else {
                        self.move_to_tree(guard, key, new);
                    }
                    Change::PutScratch
                });
        });
        is_list
    }

    /// A list has grown too long; it becomes the tree header of a key.
    #[cold]
    fn move_to_tree(&self, guard: &Guard, key: Key<'_>, list: &mut Vec<u8>) {
        let entry = self.value_trees().take_in(guard, key, list);
        list.clear();
        list.extend_from_slice(&entry.bytes());
    }

    /// As `update`, of a tree key. False if it is none any more: then nothing was done.
    #[cold]
    fn update_in_tree(
        &self,
        guard: &Guard,
        key: Key<'_>,
        f: &mut dyn FnMut(&mut dyn Objects),
    ) -> bool {
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
            // The entry is copied to the values' bytes: a list needs no other copy.
            if !self.entries.get(guard, key, &mut values.bytes) {
                return 0;
            }
            let entry = &values.bytes[from..];
            if !list::is_in_tree(entry) {
                // The list stays as it is: its objects are values among its bytes.
                let own = list::items(entry).map(|item| item.object);
                values
                    .spans
                    .extend(own.map(|own| (from + own.start, from + own.end)));
                return list::count(entry);
            }
            // A tree key. If it becomes a list meanwhile, its entry is read again.
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
        while !self.update_list(guard, key, f) && !self.update_in_tree(guard, key, f) {}
        self.free_large(guard);
    }

    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        scan::scan(self, guard, start, direction, batch);
    }

    fn step(&self, guard: &Guard, key: Option<Key<'_>>, batch: &mut Batch) -> bool {
        scan::step(self, guard, key, batch)
    }

    fn unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        self.entries.unchanged(guard, key, seen)
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
        // Invariant 1 of the scans: the number lies behind the object.
        list::push_number(number, &mut batch.bytes);
    }

    fn entry_number(&self, batch: &Batch, i: usize) -> u64 {
        scan::number(batch, i)
    }

    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        match position::parse(position) {
            // Without a number it sorts before all positions of the key.
            (prefix, NumberBound::Before) => prefix,
            _ => position,
        }
    }

    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position::parse(position).0
    }

    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        // Ordering: Relaxed, nobody else frees. Were all asked again, each call would begin with
        // what is empty.
        let mut next = self.freed.load(Relaxed);
        if let Some(value_trees) = self.value_trees.get() {
            if next == OBJECTS && value_trees.free_objects(guard, limit, f) {
                next = MARKS;
            }
            if next == MARKS && value_trees.free_marks(guard, limit) {
                next = LISTS;
            }
        } else {
            next = LISTS;
        }
        // A list is several objects.
        let lists = limit.div_ceil(4);
        let done = next == LISTS
            && self.entries.free_some(guard, lists, &mut |entry| {
                if !list::is_in_tree(entry) {
                    list::items(entry).for_each(|item| f(&entry[item.object]));
                }
            });
        // Ordering: Relaxed, as above. What came in spite of all would be freed as this was.
        self.freed.store(if done { OBJECTS } else { next }, Relaxed);
        self.free_large(guard);
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

    fn stats(&self) -> Stats {
        let mut stats = self.entries.stats();
        if let Some(value_trees) = self.value_trees.get() {
            value_trees.add_stats(&mut stats);
        }
        stats
    }
}

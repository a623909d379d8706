//! The default for bags: any number of values under a key, in order of arrival.
//!
//! ```text
//!  entries   HashOrder: key → its list, or "a crowd"       list.rs, packed.rs
//!  crowds    B+-tree: hash | key | number → object         value_tree.rs
//!            B+-tree: marks, which lead to objects by their hashes
//! ```
//!
//! A key with few objects has them all in its entry, as a list: at most 64 objects and about two
//! kilobytes, or one object of any length. A key with more is a *crowd*: its entry says so, and how
//! many objects it has. It becomes a list again when few are left.
//!
//! Invariants:
//! 1. A key has an entry if and only if it has an object.
//! 2. The trees have objects of a key only if its entry is a crowd's, or while a writer holds the
//!    entry's leaf or the key's stripe to change that.
//! 3. A list becomes a crowd under the lock of the entry's leaf; a crowd becomes a list, or goes,
//!    under the key's stripe. So a crowd stays one for who holds its stripe.
//! 4. The numbers of a key's objects grow in the order of arrival, and stay when a list becomes a
//!    crowd or the other way round.
//!
//! *Stripes.* A stripe is a lock and a version, found by the hash, shared by all bags. A writer of
//! a crowd makes the version odd before its first change and even after its last. A reader takes
//! the version, sees that the entry is a crowd's, reads leaf after leaf of the tree, and looks at
//! the version again; when that fails too often it takes the lock. Locks are taken in this order: a
//! stripe, a leaf of the entries, a leaf of a tree.
//!
//! *Linearisation points.* Of a change of a list, also of one that becomes a crowd: the store that
//! unlocks the entry's leaf. Of a change of a crowd that stays one: the store that makes the
//! stripe's version even. Of one that becomes a list or goes: the store that unlocks the entry's
//! leaf, before which nobody reads a list, and after which nobody reads a crowd.

mod list;
mod packed;
mod position;
mod scan;
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
use list::{CrowdEntry, Limits};
use packed::Packed;
use position::{prefix, BEFORE_NUMBERS, PAST_NUMBERS};
use std::sync::OnceLock;
use value_tree::{runs, Crowd, Crowds};

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

/// What `free_some` does next: free the objects of crowds, marks, lists.
const OBJECTS: u8 = 0;
const MARKS: u8 = 1;
const LISTS: u8 = 2;

/// Any number of values under a key, in order of arrival.
pub struct Bag<R: KeyRule> {
    entries: HashOrder<R>,
    /// None before a key has had many objects.
    crowds: OnceLock<Box<Crowds>>,
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
            crowds: OnceLock::new(),
            limits: Limits::new(&config),
            hash,
            freed: AtomicU8::new(OBJECTS),
        }
    }

    /// The crowds, which are made for the first.
    fn crowds(&self) -> &Crowds {
        self.crowds
            .get_or_init(|| Box::new(Crowds::new(self.entries.shared.config)))
    }

    /// No lock is held any more.
    #[inline]
    fn free_large(&self, guard: &Guard) {
        self.entries.free_large(guard);
        if let Some(crowds) = self.crowds.get() {
            crowds.free_large(guard);
        }
    }

    fn stripe(&self, key: Key<'_>) -> &'static Stripe {
        // Equal keys of different indexes use different stripes.
        let salt = 37 * self.entries.number as usize;
        &ALL[((key.hash >> 40) as usize).wrapping_add(salt) % STRIPES]
    }

    /// What the entry of a crowd says; None if the key is no crowd.
    fn crowd_entry(&self, guard: &Guard, key: Key<'_>) -> Option<CrowdEntry> {
        with_scratch(|entry| {
            self.entries.get(guard, key, entry);
            CrowdEntry::of(entry)
        })
    }

    /// Does a read of a crowd that sees one instant. None if the key is no crowd.
    #[cold]
    fn read_crowd<T>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        mut read: impl FnMut(&Crowds) -> T,
    ) -> Option<T> {
        let mut read = || {
            self.crowd_entry(guard, key)?;
            Some(read(self.crowds()))
        };
        let stripe = self.stripe(key);
        let backoff = Backoff::new();
        for _ in 0..TRIES {
            // Ordering: Acquire, pairs with the store that ends a write: its changes are seen.
            let before = stripe.version.load(Acquire);
            if before.is_multiple_of(2) {
                let result = read();
                // Ordering: Acquire fence, pairs with the fence that begins a write: who saw a
                // change sees the odd version.
                fence(Acquire);
                // Ordering: Relaxed, the fence keeps it after the reads.
                if stripe.version.load(Relaxed) == before {
                    return result;
                }
            }
            backoff.snooze();
        }
        let _no_writer = stripe.writer.lock();
        read()
    }

    /// As `read`, of a crowd. None if it is none any more: then nothing was added.
    #[cold]
    fn read_all_of_crowd(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> Option<usize> {
        let prefix = prefix(key);
        let (before, bytes) = (values.len(), values.bytes.len());
        let read = self.read_crowd(guard, key, |crowds| {
            // What an attempt before this one has read was not of one instant.
            values.spans.truncate(before);
            values.bytes.truncate(bytes);
            runs(&crowds.tree, guard, (&prefix, &prefix), &mut |run| {
                (0..run.len()).for_each(|i| values.push(run.value(i)));
                true
            });
        });
        if read.is_none() {
            values.spans.truncate(before);
            values.bytes.truncate(bytes);
        }
        read.map(|()| values.len() - before)
    }

    /// As `update`, of a key that is no crowd. False if it is one: then nothing was done.
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
                    let old = old.unwrap_or(&[]);
                    if list::is_crowd(old) {
                        is_list = false;
                        return Change::Keep;
                    }
                    let mut objects = Packed::new(old, new);
                    f(&mut objects);
                    let (changed, count) = (objects.changed(), objects.count());
                    if !changed {
                        return Change::Keep;
                    }
                    if count == 0 {
                        return Change::Remove;
                    }
                    if self.limits.fits(count, new.len()) {
                        new[0] = count as u8;
                    } else {
                        self.become_crowd(guard, key, new);
                    }
                    Change::PutScratch
                });
        });
        is_list
    }

    /// A list has grown too long; it becomes the entry of a crowd.
    #[cold]
    fn become_crowd(&self, guard: &Guard, key: Key<'_>, list: &mut Vec<u8>) {
        let entry = self.crowds().take_in(guard, key, list);
        list.clear();
        list.extend_from_slice(&entry.bytes());
    }

    /// As `update`, of a crowd. False if it is none any more: then nothing was done.
    #[cold]
    fn update_crowd(
        &self,
        guard: &Guard,
        key: Key<'_>,
        f: &mut dyn FnMut(&mut dyn Objects),
    ) -> bool {
        let Some(mut crowd) = Crowd::lock(self, guard, key) else {
            return false;
        };
        f(&mut crowd);
        true
    }
}

impl<R: KeyRule> Multi for Bag<R> {
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        let from = values.bytes.len();
        loop {
            if !self.entries.get(guard, key, &mut values.bytes) {
                return 0;
            }
            let entry = &values.bytes[from..];
            if !list::is_crowd(entry) {
                // The list stays as it is: its objects are values among its bytes.
                let own = list::items(entry).map(|item| item.object);
                values
                    .spans
                    .extend(own.map(|own| (from + own.start, from + own.end)));
                return list::count(entry);
            }
            values.bytes.truncate(from);
            if let Some(count) = self.read_all_of_crowd(guard, key, values) {
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
        while !self.update_list(guard, key, f) && !self.update_crowd(guard, key, f) {}
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

    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        // Ordering: Relaxed, nobody else frees. Were all asked again, each call would begin with
        // what is empty.
        let mut next = self.freed.load(Relaxed);
        if let Some(crowds) = self.crowds.get() {
            if next == OBJECTS && crowds.free_objects(guard, limit, f) {
                next = MARKS;
            }
            if next == MARKS && crowds.free_marks(guard, limit) {
                next = LISTS;
            }
        } else {
            next = LISTS;
        }
        // A list is several objects.
        let lists = limit.div_ceil(4);
        let done = next == LISTS
            && self.entries.free_some(guard, lists, &mut |entry| {
                if !list::is_crowd(entry) {
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
        let crowds = self.crowds.get().map_or(0, |crowds| crowds.memory());
        size_of::<Self>() - size_of::<HashOrder<R>>() + self.entries.memory() + crowds
    }

    fn stats(&self) -> Stats {
        let mut stats = self.entries.stats();
        if let Some(crowds) = self.crowds.get() {
            crowds.add_stats(&mut stats);
        }
        stats
    }
}

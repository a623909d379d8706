//! Crowds: the keys with more objects than a list holds.
//!
//! Their objects lie in a B+-tree, so that a million under one key are a run of leaves like any
//! other. Writers of a crowd exclude each other by the key's stripe.
//!
//! *Marks.* To find an object among many, a crowd of more than 64 objects has *marks* in a second
//! tree: one for each object, by its hash, that tells its number. So an object is found, added and
//! removed in O(log n) however many there are. A crowd whose objects become few loses its marks.
//! Only writers look at marks.
//!
//! ```text
//!  tree    position                                         the object
//!  marks   hash | key | 48 bits of the object's hash | number
//! ```

use super::list::{self, CrowdEntry};
use super::position::*;
use super::{Bag, Stripe};
use crate::btree::run::{with_run, Run};
use crate::btree::{Tree, Wish};
use crate::scratch::with_scratch;
use crate::sync::atomic::{fence, Ordering::*};
use crate::sync::MutexGuard;
use crate::traits::HASH;
use crate::{Direction, Key, KeyRule, LeafConfig, Objects, Start, Stats, Unique};
use crossbeam_epoch::Guard;
use std::ops::Bound;

/// A crowd with more objects than this has marks.
const MANY: usize = 64;
/// A crowd with fewer objects than this loses its marks.
const FEW: usize = 24;

/// The objects of all crowds of a bag.
pub(super) struct Crowds {
    pub(super) tree: Tree,
    /// Which objects have which hash.
    marks: Tree,
}

impl Crowds {
    pub(super) fn new(config: LeafConfig) -> Self {
        let tree = || Tree::new(config).under_locks();
        Crowds {
            tree: tree(),
            marks: tree(),
        }
    }

    /// The stripe is free again.
    pub(super) fn free_large(&self, guard: &Guard) {
        self.tree.free_large(guard);
        self.marks.free_large(guard);
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.tree.memory() + self.marks.memory()
    }

    /// Adds the figures of the trees to others.
    pub(super) fn add_stats(&self, stats: &mut Stats) {
        for own in [self.tree.stats(), self.marks.stats()] {
            stats.leaves += own.leaves;
            stats.inner_nodes += own.inner_nodes;
            stats.depth = stats.depth.max(own.depth);
            stats.splits += own.splits;
            stats.merges += own.merges;
            stats.contended += own.contended;
        }
    }

    /// Removes some objects for good; true when none is left.
    pub(super) fn free_objects(
        &self,
        guard: &Guard,
        limit: usize,
        f: &mut dyn FnMut(&[u8]),
    ) -> bool {
        self.tree.free_some(guard, limit, f)
    }

    /// As `free_objects`, marks.
    pub(super) fn free_marks(&self, guard: &Guard, limit: usize) -> bool {
        self.marks.free_some(guard, limit, &mut |_| ())
    }

    /// Takes in the objects of a list, whose key has none here; gives what the key's entry becomes.
    /// The entry's leaf is locked: nobody else writes to the key, or looks for it here.
    pub(super) fn take_in(&self, guard: &Guard, key: Key<'_>, list: &[u8]) -> CrowdEntry {
        let mut position = prefix(key);
        let own = position.len();
        let mut entry = CrowdEntry::default();
        for item in list::items(list) {
            position.truncate(own);
            push_number(item.number, &mut position);
            self.tree
                .put(guard, &position, &list[item.object], &mut |_| true);
            entry.count += 1;
            entry.next = item.number + 1;
        }
        entry
    }
}

/// Calls `f` with runs of the entries whose positions begin with `prefix`, in order from `start`
/// on, until it answers false.
pub(super) fn runs(
    tree: &Tree,
    guard: &Guard,
    (start, prefix): (&[u8], &[u8]),
    f: &mut dyn FnMut(&Run) -> bool,
) {
    let scan = |start: &[u8], run: &mut Run, resume: &mut Vec<u8>| {
        let wish = Wish {
            start: Start::At(start),
            direction: Direction::Forward,
            within: prefix,
            until: Bound::Unbounded,
            limit: usize::MAX,
        };
        tree.scan(guard, &wish, run, resume)
    };
    let (mut resume, mut next) = (Vec::new(), Vec::new());
    with_run(|run| {
        let mut done = scan(start, run, &mut resume);
        while (run.len() == 0 || f(run)) && !done {
            std::mem::swap(&mut next, &mut resume);
            done = scan(&next, run, &mut resume);
        }
    });
}

/// The objects of a crowd, whose stripe is locked.
pub(super) struct Crowd<'a, R: KeyRule> {
    bag: &'a Bag<R>,
    crowds: &'a Crowds,
    guard: &'a Guard,
    key: Key<'a>,
    prefix: Position,
    entry: CrowdEntry,
    /// The object that was replaced last, so that a replacement of many is one walk.
    replaced: Option<(usize, Position)>,
    stripe: &'static Stripe,
    /// Something was changed: the stripe's version is odd, and the key's entry is to be written.
    wrote: bool,
    /// Some objects went.
    fewer: bool,
    _writer: MutexGuard<'static, ()>,
}

impl<'a, R: KeyRule> Crowd<'a, R> {
    /// Waits until no other writer is at work on the key. None if it is no crowd, or no more.
    pub(super) fn lock(bag: &'a Bag<R>, guard: &'a Guard, key: Key<'a>) -> Option<Self> {
        let stripe = bag.stripe(key);
        let writer = stripe.writer.lock();
        // A crowd stays one while nobody else has its stripe.
        let entry = bag.crowd_entry(guard, key)?;
        Some(Crowd {
            bag,
            crowds: bag.crowds(),
            guard,
            key,
            prefix: prefix(key),
            entry,
            replaced: None,
            stripe,
            wrote: false,
            fewer: false,
            _writer: writer,
        })
    }

    /// Before every change: readers of the key shall read again.
    fn begin_write(&mut self) {
        if !self.wrote {
            self.wrote = true;
            // Ordering: Relaxed, only the lock's holder writes it; the fence orders it.
            self.stripe.version.fetch_add(1, Relaxed);
            // Ordering: Release fence, pairs with the reader's: who sees a change sees the odd
            // version.
            fence(Release);
        }
    }

    fn put(&mut self, position: &[u8], value: &[u8]) {
        self.begin_write();
        let tree = &self.crowds.tree;
        tree.put(self.guard, position, value, &mut |_| true);
    }

    fn remove(&mut self, number: u64) {
        self.begin_write();
        let tree = &self.crowds.tree;
        tree.remove(self.guard, &self.position(number), &mut |_| true);
    }

    /// Calls `f` with position and value of each entry from `start` on, until it answers false.
    fn entries_from(&self, start: &[u8], f: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        let range = (start, &self.prefix[..]);
        runs(&self.crowds.tree, self.guard, range, &mut |run| {
            (0..run.len()).all(|i| f(run.position(i), run.value(i)))
        });
    }

    /// Calls `f` with position and value of each entry, until it answers false.
    fn entries(&self, f: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        self.entries_from(&self.prefix, f);
    }

    fn position(&self, number: u64) -> Position {
        let mut position = self.prefix.clone();
        push_number(number, &mut position);
        position
    }

    /// Takes note of how many objects are gone, whose marks are too.
    fn forget(&mut self, gone: usize) {
        if gone == 0 {
            return;
        }
        self.entry.count -= gone;
        self.fewer = true;
        self.replaced = None;
        if self.entry.marked && self.entry.count < FEW {
            self.unmark_all();
        }
    }

    /// All objects of the crowd go, with their marks, leaf by leaf.
    fn clear(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        self.begin_write();
        let gone = self
            .crowds
            .tree
            .remove_within(self.guard, &self.prefix, Some(f));
        debug_assert_eq!(gone, self.entry.count, "the entry knows how many there are");
        if self.entry.marked {
            self.unmark_all();
        }
        self.entry.count = 0;
        self.fewer = true;
        self.replaced = None;
        gone
    }

    /// The last thing before the stripe is free: the key's entry says what has become of its
    /// objects. Linearisation point of the change, for those who look at the entry alone.
    fn write_entry(&mut self) {
        let (entries, key) = (&self.bag.entries, self.key);
        if self.entry.count == 0 {
            entries.remove(self.guard, key, &mut |_| true);
            return;
        }
        // Not as soon as they would fit: the next object would make them a crowd again.
        if self.fewer && self.entry.count <= self.bag.limits.count() / 2 && self.pack() {
            return;
        }
        let entry = self.entry.bytes();
        entries.put(self.guard, key, &entry, &mut |_| true);
    }

    /// Makes the objects, which have become few, a list again, if they are not too long for that.
    fn pack(&mut self) -> bool {
        let (count, limits) = (self.entry.count, self.bag.limits);
        let mut list = vec![count as u8];
        self.entries(&mut |position, value| {
            list::push(&mut list, value, number(position));
            limits.fits(count, list.len())
        });
        if !limits.fits(count, list.len()) {
            return false;
        }
        self.clear(&mut |_| ());
        self.bag
            .entries
            .put(self.guard, self.key, &list, &mut |_| true);
        true
    }
}

/// Marks.
impl<R: KeyRule> Crowd<'_, R> {
    /// What the marks of the objects with this hash begin with.
    fn hash_marks(&self, hash: u64) -> Position {
        let mut mark = self.prefix.clone();
        mark.extend_from_slice(&hash.to_be_bytes()[..HASH]);
        mark
    }

    fn hash(&self, value: &[u8]) -> u64 {
        (self.bag.hash)(value)
    }

    fn mark(&self, number: u64, value: &[u8]) {
        let mut mark = self.hash_marks(self.hash(value));
        push_number(number, &mut mark);
        let marks = &self.crowds.marks;
        marks.put(self.guard, &mark, &[], &mut |_| true);
    }

    fn unmark(&self, number: u64, hash: u64) {
        let mut mark = self.hash_marks(hash);
        push_number(number, &mut mark);
        let marks = &self.crowds.marks;
        marks.remove(self.guard, &mark, &mut |_| true);
    }

    /// Marks all objects: they have become many.
    fn mark_all(&mut self) {
        self.entries(&mut |position, value| {
            self.mark(number(position), value);
            true
        });
        self.entry.marked = true;
    }

    /// Removes all marks.
    fn unmark_all(&mut self) {
        let marks = &self.crowds.marks;
        marks.remove_within(self.guard, &self.prefix, None);
        self.entry.marked = false;
    }

    /// The numbers of the objects for which `same` holds, which have the hash of `value`; no more
    /// than `limit`.
    fn with_hash(
        &self,
        value: &[u8],
        limit: usize,
        same: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Vec<u64> {
        let (marks, mut found) = (self.hash_marks(self.hash(value)), Vec::new());
        let range = (&marks[..], &marks[..]);
        runs(&self.crowds.marks, self.guard, range, &mut |run| {
            found.extend((0..run.len()).map(|i| number(run.position(i))));
            true
        });
        let mut left = limit;
        found.retain(|&n| {
            let is = left > 0
                && with_scratch(|object| {
                    let tree = &self.crowds.tree;
                    tree.get(self.guard, &self.position(n), object) && same(object)
                });
            left -= usize::from(is);
            is
        });
        found
    }
}

impl<R: KeyRule> Drop for Crowd<'_, R> {
    fn drop(&mut self) {
        if self.wrote {
            self.write_entry();
            // Ordering: Release, pairs with a reader's first load: who sees it even again sees the
            // changes. The lock is still held.
            self.stripe.version.fetch_add(1, Release);
        }
    }
}

impl<R: KeyRule> Objects for Crowd<'_, R> {
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

    fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        if self.entry.marked {
            return !self.with_hash(value, 1, same).is_empty();
        }
        let mut found = false;
        self.entries(&mut |_, other| {
            found = same(other);
            !found
        });
        found
    }

    fn push(&mut self, value: &[u8]) {
        let number = self.entry.next;
        let position = self.position(number);
        self.put(&position, value);
        self.entry.next += 1;
        self.entry.count += 1;
        if self.entry.marked {
            self.mark(number, value);
        } else if self.entry.count > MANY {
            self.mark_all();
        }
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        let (marked, mut gone) = (self.entry.marked, Vec::new());
        self.entries(&mut |position, value| {
            if f(value) {
                let hash = if marked { self.hash(value) } else { 0 };
                gone.push((number(position), hash));
            }
            true
        });
        if gone.len() == self.entry.count {
            return self.clear(&mut |_| ());
        }
        for &(number, hash) in &gone {
            if marked {
                self.unmark(number, hash);
            }
            self.remove(number);
        }
        self.forget(gone.len());
        gone.len()
    }

    fn remove_all(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        self.clear(f)
    }

    fn remove_same(&mut self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        if !self.entry.marked {
            return self.remove_if(same);
        }
        let (gone, hash) = (self.with_hash(value, usize::MAX, same), self.hash(value));
        for &number in &gone {
            // Its hash is that of `value`.
            self.unmark(number, hash);
            self.remove(number);
        }
        self.forget(gone.len());
        gone.len()
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        let (mut i, start) = match &self.replaced {
            Some((last, position)) if *last <= ordinal => (*last, position.clone()),
            _ => (0, self.prefix.clone()),
        };
        let mut found: Option<(Position, u64)> = None;
        self.entries_from(&start, &mut |position, old| {
            if i == ordinal {
                let hash = if self.entry.marked { self.hash(old) } else { 0 };
                found = Some((position.into(), hash));
            }
            i += 1;
            found.is_none()
        });
        let Some((position, old)) = found else {
            return;
        };
        self.put(&position, value);
        if self.entry.marked {
            self.unmark(number(&position), old);
            self.mark(number(&position), value);
        }
        self.replaced = Some((ordinal, position));
    }
}

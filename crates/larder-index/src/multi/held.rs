//! The objects of one key, locked against other writers: how a bag is changed.

use super::position::*;
use super::{runs, Bag, Stripe};
use crate::run::{with_run, with_scratch};
use crate::sync::atomic::{fence, Ordering::*};
use crate::sync::MutexGuard;
use crate::traits::HASH;
use crate::tree::{Tree, Wish};
use crate::{Direction, Key, Objects, Start};
use crossbeam_epoch::Guard;
use std::cell::Cell;

/// A key with more objects than this has marks.
const MANY: usize = 64;
/// A key with fewer objects than this loses its marks.
const FEW: usize = 24;
/// What the marks of objects have behind the key; the mark of their number has a zero.
const MARK: u8 = 1;

/// The objects of a key whose stripe is locked.
pub(super) struct Held<'a> {
    bag: &'a Bag,
    guard: &'a Guard,
    prefix: Position,
    /// The number of the next arrival, once it is known.
    next: Cell<Option<u64>>,
    /// How many objects there are, once it is known.
    count: Cell<Option<usize>>,
    /// Whether they have marks, once it is known.
    marked: Cell<Option<bool>>,
    /// The object that was replaced last, so that a replacement of many is one walk.
    replaced: Option<(usize, Position)>,
    stripe: &'static Stripe,
    wrote: bool,
    _writer: MutexGuard<'static, ()>,
}

impl<'a> Held<'a> {
    /// Waits until no other writer is at work on the key.
    pub(super) fn new(bag: &'a Bag, guard: &'a Guard, key: Key<'_>) -> Self {
        let stripe = bag.stripe(key);
        Held {
            bag,
            guard,
            prefix: prefix(key),
            next: Cell::new(None),
            count: Cell::new(None),
            marked: Cell::new(None),
            replaced: None,
            stripe,
            wrote: false,
            _writer: stripe.writer.lock(),
        }
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
        let tree = &self.bag.tree;
        tree.put(self.guard, position, value, &mut |_| true);
    }

    fn remove(&mut self, position: &[u8]) {
        self.begin_write();
        let tree = &self.bag.tree;
        tree.remove(self.guard, position, &mut |_| true);
    }

    /// The number of the next arrival.
    fn next(&self) -> u64 {
        if let Some(next) = self.next.get() {
            return next;
        }
        let mut end = self.prefix.clone();
        end.push(PAST_NUMBERS);
        let tree = &self.bag.tree;
        with_run(|run| {
            if !tree.last_within(self.guard, (&self.prefix, &end), run) {
                let wish = Wish {
                    start: Start::Past(&end),
                    direction: Direction::Backward,
                    within: &self.prefix,
                    limit: 1,
                };
                tree.scan(self.guard, &wish, run, &mut Vec::new());
            }
            match run.len() {
                0 => 0,
                _ => number(run.position(0)) + 1,
            }
        })
    }

    /// Calls `f` with position and value of each entry from `start` on, until it answers false.
    fn entries_from(&self, start: &[u8], f: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        let range = (start, &self.prefix[..]);
        runs(&self.bag.tree, self.guard, range, usize::MAX, &mut |run| {
            (0..run.len()).all(|i| f(run.position(i), run.value(i)))
        });
    }

    /// Calls `f` with position and value of each entry, until it answers false. Who has seen all of
    /// them knows how many there are.
    fn entries(&self, f: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        let (mut n, mut next, mut all) = (0, 0, true);
        let mut one = |position: &[u8], value: &[u8]| {
            n += 1;
            next = number(position) + 1;
            all = f(position, value);
            all
        };
        let told = with_run(|run| {
            // Nearly all keys' entries lie in one leaf.
            let told = self.bag.tree.entries_within(self.guard, &self.prefix, run);
            if told {
                (0..run.len()).all(|i| one(run.position(i), run.value(i)));
            }
            told
        });
        if !told {
            self.entries_from(&self.prefix, &mut one);
        }
        if all {
            self.count.set(Some(n));
            self.next.set(Some(next));
        }
    }

    fn position(&self, number: u64) -> Position {
        let mut position = self.prefix.clone();
        push_number(number, &mut position);
        position
    }
}

/// Marks.
impl Held<'_> {
    fn marks(&self) -> &Tree<crate::raw::btree::Btree> {
        self.bag.marks()
    }

    /// Where the number of marked objects is.
    fn count_mark(&self) -> Position {
        let mut mark = self.prefix.clone();
        mark.push(0);
        mark
    }

    /// What the marks of the objects with this hash begin with.
    fn hash_marks(&self, value: &[u8]) -> Position {
        let mut mark = self.prefix.clone();
        mark.push(MARK);
        let hash = (self.bag.hash)(value);
        mark.extend_from_slice(&hash.to_be_bytes()[..HASH]);
        mark
    }

    /// Whether the objects have marks; `count` is known then.
    fn is_marked(&self) -> bool {
        if let Some(marked) = self.marked.get() {
            return marked;
        }
        let marked = self.bag.marks.get().is_some_and(|marks| {
            with_scratch(|count| {
                let found = marks.get(self.guard, &self.count_mark(), count);
                if let Some(count) = count.first_chunk() {
                    self.count.set(Some(u64::from_le_bytes(*count) as usize));
                }
                found
            })
        });
        self.marked.set(Some(marked));
        marked
    }

    fn mark(&self, number: u64, value: &[u8]) {
        let mut mark = self.hash_marks(value);
        push_number(number, &mut mark);
        self.marks().put(self.guard, &mark, &[], &mut |_| true);
    }

    fn unmark(&self, number: u64, value: &[u8]) {
        let mut mark = self.hash_marks(value);
        push_number(number, &mut mark);
        self.remove_mark(&mark);
    }

    fn remove_mark(&self, mark: &[u8]) {
        self.marks().remove(self.guard, mark, &mut |_| true);
    }

    /// Notes how many marked objects there are.
    fn set_count(&self, count: usize) {
        self.count.set(Some(count));
        let bytes = (count as u64).to_le_bytes();
        let mark = self.count_mark();
        self.marks().put(self.guard, &mark, &bytes, &mut |_| true);
    }

    /// Marks all objects: they have become many.
    fn mark_all(&self) {
        let mut n = 0;
        self.entries(&mut |position, value| {
            n += 1;
            self.mark(number(position), value);
            true
        });
        self.set_count(n);
        self.marked.set(Some(true));
    }

    /// Removes all marks: the objects have become few.
    fn unmark_all(&self) {
        let mut gone: Vec<Position> = vec![self.count_mark()];
        let mut marks = self.prefix.clone();
        marks.push(MARK);
        let range = (&marks[..], &marks[..]);
        runs(self.marks(), self.guard, range, usize::MAX, &mut |run| {
            gone.extend((0..run.len()).map(|i| run.position(i).into()));
            true
        });
        gone.iter().for_each(|mark| self.remove_mark(mark));
        self.marked.set(Some(false));
    }

    /// The numbers of the objects for which `same` holds, which have the hash of `value`; no more
    /// than `limit`.
    fn with_hash(
        &self,
        value: &[u8],
        limit: usize,
        same: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Vec<u64> {
        let (marks, mut found) = (self.hash_marks(value), Vec::new());
        let range = (&marks[..], &marks[..]);
        runs(self.marks(), self.guard, range, usize::MAX, &mut |run| {
            found.extend((0..run.len()).map(|i| number(run.position(i))));
            true
        });
        let mut left = limit;
        found.retain(|&n| {
            let is = left > 0
                && with_scratch(|object| {
                    let tree = &self.bag.tree;
                    tree.get(self.guard, &self.position(n), object) && same(object)
                });
            left -= usize::from(is);
            is
        });
        found
    }

    /// Takes note of how many objects are gone, whose marks are too.
    fn forget(&mut self, gone: usize) {
        let count = self.count().saturating_sub(gone);
        self.next.set(None);
        self.replaced = None;
        if !self.is_marked() {
            self.count.set(Some(count));
        } else if count < FEW {
            self.unmark_all();
            self.count.set(Some(count));
        } else {
            self.set_count(count);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.wrote {
            // Ordering: Release, pairs with a reader's first load: who sees it even again sees the
            // changes. The lock is still held.
            self.stripe.version.fetch_add(1, Release);
        }
    }
}

impl Objects for Held<'_> {
    fn count(&self) -> usize {
        if self.count.get().is_none() && !self.is_marked() {
            self.entries(&mut |_, _| true);
        }
        self.count.get().unwrap_or(0)
    }

    fn is_empty(&self) -> bool {
        if let Some(count) = self.count.get() {
            return count == 0;
        }
        let none = !self.bag.has_any(self.guard, &self.prefix);
        if none {
            self.count.set(Some(0));
            self.next.set(Some(0));
        }
        none
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        let mut ordinal = 0;
        self.entries(&mut |_, value| {
            ordinal += 1;
            f(ordinal - 1, value)
        });
    }

    fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        if self.is_marked() {
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
        let next = self.next();
        let position = self.position(next);
        self.put(&position, value);
        self.next.set(Some(next + 1));
        if self.is_marked() {
            self.mark(next, value);
            self.set_count(self.count() + 1);
            return;
        }
        if let Some(count) = self.count.get() {
            self.count.set(Some(count + 1));
        }
        // As many objects have at least as high a number.
        if next >= MANY as u64 && self.count() > MANY {
            self.mark_all();
        }
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        let (marked, mut gone) = (self.is_marked(), Vec::new());
        self.entries(&mut |position, value| {
            if f(value) {
                gone.push(number(position));
                if marked {
                    self.unmark(number(position), value);
                }
            }
            true
        });
        for &n in &gone {
            self.remove(&self.position(n));
        }
        if !gone.is_empty() {
            self.forget(gone.len());
        }
        gone.len()
    }

    fn remove_same(&mut self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        if !self.is_marked() {
            return self.remove_if(same);
        }
        let gone = self.with_hash(value, usize::MAX, same);
        for &n in &gone {
            // Its hash is that of `value`.
            self.unmark(n, value);
            self.remove(&self.position(n));
        }
        if !gone.is_empty() {
            self.forget(gone.len());
        }
        gone.len()
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        let (mut i, start) = match &self.replaced {
            Some((last, position)) if *last <= ordinal => (*last, position.clone()),
            _ => (0, self.prefix.clone()),
        };
        let marked = self.is_marked();
        let mut found: Option<(Position, Vec<u8>)> = None;
        self.entries_from(&start, &mut |position, old| {
            if i == ordinal {
                let old = if marked { old.to_vec() } else { Vec::new() };
                found = Some((position.into(), old));
            }
            i += 1;
            found.is_none()
        });
        let Some((position, old)) = found else {
            return;
        };
        self.put(&position, value);
        if marked {
            self.unmark(number(&position), &old);
            self.mark(number(&position), value);
        }
        self.replaced = Some((ordinal, position));
    }
}

//! The objects of a key whose entry is a list, under the lock of the entry's leaf.
//!
//! They are read in place. The first change makes a copy of the list, which replaces the entry when
//! all changes are made.

use super::list::{self, ListItem};
use crate::Objects;

/// The objects of a key, and the changes to them.
pub(super) struct ListValues<'a> {
    /// The list in the leaf; empty if the key has no entry.
    old: &'a [u8],
    /// The new list, after the first change.
    new: &'a mut Vec<u8>,
    changed: bool,
    count: usize,
    /// The number that the next object will get, after the first push. One call may push so many
    /// that looking for the last one each time would take long.
    next: Option<u64>,
}

impl<'a> ListValues<'a> {
    /// The objects of a list; `new` is empty.
    #[inline]
    pub(super) fn new(old: &'a [u8], new: &'a mut Vec<u8>) -> Self {
        ListValues {
            old,
            new,
            changed: false,
            count: list::count(old),
            next: None,
        }
    }

    /// Whether anything was changed. If so, `new` has the list, whose first byte the caller writes.
    #[inline]
    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    /// The current list.
    #[inline]
    fn list(&self) -> &[u8] {
        if self.changed {
            self.new
        } else {
            self.old
        }
    }

    /// The new list. The first call copies the old one.
    #[inline]
    fn change(&mut self) -> &mut Vec<u8> {
        if !self.changed {
            self.changed = true;
            // A key without objects has no list to copy. A new one begins with a count of zero.
            match self.old {
                [] => self.new.push(0),
                old => self.new.extend_from_slice(old),
            }
        }
        self.new
    }

    /// The number that the next object will get.
    #[inline]
    fn next(&self) -> u64 {
        self.next.unwrap_or_else(|| {
            let last = list::items(self.list()).last();
            last.map_or(0, |item| item.number + 1)
        })
    }

    /// Removes an item from the new list.
    fn cut(&mut self, item: &ListItem) {
        self.change().drain(item.from..item.end);
        self.count -= 1;
    }
}

impl Objects for ListValues<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.count
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        let list = self.list();
        for (ordinal, item) in list::items(list).enumerate() {
            if !f(ordinal, &list[item.object]) {
                return;
            }
        }
    }

    fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
        let list = self.list();
        list::items(list).for_each(|item| f(item.number, &list[item.object]));
    }

    fn find(&self, _value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let list = self.list();
        list::items(list).any(|item| same(&list[item.object]))
    }

    fn push(&mut self, value: &[u8]) {
        let next = self.next();
        list::push(self.change(), value, next);
        self.next = Some(next + 1);
        self.count += 1;
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        // The first byte of a list is its count, so the first item begins after it.
        let (mut at, mut removed) = (1, 0);
        loop {
            // The list is looked up again in each step: the first removal replaces it by a copy.
            let list = self.list();
            let Some(item) = list::items_from(list, at).next() else {
                return removed;
            };
            if f(&list[item.object.clone()]) {
                // What follows has moved to the place of the removed item. So `at` stays.
                self.cut(&item);
                removed += 1;
            } else {
                at = item.end;
            }
        }
    }

    fn remove_all(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        self.each(&mut |_, value| {
            f(value);
            true
        });
        let removed = self.count;
        // An empty list needs no change.
        if removed > 0 {
            self.change().truncate(1);
            self.count = 0;
        }
        removed
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        let Some(item) = list::items(self.list()).nth(ordinal) else {
            return;
        };
        let mut replacement = Vec::with_capacity(value.len() + 16);
        list::push(&mut replacement, value, item.number);
        self.change().splice(item.from..item.end, replacement);
    }
}

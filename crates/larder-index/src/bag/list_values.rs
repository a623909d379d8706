//! The objects of a key whose entry is a list, under the lock of the entry's leaf.
//!
//! They are read in place. The first change makes a copy of the list, which replaces the entry when
//! all changes are made.

use super::list;
use super::list_buffer::ListBuffer;
use crate::Objects;
use std::ops::Range;

/// The objects of a key, and the changes to them.
pub(super) struct ListValues<'a> {
    /// The list in the leaf; empty if the key has no entry, or if all objects were removed.
    old: &'a [u8],
    /// The new list; empty before it is the current one.
    new: &'a mut ListBuffer,
    /// Whether the current list is the new one.
    is_new: bool,
    /// Whether anything was changed.
    changed: bool,
    count: usize,
    /// The number that the next object will get, after the first push. One call may push so many
    /// that looking for the last one each time would take long.
    next: Option<u64>,
}

impl<'a> ListValues<'a> {
    /// The objects of a list; `new` is empty.
    #[inline]
    pub(super) fn new(old: &'a [u8], new: &'a mut ListBuffer) -> Self {
        ListValues {
            old,
            new,
            is_new: false,
            changed: false,
            count: list::count(old),
            next: None,
        }
    }

    /// Whether anything was changed. If so, and there are objects, `new` has their list. The caller
    /// writes its first byte.
    #[inline]
    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    /// The current list.
    #[inline]
    fn list(&self) -> &[u8] {
        match self.is_new {
            true => self.new,
            false => self.old,
        }
    }

    /// Begins the new list with the first bytes of the old one, of which there are `len`.
    #[inline]
    fn begin(&mut self, len: usize) {
        // A key without objects has no list to copy. A new one begins with a count of zero.
        match self.old.get(..len) {
            Some(old @ [_, ..]) => self.new.extend_from_slice(old),
            _ => self.new.push(0),
        }
    }

    /// The new list. The first call copies the old one.
    #[inline]
    fn change(&mut self) -> &mut ListBuffer {
        if !self.is_new {
            self.begin(self.old.len());
            (self.is_new, self.changed) = (true, true);
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

    /// Moves an item of the current list to `end` in the new one, up to which bytes of the current
    /// one stay.
    fn move_item(&mut self, item: Range<usize>, end: usize) {
        if self.is_new {
            self.new.copy_within(item, end);
            return;
        }
        if self.new.is_empty() {
            self.begin(end);
        }
        self.new.extend_from_slice(&self.old[item]);
    }

    /// Ends a removal after which the new list has `end` bytes.
    fn end_removal(&mut self, end: usize) {
        if self.new.is_empty() {
            self.begin(end);
        }
        self.new.truncate(end);
        (self.is_new, self.changed) = (true, true);
    }

    /// Removes all objects. This needs no new list.
    #[inline]
    fn clear(&mut self) {
        (self.old, self.is_new, self.changed, self.count) = (&[], false, true, 0);
        self.new.truncate(0);
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
        let list = self.list();
        // Look for the first object that goes in the old list, where it lies. Without one, nothing
        // is copied.
        let first = list::items(list).find(|item| f(&list[item.object.clone()]));
        let Some(first) = first else {
            return 0;
        };
        // From there on, move those that stay to the front. What stays of the list ends at `end`.
        let (mut at, mut end, mut removed) = (first.end, first.from, 1);
        while let Some(item) = list::items_from(self.list(), at).next() {
            at = item.end;
            if f(&self.list()[item.object]) {
                removed += 1;
            } else {
                self.move_item(item.from..item.end, end);
                end += item.end - item.from;
            }
        }
        self.count -= removed;
        match self.count {
            0 => self.clear(),
            _ => self.end_removal(end),
        }
        removed
    }

    fn remove_all(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        let (list, removed) = (self.list(), self.count);
        list::items(list).for_each(|item| f(&list[item.object]));
        // An empty list needs no change.
        if removed > 0 {
            self.clear();
        }
        removed
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        let Some(item) = list::items(self.list()).nth(ordinal) else {
            return;
        };
        // The object keeps its number (G4). Those after it move by the difference of the lengths.
        let list = self.change();
        let rest = list[item.end..].to_vec();
        list.truncate(item.from);
        list::push(list, value, item.number);
        list.extend_from_slice(&rest);
    }
}

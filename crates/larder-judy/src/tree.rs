//! A tree with its root, count and memory. The word arrays are based on it.

use std::ops::{Bound, RangeBounds};

use crate::layout::{Kind, Map};
use crate::ops::cursor::Cursor;
use crate::ops::find::{self, Slot};
use crate::ops::free::Doomed;
use crate::ops::seek::Found;
use crate::ops::{empty, insert, rank, stats, ROOT};
use crate::raw::cpu;
use crate::raw::jp::Jp;
use crate::raw::mem::Mem;
use crate::Stats;

/// A tree of indexes.
pub(crate) struct Tree<K: Kind> {
    root: Jp<K>,
    /// The number of indexes.
    len: u64,
    /// The memory of the nodes, those of `doomed` included.
    mem: Mem,
    /// Subtrees that wait to be freed (`clear_later`).
    doomed: Doomed<K>,
}

impl<K: Kind> Tree<K> {
    pub(crate) const fn new() -> Self {
        Tree {
            root: Jp::NULL,
            len: 0,
            mem: Mem::new(),
            doomed: Doomed::new(),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<Slot<'_>> {
        cpu::get(&self.root, key)
    }

    #[inline]
    pub(crate) fn insert(&mut self, key: u64) -> insert::Inserted<'_> {
        let inserted = cpu::insert(&mut self.root, ROOT, key, &mut self.mem);
        self.len += inserted.1 as u64;
        inserted
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: u64) -> Option<u64> {
        let removed = cpu::remove(&mut self.root, ROOT, key, &mut self.mem)?;
        self.len -= 1;
        Some(removed)
    }

    /// The nearest index from `key` on, itself included.
    #[inline]
    pub(crate) fn seek<const UP: bool>(&self, key: u64) -> Option<Found<'_>> {
        cpu::seek::<UP, K>(&self.root, key)
    }

    /// The nearest index beyond `key`.
    #[inline]
    pub(crate) fn beyond<const UP: bool>(&self, key: u64) -> Option<Found<'_>> {
        self.seek::<UP>(if UP {
            key.checked_add(1)?
        } else {
            key.checked_sub(1)?
        })
    }

    /// The nearest missing index from `key` on, itself included.
    pub(crate) fn empty<const UP: bool>(&self, key: u64) -> Option<u64> {
        empty::empty::<UP, K>(&self.root, ROOT, key)
    }

    /// The nearest missing index beyond `key`.
    pub(crate) fn empty_beyond<const UP: bool>(&self, key: u64) -> Option<u64> {
        self.empty::<UP>(if UP {
            key.checked_add(1)?
        } else {
            key.checked_sub(1)?
        })
    }

    pub(crate) fn count(&self, range: impl RangeBounds<u64>) -> u64 {
        let below = |key| rank::rank(&self.root, ROOT, key);
        // The greatest index has no successor, so it is a case of its own.
        let from = match range.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(&key) => below(key),
            Bound::Excluded(&u64::MAX) => self.len,
            Bound::Excluded(&key) => below(key + 1),
        };
        let to = match range.end_bound() {
            Bound::Unbounded | Bound::Included(&u64::MAX) => self.len,
            Bound::Included(&key) => below(key + 1),
            Bound::Excluded(&key) => below(key),
        };
        to.saturating_sub(from)
    }

    pub(crate) fn nth(&self, n: u64) -> Option<Found<'_>> {
        if n >= self.len {
            return None;
        }
        rank::nth(&self.root, ROOT, n)
    }

    pub(crate) fn cursor<const UP: bool>(&self, key: u64) -> Cursor<'_, K, UP> {
        Cursor::from(&self.root, key)
    }

    pub(crate) fn clear(&mut self) {
        self.clear_later();
        self.free_some(usize::MAX);
    }

    /// Empties the tree; its nodes wait to be given back.
    pub(crate) fn clear_later(&mut self) {
        // No node is visited, so this takes constant time.
        self.doomed.add(self.root.take());
        self.len = 0;
    }

    /// Frees at most `limit` of the nodes that wait to be freed. Returns whether more wait.
    pub(crate) fn free_some(&mut self, limit: usize) -> bool {
        self.doomed.free(limit, &mut self.mem, |_, _, _| ());
        !self.doomed.is_empty()
    }

    pub(crate) fn memory_used(&self) -> usize {
        self.mem.bytes()
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        stats::stats(&self.root, ROOT, 1, &mut stats);
        stats
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(stats::check(&self.root, ROOT, 0), self.len);
    }
}

impl Tree<Map> {
    #[inline]
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut u64> {
        find::get_mut(&mut self.root, key).flatten()
    }
}

impl<K: Kind> Drop for Tree<K> {
    fn drop(&mut self) {
        self.clear();
    }
}

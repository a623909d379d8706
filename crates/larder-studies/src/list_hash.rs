//! Hash tables of lock-free lists: changes, scans and counting. The tables differ in how a bucket
//! is found, and in whether their number grows ([`Buckets`]).
//!
//! A bucket has a range of hashes. So the buckets, in the order of hashes, have the entries in the
//! order of positions.
//!
//! - Lookups are wait-free.
//! - The writers of one position exclude each other (`key_locks`). Apart from that, writers are
//!   lock-free.
//! - `has` and scans wait for changes of an entry that are in progress.
//! - To replace an entry, its node gets another word.
//! - A scan visits each entry as it was at some instant while the batch was read.

use crate::counts::Counts;
use crate::key_locks::KeyLocks;
use crate::list::{self, ListNode};
use crate::position::hash_of;
use crate::raw::slot::Slot;
use crate::scheme::{Changer, Old, Reader, Scheme, EMPTY_AT_ONCE};
use crate::sequential::{Act, Visitor};
use crate::word::Word;
use crate::Cut;
use larder_index::{Guard, Stats};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// The buckets of a table: links into lists.
pub trait Buckets<W: Word>: Send + Sync {
    /// The link at which the search for a hash begins. No entry with this hash is before it.
    /// Wait-free.
    fn look<'g>(&'g self, hash: u64, guard: &'g Guard) -> Start<'g, W>;

    /// Like `look`, for a writer. May insert the start node of the bucket.
    fn prepare<'g>(&'g self, hash: u64, guard: &'g Guard) -> Start<'g, W>;

    /// The first and the last hash of the bucket of a hash.
    fn span(&self, hash: u64) -> (u64, u64);

    /// Called when entries were inserted (`by` is positive) or removed.
    fn came(&self, by: isize);

    /// The memory of the buckets in bytes.
    fn memory(&self) -> usize;

    /// The number of buckets.
    fn count(&self) -> usize;

    /// The number of objects at which the table is full. `None` if it has no limit. The caller
    /// checks it before it inserts: the table itself refuses nothing.
    fn limit(&self) -> Option<usize> {
        None
    }
}

/// The link at which a list begins.
pub struct Start<'g, W: Word>(pub(crate) &'g Slot<ListNode<W>>);

/// A hash table of lock-free lists.
pub struct ListHash<W, B> {
    buckets: B,
    keys: KeyLocks,
    counts: Counts,
    contended: AtomicU64,
    /// The hash at which the next call of [`Scheme::pop`] continues.
    popped: AtomicU64,
    words: std::marker::PhantomData<fn() -> W>,
}

impl<W: Word, B: Buckets<W>> ListHash<W, B> {
    /// An empty table with these buckets.
    pub fn new(buckets: B) -> Self {
        ListHash {
            buckets,
            keys: KeyLocks::new(),
            counts: Counts::default(),
            contended: AtomicU64::new(0),
            popped: AtomicU64::new(0),
            words: std::marker::PhantomData,
        }
    }

    /// Finds the entry at a position. Wait-free.
    fn find<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> Option<&'g ListNode<W>> {
        let start = self.buckets.look(hash_of(position), guard);
        list::search(start.0, position, guard)
    }

    /// Inserts an entry. The position is locked, and has no entry.
    fn insert(&self, guard: &Guard, position: &[u8], word: W) {
        let node = ListNode::new(position, Some(word));
        // The start may be any link before the place of the entry: the search continues from there.
        let start = self.buckets.prepare(hash_of(position), guard);
        // The position is locked, so no other thread inserts an entry at it, and this one is new.
        list::insert(start.0, &node, guard);
        self.counts.add(0, node.bytes());
        self.buckets.came(1);
    }

    /// Removes an entry. The position is locked.
    fn remove(&self, guard: &Guard, node: &ListNode<W>) {
        let start = self.buckets.look(hash_of(&node.position), guard);
        if list::remove(start.0, node, guard) {
            self.counts.add(0, -node.bytes());
            self.buckets.came(-1);
        }
    }

    /// The entries with hashes in the span, in ascending order.
    fn run<'g>(
        &'g self,
        guard: &'g Guard,
        span: (u64, u64),
    ) -> impl Iterator<Item = &'g ListNode<W>> + 'g {
        // If the bucket has no start node yet, the list begins before the span. Skip those entries.
        let first = self.buckets.look(span.0, guard).0.load(guard);
        std::iter::successors(first, |node| node.next.load(guard))
            .take_while(move |node| hash_of(&node.position) <= span.1)
            .filter(move |node| node.is_entry() && hash_of(&node.position) >= span.0)
    }

    /// Calls `f` with a node, if it is in the list after the changes in progress. Returns
    /// whether to continue.
    fn visit(&self, guard: &Guard, node: &ListNode<W>, f: &mut Visitor<'_, W>) -> bool {
        self.keys.settle(&node.position);
        match node.word.load(guard) {
            Some(word) if node.is_there(guard) => f(&node.position, word),
            _ => true,
        }
    }
}

impl<W: Word, B: Buckets<W>> Scheme<W> for ListHash<W, B> {
    fn read(&self, guard: &Guard, position: &[u8], f: &mut Reader<'_, W>) {
        f(self
            .find(guard, position)
            .and_then(|node| node.word.load(guard)));
    }

    fn has(&self, guard: &Guard, position: &[u8]) -> bool {
        self.keys.settle(position);
        self.find(guard, position).is_some()
    }

    fn change(&self, guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool {
        // While the position is locked, no other thread inserts, changes or removes its entry.
        let (_key, contended) = self.keys.lock(position);
        if contended {
            self.counts.contended();
            // Ordering: Relaxed, a statistic.
            self.contended.fetch_add(1, Relaxed);
        }
        let node = self.find(guard, position);
        let word = node.and_then(|node| node.word.load(guard));
        match (f(word.map_or(Old::Absent, Old::Shared)), node) {
            (Act::Keep, _) | (Act::Remove, None) => {}
            (Act::Put(word), Some(node)) => node.word.store(Some(Arc::new(word)), guard),
            (Act::Put(word), None) => self.insert(guard, position, word),
            (Act::Remove, Some(node)) => self.remove(guard, node),
        }
        contended
    }

    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        // Wait for changes in progress, once for all positions: the walk doesn't know the
        // positions of entries that are being inserted.
        self.keys.settle_all();
        let forward = cut.is_forward();
        let edge = if forward { 0 } else { u64::MAX };
        let mut hash = cut.bytes().map_or(edge, hash_of);
        loop {
            let span = self.buckets.span(hash);
            let admitted = |node: &&ListNode<W>| cut.admits(&node.position);
            // Links only lead forward. So collect the entries of a bucket, and reverse them for a
            // walk backward. The guard keeps the nodes.
            let mut run: Vec<_> = self.run(guard, span).filter(admitted).collect();
            if !forward {
                run.reverse();
            }
            if !run.into_iter().all(|node| self.visit(guard, node, f)) {
                return false;
            }
            // Continue at a hash, not at a bucket number. So if the number of buckets doubles
            // meanwhile, the next span begins where this one ended.
            let next = if forward {
                span.1.checked_add(1)
            } else {
                span.0.checked_sub(1)
            };
            match next {
                Some(next) => hash = next,
                None => return true,
            }
        }
    }

    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        // Ordering: Relaxed, it is this thread's alone: nobody else writes.
        // Continue at the hash where the last call stopped, so that emptied buckets aren't searched
        // again.
        let mut hash = self.popped.load(Relaxed);
        let mut left = limit;
        // A bounded number of buckets, since many may be empty, and the caller works in slices.
        for _ in 0..EMPTY_AT_ONCE {
            let span = self.buckets.span(hash);
            for node in self.run(guard, span) {
                if left == 0 {
                    // Ordering: Relaxed, as above.
                    // Begin at this bucket again: it may have entries left.
                    self.popped.store(span.0, Relaxed);
                    return false;
                }
                let (_key, _) = self.keys.lock(&node.position);
                if node.is_there(guard) {
                    left -= 1;
                    let word = node.word.load(guard).cloned();
                    self.remove(guard, node);
                    word.into_iter().for_each(&mut *f);
                }
            }
            // Ordering: Relaxed, as above.
            // After the last bucket, begin at the first one: a later call finds entries of later
            // inserts.
            self.popped
                .store(span.1.checked_add(1).unwrap_or(0), Relaxed);
            match span.1.checked_add(1) {
                Some(next) => hash = next,
                None => return true,
            }
        }
        false
    }

    fn freeze(&self, on: bool) {
        if on {
            self.keys.settle_all();
        }
    }

    fn limit(&self) -> Option<usize> {
        self.buckets.limit()
    }

    fn memory(&self, _guard: &Guard) -> usize {
        self.counts.bytes() + self.keys.memory() + self.buckets.memory()
    }

    fn stats(&self, _guard: &Guard) -> Stats {
        Stats {
            leaves: self.buckets.count(),
            // Ordering: Relaxed, a statistic.
            contended: self.contended.load(Relaxed),
            more: Vec::from_iter(self.buckets.limit().map(|n| ("limit", n as u64))),
            ..Stats::default()
        }
    }
}

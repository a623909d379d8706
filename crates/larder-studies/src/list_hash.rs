//! What hash tables of lock-free lists have in common: changes, scans, counting. How a bucket is
//! found, and whether there come to be more, is theirs ([`Buckets`]).
//!
//! A bucket has a run of hashes, so that one bucket after the other is the order of positions. The
//! writers of one position exclude each other (see `key_locks.rs`); all else is lock-free, a lookup
//! wait-free. `has` and scans wait for a change of the entry that is under way. An entry is
//! replaced by another word in its node; a scan meets each entry as it was at some time while the
//! batch was read.

use crate::counts::Counts;
use crate::key_locks::KeyLocks;
use crate::list::{self, Node};
use crate::position::hash_of;
use crate::raw::slot::Slot;
use crate::scheme::{Changer, Old, Reader, Scheme};
use crate::sequential::{Act, Visitor};
use crate::word::Word;
use crate::Cut;
use larder_index::{Guard, Stats};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Buckets that are looked at in one call of [`Scheme::pop`].
const EMPTY_AT_ONCE: usize = 4096;

/// Where lists begin.
pub trait Buckets<W: Word>: Send + Sync {
    /// Where to look for a hash: in the list that begins there, before which it is not. Wait-free.
    fn look<'g>(&'g self, hash: u64, guard: &'g Guard) -> Start<'g, W>;

    /// As `look`, for a writer, who may prepare the bucket.
    fn prepare<'g>(&'g self, hash: u64, guard: &'g Guard) -> Start<'g, W>;

    /// The first and the last hash of the bucket of a hash.
    fn span(&self, hash: u64) -> (u64, u64);

    /// An entry came (or went).
    fn came(&self, by: isize);

    /// Bytes of memory that the buckets take.
    fn memory(&self) -> usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// Objects at which the table is full; none if it never is. Who inserts looks at it, not the
    /// table.
    fn limit(&self) -> Option<usize> {
        None
    }
}

/// A link that a list begins with.
pub struct Start<'g, W: Word>(pub(crate) &'g Slot<Node<W>>);

/// A hash table of lock-free lists.
pub struct ListHash<W, B> {
    buckets: B,
    keys: KeyLocks,
    counts: Counts,
    contended: AtomicU64,
    /// The first hash that [`Scheme::pop`] has not come to.
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

    fn find<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> Option<&'g Node<W>> {
        let start = self.buckets.look(hash_of(position), guard);
        list::search(start.0, position, guard)
    }

    /// The position is locked, and there is no entry.
    fn insert(&self, guard: &Guard, position: &[u8], word: W) {
        let node = Node::new(position, Some(word));
        // A bucket's beginning may be anywhere before the entry: the list is one order, and the
        // search goes on from there.
        let start = self.buckets.prepare(hash_of(position), guard);
        list::insert(start.0, &node, guard);
        self.counts.add(0, node.bytes());
        self.buckets.came(1);
    }

    /// The position is locked, and the entry is there.
    fn remove(&self, guard: &Guard, node: &Node<W>) {
        let start = self.buckets.look(hash_of(&node.position), guard);
        if list::remove(start.0, node, guard) {
            self.counts.add(0, -node.bytes());
            self.buckets.came(-1);
        }
    }

    /// The entries with hashes of the span, in ascending order.
    fn run<'g>(
        &'g self,
        guard: &'g Guard,
        span: (u64, u64),
    ) -> impl Iterator<Item = &'g Node<W>> + 'g {
        // The bucket's beginning may lie before the span, where it has no node of its own yet; what
        // is before the span is passed over.
        let first = self.buckets.look(span.0, guard).0.load(guard);
        std::iter::successors(first, |node| node.next.load(guard))
            .take_while(move |node| hash_of(&node.position) <= span.1)
            .filter(move |node| node.is_entry() && hash_of(&node.position) >= span.0)
    }

    /// Meets the node, if it is there once no change of it that began before is under way.
    fn visit(&self, guard: &Guard, node: &Node<W>, f: &mut Visitor<'_, W>) -> bool {
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
        // From here on the entry is this thread's: that it is there, or not, holds until the end.
        let (_key, contended) = self.keys.lock(position);
        if contended {
            self.counts.contended();
            // Ordering: Relaxed, a figure for people.
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
        // An entry that is yet to come is nobody's that could be contended for.
        self.keys.settle_all();
        let forward = cut.is_forward();
        let edge = if forward { 0 } else { u64::MAX };
        let mut hash = cut.bytes().map_or(edge, hash_of);
        loop {
            let span = self.buckets.span(hash);
            let admitted = |node: &&Node<W>| cut.admits(&node.position);
            // The list leads forward only: a bucket's entries are gathered, and turned round where
            // the walk goes backward. The guard keeps them.
            let mut run: Vec<_> = self.run(guard, span).filter(admitted).collect();
            if !forward {
                run.reverse();
            }
            if !run.into_iter().all(|node| self.visit(guard, node, f)) {
                return false;
            }
            // By hashes, not by bucket numbers: if the buckets double meanwhile, the next span
            // begins where this one ended.
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
        let mut hash = self.popped.load(Relaxed);
        let mut left = limit;
        for _ in 0..EMPTY_AT_ONCE {
            let span = self.buckets.span(hash);
            for node in self.run(guard, span) {
                if left == 0 {
                    // Ordering: Relaxed, as above.
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
            // Ordering: Relaxed, a figure for people.
            contended: self.contended.load(Relaxed),
            more: Vec::from_iter(self.buckets.limit().map(|n| ("limit", n as u64))),
            ..Stats::default()
        }
    }
}

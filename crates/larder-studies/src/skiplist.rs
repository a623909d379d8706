//! A lazy skip list with wait-free lookups: `cskiplist` of the study of 2013.
//!
//! ```text
//!   level 2   head ----------------------> k ------------------------> end
//!   level 1   head --------> d ----------> k --------> p ------------> end
//!   level 0   head --> a --> d --> f ----> k --> m --> p --> t ------> end   all entries, in order
//! ```
//!
//! Invariants:
//! * **SL1** On each level positions ascend. The nodes of a level are a subset of those of the
//!   level below.
//! * **SL2** A node is in the list if and only if it is `linked` and not `marked`. Each of the two
//!   is set once, and never cleared.
//! * **SL3** The links of a node change only while its lock is held and it isn't marked. Its word
//!   changes only while its position is locked.
//! * **SL4** Locks of nodes are taken from greater positions to smaller ones. So there is no
//!   deadlock.
//!
//! Steps of a change:
//! 1. Lock the position.
//! 2. Search for it.
//! 3. Let the caller decide.
//!
//! *To insert a node*:
//!
//! 4. Find its predecessors, on each of its levels.
//! 5. Lock them. If they aren't the predecessors any more, continue with 4.
//! 6. Link the node, from the lowest level up.
//! 7. Set `linked`. This is the linearisation point.
//!
//! *To remove a node*:
//!
//! 4. Lock the node, and mark it. This is the linearisation point.
//! 5. Find and lock its predecessors, as above.
//! 6. Unlink it, from the highest level down.
//!
//! A lookup passes marked nodes. It writes nothing, and waits for no thread. `has` and scans wait
//! for changes of an entry that are in progress.
//!
//! Source: M. Herlihy, Y. Lev, V. Luchangco, N. Shavit, "A simple optimistic skiplist algorithm",
//! SIROCCO 2007. Deviations:
//! - Nodes are reclaimed by epochs. The study of 2013 uses hazard pointers (see below).
//! - Writers of one position exclude each other by a lock (`key_locks`).
//! - A batch of a scan is not of one instant. Each entry was present at some instant while the
//!   batch was read.
//! - A step backward is a search from the head, since there are no links backward.
//!
//! *Why epochs.* With hazard pointers, a reader publishes the address of each node on its path, and
//! executes a fence before it continues. The following times are of haphazard 0.1.8, for the 24
//! nodes of a lookup among 65,536 entries (medians of five runs, in µs):
//!
//! | | epoch guard | two pointers, kept by the thread | two pointers, made for the lookup |
//! |---|---|---|---|
//! | in cache | 0.48 | 1.50 | 1.84 |
//! | in cache, two threads | 0.86 | 2.45 | 3.36 |
//! | out of cache | 9.3 | 15.3 | 21.7 |
//!
//! Hand-over-hand traversal needs unsafe code there, because the borrow of a node depends on that
//! of the node before. Also, the word that a scheme returns must outlive the search, as it does
//! under a guard. The drawback of epochs: a thread that stops in the middle of a lookup prevents
//! everything that is removed meanwhile from being freed, in all tables. Larder's calls hold a
//! guard for one slice at most.
//!
//! When not to use it: for bags with many objects per key, since each change copies their handles;
//! for scans backward; for tables that don't fit in the cache, since a lookup has a miss for each
//! of about log₂ n nodes; for many small tables, since each has 8 KiB of locks.

use crate::counts::Counts;
use crate::key_locks::KeyLocks;
use crate::position::spilled;
use crate::raw::slot::Slot;
use crate::scheme::{Changer, Old, Reader, Scheme};
use crate::sequential::{Act, Visitor};
use crate::word::Word;
use crate::{Cut, Position};
use larder_index::sync::atomic::{AtomicBool, Ordering};
use larder_index::sync::{planted, random, Backoff, Fault, Mutex, MutexGuard};
use larder_index::{Direction, Guard, Start, Stats};
use smallvec::SmallVec;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

/// The maximum number of levels. A quarter of the nodes of a level are on the next one, so this is
/// enough for 4¹⁶ entries.
const LEVELS: usize = 16;

struct SkipListNode<W: Word> {
    position: Position,
    word: Slot<W>,
    links: Links<W>,
    linked: AtomicBool,
}

/// The links of a node or of the head: the next node on each level.
struct Links<W: Word> {
    next: Box<[Slot<SkipListNode<W>>]>,
    lock: Mutex<()>,
    marked: AtomicBool,
}

impl<W: Word> Links<W> {
    fn new(levels: usize) -> Self {
        Links {
            next: (0..levels).map(|_| Slot::new(None)).collect(),
            lock: Mutex::new(()),
            marked: AtomicBool::new(false),
        }
    }

    fn is_marked(&self) -> bool {
        // Ordering: Acquire, pairs with the Release store in `unlink`.
        self.marked.load(Ordering::Acquire)
    }

    fn next<'g>(&'g self, level: usize, guard: &'g Guard) -> Option<&'g SkipListNode<W>> {
        self.next[level].load(guard)
    }
}

impl<W: Word> SkipListNode<W> {
    fn new(position: Position, word: W) -> Self {
        SkipListNode {
            position,
            word: Slot::new(Some(Arc::new(word))),
            links: Links::new(random_levels()),
            linked: AtomicBool::new(false),
        }
    }

    fn levels(&self) -> usize {
        self.links.next.len()
    }

    /// Whether the node is in the list (SL2).
    fn is_there(&self) -> bool {
        // Ordering: Acquire, pairs with the Release store in `link`.
        self.linked.load(Ordering::Acquire) && !self.links.is_marked()
    }

    /// The memory of the node, its links and its word in bytes. Each `Arc` has two counts.
    fn bytes(&self) -> isize {
        let node = size_of::<Self>() + 16 + self.levels() * size_of::<Slot<Self>>();
        (node + spilled(&self.position) + size_of::<W>() + 16) as isize
    }
}

impl<W: Word> Drop for SkipListNode<W> {
    fn drop(&mut self) {
        // This node may own the last references to the next ones, and so on. Drop them in a loop: a
        // recursion would overflow the stack.
        let mut waiting: Vec<_> = self.links.next.iter_mut().filter_map(Slot::take).collect();
        while let Some(next) = waiting.pop() {
            if let Some(mut node) = Arc::into_inner(next) {
                waiting.extend(node.links.next.iter_mut().filter_map(Slot::take));
            }
        }
    }
}

/// The number of levels of a new node. It is geometrically distributed: each further level has a
/// probability of one in four.
fn random_levels() -> usize {
    1 + (random().leading_zeros() as usize / 2).min(LEVELS - 1)
}

/// A lazy skip list.
pub struct SkipList<W: Word> {
    head: Links<W>,
    keys: KeyLocks,
    counts: Counts,
    contended: AtomicU64,
}

/// The predecessors of a position on each level, and their successors.
struct Around<'g, W: Word> {
    before: [&'g Links<W>; LEVELS],
    after: [Option<&'g SkipListNode<W>>; LEVELS],
}

fn same<T>(a: Option<&T>, b: Option<&T>) -> bool {
    a.map(std::ptr::from_ref) == b.map(std::ptr::from_ref)
}

impl<W: Word> Default for SkipList<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Word> SkipList<W> {
    /// An empty list.
    pub fn new() -> Self {
        SkipList {
            head: Links::new(LEVELS),
            keys: KeyLocks::new(),
            counts: Counts::default(),
            contended: AtomicU64::new(0),
        }
    }

    /// Finds the predecessors and successors of the place in front of which all positions are
    /// `left`.
    fn around<'g>(&'g self, guard: &'g Guard, left: impl Fn(&[u8]) -> bool) -> Around<'g, W> {
        let mut around = Around {
            before: [&self.head; LEVELS],
            after: [None; LEVELS],
        };
        let mut links = &self.head;
        // From the highest level down. Each level continues where the one above stopped, so that
        // the search passes O(log n) nodes.
        for level in (0..LEVELS).rev() {
            let mut next = links.next(level, guard);
            while let Some(node) = next.filter(|node| left(&node.position)) {
                links = &node.links;
                next = links.next(level, guard);
            }
            // Continue on the level below, at the same node, which is on that level, too (SL1).
            around.before[level] = links;
            around.after[level] = next;
        }
        around
    }

    /// Finds the node at a position, if it is in the list (SL2). Wait-free.
    fn find<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> Option<&'g SkipListNode<W>> {
        // No lock is needed. Every node that is visited is in the list, or was when the search
        // reached its predecessor.
        let mut links = &self.head;
        for level in (0..LEVELS).rev() {
            while let Some(node) = links.next(level, guard) {
                match node.position[..].cmp(position) {
                    std::cmp::Ordering::Less => links = &node.links,
                    // If the node is marked, a new one at the same position may be on a lower
                    // level. Descend.
                    std::cmp::Ordering::Equal if node.is_there() => return Some(node),
                    _ => break,
                }
            }
        }
        None
    }

    /// The last node left of the cut. `None` if there is none.
    fn last_left<'g>(&'g self, guard: &'g Guard, cut: Cut<'_>) -> Option<&'g SkipListNode<W>> {
        let (mut links, mut last) = (&self.head, None);
        for level in (0..LEVELS).rev() {
            while let Some(node) = links.next(level, guard) {
                if !cut.has_left(&node.position) {
                    break;
                }
                (links, last) = (&node.links, Some(node));
            }
        }
        last
    }

    /// Steps 4 and 5: finds and locks the predecessors of a position on the lowest `levels`. Calls
    /// `f` when they are locked, still the predecessors, and `valid`.
    fn locked<'g, R>(
        &'g self,
        guard: &'g Guard,
        position: &[u8],
        levels: usize,
        valid: impl Fn(&Around<'g, W>) -> bool,
        f: impl FnOnce(&Around<'g, W>) -> R,
    ) -> R {
        let backoff = Backoff::new();
        loop {
            // (4) Search without a lock. The result may be out of date at once, so it is verified
            // below.
            let around = self.around(guard, |p| p < position);
            // (5) Lock the predecessors, from the lowest level up. Those of higher levels have
            // smaller positions (SL4).
            let mut locks: SmallVec<[MutexGuard<'g, ()>; LEVELS]> = SmallVec::new();
            for level in 0..levels {
                let links = around.before[level];
                // A node may be the predecessor on several neighbouring levels. Lock it once.
                if level == 0 || !std::ptr::eq(links, around.before[level - 1]) {
                    locks.push(links.lock.lock());
                }
            }
            let before = &around.before[..levels];
            // While the locks are held, none of these nodes is removed, and no node is inserted
            // after one of them (SL3). So what is verified now holds until the locks are released.
            let unmarked = before.iter().all(|links| !links.is_marked());
            let next = |level: usize| around.before[level].next(level, guard);
            let same = (0..levels).all(|level| same(next(level), around.after[level]));
            if unmarked && same && valid(&around) || planted(Fault::Unvalidated) {
                return f(&around);
            }
            // Release the locks before waiting. The thread that has changed the list may need them.
            drop(locks);
            backoff.snooze();
        }
    }

    /// Inserts a new node. Its position is locked, and has no node.
    fn link(&self, guard: &Guard, node: SkipListNode<W>) {
        let (levels, position) = (node.levels(), node.position.clone());
        self.counts.add(0, node.bytes());
        let node = Arc::new(node);
        // (4), (5) As in the paper, the successors must not be marked, either.
        let stays = |around: &Around<'_, W>| {
            let after = around.after[..levels].iter().flatten();
            after.into_iter().all(|node| !node.links.is_marked())
        };
        self.locked(guard, &position, levels, stays, |around| {
            // (6) Set the node's own links first, while no other thread can reach it.
            for level in 0..levels {
                let slot = &around.before[level].next[level];
                node.links.next[level].store(slot.share(guard), guard);
            }
            for level in 0..levels {
                let slot = &around.before[level].next[level];
                // From the lowest level up, for SL1.
                slot.store(Some(node.clone()), guard);
            }
            // (7) Ordering: Release, pairs with `is_there`: a reader that sees the flag sees the
            // node's links and its word.
            node.linked.store(true, Ordering::Release);
        });
    }

    /// Removes a node. Its position is locked.
    fn unlink(&self, guard: &Guard, node: &SkipListNode<W>) {
        // (4) The lock excludes inserts after the node, which would be lost.
        let _lock = node.links.lock.lock();
        // Ordering: Release, pairs with `is_marked`.
        node.links.marked.store(true, Ordering::Release);
        self.counts.add(0, -node.bytes());
        // (5) The predecessors must point to this node.
        let levels = node.levels();
        let leads = |around: &Around<'_, W>| {
            let after = &around.after[..levels];
            after.iter().all(|after| same(*after, Some(node)))
        };
        self.locked(guard, &node.position, levels, leads, |around| {
            // (6) From the highest level down, for SL1. The node keeps its links: a search that has
            // reached it continues from there.
            for level in (0..levels).rev() {
                let next = node.links.next[level].share(guard);
                around.before[level].next[level].store(next, guard);
            }
        });
    }

    /// Calls `f` with a node, if it is in the list after the changes in progress. Returns
    /// whether to continue.
    fn visit(&self, guard: &Guard, node: &SkipListNode<W>, f: &mut Visitor<'_, W>) -> bool {
        self.keys.settle(&node.position);
        match node.word.load(guard) {
            Some(word) if node.is_there() => f(&node.position, word),
            _ => true,
        }
    }
}

impl<W: Word> Scheme<W> for SkipList<W> {
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
        // (1) No other thread inserts, changes or removes a node at this position meanwhile.
        let (_key, contended) = self.keys.lock(position);
        if contended {
            self.counts.contended();
            // Ordering: Relaxed, a statistic.
            self.contended.fetch_add(1, Ordering::Relaxed);
        }
        // (2) Other threads may read the node, so its word can only be replaced.
        let node = self.find(guard, position);
        let word = node.and_then(|node| node.word.load(guard));
        // (3) `f` may panic: nothing has been changed, and the lock is released.
        match (f(word.map_or(Old::Absent, Old::Shared)), node) {
            (Act::Keep, _) | (Act::Remove, None) => {}
            (Act::Put(word), Some(node)) => node.word.store(Some(Arc::new(word)), guard),
            (Act::Put(word), None) => {
                self.link(
                    guard,
                    SkipListNode::new(Position::from_slice(position), word),
                );
            }
            (Act::Remove, Some(node)) => self.unlink(guard, node),
        }
        contended
    }

    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        // Wait for changes in progress, once for all positions: the walk doesn't know the
        // positions of nodes that are being inserted.
        self.keys.settle_all();
        let mut at = self.last_left(guard, cut);
        if cut.direction() == Direction::Forward {
            loop {
                // If this node was removed meanwhile, its links are as they were, and lead to nodes
                // after it.
                let links = at.map_or(&self.head, |node| &node.links);
                at = links.next(0, guard);
                match at {
                    None => return true,
                    // It was inserted after the search for the cut.
                    Some(node) if cut.has_left(&node.position) => {}
                    Some(node) if !self.visit(guard, node, f) => return false,
                    Some(_) => {}
                }
            }
        }
        while let Some(node) = at {
            if !self.visit(guard, node, f) {
                return false;
            }
            // There are no links backward. Search for the last node before this one.
            let cut = Cut::new(Start::Past(&node.position), Direction::Backward);
            at = self.last_left(guard, cut);
        }
        true
    }

    fn freeze(&self, on: bool) {
        if on {
            self.keys.settle_all();
        }
    }

    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        for _ in 0..limit {
            let Some(node) = self.head.next(0, guard) else {
                return true;
            };
            // Lock the position as every change does: `has` and scans wait for it.
            let (_key, _) = self.keys.lock(&node.position);
            // A marked node is being unlinked, and isn't counted again.
            if node.is_there() {
                let word = node.word.load(guard).cloned();
                self.unlink(guard, node);
                word.into_iter().for_each(&mut *f);
            }
        }
        self.head.next(0, guard).is_none()
    }

    fn memory(&self, _guard: &Guard) -> usize {
        self.counts.bytes() + self.keys.memory() + LEVELS * size_of::<Slot<SkipListNode<W>>>()
    }

    fn stats(&self, guard: &Guard) -> Stats {
        let used = |level: &usize| self.head.next(*level, guard).is_some();
        Stats {
            leaves: 1,
            depth: (0..LEVELS).take_while(used).count(),
            // Ordering: Relaxed, a statistic.
            contended: self.contended.load(Ordering::Relaxed),
            ..Stats::default()
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use crate::Object;
    use larder_index::pin;

    fn put(list: &SkipList<Object>, n: u32) {
        let word = || Act::Put(Object::new(&n.to_be_bytes()));
        list.change(&pin(), &n.to_be_bytes(), &mut |_| word());
    }

    /// SL1.
    fn check(list: &SkipList<Object>, expect: impl Iterator<Item = u32> + Clone) {
        let guard = pin();
        let mut below: Option<Vec<&SkipListNode<Object>>> = None;
        for level in 0..LEVELS {
            let first = list.head.next(level, &guard);
            let nodes = std::iter::successors(first, |node| node.links.next(level, &guard));
            let nodes: Vec<_> = nodes.collect();
            assert!(nodes.windows(2).all(|w| w[0].position < w[1].position));
            assert!(nodes.iter().all(|n| n.levels() > level && n.is_there()));
            if let Some(below) = &below {
                let there = |n: &SkipListNode<Object>| below.iter().any(|b| std::ptr::eq(*b, n));
                assert!(nodes.iter().all(|n| there(n)));
            } else {
                let all = nodes
                    .iter()
                    .map(|n| u32::from_be_bytes(n.position[..].try_into().unwrap()));
                assert!(all.eq(expect.clone()));
            }
            below = Some(nodes);
        }
    }

    #[test]
    fn levels_are_lists_of_those_below() {
        let list = SkipList::new();
        (0..500).for_each(|n| put(&list, n * 7 % 500));
        check(&list, 0..500);
        // Levels are chosen at random, so the chance that none of 500 has a third is 10⁻¹⁴.
        assert!(list.stats(&pin()).depth > 2);
        for n in (0..500u32).filter(|n| n % 3 != 0) {
            list.change(&pin(), &n.to_be_bytes(), &mut |_| Act::Remove);
        }
        check(&list, (0..500).step_by(3));
        assert!(list.stats(&pin()).depth > 1);
    }

    /// Entries that threads of their own have put have levels like those of one thread. (Every
    /// thread once began with the same random numbers, and the list had one level.)
    #[test]
    fn threads_of_one_entry_each_make_levels() {
        let list = SkipList::new();
        let n = if cfg!(miri) { 50 } else { 300 };
        for n in 0..n {
            std::thread::scope(|scope| {
                scope.spawn(|| put(&list, n));
            });
        }
        check(&list, 0..n);
        assert!(list.stats(&pin()).depth > 1);
    }

    /// A list, and one of nodes that were removed, is dropped without a step down the stack for
    /// each node.
    #[test]
    fn long_lists_are_dropped() {
        let list = SkipList::new();
        let n = if cfg!(miri) { 60 } else { 200_000 };
        (0..n).for_each(|n| put(&list, n));
        let guard = pin();
        // The guard keeps all that is removed now.
        assert!(!list.pop(&guard, n as usize / 2, &mut drop));
        drop(guard);
        drop(list);
        for _ in 0..100 {
            pin().flush();
        }
    }

    /// Each thread has keys of its own among those of others: it finds what it put, and not what it
    /// removed. (A walk once began with a neighbour that came between its descent and its first
    /// step.)
    #[test]
    fn neighbours_disturb_nobody() {
        let list = SkipList::new();
        std::thread::scope(|scope| {
            for t in 0..4u32 {
                let list = &list;
                scope.spawn(move || {
                    for i in 0..if cfg!(miri) { 40 } else { 40_000u32 } {
                        let n = (i * 7 % 5) * 4 + t;
                        let position = n.to_be_bytes();
                        let there = |what: &str| {
                            let guard = pin();
                            let mut found = false;
                            list.read(&guard, &position, &mut |w| found = w.is_some());
                            let mut visited = false;
                            let cut = Cut::new(Start::At(&position), Direction::Forward);
                            list.walk(&guard, cut, &mut |p, _| {
                                visited = p == position;
                                false
                            });
                            assert_eq!(found, visited, "{what} {n}");
                            found
                        };
                        put(list, n);
                        assert!(there("put"));
                        if i % 3 != 0 {
                            list.change(&pin(), &position, &mut |_| Act::Remove);
                            assert!(!there("removed"));
                        }
                    }
                });
            }
        });
    }
}

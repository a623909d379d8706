//! A lazy skip list with wait-free lookups: `cskiplist` of the study of 2013.
//!
//! ```text
//!   level 2   head ----------------------> k ------------------------> end
//!   level 1   head --------> d ----------> k --------> p ------------> end
//!   level 0   head --> a --> d --> f ----> k --> m --> p --> t ------> end     all entries, in order
//! ```
//!
//! Invariants:
//! 1. On each level positions ascend; a level's nodes are among those of the level below.
//! 2. A node is in the list exactly while it is `linked` and not `marked`. Neither goes back.
//! 3. A node's links change only while its lock is held and it is not marked; its word only while
//!    its position is locked.
//!
//! Steps of a change: (1) lock the position; (2) go down to it; (3) let the caller decide.
//!
//! *To insert*: (4) find the nodes before it, on each of its levels; (5) lock them; begin with (4)
//! again if they are not what they were; (6) link from the lowest level up; (7) it is `linked`: the
//! linearisation point.
//!
//! *To remove*: (4) lock the node, mark it: the linearisation point; (5) find and lock those before
//! it, as above; (6) unlink from the highest level down.
//!
//! Locks are taken from greater positions to smaller ones, so that nobody waits in a circle. A
//! lookup goes past marked nodes, writes nothing, waits for nobody, and takes as many steps as
//! there are nodes on the way. `has` and scans wait for a change of the entry that is under way.
//!
//! Source: M. Herlihy, Y. Lev, V. Luchangco, N. Shavit, "A simple optimistic skiplist algorithm",
//! SIROCCO 2007.
//! Deviations: nodes are reclaimed by epochs where the study of 2013 takes hazard pointers (see
//! below). Writers of one position exclude each other by a lock (see `key_locks.rs`). A batch of a
//! scan is not of one instant: each entry was there at some time while the batch was read. A step
//! backward is a search from the top.
//!
//! *Why epochs.* With hazard pointers a reader says of each node on its way that it is there, and
//! fences before it goes on. Measured with haphazard 0.1.8 on the 24 nodes that a lookup among
//! 65,536 entries meets, medians of five on a machine at work: in cache 0.48 µs under an epoch's
//! guard, 1.50 µs with two hazard pointers that the thread keeps, 1.84 µs with two made for the
//! lookup; by two threads 0.86, 2.45 and 3.36 µs; out of cache 9.3, 15.3 and 21.7 µs. To go hand
//! over hand takes unsafe code there, because a node's borrow hangs on the one before. And what a
//! scheme shows of an entry must outlive the search, as it does under a guard. The price: a thread
//! that stops in the middle of a lookup keeps what is removed meanwhile from being freed, of all
//! tables; Larder's calls hold a guard for no longer than a slice.
//!
//! Not for: bags with many objects under a key (each change copies their handles); scans backward;
//! tables out of cache (a miss for each of some log₂ n nodes); many small tables (8 KiB of locks
//! each).

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

/// With one node in four on the next level, enough for 4¹⁶ entries.
const LEVELS: usize = 16;

struct Node<W: Word> {
    position: Position,
    word: Slot<W>,
    links: Links<W>,
    linked: AtomicBool,
}

/// What a node and the head have: the next node on each level.
struct Links<W: Word> {
    next: Box<[Slot<Node<W>>]>,
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
        // Ordering: Acquire, pairs with the release that marks: whoever sees the mark sees what
        // came before.
        self.marked.load(Ordering::Acquire)
    }

    fn next<'g>(&'g self, level: usize, guard: &'g Guard) -> Option<&'g Node<W>> {
        self.next[level].load(guard)
    }
}

impl<W: Word> Node<W> {
    fn new(position: Position, word: W) -> Self {
        Node {
            position,
            word: Slot::new(Some(Arc::new(word))),
            links: Links::new(random_levels()),
            linked: AtomicBool::new(false),
        }
    }

    fn levels(&self) -> usize {
        self.links.next.len()
    }

    /// Invariant 2.
    fn is_there(&self) -> bool {
        // Ordering: Acquire, pairs with the release that links it.
        self.linked.load(Ordering::Acquire) && !self.links.is_marked()
    }

    /// Bytes of the node, its links and its word's place; each `Arc` has two counts.
    fn bytes(&self) -> isize {
        let own = size_of::<Self>() + 16 + self.levels() * size_of::<Slot<Self>>();
        (own + spilled(&self.position) + size_of::<W>() + 16) as isize
    }
}

impl<W: Word> Drop for Node<W> {
    fn drop(&mut self) {
        // A node may be the last that has the next one, and so on to the end: one after the other,
        // not one inside the other.
        let mut waiting: Vec<_> = self.links.next.iter_mut().filter_map(Slot::take).collect();
        while let Some(next) = waiting.pop() {
            if let Some(mut node) = Arc::into_inner(next) {
                waiting.extend(node.links.next.iter_mut().filter_map(Slot::take));
            }
        }
    }
}

/// How many levels a node has: one more with a chance of one in four.
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

/// The links before a position on each level, and what they lead to.
struct Around<'g, W: Word> {
    before: [&'g Links<W>; LEVELS],
    after: [Option<&'g Node<W>>; LEVELS],
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

    /// What lies on both sides of the place before which all positions are `left`.
    fn around<'g>(&'g self, guard: &'g Guard, left: impl Fn(&[u8]) -> bool) -> Around<'g, W> {
        let mut around = Around {
            before: [&self.head; LEVELS],
            after: [None; LEVELS],
        };
        let mut links = &self.head;
        for level in (0..LEVELS).rev() {
            let mut next = links.next(level, guard);
            while let Some(node) = next.filter(|node| left(&node.position)) {
                links = &node.links;
                next = links.next(level, guard);
            }
            // The lower level goes on from where this one stopped: what is left of the place here
            // is left of it there (invariant 1).
            around.before[level] = links;
            around.after[level] = next;
        }
        around
    }

    /// The node at the position, if it is there (invariant 2). Wait-free.
    fn find<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> Option<&'g Node<W>> {
        // No lock: what is met is in the list, or was when the search came to what leads to it.
        let mut links = &self.head;
        for level in (0..LEVELS).rev() {
            while let Some(node) = links.next(level, guard) {
                match node.position[..].cmp(position) {
                    std::cmp::Ordering::Less => links = &node.links,
                    // One that is marked may hide another, which is on a lower level.
                    std::cmp::Ordering::Equal if node.is_there() => return Some(node),
                    _ => break,
                }
            }
        }
        None
    }

    /// The last node left of the cut, on the lowest level.
    fn last_left<'g>(&'g self, guard: &'g Guard, cut: Cut<'_>) -> Option<&'g Node<W>> {
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

    /// Finds and locks what is before the position on the lowest `levels`; calls `f` with it once
    /// it is sure to be.
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
            // Found without a lock: it may be out of date as soon as it is found, and is looked at
            // again below.
            let around = self.around(guard, |p| p < position);
            let mut locks: SmallVec<[MutexGuard<'g, ()>; LEVELS]> = SmallVec::new();
            for level in 0..levels {
                let links = around.before[level];
                // From the lowest level up, so from greater positions to smaller ones. A node that
                // is before the place on several levels is so on neighbouring ones, and locked
                // once.
                if level == 0 || !std::ptr::eq(links, around.before[level - 1]) {
                    locks.push(links.lock.lock());
                }
            }
            let before = &around.before[..levels];
            // With the locks held, none of these nodes goes and nothing comes between them and what
            // follows (invariant 3): what holds now holds until the locks are given back.
            let unmarked = before.iter().all(|links| !links.is_marked());
            let next = |level: usize| around.before[level].next(level, guard);
            let same = (0..levels).all(|level| same(next(level), around.after[level]));
            if unmarked && same && valid(&around) || planted(Fault::Unvalidated) {
                return f(&around);
            }
            // Waiting with locks held could keep the one who made this out of date from finishing.
            drop(locks);
            backoff.snooze();
        }
    }

    fn link(&self, guard: &Guard, node: Node<W>) {
        let (levels, position) = (node.levels(), node.position.clone());
        self.counts.add(0, node.bytes());
        let node = Arc::new(node);
        // (4), (5): what follows must not be on its way out.
        let stays = |around: &Around<'_, W>| {
            let after = around.after[..levels].iter().flatten();
            after.into_iter().all(|node| !node.links.is_marked())
        };
        self.locked(guard, &position, levels, stays, |around| {
            // (6)
            for level in 0..levels {
                let slot = &around.before[level].next[level];
                // The node's own links first: nobody can see it yet.
                node.links.next[level].store(slot.share(guard), guard);
            }
            for level in 0..levels {
                let slot = &around.before[level].next[level];
                // From the lowest level up: a level's nodes are among those of the level below at
                // any time (invariant 1).
                slot.store(Some(node.clone()), guard);
            }
            // (7) Ordering: Release, pairs with the acquire of readers: they see the node's links
            //     and word.
            node.linked.store(true, Ordering::Release);
        });
    }

    fn unlink(&self, guard: &Guard, node: &Node<W>) {
        // (4)
        let _lock = node.links.lock.lock();
        // Ordering: Release, pairs with the acquire of readers.
        node.links.marked.store(true, Ordering::Release);
        self.counts.add(0, -node.bytes());
        // (5)
        let levels = node.levels();
        let leads = |around: &Around<'_, W>| {
            let after = &around.after[..levels];
            after.iter().all(|after| same(*after, Some(node)))
        };
        self.locked(guard, &node.position, levels, leads, |around| {
            // (6)
            for level in (0..levels).rev() {
                // The node keeps its links: a search that is in it goes on from there. From the
                // highest level down, for invariant 1.
                let next = node.links.next[level].share(guard);
                around.before[level].next[level].store(next, guard);
            }
        });
    }

    /// Meets the node, if it is there once no change of it that began before is under way.
    fn visit(&self, guard: &Guard, node: &Node<W>, f: &mut Visitor<'_, W>) -> bool {
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
        // (1)
        let (_key, contended) = self.keys.lock(position);
        if contended {
            self.counts.contended();
            // Ordering: Relaxed, a figure for people.
            self.contended.fetch_add(1, Ordering::Relaxed);
        }
        // (2)
        let node = self.find(guard, position);
        let word = node.and_then(|node| node.word.load(guard));
        // (3)
        match (f(word.map_or(Old::Absent, Old::Shared)), node) {
            (Act::Keep, _) | (Act::Remove, None) => {}
            (Act::Put(word), Some(node)) => node.word.store(Some(Arc::new(word)), guard),
            (Act::Put(word), None) => {
                self.link(guard, Node::new(Position::from_slice(position), word));
            }
            (Act::Remove, Some(node)) => self.unlink(guard, node),
        }
        contended
    }

    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        // An entry that is yet to come is nobody's that could be contended for.
        self.keys.settle_all();
        let mut at = self.last_left(guard, cut);
        if cut.direction() == Direction::Forward {
            loop {
                // A node that was removed meanwhile still leads on: its links are as they were, and
                // what it leads to lies behind it.
                let links = at.map_or(&self.head, |node| &node.links);
                at = links.next(0, guard);
                match at {
                    None => return true,
                    // It came after the way to the cut was found.
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
            // Links lead forward only: each step backward is a search of its own.
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
            let (_key, _) = self.keys.lock(&node.position);
            if node.is_there() {
                let word = node.word.load(guard).cloned();
                self.unlink(guard, node);
                word.into_iter().for_each(&mut *f);
            }
        }
        self.head.next(0, guard).is_none()
    }

    fn memory(&self, _guard: &Guard) -> usize {
        self.counts.bytes() + self.keys.memory() + LEVELS * size_of::<Slot<Node<W>>>()
    }

    fn stats(&self, guard: &Guard) -> Stats {
        let used = |level: &usize| self.head.next(*level, guard).is_some();
        Stats {
            leaves: 1,
            depth: (0..LEVELS).take_while(used).count(),
            // Ordering: Relaxed, a figure for people.
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

    /// Invariant 1.
    fn check(list: &SkipList<Object>, expect: impl Iterator<Item = u32> + Clone) {
        let guard = pin();
        let mut below: Option<Vec<&Node<Object>>> = None;
        for level in 0..LEVELS {
            let first = list.head.next(level, &guard);
            let nodes = std::iter::successors(first, |node| node.links.next(level, &guard));
            let nodes: Vec<_> = nodes.collect();
            assert!(nodes.windows(2).all(|w| w[0].position < w[1].position));
            assert!(nodes.iter().all(|n| n.levels() > level && n.is_there()));
            if let Some(below) = &below {
                let there = |n: &Node<Object>| below.iter().any(|b| std::ptr::eq(*b, n));
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
        for n in (0..500u32).filter(|n| n % 3 != 0) {
            list.change(&pin(), &n.to_be_bytes(), &mut |_| Act::Remove);
        }
        check(&list, (0..500).step_by(3));
        assert!(list.stats(&pin()).depth > 2);
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
    /// removed. (A walk once began with a neighbour that came between its way down and its first
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

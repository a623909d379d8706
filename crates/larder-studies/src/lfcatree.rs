//! A contention-adapting tree whose leaves never change: the LFCA tree.
//!
//! ```text
//!            ( k )                       routes, and slots that lead to leaves
//!           /     \
//!     [ d f | 12 ] [ k m p | -3 ]        a leaf: a tree that never changes (pure.rs), and a count of contention
//!
//!     `n` comes:   ( k )                 the slot gets another leaf, by compare and swap, made of the old one in O(log n)
//!                 /     \
//!     [ d f | 12 ]      [ k m n p | -4 ]
//! ```
//!
//! Invariants:
//! 1. Entries left of a route are before its position, those right of it at or past it.
//! 2. Leaves don't change. A slot's leaf is replaced only while the slot is not marked; a slot that
//!    is marked is *frozen*: its route is on its way out, or who froze it is about to store another
//!    leaf.
//! 3. Only who has the mutex of joins freezes slots and takes routes out.
//!
//! Steps of a change: (1) lock the position, find its leaf; (2) let the caller decide; (3) make a
//! leaf with the change, compare and swap it into the slot: the linearisation point; where another
//! writer was quicker, find the leaf anew; (4) if its count is high, divide the leaf; if it is low,
//! join it to its neighbour.
//!
//! *To join*: (a) freeze the leaf's slot and its neighbour's; (b) make one leaf of both; (c) store
//! it where the neighbour was, (d) and the sibling where the route was.
//! Readers never wait: what they find in a frozen slot is as it was when it was frozen, and nobody
//! changes these entries before (d).
//!
//! A writer that was not first counts 250, one that was −1; beyond 1,000 a leaf is divided, below
//! −1,000 joined.
//!
//! Linearisation point of a lookup: the load of the leaf from its slot; of a batch of a scan and of
//! a range, that of its last leaf, when the others were looked at again afterwards and were as
//! before (`lfcatree/range.rs`). So a batch is of one instant, and a scan stops nobody. Where
//! others keep writing to leaves that have no entry when a scan passes them, the entries of its
//! batch are of one instant, and each of these leaves had none at some time of the scan.
//!
//! Source: K. Winblad, K. Sagonas, B. Jonsson, "Lock-free contention adapting search trees",
//! SPAA 2018.
//! Deviations: a join is not lock-free: one thread joins at a time (another that would leaves it),
//! and writers wait while their leaf is frozen; a range is read optimistically, and its leaves are
//! frozen after some tries, where the paper puts a mark into all its leaves, which writers help
//! with; the writers of one position exclude each other (see `key_locks.rs`), because a change's
//! closure is called once; leaves are height-balanced trees, where the paper has treaps.
//!
//! Not for: one thread (each change makes log₂ n nodes); bags with many objects under a key (each
//! change copies their handles).

mod range;

use crate::counts::Counts;
use crate::key_locks::KeyLocks;
use crate::pure::{self, Entry, Tree};
use crate::raw::slot::Slot;
use crate::scheme::{Changer, Old, Reader, Scheme};
use crate::sequential::{Act, Visitor};
use crate::word::Word;
use crate::{Cut, Position};
use larder_index::sync::{planted, Backoff, Fault, Mutex};
use larder_index::{Guard, Stats};
use range::{Walked, TRIES};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

const CONTENDED: i64 = 250;
const QUIET: i64 = -1;
const CLAMP: i64 = 20_000;
/// The most routes one above the other.
const DEPTH: usize = 64;

enum Node<W: Word> {
    Route(Route<W>),
    Leaf(Leaf<W>),
}

struct Route<W: Word> {
    at: Position,
    kids: [Slot<Node<W>>; 2],
}

struct Leaf<W: Word> {
    tree: Tree<W>,
    contention: i64,
}

fn leaf<W: Word>(tree: Tree<W>, contention: i64) -> Arc<Node<W>> {
    Arc::new(Node::Leaf(Leaf { tree, contention }))
}

/// A contention-adapting tree with leaves that don't change.
pub struct LfCaTree<W: Word> {
    root: Slot<Node<W>>,
    joins: Mutex<()>,
    keys: KeyLocks,
    counts: Counts,
    /// Beyond the first a leaf is divided, below the second joined.
    high: i64,
    low: i64,
    routes: AtomicUsize,
    splits: AtomicU64,
    joined: AtomicU64,
    contended: AtomicU64,
}

/// A leaf, as it was found in its slot.
struct Found<'g, W: Word> {
    slot: &'g Slot<Node<W>>,
    node: &'g Node<W>,
    leaf: &'g Leaf<W>,
    frozen: bool,
    depth: usize,
    /// The position past which (forward; before which, backward) the next leaf lies.
    bound: Option<&'g Position>,
    /// The slots of the routes above, and the side taken at each.
    above: Vec<(&'g Slot<Node<W>>, usize)>,
}

impl<W: Word> LfCaTree<W> {
    /// An empty tree that divides leaves whose count is beyond `high`, and joins those whose count
    /// is below `low`.
    pub fn new(high: i64, low: i64) -> Self {
        LfCaTree {
            root: Slot::new(Some(leaf(None, 0))),
            joins: Mutex::new(()),
            keys: KeyLocks::new(),
            counts: Counts::default(),
            high,
            low,
            routes: AtomicUsize::new(0),
            splits: AtomicU64::new(0),
            joined: AtomicU64::new(0),
            contended: AtomicU64::new(0),
        }
    }

    /// Down the routes, right of those for which `right` answers true. The way is kept if it is
    /// asked for.
    fn descend<'g>(
        &'g self,
        guard: &'g Guard,
        keep: bool,
        forward: bool,
        right: impl Fn(&[u8]) -> bool,
    ) -> Found<'g, W> {
        let (mut above, mut bound) = (Vec::new(), None);
        let (mut slot, mut depth) = (&self.root, 0);
        loop {
            let (node, frozen) = slot.load_marked(guard);
            match node {
                Some(Node::Route(route)) => {
                    let right = right(&route.at);
                    // The innermost route at which the search goes away from where the walk is
                    // heading is the one past which the next leaf begins.
                    if right != forward {
                        bound = Some(&route.at);
                    }
                    // Only a join needs the way: all other searches take no memory.
                    if keep {
                        above.push((slot, usize::from(right)));
                    }
                    slot = &route.kids[usize::from(right)];
                    depth += 1;
                }
                Some(node @ Node::Leaf(leaf)) => {
                    return Found {
                        slot,
                        node,
                        leaf,
                        frozen,
                        depth,
                        bound,
                        above,
                    }
                }
                None => unreachable!("slots of a tree are never empty"),
            }
        }
    }

    fn find<'g>(&'g self, guard: &'g Guard, position: &[u8], keep: bool) -> Found<'g, W> {
        self.descend(guard, keep, true, |at| at <= position)
    }

    fn get<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> Option<&'g W> {
        let leaf = self.find(guard, position, false).leaf;
        pure::get(&leaf.tree, position).map(|entry| &entry.word)
    }

    /// Step 3. Answers the count of the new leaf, and whether another writer was quicker.
    fn apply(&self, guard: &Guard, position: &[u8], put: Option<W>) -> (i64, bool) {
        // Made once: all attempts put the same entry into their leaf.
        let entry = put.map(|word| {
            let position = Position::from_slice(position);
            Arc::new(Entry { position, word })
        });
        let (mut contended, backoff) = (false, Backoff::new());
        loop {
            let found = self.find(guard, position, false);
            if found.frozen && !planted(Fault::Thaw) {
                backoff.snooze();
                continue;
            }
            // The position is locked, so of this entry the leaf says what the caller was shown,
            // however often others replace the leaf.
            let tree = match &entry {
                Some(entry) => Some(pure::insert(&found.leaf.tree, entry.clone())),
                None => pure::remove(&found.leaf.tree, position),
            };
            // The count is part of the leaf: it needs no store of its own.
            let by = if contended { CONTENDED } else { QUIET };
            let now = (found.leaf.contention + by).clamp(-CLAMP, CLAMP);
            // Fails if the slot has another leaf, or was frozen, since the load (invariant 2).
            let new = Some(leaf(tree, now));
            if found
                .slot
                .replace_if((Some(found.node), found.frozen), (new, false), guard)
            {
                return (now, contended);
            }
            contended = true;
        }
    }

    /// Step 4: a route and two leaves in place of a leaf, unless a writer is quicker.
    fn split(&self, guard: &Guard, position: &[u8]) {
        let found = self.find(guard, position, false);
        if found.frozen || found.depth >= DEPTH {
            return;
        }
        let Some((low, at, high)) = pure::divide(&found.leaf.tree) else {
            return;
        };
        // If the exchange below fails, the leaf was changed or frozen: nothing was divided, and the
        // next write finds the count still high.
        let kids = [low, high].map(|tree| Slot::new(Some(leaf(tree, 0))));
        let route = Arc::new(Node::Route(Route { at, kids }));
        if found
            .slot
            .replace_if((Some(found.node), false), (Some(route), false), guard)
        {
            // Ordering, of both: Relaxed, figures for people.
            self.routes.fetch_add(1, Relaxed);
            self.splits.fetch_add(1, Relaxed);
        }
    }

    /// Step 4: one leaf in place of a leaf and its neighbour, one route less; unless somebody else
    /// is joining, or a writer is quicker.
    fn join(&self, guard: &Guard, position: &[u8]) {
        let Some(_joins) = self.joins.try_lock() else {
            return;
        };
        let mut found = self.find(guard, position, true);
        let Some((above, side)) = found.above.pop() else {
            return;
        };
        // Only this thread takes routes out (invariant 3): the parent stays where it is. Leaves
        // beside it may still be divided.
        let Some(Node::Route(parent)) = above.load(guard) else {
            return;
        };
        let sibling = &parent.kids[1 - side];
        // (a) From here on no writer replaces this leaf: what (b) reads is what is there at (d).
        let Some(mine) = freeze(found.slot, guard) else {
            return;
        };
        let edge = edge(sibling, side, guard);
        let Some(other) = freeze(edge, guard) else {
            // A store takes the mark off: the same leaf is open to writers again.
            let leaf = found.slot.share(guard);
            found.slot.store(leaf, guard);
            return;
        };
        // (b)
        let (low, high) = if side == 0 {
            (mine, other)
        } else {
            (other, mine)
        };
        let new = leaf(pure::join(&low.tree, &high.tree), 0);
        // (c), (d) If the neighbour is the sibling itself, one store takes both leaves and the
        // route out.
        if std::ptr::eq(edge, sibling) {
            above.store(Some(new), guard);
        } else {
            // In this order: if (d) came first, a search for an entry of this leaf would come to
            // the neighbour, which would not have it yet. Between the two the old leaf is still
            // there, frozen, and the joined one has its entries out of any search's way.
            edge.store(Some(new), guard);
            above.store(sibling.share(guard), guard);
        }
        // Ordering, of both: Relaxed, figures for people.
        self.routes.fetch_sub(1, Relaxed);
        self.joined.fetch_add(1, Relaxed);
    }

    /// The slots of all leaves, in order; and the most routes above one.
    fn leaves<'g>(&'g self, guard: &'g Guard) -> (Vec<&'g Slot<Node<W>>>, usize) {
        let (mut leaves, mut depth) = (Vec::new(), 0);
        let mut waiting = vec![(&self.root, 0)];
        while let Some((slot, level)) = waiting.pop() {
            match slot.load(guard) {
                Some(Node::Route(route)) => {
                    waiting.extend([(&route.kids[1], level + 1), (&route.kids[0], level + 1)]);
                }
                _ => leaves.push(slot),
            }
            depth = depth.max(level);
        }
        (leaves, depth)
    }
}

/// The slot of the leaf at one side of a subtree.
fn edge<'g, W: Word>(top: &'g Slot<Node<W>>, side: usize, guard: &'g Guard) -> &'g Slot<Node<W>> {
    let mut slot = top;
    while let Some(Node::Route(route)) = slot.load(guard) {
        slot = &route.kids[side];
    }
    slot
}

/// Marks a slot that has a leaf, so that no writer replaces it; None if writers are quicker, or if
/// it has no leaf any more.
fn freeze<'g, W: Word>(slot: &'g Slot<Node<W>>, guard: &'g Guard) -> Option<&'g Leaf<W>> {
    const TRIES: usize = 4;
    (0..TRIES).find_map(|_| {
        let (node, frozen) = slot.load_marked(guard);
        let (Some(Node::Leaf(leaf)), false) = (node, frozen) else {
            return None;
        };
        // The slot may have got another leaf between the two loads: then the exchange would be of
        // the wrong one.
        let same = slot.share(guard);
        let is_same = same.as_deref().map(std::ptr::from_ref) == node.map(std::ptr::from_ref);
        (is_same && slot.replace_if((node, false), (same, true), guard)).then_some(leaf)
    })
}

impl<W: Word> Scheme<W> for LfCaTree<W> {
    fn read(&self, guard: &Guard, position: &[u8], f: &mut Reader<'_, W>) {
        f(self.get(guard, position));
    }

    fn has(&self, guard: &Guard, position: &[u8]) -> bool {
        self.keys.settle(position);
        self.get(guard, position).is_some()
    }

    fn change(&self, guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool {
        // (1)
        let (key, mut contended) = self.keys.lock(position);
        let old = self.get(guard, position);
        let there = old.is_some();
        // (2)
        let put = match f(old.map_or(Old::Absent, Old::Shared)) {
            Act::Put(word) => Some(word),
            Act::Remove if there => None,
            Act::Keep | Act::Remove => return contended,
        };
        // Certain already: nothing between here and (3) refuses.
        let come = isize::from(put.is_some()) - isize::from(there);
        let bytes = pure::bytes::<W>(&Position::from_slice(position));
        self.counts.add(0, come * bytes);
        // (3)
        let (now, was_second) = self.apply(guard, position, put);
        // The key's lock is given back before the shape is changed: (4) changes no entry.
        drop(key);
        contended |= was_second;
        if contended {
            self.counts.contended();
            // Ordering: Relaxed, a figure for people.
            self.contended.fetch_add(1, Relaxed);
        }
        // (4)
        if now > self.high {
            self.split(guard, position);
        } else if now < self.low {
            self.join(guard, position);
        }
        contended
    }

    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        self.keys.settle_all();
        let mut once = |strict: bool| {
            let mut visited = false;
            let walked = self.walk_once(guard, cut, strict, &mut |entry| {
                visited = true;
                f(&entry.position, &entry.word)
            });
            // What the visitor was shown can't be taken back: a batch that was torn ends there.
            (visited || walked != Walked::Torn).then_some(walked)
        };
        // While others write to leaves that have no entry when they are passed, nothing is met and
        // all has to be looked at again.
        let strict = (0..TRIES).find_map(|_| once(true));
        strict.or_else(|| once(false)) == Some(Walked::ToTheEnd)
    }

    fn freeze(&self, on: bool) {
        if on {
            self.keys.settle_all();
        }
    }

    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        let mut left = limit;
        for slot in self.leaves(guard).0 {
            let Some(Node::Leaf(old)) = slot.load(guard) else {
                continue;
            };
            if old.tree.is_none() {
                continue;
            }
            // Nobody else comes here any more: the leaf is taken to pieces, and what is left is
            // stored once.
            let mut tree = old.tree.clone();
            while let Some((entry, rest)) = pure::first(&tree).filter(|_| left > 0) {
                left -= 1;
                self.counts.add(0, -pure::bytes::<W>(&entry.position));
                f(entry.word.clone());
                tree = rest;
            }
            let some_left = tree.is_some();
            slot.store(Some(leaf(tree, 0)), guard);
            if some_left {
                return false;
            }
        }
        true
    }

    fn memory(&self, _guard: &Guard) -> usize {
        // A node has two counts before it; a tree of n routes has n + 1 leaves. Ordering: Relaxed,
        // a figure for people.
        let nodes = self.routes.load(Relaxed) * 2 + 1;
        nodes * (size_of::<Node<W>>() + 16) + self.counts.bytes() + self.keys.memory()
    }

    fn stats(&self, guard: &Guard) -> Stats {
        let (leaves, depth) = self.leaves(guard);
        Stats {
            leaves: leaves.len(),
            depth,
            // Ordering, of these four: Relaxed, figures for people.
            inner_nodes: self.routes.load(Relaxed),
            splits: self.splits.load(Relaxed),
            merges: self.joined.load(Relaxed),
            contended: self.contended.load(Relaxed),
            more: Vec::new(),
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests;

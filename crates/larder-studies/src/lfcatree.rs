//! The LFCA tree: a contention-adapting tree with immutable leaves.
//!
//! ```text
//!            ( k )                       routes, and slots that lead to leaves
//!           /     \
//!     [ d f | 12 ] [ k m p | -3 ]        a leaf: a persistent tree (`persistent_tree`), and a count of
//!                                         contention
//!
//!     insert n:    ( k )                 make a new leaf from the old one, in O(log n), and
//!                 /     \                replace it in its slot by compare-and-exchange
//!     [ d f | 12 ]      [ k m n p | -4 ]
//! ```
//!
//! Invariants:
//! * **LF1** The entries left of a route are before its position. Those right of it are at or past
//!   it.
//! * **LF2** Leaves are immutable. Writers replace the leaf of a slot only while the slot isn't
//!   marked. A marked slot is *frozen*: a join is about to replace its leaf, or to remove its
//!   route.
//! * **LF3** Only the thread that holds the mutex `joins` freezes slots and removes routes.
//!
//! Steps of a change:
//! 1. Lock the position, and find its leaf.
//! 2. Let the caller decide.
//! 3. Make a leaf with the change, and replace the old one by compare-and-exchange. This is the
//!    linearisation point. If another writer has replaced the leaf, find it again.
//! 4. If the leaf's count is high, split the leaf. If it is low, join it with its neighbour.
//!
//! Steps of a join:
//! - (a) Freeze the slots of the leaf and of its neighbour.
//! - (b) Make a leaf with the entries of both.
//! - (c) Store it in the neighbour's slot.
//! - (d) Replace the route by the sibling of the leaf.
//!
//! Readers never wait. A frozen slot has the leaf that it had when it was frozen, and no thread
//! changes its entries before (d).
//!
//! A writer whose compare-and-exchange has failed adds 250 to the count. Otherwise it subtracts 1.
//! A leaf is split above 1,000, and joined below −1,000.
//!
//! Linearisation point of a lookup: the load of the leaf from its slot. That of a batch of a scan,
//! or of a range: the load of its last leaf, if a second look at the other leaves finds them
//! unchanged (`lfcatree/range`). So a batch is of one instant, and a scan stops no writer. There is
//! one exception: if others keep writing to leaves that are empty when the scan passes them. Then
//! the entries of the batch are of one instant, and each of these leaves was empty at some instant
//! of the scan.
//!
//! Source: K. Winblad, K. Sagonas, B. Jonsson, "Lock-free contention adapting search trees", SPAA
//! 2018. Deviations:
//! - Joins are not lock-free. One thread joins at a time, others skip the join, and writers wait
//!   while their leaf is frozen.
//! - A range is read optimistically. After some failed attempts its leaves are frozen. In the
//!   paper, a range query puts a mark into all its leaves, and writers help it. There, one over
//!   several leaves also subtracts 100 from the count of each. Here scans and ranges count nothing.
//! - A count goes on to ±20,000, as in OTP's CA tree. In the paper it stops at the limits. So a
//!   leaf that was quiet for long is split later here.
//! - The writers of one position exclude each other (`key_locks`), because the closure of a change
//!   is called once.
//! - Leaves are height-balanced trees. In the paper they are treaps.
//!
//! When not to use it: for a single thread, since each change makes about log₂ n nodes; for bags
//! with many objects per key, since each change copies their handles.

mod range;

use crate::catree::Route;
use crate::counts::Counts;
use crate::key_locks::KeyLocks;
use crate::persistent_tree::{self, Tree};
use crate::position::Entry;
use crate::raw::slot::Slot;
use crate::scheme::{pop_past, Changer, Old, Reader, Scheme, EMPTY_AT_ONCE};
use crate::sequential::{Act, Visitor};
use crate::word::Word;
use crate::{Cut, Position};
use larder_index::sync::{planted, Backoff, Fault, Mutex};
use larder_index::{Guard, Stats};
use range::{Walked, TRIES};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Added to a leaf's count by a writer whose exchange has failed.
const CONTENDED: i64 = 250;
/// Added by a writer whose first exchange succeeds.
const QUIET: i64 = -1;
/// The maximum of a count. Its negative is the minimum.
const CLAMP: i64 = 20_000;
/// The maximum number of routes on a path.
const DEPTH: usize = 64;

enum LfCaTreeNode<W: Word> {
    Route(Route<LfCaTreeNode<W>>),
    Leaf(Leaf<W>),
}

struct Leaf<W: Word> {
    tree: Tree<W>,
    contention: i64,
}

fn leaf<W: Word>(tree: Tree<W>, contention: i64) -> Arc<LfCaTreeNode<W>> {
    Arc::new(LfCaTreeNode::Leaf(Leaf { tree, contention }))
}

/// A contention-adapting tree with immutable leaves.
pub struct LfCaTree<W: Word> {
    root: Slot<LfCaTreeNode<W>>,
    joins: Mutex<()>,
    keys: KeyLocks,
    counts: Counts,
    /// A leaf is split above this count, and joined below `low`.
    high: i64,
    low: i64,
    routes: AtomicUsize,
    splits: AtomicU64,
    joined: AtomicU64,
    contended: AtomicU64,
    /// The position at which `pop` continues.
    popped: Mutex<Position>,
}

/// A leaf that was loaded from its slot.
struct FoundLeaf<'g, W: Word> {
    slot: &'g Slot<LfCaTreeNode<W>>,
    node: &'g LfCaTreeNode<W>,
    leaf: &'g Leaf<W>,
    frozen: bool,
    depth: usize,
    /// The position at which the next leaf in the direction of the walk begins (forward), or before
    /// which it ends (backward). `None` if there is no next leaf.
    bound: Option<&'g Position>,
    /// The slots of the routes on the path, and the side that was taken at each. Empty unless the
    /// path was asked for.
    above: Vec<(&'g Slot<LfCaTreeNode<W>>, usize)>,
}

impl<W: Word> LfCaTree<W> {
    /// An empty tree. It splits leaves whose count is above `high`, and joins those whose count is
    /// below `low`.
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
            popped: Mutex::default(),
        }
    }

    /// Descends to a leaf, to the right of the routes for which `right` returns `true`. Records the
    /// path if `keep` is set.
    fn descend<'g>(
        &'g self,
        guard: &'g Guard,
        keep: bool,
        forward: bool,
        right: impl Fn(&[u8]) -> bool,
    ) -> FoundLeaf<'g, W> {
        let (mut above, mut bound) = (Vec::new(), None);
        let (mut slot, mut depth) = (&self.root, 0);
        loop {
            let (node, frozen) = slot.load_marked(guard);
            match node {
                Some(LfCaTreeNode::Route(route)) => {
                    let right = right(&route.at);
                    // The descent goes to the side that the walk visits first, so the walk comes to
                    // the other side later. The last such route is where the next leaf begins.
                    if right != forward {
                        bound = Some(&route.at);
                    }
                    // Only a join needs the path. Other searches allocate nothing.
                    if keep {
                        above.push((slot, usize::from(right)));
                    }
                    slot = &route.kids[usize::from(right)];
                    depth += 1;
                }
                Some(node @ LfCaTreeNode::Leaf(leaf)) => {
                    return FoundLeaf {
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

    fn find<'g>(&'g self, guard: &'g Guard, position: &[u8], keep: bool) -> FoundLeaf<'g, W> {
        self.descend(guard, keep, true, |at| at <= position)
    }

    fn get<'g>(&'g self, guard: &'g Guard, position: &[u8]) -> Option<&'g W> {
        let leaf = self.find(guard, position, false).leaf;
        persistent_tree::get(&leaf.tree, position).map(|entry| &entry.word)
    }

    /// Step 3. Returns the count of the new leaf, and whether an exchange has failed.
    fn apply(&self, guard: &Guard, position: &[u8], put: Option<W>) -> (i64, bool) {
        // Make the entry once. All attempts insert the same one.
        let entry = put.map(|word| {
            let position = Position::from_slice(position);
            Arc::new(Entry { position, word })
        });
        let (mut contended, backoff) = (false, Backoff::new());
        loop {
            // A frozen leaf is about to be replaced by a join. Wait for that.
            let found = self.find(guard, position, false);
            if found.frozen && !planted(Fault::Thaw) {
                backoff.snooze();
                continue;
            }
            // The position is locked. So the leaf still has the entry that the caller was given,
            // even if others have replaced the leaf.
            let tree = match &entry {
                Some(entry) => Some(persistent_tree::insert(&found.leaf.tree, entry.clone())),
                None => persistent_tree::remove(&found.leaf.tree, position),
            };
            // The count is in the leaf, so it needs no store of its own.
            let by = if contended { CONTENDED } else { QUIET };
            let now = (found.leaf.contention + by).clamp(-CLAMP, CLAMP);
            // This fails if the slot has another leaf, or was frozen, since the load (LF2).
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

    /// Step 4: replaces a leaf by a route with two leaves, unless another writer replaces it first.
    fn split(&self, guard: &Guard, position: &[u8]) {
        let found = self.find(guard, position, false);
        if found.frozen || found.depth >= DEPTH {
            return;
        }
        let Some((low, at, high)) = persistent_tree::divide(&found.leaf.tree) else {
            return;
        };
        // If the exchange below fails, the leaf was replaced or frozen, and isn't split. Its count
        // stays high, so a later write tries again.
        let kids = [low, high].map(|tree| Slot::new(Some(leaf(tree, 0))));
        let route = Arc::new(LfCaTreeNode::Route(Route { at, kids }));
        if found
            .slot
            .replace_if((Some(found.node), false), (Some(route), false), guard)
        {
            // Ordering, both: Relaxed, statistics.
            self.routes.fetch_add(1, Relaxed);
            self.splits.fetch_add(1, Relaxed);
        }
    }

    /// Step 4: replaces a leaf and its neighbour by one leaf, and removes the route between them.
    /// Does nothing if another thread is joining, or if a leaf can't be frozen.
    fn join(&self, guard: &Guard, position: &[u8]) {
        let Some(_joins) = self.joins.try_lock() else {
            return;
        };
        let mut found = self.find(guard, position, true);
        let Some((above, side)) = found.above.pop() else {
            return;
        };
        // Only this thread removes routes (LF3), so the parent stays in its slot. Leaves may still
        // be split.
        let Some(LfCaTreeNode::Route(parent)) = above.load(guard) else {
            return;
        };
        let sibling = &parent.kids[1 - side];
        // (a) From here on no writer replaces this leaf. So the entries that (b) reads are those at
        // (d).
        let Some(mine) = freeze(found.slot, guard) else {
            return;
        };
        let edge = edge(sibling, side, guard);
        let Some(other) = freeze(edge, guard) else {
            // Unfreeze the leaf, by storing it without the mark.
            let leaf = found.slot.share(guard);
            found.slot.store(leaf, guard);
            return;
        };
        // (b) Both slots are frozen.
        let (low, high) = if side == 0 {
            (mine, other)
        } else {
            (other, mine)
        };
        let new = leaf(persistent_tree::join(&low.tree, &high.tree), 0);
        // (c), (d) If the neighbour is the sibling itself, one store replaces the route and both
        // leaves.
        if std::ptr::eq(edge, sibling) {
            above.store(Some(new), guard);
        } else {
            // (c) must precede (d). After (d), a search for an entry of this leaf reaches the
            // neighbour's slot, which must have the joined leaf by then. Between the two stores,
            // such a search still reaches the old leaf, which is frozen.
            edge.store(Some(new), guard);
            above.store(sibling.share(guard), guard);
        }
        // Ordering, both: Relaxed, statistics.
        self.routes.fetch_sub(1, Relaxed);
        self.joined.fetch_add(1, Relaxed);
    }

    /// The slots of all leaves, in order, and the maximum number of routes above one.
    fn leaves<'g>(&'g self, guard: &'g Guard) -> (Vec<&'g Slot<LfCaTreeNode<W>>>, usize) {
        let (mut leaves, mut depth) = (Vec::new(), 0);
        let mut waiting = vec![(&self.root, 0)];
        while let Some((slot, level)) = waiting.pop() {
            match slot.load(guard) {
                Some(LfCaTreeNode::Route(route)) => {
                    // Pushed last is popped first, so the leaves come in order.
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
fn edge<'g, W: Word>(
    top: &'g Slot<LfCaTreeNode<W>>,
    side: usize,
    guard: &'g Guard,
) -> &'g Slot<LfCaTreeNode<W>> {
    let mut slot = top;
    while let Some(LfCaTreeNode::Route(route)) = slot.load(guard) {
        slot = &route.kids[side];
    }
    slot
}

/// Freezes a slot, so that no writer replaces its leaf. `None` if other writers keep replacing it,
/// or if the slot has no leaf any more.
fn freeze<'g, W: Word>(slot: &'g Slot<LfCaTreeNode<W>>, guard: &'g Guard) -> Option<&'g Leaf<W>> {
    const TRIES: usize = 4;
    (0..TRIES).find_map(|_| {
        let (node, frozen) = slot.load_marked(guard);
        let (Some(LfCaTreeNode::Leaf(leaf)), false) = (node, frozen) else {
            return None;
        };
        // The exchange needs a counted reference. If the slot has got another leaf between the two
        // loads, the reference is to the wrong one.
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
        // (1) While the position is locked, no other thread changes its entry.
        let (key, mut contended) = self.keys.lock(position);
        let old = self.get(guard, position);
        let there = old.is_some();
        // (2)
        let put = match f(old.map_or(Old::Absent, Old::Shared)) {
            Act::Put(word) => Some(word),
            Act::Remove if there => None,
            Act::Keep | Act::Remove => return contended,
        };
        // From here on the change is certain, so it can be counted.
        let come = isize::from(put.is_some()) - isize::from(there);
        let bytes = persistent_tree::bytes::<W>(&Position::from_slice(position));
        self.counts.add(0, come * bytes);
        // (3)
        let (now, was_second) = self.apply(guard, position, put);
        // Release the lock of the position. Step 4 changes no entry.
        drop(key);
        contended |= was_second;
        if contended {
            self.counts.contended();
            // Ordering: Relaxed, a statistic.
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
            // Entries that were passed to the visitor can't be taken back. So if the walk is torn
            // after that, the batch ends there.
            (visited || walked != Walked::Torn).then_some(walked)
        };
        // A strict walk fails if empty leaves that it has passed are written to. After some
        // failures, accept that each was empty at some instant.
        let strict = (0..TRIES).find_map(|_| once(true));
        strict.or_else(|| once(false)) == Some(Walked::ToTheEnd)
    }

    fn freeze(&self, on: bool) {
        if on {
            self.keys.settle_all();
        }
    }

    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        let (mut left, mut from) = (limit, self.popped.lock());
        // A bounded number of leaves, since many may be empty, and the caller works in slices.
        for _ in 0..EMPTY_AT_ONCE {
            let found = self.find(guard, &from, false);
            // No other thread writes. Remove entries from the tree, and store the rest once.
            let mut tree = found.leaf.tree.clone();
            while let Some((entry, rest)) = persistent_tree::first(&tree).filter(|_| left > 0) {
                left -= 1;
                self.counts
                    .add(0, -persistent_tree::bytes::<W>(&entry.position));
                f(entry.word.clone());
                tree = rest;
            }
            let some_left = tree.is_some();
            if found.leaf.tree.is_some() {
                // A new leaf begins with a new count of contention.
                found.slot.store(Some(leaf(tree, 0)), guard);
            }
            if some_left {
                return false;
            }
            if pop_past(&mut from, found.bound) {
                return true;
            }
        }
        false
    }

    fn memory(&self, _guard: &Guard) -> usize {
        // A node has two counts before it; a tree of n routes has n + 1 leaves. Ordering: Relaxed,
        // a statistic.
        let nodes = self.routes.load(Relaxed) * 2 + 1;
        nodes * (size_of::<LfCaTreeNode<W>>() + 16) + self.counts.bytes() + self.keys.memory()
    }

    fn stats(&self, guard: &Guard) -> Stats {
        let (leaves, depth) = self.leaves(guard);
        Stats {
            leaves: leaves.len(),
            depth,
            // Ordering, of these four: Relaxed, statistics.
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

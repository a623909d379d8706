//! A concurrent AVL tree with optimistic searches and relaxed balance (Bronson's tree).
//!
//! ```text
//!                 holder
//!                    \
//!                     k
//!                   /   \
//!                 (d)    p         (d) has no word
//!                /  \   / \
//!               b    f m   s
//!
//!   after a clone, a write of m:       k'
//!                                     /  \        k', p' and m' are copies of the new generation,
//!                                   (d)   p'      (d) and s are shared with the clone
//!                                        /  \
//!                                       m'   s
//! ```
//!
//! - *Hand over hand*: a search reads the version of a node, loads a child, and validates the
//!   version.
//! - *Partially external*: a removed node with two children stays as a route, without a word.
//! - *Relaxed*: heights may be wrong for a while. The writer that made them wrong repairs them.
//!
//! Invariants:
//! * **RV1** In order, positions ascend. While no writer is active, nodes without a word have two
//!   children.
//! * **RV2** The version of a node changes when keys of its subtree may have moved elsewhere:
//!   because the node was rotated down, or unlinked. All fields of a node change only while it is
//!   locked. Locks are taken from the top down.
//! * **RV3** A node of an earlier generation than the tree's is immutable, and so is its subtree:
//!   they belong to a clone. A writer copies such a node before it descends into it.
//! * **RV4** The generation changes only while no writer is active.
//! * **RV5** While no writer is active, all heights are right, and those of two siblings differ by
//!   at most one.
//!
//! Steps of a change:
//! * **rv1** Descend hand over hand to the node of the position, or to its parent if there is none.
//!   Copy nodes that belong to a clone.
//! * **rv2** Lock that node. If it has changed since, start again.
//! * **rv3** Let the caller decide.
//! * **rv4** Store or remove the word, or link a new node. This is the linearisation point.
//! * **rv5** Repair upwards: correct heights,
//! * **rv6** unlink nodes without a word that have fewer than two children,
//! * **rv7** and rotate nodes that are unbalanced.
//!
//! *Clone.* [`RelaxedAvl::snapshot`] waits for the active writers, and begins a new generation. It
//! copies nothing. The clone is the tree at that instant, which is its linearisation point. So an
//! iteration over it is atomic. Later, each write copies the nodes on its path that no write of
//! this generation has copied. A scan of an index takes a clone for each batch. So a batch is
//! atomic, and two batches are of two instants.
//!
//! Linearisation point of a lookup: the load of the pointer to the node, or to the part of a clone
//! in which the node is. If there is no node: the load of the null pointer.
//!
//! Source: N. Bronson, J. Casper, H. Chafi, K. Olukotun, "A practical concurrent binary search
//! tree", PPoPP 2010.
//!
//! Deviations:
//! - Nodes have no parent pointers. A repair takes parents from the path, or searches again.
//! - A generation number says which nodes are shared. The paper marks children as they are copied.
//! - Where the paper makes one double rotation, a repair makes two rotations in succession.
//! - Memory is reclaimed by epochs.
//!
//! When not to use it: for a single writer, since each node has a lock and a version; for tables
//! that are scanned while others write, since writes copy their paths again after each batch.

mod node;
mod repair;

use crate::counts::Counts;
use crate::key_locks::seen_unlocked;
use crate::raw::group_lock::GroupLock;
use crate::scheme::{Changer, Old, Reader, Scheme};
use crate::sequential::{Act, Visitor};
use crate::word::Word;
use crate::{Cut, Position};
use larder_index::sync::atomic::{fence, Ordering::SeqCst};
use larder_index::{Direction, Guard, Start, Stats};
use node::{same, RelaxedAvlNode};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// The number of groups of writers. The writers of a group share a cache line.
const GROUPS: usize = 8;

/// A node on the path of a search, its version when the search entered it, and the side to which
/// the search continues.
struct PathNode<'g, W: Word> {
    node: &'g RelaxedAvlNode<W>,
    version: u64,
    side: usize,
}

/// The path of a search, from the holder down.
type VersionedPath<'g, W> = SmallVec<[PathNode<'g, W>; 32]>;

/// An active writer. It holds `RelaxedAvl::generation` for reading, so the generation doesn't
/// change.
struct Writer<'g> {
    guard: &'g Guard,
    generation: u64,
}

#[derive(Default)]
struct Figures {
    contended: AtomicU64,
    rotations: AtomicU64,
    clones: AtomicU64,
    copies: AtomicU64,
    /// Nodes without a word.
    routes: AtomicI64,
}

/// An AVL tree with relaxed balance.
pub struct RelaxedAvl<W: Word> {
    /// Its right child is the root of the tree. It belongs to every generation.
    holder: Box<RelaxedAvlNode<W>>,
    /// The generation. Writers hold it for reading.
    generation: GroupLock<u64>,
    counts: Counts,
    figures: Figures,
}

/// A clone: the tree at one instant.
pub struct Snapshot<W: Word> {
    root: Option<Arc<RelaxedAvlNode<W>>>,
}

impl<W: Word> Snapshot<W> {
    /// Calls `f` with the entries from the cut on, in order, until `f` returns `false`. Returns
    /// whether the end was reached.
    pub fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        walk(self.root.as_deref(), guard, cut, f)
    }
}

/// Walks in order through an immutable tree.
fn walk<'g, W: Word>(
    top: Option<&'g RelaxedAvlNode<W>>,
    guard: &'g Guard,
    cut: Cut<'_>,
    f: &mut Visitor<'_, W>,
) -> bool {
    let near = usize::from(!cut.is_forward());
    let mut waiting: SmallVec<[&RelaxedAvlNode<W>; 48]> = SmallVec::new();
    let mut at = top;
    while let Some(node) = at {
        // Descend along the cut. Nodes that are admitted, and their far subtrees, are visited
        // later.
        let admitted = cut.admits(&node.position);
        if admitted {
            waiting.push(node);
        }
        at = node.kid(if admitted { near } else { 1 - near }, guard);
    }
    while let Some(node) = waiting.pop() {
        // The next ones in order are the nearest node of the far subtree, and its ancestors up to
        // here.
        let mut at = node.kid(1 - near, guard);
        while let Some(kid) = at {
            waiting.push(kid);
            at = kid.kid(near, guard);
        }
        // A node without a word is a route, and not an entry.
        let word = node.word.load(guard);
        if word.is_some_and(|word| !f(&node.position, word)) {
            return false;
        }
    }
    true
}

impl<W: Word> Default for RelaxedAvl<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Word> RelaxedAvl<W> {
    /// An empty tree.
    pub fn new() -> Self {
        RelaxedAvl {
            holder: Box::new(RelaxedAvlNode::new(Position::new(), None, u64::MAX)),
            generation: GroupLock::new(0, GROUPS),
            counts: Counts::default(),
            figures: Figures::default(),
        }
    }

    fn root<'g>(&'g self, guard: &'g Guard) -> Option<&'g RelaxedAvlNode<W>> {
        self.holder.kid(1, guard)
    }

    /// Takes a clone of the tree, in O(1). Waits for the writers that are active now. Later writes
    /// don't change the clone.
    pub fn snapshot(&self, guard: &Guard) -> Snapshot<W> {
        let (mut generation, _) = self.generation.write();
        self.begin_generation(&mut generation, guard);
        Snapshot {
            root: self.holder.kids[1].share(guard),
        }
    }

    /// The root of a clone that lives as long as the guard.
    fn frozen<'g>(&'g self, guard: &'g Guard) -> Option<&'g RelaxedAvlNode<W>> {
        let (mut generation, _) = self.generation.write();
        self.begin_generation(&mut generation, guard);
        self.root(guard)
    }

    /// Makes all present nodes those of a clone. If nothing was written since the last clone, they
    /// already are.
    fn begin_generation(&self, generation: &mut u64, guard: &Guard) {
        if self
            .root(guard)
            .is_some_and(|root| root.born == *generation)
        {
            *generation += 1;
            // Ordering: Relaxed, a statistic.
            self.figures.clones.fetch_add(1, Relaxed);
        }
    }

    /// Step rv1: continues the path, from the holder if it is empty, to the node of a position.
    /// Returns the node. If there is none, the last node of the path is the one that would be its
    /// parent. A writer copies nodes that belong to a clone.
    fn locate<'g>(
        &'g self,
        guard: &'g Guard,
        position: &[u8],
        writer: Option<&Writer<'g>>,
        path: &mut VersionedPath<'g, W>,
    ) -> Option<&'g RelaxedAvlNode<W>> {
        loop {
            let Some(parent) = path.last() else {
                // Begin at the holder. It is never rotated or unlinked, so its version never
                // changes, and this node is always valid.
                path.push(PathNode {
                    node: &self.holder,
                    version: self.holder.version(),
                    side: 1,
                });
                continue;
            };
            // When the last node was entered, the position belonged below it. What is loaded in
            // this round is only used if the version is still the same at the end.
            let (node, version, side) = (parent.node, parent.version, parent.side);
            let mut kid = node.kid(side, guard);
            if let (Some(writer), Some(_)) = (writer, kid) {
                // A writer must not change nodes of a clone (RV3), so it descends into a copy.
                kid = self.own_if_same(writer, parent);
            }
            let mut entered = None;
            if let Some(kid) = kid {
                let version = kid.version();
                let below = match position.cmp(&kid.position) {
                    // Found. The caller locks the node, or loads its word, and so checks it again.
                    Ordering::Equal if !kid.is_unlinked() => return Some(kid),
                    Ordering::Less => 0,
                    _ => 1,
                };
                // A rotation is moving this child down, or it is unlinked. Wait until its range is
                // settled, and try again.
                if !RelaxedAvlNode::<W>::admits(version) {
                    kid.wait(version);
                } else if same(node.kid(side, guard), Some(kid)) {
                    // The node still points to the child, so the child's version was loaded while
                    // it was here.
                    entered = Some(PathNode {
                        node: kid,
                        version,
                        side: below,
                    });
                }
            }
            // Validate the node. If its version has changed, go back one node, not to the root:
            // each has a version by which it is validated. Otherwise enter the child. If there
            // is none, the position is absent.
            if node.version() != version {
                path.pop();
            } else if let Some(entered) = entered {
                path.push(entered);
            } else if kid.is_none() {
                return None;
            }
        }
    }

    /// The child of a node on the path, or a copy of it if it belongs to a clone. `None` if the
    /// node's version has changed, or if it has no child.
    fn own_if_same<'g>(
        &'g self,
        writer: &Writer<'g>,
        parent: &PathNode<'g, W>,
    ) -> Option<&'g RelaxedAvlNode<W>> {
        // The generation doesn't change while this writer is active (RV4). So this check needs no
        // lock.
        let kid = parent.node.kid(parent.side, writer.guard)?;
        if kid.born == writer.generation {
            return Some(kid);
        }
        let _here = parent.node.lock.lock();
        // Validate under the lock. The unlinking of a child doesn't change the version of its
        // parent, so check for the child, too.
        if parent.node.version() != parent.version
            || parent.node.kid(parent.side, writer.guard).is_none()
        {
            return None;
        }
        self.own(writer, parent.node, parent.side)
    }

    /// The child of a locked node, if there is one. If it belongs to a clone, replaces it by a
    /// copy.
    fn own<'g>(
        &'g self,
        writer: &Writer<'g>,
        node: &'g RelaxedAvlNode<W>,
        side: usize,
    ) -> Option<&'g RelaxedAvlNode<W>> {
        let kid = node.kid(side, writer.guard)?;
        if kid.born == writer.generation {
            return Some(kid);
        }
        // Ordering: Relaxed, a statistic.
        self.figures.copies.fetch_add(1, Relaxed);
        // The copy has the same entry and children, so no version changes. Searches that are in the
        // old node continue in the clone, whose state is that of the instant at which they reached
        // it. No writer is in the old node.
        let copy = Arc::new(kid.copy(writer.generation, writer.guard));
        node.kids[side].store(Some(copy), writer.guard);
        node.kid(side, writer.guard)
    }

    /// Steps rv2 to rv4 at the node of the position. `None` if the caller must start again.
    /// Otherwise whether the node has to be repaired.
    fn change_there(
        &self,
        guard: &Guard,
        node: &RelaxedAvlNode<W>,
        f: &mut Changer<'_, W>,
    ) -> Option<bool> {
        // (rv2)
        let _here = node.lock.lock();
        // If the node is unlinked, a change would be lost.
        if node.is_unlinked() {
            return None;
        }
        settled();
        let old = node.word.load(guard);
        let routes = |by| {
            // Ordering: Relaxed, a statistic.
            self.figures.routes.fetch_add(by, Relaxed);
        };
        // (rv3), (rv4)
        match (f(old.map_or(Old::Absent, Old::Shared)), old) {
            (Act::Keep, _) | (Act::Remove, None) => Some(false),
            (Act::Put(word), old) => {
                if old.is_none() {
                    routes(-1);
                }
                node.word.store(Some(Arc::new(word)), guard);
                Some(false)
            }
            // The node stays as a route if it has two children. Otherwise the repair unlinks it.
            (Act::Remove, Some(_)) => {
                routes(1);
                node.word.store(None, guard);
                Some(true)
            }
        }
    }

    /// Steps rv2 to rv4 at the parent of an absent position. `None` if the caller must start again.
    /// Otherwise whether a node was linked.
    fn change_below(
        &self,
        writer: &Writer<'_>,
        parent: &PathNode<'_, W>,
        position: &[u8],
        f: &mut Changer<'_, W>,
    ) -> Option<bool> {
        // (rv2)
        let _here = parent.node.lock.lock();
        // Validate under the lock: the position still belongs below this node, and no other thread
        // has linked a node here.
        let slot = &parent.node.kids[parent.side];
        if parent.node.version() != parent.version || slot.load(writer.guard).is_some() {
            return None;
        }
        settled();
        // (rv3), (rv4)
        let Act::Put(word) = f(Old::Absent) else {
            return Some(false);
        };
        let position = Position::from_slice(position);
        let node = RelaxedAvlNode::new(position, Some(Arc::new(word)), writer.generation);
        self.counts.add(0, node.bytes());
        slot.store(Some(Arc::new(node)), writer.guard);
        Some(true)
    }

    /// Counts the removal of a node without a word.
    fn forget(&self, node: &RelaxedAvlNode<W>) {
        self.counts.add(0, -node.bytes());
        // Ordering: Relaxed, a statistic.
        self.figures.routes.fetch_sub(1, Relaxed);
    }

    /// Waits for a change of the position that is in progress, if there is one.
    fn settle(&self, guard: &Guard, position: &[u8]) {
        settled();
        let mut path = VersionedPath::new();
        let found = self.locate(guard, position, None, &mut path);
        let Some(node) = found.or(path.last().map(|parent| parent.node)) else {
            return;
        };
        // A change holds the lock of the node of the position, or of its parent if there is none.
        // While it does, that node stays the same. So either it is the node that was found here
        // after the fence, or the change began later, and sees what the caller has published.
        if node.lock.is_locked() {
            drop(node.lock.lock());
        }
        seen_unlocked();
    }
}

/// The fence between a store and a load of two threads that must see each other. A writer takes a
/// lock, and then checks a flag. A thread that settles has set a flag, and then checks the lock.
fn settled() {
    // Ordering: SeqCst fence, pairs with itself: at least one of the two sees the other.
    fence(SeqCst);
}

impl<W: Word> Scheme<W> for RelaxedAvl<W> {
    fn read(&self, guard: &Guard, position: &[u8], f: &mut Reader<'_, W>) {
        let node = self.locate(guard, position, None, &mut VersionedPath::new());
        f(node.and_then(|node| node.word.load(guard)));
    }

    fn has(&self, guard: &Guard, position: &[u8]) -> bool {
        self.settle(guard, position);
        let node = self.locate(guard, position, None, &mut VersionedPath::new());
        node.is_some_and(|node| node.word.load(guard).is_some())
    }

    fn change(&self, guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool {
        // Hold this until the repairs are finished, so that no clone is taken during a change
        // (RV4).
        let generation = self.generation.read();
        let writer = Writer {
            guard,
            generation: *generation,
        };
        let (mut path, mut contended) = (VersionedPath::new(), false);
        loop {
            // (rv1) If this is a retry, the path is empty, and the search begins at the holder.
            let found = self.locate(guard, position, Some(&writer), &mut path);
            let Some(last) = path.last() else { continue };
            // (rv2), (rv3), (rv4)
            let done = match found {
                Some(node) => self.change_there(guard, node, f).map(|it| (node, it)),
                None => {
                    let hung = self.change_below(&writer, last, position, f);
                    hung.map(|it| (last.node, it))
                }
            };
            // (rv5), (rv6), (rv7)
            match done {
                Some((node, true)) => self.repair(&writer, &mut path, node),
                Some((_, false)) => {}
                None => {
                    // Start at the top. An unlinked node still points to its old children, which
                    // may be unlinked, too.
                    path.clear();
                    contended = true;
                    continue;
                }
            }
            if contended {
                self.counts.contended();
                // Ordering: Relaxed, a statistic.
                self.figures.contended.fetch_add(1, Relaxed);
            }
            return contended;
        }
    }

    fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        walk(self.frozen(guard), guard, cut, f)
    }

    fn freeze(&self, on: bool) {
        if on {
            drop(self.generation.write());
        }
    }

    fn pop(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(W)) -> bool {
        // Collect positions first, and then remove them, since a removal may rotate nodes that a
        // walk would visit.
        let mut positions = Vec::with_capacity(limit.min(1024));
        let forward = Cut::new(Start::Edge, Direction::Forward);
        // No other thread writes, so no clone is needed.
        walk(self.root(guard), guard, forward, &mut |position, _| {
            positions.push(Position::from_slice(position));
            positions.len() < limit
        });
        let visited = positions.len();
        for position in positions {
            self.change(guard, &position, &mut |old| {
                old.word().cloned().into_iter().for_each(&mut *f);
                Act::Remove
            });
        }
        visited < limit || self.root(guard).is_none()
    }

    fn memory(&self, _guard: &Guard) -> usize {
        self.counts.bytes() + self.generation.memory() + size_of::<RelaxedAvlNode<W>>()
    }

    fn stats(&self, guard: &Guard) -> Stats {
        // Ordering, of all: Relaxed, statistics.
        let figure = |figure: &AtomicU64| figure.load(Relaxed);
        let figures = &self.figures;
        Stats {
            leaves: 1,
            depth: node::height(self.root(guard)) as usize,
            contended: figure(&figures.contended),
            more: vec![
                ("routes", figures.routes.load(Relaxed).max(0) as u64),
                ("rotations", figure(&figures.rotations)),
                ("clones", figure(&figures.clones)),
                ("copies", figure(&figures.copies)),
            ],
            ..Stats::default()
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests;

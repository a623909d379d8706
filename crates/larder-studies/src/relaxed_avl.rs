//! An AVL tree for threads, with optimistic searches and relaxed balance: Bronson's tree.
//!
//! ```text
//!                 holder
//!                    \
//!                     k            a search goes hand over hand: it reads a node's version, loads a child, and looks at the version again
//!                   /   \
//!                 (d)    p         (d) has no word: a removed key with two children stays for the way. "Partially external"
//!                /  \   / \
//!               b    f m   s       heights may be wrong for a while: who changed something repairs it afterwards. "Relaxed"
//!
//!   a clone:    k  is shared by the clone and the tree; a writer on its way to m makes new nodes k' and p' of this generation
//!              / \                                     k'
//!            (d)  p           tree, afterwards:       /  \        (d) and s are still shared
//!                                                   (d)   p'
//!                                                        /  \
//!                                                       m'   s
//! ```
//!
//! Invariants:
//! 1. In order, positions ascend. Nodes without a word have two children, when nobody is at work.
//! 2. A node's version changes when keys that a search comes through it for may be elsewhere now:
//!    because it was rotated down, or taken out. It changes, as everything of a node does, while
//!    the node is locked. Locks are taken from the top down.
//! 3. A node of an earlier generation than the tree's never changes, nor does what is below it: it
//!    is a clone's. A writer copies such a node before it goes below it.
//! 4. The generation changes while no writer is at work.
//! 5. When nobody is at work, heights are right and differ by at most one beside each other.
//!
//! Steps of a change: (1) hand over hand to the node of the position, or to the one that it would
//! hang on, copying what is a clone's; (2) lock that node, begin again if it is not what it was;
//! (3) let the caller decide; (4) put the word there, take it away, or hang a node on: the
//! linearisation point; (5) upwards: put heights right, (6) take out nodes without a word that have
//! less than two children, (7) rotate what leans.
//!
//! *Clone.* [`RelaxedAvl::snapshot`] waits for the writers that are at work, begins a generation,
//! and lets them go on: O(1) nodes. It is a tree as of that instant, which is its linearisation
//! point: a whole iteration over it is atomic. Afterwards each write copies the nodes on its way
//! that it is the first to touch. A scan of an index takes a clone for each batch, which is atomic
//! therefore; two batches of one scan are of two instants.
//!
//! Linearisation point of a lookup: the load of the pointer to the node, or to the clone's part
//! that the node is in; of one that finds nothing, of the missing child.
//!
//! Source: N. Bronson, J. Casper, H. Chafi, K. Olukotun, "A practical concurrent binary search
//! tree", PPoPP 2010. Deviations: nodes have no link to their parents, a repair takes them from the
//! path or searches again; a generation number says what is shared, where the paper marks children
//! as they are copied; a repair of a node that leans towards the inside takes two rotations one
//! after the other, where the paper has one double rotation; memory is freed by epochs.
//!
//! Not for: one writer (each node has a lock and a version); tables that are scanned while others
//! write them, whose writes copy their way again after each batch.

mod node;
mod repair;

use crate::counts::Counts;
use crate::raw::group_lock::GroupLock;
use crate::scheme::{Changer, Old, Reader, Scheme};
use crate::sequential::{Act, Visitor};
use crate::word::Word;
use crate::{Cut, Position};
use larder_index::sync::atomic::{fence, Ordering::SeqCst};
use larder_index::{Direction, Guard, Start, Stats};
use node::{same, Node};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Writers that share a cache line to say that they are at work.
const GROUPS: usize = 8;

/// A step of a search: a node, its version when it was entered, and the side that the search goes
/// to.
struct Step<'g, W: Word> {
    node: &'g Node<W>,
    version: u64,
    side: usize,
}

/// From the holder down.
type Path<'g, W> = SmallVec<[Step<'g, W>; 32]>;

/// A writer at work: what keeps the generation as it is.
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
    /// Its right child is the tree. It is of every generation.
    holder: Box<Node<W>>,
    /// The generation. Writers have it shared.
    generation: GroupLock<u64>,
    counts: Counts,
    figures: Figures,
}

/// A tree as it was at one instant.
pub struct Snapshot<W: Word> {
    root: Option<Arc<Node<W>>>,
}

impl<W: Word> Snapshot<W> {
    /// Calls `f` with the entries from the cut on, in order, until it answers false. Answers
    /// whether the end was reached.
    pub fn walk(&self, guard: &Guard, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        walk(self.root.as_deref(), guard, cut, f)
    }
}

/// In order through a tree that nobody changes.
fn walk<'g, W: Word>(
    top: Option<&'g Node<W>>,
    guard: &'g Guard,
    cut: Cut<'_>,
    f: &mut Visitor<'_, W>,
) -> bool {
    let near = usize::from(!cut.is_forward());
    let mut waiting: SmallVec<[&Node<W>; 48]> = SmallVec::new();
    let mut at = top;
    while let Some(node) = at {
        // The cut's edge is one way down: nodes that are admitted have their entry, and their far
        // side, still to come.
        let admitted = cut.admits(&node.position);
        if admitted {
            waiting.push(node);
        }
        at = node.kid(if admitted { near } else { 1 - near }, guard);
    }
    while let Some(node) = waiting.pop() {
        // Next in order: the far side's nearest node, and the nodes above it up to here.
        let mut at = node.kid(1 - near, guard);
        while let Some(kid) = at {
            waiting.push(kid);
            at = kid.kid(near, guard);
        }
        // A node without a word is there for the way, and no entry.
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
            holder: Box::new(Node::new(Position::new(), None, u64::MAX)),
            generation: GroupLock::new(0, GROUPS),
            counts: Counts::default(),
            figures: Figures::default(),
        }
    }

    fn root<'g>(&'g self, guard: &'g Guard) -> Option<&'g Node<W>> {
        self.holder.kid(1, guard)
    }

    /// The tree as it is now. Waits for the writers that are at work, and no longer: O(1). An
    /// iteration over it sees one instant, whatever is written meanwhile.
    pub fn snapshot(&self, guard: &Guard) -> Snapshot<W> {
        let (mut generation, _) = self.generation.write();
        self.begin_generation(&mut generation, guard);
        Snapshot {
            root: self.holder.kids[1].share(guard),
        }
    }

    /// The root of a tree that stays as it is, for as long as the guard lives.
    fn frozen<'g>(&'g self, guard: &'g Guard) -> Option<&'g Node<W>> {
        let (mut generation, _) = self.generation.write();
        self.begin_generation(&mut generation, guard);
        self.root(guard)
    }

    /// All nodes that there are become a clone's. They are already where nothing was written since
    /// the last clone.
    fn begin_generation(&self, generation: &mut u64, guard: &Guard) {
        if self
            .root(guard)
            .is_some_and(|root| root.born == *generation)
        {
            *generation += 1;
            // Ordering: Relaxed, a figure for people.
            self.figures.clones.fetch_add(1, Relaxed);
        }
    }

    /// Step 1: goes on with the path, from the holder if it is empty, to the node of the position,
    /// or to the one that it would hang on, which is the last step then. A writer copies what is a
    /// clone's.
    fn locate<'g>(
        &'g self,
        guard: &'g Guard,
        position: &[u8],
        writer: Option<&Writer<'g>>,
        path: &mut Path<'g, W>,
    ) -> Option<&'g Node<W>> {
        loop {
            let Some(step) = path.last() else {
                // The holder is never rotated or taken out, so its version holds for good: a search
                // always has a step to begin with.
                path.push(Step {
                    node: &self.holder,
                    version: self.holder.version(),
                    side: 1,
                });
                continue;
            };
            // The last step was valid when it was entered: the position, if it was in the tree, was
            // below this node. What is loaded from here on is of no use if the version is another
            // at the end of the round.
            let (node, version, side) = (step.node, step.version, step.side);
            let mut kid = node.kid(side, guard);
            if let (Some(writer), Some(_)) = (writer, kid) {
                // Nothing of a clone's is changed (invariant 3): a writer goes on through a copy.
                kid = self.own_if_same(writer, step);
            }
            let mut entered = None;
            if let Some(kid) = kid {
                let version = kid.version();
                let below = match position.cmp(&kid.position) {
                    // Its lock, or the load of its word, settles what it is; one that is out may
                    // hang on another that is, and is not met twice.
                    Ordering::Equal if !kid.is_unlinked() => return Some(kid),
                    Ordering::Less => 0,
                    _ => 1,
                };
                // A rotation moves this child down: what lies below it is another range until that
                // is over.
                if !Node::<W>::admits(version) {
                    kid.wait(version);
                } else if same(node.kid(side, guard), Some(kid)) {
                    // The version is of a time when the child was here.
                    entered = Some(Step {
                        node: kid,
                        version,
                        side: below,
                    });
                }
            }
            // The child, or that there is none, is what the search comes to, if the node is still
            // what it was. Otherwise one step back, not to the root: each step above has a version
            // of its own.
            if node.version() != version {
                path.pop();
            } else if let Some(step) = entered {
                path.push(step);
            } else if kid.is_none() {
                return None;
            }
        }
    }

    /// The child where the step leads, which a writer may change; None if the step's node is no
    /// longer what it was, or has no child there.
    fn own_if_same<'g>(&'g self, writer: &Writer<'g>, step: &Step<'g, W>) -> Option<&'g Node<W>> {
        // Of this generation, and generations don't change while a writer is at work (invariant 4):
        // no lock is needed to know.
        let kid = step.node.kid(step.side, writer.guard)?;
        if kid.born == writer.generation {
            return Some(kid);
        }
        let _here = step.node.lock.lock();
        // A child that is taken out changes no version but its own.
        if step.node.version() != step.version || step.node.kid(step.side, writer.guard).is_none() {
            return None;
        }
        self.own(writer, step.node, step.side)
    }

    /// The child, if there is one, which the writer may change: a copy in its place, if it is a
    /// clone's. The node is locked.
    fn own<'g>(
        &'g self,
        writer: &Writer<'g>,
        node: &'g Node<W>,
        side: usize,
    ) -> Option<&'g Node<W>> {
        let kid = node.kid(side, writer.guard)?;
        if kid.born == writer.generation {
            return Some(kid);
        }
        // Ordering: Relaxed, a figure for people.
        self.figures.copies.fetch_add(1, Relaxed);
        // The copy has the same entries and children, so no version changes. Searches that are in
        // the old node go on in the clone, as of when they came to it; no writer is there.
        let copy = Arc::new(kid.copy(writer.generation, writer.guard));
        node.kids[side].store(Some(copy), writer.guard);
        node.kid(side, writer.guard)
    }

    /// Steps 2 to 4 at a node that has the position. None: begin again. Otherwise whether the node
    /// has to be repaired.
    fn change_there(&self, guard: &Guard, node: &Node<W>, f: &mut Changer<'_, W>) -> Option<bool> {
        // (2)
        let _here = node.lock.lock();
        // An insert here would be lost: the node leads nowhere any more.
        if node.is_unlinked() {
            return None;
        }
        settled();
        let old = node.word.load(guard);
        let routes = |by| {
            // Ordering: Relaxed, a figure for people.
            self.figures.routes.fetch_add(by, Relaxed);
        };
        // (3), (4)
        match (f(old.map_or(Old::Absent, Old::Shared)), old) {
            (Act::Keep, _) | (Act::Remove, None) => Some(false),
            (Act::Put(word), old) => {
                if old.is_none() {
                    routes(-1);
                }
                node.word.store(Some(Arc::new(word)), guard);
                Some(false)
            }
            // The node stays for the way if it has two children; otherwise the repair takes it out.
            (Act::Remove, Some(_)) => {
                routes(1);
                node.word.store(None, guard);
                Some(true)
            }
        }
    }

    /// Steps 2 to 4 at a node that the position would hang on. None: begin again. Otherwise whether
    /// there is a new node there.
    fn change_below(
        &self,
        writer: &Writer<'_>,
        step: &Step<'_, W>,
        position: &[u8],
        f: &mut Changer<'_, W>,
    ) -> Option<bool> {
        // (2)
        let _here = step.node.lock.lock();
        // With the lock held the version can't change. It is that of the search, so the position
        // belongs below this node; and nobody hung another there.
        let slot = &step.node.kids[step.side];
        if step.node.version() != step.version || slot.load(writer.guard).is_some() {
            return None;
        }
        settled();
        // (3), (4)
        let Act::Put(word) = f(Old::Absent) else {
            return Some(false);
        };
        let position = Position::from_slice(position);
        let node = Node::new(position, Some(Arc::new(word)), writer.generation);
        self.counts.add(0, node.bytes());
        slot.store(Some(Arc::new(node)), writer.guard);
        Some(true)
    }

    /// A node without a word was taken out.
    fn forget(&self, node: &Node<W>) {
        self.counts.add(0, -node.bytes());
        // Ordering: Relaxed, a figure for people.
        self.figures.routes.fetch_sub(1, Relaxed);
    }

    /// Waits for a change of the position that is under way, if there is one.
    fn settle(&self, guard: &Guard, position: &[u8]) {
        settled();
        let mut path = Path::new();
        let found = self.locate(guard, position, None, &mut path);
        let Some(node) = found.or(path.last().map(|step| step.node)) else {
            return;
        };
        // A change holds the lock of the node that has the position, or of the one that it would
        // hang on, and nobody can make that another one meanwhile. What was found here after the
        // fence is that one, or a change will see what the caller told the world.
        if node.lock.is_locked() {
            drop(node.lock.lock());
        }
    }
}

/// A writer has locked what it changes, and looks at its world; or somebody has told the world
/// something, and looks for such locks.
fn settled() {
    // Ordering: SeqCst fence, pairs with itself: one of the two sees the other.
    fence(SeqCst);
}

impl<W: Word> Scheme<W> for RelaxedAvl<W> {
    fn read(&self, guard: &Guard, position: &[u8], f: &mut Reader<'_, W>) {
        let node = self.locate(guard, position, None, &mut Path::new());
        f(node.and_then(|node| node.word.load(guard)));
    }

    fn has(&self, guard: &Guard, position: &[u8]) -> bool {
        self.settle(guard, position);
        let node = self.locate(guard, position, None, &mut Path::new());
        node.is_some_and(|node| node.word.load(guard).is_some())
    }

    fn change(&self, guard: &Guard, position: &[u8], f: &mut Changer<'_, W>) -> bool {
        // Held to the end, repairs included: no clone is made in the middle of a change (invariant
        // 4).
        let generation = self.generation.read();
        let writer = Writer {
            guard,
            generation: *generation,
        };
        let (mut path, mut contended) = (Path::new(), false);
        loop {
            // (1)
            let found = self.locate(guard, position, Some(&writer), &mut path);
            let Some(last) = path.last() else { continue };
            let done = match found {
                Some(node) => self.change_there(guard, node, f).map(|it| (node, it)),
                None => {
                    let hung = self.change_below(&writer, last, position, f);
                    hung.map(|it| (last.node, it))
                }
            };
            // (5), (6), (7)
            match done {
                Some((node, true)) => self.repair(&writer, &mut path, node),
                Some((_, false)) => {}
                None => {
                    // From the top: a node that was taken out still leads to those it led to, which
                    // may be out, too.
                    path.clear();
                    contended = true;
                    continue;
                }
            }
            if contended {
                self.counts.contended();
                // Ordering: Relaxed, a figure for people.
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
        let mut positions = Vec::with_capacity(limit.min(1024));
        let forward = Cut::new(Start::Edge, Direction::Forward);
        // Nobody else writes: the tree stays as it is without a clone.
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
        self.counts.bytes() + self.generation.memory() + size_of::<Node<W>>()
    }

    fn stats(&self, guard: &Guard) -> Stats {
        // Ordering, of all: Relaxed, figures for people.
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

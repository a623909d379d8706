//! A B-tree in memory, of any order M: `btree` of the study of 2003, in which M is 4.
//!
//! ```text
//!                [  h   .   p  ]                 M = 4: at most 3 entries and 4 children per node
//!               /       |       \
//!        [ b d f ]   [ k m ]   [ r t ]
//!
//!  insert g: [ b d f g ] is too long, so it is split, and its middle entry moves up
//!
//!               [ d  .  h  .  p ]
//!              /     |     |     \
//!           [ b ] [ f g ] [ k m ] [ r t ]
//! ```
//!
//! Invariants:
//! * **BT1** In order, positions ascend. Inner nodes have entries, too.
//! * **BT2** All leaves are on one level. An inner node with n entries has n + 1 children.
//! * **BT3** A node has at most M − 1 entries. All nodes but the root have at least ⌈M/2⌉ − 1.
//!
//! Steps of a change:
//! 1. Descend to the entry, or to its place in a leaf.
//! 2. Let the caller decide.
//! 3. Insert or remove the entry. An entry of an inner node is replaced by its successor, which is
//!    removed from a leaf.
//! 4. On the way back, split a node that is too long. Balance a node that is too short with a
//!    neighbour, or merge the two.
//!
//! The descent is a recursion as deep as the tree: at most 32 levels for 2³² entries, if M is 3.
//!
//! Source: R. Bayer, E. McCreight, "Organization and maintenance of large ordered indexes", 1972.
//! Deviation: a node that is too short shares entries evenly with its neighbour. In the paper it
//! gets one.
//!
//! *Split and join*, for the contention-adapting tree. A split divides the root. A join links the
//! lower tree to an edge of the higher one. Both take O(log n). Afterwards `len` counts the
//! entries, in O(n).
//!
//! When not to use it: for many writers, since there is one lock. With M between 16 and 64 it is
//! faster than the AVL tree. The default structure, which compares heads of keys and packs its
//! leaves, is faster than both.

use crate::position::{spilled, Entry};
use crate::sequential::{Act, Actor, Divisible, Sequential, Visitor};
use crate::{Cut, Position};
use larder_index::Stats;

#[derive(Debug)]
struct BtreeNode<W> {
    entries: Vec<Entry<W>>,
    /// Empty in a leaf.
    children: Vec<BtreeNode<W>>,
}

/// The counts of a tree: entries, nodes, and the bytes of positions on the heap. If trees were
/// divided or joined, only the sums over all of them are meaningful, modulo 2⁶⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    entries: usize,
    leaves: usize,
    inner: usize,
    spilled: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.entries = self.entries.wrapping_add(other.entries);
        self.leaves = self.leaves.wrapping_add(other.leaves);
        self.inner = self.inner.wrapping_add(other.inner);
        self.spilled = self.spilled.wrapping_add(other.spilled);
    }

    /// Counts an entry that has come.
    fn came(&mut self, position: &Position) {
        self.entries = self.entries.wrapping_add(1);
        self.spilled = self.spilled.wrapping_add(spilled(position));
    }

    /// Counts a removed entry.
    fn went(&mut self, position: &Position) {
        self.entries = self.entries.wrapping_sub(1);
        self.spilled = self.spilled.wrapping_sub(spilled(position));
    }

    /// The number of nodes of a kind.
    fn nodes(&mut self, leaf: bool) -> &mut usize {
        if leaf {
            &mut self.leaves
        } else {
            &mut self.inner
        }
    }
}

/// The effect of a change on the parent of the changed node.
enum Effect<W> {
    Nothing,
    /// The node may be too short.
    Shorter,
    /// The node was split. The entry and the node belong after it in the parent.
    Divided(Entry<W>, BtreeNode<W>),
}

/// The context of a change: the maximum number of entries of a node, and the counts of the tree.
struct Work<'t> {
    most: usize,
    tally: &'t mut Tally,
}

impl Work<'_> {
    /// The minimum number of entries of a node (BT3).
    fn least(&self) -> usize {
        // ⌈M/2⌉ − 1, with M = most + 1.
        self.most / 2
    }

    /// Counts the removal of a node.
    fn forget<W>(&mut self, node: &BtreeNode<W>) {
        self.forget_kind(node.children.capacity() == 0);
    }

    fn forget_kind(&mut self, leaf: bool) {
        let nodes = self.tally.nodes(leaf);
        *nodes = nodes.wrapping_sub(1);
    }
}

impl<W> BtreeNode<W> {
    /// An empty node, with room for one entry more than it may keep.
    fn new(most: usize, leaf: bool, tally: &mut Tally) -> Self {
        let children = if leaf { 0 } else { most + 2 };
        let nodes = tally.nodes(leaf);
        *nodes = nodes.wrapping_add(1);
        BtreeNode {
            entries: Vec::with_capacity(most + 1),
            children: Vec::with_capacity(children),
        }
    }

    fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    fn search(&self, position: &[u8]) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.position[..].cmp(position))
    }

    /// The height of the subtree: the number of levels.
    fn height(&self) -> usize {
        let (mut levels, mut node) = (1, self);
        while let Some(first) = node.children.first() {
            levels += 1;
            node = first;
        }
        levels
    }

    /// Steps 1 to 4 in a subtree.
    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>, work: &mut Work<'_>) -> Effect<W> {
        // (1)
        match self.search(position) {
            // (2), (3) The entry is in this node.
            Ok(i) => match f(Some(&mut self.entries[i].word)) {
                Act::Keep => Effect::Nothing,
                Act::Put(word) => {
                    self.entries[i].word = word;
                    Effect::Nothing
                }
                Act::Remove => {
                    self.remove(i, work);
                    Effect::Shorter
                }
            },
            // (2), (3) There is no entry. Insert one at its place in this leaf.
            Err(i) if self.is_leaf() => match f(None) {
                Act::Put(word) => {
                    let position = Position::from_slice(position);
                    work.tally.came(&position);
                    self.entries.insert(i, Entry { position, word });
                    self.divide_if_long(work)
                }
                Act::Keep | Act::Remove => Effect::Nothing,
            },
            // (1) Descend further. (4) Then repair this node, if the child requires it.
            Err(i) => {
                let effect = self.children[i].change(position, f, work);
                self.after(i, effect, work)
            }
        }
    }

    /// Step 4: applies the effect of a change of child `i`. Returns the effect on this node's
    /// parent.
    fn after(&mut self, i: usize, effect: Effect<W>, work: &mut Work<'_>) -> Effect<W> {
        match effect {
            Effect::Nothing => Effect::Nothing,
            Effect::Shorter => {
                self.mend(i, work);
                Effect::Shorter
            }
            Effect::Divided(middle, right) => {
                // The child was too long. This node takes its middle entry and its right half, and
                // may be too long itself now.
                self.entries.insert(i, middle);
                self.children.insert(i + 1, right);
                self.divide_if_long(work)
            }
        }
    }

    /// Splits the node in the middle if it is too long.
    fn divide_if_long(&mut self, work: &mut Work<'_>) -> Effect<W> {
        if self.entries.len() <= work.most {
            return Effect::Nothing;
        }
        let (middle, right) = self.divide(self.entries.len() / 2, work);
        Effect::Divided(middle, right)
    }

    /// Splits the node. Moves everything after entry `i` to a new node. Returns the entry, which
    /// belongs between the two nodes, and the new node.
    fn divide(&mut self, i: usize, work: &mut Work<'_>) -> (Entry<W>, BtreeNode<W>) {
        let mut right = BtreeNode::new(work.most, self.is_leaf(), work.tally);
        right.entries.extend(self.entries.drain(i + 1..));
        if !self.is_leaf() {
            right.children.extend(self.children.drain(i + 1..));
        }
        let middle = self.entries.pop().expect("entry `i` is the last");
        (middle, right)
    }

    /// Removes entry `i`. The node may be too short then.
    fn remove(&mut self, i: usize, work: &mut Work<'_>) {
        let removed = if self.is_leaf() {
            self.entries.remove(i)
        } else {
            // An entry of an inner node separates two children. Replace it by its successor, the
            // first entry of the child after it.
            let successor = self.children[i + 1].remove_edge(false, work);
            let removed = std::mem::replace(&mut self.entries[i], successor);
            self.mend(i + 1, work);
            removed
        };
        work.tally.went(&removed.position);
    }

    /// Removes the first or the last entry of the subtree, without updating the count of entries.
    /// The node may be too short then.
    fn remove_edge(&mut self, last: bool, work: &mut Work<'_>) -> Entry<W> {
        if self.is_leaf() {
            let i = if last { self.entries.len() - 1 } else { 0 };
            return self.entries.remove(i);
        }
        let i = if last { self.entries.len() } else { 0 };
        let entry = self.children[i].remove_edge(last, work);
        self.mend(i, work);
        entry
    }

    /// If child `i` is too short, balances it with a neighbour, or merges the two.
    fn mend(&mut self, i: usize, work: &mut Work<'_>) {
        if self.children[i].entries.len() >= work.least() {
            return;
        }
        // Take the left neighbour, or the right one of the first child. There is one, since a node
        // with children has at least two.
        let left = i.saturating_sub(1);
        let mut right = self.children.remove(left + 1);
        let middle = self.entries.remove(left);
        // Merge the two, and the entry between them. If the result is too long, split it in the
        // middle, which balances the two.
        let node = &mut self.children[left];
        node.entries.push(middle);
        node.entries.append(&mut right.entries);
        node.children.append(&mut right.children);
        work.forget(&right);
        if node.entries.len() > work.most {
            let (middle, right) = node.divide(node.entries.len() / 2, work);
            // The merge has increased the capacity of the node. Release that memory.
            node.entries.shrink_to(work.most + 1);
            if !node.is_leaf() {
                node.children.shrink_to(work.most + 2);
            }
            self.entries.insert(left, middle);
            self.children.insert(left + 1, right);
        }
    }

    /// Joins this tree with a lower one, which is after it if `last` is set, and otherwise before
    /// it. `middle` is an entry between the two.
    fn graft(
        &mut self,
        other: BtreeNode<W>,
        middle: Entry<W>,
        last: bool,
        work: &mut Work<'_>,
    ) -> Effect<W> {
        let edge = if last { self.entries.len() } else { 0 };
        // Descend on the edge to the level at which children have the height of the other tree. So
        // all leaves are on one level (BT2).
        if self.height() > other.height() + 1 {
            let effect = self.children[edge].graft(other, middle, last, work);
            return self.after(edge, effect, work);
        }
        let child = if last { edge + 1 } else { 0 };
        self.entries.insert(edge, middle);
        self.children.insert(child, other);
        // The other tree was a root, so it may be too short for a child.
        self.mend(child, work);
        self.divide_if_long(work)
    }

    /// Counts the subtree. O(nodes).
    fn tally(&self) -> Tally {
        // An explicit stack, so that the count needs no recursion.
        let mut tally = Tally::default();
        let mut waiting = vec![self];
        while let Some(node) = waiting.pop() {
            tally.entries += node.entries.len();
            tally.spilled += node
                .entries
                .iter()
                .map(|e| spilled(&e.position))
                .sum::<usize>();
            *tally.nodes(node.is_leaf()) += 1;
            waiting.extend(&node.children);
        }
        tally
    }
}

/// A B-tree from positions to words.
#[derive(Debug)]
pub struct Btree<W> {
    /// `None` if there is no entry.
    root: Option<BtreeNode<W>>,
    most: usize,
    /// Whether the counts are exact: the tree was never divided, or joined with one that was.
    is_exact: bool,
    tally: Tally,
}

impl<W> Btree<W> {
    /// An empty tree whose nodes have at most `m` children. A smaller `m` than 3 counts as 3.
    pub fn new(m: usize) -> Self {
        Btree {
            root: None,
            most: m.max(3) - 1,
            is_exact: true,
            tally: Tally::default(),
        }
    }

    /// Sets the root. If it was split, makes a new root above the two nodes.
    fn raise(&mut self, left: BtreeNode<W>, effect: Effect<W>) {
        let Effect::Divided(middle, right) = effect else {
            self.root = Some(left);
            return;
        };
        let mut root = BtreeNode::new(self.most, false, &mut self.tally);
        root.entries.push(middle);
        root.children.extend([left, right]);
        self.root = Some(root);
    }

    /// Replaces a root without entries by its only child, or by nothing.
    fn lower(&mut self) {
        let empty = |root: &mut BtreeNode<W>| root.entries.is_empty();
        if let Some(mut root) = self.root.take_if(empty) {
            let (child, mut work) = (root.children.pop(), self.work());
            work.forget_kind(child.is_none());
            self.root = child;
        }
    }

    fn work(&mut self) -> Work<'_> {
        Work {
            most: self.most,
            tally: &mut self.tally,
        }
    }

    fn pop_edge(&mut self, last: bool) -> Option<Entry<W>> {
        let mut work = Work {
            most: self.most,
            tally: &mut self.tally,
        };
        let entry = self.root.as_mut()?.remove_edge(last, &mut work);
        work.tally.went(&entry.position);
        self.lower();
        Some(entry)
    }

    /// The counts of this tree alone. O(n) if it was divided or joined.
    fn counted(&self) -> Tally {
        if self.is_exact {
            return self.tally;
        }
        let root = self.root.as_ref();
        root.map_or(Tally::default(), BtreeNode::tally)
    }
}

impl<W: Send + Sync> Sequential<W> for Btree<W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        let mut node = self.root.as_ref()?;
        loop {
            match node.search(position) {
                Ok(i) => return Some(&node.entries[i].word),
                Err(i) => node = node.children.get(i)?,
            }
        }
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>) {
        let mut work = Work {
            most: self.most,
            tally: &mut self.tally,
        };
        let Some(root) = &mut self.root else {
            if let Act::Put(word) = f(None) {
                let mut root = BtreeNode::new(self.most, true, &mut self.tally);
                root.change(position, &mut first(word), &mut self.work());
                self.root = Some(root);
            }
            return;
        };
        // An existing root does the change, and reports what the tree must do about the root
        // itself.
        match root.change(position, f, &mut work) {
            Effect::Nothing => {}
            Effect::Shorter => self.lower(),
            // The root was divided. A new root is made above the two halves, so the tree grows at
            // the top, and all leaves stay on one level.
            divided => {
                if let Some(left) = self.root.take() {
                    self.raise(left, divided);
                }
            }
        }
    }

    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        let forward = cut.is_forward();
        let Some(root) = &self.root else { return true };
        // The nodes above, each with the number of entries left of where the walk is.
        let mut path: Vec<(&BtreeNode<W>, usize)> = Vec::new();
        // At each node the cut lies between two entries, and what is admitted of the child between
        // them comes first.
        let mut down = Some(root);
        while let Some(node) = down {
            let left = node.entries.partition_point(|e| cut.has_left(&e.position));
            path.push((node, left));
            down = node.children.get(left);
        }
        while let Some((node, left)) = path.pop() {
            // The child is done: the entry beside it is next, in this direction.
            let next = if forward {
                Some(left)
            } else {
                left.checked_sub(1)
            };
            let Some((i, entry)) = next.and_then(|i| Some((i, node.entries.get(i)?))) else {
                continue;
            };
            if !f(&entry.position, &entry.word) {
                return false;
            }
            let left = if forward { i + 1 } else { i };
            path.push((node, left));
            let mut down = node.children.get(left);
            while let Some(node) = down {
                let left = if forward { 0 } else { node.entries.len() };
                path.push((node, left));
                down = node.children.get(left);
            }
        }
        true
    }

    fn pop(&mut self) -> Option<W> {
        self.pop_edge(true).map(|entry| entry.word)
    }

    fn len(&self) -> usize {
        self.counted().entries
    }

    fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    fn stats(&self, stats: &mut Stats) {
        let tally = self.counted();
        stats.leaves = tally.leaves;
        stats.inner_nodes = tally.inner;
        stats.depth = self.root.as_ref().map_or(0, |root| root.height() - 1);
    }

    fn memory(&self) -> usize {
        let leaf = (self.most + 1) * size_of::<Entry<W>>();
        let inner = leaf + (self.most + 2) * size_of::<BtreeNode<W>>();
        // Nodes themselves lie in their parents; the root in the tree.
        let leaves = self.tally.leaves.wrapping_mul(leaf);
        let nodes = leaves.wrapping_add(self.tally.inner.wrapping_mul(inner));
        nodes.wrapping_add(self.tally.spilled)
    }
}

/// Puts the word where there is none.
fn first<W>(word: W) -> impl FnMut(Option<&mut W>) -> Act<W> {
    let mut word = Some(word);
    move |_| word.take().map_or(Act::Keep, Act::Put)
}

impl<W: Send + Sync> Divisible<W> for Btree<W> {
    fn like(&self) -> Self {
        Btree::new(self.most + 1)
    }

    fn divide(&mut self) -> Option<(Position, Self)> {
        // A leaf with one entry can't be divided. An inner node has children with entries.
        let many = |root: &mut BtreeNode<W>| root.entries.len() > 1 || !root.is_leaf();
        let mut root = self.root.take_if(many)?;
        // The root alone is divided: no entry moves but its own, and the parts may be uneven.
        let (middle, right) = root.divide(root.entries.len() / 2, &mut self.work());
        self.tally.went(&middle.position);
        // Nodes are not counted when they change trees. From here on each tree counts by walking.
        self.is_exact = false;
        let mut upper = Btree {
            root: Some(right),
            is_exact: false,
            ..self.like()
        };
        self.root = Some(root);
        self.lower();
        upper.lower();
        // The middle entry is the first of the upper part: all that is left of its position stays
        // in the lower one.
        upper.insert(&middle.position, middle.word);
        Some((middle.position, upper))
    }

    fn join(&mut self, mut right: Self) {
        // The first entry of the right tree separates the two. If there is none, the right tree is
        // empty.
        let middle = right.pop_edge(false);
        // Its nodes are this tree's from here on.
        self.tally.add(&right.tally);
        self.is_exact &= right.is_exact;
        let Some(middle) = middle else { return };
        match (self.root.take(), right.root.take()) {
            (Some(left), Some(root)) => {
                self.tally.came(&middle.position);
                self.concatenate(left, middle, root);
            }
            (left, root) => {
                self.root = left.or(root);
                self.insert(&middle.position, middle.word);
            }
        }
    }
}

impl<W> Btree<W> {
    /// Joins two trees, whose nodes are counted, with an entry between them.
    fn concatenate(&mut self, mut left: BtreeNode<W>, middle: Entry<W>, mut right: BtreeNode<W>) {
        let (high, low) = (left.height(), right.height());
        if high > low {
            // Graft the lower tree on the right edge of the higher one, at the level where heights
            // agree.
            let effect = left.graft(right, middle, true, &mut self.work());
            return self.raise(left, effect);
        }
        if high < low {
            // The mirror image: the lower tree goes to the left edge of the right one.
            let effect = right.graft(left, middle, false, &mut self.work());
            return self.raise(right, effect);
        }
        // Both were roots, which may be short.
        // The heights agree, so a new root above both keeps all leaves on one level.
        let mut root = BtreeNode::new(self.most, false, &mut self.tally);
        root.entries.push(middle);
        root.children.extend([left, right]);
        root.mend(0, &mut self.work());
        // The first repair may have merged the two, and then there is no second child.
        if !root.entries.is_empty() {
            root.mend(1, &mut self.work());
        }
        self.root = Some(root);
        // If the two were merged, the new root has one child, which takes its place.
        self.lower();
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests;

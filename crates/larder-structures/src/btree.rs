//! A B-tree in memory, of settable order: `btree` of the study of 2003, which took M = 4.
//!
//! ```text
//!                [  h   .   p  ]                 M = 4: at most 3 entries and 4 children a node
//!               /       |       \
//!        [ b d f ]   [ k m ]   [ r t ]           `g` comes:  [ b d f g ] is too long,
//!                                                its middle goes up:  [ d h p ],  [ b ] [ f g ] [ k m ] [ r t ]
//! ```
//!
//! Invariants:
//! 1. In order, positions ascend; entries are in inner nodes, too.
//! 2. All leaves are on one level. An inner node of n entries has n + 1 children.
//! 3. A node has at most M − 1 entries, and all but the root at least ⌈M/2⌉ − 1.
//!
//! Steps of a change: (1) down to the entry or to its place in a leaf; (2) let the caller decide; (3) insert or remove there, an entry of an inner
//! node by way of its successor; (4) on the way back, divide a node that is too long, even out or merge one that is too short with a neighbour.
//!
//! The way down is a recursion as deep as the tree: 32 levels for 2³² entries where M is smallest.
//!
//! Source: R. Bayer, E. McCreight, "Organization and maintenance of large ordered indexes", 1972. Deviations: a node that is too short shares evenly
//! with its neighbour where the paper moves one entry; to divide a tree counts the entries of one part, O(n / M) nodes read.
//!
//! Not for: many writers (one lock). With M of 16 to 64 it beats the AVL tree; the default, which compares heads of keys and packs its
//! leaves, beats both.

use crate::position::spilled;
use crate::sequential::{Act, Actor, Divisible, Sequential, Visitor};
use crate::{Cut, Position};

#[derive(Debug)]
struct Entry<W> {
    position: Position,
    word: W,
}

#[derive(Debug)]
struct Node<W> {
    entries: Vec<Entry<W>>,
    /// None in a leaf.
    children: Vec<Node<W>>,
}

/// What a tree is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    entries: usize,
    leaves: usize,
    inner: usize,
    spilled: usize,
}

/// What a change of a node means for its parent.
enum Effect<W> {
    Nothing,
    /// The node may be too short.
    Shorter,
    /// The node was divided.
    Divided(Entry<W>, Node<W>),
}

/// The most entries of a node, and what the tree is made of: what the steps need to know besides the node.
struct Work<'t> {
    most: usize,
    tally: &'t mut Tally,
}

impl Work<'_> {
    fn least(&self) -> usize {
        // ⌈M/2⌉ − 1, with M = most + 1.
        self.most.div_ceil(2).max(1) - usize::from(self.most % 2 == 0)
    }
}

impl<W> Node<W> {
    /// A node with room for one entry too many.
    fn new(most: usize, leaf: bool, tally: &mut Tally) -> Self {
        let children = if leaf { 0 } else { most + 2 };
        tally.leaves += usize::from(leaf);
        tally.inner += usize::from(!leaf);
        Node {
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

    /// Levels, this one included.
    fn height(&self) -> usize {
        let (mut levels, mut node) = (1, self);
        while let Some(first) = node.children.first() {
            levels += 1;
            node = first;
        }
        levels
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>, work: &mut Work<'_>) -> Effect<W> {
        // (1)
        match self.search(position) {
            // (2), (3)
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
            Err(i) if self.is_leaf() => match f(None) {
                Act::Put(word) => {
                    let position = Position::from_slice(position);
                    work.tally.entries += 1;
                    work.tally.spilled += spilled(&position);
                    self.entries.insert(i, Entry { position, word });
                    self.divide_if_long(work)
                }
                Act::Keep | Act::Remove => Effect::Nothing,
            },
            // (4)
            Err(i) => {
                let effect = self.children[i].change(position, f, work);
                self.after(i, effect, work)
            }
        }
    }

    /// Step 4: deals with what happened to a child.
    fn after(&mut self, i: usize, effect: Effect<W>, work: &mut Work<'_>) -> Effect<W> {
        match effect {
            Effect::Nothing => Effect::Nothing,
            Effect::Shorter => {
                self.mend(i, work);
                Effect::Shorter
            }
            Effect::Divided(middle, right) => {
                self.entries.insert(i, middle);
                self.children.insert(i + 1, right);
                self.divide_if_long(work)
            }
        }
    }

    fn divide_if_long(&mut self, work: &mut Work<'_>) -> Effect<W> {
        if self.entries.len() <= work.most {
            return Effect::Nothing;
        }
        let (middle, right) = self.divide(self.entries.len() / 2, work);
        Effect::Divided(middle, right)
    }

    /// Moves what follows entry `i` to a new node; the entry goes to between the two.
    fn divide(&mut self, i: usize, work: &mut Work<'_>) -> (Entry<W>, Node<W>) {
        let mut right = Node::new(work.most, self.is_leaf(), work.tally);
        right.entries.extend(self.entries.drain(i + 1..));
        if !self.is_leaf() {
            right.children.extend(self.children.drain(i + 1..));
        }
        let middle = self.entries.pop().expect("entry `i` is the last");
        (middle, right)
    }

    /// Removes entry `i`; the node, or the child behind it, may be too short then.
    fn remove(&mut self, i: usize, work: &mut Work<'_>) {
        let gone = if self.is_leaf() {
            self.entries.remove(i)
        } else {
            let (successor, _) = self.children[i + 1].remove_edge(false, work);
            let gone = std::mem::replace(&mut self.entries[i], successor);
            self.mend(i + 1, work);
            gone
        };
        work.tally.entries -= 1;
        work.tally.spilled -= spilled(&gone.position);
    }

    /// Takes out the first or the last entry, still counted. The second part says nothing more than that the node may be too short.
    fn remove_edge(&mut self, last: bool, work: &mut Work<'_>) -> (Entry<W>, Effect<W>) {
        if self.is_leaf() {
            let i = if last { self.entries.len() - 1 } else { 0 };
            return (self.entries.remove(i), Effect::Shorter);
        }
        let i = if last { self.entries.len() } else { 0 };
        let (entry, effect) = self.children[i].remove_edge(last, work);
        let effect = self.after(i, effect, work);
        (entry, effect)
    }

    /// Evens out child `i` with a neighbour, or merges the two, if it is too short.
    fn mend(&mut self, i: usize, work: &mut Work<'_>) {
        if self.children[i].entries.len() >= work.least() {
            return;
        }
        let left = i.saturating_sub(1);
        let mut right = self.children.remove(left + 1);
        let middle = self.entries.remove(left);
        let node = &mut self.children[left];
        node.entries.push(middle);
        // Together they may have more than a node has room for; then they are divided at once.
        node.entries.append(&mut right.entries);
        node.children.append(&mut right.children);
        if right.children.capacity() == 0 {
            work.tally.leaves -= 1;
        } else {
            work.tally.inner -= 1;
        }
        let half = node.entries.len() / 2;
        if let Effect::Divided(..) = Self::is_long(node, work) {
            let (middle, right) = node.divide(half, work);
            node.entries.shrink_to(work.most + 1);
            node.children.shrink_to(if node.is_leaf() { 0 } else { work.most + 2 });
            self.entries.insert(left, middle);
            self.children.insert(left + 1, right);
        }
    }
}

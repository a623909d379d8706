//! Chains: singly linked lists of entries, by ascending position, for the buckets of hash tables.
//!
//! ```text
//!   head (the table's) -> node -> node -> NIL
//!                           ^      ^
//!                        before    at         a place
//! ```
//!
//! A place is a link: that of the node `before`, or the head. `at` is the node to which it points.
//!
//! Invariants:
//! * **CN1** The positions of a chain's nodes ascend.
//! * **CN2** A node is in exactly one chain, whose head the table stores.
//!
//! Steps of a change:
//! 1. Find the place, from the head of the chain.
//! 2. Link or unlink a node.
//! 3. If the first node has changed, store its number in the head.
//!
//! Tables store heads in different ways. So a function that changes a chain returns the new head,
//! if the head has changed, and the caller stores it.

use crate::position::spilled;
use crate::sequential::Visitor;
use crate::slab::{Slab, NIL};
use crate::{Cut, Position};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::{Index, IndexMut};

/// An entry of a chain, with flags of its table.
#[derive(Debug)]
pub(crate) struct ChainNode<W, M> {
    pub(crate) position: Position,
    pub(crate) word: W,
    pub(crate) next: u32,
    pub(crate) flags: M,
}

/// A position in a chain: the node before it ([`NIL`] at the beginning), and the node at it
/// ([`NIL`] at the end).
#[derive(Clone, Copy)]
pub(crate) struct ChainCursor {
    pub(crate) before: u32,
    pub(crate) at: u32,
}

/// The new head of a chain, if it has changed: the number of a node, or [`NIL`] if the chain is
/// empty.
pub(crate) type NewHead = Option<u32>;

/// The nodes of all chains of a table.
#[derive(Debug)]
pub(crate) struct Chains<W, M = ()> {
    nodes: Slab<ChainNode<W, M>>,
    /// The bytes on the heap of positions that are too long for their nodes.
    spilled: usize,
}

impl<W, M> Chains<W, M> {
    pub(crate) fn new() -> Self {
        Chains {
            nodes: Slab::new(),
            spilled: 0,
        }
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The memory in bytes. O(1).
    pub(crate) fn memory(&self) -> usize {
        self.nodes.memory() + self.spilled
    }

    /// The node of a position. Doesn't compare the order, since equality is cheaper.
    #[inline]
    pub(crate) fn get(&self, head: u32, position: &[u8]) -> Option<&ChainNode<W, M>> {
        let mut at = head;
        while at != NIL {
            let node = &self.nodes[at];
            if node.position[..] == *position {
                return Some(node);
            }
            at = node.next;
        }
        None
    }

    /// Step 1: finds the place of a position. Also returns whether there is a node at the position.
    #[inline]
    pub(crate) fn find(&self, head: u32, position: &[u8]) -> (ChainCursor, bool) {
        let (mut before, mut at) = (NIL, head);
        let mut found = false;
        while at != NIL {
            let node = &self.nodes[at];
            match node.position[..].cmp(position) {
                Ordering::Less => {}
                // The first node that isn't less. It is the position's, or the position would be
                // inserted before it.
                order => {
                    found = order == Ordering::Equal;
                    break;
                }
            }
            (before, at) = (at, node.next);
        }
        (ChainCursor { before, at }, found)
    }

    /// The first place whose node doesn't satisfy `begins`, or the end.
    pub(crate) fn past(&self, head: u32, begins: impl Fn(&ChainNode<W, M>) -> bool) -> ChainCursor {
        let (mut before, mut at) = (NIL, head);
        while at != NIL && begins(&self.nodes[at]) {
            (before, at) = (at, self.nodes[at].next);
        }
        ChainCursor { before, at }
    }

    /// Sets the link of a place to `to`.
    #[must_use]
    #[inline]
    pub(crate) fn link(&mut self, place: ChainCursor, to: u32) -> NewHead {
        // The link to the first node is the head, which the caller stores.
        if place.before == NIL {
            return Some(to);
        }
        self.nodes[place.before].next = to;
        None
    }

    /// Step 2: inserts a new node at a place.
    #[must_use]
    #[inline]
    pub(crate) fn insert(
        &mut self,
        place: ChainCursor,
        position: &[u8],
        word: W,
        flags: M,
    ) -> NewHead {
        let position = Position::from_slice(position);
        self.spilled += spilled(&position);
        let node = self.nodes.insert(ChainNode {
            position,
            word,
            next: place.at,
            flags,
        });
        self.link(place, node)
    }

    /// Step 2: unlinks and removes the node at a place.
    #[inline]
    pub(crate) fn unlink(&mut self, place: ChainCursor) -> (ChainNode<W, M>, NewHead) {
        // The node that follows takes its place.
        let next = self.nodes[place.at].next;
        let head = self.link(place, next);
        (self.take(place.at), head)
    }

    /// Removes a node to which no link points any more.
    pub(crate) fn take(&mut self, at: u32) -> ChainNode<W, M> {
        // The slab uses its number again, so no link may have it any more.
        let node = self.nodes.remove(at);
        self.spilled -= spilled(&node.position);
        node
    }

    /// Visits the nodes of a chain that the cut admits, and for which `seen` returns `true`.
    /// Returns whether to continue.
    pub(crate) fn walk(
        &self,
        head: u32,
        cut: Cut<'_>,
        seen: impl Fn(&ChainNode<W, M>) -> bool,
        f: &mut Visitor<'_, W>,
    ) -> bool {
        // Collect the nodes first, so that they can be reversed. Links only lead forward, and
        // chains are short.
        let mut ids: SmallVec<[u32; 16]> = SmallVec::new();
        let mut at = head;
        while at != NIL {
            let node = &self.nodes[at];
            if seen(node) && cut.admits(&node.position) {
                ids.push(at);
            }
            at = node.next;
        }
        if !cut.is_forward() {
            ids.reverse();
        }
        ids.into_iter().all(|id| {
            let node = &self.nodes[id];
            f(&node.position, &node.word)
        })
    }

    /// Checks a chain's order, and calls `each` with its nodes.
    #[cfg(all(test, not(larder_model)))]
    pub(crate) fn check(&self, head: u32, mut each: impl FnMut(&ChainNode<W, M>)) {
        let (mut last, mut at) = (None, head);
        while at != NIL {
            let node = &self.nodes[at];
            each(node);
            assert!(last < Some(&node.position));
            (last, at) = (Some(&node.position), node.next);
        }
    }
}

impl<W, M> Index<u32> for Chains<W, M> {
    type Output = ChainNode<W, M>;

    #[inline]
    fn index(&self, id: u32) -> &ChainNode<W, M> {
        &self.nodes[id]
    }
}

impl<W, M> IndexMut<u32> for Chains<W, M> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut ChainNode<W, M> {
        &mut self.nodes[id]
    }
}

//! Chains of entries, by ascending position: what the hash tables keep in their buckets.
//!
//! ```text
//!   head (the table's) -> node -> node -> NIL
//!                           ^      ^
//!                        before    at         a place: where the second node is, or where another would go in before it
//! ```
//!
//! Invariants: 1. A chain's nodes ascend by position. 2. A node is in one chain, which begins with
//! a head that its table keeps.
//!
//! Steps of a change: (1) find the place, from the chain's head; (2) link a node or unlink one; (3)
//! where that makes another node the first, put its number where the head is.
//!
//! Heads are the tables': one has them in an array, another under the buckets' numbers. So what
//! changes a chain answers its new head, if it has one.

use crate::position::spilled;
use crate::sequential::Visitor;
use crate::slab::{Slab, NIL};
use crate::{Cut, Position};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::{Index, IndexMut};

/// An entry in a chain, and what its table notes of it.
#[derive(Debug)]
pub(crate) struct Node<W, M> {
    pub(crate) position: Position,
    pub(crate) word: W,
    pub(crate) next: u32,
    pub(crate) mark: M,
}

/// Where a chain is gone along: the node before ([`NIL`] at its beginning) and the node there
/// ([`NIL`] at its end).
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) before: u32,
    pub(crate) at: u32,
}

/// Where a node becomes a chain's first: its number, or [`NIL`] where the chain becomes empty.
pub(crate) type NewHead = Option<u32>;

/// The nodes of all chains of a table.
#[derive(Debug)]
pub(crate) struct Chains<W, M = ()> {
    nodes: Slab<Node<W, M>>,
    /// Bytes of positions that are too long to stand in their nodes.
    spilled: usize,
}

impl<W, M> Chains<W, M> {
    pub(crate) fn new() -> Self {
        Chains {
            nodes: Slab::new(),
            spilled: 0,
        }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes of memory. O(1).
    pub(crate) fn memory(&self) -> usize {
        self.nodes.memory() + self.spilled
    }

    /// The node of a position.
    #[inline]
    pub(crate) fn get(&self, head: u32, position: &[u8]) -> Option<&Node<W, M>> {
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

    /// Step 1. Gives the place of the position, and whether it is there.
    #[inline]
    pub(crate) fn find(&self, head: u32, position: &[u8]) -> (Place, bool) {
        let (mut before, mut at) = (NIL, head);
        let mut found = false;
        while at != NIL {
            let node = &self.nodes[at];
            match node.position[..].cmp(position) {
                Ordering::Less => {}
                // The first that is not less: the place of the position, whether it is there or
                // not.
                order => {
                    found = order == Ordering::Equal;
                    break;
                }
            }
            (before, at) = (at, node.next);
        }
        (Place { before, at }, found)
    }

    /// The first place whose node, if there is one, is not of those that the chain begins with.
    pub(crate) fn past(&self, head: u32, begins: impl Fn(&Node<W, M>) -> bool) -> Place {
        let (mut before, mut at) = (NIL, head);
        while at != NIL && begins(&self.nodes[at]) {
            (before, at) = (at, self.nodes[at].next);
        }
        Place { before, at }
    }

    /// Makes `to` what follows the place's `before`.
    #[must_use]
    #[inline]
    pub(crate) fn link(&mut self, place: Place, to: u32) -> NewHead {
        if place.before == NIL {
            return Some(to);
        }
        self.nodes[place.before].next = to;
        None
    }

    /// Step 2: a new node, before the place's.
    #[must_use]
    #[inline]
    pub(crate) fn insert(&mut self, place: Place, position: &[u8], word: W, mark: M) -> NewHead {
        let position = Position::from_slice(position);
        self.spilled += spilled(&position);
        let node = self.nodes.insert(Node {
            position,
            word,
            next: place.at,
            mark,
        });
        self.link(place, node)
    }

    /// Step 2: takes the place's node out.
    #[inline]
    pub(crate) fn unlink(&mut self, place: Place) -> (Node<W, M>, NewHead) {
        let next = self.nodes[place.at].next;
        let head = self.link(place, next);
        (self.take(place.at), head)
    }

    /// Takes a node out that no chain needs any more.
    pub(crate) fn take(&mut self, at: u32) -> Node<W, M> {
        let node = self.nodes.remove(at);
        self.spilled -= spilled(&node.position);
        node
    }

    /// Visits what the cut admits of a chain and `seen` lets be seen; answers whether to go on.
    pub(crate) fn walk(
        &self,
        head: u32,
        cut: Cut<'_>,
        seen: impl Fn(&Node<W, M>) -> bool,
        f: &mut Visitor<'_, W>,
    ) -> bool {
        // Gathered first: a chain leads forward only, and is short.
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
    pub(crate) fn check(&self, head: u32, mut each: impl FnMut(&Node<W, M>)) {
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
    type Output = Node<W, M>;

    #[inline]
    fn index(&self, id: u32) -> &Node<W, M> {
        &self.nodes[id]
    }
}

impl<W, M> IndexMut<u32> for Chains<W, M> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Node<W, M> {
        &mut self.nodes[id]
    }
}

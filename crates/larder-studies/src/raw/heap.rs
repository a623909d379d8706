//! Nodes of a tree on the heap, reached by address. So a subtree moves from one tree to another by
//! moving its topmost link.
//!
//! The code that keeps links must guarantee that they form a tree: each node is reached from the
//! root by exactly one link, no link leads to a node that was removed, and a subtree that was moved
//! to another tree is only kept there. This is an invariant of `Avl`, the only user, and its tests
//! check it after each kind of change. Nothing else has to be guaranteed: nodes are only reached
//! through their heap, and a borrow of a node is a borrow of the heap.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::ptr;

/// The address of a node, or [`NIL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(*mut ());

// SAFETY: a link is only an address. Its node is only accessed through a `Heap`.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

/// No node.
pub(crate) const NIL: Link = Link(ptr::null_mut());

/// The nodes of a tree. It counts the nodes that it has made minus those that it has removed. If
/// subtrees move between trees, only the sum of the counts of all trees is meaningful, modulo 2⁶⁴.
#[derive(Debug)]
pub(crate) struct Heap<T> {
    made: usize,
    nodes: PhantomData<Box<T>>,
}

impl<T> Heap<T> {
    pub(crate) fn new() -> Self {
        Heap {
            made: 0,
            nodes: PhantomData,
        }
    }

    /// The number of nodes made here minus those removed here, modulo 2⁶⁴.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// Takes over the count of another heap, which is about to be dropped.
    pub(crate) fn take_over(&mut self, other: &Heap<T>) {
        self.made = self.made.wrapping_add(other.made);
    }

    /// Adds a node, and returns its link.
    pub(crate) fn insert(&mut self, node: T) -> Link {
        self.made = self.made.wrapping_add(1);
        Link(Box::into_raw(Box::new(node)).cast())
    }

    /// Removes a node, and returns it.
    pub(crate) fn remove(&mut self, link: Link) -> T {
        assert!(link != NIL, "links lead to nodes");
        self.made = self.made.wrapping_sub(1);
        // SAFETY: 1. the link came from `insert`, and its node wasn't removed before (see the
        // module);
        // 2. no borrow of the node exists, as it would be a borrow of this heap.
        *unsafe { Box::from_raw(link.0.cast::<T>()) }
    }
}

impl<T> Index<Link> for Heap<T> {
    type Output = T;

    #[inline]
    fn index(&self, link: Link) -> &T {
        debug_assert!(link != NIL, "links lead to nodes");
        // SAFETY: the link is to a node that wasn't removed (see the module). The heap is borrowed
        // as long as the node.
        unsafe { &*link.0.cast::<T>() }
    }
}

impl<T> IndexMut<Link> for Heap<T> {
    #[inline]
    fn index_mut(&mut self, link: Link) -> &mut T {
        debug_assert!(link != NIL, "links lead to nodes");
        // SAFETY: as above, and the borrow is the only one.
        unsafe { &mut *link.0.cast::<T>() }
    }
}

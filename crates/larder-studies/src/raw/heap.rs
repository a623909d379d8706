//! Nodes of a tree on the heap, by address: a subtree goes from one tree to another by its topmost
//! link alone.
//!
//! Whoever keeps links promises what a tree is: from its root each node is reached by one link, no
//! link leads to a node that was taken out, and a subtree that is given to another tree is kept
//! there alone. `Avl`, the only user, has it as its invariant, and tests that check it after each
//! kind of change. Nothing else is left to promise: nodes are reached through their heap, whose
//! borrows are theirs.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::ptr;

/// Where a node is, or that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(*mut ());

// SAFETY: an address by itself; what it leads to is reached through a `Heap` alone.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

/// No node.
pub(crate) const NIL: Link = Link(ptr::null_mut());

/// The nodes of a tree. It counts those that it made and those that it took out: where subtrees go
/// from tree to tree, the sum over all of them is right, modulo 2⁶⁴.
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

    /// Nodes made here and not taken out here, modulo 2⁶⁴.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// Counts nodes as another heap's does, which goes.
    pub(crate) fn take_over(&mut self, other: &Heap<T>) {
        self.made = self.made.wrapping_add(other.made);
    }

    /// Keeps the node; tells where.
    pub(crate) fn insert(&mut self, node: T) -> Link {
        self.made = self.made.wrapping_add(1);
        Link(Box::into_raw(Box::new(node)).cast())
    }

    /// Takes the node out.
    pub(crate) fn remove(&mut self, link: Link) -> T {
        assert!(link != NIL, "links lead to nodes");
        self.made = self.made.wrapping_sub(1);
        // SAFETY: the link is one that `insert` gave and leads to a node that was not taken out
        // (see the module): this is the end of the only box of it, and nobody has a borrow, as that
        // would be of this heap.
        *unsafe { Box::from_raw(link.0.cast::<T>()) }
    }
}

impl<T> Index<Link> for Heap<T> {
    type Output = T;

    #[inline]
    fn index(&self, link: Link) -> &T {
        debug_assert!(link != NIL, "links lead to nodes");
        // SAFETY: the link leads to a node that is there (see the module); its tree, whose heap
        // this is, is borrowed as long as the node.
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

//! A slot of the B+-tree: the atomic address of a leaf or of an inner node.

use crate::btree::leaf::{NewTreeLeaf, TreeLeaf};
use crate::sync::atomic::{AtomicPtr, Ordering::*};
use crossbeam_epoch::Guard;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Low bit of the address: set for an inner node.
const INNER: usize = 1;

/// The target of a slot.
pub(super) enum TreeChild<'g, N> {
    Leaf(TreeLeaf<'g>),
    Node(&'g N),
}

/// The address of a leaf or of an inner node, with a tag bit that says which. Not null.
pub(super) struct ChildAddress<N>(NonNull<()>, PhantomData<*const N>);

impl<N> Clone for ChildAddress<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for ChildAddress<N> {}

impl<N> PartialEq for ChildAddress<N> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<N> ChildAddress<N> {
    /// The address of a new leaf, which is about to be published.
    pub(super) fn of_new(leaf: NewTreeLeaf) -> Self {
        Self::of_leaf(leaf.publish())
    }

    /// The address of a leaf.
    pub(super) fn of_leaf(leaf: TreeLeaf<'_>) -> Self {
        ChildAddress(leaf.address(), PhantomData)
    }

    /// The address of a new inner node, which is about to be published.
    pub(super) fn of_node(node: Box<N>) -> Self {
        let node = NonNull::from(Box::leak(node)).cast::<()>();
        // A node's alignment leaves the low bit free.
        ChildAddress(node.map_addr(|a| a | INNER), PhantomData)
    }

    fn node(self) -> Option<NonNull<N>> {
        if self.0.addr().get() & INNER == 0 {
            return None;
        }
        NonNull::new(self.0.as_ptr().map_addr(|a| a & !INNER).cast())
    }

    /// The leaf or inner node at this address.
    ///
    /// # Safety
    /// 1. The address is set.
    /// 2. It was loaded from a reachable slot under a guard that lives for `'g`; or the index is
    ///    owned exclusively for `'g`.
    pub(super) unsafe fn child<'g>(self) -> TreeChild<'g, N> {
        match self.node() {
            // SAFETY: an inner node made by `of_node`, alive for `'g`.
            Some(node) => TreeChild::Node(unsafe { node.as_ref() }),
            // SAFETY: the bit of a node is clear, so it is a leaf, alive for `'g`.
            None => TreeChild::Leaf(unsafe { TreeLeaf::at(self.0) }),
        }
    }

    /// Frees an inner node when no reader can use it any more, but not what its slots lead to.
    ///
    /// # Safety
    /// It is an inner node that no slot leads to any more, and nobody retires it again.
    pub(super) unsafe fn retire_node(self, guard: &Guard) {
        if let Some(node) = self.node() {
            let address = node.as_ptr().expose_provenance();
            // SAFETY:
            // 1. a thread that pins from now on can't find the node;
            // 2. it came from a box;
            // 3. its address is sent, and nodes are `Send`.
            unsafe {
                guard.defer_unchecked(move || {
                    let node: *mut N = std::ptr::with_exposed_provenance_mut(address);
                    drop(Box::from_raw(node));
                });
            }
        }
    }

    /// Takes an inner node back, to free it.
    ///
    /// # Safety
    /// Nobody else can use it any more.
    pub(super) unsafe fn take_node(self) -> Option<Box<N>> {
        // SAFETY: it came from a box, and this is its only end.
        self.node()
            .map(|node| unsafe { Box::from_raw(node.as_ptr()) })
    }
}

/// An atomic address. It is null if there is no tail, and in a node that isn't published yet.
pub(super) struct ChildSlot<N>(AtomicPtr<()>, PhantomData<*const N>);

// SAFETY: a slot is an atomic address; leaves and nodes may be used by all threads.
unsafe impl<N: Send + Sync> Send for ChildSlot<N> {}
// SAFETY: as above.
unsafe impl<N: Send + Sync> Sync for ChildSlot<N> {}

impl<N> ChildSlot<N> {
    /// An unset slot.
    pub(super) fn unset() -> Self {
        ChildSlot(AtomicPtr::new(std::ptr::null_mut()), PhantomData)
    }

    pub(super) fn new(address: ChildAddress<N>) -> Self {
        ChildSlot(AtomicPtr::new(address.0.as_ptr()), PhantomData)
    }

    /// The address in the slot; `None` if it is unset.
    pub(super) fn address(&self) -> Option<ChildAddress<N>> {
        // Ordering: Acquire, pairs with `store`: what it leads to is seen as it was made.
        NonNull::new(self.0.load(Acquire)).map(|a| ChildAddress(a, PhantomData))
    }

    /// The leaf or inner node that the slot leads to.
    #[inline]
    pub(super) fn load<'g>(&self, _guard: &'g Guard) -> TreeChild<'g, N> {
        let address = self.address().expect("a published node is complete");
        // SAFETY: it is reachable now, under the guard, which is held for `'g`; what is unlinked is
        // retired through the epoch.
        unsafe { address.child() }
    }

    /// The same as `load`, and the address, from one load of the slot.
    pub(super) fn load_with_address<'g>(
        &self,
        _guard: &'g Guard,
    ) -> (ChildAddress<N>, TreeChild<'g, N>) {
        let address = self.address().expect("a published node is complete");
        // SAFETY: as in `load`.
        (address, unsafe { address.child() })
    }

    /// The leaf or inner node that the slot leads to, if it is set.
    #[inline]
    pub(super) fn load_if_set<'g>(&self, _guard: &'g Guard) -> Option<TreeChild<'g, N>> {
        let address = self.address()?;
        // SAFETY: as in `load`.
        Some(unsafe { address.child() })
    }

    /// Unsets the slot.
    pub(super) fn unset_now(&self) {
        // Ordering: Release, as in `store`.
        self.0.store(std::ptr::null_mut(), Release);
    }

    /// Publishes what is at the address.
    pub(super) fn store(&self, address: ChildAddress<N>) {
        // Ordering: Release, pairs with `address`.
        self.0.store(address.0.as_ptr(), Release);
    }
}

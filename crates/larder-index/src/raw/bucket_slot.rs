//! A place in the trie that leads to a leaf or to a node: one word that also says what an operation has to know before it gets there.
//!
//! ```text
//!  leaf   class (3 bits) | buckets (7 bits, 0: the head knows) | depth (6 bits) | address (48 bits, 64-byte steps)
//!  node   0 | address (48 bits, 64-byte steps) with, in its low bits, log2 of the number of slots (5 bits) and a 1
//! ```

use super::bucket_leaf::{Leaf, NewLeaf};
use super::memory;
use crate::hash::shape::Shape;
use crate::sync::atomic::{AtomicU64, Ordering::*};
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::{with_exposed_provenance_mut, NonNull};

/// Low bit of the word: set for a node.
const NODE: u64 = 1;
/// Bits of the address.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 64;
/// The most buckets that the word can tell.
const MOST_BUCKETS: u32 = 127;

/// Where a slot leads. Never 0 in a node that is published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Address(u64);

/// What a slot leads to.
pub(super) enum Child<'g> {
    Leaf(Leaf<'g>),
    Node(Node<'g>),
}

/// A node of the trie: 2^`bits` slots. Alive for `'g`.
#[derive(Clone, Copy)]
pub(super) struct Node<'g> {
    pub(super) slots: &'g [Slot],
    pub(super) bits: u32,
}

impl<'g> Node<'g> {
    /// The slot that the first bits of `rest` lead to.
    #[inline(always)]
    pub(super) fn slot(self, rest: u64) -> &'g Slot {
        let i = (rest >> (64 - self.bits)) as usize;
        debug_assert!(i < self.slots.len());
        // SAFETY: a number of `bits` bits is below 2^bits, which is how many slots there are; a node tells at least one bit apart.
        unsafe { self.slots.get_unchecked(i) }
    }
}

/// A node that nobody else can reach yet. Freed, without what its slots lead to, if it is never published.
pub(super) struct NewNode {
    slots: NonNull<Slot>,
    bits: u32,
    owned: PhantomData<Slot>,
}

/// An atomic address.
#[derive(Default)]
pub(super) struct Slot(AtomicU64);

/// The memory of a node.
fn layout(bits: u32) -> Layout {
    Layout::from_size_align(size_of::<Slot>() << bits, 64).expect("a node is small")
}

/// The address as a number, checked to leave the bits free that say more.
fn exposed<T>(pointer: NonNull<T>) -> u64 {
    let address = pointer.as_ptr().expose_provenance() as u64;
    assert!(
        address & !ADDRESS == 0,
        "memory lies beyond the 48 bits of an address"
    );
    address
}

impl Address {
    /// Publishes a new leaf: it is the slots' now.
    pub(super) fn of_new(leaf: NewLeaf) -> Self {
        Self::of_leaf(leaf.publish())
    }

    pub(super) fn of_leaf(leaf: Leaf<'_>) -> Self {
        let shape = leaf.shape();
        let buckets = if shape.buckets > MOST_BUCKETS {
            0
        } else {
            shape.buckets
        };
        let told = u64::from(shape.class) << 13 | u64::from(buckets) << 6 | u64::from(shape.depth);
        Address(exposed(leaf.address()) | told << ADDRESS_BITS)
    }

    /// Hands a node over to the slots.
    pub(super) fn of_node(node: NewNode) -> Self {
        let address = exposed(node.slots) | u64::from(node.bits) << 1 | NODE;
        std::mem::forget(node);
        Address(address)
    }

    #[inline]
    fn pointer<T>(self) -> *mut T {
        with_exposed_provenance_mut((self.0 & ADDRESS) as usize)
    }

    #[inline]
    fn bits(self) -> u32 {
        (self.0 >> 1) as u32 & 31
    }

    /// What lies there.
    ///
    /// # Safety
    /// It was reachable while the epoch was pinned, and stays pinned for `'g`; or the index is owned alone for `'g`.
    #[inline]
    pub(super) unsafe fn child<'g>(self) -> Child<'g> {
        if self.0 & NODE != 0 {
            // SAFETY: a node made by `NewNode`, with that many slots, alive for `'g`.
            let slots = unsafe { std::slice::from_raw_parts(self.pointer(), 1 << self.bits()) };
            return Child::Node(Node {
                slots,
                bits: self.bits(),
            });
        }
        let told = self.0 >> ADDRESS_BITS;
        let shape = Shape {
            buckets: (told >> 6) as u32 & MOST_BUCKETS,
            class: (told >> 13) as u8,
            depth: told as u8 & 63,
        };
        // SAFETY: 1. not null: a published slot is set; 2. without the mark it is a leaf of this shape, alive for `'g`.
        Child::Leaf(unsafe { Leaf::at(NonNull::new_unchecked(self.pointer()), shape) })
    }

    /// Frees a node when no reader can have it any more; not what its slots lead to. Returns its bytes of memory.
    ///
    /// # Safety
    /// It is a node that no slot leads to any more, and nobody retires it again.
    pub(super) unsafe fn retire_node(self, guard: &Guard) -> usize {
        // SAFETY: who pins from now on can't find the node.
        unsafe { guard.defer_unchecked(move || self.free_node()) };
        layout(self.bits()).size()
    }

    /// Frees a node now; not what its slots lead to.
    ///
    /// # Safety
    /// It is a node, and nobody can use it any more.
    pub(super) unsafe fn free_node(self) {
        // SAFETY: the memory came from `NewNode::unset` with this layout.
        unsafe { memory::release(NonNull::new_unchecked(self.pointer()), layout(self.bits())) };
    }
}

impl NewNode {
    /// A node whose slots lead nowhere yet.
    pub(super) fn unset(bits: u32) -> NewNode {
        NewNode {
            slots: memory::allocate_zeroed(layout(bits)).cast(),
            bits,
            owned: PhantomData,
        }
    }

    /// The node, to be filled.
    pub(super) fn node(&self) -> Node<'_> {
        // SAFETY: 2^bits slots, zeroed, which are valid slots; alive as long as `self`.
        let slots = unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), 1 << self.bits) };
        Node {
            slots,
            bits: self.bits,
        }
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        layout(self.bits).size()
    }
}

impl Drop for NewNode {
    fn drop(&mut self) {
        // SAFETY: nobody else could ever reach it; slots have nothing to drop.
        unsafe { memory::release(self.slots.cast(), layout(self.bits)) };
    }
}

impl Slot {
    pub(super) fn new(address: Address) -> Self {
        Slot(AtomicU64::new(address.0))
    }

    /// Where it leads.
    #[inline]
    pub(super) fn address(&self) -> Address {
        // Ordering: Acquire, pairs with `store`: what it leads to is seen as it was made.
        Address(self.0.load(Acquire))
    }

    /// What it leads to.
    #[inline(always)]
    pub(super) fn load<'g>(&self, _guard: &'g Guard) -> Child<'g> {
        // SAFETY: it is reachable now, under the guard, which is held for `'g`; what is unlinked is retired through the epoch. Only slots of
        // published nodes are loaded, and those are set.
        unsafe { self.address().child() }
    }

    /// Publishes.
    pub(super) fn store(&self, address: Address) {
        // Ordering: Release, pairs with `address`.
        self.0.store(address.0, Release);
    }
}

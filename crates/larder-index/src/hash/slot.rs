//! A slot of the trie, which leads to a leaf or to a node. It is one word, which also has what an
//! operation must know before it touches the leaf or node.
//!
//! ```text
//!          3 bits   7 bits                     6 bits                          48 bits
//!  leaf    class    buckets, or 0: see head    depth                           address
//!  node    0        0                          64 - the bits that it           address | 1
//!                                              branches on
//! ```
//!
//! Addresses are multiples of 64.

use crate::hash::leaf::{address_of, pointer_to, HashLeaf, NewHashLeaf, ADDRESS_BITS};
use crate::memory;
use crate::sync::atomic::{AtomicU64, Ordering::*};
use crossbeam_epoch::Guard;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Low bit of the word: set for a node.
const NODE: u64 = 1;

/// The value of a slot. 0 is unset, and only occurs in a node that isn't published yet, and in a
/// root that is replacing another one (see `trie::root`).
///
/// Invariant: the leaf or node is alive for `'g`. The address was loaded from a reachable slot
/// under a guard that lives for `'g`, or its target was made under that guard. What is unlinked
/// later is retired through the epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TrieAddress<'g>(u64, PhantomData<&'g TrieSlot>);

/// What a slot leads to.
pub(super) enum TrieChild<'g> {
    Leaf(HashLeaf<'g>),
    Node(TrieNode<'g>),
}

/// A node of the trie with 2^`bits` slots, which is alive for `'g`.
#[derive(Clone, Copy)]
pub(super) struct TrieNode<'g> {
    pub(super) slots: &'g [TrieSlot],
    pub(super) bits: u32,
}

/// A node that nobody else can reach yet. If it is never published, it is freed, but not what its
/// slots lead to.
pub(super) struct NewTrieNode {
    slots: NonNull<TrieSlot>,
    bits: u32,
    owned: PhantomData<TrieSlot>,
}

/// An atomic address.
#[derive(Default)]
pub(super) struct TrieSlot(AtomicU64);

/// The memory of a node.
fn layout(bits: u32) -> Layout {
    Layout::from_size_align(size_of::<TrieSlot>() << bits, 64).expect("a node is small")
}

impl<'g> TrieAddress<'g> {
    /// The value of an unset slot.
    pub(super) const UNSET: TrieAddress<'static> = TrieAddress(0, PhantomData);

    /// Whether it leads nowhere.
    #[inline]
    pub(super) fn is_unset(self) -> bool {
        self.0 == 0
    }

    /// The address of a new leaf, which is about to be published.
    pub(super) fn of_new(leaf: NewHashLeaf, _guard: &'g Guard) -> Self {
        TrieAddress::of_leaf(leaf.publish())
    }

    /// The address of a leaf.
    pub(super) fn of_leaf(leaf: HashLeaf<'g>) -> Self {
        TrieAddress(leaf.word(), PhantomData)
    }

    /// The address of a new node, which is about to be published.
    pub(super) fn of_node(node: NewTrieNode, _guard: &'g Guard) -> Self {
        let word = address_of(node.slots) | u64::from(64 - node.bits) << ADDRESS_BITS | NODE;
        std::mem::forget(node);
        TrieAddress(word, PhantomData)
    }

    #[inline]
    fn is_node(self) -> bool {
        self.0 & NODE != 0
    }

    #[inline]
    fn slots(self) -> *mut TrieSlot {
        pointer_to(self.0)
    }

    /// How far a hash must be shifted right to get the bits that the node branches on.
    #[inline]
    fn shift(self) -> u32 {
        (self.0 >> ADDRESS_BITS) as u32 & 63
    }

    fn bits(self) -> u32 {
        64 - self.shift()
    }

    /// The leaf or node at this address. `None` if it is unset.
    #[inline]
    pub(super) fn child(self) -> Option<TrieChild<'g>> {
        if !self.is_node() {
            return Some(TrieChild::Leaf(self.leaf()?));
        }
        let bits = self.bits();
        // SAFETY: a node made by `NewTrieNode`, with that many slots; alive for `'g` (see the
        // type).
        let slots = unsafe { std::slice::from_raw_parts(self.slots(), 1 << bits) };
        Some(TrieChild::Node(TrieNode { slots, bits }))
    }

    /// The leaf at an address that is not a node's. `None` if it is unset.
    #[inline]
    fn leaf(self) -> Option<HashLeaf<'g>> {
        debug_assert!(!self.is_node());
        // SAFETY: the bit of a node is clear and the address is set, so it is the word of a leaf,
        // alive for `'g` (see the type).
        (!self.is_unset()).then(|| unsafe { HashLeaf::at(self.0) })
    }

    /// Descends to the leaf of a hash. `None` if a slot on the path is unset.
    #[inline]
    pub(super) fn descend(self, hash: u64, guard: &'g Guard) -> Option<HashLeaf<'g>> {
        let (mut at, mut rest) = (self, hash);
        while at.is_node() {
            let shift = at.shift();
            let i = (rest >> shift) as usize;
            // SAFETY:
            // 1. The node is alive for `'g` (see the type).
            // 2. A number of `bits` bits, of which there is at least one, is below 2^bits, which is
            //    how many slots it has.
            at = unsafe { &*at.slots().add(i) }.address(guard);
            rest <<= shift.wrapping_neg() & 63;
        }
        at.leaf()
    }

    /// Frees a node when no reader can use it any more, but not what its slots lead to. Returns its
    /// memory.
    ///
    /// # Safety
    /// It is a node that no slot leads to any more, and nobody retires it again.
    pub(super) unsafe fn retire_node(self, guard: &Guard) -> usize {
        let (block, whole) = self.block();
        // SAFETY:
        // 1. a thread that pins from now on can't find the node;
        // 2. the memory was allocated with this layout (`block`);
        // 3. the closure has the address, not a reference: a plain pointer, so that leak checkers
        //    see that the block is reachable.
        unsafe { guard.defer_unchecked(move || memory::release_lazy(block, whole)) };
        whole.size()
    }

    /// Frees a node now, but not what its slots lead to.
    ///
    /// # Safety
    /// It is a node, and nobody can use it any more.
    pub(super) unsafe fn free_node(self) {
        let (block, whole) = self.block();
        // SAFETY: the memory came from `NewTrieNode::unset` with this layout.
        unsafe { memory::release_lazy(block, whole) };
    }

    /// A node's memory.
    fn block(self) -> (NonNull<u8>, Layout) {
        // SAFETY: the address of a node is not null.
        let block = unsafe { NonNull::new_unchecked(self.slots().cast()) };
        (block, layout(self.bits()))
    }
}

impl NewTrieNode {
    /// A node whose slots are all unset.
    pub(super) fn unset(bits: u32) -> NewTrieNode {
        NewTrieNode {
            slots: memory::allocate_lazily(layout(bits)).cast(),
            bits,
            owned: PhantomData,
        }
    }

    /// The node, to be filled.
    pub(super) fn node(&self) -> TrieNode<'_> {
        // SAFETY: 2^bits slots, zeroed, which are valid slots; alive as long as `self`.
        let slots = unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), 1 << self.bits) };
        TrieNode {
            slots,
            bits: self.bits,
        }
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        layout(self.bits).size()
    }
}

impl Drop for NewTrieNode {
    fn drop(&mut self) {
        // SAFETY: nobody else could ever reach it; slots have nothing to drop.
        unsafe { memory::release_lazy(self.slots.cast(), layout(self.bits)) };
    }
}

impl TrieSlot {
    /// A slot that leads to a leaf.
    pub(super) fn new(leaf: NewHashLeaf) -> Self {
        TrieSlot(AtomicU64::new(leaf.publish().word()))
    }

    /// Where it leads. The slot is reachable under the guard, and so is its target.
    #[inline]
    pub(super) fn address<'g>(&self, _guard: &'g Guard) -> TrieAddress<'g> {
        // Ordering: Acquire, pairs with `store`: what it leads to is seen as it was made.
        TrieAddress(self.0.load(Acquire), PhantomData)
    }

    /// Publishes.
    pub(super) fn store(&self, address: TrieAddress<'_>) {
        // Ordering: Release, pairs with `address`.
        self.0.store(address.0, Release);
    }
}

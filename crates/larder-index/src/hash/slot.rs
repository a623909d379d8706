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
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TrieAddress(u64);

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

impl TrieAddress {
    /// The value of an unset slot.
    pub(super) const UNSET: TrieAddress = TrieAddress(0);

    /// Whether it leads nowhere.
    #[inline]
    pub(super) fn is_unset(self) -> bool {
        self.0 == 0
    }

    /// The address of a new leaf, which is about to be published.
    pub(super) fn of_new(leaf: NewHashLeaf) -> Self {
        TrieAddress::of_leaf(leaf.publish())
    }

    /// The address of a leaf.
    pub(super) fn of_leaf(leaf: HashLeaf<'_>) -> Self {
        TrieAddress(leaf.word())
    }

    /// The address of a new node, which is about to be published.
    pub(super) fn of_node(node: NewTrieNode) -> Self {
        let word = address_of(node.slots) | u64::from(64 - node.bits) << ADDRESS_BITS | NODE;
        std::mem::forget(node);
        TrieAddress(word)
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

    /// The leaf or node at this address.
    ///
    /// # Safety
    /// 1. The address is set.
    /// 2. It was loaded from a reachable slot under a guard that lives for `'g`; or the index is
    ///    owned exclusively for `'g`.
    #[inline]
    pub(super) unsafe fn child<'g>(self) -> TrieChild<'g> {
        if self.is_node() {
            // SAFETY: a node made by `NewTrieNode`, with that many slots, alive for `'g`.
            let slots = unsafe { std::slice::from_raw_parts(self.slots(), 1 << self.bits()) };
            return TrieChild::Node(TrieNode {
                slots,
                bits: self.bits(),
            });
        }
        // SAFETY: the bit of a node is clear, so it is the word of a leaf, alive for `'g`.
        TrieChild::Leaf(unsafe { HashLeaf::at(self.0) })
    }

    /// Descends to the leaf of a hash. `None` if a slot on the path is unset.
    ///
    /// # Safety
    /// It is reachable under the guard.
    #[inline]
    pub(super) unsafe fn descend(self, hash: u64, _guard: &Guard) -> Option<HashLeaf<'_>> {
        let (mut at, mut rest) = (self, hash);
        while at.is_node() {
            let shift = at.shift();
            let i = (rest >> shift) as usize;
            // SAFETY:
            // 1. the node is reachable under the guard, says the caller, and by the same way what
            //    its slots lead to; what is unlinked is retired through the epoch;
            // 2. a number of `bits` bits, of which there is at least one, is below 2^bits, which is
            //    how many slots it has.
            at = unsafe { &*at.slots().add(i) }.address();
            rest <<= shift.wrapping_neg() & 63;
        }
        if at.is_unset() {
            return None;
        }
        // SAFETY: the bit of a node is clear and the address is set, so it is the word of a leaf;
        // reachable as above.
        Some(unsafe { HashLeaf::at(at.0) })
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
    pub(super) fn new(address: TrieAddress) -> Self {
        TrieSlot(AtomicU64::new(address.0))
    }

    /// Where it leads.
    #[inline]
    pub(super) fn address(&self) -> TrieAddress {
        // Ordering: Acquire, pairs with `store`: what it leads to is seen as it was made.
        TrieAddress(self.0.load(Acquire))
    }

    /// What it leads to.
    #[inline]
    pub(super) fn load<'g>(&self, _guard: &'g Guard) -> TrieChild<'g> {
        // SAFETY: it is reachable now, under the guard, which is held for `'g`; what is unlinked is
        // retired through the epoch. Only set slots are loaded so.
        unsafe { self.address().child() }
    }

    /// Publishes.
    pub(super) fn store(&self, address: TrieAddress) {
        // Ordering: Release, pairs with `address`.
        self.0.store(address.0, Release);
    }
}

//! The way to the leaves of the hash order: a trie over the bits of hashes.
//!
//! ```text
//!  root ─→ node ─┬─→ node ─┬─→ leaf 00000 0…   (depth 6)
//!                │         └─→ leaf 00000 1…   (depth 6: half the slots of its node lead to it)
//!                ├─→ leaf 00001               (depth 5)
//!                └─┬→ leaf 0001               (depth 4: two slots)
//!                  …
//! ```
//!
//! This is extendible hashing (Fagin, Nievergelt, Pippenger, Strong 1979) with the directory cut into nodes, so that it grows by a node
//! and never doubles. A leaf of depth D has all hashes with its D bits.
//!
//! Invariants:
//! 1. A node that begins at bit `a` tells apart the `b` bits from there. A leaf in it has a depth D of a+1 to a+b, and 2^(a+b-D) slots. Only in the root slot a leaf has depth 0.
//! 2. Slots that lead to a leaf are stored to only by the holder of its lock. While the lock is held nobody changes the way to the leaf:
//!    who replaces a node takes the locks of all leaves below it.
//! 3. A node that is published has all its slots set.

use super::bucket_leaf::{Leaf, Locked, NewLeaf};
use super::bucket_slot::{Address, Child, Node, Slot};
use crate::hash::shape::lead;
use crate::route::Shared;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::Range;

/// Bits that a node tells apart, but for a wide root.
pub(super) const BITS: u32 = 5;

/// The trie.
pub(crate) struct Trie {
    pub(super) root: Slot,
}

/// A node on the way to a leaf.
#[derive(Clone, Copy)]
pub(super) struct Step<'g> {
    pub(super) node: Node<'g>,
    /// The bit that it begins at.
    pub(super) at: u32,
}

impl<'g> Step<'g> {
    /// The bit that it ends before.
    pub(super) fn end(&self) -> u32 {
        self.at + self.node.bits
    }

    /// The slot that leads towards the hash.
    pub(super) fn slot(&self, hash: u64) -> &'g Slot {
        &self.node.slots[index(hash, self.at, self.node.bits)]
    }

    /// The slots of a leaf of this depth that has the hash.
    pub(super) fn slots(&self, hash: u64, depth: u8) -> Range<usize> {
        let count = 1 << (self.end() - u32::from(depth));
        let from = index(hash, self.at, self.node.bits) & !(count - 1);
        from..from + count
    }
}

/// The `bits` bits of the hash from bit `at`.
pub(super) fn index(hash: u64, at: u32, bits: u32) -> usize {
    (hash << at >> (64 - bits)) as usize
}

/// The nodes on the way to a leaf.
pub(super) type Path<'g> = SmallVec<[Step<'g>; 10]>;

impl Trie {
    /// A trie of one leaf.
    pub(crate) fn new(shared: &Shared, leaf: NewLeaf) -> Trie {
        shared.counters.leaf_came(leaf.memory());
        Trie {
            root: Slot::new(Address::of_new(leaf)),
        }
    }

    /// The leaf whose range has the hash. It may be obsolete: then ask again.
    #[inline(always)]
    pub(crate) fn find<'g>(&self, hash: u64, guard: &'g Guard) -> Leaf<'g> {
        // SAFETY: what the root leads to is reachable under the guard.
        unsafe { self.root.address().descend(hash, guard) }
    }

    /// The nodes on the way to a leaf whose lock the caller holds.
    pub(super) fn path<'g>(&self, hash: u64, guard: &'g Guard) -> Path<'g> {
        let mut path = Path::new();
        let (mut child, mut at) = (self.root.load(guard), 0);
        while let Child::Node(node) = child {
            let step = Step { node, at };
            child = step.slot(hash).load(guard);
            at += node.bits;
            path.push(step);
        }
        path
    }

    /// Puts `new`, of the same range, in the place of the leaf.
    pub(crate) fn replace(
        &self,
        shared: &Shared,
        leaf: Locked<'_>,
        hash: u64,
        new: NewLeaf,
        guard: &Guard,
    ) {
        let old = leaf.leaf();
        let path = self.path(hash, guard);
        shared.counters.leaf_came(new.memory());
        shared.counters.leaf_went(old.memory());
        leaf.obsolete();
        self.point(&path, hash, old.shape().depth, Address::of_new(new));
        // SAFETY: obsolete, and all its slots lead elsewhere now; only the holder of its lock gets here.
        unsafe { old.retire(guard) };
    }

    /// Stores `address` in all slots of a leaf of this depth.
    pub(super) fn point(&self, path: &[Step<'_>], hash: u64, depth: u8, address: Address) {
        match path.last() {
            None => self.root.store(address),
            Some(step) => {
                for slot in &step.node.slots[step.slots(hash, depth)] {
                    slot.store(address);
                }
            }
        }
    }

    /// The leaf that differs from this one in the last bit of its depth alone, locked; None if there is none or others are at work there.
    pub(crate) fn buddy<'g>(
        &self,
        leaf: Leaf<'_>,
        hash: u64,
        guard: &'g Guard,
    ) -> Option<Locked<'g>> {
        let depth = leaf.shape().depth;
        if depth == 0 {
            return None;
        }
        let other = lead(hash, depth) ^ 1 << (64 - depth);
        let buddy = self.find(other, guard);
        if buddy.shape().depth != depth {
            return None;
        }
        buddy.try_lock().ok().flatten()
    }

    /// Puts `new`, of one bit less of depth, in the place of two buddies. A node that has nothing else goes.
    pub(crate) fn unite(
        &self,
        shared: &Shared,
        buddies: [Locked<'_>; 2],
        hash: u64,
        new: NewLeaf,
        guard: &Guard,
    ) {
        let old = buddies.each_ref().map(|b| b.leaf());
        let depth = new.shape().depth;
        let mut path = self.path(hash, guard);
        shared.counters.leaf_came(new.memory());
        shared.counters.merged();
        for buddy in buddies {
            shared.counters.leaf_went(buddy.leaf().memory());
            buddy.obsolete();
        }
        let emptied = path.last().is_some_and(|step| step.at == u32::from(depth));
        if emptied {
            path.pop();
            let above = match path.last() {
                None => &self.root,
                Some(step) => step.slot(hash),
            };
            let node = above.address();
            above.store(Address::of_new(new));
            // SAFETY: the slot that led to the node leads elsewhere now; both locks were ours, and cover all of it.
            let bytes = unsafe { node.retire_node(guard) };
            shared.counters.node_went(bytes);
        } else {
            self.point(&path, hash, depth, Address::of_new(new));
        }
        for leaf in old {
            // SAFETY: obsolete, and unlinked above; only the holder of both locks gets here.
            unsafe { leaf.retire(guard) };
        }
    }

    /// Levels above the leaves, on the way to the first.
    pub(crate) fn depth(&self, guard: &Guard) -> usize {
        self.path(0, guard).len()
    }
}

impl Drop for Trie {
    fn drop(&mut self) {
        let mut todo: Vec<Address> = vec![self.root.address()];
        while let Some(address) = todo.pop() {
            // SAFETY: the trie is dropped: nobody else can use it.
            match unsafe { address.child() } {
                // SAFETY: as above; each leaf is met once, see below.
                Child::Leaf(leaf) => unsafe { leaf.free_all() },
                Child::Node(node) => {
                    let from = todo.len();
                    todo.extend(node.slots.iter().map(Slot::address));
                    // The slots of one leaf are neighbours.
                    let mut kept = from;
                    for i in from..todo.len() {
                        if i == from || todo[i] != todo[kept - 1] {
                            todo[kept] = todo[i];
                            kept += 1;
                        }
                    }
                    todo.truncate(kept);
                    // SAFETY: as above; its slots are noted.
                    unsafe { address.free_node() };
                }
            }
        }
    }
}

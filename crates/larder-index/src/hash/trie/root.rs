//! How the root of the trie is as wide as the table is large, so that most leaves are one step
//! away.
//!
//! ```text
//!  old root, 2 bits        new root, 3 bits
//!  [ A | B | n | D ]       [ A | A | B | B | - | - | - | - ]      the first half has moved
//!            ╰ node: C₀ C₁                   ╰ not set: the old root knows
//! ```
//!
//! When leaves are many for its slots the root is replaced by one of twice as many, and by one of
//! half as many when they are few. That is not done at once: the new root's slots begin unset, and
//! a thread that finds a slot unset asks the old root. Each later change of leaves moves some
//! slots, until all are, and the old root goes. So no operation pays for more than [`AT_ONCE`]
//! slots.
//!
//! 1. Begin: the old root is noted, then the new one published, under the lock of a leaf: a trie of
//!    two leaves can't become one meanwhile.
//! 2. Move a slot: lock its leaf, or, if it leads to a node, a leaf below each of the node's slots.
//!    Nobody changes the path to a locked leaf, nor a node above it. Then the new slots are set. A
//!    leaf that has several slots is moved with all of them. Where the root becomes wider a node
//!    loses its first bit: each half takes its place, as a node of one bit less or as what it leads
//!    to. Where the root becomes narrower two slots that differ become a node of one bit.
//! 3. End: the old root is forgotten, then retired.
//!
//! Locks are only tried for: a thread that finds one taken leaves the rest to the next.
//!
//! A leaf that two became, of which one had moved and the other had not, goes to the new root
//! (`Trie::merge`).
//!
//! Invariant: what the old root says of a range counts as long as the new root's slots of that
//! range are unset. Those of a leaf are set together, under its lock; so are those of a node's
//! range.

use crate::hash::leaf::LockedHashLeaf;
use crate::hash::slot::{NewTrieNode, TrieAddress, TrieChild, TrieNode, TrieSlot};
use crate::hash::trie::Trie;
use crate::shared::Shared;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// Slots of the old root that one change of leaves moves.
const AT_ONCE: usize = 64;
/// The most bits of a root.
const MOST_BITS: u32 = 26;

/// How far the change of the root has come: the next slot of the old root if the new is wider, of
/// the new if it is narrower.
#[derive(Debug, Default)]
pub(super) struct Moving {
    next: usize,
}

/// Some leaves, locked.
type LockedLeaves<'g> = SmallVec<[LockedHashLeaf<'g>; 8]>;

/// Locks the first leaf below, if it is free.
fn hold<'g>(address: TrieAddress, held: &mut LockedLeaves<'g>, guard: &'g Guard) -> bool {
    // SAFETY: it was loaded from a slot that is reachable under the guard.
    let leaf = unsafe { address.descend(0, guard) };
    let locked = leaf.and_then(|leaf| leaf.try_lock().ok().flatten());
    locked.map(|locked| held.push(locked)).is_some()
}

/// As `hold`, for each of what some slots lead to.
fn hold_all<'g>(slots: &[TrieAddress], held: &mut LockedLeaves<'g>, guard: &'g Guard) -> bool {
    // The slots of one leaf are neighbours.
    let mut last = None;
    slots.iter().all(|&address| {
        let known = last == Some(address);
        last = Some(address);
        known || hold(address, held, guard)
    })
}

fn addresses(slots: &[TrieSlot]) -> SmallVec<[TrieAddress; 32]> {
    slots.iter().map(TrieSlot::address).collect()
}

/// What takes the place of some slots in a root: the only address among them, or a node of so many
/// bits.
fn joined(shared: &Shared, slots: &[TrieAddress], bits: u32) -> TrieAddress {
    if slots.iter().all(|&address| address == slots[0]) {
        return slots[0];
    }
    let new = NewTrieNode::unset(bits);
    for (slot, &address) in new.node().slots.iter().zip(slots) {
        slot.store(address);
    }
    shared.counters.node_came(new.memory());
    TrieAddress::of_node(new)
}

impl Trie {
    /// Goes on with a change of the root, or begins one if it is due. The caller holds no lock.
    #[inline]
    pub(super) fn adapt(&self, shared: &Shared, guard: &Guard) {
        let TrieChild::Node(root) = self.root.load(guard) else {
            return;
        };
        if self.old.address().is_unset() && self.wanted_bits(root, shared).is_none() {
            return;
        }
        // One thread at a time; others have better things to do than to wait.
        let Some(mut moving) = self.moving.try_lock() else {
            return;
        };
        if self.old.address().is_unset() && !self.begin(&mut moving, shared, guard) {
            return;
        }
        self.go_on(&mut moving, shared, guard);
    }

    /// The bits that the root should have, if it should have others.
    fn wanted_bits(&self, root: TrieNode<'_>, shared: &Shared) -> Option<u32> {
        let (leaves, slots) = (shared.counters.leaves(), root.slots.len());
        // Twice as many slots from 1 1/3 slots a leaf on, half as many from 5 1/3 on: between the
        // two lies a factor of four, so that one change does not call for the other.
        if leaves * 4 >= slots * 3 && root.bits < MOST_BITS {
            return Some(root.bits + 1);
        }
        let few = leaves * 16 <= slots * 3 && root.bits > self.first_bits;
        few.then(|| root.bits - 1)
    }

    /// Step 1. Whether it was done.
    fn begin(&self, moving: &mut Moving, shared: &Shared, guard: &Guard) -> bool {
        let mut held = LockedLeaves::new();
        let address = self.root.address();
        // The lock of a leaf below keeps the trie from becoming one leaf: that takes both its
        // leaves. The address is looked at again, as the root may have changed before the lock.
        if !hold(address, &mut held, guard) || self.root.address() != address {
            return false;
        }
        let TrieChild::Node(root) = self.root.load(guard) else {
            return false;
        };
        let Some(bits) = self.wanted_bits(root, shared) else {
            return false;
        };
        let new = NewTrieNode::unset(bits);
        shared.counters.node_came(new.memory());
        moving.next = 0;
        // In this order: a thread that finds a slot of the new root unset must find the old root.
        self.old.store(address);
        self.root.store(TrieAddress::of_node(new));
        true
    }

    /// Steps 2 and 3.
    fn go_on(&self, moving: &mut Moving, shared: &Shared, guard: &Guard) {
        let (TrieChild::Node(old), TrieChild::Node(new)) =
            (self.old.load(guard), self.root.load(guard))
        else {
            return;
        };
        // Slots are moved in steps of one slot of the narrower root: two of the wider.
        let (wider, end) = (new.bits > old.bits, old.slots.len().min(new.slots.len()));
        let stop = moving.next.saturating_add(AT_ONCE).min(end);
        while moving.next < stop {
            let at = moving.next;
            let slots = if wider {
                2 * at..2 * at + 2
            } else {
                at..at + 1
            };
            let slots = &new.slots[slots];
            let unset = slots
                .iter()
                .filter(|slot| slot.address().is_unset())
                .count();
            let next = match unset {
                // A leaf that moved with several slots, or that two became of which one had moved,
                // is there already.
                0 => Some(at + 1),
                _ if unset < slots.len() => None, // or is on its way there
                _ if wider => widen(shared, (old, new), at, guard),
                _ => narrow(shared, (old, new), at, guard),
            };
            match next {
                Some(next) => moving.next = next,
                // A leaf is locked: the next change of leaves tries again from here.
                None => return,
            }
        }
        // Step 3.
        if moving.next >= end {
            let address = self.old.address();
            self.old.store(TrieAddress::UNSET);
            // SAFETY: all slots of the new root are set: no thread that pins from now on gets to
            // the old one. It is retired here alone, under `moving`.
            let bytes = unsafe { address.retire_node(guard) };
            shared.counters.node_went(bytes);
        }
    }
}

/// What the slots of a node, and those of a root that it takes the place of, lead to: each leaf and
/// node once.
pub(super) fn parts(node: TrieNode<'_>, old: Option<TrieNode<'_>>) -> Vec<TrieAddress> {
    let mut parts = Vec::new();
    // The slots of one leaf are neighbours.
    let mut add = |address: TrieAddress| {
        if parts.last() != Some(&address) {
            parts.push(address);
        }
    };
    // Slots that were not moved yet are those of the old root.
    for (i, slot) in node.slots.iter().enumerate() {
        match old {
            Some(old) if slot.address().is_unset() => {
                let wider = node.bits > old.bits;
                let range = if wider {
                    i / 2..i / 2 + 1
                } else {
                    2 * i..2 * i + 2
                };
                let slots = &old.slots[range];
                slots.iter().for_each(|slot| add(slot.address()));
            }
            _ => add(slot.address()),
        }
    }
    parts
}

/// Moves a leaf, which is locked, to its slots of the new root. The first slot behind it in the
/// root that is narrower, which has so many bits.
fn move_leaf(
    leaf: &LockedHashLeaf<'_>,
    address: TrieAddress,
    hash: u64,
    new: TrieNode<'_>,
    bits: u32,
) -> usize {
    let depth = u32::from(leaf.leaf().shape().depth);
    let slots = |bits: u32| {
        // A leaf in a root is no deeper than the root reaches.
        let count = 1usize << (bits - depth);
        let from = (hash >> (64 - bits)) as usize & !(count - 1);
        from..from + count
    };
    for slot in &new.slots[slots(new.bits)] {
        slot.store(address);
    }
    slots(bits).end
}

/// Step 2 for slot `at` of an old root that is narrower. The first slot behind those that were
/// moved.
fn widen(
    shared: &Shared,
    (old, new): (TrieNode<'_>, TrieNode<'_>),
    at: usize,
    guard: &Guard,
) -> Option<usize> {
    let address = old.slots[at].address();
    let mut held = LockedLeaves::new();
    // SAFETY: it was loaded from a slot of the old root, which is reachable under the guard.
    let TrieChild::Node(node) = (unsafe { address.child() }) else {
        // The slot leads to a leaf: with its lock its slots are ours.
        if !hold(address, &mut held, guard) {
            return None;
        }
        let hash = (at as u64) << (64 - old.bits);
        return Some(move_leaf(&held[0], address, hash, new, old.bits));
    };
    let slots = addresses(node.slots);
    // What they lead to may have changed before the locks were taken; then one of them was of an
    // obsolete leaf, and not taken.
    if !hold_all(&slots, &mut held, guard) || addresses(node.slots) != slots {
        return None;
    }
    if old.slots[at].address() != address {
        return None;
    }
    // Nobody changes the node now. It loses its first bit, which the wider root has: its lower half
    // goes to one slot, its upper half to the next.
    let (low, high) = slots.split_at(slots.len() / 2);
    for (i, half) in [low, high].into_iter().enumerate() {
        new.slots[2 * at + i].store(joined(shared, half, node.bits - 1));
    }
    // SAFETY: no thread that pins from now on gets to it: all slots of its range in the new root
    // are set. Only the holder of `moving` gets here.
    let bytes = unsafe { address.retire_node(guard) };
    shared.counters.node_went(bytes);
    Some(at + 1)
}

/// Step 2 for slot `at` of a new root that is narrower. The first slot behind those that were set.
fn narrow(
    shared: &Shared,
    (old, new): (TrieNode<'_>, TrieNode<'_>),
    at: usize,
    guard: &Guard,
) -> Option<usize> {
    let slots = &old.slots[2 * at..2 * at + 2];
    let pair = addresses(slots);
    let mut held = LockedLeaves::new();
    if !hold_all(&pair, &mut held, guard) || addresses(slots) != pair {
        return None;
    }
    if pair[0] == pair[1] {
        // A node has one slot: it is a leaf.
        let hash = (at as u64) << (64 - new.bits);
        return Some(move_leaf(&held[0], pair[0], hash, new, new.bits));
    }
    // Two that differ become a node of one bit, below one slot.
    new.slots[at].store(joined(shared, &pair, 1));
    Some(at + 1)
}

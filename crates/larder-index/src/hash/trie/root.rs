//! Resizing the root of the trie. The root has about as many slots as there are leaves, so that
//! most leaves are one step away.
//!
//! ```text
//!  old root, 2 bits        new root, 3 bits
//!  [ A | B | n | D ]       [ A | A | B | B | - | - | - | - ]      the first half has moved
//!            ╰ node: C₀ C₁                   ╰ not set: the old root knows
//! ```
//!
//! If there are many leaves for its slots, the root is replaced by one with twice as many slots; if
//! there are few, by one with half as many. This is done incrementally, as in a hash table that is
//! resized. The slots of the new root begin unset, and a thread that finds a slot unset uses the
//! old root. Each later change of leaves moves some slots, until all have been moved, and the old
//! root is retired. So no operation moves more than [`AT_ONCE`] slots.
//!
//! 1. *Begin*: store the old root to `Trie::old`, then publish the new root. This is done under the
//!    lock of a leaf, so that a trie of two leaves can't become a single leaf meanwhile.
//! 2. *Move a slot*: lock its leaf. If it leads to a node, lock a leaf below each of the node's
//!    slots. Nobody changes the path to a locked leaf, or a node above it. Then set the new slots.
//!    A leaf to which several slots lead is moved with all of them. If the root becomes wider, a
//!    node loses its first bit: each half of it becomes a node with one bit less, or, if all of its
//!    slots are equal, what they lead to. If the root becomes narrower, two slots that differ
//!    become a node of one bit.
//! 3. *End*: unset `Trie::old`, then retire the old root.
//!
//! Locks are only tried. A thread that finds a lock held leaves the rest to a later change.
//!
//! If two buddies merge, of which only one has been moved, the new leaf goes to the new root
//! (`Trie::merge`).
//!
//! Invariant: as long as the new root's slots of a range are unset, the old root has the range. The
//! new slots of a leaf are all set under its lock, and so are those of a node's range.

use crate::hash::leaf::LockedHashLeaf;
use crate::hash::slot::{NewTrieNode, TrieAddress, TrieChild, TrieNode, TrieSlot};
use crate::hash::trie::Trie;
use crate::shared::Shared;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// The number of slots that one change of leaves moves.
const AT_ONCE: usize = 64;
/// The most bits that a root branches on.
const MOST_BITS: u32 = 26;

/// The progress of a resize: the number of the next slot. It is a slot of the old root if the new
/// root is wider, and of the new root if that is narrower.
#[derive(Debug, Default)]
pub(super) struct RootMove {
    next: usize,
}

/// Some leaves, locked.
type LockedLeaves<'g> = SmallVec<[LockedHashLeaf<'g>; 8]>;

/// Tries to lock the first leaf below an address. Returns whether it did.
fn hold<'g>(address: TrieAddress<'g>, held: &mut LockedLeaves<'g>, guard: &'g Guard) -> bool {
    let leaf = address.descend(0, guard);
    let locked = leaf.and_then(|leaf| leaf.try_lock().ok().flatten());
    locked.map(|locked| held.push(locked)).is_some()
}

/// Tries to lock a leaf below each of some slots. Returns whether it has locked all of them.
fn hold_all<'g>(slots: &[TrieAddress<'g>], held: &mut LockedLeaves<'g>, guard: &'g Guard) -> bool {
    // The slots of one leaf are neighbours. Lock each leaf once.
    let mut last = None;
    slots.iter().all(|&address| {
        let known = last == Some(address);
        last = Some(address);
        known || hold(address, held, guard)
    })
}

fn addresses<'g>(slots: &[TrieSlot], guard: &'g Guard) -> SmallVec<[TrieAddress<'g>; 32]> {
    slots.iter().map(|slot| slot.address(guard)).collect()
}

/// The address that replaces some slots: their common address if all are equal, otherwise a new
/// node that has them.
fn joined<'g>(
    shared: &Shared,
    slots: &[TrieAddress<'g>],
    bits: u32,
    guard: &'g Guard,
) -> TrieAddress<'g> {
    // Slots that are all equal need no node.
    if slots.iter().all(|&address| address == slots[0]) {
        return slots[0];
    }
    // Nobody can reach the node before the caller stores its address.
    let new = NewTrieNode::unset(bits);
    for (slot, &address) in new.node().slots.iter().zip(slots) {
        slot.store(address);
    }
    shared.counters.add_node(new.memory());
    TrieAddress::of_node(new, guard)
}

impl Trie {
    /// Continues a resize of the root, or begins one if it is due. The caller holds no lock.
    #[inline]
    pub(super) fn adapt(&self, shared: &Shared, guard: &Guard) {
        // A trie of one leaf has no root that could be resized.
        let Some(TrieChild::Node(root)) = self.root.address(guard).child() else {
            return;
        };
        // Neither is a resize in progress, nor is one due. This is the usual case.
        if self.old.address(guard).is_unset() && self.wanted_bits(root, shared).is_none() {
            return;
        }
        // One thread at a time moves slots. Others don't wait for it.
        let Some(mut moving) = self.moving.try_lock() else {
            return;
        };
        // Check again under the mutex: another thread may have begun or ended a resize.
        if self.old.address(guard).is_unset() && !self.begin(&mut moving, shared, guard) {
            return;
        }
        self.go_on(&mut moving, shared, guard);
    }

    /// The number of bits that the root should have, if that isn't what it has.
    fn wanted_bits(&self, root: TrieNode<'_>, shared: &Shared) -> Option<u32> {
        let (leaves, slots) = (shared.counters.leaves(), root.slots.len());
        // Double the slots if there are at most 1⅓ per leaf, halve them if there are at least 5⅓.
        // The factor of four between the two prevents that one resize causes the opposite one.
        if leaves * 4 >= slots * 3 && root.bits < MOST_BITS {
            return Some(root.bits + 1);
        }
        let few = leaves * 16 <= slots * 3 && root.bits > self.first_bits;
        few.then(|| root.bits - 1)
    }

    /// Step 1. Returns whether a resize has begun.
    fn begin(&self, moving: &mut RootMove, shared: &Shared, guard: &Guard) -> bool {
        let mut held = LockedLeaves::new();
        let address = self.root.address(guard);
        // Lock a leaf. To turn the trie into a single leaf, another thread would need this lock,
        // too. The root may have changed before the lock was taken, so load it again.
        if !hold(address, &mut held, guard) || self.root.address(guard) != address {
            return false;
        }
        let Some(TrieChild::Node(root)) = self.root.address(guard).child() else {
            return false;
        };
        let Some(bits) = self.wanted_bits(root, shared) else {
            return false;
        };
        let new = NewTrieNode::unset(bits);
        shared.counters.add_node(new.memory());
        moving.next = 0;
        // Store the old root first: a thread that finds a slot of the new root unset must find the
        // old root.
        self.old.store(address);
        self.root.store(TrieAddress::of_node(new, guard));
        true
    }

    /// Steps 2 and 3.
    fn go_on(&self, moving: &mut RootMove, shared: &Shared, guard: &Guard) {
        let [old, new] = [&self.old, &self.root].map(|slot| slot.address(guard).child());
        let (Some(TrieChild::Node(old)), Some(TrieChild::Node(new))) = (old, new) else {
            return;
        };
        // Step 2. One step moves one slot of the narrower root, and two of the wider one.
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
                .filter(|slot| slot.address(guard).is_unset())
                .count();
            let next = match unset {
                // All are set: the slots were moved together with earlier ones of the same leaf, or
                // by a merge of two buddies.
                0 => Some(at + 1),
                // Another thread is storing a leaf to these slots now.
                _ if unset < slots.len() => None,
                _ if wider => widen(shared, old, new, at, guard),
                _ => narrow(shared, old, new, at, guard),
            };
            match next {
                Some(next) => moving.next = next,
                // A lock is held. The next change of leaves continues here.
                None => return,
            }
        }
        // Step 3: all slots have been moved.
        if moving.next >= end {
            let address = self.old.address(guard);
            self.old.store(TrieAddress::UNSET);
            // SAFETY: all slots of the new root are set: no thread that pins from now on gets to
            // the old one. It is retired here alone, under `moving`.
            let bytes = unsafe { address.retire_node(guard) };
            shared.counters.remove_node(bytes);
        }
    }
}

/// The leaves and nodes that the slots of a node lead to, each once. If the node is a root that is
/// replacing `old`, includes those that haven't been moved yet.
pub(super) fn parts<'g>(
    node: TrieNode<'_>,
    old: Option<TrieNode<'_>>,
    guard: &'g Guard,
) -> Vec<TrieAddress<'g>> {
    let mut parts = Vec::new();
    // The slots of one leaf are neighbours.
    let mut add = |address: TrieAddress<'g>| {
        if parts.last() != Some(&address) {
            parts.push(address);
        }
    };
    // For a slot that hasn't been moved yet, use the slots of the old root.
    for (i, slot) in node.slots.iter().enumerate() {
        match old {
            Some(old) if slot.address(guard).is_unset() => {
                // Two slots of a wider root are one of the old root, and one of a narrower root is
                // two.
                let wider = node.bits > old.bits;
                let range = if wider {
                    i / 2..i / 2 + 1
                } else {
                    2 * i..2 * i + 2
                };
                let slots = &old.slots[range];
                slots.iter().for_each(|slot| add(slot.address(guard)));
            }
            _ => add(slot.address(guard)),
        }
    }
    parts
}

/// Moves a locked leaf to its slots of the new root. Returns the first slot after it in the
/// narrower root, which has this number of bits.
fn move_leaf(
    leaf: &LockedHashLeaf<'_>,
    address: TrieAddress<'_>,
    hash: u64,
    new: TrieNode<'_>,
    bits: u32,
) -> usize {
    let depth = u32::from(leaf.leaf().shape().depth);
    // The slots of the leaf in a root with this number of bits: those whose first `depth` bits are
    // the leaf's prefix.
    let slots = |bits: u32| {
        // A leaf in a root isn't deeper than the root reaches, so the shift is valid.
        let count = 1usize << (bits - depth);
        let from = (hash >> (64 - bits)) as usize & !(count - 1);
        from..from + count
    };
    for slot in &new.slots[slots(new.bits)] {
        slot.store(address);
    }
    slots(bits).end
}

/// Step 2 if the root becomes wider, for slot `at` of the old root. Returns the first slot after
/// those that were moved, or `None` if a lock is held.
fn widen(
    shared: &Shared,
    old: TrieNode<'_>,
    new: TrieNode<'_>,
    at: usize,
    guard: &Guard,
) -> Option<usize> {
    let address = old.slots[at].address(guard);
    let mut held = LockedLeaves::new();
    let Some(TrieChild::Node(node)) = address.child() else {
        // The slot leads to a leaf. Under its lock, only we store to its slots.
        if !hold(address, &mut held, guard) {
            return None;
        }
        let hash = (at as u64) << (64 - old.bits);
        return Some(move_leaf(&held[0], address, hash, new, old.bits));
    };
    let slots = addresses(node.slots, guard);
    // Lock the leaves. If a slot has changed before its leaf was locked, give up.
    if !hold_all(&slots, &mut held, guard) || addresses(node.slots, guard) != slots {
        return None;
    }
    if old.slots[at].address(guard) != address {
        return None;
    }
    // Nobody changes the node while we hold these locks. The wider root branches on the node's
    // first bit, so the node's lower half goes to one slot, and its upper half to the next.
    let (low, high) = slots.split_at(slots.len() / 2);
    for (i, half) in [low, high].into_iter().enumerate() {
        new.slots[2 * at + i].store(joined(shared, half, node.bits - 1, guard));
    }
    // SAFETY: no thread that pins from now on gets to it: all slots of its range in the new root
    // are set. Only the holder of `moving` gets here.
    let bytes = unsafe { address.retire_node(guard) };
    shared.counters.remove_node(bytes);
    Some(at + 1)
}

/// Step 2 if the root becomes narrower, for slot `at` of the new root. Returns the first slot
/// after those that were set, or `None` if a lock is held.
fn narrow(
    shared: &Shared,
    old: TrieNode<'_>,
    new: TrieNode<'_>,
    at: usize,
    guard: &Guard,
) -> Option<usize> {
    let slots = &old.slots[2 * at..2 * at + 2];
    // Both old slots become one. The leaves below them are locked, so neither slot changes while
    // the new one is set.
    let pair = addresses(slots, guard);
    let mut held = LockedLeaves::new();
    if !hold_all(&pair, &mut held, guard) || addresses(slots, guard) != pair {
        return None;
    }
    if pair[0] == pair[1] {
        // Only a leaf has several slots.
        let hash = (at as u64) << (64 - new.bits);
        return Some(move_leaf(&held[0], pair[0], hash, new, new.bits));
    }
    // The two slots differ: put a node of one bit below the new slot.
    new.slots[at].store(joined(shared, &pair, 1, guard));
    Some(at + 1)
}

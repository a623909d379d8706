//! The directory of the hash order: a trie over the bits of hashes that leads to the leaves.
//!
//! ```text
//!  root ─→ node ─┬─→ node ─┬─→ leaf 00000 0…   (depth 6)
//!                │         └─→ leaf 00000 1…   (depth 6: half the slots of its node lead to it)
//!                ├─→ leaf 00001               (depth 5)
//!                └─┬→ leaf 0001               (depth 4: two slots)
//!                  …
//! ```
//!
//! This is extendible hashing (Fagin, Nievergelt, Pippenger, Strong 1979) with the directory cut
//! into nodes. The root doubles incrementally (`root`), and nodes below it grow one at a time. A
//! leaf of depth D covers all hashes that begin with its D bits.
//!
//! The root has 1⅓ to 5⅓ slots for each leaf, so most leaves are one step away.
//!
//! Invariants:
//! * **H7** A node that begins at bit `a` branches on `b` bits from there. A leaf in it has a depth
//!   D between a+1 and a+b, and 2^(a+b-D) slots lead to it. A leaf of depth 0 is the root itself.
//! * **H8** Only the holder of a leaf's lock stores to the slots that lead to the leaf, or are
//!   about to. (A new leaf is locked until all its slots lead to it: I3.) While a leaf's lock is
//!   held, nobody changes the path to the leaf: to replace a node, a thread locks all leaves below
//!   it.
//! * **H9** All slots of a published node are set, except in a new root that is replacing the old
//!   one.

mod root;
pub(super) mod split;

use crate::config::LeafConfig;
use crate::hash::leaf::{HashLeaf, LockedHashLeaf, NewHashLeaf};
use crate::hash::shape::prefix;
use crate::hash::slot::{TrieAddress, TrieChild, TrieNode, TrieSlot};
use crate::hash::trie::root::{parts, RootMove};
use crate::shared::Shared;
use crate::sync::Mutex;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::Range;

/// The trie.
pub(crate) struct Trie {
    pub(super) root: TrieSlot,
    /// The previous root, while its slots are being moved to the new one.
    pub(super) old: TrieSlot,
    moving: Mutex<RootMove>,
    /// The least number of bits that the root branches on.
    pub(super) first_bits: u32,
}

/// A node on the path to a leaf.
#[derive(Clone, Copy)]
pub(super) struct TriePathNode<'g> {
    pub(super) node: TrieNode<'g>,
    /// The first bit that it branches on.
    pub(super) at: u32,
}

impl<'g> TriePathNode<'g> {
    /// The bit after the last one that it branches on.
    pub(super) fn end(&self) -> u32 {
        self.at + self.node.bits
    }

    /// The slot that leads towards the hash.
    pub(super) fn slot(&self, hash: u64) -> &'g TrieSlot {
        &self.node.slots[index(hash, self.at, self.node.bits)]
    }

    /// The slots that lead to the leaf of this depth whose range has the hash.
    pub(super) fn slots(&self, hash: u64, depth: u8) -> Range<usize> {
        let count = 1 << (self.end() - u32::from(depth));
        let from = index(hash, self.at, self.node.bits) & !(count - 1);
        from..from + count
    }

    /// Stores a leaf, whose range has the hash, to all its slots of the node, then unlocks it.
    ///
    /// If it were unlocked earlier, another thread could replace the leaf, and our remaining stores
    /// would restore a stale address (`nobody_changes_the_path_to_a_new_leaf`).
    pub(super) fn publish(&self, hash: u64, leaf: LockedHashLeaf<'_>) {
        let address = TrieAddress::of_leaf(leaf.leaf());
        for slot in &self.node.slots[self.slots(hash, leaf.leaf().shape().depth)] {
            slot.store(address);
        }
        // Dropping `leaf` unlocks it: all of its slots lead to it now.
    }
}

/// The `bits` bits of the hash from bit `at`.
pub(super) fn index(hash: u64, at: u32, bits: u32) -> usize {
    (hash << at >> (64 - bits)) as usize
}

/// The nodes on the path from a root to a leaf. `None` if a slot on the path is unset.
fn path_from<'g>(root: &TrieSlot, hash: u64, guard: &'g Guard) -> Option<TriePath<'g>> {
    let (mut path, mut at) = (TriePath::new(), 0);
    let mut address = root.address(guard);
    loop {
        // Only a slot of a new root can be unset. The old root still has this range.
        let TrieChild::Node(node) = address.child()? else {
            return Some(path);
        };
        let parent = TriePathNode { node, at };
        address = parent.slot(hash).address(guard);
        at += node.bits;
        path.push(parent);
    }
}

/// The nodes on the path to a leaf.
pub(super) type TriePath<'g> = SmallVec<[TriePathNode<'g>; 10]>;

impl Trie {
    /// A trie of one leaf.
    pub(crate) fn new(shared: &Shared, leaf: NewHashLeaf) -> Trie {
        shared.counters.add_leaf(leaf.memory());
        // Tests make nodes as small as leaves.
        let tiny = shared.config.fanout < LeafConfig::default().fanout;
        Trie {
            root: TrieSlot::new(leaf),
            old: TrieSlot::default(),
            moving: Mutex::default(),
            first_bits: if tiny { 1 } else { 5 },
        }
    }

    /// The number of bits that a new node branches on, if it begins at bit `at` and its deepest
    /// leaf has the depth `deepest`. There are few nodes below a wide root, and the root absorbs
    /// them as it grows.
    pub(super) fn bits(&self, at: u32, deepest: u32) -> u32 {
        match deepest - at {
            _ if at == 0 => self.first_bits,
            0..=3 => self.first_bits.min(3),
            _ => 5,
        }
    }

    /// The leaf whose range has the hash. It may be obsolete by now; the caller then retries.
    #[inline]
    pub(crate) fn find<'g>(&self, hash: u64, guard: &'g Guard) -> HashLeaf<'g> {
        // Descend from the root. Its slot usually leads directly to the leaf. If the slot is unset,
        // the root is being replaced, and the old root may still have the range.
        match self.root.address(guard).descend(hash, guard) {
            Some(leaf) => leaf,
            None => self.find_moving(hash, guard),
        }
    }

    /// The slow path of `find`, while the root is being replaced.
    #[cold]
    #[inline(never)]
    fn find_moving<'g>(&self, hash: u64, guard: &'g Guard) -> HashLeaf<'g> {
        // The slot may be set, and the old root forgotten, between our two loads. Then the new root
        // has the range, so try both again.
        loop {
            for slot in [&self.old, &self.root] {
                if let Some(leaf) = slot.address(guard).descend(hash, guard) {
                    return leaf;
                }
            }
        }
    }

    /// The nodes on the path to a leaf whose lock the caller holds.
    pub(super) fn path<'g>(&self, hash: u64, guard: &'g Guard) -> TriePath<'g> {
        // The leaf is locked, so one of the two roots leads to it. If the root is being replaced, a
        // slot may have moved between the two loads, and then both are tried again.
        loop {
            for root in [&self.root, &self.old] {
                if let Some(path) = path_from(root, hash, guard) {
                    return path;
                }
            }
        }
    }

    /// The nodes on the path to the leaf that two buddies will merge into. The caller holds the
    /// locks of both. If one of them has already moved to a new root, the path starts there.
    fn path_of_both<'g>(&self, hash: u64, other: u64, guard: &'g Guard) -> TriePath<'g> {
        let new = path_from(&self.root, hash, guard);
        let new = new.or_else(|| path_from(&self.root, other, guard));
        new.unwrap_or_else(|| self.path(hash, guard))
    }

    /// Replaces the leaf by `new`, which has the same range. Returns the version of `new`.
    pub(crate) fn replace(
        &self,
        shared: &Shared,
        leaf: LockedHashLeaf<'_>,
        hash: u64,
        mut new: NewHashLeaf,
        guard: &Guard,
    ) -> u64 {
        let old = leaf.leaf();
        // Start from a greater version than any of the old leaf, so that the version that is found
        // under a key never decreases.
        let version = new.succeed(&leaf);
        // Find the path to the old leaf. Nobody changes the path while we hold the leaf's lock.
        let path = self.path(hash, guard);
        shared.counters.add_leaf(new.memory());
        shared.counters.remove_leaf(old.memory());
        // Mark the old leaf obsolete. Until its slots are stored to, other threads still find it,
        // and retry from the root. So nobody sees two leaves with the same range.
        leaf.mark_obsolete();
        // Publish the new leaf.
        self.publish(&path, hash, new.publish_locked(guard));
        // SAFETY:
        // 1. It is obsolete, and the slots of its path lead elsewhere.
        // 2. If the root is being replaced, the old root may still lead to it. A thread that pins
        //    from now on doesn't go there: the new root's slots of this range are set.
        // 3. Only the holder of its lock gets here.
        unsafe { old.retire(guard) };
        self.adapt(shared, guard);
        version
    }

    /// Stores a leaf to all its slots, then unlocks it.
    fn publish(&self, path: &[TriePathNode<'_>], hash: u64, leaf: LockedHashLeaf<'_>) {
        match path.last() {
            // Dropping `leaf` unlocks it afterwards.
            None => self.root.store(TrieAddress::of_leaf(leaf.leaf())),
            Some(parent) => parent.publish(hash, leaf),
        }
    }

    /// Locks the buddy of a leaf: the leaf of the same depth whose range differs in the last bit
    /// alone. `None` if the buddy has been split further, if it is locked, or if `admits` returns
    /// `false` for it, which is called before.
    pub(crate) fn buddy<'g>(
        &self,
        leaf: HashLeaf<'_>,
        hash: u64,
        admits: impl FnOnce(HashLeaf<'g>) -> bool,
        guard: &'g Guard,
    ) -> Option<LockedHashLeaf<'g>> {
        let depth = leaf.shape().depth;
        if depth == 0 {
            return None;
        }
        let other = prefix(hash, depth) ^ 1 << (64 - depth);
        let buddy = self.find(other, guard);
        // A deeper leaf covers only a part of the buddy's range. It can't be shallower: it would
        // cover our own leaf, too.
        if buddy.shape().depth != depth || !admits(buddy) {
            return None;
        }
        let locked = buddy.try_lock().ok().flatten()?;
        // If the two are the whole trie, merging them replaces the root by a leaf. That must not
        // happen while the root is being replaced by another node. Such a replacement can't begin
        // now, because it takes the lock of one of these two leaves.
        (depth > 1 || self.old.address(guard).is_unset()).then_some(locked)
    }

    /// Replaces two buddies by `new`, whose depth is one less. If they were all that their node
    /// had, the node is removed. Returns the version of `new`.
    pub(crate) fn merge(
        &self,
        shared: &Shared,
        buddies: [LockedHashLeaf<'_>; 2],
        hash: u64,
        mut new: NewHashLeaf,
        guard: &Guard,
    ) -> u64 {
        // Nobody changes the path while we hold the two locks.
        let old = buddies.each_ref().map(|b| b.leaf());
        let version = buddies.iter().fold(0, |_, buddy| new.succeed(buddy));
        let depth = new.shape().depth;
        let mut path = self.path_of_both(hash, hash ^ 1 << (63 - depth), guard);
        shared.counters.add_leaf(new.memory());
        shared.counters.merged();
        // Mark both obsolete before the new leaf can be reached, so that no hash is in the ranges
        // of two leaves.
        for buddy in buddies {
            shared.counters.remove_leaf(buddy.leaf().memory());
            buddy.mark_obsolete();
        }
        // If the node begins at the bit of the new leaf's depth, it has no other leaves. The slot
        // that leads to the node then leads to the new leaf.
        let emptied = path
            .last()
            .is_some_and(|parent| parent.at == u32::from(depth));
        if emptied {
            path.pop();
            let above = match path.last() {
                None => &self.root,
                Some(parent) => parent.slot(hash),
            };
            let node = above.address(guard);
            above.store(TrieAddress::of_new(new, guard));
            // SAFETY: the slot that led to the node leads elsewhere now; both locks were ours, and
            // cover all of it.
            let bytes = unsafe { node.retire_node(guard) };
            shared.counters.remove_node(bytes);
        } else {
            self.publish(&path, hash, new.publish_locked(guard));
        }
        for leaf in old {
            // SAFETY: obsolete, and unlinked above; only the holder of both locks gets here.
            unsafe { leaf.retire(guard) };
        }
        self.adapt(shared, guard);
        version
    }

    /// The number of nodes on the path to the first leaf.
    pub(crate) fn depth(&self, guard: &Guard) -> usize {
        self.path(0, guard).len()
    }
}

impl Drop for Trie {
    fn drop(&mut self) {
        // SAFETY: the trie is dropped: nobody else can use it. Nothing is used here after it was
        // freed.
        let guard = unsafe { crossbeam_epoch::unprotected() };
        let (root, old) = (self.root.address(guard), self.old.address(guard));
        let mut todo = vec![root];
        if let Some(TrieChild::Node(before)) = old.child() {
            if let Some(TrieChild::Node(new)) = root.child() {
                todo = parts(new, Some(before), guard);
            }
            for address in [root, old] {
                // SAFETY: as above; what their slots lead to is noted.
                unsafe { address.free_node() };
            }
        }
        while let Some(address) = todo.pop() {
            match address.child() {
                None => {}
                // SAFETY: as above; each leaf is visited once.
                Some(TrieChild::Leaf(leaf)) => unsafe { leaf.free_all() },
                Some(TrieChild::Node(node)) => {
                    todo.extend(parts(node, None, guard));
                    // SAFETY: as above; its slots are noted.
                    unsafe { address.free_node() };
                }
            }
        }
    }
}

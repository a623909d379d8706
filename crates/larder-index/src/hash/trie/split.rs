//! Splitting a leaf of the trie.
//!
//! 1. Let C be the first bit in which the leaf's hashes differ. Two leaves of depth C+1 get the
//!    entries. For each bit between the leaf's depth and C there is an empty leaf, for the hashes
//!    that differ in this bit. The caller has built all of these leaves (the *parts*).
//! 2. Parts that are deeper than the leaf's node reaches go to new nodes below it. The new nodes
//!    are complete before they can be reached.
//! 3. The old leaf is marked obsolete. Then the parts are published by storing to the old leaf's
//!    slots. Then the old leaf is retired.

use crate::hash::leaf::{LockedHashLeaf, NewHashLeaf};
use crate::hash::slot::{NewTrieNode, TrieAddress};
use crate::hash::trie::{Trie, TriePathNode};
use crate::shared::Shared;
use crossbeam_epoch::Guard;

/// A new leaf that covers a part of the range of the old one.
pub(crate) struct SplitPart {
    /// Any hash of its range.
    pub(crate) hash: u64,
    pub(crate) leaf: NewHashLeaf,
}

impl SplitPart {
    fn depth(&self) -> u32 {
        u32::from(self.leaf.shape().depth)
    }

    /// Publishes the leaf in its slots of the node.
    fn publish_in(self, shared: &Shared, parent: &TriePathNode<'_>, guard: &Guard) {
        shared.counters.add_leaf(self.leaf.memory());
        parent.publish(self.hash, self.leaf.publish_locked(guard));
    }
}

impl Trie {
    /// Step 2: builds a node that begins at bit `at` and has the parts, all of which are deeper
    /// than `at`. The parts are sorted by depth.
    ///
    /// The parts of a split lie along one path: at each level one slot leads to the node below, and
    /// the others to parts. The levels are built from the deepest up.
    fn build<'g>(
        &self,
        shared: &Shared,
        mut parts: Vec<SplitPart>,
        at: u32,
        guard: &'g Guard,
    ) -> TrieAddress<'g> {
        let (hash, deepest) = parts.last().map_or((0, at + 1), |p| (p.hash, p.depth()));
        // Plan the nodes on the path to the deepest part. Each begins at the bit where the one
        // above it ends.
        let mut levels = Vec::new();
        let mut reach = at;
        while reach < deepest {
            let bits = self.bits(reach, deepest);
            levels.push((reach, bits));
            reach += bits;
        }
        // Build the deepest node first, so that each node is complete before another one leads to
        // it.
        let mut below: Option<TrieAddress<'g>> = None;
        for (at, bits) in levels.into_iter().rev() {
            let new = NewTrieNode::unset(bits);
            let parent = TriePathNode {
                node: new.node(),
                at,
            };
            if let Some(address) = below.take() {
                parent.slot(hash).store(address);
            }
            // Publish the parts that are deeper than the node's first bit. Those that are deeper
            // than its last bit were put into the nodes below it.
            let first = parts.partition_point(|p| p.depth() <= at);
            for part in parts.drain(first..) {
                part.publish_in(shared, &parent, guard);
            }
            shared.counters.add_node(new.memory());
            below = Some(TrieAddress::of_node(new, guard));
        }
        below.expect("there is at least one level")
    }

    /// Replaces the leaf by the parts, which are sorted by depth and together cover its range.
    pub(crate) fn split(
        &self,
        shared: &Shared,
        leaf: LockedHashLeaf<'_>,
        mut parts: Vec<SplitPart>,
        guard: &Guard,
    ) {
        let old = leaf.leaf();
        for part in &mut parts {
            part.leaf.succeed(&leaf);
        }
        // Find the path to the old leaf. Nobody changes the path while we hold the leaf's lock.
        let hash = parts[0].hash;
        let path = self.path(hash, guard);
        let reach = path.last().map_or(0, TriePathNode::end);
        // Parts that the leaf's node reaches are published there.
        let deep = parts.split_off(parts.partition_point(|p| p.depth() <= reach));
        // (2) The deeper ones go to new nodes, which nobody can reach yet.
        let below = deep.first().map(|p| p.hash);
        let below = below.map(|hash| (hash, self.build(shared, deep, reach, guard)));
        shared.counters.remove_leaf(old.memory());
        shared.counters.split();
        // (3) From here until the stores below, nobody can read or write the range: a thread that
        // finds the old leaf retries from the root. This is the split's linearisation point.
        leaf.mark_obsolete();
        match path.last() {
            // The trie was a single leaf. The new node becomes its root.
            None => {
                if let Some((_, address)) = below {
                    self.root.store(address);
                }
            }
            // Publish the node below and the parts in the slots of the old leaf. A new leaf stays
            // locked until all of its slots lead to it.
            Some(parent) => {
                if let Some((hash, address)) = below {
                    parent.slot(hash).store(address);
                }
                parts
                    .into_iter()
                    .for_each(|part| part.publish_in(shared, parent, guard));
            }
        }
        // SAFETY:
        // 1. It is obsolete, and the slots of its path lead elsewhere.
        // 2. If the root is being replaced, the old root may still lead to it. A thread that pins
        //    from now on doesn't go there: the new root's slots of this range are set.
        // 3. Only the holder of its lock gets here.
        unsafe { old.retire(guard) };
        // There are more leaves now, so the root may have to become wider.
        self.adapt(shared, guard);
    }
}

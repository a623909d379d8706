//! How a leaf of the trie splits.
//!
//! 1. The leaf's hashes first differ in bit C. Two leaves of depth C+1 get them; bits between the
//!    leaf's depth and C that all hashes share get an empty leaf each for the other side. What the
//!    leaves have is the caller's affair: it brings them.
//! 2. Leaves that are deeper than the node reaches go to new nodes below it, which are complete
//!    before they can be reached.
//! 3. The old leaf is marked obsolete; then its slots are stored to; then it is retired.

use crate::hash::leaf::{LockedHashLeaf, NewHashLeaf};
use crate::hash::slot::{NewTrieNode, TrieAddress};
use crate::hash::trie::{Trie, TrieStep};
use crate::shared::Shared;
use crossbeam_epoch::Guard;

/// A leaf that is to be, and a hash of its range.
pub(crate) struct SplitPart {
    pub(crate) hash: u64,
    pub(crate) leaf: NewHashLeaf,
}

impl SplitPart {
    fn depth(&self) -> u32 {
        u32::from(self.leaf.shape().depth)
    }

    /// Publishes the leaf in its slots of the node.
    fn settle(self, shared: &Shared, step: &TrieStep<'_>, guard: &Guard) {
        shared.counters.leaf_came(self.leaf.memory());
        step.point(self.hash, self.leaf.publish_locked(guard));
    }
}

impl Trie {
    /// A node that begins at bit `at` for the parts, sorted by depth, all of which are deeper (step
    /// 2).
    ///
    /// Works from the deepest level up: the parts of a level, and one slot for the node below it.
    fn build(
        &self,
        shared: &Shared,
        mut parts: Vec<SplitPart>,
        at: u32,
        guard: &Guard,
    ) -> TrieAddress {
        let (hash, deepest) = parts.last().map_or((0, at + 1), |p| (p.hash, p.depth()));
        // The nodes on the path to the deepest part, each beginning where the one above ends.
        let mut levels = Vec::new();
        let mut reach = at;
        while reach < deepest {
            let bits = self.bits(reach, deepest);
            levels.push((reach, bits));
            reach += bits;
        }
        let mut below: Option<TrieAddress> = None;
        // From the deepest up, so that a node is complete before another leads to it.
        for (at, bits) in levels.into_iter().rev() {
            let new = NewTrieNode::unset(bits);
            let step = TrieStep {
                node: new.node(),
                at,
            };
            if let Some(address) = below.take() {
                step.slot(hash).store(address);
            }
            // The parts that this node reaches: those that are deeper than where it begins.
            let first = parts.partition_point(|p| p.depth() <= at);
            for part in parts.drain(first..) {
                part.settle(shared, &step, guard);
            }
            shared.counters.node_came(new.memory());
            below = Some(TrieAddress::of_node(new));
        }
        below.expect("there is at least one level")
    }

    /// Puts the parts, sorted by depth, which together have the leaf's range, in its place.
    pub(crate) fn split(
        &self,
        shared: &Shared,
        leaf: LockedHashLeaf<'_>,
        mut parts: Vec<SplitPart>,
        guard: &Guard,
    ) {
        let old = leaf.leaf();
        parts.iter_mut().for_each(|part| part.leaf.succeed(&leaf));
        // All parts are below the old leaf, whose lock keeps the path to it as it is.
        let hash = parts[0].hash;
        let path = self.path(hash, guard);
        let reach = path.last().map_or(0, TrieStep::end);
        // The node that has the leaf takes the parts that it reaches.
        let deep = parts.split_off(parts.partition_point(|p| p.depth() <= reach));
        // Step 2: the others lie below one slot of it, in nodes that nobody can reach yet.
        let below = deep.first().map(|p| p.hash);
        let below = below.map(|hash| (hash, self.build(shared, deep, reach, guard)));
        shared.counters.leaf_went(old.memory());
        shared.counters.split();
        // Step 3.
        leaf.obsolete();
        match path.last() {
            None => {
                if let Some((_, address)) = below {
                    self.root.store(address);
                }
            }
            // Each new leaf is unlocked when all its slots lead to it.
            Some(step) => {
                if let Some((hash, address)) = below {
                    step.slot(hash).store(address);
                }
                parts
                    .into_iter()
                    .for_each(|part| part.settle(shared, step, guard));
            }
        }
        // SAFETY: obsolete, and all its slots lead elsewhere now; only the holder of its lock gets
        // here.
        unsafe { old.retire(guard) };
        // There are more leaves now: the root may have to be wider.
        self.adapt(shared, guard);
    }
}

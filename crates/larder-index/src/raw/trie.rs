//! The way to the leaves of the hash order: a trie over the bits of positions.
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
//! and never doubles. A position is a string of bits, padded with zeros; a leaf of depth D has all positions with its D bits. As keys
//! follow hashes in a position, equal hashes need nothing special: the trie goes on into the key.
//!
//! Invariants:
//! 1. A node on level l tells apart bits 5l to 5l+4. A leaf in it has a depth of 5l+1 to 5l+5, and 2^(5l+5-D) slots. Only in the root slot a leaf has depth 0.
//! 2. Slots that lead to a leaf are stored to only by the holder of its lock. While the lock is held nobody changes the way to the leaf:
//!    collapsing a node takes the locks of all leaves in it.
//! 3. A node that is published has all its slots set.
//!
//! When not to use it: positions in which many bits say nothing make it deep; hashes don't.

use super::leaf::{Leaf, Locked, NewLeaf, MOST_PREFIX};
use super::slot::{Address, Child, Slot};
use crate::route::{End, Found, LeafConfig, Route, Seek, Shared};
use crate::run::{with_run, Run};
use crossbeam_epoch::Guard;

/// Bits that a node tells apart.
pub(super) const BITS: usize = 5;
/// Slots of a node.
pub(super) const SLOTS: usize = 1 << BITS;

/// An inner node.
pub(crate) struct Node {
    pub(super) slots: [Slot<Node>; SLOTS],
}

impl Node {
    pub(super) fn unset() -> Box<Node> {
        Box::new(Node {
            slots: std::array::from_fn(|_| Slot::unset()),
        })
    }
}

/// The trie.
pub(crate) struct Trie {
    pub(super) root: Slot<Node>,
}

/// The `BITS` bits of the position from bit `at`; bytes past its end are `pad`.
#[inline]
pub(super) fn bits(position: &[u8], at: usize, pad: u8) -> usize {
    let byte = |i: usize| usize::from(position.get(i).copied().unwrap_or(pad));
    let two = byte(at / 8) << 8 | byte(at / 8 + 1);
    two >> (16 - BITS - at % 8) & (SLOTS - 1)
}

/// Bit `at` of the position, padded with zeros.
pub(super) fn bit(position: &[u8], at: usize) -> bool {
    position
        .get(at / 8)
        .is_some_and(|b| b >> (7 - at % 8) & 1 == 1)
}

/// The first `depth` bits of the position, whose missing bytes are `pad`, and zeros up to whole bytes.
pub(super) fn lead(position: &[u8], depth: usize, pad: u8) -> Vec<u8> {
    let bytes = depth.div_ceil(8);
    let mut lead = Vec::with_capacity(bytes);
    lead.extend_from_slice(&position[..position.len().min(bytes)]);
    lead.resize(bytes, pad);
    if let Some(last) = lead.last_mut().filter(|_| depth % 8 != 0) {
        *last &= 0xFF << (8 - depth % 8);
    }
    lead
}

/// What the positions of a leaf with this lead and depth surely begin with.
pub(super) fn prefix(lead: &[u8], depth: usize) -> &[u8] {
    &lead[..(depth / 8).min(MOST_PREFIX)]
}

/// Without the zeros at the end: they say nothing in a padded position, and would put a bound above shorter positions.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .rposition(|b| *b != 0)
        .map_or(0, |last| last + 1);
    &bytes[..end]
}

/// The lead of the next leaf of the same depth; None after the last.
fn next_lead(mut lead: Vec<u8>, depth: usize) -> Option<Vec<u8>> {
    let mut add = 1u8 << ((8 - depth % 8) % 8);
    for byte in lead.iter_mut().rev() {
        let (sum, over) = byte.overflowing_add(add);
        *byte = sum;
        if !over {
            return Some(lead);
        }
        add = 1;
    }
    None
}

/// The last position before the lead, to be padded with ones; None before the first.
fn before_lead(mut lead: Vec<u8>) -> Option<Vec<u8>> {
    for byte in lead.iter_mut().rev() {
        let (rest, under) = byte.overflowing_sub(1);
        *byte = rest;
        if !under {
            return Some(lead);
        }
    }
    None
}

impl Trie {
    /// A trie of one leaf.
    pub(crate) fn new(shared: &Shared) -> Trie {
        let leaf = NewLeaf::empty(shared.config.first, &[], 0);
        shared.counters.leaf_came(leaf.memory());
        Trie {
            root: Slot::new(Address::of_new(leaf)),
        }
    }

    #[inline]
    fn descend<'g>(&self, position: &[u8], pad: u8, guard: &'g Guard) -> Leaf<'g> {
        let mut child = self.root.load(guard);
        let mut at = 0;
        // All but degenerate tries are served by the first eight bytes, taken once.
        if let Some(first) = position.first_chunk::<8>() {
            let window = u64::from_be_bytes(*first);
            while at + BITS <= 64 {
                match child {
                    Child::Leaf(leaf) => return leaf,
                    Child::Node(node) => {
                        let i = (window >> (64 - BITS - at)) as usize & (SLOTS - 1);
                        child = node.slots[i].load(guard);
                    }
                }
                at += BITS;
            }
        }
        loop {
            match child {
                Child::Leaf(leaf) => return leaf,
                Child::Node(node) => child = node.slots[bits(position, at, pad)].load(guard),
            }
            at += BITS;
        }
    }

    /// The nodes on the way to a leaf whose lock the caller holds.
    pub(super) fn path<'g>(&self, position: &[u8], guard: &'g Guard) -> Vec<&'g Node> {
        let mut path = Vec::new();
        let mut child = self.root.load(guard);
        while let Child::Node(node) = child {
            child = node.slots[bits(position, path.len() * BITS, 0)].load(guard);
            path.push(node);
        }
        path
    }
}

/// The slots in a node on level `level` of a leaf of this depth that has the position.
pub(super) fn slots_of(position: &[u8], level: usize, depth: usize) -> std::ops::Range<usize> {
    let count = 1 << (BITS * (level + 1) - depth);
    let from = bits(position, level * BITS, 0) & !(count - 1);
    from..from + count
}

/// Stores `address` in all slots of a leaf of this depth.
pub(super) fn point(
    trie: &Trie,
    path: &[&Node],
    position: &[u8],
    depth: usize,
    address: Address<Node>,
) {
    match path.last() {
        None => trie.root.store(address),
        Some(node) => {
            for i in slots_of(position, path.len() - 1, depth) {
                node.slots[i].store(address);
            }
        }
    }
}

impl Route for Trie {
    #[inline]
    fn find<'g>(&self, position: &[u8], guard: &'g Guard) -> Leaf<'g> {
        self.descend(position, 0, guard)
    }

    fn find_fenced<'g>(&self, seek: Seek<'_>, end: End, guard: &'g Guard) -> Option<Found<'g>> {
        let (position, pad) = match seek {
            Seek::First => (&[][..], 0),
            Seek::Last => (&[][..], 0xFF),
            Seek::At(p) | Seek::Before(p) => (p, 0),
        };
        let mut leaf = self.descend(position, pad, guard);
        let mut low = lead(position, leaf.depth(), pad);
        if let Seek::Before(p) = seek {
            // Below its own lowest position the leaf has nothing: the one before it does.
            if trimmed(&low) == p {
                let before = before_lead(low)?;
                leaf = self.descend(&before, 0xFF, guard);
                low = lead(&before, leaf.depth(), 0xFF);
            }
        }
        let fence = match end {
            End::High => next_lead(low, leaf.depth()),
            End::Low => Some(low),
        };
        let fence = fence.map(|mut fence| {
            fence.truncate(trimmed(&fence).len());
            fence
        });
        // An empty fence is below everything: no bound.
        let fence = fence.filter(|fence| !fence.is_empty());
        Some(Found { leaf, fence })
    }

    fn replace(
        &self,
        shared: &Shared,
        leaf: Locked<'_>,
        position: &[u8],
        new: NewLeaf,
        guard: &Guard,
    ) {
        let old = leaf.leaf();
        let path = self.path(position, guard);
        shared.counters.leaf_came(new.memory());
        shared.counters.leaf_went(old.memory());
        leaf.obsolete();
        point(self, &path, position, old.depth(), Address::of_new(new));
        // SAFETY: obsolete, and all its slots lead elsewhere now; only the holder of its lock gets here.
        unsafe { old.retire(guard) };
    }

    fn split(
        &self,
        shared: &Shared,
        leaf: Locked<'_>,
        position: &[u8],
        run: &Run,
        _at: Option<usize>,
        guard: &Guard,
    ) {
        super::trie_split::split(self, shared, leaf, position, run, guard);
    }

    fn merge(&self, shared: &Shared, leaf: Locked<'_>, position: &[u8], guard: &Guard) -> bool {
        let depth = leaf.leaf().depth();
        if depth == 0 {
            return false;
        }
        // 1. The buddy differs in the last bit alone, and must be whole.
        let mut other = lead(position, depth, 0);
        other[(depth - 1) / 8] ^= 1 << (7 - (depth - 1) % 8);
        let buddy = self.descend(&other, 0, guard);
        if buddy.depth() != depth {
            return false;
        }
        let Ok(Some(buddy)) = buddy.try_lock() else {
            return false;
        };
        // Keys grow by at most one byte when a byte of prefix goes.
        let extra = leaf.len() + buddy.len();
        if leaf.used() + buddy.used() + 2 * extra > shared.config.most / 2 {
            return false;
        }
        let (left, right) = if bit(position, depth - 1) {
            (buddy, leaf)
        } else {
            (leaf, buddy)
        };
        // 2. One leaf with the entries of both.
        let common = lead(position, depth - 1, 0);
        let prefix = prefix(&common, depth - 1);
        let new = with_run(|run| {
            left.collect_all(run);
            right.collect_all(run);
            let need = run.sizes(0..run.len(), prefix.len());
            let room = shared.config.capacity(need);
            NewLeaf::build(run, 0..run.len(), room, prefix, depth - 1)
        });
        // 3. Obsolete first, then publish, then retire.
        self.unite(shared, [left, right], position, new, depth - 1, guard);
        true
    }

    fn grows(&self, leaf: Leaf<'_>, run: &Run, used: usize, config: &LeafConfig) -> bool {
        /// Bits that may say nothing before a leaf grows instead of splitting.
        const SHARED_BITS: usize = 16;
        /// How many times as large as others it gets.
        const TIMES: usize = 16;
        let common = super::trie_split::common_bits(run.position(0), run.position(run.len() - 1));
        common >= leaf.depth() + SHARED_BITS && used < config.most * TIMES
    }

    fn depth(&self, guard: &Guard) -> usize {
        self.path(&[], guard).len()
    }
}

impl Trie {
    /// Puts `new`, of this depth, in the place of two buddies. A node that has nothing else goes.
    fn unite(
        &self,
        shared: &Shared,
        buddies: [Locked<'_>; 2],
        position: &[u8],
        new: NewLeaf,
        depth: usize,
        guard: &Guard,
    ) {
        let old = buddies.each_ref().map(|b| b.leaf());
        let mut path = self.path(position, guard);
        shared.counters.leaf_came(new.memory());
        shared.counters.merged();
        for buddy in buddies {
            shared.counters.leaf_went(buddy.leaf().memory());
            buddy.obsolete();
        }
        let level = path.len() - 1;
        let emptied = (depth == level * BITS).then(|| path.pop()).flatten();
        let above = match path.last() {
            None => &self.root,
            Some(node) => &node.slots[bits(position, (path.len() - 1) * BITS, 0)],
        };
        if emptied.is_some() {
            let node = above.address();
            above.store(Address::of_new(new));
            shared.counters.node_went(size_of::<Node>());
            if let Some(node) = node {
                // SAFETY: the slot that led to the node leads elsewhere now; both locks were ours, and cover all of it.
                unsafe { node.retire_node(guard) };
            }
        } else {
            point(self, &path, position, depth, Address::of_new(new));
        }
        for leaf in old {
            // SAFETY: obsolete, and unlinked above; only the holder of both locks gets here.
            unsafe { leaf.retire(guard) };
        }
    }
}

impl Drop for Trie {
    fn drop(&mut self) {
        let mut todo: Vec<Address<Node>> = self.root.address().into_iter().collect();
        while let Some(address) = todo.pop() {
            // SAFETY: the trie is dropped: nobody else can use it.
            match unsafe { address.child() } {
                // SAFETY: as above; each leaf is met once, see below.
                Child::Leaf(leaf) => unsafe { leaf.free_all() },
                Child::Node(node) => {
                    let from = todo.len();
                    todo.extend(node.slots.iter().filter_map(Slot::address));
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
                    drop(unsafe { address.take_node() });
                }
            }
        }
    }
}

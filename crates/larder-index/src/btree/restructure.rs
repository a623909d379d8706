//! Changes of structure in the B+-tree: a leaf is replaced, split, or merged with a neighbour.
//!
//! ```text
//!  split of leaf B     [ s | t ]                [ s | u | t ]    a new node: its separators differ
//!                     /    |    \      →       /   |   |    \
//!                    A     B     C            A   B'   B"   C
//!
//!  replacement of B    [ s | t ]                [ s | t ]        the same node: one slot's store
//!                     /    |    \      →       /    |    \
//!                    A     B     C            A     B'    C
//! ```
//!
//! 1. The caller has locked the leaf.
//! 2. Lock the mutex `changing`. From here on the path to the leaf can't change. A merge then tries
//!    to lock a neighbour.
//! 3. Build the new leaves. Nobody can reach them yet. `replace` gets a leaf that is already built,
//!    so that `changing` is held briefly.
//! 4. Mark the old leaves obsolete, which also unlocks them for good. A thread that finds one of
//!    them from here on restarts from the root. This is the linearisation point of the write that
//!    caused the change.
//! 5. Replace a node whose separators change by a new one, then the node above if its separators
//!    change, and so on, up to a level where only the address in one slot changes. The store to
//!    that slot publishes all new nodes at once (`splice`).
//! 6. Unlock `changing`. Then retire the old leaves and nodes.
//!
//! Invariants (docs/design.md §4.2 and 4.4):
//! * I4: An old leaf is obsolete before its successors can be reached.
//! * B5: A thread that holds `changing` never waits for a leaf's lock. It already holds the locks
//!   of the leaves that it replaces, and it only tries to lock others.
//! * B6: One store publishes a change.
//! * B7: Under `changing`, if a leaf is locked and not obsolete, the path to a position of its
//!   range leads to it.
//! * B8: A node has at least two children.
//!
//! Source: the splits and merges of Bayer and McCreight 1972, made bottom-up. Deviations: nodes are
//! replaced instead of changed, so readers need no versions of nodes. Leaves merge when both fit in
//! half a leaf, and nodes when one has a quarter of its children, so that neither is split again
//! soon. So an empty leaf stays as long as its neighbours under the same node are more than half
//! full. It is small then.

use super::FANOUT;
use crate::btree::copies::with_copies;
use crate::btree::entries::Entries;
use crate::btree::inner::{fences, InnerLevels, TreePath, TreePathNode};
use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf, TreeLeaf};
use crate::btree::node::{Child, InnerNode, Separators};
use crate::btree::prefix::{common, Prefix};
use crate::btree::search_key::SearchKey;
use crate::btree::slot::{ChildAddress, TreeChild};
use crate::btree::stale::set_stale_bits;
use crate::shared::Shared;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::{Range, RangeInclusive};

/// Nodes that were unlinked from the tree.
type Unlinked = SmallVec<[ChildAddress<InnerNode>; 8]>;

/// Children that replace neighbouring children of a node, and the separators between them.
struct ChildSplice {
    items: Vec<Child>,
    separators: Separators,
}

impl ChildSplice {
    /// A single child, whose count isn't known yet.
    fn one(item: ChildAddress<InnerNode>) -> ChildSplice {
        ChildSplice {
            items: vec![Child::new(item)],
            separators: Separators::default(),
        }
    }

    /// Two children with a separator between them, whose counts aren't known yet.
    fn two(
        left: ChildAddress<InnerNode>,
        between: &[u8],
        right: ChildAddress<InnerNode>,
    ) -> ChildSplice {
        let mut separators = Separators::default();
        separators.push(between);
        ChildSplice {
            items: vec![Child::new(left), Child::new(right)],
            separators,
        }
    }
}

/// One of the two successors of a split leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// A descending run of inserts continues at its end.
    Left,
    /// An ascending run continues at its start.
    Right,
}

/// How a leaf is split.
struct Split<'s, 'g> {
    leaf: &'s LockedTreeLeaf<'g>,
    /// The entries of both successors.
    entries: &'s Entries,
    /// The number of entries that the left successor gets.
    cut: usize,
    /// The successor in which a run continues, if the leaf is cut beside the last insert of one.
    run: Option<Side>,
}

impl<'s, 'g> Split<'s, 'g> {
    fn new(leaf: &'s LockedTreeLeaf<'g>, entries: &'s Entries, run_cut: Option<usize>) -> Self {
        // Both successors get at least one entry.
        let run_cut = run_cut.filter(|&cut| cut > 0 && cut < entries.len());
        let run = run_cut.map(|_| match leaf.descends() {
            true => Side::Left,
            false => Side::Right,
        });
        Split {
            leaf,
            entries,
            cut: run_cut.unwrap_or_else(|| entries.middle()),
            run,
        }
    }

    /// Builds the left successor. `fences` is the common prefix of its fences.
    fn left(&self, shared: &Shared, fences: Prefix<'_>) -> ChildAddress<InnerNode> {
        self.successor(shared, 0..self.cut, fences, Side::Left)
    }

    /// Builds the right successor, likewise.
    fn right(&self, shared: &Shared, fences: Prefix<'_>) -> ChildAddress<InnerNode> {
        self.successor(shared, self.cut..self.entries.len(), fences, Side::Right)
    }

    /// Builds the successor that gets the entries in `range`.
    fn successor(
        &self,
        shared: &Shared,
        range: Range<usize>,
        fences: Prefix<'_>,
        side: Side,
    ) -> ChildAddress<InnerNode> {
        let old = self.leaf.leaf();
        let prefix = self.entries.prefix(self.leaf, range.clone(), fences);
        let prefix_growth = prefix.len() - old.prefix_len();
        let need = self.entries.content_size(range.clone(), prefix_growth);
        // If the leaf is cut in the middle, both successors get what their entries need, and more
        // if the index is small or was announced many keys. If a run continues in this successor,
        // it gets the largest capacity. If one continues in the other successor, no more inserts
        // are expected here.
        let capacity = match self.run {
            None => {
                let soon = shared.soon(need);
                shared.config.capacity_for(need, soon, prefix.len())
            }
            Some(run) if run == side => shared.config.most_beside(prefix.len()).max(need),
            Some(_) => need,
        };
        let first = range.start;
        let new = self.entries.build(self.leaf, range, capacity, &prefix);
        new.succeed(self.leaf);
        // It also inherits the run's statistics, with the slot of the last insert. The next insert
        // of the run then looks beside that slot first, and needs no search.
        if self.run == Some(side) {
            let last_slot = match side {
                Side::Left => self.cut - 1,
                Side::Right => self.cut,
            };
            new.inherit_at(old, last_slot - first);
        }
        shared.counters.add_leaf(new.memory());
        ChildAddress::of_new(new)
    }
}

/// Builds the leaf that replaces two neighbours. `fences` is the common prefix of its fences.
/// `None` if it would be larger than half a leaf.
fn merged_leaf(
    shared: &Shared,
    left: &LockedTreeLeaf<'_>,
    right: &LockedTreeLeaf<'_>,
    fences: Prefix<'_>,
) -> Option<NewTreeLeaf> {
    let new = with_copies(|copies| {
        left.collect_all(copies);
        right.collect_all(copies);
        // If both leaves are empty, the prefix is the common prefix of the fences.
        let prefix = match copies.len() {
            0 => fences,
            n => fences.extended(copies.position(0), copies.position(n - 1)),
        };
        // The common prefix may be shorter than those of the two leaves, so the entries may need
        // more bytes than before.
        let need = copies.content_size(0..copies.len(), prefix.len());
        let capacity = shared.config.capacity_for(need, need, prefix.len());
        (need <= shared.config.most / 2)
            .then(|| NewTreeLeaf::build(copies, 0..copies.len(), capacity, &prefix))
    })?;
    new.succeed(left);
    new.succeed(right);
    Some(new)
}

/// The common prefix of the fences of a leaf that replaces these children of the last node of the
/// path: from the lower fence of the first one to the upper fence of the last one.
fn fences_around<'g>(path: &mut TreePath<'g>, children: &RangeInclusive<usize>) -> Prefix<'g> {
    let mut fences_of = |child| {
        if let Some(parent) = path.last_mut() {
            parent.child = child;
        }
        fences(path)
    };
    // The fences of a child follow from its number in the last node of the path.
    let (low, _) = fences_of(*children.start());
    let (_, high) = fences_of(*children.end());
    Prefix::of_fences(low, high)
}

/// The shortest separator between `a` and `b`: greater than `a` and at most `b`. Requires `a` <
/// `b`.
fn separator<'b>(a: &[u8], b: &'b [u8]) -> &'b [u8] {
    &b[..(common(a, b) + 1).min(b.len())]
}

impl InnerLevels {
    /// Replaces the leaf by `new`, which has the same range.
    pub(super) fn replace(
        &self,
        shared: &Shared,
        leaf: LockedTreeLeaf<'_>,
        position: SearchKey<'_>,
        new: NewTreeLeaf,
        guard: &Guard,
    ) {
        let old = leaf.leaf();
        new.succeed(&leaf);
        // The new leaf has already been built, so `changing` is held only briefly.
        shared.counters.add_leaf(new.memory());
        // (2) Lock the structure, and find the path to the leaf.
        let changing = self.changing.lock();
        let (path, found) = self.path(guard, |node| node.child_for(position));
        debug_assert!(found.is(old), "the path to a locked leaf leads to it");
        let child = path.last().map_or(0, |s| s.child);
        // Only the last leaf has no upper fence. If inserts append to it, its successor becomes the
        // tail.
        let (low, high) = fences(&path);
        let run_continues = leaf.appends() && high.is_none();
        // (4) Mark the old leaf obsolete. Readers and writers that wait for it descend again, and
        // find it again until (5).
        leaf.mark_obsolete();
        // (5) Publish the new leaf.
        let new = ChildAddress::of_new(new);
        let unlinked = self.splice(shared, path, child..=child, ChildSplice::one(new), guard);
        // Set the tail under `changing`. Otherwise another change could retire the new leaf before
        // it becomes the tail.
        if run_continues {
            self.tail.set(new, low);
        }
        // (6) Unlock, and retire the old leaf.
        drop(changing);
        self.retire(shared, unlinked, &[old], guard);
    }

    /// Splits the leaf.
    ///
    /// `entries` are those of the two successors: the leaf's own, and the new entry if it had no
    /// room. There are at least two. `run_cut` is where to cut them in a run of inserts. If it is
    /// `None`, both successors get about the same number of bytes.
    pub(super) fn split(
        &self,
        shared: &Shared,
        leaf: LockedTreeLeaf<'_>,
        position: SearchKey<'_>,
        entries: &Entries,
        run_cut: Option<usize>,
        guard: &Guard,
    ) {
        let old = leaf.leaf();
        let split = Split::new(&leaf, entries, run_cut);
        // Truncate the first position on the right to the shortest separator that is still above
        // the last position on the left.
        let above = entries.position(&leaf, split.cut);
        let fence = separator(&entries.position(&leaf, split.cut - 1), &above);
        // (2) Lock the structure. So far only the locked leaf has been read.
        let changing = self.changing.lock();
        let (path, found) = self.path(guard, |node| node.child_for(position));
        debug_assert!(found.is(old), "the path to a locked leaf leads to it");
        // (3) Build the two successors. The prefix of each follows from its fences: those of the
        // old leaf, and the separator as the fence between them.
        let (low, high) = fences(&path);
        let left = split.left(shared, Prefix::of_fences(low, Some(fence)));
        let right = split.right(shared, Prefix::of_fences(Some(fence), high));
        // If a run continues at the end of the last leaf, the right successor becomes the tail.
        let becomes_tail = split.run == Some(Side::Right) && high.is_none();
        shared.counters.split();
        let child = path.last().map_or(0, |s| s.child);
        // (4) Mark the old leaf obsolete: the linearisation point. Until (5) has published the
        // successors nobody can read the range. Threads that find the old leaf descend again.
        leaf.mark_obsolete();
        // (5) Publish the successors. The node above gets one more separator, so it is replaced.
        let new = ChildSplice::two(left, fence, right);
        let unlinked = self.splice(shared, path, child..=child, new, guard);
        if becomes_tail {
            self.tail.set(right, Some(fence));
        }
        // (6) Unlock, and retire the old leaf and the old nodes.
        drop(changing);
        self.retire(shared, unlinked, &[old], guard);
    }

    /// Merges the leaf with a neighbour, if both fit in half a leaf and the neighbour's lock is
    /// free. Returns whether it did.
    pub(super) fn merge(
        &self,
        shared: &Shared,
        leaf: LockedTreeLeaf<'_>,
        position: SearchKey<'_>,
        guard: &Guard,
    ) -> bool {
        let Some(capacity) = (shared.config.most / 2).checked_sub(leaf.live_bytes()) else {
            return false;
        };
        // If the root is a leaf, it is this one, and it has no neighbour. Nobody can split it while
        // we hold its lock, so a small table needs no mutex to find this out.
        if let TreeChild::Leaf(_) = self.root.load(guard) {
            return false;
        }
        // (2) Lock the structure, and find the path to the leaf.
        let changing = self.changing.lock();
        let (mut path, _) = self.path(guard, |node| node.child_for(position));
        let Some(parent) = path.last() else {
            return false;
        };
        // Try to lock a neighbour under the same node. A leaf under another node doesn't count: the
        // separator between the two is further up.
        let at = parent.child;
        let Some((other, i)) = Self::lock_neighbour(parent, capacity, guard) else {
            return false;
        };
        let (left, right) = if i < at { (other, leaf) } else { (leaf, other) };
        let merged = at.min(i)..=at.max(i);
        // (3) Build the merged leaf. If it would be too large, nothing has been changed: release
        // both locks.
        let fences = fences_around(&mut path, &merged);
        let Some(new) = merged_leaf(shared, &left, &right, fences) else {
            return false;
        };
        // (4) Mark both leaves obsolete before the new one can be reached (I4).
        let old = [left.leaf(), right.leaf()];
        shared.counters.add_leaf(new.memory());
        shared.counters.merged();
        left.mark_obsolete();
        right.mark_obsolete();
        // (5) Publish the merged leaf. The node above loses a separator, so it is replaced.
        let new = ChildSplice::one(ChildAddress::of_new(new));
        let unlinked = self.splice(shared, path, merged, new, guard);
        // (6) Unlock, and retire the old leaves and nodes.
        drop(changing);
        self.retire(shared, unlinked, &old, guard);
        true
    }

    /// Replaces some children of the last node of the path by `new`, and makes the changes above it
    /// that follow. The caller holds `changing`, and retires the leaves among the children.
    ///
    /// From the last node of the path upwards, for each level:
    ///
    /// - (a) If one child replaces one child, store the new address to its slot: that is all. The
    ///   same goes for the root's slot, if the path has no node left.
    /// - (b) Otherwise the separators change, so replace the node by a new one. If it would have
    ///   too many children, make two nodes; if it has too few, join it with a neighbour.
    /// - (c) One level up, the new nodes replace the old ones.
    ///
    /// New nodes copy the counts of the children that stay (`counts`). If a slot takes another
    /// address, the counts on the path to it become stale.
    ///
    /// Returns the unlinked nodes. The caller retires them after it has unlocked `changing`.
    fn splice(
        &self,
        shared: &Shared,
        mut path: TreePath<'_>,
        replaced: RangeInclusive<usize>,
        mut new: ChildSplice,
        guard: &Guard,
    ) -> Unlinked {
        let (mut from, mut to) = replaced.into_inner();
        let mut unlinked = Unlinked::default();
        let has_counts = self.counting.is_on();
        // Odd while nodes are replaced: a writer that sets stale bits meanwhile sets them again.
        self.counting.bump_structure_seq();
        loop {
            let Some(parent) = path.pop() else {
                // The root is being replaced. A single child becomes the new root. Two children get
                // a node above them, and the tree becomes one level higher.
                self.root.store(root_of(shared, new, has_counts));
                break;
            };
            // (a) One child replaces one child: the node stays, and its slot takes the new address.
            // This store publishes all nodes that were built below.
            if new.items.len() == 1 && from == to {
                let child = from;
                let slot = &parent.node.children[child];
                if has_counts {
                    path.push(TreePathNode { child, ..parent });
                    set_stale_bits(&path);
                }
                slot.store(new.items[0].address);
                break;
            }
            // (b) The separators change: build a new node of the children. Readers may still be
            // descending through the old node, so it isn't written to.
            unlinked.push(parent.address);
            shared.counters.remove_node(parent.node.memory());
            let (grown_last, grown_first) = (to + 1 == parent.node.len(), from == 0);
            let mut all = replace_children(parent.node, from, to, new);
            // (c) One level up, the node's own slot is replaced.
            (from, to) = path
                .last()
                .map_or((0, 0), |above| (above.child, above.child));
            if let Some(above) = path.last() {
                if all.items.len() <= fanout(shared) / 4 && above.node.len() > 1 {
                    // The node has few children left. Join it with a neighbour, whose slot is then
                    // replaced, too. The node above has another child, by B8.
                    let other = if from > 0 { from - 1 } else { to + 1 };
                    (from, to) = (from.min(other), to.max(other));
                    unlinked.push(join(shared, above, other, &mut all, guard));
                }
            }
            let cut = split_point(all.items.len(), grown_first, grown_last);
            // A root with a single child is replaced by the child: the tree becomes one level
            // lower.
            new = if path.is_empty() && all.items.len() == 1 {
                all
            } else {
                build_nodes(shared, all, cut, has_counts)
            };
        }
        // Even again.
        self.counting.bump_structure_seq();
        unlinked
    }

    /// Retires the nodes and leaves that a change has unlinked. The caller holds no lock, since
    /// this may free arbitrary garbage.
    fn retire(&self, shared: &Shared, nodes: Unlinked, leaves: &[TreeLeaf<'_>], guard: &Guard) {
        for address in nodes {
            // SAFETY:
            // 1. the store in `splice` has replaced the slot that led to the old nodes, under
            //    `changing`: no slot that can be reached leads to them;
            // 2. each was unlinked from the tree by one `splice`, once.
            unsafe { address.retire_node(guard) };
        }
        leaves
            .iter()
            .for_each(|leaf| self.retire_leaf(shared, *leaf, guard));
    }

    /// Retires an unlinked leaf.
    fn retire_leaf(&self, shared: &Shared, leaf: TreeLeaf<'_>, guard: &Guard) {
        shared.counters.remove_leaf(leaf.memory());
        self.tail.forget(leaf);
        // SAFETY:
        // 1. The callers have marked it obsolete, under its lock, and unlinked it.
        // 2. `forget` has unset the tail if it led to this leaf. `Tail::set` is only called with
        //    new leaves, under `changing`, so it can't lead here again.
        unsafe { leaf.retire(guard) };
    }

    /// Locks a leaf beside the one that the path leads to, under the same node, that uses at most
    /// `capacity` bytes. Also returns its child number. `None` if there is no such leaf whose lock
    /// is free.
    fn lock_neighbour<'g>(
        parent: &TreePathNode<'g>,
        capacity: usize,
        guard: &'g Guard,
    ) -> Option<(LockedTreeLeaf<'g>, usize)> {
        let last = parent.node.len() - 1;
        let left = parent.child.checked_sub(1);
        let right = Some(parent.child + 1).filter(|i| *i <= last);
        // Neighbours under another node are not merged: both nodes would change.
        [left, right].into_iter().flatten().find_map(|i| {
            let TreeChild::Leaf(leaf) = parent.node.children[i].load(guard) else {
                return None;
            };
            // Don't wait for the lock, since `changing` is held (B5).
            let locked = leaf.try_lock().ok().flatten()?;
            // A leaf that is too full is unlocked here, unchanged.
            (locked.live_bytes() <= capacity).then_some((locked, i))
        })
    }
}

/// The most children that a node may have.
fn fanout(shared: &Shared) -> usize {
    shared.config.fanout.min(FANOUT)
}

/// The children and separators of a node, in which `new` replaces the children `from..=to`.
fn replace_children(node: &InnerNode, from: usize, to: usize, new: ChildSplice) -> ChildSplice {
    // Separator `i` is between children `i` and `i + 1`. Those within the replaced range are
    // dropped; those at its two ends stay.
    let mut items: Vec<_> = node.known_children().collect();
    items.splice(from..=to, new.items);
    let mut separators = Separators::default();
    separators.extend(node.separators(), 0..from);
    separators.extend(&new.separators, 0..new.separators.len());
    separators.extend(node.separators(), to..node.separators().len());
    ChildSplice { items, separators }
}

/// Where to cut a node of `n` children, if it has to be split: in the middle. If the change was at
/// its first or last child, the table probably grows at that end: leave a nearly full node behind.
fn split_point(n: usize, grown_first: bool, grown_last: bool) -> usize {
    match (grown_first, grown_last) {
        (false, true) => n * 7 / 8,
        (true, false) => n / 8,
        _ => n / 2,
    }
}

/// The root of these children: the only child, or a new node of several.
fn root_of(shared: &Shared, new: ChildSplice, has_counts: bool) -> ChildAddress<InnerNode> {
    if let [child] = new.items[..] {
        return child.address;
    }
    build_node(shared, &new.items, new.separators, has_counts)
}

/// Builds a node.
fn build_node(
    shared: &Shared,
    items: &[Child],
    separators: Separators,
    has_counts: bool,
) -> ChildAddress<InnerNode> {
    debug_assert!(items.len() >= 2, "B8");
    let node = InnerNode::new(items, separators, has_counts);
    shared.counters.add_node(node.memory());
    ChildAddress::of_node(node)
}

/// Builds one node of all children, or two if they are too many for one. They are then cut near
/// `cut`, and each node gets at least two children (B8).
fn build_nodes(shared: &Shared, all: ChildSplice, cut: usize, has_counts: bool) -> ChildSplice {
    let (n, most) = (all.items.len(), fanout(shared));
    if n <= most {
        // They fit in one node.
        return ChildSplice::one(build_node(shared, &all.items, all.separators, has_counts));
    }
    // Neither node may have more than `most` children, nor less than two.
    let cut = cut.clamp(n.saturating_sub(most).max(2), most.min(n - 2));
    let (mut left, mut right, mut between) = (
        Separators::default(),
        Separators::default(),
        Separators::default(),
    );
    // The separator at the cut moves up a level, between the two nodes.
    left.extend(&all.separators, 0..cut - 1);
    between.extend(&all.separators, cut - 1..cut);
    right.extend(&all.separators, cut..all.separators.len());
    let left = build_node(shared, &all.items[..cut], left, has_counts);
    let right = build_node(shared, &all.items[cut..], right, has_counts);
    ChildSplice {
        items: vec![Child::new(left), Child::new(right)],
        separators: between,
    }
}

/// Adds the children of a neighbour to `all`, on the left or on the right. The neighbour is child
/// `other` of `above`. Returns its address.
fn join(
    shared: &Shared,
    above: &TreePathNode<'_>,
    other: usize,
    all: &mut ChildSplice,
    guard: &Guard,
) -> ChildAddress<InnerNode> {
    // `changing` is held, so the slot can't change before the neighbour is replaced.
    let (address, child) = above.node.children[other].load_with_address(guard);
    let TreeChild::Node(neighbour) = child else {
        unreachable!("the children of one node are all nodes or all leaves")
    };
    shared.counters.remove_node(neighbour.memory());
    // The separator between the two nodes moves down a level.
    let between = above.node.separators().get(other.min(above.child));
    let sparse = ChildSplice {
        items: std::mem::take(&mut all.items),
        separators: std::mem::take(&mut all.separators),
    };
    // Copies: readers may still be descending through the neighbour.
    let beside = ChildSplice {
        items: neighbour.known_children().collect(),
        separators: neighbour.separators().clone(),
    };
    let (left, right) = if other < above.child {
        (beside, sparse)
    } else {
        (sparse, beside)
    };
    // Left children, the separator between the two nodes, right children.
    *all = left;
    all.items.extend(right.items);
    all.separators.push(between);
    all.separators
        .extend(&right.separators, 0..right.separators.len());
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::BPlusTree;
    use crate::contention::CONTENTION_BOUND;
    use crate::{pin, LeafConfig};

    /// Leaves at which writers often wait merge when they are emptied, too. So a step passes few.
    #[test]
    fn contended_leaves_that_are_emptied_merge() {
        let tree = BPlusTree::new(LeafConfig::tiny());
        let keys: Vec<_> = (0..10_000u32).map(u32::to_be_bytes).collect();
        for key in &keys {
            tree.put(&pin(), key, b"value", &mut |_| true);
        }
        let before = tree.stats().leaves;
        let (last, others) = keys.split_last().unwrap();
        for key in others {
            let guard = pin();
            let found = tree.inner.find(SearchKey::new(key), &guard).lock();
            found.unwrap().0.add_contention(CONTENTION_BOUND);
            tree.remove(&guard, key, &mut |_| true);
        }
        let after = tree.stats().leaves;
        assert!(after <= 3, "{before} leaves, then {after}");
        assert!(tree.contains(&pin(), last));
    }
}

//! Changes of the B+-tree's structure: a leaf is replaced, split, or merged with a neighbour.
//!
//! ```text
//!  split of leaf B     [ s | t ]                [ s | u | t ]       a new node, or one slot's store
//!                     /    |    \      →       /   |   |    \
//!                    A     B     C            A   B'   B"   C
//! ```
//!
//! 1. The leaf is locked by the caller; for a merge its neighbour is, too, if that is free.
//! 2. `changing` is taken. The path to the leaf can't change now.
//! 3. New leaves are made. Nobody can reach them yet.
//! 4. The old leaves are marked obsolete, which unlocks them for good. A thread that finds one from
//!    here on begins again. This is the linearisation point of the write that caused the change.
//! 5. A node whose separators change is replaced by a new one, and so on upwards, until one slot
//!    need only take another address. The store to that slot publishes all (`splice`).
//! 6. `changing` is let go of. Then what went is retired.
//!
//! Invariants:
//! 1. A thread that holds `changing` never waits for a leaf's lock: it holds those of the leaves
//!    that go, and only tries for others. So there is no circle of waiting.
//! 2. An old leaf is obsolete before its successors can be reached: no position lies in the ranges
//!    of two leaves that can be reached and are not obsolete.
//! 3. One store publishes a change. Before it no reader sees any of the new nodes; a descent that
//!    begins after it sees none of the old ones.
//! 4. Under `changing`, the path to a position of a locked leaf that is not obsolete leads to that
//!    leaf.
//! 5. A node has two children at least: two parts of a node are made with as many, and one that is
//!    down to one joins a neighbour, or is the root and goes. Else an empty leaf whose node has no
//!    other could never merge, and its node would stay with it.
//!
//! Source: the splits and merges of Bayer and McCreight 1972, made bottom-up. Deviations: nodes are
//! replaced, not changed, so readers need no version of them; leaves merge when both fit in half a
//! leaf, nodes when one has a quarter of its children, so that neither splits again at once.

use super::FANOUT;
use crate::btree::entries::Entries;
use crate::btree::inner::{fences, InnerLevels, TreePath, TreeStep};
use crate::btree::leaf::{LockedTreeLeaf, NewTreeLeaf, TreeLeaf};
use crate::btree::node::{Child, InnerNode, Separators};
use crate::btree::prefix::{common, Prefix};
use crate::btree::run::with_run;
use crate::btree::search_key::SearchKey;
use crate::btree::slot::{ChildAddress, TreeChild};
use crate::btree::stale::mark_path;
use crate::shared::Shared;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// Nodes that are in the tree no more.
type Gone = SmallVec<[ChildAddress<InnerNode>; 8]>;

/// What takes the place of neighbouring children: with a separator between each two.
struct Splice {
    items: Vec<Child>,
    separators: Separators,
}

impl Splice {
    /// One child, which nobody has counted.
    fn one(item: ChildAddress<InnerNode>) -> Splice {
        Splice {
            items: vec![Child::new(item)],
            separators: Separators::default(),
        }
    }
}

/// The shortest run of bytes above `a` and not above `b`, given `a` < `b`.
fn separator<'b>(a: &[u8], b: &'b [u8]) -> &'b [u8] {
    &b[..(common(a, b) + 1).min(b.len())]
}

impl InnerLevels {
    /// Puts `new`, of the same range, in the place of the leaf.
    pub(super) fn replace(
        &self,
        shared: &Shared,
        leaf: LockedTreeLeaf<'_>,
        position: SearchKey<'_>,
        new: NewTreeLeaf,
        guard: &Guard,
    ) {
        let old = leaf.leaf();
        // The new leaf was made before any lock but the old leaf's was taken.
        shared.counters.leaf_came(new.memory());
        // (2)
        let changing = self.changing.lock();
        let (path, found) = self.path(guard, |node| node.child_of(position, false));
        debug_assert!(found.is(old), "the path to a locked leaf leads to it");
        let at = path.last().map_or(0, |s| s.child);
        // Only the last leaf has no upper fence: inserts at its end find the new one by the tail.
        let (low, high) = fences(&path);
        let goes_on = leaf.appends() && high.is_none();
        // (4) Waiting writers and readers give up and descend; they find the old leaf until (5).
        leaf.obsolete();
        // (5)
        let new = ChildAddress::of_new(new);
        let gone = self.splice(shared, path, (at, at), Splice::one(new), guard);
        // Under `changing`, so that no other change can retire the leaf before it is the tail.
        if goes_on {
            self.tail.set(new, low);
        }
        // (6)
        drop(changing);
        self.retire(shared, gone, &[old], guard);
    }

    /// Splits the leaf. `entries` are those of its successors: the leaf's own with the change that
    /// had no room, at least two. `at` is where to cut them, if they come from a run of inserts;
    /// without it both successors get about the same number of bytes.
    pub(super) fn split(
        &self,
        shared: &Shared,
        leaf: LockedTreeLeaf<'_>,
        position: SearchKey<'_>,
        entries: &Entries,
        at: Option<usize>,
        guard: &Guard,
    ) {
        let old = leaf.leaf();
        let n = entries.len();
        // A run of inserts goes on beside the cut. The successor on that side gets as much capacity
        // as a leaf may have. The other one gets no more inserts, and just the capacity it needs.
        let runs_on = at.filter(|&at| at > 0 && at < n);
        let descends = leaf.descends();
        let cut = runs_on.unwrap_or_else(|| entries.middle());
        // The separator is the shortest run of bytes that tells the two sides apart: above the last
        // position on the left, not above the first one on the right.
        let above = entries.position(&leaf, cut);
        let separator = separator(&entries.position(&leaf, cut - 1), &above);
        // (2) What has been looked at so far is the locked leaf's own, and needs no other lock.
        let changing = self.changing.lock();
        let (path, found) = self.path(guard, |node| node.child_of(position, false));
        debug_assert!(found.is(old), "the path to a locked leaf leads to it");
        // (3) The fences of the old leaf and the separator give the prefixes of both.
        let (low, high) = fences(&path);
        let part = |range: std::ops::Range<usize>, fences: Prefix<'_>, is_left: bool| {
            let prefix = entries.prefix(&leaf, range.clone(), fences);
            let need = entries.sizes(range.clone(), prefix.len() - old.prefix_len());
            // `goes_on`: the run of inserts will go on in this successor. A run that descends goes
            // on at the end of the left one, any other at the start of the right one.
            let (first, goes_on) = (range.start, is_left == descends);
            let capacity = match runs_on {
                None => shared.config.capacity_for(need, prefix.len()),
                Some(_) if goes_on => shared.config.most_beside(prefix.len()).max(need),
                Some(_) => need,
            };
            let new = entries.build(&leaf, range, capacity, &prefix);
            // The run's statistics go to this leaf, with the slot of the last insert. So the next
            // insert of the run looks beside that slot first, and needs no search.
            if runs_on.is_some() && goes_on {
                let at = if descends { cut - 1 } else { cut };
                new.inherit_at(old, at - first);
            }
            shared.counters.leaf_came(new.memory());
            ChildAddress::of_new(new)
        };
        let left = part(0..cut, Prefix::of_fences(low, Some(separator)), true);
        let right = part(cut..n, Prefix::of_fences(Some(separator), high), false);
        // A run at the end of the last leaf: the right successor will be the tail.
        let goes_on = runs_on.is_some() && !descends && high.is_none();
        shared.counters.split();
        let at = path.last().map_or(0, |s| s.child);
        // (4) The linearisation point. Nobody reads the range until (5) has published the
        // successors: threads that find the old leaf search again from the root.
        leaf.obsolete();
        // (5) Two children for one: the node above has a separator more, so it is replaced.
        let mut new = Splice {
            items: vec![Child::new(left), Child::new(right)],
            separators: Separators::default(),
        };
        new.separators.push(separator);
        let gone = self.splice(shared, path, (at, at), new, guard);
        if goes_on {
            self.tail.set(right, Some(separator));
        }
        // (6)
        drop(changing);
        self.retire(shared, gone, &[old], guard);
    }

    /// Merges the leaf with a neighbour, if both fit in half a leaf and no other is at work there.
    /// Whether it did.
    pub(super) fn merge(
        &self,
        shared: &Shared,
        leaf: LockedTreeLeaf<'_>,
        position: SearchKey<'_>,
        guard: &Guard,
    ) -> bool {
        let Some(capacity) = (shared.config.most / 2).checked_sub(leaf.used()) else {
            return false;
        };
        // The only leaf has no neighbour; a small table needs no lock to know. If
        // the root is a leaf, it is this one, which nobody else can split while it is locked.
        if let TreeChild::Leaf(_) = self.root.load(guard) {
            return false;
        }
        // (2)
        let changing = self.changing.lock();
        let (mut path, _) = self.path(guard, |node| node.child_of(position, false));
        let Some(step) = path.last_mut() else {
            return false;
        };
        // Children of another node are no neighbours here: their separator lies further up.
        let at = step.child;
        let Some((other, i)) = Self::beside(step, capacity, guard) else {
            return false;
        };
        // (3) Both must fit in half a leaf. The common prefix gets shorter: the room that this
        // takes is counted.
        let (left, right) = if i < at { (other, leaf) } else { (leaf, other) };
        // The united range goes from the lower fence of the left one to the upper of the right one.
        let (from, to) = (at.min(i), at.max(i));
        step.child = from;
        let (low, _) = fences(&path);
        if let Some(step) = path.last_mut() {
            step.child = to;
        }
        let (_, high) = fences(&path);
        let fences = Prefix::of_fences(low, high);
        let new = with_run(|run| {
            left.collect_all(run);
            right.collect_all(run);
            // Both leaves may be empty: then nothing is in common but what the fences give.
            let prefix = match run.len() {
                0 => fences,
                n => fences.extended(run.position(0), run.position(n - 1)),
            };
            let need = run.sizes(0..run.len(), prefix.len());
            let capacity = shared.config.capacity_for(need, prefix.len());
            (need <= shared.config.most / 2)
                .then(|| NewTreeLeaf::build(run, 0..run.len(), capacity, &prefix))
        });
        // Nothing was changed so far: both locks are let go of, and the leaves stay.
        let Some(new) = new else {
            return false;
        };
        // (4) Both, before the new leaf can be reached (invariant 2).
        let old = [left.leaf(), right.leaf()];
        shared.counters.leaf_came(new.memory());
        shared.counters.merged();
        left.obsolete();
        right.obsolete();
        // (5)
        let new = Splice::one(ChildAddress::of_new(new));
        let gone = self.splice(shared, path, (from, to), new, guard);
        // (6)
        drop(changing);
        self.retire(shared, gone, &old, guard);
        true
    }

    /// Puts `new` in the place of children `from..=to` of the last node of the path, and what
    /// follows from that above it. The caller holds `changing`, and retires the leaves among the
    /// children.
    ///
    /// From the last node of the path upwards, level by level:
    ///
    /// 1. If one child takes the place of one, its slot takes the new address, and all is done. So
    ///    does the root's slot, if the path has no node left.
    /// 2. Otherwise the node is replaced by a new one: by two if it would have too many children,
    ///    and together with a neighbour if it has too few.
    /// 3. The new nodes are what takes the place of the old ones one level up.
    ///
    /// New nodes copy the counts of the children that stay (`counts`). Where a slot takes another
    /// address, the counts on the path to it become stale.
    ///
    /// Gives the nodes that went, which the caller retires when it has let go of `changing`.
    fn splice(
        &self,
        shared: &Shared,
        mut path: TreePath<'_>,
        (mut from, mut to): (usize, usize),
        mut new: Splice,
        guard: &Guard,
    ) -> Gone {
        let mut gone = Gone::default();
        let has_counts = self.counting.is_on();
        self.counting.change_shape();
        loop {
            let Some(step) = path.pop() else {
                // The root was replaced, or was a leaf. One child is the new root; two get a node
                // above them, and the tree is one level higher.
                self.root.store(one(shared, new, has_counts));
                break;
            };
            // (1) One child for one: its slot takes the new address, and the node stays. This store
            // publishes all nodes that were made below.
            if new.items.len() == 1 && from == to {
                let child = from;
                let slot = &step.node.children[child];
                if has_counts {
                    path.push(TreeStep { child, ..step });
                    mark_path(&path);
                }
                slot.store(new.items[0].address);
                break;
            }
            // (2) Otherwise separators change: the node goes, with its children in new ones.
            // Readers may be on it still, so none of it is written.
            gone.push(step.address);
            shared.counters.node_went(step.node.memory());
            let (grown_last, grown_first) = (to + 1 == step.node.len(), from == 0);
            let mut all = with_new(step.node, from, to, new);
            // (3) One level up: the node's own place there, and that of a neighbour which it joins.
            (from, to) = path
                .last()
                .map_or((0, 0), |above| (above.child, above.child));
            if let Some(above) = path.last() {
                if all.items.len() <= fanout(shared) / 4 && above.node.len() > 1 {
                    // A neighbour under the same node, of which there is one.
                    let other = if from > 0 { from - 1 } else { to + 1 };
                    (from, to) = (from.min(other), to.max(other));
                    gone.push(join(shared, above, other, &mut all, guard));
                }
            }
            // Where a table grows at one end, what is left behind is nearly full. `grown_last` and
            // `grown_first`: the change was at the node's last child, or its first.
            let cut = match (grown_first, grown_last) {
                (false, true) => all.items.len() * 7 / 8,
                (true, false) => all.items.len() / 8,
                _ => all.items.len() / 2,
            };
            // A root with one child is its child: the tree is one level lower.
            new = if path.is_empty() && all.items.len() == 1 {
                all
            } else {
                nodes(shared, all, cut, has_counts)
            };
        }
        self.counting.change_shape();
        gone
    }

    /// Retires what a change took out: after it let go of all locks, since the end of what the
    /// epoch frees may be anything.
    fn retire(&self, shared: &Shared, nodes: Gone, leaves: &[TreeLeaf<'_>], guard: &Guard) {
        for address in nodes {
            // SAFETY: 1. new nodes were published under `changing`, which was held until then: no
            // slot that can be reached leads to the old ones; 2. each was taken out of the tree by
            // one `splice`, once.
            unsafe { address.retire_node(guard) };
        }
        leaves
            .iter()
            .for_each(|leaf| self.retire_leaf(shared, *leaf, guard));
    }

    /// Retires a leaf that went.
    fn retire_leaf(&self, shared: &Shared, leaf: TreeLeaf<'_>, guard: &Guard) {
        shared.counters.leaf_went(leaf.memory());
        self.tail.forget(leaf);
        // SAFETY: the callers have marked it obsolete, under its lock, and unlinked it; nor is it
        // the tail, which only becomes a leaf that is new.
        unsafe { leaf.retire(guard) };
    }

    /// A leaf beside the one that the path leads to, under the same node, that uses at most
    /// `capacity`: locked, and with its child number. None if there is no such leaf, or another
    /// thread has its lock.
    fn beside<'g>(
        step: &TreeStep<'g>,
        capacity: usize,
        guard: &'g Guard,
    ) -> Option<(LockedTreeLeaf<'g>, usize)> {
        let last = step.node.len() - 1;
        let left = step.child.checked_sub(1);
        let right = Some(step.child + 1).filter(|i| *i <= last);
        [left, right].into_iter().flatten().find_map(|i| {
            let TreeChild::Leaf(leaf) = step.node.children[i].load(guard) else {
                return None;
            };
            // Only tried, as `changing` is held (invariant 1). A leaf that somebody works on isn't
            // worth a wait.
            let locked = leaf.try_lock().ok().flatten()?;
            (locked.used() <= capacity).then_some((locked, i))
        })
    }
}

/// Children of a node, at most.
fn fanout(shared: &Shared) -> usize {
    shared.config.fanout.min(FANOUT)
}

/// The children of a node, with others in the place of `from..=to`.
fn with_new(node: &InnerNode, from: usize, to: usize, new: Splice) -> Splice {
    // Separator `i` stands between children `i` and `i + 1`: those within the replaced range go,
    // the ones at its two ends stay.
    let mut items: Vec<_> = node.known_children().collect();
    items.splice(from..=to, new.items);
    let mut separators = Separators::default();
    separators.extend(node.separators(), 0..from);
    separators.extend(&new.separators, 0..new.separators.len());
    separators.extend(node.separators(), to..node.separators().len());
    Splice { items, separators }
}

/// One address for all: the only item, or a node of them.
fn one(shared: &Shared, new: Splice, has_counts: bool) -> ChildAddress<InnerNode> {
    if let [child] = new.items[..] {
        return child.address;
    }
    node(shared, &new.items, new.separators, has_counts)
}

fn node(
    shared: &Shared,
    items: &[Child],
    separators: Separators,
    has_counts: bool,
) -> ChildAddress<InnerNode> {
    debug_assert!(items.len() >= 2, "invariant 5");
    let node = InnerNode::new(items, separators, has_counts);
    shared.counters.node_came(node.memory());
    ChildAddress::of_node(node)
}

/// A node of all, or two if they are too many for one, cut about there, with two children each at
/// least (invariant 5).
fn nodes(shared: &Shared, all: Splice, cut: usize, has_counts: bool) -> Splice {
    let (n, most) = (all.items.len(), fanout(shared));
    if n <= most {
        return Splice::one(node(shared, &all.items, all.separators, has_counts));
    }
    // Neither part may have more children than a node has room for, nor less than two.
    let cut = cut.clamp(n.saturating_sub(most).max(2), most.min(n - 2));
    let (mut left, mut right, mut between) = (
        Separators::default(),
        Separators::default(),
        Separators::default(),
    );
    // The separator at the cut goes up a level: it stands between the two nodes.
    left.extend(&all.separators, 0..cut - 1);
    between.extend(&all.separators, cut - 1..cut);
    right.extend(&all.separators, cut..all.separators.len());
    let left = node(shared, &all.items[..cut], left, has_counts);
    let right = node(shared, &all.items[cut..], right, has_counts);
    Splice {
        items: vec![Child::new(left), Child::new(right)],
        separators: between,
    }
}

/// Adds the children of a neighbour, child `other` of `above`, on the left or on the right. Returns
/// the neighbour's address.
fn join(
    shared: &Shared,
    above: &TreeStep<'_>,
    other: usize,
    all: &mut Splice,
    guard: &Guard,
) -> ChildAddress<InnerNode> {
    // Under `changing` the slot can't take another address before the neighbour is retired.
    let (address, child) = above.node.children[other].load_with_address(guard);
    let TreeChild::Node(neighbour) = child else {
        unreachable!("the children of one node are all nodes or all leaves")
    };
    shared.counters.node_went(neighbour.memory());
    // The separator between both comes down a level: above it there is one child now.
    let between = above.node.separators().get(other.min(above.child));
    // On whichever side it lies, the result is left, separator, right.
    let own = Splice {
        items: std::mem::take(&mut all.items),
        separators: std::mem::take(&mut all.separators),
    };
    let beside = Splice {
        items: neighbour.known_children().collect(),
        separators: neighbour.separators().clone(),
    };
    let (left, right) = if other < above.child {
        (beside, own)
    } else {
        (own, beside)
    };
    *all = left;
    all.items.extend(right.items);
    all.separators.push(between);
    all.separators
        .extend(&right.separators, 0..right.separators.len());
    address
}

//! The inner levels of the B+-tree: the path to its leaves.
//!
//! ```text
//!              [ sep | sep ]                 inner nodes: separators never change, child slots may
//!             /      |      \
//!      [ sep ]    [ sep ]   [ sep ]
//!      /     \
//!   leaf     leaf   …                        leaves: see `leaf`
//! ```
//!
//! Invariants (docs/design.md §4.4):
//! * B2: The range of a leaf, which is given by the separators on the path to it (B1), never
//!   changes.
//! * B4: Separators of a published node never change. A change of structure replaces nodes from the
//!   leaves upwards, up to a level where only the address in one slot changes.
//! * B5: Changes of structure are made one at a time, under `changing`. Whoever holds it waits for
//!   no leaf.
//!
//! A reader that descends through an old node finds an old leaf. If that leaf isn't obsolete, it
//! has the range that the old node says.
//!
//! Deviation: leaves are not linked. A scan continues by descending to the fence at which it
//! stopped.

use crate::btree::counts::Counting;
use crate::btree::leaf::{NewTreeLeaf, TreeLeaf};
use crate::btree::node::InnerNode;
use crate::btree::prefix::Prefix;
use crate::btree::search_key::SearchKey;
use crate::btree::slot::{ChildAddress, ChildSlot, TreeChild};
use crate::btree::tail::Tail;
use crate::shared::Shared;
use crate::sync::Mutex;
use crossbeam_epoch::Guard;
use smallvec::SmallVec;

/// The inner levels of a B+-tree: everything above the leaves.
pub(crate) struct InnerLevels {
    pub(super) root: ChildSlot<InnerNode>,
    /// The last leaf, while inserts append to it.
    pub(super) tail: Tail,
    /// Held during a change of structure.
    pub(super) changing: Mutex<()>,
    /// The state of the counts of entries.
    pub(super) counting: Counting,
}

/// Which leaf a descent leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seek<'a> {
    First,
    Last,
    /// The one whose range has the position.
    At(&'a [u8]),
    /// The one whose range has the last position below this one.
    Before(&'a [u8]),
}

/// One end of a leaf's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeEnd {
    /// The first position of the range.
    Low,
    /// The first position after the range.
    High,
}

/// A leaf and the fence at one end of its range; `None` if the range is unbounded there.
pub(super) struct FencedLeaf<'g> {
    pub(super) leaf: TreeLeaf<'g>,
    pub(super) fence: Option<&'g [u8]>,
}

/// A node on the path from the root to a leaf, and the number of the child on the path.
pub(super) struct TreePathNode<'g> {
    pub(super) address: ChildAddress<InnerNode>,
    pub(super) node: &'g InnerNode,
    pub(super) child: usize,
}

/// The path from the root to a leaf.
pub(super) type TreePath<'g> = SmallVec<[TreePathNode<'g>; 8]>;

/// The lower and the upper fence of the leaf that a path leads to.
pub(super) fn fences<'g>(path: &[TreePathNode<'g>]) -> (Option<&'g [u8]>, Option<&'g [u8]>) {
    // The lower fence is the separator before the child, on the lowest level where the path doesn't
    // go to a first child. The upper one is the mirror image.
    let low = path.iter().rev().find_map(|s| s.node.low(s.child));
    let high = path.iter().rev().find_map(|s| s.node.high(s.child));
    (low, high)
}

impl InnerLevels {
    /// A tree of one leaf.
    pub(crate) fn new(shared: &Shared) -> InnerLevels {
        // A single leaf has no fences, and so no prefix.
        let leaf = NewTreeLeaf::empty(shared.config.first, &Prefix::of_fences(None, None));
        shared.counters.add_leaf(leaf.memory());
        InnerLevels {
            root: ChildSlot::new(ChildAddress::of_new(leaf)),
            tail: Tail::default(),
            changing: Mutex::new(()),
            counting: Counting::default(),
        }
    }

    /// The path to the leaf that `choose` leads to.
    pub(super) fn path<'g>(
        &self,
        guard: &'g Guard,
        choose: impl Fn(&InnerNode) -> usize,
    ) -> (TreePath<'g>, TreeLeaf<'g>) {
        let mut path = TreePath::new();
        let mut slot = &self.root;
        loop {
            // Get the address and the child from one load, since the slot may change between two.
            let (address, child) = slot.load_with_address(guard);
            match child {
                TreeChild::Leaf(leaf) => return (path, leaf),
                // The child's number stays true: the separators of a published node never change
                // (B4).
                TreeChild::Node(node) => {
                    node.prefetch();
                    let child = choose(node);
                    path.push(TreePathNode {
                        address,
                        node,
                        child,
                    });
                    slot = &node.children[child];
                }
            }
        }
    }

    /// The leaf whose range has the position. It may be obsolete by now; the caller then retries.
    #[inline(always)]
    pub(super) fn find<'g>(&self, position: SearchKey<'_>, guard: &'g Guard) -> TreeLeaf<'g> {
        // The descent needs no validation. Nodes are immutable except for their child slots. If a
        // node has been replaced meanwhile, it still leads to leaves that have the range that it
        // says, or are obsolete.
        let mut child = self.root.load(guard);
        loop {
            match child {
                TreeChild::Leaf(leaf) => {
                    // Prefetch the head and the samples, which the search in the leaf reads first.
                    leaf.prefetch();
                    return leaf;
                }
                TreeChild::Node(node) => {
                    node.prefetch();
                    child = node.children[node.child_for(position)].load(guard);
                }
            }
        }
    }

    /// The only leaf, if the root is a leaf. It may be obsolete.
    #[inline]
    pub(super) fn only_leaf<'g>(&self, guard: &'g Guard) -> Option<TreeLeaf<'g>> {
        match self.root.load(guard) {
            TreeChild::Leaf(leaf) => Some(leaf),
            TreeChild::Node(_) => None,
        }
    }

    /// The first or the last leaf. It may be obsolete by now; the caller then retries.
    #[inline]
    pub(super) fn find_edge<'g>(&self, end: RangeEnd, guard: &'g Guard) -> TreeLeaf<'g> {
        self.descend(guard, |node| match end {
            RangeEnd::Low => 0,
            RangeEnd::High => node.separators().len(),
        })
    }

    /// The leaf under the child that `choose` picks of each node on the path. It may be obsolete.
    #[inline]
    pub(super) fn descend<'g>(
        &self,
        guard: &'g Guard,
        mut choose: impl FnMut(&InnerNode) -> usize,
    ) -> TreeLeaf<'g> {
        // Each slot is loaded once. What it leads to may be replaced afterwards, which the caller
        // notices by the leaf.
        let mut child = self.root.load(guard);
        loop {
            match child {
                TreeChild::Leaf(leaf) => return leaf,
                TreeChild::Node(node) => child = node.children[choose(node)].load(guard),
            }
        }
    }

    /// A leaf, and one end of its range if it isn't obsolete.
    pub(super) fn find_fenced<'g>(
        &self,
        seek: Seek<'_>,
        end: RangeEnd,
        guard: &'g Guard,
    ) -> FencedLeaf<'g> {
        let (mut slot, mut fence) = (&self.root, None);
        loop {
            let node = match slot.load(guard) {
                TreeChild::Leaf(leaf) => return FencedLeaf { leaf, fence },
                TreeChild::Node(node) => node,
            };
            node.prefetch();
            let child = match seek {
                // `separators` has one entry less than there are children, so its length is the
                // number of the last child.
                Seek::First => 0,
                Seek::Last => node.separators().len(),
                Seek::At(p) => node.child_for(SearchKey::new(p)),
                Seek::Before(p) => node.child_before(SearchKey::new(p)),
            };
            // The fence is a separator beside the child, as far down as there is one.
            let nearer = match end {
                RangeEnd::Low => node.low(child),
                RangeEnd::High => node.high(child),
            };
            (slot, fence) = (&node.children[child], nearer.or(fence));
        }
    }

    /// The number of levels above the leaves.
    pub(super) fn depth(&self, guard: &Guard) -> usize {
        self.path(guard, |_| 0).0.len()
    }
}

impl Drop for InnerLevels {
    fn drop(&mut self) {
        let mut todo: Vec<ChildAddress<InnerNode>> = self.root.address().into_iter().collect();
        while let Some(address) = todo.pop() {
            // SAFETY: the tree is dropped: nobody else can use it.
            match unsafe { address.child() } {
                // SAFETY: as above; one slot leads to each leaf.
                TreeChild::Leaf(leaf) => unsafe { leaf.free_all() },
                TreeChild::Node(node) => {
                    todo.extend(node.addresses());
                    // SAFETY: as above; its children are noted.
                    drop(unsafe { address.take_node() });
                }
            }
        }
    }
}

//! A node of the relaxed AVL tree, and its version.
//!
//! ```text
//!   version   ...count | unlinked | shrinking
//! ```
//!
//! The keys of a node are those whose search passes through it. A rotation that moves the node down
//! takes keys away. Meanwhile the node is *shrinking*, and afterwards the count is greater. An
//! unlinked node has no keys, and stays so. If a node gets additional keys, no search is affected,
//! and the version doesn't change.

use crate::position::spilled;
use crate::raw::slot::Slot;
use crate::word::Word;
use crate::Position;
use larder_index::sync::atomic::{AtomicU64, Ordering};
use larder_index::sync::{planted, Fault, Mutex};
use larder_index::Guard;
use std::sync::atomic::AtomicU32;
use std::sync::Arc;

const SHRINKING: u64 = 1;
const UNLINKED: u64 = 2;
const CHANGED: u64 = 4;

pub(super) struct RelaxedAvlNode<W: Word> {
    pub(super) position: Position,
    /// The word. Empty in a route.
    pub(super) word: Slot<W>,
    pub(super) kids: [Slot<Self>; 2],
    /// The generation of the tree in which the node was made. A node of an earlier generation than
    /// the tree's belongs to a clone, and is immutable.
    pub(super) born: u64,
    version: AtomicU64,
    height: AtomicU32,
    /// Held by a thread that changes the node.
    pub(super) lock: Mutex<()>,
}

/// The repair that a node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    Nothing,
    /// Its height is wrong. This is the right one.
    Height(u32),
    /// The subtree on this side is higher than the other by two or more.
    Leans(usize),
    /// It has no word and at most one child.
    Useless,
}

pub(super) fn same<T>(a: Option<&T>, b: Option<&T>) -> bool {
    a.map(std::ptr::from_ref) == b.map(std::ptr::from_ref)
}

pub(super) fn height<W: Word>(node: Option<&RelaxedAvlNode<W>>) -> u32 {
    node.map_or(0, RelaxedAvlNode::height)
}

impl<W: Word> RelaxedAvlNode<W> {
    pub(super) fn new(position: Position, word: Option<Arc<W>>, born: u64) -> Self {
        RelaxedAvlNode {
            position,
            word: Slot::new(word),
            kids: [Slot::new(None), Slot::new(None)],
            born,
            version: AtomicU64::new(0),
            height: AtomicU32::new(1),
            lock: Mutex::new(()),
        }
    }

    /// A copy of the node for a later generation. The node itself is immutable, so the copy is
    /// consistent.
    pub(super) fn copy(&self, born: u64, guard: &Guard) -> Self {
        RelaxedAvlNode {
            // Not a clone, which would make room for a power of two: `bytes` counts the room.
            position: Position::from_slice(&self.position),
            word: Slot::new(self.word.share(guard)),
            kids: [0, 1].map(|side| Slot::new(self.kids[side].share(guard))),
            born,
            version: AtomicU64::new(0),
            height: AtomicU32::new(self.height()),
            lock: Mutex::new(()),
        }
    }

    pub(super) fn kid<'g>(&'g self, side: usize, guard: &'g Guard) -> Option<&'g Self> {
        self.kids[side].load(guard)
    }

    /// The side on which another node is the child. `None` if it isn't a child.
    pub(super) fn side_of(&self, kid: &Self, guard: &Guard) -> Option<usize> {
        [0, 1]
            .into_iter()
            .find(|&side| same(self.kid(side, guard), Some(kid)))
    }

    pub(super) fn height(&self) -> u32 {
        // Ordering: Relaxed. A height is a hint, and is checked again under the lock.
        self.height.load(Ordering::Relaxed)
    }

    /// Sets the height. The node is locked, and of the tree's generation.
    pub(super) fn set_height(&self, height: u32) {
        // Ordering: Relaxed, as above.
        self.height.store(height, Ordering::Relaxed);
    }

    /// The height that follows from the heights of its children.
    pub(super) fn true_height(&self, guard: &Guard) -> u32 {
        height(self.kid(0, guard)).max(height(self.kid(1, guard))) + 1
    }

    pub(super) fn version(&self) -> u64 {
        // Ordering: Acquire, pairs with the Release stores of `shrink` and `unlink`. Children are
        // loaded by Acquire loads, too. So a version that is loaded after a child can't be older
        // than the child.
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn is_unlinked(&self) -> bool {
        self.version() & UNLINKED != 0
    }

    /// Whether a search may enter a node of this version.
    pub(super) fn admits(version: u64) -> bool {
        version & (SHRINKING | UNLINKED) == 0
    }

    /// Calls `change`, which changes the children, while searches don't enter the node. The node is
    /// locked.
    pub(super) fn shrink(&self, change: impl FnOnce()) {
        if planted(Fault::Unshrunk) {
            return change();
        }
        let version = self.version();
        // Ordering: AcqRel. The later stores of children are Release stores, which aren't moved
        // before this. So a search that has loaded a changed child sees that the node is shrinking
        // when it validates.
        self.version.swap(version | SHRINKING, Ordering::AcqRel);
        change();
        // Ordering: Release, pairs with `version`: a search that loads the new version sees the
        // change.
        self.version.store(version + CHANGED, Ordering::Release);
    }

    /// Marks the node as unlinked. It is locked.
    pub(super) fn unlink(&self) {
        // Ordering: Release, as in `shrink`.
        self.version
            .store(self.version() | UNLINKED, Ordering::Release);
    }

    /// If the version says that the node is shrinking, waits until it isn't.
    pub(super) fn wait(&self, version: u64) {
        const SPINS: usize = if cfg!(larder_model) { 1 } else { 100 };
        // The flag is set for a few stores, while a node moves down in a rotation.
        if version & SHRINKING == 0 {
            return;
        }
        // Most rotations end within the spins, without any write to the line of the lock.
        for _ in 0..SPINS {
            if self.version() != version {
                return;
            }
            std::hint::spin_loop();
        }
        // The rotating thread holds the lock until the end, so wait for the lock.
        drop(self.lock.lock());
    }

    /// The repair that the node needs. Without the lock this is an estimate. It is exact if the
    /// node is locked, and no thread changes the heights of its children.
    pub(super) fn damage(&self, guard: &Guard) -> Damage {
        let kids = [self.kid(0, guard), self.kid(1, guard)];
        // Check this first: a node that will be unlinked needs no rotation.
        if kids.iter().any(Option::is_none) && self.word.load(guard).is_none() {
            return Damage::Useless;
        }
        let [left, right] = kids.map(height);
        let true_height = left.max(right) + 1;
        // The leaning side is the higher one. A difference of one is allowed (invariant of AVL
        // trees).
        if left > right + 1 {
            Damage::Leans(0)
        } else if right > left + 1 {
            Damage::Leans(1)
        } else if self.height() != true_height {
            Damage::Height(true_height)
        } else {
            Damage::Nothing
        }
    }

    /// The memory of the node and its word in bytes. Each `Arc` has two counts.
    pub(super) fn bytes(&self) -> isize {
        (size_of::<Self>() + 16 + spilled(&self.position) + size_of::<W>() + 16) as isize
    }
}

impl<W: Word> Drop for RelaxedAvlNode<W> {
    fn drop(&mut self) {
        // An unlinked node may own the last reference to another unlinked node, and so on. Drop
        // them in a loop: a recursion could overflow the stack.
        let mut waiting: Vec<_> = self.kids.iter_mut().filter_map(Slot::take).collect();
        while let Some(kid) = waiting.pop() {
            if let Some(mut node) = Arc::into_inner(kid) {
                waiting.extend(node.kids.iter_mut().filter_map(Slot::take));
            }
        }
    }
}

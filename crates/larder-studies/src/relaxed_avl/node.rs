//! A node of the relaxed AVL tree, and its version.
//!
//! ```text
//!   version   ...count | unlinked | shrinking
//! ```
//!
//! A node's keys are those whose search comes through it. They become fewer when a rotation moves
//! the node down: it is *shrinking* meanwhile, and the count is another afterwards. A node that was
//! taken out has none, for good. Keys that come to a node disturb no search and change no version.

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

pub(super) struct Node<W: Word> {
    pub(super) position: Position,
    /// The word; none in a node that is there for the way alone.
    pub(super) word: Slot<W>,
    pub(super) kids: [Slot<Self>; 2],
    /// The generation of the tree in which the node was made: one of an earlier generation than the
    /// tree's belongs to a clone and never changes.
    pub(super) born: u64,
    version: AtomicU64,
    height: AtomicU32,
    /// Who changes the node has it.
    pub(super) lock: Mutex<()>,
}

/// What is wrong with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    Nothing,
    /// It says another height than this.
    Height(u32),
    /// One side is higher by two or more: this one.
    Leans(usize),
    /// It has no word and at most one child.
    Useless,
}

pub(super) fn same<T>(a: Option<&T>, b: Option<&T>) -> bool {
    a.map(std::ptr::from_ref) == b.map(std::ptr::from_ref)
}

pub(super) fn height<W: Word>(node: Option<&Node<W>>) -> u32 {
    node.map_or(0, Node::height)
}

impl<W: Word> Node<W> {
    pub(super) fn new(position: Position, word: Option<Arc<W>>, born: u64) -> Self {
        Node {
            position,
            word: Slot::new(word),
            kids: [Slot::new(None), Slot::new(None)],
            born,
            version: AtomicU64::new(0),
            height: AtomicU32::new(1),
            lock: Mutex::new(()),
        }
    }

    /// The same node in a later generation. It never changes again itself, so that the copy is of
    /// one instant.
    pub(super) fn copy(&self, born: u64, guard: &Guard) -> Self {
        Node {
            position: self.position.clone(),
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

    /// On which side the other node is.
    pub(super) fn side_of(&self, kid: &Self, guard: &Guard) -> Option<usize> {
        [0, 1]
            .into_iter()
            .find(|&side| same(self.kid(side, guard), Some(kid)))
    }

    pub(super) fn height(&self) -> u32 {
        // Ordering: Relaxed. A height is a hint; who acts on it looks again with the lock.
        self.height.load(Ordering::Relaxed)
    }

    /// The node is locked, and of the tree's generation.
    pub(super) fn set_height(&self, height: u32) {
        // Ordering: Relaxed, as above.
        self.height.store(height, Ordering::Relaxed);
    }

    /// The height that its children say.
    pub(super) fn true_height(&self, guard: &Guard) -> u32 {
        height(self.kid(0, guard)).max(height(self.kid(1, guard))) + 1
    }

    pub(super) fn version(&self) -> u64 {
        // Ordering: Acquire, pairs with the release of `shrink` and `unlink`; a child that was
        // loaded before is compared with a version that was loaded after it, because that load was
        // an acquire, too.
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn is_unlinked(&self) -> bool {
        self.version() & UNLINKED != 0
    }

    /// Whether a search may enter a node of this version.
    pub(super) fn admits(version: u64) -> bool {
        version & (SHRINKING | UNLINKED) == 0
    }

    /// Changes the children while searches keep out. The node is locked.
    pub(super) fn shrink(&self, change: impl FnOnce()) {
        if planted(Fault::Unshrunk) {
            return change();
        }
        let version = self.version();
        // Ordering: AcqRel, a read-modify-write that later stores, all of them releases, are not
        // moved before: who meets a changed child sees that the node is shrinking when it looks at
        // the version afterwards.
        self.version.swap(version | SHRINKING, Ordering::AcqRel);
        change();
        // Ordering: Release, pairs with the acquire of `version`: who sees the new version sees the
        // change.
        self.version.store(version + CHANGED, Ordering::Release);
    }

    /// Says that the node is out. It is locked.
    pub(super) fn unlink(&self) {
        // Ordering: Release, as in `shrink`.
        self.version
            .store(self.version() | UNLINKED, Ordering::Release);
    }

    /// Waits for the end of a rotation, if the version says that there is one.
    pub(super) fn wait(&self, version: u64) {
        const SPINS: usize = if cfg!(larder_model) { 1 } else { 100 };
        if version & SHRINKING == 0 {
            return;
        }
        for _ in 0..SPINS {
            if self.version() != version {
                return;
            }
            std::hint::spin_loop();
        }
        // Who rotates holds the lock to the end.
        drop(self.lock.lock());
    }

    /// What is wrong with the node, as far as can be seen without a lock; exact where it is locked
    /// and nobody changes its children's heights.
    pub(super) fn damage(&self, guard: &Guard) -> Damage {
        let kids = [self.kid(0, guard), self.kid(1, guard)];
        // Taken out before it is balanced: a rotation of a node that goes anyway would be for
        // nothing.
        if kids.iter().any(Option::is_none) && self.word.load(guard).is_none() {
            return Damage::Useless;
        }
        let [left, right] = kids.map(height);
        let true_height = left.max(right) + 1;
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

    /// Bytes of the node and its word's place; each `Arc` has two counts.
    pub(super) fn bytes(&self) -> isize {
        (size_of::<Self>() + 16 + spilled(&self.position) + size_of::<W>() + 16) as isize
    }
}

impl<W: Word> Drop for Node<W> {
    fn drop(&mut self) {
        // A node that was taken out may be the last that has another that was, and so on: one after
        // the other, not one inside the other.
        let mut waiting: Vec<_> = self.kids.iter_mut().filter_map(Slot::take).collect();
        while let Some(kid) = waiting.pop() {
            if let Some(mut node) = Arc::into_inner(kid) {
                waiting.extend(node.kids.iter_mut().filter_map(Slot::take));
            }
        }
    }
}

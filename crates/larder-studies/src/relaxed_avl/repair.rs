//! Steps rv5 to rv7: heights that are wrong are put right, nodes that are of no use are unlinked,
//! nodes that lean are rotated.
//!
//! Each thread repairs the damage that it did, from the bottom up; damage that others did on the
//! way is theirs. So when all writers are done, there is none.

use super::node::{height, same, Damage, RelaxedAvlNode};
use super::{RelaxedAvl, VersionedPath, Writer};
use crate::raw::slot::Slot;
use crate::word::Word;
use larder_index::Guard;
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// A stack of nodes that may need a repair.
type Waiting<'g, W> = SmallVec<[&'g RelaxedAvlNode<W>; 8]>;

impl<W: Word> RelaxedAvl<W> {
    /// Repairs a node, and then the nodes that the repairs have affected.
    pub(super) fn repair<'g>(
        &'g self,
        writer: &Writer<'g>,
        path: &mut VersionedPath<'g, W>,
        node: &'g RelaxedAvlNode<W>,
    ) {
        // Lower nodes are pushed later, so heights are corrected from the bottom up.
        let mut waiting = Waiting::new();
        waiting.push(node);
        while let Some(node) = waiting.pop() {
            // The holder has no height, and an unlinked node needs none.
            if std::ptr::eq(node, &*self.holder) || node.is_unlinked() {
                continue;
            }
            // (rv5)
            match fix_height(node, writer.guard) {
                Damage::Nothing => {}
                // The node's height has been corrected, so its parent's may be wrong now.
                Damage::Height(_) => waiting.extend(self.parent(writer.guard, path, node)),
                Damage::Useless | Damage::Leans(_) => {
                    // Locks are taken from the top down (RV2). So `mend` locks the parent first,
                    // and then checks the node again.
                    let Some(parent) = self.parent(writer.guard, path, node) else {
                        continue;
                    };
                    // (rv6), (rv7)
                    self.mend(writer, parent, node, &mut waiting);
                }
            }
        }
    }

    /// The parent of a node: that of the path, if it is still right, or that of a new search.
    /// `None` if the node is unlinked.
    fn parent<'g>(
        &'g self,
        guard: &'g Guard,
        path: &mut VersionedPath<'g, W>,
        node: &'g RelaxedAvlNode<W>,
    ) -> Option<&'g RelaxedAvlNode<W>> {
        let is_parent = |parent: &RelaxedAvlNode<W>| {
            !parent.is_unlinked() && parent.side_of(node, guard).is_some()
        };
        // The path may be out of date: a rotation may have inserted another node between the two.
        let at = path
            .iter()
            .position(|on_path| same(Some(on_path.node), Some(node)));
        let above = at.map_or(path.last(), |at| at.checked_sub(1).map(|at| &path[at]));
        if let Some(on_path) = above.filter(|on_path| is_parent(on_path.node)) {
            return Some(on_path.node);
        }
        loop {
            if node.is_unlinked() {
                return None;
            }
            // A search for the node's position reaches the node, or the one that has replaced it.
            // The last node of the path is the parent.
            path.clear();
            self.locate(guard, &node.position, None, path);
            if let Some(on_path) = path.last().filter(|on_path| is_parent(on_path.node)) {
                return Some(on_path.node);
            }
            // Another thread may be unlinking the node, and holds its lock. Wait for that.
            drop(node.lock.lock());
        }
    }

    /// Steps rv6 and rv7. Locks the parent and the node. Pushes nodes that may need a repair then.
    pub(super) fn mend<'g>(
        &'g self,
        writer: &Writer<'g>,
        parent: &'g RelaxedAvlNode<W>,
        node: &'g RelaxedAvlNode<W>,
        waiting: &mut Waiting<'g, W>,
    ) {
        let guard = writer.guard;
        let _above = parent.lock.lock();
        // The parent was found without its lock. Check it again, since other threads may have
        // rotated or unlinked nodes.
        let at = parent
            .side_of(node, guard)
            .filter(|_| !parent.is_unlinked());
        let Some(at) = at else {
            // The node has another parent now, or is unlinked.
            waiting.push(node);
            return;
        };
        let _here = node.lock.lock();
        match node.damage(guard) {
            Damage::Nothing => {}
            Damage::Height(_) => waiting.push(node),
            Damage::Useless => {
                // (rv6) The node has no word, and one child at most. So the parent can point to the
                // child instead, and no entry is lost.
                let kid = node.kids[0]
                    .share(guard)
                    .or_else(|| node.kids[1].share(guard));
                parent.kids[at].store(kid, guard);
                // Mark it after the store. A search that is in this node finds its version changed,
                // and goes back to the parent, which no longer points to it.
                node.unlink();
                self.forget(node);
                waiting.push(parent);
            }
            Damage::Leans(side) => {
                // (rv7) The parent, the nodes that have moved, and this node, which comes first: if
                // it still leans, its rotation repairs a node that leans below it.
                let moved = self.rotate_at(writer, &parent.kids[at], node, side);
                waiting.push(parent);
                waiting.extend(moved.into_iter().flatten());
                waiting.push(node);
            }
        }
    }

    /// Step rv7: rotates a locked node whose subtree on `side` is too high. Returns the other nodes
    /// that are now to be checked, from the top down.
    fn rotate_at<'g>(
        &'g self,
        writer: &Writer<'g>,
        slot: &'g Slot<RelaxedAvlNode<W>>,
        node: &'g RelaxedAvlNode<W>,
        side: usize,
    ) -> [Option<&'g RelaxedAvlNode<W>>; 2] {
        let (guard, other) = (writer.guard, 1 - side);
        // The rotation changes the child, so it must not belong to a clone (RV3).
        let Some(kid) = self.own(writer, node, side) else {
            return [None; 2];
        };
        let _kid = kid.lock.lock();
        if height(kid.kid(other, guard)) <= height(kid.kid(side, guard)) {
            self.rotate(guard, slot, node, side);
            return [Some(kid), None];
        }
        // The inner grandchild is higher than the outer one. Rotate it up by one level, where it
        // may lean. The node stays unbalanced, and is rotated when it is checked again, which
        // repairs both. But another thread may have made its other side higher by then.
        let Some(middle) = self.own(writer, kid, other) else {
            return [None; 2];
        };
        let _middle = middle.lock.lock();
        self.rotate(guard, &node.kids[side], kid, other);
        [Some(middle), Some(kid)]
    }

    /// Rotates the child on `side` up, and the node down. Both, and the owner of the slot, are
    /// locked and of the tree's generation.
    ///
    /// ```text
    ///       node                kid
    ///      /    \              /   \
    ///    kid     c     =>     a    node
    ///   /   \                     /    \
    ///  a   middle             middle    c
    /// ```
    fn rotate(
        &self,
        guard: &Guard,
        slot: &Slot<RelaxedAvlNode<W>>,
        node: &RelaxedAvlNode<W>,
        side: usize,
    ) {
        let (up, down) = (node.kids[side].share(guard), slot.share(guard));
        let Some(kid) = node.kid(side, guard) else {
            return;
        };
        // The node loses keys, so searches that are in it must wait or go back. The child only
        // gains keys, so searches that are in it can continue.
        node.shrink(|| {
            node.kids[side].store(kid.kids[1 - side].share(guard), guard);
            kid.kids[1 - side].store(down, guard);
            slot.store(up, guard);
            node.set_height(node.true_height(guard));
            kid.set_height(kid.true_height(guard));
        });
        // Ordering: Relaxed, a statistic.
        self.figures.rotations.fetch_add(1, Relaxed);
    }
}

/// Step rv5: corrects the height of a node, if that is all it needs. Returns the repair that it
/// needed. The lock is always taken: another thread may be about to store a height that it has
/// computed before this thread's change.
pub(super) fn fix_height<W: Word>(node: &RelaxedAvlNode<W>, guard: &Guard) -> Damage {
    let _here = node.lock.lock();
    let damage = node.damage(guard);
    if let Damage::Height(height) = damage {
        node.set_height(height);
    }
    damage
}

//! Steps 5 to 7: heights that are wrong are put right, nodes that are of no use are taken out,
//! nodes that lean are rotated.
//!
//! Each thread repairs the damage that it did, from the bottom up; damage that others did on the
//! way is theirs. So when all writers are done, there is none.

use super::node::{height, same, Damage, Node};
use super::{Path, RelaxedAvl, Writer};
use crate::raw::slot::Slot;
use crate::word::Word;
use larder_index::Guard;
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// Nodes that are to be looked at, the next one last.
type Waiting<'g, W> = SmallVec<[&'g Node<W>; 8]>;

impl<W: Word> RelaxedAvl<W> {
    /// Repairs the node, and what is damaged by that.
    pub(super) fn repair<'g>(
        &'g self,
        writer: &Writer<'g>,
        path: &mut Path<'g, W>,
        node: &'g Node<W>,
    ) {
        // A stack: what is pushed last is lowest, so heights are put right from the bottom up.
        let mut waiting = Waiting::new();
        waiting.push(node);
        while let Some(node) = waiting.pop() {
            // The holder has no height. A node that is out has no place where a height would
            // matter.
            if std::ptr::eq(node, &*self.holder) || node.is_unlinked() {
                continue;
            }
            // (5)
            match fix_height(node, writer.guard) {
                Damage::Nothing => {}
                // The node's height is right now, so its parent's may be wrong.
                Damage::Height(_) => waiting.extend(self.parent(writer.guard, path, node)),
                Damage::Useless | Damage::Leans(_) => {
                    // Locks go from the top down (invariant 2): the parent's comes first, and what
                    // is wrong is looked at again under both.
                    let Some(parent) = self.parent(writer.guard, path, node) else {
                        continue;
                    };
                    // (6), (7)
                    self.mend(writer, parent, node, &mut waiting);
                }
            }
        }
    }

    /// The node's parent: as the path says, if it still says the truth, or as a new search finds
    /// it. None if the node is out.
    fn parent<'g>(
        &'g self,
        guard: &'g Guard,
        path: &mut Path<'g, W>,
        node: &'g Node<W>,
    ) -> Option<&'g Node<W>> {
        let is_parent =
            |parent: &Node<W>| !parent.is_unlinked() && parent.side_of(node, guard).is_some();
        // The path is a hint: rotations may have put others between.
        let at = path
            .iter()
            .position(|step| same(Some(step.node), Some(node)));
        let above = at.map_or(path.last(), |at| at.checked_sub(1).map(|at| &path[at]));
        if let Some(step) = above.filter(|step| is_parent(step.node)) {
            return Some(step.node);
        }
        loop {
            if node.is_unlinked() {
                return None;
            }
            // The search for the node's own position comes to the node, or to what took its place;
            // its last step is the parent.
            path.clear();
            self.locate(guard, &node.position, None, path);
            if let Some(step) = path.last().filter(|step| is_parent(step.node)) {
                return Some(step.node);
            }
            // Who takes it out, and has yet to say so, has its lock.
            drop(node.lock.lock());
        }
    }

    /// Steps 6 and 7, with parent and node locked. What has to be looked at next goes to `waiting`.
    fn mend<'g>(
        &'g self,
        writer: &Writer<'g>,
        parent: &'g Node<W>,
        node: &'g Node<W>,
        waiting: &mut Waiting<'g, W>,
    ) {
        let guard = writer.guard;
        let _above = parent.lock.lock();
        // The parent was found without its lock: rotations and removals of others may have come in
        // between.
        let at = parent
            .side_of(node, guard)
            .filter(|_| !parent.is_unlinked());
        let Some(at) = at else {
            // The node has another parent by now, or is out.
            waiting.push(node);
            return;
        };
        let _here = node.lock.lock();
        match node.damage(guard) {
            Damage::Nothing => {}
            Damage::Height(_) => waiting.push(node),
            Damage::Useless => {
                // (6) One child at most, and no word: all entries below the node are that child's,
                // so the parent leads to the child and no search loses anything.
                let kid = node.kids[0]
                    .share(guard)
                    .or_else(|| node.kids[1].share(guard));
                parent.kids[at].store(kid, guard);
                // After the store: a search that is in this node finds its version changed, and
                // goes back to the parent, which leads past it.
                node.unlink();
                self.forget(node);
                waiting.push(parent);
            }
            Damage::Leans(side) => {
                // (7) What has to be looked at next is pushed from the top down: the parent, the
                // node that came up, and the node, which is below it now.
                let top = self.rotate_at(writer, (&parent.kids[at], node), side);
                waiting.push(parent);
                waiting.extend(top);
                waiting.push(node);
            }
        }
    }

    /// Step 7: the node, which is locked, leans to that side. Gives the node that went up.
    fn rotate_at<'g>(
        &'g self,
        writer: &Writer<'g>,
        (slot, node): (&'g Slot<Node<W>>, &'g Node<W>),
        side: usize,
    ) -> Option<&'g Node<W>> {
        let (guard, other) = (writer.guard, 1 - side);
        // A rotation changes the child, so it must not be a clone's (invariant 3).
        let kid = self.own(writer, node, side)?;
        let _kid = kid.lock.lock();
        if height(kid.kid(other, guard)) <= height(kid.kid(side, guard)) {
            self.rotate(guard, (slot, node), side);
            return Some(kid);
        }
        // What is between the two is the highest: it goes up by one here, and comes to be looked at
        // with the node again.
        let middle = self.own(writer, kid, other)?;
        let _middle = middle.lock.lock();
        self.rotate(guard, (&node.kids[side], kid), other);
        Some(kid)
    }

    /// The node's child on its heavy side comes up, the node goes down. Both are locked, and of the
    /// tree's generation, and so is who has the slot.
    ///
    /// ```text
    ///       node                kid
    ///      /    \              /   \
    ///    kid     c     =>     a    node
    ///   /   \                     /    \
    ///  a   middle             middle    c
    /// ```
    fn rotate(&self, guard: &Guard, (slot, node): (&Slot<Node<W>>, &Node<W>), side: usize) {
        let (up, down) = (node.kids[side].share(guard), slot.share(guard));
        let Some(kid) = node.kid(side, guard) else {
            return;
        };
        // The node loses entries by going down: searches that are in it wait, or go back. The child
        // only gains some, so those that are in it go on.
        node.shrink(|| {
            node.kids[side].store(kid.kids[1 - side].share(guard), guard);
            kid.kids[1 - side].store(down, guard);
            slot.store(up, guard);
            node.set_height(node.true_height(guard));
            kid.set_height(kid.true_height(guard));
        });
        // Ordering: Relaxed, a figure for people.
        self.figures.rotations.fetch_add(1, Relaxed);
    }
}

/// Step 5: puts a height right if that is all; says what was wrong. The lock is taken even where
/// nothing is: somebody may be about to write a height that he worked out from what this thread has
/// changed since.
fn fix_height<W: Word>(node: &Node<W>, guard: &Guard) -> Damage {
    let _here = node.lock.lock();
    let damage = node.damage(guard);
    if let Damage::Height(height) = damage {
        node.set_height(height);
    }
    damage
}

//! An AVL tree. `ordered_set` of OTP is one; since OTP 22, with write concurrency, so are the bases
//! of its contention-adapting tree.
//!
//! ```text
//!             k             balance = height of the right - height of the left: -1, 0 or 1
//!           /   \
//!          d     p          insert n: it becomes the right child of m
//!               / \
//!              m   s        then update the balances of m, p, k upwards, until a height hasn't
//!               \           changed, or one rotation has restored it
//!                n
//! ```
//!
//! Invariants:
//! * **AV1** In order, positions ascend.
//! * **AV2** The heights of a node's two subtrees differ by at most one. `balance` is the
//!   difference.
//! * **AV3** The stack of the last walk, if there is one, is of the tree as it is now. A change of
//!   a link clears the stack.
//!
//! Steps of a change:
//! 1. Descend, and record the path.
//! 2. Let the caller decide.
//! 3. Link or unlink a node.
//! 4. Go back along the path, update the balances, and rotate where AV2 requires it.
//!
//! *The static stack.* `next` and `prev` ask for one neighbour at a time. From the root this takes
//! O(log n). OTP keeps the stack of the last walk with the table. If a walk begins where the last
//! one ended, it continues with that stack, in O(1) amortised, and compares one key. Only one walk
//! at a time can use the stack. Others descend. The patch that was measured in 2013 gave each call
//! a stack of its own, which is this tree with `static_stack` off.
//!
//! Source: G. M. Adelson-Velsky, E. M. Landis, "An algorithm for the organization of information",
//! 1962; OTP's documented behaviour. Deviation: a short key is stored in its node, beside the
//! links.
//!
//! *Split and join*, for the contention-adapting tree. A split removes the root, and so gets two
//! trees. A join links the lower tree to an inner edge of the higher one. Both take O(log n), as in
//! OTP. Afterwards `len` counts the entries, in O(n).
//!
//! When not to use it: for many writers, since there is one lock; for tables that don't fit in the
//! cache, since a lookup has a miss for each of up to 1.44 log₂ n levels. The default structure is
//! faster in all cases.

use crate::position::spilled;
use crate::raw::heap::{Heap, Link, NIL};
use crate::sequential::{Act, Actor, Divisible, Sequential, Visitor};
use crate::{Cut, Position};
use larder_index::sync::Mutex;
use larder_index::Stats;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The nodes of a path from the root, each with the side that was taken. A tree of 2³² nodes has at
/// most 1.44 × 32 levels.
type Path = SmallVec<[(Link, usize); 48]>;

#[derive(Debug)]
struct AvlNode<W> {
    position: Position,
    word: W,
    kids: [Link; 2],
    balance: i8,
}

/// The stack of the last walk.
#[derive(Debug)]
struct Stack {
    forward: bool,
    /// The node that was visited last. `NIL` if the stack is empty.
    last: Link,
    /// The node to be visited next, on top, and below it those of its ancestors that come later.
    rest: Vec<Link>,
}

impl Stack {
    fn empty() -> Self {
        Stack {
            forward: true,
            last: NIL,
            rest: Vec::new(),
        }
    }
}

/// An AVL tree from positions to words.
#[derive(Debug)]
pub struct Avl<W> {
    nodes: Heap<AvlNode<W>>,
    root: Link,
    /// Whether the tree was never split or joined, so that its counts are exact. Otherwise only the
    /// sum over all trees that were split from it or joined with it is exact, modulo 2⁶⁴.
    is_exact: bool,
    /// The bytes on the heap of positions that are too long for their nodes.
    spilled: usize,
    stack: Option<Box<Mutex<Stack>>>,
}

/// The change of a node's balance if the subtree on this side becomes higher by one.
fn weight(side: usize) -> i8 {
    if side == 0 {
        -1
    } else {
        1
    }
}

impl<W> Avl<W> {
    /// An empty tree. `static_stack` says whether to keep the stack of the last walk.
    pub fn new(static_stack: bool) -> Self {
        Avl {
            nodes: Heap::new(),
            root: NIL,
            is_exact: true,
            spilled: 0,
            stack: static_stack.then(|| Box::new(Mutex::new(Stack::empty()))),
        }
    }

    /// Step 1: descends to a position. Returns the path, and the node at the position, or `NIL`.
    fn descend(&self, position: &[u8]) -> (Path, Link) {
        let mut path = Path::new();
        let mut at = self.root;
        while at != NIL {
            let node = &self.nodes[at];
            // Record the side, so that `retrace` needs no comparisons on the way back.
            let side = match position.cmp(&node.position) {
                Ordering::Equal => break,
                Ordering::Less => 0,
                Ordering::Greater => 1,
            };
            path.push((at, side));
            at = node.kids[side];
        }
        (path, at)
    }

    /// Makes `to` the child at the end of a path.
    fn link(&mut self, path: &[(Link, usize)], to: Link) {
        match path.last() {
            None => self.root = to,
            Some(&(parent, side)) => self.nodes[parent].kids[side] = to,
        }
    }

    /// Clears the stack, for AV3.
    fn forget_stack(&mut self) {
        if let Some(stack) = &mut self.stack {
            stack.get_mut().last = NIL;
        }
    }

    fn make(&mut self, position: Position, word: W, kids: [Link; 2], balance: i8) -> Link {
        self.spilled = self.spilled.wrapping_add(spilled(&position));
        self.nodes.insert(AvlNode {
            position,
            word,
            kids,
            balance,
        })
    }

    fn unmake(&mut self, id: Link) -> AvlNode<W> {
        let node = self.nodes.remove(id);
        self.spilled = self.spilled.wrapping_sub(spilled(&node.position));
        node
    }

    /// Restores AV2 at a node whose subtree on `side` is too high by one. Returns the new top of
    /// the subtree, and whether the subtree became lower.
    fn rotate(&mut self, top: Link, side: usize) -> (Link, bool) {
        let (heavy, other) = (weight(side), 1 - side);
        let kid = self.nodes[top].kids[side];
        // If the child leans to the other side, a single rotation would only move the imbalance to
        // that side.
        if self.nodes[kid].balance == -heavy {
            return (self.rotate_twice(top, kid, side), true);
        }
        //   top(+2)            kid
        //   /   \             /   \
        //  a    kid    =>   top    c
        //       /  \        / \
        //      b    c      a   b
        self.nodes[top].kids[side] = self.nodes[kid].kids[other];
        self.nodes[kid].kids[other] = top;
        // If the child is balanced, which only occurs after a removal, the subtree keeps its
        // height. Nothing above changes then.
        let even = self.nodes[kid].balance == 0;
        self.nodes[top].balance = if even { heavy } else { 0 };
        self.nodes[kid].balance = if even { -heavy } else { 0 };
        (kid, !even)
    }

    fn rotate_twice(&mut self, top: Link, kid: Link, side: usize) -> Link {
        //   top(+2)             mid
        //   /    \             /    \
        //  a     kid         top    kid
        //       /   \   =>   / \    / \
        //     mid    d      a   b  c   d
        //     / \
        //    b   c
        let (heavy, other) = (weight(side), 1 - side);
        let mid = self.nodes[kid].kids[other];
        let leans = self.nodes[mid].balance;
        // The two subtrees of `mid` go to the two nodes below which it was.
        let [near, far] = [self.nodes[mid].kids[other], self.nodes[mid].kids[side]];
        self.nodes[top].kids[side] = near;
        self.nodes[kid].kids[other] = far;
        self.nodes[mid].kids[other] = top;
        self.nodes[mid].kids[side] = kid;
        self.nodes[top].balance = if leans == heavy { -heavy } else { 0 };
        self.nodes[kid].balance = if leans == -heavy { heavy } else { 0 };
        self.nodes[mid].balance = 0;
        mid
    }

    /// Step 4: updates the balances along a path whose subtree at the end became higher (`grew`) or
    /// lower by one.
    fn retrace(&mut self, mut path: Path, grew: bool) {
        while let Some((parent, side)) = path.pop() {
            // Below the parent, AV2 holds. The subtree on this side became higher or lower by one,
            // and the parent's balance doesn't include that yet.
            let change = if grew { weight(side) } else { -weight(side) };
            let balance = self.nodes[parent].balance + change;
            let settled = match balance {
                -2 | 2 => {
                    let (top, lower) = self.rotate(parent, usize::from(balance > 0));
                    self.link(&path, top);
                    // After an insert, a rotation that makes the subtree lower restores its height,
                    // and nothing above changes. After a removal, the parent's subtree became
                    // lower, and the loop continues.
                    lower == grew
                }
                _ => {
                    self.nodes[parent].balance = balance;
                    // The height of the parent's subtree hasn't changed, if an insert has made it
                    // balanced, or if a removal has made it unbalanced by one.
                    (balance == 0) == grew
                }
            };
            if settled {
                return;
            }
        }
    }

    /// Steps 3 and 4 of an insert: links a new node at the end of a path.
    fn attach(&mut self, path: Path, node: Link) {
        self.forget_stack();
        self.link(&path, node);
        self.retrace(path, true);
    }

    /// Steps 3 and 4 of a removal of the node at the end of a path.
    fn detach(&mut self, mut path: Path, id: Link) -> (Position, W) {
        self.forget_stack();
        // Only a node with at most one child can be unlinked: that child takes its place.
        let mut goes = id;
        if self.nodes[id].kids.iter().all(|kid| *kid != NIL) {
            // The node has two children. Unlink its successor instead, which has no left child, and
            // move the successor's entry here.
            path.push((id, 1));
            goes = self.nodes[id].kids[1];
            while self.nodes[goes].kids[0] != NIL {
                path.push((goes, 0));
                goes = self.nodes[goes].kids[0];
            }
        }
        let [left, right] = self.nodes[goes].kids;
        self.link(&path, if left == NIL { right } else { left });
        self.retrace(path, false);
        let node = self.unmake(goes);
        if goes == id {
            return (node.position, node.word);
        }
        // The node stays, with the successor's entry. So no link to it changes.
        let here = &mut self.nodes[id];
        let old = std::mem::replace(&mut here.position, node.position);
        let word = std::mem::replace(&mut here.word, node.word);
        let came = spilled(&self.nodes[id].position);
        self.spilled = self.spilled.wrapping_add(came).wrapping_sub(spilled(&old));
        (old, word)
    }

    /// Pushes a node, and its descendants on this side, each the child of the one before.
    fn push_spine(&self, mut at: Link, side: usize, rest: &mut Vec<Link>) {
        while at != NIL {
            rest.push(at);
            at = self.nodes[at].kids[side];
        }
    }

    /// Makes the stack for a walk from a cut.
    fn find_cut(&self, cut: Cut<'_>, stack: &mut Stack) {
        stack.forward = cut.is_forward();
        stack.rest.clear();
        // `near` is the side that the walk comes from: its subtree is visited before the node.
        let near = usize::from(!stack.forward);
        let mut at = self.root;
        while at != NIL {
            let node = &self.nodes[at];
            if cut.admits(&node.position) {
                // The node is visited, after what is admitted of its near subtree.
                stack.rest.push(at);
                at = node.kids[near];
            } else {
                // The node and its near subtree lie before the cut. Only the far one may have
                // admitted entries.
                at = node.kids[1 - near];
            }
        }
    }

    fn walk_with(&self, stack: &mut Stack, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        // The stack is of the tree as it is now (AV3). If the walk continues after the last node
        // of the stack, the stack has the nodes that follow.
        let goes_on = stack.last != NIL
            && stack.forward == cut.is_forward()
            && cut.goes_on_after(&self.nodes[stack.last].position);
        if !goes_on {
            self.find_cut(cut, stack);
        }
        let near = usize::from(!stack.forward);
        while let Some(at) = stack.rest.pop() {
            let node = &self.nodes[at];
            stack.last = at;
            // The next node is the nearest one of the far subtree. If that is empty, it is the
            // nearest ancestor that wasn't visited, which is on top of the stack.
            self.push_spine(node.kids[1 - near], near, &mut stack.rest);
            if !f(&node.position, &node.word) {
                return false;
            }
        }
        stack.last = NIL;
        true
    }

    /// The height of a subtree. O(log n): descends on the higher side.
    fn height(&self, mut at: Link) -> usize {
        let mut levels = 0;
        while at != NIL {
            let node = &self.nodes[at];
            at = node.kids[usize::from(node.balance > 0)];
            levels += 1;
        }
        levels
    }

    /// Joins two trees with an entry between them, by which the roots differ. O(difference of their
    /// heights).
    fn concatenate(&mut self, left: Link, middle: (Position, W), right: Link) {
        let roots = [left, right];
        let heights = roots.map(|root| self.height(root) as isize);
        let tall = usize::from(heights[1] > heights[0]);
        let short = 1 - tall;
        // Go down the inner edge of the higher tree, to a subtree of about the height of the lower
        // tree.
        self.root = roots[tall];
        let mut path = Path::new();
        let (mut at, mut height) = (roots[tall], heights[tall]);
        while height > heights[short] + 1 {
            path.push((at, short));
            let node = &self.nodes[at];
            // The subtree on `short`'s side is lower by one, or by two where the node leans the
            // other way.
            height -= if node.balance == weight(tall) { 2 } else { 1 };
            at = node.kids[short];
        }
        let mut kids = [at; 2];
        kids[short] = roots[short];
        let lean = (height - heights[short]) as i8 * weight(tall);
        let node = self.make(middle.0, middle.1, kids, lean);
        self.attach(path, node);
    }
}

impl<W: Send + Sync> Sequential<W> for Avl<W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        let mut at = self.root;
        while at != NIL {
            let node = &self.nodes[at];
            at = match position.cmp(&node.position) {
                Ordering::Equal => return Some(&node.word),
                Ordering::Less => node.kids[0],
                Ordering::Greater => node.kids[1],
            };
        }
        None
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>) {
        // (1)
        let (path, at) = self.descend(position);
        if at == NIL {
            // (2), (3), (4)
            if let Act::Put(word) = f(None) {
                let node = self.make(Position::from_slice(position), word, [NIL; 2], 0);
                self.attach(path, node);
            }
            return;
        }
        match f(Some(&mut self.nodes[at].word)) {
            Act::Keep => {}
            Act::Put(word) => self.nodes[at].word = word,
            Act::Remove => drop(self.detach(path, at)),
        }
    }

    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        match self.stack.as_ref().and_then(|stack| stack.try_lock()) {
            Some(mut stack) => self.walk_with(&mut stack, cut, f),
            None => self.walk_with(&mut Stack::empty(), cut, f),
        }
    }

    fn pop(&mut self) -> Option<W> {
        self.pop_first().map(|(_, word)| word)
    }

    fn len(&self) -> usize {
        if self.is_exact {
            return self.nodes.made();
        }
        // After a split or join, the number of nodes that this tree made says nothing. Count them.
        let (mut n, mut waiting) = (0, vec![self.root]);
        while let Some(link) = waiting.pop() {
            if link != NIL {
                n += 1;
                waiting.extend(self.nodes[link].kids);
            }
        }
        n
    }

    fn is_empty(&self) -> bool {
        self.root == NIL
    }

    fn stats(&self, stats: &mut Stats) {
        stats.depth = self.height(self.root);
    }

    fn memory(&self) -> usize {
        // The stack's own memory is that of one path.
        let stack = self.stack.as_ref().map_or(0, |_| size_of::<Mutex<Stack>>());
        let nodes = self.nodes.made().wrapping_mul(size_of::<AvlNode<W>>());
        nodes.wrapping_add(self.spilled).wrapping_add(stack)
    }
}

impl<W: Send + Sync> Divisible<W> for Avl<W> {
    fn like(&self) -> Self {
        Avl::new(self.stack.is_some())
    }

    fn divide(&mut self) -> Option<(Position, Self)> {
        // Split at the root, which costs no comparison. The parts differ in height by at most one,
        // though not in the number of entries.
        let root = self.root;
        if root == NIL || self.nodes[root].kids == [NIL; 2] {
            return None;
        }
        // The stack of the last walk may refer to the root, which may leave.
        self.forget_stack();
        let mut upper = self.like();
        // Nodes are not counted when they change trees. From here on each tree counts by walking.
        (self.is_exact, upper.is_exact) = (false, false);
        let [left, right] = self.nodes[root].kids;
        upper.root = right;
        if left == NIL {
            // The root stays, alone.
            self.nodes[root].kids = [NIL; 2];
            self.nodes[root].balance = 0;
        } else {
            // The root becomes the first entry of the upper part, so that the lower part keeps its
            // shape.
            let node = self.unmake(root);
            self.root = left;
            upper.insert(&node.position, node.word);
        }
        // Find the first position of the upper part, at which the caller divides.
        let mut first = Position::new();
        upper.walk(
            Cut::new(larder_index::Start::Edge, larder_index::Direction::Forward),
            &mut |p, _| {
                first = Position::from_slice(p);
                false
            },
        );
        Some((first, upper))
    }

    fn join(&mut self, mut right: Self) {
        self.forget_stack();
        let middle = right.pop_first();
        self.is_exact &= right.is_exact;
        self.nodes.take_over(&right.nodes);
        self.spilled = self.spilled.wrapping_add(right.spilled);
        if let Some(middle) = middle {
            // Its nodes are this tree's from here on.
            let theirs = std::mem::replace(&mut right.root, NIL);
            self.concatenate(self.root, middle, theirs);
        }
    }
}

impl<W> Avl<W> {
    fn pop_first(&mut self) -> Option<(Position, W)> {
        let mut path = Path::new();
        let mut at = self.root;
        if at == NIL {
            return None;
        }
        // Go down on the left. The nodes of the path are balanced when the first one is detached.
        while self.nodes[at].kids[0] != NIL {
            path.push((at, 0));
            at = self.nodes[at].kids[0];
        }
        Some(self.detach(path, at))
    }
}

impl<W> Drop for Avl<W> {
    fn drop(&mut self) {
        let mut waiting = vec![std::mem::replace(&mut self.root, NIL)];
        while let Some(link) = waiting.pop() {
            if link != NIL {
                waiting.extend(self.nodes.remove(link).kids);
            }
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests;

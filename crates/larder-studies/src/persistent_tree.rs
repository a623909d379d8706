//! A persistent sorted tree. Trees are immutable: insert, remove, split and join make a new tree,
//! which shares most nodes with the old one.
//!
//! ```text
//!      k               k'             insert p: the nodes on the path to it are copied,
//!    /   \           /   \            the others belong to both trees
//!   d     m    =>   d     m'
//!                           \
//!                            p
//! ```
//!
//! Invariants:
//! * **PT1** In order, positions ascend.
//! * **PT2** The heights of a node's two subtrees differ by at most two. So the height is at most
//!   1.9 log₂ n, which bounds all recursions here.
//!
//! Source: G. Blelloch, D. Ferizovic, Y. Sun, "Just join for parallel ordered sets", SPAA 2016; S.
//! Adams, 1993.

use crate::position::{spilled, Entry};
use crate::{Cut, Position};
use std::cmp::Ordering;
use std::sync::Arc;

/// A tree. `None` is the empty one.
pub(crate) type Tree<W> = Option<Arc<ImmutableNode<W>>>;

pub(crate) struct ImmutableNode<W> {
    /// All trees that contain the entry share it.
    entry: Arc<Entry<W>>,
    children: [Tree<W>; 2],
    height: u32,
}

/// The memory of an entry and of its node in bytes. Each `Arc` has two counts.
pub(crate) fn bytes<W>(position: &Position) -> isize {
    (size_of::<Entry<W>>() + size_of::<ImmutableNode<W>>() + 32 + spilled(position)) as isize
}

fn height<W>(tree: &Tree<W>) -> u32 {
    tree.as_ref().map_or(0, |node| node.height)
}

fn make<W>(left: Tree<W>, entry: Arc<Entry<W>>, right: Tree<W>) -> Arc<ImmutableNode<W>> {
    Arc::new(ImmutableNode {
        height: height(&left).max(height(&right)) + 1,
        entry,
        children: [left, right],
    })
}

fn parts<W>(node: &ImmutableNode<W>) -> (Tree<W>, Arc<Entry<W>>, Tree<W>) {
    let [left, right] = node.children.clone();
    (left, node.entry.clone(), right)
}

/// Makes a node of two subtrees whose heights differ by at most three, and rotates it so that PT2
/// holds.
fn balanced<W>(left: Tree<W>, entry: Arc<Entry<W>>, right: Tree<W>) -> Arc<ImmutableNode<W>> {
    // Rotations copy the nodes that change. The subtrees `a`, `b` and `c` are shared with the old
    // tree.
    let (left_height, right_height) = (height(&left), height(&right));
    match (&left, &right) {
        // The left subtree is too high. `up` becomes the top. If the inner subtree is the higher
        // one, its entry `mid` does.
        (Some(node), _) if left_height > right_height + 2 => {
            let (a, up, b) = parts(node);
            match b {
                // A single rotation would leave `b` as high as before, below the new top. So if it
                // is the higher one, divide it between the two sides.
                Some(mid) if height(&a) < mid.height => {
                    let (b, mid, c) = parts(&mid);
                    make(Some(make(a, up, b)), mid, Some(make(c, entry, right)))
                }
                b => make(a, up, Some(make(b, entry, right))),
            }
        }
        // The right subtree is too high: the mirror image.
        (_, Some(node)) if right_height > left_height + 2 => {
            let (b, up, c) = parts(node);
            match b {
                Some(mid) if mid.height > height(&c) => {
                    let (a, mid, b) = parts(&mid);
                    make(Some(make(left, entry, a)), mid, Some(make(b, up, c)))
                }
                b => make(Some(make(left, entry, b)), up, c),
            }
        }
        _ => make(left, entry, right),
    }
}

/// The tree with an entry, which replaces one at the same position. O(log n).
pub(crate) fn insert<W>(tree: &Tree<W>, entry: Arc<Entry<W>>) -> Arc<ImmutableNode<W>> {
    let Some(node) = tree else {
        return make(None, entry, None);
    };
    let [left, right] = &node.children;
    match entry.position.cmp(&node.entry.position) {
        Ordering::Less => {
            let left = Some(insert(left, entry));
            balanced(left, node.entry.clone(), right.clone())
        }
        Ordering::Equal => make(left.clone(), entry, right.clone()),
        Ordering::Greater => {
            let right = Some(insert(right, entry));
            balanced(left.clone(), node.entry.clone(), right)
        }
    }
}

/// The tree without the entry at the position. O(log n).
pub(crate) fn remove<W>(tree: &Tree<W>, position: &[u8]) -> Tree<W> {
    let node = tree.as_ref()?;
    let [left, right] = &node.children;
    match position.cmp(&node.entry.position) {
        Ordering::Less => {
            let left = remove(left, position);
            Some(balanced(left, node.entry.clone(), right.clone()))
        }
        // The first entry of the right subtree takes the place of the removed one.
        Ordering::Equal => match first(right) {
            None => left.clone(),
            Some((entry, rest)) => Some(balanced(left.clone(), entry, rest)),
        },
        Ordering::Greater => {
            let right = remove(right, position);
            Some(balanced(left.clone(), node.entry.clone(), right))
        }
    }
}

/// The first entry, and the tree without it. O(log n).
pub(crate) fn first<W>(tree: &Tree<W>) -> Option<(Arc<Entry<W>>, Tree<W>)> {
    let (left, entry, right) = parts(tree.as_deref()?);
    Some(match first(&left) {
        None => (entry, right),
        Some((first, left)) => (first, Some(balanced(left, entry, right))),
    })
}

/// Joins two trees and an entry between them. O(difference of the heights).
fn join_with<W>(left: Tree<W>, entry: Arc<Entry<W>>, right: Tree<W>) -> Arc<ImmutableNode<W>> {
    let (left_height, right_height) = (height(&left), height(&right));
    match (&left, &right) {
        // Descend on the inner edge of the higher tree, to a subtree of about the height of the
        // lower one. On the way back, each node is balanced.
        (Some(node), _) if left_height > right_height + 2 => {
            let (a, up, b) = parts(node);
            balanced(a, up, Some(join_with(b, entry, right)))
        }
        (_, Some(node)) if right_height > left_height + 2 => {
            let (b, up, c) = parts(node);
            balanced(Some(join_with(left, entry, b)), up, c)
        }
        _ => make(left, entry, right),
    }
}

/// Joins two trees. All entries of the left one are before those of the right one. O(log n).
pub(crate) fn join<W>(left: &Tree<W>, right: &Tree<W>) -> Tree<W> {
    match first(right) {
        None => left.clone(),
        Some((entry, rest)) => Some(join_with(left.clone(), entry, rest)),
    }
}

/// Splits a tree at its root. Returns the two trees, and between them the first position of the
/// second one. `None` if there are fewer than two entries. O(log n).
pub(crate) fn divide<W>(tree: &Tree<W>) -> Option<(Tree<W>, Position, Tree<W>)> {
    let (left, entry, right) = parts(tree.as_deref()?);
    if left.is_some() {
        let position = entry.position.clone();
        return Some((left, position, Some(join_with(None, entry, right))));
    }
    // The root has no left subtree. It becomes the left tree.
    let (next, _) = first(&right)?;
    Some((Some(make(None, entry, None)), next.position.clone(), right))
}

/// The entry at a position.
pub(crate) fn get<'t, W>(tree: &'t Tree<W>, position: &[u8]) -> Option<&'t Entry<W>> {
    let mut at = tree.as_deref();
    while let Some(node) = at {
        at = match position.cmp(&node.entry.position) {
            Ordering::Equal => return Some(&node.entry),
            Ordering::Less => node.children[0].as_deref(),
            Ordering::Greater => node.children[1].as_deref(),
        };
    }
    None
}

/// Calls `f` with the entries from the cut on, in order, until `f` returns `false`. Returns whether
/// the end was reached.
pub(crate) fn walk<'t, W>(
    tree: &'t Tree<W>,
    cut: Cut<'_>,
    f: &mut dyn FnMut(&'t Entry<W>) -> bool,
) -> bool {
    let near = usize::from(!cut.is_forward());
    // Descend along the cut. Nodes that are admitted, and their far subtrees, are visited later.
    let mut rest = Vec::new();
    let mut at = tree.as_deref();
    while let Some(node) = at {
        let admitted = cut.admits(&node.entry.position);
        if admitted {
            rest.push(node);
        }
        at = node.children[if admitted { near } else { 1 - near }].as_deref();
    }
    // Visit the next node in order, and push the nearest nodes of its far subtree.
    while let Some(node) = rest.pop() {
        let mut at = node.children[1 - near].as_deref();
        while let Some(node) = at {
            rest.push(node);
            at = node.children[near].as_deref();
        }
        if !f(&node.entry) {
            return false;
        }
    }
    true
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use larder_index::{Direction, Start};

    fn entry(n: u64) -> Arc<Entry<u64>> {
        Arc::new(Entry {
            position: Position::from_slice(&n.to_be_bytes()),
            word: n,
        })
    }

    /// PT1 and PT2; what is in the tree.
    fn check(tree: &Tree<u64>) -> Vec<u64> {
        fn below(tree: &Tree<u64>) {
            if let Some(node) = tree {
                let [left, right] = [height(&node.children[0]), height(&node.children[1])];
                assert!(left.abs_diff(right) <= 2);
                assert_eq!(node.height, left.max(right) + 1);
                node.children.iter().for_each(below);
            }
        }
        below(tree);
        let mut all = Vec::new();
        let edge = |direction| Cut::new(Start::Edge, direction);
        assert!(walk(tree, edge(Direction::Forward), &mut |e| {
            all.push(e.word);
            true
        }));
        assert!(all.windows(2).all(|w| w[0] < w[1]));
        let mut back = Vec::new();
        walk(tree, edge(Direction::Backward), &mut |e| {
            back.push(e.word);
            true
        });
        back.reverse();
        assert_eq!(all, back);
        all
    }

    #[test]
    fn old_trees_stay_as_they_were() {
        let orders: [fn(u64) -> u64; 3] = [|i| i, |i| 499 - i, |i| i * 7919 % 500];
        for order in orders {
            let mut trees = vec![None];
            for i in 0..500 {
                trees.push(Some(insert(trees.last().unwrap(), entry(order(i)))));
            }
            let full = trees.last().unwrap().clone();
            assert!(check(&full).into_iter().eq(0..500));
            for (i, tree) in trees.iter().enumerate().step_by(50) {
                assert_eq!(check(tree).len(), i);
            }
            let mut tree = full.clone();
            for i in 0..500u64 {
                assert!(get(&tree, &i.to_be_bytes()).is_some_and(|e| e.word == i));
                tree = remove(&tree, &i.to_be_bytes());
                assert!(get(&tree, &i.to_be_bytes()).is_none());
                if i % 25 == 0 {
                    assert!(check(&tree).into_iter().eq(i + 1..500));
                }
            }
            assert!(tree.is_none());
        }
    }

    #[test]
    fn divides_and_joins() {
        let of =
            |range: std::ops::Range<u64>| range.fold(None, |tree, n| Some(insert(&tree, entry(n))));
        for (left, right) in [(0, 0), (1, 0), (0, 1), (1, 1), (2, 500), (500, 3), (70, 60)] {
            let tree = join(&of(0..left), &of(left..left + right));
            assert!(check(&tree).into_iter().eq(0..left + right));
            let Some((low, at, high)) = divide(&tree) else {
                assert!(left + right < 2);
                continue;
            };
            let (low, high) = (check(&low), check(&high));
            assert!(!low.is_empty() && at[..] == high[0].to_be_bytes());
            assert!(low.into_iter().chain(high).eq(0..left + right));
        }
    }
}

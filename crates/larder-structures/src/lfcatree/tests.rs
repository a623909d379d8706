use super::*;
use crate::Object;
use larder_index::{pin, Direction};
use std::thread;

fn put(tree: &LfCaTree<Object>, n: u64) {
    tree.change(&pin(), &n.to_be_bytes(), &mut |_| {
        Act::Put(Object::new(&n.to_be_bytes()))
    });
}

fn all(tree: &LfCaTree<Object>, direction: Direction) -> Vec<u64> {
    let (mut all, guard) = (Vec::new(), pin());
    let mut last: Option<u64> = None;
    loop {
        let bytes = last.map(u64::to_be_bytes);
        let start = bytes.as_ref().map_or(Start::Edge, |b| Start::Past(b));
        let ended = tree.walk(&guard, Cut::new(start, direction), &mut |p, _| {
            all.push(u64::from_be_bytes(p.try_into().unwrap()));
            all.len() % 7 != 0
        });
        last = all.last().copied();
        if ended {
            return all;
        }
    }
}

/// Invariant 1; no slot is frozen.
fn check(tree: &LfCaTree<Object>) {
    let guard = pin();
    let mut waiting = vec![(&tree.root, None::<&Position>, None::<&Position>)];
    while let Some((slot, from, to)) = waiting.pop() {
        let (node, frozen) = slot.load_marked(&guard);
        assert!(!frozen);
        match node.unwrap() {
            Node::Route(route) => {
                assert!(from.is_none_or(|from| *from < route.at));
                assert!(to.is_none_or(|to| route.at < *to));
                waiting.push((&route.kids[0], from, Some(&route.at)));
                waiting.push((&route.kids[1], Some(&route.at), to));
            }
            Node::Leaf(leaf) => {
                let edge = Cut::new(Start::Edge, Direction::Forward);
                pure::walk(&leaf.tree, edge, &mut |entry| {
                    assert!(from.is_none_or(|from| *from <= entry.position));
                    assert!(to.is_none_or(|to| entry.position < *to));
                    true
                });
            }
        }
    }
}

#[test]
fn leaves_divide_and_join() {
    // Every write divides.
    let mut tree = LfCaTree::new(-2 * CLAMP, -2 * CLAMP);
    (0..500).for_each(|n| put(&tree, n * 7 % 500));
    check(&tree);
    let split = tree.stats(&pin());
    assert!(split.leaves > 50 && split.depth <= DEPTH, "{split:?}");
    assert_eq!(split.leaves, split.inner_nodes + 1);
    assert_eq!(split.inner_nodes as u64, split.splits);
    assert!(all(&tree, Direction::Forward).into_iter().eq(0..500));
    assert!(all(&tree, Direction::Backward)
        .into_iter()
        .eq((0..500).rev()));
    // Every write joins.
    (tree.high, tree.low) = (1_000, 0);
    for n in 0..2_000 {
        put(&tree, n % 500);
        if n % 100 == 0 {
            check(&tree);
        }
    }
    let joined = tree.stats(&pin());
    assert_eq!((joined.leaves, joined.merges), (1, split.splits));
    assert!(all(&tree, Direction::Forward).into_iter().eq(0..500));
}

/// Writers of different keys of one leaf meet, and divide it.
#[test]
fn writers_that_meet_divide() {
    let tree = LfCaTree::new(1_000, -1_000);
    let rounds = 200_000;
    thread::scope(|scope| {
        for t in 0..4u64 {
            let tree = &tree;
            scope.spawn(move || {
                for i in 0..rounds {
                    put(tree, i % 200 * 4 + t);
                    if i % 64 == 0 && tree.stats(&pin()).splits > 0 {
                        return;
                    }
                }
            });
        }
    });
    check(&tree);
    let stats = tree.stats(&pin());
    assert!(stats.splits > 0 && stats.contended >= 4, "{stats:?}");
}

/// The shape changes with every write, under readers, writers and scans.
#[test]
fn a_shape_that_never_rests() {
    for (high, low) in [(-2 * CLAMP, -2 * CLAMP), (-3, -2), (1_000, 0)] {
        let tree = LfCaTree::new(high, low);
        (0..200).for_each(|n| put(&tree, n * 10));
        thread::scope(|scope| {
            for t in 1..4u64 {
                let tree = &tree;
                scope.spawn(move || {
                    for i in 0..3000u64 {
                        let n = i * 37 % 200 * 10 + t;
                        put(tree, n);
                        assert!(tree.has(&pin(), &n.to_be_bytes()));
                        tree.change(&pin(), &n.to_be_bytes(), &mut |_| Act::Remove);
                        assert!(!tree.has(&pin(), &n.to_be_bytes()));
                    }
                });
            }
            scope.spawn(|| {
                for i in 0..100 {
                    let direction = [Direction::Forward, Direction::Backward][i % 2];
                    let found = all(&tree, direction);
                    assert!(found.windows(2).all(|w| (w[0] < w[1]) == (i % 2 == 0)));
                    assert_eq!(found.iter().filter(|n| *n % 10 == 0).count(), 200);
                }
            });
        });
        check(&tree);
        let stats = tree.stats(&pin());
        assert_eq!(stats.inner_nodes as u64, stats.splits - stats.merges);
    }
}

use super::*;
use crate::Object;
use larder_index::{pin, Direction, Start};
use std::thread;
use std::time::{Duration, Instant};

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

/// LF1; no slot is frozen.
fn check(tree: &LfCaTree<Object>) {
    let guard = pin();
    let mut waiting = vec![(&tree.root, None::<&Position>, None::<&Position>)];
    while let Some((slot, from, to)) = waiting.pop() {
        let (node, frozen) = slot.load_marked(&guard);
        assert!(!frozen);
        match node.unwrap() {
            LfCaTreeNode::Route(route) => {
                assert!(from.is_none_or(|from| *from < route.at));
                assert!(to.is_none_or(|to| route.at < *to));
                waiting.push((&route.kids[0], from, Some(&route.at)));
                waiting.push((&route.kids[1], Some(&route.at), to));
            }
            LfCaTreeNode::Leaf(leaf) => {
                let edge = Cut::new(Start::Edge, Direction::Forward);
                persistent_tree::walk(&leaf.tree, edge, &mut |entry| {
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

/// Writers of different keys of one leaf meet, and divide it. Nothing else would: the leaf is as
/// quiet as can be, and one meeting is enough.
#[test]
fn writers_that_meet_divide() {
    let mut tree = LfCaTree::new(2 * CLAMP, -2 * CLAMP);
    (0..CLAMP as u64).for_each(|n| put(&tree, n % 800));
    tree.high = -CLAMP;
    (0..1_000).for_each(|n| put(&tree, n % 800));
    assert_eq!(tree.stats(&pin()).splits, 0);
    let end = Instant::now() + Duration::from_secs(60);
    thread::scope(|scope| {
        for t in 0..4u64 {
            let tree = &tree;
            scope.spawn(move || {
                for i in 0u64.. {
                    put(tree, i % 200 * 4 + t);
                    if i % 64 == 0 && (tree.stats(&pin()).splits > 0 || Instant::now() > end) {
                        return;
                    }
                }
            });
        }
    });
    check(&tree);
    let stats = tree.stats(&pin());
    assert!(stats.splits > 0 && stats.contended > 0, "{stats:?}");
    assert!(all(&tree, Direction::Forward).into_iter().eq(0..800));
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

fn set(tree: &LfCaTree<Object>, n: u64, what: u64) {
    tree.change(&pin(), &n.to_be_bytes(), &mut |_| {
        Act::Put(Object::new(&what.to_be_bytes()))
    });
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}

/// Two counters in different leaves, the lower first, go up one after the other: what is read
/// together is never further apart than one. Ranges are always read together; a walk is, unless it
/// ends between the two.
#[test]
fn ranges_are_of_one_instant() {
    for (high, low) in [(-2 * CLAMP, -2 * CLAMP), (-3, -2)] {
        let tree = LfCaTree::new(high, low);
        (0..200).for_each(|n| set(&tree, n, 0));
        let stop = std::sync::atomic::AtomicBool::new(false);
        let seen = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for i in 1..if cfg!(miri) { 20 } else { 6000 } {
                    set(&tree, 3, i);
                    set(&tree, 190, i);
                    set(&tree, 20 + i % 150, i);
                }
                stop.store(true, Relaxed);
            });
            for direction in [Direction::Forward, Direction::Backward] {
                let (tree, stop, seen) = (&tree, &stop, &seen);
                scope.spawn(move || loop {
                    let last = stop.load(Relaxed);
                    let guard = pin();
                    let (mut low, mut high) = (None, None);
                    let mut see = |position: &[u8], word: &Object| {
                        match number(position) {
                            3 => low = Some(number(word.bytes())),
                            190 => high = Some(number(word.bytes())),
                            _ => {}
                        }
                        true
                    };
                    let cut = Cut::new(Start::Edge, direction);
                    let whole = seen.fetch_add(1, Relaxed) % 2 == 0;
                    if whole {
                        assert!(tree.range(&guard, cut, &|_| false, &mut see));
                    } else {
                        tree.walk(&guard, cut, &mut see);
                    }
                    match (low, high) {
                        (Some(low), Some(high)) => {
                            assert!(low == high || low == high + 1, "{low} and {high}");
                        }
                        _ => assert!(!whole),
                    }
                    if last {
                        return;
                    }
                });
            }
        });
        check(&tree);
    }
}

/// A hundred leaves and more without entries, which neither divide nor are joined.
fn empty_leaves(most: u64) -> LfCaTree<Object> {
    let mut tree = LfCaTree::new(-2 * CLAMP, -2 * CLAMP);
    (0..=most).for_each(|n| put(&tree, n * 389 % (most + 1)));
    tree.high = 2 * CLAMP;
    (0..=most).for_each(|n| remove(&tree, n));
    assert!(tree.stats(&pin()).leaves as u64 > most / 10);
    tree
}

fn remove(tree: &LfCaTree<Object>, n: u64) {
    tree.change(&pin(), &n.to_be_bytes(), &mut |_| Act::Remove);
}

fn all_together(tree: &LfCaTree<Object>) -> Vec<u64> {
    let (mut visited, guard) = (Vec::new(), pin());
    let cut = Cut::new(Start::Edge, Direction::Forward);
    tree.range(&guard, cut, &|_| false, &mut |position, _| {
        visited.push(number(position));
        true
    });
    visited
}

/// A leaf that has no entry when it is passed counts like any other: once a range had the last
/// entry and not the first, which was there before the last came and when it went; and another none
/// at all, though one of the two was always there.
#[test]
fn leaves_without_entries_are_of_the_same_instant() {
    let last = if cfg!(miri) { 30 } else { 1_000 };
    let rounds = if cfg!(miri) { 5 } else { 30_000 };
    for one_at_least in [false, true] {
        let tree = empty_leaves(last);
        if one_at_least {
            put(&tree, last);
        }
        let stop = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..rounds {
                    put(&tree, 0);
                    if one_at_least {
                        remove(&tree, last);
                    }
                    put(&tree, last);
                    if !one_at_least {
                        remove(&tree, last);
                    }
                    remove(&tree, 0);
                }
                stop.store(true, Relaxed);
            });
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    let visited = all_together(&tree);
                    if one_at_least {
                        assert!(!visited.is_empty());
                    } else {
                        assert_ne!(visited, [last]);
                    }
                }
            });
        });
        check(&tree);
    }
}

/// A range ends where it is said to, or where its visitor has enough.
#[test]
fn ranges_end() {
    let tree = LfCaTree::new(-2 * CLAMP, -2 * CLAMP);
    (0..500).for_each(|n| set(&tree, n * 7 % 500, n));
    assert!(tree.stats(&pin()).leaves > 50);
    let (from, to) = (100u64.to_be_bytes(), 300u64.to_be_bytes());
    let guard = pin();
    let read = |cut: Cut<'_>, past: &dyn Fn(&[u8]) -> bool, most: usize| {
        let mut visited = Vec::new();
        let ended = tree.range(&guard, cut, past, &mut |p, _| {
            visited.push(number(p));
            visited.len() < most
        });
        (visited, ended)
    };
    let up = Cut::new(Start::At(&from), Direction::Forward);
    let down = Cut::new(Start::At(&to), Direction::Backward);
    let all = |most| read(up, &|p| p > &to[..], most);
    assert_eq!(all(1000), ((100..=300).collect(), true));
    assert_eq!(all(7), ((100..107).collect(), false));
    let back = read(down, &|p| p < &from[..], 1000);
    assert_eq!(back, ((100..=300).rev().collect(), true));
    let frozen = tree.frozen_leaves(&guard, up, &|p| p > &to[..]);
    assert!(frozen.len() > 10 && frozen.len() < tree.stats(&guard).leaves);
    check(&tree);
}

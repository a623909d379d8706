use super::*;
use crate::Object;
use larder_index::pin;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

fn put(tree: &RelaxedAvl<Object>, n: u32, what: u64) {
    let word = || Act::Put(Object::new(&what.to_be_bytes()));
    tree.change(&pin(), &n.to_be_bytes(), &mut |_| word());
}

fn remove(tree: &RelaxedAvl<Object>, n: u32) {
    tree.change(&pin(), &n.to_be_bytes(), &mut |_| Act::Remove);
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// Checks a subtree by RV1, RV3 and RV5; gives its height and how many nodes it has.
fn check_below(node: Option<&RelaxedAvlNode<Object>>, born: u64, guard: &Guard) -> (u32, usize) {
    let Some(node) = node else { return (0, 0) };
    assert!(node.born <= born && !node.is_unlinked());
    let kids = [node.kid(0, guard), node.kid(1, guard)];
    assert!(kids[0].is_none_or(|kid| kid.position < node.position));
    assert!(kids[1].is_none_or(|kid| kid.position > node.position));
    assert!(kids.iter().all(Option::is_some) || node.word.load(guard).is_some());
    let [(low, few), (high, many)] = kids.map(|kid| check_below(kid, node.born, guard));
    assert!(low.abs_diff(high) <= 1, "{low} beside {high}");
    assert_eq!(node.height(), low.max(high) + 1);
    (node.height(), few + many + 1)
}

/// The invariants of a tree that nobody works at; gives its keys.
fn check(tree: &RelaxedAvl<Object>) -> Vec<u32> {
    let guard = pin();
    let (_, nodes) = check_below(tree.root(&guard), u64::MAX, &guard);
    let mut keys = Vec::new();
    let all = Cut::new(Start::Edge, Direction::Forward);
    walk(tree.root(&guard), &guard, all, &mut |position, _| {
        keys.push(number(position) as u32);
        true
    });
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    let routes = tree.figures.routes.load(Relaxed);
    assert_eq!(nodes as i64, keys.len() as i64 + routes);
    keys
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^ (x >> 29)
}

#[test]
fn balance_holds_after_every_step() {
    let (tree, mut oracle) = (RelaxedAvl::new(), BTreeSet::new());
    let empty = tree.memory(&pin());
    for i in 0..if cfg!(miri) { 150 } else { 4000u64 } {
        let n = (mix(i) % 400) as u32;
        if mix(i + 77_777) % 5 < 3 {
            put(&tree, n, i);
            oracle.insert(n);
        } else {
            remove(&tree, n);
            oracle.remove(&n);
        }
        if i % 7 == 0 {
            assert!(check(&tree).iter().eq(&oracle));
        }
        if i % 50 == 0 {
            drop(tree.snapshot(&pin()));
        }
    }
    assert!(tree.stats(&pin()).more.iter().all(|(_, n)| *n > 0));
    oracle.into_iter().for_each(|n| remove(&tree, n));
    assert!(check(&tree).is_empty() && tree.memory(&pin()) == empty);
}

#[test]
fn runs_in_order_stay_balanced() {
    for down in [false, true] {
        let tree = RelaxedAvl::new();
        let n = if cfg!(miri) { 64 } else { 4096 };
        (0..n).for_each(|i| put(&tree, if down { n - i } else { i }, 0));
        assert_eq!(check(&tree).len(), n as usize);
        assert!(tree.stats(&pin()).depth <= 13);
    }
}

/// A clone stays as it is, and the tree goes on.
#[test]
fn a_clone_is_of_one_instant() {
    let tree = RelaxedAvl::new();
    (0..300).for_each(|n| put(&tree, n, 1));
    let guard = pin();
    let clones: Vec<_> = (0..3)
        .map(|round| {
            let clone = tree.snapshot(&guard);
            (0..300)
                .filter(|n| n % 3 == round)
                .for_each(|n| remove(&tree, n));
            (1000..1300).for_each(|n| put(&tree, n, u64::from(round)));
            clone
        })
        .collect();
    assert_eq!(check(&tree), (1000..1300).collect::<Vec<_>>());
    drop(tree);
    for (round, clone) in clones.iter().enumerate() {
        let mut visited = Vec::new();
        let all = Cut::new(Start::Edge, Direction::Forward);
        clone.walk(&guard, all, &mut |position, word| {
            visited.push((number(position) as u32, number(word.bytes())));
            true
        });
        let first = (0..300).filter(|n| *n % 3 >= round as u32).map(|n| (n, 1));
        let rest = (1000..1300).map(|n| (n, (round as u64).wrapping_sub(1)));
        let rest = rest.take(if round == 0 { 0 } else { 300 });
        assert!(visited.into_iter().eq(first.chain(rest)));
    }
}

/// A clone that nobody wrote since is taken again.
#[test]
fn clones_without_writes_cost_nothing() {
    let tree = RelaxedAvl::new();
    (0..100).for_each(|n| put(&tree, n, 1));
    (0..5).for_each(|_| drop(tree.snapshot(&pin())));
    let figure = |name| {
        let more = tree.stats(&pin()).more;
        more.into_iter().find(|(n, _)| *n == name).unwrap().1
    };
    assert_eq!((figure("clones"), figure("copies")), (1, 0));
    put(&tree, 50, 2);
    let depth = tree.stats(&pin()).depth as u64;
    assert!((1..=depth).contains(&figure("copies")));
}

/// Two counters, the lower first, go up one after the other: an iteration that were not of one
/// instant would see them further apart than one.
#[test]
fn iterations_are_atomic() {
    let tree = RelaxedAvl::new();
    (0..200).for_each(|n| put(&tree, n, 0));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..if cfg!(miri) { 20 } else { 4000 } {
                put(&tree, 3, i);
                put(&tree, 190, i);
                // The shape changes meanwhile.
                remove(&tree, 100 + (i % 50) as u32);
                put(&tree, 100 + (i * 7 % 50) as u32, i);
            }
            stop.store(true, Relaxed);
        });
        for direction in [Direction::Forward, Direction::Backward] {
            let (tree, stop) = (&tree, &stop);
            scope.spawn(move || loop {
                let last = stop.load(Relaxed);
                let guard = pin();
                let (mut low, mut high) = (None, None);
                let cut = Cut::new(Start::Edge, direction);
                Scheme::walk(tree, &guard, cut, &mut |position, word| {
                    match number(position) {
                        3 => low = Some(number(word.bytes())),
                        190 => high = Some(number(word.bytes())),
                        _ => {}
                    }
                    true
                });
                let (low, high) = (low.unwrap(), high.unwrap());
                assert!(low == high || low == high + 1, "{low} and {high}");
                if last {
                    return;
                }
            });
        }
    });
    check(&tree);
}

/// Threads put and remove keys of their own among those of others, and find what they did; clones
/// are taken meanwhile. All damage is repaired in the end.
#[test]
fn neighbours_disturb_nobody_and_balance_returns() {
    let tree = RelaxedAvl::new();
    let rounds = if cfg!(miri) { 30 } else { 20_000u64 };
    std::thread::scope(|scope| {
        for t in 0..4u32 {
            let tree = &tree;
            scope.spawn(move || {
                for i in 0..rounds {
                    let n = (mix(i << 3 | u64::from(t)) % 60) as u32 * 4 + t;
                    let find = || {
                        let mut found = false;
                        tree.read(&pin(), &n.to_be_bytes(), &mut |w| found = w.is_some());
                        assert_eq!(found, tree.has(&pin(), &n.to_be_bytes()));
                        found
                    };
                    put(tree, n, i);
                    assert!(find(), "{n} was put");
                    if i % 3 != 0 {
                        remove(tree, n);
                        assert!(!find(), "{n} was removed");
                    }
                    if i % 97 == 0 {
                        drop(tree.snapshot(&pin()));
                    }
                }
            });
        }
    });
    check(&tree);
}

/// Few keys come and go, with a clone before each step. So a child is often unlinked before its
/// parent is locked for a copy, and writers reach unlinked nodes through other unlinked ones.
/// They must neither panic nor search for ever.
#[test]
fn nodes_that_go_while_others_come_to_them() {
    let tree = RelaxedAvl::new();
    let rounds = if cfg!(miri) { 30 } else { 30_000u64 };
    std::thread::scope(|scope| {
        for t in 0..3u64 {
            let tree = &tree;
            scope.spawn(move || {
                for i in 0..rounds {
                    let random = mix(i << 4 | t);
                    if random.is_multiple_of(4) {
                        drop(tree.snapshot(&pin()));
                    }
                    match (random >> 8) % 2 {
                        0 => put(tree, (random >> 16) as u32 % 6, i),
                        _ => remove(tree, (random >> 16) as u32 % 6),
                    }
                }
            });
        }
    });
    check(&tree);
}

/// Nodes that were unlinked one after the other, and lead to each other, are dropped without a
/// step down the stack for each.
#[test]
fn long_chains_are_dropped() {
    let tree = RelaxedAvl::new();
    let n = if cfg!(miri) { 60 } else { 60_000 };
    (0..n).for_each(|i| put(&tree, i, 0));
    let guard = pin();
    // The guard keeps all that is unlinked now.
    assert!(!tree.pop(&guard, n as usize / 2, &mut drop));
    assert!(tree.pop(&guard, n as usize, &mut drop));
    drop(guard);
    drop(tree);
    for _ in 0..100 {
        pin().flush();
    }
}

/// A child that was there when a writer began to wait for the lock of the node above, to copy it,
/// and is gone when it has the lock. (The model checker found that the writer took it for granted.)
#[test]
fn a_child_goes_while_a_writer_waits_to_copy_it() {
    let tree = RelaxedAvl::new();
    put(&tree, 5, 5);
    let clone = tree.snapshot(&pin());
    std::thread::scope(|scope| {
        let held = tree.holder.lock.lock();
        scope.spawn(|| put(&tree, 7, 7));
        // Long enough for the writer to wait; if it is late it finds no child in the first place.
        std::thread::sleep(std::time::Duration::from_millis(50));
        tree.holder.kids[1].store(None, &pin());
        drop(held);
    });
    assert_eq!(check(&tree), [7]);
    let mut keys = Vec::new();
    let all = Cut::new(Start::Edge, Direction::Forward);
    clone.walk(&pin(), all, &mut |position, _| {
        keys.push(number(position));
        true
    });
    assert_eq!(keys, [5]);
}

/// A writer waits for a node's lock while that and the node above are unlinked: it begins again
/// from the top. (Histories of bags found one that went round for ever between the two.)
#[test]
fn a_way_that_is_out_is_left() {
    let tree = Arc::new(RelaxedAvl::new());
    put(&tree, 5, 5);
    put(&tree, 7, 7);
    let (done, is_done) = std::sync::mpsc::channel();
    let guard = pin();
    let above = tree.root(&guard).expect("the node of 5");
    let node = above.kid(1, &guard).expect("the node of 7");
    let held = node.lock.lock();
    let other = tree.clone();
    std::thread::spawn(move || {
        put(&other, 7, 8);
        done.send(()).expect("somebody waits");
    });
    // Long enough for the writer to wait; if it is late it finds an empty tree.
    std::thread::sleep(std::time::Duration::from_millis(50));
    tree.holder.kids[1].store(None, &guard);
    above.unlink();
    node.unlink();
    drop(held);
    let wait = std::time::Duration::from_secs(60);
    is_done.recv_timeout(wait).expect("the writer ends");
    assert_eq!(check(&tree), [7]);
}

/// The node that rises in the first half of a double rotation may lean. If the second half isn't
/// needed any more, since another thread has made the other side higher meanwhile, that node is
/// repaired by itself.
#[test]
fn half_of_a_double_rotation_leaves_nothing_leaning() {
    let tree = RelaxedAvl::new();
    for n in [100, 50, 150, 25, 75, 130, 170, 10, 30, 60, 80] {
        put(&tree, n, 0);
    }
    let guard = pin();
    let generation = tree.generation.read();
    let writer = Writer {
        guard: &guard,
        generation: *generation,
    };
    let node = |n: u32| {
        let found = tree.locate(&guard, &n.to_be_bytes(), None, &mut VersionedPath::new());
        found.expect("it was put")
    };
    // One thread inserts 55, and repairs up to the node of 100, which leans to the left then.
    let (mut path, place) = (VersionedPath::new(), 55u32.to_be_bytes());
    assert!(tree
        .locate(&guard, &place, Some(&writer), &mut path)
        .is_none());
    let last = path.last().expect("the node of 60");
    let hung = tree.change_below(&writer, last, &place, &mut |_| Act::Put(Object::new(b"55")));
    assert_eq!(hung, Some(true));
    for n in [60, 75, 50] {
        repair::fix_height(node(n), &guard);
    }
    let (top, mut waiting) = (node(100), SmallVec::new());
    tree.mend(&writer, &tree.holder, top, &mut waiting);
    // Another one makes the right side as high.
    put(&tree, 180, 0);
    while let Some(node) = waiting.pop() {
        tree.repair(&writer, &mut path, node);
    }
    drop(generation);
    assert_eq!(check(&tree).len(), 13);
}

/// A node with a long key takes as much after it was copied as before.
#[test]
fn copies_count_as_much_as_what_they_replace() {
    let tree = RelaxedAvl::new();
    let each = |act: fn() -> Act<Object>| {
        for n in 0..20u8 {
            tree.change(&pin(), &[n; 40], &mut |_| act());
        }
        tree.memory(&pin())
    };
    let put = || Act::Put(Object::new(b"x"));
    let full = each(put);
    for _ in 0..3 {
        drop(tree.snapshot(&pin()));
        assert_eq!(each(put), full);
        each(|| Act::Remove);
        assert_eq!(each(put), full);
    }
}

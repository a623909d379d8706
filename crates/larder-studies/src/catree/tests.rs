use super::*;
use crate::{Act, Avl, Btree};
use larder_index::{pin, Direction};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

type AvlCaTree = CaTree<u64, Avl<u64>>;

fn put<S: Divisible<u64> + 'static>(tree: &CaTree<u64, S>, n: u64) {
    tree.change(&pin(), &n.to_be_bytes(), &mut |_| Act::Put(n));
}

fn all<S: Divisible<u64> + 'static>(tree: &CaTree<u64, S>, direction: Direction) -> Vec<u64> {
    let (mut all, guard) = (Vec::new(), pin());
    let mut last = None;
    loop {
        let bytes = last.map(u64::to_be_bytes);
        let start = bytes.as_ref().map_or(Start::Edge, |b| Start::Past(b));
        let ended = tree.walk(&guard, Cut::new(start, direction), &mut |_, n| {
            all.push(*n);
            all.len() % 7 != 0
        });
        last = all.last().copied();
        if ended {
            return all;
        }
    }
}

/// CT1: each base has what its routes say. The memory that is counted is that of all.
fn check<S: Divisible<u64> + 'static>(tree: &CaTree<u64, S>) {
    let guard = pin();
    let mut waiting = vec![(&tree.root, None::<&Position>, None::<&Position>)];
    let mut memory = 0usize;
    while let Some((slot, from, to)) = waiting.pop() {
        match slot.load(&guard).unwrap() {
            CaTreeNode::Route(route) => {
                assert!(from.is_none_or(|from| *from < route.at));
                assert!(to.is_none_or(|to| route.at < *to));
                waiting.push((&route.kids[0], from, Some(&route.at)));
                waiting.push((&route.kids[1], Some(&route.at), to));
            }
            CaTreeNode::Base(base) => {
                let part = base.part.read();
                assert!(part.valid);
                memory = memory.wrapping_add(part.structure.memory());
                let edge = Cut::new(Start::Edge, Direction::Forward);
                part.structure.walk(edge, &mut |p, _| {
                    assert!(from.is_none_or(|from| &from[..] <= p));
                    assert!(to.is_none_or(|to| p < &to[..]));
                    true
                });
            }
        }
    }
    // Counters that are striped have memory of their own.
    let stripes = Counts::default();
    stripes.contended();
    let counted = tree.counts.bytes();
    assert!((memory..=memory + stripes.bytes()).contains(&counted));
}

/// Makes one thread wait for another at the key's base.
fn contend<S: Divisible<u64> + 'static>(tree: &CaTree<u64, S>, n: u64) {
    let before = tree.stats(&pin()).contended;
    // On a busy machine this thread may come after the other has left. Then they meet again.
    while tree.stats(&pin()).contended == before {
        let inside = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let guard = pin();
                tree.change(&guard, &n.to_be_bytes(), &mut |_| {
                    // Ordering: SeqCst, in a test.
                    inside.store(true, std::sync::atomic::Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(3));
                    Act::Keep
                });
            });
            while !inside.load(std::sync::atomic::Ordering::SeqCst) {
                thread::yield_now();
            }
            put(tree, n);
        });
    }
    assert_eq!(tree.stats(&pin()).contended, before + 1);
}

/// Threads that are made to meet divide bases again and again; then one thread alone makes one base
/// of all. With OTP's numbers.
fn adapts<S: Divisible<u64> + 'static>(structure: S) {
    let adaptation = Adaptation {
        random_join: false,
        ..Adaptation::default()
    };
    let tree = CaTree::new(structure, adaptation);
    (0..1000).for_each(|n| put(&tree, n));
    for at in 0..8 {
        for _ in 0..16 {
            contend(&tree, at * 125);
        }
        check(&tree);
    }
    let split = tree.stats(&pin());
    assert!(split.splits >= 6 && split.leaves >= 4, "{split:?}");
    assert_eq!(split.leaves, split.inner_nodes + 1);
    assert_eq!(split.inner_nodes as u64, split.splits - split.merges);
    assert!(split.depth >= 2 && split.depth <= split.inner_nodes);
    for direction in [Direction::Forward, Direction::Backward] {
        let mut found = all(&tree, direction);
        if direction == Direction::Backward {
            found.reverse();
        }
        assert!(found.into_iter().eq(0..1000));
    }
    // Alone: each write counts −1, so that in time every base is below −1,000 and joined.
    for i in 0..200_000u64 {
        put(&tree, i * 7 % 1000);
        if tree.stats(&pin()).leaves == 1 {
            break;
        }
    }
    check(&tree);
    let joined = tree.stats(&pin());
    assert_eq!((joined.leaves, joined.inner_nodes, joined.depth), (1, 0, 0));
    assert_eq!(joined.merges, joined.splits);
    assert!(all(&tree, Direction::Forward).into_iter().eq(0..1000));
}

#[test]
fn contention_splits_and_quiet_joins_over_avl() {
    adapts(Avl::new(true));
}

#[test]
fn contention_splits_and_quiet_joins_over_a_btree() {
    adapts(Btree::new(4));
}

/// Every write changes the shape: to be found in all orders, by threads that read, write and scan.
#[test]
fn a_shape_that_never_rests() {
    for high in [-3, 3] {
        let adaptation = Adaptation {
            quiet: if high < 0 { 1 } else { -1 },
            high,
            low: -2,
            clamp: 10,
            depth: 8,
            ..Adaptation::default()
        };
        let tree: AvlCaTree = CaTree::new(Avl::new(false), adaptation);
        (0..200).for_each(|n| put(&tree, n * 10));
        thread::scope(|scope| {
            for t in 1..4u64 {
                let tree = &tree;
                scope.spawn(move || {
                    for i in 0..3000u64 {
                        let n = i * 37 % 200 * 10 + t;
                        put(tree, n);
                        tree.read(&pin(), &n.to_be_bytes(), &mut |seen| {
                            assert_eq!(seen, Some(&n));
                        });
                        tree.change(&pin(), &n.to_be_bytes(), &mut |_| Act::Remove);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..100 {
                    let found = all(&tree, Direction::Forward);
                    assert!(found.windows(2).all(|w| w[0] < w[1]));
                    assert_eq!(found.iter().filter(|n| *n % 10 == 0).count(), 200);
                }
            });
        });
        check(&tree);
        let stats = tree.stats(&pin());
        // Where only contention divides, there may have been none.
        assert!(
            (stats.splits > 0 || high > 0) && stats.depth <= 8,
            "{stats:?}"
        );
        assert_eq!(stats.inner_nodes as u64, stats.splits - stats.merges);
    }
}

/// The reported splits and joins, replayed, result in the bases of the tree.
#[test]
fn a_watcher_is_notified_of_every_change() {
    type Reported = (Vec<u64>, Vec<u64>, Vec<Option<u64>>);
    let reported = Arc::new(Mutex::new(Vec::<Reported>::new()));
    let sink = Arc::clone(&reported);
    let number = |p: &[u8]| u64::from_be_bytes(p.try_into().unwrap());
    let adaptation = Adaptation {
        contended: 1,
        quiet: 1,
        high: 3,
        low: -3,
        random_join: true,
        depth: 6,
        ..Adaptation::default()
    };
    let tree = AvlCaTree::new(Avl::new(false), adaptation).watched(Box::new(move |adapted| {
        let mut gone = vec![adapted.base];
        gone.extend(adapted.with);
        let mut ends = vec![adapted.from.map(number)];
        ends.extend(adapted.at.map(|at| Some(number(at))));
        assert!(adapted
            .to
            .is_none_or(|to| adapted.from.is_none_or(|from| from < to)));
        assert_eq!(ends.len(), adapted.becomes.len());
        sink.lock().push((gone, adapted.becomes.to_vec(), ends));
    }));
    for n in 0..4_000u64 {
        put(&tree, n * 7_919 % 1_000);
    }
    let mut bases = std::collections::BTreeMap::from([(0, None)]);
    let reported = std::mem::take(&mut *reported.lock());
    let joins = reported.iter().filter(|(gone, ..)| gone.len() == 2).count();
    assert!(
        joins > 0 && reported.len() > 2 * joins,
        "{joins} of {}",
        reported.len()
    );
    for (gone, becomes, ends) in reported {
        gone.iter()
            .for_each(|base| assert!(bases.remove(base).is_some()));
        bases.extend(becomes.into_iter().zip(ends));
    }
    let mut replayed: Vec<_> = bases.into_iter().map(|(base, from)| (from, base)).collect();
    replayed.sort_unstable();
    let now = tree.bases_now(&pin());
    let there: Vec<_> = now
        .iter()
        .map(|b| (b.from.as_ref().map(|p| number(p)), b.base))
        .collect();
    assert_eq!(replayed, there);
    assert_eq!(now.iter().map(|b| b.entries).sum::<usize>(), 1_000);
}

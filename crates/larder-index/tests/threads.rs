//! Threads at work together, and what must hold all the while.

use larder_index::sync::atomic::AtomicU64;
use larder_index::{multi_with, pin, unique_with, LeafConfig, Unique, UniqueKind};
use larder_testing::environment::times;
use larder_testing::*;
use std::thread;

/// Of both orders, with leaves of both sizes.
fn on_all(f: impl Fn(&dyn Unique, LeafConfig, &str)) {
    for kind in [Kind::Hash, Kind::Ordered] {
        for config in configs() {
            f(
                &*make(kind, config),
                config,
                &format!("{kind:?} {config:?}"),
            );
        }
    }
}

#[test]
fn no_update_is_lost() {
    let rounds = times(4000) as u64;
    on_all(|index, _, name| threads::no_update_is_lost(index, name, rounds));
}

#[test]
fn no_value_is_torn() {
    on_all(|index, _, _| threads::no_value_is_torn(index, times(6000) as u64));
}

#[test]
fn nothing_appended_is_lost() {
    let rounds = times(1500) as u32;
    on_all(|index, _, name| threads::nothing_appended_is_lost(index, name, rounds));
}

#[test]
fn scans_miss_nothing_and_repeat_nothing() {
    on_all(|index, config, name| {
        threads::scans_miss_nothing(index, times(6) as u64);
        let stats = index.stats();
        if config.most == LeafConfig::tiny().most {
            assert!(stats.splits > 50 && stats.merges > 5, "{name} {stats:?}");
            let is_tree = name.starts_with("Ordered");
            assert!(
                !is_tree || stats.inner_nodes < stats.leaves,
                "{name} {stats:?}"
            );
        }
    });
}

#[test]
fn what_is_unchanged_was_not_removed() {
    const KEYS: u16 = 5000;
    for config in configs() {
        let (index, removed) = (make(Kind::Hash, config), AtomicU64::new(0));
        let keys = if cfg!(miri) { 50 } else { KEYS };
        unchanged::fill(&*index, keys);
        let looks: Vec<_> = thread::scope(|scope| {
            scope.spawn(|| unchanged::exchange(&*index, keys, &removed));
            let looker = |salt| {
                let (index, removed) = (&index, &removed);
                move || unchanged::look(&**index, removed, times(20_000) as u64, salt)
            };
            let lookers = [7, 77].map(|salt| scope.spawn(looker(salt)));
            lookers.map(|l| l.join().expect("no panic")).to_vec()
        });
        assert!(looks.iter().all(|look| look.0 > 0), "{looks:?}");
    }
}

#[test]
fn a_change_of_a_bag_is_seen_at_once() {
    for config in configs() {
        threads::a_bag_changes_at_once(&*multi_with(Hashes::Few, config), times(800) as u64);
    }
}

#[test]
fn queues_stay_small_and_in_order() {
    let index = make(Kind::Ordered, LeafConfig::tiny());
    threads::queues(&*index, "ordered", times(6000) as u64);
    let (memory, stats) = (index.memory(), index.stats());
    assert!(memory < 20_000, "{memory} {stats:?}");
    // Each inner node has two children at least.
    assert!(stats.inner_nodes < stats.leaves, "{stats:?}");
}

/// The last leaf is found without the path to it, by inserts that search nothing, while others
/// insert and remove elsewhere and in it, and read.
#[test]
fn inserts_at_the_end_go_on_beside_all_else() {
    let keys = times(20_000) as u32;
    let last = Some(appends::FIRST + keys - 1);
    for config in configs() {
        let index = make(Kind::Ordered, config);
        thread::scope(|scope| {
            scope.spawn(|| appends::append(&*index, keys));
            for seed in 0..2 {
                let index = &index;
                scope.spawn(move || {
                    appends::meddle(&**index, 100, seed);
                    while appends::look(&**index, 20) != last {
                        appends::meddle(&**index, 100, seed);
                    }
                });
            }
        });
        assert_eq!(appends::look(&*index, usize::MAX), last);
    }
}

/// A prefetch reads leaves that others change, believes nothing and changes nothing.
#[test]
fn a_prefetch_is_only_a_hint() {
    let rounds = if cfg!(miri) { 20 } else { 3000 };
    for config in configs() {
        let index = unique_with(UniqueKind::Ordered, config);
        let bag = multi_with(Hashes::Good, config);
        let bytes: Vec<_> = (0..100u64).map(|i| mix(i).to_be_bytes()).collect();
        let keys: Vec<_> = bytes.iter().map(|b| key(b, Hashes::Good)).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..rounds {
                    let k = keys[i % keys.len()];
                    match i % 3 {
                        0 => remove(&*index, k),
                        n => put(&*index, k, &vec![1; n * i % 90]),
                    };
                    bag.update(&pin(), k, &mut |objects| objects.push(&[1; 20]));
                }
            });
            for i in 0..rounds / 10 {
                index.prefetch(&pin(), &keys[i % 50..]);
                bag.prefetch(&pin(), &keys[i % 50..]);
            }
        });
        let there = keys.iter().filter(|k| index.contains(&pin(), **k)).count();
        assert_eq!((there, bag.len()), (index.len(), rounds));
    }
}

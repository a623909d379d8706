//! Interleavings that a model checker chooses: threads change at every touch of an atomic word, so
//! that the narrow windows between a check and what relies on it are hit. Each execution's history
//! must be linearizable, and the index must have what the history left.
//!
//! Runs in builds with `--cfg larder_model` alone: `scripts/model.sh`; see
//! `larder_testing::model_checker`.
#![cfg(larder_model)]

use larder_index::sync::atomic::AtomicU64;
use larder_index::sync::Fault;
use larder_index::{
    multi_with, Chains, Change, Direction, Hint, LeafConfig, Quarantine, Start, Unique,
};
use larder_testing::history::of_threads;
use larder_testing::model_checker::{
    alone, check, each_goes_wrong, each_is_found, goes_wrong, history, plant_requested,
    planted_search, rounds, Faults, Search,
};
use larder_testing::registers::Registers;
use larder_testing::{appends, make, mix, ranks, registers, unchanged, value_lists, Hashes, Kind};
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static HEAP: Quarantine = Quarantine;

/// Leaves of two or three entries and nodes of two children: every few operations split or merge
/// some.
fn smallest(kind: Kind) -> Box<dyn Unique> {
    make(kind, LeafConfig::tiny())
}

/// `threads` threads do `steps` operations each on `keys` keys, around which `before` others lie,
/// which must be there in the end.
fn execution(index: Box<dyn Unique>, threads: usize, steps: u64, keys: u64, before: u64) {
    for k in 0..before {
        Registers::put(&index, keys + k, k);
    }
    let subject = history(registers::RegisterSubject(index, keys), threads, steps);
    for k in 0..before {
        assert_eq!(subject.0.read(keys + k), Some(k), "a neighbour");
    }
}

/// The searches of a program that is too large to try all of.
const LARGE: [Search; 2] = [Search::Random(1_500), Search::Pct(1_000)];
const SMALL: [Search; 3] = [
    Search::Random(6_000),
    Search::Pct(3_000),
    Search::Bounded {
        changes: 2,
        programs: 3,
        most: 5_000,
    },
];

fn orders(name: &str, kind: Kind) {
    let _alone = alone();
    check(&format!("{name}: two on few keys"), &SMALL, move || {
        execution(smallest(kind), 2, 4, 3, 0);
    });
    check(
        &format!("{name}: leaves split and merge"),
        &LARGE,
        move || {
            execution(smallest(kind), 3, 12, 24, 20);
        },
    );
}

#[test]
fn histories_of_the_hash_order() {
    orders("hash order", Kind::Hash);
}

#[test]
fn histories_of_the_key_order() {
    orders("key order", Kind::Ordered);
}

/// Threads add keys to one chain, and replace their own, while one looks for a key that is there.
/// The heads grow meanwhile.
fn chained(hashes: Hashes) {
    const STEPS: u64 = 4;
    let index = Arc::new(Chains::tiny());
    let put = move |index: &Chains, k: u64, value: u64| {
        let bytes = k.to_be_bytes();
        let key = larder_testing::key(&bytes, hashes);
        match value {
            0 => index.put_absent(
                &larder_index::pin(),
                key,
                &value.to_be_bytes(),
                &Hint::default(),
            ),
            _ => assert!(index.update(&larder_index::pin(), key, &mut |old, new| {
                assert!(old.is_some(), "a key of this thread");
                new.extend_from_slice(&value.to_be_bytes());
                Change::Put
            })),
        }
    };
    let get = move |index: &Chains, k: u64| {
        let (bytes, mut out) = (k.to_be_bytes(), Vec::new());
        let key = larder_testing::key(&bytes, hashes);
        let found = index.get(&larder_index::pin(), key, &mut out);
        found.then(|| u64::from_be_bytes(out[..].try_into().expect("eight bytes")))
    };
    put(&index, 100, 0);
    let running = [0, 1].map(|thread| {
        let index = index.clone();
        shuttle::thread::spawn(move || {
            for k in 0..STEPS {
                put(&index, 2 * k + thread, 0);
                assert_eq!(get(&index, 2 * k + thread), Some(0));
                put(&index, 2 * (k / 2) + thread, k + 1);
            }
        })
    });
    for _ in 0..2 {
        assert!(get(&index, 100).is_some());
    }
    put(&index, 100, 7);
    assert_eq!(get(&index, 100), Some(7));
    for thread in running {
        thread.join().expect("no panic");
    }
    let all = larder_testing::scan_unique(&*index, Start::Edge, Direction::Forward);
    assert_eq!(all.len(), 2 * STEPS as usize + 1);
    for k in 0..2 * STEPS {
        assert!(get(&index, k).is_some(), "{k}");
    }
}

#[test]
fn chains_lose_nothing() {
    let _alone = alone();
    for hashes in [Hashes::One, Hashes::Good] {
        let name = format!("chains: {hashes:?}");
        check(&name, &SMALL, move || chained(hashes));
    }
    check("chains: histories", &SMALL, || {
        execution(Box::new(Chains::tiny()), 3, 4, 3, 5);
    });
}

/// Faults of chains.
const BROKEN_CHAINS: [(Fault, ()); 2] = [(Fault::Overwrite, ()), (Fault::Exchange, ())];

/// Not a test: run by `broken_chains_are_found`.
#[test]
#[ignore = "run by another test"]
fn planted_chains() {
    plant_requested(&BROKEN_CHAINS);
    check("a broken chain", &planted_search(), || chained(Hashes::One));
}

/// The checker finds an insert that overwrites another one.
#[test]
fn broken_chains_are_found() {
    each_is_found("planted_chains", &BROKEN_CHAINS);
}

/// Appends keys that are above nearly all others, and reads or removes what this thread put two
/// steps ago: it must be there.
fn append(index: &Box<dyn Unique>, writer: u64, steps: u64) {
    let key = |i: u64| 2 * i + writer;
    for i in 0..steps {
        Registers::put(index, key(i), i);
        let old = i.checked_sub(2);
        match old {
            Some(old) if writer == 1 => assert!(Registers::remove(index, key(old)), "{old}"),
            Some(old) => assert_eq!(index.read(key(old)), Some(old)),
            None => assert_eq!(index.read(key(i)), Some(i)),
        }
    }
}

/// The last leaf is found without the path to it while it splits, is replaced, merges, and another
/// thread inserts there, too.
#[test]
fn histories_of_inserts_at_the_end() {
    const STEPS: u64 = 12;
    let _alone = alone();
    check("key order: two append, one removes", &LARGE, || {
        let index = Arc::new(smallest(Kind::Ordered));
        let running = [0, 1].map(|writer| {
            let index = index.clone();
            shuttle::thread::spawn(move || append(&index, writer, STEPS))
        });
        for thread in running {
            thread.join().expect("no panic");
        }
        for i in 0..STEPS {
            assert_eq!(index.scan(2 * i), Some(i));
            let left = (i + 2 >= STEPS).then_some(i);
            assert_eq!(index.scan(2 * i + 1), left);
        }
    });
}

/// As above, by inserts that search nothing, which only short entries are, while others are put and
/// removed below and at the end, and read.
#[test]
fn histories_of_short_inserts_at_the_end() {
    let _alone = alone();
    for meddlers in [1, 2] {
        check("key order: one appends short entries", &LARGE, move || {
            let index = Arc::new(smallest(Kind::Ordered));
            let append = {
                let index = index.clone();
                shuttle::thread::spawn(move || appends::append(&**index, 40))
            };
            let meddling = (0..meddlers).map(|seed| {
                let index = index.clone();
                shuttle::thread::spawn(move || {
                    appends::meddle(&**index, 12, seed);
                    appends::look(&**index, 9);
                })
            });
            for thread in meddling.chain([append]) {
                thread.join().expect("no panic");
            }
            assert_eq!(
                appends::look(&**index, usize::MAX),
                Some(appends::FIRST + 39)
            );
        });
    }
}

/// Counts of ranges that one thread alone writes are exact while others split, merge and count the
/// same nodes.
fn rank_execution(threads: u64, width: u64, steps: u64, looks: u64) {
    let index: Arc<dyn Unique> = smallest(Kind::Ordered).into();
    let stays = threads * width..threads * width + 12;
    ranks::stay(&*index, stays.clone());
    // From here on there are counts, which writers have to keep up.
    let there = stays.end - stays.start;
    ranks::look(&*index, there, 0, 1);
    let seed = shuttle::rand::Rng::gen::<u32>(&mut shuttle::rand::thread_rng());
    let running: Vec<_> = (0..threads)
        .map(|part| {
            let index = index.clone();
            let (range, seed) = (
                part * width..(part + 1) * width,
                mix(u64::from(seed) ^ part),
            );
            shuttle::thread::spawn(move || ranks::own_range(&*index, range, steps, seed))
        })
        .collect();
    ranks::look(&*index, there, threads * width, looks);
    let counts = running.into_iter().map(|t| t.join().expect("no panic"));
    let all = there + counts.sum::<u64>();
    // Nothing is left uncounted.
    ranks::look(&*index, all, 0, 1);
}

#[test]
fn ranks_under_writers() {
    let _alone = alone();
    check("ranks: two on a few leaves", &SMALL, || {
        rank_execution(2, 4, 6, 1);
    });
    check("ranks: nodes split and merge", &LARGE, || {
        rank_execution(2, 16, 24, 2);
    });
    check("ranks: three", &LARGE, || {
        rank_execution(3, 8, 14, 2);
    });
}

/// Faults of counts.
const MISCOUNTED: [(Fault, ()); 3] = [
    (Fault::Uncounted, ()),
    (Fault::LateClear, ()),
    (Fault::OffByOne, ()),
];

/// Not a test: executions with one of the faults planted. Run by `wrong_counts_are_found`.
#[test]
#[ignore = "run by another test"]
fn planted_count() {
    plant_requested(&MISCOUNTED);
    check("a planted fault", &planted_search(), || {
        rank_execution(2, 40, 40, 8);
    });
}

/// The checker finds counts that are wrong.
#[test]
fn wrong_counts_are_found() {
    each_is_found("planted_count", &MISCOUNTED);
}

/// A version that is found again is that of the same leaf as it was, whatever leaves split, merge
/// and take each other's place meanwhile.
#[test]
fn what_is_unchanged_was_not_removed() {
    const KEYS: u16 = 10;
    let _alone = alone();
    check("hash order: batches that are still valid", &LARGE, || {
        let (index, removed) = (Arc::new(smallest(Kind::Hash)), Arc::new(AtomicU64::new(0)));
        unchanged::fill(&**index, KEYS);
        let shared = (index.clone(), removed.clone());
        let writer =
            shuttle::thread::spawn(move || unchanged::exchange(&**shared.0, KEYS, &shared.1));
        unchanged::look(&**index, &removed, 12, 7);
        writer.join().expect("no panic");
    });
}

/// A leaf to which several slots lead takes another's place slot by slot. Nobody may replace it in
/// its turn before all do: stores that were still to come would bring it back, obsolete, and what
/// it took in meanwhile would be gone.
#[test]
fn nobody_changes_the_path_to_a_new_leaf() {
    const MORE: u64 = 24;
    let _alone = alone();
    let search = [Search::Bounded {
        changes: 1,
        programs: 1,
        most: 1_000,
    }];
    // One makes a leaf grow, split, or merge with its neighbour, by what there is; the other mostly
    // elsewhere, but there are many others.
    for before in 4..=28 {
        for more in [100, 200, 300, 400] {
            for puts in [true, false] {
                let name = format!("hash order: {before} keys, one comes or goes ({puts}), {more}");
                check(&name, &search, move || {
                    // A root of 32 slots.
                    let config = LeafConfig {
                        fanout: LeafConfig::default().fanout,
                        ..LeafConfig::tiny()
                    };
                    let index = Arc::new(make(Kind::Hash, config));
                    (0..before).for_each(|k| Registers::put(&*index, k, k));
                    if !puts {
                        // Leaves that are about to merge, under a root that is about to become
                        // narrower.
                        let gone = before..before + MORE;
                        gone.clone().for_each(|k| Registers::put(&*index, k, k));
                        gone.for_each(|k| assert!(index.remove(k)));
                    }
                    let shared = index.clone();
                    let other = shuttle::thread::spawn(move || {
                        (more..more + MORE).for_each(|k| Registers::put(&*shared, k, k));
                    });
                    match puts {
                        true => Registers::put(&*index, before, 0),
                        false => assert!(index.remove(0)),
                    }
                    other.join().expect("no panic");
                    for k in (1..before).chain(more..more + MORE) {
                        assert_eq!(index.read(k), Some(k));
                    }
                });
            }
        }
    }
}

#[test]
fn histories_of_bags() {
    let _alone = alone();
    check("bag: two on few keys", &SMALL, || {
        history(
            value_lists::ValueListSubject(multi_with(Hashes::Few, LeafConfig::tiny()), 2),
            2,
            3,
        );
    });
    check("bag: leaves split and merge", &LARGE, || {
        history(
            value_lists::ValueListSubject(multi_with(Hashes::Few, LeafConfig::tiny()), 6),
            3,
            10,
        );
    });
}

/// A leaf so large that it is not replaced while all is right.
fn with_outside_objects(kind: Kind) -> Box<dyn Unique> {
    let config = LeafConfig {
        first: 2000,
        ..LeafConfig::default()
    };
    make(kind, config)
}

/// Faults, in which order of keys they are planted, and between how many threads. In key order two
/// threads seldom show a blind read: a key is compared by few loads.
const PLANTED: [(Fault, (Kind, usize)); 3] = [
    (Fault::Exchange, (Kind::Hash, 2)),
    (Fault::BlindRead, (Kind::Hash, 3)),
    (Fault::BlindRead, (Kind::Ordered, 3)),
];

/// Those that histories of real threads show.
const BLIND: &Faults<(Kind, usize)> = PLANTED.split_at(1).1;

/// Not a test: executions with one of the faults planted, which may well corrupt memory. Run by
/// `planted_faults_are_found`.
#[test]
#[ignore = "run by another test"]
fn planted_execution() {
    let (kind, threads) = plant_requested(&PLANTED);
    check("a planted fault", &planted_search(), move || {
        execution(with_outside_objects(kind), threads, 6, 3, 0);
    });
}

/// The checker finds what it is for: a lock that two writers take at once, and a reader that
/// believes what it read while a writer was at work.
#[test]
fn planted_faults_are_found() {
    each_is_found("planted_execution", &PLANTED);
}

/// Not a test: histories of real threads, with the fault planted. Run by
/// `a_read_that_is_not_checked_shows_in_histories`.
#[test]
#[ignore = "run by another test"]
fn planted_history() {
    let (kind, threads) = plant_requested(BLIND);
    for round in rounds() {
        let subject = registers::RegisterSubject(with_outside_objects(kind), 3);
        of_threads(&subject, threads, 80, mix(round)).expect("linearizable");
    }
}

/// The same fault shows in histories of real threads.
#[test]
fn a_read_that_is_not_checked_shows_in_histories() {
    each_goes_wrong("planted_history", BLIND);
}

/// Not a test: histories that take long, in which nothing is wrong. Run by
/// `what_takes_long_is_not_wrong`.
#[test]
#[ignore = "run by another test"]
fn long_histories() {
    rounds().for_each(|_| std::thread::sleep(Duration::from_millis(10)));
}

/// Not a test: the same of executions.
#[test]
#[ignore = "run by another test"]
fn long_executions() {
    check("no fault", &planted_search(), || {
        std::thread::sleep(Duration::from_millis(10));
    });
}

/// A search that comes to no end in its time has found nothing.
#[test]
fn what_takes_long_is_not_wrong() {
    for name in ["long_histories", "long_executions"] {
        assert!(!goes_wrong(name, Some("nothing")), "{name}");
    }
}

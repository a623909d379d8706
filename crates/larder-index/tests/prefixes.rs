//! Keys that begin alike in an ordered index: leaves keep what their entries have in common once,
//! and are made anew when a key comes that doesn't begin so.

use larder_index::{pin, unique_with, Direction, LeafConfig, Start, Unique, UniqueKind};
use larder_testing::{key, put, remove, scan_unique, Hashes};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// A key: some beginning, a number, and an end that no other byte is.
fn name(beginning: usize, number: u16) -> Vec<u8> {
    let long = "a beginning that is longer than what a leaf keeps of it, whatever the fences say/";
    let beginnings = ["", "user/", "user/profile/", "user0/", "zone/", long];
    let beginning = beginnings[beginning % beginnings.len()];
    let mut key = format!("{beginning}{number:05}").into_bytes();
    key.push(0xFF);
    key
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, usize),
    Remove(Vec<u8>),
}

fn any_op() -> impl Strategy<Value = Op> {
    let any_name =
        || (0..6usize, 0..150u16).prop_map(|(beginning, number)| name(beginning, number));
    prop_oneof![
        3 => (any_name(), prop_oneof![4 => 0..40usize, 1 => 200..900usize])
            .prop_map(|(key, len)| Op::Put(key, len)),
        1 => any_name().prop_map(Op::Remove),
    ]
}

fn check(index: &dyn Unique, wanted: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let guard = pin();
    let forward: Vec<_> = wanted.clone().into_iter().collect();
    assert_eq!(scan_unique(index, Start::Edge, Direction::Forward), forward);
    let backward: Vec<_> = forward.iter().rev().cloned().collect();
    assert_eq!(
        scan_unique(index, Start::Edge, Direction::Backward),
        backward
    );
    for beginning in 0..6 {
        for number in (0..150).step_by(7) {
            let name = name(beginning, number);
            let mut value = Vec::new();
            let found = index.get(&guard, key(&name, Hashes::Good), &mut value);
            assert_eq!(found.then_some(&value), wanted.get(&name));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 100 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_that_begin_alike_and_others(ops in prop::collection::vec(any_op(), 0..600), tiny: bool) {
        let config = if tiny { LeafConfig::tiny() } else { LeafConfig::default() };
        let index = unique_with(UniqueKind::Ordered, config);
        let mut wanted = BTreeMap::new();
        for op in ops {
            match op {
                Op::Put(name, len) => {
                    let value = vec![len as u8; len];
                    put(&*index, key(&name, Hashes::Good), &value);
                    wanted.insert(name, value);
                }
                Op::Remove(name) => {
                    let removed = remove(&*index, key(&name, Hashes::Good));
                    prop_assert_eq!(removed, wanted.remove(&name).is_some());
                }
            }
        }
        check(&*index, &wanted);
    }
}

/// Tables of one kind of key, in order and not, take less memory for each byte that keys share.
#[test]
fn what_keys_share_is_kept_once() {
    let memory = |beginning: usize, step: u16| {
        let index = unique_with(UniqueKind::Ordered, LeafConfig::default());
        for i in 0..1000u16 {
            let name = name(beginning, i.wrapping_mul(step) % 1000);
            put(&*index, key(&name, Hashes::Good), b"value");
        }
        index.memory()
    };
    for step in [1, 7] {
        let (short, long) = (memory(0, step), memory(2, step));
        assert!(
            long < short + short / 8,
            "{short} {long}, keys of 6 and 19 bytes"
        );
    }
}

/// A key that was there before the threads began is found at all times, while others shorten the
/// prefixes of leaves and split them.
#[test]
fn readers_find_all_while_prefixes_change() {
    let rounds = if cfg!(miri) { 1 } else { 30 };
    for _ in 0..rounds {
        let index = unique_with(UniqueKind::Ordered, LeafConfig::default());
        let there: Vec<_> = (0..40).map(|i| name(2, 1000 + i)).collect();
        for name in &there {
            put(&*index, key(name, Hashes::Good), b"there");
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (index, there, done) = (&*index, &there, &done);
            let writers: Vec<_> = (0..2usize)
                .map(|writer| {
                    scope.spawn(move || {
                        for i in 0..if cfg!(miri) { 20 } else { 1500u16 } {
                            let name = name(usize::from(i) % 6, 2000 + 2 * i + writer as u16);
                            put(index, key(&name, Hashes::Good), b"new");
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                // Ordering: Relaxed; it only ends the loop.
                while !done.load(Ordering::Relaxed) {
                    for name in there {
                        let guard = pin();
                        let mut value = Vec::new();
                        assert!(index.get(&guard, key(name, Hashes::Good), &mut value));
                        assert_eq!(value, b"there");
                    }
                }
            });
            for writer in writers {
                writer.join().expect("a writer ends");
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(index.len(), 40 + if cfg!(miri) { 40 } else { 3000 });
    }
}

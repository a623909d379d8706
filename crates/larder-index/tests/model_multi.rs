//! Random sequences of operations on the index with many values under a key, against the oracle.

mod common;

use common::*;
use larder_index::{
    multi_hashed, multi_with, pin, Batch, LeafConfig, Multi, Objects, OracleMulti, Start,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Push(u16, Vec<usize>),
    RemoveIf(u16, u8),
    Replace(u16, usize, usize),
    Mixed(u16, usize),
    /// As a bag inserts: unless it is there.
    Once(u16, Vec<usize>),
    RemoveSame(u16, Vec<usize>),
    Get(u16),
    Scan(u16, u8),
}

fn op(keys: u16) -> impl Strategy<Value = Op> {
    let size = || prop_oneof![8 => 0..20usize, 1 => 200..900usize];
    prop_oneof![
        8 => (0..keys, prop::collection::vec(size(), 1..12)).prop_map(|(k, n)| Op::Push(k, n)),
        4 => (0..keys, 0..6u8).prop_map(|(k, n)| Op::RemoveIf(k, n)),
        1 => (0..keys, 0..12usize, size()).prop_map(|(k, i, n)| Op::Replace(k, i, n)),
        1 => (0..keys, size()).prop_map(|(k, n)| Op::Mixed(k, n)),
        2 => (0..keys, prop::collection::vec(size(), 1..12)).prop_map(|(k, n)| Op::Once(k, n)),
        2 => (0..keys, prop::collection::vec(size(), 1..4)).prop_map(|(k, n)| Op::RemoveSame(k, n)),
        2 => (0..keys).prop_map(Op::Get),
        1 => (0..keys, 0..10u8).prop_map(|(k, how)| Op::Scan(k, how)),
    ]
}

fn values(index: &dyn Multi, bytes: &[u8], how: Hashes) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    let n = index.get(&pin(), key(bytes, how), &mut |v| values.push(v.to_vec()));
    assert_eq!(n, values.len());
    assert_eq!(index.contains(&pin(), key(bytes, how)), n > 0);
    values
}

/// Does the operation on one index and says all that it can be seen to do.
fn apply(index: &dyn Multi, op: &Op, how: Hashes) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut counts = Vec::new();
    let k = match op {
        Op::Push(k, sizes) => {
            index.update(&pin(), key(&key_bytes(*k), how), &mut |objects| {
                sizes.iter().for_each(|n| objects.push(&vec![*n as u8; *n]));
                counts.push(objects.count());
            });
            k
        }
        Op::RemoveIf(k, n) => {
            index.update(&pin(), key(&key_bytes(*k), how), &mut |objects| {
                counts.push(objects.remove_if(&mut |v| *n == 5 || v.len() % 5 == usize::from(*n)));
            });
            k
        }
        Op::Replace(k, i, n) => {
            index.update(&pin(), key(&key_bytes(*k), how), &mut |objects| {
                objects.replace(*i, &vec![99; *n]);
            });
            k
        }
        Op::Mixed(k, n) => {
            index.update(&pin(), key(&key_bytes(*k), how), &mut |objects| {
                objects.push(b"first");
                objects.remove_if(&mut |v| v.len() > 100);
                objects.push(&vec![1; *n]);
                let mut seen = 0;
                objects.each(&mut |i, v| {
                    seen += i + v.len();
                    i < 5
                });
                counts.push(seen);
            });
            k
        }
        Op::Once(k, sizes) => {
            index.update(&pin(), key(&key_bytes(*k), how), &mut |objects| {
                for n in sizes {
                    let value = vec![*n as u8; *n];
                    let found = objects.find(&value, &mut |v| v == value);
                    if !found {
                        objects.push(&value);
                    }
                    counts.push(usize::from(found));
                }
                counts.push(objects.count());
            });
            k
        }
        Op::RemoveSame(k, sizes) => {
            index.update(&pin(), key(&key_bytes(*k), how), &mut |objects| {
                for n in sizes {
                    let value = vec![*n as u8; *n];
                    counts.push(objects.remove_same(&value, &mut |v| v == value));
                }
                counts.extend([objects.count(), usize::from(objects.is_empty())]);
            });
            k
        }
        Op::Get(k) => k,
        Op::Scan(k, which) => {
            let mut position = Vec::new();
            if which % 2 == 0 {
                index.first_position(key(&key_bytes(*k), how), &mut position);
            } else {
                index.last_position(key(&key_bytes(*k), how), &mut position);
            }
            let start = match which / 2 {
                0 | 1 => Start::Past(&position),
                2 | 3 => Start::At(&position),
                _ => Start::Edge,
            };
            return scan_multi(index, start, DIRECTIONS[usize::from(which / 2 % 2)]);
        }
    };
    let mut seen: Vec<_> = counts
        .iter()
        .map(|n| (n.to_be_bytes().to_vec(), vec![]))
        .collect();
    seen.extend(
        values(index, &key_bytes(*k), how)
            .into_iter()
            .map(|v| (vec![], v)),
    );
    seen
}

fn run(config: LeafConfig, how: Hashes, ops: &[Op]) {
    let index = multi_with(config);
    let oracle = OracleMulti::new();
    for op in ops {
        assert_eq!(
            apply(&*index, op, how),
            apply(&oracle, op, how),
            "{how:?} {op:?}"
        );
        assert_eq!(index.len(), oracle.len());
    }
    let all = scan_multi(&oracle, Start::Edge, DIRECTIONS[0]);
    assert_eq!(scan_multi(&*index, Start::Edge, DIRECTIONS[0]), all);
    positions_resume(&*index, &all);
    let mut freed = Vec::new();
    while !index.free_some(&pin(), 5, &mut |v| freed.push(v.to_vec())) {}
    let mut expect: Vec<_> = all.into_iter().map(|(_, v)| v).collect();
    freed.sort();
    expect.sort();
    assert_eq!(freed, expect);
    assert_eq!(index.len(), 0);
}

/// The position of each entry takes up the scan there, or just after it.
fn positions_resume(index: &dyn Multi, all: &[(Vec<u8>, Vec<u8>)]) {
    let mut batch = Batch::default();
    index.scan(&pin(), Start::Edge, DIRECTIONS[0], &mut batch);
    let mut position = Vec::new();
    for i in 0..batch.len() {
        index.entry_position(&batch, i, &mut position);
        assert_eq!(
            scan_multi(index, Start::At(&position), DIRECTIONS[0]),
            all[i..]
        );
        assert_eq!(
            scan_multi(index, Start::Past(&position), DIRECTIONS[0]),
            all[i + 1..]
        );
        let back = scan_multi(index, Start::Past(&position), DIRECTIONS[1]);
        assert_eq!(back.len(), i);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 120 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bag_is_the_oracle(ops in prop::collection::vec(op(40), 1..200), hashes in 0..4usize, config in 0..2usize) {
        run(configs()[config], ALL_HASHES[hashes], &ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 60 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Keys with so many objects that they are found by their hashes, and with few again.
    #[test]
    fn crowded_keys_are_the_oracle(ops in prop::collection::vec(op(2), 1..200), hashes in 0..4usize, config in 0..2usize) {
        run(configs()[config], ALL_HASHES[hashes], &ops);
    }
}

/// Objects with equal hashes are told apart, and those that the user takes for the same are found whatever their bytes.
#[test]
fn hashes_only_guide() {
    let index = multi_hashed(LeafConfig::tiny(), |value| u64::from(value[0] % 2));
    let k = key(b"key", Hashes::Good);
    index.update(&pin(), k, &mut |objects| {
        for i in 0..200u8 {
            assert!(!objects.find(&[i], &mut |v| v == [i]));
            objects.push(&[i]);
        }
        assert!((0..200).all(|i| objects.find(&[i], &mut |v| v == [i])));
        // Even numbers up to 99 are all the same to this user.
        let mut same = |v: &[u8]| v[0] % 2 == 0 && v[0] < 100;
        assert!(objects.find(&[8], &mut same));
        assert_eq!(objects.remove_same(&[8], &mut same), 50);
        assert_eq!(objects.count(), 150);
        objects.replace(0, &[201]);
        assert!(objects.find(&[201], &mut |v| v == [201]));
        assert!(!objects.find(&[1], &mut |v| v == [1]));
    });
}

/// Objects under one key are added, found and removed without a walk over all: a million steps for each would last for hours.
#[test]
#[cfg_attr(miri, ignore)]
fn a_crowd_under_one_key() {
    let index = multi_with(LeafConfig::default());
    let k = key(b"key", Hashes::Good);
    let n = 100_000u32;
    let step = |f: &mut dyn FnMut(&mut dyn Objects)| index.update(&pin(), k, f);
    for i in 0..n {
        let value = mix(u64::from(i)).to_be_bytes();
        step(&mut |objects| {
            assert!(!objects.find(&value, &mut |v| v == value));
            objects.push(&value);
        });
    }
    for i in (0..n).rev().step_by(2) {
        let value = mix(u64::from(i)).to_be_bytes();
        step(&mut |objects| {
            assert!(objects.find(&value, &mut |v| v == value));
            assert_eq!(objects.remove_same(&value, &mut |v| v == value), 1);
            assert!(!objects.is_empty());
        });
    }
    step(&mut |objects| {
        let count = objects.count();
        assert_eq!(count, n as usize / 2);
        (0..count).for_each(|i| objects.replace(i, b"new"));
        assert_eq!(objects.remove_same(b"new", &mut |v| v == b"new"), count);
    });
    assert_eq!(index.len(), 0);
    assert!(
        index.memory() < 100_000,
        "marks are gone with their objects"
    );
}

/// Very many values under one key: each push finds its place by descent.
#[test]
fn many_values_under_one_key() {
    let index = multi_with(LeafConfig::default());
    let k = key(b"key", Hashes::Good);
    let n = 200_000u32;
    for i in 0..n {
        index.update(&pin(), k, &mut |objects| objects.push(&i.to_be_bytes()));
    }
    let mut next = 0u32;
    let got = index.get(&pin(), k, &mut |v| {
        assert_eq!(v, next.to_be_bytes());
        next += 1;
    });
    assert_eq!((got, index.len()), (n as usize, n as usize));
    index.update(&pin(), k, &mut |objects| {
        assert_eq!(objects.remove_if(&mut |v| v[3] % 2 == 0), n as usize / 2);
    });
    assert_eq!(index.len(), n as usize / 2);
}

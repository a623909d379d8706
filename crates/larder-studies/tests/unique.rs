//! Random sequences of operations on each structure with one value under a key, against the oracle.

mod subjects;

use larder_index::{pin, Start};
use larder_studies::Order;
use larder_testing::unique_ops::{a_panic_changes_nothing, op, run};
use larder_testing::*;
use proptest::prelude::*;
use subjects::{orders, subjects};

fn on_all(how: Hashes, ops: &[unique_ops::UniqueOp]) {
    for subject in subjects() {
        for &order in orders(subject) {
            if order == Order::Hash || how == Hashes::Good {
                let (index, name) = (subject.unique(order), format!("{subject:?} {order:?}"));
                run(&*index, &name, how, ops, |stats| 4096 + stats.leaves * 320);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_is_the_oracle(ops in prop::collection::vec(op(300), 1..300), hashes in 0..4usize) {
        on_all(ALL_HASHES[hashes], &ops);
    }

    #[test]
    fn each_is_the_oracle_on_few_keys(ops in prop::collection::vec(op(12), 1..200), hashes in 0..4usize) {
        on_all(ALL_HASHES[hashes], &ops);
    }
}

/// Many keys come in order, and go in order.
#[test]
fn grows_and_shrinks() {
    for (subject, backward) in subjects().iter().flat_map(|s| [(s, false), (s, true)]) {
        for &order in orders(subject) {
            let index = subject.unique(order);
            let empty = index.memory();
            let n = 6_000u32;
            let keys: Vec<[u8; 4]> = (0..n)
                .map(|i| if backward { u32::MAX - i } else { i }.to_be_bytes())
                .collect();
            for k in &keys {
                assert!(put(&*index, key(k, Hashes::Good), k));
            }
            let a_row = (index.memory() - empty) as f64 / f64::from(n);
            assert!(
                (24.0..300.0).contains(&a_row),
                "{subject:?}: {a_row} bytes a row"
            );
            let mut sorted: Vec<_> = keys.iter().map(|k| (k.to_vec(), k.to_vec())).collect();
            let mut found = scan_unique(&*index, Start::Edge, DIRECTIONS[0]);
            if order == Order::Hash {
                found.sort();
            }
            sorted.sort();
            assert_eq!(found, sorted);
            for k in &keys {
                assert!(remove(&*index, key(k, Hashes::Good)));
            }
            assert_eq!(index.len(), 0);
            assert!(
                index.memory() < empty + 40_000 + index.stats().leaves * 300,
                "{subject:?} {}",
                index.memory()
            );
        }
    }
}

/// A value of ten megabytes, and keys of some thousand bytes.
#[test]
fn large_values_and_keys() {
    for subject in subjects() {
        let index = subject.unique(Order::Hash);
        let large = vec![7u8; 10 << 20];
        assert!(put(&*index, key(b"large", Hashes::One), &large));
        assert!(index.memory() > large.len());
        let mut out = Vec::new();
        assert!(index.get(&pin(), key(b"large", Hashes::One), &mut out));
        assert!(out == large);
        for n in 0..100u16 {
            let mut bytes = vec![b'k'; 5000];
            bytes.extend_from_slice(&n.to_be_bytes());
            assert!(put(&*index, key(&bytes, Hashes::One), b"v"));
        }
        assert_eq!(scan_unique(&*index, Start::Edge, DIRECTIONS[0]).len(), 101);
        assert!(remove(&*index, key(b"large", Hashes::One)));
        assert!(index.memory() < large.len());
    }
}

/// A closure that panics leaves the entry as it was, and unlocked.
#[test]
fn a_panic_in_an_update_changes_nothing() {
    for subject in subjects() {
        a_panic_changes_nothing(&*subject.unique(Order::Hash));
    }
}

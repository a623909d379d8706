//! Random sequences of operations on each structure with many values under a key, against the
//! oracle.

mod subjects;

use larder_index::{pin, Start};
use larder_testing::multi_ops::{op, run};
use larder_testing::*;
use proptest::prelude::*;
use subjects::subjects;

fn on_all(how: Hashes, ops: &[multi_ops::MultiOp]) {
    for subject in subjects() {
        let name = format!("{subject:?}");
        run(&*subject.multi(), &name, how, ops, |stats| {
            4096 + stats.leaves * 320
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_is_the_oracle(ops in prop::collection::vec(op(40), 1..120), hashes in 0..4usize) {
        on_all(ALL_HASHES[hashes], &ops);
    }

    #[test]
    fn each_is_the_oracle_on_few_keys(ops in prop::collection::vec(op(2), 1..120), hashes in 0..4usize) {
        on_all(ALL_HASHES[hashes], &ops);
    }
}

/// A value list that shrinks gives its memory back, and scans go through it in pieces.
#[test]
fn a_long_value_list() {
    for subject in subjects() {
        let index = subject.multi();
        let k = key(b"key", Hashes::Good);
        let n = 2_000u32;
        index.update(&pin(), k, &mut |objects| {
            (0..n).for_each(|i| objects.push(&i.to_be_bytes()));
        });
        let full = index.memory();
        let all = scan_multi(&*index, Start::Edge, DIRECTIONS[0]);
        assert!(all
            .iter()
            .map(|e| e.1.clone())
            .eq((0..n).map(|i| i.to_be_bytes().to_vec())));
        index.update(&pin(), k, &mut |objects| {
            assert_eq!(objects.remove_if(&mut |v| v[3] != 0), n as usize - 8);
        });
        assert_eq!((index.len(), full > index.memory() + 60_000), (8, true));
    }
}

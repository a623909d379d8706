//! Random sequences of operations on each structure with one value under a key, against the oracle.

#[path = "../../larder-index/tests/common/mod.rs"]
mod common;
mod subjects;

use common::*;
use larder_index::{pin, Change, OracleUnique, Start, Unique};
use larder_structures::Order;
use proptest::prelude::*;
use subjects::{orders, subjects, Subject};

#[derive(Clone, Debug)]
enum Op {
    Put(u16, usize),
    PutScratch(u16, usize),
    Remove(u16),
    Keep(u16),
    Get(u16),
    Scan(u16, u8, usize),
}

fn op(keys: u16) -> impl Strategy<Value = Op> {
    let size = prop_oneof![8 => 0..20usize, 1 => 200..3000usize];
    prop_oneof![
        6 => (0..keys, size.clone()).prop_map(|(k, n)| Op::Put(k, n)),
        2 => (0..keys, size).prop_map(|(k, n)| Op::PutScratch(k, n)),
        5 => (0..keys).prop_map(Op::Remove),
        1 => (0..keys).prop_map(Op::Keep),
        2 => (0..keys).prop_map(Op::Get),
        1 => (0..keys, 0..6u8, 0..4usize).prop_map(|(k, how, want)| Op::Scan(k, how, want)),
    ]
}

fn value(k: u16, n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 31 + usize::from(k)) as u8).collect()
}

/// What a change answers.
type Answer = dyn FnMut(Option<&[u8]>, &mut Vec<u8>) -> Change<'static>;

type Seen = Vec<(Vec<u8>, Vec<u8>)>;

/// Does the operation on one index and says all that it can be seen to do.
fn apply(index: &dyn Unique, op: &Op, how: Hashes) -> Seen {
    let guard = pin();
    let (k, mut change): (u16, Box<Answer>) = match *op {
        Op::Put(k, n) => {
            let value: &'static [u8] = value(k, n).leak();
            (k, Box::new(move |_, _| Change::Put(value)))
        }
        Op::PutScratch(k, n) => (
            k,
            Box::new(move |old, scratch| {
                assert!(scratch.is_empty());
                scratch.extend(old.unwrap_or_default().iter().take(50));
                scratch.extend(value(k, n));
                Change::PutScratch
            }),
        ),
        Op::Remove(k) => (k, Box::new(|_, _| Change::Remove)),
        Op::Keep(k) => (k, Box::new(|_, _| Change::Keep)),
        Op::Get(k) => return get(index, k, how),
        Op::Scan(k, which, want) => return scan(index, k, which, want, how),
    };
    let mut calls = Vec::new();
    let bytes = key_bytes(k);
    let changed = index.update(&guard, key(&bytes, how), &mut |old, scratch| {
        calls.push((
            vec![u8::from(old.is_some())],
            old.unwrap_or_default().to_vec(),
        ));
        change(old, scratch)
    });
    assert_eq!(calls.len(), 1);
    calls.push((vec![u8::from(changed)], Vec::new()));
    calls
}

fn get(index: &dyn Unique, k: u16, how: Hashes) -> Seen {
    let bytes = key_bytes(k);
    let mut out = vec![1, 2, 3];
    let found = index.get(&pin(), key(&bytes, how), &mut out);
    assert_eq!(found, index.contains(&pin(), key(&bytes, how)));
    assert_eq!(&out[..3], &[1, 2, 3]);
    vec![(vec![u8::from(found)], out)]
}

fn scan(index: &dyn Unique, k: u16, which: u8, want: usize, how: Hashes) -> Seen {
    let mut position = Vec::new();
    index.position(key(&key_bytes(k), how), &mut position);
    let start = match which % 3 {
        0 => Start::Edge,
        1 => Start::At(&position),
        _ => Start::Past(&position),
    };
    let direction = DIRECTIONS[usize::from(which / 3)];
    let mut step = |start: Start<'_>, batch: &mut larder_index::Batch| {
        batch.want = want;
        index.scan(&pin(), start, direction, batch);
        assert!(want == 0 || batch.len() <= want);
    };
    scan_all(&mut step, start, direction)
}

fn run(subject: &Subject, order: Order, how: Hashes, ops: &[Op]) {
    let index = subject.unique(order);
    let empty = index.memory();
    let oracle = OracleUnique::new(order == Order::Key);
    for op in ops {
        let (real, right) = (apply(&*index, op, how), apply(&oracle, op, how));
        assert_eq!(real, right, "{subject:?} {order:?} {how:?} {op:?}");
        assert_eq!(index.len(), oracle.len());
    }
    for direction in DIRECTIONS {
        let expect = scan_unique(&oracle, Start::Edge, direction);
        assert_eq!(scan_unique(&*index, Start::Edge, direction), expect);
    }
    drain(&*index, empty, how, ops.len() % 2 == 0);
}

/// Removes all, one by one or by the reaper's way; then nothing is left.
fn drain(index: &dyn Unique, empty: usize, how: Hashes, singly: bool) {
    let all = scan_unique(index, Start::Edge, DIRECTIONS[0]);
    if singly {
        for (bytes, _) in &all {
            assert!(remove(index, key(bytes, how)));
        }
        assert!(scan_unique(index, Start::Edge, DIRECTIONS[1]).is_empty());
    } else {
        let mut values = Vec::new();
        while !index.free_some(&pin(), 3, &mut |v| values.push(v.to_vec())) {}
        let mut expect: Vec<_> = all.into_iter().map(|(_, v)| v).collect();
        values.sort();
        expect.sort();
        assert_eq!(values, expect);
    }
    assert_eq!(index.len(), 0);
    assert!(
        index.memory() <= empty + 4096 + index.stats().leaves * 320,
        "{} {empty}",
        index.memory()
    );
}

fn on_all(how: Hashes, ops: &[Op]) {
    for subject in subjects() {
        for &order in orders(subject) {
            if order == Order::Hash || how == Hashes::Good {
                run(subject, order, how, ops);
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
        let index = subject.unique(Order::Hash);
        let k = key(b"k", Hashes::Good);
        for there in [false, true] {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                index.update(&pin(), k, &mut |_, _| panic!("as it should"))
            }));
            assert!(result.is_err());
            let mut out = Vec::new();
            assert_eq!(index.get(&pin(), k, &mut out), there);
            assert_eq!((out.is_empty(), index.len()), (!there, usize::from(there)));
            assert!(put(&*index, k, b"before"));
        }
    }
}

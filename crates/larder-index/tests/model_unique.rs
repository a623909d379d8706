//! Random sequences of operations on each index with one value under a key, against the oracle.

mod common;

use common::*;
use larder_index::{pin, Batch, Change, Got, LeafConfig, OracleUnique, Start, Unique, Was, SHORT};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Put(u16, usize),
    PutScratch(u16, usize),
    Remove(u16),
    Keep(u16),
    Get(u16),
    GetShort(u16),
    QuickPut(u16, usize, bool),
    QuickRemove(u16, bool),
    UpdateWith(u16, usize),
    After(u16, u8),
    Scan(u16, u8),
}

fn op(keys: u16) -> impl Strategy<Value = Op> {
    let size = || prop_oneof![8 => 0..20usize, 3 => 20..200usize, 1 => 200..3000usize];
    let size2 = prop_oneof![8 => 0..20usize, 1 => 200..900usize];
    prop_oneof![
        6 => (0..keys, size()).prop_map(|(k, n)| Op::Put(k, n)),
        2 => (0..keys, size2).prop_map(|(k, n)| Op::PutScratch(k, n)),
        5 => (0..keys).prop_map(Op::Remove),
        1 => (0..keys).prop_map(Op::Keep),
        2 => (0..keys).prop_map(Op::Get),
        2 => (0..keys).prop_map(Op::GetShort),
        6 => (0..keys, size(), prop::bool::weighted(0.8)).prop_map(|(k, n, may)| Op::QuickPut(k, n, may)),
        4 => (0..keys, prop::bool::weighted(0.8)).prop_map(|(k, may)| Op::QuickRemove(k, may)),
        2 => (0..keys, 0..70usize).prop_map(|(k, n)| Op::UpdateWith(k, n)),
        2 => (0..keys, 0..8u8).prop_map(|(k, how)| Op::After(k, how)),
        1 => (0..keys, 0..6u8).prop_map(|(k, how)| Op::Scan(k, how)),
    ]
}

fn value(k: u16, n: usize) -> Vec<u8> {
    (0..n)
        .map(|i| (i as u8).wrapping_mul(31).wrapping_add(k as u8))
        .collect()
}

fn start(position: &[u8], how: u8) -> Start<'_> {
    match how % 3 {
        0 => Start::Edge,
        1 => Start::At(position),
        _ => Start::Past(position),
    }
}

/// What was under a key, in a form that can be noted.
fn was_bytes(was: Was) -> Option<&'static [u8]> {
    match was {
        Was::Refused => None,
        Was::Absent => Some(&[0]),
        Was::Present => Some(&[1]),
    }
}

/// Does the operation on one index and says all that it can be seen to do.
fn apply(index: &dyn Unique, op: &Op, how: Hashes) -> Vec<(Vec<u8>, Vec<u8>)> {
    let guard = pin();
    let mut seen = Vec::new();
    let mut note = |old: Option<&[u8]>| {
        seen.push((
            vec![u8::from(old.is_some())],
            old.unwrap_or_default().to_vec(),
        ));
    };
    let changed = match op {
        Op::Put(k, n) => {
            let value = value(*k, *n);
            index.update(&guard, key(&key_bytes(*k), how), &mut |old, _| {
                note(old);
                Change::Put(&value)
            })
        }
        Op::PutScratch(k, n) => {
            index.update(&guard, key(&key_bytes(*k), how), &mut |old, scratch| {
                note(old);
                assert!(scratch.is_empty());
                scratch.extend(old.unwrap_or_default().iter().take(50));
                scratch.extend(value(*k, *n));
                Change::PutScratch
            })
        }
        Op::Remove(k) => index.update(&guard, key(&key_bytes(*k), how), &mut |old, _| {
            note(old);
            Change::Remove
        }),
        Op::Keep(k) => index.update(&guard, key(&key_bytes(*k), how), &mut |old, _| {
            note(old);
            Change::Keep
        }),
        Op::Get(k) => {
            let bytes = key_bytes(*k);
            let mut out = vec![1, 2, 3];
            let found = index.get(&guard, key(&bytes, how), &mut out);
            assert_eq!(found, index.contains(&guard, key(&bytes, how)));
            assert_eq!(&out[..3], &[1, 2, 3]);
            note(found.then_some(&out[3..]));
            false
        }
        Op::GetShort(k) => {
            let (bytes, mut out) = (key_bytes(*k), [7; SHORT]);
            let got = index.get_short(&guard, key(&bytes, how), &mut out);
            let len = match got {
                Got::Short(len) => Some(len),
                Got::Long => Some(0),
                Got::Absent => None,
            };
            note(len.map(|len| &out[..len]));
            got == Got::Long
        }
        Op::QuickPut(k, n, may) => {
            let value = value(*k, *n);
            let was = index.put(&guard, key(&key_bytes(*k), how), &value, &mut |old| {
                note(old);
                *may
            });
            note(was_bytes(was));
            was != Was::Refused
        }
        Op::QuickRemove(k, may) => {
            let was = index.remove(&guard, key(&key_bytes(*k), how), &mut |old| {
                note(old);
                *may
            });
            note(was_bytes(was));
            was != Was::Refused
        }
        Op::UpdateWith(k, n) => {
            let (bytes, mut scratch) = (key_bytes(*k), vec![9; 3]);
            let key = key(&bytes, how);
            index.update_with(&guard, key, &mut scratch, &mut |old, scratch| {
                note(old);
                assert!(scratch.is_empty());
                scratch.extend(value(*k, *n));
                if n % 5 == 4 {
                    Change::Keep
                } else {
                    Change::PutScratch
                }
            })
        }
        Op::After(k, which) => {
            let (bytes, mut batch) = (key_bytes(*k), Batch::default());
            batch.want = usize::from(which / 2);
            let direction = DIRECTIONS[usize::from(which % 2)];
            let here = index.after(&guard, key(&bytes, how), direction, &mut batch);
            assert_eq!(here, index.contains(&guard, key(&bytes, how)));
            let first = (!batch.is_empty()).then(|| (batch.key(0), batch.value(0)));
            assert!(first.is_some() || batch.done);
            note(first.map(|(key, _)| key));
            note(first.map(|(_, value)| value));
            here
        }
        Op::Scan(k, which) => {
            let mut position = Vec::new();
            index.position(key(&key_bytes(*k), how), &mut position);
            return scan_unique(
                index,
                start(&position, *which),
                DIRECTIONS[usize::from(which / 3)],
            );
        }
    };
    seen.push((vec![u8::from(changed)], Vec::new()));
    seen
}

type Make = fn(Kind, LeafConfig, Hashes) -> Box<dyn Unique>;

fn run(kind: Kind, config: LeafConfig, make: Make, how: Hashes, ops: &[Op]) {
    let index = make(kind, config, how);
    let empty = index.memory();
    let oracle = OracleUnique::new(kind == Kind::Ordered);
    for op in ops {
        assert_eq!(
            apply(&*index, op, how),
            apply(&oracle, op, how),
            "{kind:?} {how:?} {op:?}"
        );
        assert_eq!(index.len(), oracle.len());
    }
    for direction in DIRECTIONS {
        let expect = scan_unique(&oracle, Start::Edge, direction);
        assert_eq!(scan_unique(&*index, Start::Edge, direction), expect);
    }
    drain(&*index, empty, how, ops);
}

/// Removes all, one by one or by the reaper's way; then nothing is left.
fn drain(index: &dyn Unique, empty: usize, how: Hashes, ops: &[Op]) {
    let all = scan_unique(index, Start::Edge, DIRECTIONS[0]);
    if ops.len() % 2 == 0 {
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
    let stats = index.stats();
    assert!(
        index.memory() <= empty + stats.leaves * 1300 + stats.inner_nodes * 1000,
        "{stats:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 160 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hash_order_is_the_oracle(ops in prop::collection::vec(op(300), 1..400), hashes in 0..4usize, config in 0..2usize, ending: bool) {
        let make = if ending { make_ending } else { make_with };
        run(Kind::Hash, configs()[config], make, ALL_HASHES[hashes], &ops);
    }

    #[test]
    fn key_order_is_the_oracle(ops in prop::collection::vec(op(300), 1..400), config in 0..2usize) {
        run(Kind::Ordered, configs()[config], make_with, Hashes::Good, &ops);
    }
}

/// Many keys come in order, and go in order: the trees grow levels and lose them again.
#[test]
fn grows_and_shrinks() {
    for kind in [Kind::Hash, Kind::Ordered] {
        for backward in [false, true] {
            let index = make(kind, LeafConfig::tiny());
            let empty = index.memory();
            let n = if cfg!(miri) { 300 } else { 20_000u32 };
            let keys: Vec<[u8; 4]> = (0..n)
                .map(|i| if backward { u32::MAX - i } else { i }.to_be_bytes())
                .collect();
            for k in &keys {
                put(&*index, key(k, Hashes::Good), k);
            }
            let full = index.stats();
            assert!(
                cfg!(miri) || full.depth > usize::from(kind == Kind::Ordered) && full.splits > 500,
                "{full:?}"
            );
            let mut sorted: Vec<_> = keys.iter().map(|k| (k.to_vec(), k.to_vec())).collect();
            let mut found = scan_unique(&*index, Start::Edge, DIRECTIONS[0]);
            if kind == Kind::Hash {
                found.sort();
            }
            sorted.sort();
            assert_eq!(found, sorted);
            for k in &keys {
                assert!(remove(&*index, key(k, Hashes::Good)));
            }
            let end = index.stats();
            assert_eq!(index.len(), 0);
            assert!(
                cfg!(miri) || end.leaves <= full.leaves / 20 + 1 && end.merges > 100,
                "{end:?}"
            );
            assert!(
                index.memory() < empty + 40_000,
                "{} {end:?}",
                index.memory()
            );
        }
    }
}

/// Ascending keys leave full leaves behind.
#[test]
fn appends_leave_full_leaves() {
    let index = make(Kind::Ordered, LeafConfig::default());
    let n = 100_000u64;
    for i in 0..n {
        put(&*index, key(&i.to_be_bytes(), Hashes::Good), b"12345678");
    }
    let a_row = index.memory() as f64 / n as f64;
    assert!(a_row < 25.0, "{a_row} bytes a row of 16");
}

/// A value of a hundred megabytes, and keys of some thousand bytes.
#[test]
fn large_values_and_keys() {
    for kind in [Kind::Hash, Kind::Ordered] {
        let index = make_with(kind, LeafConfig::default(), Hashes::One);
        let large = vec![7u8; 100 << 20];
        assert!(put(&*index, key(b"large", Hashes::One), &large));
        assert!(index.memory() > large.len());
        let mut out = Vec::new();
        assert!(index.get(&pin(), key(b"large", Hashes::One), &mut out));
        assert!(out == large);
        for n in 0..200u16 {
            let mut bytes = vec![b'k'; 5000];
            bytes.extend_from_slice(&n.to_be_bytes());
            assert!(put(&*index, key(&bytes, Hashes::One), b"v"));
        }
        assert_eq!(scan_unique(&*index, Start::Edge, DIRECTIONS[0]).len(), 201);
        assert!(remove(&*index, key(b"large", Hashes::One)));
        assert!(index.memory() < large.len());
    }
}

/// An empty index is tiny.
#[test]
fn empty_is_tiny() {
    for kind in [Kind::Hash, Kind::Ordered] {
        let index = make(kind, LeafConfig::default());
        assert!(index.memory() < 512, "{}", index.memory());
        let (stats, len) = (index.stats(), index.len());
        assert_eq!(
            (stats.leaves, stats.inner_nodes, stats.depth, len),
            (1, 0, 0, 0)
        );
    }
}

/// A closure that panics leaves the leaf as it was, and unlocked.
#[test]
fn a_panic_in_an_update_changes_nothing() {
    for kind in [Kind::Hash, Kind::Ordered] {
        let index = make(kind, LeafConfig::tiny());
        let k = key(b"k", Hashes::Good);
        put(&*index, k, b"before");
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            index.update(&pin(), k, &mut |_, _| panic!("as it should"))
        }));
        assert!(result.is_err());
        let mut out = Vec::new();
        assert!(index.get(&pin(), k, &mut out));
        assert_eq!(out, b"before");
        assert!(put(&*index, k, b"after"));
    }
}

//! Random sequences of operations on each index with one value under a key, against the oracle.

use larder_index::{
    pin, Batch, Chains, Change, Direction, Hint, LeafConfig, Lookup, Previous, Start, Unique,
    SHORT_VALUE,
};
use larder_testing::unique_ops::{a_panic_changes_nothing, op, run};
use larder_testing::*;
use proptest::prelude::*;

fn check(index: &dyn Unique, how: Hashes, ops: &[unique_ops::UniqueOp]) {
    let name = format!("ordered: {}", index.is_ordered());
    run(index, &name, how, ops, |stats| {
        stats.leaves * 1300 + stats.inner_nodes * 1000
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 160 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_hash_order_is_the_oracle(ops in prop::collection::vec(op(300), 1..400), hashes in 0..4usize, config in 0..2usize, ending: bool) {
        let make = if ending { make_ending } else { make_with };
        let how = ALL_HASHES[hashes];
        check(&*make(Kind::Hash, configs()[config], how), how, &ops);
    }

    #[test]
    fn chains_are_the_oracle(ops in prop::collection::vec(op(300), 1..400), hashes in 0..4usize) {
        let how = ALL_HASHES[hashes];
        // Heads that were allocated stay.
        run(&Chains::tiny(), "chains", how, &ops, |_| 1 << 17);
    }

    #[test]
    fn the_key_order_is_the_oracle(ops in prop::collection::vec(op(300), 1..400), config in 0..2usize) {
        check(&*make(Kind::Ordered, configs()[config]), Hashes::Good, &ops);
    }
}

/// Many keys come in order, and go in order: the trees grow levels and lose them again.
#[test]
fn an_index_grows_and_shrinks() {
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

/// An index in key order that expects the right number of keys has hardly more memory in the end
/// than one that expects none, in whatever order they come. If none come, it has a limited amount.
#[test]
fn announced_keys_find_their_room_in_key_order() {
    let fill = |announced: usize, n: u32, order: fn(u32) -> u32| {
        let index = make(Kind::Ordered, LeafConfig::default());
        for i in 0..n {
            if i % 64 == 0 && announced > 0 {
                index.expect_keys(i as usize, announced);
            }
            let bytes = order(i).to_be_bytes();
            put(&*index, key(&bytes, Hashes::Good), &bytes);
        }
        index.expect_keys(0, 0);
        let mut found = scan_unique(&*index, Start::Edge, DIRECTIONS[0]).into_iter();
        let mut expect: Vec<_> = (0..n).map(order).collect();
        expect.sort();
        for key in expect {
            assert_eq!(found.next().unwrap().0, key.to_be_bytes());
        }
        assert!(found.next().is_none());
        index.memory() as f64
    };
    let orders: [fn(u32) -> u32; 3] = [|i| i, |i| u32::MAX - i, |i| i.wrapping_mul(0x9E37_79B9)];
    for order in orders {
        for n in if cfg!(miri) {
            vec![200]
        } else {
            vec![600, 5_000, 60_000]
        } {
            let unknown = fill(0, n, order);
            let announced = fill(n as usize, n, order);
            assert!(announced < 1.2 * unknown, "{n}: {announced} {unknown}");
        }
        let (unknown, announced) = (fill(0, 70, order), fill(1_000_000, 70, order));
        assert!(announced < unknown + 8192.0, "{announced} {unknown}");
    }
}

/// A write with a hint stores its value under its key, whatever has happened since the hint was
/// made: to the entry, to others of its leaf, or to the leaf; and whichever index it is of.
#[test]
fn hints_are_only_hints() {
    let bytes = |n: u8| [b'k', n, 7, 7, 7, 7, 7];
    let value = |n: u8, len: usize| vec![n; len];
    type Change = (&'static str, fn(&dyn Unique));
    let with = |index: &dyn Unique, n: u8, len: usize| {
        put(
            index,
            key(&[b'k', n, 7, 7, 7, 7, 7], Hashes::Good),
            &vec![n; len],
        );
    };
    let changes: [Change; 6] = [
        ("nothing", |_| {}),
        ("an entry before it", |index| {
            put(index, key(b"a", Hashes::Good), b"a");
        }),
        ("its value", |index| {
            put(
                index,
                key(&[b'k', 5, 7, 7, 7, 7, 7], Hashes::Good),
                b"longer than it was",
            );
        }),
        ("its removal", |index| {
            assert!(remove(index, key(&[b'k', 5, 7, 7, 7, 7, 7], Hashes::Good)));
        }),
        ("its neighbours' removal", |index| {
            for n in [3, 4, 6] {
                assert!(remove(index, key(&[b'k', n, 7, 7, 7, 7, 7], Hashes::Good)));
            }
        }),
        ("many entries", |index| {
            for n in 0..=255u8 {
                put(index, key(&[b'l', n], Hashes::Good), &[n; 20]);
                put(index, key(&[b'a', n], Hashes::Good), &[n; 20]);
            }
        }),
    ];
    for kind in [Kind::Hash, Kind::Ordered] {
        for (name, change) in &changes {
            for len in [1, 5, 300] {
                let (index, other) = (make(kind, configs()[0]), make(kind, configs()[0]));
                for index in [&*index, &*other] {
                    (0..10).for_each(|n| with(index, n, 5));
                }
                let (hashed, guard, mut out) = (bytes(5), pin(), [0; SHORT_VALUE]);
                let hashed = key(&hashed, Hashes::Good);
                let mut hint = Hint::default();
                let found = index.get_with_hint(&guard, hashed, &mut out, None, &mut hint);
                assert_eq!((found, &out[..5]), (Lookup::Short(5), &[5; 5][..]));
                change(&*index);
                let new = value(99, len);
                let mut calls = 0;
                let mut agree = |_: Option<&[u8]>| {
                    calls += 1;
                    true
                };
                // The other index has the entry at the same place, and the hint isn't of it.
                other.put_with_hint(&guard, hashed, &new, &hint, &mut agree);
                let mut expected = contents(&*index);
                expected.retain(|(key, _)| key != hashed.bytes);
                expected.push((hashed.bytes.to_vec(), new.clone()));
                expected.sort();
                index.put_with_hint(&guard, hashed, &new, &hint, &mut agree);
                assert_eq!(calls, 2);
                assert_eq!(contents(&*index), expected, "{kind:?} {name} {len}");
                let mut others: Vec<_> =
                    (0..10).map(|n| (bytes(n).to_vec(), value(n, 5))).collect();
                others[5].1.clone_from(&new);
                assert_eq!(contents(&*other), others, "{kind:?} {name} {len}");
                // A refusal changes nothing.
                let was = index.put_with_hint(&guard, hashed, b"no", &hint, &mut |_| false);
                assert_eq!(was, Previous::Refused);
                assert_eq!(contents(&*index), expected);
            }
        }
    }
}

/// A key that is absent is put where its range is by then, however many leaves have been replaced
/// since its hint was made. Some keys don't begin with what all others of their leaf begin with.
#[test]
fn an_absent_key_is_put_by_any_hint() {
    const KEYS: u64 = 300;
    for config in configs() {
        for kind in [Kind::Hash, Kind::Ordered] {
            let (index, other) = (make(kind, config), make(kind, config));
            let guard = pin();
            let bytes = |k: u64| {
                let mut bytes = mix(k).to_be_bytes();
                bytes[..4].fill((k % 7 / 6) as u8);
                bytes
            };
            let hints: Vec<_> = (0..KEYS)
                .map(|k| {
                    let bytes = bytes(k);
                    // The hint of each key is as old as the inserts of a third of the keys.
                    if k % 3 == 0 {
                        put(&*index, key(&bytes, Hashes::Good), b"first");
                    }
                    index.prefetch_entry(&guard, key(&bytes, Hashes::Good))
                })
                .collect();
            for (k, hint) in hints.iter().enumerate().rev().filter(|(k, _)| k % 3 != 0) {
                let bytes = bytes(k as u64);
                index.put_absent(&guard, key(&bytes, Hashes::Good), b"second", hint);
                // It is no hint for another index.
                other.put_absent(&guard, key(&bytes, Hashes::Good), b"second", hint);
            }
            let value = |k| [&b"first"[..], b"second"][usize::from(k % 3 != 0)].to_vec();
            let mut expected: Vec<_> = (0..KEYS).map(|k| (bytes(k).to_vec(), value(k))).collect();
            expected.sort();
            assert_eq!(contents(&*index), expected);
            expected.retain(|(_, value)| value == b"second");
            assert_eq!(contents(&*other), expected);
        }
    }
}

/// All entries, in the order of keys.
fn contents(index: &dyn Unique) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = scan_unique(index, Start::Edge, Direction::Forward);
    all.sort();
    all
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

/// What a step from the edge has seen vouches for the first entry: also where the leaves before it
/// are empty, and get entries again.
#[test]
fn the_first_entry_is_the_first_while_its_leaf_is_unchanged() {
    let index = make(Kind::Hash, LeafConfig::tiny());
    // The first key, and the state of its leaf.
    let first = || {
        let (guard, mut batch) = (pin(), Batch::default());
        index.step(&guard, None, Direction::Forward, &mut batch);
        (!batch.is_empty()).then(|| (batch.key(0).to_vec(), batch.seen))
    };
    let n = if cfg!(miri) { 100 } else { 2_000u32 };
    let keys: Vec<[u8; 4]> = (0..n).map(u32::to_be_bytes).collect();
    for k in &keys {
        put(&*index, key(k, Hashes::Good), k);
    }
    let mut vouched = 0;
    let mut check = |change: &mut dyn FnMut(&[u8])| {
        let Some((known, seen)) = first() else {
            return;
        };
        change(&known);
        if seen.is_some_and(|seen| index.is_unchanged(&pin(), key(&known, Hashes::Good), seen)) {
            assert_eq!(first().map(|(key, _)| key), Some(known));
            vouched += 1;
        }
    };
    // From the first key on all go, and come back from the last one on, so that each is the first.
    let mut gone = Vec::new();
    for _ in 1..n {
        check(&mut |known| {
            assert!(remove(&*index, key(known, Hashes::Good)));
            gone.push(known.to_vec());
        });
        check(&mut |_| ());
    }
    while let Some(k) = gone.pop() {
        check(&mut |_| {
            assert!(put(&*index, key(&k, Hashes::Good), &k));
        });
        check(&mut |_| ());
    }
    assert!(cfg!(miri) || vouched > 50, "{vouched}");
}

/// Full leaves where entries go and come back split once, and have room from then on: were they
/// left full, every other insert would move all of a leaf's entries.
#[test]
fn full_leaves_where_entries_come_and_go_split() {
    let index = make(Kind::Ordered, LeafConfig::default());
    let n = if cfg!(miri) { 1_000 } else { 20_000u64 };
    for i in 0..n {
        put(&*index, key(&i.to_be_bytes(), Hashes::Good), b"12345678");
    }
    let full = index.stats();
    let exchange_all = || {
        for i in 0..n {
            // 7,919 is a prime: each key once, in no order.
            let k = (i * 7_919 % n).to_be_bytes();
            assert!(remove(&*index, key(&k, Hashes::Good)));
            assert!(put(&*index, key(&k, Hashes::Good), b"12345678"));
        }
        index.stats()
    };
    let once = exchange_all();
    assert!(once.leaves >= 2 * full.leaves - 2, "{full:?} {once:?}");
    let twice = exchange_all();
    assert_eq!((twice.splits, twice.merges), (once.splits, once.merges));
}

/// A value of a hundred megabytes, and keys of some thousand bytes.
#[test]
fn large_values_and_keys_come_back() {
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

/// A small leaf stays as it is while its entries come and go. A large one doesn't.
#[test]
fn a_small_leaf_outlives_its_entries() {
    let index = make(Kind::Ordered, LeafConfig::default());
    let number = |n: u64| [&[7; 40][..], &n.to_be_bytes()].concat();
    assert!(index.is_seen_empty(&pin()));
    put(&*index, key(&number(0), Hashes::Good), b"value");
    let small = index.memory();
    for n in 1..10 {
        assert!(!index.is_seen_empty(&pin()));
        assert!(remove(&*index, key(&number(n - 1), Hashes::Good)));
        assert!(index.is_seen_empty(&pin()));
        assert_eq!(index.memory(), small);
        put(&*index, key(&number(n), Hashes::Good), b"value");
        assert_eq!(index.memory(), small);
    }
    let many = 10..60;
    for n in many.clone() {
        put(&*index, key(&number(n), Hashes::Good), b"value");
    }
    let large = index.memory();
    many.for_each(|n| assert!(remove(&*index, key(&number(n), Hashes::Good))));
    assert!(
        index.memory() < large / 2,
        "{large}, then {}",
        index.memory()
    );
}

/// An empty index is tiny.
#[test]
fn an_empty_index_is_tiny() {
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
        a_panic_changes_nothing(&*make(kind, LeafConfig::tiny()));
    }
}

/// Replaces `len` bytes at `at` of a value in the index, and of its copy, by `new_len` others.
fn replace_part(
    (index, guard): (&dyn Unique, &larder_index::Guard),
    (i, value): (usize, &mut Vec<u8>),
    (at, len, new_len): (usize, usize, usize),
) {
    let (bytes, how) = (key_bytes(i as u16), Hashes::Good);
    let new: Vec<u8> = (0..new_len).map(|n| 255 - (n + i) as u8 % 4).collect();
    let changed =
        index.update_present(guard, key(&bytes, how), &mut Vec::new(), &mut |old, out| {
            out.extend_from_slice(&new);
            Change::splice(old.unwrap(), at, len, out)
        });
    assert!(changed);
    value.splice(at..at + len, new);
}

/// Parts of values that lie outside their leaves are replaced by longer and by shorter ones, and
/// the memory of the values is counted.
#[test]
fn parts_of_large_values_are_replaced() {
    let (guard, how) = (pin(), Hashes::Good);
    for (kind, config) in [Kind::Hash, Kind::Ordered]
        .into_iter()
        .flat_map(|kind| configs().map(|config| (kind, config)))
    {
        let index = make(kind, config);
        let mut values: Vec<Vec<u8>> = (0..20)
            .map(|i| (0..900 + 7 * i).map(|at| (at % 251) as u8).collect())
            .collect();
        for (i, value) in values.iter().enumerate() {
            let bytes = key_bytes(i as u16);
            index.put(&guard, key(&bytes, how), value, &mut |_| true);
        }
        let before = index.memory();
        let parts = [
            (0, 3, 3),
            (0, 1, 9),
            (400, 8, 0),
            (890, 2, 2),
            (100, 0, 700),
            (100, 700, 0),
        ];
        for (at, len, new_len) in parts {
            for (i, value) in values.iter_mut().enumerate() {
                let bytes = key_bytes(i as u16);
                replace_part((&*index, &guard), (i, &mut *value), (at, len, new_len));
                let mut found = Vec::new();
                assert!(index.get(&guard, key(&bytes, how), &mut found));
                assert_eq!(found, *value, "{kind:?}: {at}, {len}, {new_len}");
            }
            let grown = index.memory() as i64 - before as i64;
            // Whole words.
            let of_values = if new_len == 700 { 20 * 700 } else { 0 };
            assert!((grown - of_values).abs() <= 20 * 8, "{grown} {of_values}");
        }
        assert_eq!(index.memory(), before);
        // So it is if whole values are replaced.
        for more in [64, 640, 0] {
            for (i, value) in values.iter().enumerate() {
                let (bytes, longer) = (key_bytes(i as u16), [value, &vec![7; more][..]].concat());
                index.put(&guard, key(&bytes, how), &longer, &mut |_| true);
            }
            assert_eq!(index.memory(), before + 20 * more, "{kind:?}: {more}");
        }
    }
}

/// Parts of values that lie inside their leaves are replaced by longer and by shorter ones. The
/// entries beside them stay as they are.
#[test]
fn parts_of_small_values_are_replaced() {
    let (guard, how) = (pin(), Hashes::Good);
    for (kind, config) in [Kind::Hash, Kind::Ordered]
        .into_iter()
        .flat_map(|kind| configs().map(|config| (kind, config)))
    {
        let index = make(kind, config);
        let mut values: Vec<Vec<u8>> = (0..300)
            .map(|i| (0..4 + i % 13).map(|at| (i + at) as u8).collect())
            .collect();
        for (i, value) in values.iter().enumerate() {
            let bytes = key_bytes(i as u16);
            index.put(&guard, key(&bytes, how), value, &mut |_| true);
        }
        let parts = [
            (1, 2, 2),
            (0, 1, 9),
            (2, 5, 0),
            (3, 0, 1),
            (0, 4, 1),
            (1, 0, 20),
            (2, 17, 3),
        ];
        for (at, len, new_len) in parts {
            for (i, value) in values.iter_mut().enumerate() {
                let (at, len) = (at.min(value.len()), len.min(value.len().saturating_sub(at)));
                replace_part((&*index, &guard), (i, value), (at, len, new_len));
            }
            for (i, value) in values.iter().enumerate() {
                let (bytes, mut found) = (key_bytes(i as u16), Vec::new());
                assert!(index.get(&guard, key(&bytes, how), &mut found));
                assert_eq!(found, *value, "{kind:?}: {at}, {len}, {new_len}");
            }
        }
    }
}

/// A value that lies outside its leaf is lent, and stays as it was while the reader is pinned, even
/// if its entry is changed in part, replaced or removed.
#[test]
fn a_lent_value_stays_as_it_was() {
    let (bytes, how) = (key_bytes(7), Hashes::Good);
    let ways: [fn(&dyn Unique, larder_index::Key<'_>); 3] = [
        |index, key| {
            index.update(&pin(), key, &mut |old, new| {
                new.extend_from_slice(b"new");
                Change::splice(old.unwrap(), 500, 3, new)
            });
        },
        |index, key| {
            index.put(&pin(), key, &[2; 900], &mut |_| true);
        },
        |index, key| {
            index.remove(&pin(), key, &mut |_| true);
        },
    ];
    for (kind, config) in [Kind::Hash, Kind::Ordered]
        .into_iter()
        .flat_map(|kind| configs().map(|config| (kind, config)))
    {
        for way in ways {
            let (index, key) = (make(kind, config), key(&bytes, how));
            index.put(&pin(), key, &[1; 900], &mut |_| true);
            let (guard, mut lent) = (pin(), None);
            let (mut short, mut long) = ([0; SHORT_VALUE], Vec::new());
            let found = index.get_or_lend(&guard, key, &mut short, &mut long, &mut lent);
            assert_eq!((found, lent), (Lookup::Long, Some(&[1; 900][..])));
            way(&*index, key);
            for n in 0..200 {
                index.put(
                    &pin(),
                    larder_testing::key(&key_bytes(n + 8), how),
                    &[3; 900],
                    &mut |_| true,
                );
            }
            assert_eq!(lent, Some(&[1; 900][..]));
            let mut now = Vec::new();
            index.get(&guard, key, &mut now);
            assert_ne!(now, [1; 900]);
        }
    }
}

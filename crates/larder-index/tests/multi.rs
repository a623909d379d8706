//! Random sequences of operations on the index with many values under a key, against the oracle.

use larder_index::{
    multi_hashed, multi_with, pin, Batch, Direction, Key, LeafConfig, Multi, Objects, Start, HEAD,
};
use larder_testing::multi_ops::{op, run};
use larder_testing::*;
use proptest::prelude::*;

fn check(config: LeafConfig, how: Hashes, ops: &[multi_ops::MultiOp]) {
    run(&*multi_with(how, config), "bag", how, ops, |stats| {
        4096 + stats.leaves * 1300 + stats.inner_nodes * 1000
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 3 } else { 120 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bag_is_the_oracle(ops in prop::collection::vec(op(40), 1..200), hashes in 0..4usize, config in 0..2usize) {
        check(configs()[config], ALL_HASHES[hashes], &ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 60 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Keys with so many objects that they are found by their hashes, and with few again.
    #[test]
    fn a_bag_of_two_keys_is_the_oracle(ops in prop::collection::vec(op(2), 1..200), hashes in 0..4usize, config in 0..2usize) {
        check(configs()[config], ALL_HASHES[hashes], &ops);
    }
}

/// Objects with equal hashes are told apart, and those that the user takes for the same are found
/// whatever their bytes.
#[test]
fn object_hashes_only_guide_a_search() {
    let index = multi_hashed(Hashes::Good, LeafConfig::tiny(), |value| {
        u64::from(value[0] % 2)
    });
    let k = key(b"key", Hashes::Good);
    index.update(&pin(), k, &mut |objects| {
        for i in 0..200u8 {
            assert!(!objects.find(&[i], &mut |v| v == [i]));
            objects.push(&[i]);
        }
        assert!((0..200).all(|i| objects.find(&[i], &mut |v| v == [i])));
        // Even numbers up to 99 are all the same to this user.
        let mut same = |v: &[u8]| v[0].is_multiple_of(2) && v[0] < 100;
        assert!(objects.find(&[8], &mut same));
        assert_eq!(objects.remove_same(&[8], &mut same), 50);
        assert_eq!(objects.count(), 150);
        objects.replace(0, &[201]);
        assert!(objects.find(&[201], &mut |v| v == [201]));
        assert!(!objects.find(&[1], &mut |v| v == [1]));
    });
}

/// Objects under one key are added, found and removed without a walk over all: a million steps for
/// each would last for hours.
#[test]
#[cfg_attr(miri, ignore)]
fn objects_of_a_tree_key_are_found_without_a_walk() {
    let index = multi_with(Hashes::Good, LeafConfig::default());
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
        "the hash index is emptied with the objects"
    );
}

/// Very many values under one key: each push finds its place by descent.
#[test]
fn a_push_to_many_values_is_a_descent() {
    let index = multi_with(Hashes::Good, LeafConfig::default());
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

/// A search in a key to which objects were only added finds each of them, however many there are.
#[test]
#[cfg_attr(miri, ignore)]
fn objects_that_were_only_added_are_found() {
    let k = key(b"key", Hashes::Good);
    for n in [60u32, 70, 1_000, 4_096, 4_097, 6_000] {
        let index = multi_with(Hashes::Good, LeafConfig::default());
        let values = || index.get(&pin(), k, &mut |_| ());
        for i in 0..n {
            let value = (i / 2).to_be_bytes();
            index.update(&pin(), k, &mut |objects| objects.push(&value));
        }
        let remove = |i: u32| {
            let value = i.to_be_bytes();
            let mut removed = 0;
            index.update(&pin(), k, &mut |objects| {
                let found = objects.find(&value, &mut |v| v == value);
                removed = objects.remove_same(&value, &mut |v| v == value);
                assert_eq!(found, removed > 0);
            });
            removed
        };
        assert_eq!(
            (remove(n), remove(7), remove(7), remove(n / 2 - 1)),
            (0, 2, 0, 2)
        );
        assert_eq!(values(), n as usize - 4);
        // Objects that come after a search are found, too.
        for i in 0..100u32 {
            index.update(&pin(), k, &mut |objects| objects.push(&i.to_be_bytes()));
        }
        assert_eq!((remove(7), remove(8)), (1, 3));
        assert_eq!(
            (0..n / 2).map(remove).sum::<usize>() + values(),
            n as usize + 92
        );
        assert!(values() <= 100);
    }
}

/// Keys that begin alike, end early or have zeros where others end: each has its own values, and no
/// more, wherever the borders of leaves are.
#[test]
fn neighbouring_keys_have_their_own_values() {
    let keys: Vec<Vec<u8>> = (0..60u8)
        .flat_map(|n| {
            [
                vec![n % 7 + 1, n, 0, 9],
                vec![n % 7 + 1, n, 0, 0, 0, 0, 0, 9],
            ]
        })
        .chain((0..20).map(|n| [vec![8; 30], vec![n, 9]].concat()))
        .collect();
    for config in [LeafConfig::tiny(), LeafConfig::default()] {
        let index = multi_with(Hashes::One, config);
        for (n, bytes) in keys.iter().enumerate() {
            index.update(&pin(), key(bytes, Hashes::One), &mut |objects| {
                (0..n % 5).for_each(|i| objects.push(&vec![n as u8; 1 + 300 * (i / 3)]));
            });
        }
        for (n, bytes) in keys.iter().enumerate() {
            let mut found = Vec::new();
            index.get(&pin(), key(bytes, Hashes::One), &mut |value| {
                found.push(value.to_vec())
            });
            let expected: Vec<_> = (0..n % 5)
                .map(|i| vec![n as u8; 1 + 300 * (i / 3)])
                .collect();
            assert_eq!(found, expected, "{bytes:?}");
        }
    }
}

/// The objects of a key, by the reads of all kinds, which must agree.
fn all_of(index: &dyn Multi, k: Key<'_>) -> Vec<Vec<u8>> {
    let (mut got, mut seen) = (Vec::new(), Vec::new());
    index.get(&pin(), k, &mut |v| got.push(v.to_vec()));
    index.update(&pin(), k, &mut |objects| {
        assert_eq!(
            (objects.count(), objects.is_empty()),
            (got.len(), got.is_empty())
        );
        objects.each(&mut |_, v| {
            seen.push(v.to_vec());
            true
        });
    });
    assert_eq!(seen, got);
    let rows = scan_multi(index, Start::Edge, DIRECTIONS[0]);
    let of_key = rows.into_iter().filter(|(key, _)| key == k.bytes);
    assert_eq!(of_key.map(|(_, v)| v).collect::<Vec<_>>(), got);
    // A key with few objects is read at once. From each of them a scan continues after it.
    let (guard, mut batch) = (pin(), Batch::default());
    if index.scan_key(&guard, k, &mut batch) {
        let values = (0..batch.len()).map(|i| batch.value(i).to_vec());
        assert_eq!(values.collect::<Vec<_>>(), got);
        for i in 0..batch.len() {
            assert_eq!(batch.key(i), k.bytes);
            let (mut place, mut next) = (Vec::new(), Batch::default());
            index.entry_position(&batch, i, &mut place);
            index.scan(&guard, Start::Past(&place), DIRECTIONS[0], &mut next);
            let after = (!next.is_empty()).then(|| next.value(0));
            assert_eq!(after, got.get(i + 1).map(|value| &value[..]));
        }
    } else {
        assert!(batch.is_empty() && !got.is_empty());
    }
    assert_eq!(index.contains(&pin(), k), !got.is_empty());
    got
}

/// A key goes from a list to the value tree, indexed by hash or not, and back, one object at a time
/// and all at once; a tree header knows how many objects it has throughout.
#[test]
fn lists_move_to_the_tree_and_back() {
    let k = key(b"key", Hashes::Good);
    for config in [LeafConfig::tiny(), LeafConfig::default()] {
        for most in [2, 5, 20, 40, 90u8] {
            let index = multi_with(Hashes::Good, config);
            let step = |f: &mut dyn FnMut(&mut dyn Objects)| index.update(&pin(), k, f);
            let expect = |from: u8, to: u8| {
                let expected: Vec<_> = (from..to).map(|i| vec![i; 7]).collect();
                assert_eq!(all_of(&*index, k), expected, "{from}..{to} of {most}");
                assert_eq!(index.len(), expected.len());
            };
            for round in 0..3 {
                for i in 0..most {
                    step(&mut |objects| objects.push(&[i; 7]));
                    expect(0, i + 1);
                }
                for i in 0..most - 1 {
                    step(&mut |objects| {
                        let same = match round {
                            0 => objects.remove_same(&[i; 7], &mut |v| v[0] == i),
                            _ => objects.remove_if(&mut |v| v[0] == i),
                        };
                        assert_eq!(same, 1);
                    });
                    expect(i + 1, most);
                }
                let mut last = Vec::new();
                step(&mut |objects| {
                    assert_eq!(objects.remove_all(&mut |v| last.push(v.to_vec())), 1);
                    assert_eq!(objects.remove_all(&mut |_| unreachable!()), 0);
                });
                assert_eq!(last, [vec![most - 1; 7]]);
                expect(0, 0);
            }
            // All at once, and something new in the same change.
            step(&mut |objects| (0..most).for_each(|i| objects.push(&[i; 7])));
            expect(0, most);
            step(&mut |objects| {
                assert_eq!(objects.remove_if(&mut |_| true), usize::from(most));
                objects.push(&[0; 7]);
            });
            expect(0, 1);
            let neighbour = key(b"neighbour", Hashes::Good);
            index.update(&pin(), neighbour, &mut |objects| objects.push(b"stays"));
            step(&mut |objects| {
                objects.remove_all(&mut |_| ());
            });
            assert_eq!(all_of(&*index, neighbour), [b"stays"]);
            assert_eq!(index.len(), 1);
        }
    }
}

/// A scan that stopped after an object of a key goes on after it, whatever became of the key:
/// each object that is there throughout is visited once.
#[test]
fn a_scan_goes_on_within_a_key() {
    for (before, after) in [(3u8, 3u8), (3, 60), (60, 60), (60, 3), (90, 200), (2, 90)] {
        for stop in 0..before {
            let index = multi_with(Hashes::Good, LeafConfig::default());
            let k = key(b"key", Hashes::Good);
            let step = |f: &mut dyn FnMut(&mut dyn Objects)| index.update(&pin(), k, f);
            step(&mut |objects| (0..before).for_each(|i| objects.push(&[i])));
            let (guard, mut batch, mut position) = (pin(), Batch::default(), Vec::new());
            index.scan(&guard, Start::Edge, DIRECTIONS[0], &mut batch);
            index.entry_position(&batch, usize::from(stop), &mut position);
            // The one after which it stopped goes, and others come, or go from the end.
            step(&mut |objects| {
                objects.remove_if(&mut |v| v[0] == stop || v[0] >= after);
                (before..after).for_each(|i| objects.push(&[i]));
            });
            let rest = scan_multi(&*index, Start::Past(&position), DIRECTIONS[0]);
            let visited: Vec<_> = rest.into_iter().map(|(_, v)| v[0]).collect();
            // What has come in the place of the last may take its number: it is not visited then.
            let throughout = (stop + 1..before.min(after)).collect::<Vec<_>>();
            let (first, new) = visited.split_at(throughout.len());
            assert_eq!(first, throughout, "{before} {after} {stop}");
            assert!(new.iter().all(|v| *v >= before) && new.is_sorted());
        }
    }
}

/// A bag is freed in about as many steps as it has entries by the step's, those of its hash index
/// among them: no step goes over what is empty.
#[test]
#[cfg_attr(miri, ignore)]
fn a_value_tree_is_freed_in_steps() {
    const STEP: usize = 64;
    let index = multi_with(Hashes::Good, LeafConfig::tiny());
    let k = key(b"key", Hashes::Good);
    let n = 20_000u32;
    for i in 0..n {
        index.update(&pin(), k, &mut |objects| objects.push(&i.to_be_bytes()));
    }
    let leaves = index.stats().leaves;
    let (mut steps, mut freed) = (1, 0);
    while !index.free_some(&pin(), STEP, &mut |_| freed += 1) {
        steps += 1;
    }
    assert_eq!(freed, n);
    // An entry or an empty leaf counts as one; each object has an entry in the hash index, too.
    let most = 2 * (n as usize + leaves) / STEP + 3;
    assert!(steps <= most, "{steps} steps, {leaves} leaves");
}

/// The lists of a leaf that was read are removed at once: all objects of a key or none, and nothing
/// if the leaf has changed or a key has its objects in the tree.
#[test]
fn what_a_batch_had_is_removed_at_once() {
    const KEYS: u16 = if cfg!(miri) { 300 } else { 4000 };
    for config in configs() {
        for many in [None, Some(7)] {
            let index = multi_with(Hashes::Good, config);
            let mut oracle = std::collections::BTreeMap::new();
            for k in 0..KEYS {
                let n = if many == Some(k) {
                    300
                } else {
                    1 + u16::from(k % 4 == 0)
                };
                index.update(&pin(), key(&key_bytes(k), Hashes::Good), &mut |objects| {
                    (0..n).for_each(|i| objects.push(&i.to_be_bytes()));
                });
                oracle.insert(key_bytes(k), n as usize);
            }
            let (whole, refused) = remove_leaf_by_leaf(&*index, &mut oracle);
            assert!(whole > 3 && refused > 3 || cfg!(miri), "{whole} {refused}");
            for k in 0..KEYS {
                let bytes = key_bytes(k);
                let found = index.get(&pin(), key(&bytes, Hashes::Good), &mut |_| {});
                assert_eq!(found, oracle.get(&bytes).copied().unwrap_or(0), "{k}");
            }
        }
    }
}

/// Removes the objects of every second leaf that a scan reads. Returns how many removals were done,
/// and how many were refused as they must be.
fn remove_leaf_by_leaf(
    index: &dyn Multi,
    oracle: &mut std::collections::BTreeMap<Vec<u8>, usize>,
) -> (usize, usize) {
    let (mut at, mut round, mut whole, mut refused) = (None::<Vec<u8>>, 0, 0, 0);
    loop {
        let (guard, mut batch) = (pin(), Batch::default().in_any_order());
        let start = at.as_deref().map_or(Start::Edge, Start::At);
        index.scan(&guard, start, larder_index::Direction::Forward, &mut batch);
        let keys: Vec<&[u8]> = (0..batch.len()).map(|i| batch.key(i)).collect();
        let objects_of = |k: &[u8]| keys.iter().filter(|other| **other == k).count();
        let in_tree = keys.iter().any(|k| objects_of(k) > 64);
        let remove = |chosen: &[u32]| {
            let first = key(keys[chosen[0] as usize], Hashes::Good);
            index.remove_scanned(&guard, first, (&batch, chosen), &mut || true)
        };
        // Some objects of a key without the others.
        let split = (0..keys.len()).find(|&i| objects_of(keys[i]) > 1);
        if let Some(i) = split {
            assert!(!remove(&[i as u32]));
            refused += 1;
        }
        round += 1;
        if round % 2 == 0 && !keys.is_empty() {
            // The keys whose number is even, and of a third of the leaves all.
            let wanted = |k: &[u8]| round % 3 == 0 || k[k.len() - 1].is_multiple_of(2);
            let chosen: Vec<u32> = (0..keys.len() as u32)
                .filter(|&i| wanted(keys[i as usize]))
                .collect();
            if !chosen.is_empty() {
                let done = remove(&chosen);
                // Of tiny leaves, keys with few objects have them in the tree, too.
                assert!(!done || batch.unordered && !in_tree);
                if done {
                    chosen
                        .iter()
                        .for_each(|&i| _ = oracle.remove(keys[i as usize]));
                    assert!(!remove(&chosen), "the leaf has changed");
                    whole += 1;
                }
            }
        }
        if batch.done {
            return (whole, refused);
        }
        at = Some(batch.resume.clone());
    }
}

/// Of large lists and of trees, steps and scans of keys copy the beginning of each first object.
#[test]
fn batches_of_keys_have_the_heads_of_first_objects() {
    /// Heads, keys and numbers of so many keys have fewer bytes.
    const FEW: usize = 64 * KEYS;
    const KEYS: usize = 30;
    let index = multi_with(Hashes::Good, LeafConfig::default());
    let name = |i: usize| format!("key {i}").into_bytes();
    for i in 0..KEYS {
        // One object, a list, or a tree.
        let (count, len) = [(1, 5_000), (3, 500), (100, 300)][i % 3];
        index.update(&pin(), key(&name(i), Hashes::Good), &mut |objects| {
            // The number of the first one is not 0.
            objects.push(b"goes");
            (0..count).for_each(|j| objects.push(&vec![(i + j) as u8; len]));
            assert_eq!(objects.remove_if(&mut |object| object == b"goes"), 1);
        });
    }
    let check = |batch: &Batch<'_>, i: usize| {
        let number: usize = String::from_utf8_lossy(&batch.key(i)[4..]).parse().unwrap();
        assert_eq!(batch.value(i), [number as u8; HEAD]);
        assert_eq!(index.entry_number(batch, i), 1);
        number
    };
    let mut batch = Batch::default();
    (batch.firsts, batch.heads) = (true, true);
    let (guard, mut walked, mut scanned) = (pin(), Vec::new(), Vec::new());
    loop {
        let from = walked.last().map(|&i| name(i));
        let from = from.as_ref().map(|name| key(name, Hashes::Good));
        batch.lend_owned(|batch| index.step(&guard, from, batch));
        if batch.is_empty() {
            break;
        }
        assert!(batch.copied_bytes() < FEW / KEYS);
        walked.push(check(&batch, 0));
    }
    let mut from = Vec::new();
    loop {
        let start = match scanned.is_empty() {
            true => Start::Edge,
            false => Start::At(&from),
        };
        batch.lend_owned(|batch| index.scan(&guard, start, Direction::Forward, batch));
        assert!(batch.copied_bytes() < FEW);
        scanned.extend((0..batch.len()).map(|i| check(&batch, i)));
        if batch.done {
            break;
        }
        from.clone_from(&batch.resume);
    }
    assert_eq!(walked, scanned);
    assert_eq!(walked.len(), KEYS);
}

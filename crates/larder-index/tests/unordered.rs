//! Batches in any order, and the removal of what they had: against a map, over sizes of all kinds.

use larder_index::{pin, Batch, Direction, Key, Start, Unique};
use larder_testing::*;
use std::collections::HashMap;

fn key_of(n: &[u8; 8]) -> Key<'_> {
    key(n, Hashes::Good)
}

/// Values from nothing to what lives outside of leaves.
fn value(n: u64) -> Vec<u8> {
    let len = match n % 17 {
        0 => 1000 + n % 3000,
        1..=4 => n % 250,
        _ => n % 20,
    };
    vec![n as u8; len as usize]
}

fn fill(index: &dyn Unique, oracle: &mut HashMap<u64, Vec<u8>>, keys: impl Iterator<Item = u64>) {
    for k in keys {
        let value = value(mix(k ^ oracle.len() as u64));
        put(index, key_of(&k.to_be_bytes()), &value);
        oracle.insert(k, value);
    }
}

fn number(batch: &Batch, i: usize) -> u64 {
    u64::from_be_bytes(batch.key(i).try_into().unwrap())
}

/// All batches of a scan, one after the other; `each` may change the index between them.
fn scan(index: &dyn Unique, any_order: bool, mut each: impl FnMut(&Batch)) {
    let mut at = None::<Vec<u8>>;
    loop {
        let (guard, mut batch) = (pin(), Batch::default());
        batch.any_order = any_order;
        batch.by_hash = true;
        let start = at.as_deref().map_or(Start::Edge, Start::At);
        index.scan(&guard, start, Direction::Forward, &mut batch);
        each(&batch);
        if batch.done {
            return;
        }
        at = Some(batch.resume.clone());
    }
}

/// Each entry of a batch is found by the hash of its key, displaced or not, and no other key is.
fn are_found(index: &dyn Unique, batch: &Batch, oracle: &HashMap<u64, Vec<u8>>) {
    if index.is_ordered() {
        return;
    }
    assert!(batch.has_homes() || batch.is_empty());
    if !batch.has_homes() {
        return;
    }
    for i in 0..batch.len() {
        let key = key_of(batch.key(i).try_into().unwrap());
        assert_eq!(batch.find(key.hash, key.bytes), Some(i));
    }
    for k in 0..20u64 {
        let absent = (1 << 40) + k;
        assert!(!oracle.contains_key(&absent));
        let bytes = absent.to_be_bytes();
        let key = key_of(&bytes);
        assert_eq!(batch.find(key.hash, key.bytes), None);
    }
}

/// Checks that the index has what the oracle has, by both kinds of scans and by look-ups.
fn check(index: &dyn Unique, oracle: &HashMap<u64, Vec<u8>>) {
    for any_order in [false, true] {
        let mut found = HashMap::new();
        scan(index, any_order, |batch| {
            assert!(any_order && !index.is_ordered() || !batch.unordered);
            are_found(index, batch, oracle);
            for i in 0..batch.len() {
                let before = found.insert(number(batch, i), batch.value(i).to_vec());
                assert!(before.is_none(), "met twice");
            }
        });
        assert!(found == *oracle, "{any_order}");
    }
    for (k, value) in oracle {
        let mut out = Vec::new();
        assert!(index.get(&pin(), key_of(&k.to_be_bytes()), &mut out));
        assert!(out == *value);
    }
    assert_eq!(index.len(), oracle.len());
}

/// Whether what a batch has can be removed at once. Leaves in hash order may have been read in
/// order, because their entries are too many.
fn is_removable(index: &dyn Unique, batch: &Batch) -> bool {
    batch.unordered || index.is_ordered()
}

fn indexes() -> impl Iterator<Item = Box<dyn Unique>> {
    let kinds = [Kind::Hash, Kind::Ordered];
    kinds
        .into_iter()
        .flat_map(|kind| configs().map(|config| make(kind, config)))
}

#[test]
fn what_a_batch_had_is_removed_at_once() {
    for index in indexes() {
        let mut oracle = HashMap::new();
        let (mut removed, mut rounds) = (0, 0);
        for round in 0..if cfg!(miri) { 3 } else { 60u64 } {
            let keys = (0..200 + 20 * (round % 7)).map(|i| mix(round * 31 + i) % 4000);
            fill(&*index, &mut oracle, keys);
            // None, some, or all; of leaves that were read in order nothing can be removed.
            let part = [0, 1, 30, 64][round as usize % 4];
            scan(&*index, true, |batch| {
                let wanted = |&i: &u32| mix(number(batch, i as usize) ^ round) % 64 < part;
                let chosen: Vec<u32> = (0..batch.len() as u32).filter(wanted).collect();
                let Some(&first) = chosen.first() else {
                    return;
                };
                let mut asked = 0;
                let key = key_of(batch.key(first as usize).try_into().unwrap());
                let refused = index.remove_scanned(&pin(), key, (batch, &chosen), &mut || {
                    asked += 1;
                    false
                });
                assert!(!refused);
                let done = index.remove_scanned(&pin(), key, (batch, &chosen), &mut || {
                    asked += 1;
                    true
                });
                assert_eq!(done, is_removable(&*index, batch));
                assert_eq!(asked, 2 * u32::from(done));
                if done {
                    for &i in &chosen {
                        assert!(oracle.remove(&number(batch, i as usize)).is_some());
                    }
                    removed += chosen.len();
                    rounds += 1;
                    // What went is not removed again.
                    assert!(!index.remove_scanned(&pin(), key, (batch, &chosen), &mut || true));
                }
            });
            check(&*index, &oracle);
        }
        assert!(removed > 100 && rounds > 5, "{removed} {rounds}");
    }
}

#[test]
fn nothing_is_removed_from_a_leaf_that_has_changed() {
    for index in indexes() {
        let mut oracle = HashMap::new();
        fill(&*index, &mut oracle, 0..300);
        let mut tried = 0;
        scan(&*index, true, |batch| {
            if batch.len() < 2 || !is_removable(&*index, batch) {
                return;
            }
            let (changed, other) = (number(batch, 0), 1);
            put(&*index, key_of(&changed.to_be_bytes()), &[7; 9]);
            oracle.insert(changed, vec![7; 9]);
            let key = key_of(batch.key(other).try_into().unwrap());
            let mut asked = false;
            let done = index.remove_scanned(&pin(), key, (batch, &[other as u32]), &mut || {
                asked = true;
                true
            });
            assert!(!done && !asked);
            tried += 1;
        });
        assert!(tried > 0);
        check(&*index, &oracle);
    }
}

/// Replacing a leaf by another of the same range gives the new one a version of its own, so that
/// entries that have moved are not mistaken for those that were read.
#[test]
fn nothing_is_removed_from_the_successor_of_a_leaf() {
    for index in indexes() {
        let mut oracle = HashMap::new();
        fill(&*index, &mut oracle, 0..3);
        let mut tried = 0;
        scan(&*index, true, |batch| {
            if batch.is_empty() || !is_removable(&*index, batch) {
                return;
            }
            let key = key_of(batch.key(0).try_into().unwrap());
            let is_refused = || !index.remove_scanned(&pin(), key, (batch, &[0]), &mut || true);
            // The leaf grows, splits, and is merged again. Each new leaf has few changes at first,
            // as the one had that was read.
            for k in 3..200 {
                fill(&*index, &mut oracle, k..k + 1);
                assert!(is_refused(), "after {k} was put");
            }
            for k in 3..200u64 {
                larder_testing::remove(&*index, key_of(&k.to_be_bytes()));
                oracle.remove(&k);
                assert!(is_refused(), "after {k} was removed");
            }
            tried += 1;
        });
        assert!(tried > 0);
        check(&*index, &oracle);
    }
}

#[test]
fn nothing_is_removed_that_was_read_backward() {
    let index = make(Kind::Ordered, configs()[1]);
    let mut oracle = HashMap::new();
    fill(&*index, &mut oracle, 0..20);
    let (guard, mut batch) = (pin(), Batch::default().in_any_order());
    index.scan(&guard, Start::Edge, Direction::Backward, &mut batch);
    assert!(batch.len() > 2);
    let key = key_of(batch.key(0).try_into().unwrap());
    assert!(!index.remove_scanned(&pin(), key, (&batch, &[0, 1]), &mut || true));
    check(&*index, &oracle);
}

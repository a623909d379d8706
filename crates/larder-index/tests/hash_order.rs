//! What the hash order promises about its leaves: how full they are at every size, that sizes of
//! all kinds find their place, that hashes which are all alike still work, and that what comes and
//! goes leaves no waste behind.

use larder_index::{
    pin, seen_after_removal_of, seen_after_removals, unique, unique_with, Batch, Direction, Key,
    KeyRule, LeafConfig, Start, StepEntry, Unique, UniqueKind,
};
use larder_testing::threads::Stop;
use larder_testing::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Rows of two small integers, as tables keep them: a key says in its first byte how long it is.
struct Ints;

impl KeyRule for Ints {
    fn hash(&self, key: &[u8]) -> u64 {
        hash(key, Hashes::Good)
    }
    fn is_self_delimiting(&self) -> bool {
        true
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        1 + usize::from(bytes[0] & 0x7F) * usize::from(bytes[0] < 0x80)
    }
}

fn int(n: u64) -> Vec<u8> {
    if n < 128 {
        return vec![0x80 + n as u8];
    }
    let len = 8 - (n << 1).leading_zeros() as usize / 8;
    [&[len as u8][..], &n.to_le_bytes()[..len]].concat()
}

fn ints() -> Box<dyn Unique> {
    unique(UniqueKind::Hash(Arc::new(Ints)))
}

fn int_key(bytes: &[u8]) -> Key<'_> {
    key(bytes, Hashes::Good)
}

/// Any number may be announced.
#[test]
fn an_absurd_number_is_announced() {
    for now in [0, 1] {
        let index = ints();
        index.expect_keys(now, usize::MAX);
        for i in 0..100 {
            put(&*index, int_key(&int(i)), &int(i));
        }
        assert_eq!(index.len(), 100);
    }
}

/// An index that expects the right number of keys takes hardly more memory in the end than one that
/// expects none. If the number was wrong, it takes a limited amount.
#[test]
fn announced_keys_find_their_room() {
    let fill = |announced: usize, n: u64| {
        let index = ints();
        index.expect_keys(0, announced);
        (0..n).for_each(|i| assert!(put(&*index, int_key(&int(i)), &[vec![16], int(i)].concat())));
        index.expect_keys(0, 0);
        index.memory() as f64
    };
    // How full leaves are depends on how long ago they grew. So each figure is a sum over numbers
    // of keys up to twice as many.
    let sum = |announced: fn(u64) -> u64, n: u64| -> f64 {
        let numbers = (0..8).map(|i| n + n * i / 8);
        numbers.map(|n| fill(announced(n) as usize, n)).sum()
    };
    for n in [500, 5_000, 60_000] {
        let unknown = sum(|_| 0, n);
        let announced = sum(|n| n, n);
        assert!(announced < 1.05 * unknown, "{n}: {announced} {unknown}");
        // Four times as many come as were announced.
        let wrong = sum(|n| n / 4, n);
        assert!(wrong < 1.05 * unknown, "{n}: {wrong} {unknown}");
    }
    // What was announced doesn't come.
    let unknown = fill(0, 100);
    let announced = fill(1_000_000, 100);
    assert!(announced < 8.0 * unknown, "{announced} {unknown}");
}

/// Samples that follow each other have each entry once, until they begin anew; also where some
/// leaves are full, and the ranges beside them empty.
#[test]
fn a_round_of_samples_has_each_entry_once() {
    let (index, guard) = (ints(), pin());
    let all = 30_000;
    (0..all).for_each(|i| assert!(put(&*index, int_key(&int(i)), &[vec![16], int(i)].concat())));
    let mut batch = Batch::default();
    for kept in [u64::MAX, u64::MAX / 16, 0] {
        for i in 0..all {
            let bytes = int(i);
            if int_key(&bytes).hash > kept {
                remove(&*index, int_key(&bytes));
            }
        }
        let (mut point, mut seen) = (0, HashMap::new());
        loop {
            point = index.sample(&guard, point, &mut batch);
            for i in 0..batch.len() {
                *seen.entry(batch.key(i).to_vec()).or_insert(0) += 1;
            }
            if point == 0 {
                break;
            }
        }
        assert_eq!(seen.len(), index.len(), "{kept}");
        assert!(seen.values().all(|&times| times == 1), "{kept}");
    }
}

/// At no size between a thousand rows and a quarter of a million does a row of two small integers
/// take more than 17 bytes, all included.
#[test]
fn rows_of_two_integers_are_small_at_every_size() {
    let index = ints();
    assert!(index.memory() <= 1024, "empty: {}", index.memory());
    let mut worst = (0.0, 0);
    for i in 0..250_000u64 {
        let value = [vec![16], int(i)].concat();
        assert!(put(&*index, int_key(&int(i)), &value));
        if i >= 999 && i % 500 == 499 {
            let a_row = index.memory() as f64 / (i + 1) as f64;
            if a_row > worst.0 {
                worst = (a_row, i + 1);
            }
        }
    }
    assert!(worst.0 <= 17.0, "{worst:?} {:?}", index.stats());
}

/// Sizes around every bound: bodies that just fit in a bucket of some class and those that just
/// don't, lengths of one byte and of two.
#[test]
fn values_of_sizes_around_every_bound_come_back() {
    let sizes: Vec<usize> = (0..600)
        .chain([1000, 1023, 1024, 2047, 2048, 4095, 4096, 40_000])
        .collect();
    for config in configs() {
        let index = make(Kind::Hash, config);
        let value = |n: usize, turn: usize| vec![(n * 7 + turn) as u8; n];
        for turn in 0..3 {
            for (k, _) in sizes.iter().enumerate() {
                // Each key's value changes its size from turn to turn.
                let n = sizes[(k + turn * 131) % sizes.len()];
                put(
                    &*index,
                    key(&k.to_be_bytes(), Hashes::Good),
                    &value(n, turn),
                );
            }
            for (k, _) in sizes.iter().enumerate() {
                let n = sizes[(k + turn * 131) % sizes.len()];
                let mut out = Vec::new();
                assert!(index.get(&pin(), key(&k.to_be_bytes(), Hashes::Good), &mut out));
                assert_eq!(out, value(n, turn), "{k} {n}");
            }
        }
        assert_eq!(index.len(), sizes.len());
        for (k, _) in sizes.iter().enumerate() {
            assert!(remove(&*index, key(&k.to_be_bytes(), Hashes::Good)));
        }
        assert_eq!(index.len(), 0);
        assert!(index.memory() < 40_000, "{}", index.memory());
    }
}

/// Keys of all sizes, the empty one and those of two bytes of length among them.
#[test]
fn keys_of_sizes_around_every_bound_come_back() {
    let index = make(Kind::Hash, LeafConfig::default());
    // Prefix-free: each begins with its own length.
    let bytes = |n: usize| [(n as u16).to_be_bytes().to_vec(), vec![9; n]].concat();
    for n in 0..700 {
        assert!(put(&*index, key(&bytes(n), Hashes::Good), &n.to_be_bytes()));
    }
    let all = scan_unique(&*index, Start::Edge, Direction::Backward);
    assert_eq!(all.len(), 700);
    for (k, v) in all {
        assert_eq!(k, bytes(usize::from_be_bytes(v.try_into().unwrap())));
    }
    let alone = make(Kind::Hash, LeafConfig::default());
    assert!(put(&*alone, key(b"", Hashes::Good), b""));
    assert!(alone.contains(&pin(), key(b"", Hashes::Good)));
    assert_eq!(
        scan_unique(&*alone, Start::Edge, Direction::Forward).len(),
        1
    );
    assert!(remove(&*alone, key(b"", Hashes::Good)));
}

/// A rule that counts how often the index hashes a key. It does so for each entry that it moves to
/// a new leaf, also to one that turns out to be too small.
struct Counting(Arc<AtomicU64>);

impl KeyRule for Counting {
    fn hash(&self, key: &[u8]) -> u64 {
        // Ordering: Relaxed, as only one thread counts.
        self.0.fetch_add(1, Relaxed);
        hash(key, Hashes::Good)
    }
}

/// While an index is filled, an entry is moved to a new leaf three or four times. It would be six
/// to nine times if the halves of a leaf that splits were planned for a third of it each, as most
/// of them would then be filled more than once.
#[test]
fn few_leaves_are_made_in_vain() {
    let n = if cfg!(miri) { 2_000 } else { 20_000u64 };
    for (len, most) in [(0, 3.2), (8, 3.2), (40, 4.1), (120, 4.1)] {
        let count = Arc::new(AtomicU64::new(0));
        let index = unique(UniqueKind::Hash(Arc::new(Counting(Arc::clone(&count)))));
        for i in 0..n {
            put(&*index, int_key(&i.to_be_bytes()), &vec![7; len]);
        }
        let moves = count.load(Relaxed) as f64 / n as f64;
        assert!(moves <= most, "values of {len} bytes: {moves}");
    }
}

/// Thousands of keys with one hash: one leaf that grows, and gives its memory back.
#[test]
fn keys_of_one_hash_are_kept_apart() {
    let index = make_with(Kind::Hash, LeafConfig::default(), Hashes::One);
    let n = 3000u32;
    let small = index.memory();
    for i in 0..n {
        assert!(put(&*index, key(&i.to_be_bytes(), Hashes::One), b"value"));
    }
    assert_eq!(index.stats().leaves, 1);
    let keys: Vec<_> = scan_unique(&*index, Start::Edge, Direction::Forward);
    assert!(keys.len() == n as usize && keys.windows(2).all(|w| w[0].0 < w[1].0));
    for i in 0..n {
        assert!(remove(&*index, key(&i.to_be_bytes(), Hashes::One)));
        assert!(!index.contains(&pin(), key(&i.to_be_bytes(), Hashes::One)));
    }
    assert!(index.memory() <= small + 64, "{}", index.memory());
}

/// Rows of a medium size take at most 1.35 times their bytes (and what tells them apart), on the
/// average over a doubling of the table.
#[test]
fn medium_rows_waste_little() {
    for size in [40usize, 64, 100, 150, 230, 300, 400, 500, 700, 1500] {
        let index = make(Kind::Hash, LeafConfig::default());
        let n = 4000u64;
        let mut ratios = Vec::new();
        for i in 0..n {
            let value = vec![i as u8; size - 8];
            put(&*index, key(&i.to_be_bytes(), Hashes::Good), &value);
            if i > n / 2 && i % 100 == 0 {
                ratios.push(index.memory() as f64 / ((i + 1) * (size as u64 + 3)) as f64);
            }
        }
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        println!("{size}: {mean:.3}");
        assert!(mean <= 1.35, "{size}: {mean} {:?}", index.stats());
    }
}

/// Values change their sizes, keys come and go: the memory stays near the live bytes.
#[test]
fn churn_wastes_little() {
    let index = make(Kind::Hash, LeafConfig::default());
    let mut live: HashMap<u64, usize> = HashMap::new();
    let keys = 20_000;
    let rounds = if cfg!(miri) { 2000 } else { 400_000 };
    for i in 0..rounds {
        let k = mix(i) % keys;
        let size = match mix(i + 7) % 20 {
            0 => 200 + mix(i) as usize % 300,
            1..=4 => 40 + mix(i) as usize % 60,
            _ => mix(i) as usize % 30,
        };
        if mix(i + 3).is_multiple_of(4) {
            assert_eq!(
                remove(&*index, key(&k.to_be_bytes(), Hashes::Good)),
                live.remove(&k).is_some()
            );
        } else {
            put(
                &*index,
                key(&k.to_be_bytes(), Hashes::Good),
                &vec![k as u8; size],
            );
            live.insert(k, size);
        }
        if i > rounds / 4 && i % 10_000 == 0 {
            // A row is its key, its value, and five bytes that any structure would need to tell
            // them apart.
            let bytes: usize = live.values().map(|v| v + 8 + 5).sum();
            let ratio = index.memory() as f64 / bytes as f64;
            assert!(ratio < 1.4, "{ratio} after {i} {:?}", index.stats());
        }
    }
    assert_eq!(index.len(), live.len());
}

/// A scan that wants one entry at a time meets the same entries as one that wants all.
#[test]
fn steps_of_one_and_two_meet_all() {
    for (config, how) in configs()
        .into_iter()
        .flat_map(|c| ALL_HASHES.map(|h| (c, h)))
    {
        let index = make_with(Kind::Hash, config, how);
        for n in 0..400u16 {
            let size = if n % 9 == 0 { 700 } else { usize::from(n % 30) };
            put(&*index, key(&key_bytes(n), how), &vec![n as u8; size]);
        }
        let all = scan_unique(&*index, Start::Edge, Direction::Forward);
        let (guard, mut batch) = (pin(), Batch::default());
        let mut position = Vec::new();
        for want in [1, 2] {
            batch.want = want;
            for (i, (k, _)) in all.iter().enumerate() {
                index.position(key(k, how), &mut position);
                index.scan(
                    &guard,
                    Start::Past(&position),
                    Direction::Forward,
                    &mut batch,
                );
                let next = all.get(i + 1).map(|e| &e.0[..]);
                assert_eq!((!batch.is_empty()).then(|| batch.key(0)), next);
                index.scan(&guard, Start::At(&position), Direction::Forward, &mut batch);
                assert_eq!(batch.key(0), k);
                assert!(batch.len() <= want);
            }
        }
    }
}

/// A table of very many leaves: all are found, and removing all gives all memory back.
#[test]
fn many_leaves_come_and_go() {
    let config = LeafConfig::tiny();
    let index = unique_with(UniqueKind::Hash(Arc::new(Ints)), config);
    let n = if cfg!(miri) { 500 } else { 30_000u64 };
    for i in 0..n {
        assert!(put(&*index, int_key(&int(i)), &int(i)));
    }
    for i in 0..n {
        let mut out = Vec::new();
        assert!(index.get(&pin(), int_key(&int(i)), &mut out));
        assert_eq!(out, int(i));
    }
    assert_eq!(
        scan_unique(&*index, Start::Edge, Direction::Backward).len(),
        n as usize
    );
    for i in 0..n {
        assert!(remove(&*index, int_key(&int(i))), "{i}");
    }
    let stats = index.stats();
    assert!(index.memory() < 4096, "{} {stats:?}", index.memory());
}

/// However many leaves there are, few of them are more than one step from the root, on the way up
/// and on the way down.
#[test]
fn the_root_is_as_wide_as_the_table_is_large() {
    let index = unique_with(UniqueKind::Hash(Arc::new(Ints)), LeafConfig::tiny());
    let n = if cfg!(miri) { 300 } else { 40_000u64 };
    let check = |i: u64| {
        let stats = index.stats();
        assert!(stats.inner_nodes <= 3 + stats.leaves / 2, "{i} {stats:?}");
        assert!(stats.depth <= 3, "{i} {stats:?}");
    };
    for i in 0..n {
        assert!(put(&*index, int_key(&int(i)), &int(i)));
        check(i);
    }
    let full = index.stats();
    assert!(full.inner_nodes <= 3 + full.leaves / 8, "{full:?}");
    for i in 0..n {
        if i % 64 == 0 {
            assert!(index.contains(&pin(), int_key(&int(n - 1))));
            check(i);
        }
        assert!(remove(&*index, int_key(&int(i))), "{i}");
    }
    let stats = index.stats();
    assert!(stats.inner_nodes <= 2, "{stats:?}");
}

/// What a batch says of a leaf that is unchanged is what a scan finds there, however leaves come
/// and go; while nothing happens it says so, and it says nothing of another index.
#[test]
fn what_is_unchanged_is_what_a_scan_finds() {
    const KEYS: u64 = 500;
    let [index, twin] =
        [0, 1].map(|_| unique_with(UniqueKind::Hash(Arc::new(Ints)), LeafConfig::tiny()));
    let scan = |from: &[u8], want: usize| {
        let (guard, mut position, mut batch) = (pin(), Vec::new(), Batch::default());
        index.position(int_key(from), &mut position);
        batch.want = want;
        batch.lend_owned(|batch| {
            index.scan(&guard, Start::At(&position), Direction::Forward, batch);
        });
        batch
    };
    let rows = |batch: &Batch| -> Vec<_> {
        let row = |i| (batch.key(i).to_vec(), batch.value(i).to_vec());
        (0..batch.len()).map(row).collect()
    };
    let (mut kept, mut held, mut changed) = (Vec::new(), 0, 0);
    for i in 0..if cfg!(miri) { 200 } else { 20_000u64 } {
        let k = int(mix(i) % KEYS);
        // Waves: more comes than goes, then more goes.
        let grows = i / 1500 % 2 == 0;
        let comes = mix(i ^ 0xABCD).is_multiple_of(4) != grows;
        for index in [&index, &twin] {
            match comes {
                true => put(&**index, int_key(&k), &int(i)),
                false => remove(&**index, int_key(&k)),
            };
        }
        let batch = scan(&int(mix(i * 3) % KEYS), 1 + (mix(i) % 9) as usize);
        if !batch.is_empty() {
            let seen = batch.seen.expect("this index can tell");
            assert!(index.is_unchanged(&pin(), int_key(batch.key(0)), seen));
            kept.push(batch);
        }
        kept.drain(..kept.len().saturating_sub(40));
        kept.retain(|batch| {
            let seen = batch.seen.expect("this index can tell");
            let says =
                |index: &dyn Unique, at| index.is_unchanged(&pin(), int_key(batch.key(at)), seen);
            assert!((0..batch.len()).all(|at| !says(&*twin, at)));
            let same = says(&*index, 0);
            assert!((0..batch.len()).all(|at| says(&*index, at) == same));
            if same {
                assert_eq!(rows(&scan(batch.key(0), batch.len())), rows(batch));
                held += 1;
            } else {
                changed += 1;
            }
            // Those that are not true any more are asked again, too: they must not become so with
            // other rows.
            true
        });
    }
    assert!(held > 100 && changed > 100, "{held} {changed}");
    assert!(
        cfg!(miri) || index.stats().merges > 50,
        "{:?}",
        index.stats()
    );
}

/// A key and its value.
type Row = (Vec<u8>, Vec<u8>);

/// Whether the key was there, and the next entry after it, or the first of all.
type Next = (bool, Option<Row>);

fn next_by_batch(index: &dyn Unique, from: Option<&[u8]>) -> Next {
    let (guard, mut batch) = (pin(), Batch::default());
    let here = index.step(&guard, from.map(int_key), Direction::Forward, &mut batch);
    assert!(!batch.is_empty() || batch.done);
    let row = (!batch.is_empty()).then(|| (batch.key(0).to_vec(), batch.value(0).to_vec()));
    (here, row)
}

/// By a single attempt. `None` if the entry is in another leaf, or a writer was there.
fn next_at_once(index: &dyn Unique, from: Option<&[u8]>) -> Option<Next> {
    let mut entry = StepEntry::default();
    let stepped = index.try_step(&pin(), from.map(int_key), Direction::Forward, &mut entry)?;
    let row = (stepped.found).then(|| (entry.key().to_vec(), entry.value().to_vec()));
    Some((stepped.is_present, row))
}

/// Both ways say the same while nobody writes.
fn step(index: &dyn Unique, from: Option<&[u8]>) -> Next {
    let next = next_by_batch(index, from);
    if let Some(at_once) = next_at_once(index, from) {
        assert_eq!(at_once, next);
    }
    next
}

/// Steps give what a scan gives: from each key, with rows of all sizes, inside and outside leaves.
#[test]
fn steps_go_the_way_of_a_scan() {
    let rows = if cfg!(miri) { 300 } else { 20_000u64 };
    for size in [0, 20, 100, 300] {
        let index = ints();
        for i in 0..rows {
            let n = mix(i ^ size) % (2 * size + 1);
            put(
                &*index,
                int_key(&int(mix(i) >> 20)),
                &vec![i as u8; n as usize],
            );
        }
        let all = scan_unique(&*index, Start::Edge, Direction::Forward);
        assert_eq!(all.len() as u64, rows);
        assert_eq!(step(&*index, None), (false, all.first().cloned()));
        for (i, (key, _)) in all.iter().enumerate() {
            let next = all.get(i + 1).cloned();
            assert_eq!(step(&*index, Some(key)), (true, next), "{size} {i}");
        }
    }
}

/// Who removes each key after the step from it, or always the first, meets them in order to the
/// last, and leaves nothing behind.
#[test]
fn an_index_is_drained_from_its_front() {
    let rows = if cfg!(miri) { 300 } else { 20_000u64 };
    for from_edge in [false, true] {
        let index = ints();
        let empty = index.memory();
        (0..rows).for_each(|i| assert!(put(&*index, int_key(&int(i)), &int(i))));
        let all = scan_unique(&*index, Start::Edge, Direction::Forward);
        let mut at = step(&*index, None).1;
        for row in &all {
            let (key, _) = at.clone().expect("there are as many steps as rows");
            assert_eq!(at.as_ref(), Some(row));
            let next = (!from_edge).then(|| step(&*index, Some(&key)));
            assert!(remove(&*index, int_key(&key)));
            at = next.unwrap_or_else(|| step(&*index, None)).1;
        }
        assert!(at.is_none() && index.is_empty());
        assert!(index.memory() <= 4 * empty, "{}", index.memory());
    }
}

/// A walk by steps of either kind meets what stays exactly once, while others write on all sides.
#[test]
fn a_walk_among_writers_meets_what_stays_once() {
    const KEYS: u64 = if cfg!(miri) { 60 } else { 3000 };
    let index = ints();
    // Every third key stays.
    (0..KEYS).for_each(|i| assert!(put(&*index, int_key(&int(3 * i)), &int(i))));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        for writer in 1..3 {
            let (index, stop) = (&index, &stop);
            scope.spawn(move || {
                for i in 0.. {
                    // Ordering: Relaxed, a flag to stop by.
                    if stop.load(Relaxed) {
                        break;
                    }
                    let key = int(3 * (mix(i) % KEYS) + writer);
                    match mix(i ^ 0x55).is_multiple_of(2) {
                        true => put(&**index, int_key(&key), &vec![7; (i % 60) as usize]),
                        false => remove(&**index, int_key(&key)),
                    };
                }
            });
        }
        let mut at_once = 0;
        for round in 0..if cfg!(miri) { 2 } else { 40 } {
            let (mut met, mut at) = (Vec::new(), None::<Vec<u8>>);
            loop {
                let next = (round % 2 == 0).then(|| next_at_once(&*index, at.as_deref()));
                at_once += usize::from(matches!(next, Some(Some(_))));
                let next = next.flatten();
                let (_, row) = next.unwrap_or_else(|| next_by_batch(&*index, at.as_deref()));
                let Some((key, value)) = row else {
                    break;
                };
                if value.iter().any(|&byte| byte != 7) {
                    met.push(value);
                }
                at = Some(key);
            }
            let steady = met.len();
            met.sort();
            met.dedup();
            assert_eq!(steady, met.len());
            assert_eq!(met.len() as u64, KEYS);
        }
        assert!(at_once as u64 > KEYS / 2, "{at_once}");
    });
}

/// A walk that removes what it has passed reads each leaf once, however leaves shrink and merge,
/// and whatever is removed from other indexes.
#[test]
fn removals_before_a_key_leave_the_rest_of_a_batch() {
    const KEYS: u64 = 3_000;
    for config in configs() {
        let [index, other] = [0, 1].map(|_| unique_with(UniqueKind::Hash(Arc::new(Ints)), config));
        for i in 0..KEYS {
            put(&*index, int_key(&int(i)), &int(i));
            put(&*other, int_key(&int(i)), &int(i));
        }
        let (guard, mut batch) = (pin(), Batch::default());
        let (mut from, mut removed) = (Vec::new(), 0);
        while !batch.done {
            let start = match removed {
                0 => Start::Edge,
                _ => Start::At(&from),
            };
            batch.lend_owned(|batch| index.scan(&guard, start, Direction::Forward, batch));
            for at in 1..batch.len() {
                removed += 1;
                assert!(remove(&*index, int_key(batch.key(at - 1))));
                let key = int_key(batch.key(at));
                let seen = batch.seen.expect("this index can tell");
                let now = seen_after_removals(key, seen).expect("noted");
                assert!(index.is_unchanged(&guard, key, now), "{at}");
                // What was removed may have been one of the batch.
                assert_eq!(seen_after_removals(int_key(batch.key(at - 1)), seen), None);
                if removed % 16 == 0 {
                    assert!(remove(&*other, int_key(&int(removed))));
                    batch.seen = Some(now);
                }
            }
            from.clone_from(&batch.resume);
        }
        assert!(removed > KEYS / 2 && index.stats().merges > 0, "{removed}");
    }
}

/// Batches of which this thread has removed keys, and others have come and gone, are those that a
/// scan finds, if they are said to be.
#[test]
fn what_removals_have_left_is_what_a_scan_finds() {
    const KEYS: u64 = 300;
    let index = unique_with(UniqueKind::Hash(Arc::new(Ints)), LeafConfig::tiny());
    let rows = |start: Start<'_>, want: usize| {
        let (guard, mut batch) = (pin(), Batch::default());
        batch.want = want;
        batch.lend_owned(|batch| index.scan(&guard, start, Direction::Forward, batch));
        batch
    };
    let (mut held, mut changed, mut gone) = (0, 0, 0);
    for i in 0..if cfg!(miri) { 200 } else { 20_000u64 } {
        if !mix(i).is_multiple_of(4) || i < KEYS {
            let k = int(mix(i * 7) % KEYS);
            put(&*index, int_key(&k), &int(i));
        }
        let mut position = Vec::new();
        index.position(int_key(&int(mix(i * 3) % KEYS)), &mut position);
        let batch = rows(Start::At(&position), 6);
        let Some(mut seen) = batch.seen.filter(|_| batch.len() > 2) else {
            continue;
        };
        // Of the batch, and of what lies around it; sometimes another key comes between.
        for j in 0..mix(i ^ 5) % 4 {
            match mix(i ^ j << 20) % 8 {
                0 => _ = put(&*index, int_key(&int(mix(j ^ i) % KEYS)), &int(i)),
                1..4 => _ = remove(&*index, int_key(&int(mix(j ^ i) % KEYS))),
                k => _ = remove(&*index, int_key(batch.key((k % 3) as usize))),
            }
            if let Some(now) = seen_after_removals(int_key(batch.key(2)), seen) {
                seen = now;
            }
        }
        for at in 0..batch.len() {
            let key = int_key(batch.key(at));
            let now = seen_after_removals(key, batch.seen.unwrap());
            // The entry before this one is known to be removed.
            let before = at.checked_sub(1).map(|before| int_key(batch.key(before)));
            let is_gone =
                |before: &Key<'_>| seen_after_removal_of(*before, batch.seen.unwrap()) == now;
            if let (Some(before), Some(now)) = (before.filter(is_gone), now) {
                if index.is_unchanged(&pin(), key, now) {
                    gone += 1;
                    assert!(!index.contains(&pin(), before));
                }
            }
            let known = [now, (at == 2).then_some(seen)];
            for now in known.into_iter().flatten() {
                if !index.is_unchanged(&pin(), key, now) {
                    changed += 1;
                    continue;
                }
                held += 1;
                index.position(key, &mut position);
                let found = rows(Start::At(&position), batch.len() - at);
                let there: Vec<_> = (0..found.len()).map(|i| found.entry(i)).collect();
                let kept: Vec<_> = (at..batch.len()).map(|i| batch.entry(i)).collect();
                assert_eq!(there, kept);
            }
        }
    }
    assert!(
        held > 100 && changed > 100 && gone > 10,
        "{held} {changed} {gone}"
    );
}

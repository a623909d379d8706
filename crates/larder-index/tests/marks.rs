//! Marks of entries: an index may forget one, and never shows another entry's or an older one.

use larder_index::{
    pin, Batch, Change, Direction, Key, LeafConfig, Preparation, Previous, ReadyMark, Start, Unique,
};
use larder_testing::random::Random;
use larder_testing::{configs, key, key_bytes, make_with, Hashes, Kind, ALL_HASHES};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The keys, and the mark that each entry got last.
struct Marks<'i> {
    index: &'i dyn Unique,
    how: Hashes,
    of: BTreeMap<u16, u64>,
    /// The mark that writes set.
    newest: u64,
    /// How many writes have found the newest mark, and how many could have.
    found: u64,
    set: u64,
}

impl Marks<'_> {
    /// A write has found this mark under a key. Returns the mark that it leaves there.
    fn see(&mut self, n: u16, mark: u64) -> u64 {
        let expected = self.of.get(&n).copied().unwrap_or(0);
        assert!(mark == 0 || mark == expected, "{n}: {mark}, not {expected}");
        if expected == self.newest {
            self.set += 1;
            self.found += u64::from(mark == expected);
        }
        self.newest
    }

    fn put(&mut self, n: u16, value: &[u8], refuses: bool) {
        let bytes = key_bytes(n);
        let (hashed, index) = (key(&bytes, self.how), self.index);
        let is_there = self.of.contains_key(&n);
        let mut predicate = |old: Option<&[u8]>| {
            assert_eq!(old.is_some(), is_there);
            !refuses
        };
        let mut preparation = Preparation {
            ready: ReadyMark::none(),
            prepare: &mut |_, mark| *mark = self.see(n, *mark),
        };
        let was = index.put_marked(&pin(), hashed, value, &mut predicate, &mut preparation);
        assert_eq!(was == Previous::Refused, refuses);
        if !refuses {
            self.of.insert(n, self.newest);
        }
    }

    fn update(&mut self, n: u16, value: Option<&[u8]>) {
        let bytes = key_bytes(n);
        let (hashed, index) = (key(&bytes, self.how), self.index);
        index.update_marked(&pin(), hashed, &mut |_, scratch, mark| {
            *mark = self.see(n, *mark);
            match value {
                Some(value) => {
                    scratch.extend_from_slice(value);
                    Change::Put
                }
                None => Change::Remove,
            }
        });
        match value {
            Some(_) => self.of.insert(n, self.newest),
            None => self.of.remove(&n),
        };
    }

    fn remove(&mut self, n: u16) {
        let bytes = key_bytes(n);
        let (hashed, index) = (key(&bytes, self.how), self.index);
        index.remove_marked(&pin(), hashed, &mut |_, mark| {
            self.see(n, mark);
            true
        });
        self.of.remove(&n);
    }

    /// Removes some entries of a leaf at once.
    fn remove_some(&mut self, start: u64, random: &mut Random) {
        let (guard, mut batch) = (pin(), Batch::default().in_any_order());
        let mut position = Vec::new();
        let bytes = key_bytes(start as u16);
        let from = match self.index.is_ordered() {
            true => key(&bytes, self.how),
            false => Key {
                bytes: &[],
                hash: start,
            },
        };
        self.index.position(from, &mut position);
        let start = Start::At(&position);
        self.index
            .scan(&guard, start, Direction::Forward, &mut batch);
        let chosen: Vec<u32> = (0..batch.len() as u32)
            .filter(|_| random.below(4) == 0)
            .collect();
        let Some(&first) = chosen.first() else {
            return;
        };
        let keys = |&i: &u32| (0..=u16::MAX).find(|&n| key_bytes(n) == batch.key(i as usize));
        let bytes = batch.key(first as usize);
        let done =
            self.index
                .remove_scanned(&pin(), key(bytes, self.how), (&batch, &chosen), &mut || {
                    true
                });
        if done {
            for n in chosen.iter().filter_map(keys) {
                self.of.remove(&n);
            }
        }
    }
}

/// Random writes with marks and without, of values of different lengths. Returns how many writes
/// have found the newest mark, of those that could have.
fn run(index: &dyn Unique, how: Hashes, keys: u16, steps: u64, seed: u64) -> (u64, u64) {
    let mut random = Random(seed + 1);
    let mut marks = Marks {
        index,
        how,
        of: BTreeMap::new(),
        newest: 1,
        found: 0,
        set: 0,
    };
    for step in 0..steps {
        let n = random.below(u64::from(keys)) as u16;
        let len = match random.below(16) {
            0 => random.below(300),
            1..4 => random.below(12),
            _ => 4,
        };
        let value = vec![step as u8; len as usize];
        match random.below(64) {
            0..40 => marks.put(n, &value, false),
            40..42 => marks.put(n, &value, true),
            42..48 => marks.update(n, Some(&value)),
            48..50 => marks.update(n, None),
            50..55 => marks.remove(n),
            55..60 => {
                // A write without a mark changes none.
                let bytes = key_bytes(n);
                larder_testing::put(index, key(&bytes, how), &value);
                marks.of.entry(n).or_insert(0);
            }
            60 => {
                let start = random.below(u64::MAX);
                marks.remove_some(start, &mut random);
            }
            61 if step % 8 == 0 => marks.newest += 1,
            _ => {}
        }
    }
    (marks.found, marks.set)
}

#[test]
fn a_mark_is_that_of_its_entry() {
    let steps = if cfg!(miri) { 300 } else { 30_000 };
    for (seed, how) in ALL_HASHES.into_iter().enumerate() {
        for config in configs() {
            for keys in [6, 60, 600] {
                run(
                    &*make_with(Kind::Hash, config, how),
                    how,
                    keys,
                    steps,
                    seed as u64,
                );
            }
        }
    }
    for config in configs() {
        for keys in [6, 60, 600] {
            let index = make_with(Kind::Ordered, config, Hashes::Good);
            run(&*index, Hashes::Good, keys, steps, u64::from(keys));
        }
    }
}

/// If nothing but values of the same length are written, nearly all marks are found.
#[test]
fn marks_are_kept() {
    for kind in [Kind::Hash, Kind::Ordered] {
        let index = make_with(kind, LeafConfig::default(), Hashes::Good);
        let mut marks = Marks {
            index: &*index,
            how: Hashes::Good,
            of: BTreeMap::new(),
            newest: 0,
            found: 0,
            set: 0,
        };
        let keys = if cfg!(miri) { 100 } else { 3000 };
        (0..keys).for_each(|n| marks.put(n, b"1234", false));
        (marks.found, marks.set) = (0, 0);
        for mark in 1..20 {
            // Also after the last generation of marks.
            marks.newest = mark;
            (0..keys).for_each(|n| marks.put(n, b"5678", false));
            assert_eq!(marks.set, 0, "no entry has the mark yet");
            (0..keys).for_each(|n| marks.update(n, Some(b"9012")));
            let (found, set) = (marks.found, marks.set);
            assert_eq!(set, u64::from(keys));
            assert!(found * 100 >= set * 85, "{kind:?}: {found} of {set}");
            (marks.found, marks.set) = (0, 0);
        }
    }
}

/// In key order, marks are also kept when leaves are compacted, grow and split.
#[test]
fn marks_outlast_the_leaves_of_a_tree() {
    let index = make_with(Kind::Ordered, LeafConfig::default(), Hashes::Good);
    let mut marks = Marks {
        index: &*index,
        how: Hashes::Good,
        of: BTreeMap::new(),
        newest: 1,
        found: 0,
        set: 0,
    };
    let (keys, rounds) = if cfg!(miri) { (60, 2) } else { (3000, 10) };
    (0..keys).for_each(|n| marks.put(n, b"1234", false));
    (0..keys).for_each(|n| marks.put(n, b"1234", false));
    (marks.found, marks.set) = (0, 0);
    for round in 0..rounds {
        for n in 0..keys {
            let len = (n * 7 + round * 5) % 40;
            marks.put(n, &vec![0; usize::from(len)], false);
        }
    }
    let (found, set) = (marks.found, marks.set);
    assert_eq!(set, u64::from(rounds * keys));
    assert!(found * 100 >= set * 95, "{found} of {set}");
}

/// A put calls `prepare` only of an entry that isn't ready, and not if it is refused.
#[test]
fn a_ready_entry_is_not_prepared() {
    for kind in [Kind::Hash, Kind::Ordered] {
        let index = make_with(kind, LeafConfig::default(), Hashes::Good);
        let (newest, holds) = (AtomicU64::new(7), AtomicUsize::new(0));
        let put = |n, puts: bool| {
            let (bytes, mut prepared) = (key_bytes(n), None);
            let mut preparation = Preparation {
                ready: ReadyMark::new(&newest, &holds),
                prepare: &mut |_, mark| {
                    prepared = Some(*mark);
                    *mark = 7;
                },
            };
            let hashed = key(&bytes, Hashes::Good);
            index.put_marked(&pin(), hashed, b"1234", &mut |_| puts, &mut preparation);
            prepared
        };
        // It is after the others in key order, so that none of them is appended.
        put(3, true);
        assert_eq!(put(1, false), None, "{kind:?}: it is refused");
        assert_eq!(put(1, true), Some(0), "{kind:?}: it has no mark yet");
        // The insert may have replaced the leaf, and forgotten the mark.
        put(1, true);
        assert_eq!(put(1, true), None, "{kind:?}: it is ready");
        holds.store(1, Ordering::SeqCst);
        assert_eq!(
            put(1, true),
            Some(7),
            "{kind:?}: it has the mark, and is held"
        );
        holds.store(0, Ordering::SeqCst);
        newest.store(8, Ordering::SeqCst);
        assert_eq!(put(1, true), Some(7), "{kind:?}: another mark is awaited");
        newest.store(0, Ordering::SeqCst);
        assert_eq!(put(2, true), Some(0), "{kind:?}: 0 is no mark");
    }
}

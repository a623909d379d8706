//! Threads that use one index at once, and invariants checked meanwhile.

use crate::registers::number;
use crate::*;
use larder_index::{pin, Batch, Change, Direction, Multi, Start, Unique};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

// Ordering, for all of this file: Relaxed. Flags to stop by, and counts that are read after the
// threads.

/// Sets the flag when it is dropped, so that other threads stop even if a check panics.
#[derive(Debug)]
pub struct Stop<'s>(pub &'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Runs `look` while a change of a key is in progress: its closure has been called, and returns a
/// while later. A value that it puts is eight bytes.
pub fn beside_a_change(index: &dyn Unique, k: u64, change: Change, look: impl FnOnce()) {
    const A_WHILE: Duration = Duration::from_millis(2);
    // Both threads come here: the change is in progress, and its closure hasn't returned.
    let met = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            index.update(
                &pin(),
                key(&k.to_be_bytes(), Hashes::Good),
                &mut |_, new| {
                    new.extend_from_slice(&[2; 8]);
                    met.wait();
                    thread::sleep(A_WHILE);
                    change
                },
            );
        });
        met.wait();
        look();
    });
}

/// Counters under few keys, while other keys come and go around them: no addition is lost, and each
/// closure is called once.
pub fn no_update_is_lost(index: &dyn Unique, name: &str, rounds: u64) {
    // Few counters, so that threads often update the same one.
    thread::scope(|scope| {
        for t in 0..4u64 {
            scope.spawn(move || {
                for i in 0..rounds {
                    let counter = (mix(t * rounds + i) % 20).to_be_bytes();
                    let mut calls = 0;
                    // Read and write in one update, which is atomic if no addition is lost.
                    index.update(&pin(), key(&counter, Hashes::Good), &mut |old, scratch| {
                        let next = old.map_or(0, number) + 1;
                        scratch.extend_from_slice(&next.to_be_bytes());
                        calls += 1;
                        Change::Put
                    });
                    assert_eq!(calls, 1);
                    // A neighbour comes, and one goes.
                    let near = ((1 << 32) | (t << 16) | ((i / 2) % 200)).to_be_bytes();
                    match i % 2 {
                        0 => put(index, key(&near, Hashes::Good), b"neighbour"),
                        _ => remove(index, key(&near, Hashes::Good)),
                    };
                }
            });
        }
    });
    // Each round of each thread has added one.
    let sum: u64 = (0..20u64)
        .map(|counter| {
            let mut out = Vec::new();
            index.get(&pin(), key(&counter.to_be_bytes(), Hashes::Good), &mut out);
            number(&out)
        })
        .sum();
    assert_eq!(sum, 4 * rounds, "{name}");
    // The count of entries agrees with a complete scan, although it is kept by differences.
    let all = scan_unique(index, Start::Edge, DIRECTIONS[0]);
    assert_eq!(index.len(), all.len(), "{name}");
}

/// A value that says whether it is whole: its length and its bytes follow from its seed.
fn whole(seed: u64) -> Vec<u8> {
    // Short, long and very long values, which indexes store in different ways.
    let len = match seed % 13 {
        0 => 3000,
        1..=3 => 300,
        _ => 8 + seed as usize % 40,
    };
    let mut value = seed.to_be_bytes().to_vec();
    value.extend((8..len).map(|i| (mix(seed) >> (i % 8)) as u8));
    value
}

fn assert_whole(value: &[u8]) {
    assert_eq!(value, whole(number(&value[..8])));
}

/// Writers replace values of changing sizes; readers never see half of one.
pub fn no_value_is_torn(index: &dyn Unique, rounds: u64) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for t in 0..2u64 {
            let stop = &stop;
            scope.spawn(move || {
                for i in 0..rounds {
                    let seed = mix(t << 40 | i);
                    // Few keys, so that readers meet writers.
                    let k = ((seed >> 7) % 64).to_be_bytes();
                    // A fifth of the operations are removals, so that values also come and go.
                    match seed % 5 {
                        0 => remove(index, key(&k, Hashes::Good)),
                        _ => put(index, key(&k, Hashes::Good), &whole(seed)),
                    };
                }
                stop.store(true, Relaxed);
            });
        }
        scope.spawn(|| {
            // Lookups and scans read without a lock, and are both checked.
            let mut out = Vec::new();
            let mut i = 0u64;
            while !stop.load(Relaxed) {
                i += 1;
                out.clear();
                let k = (mix(i) % 64).to_be_bytes();
                if index.get(&pin(), key(&k, Hashes::Good), &mut out) {
                    assert_whole(&out);
                }
                let direction = DIRECTIONS[(i % 2) as usize];
                let (guard, mut batch) = (pin(), Batch::default());
                index.scan(&guard, Start::Edge, direction, &mut batch);
                (0..batch.len()).for_each(|i| assert_whole(batch.value(i)));
            }
        });
    });
}

/// A scan that runs while keys come and go sees each lasting key once, in order, and no key twice.
fn check_scan(index: &dyn Unique, direction: Direction, lasting: usize) {
    let mut last: Option<Vec<u8>> = None;
    let mut position = Vec::new();
    let mut seen = 0;
    for (k, value) in scan_unique(index, Start::Edge, direction) {
        // Compare positions, not keys, since the order of scans is that of positions.
        index.position(key(&k, Hashes::Good), &mut position);
        if let Some(last) = &last {
            match direction {
                // Strictly ascending, or descending: no key is seen twice.
                Direction::Forward => assert!(*last < position),
                Direction::Backward => assert!(*last > position),
            }
        }
        last = Some(position.clone());
        // Keys that come and go may be seen or not. Those that last must be seen.
        seen += usize::from(value == b"lasts");
    }
    assert_eq!(seen, lasting);
}

/// Scans both ways while keys come and go in waves, so that leaves split and merge, miss nothing
/// that lasts and repeat nothing.
pub fn scans_miss_nothing(index: &dyn Unique, waves: u64) {
    // A lasting key in each ten. The keys between are those of the two threads.
    let lasting = 300usize;
    for i in 0..lasting as u64 {
        put(index, key(&(i * 10).to_be_bytes(), Hashes::Good), b"lasts");
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for t in 1..3u64 {
            let stop = &stop;
            scope.spawn(move || {
                for round in 0..waves {
                    // Many come, then all go. Each thread has three of ten keys.
                    let near = |i: u64| (i / 3 * 10 + t * 3 + i % 3).to_be_bytes();
                    for i in 0..900 {
                        let k = near((i * 7 + round) % 900);
                        put(index, key(&k, Hashes::Good), b"comes and goes");
                    }
                    for i in 0..900 {
                        remove(index, key(&near(i), Hashes::Good));
                    }
                }
                stop.store(true, Relaxed);
            });
        }
        for direction in DIRECTIONS {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    check_scan(index, direction, lasting);
                }
            });
        }
    });
    // Once more, when nothing changes any more.
    for direction in DIRECTIONS {
        check_scan(index, direction, lasting);
    }
}

/// Pushes one object of each parity, with equal marks, after it has made room if there are many:
/// their numbers stay equal.
fn push_a_pair(index: &dyn Multi, k: &[u8], seed: u64) {
    index.update(&pin(), key(k, Hashes::Few), &mut |objects| {
        // Keep the lists short. Objects are removed by their marks, which both objects of a pair
        // have, so that pairs go together.
        if objects.count() >= 60 {
            objects.remove_if(&mut |v| v[1] % 3 == (seed % 3) as u8);
        }
        let mark = (seed >> 20) as u8;
        // Both objects of a pair are pushed in one update.
        for parity in 0..2u8 {
            let tail = vec![9; (seed % 30) as usize];
            objects.push(&[vec![parity, mark], tail].concat());
        }
    });
}

/// Several values are pushed and removed together: a reader sees all of a change or nothing.
pub fn a_bag_changes_at_once(index: &dyn Multi, rounds: u64) {
    let keys = 6u64;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for t in 0..2u64 {
            let stop = &stop;
            scope.spawn(move || {
                for i in 0..rounds {
                    let seed = mix(t << 32 | i);
                    push_a_pair(index, &(seed % keys).to_be_bytes(), seed);
                }
                stop.store(true, Relaxed);
            });
        }
        scope.spawn(|| {
            let mut i = 0u64;
            while !stop.load(Relaxed) {
                i += 1;
                let k = (mix(i) % keys).to_be_bytes();
                // Equal numbers of both parities, unless a reader sees half of an update.
                let mut parity = [0usize; 2];
                let n = index.get(&pin(), key(&k, Hashes::Few), &mut |v| {
                    parity[usize::from(v[0])] += 1;
                });
                assert_eq!(n, parity[0] + parity[1]);
                assert_eq!(parity[0], parity[1], "half a change was seen");
            }
        });
    });
    let all = scan_multi(index, Start::Edge, DIRECTIONS[1]);
    assert_eq!(index.len(), all.len());
}

/// Threads that append `n` keys each and threads that take from the front, as queues do: each is
/// taken once.
pub fn queues(index: &dyn Unique, name: &str, n: u64) {
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        // Two threads append at the end, in turn.
        for t in 0..2u64 {
            scope.spawn(move || {
                for i in 0..n {
                    // Short enough for the shortest way to the end.
                    let k = ((i * 2 + t) as u32).to_be_bytes();
                    index.put(&pin(), key(&k, Hashes::Good), b"x", &mut |_| true);
                }
            });
        }
        for _ in 0..2 {
            // Two threads take from the front. Both see the same entries, and race for each.
            scope.spawn(|| {
                while taken.load(Relaxed) < 2 * n {
                    let (guard, mut batch) = (pin(), Batch::default());
                    index.scan(&guard, Start::Edge, Direction::Forward, &mut batch);
                    for i in 0..batch.len() {
                        // A removal says whether it removed something. So each entry counts once.
                        if remove(index, key(batch.key(i), Hashes::Good)) {
                            taken.fetch_add(1, Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_eq!((index.len(), taken.load(Relaxed)), (0, 2 * n), "{name}");
}

/// What threads append: who, how long, which of its own under this key, and bytes that follow from
/// both.
fn piece(thread: u64, number: u32) -> Vec<u8> {
    let len = 6 + (mix(thread << 32 | u64::from(number)) % 40) as usize;
    let mut piece = vec![thread as u8, len as u8];
    piece.extend(number.to_be_bytes());
    piece.resize(len, thread as u8 ^ number as u8);
    piece
}

/// The last number of each thread in a value, whose pieces are whole and of each thread in order,
/// none missing.
fn last_pieces<const N: usize>(value: &[u8]) -> [Option<u32>; N] {
    let mut last = [None; N];
    let mut rest = value;
    while !rest.is_empty() {
        // A piece says how long it is, who wrote it, and which of the writer's pieces it is.
        let (whole, after) = rest.split_at(usize::from(rest[1]));
        let (thread, number) = (usize::from(whole[0]), &whole[2..6]);
        let number = u32::from_be_bytes(number.try_into().expect("four bytes"));
        // Its content follows from these two, so that a torn piece is recognised.
        assert_eq!(whole, piece(thread as u64, number), "a piece is torn");
        if let Some(last) = last[thread] {
            // The pieces of a thread are consecutive.
            assert_eq!(last + 1, number, "thread {thread}: a piece is missing");
        }
        last[thread] = Some(number);
        rest = after;
    }
    last
}

/// Threads append to the same few values, which grow through all sizes and begin anew when they are
/// large: no piece is lost, a reader sees whole pieces in order, and none of before what it has
/// seen.
pub fn nothing_appended_is_lost(index: &dyn Unique, name: &str, rounds: u32) {
    const WRITERS: usize = 3;
    const KEYS: u64 = 5;
    const LARGE: usize = 4000;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = |t: u64| {
            for i in 0..rounds * KEYS as u32 {
                let k = (u64::from(i) % KEYS).to_be_bytes();
                index.update(&pin(), key(&k, Hashes::Good), &mut |old, scratch| {
                    // A large value begins anew, so that it also becomes short again.
                    let old = old.filter(|old| old.len() < LARGE);
                    scratch.extend_from_slice(old.unwrap_or_default());
                    scratch.extend(piece(t, i / KEYS as u32));
                    Change::Put
                });
            }
        };
        let writers: Vec<_> = (0..WRITERS as u64)
            .map(|t| scope.spawn(move || writer(t)))
            .collect();
        scope.spawn(|| {
            let mut seen = [[None; WRITERS]; KEYS as usize];
            let mut out = Vec::new();
            while !stop.load(Relaxed) {
                for k in 0..KEYS {
                    out.clear();
                    index.get(&pin(), key(&k.to_be_bytes(), Hashes::Good), &mut out);
                    // What a reader sees never goes back: no update is undone.
                    let now = last_pieces::<WRITERS>(&out);
                    for (seen, now) in seen[k as usize].iter_mut().zip(now) {
                        assert!(now.is_none() || now >= *seen, "{name}: {now:?} < {seen:?}");
                        *seen = (*seen).max(now);
                    }
                }
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, Relaxed);
        assert!(ended.iter().all(Result::is_ok), "{name}: a writer failed");
    });
    for k in 0..KEYS {
        let mut out = Vec::new();
        index.get(&pin(), key(&k.to_be_bytes(), Hashes::Good), &mut out);
        let last = last_pieces::<WRITERS>(&out);
        // Who appended last is there; the others' last may have gone with a value that was large.
        let ends = |last: &Option<u32>| last.is_none() || *last == Some(rounds - 1);
        assert!(
            last.iter().all(ends) && last.iter().any(Option::is_some),
            "{name}: {last:?}"
        );
    }
}

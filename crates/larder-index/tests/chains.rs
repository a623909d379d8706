//! Chains: what they do that other indexes don't.

use larder_index::{pin, Batch, Chains, Change, Container, Direction, Hint, Start, Unique};
use larder_testing::{key, mix, scan_unique, Hashes, DIRECTIONS};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

fn value(k: u32, turn: u32) -> Vec<u8> {
    // Most are in slabs; some are too large for one.
    let len = if k.is_multiple_of(37) {
        700
    } else {
        k as usize % 40
    };
    let mut value = vec![k as u8; len];
    value.extend_from_slice(&turn.to_be_bytes());
    value
}

fn get(index: &Chains, k: u32) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let found = index.get(&pin(), key(&k.to_be_bytes(), Hashes::Good), &mut out);
    found.then_some(out)
}

fn replace(index: &Chains, k: u32, turn: u32) {
    let bytes = k.to_be_bytes();
    assert!(
        index.update(&pin(), key(&bytes, Hashes::Good), &mut |old, new| {
            assert!(old.is_some(), "{k}");
            new.extend_from_slice(&value(k, turn));
            Change::Put
        })
    );
}

/// Keys come through several generations of heads, are replaced, and are all freed.
#[test]
fn keys_stay_in_their_generation() {
    let n = if cfg!(miri) { 400 } else { 60_000u32 };
    for index in [Chains::tiny(), Chains::new(0), Chains::new(1 << 20)] {
        let empty = index.memory();
        for k in 0..n {
            let bytes = k.to_be_bytes();
            let key = key(&bytes, Hashes::Good);
            assert_eq!(get(&index, k), None);
            index.put_absent(&pin(), key, &value(k, 0), &Hint::default());
            assert!(index.may_have(key.hash));
        }
        for k in (0..n).step_by(3) {
            replace(&index, k, 1);
            replace(&index, k, 2);
        }
        index.flush_postponed(&pin());
        let turn = |k| if k % 3 == 0 { 2 } else { 0 };
        assert!((0..n).all(|k| get(&index, k) == Some(value(k, turn(k)))));
        assert_eq!(index.len(), n as usize);
        let all = scan_unique(&index, Start::Edge, Direction::Forward);
        let mut backward = scan_unique(&index, Start::Edge, Direction::Backward);
        backward.reverse();
        assert_eq!(all, backward);
        let place = |bytes: &[u8]| {
            let mut position = Vec::new();
            index.position(key(bytes, Hashes::Good), &mut position);
            position
        };
        assert!(all
            .windows(2)
            .all(|two| place(&two[0].0) < place(&two[1].0)));
        assert_eq!(all.len(), n as usize);
        let full = index.memory();
        assert!(full > empty + n as usize * 40, "{full}");
        let mut freed = 0;
        while !index.free_some(&pin(), 64, &mut |_| freed += 1) {}
        assert_eq!((freed, index.len()), (n as usize, 0));
        assert!(index.memory() < full);
    }
}

/// A scan begins and ends where it shall, in both directions.
#[test]
fn scans_end_at_until() {
    let index = Chains::tiny();
    let n = if cfg!(miri) { 200 } else { 3000u32 };
    for k in 0..n {
        index.put_absent(
            &pin(),
            key(&k.to_be_bytes(), Hashes::Good),
            b"value",
            &Hint::default(),
        );
    }
    let all = scan_unique(&index, Start::Edge, Direction::Forward);
    let place = |i: usize| {
        let mut position = Vec::new();
        index.position(key(&all[i].0, Hashes::Good), &mut position);
        position
    };
    for round in 0..200 {
        let random = |turn: u64| mix(round * 2 + turn) as usize % all.len();
        let (low, high) = (random(0).min(random(1)), random(0).max(random(1)));
        for direction in DIRECTIONS {
            let (from, to) = match direction {
                Direction::Forward => (place(low), place(high)),
                Direction::Backward => (place(high), place(low)),
            };
            let guard = pin();
            let mut batch = Batch::default()
                .with_until(Bound::Included(to.clone()))
                .with_want(1 + round as usize % 70);
            let mut start = from;
            let mut found = Vec::new();
            loop {
                index.scan(&guard, Start::At(&start), direction, &mut batch);
                found.extend((0..batch.len()).map(|i| batch.key(i).to_vec()));
                if batch.done {
                    break;
                }
                start.clone_from(&batch.resume);
                if direction == Direction::Backward {
                    // As `Start::Past`: no entry is at the position of a resume.
                    assert!(!batch.resume.is_empty());
                }
            }
            let mut expect: Vec<_> = all[low..=high].iter().map(|(k, _)| k.clone()).collect();
            if direction == Direction::Backward {
                expect.reverse();
            }
            // There may be some entries after the end.
            assert_eq!(found[..expect.len()], expect, "{low} {high} {direction:?}");
        }
    }
}

/// Threads add keys and replace others', while readers find each key that is there.
#[test]
fn readers_find_what_is_there() {
    const THREADS: u32 = 3;
    let n = if cfg!(miri) { 60 } else { 30_000u32 };
    let index = Chains::tiny();
    for k in 0..n {
        index.put_absent(
            &pin(),
            key(&k.to_be_bytes(), Hashes::Good),
            &value(k, 0),
            &Hint::default(),
        );
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let index = &index;
                scope.spawn(move || {
                    for i in 0..n {
                        let k = n + i * THREADS + thread;
                        let bytes = k.to_be_bytes();
                        index.put_absent(
                            &pin(),
                            key(&bytes, Hashes::Good),
                            &value(k, 0),
                            &Hint::default(),
                        );
                        // One of the keys that this thread alone replaces.
                        let other = mix(u64::from(i)) as u32 % n / THREADS * THREADS + thread;
                        if other < n {
                            replace(index, other, i);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut round = 0;
            while !over.load(Ordering::Relaxed) {
                for i in 0..100 {
                    let k = mix(round * 100 + i) as u32 % n;
                    let found = get(&index, k).expect("it was there before");
                    assert_eq!(found.len(), value(k, 0).len());
                }
                if round % 64 == 0 {
                    let mut all = scan_unique(&index, Start::Edge, Direction::Forward);
                    all.retain(|(k, _)| u32::from_be_bytes(k[..].try_into().unwrap()) < n);
                    assert_eq!(all.len(), n as usize);
                }
                round += 1;
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(index.len(), (n + n * THREADS) as usize);
    assert!((n..n + n * THREADS).all(|k| get(&index, k) == Some(value(k, 0))));
}

/// A walk over a range of hashes has what a scan of it has, whatever the generations are.
#[test]
fn a_walk_has_what_a_scan_has() {
    for index in [Chains::tiny(), Chains::new(0), Chains::new(1 << 20)] {
        let n = if cfg!(miri) { 100 } else { 5_000u32 };
        for k in 0..n {
            let bytes = k.to_be_bytes();
            let key = key(&bytes, Hashes::Good);
            index.put_absent(&pin(), key, &value(k, 0), &Hint::default());
        }
        let (all, guard) = (scan_unique(&index, Start::Edge, Direction::Forward), pin());
        // The positions at both ends: hashes alone, or with a key.
        let position = |i: usize, len: usize| {
            let mut position = Vec::new();
            index.position(key(&all[i].0, Hashes::Good), &mut position);
            position.truncate(len);
            position
        };
        for turn in 0..50 {
            let [a, b] = [mix(turn), mix(turn + 99)].map(|n| n as usize % all.len());
            let (from, to) = (a.min(b), a.max(b));
            let (first, last) = (position(from, 6), position(to, 10));
            let mut walked = Vec::new();
            let whole = index.each_between(
                &guard,
                Some(&first),
                Some(&last),
                &mut |hash, bytes, value| {
                    assert_eq!(hash, key(bytes, Hashes::Good).hash);
                    walked.push((hash, bytes.to_vec(), value.to_vec()));
                    true
                },
            );
            assert!(whole);
            walked.sort();
            let walked: Vec<_> = walked.into_iter().map(|(_, k, v)| (k, v)).collect();
            assert!(walked == all[from..=to], "{from} to {to}");
        }
        let mut walked = 0;
        let mut count = |_: u64, _: &[u8], _: &[u8]| {
            walked += 1;
            walked < 10
        };
        assert!(!index.each_between(&guard, None, None, &mut count));
        assert_eq!(walked, 10);
    }
}

//! Typed tables in the hands of several threads.

use larder::api::{Builder, Event, FeedOptions, Index};
use larder::prelude::*;
use larder::typed::{Order, TypedSnapshot};
use larder::Error;
use larder_testing::environment::times;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const THREADS: u64 = 4;

/// No update is lost: of values in their rows, and of values outside of them.
#[test]
fn counters_lose_nothing() -> Result<(), Error> {
    let larder = Larder::new();
    count_up(&larder.typed("counters")?)?;
    count_up(&larder.typed_hash("hashed counters")?)
}

fn count_up<O: Order>(table: &Typed<u64, (u64, String), O>) -> Result<(), Error> {
    let rounds = times(3_000) as u64;
    let pad = |n: u64| "x".repeat(if n.is_multiple_of(3) { 200 } else { 3 });
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let pad = &pad;
            scope.spawn(move || {
                for i in 0..rounds {
                    let key = (i + thread) % 3;
                    let counted = match i % 3 {
                        0 => table.compute(&key, |old| {
                            let n = old.map_or(0, |(n, _)| n) + 1;
                            Some((n, pad(n)))
                        }),
                        1 => table
                            .entry(key)
                            .and_modify(|value| *value = (value.0 + 1, pad(value.0 + 1)))
                            .or_insert((1, pad(1)))
                            .map(Some),
                        _ => loop {
                            let old = table.get(&key).expect("read");
                            let n = old.as_ref().map_or(0, |(n, _)| *n) + 1;
                            let new = (n, pad(n));
                            let put = table.compare_exchange(&key, old.as_ref(), Some(&new));
                            if put.expect("compared").is_ok() {
                                break Ok(Some(new));
                            }
                        },
                    };
                    let (n, text) = counted.expect("counted").expect("a value");
                    assert_eq!(text, pad(n));
                }
            });
        }
    });
    let sum: u64 = (0..3)
        .map(|key| table.get(&key).map(|v| v.map_or(0, |v| v.0)))
        .sum::<Result<_, _>>()?;
    assert_eq!(sum, THREADS * rounds);
    Ok(())
}

/// Of counters that threads count up in several ways while others come and go beside them, no
/// update is lost, whatever follows the table: an index, a feed, bounds.
#[test]
fn counters_lose_nothing_whatever_follows_them() -> Result<(), Error> {
    count_up_beside_others(Builder::typed)?;
    count_up_beside_others(Builder::typed_hash)
}

/// Counters, under the keys 0, 1000 and so on.
const COUNTERS: u64 = 4;

/// Counts a counter up. Counters lie between rows that this thread inserts, replaces and removes.
fn count_one_up<O: Order>(table: &Typed<u64, u64, O>, thread: u64, i: u64) {
    let key = 1000 * ((i + thread) % COUNTERS);
    let counted = match i % 2 {
        0 => table.compute(&key, |n| Some(n.unwrap_or(0) + 1)),
        _ => {
            let entry = table.entry(key).and_modify(|n| *n += 1);
            entry.or_insert(1).map(Some)
        }
    };
    assert!(counted.expect("counted").is_some_and(|n| n > 0));
    let beside = key + 1 + 10 * (i % 90) + thread;
    table.insert(beside, 1 << (i % 60)).expect("inserted");
    if i.is_multiple_of(3) {
        let gone = table.compute(&beside, |_| None).expect("removed");
        assert_eq!(gone, None);
    }
}

fn count_up_beside_others<O: Order>(
    make: impl Fn(Builder) -> Result<Typed<u64, u64, O>, Error>,
) -> Result<(), Error> {
    let larder = Larder::new();
    let hour = Duration::from_secs(3600);
    let tables = [
        larder.table("alone"),
        larder.table("indexed").index(Index::element("value", 2)),
        larder.table("bounded").ttl(hour).max_size(1_000_000),
        larder
            .table("all")
            .ttl(hour)
            .index(Index::element("value", 2)),
    ];
    for (number, builder) in tables.into_iter().enumerate() {
        let table = make(builder)?;
        let rounds = times(1_500) as u64;
        // Enough for all events.
        let feeds = FeedOptions {
            limit: 4 * (THREADS * rounds) as usize,
            ..FeedOptions::default()
        };
        let mut feed = (number % 2 == 1)
            .then(|| table.table().subscribe_with(&feeds))
            .transpose()?;
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let table = &table;
                scope.spawn(move || (0..rounds).for_each(|i| count_one_up(table, thread, i)));
            }
        });
        let counters = (0..COUNTERS).map(|n| table.get(&(1000 * n)));
        let counts: Vec<u64> = counters
            .map(|n| n.map(Option::unwrap_or_default))
            .collect::<Result<_, _>>()?;
        assert_eq!(
            counts.iter().sum::<u64>(),
            THREADS * rounds,
            "table {number}"
        );
        if table.table().indexes().len() == 1 {
            for (n, &count) in counts.iter().enumerate() {
                let rows = table.table().index_lookup("value", &Term::from(count))?;
                let found = rows.iter().filter_map(|row| table.read(row).ok());
                assert!(found.into_iter().any(|row| row == (1000 * n as u64, count)));
            }
        }
        // Each event of a counter is the next count.
        let mut told = [0; COUNTERS as usize];
        let commits = feed
            .iter_mut()
            .flat_map(|feed| std::iter::from_fn(|| feed.try_recv()));
        for event in commits.flat_map(|commit| commit.events) {
            let (Event::Insert(new) | Event::Replace(_, new)) = &event else {
                assert!(matches!(event, Event::Delete(_)), "{event:?}");
                continue;
            };
            let (key, count) = table.read(new)?;
            if key % 1000 == 0 {
                told[key as usize / 1000] += 1;
                assert_eq!(count, told[key as usize / 1000], "counter {key}");
            }
        }
        assert!(
            feed.is_none() || told[..] == counts[..],
            "{told:?} {counts:?}"
        );
    }
    Ok(())
}

/// Of the rows that threads pop from both ends, each is given once; each thread gets its own end's
/// in order.
#[test]
fn each_row_is_popped_once() -> Result<(), Error> {
    let table = Larder::new().typed::<u64, u64>("queue")?;
    let rows = times(4_000) as u64;
    table.extend((0..rows).map(|n| (n, !n)))?;
    let popped: Vec<Vec<u64>> = thread::scope(|scope| {
        let pop = |thread: u64| {
            let mut keys = Vec::new();
            loop {
                let row = match thread % 2 {
                    0 => table.pop_first(),
                    _ => table.pop_last(),
                };
                match row.expect("popped") {
                    Some((key, value)) if value == !key => keys.push(key),
                    Some(other) => panic!("{other:?}"),
                    None => return keys,
                }
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || pop(n))).collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("popped"))
            .collect()
    });
    for (thread, keys) in popped.iter().enumerate() {
        let in_order = keys.is_sorted_by(|a, b| if thread % 2 == 0 { a < b } else { a > b });
        assert!(in_order, "{keys:?}");
    }
    let mut all: Vec<u64> = popped.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..rows));
    Ok(())
}

/// Even keys stay, and have a sum that every write keeps; odd ones come and go.
const EVENS: u64 = 400;

/// What stays is in a snapshot as of one instant, and in the table exactly once, while others
/// write. `come_and_go` writes odd keys: its arguments are the number of the thread, the even keys
/// that were just changed, and a number that differs in each round. `rows` walks over a snapshot,
/// and `walk` checks walks over the table.
fn walk_beside_writers<O: Order>(
    table: &Typed<u64, u64, O>,
    come_and_go: impl Fn(u64, [u64; 2], u64) + Sync,
    rows: impl Fn(&TypedSnapshot<u64, u64, O>) -> Vec<(u64, u64)>,
    walk: impl Fn(),
) -> Result<(), Error> {
    table.extend((0..EVENS).map(|n| (2 * n, 1000)))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (stop, come_and_go) = (&stop, &come_and_go);
            scope.spawn(move || {
                let mut i = thread;
                // Ordering: Relaxed; that the others are done is all it says.
                while !stop.load(Ordering::Relaxed) {
                    i += 7;
                    let [a, b] = [2 * (i % EVENS), 2 * (i * i % EVENS)];
                    let moved = table.transaction(|view| {
                        view.compute(&a, |n| n.map(|n| n.wrapping_sub(1)))?;
                        view.compute(&b, |n| n.map(|n| n.wrapping_add(1)))
                    });
                    moved.expect("moved");
                    come_and_go(thread, [a, b], i);
                }
            });
        }
        for round in 0..times(25) {
            let mut evens = rows(&table.snapshot().expect("a snapshot"));
            evens.retain(|(key, _)| key % 2 == 0);
            let sum = evens.iter().fold(0u64, |sum, (_, n)| sum.wrapping_add(*n));
            let counted = (evens.len() as u64, sum);
            assert_eq!(counted, (EVENS, 1000 * EVENS), "round {round}");
            walk();
        }
        stop.store(true, Ordering::Relaxed);
    });
    Ok(())
}

fn assert_evens(keys: impl IntoIterator<Item = u64>) {
    let evens = keys.into_iter().filter(|key| key % 2 == 0);
    assert!(evens.eq((0..EVENS).map(|n| 2 * n)));
}

/// Walks by hash beside writers, while the table grows and shrinks under them.
#[test]
fn walks_by_hash_beside_writers() -> Result<(), Error> {
    let table = &Larder::new().typed_hash::<u64, u64>("rows")?;
    walk_beside_writers(
        table,
        |thread, _, i| {
            let odd = 100_000 * thread + 2 * (i % 5_000) + 1;
            let lot = (odd..odd + 200).step_by(2).map(|key| (key, i));
            table.extend(lot).expect("inserted");
            if i % 16 == thread {
                table.retain(|key, _| key % 2 == 0).expect("removed");
            }
        },
        |snapshot| snapshot.iter().map(|row| row.expect("a row")).collect(),
        || {
            let rows = table.iter().map(|row| row.expect("a row").0);
            let mut keys: Vec<u64> = rows.collect();
            keys.sort_unstable();
            assert_evens(keys);
        },
    )
}

/// Walks in order beside writers, in both directions.
#[test]
fn walks_beside_writers() -> Result<(), Error> {
    let table = &Larder::new().typed::<u64, u64>("rows")?;
    walk_beside_writers(
        table,
        |_, [a, b], i| {
            table.insert(a + 1, i).expect("inserted");
            table.remove(&(b + 1)).expect("removed");
        },
        |snapshot| {
            // From both ends in turns.
            let mut rows = snapshot.iter();
            let mut turns = 0..;
            let next = || match turns.next()? % 3 {
                0 => rows.next_back(),
                _ => rows.next(),
            };
            let all = std::iter::from_fn(next);
            all.map(|row| row.expect("a row")).collect()
        },
        || {
            let rows = table.range(10..=700).expect("a range");
            let keys: Vec<u64> = rows.map(|row| row.expect("a row").0).collect();
            assert!(keys.is_sorted_by(|a, b| a < b));
            assert_eq!(keys.iter().filter(|key| *key % 2 == 0).count(), 346);
            let rows = table.iter().rev().map(|row| row.expect("a row").0);
            let mut back: Vec<u64> = rows.collect();
            back.reverse();
            assert_evens(back);
        },
    )
}

//! Going on and on from key to key, while the table stays as it is and while it changes.

use larder::api::{Builder, Larder, Table};
use larder::host::{with_local, Direction};
use larder_term::{term, Term};
use larder_testing::environment::times;
use larder_testing::mix;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// All types of table. The ordered one is the last.
const KINDS: [fn(Builder) -> Builder; 4] = [
    Builder::set,
    Builder::bag,
    Builder::duplicate_bag,
    Builder::ordered_set,
];

/// What happens between two steps.
#[derive(Clone, Debug)]
enum Happens {
    Next(usize),
    Prev(usize),
    Insert(i64),
    Delete(i64),
    Jump(i64),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (1..40usize).prop_map(Happens::Next),
        2 => (1..40usize).prop_map(Happens::Prev),
        2 => (0..300i64).prop_map(Happens::Insert),
        2 => (0..300i64).prop_map(Happens::Delete),
        1 => (0..300i64).prop_map(Happens::Jump),
    ]
}

fn key(found: Option<Term>) -> Option<i64> {
    found.map(|key| key.as_ref().as_int().unwrap())
}

fn filled(t: &Table, oracle: &mut BTreeSet<i64>) {
    for n in (0..300).step_by(2) {
        t.insert(&term!({(n), x})).unwrap();
        oracle.insert(n);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn steps_are_those_of_an_ordered_set(history in prop::collection::vec(happens(), 1..60)) {
        let t = Larder::new().table("t").ordered_set().create().unwrap();
        let mut oracle = BTreeSet::new();
        filled(&t, &mut oracle);
        let mut place = 0;
        for happening in history {
            match happening {
                Happens::Insert(n) => {
                    t.insert(&term!({(n), y})).unwrap();
                    oracle.insert(n);
                }
                Happens::Delete(n) => {
                    t.delete(&Term::from(n)).unwrap();
                    oracle.remove(&n);
                }
                Happens::Jump(n) => place = n,
                Happens::Next(steps) => for _ in 0..steps {
                    let found = key(t.next(&Term::from(place)).unwrap());
                    prop_assert_eq!(found, oracle.range(place + 1..).next().copied());
                    let Some(found) = found else { break };
                    place = found;
                },
                Happens::Prev(steps) => for _ in 0..steps {
                    let found = key(t.prev(&Term::from(place)).unwrap());
                    prop_assert_eq!(found, oracle.range(..place).next_back().copied());
                    let Some(found) = found else { break };
                    place = found;
                },
            }
        }
    }

    /// Rows are small and large, and in bags keys get more objects on the way.
    #[test]
    fn a_walk_meets_what_stays_once(history in prop::collection::vec(happens(), 1..40), kind in 0..3usize) {
        let t = KINDS[kind](Larder::new().table("t")).create().unwrap();
        let mut oracle = BTreeSet::new();
        filled(&t, &mut oracle);
        let row = |n: i64, i: usize| {
            let text = "v".repeat([0, 3, 700, 3_000][(n as usize + i) % 4]);
            Term::tuple([Term::from(n), Term::from(i as i64), Term::from(text.as_str())])
        };
        for &n in &oracle {
            (0..n as usize % 5).for_each(|i| t.insert(&row(n, i)).unwrap());
        }
        let mut gone = BTreeSet::new();
        let mut seen = Vec::new();
        let mut history = history.into_iter().cycle().take(200);
        let mut place = key(t.first().unwrap());
        while let Some(n) = place {
            seen.push(n);
            match history.next() {
                // Never the key that the walk stands on: it could not go on from there.
                Some(Happens::Delete(d)) if d != n => {
                    t.delete(&Term::from(d)).unwrap();
                    gone.insert(d);
                    oracle.remove(&d);
                }
                Some(Happens::Insert(i)) => t.insert(&row(i, seen.len())).unwrap(),
                // Of the key that the walk stands on, all objects but one or two go.
                Some(Happens::Jump(i)) => (0..5).filter(|&j| j != i as usize).for_each(|j| {
                    t.insert(&row(n, i as usize)).unwrap();
                    t.delete_object(&row(n, j)).unwrap();
                }),
                _ => {}
            }
            place = key(t.next(&Term::from(n)).unwrap());
            prop_assert!(place.is_none_or(|p| t.contains(&Term::from(p)).unwrap()));
        }
        for stays in &oracle {
            prop_assert_eq!(seen.iter().filter(|n| *n == stays).count(), 1, "{}", stays);
        }
        prop_assert!(gone.iter().all(|n| t.next(&Term::from(*n)).is_err() || t.contains(&Term::from(*n)).unwrap()));
    }
}

/// The first key, asked for again and again, is what a thread says that has asked for nothing yet.
#[test]
fn the_first_key_is_that_of_a_thread_that_asks_for_the_first_time() {
    let larder = Larder::new();
    let tables = [
        larder.table("set").set().create().unwrap(),
        larder.table("bag").bag().create().unwrap(),
        larder.table("ordered").ordered_set().create().unwrap(),
    ];
    for t in &tables {
        let first = || key(t.first().unwrap());
        let check = || {
            let other = thread::scope(|scope| scope.spawn(first).join().unwrap());
            (0..4).for_each(|_| assert_eq!(first(), other));
            other
        };
        for n in 0..400i64 {
            t.insert(&term!({(n), x})).unwrap();
        }
        // Each key is the first once when they go, and once when they come back.
        let mut gone = Vec::new();
        while let Some(n) = check() {
            t.delete(&Term::from(n)).unwrap();
            gone.push(n);
        }
        assert_eq!(gone.len(), 400);
        while let Some(n) = gone.pop() {
            t.insert(&term!({(n), y})).unwrap();
            assert_eq!(check(), Some(n));
        }
        t.clear().unwrap();
        assert_eq!(check(), None);
    }
}

/// The first and the last key of a table that is polled are right after each change of it, by this
/// thread or another one, and so are their objects.
#[test]
fn the_ends_of_a_table_that_is_polled() {
    for kind in KINDS {
        let t = kind(Larder::new().table("t")).create().unwrap();
        for round in 0..times(2_000) {
            let chance = mix(0x51D0_37A1 * (round as u64 + 1));
            let n = (chance >> 32) as i64 % 8;
            let change = || match chance % 4 {
                0 => drop(t.insert(&term!({(n), (round as i64)}))),
                1 => drop(t.delete(&Term::from(n))),
                2 if chance % 64 == 2 => drop(t.clear()),
                _ => {}
            };
            match chance >> 8 & 1 {
                0 => change(),
                _ => thread::scope(|scope| drop(scope.spawn(change).join())),
            }
            for _ in 0..chance >> 16 & 7 {
                // A nested call has no cursor.
                let ends = || (key(t.first().unwrap()), key(t.last().unwrap()));
                assert_eq!(ends(), with_local(|_| ends()), "{round}");
                let (first, nested) = (next_row(&t, None), with_local(|_| next_row(&t, None)));
                assert_eq!(first, nested, "{round}");
            }
        }
    }
}

/// The first key of a table that this thread and others consume, walk over and fill is what a
/// thread says that has asked for nothing yet.
#[test]
fn the_first_key_of_a_table_that_is_consumed() {
    for kind in KINDS {
        let t = kind(Larder::new().table("t")).create().unwrap();
        let row = |n: i64| {
            let text = "v".repeat([0, 3, 700, 3_000][n as usize % 4]);
            Term::tuple([Term::from(n), Term::from(text.as_str())])
        };
        let (mut place, mut consumed) = (None, 0);
        for round in 0..times(4_000) {
            let chance = mix(0x9E37_79B9 * (round as u64 + 1));
            let n = (chance >> 32) as i64 % 500;
            let first = key(t.first().unwrap());
            // A nested call has no cursor.
            assert_eq!(first, with_local(|_| key(t.first().unwrap())), "{round}");
            match (chance % 16, first) {
                (_, None) => (0..200).for_each(|i| t.insert(&row(n + i)).unwrap()),
                (0, _) => t.delete_object(&row(n)).map(drop).unwrap(),
                (1, _) => t.insert(&row(n)).unwrap(),
                (2, _) => _ = t.delete(&Term::from(n)).unwrap(),
                // Other threads leave no note in this one.
                (3, Some(first)) => thread::scope(|scope| {
                    scope.spawn(|| _ = t.delete(&Term::from(first)).unwrap());
                }),
                (4..6, _) => place = place.and_then(|n: i64| key(t.next(&Term::from(n)).ok()?)),
                (6, _) => place = first,
                (_, Some(first)) => {
                    consumed += 1;
                    t.delete(&Term::from(first)).unwrap();
                }
            }
        }
        assert!(consumed > times(1_000), "{consumed}");
    }
}

#[test]
fn two_tables_are_told_apart() {
    let tables: Vec<Table> = (0..2)
        .map(|_| Larder::new().table("t").ordered_set().create().unwrap())
        .collect();
    for n in 0..100i64 {
        tables[0].insert(&term!({(n), x})).unwrap();
        tables[1].insert(&term!({(n * 2), x})).unwrap();
    }
    for n in 0..99i64 {
        assert_eq!(key(tables[0].next(&Term::from(n)).unwrap()), Some(n + 1));
        assert_eq!(key(tables[0].next(&Term::from(n)).unwrap()), Some(n + 1));
        let next = key(tables[1].next(&Term::from(n * 2)).unwrap());
        assert_eq!(next, Some(n * 2 + 2));
    }
}

/// Three walks of one thread side by side through two tables, in both directions, while rows come
/// and go. Two of them are in the same table.
#[test]
fn walks_side_by_side() {
    for seed in 0..times(60) as u64 {
        let larder = Larder::new();
        let tables = ["a", "b"].map(|name| larder.table(name).ordered_set().create().unwrap());
        let mut oracles = [BTreeSet::new(), BTreeSet::new()];
        (0..2).for_each(|i| filled(&tables[i], &mut oracles[i]));
        let mut places = [0, 300, 0];
        for i in 0..2_000 {
            let luck = mix(seed << 32 | i);
            let (walk, n) = (luck as usize % 3, (luck >> 16) as i64 % 300);
            let (t, oracle) = (&tables[walk / 2], &mut oracles[walk / 2]);
            let at = Term::from(places[walk]);
            let place = &mut places[walk];
            // Some runs have few changes, and so have walks that are long.
            match (luck >> 40) % (8 << (seed % 5)) {
                0 => *place = n,
                1 => {
                    t.insert(&term!({(n), y})).unwrap();
                    oracle.insert(n);
                }
                2 => {
                    t.delete(&at).unwrap();
                    oracle.remove(place);
                }
                _ if walk == 1 => {
                    let found = key(t.prev(&at).unwrap());
                    assert_eq!(found, oracle.range(..*place).next_back().copied());
                    *place = found.unwrap_or(300);
                }
                _ => {
                    let found = key(t.next(&at).unwrap());
                    assert_eq!(found, oracle.range(*place + 1..).next().copied());
                    *place = found.unwrap_or(-1);
                }
            }
        }
    }
}

/// The next key and its objects.
fn next_row(t: &Table, from: Option<i64>) -> Option<(i64, Vec<Term>)> {
    let (engine, mut from_key, mut rows) = (t.engine_table(), Vec::new(), Vec::new());
    if let Some(from) = from {
        engine.encode_key(Term::from(from).as_ref(), &mut from_key);
    }
    let found = with_local(|local| {
        let (from, direction) = (from.map(|_| from_key.as_slice()), Direction::Forward);
        engine.step_to_objects(local, engine.owner(), from, direction, |row| {
            rows.push(Term::tuple(row.view().iter().map(Term::from)));
        })
    });
    let first = |row: &Term| row.as_ref().as_tuple()?.iter().next()?.as_int();
    found.unwrap().then(|| (first(&rows[0]).unwrap(), rows))
}

/// Walks that change the objects that they have passed, while other objects come, change and go,
/// also by other threads: each step is that of a thread that has no cursor.
#[test]
fn walks_that_change_what_they_pass() {
    for (kind, seed) in KINDS.iter().cycle().zip(0..times(120) as u64) {
        let t = kind(Larder::new().table("t")).create().unwrap();
        // A thread of its own, whose cursors have seen no changes yet.
        thread::scope(|scope| scope.spawn(|| walk_and_change(&t, seed)).join().unwrap());
    }
}

fn walk_and_change(t: &Table, seed: u64) {
    let row = |n: i64, luck: u64| {
        let text = "v".repeat([0, 3, 40, 3_000][luck as usize % 4]);
        Term::tuple([
            Term::from(n),
            Term::from(luck as i64),
            Term::from(text.as_str()),
        ])
    };
    // Bags have no updates.
    let update = |n: i64, luck: u64| drop(t.update(&Term::from(n), 2, &Term::from(luck as i64)));
    (0..500).for_each(|n| t.insert(&row(n, 1)).unwrap());
    let (mut before, mut at) = (0, key(t.first().unwrap()).unwrap());
    for i in 0..1_000 {
        let luck = mix(seed << 32 | i);
        // Most runs have few changes of other rows, and so have walks that are long.
        let other = (luck >> 16) as i64 % 700;
        match (luck >> 8) % (5 << (seed % 8)) {
            0 => t.insert(&row(other, luck)).unwrap(),
            1 if other != at => drop(t.delete(&Term::from(other)).unwrap()),
            2 => thread::scope(|scope| drop(scope.spawn(|| update(other, luck)))),
            3 => update(other, luck),
            // The key before may be inserted anew.
            4 if before != at => drop(t.delete(&Term::from(before)).unwrap()),
            _ => {}
        }
        let changed = [at, before][(luck >> 4) as usize % 2];
        match luck % 4 {
            0 => t.insert(&row(changed, luck)).unwrap(),
            1 => update(changed, luck),
            _ => {}
        }
        let next = next_row(t, Some(at));
        let without_cursor = with_local(|_| next_row(t, Some(at)));
        assert_eq!(next, without_cursor, "seed {seed}, step {i}");
        let Some((next, _)) = next else { break };
        (before, at) = (at, next);
    }
}

/// Two walks of one thread side by side through tables of every kind meet each key once.
#[test]
fn walks_side_by_side_meet_all_keys() {
    for kind in KINDS {
        let t = kind(Larder::new().table("t")).create().unwrap();
        for n in 0..500i64 {
            t.insert(&term!({(n), x})).unwrap();
        }
        let mut walks = [0, 1].map(|_| (t.first().unwrap(), BTreeSet::new()));
        let mut i = 0u64;
        while walks.iter().any(|(place, _)| place.is_some()) {
            i += 1;
            // Now the one is ahead, now the other.
            let (place, met) = &mut walks[(mix(i / 7) % 2) as usize];
            if let Some(at) = place.take() {
                assert!(met.insert(at.as_ref().as_int().unwrap()));
                *place = t.next(&at).unwrap();
            }
        }
        assert!(walks.iter().all(|(_, met)| met.len() == 500));
    }
}

/// Walks through a set while another thread writes: rows that stay are visited once each, with what
/// was read ahead and without.
#[test]
fn walks_through_a_set_that_others_change() {
    const STAYS: i64 = 2000;
    let t = Larder::new().table("t").set().create().unwrap();
    for n in 0..STAYS {
        t.insert(&term!({(n), x})).unwrap();
    }
    let (done, whole) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|s| {
        s.spawn(|| {
            // Ordering: Relaxed, here and below: to stop by, and to count.
            for i in (0i64..).take_while(|_| !done.load(Relaxed)) {
                t.insert(&term!({(STAYS + i % 500), y})).unwrap();
                t.delete(&term!((STAYS + (i + 250) % 500))).unwrap();
                t.insert(&term!({(i % STAYS), (i)})).unwrap();
            }
        });
        let walkers = [0, 1].map(|_| {
            s.spawn(|| {
                for _ in 0..times(60) {
                    whole.fetch_add(usize::from(walk(&t, STAYS)), Relaxed);
                }
            })
        });
        for walker in walkers {
            walker.join().unwrap();
        }
        done.store(true, Relaxed);
    });
    // Walks that stood on a row that went have no way on.
    assert!(whole.load(Relaxed) > 0);
}

/// One walk. Whether it came to the end.
fn walk(t: &Table, stays: i64) -> bool {
    let mut met = vec![false; stays as usize];
    let mut place = key(t.first().unwrap());
    while let Some(n) = place {
        if n < stays {
            assert!(!std::mem::replace(&mut met[n as usize], true), "{n} twice");
        }
        match t.next(&Term::from(n)) {
            Ok(next) => place = key(next),
            Err(_) => {
                assert!(n >= stays, "{n} is there");
                return false;
            }
        }
    }
    assert!(met.iter().all(|met| *met));
    true
}

/// The last key of a small table is in the part of its value that a step to a key doesn't copy.
#[test]
fn a_step_finds_a_key_that_lies_deep_in_its_value() {
    let larder = Larder::new();
    let long = "v".repeat(200);
    let deep = Term::tuple([term!(-0.0), Term::from(long.as_str())]);
    for kind in KINDS {
        // By hash it comes last after some of these pairs.
        for n in 0..20i64 {
            let t = kind(larder.table("t")).create().unwrap();
            for key in [n, n + 1] {
                t.insert(&term!({(key), 1})).unwrap();
            }
            t.insert(&deep).unwrap();
            for _ in 0..3 {
                let (mut met, mut key) = (1, t.first().unwrap().unwrap());
                while let Some(next) = t.next(&key).unwrap() {
                    (met, key) = (met + 1, next);
                }
                // In order, the integer 0 and the float -0.0 are one key.
                let is_one = t.len() == 2;
                assert_eq!(met, if is_one { 2 } else { 3 }, "{n}");
            }
        }
    }
}

/// Keys of all kinds: in an ordered_set floats are in the value, and in a set so is -0.0.
fn keys_of_all_kinds() -> Vec<Term> {
    let mut keys: Vec<Term> = (1..40i64).map(Term::from).collect();
    keys.extend((0..40).map(|n| Term::float(f64::from(n) + 0.5).unwrap()));
    keys.extend([term!(-0.0), term!(1e300), Term::from(u64::MAX)]);
    // Short keys that are in the value: maps.
    keys.extend([
        term!(#{}),
        term!({#{}}),
        term!([#{}]),
        term!([]),
        term!(atom),
    ]);
    keys.extend((0..20i64).map(|n| term!({key, (n), 7.25})));
    keys.extend((0..20usize).map(|n| Term::from("k".repeat(50 * n).as_str())));
    keys
}

/// The keys of a table, found by steps. Bit `i` of `objects` says whether each 32nd step from the
/// `i`th is to objects. These are the same rows as those of a lookup.
fn keys_by_steps(t: &Table, direction: Direction, objects: u32) -> Vec<Term> {
    let engine = t.engine_table();
    let (mut from, mut found) = (None::<Term>, Vec::new());
    loop {
        let turn = found.len() % 32;
        let mut next = None;
        let mut rows_found = Vec::new();
        let index_key = from.as_ref().map(|key: &Term| {
            let mut bytes = Vec::new();
            engine.encode_key(key.as_ref(), &mut bytes);
            bytes
        });
        let index_key = index_key.as_deref();
        let is_found = with_local(|local| match objects >> turn & 1 {
            0 => engine.step_to_key(local, engine.owner(), index_key, 0, direction, |key| {
                next = Some(Term::from(key.term()));
                0
            }),
            _ => engine.step_to_objects(local, engine.owner(), index_key, direction, |row| {
                let row = row.view();
                next = Some(Term::from(row.key()));
                rows_found.push(Term::tuple(row.iter().map(Term::from)));
            }),
        });
        assert_eq!(is_found.unwrap(), next.is_some());
        let Some(next) = next else { break };
        if !rows_found.is_empty() {
            assert_eq!(t.lookup(&next).unwrap(), rows_found);
        }
        found.push(next.clone());
        from = Some(next);
    }
    found
}

/// Steps to a key and steps to objects, in turns: the first need only the keys of what they read.
#[test]
fn steps_to_keys_and_to_objects_find_the_same_rows() {
    let larder = Larder::new();
    for (kind, compressed) in (0..KINDS.len()).flat_map(|kind| [(kind, false), (kind, true)]) {
        let builder = KINDS[kind](larder.table("t"));
        let t = match compressed {
            true => builder.compressed().create().unwrap(),
            false => builder.create().unwrap(),
        };
        let (ordered, many) = (kind == 3, (1..3).contains(&kind));
        let keys = keys_of_all_kinds();
        for (i, key) in keys.iter().enumerate() {
            let size = [0, 3, 40, 400, 5_000, 70_000][i % 6];
            let row = match i % 7 {
                0 => Term::tuple([key.clone()]),
                _ => Term::tuple([key.clone(), Term::from("v".repeat(size).as_str())]),
            };
            t.insert(&row).unwrap();
            // Lists and trees of objects, of which the first is short or long.
            for j in 0..[0, 3, 100][i % 3] * i64::from(many) {
                let text = "w".repeat(20 * (i % 4));
                let more = Term::tuple([key.clone(), Term::from(j), Term::from(text.as_str())]);
                t.insert(&more).unwrap();
            }
        }
        for direction in [Direction::Forward, Direction::Backward] {
            // Which steps are to objects: none, each, and others.
            for objects in [0u32, !0, 0b0101_0011, 0b1110_1000] {
                let mut found = keys_by_steps(&t, direction, objects);
                let mut sorted = found.clone();
                sorted.sort();
                let mut all = keys.clone();
                all.sort();
                assert_eq!(sorted, all, "kind {kind}, compressed {compressed}");
                if ordered {
                    if direction == Direction::Backward {
                        found.reverse();
                    }
                    assert_eq!(found, all);
                }
            }
        }
    }
}

/// A transaction that empties a table from its front finds what it has inserted there meanwhile.
#[test]
fn a_queue_is_emptied() {
    let mut random = larder_testing::random::Random(31);
    for (i, kind) in KINDS.into_iter().enumerate() {
        let larder = Larder::new();
        let t = kind(larder.table("t")).create().unwrap();
        let is_ordered = i == KINDS.len() - 1;
        let mut keys: BTreeSet<i64> = (0..400).map(|key| 3 * key).collect();
        for key in &keys {
            t.insert(&term!({(*key), 1})).unwrap();
        }
        larder
            .transaction(&[&t], |views| {
                let view = &views[0];
                let first = |keys: &BTreeSet<i64>| {
                    let found = view
                        .first()
                        .unwrap()
                        .map(|key| key.as_ref().as_int().unwrap());
                    assert!(found.is_none_or(|key| keys.contains(&key)), "{i}");
                    assert!(found.is_some() || keys.is_empty(), "{i}: {keys:?}");
                    assert!(!is_ordered || found == keys.first().copied(), "{i}");
                    found
                };
                while let Some(key) = first(&keys) {
                    // Some change before they go; those of a bag get another object.
                    if random.below(4) == 0 {
                        view.insert(&term!({(key), 3})).unwrap();
                        assert!(first(&keys).is_some(), "{i}");
                        view.delete_object(&term!({(key), 1})).unwrap();
                        if !view.contains(&term!((key))).unwrap() {
                            keys.remove(&key);
                        }
                        first(&keys);
                    }
                    view.delete(&term!((key))).unwrap();
                    keys.remove(&key);
                    // Now and then a key comes, or comes back: before the front, or after it.
                    if random.below(8) == 0 {
                        let key = random.below(1_200) as i64;
                        view.insert(&term!({(key), 2})).unwrap();
                        keys.insert(key);
                        first(&keys);
                        let all: BTreeSet<i64> = view
                            .to_vec()
                            .unwrap()
                            .iter()
                            .map(|row| row.as_ref().as_tuple().unwrap().get(0).unwrap())
                            .map(|key| key.as_int().unwrap())
                            .collect();
                        assert_eq!(all, keys, "{i}");
                    }
                }
                Ok(())
            })
            .unwrap();
        assert!(t.is_empty(), "{i}");
    }
}

/// A stack, or a queue behind a key that stays, isn't passed from end to end for each row that is
/// taken from it.
#[test]
fn a_table_is_emptied_from_any_end_in_time() {
    let rows = 10_000;
    let larder = Larder::new();
    let t = larder.table("t").ordered_set().create().unwrap();
    for key in 0..rows {
        t.insert(&term!({(key), 1})).unwrap();
    }
    let took = |kind: usize| {
        let since = Instant::now();
        let mut random = larder_testing::random::Random(7);
        larder
            .transaction(&[&t], |views| {
                let view = &views[0];
                let mut keys: BTreeSet<i64> = (0..rows).collect();
                loop {
                    let (found, expected) = match kind {
                        0 => (view.first(), keys.first()),
                        1 => (view.last(), keys.last()),
                        _ => (view.next(&term!((0))), keys.range(1..).next()),
                    };
                    let found = found.unwrap().map(|key| key.as_ref().as_int().unwrap());
                    assert_eq!(found, expected.copied(), "{kind}");
                    let Some(key) = found else {
                        break;
                    };
                    view.delete(&term!((key))).unwrap();
                    keys.remove(&key);
                    // Now and then a key comes back.
                    if random.below(50) == 0 {
                        let key = random.below(rows as u64) as i64;
                        view.insert(&term!({(key), 2})).unwrap();
                        keys.insert(key);
                    }
                }
                Ok(())
            })
            .unwrap();
        for key in 0..rows {
            t.insert(&term!({(key), 1})).unwrap();
        }
        since.elapsed()
    };
    let front = took(0);
    for kind in [1, 2] {
        let other = took(kind);
        let limit = 10 * front + Duration::from_secs(1);
        assert!(other < limit, "{kind}: {other:?}, from the front {front:?}");
    }
}

/// Steps in both directions beside long gaps, which deletions make and single keys fill again.
#[test]
fn steps_beside_gaps_are_those_of_a_set() {
    let larder = Larder::new();
    let t = larder.table("t").ordered_set().create().unwrap();
    let rows = 3_000;
    let mut keys: BTreeSet<i64> = (0..rows).collect();
    for key in &keys {
        t.insert(&term!({(*key), 1})).unwrap();
    }
    let mut random = larder_testing::random::Random(29);
    larder
        .transaction(&[&t], |views| {
            let view = &views[0];
            for i in 0..times(3_000) {
                let from = random.below(rows as u64) as i64;
                let (found, expected) = match random.below(4) {
                    0 => (view.first(), keys.first()),
                    1 => (view.last(), keys.last()),
                    2 => (view.next(&term!((from))), keys.range(from + 1..).next()),
                    _ => (view.prev(&term!((from))), keys.range(..from).next_back()),
                };
                let found = found.unwrap().map(|key| key.as_ref().as_int().unwrap());
                assert_eq!(found, expected.copied(), "{i}: {from}");
                if random.below(8) == 0 {
                    view.insert(&term!({(from), 2})).unwrap();
                    keys.insert(from);
                } else if random.below(8) == 0 {
                    for key in from..from + random.below(300) as i64 {
                        view.delete(&term!((key))).unwrap();
                        keys.remove(&key);
                    }
                }
            }
            Ok(())
        })
        .unwrap();
}

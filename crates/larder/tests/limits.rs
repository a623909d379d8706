//! Tables with limits: there is never more than may be, what is evicted has an event, is kept for
//! snapshots, and noticed by transactions; what is refused changes nothing; and the bytes are
//! counted right.

use larder::api::{Builder, Event, Feed, FeedOptions, Index, Larder, Table};
use larder::{advance_clock, Bounds, Error, Evict, Limits};
use larder_term::{term, Term};
use larder_testing::random::Random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const POLICIES: [Evict; 3] = [Evict::Lru, Evict::TinyLfu, Evict::Sieve];

/// Longer than all tests together move the clock, which is the whole program's.
const YEARS: Duration = Duration::from_secs(500_000_000);

fn pair(key: i64, value: i64) -> Term {
    term!({(key), (value)})
}

fn key(key: i64) -> Term {
    term!((key))
}

/// A tuple whose binary takes so many bytes.
fn large(key: i64, bytes: usize) -> Term {
    let binary = Term::binary(&vec![key as u8; bytes]);
    term!({(key), (binary)})
}

fn first(row: &Term) -> i64 {
    let row = row.as_ref().as_tuple().unwrap();
    row.get(0).unwrap().as_int().unwrap()
}

fn builder(larder: &Larder, ordered: bool) -> Builder {
    match ordered {
        true => larder.table("t").ordered_set(),
        false => larder.table("t"),
    }
}

fn is_full<T: std::fmt::Debug>(result: Result<T, Error>, word: &str) {
    match result {
        Err(Error::Full(text)) => {
            let has_no_such_limit = text.contains(&usize::MAX.to_string());
            assert!(text.contains(word) && !has_no_such_limit, "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// A table to which one thread has written has as many objects as it may. The expirer doesn't evict
/// one for a surplus that the thread has seen.
fn assert_full(t: &Table, most: usize) {
    assert_eq!(t.len(), most);
}

/// Waits until something is true, which another thread sees to.
fn soon(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_table_has_no_more_objects_than_it_may() {
    for (evict, ordered, watched) in POLICIES.into_iter().flat_map(|evict| {
        [
            (evict, false, false),
            (evict, true, false),
            (evict, false, true),
        ]
    }) {
        let larder = Larder::new();
        let t = builder(&larder, ordered).max_size(300).evict(evict);
        let t = t.create().unwrap();
        let _snapshot = watched.then(|| t.snapshot().unwrap());
        for k in 0..2_000 {
            t.insert(&pair(k, k)).unwrap();
            assert!(t.len() <= 300);
            if k % 100 == 0 {
                let list: Vec<Term> = (k..k + 50).map(|k| pair(10_000 + k, k)).collect();
                t.insert_all(&list).unwrap();
                assert!(t.len() <= 300);
                assert!(t
                    .insert_all_new(&[pair(-k - 1, 0), pair(-k - 2, 0)])
                    .unwrap());
                assert!(t.len() <= 300);
            }
        }
        assert_full(&t, 300);
        assert_eq!(t.to_vec().unwrap().len(), t.len());
    }
}

#[test]
fn a_list_longer_than_the_limit_leaves_as_much_as_may_be() {
    let t = Larder::new().table("t").max_size(100).evict(Evict::Lru);
    let t = t.create().unwrap();
    let list: Vec<Term> = (0..5_000).map(|k| pair(k, k)).collect();
    t.insert_all(&list).unwrap();
    assert_full(&t, 100);
}

#[test]
fn a_taken_value_is_reported_in_a_full_table() {
    for ordered in [false, true] {
        let larder = Larder::new();
        let unique = Index::element("v", 2).unique();
        let t = builder(&larder, ordered).max_size(2).index(unique).create();
        let t = t.unwrap();
        t.insert_all(&[pair(1, 1), pair(2, 2)]).unwrap();
        assert!(!t.insert_new(&pair(3, 1)).unwrap());
        assert!(!t.insert_all_new(&[pair(3, 3), pair(4, 1)]).unwrap());
        for refused in [
            t.insert(&pair(3, 1)),
            t.insert_all(&[pair(3, 3), pair(4, 1)]),
        ] {
            assert!(matches!(refused, Err(Error::NotUnique(_))), "{refused:?}");
        }
        // Values that are free are given back when there is no room.
        is_full(t.insert_new(&pair(3, 3)), "max_size is 2");
        is_full(t.insert_all_new(&[pair(3, 3), pair(4, 4)]), "max_size is 2");
        t.insert(&pair(1, 3)).unwrap();
        t.insert_all(&[pair(2, 4)]).unwrap();
        assert_eq!(t.len(), 2);
        // A commit is refused for the limit.
        let refused = larder.transaction(&[&t], |views| views[0].insert(&pair(5, 3)));
        is_full(refused, "max_size is 2");
    }
}

#[test]
fn without_eviction_what_exceeds_the_limit_is_refused() {
    for ordered in [false, true] {
        let larder = Larder::new();
        let t = builder(&larder, ordered).max_size(10).create().unwrap();
        (0..10).for_each(|k| t.insert(&pair(k, 0)).unwrap());
        is_full(t.insert(&pair(10, 0)), "max_size is 10");
        is_full(t.insert_new(&pair(10, 0)), "max_size is 10");
        is_full(t.insert_with(&pair(10, 0), None), "max_size is 10");
        is_full(t.add_or(&key(10), 2, 1, &pair(0, 0)), "max_size is 10");
        is_full(t.insert_all(&[pair(0, 1), pair(11, 0)]), "max_size is 10");
        is_full(
            t.insert_all_new(&[pair(12, 1), pair(11, 0)]),
            "max_size is 10",
        );
        let refused = larder.transaction(&[&t], |views| {
            views[0].insert(&pair(0, 7))?;
            views[0].insert(&pair(20, 0))
        });
        is_full(refused, "max_size is 10");
        assert!(!t.insert_new(&pair(3, 9)).unwrap());
        assert_eq!(t.lookup(&key(0)).unwrap(), [pair(0, 0)]);
        // What is in place of another, or comes as another goes, has room.
        t.insert(&pair(0, 1)).unwrap();
        t.insert_all(&[pair(1, 1), pair(2, 1)]).unwrap();
        // A key that comes twice in a list takes the place of one object.
        assert_eq!(t.delete(&key(8)).unwrap(), 1);
        is_full(
            t.insert_all(&[pair(20, 0), pair(21, 0), pair(20, 1)]),
            "max_size is 10",
        );
        t.insert_all(&[pair(20, 0), pair(9, 1), pair(20, 1)])
            .unwrap();
        assert_eq!(t.lookup(&key(20)).unwrap(), [pair(20, 1)]);
        assert_eq!(t.delete(&key(20)).unwrap(), 1);
        t.insert(&pair(8, 0)).unwrap();
        let exchanged = larder.transaction(&[&t], |views| views[0].insert(&pair(3, 1)));
        exchanged.unwrap();
        assert_eq!(t.delete(&key(9)).unwrap(), 1);
        t.insert(&pair(10, 0)).unwrap();
        assert_eq!(t.len(), 10);
        let limits = Limits {
            max_size: Some(11),
            ..Limits::default()
        };
        let bounds = Bounds {
            limits: Some(limits),
            ..Bounds::default()
        };
        t.set_bounds(&bounds).unwrap();
        t.insert(&pair(11, 0)).unwrap();
        is_full(t.insert(&pair(12, 0)), "max_size is 11");
    }
}

/// A lifetime of its own takes no room.
#[test]
fn an_object_with_a_lifetime_needs_the_room_of_one_without() {
    let larder = Larder::new();
    let of = |most| larder.table("t").max_memory(most).create().unwrap();
    let one = of(1 << 20);
    one.insert(&pair(1, 1)).unwrap();
    let two = 2 * one.engine_table().weight().unwrap();
    for (most, fits) in [(two, true), (two - 1, false)] {
        let t = of(most);
        t.insert(&pair(1, 1)).unwrap();
        let life = Some(Duration::from_secs(1_000));
        let inserted = t.insert_with(&pair(2, 2), life);
        assert_eq!(inserted.is_ok(), fits, "{inserted:?}");
    }
}

#[test]
fn what_is_expired_makes_room() {
    let t = Larder::new().table("t").max_size(10).create().unwrap();
    // Longer than the other tests together move the clock.
    let long: u64 = 1 << 38;
    let life = Some(Duration::from_millis(long));
    (0..10).for_each(|k| t.insert_with(&pair(k, 0), life).unwrap());
    is_full(t.insert(&pair(10, 0)), "max_size");
    advance_clock(long);
    for k in 10..20 {
        t.insert(&pair(k, 0)).unwrap();
    }
    is_full(t.insert(&pair(20, 0)), "max_size");
}

#[test]
fn what_is_expired_makes_room_for_lists_and_commits() {
    let larder = Larder::new();
    let full_of_expired = || {
        let t = larder.table("t").max_size(10).create().unwrap();
        let long = Duration::from_millis(1 << 30);
        (0..10).for_each(|k| t.insert_with(&pair(k, 0), Some(long)).unwrap());
        advance_clock(1 << 30);
        t
    };
    let rows: Vec<Term> = (10..20).map(|k| pair(k, 0)).collect();
    let t = full_of_expired();
    t.insert_all(&rows).unwrap();
    assert_eq!(t.len(), 10);
    let t = full_of_expired();
    assert!(t.insert_all_new(&rows).unwrap());
    assert_eq!(t.len(), 10);
    let t = full_of_expired();
    let insert = |t: &Table| rows.iter().try_for_each(|row| t.insert(row));
    larder
        .transaction(&[&t], |views| insert(&views[0]))
        .unwrap();
    assert_eq!(t.len(), 10);
    is_full(t.insert(&pair(20, 0)), "max_size");
    let t = full_of_expired();
    let commit = |keys: std::ops::Range<i64>| {
        let none = larder.operations();
        keys.fold(none, |all, k| all.insert(&t, &pair(k, 1)))
            .commit()
    };
    assert_eq!(commit(10..20), Ok(None));
    assert_eq!(t.len(), 10);
    is_full(commit(19..21), "max_size");
}

#[test]
fn what_a_transaction_deletes_makes_room() {
    for ordered in [false, true] {
        let larder = Larder::new();
        let t = builder(&larder, ordered).max_size(10).create().unwrap();
        (0..10).for_each(|k| t.insert(&pair(k, 0)).unwrap());
        let done = larder.transaction(&[&t], |views| {
            views[0].insert(&pair(20, 0))?;
            views[0].delete(&key(0)).map(drop)
        });
        done.unwrap();
        // One more than goes, and one that isn't there.
        let refused = larder.transaction(&[&t], |views| {
            views[0].delete(&key(1))?;
            views[0].delete(&key(30))?;
            (30..32).try_for_each(|k| views[0].insert(&pair(k, 0)))
        });
        is_full(refused, "max_size is 10");
        assert_eq!((t.len(), t.delete(&key(20)).unwrap()), (10, 1));
        // Bytes are counted like objects.
        let t = builder(&larder, ordered).max_size(1).max_memory(2_000);
        let t = t.create().unwrap();
        t.insert(&large(1, 1_500)).unwrap();
        let exchange = |bytes| {
            larder.transaction(&[&t], |views| {
                views[0].insert(&large(2, bytes))?;
                views[0].delete(&key(1)).map(drop)
            })
        };
        is_full(exchange(2_000), "max_memory is 2000");
        exchange(1_800).unwrap();
        assert_eq!(t.len(), 1);
    }
}

#[test]
fn limits_of_nothing_and_limits_of_other_tables_are_refused() {
    let larder = Larder::new();
    for builder in [
        larder.table("t").max_size(0),
        larder.table("t").max_memory(0),
    ] {
        assert!(matches!(builder.create(), Err(Error::BadOption(_))));
    }
    let bag = larder.table("t").bag().max_size(10).create();
    assert!(matches!(bag, Err(Error::BadOption(_))));
    let bounds = Bounds {
        limits: Some(Limits::default()),
        ..Bounds::default()
    };
    let t = larder
        .table("t")
        .ttl(Duration::from_secs(60))
        .create()
        .unwrap();
    assert_eq!(t.set_bounds(&bounds), Err(Error::Unlimited));
    let t = larder.table("t").create().unwrap();
    // A lifetime, even an endless one, wouldn't help.
    assert_eq!(t.set_bounds(&bounds), Err(Error::Unlimited));
    assert_eq!(t.set_bounds(&Bounds::default()), Err(Error::Unbounded));
}

#[test]
fn a_table_all_of_whose_objects_were_used_since_the_last_choice_evicts_still() {
    for evict in POLICIES {
        let t = Larder::new().table("t").max_size(1_000).evict(evict);
        let t = t.create().unwrap();
        (0..1_000).for_each(|k| t.insert(&pair(k, k)).unwrap());
        for round in 1..40 {
            for k in 0..20 {
                t.insert(&pair(round * 1_000 + k, k)).unwrap();
                assert_full(&t, 1_000);
            }
            for row in t.to_vec().unwrap() {
                t.lookup(&key(first(&row))).unwrap();
            }
        }
    }
}

#[test]
fn a_table_has_no_more_bytes_than_it_may() {
    for evict in POLICIES {
        let most = 200_000;
        let t = Larder::new().table("t").max_memory(most).evict(evict);
        let t = t.create().unwrap();
        let weight = || t.engine_table().weight().unwrap();
        let mut random = Random(1);
        for k in 0..5_000 {
            t.insert(&large(k % 1_500, random.below(2_000) as usize))
                .unwrap();
            assert!(weight() <= most, "{}", weight());
        }
        assert!(weight() > most - 3_000 && t.len() > 100);
        // One that is larger than all may be goes at once, and no other, but for the expirer's.
        let before = t.len();
        t.insert(&large(-1, most)).unwrap();
        assert!(weight() <= most && (before - 1..=before).contains(&t.len()));
        assert!(t.lookup(&key(-1)).unwrap().is_empty());
        // A large one drives out many.
        (0..2_000).for_each(|k| t.insert(&pair(k, k)).unwrap());
        t.insert(&large(-1, most / 20)).unwrap();
        assert!(weight() <= most, "{}", weight());
    }
    let t = Larder::new()
        .table("t")
        .max_memory(10_000)
        .create()
        .unwrap();
    (0..8).for_each(|k| t.insert(&large(k, 1_000)).unwrap());
    is_full(t.insert(&large(8, 2_000)), "max_memory is 10000");
    is_full(t.insert(&large(0, 5_000)), "max_memory is 10000");
    is_full(
        t.insert_all(&[large(0, 900), large(9, 3_000)]),
        "max_memory",
    );
    t.insert_all(&[large(0, 10), large(9, 1_500)]).unwrap();
    let longer = "[{{'$1','$2'},[],[{{'$1',{{'$2','$2','$2','$2'}}}}]}]";
    is_full(t.select_replace(longer), "max_memory");
    assert!(t.engine_table().weight().unwrap() <= 10_000);
}

/// Nothing is kept of writes of an object that is too large by itself, but may stay.
#[test]
fn overwrites_of_an_object_above_the_limit_take_no_memory() {
    let t = Larder::new().table("t").max_memory(10_000);
    let t = t.create().unwrap();
    t.insert(&large(0, 5_000)).unwrap();
    let limits = Limits {
        max_size: None,
        max_memory: Some(1_000),
        evict: Evict::None,
    };
    let bounds = Bounds {
        limits: Some(limits),
        ..Bounds::default()
    };
    t.set_bounds(&bounds).unwrap();
    let before = t.memory();
    (0..10_000).for_each(|_| t.insert(&large(0, 5_000)).unwrap());
    assert!(t.memory() < before + 1_000, "{before}, {}", t.memory());
}

/// The weight of a table is that of one into which its objects were inserted, whatever has become
/// of them; that of an empty table is nothing.
#[test]
fn bytes_are_counted_whatever_is_done() {
    for (ordered, watched) in [(false, false), (true, false), (false, true)] {
        let larder = Larder::new();
        let new = || {
            let limited = builder(&larder, ordered).max_size(1 << 20);
            limited.ttl(YEARS).create().unwrap()
        };
        let t = new();
        let weight = |t: &Table| t.engine_table().weight().unwrap();
        let mut random = Random(7);
        let _snapshot = watched.then(|| t.snapshot().unwrap());
        for step in 0..3_000 {
            let k = random.below(40) as i64;
            let row = large(k, random.below(400) as usize);
            match random.below(14) {
                0..=2 => t.insert(&row).unwrap(),
                3 => t.insert_with(&row, None).unwrap(),
                4 => {
                    t.insert_with(&row, Some(Duration::ZERO)).unwrap();
                    if step % 2 == 0 {
                        while t.engine_table().remove_expired().unwrap().1 {}
                    }
                }
                5 => drop(t.insert_new(&row).unwrap()),
                6 => drop(t.delete(&key(k)).unwrap()),
                7 => drop(t.take(&key(k)).unwrap()),
                8 => drop(t.expire(&key(k), None).unwrap()),
                9 => drop(t.update(&key(k), 2, &term!(short)).unwrap()),
                10 => t.insert_all(&[row, large(k + 1, 300)]).unwrap(),
                11 => {
                    let done = larder.transaction(&[&t], |views| {
                        views[0].delete(&key(k + 1))?;
                        views[0].insert(&row)
                    });
                    done.unwrap();
                }
                12 if step % 97 == 0 => drop(t.clear().unwrap()),
                12 => drop(t.select_delete("[{{3,'_'},[],[true]}]").unwrap()),
                _ => drop(t.lookup(&key(k)).unwrap()),
            }
            if step % 50 == 0 {
                while t.engine_table().remove_expired().unwrap().1 {}
                let again = new();
                again.insert_all(&t.to_vec().unwrap()).unwrap();
                soon(|| t.len() == again.len());
                assert_eq!(weight(&t), weight(&again), "step {step}");
            }
        }
        t.to_vec()
            .unwrap()
            .iter()
            .for_each(|row| assert_eq!(t.delete(&key(first(row))), Ok(1)));
        while t.engine_table().remove_expired().unwrap().1 {}
        soon(|| t.is_empty() && weight(&t) == 0);
    }
}

/// Follows a feed: what it has is what the table has.
fn follow(feed: &mut Feed, rows: &mut BTreeMap<i64, Term>) -> usize {
    let mut evicted = 0;
    while let Some(commit) = feed.try_recv() {
        for event in commit.events {
            match event {
                Event::Insert(new) => assert_eq!(rows.insert(first(&new), new), None),
                Event::Replace(old, new) => {
                    assert_eq!(rows.insert(first(&new), new), Some(old));
                }
                Event::Evict(old) => {
                    assert_eq!(rows.remove(&first(&old)), Some(old));
                    evicted += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    evicted
}

#[test]
fn evictions_are_delivered_and_kept_for_snapshots() {
    for evict in POLICIES {
        let larder = Larder::new();
        let t = larder
            .table("t")
            .max_size(50)
            .evict(evict)
            .create()
            .unwrap();
        (0..50).for_each(|k| t.insert(&pair(k, 0)).unwrap());
        let options = FeedOptions {
            limit: 1 << 20,
            ..FeedOptions::default()
        };
        let (snapshot, mut feed) = t.snapshot_and_subscribe(&options).unwrap();
        let mut before = snapshot.to_vec().unwrap();
        before.sort();
        let mut rows: BTreeMap<_, _> = before.iter().map(|r| (first(r), r.clone())).collect();
        (50..500).for_each(|k| t.insert(&pair(k, 0)).unwrap());
        t.insert_all(&(500..700).map(|k| pair(k, 0)).collect::<Vec<_>>())
            .unwrap();
        let mut evicted = 0;
        soon(|| {
            evicted += follow(&mut feed, &mut rows);
            let mut now = t.to_vec().unwrap();
            now.sort();
            rows.values().eq(now.iter())
        });
        assert_full(&t, 50);
        assert_eq!(evicted, 700 - rows.len());
        let mut shown = snapshot.to_vec().unwrap();
        shown.sort();
        assert_eq!((shown, snapshot.len()), (before, 50));
    }
}

#[test]
fn a_transaction_that_has_read_what_was_evicted_runs_again() {
    let larder = Larder::new();
    let t = larder
        .table("t")
        .max_size(50)
        .evict(Evict::Lru)
        .create()
        .unwrap();
    t.insert(&pair(-1, 0)).unwrap();
    let mut found = Vec::new();
    let done = larder.transaction(&[&t], |views| {
        found.push(views[0].lookup(&key(-1))?.len());
        if found.len() == 1 {
            // Its only object that is not used again goes.
            for k in 0..500 {
                t.insert(&pair(k, 0)).unwrap();
            }
        }
        views[0].insert(&pair(1_000, 0))
    });
    done.unwrap();
    assert_eq!(found, [1, 0]);
    assert!(t.len() <= 50);
}

#[test]
fn limits_hold_under_concurrent_writers() {
    for (evict, ordered) in [
        (Evict::Lru, false),
        (Evict::TinyLfu, true),
        (Evict::Sieve, false),
        (Evict::None, false),
    ] {
        let larder = Larder::new();
        let t = builder(&larder, ordered).max_size(500).evict(evict);
        let t = t.create().unwrap();
        let options = FeedOptions {
            limit: 1 << 20,
            ..FeedOptions::default()
        };
        let mut feed = t.subscribe_with(&options).unwrap();
        let (writers, over) = (4, AtomicBool::new(false));
        std::thread::scope(|scope| {
            for seed in 0..writers {
                let t = &t;
                scope.spawn(move || {
                    let mut random = Random(seed + 1);
                    for _ in 0..5_000 {
                        let k = random.below(3_000) as i64;
                        match random.below(4) {
                            0 => drop(t.lookup(&key(k)).unwrap()),
                            _ => match t.insert(&pair(k, random.below(100) as i64)) {
                                Err(Error::Full(_)) if evict == Evict::None => {}
                                other => other.unwrap(),
                            },
                        }
                    }
                });
            }
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let len = t.len();
                    assert!(len <= 500 + writers as usize, "{len}");
                    over.store(len >= 490, Ordering::Relaxed);
                }
            });
        });
        assert!(
            t.len() <= 500 + usize::from(evict == Evict::None) * 3,
            "{}",
            t.len()
        );
        let mut rows = BTreeMap::new();
        assert_eq!(follow(&mut feed, &mut rows) > 0, evict != Evict::None);
        let mut now = t.to_vec().unwrap();
        now.sort();
        assert_eq!(rows.into_values().collect::<Vec<_>>(), now);
    }
}

#[test]
fn a_limit_that_is_lowered_holds_soon() {
    let larder = Larder::new();
    let t = larder
        .table("t")
        .max_size(5_000)
        .evict(Evict::TinyLfu)
        .create()
        .unwrap();
    (0..5_000).for_each(|k| t.insert(&pair(k, 0)).unwrap());
    let limits = Limits {
        max_size: Some(100),
        max_memory: None,
        evict: Evict::Lru,
    };
    let bounds = Bounds {
        limits: Some(limits),
        ..Bounds::default()
    };
    t.set_bounds(&bounds).unwrap();
    soon(|| t.len() <= 100);
    assert_eq!(t.engine_table().bounds().unwrap(), bounds);
}

/// What is recorded for the choice of victims is given back when there are fewer objects, and when
/// another policy is used.
#[test]
fn memory_of_heat_follows_the_limits() {
    let without = Larder::new().table("t").max_size(1 << 40).create().unwrap();
    (0..100_000).for_each(|k| without.insert(&pair(k, k)).unwrap());
    let rows = without.memory();
    for evict in POLICIES {
        let builder = Larder::new().table("t").max_size(150_000).evict(evict);
        let t = builder.create().unwrap();
        let fill = |to| (0..to).for_each(|k| t.insert(&pair(k, k)).unwrap());
        fill(100_000);
        let set = |max_size, evict| {
            let limits = Limits {
                max_size: Some(max_size),
                max_memory: None,
                evict,
            };
            let limits = Some(limits);
            t.set_bounds(&Bounds {
                limits,
                ..Bounds::default()
            })
        };
        // A limit is lowered.
        set(1_000, evict).unwrap();
        soon(|| t.len() == 1_000 && t.memory() < 300_000);
        // Rows are deleted.
        set(150_000, evict).unwrap();
        fill(100_000);
        assert!(t.memory() > 2_000_000);
        assert!((100..100_000).all(|k| t.delete(&key(k)) == Ok(1)));
        soon(|| t.memory() < 300_000);
        // The policy is changed. What is recorded for so many objects is made in the background.
        fill(100_000);
        soon(|| t.memory() > rows + 700_000);
        set(1 << 40, Evict::None).unwrap();
        soon(|| t.memory() < rows + 300_000);
    }
}

/// A table that is made while another one evicts much is served beside it. One try of three is
/// enough: the machine may stop this thread for as long as all evictions take.
#[test]
fn a_new_table_expires_beside_evictions() {
    assert!((0..3).any(|_| expires_beside_evictions()));
}

fn expires_beside_evictions() -> bool {
    let bounds = |most| Bounds {
        limits: Some(Limits {
            max_size: Some(most),
            max_memory: None,
            evict: Evict::Lru,
        }),
        ..Bounds::default()
    };
    let larder = Larder::new();
    let full = larder.table("full").bounds(bounds(400_000));
    let full = full.create().unwrap();
    (0..300_000).for_each(|k| full.insert(&pair(k, k)).unwrap());
    full.set_bounds(&bounds(10)).unwrap();
    soon(|| full.len() < 295_000);
    let short = larder.table("short").ttl(Duration::from_millis(20));
    let short = short.create().unwrap();
    (0..100).for_each(|k| short.insert(&pair(k, k)).unwrap());
    soon(|| short.is_empty());
    // The other one has still much to do.
    full.len() > 1_000
}

/// The table of so many rows that refuses further ones, with this lifetime in milliseconds.
fn refusing(most: usize, ttl: u64) -> Table {
    let limits = Limits {
        max_size: Some(most),
        max_memory: None,
        evict: Evict::None,
    };
    let bounds = Bounds {
        ttl: Some(ttl),
        idle: None,
        limits: Some(limits),
    };
    Larder::new().table("t").bounds(bounds).create().unwrap()
}

/// Expired rows make room for a list at once, however many they are, and however far the wheel has
/// to be turned.
#[test]
fn what_is_expired_makes_room_for_lists_however_long_ago() {
    for many in [1_000, 20_000] {
        let t = refusing(many, 60_000_000);
        (0..many as i64).for_each(|k| t.insert(&pair(k, k)).unwrap());
        advance_clock(100_000_000);
        let rows: Vec<Term> = (0..100).map(|k| pair(-1 - k, 0)).collect();
        t.insert_all(&rows).unwrap();
    }
}

/// A row that outgrows the table goes, and no other one, whichever thread evicts.
#[test]
fn a_row_that_outgrows_the_table_goes_first() {
    for _ in 0..4 {
        let builder = Larder::new().table("t").max_memory(200_000);
        let t = builder.evict(Evict::Lru).create().unwrap();
        (0..4_000).for_each(|k| t.insert(&pair(k, k)).unwrap());
        // `select_replace` evicts nothing by itself.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let zeros = "0,".repeat(400_000) + "0";
                let body = format!("{{{{5,{{const,{{{zeros}}}}}}}}}");
                let spec = format!("[{{{{5,'_'}},[],[{body}]}}]");
                assert_eq!(t.select_replace(spec.as_str()).unwrap(), 1);
            });
        });
        soon(|| t.engine_table().weight().unwrap() <= 200_000);
        assert_eq!(t.len(), 3_999);
    }
}

/// Timers of rows that were evicted or deleted don't stay until their time.
#[test]
fn timers_of_what_is_gone_go() {
    let timers = |t: &Table| {
        let stats = t.engine_table().stats();
        let timers = stats.more.iter().find(|(name, _)| *name == "timers");
        timers.map_or(0, |(_, timers)| *timers)
    };
    let builder = Larder::new().table("t").ttl(YEARS);
    let evicting = builder.max_size(1_000).evict(Evict::Lru).create().unwrap();
    let builder = Larder::new().table("t").ttl(YEARS);
    let deleting = builder.create().unwrap();
    for k in 0..100_000 {
        evicting.insert(&pair(k, k)).unwrap();
        deleting.insert(&pair(k, k)).unwrap();
        if k >= 1_000 {
            deleting.delete(&key(k - 1_000)).unwrap();
        }
    }
    for t in [evicting, deleting] {
        soon(|| timers(&t) <= 2 * 1_000 + 4_096);
        // Each row that is left has its timer, some of which the library may just be looking at.
        soon(|| timers(&t) >= 1_000);
        assert_eq!(t.len(), 1_000);
    }
}

/// Each of them is heavier than the table may be, so all of them go. Few are inserted so often that
/// both take as long, and have as much of a machine that does something else.
#[test]
fn many_objects_that_are_too_heavy_go_in_time() {
    let larder = Larder::new();
    let builder = larder.table("t").max_memory(500).evict(Evict::Lru);
    let t = builder.create().unwrap();
    let text = Term::list(vec![Term::from(7); 600]);
    let took = |rows: i64, often: u32| {
        let list: Vec<_> = (0..rows)
            .map(|n| Term::tuple([key(n), text.clone()]))
            .collect();
        let times = (0..3).map(|_| {
            let begun = Instant::now();
            for _ in 0..often {
                t.insert_all(&list).unwrap();
                assert!(t.is_empty());
            }
            begun.elapsed()
        });
        times.min().unwrap()
    };
    let (few, many) = (took(4_000, 16), took(64_000, 1));
    assert!(
        many < few * 5 / 2 + Duration::from_millis(200),
        "{few:?}, {many:?}"
    );
}

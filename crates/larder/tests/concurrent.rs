//! Many threads at once: what must hold whatever they do.

mod kinds;
mod lists;

use kinds::{table, KINDS};
use larder::api::{Larder, Table};
use larder::host::{Budget, Error, Step};
use larder_term::object::ObjectBuf;
use larder_term::{term, Term};
use lists::list;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

fn tables(kinds: &[&str]) -> Vec<Table> {
    let larder = Larder::new();
    let builder = |kind: &str| larder.table(kind).decentralized_counters();
    kinds
        .iter()
        .map(|kind| table(builder(kind), kind))
        .collect()
}

#[test]
fn no_counter_is_lost() {
    for t in tables(&["set", "ordered_set"]) {
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for i in 0..3000i64 {
                        let default = term!({x, 0, (Term::binary(&[7; 150]))});
                        t.add_or(&term!((i % 10)), 2, 1, &default).unwrap();
                    }
                });
            }
        });
        assert_eq!(t.len(), 10);
        for i in 0..10i64 {
            assert_eq!(t.add(&term!((i)), 2, 0).unwrap(), term!(1200));
        }
    }
}

/// Rows under keys 0..n that all carry the same mark.
fn marked(n: i64, mark: i64) -> Vec<Term> {
    (0..n).map(|i| term!({(i), (mark)})).collect()
}

#[test]
fn nobody_sees_half_a_list() {
    for t in tables(&["set", "ordered_set"]) {
        // Readers wait for a short list, and go on beside a long one.
        half_a_list(&t, 300, 60);
        half_a_list(&t, 3000, 20);
    }
}

fn half_a_list(t: &Table, n: i64, lists: i64) {
    t.insert_all(&marked(n, 0)).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|s| {
        s.spawn(|| {
            for mark in 1..lists {
                t.insert_all(&marked(n, mark)).unwrap();
            }
            // Ordering: Relaxed; a flag to stop by.
            done.store(true, Ordering::Relaxed);
        });
        for _ in 0..2 {
            s.spawn(|| {
                let mut seen = 0;
                // Ordering: Relaxed, as above.
                while !done.load(Ordering::Relaxed) {
                    for key in [0, n - 1, n / 2, 0, n / 3] {
                        // Once a list is seen, none of before is.
                        let (now, _) = under(t, key);
                        assert!(now >= seen, "{now} after {seen}");
                        seen = now;
                    }
                }
            });
        }
    });
}

#[test]
fn a_list_whose_starter_vanishes_is_finished_by_the_next() {
    for t in tables(&KINDS) {
        for n in [100usize, 1000] {
            t.clear().unwrap();
            let rows: Vec<Term> = (0..n as i64).map(|i| term!({(i), a})).collect();
            let table = t.engine_table();
            let who = table.owner();
            let mut job = table.begin_insert(who, list(&t, &rows), false).unwrap();
            let mut budget = Budget::new(10, Duration::from_secs(1));
            assert_eq!(job.step(&mut budget).unwrap(), Step::More);
            let mut key = Vec::new();
            table.encode_key(term!(99).as_ref(), &mut key);
            // A key's operations wait for a short list alone.
            let has = if n == 100 { Err(Error::Busy) } else { Ok(true) };
            assert_eq!(table.member(who, &key), has);
            assert_eq!(table.delete_all_objects(who), Err(Error::Busy));
            drop(job);
            assert!(t.first().unwrap().is_some());
            assert_eq!(t.len(), n);
        }
    }
}

/// An operation inserts the list's objects under its key in one piece, unless they are long.
#[test]
fn a_key_with_long_objects_waits_for_the_list() {
    for t in tables(&["bag", "duplicate_bag"]) {
        let long = |key: i64, n: i64, bytes: i64| term!({(key), (n), (Term::list(vec![term!(x); bytes as usize]))});
        let mut rows = marked(1_000, 1);
        rows.extend((0..100).map(|n| long(2_000, n, 1_000)));
        rows.extend((0..100).map(|n| long(2_001, n, 10)));
        rows.push(long(2_002, 0, 100_000));
        let table = t.engine_table();
        let who = table.owner();
        let mut job = table.begin_insert(who, list(&t, &rows), false).unwrap();
        let mut few = Budget::new(10, Duration::from_secs(60));
        assert_eq!(job.step(&mut few).unwrap(), Step::More);
        let member = |key: i64| {
            let mut bytes = Vec::new();
            table.encode_key(Term::from(key).as_ref(), &mut bytes);
            table.member(who, &bytes)
        };
        assert_eq!(member(2_000), Err(Error::Busy));
        assert_eq!((member(2_001), member(2_002)), (Ok(true), Ok(true)));
        while job.step(&mut Budget::unlimited()).unwrap() == Step::More {}
        assert_eq!((member(2_000), t.len()), (Ok(true), rows.len()));
    }
}

/// The number in the row under a key, if there is one; of a bag, their sum; and how many rows.
fn under(t: &Table, key: i64) -> (i64, usize) {
    let rows = t.lookup(&term!((key))).unwrap();
    let number = |row: &Term| row.as_ref().as_tuple()?.get(1)?.as_int();
    (rows.iter().filter_map(number).sum(), rows.len())
}

/// A list of ten thousand rows whose starter has gone after the first hundred. Threads, each with
/// keys of its own, find what they would find if all of it had been inserted when it was begun.
#[test]
fn operations_on_a_key_go_on_beside_a_list() {
    const N: i64 = 10_000;
    const THREADS: i64 = 3;
    for t in tables(&KINDS) {
        let unique = t.engine_table().kind().is_unique();
        t.insert(&term!({5000, 1})).unwrap();
        let rows: Vec<Term> = (0..N).map(|i| term!({(i % 9000), 1000, (i)})).collect();
        let table = t.engine_table();
        let who = table.owner();
        let mut job = table.begin_insert(who, list(&t, &rows), false).unwrap();
        let mut few = Budget::new(100, Duration::from_secs(60));
        assert_eq!(job.step(&mut few).unwrap(), Step::More);
        let touched = |key: &i64| (key / THREADS) % 7 == 0;
        thread::scope(|s| {
            for thread in 0..THREADS {
                let t = &t;
                s.spawn(move || {
                    let keys = (0..N + 50).filter(|key| key % THREADS == thread);
                    keys.filter(touched).for_each(|key| one_key(t, key, unique));
                });
            }
        });
        assert_eq!(table.delete_all_objects(who), Err(Error::Busy));
        let mut budget = Budget::unlimited();
        assert_eq!(job.step(&mut budget).unwrap(), Step::Done);
        for key in 0..N + 50 {
            let expected = if touched(&key) {
                (7, 1)
            } else {
                of_list(key, unique)
            };
            assert_eq!(under(&t, key), expected, "{key}");
        }
    }
}

/// What the list, and the row that was there before, leave under a key.
fn of_list(key: i64, unique: bool) -> (i64, usize) {
    let count = match key {
        9000.. => 0,
        1000.. => 1,
        _ if unique => 1,
        _ => 2,
    };
    let before = i64::from(!unique && key == 5000);
    (1000 * count + before, (count + before) as usize)
}

fn one_key(t: &Table, key: i64, unique: bool) {
    let (sum, count) = of_list(key, unique);
    assert_eq!(under(t, key), (sum, count), "{key}");
    assert_eq!(t.contains(&term!((key))).unwrap(), count > 0);
    assert_eq!(t.insert_new(&term!({(key), 7})).unwrap(), count == 0);
    if unique && count > 0 {
        assert_eq!(t.add(&term!((key)), 2, 1).unwrap(), Term::from(1001));
    }
    assert_eq!(t.take(&term!((key))).unwrap().len(), count.max(1));
    t.insert(&term!({(key), 7})).unwrap();
    assert_eq!(under(t, key), (7, 1));
}

/// While an `insert_new` looks for its keys, they are read, others are written, and writes of its
/// own wait.
#[test]
fn a_new_list_is_decided_at_one_instant() {
    for t in tables(&KINDS) {
        let table = t.engine_table();
        let who = table.owner();
        let encoded = |key: i64| {
            let mut bytes = Vec::new();
            table.encode_key(Term::from(key).as_ref(), &mut bytes);
            bytes
        };
        for there in [false, true] {
            t.clear().unwrap();
            if there {
                t.insert(&term!({1999, x})).unwrap();
            }
            let rows = list(&t, marked(2000, 1));
            let mut job = table.begin_insert(who, rows, true).unwrap();
            let mut few = Budget::new(100, Duration::from_secs(60));
            assert_eq!(job.step(&mut few).unwrap(), Step::More);
            assert_eq!(table.member(who, &encoded(7)), Ok(false));
            assert_eq!(table.delete(who, &encoded(7)), Err(Error::Busy));
            assert_eq!(table.delete(who, &encoded(2000)), Ok(0));
            t.insert(&term!({3000, x})).unwrap();
            assert_eq!(job.step(&mut Budget::unlimited()).unwrap(), Step::Done);
            assert_eq!(job.inserted(), !there);
            assert_eq!(t.len(), if there { 2 } else { 2001 });
        }
    }
}

/// A slice ends after so many bytes, however few the objects are.
#[test]
fn a_list_of_large_objects_takes_several_slices() {
    // Many elements, since a long one is stored out of line.
    let row = |i: i64| Term::tuple((0..100_000i32).map(|n| Term::from(i + i64::from(n))));
    for t in tables(&KINDS) {
        let rows: Vec<Term> = (0..20i64).map(row).collect();
        let table = t.engine_table();
        let list = list(&t, &rows);
        let mut job = table.begin_insert(table.owner(), list, false).unwrap();
        let mut slices = 1;
        let slice = || Budget::new(2_000, Duration::from_secs(60));
        while job.step(&mut slice()).unwrap() == Step::More {
            slices += 1;
        }
        assert!(slices >= 10, "{slices} slices");
        assert_eq!(t.len(), 20);
    }
}

#[test]
fn a_list_that_was_not_begun_is_nothing() {
    for t in tables(&KINDS) {
        let rows = marked(1000, 0);
        let job = t
            .engine_table()
            .begin_insert(t.engine_table().owner(), list(&t, &rows), false);
        drop(job.unwrap());
        assert!(t.is_empty());
    }
}

#[test]
fn of_many_new_lists_one_is_inserted() {
    for t in tables(&KINDS) {
        for round in 0..20i64 {
            t.clear().unwrap();
            let winners = AtomicUsize::new(0);
            thread::scope(|s| {
                for thread in 0..3i64 {
                    let (t, winners) = (&t, &winners);
                    s.spawn(move || {
                        let rows: Vec<Term> = (0..200i64)
                            .map(|i| term!({((i * (thread + 1)) % 200), (thread), (round)}))
                            .collect();
                        if t.insert_all_new(&rows).unwrap() {
                            // Ordering: Relaxed; read after the threads have ended.
                            winners.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            assert_eq!(winners.load(Ordering::Relaxed), 1);
            let first = t.to_vec().unwrap();
            let thread = |row: &Term| row.as_ref().as_tuple().unwrap().get(1).unwrap().as_int();
            assert!(first.iter().all(|row| thread(row) == thread(&first[0])));
        }
    }
}

#[test]
fn clearing_takes_everything_that_was_inserted_before() {
    for t in tables(&KINDS) {
        let taken = AtomicUsize::new(0);
        thread::scope(|s| {
            for thread in 0..2i64 {
                let t = &t;
                s.spawn(move || {
                    for i in 0..4000i64 {
                        let key = term!((i * 2 + thread));
                        t.insert(&term!({(key.clone()), x})).unwrap();
                        // A thread finds what it inserted, unless the table was cleared since.
                        t.lookup(&key).unwrap();
                    }
                });
            }
            let (t, taken) = (&t, &taken);
            s.spawn(move || {
                for _ in 0..200 {
                    // Ordering: Relaxed; read after the threads have ended.
                    taken.fetch_add(t.clear().unwrap(), Ordering::Relaxed);
                    assert!(t.select_count("[{'_',[],[true]}]").unwrap() <= 8000);
                }
            });
        });
        let left = t.to_vec().unwrap().len();
        assert_eq!(t.len(), left);
        assert!(taken.load(Ordering::Relaxed) + left <= 8000);
    }
}

#[test]
fn a_scan_meets_what_stays_exactly_once() {
    for t in tables(&KINDS) {
        let stay: Vec<Term> = (0..500i64).map(|i| term!({(i * 2), stays})).collect();
        t.insert_all(&stay).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|s| {
            s.spawn(|| {
                for round in 0..30i64 {
                    for i in 0..300i64 {
                        t.insert(&term!({(i * 2 + 1), (round)})).unwrap();
                    }
                    for i in 0..300i64 {
                        t.delete(&term!((i * 2 + 1))).unwrap();
                    }
                }
                // Ordering: Relaxed; a flag to stop by.
                done.store(true, Ordering::Relaxed);
            });
            s.spawn(|| {
                // Ordering: Relaxed, as above.
                while !done.load(Ordering::Relaxed) {
                    let mut found = t.select("[{{'$1',stays},[],['$1']}]").unwrap();
                    assert_eq!(found.len(), 500);
                    found.sort();
                    found.dedup();
                    assert_eq!(found.len(), 500);
                }
            });
        });
    }
}

#[test]
fn each_row_is_taken_once() {
    for t in tables(&KINDS) {
        let rows = marked(2000, 1);
        t.insert_all(&rows).unwrap();
        let taken = AtomicUsize::new(0);
        thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    for i in 0..2000i64 {
                        let n = t.take(&term!((i))).unwrap().len();
                        // Ordering: Relaxed; read after the threads have ended.
                        taken.fetch_add(n, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(taken.load(Ordering::Relaxed), 2000);
        assert!(t.is_empty());
    }
}

/// Rows change while others select and take them: each is given once, as it was when it went, which
/// is as the specification wants it.
#[test]
fn what_is_taken_is_what_went() {
    const ROWS: i64 = 400;
    for t in tables(&["set", "ordered_set"]) {
        let (added, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let taken = thread::scope(|s| {
            for thread in 0..2i64 {
                let (t, added, over) = (&t, &added, &over);
                s.spawn(move || {
                    let mut i = thread;
                    // Ordering: Relaxed; nothing else is read after it.
                    while !over.load(Ordering::Relaxed) {
                        i += 7;
                        let key = Term::from(i % ROWS);
                        t.add_or(&key, 2, 1, &term!({0, 0})).unwrap();
                        // Ordering: Relaxed; read after the threads have ended.
                        added.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let takers = [0, 1].map(|_| {
                s.spawn(|| {
                    let spec = "[{{'_','$1'},[{'=:=',{'rem','$1',2},0}],['$1']}]";
                    let mut sum = 0;
                    for _ in 0..1500 {
                        for n in t.select_take(spec).unwrap() {
                            let n = n.as_ref().as_int().unwrap();
                            assert_eq!(n % 2, 0);
                            sum += n;
                        }
                    }
                    sum
                })
            });
            let sums = takers.map(|taker| taker.join().unwrap());
            // Ordering: Relaxed; the writers may see it late.
            over.store(true, Ordering::Relaxed);
            sums.iter().sum::<i64>()
        });
        let left: i64 = t
            .select("[{{'_','$1'},[],['$1']}]")
            .unwrap()
            .iter()
            .filter_map(|n| n.as_ref().as_int())
            .sum();
        // Ordering: Relaxed; the threads have ended.
        assert_eq!(added.load(Ordering::Relaxed) as i64, taken + left);
    }
}

#[test]
fn owners_may_end_at_any_step() {
    let larder = Larder::new();
    let engine = larder.engine();
    for round in 0..200u64 {
        let (a, b) = (engine.register(), engine.register());
        let mut options = larder::host::Options::new(larder_term::Atom::new("t"));
        options.access = larder::Access::Public;
        options.heir = Some((b, term!(data)));
        let t = engine.create(options, a).unwrap();
        thread::scope(|s| {
            s.spawn(|| engine.down(a));
            s.spawn(|| {
                if round % 2 == 0 {
                    engine.down(b);
                } else {
                    let _ = t.give_away(a, b);
                }
            });
            s.spawn(|| {
                let mut object = ObjectBuf::new();
                t.encode_object(term!({a, 1}).as_ref(), &mut object)
                    .unwrap();
                while t.insert(a, &object).is_ok() && round % 2 == 0 && engine.is_alive(b) {}
            });
        });
        engine.down(a);
        engine.down(b);
        assert!(!t.is_alive());
        assert!(engine.owned_by(a).is_empty() && engine.owned_by(b).is_empty());
    }
    assert!(engine.all().is_empty());
}

#[test]
fn a_table_that_is_passed_on_is_among_all_tables() {
    let larder = Larder::new();
    let engine = larder.engine();
    let done = AtomicBool::new(false);
    let first = engine.register();
    let options = larder::host::Options::new(larder_term::Atom::new("t"));
    let stays = engine.create(options, first).unwrap();
    thread::scope(|s| {
        s.spawn(|| {
            let mut owner = first;
            for round in 0..30_000 {
                let next = engine.register();
                if round % 2 == 0 {
                    stays.give_away(owner, next).unwrap();
                } else {
                    stays.set_heir(owner, Some((next, term!(data)))).unwrap();
                }
                engine.down(owner);
                owner = next;
            }
            done.store(true, Ordering::Relaxed);
        });
        s.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert_eq!(engine.all().len(), 1);
            }
        });
    });
    assert!(stays.is_alive());
}

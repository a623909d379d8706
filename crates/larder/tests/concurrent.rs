//! Many threads at once: what must hold whatever they do.

use larder::api::{Larder, Table};
use larder::{Budget, Error, ObjectList, Step};
use larder_term::object::ObjectBuf;
use larder_term::{term, Term};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

fn tables(kinds: &[&'static str]) -> Vec<Table> {
    let larder = Larder::new();
    let make = |kind: &&str| {
        let builder = larder.table(kind).decentralized_counters();
        let builder = match *kind {
            "set" => builder.set(),
            "ordered_set" => builder.ordered_set(),
            "bag" => builder.bag(),
            _ => builder.duplicate_bag(),
        };
        builder.create().unwrap()
    };
    kinds.iter().map(make).collect()
}

const ALL: [&str; 4] = ["set", "ordered_set", "bag", "duplicate_bag"];

fn list(t: &Table, rows: &[Term]) -> ObjectList {
    let mut list = ObjectList::new();
    let mut object = ObjectBuf::new();
    for row in rows {
        t.engine_table()
            .encode_object(row.as_ref(), &mut object)
            .unwrap();
        list.push(&object);
    }
    list
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
        let n = 300;
        t.insert_all(&marked(n, 0)).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|s| {
            s.spawn(|| {
                for mark in 1..60 {
                    t.insert_all(&marked(n, mark)).unwrap();
                }
                // Ordering: Relaxed; a flag to stop by.
                done.store(true, Ordering::Relaxed);
            });
            for _ in 0..2 {
                s.spawn(|| {
                    let mark = |key: i64| {
                        let row = &t.lookup(&term!((key))).unwrap()[0];
                        row.as_ref()
                            .as_tuple()
                            .unwrap()
                            .get(1)
                            .unwrap()
                            .as_int()
                            .unwrap()
                    };
                    let mut seen = 0;
                    // Ordering: Relaxed, as above.
                    while !done.load(Ordering::Relaxed) {
                        for key in [0, n - 1, n / 2, 0, n / 3] {
                            // Once a list is seen, none of before is.
                            let now = mark(key);
                            assert!(now >= seen, "{now} after {seen}");
                            seen = now;
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn a_list_whose_starter_vanishes_is_finished_by_the_next() {
    for t in tables(&ALL) {
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
            assert_eq!(table.member(who, &key), Err(Error::Busy));
            assert_eq!(table.delete_all_objects(who), Err(Error::Busy));
            drop(job);
            assert!(t.contains(&term!(99)).unwrap());
            assert_eq!(t.len(), n);
        }
    }
}

#[test]
fn a_list_that_was_not_begun_is_nothing() {
    for t in tables(&ALL) {
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
    for t in tables(&ALL) {
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
    for t in tables(&ALL) {
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
    for t in tables(&ALL) {
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
    for t in tables(&ALL) {
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

#[test]
fn owners_may_end_at_any_step() {
    let larder = Larder::new();
    let engine = larder.engine();
    for round in 0..200u64 {
        let (a, b) = (engine.register(), engine.register());
        let mut options = larder::Options::new(larder_term::Atom::new("t"));
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
    let options = larder::Options::new(larder_term::Atom::new("t"));
    let stays = engine.create(options, first).unwrap();
    thread::scope(|s| {
        s.spawn(|| {
            let mut owner = first;
            for round in 0..3000 {
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

//! Interleavings of tables that a model checker chooses: the batch latch, the swap of
//! `delete_all_objects`, fixation, the registry, owners.
//!
//! Runs in builds with `--cfg larder_model` alone: `scripts/model.sh`; see
//! `larder_testing::model_checker`. The reaper is a thread of the system's, beside the checker's.
#![cfg(larder_model)]

mod histories;
mod versions;

use histories::table;
use larder::api::{Event, FeedOptions, Larder, Table};
use larder::host::{structures, with_local, FixTime, Options, OwnerId, Stored, TableKind};
use larder_index::sync::{plant, Fault};
use larder_index::{Direction, Quarantine};
use larder_term::{term, Atom, Term};
use larder_testing::history::of_threads;
use larder_testing::mix;
use larder_testing::model_checker::{
    alone, check, finds, goes_wrong, history, planted, rounds, Search,
};
use larder_testing::tables::TableSubject;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

#[global_allocator]
static HEAP: Quarantine = Quarantine;

fn tables(ordered: bool, structure: Option<&'static str>, threads: usize, steps: u64) {
    let larder = Larder::new();
    history(
        TableSubject(table(&larder, ordered, structure), 3),
        threads,
        steps,
    );
}

const SEARCH: [Search; 2] = [Search::Random(400), Search::Pct(300)];
/// Finds a planted fault.
const FAULT: [Search; 1] = [Search::Random(20_000)];

#[test]
fn operations_lists_and_clearing() {
    let _alone = alone();
    let small = [
        Search::Random(1_000),
        Search::Pct(700),
        Search::Bounded {
            changes: 2,
            programs: 2,
            most: 1_500,
        },
    ];
    for ordered in [false, true] {
        let kind = format!("tables, ordered: {ordered}");
        let name = format!("{kind}: two threads");
        check(&name, &small, move || tables(ordered, None, 2, 3));
        let name = format!("{kind}: three threads");
        check(&name, &SEARCH, move || tables(ordered, None, 3, 5));
    }
    for structure in structures() {
        let ordered = structure.types.contains(&"ordered_set");
        let search = [Search::Random(150), Search::Pct(100)];
        check(
            &format!("tables on {}", structure.name),
            &search,
            move || {
                tables(ordered, Some(structure.name), 3, 4);
            },
        );
    }
}

/// A list inserted beside a writer that doesn't revalidate the state word shows half of it.
#[test]
fn a_write_that_does_not_revalidate_is_found() {
    let _alone = alone();
    let program = || tables(false, None, 3, 6);
    assert!(finds(Fault::NotRevalidated, &FAULT, program));
}

/// An object of a list that an operation on its key inserts out of turn, and the list once more,
/// undoes what the operation did.
#[test]
fn an_object_that_is_not_noted_is_found() {
    let _alone = alone();
    let program = || tables(false, None, 3, 6);
    assert!(finds(Fault::Unsettled, &FAULT, program));
}

/// Not a test: histories of real threads, with the fault planted. Run by
/// `a_write_that_does_not_revalidate_shows_in_histories`.
#[test]
#[ignore = "run by another test"]
fn planted_history() {
    plant(Fault::NotRevalidated, planted().is_some());
    let larder = Larder::new();
    for round in rounds() {
        let subject = TableSubject(table(&larder, false, None), 3);
        of_threads(&subject, 3, 20, mix(round)).expect("linearizable");
    }
}

/// The same fault shows in histories of real threads.
#[test]
fn a_write_that_does_not_revalidate_shows_in_histories() {
    assert!(!goes_wrong("planted_history", None));
    assert!(goes_wrong("planted_history", Some("no revalidation")));
}

/// A key that is deleted from a fixed table is known to `next`, however it went.
#[test]
fn fixation() {
    let _alone = alone();
    for bag in [false, true] {
        fixation_of(bag);
    }
}

fn fixation_of(bag: bool) {
    check(
        &format!("fixation, bag: {bag}"),
        &[Search::Random(2_000), Search::Pct(1_500)],
        move || {
            let larder = Larder::new();
            let builder = larder.table("t");
            let builder = if bag { builder.bag() } else { builder.set() };
            let t = Arc::new(builder.create().expect("a table"));
            for k in 0..4i64 {
                t.insert(&term!({(k), 0})).expect("a table");
            }
            let deleter = |all: bool| {
                let t = t.clone();
                shuttle::thread::spawn(move || {
                    if all {
                        t.clear().expect("a table");
                    } else {
                        t.delete(&term!(1)).expect("a table");
                    }
                })
            };
            let deleters = [deleter(false), deleter(true)];
            let me = larder.owner();
            t.engine_table()
                .safe_fix(me, FixTime::default())
                .expect("a table");
            if t.contains(&term!(1)).expect("a table") {
                t.next(&term!(1))
                    .expect("a key that was there when the table was fixed");
            }
            for deleter in deleters {
                deleter.join().expect("no panic");
            }
            t.engine_table().safe_unfix(me).expect("a table");
            assert!(
                t.next(&term!(1)).is_err()
                    && t.engine_table().info().is_some_and(|info| !info.fixed)
            );
        },
    );
}

/// Of two insertions of new objects with a common key, one of which is a list's, one succeeds.
#[test]
fn new_objects_of_a_bag() {
    let _alone = alone();
    check(
        "new objects of a bag",
        &[Search::Random(3_000), Search::Pct(2_000)],
        || {
            let larder = Larder::new();
            let t = Arc::new(larder.table("t").bag().create().expect("a table"));
            let one = t.clone();
            let one = shuttle::thread::spawn(move || one.insert_new(&term!({1, a})));
            let list = [term!({1, b}), term!({2, b})];
            let all = t.insert_all_new(&list).expect("a table");
            assert!(all ^ one.join().expect("no panic").expect("a table"));
        },
    );
}

/// Changes a table beside what the caller goes on to do; the flag says that the change is over.
fn beside(
    t: &Arc<Table>,
    change: impl FnOnce(&Table) + Send + 'static,
) -> (Arc<AtomicBool>, shuttle::thread::JoinHandle<()>) {
    let (t, over) = (t.clone(), Arc::new(AtomicBool::new(false)));
    let tell = over.clone();
    let thread = shuttle::thread::spawn(move || {
        change(&t);
        tell.store(true, Ordering::SeqCst);
    });
    (over, thread)
}

/// A walk that begins its step after a table was emptied finds nothing of what was there.
#[test]
fn walks_and_clearing() {
    let _alone = alone();
    check(
        "walks and clearing",
        &[Search::Random(3_000), Search::Pct(2_000)],
        || {
            let larder = Larder::new();
            let t = Arc::new(larder.table("t").ordered_set().create().expect("a table"));
            for k in 0..8i64 {
                t.insert(&term!({(k), 0})).expect("a table");
            }
            let (cleared, clearer) = beside(&t, |t| {
                t.clear().expect("a table");
            });
            let mut key = t.first().expect("a table");
            while let Some(k) = key {
                let over = cleared.load(Ordering::SeqCst);
                key = t.next(&k).expect("an ordered table");
                assert!(!over || key.is_none(), "a row that went before the step");
            }
            clearer.join().expect("no panic");
        },
    );
}

/// What a fold has read ahead of a bag is not unchanged once a change is over.
#[test]
fn folds_of_a_bag() {
    let _alone = alone();
    check(
        "folds of a bag",
        &[Search::Random(3_000), Search::Pct(2_000)],
        || {
            let larder = Larder::new();
            let t = Arc::new(larder.table("t").bag().create().expect("a table"));
            for k in 1..3i64 {
                t.insert(&term!({(k), a})).expect("a table");
            }
            let (changed, deleter) = beside(&t, |t| {
                t.delete(&term!(2)).expect("a table");
            });
            let (mut shown, table) = (0, t.engine_table());
            let mut show = |_: Stored<'_>, _: bool| shown += 1;
            let watched = with_local(|local| {
                table.fold(
                    local,
                    larder.owner(),
                    None,
                    Direction::Forward,
                    9,
                    &mut show,
                )
            });
            let watched = watched.expect("a table");
            let over = changed.load(Ordering::SeqCst);
            assert!(!over || !table.is_unchanged(watched.stamp) || shown == 1);
            deleter.join().expect("no panic");
        },
    );
}

/// A name belongs to one table at a time, and is free when that is dropped. Nobody finds a table
/// that is gone for good.
#[test]
fn registry() {
    let _alone = alone();
    check(
        "registry",
        &[Search::Random(2_000), Search::Pct(1_500)],
        || {
            let larder = Larder::new();
            let maker = || {
                let larder = larder.clone();
                shuttle::thread::spawn(move || {
                    let made = larder.table("registry").named().create().ok();
                    if let Some(found) = larder.find("registry") {
                        // It may be another's, and be dropped by now; alive or not, its row is one
                        // row.
                        found.insert(&term!({1, 2})).ok();
                        assert!(found.len() <= 1);
                    }
                    made.map(|t| {
                        assert_eq!(larder.find("registry").map(|t| t.len() <= 1), Some(true));
                        t.drop_table().expect("it is this thread's");
                        assert!(t.insert(&term!({1, 2})).is_err());
                    })
                    .is_some()
                })
            };
            let makers = [maker(), maker(), maker()];
            let made = makers.map(|maker| maker.join().expect("no panic"));
            assert!(made.contains(&true), "one at least finds the name free");
            assert!(larder.find("registry").is_none());
            assert!(larder.table("registry").named().create().is_ok());
        },
    );
}

/// Owners that end while they make tables, give them away and inherit: in the end no table that is
/// found belongs to one that ended.
#[test]
fn owners() {
    let _alone = alone();
    check(
        "owners",
        &[Search::Random(2_000), Search::Pct(1_500)],
        || {
            let engine = Larder::new().engine().clone();
            let (one, two, heir) = (engine.register(), engine.register(), engine.register());
            let name = Atom::new("owners");
            let options = move |named: bool| {
                let mut options = Options::new(name);
                options.kind = TableKind::Set;
                options.named = named;
                options.heir = Some((heir, term!(1)));
                options
            };
            let first = engine.create(options(true), one).expect("a table");
            let spawn = |f: Box<dyn FnOnce() + Send>| shuttle::thread::spawn(f);
            let (e, t) = (engine.clone(), first.clone());
            let given = spawn(Box::new(move || {
                t.give_away(one, two).ok();
                e.create(options(false), one).ok();
            }));
            let ends = |who: OwnerId| {
                let engine = engine.clone();
                spawn(Box::new(move || engine.down(who)))
            };
            let threads = [given, ends(one), ends(two)];
            for thread in threads {
                thread.join().expect("no panic");
            }
            for table in engine.all() {
                assert!(engine.is_alive(table.owner()), "{table:?}");
            }
            assert_eq!(first.is_alive(), engine.find(name).is_some());
            assert!(!first.is_alive() || first.owner() == heir);
            engine.down(heir);
            assert!(engine.find(name).is_none() && engine.all().is_empty());
        },
    );
}

/// A snapshot, changed by what a subscription tells, becomes what the table is: no change is
/// missing, and none is delivered twice; in a table that is plain, or `watched` as it has a
/// snapshot.
fn mirror(bag: bool, watched: bool) {
    let larder = Larder::new();
    let builder = larder.table("t");
    let builder = if bag { builder.bag() } else { builder.set() };
    let t = Arc::new(builder.create().expect("a table"));
    t.insert(&term!({1, a})).expect("a table");
    let _snapshot = watched.then(|| t.snapshot().expect("a table"));
    let (_, one) = beside(&t, |t| {
        t.insert(&term!({1, b})).expect("a table");
        t.delete(&term!(2)).expect("a table");
        t.insert(&term!({2, c})).expect("a table");
    });
    let (_, two) = beside(&t, |t| {
        t.insert_all(&[term!({1, d}), term!({2, d})])
            .expect("a table");
        t.clear().expect("a table");
        t.insert(&term!({1, e})).expect("a table");
    });
    let feed = t.snapshot_and_subscribe(&FeedOptions::default());
    let (snapshot, mut feed) = feed.expect("a table");
    let mut rows = snapshot.to_vec().expect("a snapshot");
    for thread in [one, two] {
        thread.join().expect("no panic");
    }
    let remove = |rows: &mut Vec<Term>, row: &Term| {
        let there = rows.iter().position(|other| other == row);
        rows.swap_remove(there.expect("what goes was there"));
    };
    let mut last = 0;
    while let Some(commit) = feed.try_recv() {
        assert!(commit.seq > last, "Seqs grow");
        last = commit.seq;
        for event in commit.events {
            match event {
                Event::Insert(new) => rows.push(new),
                Event::Replace(old, new) => {
                    remove(&mut rows, &old);
                    rows.push(new);
                }
                Event::Delete(old) => remove(&mut rows, &old),
                Event::Clear => rows.clear(),
                Event::Expire(_) | Event::Evict(_) | Event::Overflow(_) | Event::Gone => {
                    panic!("{event:?}")
                }
            }
        }
    }
    let mut now = t.to_vec().expect("a table");
    rows.sort();
    now.sort();
    assert_eq!(rows, now);
}

#[test]
fn feeds() {
    let _alone = alone();
    for (bag, watched) in [(false, false), (false, true), (true, false), (true, true)] {
        let name = format!("feeds, bag: {bag}, watched: {watched}");
        let search = [Search::Random(1_500), Search::Pct(1_000)];
        check(&name, &search, move || mirror(bag, watched));
    }
}

/// A write that looks for followers before it reads the clock is delivered to nobody, and is no
/// part of the snapshot of one who comes in between.
#[test]
fn a_look_for_followers_that_is_too_early_is_found() {
    let _alone = alone();
    let search = [Search::Pct(20_000)];
    assert!(finds(Fault::EarlyLook, &search, || mirror(false, true)));
}

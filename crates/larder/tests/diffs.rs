//! What differs between two snapshots is what a comparison of all their objects finds.

mod kinds;

use kinds::{table, KINDS};
use larder::api::{Event, Larder, Snapshot};
use larder::host::{Budget, Step};
use larder::{Direction, Error};
use larder_term::{term, Term};
use std::sync::atomic::{AtomicBool, Ordering};

fn objects(snapshot: &Snapshot) -> Vec<Term> {
    let rows = snapshot.all_rows(Direction::Forward).unwrap();
    let mut all = rows.rest().unwrap();
    all.sort();
    all
}

/// The objects of the second snapshot, made of those of the first by what differs.
fn applied(old: &Snapshot, diff: Vec<Event>) -> Vec<Term> {
    let mut all = objects(old);
    let mut take = |object: &Term| {
        let i = all.iter().position(|other| other == object);
        all.remove(i.expect("what is taken away was there"));
    };
    let mut added = Vec::new();
    for event in diff {
        match event {
            Event::Insert(new) => added.push(new),
            Event::Replace(old, new) => {
                assert_ne!(old, new);
                take(&old);
                added.push(new);
            }
            Event::Delete(old) => take(&old),
            other => panic!("{other:?} is no difference"),
        }
    }
    all.extend(added);
    all.sort();
    all
}

fn check(old: &Snapshot, new: &Snapshot) {
    assert_eq!(applied(old, old.diff(new).unwrap()), objects(new));
    assert_eq!(applied(new, new.diff(old).unwrap()), objects(old));
    assert_eq!(old.diff(old).unwrap(), []);
}

/// Writers are in the middle of a write when snapshots are taken.
#[test]
fn writes_under_way_are_found() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        let stop = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for writer in 0..3_i64 {
                let (t, stop) = (&t, &stop);
                threads.spawn(move || {
                    for i in 0.. {
                        // Each key loses what it has before it gets more.
                        let key = (i / 3 * 7 + writer) % 40;
                        match i % 3 {
                            0 => drop(t.delete(&Term::from(key)).unwrap()),
                            _ => t.insert(&term!({ (key), (i % 11) })).unwrap(),
                        }
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            let kept = t.snapshot().unwrap();
            for _ in 0..100 {
                let (old, new) = (t.snapshot().unwrap(), t.snapshot().unwrap());
                // At once, before a write that is part of the newer one can have ended.
                let diff = old.diff(&new).unwrap();
                assert_eq!(applied(&old, diff), objects(&new));
                check(&kept, &new);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_table_that_was_emptied_is_compared_as_a_whole() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        for i in 0..3000_i64 {
            t.insert(&term!({ (i % 2000), (i) })).unwrap();
        }
        let full = t.snapshot().unwrap();
        t.clear().unwrap();
        let empty = t.snapshot().unwrap();
        for i in 1000..2500_i64 {
            t.insert(&term!({ (i), (i) })).unwrap();
        }
        let again = t.snapshot().unwrap();
        check(&full, &empty);
        check(&empty, &again);
        check(&full, &again);
        let other = table(larder.table(kind), kind);
        let other = other.snapshot().unwrap();
        assert_eq!(full.diff(&other).unwrap_err(), Error::TableType);
    }
}

/// What the snapshots lack and their table has is passed over in slices.
#[test]
fn a_table_that_has_grown_since_is_compared_in_slices() {
    for is_ordered in [false, true] {
        let builder = Larder::new().table("t");
        let builder = match is_ordered {
            true => builder.ordered_set(),
            false => builder,
        };
        let t = builder.create().unwrap();
        t.insert(&term!({1, 1})).unwrap();
        let old = t.snapshot().unwrap();
        t.clear().unwrap();
        let new = t.snapshot().unwrap();
        (0..50_000).for_each(|k| t.insert(&term!({(k), 1})).unwrap());
        let (old, new) = (old.engine_table(), new.engine_table());
        let mut job = old.diff(new, old.owner()).unwrap();
        let mut slices = 1;
        while job.step(&mut Budget::slice(), &mut |_| ()).unwrap() == Step::More {
            slices += 1;
        }
        assert!(slices > 10, "{slices}");
    }
}

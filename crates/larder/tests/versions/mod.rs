//! Interleavings of snapshots with what changes their tables.

use super::histories::table;
use larder::api::{Larder, Snapshot, Table};
use larder_index::sync::Fault;
use larder_term::{term, Term};
use larder_testing::model_checker::{alone, check, finds, history, Search};
use larder_testing::tables::{TableSubject, WithSnapshots};
use std::sync::Arc;

/// A history of a table with snapshots; all operations in so many are on all keys.
fn tables(ordered: bool, threads: usize, steps: u64, many: u64) {
    let larder = Larder::new();
    let rows = table(&larder, ordered, None);
    history(WithSnapshots(TableSubject(rows, many), 3), threads, steps);
}

#[test]
fn operations_lists_clearing_and_snapshots() {
    let _alone = alone();
    let small = [
        Search::Random(1_000),
        Search::Pct(700),
        Search::Bounded {
            changes: 2,
            programs: 2,
            most: 700,
        },
    ];
    for ordered in [false, true] {
        let kind = format!("snapshots, ordered: {ordered}");
        let name = format!("{kind}: two threads");
        check(&name, &small, move || tables(ordered, 2, 3, 4));
        let name = format!("{kind}: single writes");
        check(&name, &small, move || tables(ordered, 2, 4, 1 << 20));
        let search = [Search::Random(500), Search::Pct(400)];
        let name = format!("{kind}: three threads");
        check(&name, &search, move || tables(ordered, 3, 4, 4));
    }
}

fn found(fault: Fault) {
    let _alone = alone();
    let search = [Search::Random(30_000)];
    let program = || tables(false, 3, 4, 1 << 20);
    assert!(finds(fault, &search, program));
}

/// A snapshot that has been cut, and a writer that takes it for none.
#[test]
fn a_lost_version_is_found() {
    found(Fault::LostVersion);
}

/// A reader of a snapshot between a change and the keeping of what was there.
#[test]
fn a_late_version_is_found() {
    found(Fault::LateVersion);
}

/// A writer that waits for its lock with a number from before the cut.
#[test]
fn a_clock_that_is_read_early_is_found() {
    found(Fault::EarlyClock);
}

/// Writes that find a mark, and others whose entries lie where one with a mark lay. Each of two
/// snapshots shows what there was.
fn marked(ordered: bool) {
    let (larder, rows) = (Larder::new(), 6i64);
    let t = table(&larder, ordered, None).0;
    let put = |key: i64, n: i64| t.insert(&term!({(key), (n)})).expect("a table");
    let values = |t: &Table| {
        let row = |key| t.lookup(&term!((key))).expect("a table");
        (0..rows).map(row).collect::<Vec<_>>()
    };
    (0..rows).for_each(|key| put(key, 0));
    let (was, first) = (values(&t), t.snapshot().expect("a table"));
    put(0, 1);
    put(0, 2);
    // The last entry moves to where the first was.
    t.delete(&term!(0)).expect("a table");
    put(rows - 1, 3);
    put(1, 4);
    let (then, second) = (values(&t), t.snapshot().expect("a table"));
    // The leaf gets the mark of the second snapshot. This entry has that of the first one.
    put(2, 5);
    put(1, 6);
    assert_eq!(values(&first), was);
    assert_eq!(values(&second), then);
}

#[test]
fn marks_that_stay_are_found() {
    let _alone = alone();
    let once = [Search::Random(1)];
    for ordered in [false, true] {
        let name = format!("marks, ordered: {ordered}");
        check(&name, &once, move || marked(ordered));
        let program = move || marked(ordered);
        assert!(finds(Fault::OldMarks, &once, program));
    }
    assert!(finds(Fault::MovedMark, &once, || marked(false)));
}

/// The value of the only row, -1 if there is none.
fn value(table: &Table) -> i64 {
    let rows = table.lookup(&term!(0)).expect("a table");
    let row = rows
        .first()
        .map(|row| row.as_ref().as_tuple().expect("a tuple"));
    row.and_then(|row| row.get(1))
        .and_then(|n| n.as_int())
        .unwrap_or(-1)
}

/// Each number comes into one table and then into another. Two threads take snapshots of both: of
/// one instant each, and what was kept for one stays while the other is released.
#[test]
fn two_tables_at_one_cut() {
    let _alone = alone();
    let search = [
        Search::Random(2_000),
        Search::Pct(1_500),
        Search::Bounded {
            changes: 2,
            programs: 1,
            most: 1_000,
        },
    ];
    for ordered in [false, true] {
        check(
            &format!("two tables, ordered: {ordered}"),
            &search,
            move || {
                let larder = Larder::new();
                let pair = Arc::new([(); 2].map(|()| table(&larder, ordered, None).0));
                let writes = pair.clone();
                let writer = shuttle::thread::spawn(move || {
                    for n in 0..3i64 {
                        for table in writes.iter() {
                            table.insert(&term!({0, (n)})).expect("a table");
                        }
                    }
                });
                let reader = || {
                    let (larder, pair) = (larder.clone(), pair.clone());
                    shuttle::thread::spawn(move || {
                        for _ in 0..2 {
                            let both = larder.snapshot(&[&pair[0], &pair[1]]).expect("tables");
                            let [one, two] = [0, 1].map(|i: usize| value(&both[i]));
                            assert!(one == two || one == two + 1, "{one} {two}");
                            assert_eq!([1, 0].map(|i: usize| value(&both[i])), [two, one], "again");
                        }
                    })
                };
                for thread in [writer, reader(), reader()] {
                    thread.join().expect("no panic");
                }
            },
        );
    }
}

/// What a snapshot's table has, by key and by scan; they are the same.
fn objects(snapshot: &Snapshot) -> Vec<Term> {
    let by_key = snapshot.lookup(&term!(0)).expect("a snapshot");
    assert_eq!(snapshot.to_vec().expect("a snapshot"), by_key);
    by_key
}

/// The objects of a bag's key, which become too many for a list, and few again. A snapshot has the
/// first so many, as they came.
#[test]
fn a_key_of_a_bag_that_grows() {
    let _alone = alone();
    check(
        "snapshots of a bag",
        &[Search::Random(300), Search::Pct(200)],
        || {
            let larder = Larder::new();
            let t = Arc::new(larder.table("t").bag().create().expect("a table"));
            // A list has room for so many, or for a few more.
            let (from, to) = (60i64, 70i64);
            let row = |n: i64| term!({0, (n), "some text, so that it is long"});
            let rows = |n: i64| (0..n).map(row).collect::<Vec<_>>();
            t.insert_all(&rows(from)).expect("a table");
            let writes = t.clone();
            let writer = shuttle::thread::spawn(move || {
                for n in from..to {
                    writes.insert(&row(n)).expect("a table");
                }
                writes.delete(&term!(0)).expect("a table");
            });
            let first = t.snapshot().expect("a table");
            let had = objects(&first);
            assert!(
                had.is_empty() || *had == rows(had.len() as i64),
                "{}",
                had.len()
            );
            let second = t.snapshot().expect("a table");
            let later = objects(&second);
            assert!(later.is_empty() || later.len() >= had.len());
            drop(second);
            writer.join().expect("no panic");
            assert_eq!(objects(&first), had, "again");
        },
    );
}

/// A snapshot stays while its table is emptied, filled and dropped.
#[test]
fn what_becomes_of_a_table() {
    let _alone = alone();
    check(
        "snapshots of tables that go",
        &[Search::Random(2_000), Search::Pct(1_500)],
        || {
            let larder = Larder::new();
            let t = Arc::new(table(&larder, true, None).0);
            t.insert(&term!({0, 1})).expect("a table");
            let changes = t.clone();
            let changer = shuttle::thread::spawn(move || {
                changes.clear().expect("a table");
                changes.insert(&term!({0, 2})).expect("a table");
                changes.drop_table().expect("a table");
            });
            let taken = (0..2).map_while(|_| t.snapshot().ok()).collect::<Vec<_>>();
            let seen: Vec<_> = taken.iter().map(|snapshot| value(snapshot)).collect();
            assert!(seen.iter().all(|n| [-1, 1, 2].contains(n)), "{seen:?}");
            assert!(
                seen != [2, 1] && seen != [-1, 1] && seen != [2, -1],
                "{seen:?}"
            );
            changer.join().expect("no panic");
            let again: Vec<_> = taken.iter().map(|snapshot| value(snapshot)).collect();
            assert_eq!(seen, again);
        },
    );
}

//! Snapshots: each shows its table as it was at its instant, whatever becomes of the table.

mod changes;
mod kinds;
mod lists;

use changes::change;
use kinds::{table, KINDS};
use larder::api::{Index, Larder, MatchSpec, Snapshot, Table};
use larder::host::{Budget, Context, ScanStep, Step};
use larder::{Direction, Error, TableKind};
use larder_term::{term, Term};
use larder_testing::environment::{soak, times};
use larder_testing::random::Random;
use larder_testing::sorted;
use larder_testing::threads::Stop;
use lists::list;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::Duration;

/// All objects, in the table's order.
fn all(table: &Table) -> Vec<Term> {
    let mut rows = table.all_rows(Direction::Forward).unwrap();
    rows.page(1 << 20).unwrap()
}

/// Fails at the first difference, with what is around it.
fn same(got: &[Term], expected: &[Term]) {
    if let Some(i) = (0..got.len().max(expected.len())).find(|&i| got.get(i) != expected.get(i)) {
        let around = |rows: &[Term]| {
            let rows: Vec<String> = rows
                .iter()
                .skip(i.saturating_sub(3))
                .take(8)
                .map(|row| row.to_string().chars().take(40).collect())
                .collect();
            rows.join(" ")
        };
        panic!(
            "row {i} of {} and {}: {} instead of {}",
            got.len(),
            expected.len(),
            around(got),
            around(expected)
        );
    }
}

/// What a snapshot shows by each way of reading is what its table had.
fn check(snapshot: &Table, had: &[Term], random: &mut Random, keys: u64) {
    same(&all(snapshot), had);
    assert_eq!(sorted(snapshot.to_vec().unwrap()), sorted(had.to_vec()));
    assert_eq!(snapshot.len(), had.len());
    let mut backward = snapshot
        .all_rows(Direction::Backward)
        .unwrap()
        .rest()
        .unwrap();
    if snapshot.engine_table().kind() == TableKind::OrderedSet {
        backward.reverse();
        assert_eq!(backward, had, "backward");
    } else {
        assert_eq!(sorted(backward), sorted(had.to_vec()), "backward");
    }
    let mut paged = Vec::new();
    let mut rows = snapshot.all_rows(Direction::Forward).unwrap();
    loop {
        let page = rows.page(1 + random.below(9) as usize).unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, had, "paged");
    assert_eq!(
        snapshot.select_count("[{'_',[],[true]}]").unwrap(),
        had.len() as u64
    );
    for _ in 0..20 {
        let key = Term::from(random.below(keys) as i64);
        let rows: Vec<Term> = had
            .iter()
            .filter(|row| Term::from(row.as_ref().as_tuple().unwrap().get(0).unwrap()) == key)
            .cloned()
            .collect();
        assert_eq!(snapshot.contains(&key).unwrap(), !rows.is_empty());
        assert_eq!(snapshot.lookup(&key).unwrap(), rows);
    }
    let mut walked = Vec::new();
    let mut key = snapshot.first().unwrap();
    while let Some(k) = key {
        walked.extend(snapshot.lookup(&k).unwrap());
        key = snapshot.next(&k).unwrap();
    }
    assert_eq!(walked, had, "walked");
}

#[test]
fn snapshots_show_what_there_was() {
    for kind in KINDS {
        for seed in 1..=6u64 {
            eprintln!("{kind}, seed {seed}");
            let larder = Larder::new();
            let t = table(larder.table(kind), kind);
            let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed);
            let keys = [8, 100, 5_000][seed as usize % 3];
            let mut live: Vec<(Snapshot, Vec<Term>)> = Vec::new();
            for _ in 0..1_500 {
                change(&t, &mut random, keys);
                if random.below(50) == 0 {
                    live.push((t.snapshot().unwrap(), all(&t)));
                }
                if live.len() > random.below(12) as usize {
                    let (snapshot, had) =
                        live.swap_remove(random.below(live.len() as u64) as usize);
                    check(&snapshot, &had, &mut random, keys);
                }
            }
            t.drop_table().unwrap();
            for (snapshot, had) in &live {
                check(snapshot, had, &mut random, keys);
            }
        }
    }
}

/// Removed keys come back where they were, over many leaves: also those that lay after the last
/// entry that is left in a leaf, where a read of the table skips to the next leaf.
#[test]
fn removed_keys_are_in_their_order() {
    let larder = Larder::new();
    for kind in KINDS {
        for pages in [1, 7] {
            let table = table(larder.table(kind), kind);
            for i in 0..4000 {
                table.insert(&term!({(i), (i)})).unwrap();
            }
            let had = all(&table);
            let snapshot = table.snapshot().unwrap();
            let mut rows = snapshot.all_rows(Direction::Forward).unwrap();
            let mut got = rows.page(100).unwrap();
            // Every second row goes, and a run of rows that has whole leaves.
            for (i, row) in had.iter().enumerate() {
                if i % 2 == 1 || (100..1000).contains(&i) {
                    table.delete(&Term::from(number(row))).unwrap();
                }
            }
            loop {
                let page = rows.page(pages).unwrap();
                if page.is_empty() {
                    break;
                }
                got.extend(page);
            }
            same(&got, &had);
            // From the end to the beginning, so that no step continues the last one.
            for pair in had.windows(2).rev() {
                let next = snapshot.next(&Term::from(number(&pair[0]))).unwrap();
                assert_eq!(next, Some(Term::from(number(&pair[1]))), "{kind}");
            }
            table.drop_table().unwrap();
        }
    }
}

/// Snapshots end in any order, with writes of the same keys and of others in between: the newest
/// may go while an older one lives.
#[test]
fn snapshots_end_in_any_order() {
    const KEYS: u64 = 40;
    for kind in KINDS {
        for indexed in [false, true] {
            let t = table(Larder::new().table(kind), kind);
            if indexed {
                t.add_index(&Index::element("v", 2)).unwrap();
            }
            let mut random = Random(0x9E37_79B9_7F4A_7C15);
            let mut alive: Vec<(Snapshot, Vec<Term>)> = Vec::new();
            for step in 0..times(2_000) {
                let (key, value) = (random.below(KEYS) as i64, step as i64);
                match random.below(12) {
                    0 => alive.push((t.snapshot().unwrap(), sorted(t.to_vec().unwrap()))),
                    // The newest, or any other one.
                    1 | 2 if !alive.is_empty() => {
                        let last = alive.len() - 1;
                        let i = [last, random.below(alive.len() as u64) as usize][step % 2];
                        let (snapshot, had) = alive.remove(i);
                        assert_eq!(sorted(snapshot.to_vec().unwrap()), had, "{kind}");
                    }
                    3 => {
                        t.delete(&Term::from(key)).unwrap();
                    }
                    _ => t.insert(&term!({ (key), (value) })).unwrap(),
                }
                if alive.len() > 5 {
                    alive.pop();
                }
            }
            for (snapshot, had) in alive {
                assert_eq!(sorted(snapshot.to_vec().unwrap()), had, "{kind}");
            }
        }
    }
}

#[test]
fn writes_are_refused() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        t.insert(&term!({a, 1})).unwrap();
        let snapshot = t.snapshot().unwrap();
        assert_eq!(snapshot.insert(&term!({a, 2})), Err(Error::ReadOnly));
        assert_eq!(snapshot.insert_new(&term!({b, 2})), Err(Error::ReadOnly));
        assert_eq!(snapshot.delete(&term!(a)), Err(Error::ReadOnly));
        assert_eq!(snapshot.clear(), Err(Error::ReadOnly));
        assert_eq!(snapshot.drop_table(), Err(Error::ReadOnly));
        assert_eq!(snapshot.insert_all(&[term!({a, 2})]), Err(Error::ReadOnly));
        assert_eq!(
            snapshot.select_delete("[{'_',[],[true]}]"),
            Err(Error::ReadOnly)
        );
        assert_eq!(all(&snapshot), [term!({a, 1})]);
        assert!(matches!(snapshot.snapshot(), Err(Error::TableType)));
    }
}

#[test]
fn a_table_without_snapshots_keeps_nothing() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        t.insert(&term!({a, 1})).unwrap();
        let engine_table = t.engine_table();
        let snapshots = [t.snapshot().unwrap(), t.snapshot().unwrap()];
        t.insert(&term!({a, 2})).unwrap();
        let (live, kept) = engine_table.snapshots();
        assert_eq!(live, 2, "{kind}");
        assert!(kept > 0, "{kind}");
        drop(snapshots);
        assert!(larder.engine().reaper_idle(Duration::from_secs(10)));
        assert_eq!(engine_table.snapshots(), (0, 0), "{kind}");
        // It can be snapshot again.
        let snapshot = t.snapshot().unwrap();
        t.delete(&term!(a)).unwrap();
        assert!(!all(&snapshot).is_empty());
    }
}

/// The deletion of an object that isn't there is no change: nothing is kept for a snapshot, and no
/// transaction loses.
#[test]
fn a_deletion_of_an_absent_object_keeps_nothing() {
    for kind in ["bag", "duplicate_bag"] {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        (0..100).for_each(|n| t.insert(&term!({1, (n)})).unwrap());
        let snapshot = t.snapshot().unwrap();
        assert_eq!(t.delete_object(&term!({1, 100})), Ok(0));
        assert_eq!(t.engine_table().snapshots(), (1, 0), "{kind}");
        drop(snapshot);
        let mut transaction = larder.begin(&[&t]).unwrap();
        let view = &transaction.views()[0];
        assert_eq!(view.lookup(&term!(1)).unwrap().len(), 100);
        view.insert(&term!({2, 2})).unwrap();
        assert_eq!(t.delete_object(&term!({1, 100})), Ok(0));
        assert_eq!(transaction.commit(), Ok(true), "{kind}");
    }
}

/// What was kept for snapshots that have ended isn't kept on for an older one that lives.
#[test]
fn an_old_snapshot_keeps_one_version_of_a_key() {
    for kind in KINDS {
        let t = table(Larder::new().table(kind), kind);
        let put = |n: i64| {
            t.delete(&term!(a)).unwrap();
            let value = Term::binary(&[n as u8; 100]);
            t.insert(&term!({a, (n), (value)})).unwrap();
        };
        put(0);
        let (old, had) = (t.snapshot().unwrap(), all(&t));
        for n in 1..1_000 {
            let _short = t.snapshot().unwrap();
            put(n);
        }
        // Their numbers are given up a little later.
        let begun = std::time::Instant::now();
        while t.engine_table().snapshots().0 > 1 {
            assert!(begun.elapsed() < Duration::from_secs(20), "{kind}");
            std::thread::sleep(Duration::from_millis(5));
        }
        let between = all(&t);
        let newest = t.snapshot().unwrap();
        put(1_000);
        let kept = t.engine_table().snapshots().1;
        assert!(kept < 20_000, "{kind}: {kept} bytes");
        assert_eq!(all(&old), had, "{kind}");
        assert_eq!(all(&newest), between, "{kind}");
    }
}

/// A thread remembers which key it has removed last, for an insert that follows. That is no reason
/// to keep nothing for another snapshot, under another key, or in another table.
#[test]
fn a_key_that_is_removed_and_inserted_again_is_kept() {
    let keys = [term!(a), Term::binary(&[7; 32]), Term::binary(&[7; 33])];
    for kind in KINDS {
        for key in &keys {
            let larder = Larder::new();
            let (first, second) = (
                table(larder.table(kind), kind),
                table(larder.table(kind), kind),
            );
            let put = |t: &Table, n: i64| t.insert(&term!({(key.clone()), (n)})).unwrap();
            put(&first, 1);
            let both = larder.snapshot(&[&first, &second]).unwrap();
            // Of one cut, so that the two snapshots have one number.
            first.delete(key).unwrap();
            put(&second, 2);
            let between = first.snapshot().unwrap();
            put(&first, 3);
            first.insert(&term!({b, 3})).unwrap();
            let (was, last) = (sorted(all(&first)), first.snapshot().unwrap());
            for n in 4..8 {
                first.delete(key).unwrap();
                put(&first, n);
                first.delete(&term!(b)).unwrap();
                first.insert(&term!({b, (n)})).unwrap();
            }
            assert_eq!(all(&both[0]), [term!({(key.clone()), 1})], "{kind}");
            assert_eq!(all(&both[1]), [], "{kind}");
            assert_eq!(all(&between), [], "{kind}");
            assert_eq!(sorted(all(&last)), was, "{kind}");
        }
    }
}

/// Each number comes into the first table, then into the second. So a snapshot of both has no
/// number in the second alone, and at most one in the first alone.
#[test]
fn a_snapshot_of_several_tables_is_of_one_instant() {
    for kind in KINDS {
        let larder = Larder::new();
        let (first, second) = (
            table(larder.table(kind), kind),
            table(larder.table(kind), kind),
        );
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            scope.spawn(|| {
                let row = |n: i64| Term::tuple([Term::from(n % 64), n.into()]);
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    for table in [&first, &second] {
                        table.insert(&row(n)).unwrap();
                        table.delete_object(&row(n - 40)).unwrap();
                    }
                }
            });
            for _ in 0..1_000 {
                let snapshots = larder.snapshot(&[&first, &second]).unwrap();
                let [one, two] = [&snapshots[0], &snapshots[1]].map(|s| newest(s));
                assert!(one == two || one == two + 1, "{kind} {one} {two}");
                // Read again: the same.
                let again = [&snapshots[1], &snapshots[0]].map(|s| newest(s));
                assert_eq!([two, one], again, "{kind}");
            }
        });
    }
}

/// The number in the second element of a row.
fn number(row: &Term) -> i64 {
    match row.as_ref().as_tuple().and_then(|row| row.get(1)) {
        Some(n) => n.to_string().parse().unwrap(),
        None => -1,
    }
}

/// The greatest of these numbers.
fn newest(table: &Table) -> i64 {
    all(table).iter().map(number).max().unwrap_or(-1)
}

/// Writes the same number under two keys, and writes or deletes a row. The table may be gone.
fn write_pair_and_row(t: &Table, n: i64, random: &mut Random) {
    let row = |key: i64| Term::tuple([Term::from(key), n.into()]);
    t.insert_all(&[row(0), row(1)]).ok();
    let key = 2 + random.below(100) as i64;
    if random.below(3) == 0 {
        t.delete(&Term::from(key)).ok();
    } else {
        t.insert(&row(key)).ok();
    }
}

/// Threads write lists and single rows, empty tables and drop them, while others take snapshots,
/// read them again and again and release them. Each list has the same number under two keys.
#[test]
fn snapshots_beside_everything() {
    for kind in KINDS {
        let larder = Larder::new();
        let current = Mutex::new(table(larder.table(kind), kind));
        let now = || current.lock().unwrap().clone();
        let stop = AtomicBool::new(false);
        let is_over = || stop.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 1..3u64 {
                let (now, is_over) = (&now, &is_over);
                scope.spawn(move || {
                    let mut random = Random(thread * 77);
                    let mut n = (thread as i64) << 32;
                    while !is_over() {
                        n += 1;
                        write_pair_and_row(&now(), n, &mut random);
                    }
                });
            }
            scope.spawn(|| {
                for i in 1.. {
                    std::thread::sleep(Duration::from_millis(3));
                    if is_over() {
                        break;
                    }
                    if i % 8 == 0 {
                        let next = table(larder.table(kind), kind);
                        let last = std::mem::replace(&mut *current.lock().unwrap(), next);
                        last.drop_table().unwrap();
                    } else {
                        now().clear().unwrap();
                    }
                }
            });
            for thread in 1..3u64 {
                let (now, is_over) = (&now, &is_over);
                scope.spawn(move || {
                    let mut random = Random(thread * 99);
                    let mut live: Vec<(Snapshot, Vec<Term>)> = Vec::new();
                    while !is_over() {
                        let Ok(snapshot) = now().snapshot() else {
                            continue;
                        };
                        let [one, other] = [0, 1].map(|key| {
                            let rows = snapshot.lookup(&Term::from(key)).unwrap();
                            let mut numbers: Vec<_> = rows.iter().map(number).collect();
                            numbers.sort_unstable();
                            numbers
                        });
                        assert_eq!(one, other, "{kind}");
                        let rows = all(&snapshot);
                        live.push((snapshot, rows));
                        if live.len() as u64 > random.below(8) {
                            let any = random.below(live.len() as u64) as usize;
                            let (snapshot, had) = live.swap_remove(any);
                            same(&all(&snapshot), &had);
                            assert_eq!(snapshot.len(), had.len(), "{kind}");
                        }
                    }
                    for (snapshot, had) in &live {
                        same(&all(snapshot), had);
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(500) * soak() as u32);
            stop.store(true, Ordering::Relaxed);
        });
        let t = now();
        assert!(larder.engine().reaper_idle(Duration::from_secs(10)));
        assert_eq!(t.engine_table().snapshots(), (0, 0), "{kind}");
    }
}

/// What has changed for an older snapshot alone is passed in slices, where nothing else is left.
#[test]
fn versions_of_an_older_snapshot_are_passed_in_slices() {
    const ROWS: i64 = 60_000;
    for kind in KINDS {
        let t = table(Larder::new().table(kind), kind);
        (0..ROWS).for_each(|k| t.insert(&term!({(k), 1})).unwrap());
        let _old = t.snapshot().unwrap();
        for k in 0..ROWS - 10 {
            t.delete(&term!((k))).unwrap();
        }
        let then = t.snapshot().unwrap();
        let engine = then.engine_table();
        for direction in [Direction::Forward, Direction::Backward] {
            let program = "[{{'_',1},[],['$_']}]".program().unwrap();
            let job = engine.select(engine.owner(), program, direction, None);
            let (mut job, mut slices, mut found) = (job.unwrap(), 0, 0);
            let step = &mut || {
                let budget = &mut Budget::new(1_000, Duration::from_secs(60));
                slices += 1;
                job.step(budget, &Context::none(), &mut |_| found += 1)
            };
            while step().unwrap() == ScanStep::More {}
            assert_eq!(found, 10, "{kind}");
            assert!(slices >= 10, "{kind}: {slices} slices");
        }
    }
}

/// A table goes back to its plain store also if its last snapshot or follower goes while a list is
/// being inserted.
#[test]
fn nothing_is_kept_for_a_snapshot_that_ended_beside_a_list() {
    for is_followed in [false, true] {
        let t = Larder::new().table("t").create().unwrap();
        let engine = t.engine_table();
        (0..20_000).for_each(|k| t.insert(&term!({(k), 1})).unwrap());
        let mut snapshot = Some(t.snapshot().unwrap());
        let mut feed = is_followed.then(|| t.subscribe().unwrap());
        (0..20_000).for_each(|k| t.insert(&term!({(k), 2})).unwrap());
        let rows = list(&t, (50_000..52_000).map(|k| term!({(k), 1})));
        let mut job = engine.begin_insert(engine.owner(), rows, false).unwrap();
        let budget = &mut Budget::new(100, Duration::from_secs(60));
        assert_eq!(job.step(budget).unwrap(), Step::More);
        drop((snapshot.take(), feed.take()));
        std::thread::sleep(Duration::from_millis(200));
        // Snapshots end in the background, which may be late.
        let begun = std::time::Instant::now();
        while engine.snapshots().0 > 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "{is_followed}");
            std::thread::sleep(Duration::from_millis(5));
        }
        while job.step(&mut Budget::unlimited()).unwrap() == Step::More {}
        // Writes keep nothing anew.
        (0..20_000).for_each(|k| t.insert(&term!({(k), 3})).unwrap());
        let begun = std::time::Instant::now();
        while engine.snapshots() != (0, 0) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{is_followed}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// So it does if another thread drops an index meanwhile, which exchanges the store, too.
#[test]
fn nothing_is_kept_for_a_follower_that_ended_beside_an_index() {
    let t = Larder::new().table("t").create().unwrap();
    t.insert(&term!({1, 0})).unwrap();
    let (stop, may_drop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if may_drop.load(Ordering::Acquire) {
                    t.drop_index("v").unwrap();
                    may_drop.store(false, Ordering::Release);
                }
            }
        });
        let _stop = Stop(&stop);
        for round in 0..times(200) {
            t.add_index(&Index::element("v", 2)).unwrap();
            let feed = t.subscribe().unwrap();
            let snapshot = t.snapshot().unwrap();
            t.insert(&term!({1, (round)})).unwrap();
            drop(snapshot);
            // Snapshots end in the background. That of the index, too.
            while t.engine_table().snapshots().0 > 0 {
                std::thread::yield_now();
            }
            assert!(t.engine_table().snapshots().1 > 0);
            may_drop.store(true, Ordering::Release);
            drop(feed);
            while may_drop.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            assert_eq!(t.engine_table().snapshots(), (0, 0), "round {round}");
        }
    });
}

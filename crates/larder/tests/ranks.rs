//! Ranks of tables and of snapshots, beside a sorted list.

use larder::api::{Larder, Table};
use larder::Error;
use larder_term::{term, Term};
use larder_testing::environment::{seed, times};
use larder_testing::mix;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

fn ordered() -> Table {
    let table = Larder::new().table("ranks").ordered_set().create();
    table.expect("a table")
}

fn row(k: i64, v: i64) -> Term {
    Term::tuple([Term::from(k), Term::from(v)])
}

/// Compares all questions with those of a list.
fn compare(table: &Table, rows: &BTreeMap<i64, i64>, chance: u64) -> Result<(), Error> {
    let list: Vec<_> = rows.iter().map(|(&k, &v)| row(k, v)).collect();
    let n = list.len() as i64;
    let (a, b) = ((chance % 700) as i64, (chance >> 20) as i64 % 700);
    let below = |k: i64| rows.range(..k).count() as u64;
    let rank = rows.contains_key(&a).then(|| below(a) + 1);
    assert_eq!(table.rank(&Term::from(a))?, rank, "{a}");
    let between = below(b).saturating_sub(below(a));
    assert_eq!(table.count_range(&Term::from(a), &Term::from(b))?, between);
    for i in [(chance >> 40) as i64 % (n + 2), 0, 1, n, n + 1] {
        let at = |i: i64| usize::try_from(i).ok().and_then(|i| list.get(i).cloned());
        assert_eq!(table.nth(i)?, at(i - 1), "{i} of {n}");
        let from_end = if i == 0 { None } else { at(n - i) };
        assert_eq!(table.nth(-i)?, from_end, "{i} of {n} from the end");
        let from = usize::try_from(i - 1).map_or(list.len(), |i| i.min(list.len()));
        let most = (chance >> 50) as usize % 40;
        let expected = &list[from..(from + most).min(list.len())];
        assert_eq!(table.slice(i, most)?, expected, "{most} from {i} of {n}");
    }
    Ok(())
}

#[test]
fn answers_are_those_of_a_list() -> Result<(), Error> {
    let (table, mut rows, mut snapshots) = (ordered(), BTreeMap::new(), Vec::new());
    for step in 0..times(6_000) as u64 {
        let chance = mix(seed(20_261_125) << 20 ^ step);
        let k = (chance >> 8) as i64 % 600;
        match chance & 15 {
            0..8 => {
                table.insert(&row(k, step as i64))?;
                rows.insert(k, step as i64);
            }
            8..12 => {
                table.delete(&Term::from(k))?;
                rows.remove(&k);
            }
            12 if chance >> 60 == 0 => {
                table.clear()?;
                rows.clear();
            }
            12 | 13 if snapshots.len() < 3 => snapshots.push((table.snapshot()?, rows.clone())),
            13 if chance >> 58 == 0 => drop(snapshots.remove(0)),
            _ => {
                compare(&table, &rows, chance)?;
                // As they were, however much has changed since.
                for (snapshot, rows) in &snapshots {
                    compare(snapshot, rows, chance)?;
                }
            }
        }
    }
    Ok(())
}

/// A snapshot's ranks are exact while others change the table, as much as they like.
#[test]
fn snapshots_are_exact_while_others_write() -> Result<(), Error> {
    const KEYS: i64 = 600;
    let table = ordered();
    for round in 0..times(12) as u64 {
        let rows: BTreeMap<_, _> = (0..KEYS)
            .filter(|&k| !mix(round << 32 | k as u64).is_multiple_of(3))
            .map(|k| (k, 0))
            .collect();
        table.clear()?;
        for (&k, &v) in &rows {
            table.insert(&row(k, v))?;
        }
        let (snapshot, over) = (table.snapshot()?, AtomicBool::new(false));
        thread::scope(|scope| {
            for thread in 0..2u64 {
                let (table, over) = (&table, &over);
                scope.spawn(move || {
                    let mut step = round << 32;
                    while !over.load(Ordering::Relaxed) {
                        step += 1;
                        let chance = mix(step << 1 | thread);
                        let k = (chance >> 8) as i64 % KEYS;
                        match chance & 1 {
                            0 => table.insert(&row(k, 1)).expect("inserted"),
                            _ => drop(table.delete(&Term::from(k)).expect("deleted")),
                        }
                    }
                });
            }
            let compared = (0..40).try_for_each(|i| compare(&snapshot, &rows, mix(round << 8 | i)));
            over.store(true, Ordering::Relaxed);
            compared
        })?;
    }
    Ok(())
}

/// What was kept for an older snapshot is passed once, not for each rank.
#[test]
fn ranks_beside_an_older_snapshot_are_found_in_time() -> Result<(), Error> {
    const KEYS: i64 = 300_000;
    let table = ordered();
    let rows = |v: i64| (0..KEYS).map(|k| row(k, v)).collect::<Vec<_>>();
    table.insert_all(&rows(0))?;
    let _older = table.snapshot()?;
    table.insert_all(&rows(1))?;
    let newer = table.snapshot()?;
    table.delete(&Term::from(7))?;
    assert_eq!(newer.rank(&Term::from(KEYS - 1))?, Some(KEYS as u64));
    let begun = Instant::now();
    for i in 1..=1_000 {
        let k = KEYS - i;
        assert_eq!(newer.rank(&Term::from(k))?, Some(k as u64 + 1));
        assert_eq!(newer.nth(k + 1)?, Some(row(k, 1)));
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    Ok(())
}

/// The writes of the transaction are among the records of the snapshot, and no leaf was counted.
/// Each question takes more than the budget of a call.
#[test]
fn ranks_of_a_view_beside_an_older_snapshot_are_found() -> Result<(), Error> {
    const KEYS: i64 = 20_000;
    for of_nth in [false, true] {
        let table = ordered();
        let rows = |v: i64| (0..KEYS).map(|k| row(2 * k, v)).collect::<Vec<_>>();
        table.insert_all(&rows(0))?;
        let _older = table.snapshot()?;
        table.insert_all(&rows(1))?;
        let (answer, answers) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let world = table.larder().clone();
            let found = world.transaction(&[&table], |views| {
                (0..100).try_for_each(|i| views[0].insert(&row(i * KEYS / 50 + 1, 2)))?;
                match of_nth {
                    false => {
                        let rank = views[0].rank(&Term::from(KEYS))?;
                        Ok(rank == Some(KEYS as u64 / 2 + 51))
                    }
                    true => Ok(views[0].nth(-1)? == Some(row(2 * KEYS - 2, 1))),
                }
            });
            answer.send(found)
        });
        let found = answers.recv_timeout(Duration::from_secs(60));
        assert_eq!(found, Ok(Ok(true)), "nth: {of_nth}");
    }
    Ok(())
}

/// A transaction sees its own writes among the ranks, and what it counted counts as read.
#[test]
fn views_have_the_ranks_of_what_they_see() -> Result<(), Error> {
    let (table, mut rows) = (ordered(), BTreeMap::new());
    let world = table.larder().clone();
    for round in 0..times(60) as u64 {
        let before = rows.clone();
        world.transaction(&[&table], |views| {
            rows.clone_from(&before);
            for step in 0..100 {
                let chance = mix(seed(20_261_126) << 20 ^ round << 8 ^ step);
                let k = (chance >> 8) as i64 % 600;
                match chance & 7 {
                    0..4 => {
                        views[0].insert(&row(k, step as i64))?;
                        rows.insert(k, step as i64);
                    }
                    4 | 5 => {
                        views[0].delete(&Term::from(k))?;
                        rows.remove(&k);
                    }
                    _ => compare(&views[0], &rows, chance)?,
                }
            }
            Ok(())
        })?;
        compare(&table, &rows, mix(round))?;
    }
    Ok(())
}

/// Many rows that a transaction inserts between two ranks that it has asked for, and deletes again.
#[test]
fn rows_between_known_ranks_are_found() -> Result<(), Error> {
    const ROWS: i64 = 1_000;
    const APART: i64 = 100_000;
    const MORE: i64 = 20_000;
    const PLACE: i64 = ROWS / 2;
    let table = ordered();
    let rows: Vec<Term> = (1..=ROWS).map(|k| row(k * APART, 0)).collect();
    table.insert_all(&rows)?;
    table.larder().transaction(&[&table], |views| {
        let view = &views[0];
        // So many writes that ranks between them are kept.
        (1..=ROWS).try_for_each(|k| view.insert(&row(k * APART, 1)))?;
        assert_eq!(view.rank(&Term::from(ROWS * APART))?, Some(ROWS as u64));
        for way in [1, -1] {
            (1..=MORE).try_for_each(|i| view.insert(&row(PLACE * APART + i, 2)))?;
            for i in (1..=MORE).step_by(97) {
                let i = if way == 1 { i } else { MORE + 1 - i };
                let found = Some(row(PLACE * APART + i, 2));
                assert_eq!(view.nth(PLACE + i)?, found, "{i}");
                assert_eq!(
                    view.nth(PLACE + i - ROWS - MORE - 1)?,
                    found,
                    "{i} from the end"
                );
            }
            (1..=MORE).try_for_each(|i| view.delete(&Term::from(PLACE * APART + i)).map(|_| ()))?;
            for k in [1, PLACE - 1, PLACE, PLACE + 1, ROWS] {
                assert_eq!(view.nth(k)?, Some(row(k * APART, 1)));
                assert_eq!(view.nth(k - ROWS - 1)?, Some(row(k * APART, 1)));
            }
        }
        Ok(())
    })
}

/// A transaction takes many rows from one end. Those that it has removed aren't passed again for
/// each one.
#[test]
fn rows_are_taken_from_an_end_in_time() -> Result<(), Error> {
    const ROWS: i64 = 10_000;
    let table = ordered();
    let rows: Vec<Term> = (1..=ROWS).map(|k| row(k, 0)).collect();
    table.insert_all(&rows)?;
    for n in [1, -1] {
        table.larder().transaction(&[&table], |views| {
            let view = &views[0];
            let begun = Instant::now();
            for i in 1..=ROWS {
                let key = if n == 1 { i } else { ROWS + 1 - i };
                assert_eq!(view.nth(n)?, Some(row(key, 0)));
                view.delete(&Term::from(key))?;
            }
            assert_eq!(view.nth(n)?, None);
            assert!(
                begun.elapsed() < Duration::from_secs(2),
                "{n}: {:?}",
                begun.elapsed()
            );
            // It ends without effect.
            (1..=ROWS).try_for_each(|k| view.insert(&row(k, 0)))
        })?;
    }
    Ok(())
}

/// Two transactions that find a range empty, each by a question about ranks, and insert then: the
/// second to commit has to see the first's.
#[test]
fn what_was_counted_counts_as_read() -> Result<(), Error> {
    let table = ordered();
    let is_empty = |view: &Table, low: i64| -> Result<bool, Error> {
        let (a, b) = (Term::from(low), Term::from(low + 10));
        let there = view.count_range(&Term::from(0), &a)?;
        Ok(match low / 10 % 4 {
            0 => view.count_range(&a, &b)? == 0,
            1 => view.nth(there as i64 + 1)?.is_none(),
            2 => view.slice(there as i64 + 1, 3)?.is_empty(),
            // Keys grow: nothing lies after the last one, if that lies before.
            _ => view.nth(-1)?.is_none_or(|last| last < row(low, 0)),
        })
    };
    for round in 1..=times(400) as i64 {
        let insert = |thread: i64| {
            table.larder().transaction(&[&table], |views| {
                let empty = is_empty(&views[0], 10 * round)?;
                // The other looks, too, before either commits, if it can.
                thread::yield_now();
                if empty {
                    // Within the range alone, not at its lower bound, to which was counted.
                    views[0].insert(&row(10 * round + 1 + thread, 0))?;
                }
                Ok(())
            })
        };
        let together = Barrier::new(2);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                together.wait();
                insert(1)
            });
            together.wait();
            insert(0)?;
            other.join().expect("it doesn't panic")
        })?;
        assert_eq!(table.len() as i64, round);
    }
    Ok(())
}

/// A snapshot of few rows, among which many were inserted later.
#[test]
fn few_old_rows_are_found_among_many_new_ones() -> Result<(), Error> {
    const OLD: i64 = 1_000;
    const NEW: i64 = 300;
    let table = ordered();
    for k in 1..=OLD {
        table.insert(&row(k * NEW, 0))?;
    }
    let snapshot = table.snapshot()?;
    let rows: Vec<Term> = (0..OLD * NEW).map(|k| row(k, 1)).collect();
    table.insert_all(&rows)?;
    for n in [OLD / 2, 1, OLD, 7 * OLD / 8, OLD / 2] {
        assert_eq!(snapshot.nth(n)?, Some(row(n * NEW, 0)));
        assert_eq!(snapshot.nth(n - OLD - 1)?, Some(row(n * NEW, 0)));
    }
    for beyond in [OLD + 1, 2 * OLD, -OLD - 1, -2 * OLD] {
        assert_eq!(snapshot.nth(beyond)?, None);
    }
    Ok(())
}

/// What was deleted or inserted since a snapshot is passed once, not for each row.
#[test]
fn rows_are_found_where_all_was_deleted_or_inserted() -> Result<(), Error> {
    const ROWS: i64 = 100_000;
    let table = ordered();
    let rows = |v: i64| (0..ROWS).map(|k| row(k, v)).collect::<Vec<_>>();
    table.insert_all(&rows(0))?;
    let full = table.snapshot()?;
    for k in 1..ROWS - 1 {
        table.delete(&Term::from(k))?;
    }
    let begun = Instant::now();
    for k in (7..ROWS).step_by(101) {
        assert_eq!(full.nth(k + 1)?, Some(row(k, 0)));
        assert_eq!(full.nth(k - ROWS)?, Some(row(k, 0)));
    }
    let ends = table.snapshot()?;
    table.insert_all(&rows(1))?;
    for _ in 0..1_000 {
        assert_eq!(ends.nth(2)?, Some(row(ROWS - 1, 0)));
        assert_eq!(ends.nth(-2)?, Some(row(0, 0)));
        assert_eq!(ends.nth(3)?, None);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    Ok(())
}

#[test]
fn what_has_no_ranks_says_so() -> Result<(), Error> {
    let world = Larder::new();
    let set = world.table("set").create()?;
    set.insert(&term!({1, 2}))?;
    assert_eq!(set.rank(&term!(1)), Err(Error::Unranked));
    assert_eq!(set.snapshot()?.nth(1), Err(Error::Unranked));
    world.transaction(&[&set], |views| {
        assert_eq!(views[0].rank(&term!(1)), Err(Error::Unranked));
        Ok(())
    })?;
    let bag = world.table("bag").bag().create()?;
    assert_eq!(bag.slice(1, 1), Err(Error::Unranked));
    assert_eq!(bag.count_range(&term!(1), &term!(2)), Err(Error::Unranked));
    Ok(())
}

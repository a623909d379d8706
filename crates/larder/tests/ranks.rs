//! Ranks of tables and of snapshots, beside a sorted list.

use larder::api::{Larder, Table};
use larder::Error;
use larder_term::{term, Term};
use larder_testing::environment::{seed, times};
use larder_testing::mix;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

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
            for own in 0..2u64 {
                let (table, over) = (&table, &over);
                scope.spawn(move || {
                    let mut step = round << 32;
                    while !over.load(Ordering::Relaxed) {
                        step += 1;
                        let chance = mix(step << 1 | own);
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

#[test]
fn what_has_no_ranks_says_so() -> Result<(), Error> {
    let world = Larder::new();
    let set = world.table("set").create()?;
    set.insert(&term!({1, 2}))?;
    assert_eq!(set.rank(&term!(1)), Err(Error::Unranked));
    assert_eq!(set.snapshot()?.nth(1), Err(Error::Unranked));
    let list = ordered();
    list.insert(&term!({1, 2}))?;
    let engine = list.larder().engine().clone();
    let transaction = engine.begin(&[list.engine_table()], list.larder().owner())?;
    for view in transaction.views() {
        let who = list.larder().owner();
        assert_eq!(view.nth(who, 1, &mut |_| {}), Err(Error::View));
    }
    let bag = world.table("bag").bag().create()?;
    assert_eq!(bag.slice(1, 1), Err(Error::Unranked));
    assert_eq!(bag.count_range(&term!(1), &term!(2)), Err(Error::Unranked));
    Ok(())
}

//! Secondary indexes of bounded tables: what is expired is in no answer by an index, leaves the
//! indexes when it leaves the table, and gives up its values of unique indexes at once.

mod units;

use larder::api::{Index, Larder, Table};
use larder::host::{Budget, IndexBuild, IndexDefinition, IndexOn, Step};
use larder::{advance_clock, Error};
use larder_term::{term, Atom, Term};
use larder_testing::environment::times;
use larder_testing::random::Random;
use larder_testing::sorted;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use units::{alone, settles, units, UNIT};

fn bounded(ordered: bool, indexes: &[Index]) -> Table {
    let builder = Larder::new().table("t").ttl(units(5));
    let builder = match ordered {
        true => builder.ordered_set(),
        false => builder.set(),
    };
    let with = indexes
        .iter()
        .fold(builder, |builder, index| builder.index(index.clone()));
    with.create().expect("a table")
}

fn row(key: i64, value: i64) -> Term {
    Term::tuple([Term::from(key), Term::from(value), term!([tag])])
}

/// Has all that is due removed; the expirer may be dealing with the last.
fn settle(table: &Table) {
    while table.engine_table().remove_expired().expect("a table").1 {}
    settles(table, table.to_vec().expect("a table").len());
}

#[test]
fn answers_by_an_index_have_nothing_expired() -> Result<(), Error> {
    let _alone = alone();
    let indexes = [
        Index::element("v", 2),
        Index::element("tags", 3).each(),
        Index::expression("sum", "{'+',{element,1,'$_'},{element,2,'$_'}}"),
    ];
    for (ordered, watched) in [(false, false), (false, true), (true, false), (true, true)] {
        let (with, without) = (bounded(ordered, &indexes), bounded(ordered, &[]));
        let snapshots = watched.then(|| (with.snapshot(), without.snapshot()));
        let mut random = Random(20_261_125 + u64::from(ordered));
        for step in 0..times(2_000) {
            let (key, value) = (random.below(60) as i64, random.below(12) as i64);
            let of_key = Term::from(key);
            for table in [&with, &without] {
                match step % 8 {
                    0 => drop(table.delete(&of_key)?),
                    1 => table.insert_with(&row(key, value), Some(units(value as u64)))?,
                    2 => drop(table.expire(&of_key, Some(units(1 + value as u64)))?),
                    3 => drop(table.insert_new(&row(key, value))?),
                    4 => table.insert_all(&[row(key, value), row(key + 1, value)])?,
                    5 => drop(table.update(&of_key, 2, &Term::from(value + 1))?),
                    6 => drop(table.larder().transaction(&[table], |views| {
                        views[0].delete(&Term::from(key + 2))?;
                        views[0].insert(&row(key, value))
                    })?),
                    _ => table.insert(&row(key, value))?,
                }
            }
            if random.below(5) == 0 {
                advance_clock(UNIT);
            }
            let all = without.to_vec()?;
            assert_eq!(sorted(with.to_vec()?), sorted(all.clone()));
            let spec = format!("[{{{{'_',{value},'_'}},[],['$_']}}]");
            let expected = sorted(without.select(&spec)?);
            assert_eq!(sorted(with.select(&spec)?), expected);
            let sought = Term::from(value);
            assert_eq!(sorted(with.index_lookup("v", &sought)?), expected);
            assert_eq!(with.index_lookup("tags", &term!(tag))?.len(), all.len());
            assert_eq!(
                with.index_select("sum", "[{'_',[],['$_']}]")?.len(),
                all.len()
            );
            if step % 100 == 0 {
                settle(&with);
                for index in with.indexes() {
                    assert_eq!(index.entries, with.len(), "{index:?}");
                }
            }
        }
        if let Some((with, without)) = snapshots {
            assert_eq!(with?.to_vec()?, without?.to_vec()?);
        }
        advance_clock(20 * UNIT);
        settle(&with);
        assert!(with.indexes().iter().all(|index| index.entries == 0));
    }
    Ok(())
}

/// Only a look-up by key moves the deadline, not a select, however it finds its rows.
#[test]
fn a_select_by_an_index_keeps_nothing_alive() -> Result<(), Error> {
    let _alone = alone();
    for ordered in [false, true] {
        let builder = Larder::new().table("t").idle(units(8));
        let builder = match ordered {
            true => builder.ordered_set(),
            false => builder.set(),
        };
        let t = builder.index(Index::element("v", 2)).create()?;
        t.insert_all(&[row(1, 7), row(2, 7), row(3, 8)])?;
        for _ in 0..4 {
            advance_clock(4 * UNIT);
            t.select("[{{'_',7,'_'},[],['$_']}]")?;
            t.select("[{{1,'_','_'},[],['$_']},{{2,'_','_'},[],['$_']}]")?;
            assert_eq!(t.lookup(&Term::from(3))?, [row(3, 8)]);
        }
        assert_eq!(t.to_vec()?, [row(3, 8)]);
    }
    Ok(())
}

#[test]
fn a_snapshot_has_what_expires_later() -> Result<(), Error> {
    let _alone = alone();
    let t = bounded(false, &[Index::element("v", 2)]);
    t.insert(&row(1, 7))?;
    t.insert_with(&row(2, 7), Some(units(1)))?;
    advance_clock(UNIT);
    let then = t.snapshot()?;
    advance_clock(9 * UNIT);
    t.insert(&row(3, 7))?;
    settle(&t);
    assert_eq!(then.index_lookup("v", &term!(7))?, [row(1, 7)]);
    assert_eq!(t.index_lookup("v", &term!(7))?, [row(3, 7)]);
    Ok(())
}

#[test]
fn a_row_that_is_expired_gives_up_its_value_at_once() -> Result<(), Error> {
    let _alone = alone();
    for (ordered, watched) in [(false, false), (true, true)] {
        let t = bounded(ordered, &[Index::element("v", 2).unique()]);
        let _snapshot = watched.then(|| t.snapshot());
        let taken = Err(Error::NotUnique(Atom::new("v").into()));
        for round in 0..20i64 {
            let key = 100 * round;
            t.insert(&row(key, 1))?;
            assert_eq!(t.insert(&row(key + 1, 1)), taken);
            assert_eq!(
                t.insert_with(&row(key + 1, 1), Some(units(2))),
                taken,
                "with a time"
            );
            t.insert(&row(key + 2, 2))?;
            advance_clock(5 * UNIT);
            // By each way of writing, whether or not the expirer was there before.
            match round % 5 {
                0 => t.insert(&row(key + 3, 1))?,
                1 => assert!(t.insert_new(&row(key + 3, 1))?),
                2 => t.insert_all(&[row(key + 3, 1), row(key + 4, 2)])?,
                3 => t.insert_with(&row(key + 3, 1), Some(units(2)))?,
                _ => t
                    .larder()
                    .transaction(&[&t], |views| views[0].insert(&row(key + 3, 1)))?,
            }
            assert_eq!(t.index_lookup("v", &term!(1))?, [row(key + 3, 1)]);
            // The row's own value, too.
            advance_clock(5 * UNIT);
            t.insert(&row(key + 3, 1))?;
            assert_eq!(t.index_lookup("v", &term!(1))?, [row(key + 3, 1)]);
            advance_clock(5 * UNIT);
            settle(&t);
            assert_eq!(t.indexes()[0].entries, 0);
        }
    }
    Ok(())
}

#[test]
fn two_rows_of_one_write_have_no_value_in_common() -> Result<(), Error> {
    let _alone = alone();
    let taken = Error::NotUnique(Atom::new("v").into());
    for ordered in [false, true] {
        for is_expired in [false, true] {
            let t = bounded(ordered, &[Index::element("v", 2).unique()]);
            let both = [row(1, 7), row(2, 7)];
            // With an expired row under the key of the first, which has the value.
            let begin = || {
                t.clear()?;
                if is_expired {
                    t.insert(&row(1, 7))?;
                    advance_clock(5 * UNIT);
                }
                Ok::<_, Error>(())
            };
            begin()?;
            assert_eq!(t.insert_all(&both), Err(taken.clone()));
            begin()?;
            let both_in = |views: &[Table]| views[0].insert_all(&both);
            let committed = t.larder().transaction(&[&t], both_in);
            assert_eq!(committed, Err(taken.clone()));
            begin()?;
            let operations = t.larder().operations();
            let committed = operations
                .insert(&t, &both[0])
                .insert(&t, &both[1])
                .commit();
            assert_eq!(committed, Err(taken.clone()));
            assert_eq!(t.to_vec()?, []);
            assert_eq!(t.index_lookup("v", &term!(7))?, []);
        }
    }
    Ok(())
}

/// An index that is added doesn't have the values of what is expired.
#[test]
fn an_expired_row_that_lacks_entries_gets_no_value_of_another_row() -> Result<(), Error> {
    let _alone = alone();
    for ordered in [false, true] {
        let t = bounded(ordered, &[]);
        t.insert(&row(1, 7))?;
        advance_clock(5 * UNIT);
        t.insert(&row(2, 7))?;
        t.add_index(&Index::element("v", 2).unique())?;
        let written = t.insert_with(&row(1, 7), Some(units(1)));
        let taken = Err(Error::NotUnique(Atom::new("v").into()));
        assert_eq!(written, taken);
        assert_eq!(t.to_vec()?, [row(2, 7)]);
        assert_eq!(t.index_lookup("v", &term!(7))?, [row(2, 7)]);
    }
    Ok(())
}

/// A list in which each row gets the value of an expired row whose key comes earlier or later.
#[test]
fn a_list_takes_over_the_values_of_its_keys_in_reverse() -> Result<(), Error> {
    let _alone = alone();
    const LEN: i64 = 3_000;
    for ordered in [false, true] {
        let t = bounded(ordered, &[Index::element("v", 2).unique()]);
        let rows = |value: fn(i64) -> i64| {
            let each = (0..LEN).map(|key| row(key, value(key)));
            each.collect::<Vec<_>>()
        };
        t.insert_all(&rows(|key| key))?;
        advance_clock(5 * UNIT);
        t.insert_all(&rows(|key| LEN - 1 - key))?;
        for key in (0..LEN).step_by(100) {
            assert_eq!(
                t.index_lookup("v", &Term::from(LEN - 1 - key))?,
                [row(key, LEN - 1 - key)]
            );
        }
        assert_eq!(t.indexes()[0].entries, LEN as usize);
    }
    Ok(())
}

/// A table that counts what it has in bytes counts the rows less that gave up their values.
#[test]
fn rows_that_give_up_their_values_weigh_nothing() -> Result<(), Error> {
    let _alone = alone();
    let t = Larder::new().table("t").ttl(units(5)).max_memory(2_000);
    let t = t.index(Index::element("v", 2).unique()).create()?;
    for key in 0..1_000 {
        t.insert(&row(key, 1))?;
        advance_clock(5 * UNIT);
    }
    assert_eq!(t.to_vec()?, []);
    Ok(())
}

/// A row may be removed at any instant of the commit or list that takes its value over.
#[test]
fn commits_and_lists_take_values_over_beside_the_expirer() -> Result<(), Error> {
    let _alone = alone();
    let t = bounded(true, &[Index::element("v", 2).unique()]);
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // A list may be in progress.
                let removed = t.engine_table().remove_expired();
                assert!(matches!(removed, Ok(_) | Err(Error::Busy)), "{removed:?}");
            }
        });
        let mut rounds = (1..3000i64).map(|key| {
            match key % 2 {
                0 => t.insert_all(&[row(key, 1), row(-key, key + 1)])?,
                _ => t
                    .larder()
                    .transaction(&[&t], |views| views[0].insert(&row(key, 1)))?,
            }
            // Another row of the same list has the value.
            let twice = t.insert_all(&[row(key + 1, -1), row(key + 2, -1)]);
            assert_eq!(twice, Err(Error::NotUnique(Atom::new("v").into())));
            advance_clock(5 * UNIT);
            Ok(())
        });
        let result = rounds.try_for_each(|round| round);
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn an_index_is_added_beside_what_is_expired() -> Result<(), Error> {
    let _alone = alone();
    for unique in [false, true] {
        for round in 0..20i64 {
            let t = bounded(round % 2 == 0, &[]);
            for key in 0..50 {
                t.insert_with(&row(key, key), Some(units(1)))?;
            }
            // The same values, of rows that are there.
            for key in 50..100 {
                t.insert(&row(key, key - 50))?;
            }
            advance_clock(UNIT);
            let index = Index::element("v", 2);
            t.add_index(&if unique { index.unique() } else { index })?;
            for key in 0..50 {
                t.delete(&Term::from(key + 50))?;
                // In place of the expired one, with its value.
                t.insert(&row(key, key))?;
                assert_eq!(t.index_lookup("v", &Term::from(key))?, [row(key, key)]);
            }
            settle(&t);
            assert_eq!(t.indexes()[0].entries, 50);
        }
    }
    Ok(())
}

/// An index skips rows that have expired when it is built. A snapshot or transaction that was begun
/// earlier still shows them, so it doesn't have the index.
#[test]
fn an_index_is_not_used_for_an_earlier_time() -> Result<(), Error> {
    let _alone = alone();
    for round in 0..4i64 {
        let t = bounded(round % 2 == 0, &[]);
        for key in 0..50 {
            t.insert_with(&row(key, 7), Some(units(1 + key as u64 % 2)))?;
        }
        let engine = t.engine_table();
        let definition = IndexDefinition::new(Atom::new("v"), IndexOn::Element(2));
        let before = t.snapshot()?;
        let mut build = engine.add_index(engine.owner(), definition)?;
        let during = t.snapshot()?;
        let seven = Term::from(7);
        t.larder().transaction(&[&t], |views| {
            advance_clock(UNIT);
            let mut budget = Budget::unlimited();
            while build.step(&mut budget)? == Step::More {}
            assert_eq!(views[0].to_vec()?.len(), 50);
            let found = views[0].index_lookup("v", &seven);
            assert!(matches!(found, Err(Error::NoIndex(_))), "{found:?}");
            Ok(())
        })?;
        for snapshot in [before, during] {
            assert_eq!(snapshot.to_vec()?.len(), 50);
            let found = snapshot.index_lookup("v", &seven);
            assert!(matches!(found, Err(Error::NoIndex(_))), "{found:?}");
            assert_eq!(snapshot.select("[{{'_', 7, '_'}, [], ['$_']}]")?.len(), 50);
        }
        let after = t.snapshot()?;
        assert_eq!(after.index_lookup("v", &seven)?.len(), 25);
        assert_eq!(after.select("[{{'_', 7, '_'}, [], ['$_']}]")?.len(), 25);
        assert_eq!(t.index_lookup("v", &seven)?.len(), 25);
    }
    Ok(())
}

/// Begins to add a unique index, and has the rows that are there indexed.
fn begun(t: &Table) -> Result<IndexBuild, Error> {
    let engine = t.engine_table();
    let mut definition = IndexDefinition::new(Atom::new("v"), IndexOn::Element(2));
    definition.unique = true;
    let mut build = engine.add_index(engine.owner(), definition)?;
    // A budget for all rows, but not for the end of the scan after them.
    let mut budget = Budget::new(4 * t.len() as u32, Duration::from_secs(60));
    assert_eq!(build.step(&mut budget)?, Step::More);
    Ok(build)
}

#[test]
fn an_index_under_construction_is_not_given_up_for_an_expired_row() -> Result<(), Error> {
    let _alone = alone();
    for round in 0..100i64 {
        let t = bounded(round % 2 == 0, &[]);
        for key in 0..5 {
            t.insert(&row(key, key))?;
        }
        let mut build = begun(&t)?;
        advance_clock(5 * UNIT);
        // By each way of writing, whether or not the expirer was there before.
        let (one, two) = (row(10, 1), row(11, 2));
        match round % 5 {
            0 => t.insert(&one).and_then(|()| t.insert(&two))?,
            1 => assert!(t.insert_new(&one)? && t.insert_new(&two)?),
            2 => t.insert_all(&[one, two])?,
            3 => t
                .insert_with(&one, None)
                .and_then(|()| t.insert_with(&two, None))?,
            _ => t.larder().transaction(&[&t], |views| {
                views[0].insert(&one).and_then(|()| views[0].insert(&two))
            })?,
        }
        while build.step(&mut Budget::unlimited())? == Step::More {}
        assert_eq!(t.index_lookup("v", &term!(1))?, [row(10, 1)]);
        assert_eq!(t.index_lookup("v", &term!(2))?, [row(11, 2)]);
    }
    Ok(())
}

/// A write is not refused by an index that is being added. The index is given up.
#[test]
fn an_index_under_construction_is_given_up_for_a_row_that_lives() -> Result<(), Error> {
    let _alone = alone();
    for round in 0..100i64 {
        // Another index, whose values are claimed first.
        let other = Index::element("k", 1).unique();
        let t = match round % 4 {
            0 => bounded(true, &[]),
            1 => bounded(false, &[other]),
            2 => Larder::new().table("t").create()?,
            _ => Larder::new().table("t").bag().index(other).create()?,
        };
        let others = t.indexes().len();
        t.insert_all(&[row(1, 1), row(2, 2)])?;
        let mut build = begun(&t)?;
        // The second has the value of a row that is there, or of the first.
        let value = 1 + 2 * (round / 4 % 2);
        let (one, two) = (row(10, 3), row(11, value));
        match round / 8 % 4 {
            0 => t.insert(&one).and_then(|()| t.insert(&two))?,
            1 => assert!(t.insert_new(&one)? && t.insert_new(&two)?),
            2 => t.insert_all(&[one.clone(), two.clone()])?,
            _ => t.larder().transaction(&[&t], |views| {
                views[0].insert(&one).and_then(|()| views[0].insert(&two))
            })?,
        }
        let mut rows = sorted(vec![row(1, 1), row(2, 2), one, two]);
        rows.dedup();
        assert_eq!(sorted(t.to_vec()?), rows);
        let over = loop {
            match build.step(&mut Budget::unlimited()) {
                Ok(Step::More) => {}
                over => break over.map(drop),
            }
        };
        assert_eq!(over, Err(Error::NotUnique(Atom::new("v").into())));
        assert_eq!(t.indexes().len(), others);
    }
    Ok(())
}

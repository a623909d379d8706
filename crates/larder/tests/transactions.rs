//! Transactions: all or nothing, as if one came after the other.

mod kinds;

use kinds::{table, KINDS};
use larder::api::{Index, Larder, Table};
use larder::{Direction, Error, PlanKind};
use larder_term::{term, Term};
use larder_testing::random::Random;
use larder_testing::threads::Stop;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// All objects. Those of a key in their order; keys in an order of their own.
fn all(table: &Table) -> Vec<Term> {
    let mut rows = table.all_rows(Direction::Forward).unwrap();
    let mut rows = rows.page(1 << 20).unwrap();
    rows.sort_by_key(|row| row.as_ref().as_tuple().unwrap().get(0).unwrap().to_string());
    rows
}

/// The second element of the only object under a key.
fn number(table: &Table, key: &Term) -> Result<i64, Error> {
    let rows = table.lookup(key)?;
    let row = rows.first().ok_or(Error::BadKey)?;
    Ok(row
        .as_ref()
        .as_tuple()
        .unwrap()
        .get(1)
        .unwrap()
        .to_string()
        .parse()
        .unwrap())
}

/// An operation on either of two tables: what it answers.
fn operate(t: &Table, random: &mut Random) -> String {
    let key = Term::from(random.below(30) as i64);
    let n = random.below(50) as i64;
    let row = |n: i64| Term::tuple([key.clone(), n.into()]);
    let long = Term::tuple([key.clone(), Term::binary(&[n as u8; 300])]);
    match random.below(18) {
        0..=2 => format!("{:?}", t.insert(&row(n))),
        3 => format!("{:?}", t.insert(&long)),
        4 => format!("{:?}", t.delete(&key)),
        5 => format!("{:?}", t.take(&key)),
        6 => format!("{:?}", t.insert_new(&row(n))),
        7 => format!("{:?}", t.delete_object(&row(n))),
        8 => {
            let rows: Vec<Term> = (0..random.below(100)).map(|i| row(i as i64)).collect();
            format!("{:?}", t.insert_all(&rows))
        }
        9 => format!("{:?}", t.update(&key, 2, &Term::from(n))),
        10 => format!("{:?}", t.add(&key, 2, n)),
        11 => format!(
            "{:?}",
            t.select_delete("[{{'_','$1'},[{'<','$1',5}],[true]}]")
        ),
        12 => format!("{:?}", t.lookup(&key)),
        13 => format!("{:?}", t.contains(&key)),
        14 => format!("{:?}", t.len()),
        15 => format!("{:?}", all(t)),
        16 if random.below(20) == 0 => format!("{:?}", t.clear()),
        _ => format!(
            "{:?}",
            t.select_count("[{{'_','$1'},[{'>','$1',25}],[true]}]")
        ),
    }
}

/// In a transaction a table answers as it does outside; and when it ends, it is the same.
#[test]
fn a_transaction_does_what_its_operations_do() {
    for kind in KINDS {
        for seed in 1..=20 {
            let larder = Larder::new();
            let [plain, t] = [(); 2].map(|()| table(larder.table(kind), kind));
            let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed);
            for _ in 0..40 {
                let begin = random.0;
                let count = random.below(15);
                let answers: Vec<String> =
                    (0..count).map(|_| operate(&plain, &mut random)).collect();
                let end = random.0;
                let got = larder.transaction(&[&t], |views| {
                    let mut random = Random(begin);
                    let count = random.below(15);
                    Ok((0..count)
                        .map(|_| operate(&views[0], &mut random))
                        .collect::<Vec<_>>())
                });
                assert_eq!(got.unwrap(), answers, "{kind}, seed {seed}");
                assert_eq!(random.0, end);
                assert_eq!(all(&t), all(&plain), "{kind}, seed {seed}");
                assert_eq!(t.len(), plain.len());
            }
        }
    }
}

/// Many objects of one key are added in time, one by one and as a list, and in their order. What
/// copies the others for each of them takes minutes.
#[test]
fn many_objects_of_a_key_are_added_in_time() {
    const OBJECTS: i64 = 100_000;
    let row = |n: i64| term!({1, (n)});
    let begun = Instant::now();
    let larder = Larder::new();
    let t = table(larder.table("duplicate_bag"), "duplicate_bag");
    (0..10).for_each(|n| t.insert(&row(n)).unwrap());
    larder
        .transaction(&[&t], |views| {
            (10..OBJECTS).try_for_each(|n| views[0].insert(&row(n)))?;
            assert_eq!(views[0].delete_object(&row(5))?, 1);
            let rows: Vec<Term> = (OBJECTS..2 * OBJECTS).map(row).collect();
            views[0].insert_all(&rows)
        })
        .unwrap();
    let there: Vec<Term> = (0..2 * OBJECTS).filter(|&n| n != 5).map(row).collect();
    assert!(t.lookup(&term!(1)).unwrap() == there);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// What validation says, the commit does, whatever was read and whatever others changed.
#[test]
fn validation_says_what_the_commit_does() {
    let mut outcomes = [0, 0];
    for kind in KINDS {
        for seed in 1..=150 {
            let larder = Larder::new();
            let t = table(larder.table(kind), kind);
            let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed);
            (0..20).for_each(|_| drop(operate(&t, &mut random)));
            let mut transaction = larder.begin(&[&t]).unwrap();
            for _ in 0..random.below(4) {
                operate(&transaction.views()[0], &mut random);
            }
            // Without a write there would be nothing to lose.
            transaction.views()[0].insert(&term!({own, 1})).unwrap();
            assert_eq!(transaction.validate(), Ok(true), "{kind}, seed {seed}");
            for _ in 0..random.below(4) {
                operate(&t, &mut random);
            }
            let valid = transaction.validate().unwrap();
            assert_eq!(transaction.validate(), Ok(valid), "{kind}, seed {seed}");
            assert_eq!(transaction.commit(), Ok(valid), "{kind}, seed {seed}");
            assert_eq!(t.contains(&term!(own)), Ok(valid), "{kind}, seed {seed}");
            let after = transaction.validate();
            let expected = if valid { Err(Error::NoTable) } else { Ok(true) };
            assert_eq!(after, expected, "{kind}, seed {seed}");
            outcomes[usize::from(valid)] += 1;
        }
    }
    assert!(outcomes.iter().all(|times| *times > 50), "{outcomes:?}");
}

/// Who drops a transaction that has read and written many keys doesn't wait until they are freed.
#[test]
fn a_large_transaction_is_dropped_in_time() {
    const KEYS: i64 = 200_000;
    let larder = Larder::new();
    let t = table(larder.table("set"), "set");
    let mut ratios: Vec<f64> = (0..5)
        .map(|_| {
            let transaction = larder.begin(&[&t]).unwrap();
            let view = &transaction.views()[0];
            let begun = Instant::now();
            for key in 0..KEYS {
                view.insert(&term!({(key), (key)})).unwrap();
            }
            let written = begun.elapsed();
            let begun = Instant::now();
            drop(transaction);
            begun.elapsed().as_secs_f64() / written.as_secs_f64()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[2] < 0.01, "{ratios:?}");
}

#[test]
fn a_transaction_that_fails_has_no_effect() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        t.insert(&term!({a, 1})).unwrap();
        let failed: Result<(), Error> = larder.transaction(&[&t], |views| {
            views[0].insert(&term!({b, 1}))?;
            views[0].delete(&term!(a))?;
            Err(Error::BadKey)
        });
        assert_eq!(failed, Err(Error::BadKey));
        assert_eq!(all(&t), [term!({a, 1})]);
        let mut kept = None;
        larder
            .transaction(&[&t], |views| {
                kept = Some(views[0].clone());
                assert_eq!(views[0].drop_table(), Err(Error::View));
                assert_eq!(views[0].rename("x"), Err(Error::View));
                Ok(())
            })
            .unwrap();
        assert_eq!(kept.unwrap().lookup(&term!(a)), Err(Error::NoTable));
        assert!(matches!(
            larder.transaction(&[&t, &t], |_| Ok(())),
            Err(Error::BadOption(_))
        ));
    }
}

/// Transfers between accounts, by transactions; audits by snapshots, by transactions and by
/// lookups. The sum is the same in each.
#[test]
fn sums_stay() {
    const ACCOUNTS: i64 = 12;
    for kind in ["set", "ordered_set"] {
        let larder = Larder::new();
        let tables = [(); 2].map(|()| table(larder.table(kind), kind));
        for n in 0..ACCOUNTS {
            tables[n as usize % 2]
                .insert(&Term::tuple([Term::from(n), 100.into()]))
                .unwrap();
        }
        let both = [&tables[0], &tables[1]];
        let sum = |views: &[&Table]| -> i64 {
            let rows = views.iter().flat_map(|view| all(view));
            rows.map(|row| {
                row.as_ref()
                    .as_tuple()
                    .unwrap()
                    .get(1)
                    .unwrap()
                    .to_string()
                    .parse::<i64>()
                    .unwrap()
            })
            .sum()
        };
        let stop = AtomicBool::new(false);
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            for thread in 0..2 {
                let (larder, stop, done) = (&larder, &stop, &done);
                scope.spawn(move || {
                    let mut random = Random(99 + thread);
                    while !stop.load(Ordering::Relaxed) {
                        let (a, b) = (
                            random.below(ACCOUNTS as u64) as i64,
                            random.below(ACCOUNTS as u64) as i64,
                        );
                        let amount = random.below(10) as i64;
                        larder
                            .transaction(&both, |views| {
                                let (from, to) = (&views[a as usize % 2], &views[b as usize % 2]);
                                let left = number(from, &a.into())?;
                                from.insert(&Term::tuple([Term::from(a), (left - amount).into()]))?;
                                let right = number(to, &b.into())?;
                                to.insert(&Term::tuple([Term::from(b), (right + amount).into()]))
                            })
                            .unwrap();
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            // Beside other tests a thread may begin late: there is no audit without transfers.
            let (began, mut audits) = (Instant::now(), 0);
            let waits = || done.load(Ordering::Relaxed) == 0 && began.elapsed().as_secs() < 60;
            while audits < 300 || waits() {
                audits += 1;
                let snapshots = larder.snapshot(&both).unwrap();
                assert_eq!(sum(&[&snapshots[0], &snapshots[1]]), ACCOUNTS * 100);
                let seen = larder.transaction(&both, |views| Ok(sum(&[&views[0], &views[1]])));
                assert_eq!(seen.unwrap(), ACCOUNTS * 100);
            }
        });
        assert_eq!(sum(&both), ACCOUNTS * 100);
        assert!(done.load(Ordering::Relaxed) > 0);
    }
}

/// Counters that single operations and transactions add to at once: nothing is lost.
#[test]
fn no_addition_is_lost() {
    for kind in ["set", "ordered_set"] {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        t.insert(&term!({a, 0})).unwrap();
        t.insert(&term!({b, 0})).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..3_000 {
                        larder
                            .transaction(&[&t], |views| {
                                let a = number(&views[0], &term!(a))?;
                                views[0].insert(&Term::tuple([term!(a), (a + 1).into()]))?;
                                views[0].add(&term!(b), 2, 1)
                            })
                            .unwrap();
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..3_000 {
                    t.add(&term!(a), 2, 1).unwrap();
                }
            });
        });
        assert_eq!(t.lookup(&term!(a)).unwrap(), [term!({a, 9000})]);
        assert_eq!(t.lookup(&term!(b)).unwrap(), [term!({b, 6000})]);
    }
}

/// Threads that write to one key of a view at once: no addition and no object is lost, and a long
/// object is whole.
#[test]
fn threads_share_a_view() {
    const THREADS: u8 = 3;
    for (kind, each) in [("set", 1000), ("ordered_set", 1000), ("duplicate_bag", 100)] {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        let long = |byte: u8| Term::tuple([term!(long), Term::binary(&[byte; 200])]);
        let has_counter = kind != "duplicate_bag";
        t.insert(&long(0)).unwrap();
        t.insert(&term!({sum, 0})).unwrap();
        larder
            .transaction(&[&t], |views| {
                let view = &views[0];
                std::thread::scope(|scope| {
                    for thread in 1..=THREADS {
                        scope.spawn(move || {
                            for _ in 0..each {
                                view.insert(&long(thread)).unwrap();
                                if has_counter {
                                    view.add(&term!(sum), 2, 1).unwrap();
                                }
                            }
                        });
                    }
                });
                Ok(())
            })
            .unwrap();
        let there = t.lookup(&term!(long)).unwrap();
        let written = i64::from(THREADS) * each;
        if has_counter {
            assert_eq!(number(&t, &term!(sum)), Ok(written));
            assert!((1..=THREADS).any(|thread| there == [long(thread)]));
        } else {
            for thread in 1..=THREADS {
                let of_thread = there.iter().filter(|row| **row == long(thread));
                assert_eq!(of_thread.count() as i64, each);
            }
        }
    }
}

/// Write skew: each of two transactions takes one away if both together have two. One must lose. By
/// keys, and by ranges.
#[test]
fn there_is_no_write_skew() {
    for (kind, by_range) in [
        ("set", false),
        ("ordered_set", false),
        ("set", true),
        ("ordered_set", true),
        ("bag", true),
    ] {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        for _ in 0..500 {
            for key in [term!(a), term!(b)] {
                t.delete(&key).unwrap();
                t.insert(&Term::tuple([key, 1.into()])).unwrap();
            }
            let take = |taken: Term| {
                larder
                    .transaction(&[&t], |views| {
                        let sum = if by_range {
                            views[0].select_count("[{{'_',1},[],[true]}]")? as i64
                        } else {
                            number(&views[0], &term!(a))? + number(&views[0], &term!(b))?
                        };
                        if sum == 2 {
                            views[0].delete(&taken)?;
                            views[0].insert(&Term::tuple([taken.clone(), 0.into()]))?;
                        }
                        Ok(())
                    })
                    .unwrap();
            };
            std::thread::scope(|scope| {
                scope.spawn(|| take(term!(a)));
                take(term!(b));
            });
            assert_eq!(
                t.select_count("[{{'_',1},[],[true]}]").unwrap(),
                1,
                "{kind} {by_range}"
            );
        }
    }
}

/// A transaction that counts what is in a range and inserts if there is nothing: no phantom comes
/// between.
#[test]
fn there_are_no_phantoms() {
    let by_scan = KINDS.map(|kind| (kind, false));
    let by_index = [("set", true), ("ordered_set", true)];
    for (kind, by_index) in by_scan.into_iter().chain(by_index) {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        if by_index {
            t.add_index(&Index::element("by_value", 2)).unwrap();
        }
        // Other rows, so that the index is the cheaper plan also while many versions are kept.
        let others = if by_index { 10_000 } else { 0 };
        for key in -others..0 {
            t.insert(&term!({(key), (key)})).unwrap();
        }
        for round in 0..500i64 {
            let insert = |thread: i64| {
                larder
                    .transaction(&[&t], |views| {
                        let spec = format!("[{{{{'_',{round}}},[],[true]}}]");
                        let plan = views[0].explain(&spec)?.plan;
                        assert_eq!(matches!(plan, PlanKind::Index(_)), by_index, "{plan:?}");
                        if views[0].select_count(&spec)? == 0 {
                            views[0].insert(&Term::tuple([
                                Term::from(2 * round + thread),
                                round.into(),
                            ]))?;
                        }
                        Ok(())
                    })
                    .unwrap();
            };
            std::thread::scope(|scope| {
                scope.spawn(|| insert(0));
                insert(1);
            });
            assert_eq!(t.len() as i64, others + round + 1, "{kind}");
        }
    }
}

/// How often a transaction runs that reads a table in this way, if another thread inserts `key`, or
/// deletes it if it is there, beside its first run. The table has the even keys below 2,000.
fn runs_beside(read: &dyn Fn(&Table), key: i64) -> i64 {
    let larder = Larder::new();
    let t = table(larder.table("ordered_set"), "ordered_set");
    for key in (0..2000).step_by(2) {
        t.insert(&term!({(key), 0})).expect("a table");
    }
    let mut runs = 0i64;
    larder
        .transaction(&[&t], |views| {
            read(&views[0]);
            runs += 1;
            if runs == 1 {
                std::thread::scope(|scope| {
                    scope.spawn(|| match key % 2 {
                        0 => drop(t.delete(&term!((key))).expect("a table")),
                        _ => t.insert(&term!({(key), 1})).expect("a table"),
                    });
                });
            }
            views[0].insert(&term!({(-5), 0}))
        })
        .expect("a transaction");
    runs
}

/// To know whether there are rows, a transaction reads a few; to know how many, all of them.
#[test]
fn few_rows_are_read_to_know_that_there_are_some() {
    assert_eq!(runs_beside(&|t| assert!(!t.is_empty()), 1999), 1);
    assert_eq!(runs_beside(&|t| assert!(t.len() >= 1000), 1999), 2);
}

/// A select by an index reads its entries and their rows: a transaction is lost if others change
/// these, and not if they change other values.
#[test]
fn a_select_by_an_index_reads_its_entries() {
    for kind in ["set", "ordered_set"] {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        t.add_index(&Index::element("by_value", 2)).unwrap();
        for key in 0..2000i64 {
            t.insert(&term!({(key), (key % 500)})).unwrap();
        }
        // How often a transaction runs that reads the rows of 7, if another thread does this.
        let runs = |change: &(dyn Fn() -> Result<(), Error> + Sync)| {
            let mut runs = 0;
            larder
                .transaction(&[&t], |views| {
                    let found = views[0].select("[{{'_',7},[],['$_']}]")?;
                    assert!((4..6).contains(&found.len()), "{kind}: {found:?}");
                    runs += 1;
                    if runs == 1 {
                        std::thread::scope(|scope| scope.spawn(change).join().unwrap())?;
                    }
                    views[0].insert(&term!({(-5), (-5)}))
                })
                .unwrap();
            runs
        };
        // Values share counters, so a few of these changes may be mistaken for changes of 7.
        let others: Vec<i32> = (20..40i64)
            .map(|n| runs(&|| t.insert(&term!({(3000 + n), (n)}))))
            .collect();
        assert!(
            others.iter().filter(|&&runs| runs == 1).count() > 10,
            "{kind}: {others:?}"
        );
        // A transaction may be lost without need, beside commits of other tests.
        let more = runs(&|| t.insert(&term!({4000, 7})));
        assert!(more > 1, "{kind}: one more row");
        let less = runs(&|| t.delete(&term!(4000)).map(drop));
        assert!(less > 1, "{kind}: one row less");
    }
}

/// Reads the rows of the keys from `low`, included, to `high`, excluded. Returns their number.
fn all_between(t: &Table, low: i64, high: i64, direction: Direction) -> usize {
    let (low, high) = (Term::from(low), Term::from(high));
    let bounds = (
        Bound::Included(low.as_ref()),
        Bound::Excluded(high.as_ref()),
    );
    let mut rows = t.range(bounds.0, bounds.1, direction).expect("a view");
    // In pages, so that scans stop and go on within the range.
    let pages = std::iter::from_fn(|| Some(rows.page(7).expect("a page").len()));
    pages.take_while(|&rows| rows > 0).sum()
}

/// A range that was read is part of the read set up to its end, and nothing beyond it.
#[test]
fn a_range_is_read_up_to_its_end() {
    // Few keys of one leaf, and many of several.
    for (low, high) in [(10, 20), (100, 1500)] {
        let spec = format!("[{{{{'$1','_'}},[{{'>=','$1',{low}}},{{'<','$1',{high}}}],[true]}}]");
        let keys = (high - low) as usize / 2;
        let read = |t: &Table, direction| {
            let rows = all_between(t, low, high, direction);
            assert!(rows.abs_diff(keys) <= 1);
        };
        let ways: [&dyn Fn(&Table); 4] = [
            &|t| assert!(t.select(&spec).expect("a view").len().abs_diff(keys) <= 1),
            &|t| {
                assert!(
                    t.select_reverse(&spec)
                        .expect("a view")
                        .len()
                        .abs_diff(keys)
                        <= 1
                )
            },
            &|t| read(t, Direction::Forward),
            &|t| read(t, Direction::Backward),
        ];
        for (way, read) in ways.iter().enumerate() {
            for key in [low, low + 1, low + 6, high - 2, high - 1] {
                assert_eq!(
                    runs_beside(read, key),
                    2,
                    "way {way}, {low} to {high}, beside {key}"
                );
            }
            for key in [low - 3, low - 4, high + 1, high + 2, 1998, 1999] {
                assert_eq!(
                    runs_beside(read, key),
                    1,
                    "way {way}, {low} to {high}, beside {key}"
                );
            }
        }
    }
}

/// Ranges that adjoin, overlap or have their ends the wrong way round leave those that were read
/// before as they are.
#[test]
fn ranges_that_were_read_never_shrink() {
    for ranges in [
        &[(10, 20), (20, 10)][..],
        &[(20, 10), (10, 20)],
        &[(10, 14), (14, 20)],
        &[(14, 20), (10, 14)],
        &[(10, 20), (12, 14)],
        &[(10, 20), (20, 20), (15, 11)],
    ] {
        for direction in [Direction::Forward, Direction::Backward] {
            let read = |t: &Table| {
                for &(low, high) in ranges {
                    all_between(t, low, high, direction);
                }
            };
            for key in [11, 14, 15, 18] {
                let runs = runs_beside(&read, key);
                assert_eq!(runs, 2, "{ranges:?} {direction:?}, beside {key}");
            }
            assert_eq!(runs_beside(&read, 31), 1, "{ranges:?} {direction:?}");
        }
    }
}

/// A table of this kind with the rows `{K, K rem 10}` of the keys 0 to 99, and an index of the
/// second element.
fn indexed(larder: &Larder, kind: &str) -> Table {
    let t = table(larder.table(kind), kind);
    t.add_index(&Index::element("group", 2)).expect("an index");
    for key in 0..100 {
        t.insert(&term!({(key), (key % 10)})).expect("a table");
    }
    t
}

/// How often a transaction runs that looks into the index for a group, and writes another table,
/// if this is done beside its first run.
fn runs(larder: &Larder, t: &Table, group: i64, beside: impl Fn(&Table)) -> i64 {
    let log = table(larder.table("set"), "set");
    let mut runs = 0i64;
    larder
        .transaction(&[t, &log], |views| {
            let found = views[0].index_lookup("group", &term!((group)))?;
            runs += 1;
            if runs == 1 {
                beside(t);
            }
            views[1].insert(&term!({(runs), (found.len() as i64)}))
        })
        .expect("tables");
    let found = t.index_lookup("group", &term!((group))).expect("a table");
    let row = term!({(runs), (found.len() as i64)});
    assert_eq!(log.to_vec(), Ok(vec![row]), "as of its commit");
    runs
}

/// A look-up by an index reads what it finds, and not the whole table.
#[test]
fn a_transaction_reads_the_entries_that_it_looks_up() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = indexed(&larder, kind);
        // Writes elsewhere change nothing: of rows that keep their group, or have another one. Some
        // of those may share a count with group 3.
        let same = runs(&larder, &t, 3, |t| {
            t.delete(&term!(4)).unwrap();
            t.insert(&term!({4, 4})).unwrap();
        });
        let others = (0..50).map(|i| {
            let group = 1000 + i;
            runs(&larder, &t, 3, |t| {
                t.insert(&term!({(group), (group)})).unwrap();
            })
        });
        let lost = others.filter(|&runs| runs > 1).count();
        assert!(same <= 2 && lost < 10, "{kind}: {same}, {lost}");
        // Whatever comes into the group or leaves it makes it lose.
        let into = runs(&larder, &t, 3, |t| t.insert(&term!({200, 3})).unwrap());
        let out = runs(&larder, &t, 3, |t| t.delete(&term!(200)).map(drop).unwrap());
        let moved = runs(&larder, &t, 3, |t| {
            t.delete(&term!(13)).unwrap();
            t.insert(&term!({13, 4})).unwrap();
        });
        let emptied = runs(&larder, &t, 77, |t| t.insert(&term!({201, 77})).unwrap());
        assert_eq!((into, out, moved, emptied), (2, 2, 2, 2), "{kind}");
        // Its own writes don't.
        let mut times = 0;
        larder
            .transaction(&[&t], |views| {
                times += 1;
                let found = views[0].index_lookup("group", &term!(5))?.len() as i64;
                views[0].insert(&term!({300, 5}))?;
                assert_eq!(
                    views[0].index_lookup("group", &term!(5))?.len() as i64,
                    found + 1
                );
                Ok(())
            })
            .unwrap();
        assert_eq!(times, 1, "{kind}");
        // An index that was dropped and added again has other counts.
        let anew = runs(&larder, &t, 3, |t| {
            t.drop_index("group").unwrap();
            t.insert(&term!({400, 3})).unwrap();
            t.add_index(&Index::element("group", 2)).unwrap();
        });
        assert_eq!(anew, 2, "{kind}");
    }
}

/// A commit that has read an index doesn't look through all that has changed since an old snapshot,
/// as the look-up does.
#[test]
fn entries_are_validated_beside_an_old_snapshot() {
    const KEYS: i64 = 100_000;
    for kind in ["set", "ordered_set"] {
        let larder = Larder::new();
        let t = indexed(&larder, kind);
        let rows: Vec<Term> = (0..KEYS).map(|key| term!({(key), (key)})).collect();
        t.insert_all(&rows).unwrap();
        let _old = t.snapshot().unwrap();
        // The writes that began before the first commit are over some epochs later.
        for round in 0..1_000 {
            let write = |views: &[Table]| views[0].insert(&term!({(-1), (round)}));
            larder.transaction(&[&t], write).unwrap();
        }
        for key in 0..KEYS {
            t.update(&term!((key)), 2, &term!((key + KEYS))).unwrap();
        }
        let mut ratios: Vec<f64> = (0..11)
            .map(|round| {
                let mut transaction = larder.begin(&[&t]).unwrap();
                let view = &transaction.views()[0];
                let begun = Instant::now();
                let found = view.index_lookup("group", &term!((KEYS + 7))).unwrap();
                assert_eq!(found.len(), 1);
                let looked_up = begun.elapsed();
                view.insert(&term!({(-1), (round)})).unwrap();
                let begun = Instant::now();
                assert!(transaction.commit().unwrap());
                begun.elapsed().as_secs_f64() / looked_up.as_secs_f64()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        assert!(ratios[5] < 0.05, "{kind}: {ratios:?}");
    }
}

/// As `there_are_no_phantoms`, found by an index.
#[test]
fn an_index_finds_no_phantoms() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = indexed(&larder, kind);
        for round in 1000..1500i64 {
            let insert = |thread: i64| {
                larder
                    .transaction(&[&t], |views| {
                        if views[0].index_lookup("group", &term!((round)))?.is_empty() {
                            views[0].insert(&term!({(2 * round + thread), (round)}))?;
                        }
                        Ok(())
                    })
                    .unwrap();
            };
            std::thread::scope(|scope| {
                scope.spawn(|| insert(0));
                insert(1);
            });
            let found = t.index_lookup("group", &term!((round))).unwrap();
            assert_eq!(found.len(), 1, "{kind}");
        }
    }
}

/// A reader that looks at two keys one after the other never sees the second of them older than the
/// first. The commits are of many keys, so that they take some time.
#[test]
fn a_commit_is_never_seen_by_halves() {
    const KEYS: u64 = 200;
    for kind in ["set", "ordered_set"] {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        let write = |table: &Table, n: i64| {
            (0..KEYS).try_for_each(|key| table.insert(&Term::tuple([Term::from(key), n.into()])))
        };
        write(&t, 0).unwrap();
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            scope.spawn(|| {
                for n in 1i64.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    larder
                        .transaction(&[&t], |views| write(&views[0], n))
                        .unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut random = Random(7);
            while done.load(Ordering::Relaxed) < 300 {
                let [first, second] = [(); 2].map(|()| {
                    let key = Term::from(random.below(KEYS));
                    number(&t, &key).unwrap()
                });
                assert!(second >= first, "{kind}: {first}, then {second}");
            }
        });
    }
}

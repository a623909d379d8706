//! Feeds: a mirror that follows a table is the table; lost events are reported; no event is
//! delivered twice.

mod changes;
mod kinds;
mod lists;

use changes::change;
use kinds::{table, KINDS};
use larder::api::{Commit, Event, Feed, FeedOptions, Larder, Table};
use larder::host::{Budget, CommitOutcome, Error, Step};
use larder_term::{term, Term};
use larder_testing::random::Random;
use lists::list;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Feeds that never lose anything here.
fn all() -> FeedOptions {
    FeedOptions {
        limit: 1 << 30,
        ..FeedOptions::default()
    }
}

fn pair(key: i64, value: i64) -> Term {
    Term::tuple([Term::from(key), Term::from(value)])
}

/// What a table has, by what a feed tells.
#[derive(Default)]
struct Mirror {
    rows: BTreeMap<Term, usize>,
    seq: u64,
}

impl Mirror {
    fn of(table: &Table) -> Self {
        let mut mirror = Mirror::default();
        for row in table.to_vec().unwrap() {
            mirror.insert(row);
        }
        mirror
    }

    fn insert(&mut self, row: Term) {
        *self.rows.entry(row).or_default() += 1;
    }

    fn remove(&mut self, row: &Term) {
        let count = self.rows.get_mut(row);
        let count = count.unwrap_or_else(|| panic!("{row} went, and was not there"));
        *count -= 1;
        if *count == 0 {
            self.rows.remove(row);
        }
    }

    fn apply(&mut self, commit: Commit) {
        // The parts of a large commit have one number.
        assert!(commit.seq >= self.seq, "{} after {}", commit.seq, self.seq);
        self.seq = commit.seq;
        for event in commit.events {
            match event {
                Event::Insert(new) => self.insert(new),
                Event::Replace(old, new) => {
                    self.remove(&old);
                    self.insert(new);
                }
                Event::Delete(old) | Event::Expire(old) | Event::Evict(old) => self.remove(&old),
                Event::Clear => self.rows.clear(),
                Event::Overflow(_) | Event::Gone => panic!("{event:?}"),
            }
        }
    }

    fn catch_up(&mut self, feed: &mut Feed) {
        while let Some(commit) = feed.try_recv() {
            self.apply(commit);
        }
    }

    fn check(&self, table: &Table) {
        assert!(self.rows == Mirror::of(table).rows, "the mirror differs");
    }
}

#[test]
fn a_mirror_is_the_table() {
    for kind in KINDS {
        for seed in 1..=4u64 {
            eprintln!("{kind}, seed {seed}");
            let larder = Larder::new();
            let t = table(larder.table(kind), kind);
            let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed);
            let keys = [8, 100, 5_000][seed as usize % 3];
            for _ in 0..100 {
                change(&t, &mut random, keys);
            }
            let mut feeds = Vec::new();
            for _ in 0..1_000 {
                if random.below(100) == 0 {
                    let (snapshot, feed) = t.snapshot_and_subscribe(&all()).unwrap();
                    feeds.push((Mirror::of(&snapshot), feed));
                }
                change(&t, &mut random, keys);
                if random.below(30) == 0 && !feeds.is_empty() {
                    let i = random.below(feeds.len() as u64) as usize;
                    let (mirror, feed) = &mut feeds[i];
                    mirror.catch_up(feed);
                    mirror.check(&t);
                    if random.below(3) == 0 {
                        feeds.swap_remove(i);
                    }
                }
            }
            for (mirror, feed) in &mut feeds {
                mirror.catch_up(feed);
                mirror.check(&t);
            }
        }
    }
}

/// Subscribers come and go while three threads write; each begins with a snapshot.
#[test]
fn mirrors_beside_writers() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        let stop = AtomicBool::new(false);
        let seeds = AtomicUsize::new(1);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let seed = seeds.fetch_add(1, Ordering::Relaxed) as u64;
                        let mut random = Random(0x1234_5678_9ABC_DEF1 ^ seed << 20);
                        while !stop.load(Ordering::Relaxed) {
                            change(&t, &mut random, 40);
                        }
                    })
                })
                .collect();
            /// The writers end also if this thread panics.
            struct Ends<'a>(&'a AtomicBool);
            impl Drop for Ends<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Relaxed);
                }
            }
            let ends = Ends(&stop);
            let mut last = None;
            for _ in 0..30 {
                let (snapshot, mut feed) = t.snapshot_and_subscribe(&all()).unwrap();
                let mut mirror = Mirror::of(&snapshot);
                for _ in 0..20 {
                    if let Some(commit) = feed.recv_timeout(Duration::from_secs(10)) {
                        mirror.apply(commit);
                    }
                }
                last = Some((mirror, feed));
            }
            drop(ends);
            writers.into_iter().for_each(|w| w.join().unwrap());
            let (mut mirror, mut feed) = last.unwrap();
            mirror.catch_up(&mut feed);
            mirror.check(&t);
        });
        assert_eq!(t.engine_table().subscribers(), 0);
    }
}

#[test]
fn the_changes_of_one_write_are_one_commit() {
    let larder = Larder::new();
    let t = table(larder.table("bag"), "bag");
    let mut feed = t.subscribe().unwrap();
    let rows = [term!({a, 1}), term!({a, 2}), term!({b, 3})];
    t.insert_all(&rows).unwrap();
    let commit = feed.try_recv().unwrap();
    assert_eq!(commit.events, rows.clone().map(Event::Insert));
    t.delete(&term!(a)).unwrap();
    let commit = feed.try_recv().unwrap();
    let gone = [term!({a, 1}), term!({a, 2})].map(Event::Delete);
    assert_eq!(commit.events, gone);
    // A write that changes nothing has no event.
    t.insert(&term!({b, 3})).unwrap();
    t.delete(&term!(c)).unwrap();
    assert_eq!(feed.try_recv(), None);
}

#[test]
fn a_transaction_is_one_commit_in_all_its_tables() {
    let larder = Larder::new();
    let (one, two) = (
        table(larder.table("set"), "set"),
        table(larder.table("bag"), "bag"),
    );
    let mut feeds = [one.subscribe().unwrap(), two.subscribe().unwrap()];
    let tables = [one.engine_table(), two.engine_table()];
    let transaction = larder.engine().begin(&tables, larder.owner()).unwrap();
    for (view, rows) in transaction.views().zip([
        [term!({a, 1}), term!({b, 1})],
        [term!({c, 1}), term!({c, 2})],
    ]) {
        for row in rows {
            let mut object = larder_term::object::ObjectBuf::new();
            view.encode_object(row.as_ref(), &mut object).unwrap();
            view.insert(larder.owner(), &object).unwrap();
        }
    }
    assert!(feeds.iter_mut().all(|feed| feed.try_recv().is_none()));
    assert_eq!(transaction.commit().unwrap(), CommitOutcome::Committed);
    let [first, second] = feeds.each_mut().map(|feed| feed.try_recv().unwrap());
    assert_eq!(first.seq, second.seq);
    assert_eq!(first.events.len(), 2);
    assert_eq!(
        second.events,
        [term!({c, 1}), term!({c, 2})].map(Event::Insert)
    );
}

#[test]
fn a_commit_in_tables_of_two_larders_is_told_by_the_feed_of_each() {
    let tables = [Larder::new(), Larder::new()].map(|own| own.table("t").create().unwrap());
    let [a, b] = &tables;
    let mut feeds = tables.each_ref().map(|t| t.subscribe().unwrap());
    let larder = a.larder();
    let mut transaction = larder.begin(&[a, b]).unwrap();
    transaction.views()[0].insert(&pair(1, 1)).unwrap();
    transaction.views()[1].insert(&pair(2, 2)).unwrap();
    assert!(transaction.commit().unwrap());
    let list = larder.operations();
    let list = list.insert(a, &pair(3, 3)).insert(b, &pair(4, 4));
    assert_eq!(list.commit().unwrap(), None);
    for (feed, rows) in feeds.iter_mut().zip([[1, 3], [2, 4]]) {
        for key in rows {
            let events = feed.try_recv().map(|commit| commit.events);
            assert_eq!(events, Some(vec![Event::Insert(pair(key, key))]));
        }
        assert!(feed.try_recv().is_none());
    }
}

#[test]
fn lost_events_are_reported_and_a_new_snapshot_helps() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        let options = FeedOptions {
            limit: 10,
            ..FeedOptions::default()
        };
        let mut slow = t.subscribe_with(&options).unwrap();
        let mut quick = t.subscribe().unwrap();
        for n in 0..25i64 {
            t.insert(&pair(n, n)).unwrap();
        }
        let first = slow.try_recv().unwrap();
        assert_eq!(first.events, [Event::Overflow(15)], "{kind}");
        for n in 15..25i64 {
            let row = pair(n, n);
            let next = slow.try_recv().unwrap();
            assert!(next.seq > first.seq);
            assert_eq!(next.events, [Event::Insert(row)]);
        }
        assert_eq!(slow.try_recv(), None);
        assert_eq!(std::iter::from_fn(|| quick.try_recv()).count(), 25);
        drop(slow);
        let (snapshot, mut feed) = t.snapshot_and_subscribe(&options).unwrap();
        let mut mirror = Mirror::of(&snapshot);
        t.delete(&term!(3)).unwrap();
        mirror.catch_up(&mut feed);
        mirror.check(&t);
    }
}

/// More than 500 events of a commit come in parts, with one number.
#[test]
fn a_large_commit_comes_in_parts() {
    let larder = Larder::new();
    let t = table(larder.table("bag"), "bag");
    let rows: Vec<Term> = (0..1_200)
        .map(|n| Term::tuple([term!(a), Term::from(n)]))
        .collect();
    t.insert_all(&rows).unwrap();
    let mut feed = t.subscribe().unwrap();
    t.delete(&term!(a)).unwrap();
    let parts: Vec<Commit> = std::iter::from_fn(|| feed.try_recv()).collect();
    assert!(parts
        .iter()
        .all(|part| part.seq == parts[0].seq && part.events.len() <= 500));
    let gone: Vec<Event> = parts.into_iter().flat_map(|part| part.events).collect();
    assert_eq!(
        gone,
        rows.into_iter().map(Event::Delete).collect::<Vec<_>>()
    );
}

/// A commit of at most 500 events is delivered whole, also if single writes come before it.
#[test]
fn a_commit_after_single_writes_is_whole() {
    let larder = Larder::new();
    let t = table(larder.table("bag"), "bag");
    let rows: Vec<Term> = (0..500)
        .map(|n| Term::tuple([term!(a), Term::from(n)]))
        .collect();
    t.insert_all(&rows).unwrap();
    let mut feed = t.subscribe().unwrap();
    for n in 0..60 {
        t.insert(&pair(n, n)).unwrap();
    }
    t.delete(&term!(a)).unwrap();
    t.insert(&pair(60, 60)).unwrap();
    let lengths: Vec<usize> = std::iter::from_fn(|| feed.try_recv())
        .map(|commit| commit.events.len())
        .collect();
    let expected: Vec<usize> = [vec![1; 60], vec![500, 1]].concat();
    assert_eq!(lengths, expected);
}

/// No event of a commit that was lost in part is delivered.
#[test]
fn a_commit_is_whole_or_lost() {
    let larder = Larder::new();
    let t = table(larder.table("bag"), "bag");
    let options = FeedOptions {
        limit: 4,
        ..FeedOptions::default()
    };
    let mut feed = t.subscribe_with(&options).unwrap();
    let rows = [term!({a, 1}), term!({a, 2}), term!({a, 3})];
    t.insert_all(&rows).unwrap();
    t.insert(&term!({b, 1})).unwrap();
    t.insert(&term!({b, 2})).unwrap();
    assert_eq!(feed.try_recv().unwrap().events, [Event::Overflow(3)]);
    assert_eq!(
        feed.try_recv().unwrap().events,
        [Event::Insert(term!({b, 1}))]
    );
    assert_eq!(
        feed.try_recv().unwrap().events,
        [Event::Insert(term!({b, 2}))]
    );
    assert_eq!(feed.try_recv(), None);
}

/// The last follower to read drops thousands of events at once. Those after them stay.
#[test]
fn many_events_are_dropped_at_once() {
    for limit in [10, 300, 2_000] {
        let larder = Larder::new();
        let t = table(larder.table("set"), "set");
        let options = FeedOptions {
            limit,
            ..FeedOptions::default()
        };
        let mut slow = t.subscribe_with(&options).unwrap();
        let mut quick = t.subscribe_with(&all()).unwrap();
        let (mut lost, mut told) = (0, Vec::new());
        for round in 0..3i64 {
            for n in round * 5_000..(round + 1) * 5_000 {
                t.insert(&pair(n, n)).unwrap();
            }
            let inserted = std::iter::from_fn(|| quick.try_recv()).map(|commit| commit.events);
            let expected =
                (round * 5_000..(round + 1) * 5_000).map(|n| [Event::Insert(pair(n, n))]);
            assert!(inserted.eq(expected));
            for commit in std::iter::from_fn(|| slow.try_recv()) {
                match &commit.events[..] {
                    [Event::Overflow(n)] => lost += n,
                    events => told.extend_from_slice(events),
                }
            }
        }
        let limit = limit as i64;
        let newest = (1..=3).flat_map(|end| end * 5_000 - limit..end * 5_000);
        let expected: Vec<Event> = newest.map(|n| Event::Insert(pair(n, n))).collect();
        assert_eq!(lost, 3 * (5_000 - limit as u64));
        assert_eq!(told, expected);
    }
}

#[test]
fn a_filter_picks_by_the_new_object_or_the_old() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        let options = FeedOptions {
            filter: Some("[{{'_','$1'},[{'>','$1',10}],['$_']}]".to_owned()),
            ..FeedOptions::default()
        };
        let mut feed = t.subscribe_with(&options).unwrap();
        t.insert(&term!({a, 1})).unwrap();
        t.insert(&term!({b, 11})).unwrap();
        t.delete(&term!(a)).unwrap();
        t.delete(&term!(b)).unwrap();
        let mut expected = vec![Event::Insert(term!({b, 11})), Event::Delete(term!({b, 11}))];
        if t.engine_table().kind().is_unique() {
            t.insert(&term!({c, 5})).unwrap();
            t.add(&term!(c), 2, 10).unwrap();
            t.add(&term!(c), 2, -10).unwrap();
            t.add(&term!(c), 2, -1).unwrap();
            expected.push(Event::Replace(term!({c, 5}), term!({c, 15})));
            expected.push(Event::Replace(term!({c, 15}), term!({c, 5})));
        }
        t.clear().unwrap();
        expected.push(Event::Clear);
        let told: Vec<_> = std::iter::from_fn(|| feed.try_recv())
            .flat_map(|commit| commit.events)
            .collect();
        assert_eq!(told, expected, "{kind}");
    }
}

#[test]
fn the_end_of_a_table_is_delivered_last() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        let (_, mut feed) = t.snapshot_and_subscribe(&all()).unwrap();
        t.insert(&term!({a, 1})).unwrap();
        t.drop_table().unwrap();
        let events: Vec<_> = feed.by_ref().flat_map(|commit| commit.events).collect();
        assert_eq!(events, [Event::Insert(term!({a, 1})), Event::Gone]);
        assert_eq!(feed.recv(), None);
        assert!(matches!(t.subscribe(), Err(Error::NoTable)));
    }
}

/// A feed doesn't keep its table: the last handle of the table and of its `Larder` drops it.
#[test]
fn a_feed_ends_with_the_last_handle() {
    for kind in KINDS {
        let larder = Larder::new();
        let t = table(larder.table(kind), kind);
        let mut feed = t.subscribe().unwrap();
        let (snapshot, mut late) = t.snapshot_and_subscribe(&all()).unwrap();
        t.insert(&term!({a, 1})).unwrap();
        drop((larder, snapshot));
        let insert = || Some(vec![Event::Insert(term!({a, 1}))]);
        let limit = Duration::from_secs(60);
        let events = |feed: &mut Feed| feed.recv_timeout(limit).map(|commit| commit.events);
        assert_eq!(events(&mut feed), insert(), "{kind}");
        assert_eq!(feed.try_recv(), None, "{kind}");
        // One reader waits while the last handle is dropped. The other one reads what was left.
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                drop(t);
            });
            assert_eq!(events(&mut feed), Some(vec![Event::Gone]), "{kind}");
        });
        assert!(feed.is_over(), "{kind}");
        assert_eq!(events(&mut late), insert(), "{kind}");
        assert_eq!(events(&mut late), Some(vec![Event::Gone]), "{kind}");
        assert_eq!(late.recv(), None, "{kind}");
    }
}

#[test]
fn a_table_that_nobody_follows_keeps_nothing() {
    let larder = Larder::new();
    let t = table(larder.table("set"), "set");
    t.insert(&term!({a, 1})).unwrap();
    let before = t.memory();
    let feed = t.subscribe().unwrap();
    assert!(t.memory() > before);
    // The last snapshot's end is not the subscription's.
    drop(t.snapshot().unwrap());
    assert!(larder.engine().reaper_idle(Duration::from_secs(10)));
    t.insert(&term!({a, 2})).unwrap();
    assert!(t.engine_table().subscribers() == 1);
    drop(feed);
    assert!(larder.engine().reaper_idle(Duration::from_secs(10)));
    assert_eq!(t.memory(), before);
    // A snapshot's end after the subscription's.
    let (snapshot, feed) = t.snapshot_and_subscribe(&all()).unwrap();
    drop(feed);
    drop(snapshot);
    assert!(larder.engine().reaper_idle(Duration::from_secs(10)));
    assert_eq!(t.memory(), before);
}

#[test]
fn a_feed_waits() {
    let larder = Larder::new();
    let t = table(larder.table("set"), "set");
    let mut feed = t.subscribe().unwrap();
    assert_eq!(feed.recv_timeout(Duration::from_millis(20)), None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..1_000i64 {
                t.insert(&pair(n, 0)).unwrap();
                if n % 100 == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        });
        for n in 0..1_000i64 {
            let row = pair(n, 0);
            assert_eq!(feed.recv().unwrap().events, [Event::Insert(row)]);
        }
    });
}

/// Others may write what a filter excludes faster than the feed reads it: a call ends all the same.
#[test]
fn a_reader_of_what_is_excluded_comes_back() {
    let table = Larder::new().table("t").create().unwrap();
    // None of many clauses matches, which takes longer than a write.
    let clauses: Vec<_> = (1_000..1_500)
        .map(|key| format!("{{{{{key},'_'}},[],['$_']}}"))
        .collect();
    let options = FeedOptions {
        filter: Some(format!("[{}]", clauses.join(","))),
        ..all()
    };
    let mut feed = table.subscribe_with(&options).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // An end for a reader that doesn't come back by itself.
            for _ in 0..3_000 {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                for key in 0..200 {
                    table.insert(&pair(key, 0)).unwrap();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        for _ in 0..4 {
            assert_eq!(feed.recv_timeout(Duration::from_millis(50)), None);
            assert_eq!(feed.try_recv(), None);
        }
        assert!(!writer.is_finished());
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn bad_filters_and_snapshots_are_refused() {
    let larder = Larder::new();
    let t = table(larder.table("set"), "set");
    let options = FeedOptions {
        filter: Some("[nonsense]".to_owned()),
        ..FeedOptions::default()
    };
    assert!(matches!(t.subscribe_with(&options), Err(Error::BadSpec(_))));
    let snapshot = t.snapshot().unwrap();
    assert!(matches!(snapshot.subscribe(), Err(Error::TableType)));
}

/// A list of which events are lost while it is being inserted is lost as a whole.
#[test]
fn no_part_of_a_list_comes_after_a_loss() {
    for units in 66..76 {
        let t = Larder::new().table("t").create().unwrap();
        let options = FeedOptions {
            limit: 10,
            ..FeedOptions::default()
        };
        let mut feed = t.subscribe_with(&options).unwrap();
        let engine = t.engine_table();
        let rows = list(&t, (0..70).map(|k| term!({(k), 1})));
        let mut job = engine.begin_insert(engine.owner(), rows, false).unwrap();
        job.step(&mut Budget::new(units, Duration::from_secs(60)))
            .unwrap();
        let mut commits: Vec<Commit> = feed.try_recv().into_iter().collect();
        while job.step(&mut Budget::unlimited()).unwrap() == Step::More {}
        commits.extend(std::iter::from_fn(|| feed.try_recv()));
        let events = commits.iter().flat_map(|commit| &commit.events);
        let inserts = events.filter(|event| matches!(event, Event::Insert(_)));
        assert_eq!(inserts.count(), 0, "{units}");
    }
}

/// To read an event takes as long among many subscribers as among few.
#[test]
fn many_subscribers_read_in_time() {
    let time_of_a_read = |subscribers: u32| {
        let t = Larder::new().table("t").create().unwrap();
        let mut feeds: Vec<Feed> = (0..subscribers).map(|_| t.subscribe().unwrap()).collect();
        let read = |round: i64, feeds: &mut [Feed]| {
            t.insert(&pair(round, round)).unwrap();
            let begun = Instant::now();
            for feed in feeds {
                assert!(feed.try_recv().is_some() && feed.try_recv().is_none());
            }
            begun.elapsed() / subscribers
        };
        (0..8).map(|round| read(round, &mut feeds)).min().unwrap()
    };
    let (few, many) = (time_of_a_read(500), time_of_a_read(16_000));
    // A search through all of them would take 32 times as long. The many don't fit in the caches.
    assert!(many < 16 * few, "{many:?} among many, {few:?} among few");
}

//! Bounded tables: what is expired is in no answer, whether or not it was removed; a snapshot shows
//! what was not expired at its instant; what expires is removed, and its event delivered; nothing
//! fresh is.

mod units;

use larder::api::{Event, Feed, FeedOptions, Index, Larder, Snapshot, Table};
use larder::host::read_header;
use larder::{advance_clock, Bounds, Error, TimeLeft};
use larder_term::{term, Term};
use larder_testing::random::Random;
use larder_testing::sorted;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use units::{alone, settles, units, UNIT};

fn pair(key: i64, value: i64) -> Term {
    Term::tuple([Term::from(key), Term::from(value)])
}

fn key(key: i64) -> Term {
    Term::from(key)
}

/// The key of a row.
fn first(row: &Term) -> Term {
    let row = row.as_ref().as_tuple().unwrap();
    Term::from(row.get(0).unwrap().as_int().unwrap())
}

fn bounded(ordered: bool) -> Table {
    let larder = Larder::new();
    let builder = larder.table("t").ttl(units(5));
    let builder = if ordered {
        builder.ordered_set()
    } else {
        builder
    };
    builder.create().unwrap()
}

/// Has all that is due removed.
fn remove(table: &Table) {
    while table.engine_table().remove_expired().unwrap().1 {}
}

#[test]
fn what_is_expired_is_absent_to_every_operation() {
    let _alone = alone();
    for (ordered, watched) in [(false, false), (false, true), (true, false), (true, true)] {
        let t = bounded(ordered);
        let _snapshot = watched.then(|| t.snapshot().unwrap());
        for k in 0..20 {
            t.insert_with(&pair(k, 0), Some(units(1))).unwrap();
        }
        t.insert(&pair(100, 0)).unwrap();
        advance_clock(UNIT);
        // The expirer may have been there first: either way.
        for k in 0..20i64 {
            assert!(!t.contains(&key(k)).unwrap());
            assert_eq!(t.lookup(&key(k)).unwrap(), []);
            assert_eq!(t.time_left(&key(k)).unwrap(), TimeLeft::Absent);
            assert!(!t.expire(&key(k), None).unwrap());
        }
        assert_eq!(t.to_vec().unwrap(), [pair(100, 0)]);
        assert_eq!(t.first().unwrap(), Some(term!(100)));
        assert_eq!(t.last().unwrap(), Some(term!(100)));
        assert_eq!(t.next(&term!(100)).unwrap(), None);
        assert_eq!(t.select("[{'_',[],['$_']}]").unwrap(), [pair(100, 0)]);
        assert_eq!(t.delete(&term!(0)).unwrap(), 0);
        assert_eq!(t.take(&term!(1)).unwrap(), []);
        assert_eq!(t.add(&term!(2), 2, 1), Err(Error::BadKey));
        assert_eq!(t.add_or(&term!(3), 2, 1, &pair(0, 7)).unwrap(), term!(8));
        assert!(t.insert_new(&pair(4, 4)).unwrap());
        assert!(!t.insert_new(&pair(4, 5)).unwrap());
        t.insert(&pair(5, 5)).unwrap();
        t.insert_all(&[pair(6, 6), pair(7, 7)]).unwrap();
        assert!(t.insert_all_new(&[pair(8, 8), pair(9, 9)]).unwrap());
        t.insert_with(&pair(10, 10), None).unwrap();
        let rows = sorted(t.to_vec().unwrap());
        assert_eq!(rows.len(), 9);
        remove(&t);
        assert_eq!(sorted(t.to_vec().unwrap()), rows);
        settles(&t, 9);
        advance_clock(5 * UNIT);
        assert_eq!(t.to_vec().unwrap(), [pair(10, 10)]);
        remove(&t);
        settles(&t, 1);
        assert_eq!(t.time_left(&term!(10)).unwrap(), TimeLeft::Unlimited);
        assert_eq!(t.clear().unwrap(), 1);
        t.insert(&pair(1, 1)).unwrap();
        assert!(matches!(t.time_left(&term!(1)).unwrap(), TimeLeft::Ms(ms) if ms > 4 * UNIT));
    }
}

/// What a table is to have: value and the time at which it expires, in units.
#[derive(Clone, Default)]
struct Oracle {
    rows: BTreeMap<i64, (i64, u64)>,
    now: u64,
}

impl Oracle {
    fn live(&self) -> Vec<Term> {
        let live = self.rows.iter().filter(|(_, row)| row.1 > self.now);
        live.map(|(k, (v, _))| pair(*k, *v)).collect()
    }

    fn get(&self, k: i64) -> Option<i64> {
        let row = self.rows.get(&k).filter(|row| row.1 > self.now)?;
        Some(row.0)
    }
}

/// Follows a feed, and has what it tells.
struct Mirror(Feed, BTreeMap<Term, Term>);

impl Mirror {
    fn follow(&mut self) {
        while let Some(commit) = self.0.try_recv() {
            for event in commit.events {
                match event {
                    Event::Insert(new) => assert_eq!(self.1.insert(first(&new), new), None),
                    Event::Replace(old, new) => {
                        assert_eq!(self.1.insert(first(&new), new), Some(old));
                    }
                    Event::Delete(old) => {
                        assert_eq!(self.1.remove(&first(&old)), Some(old));
                    }
                    // One that was expired already is in no snapshot.
                    Event::Expire(old) => {
                        let was = self.1.remove(&first(&old));
                        assert!(was.is_none_or(|was| was == old));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// Writes to a row, or removes it. `which` is a number from 0 to 13.
fn write_row(t: &Table, oracle: &mut Oracle, which: u64, k: i64, v: i64, random: &mut Random) {
    let (now, default) = (oracle.now, oracle.now + 5);
    match which {
        0..=3 => {
            t.insert(&pair(k, v)).unwrap();
            oracle.rows.insert(k, (v, default));
        }
        4..=6 => {
            let ttl = random.below(8);
            t.insert_with(&pair(k, v), Some(units(ttl))).unwrap();
            oracle.rows.insert(k, (v, now + ttl));
        }
        7 => {
            let new = oracle.get(k).is_none();
            assert_eq!(t.insert_new(&pair(k, v)).unwrap(), new);
            if new {
                oracle.rows.insert(k, (v, default));
            }
        }
        8 => {
            let there = oracle.get(k);
            assert_eq!(t.delete(&key(k)).unwrap(), there.iter().count());
            oracle.rows.remove(&k);
        }
        9 => {
            let there = oracle.get(k);
            let rows: Vec<Term> = there.map(|v| pair(k, v)).into_iter().collect();
            assert_eq!(t.take(&key(k)).unwrap(), rows);
            oracle.rows.remove(&k);
        }
        10 | 11 => {
            let sum = oracle.get(k).unwrap_or(0) + 3;
            assert_eq!(
                t.add_or(&key(k), 2, 3, &pair(0, 0)).unwrap(),
                Term::from(sum)
            );
            oracle.rows.insert(k, (sum, default));
        }
        _ => {
            let ttl = random.below(8);
            let there = oracle.get(k);
            assert_eq!(
                t.expire(&key(k), Some(units(ttl))).unwrap(),
                there.is_some()
            );
            if let Some(v) = there {
                oracle.rows.insert(k, (v, now + ttl));
            }
        }
    }
}

/// The snapshots are as they were. The difference of two has all rows that only one of them has.
fn check_snapshots(snapshots: &[(Snapshot, Vec<Term>)]) {
    for (snapshot, rows) in snapshots {
        assert_eq!(&sorted(snapshot.to_vec().unwrap()), rows);
        assert_eq!(snapshot.len(), rows.len());
    }
    if let [old, .., new] = snapshots {
        let differences = old.0.diff(&new.0).unwrap().len();
        let only = |a: &[Term], b: &[Term]| a.iter().filter(|row| !b.contains(row)).count();
        let (gone, come) = (only(&old.1, &new.1), only(&new.1, &old.1));
        assert!(differences >= gone.max(come) && differences <= gone + come);
    }
}

fn random_operations(seed: u64, ordered: bool) {
    let mut random = Random(seed + 1);
    let t = bounded(ordered);
    let mut oracle = Oracle::default();
    let mut snapshots: Vec<(Snapshot, Vec<Term>)> = Vec::new();
    let options = FeedOptions {
        limit: 1 << 20,
        ..FeedOptions::default()
    };
    let mut mirror: Option<Mirror> = None;
    for step in 0..600 {
        let (k, v) = (random.below(12) as i64, random.below(100) as i64);
        match random.below(24) {
            which @ 0..=13 => write_row(&t, &mut oracle, which, k, v, &mut random),
            14..=16 => {
                let by = 1 + random.below(3);
                advance_clock(by * UNIT);
                oracle.now += by;
            }
            17 => remove(&t),
            18 => snapshots.push((t.snapshot().unwrap(), oracle.live())),
            19 if !snapshots.is_empty() => {
                snapshots.swap_remove(random.below(snapshots.len() as u64) as usize);
            }
            20 if mirror.is_none() => {
                let (snapshot, feed) = t.snapshot_and_subscribe(&options).unwrap();
                let rows = snapshot.to_vec().unwrap();
                let rows = rows.into_iter().map(|row| (first(&row), row));
                mirror = Some(Mirror(feed, rows.collect()));
            }
            21 => {
                let mut seen = Vec::new();
                let mut at = t.first().unwrap();
                while let Some(k) = at {
                    seen.extend(t.lookup(&k).unwrap());
                    at = t.next(&k).unwrap();
                }
                assert_eq!(sorted(seen), oracle.live());
            }
            _ => {
                let rows: Vec<Term> = oracle.get(k).map(|v| pair(k, v)).into_iter().collect();
                assert_eq!(
                    t.lookup(&key(k)).unwrap(),
                    rows,
                    "{seed}, step {step}, key {k}"
                );
            }
        }
        assert_eq!(
            sorted(t.to_vec().unwrap()),
            oracle.live(),
            "{seed}, step {step}"
        );
        check_snapshots(&snapshots);
    }
    remove(&t);
    settles(&t, oracle.live().len());
    if let Some(mut mirror) = mirror {
        mirror.follow();
        let rows: Vec<Term> = mirror.1.into_values().collect();
        assert_eq!(sorted(rows), oracle.live());
    }
}

#[test]
fn random_operations_are_those_of_the_oracle() {
    let _alone = alone();
    for seed in 0..60 {
        random_operations(seed, seed % 2 == 0);
    }
}

#[test]
fn the_library_removes_what_is_expired_by_itself() {
    let _alone = alone();
    let larder = Larder::new();
    let t = larder
        .table("t")
        .ttl(Duration::from_millis(30))
        .create()
        .unwrap();
    for k in 0..20_000 {
        t.insert(&pair(k, k)).unwrap();
    }
    t.insert_with(&pair(-1, 0), None).unwrap();
    let begun = Instant::now();
    while t.len() > 1 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} rows",
            t.len()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(t.to_vec().unwrap(), [pair(-1, 0)]);
}

#[test]
fn reads_move_the_deadline_of_idle_objects() {
    let _alone = alone();
    for ordered in [false, true] {
        let larder = Larder::new();
        let builder = larder.table("t").idle(units(8)).ttl(units(100));
        let builder = if ordered {
            builder.ordered_set()
        } else {
            builder
        };
        let t = builder.create().unwrap();
        let long = Term::from(&[7u8; 100][..]);
        for k in 0..4i64 {
            t.insert(&Term::tuple([Term::from(k), long.clone()]))
                .unwrap();
        }
        for _ in 0..10 {
            advance_clock(4 * UNIT);
            assert_eq!(t.lookup(&term!(0)).unwrap().len(), 1);
            t.expire(&term!(1), None).unwrap();
            // Neither is a read.
            assert!(t.contains(&term!(0)).unwrap());
            t.to_vec().unwrap();
        }
        assert!(!t.contains(&term!(2)).unwrap());
        remove(&t);
        settles(&t, 2);
        // Reads don't move it beyond the time to live.
        for _ in 0..15 {
            advance_clock(4 * UNIT);
            t.lookup(&term!(0)).unwrap();
            t.lookup(&term!(1)).unwrap();
        }
        assert!(!t.contains(&term!(0)).unwrap() && t.contains(&term!(1)).unwrap());
    }
}

/// A list or a commit that is refused is neither a write nor a look-up.
#[test]
fn what_is_refused_moves_no_deadline() -> Result<(), Error> {
    let _alone = alone();
    let unique = Index::element("v", 2).unique();
    let builder = Larder::new().table("t").idle(units(8)).max_size(2);
    let t = builder.index(unique).create()?;
    t.insert_all(&[pair(1, 1), pair(2, 2)])?;
    advance_clock(4 * UNIT);
    let taken = [pair(1, 2)];
    assert!(matches!(t.insert_all(&taken), Err(Error::NotUnique(_))));
    let no_room = [pair(1, 3), pair(3, 4)];
    assert!(matches!(t.insert_all(&no_room), Err(Error::Full(_))));
    let commit = |row: &Term| t.larder().transaction(&[&t], |views| views[0].insert(row));
    assert!(matches!(commit(&taken[0]), Err(Error::NotUnique(_))));
    // Nine since the insert.
    assert_eq!(units_left(&t, 1)?, Some(5));
    commit(&pair(1, 3))?;
    assert_eq!(units_left(&t, 1)?, Some(9));
    Ok(())
}

/// A part of the millisecond in which it is read is over.
#[test]
fn an_object_that_is_read_one_idle_time_before_its_deadline_gets_another() {
    let _alone = alone();
    let larder = Larder::new();
    let t = larder.table("t").idle(units(80)).create().unwrap();
    t.insert(&term!({ a })).unwrap();
    advance_clock(10 * UNIT);
    t.lookup(&term!(a)).unwrap();
    let left = t.time_left(&term!(a)).unwrap();
    assert!(
        matches!(left, TimeLeft::Ms(ms) if ms > 80 * UNIT),
        "{left:?}"
    );
}

/// The object that `compute` has read lives on while it decides.
#[cfg(feature = "serde")]
#[test]
fn compute_moves_the_deadline_before_it_decides() {
    let _alone = alone();
    let larder = Larder::new();
    let builder = larder.table("t").idle(units(8));
    let t = builder.typed::<u64, u64>().unwrap();
    t.insert(1, 1).unwrap();
    advance_clock(6 * UNIT);
    let mut seen = Vec::new();
    let add = |old: Option<u64>| {
        seen.push(old);
        advance_clock(6 * UNIT);
        Some(old.unwrap_or(0) + 1)
    };
    assert_eq!(t.compute(&1, add).unwrap(), Some(2));
    assert_eq!(seen, [Some(1)]);
}

#[test]
fn expirations_are_delivered() {
    let _alone = alone();
    let t = bounded(false);
    let mut feed = t.subscribe().unwrap();
    t.insert(&pair(1, 1)).unwrap();
    t.insert_with(&pair(2, 2), Some(Duration::ZERO)).unwrap();
    // Expired, and put in place of: two events.
    t.insert_with(&pair(2, 3), Some(units(100))).unwrap();
    t.expire(&term!(2), None).unwrap();
    advance_clock(5 * UNIT);
    remove(&t);
    t.delete(&term!(2)).unwrap();
    let mut events = Vec::new();
    while events.len() < 6 {
        events.extend(feed.recv_timeout(Duration::from_secs(20)).unwrap().events);
    }
    let position = |event: &Event| events.iter().position(|other| other == event);
    assert!(position(&Event::Expire(pair(2, 2))) < position(&Event::Insert(pair(2, 3))));
    assert!(events.contains(&Event::Expire(pair(1, 1))));
    assert!(events.contains(&Event::Delete(pair(2, 3))));
    assert_eq!(events.len(), 6, "{events:?}");
}

#[test]
fn transactions_see_what_was_not_expired_when_they_began() {
    let _alone = alone();
    let larder = Larder::new();
    let t = larder.table("t").ttl(units(5)).create().unwrap();
    t.insert(&pair(1, 1)).unwrap();
    t.insert_with(&pair(2, 2), Some(Duration::ZERO)).unwrap();
    larder
        .transaction(&[&t], |views| {
            let view = &views[0];
            assert_eq!(view.lookup(&term!(1))?, [pair(1, 1)]);
            assert_eq!(view.lookup(&term!(2))?, []);
            assert!(view.insert_new(&pair(2, 3))?);
            view.insert(&pair(4, 4))
        })
        .unwrap();
    assert_eq!(
        sorted(t.to_vec().unwrap()),
        [pair(1, 1), pair(2, 3), pair(4, 4)]
    );
    assert!(matches!(t.time_left(&term!(4)).unwrap(), TimeLeft::Ms(_)));
    advance_clock(5 * UNIT);
    remove(&t);
    assert_eq!(t.to_vec().unwrap(), []);
    settles(&t, 0);
}

/// The time left to an object, in units.
fn units_left(table: &Table, k: i64) -> Result<Option<u64>, Error> {
    Ok(match table.time_left(&key(k))? {
        TimeLeft::Absent => None,
        TimeLeft::Unlimited => Some(u64::MAX),
        // The time since the object was written is less than a unit.
        TimeLeft::Ms(ms) => Some(ms.div_ceil(UNIT)),
    })
}

/// A transaction gives lifetimes, which begin at its commit.
#[test]
fn transactions_give_lifetimes() -> Result<(), Error> {
    let _alone = alone();
    for ordered in [false, true] {
        let larder = Larder::new();
        let mut builder = larder.table("t").ttl(units(100));
        if ordered {
            builder = builder.ordered_set();
        }
        let t = builder.create()?;
        (1..=7).try_for_each(|k| t.insert(&pair(k, k)))?;
        let snapshot = t.snapshot()?;
        let mut feed = t.subscribe()?;
        let mut transaction = larder.begin(&[&t])?;
        let view = &transaction.views()[0];
        // New, and in place of another.
        view.insert_with(&pair(8, 8), Some(units(5)))?;
        view.insert_with(&pair(1, 10), None)?;
        // Alone; after a write; before one, which forgets it; of what was deleted.
        assert!(view.expire(&key(2), Some(units(5)))?);
        view.insert(&pair(3, 30))?;
        assert!(view.expire(&key(3), Some(units(5)))?);
        assert!(view.expire(&key(4), Some(units(5)))?);
        view.insert(&pair(4, 40))?;
        assert!(view.expire(&key(5), None)?);
        assert_eq!(view.delete(&key(6))?, 1);
        assert!(!view.expire(&key(6), None)?);
        assert!(!view.expire(&key(9), None)?);
        let given = [
            (1, Some(u64::MAX)),
            (2, Some(5)),
            (3, Some(5)),
            (4, Some(100)),
            (5, Some(u64::MAX)),
            (6, None),
            (7, Some(100)),
            (8, Some(5)),
            (9, None),
        ];
        for (k, left) in given {
            assert_eq!(units_left(view, k)?, left, "{k} in the view");
        }
        // The table has none of it yet. The lifetimes begin at the commit.
        assert_eq!(units_left(&t, 1)?, Some(100));
        assert_eq!(units_left(&t, 8)?, None);
        advance_clock(10 * UNIT);
        assert!(transaction.commit()?);
        for (k, left) in given {
            let left = if k == 7 { Some(90) } else { left };
            assert_eq!(units_left(&t, k)?, left, "{k} in the table");
        }
        // A lifetime alone is no event.
        let mut events = feed.recv_timeout(Duration::from_secs(20)).unwrap().events;
        events.sort_by_key(|event| format!("{event:?}"));
        let replaced = |k: i64| Event::Replace(pair(k, k), pair(k, 10 * k));
        let expected = [
            Event::Delete(pair(6, 6)),
            Event::Insert(pair(8, 8)),
            replaced(1),
            replaced(3),
            replaced(4),
        ];
        assert_eq!(events, expected);
        // A snapshot has the lifetimes of its instant.
        let of_snapshot = |k| units_left(&snapshot, k);
        assert_eq!(of_snapshot(2)?, Some(100));
        assert_eq!(of_snapshot(6)?, Some(100));
        assert_eq!(of_snapshot(8)?, None);
        advance_clock(6 * UNIT);
        let keys = sorted(t.to_vec()?);
        assert_eq!(keys, [pair(1, 10), pair(4, 40), pair(5, 5), pair(7, 7)]);
    }
    Ok(())
}

/// A lifetime that a transaction gives counts as a write, and reading one as a read.
#[test]
fn lifetimes_of_transactions_conflict() -> Result<(), Error> {
    let _alone = alone();
    let larder = Larder::new();
    let t = larder.table("t").ttl(units(100)).create()?;
    let other = larder.table("other").create()?;
    type Does = fn(&Table) -> Result<(), Error>;
    let gives: Does = |view| view.expire(&key(1), Some(units(5))).map(drop);
    let reads: Does = |view| view.time_left(&key(1)).map(drop);
    for (does, is_lost) in [(gives, true), (reads, true)] {
        t.insert(&pair(1, 1))?;
        let mut transaction = larder.begin(&[&t, &other])?;
        let views = transaction.views();
        does(&views[0])?;
        views[1].insert(&pair(1, 1))?;
        t.insert(&pair(1, 2))?;
        assert_eq!(!transaction.commit()?, is_lost);
        assert_eq!(units_left(&t, 1)?, Some(100));
    }
    // An object that expires before the commit is there again.
    let mut transaction = larder.begin(&[&t])?;
    let view = &transaction.views()[0];
    assert!(view.expire(&key(1), None)?);
    advance_clock(101 * UNIT);
    // If the library has removed it before, the transaction is lost.
    if transaction.commit()? {
        assert_eq!(t.to_vec()?, [pair(1, 2)]);
        assert_eq!(units_left(&t, 1)?, Some(u64::MAX));
    }
    Ok(())
}

/// The operations of a commit see what isn't expired when they run. Followers are notified of what
/// they have found expired, also if it was there when the commit began.
#[test]
fn what_expires_while_a_commit_runs_is_delivered() -> Result<(), Error> {
    let _alone = alone();
    for ordered in [false, true] {
        let t = bounded(ordered);
        let larder = t.larder();
        t.insert(&pair(1, 1))?;
        let mut feed = t.subscribe()?;
        let operations = larder.operations().run(&t, &key(1), |view| {
            advance_clock(5 * UNIT);
            view.insert_new(&pair(1, 10))
        });
        assert_eq!(operations.commit()?, None);
        let events = feed.recv_timeout(Duration::from_secs(20)).unwrap().events;
        let expected = [Event::Expire(pair(1, 1)), Event::Insert(pair(1, 10))];
        assert_eq!(events, expected);
        assert_eq!(t.to_vec()?, [pair(1, 10)]);
    }
    Ok(())
}

/// What a transaction has seen is there for its commit, also if it has expired since: of two that
/// delete it one is lost, and followers are notified of the deletion.
#[test]
fn what_expires_before_a_commit_is_taken_once() -> Result<(), Error> {
    let _alone = alone();
    for ordered in [false, true] {
        let t = bounded(ordered);
        let larder = t.larder();
        (1..=2).try_for_each(|k| t.insert(&pair(k, k)))?;
        let mut feed = t.subscribe()?;
        let mut transactions = [larder.begin(&[&t])?, larder.begin(&[&t])?];
        for transaction in &transactions {
            let view = &transaction.views()[0];
            assert_eq!(view.delete(&key(1))?, 1);
            view.insert(&pair(2, 20))?;
        }
        advance_clock(5 * UNIT);
        let [first, second] = &mut transactions;
        let is_first = first.commit()?;
        assert!(!second.commit()?);
        // If the library has removed the objects before, both are lost.
        if is_first {
            let mut events = feed.recv_timeout(Duration::from_secs(20)).unwrap().events;
            events.sort_by_key(|event| format!("{event:?}"));
            let replaced = Event::Replace(pair(2, 2), pair(2, 20));
            assert_eq!(events, [Event::Delete(pair(1, 1)), replaced]);
            assert_eq!(t.to_vec()?, [pair(2, 20)]);
        }
    }
    Ok(())
}

#[test]
fn bounds_are_set_and_refused() {
    let _alone = alone();
    let larder = Larder::new();
    let plain = larder.table("plain").create().unwrap();
    assert_eq!(plain.insert_with(&pair(1, 1), None), Err(Error::Unbounded));
    assert_eq!(plain.expire(&term!(1), None), Err(Error::Unbounded));
    assert_eq!(plain.engine_table().bounds(), None);
    let bag = larder.table("bag").bag().ttl(units(1)).create();
    assert!(matches!(bag, Err(Error::BadOption(_))));
    let t = larder
        .table("t")
        .bounds(Bounds::default())
        .create()
        .unwrap();
    t.insert(&pair(1, 1)).unwrap();
    assert_eq!(t.time_left(&term!(1)).unwrap(), TimeLeft::Unlimited);
    let bounds = Bounds {
        ttl: Some(UNIT),
        idle: Some(3 * UNIT),
        limits: None,
    };
    t.set_bounds(&bounds).unwrap();
    assert_eq!(t.engine_table().bounds(), Some(bounds));
    t.insert(&pair(2, 2)).unwrap();
    t.clear().unwrap();
    t.insert(&pair(3, 3)).unwrap();
    advance_clock(UNIT);
    assert!(!t.contains(&term!(3)).unwrap());
}

/// A lifetime of less than a millisecond is one, and not none.
#[test]
fn parts_of_milliseconds_count() {
    let _alone = alone();
    let t = Larder::new()
        .table("t")
        .ttl(Duration::from_nanos(1))
        .idle(Duration::from_micros(2_001))
        .create()
        .unwrap();
    let bounds = t.engine_table().bounds().unwrap();
    assert_eq!((bounds.ttl, bounds.idle), (Some(1), Some(3)));
}

/// Objects on a structure of the studies don't expire.
#[cfg(feature = "studies")]
#[test]
fn structures_of_the_studies_have_no_bounds() {
    let larder = Larder::new();
    let tree = larder.table("tree").ordered_set().structure("avl");
    assert!(matches!(
        tree.ttl(units(1)).create(),
        Err(Error::BadOption(_))
    ));
}

/// The keys that it had stay known, also when their objects have expired since.
#[test]
fn a_fixed_table_that_was_emptied_is_walked_on() -> Result<(), Error> {
    let _alone = alone();
    for watched in [false, true] {
        let t = bounded(false);
        let _snapshot = watched.then(|| t.snapshot());
        let (engine, me) = (t.engine_table(), t.larder().owner());
        engine.safe_fix(me, larder::host::FixTime::default())?;
        t.insert(&pair(1, 0))?;
        t.clear()?;
        for _ in 0..2 {
            assert_eq!(t.next(&key(1)), Ok(None));
            assert_eq!(t.next(&key(2)), Err(Error::BadKey));
            advance_clock(5 * UNIT);
        }
        engine.safe_unfix(me)?;
        assert_eq!(t.next(&key(1)), Err(Error::BadKey));
    }
    Ok(())
}

#[cfg(feature = "files")]
#[test]
fn a_file_has_what_is_not_expired() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let t = bounded(true);
    t.insert(&pair(1, 1)).unwrap();
    // Too many to be removed by the library before the save begins.
    for k in 2..10_000 {
        t.insert_with(&pair(k, k), Some(Duration::ZERO)).unwrap();
    }
    t.save(&path).unwrap();
    let back = Larder::new().load(&path).unwrap();
    assert_eq!(back.to_vec().unwrap(), [pair(1, 1)]);
    // The number of objects that the file says it has is that of those in it.
    assert_eq!(read_header(&path).unwrap().objects, 1);
    assert_eq!(back.engine_table().bounds(), None);
}

/// A key that is written all the time has one timer.
#[test]
fn timers_do_not_heap_up() {
    let _alone = alone();
    let t = bounded(false);
    for n in 0..10_000 {
        t.insert(&pair(1, n)).unwrap();
        t.expire(&term!(1), Some(units(n as u64 % 7 + 1))).unwrap();
    }
    let stats = t.engine_table().stats();
    let timers = stats
        .more
        .iter()
        .find(|(name, _)| *name == "timers")
        .unwrap()
        .1;
    assert!(timers <= 3, "{timers} timers");
}

/// One table has much to remove beside thousands that have nothing.
#[test]
fn what_is_due_does_not_wait_for_idle_tables() {
    let _alone = alone();
    let larder = Larder::new();
    let idle = || larder.table("idle").ttl(units(5)).create().unwrap();
    let _idle: Vec<_> = (0..20_000).map(|_| idle()).collect();
    let busy = larder.table("busy").ttl(units(1)).create().unwrap();
    let rows: Vec<_> = (0..100_000).map(|k| pair(k, 0)).collect();
    busy.insert_all(&rows).unwrap();
    advance_clock(2 * UNIT);
    let begun = Instant::now();
    while !busy.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(10));
    }
}

//! Interleavings of bounded tables that a model checker chooses. Time stands still in its builds:
//! an object expires as somebody gives it no more time.
//!
//! Runs in builds with `--cfg larder_model` alone: `scripts/model.sh`.
#![cfg(larder_model)]

mod histories;

use histories::Expiring;
use larder::api::{Event, Larder, Table};
use larder::{Error, Evict};
use larder_index::sync::{point, random, Fault};
use larder_index::Quarantine;
use larder_term::{term, Term};
use larder_testing::model_checker::{alone, check, finds, history, Search};
use larder_testing::tables::{TableSubject, WithSnapshots};
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static HEAP: Quarantine = Quarantine;

fn tables(ordered: bool, threads: usize, steps: u64) {
    let larder = Larder::new();
    history(
        TableSubject(Expiring::new(&larder, ordered), 6),
        threads,
        steps,
    );
}

#[test]
fn operations_beside_expiry() {
    let _alone = alone();
    for ordered in [false, true] {
        let name = format!("bounded tables, ordered: {ordered}");
        let search = [Search::Random(600), Search::Pct(400)];
        check(&format!("{name}: two threads"), &search, move || {
            tables(ordered, 2, 4);
        });
        check(&format!("{name}: three threads"), &search, move || {
            tables(ordered, 3, 4);
        });
        check(&format!("{name}: snapshots"), &search, move || {
            let larder = Larder::new();
            let rows = TableSubject(Expiring::new(&larder, ordered), 9);
            history(WithSnapshots(rows, 3), 3, 4);
        });
    }
}

fn table() -> Arc<Table> {
    let larder = Larder::new();
    let builder = larder.table("t").ttl(Duration::from_secs(1_000_000));
    Arc::new(builder.create().expect("a table"))
}

/// A row that is written while the timer of the one before it is due stays, and what the feed tells
/// is what became of the row.
fn a_fresh_row() {
    let t = table();
    let mut feed = t.subscribe().expect("a table");
    t.insert_with(&term!({1, 0}), Some(Duration::ZERO))
        .expect("a table");
    let writer = {
        let t = t.clone();
        shuttle::thread::spawn(move || t.insert(&term!({1, 1})).expect("a table"))
    };
    while t.engine_table().remove_expired().expect("a table").1 {}
    writer.join().expect("no panic");
    let rows = t.lookup(&term!(1)).expect("a table");
    assert_eq!(rows, [term!({1, 1})]);
    assert_eq!(t.len(), 1);
    let events: Vec<Event> = std::iter::from_fn(|| feed.try_recv())
        .flat_map(|commit| commit.events)
        .collect();
    let told = [
        Event::Insert(term!({1, 0})),
        Event::Expire(term!({1, 0})),
        Event::Insert(term!({1, 1})),
    ];
    assert_eq!(events, told);
}

#[test]
fn a_fresh_row_beside_an_expiry_stays() {
    let _alone = alone();
    let search = [Search::Random(3_000), Search::Pct(2_000)];
    check("a fresh row beside an expiry", &search, a_fresh_row);
}

/// What a read has found expired stays absent, whatever other reads were in progress.
fn reads_of_an_idle_row() {
    let larder = Larder::new();
    let builder = larder.table("t").idle(Duration::from_millis(80));
    let t = Arc::new(builder.create().expect("a table"));
    t.insert(&term!({1, 0})).expect("a table");
    // It lives for 90 ms, and one more.
    larder::advance_clock(89);
    let snapshot = t.snapshot().expect("a table");
    let other = {
        let t = t.clone();
        shuttle::thread::spawn(move || t.lookup(&term!(1)).expect("a table").len())
    };
    point();
    larder::advance_clock(1);
    let first = t.lookup(&term!(1)).expect("a table").len();
    let cut = t.snapshot().expect("a table");
    let second = t.lookup(&term!(1)).expect("a table").len();
    let shown = cut.len();
    other.join().expect("no panic");
    let last = t.lookup(&term!(1)).expect("a table").len();
    assert_eq!(snapshot.len(), 1);
    assert_eq!([first; 4], [second, last, shown, cut.len()]);
}

#[test]
fn a_row_that_was_found_expired_stays_absent() {
    let _alone = alone();
    let search = [Search::Random(3_000), Search::Pct(2_000)];
    check("reads of an idle row", &search, reads_of_an_idle_row);
}

/// A read that gives more time to what others have found expired is found.
#[test]
fn a_read_with_a_stale_time_is_found() {
    let _alone = alone();
    let search = [Search::Random(20_000)];
    assert!(finds(Fault::StaleTime, &search, reads_of_an_idle_row));
}

/// A timer that removes what is under its key, whatever time that has, is found.
#[test]
fn an_expiry_of_a_fresh_row_is_found() {
    let _alone = alone();
    let [few, many] = [5_000, 20_000].map(|most| [Search::Random(most)]);
    assert!(finds(Fault::FreshExpired, &few, a_fresh_row));
    let program = || tables(false, 3, 5);
    assert!(finds(Fault::FreshExpired, &many, program));
}

/// A write is not refused for a row that has expired, whoever is about to remove that.
fn a_write_beside_an_expiry(write: fn(&Table, &Term) -> Result<(), Error>) {
    let larder = Larder::new();
    let builder = larder.table("t").max_size(1).evict(Evict::None);
    let builder = builder.ttl(Duration::from_secs(1_000_000));
    let t = Arc::new(builder.create().expect("a table"));
    t.insert_with(&term!({1, 0}), Some(Duration::ZERO))
        .expect("a table");
    let expirer = {
        let t = t.clone();
        shuttle::thread::spawn(
            move || {
                while t.engine_table().remove_expired().expect("a table").1 {}
            },
        )
    };
    write(&t, &term!({2, 0})).expect("room");
    expirer.join().expect("no panic");
    assert_eq!(t.to_vec().expect("a table"), [term!({2, 0})]);
}

#[test]
fn what_is_about_to_be_removed_makes_room() {
    let _alone = alone();
    type Write = fn(&Table, &Term) -> Result<(), Error>;
    let one: Write = |t, row| t.insert(row);
    let list: Write = |t, row| t.insert_all(std::slice::from_ref(row));
    let transaction: Write = |t, row| t.larder().transaction(&[t], |views| views[0].insert(row));
    let operations: Write = |t, row| {
        let done = t.larder().operations().insert(t, row).commit()?;
        assert_eq!(done, None);
        Ok(())
    };
    // By chance alone: the write waits for the expirer, which PCT may hold up for ever.
    let search = [Search::Random(5_000)];
    for (name, write) in [
        ("a write beside an expiry", one),
        ("a list beside an expiry", list),
        ("a transaction beside an expiry", transaction),
        ("operations beside an expiry", operations),
    ] {
        check(name, &search, move || a_write_beside_an_expiry(write));
    }
}

/// A row that is written while another thread evicts, with this value, is not evicted for what was
/// there before: a choice that was made then is given up.
fn a_fresh_row_in_a_full_table(evict: Evict, value: i64) {
    let larder = Larder::new();
    let builder = larder.table("t").max_size(2).evict(evict);
    let t = Arc::new(builder.create().expect("a table"));
    (0..2).for_each(|k| t.insert(&term!({(k), 0})).expect("a table"));
    if evict == Evict::TinyLfu {
        // The first write was not counted, as there were no counters yet.
        assert_eq!(t.lookup(&term!(0)).expect("a table").len(), 1);
    }
    let mut feed = t.subscribe().expect("a table");
    // Row 0 is the coldest, then row 1.
    let other = {
        let t = t.clone();
        shuttle::thread::spawn(move || {
            // It comes at any moment of the other's insert, which evicts at its end.
            (0..random() % 16).for_each(|_| assert!(!t.contains(&term!(9)).expect("a table")));
            t.insert(&term!({0, (value)})).expect("a table");
        })
    };
    t.insert(&term!({2, 0})).expect("a table");
    other.join().expect("no panic");
    assert!(t.len() <= 2);
    let events = std::iter::from_fn(|| feed.try_recv()).flat_map(|commit| commit.events);
    let told: Vec<Event> = events.collect();
    // What was written in the meantime is hotter than row 1.
    let fresh = term!({0, (value)});
    let is_write = |event: &Event| {
        let (Event::Insert(new) | Event::Replace(_, new)) = event else {
            return false;
        };
        *new == fresh
    };
    let written = told.iter().position(is_write).expect("a write");
    let evicted = |row: &Term, from: usize| {
        let is_it = |event: &Event| matches!(event, Event::Evict(old) if old == row);
        told[from..].iter().position(is_it).map(|at| from + at)
    };
    if let Some(met) = evicted(&fresh, written) {
        let other = evicted(&term!({1, 0}), 0);
        assert!(other.is_some_and(|other| other < met), "{told:?}");
    }
}

#[test]
fn a_fresh_row_beside_an_eviction_stays() {
    let _alone = alone();
    let search = [Search::Random(1_000), Search::Pct(1_000)];
    for evict in [Evict::Lru, Evict::TinyLfu, Evict::Sieve] {
        for value in [1, 0] {
            let name = format!("a fresh row beside an eviction: {evict:?}, {value}");
            check(&name, &search, move || {
                a_fresh_row_in_a_full_table(evict, value);
            });
        }
    }
}

/// An eviction of what was written since it was chosen is found.
#[test]
fn an_eviction_of_a_fresh_row_is_found() {
    let _alone = alone();
    for evict in [Evict::Lru, Evict::TinyLfu, Evict::Sieve] {
        for value in [1, 0] {
            let search = [Search::Pct(20_000), Search::Random(20_000)];
            let program = move || a_fresh_row_in_a_full_table(evict, value);
            let is_found = finds(Fault::FreshEvicted, &search, program);
            assert!(is_found, "{evict:?}, {value}");
        }
    }
}

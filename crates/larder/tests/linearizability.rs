//! Histories that threads record on a table must be linearizable: all operations on one object,
//! lists that are inserted at once, clearing, counters; on the default structures and on all that
//! are listed.
//!
//! `LARDER_SOAK=n` runs n times as many histories; `LARDER_SEED=n` chooses others.

mod histories;

use histories::{table, Expiring};
use larder::api::Larder;
use larder::structures;
use larder_testing::environment::{seed, soak};
use larder_testing::history::of_threads;
use larder_testing::mix;
use larder_testing::tables::{TableSubject, WithSnapshots};

const THREADS: usize = 3;
const STEPS: u64 = 25;

fn histories(rounds: u64, ordered: bool, structure: Option<&str>) {
    let (rounds, seed) = (rounds * soak(), seed(20_261_122));
    let larder = Larder::new();
    for round in 0..rounds {
        // Of five operations one is on all keys, or of twenty.
        let subject = TableSubject(table(&larder, ordered, structure), 5 + round % 2 * 15);
        if let Err(wrong) = of_threads(&subject, THREADS, STEPS, mix(seed + round)) {
            panic!("ordered: {ordered}, structure: {structure:?}, {wrong}");
        }
        subject.0 .0.drop_table().expect("it lives");
    }
}

#[test]
fn histories_of_tables_are_linearizable() {
    for ordered in [false, true] {
        histories(300, ordered, None);
    }
}

/// Operations on one key go on beside a long list, each of whose three rows is in another part of
/// it.
#[test]
fn histories_of_tables_with_long_lists_are_linearizable() {
    let larder = Larder::new();
    for round in 0..100 * soak() {
        let mut rows = table(&larder, round % 2 == 1, None);
        rows.1 = 700;
        let subject = TableSubject(rows, 5);
        if let Err(wrong) = of_threads(&subject, THREADS, STEPS, mix(seed(20_261_124) + round)) {
            panic!("ordered: {}, {wrong}", round % 2 == 1);
        }
        subject.0 .0.drop_table().expect("it lives");
    }
}

/// Rows of a bounded table that expire, some removed by the library's thread, some by others.
#[test]
fn histories_of_bounded_tables_are_linearizable() {
    let larder = Larder::new();
    for round in 0..400 * soak() {
        let (ordered, watched) = (round % 2 == 1, round % 4 > 1);
        let subject = TableSubject(Expiring::new(&larder, ordered), 5);
        let table = &subject.0 .0 .0;
        let snapshot = watched.then(|| table.snapshot().expect("a table"));
        let seed = mix(seed(20_261_125) + round);
        let outcome = match round % 8 {
            0..4 => of_threads(&subject, THREADS, STEPS, seed),
            _ => of_threads(&WithSnapshots(subject, 4), THREADS, STEPS, seed),
        };
        if let Err(wrong) = outcome {
            panic!("ordered: {ordered}, watched: {watched}, {wrong}");
        }
        drop(snapshot);
    }
}

/// A snapshot shows all rows as of one instant between its call and its return.
#[test]
fn histories_of_tables_with_snapshots_are_linearizable() {
    let larder = Larder::new();
    for round in 0..200 * soak() {
        let ordered = round % 2 == 1;
        let subject = WithSnapshots(
            TableSubject(table(&larder, ordered, None), 5 + round % 3 * 15),
            4,
        );
        if let Err(wrong) = of_threads(&subject, THREADS, STEPS, mix(seed(20_261_125) + round)) {
            panic!("ordered: {ordered}, {wrong}");
        }
        subject.0 .0 .0.drop_table().expect("it lives");
    }
}

#[test]
fn histories_of_tables_on_other_structures_are_linearizable() {
    for structure in structures() {
        histories(40, false, Some(structure.name));
        if structure.types.contains(&"ordered_set") {
            histories(40, true, Some(structure.name));
        }
    }
}

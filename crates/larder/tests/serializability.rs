//! Transactions that threads record must be serialisable, in an order that agrees with the clock:
//! lists that are appended to and read, by keys and by ranges, on all types of table. So must what
//! single operations, insertions of lists and snapshots do beside them: each is a transaction, too.
//! What is known not to be serialisable must be found.
//!
//! `LARDER_SOAK=n` runs n times as many histories; `LARDER_SEED=n` chooses others.

mod kinds;

use kinds::{table, KINDS};
use larder::api::{Larder, Table};
use larder::Error;
use larder_term::{Term, TermRef};
use larder_testing::environment::{seed, soak};
use larder_testing::mix;
use larder_testing::serializability::{check, Anomaly, Recorded, Step};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

const THREADS: u64 = 3;
const KEYS: u64 = 5;
/// The number of keys after those. To each, one number is appended at most, by a single operation
/// or a list. In a set those can't append to what is there.
const FRESH: u64 = 100;

/// The element of a row at this position, from 0.
fn element(row: &Term, i: usize) -> TermRef<'_> {
    row.as_ref().as_tuple().unwrap().get(i).unwrap()
}

/// The numbers in a row: its second element, or those in it.
fn numbers(row: &Term) -> Vec<u64> {
    let number = |term: TermRef<'_>| term.as_int().unwrap() as u64;
    match element(row, 1).as_list() {
        Some(list) => list.map(number).collect(),
        None => vec![number(element(row, 1))],
    }
}

fn key_of(row: &Term) -> u64 {
    element(row, 0).as_int().unwrap() as u64
}

/// The list of a key: in a set the second element of its row, in a bag its rows.
fn read(table: &Table, key: u64) -> Result<Vec<u64>, Error> {
    let rows = table.lookup(&Term::from(key))?;
    Ok(rows.iter().flat_map(numbers).collect())
}

fn append(table: &Table, unique: bool, key: u64, number: u64) -> Result<(), Error> {
    if !unique {
        return table.insert(&Term::tuple([key, number].map(Term::from)));
    }
    let mut list = read(table, key)?;
    list.push(number);
    let list = Term::list(list.into_iter().map(Term::from).collect::<Vec<_>>());
    table.insert(&Term::tuple([Term::from(key), list]))
}

/// How transactions are run.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Transactions,
    /// Beside single operations, lists and snapshots.
    Mixed,
    /// What is read comes from a snapshot, and what is written is written without a look at it:
    /// snapshot isolation at best.
    Unvalidated,
}

/// Records some transactions of some threads.
fn record(kind: &str, way: Way, rounds: u64, seed: u64) -> Vec<Recorded> {
    let larder = Larder::new();
    let tables = [
        table(larder.table(kind), kind),
        table(larder.table(kind), kind),
    ];
    let unique = !kind.ends_with("bag");
    let (clock, recorded) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let fresh = AtomicU64::new(KEYS);
    // Ordering: SeqCst; the times are compared across threads.
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let both = [&tables[0], &tables[1]];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (larder, recorded, both, fresh) = (&larder, &recorded, &both, &fresh);
            scope.spawn(move || {
                for round in 0..rounds {
                    let chance = mix(seed ^ mix(thread << 32 | round));
                    let begin = tick();
                    if way == Way::Mixed && chance >> 40 & 1 == 1 {
                        let number = (thread << 40 | round << 8) + 1000;
                        let steps = operation(larder, both, chance, number, fresh);
                        let time = (begin, tick());
                        recorded.lock().unwrap().push(Recorded { time, steps });
                        continue;
                    }
                    let run = |reads: &[&Table], writes: &[&Table]| {
                        let mut steps: Vec<Step> = Vec::new();
                        for step in 0..1 + chance % 4 {
                            let chance = mix(chance + step);
                            let key = chance % KEYS;
                            let number = (thread << 40 | round << 8 | step) + 1000;
                            let at = key as usize % 2;
                            match chance >> 32 & 3 {
                                0 | 1 => {
                                    append(writes[at], unique, key, number)?;
                                    steps.push(Step::Append(key as u32, number));
                                }
                                2 => {
                                    let list = read(reads[at], key)?;
                                    steps.push(Step::Read(key as u32, list));
                                }
                                _ => {
                                    read_all(reads[at], at, &mut steps)?;
                                }
                            }
                        }
                        Ok(steps)
                    };
                    let steps = match way {
                        Way::Transactions | Way::Mixed => larder.transaction(both, |views| {
                            let views = [&views[0], &views[1]];
                            run(&views, &views)
                        }),
                        Way::Unvalidated => {
                            let snapshots = larder.snapshot(both).unwrap();
                            run(&[&snapshots[0], &snapshots[1]], both)
                        }
                    };
                    recorded.lock().unwrap().push(Recorded {
                        time: (begin, tick()),
                        steps: without_own(steps.unwrap()),
                    });
                }
            });
        }
    });
    recorded.into_inner().unwrap()
}

/// Reads all lists of a table, absent ones too.
fn read_all(table: &Table, at: usize, steps: &mut Vec<Step>) -> Result<(), Error> {
    let mut lists = BTreeMap::<u64, Vec<u64>>::new();
    for row in table.select("[{'_',[],['$_']}]")? {
        lists.entry(key_of(&row)).or_default().extend(numbers(&row));
    }
    for key in (0..KEYS + FRESH).filter(|key| *key as usize % 2 == at) {
        let list = lists.remove(&key).unwrap_or_default();
        steps.push(Step::Read(key as u32, list));
    }
    Ok(())
}

/// One operation outside of transactions: a write of one key, a list of two, a read of one key, or
/// a snapshot of all.
fn operation(
    larder: &Larder,
    tables: &[&Table; 2],
    chance: u64,
    number: u64,
    fresh: &AtomicU64,
) -> Vec<Step> {
    let mut steps = Vec::new();
    match chance >> 42 & 3 {
        what @ (0 | 1) => {
            // Ordering: Relaxed; each gets keys of its own: this one, and the next but one.
            let key = fresh.fetch_add(3, Ordering::Relaxed);
            let keys = [key, key + 2];
            if keys[1] >= KEYS + FRESH {
                return steps;
            }
            let rows = keys.map(|key| Term::tuple([key, number + key].map(Term::from)));
            let (table, many) = (tables[key as usize % 2], 1 + what as usize);
            match many {
                1 => table.insert(&rows[0]).unwrap(),
                _ => table.insert_all(&rows).unwrap(),
            }
            let append = |key: &u64| Step::Append(*key as u32, number + key);
            steps.extend(keys[..many].iter().map(append));
        }
        2 => {
            let key = chance % KEYS;
            let list = read(tables[key as usize % 2], key).unwrap();
            steps.push(Step::Read(key as u32, list));
        }
        _ => {
            let snapshots = larder.snapshot(tables).unwrap();
            for (at, snapshot) in snapshots.iter().enumerate() {
                read_all(snapshot, at, &mut steps).unwrap();
            }
        }
    }
    steps
}

/// Takes out of what a transaction has read what it had appended itself.
fn without_own(mut steps: Vec<Step>) -> Vec<Step> {
    let mut appended = Vec::new();
    for step in &mut steps {
        match step {
            Step::Append(_, number) => appended.push(*number),
            Step::Read(_, list) => list.retain(|number| !appended.contains(number)),
        }
    }
    steps
}

#[test]
fn transactions_are_serialisable() {
    for kind in KINDS {
        for round in 0..6 * soak() {
            let history = record(kind, Way::Transactions, 60, mix(seed(20_261_125) + round));
            if let Err(wrong) = check(&history) {
                panic!("{kind}, round {round}: {wrong}\n{history:#?}");
            }
        }
    }
}

#[test]
fn operations_and_snapshots_are_in_one_order_with_transactions() {
    for kind in KINDS {
        for round in 0..12 * soak() {
            let history = record(kind, Way::Mixed, 60, mix(seed(20_261_126) + round));
            if let Err(wrong) = check(&history) {
                panic!("{kind}, round {round}: {wrong}\n{history:#?}");
            }
        }
    }
}

#[test]
fn what_is_not_validated_is_found() {
    let found = (0..200).any(|round| {
        let history = record("bag", Way::Unvalidated, 60, mix(seed(1) + round));
        matches!(check(&history), Err(Anomaly::Circle(_)))
    });
    assert!(found, "no anomaly in 200 histories");
}

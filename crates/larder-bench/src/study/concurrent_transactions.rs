//! Transactions of several threads on one table, against one mutex around the same calls on a plain
//! table. Each increments the number in a row.

use super::run::Run;
use super::tables::{granted, StudyTable};
use crate::result::{ensure, Outcome};
use crate::time::workers::work;
use larder::api::Table;
use larder::Error;
use larder_term::{term, Term};
use parking_lot::Mutex;
use std::time::Duration;

pub(super) const PLOTS: &str = "
disjoint-{type} | Transactions of threads with keys of their own, on a {type} | threads, log | {rate} | a lookup and an insert each, 10,000 keys a thread
contended-{type} | Transactions of threads with the same 8 keys, on a {type} | threads, log | {rate} | a lookup and an insert each
";

/// The cases: the plot, how many parts of the keys there are, and the keys of a part. Each thread
/// has a part of its own, or all have the same one.
const CASES: [(&str, usize, u64); 2] = [("disjoint", THREADS.len(), 10_000), ("contended", 1, 8)];

const THREADS: [usize; 2] = [1, 2];

const TRANSACTIONS: &str = "transactions";

/// Measures both cases on a table of this type.
pub(super) fn measure(run: &mut Run, kind: &str) -> Outcome {
    let time = Duration::from_millis(run.extent.pick(10, 300, 2_000));
    for (plot, parts, keys) in CASES {
        let plot = format!("{plot}-{kind}");
        for threads in THREADS {
            for name in [TRANSACTIONS, "a mutex around a plain table"] {
                let transacts = name == TRANSACTIONS;
                let rate = measure_one(kind, (parts, keys), transacts, threads, time)?;
                run.figure(&plot, name, threads, rate);
            }
        }
    }
    Ok(())
}

/// Millions of operations per second, of all threads together.
fn measure_one(
    kind: &str,
    (parts, part): (usize, u64),
    transacts: bool,
    threads: usize,
    time: Duration,
) -> Outcome<f64> {
    let study = granted(StudyTable::new(&format!("{kind} default"), 2, 0));
    let StudyTable { larder, table, .. } = &study;
    let keys = parts as u64 * part;
    for key in 0..keys {
        granted(table.insert(&term!({(key as i64), 1})));
    }
    let mutex = Mutex::new(());
    let done = work(threads, Some(time), |worker| {
        let (mut random, mut calls) = (worker.random(7), 0);
        let from = (worker.number % parts) as u64 * part;
        loop {
            let key = from + random.u64(..part);
            granted(match transacts {
                true => larder.transaction(&[table], |views| add_one(&views[0], key)),
                false => {
                    let _locked = mutex.lock();
                    add_one(table, key)
                }
            });
            calls += 1;
            // A thread that starts late has one call at least.
            if worker.is_over() {
                return Ok(calls);
            }
        }
    })?;
    let calls: u64 = done.results.iter().sum();
    let rows = granted(table.to_vec());
    let sum: u64 = rows.iter().map(count_of).sum();
    ensure!(sum == keys + calls && rows.len() as u64 == keys, kind;
        "{} rows with a sum of {sum} instead of {keys} with {}", rows.len(), keys + calls);
    Ok(done.rate(calls))
}

/// Adds one to the number of a key.
fn add_one(table: &Table, key: u64) -> Result<(), Error> {
    let key = Term::int(key as i64);
    let count = table.lookup(&key)?.first().map_or(0, count_of);
    // A bag would keep the old row.
    if !table.engine_table().kind().is_unique() {
        table.delete(&key)?;
    }
    table.insert(&term!({(key), ((count + 1) as i64)}))
}

/// The number in a row.
fn count_of(row: &Term) -> u64 {
    let row = row.as_ref().as_tuple().expect("a row that is not a tuple");
    let count = row.get(1).and_then(|count| count.as_int());
    count.expect("a row without a number") as u64
}

//! Checks that a table with a limit of its memory keeps to it, however long it is filled.
//!
//! Two threads put and read values of all sizes. A third reads every second how much memory the
//! table and the process have.

use crate::result::{Failure, Outcome};
use crate::table::{Bound::AtMost, Report};
use crate::time::memory;
use crate::time::workers::work;
use crate::workload::random;
use fastrand::Rng;
use larder::prelude::*;
use larder::Evict;
use std::time::Duration;

const LIMIT: usize = 256 << 20;

/// The number of keys. Their values together are several times the limit.
const KEYS: u64 = 1 << 20;

/// The logarithm of the length of the longest value.
const LONGEST: u64 = 13;

/// The targets: the most bytes per byte of the limit.
const TARGETS: [(&str, f64); 2] = [("weight", 1.01), ("resident", 1.3)];

/// What a thread has done, or seen at most.
#[derive(Default)]
struct Seen {
    requests: u64,
    hits: u64,
    weight: usize,
    memory: usize,
    resident: usize,
}

/// Fills the table for so many minutes. A wrong value is an error.
pub fn run(minutes: f64) -> Outcome<Report> {
    let builder = Larder::new().table("cache").max_memory(LIMIT);
    let builder = builder.evict(Evict::TinyLfu);
    let table: Typed<u64, Vec<u8>> = builder.typed().expect("a typed table takes a limit");
    // The memory of the process before the first entry isn't the cache's.
    let before = memory::of_this_process();
    let time = Duration::from_secs_f64(60.0 * minutes);
    let done = work(3, Some(time), |worker| {
        let (mut seen, mut random) = (Seen::default(), random(worker.number as u64));
        while !worker.is_over() {
            if worker.number == 2 {
                std::thread::sleep(Duration::from_secs(1).min(time / 16));
                let weight = table.table().engine_table().weight().unwrap_or(0);
                seen.weight = seen.weight.max(weight);
                seen.memory = seen.memory.max(table.table().memory());
                let resident = memory::of_this_process().saturating_sub(before);
                seen.resident = seen.resident.max(resident);
                continue;
            }
            // Many requests between two looks at the clock.
            for _ in 0..256 {
                request(&table, &mut random, &mut seen)?;
            }
        }
        Ok(seen)
    })?;
    let sum = |of: fn(&Seen) -> u64| done.results.iter().map(of).sum::<u64>() as f64;
    let (requests, hits) = (sum(|seen| seen.requests), sum(|seen| seen.hits));
    // The third thread has made no requests, and seen the memory.
    let memory = &done.results[2];
    let mebibytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let limit = LIMIT >> 20;
    let title = format!("A table of at most {limit} MiB, filled for {minutes} minutes");
    let mut report = Report::new(title, &["table"]);
    for (column, figure) in [
        ("million requests", requests / 1e6),
        ("hits in 100", 100.0 * hits / requests),
        ("most MiB, weight", mebibytes(memory.weight)),
        ("by memory()", mebibytes(memory.memory)),
        ("resident", mebibytes(memory.resident)),
    ] {
        report.add(&["tinylfu"], column, 1, figure);
    }
    for ((what, most), bytes) in TARGETS.into_iter().zip([memory.weight, memory.resident]) {
        let ratio = bytes as f64 / LIMIT as f64;
        let words = format!("{what}: {ratio:.3} times the limit");
        report.judge(&words, ratio, AtMost(most));
    }
    Ok(report)
}

/// Looks a random key up, and puts a value under it if it is missing.
fn request(table: &Typed<u64, Vec<u8>>, random: &mut Rng, seen: &mut Seen) -> Outcome {
    let failed = |why: larder::Error| Failure::wrong("tinylfu", why.to_string());
    // The square makes some keys more frequent than others.
    let key = (random.f64().powi(2) * KEYS as f64) as u64;
    seen.requests += 1;
    // A value consists of one byte of its key, so that a wrong or torn value is recognised.
    let byte = key as u8;
    match table.get(&key).map_err(failed)? {
        Some(value) if value.iter().all(|&other| other == byte) => seen.hits += 1,
        Some(_) => return Err(Failure::wrong("tinylfu", "a value of another key")),
        None => {
            // All orders of magnitude are equally frequent.
            let most = 1u64 << random.u64(..LONGEST + 1);
            let value = vec![byte; random.u64(..most + 1) as usize];
            table.put(&key, &value).map_err(failed)?;
        }
    }
    Ok(())
}

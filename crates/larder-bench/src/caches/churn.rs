//! Checks that a table with a limit of its memory keeps to it, however long it is filled. Two
//! threads put and read values of all sizes. A third asks every second how much memory the table
//! and the process have.

use crate::result::Failure;
use crate::table::{verdict, Report};
use crate::time::memory;
use crate::time::workers::work;
use crate::workload::Random;
use larder::prelude::*;
use larder::Evict;
use std::time::Duration;

/// Bytes that the table may hold.
const LIMIT: usize = 256 << 20;

/// Keys that are drawn: their values together are several times the limit.
const KEYS: u64 = 1 << 20;

/// The longest value. Short ones are as likely as long ones: each has a power of two of its own.
const LONGEST: u32 = 13;

/// What the table may hold beyond its limit for a moment.
const TOLERANCE: f64 = 1.01;

/// Resident bytes for each byte of the limit.
const RESIDENT: f64 = 1.3;

/// Fills the table for so long.
///
/// # Errors
/// If it holds more than its limit, or the process more than 1.3 times that.
pub fn run(minutes: f64) -> Result<Report, Failure> {
    let builder = Larder::new().table("cache").max_memory(LIMIT);
    let builder = builder.evict(Evict::TinyLfu);
    let table: Typed<u64, Vec<u8>> = builder.typed().expect("a typed table takes a limit");
    // What the process holds before the first entry isn't the cache's.
    let before = memory::own();
    let time = Duration::from_secs_f64(60.0 * minutes);
    // Two threads work, and the last one looks.
    let done = work(3, Some(time), |worker| {
        let (mut most, mut random) = (Most::default(), Random::new(worker.number as u64));
        while !worker.is_over() {
            if worker.number == 2 {
                std::thread::sleep(Duration::from_secs(1).min(time / 16));
                // Three measures of one table: its own weight, `memory()`, and what the system says
                // of the process.
                let weight = table.table().engine_table().weight().unwrap_or(0);
                let memory = table.table().memory();
                most.see([weight, memory, memory::own().saturating_sub(before)]);
                continue;
            }
            // Many requests between two looks at the clock.
            for _ in 0..256 {
                use_once(&table, &mut random, &mut most)?;
            }
        }
        Ok(most)
    })?;
    // The most of all looks counts, since a limit must hold at all times.
    let all = done.results.into_iter().fold(Most::default(), Most::with);
    let [weight, memory, resident] = all.bytes;
    let mut report = Report::new(
        format!(
            "A table of at most {} MiB, filled for {minutes} minutes",
            LIMIT >> 20
        ),
        &["table"],
    );
    let mebibytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let mut add = |column, decimals, figure| report.add(&["tinylfu"], column, decimals, figure);
    add("million requests", 1, all.requests as f64 / 1e6);
    add(
        "hits in 100",
        1,
        100.0 * all.hits as f64 / all.requests as f64,
    );
    add("most MiB, weight", 1, mebibytes(weight));
    add("by memory()", 1, mebibytes(memory));
    add("resident", 1, mebibytes(resident));
    for (what, bytes, most) in [
        // The weight must be near the limit. Resident bytes may be above it by what the allocator
        // keeps.
        ("weight", weight, TOLERANCE),
        ("resident", resident, RESIDENT),
    ] {
        let ratio = bytes as f64 / LIMIT as f64;
        report.note(format!(
            "{what}: {ratio:.3} times the limit, at most {most} ({})",
            verdict(ratio <= most)
        ));
    }
    Ok(report)
}

/// Asks for a random key's value, and puts one there if there is none.
fn use_once(
    table: &Typed<u64, Vec<u8>>,
    random: &mut Random,
    most: &mut Most,
) -> Result<(), Failure> {
    // The square of a number from 0 to 1: some keys are asked for more often than others.
    let key = (random.unit().powi(2) * KEYS as f64) as u64;
    most.requests += 1;
    let byte = key as u8;
    match table.get(&key) {
        // Each value consists of a byte of its key, so that a wrong or torn one is recognised.
        Ok(Some(value)) if value.iter().all(|&other| other == byte) => most.hits += 1,
        Ok(None) => {
            // A random exponent first, and then a random length below its power of two. So values
            // of all orders of magnitude are equally frequent.
            let most = 1u64 << random.below(u64::from(LONGEST) + 1);
            let value = vec![byte; random.below(most + 1) as usize];
            table.put(&key, &value).map_err(|why| failed(&why))?;
        }
        Ok(Some(_)) => return Err(Failure::wrong("tinylfu", "a value of another key")),
        Err(why) => return Err(failed(&why)),
    }
    Ok(())
}

fn failed(why: &larder::Error) -> Failure {
    Failure::wrong("tinylfu", why.to_string())
}

/// What was seen at most, and what was done.
#[derive(Default)]
struct Most {
    /// The weight of the table's rows, what the table says that it holds, and resident bytes.
    bytes: [usize; 3],
    requests: u64,
    hits: u64,
}

impl Most {
    fn see(&mut self, bytes: [usize; 3]) {
        for (most, now) in self.bytes.iter_mut().zip(bytes) {
            *most = now.max(*most);
        }
    }

    fn with(mut self, other: Most) -> Most {
        self.see(other.bytes);
        self.requests += other.requests;
        self.hits += other.hits;
        self
    }
}

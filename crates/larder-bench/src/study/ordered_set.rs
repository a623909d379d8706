//! The studies of ordered_set: inserts of disjoint ranges, the 14 scenarios of OTP's throughput
//! benchmark, counters in one place or in many.
//!
//! To add a scenario: an entry of [`SCENARIOS`].

use super::contender::Contender;
use super::run::{with_threads, Run, Turns};
use super::tables::{traverse, verify};
use super::{adapting, Plan};
use crate::maps::peers::{Handle, NextKey};
use crate::result::{ensure, Failure, Outcome};
use crate::table::grouped;
use crate::time::workers::work;
use crate::workload::{shuffled, until, Load};
use fastrand::Rng;
use std::time::Duration;

pub const STUDY: Plan = Plan {
    name: "ordered-set",
    title: "ordered_set by threads: disjoint inserts, 14 scenarios, counters, and a tree that adapts",
    source: "K. Sagonas, K. Winblad, \"More Scalable Ordered Set for ETS Using Adaptation\", Erlang Workshop 2014; the throughput benchmark of OTP's ets_SUITE",
    about: "Tables of the engine (larder::host::EngineTable), rows {K}, worked on by threads of a Rust program. A recorded run of a contention-adapting tree (the \
            structure alone) goes to catree-adapting.json.",
    quick_seconds: 55.0,
    full_hours: 2.4,
    run,
};

const PLOTS: &str = "
disjoint | {inserts} inserts of disjoint ranges | threads, log | millions of inserts a second, log | M op/s, more | each thread inserts a range of its own, in order; the published run had 10,000,000 and 1, 2 and 4 processes
counters | Decentralised counters: inserts and deletions | threads, log | {rate} | 50 % inserts, 50 % deletions of random keys; on: rows are counted in many places, off: in one
scenarios-1 | Scenarios, one thread | insert/delete/lookup in %, and the rest, names | {rate} | {scenarios}
scenarios | Scenarios, all threads | insert/delete/lookup in %, and the rest, names | {rate} | {scenarios}
";

/// The ordered_set of old, its successors, and Larder's own.
const CONTENDERS: &str = "
default ordered_set | ordered_set default
ordered_set (AVL, one lock) | ordered_set avl(reader_groups=64)
ordered_set (CA tree) | ordered_set catree
default set | set default
set (OTP 25, auto) | set linear_hash(locks=auto,reader_groups=64)
";

/// Tables that count their rows in many places, and in one.
const COUNTERS: &str = "
default set, on | set default counters=many
default set, off | set default
default ordered_set, on | ordered_set default counters=many
default ordered_set, off | ordered_set default
ordered_set (CA tree), on | ordered_set catree counters=many
ordered_set (CA tree), off | ordered_set catree
";

/// The operations of a scenario besides inserts, deletions and lookups.
#[derive(Clone, Copy)]
enum Other {
    Nothing,
    /// So many steps of next from a random key.
    Steps(usize),
    All,
    /// select_count of a range of so many keys, by guards.
    Part(u64),
}
use Other::{All, Nothing, Part, Steps};

/// A name; percent of inserts, deletions and lookups; the rest.
type Scenario = (&'static str, [f64; 3], Other);

#[rustfmt::skip]
const SCENARIOS: [Scenario; 14] = [
    ("50/50", [50.0, 50.0, 0.0], Nothing),
    ("10/10/80", [10.0, 10.0, 80.0], Nothing),
    ("1/1/98", [1.0, 1.0, 98.0], Nothing),
    ("lookups", [0.0, 0.0, 100.0], Nothing),
    ("10/10/40, 40 of 10 next", [10.0, 10.0, 40.0], Steps(10)),
    ("10/10/40, 40 of 100 next", [10.0, 10.0, 40.0], Steps(100)),
    ("10/10/40, 40 of 1000 next", [10.0, 10.0, 40.0], Steps(1000)),
    ("100 of 1000 next", [0.0, 0.0, 0.0], Steps(1000)),
    ("10/10/79, 1 select all", [10.0, 10.0, 79.0], All),
    ("10/10/79.99, 0.01 select all", [10.0, 10.0, 79.99], All),
    ("10/10/79.9999, 0.0001 select all", [10.0, 10.0, 79.9999], All),
    ("10/10/79, 1 select 1000", [10.0, 10.0, 79.0], Part(1000)),
    ("10/10/79.99, 0.01 select 1000", [10.0, 10.0, 79.99], Part(1000)),
    ("10/10/79.9999, 0.0001 select 1000", [10.0, 10.0, 79.9999], Part(1000)),
];

fn run(run: &mut Run) -> Outcome {
    let contenders = run.contenders(CONTENDERS, Vec::new())?;
    let runs = run.runs(run.extent.pick(1, 3, 3));
    let inserts = run.extent.pick(4_000, 100_000, 10_000_000);
    let range = run.extent.pick(2_000, 20_000, 1_000_000);
    let ms = run.extent.pick(8, 25, 3_000);
    let note = format!("keys from 1 to {range}, half of them there at the beginning, {ms} ms a run on a fresh table; a sequence of next is one operation");
    let values = [("inserts", &*grouped(inserts)), ("scenarios", &note)];
    run.plots(PLOTS, &values);
    run.setting("disjoint inserts", inserts);
    run.setting("scenario keys", range);
    run.setting("scenario milliseconds", ms);
    adapting::record(run)?;
    disjoint(run, (runs, 0.2), inserts, &contenders)?;
    counters(run, (runs, 0.3))?;
    scenarios(run, (runs, 1.0), range, ms, &contenders)
}

/// Measures inserts of `n` ascending keys by one, two and four threads, each in a range of its own.
fn disjoint(run: &mut Run, turns: Turns, n: usize, contenders: &[Contender]) -> Outcome {
    let mut contenders = contenders.to_vec();
    contenders.retain(|c| run.fits(&format!("{n} inserts, {}", c.name), n as f64 * 220.0));
    let inserts = |contender: &Contender, threads: usize, _| {
        let (name, table) = (&contender.name, contender.make(1, n)?);
        let part = (n / threads) as u64;
        let done = work(threads, None, |worker| {
            let (mut handle, from) = (table.handle(), worker.number as u64 * part);
            (from + 1..=from + part).for_each(|key| handle.insert(key, key));
            Ok(())
        })?;
        let (keys, counted) = (part * threads as u64, table.len());
        let whole = traverse(table.handle().table(), keys);
        whole.map_err(|what| Failure::wrong(name, what))?;
        let right = counted == Some(keys as usize);
        ensure!(right, name; "{counted:?} rows are counted, not {keys}");
        Ok(done.rate(n as u64))
    };
    // Those of the published run, on however many cores, unless the user wants fewer.
    let most = run.options.threads.unwrap_or(usize::MAX).max(1);
    let counts: Vec<_> = [1, 2, 4].into_iter().filter(|&n| n <= most).collect();
    run.by_threads("disjoint", turns, &contenders, &counts, inserts)?;
    run.check("after disjoint inserts a traversal met every key once, by number and sum");
    Ok(())
}

/// Measures the scenarios with one thread and with all.
fn scenarios(
    run: &mut Run,
    turns: Turns,
    range: usize,
    ms: u64,
    contenders: &[Contender],
) -> Outcome {
    let mut counts = run.thread_counts();
    counts.retain(|&n| n == 1 || n == run.threads);
    let order = shuffled(range, run.options.seed);
    let pairs = SCENARIOS.iter();
    let pairs = pairs.flat_map(|s| contenders.iter().map(move |c| (s, c)));
    let name = |(s, c): (&Scenario, &Contender)| format!("{}, {}", s.0, c.name);
    let all = with_threads(pairs, name, &counts);
    run.in_turns(
        "scenarios",
        turns,
        &all,
        |run, seed, &((scenario, contender), threads)| {
            let rate = rate(contender, scenario, &order, threads, ms, seed)?;
            let plot = ["scenarios", "scenarios-1"][usize::from(threads == 1)];
            run.figure(plot, &contender.name, scenario.0, rate);
            Ok(())
        },
    )?;
    run.check("after each scenario: as many rows are found by key as by a scan, and as the table counts; lookups alone change nothing");
    Ok(())
}

/// Measures inserts and deletions alone: each changes the count of the rows.
fn counters(run: &mut Run, turns: Turns) -> Outcome {
    let range = run.extent.pick(2_000, 50_000, 1_000_000);
    let ms = run.extent.pick(8, 100, 3_000);
    let order = shuffled(range, run.options.seed);
    let (contenders, counts) = (run.accepted(COUNTERS), run.thread_counts());
    let changes = |contender: &Contender, threads, seed| {
        rate(contender, &SCENARIOS[0], &order, threads, ms, seed)
    };
    run.by_threads("counters", turns, &contenders, &counts, changes)
}

/// Millions of operations a second of a scenario on a fresh table, which begins with half of the
/// keys.
fn rate(
    contender: &Contender,
    (_, percent, other): &Scenario,
    order: &[u32],
    threads: usize,
    ms: u64,
    seed: u64,
) -> Outcome<f64> {
    // A lookup of a row {K} returns the key.
    let entry = |number| (number + 1, number + 1);
    let (name, range) = (&*contender.name, order.len() as u64);
    let load = Load::new(name, *percent, range, entry);
    let half = order.len() / 2;
    let numbers = order.iter().map(|&number| u64::from(number));
    let table = contender.make(1, half)?;
    let mut handle = table.handle();
    load.fill(&mut *handle, numbers.take(half));
    let done = work(threads, Some(Duration::from_millis(ms)), |worker| {
        let (mut handle, mut random) = (table.handle(), worker.random(seed));
        load.work(
            &mut *handle,
            &mut random,
            until(|| worker.is_over()),
            |handle, key, random| execute(handle, *other, key, range, random),
        )
    })?;
    // Lookups alone leave exactly the first half.
    let kept = (!load.changes()).then_some(half);
    let found = verify(&*table, &load, kept)?;
    let scanned = handle.table().count_all() as usize;
    ensure!(scanned == found, name; "{found} rows are found, {scanned} scanned");
    Ok(done.rate(done.results.iter().sum()))
}

/// Executes the other operation of a scenario. Since other threads write meanwhile, numbers of rows
/// are only known within limits.
fn execute(
    handle: &mut dyn Handle,
    other: Other,
    key: u64,
    range: u64,
    random: &mut Rng,
) -> Result<(), String> {
    match other {
        Nothing => Ok(()),
        Steps(steps) => {
            let (table, mut at) = (handle.table(), key);
            for _ in 0..steps {
                match table.next(at) {
                    NextKey::Key(next) => at = next,
                    NextKey::End => break,
                    // Without an order, the walk continues elsewhere.
                    NextKey::Missing => at = random.u64(..range) + 1,
                }
            }
            Ok(())
        }
        All => match handle.table().count_all() {
            n if n > 0 && n <= range => Ok(()),
            n => Err(format!("select_count of everything gave {n}")),
        },
        Part(keys) => match handle.table().count_between(key, key + keys) {
            n if n <= keys => Ok(()),
            n => Err(format!("select_count of {keys} keys gave {n}")),
        },
    }
}

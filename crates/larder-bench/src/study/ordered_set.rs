//! The studies of ordered_set: inserts of disjoint ranges, the 14 scenarios of OTP's throughput
//! benchmark, counters in one place or in many.
//!
//! To add a scenario: an entry of [`SCENARIOS`].

use super::adapting;
use super::contender::{listed, Contender};
use super::rows::{self, traverse};
use super::run::{with_threads, Run};
use super::{Extent, Plan};
use crate::maps::peers::{Hand, Next};
use crate::result::{ensure, Failure, Outcome};
use crate::table::grouped;
use crate::time::workers;
use crate::workload::{shuffled, until, Load, Mix, Random};
use std::time::Duration;

/// The study.
pub const STUDY: Plan = Plan {
    name: "ordered-set",
    title: "ordered_set by threads: disjoint inserts, 14 scenarios, counters, and a tree that adapts",
    source: "K. Sagonas, K. Winblad, \"More Scalable Ordered Set for ETS Using Adaptation\", Erlang Workshop 2014; the throughput benchmark of OTP's ets_SUITE",
    about: "Tables of the engine (larder::host::Table), rows {K}, worked on by threads of a Rust program. A recorded run of a contention-adapting tree (the \
            structure alone) goes to catree-adapting.json.",
    quick_seconds: 55.0,
    run,
};

const PLOTS: &str = "
disjoint | {inserts} inserts of disjoint ranges | threads, log | millions of inserts a second, log | M op/s, more | each thread inserts a range of its own, in order; the published run had 10,000,000 and 1, 2 and 4 processes
counters | Decentralised counters: inserts and deletions | threads, log | {rate} | 50 % inserts, 50 % deletions of random keys; on: rows are counted in many places, off: in one
scenarios-1 | Scenarios, one thread | insert/delete/lookup in %, and the rest, names | {rate} | {scenarios}
scenarios | Scenarios, all threads | insert/delete/lookup in %, and the rest, names | {rate} | {scenarios}
";

/// The old ordered_set, its successors, Larder's own.
const CONTENDERS: &str = "
default ordered_set | ordered_set default
ordered_set (AVL, one lock) | ordered_set avl reader_groups=64
ordered_set (CA tree) | ordered_set catree
default set | set default
set (OTP 25, auto) | set linear_hash locks=auto reader_groups=64
";

/// With counters in many places, and in one.
const COUNTERS: &str = "
default set, on | set default counters=many
default set, off | set default
default ordered_set, on | ordered_set default counters=many
default ordered_set, off | ordered_set default
ordered_set (CA tree), on | ordered_set catree counters=many
ordered_set (CA tree), off | ordered_set catree
";

fn run(run: &mut Run) -> Outcome {
    let contenders = run.contenders(CONTENDERS, Vec::new())?;
    let runs = run.runs(run.scale.pick(1, 3, 3));
    let counts = run.thread_counts();
    // The scenarios with one thread and with all. Others would take too long.
    let ends: Vec<_> = counts
        .iter()
        .copied()
        .filter(|&n| n == 1 || n == run.threads)
        .collect();
    if run.scale == Extent::Full {
        foresee(run, runs, contenders.len(), ends.len());
    }
    let inserts = run.scale.pick(4_000, 100_000, 10_000_000);
    let (range, ms) = run.scale.pick((2_000, 8), (20_000, 25), (1_000_000, 3_000));
    let note = format!("keys from 1 to {range}, half of them there at the beginning, {ms} ms a run on a fresh table; a sequence of next is one operation");
    let named = [("inserts", &*grouped(inserts)), ("scenarios", &note)];
    run.plots(PLOTS, &named);
    run.setting("disjoint inserts", inserts);
    run.setting("scenario keys", range);
    run.setting("scenario milliseconds", ms);
    // First what is drawn first, and takes a second or two.
    adapting::record(run)?;
    disjoint(run, (runs, 0.2), inserts, &contenders)?;
    counters(run, (runs, 0.3), &counts)?;
    scenarios(run, (runs, 1.0), (range, ms), (&contenders, &ends))
}

/// Says about how long it will take: a scenario its time, and two seconds to fill, check and free a
/// table.
fn foresee(run: &mut Run, runs: usize, contenders: usize, ends: usize) {
    let scenarios = SCENARIOS.len() * contenders * ends;
    let disjoint = 3.0 * contenders as f64 * 10e6 * 1.6e-6;
    run.announce(runs as f64 * (5.0 * scenarios as f64 + disjoint + 60.0));
}

fn disjoint(run: &mut Run, turns: (usize, f64), n: usize, contenders: &[Contender]) -> Outcome {
    // Memory for all inserts must be there, or the contender is left out.
    let fits = |c: &&Contender| run.fits(&format!("{n} inserts, {}", c.name), n as f64 * 220.0);
    let contenders: Vec<_> = contenders.iter().filter(fits).collect();
    // One, two and four threads, each with a range of its own.
    let all = with_threads(contenders, Contender::name, &[1, 2, 4]);
    let part = "disjoint inserts";
    run.in_turns(part, turns, &all, |run, _, &(contender, threads)| {
        let name = &contender.name;
        // A fresh table, so that each number of threads does the same work.
        let rows = contender.make(1, n)?;
        let part = (n / threads) as u64;
        let done = workers::work(threads, None, |worker| {
            let (mut hand, from) = (rows.hand(), worker.number as u64 * part);
            // Ascending keys, in ranges that don't meet. In a tree with one lock the threads wait,
            // and in others they don't.
            (from + 1..=from + part).for_each(|key| hand.insert(key, key));
            Ok(())
        })?;
        // The check: a traversal, and the count of the table.
        let (all, counted) = (part * threads as u64, rows.counted());
        rows::whole(traverse(&mut *rows.hand()), all).map_err(|what| Failure::wrong(name, what))?;
        let right = counted == Some(all as usize);
        ensure!(right, name, "{counted:?} rows are counted, not {all}");
        run.figure("disjoint", name, threads, n as f64 / done.seconds / 1e6);
        Ok(())
    })?;
    run.check("after disjoint inserts a traversal met every key once, by number and sum");
    Ok(())
}

/// What a scenario does beside inserts, deletions and lookups.
#[derive(Clone, Copy)]
enum Other {
    Nothing,
    /// Steps of next from a random key.
    Steps(usize),
    /// select_count of all rows.
    All,
    /// select_count of a range of keys, by guards: the number of keys.
    Part(u64),
}
use Other::{All, Nothing, Part, Steps};

/// A name; percent of inserts, deletions and lookups; what the rest is.
type Scenario = (&'static str, [f64; 3], Other);

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
    (
        "10/10/79.9999, 0.0001 select all",
        [10.0, 10.0, 79.9999],
        All,
    ),
    ("10/10/79, 1 select 1000", [10.0, 10.0, 79.0], Part(1000)),
    (
        "10/10/79.99, 0.01 select 1000",
        [10.0, 10.0, 79.99],
        Part(1000),
    ),
    (
        "10/10/79.9999, 0.0001 select 1000",
        [10.0, 10.0, 79.9999],
        Part(1000),
    ),
];

fn scenarios(
    run: &mut Run,
    turns: (usize, f64),
    (range, ms): (usize, u64),
    (contenders, counts): (&[Contender], &[usize]),
) -> Outcome {
    // All contenders get the same order of keys.
    let order = shuffled(range, run.options.seed);
    // Each scenario with each contender.
    let pair = |scenario| {
        contenders
            .iter()
            .map(move |contender| (scenario, contender))
    };
    let pairs = SCENARIOS.iter().flat_map(pair);
    let name = |(scenario, one): (&Scenario, &Contender)| format!("{}, {}", scenario.0, one.name);
    let all = with_threads(pairs, name, counts);
    run.in_turns(
        "scenarios",
        turns,
        &all,
        |run, seed, &((scenario, one), threads)| {
            let rate = rate_of(one, scenario, &order, threads, ms, seed)?;
            let plot = if threads == 1 {
                "scenarios-1"
            } else {
                "scenarios"
            };
            run.figure(plot, &one.name, scenario.0, rate);
            Ok(())
        },
    )?;
    run.check("after each scenario: as many rows are found by key as by a scan, and as the table counts; lookups alone change nothing");
    Ok(())
}

/// Millions of operations a second on a fresh table.
fn rate_of(
    contender: &Contender,
    (_, percent, other): &Scenario,
    order: &[u32],
    threads: usize,
    ms: u64,
    seed: u64,
) -> Outcome<f64> {
    let (range, half) = (order.len() as u64, order.len() / 2);
    let load = Load {
        name: &contender.name,
        mix: Mix::new(*percent),
        range,
        // A row {K} is found as its key.
        entry: |number| (number + 1, number + 1),
    };
    let rows = contender.make(1, half)?;
    let mut hand = rows.hand();
    // Half of the keys in random order. The other half is inserted and deleted.
    for &number in &order[..half] {
        let (key, value) = (load.entry)(u64::from(number));
        hand.insert(key, value);
    }
    let done = workers::work(threads, Some(Duration::from_millis(ms)), |worker| {
        // Random numbers of the thread's own.
        let mut random = Random::new(seed ^ (worker.number as u64) << 40);
        let more = until(|| worker.is_over());
        load.work(&mut *rows.hand(), &mut random, more, |hand, key, random| {
            beside(hand, *other, (key, range), random)
        })
    })?;
    // Without changes exactly the first half is there.
    let kept = (!load.mix.changes()).then_some(half);
    let there = rows::sound(&*rows, &load, kept)?;
    // All ways to count must agree.
    let scanned = hand.count_all() as usize;
    let name = load.name;
    ensure!(
        scanned == there,
        name,
        "{there} rows are found, {scanned} scanned"
    );
    Ok(done.results.iter().sum::<u64>() as f64 / done.seconds / 1e6)
}

/// What a scenario has besides inserts, deletions and lookups.
fn beside(
    hand: &mut dyn Hand,
    other: Other,
    (key, range): (u64, u64),
    random: &mut Random,
) -> Result<(), String> {
    match other {
        Nothing => Ok(()),
        Steps(steps) => {
            // Steps go on from key to key, as a traversal does.
            let mut at = key;
            for _ in 0..steps {
                match hand.next(at) {
                    Next::Key(next) => at = next,
                    Next::End => break,
                    // In hash order: on from another.
                    Next::Gone => at = random.below(range) + 1,
                }
            }
            Ok(())
        }
        // Other threads write meanwhile, so the number is only known within limits.
        All => match hand.count_all() {
            n if n > 0 && n <= range => Ok(()),
            n => Err(format!("select_count of everything gave {n}")),
        },
        Part(many) => match hand.count_between(key, key + many) {
            n if n <= many => Ok(()),
            n => Err(format!("select_count of {many} keys gave {n}")),
        },
    }
}

/// Inserts and deletions alone, with rows counted in many places and in one.
fn counters(run: &mut Run, turns: (usize, f64), counts: &[usize]) -> Outcome {
    let (range, ms) = run
        .scale
        .pick((2_000, 8), (50_000, 100), (1_000_000, 3_000));
    let mut all = listed(COUNTERS);
    all.retain(|c| run.only.has(&c.name));
    let order = shuffled(range, run.options.seed);
    let all = with_threads(&all, Contender::name, counts);
    run.in_turns("counters", turns, &all, |run, seed, &(one, threads)| {
        // Only inserts and deletions, each of which changes the counter.
        let rate = rate_of(one, &SCENARIOS[0], &order, threads, ms, seed)?;
        run.figure("counters", &one.name, threads, rate);
        Ok(())
    })
}

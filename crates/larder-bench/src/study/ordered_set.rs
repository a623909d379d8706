//! The studies of ordered_set: inserts of disjoint ranges, the 14 scenarios of OTP's throughput
//! benchmark, counters in one place or in many.
//!
//! To add a scenario: an entry of [`SCENARIOS`].

use super::adapting;
use super::contender::{named, others, said, Contender};
use super::rows::{traverse, Hand, Next, Rows};
use super::run::{grouped, rotated, Run};
use super::Plan;
use crate::result::Failure;
use crate::result::{Better, Scale};
use crate::time::workers;
use crate::workload::{shuffled, Random};
use std::time::Duration;

/// The study.
pub const STUDY: Plan = Plan {
    name: "ordered-set",
    title: "ordered_set by threads: disjoint inserts, 14 scenarios, counters, and a tree that adapts",
    source: "K. Sagonas, K. Winblad, \"More Scalable Ordered Set for ETS Using Adaptation\", Erlang Workshop 2014; the throughput benchmark of OTP's ets_SUITE",
    about: "Tables of the engine (larder::Table), rows {K}, worked on by threads of a Rust program. A recorded run of a contention-adapting tree (the \
            structure alone) goes to catree-adapting.json.",
    quick_seconds: 55.0,
    run,
};

const RATE: (&str, Better) = ("M op/s", Better::More);

/// The old ordered_set, those that took its place, Larder's, and the others.
fn contenders() -> Vec<Contender> {
    let mut all = vec![
        Contender::default_ordered(),
        Contender::ordered(
            "ordered_set (AVL, one lock)",
            "avl",
            &[said("reader_groups", 64)],
        ),
        Contender::ordered("ordered_set (CA tree)", "catree", &[]),
        Contender::default_set(),
        Contender::set(
            "set (OTP 25, auto)",
            "linear_hash",
            &[named("locks", "auto"), said("reader_groups", 64)],
        ),
    ];
    all.extend(others(&["avl", "catree", "linear_hash"]));
    all
}

fn run(run: &mut Run) -> Result<(), Failure> {
    let contenders = run.contenders(contenders())?;
    let runs = run.runs(run.scale.pick(1, 3, 3));
    let counts = run.thread_counts();
    let ends: Vec<_> = counts
        .iter()
        .copied()
        .filter(|&n| n == 1 || n == run.threads)
        .collect();
    if run.scale == super::Extent::Full {
        foresee(run, runs, contenders.len(), ends.len());
    }
    // First what is drawn first, and takes a second or two.
    adapting::record(run)?;
    disjoint(run, (runs, 0.2), &contenders)?;
    counters(run, (runs, 0.3), &counts)?;
    scenarios(run, (runs, 1.0), &contenders, &ends)
}

/// Says about how long it will take: a scenario its time, and two seconds to fill, check and free a
/// table.
fn foresee(run: &mut Run, runs: usize, contenders: usize, ends: usize) {
    let scenarios = SCENARIOS.len() * contenders * ends;
    let disjoint = 3.0 * contenders as f64 * 10e6 * 1.6e-6;
    run.announce(runs as f64 * (5.0 * scenarios as f64 + disjoint + 60.0));
}

fn disjoint(
    run: &mut Run,
    (runs, share): (usize, f64),
    contenders: &[Contender],
) -> Result<(), Failure> {
    let n = run.scale.pick(4_000, 100_000, 10_000_000i64);
    run.setting("disjoint inserts", n);
    run.plot(
        "disjoint",
        format!("{} inserts of disjoint ranges", grouped(n as usize)),
        ("threads", Scale::Log),
        ("millions of inserts a second", Scale::Log),
        "each thread inserts a range of its own, in order; the published run had 10,000,000 and 1, 2 and 4 processes",
    );
    let fits = |c: &&Contender| run.fits(&format!("{n} inserts, {}", c.name), n as f64 * 220.0);
    let contenders: Vec<_> = contenders.iter().filter(fits).collect();
    let counts = [1, 2, 4];
    let (part, steps) = ("disjoint inserts", (&contenders[..], counts.len()));
    run.in_turns(part, (runs, share), steps, |run, _, contender| {
        let name = &contender.name;
        if run.is_over(&format!("{part}, {name}"), (share, 0.0)) {
            return Ok(());
        }
        for threads in counts {
            run.progress.at(name);
            let rows = contender.make(1, n as usize)?;
            let part = n / threads as i64;
            let done = workers::work(threads, None, |worker| {
                let (mut hand, from) = (rows.hand(), worker.number as i64 * part);
                (from + 1..=from + part).for_each(|key| hand.insert(key, key));
                Ok(())
            })?;
            whole(&*rows, name, part * threads as i64)?;
            let rate = n as f64 / done.seconds / 1e6;
            run.figure("disjoint", name, threads as f64, rate, RATE);
            run.progress.step();
        }
        Ok(())
    })?;
    run.check("after disjoint inserts a traversal met every key once, by number and sum");
    Ok(())
}

/// Whether the table has the keys from 1 to `n`.
fn whole(rows: &dyn Rows, name: &str, n: i64) -> Result<(), Failure> {
    let (at, rows_met, sum) = traverse(&mut *rows.hand());
    let right = (n, n * (n + 1) / 2);
    if at != Next::End || (rows_met, sum) != right || rows.counted() != Some(n as usize) {
        let what = format!(
            "{rows_met} rows with the sum {sum}, {:?} counted, not {right:?}",
            rows.counted()
        );
        return Err(Failure::wrong(name, what));
    }
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
    /// select_count of a range of so many keys, by guards.
    Part(i64),
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

/// Draws of 32 bits below the limits are inserts, deletions, lookups.
struct Draws {
    limits: [u64; 3],
    other: Other,
    range: i64,
}

impl Draws {
    fn of((_, [insert, delete, lookup], other): Scenario, range: i64) -> Draws {
        let draw = |percent: f64| (percent / 100.0 * (1u64 << 32) as f64).round() as u64;
        let limits = [insert, insert + delete, insert + delete + lookup].map(draw);
        Draws {
            limits,
            other,
            range,
        }
    }
}

fn scenarios(
    run: &mut Run,
    (runs, share): (usize, f64),
    contenders: &[Contender],
    counts: &[usize],
) -> Result<(), Failure> {
    let (range, ms) = run.scale.pick((2_000, 8), (20_000, 25), (1_000_000, 3_000));
    run.setting("scenario keys", range);
    run.setting("scenario milliseconds", ms);
    let names = ("insert/delete/lookup in %, and the rest", Scale::Names);
    let rate = ("millions of operations a second", Scale::Log);
    let note = format!("keys from 1 to {range}, half of them there at the beginning, {ms} ms a run on a fresh table; a sequence of next is one operation");
    for (id, title) in [
        ("scenarios-1", "Scenarios, one thread"),
        ("scenarios", "Scenarios, all threads"),
    ] {
        run.plot(id, title, names, rate, note.clone());
    }
    let order = shuffled(range as usize, run.seed);
    let mut turns = run.turns(runs, share);
    while let Some(turn) = run.turn("scenarios", &mut turns)? {
        let steps = contenders.len() * counts.len() * SCENARIOS.len();
        run.begin_turn("scenarios", turn, steps);
        for scenario in SCENARIOS {
            if run.is_over(&format!("scenario {}", scenario.0), (share, 0.0)) {
                continue;
            }
            let mix = Draws::of(scenario, range);
            for contender in rotated(contenders, turn) {
                for &threads in counts {
                    run.progress
                        .at(&format!("{}, {}", scenario.0, contender.name));
                    let rate =
                        rate_of(contender, &mix, &order, threads, ms, run.seed + turn as u64)?;
                    let plot = if threads == 1 {
                        "scenarios-1"
                    } else {
                        "scenarios"
                    };
                    run.figure(plot, &contender.name, scenario.0, rate, RATE);
                    run.progress.step();
                }
            }
        }
    }
    run.check("after each scenario: as many rows are found by key as by a scan, and as the table counts; lookups alone change nothing");
    Ok(())
}

/// Millions of operations a second on a fresh table.
fn rate_of(
    contender: &Contender,
    mix: &Draws,
    order: &[u32],
    threads: usize,
    ms: u64,
    seed: u64,
) -> Result<f64, Failure> {
    let rows = contender.make(1, order.len() / 2)?;
    let mut hand = rows.hand();
    let half = order.len() / 2;
    for &key in &order[..half] {
        hand.insert(i64::from(key) + 1, 0);
    }
    let done = workers::work(threads, Some(Duration::from_millis(ms)), |worker| {
        let mut random = Random::new(seed ^ (worker.number as u64) << 40);
        let (mut hand, mut operations) = (rows.hand(), 0u64);
        // At least once: a thread may come late to a short time.
        loop {
            for _ in 0..16 {
                one(&mut *hand, mix, &mut random)
                    .map_err(|what| Failure::wrong(&contender.name, what))?;
            }
            operations += 16;
            if worker.is_over() {
                break;
            }
        }
        Ok(operations)
    })?;
    let changed = mix.limits[1] > 0;
    sound(
        &*rows,
        &contender.name,
        mix.range,
        (!changed).then_some(half),
    )?;
    Ok(done.results.iter().sum::<u64>() as f64 / done.seconds / 1e6)
}

/// One operation.
fn one(hand: &mut dyn Hand, mix: &Draws, random: &mut Random) -> Result<(), String> {
    let bits = random.bits();
    let (what, key) = (
        bits >> 32,
        (((bits & 0xFFFF_FFFF) * mix.range as u64) >> 32) as i64 + 1,
    );
    let [insert, delete, lookup] = mix.limits;
    if what < insert {
        hand.insert(key, 0);
    } else if what < delete {
        hand.delete(key);
    } else if what < lookup {
        let found = hand.lookup(key);
        if found.is_some_and(|other| other != key) {
            return Err(format!("lookup of {key} gave {found:?}"));
        }
    } else {
        other(hand, mix, key, random)?;
    }
    Ok(())
}

fn other(hand: &mut dyn Hand, mix: &Draws, key: i64, random: &mut Random) -> Result<(), String> {
    match mix.other {
        Nothing => Ok(()),
        Steps(steps) => {
            let mut at = key;
            for _ in 0..steps {
                match hand.next(at) {
                    Next::Key(next) => at = next,
                    Next::End => break,
                    // In hash order: on from another.
                    Next::Gone => at = random.below(mix.range as u64) as i64 + 1,
                }
            }
            Ok(())
        }
        All => match hand.count_all() {
            n if n > 0 && n <= mix.range as u64 => Ok(()),
            n => Err(format!("select_count of everything gave {n}")),
        },
        Part(many) => match hand.count_between(key, key + many) {
            n if n <= many as u64 => Ok(()),
            n => Err(format!("select_count of {many} keys gave {n}")),
        },
    }
}

/// Rows by key, by a scan, by the table's count: the same; and as many as expected.
fn sound(rows: &dyn Rows, name: &str, range: i64, expected: Option<usize>) -> Result<(), Failure> {
    let mut hand = rows.hand();
    let there = (1..=range)
        .filter(|&key| hand.lookup(key) == Some(key))
        .count();
    let (scanned, counted) = (hand.count_all() as usize, rows.counted());
    if scanned != there || counted != Some(there) || expected.is_some_and(|n| n != there) {
        let what = format!(
            "{there} rows are found, {scanned} scanned, {counted:?} counted, {expected:?} right"
        );
        return Err(Failure::wrong(name, what));
    }
    Ok(())
}

/// Inserts and deletions alone, with rows counted in many places and in one.
fn counters(run: &mut Run, (runs, share): (usize, f64), counts: &[usize]) -> Result<(), Failure> {
    let (range, ms) = run
        .scale
        .pick((2_000, 8), (50_000, 100), (1_000_000, 3_000));
    run.plot(
        "counters",
        "Decentralised counters: inserts and deletions",
        ("threads", Scale::Log),
        ("millions of operations a second", Scale::Log),
        "50 % inserts, 50 % deletions of random keys; on: rows are counted in many places, off: in one",
    );
    let mut all = Vec::new();
    for contender in [
        Contender::default_set(),
        Contender::default_ordered(),
        Contender::ordered("ordered_set (CA tree)", "catree", &[]),
    ] {
        for (decentralized, name) in [(true, "on"), (false, "off")] {
            let mut one = contender.clone().counting(decentralized);
            one.name = format!("{}, {name}", contender.name);
            all.push(one);
        }
    }
    all.retain(|c| run.wants(&c.name));
    let order = shuffled(range as usize, run.seed);
    let mix = Draws::of(SCENARIOS[0], range);
    let steps = (&all[..], counts.len());
    run.in_turns("counters", (runs, share), steps, |run, seed, contender| {
        let name = &contender.name;
        for &threads in counts {
            run.progress.at(name);
            let rate = rate_of(contender, &mix, &order, threads, ms, seed)?;
            run.figure("counters", name, threads as f64, rate, RATE);
            run.progress.step();
        }
        Ok(())
    })
}

//! The study of 2013: threads on one table in three phases; releases of OTP; locks, reader groups,
//! stacks, registries.
//!
//! To add a contender: a line of [`CONTENDERS`]. To add a mix: an entry of
//! [`MIXES`].

use super::contender::{listed, peers, Contender};
use super::rows::{sound, Rows};
use super::run::{with_threads, Run};
use super::{Extent, Plan};
use crate::maps::peers::Next;
use crate::result::{ensure, Failure, Outcome, X};
use crate::time::workers;
use crate::workload::{Load, Mix, Random};
use larder_term::Atom;
use parking_lot::RwLock;
use std::collections::HashMap;

/// The study.
pub const STUDY: Plan = Plan {
    name: "ets-2013",
    title: "Throughput of one table by threads: releases, locks, reader groups, structures",
    source: "D. Klaftenegger, K. Sagonas, K. Winblad, \"On the Scalability of the Erlang Term Storage\", Erlang Workshop 2013",
    about: "Tables of the engine (larder::host::Table), rows {K, V}, worked on by threads of a Rust program, one a core. The releases of OTP are built from \
            Larder's own structures and locks; peers are maps from u64 to u64 in their own crates (feature `peers`), without rows to encode.",
    quick_seconds: 55.0,
    run,
};

const PLOTS: &str = "
insert | First phase: inserts at random | threads, log | {rate} | {phases}
lookups-90 | Second phase: 90 % lookups, 5 % inserts, 5 % deletions | threads, log | {rate} | {phases}
lookups-99 | Second phase: 99 % lookups, 0.5 % inserts, 0.5 % deletions | threads, log | {rate} | {phases}
lookups-100 | Second phase: lookups alone | threads, log | {rate} | {phases}
delete | Third phase: deletions | threads, log | {rate} | every key of the range, there or not
reader-groups | Reader groups of one lock | reader groups, log | {rate} | {threads} threads; second phase
bucket-locks | Locks for parts of a hash table | locks, log | {rate} | {threads} threads; second phase
options | read_concurrency and write_concurrency, as in R16B | , names | {rate} | {threads} threads; second phase
stacks | An ordered_set's stack: static or dynamic | threads, log | {rate} | steps of next from key to key by all threads on one table; a static stack remembers where the last one stopped, for one thread at a time
registry | The way to a table: registry with and without locks | threads, log | {rate} | random lookups, each of which first finds the table by its name, among 64 tables; handle: the table is at hand
";

/// How large the three phases are.
#[derive(Clone, Copy)]
struct Size {
    /// Keys are 1 to this.
    range: u64,
    inserts: usize,
    operations: usize,
}

/// The second phase: percent of lookups, the rest half inserts and half deletions.
const MIXES: [u64; 3] = [90, 99, 100];

/// Larder's own, and what OTP's releases had, of our structures: they differ in the length of
/// chains, the number of locks, and the groups of readers.
const CONTENDERS: &str = "
default set | set default
default ordered_set | ordered_set default
R11B set | set linear_hash chain=6 locks=0 reader_groups=1
R13B02 set | set linear_hash chain=6 locks=16 reader_groups=1
R14B set | set linear_hash chain=6 locks=16 reader_groups=64
R16B set | set linear_hash chain=6 locks=64 reader_groups=64
OTP 25 set | set linear_hash chain=1 locks=auto reader_groups=64
R11B ordered_set | ordered_set avl reader_groups=1
R14B ordered_set | ordered_set avl reader_groups=64
OTP 22 ordered_set | ordered_set catree
";

/// What is swept over the number of reader groups, `{n}`: with one lock and with many.
const GROUPS: &str = "
set, one lock | set linear_hash reader_groups={n}
set, 64 locks | set linear_hash locks=64 reader_groups={n}
ordered_set | ordered_set avl reader_groups={n}
";

/// What is swept over the number of locks.
const LOCKS: &str = "set | set linear_hash locks={n}";

/// Places of the plot of options, and what is measured there. In R16B, write_concurrency does
/// nothing to an ordered_set.
const OPTIONS: &str = "
Larder's default: set | set default
Larder's default: ordered_set | ordered_set default
none: set | set linear_hash locks=0 reader_groups=1
none: ordered_set | ordered_set avl reader_groups=1
read: set | set linear_hash locks=0 reader_groups=64
read: ordered_set | ordered_set avl reader_groups=64
write: set | set linear_hash locks=64 reader_groups=1
write: ordered_set | ordered_set avl reader_groups=1
read and write: set | set linear_hash locks=64 reader_groups=64
read and write: ordered_set | ordered_set avl reader_groups=64
";

/// What the stacks of an ordered_set are measured on.
const STACKS: &str = "
static stack | ordered_set avl static_stack=true
dynamic stack | ordered_set avl static_stack=false
default ordered_set | ordered_set default
skiplist | ordered_set skiplist
";

fn run(run: &mut Run) -> Outcome {
    let full = Size {
        range: 2_097_152,
        inserts: 1_048_576,
        operations: 16_777_216,
    };
    // Quick studies have the same proportions with less of everything.
    let part = |divisor: usize| Size {
        range: full.range / divisor as u64,
        inserts: full.inserts / divisor,
        operations: full.operations / divisor,
    };
    let size = run.scale.pick(part(512), part(64), full);
    run.setting("range", size.range);
    run.setting("inserts", size.inserts);
    run.setting("operations", size.operations);
    // Say plainly what the machine can't show.
    if run.threads < 64 {
        run.skip(format!(
            "more than {} threads: the paper's machine had 64, this one has no more cores",
            run.threads
        ));
    }
    if !cfg!(feature = "peers") {
        run.skip(
            "the ecosystem's hash tables and skip list: built without the feature `peers`".into(),
        );
    }
    let contenders = run.contenders(CONTENDERS, peers())?;
    let runs = run.runs(run.scale.pick(1, 3, 5));
    let threads = run.threads.to_string();
    let note = "all threads together, from the first one's beginning to the last one's end";
    run.plots(PLOTS, &[("phases", note), ("threads", &threads)]);
    if run.scale == Extent::Full {
        foresee(run, size, runs, contenders.len());
    }
    // Each part may last until its share of the time is over.
    phases(run, size, (runs, 0.6), &contenders)?;
    sweep(run, size, (runs, 0.7), "reader-groups", doubled(GROUPS, 64))?;
    sweep(run, size, (runs, 0.8), "bucket-locks", doubled(LOCKS, 1024))?;
    sweep(run, size, (runs, 0.85), "options", options())?;
    stacks(run, size, (runs, 0.95))?;
    registries(run, size, (runs, 1.0))
}

/// Says about how long it will take: a microsecond and a quarter an operation of all threads
/// together, half of one for checks.
fn foresee(run: &mut Run, size: Size, runs: usize, contenders: usize) {
    let counts = run.thread_counts().len();
    let phases = contenders * counts * MIXES.len();
    let sweeps = doubled(GROUPS, 64).len() + doubled(LOCKS, 1024).len() + options().len();
    let step = 1.25e-6 * (size.operations + size.inserts + size.range as usize) as f64
        + 0.5e-6 * (3 * size.range) as f64;
    let others = 1e-6 * (4 * counts * size.inserts * 2 + 3 * counts * size.operations) as f64;
    run.announce(runs as f64 * (step * (phases + 2 * sweeps) as f64 + others));
}

/// A row of a number: keys from 1, as in the paper.
fn row(number: u64) -> (u64, u64) {
    let key = number + 1;
    (key, key ^ 0x5555)
}

/// Random numbers of a worker: the same for the same run, phase and number.
fn random(seed: u64, phase: u64, number: usize) -> Random {
    // The phase and the thread are in upper bits, which seeds of runs don't have.
    Random::new(seed ^ phase << 32 ^ (number as u64) << 40)
}

/// A worker's part of so many.
fn part_of(all: usize, threads: usize, number: usize) -> usize {
    // What is left over goes to the first workers, one for each.
    all / threads + usize::from(number < all % threads)
}

/// All three phases of all contenders, by number of threads.
fn phases(run: &mut Run, size: Size, turns: (usize, f64), contenders: &[Contender]) -> Outcome {
    let fits = |c: &&Contender| run.fits(&c.name.clone(), size.inserts as f64 * 300.0);
    let contenders: Vec<_> = contenders.iter().filter(fits).collect();
    // One contender goes through all numbers of threads and mixes before the next.
    let all = with_threads(contenders, Contender::name, &run.thread_counts());
    run.in_turns("phases", turns, &all, |run, seed, &(one, threads)| {
        for lookups in MIXES {
            let plots = ["insert", &format!("lookups-{lookups}"), "delete"];
            let rates = three(one, size, lookups, threads, seed)?;
            for (plot, rate) in plots.into_iter().zip(rates) {
                run.figure(plot, &one.name, threads, rate);
            }
        }
        Ok(())
    })?;
    run.check(
        "after the first phase: as many rows as different keys were drawn, each with its value",
    );
    run.check("after the second phase: every row has the value of its key; as many rows are found as the table counts");
    run.check("after the third phase: as many rows were deleted as there were, and none is left");
    Ok(())
}

/// The rates of the three phases on a fresh table.
fn three(
    contender: &Contender,
    size: Size,
    lookups: u64,
    threads: usize,
    seed: u64,
) -> Outcome<[f64; 3]> {
    let rows = contender.make(2, size.inserts)?;
    let name = &contender.name;
    // Each phase works on what the one before left, and is checked before the next.
    let (inserts, mixed) = (phase(name, size, None), phase(name, size, Some(lookups)));
    let first = operate(&*rows, &inserts, size.inserts, (1, threads, seed))?;
    // The same seed, so that `distinct` can draw the same keys again.
    let drawn = distinct(&inserts, size.inserts, threads, seed);
    sound(&*rows, &inserts, Some(drawn))?;
    let second = operate(&*rows, &mixed, size.operations, (2, threads, seed))?;
    let left = sound(&*rows, &mixed, None)?;
    let third = delete(&*rows, &mixed, threads, left)?;
    Ok([first, second, third])
}

fn rate(operations: usize, seconds: f64) -> f64 {
    operations as f64 / seconds / 1e6
}

/// What one of the first two phases does to a table: inserts alone, or so many lookups in 100 and
/// as many inserts as deletions, so that the size of the table stays.
fn phase(name: &str, size: Size, lookups: Option<u64>) -> Load<'_, fn(u64) -> (u64, u64)> {
    let percent = lookups.map_or([100.0, 0.0, 0.0], |lookups| {
        let changes = (100 - lookups) as f64 / 2.0;
        [changes, changes, lookups as f64]
    });
    Load {
        name,
        mix: Mix::new(percent),
        range: size.range,
        entry: row,
    }
}

/// So many operations of all threads together.
fn operate<E: Fn(u64) -> (u64, u64) + Sync>(
    rows: &dyn Rows,
    load: &Load<'_, E>,
    operations: usize,
    (phase, threads, seed): (u64, usize, u64),
) -> Outcome<f64> {
    let done = workers::work(threads, None, |worker| {
        let (mut hand, mut random) = (rows.hand(), random(seed, phase, worker.number));
        let part = part_of(operations, threads, worker.number) as u64;
        load.work(
            &mut *hand,
            &mut random,
            |done| done < part,
            |_, _, _| Ok(()),
        )
    })?;
    Ok(rate(operations, done.seconds))
}

/// How many different keys the first phase draws.
fn distinct<E>(load: &Load<'_, E>, inserts: usize, threads: usize, seed: u64) -> usize {
    // Draw what the workers of the first phase drew, and count each key once.
    let mut seen = vec![false; load.range as usize];
    for number in 0..threads {
        let mut random = random(seed, 1, number);
        for _ in 0..part_of(inserts, threads, number) {
            seen[load.mix.draw(&mut random, load.range).1 as usize] = true;
        }
    }
    seen.iter().filter(|&&seen| seen).count()
}

/// The third phase: with n workers, each deletes every n-th key of the range.
fn delete<E: Fn(u64) -> (u64, u64) + Sync>(
    rows: &dyn Rows,
    load: &Load<'_, E>,
    threads: usize,
    left: usize,
) -> Outcome<f64> {
    let done = workers::work(threads, None, |worker| {
        // With `step_by`, the keys of the threads are disjoint, and all keys are deleted once.
        let mut hand = rows.hand();
        let numbers = (worker.number as u64..load.range).step_by(threads);
        let gone = numbers.filter(|&number| hand.remove((load.entry)(number).0));
        Ok(gone.count())
    })?;
    let gone: usize = done.results.into_iter().sum();
    ensure!(
        gone == left,
        load.name,
        "{gone} rows were deleted, not {left}"
    );
    sound(rows, load, Some(0))?;
    Ok(rate(load.range as usize, done.seconds))
}

/// What a sweep measures: a series, the places on its axis with a table for each.
type Sweep = Vec<(X, Contender)>;

/// The contenders at 1, 2, 4 and so on up to the most.
fn doubled(lines: &str, most: u32) -> Sweep {
    let of = |n: u32| {
        let at = listed(&lines.replace("{n}", &n.to_string())).into_iter();
        at.map(move |contender| (f64::from(n).into(), contender))
    };
    let counts = (0..).map(|i| 1 << i).take_while(|n| *n <= most);
    counts.flat_map(of).collect()
}

/// The contenders of each place of [`OPTIONS`].
fn options() -> Sweep {
    let lines = OPTIONS
        .trim()
        .lines()
        .filter_map(|line| line.split_once(": "));
    lines
        .map(|(x, line)| (x.into(), Contender::said(line)))
        .collect()
}

/// The second phase, with the most threads, by what is swept over.
fn sweep(run: &mut Run, size: Size, turns: (usize, f64), plot: &str, sweep: Sweep) -> Outcome {
    let threads = run.threads;
    let wanted = sweep.into_iter().filter(|(_, c)| run.only.has(&c.name));
    let named = |(x, c): (X, Contender)| (format!("{}, {x}", c.name), (x, c));
    let all: Vec<_> = wanted.map(named).collect();
    run.in_turns(plot, turns, &all, |run, seed, (x, contender)| {
        for lookups in [90, 99] {
            let series = format!("{}, {lookups} % lookups", contender.name);
            // A fresh table for each point, so that no point depends on another.
            let rows = contender.make(2, size.inserts)?;
            let inserts = phase(&series, size, None);
            operate(&*rows, &inserts, size.inserts, (1, threads, seed))?;
            let mixed = phase(&series, size, Some(lookups));
            let rate = operate(&*rows, &mixed, size.operations, (2, threads, seed))?;
            sound(&*rows, &mixed, None)?;
            run.figure(plot, &series, x.clone(), rate);
        }
        Ok(())
    })
}

/// Steps of next on an ordered_set whose stack is static or not, and on Larder's.
fn stacks(run: &mut Run, size: Size, turns: (usize, f64)) -> Outcome {
    let mut all = listed(STACKS);
    all.retain(|c| run.only.has(&c.name));
    let keys = size.inserts as u64;
    let all = with_threads(&all, Contender::name, &run.thread_counts());
    run.in_turns("stacks", turns, &all, |run, _, &(contender, threads)| {
        let name = &contender.name;
        let rows = contender.make(2, size.inserts)?;
        let mut hand = rows.hand();
        // The same keys for all, inserted in order.
        for (key, value) in (0..keys).map(row) {
            hand.insert(key, value);
        }
        let done = workers::work(threads, None, |_| walk(&*rows, keys, name))?;
        let rate = rate(keys as usize * threads, done.seconds);
        run.figure("stacks", name, threads, rate);
        Ok(())
    })?;
    run.check("every walk by next met all keys in order");
    Ok(())
}

/// From the first key to the last.
fn walk(rows: &dyn Rows, keys: u64, name: &str) -> Outcome {
    let mut hand = rows.hand();
    let (mut at, mut last) = (hand.first(), 0);
    while let Next::Key(key) = at {
        // Keys are those from 1 on, without gaps. So the next key is known.
        ensure!(key == last + 1, name, "{key} came after {last}");
        last = key;
        at = hand.next(key);
    }
    ensure!(last == keys, name, "a walk ended at {last}, not {keys}");
    Ok(())
}

/// Tables that are found by name.
const TABLES: usize = 64;

/// How a worker comes to its table.
enum Access {
    Handle,
    Engine,
    Locked(RwLock<HashMap<Atom, larder::api::Table>>),
}

/// Random lookups that find their table first.
fn registries(run: &mut Run, size: Size, turns: (usize, f64)) -> Outcome {
    let world = larder::api::Larder::new();
    let created = |e: larder::Error| Failure::Impossible(e.to_string());
    // Named tables, since a registry finds them by name.
    let tables: Vec<_> = (0..TABLES)
        .map(|i| world.table(&format!("registry_{i}")).named().create())
        .collect::<Result<_, _>>()
        .map_err(created)?;
    let keys = 1_000;
    for table in &tables {
        for key in 0..keys {
            let row = larder_term::term!({(key as i64), (row(key).1 as i64)});
            table.insert(&row).map_err(created)?;
        }
    }
    let named = tables.iter().map(|t| (t.engine_table().name(), t.clone()));
    // Three ways to a table: none, Larder's registry, and what a simple program would have.
    let ways = [
        ("handle", Access::Handle),
        ("Larder's registry, without locks", Access::Engine),
        (
            "a map under one readers-writer lock",
            Access::Locked(RwLock::new(named.collect())),
        ),
    ];
    let name = |(name, _): &(&str, Access)| (*name).to_owned();
    let all = with_threads(&ways, name, &run.thread_counts());
    run.in_turns(
        "registry",
        turns,
        &all,
        |run, seed, &((name, way), threads)| {
            let done = workers::work(threads, None, |worker| {
                let operations = part_of(size.operations, threads, worker.number);
                let random = random(seed, 3, worker.number);
                found(&world, &tables, way, keys, operations, random)
            })?;
            run.figure(
                "registry",
                name,
                threads,
                rate(size.operations, done.seconds),
            );
            Ok(())
        },
    )?;
    run.check("every lookup behind a registry found its row");
    Ok(())
}

fn found(
    world: &larder::api::Larder,
    tables: &[larder::api::Table],
    way: &Access,
    keys: u64,
    operations: usize,
    mut random: Random,
) -> Outcome {
    let names: Vec<_> = tables.iter().map(|t| t.engine_table().name()).collect();
    let (mut bytes, who) = (Vec::new(), world.owner());
    for _ in 0..operations {
        let at = random.below(TABLES as u64) as usize;
        let key = random.below(keys) as i64;
        // The key is encoded each time, as a host does it.
        bytes.clear();
        larder_term::Encoder::new(&mut bytes, larder_term::Mode::Inline).int(key);
        let there = |table: &larder::host::Table| table.member(who, &bytes);
        // Only the way to the table differs.
        let met = match way {
            Access::Handle => there(tables[at].engine_table()),
            Access::Engine => world
                .engine()
                .with_named(names[at], |table| there(table))
                .unwrap_or(Ok(false)),
            Access::Locked(map) => there(map.read()[&names[at]].engine_table()),
        };
        ensure!(met == Ok(true), "registry", "{key} was not found: {met:?}");
    }
    Ok(())
}

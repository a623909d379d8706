//! The study of 2013: threads on one table in three phases; releases of OTP; locks, reader groups,
//! stacks, registries.
//!
//! To add a contender: an entry of [`releases`] or [`contenders`]. To add a mix: an entry of
//! [`MIXES`].

use super::contender::{named, others, peers, said, Contender};
use super::rows::{right, sound, Rows};
use super::run::Run;
use super::{Extent, Plan};
use crate::maps::peers::Next;
use crate::result::{Failure, Outcome, X};
use crate::time::workers::{self, Worker};
use crate::workload::{Drawn, Mix, Random};
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

/// What OTP's releases had, of our structures.
fn releases() -> Vec<Contender> {
    // Releases differ in the length of chains, the number of locks, and the groups of readers.
    let hash = |name, chain, locks, groups| {
        let options = [
            said("chain", chain),
            said("locks", locks),
            said("reader_groups", groups),
        ];
        Contender::set(name, "linear_hash", &options)
    };
    let auto = [
        said("chain", 1),
        named("locks", "auto"),
        said("reader_groups", 64),
    ];
    vec![
        hash("R11B set", 6, 0, 1),
        hash("R13B02 set", 6, 16, 1),
        hash("R14B set", 6, 16, 64),
        hash("R16B set", 6, 64, 64),
        Contender::set("OTP 25 set", "linear_hash", &auto),
        Contender::ordered("R11B ordered_set", "avl", &[said("reader_groups", 1)]),
        Contender::ordered("R14B ordered_set", "avl", &[said("reader_groups", 64)]),
        Contender::ordered("OTP 22 ordered_set", "catree", &[]),
    ]
}

/// Larder's, the releases', the other structures, the ecosystem's.
fn contenders() -> Vec<Contender> {
    let mut all = vec![Contender::default_set(), Contender::default_ordered()];
    all.extend(releases());
    all.extend(others(&["linear_hash", "avl", "catree"]));
    all.extend(peers());
    all
}

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
    let contenders = run.contenders(contenders())?;
    let runs = run.runs(run.scale.pick(1, 3, 5));
    let threads = run.threads.to_string();
    let note = "all threads together, from the first one's beginning to the last one's end";
    run.plots(PLOTS, &[("phases", note), ("threads", &threads)]);
    if run.scale == Extent::Full {
        foresee(run, size, runs, contenders.len());
    }
    // Each part may last until its share of the time is over.
    phases(run, size, (runs, 0.6), &contenders)?;
    sweep(run, size, (runs, 0.7), "reader-groups", groups())?;
    sweep(run, size, (runs, 0.8), "bucket-locks", locks())?;
    sweep(run, size, (runs, 0.85), "options", options())?;
    stacks(run, size, (runs, 0.95))?;
    registries(run, size, (runs, 1.0))
}

/// Says about how long it will take: a microsecond and a quarter an operation of all threads
/// together, half of one for checks.
fn foresee(run: &mut Run, size: Size, runs: usize, contenders: usize) {
    let counts = run.thread_counts().len();
    let phases = contenders * counts * MIXES.len();
    let sweeps = 2 * (groups().len() + locks().len() + options().len());
    let step = 1.25e-6 * (size.operations + size.inserts + size.range as usize) as f64
        + 0.5e-6 * (3 * size.range) as f64;
    let others = 1e-6 * (4 * counts * size.inserts * 2 + 3 * counts * size.operations) as f64;
    run.announce(runs as f64 * (step * (phases + sweeps) as f64 + others));
}

/// The value of a key.
fn value(key: u64) -> u64 {
    key ^ 0x5555
}

/// Random numbers of a worker: the same for the same run, phase and number.
fn random(seed: u64, phase: u64, worker: &Worker<'_>) -> Random {
    // The phase and the thread are in upper bits, which seeds of runs don't have.
    Random::new(seed ^ phase << 32 ^ (worker.number as u64) << 40)
}

/// A worker's part of so many.
fn part_of(all: usize, threads: usize, number: usize) -> usize {
    // What is left over goes to the first workers, one for each.
    all / threads + usize::from(number < all % threads)
}

fn key(random: &mut Random, range: u64) -> u64 {
    random.below(range) + 1
}

/// All three phases of all contenders, by number of threads.
fn phases(
    run: &mut Run,
    size: Size,
    (runs, share): (usize, f64),
    contenders: &[Contender],
) -> Outcome {
    let counts = run.thread_counts();
    let fits = |c: &&Contender| run.fits(&c.name.clone(), size.inserts as f64 * 300.0);
    let contenders: Vec<_> = contenders.iter().filter(fits).collect();
    let steps = (&contenders[..], counts.len() * MIXES.len());
    run.in_turns("phases", (runs, share), steps, |run, seed, contender| {
        let name = &contender.name;
        if run.is_over(&format!("phases, {name}"), (share, 0.0)) {
            return Ok(());
        }
        // One contender goes through all numbers of threads and mixes before the next.
        for &threads in &counts {
            for lookups in MIXES {
                run.progress.at(name);
                let plots = ["insert", &format!("lookups-{lookups}"), "delete"];
                let rates = three(contender, size, lookups, threads, seed)?;
                for (plot, rate) in plots.into_iter().zip(rates) {
                    run.figure(plot, name, threads, rate);
                }
                run.progress.step();
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
    // The same seed, so that `distinct` can draw the same keys again.
    let first = insert(&*rows, size, threads, seed)?;
    let keys = (size.range, value as fn(u64) -> u64);
    sound(&*rows, name, keys, Some(distinct(size, threads, seed)))?;
    let second = mixed(&*rows, name, size, lookups, threads, seed)?;
    let left = sound(&*rows, name, keys, None)?;
    let third = delete(&*rows, name, size, threads, left)?;
    Ok([first, second, third])
}

fn rate(operations: usize, seconds: f64) -> f64 {
    operations as f64 / seconds / 1e6
}

/// The first phase.
fn insert(rows: &dyn Rows, size: Size, threads: usize, seed: u64) -> Outcome<f64> {
    let done = workers::work(threads, None, |worker| {
        let (mut hand, mut random) = (rows.hand(), random(seed, 1, &worker));
        for _ in 0..part_of(size.inserts, threads, worker.number) {
            let key = key(&mut random, size.range);
            hand.insert(key, value(key));
        }
        Ok(())
    })?;
    Ok(rate(size.inserts, done.seconds))
}

/// How many different keys the first phase draws.
fn distinct(size: Size, threads: usize, seed: u64) -> usize {
    // Draw what the workers of the first phase drew, and count each key once.
    let mut seen = vec![false; size.range as usize + 1];
    for number in 0..threads {
        let mut random = Random::new(seed ^ 1 << 32 ^ (number as u64) << 40);
        for _ in 0..part_of(size.inserts, threads, number) {
            seen[key(&mut random, size.range) as usize] = true;
        }
    }
    seen.iter().filter(|&&seen| seen).count()
}

/// The second phase.
fn mixed(
    rows: &dyn Rows,
    name: &str,
    size: Size,
    lookups: u64,
    threads: usize,
    seed: u64,
) -> Outcome<f64> {
    // As many inserts as deletions, so that the size of the table stays.
    let changes = (100 - lookups) as f64 / 2.0;
    let mix = Mix::new([changes, changes, lookups as f64]);
    let done = workers::work(threads, None, |worker| {
        let (mut hand, mut random) = (rows.hand(), random(seed, 2, &worker));
        for _ in 0..part_of(size.operations, threads, worker.number) {
            let (drawn, key) = mix.draw(&mut random, size.range);
            // Keys from 1, as in the paper.
            let key = key + 1;
            match drawn {
                Drawn::Insert => hand.insert(key, value(key)),
                Drawn::Remove => _ = hand.remove(key),
                _ => right(hand.get(key), key, value(key), name)?,
            }
        }
        Ok(())
    })?;
    Ok(rate(size.operations, done.seconds))
}

/// The third phase: with n workers, each deletes every n-th key of the range.
fn delete(rows: &dyn Rows, name: &str, size: Size, threads: usize, left: usize) -> Outcome<f64> {
    let done = workers::work(threads, None, |worker| {
        // With `step_by`, the keys of the threads are disjoint, and all keys are deleted once.
        let mut hand = rows.hand();
        let keys = (1 + worker.number as u64..=size.range).step_by(threads);
        Ok(keys.filter(|&key| hand.remove(key)).count())
    })?;
    let gone: usize = done.results.into_iter().sum();
    Failure::unless(gone == left, name, || {
        format!("{gone} rows were deleted, not {left}")
    })?;
    sound(rows, name, (size.range, value), Some(0))?;
    Ok(rate(size.range as usize, done.seconds))
}

/// What a sweep measures: a series, the places on its axis with a table for each.
type Sweep = Vec<(X, Contender)>;

fn doubled(most: i64) -> impl Iterator<Item = i64> {
    (0..).map(|i| 1 << i).take_while(move |&n| n <= most)
}

fn groups() -> Sweep {
    // The same number of reader groups, with one lock and with many.
    let of = |n: i64| {
        let groups = said("reader_groups", n);
        let locked = [said("locks", 64), groups.clone()];
        let groups = [groups];
        [
            Contender::set("set, one lock", "linear_hash", &groups),
            Contender::set("set, 64 locks", "linear_hash", &locked),
            Contender::ordered("ordered_set", "avl", &groups),
        ]
        .map(|contender| ((n as f64).into(), contender))
    };
    doubled(64).flat_map(of).collect()
}

fn locks() -> Sweep {
    let set = |n| Contender::set("set", "linear_hash", &[said("locks", n)]);
    doubled(1024).map(|n| ((n as f64).into(), set(n))).collect()
}

fn options() -> Sweep {
    let default = [
        Contender::default_set().called("set"),
        Contender::default_ordered().called("ordered_set"),
    ];
    let mut all = vec![("Larder's default", default)];
    for (name, locks, groups) in [
        ("none", 0, 1),
        ("read", 0, 64),
        ("write", 64, 1),
        ("read and write", 64, 64),
    ] {
        let groups = [said("reader_groups", groups)];
        let both = [&[said("locks", locks)], &groups[..]].concat();
        // In R16B, write_concurrency does nothing to an ordered_set.
        let pair = [
            Contender::set("set", "linear_hash", &both),
            Contender::ordered("ordered_set", "avl", &groups),
        ];
        all.push((name, pair));
    }
    let named = |(name, pair): (&str, [Contender; 2])| pair.map(|one| (name.into(), one));
    all.into_iter().flat_map(named).collect()
}

/// The second phase, with the most threads, by what is swept over.
fn sweep(
    run: &mut Run,
    size: Size,
    (runs, share): (usize, f64),
    plot: &'static str,
    sweep: Sweep,
) -> Outcome {
    let wanted = sweep.into_iter().filter(|(_, c)| run.only.has(&c.name));
    let sweep: Sweep = wanted.collect();
    let threads = run.threads;
    let steps = (&sweep[..], 2);
    run.in_turns(plot, (runs, share), steps, |run, seed, (x, contender)| {
        for mix in [90, 99] {
            let series = format!("{}, {mix} % lookups", contender.name);
            run.progress.at(&series);
            if run.is_over(&format!("{plot}, from {x} on"), (share, 0.0)) {
                continue;
            }
            // A fresh table for each point, so that no point depends on another.
            let rows = contender.make(2, size.inserts)?;
            insert(&*rows, size, threads, seed)?;
            let rate = mixed(&*rows, &series, size, mix, threads, seed)?;
            sound(&*rows, &series, (size.range, value), None)?;
            run.figure(plot, &series, x.clone(), rate);
            run.progress.step();
        }
        Ok(())
    })
}

/// Steps of next on an ordered_set whose stack is static or not, and on Larder's.
fn stacks(run: &mut Run, size: Size, (runs, share): (usize, f64)) -> Outcome {
    let stack = |on| [("static_stack".to_owned(), larder::StructureValue::Flag(on))];
    let all = [
        Contender::ordered("static stack", "avl", &stack(true)),
        Contender::ordered("dynamic stack", "avl", &stack(false)),
        Contender::default_ordered(),
        Contender::ordered("skiplist", "skiplist", &[]),
    ];
    let all: Vec<_> = all.into_iter().filter(|c| run.only.has(&c.name)).collect();
    let counts = run.thread_counts();
    let keys = size.inserts as u64;
    let steps = (&all[..], counts.len());
    run.in_turns("stacks", (runs, share), steps, |run, _, contender| {
        let name = &contender.name;
        let rows = contender.make(2, size.inserts)?;
        let mut hand = rows.hand();
        // The same keys for all, inserted in order.
        (1..=keys).for_each(|key| hand.insert(key, value(key)));
        for &threads in &counts {
            run.progress.at(name);
            let done = workers::work(threads, None, |_| walk(&*rows, keys, name))?;
            let rate = rate(keys as usize * threads, done.seconds);
            run.figure("stacks", name, threads, rate);
            run.progress.step();
        }
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
        Failure::unless(key == last + 1, name, || format!("{key} came after {last}"))?;
        last = key;
        at = hand.next(key);
    }
    Failure::unless(last == keys, name, || {
        format!("a walk ended at {last}, not {keys}")
    })
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
fn registries(run: &mut Run, size: Size, (runs, share): (usize, f64)) -> Outcome {
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
            let row = larder_term::term!({(key as i64), (value(key) as i64)});
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
    let counts = run.thread_counts();
    let steps = (&ways[..], counts.len());
    run.in_turns(
        "registry",
        (runs, share),
        steps,
        |run, seed, (name, way)| {
            for &threads in &counts {
                run.progress.at(name);
                let done = workers::work(threads, None, |worker| {
                    let operations = part_of(size.operations, threads, worker.number);
                    let random = random(seed, 3, &worker);
                    found(&world, &tables, way, keys, operations, random)
                })?;
                let rate = rate(size.operations, done.seconds);
                run.figure("registry", name, threads, rate);
                run.progress.step();
            }
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
        Failure::unless(met == Ok(true), "registry", || {
            format!("{key} was not found: {met:?}")
        })?;
    }
    Ok(())
}

//! The study of 2013: threads on one table in three phases; releases of OTP; locks, reader groups,
//! stacks, registries.
//!
//! To add a contender: an entry of [`releases`] or [`contenders`]. To add a mix: an entry of
//! [`MIXES`].

use super::contender::{named, others, peers, said, Contender};
use super::rows::{Next, Rows};
use super::run::Run;
use super::Plan;
use crate::result::Failure;
use crate::result::{Better, Scale};
use crate::time::workers::{self, Worker};
use crate::workload::Random;
use larder_term::Atom;
use parking_lot::RwLock;
use std::collections::HashMap;

/// The study.
pub const STUDY: Plan = Plan {
    name: "ets-2013",
    title: "Throughput of one table by threads: releases, locks, reader groups, structures",
    source: "D. Klaftenegger, K. Sagonas, K. Winblad, \"On the Scalability of the Erlang Term Storage\", Erlang Workshop 2013",
    about: "Tables of the engine (larder::Table), rows {K, V}, worked on by threads of a Rust program, one a core. The releases of OTP are built from \
            Larder's own structures and locks; peers are maps from u64 to u64 in their own crates (feature `peers`), without rows to encode.",
    quick_seconds: 55.0,
    run,
};

const RATE: (&str, Better) = ("M op/s", Better::More);

/// How large the three phases are.
#[derive(Clone, Copy)]
struct Size {
    /// Keys are 1 to this.
    range: i64,
    inserts: usize,
    operations: usize,
}

/// The second phase: percent of lookups, the rest half inserts and half deletions; and the plot.
const MIXES: [(u64, &str, &str); 3] = [
    (90, "lookups-90", "90 % lookups, 5 % inserts, 5 % deletions"),
    (
        99,
        "lookups-99",
        "99 % lookups, 0.5 % inserts, 0.5 % deletions",
    ),
    (100, "lookups-100", "Lookups alone"),
];

/// What OTP's releases had, of our structures.
fn releases() -> Vec<Contender> {
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

fn run(run: &mut Run) -> Result<(), Failure> {
    let full = Size {
        range: 2_097_152,
        inserts: 1_048_576,
        operations: 16_777_216,
    };
    let part = |divisor: usize| Size {
        range: full.range / divisor as i64,
        inserts: full.inserts / divisor,
        operations: full.operations / divisor,
    };
    let size = run.scale.pick(part(512), part(64), full);
    run.setting("range", size.range);
    run.setting("inserts", size.inserts);
    run.setting("operations", size.operations);
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
    declare(run);
    if run.scale == super::Extent::Full {
        foresee(run, size, runs, contenders.len());
    }
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

fn declare(run: &mut Run) {
    let (threads, rate) = (
        ("threads", Scale::Log),
        ("millions of operations a second", Scale::Log),
    );
    let note = "all threads together, from the first one's beginning to the last one's end";
    run.plot(
        "insert",
        "First phase: inserts at random",
        threads,
        rate,
        note,
    );
    for (_, id, title) in MIXES {
        run.plot(
            id,
            format!("Second phase: {}", title.to_lowercase()),
            threads,
            rate,
            note,
        );
    }
    run.plot(
        "delete",
        "Third phase: deletions",
        threads,
        rate,
        "every key of the range, there or not",
    );
    let most = format!("{} threads; second phase", run.threads);
    let groups = ("reader groups", Scale::Log);
    run.plot(
        "reader-groups",
        "Reader groups of one lock",
        groups,
        rate,
        most.clone(),
    );
    run.plot(
        "bucket-locks",
        "Locks for parts of a hash table",
        ("locks", Scale::Log),
        rate,
        most.clone(),
    );
    let names = ("", Scale::Names);
    run.plot(
        "options",
        "read_concurrency and write_concurrency, as in R16B",
        names,
        rate,
        most,
    );
    run.plot(
        "stacks",
        "An ordered_set's stack: static or dynamic",
        threads,
        rate,
        "steps of next from key to key by all threads on one table; a static stack remembers where the last one stopped, for one thread at a time",
    );
    run.plot(
        "registry",
        "The way to a table: registry with and without locks",
        threads,
        rate,
        "random lookups, each of which first finds the table by its name, among 64 tables; handle: the table is at hand",
    );
    run.check(
        "after the first phase: as many rows as different keys were drawn, each with its value",
    );
    run.check("after the second phase: every row has the value of its key; as many rows are found as the table counts");
    run.check("after the third phase: as many rows were deleted as there were, and none is left");
}

/// The value of a key.
fn value(key: i64) -> i64 {
    key ^ 0x5555
}

/// Random numbers of a worker: the same for the same run, phase and number.
fn random(seed: u64, phase: u64, worker: &Worker<'_>) -> Random {
    Random::new(seed ^ phase << 32 ^ (worker.number as u64) << 40)
}

/// A worker's part of so many.
fn part_of(all: usize, threads: usize, number: usize) -> usize {
    all / threads + usize::from(number < all % threads)
}

fn key(random: &mut Random, range: i64) -> i64 {
    random.below(range as u64) as i64 + 1
}

/// All three phases of all contenders, by number of threads.
fn phases(
    run: &mut Run,
    size: Size,
    (runs, share): (usize, f64),
    contenders: &[Contender],
) -> Result<(), Failure> {
    let counts = run.thread_counts();
    let fits = |c: &&Contender| run.fits(&c.name.clone(), size.inserts as f64 * 300.0);
    let contenders: Vec<_> = contenders.iter().filter(fits).collect();
    let steps = (&contenders[..], counts.len() * MIXES.len());
    run.in_turns("phases", (runs, share), steps, |run, seed, contender| {
        let name = &contender.name;
        if run.is_over(&format!("phases, {name}"), (share, 0.0)) {
            return Ok(());
        }
        for &threads in &counts {
            for (mix, plot, _) in MIXES {
                run.progress.at(name);
                let [first, second, third] = three(contender, size, mix, threads, seed)?;
                let x = threads as f64;
                run.figure("insert", name, x, first, RATE);
                run.figure(plot, name, x, second, RATE);
                run.figure("delete", name, x, third, RATE);
                run.progress.step();
            }
        }
        Ok(())
    })
}

/// The rates of the three phases on a fresh table.
fn three(
    contender: &Contender,
    size: Size,
    lookups: u64,
    threads: usize,
    seed: u64,
) -> Result<[f64; 3], Failure> {
    let rows = contender.make(2, size.inserts)?;
    let name = &contender.name;
    let first = insert(&*rows, size, threads, seed)?;
    sound(&*rows, name, size, Some(distinct(size, threads, seed)))?;
    let second = mixed(&*rows, name, size, lookups, threads, seed)?;
    let left = sound(&*rows, name, size, None)?;
    let third = delete(&*rows, name, size, threads, left)?;
    Ok([first, second, third])
}

fn rate(operations: usize, seconds: f64) -> f64 {
    operations as f64 / seconds / 1e6
}

/// The first phase.
fn insert(rows: &dyn Rows, size: Size, threads: usize, seed: u64) -> Result<f64, Failure> {
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
) -> Result<f64, Failure> {
    let done = workers::work(threads, None, |worker| {
        let (mut hand, mut random) = (rows.hand(), random(seed, 2, &worker));
        for _ in 0..part_of(size.operations, threads, worker.number) {
            let key = key(&mut random, size.range);
            // Of 200: what are not lookups are halved.
            match random.below(200) {
                what if what < 2 * lookups => right(hand.lookup(key), key, name)?,
                what if what % 2 == 0 => hand.insert(key, value(key)),
                _ => drop(hand.delete(key)),
            }
        }
        Ok(())
    })?;
    Ok(rate(size.operations, done.seconds))
}

/// Whether a value that was found is its key's.
fn right(found: Option<i64>, key: i64, name: &str) -> Result<(), Failure> {
    match found {
        Some(other) if other != value(key) => {
            let what = format!("lookup of {key} gave {other}, not {}", value(key));
            Err(Failure::wrong(name, what))
        }
        _ => Ok(()),
    }
}

/// Looks at every key of the range; how many are there.
fn sound(
    rows: &dyn Rows,
    name: &str,
    size: Size,
    expected: Option<usize>,
) -> Result<usize, Failure> {
    let (mut hand, mut there) = (rows.hand(), 0);
    for key in 1..=size.range {
        let found = hand.lookup(key);
        right(found, key, name)?;
        there += usize::from(found.is_some());
    }
    let counted = rows.counted().unwrap_or(there);
    if counted != there || expected.is_some_and(|n| n != there) {
        let what = format!("{there} rows are found, {counted} counted, {expected:?} right");
        return Err(Failure::wrong(name, what));
    }
    Ok(there)
}

/// The third phase: each worker deletes every so-manieth key of the range.
fn delete(
    rows: &dyn Rows,
    name: &str,
    size: Size,
    threads: usize,
    left: usize,
) -> Result<f64, Failure> {
    let done = workers::work(threads, None, |worker| {
        let (mut hand, mut gone) = (rows.hand(), Some(0));
        for key in (1 + worker.number as i64..=size.range).step_by(threads) {
            let there = hand.delete(key);
            gone = gone.zip(there).map(|(n, there)| n + usize::from(there));
        }
        Ok(gone)
    })?;
    let gone: Option<usize> = done.results.into_iter().sum();
    if gone.is_some_and(|gone| gone != left) {
        return Err(Failure::wrong(
            name,
            format!("{gone:?} rows were deleted, not {left}"),
        ));
    }
    sound(rows, name, size, Some(0))?;
    Ok(rate(size.range as usize, done.seconds))
}

/// What a sweep measures: a series, the places on its axis with a table for each.
type Sweep = Vec<(crate::result::X, Contender)>;

fn doubled(most: i64) -> impl Iterator<Item = i64> {
    (0..).map(|i| 1 << i).take_while(move |&n| n <= most)
}

fn groups() -> Sweep {
    doubled(64)
        .flat_map(|n| {
            let groups = said("reader_groups", n);
            [
                Contender::set(
                    "set, one lock",
                    "linear_hash",
                    std::slice::from_ref(&groups),
                ),
                Contender::set(
                    "set, 64 locks",
                    "linear_hash",
                    &[said("locks", 64), groups.clone()],
                ),
                Contender::ordered("ordered_set", "avl", &[groups]),
            ]
            .map(|c| ((n as f64).into(), c))
        })
        .collect()
}

fn locks() -> Sweep {
    doubled(1024)
        .map(|n| {
            (
                (n as f64).into(),
                Contender::set("set", "linear_hash", &[said("locks", n)]),
            )
        })
        .collect()
}

fn options() -> Sweep {
    let hash = |locks, groups| [said("locks", locks), said("reader_groups", groups)];
    let tree = |groups| [said("reader_groups", groups)];
    let mut all = vec![(
        "Larder's default".into(),
        Contender::default_set().called("set"),
    )];
    for (name, locks, groups) in [
        ("none", 0, 1),
        ("read", 0, 64),
        ("write", 64, 1),
        ("read and write", 64, 64),
    ] {
        all.push((
            name.into(),
            Contender::set("set", "linear_hash", &hash(locks, groups)),
        ));
        // In R16B, write_concurrency does nothing to an ordered_set.
        all.push((
            name.into(),
            Contender::ordered("ordered_set", "avl", &tree(groups)),
        ));
    }
    let ordered = Contender::default_ordered().called("ordered_set");
    all.insert(1, ("Larder's default".into(), ordered));
    all
}

/// The second phase, with the most threads, by what is swept over.
fn sweep(
    run: &mut Run,
    size: Size,
    (runs, share): (usize, f64),
    plot: &'static str,
    sweep: Sweep,
) -> Result<(), Failure> {
    let sweep: Sweep = sweep
        .into_iter()
        .filter(|(_, c)| run.wants(&c.name))
        .collect();
    let threads = run.threads;
    run.in_turns(
        plot,
        (runs, share),
        (&sweep, 2),
        |run, seed, (x, contender)| {
            for (mix, _, _) in [MIXES[0], MIXES[1]] {
                let series = format!("{}, {mix} % lookups", contender.name);
                run.progress.at(&series);
                if run.is_over(&format!("{plot}, from {x} on"), (share, 0.0)) {
                    continue;
                }
                let rows = contender.make(2, size.inserts)?;
                insert(&*rows, size, threads, seed)?;
                let rate = mixed(&*rows, &series, size, mix, threads, seed)?;
                sound(&*rows, &series, size, None)?;
                run.figure(plot, &series, x.clone(), rate, RATE);
                run.progress.step();
            }
            Ok(())
        },
    )
}

/// Steps of next on an ordered_set whose stack is static or not, and on Larder's.
fn stacks(run: &mut Run, size: Size, (runs, share): (usize, f64)) -> Result<(), Failure> {
    let stack = |on| [("static_stack".to_owned(), larder::StructureValue::Flag(on))];
    let all = [
        Contender::ordered("static stack", "avl", &stack(true)),
        Contender::ordered("dynamic stack", "avl", &stack(false)),
        Contender::default_ordered(),
        Contender::ordered("skiplist", "skiplist", &[]),
    ];
    let all: Vec<_> = all.into_iter().filter(|c| run.wants(&c.name)).collect();
    let counts = run.thread_counts();
    let keys = size.inserts as i64;
    let steps = (&all[..], counts.len());
    run.in_turns("stacks", (runs, share), steps, |run, _, contender| {
        let name = &contender.name;
        let rows = contender.make(2, size.inserts)?;
        let mut hand = rows.hand();
        (1..=keys).for_each(|key| hand.insert(key, value(key)));
        for &threads in &counts {
            run.progress.at(name);
            let done = workers::work(threads, None, |_| walk(&*rows, keys, name))?;
            let rate = rate(keys as usize * threads, done.seconds);
            run.figure("stacks", name, threads as f64, rate, RATE);
            run.progress.step();
        }
        Ok(())
    })?;
    run.check("every walk by next met all keys in order");
    Ok(())
}

/// From the first key to the last.
fn walk(rows: &dyn Rows, keys: i64, name: &str) -> Result<(), Failure> {
    let mut hand = rows.hand();
    let (mut at, mut last) = (hand.first(), 0);
    while let Next::Key(key) = at {
        if key != last + 1 {
            return Err(Failure::wrong(name, format!("{key} came after {last}")));
        }
        last = key;
        at = hand.next(key);
    }
    match last == keys {
        true => Ok(()),
        false => Err(Failure::wrong(
            name,
            format!("a walk ended at {last}, not {keys}"),
        )),
    }
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
fn registries(run: &mut Run, size: Size, (runs, share): (usize, f64)) -> Result<(), Failure> {
    let world = larder::api::Larder::new();
    let created = |e: larder::Error| Failure::Impossible(e.to_string());
    let tables: Vec<_> = (0..TABLES)
        .map(|i| world.table(&format!("registry_{i}")).named().create())
        .collect::<Result<_, _>>()
        .map_err(created)?;
    let keys = 1_000;
    for table in &tables {
        for key in 0..keys {
            let row = larder_term::term!({(key), (value(key))});
            table.insert(&row).map_err(created)?;
        }
    }
    let named = tables.iter().map(|t| (t.engine_table().name(), t.clone()));
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
                run.figure("registry", name, threads as f64, rate, RATE);
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
    keys: i64,
    operations: usize,
    mut random: Random,
) -> Result<(), Failure> {
    let names: Vec<_> = tables.iter().map(|t| t.engine_table().name()).collect();
    let (mut bytes, who) = (Vec::new(), world.owner());
    for _ in 0..operations {
        let at = random.below(TABLES as u64) as usize;
        let key = random.below(keys as u64) as i64;
        bytes.clear();
        larder_term::Encoder::new(&mut bytes, larder_term::Mode::Inline).int(key);
        let there = |table: &larder::Table| table.member(who, &bytes);
        let met = match way {
            Access::Handle => there(tables[at].engine_table()),
            Access::Engine => world
                .engine()
                .with_named(names[at], |table| there(table))
                .unwrap_or(Ok(false)),
            Access::Locked(map) => there(map.read()[&names[at]].engine_table()),
        };
        if met != Ok(true) {
            return Err(Failure::wrong(
                "registry",
                format!("{key} was not found: {met:?}"),
            ));
        }
    }
    Ok(())
}

//! The study of 2013: threads on one table in three phases; releases of OTP; locks, reader groups,
//! stacks, registries.
//!
//! To add a contender: a line of [`CONTENDERS`]. To add a mix: an entry of [`MIXES`].

use super::contender::{listed, peers, Contender};
use super::run::{with_threads, Run, Turns};
use super::tables::{traverse, verify, BenchTable};
use super::Plan;
use crate::result::{ensure, Failure, Outcome, X};
use crate::time::workers::work;
use crate::workload::{random_of_worker, Load};
use fastrand::Rng;
use larder::api::{Larder, Table};
use larder::host::EngineTable;
use parking_lot::RwLock;
use std::collections::HashMap;

pub const STUDY: Plan = Plan {
    name: "ets-2013",
    title: "Throughput of one table by threads: releases, locks, reader groups, structures",
    source: "D. Klaftenegger, K. Sagonas, K. Winblad, \"On the Scalability of the Erlang Term Storage\", Erlang Workshop 2013",
    about: "Tables of the engine (larder::host::EngineTable), rows {K, V}, worked on by threads of a Rust program, one a core. The releases of OTP are built from \
            Larder's own structures and locks; peers are maps from u64 to u64 in their own crates (feature `peers`), without rows to encode.",
    quick_seconds: 55.0,
    full_hours: 9.5,
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

/// The second phase: percent of lookups. Inserts and deletions share the rest.
const MIXES: [u64; 3] = [90, 99, 100];

/// Larder's own, and the tables of OTP's releases. Releases differ in the length of chains, the
/// number of locks, and the groups of readers.
const CONTENDERS: &str = "
default set | set default
default ordered_set | ordered_set default
R11B set | set linear_hash(chain=6,locks=0,reader_groups=1)
R13B02 set | set linear_hash(chain=6,locks=16,reader_groups=1)
R14B set | set linear_hash(chain=6,locks=16,reader_groups=64)
R16B set | set linear_hash(chain=6,locks=64,reader_groups=64)
OTP 25 set | set linear_hash(chain=1,locks=auto,reader_groups=64)
R11B ordered_set | ordered_set avl(reader_groups=1)
R14B ordered_set | ordered_set avl(reader_groups=64)
OTP 22 ordered_set | ordered_set catree
";

/// The tables of the sweep over `{n}` reader groups.
const GROUPS: &str = "
set, one lock | set linear_hash(reader_groups={n})
set, 64 locks | set linear_hash(locks=64,reader_groups={n})
ordered_set | ordered_set avl(reader_groups={n})
";

/// The table of the sweep over `{n}` locks.
const LOCKS: &str = "set | set linear_hash(locks={n})";

/// The tables of the sweep over options, behind the names of their places. In R16B,
/// write_concurrency does nothing to an ordered_set.
const OPTIONS: &str = "
Larder's default: set | set default
Larder's default: ordered_set | ordered_set default
none: set | set linear_hash(locks=0,reader_groups=1)
none: ordered_set | ordered_set avl(reader_groups=1)
read: set | set linear_hash(locks=0,reader_groups=64)
read: ordered_set | ordered_set avl(reader_groups=64)
write: set | set linear_hash(locks=64,reader_groups=1)
write: ordered_set | ordered_set avl(reader_groups=1)
read and write: set | set linear_hash(locks=64,reader_groups=64)
read and write: ordered_set | ordered_set avl(reader_groups=64)
";

const STACKS: &str = "
static stack | ordered_set avl(static_stack=true)
dynamic stack | ordered_set avl(static_stack=false)
default ordered_set | ordered_set default
skiplist | ordered_set skiplist
";

/// The numbers of keys and operations. Keys are 1 to `range`.
#[derive(Clone, Copy)]
struct Size {
    range: u64,
    inserts: usize,
    operations: usize,
}

fn run(run: &mut Run) -> Outcome {
    // Smaller runs have the same proportions.
    let divisor = run.extent.pick(512, 64, 1);
    let size = Size {
        range: 2_097_152 / divisor as u64,
        inserts: 1_048_576 / divisor,
        operations: 16_777_216 / divisor,
    };
    run.setting("range", size.range);
    run.setting("inserts", size.inserts);
    run.setting("operations", size.operations);
    let threads = run.threads;
    if threads < 64 {
        let why = "the paper's machine had 64, this one has no more cores";
        run.skip(format!("more than {threads} threads: {why}"));
    }
    if !cfg!(feature = "peers") {
        let what = "the ecosystem's hash tables and skip list: built without the feature `peers`";
        run.skip(what.into());
    }
    let contenders = run.contenders(CONTENDERS, peers())?;
    let runs = run.runs(run.extent.pick(1, 3, 5));
    let note = "all threads together, from the first one's beginning to the last one's end";
    let values = [("phases", note), ("threads", &*threads.to_string())];
    run.plots(PLOTS, &values);
    phases(run, size, (runs, 0.6), &contenders)?;
    sweep(run, size, (runs, 0.7), "reader-groups", doubled(GROUPS, 64))?;
    sweep(run, size, (runs, 0.8), "bucket-locks", doubled(LOCKS, 1024))?;
    let options = OPTIONS.trim().lines();
    let options = options.filter_map(|line| line.split_once(": "));
    let options = options.map(|(x, line)| (x.into(), Contender::parse(line)));
    sweep(run, size, (runs, 0.85), "options", options.collect())?;
    stacks(run, size, (runs, 0.95))?;
    registries(run, size, (runs, 1.0))
}

/// The row of a number: keys from 1, as in the paper.
fn row(number: u64) -> (u64, u64) {
    let key = number + 1;
    (key, key ^ 0x5555)
}

/// The share of a worker. The first workers get one more each of what is left over.
fn share(all: usize, threads: usize, number: usize) -> usize {
    all / threads + usize::from(number < all % threads)
}

type RowLoad<'a> = Load<'a, fn(u64) -> (u64, u64)>;

/// A table and those who work on it. The seed decides the operations.
struct PhaseBench<'a> {
    name: &'a str,
    table: Box<dyn BenchTable>,
    size: Size,
    threads: usize,
    seed: u64,
}

impl<'a> PhaseBench<'a> {
    fn new(contender: &'a Contender, size: Size, threads: usize, seed: u64) -> Outcome<Self> {
        Ok(PhaseBench {
            name: &contender.name,
            table: contender.make(2, size.inserts)?,
            size,
            threads,
            seed,
        })
    }

    /// Inserts alone, or a percentage of lookups and as many inserts as deletions, so that the size
    /// of the table stays.
    fn load(&self, lookups: Option<u64>) -> RowLoad<'_> {
        let percent = lookups.map_or([100.0, 0.0, 0.0], |lookups| {
            let changes = (100 - lookups) as f64 / 2.0;
            [changes, changes, lookups as f64]
        });
        Load::new(self.name, percent, self.size.range, row)
    }

    /// Executes the first phase, or the second one with a percentage of lookups, by all threads
    /// together. Returns the rate.
    fn operate(&self, lookups: Option<u64>) -> Outcome<f64> {
        let (phase, operations) = match lookups {
            None => (1, self.size.inserts),
            Some(_) => (2, self.size.operations),
        };
        let load = self.load(lookups);
        let done = work(self.threads, None, |worker| {
            let mut random = worker.random(self.seed ^ phase << 32);
            let mine = share(operations, self.threads, worker.number) as u64;
            let (mut handle, more) = (self.table.handle(), |done| done < mine);
            load.work(&mut *handle, &mut random, more, |_, _, _| Ok(()))
        })?;
        Ok(done.rate(operations as u64))
    }

    /// The number of rows, of which so many are expected.
    fn verify(&self, expected: Option<usize>) -> Outcome<usize> {
        verify(&*self.table, &self.load(None), expected)
    }

    /// The number of different keys that the first phase inserts.
    fn distinct(&self) -> usize {
        let load = self.load(None);
        let mut seen = vec![false; load.range as usize];
        for number in 0..self.threads {
            let mut random = random_of_worker(self.seed ^ 1 << 32, number);
            for _ in 0..share(self.size.inserts, self.threads, number) {
                seen[load.draw(&mut random).1 as usize] = true;
            }
        }
        seen.iter().filter(|&&seen| seen).count()
    }

    /// The third phase: the threads delete all keys of the range, of which so many are present.
    fn delete(&self, rows: usize) -> Outcome<f64> {
        let range = self.size.range;
        let done = work(self.threads, None, |worker| {
            let mut handle = self.table.handle();
            let numbers = (worker.number as u64..range).step_by(self.threads);
            let deleted = numbers.filter(|&number| handle.remove(row(number).0));
            Ok(deleted.count())
        })?;
        let deleted: usize = done.results.iter().sum();
        ensure!(deleted == rows, self.name; "{deleted} rows were deleted, not {rows}");
        self.verify(Some(0))?;
        Ok(done.rate(range))
    }
}

/// Measures all contenders in all three phases, by number of threads.
fn phases(run: &mut Run, size: Size, turns: Turns, contenders: &[Contender]) -> Outcome {
    let fits = |c: &&Contender| run.fits(&c.name, size.inserts as f64 * 300.0);
    let contenders: Vec<_> = contenders.iter().filter(fits).collect();
    let all = with_threads(contenders, Contender::name, &run.thread_counts());
    run.in_turns("phases", turns, &all, |run, seed, &(contender, threads)| {
        let name = &contender.name;
        for lookups in MIXES {
            let bench = PhaseBench::new(contender, size, threads, seed)?;
            let inserts = bench.operate(None)?;
            bench.verify(Some(bench.distinct()))?;
            let mixed = bench.operate(Some(lookups))?;
            let deletes = bench.delete(bench.verify(None)?)?;
            run.figure("insert", name, threads, inserts);
            run.figure(&format!("lookups-{lookups}"), name, threads, mixed);
            run.figure("delete", name, threads, deletes);
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

/// The places of a sweep, and the table at each.
type Sweep = Vec<(X, Contender)>;

/// The tables with `{n}` as 1, 2, 4 and so on up to the most.
fn doubled(lines: &str, most: u32) -> Sweep {
    let tables = |n: u32| {
        let tables = listed(&lines.replace("{n}", &n.to_string())).into_iter();
        tables.map(move |table| (f64::from(n).into(), table))
    };
    let counts = (0..).map(|i| 1 << i).take_while(|n| *n <= most);
    counts.flat_map(tables).collect()
}

/// Measures the second phase with the most threads, by what is swept over.
fn sweep(run: &mut Run, size: Size, turns: Turns, plot: &str, mut sweep: Sweep) -> Outcome {
    let threads = run.threads;
    sweep.retain(|(_, contender)| run.filter.accepts(&contender.name));
    let named = |(x, c): (X, Contender)| (format!("{}, {x}", c.name), (x, c));
    let all: Vec<_> = sweep.into_iter().map(named).collect();
    run.in_turns(plot, turns, &all, |run, seed, (x, contender)| {
        for lookups in [90, 99] {
            let name = &*format!("{}, {lookups} % lookups", contender.name);
            let bench = PhaseBench::new(contender, size, threads, seed)?;
            bench.operate(None)?;
            let rate = bench.operate(Some(lookups))?;
            bench.verify(None)?;
            run.figure(plot, name, x.clone(), rate);
        }
        Ok(())
    })
}

/// Measures steps of next on an ordered_set with a static and a dynamic stack, and on Larder's.
fn stacks(run: &mut Run, size: Size, turns: Turns) -> Outcome {
    let (contenders, counts) = (run.accepted(STACKS), run.thread_counts());
    let keys = size.inserts;
    let walk = |contender: &Contender, threads: usize, _| {
        let (name, table) = (&*contender.name, contender.make(2, keys)?);
        let load = Load::new(name, [100.0, 0.0, 0.0], keys as u64, row);
        load.fill(&mut *table.handle(), 0..keys as u64);
        let done = work(threads, None, |_| {
            let in_order = traverse(table.handle().table(), keys as u64);
            let in_order = in_order.map_err(|what| Failure::wrong(name, what))?;
            ensure!(in_order, name; "a walk met its keys out of order");
            Ok(())
        })?;
        Ok(done.rate((keys * threads) as u64))
    };
    run.by_threads("stacks", turns, &contenders, &counts, walk)?;
    run.check("every walk by next met all keys in order");
    Ok(())
}

/// Looks a key up in the table of a number, which it first finds.
type FindKey<'f> = &'f (dyn Fn(usize, &[u8]) -> Result<bool, larder::Error> + Sync);

/// Measures random lookups that first find their table.
fn registries(run: &mut Run, size: Size, turns: Turns) -> Outcome {
    const TABLES: usize = 64;
    const KEYS: u64 = 1_000;
    let larder = Larder::new();
    let owner = larder.owner();
    let create = |i| -> Result<Table, larder::Error> {
        let table = larder.table(&format!("registry_{i}")).named().create()?;
        for number in 0..KEYS {
            let row = larder_term::term!({(number as i64), (row(number).1 as i64)});
            table.insert(&row)?;
        }
        Ok(table)
    };
    let tables: Result<Vec<_>, _> = (0..TABLES).map(create).collect();
    let tables = tables.map_err(|e| Failure::Impossible(e.to_string()))?;
    let names: Vec<_> = tables.iter().map(|t| t.engine_table().name()).collect();
    let map = names.iter().copied().zip(tables.iter().cloned());
    let map: RwLock<HashMap<_, _>> = RwLock::new(map.collect());
    let member = |table: &EngineTable, key: &[u8]| table.member(owner, key);
    let direct: FindKey<'_> = &|at, key| member(tables[at].engine_table(), key);
    let registry: FindKey<'_> = &|at, key| {
        let found = larder
            .engine()
            .with_named(names[at], |table| member(table, key));
        found.unwrap_or(Ok(false))
    };
    let locked: FindKey<'_> = &|at, key| member(map.read()[&names[at]].engine_table(), key);
    let ways = [
        ("handle", direct),
        ("Larder's registry, without locks", registry),
        ("a map under one readers-writer lock", locked),
    ];
    // One random lookup. The key is encoded each time, as a host does it.
    let lookup = |find: FindKey<'_>, random: &mut Rng, bytes: &mut Vec<u8>| -> Outcome {
        let at = random.u64(..TABLES as u64) as usize;
        let key = random.u64(..KEYS) as i64;
        bytes.clear();
        larder_term::Encoder::new(bytes, larder_term::Mode::Inline).int(key);
        let found = find(at, bytes);
        ensure!(found == Ok(true), "registry"; "{key} was not found: {found:?}");
        Ok(())
    };
    let name = |(name, _): (&str, FindKey<'_>)| name.to_owned();
    let all = with_threads(ways, name, &run.thread_counts());
    run.in_turns("registry", turns, &all, |run, seed, (way, threads)| {
        let done = work(*threads, None, |worker| {
            let (mut random, mut bytes) = (worker.random(seed ^ 3 << 32), Vec::new());
            let operations = share(size.operations, *threads, worker.number);
            (0..operations).try_for_each(|_| lookup(way.1, &mut random, &mut bytes))
        })?;
        let rate = done.rate(size.operations as u64);
        run.figure("registry", way.0, *threads, rate);
        Ok(())
    })?;
    run.check("every lookup behind a registry found its row");
    Ok(())
}

//! The study of 2003: seven workloads on rows {K, 1}, from 700 keys to 54 million.
//!
//! To add a workload: a line of [`WORKLOADS`], and its work in [`execute`].

use super::contender::Contender;
use super::run::{Run, Turns};
use super::tables::traverse;
use super::{Extent, Plan};
use crate::maps::peers::Handle;
use crate::result::{Failure, Outcome};
use crate::table::grouped;
use crate::time::timed;
use crate::workload::shuffled;
use std::collections::HashMap;
use std::fmt::Debug;

pub const STUDY: Plan = Plan {
    name: "ets-2003",
    title: "Seven workloads on one thread, from 700 keys to 54 million, by structure",
    source: "S. L. Fritchie, \"A Study of Erlang ETS Table Implementations and Performance\", Erlang Workshop 2003",
    about: "Tables of the engine (larder::host::EngineTable), called from Rust with a row encoded and decoded in each call. The paper's names are kept: set is linear \
            hashing under one lock (6 entries a bucket), ordered_set an AVL tree, btree a B-tree of degree 4, judysl and judyesl Judy arrays over strings, judyeh one over hashes. Figures of the paper stand beside.",
    quick_seconds: 55.0,
    full_hours: 9.6,
    run,
};

/// The structure that the paper compares the others with.
const SET: &str = "set";

const PAPER: &str = "Fritchie 2003";

/// The plots of a workload: its times, and its times relative to those of `set`.
const PAIR: &str = "
{id} | {title} | keys, log | us for 1,000 keys, log | us, less | {note}; one thread, rows {K, 1}
relative-{id} | {title}, relative to set | keys, log | % of the time of set, linear | %, less | {note}; one thread, rows {K, 1}; the ratio of each run
";

const PLOTS: &str = "
memory | Memory of a table | keys, log | MB, log | MB, less | what the table says it holds, after sequential insert; the paper's are of a whole 32-bit virtual machine
bytes | Memory of a row | keys, log | bytes, linear | bytes, less | the same, for each row
headlines | The paper's headline ratios, and ours | , names | % of the time of set, linear | %, less | ours are of the largest size measured here, which is said in the name; the paper's of its own
";

/// The paper's headline ratios: structure, workload, keys, percent of the time of `set`.
const HEADLINES: [(&str, &str, f64, f64); 7] = [
    ("judyeh", "lookup-random", 54e6, 74.7),
    ("judyeh", "insert-random", 54e6, 60.5),
    ("judyeh", "insert-sequential", 21e6, 45.7),
    ("judysl", "lookup-sequential", 54e6, 32.3),
    ("judyesl", "lookup-sequential", 21e6, 31.2),
    ("ordered_set", "traversal", 54e6, 43.5),
    ("judyeh", "traversal", 54e6, 151.0),
];

/// The paper's memory at 21 million keys, in MB.
const MEMORY: [(&str, f64); 6] = [
    ("btree", 1055.0),
    ("judyeh", 1036.0),
    ("judysl", 1033.0),
    ("judyesl", 1324.0),
    ("ordered_set", 1129.0),
    (SET, 980.0),
];

/// The paper's tables, and Larder's own.
const CONTENDERS: &str = "
set | set linear_hash(chain=6)
ordered_set | ordered_set avl
btree | ordered_set btree
default set | set default
default ordered_set | ordered_set default
btree m=32 | ordered_set btree(m=32)
judysl | ordered_set judysl
judyesl | ordered_set judyesl
judyeh | set judyl_hash
";

/// Numbers of keys.
pub const SIZES: [usize; 8] = [
    700, 7_000, 70_000, 700_000, 7_000_000, 14_000_000, 21_000_000, 54_000_000,
];

/// Sizes up to this are measured in any case. A quick run measures larger ones while there is time.
const ALWAYS: usize = 70_000;

/// The error describes a wrong answer.
type Answer = Result<(), String>;

/// The id and the title of each workload's plot, and its note. A table goes through all workloads,
/// and is empty after the deletion.
const WORKLOADS: &str = "
insert-sequential | Sequential insert | keys 1, 2, 3 and so on, into an empty table
lookup-sequential | Sequential lookup | every key once, in order
lookup-random | Random lookup | every key once, in random order
traversal | Forward traversal | first and next, key by key, without reading rows
counter-random | Random counter update | update_counter of every row once, in random order
deletion | Deletion | every key, in order, until the table is empty
insert-random | Random insert | every key once, in random order, into an empty table
";

/// The texts of [`WORKLOADS`]: id, title, note.
pub fn workloads() -> Vec<[&'static str; 3]> {
    let parts = |line: &'static str| line.split(" | ").collect::<Vec<_>>().try_into();
    let lines = WORKLOADS.trim().lines().map(parts);
    lines.map(|parts| parts.expect("three parts")).collect()
}

/// Executes a workload, and checks its answers.
fn execute(workload: &str, table: &mut dyn Handle, keys: &KeyOrders) -> Answer {
    let ascending = 1..=keys.n;
    match workload {
        "insert-sequential" => each(ascending, (), |key| table.insert(key, 1)),
        "lookup-sequential" => each(ascending, Some(1), |key| table.get(key)),
        "lookup-random" => each(keys.shuffled(1), Some(1), |key| table.get(key)),
        "traversal" => traverse(table.table(), keys.n).map(drop),
        "counter-random" => each(keys.shuffled(1), Some(2), |key| table.table().add(key)),
        "deletion" => each(ascending, true, |key| table.remove(key)),
        _ => each(keys.shuffled(0), (), |key| table.insert(key, 1)),
    }
}

/// Calls `work` with each key. Each time, it has to give what is right.
fn each<T: PartialEq + Debug>(
    mut keys: impl Iterator<Item = u64>,
    right: T,
    mut work: impl FnMut(u64) -> T,
) -> Answer {
    keys.try_for_each(|key| match work(key) {
        found if found == right => Ok(()),
        found => Err(format!("{key} gave {found:?}, not {right:?}")),
    })
}

/// The keys from 1 to `n`, and two random orders of them. Rows often lie in memory in the order of
/// insertion, so lookups have another order than inserts.
pub struct KeyOrders {
    n: u64,
    orders: [Vec<u32>; 2],
}

impl KeyOrders {
    fn new(n: usize, seed: u64) -> KeyOrders {
        let orders = [shuffled(n, seed), shuffled(n, seed + 1)];
        KeyOrders {
            n: n as u64,
            orders,
        }
    }

    fn shuffled(&self, order: usize) -> impl Iterator<Item = u64> + '_ {
        self.orders[order].iter().map(|&i| u64::from(i) + 1)
    }
}

/// The plot of a workload's times relative to those of `set`.
fn relative(id: &str) -> String {
    format!("relative-{id}")
}

fn run(run: &mut Run) -> Outcome {
    let mut sizes = run.options.sizes.clone();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
        let larger = sizes.split_off(run.extent.pick(2, 4, SIZES.len()));
        let larger: Vec<_> = larger.into_iter().map(grouped).collect();
        if !larger.is_empty() {
            let larger = larger.join("; ");
            run.skip(format!("{larger} keys: asked for by --full alone"));
        }
    }
    let contenders = run.contenders(CONTENDERS, Vec::new())?;
    let runs = run.runs(run.extent.pick(2, 3, 3));
    declare(run);
    let mut costs = Costs::default();
    if run.extent == Extent::Full {
        // A small size tells beforehand which sizes there is no memory for.
        let keys = KeyOrders::new(7_000, run.options.seed);
        for contender in &contenders {
            let name = &contender.name;
            costs.insert(name.clone(), course(contender, &keys, 1)?);
            for &n in &sizes {
                let (_, bytes) = estimate(&costs, name, n);
                run.fits(&format!("{} keys, {name}", grouped(n)), bytes);
            }
        }
    }
    for (i, &n) in sizes.iter().enumerate() {
        // With a limit of the user, small sizes are measured in full, and large ones as far as
        // there is time.
        let part = (i + 1) as f64 / sizes.len() as f64;
        let share = if run.clock.strict { 1.0 } else { part };
        // Large sizes are measured once.
        let runs = if n > 7_000_000 { 1 } else { runs };
        size(run, n, (runs, share), &contenders, &mut costs)?;
    }
    headlines(run, &sizes);
    Ok(())
}

fn declare(run: &mut Run) {
    for [id, title, note] in workloads() {
        run.plots(PAIR, &[("id", id), ("title", title), ("note", note)]);
    }
    run.plots(PLOTS, &[]);
    for (name, workload, n, percent) in HEADLINES {
        run.published(&relative(workload), name, n, percent, PAPER);
    }
    for (name, megabytes) in MEMORY {
        run.published("memory", name, 21e6, megabytes, PAPER);
    }
    run.check("every lookup gave the row's value, every counter its sum, every deletion a row");
    run.check("each traversal met every key once, by their number and their sum");
    run.check("tables had as many rows as there were keys after inserts, none after deletion");
}

/// A table's way through all workloads.
struct Course {
    keys: f64,
    bytes_per_row: f64,
    /// Seconds of each workload.
    times: Vec<f64>,
}

/// The course of each contender with the most keys so far.
type Costs = HashMap<String, Course>;

/// The estimated seconds and bytes of a contender with `n` keys.
fn estimate(costs: &Costs, name: &str, n: usize) -> (f64, f64) {
    // A table needs more memory while it grows, and allocators keep some.
    const PEAK: f64 = 1.7;
    let n = n as f64;
    let Some(course) = costs.get(name) else {
        return (0.0, n * 150.0 * PEAK);
    };
    // A row takes about half as long again for each factor of ten.
    let tens = (n / course.keys).log10().max(0.0);
    let seconds = n * course.times.iter().sum::<f64>() / course.keys * (1.0 + 0.5 * tens);
    (seconds, n * course.bytes_per_row * PEAK)
}

/// Measures all contenders with `n` keys, as far as there is time and memory.
fn size(
    run: &mut Run,
    n: usize,
    turns: Turns,
    contenders: &[Contender],
    costs: &mut Costs,
) -> Outcome {
    let part = format!("{} keys", grouped(n));
    if run.is_over(&part, 1.0, 0.0) {
        return Ok(());
    }
    let keys = KeyOrders::new(n, run.options.seed);
    // A clock can't measure microseconds, so small tables go through the workloads often.
    let rounds = (run.extent.pick(1_000, 50_000, 400_000) / n).max(1);
    let mut measured: Vec<(u64, &str, Vec<f64>)> = Vec::new();
    let all: Vec<_> = contenders.iter().map(|c| (&*c.name, c)).collect();
    run.in_turns(&part, turns, &all, |run, turn, contender| {
        let name = &*contender.name;
        let what = format!("{part}, {name}");
        let (seconds, bytes) = estimate(costs, name, n);
        let always = run.extent == Extent::Full || name == SET || n <= ALWAYS;
        if !always && !run.clock.has_time(1.0, seconds) {
            // A later turn may leave out what the first one has measured.
            if run.median("bytes", name, n).is_none() {
                run.skip(format!("{what}: no time in a quick study"));
            }
        } else if !run.is_over(&what, 1.0, seconds) && run.fits(&what, bytes) {
            let course = course(contender, &keys, rounds)?;
            for ([id, ..], time) in workloads().into_iter().zip(&course.times) {
                run.figure(id, name, n, time * 1e6 / (n as f64 / 1e3));
            }
            // Memory doesn't vary, so it is recorded once.
            if run.median("bytes", name, n).is_none() {
                run.figure("memory", name, n, course.bytes_per_row * n as f64 / 1e6);
                run.figure("bytes", name, n, course.bytes_per_row);
            }
            measured.push((turn, name, course.times.clone()));
            costs.insert(contender.name.clone(), course);
            if n >= 7_000_000 {
                run.save()?;
            }
        }
        Ok(())
    })?;
    // Each turn is compared with `set` in the same turn.
    for (turn, name, times) in &measured {
        let mut sets = measured.iter().filter(|(_, name, _)| *name == SET);
        if let Some((.., set)) = sets.find(|(of, ..)| of == turn) {
            for (i, [id, ..]) in workloads().into_iter().enumerate() {
                run.figure(&relative(id), name, n, 100.0 * times[i] / set[i]);
            }
        }
    }
    Ok(())
}

/// Sends a table through all workloads. The times are those of a round.
fn course(contender: &Contender, keys: &KeyOrders, rounds: usize) -> Outcome<Course> {
    let wrong = |what: String| Failure::wrong(&contender.name, what);
    let table = contender.make(2, keys.n as usize)?;
    let mut handle = table.handle();
    let workloads = workloads();
    let (mut times, mut bytes_per_row) = (vec![0.0; workloads.len()], 0.0);
    for _ in 0..rounds {
        for ([id, title, _], time) in workloads.iter().zip(&mut times) {
            let (answer, seconds) = timed(|| execute(id, &mut *handle, keys));
            *time += seconds / rounds as f64;
            let rows = match *id {
                "deletion" => 0,
                _ => keys.n as usize,
            };
            let counted = table.len().filter(|n| *n != rows);
            let counted = counted.map_or(Ok(()), |n| Err(format!("{n} rows, not {rows}")));
            let answer = answer.and(counted);
            answer.map_err(|what| wrong(format!("{title}: {what}")))?;
            if *id == "insert-sequential" {
                bytes_per_row = table.memory().unwrap_or(0) as f64 / keys.n as f64;
            }
        }
        // Each round begins with an empty table.
        let emptied = execute("deletion", &mut *handle, keys);
        emptied.map_err(|what| wrong(format!("emptying: {what}")))?;
    }
    let keys = keys.n as f64;
    Ok(Course {
        keys,
        bytes_per_row,
        times,
    })
}

/// The paper's headline ratios beside those of the largest size here.
fn headlines(run: &mut Run, sizes: &[usize]) {
    for (name, workload, n, percent) in HEADLINES {
        let of = workloads().into_iter().find(|[id, ..]| *id == workload);
        let title = of.map_or("", |[_, title, _]| title).to_lowercase();
        let x = format!("{name}, {title}");
        let paper = format!("2003, {:.0} M keys", n / 1e6);
        run.published("headlines", &paper, &*x, percent, PAPER);
        let here = |&n: &usize| Some((n, run.median(&relative(workload), name, n)?));
        if let Some((n, y)) = sizes.iter().rev().find_map(here) {
            let series = format!("here, {} keys", grouped(n));
            run.figure("headlines", &series, &*x, y);
        }
    }
}

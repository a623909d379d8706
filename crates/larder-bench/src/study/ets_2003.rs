//! The study of 2003: seven workloads on rows {K, 1}, from 700 keys to 54 million.
//!
//! To add a workload, add an entry to [`WORKLOADS`]: a title, and a function that does the work and
//! checks the answers.

mod plan;
mod workloads;

pub(super) use plan::SIZES;
pub(super) use workloads::WORKLOADS;

use super::contender::Contender;
use super::rows::Rows;
use super::run::Run;
use super::{Extent, Plan};
use crate::result::{Failure, Outcome};
use crate::table::grouped;
use crate::time::timed;
use plan::{fitting, sizes, turns_of, Taken, ROUNDS_FULL};
use workloads::{deletions, Answer, KeyOrders};

/// The study.
pub const STUDY: Plan = Plan {
    name: "ets-2003",
    title: "Seven workloads on one thread, from 700 keys to 54 million, by structure",
    source: "S. L. Fritchie, \"A Study of Erlang ETS Table Implementations and Performance\", Erlang Workshop 2003",
    about: "Tables of the engine (larder::host::Table), called from Rust with a row encoded and decoded in each call. The paper's names are kept: set is linear \
            hashing under one lock (6 entries a bucket), ordered_set an AVL tree, btree a B-tree of degree 4, judysl and judyesl Judy arrays over strings, judyeh one over hashes. Figures of the paper stand beside.",
    quick_seconds: 55.0,
    run,
};

/// What the paper is compared by.
const SET: &str = "set";

const PAPER: &str = "Fritchie 2003";

/// The plot of a workload's times by those of `set`.
fn relative(id: &str) -> String {
    format!("relative-{id}")
}

/// The plots of one workload.
const PAIR: &str = "
{id} | {title} | keys, log | us for 1,000 keys, log | us, less | {note}; one thread, rows {K, 1}
relative-{id} | {title}, relative to set | keys, log | % of the time of set, linear | %, less | {note}; one thread, rows {K, 1}; the ratio of each run
";

/// The other plots.
const PLOTS: &str = "
memory | Memory of a table | keys, log | MB, log | MB, less | what the table says it holds, after sequential insert; the paper's are of a whole 32-bit virtual machine
bytes | Memory of a row | keys, log | bytes, linear | bytes, less | the same, for each row
headlines | The paper's headline ratios, and ours | , names | % of the time of set, linear | %, less | ours are of the largest size measured here, which is said in the name; the paper's of its own
";

/// The paper's headline ratios: structure, workload, keys, percent of the time of set.
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
set | set linear_hash chain=6
ordered_set | ordered_set avl
btree | ordered_set btree
default set | set default
default ordered_set | ordered_set default
btree m=32 | ordered_set btree m=32
judysl | ordered_set judysl
judyesl | ordered_set judyesl
judyeh | set judyl_hash
";

/// Sends each through the course once with few keys, and says what the large sizes will take, and
/// which have no memory.
fn foresee(
    run: &mut Run,
    runs: usize,
    contenders: &[Contender],
    sizes: &[usize],
    taken: &mut Taken,
) -> Outcome {
    // A small size, which takes no time, says what a row takes in memory and time.
    let few = KeyOrders::new(7_000, run.options.seed);
    for contender in contenders {
        course(contender, &few, 1, taken)?;
    }
    let mut seconds = 0.0;
    for &n in sizes {
        // Assume that times grow linearly. Structures out of the processor's cache take longer.
        for contender in contenders {
            let name = &contender.name;
            let bytes = n as f64 * taken.bytes(name) * Taken::PEAK;
            if run.fits(&format!("{} keys, {name}", grouped(n)), bytes) {
                let small = ROUNDS_FULL as f64 * taken.seconds(name, 1);
                seconds += turns_of(runs, n) as f64 * taken.seconds(name, n).max(small);
            }
        }
    }
    run.announce(seconds);
    Ok(())
}

fn run(run: &mut Run) -> Outcome {
    let sizes = sizes(run);
    let contenders = run.contenders(CONTENDERS, Vec::new())?;
    let runs = run.runs(run.scale.pick(2, 3, 3));
    declare(run);
    // What each structure took at smaller sizes decides whether there is time for a larger one.
    let mut taken = Taken::default();
    if run.scale == Extent::Full {
        foresee(run, runs, &contenders, &sizes, &mut taken)?;
    }
    for (i, &n) in sizes.iter().enumerate() {
        // With an end that was asked for, small sizes are done in full and large ones as far as it
        // goes.
        let share = match run.clock.is_strict() {
            true => 1.0,
            false => (i + 1) as f64 / sizes.len() as f64,
        };
        size(run, (n, share), runs, &contenders, &mut taken)?;
    }
    headlines(run, &sizes);
    Ok(())
}

fn declare(run: &mut Run) {
    for w in &WORKLOADS {
        let [id, title, note] = w.texts();
        run.plots(PAIR, &[("id", id), ("title", title), ("note", note)]);
    }
    run.plots(PLOTS, &[]);
    // Figures from the paper, next to which ours are drawn.
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

/// All contenders at one size, in turns; `share` is that of the study's time that may be over
/// afterwards.
fn size(
    run: &mut Run,
    (n, share): (usize, f64),
    runs: usize,
    contenders: &[Contender],
    taken: &mut Taken,
) -> Outcome {
    let part = format!("{} keys", grouped(n));
    if run.is_over(&part, (1.0, 0.0)) {
        return Ok(());
    }
    let fit = fitting(run, taken, n, contenders);
    if fit.is_empty() {
        return Ok(());
    }
    let data = KeyOrders::new(n, run.options.seed);
    // Small tables go through the course often: a clock is no good at microseconds.
    let rounds = (run.scale.pick(1_000, 50_000, ROUNDS_FULL) / n).max(1);
    let fit: Vec<_> = fit.into_iter().map(|one| (one.name(), one)).collect();
    let mut measured: Vec<(u64, &str, Times)> = Vec::new();
    // More turns for small sizes, whose times vary more.
    run.in_turns(&part, (turns_of(runs, n), share), &fit, |run, turn, one| {
        let name = &one.name;
        let seconds = taken.seconds(name, n);
        if run.is_over(&format!("{part}, {name}"), (1.0, seconds)) {
            return Ok(());
        }
        let times = course(one, &data, rounds, taken)?;
        for (w, time) in WORKLOADS.iter().zip(times) {
            run.figure(w.id(), name, n, time * 1e6 / (n as f64 / 1e3));
        }
        // What its table takes doesn't vary, so it is noted once.
        if run.median("bytes", name, n).is_none() {
            let bytes = taken.bytes(name);
            run.figure("memory", name, n, bytes * n as f64 / 1e6);
            run.figure("bytes", name, n, bytes);
        }
        measured.push((turn, name, times));
        if n >= 7_000_000 {
            run.save()?;
        }
        Ok(())
    })?;
    // The times of each turn by those of `set` in the same turn.
    for (turn, name, times) in &measured {
        let set = measured
            .iter()
            .find(|(of, who, _)| of == turn && *who == SET);
        for (i, w) in WORKLOADS.iter().enumerate() {
            if let Some((.., set)) = set {
                let percent = 100.0 * times[i] / set[i];
                run.figure(&relative(w.id()), name, n, percent);
            }
        }
    }
    Ok(())
}

/// Seconds of each workload, of all rounds together.
type Times = [f64; WORKLOADS.len()];

fn course(
    contender: &Contender,
    data: &KeyOrders,
    rounds: usize,
    taken: &mut Taken,
) -> Outcome<Times> {
    let wrong = |what: String| Failure::wrong(&contender.name, what);
    // Room for the rows of two elements, as in the paper.
    let rows = contender.make(2, data.n as usize)?;
    let mut hand = rows.hand();
    let (mut times, mut bytes) = ([0.0; WORKLOADS.len()], 0.0);
    for _ in 0..rounds {
        // The workloads build on one another, from an empty table to an empty table.
        for (workload, time) in WORKLOADS.iter().zip(&mut times) {
            let (answer, seconds) = timed(|| workload.work(&mut *hand, data));
            *time += seconds;
            // After the deletions there are no rows. After all others there is one for each key.
            let right = if workload.id() == "deletion" {
                0
            } else {
                data.n
            };
            answer
                .and_then(|()| counted(&*rows, right as usize))
                .map_err(|what| wrong(format!("{}: {what}", workload.title())))?;
            // Memory after all rows were inserted, and before anything else was done.
            if workload.id() == "insert-sequential" {
                bytes = rows.memory().unwrap_or(0) as f64 / data.n as f64;
            }
        }
        // Each round begins with an empty table.
        deletions(&mut *hand, 1..=data.n).map_err(|what| wrong(format!("emptying: {what}")))?;
    }
    // Times of one round, and of one row for the plan.
    times.iter_mut().for_each(|time| *time /= rounds as f64);
    let a_row = times.iter().sum::<f64>() / data.n as f64;
    taken.note(&contender.name, bytes, a_row, data.n as usize);
    Ok(times)
}

fn counted(rows: &dyn Rows, right: usize) -> Answer {
    match rows.counted() {
        Some(n) if n != right => Err(format!("{n} rows, not {right}")),
        _ => Ok(()),
    }
}

/// The paper's ratios and ours, at the largest size that we have of each, on one plot.
fn headlines(run: &mut Run, sizes: &[usize]) {
    for (name, workload, n, percent) in HEADLINES {
        let Some(w) = WORKLOADS.iter().find(|w| w.id() == workload) else {
            continue;
        };
        let x = format!("{name}, {}", w.title().to_lowercase());
        let at = format!("2003, {:.0} M keys", n / 1e6);
        run.published("headlines", &at, &*x, percent, PAPER);
        // The largest size that was measured here, since the paper's is often larger.
        let ours = |&n: &usize| Some((n, run.median(&relative(w.id()), name, n)?));
        if let Some((n, y)) = sizes.iter().rev().find_map(ours) {
            let series = format!("here, {} keys", grouped(n));
            run.figure("headlines", &series, &*x, y);
        }
    }
}

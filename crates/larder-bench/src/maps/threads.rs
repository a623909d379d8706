//! Throughput of several threads on one map.
//!
//! The map begins with half of a range of keys. Then each thread draws keys and operations at
//! random until the time is over. There are as many inserts as removals, so about half of the keys
//! stay present.

use crate::maps::peers::{each_shared, Filter, Handle, Shared};
use crate::result::{ensure, Outcome};
use crate::table::{Bound::AtLeast, Report};
use crate::time::timed;
use crate::time::workers::work;
use crate::workload::{random, random_key, until, value_of, Entry, Load};
use std::time::Duration;

#[derive(clap::Args)]
pub struct ThreadsOptions {
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Entries at the beginning; the range has twice as many.
    #[arg(long, default_value_t = 524_288)]
    entries: u64,
    /// Milliseconds of a run.
    #[arg(long, default_value_t = 1000)]
    ms: u64,
    /// How often each structure is measured, in turns; the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// Percentages. The name has lookups, inserts, removals; the array inserts, removals, lookups.
type Shares = (&'static str, [f64; 3]);

const MIXES: [Shares; 3] = [
    ("100/0/0", [0.0, 0.0, 100.0]),
    ("90/5/5", [5.0, 5.0, 90.0]),
    ("50/25/25", [25.0, 25.0, 50.0]),
];

fn entry(number: u64) -> (u64, u64) {
    let key = random_key(number);
    (key, value_of(key))
}

/// Measures a map once with each number of threads.
fn measure<S: Shared>(
    report: &mut Report,
    (mix, percent): Shares,
    options: &ThreadsOptions,
) -> Outcome {
    let load = Load::new(S::NAME, percent, 2 * options.entries, entry);
    for &threads in &options.threads {
        let map = S::empty();
        // No handle lives while others work: the pin of a thread that rests keeps the epoch, so
        // that nothing is freed.
        load.fill(&mut map.handle(), 0..options.entries);
        let rate = rate(&map, threads, &load, options.ms)?;
        verify(&mut map.handle(), &load, options.entries)?;
        let order = if S::ORDERED { "ordered" } else { "hash" };
        let column = format!("{threads} threads");
        report.add(&[order, mix, S::NAME], &column, 2, rate / 1e6);
    }
    Ok(())
}

/// Operations a second: the sum over all threads, each by its own clock.
fn rate<S: Shared>(map: &S, threads: usize, load: &Load<'_, impl Entry>, ms: u64) -> Outcome<f64> {
    let done = work(threads, Some(Duration::from_millis(ms)), |worker| {
        let (mut handle, mut random) = (map.handle(), random(worker.number as u64 + 1));
        let more = until(|| worker.is_over());
        let (done, seconds) = timed(|| load.work(&mut handle, &mut random, more, |_, _, _| Ok(())));
        Ok(done? as f64 / seconds)
    })?;
    Ok(done.results.iter().sum())
}

/// Checks the entries that a run has left. Lookups alone have changed nothing.
fn verify(handle: &mut impl Handle, load: &Load<'_, impl Entry>, entries: u64) -> Outcome {
    let first = load.count(handle, 0..entries)?;
    let second = load.count(handle, entries..load.range)?;
    let kept = load.changes() || (first, second) == (entries, 0);
    ensure!(kept, load.name; "lookups changed something");
    // With changes, about half of the range is present: a random walk doesn't go far from it.
    let (found, least) = (first + second, entries / 2);
    let near = (least..=3 * least).contains(&found);
    ensure!(near, load.name; "{found} entries of {entries} are left");
    Ok(())
}

/// Measures all maps in turns, and compares the defaults with their targets. A wrong answer is an
/// error.
pub fn run(options: &ThreadsOptions, filter: &Filter) -> Outcome<Report> {
    let entries = options.entries;
    let title = format!("Threads on one structure of {entries} entries; millions of operations a second (medians); lookups/inserts/removals");
    let mut report = Report::new(title, &["order", "mix", "structure"]);
    let maps = each_shared!(filter, S => measure::<S> as fn(&mut _, _, &_) -> _);
    for mix in MIXES {
        report.in_turns(mix.0, options.runs, &maps, |report, (_, measure)| {
            measure(report, mix, options)
        })?;
    }
    for (mix, _) in MIXES {
        judge(&mut report, mix);
    }
    Ok(report)
}

/// Compares the defaults, with two threads, with one thread and with the peers.
fn judge(report: &mut Report, mix: &str) {
    let (one, two) = ("1 threads", "2 threads");
    let peers = "dashmap, papaya, scc::TreeIndex, crossbeam SkipMap, concurrent-map";
    for (order, ours) in [("hash", "larder hash"), ("ordered", "larder ordered")] {
        let key = [order, mix, ours];
        if let (Some(one), Some(two)) = (report.median(&key, one), report.median(&key, two)) {
            report.note(format!(
                "{mix}: {ours}, 2 threads: {:.2} times one",
                two / one
            ));
        }
        for theirs in peers.split(", ") {
            report.compare(&[order, mix], [ours, theirs], two, AtLeast(1.0));
        }
    }
}

//! Throughput of several threads on one structure.
//!
//! Half of a range of keys is inserted at first. Then every thread draws a key and an operation at
//! random, until the time is over. There are as many inserts as removals, so about half of the keys
//! stay inserted.

use crate::maps::peers::{each_shared, Hand, Only, Shared};
use crate::result::{ensure, Outcome};
use crate::table::{verdict, Report};
use crate::time::progress::Progress;
use crate::time::timed;
use crate::time::workers::work;
use crate::workload::{random_key, until, value_of, Load, Mix, Random};
use std::time::Duration;

/// What is measured.
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

/// Lookups, inserts and removals, in percent.
const MIXES: [(&str, [f64; 3]); 3] = [
    ("100/0/0", [0.0, 0.0, 100.0]),
    ("90/5/5", [5.0, 5.0, 90.0]),
    ("50/25/25", [25.0, 25.0, 50.0]),
];

/// One run of a structure, with each number of threads.
fn measure<S: Shared>(
    report: &mut Report,
    (name, percent): (&str, [f64; 3]),
    options: &ThreadsOptions,
) -> Outcome {
    let load = Load {
        name: S::NAME,
        mix: Mix::new(percent),
        range: 2 * options.entries,
        entry: |number| {
            let key = random_key(number);
            (key, value_of(key))
        },
    };
    for &threads in &options.threads {
        // A new structure for each number of threads, half full.
        let shared = S::empty();
        let mut hand = shared.hand();
        for (key, value) in (0..options.entries).map(load.entry) {
            hand.insert(key, value);
        }
        let rate = rate(&shared, threads, &load, options.ms)?;
        // Check afterwards what the threads left behind.
        sound(&mut hand, &load, options.entries)?;
        let column = format!("{threads} threads");
        let order = if S::ORDERED { "ordered" } else { "hash" };
        report.add(&[order, name, S::NAME], &column, 2, rate / 1e6);
    }
    Ok(())
}

/// Operations a second of all threads together, each by its own clock.
fn rate<S: Shared, E: Fn(u64) -> (u64, u64) + Sync>(
    shared: &S,
    threads: usize,
    load: &Load<'_, E>,
    ms: u64,
) -> Outcome<f64> {
    let done = work(threads, Some(Duration::from_millis(ms)), |worker| {
        // Each thread has random numbers of its own, the same in each run.
        let (mut hand, mut random) = (shared.hand(), Random::new(worker.number as u64 + 1));
        let more = until(|| worker.is_over());
        let nothing = |_: &mut _, _, _: &mut _| Ok(());
        let (done, seconds) = timed(|| load.work(&mut hand, &mut random, more, nothing));
        Ok(done? as f64 / seconds)
    })?;
    Ok(done.results.iter().sum())
}

/// After a run, what is there is of the range and has its value; with lookups alone, it is all that
/// was there.
fn sound<E: Fn(u64) -> (u64, u64)>(
    hand: &mut impl Hand,
    load: &Load<'_, E>,
    entries: u64,
) -> Outcome {
    // The first half of the range was there at the beginning.
    let first = load.there(hand, 0..entries)?;
    let second = load.there(hand, entries..load.range)?;
    let kept = load.mix.changes() || (first, second) == (entries, 0);
    ensure!(kept, load.name, "lookups changed something");
    // With changes, about half are there: random walks don't go far from it.
    let (found, least) = (first + second, entries / 2);
    ensure!(
        (least..=3 * least).contains(&found),
        load.name,
        "{found} entries of {entries} are left"
    );
    Ok(())
}

/// Measures, and compares with the targets.
///
/// # Errors
/// A wrong answer, with the name of the structure.
pub fn run(options: &ThreadsOptions, only: &Only) -> Outcome<Report> {
    let title = format!(
        "Threads on one structure of {} entries; millions of operations a second (medians); lookups/inserts/removals",
        options.entries
    );
    let mut wanted = 0;
    each_shared!(only, _S => wanted += 1);
    let mut report = Report::new(title, &["order", "mix", "structure"]);
    let progress = Progress::new(false);
    for mix in MIXES {
        progress.part(mix.0, options.runs * wanted);
        for _ in 0..options.runs {
            each_shared!(only, S => {
                progress.measure(S::NAME, || measure::<S>(&mut report, mix, options))?;
            });
        }
    }
    progress.end();
    for (mix, _) in MIXES {
        judge(&mut report, mix, options);
    }
    Ok(report)
}

/// What the defaults have to show with two threads.
fn judge(report: &mut Report, mix: &str, options: &ThreadsOptions) {
    let (one, two) = ("1 threads", "2 threads");
    let peers = "dashmap, papaya, scc::TreeIndex, crossbeam SkipMap, concurrent-map";
    for (order, ours) in [("hash", "larder hash"), ("ordered", "larder ordered")] {
        let key = [order, mix, ours];
        // What a second thread adds to one thread, which depends on the machine, too.
        let rates = report.median(&key, two).zip(report.median(&key, one));
        report.judge(rates.map(|(rate, alone)| rate / alone), |times| {
            format!("{mix}: {ours}, 2 threads: {times:.2} times one")
        });
        for theirs in peers.split(", ") {
            let ratio = report.ratio(&key, &[order, mix, theirs], two);
            report.judge(ratio, |ratio| {
                let (entries, met) = (options.entries, verdict(ratio > 1.0));
                format!("{mix}, 2 threads of {entries}: {ours} / {theirs}: {ratio:.2} ({met})")
            });
        }
    }
}

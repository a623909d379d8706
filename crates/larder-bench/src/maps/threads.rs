//! Throughput of several threads on one structure.
//!
//! Half of a range of keys is inserted at first. Then every thread draws a key and an operation at
//! random, until the time is over. There are as many inserts as removals, so about half of the keys
//! stay inserted.

use crate::maps::peers::{each_shared, Hand, Only, Shared};
use crate::table::{announce, verdict, Report};
use crate::time::timed;
use crate::time::workers::{work, Worker};
use crate::workload::{random_key, value_of, Drawn, Mix, Random};
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
fn measure<S: Shared>(report: &mut Report, name: &str, mix: Mix, options: &ThreadsOptions) {
    for &threads in &options.threads {
        // A new structure for each number of threads, half full.
        let shared = S::empty();
        let mut hand = shared.hand();
        for key in (0..options.entries).map(random_key) {
            hand.insert(key, value_of(key));
        }
        let rate = rate(&shared, threads, mix, options);
        // Check afterwards what the threads left behind.
        sound(&mut hand, S::NAME, mix, options.entries);
        let column = format!("{threads} threads");
        let order = if S::ORDERED { "ordered" } else { "hash" };
        report.add(&[order, name, S::NAME], &column, 2, rate / 1e6);
    }
}

/// Operations a second of all threads together, each by its own clock.
fn rate<S: Shared>(shared: &S, threads: usize, mix: Mix, options: &ThreadsOptions) -> f64 {
    let time = Duration::from_millis(options.ms);
    let done = work(threads, Some(time), |worker| {
        let mut hand = shared.hand();
        let (done, seconds) = timed(|| draw(&mut hand, mix, 2 * options.entries, &worker));
        Ok(done as f64 / seconds)
    });
    done.expect("no worker fails").results.iter().sum()
}

/// Works until it is told to stop; how many operations that were.
fn draw(hand: &mut impl Hand, mix: Mix, range: u64, worker: &Worker<'_>) -> u64 {
    // Each thread has random numbers of its own, the same in each run.
    let (mut random, mut done) = (Random::new(worker.number as u64 + 1), 0);
    while !worker.is_over() {
        // Many operations between two looks at the flag.
        for _ in 0..64 {
            let (drawn, number) = mix.draw(&mut random, range);
            let key = random_key(number);
            match drawn {
                Drawn::Insert => hand.insert(key, value_of(key)),
                Drawn::Remove => _ = hand.remove(key),
                _ => {
                    let value = hand.get(key);
                    // Each value follows from its key, so a wrong answer is recognised whatever
                    // other threads do.
                    assert!(value.is_none_or(|value| value == value_of(key)), "{WRONG}");
                }
            }
        }
        done += 64;
    }
    done
}

const WRONG: &str = "a wrong answer";

/// After a run, what is there is of the range and has its value; with lookups alone, it is all that
/// was there.
fn sound(hand: &mut impl Hand, name: &str, mix: Mix, entries: u64) {
    let mut found = 0;
    // All keys of the range, half of which were there at the beginning.
    for i in 0..2 * entries {
        let key = random_key(i);
        let value = hand.get(key);
        assert!(
            value.is_none_or(|value| value == value_of(key)),
            "{name}: {WRONG}"
        );
        // With lookups alone, exactly the first half is there.
        let kept = mix.changes() || value.is_some() == (i < entries);
        assert!(kept, "{name}: lookups changed something");
        found += u64::from(value.is_some());
    }
    // With changes, about half are there: random walks don't go far from it.
    let least = entries / 2;
    assert!(
        (least..=3 * least).contains(&found),
        "{name}: {found} entries of {entries} are left"
    );
}

/// Measures, and compares with the targets.
pub fn run(options: &ThreadsOptions, only: &Only) -> Report {
    let title = format!(
        "Threads on one structure of {} entries; millions of operations a second (medians); lookups/inserts/removals",
        options.entries
    );
    // Count the structures, to announce how long it takes.
    let mut wanted = 0;
    each_shared!(only, _S => wanted += 1);
    let each = options.ms as f64 / 1e3 + 2.5e-6 * options.entries as f64;
    let measured = MIXES.len() * options.runs * options.threads.len() * wanted;
    announce("threads", each * measured as f64);
    let mut report = Report::new(title, &["order", "mix", "structure"]);
    for (name, percent) in MIXES {
        for run in 1..=options.runs {
            eprintln!("  {name}, run {run} of {}", options.runs);
            let mix = Mix::new(percent);
            each_shared!(only, S => measure::<S>(&mut report, name, mix, options));
        }
    }
    for (mix, _) in MIXES {
        judge(&mut report, mix, options);
    }
    report
}

/// What the defaults have to show with two threads.
fn judge(report: &mut Report, mix: &str, options: &ThreadsOptions) {
    let (one, two) = ("1 threads", "2 threads");
    let peers = "dashmap, papaya, scc::TreeIndex, crossbeam SkipMap, concurrent-map";
    for (order, ours) in [("hash", "larder hash"), ("ordered", "larder ordered")] {
        let key = [order, mix, ours];
        let alone = report.median(&key, one);
        // What a second thread adds to one thread, which depends on the machine, too.
        if let Some((rate, alone)) = report.median(&key, two).zip(alone) {
            let times = rate / alone;
            report.note(format!("{mix}: {ours}, 2 threads: {times:.2} times one"));
        }
        for theirs in peers.split(", ") {
            if let Some(ratio) = report.ratio(&key, &[order, mix, theirs], two) {
                report.note(format!(
                    "{mix}, 2 threads of {}: {ours} / {theirs}: {ratio:.2} ({})",
                    options.entries,
                    verdict(ratio > 1.0)
                ));
            }
        }
    }
}

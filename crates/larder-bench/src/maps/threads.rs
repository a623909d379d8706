//! Throughput of several threads on one structure.
//!
//! Half of a range of keys is there at the beginning; every thread draws a key and an operation at
//! random until the time is over. Inserts and removals are equally many, so that the half stays
//! one.

use crate::maps::peers::{each_shared, Count, OnShared, Only, Operations, Shared};
use crate::table::{announce, Report};
use crate::time::timed;
use crate::time::workers::{work, Worker};
use crate::workload::{random_key, value_of, Mix, Random};
use std::time::Duration;

/// What is measured.
#[derive(clap::Args)]
pub struct Options {
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

struct ThreadsBench<'a> {
    options: &'a Options,
    report: &'a mut Report,
    mix: Mix,
}

impl OnShared for ThreadsBench<'_> {
    fn on<S: Shared>(&mut self) {
        for &threads in &self.options.threads {
            let shared = S::empty();
            let mut hand = shared.hand();
            for key in (0..self.options.entries).map(random_key) {
                hand.insert(key, value_of(key));
            }
            let rate = rate(&shared, threads, self.mix, self.options);
            sound(&mut hand, S::NAME, self.mix, self.options.entries);
            let column = format!("{threads} threads");
            let order = if S::ORDERED { "ordered" } else { "hash" };
            self.report
                .add(&[order, &self.mix.name(), S::NAME], &column, 2, rate / 1e6);
        }
    }
}

/// Operations a second of all threads together, each by its own clock.
fn rate<S: Shared>(shared: &S, threads: usize, mix: Mix, options: &Options) -> f64 {
    let time = Duration::from_millis(options.ms);
    let done = work(threads, Some(time), |worker| {
        let mut hand = shared.hand();
        let (done, seconds) = timed(|| draw(&mut hand, mix, 2 * options.entries, &worker));
        Ok(done as f64 / seconds)
    });
    done.expect("no worker fails").results.iter().sum()
}

/// Works until it is told to stop; how many operations that were.
fn draw(hand: &mut impl Operations, mix: Mix, range: u64, worker: &Worker<'_>) -> u64 {
    let (mut random, mut done) = (Random::new(worker.number as u64 + 1), 0);
    while !worker.is_over() {
        for _ in 0..64 {
            let key = random_key(random.below(range));
            let what = random.below(100);
            if what < mix.insert {
                hand.insert(key, value_of(key));
            } else if what < mix.insert + mix.remove {
                hand.remove(key);
            } else if let Some(value) = hand.get(key) {
                assert_eq!(value, value_of(key), "a wrong answer");
            }
        }
        done += 64;
    }
    done
}

/// After a run, what is there is of the range and has its value; with lookups alone, it is all that
/// was there.
fn sound(hand: &mut impl Operations, name: &str, mix: Mix, entries: u64) {
    let mut found = 0;
    for i in 0..2 * entries {
        let key = random_key(i);
        let value = hand.get(key);
        assert!(
            value.is_none_or(|value| value == value_of(key)),
            "{name}: a wrong answer"
        );
        assert!(
            mix.insert > 0 || value.is_some() == (i < entries),
            "{name}: lookups changed something"
        );
        found += u64::from(value.is_some());
    }
    let least = entries / 2;
    assert!(
        (least..=3 * least).contains(&found),
        "{name}: {found} entries of {entries} are left"
    );
}

/// Measures, and compares with the targets.
pub fn run(options: &Options, only: &Only) -> Report {
    let title = format!(
        "Threads on one structure of {} entries; millions of operations a second (medians); lookups/inserts/removals",
        options.entries
    );
    let mut wanted = Count(0);
    each_shared(only, &mut wanted);
    let each = options.ms as f64 / 1e3 + 2.5e-6 * options.entries as f64;
    let measured = Mix::ALL.len() * options.runs * options.threads.len() * wanted.0;
    announce("threads", each * measured as f64);
    let mut report = Report::new(title, &["order", "mix", "structure"]);
    for mix in Mix::ALL {
        for run in 1..=options.runs {
            eprintln!("  {}, run {run} of {}", mix.name(), options.runs);
            let mut bench = ThreadsBench {
                options,
                report: &mut report,
                mix,
            };
            each_shared(only, &mut bench);
        }
    }
    for mix in Mix::ALL {
        judge(&mut report, mix, options);
    }
    report
}

/// What the defaults have to show with two threads.
fn judge(report: &mut Report, mix: Mix, options: &Options) {
    let mix = mix.name();
    let (one, two) = ("1 threads", "2 threads");
    for (order, ours) in [("hash", "larder hash"), ("ordered", "larder ordered")] {
        let Some(rate) = report.median(&[order, &mix, ours], two) else {
            continue;
        };
        if let Some(alone) = report.median(&[order, &mix, ours], one) {
            report.note(format!(
                "{mix}: {ours}, 2 threads: {:.2} times one",
                rate / alone
            ));
        }
        for theirs in [
            "dashmap",
            "papaya",
            "scc::TreeIndex",
            "crossbeam SkipMap",
            "concurrent-map",
        ] {
            if let Some(other) = report.median(&[order, &mix, theirs], two) {
                let verdict = if rate > other { "ok" } else { "-" };
                report.note(format!(
                    "{mix}, 2 threads of {}: {ours} / {theirs}: {:.2} ({verdict})",
                    options.entries,
                    rate / other
                ));
            }
        }
    }
}

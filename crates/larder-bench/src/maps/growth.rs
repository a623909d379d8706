//! How evenly a structure grows: every insert into an empty structure is timed.
//!
//! The thread is bound to one processor. Pauses that the system causes now and then are not the
//! structure's. So the slowest insert is determined in several runs, and the smallest of these
//! times counts. For comparison, one column has the times of a loop that only reads the clock.

use crate::maps::peers::{each_map, map_names, Map, Only};
use crate::stats::{ends, median};
use crate::table::{verdict, Report};
use crate::time::progress::Progress;
use crate::time::{memory, timed_parts};
use crate::workload::{random_key, value_of};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What is measured.
#[derive(clap::Args)]
pub struct GrowthOptions {
    /// Entries in the end.
    #[arg(long, default_value_t = 16_000_000)]
    entries: u64,
    /// 100,000,000 entries in the end.
    #[arg(long, conflicts_with = "entries")]
    full: bool,
    /// How often each structure grows, in turns.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Inserts that are taken together where it is not about single ones.
    #[arg(long, default_value_t = 1_000_000)]
    part: u64,
}

impl GrowthOptions {
    fn entries(&self) -> u64 {
        if self.full {
            100_000_000
        } else {
            self.entries
        }
    }
}

/// Bytes an entry that a map may take while it grows: one that doubles has its old half beside.
const BYTES: f64 = 100.0;

/// What one run, or the best of several, has shown.
#[derive(Clone, Copy)]
struct Grown {
    /// Nanoseconds of the median part.
    median_part: f64,
    /// Nanoseconds of the slowest part.
    slowest_part: f64,
    /// Nanoseconds of the slowest insert.
    slowest: f64,
    /// Nanoseconds of an insert, on average.
    mean: f64,
}

impl Grown {
    fn best(self, other: Grown) -> Grown {
        Grown {
            median_part: self.median_part.min(other.median_part),
            slowest_part: self.slowest_part.min(other.slowest_part),
            slowest: self.slowest.min(other.slowest),
            mean: self.mean.min(other.mean),
        }
    }
}

/// Calls `work` for every entry, and times each call by the clock's readings between them.
fn watched(options: &GrowthOptions, mut work: impl FnMut(u64)) -> Grown {
    let begin = Instant::now();
    let (mut before, mut slowest) = (begin, Duration::ZERO);
    let entries = options.entries();
    let parts = timed_parts((entries, options.part), None, |i| {
        work(i);
        // One reading for each entry: the time since the last reading is that of the work.
        let now = Instant::now();
        slowest = slowest.max(now - before);
        before = now;
    });
    Grown {
        median_part: median(&parts) * 1e9,
        slowest_part: ends(&parts)[1] * 1e9,
        slowest: slowest.as_nanos() as f64,
        mean: (before - begin).as_nanos() as f64 / entries as f64,
    }
}

type Results = Vec<(&'static str, Grown)>;

/// What is measured for comparison.
const CLOCK: &str = "(the clock alone)";

/// Lets a map grow, if there is memory for it.
fn grow<M: Map>(options: &GrowthOptions, progress: &Progress) -> Option<Grown> {
    // A structure that doesn't fit would be measured while the machine swaps.
    if let Some(lack) = memory::lack(options.entries() as f64 * BYTES) {
        progress.say(&format!("skipped: {}: {lack}", M::NAME));
        return None;
    }
    let mut map = M::empty();
    let grown = watched(options, |i| {
        let key = random_key(i);
        map.insert(key, value_of(key));
    });
    // A sample of the keys, after the time was taken.
    for i in (0..options.entries()).step_by(997) {
        let key = random_key(i);
        assert_eq!(map.get(key), Some(value_of(key)), "{} lost a key", M::NAME);
    }
    Some(grown)
}

fn keep(results: &mut Results, name: &'static str, grown: Grown) {
    match results.iter_mut().find(|(of, _)| *of == name) {
        Some((_, best)) => *best = best.best(grown),
        None => results.push((name, grown)),
    }
}

/// Measures, and compares with the targets. A thread of its own is bound to a core, as a program's
/// would be; the process isn't.
///
/// # Panics
/// If a structure loses a key.
pub fn run(options: &GrowthOptions, only: &Only) -> Report {
    let measured = std::thread::scope(|scope| scope.spawn(|| run_bound(options, only)).join());
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn run_bound(options: &GrowthOptions, only: &Only) -> Report {
    // On one processor, so that a migration isn't taken for a slow insert.
    let bound = core_affinity::get_core_ids()
        .and_then(|cores| cores.last().copied())
        .is_some_and(core_affinity::set_for_current);
    let (mut results, progress) = (Vec::new(), Progress::new(false));
    progress.part("growth", options.runs * (1 + map_names(only).len()));
    for _ in 0..options.runs {
        // The clock alone, in each run: what is slow here is the machine.
        progress.measure(CLOCK, || {
            let idle = watched(options, |i| {
                black_box(random_key(i));
            });
            keep(&mut results, CLOCK, idle);
        });
        each_map!(only, M => progress.measure(M::NAME, || {
            if let Some(grown) = grow::<M>(options, &progress) {
                keep(&mut results, M::NAME, grown);
            }
        }));
    }
    progress.end();
    let mut report = Report::new(
        format!(
            "From nothing to {} random entries; parts of {}; the best of {} runs",
            options.entries(),
            options.part,
            options.runs
        ),
        &["structure"],
    );
    if !bound {
        report.note("This thread could not be bound to one processor.".into());
    }
    // The clock alone is no answer.
    if results.len() > 1 {
        results
            .iter()
            .for_each(|(name, grown)| tell(&mut report, name, grown));
    }
    report
}

fn tell(report: &mut Report, name: &str, grown: &Grown) {
    // The slowest part by the median one says how even the growth is, on any machine.
    let ratio = grown.slowest_part / grown.median_part;
    report.add(&[name], "ns an insert", 1, grown.mean);
    report.add(&[name], "median part (ms)", 2, grown.median_part / 1e6);
    report.add(&[name], "slowest part (ms)", 2, grown.slowest_part / 1e6);
    report.add(&[name], "ratio", 2, ratio);
    report.add(&[name], "slowest insert (us)", 1, grown.slowest / 1e3);
    if name.starts_with("larder") {
        // The targets: no part is much slower than the median, and no insert stops the caller for a
        // millisecond.
        let (even, short) = (verdict(ratio <= 1.5), verdict(grown.slowest < 1e6));
        let slowest = grown.slowest / 1e3;
        report.note(format!(
            "{name}: slowest part / median {ratio:.2} (at most 1.5: {even}); \
             slowest insert {slowest:.1} us (under 1000: {short})"
        ));
    }
}

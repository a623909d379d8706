//! How evenly a map grows: every insert into an empty map is timed.
//!
//! The thread is bound to one core. Pauses that the system causes now and then aren't the map's, so
//! the least figure of several runs counts. One line has the figures of a loop that only reads the
//! clock.

use crate::maps::peers::{each_map, Filter, Map};
use crate::result::Outcome;
use crate::stats::{ends, median};
use crate::table::{Bound::AtMost, Report};
use crate::time::{memory, timed_parts};
use crate::workload::{random_key, value_of};
use std::hint::black_box;
use std::time::{Duration, Instant};

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
        [self.entries, 100_000_000][usize::from(self.full)]
    }
}

/// Bytes per entry of a growing map. A map that doubles keeps its old half for a moment.
const BYTES: f64 = 100.0;

/// Nanoseconds of the median part, the slowest part, the slowest insert, and the mean insert.
type Grown = [f64; 4];

/// Calls `work` for every entry. Each call takes from one reading of the clock to the next.
fn watched(options: &GrowthOptions, mut work: impl FnMut(u64)) -> Grown {
    let begin = Instant::now();
    let (mut before, mut slowest) = (begin, Duration::ZERO);
    let parts = timed_parts(options.entries(), options.part, None, |i| {
        work(i);
        let now = Instant::now();
        slowest = slowest.max(now - before);
        before = now;
    });
    let mean = (before - begin).as_nanos() as f64 / options.entries() as f64;
    let slowest = slowest.as_nanos() as f64;
    [median(&parts) * 1e9, ends(&parts)[1] * 1e9, slowest, mean]
}

/// Lets a map grow.
fn grow<M: Map>(options: &GrowthOptions) -> Grown {
    let mut map = M::empty();
    let grown = watched(options, |i| {
        let key = random_key(i);
        map.insert(key, value_of(key));
    });
    // A sample of the keys must be there.
    for key in (0..options.entries()).step_by(997).map(random_key) {
        assert_eq!(map.get(key), Some(value_of(key)), "{} lost a key", M::NAME);
    }
    grown
}

/// The line of the clock alone: what is slow there is the machine.
const CLOCK: &str = "(the clock alone)";

/// Measures all maps in turns, in a thread that is bound to a core. Panics if a map loses a key.
pub fn run(options: &GrowthOptions, filter: &Filter) -> Outcome<Report> {
    let measured = std::thread::scope(|scope| scope.spawn(|| run_bound(options, filter)).join());
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn run_bound(options: &GrowthOptions, filter: &Filter) -> Outcome<Report> {
    // A migration to another core would look like a slow insert.
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let bound = cores.last().copied();
    let bound = bound.is_some_and(core_affinity::set_for_current);
    let (entries, part, runs) = (options.entries(), options.part, options.runs);
    let title = format!(
        "From nothing to {entries} random entries; parts of {part}; the best of {runs} runs"
    );
    let mut report = Report::new(title, &["structure"]);
    if !bound {
        report.note("This thread could not be bound to one processor.".into());
    }
    let clock = |options: &_| watched(options, |i| _ = black_box(random_key(i)));
    let mut all = vec![(CLOCK, clock as fn(&_) -> _)];
    all.extend(each_map!(filter, M => grow::<M> as fn(&_) -> _));
    // The figures of all runs, of the maps and the clock.
    let mut results: Vec<(&str, Grown)> = Vec::new();
    report.in_turns("growth", runs, &all, |report, (name, grow)| {
        match memory::lack(entries as f64 * BYTES) {
            Some(lack) if *name != CLOCK => {
                report.progress.say(&format!("skipped: {name}: {lack}"))
            }
            _ => results.push((name, grow(options))),
        }
        Ok(())
    })?;
    // The figures of the clock alone are no result.
    if results.iter().any(|(name, _)| *name != CLOCK) {
        for (name, _) in all {
            let runs = results.iter().filter(|(of, _)| *of == name);
            let best = runs.map(|(_, grown)| *grown);
            let best = best.reduce(|a, b| std::array::from_fn(|i| a[i].min(b[i])));
            if let Some(best) = best {
                add(&mut report, name, best);
            }
        }
    }
    Ok(report)
}

/// Adds the figures of a map. Larder's are compared with their targets.
fn add(report: &mut Report, name: &str, [median_part, slowest_part, slowest, mean]: Grown) {
    // The ratio says how even the growth is, on any machine.
    let (ratio, us) = (slowest_part / median_part, slowest / 1e3);
    report.add(&[name], "ns an insert", 1, mean);
    report.add(&[name], "median part (ms)", 2, median_part / 1e6);
    report.add(&[name], "slowest part (ms)", 2, slowest_part / 1e6);
    report.add(&[name], "ratio", 2, ratio);
    report.add(&[name], "slowest insert (us)", 1, us);
    if name.starts_with("larder") {
        let (even, short) = (AtMost(1.5).judge(ratio), AtMost(1000.0).judge(us));
        report.note(format!(
            "{name}: slowest part / median {ratio:.2} ({even}); slowest insert {us:.1} us ({short})"
        ));
    }
}

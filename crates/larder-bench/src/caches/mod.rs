//! Tables that evict, used as caches, compared with the caches of other crates.
//!
//! A program looks up the keys of a trace ([`traces`]), one after the other. A missing key is put
//! into the cache. The hit ratio is measured with one thread in the second half of the trace, when
//! the cache is full. The speed is that of all threads together. Each begins at another place of
//! the trace.

mod churn;
mod contenders;

use crate::maps::peers::Only;
use crate::result::{ensure, Failure, Outcome};
use crate::table::{verdict, Report};
use crate::time::progress::Progress;
use crate::time::timed;
use crate::time::workers::work;
use crate::workload::{value_of, Random};
use contenders::{Cache, Lru, TinyLfu};
use larder_testing::traces::{self, Trace};

/// What is measured.
#[derive(clap::Args)]
pub struct CacheOptions {
    /// Entries that a cache holds.
    #[arg(long, default_value_t = 10_000)]
    capacity: usize,
    /// Keys that are asked for: how many times the capacity.
    #[arg(long, default_value_t = 20)]
    keys: usize,
    /// Requests of a trace.
    #[arg(long, default_value_t = 1_000_000)]
    requests: usize,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// How often each is measured, in turns; the median counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Instead of all this, fill a table with a limit of its bytes for so many minutes, and say how
    /// much memory it took.
    #[arg(long)]
    churn_minutes: Option<f64>,
}

/// The column of ratios of hits.
const HITS: &str = "hits in 100";

/// One request; whether it was a hit.
fn ask<C: Cache>(cache: &C, key: u64) -> Outcome<bool> {
    match cache.get(key) {
        Some(value) if value == value_of(key) => Ok(true),
        Some(_) => Err(Failure::wrong(C::NAME, format!("{key} has another value"))),
        None => {
            cache.put(key, value_of(key));
            Ok(false)
        }
    }
}

/// Hits of a hundred requests of the second half of a trace.
fn hits<C: Cache>(trace: &Trace, capacity: usize) -> Outcome<f64> {
    let cache = C::of(capacity);
    // The first half fills the cache, and isn't counted.
    let (first, second) = trace.keys.split_at(trace.keys.len() / 2);
    for &key in first {
        ask(&cache, key)?;
    }
    let mut hits = 0;
    for &key in second {
        hits += usize::from(ask(&cache, key)?);
    }
    // All caches say that this is the most.
    let held = cache.len();
    ensure!(
        held <= capacity + capacity / 100,
        C::NAME,
        "{held} entries of at most {capacity}"
    );
    Ok(100.0 * hits as f64 / second.len() as f64)
}

/// Millions of requests a second of a number of threads, on a cache that the trace has filled.
fn rate<C: Cache>(trace: &Trace, threads: usize, capacity: usize) -> Outcome<f64> {
    let cache = C::of(capacity);
    // Fill the cache before the clock starts, so that evictions are part of what is measured.
    for &key in &trace.keys[..trace.keys.len() / 4] {
        ask(&cache, key)?;
    }
    let done = work(threads, None, |worker| {
        // Each thread goes through the whole trace, from a place of its own, so that threads don't
        // follow one another.
        let from = trace.keys.len() / threads * worker.number;
        let (after, before) = (&trace.keys[from..], &trace.keys[..from]);
        let (asked, seconds) = timed(|| {
            let mut keys = after.iter().chain(before);
            keys.try_for_each(|&key| ask(&cache, key).map(drop))
        });
        // Rates of threads that ran at the same time can be added.
        asked.map(|()| trace.keys.len() as f64 / seconds)
    })?;
    Ok(done.results.iter().sum::<f64>() / 1e6)
}

struct CacheBench<'a> {
    options: &'a CacheOptions,
    only: &'a Only,
    report: Report,
    progress: Progress,
}

impl CacheBench<'_> {
    fn on<C: Cache>(&mut self, trace: &Trace) -> Outcome {
        if !self.only.has(C::NAME) {
            return Ok(());
        }
        self.progress.at(C::NAME);
        let (key, capacity) = ([trace.name, C::NAME], self.options.capacity);
        // Some caches draw lots or work in the background: their ratios differ from run to run.
        self.report.add(&key, HITS, 1, hits::<C>(trace, capacity)?);
        for &threads in &self.options.threads {
            let rate = rate::<C>(trace, threads, capacity)?;
            self.report.add(&key, &rate_of(threads), 2, rate);
        }
        Ok(())
    }

    fn all(&mut self, trace: &Trace) -> Outcome {
        self.on::<TinyLfu>(trace)?;
        self.on::<Lru>(trace)?;
        #[cfg(feature = "peers")]
        {
            self.on::<moka::sync::Cache<u64, u64>>(trace)?;
            self.on::<quick_cache::sync::Cache<u64, u64>>(trace)?;
        }
        Ok(())
    }
}

/// The column of rates.
fn rate_of(threads: usize) -> String {
    match threads {
        1 => "1 thread".into(),
        n => format!("{n} threads"),
    }
}

/// Measures, and compares with the targets.
///
/// # Errors
/// A wrong answer, or a limit that did not hold, with the name of the cache.
pub fn run(options: &CacheOptions, only: &Only) -> Outcome<Report> {
    if let Some(minutes) = options.churn_minutes {
        return churn::run(minutes);
    }
    let (capacity, keys) = (options.capacity, options.keys * options.capacity);
    let title = format!(
        "Caches of {capacity} entries, {keys} keys: hits, and millions of requests a second, all \
         threads together (medians)"
    );
    // All caches get the same traces, which depend on the seed alone.
    let mut random = Random::new(3);
    let traces = traces::all(options.requests, keys, capacity, &mut || random.unit());
    let mut bench = CacheBench {
        options,
        only,
        report: Report::new(title, &["trace", "cache"]),
        progress: Progress::new(false),
    };
    bench.progress.part("caches", options.runs * traces.len());
    // Runs are outside, so that a slow minute of the machine affects all caches and not one.
    for _ in 0..options.runs {
        for trace in &traces {
            bench.all(trace)?;
            bench.progress.step();
        }
    }
    bench.progress.end();
    for trace in &traces {
        judge(&mut bench.report, trace.name);
    }
    Ok(bench.report)
}

/// Judges `tinylfu`. The targets are as many hits as moka, less a point, and more requests than
/// either.
fn judge(report: &mut Report, trace: &str) {
    let ours = TinyLfu::NAME;
    let hits = |of| report.median(&[trace, of], HITS);
    let more = hits(ours).zip(hits("moka"));
    report.judge(more.map(|(hits, other)| hits - other), |more| {
        let met = verdict(more >= -1.0);
        format!("{trace}: {ours}, hits beside moka: {more:+.1} ({met})")
    });
    // Speed is judged with two threads.
    let column = rate_of(2);
    for theirs in ["moka", "quick_cache"] {
        let ratio = report.ratio(&[trace, ours], &[trace, theirs], &column);
        report.judge(ratio, |ratio| {
            let met = verdict(ratio >= 1.0);
            format!("{trace}: {ours} / {theirs}, {column}: {ratio:.2} ({met})")
        });
    }
}

//! Tables that evict, used as caches, beside the caches of other crates.
//!
//! A program looks up the keys of a trace ([`traces`]), and puts missing keys into the cache. The
//! hit ratio is that of one thread in the second half of the trace, when the cache is full. The
//! speed is that of all threads together, each of which begins at another place of the trace.

mod churn;
mod contenders;

use crate::maps::peers::{each, Filter, Named};
use crate::result::{ensure, Outcome};
use crate::table::{Bound::AtLeast, Report};
use crate::time::timed;
use crate::time::workers::work;
use crate::workload::{random, value_of};
use contenders::{Cache, Evicting, TinyLfu};
use larder_testing::traces::{self, Trace};

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

const HITS: &str = "hits in 100";

fn rate_column(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// Looks keys up, and inserts those that are missing. Returns the number of hits.
fn requests<'a, C: Cache>(cache: &C, keys: impl IntoIterator<Item = &'a u64>) -> Outcome<usize> {
    let mut hits = 0;
    for &key in keys {
        match cache.get(key) {
            None => cache.put(key, value_of(key)),
            Some(value) => {
                ensure!(value == value_of(key), C::NAME; "{key} has another value");
                hits += 1;
            }
        }
    }
    Ok(hits)
}

/// Hits in a hundred requests of the second half of a trace. The first half fills the cache.
fn hit_ratio<C: Cache>(trace: &Trace, capacity: usize) -> Outcome<f64> {
    let cache = C::new(capacity);
    let (first, second) = trace.keys.split_at(trace.keys.len() / 2);
    requests(&cache, first)?;
    let hits = requests(&cache, second)?;
    let (len, most) = (cache.len(), capacity + capacity / 100);
    ensure!(len <= most, C::NAME; "{len} entries of at most {capacity}");
    Ok(100.0 * hits as f64 / second.len() as f64)
}

/// Millions of requests a second, of all threads together.
fn rate<C: Cache>(trace: &Trace, threads: usize, capacity: usize) -> Outcome<f64> {
    let cache = C::new(capacity);
    let keys = &trace.keys;
    // The cache is full before the clock starts, so evictions are measured, too.
    requests(&cache, &keys[..keys.len() / 4])?;
    let done = work(threads, None, |worker| {
        // Each thread goes through the whole trace.
        let (before, after) = keys.split_at(keys.len() / threads * worker.number);
        let (hits, seconds) = timed(|| requests(&cache, after.iter().chain(before)));
        hits.map(|_| keys.len() as f64 / seconds)
    })?;
    Ok(done.results.iter().sum::<f64>() / 1e6)
}

fn measure<C: Cache>(report: &mut Report, trace: &Trace, options: &CacheOptions) -> Outcome {
    let (key, capacity) = ([trace.name, C::NAME], options.capacity);
    report.add(&key, HITS, 1, hit_ratio::<C>(trace, capacity)?);
    for &threads in &options.threads {
        let rate = rate::<C>(trace, threads, capacity)?;
        report.add(&key, &rate_column(threads), 2, rate);
    }
    Ok(())
}

/// Measures all caches in turns, and compares `tinylfu` with its targets. A wrong answer is an
/// error, and so is a cache that exceeds its limit.
pub fn run(options: &CacheOptions, filter: &Filter) -> Outcome<Report> {
    if let Some(minutes) = options.churn_minutes {
        return churn::run(minutes);
    }
    let (capacity, keys) = (options.capacity, options.keys * options.capacity);
    let title = format!("Caches of {capacity} entries, {keys} keys: hits, and millions of requests a second, all threads together (medians)");
    let mut report = Report::new(title, &["trace", "cache"]);
    // All caches get the same traces.
    let mut random = random(3);
    let traces = traces::all(options.requests, keys, capacity, &mut || random.f64());
    let caches = each!(filter, C => measure::<C> as fn(&mut _, &_, &_) -> _;
        TinyLfu, Evicting<1>, Evicting<2>,
        #[cfg(feature = "peers")] moka::sync::Cache<u64, u64>,
        #[cfg(feature = "peers")] quick_cache::sync::Cache<u64, u64>);
    let named = |trace: Trace| (trace.name, trace);
    let traces: Vec<_> = traces.into_iter().map(named).collect();
    report.in_turns("caches", options.runs, &traces, |report, (_, trace)| {
        let mut caches = caches.iter();
        caches.try_for_each(|(_, measure)| measure(report, trace, options))
    })?;
    for (trace, _) in traces {
        judge(&mut report, trace);
    }
    Ok(report)
}

/// The targets of `tinylfu`: at most a point fewer hits than moka, and at least as many requests of
/// two threads as either peer.
fn judge(report: &mut Report, trace: &str) {
    let ours = TinyLfu::NAME;
    let hits = |cache| report.median(&[trace, cache], HITS);
    if let Some(more) = hits(ours).zip(hits("moka")).map(|(ours, moka)| ours - moka) {
        let words = format!("{trace}: {ours}, hits beside moka: {more:+.1}");
        report.judge(&words, more, AtLeast(-1.0));
    }
    for theirs in ["moka", "quick_cache"] {
        report.compare(&[trace], [ours, theirs], &rate_column(2), AtLeast(1.0));
    }
}

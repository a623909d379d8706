//! One thread on one map: insert, independent and dependent lookups, misses, scan, remove, and
//! bytes per entry.
//!
//! The key of an *independent* lookup is known beforehand, so the processor may execute several
//! lookups at once. The key of a *dependent* lookup follows from the answer of the one before, so
//! each waits for the last. Small maps are gone through many times, and are measured warm.

use crate::maps::peers::{each_map, Filter, Map};
use crate::maps::resident;
use crate::result::Outcome;
use crate::table::{Bound::AtMost, Report};
use crate::time::counting::counted;
use crate::time::timed_each;
use crate::workload::{value_of, Keys};

#[derive(clap::Args)]
pub struct EngineOptions {
    /// Entries.
    #[arg(long, value_delimiter = ',', default_value = "1000,65536,1048576")]
    sizes: Vec<usize>,
    /// With 16,777,216 entries, too.
    #[arg(long)]
    full: bool,
    /// How often each structure is measured, in turns; the median counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// About how many operations of each kind a measurement of a small structure has.
    #[arg(long, default_value_t = 2_000_000)]
    operations: usize,
}

/// The additional size of `--full`.
const LARGE: usize = 1 << 24;

const STEPS: [&str; 6] = ["insert", "lookup", "dependent", "miss", "scan", "remove"];

/// Adds figures of a map with these keys, of so many rounds.
type MeasureFn = fn(&mut Report, &Keys, usize);

/// Times all steps of a map, `rounds` times.
fn times<M: Map>(report: &mut Report, data: &Keys, rounds: usize) {
    let mut map = M::empty();
    // A round before the clock starts brings the map and the keys into the processor's caches.
    if rounds > 1 {
        round(&mut map, data);
    }
    let times: Vec<_> = (0..rounds).map(|_| round(&mut map, data)).collect();
    let size = data.insert.len();
    for (i, step) in STEPS.iter().enumerate() {
        let sum: f64 = times.iter().map(|times| times[i]).sum();
        let each = sum / (rounds * size) as f64;
        report.add(&[&size.to_string(), M::NAME], step, 1, each);
    }
}

/// The bytes that a map has allocated, and those by which a process grows that fills it.
fn bytes<M: Map>(report: &mut Report, data: &Keys, _: usize) {
    let (mut map, allocated) = counted(|| resident::filled::<M>(data.insert.iter().copied()));
    let entries = data.insert.len();
    let key = [&entries.to_string(), M::NAME];
    let bytes = map.own_bytes().unwrap_or(allocated);
    drop(map);
    report.add(&key, "bytes", 1, bytes as f64 / entries as f64);
    // Allocators rarely give memory back, so resident bytes are those of a process of its own.
    report.add(&key, "resident", 1, resident::of(M::NAME, entries));
}

/// Nanoseconds of each step, of all entries together. Leaves the map empty.
fn round<M: Map>(map: &mut M, data: &Keys) -> [f64; STEPS.len()] {
    let insert = nanoseconds(|| data.insert.iter().for_each(|&k| map.insert(k, value_of(k))));
    let lookup = nanoseconds(|| lookups(map, data, |key, _| key));
    // The difference is zero, but is known only after the lookup before.
    let dependent = nanoseconds(|| lookups(map, data, |key, difference| key ^ difference));
    let miss = nanoseconds(|| {
        let none = data.missing.iter().all(|&key| map.get(key).is_none());
        assert!(none, "{} makes up entries", M::NAME);
    });
    let scan = nanoseconds(|| scan(map, data));
    let remove = nanoseconds(|| data.visit.iter().for_each(|&key| _ = map.remove(key)));
    let none = data.insert.iter().all(|&key| map.get(key).is_none());
    assert!(none, "{} keeps what was removed", M::NAME);
    [insert, lookup, dependent, miss, scan, remove]
}

fn nanoseconds(work: impl FnOnce()) -> f64 {
    timed_each(1, work).1
}

/// Looks all keys up. The differences of the answers are collected, so that no branch waits for
/// memory. `key_of` makes the key of a lookup from the next key and the differences so far.
fn lookups<M: Map>(map: &mut M, data: &Keys, key_of: impl Fn(u64, u64) -> u64) {
    let wrong = data.visit.iter().fold(0, |wrong, &key| {
        let answer = map.get(key_of(key, wrong));
        let answer = answer.unwrap_or_else(|| panic!("{} lost a key", M::NAME));
        wrong | (answer ^ value_of(key))
    });
    assert_eq!(wrong, 0, "{} gives wrong answers", M::NAME);
}

fn scan<M: Map>(map: &mut M, data: &Keys) {
    let (mut keys, mut values, mut last, mut ordered) = (0u64, 0, 0, true);
    // The sums also keep the compiler from removing the work.
    map.scan(|key, value| {
        keys = keys.wrapping_add(key);
        values ^= value;
        ordered &= last <= key;
        last = key;
    });
    let right = (keys, values) == data.sums;
    assert!(right, "{} scans something else", M::NAME);
    assert!(ordered || !M::ORDERED, "{} is out of order", M::NAME);
}

/// Measures all maps in turns, and compares the defaults with their targets.
pub fn run(options: &EngineOptions, filter: &Filter) -> Outcome<Report> {
    let title = "One thread, random u64 keys and 8-byte values; nanoseconds an operation (medians), bytes an entry";
    let mut report = Report::new(title, &["entries", "structure"]);
    let maps = each_map!(filter, M => [bytes::<M> as MeasureFn, times::<M>]);
    let mut sizes = options.sizes.clone();
    if options.full && !sizes.contains(&LARGE) {
        sizes.push(LARGE);
    }
    for size in sizes {
        let data = Keys::new(size);
        // Each size has about as many operations.
        let rounds = options.operations.div_ceil(size).max(1);
        // Memory hardly varies, so it is measured once.
        for (i, runs) in [1, options.runs].into_iter().enumerate() {
            let part = format!("{size} entries, {}", ["bytes", "times"][i]);
            report.in_turns(&part, runs, &maps, |report, (_, measure)| {
                measure[i](report, &data, rounds);
                Ok(())
            })?;
        }
        // The lookups of the defaults have targets, ratios to other maps.
        for (names, most) in [
            (["larder hash", "hashbrown"], 2.0),
            (["larder ordered", "BTreeMap"], 0.5),
            (["larder ordered", "JudyL"], 1.0),
        ] {
            for step in ["lookup", "dependent"] {
                report.compare(&[&size.to_string()], names, step, AtMost(most));
            }
        }
    }
    Ok(report)
}

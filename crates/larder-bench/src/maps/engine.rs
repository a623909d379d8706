//! One thread on one structure: insert, independent and dependent lookups, misses, scan, remove,
//! bytes an entry.
//!
//! The key of an *independent* lookup is known beforehand, so the processor may execute several
//! lookups at once. The key of a *dependent* lookup is in the answer of the one before, so each
//! waits for the last. Small structures are gone through many times, and are measured warm.

use crate::maps::peers::{each_map, map_names, Map, Only};
use crate::maps::resident;
use crate::table::{verdict, Report};
use crate::time::counting::counted;
use crate::time::progress::Progress;
use crate::time::timed_each;
use crate::workload::{value_of, Keys};

/// What is measured.
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

/// The largest of the sizes that targets are given for.
const LARGE: usize = 1 << 24;

impl EngineOptions {
    fn sizes(&self) -> Vec<usize> {
        let mut sizes = self.sizes.clone();
        if self.full && !sizes.contains(&LARGE) {
            sizes.push(LARGE);
        }
        sizes
    }
}

/// The times of a map that goes through all so often.
fn times<M: Map>(report: &mut Report, data: &Keys, rounds: usize) {
    let mut map = M::empty();
    let mut total = [0f64; STEPS.len()];
    // One round before the clock starts: it brings the map and the keys into the processor's
    // caches.
    if rounds > 1 {
        round(&mut map, data);
    }
    // Times of all rounds are added, and divided by the number of operations.
    for _ in 0..rounds {
        let times = round(&mut map, data);
        total = std::array::from_fn(|step| total[step] + times[step]);
    }
    let size = data.insert.len();
    let operations = (rounds * size) as f64;
    for (step, sum) in STEPS.iter().zip(total) {
        report.add(&[&size.to_string(), M::NAME], step, 1, sum / operations);
    }
}

/// The bytes that a map has taken, and those by which a process grows that fills it.
fn bytes<M: Map>(report: &mut Report, data: &Keys) {
    // Count what Rust's allocator gives, unless the map takes memory elsewhere and says how much.
    let (mut map, from_rust) = counted(|| {
        let mut map = M::empty();
        let keys = data.insert.iter();
        keys.for_each(|&k| map.insert(k, value_of(k)));
        map
    });
    let entries = data.insert.len();
    let key = [&entries.to_string(), M::NAME];
    let live = map.own_bytes().unwrap_or(from_rust);
    drop(map);
    report.add(&key, "bytes", 1, live as f64 / entries as f64);
    // The resident bytes of a process of its own, since an allocator rarely gives memory back.
    report.add(&key, "resident", 1, resident::of(M::NAME, entries));
}

const STEPS: [&str; 6] = ["insert", "lookup", "dependent", "miss", "scan", "remove"];

/// Nanoseconds of each step, of all entries together. Leaves the map empty.
fn round<M: Map>(map: &mut M, data: &Keys) -> [f64; STEPS.len()] {
    [
        nanoseconds(|| data.insert.iter().for_each(|&k| map.insert(k, value_of(k)))),
        nanoseconds(|| lookups(map, data)),
        nanoseconds(|| dependent_lookups(map, data)),
        nanoseconds(|| {
            // Missing keys, which must not be found.
            assert!(
                data.missing.iter().all(|&k| map.get(k).is_none()),
                "{} makes up entries",
                M::NAME
            )
        }),
        nanoseconds(|| scan(map, data)),
        {
            // The check that all are gone isn't part of the time.
            let time = nanoseconds(|| data.visit.iter().for_each(|&k| _ = map.remove(k)));
            assert!(
                data.insert.iter().all(|&k| map.get(k).is_none()),
                "{} keeps what was removed",
                M::NAME
            );
            time
        },
    ]
}

fn nanoseconds(work: impl FnOnce()) -> f64 {
    timed_each(1, work).1
}

/// Every answer is compared, and the difference kept, so that no branch waits for memory.
fn lookups<M: Map>(map: &mut M, data: &Keys) {
    let wrong = data
        .visit
        .iter()
        .fold(0, |wrong, &k| wrong | (answer(map, k) ^ value_of(k)));
    assert_eq!(wrong, 0, "{} gives wrong answers", M::NAME);
}

/// The next key has the difference, which is zero, in it: it is known when the answer is.
fn dependent_lookups<M: Map>(map: &mut M, data: &Keys) {
    let wrong = data.visit.iter().fold(0, |wrong, &k| {
        wrong | (answer(map, k ^ wrong) ^ value_of(k))
    });
    assert_eq!(wrong, 0, "{} gives wrong answers", M::NAME);
}

fn answer<M: Map>(map: &mut M, key: u64) -> u64 {
    map.get(key)
        .unwrap_or_else(|| panic!("{} lost a key", M::NAME))
}

fn scan<M: Map>(map: &mut M, data: &Keys) {
    let (mut keys, mut values, mut last, mut ordered) = (0u64, 0, 0, true);
    map.scan(|k, v| {
        // Sums of keys and values, which the scan must agree with. They also keep the compiler from
        // removing the work.
        keys = keys.wrapping_add(k);
        values ^= v;
        ordered &= last <= k;
        last = k;
    });
    assert_eq!(
        (keys, values),
        data.sums,
        "{} scans something else",
        M::NAME
    );
    assert!(ordered || !M::ORDERED, "{} is out of order", M::NAME);
}

/// Measures, and compares with the targets.
pub fn run(options: &EngineOptions, only: &Only) -> Report {
    let title = "One thread, random u64 keys and 8-byte values; nanoseconds an operation (medians), bytes an entry";
    let mut report = Report::new(title, &["entries", "structure"]);
    let (progress, maps) = (Progress::new(false), map_names(only).len());
    for size in options.sizes() {
        let data = Keys::new(size);
        // Small maps are measured in many rounds, so that each size does about as many operations.
        let rounds = options.operations.div_ceil(size).max(1);
        progress.part(&format!("{size} entries"), (1 + options.runs) * maps);
        // Memory first, and once: it hardly varies.
        each_map!(only, M => progress.measure(M::NAME, || bytes::<M>(&mut report, &data)));
        // In each run all structures take turns, so that a slow minute of the machine affects all
        // of them.
        for _ in 0..options.runs {
            each_map!(only, M => progress.measure(M::NAME, || times::<M>(&mut report, &data, rounds)));
        }
        judge(&mut report, &size.to_string());
    }
    progress.end();
    report
}

/// Judges the defaults. A target is the largest ratio to another map's figure.
fn judge(report: &mut Report, size: &str) {
    for (ours, theirs, most) in [
        ("larder hash", "hashbrown", 2.0),
        ("larder ordered", "BTreeMap", 0.5),
        ("larder ordered", "JudyL", 1.0),
    ] {
        // Lookups only: the other steps have no target.
        for step in ["lookup", "dependent"] {
            let ratio = report.ratio(&[size, ours], &[size, theirs], step);
            report.judge(ratio, |ratio| {
                let met = verdict(ratio <= most);
                format!("{size}: {step}, {ours} / {theirs}: {ratio:.2} (at most {most}: {met})")
            });
        }
    }
}

//! One thread on one structure: insert, independent and dependent lookups, misses, scan, remove,
//! bytes an entry.
//!
//! An *independent* lookup knows its key beforehand, so that the processor may have several under
//! way; a *dependent* one has its key from the answer of the one before it, and waits for each.
//! Small structures go through the whole many times and are measured warm.

use crate::maps::peers::{each_map, Count, Map, OnMap, Only};
use crate::maps::resident;
use crate::table::{announce, Report};
use crate::time::counting::counted;
use crate::time::timed;
use crate::workload::{random_key, shuffled, value_of};

/// What is measured.
#[derive(clap::Args)]
pub struct Options {
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

impl Options {
    fn sizes(&self) -> Vec<usize> {
        let mut sizes = self.sizes.clone();
        if self.full && !sizes.contains(&LARGE) {
            sizes.push(LARGE);
        }
        sizes
    }

    /// About how long so many structures take: nanoseconds an operation of all of them, by size.
    fn seconds(&self, structures: usize) -> f64 {
        let one = |size: &usize| {
            let ns = match size {
                0..=10_000 => 110.0,
                ..=200_000 => 140.0,
                ..=2_000_000 => 320.0,
                _ => 550.0,
            };
            let operations = self.operations.max(*size) as f64;
            // Memory is measured twice by inserts alone.
            operations * ns * 1e-9 * (STEPS.len() * self.runs + 2) as f64
        };
        self.sizes().iter().map(one).sum::<f64>() * structures as f64
    }
}

/// Keys, prepared once for all structures.
struct Prepared {
    insert: Vec<u64>,
    /// The same keys in another order: the place of an entry in memory is often that of its
    /// insertion.
    visit: Vec<u64>,
    missing: Vec<u64>,
    /// Sum of all keys, exclusive or of all values.
    sums: (u64, u64),
}

impl Prepared {
    fn new(n: usize) -> Self {
        let order = shuffled(n, 3);
        let insert: Vec<u64> = (0..n as u64).map(random_key).collect();
        let sums = insert.iter().fold((0u64, 0), |(keys, values), &k| {
            (keys.wrapping_add(k), values ^ value_of(k))
        });
        Prepared {
            visit: order.iter().map(|&i| insert[i as usize]).collect(),
            missing: order
                .iter()
                .map(|&i| random_key((n as u64) << 1 | u64::from(i) << 33))
                .collect(),
            insert,
            sums,
        }
    }
}

struct EngineBench<'a> {
    report: &'a mut Report,
    data: &'a Prepared,
    rounds: usize,
    memory: bool,
}

impl OnMap for EngineBench<'_> {
    fn on<M: Map>(&mut self) {
        if self.memory {
            self.bytes::<M>();
        } else {
            self.times::<M>();
        }
    }
}

impl EngineBench<'_> {
    fn times<M: Map>(&mut self) {
        let mut map = M::empty();
        let mut total = [0f64; STEPS.len()];
        if self.rounds > 1 {
            round(&mut map, self.data);
        }
        for _ in 0..self.rounds {
            let times = round(&mut map, self.data);
            total
                .iter_mut()
                .zip(times)
                .for_each(|(sum, time)| *sum += time);
        }
        let size = self.data.insert.len();
        let operations = (self.rounds * size) as f64;
        for (step, sum) in STEPS.iter().zip(total) {
            self.report
                .add(&[&size.to_string(), M::NAME], step, 1, sum / operations);
        }
    }

    fn bytes<M: Map>(&mut self) {
        let (mut map, from_rust) = counted(|| {
            let mut map = M::empty();
            self.data
                .insert
                .iter()
                .for_each(|&k| map.insert(k, value_of(k)));
            map
        });
        let entries = self.data.insert.len();
        let size = entries.to_string();
        let live = map.own_bytes().unwrap_or(from_rust);
        drop(map);
        let resident = resident::of(M::NAME, entries);
        self.report
            .add(&[&size, M::NAME], "bytes", 1, live as f64 / entries as f64);
        self.report.add(&[&size, M::NAME], "resident", 1, resident);
    }
}

const STEPS: [&str; 6] = ["insert", "lookup", "dependent", "miss", "scan", "remove"];

/// Nanoseconds of each step, of all entries together. Leaves the map empty.
fn round<M: Map>(map: &mut M, data: &Prepared) -> [f64; STEPS.len()] {
    [
        nanoseconds(|| data.insert.iter().for_each(|&k| map.insert(k, value_of(k)))),
        nanoseconds(|| lookups(map, data)),
        nanoseconds(|| dependent_lookups(map, data)),
        nanoseconds(|| {
            assert!(
                data.missing.iter().all(|&k| map.get(k).is_none()),
                "{} makes up entries",
                M::NAME
            )
        }),
        nanoseconds(|| scan(map, data)),
        {
            let time = nanoseconds(|| data.visit.iter().for_each(|&k| map.remove(k)));
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
    timed(work).1 * 1e9
}

/// Every answer is compared, and the difference kept, so that no branch waits for memory.
fn lookups<M: Map>(map: &mut M, data: &Prepared) {
    let wrong = data
        .visit
        .iter()
        .fold(0, |wrong, &k| wrong | (answer(map, k) ^ value_of(k)));
    assert_eq!(wrong, 0, "{} gives wrong answers", M::NAME);
}

/// The next key has the difference, which is zero, in it: it is known when the answer is.
fn dependent_lookups<M: Map>(map: &mut M, data: &Prepared) {
    let wrong = data.visit.iter().fold(0, |wrong, &k| {
        wrong | (answer(map, k ^ wrong) ^ value_of(k))
    });
    assert_eq!(wrong, 0, "{} gives wrong answers", M::NAME);
}

fn answer<M: Map>(map: &mut M, key: u64) -> u64 {
    map.get(key)
        .unwrap_or_else(|| panic!("{} lost a key", M::NAME))
}

fn scan<M: Map>(map: &mut M, data: &Prepared) {
    let (mut keys, mut values, mut last, mut ordered) = (0u64, 0, 0, true);
    map.scan(|k, v| {
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
pub fn run(options: &Options, only: &Only) -> Report {
    let title = "One thread, random u64 keys and 8-byte values; nanoseconds an operation (medians), bytes an entry";
    let mut report = Report::new(title, &["entries", "structure"]);
    let mut wanted = Count(0);
    each_map(only, &mut wanted);
    announce("engine", options.seconds(wanted.0));
    for size in options.sizes() {
        let data = Prepared::new(size);
        for run in 0..=options.runs {
            eprintln!(
                "  {size} entries, run {run} of {}{}",
                options.runs,
                if run == 0 { " (memory)" } else { "" }
            );
            let rounds = options.operations.div_ceil(size).max(1);
            let mut bench = EngineBench {
                report: &mut report,
                data: &data,
                rounds,
                memory: run == 0,
            };
            each_map(only, &mut bench);
        }
        judge(&mut report, size);
    }
    report
}

/// What the defaults have to show.
fn judge(report: &mut Report, size: usize) {
    let size = size.to_string();
    let targets = [
        ("larder hash", "hashbrown", "lookup", 2.0),
        ("larder hash", "hashbrown", "dependent", 2.0),
        ("larder ordered", "BTreeMap", "lookup", 0.5),
        ("larder ordered", "BTreeMap", "dependent", 0.5),
        ("larder ordered", "JudyL", "lookup", 1.0),
        ("larder ordered", "JudyL", "dependent", 1.0),
    ];
    for (ours, theirs, step, most) in targets {
        let figures = report
            .median(&[&size, ours], step)
            .zip(report.median(&[&size, theirs], step));
        if let Some((a, b)) = figures {
            let verdict = if a / b <= most { "ok" } else { "-" };
            report.note(format!(
                "{size}: {step}, {ours} / {theirs}: {:.2} (at most {most}: {verdict})",
                a / b
            ));
        }
    }
}

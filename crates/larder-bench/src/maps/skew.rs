//! Keys that are not random, compared with random ones. None may be more than three times slower.
//!
//! Keys are bytes here. All keys of a case have the same length, so that none is a prefix of
//! another.

use crate::maps::peers::larder::{index, key};
use crate::maps::peers::Only;
use crate::table::{verdict, Report};
use crate::time::progress::Progress;
use crate::time::timed_each;
use crate::workload::{random_key, shuffled, value_of, Random, Zipf};
use larder_index::{pin, Change};
use larder_term::hash::Seed;

/// What is measured.
#[derive(clap::Args)]
pub struct SkewOptions {
    /// Entries.
    #[arg(long, default_value_t = 1_048_576)]
    entries: usize,
    /// How often each case is measured, in turns; the median is reported.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// A way to make keys of numbers, and which of them are visited.
struct Case {
    name: &'static str,
    key: fn(u64, u64) -> Vec<u8>,
    zipf: bool,
}

const fn case(name: &'static str, key: fn(u64, u64) -> Vec<u8>) -> Case {
    Case {
        name,
        key,
        zipf: false,
    }
}

/// The first one is the baseline of the others. The second argument of a key is the number of
/// entries.
const CASES: [Case; 9] = [
    case("random", |i, _| bytes(random_key(i))),
    Case {
        name: "Zipf 0.99",
        key: |i, _| bytes(random_key(i)),
        zipf: true,
    },
    case("sequential", |i, _| bytes(i)),
    case("reversed", |i, n| bytes(n - 1 - i)),
    case("bit-reversed", |i, _| bytes(i.reverse_bits())),
    case("strided by 2^32", |i, _| bytes(i << 32)),
    case("top bits alone", |i, n| {
        bytes(i << n.next_power_of_two().leading_zeros())
    }),
    case("after 56 equal bytes", |i, _| {
        [&[b'p'; 56][..], &bytes(random_key(i))].concat()
    }),
    case("before 56 equal bytes", |i, _| {
        [&bytes(random_key(i)), &[b's'; 56][..]].concat()
    }),
];

fn bytes(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

const STEPS: [&str; 3] = ["insert", "lookup", "remove"];

/// Keys of one length, one after the other.
struct FixedLengthKeys {
    bytes: Vec<u8>,
    length: usize,
}

impl FixedLengthKeys {
    fn new(case: &Case, n: u64, numbers: impl Iterator<Item = u64>) -> Self {
        let keys: Vec<Vec<u8>> = numbers.map(|i| (case.key)(i, n)).collect();
        FixedLengthKeys {
            length: keys[0].len(),
            bytes: keys.concat(),
        }
    }

    fn get(&self, i: usize) -> &[u8] {
        &self.bytes[i * self.length..(i + 1) * self.length]
    }
}

/// Nanoseconds per operation of each step. `lookup` visits in random order, or by Zipf's law.
fn measure(ordered: bool, case: &Case, n: usize) -> [f64; STEPS.len()] {
    // A seed of its own for each measurement, as each table has in practice.
    let seed = Seed::random();
    let index = index(ordered, &seed, false);
    let order = visits(case, n);
    // All keys are made before the clock starts.
    let keys = FixedLengthKeys::new(case, n as u64, 0..n as u64);
    let visited = FixedLengthKeys::new(case, n as u64, order.iter().map(|&i| u64::from(i)));
    let insert = each(n, |i| {
        let value = value_of(i as u64).to_le_bytes();
        assert!(
            index.update(&pin(), key(&seed, keys.get(i)), &mut |_, new| {
                new.extend_from_slice(&value);
                Change::Put
            })
        );
    });
    // Keys with equal hashes must still be different entries.
    assert_eq!(index.len(), n, "{}: a key was taken for another", case.name);
    let mut value = Vec::new();
    // Read values are compared, within the time, as a program would use them.
    let lookup = each(n, |i| {
        value.clear();
        assert!(index.get(&pin(), key(&seed, visited.get(i)), &mut value));
        assert_eq!(value, value_of(u64::from(order[i])).to_le_bytes());
    });
    let remove = each(n, |i| {
        assert!(index.update(&pin(), key(&seed, keys.get(i)), &mut |_, _| Change::Remove));
    });
    assert!(index.is_empty());
    [insert, lookup, remove]
}

fn visits(case: &Case, n: usize) -> Vec<u32> {
    if !case.zipf {
        return shuffled(n, 5);
    }
    let (zipf, mut random) = (Zipf::new(n, 0.99), Random::new(5));
    (0..n).map(|_| zipf.next(&mut random) as u32).collect()
}

fn each(n: usize, work: impl FnMut(usize)) -> f64 {
    timed_each(n, || (0..n).for_each(work)).1
}

/// Measures, and compares with random keys.
pub fn run(options: &SkewOptions, only: &Only) -> Report {
    let title = format!(
        "{} entries under keys that are not random; nanoseconds an operation (medians)",
        options.entries
    );
    let mut report = Report::new(title, &["structure", "keys"]);
    let structures = [("larder hash", false), ("larder ordered", true)];
    let wanted = || structures.iter().filter(|(name, _)| only.has(name));
    let progress = Progress::new(false);
    progress.part("skew", options.runs * wanted().count() * CASES.len());
    for _ in 0..options.runs {
        for (name, ordered) in wanted() {
            for case in &CASES {
                let at = format!("{name}, {}", case.name);
                let times = progress.measure(&at, || measure(*ordered, case, options.entries));
                for (step, time) in STEPS.iter().zip(times) {
                    report.add(&[name, case.name], step, 1, time);
                }
            }
        }
    }
    progress.end();
    // Each case beside the random keys of the same structure, once all medians are known.
    for (name, _) in structures {
        let all = CASES.iter();
        all.for_each(|case| compare(&mut report, name, case));
    }
    report
}

/// Adds the ratios to random keys.
fn compare(report: &mut Report, name: &str, case: &Case) {
    let mut worst: f64 = 0.0;
    // The first case has random keys, and the others are compared with it.
    let (key, random) = ([name, case.name], [name, CASES[0].name]);
    for step in STEPS {
        if let Some(ratio) = report.ratio(&key, &random, step) {
            report.add(&key, &format!("{step} / random"), 2, ratio);
            worst = worst.max(ratio);
        }
    }
    if worst > 3.0 {
        let (case, missed) = (case.name, verdict(false));
        report.note(format!(
            "{name}, {case}: {worst:.2} times random keys (at most 3: {missed})"
        ));
    }
}

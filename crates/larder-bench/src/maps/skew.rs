//! Keys that are not random, compared with random ones. None may be more than three times slower.
//!
//! Keys are byte strings. All keys of a case have the same length, so none is a prefix of another.

use crate::maps::peers::index::{index, key};
use crate::maps::peers::Filter;
use crate::result::Outcome;
use crate::table::{Bound::AtMost, Report};
use crate::time::timed_each;
use crate::workload::{random, random_key, shuffled, value_of, Zipf};
use larder_index::{pin, Change};
use larder_term::hash::Seed;

#[derive(clap::Args)]
pub struct SkewOptions {
    /// Entries.
    #[arg(long, default_value_t = 1_048_576)]
    entries: usize,
    /// How often each case is measured, in turns; the median is reported.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// A name, and the key of entry `i` of `n`.
type Case = (&'static str, fn(u64, u64) -> Vec<u8>);

/// The others are compared with the first one. Lookups are uniform, save those of [`ZIPF`].
#[rustfmt::skip]
static CASES: [Case; 9] = [
    ("random", |i, _| bytes(random_key(i))),
    (ZIPF, |i, _| bytes(random_key(i))),
    ("sequential", |i, _| bytes(i)),
    ("reversed", |i, n| bytes(n - 1 - i)),
    ("bit-reversed", |i, _| bytes(i.reverse_bits())),
    ("strided by 2^32", |i, _| bytes(i << 32)),
    ("top bits alone", |i, n| bytes(i << n.next_power_of_two().leading_zeros())),
    ("after 56 equal bytes", |i, _| [vec![b'p'; 56], bytes(random_key(i))].concat()),
    ("before 56 equal bytes", |i, _| [bytes(random_key(i)), vec![b's'; 56]].concat()),
];

const ZIPF: &str = "Zipf 0.99";

fn bytes(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

const STEPS: [&str; 3] = ["insert", "lookup", "remove"];

/// Nanoseconds per operation of each step.
fn measure(ordered: bool, (name, key_of): &Case, n: usize) -> [f64; STEPS.len()] {
    // Each measurement has a seed of its own, as each table has.
    let seed = Seed::random();
    let index = index(ordered, &seed, false);
    let order = visits(name, n);
    // All keys are made before the clock starts, one behind the other.
    let all = |numbers: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
        numbers.flat_map(|i| key_of(i, n as u64)).collect()
    };
    let keys = all(&mut (0..n as u64));
    let visited = all(&mut order.iter().map(|&i| u64::from(i)));
    let length = keys.len() / n;
    let (keys, visited) = (keys.chunks_exact(length), visited.chunks_exact(length));
    let insert = timed_each(n, || {
        for (i, bytes) in keys.clone().enumerate() {
            let value = value_of(i as u64).to_le_bytes();
            assert!(index.update(&pin(), key(&seed, bytes), &mut |_, new| {
                new.extend_from_slice(&value);
                Change::Put
            }));
        }
    });
    // Keys with equal hashes must still be different entries.
    assert_eq!(index.len(), n, "{name}: a key was taken for another");
    let mut value = Vec::new();
    let lookup = timed_each(n, || {
        for (&i, bytes) in order.iter().zip(visited) {
            value.clear();
            assert!(index.get(&pin(), key(&seed, bytes), &mut value));
            assert_eq!(value, value_of(u64::from(i)).to_le_bytes());
        }
    });
    let remove = timed_each(n, || {
        for bytes in keys {
            assert!(index.update(&pin(), key(&seed, bytes), &mut |_, _| Change::Remove));
        }
    });
    assert!(index.is_empty());
    [insert.1, lookup.1, remove.1]
}

fn visits(case: &str, n: usize) -> Vec<u32> {
    if case != ZIPF {
        return shuffled(n, 5);
    }
    let (zipf, mut random) = (Zipf::new(n, 0.99), random(5));
    (0..n).map(|_| zipf.next(&mut random) as u32).collect()
}

/// Measures all cases in turns, and compares them with random keys.
pub fn run(options: &SkewOptions, filter: &Filter) -> Outcome<Report> {
    let entries = options.entries;
    let title = "entries under keys that are not random; nanoseconds an operation (medians)";
    let mut report = Report::new(format!("{entries} {title}"), &["structure", "keys"]);
    let mut structures = vec![("larder hash", false), ("larder ordered", true)];
    structures.retain(|(name, _)| filter.accepts(name));
    let all = structures.into_iter().flat_map(|(name, ordered)| {
        let at = move |case: &Case| format!("{name}, {}", case.0);
        CASES
            .iter()
            .map(move |case| (at(case), (name, ordered, case)))
    });
    let all: Vec<_> = all.collect();
    report.in_turns("skew", options.runs, &all, |report, (_, item)| {
        let (name, ordered, case) = *item;
        for (step, time) in STEPS.iter().zip(measure(ordered, case, entries)) {
            report.add(&[name, case.0], step, 1, time);
        }
        Ok(())
    })?;
    for (at, (name, _, case)) in &all {
        compare(&mut report, at, [name, case.0]);
    }
    Ok(report)
}

/// Adds the ratios of a case to the random keys of the same structure.
fn compare(report: &mut Report, at: &str, key: [&str; 2]) {
    let random = [key[0], CASES[0].0];
    let ratios = STEPS.map(|step| report.ratio(&key, &random, step).unwrap_or(0.0));
    for (step, ratio) in STEPS.iter().zip(ratios) {
        report.add(&key, &format!("{step} / random"), 2, ratio);
    }
    let worst = ratios.into_iter().fold(0.0, f64::max);
    if worst > 3.0 {
        let words = format!("{at}: {worst:.2} times random keys");
        report.judge(&words, worst, AtMost(3.0));
    }
}

//! Ours beside Debian's libJudy, in one run.
//!
//! ```text
//! cargo run --release -p larder-judy --features libjudy --example against_libjudy -- \
//!     [--sizes 1000,16000,256000,4000000] [--rounds 5] [--arrays judy1,judyl,judysl,judyesl] \
//!     [--patterns sequential,random,clustered] [--csv FILE]
//! ```
//!
//! Each cell is measured in rounds, ours and theirs by turns; a figure is the median of its rounds,
//! and a ratio that of the rounds' ratios, so that what slows the machine for a while slows both.
//! Keys are inserted in the order that their pattern makes them, then looked up and removed in that
//! order if they are sequential, shuffled otherwise; `next` walks the array by stateless steps from
//! each key to the one after it. Every answer is asserted. Time is the thread's own processor time.
//!
//! What is being measured stands on one line of the standard error, and each cell is in the CSV as
//! soon as it is known: a long run (16,000,000 keys take minutes a round, and 3 GB) can be watched,
//! and one that is broken off leaves what it measured.
//!
//! Memory is given twice: as each array counts itself, and as the C heap grows, headers of the
//! allocator included (both use the same one). The JudySL of libJudy does not count itself: there
//! the second stands for the first.

mod keys;
mod raw;
mod subjects;

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use keys::{order, Pattern};
use larder_judy::{Judy1, JudyESL, JudyL, JudySL};
use raw::{Lib1, LibL, LibSl};
use subjects::Subject;

/// The operations that are timed.
const OPS: [&str; 4] = ["insert", "get", "next", "delete"];

/// Nanoseconds an operation, then bytes a key as counted and on the heap.
#[derive(Clone, Copy)]
struct Sample {
    times: [f64; 4],
    counted: Option<f64>,
    heap: f64,
}

struct Options {
    sizes: Vec<usize>,
    rounds: usize,
    arrays: Vec<String>,
    patterns: Vec<Pattern>,
    csv: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        sizes: vec![1000, 16_000, 256_000, 4_000_000],
        rounds: 5,
        arrays: ["judy1", "judyl", "judysl", "judyesl"]
            .map(String::from)
            .to_vec(),
        patterns: Pattern::ALL.to_vec(),
        csv: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(format!("{name} needs a value"))?;
        let number = |text: &str| {
            text.parse::<usize>()
                .map_err(|e| format!("{name} {text}: {e}"))
        };
        match name.as_str() {
            "--sizes" => options.sizes = value.split(',').map(number).collect::<Result<_, _>>()?,
            "--rounds" => options.rounds = number(&value)?.max(1),
            "--arrays" => options.arrays = value.split(',').map(String::from).collect(),
            "--patterns" => {
                options.patterns = value
                    .split(',')
                    .map(Pattern::parse)
                    .collect::<Result<_, _>>()?
            }
            "--csv" => options.csv = Some(value),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

/// One round of one array: as many arrays, one after the other, as make about a quarter of a
/// million operations.
fn round<Key: ?Sized, K: AsRef<Key>, S: Subject<Key>>(keys: &[K], order: &[u32]) -> Sample {
    let repeats = (250_000 / keys.len()).max(1);
    let mut times = [0.0; 4];
    for _ in 0..repeats {
        let mut array = S::new();
        let mut lap = raw::cpu_time();
        let mut take = |at: usize| {
            let now = raw::cpu_time();
            times[at] += (now - lap) as f64;
            lap = now;
        };
        for (at, key) in keys.iter().enumerate() {
            array.insert(key.as_ref(), at as u64);
        }
        take(0);
        let mut sum = 0u64;
        for &at in order {
            sum = sum.wrapping_add(
                array
                    .get(keys[at as usize].as_ref())
                    .expect("an inserted key"),
            );
        }
        black_box(sum);
        take(1);
        let walked = array.walk();
        assert_eq!(walked.0, keys.len() as u64);
        take(2);
        let removed = order
            .iter()
            .filter(|&&at| array.remove(keys[at as usize].as_ref()))
            .count();
        assert_eq!(removed, keys.len());
        take(3);
    }
    let operations = (repeats * keys.len()) as f64;
    let (counted, heap) = memory::<Key, K, S>(keys);
    Sample {
        times: times.map(|time| time / operations),
        counted,
        heap,
    }
}

/// Bytes a key, as arrays count themselves and as the heap grows: of as many arrays side by side as
/// have a million keys.
fn memory<Key: ?Sized, K: AsRef<Key>, S: Subject<Key>>(keys: &[K]) -> (Option<f64>, f64) {
    let repeats = (1_000_000 / keys.len()).max(1);
    let mut arrays: Vec<S> = (0..repeats).map(|_| S::new()).collect();
    let before = raw::heap();
    for array in &mut arrays {
        keys.iter()
            .enumerate()
            .for_each(|(at, key)| array.insert(key.as_ref(), at as u64));
    }
    let each = |bytes: usize| bytes as f64 / (repeats * keys.len()) as f64;
    let heap = each(raw::heap().saturating_sub(before));
    let counted: Option<usize> = arrays.iter().map(S::memory).sum();
    (counted.map(each), heap)
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// One figure of a cell: ours and theirs, a pair for each round.
type Rounds = Vec<(f64, f64)>;

/// A word as a reference to itself, so that words and strings share the code.
struct Word(u64);

impl AsRef<u64> for Word {
    fn as_ref(&self) -> &u64 {
        &self.0
    }
}

struct Report {
    csv: Option<File>,
    began: Instant,
    cells: usize,
    missed: Vec<String>,
}

impl Report {
    fn new(path: Option<&str>) -> Result<Self, String> {
        let csv = path.map(|path| File::create(path).map_err(|e| format!("{path}: {e}")));
        let mut report = Report {
            csv: csv.transpose()?,
            began: Instant::now(),
            cells: 0,
            missed: Vec::new(),
        };
        report.row("array,pattern,keys,what,ours,theirs,ratio");
        Ok(report)
    }

    /// Writes a line of the CSV.
    fn row(&mut self, line: &str) {
        if let Some(csv) = &mut self.csv {
            writeln!(csv, "{line}").expect("the CSV can be written");
        }
    }

    /// Says what is being measured, in place of what was said before.
    fn now(&self, what: &str) {
        let seconds = self.began.elapsed().as_secs();
        eprint!("\r\x1b[K{seconds:6} s  {what}");
    }

    fn cell(&mut self, place: &str, name: &str, rounds: Rounds, limit: f64) -> String {
        let ours = median(rounds.iter().map(|round| round.0));
        let theirs = median(rounds.iter().map(|round| round.1));
        let ratio = median(rounds.iter().map(|round| round.0 / round.1));
        self.row(&format!("{place},{name},{ours:.3},{theirs:.3},{ratio:.3}"));
        self.cells += 1;
        if ratio > limit {
            self.missed.push(format!(
                "{place},{name}: {ours:.2} against {theirs:.2}, {ratio:.2} x"
            ));
        }
        format!(
            " {ours:8.2} {theirs:8.2} {ratio:5.2}{}",
            if ratio > limit { '!' } else { ' ' }
        )
    }
}

fn compare<Key: ?Sized, K: AsRef<Key>, A: Subject<Key>, B: Subject<Key>>(
    array: &str,
    pattern: Pattern,
    keys: &[K],
    rounds: usize,
    report: &mut Report,
) {
    let order = order(pattern, keys.len());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..rounds {
        let (name, size, round_) = (pattern.name(), keys.len(), turn + 1);
        report.now(&format!(
            "{array} {name} {size}, round {round_} of {rounds}"
        ));
        if turn % 2 == 0 {
            ours.push(round::<Key, K, A>(keys, &order));
            theirs.push(round::<Key, K, B>(keys, &order));
        } else {
            theirs.push(round::<Key, K, B>(keys, &order));
            ours.push(round::<Key, K, A>(keys, &order));
        }
    }
    let place = format!("{array},{},{}", pattern.name(), keys.len());
    let mut line = format!("{array:7} {:10} {:9}", pattern.name(), keys.len());
    let pairs = |of: &dyn Fn(&Sample) -> f64| -> Rounds {
        ours.iter().map(of).zip(theirs.iter().map(of)).collect()
    };
    for (at, op) in OPS.iter().enumerate() {
        line += &report.cell(&place, op, pairs(&|sample| sample.times[at]), 1.2);
    }
    let counted = pairs(&|sample| sample.counted.unwrap_or(sample.heap));
    line += &report.cell(&place, "memory", counted, 1.1);
    line += &report.cell(&place, "heap", pairs(&|sample| sample.heap), 1.1);
    eprint!("\r\x1b[K");
    println!("{line}");
}

fn main() -> Result<(), String> {
    let options = options()?;
    let mut report = Report::new(options.csv.as_deref())?;
    print!("{:28}", "ns or bytes a key: ours, libJudy, ratio");
    println!("  {}", OPS.join(" | ") + " | memory counted | heap");
    for array in &options.arrays {
        for &pattern in &options.patterns {
            for &size in &options.sizes {
                let words = || {
                    (0..size as u64)
                        .map(|at| Word(pattern.word(at)))
                        .collect::<Vec<_>>()
                };
                let strings = || {
                    (0..size as u64)
                        .map(|at| pattern.string(at))
                        .collect::<Vec<_>>()
                };
                let (rounds, report) = (options.rounds, &mut report);
                match array.as_str() {
                    "judy1" => {
                        compare::<u64, _, Judy1, Lib1>(array, pattern, &words(), rounds, report)
                    }
                    "judyl" => {
                        compare::<u64, _, JudyL, LibL>(array, pattern, &words(), rounds, report)
                    }
                    "judysl" => compare::<[u8], _, JudySL, LibSl>(
                        array,
                        pattern,
                        &strings(),
                        rounds,
                        report,
                    ),
                    "judyesl" => compare::<[u8], _, JudyESL, LibSl>(
                        array,
                        pattern,
                        &strings(),
                        rounds,
                        report,
                    ),
                    _ => return Err(format!("no array {array}")),
                }
            }
        }
    }
    println!(
        "{} of {} cells within 1.2 x time and 1.1 x memory",
        report.cells - report.missed.len(),
        report.cells
    );
    report
        .missed
        .iter()
        .for_each(|missed| println!("missed: {missed}"));
    Ok(())
}

//! Tables of figures by row and column. A bench prints one and writes it as a CSV, with the facts
//! of the machine. The report makes tables of Markdown pages and heat maps from CSVs.

use crate::result::{ensure, Failure, Origin, Outcome};
use crate::stats::{median, place, sorted};
use crate::time::progress::Progress;
use indicatif::HumanCount;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What describes a distribution: headings, and the part of the figures up to each quantile.
pub const QUANTILES: [(&str, f64); 5] = [
    ("p10", 0.1),
    ("median", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("worst", 1.0),
];

/// A pivot table: figures of some runs, by row and by column. A row has a key of several parts.
/// Rows and columns stand in the order in which they are first named.
#[derive(Default)]
pub struct Pivot {
    rows: Vec<Vec<String>>,
    pub columns: Vec<String>,
    /// The figures of each field, by the positions of its row and its column.
    fields: BTreeMap<(usize, usize), Vec<f64>>,
}

impl Pivot {
    /// Adds figures to a field. Its column is there even without any.
    pub fn extend<'k>(
        &mut self,
        key: impl IntoIterator<Item = &'k str>,
        column: &str,
        figures: impl IntoIterator<Item = f64>,
    ) {
        let column = place(&mut self.columns, column.into());
        let key: Vec<_> = key.into_iter().map(String::from).collect();
        for figure in figures {
            let row = place(&mut self.rows, key.clone());
            self.fields.entry((row, column)).or_default().push(figure);
        }
    }

    /// The key of each row, and the figures of its fields in ascending order. A field without any
    /// is empty.
    pub fn rows(&self) -> Vec<(&[String], Vec<Vec<f64>>)> {
        let figures = |at| sorted(self.fields.get(&at).into_iter().flatten().copied());
        let fields = |row| (0..self.columns.len()).map(move |column| figures((row, column)));
        let rows = self.rows.iter().enumerate();
        rows.map(|(row, key)| (&key[..], fields(row).collect()))
            .collect()
    }

    /// The median of a field, if it has figures.
    pub fn median(&self, key: &[&str], column: &str) -> Option<f64> {
        let row = self.rows.iter().position(|row| row == key)?;
        let column = self.columns.iter().position(|name| name == column)?;
        self.fields.get(&(row, column)).map(|runs| median(runs))
    }
}

/// The target of a figure.
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    /// The target, and whether a figure meets it.
    pub fn judge(&self, figure: f64) -> String {
        let (words, bound, met) = match *self {
            Bound::AtMost(most) => ("at most", most, figure <= most),
            Bound::AtLeast(least) => ("at least", least, figure >= least),
        };
        format!("{words} {bound}: {}", ["-", "ok"][usize::from(met)])
    }
}

/// The result of a bench: a table of medians, with remarks below it.
pub struct Report {
    title: String,
    keys: &'static [&'static str],
    table: Pivot,
    decimals: Vec<usize>,
    notes: Vec<String>,
    pub progress: Progress,
}

impl Report {
    pub fn new(title: impl Into<String>, keys: &'static [&'static str]) -> Self {
        Report {
            title: title.into(),
            keys,
            table: Pivot::default(),
            decimals: Vec::new(),
            notes: Vec::new(),
            progress: Progress::new(false),
        }
    }

    /// Measures the items of a part, each with its name, in turns.
    pub fn in_turns<N: AsRef<str>, T>(
        &mut self,
        part: &str,
        runs: usize,
        items: &[(N, T)],
        mut measure: impl FnMut(&mut Report, &(N, T)) -> Outcome,
    ) -> Outcome {
        let steps = runs * items.len();
        self.progress.part(part, steps);
        // Runs are the outer loop: what disturbs the machine for a while disturbs all items.
        for item in items.iter().cycle().take(steps) {
            self.progress.at(item.0.as_ref());
            measure(self, item)?;
            self.progress.step();
        }
        Ok(())
    }

    /// Adds the figure of one run.
    pub fn add(&mut self, key: &[&str], column: &str, decimals: usize, figure: f64) {
        self.table.extend(key.iter().copied(), column, [figure]);
        // A new column has no decimals yet.
        self.decimals.resize(self.table.columns.len(), decimals);
    }

    pub fn median(&self, key: &[&str], column: &str) -> Option<f64> {
        self.table.median(key, column)
    }

    /// The ratio of a field to the field of another line, if both were measured.
    pub fn ratio(&self, key: &[&str], other: &[&str], column: &str) -> Option<f64> {
        Some(self.median(key, column)? / self.median(other, column)?)
    }

    /// Adds a line below the table: how a column of one structure compares with that of another at
    /// the same place, and with a target, if both were measured.
    pub fn compare(
        &mut self,
        place: &[&str],
        [ours, theirs]: [&str; 2],
        column: &str,
        target: Bound,
    ) {
        let key = |name| [place, &[name]].concat();
        if let Some(ratio) = self.ratio(&key(ours), &key(theirs), column) {
            let place = place.join(", ");
            let words = format!("{place}: {column}, {ours} / {theirs}: {ratio:.2}");
            self.judge(&words, ratio, target);
        }
    }

    /// Adds a line below the table: a figure in words, and whether it meets its target.
    pub fn judge(&mut self, words: &str, figure: f64, target: Bound) {
        self.note(format!("{words} ({})", target.judge(figure)));
    }

    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The header and the lines. A field that wasn't measured is empty.
    fn rows(&self) -> Vec<Vec<String>> {
        let keys = self.keys.iter().map(|key| key.to_string());
        let mut rows = vec![keys.chain(self.table.columns.iter().cloned()).collect()];
        for (key, fields) in self.table.rows() {
            let cells = fields.iter().zip(&self.decimals).map(|(runs, decimals)| {
                let figure = (!runs.is_empty()).then(|| median(runs));
                figure.map_or(String::new(), |figure| format!("{figure:.decimals$}"))
            });
            rows.push(key.iter().cloned().chain(cells).collect());
        }
        rows
    }

    /// Prints the table, and writes it to a file if one is given. It is an error if nothing was
    /// measured.
    pub fn finish(&self, out: Option<PathBuf>) -> Outcome {
        self.progress.end();
        let is_empty = self.table.columns.is_empty();
        ensure!(!is_empty; "nothing was measured (is there a structure of that name?)");
        self.print();
        if let Some(path) = out {
            let failed = |error| Failure::Impossible(format!("{}: {error}", path.display()));
            self.write(&path).map_err(failed)?;
            eprintln!("written: {}", path.display());
        }
        Ok(())
    }

    fn print(&self) {
        let rows = self.rows();
        println!("\n{}\n", self.title);
        // Each column is as wide as its widest cell.
        let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max();
        let widths: Vec<_> = (0..rows[0].len()).filter_map(width).collect();
        for row in &rows {
            // Names are left-aligned, figures right-aligned.
            let cells = row.iter().zip(&widths).enumerate();
            let line = cells.map(|(i, (cell, &w))| match i < self.keys.len() {
                true => format!("{cell:<w$}  "),
                false => format!("{cell:>w$}  "),
            });
            println!("{}", line.collect::<String>().trim_end());
        }
        println!();
        self.notes.iter().for_each(|note| println!("{note}"));
    }

    /// Writes the table as CSV. Comments before the header have the facts of the machine.
    fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut text = format!("# {}\n", self.title);
        for (name, fact) in facts() {
            text += &format!("# {name}: {fact}\n");
        }
        let mut csv = csv::Writer::from_writer(text.into_bytes());
        for row in self.rows() {
            csv.write_record(row)?;
        }
        let bytes = csv.into_inner().map_err(|error| error.into_error())?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, bytes)
    }
}

/// A reader of a CSV. Lines that begin with `#` are facts, which it ignores.
pub fn csv(text: &str) -> csv::Reader<&[u8]> {
    let mut reader = csv::ReaderBuilder::new();
    reader.comment(Some(b'#')).from_reader(text.as_bytes())
}

/// The lines of a CSV. It must have the columns that `T` has.
pub fn lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    let all: Result<_, _> = csv(text).deserialize().collect();
    all.map_err(|error| error.to_string())
}

/// A number with separators: `54,000,000`.
pub fn grouped(number: usize) -> String {
    HumanCount(number as u64).to_string()
}

/// The time, the machine and the commit, by name.
fn facts() -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism();
    let cores = cores.map_or_else(|_| "unknown".into(), |n| n.to_string());
    let huge_pages = line("/sys/kernel/mm/transparent_hugepage/enabled", "");
    let commit = output("git describe --always --dirty --abbrev=12");
    vec![
        ("date", output("date -u +%Y-%m-%dT%H:%M:%SZ")),
        ("processor", line("/proc/cpuinfo", "model name")),
        ("cores", cores),
        ("memory", line("/proc/meminfo", "MemTotal")),
        ("system", output("uname -sr")),
        ("huge pages", huge_pages),
        ("rustc", output("rustc --version")),
        ("commit", commit),
    ]
}

/// The facts as the results of studies have them.
pub fn origin() -> Origin {
    let facts = facts().into_iter();
    facts.map(|(name, fact)| (name.to_owned(), fact)).collect()
}

/// The text behind the colon of the first line that begins with a name, or the whole line.
fn line(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines().filter(|line| line.starts_with(name));
    let line = lines.next().unwrap_or("unknown");
    let fact = line.split_once(':').map_or(line, |(_, fact)| fact);
    fact.trim().to_string()
}

fn output(command: &str) -> String {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output().ok();
    let output = output.filter(|output| output.status.success());
    let text = output.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or("unknown".into(), |text| text.trim().into())
}

//! What was measured: a table on the terminal, a CSV, the facts of the machine.

use crate::stats::median;
use indicatif::HumanCount;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A key, and the runs of each of its columns.
type Line = (Vec<String>, BTreeMap<usize, Vec<f64>>);

/// Figures of several runs, by what they are about. The median counts.
pub struct Report {
    title: String,
    /// The names of the parts of a key.
    keys: Vec<&'static str>,
    /// Keys in the order in which they were first met, with the columns of each.
    lines: Vec<Line>,
    /// Name and decimals of each column.
    columns: Vec<(String, usize)>,
    notes: Vec<String>,
}

impl Report {
    /// An empty report whose lines are told apart by these.
    pub fn new(title: impl Into<String>, keys: &[&'static str]) -> Self {
        Report {
            title: title.into(),
            keys: keys.to_vec(),
            lines: Vec::new(),
            columns: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds one run's figure. Columns stand in the order in which they are first named.
    pub fn add(&mut self, key: &[&str], column: &str, decimals: usize, figure: f64) {
        // A column is new if no line has named it.
        let column = match self.columns.iter().position(|(name, _)| name == column) {
            Some(column) => column,
            None => {
                self.columns.push((column.to_string(), decimals));
                self.columns.len() - 1
            }
        };
        // A line is known by all parts of its key.
        let line = match self.lines.iter().position(|(of, _)| of == key) {
            Some(line) => line,
            None => {
                self.lines.push((
                    key.iter().map(|part| part.to_string()).collect(),
                    BTreeMap::new(),
                ));
                self.lines.len() - 1
            }
        };
        // Figures of the same field are those of several runs.
        self.lines[line].1.entry(column).or_default().push(figure);
    }

    /// The median of a figure's runs.
    pub fn median(&self, key: &[&str], column: &str) -> Option<f64> {
        let column = self.columns.iter().position(|(name, _)| name == column)?;
        let (_, figures) = self.lines.iter().find(|(of, _)| of == key)?;
        figures.get(&column).map(|runs| median(runs))
    }

    /// The median of a line's figure by that of another line.
    pub fn ratio(&self, key: &[&str], other: &[&str], column: &str) -> Option<f64> {
        Some(self.median(key, column)? / self.median(other, column)?)
    }

    /// A line below the table.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn cell(&self, figures: &BTreeMap<usize, Vec<f64>>, column: usize) -> String {
        // A field without a figure is empty.
        figures.get(&column).map_or(String::new(), |runs| {
            format!("{:.*}", self.columns[column].1, median(runs))
        })
    }

    fn header(&self) -> Vec<String> {
        let keys = self.keys.iter().map(|key| key.to_string());
        keys.chain(self.columns.iter().map(|(name, _)| name.clone()))
            .collect()
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |(key, figures): &Line| {
            let cells = (0..self.columns.len()).map(|column| self.cell(figures, column));
            key.iter().cloned().chain(cells).collect()
        };
        self.lines.iter().map(row).collect()
    }

    /// Prints the table.
    pub fn print(&self) {
        let (header, rows) = (self.header(), self.rows());
        // Each column is as wide as its widest field, or its heading.
        let widths: Vec<usize> = (0..header.len())
            .map(|i| {
                rows.iter()
                    .chain([&header])
                    .map(|row| row[i].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        println!("\n{}\n", self.title);
        // The table is for people. The CSV has the same fields for programs.
        for row in [&header].into_iter().chain(&rows) {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                // Names are left-aligned, figures right-aligned.
                line += &if i < self.keys.len() {
                    format!("{cell:<w$}  ", w = widths[i])
                } else {
                    format!("{cell:>w$}  ", w = widths[i])
                };
            }
            println!("{}", line.trim_end());
        }
        println!();
        self.notes.iter().for_each(|note| println!("{note}"));
    }

    /// Writes the table as CSV, the facts of the machine as comments before it.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        // The facts come as comments before the header, so that they aren't lost.
        let mut text = format!("# {}\n", self.title);
        for (name, fact) in facts() {
            text += &format!("# {name}: {fact}\n");
        }
        let mut csv = csv::Writer::from_writer(text.into_bytes());
        csv.write_record(self.header())?;
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

/// What is said of a figure that has a target.
pub fn verdict(met: bool) -> &'static str {
    if met {
        "ok"
    } else {
        "-"
    }
}

/// A number as people read it: `54,000,000`.
pub fn grouped(number: usize) -> String {
    HumanCount(number as u64).to_string()
}

/// Says about how long a bench will take, as measured on a machine with two cores.
pub fn announce(what: &str, seconds: f64) {
    eprintln!(
        "{what}: about {} on a machine with two cores",
        crate::time::clock::said(seconds)
    );
}

/// Facts about the machine and the time, by name.
pub fn facts() -> Vec<(&'static str, String)> {
    vec![
        ("date", said_by("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])),
        ("processor", found_in("/proc/cpuinfo", "model name")),
        (
            "cores",
            std::thread::available_parallelism()
                .map_or_else(|_| "unknown".into(), |n| n.to_string()),
        ),
        ("memory", found_in("/proc/meminfo", "MemTotal")),
        ("system", said_by("uname", &["-sr"])),
        (
            "huge pages",
            found_in("/sys/kernel/mm/transparent_hugepage/enabled", ""),
        ),
        ("rustc", said_by("rustc", &["--version"])),
        (
            "commit",
            said_by("git", &["describe", "--always", "--dirty", "--abbrev=12"]),
        ),
    ]
}

fn found_in(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or("unknown");
    line.split_once(':')
        .map_or(line, |(_, fact)| fact)
        .trim()
        .to_string()
}

fn said_by(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_string()
        }
        _ => "unknown".to_string(),
    }
}

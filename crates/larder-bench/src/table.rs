//! Reports of measurements: a table on the terminal, a CSV with facts of the machine.

use crate::result::{Failure, Outcome};
use crate::stats::{distinct, Samples};
use indicatif::HumanCount;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Figures of several runs, in lines, which have keys, and columns. Each is reported as the median.
pub struct Report {
    title: String,
    /// The names of the parts of a key.
    keys: Vec<&'static str>,
    /// Name and decimals of each column.
    columns: Vec<(String, usize)>,
    /// The runs of each field: by the key of its line and the name of its column.
    fields: Samples<(Vec<String>, String)>,
    notes: Vec<String>,
}

/// The name of a field.
fn field(key: &[&str], column: &str) -> (Vec<String>, String) {
    let key = key.iter().map(|part| part.to_string());
    (key.collect(), column.to_string())
}

impl Report {
    /// An empty report. The lines' keys have parts of these names.
    pub fn new(title: impl Into<String>, keys: &[&'static str]) -> Self {
        Report {
            title: title.into(),
            keys: keys.to_vec(),
            columns: Vec::new(),
            fields: Samples::new(),
            notes: Vec::new(),
        }
    }

    /// Adds one run's figure. Lines and columns stand in the order in which they are first named.
    pub fn add(&mut self, key: &[&str], column: &str, decimals: usize, figure: f64) {
        if self.columns.iter().all(|(name, _)| name != column) {
            self.columns.push((column.to_string(), decimals));
        }
        self.fields.add(field(key, column), figure);
    }

    /// The median of a figure's runs.
    pub fn median(&self, key: &[&str], column: &str) -> Option<f64> {
        self.fields.median(&field(key, column))
    }

    /// The median of a line's figure, divided by that of another line.
    pub fn ratio(&self, key: &[&str], other: &[&str], column: &str) -> Option<f64> {
        Some(self.median(key, column)? / self.median(other, column)?)
    }

    /// Adds a line below the table on a figure, if the figure was measured.
    pub fn judge(&mut self, figure: Option<f64>, describe: impl FnOnce(f64) -> String) {
        self.notes.extend(figure.map(describe));
    }

    /// Adds a line below the table.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The header, and then the lines.
    fn rows(&self) -> Vec<Vec<String>> {
        let names = self.columns.iter().map(|(name, _)| name.clone());
        let keys = self.keys.iter().map(|key| key.to_string());
        let header = keys.chain(names).collect();
        let lines = distinct(self.fields.iter().map(|((key, _), _)| key));
        let row = |key: &Vec<String>| {
            let cells = self.columns.iter().map(|(column, decimals)| {
                // A field without a figure is empty.
                let figure = self.fields.median(&(key.clone(), column.clone()));
                figure.map_or(String::new(), |figure| format!("{figure:.decimals$}"))
            });
            key.iter().cloned().chain(cells).collect()
        };
        [header]
            .into_iter()
            .chain(lines.into_iter().map(row))
            .collect()
    }

    /// Prints the table, and writes it to a file if one is given.
    ///
    /// # Errors
    /// If nothing was measured; I/O errors.
    pub fn finish(&self, out: Option<PathBuf>) -> Outcome {
        if self.columns.is_empty() {
            let what = "nothing was measured (is there a structure of that name?)";
            return Err(Failure::Impossible(what.into()));
        }
        self.print();
        if let Some(path) = out {
            let failed = |error| Failure::Impossible(format!("{}: {error}", path.display()));
            self.write(&path).map_err(failed)?;
            eprintln!("written: {}", path.display());
        }
        Ok(())
    }

    /// For people. The CSV has the same fields for programs.
    fn print(&self) {
        let rows = self.rows();
        println!("\n{}\n", self.title);
        for row in &rows {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                // Each column is as wide as its widest field, or its heading.
                let widths = rows.iter().map(|row| row[i].chars().count());
                let w = widths.max().unwrap_or(0);
                // Names are left-aligned, figures right-aligned.
                line += &match i < self.keys.len() {
                    true => format!("{cell:<w$}  "),
                    false => format!("{cell:>w$}  "),
                };
            }
            println!("{}", line.trim_end());
        }
        println!();
        self.notes.iter().for_each(|note| println!("{note}"));
    }

    /// Writes the table as CSV, the facts of the machine as comments before the header.
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

/// The text for a figure that has met its target, or not.
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

/// Facts about the machine and the time, by name.
pub fn facts() -> Vec<(&'static str, String)> {
    vec![
        ("date", output_of("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])),
        ("processor", line_of("/proc/cpuinfo", "model name")),
        (
            "cores",
            std::thread::available_parallelism()
                .map_or_else(|_| "unknown".into(), |n| n.to_string()),
        ),
        ("memory", line_of("/proc/meminfo", "MemTotal")),
        ("system", output_of("uname", &["-sr"])),
        (
            "huge pages",
            line_of("/sys/kernel/mm/transparent_hugepage/enabled", ""),
        ),
        ("rustc", output_of("rustc", &["--version"])),
        (
            "commit",
            output_of("git", &["describe", "--always", "--dirty", "--abbrev=12"]),
        ),
    ]
}

fn line_of(path: &str, name: &str) -> String {
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

fn output_of(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_string()
        }
        _ => "unknown".to_string(),
    }
}

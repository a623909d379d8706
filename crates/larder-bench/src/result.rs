//! The results of a study: `DIR/<study>.json` and `DIR/<study>.csv`. A report is drawn from these
//! files only.
//!
//! ```text
//!  Study ── machine, commit, settings        what was measured on, and how
//!    ├─ plots       id, title, axes          a plot has the points and figures that name it
//!    ├─ points      plot, series, x, y       ours: median, least and most of some runs
//!    ├─ published   plot, series, x, value   what the paper says for the same place, if it does
//!    ├─ skipped     texts                    what was not measured, and why
//!    └─ checks      texts                    what was asserted; a study that ends has passed all
//!
//!  Recording        a tree that adapted, event by event: `DIR/catree-adapting.json`
//! ```

mod recording;

pub use recording::{BaseSample, Event, EventKind, Phase, Recording, Sample};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// One study, measured once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Its name, which is the name of its files, too.
    pub study: String,
    /// What it is, in one line.
    pub title: String,
    /// The paper or page that it re-runs.
    pub source: String,
    /// What it was measured on, and when.
    #[serde(flatten)]
    pub origin: Origin,
    /// How long it took.
    pub seconds: f64,
    /// What it was asked for, by option.
    pub settings: BTreeMap<String, String>,
    /// What was not measured, and why.
    pub skipped: Vec<String>,
    /// What papers say.
    pub published: Vec<Published>,
    /// What was measured.
    pub points: Vec<Point>,
    /// How points belong together.
    pub plots: Vec<Plot>,
    /// What was asserted on the way.
    pub checks: Vec<String>,
}

/// What figures were measured on, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Facts of the machine and of the compiler, by name.
    pub machine: BTreeMap<String, String>,
    /// The commit that was built, with `-dirty` if it was changed.
    pub commit: String,
    /// When it began: UTC, as in `2026-11-22T06:00:00Z`.
    pub started: String,
}

/// A figure that a paper gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The id of the plot that it belongs to.
    pub plot: String,
    /// The series, by the name that it has in the points.
    pub series: String,
    /// Where it lies.
    pub x: X,
    /// The figure.
    pub value: f64,
    /// Its unit, that of the points.
    pub unit: String,
    /// Where it is said.
    pub source: String,
}

/// A place on the x axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum X {
    /// On a linear or logarithmic axis.
    Number(f64),
    /// On an axis of names, which stand in the order in which they are first met.
    Name(String),
}

/// What some runs measured: the median, and how far they spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The id of its plot.
    pub plot: String,
    /// What was measured: a structure, with its options if they matter here.
    pub series: String,
    /// Where.
    pub x: X,
    /// The median of the runs.
    pub y: f64,
    /// The least of the runs.
    pub low: f64,
    /// The most of the runs.
    pub high: f64,
    /// The unit of the three.
    pub unit: String,
    /// How many runs there were.
    pub runs: usize,
    /// Which way is better.
    pub better: Better,
}

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times, bytes.
    Less,
    /// Throughput.
    More,
}

/// A plot: a title and two axes. What is in it names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// A short name without blanks, different in each study.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What x is.
    pub x_label: String,
    /// What y is, with its unit.
    pub y_label: String,
    /// How x is laid out.
    pub x_scale: Scale,
    /// How y is laid out: never `Names`.
    pub y_scale: Scale,
    /// What a reader should know: how it was measured, where the published figures come from. May
    /// be empty.
    pub note: String,
}

/// How an axis is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Logarithmic.
    Log,
    /// Linear, from zero.
    Linear,
    /// One place a name.
    Names,
}

impl From<&str> for X {
    fn from(name: &str) -> X {
        X::Name(name.to_string())
    }
}

impl From<String> for X {
    fn from(name: String) -> X {
        X::Name(name)
    }
}

impl From<f64> for X {
    fn from(number: f64) -> X {
        X::Number(number)
    }
}

impl From<usize> for X {
    fn from(number: usize) -> X {
        X::Number(number as f64)
    }
}

impl fmt::Display for X {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            X::Number(number) => number.fmt(f),
            X::Name(name) => f.write_str(name),
        }
    }
}

impl Plot {
    /// A plot as a line of a table, the unit of its figures, and which way they are better:
    /// `id | title | x, scale | y, scale | unit, better | note`.
    ///
    /// # Panics
    /// If it is no such line.
    pub fn said(line: &str) -> (Plot, String, Better) {
        // Plots are written as lines of text in the sources of studies, so that each is readable as
        // a whole. A wrong one is a fault of the program.
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [id, title, x, y, unit, note] = parts[..] else {
            panic!("{line:?} has not the six parts of a plot");
        };
        // A label and a word, such as `seconds, log`.
        let ((x_label, x_scale), (y_label, y_scale)) = (pair(x), pair(y));
        let plot = Plot {
            id: id.into(),
            title: title.into(),
            x_label,
            y_label,
            x_scale,
            y_scale,
            note: note.into(),
        };
        let (unit, better) = pair(unit);
        (plot, unit, better)
    }
}

/// `label, word`, where the word is written as in files.
fn pair<T: for<'de> Deserialize<'de>>(said: &str) -> (String, T) {
    // A label may contain commas, so the word is behind the last one.
    let (label, word) = said.rsplit_once(',').unwrap_or_default();
    let word = serde_json::from_value(word.trim().into());
    let word = word.unwrap_or_else(|why| panic!("{said:?} of a plot: {why}"));
    (label.into(), word)
}

impl Better {
    /// As it is written in files.
    pub fn name(self) -> &'static str {
        match self {
            Better::Less => "less",
            Better::More => "more",
        }
    }
}

/// What is measured or checked, unless it fails.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a study ended early. Nothing is written then.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A structure gave a wrong answer.
    #[error("wrong answer of {structure}: {what}")]
    Wrong {
        /// The name of the structure.
        structure: String,
        /// What it said and should have said.
        what: String,
    },
    /// What was asked for can't be done.
    #[error("{0}")]
    Impossible(String),
    /// A file.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Failure {
    /// A wrong answer.
    pub fn wrong(structure: &str, what: impl Into<String>) -> Failure {
        Failure::Wrong {
            structure: structure.to_owned(),
            what: what.into(),
        }
    }
}

/// Ends with a wrong answer of a structure, unless it is right: `ensure!(right, name, "{key} is
/// gone")`.
macro_rules! ensure {
    ($right:expr, $structure:expr, $($what:tt)*) => {
        if !$right {
            return Err($crate::result::Failure::wrong($structure, format!($($what)*)));
        }
    };
}
pub(crate) use ensure;

const COLUMNS: [&str; 10] = [
    "study", "plot", "series", "x", "y", "low", "high", "unit", "runs", "better",
];

impl Study {
    /// Writes `<study>.json` and `<study>.csv` into the folder, which is made if it is not there;
    /// gives the path of the first. The CSV has a line a point.
    ///
    /// # Errors
    /// Those of the files.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        // The CSV first: a folder with the JSON of a study has both.
        std::fs::create_dir_all(folder)?;
        self.write_csv(&folder.join(format!("{}.csv", self.study)))?;
        let path = folder.join(format!("{}.json", self.study));
        write_json(self, &path)?;
        Ok(path)
    }

    fn write_csv(&self, path: &Path) -> io::Result<()> {
        let mut csv = csv::Writer::from_path(path)?;
        csv.write_record(COLUMNS)?;
        for point in &self.points {
            // Figures are written with all digits, so that reading them gives the same figures.
            let figures = [point.y, point.low, point.high].map(|figure| figure.to_string());
            let [y, low, high] = figures;
            csv.write_record([
                &self.study,
                &point.plot,
                &point.series,
                &point.x.to_string(),
                &y,
                &low,
                &high,
                &point.unit,
                &point.runs.to_string(),
                point.better.name(),
            ])?;
        }
        csv.flush()
    }

    /// Reads what [`Study::write`] wrote as JSON.
    ///
    /// # Errors
    /// Those of the file; `InvalidData` if it is no study.
    pub fn read(path: &Path) -> io::Result<Study> {
        read_json(path)
    }
}

/// Whole or not at all: a reader never sees half a file.
fn write_json(what: &impl Serialize, path: &Path) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(what)?;
    text.push('\n');
    // Renaming replaces a file in one step. A study writes while it runs, and a report may be drawn
    // meanwhile.
    let half = path.with_extension("json.new");
    std::fs::write(&half, text)?;
    std::fs::rename(half, path)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Study {
        Study {
            study: "example".into(),
            origin: Origin {
                machine: BTreeMap::from([("cores".into(), "2".into())]),
                ..Origin::default()
            },
            skipped: vec!["54 M keys: they would take more memory than there is".into()],
            points: vec![Point {
                plot: "insert".into(),
                series: "set, \"quoted\"".into(),
                x: 700.0.into(),
                y: 41.5,
                low: 40.0,
                high: 43.0,
                unit: "ns".into(),
                runs: 3,
                better: Better::Less,
            }],
            published: vec![Published {
                plot: "insert".into(),
                series: "set".into(),
                x: "21 M".into(),
                value: 980.0,
                unit: "MB".into(),
                source: "table 2".into(),
            }],
            ..Study::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let study = example();
        let path = study.write(folder.path()).expect("written");
        assert_eq!(Study::read(&path).expect("read"), study);
        let csv = std::fs::read_to_string(folder.path().join("example.csv")).expect("there");
        assert_eq!(
            csv.lines().nth(1),
            Some("example,insert,\"set, \"\"quoted\"\"\",700,41.5,40,43,ns,3,less")
        );
        let text = std::fs::read_to_string(&path).expect("there");
        assert!(text.contains("\"x\": 700.0") && text.contains("\"x\": \"21 M\""));
    }

    #[test]
    fn what_is_no_study_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, "{\"study\": 7}").expect("written");
        let error = Study::read(file.path()).expect_err("it is none");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

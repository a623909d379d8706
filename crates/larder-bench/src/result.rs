//! The results of a study: `DIR/<study>.json` and `DIR/<study>.csv`. Reports are drawn from these
//! files only.
//!
//! ```text
//!  Study ── machine, commit, settings        what was measured on, and how
//!    ├─ plots       id, title, axes          a plot has the points and figures that name it
//!    ├─ points      plot, series, x, y       measured: median, least and most of some runs
//!    ├─ published   plot, series, x, value   figures of papers at the same places
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
    /// The name of the study and of its files.
    pub study: String,
    pub title: String,
    /// The paper or page that the study re-runs.
    pub source: String,
    #[serde(flatten)]
    pub origin: Origin,
    pub seconds: f64,
    /// Options and their values.
    pub settings: BTreeMap<String, String>,
    pub skipped: Vec<String>,
    pub published: Vec<Published>,
    pub points: Vec<Point>,
    pub plots: Vec<Plot>,
    pub checks: Vec<String>,
}

/// Where and when figures were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Facts of the machine and of the compiler, by name.
    pub machine: BTreeMap<String, String>,
    /// The commit that was built, with `-dirty` if files were changed.
    pub commit: String,
    /// UTC, as in `2026-11-22T06:00:00Z`.
    pub started: String,
}

/// From facts by their names. `commit` and `date` have fields of their own.
impl FromIterator<(String, String)> for Origin {
    fn from_iter<F: IntoIterator<Item = (String, String)>>(facts: F) -> Origin {
        let mut machine: BTreeMap<_, _> = facts.into_iter().collect();
        let mut take = |name| machine.remove(name).unwrap_or_default();
        Origin {
            commit: take("commit"),
            started: take("date"),
            machine,
        }
    }
}

/// A figure of a paper, in the unit of the points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    pub plot: String,
    pub series: String,
    pub x: X,
    pub value: f64,
    pub unit: String,
    pub source: String,
}

/// A place on the x axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum X {
    /// On a linear or logarithmic axis.
    Number(f64),
    /// On an axis of names, in the order in which they first appear.
    Name(String),
}

/// The figures of some runs: the median, the least and the most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub plot: String,
    /// A structure, with its options where they matter.
    pub series: String,
    pub x: X,
    pub y: f64,
    pub low: f64,
    pub high: f64,
    pub unit: String,
    pub runs: usize,
    pub better: Better,
}

/// Which figures are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times, bytes.
    #[default]
    Less,
    /// Throughput.
    More,
}

/// A title and two axes. Points name their plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// A short name without blanks, unique in the study.
    pub id: String,
    pub title: String,
    pub x_label: String,
    /// The label of the y axis, with the unit.
    pub y_label: String,
    pub x_scale: Scale,
    /// Never `Names`.
    pub y_scale: Scale,
    /// How the figures were measured, or where they come from. May be empty.
    pub note: String,
    /// The unit of the points. Files have it in each point.
    #[serde(default, skip_serializing)]
    pub unit: String,
    #[serde(default, skip_serializing)]
    pub better: Better,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    Log,
    /// From zero.
    Linear,
    /// A place for each name.
    Names,
}

impl From<&str> for X {
    fn from(name: &str) -> X {
        X::Name(name.to_string())
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

impl Point {
    /// A point from its figure: the median, the least and the most.
    pub fn new(
        plot: &str,
        series: &str,
        x: X,
        [y, low, high]: [f64; 3],
        runs: usize,
        unit: &str,
        better: Better,
    ) -> Point {
        let [plot, series, unit] = [plot, series, unit].map(String::from);
        Point {
            plot,
            series,
            x,
            y,
            low,
            high,
            unit,
            runs,
            better,
        }
    }
}

/// A published figure is a point without runs.
impl From<&Published> for Point {
    fn from(p: &Published) -> Point {
        let (x, figure) = (p.x.clone(), [p.value; 3]);
        Point::new(&p.plot, &p.series, x, figure, 0, &p.unit, Better::Less)
    }
}

impl Plot {
    /// Parses a line `id | title | x label, scale | y label, scale | unit, better | note`. Studies
    /// declare their plots in such lines. Panics if the line has another form.
    pub fn parse(line: &str) -> Plot {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [id, title, x, y, unit, note] = parts[..] else {
            panic!("{line:?} has not the six parts of a plot");
        };
        // Labels may contain commas. The word behind the last one is written as in files.
        let [x, y, unit] = [x, y, unit].map(|pair| pair.rsplit_once(',').unwrap_or_default());
        let plot = serde_json::json!({
            "id": id, "title": title, "note": note,
            "x_label": x.0, "x_scale": x.1.trim(),
            "y_label": y.0, "y_scale": y.1.trim(),
            "unit": unit.0, "better": unit.1.trim(),
        });
        serde_json::from_value(plot).unwrap_or_else(|why| panic!("{line:?} is no plot: {why}"))
    }
}

/// The result of a measurement or check.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a study ended early. Nothing is written then.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A structure gave a wrong answer.
    #[error("wrong answer of {structure}: {what}")]
    Wrong { structure: String, what: String },
    /// The request can't be fulfilled.
    #[error("{0}")]
    Impossible(String),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Failure {
    pub fn wrong(structure: &str, what: impl Into<String>) -> Failure {
        let (structure, what) = (structure.to_owned(), what.into());
        Failure::Wrong { structure, what }
    }
}

/// Returns a failure unless `right`: a wrong answer of a structure (`ensure!(right, name; "{key} is
/// gone")`), or that the request can't be fulfilled (`ensure!(right; "there is no {name}")`).
macro_rules! ensure {
    ($right:expr; $($what:tt)*) => {
        if !$right {
            return Err($crate::result::Failure::Impossible(format!($($what)*)));
        }
    };
    ($right:expr, $structure:expr; $($what:tt)*) => {
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
    /// Writes `<study>.json` and `<study>.csv` into the folder, which is created if it is missing.
    /// Returns the path of the JSON.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        // The CSV first: a folder with the JSON of a study has both.
        let path = folder.join(format!("{}.csv", self.study));
        let mut csv = csv::WriterBuilder::new();
        let mut csv = csv.has_headers(false).from_path(path)?;
        csv.write_record(COLUMNS)?;
        for p in &self.points {
            // All digits are written, so that readers get the same figures.
            let figures = [p.y, p.low, p.high].map(|figure| figure.to_string());
            let place = (&self.study, &p.plot, &p.series, p.x.to_string());
            csv.serialize((place, figures, &p.unit, p.runs, p.better))?;
        }
        csv.flush()?;
        let path = folder.join(format!("{}.json", self.study));
        write_json(self, &path)?;
        Ok(path)
    }
}

/// Writes a file and renames it, so that readers never see half of it.
pub fn write_json(value: &impl Serialize, path: &Path) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    let half = path.with_extension("json.new");
    std::fs::write(&half, text)?;
    std::fs::rename(half, path)
}

/// Reads a study or a recording. The error is `InvalidData` if the file isn't one.
pub fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_study_is_read_again() {
        let example = serde_json::json!({
            "study": "example", "title": "", "source": "", "machine": {"cores": "2"}, "commit": "",
            "started": "", "seconds": 0.0, "settings": {}, "skipped": ["54 M keys"],
            "published": [{"plot": "insert", "series": "set", "x": "21 M", "value": 980.0,
                "unit": "MB", "source": "table 2"}],
            "points": [{"plot": "insert", "series": "set, \"quoted\"", "x": 700.0, "y": 41.5,
                "low": 40.0, "high": 43.0, "unit": "ns", "runs": 3, "better": "less"}],
            "plots": [], "checks": [],
        });
        let study: Study = serde_json::from_value(example.clone()).expect("a study");
        let folder = tempfile::tempdir().expect("a folder");
        let path = study.write(folder.path()).expect("written");
        assert_eq!(read_json::<Study>(&path).expect("read"), study);
        let json: serde_json::Value = read_json(&path).expect("JSON");
        assert_eq!(json, example);
        let csv = std::fs::read_to_string(folder.path().join("example.csv")).expect("there");
        let line = "example,insert,\"set, \"\"quoted\"\"\",700,41.5,40,43,ns,3,less";
        assert_eq!(csv.lines().nth(1), Some(line));
    }

    #[test]
    fn another_file_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, "{\"study\": 7}").expect("written");
        let error = read_json::<Study>(file.path()).expect_err("it is none");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

//! The files of a folder: studies, the recording of a tree, `bench.csv` of `make bench` and
//! `wide.csv` of `make bench-wide`.

use crate::report::{bench_csv, failed, no_result};
use crate::result::{Failure, Outcome, Recording, Study};
use crate::table::lines;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// The results in one folder, of which a report is made.
#[derive(Debug, Default)]
pub struct Findings {
    /// The folder that was read.
    pub folder: PathBuf,
    /// The studies, in the order of the report.
    pub studies: Vec<Study>,
    /// The recording of a tree that adapts.
    pub tree: Option<Recording>,
    /// The cells of `wide.csv`.
    pub(crate) wide: Option<Wide>,
}

/// The order of the studies: what is nearest to a user's program comes first.
const ORDER: [&str; 7] = [
    "make-bench",
    "erlang",
    "ets-2003",
    "ets-2013",
    "ordered-set",
    "big-memory",
    "peers",
];

impl Findings {
    /// Reads every `*.json` of the folder, `bench.csv` and `wide.csv`. A folder without results is
    /// an error.
    pub fn read(folder: &Path) -> Outcome<Findings> {
        let io = |error| failed(folder, error);
        let entries = std::fs::read_dir(folder).map_err(io)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths: Vec<_> = paths.collect::<Result<_, _>>().map_err(io)?;
        // Sorted files give the same report each time.
        paths.sort();
        let mut found = Findings {
            folder: folder.to_path_buf(),
            ..Findings::default()
        };
        for path in paths.into_iter().filter(|path| path.is_file()) {
            found.add(&path)?;
        }
        if found.studies.is_empty() && found.tree.is_none() && found.wide.is_none() {
            let results = "*.json, bench.csv of `make bench` or wide.csv of `make bench-wide`";
            let what = format!("{} has no study's result ({results})", folder.display());
            return Err(Failure::Impossible(what));
        }
        let rank = |study: &Study| ORDER.iter().position(|name| *name == study.study);
        let key = |study: &Study| (rank(study).unwrap_or(ORDER.len()), study.study.clone());
        found.studies.sort_by_key(key);
        Ok(found)
    }

    /// The results of the study of this name.
    pub fn study(&self, name: &str) -> Option<&Study> {
        self.studies.iter().find(|study| study.study == name)
    }

    /// Adds a file that is a result. Ignores others.
    fn add(&mut self, path: &Path) -> Outcome {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let study: Study = match &*name {
            "catree-adapting.json" => {
                self.tree = Some(parse(path, json)?);
                return Ok(());
            }
            "wide.csv" => {
                self.wide = Some(parse(path, wide)?);
                return Ok(());
            }
            "bench.csv" => parse(path, bench_csv::parse)?,
            name if name.ends_with(".json") => parse(path, json)?,
            _ => return Ok(()),
        };
        // Two files of one study would be drawn as one.
        if self.study(&study.study).is_some() {
            let also = format!("another file is of the study {}, too", study.study);
            return Err(no_result(path, also));
        }
        self.studies.push(study);
        Ok(())
    }
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn parse<T>(path: &Path, parse: fn(&str) -> Result<T, String>) -> Outcome<T> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(path, error))?;
    parse(&text).map_err(|why| no_result(path, why))
}

/// A cell of `wide.csv`. One that was left out has no ratio.
#[derive(Debug, serde::Deserialize)]
pub struct Cell {
    pub operation: String,
    pub kind: String,
    pub rows: u64,
    /// Larder's time relative to that of ets.
    pub ratio: Option<f64>,
}

/// The cells of a run that have a ratio, and the number of the others.
#[derive(Debug, Default)]
pub struct Wide {
    pub cells: Vec<Cell>,
    pub left_out: usize,
}

/// Parses `wide.csv` of `make bench-wide`. Another file is an error.
pub fn wide(text: &str) -> Result<Wide, String> {
    let all = lines::<Cell>(text)?.into_iter();
    let (cells, left_out): (Vec<_>, Vec<_>) = all.partition(|cell| cell.ratio.is_some());
    let left_out = left_out.len();
    Ok(Wide { cells, left_out })
}

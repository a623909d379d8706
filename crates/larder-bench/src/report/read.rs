//! The files of a folder: studies, a tree's recording, `bench.csv` of `make bench` and `wide.csv`
//! of `make bench-wide`.

use crate::report::lines::{self, Wide};
use crate::report::{bench_csv, Error};
use crate::result::{Recording, Study};
use std::path::{Path, PathBuf};

/// All that a folder has to tell.
#[derive(Debug, Default)]
pub struct Findings {
    /// Where they come from.
    pub folder: PathBuf,
    /// The studies, by name.
    pub studies: Vec<Study>,
    /// A tree that adapted.
    pub tree: Option<Recording>,
    /// The cells of `make bench-wide`.
    pub(crate) wide: Option<Wide>,
}

/// The recording's file.
const TREE: &str = "catree-adapting.json";
/// The file of `make bench`.
const BENCH: &str = "bench.csv";
/// The file of `make bench-wide`.
const WIDE: &str = "wide.csv";

impl Findings {
    /// Reads every `*.json` of the folder, `bench.csv` and `wide.csv`. Files in folders below are
    /// not looked at.
    ///
    /// # Errors
    /// [`Error`], also if there is nothing.
    pub fn read(folder: &Path) -> Result<Findings, Error> {
        let mut found = Findings {
            folder: folder.to_path_buf(),
            ..Findings::default()
        };
        // Each file is recognised by its name. They come sorted, so that the page is the same each
        // time.
        for path in files(folder)? {
            found.take(&path)?;
        }
        if found.studies.is_empty() && found.tree.is_none() && found.wide.is_none() {
            return Err(Error::Nothing(folder.to_path_buf()));
        }
        found
            .studies
            .sort_by_key(|study| (rank(&study.study), study.study.clone()));
        Ok(found)
    }

    fn take(&mut self, path: &Path) -> Result<(), Error> {
        let name = path.file_name().unwrap_or_default();
        // A recording of a tree is no study, and has its own part of the page.
        if name == TREE {
            self.tree = Some(Recording::read(path).map_err(|error| at(path, error))?);
            return Ok(());
        }
        if name == WIDE {
            self.wide = Some(understood(path, lines::wide)?);
            return Ok(());
        }
        let study = if name == BENCH {
            understood(path, bench_csv::parse)?
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            Study::read(path).map_err(|error| at(path, error))?
        } else {
            // Other files of the folder are ignored.
            return Ok(());
        };
        // Two files of one study would be drawn as one, with points of both.
        if self.studies.iter().any(|other| other.study == study.study) {
            return Err(Error::Twice(path.to_path_buf(), study.study));
        }
        self.studies.push(study);
        Ok(())
    }
}

fn understood<T>(path: &Path, parse: fn(&str) -> Result<T, String>) -> Result<T, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Io(path.into(), error))?;
    parse(&text).map_err(|why| Error::Form(path.into(), why))
}

/// What is told first: the nearer to a user's program the better.
const ORDER: [&str; 7] = [
    "make-bench",
    "erlang",
    "ets-2003",
    "ets-2013",
    "ordered-set",
    "big-memory",
    "peers",
];

fn rank(study: &str) -> usize {
    let known = ORDER.iter().position(|name| *name == study);
    known.unwrap_or(ORDER.len())
}

/// What kept a file from being read, with its path.
fn at(path: &Path, error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::InvalidData {
        Error::Form(path.to_path_buf(), error.to_string())
    } else {
        Error::Io(path.to_path_buf(), error)
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder)?;
        let paths: Result<Vec<_>, _> = entries.map(|e| e.map(|e| e.path())).collect();
        let mut paths = paths?;
        paths.retain(|path| path.is_file());
        paths.sort();
        Ok(paths)
    };
    list().map_err(|error| Error::Io(folder.to_path_buf(), error))
}

//! A tree that adapted, event by event: `DIR/catree-adapting.json`.

use super::{read_json, write_json, Origin};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// How a contention-adapting tree adapted, from the first base to the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// What it is, in one line.
    pub title: String,
    /// What a reader should know.
    pub note: String,
    /// What it was recorded on, and when.
    #[serde(flatten)]
    pub origin: Origin,
    /// How long it took.
    pub seconds: f64,
    /// How many threads worked; they are called 0, 1 and so on.
    pub threads: usize,
    /// All keys are in this range.
    pub keys: [f64; 2],
    /// The settings of the tree, by option.
    pub settings: BTreeMap<String, String>,
    /// What the threads did from when on, by time.
    pub phases: Vec<Phase>,
    /// Splits and joins, by time.
    pub events: Vec<Event>,
    /// The bases as they were at some times, by time.
    pub samples: Vec<Sample>,
}

/// What the threads do from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Milliseconds since the beginning.
    pub at: f64,
    /// What they do.
    pub text: String,
}

/// A base that was divided, or two that became one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Milliseconds since the beginning.
    pub at: f64,
    /// What happened.
    pub event: Happened,
    /// The number of the base that counted over (or under) the limit.
    pub base: u64,
    /// The number of its neighbour, if the two were joined.
    pub with: Option<u64>,
    /// The numbers of the bases that took its place: two after a split, one after a join.
    pub becomes: Vec<u64>,
    /// The keys of the bases that there are now: from the first to the last of these; between the
    /// two new bases of a split lies the third.
    pub keys: [f64; 2],
    /// Where the two new bases of a split meet.
    pub at_key: Option<f64>,
    /// The base's count of contention when it went over the limit.
    pub count: i64,
    /// How many entries it had.
    pub entries: usize,
    /// The thread that did it.
    pub thread: usize,
}

/// What happened to a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Happened {
    /// It was divided.
    Split,
    /// It was joined to a neighbour.
    Join,
}

/// All bases at one time, and where the threads were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds since the beginning.
    pub at: f64,
    /// The bases in the order of their keys.
    pub bases: Vec<BaseNow>,
    /// The key that each thread last worked on; none before its first and after its last.
    pub threads: Vec<Option<f64>>,
}

/// One base at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseNow {
    /// Its number: that of the event which made it, or 0 for the first of all.
    pub base: u64,
    /// The first key that may be in it.
    pub from: f64,
    /// The routes above it.
    pub depth: usize,
    /// Its count of contention.
    pub count: i64,
    /// How many entries it has.
    pub entries: usize,
}

impl Recording {
    /// Writes itself as JSON.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_json(self, path)
    }

    /// Reads what [`Recording::write`] wrote.
    ///
    /// # Errors
    /// Those of the file; `InvalidData` if it is no recording.
    pub fn read(path: &Path) -> io::Result<Recording> {
        read_json(path)
    }
}

//! The recording of a contention-adapting tree, event by event: `DIR/catree-adapting.json`.

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
    /// The number of threads, which are numbered from 0.
    pub threads: usize,
    /// All keys are in this range.
    pub keys: [f64; 2],
    /// The settings of the tree, by option.
    pub settings: BTreeMap<String, String>,
    /// The phases of the threads' work, by time.
    pub phases: Vec<Phase>,
    /// Splits and joins, by time.
    pub events: Vec<Event>,
    /// Samples of all bases, by time.
    pub samples: Vec<Sample>,
}

/// The work of the threads from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Milliseconds since the beginning.
    pub at: f64,
    /// What they do.
    pub text: String,
}

/// A split of a base, or a join of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Milliseconds since the beginning.
    pub at: f64,
    /// Split or join.
    pub event: EventKind,
    /// The number of the base whose contention count passed a limit.
    pub base: u64,
    /// The number of its neighbour, if the two were joined.
    pub with: Option<u64>,
    /// The numbers of the bases that replaced it: two after a split, one after a join.
    pub becomes: Vec<u64>,
    /// The range of keys of the new bases.
    pub keys: [f64; 2],
    /// The bound between the two new bases of a split.
    pub at_key: Option<f64>,
    /// The base's contention count when it passed the limit.
    pub count: i64,
    /// The number of its entries.
    pub entries: usize,
    /// The thread that split or joined it.
    pub thread: usize,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// The base was split.
    Split,
    /// The base was joined with a neighbour.
    Join,
}

/// All bases at one time, and the threads' positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds since the beginning.
    pub at: f64,
    /// The bases in the order of their keys.
    pub bases: Vec<BaseSample>,
    /// The key that each thread last worked on; none before its first and after its last.
    pub threads: Vec<Option<f64>>,
}

/// One base at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseSample {
    /// Its number: that of the event which made it, or 0 for the first of all.
    pub base: u64,
    /// The lower bound of its keys.
    pub from: f64,
    /// The number of route nodes above it.
    pub depth: usize,
    /// Its contention count.
    pub count: i64,
    /// The number of its entries.
    pub entries: usize,
}

impl Recording {
    /// Writes itself as JSON.
    ///
    /// # Errors
    /// I/O errors.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_json(self, path)
    }

    /// Reads what [`Recording::write`] wrote.
    ///
    /// # Errors
    /// I/O errors; `InvalidData` if the file isn't a recording.
    pub fn read(path: &Path) -> io::Result<Recording> {
        read_json(path)
    }
}

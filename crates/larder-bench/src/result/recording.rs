//! The recording of a contention-adapting tree, event by event: `DIR/catree-adapting.json`. Times
//! are milliseconds since the first phase.

use super::Origin;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a contention-adapting tree adapted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    pub title: String,
    pub note: String,
    #[serde(flatten)]
    pub origin: Origin,
    pub seconds: f64,
    /// The number of threads, which are numbered from 0.
    pub threads: usize,
    pub keys: [f64; 2],
    pub settings: BTreeMap<String, String>,
    pub phases: Vec<Phase>,
    pub events: Vec<Event>,
    pub samples: Vec<Sample>,
}

/// The work of the threads from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    pub at: f64,
    pub text: String,
}

/// A split of a base, or a join of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub at: f64,
    pub event: EventKind,
    /// The base whose contention count passed a limit.
    pub base: u64,
    /// The neighbour that it was joined with.
    pub with: Option<u64>,
    /// The new bases: two after a split, one after a join.
    pub becomes: Vec<u64>,
    /// The range of keys of the new bases.
    pub keys: [f64; 2],
    /// The bound between the new bases of a split.
    pub at_key: Option<f64>,
    /// The contention count that passed the limit.
    pub count: i64,
    pub entries: usize,
    pub thread: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    Split,
    Join,
}

/// All bases at one time, in the order of their keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: f64,
    pub bases: Vec<BaseSample>,
    /// The key that each thread last worked on, unless it rests.
    pub threads: Vec<Option<f64>>,
}

/// One base at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseSample {
    /// The number that the event gave which made it. The first base is 0.
    pub base: u64,
    /// The lower bound of its keys.
    pub from: f64,
    /// The number of route nodes above it.
    pub depth: usize,
    pub count: i64,
    pub entries: usize,
}

//! Histories of operations on an index, and whether they are linearizable.
//!
//! The values of different keys are independent objects, so a history is linearizable exactly when its part for each key is (Herlihy and
//! Wing 1990, section 3.1: locality). Each part is searched by the algorithm of Wing and Gong with Lowe's memory of what was tried.

use crate::common::{key, put, remove, Hashes};
use larder_index::{pin, Batch, Change, Direction, Got, Start, Unique, Was, SHORT};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use todc_utils::linearizability::{history::Action, history::History, WGLChecker};
use todc_utils::specifications::Specification;

/// An operation on the value under one key. What it answered is None in the event of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads the value.
    Read(Option<Option<u64>>),
    /// Stores a value.
    Put(u64),
    /// Adds to the value (0 if there is none); answers the sum.
    Add(u64, Option<u64>),
    /// Removes the value; answers whether there was one.
    Remove(Option<bool>),
}

/// The value under a key, one operation after the other.
struct Register;

impl Specification for Register {
    type State = Option<u64>;
    type Operation = Op;

    fn init() -> Self::State {
        None
    }

    fn apply(operation: &Op, state: &Self::State) -> (bool, Self::State) {
        match *operation {
            Op::Read(seen) => (seen.is_none_or(|seen| seen == *state), *state),
            Op::Put(value) => (true, Some(value)),
            Op::Add(by, sum) => {
                let now = state.unwrap_or(0) + by;
                (sum.is_none_or(|sum| sum == now), Some(now))
            }
            Op::Remove(was) => (was.is_none_or(|was| was == state.is_some()), None),
        }
    }
}

/// What histories are recorded of.
pub trait Subject: Sync {
    /// The value under a key.
    fn read(&self, k: u64) -> Option<u64>;
    /// The same, found by a scan that begins at the key.
    fn scan(&self, k: u64) -> Option<u64>;
    /// Stores.
    fn put(&self, k: u64, value: u64);
    /// Adds, and gives the sum.
    fn add(&self, k: u64, by: u64) -> u64;
    /// Removes; whether there was a value.
    fn remove(&self, k: u64) -> bool;
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("a value has eight bytes"))
}

impl Subject for Box<dyn Unique> {
    // Each operation goes the way of the general form for some keys, and of the quick form for others.

    fn read(&self, k: u64) -> Option<u64> {
        if k % 2 == 0 {
            let mut out = [0; SHORT];
            return match self.get_short(&pin(), key(&k.to_be_bytes(), Hashes::Good), &mut out) {
                Got::Absent => None,
                Got::Short(len) => Some(number(&out[..len])),
                Got::Long => panic!("a value has eight bytes"),
            };
        }
        let mut out = Vec::new();
        self.get(&pin(), key(&k.to_be_bytes(), Hashes::Good), &mut out)
            .then(|| number(&out))
    }

    fn scan(&self, k: u64) -> Option<u64> {
        let (bytes, guard) = (k.to_be_bytes(), pin());
        let (mut position, mut batch) = (Vec::new(), Batch::default());
        self.position(key(&bytes, Hashes::Good), &mut position);
        batch.want = 1 + (k % 3) as usize;
        Unique::scan(
            &**self,
            &guard,
            Start::At(&position),
            Direction::Forward,
            &mut batch,
        );
        let found = !batch.is_empty() && batch.key(0) == bytes;
        found.then(|| number(batch.value(0)))
    }

    fn put(&self, k: u64, value: u64) {
        let (bytes, value) = (k.to_be_bytes(), value.to_be_bytes());
        let key = key(&bytes, Hashes::Good);
        if k % 3 == 0 {
            put(&**self, key, &value);
        } else {
            Unique::put(&**self, &pin(), key, &value, &mut |_| true);
        }
    }

    fn add(&self, k: u64, by: u64) -> u64 {
        let mut sum = 0;
        self.update(
            &pin(),
            key(&k.to_be_bytes(), Hashes::Good),
            &mut |old, scratch| {
                sum = old.map_or(0, number) + by;
                scratch.extend_from_slice(&sum.to_be_bytes());
                Change::PutScratch
            },
        );
        sum
    }

    fn remove(&self, k: u64) -> bool {
        let bytes = k.to_be_bytes();
        let key = key(&bytes, Hashes::Good);
        if k % 3 == 1 {
            return remove(&**self, key);
        }
        Unique::remove(&**self, &pin(), key, &mut |_| true) == Was::Present
    }
}

/// An event: when it happened, who did it, on which key, what.
type Event = (usize, usize, u64, Action<Op>);

/// Records the events of one process. The clock is shared by all.
pub struct Recorder<'c> {
    clock: &'c AtomicUsize,
    process: usize,
    events: Vec<Event>,
}

impl<'c> Recorder<'c> {
    pub fn new(clock: &'c AtomicUsize, process: usize) -> Self {
        Recorder {
            clock,
            process,
            events: Vec::new(),
        }
    }

    fn note(&mut self, k: u64, action: Action<Op>) {
        // Ordering: SeqCst, so that the numbers are an order of real time.
        let now = self.clock.fetch_add(1, SeqCst);
        self.events.push((now, self.process, k, action));
    }

    /// Does the operation that the random number says, on one of `keys` keys, and records it.
    pub fn step(&mut self, subject: &impl Subject, keys: u64, random: u64) {
        let (k, value) = (random % keys, random >> 40);
        let called = match random >> 32 & 7 {
            0..=2 => Op::Read(None),
            3 | 4 => Op::Add(1 + value % 5, None),
            5 | 6 => Op::Put(value),
            _ => Op::Remove(None),
        };
        self.note(k, Action::Call(called));
        let answered = match called {
            Op::Read(_) if value % 4 == 0 => Op::Read(Some(subject.scan(k))),
            Op::Read(_) => Op::Read(Some(subject.read(k))),
            Op::Add(by, _) => Op::Add(by, Some(subject.add(k, by))),
            Op::Put(value) => {
                subject.put(k, value);
                called
            }
            Op::Remove(_) => Op::Remove(Some(subject.remove(k))),
        };
        self.note(k, Action::Response(answered));
    }

    /// Reads a key.
    #[allow(dead_code)]
    pub fn read(&mut self, subject: &impl Subject, k: u64) {
        self.note(k, Action::Call(Op::Read(None)));
        let seen = subject.read(k);
        self.note(k, Action::Response(Op::Read(Some(seen))));
    }

    pub fn events(self) -> Vec<Event> {
        self.events
    }
}

/// The events of the first key whose part of the history is not linearizable.
pub fn violation(mut events: Vec<Event>) -> Option<Vec<Event>> {
    events.sort_by_key(|event| event.0);
    let mut parts: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
    for event in events {
        parts.entry(event.2).or_default().push(event);
    }
    parts.into_values().find(|part| {
        let actions = part.iter().map(|(_, who, _, what)| (*who, what.clone()));
        !WGLChecker::<Register>::is_linearizable(History::from_actions(actions.collect()))
    })
}

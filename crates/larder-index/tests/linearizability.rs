//! Histories that threads record on a few keys, at work while leaves grow, split and merge, must be linearizable.
//!
//! `LARDER_SOAK=n` runs n times as many histories; `LARDER_SEED=n` chooses others.
#![cfg(not(miri))]

mod common;
#[path = "common/history.rs"]
mod history;

use common::{configs, make, mix, Kind};
use history::{violation, Recorder, Subject};
use larder_index::Unique;
use std::sync::{atomic::AtomicUsize, Barrier};
use std::thread;

const THREADS: usize = 3;
const STEPS: u64 = 80;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

/// One history over `keys` keys. A panic says which seed and which events.
fn history(subject: &impl Subject, keys: u64, seed: u64) -> Result<(), String> {
    let (clock, start) = (AtomicUsize::new(0), Barrier::new(THREADS));
    let work = |process: usize| {
        let mut recorder = Recorder::new(&clock, process);
        start.wait();
        for i in 0..STEPS {
            recorder.step(subject, keys, mix(seed ^ mix(process as u64 * STEPS + i)));
        }
        recorder.events()
    };
    let events = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|p| scope.spawn(move || work(p))).collect();
        let events = threads.into_iter().map(|t| t.join().expect("no panic"));
        events.flatten().collect()
    });
    match violation(events) {
        None => Ok(()),
        Some(part) => Err(format!("seed {seed}, not linearizable: {part:#?}")),
    }
}

#[test]
fn histories_are_linearizable() {
    let rounds = 150 * from_environment("LARDER_SOAK", 1);
    let seed = from_environment("LARDER_SEED", 20_261_121);
    for kind in [Kind::Hash, Kind::Ordered] {
        for config in configs() {
            for (round, keys) in (0..rounds).flat_map(|r| [3, 40].map(|keys| (r, keys))) {
                let index = make(kind, config);
                let seed = mix(seed + round);
                if let Err(events) = history(&index, keys, seed) {
                    panic!("{kind:?}, {keys} keys, {config:?}, {events}");
                }
            }
        }
    }
}

/// An index that a careless hand gave an `add` of two steps.
struct Careless(Box<dyn Unique>);

impl Subject for Careless {
    fn read(&self, k: u64) -> Option<u64> {
        self.0.read(k)
    }
    fn scan(&self, k: u64) -> Option<u64> {
        Subject::scan(&self.0, k)
    }
    fn put(&self, k: u64, value: u64) {
        self.0.put(k, value);
    }
    fn add(&self, k: u64, by: u64) -> u64 {
        let sum = self.0.read(k).unwrap_or(0) + by;
        thread::yield_now();
        self.0.put(k, sum);
        sum
    }
    fn remove(&self, k: u64) -> bool {
        Subject::remove(&self.0, k)
    }
}

/// The check finds what it is for.
#[test]
fn a_lost_update_is_found() {
    let found = (0..5_000).any(|round| {
        let index = Careless(make(Kind::Hash, configs()[0]));
        history(&index, 3, mix(round)).is_err()
    });
    assert!(found, "no history showed the fault that was planted");
}

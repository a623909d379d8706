//! Histories that threads record on a few keys of each structure must be linearizable.
//!
//! `LARDER_SOAK=n` runs n times as many histories; `LARDER_SEED=n` chooses others.

#[path = "../../larder-index/tests/common/mod.rs"]
mod common;
#[path = "../../larder-index/tests/common/history.rs"]
mod history;
mod subjects;

use common::mix;
use history::{violation, Recorder};
use std::sync::{atomic::AtomicUsize, Barrier};
use std::thread;
use subjects::{orders, subjects};

const THREADS: usize = 3;
const STEPS: u64 = 80;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// One history over `keys` keys, or what is wrong with it.
fn history(subject: &impl history::Subject, keys: u64, seed: u64) -> Result<(), String> {
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
    let rounds = 40 * from_environment("LARDER_SOAK", 1);
    let seed = from_environment("LARDER_SEED", 20_261_122);
    for subject in subjects() {
        for &order in orders(subject) {
            for (round, keys) in (0..rounds).flat_map(|r| [3, 40].map(|keys| (r, keys))) {
                let index = subject.unique(order);
                if let Err(events) = history(&index, keys, mix(seed + round)) {
                    panic!("{subject:?} {order:?}, {keys} keys, {events}");
                }
            }
        }
    }
}

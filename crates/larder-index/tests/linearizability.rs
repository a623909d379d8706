//! Histories that threads record on a few keys, at work while leaves grow, split and merge, must be linearizable.
//!
//! `LARDER_SOAK=n` runs n times as many histories; `LARDER_SEED=n` chooses others.
#![cfg(not(miri))]

use larder_index::{multi_with, Unique};
use larder_testing::environment::{seed, soak};
use larder_testing::history::of_threads;
use larder_testing::registers::Registers;
use larder_testing::{configs, crowds, make, mix, registers, Kind};
use std::thread;

const THREADS: usize = 3;
const STEPS: u64 = 80;

#[test]
fn histories_are_linearizable() {
    let (rounds, seed) = (150 * soak(), seed(20_261_121));
    for kind in [Kind::Hash, Kind::Ordered] {
        for config in configs() {
            for (round, keys) in (0..rounds).flat_map(|r| [3, 40].map(|keys| (r, keys))) {
                let subject = registers::On(make(kind, config), keys);
                if let Err(wrong) = of_threads(&subject, THREADS, STEPS, mix(seed + round)) {
                    panic!("{kind:?}, {keys} keys, {config:?}, {wrong}");
                }
            }
        }
    }
}

#[test]
fn histories_of_bags_are_linearizable() {
    let (rounds, seed) = (100 * soak(), seed(20_261_121));
    for config in configs() {
        for (round, keys) in (0..rounds).flat_map(|r| [2, 20].map(|keys| (r, keys))) {
            let subject = crowds::On(multi_with(config), keys);
            if let Err(wrong) = of_threads(&subject, THREADS, STEPS, mix(seed + round)) {
                panic!("bag, {keys} keys, {config:?}, {wrong}");
            }
        }
    }
}

/// An index that a careless hand gave an `add` of two steps.
struct Careless(Box<dyn Unique>);

impl Registers for Careless {
    fn read(&self, k: u64) -> Option<u64> {
        self.0.read(k)
    }
    fn scan(&self, k: u64) -> Option<u64> {
        Registers::scan(&self.0, k)
    }
    fn has(&self, k: u64) -> bool {
        self.0.has(k)
    }
    fn put(&self, k: u64, value: u64) {
        Registers::put(&self.0, k, value);
    }
    fn put_new(&self, k: u64, value: u64) -> bool {
        self.0.put_new(k, value)
    }
    fn add(&self, k: u64, by: u64) -> u64 {
        let sum = self.0.read(k).unwrap_or(0) + by;
        thread::yield_now();
        Registers::put(&self.0, k, sum);
        sum
    }
    fn remove(&self, k: u64) -> bool {
        Registers::remove(&self.0, k)
    }
    fn remove_even(&self, k: u64) -> Option<u64> {
        self.0.remove_even(k)
    }
}

/// The check finds what it is for. (Faults in the structures themselves are planted in builds for the model checker.)
#[test]
fn a_lost_update_is_found() {
    let found = (0..5_000).any(|round| {
        let subject = registers::On(Careless(make(Kind::Hash, configs()[0])), 3);
        of_threads(&subject, THREADS, STEPS, mix(round)).is_err()
    });
    assert!(found, "no history showed the fault that was planted");
}

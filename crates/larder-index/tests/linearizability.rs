//! Histories that threads record on a few keys, at work while leaves grow, split and merge, must be
//! linearizable.
//!
//! `LARDER_SOAK=n` runs n times as many histories; `LARDER_SEED=n` chooses others.
#![cfg(not(miri))]

use larder_index::{multi_with, pin, Unique};
use larder_testing::environment::{seed, soak};
use larder_testing::history::{of_threads, Recorder, Subject};
use larder_testing::registers::Registers;
use larder_testing::{configs, key, make, mix, registers, value_lists, Hashes, Kind};
use std::thread;

const THREADS: usize = 3;
const STEPS: u64 = 80;

#[test]
fn histories_are_linearizable() {
    let (rounds, seed) = (150 * soak(), seed(20_261_121));
    for kind in [Kind::Hash, Kind::Ordered] {
        for config in configs() {
            for (round, keys) in (0..rounds).flat_map(|r| [3, 40].map(|keys| (r, keys))) {
                let subject = registers::RegisterSubject(make(kind, config), keys);
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
            let subject = value_lists::ValueListSubject(multi_with(Hashes::Few, config), keys);
            if let Err(wrong) = of_threads(&subject, THREADS, STEPS, mix(seed + round)) {
                panic!("bag, {keys} keys, {config:?}, {wrong}");
            }
        }
    }
}

/// Many objects under a key are indexed by hash, few are not: histories that go from one to the
/// other and back.
#[test]
fn histories_of_large_bags_are_linearizable() {
    let (rounds, seed) = (30 * soak(), seed(20_261_122));
    for config in configs() {
        for (round, keys) in (0..rounds).flat_map(|r| [1, 4].map(|keys| (r, keys))) {
            let subject = value_lists::Large(value_lists::ValueListSubject(
                multi_with(Hashes::Few, config),
                keys,
            ));
            if let Err(wrong) = of_threads(&subject, THREADS, STEPS, mix(seed + round)) {
                panic!("large bag, {keys} keys, {config:?}, {wrong}");
            }
        }
    }
}

/// A bag that a careless hand gave a `Once` of two steps, among others that are right.
struct CarelessBag(value_lists::ValueListSubject);

impl Subject for CarelessBag {
    type Op = value_lists::ValueListOp;
    type Spec = value_lists::ValueList;

    fn step(&self, recorder: &mut Recorder<'_, value_lists::ValueListOp>, random: u64) {
        if random >> 60 > 4 {
            return self.0.step(recorder, random);
        }
        let (k, value) = (random % self.0 .1, random >> 40 & 3);
        let (name, bytes) = (k.to_be_bytes(), value.to_be_bytes());
        recorder.record(k, value_lists::ValueListOp::Once(value, None), || {
            let (bag, mut there) = (&self.0 .0, false);
            bag.get(&pin(), key(&name, Hashes::Few), &mut |v| {
                there |= v == bytes
            });
            thread::yield_now();
            if !there {
                bag.update(&pin(), key(&name, Hashes::Few), &mut |o| o.push(&bytes));
            }
            value_lists::ValueListOp::Once(value, Some(!there))
        });
    }

    fn finish(&self, recorder: &mut Recorder<'_, value_lists::ValueListOp>) {
        self.0.finish(recorder);
    }
}

#[test]
fn an_object_that_is_there_twice_is_found() {
    let found = (0..5_000).any(|round| {
        let subject = CarelessBag(value_lists::ValueListSubject(
            multi_with(Hashes::Few, configs()[0]),
            1,
        ));
        of_threads(&subject, THREADS, STEPS, mix(round)).is_err()
    });
    assert!(found, "no history showed the fault that was planted");
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

/// The check finds what it is for. (Faults in the structures themselves are planted in builds for
/// the model checker.)
#[test]
fn a_lost_update_is_found() {
    let found = (0..5_000).any(|round| {
        let subject = registers::RegisterSubject(Careless(make(Kind::Hash, configs()[0])), 3);
        of_threads(&subject, THREADS, STEPS, mix(round)).is_err()
    });
    assert!(found, "no history showed the fault that was planted");
}

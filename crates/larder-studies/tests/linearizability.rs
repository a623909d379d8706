//! Histories that threads record on a few keys of each structure must be linearizable.
//!
//! `LARDER_SOAK=n` runs n times as many histories; `LARDER_SEED=n` chooses others;
//! `LARDER_STRUCTURE=name` picks one structure.

mod subjects;

use larder_testing::environment::{seed, soak};
use larder_testing::history::of_threads;
use larder_testing::{mix, registers, value_lists};
use subjects::{orders, subjects};

const THREADS: usize = 3;
const STEPS: u64 = 80;

#[test]
fn histories_are_linearizable() {
    let (rounds, seed) = (40 * soak(), seed(20_261_122));
    for subject in subjects() {
        for &order in orders(subject) {
            for (round, keys) in (0..rounds).flat_map(|r| [3, 40].map(|keys| (r, keys))) {
                let registers = registers::RegisterSubject(subject.unique(order), keys);
                if let Err(wrong) = of_threads(&registers, THREADS, STEPS, mix(seed + round)) {
                    panic!("{subject:?} {order:?}, {keys} keys, {wrong}");
                }
            }
        }
    }
}

#[test]
fn histories_of_bags_are_linearizable() {
    let (rounds, seed) = (30 * soak(), seed(20_261_122));
    for subject in subjects() {
        for (round, keys) in (0..rounds).flat_map(|r| [2, 20].map(|keys| (r, keys))) {
            let lists = value_lists::ValueListSubject(subject.multi(), keys);
            if let Err(wrong) = of_threads(&lists, THREADS, STEPS, mix(seed + round)) {
                panic!("{subject:?} as a bag, {keys} keys, {wrong}");
            }
        }
    }
}

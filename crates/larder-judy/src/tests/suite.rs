//! One property suite, stamped on both word arrays.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{CheckedArray, Words};
use crate::{Judy1, JudyL};

/// Indexes that meet in every way: dense, spread within few bytes at any level, at the ends,
/// anywhere.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..600u64,
        2 => (0..8u32, 0..40u64).prop_map(|(byte, at)| at << (8 * byte)),
        4 => (0..7u32, 0..3u64, 0..300u64).prop_map(|(byte, high, low)| high << 56 | low << (8 * byte)),
        2 => (0..4u64, 0..256u64).prop_map(|(high, low)| 0x0123_4567_89ab_0000 | high << 8 | low),
        1 => (0..300u64).prop_map(|low| u64::MAX - low),
        1 => any::<u64>(),
    ]
}

#[derive(Clone, Debug)]
enum ArrayOperation {
    Put(u64, u64),
    Take(u64),
    Ask(u64),
    /// A run of neighbours, put or taken.
    Run(u64, u64, u64, bool),
}

fn step() -> impl Strategy<Value = ArrayOperation> {
    prop_oneof![
        6 => (key(), any::<u64>()).prop_map(|(key, value)| ArrayOperation::Put(key, value)),
        3 => key().prop_map(ArrayOperation::Take),
        3 => key().prop_map(ArrayOperation::Ask),
        1 => (key(), 1..300u64, 0..8u32, any::<bool>()).prop_map(|(k, n, b, put)| ArrayOperation::Run(k, n, 1 << (8 * b), put)),
    ]
}

fn play<A: Words>(steps: &[ArrayOperation], beside: &mut CheckedArray<A>) {
    for step in steps {
        match *step {
            ArrayOperation::Put(key, value) => beside.put(key, value),
            ArrayOperation::Take(key) => beside.take(key),
            ArrayOperation::Ask(key) => beside.ask(key),
            ArrayOperation::Run(key, n, stride, put) => {
                for at in 0..n {
                    let key = key.wrapping_add(at.wrapping_mul(stride));
                    if put {
                        beside.put(key, !at);
                    } else {
                        beside.take(key);
                    }
                }
                beside.ask(key);
            }
        }
    }
}

/// Plays the steps, asks about every index and its neighbours, then removes them all in another
/// order.
fn behaves<A: Words>(steps: &[ArrayOperation], salt: u64) {
    let mut beside = CheckedArray::<A>::new();
    play(steps, &mut beside);
    beside.compare();
    let mut keys: Vec<u64> = beside.oracle.keys().copied().collect();
    for &key in keys.iter().take(40) {
        beside.ask(key);
        beside.ask(key.wrapping_add(1));
        beside.ask(key.wrapping_sub(1));
        assert_eq!(
            beside.array.up(key),
            beside
                .oracle
                .range(key..)
                .map(|(k, v)| (*k, *v))
                .collect::<Vec<_>>()
        );
    }
    keys.sort_by_key(|key| (key ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for (at, key) in keys.into_iter().enumerate() {
        beside.take(key);
        if at % 97 == 0 {
            beside.compare();
        }
    }
    assert_eq!(beside.array.memory(), 0, "an empty array takes no memory");
}

/// Frees in slices, uses the array in between, and finds all the memory back.
fn frees<A: Words>(steps: &[ArrayOperation], limit: usize) {
    let mut beside = CheckedArray::<A>::new();
    play(steps, &mut beside);
    beside.array.clear_later();
    beside.oracle.clear();
    beside.compare();
    let mut before = beside.array.memory();
    while beside.array.free_some(limit) {
        let now = beside.array.memory();
        assert!(now <= before);
        before = now;
    }
    assert_eq!(beside.array.memory(), 0);
    play(steps, &mut beside);
    beside.array.clear_later();
    beside.oracle.clear();
    play(&steps[..steps.len() / 2], &mut beside);
    beside.compare();
    while beside.array.free_some(limit) {}
    beside.compare();
    beside.array.clear_later();
    while beside.array.free_some(limit) {}
    assert_eq!(beside.array.memory(), 0);
}

const CASES: u32 = if cfg!(miri) { 2 } else { 200 };
const STEPS: usize = if cfg!(miri) { 12 } else { 150 };

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(CASES)
    }
}

macro_rules! stamp {
    ($($name:ident: $array:ty),*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn behaves_as_the_oracle(steps in vec(step(), 1..STEPS), salt in any::<u64>()) {
                    behaves::<$array>(&steps, salt);
                }

                #[test]
                fn frees_in_slices(steps in vec(step(), 1..STEPS), limit in 1..50usize) {
                    frees::<$array>(&steps, limit);
                }
            }
        }
    )*};
}

stamp!(judy1: Judy1, judyl: JudyL);

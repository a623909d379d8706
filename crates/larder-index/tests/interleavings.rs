//! Interleavings that a model checker chooses: threads change at every touch of an atomic word, so that the narrow places between a check and
//! what relies on it are met. Each execution's history must be linearizable, and the index must have what the history left.
//!
//! Runs in builds with `--cfg larder_model` alone: `scripts/model.sh`. A failing execution prints a schedule, which
//! `LARDER_SCHEDULE=…` runs again; `LARDER_SOAK=n` runs n times as many executions.
#![cfg(larder_model)]

mod common;
#[path = "common/history.rs"]
mod history;

use common::{make, mix, Kind};
use history::{violation, Recorder, Subject};
use larder_index::{plant_fault, LeafConfig, Unique};
use shuttle::rand::{thread_rng, RngCore};
use shuttle::thread;
use std::sync::atomic::AtomicUsize;
use std::sync::Arc;

/// Leaves of two or three entries and nodes of two children: every few operations split or merge some.
fn smallest() -> LeafConfig {
    LeafConfig::tiny()
}

/// `threads` threads do `steps` operations each on `keys` keys, around which `before` others lie; then what is there is compared to what
/// reads said last.
fn execution(kind: Kind, threads: usize, steps: u64, keys: u64, before: u64) {
    execution_with(make(kind, smallest()), threads, steps, keys, before);
}

fn execution_with(index: Box<dyn Unique>, threads: usize, steps: u64, keys: u64, before: u64) {
    let index = Arc::new(index);
    for k in 0..before {
        Subject::put(&*index, keys + k, k);
    }
    let clock = Arc::new(AtomicUsize::new(0));
    let work = |process: usize| {
        let (index, clock) = (index.clone(), clock.clone());
        move || {
            let mut recorder = Recorder::new(&clock, process);
            for _ in 0..steps {
                recorder.step(&*index, keys, mix(thread_rng().next_u64()));
            }
            recorder.events()
        }
    };
    let running: Vec<_> = (0..threads).map(|p| thread::spawn(work(p))).collect();
    let mut events: Vec<_> = running
        .into_iter()
        .flat_map(|t| t.join().expect("no panic"))
        .collect();
    // The last reads are part of the history: they see what is left.
    let mut last = Recorder::new(&clock, threads);
    for k in 0..keys {
        last.read(&*index, k);
    }
    events.extend(last.events());
    if let Some(part) = violation(events) {
        panic!("not linearizable: {part:#?}");
    }
    for k in 0..before {
        assert_eq!(Subject::read(&*index, keys + k), Some(k), "a neighbour");
    }
}

fn check(executions: usize, f: impl Fn() + Send + Sync + 'static) {
    if let Ok(schedule) = std::env::var("LARDER_SCHEDULE") {
        return shuttle::replay(f, &schedule);
    }
    let soak = std::env::var("LARDER_SOAK").ok();
    let times = soak.and_then(|s| s.parse().ok()).unwrap_or(1);
    shuttle::check_random(f, executions * times);
}

#[test]
fn two_writers_on_few_keys_of_hash_order() {
    check(20_000, || execution(Kind::Hash, 2, 6, 3, 0));
}

#[test]
fn two_writers_on_few_keys_of_key_order() {
    check(20_000, || execution(Kind::Ordered, 2, 6, 3, 0));
}

#[test]
fn leaves_that_split_and_merge_in_hash_order() {
    check(3_000, || execution(Kind::Hash, 3, 12, 24, 20));
}

#[test]
fn leaves_that_split_and_merge_in_key_order() {
    check(3_000, || execution(Kind::Ordered, 3, 12, 24, 20));
}

/// The checker finds what it is for: a lock that two writers take at once. The leaf is large, so that it is never replaced: two that free it
/// would end the test before it can tell.
#[test]
fn a_planted_fault_is_found() {
    plant_fault(true);
    let found = std::panic::catch_unwind(|| {
        let large = LeafConfig {
            first: 2000,
            ..LeafConfig::default()
        };
        let one = move || execution_with(make(Kind::Hash, large), 2, 6, 3, 0);
        shuttle::check_random(one, 20_000);
    });
    plant_fault(false);
    assert!(
        found.is_err(),
        "no execution showed the fault that was planted"
    );
}

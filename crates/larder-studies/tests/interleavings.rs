//! Interleavings of the structures that a model checker chooses: each execution's history must be
//! linearizable.
//!
//! Runs in builds with `--cfg larder_model` alone: `scripts/model.sh`; see
//! `larder_testing::model_checker`. `LARDER_STRUCTURE=name` picks one structure. The locks that all
//! this stands on have tests of their own, beside them.
#![cfg(larder_model)]

mod subjects;

use larder_index::sync::{plant, Fault};
use larder_index::{Quarantine, Unique};
use larder_studies::{build_unique, Order, Value};
use larder_testing::history::of_threads;
use larder_testing::model_checker::{
    alone, check, each_goes_wrong, each_is_found, goes_wrong, history, plant_requested, planted,
    planted_search, rounds, Search,
};
use larder_testing::registers::Registers;
use larder_testing::{mix, registers, value_lists};
use std::sync::Arc;
use subjects::{orders, subjects};

#[global_allocator]
static HEAP: Quarantine = Quarantine;

/// Threads at work among neighbours, which must be there in the end.
fn among_neighbours(index: Box<dyn Unique>, threads: usize, steps: u64, keys: u64) {
    const NEIGHBOURS: u64 = 5;
    for k in 0..NEIGHBOURS {
        Registers::put(&index, keys + k, k);
    }
    let subject = history(registers::RegisterSubject(index, keys), threads, steps);
    for k in 0..NEIGHBOURS {
        assert_eq!(subject.0.read(keys + k), Some(k), "a neighbour");
    }
}

#[test]
fn one_value_under_a_key() {
    let _alone = alone();
    let small = [
        Search::Random(400),
        Search::Pct(300),
        Search::Bounded {
            changes: 2,
            programs: 1,
            most: 1_500,
        },
    ];
    for subject in subjects() {
        for &order in orders(subject) {
            let name = format!("{} {:?} by {order:?}", subject.name, subject.options);
            check(&format!("{name}: two on few keys"), &small, move || {
                history(registers::RegisterSubject(subject.unique(order), 2), 2, 3);
            });
            let large = [Search::Random(120), Search::Pct(100)];
            check(
                &format!("{name}: three among neighbours"),
                &large,
                move || {
                    among_neighbours(subject.unique(order), 3, 8, 5);
                },
            );
        }
    }
}

/// A writer that repairs a node which another has unlinked, and has yet to mark, waits for the
/// mark, and doesn't search for the node until it is there.
#[test]
fn a_repair_meets_a_removal() {
    let _alone = alone();
    let search = [Search::Bounded {
        changes: 2,
        programs: 1,
        most: 20_000,
    }];
    check("relaxed_avl: a removal above an insert", &search, || {
        let index = Arc::new(built("relaxed_avl", &[], Order::Key));
        Registers::put(&*index, 1, 1);
        let work = [false, true].map(|removes| {
            let index = index.clone();
            shuttle::thread::spawn(move || match removes {
                true => assert!(Registers::remove(&*index, 1)),
                false => Registers::put(&*index, 0, 0),
            })
        });
        work.into_iter()
            .for_each(|thread| thread.join().expect("no panic"));
        assert_eq!((index.read(0), index.read(1)), (Some(0), None));
    });
}

#[test]
fn many_values_under_a_key() {
    let _alone = alone();
    for subject in subjects() {
        let name = format!("{} {:?} as a bag", subject.name, subject.options);
        check(&name, &[Search::Random(100), Search::Pct(100)], move || {
            history(value_lists::ValueListSubject(subject.multi(), 2), 3, 4);
        });
    }
}

/// A structure with these options.
fn built(name: &'static str, options: &[(&str, i64)], order: Order) -> Box<dyn Unique> {
    let options: Vec<_> = options
        .iter()
        .map(|(n, v)| ((*n).to_owned(), Value::Int(*v)))
        .collect();
    build_unique(name, &options, order).expect("a structure that is listed")
}

/// A structure, with options, and its order.
type Place = (&'static str, &'static [(&'static str, i64)], Order);

/// Faults of protocols, and options that bring threads to where they show.
const PLANTED: [(Fault, Place); 5] = [
    (Fault::Unvalidated, ("skiplist", &[], Order::Key)),
    (
        Fault::Thaw,
        ("lfcatree", &[("high", -3), ("low", -2)], Order::Key),
    ),
    (
        Fault::Obsolete,
        (
            "catree",
            &[("high", -1), ("quiet", 1), ("low", -5), ("depth", 6)],
            Order::Key,
        ),
    ),
    (
        Fault::Overwrite,
        ("lockfree_hash", &[("buckets", 1)], Order::Hash),
    ),
    (Fault::Unshrunk, ("relaxed_avl", &[], Order::Key)),
];

/// Not a test: executions with one of the faults planted, which may well corrupt memory. Run by
/// `planted_faults_are_found`.
#[test]
#[ignore = "run by another test"]
fn planted_execution() {
    let (name, options, order) = plant_requested(&PLANTED);
    check("a planted fault", &planted_search(), move || {
        among_neighbours(built(name, options, order), 3, 6, 4);
    });
}

#[test]
fn planted_faults_are_found() {
    each_is_found("planted_execution", &PLANTED);
}

/// Not a test: histories of real threads, with one of the faults planted. Run by
/// `planted_faults_show_in_histories`.
#[test]
#[ignore = "run by another test"]
fn planted_history() {
    let (name, options, order) = plant_requested(&PLANTED);
    for round in rounds() {
        let subject = registers::RegisterSubject(built(name, options, order), 4);
        of_threads(&subject, 3, 60, mix(round)).expect("linearizable");
    }
}

/// The same faults show in histories of real threads.
#[test]
fn planted_faults_show_in_histories() {
    each_goes_wrong("planted_history", &PLANTED);
}

/// Not a test: what `what_is_freed_too_early_is_found` runs in a process of its own, which may well
/// die of it.
#[test]
#[ignore = "run by another test"]
fn freed_too_early() {
    plant(Fault::EarlyDrop, planted().is_some());
    for name in ["skiplist", "lfcatree", "split_ordered"] {
        check("what is freed", &[Search::Random(500)], move || {
            among_neighbours(built(name, &[], Order::Hash), 3, 6, 4);
        });
    }
}

/// The checker's memory shows what is read after it was freed.
#[test]
fn what_is_freed_too_early_is_found() {
    assert!(
        !goes_wrong("freed_too_early", None),
        "nothing is wrong without the fault"
    );
    assert!(
        goes_wrong("freed_too_early", Some("early")),
        "the fault was not found"
    );
}

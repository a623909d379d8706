//! Threads at work together on each structure, and what must hold all the while.
//!
//! `LARDER_SOAK=n` does n times as much work.

mod subjects;

use larder_index::{pin, Change, Direction, Key, Start, Unique};
use larder_testing::environment::times;
use larder_testing::{key, put, scan_unique, threads, Hashes};
use subjects::{orders, subjects};

fn on_all(f: impl Fn(&dyn Unique, &str)) {
    for subject in subjects() {
        for &order in orders(subject) {
            f(&*subject.unique(order), &format!("{subject:?} {order:?}"));
        }
    }
}

#[test]
fn no_update_is_lost() {
    let rounds = times(2000) as u64;
    on_all(|index, name| threads::no_update_is_lost(index, name, rounds));
}

#[test]
fn no_value_is_torn() {
    on_all(|index, _| threads::no_value_is_torn(index, times(3000) as u64));
}

#[test]
fn scans_miss_nothing_and_repeat_nothing() {
    on_all(|index, _| threads::scans_miss_nothing(index, times(4) as u64));
}

/// A scan that begins while an insert is in progress has its entry; what is read of an index that
/// was fixed while a removal was in progress is not what that takes away.
#[test]
fn changes_under_way_are_waited_for() {
    on_all(|index, name| {
        fn number(k: &[u8; 8]) -> Key<'_> {
            key(k, Hashes::Good)
        }
        for k in [1u64, 3] {
            put(index, number(&k.to_be_bytes()), &[0; 8]);
        }
        threads::beside_a_change(index, 2, Change::Put, || {
            let rows = scan_unique(index, Start::Edge, Direction::Forward);
            assert_eq!(rows.len(), 3, "{name}: a scan");
        });
        threads::beside_a_change(index, 2, Change::Remove, || {
            index.freeze(true);
            let there = index.get(&pin(), number(&2u64.to_be_bytes()), &mut Vec::new());
            assert!(!there, "{name}: fixed");
        });
        index.freeze(false);
    });
}

#[test]
fn a_bag_changes_at_once() {
    for subject in subjects() {
        threads::a_bag_changes_at_once(&*subject.multi(), times(500) as u64);
    }
}

#[test]
fn queues() {
    on_all(|index, name| {
        let empty = index.memory();
        threads::queues(index, name, times(1500) as u64);
        assert!(
            index.memory() < empty + 40_000 + index.stats().leaves * 400,
            "{name} {}",
            index.memory()
        );
    });
}

//! An orderly end: everything is freed, and the library has no threads left. One test, since they
//! are the whole program's.
#![cfg(target_os = "linux")]

use larder::api::Larder;
use larder_term::{term, Term};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// The names of the library's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a system with /proc");
    let names = tasks.flatten().map(|task| task.path().join("comm"));
    let names = names.filter_map(|name| std::fs::read_to_string(name).ok());
    names.filter(|name| name.starts_with("larder-")).collect()
}

/// Waits until the library's threads have these names. A thread gives itself its name when it first
/// runs. One that has ended, and was joined, is in /proc a moment longer.
fn wait_for_names(names: &[&str]) {
    let begun = Instant::now();
    while threads() != names {
        assert!(begun.elapsed() < LONG, "{:?}, not {names:?}", threads());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until a thread of the library has its name.
fn wait_for_a_name() {
    let begun = Instant::now();
    while threads().is_empty() {
        assert!(begun.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn work(larder: &Larder) {
    let table = larder.table("t").ordered_set().create().unwrap();
    let rows: Vec<Term> = (0..100_000).map(|k| term!({(k), "some text"})).collect();
    table.insert_all(&rows).unwrap();
    table.drop_table().unwrap();
}

#[test]
fn threads_end_and_begin_anew() {
    let larder = Larder::new();
    for _ in 0..5 {
        work(&larder);
        wait_for_a_name();
        assert!(Larder::quiesce(LONG));
        wait_for_names(&[]);
        assert_eq!(larder.engine().memory().waiting, 0);
    }

    // A table with bounds keeps its thread, and is kept by nothing else.
    let bounded = larder.table("b").ttl(LONG).create().unwrap();
    work(&larder);
    assert!(Larder::quiesce(LONG));
    wait_for_names(&["larder-expirer\n"]);
    bounded
        .insert_with(&term!({a, 1}), Some(Duration::ZERO))
        .unwrap();
    assert_eq!(bounded.to_vec(), Ok(vec![]));
    bounded.drop_table().unwrap();
    drop(bounded);
    assert!(Larder::quiesce(Duration::MAX));
    wait_for_names(&[]);

    // While somebody works, it doesn't come about, or not for long; nothing is lost by that.
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| (0..5).for_each(|_| work(&larder)));
        while !busy.is_finished() {
            let _ = Larder::quiesce(Duration::from_millis(20));
        }
    });
    drop(larder);
    assert!(Larder::quiesce(LONG));
    wait_for_names(&[]);
}

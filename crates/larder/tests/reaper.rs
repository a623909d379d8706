//! What is dropped is freed in the background: soon, at a pace that leaves time for others. (That
//! it is never outrun: `throttle` and the unit tests of `reaper`.) One test, since the reaper is
//! the whole program's.

use larder::api::{Larder, Table};
use larder_term::{term, Term};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Processor time of the reaper so far, in nanoseconds; none where the system doesn't tell.
fn reaper_time() -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let reaper = tasks.flatten().map(|task| task.path()).find(|task| {
        std::fs::read_to_string(task.join("comm"))
            .is_ok_and(|name| name.starts_with("larder-reaper"))
    })?;
    let times = std::fs::read_to_string(reaper.join("schedstat")).ok()?;
    times.split_whitespace().next()?.parse().ok()
}

/// A table of so many rows.
fn filled(larder: &Larder, rows: i64) -> Table {
    let t = larder.table("t").ordered_set().create().unwrap();
    for from in (0..rows).step_by(1000) {
        let rows: Vec<Term> = (from..from + 1000)
            .map(|k| term!({(k), (k), "some text"}))
            .collect();
        t.insert_all(&rows).unwrap();
    }
    t
}

/// Waits, without asking the reaper to hurry, until nothing is left.
fn freed(larder: &Larder) {
    let begun = Instant::now();
    while larder.engine().reaper_backlog() > 0 {
        assert!(begun.elapsed() < PATIENCE, "memory does not come back");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a large table is freed behind, and with rests.
fn is_freed_with_rests(larder: &Larder) -> bool {
    let big = filled(larder, 500_000);
    freed(larder);
    // Both clocks from before the drop to after the last of it: the reaper may begin before
    // `drop_table` returns.
    let (begun, before) = (Instant::now(), reaper_time());
    big.drop_table().unwrap();
    let is_behind = larder.engine().reaper_backlog() > 1_000_000;
    freed(larder);
    let (Some(before), Some(after)) = (before, reaper_time()) else {
        return is_behind;
    };
    let (worked, took) = (Duration::from_nanos(after - before), begun.elapsed());
    println!("{worked:?} of work in {took:?}");
    is_behind && worked < took / 2
}

#[test]
fn freed_soon_and_with_rests() {
    let larder = Larder::new();
    // The first drop starts the reaper.
    filled(&larder, 1000).drop_table().unwrap();
    // One of three is enough: a machine that stops its processor counts that as the reaper's work,
    // and what stops this thread gives the reaper time for all of it.
    assert!((0..3).any(|_| is_freed_with_rests(&larder)));

    // Two programs that do nothing but fill and drop leave nothing behind.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..30).for_each(|_| filled(&larder, 10_000).drop_table().unwrap()));
        }
    });
    freed(&larder);
}

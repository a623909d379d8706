//! What is dropped is freed behind: soon, at a pace that leaves room for others. (That it is never outrun: `pace`
//! and the unit tests of `reaper`.) One test, since the reaper is the whole program's.

use larder::api::Larder;
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

/// Fills a table with so many rows and drops it.
fn fill_and_drop(larder: &Larder, rows: i64) {
    let t = larder.table("t").ordered_set().create().unwrap();
    for from in (0..rows).step_by(1000) {
        let rows: Vec<Term> = (from..from + 1000)
            .map(|k| term!({(k), (k), "some text"}))
            .collect();
        t.insert_all(&rows).unwrap();
    }
    t.drop_table().unwrap();
}

/// Waits, without asking the reaper to hurry, until nothing is left; how long that took.
fn freed(larder: &Larder) -> Duration {
    let begun = Instant::now();
    while larder.engine().reaper_backlog() > 0 {
        assert!(begun.elapsed() < PATIENCE, "memory does not come back");
        std::thread::sleep(Duration::from_millis(1));
    }
    begun.elapsed()
}

#[test]
fn freed_soon_and_with_rests() {
    let larder = Larder::new();
    fill_and_drop(&larder, 1000);
    freed(&larder);

    let before = reaper_time();
    fill_and_drop(&larder, 500_000);
    assert!(larder.engine().reaper_backlog() > 1_000_000);
    let took = freed(&larder);
    if let (Some(before), Some(after)) = (before, reaper_time()) {
        let worked = Duration::from_nanos(after - before);
        assert!(worked < took / 2, "{worked:?} of work in {took:?}");
    }

    // Two programs that do nothing but fill and drop leave nothing behind.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..30).for_each(|_| fill_and_drop(&larder, 10_000)));
        }
    });
    freed(&larder);
}

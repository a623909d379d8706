//! Times of tests that move the clock.

use larder::api::Table;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Much longer than a test takes.
pub const UNIT: u64 = 1_000_000;

pub fn units(n: u64) -> Duration {
    Duration::from_millis(n * UNIT)
}

/// The clock is the whole program's: one test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let poisoned = std::sync::PoisonError::into_inner;
    ALONE.lock().unwrap_or_else(poisoned)
}

/// Nothing expired is left. The expirer may be dealing with the last.
pub fn settles(table: &Table, rows: usize) {
    let begun = Instant::now();
    while table.len() != rows && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(table.len(), rows);
}

//! Measuring time and memory: clocks, threads, the time that a study has, progress bars.

pub mod clock;
pub mod counting;
pub mod memory;
pub mod progress;
pub mod workers;

use std::time::Instant;

/// What the work gives, and the seconds that it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begin = Instant::now();
    let done = work();
    (done, begin.elapsed().as_secs_f64())
}

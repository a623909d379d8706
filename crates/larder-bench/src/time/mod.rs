//! Time and memory: clocks, threads, the time limit of a study, progress bars.

pub mod clock;
pub mod counting;
pub mod memory;
pub mod progress;
pub mod workers;

use rustix::time::{clock_gettime, ClockId};
use std::time::{Duration, Instant};

/// Returns the result of the work, and the seconds that it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begin = Instant::now();
    let done = work();
    (done, begin.elapsed().as_secs_f64())
}

/// Returns the result of the work, and its nanoseconds divided by the number of operations.
pub fn timed_each<T>(operations: usize, work: impl FnOnce() -> T) -> (T, f64) {
    let (done, seconds) = timed(work);
    (done, seconds * 1e9 / operations as f64)
}

/// The same in processor time of this thread, which other programs disturb less.
pub fn cpu_each<T>(operations: usize, work: impl FnOnce() -> T) -> (T, f64) {
    let begin = thread_nanoseconds();
    let done = work();
    (done, (thread_nanoseconds() - begin) / operations as f64)
}

/// The processor time that this thread has taken.
fn thread_nanoseconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Calls `work` with the numbers `0..entries`. Returns the seconds of each part of `part` numbers.
/// Ends after a part if `limit` is exceeded. A last part that isn't full is left out, unless it is
/// the only one.
pub fn timed_parts(
    entries: u64,
    part: u64,
    limit: Option<Duration>,
    mut work: impl FnMut(u64),
) -> Vec<f64> {
    let mut parts = Vec::new();
    let first = Instant::now();
    let mut begin = first;
    for i in 0..entries {
        work(i);
        if (i + 1) % part == 0 || i + 1 == entries && parts.is_empty() {
            let now = Instant::now();
            parts.push((now - begin).as_secs_f64());
            begin = now;
            if limit.is_some_and(|limit| now - first > limit) {
                break;
            }
        }
    }
    parts
}

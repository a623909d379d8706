//! Several threads on one table. They begin together, each on a core of its own if there are
//! enough. The clock runs from the first start to the last end.

use crate::result::Outcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::thread::{scope, sleep, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The argument of a worker: its number, and a flag that tells it to stop.
pub struct Worker<'c> {
    /// From 0.
    pub number: usize,
    stop: &'c AtomicBool,
}

impl Worker<'_> {
    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        // Ordering: Relaxed: the flag publishes no other data.
        self.stop.load(Ordering::Relaxed)
    }
}

/// The results of all workers.
pub struct Done<T> {
    /// The result of each worker.
    pub results: Vec<T>,
    /// From the common beginning to the last one's end.
    pub seconds: f64,
}

/// Lets threads work until each is done. With `time`, until that is over (see [`Worker::is_over`]).
///
/// # Panics
/// If a worker does.
pub fn work<T: Send>(
    threads: usize,
    time: Option<Duration>,
    job: impl Fn(Worker<'_>) -> Outcome<T> + Sync,
) -> Outcome<Done<T>> {
    // All threads, and this one, meet before the work begins.
    let (stop, start) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (stop, start, job) = (&stop, &start, &job);
                // Each thread has a core of its own, as long as there are enough.
                let core = cores.get(number % cores.len().max(1)).copied();
                scope.spawn(move || {
                    core.map(core_affinity::set_for_current);
                    start.wait();
                    // Each thread notes its own times. The clock runs from the first begin to the
                    // last end.
                    let begin = Instant::now();
                    let result = job(Worker { number, stop });
                    result.map(|done| (done, begin, Instant::now()))
                })
            })
            .collect();
        // All threads are ready. From here on the time runs.
        start.wait();
        if let Some(time) = time {
            sleep(time);
            // Ordering: Relaxed, see `Worker::is_over`.
            stop.store(true, Ordering::Relaxed);
        }
        gather(workers)
    })
}

type Timed<T> = Outcome<(T, Instant, Instant)>;

fn gather<T>(workers: Vec<ScopedJoinHandle<'_, Timed<T>>>) -> Outcome<Done<T>> {
    let mut results = Vec::new();
    let mut span: Option<(Instant, Instant)> = None;
    for worker in workers {
        let (result, begin, end) = worker.join().expect("no worker panics")?;
        results.push(result);
        let (first, last) = span.unwrap_or((begin, end));
        span = Some((first.min(begin), last.max(end)));
    }
    let seconds = span.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    Ok(Done { results, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Failure;

    #[test]
    fn all_work_and_the_time_is_that_of_all() {
        let done = work(3, Some(Duration::from_millis(20)), |worker| {
            let mut n = 0u64;
            while !worker.is_over() {
                n += 1;
            }
            Ok((worker.number, n))
        })
        .unwrap();
        assert!(done.seconds >= 0.02);
        assert_eq!(done.results.len(), 3);
        assert!(done.results.iter().all(|&(_, n)| n > 0));
    }

    #[test]
    fn a_wrong_answer_is_everybodys() {
        let done = work(2, None, |worker| match worker.number {
            0 => Ok(()),
            _ => Err(Failure::wrong("tree", "7")),
        });
        assert_eq!(done.err().unwrap().to_string(), "wrong answer of tree: 7");
    }
}

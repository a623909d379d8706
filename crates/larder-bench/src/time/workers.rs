//! Several threads on one structure. They begin together, each on a core of its own if there are
//! enough.

use crate::result::Outcome;
use crate::workload::random_of_worker;
use fastrand::Rng;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Barrier;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// The argument of a worker: its number from 0, and the flag that tells it to stop.
pub struct Worker<'c> {
    pub number: usize,
    stop: &'c AtomicBool,
}

impl Worker<'_> {
    /// The random numbers of this worker: the same for the same seed, whose upper bits are zero.
    pub fn random(&self, seed: u64) -> Rng {
        random_of_worker(seed, self.number)
    }

    pub fn is_over(&self) -> bool {
        // Ordering: Relaxed. The flag publishes no other data.
        self.stop.load(Relaxed)
    }
}

/// The results of all workers, and the seconds from the first one's start to the last one's end.
pub struct Done<T> {
    pub results: Vec<T>,
    pub seconds: f64,
}

impl<T> Done<T> {
    /// Millions of operations a second, of all workers together.
    pub fn rate(&self, operations: u64) -> f64 {
        operations as f64 / self.seconds / 1e6
    }
}

/// Runs a job in so many threads until each returns. With `time`, [`Worker::is_over`] tells them
/// when it is over. Returns the error of the first worker that has one, and panics if one does.
pub fn work<T: Send>(
    threads: usize,
    time: Option<Duration>,
    job: impl Fn(Worker<'_>) -> Outcome<T> + Sync,
) -> Outcome<Done<T>> {
    // The barrier is for all workers and this thread.
    let (stop, start) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let (stop, start, job) = (&stop, &start, &job);
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    scope(|scope| {
        let spawn = |number: usize| {
            let core = cores.get(number % cores.len().max(1)).copied();
            scope.spawn(move || {
                core.map(core_affinity::set_for_current);
                start.wait();
                let begin = Instant::now();
                let result = job(Worker { number, stop });
                result.map(|done| (done, begin, Instant::now()))
            })
        };
        let workers: Vec<_> = (0..threads).map(spawn).collect();
        start.wait();
        if let Some(time) = time {
            sleep(time);
            // Ordering: Relaxed, see `Worker::is_over`.
            stop.store(true, Relaxed);
        }
        let ends = workers.into_iter().map(|worker| worker.join());
        let ends = ends.map(|end| end.expect("no worker panics"));
        let ends: Vec<_> = ends.collect::<Outcome<_>>()?;
        let first = ends.iter().map(|(_, begin, _)| *begin).min();
        let last = ends.iter().map(|(_, _, end)| *end).max();
        let both = first.zip(last).map(|(first, last)| last - first);
        let seconds = both.unwrap_or_default().as_secs_f64();
        let results = ends.into_iter().map(|(result, ..)| result).collect();
        Ok(Done { results, seconds })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Failure;

    /// A machine that does something else may let a worker begin when the time is over.
    #[test]
    fn all_work_until_the_time_is_over() {
        let (time, begin) = (Duration::from_millis(20), Instant::now());
        let done = work(3, Some(time), |worker| {
            while !worker.is_over() {
                std::hint::spin_loop();
            }
            Ok(begin.elapsed())
        });
        let done = done.unwrap();
        assert!(done.seconds <= begin.elapsed().as_secs_f64() && done.results.len() == 3);
        assert!(done.results.iter().all(|&end| end >= time));
    }

    #[test]
    fn a_wrong_answer_of_one_is_the_result() {
        let done = work(2, None, |worker| match worker.number {
            0 => Ok(()),
            _ => Err(Failure::wrong("tree", "7")),
        });
        assert_eq!(done.err().unwrap().to_string(), "wrong answer of tree: 7");
    }
}

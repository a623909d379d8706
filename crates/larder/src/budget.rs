//! The budget of a slice of a long operation: a bound on its work and on its time.
//!
//! A host passes a [`Budget`] to each call of a job's `step`. The job spends about one unit per
//! object. It stops when the units or the time are used up. So a scheduler of the host is never
//! occupied for longer than the host permits, whatever the size of the table.
//!
//! The two limits complement each other. Units are cheap to count, but their cost varies. Reading
//! the clock is exact, but costs as much as a few units. So the clock is read once per 32 units.

use std::time::{Duration, Instant};

/// The number of units between two readings of the clock.
const CLOCK_EVERY: u32 = 32;

/// The result of a slice of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do. Call `step` again.
    More,
    /// The job is done.
    Done,
}

/// The budget of a slice, in units and in time.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The maximum number of units.
    units: u64,
    spent: u64,
    /// The end of the slice. `None` if it has no end, or if its time hasn't begun (`last`).
    until: Option<Instant>,
    /// The duration of a slice whose time begins at the first reading of the clock. A scan that
    /// ends before 32 units then never reads it.
    last: Option<Duration>,
    /// The number of units until the clock is read again.
    look: u32,
    /// Whether the clock was read after the end.
    late: bool,
}

impl Budget {
    /// A budget of `units` units and about the duration `time`, which begins now.
    pub fn new(units: u32, time: Duration) -> Self {
        Budget {
            units: u64::from(units),
            spent: 0,
            // `spend` reads the clock for the first time after 32 units. A shorter slice never
            // does.
            until: Some(Instant::now() + time),
            last: None,
            look: CLOCK_EVERY,
            late: false,
        }
    }

    /// A budget for a scheduler for which others wait: 2,000 units, half a millisecond.
    pub fn slice() -> Self {
        Self::new(2_000, Duration::from_micros(500))
    }

    /// Like `slice`, for a scan: 20,000 units, since reading an object costs about a tenth of a
    /// change.
    pub fn scan() -> Self {
        Budget {
            units: 20_000,
            last: Some(Duration::from_micros(500)),
            ..Self::unlimited()
        }
    }

    /// As this one, but over after `time` at the latest.
    pub fn within(&mut self, time: Duration) -> &mut Self {
        let until = Instant::now() + time;
        self.until = Some(self.until.map_or(until, |sooner| sooner.min(until)));
        self.last = None;
        self
    }

    /// No limit.
    pub fn unlimited() -> Self {
        Budget {
            units: u64::MAX,
            spent: 0,
            until: None,
            last: None,
            look: CLOCK_EVERY,
            late: false,
        }
    }

    /// Spends units. Returns `false` if the slice should end. Reads the clock once per 32 units.
    pub fn spend(&mut self, units: u32) -> bool {
        self.spent = self.spent.saturating_add(u64::from(units));
        // Most calls only subtract.
        if self.look > units {
            self.look -= units;
        } else {
            self.look = CLOCK_EVERY;
            self.look_at_clock();
        }
        !self.is_exhausted()
    }

    fn look_at_clock(&mut self) {
        if self.until.is_none() && self.last.is_none() {
            return;
        }
        let now = Instant::now();
        // The first reading starts the time of a scan.
        if let Some(time) = self.last.take() {
            self.until = Some(now + time);
        }
        self.late = self.until.is_some_and(|until| now >= until);
    }

    /// Whether the slice should end.
    pub fn is_exhausted(&self) -> bool {
        self.late || self.spent >= self.units
    }

    /// The number of units that may still be spent when the budget is used up, by an operation that
    /// is at a place where a pause costs much: a twentieth.
    pub fn grace(&self) -> u64 {
        self.units / 20
    }

    /// The number of units spent so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_run_out() {
        let mut budget = Budget::new(10, Duration::from_secs(60));
        for _ in 0..9 {
            assert!(budget.spend(1));
        }
        assert!(!budget.spend(1));
        assert!(budget.is_exhausted());
        assert_eq!(budget.spent(), 10);
    }

    #[test]
    fn time_runs_out() {
        let mut budget = Budget::new(u32::MAX, Duration::ZERO);
        assert!((0..CLOCK_EVERY).any(|_| !budget.spend(1)));
    }

    #[test]
    fn no_limit() {
        let mut budget = Budget::unlimited();
        assert!((0..10_000).all(|_| budget.spend(1_000)));
    }
}

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
///
/// Invariant: the current stretch ends when `units` are spent, or before. So as long as some of it
/// is left, only the clock can have ended the slice.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The maximum number of units.
    units: u64,
    /// The number of units spent before the current stretch.
    spent: u64,
    /// The length of the current stretch, which ends with a reading of the clock.
    stretch: u32,
    /// The number of units that are left of it.
    left: u32,
    /// The end of the slice. `None` if it has no end, or if its time hasn't begun (`last`).
    until: Option<Instant>,
    /// The duration of a slice whose time begins at the first reading of the clock. An operation
    /// that ends before 32 units then never reads it.
    last: Option<Duration>,
    /// Whether the clock was read after the end.
    late: bool,
}

impl Budget {
    /// A budget of `units` units and about the duration `time`, which begins now.
    pub fn new(units: u32, time: Duration) -> Self {
        // `spend` reads the clock for the first time after 32 units. A shorter slice never does.
        Self::of(u64::from(units), Some(Instant::now() + time), None)
    }

    fn of(units: u64, until: Option<Instant>, last: Option<Duration>) -> Self {
        let mut budget = Budget {
            units,
            spent: 0,
            stretch: 0,
            left: 0,
            until,
            last,
            late: false,
        };
        budget.begin_stretch();
        budget
    }

    /// A budget for a scheduler for which others wait: 2,000 units, half a millisecond from the
    /// first reading of the clock.
    pub fn slice() -> Self {
        Self::of(2_000, None, Some(Duration::from_micros(500)))
    }

    /// Like `slice`, for a scan: 20,000 units, since reading an object costs about a tenth of a
    /// change.
    pub fn scan() -> Self {
        Self::of(20_000, None, Some(Duration::from_micros(500)))
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
        Self::of(u64::MAX, None, None)
    }

    /// Spends units. Returns `false` if the slice should end. Reads the clock once per 32 units.
    #[inline]
    pub fn spend(&mut self, units: u32) -> bool {
        // Most calls only subtract.
        if self.left > units {
            self.left -= units;
            return true;
        }
        self.end_stretch(units)
    }

    /// Spends the rest of the stretch and more. Reads the clock, and begins the next stretch.
    #[inline(never)]
    fn end_stretch(&mut self, units: u32) -> bool {
        self.spent = self.spent().saturating_add(u64::from(units));
        self.look_at_clock();
        self.begin_stretch();
        !self.is_exhausted()
    }

    fn begin_stretch(&mut self) {
        // After the end there is none, so that every further call finds the budget used up.
        let left = match self.late {
            true => 0,
            false => self.units.saturating_sub(self.spent),
        };
        self.stretch = left.min(u64::from(CLOCK_EVERY)) as u32;
        self.left = self.stretch;
    }

    fn look_at_clock(&mut self) {
        // After the end, a reading would change nothing. Some operations go on for a while.
        let is_over = self.late || self.spent >= self.units;
        if is_over || self.until.is_none() && self.last.is_none() {
            return;
        }
        let now = Instant::now();
        // The first reading starts the time of such a slice.
        if let Some(time) = self.last.take() {
            self.until = Some(now + time);
        }
        self.late = self.until.is_some_and(|until| now >= until);
    }

    /// Whether the slice should end.
    pub fn is_exhausted(&self) -> bool {
        self.late || self.spent() >= self.units
    }

    /// The number of units that may still be spent when the budget is used up, by an operation that
    /// is at a place where a pause costs much: a twentieth.
    pub fn grace(&self) -> u64 {
        self.units / 20
    }

    /// The number of units spent so far.
    pub fn spent(&self) -> u64 {
        self.spent + u64::from(self.stretch - self.left)
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
    fn stretches_are_not_seen() {
        // Units of several sizes, beside a sum of them, also after the end.
        for units in [0, 1, 31, 32, 33, 100] {
            let mut budget = Budget::new(units, Duration::from_secs(3600));
            let mut sum = 0;
            for step in [1, 5, 40, 2, 0, 31, 7].into_iter().cycle().take(100) {
                sum += u64::from(step);
                assert_eq!(budget.spend(step), sum < u64::from(units));
                assert_eq!(budget.spent(), sum);
                assert_eq!(budget.is_exhausted(), sum >= u64::from(units));
            }
        }
    }

    #[test]
    fn no_limit() {
        let mut budget = Budget::unlimited();
        assert!((0..10_000).all(|_| budget.spend(1_000)));
    }
}

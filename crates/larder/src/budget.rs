//! How much a slice of a long operation may do.
//!
//! A host gives a [`Budget`] to each call of a job's `step`. The job spends units, about one an
//! object, and stops when they are used up or when the time is: so a scheduler of the host is held
//! for no longer than the host likes, whatever the size of the table.

use std::time::{Duration, Instant};

/// Units between two looks at the clock, which costs about as much as a few of them.
const CLOCK_EVERY: u32 = 32;

/// How a slice of a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do: call again.
    More,
    /// The work is done.
    Done,
}

/// Work that a slice may still do, in units and in time.
#[derive(Clone, Debug)]
pub struct Budget {
    units: u64,
    spent: u64,
    until: Option<Instant>,
    /// How long the slice may last from the first look at the clock on, for one whose first units
    /// cost less than a look.
    last: Option<Duration>,
    look: u32,
    late: bool,
}

impl Budget {
    /// At most `units` units and about `time` of work.
    pub fn new(units: u32, time: Duration) -> Self {
        Budget {
            units: u64::from(units),
            spent: 0,
            until: Some(Instant::now() + time),
            last: None,
            look: CLOCK_EVERY,
            late: false,
        }
    }

    /// A slice fit for a scheduler that others wait for: 2,000 units, half a millisecond.
    pub fn slice() -> Self {
        Self::new(2_000, Duration::from_micros(500))
    }

    /// As `slice`, for a scan: its rows cost a tenth of what a change does.
    pub fn scan() -> Self {
        Budget {
            units: 20_000,
            last: Some(Duration::from_micros(500)),
            ..Self::unlimited()
        }
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

    /// Notes that `units` of work were done; false when the slice should end. The clock is looked
    /// at every 32 units.
    pub fn spend(&mut self, units: u32) -> bool {
        self.spent = self.spent.saturating_add(u64::from(units));
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
        if let Some(time) = self.last.take() {
            self.until = Some(now + time);
        }
        self.late = self.until.is_some_and(|until| now >= until);
    }

    /// Whether the slice should end.
    pub fn is_exhausted(&self) -> bool {
        self.late || self.spent >= self.units
    }

    /// Units spent so far.
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

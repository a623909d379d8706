//! How long a study may take, and when another turn may begin.
//!
//! ```text
//!  study  |------ phases ------|-- sweep --|- stacks -|
//!  turns   0     1     2   .    0     1   . 0
//! ```
//!
//! Each part may last until its share of the time is over. Its first turn takes place in any case.
//! Another begins if there is as much time as the last one took.
//!
//! Without a limit (`--full`, tests) all turns take place. After a limit that the user sets
//! (`--minutes`), not even first turns begin.

use std::time::{Duration, Instant};

pub struct Clock {
    began: Instant,
    limit: Option<Duration>,
    /// Whether the user has set the limit, so that nothing begins after it.
    pub strict: bool,
}

impl Clock {
    pub fn new(limit: Option<Duration>, strict: bool) -> Clock {
        Clock {
            began: Instant::now(),
            limit,
            strict,
        }
    }

    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Whether work of so many seconds would end before this share of the limit.
    pub fn has_time(&self, share: f64, seconds: f64) -> bool {
        let limit = self.limit.map(|limit| share * limit.as_secs_f64());
        limit.is_none_or(|limit| self.seconds() + seconds <= limit)
    }

    /// Whether work of so many seconds must not begin: it would end after this share of the limit,
    /// and the user has set the limit.
    pub fn is_over(&self, share: f64, seconds: f64) -> bool {
        self.strict && !self.has_time(share, seconds)
    }

    /// Whether a turn may begin, by the seconds that the last one took.
    pub fn allows(&self, turn: usize, share: f64, last: f64) -> bool {
        match turn {
            0 => !self.is_over(share, 0.0),
            _ => self.has_time(share, last),
        }
    }

    /// How long each of the next `left` measurements may take if all are to end before this share
    /// of the limit: a second at least. `None` without a limit.
    pub fn time_for_each(&self, share: f64, left: usize) -> Option<Duration> {
        let rest = self.limit?.mul_f64(share);
        let rest = rest.saturating_sub(self.began.elapsed());
        Some((rest / left.max(1) as u32).max(Duration::from_secs(1)))
    }
}

/// A time in a unit that fits: `40 s`, `12 min`, `3.5 h`.
pub fn readable(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{:.0} s", s.max(1.0)),
        s if s < 99.5 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_all_turns_take_place() {
        let clock = Clock::new(None, false);
        assert!(clock.allows(0, 0.5, 0.0) && clock.allows(1, 0.5, 1e9) && clock.has_time(1.0, 1e9));
        assert_eq!(clock.time_for_each(0.5, 10), None);
    }

    #[test]
    fn a_turn_begins_while_there_is_time_for_it() {
        let clock = Clock::new(Some(Duration::from_secs(100)), false);
        assert!(clock.allows(1, 0.5, 40.0) && !clock.allows(1, 0.5, 60.0));
        // The first turn takes place in any case.
        assert!(clock.allows(0, 0.0, 60.0));
        assert!(!clock.is_over(1.0, 1e9) && !clock.has_time(1.0, 1e9));
        let each = clock.time_for_each(0.5, 10).expect("there is a limit");
        assert!((Duration::from_secs(4)..=Duration::from_secs(5)).contains(&each));
    }

    #[test]
    fn nothing_begins_after_a_limit_of_the_user() {
        assert!(!Clock::new(Some(Duration::ZERO), true).allows(0, 1.0, 0.0));
        let clock = Clock::new(Some(Duration::from_secs(100)), true);
        assert!(clock.is_over(0.5, 60.0) && !clock.is_over(1.0, 60.0));
    }

    #[test]
    fn times_are_readable() {
        let times = [0.2, 40.0, 99.0, 600.0, 12_600.0].map(readable);
        assert_eq!(times, ["1 s", "40 s", "99 s", "10 min", "3.5 h"]);
    }
}

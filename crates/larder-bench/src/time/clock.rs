//! How long a study may take, and when another turn may begin.
//!
//! ```text
//!  study  |------ phases ------|-- sweep --|- stacks -|
//!  turns   0     1     2   .    0     1   . 0
//! ```
//!
//! Each part may last until its share of the time is over. Its first turn is done in any case.
//! Another begins if there is as much time as the last one took.
//!
//! Without an end (`--full`, tests) all turns are done. If an end was requested (`--minutes`), even
//! first turns are left out that would begin after it.

use std::time::{Duration, Instant};

/// The time of a study.
pub struct Clock {
    began: Instant,
    /// When the study should be over.
    end: Option<Duration>,
    /// Whether nothing at all is begun after the end.
    strict: bool,
}

/// The turns of one part.
pub struct Turns {
    runs: usize,
    next: usize,
    /// When the turn under way began.
    began: Duration,
    /// When the part should be over.
    end: Option<Duration>,
    share: f64,
}

impl Clock {
    /// A clock that runs from now on.
    pub fn new(end: Option<Duration>, strict: bool) -> Clock {
        Clock {
            began: Instant::now(),
            end,
            strict,
        }
    }

    /// Seconds since the beginning.
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Whether nothing at all is begun after the end.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Whether there is no time for something new that takes `seconds`, in a part that may last
    /// until this share of the study's time is over.
    pub fn is_over(&self, share: f64, seconds: f64) -> bool {
        // Only an end that was asked for keeps things from being begun. The end that a quick study
        // has by itself is for further turns.
        let end = self.end.filter(|_| self.strict);
        end.is_some_and(|end| self.seconds() + seconds > share * end.as_secs_f64())
    }

    /// Whether there are `seconds` left. Always true without an end.
    pub fn has_time(&self, seconds: f64) -> bool {
        let end = self.end.map(|end| end.as_secs_f64());
        end.is_none_or(|end| self.seconds() + seconds <= end)
    }

    /// How long each of the `left` ones may take, if this share of the study's time is to be enough
    /// for all. `None` without an end.
    pub fn patience(&self, share: f64, left: usize) -> Option<Duration> {
        let end = self.end?.mul_f64(share);
        // What the earlier ones have left of their time is shared by those that come. A second at
        // least, so that each is measured at all.
        let rest = end.saturating_sub(self.began.elapsed());
        Some((rest / left.max(1) as u32).max(Duration::from_secs(1)))
    }

    /// So many turns, of a part that may last until this share (from 0 to 1) of the study's time is
    /// over.
    pub fn turns(&self, runs: usize, share: f64) -> Turns {
        Turns {
            runs,
            next: 0,
            began: Duration::ZERO,
            end: self.end.map(|end| end.mul_f64(share)),
            share,
        }
    }

    /// The number of the next turn, if there is time for one.
    pub fn turn(&self, turns: &mut Turns) -> Option<usize> {
        let now = self.began.elapsed();
        // How long the last turn took is how long the next one may take.
        let last = now.saturating_sub(turns.began);
        let in_time = match turns.next {
            // The first turn is done in any case, unless an end was asked for and is over.
            0 => !self.is_over(turns.share, 0.0),
            _ => turns.end.is_none_or(|end| now + last <= end),
        };
        if turns.next == turns.runs || !in_time {
            return None;
        }
        turns.began = now;
        turns.next += 1;
        Some(turns.next - 1)
    }
}

impl Turns {
    /// How many turns were begun, and how many were wanted.
    pub fn done(&self) -> (usize, usize) {
        (self.next, self.runs)
    }
}

/// A time as people say it: `40 s`, `12 min`, `3.5 h`.
pub fn said(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{:.0} s", s.max(1.0)),
        s if s < 99.5 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    fn count(clock: &Clock, runs: usize, share: f64, each: u64) -> usize {
        let mut turns = clock.turns(runs, share);
        while clock.turn(&mut turns).is_some() {
            sleep(Duration::from_millis(each));
        }
        turns.done().0
    }

    #[test]
    fn without_an_end_all_turns_are_done() {
        let clock = Clock::new(None, false);
        assert_eq!(count(&clock, 3, 0.5, 0), 3);
        assert!(clock.has_time(1e9));
    }

    #[test]
    fn the_first_turn_is_done_though_there_is_no_time() {
        let clock = Clock::new(Some(Duration::from_millis(1)), false);
        assert_eq!(count(&clock, 3, 1.0, 5), 1);
        assert_eq!(count(&clock, 3, 1.0, 5), 1);
        assert!(!clock.is_over(1.0, 1e9) && !clock.has_time(1.0));
    }

    #[test]
    fn a_turn_is_begun_while_there_is_time_for_it() {
        let clock = Clock::new(Some(Duration::from_secs(10)), false);
        let turns = count(&clock, 1_000, 0.02, 20);
        assert!(
            (1..=10).contains(&turns),
            "{turns} turns of 20 ms in 200 ms"
        );
    }

    #[test]
    fn after_an_end_that_was_asked_for_nothing_is_begun() {
        let clock = Clock::new(Some(Duration::from_millis(1)), true);
        sleep(Duration::from_millis(2));
        assert_eq!(count(&clock, 3, 1.0, 0), 0);
        assert!(clock.is_over(1.0, 0.0));
        let clock = Clock::new(Some(Duration::from_secs(100)), true);
        assert!(clock.is_over(0.5, 60.0) && !clock.is_over(1.0, 60.0));
    }

    #[test]
    fn patience_is_shared_out() {
        let clock = Clock::new(Some(Duration::from_secs(100)), false);
        let each = clock.patience(0.5, 10).expect("there is an end");
        assert!((Duration::from_secs(4)..=Duration::from_secs(5)).contains(&each));
        assert_eq!(Clock::new(None, false).patience(0.5, 10), None);
    }

    #[test]
    fn times_are_said_as_people_do() {
        assert_eq!(
            [0.2, 40.0, 99.0, 600.0, 12_600.0].map(said),
            ["1 s", "40 s", "99 s", "10 min", "3.5 h"]
        );
    }
}

//! The speed of the reaper: enough to keep up, and no more than the other threads can spare.
//!
//! ```text
//!  left to free      ≤ CALM          ≤ HIGH         > HIGH
//!  after a piece     3 × its time    its time       nothing: at full speed, and helpers come
//!  share of a core   a quarter       a half         all of it, and of the helpers' cores
//! ```
//!
//! A piece ends after [`PIECE`]. So a thread that shares a core with the reaper never waits longer
//! than that. The reaper sleeps in the rest of the time, and doesn't only yield: a thread that
//! yields is still entitled to its share, and takes it in turns of several milliseconds.
//!
//! The priority of the thread isn't changed, for two reasons. It could be lowered, but not raised
//! again without a privilege when the backlog grows. And a thread of low priority that is preempted
//! while it has the epoch pinned may stay so for long, and delays the freeing of the memory of all
//! tables.

use crate::cores::cores;
use std::thread;
use std::time::{Duration, Instant};

/// The time of work between two rests.
const PIECE: Duration = Duration::from_micros(150);

/// Up to this many bytes there is no hurry: about eight million small objects, which are freed in a
/// second or two.
pub(crate) const CALM: usize = 256 << 20;

/// Beyond this many bytes nothing is more urgent than freeing them.
pub(crate) const HIGH: usize = 1 << 30;

/// The rest after this time of work, with this many bytes left to free. None while a thread waits
/// for the end.
pub(crate) fn rest(worked: Duration, backlog: usize, awaited: bool) -> Duration {
    match backlog {
        _ if awaited => Duration::ZERO,
        0..=CALM => worked * 3,
        _ if backlog <= HIGH => worked,
        _ => Duration::ZERO,
    }
}

/// The number of threads that help when more than `HIGH` is left: a quarter of the cores, since
/// filling a table takes several times as long as freeing it.
pub(crate) fn helpers() -> usize {
    (cores() / 4).clamp(1, 8)
}

/// A worker's clock: when the current piece began.
pub(crate) struct Throttle(Instant);

impl Throttle {
    /// Begins a piece.
    pub(crate) fn new() -> Self {
        Throttle(Instant::now())
    }

    /// Called after each bit of work. If the piece is over, rests, and returns `true`. `backlog`
    /// and `awaited` are the arguments of `rest`.
    pub(crate) fn pause(&mut self, look: impl FnOnce() -> (usize, bool)) -> bool {
        // The backlog is only read once for each piece. So a bit of work costs one reading of the
        // clock.
        let worked = self.0.elapsed();
        if worked < PIECE {
            return false;
        }
        let (backlog, awaited) = look();
        // A piece that took longer than it should is followed by a longer rest.
        let rest = rest(worked, backlog, awaited);
        if rest.is_zero() {
            thread::yield_now();
        } else {
            thread::sleep(rest);
        }
        *self = Throttle::new();
        true
    }

    /// Called when the worker has waited for work, which counts as a rest.
    pub(crate) fn restart(&mut self) {
        *self = Throttle::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_a_core_while_there_is_no_hurry() {
        assert_eq!(rest(PIECE, 0, false), PIECE * 3);
        assert_eq!(rest(PIECE, CALM, false), PIECE * 3);
    }

    #[test]
    fn faster_the_more_is_left() {
        assert_eq!(rest(PIECE, CALM + 1, false), PIECE);
        assert_eq!(rest(PIECE, HIGH, false), PIECE);
        assert_eq!(rest(PIECE, HIGH + 1, false), Duration::ZERO);
    }

    #[test]
    fn no_rest_while_somebody_waits() {
        assert_eq!(rest(PIECE, 0, true), Duration::ZERO);
    }

    #[test]
    fn a_piece_that_took_long_is_made_up_for() {
        let mut throttle = Throttle(Instant::now() - PIECE * 4);
        let begun = Instant::now();
        throttle.pause(|| (0, false));
        assert!(begun.elapsed() >= PIECE * 12);
    }

    #[test]
    fn no_rest_within_a_piece() {
        Throttle(Instant::now() + Duration::from_secs(60))
            .pause(|| unreachable!("looked within a piece"));
    }
}

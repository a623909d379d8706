//! How fast the reaper works: enough to keep up, and no more than others can spare.
//!
//! ```text
//!  left to free      ≤ CALM          ≤ HIGH         > HIGH
//!  after a piece     3 × its time    its time       nothing: at full speed, and helpers come
//!  share of a core   a quarter       a half         all of it, and of the helpers' cores
//! ```
//!
//! A piece ends after [`PIECE`], so that a thread that shares a core with the reaper waits no
//! longer than that for it. The rest is slept, not yielded: a thread that yields is still owed its
//! share, and takes it in turns of several milliseconds.
//!
//! The priority of the thread is left alone, for two reasons. It could be lowered but, without a
//! privilege, not raised again when the backlog grows. And a thread of low priority that is
//! interrupted while it has the epoch pinned stays so for long, and holds up the memory of all
//! tables.

use std::thread;
use std::time::{Duration, Instant};

/// Work between two rests.
pub(crate) const PIECE: Duration = Duration::from_micros(150);

/// Up to this many bytes left to free there is no hurry: some eight million small objects, freed in
/// a second or two.
pub(crate) const CALM: usize = 256 << 20;

/// Beyond this many bytes nothing is more urgent than to free them.
pub(crate) const HIGH: usize = 1 << 30;

/// How long to rest after so much work, with so many bytes left to free. None while somebody waits
/// for the end.
pub(crate) fn rest(worked: Duration, backlog: usize, awaited: bool) -> Duration {
    match backlog {
        _ if awaited => Duration::ZERO,
        0..=CALM => worked * 3,
        _ if backlog <= HIGH => worked,
        _ => Duration::ZERO,
    }
}

/// Threads that come to help when more than `HIGH` is left: a quarter of the cores, since it takes
/// several times as long to fill a table as to free it.
pub(crate) fn helpers() -> usize {
    thread::available_parallelism().map_or(1, |cores| (cores.get() / 4).clamp(1, 8))
}

/// A worker's clock: when the piece under way began.
pub(crate) struct Throttle(Instant);

impl Throttle {
    /// A piece begins.
    pub(crate) fn new() -> Self {
        Throttle(Instant::now())
    }

    /// After each bit of work: rests if the piece is over, and says whether it was. `backlog` and
    /// `awaited` as `rest` wants them.
    pub(crate) fn pause(&mut self, look: impl FnOnce() -> (usize, bool)) -> bool {
        // Between two looks at the backlog there is a whole piece, so a bit of work costs a look at
        // the clock and no more.
        let worked = self.0.elapsed();
        if worked < PIECE {
            return false;
        }
        let (backlog, awaited) = look();
        // A piece that took longer than it should is made up for by a longer rest.
        let rest = rest(worked, backlog, awaited);
        if rest.is_zero() {
            thread::yield_now();
        } else {
            thread::sleep(rest);
        }
        *self = Throttle::new();
        true
    }

    /// The worker has waited for work: that was rest enough.
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

//! Who goes first when transactions keep losing.
//!
//! A transaction that has lost several times asks for the *turn*. While somebody has it, other
//! transactions don't begin, for at most `TURN`; those under way end. So the one with the turn
//! meets no other transaction but those, and then none. (Writes of single keys go on: one that
//! writes what the transaction reads all the time can still make it lose.)

use larder_index::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// How long others wait at most for a transaction with the turn.
const TURN: Duration = Duration::from_millis(100);

/// Until when somebody has the turn, in microseconds since the first look; 0 if nobody has.
static UNTIL: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGIN.elapsed().as_micros() as u64
}

/// The turn, of whoever has this.
pub struct Turn(u64);

impl Turn {
    /// Takes the turn, if nobody has it.
    pub fn take() -> Option<Turn> {
        // Ordering: Relaxed, all of this file: the turn protects nothing.
        let held = UNTIL.load(Ordering::Relaxed);
        let now = now();
        let until = now + TURN.as_micros() as u64;
        let free = held <= now;
        (free
            && UNTIL
                .compare_exchange(held, until, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok())
        .then_some(Turn(until))
    }

    /// Whether somebody has the turn. Then a transaction should not begin.
    #[inline]
    pub fn is_taken() -> bool {
        let until = UNTIL.load(Ordering::Relaxed);
        until != 0 && until > now()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Another may have taken it since, if it was kept for too long.
        let _ = UNTIL.compare_exchange(self.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

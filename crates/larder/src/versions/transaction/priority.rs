//! Priority between transactions that keep losing.
//!
//! A transaction that has lost several times asks for the *turn*. While a transaction has the turn,
//! no other one begins, and no commit of operations, for at most `TURN`. Those in progress end. So
//! the transaction with the turn first competes only with those, and then with none. (Writes of
//! single keys continue. A thread that keeps writing what the transaction reads can still make it
//! lose.)
//!
//! The host interfaces enforce this: before they begin a transaction, they ask whether the turn is
//! taken.

use larder_index::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The maximum time that others wait for a transaction with the turn.
const TURN: Duration = Duration::from_millis(100);

/// The time at which the turn ends, in microseconds since the first reading of the clock; 0 if the
/// turn is free.
static UNTIL: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGIN.elapsed().as_micros() as u64
}

/// The turn. It is given up when this value is dropped.
pub struct Turn(u64);

impl Turn {
    /// Takes the turn, if it is free.
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

    /// Whether a transaction has the turn. If so, another one should not begin.
    #[inline]
    pub fn is_taken() -> bool {
        Self::taken().is_some()
    }

    /// The end of the turn that a transaction has.
    #[inline]
    pub fn taken() -> Option<u64> {
        let until = UNTIL.load(Ordering::Relaxed);
        (until != 0 && until > now()).then_some(until)
    }

    /// The end of this turn, by which it is distinguished from others.
    pub fn end(&self) -> u64 {
        self.0
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Another transaction may have taken it since, if it was kept for too long.
        let _ = UNTIL.compare_exchange(self.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

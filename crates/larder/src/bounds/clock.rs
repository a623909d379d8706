//! What time it is, in milliseconds since the first question, from 1. It never goes back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use std::time::Instant;

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// By how much tests have moved the clock on.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// The time.
#[inline]
pub(crate) fn now() -> u64 {
    // Ordering: Relaxed; a figure that only grows, and orders nothing.
    let ahead = AHEAD.load(Ordering::Relaxed);
    // A model checker's schedules can be run again only if time stands still.
    if cfg!(larder_model) {
        return ahead + 1;
    }
    BEGUN.elapsed().as_millis() as u64 + ahead + 1
}

/// Moves the clock on by so many milliseconds, for all tables of the program: for tests of what
/// expires. It can't be moved back.
pub fn advance(ms: u64) {
    // Ordering: Relaxed, as in `now`.
    AHEAD.fetch_add(ms, Ordering::Relaxed);
}

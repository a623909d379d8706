//! Milliseconds since the clock was first read, plus 1, as 0 is `NO_TIME`. It never goes back.

use super::stamp::NEVER;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use std::time::Instant;

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// How far tests have moved the clock forward.
static OFFSET: AtomicU64 = AtomicU64::new(0);

/// Returns the time.
#[inline]
pub(crate) fn now() -> u64 {
    // Ordering: Relaxed; a number that only grows, and orders nothing.
    let offset = OFFSET.load(Ordering::Relaxed);
    // The model checker can repeat a schedule only if time stands still.
    if cfg!(larder_model) {
        return offset + 1;
    }
    BEGUN.elapsed().as_millis() as u64 + offset + 1
}

/// How far the clock can be moved at most, so that the time never is `NEVER`.
const FARTHEST: u64 = NEVER / 2;

/// Moves the clock forward by this number of milliseconds, for all tables of the process, up to 17
/// years in total. Tests of expiry use this. The clock can't be moved back.
pub fn advance(ms: u64) {
    let moved = |offset: u64| Some(offset.saturating_add(ms).min(FARTHEST));
    // Ordering: Relaxed, as in `now`.
    let _ = OFFSET.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
}

//! Memory that is freed later, by other threads than the caller.
//!
//! | file | what it has |
//! |---|---|
//! | `deferred` | release lists: counts of handles, and small stores, that may have readers |
//! | `reaper` | the thread that frees large stores, in small pieces |
//! | `throttle` | the speed of that thread |
//! | `trim` | when free memory is returned to the system |

/// What the reaper frees in small pieces.
pub(crate) trait Reaped: Send + Sync {
    /// The memory in bytes.
    fn memory(&self) -> usize;

    /// Frees some objects, about `limit`. Nobody uses the value any more. Returns `true` if it can
    /// be dropped at once then.
    fn free_some(&mut self, limit: usize) -> bool;
}

mod deferred;
pub(crate) mod reaper;
pub(crate) mod throttle;
mod trim;

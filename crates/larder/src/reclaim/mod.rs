//! Memory that is given back later, by others than the caller.
//!
//! | file | what it has |
//! |---|---|
//! | `deferred` | release lists: counts of handles, and small stores, until their readers are gone |
//! | `reaper` | the thread that frees large stores, bit by bit |
//! | `throttle` | how fast it works |
//! | `trim` | when free memory goes back to the system |

mod deferred;
pub(crate) mod reaper;
pub(crate) mod throttle;
mod trim;

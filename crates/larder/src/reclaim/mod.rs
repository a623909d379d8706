//! Memory that is freed later, by other threads than the caller.
//!
//! | file | what it has |
//! |---|---|
//! | `deferred` | release lists: counts of handles, and small stores, that may have readers |
//! | `reaper` | the thread that frees large stores, in small pieces |
//! | `throttle` | the speed of that thread |
//! | `trim` | when free memory is returned to the system |

mod deferred;
pub(crate) mod reaper;
pub(crate) mod throttle;
mod trim;

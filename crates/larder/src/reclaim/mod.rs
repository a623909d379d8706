//! Memory that is given back behind everybody's back: what tables leave behind, no faster than need
//! be, and free memory to the system.

mod deferred;
pub(crate) mod reaper;
mod throttle;
mod trim;

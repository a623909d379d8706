//! Where the structures take their atomics, locks and waiting from: one place, so that a model checker can choose who goes next.
//!
//! Built with `--cfg larder_model`, each operation on an atomic first lets Shuttle (a checker that runs threads one at a time, in orders of
//! its choice) go on with another thread. The atomics stay words of memory with the same layout, so that leaves can be made of them.
//! Shuttle's orders are sequentially consistent; weaker ones are Miri's business.

#[cfg(not(larder_model))]
mod real {
    pub(crate) use crossbeam_utils::Backoff;
    pub(crate) use parking_lot::Mutex;
    pub(crate) use std::sync::atomic;
}
#[cfg(not(larder_model))]
pub(crate) use real::*;

#[cfg(larder_model)]
mod model;
#[cfg(larder_model)]
pub use model::plant_fault;
#[cfg(larder_model)]
pub(crate) use model::{atomic, Backoff, Mutex};

//! Scans: select, count, delete, take and replace by match specification, in slices.
//!
//! A scan remembers where it is as a position, never as a pointer: between two slices anything may
//! happen to the table, and the scan goes on from the position. The order of positions never
//! changes, so an object that is there throughout is met exactly once, and one that is inserted or
//! deleted meanwhile once or not at all. A scan is no snapshot; each leaf's worth of objects is
//! read at one instant.
//!
//! A fold is no scan: it takes chunks (see `fold`).
//!
//! A specification whose only clause names the key is no scan either, but a lookup (see `point`).
//!
//! The program's plan says where to look: nowhere, under some keys, in a range of an ordered_set,
//! everywhere.

mod change;
mod cursor;
mod fold;
mod point;
mod select;

pub use change::{DeleteJob, ReplaceJob, TakeJob};
pub(crate) use cursor::Cursor;
pub use fold::Show;
pub use point::Point;
pub use select::{CountJob, Output, ScanStep, SelectJob};

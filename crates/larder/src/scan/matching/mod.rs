//! Scans by match specification, with the feature `matchspec`.

mod change;
mod long;
mod point;
mod select;

pub use change::{DeleteJob, ReplaceJob, TakeJob};
pub use point::Point;
pub use select::CountJob;

//! Scans by match specification, with the feature `matchspec`.

mod change;
mod jobs;
mod long;
mod point;
mod select;

pub use jobs::{DeleteJob, ReplaceJob, TakeJob};
pub use point::Point;
pub use select::CountJob;

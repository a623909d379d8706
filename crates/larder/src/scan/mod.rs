//! Scans: select, count, delete, take and replace by match specification, in slices.
//!
//! Between two slices a scan keeps its resume point as a position, never as a pointer. So whatever
//! happens to the table meanwhile, the scan continues from the position. The order of positions
//! never changes. So an object that is present throughout the scan is processed exactly once, and
//! one that is inserted or deleted meanwhile once or not at all. A scan is no snapshot: only the
//! objects of one leaf are read at one instant.
//!
//! The program's plan says where to look: nowhere, under some keys, in a range of an ordered_set,
//! or everywhere. A secondary index may give the keys instead (see `cursor`). A specification whose
//! only clause binds the key is a lookup instead (see `matching::point`). A fold is no scan: it
//! reads chunks (see `fold`).

mod cursor;
mod fold;
mod gathered;
#[cfg(feature = "matchspec")]
mod matching;
mod output;
#[cfg(feature = "serde")]
mod page;
mod range;
mod select;

pub(crate) use cursor::Cursor;
pub use fold::{FoldChunk, ShowObject};
#[cfg(feature = "matchspec")]
pub use matching::{CountJob, DeleteJob, Point, ReplaceJob, TakeJob};
pub use output::{Output, ScanStep};
#[cfg(feature = "serde")]
pub(crate) use page::Page;
#[cfg(feature = "serde")]
pub(crate) use range::KeyBounds;
pub use select::SelectJob;
pub(crate) use select::{cost, pass_on};

//! Structures that keep objects, as bytes, under keys, as bytes.
mod traits;
pub use crossbeam_epoch::{pin, Guard};
pub use traits::*;

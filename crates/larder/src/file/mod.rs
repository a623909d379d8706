//! Tables in files.
//!
//! ```text
//!  file    magic (8)  version (u16)  header length (u32)  header  checksum (u32)   chunk*   footer
//!  chunk   'C'  payload length (u32)  objects (u32)  payload  checksum (u32)        payload: the objects, each in the external term format
//!  footer  'E'  objects (u64)  SHA-256 of everything before the footer (32)  checksum (u32)
//! ```
//!
//! Numbers are little endian; checksums are CRC-32 of the part that they end. So a file that was
//! cut short, one that was altered, one that a later Larder wrote and one that is something else
//! are told from each other, and damage is found in the chunk where it lies. A chunk ends with the
//! object that makes it full; one that is larger than its length field holds fails the save.
//!
//! A file is written under a temporary name in the same folder and renamed when it is complete:
//! what was there before is replaced by a good file or not at all. What is saved is the table as of
//! the moment at which the save began (see `crate::versions`). A table on a structure of the
//! studies has no snapshots: of it, what a scan sees is saved (see [`crate::scan`]).

mod format;
mod load;
mod save;

pub use format::{read_header, Header};
pub use load::{LoadJob, LoadOptions};
pub use save::{SaveJob, SaveOptions};

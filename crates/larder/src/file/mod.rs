//! Tables in files.
//!
//! ```text
//!  file    magic (8)  version (u16)  header length (u32)  header  checksum (u32)   chunk*   footer
//!  chunk   'C'  payload length (u32)  objects (u32)  payload  checksum (u32)
//!          payload: the objects, each in the external term format
//!  footer  'E'  objects (u64)  SHA-256 of everything before the footer (32)  checksum (u32)
//! ```
//!
//! Numbers are little endian. A checksum is the CRC-32 of the part that it ends. So these are
//! distinguished: a truncated file, a damaged one, one of a later version of Larder, and one of
//! another kind. Damage is located in a chunk. A chunk ends with the object that makes it full. If
//! its length exceeds the length field, the save fails.
//!
//! A file is written under a temporary name in the same folder, and renamed when it is complete. So
//! an existing file is replaced by a complete one, or not at all. The file has the table as of the
//! moment at which the save began (see `crate::versions`). A table on a structure of the studies
//! has no snapshots, and is saved as a scan sees it (see [`crate::scan`]).

mod format;
mod load;
mod save;

pub use format::{read_header, Header};
pub use load::{LoadJob, LoadOptions};
pub use save::{SaveJob, SaveOptions};

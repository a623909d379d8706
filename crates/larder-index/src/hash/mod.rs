//! What lies in the leaves of the hash order: how objects lie in buckets, how leaves are filled,
//! and how they are scanned. The memory itself, and how threads share it, is `raw`'s.

pub(crate) mod build;
pub(crate) mod gather;
pub(crate) mod plain;
pub(crate) mod pour;
pub(crate) mod resize;
pub(crate) mod scan;
pub(crate) mod shape;

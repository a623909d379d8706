//! `make bench-rust`: our structures and maps of other crates, used by one thread and by several.

pub mod engine;
pub mod growth;
pub mod peers;
pub mod resident;
pub mod skew;
pub mod threads;
pub mod typed;

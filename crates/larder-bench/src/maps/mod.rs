//! `make bench-rust`: our structures beside maps of other crates, from one thread and from several.

pub mod engine;
pub mod growth;
pub mod peers;
pub mod resident;
pub mod skew;
pub mod threads;
pub mod typed;

//! `make bench-rust`: Larder's structures beside maps of other crates.

pub mod engine;
pub mod growth;
pub mod peers;
pub mod resident;
pub mod skew;
pub mod threads;
pub mod typed;

//! Larder: tables of tuples in memory, shared by many threads, queried by key, by order or by pattern.

#![deny(unsafe_code)]

pub mod api;
mod budget;
mod counters;
mod engine;
mod error;
pub mod file;
mod fixation;
mod gate;
mod info;
mod ops;
mod options;
mod owner;
#[allow(unsafe_code)]
mod raw;
mod read;
mod reaper;
mod registry;
pub mod scan;
mod scratch;
mod store;
mod table;
mod traverse;
mod update;
mod write;

pub use budget::{Budget, Step};
pub use engine::{Door, Engine, NoDoor};
pub use error::{Error, FileError};
pub use fixation::{FixTime, Fixed};
pub use gate::{ListJob, ObjectList};
pub use info::Info;
pub use options::{structures, Access, Concurrency, Options, TableKind};
pub use owner::OwnerId;
pub use scan::{CountJob, DeleteJob, Output, ReplaceJob, ScanStep, SelectJob};
pub use table::{Table, TableId};
pub use traverse::Slot;
pub use update::{CounterOp, NewRow};

pub use larder_index::Direction;

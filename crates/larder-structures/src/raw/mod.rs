//! The only `unsafe` of this crate: memory that several threads reach, behind interfaces that can't be misused.

pub(crate) mod group_lock;
pub(crate) mod slot;

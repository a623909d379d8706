//! The only `unsafe` of this crate: memory that several threads reach, behind interfaces that can't
//! be misused; and a tree's nodes by address.

pub(crate) mod group_lock;
pub(crate) mod heap;
pub(crate) mod slot;

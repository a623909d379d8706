//! The nodes: the only unsafe code of the crate.
//!
//! A tree is one [`Jp`](jp::Jp), the pointer pair of its root. A pair owns what it points to, its
//! tag says what that is, and only this module makes pairs and changes tags: so everything outside
//! reads a node through [`View`](jp::View) and the methods of `Jp`, all of them safe.
//!
//! # What every SAFETY comment here leans on
//!
//! 1. *The tag is true*: a pair's tag, with the population in its field, says the form, level and
//!    length of its block.
//! 2. *A pair owns its block*: no other pair points to it, so `&Jp` lends it for reading and
//!    `&mut Jp` for writing.
//! 3. *A block has its class's words*: [`layout`](crate::layout) computes them from form, level and
//!    population, both when it is taken and when it is given back.
//! 4. *What is read was written*: keys, values below the population, digits and pairs. A leaf's key
//!    area is zeroed when the block is taken, so the eight bytes from any index's beginning are
//!    always written ones.

pub(crate) mod below;
pub(crate) mod cpu;
pub(crate) mod jp;
pub(crate) mod mem;
pub(crate) mod text;
mod text_rank;

//! The nodes: the only unsafe code of the crate.
//!
//! A tree is one [`Jp`](jp::Jp), the pointer pair of its root. A pair owns the block that it points
//! to, and its tag says what the block is. Only this module makes pairs and changes tags. All other
//! code reads nodes through [`View`](jp::View) and the methods of `Jp`, which are safe.
//!
//! # What every SAFETY comment here relies on
//!
//! * **JU7** *The tag is true.* The tag of a pair, with the population in its field, says which
//!   form, level and length its block has.
//! * **JU8** *A pair owns its block.* No other pair points to it. So `&Jp` gives the right to read
//!   it, and `&mut Jp` to write it.
//! * **JU9** *A block has the words of its class.* [`layout`](crate::layout) computes them from the
//!   form, level and population, both when the block is taken and when it is given back.
//! * **JU10** *Only what was written is read:* keys, values below the population, digits and pairs.
//!   The keys of a leaf are zeroed when its block is taken. So the eight bytes from the beginning
//!   of any index on have been written.

pub(crate) mod below;
pub(crate) mod cpu;
pub(crate) mod jp;
pub(crate) mod mem;
pub(crate) mod text;
mod text_rank;

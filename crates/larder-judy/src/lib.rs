//! Judy arrays: sparse, sorted arrays of words and of byte strings that take little memory, from
//! none to billions of indexes.
//!
//! | array | keys | values |
//! |---|---|---|
//! | [`Judy1`] | `u64` | none: a set |
//! | [`JudyL`] | `u64` | `u64` |
//! | [`JudySL`] | byte strings without zero bytes | `u64` |
//! | [`JudyESL`] | byte strings of any bytes | `u64` |
//!
//! The latter two are one [`StringArray`], which differs in how it cuts strings into words.
//!
//! Beside what every sorted map can, the word arrays find the nearest *missing* index, count the
//! indexes of a range and find the n-th one without visiting those between. The string arrays
//! count, too, by the words beside the way: no string is put together, but all before the range's
//! end are passed. All four tell their memory exactly, and can be emptied in slices.
//!
//! # The tree
//!
//! A word array is a digital tree of 256-way branches: each decodes one byte of an index, the
//! highest first. What would be mostly nothing is packed, in a form that fits how many there are:
//!
//! ```text
//!                        root: a pointer pair
//!                                 │
//!             branch of level 8: decodes the highest byte
//!      linear: ≤ 7 digits and pairs   bitmap: 4 × (64 bits, address)   wide: 256 pairs
//!            │                          │                        │
//!      one index, in the pair     linear leaf of level 7     narrow pointer: the bytes 7 … 3 are
//!      some short ones, too       7 bytes an index, sorted   equal below, the pair holds them
//!                                 then the values                │
//!                                                            branch of level 2
//!                                                                │
//!                                            linear, bitmap or full leaf of the last byte
//! ```
//!
//! Each form is drawn where it is made: the pair in `raw/jp.rs`, branches in `raw/branch.rs`,
//! linear leaves in `layout.rs`, bitmap leaves in `raw/bits.rs`, immediate indexes in
//! `raw/immed.rs`. The forms change with what is in them; `layout.rs` says when, and [`Stats`]
//! counts them. A branch and a bitmap leaf begin with one cache line that says where to go on.
//!
//! A string array is a tree of word arrays over the string's words, `raw/text.rs`; a lone string's
//! rest is in a short-cut leaf.
//!
//! # Invariants
//!
//! They stand in `ops/mod.rs` and `raw/text.rs`, and the tests check them after every step.
//!
//! # Sources
//!
//! The ideas are Doug Baskins', as published: the Judy IV shop manual's excerpts of 2002, and the
//! manual pages of libJudy. The code is our own and follows its own layout. It differs in these:
//! populations and shared bytes are in every pair, so no root node is needed; a leaf skips all the
//! bytes that its indexes share when it is made (below the root, and but for one that a shrinking
//! branch becomes); full leaves of a map are plain arrays; strings of any bytes keep their order
//! ([`JudyESL`]), where libJudy has an unordered hash.
//!
//! # When not to use it
//!
//! - For random words and many lookups, a hash table answers with one cache miss where this takes
//!   three or more.
//! - For keys that only grow at the end and are scanned, a B-tree's leaves are quicker to walk.
//! - An insert moves the values of a leaf: a reference to a value is good until the next change, as
//!   the borrow checker knows.
//! - Nothing here knows threads: one writer or many readers, or a lock around it.
//! - Memory comes from the global allocator, and an allocation that fails ends the program, as with
//!   `Vec`.
//!
//! # Consistency
//!
//! `&self` methods may run in any number of threads at once; `&mut self` methods are alone.
#![deny(unsafe_code)]

mod chunks;
mod judy1;
mod judyesl;
mod judyl;
mod judysl;
mod layout;
mod ops;
mod range;
#[allow(unsafe_code)]
mod raw;
mod stats;
mod strings;
#[cfg(test)]
mod tests;
mod tree;
mod upkeep;

pub use chunks::{Chunks, Counted, Terminated};
pub use judy1::Judy1;
pub use judyesl::JudyESL;
pub use judyl::JudyL;
pub use judysl::{JudySL, ZeroByte};
pub use stats::{Stats, TextStats};
pub use strings::StringArray;

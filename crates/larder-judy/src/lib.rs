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
//! The last two are the same [`StringArray`]. They differ only in how a string is cut into words.
//!
//! Besides the operations of every sorted map, the word arrays find the nearest *missing* index.
//! They count the indexes of a range, and find the n-th one, without visiting those in between. The
//! string arrays can count, too: they visit the words before the end of the range, but compose no
//! string. All four know exactly how much memory they use, and can be emptied in slices.
//!
//! # The tree
//!
//! A word array is a digital tree of branches with up to 256 children. Each branch decodes one byte
//! of an index, from the highest byte on. A branch or leaf has one of several forms, depending on
//! how much is in it, so that little memory is spent on what is missing:
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
//! A drawing of each form is in the file that makes it: of the pair in `raw/jp.rs`, of branches in
//! `raw/jp/branch.rs`, of linear leaves in `layout.rs`, of bitmap leaves in `raw/jp/bits.rs`, of
//! immediate indexes in `raw/jp/immed.rs`. A node changes its form when its population changes.
//! `layout.rs` has the limits, and [`Stats`] counts the forms. A branch and a bitmap leaf begin
//! with one cache line that tells where to go on.
//!
//! A string array is a tree of word arrays over the words of the strings (`raw/text.rs`). If only
//! one string continues after a word, its rest is in a short-cut leaf.
//!
//! # Invariants
//!
//! The invariants are in `ops/mod.rs` and `raw/text.rs`. The tests check them after every step.
//!
//! # Sources
//!
//! The ideas are Doug Baskins', as published in the excerpts of the Judy IV shop manual (2002) and
//! in the manual pages of libJudy. The code is our own, with its own layout. Deviations:
//!
//! * Each pair contains the population and the shared bytes, so no root node is needed.
//! * A new leaf skips all bytes that its indexes share. Exceptions are a leaf in the root's slot,
//!   and one that a shrinking branch becomes.
//! * Full leaves of a map are plain arrays.
//! * Strings of any bytes keep their order ([`JudyESL`]). In libJudy they are in an unordered hash.
//!
//! # When not to use it
//!
//! - For random words and many lookups, a hash table answers with one cache miss where this takes
//!   three or more.
//! - For keys that only grow at the end and are scanned, a B-tree's leaves are quicker to walk.
//! - An insert moves the values of a leaf. So a reference to a value is valid until the next
//!   change, which the borrow checker enforces.
//! - Nothing here synchronizes threads: use one writer or several readers, or a lock.
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

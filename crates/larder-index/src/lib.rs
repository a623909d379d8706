//! Concurrent in-memory indexes. Keys and values are bytes.
//!
//! There are two traits: [`Unique`], an index with one value per key, and [`Multi`], one with any
//! number of values per key, in the order of insertion. [`unique`] and [`multi`] make the default
//! indexes. The simple implementations that serve as test oracles are in `larder-testing`.
//!
//! ```
//! use larder_index::{pin, unique, Batch, Change, Direction, Key, Start, UniqueKind};
//!
//! let index = unique(UniqueKind::Ordered);
//! let guard = pin();
//! for (name, age) in [("ann", 1u8), ("bob", 2), ("eve", 3)] {
//!     let key = Key { bytes: name.as_bytes(), hash: 0 };
//!     let value = [age];
//!     assert!(index.update(&guard, key, &mut |_, new| {
//!         new.extend_from_slice(&value);
//!         Change::Put
//!     }));
//! }
//! let mut value = Vec::new();
//! assert!(index.get(&guard, Key { bytes: b"bob", hash: 0 }, &mut value));
//! assert_eq!(value, [2]);
//!
//! let mut batch = Batch::default();
//! index.scan(&guard, Start::Past(b"ann"), Direction::Forward, &mut batch);
//! assert_eq!((batch.len(), batch.key(0), batch.done), (2, &b"bob"[..], true));
//! ```
//!
//! # What a concurrent reader may see
//!
//! * `get` and `contains` return the state at one instant. They take no lock. They wait only while
//!   a writer changes the leaf that they read.
//! * `update` is atomic for its key.
//! * A batch of a scan is the state of its entries at one instant. Different batches are of
//!   different instants. A scan returns each key that is present throughout the scan exactly once,
//!   in order. A key that is inserted or removed meanwhile is returned at most once.
//! * `get` of a `Multi` returns all values of a key at one instant. A scan returns them leaf by
//!   leaf.
//!
//! # How it is built
//!
//! ```text
//!           Bag                                      value lists and value trees
//!          /    \
//!  HashOrder     \____________      KeyOrder         what a position is: hash and key, or the key
//!      |                       \     /
//!  hash: buckets, sizes, scans   btree               reads, writes, splits, scans
//!      |                            |
//!  hash::trie                    btree::inner        the paths to the leaves
//!      |                            |
//!  hash::leaf                    btree::leaf         memory with one writer and many readers
//!       \__________________________/
//!                    |
//!       outside, seqlock, memory; sync               large objects; versions; allocator; atomics
//! ```
//!
//! Only some modules have unsafe code: `memory` (except `units`), `outside`, `seqlock::words`,
//! `traits::lend`, `hash::{bucket, eight, leaf, slot, trie}`,
//! `btree::{inner, leaf, restructure, slot, view}` and `chains::{arena, heads, node}`. It is denied
//! in all others.
//!
//! # Cost
//!
//! An operation descends to a leaf and searches it. A write also changes that leaf. A leaf of short
//! entries has roughly 100 to 300 of them.
//!
//! * The depth is O(log n). In key order the inner nodes have at most 64 children.
//! * In hash order the search is in one bucket, usually. The bucket's number is known before the
//!   leaf is reached.
//! * No operation on one key copies more than two leaves and the inner nodes above them.
//!
//! Drop a [`Guard`] soon: memory that is retired while it exists is not freed before it is dropped.

#![deny(unsafe_code)]

mod bag;
mod btree;
mod chains;
mod choice;
mod config;
mod contention;
mod counters;
mod expected;
mod hash;
mod hint;
mod mark;
#[allow(unsafe_code)]
mod memory;
#[allow(unsafe_code)]
mod outside;
mod ranked;
mod scratch;
mod seqlock;
mod shared;
mod striped;
#[doc(hidden)]
pub mod sync;
mod traits;
mod values;

pub use bag::Bag;
pub use btree::key_order::KeyOrder;
pub use chains::Chains;
pub use choice::{Choice, ChoiceRange, ChoiceValue};
pub use config::LeafConfig;
#[cfg(not(larder_model))]
pub use crossbeam_epoch::pin;
/// What [`pin`] returns. Only such a guard may be passed to an index: one of another collector of
/// `crossbeam_epoch` keeps nothing that an index lends from being freed.
pub use crossbeam_epoch::Guard;
pub use hash::key_rule::{KeyRule, Rule};
pub use hash::removed::{seen_after_removal_of, seen_after_removals};
pub use hash::HashOrder;
pub use hint::Hint;
#[cfg(debug_assertions)]
pub use memory::bytes_allocated;
#[cfg(larder_model)]
pub use memory::quarantine::Quarantine;
#[cfg(feature = "mimalloc")]
pub use memory::Allocator;
pub use memory::{bytes_kept, end_thread, huge_pages, trim, trim_arenas};
pub use outside::retire::{are_flushes_held, flush_or_hold, HeldFlushes};
pub use outside::retire::{garbage_waits, on_garbage};
pub use ranked::{Counted, Ranked};
pub use scratch::with_spare;
pub use striped::Striped;
#[cfg(larder_model)]
pub use sync::pin;
pub use traits::*;
pub use values::Values;

/// The order of the entries of a [`Unique`] index.
#[derive(Clone)]
pub enum UniqueKind {
    /// By hash, then by key. The index recomputes hashes by the rule when it needs them again.
    Hash(Rule),
    /// By the bytes of the key.
    Ordered,
}

/// An empty index with at most one value per key.
// Inlined, as is `unique_with`, so that the hash order for a `Rule` is compiled only for programs
// that use it.
#[inline]
pub fn unique(kind: UniqueKind) -> Box<dyn Unique> {
    unique_with(kind, LeafConfig::default())
}

/// Like [`unique`], by the bytes of the key.
pub fn unique_ordered() -> Box<dyn Unique> {
    Box::new(KeyOrder::new(LeafConfig::default()))
}

/// Like [`unique`], with other sizes of leaves. For tests and measurements.
#[inline]
pub fn unique_with(kind: UniqueKind, config: LeafConfig) -> Box<dyn Unique> {
    match kind {
        UniqueKind::Hash(rule) => Box::new(HashOrder::new(rule, config)),
        UniqueKind::Ordered => Box::new(KeyOrder::new(config)),
    }
}

/// Like [`unique`], by hash, for a rule that is known at compile time. Calls of the rule are not
/// dynamic, which makes scans and the growth of leaves faster.
pub fn unique_hashed<R: KeyRule + 'static>(rule: R) -> Box<dyn Unique> {
    Box::new(HashOrder::new(rule, LeafConfig::default()))
}

/// Like [`unique_ordered`], for users who hold locks of other indexes while they write to this one.
/// They call [`Unique::flush_postponed`] when they hold none.
pub fn ordered_under_locks() -> Box<dyn Unique> {
    Box::new(KeyOrder::new(LeafConfig::default()).under_locks())
}

/// An empty index with any number of values per key, whose keys follow this rule. Its
/// [`Objects::find`] finds values that are equal as bytes.
pub fn multi<R: KeyRule + 'static>(rule: R) -> Box<dyn Multi> {
    multi_with(rule, LeafConfig::default())
}

/// Like [`multi`], with other sizes of leaves. For tests and measurements.
pub fn multi_with<R: KeyRule + 'static>(rule: R, config: LeafConfig) -> Box<dyn Multi> {
    multi_hashed(rule, config, hash_of_bytes)
}

/// Like [`multi_with`]. [`Objects::find`] and [`Objects::remove_same`] only consider values with
/// the same hash, by this function.
pub fn multi_hashed<R: KeyRule + 'static>(
    rule: R,
    config: LeafConfig,
    hash: ObjectHash,
) -> Box<dyn Multi> {
    Box::new(Bag::new(rule, config, hash))
}

/// A hash of all bytes. Its seed is random, once per process.
fn hash_of_bytes(bytes: &[u8]) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    static SEED: std::sync::OnceLock<RandomState> = std::sync::OnceLock::new();
    SEED.get_or_init(RandomState::new).hash_one(bytes)
}

//! Structures that keep objects, as bytes, under keys, as bytes, shared by any number of threads.
//!
//! Two traits say what an index does: [`Unique`] (one value under a key) and [`Multi`] (many, in
//! order of arrival). [`unique`] and [`multi`] make the defaults. The obviously right ones that
//! they are tested against are in `larder-testing`.
//!
//! ```
//! use larder_index::{pin, unique, Batch, Change, Direction, Key, Start, UniqueKind};
//!
//! let index = unique(UniqueKind::Ordered);
//! let guard = pin();
//! for (name, age) in [("ann", 1u8), ("bob", 2), ("eve", 3)] {
//!     let key = Key { bytes: name.as_bytes(), hash: 0 };
//!     let value = [age];
//!     assert!(index.update(&guard, key, &mut |_, _| Change::Put(&value)));
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
//! * `get` and `contains` see one instant and take no lock. They wait only while a writer changes
//!   the one leaf that they read.
//! * `update` is atomic for its key.
//! * A scan sees each batch as of one instant, and different batches as of different ones. It meets
//!   every key that is there from its beginning to its end exactly once, in order; a key that comes
//!   or goes meanwhile it may meet or not, once.
//! * A `Multi` shows all values of a key as of one instant to `get`; a scan shows them leaf by
//!   leaf.
//!
//! # How it is built
//!
//! ```text
//!           Bag                                      lists of objects, and value trees
//!          /    \
//!  HashOrder     \____________      KeyOrder         positions: what an entry is sorted by
//!      |                       \     /
//!  hash: buckets, sizes, scans   btree               reads, writes, splits, scans, over leaves
//!      |                            |
//!  hash::trie                    btree::inner        the paths to the leaves
//!      |                            |
//!  hash::leaf                    btree::leaf         memory that many read while one writes
//!       \__________________________/
//!                    |
//!       outside, seqlock, memory; sync               large objects; versions; regions; atomics
//! ```
//!
//! Unsafe code lies where memory is touched, and is denied elsewhere: in `memory` (but for
//! `units`), `outside`, `seqlock::words`, `hash::{bucket, leaf, slot, trie}` and
//! `btree::{inner, leaf, restructure, slot, view}`.
//!
//! Costs, for n entries in leaves of a hundred to three hundred: an operation is a descent (log₃₂
//! n), a search in one leaf (in hash order in one bucket of some lines, which are known before the
//! leaf is reached), and for a write a change in that leaf. No operation copies more than a leaf
//! and the inner nodes above it.
//!
//! Hold a [`Guard`] briefly: what is removed meanwhile is not freed before it is dropped.

#![deny(unsafe_code)]

mod bag;
mod btree;
mod choice;
mod config;
mod contention;
mod counters;
mod hash;
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
pub use choice::{Choice, ChoiceRange, ChoiceValue};
pub use config::LeafConfig;
#[cfg(not(larder_model))]
pub use crossbeam_epoch::pin;
pub use crossbeam_epoch::Guard;
pub use hash::key_rule::{KeyRule, Rule};
pub use hash::HashOrder;
#[cfg(debug_assertions)]
pub use memory::bytes_taken;
#[cfg(larder_model)]
pub use memory::quarantine::Quarantine;
pub use memory::{bytes_kept, end_thread, huge_pages, trim, trim_arenas, Allocator};
pub use outside::retire::{garbage_waits, on_garbage};
pub use ranked::{Counted, Ranked};
pub use scratch::with_spare;
pub use striped::Striped;
#[cfg(larder_model)]
pub use sync::pin;
pub use traits::*;
pub use values::Values;

/// The order of a [`Unique`] index.
#[derive(Clone)]
pub enum UniqueKind {
    /// By hash, then by key. The rule makes the hashes anew that `Key::hash` said.
    Hash(Rule),
    /// By the bytes of the key.
    Ordered,
}

/// An empty index with at most one value under a key.
pub fn unique(kind: UniqueKind) -> Box<dyn Unique> {
    unique_with(kind, LeafConfig::default())
}

/// As [`unique`], with leaves of other sizes. For tests and measurements.
pub fn unique_with(kind: UniqueKind, config: LeafConfig) -> Box<dyn Unique> {
    match kind {
        UniqueKind::Hash(rule) => Box::new(HashOrder::new(rule, config)),
        UniqueKind::Ordered => Box::new(KeyOrder::new(config)),
    }
}

/// As [`unique`], by hash, for a rule that is known when the program is compiled: it is asked
/// without a detour, which scans and the growing of leaves notice.
pub fn unique_hashed<R: KeyRule + 'static>(rule: R) -> Box<dyn Unique> {
    Box::new(HashOrder::new(rule, LeafConfig::default()))
}

/// As [`unique_hashed`], or by the bytes of the key for no rule, for users who write it while they
/// hold locks of other indexes. When they hold none, they call [`Unique::free_large`].
pub fn unique_under_locks<R: KeyRule + 'static>(rule: Option<R>) -> Box<dyn Unique> {
    match rule {
        Some(rule) => Box::new(HashOrder::new(rule, LeafConfig::default()).under_locks()),
        None => Box::new(KeyOrder::new(LeafConfig::default()).under_locks()),
    }
}

/// An empty index with any number of values under a key, whose keys follow this rule.
/// [`Objects::find`] is for values that are equal as bytes.
pub fn multi<R: KeyRule + 'static>(rule: R) -> Box<dyn Multi> {
    multi_with(rule, LeafConfig::default())
}

/// As [`multi`], with leaves of other sizes. For tests and measurements.
pub fn multi_with<R: KeyRule + 'static>(rule: R, config: LeafConfig) -> Box<dyn Multi> {
    multi_hashed(rule, config, hash_of_bytes)
}

/// As [`multi_with`], where [`Objects::find`] and [`Objects::remove_same`] are for values with the
/// same hash.
pub fn multi_hashed<R: KeyRule + 'static>(
    rule: R,
    config: LeafConfig,
    hash: ObjectHash,
) -> Box<dyn Multi> {
    Box::new(Bag::new(rule, config, hash))
}

/// A hash of all bytes, seeded for the process.
fn hash_of_bytes(bytes: &[u8]) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    static SEED: std::sync::OnceLock<RandomState> = std::sync::OnceLock::new();
    SEED.get_or_init(RandomState::new).hash_one(bytes)
}

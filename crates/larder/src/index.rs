//! The index of a table, whichever kind it is.
//!
//! A set and an ordered_set have one object a key, a bag and a duplicate_bag many: two traits of
//! `larder-index`. What both can do is called here; an operation that differs by them matches on
//! [`Index`].

use crate::options::{Options, TableKind};
use crate::raw;
use crate::structures::{self, DEFAULT};
use larder_index::{
    Batch, Direction, Guard, Key, KeyRule, LeafConfig, Multi, Seen, Start, Stats, Unique,
    UniqueKind, Values,
};
use larder_term::hash::Seed;
use std::sync::Arc;

/// The keys of tables without order: terms, which end themselves, with the table's hash.
struct Terms(Seed);

impl KeyRule for Terms {
    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        self.0.hash(key)
    }

    #[inline]
    fn ends_itself(&self) -> bool {
        true
    }

    #[inline]
    fn key_len(&self, bytes: &[u8]) -> usize {
        larder_term::skip(bytes)
    }
}

/// An index of the kind that the table's type needs.
pub(crate) enum Index {
    /// One object a key.
    Unique(Arc<dyn Unique>),
    /// Many objects a key.
    Multi(Arc<dyn Multi>),
}

/// Calls the same method of either kind.
macro_rules! either {
    ($index:expr, $ix:ident => $call:expr) => {
        match $index {
            Index::Unique($ix) => $call,
            Index::Multi($ix) => $call,
        }
    };
}

impl Index {
    /// An empty index for a table with these options, which were checked, and this seed.
    pub(crate) fn new(options: &Options, seed: &Seed) -> Self {
        let (name, said) = (&options.structure, &options.structure_options);
        match options.kind {
            kind if name != DEFAULT && kind.is_unique() => {
                Index::Unique(structures::build_unique(name, said, kind.is_ordered()).into())
            }
            _ if name != DEFAULT => Index::Multi(structures::build_multi(name, said).into()),
            TableKind::Set => Index::Unique(Self::keyed(false, seed)),
            TableKind::OrderedSet => Index::Unique(Self::keyed(true, seed)),
            TableKind::Bag | TableKind::DuplicateBag => {
                let keys = Terms(seed.clone());
                let bag = larder_index::multi_hashed(keys, LeafConfig::default(), raw::object_hash);
                Index::Multi(bag.into())
            }
        }
    }

    /// As `keyed`, for users who write it while they hold a lock of another index.
    pub(crate) fn keyed_under_locks(ordered: bool, seed: &Seed) -> Arc<dyn Unique> {
        larder_index::unique_under_locks((!ordered).then(|| Terms(seed.clone()))).into()
    }

    /// An empty index with one value a key, in the order of the keys, or of their hashes with this
    /// seed.
    pub(crate) fn keyed(ordered: bool, seed: &Seed) -> Arc<dyn Unique> {
        if ordered {
            larder_index::unique(UniqueKind::Ordered).into()
        } else {
            larder_index::unique_hashed(Terms(seed.clone())).into()
        }
    }

    /// The same index, once more.
    pub(crate) fn share(&self) -> Index {
        match self {
            Index::Unique(ix) => Index::Unique(Arc::clone(ix)),
            Index::Multi(ix) => Index::Multi(Arc::clone(ix)),
        }
    }

    /// Whether a key has one object at most.
    pub(crate) fn is_unique(&self) -> bool {
        matches!(self, Index::Unique(_))
    }

    /// Whether positions are keys.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(self, Index::Unique(ix) if ix.is_ordered())
    }

    /// The number of objects at which it is full; None if it grows.
    pub(crate) fn limit(&self) -> Option<usize> {
        either!(self, ix => ix.limit())
    }

    /// The number of objects.
    pub(crate) fn len(&self) -> usize {
        either!(self, ix => ix.len())
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        either!(self, ix => ix.memory())
    }

    /// Figures of its structure.
    pub(crate) fn stats(&self) -> Stats {
        either!(self, ix => ix.stats())
    }

    /// The table is fixed from now on, or is not any more.
    pub(crate) fn freeze(&self, on: bool) {
        either!(self, ix => ix.freeze(on));
    }

    /// Frees some objects of an index that nobody else writes any more; true when none is left.
    pub(crate) fn free_some(&self, limit: usize) -> bool {
        let guard = larder_index::pin();
        either!(self, ix => ix.free_some(&guard, limit, &mut raw::release_value))
    }

    /// Whether a step to a leaf is short: a hash, not the way down a tree.
    #[inline]
    pub(crate) fn is_short_way(&self) -> bool {
        matches!(self, Index::Unique(ix) if !ix.is_ordered())
    }

    /// Asks for the memory that operations on the keys will touch; a hint.
    #[inline]
    pub(crate) fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        either!(self, ix => ix.prefetch(guard, keys));
    }

    /// Whether there is an object under the key.
    #[inline]
    pub(crate) fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        either!(self, ix => ix.contains(guard, key))
    }

    /// As `contains`, after each write of the key that is under way: also one that holds the lock
    /// of a bag's key and has changed nothing yet.
    pub(crate) fn contains_settled(&self, guard: &Guard, key: Key<'_>) -> bool {
        match self {
            Index::Unique(ix) => ix.contains(guard, key),
            Index::Multi(ix) => {
                // A look under the key's lock: a write that holds it is over when this has it.
                let mut there = false;
                ix.update(guard, key, &mut |objects| there = !objects.is_empty());
                there
            }
        }
    }

    /// Copies the values under a key, all as of one instant.
    pub(crate) fn copy(&self, guard: &Guard, key: Key<'_>, values: &mut Values) {
        values.clear();
        match self {
            Index::Unique(ix) => {
                if ix.get(guard, key, &mut values.bytes) {
                    values.end(0);
                }
            }
            Index::Multi(ix) => {
                ix.read(guard, key, values);
            }
        }
    }

    /// Reads the entry next to a key, or the first of the direction for none. Whether the key is
    /// there.
    #[inline]
    pub(crate) fn step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        batch: &mut Batch,
    ) -> bool {
        match self {
            Index::Unique(ix) => ix.step(guard, key, direction, batch),
            Index::Multi(ix) => ix.step(guard, key, batch),
        }
    }

    /// Whether what was read around a key is as it was.
    pub(crate) fn unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        either!(self, ix => ix.unchanged(guard, key, seen))
    }

    /// Reads a batch of entries from a position on.
    pub(crate) fn scan(
        &self,
        guard: &Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch,
    ) {
        either!(self, ix => ix.scan(guard, start, direction, batch));
    }

    /// Scans on from behind a key. `position` is memory for a position.
    pub(crate) fn scan_past(
        &self,
        guard: &Guard,
        key: Key<'_>,
        direction: Direction,
        position: &mut Vec<u8>,
        batch: &mut Batch,
    ) {
        self.end_position(key, position);
        self.scan(guard, Start::Past(position), direction, batch);
    }

    /// Scans on from where the batch ended. `position` is memory for a position.
    pub(crate) fn scan_on(
        &self,
        guard: &Guard,
        direction: Direction,
        position: &mut Vec<u8>,
        batch: &mut Batch,
    ) {
        // The batch is written to while its own end is read: the two change places, and no position
        // is copied.
        std::mem::swap(position, &mut batch.resume);
        let start = match direction {
            Direction::Forward => Start::At(position),
            Direction::Backward => Start::Past(position),
        };
        self.scan(guard, start, direction, batch);
    }

    /// The position of a key: the one before all its objects, going forward.
    pub(crate) fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        match self {
            Index::Unique(ix) => ix.position(key, out),
            Index::Multi(ix) => ix.first_position(key, out),
        }
    }

    /// The part of a position that all positions of its key begin with.
    pub(crate) fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        match self {
            Index::Unique(_) => position,
            Index::Multi(ix) => ix.key_position(position),
        }
    }

    /// The position behind all objects of a key.
    pub(crate) fn end_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        match self {
            Index::Unique(ix) => ix.position(key, out),
            Index::Multi(ix) => ix.last_position(key, out),
        }
    }

    /// The position of entry `i` of a batch, whose key is `key`.
    pub(crate) fn entry_position(&self, batch: &Batch, i: usize, key: Key<'_>, out: &mut Vec<u8>) {
        match self {
            Index::Unique(ix) => ix.position(key, out),
            Index::Multi(ix) => ix.entry_position(batch, i, out),
        }
    }
}

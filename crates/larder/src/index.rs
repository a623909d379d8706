//! The index of a table: a `Unique` or a `Multi` of `larder-index`.
//!
//! ```text
//!  set, ordered_set        TableIndex::Unique     at most one object per key
//!  bag, duplicate_bag      TableIndex::Multi      any number of objects per key
//! ```
//!
//! The methods here are what both kinds can do. An operation that differs between them matches on
//! [`TableIndex`].

use crate::options::{Options, TableKind};
use crate::raw;
use crate::structures::{self, DEFAULT};
use larder_index::{
    Batch, Direction, Guard, Key, KeyRule, LeafConfig, Multi, Seen, Start, Stats, StepEntry,
    Stepped, Unique, Values,
};
use larder_term::hash::Seed;
use std::sync::Arc;

/// The key rule of unordered tables. Keys are encoded terms, which are self-delimiting. They are
/// hashed with the seed of the table.
struct Terms(Seed);

impl KeyRule for Terms {
    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        self.0.hash(key)
    }

    #[inline]
    fn is_self_delimiting(&self) -> bool {
        true
    }

    #[inline]
    fn key_len(&self, bytes: &[u8]) -> usize {
        larder_term::skip(bytes)
    }
}

/// The index of a table.
pub(crate) enum TableIndex {
    /// At most one object per key.
    Unique(Arc<dyn Unique>),
    /// Any number of objects per key.
    Multi(Arc<dyn Multi>),
}

/// Calls the same method of either trait.
macro_rules! either {
    ($index:expr, $ix:ident => $call:expr) => {
        match $index {
            TableIndex::Unique($ix) => $call,
            TableIndex::Multi($ix) => $call,
        }
    };
}

impl TableIndex {
    /// An empty index for a table with these options and this seed. The options have been checked.
    pub(crate) fn new(options: &Options, seed: &Seed) -> Self {
        let (name, said) = (&options.structure, &options.structure_options);
        match options.kind {
            // A structure of the published studies.
            kind if name != DEFAULT && kind.is_unique() => {
                TableIndex::Unique(structures::build_unique(name, said, kind.is_ordered()).into())
            }
            _ if name != DEFAULT => TableIndex::Multi(structures::build_multi(name, said).into()),
            // The default structures.
            TableKind::Set => TableIndex::Unique(Self::keyed(false, seed)),
            TableKind::OrderedSet => TableIndex::Unique(Self::keyed(true, seed)),
            TableKind::Bag | TableKind::DuplicateBag => {
                // A bag finds an equal object by the hash of its value, so that an insert doesn't
                // compare it with all objects under the key.
                let keys = Terms(seed.clone());
                let bag = larder_index::multi_hashed(keys, LeafConfig::default(), raw::object_hash);
                TableIndex::Multi(bag.into())
            }
        }
    }

    /// An empty index in key order, for users who hold a lock of another index while they write to
    /// this one.
    pub(crate) fn ordered_under_locks() -> Arc<dyn Unique> {
        larder_index::ordered_under_locks().into()
    }

    /// An empty index with at most one value per key, in key order, or in the order of hashes with
    /// this seed.
    pub(crate) fn keyed(ordered: bool, seed: &Seed) -> Arc<dyn Unique> {
        if ordered {
            larder_index::unique_ordered().into()
        } else {
            larder_index::unique_hashed(Terms(seed.clone())).into()
        }
    }

    /// Another reference to the same index.
    pub(crate) fn share(&self) -> TableIndex {
        match self {
            TableIndex::Unique(ix) => TableIndex::Unique(Arc::clone(ix)),
            TableIndex::Multi(ix) => TableIndex::Multi(Arc::clone(ix)),
        }
    }

    /// Whether a key has at most one object.
    pub(crate) fn is_unique(&self) -> bool {
        matches!(self, TableIndex::Unique(_))
    }

    /// Whether it is in key order.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(self, TableIndex::Unique(ix) if ix.is_ordered())
    }

    /// The number of objects at which it is full. `None` if it has no limit.
    pub(crate) fn limit(&self) -> Option<usize> {
        either!(self, ix => ix.limit())
    }

    /// The number of objects.
    pub(crate) fn len(&self) -> usize {
        either!(self, ix => ix.len())
    }

    /// The memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        either!(self, ix => ix.memory())
    }

    /// Statistics of its structure.
    pub(crate) fn stats(&self) -> Stats {
        either!(self, ix => ix.stats())
    }

    /// Announces about how many keys there are and will soon be. Two zeros say that nothing is
    /// known.
    pub(crate) fn expect_keys(&self, now: usize, soon: usize) {
        either!(self, ix => ix.expect_keys(now, soon));
    }

    /// Called when the table is fixed, and when it is no longer fixed.
    pub(crate) fn freeze(&self, on: bool) {
        either!(self, ix => ix.freeze(on));
    }

    /// Frees some objects of an index to which no other thread writes any more. Returns `true` when
    /// none is left.
    pub(crate) fn free_some(&self, limit: usize) -> bool {
        let guard = larder_index::pin();
        either!(self, ix => ix.free_some(&guard, limit, &mut raw::release_value))
    }

    /// Whether a leaf is found by a hash, and not by a descent through a tree.
    #[inline]
    pub(crate) fn is_found_by_hash(&self) -> bool {
        matches!(self, TableIndex::Unique(ix) if !ix.is_ordered())
    }

    /// Prefetches the memory that operations on the keys will touch. A hint.
    #[inline]
    pub(crate) fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        either!(self, ix => ix.prefetch(guard, keys));
    }

    /// Whether there is an object under a key.
    #[inline]
    pub(crate) fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        either!(self, ix => ix.contains(guard, key))
    }

    /// Like `contains`, but first waits for the writers of the key that hold its lock, even if they
    /// haven't changed anything yet.
    pub(crate) fn contains_after_writer(&self, guard: &Guard, key: Key<'_>) -> bool {
        match self {
            // A read waits while the leaf is locked, so it waits for a writer.
            TableIndex::Unique(ix) => ix.contains(guard, key),
            // A reader of a bag only waits once a writer has begun to change objects. So take the
            // entry's lock: any writer that held it has finished then. If there is no entry, no
            // writer has more than the leaf's lock, for which a read waits.
            TableIndex::Multi(ix) => {
                let mut there = false;
                ix.update_present(guard, key, &mut |_| there = true);
                there
            }
        }
    }

    /// Copies the values under a key at one instant.
    pub(crate) fn copy(&self, guard: &Guard, key: Key<'_>, values: &mut Values) {
        values.clear();
        match self {
            // At most one value.
            TableIndex::Unique(ix) => {
                if ix.get(guard, key, &mut values.bytes) {
                    values.end(0);
                }
            }
            // All values of the key, as of one instant.
            TableIndex::Multi(ix) => {
                ix.read(guard, key, values);
            }
        }
    }

    /// Copies the values that a write of the key may be about to replace. Unlike `copy` this is no
    /// use of the key, and moves no deadline: the write is one and does, if it is made.
    pub(crate) fn copy_for_write(&self, guard: &Guard, key: Key<'_>, values: &mut Values) {
        let TableIndex::Unique(ix) = self else {
            return self.copy(guard, key, values);
        };
        values.clear();
        if ix.get_in_scan(guard, key, &mut values.bytes) {
            values.end(0);
        }
    }

    /// Reads the entry next to a key. Without a key, it is the first one in the direction. Returns
    /// whether the key is present. A bag only steps forward.
    #[inline]
    pub(crate) fn step<'g>(
        &'g self,
        guard: &'g Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) -> bool {
        match self {
            TableIndex::Unique(ix) => ix.step(guard, key, direction, batch),
            TableIndex::Multi(ix) => ix.step(guard, key, batch),
        }
    }

    /// Makes one attempt to do the same, with a copy of the entry (`Unique::try_step`).
    #[inline]
    pub(crate) fn try_step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        match self {
            TableIndex::Unique(ix) => ix.try_step(guard, key, direction, entry),
            TableIndex::Multi(ix) => ix.try_step(guard, key, entry),
        }
    }

    /// Removes the chosen entries of a batch in one change (`Unique::remove_scanned`).
    pub(crate) fn remove_scanned(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        either!(self, ix => ix.remove_scanned(guard, key, (batch, chosen), predicate))
    }

    /// Whether the entries around a key are still those that were read (`Unique::is_unchanged`).
    pub(crate) fn is_unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        either!(self, ix => ix.is_unchanged(guard, key, seen))
    }

    /// Reads a batch of entries, beginning at `start`.
    pub(crate) fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        either!(self, ix => ix.scan(guard, start, direction, batch));
    }

    /// Reads a batch of entries, beginning after all objects of a key. `position` is a scratch
    /// buffer.
    pub(crate) fn scan_past<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        direction: Direction,
        position: &mut Vec<u8>,
        batch: &mut Batch<'g>,
    ) {
        self.end_position(key, position);
        self.scan(guard, Start::Past(position), direction, batch);
    }

    /// Reads the batch that follows this one. `position` is a scratch buffer.
    pub(crate) fn scan_on<'g>(
        &'g self,
        guard: &'g Guard,
        direction: Direction,
        position: &mut Vec<u8>,
        batch: &mut Batch<'g>,
    ) {
        // The scan clears the batch, including the position at which to resume. So swap that with
        // the scratch buffer, which needs no copy.
        std::mem::swap(position, &mut batch.resume);
        let start = Start::resume(position, direction);
        self.scan(guard, start, direction, batch);
    }

    /// Writes the position of a key to `out`: that before all its objects, in forward order.
    pub(crate) fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        match self {
            TableIndex::Unique(ix) => ix.position(key, out),
            TableIndex::Multi(ix) => ix.first_position(key, out),
        }
    }

    /// The part of a position that is common to all positions of its key.
    pub(crate) fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        match self {
            TableIndex::Unique(_) => position,
            TableIndex::Multi(ix) => ix.key_position(position),
        }
    }

    /// Writes the position after all objects of a key to `out`.
    fn end_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        match self {
            TableIndex::Unique(ix) => ix.position(key, out),
            TableIndex::Multi(ix) => ix.last_position(key, out),
        }
    }

    /// Writes the position of entry `i` of a batch to `out`. `key` is the key of the entry.
    pub(crate) fn entry_position(&self, batch: &Batch, i: usize, key: Key<'_>, out: &mut Vec<u8>) {
        match self {
            TableIndex::Unique(ix) => ix.position(key, out),
            TableIndex::Multi(ix) => ix.entry_position(batch, i, out),
        }
    }
}

//! What a table keeps its objects in: an index, and their number. `delete_all_objects` puts a new
//! store in place of the old.

use crate::counters::Counter;
use crate::options::{Options, TableKind};
use crate::raw;
use crate::structures::{self, DEFAULT};
use larder_index::{Guard, Key, KeyRule, LeafConfig, Multi, Stats, Unique, UniqueKind};
use larder_term::hash::Seed;

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

/// The index of a store, of the kind that the table's type needs.
pub(crate) enum Index {
    /// One object a key.
    One(Box<dyn Unique>),
    /// Many objects a key.
    Many(Box<dyn Multi>),
}

/// An index and the number of its objects.
pub(crate) struct Store {
    pub(crate) index: Index,
    pub(crate) count: Counter,
    /// Objects at which it is full.
    limit: usize,
}

impl Store {
    /// An empty store for a table with these options, which were checked, and this seed.
    pub(crate) fn new(options: &Options, seed: &Seed) -> Self {
        let (name, said) = (&options.structure, &options.structure_options);
        let index = match options.kind {
            kind if name != DEFAULT && kind.is_unique() => {
                Index::One(structures::build_unique(name, said, kind.is_ordered()))
            }
            _ if name != DEFAULT => Index::Many(structures::build_multi(name, said)),
            TableKind::Set => Index::One(larder_index::unique_hashed(Terms(seed.clone()))),
            TableKind::OrderedSet => Index::One(larder_index::unique(UniqueKind::Ordered)),
            TableKind::Bag | TableKind::DuplicateBag => Index::Many(larder_index::multi_hashed(
                Terms(seed.clone()),
                LeafConfig::default(),
                raw::object_hash,
            )),
        };
        let limit = match &index {
            Index::One(ix) => ix.limit(),
            Index::Many(ix) => ix.limit(),
        };
        Store {
            index,
            count: Counter::new(options.decentralized_counters),
            limit: limit.unwrap_or(usize::MAX),
        }
    }

    /// How many more objects there is room for. Those that come and go meanwhile are not counted.
    pub(crate) fn room(&self) -> usize {
        match self.limit {
            usize::MAX => usize::MAX,
            limit => limit.saturating_sub(self.len()),
        }
    }

    /// Whether it is made for so many objects and no more.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit != usize::MAX
    }

    /// Whether nothing new may be inserted.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.is_limited() && self.room() == 0
    }

    /// Objects at which it is full.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    fn len(&self) -> usize {
        match &self.index {
            Index::One(ix) => ix.len(),
            Index::Many(ix) => ix.len(),
        }
    }

    /// The table is fixed from now on, or is not any more.
    pub(crate) fn freeze(&self, on: bool) {
        match &self.index {
            Index::One(ix) => ix.freeze(on),
            Index::Many(ix) => ix.freeze(on),
        }
    }

    /// Whether there is an object under the key.
    #[inline]
    pub(crate) fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        match &self.index {
            Index::One(ix) => ix.contains(guard, key),
            Index::Many(ix) => ix.contains(guard, key),
        }
    }

    /// As `contains`, after each write of the key that is under way: also one that holds the lock
    /// of a bag's key and has changed nothing yet.
    pub(crate) fn contains_settled(&self, guard: &Guard, key: Key<'_>) -> bool {
        match &self.index {
            Index::One(ix) => ix.contains(guard, key),
            Index::Many(ix) => {
                let mut there = false;
                ix.update(guard, key, &mut |objects| there = !objects.is_empty());
                there
            }
        }
    }

    /// Whether it pays to bring near what operations on some keys will touch. In a tree that goes
    /// the way to each leaf once more: not where there are fewer than `many` objects.
    #[inline]
    pub(crate) fn is_far(&self, many: usize) -> bool {
        let short_way = matches!(&self.index, Index::One(ix) if !ix.is_ordered());
        short_way || self.count.get() >= many
    }

    /// Brings what operations on the keys will touch near, where that pays; a hint.
    #[inline]
    pub(crate) fn prefetch(&self, guard: &Guard, keys: &[Key<'_>], many: usize) {
        if !self.is_far(many) {
            return;
        }
        match &self.index {
            Index::One(ix) => ix.prefetch(guard, keys),
            Index::Many(ix) => ix.prefetch(guard, keys),
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let index = match &self.index {
            Index::One(ix) => ix.memory(),
            Index::Many(ix) => ix.memory(),
        };
        index + size_of::<Self>() + self.count.memory()
    }

    /// Figures of the index.
    pub(crate) fn stats(&self) -> Stats {
        match &self.index {
            Index::One(ix) => ix.stats(),
            Index::Many(ix) => ix.stats(),
        }
    }

    /// Frees some objects of a store that nobody else writes any more; true when none is left.
    pub(crate) fn free_some(&self, limit: usize) -> bool {
        let guard = larder_index::pin();
        match &self.index {
            Index::One(ix) => ix.free_some(&guard, limit, &mut raw::release_value),
            Index::Many(ix) => ix.free_some(&guard, limit, &mut raw::release_value),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The reaper has emptied a store before it drops it; what is left otherwise (an engine that
        // ended) still has to give its handles back.
        while !self.free_some(4096) {}
    }
}

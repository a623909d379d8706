//! What a table keeps its objects in: an index, and the number of objects. `delete_all_objects`
//! puts a new store in place of the old.

use crate::counters::Counter;
use crate::index::Index;
use crate::options::Options;
use larder_index::{Guard, Key};
use larder_term::hash::Seed;

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
        let index = Index::new(options, seed);
        Store {
            count: Counter::new(options.decentralized_counters),
            limit: index.limit().unwrap_or(usize::MAX),
            index,
        }
    }

    /// How many more objects there is room for. Those that come and go meanwhile are not counted.
    pub(crate) fn room(&self) -> usize {
        match self.limit {
            usize::MAX => usize::MAX,
            limit => limit.saturating_sub(self.index.len()),
        }
    }

    /// Whether its structure has a limit.
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

    /// Whether it pays to ask early for the memory that operations on some keys will touch. In a
    /// tree this walks the way to each leaf once more. With fewer than `many` objects its nodes are
    /// near anyway, and the walk is a loss.
    #[inline]
    pub(crate) fn is_far(&self, many: usize) -> bool {
        self.index.is_short_way() || self.count.get() >= many
    }

    /// Asks for the memory that operations on the keys will touch, where that pays; a hint.
    #[inline]
    pub(crate) fn prefetch(&self, guard: &Guard, keys: &[Key<'_>], many: usize) {
        if self.is_far(many) {
            self.index.prefetch(guard, keys);
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.index.memory() + size_of::<Self>() + self.count.memory()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The reaper has emptied a store before it drops it; what is left otherwise (an engine that
        // ended) still has to give its handles back.
        while !self.index.free_some(4096) {}
    }
}

//! The store of a table: an index of its objects, and their number. `delete_all_objects` replaces
//! the store by a new one.
//!
//! A store may have *layers*: indexes that wrap the index of the objects, and do additional work at
//! each change.
//!
//! ```text
//!  plain      objects
//!  indexed    objects ← Indexed        maintains the secondary indexes
//!  watched    objects ← WatchedIndex   keeps versions for snapshots, and pushes events to feeds
//!  bounded    objects ← Bounded        hides expired objects
//!  all        objects ← Indexed ← WatchedIndex ← Bounded
//! ```
//!
//! Below `Bounded` each object is followed by a stamp (`bounds`).
//!
//! Several stores may share the same objects (`objects`).

use crate::bounds::{weight, BoundState, Bounded, Quota, SpaceNeeded};
use crate::counters::Counter;
use crate::error::Error;
use crate::index::TableIndex;
use crate::indexes::{self, Indexes, PausedEntries};
use crate::keys::MANY_BY_HASH;
use crate::objects::{BaseStore, Objects};
use crate::options::Options;
use crate::reclaim::Reaped;
use crate::versions::{self, Differences, History, ViewLifetimes};
use larder_index::{Guard, Key};
use larder_term::hash::Seed;
use std::sync::{Arc, OnceLock};

/// The layers of a store.
#[derive(Clone, Default)]
pub(crate) struct Layers {
    /// The secondary indexes.
    pub(crate) indexes: Option<Arc<Indexes>>,
    /// The versions of objects and the feed, while the table is watched.
    pub(crate) history: Option<Arc<History>>,
    /// Whether operations on one key take the key's lock, because commits write to the table. Only
    /// in a watched table.
    pub(crate) locks: bool,
    /// The table's bounds.
    pub(crate) bounds: Option<Arc<BoundState>>,
}

/// An index and the number of its objects.
pub(crate) struct Store {
    /// The index, with all layers.
    pub(crate) index: TableIndex,
    /// The objects below all layers.
    objects: Objects,
    /// `None` if the store has no layers.
    wrapped: Option<Box<Wrapped>>,
    /// Whether the structure has a limit, or the table has a quota.
    has_limit: bool,
    /// Whether the store may refuse new objects: it has a limit, or a unique index.
    may_refuse: bool,
    /// Whether the store is a view of another table, whose objects haven't been counted.
    is_snapshot: bool,
}

/// The additional fields of a store with layers.
struct Wrapped {
    layers: Layers,
    /// The `Bounded` layer, if the table is bounded.
    bounded: Option<Arc<Bounded>>,
    /// The lifetimes of the objects in a view of a bounded table.
    lifetimes: Option<ViewLifetimes>,
    /// The differences between a view and its table.
    views: Vec<Arc<dyn Differences>>,
    /// What a select by an index of a view has read for its next page.
    paused: PausedEntries,
    /// The result of `of_commits`, which is made at the first commit.
    of_commits: OnceLock<Box<Store>>,
}

/// The layers of a store that has none.
static NO_LAYERS: Layers = Layers {
    indexes: None,
    history: None,
    locks: false,
    bounds: None,
};

impl Store {
    /// Makes an empty store for a table with these options, which were checked, this seed, and
    /// these secondary indexes, which are empty.
    #[inline]
    pub(crate) fn new(options: &Options, seed: &Seed, indexes: Option<Arc<Indexes>>) -> Self {
        // A store without layers is used as it is, which is the usual case.
        let mut store = Self::bare(Objects::new(options, seed));
        if indexes.is_some() || options.bounds.is_some() {
            let bounds = options.bounds.as_ref().map(|bounds| {
                let layer = BoundState::new(bounds, seed, options.kind.is_ordered());
                Arc::new(layer)
            });
            store.wrap(Layers {
                indexes,
                bounds,
                ..Layers::default()
            });
        }
        store
    }

    /// A store of some objects, without layers.
    #[inline]
    fn bare(objects: Objects) -> Self {
        let has_limit = objects.limit != usize::MAX;
        Store {
            index: objects.index.share(),
            objects,
            wrapped: None,
            has_limit,
            may_refuse: has_limit,
            is_snapshot: false,
        }
    }

    /// A store of some objects, with layers.
    pub(crate) fn over(objects: Objects, layers: Layers) -> Self {
        let mut store = Self::bare(objects);
        store.wrap(layers);
        store
    }

    /// Makes an empty store that replaces this one, with these options, and with the settings that
    /// were changed since the table was created.
    ///
    /// # Errors
    /// `BadOption` if the definition of an index is invalid. It can't be if it was checked.
    pub(crate) fn emptied(&self, options: &Options, seed: &Seed) -> Result<Self, Error> {
        let Layers {
            indexes, bounds, ..
        } = self.layers();
        let indexes = match indexes {
            Some(indexes) => indexes.emptied()?,
            None => None,
        };
        // All layers begin anew. The settings of the bounds are shared, since they may be changed
        // at any time.
        let layers = Layers {
            indexes,
            bounds: bounds.as_ref().map(|bounds| Arc::new(bounds.anew())),
            ..Layers::default()
        };
        Ok(Self::over(Objects::new(options, seed), layers))
    }

    /// Makes a store with the same objects and other layers.
    pub(crate) fn through(&self, layers: Layers) -> Store {
        let mut store = Self::over(self.objects.share(), layers);
        store.is_snapshot = self.is_snapshot;
        store
    }

    /// Adds a history to a store that has none, if one is given.
    pub(crate) fn watched_by(self, history: Option<Arc<History>>, locks: bool) -> Store {
        if history.is_none() {
            return self;
        }
        self.through(Layers {
            history,
            locks,
            ..self.layers().clone()
        })
    }

    /// Adds layers to a store that has none.
    #[cold]
    fn wrap(&mut self, layers: Layers) {
        // The index is wrapped from the inside out.
        let has_stamps = layers.bounds.is_some();
        // Indexes are innermost: each change of an object changes its entries under the same lock.
        if let Some(indexes) = &layers.indexes {
            self.may_refuse |= indexes.has_unique();
            self.index = indexes::wrap_indexed(self.index.share(), indexes, has_stamps);
        }
        if let Some(history) = &layers.history {
            // The history itself owns the objects.
            self.objects.disown();
            self.index = versions::wrap_watched(self.index.share(), history, layers.locks);
        }
        // Only a table with limits refuses a write for want of room.
        let has_quota = |layer: &Arc<BoundState>| layer.quota().is_some();
        self.has_limit |= layers.bounds.as_ref().is_some_and(has_quota);
        self.may_refuse |= self.has_limit;
        let is_watched = layers.history.is_some();
        let bounds = layers.bounds.as_ref();
        let bounded = bounds.and_then(|layer| self.objects.bounded(&self.index, layer, is_watched));
        // The bounds are the outermost layer, so that no other has to know which objects are
        // expired.
        if let Some(bounded) = &bounded {
            self.index = TableIndex::Unique(Arc::clone(bounded) as Arc<_>);
        }
        // A table without any layer uses its index directly.
        let has_none = layers.indexes.is_none() && !is_watched && bounded.is_none();
        self.wrapped = (!has_none).then(|| {
            Box::new(Wrapped {
                layers,
                bounded,
                lifetimes: None,
                views: Vec::new(),
                paused: PausedEntries::default(),
                of_commits: OnceLock::new(),
            })
        });
    }

    /// The store that commits write to. A commit holds the locks of its keys, so this store doesn't
    /// take them.
    pub(crate) fn of_commits(&self) -> &Store {
        let Some(wrapped) = &self.wrapped else {
            return self;
        };
        // Made when the first commit writes, and kept.
        wrapped.of_commits.get_or_init(|| {
            Box::new(self.through(Layers {
                locks: false,
                ..wrapped.layers.clone()
            }))
        })
    }

    /// The same objects, with no layer except the table's bounds.
    pub(crate) fn base(&self) -> BaseStore {
        BaseStore::new(self.objects.share(), self.layers().bounds.clone())
    }

    /// Whether the store is the index itself, without any layer above it.
    #[inline]
    pub(crate) fn is_bare(&self) -> bool {
        self.wrapped.is_none()
    }

    /// The `Bounded` layer, if the table is bounded.
    #[inline]
    pub(crate) fn bounded(&self) -> Option<&Arc<Bounded>> {
        self.wrapped.as_ref()?.bounded.as_ref()
    }

    /// The lifetimes of the objects, if the store is a view of a bounded table.
    pub(crate) fn lifetimes(&self) -> Option<&ViewLifetimes> {
        self.wrapped.as_ref()?.lifetimes.as_ref()
    }

    /// The table's bounds.
    pub(crate) fn layer(&self) -> Option<&Arc<BoundState>> {
        self.layers().bounds.as_ref()
    }

    /// Makes the store of a view of a table, which has these indexes. `views` are the differences
    /// between the view and the table. `lifetimes` are those of a bounded table's objects.
    pub(crate) fn of_view(
        index: TableIndex,
        indexes: Option<Arc<Indexes>>,
        views: Vec<Arc<dyn Differences>>,
        lifetimes: Option<ViewLifetimes>,
    ) -> Store {
        let layers = Layers {
            indexes,
            ..Layers::default()
        };
        Store {
            objects: Objects::of_view(index.share()),
            index,
            has_limit: false,
            may_refuse: false,
            wrapped: Some(Box::new(Wrapped {
                layers,
                bounded: None,
                lifetimes,
                views,
                paused: PausedEntries::default(),
                of_commits: OnceLock::new(),
            })),
            is_snapshot: true,
        }
    }

    /// The index of the objects, for reads by the key that change nothing. The layer of the
    /// secondary indexes passes such reads on as they are, so it is left out if it is the only one.
    #[inline]
    pub(crate) fn rows(&self) -> &TableIndex {
        let Layers {
            history, bounds, ..
        } = self.layers();
        match history.is_none() && bounds.is_none() {
            true => &self.objects.index,
            false => &self.index,
        }
    }

    /// The counter of the objects.
    #[inline]
    pub(crate) fn count(&self) -> &Counter {
        &self.objects.count
    }

    /// The layers of the store.
    #[inline]
    pub(crate) fn layers(&self) -> &Layers {
        match &self.wrapped {
            None => &NO_LAYERS,
            Some(wrapped) => &wrapped.layers,
        }
    }

    /// The secondary indexes, if one of them is unique and writes of this store claim its values.
    /// The writes of a transaction to its view claim nothing before the commit.
    pub(crate) fn unique_indexes(&self) -> Option<&Arc<Indexes>> {
        let indexes = self.layers().indexes.as_ref();
        indexes.filter(|indexes| self.may_refuse && indexes.has_unique())
    }

    /// The differences between a view and its table. Empty if the store isn't a view.
    pub(crate) fn views(&self) -> &[Arc<dyn Differences>] {
        self.wrapped.as_ref().map_or(&[], |wrapped| &wrapped.views)
    }

    /// What a select by an index of this view has read for its next page. `None` if the store isn't
    /// a view.
    pub(crate) fn paused_entries(&self) -> Option<&PausedEntries> {
        let wrapped = self.wrapped.as_ref()?;
        (!wrapped.views.is_empty()).then_some(&wrapped.paused)
    }

    /// The history, if the table is watched.
    #[inline]
    pub(crate) fn history(&self) -> Option<&Arc<History>> {
        self.wrapped.as_ref()?.layers.history.as_ref()
    }

    /// The number of objects. O(1), except for a view of another table, which is read as a whole.
    pub(crate) fn size(&self) -> usize {
        // A view shows objects of another table, so it has no counter.
        if self.is_snapshot {
            self.index.len()
        } else {
            self.objects.count.get()
        }
    }

    /// The number of objects; of a view, that of its table. O(1).
    pub(crate) fn about(&self) -> usize {
        self.views()
            .first()
            .map_or_else(|| self.objects.count.get(), |view| view.table_size())
    }

    /// Whether the store may refuse new objects.
    #[inline]
    pub(crate) fn may_refuse(&self) -> bool {
        self.may_refuse
    }

    /// Whether there is room for this number of additional objects, whatever their sizes.
    /// Concurrent inserts and deletes are not taken into account.
    pub(crate) fn has_capacity_for(&self, more: usize) -> bool {
        // The quota has the precise limits. A structure only has a number of objects.
        match (self.limit(), self.quota()) {
            (_, Some(quota)) => quota.has_capacity_for(self.objects.count.get(), more),
            (usize::MAX, None) => true,
            (limit, None) => more <= limit.saturating_sub(self.index.len()),
        }
    }

    /// Whether the store refuses objects when it is full.
    fn is_limited(&self) -> bool {
        self.has_limit() && self.quota().is_none_or(Quota::refuses_when_full)
    }

    /// Whether the structure has a limit, or the table has a quota. Writes then have more to check.
    #[inline]
    pub(crate) fn has_limit(&self) -> bool {
        self.has_limit
    }

    /// Whether there is no room for what is needed.
    pub(crate) fn refuses(&self, need: SpaceNeeded) -> bool {
        match self.quota() {
            Some(quota) => quota.refuses(self.objects.count.get(), need),
            None => usize::try_from(need.objects)
                .is_ok_and(|more| more > 0 && !self.has_capacity_for(more)),
        }
    }

    /// What a write of `new` under a key with the value `old` needs, or the deletion of `old`.
    pub(crate) fn need(&self, key: Key<'_>, old: Option<&[u8]>, new: Option<&[u8]>) -> SpaceNeeded {
        let weight = |value| self.quota().map_or(0, |_| weight(key.bytes, value));
        SpaceNeeded {
            objects: i64::from(new.is_some()) - i64::from(old.is_some()),
            weight: new.map_or(0, weight) - old.map_or(0, weight),
        }
    }

    /// The quota, if the table has limits.
    pub(crate) fn quota(&self) -> Option<&Quota> {
        self.bounded()?.layer().quota()
    }

    /// Whether a write of one key has to wait for a list: the store refuses objects when it is
    /// full, or has a unique index.
    pub(crate) fn holds_lists_back(&self) -> bool {
        self.is_limited() || self.unique_indexes().is_some()
    }

    /// The number of objects at which the structure is full.
    pub(crate) fn limit(&self) -> usize {
        self.objects.limit
    }

    /// Whether it pays to prefetch the memory of operations on some keys. In a tree, prefetching
    /// follows the path to each leaf once more. With fewer than `many` objects, the nodes are in
    /// the caches anyway, and the additional pass is a loss.
    #[inline]
    pub(crate) fn is_far(&self, many: usize) -> bool {
        let by_hash = self.index.is_found_by_hash();
        self.objects.count.get() >= if by_hash { MANY_BY_HASH } else { many }
    }

    /// Prefetches the memory of operations on the keys, if that pays. A hint.
    #[inline]
    pub(crate) fn prefetch(&self, guard: &Guard, keys: &[Key<'_>], many: usize) {
        if self.is_far(many) {
            self.index.prefetch(guard, keys);
        }
    }
}

impl Reaped for Store {
    fn memory(&self) -> usize {
        let wrapped = self.wrapped.as_ref();
        let wrapped = wrapped.map_or(0, |w| size_of::<Wrapped>() + w.paused.memory());
        self.index.memory() + size_of::<Self>() + wrapped + self.objects.count.memory()
    }

    fn free_some(&mut self, limit: usize) -> bool {
        self.objects.free_some(limit)
    }
}

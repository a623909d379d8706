//! What a table keeps its objects in: an index, and the number of objects. `delete_all_objects`
//! puts a new store in place of the old.
//!
//! A store may have *layers*: indexes that wrap the index of the objects, and do something more at
//! each change.
//!
//! ```text
//!  plain      objects
//!  indexed    objects ← Indexed        keeps the secondary indexes
//!  watched    objects ← Watched        keeps what changes, and tells it
//!  bounded    objects ← Bounded        leaves out what is expired
//!  all        objects ← Indexed ← Watched ← Bounded
//! ```
//!
//! Below `Bounded` each object has a stamp (`bounds`).
//!
//! Several stores may lead to the same objects. Each of them has a part of one `Contents`; who
//! gives the last part back frees what the index has.

use crate::bounds::{self, weight, Bounded, Layer, Quota};
use crate::counters::Counter;
use crate::error::Error;
use crate::index::Index;
use crate::indexes::{self, Indexes};
use crate::keys::MANY_BY_HASH;
use crate::options::Options;
use crate::versions::{self, Differences, History};
use larder_index::{Guard, Key};
use larder_term::hash::Seed;
use std::sync::{Arc, OnceLock};

/// What a store does beside keeping objects.
#[derive(Clone, Default)]
pub(crate) struct Layers {
    /// The secondary indexes.
    pub(crate) indexes: Option<Arc<Indexes>>,
    /// What keeps the objects of before, while the table is watched.
    pub(crate) history: Option<Arc<History>>,
    /// Whether operations on one key go by its lock, as commits write to the table. Only in a
    /// watched table.
    pub(crate) locks: bool,
    /// The table's bounds.
    pub(crate) bounds: Option<Arc<Layer>>,
}

/// An index and the number of its objects.
pub(crate) struct Store {
    /// The objects, through the layers.
    pub(crate) index: Index,
    pub(crate) count: Arc<Counter>,
    /// Objects at which it is full.
    limit: usize,
    /// What all stores share that have these objects; none for a store whose index reads others',
    /// and for one whose history has a store of the same objects.
    contents: Option<Arc<Contents>>,
    /// None for a store without layers.
    wrapped: Option<Box<Wrapped>>,
    /// Whether its structure has a limit, or the table a quota.
    has_limit: bool,
    /// Whether it may refuse something new: it has a limit, or a unique index.
    may_refuse: bool,
    /// Whether it is a view of another table's objects, which nobody has counted.
    is_snapshot: bool,
}

/// What a store with layers has.
struct Wrapped {
    /// The objects without layers.
    objects: Index,
    layers: Layers,
    /// The index, if the table is bounded.
    bounded: Option<Arc<Bounded>>,
    /// What differs in it from the table that it is a view of.
    views: Vec<Arc<dyn Differences>>,
    /// As of `of_commits`, once there was a commit.
    of_commits: OnceLock<Box<Store>>,
}

/// Those of a store without.
static NO_LAYERS: Layers = Layers {
    indexes: None,
    history: None,
    locks: false,
    bounds: None,
};

/// Stands for the objects of an index.
struct Contents;

impl Store {
    /// An empty store for a table with these options, which were checked, and this seed, with
    /// these secondary indexes, which are empty.
    #[inline]
    pub(crate) fn new(options: &Options, seed: &Seed, indexes: Option<Arc<Indexes>>) -> Self {
        let mut store = Self::bare(options, seed);
        if indexes.is_some() || options.bounds.is_some() {
            let bounds = options.bounds.as_ref().map(|bounds| {
                let layer = Layer::new(bounds, seed, options.kind.is_ordered());
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

    /// An empty store without layers.
    #[inline(always)]
    fn bare(options: &Options, seed: &Seed) -> Self {
        let objects = Index::new(options, seed);
        Store {
            count: Arc::new(Counter::new(options.decentralized_counters)),
            limit: objects.limit().unwrap_or(usize::MAX),
            has_limit: objects.limit().is_some(),
            may_refuse: objects.limit().is_some(),
            index: objects,
            contents: Some(Arc::new(Contents)),
            wrapped: None,
            is_snapshot: false,
        }
    }

    /// An empty store in the place of this one, with these options, but for what was set since.
    ///
    /// # Errors
    /// `BadOption`, unless the indexes were checked.
    pub(crate) fn emptied(&self, options: &Options, seed: &Seed) -> Result<Self, Error> {
        let Layers {
            indexes, bounds, ..
        } = self.layers();
        let indexes = match indexes {
            Some(indexes) => indexes.emptied()?,
            None => None,
        };
        let mut store = Self::bare(options, seed);
        store.wrap(Layers {
            indexes,
            bounds: bounds.as_ref().map(|bounds| Arc::new(bounds.anew())),
            ..Layers::default()
        });
        Ok(store)
    }

    /// A store with the same objects, and other layers.
    pub(crate) fn through(&self, layers: Layers) -> Store {
        let mut store = Store {
            index: self.objects().share(),
            count: Arc::clone(&self.count),
            limit: self.limit,
            contents: self.contents.clone(),
            wrapped: None,
            has_limit: self.limit != usize::MAX,
            may_refuse: self.limit != usize::MAX,
            is_snapshot: self.is_snapshot,
        };
        store.wrap(layers);
        store
    }

    /// Puts layers on a store without.
    #[cold]
    fn wrap(&mut self, layers: Layers) {
        let objects = self.index.share();
        let has_stamps = layers.bounds.is_some();
        if let Some(indexes) = &layers.indexes {
            self.may_refuse |= indexes.has_unique();
            self.index = indexes::keep(self.index.share(), indexes, has_stamps);
        }
        if let Some(history) = &layers.history {
            // A history has a store of the objects itself.
            self.contents = None;
            self.index = versions::watch(self.index.share(), history, layers.locks);
        }
        let has_quota = |layer: &Arc<Layer>| layer.quota().is_some();
        self.has_limit |= layers.bounds.as_ref().is_some_and(has_quota);
        self.may_refuse |= self.has_limit;
        let bounded = layers.bounds.as_ref().and_then(|layer| {
            // Bags are refused when a table is made.
            let (Index::Unique(below), Index::Unique(objects)) = (&self.index, &objects) else {
                return None;
            };
            let (own, count) = (layers.history.is_some(), Arc::clone(&self.count));
            let indexes = (Arc::clone(below), Arc::clone(objects));
            let bounded = Bounded::new(indexes, Arc::clone(layer), count, own);
            Some(Arc::new(bounded))
        });
        if let Some(bounded) = &bounded {
            self.index = Index::Unique(Arc::clone(bounded) as Arc<_>);
        }
        let has_none = layers.indexes.is_none() && layers.history.is_none() && bounded.is_none();
        self.wrapped = (!has_none).then(|| {
            Box::new(Wrapped {
                objects,
                layers,
                bounded,
                views: Vec::new(),
                of_commits: OnceLock::new(),
            })
        });
    }

    /// The store by which a commit writes, which holds the locks of its keys.
    pub(crate) fn of_commits(&self) -> &Store {
        let Some(wrapped) = &self.wrapped else {
            return self;
        };
        wrapped.of_commits.get_or_init(|| {
            Box::new(self.through(Layers {
                locks: false,
                ..wrapped.layers.clone()
            }))
        })
    }

    /// A store with the same objects, and no layers but the table's bounds.
    pub(crate) fn plain(&self) -> Store {
        self.through(Layers {
            bounds: self.layers().bounds.clone(),
            ..Layers::default()
        })
    }

    /// The index below the table's bounds: what a history has to do with.
    pub(crate) fn below(&self) -> Index {
        match self.bounded() {
            Some(bounded) => Index::Unique(Arc::clone(bounded.below())),
            None => self.index.share(),
        }
    }

    /// The index, if the table is bounded.
    #[inline]
    pub(crate) fn bounded(&self) -> Option<&Arc<Bounded>> {
        self.wrapped.as_ref()?.bounded.as_ref()
    }

    /// The table's bounds.
    pub(crate) fn layer(&self) -> Option<&Arc<Layer>> {
        self.layers().bounds.as_ref()
    }

    /// A view of this store's objects as of a time, in an index that has them with stamps, if the
    /// table is bounded.
    pub(crate) fn as_of(&self, view: Index, time: u64) -> Index {
        match self.layer() {
            Some(layer) => bounds::bound(view, layer, time),
            None => view,
        }
    }

    /// A store with the objects of a view of a table, which has these indexes, and what differs in
    /// the view from the table.
    pub(crate) fn of_view(
        index: Index,
        indexes: Option<Arc<Indexes>>,
        views: Vec<Arc<dyn Differences>>,
    ) -> Store {
        let objects = index.share();
        let layers = Layers {
            indexes,
            ..Layers::default()
        };
        Store {
            index,
            count: Arc::new(Counter::new(false)),
            limit: usize::MAX,
            contents: None,
            has_limit: false,
            may_refuse: false,
            wrapped: Some(Box::new(Wrapped {
                objects,
                layers,
                bounded: None,
                views,
                of_commits: OnceLock::new(),
            })),
            is_snapshot: true,
        }
    }

    /// The objects without layers.
    fn objects(&self) -> &Index {
        match &self.wrapped {
            None => &self.index,
            Some(wrapped) => &wrapped.objects,
        }
    }

    /// What it does beside keeping objects.
    #[inline]
    pub(crate) fn layers(&self) -> &Layers {
        match &self.wrapped {
            None => &NO_LAYERS,
            Some(wrapped) => &wrapped.layers,
        }
    }

    /// The secondary indexes, if one of them is unique and its values are claimed here: a
    /// transaction claims none before its commit.
    pub(crate) fn unique_indexes(&self) -> Option<&Arc<Indexes>> {
        let indexes = self.layers().indexes.as_ref();
        indexes.filter(|indexes| self.may_refuse && indexes.has_unique())
    }

    /// What differs in it from the table that it is a view of: nothing, if it is none.
    pub(crate) fn views(&self) -> &[Arc<dyn Differences>] {
        self.wrapped.as_ref().map_or(&[], |wrapped| &wrapped.views)
    }

    /// The history, if the table is watched.
    #[inline]
    pub(crate) fn history(&self) -> Option<&Arc<History>> {
        self.wrapped.as_ref()?.layers.history.as_ref()
    }

    /// The number of objects. O(1), but for a view of another table, which is read from end to end.
    pub(crate) fn size(&self) -> usize {
        if self.is_snapshot {
            self.index.len()
        } else {
            self.count.get()
        }
    }

    /// Whether no other store has the objects.
    pub(crate) fn is_last(&self) -> bool {
        let count = |contents| Arc::strong_count(contents) == 1;
        self.contents.as_ref().is_some_and(count)
    }

    /// Frees some objects of a store that nobody uses any more; true when there is nothing left
    /// to free, or others have the objects, too.
    pub(crate) fn free_some(&mut self, limit: usize) -> bool {
        // If nobody else has a part now, nobody gets one: this one isn't shared meanwhile.
        let is_last = self.contents.as_mut().and_then(Arc::get_mut).is_some();
        !is_last || self.objects().free_some(limit)
    }

    /// Whether it may refuse something new.
    #[inline]
    pub(crate) fn may_refuse(&self) -> bool {
        self.may_refuse
    }

    /// Whether there is room for so many more objects, whatever they are. Those that come and go
    /// meanwhile are not counted.
    pub(crate) fn takes(&self, more: usize) -> bool {
        match (self.limit(), self.quota()) {
            (_, Some(quota)) => quota.takes(self.count.get(), more),
            (usize::MAX, None) => true,
            (limit, None) => more <= limit.saturating_sub(self.index.len()),
        }
    }

    /// Whether it refuses what it has no room for.
    pub(crate) fn is_limited(&self) -> bool {
        self.has_limit() && self.quota().is_none_or(Quota::refuses_some)
    }

    /// Whether its quota, or its structure, has a limit: then writes ask more.
    #[inline]
    pub(crate) fn has_limit(&self) -> bool {
        self.has_limit
    }

    /// Whether it has no room for so many objects more, with so much weight.
    pub(crate) fn refuses(&self, more: (usize, i64)) -> bool {
        match self.quota() {
            Some(quota) => quota.refuses(self.count.get(), more),
            None => more.0 > 0 && !self.takes(more.0),
        }
    }

    /// What a value under a key, where `old` is now, comes to: how many objects more, with how much
    /// weight.
    pub(crate) fn need(&self, key: Key<'_>, old: Option<&[u8]>, new: &[u8]) -> (usize, i64) {
        let weight = |value| self.quota().map_or(0, |_| weight(key.bytes, value));
        (
            usize::from(old.is_none()),
            weight(new) - old.map_or(0, weight),
        )
    }

    /// What there is of a table with limits.
    pub(crate) fn quota(&self) -> Option<&Quota> {
        self.bounded()?.layer().quota()
    }

    /// Whether an operation on one key has to wait for a list: it has no room for some, or claims
    /// values for a unique index.
    pub(crate) fn holds_lists_back(&self) -> bool {
        self.is_limited() || self.unique_indexes().is_some()
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
        let is_short = self.index.is_short_way();
        self.count.get() >= if is_short { MANY_BY_HASH } else { many }
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
        let wrapped = self.wrapped.as_ref().map_or(0, |_| size_of::<Wrapped>());
        self.index.memory() + size_of::<Self>() + wrapped + self.count.memory()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The reaper has emptied a store before it drops it; what is left otherwise (an engine that
        // ended) still has to give its handles back. Of several that drop their parts at once, one
        // has the last.
        if self.contents.take().and_then(Arc::into_inner).is_some() {
            while !self.objects().free_some(4096) {}
        }
    }
}

//! What a table keeps its objects in: an index, and the number of objects. `delete_all_objects`
//! puts a new store in place of the old.
//!
//! Several stores may lead to the same objects (see `versions`). Each of them has a part of one
//! `Contents`; who gives the last part back frees what the index has.

use crate::bounds::{self, weight, Bounded, Layer, Quota};
use crate::counters::Counter;
use crate::index::Index;
use crate::options::Options;
use crate::versions::{self, History};
use larder_index::{Guard, Key};
use larder_term::hash::Seed;
use std::sync::Arc;

/// An index and the number of its objects.
pub(crate) struct Store {
    pub(crate) index: Index,
    pub(crate) count: Arc<Counter>,
    /// What few stores have.
    rare: Option<Box<Rare>>,
    /// What all stores share that have these objects; none for a store whose index reads others'.
    contents: Option<Arc<Contents>>,
    /// What keeps the objects of before, while the table is watched.
    pub(crate) history: Option<Arc<History>>,
    /// Whether operations on one key go by its lock, as commits write to the table.
    pub(crate) locks: bool,
    /// Whether it is a view of another table's objects, which nobody has counted.
    is_snapshot: bool,
}

/// What few stores have: the others have no room for it.
#[derive(Clone)]
struct Rare {
    /// Objects at which its structure is full.
    limit: usize,
    /// Whether its structure has a limit, or the table a quota.
    has_limit: bool,
    /// The index, if the table is bounded: what lies below it has stamps.
    bounded: Option<Arc<Bounded>>,
}

impl Rare {
    /// What a store on an index has of it.
    #[inline]
    fn of(index: &Index) -> Option<Box<Rare>> {
        index.limit().map(|limit| {
            Box::new(Rare {
                limit,
                has_limit: true,
                bounded: None,
            })
        })
    }
}

/// Stands for the objects of an index.
struct Contents;

impl Store {
    /// An empty store for a table with these options, which were checked, and this seed.
    #[inline]
    pub(crate) fn new(options: &Options, seed: &Seed) -> Self {
        let mut store = Self::plain(options, seed);
        if let Some(bounds) = &options.bounds {
            let layer = Layer::new(bounds, seed, options.kind.is_ordered());
            store.be_bounded_by(Arc::new(layer), None);
        }
        store
    }

    /// An empty store in the place of this one, with these options, but for what was set since.
    pub(crate) fn anew(&self, options: &Options, seed: &Seed) -> Self {
        let mut store = Self::plain(options, seed);
        if let Some(layer) = self.layer() {
            store.be_bounded_by(Arc::new(layer.anew()), None);
        }
        store
    }

    #[inline(always)]
    fn plain(options: &Options, seed: &Seed) -> Self {
        let index = Index::new(options, seed);
        Store {
            count: Arc::new(Counter::new(options.decentralized_counters)),
            rare: Rare::of(&index),
            index,
            contents: Some(Arc::new(Contents)),
            history: None,
            locks: false,
            is_snapshot: false,
        }
    }

    /// Puts this layer over the index, below which `plain` lies if that is another.
    #[cold]
    fn be_bounded_by(&mut self, layer: Arc<Layer>, plain: Option<Index>) {
        let plain = match plain {
            Some(Index::Unique(plain)) => Some(plain),
            _ => None,
        };
        // Bags are refused when a table is made.
        if let Index::Unique(below) = &self.index {
            let count = Arc::clone(&self.count);
            let bounded = Bounded::new(Arc::clone(below), plain, Arc::clone(&layer), count);
            let bounded = Arc::new(bounded);
            self.index = Index::Unique(Arc::clone(&bounded) as Arc<_>);
            self.rare = Some(Box::new(Rare {
                limit: self.limit(),
                has_limit: self.has_limit() || layer.quota().is_some(),
                bounded: Some(bounded),
            }));
        }
    }

    /// A store with the same objects.
    pub(crate) fn share(&self) -> Store {
        Store {
            index: self.index.share(),
            count: Arc::clone(&self.count),
            rare: self.rare.clone(),
            contents: self.contents.clone(),
            history: self.history.clone(),
            locks: self.locks,
            is_snapshot: self.is_snapshot,
        }
    }

    /// A store that reads and writes the objects of a history's, and keeps what it changes. With
    /// `locks`, its operations on one key go by the key's lock.
    pub(crate) fn watched(history: Arc<History>, locks: bool) -> Store {
        let store = history.store();
        let (layer, plain) = (store.layer().cloned(), store.below());
        let mut watched = Store {
            index: versions::watch(&history, locks),
            count: Arc::clone(&store.count),
            rare: Rare::of(&store.index),
            contents: None,
            history: Some(Arc::clone(&history)),
            locks,
            is_snapshot: false,
        };
        if let Some(layer) = layer {
            watched.be_bounded_by(layer, Some(plain));
        }
        watched
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
        self.rare.as_ref()?.bounded.as_ref()
    }

    /// The table's bounds.
    pub(crate) fn layer(&self) -> Option<&Arc<Layer>> {
        self.bounded().map(|own| own.layer())
    }

    /// A view of this store's objects as of a time, in an index that has them with stamps, if the
    /// table is bounded.
    pub(crate) fn as_of(&self, view: Index, time: u64) -> Index {
        match self.layer() {
            Some(layer) => bounds::bound(view, layer, time),
            None => view,
        }
    }

    /// A store with the objects of a snapshot.
    pub(crate) fn of_snapshot(index: Index) -> Store {
        Store {
            index,
            count: Arc::new(Counter::new(false)),
            rare: None,
            contents: None,
            history: None,
            locks: false,
            is_snapshot: true,
        }
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
        !is_last || self.index.free_some(limit)
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

    /// Whether nothing new may be inserted.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.has_limit() && !self.takes(1)
    }

    /// Whether its quota, or its structure, has a limit: then writes ask more.
    #[inline]
    pub(crate) fn has_limit(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.has_limit)
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

    /// Objects at which its structure is full.
    pub(crate) fn limit(&self) -> usize {
        self.rare.as_ref().map_or(usize::MAX, |rare| rare.limit)
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
        // ended) still has to give its handles back. Of several that drop their parts at once, one
        // has the last.
        if self.contents.take().and_then(Arc::into_inner).is_some() {
            while !self.index.free_some(4096) {}
        }
    }
}

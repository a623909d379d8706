//! The objects of a table: their index and their number, below all layers.
//!
//! Several stores and a history may share the same objects. Each owner holds a reference to one
//! `Ownership`. The one that drops the last reference frees the objects, or gives them to the
//! reaper if they are many: an owner that was not the last when it looked may be so when it is
//! dropped.

use crate::bounds::{self, BoundState, Bounded};
use crate::counters::Counter;
use crate::index::TableIndex;
use crate::options::Options;
use crate::reclaim::{reaper, Reaped};
use larder_term::hash::Seed;
use std::sync::Arc;

/// An index without layers, and the number of its objects.
pub(crate) struct Objects {
    pub(crate) index: TableIndex,
    pub(crate) count: Arc<Counter>,
    /// The number of objects at which the structure is full.
    pub(crate) limit: usize,
    /// Shared by all owners of the objects. `None` for a view, whose index reads the index of
    /// another store, and for a watched store, whose history owns the objects.
    ownership: Option<Arc<Ownership>>,
    /// Whether all objects were freed.
    is_freed: bool,
}

/// Objects of at most this number of bytes are freed by the thread that drops them.
const FREED_AT_ONCE: usize = 1 << 16;

/// Represents ownership of the objects of an index.
struct Ownership;

impl Objects {
    /// An empty index for a table with these options and this seed.
    #[inline(always)]
    pub(crate) fn new(options: &Options, seed: &Seed) -> Self {
        let index = TableIndex::new(options, seed);
        Objects {
            count: Arc::new(Counter::new(options.decentralized_counters)),
            // A structure of the studies may be made for a fixed number of objects.
            limit: index.limit().unwrap_or(usize::MAX),
            index,
            ownership: Some(Arc::new(Ownership)),
            is_freed: false,
        }
    }

    /// The objects that a view shows. Others own them, and they aren't counted.
    pub(crate) fn of_view(index: TableIndex) -> Self {
        Objects {
            index,
            count: Arc::new(Counter::new(false)),
            limit: usize::MAX,
            ownership: None,
            is_freed: false,
        }
    }

    /// The same objects, with the same count. They are owned if these are.
    pub(crate) fn share(&self) -> Self {
        Objects {
            index: self.index.share(),
            count: Arc::clone(&self.count),
            limit: self.limit,
            ownership: self.ownership.clone(),
            is_freed: false,
        }
    }

    /// Leaves the objects to their other owners.
    pub(crate) fn disown(&mut self) {
        self.ownership = None;
    }

    /// Whether these are owned, and nobody else owns them.
    pub(crate) fn is_last(&self) -> bool {
        let count = |ownership| Arc::strong_count(ownership) == 1;
        self.ownership.as_ref().is_some_and(count)
    }

    /// The bounds of a table as a layer above `below`, an index of these objects. `is_watched` says
    /// that `below` keeps versions and pushes events. `None` for a bag, which can't have bounds.
    pub(crate) fn bounded(
        &self,
        below: &TableIndex,
        layer: &Arc<BoundState>,
        is_watched: bool,
    ) -> Option<Arc<Bounded>> {
        let (TableIndex::Unique(below), TableIndex::Unique(objects)) = (below, &self.index) else {
            return None;
        };
        let (below, objects) = (Arc::clone(below), Arc::clone(objects));
        let (layer, count) = (Arc::clone(layer), Arc::clone(&self.count));
        let bounded = Bounded::new(below, objects, layer, count, is_watched);
        Some(Arc::new(bounded))
    }
}

impl Reaped for Objects {
    fn memory(&self) -> usize {
        self.index.memory() + size_of::<Self>() + self.count.memory()
    }

    /// Returns `true` also if they have another owner.
    fn free_some(&mut self, limit: usize) -> bool {
        // If there is no other owner now, there will be none: these objects aren't shared
        // meanwhile.
        let is_last = self.ownership.as_mut().and_then(Arc::get_mut).is_some();
        self.is_freed = is_last && self.index.free_some(limit);
        !is_last || self.is_freed
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // If several owners drop their references at the same time, exactly one of them has the
        // last.
        let is_last = self.ownership.take().and_then(Arc::into_inner).is_some();
        // The reaper empties a store before it drops it.
        if !is_last || self.is_freed {
            return;
        }
        // In other cases, such as the end of an engine, the handles have to be released. The thread
        // may be one for which others wait.
        if self.index.memory() > FREED_AT_ONCE {
            let mut objects = self.share();
            objects.ownership = Some(Arc::new(Ownership));
            reaper::free_unread(objects);
            return;
        }
        while !self.index.free_some(4096) {}
    }
}

/// The objects of a table within its bounds, which a history keeps versions of.
pub(crate) struct BaseStore {
    /// The index, with the table's bounds as its only layer.
    pub(crate) index: TableIndex,
    /// That layer.
    pub(crate) bounded: Option<Arc<Bounded>>,
    objects: Objects,
    bounds: Option<Arc<BoundState>>,
}

impl BaseStore {
    /// The store of some objects, with the table's bounds.
    pub(crate) fn new(objects: Objects, bounds: Option<Arc<BoundState>>) -> Self {
        let index = objects.index.share();
        let bounded = bounds
            .as_ref()
            .and_then(|layer| objects.bounded(&index, layer, false));
        let within = bounded.clone().map(|bounded| TableIndex::Unique(bounded));
        BaseStore {
            index: within.unwrap_or(index),
            bounded,
            objects,
            bounds,
        }
    }

    /// The same objects within the same bounds.
    pub(crate) fn share(&self) -> Self {
        Self::new(self.objects.share(), self.bounds.clone())
    }

    /// The objects, with their stamps if the table is bounded.
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.bounds.is_some()
    }

    /// The number of objects.
    pub(crate) fn size(&self) -> usize {
        self.objects.count.get()
    }

    pub(crate) fn memory(&self) -> usize {
        self.objects.memory()
    }

    /// If the table is bounded, wraps a view of the objects with their stamps, so that it shows the
    /// objects that weren't expired at a time. Also returns the wrapper.
    pub(crate) fn as_of(&self, view: TableIndex, time: u64) -> (TableIndex, Option<Arc<Bounded>>) {
        let layer = self.bounds.as_ref();
        let bounded = layer.and_then(|layer| bounds::bound(&view, layer, time));
        let shown = bounded.clone().map(|bounded| TableIndex::Unique(bounded));
        (shown.unwrap_or(view), bounded)
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use crate::keys;
    use larder_term::{atoms, Term};
    use std::time::{Duration, Instant};

    /// Two owners look at the same time, and neither is the last. Then both are dropped.
    #[test]
    fn many_objects_are_freed_by_the_reaper_whoever_is_the_last_owner() {
        let drop_last = || {
            let seed = Seed::random();
            let mut one = Objects::new(&Options::new(atoms::UNDEFINED), &seed);
            let TableIndex::Unique(index) = &one.index else {
                unreachable!("it is a set");
            };
            let guard = larder_index::pin();
            for n in 0..200_000i64 {
                let key = Term::from(n);
                let key = keys::with_hash(&seed, false, key.bytes());
                // An object of one element.
                index.put(&guard, key, &[0x10], &mut |_| true);
            }
            drop(guard);
            let mut other = one.share();
            assert!(one.free_some(64) && other.free_some(64));
            drop(one);
            let begun = Instant::now();
            drop(other);
            begun.elapsed()
        };
        let took = (0..5).map(|_| drop_last()).min().unwrap();
        assert!(took < Duration::from_millis(2), "{took:?}");
        assert!(reaper::idle(Duration::from_secs(60)));
    }
}

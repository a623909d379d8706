//! Maps of other crates. With concurrent-map each thread has a clone. An insert into scc's
//! `HashIndex` keeps an existing value: where the key is there, it is no more than a lookup.

use super::{Handle, Map, Named, Shared};
use concurrent_map::ConcurrentMap;
use congee::U64Congee;
use crossbeam_epoch::pin;

/// Handles to a map, by its insert, get and remove.
macro_rules! handle {
    ($handle:ty, |$map:ident, $key:ident, $value:ident| $insert:expr, $get:expr, $remove:expr) => {
        impl Handle for $handle {
            fn insert(&mut self, $key: u64, $value: u64) {
                let $map = self;
                _ = $insert;
            }
            fn get(&mut self, $key: u64) -> Option<u64> {
                let $map = self;
                $get
            }
            fn remove(&mut self, $key: u64) -> bool {
                let $map = self;
                $remove
            }
        }
    };
}

macro_rules! shared {
    ($($map:ty, $name:literal, $ordered:literal, $operations:tt;)*) => {$(
        shared!(@handle &$map, $operations);
        impl Named for $map {
            const NAME: &'static str = $name;
            const ORDERED: bool = $ordered;
        }
        impl Shared for $map {
            type Handle<'a> = &'a $map;
            fn empty() -> Self {
                Self::new()
            }
            fn handle(&self) -> &$map {
                self
            }
        }
    )*};
    (@handle $map:ty, ($($operations:tt)*)) => { handle!($map, $($operations)*); };
}

shared! {
    dashmap::DashMap<u64, u64>, "dashmap", false, (|map, key, value| (**map).insert(key, value),
        (**map).get(&key).map(|found| *found), (**map).remove(&key).is_some());
    papaya::HashMap<u64, u64>, "papaya", false, (|map, key, value| (**map).pin().insert(key, value),
        (**map).pin().get(&key).copied(), (**map).pin().remove(&key).is_some());
    scc::HashIndex<u64, u64>, "scc::HashIndex", false, (|map, key, value| (**map).insert_sync(key, value),
        (**map).peek_with(&key, |_, value| *value), (**map).remove_sync(&key));
    scc::TreeIndex<u64, u64>, "scc::TreeIndex", true, (|map, key, value| (**map).upsert_sync(key, value),
        (**map).peek_with(&key, |_, value| *value), (**map).remove_sync(&key));
    crossbeam_skiplist::SkipMap<u64, u64>, "crossbeam SkipMap", true, (|map, key, value| (**map).insert(key, value),
        (**map).get(&key).map(|entry| *entry.value()), (**map).remove(&key).is_some());
}

/// concurrent-map, a lock-free B+-tree. Each handle is a clone of this one.
pub struct Concurrent(std::sync::Mutex<ConcurrentMap<u64, u64>>);

handle! { ConcurrentMap<u64, u64>, |map, key, value| ConcurrentMap::insert(map, key, value),
ConcurrentMap::get(map, &key), ConcurrentMap::remove(map, &key).is_some() }

impl Named for Concurrent {
    const NAME: &'static str = "concurrent-map";
    const ORDERED: bool = true;
}

impl Shared for Concurrent {
    type Handle<'a> = ConcurrentMap<u64, u64>;
    fn empty() -> Self {
        Concurrent(ConcurrentMap::new().into())
    }
    fn handle(&self) -> ConcurrentMap<u64, u64> {
        self.0.lock().expect("no thread panics with it").clone()
    }
}

/// congee, an adaptive radix tree with optimistic lock coupling. Its values are words of 64 bits.
pub struct Art(U64Congee<usize>);

handle! { Art, |map, key, value| map.0.insert(key, value as usize, &pin()).expect("there is memory"),
map.0.get(key, &pin()).map(|value| value as u64), map.0.remove(key, &pin()).is_some() }

impl Named for Art {
    const NAME: &'static str = "congee (ART)";
    const ORDERED: bool = true;
}

impl Map for Art {
    fn empty() -> Self {
        Art(U64Congee::new())
    }
    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        let (guard, mut batch, mut start) = (pin(), [([0; 8], 0); 1024], 0u64);
        // Each batch begins behind the last key of the one before. An empty batch is the end.
        loop {
            let n = self.0.range(start, u64::MAX, &mut batch, &guard);
            for (key, value) in &batch[..n] {
                // Stored keys are big-endian.
                start = u64::from_be_bytes(*key) + 1;
                each(start - 1, *value as u64);
            }
            if n == 0 {
                return;
            }
        }
    }
}

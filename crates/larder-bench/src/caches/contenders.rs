//! The caches that are compared. Each has room for a number of entries, and decides which to evict.

use crate::maps::peers::Named;
use larder::prelude::*;
use larder::Evict;

pub trait Cache: Named + Sync + Sized {
    fn new(capacity: usize) -> Self;
    fn get(&self, key: u64) -> Option<u64>;
    fn put(&self, key: u64, value: u64);
    /// The number of entries, after pending work in the background.
    fn len(&self) -> usize;
}

/// Implements `Cache` from expressions: a new cache, a lookup, an insert, the number of entries.
macro_rules! cache {
    ([$($generics:tt)*] $type:ty, $name:expr, |$capacity:ident| $new:expr,
     |$cache:ident, $key:ident, $value:ident| $get:expr, $put:expr, $len:expr) => {
        impl<$($generics)*> Named for $type {
            const NAME: &'static str = $name;
        }
        impl<$($generics)*> Cache for $type {
            fn new($capacity: usize) -> Self {
                $new
            }
            fn get(&self, $key: u64) -> Option<u64> {
                let $cache = self;
                $get
            }
            fn put(&self, $key: u64, $value: u64) {
                let $cache = self;
                $put;
            }
            fn len(&self) -> usize {
                let $cache = self;
                $len
            }
        }
    };
}

/// A table by hash that is limited by its number of rows, as the other caches are, and evicts by
/// one of [`EVICTS`].
pub struct Evicting<const BY: usize>(TypedHash<u64, u64>);

/// The rows that go: those that are used least often, weren't used for the longest time, or weren't
/// used since it was last their turn.
const EVICTS: [(&str, Evict); 3] = [
    ("larder tinylfu", Evict::TinyLfu),
    ("larder lru", Evict::Lru),
    ("larder sieve", Evict::Sieve),
];

/// The default of Larder.
pub type TinyLfu = Evicting<0>;

const MAKES_ROOM: &str = "the table is there, and makes room";

cache!([const BY: usize] Evicting<BY>, EVICTS[BY].0, |capacity| {
    let table = Larder::new().table("cache").max_size(capacity).evict(EVICTS[BY].1);
    Evicting(table.typed_hash().expect("a typed table takes a limit"))
}, |cache, key, value| cache.0.get(&key).expect(MAKES_ROOM),
    cache.0.put(&key, &value).expect(MAKES_ROOM), cache.0.len());

#[cfg(feature = "peers")]
cache!([] moka::sync::Cache<u64, u64>, "moka", |capacity| Self::new(capacity as u64),
|cache, key, value| Self::get(cache, &key), cache.insert(key, value), {
    cache.run_pending_tasks();
    cache.entry_count() as usize
});

#[cfg(feature = "peers")]
cache!([] quick_cache::sync::Cache<u64, u64>, "quick_cache", |capacity| Self::new(capacity),
    |cache, key, value| Self::get(cache, &key), cache.insert(key, value), Self::len(cache));

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
    ($type:ty, $name:literal, |$capacity:ident| $new:expr, |$cache:ident, $key:ident, $value:ident|
     $get:expr, $put:expr, $len:expr) => {
        impl Named for $type {
            const NAME: &'static str = $name;
        }
        impl Cache for $type {
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

/// A table that evicts the rows that are used least often.
pub struct TinyLfu(TypedHash<u64, u64>);
/// A table that evicts the rows that weren't used for the longest time.
pub struct Lru(TypedHash<u64, u64>);
/// A table that evicts the rows that weren't used since it was last their turn.
pub struct Sieve(TypedHash<u64, u64>);

/// A table by hash that is limited by its number of rows. So are the other caches.
fn table(capacity: usize, evict: Evict) -> TypedHash<u64, u64> {
    let builder = Larder::new().table("cache").max_size(capacity);
    let table = builder.evict(evict).typed_hash();
    table.expect("a typed table takes a limit")
}

const EVICTS: &str = "the table is there, and makes room";

macro_rules! larder_cache {
    ($type:ident, $name:literal) => {
        cache!(
            $type,
            $name,
            |capacity| $type(table(capacity, Evict::$type)),
            |cache, key, value| cache.0.get(&key).expect(EVICTS),
            cache.0.put(&key, &value).expect(EVICTS),
            cache.0.len()
        );
    };
}

larder_cache!(TinyLfu, "larder tinylfu");
larder_cache!(Lru, "larder lru");
larder_cache!(Sieve, "larder sieve");

#[cfg(feature = "peers")]
cache!(moka::sync::Cache<u64, u64>, "moka", |capacity| Self::new(capacity as u64), |cache, key, value|
Self::get(cache, &key), cache.insert(key, value), {
    cache.run_pending_tasks();
    cache.entry_count() as usize
});

#[cfg(feature = "peers")]
cache!(quick_cache::sync::Cache<u64, u64>, "quick_cache", |capacity| Self::new(capacity),
    |cache, key, value| Self::get(cache, &key), cache.insert(key, value), Self::len(cache));

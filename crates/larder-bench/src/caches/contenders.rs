//! The caches that are compared. Each has room for a number of entries, and decides itself which
//! ones to evict.

use larder::prelude::*;
use larder::Evict;

/// A cache that threads share. Keys and values are numbers.
pub trait Cache: Sync + Sized {
    /// What reports call it.
    const NAME: &'static str;
    /// A cache that holds this number of entries.
    fn of(capacity: usize) -> Self;
    /// The value under a key.
    fn get(&self, key: u64) -> Option<u64>;
    /// Puts a value under a key.
    fn put(&self, key: u64, value: u64);
    /// The number of entries, after what is still to be done in the background.
    fn len(&self) -> usize;
}

/// A typed table with a limit, and the policy by its number in [`POLICIES`].
pub struct LarderCache<const POLICY: usize>(Typed<u64, u64>);

/// How Larder decides what goes, by what reports call it.
const POLICIES: [(&str, Evict); 2] = [
    ("larder tinylfu", Evict::TinyLfu),
    ("larder lru", Evict::Lru),
];

/// A table that evicts what is used least often.
pub type TinyLfu = LarderCache<0>;
/// A table that evicts what was used the longest time ago.
pub type Lru = LarderCache<1>;

impl<const POLICY: usize> Cache for LarderCache<POLICY> {
    const NAME: &'static str = POLICIES[POLICY].0;

    fn of(capacity: usize) -> Self {
        let builder = Larder::new().table("cache").max_size(capacity);
        // The limit is a number of rows, as those of the other caches are. So they hold the same.
        let table = builder.evict(POLICIES[POLICY].1).typed();
        LarderCache(table.expect("a typed table takes a limit"))
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key).expect("the table is there")
    }

    fn put(&self, key: u64, value: u64) {
        let put = self.0.put(&key, &value);
        put.expect("a table that evicts has room");
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(feature = "peers")]
macro_rules! caches {
    ($($cache:ty, $name:literal, $of:expr, $len:expr;)*) => {$(
        impl Cache for $cache {
            const NAME: &'static str = $name;

            fn of(capacity: usize) -> Self {
                let of: fn(usize) -> Self = $of;
                of(capacity)
            }
            fn get(&self, key: u64) -> Option<u64> {
                <$cache>::get(self, &key)
            }
            fn put(&self, key: u64, value: u64) {
                self.insert(key, value);
            }
            fn len(&self) -> usize {
                let len: fn(&$cache) -> usize = $len;
                len(self)
            }
        }
    )*};
}

#[cfg(feature = "peers")]
caches! {
    moka::sync::Cache<u64, u64>, "moka",
        |capacity| Self::new(capacity as u64),
        |cache| {
            cache.run_pending_tasks();
            cache.entry_count() as usize
        };
    quick_cache::sync::Cache<u64, u64>, "quick_cache",
        |capacity| Self::new(capacity),
        |cache| cache.len();
}

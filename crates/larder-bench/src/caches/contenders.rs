//! The caches that are compared. Each has room for a number of entries, and decides itself which
//! ones to evict.

use larder::prelude::*;
use larder::Evict;
use std::marker::PhantomData;

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

/// How Larder decides what goes.
pub trait Policy: Sync {
    /// What reports call a table with it.
    const NAME: &'static str;
    /// The option.
    const EVICT: Evict;
}

/// A policy of Larder's.
macro_rules! policy {
    ($name:ident, $said:literal) => {
        pub struct $name;

        impl Policy for $name {
            const NAME: &'static str = $said;
            const EVICT: Evict = Evict::$name;
        }
    };
}

policy!(TinyLfu, "larder tinylfu");
policy!(Lru, "larder lru");

/// A typed table with a limit.
pub struct LarderCache<P>(Typed<u64, u64>, PhantomData<P>);

impl<P: Policy> Cache for LarderCache<P> {
    const NAME: &'static str = P::NAME;

    fn of(capacity: usize) -> Self {
        let builder = Larder::new().table("cache").max_size(capacity);
        // The limit is a number of rows, as those of the other caches are. So they hold the same.
        let table = builder.evict(P::EVICT).typed();
        LarderCache(table.expect("a typed table takes a limit"), PhantomData)
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
mod crates {
    use super::Cache;

    impl Cache for moka::sync::Cache<u64, u64> {
        const NAME: &'static str = "moka";

        fn of(capacity: usize) -> Self {
            moka::sync::Cache::new(capacity as u64)
        }

        fn get(&self, key: u64) -> Option<u64> {
            moka::sync::Cache::get(self, &key)
        }

        fn put(&self, key: u64, value: u64) {
            self.insert(key, value);
        }

        fn len(&self) -> usize {
            self.run_pending_tasks();
            self.entry_count() as usize
        }
    }

    impl Cache for quick_cache::sync::Cache<u64, u64> {
        const NAME: &'static str = "quick_cache";

        fn of(capacity: usize) -> Self {
            quick_cache::sync::Cache::new(capacity)
        }

        fn get(&self, key: u64) -> Option<u64> {
            quick_cache::sync::Cache::get(self, &key)
        }

        fn put(&self, key: u64, value: u64) {
            self.insert(key, value);
        }

        fn len(&self) -> usize {
            quick_cache::sync::Cache::len(self)
        }
    }
}

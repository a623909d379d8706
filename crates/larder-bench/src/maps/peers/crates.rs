//! Maps of the standard library and of other crates.
//!
//! The standard library's hash map uses SipHash, its default. With concurrent-map each thread has a
//! clone. scc's insert doesn't replace a value that exists, which makes no difference here.

#[cfg(feature = "peers")]
use super::Shared;
use super::{Hand, Map};
use std::collections::BTreeMap;

macro_rules! maps {
    ($($map:ty, $name:literal, $ordered:literal;)*) => {$(
        impl Hand for $map {
            fn insert(&mut self, key: u64, value: u64) {
                <$map>::insert(self, key, value);
            }
            fn get(&mut self, key: u64) -> Option<u64> {
                <$map>::get(self, &key).copied()
            }
            fn remove(&mut self, key: u64) -> bool {
                <$map>::remove(self, &key).is_some()
            }
        }

        impl Map for $map {
            const NAME: &'static str = $name;
            const ORDERED: bool = $ordered;

            fn empty() -> Self {
                Self::new()
            }
            fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
                self.iter().for_each(|(&k, &v)| each(k, v));
            }
        }
    )*};
}

maps! {
    hashbrown::HashMap<u64, u64>, "hashbrown", false;
    BTreeMap<u64, u64>, "BTreeMap", true;
    std::collections::HashMap<u64, u64>, "std HashMap", false;
}

#[cfg(feature = "peers")]
macro_rules! shared {
    ($($map:ty, $name:literal, $ordered:literal, $insert:expr, $get:expr, $remove:expr;)*) => {$(
        impl Hand for &$map {
            fn insert(&mut self, key: u64, value: u64) {
                let insert: fn(&$map, u64, u64) = $insert;
                insert(self, key, value);
            }
            fn get(&mut self, key: u64) -> Option<u64> {
                let get: fn(&$map, u64) -> Option<u64> = $get;
                get(self, key)
            }
            fn remove(&mut self, key: u64) -> bool {
                let remove: fn(&$map, u64) -> bool = $remove;
                remove(self, key)
            }
        }

        impl Shared for $map {
            const NAME: &'static str = $name;
            const ORDERED: bool = $ordered;
            type Hand<'a> = &'a $map;

            fn empty() -> Self {
                Self::new()
            }
            fn hand(&self) -> &$map {
                self
            }
        }
    )*};
}

#[cfg(feature = "peers")]
shared! {
    dashmap::DashMap<u64, u64>, "dashmap", false,
        |map, key, value| _ = map.insert(key, value),
        |map, key| map.get(&key).map(|found| *found),
        |map, key| map.remove(&key).is_some();
    papaya::HashMap<u64, u64>, "papaya", false,
        |map, key, value| _ = map.pin().insert(key, value),
        |map, key| map.pin().get(&key).copied(),
        |map, key| map.pin().remove(&key).is_some();
    scc::HashIndex<u64, u64>, "scc::HashIndex", false,
        |map, key, value| _ = map.insert_sync(key, value),
        |map, key| map.peek_with(&key, |_, value| *value),
        |map, key| map.remove_sync(&key);
    scc::TreeIndex<u64, u64>, "scc::TreeIndex", true,
        |map, key, value| _ = map.insert_sync(key, value),
        |map, key| map.peek_with(&key, |_, value| *value),
        |map, key| map.remove_sync(&key);
    crossbeam_skiplist::SkipMap<u64, u64>, "crossbeam SkipMap", true,
        |map, key, value| _ = map.insert(key, value),
        |map, key| map.get(&key).map(|entry| *entry.value()),
        |map, key| map.remove(&key).is_some();
}

#[cfg(feature = "peers")]
pub use of_each_thread::{Art, Concurrent};

#[cfg(feature = "peers")]
mod of_each_thread {
    use super::{Hand, Map, Shared};
    use concurrent_map::ConcurrentMap;
    use congee::U64Congee;
    use crossbeam_epoch::pin;
    use std::sync::Mutex;

    /// concurrent-map, a lock-free B+-tree, to be cloned from.
    pub struct Concurrent(Mutex<ConcurrentMap<u64, u64>>);

    impl Hand for ConcurrentMap<u64, u64> {
        fn insert(&mut self, key: u64, value: u64) {
            ConcurrentMap::insert(self, key, value);
        }
        fn get(&mut self, key: u64) -> Option<u64> {
            ConcurrentMap::get(self, &key)
        }
        fn remove(&mut self, key: u64) -> bool {
            ConcurrentMap::remove(self, &key).is_some()
        }
    }

    impl Shared for Concurrent {
        const NAME: &'static str = "concurrent-map";
        const ORDERED: bool = true;
        type Hand<'a> = ConcurrentMap<u64, u64>;

        fn empty() -> Self {
            Concurrent(Mutex::new(ConcurrentMap::new()))
        }
        fn hand(&self) -> ConcurrentMap<u64, u64> {
            self.0.lock().expect("no thread panics with it").clone()
        }
    }

    /// congee: an adaptive radix tree with optimistic lock coupling.
    pub struct Art(U64Congee<usize>);

    impl Hand for Art {
        fn insert(&mut self, key: u64, value: u64) {
            // Its values are words of the machine, which has 64 bits.
            let value = value as usize;
            self.0.insert(key, value, &pin()).expect("there is memory");
        }
        fn get(&mut self, key: u64) -> Option<u64> {
            self.0.get(key, &pin()).map(|value| value as u64)
        }
        fn remove(&mut self, key: u64) -> bool {
            self.0.remove(key, &pin()).is_some()
        }
    }

    impl Map for Art {
        const NAME: &'static str = "congee (ART)";
        const ORDERED: bool = true;

        fn empty() -> Self {
            Art(U64Congee::new())
        }

        /// Reads parts of 1024 entries. Each begins behind the last key of the one before.
        fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
            let (guard, mut part, mut start) = (pin(), [([0; 8], 0); 1024], 0u64);
            loop {
                // The keys of the map are big-endian, so they come in order.
                let n = self.0.range(start, u64::MAX, &mut part, &guard);
                for (key, value) in &part[..n] {
                    each(u64::from_be_bytes(*key), *value as u64);
                }
                match part[..n].last() {
                    Some((key, _)) => start = u64::from_be_bytes(*key) + 1,
                    None => return,
                }
            }
        }
    }
}

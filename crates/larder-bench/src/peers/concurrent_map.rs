//! concurrent-map: a lock-free B+-tree. Each thread has a clone of it.

use super::{Operations, Shared};
use concurrent_map::ConcurrentMap;
use std::sync::Mutex;

/// `ConcurrentMap<u64, u64>`, to be cloned from.
pub struct Concurrent(Mutex<ConcurrentMap<u64, u64>>);

/// A thread's clone.
pub struct Hand(ConcurrentMap<u64, u64>);

impl Operations for Hand {
    fn insert(&mut self, key: u64, value: u64) {
        self.0.insert(key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }
    fn remove(&mut self, key: u64) {
        self.0.remove(&key);
    }
}

impl Shared for Concurrent {
    const NAME: &'static str = "concurrent-map";
    const ORDERED: bool = true;
    type Hand<'a> = Hand;

    fn empty() -> Self {
        Concurrent(Mutex::new(ConcurrentMap::new()))
    }
    fn hand(&self) -> Hand {
        Hand(self.0.lock().expect("no thread panics with it").clone())
    }
}

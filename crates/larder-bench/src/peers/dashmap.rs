//! dashmap: a hash map cut into shards, each under a lock.

use super::{Operations, Shared};
use dashmap::DashMap;

/// `DashMap<u64, u64>`.
pub struct Dash(DashMap<u64, u64>);

impl Operations for &Dash {
    fn insert(&mut self, key: u64, value: u64) {
        self.0.insert(key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        self.0.get(&key).map(|found| *found)
    }
    fn remove(&mut self, key: u64) {
        self.0.remove(&key);
    }
}

impl Shared for Dash {
    const NAME: &'static str = "dashmap";
    const ORDERED: bool = false;
    type Hand<'a> = &'a Dash;

    fn empty() -> Self {
        Dash(DashMap::new())
    }
    fn hand(&self) -> &Dash {
        self
    }
}

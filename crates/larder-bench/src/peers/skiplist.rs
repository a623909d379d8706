//! crossbeam's skip list.

use super::{Operations, Shared};
use crossbeam_skiplist::SkipMap;

/// `SkipMap<u64, u64>`.
pub struct Skip(SkipMap<u64, u64>);

impl Operations for &Skip {
    fn insert(&mut self, key: u64, value: u64) {
        self.0.insert(key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        self.0.get(&key).map(|entry| *entry.value())
    }
    fn remove(&mut self, key: u64) {
        self.0.remove(&key);
    }
}

impl Shared for Skip {
    const NAME: &'static str = "crossbeam SkipMap";
    const ORDERED: bool = true;
    type Hand<'a> = &'a Skip;

    fn empty() -> Self {
        Skip(SkipMap::new())
    }
    fn hand(&self) -> &Skip {
        self
    }
}

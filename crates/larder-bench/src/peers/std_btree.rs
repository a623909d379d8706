//! The standard library's B-tree.

use super::{Map, Operations};
use std::collections::BTreeMap;

/// `BTreeMap<u64, u64>`.
pub struct Tree(BTreeMap<u64, u64>);

impl Operations for Tree {
    fn insert(&mut self, key: u64, value: u64) {
        self.0.insert(key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        self.0.get(&key).copied()
    }
    fn remove(&mut self, key: u64) {
        self.0.remove(&key);
    }
}

impl Map for Tree {
    const NAME: &'static str = "BTreeMap";
    const ORDERED: bool = true;

    fn empty() -> Self {
        Tree(BTreeMap::new())
    }
    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        self.0.iter().for_each(|(&k, &v)| each(k, v));
    }
}

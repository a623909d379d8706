//! hashbrown's map, with its own hash: what the standard library's is made of.

use super::{Map, Operations};
use hashbrown::HashMap;

/// `hashbrown::HashMap<u64, u64>`.
pub struct Hashbrown(HashMap<u64, u64>);

impl Operations for Hashbrown {
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

impl Map for Hashbrown {
    const NAME: &'static str = "hashbrown";
    const ORDERED: bool = false;

    fn empty() -> Self {
        Hashbrown(HashMap::new())
    }
    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        self.0.iter().for_each(|(&k, &v)| each(k, v));
    }
}

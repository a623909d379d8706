//! papaya: a hash map whose readers take no lock, reclaimed through hazard eras.

use super::{Operations, Shared};
use papaya::HashMap;

/// `papaya::HashMap<u64, u64>`, pinned for each operation.
pub struct Papaya(HashMap<u64, u64>);

impl Operations for &Papaya {
    fn insert(&mut self, key: u64, value: u64) {
        self.0.pin().insert(key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        self.0.pin().get(&key).copied()
    }
    fn remove(&mut self, key: u64) {
        self.0.pin().remove(&key);
    }
}

impl Shared for Papaya {
    const NAME: &'static str = "papaya";
    const ORDERED: bool = false;
    type Hand<'a> = &'a Papaya;

    fn empty() -> Self {
        Papaya(HashMap::new())
    }
    fn hand(&self) -> &Papaya {
        self
    }
}

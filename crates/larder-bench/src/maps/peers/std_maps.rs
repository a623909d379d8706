//! The maps of the standard library, and hashbrown. The standard library's hash map uses SipHash,
//! its default.

use super::{Handle, Map, Named, Store};
use std::collections::{BTreeMap, HashMap};

macro_rules! maps {
    ($($map:ident, $name:literal, $ordered:literal;)*) => {$(
        impl Named for $map<u64, u64> {
            const NAME: &'static str = $name;
            const ORDERED: bool = $ordered;
        }
        impl Handle for $map<u64, u64> {
            fn insert(&mut self, key: u64, value: u64) {
                Self::insert(self, key, value);
            }
            fn get(&mut self, key: u64) -> Option<u64> {
                Self::get(self, &key).copied()
            }
            fn remove(&mut self, key: u64) -> bool {
                Self::remove(self, &key).is_some()
            }
        }
        impl Map for $map<u64, u64> {
            fn empty() -> Self {
                Self::new()
            }
            fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
                self.iter().for_each(|(&key, &value)| each(key, value));
            }
        }
        impl Store for $map<u64, Vec<u8>> {
            fn put(&mut self, key: u64, value: &[u8]) {
                let old = self.entry(key).or_default();
                old.clear();
                old.extend_from_slice(value);
            }
            fn append(&mut self, key: u64, piece: &[u8], most: usize) {
                let value = self.entry(key).or_default();
                if value.len() + piece.len() > most {
                    value.clear();
                }
                value.extend_from_slice(piece);
            }
            fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
                let found = Self::get(self, &key);
                found.map(|value| out.extend_from_slice(value)).is_some()
            }
        }
    )*};
}

/// hashbrown's map, whose name here is that of the standard library's.
type Hashbrown<K, V> = hashbrown::HashMap<K, V>;

maps! {
    Hashbrown, "hashbrown", false;
    BTreeMap, "BTreeMap", true;
    HashMap, "std HashMap", false;
}

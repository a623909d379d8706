//! The maps of the standard library, and hashbrown. The standard library's hash map uses SipHash,
//! its default.

use super::{Handle, Map, Named};
use std::collections::BTreeMap;

macro_rules! maps {
    ($($map:ty, $name:literal, $ordered:literal;)*) => {$(
        impl Named for $map {
            const NAME: &'static str = $name;
            const ORDERED: bool = $ordered;
        }
        impl Handle for $map {
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
            fn empty() -> Self {
                Self::new()
            }
            fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
                self.iter().for_each(|(&key, &value)| each(key, value));
            }
        }
    )*};
}

maps! {
    hashbrown::HashMap<u64, u64>, "hashbrown", false;
    BTreeMap<u64, u64>, "BTreeMap", true;
    std::collections::HashMap<u64, u64>, "std HashMap", false;
}

//! Maps from numbers to runs of bytes.

use std::collections::BTreeMap;

/// A map from numbers to runs of bytes.
pub trait Store {
    /// Puts the value under the key.
    fn put(&mut self, key: u64, value: &[u8]);
    /// Adds to the end of a value; one that would be longer than `most` begins anew.
    fn append(&mut self, key: u64, piece: &[u8], most: usize);
    /// Adds the value to the end of `out`; false if there is none.
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool;
    /// Bytes that it holds, if it knows.
    fn bytes(&self) -> Option<usize> {
        None
    }
}

macro_rules! stores {
    ($($map:ty),*) => {$(
        impl Store for $map {
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
                let found = <$map>::get(self, &key);
                found.is_some_and(|value| {
                    out.extend_from_slice(value);
                    true
                })
            }
        }
    )*};
}

stores!(
    BTreeMap<u64, Vec<u8>>,
    hashbrown::HashMap<u64, Vec<u8>>,
    std::collections::HashMap<u64, Vec<u8>>
);

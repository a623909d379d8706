//! Maps from numbers to byte strings.

use std::collections::BTreeMap;

pub trait Store {
    fn put(&mut self, key: u64, value: &[u8]);
    /// Appends to a value. A value that would be longer than `most` is replaced by the piece.
    fn append(&mut self, key: u64, piece: &[u8], most: usize);
    /// Appends the value to `out`. Returns whether the key is present.
    fn get(&mut self, key: u64, out: &mut Vec<u8>) -> bool;
    /// The bytes of a store that counts them.
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
                found.map(|value| out.extend_from_slice(value)).is_some()
            }
        }
    )*};
}

stores!(
    BTreeMap<u64, Vec<u8>>,
    hashbrown::HashMap<u64, Vec<u8>>,
    std::collections::HashMap<u64, Vec<u8>>
);

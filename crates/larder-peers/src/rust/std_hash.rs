//! The standard library's HashMap, as one uses it who asks for nothing: SipHash.

use super::Bytes;
use larder_bench::peers::{Map, Operations};
use std::collections::HashMap;

/// Its name.
pub const NAME: &str = "std HashMap";

/// `HashMap<u64, u64>`.
pub struct StdHash(HashMap<u64, u64>);

/// `HashMap<u64, Vec<u8>>`.
#[derive(Default)]
pub struct Texts(HashMap<u64, Vec<u8>>);

impl Operations for StdHash {
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

impl Map for StdHash {
    const NAME: &'static str = NAME;
    const ORDERED: bool = false;

    fn empty() -> Self {
        StdHash(HashMap::new())
    }
    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        self.0.iter().for_each(|(&k, &v)| each(k, v));
    }
}

impl Bytes for Texts {
    fn append(&mut self, key: u64, piece: &[u8]) {
        self.0.entry(key).or_default().extend_from_slice(piece);
    }
    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> bool {
        let found = self.0.get(&key);
        found.is_some_and(|bytes| {
            out.extend_from_slice(bytes);
            true
        })
    }
}

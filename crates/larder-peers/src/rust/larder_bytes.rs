//! Larder's index with bytes under keys: an append reads and writes the entry under its lock.

use super::Bytes;
use larder_bench::peers::larder::{index, key};
use larder_index::{pin, Change, Unique};
use larder_term::hash::Seed;

/// An index of either order.
pub struct LarderBytes {
    index: Box<dyn Unique>,
    seed: Seed,
}

impl LarderBytes {
    /// An empty one.
    pub fn new(ordered: bool) -> Self {
        let seed = Seed::random();
        LarderBytes {
            index: index(ordered, &seed, true),
            seed,
        }
    }
}

impl Bytes for LarderBytes {
    fn append(&mut self, number: u64, piece: &[u8]) {
        let bytes = number.to_be_bytes();
        let key = key(&self.seed, &bytes);
        self.index.update(&pin(), key, &mut |old, scratch| {
            scratch.extend_from_slice(old.unwrap_or_default());
            scratch.extend_from_slice(piece);
            Change::PutScratch
        });
    }

    fn read(&mut self, number: u64, out: &mut Vec<u8>) -> bool {
        let bytes = number.to_be_bytes();
        self.index.get(&pin(), key(&self.seed, &bytes), out)
    }
}

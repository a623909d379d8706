//! congee: an adaptive radix tree with optimistic lock coupling (feature `crates`).

use congee::U64Congee;
use crossbeam_epoch::pin;
use larder_bench::peers::{Map, Operations};

/// `U64Congee<usize>`.
pub struct Art(U64Congee<usize>);

impl Operations for Art {
    fn insert(&mut self, key: u64, value: u64) {
        let value = value as usize;
        self.0.insert(key, value, &pin()).expect("there is memory");
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        self.0.get(key, &pin()).map(|value| value as u64)
    }
    fn remove(&mut self, key: u64) {
        self.0.remove(key, &pin());
    }
}

impl Map for Art {
    const NAME: &'static str = "congee (ART)";
    const ORDERED: bool = true;

    fn empty() -> Self {
        Art(U64Congee::new())
    }

    /// In parts of 1024, each from behind the last key of the one before.
    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        let (guard, mut part, mut start) = (pin(), [([0; 8], 0); 1024], 0u64);
        loop {
            let n = self.0.range(start, u64::MAX, &mut part, &guard);
            for (key, value) in &part[..n] {
                each(u64::from_be_bytes(*key), *value as u64);
            }
            match part[..n].last() {
                Some((key, _)) => start = u64::from_be_bytes(*key) + 1,
                None => return,
            }
        }
    }
}

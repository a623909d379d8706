//! Larder's own: eight bytes of key and eight of value, through the same trait as every table's.

use super::{Map, Operations, Shared};
use larder_index::{pin, Batch, Change, Direction, Key, KeyRule, Start, Unique, UniqueKind};
use larder_term::hash::Seed;
use std::sync::Arc;

/// How a bench's keys are hashed, and whether they all have eight bytes (then they tell their own end, as a table's keys do).
struct Rule {
    seed: Seed,
    eight: bool,
}

impl KeyRule for Rule {
    fn hash(&self, key: &[u8]) -> u64 {
        self.seed.hash(key)
    }
    fn ends_itself(&self) -> bool {
        self.eight
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        if self.eight {
            8
        } else {
            bytes.len()
        }
    }
}

/// An index in key order or in the order of the seed's hashes, for keys of `eight` bytes or of any length.
pub fn index(ordered: bool, seed: &Seed, eight: bool) -> Box<dyn Unique> {
    let seed = seed.clone();
    larder_index::unique(if ordered {
        UniqueKind::Ordered
    } else {
        UniqueKind::Hash(Arc::new(Rule { seed, eight }))
    })
}

/// A key as the index wants it, hashed as tables hash theirs.
pub fn key<'a>(seed: &Seed, bytes: &'a [u8]) -> Key<'a> {
    Key {
        bytes,
        hash: seed.hash(bytes),
    }
}

/// An index in hash order or in key order.
pub struct Larder<const ORDERED: bool> {
    index: Box<dyn Unique>,
    seed: Seed,
    value: Vec<u8>,
}

/// In hash order.
pub type Hash = Larder<false>;
/// In key order.
pub type Ordered = Larder<true>;

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("values have eight bytes"))
}

fn insert(index: &dyn Unique, seed: &Seed, number: u64, value: u64) {
    let (bytes, value) = (number.to_be_bytes(), value.to_le_bytes());
    index.update(&pin(), key(seed, &bytes), &mut |_, _| Change::Put(&value));
}

fn get(index: &dyn Unique, seed: &Seed, number: u64, value: &mut Vec<u8>) -> Option<u64> {
    value.clear();
    let found = index.get(&pin(), key(seed, &number.to_be_bytes()), value);
    found.then(|| word(value))
}

fn remove(index: &dyn Unique, seed: &Seed, number: u64) {
    let bytes = number.to_be_bytes();
    index.update(&pin(), key(seed, &bytes), &mut |_, _| Change::Remove);
}

impl<const ORDERED: bool> Operations for Larder<ORDERED> {
    fn insert(&mut self, key: u64, value: u64) {
        insert(&*self.index, &self.seed, key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        get(&*self.index, &self.seed, key, &mut self.value)
    }
    fn remove(&mut self, key: u64) {
        remove(&*self.index, &self.seed, key);
    }
}

impl<const ORDERED: bool> Map for Larder<ORDERED> {
    const NAME: &'static str = name(ORDERED);
    const ORDERED: bool = ORDERED;

    fn empty() -> Self {
        let seed = Seed::random();
        Larder {
            index: index(ORDERED, &seed, true),
            seed,
            value: Vec::new(),
        }
    }

    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        let mut batch = Batch::default();
        let mut at = Vec::new();
        loop {
            let start = if at.is_empty() {
                Start::Edge
            } else {
                Start::At(&at)
            };
            self.index
                .scan(&pin(), start, Direction::Forward, &mut batch);
            for i in 0..batch.len() {
                let key = batch.key(i).try_into().expect("keys have eight bytes");
                each(u64::from_be_bytes(key), word(batch.value(i)));
            }
            if batch.done {
                return;
            }
            at.clone_from(&batch.resume);
        }
    }

    fn own_bytes(&mut self) -> Option<usize> {
        Some(self.index.memory())
    }
}

/// A thread's way to an index.
pub struct Hand<'a> {
    index: &'a dyn Unique,
    seed: &'a Seed,
    value: Vec<u8>,
}

impl Operations for Hand<'_> {
    fn insert(&mut self, key: u64, value: u64) {
        insert(self.index, self.seed, key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        get(self.index, self.seed, key, &mut self.value)
    }
    fn remove(&mut self, key: u64) {
        remove(self.index, self.seed, key);
    }
}

impl<const ORDERED: bool> Shared for Larder<ORDERED> {
    const NAME: &'static str = name(ORDERED);
    const ORDERED: bool = ORDERED;
    type Hand<'a> = Hand<'a>;

    fn empty() -> Self {
        <Self as Map>::empty()
    }
    fn hand(&self) -> Hand<'_> {
        Hand {
            index: &*self.index,
            seed: &self.seed,
            value: Vec::new(),
        }
    }
}

const fn name(ordered: bool) -> &'static str {
    if ordered {
        "larder ordered"
    } else {
        "larder hash"
    }
}

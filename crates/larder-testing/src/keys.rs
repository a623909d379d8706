//! Adversarial keys and hashes, indexes for them, and complete scans.

use larder_index::{
    pin, unique_with, Batch, Change, Direction, Key, KeyRule, LeafConfig, Multi, Start, Unique,
    UniqueKind,
};
use std::sync::Arc;

/// An index with one value under a key, of either order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By hash.
    Hash,
    /// By key.
    Ordered,
}

/// An index with good hashes.
pub fn make(kind: Kind, config: LeafConfig) -> Box<dyn Unique> {
    make_with(kind, config, Hashes::Good)
}

/// An index with hashes of this kind.
pub fn make_with(kind: Kind, config: LeafConfig, how: Hashes) -> Box<dyn Unique> {
    let kind = match kind {
        Kind::Hash => UniqueKind::Hash(Arc::new(how)),
        Kind::Ordered => UniqueKind::Ordered,
    };
    unique_with(kind, config)
}

/// An index with hashes of this kind for keys that `key_bytes` has made, which are self-delimiting.
pub fn make_ending(kind: Kind, config: LeafConfig, how: Hashes) -> Box<dyn Unique> {
    match kind {
        Kind::Hash => unique_with(UniqueKind::Hash(Arc::new(Ending(how))), config),
        Kind::Ordered => make(kind, config),
    }
}

/// The rule for keys that `key_bytes` has made.
struct Ending(Hashes);

impl KeyRule for Ending {
    fn hash(&self, key: &[u8]) -> u64 {
        hash(key, self.0)
    }
    fn is_self_delimiting(&self) -> bool {
        true
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        4 + match bytes[0] {
            1 => 1,
            b'a' => 40,
            2 => 10,
            b'z' => 700,
            _ => 6,
        }
    }
}

impl KeyRule for Hashes {
    fn hash(&self, key: &[u8]) -> u64 {
        hash(key, *self)
    }
}

/// A kind of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashes {
    /// Good hashes.
    Good,
    /// Four hashes in all.
    Few,
    /// One hash for all keys.
    One,
    /// Hashes that differ in their low bits alone.
    Low,
}

/// All kinds of hashes.
pub const ALL_HASHES: [Hashes; 4] = [Hashes::Good, Hashes::Few, Hashes::One, Hashes::Low];

/// The configurations that every suite runs over.
pub fn configs() -> [LeafConfig; 2] {
    [LeafConfig::tiny(), LeafConfig::default()]
}

/// Mixes a number (the end of splitmix64).
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The hash of some bytes, of this kind.
pub fn hash(bytes: &[u8], how: Hashes) -> u64 {
    let good = bytes
        .iter()
        .fold(7, |h, b| mix(h ^ u64::from(*b) ^ 0x9E37_79B9));
    match how {
        Hashes::Good => good,
        // The two highest bits: four hashes, and each is at another end of the trie.
        Hashes::Few => (good & 3) << 62,
        // One hash: keys differ in nothing but their bytes.
        Hashes::One => 0x0123_4567_89AB_CDEF,
        // The upper bits agree, so a trie is deep before keys part.
        Hashes::Low => good & 0x00FF_FFFF,
    }
}

/// A key with a hash of this kind.
pub fn key(bytes: &[u8], how: Hashes) -> Key<'_> {
    Key {
        bytes,
        hash: hash(bytes, how),
    }
}

/// The key of a small number. Keys are prefix-free. Some are short, some have a long common prefix,
/// some have zeros inside, and some are long.
pub fn key_bytes(n: u16) -> Vec<u8> {
    let mut bytes = match n % 5 {
        0 => vec![1],
        1 => vec![b'a'; 40],
        2 => [vec![2; 7], vec![0xFF; 3]].concat(),
        3 => vec![b'z'; 700],
        _ => vec![4, 0, 0, 0, 0, 0],
    };
    // Append the number. Each byte is followed by a mark that says whether another byte follows, so
    // that no key is a prefix of another.
    let low = [(n / 5) as u8, 1, ((n / 5) >> 8) as u8, 0];
    let other = [low[2], 2, low[0], 0];
    bytes.extend_from_slice(if n.is_multiple_of(2) { &low } else { &other });
    bytes
}

/// Keys and values, in the order of a scan.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Puts a value.
pub fn put(index: &dyn Unique, key: Key<'_>, value: &[u8]) -> bool {
    index.update(&pin(), key, &mut |_, new| {
        new.extend_from_slice(value);
        Change::Put
    })
}

/// Removes a key.
pub fn remove(index: &dyn Unique, key: Key<'_>) -> bool {
    index.update(&pin(), key, &mut |_, _| Change::Remove)
}

/// All entries of a scan. Asserts that every batch except the last one has entries.
pub fn scan_all(
    scan: &mut dyn FnMut(Start<'_>, &mut Batch<'static>),
    start: Start<'_>,
    direction: Direction,
) -> Rows {
    let mut all = Vec::new();
    let mut batch = Batch::default();
    let mut resume = Vec::new();
    let mut first = true;
    loop {
        // Forward, `resume` is the first position that wasn't visited. Backward, it is the last one
        // that was.
        let from = match (first, direction) {
            (true, _) => start,
            (false, Direction::Forward) => Start::At(&resume),
            (false, Direction::Backward) => Start::Past(&resume),
        };
        scan(from, &mut batch);
        first = false;
        for i in 0..batch.len() {
            all.push((batch.key(i).to_vec(), batch.value(i).to_vec()));
        }
        if batch.done {
            return all;
        }
        assert!(!batch.is_empty(), "only the last batch may be empty");
        resume.clone_from(&batch.resume);
    }
}

/// All entries of an index from `start` on. Each batch is read under a guard of its own.
pub fn scan_unique(index: &dyn Unique, start: Start<'_>, direction: Direction) -> Rows {
    let mut scan = |start: Start<'_>, batch: &mut Batch<'static>| {
        let guard = pin();
        batch.lend_owned(|batch| index.scan(&guard, start, direction, batch));
    };
    scan_all(&mut scan, start, direction)
}

/// All entries of an index from `start` on. Each batch is read under a guard of its own.
pub fn scan_multi(index: &dyn Multi, start: Start<'_>, direction: Direction) -> Rows {
    let mut scan = |start: Start<'_>, batch: &mut Batch<'static>| {
        let guard = pin();
        batch.lend_owned(|batch| index.scan(&guard, start, direction, batch));
    };
    scan_all(&mut scan, start, direction)
}

/// These, in order.
pub fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}

/// Both directions.
pub const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

//! The obviously right index of each kind: one lock over the standard library's ordered map, keyed
//! by position.
//!
//! It is what the real structures are tested against. It keeps every promise of the traits, and
//! none of speed.

use larder_index::{
    Batch, Change, Container, Direction, Guard, Key, Multi, Objects, Start, Stats, Unique, Updater,
    Values,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Bytes of a hash in a position.
const HASH: usize = 6;

/// Entries that one batch takes at most. Small, so that scans over several batches are the common
/// case in tests.
const BATCH: usize = 16;

/// Writes the position of `key`: the key itself, or the top of its hash (big endian) and then the
/// key.
fn write_position(ordered: bool, key: Key<'_>, out: &mut Vec<u8>) {
    out.clear();
    if !ordered {
        out.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
    }
    out.extend_from_slice(key.bytes);
}

/// The range of positions that a scan from `start` may see.
fn range(start: Start<'_>, direction: Direction) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    // Forward, `start` is the lower bound. Backward, it is the upper one.
    let near = match start {
        Start::Edge => Bound::Unbounded,
        Start::At(p) => Bound::Included(p.to_vec()),
        Start::Past(p) => Bound::Excluded(p.to_vec()),
    };
    match direction {
        Direction::Forward => (near, Bound::Unbounded),
        Direction::Backward => (Bound::Unbounded, near),
    }
}

/// The position of entry `i` of a `Multi`: the hash before it, the key, and the number after it.
fn position_around(batch: &Batch, i: usize, out: &mut Vec<u8>) {
    let (before, after) = batch.around(i);
    out.clear();
    out.extend_from_slice(&before[before.len() - HASH..]);
    out.extend_from_slice(batch.key(i));
    out.extend_from_slice(&after[..size_of::<u64>()]);
}

/// Removes at most `limit` entries; answers whether none is left.
fn pop(map: &mut BTreeMap<Vec<u8>, Vec<u8>>, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
    for _ in 0..limit {
        match map.pop_first() {
            Some((_, value)) => f(&value),
            None => return true,
        }
    }
    map.is_empty()
}

/// About the bytes that the entries take.
fn held(map: &BTreeMap<Vec<u8>, Vec<u8>>) -> usize {
    map.iter().map(|(k, v)| k.len() + v.len() + 48).sum()
}

/// Fills `batch` from the map. `front` bytes of a position precede the key, `back` bytes follow it.
fn fill(
    map: &BTreeMap<Vec<u8>, Vec<u8>>,
    start: Start<'_>,
    direction: Direction,
    batch: &mut Batch,
    front: usize,
    back: usize,
) {
    batch.clear();
    let forward = direction == Direction::Forward;
    let mut entries = map.range::<Vec<u8>, _>(range(start, direction));
    let mut next = || {
        if forward {
            entries.next()
        } else {
            entries.next_back()
        }
    };
    // A batch has at most as many entries as were asked for.
    let most = match batch.want {
        0 => BATCH,
        want => want.min(BATCH),
    };
    while batch.len() < most {
        // The map has no more entries, so the scan is complete.
        let Some((position, value)) = next() else {
            batch.done = true;
            batch.resume.clear();
            return;
        };
        // A position is the hash, the key and the number. Which of them are there depends on the
        // index.
        let (hash, rest) = position.split_at(front);
        let (key, number) = rest.split_at(rest.len() - back);
        batch.push_between(hash, key, value, number);
        // Backward, a scan resumes past the last entry that was read.
        batch.resume.clear();
        batch.resume.extend_from_slice(position);
    }
    // Look ahead, so that a scan never ends with an empty batch.
    batch.done = next().is_none();
    if batch.done {
        batch.resume.clear();
    } else if forward {
        // Positions are prefix-free: nothing lies between a position and the same with a zero byte
        // after it.
        batch.resume.push(0);
    }
}

/// One lock over an ordered map, as a `Unique`.
#[derive(Debug)]
pub struct OracleUnique {
    ordered: bool,
    map: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl OracleUnique {
    /// An empty index, in key order or in hash order.
    pub fn new(ordered: bool) -> Self {
        OracleUnique {
            ordered,
            map: Mutex::new(BTreeMap::new()),
        }
    }

    fn at(&self, key: Key<'_>) -> Vec<u8> {
        let mut position = Vec::new();
        write_position(self.ordered, key, &mut position);
        position
    }
}

impl Unique for OracleUnique {
    fn is_ordered(&self) -> bool {
        self.ordered
    }

    fn get(&self, _guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        match self.map.lock().get(&self.at(key)) {
            Some(value) => {
                out.extend_from_slice(value);
                true
            }
            None => false,
        }
    }

    fn contains(&self, _guard: &Guard, key: Key<'_>) -> bool {
        self.map.lock().contains_key(&self.at(key))
    }

    fn update(&self, _guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        let position = self.at(key);
        // One lock for the whole map. So the closure may take any time, and sees what is current.
        let mut map = self.map.lock();
        // The closure may write the new value here.
        let mut scratch = Vec::new();
        let old = map.get(&position).map(Vec::as_slice);
        match f(old, &mut scratch).whole(old, &mut scratch) {
            Change::Keep => false,
            Change::Put | Change::Splice(_) => {
                map.insert(position, scratch);
                true
            }
            Change::Remove => map.remove(&position).is_some(),
        }
    }

    fn scan<'g>(
        &'g self,
        _guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        let skip = if self.ordered { 0 } else { HASH };
        // The lock is held for the whole batch, so a batch is of one instant.
        let map = self.map.lock();
        fill(&map, start, direction, batch, skip, 0);
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        write_position(self.ordered, key, out);
    }
}

/// One lock over an ordered map, as a `Multi`. A position is hash, key, and the number of the
/// arrival (8 bytes, big endian).
#[derive(Debug, Default)]
pub struct OracleMulti {
    map: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl OracleMulti {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The range of positions that belong to the key with this hash-and-key prefix.
fn entries_of<'m>(
    map: &'m BTreeMap<Vec<u8>, Vec<u8>>,
    prefix: &'m [u8],
) -> impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)> {
    // All positions of a key begin with the prefix, so they are adjacent.
    map.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded))
        .take_while(move |(position, _)| position.starts_with(prefix))
}

/// The locked objects of one key.
struct Locked<'m> {
    map: &'m mut BTreeMap<Vec<u8>, Vec<u8>>,
    prefix: Vec<u8>,
}

impl Objects for Locked<'_> {
    fn count(&self) -> usize {
        entries_of(self.map, &self.prefix).count()
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        for (ordinal, (_, value)) in entries_of(self.map, &self.prefix).enumerate() {
            if !f(ordinal, value) {
                return;
            }
        }
    }

    fn push(&mut self, value: &[u8]) {
        // The number after that of the last arrival, so that the objects of a key are in order of
        // arrival.
        let last = entries_of(self.map, &self.prefix).last();
        let next = last.map_or(0, |(position, _)| sequence(position) + 1);
        let mut position = self.prefix.clone();
        position.extend_from_slice(&next.to_be_bytes());
        self.map.insert(position, value.to_vec());
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        // First ask about all, and then remove: the map can't change while it is walked.
        let removed: Vec<Vec<u8>> = entries_of(self.map, &self.prefix)
            .filter(|(_, value)| f(value))
            .map(|(position, _)| position.clone())
            .collect();
        for position in &removed {
            self.map.remove(position);
        }
        removed.len()
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        // The object keeps its number, and so its place in the order.
        let position = entries_of(self.map, &self.prefix)
            .nth(ordinal)
            .map(|(p, _)| p.clone());
        if let Some(position) = position {
            self.map.insert(position, value.to_vec());
        }
    }
}

/// The number of the arrival at the end of a position.
fn sequence(position: &[u8]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&position[position.len() - 8..]);
    u64::from_be_bytes(number)
}

/// Hash and key: what all positions of a key begin with.
fn prefix_of(key: Key<'_>) -> Vec<u8> {
    let mut prefix = Vec::new();
    write_position(false, key, &mut prefix);
    prefix
}

impl Multi for OracleMulti {
    fn read(&self, _guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        let map = self.map.lock();
        let prefix = prefix_of(key);
        entries_of(&map, &prefix)
            .map(|(_, value)| values.push(value))
            .count()
    }

    fn contains(&self, _guard: &Guard, key: Key<'_>) -> bool {
        entries_of(&self.map.lock(), &prefix_of(key))
            .next()
            .is_some()
    }

    fn update(&self, _guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        let mut map = self.map.lock();
        f(&mut Locked {
            map: &mut map,
            prefix: prefix_of(key),
        });
    }

    fn scan<'g>(
        &'g self,
        _guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        let map = self.map.lock();
        fill(&map, start, direction, batch, HASH, 8);
    }

    fn first_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        write_position(false, key, out);
    }

    fn last_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        write_position(false, key, out);
        out.extend_from_slice(&[0xFF; 9]);
    }

    fn entry_position(&self, batch: &Batch, i: usize, out: &mut Vec<u8>) {
        position_around(batch, i, out);
    }
}

macro_rules! container {
    ($($index:ty),*) => {$(
        impl Container for $index {
            fn free_some(&self, _guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
                pop(&mut self.map.lock(), limit, f)
            }

            fn len(&self) -> usize {
                self.map.lock().len()
            }

            fn memory(&self) -> usize {
                size_of::<Self>() + held(&self.map.lock())
            }

            fn stats(&self) -> Stats {
                Stats::default()
            }
        }
    )*};
}

container!(OracleUnique, OracleMulti);

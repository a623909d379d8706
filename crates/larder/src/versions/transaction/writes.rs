//! The writes of a transaction in one table: undo records under keys, in the order of the table's
//! index.
//!
//! There are usually few of them, and nearly always one thread makes them. So they are in a B-tree
//! over positions under a mutex, which allocates nothing while it is empty.

use larder_index::sync::Mutex;
use larder_index::{
    Batch, Change, Container, Direction, Guard, Key, Start, Stats, Unique, Updater,
};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The most records in a batch of a scan.
const MOST: usize = 64;

/// The number of bytes of the hash in a position.
const HASH: usize = 6;

/// A position that is searched for.
type Position = SmallVec<[u8; 64]>;

/// Records under positions: the key, or the top of its hash and the key.
pub(super) struct Writes {
    ordered: bool,
    records: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Writes {
    /// No writes yet. Positions are keys if `ordered` is set, otherwise hashes and keys.
    pub(super) fn new(ordered: bool) -> Self {
        Writes {
            ordered,
            records: Mutex::default(),
        }
    }

    /// Calls `f` with the key and the record of each write.
    pub(super) fn each(&self, mut f: impl FnMut(&[u8], &[u8])) {
        for (position, record) in &*self.records.lock() {
            f(self.key(position), record);
        }
    }

    fn position_of(&self, key: Key<'_>) -> Position {
        let mut position = Position::new();
        if !self.ordered {
            position.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
        }
        position.extend_from_slice(key.bytes);
        position
    }

    /// The key in a position.
    fn key<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        if self.ordered {
            position
        } else {
            &position[HASH..]
        }
    }
}

impl Unique for Writes {
    fn is_ordered(&self) -> bool {
        self.ordered
    }

    fn get(&self, _: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let records = self.records.lock();
        // Most transactions read before they write.
        if records.is_empty() {
            return false;
        }
        let record = records.get(&self.position_of(key)[..]);
        record
            .inspect(|record| out.extend_from_slice(record))
            .is_some()
    }

    fn contains(&self, _: &Guard, key: Key<'_>) -> bool {
        let records = self.records.lock();
        !records.is_empty() && records.contains_key(&self.position_of(key)[..])
    }

    fn update(&self, _: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        // One lock for the whole update: the callback sees the record that it replaces.
        let mut records = self.records.lock();
        let position = self.position_of(key);
        let mut new = Vec::new();
        // The record that is there, if the transaction has written the key before.
        let old = records.get(&position[..]).map(|record| &record[..]);
        match f(old, &mut new).whole(old, &mut new) {
            Change::Keep => return false,
            Change::Remove => return records.remove(&position[..]).is_some(),
            Change::Put | Change::Splice(_) => {}
        }
        records.insert(position.into_vec(), new);
        true
    }

    fn scan<'g>(
        &'g self,
        _: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        batch.clear();
        let records = self.records.lock();
        let bound = match start {
            Start::Edge => Bound::Unbounded,
            Start::At(position) => Bound::Included(position),
            Start::Past(position) => Bound::Excluded(position),
        };
        // The scan stops when the batch is full. What is left begins at `resume`.
        let mut add = |(position, record): (&Vec<u8>, &Vec<u8>)| {
            if batch.len() == MOST {
                // Forward, the next batch begins at this entry. Backward, it begins before the last
                // entry of this batch.
                if direction == Direction::Forward {
                    batch.resume.clone_from(position);
                }
                return false;
            }
            batch.push(self.key(position), record);
            if direction == Direction::Backward {
                batch.resume.clone_from(position);
            }
            true
        };
        batch.done = match direction {
            Direction::Forward => {
                let range = records.range::<[u8], _>((bound, Bound::Unbounded));
                range.into_iter().all(&mut add)
            }
            Direction::Backward => {
                let range = records.range::<[u8], _>((Bound::Unbounded, bound));
                range.rev().all(&mut add)
            }
        };
        if batch.done {
            batch.resume.clear();
        }
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.position_of(key));
    }
}

impl Container for Writes {
    fn free_some(&self, _: &Guard, _: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let records = std::mem::take(&mut *self.records.lock());
        records.values().for_each(|record| f(record));
        true
    }

    fn len(&self) -> usize {
        self.records.lock().len()
    }

    fn memory(&self) -> usize {
        let records = self.records.lock();
        let bytes = |(position, record): (&Vec<u8>, &Vec<u8>)| position.len() + record.len();
        records.iter().map(bytes).sum::<usize>() + size_of::<Self>()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

//! The writes of a transaction in one table: undo records under keys, in the order of the table's
//! index.
//!
//! There are usually few of them, and nearly always one thread makes them. So they are in a B-tree
//! over positions under a mutex, which allocates nothing while it is empty.
//!
//! In a bounded table, a write may come with a lifetime. The operation announces it under the lock
//! of the view's writes, when it is certain that the write follows. A write without one forgets
//! the lifetime that an earlier write gave the key.

use super::undo;
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

/// A lifetime that a transaction gives an object.
#[derive(Clone, Copy)]
pub(crate) struct GivenLifetime {
    /// Milliseconds from the commit on; `None` if the object doesn't expire.
    pub(crate) ttl: Option<u64>,
    /// Whether the transaction has left the object itself as it was.
    pub(crate) is_alone: bool,
}

/// The write of a key.
struct OwnWrite {
    /// The undo record with the value that was written.
    record: Vec<u8>,
    /// The number of the last object of a bag's key, once one was appended.
    last: Option<u64>,
    /// `None` if the object has the lifetime that the table gives.
    lifetime: Option<GivenLifetime>,
}

#[derive(Default)]
struct Records {
    of: BTreeMap<Vec<u8>, OwnWrite>,
    /// The lifetime that comes with the next write.
    announced: Option<GivenLifetime>,
    /// The bytes of the positions and the records.
    bytes: usize,
}

impl Records {
    /// Takes all writes out.
    fn take(&mut self) -> BTreeMap<Vec<u8>, OwnWrite> {
        self.bytes = 0;
        std::mem::take(&mut self.of)
    }

    /// Forgets a write. Returns whether there was one.
    fn remove(&mut self, position: &[u8]) -> bool {
        let gone = self.of.remove(position);
        let bytes = gone
            .as_ref()
            .map(|write| position.len() + write.record.len());
        self.bytes -= bytes.unwrap_or(0);
        gone.is_some()
    }

    /// Records a write, with the lifetime that was announced.
    fn insert(&mut self, position: Position, record: Vec<u8>) {
        let mut lifetime = self.announced.take();
        if let (Some(given), Some(before)) = (&mut lifetime, self.of.get(&position[..])) {
            // A lifetime for an object that an earlier write has changed isn't the only change.
            given.is_alone &= before.lifetime.is_some_and(|before| before.is_alone);
        }
        let write = OwnWrite {
            record,
            last: None,
            lifetime,
        };
        let len = position.len();
        self.bytes += len + write.record.len();
        if let Some(before) = self.of.insert(position.into_vec(), write) {
            self.bytes -= len + before.record.len();
        }
    }
}

/// Writes under positions: the key, or the top of its hash and the key.
pub(crate) struct Writes {
    ordered: bool,
    records: Mutex<Records>,
}

impl Writes {
    /// No writes yet. Positions are keys if `ordered` is set, otherwise hashes and keys.
    pub(crate) fn new(ordered: bool) -> Self {
        Writes {
            ordered,
            records: Mutex::default(),
        }
    }

    /// Takes all writes out, and returns their records.
    pub(super) fn take(&self) -> impl ExactSizeIterator<Item = Vec<u8>> + Send {
        let written = self.records.lock().take();
        written.into_values().map(|write| write.record)
    }

    /// Calls `f` with the key and the record of each write, and the lifetime that it gives.
    pub(crate) fn each(&self, mut f: impl FnMut(&[u8], &[u8], Option<GivenLifetime>)) {
        for (position, write) in &self.records.lock().of {
            f(self.key(position), &write.record, write.lifetime);
        }
    }

    /// Adds an object behind those that were written to a bag's key, and returns its number. `None`
    /// if there are none.
    pub(super) fn append(&self, key: Key<'_>, value: &[u8]) -> Option<u64> {
        let mut records = self.records.lock();
        let Records { of, bytes, .. } = &mut *records;
        let write = of.get_mut(&self.position_of(key)[..])?;
        let last = write.last.or_else(|| undo::last_number(&write.record))?;
        let before = write.record.len();
        undo::append_object(last + 1, value, &mut write.record);
        *bytes += write.record.len() - before;
        write.last = Some(last + 1);
        write.last
    }

    /// Announces the lifetime that comes with the next write.
    pub(crate) fn announce(&self, lifetime: GivenLifetime) {
        self.records.lock().announced = Some(lifetime);
    }

    /// The lifetime that the write of a key gives; `None` if the key wasn't written.
    pub(crate) fn lifetime(&self, key: Key<'_>) -> Option<Option<GivenLifetime>> {
        let records = self.records.lock();
        let write = records.of.get(&self.position_of(key)[..]);
        write.map(|write| write.lifetime)
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
        let written = &self.records.lock().of;
        // Most transactions read before they write.
        if written.is_empty() {
            return false;
        }
        let write = written.get(&self.position_of(key)[..]);
        write
            .inspect(|write| out.extend_from_slice(&write.record))
            .is_some()
    }

    fn contains(&self, _: &Guard, key: Key<'_>) -> bool {
        let written = &self.records.lock().of;
        !written.is_empty() && written.contains_key(&self.position_of(key)[..])
    }

    fn update(&self, _: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        // One lock for the whole update: the callback sees the record that it replaces.
        let mut records = self.records.lock();
        let position = self.position_of(key);
        let mut new = Vec::new();
        // The record that is there, if the transaction has written the key before.
        let old = records.of.get(&position[..]);
        let old = old.map(|write| &write.record[..]);
        match f(old, &mut new).whole(old, &mut new) {
            Change::Keep => return false,
            Change::Remove => return records.remove(&position),
            Change::Put | Change::Splice(_) => {}
        }
        records.insert(position, new);
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
        let written = &self.records.lock().of;
        let bound = match start {
            Start::Edge => Bound::Unbounded,
            Start::At(position) => Bound::Included(position),
            Start::Past(position) => Bound::Excluded(position),
        };
        // The scan stops when the batch is full. What is left begins at `resume`.
        let mut add = |(position, write): (&Vec<u8>, &OwnWrite)| {
            if batch.len() == MOST {
                // Forward, the next batch begins at this entry. Backward, it begins before the last
                // entry of this batch.
                if direction == Direction::Forward {
                    batch.resume.clone_from(position);
                }
                return false;
            }
            batch.push(self.key(position), &write.record);
            if direction == Direction::Backward {
                batch.resume.clone_from(position);
            }
            true
        };
        batch.done = match direction {
            Direction::Forward => {
                let range = written.range::<[u8], _>((bound, Bound::Unbounded));
                range.into_iter().all(&mut add)
            }
            Direction::Backward => {
                let range = written.range::<[u8], _>((Bound::Unbounded, bound));
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
        let written = self.records.lock().take();
        written.values().for_each(|write| f(&write.record));
        true
    }

    fn len(&self) -> usize {
        self.records.lock().of.len()
    }

    fn memory(&self) -> usize {
        self.records.lock().bytes + size_of::<Self>()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

//! The writes of a transaction in one table: undo records under keys, in the order of the table's
//! index.
//!
//! There are usually few of them, and nearly always one thread makes them. So they are in a B-tree
//! under a mutex, which allocates nothing while it is empty. The B-tree compares words first
//! (`sorted_key`), and has short keys and records in its nodes.
//!
//! In a bounded table, a write may come with a lifetime. The operation announces it under the lock
//! of the view's writes, when it is certain that the write follows. A write without one forgets
//! the lifetime that an earlier write gave the key.

use super::gaps::{Gap, Gaps};
use super::sorted_key::SortedKey;
use super::undo::{self, Override, Record};
use larder_index::sync::{Mutex, MutexGuard};
use larder_index::{
    Batch, Container, Direction, Guard, Key, Lookup, Start, Stats, Unique, Updater, SHORT_VALUE,
};
use std::collections::btree_map::Entry;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicIsize, Ordering};

/// The most records in a batch of a scan.
const MOST: usize = 64;

/// The number of bytes of the hash in a position.
const HASH: usize = 6;

/// The number of the version of an own write.
const OWN: u64 = u64::MAX;

/// A lifetime that a transaction gives an object.
#[derive(Clone, Copy)]
pub(crate) struct GivenLifetime {
    /// Milliseconds from the commit on; `None` if the object doesn't expire.
    pub(crate) ttl: Option<u64>,
    /// Whether the transaction has left the object itself as it was.
    pub(crate) is_alone: bool,
}

/// The write of a key.
pub(super) struct OwnWrite {
    /// The undo record with the value that was written.
    pub(super) record: Record,
    /// The hash of the key, also in an ordered_set.
    pub(super) hash: u64,
    /// One more than the number of the last object of a bag's key, once one was appended; 0 before.
    next: u64,
    /// Whether there was an object under the key before the first write.
    pub(super) replaces: bool,
    /// `None` if the object has the lifetime that the table gives.
    lifetime: Option<Box<GivenLifetime>>,
}

impl OwnWrite {
    /// The value that was written.
    pub(super) fn value(&self) -> Override<'_> {
        undo::as_of(&self.record, OWN).unwrap_or(Override::Absent)
    }

    pub(super) fn lifetime(&self) -> Option<GivenLifetime> {
        self.lifetime.as_deref().copied()
    }
}

/// The writes, by key.
#[derive(Default)]
pub(super) struct Records {
    of: BTreeMap<SortedKey, OwnWrite>,
    /// The lifetime that comes with the next write.
    announced: Option<GivenLifetime>,
    /// Where the view has no entries.
    gaps: Gaps,
    /// The number of writes.
    count: u64,
}

impl Records {
    /// Each key with its write, in the order of the table's index.
    pub(super) fn each(&self) -> impl Iterator<Item = (&[u8], &OwnWrite)> {
        self.of.iter().map(|(key, write)| (key.bytes(), write))
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// Counts a write of a key. If it `adds` an object that the view didn't have, the gap in which
    /// the key lies is forgotten.
    fn note_write(&mut self, key: &SortedKey, adds: bool, ordered: bool) {
        self.count += 1;
        if adds {
            self.gaps.forget(key, ordered);
        }
    }

    /// Records a write, with the lifetime that was announced. `replaces` is as in `OwnWrite`, if
    /// this is the first write of the key. Returns by how many bytes the writes have grown.
    fn insert(&mut self, key: SortedKey, hash: u64, record: Record, replaces: bool) -> isize {
        let mut lifetime = self.announced.take();
        let (key_len, len) = (key.bytes().len(), record.len());
        match self.of.entry(key) {
            Entry::Vacant(place) => {
                place.insert(OwnWrite {
                    record,
                    hash,
                    next: 0,
                    replaces,
                    lifetime: lifetime.map(Box::new),
                });
                (key_len + len) as isize
            }
            Entry::Occupied(mut place) => {
                let before = place.get_mut();
                if let Some(given) = &mut lifetime {
                    // A lifetime for an object that an earlier write has changed isn't the only
                    // change.
                    given.is_alone &= before.lifetime().is_some_and(|before| before.is_alone);
                }
                let more = len as isize - before.record.len() as isize;
                (before.record, before.next) = (record, 0);
                before.lifetime = lifetime.map(Box::new);
                more
            }
        }
    }
}

/// Writes under keys, in the order of their positions: by the key, or by the top of its hash and
/// the key.
pub(crate) struct Writes {
    ordered: bool,
    records: Mutex<Records>,
    /// The bytes of the keys and the records. Apart from `records`, since a commit that holds the
    /// lock of those asks for it.
    bytes: AtomicIsize,
}

impl Writes {
    /// No writes yet. The order is that of the keys if `ordered` is set, otherwise that of hashes
    /// and keys.
    pub(crate) fn new(ordered: bool) -> Self {
        Writes {
            ordered,
            records: Mutex::default(),
            bytes: AtomicIsize::new(0),
        }
    }

    /// Takes all writes out.
    pub(super) fn take(&self) -> impl ExactSizeIterator<Item = OwnWrite> + Send {
        let written = std::mem::take(&mut self.records.lock().of);
        self.add_bytes(-self.bytes.load(Ordering::Relaxed));
        written.into_values()
    }

    fn add_bytes(&self, more: isize) {
        // Ordering: Relaxed, as all of `bytes`; a number that is only reported.
        self.bytes.fetch_add(more, Ordering::Relaxed);
    }

    /// The writes. Others that read or write them wait until the result is dropped. A commit holds
    /// it to its end, so nothing that is done for a commit may ask for the writes.
    pub(super) fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock()
    }

    /// Records the write of a value to a key with this hash, which an ordered index doesn't use.
    /// `replaces` says whether there was an object under the key before, if this is the first write
    /// of the key, and `adds` whether there is one now that the view didn't have.
    pub(super) fn put(
        &self,
        key: Key<'_>,
        hash: u64,
        value: Override<'_>,
        (replaces, adds): (bool, bool),
    ) {
        let (key, record) = (self.sorted(key), undo::record(OWN, value));
        let mut records = self.records.lock();
        records.note_write(&key, adds, self.ordered);
        let more = records.insert(key, hash, record, replaces);
        self.add_bytes(more);
    }

    /// The gap in which a scan begins, if one is known, and the number of writes.
    pub(super) fn gap_at(&self, start: Start<'_>, direction: Direction) -> (Option<Gap>, u64) {
        let records = self.records.lock();
        (records.gaps.at(start, direction), records.count)
    }

    /// Called after a scan of the view, which has found nothing between two positions, of which the
    /// second one is excluded. `count` is the number of writes before the scan. If there have been
    /// others since, this does nothing.
    pub(super) fn add_gap(&self, gap: Gap, count: u64) {
        let low = self.sorted_at(&gap.from);
        let high = gap.to.as_ref().map(|to| self.sorted_at(to));
        let mut records = self.records.lock();
        if records.count == count {
            records.gaps.add(gap, low, high);
        }
    }

    /// By how much the writes of the next keys change the number of objects: of those at or above
    /// one position and below another, at most `most`. Also returns the first key that is left.
    pub(super) fn growth(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        most: usize,
    ) -> (i64, Option<Vec<u8>>) {
        let start = self.bound(Bound::Included(from));
        let end = self.bound(to.map_or(Bound::Unbounded, Bound::Excluded));
        let records = self.records.lock();
        let mut growth = 0;
        for (i, (key, write)) in range(&records.of, start, end).enumerate() {
            // The lock isn't held for more keys at a time. The next call goes on from here.
            if i == most {
                return (growth, Some(key.bytes().to_vec()));
            }
            // An insert of an absent key adds an object, and a removal of a present one takes one
            // away.
            let is_there = write.value() != Override::Absent;
            growth += i64::from(is_there) - i64::from(write.replaces);
        }
        (growth, None)
    }

    /// Like `Unique::get_into`, with the value that was written; `None` if there is none.
    #[inline]
    pub(super) fn value_into(
        &self,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Option<Lookup> {
        self.with(key, |write| match write?.value() {
            Override::Absent => Some(Lookup::Absent),
            Override::Value(value) => Some(Lookup::copied(value, out, long)),
        })
    }

    /// Calls `f` with the write of a key, if there is one.
    #[inline]
    pub(super) fn with<R>(&self, key: Key<'_>, f: impl FnOnce(Option<&OwnWrite>) -> R) -> R {
        let records = self.records.lock();
        // Most transactions read before they write.
        if records.of.is_empty() {
            return f(None);
        }
        f(records.of.get(&self.sorted(key)))
    }

    /// Adds an object after those that were written to a bag's key, and returns its number. `None`
    /// if there are none.
    pub(super) fn append(&self, key: Key<'_>, value: &[u8]) -> Option<u64> {
        let mut records = self.records.lock();
        let sorted = self.sorted(key);
        records.note_write(&sorted, true, self.ordered);
        let write = records.of.get_mut(&sorted)?;
        let number = match write.next {
            0 => undo::last_number(&write.record)? + 1,
            next => next,
        };
        let before = write.record.len();
        undo::append_object(number, value, &mut write.record);
        self.add_bytes((write.record.len() - before) as isize);
        write.next = number + 1;
        Some(number)
    }

    /// Announces the lifetime that comes with the next write.
    pub(crate) fn announce(&self, lifetime: GivenLifetime) {
        self.records.lock().announced = Some(lifetime);
    }

    /// The lifetime that the write of a key gives; `None` if the key wasn't written.
    pub(crate) fn lifetime(&self, key: Key<'_>) -> Option<Option<GivenLifetime>> {
        self.with(key, |write| write.map(OwnWrite::lifetime))
    }

    #[inline]
    fn sorted(&self, key: Key<'_>) -> SortedKey {
        match self.ordered {
            true => SortedKey::in_order(key.bytes),
            false => SortedKey::of_hash(key.hash >> (64 - 8 * HASH), key.bytes),
        }
    }

    /// The key at a position. A position may also be the beginning of others.
    fn sorted_at(&self, position: &[u8]) -> SortedKey {
        if self.ordered {
            return SortedKey::in_order(position);
        }
        let (hash, key) = position.split_at(HASH.min(position.len()));
        let mut bytes = [0; 8];
        bytes[8 - HASH..][..hash.len()].copy_from_slice(hash);
        SortedKey::of_hash(u64::from_be_bytes(bytes), key)
    }

    /// Writes the position of a key to `out`.
    fn set_position(&self, key: &[u8], hash: u64, out: &mut Vec<u8>) {
        out.clear();
        if !self.ordered {
            out.extend_from_slice(&hash.to_be_bytes()[..HASH]);
        }
        out.extend_from_slice(key);
    }

    /// A bound of the writes at the position of another bound.
    fn bound(&self, bound: Bound<&[u8]>) -> Bound<SortedKey> {
        bound.map(|position| self.sorted_at(position))
    }
}

impl Unique for Writes {
    fn is_ordered(&self) -> bool {
        self.ordered
    }

    fn get(&self, _: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        self.with(key, |write| {
            write
                .inspect(|write| out.extend_from_slice(&write.record))
                .is_some()
        })
    }

    fn contains(&self, _: &Guard, key: Key<'_>) -> bool {
        self.with(key, |write| write.is_some())
    }

    /// Never called: a transaction writes by `put`.
    fn update(&self, _: &Guard, _: Key<'_>, _: &mut Updater<'_>) -> bool {
        debug_assert!(false, "own writes are updated");
        false
    }

    fn scan<'g>(
        &'g self,
        _: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        batch.clear();
        let start = self.bound(match start {
            Start::Edge => Bound::Unbounded,
            Start::At(position) => Bound::Included(position),
            Start::Past(position) => Bound::Excluded(position),
        });
        // The far end of the scan.
        let until = self.bound(batch.until.as_ref().map(|until| &until[..]));
        let most = match batch.want {
            0 => MOST,
            want => want.min(MOST),
        };
        let written = &self.records.lock().of;
        // The scan stops when the batch is full. What is left begins at `resume`.
        let mut add = |(key, write): (&SortedKey, &OwnWrite)| {
            let is_full = batch.len() == most;
            // Forward, the next batch begins at the first entry that is left. Backward, it begins
            // before the last entry of this batch.
            if is_full == (direction == Direction::Forward) {
                self.set_position(key.bytes(), write.hash, &mut batch.resume);
            }
            if !is_full {
                batch.push(key.bytes(), &write.record);
            }
            !is_full
        };
        batch.done = match direction {
            Direction::Forward => range(written, start, until).all(&mut add),
            Direction::Backward => range(written, until, start).rev().all(&mut add),
        };
        if batch.done {
            batch.resume.clear();
        }
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.set_position(key.bytes, key.hash, out);
    }
}

/// The writes between two bounds; none if these are the wrong way round.
fn range(
    written: &BTreeMap<SortedKey, OwnWrite>,
    low: Bound<SortedKey>,
    high: Bound<SortedKey>,
) -> impl DoubleEndedIterator<Item = (&SortedKey, &OwnWrite)> {
    let is_empty = match (&low, &high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
    };
    let range = (!is_empty).then(|| written.range((low, high)));
    range.into_iter().flatten()
}

impl Container for Writes {
    fn free_some(&self, _: &Guard, _: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        self.take().for_each(|write| f(&write.record));
        true
    }

    fn len(&self) -> usize {
        self.records.lock().len()
    }

    fn memory(&self) -> usize {
        // It may be less than 0 for a moment, while another thread takes the writes out.
        let bytes = self.bytes.load(Ordering::Relaxed);
        usize::try_from(bytes).unwrap_or(0) + size_of::<Self>()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;
    use larder_term::hash::Seed;

    /// The keys of all batches of a scan, and the number of the batches.
    fn scan(
        writes: &Writes,
        start: Start<'_>,
        direction: Direction,
        mut batch: Batch<'static>,
    ) -> (Vec<Vec<u8>>, usize) {
        let guard = larder_index::pin();
        let (mut keys, mut count) = (Vec::new(), 1);
        batch.lend_owned(|batch| writes.scan(&guard, start, direction, batch));
        loop {
            keys.extend((0..batch.len()).map(|i| batch.key(i).to_vec()));
            if batch.done {
                return (keys, count);
            }
            let resume = std::mem::take(&mut batch.resume);
            let start = Start::resume(&resume, direction);
            batch.lend_owned(|batch| writes.scan(&guard, start, direction, batch));
            count += 1;
        }
    }

    #[test]
    fn scans_are_in_order_and_end_at_their_bound() {
        let seed = Seed::random();
        for ordered in [true, false] {
            let writes = Writes::new(ordered);
            let position = |bytes: &[u8]| {
                let mut out = Vec::new();
                writes.position(keys::with_hash(&seed, ordered, bytes), &mut out);
                out
            };
            // Keys of several lengths, some of which begin alike.
            let of = |i: usize| format!("{i:0width$}", width = 2 + i % 41).into_bytes();
            let mut keys: Vec<Vec<u8>> = (0..300).map(of).collect();
            for bytes in &keys {
                let (key, hash) = (keys::with_hash(&seed, ordered, bytes), seed.hash(bytes));
                writes.put(key, hash, Override::Value(bytes), (false, true));
            }
            keys.sort_by_key(|bytes| position(bytes));
            let reversed: Vec<Vec<u8>> = keys.iter().rev().cloned().collect();
            for (from, to) in [(0, 299), (7, 9), (40, 250), (13, 13)] {
                let until = |i: usize| Bound::Included(position(&keys[i]));
                let batch = |i| Batch::default().with_until(until(i));
                let at = |i: usize| position(&keys[i]);
                let forward = scan(&writes, Start::At(&at(from)), Direction::Forward, batch(to));
                assert_eq!(forward.0, keys[from..=to]);
                let backward = scan(
                    &writes,
                    Start::At(&at(to)),
                    Direction::Backward,
                    batch(from),
                );
                assert_eq!(backward.0, reversed[299 - to..=299 - from]);
                assert_eq!(backward.1, (to - from) / MOST + 1);
            }
            let few = Batch::default().with_want(10);
            let all = scan(&writes, Start::Edge, Direction::Forward, few);
            assert_eq!((all.0, all.1), (keys.clone(), 30));
            let beyond = Batch::default().with_until(Bound::Excluded(position(&keys[5])));
            let past = position(&keys[5]);
            let none = scan(&writes, Start::Past(&past), Direction::Forward, beyond);
            assert_eq!(none, (Vec::new(), 1));
        }
    }

    /// What changes an object that is there, or adds one elsewhere, leaves a gap.
    #[test]
    fn a_gap_is_forgotten_if_an_object_is_added_there() {
        let seed = Seed::random();
        let writes = Writes::new(true);
        let gap = || Gap {
            from: b"f".to_vec(),
            to: Some(b"m".to_vec()),
        };
        let put = |bytes: &[u8], adds: bool| {
            let (key, hash) = (keys::with_hash(&seed, true, bytes), seed.hash(bytes));
            writes.put(key, hash, Override::Value(b"value"), (!adds, adds));
            writes.gap_at(Start::At(b"g"), Direction::Forward).0
        };
        writes.add_gap(gap(), 0);
        assert_eq!(put(b"g", false), Some(gap()));
        assert_eq!(put(b"n", true), Some(gap()));
        assert_eq!(put(b"e", true), Some(gap()));
        assert_eq!(put(b"l", true), None);
    }
}

//! The trait of an index with any number of values per key.

use super::{Batch, Container, Direction, Key, Seen, Start, StepEntry, Stepped};
use crate::scratch::with_scratch;
use crate::values::Values;
use crossbeam_epoch::Guard;

/// A hash of values, by which a `Multi` finds equal values: values that its user considers the same
/// have the same hash.
pub type ObjectHash = fn(&[u8]) -> u64;

/// The objects under one key of a `Multi`, in the order of insertion. The key is locked against
/// other writers.
///
/// The methods with an argument `same` look for objects that are the same as `value`. `same`
/// decides that. It must be `false` for all objects whose [`ObjectHash`] differs from that of
/// `value`.
pub trait Objects {
    /// The number of objects.
    fn count(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.count() == 0
    }
    /// Calls `f` with the ordinal and the value of each object, in the order of insertion, until it
    /// returns `false`.
    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool);
    /// Calls `f` with the number and the value of each object, in the order of insertion. Numbers
    /// ascend. The number of an object never changes.
    fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
        self.each(&mut |ordinal, value| {
            f(ordinal as u64, value);
            true
        });
    }
    /// Announces a change. From here on, a reader of the key waits until the change is made, or
    /// sees the state before it.
    fn begin_change(&mut self) {}
    /// Returns whether there is an object that is the same as `value`.
    fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let _ = value;
        let mut found = false;
        // An index without hashes of its values looks at each.
        self.each(&mut |_, other| {
            found = same(other);
            !found
        });
        found
    }
    /// Adds an object at the end.
    fn push(&mut self, value: &[u8]);
    /// Removes the objects for which `f` returns `true`. Returns their number.
    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize;
    /// Removes all objects, and calls `f` with each, in the order of insertion. Returns their
    /// number.
    fn remove_all(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        self.remove_if(&mut |value| {
            f(value);
            true
        })
    }
    /// Removes all objects that are the same as `value`. Returns their number. `same` is called
    /// once with each object that is removed, and possibly with others.
    fn remove_same(&mut self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        let _ = value;
        self.remove_if(same)
    }
    /// Replaces the value of the object with this ordinal (that of `each`). Several replacements in
    /// ascending order take one pass.
    fn replace(&mut self, ordinal: usize, value: &[u8]);
    /// Replaces the values of several objects. Each change has the ordinal of an object, in
    /// ascending order, its old value and its new one.
    fn replace_each(&mut self, changes: &[(usize, &[u8], &[u8])]) {
        for &(ordinal, _, value) in changes {
            self.replace(ordinal, value);
        }
    }
}

/// The closure of [`Multi::update_marked`]. It is called with the objects under the key, and with
/// the mark of their entry, which it may change.
pub type MarkedObjectsUpdater<'f> = dyn FnMut(&mut dyn Objects, &mut u64) + 'f;

/// An index with any number of values per key, in the order of insertion. In a scan, the entries of
/// a key are adjacent, in that order. The key of an entry in a `Batch` is the key alone.
/// Consistency is that of `Unique`. `get` sees all values of a key at one instant.
pub trait Multi: Container {
    /// Appends all values under `key` to `values`, in the order of insertion, as of one instant.
    /// Returns their number. Takes no lock if the key has few values.
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize;

    /// Like `read`, but calls `f` with each value.
    fn get(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&[u8])) -> usize {
        let mut values = Values::default();
        self.read(guard, key, &mut values);
        values.iter().for_each(f);
        values.len()
    }

    /// Returns whether there is a value under `key`.
    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool;

    /// See `Unique::prefetch`.
    fn prefetch(&self, _guard: &Guard, _keys: &[Key<'_>]) {}

    /// Calls `f` once with the objects under `key`, which is locked. All changes that `f` makes
    /// become visible to `get` at one instant. `f` must not call this or any other `Multi`, since
    /// indexes share locks.
    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects));

    /// Like `update`, with the mark of the entry that has the objects (see
    /// [`Unique::put_marked`](super::Unique::put_marked)).
    fn update_marked(&self, guard: &Guard, key: Key<'_>, f: &mut MarkedObjectsUpdater<'_>) {
        self.update(guard, key, &mut |objects| f(objects, &mut 0));
    }

    /// Like `update`, but `f` is only called if there are objects under `key`. If the index can
    /// tell without a lock that there are none, it takes none.
    fn update_present(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        self.update(guard, key, &mut |objects| {
            if !objects.is_empty() {
                f(objects);
            }
        });
    }

    /// Like `update`, but `f` is only called if there are no objects under `key`. If the index can
    /// tell without a lock that there are some, it takes none.
    fn update_absent(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        self.update(guard, key, &mut |objects| {
            if objects.is_empty() {
                f(objects);
            }
        });
    }

    /// Like `Unique::scan`, for single entries: it may see only a part of the changes of an update.
    /// `Batch::resume` may be between two values of one key.
    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    );

    /// Fills `batch`, which is cleared first, with the entries of one key, as of one instant, and
    /// returns `true`. If the key may have many, or the index can't tell, returns `false`, and
    /// leaves the batch empty.
    fn scan_key<'g>(&'g self, guard: &'g Guard, key: Key<'_>, batch: &mut Batch<'g>) -> bool {
        let _ = (guard, key);
        batch.clear();
        false
    }

    /// Fills `batch`, which is cleared first, with the first entry of the next key after `key`.
    /// `key` need not be in the index. Without a `key`, it is the first entry of all. Otherwise
    /// like `Unique::step`, forward.
    fn step<'g>(&'g self, guard: &'g Guard, key: Option<Key<'_>>, batch: &mut Batch<'g>) -> bool {
        step_keys_by_scan(self, guard, key, batch)
    }

    /// Like `Unique::try_step`, to the first entry of the next key.
    fn try_step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        let _ = (guard, key, entry);
        None
    }

    /// Like `Unique::is_unchanged`, but only for the keys of a batch: their objects may have
    /// changed.
    fn is_unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        let _ = (guard, key, seen);
        false
    }

    /// Like `Unique::remove_scanned`, for all values of some keys. Also returns `false`, and
    /// changes nothing, if the batch has values of a chosen key that are not chosen.
    fn remove_scanned(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        let _ = (guard, key, batch, chosen, predicate);
        false
    }

    /// Writes a position to `out` at which (`Start::At`, forward) a scan finds the first value of
    /// `key`.
    fn first_position(&self, key: Key<'_>, out: &mut Vec<u8>);

    /// Writes a position to `out` past which (`Start::Past`, forward) a scan finds the first value
    /// of the next key.
    fn last_position(&self, key: Key<'_>, out: &mut Vec<u8>);

    /// The position of entry `i` of a batch that this index filled.
    fn entry_position(&self, batch: &Batch, i: usize, out: &mut Vec<u8>);

    /// Appends an entry to a batch as a scan does: an object with its number
    /// ([`Objects::each_numbered`]).
    fn push_entry(&self, batch: &mut Batch, key: &[u8], value: &[u8], number: u64) {
        let _ = number;
        batch.push(key, value);
    }

    /// The number of entry `i` of a batch that this index filled.
    fn entry_number(&self, batch: &Batch, i: usize) -> u64 {
        let _ = (batch, i);
        0
    }

    /// The part of a position that is common to all positions of its key. It equals the position of
    /// the key in a [`Unique`](super::Unique) of the same order.
    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }

    /// Converts a position to bytes that compare in the order of the scan.
    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }
}

/// Implements [`Multi::step`] by a scan.
fn step_keys_by_scan<'g, M: Multi + ?Sized>(
    index: &'g M,
    guard: &'g Guard,
    key: Option<Key<'_>>,
    batch: &mut Batch<'g>,
) -> bool {
    // One value after the key is enough. The caller's limit is restored below.
    let want = std::mem::replace(&mut batch.want, 1);
    let found = key.is_some_and(|key| index.contains(guard, key));
    match key {
        Some(key) => with_scratch(|position| {
            // Start after all values of the key, however many there are.
            index.last_position(key, position);
            index.scan(guard, Start::Past(position), Direction::Forward, batch);
        }),
        None => {
            index.scan(guard, Start::Edge, Direction::Forward, batch);
            batch.seen = None;
        }
    }
    batch.want = want;
    found
}

//! The traits of indexes, and the types of their arguments and results.
//!
//! Keys and values are bytes. An index knows nothing of terms. The keys of an index must be
//! **prefix-free**: no key is a proper prefix of another one. For a hash-ordered index, the caller
//! computes the 64-bit hash of each key, with a seed.
//!
//! ```text
//!  Unique   at most one value per key             HashOrder, KeyOrder
//!  Multi    any number, in order of insertion    Bag
//!
//!  scan     start ─→ Batch { entries, resume } ─→ scan from resume ─→ … ─→ Batch { done }
//! ```
//!
//! Invariants that every index keeps:
//! 1. Every operation except `free_some` takes effect at one instant between its call and its
//!    return. A scan does so once for each batch.
//! 2. The batches of a scan contain each entry exactly once that is in the index during the whole
//!    scan.
//! 3. A closure that is passed to a write is called once, under the lock of the entry. It must be
//!    short, and must not call the index.
//! 4. The guard that is passed to an operation is pinned throughout, so memory that was read stays
//!    allocated.
//!
//! An index need not implement the methods that have a default. A default does the same by means of
//! other methods, with more work, or is a hint that does nothing.

use crate::ranked::Ranked;
use crate::scratch::with_scratch;
use crate::values::Values;
use crossbeam_epoch::Guard;
use std::ops::Bound;

/// A key as bytes, with its hash. Only hash-ordered indexes read `hash`. It must be a function of
/// `bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key's bytes.
    pub bytes: &'a [u8],
    /// A seeded hash of `bytes`.
    pub hash: u64,
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending positions.
    Forward,
    /// Descending positions.
    Backward,
}

/// The start of a scan. Positions are opaque byte strings that compare in the order of the scan. In
/// key order a position is the key itself. In hash order it is the top 48 bits of the hash (6
/// bytes, big endian), followed by the key. Use `position` to make one, and don't rely on this
/// format.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// At the first entry in the direction of the scan.
    Edge,
    /// At the position. An entry at the position is included.
    At(&'a [u8]),
    /// After the position: strictly behind it in a forward scan, strictly before it in a backward
    /// scan.
    Past(&'a [u8]),
}

/// The result of the closure of `Unique::update`: what to do with the entry.
#[derive(Clone, Copy, Debug)]
pub enum Change<'v> {
    /// Leave the entry as it is. If it is absent, it stays absent.
    Keep,
    /// Store this value, which outlives the call.
    Put(&'v [u8]),
    /// Store the content of the scratch buffer.
    PutScratch,
    /// Remove the entry.
    Remove,
}

/// Where a batch was read, for [`Unique::unchanged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number of the index, which is unique in this process.
    pub(crate) index: u64,
    /// The version of the leaf.
    pub(crate) version: u64,
}

/// A consistent copy of some neighbouring entries, in scan order, taken at one instant from one
/// leaf. It can be reused: `clear` keeps its memory. The key and the value of an entry are adjacent
/// in one buffer.
#[derive(Debug)]
pub struct Batch {
    /// The keys and values of all entries.
    pub bytes: Vec<u8>,
    /// For each entry: the start of the key, the start of the value, and the end of the value in
    /// `bytes`.
    pub entries: Vec<(usize, usize, usize)>,
    /// The position from which a scan continues after this batch, with `Start::At` (forward) or
    /// `Start::Past` (backward). Empty at the end of the scan.
    pub resume: Vec<u8>,
    /// Whether there are no more entries after this batch.
    pub done: bool,
    /// A hint of the caller: only this number of entries is needed (0: all). An index may return
    /// more, but must not return none because of it.
    pub want: usize,
    /// A hint of the caller: the entries may be in any order, since the caller uses all batches of
    /// the scan. An index may ignore it.
    pub any_order: bool,
    /// A hint of the caller: entries beyond this key, in the direction of the scan, are not needed.
    /// A scan that omits them sets `done` when it reaches the key. An index may ignore it.
    pub until: Bound<Vec<u8>>,
    /// A hint of the caller: of several values under a key, only the first is needed. An index may
    /// ignore it.
    pub firsts: bool,
    /// Whether the entries are in no particular order. If so, they are all entries between the
    /// start of the batch and `resume` (the end, if it is `done`).
    pub unordered: bool,
    /// Where the entries were read, if the index can tell whether they have changed since.
    pub seen: Option<Seen>,
    /// A buffer for the index to sort entries in. Callers don't use it.
    pub order: Vec<u64>,
    /// A buffer for an index of lists, which makes entries of it. Callers don't use it.
    pub raw: Vec<(usize, usize, usize)>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            bytes: Vec::new(),
            entries: Vec::new(),
            resume: Vec::new(),
            done: false,
            want: 0,
            any_order: false,
            until: Bound::Unbounded,
            firsts: false,
            unordered: false,
            seen: None,
            order: Vec::new(),
            raw: Vec::new(),
        }
    }
}

impl Batch {
    /// Empties the batch. Its memory and the hints of the caller are kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.resume.clear();
        self.done = false;
        self.unordered = false;
        self.seen = None;
    }
    /// The maximum number of entries that the caller needs.
    pub(crate) fn limit(&self) -> usize {
        if self.want == 0 {
            usize::MAX
        } else {
            self.want
        }
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The key of entry `i`.
    #[inline(always)]
    pub fn key(&self, i: usize) -> &[u8] {
        let (k, v, _) = self.entries[i];
        &self.bytes[k..v]
    }
    /// The value of entry `i`.
    #[inline]
    pub fn value(&self, i: usize) -> &[u8] {
        let (_, v, end) = self.entries[i];
        &self.bytes[v..end]
    }
    /// The key and the value of entry `i`.
    #[inline(always)]
    pub fn entry(&self, i: usize) -> (&[u8], &[u8]) {
        let (k, v, end) = self.entries[i];
        self.bytes[k..end].split_at(v - k)
    }
    /// Appends an entry.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let k = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let v = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.entries.push((k, v, self.bytes.len()));
    }
}

/// The number of bytes of a hash in a position.
pub(crate) const HASH: usize = 6;

/// Statistics of an index, for `info` and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of leaves.
    pub leaves: usize,
    /// The number of inner nodes.
    pub inner_nodes: usize,
    /// The number of levels above the leaves.
    pub depth: usize,
    /// The number of leaf splits since the index was created.
    pub splits: u64,
    /// The number of leaf merges since the index was created.
    pub merges: u64,
    /// How often a writer found its leaf locked.
    pub contended: u64,
    /// Statistics that only some indexes have, with their names.
    pub more: Vec<(&'static str, u64)>,
}

/// The closure of [`Unique::update`]. It is called with the value under the key and an empty
/// scratch buffer.
pub type Updater<'f, 'v> = dyn FnMut(Option<&[u8]>, &mut Vec<u8>) -> Change<'v> + 'f;

/// The condition of [`Unique::put`] and [`Unique::remove`]. It is called with the value under the
/// key, before anything is changed.
pub type Predicate<'f> = dyn FnMut(Option<&[u8]>) -> bool + 'f;

/// The maximum length of a value that [`Unique::get_short`] copies to its buffer.
pub const SHORT: usize = 64;

/// The result of [`Unique::get_short`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// There is no value under the key.
    Absent,
    /// The value has this number of bytes, which were copied.
    Short(usize),
    /// The value is longer than [`SHORT`]. It was copied only if the caller has passed a buffer for
    /// it.
    Long,
}

/// The maximum number of keys of one call of [`Unique::get_short_many`].
///
/// A batch must have enough keys for their cache misses to overlap. 8 to 64 keys do (see
/// [`Unique::prefetch`]). 32 is in between, and keeps [`Shorts`] at about two kilobytes. No other
/// number was compared in the measurements of `docs/tried.md`.
pub const TOGETHER: usize = 32;

/// The results of [`Unique::get_short_many`], one for each key.
pub struct Shorts {
    found: [(Lookup, [u8; SHORT]); TOGETHER],
}

impl Default for Shorts {
    fn default() -> Self {
        let none = (Lookup::Absent, [0; SHORT]);
        Shorts {
            found: [none; TOGETHER],
        }
    }
}

impl Shorts {
    /// The result for key `i`. If it is `Short`, the array begins with the value. The other bytes
    /// are unspecified.
    ///
    /// # Panics
    /// Panics if `i` is not below [`TOGETHER`].
    #[inline]
    pub fn get(&self, i: usize) -> (Lookup, &[u8; SHORT]) {
        let (got, value) = &self.found[i];
        (*got, value)
    }

    /// Calls `look` with each of the keys, at most [`TOGETHER`], and with the buffer of its result.
    #[inline(always)]
    pub(crate) fn fill<K>(
        &mut self,
        keys: impl Iterator<Item = K>,
        mut look: impl FnMut(K, &mut [u8; SHORT]) -> Lookup,
    ) {
        for (key, (got, value)) in keys.zip(&mut self.found) {
            *got = look(key, value);
        }
    }
}

/// The result of a write: what was under the key before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// The predicate returned `false`. Nothing was changed.
    Refused,
    /// There was no value.
    Absent,
    /// There was a value.
    Present,
}

impl Previous {
    /// The result of a write that was made.
    #[inline]
    pub(crate) fn of(present: bool) -> Previous {
        if present {
            Previous::Present
        } else {
            Previous::Absent
        }
    }
}

/// An index with at most one value per key. All operations except `free_some` are linearizable, and
/// any number of threads may call them. No operation waits longer than it takes another one to
/// change a leaf.
pub trait Unique: Send + Sync {
    /// Whether positions are keys. Otherwise they are hashes followed by keys.
    fn is_ordered(&self) -> bool;

    /// Appends the value under `key` to `out`. Returns `false` if there is none. Takes no lock.
    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool;

    /// Returns whether there is a value under `key`. Takes no lock.
    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool;

    /// Returns whether the index was seen empty at an instant. May return `false` for an empty
    /// index, if a single look doesn't suffice to tell.
    fn is_seen_empty(&self, _guard: &Guard) -> bool {
        false
    }

    /// Prefetches the memory that operations on the keys will touch, so that the cache misses of
    /// several keys overlap. This is a hint, which may do nothing. It works best with 8 to 64 keys.
    fn prefetch(&self, _guard: &Guard, _keys: &[Key<'_>]) {}

    /// Locks the entry of `key`, calls `f` once, and performs the change that it returns. `f` gets
    /// the value under the key (`None` if absent) and an empty scratch buffer. It must be short,
    /// and must not call the index. Returns whether the index was changed.
    fn update<'v>(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_, 'v>) -> bool;

    /// Like `get`, for values that are probably short. A value of at most [`SHORT`] bytes is copied
    /// to the beginning of `out`. The other bytes of `out` are unspecified. A longer value replaces
    /// the content of `long`, if that is given.
    fn get_short(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        // `get` appends to a buffer, so the length of the value is known before any of it is
        // copied.
        with_scratch(|value| {
            if !self.get(guard, key, value) {
                return Lookup::Absent;
            }
            let Some(to) = out.get_mut(..value.len()) else {
                long.into_iter().for_each(|long| long.clone_from(value));
                return Lookup::Long;
            };
            to.copy_from_slice(value);
            Lookup::Short(value.len())
        })
    }

    /// Like `get_short` of each of the keys, at most [`TOGETHER`]. If `far` is set, first
    /// prefetches the memory of all of them, so that the cache misses overlap.
    fn get_short_many(&self, guard: &Guard, keys: &[Key<'_>], far: bool, out: &mut Shorts) {
        if far {
            self.prefetch(guard, keys);
        }
        out.fill(keys.iter(), |&key, value| {
            self.get_short(guard, key, value, None)
        });
    }

    /// Locks the entry of `key`, and stores the value if `predicate` returns `true`. `predicate` is
    /// called once, with the value under the key (`None` if absent). It must be short, and must not
    /// call the index. Equivalent to an `update` that returns `Put` or `Keep`, but cheaper.
    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let mut was = Previous::Refused;
        self.update(guard, key, &mut |old, _| {
            if !predicate(old) {
                return Change::Keep;
            }
            was = Previous::of(old.is_some());
            Change::Put(value)
        });
        was
    }

    /// Locks the entry of `key`, and removes it if it exists and `predicate` returns `true`.
    /// `predicate` is called as by `put`, also if the entry is absent. Equivalent to an `update`
    /// that returns `Remove` or `Keep`, but cheaper.
    fn remove(&self, guard: &Guard, key: Key<'_>, predicate: &mut Predicate<'_>) -> Previous {
        let mut was = Previous::Refused;
        self.update(guard, key, &mut |old, _| {
            if !predicate(old) {
                return Change::Keep;
            }
            was = Previous::of(old.is_some());
            Change::Remove
        });
        was
    }

    /// Removes some entries of a batch in one change. The batch must be one that `scan` has
    /// returned unordered. The numbers of the entries ascend. `key` is the key of one of them.
    /// `predicate` is called once, under the lock, before anything is changed. Returns `false`, and
    /// changes nothing, if the leaf has changed since the scan, if the index can't tell, or if
    /// `predicate` returns `false`.
    fn remove_read(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (batch, chosen): (&Batch, &[u32]),
        predicate: &mut dyn FnMut() -> bool,
    ) -> bool {
        let _ = (guard, key, batch, chosen, predicate);
        false
    }

    /// Like `update`, with a scratch buffer of the caller, which is cleared first. This saves the
    /// search for one.
    fn update_with<'v>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_, 'v>,
    ) -> bool {
        scratch.clear();
        // `update` stores the content of its own buffer, so copy a new value there.
        self.update(guard, key, &mut |old, own| {
            let change = f(old, scratch);
            if let Change::PutScratch = change {
                own.extend_from_slice(scratch);
            }
            change
        })
    }

    /// Frees memory that writes have retired and kept until the thread holds no lock; see
    /// [`unique_under_locks`](crate::unique_under_locks).
    fn free_large(&self, _guard: &Guard) {}

    /// Fills `batch`, which is cleared first, with the next entries from `start` in `direction`.
    /// There is at least one entry, unless the scan is at its end, and there are at most those of
    /// one leaf. All are read at one instant.
    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch);

    /// Returns whether all entries of a batch are in the index now, unchanged. `seen` is that of
    /// the batch, and `key` is one of its keys. If the result is `true`, there is no other entry
    /// between two neighbouring ones of the batch. Returns `false` if the index can't tell.
    /// Linearisation point: the load of the leaf's version.
    fn unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        let _ = (guard, key, seen);
        false
    }

    /// Fills `batch`, which is cleared first, with the entry next to `key` in a direction. `key`
    /// need not be in the index. Without a `key`, the entry is the first one in the direction. If
    /// there is no such entry, the batch is empty and `done`. Its `resume` must not be used. If
    /// there is no `key` and the batch has a `seen`, the entry is the first one as long as it is
    /// `unchanged`. Returns whether there was a value under `key` at some instant during the call.
    /// O(1) (ordered: O(log n)).
    fn step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        batch: &mut Batch,
    ) -> bool {
        step_by_scan(self, guard, key, direction, batch)
    }

    /// Fills `batch`, which is cleared first, with a sample of the entries, in any order. It has at
    /// least as many as the batch wants, if the sampled places have that many. Each entry is read
    /// at an instant.
    ///
    /// `place`, a fraction of 2⁶⁴, determines the sampled places. All values from 0 to 2⁶⁴ - 1
    /// together cover the whole index. An index that can't sample returns its first entries.
    fn sample(&self, guard: &Guard, _place: u64, batch: &mut Batch) {
        self.scan(guard, Start::Edge, Direction::Forward, batch);
    }

    /// Returns the interface for rank queries, if the index has ranks.
    fn ranked(&self) -> Option<&dyn Ranked> {
        None
    }

    /// Writes the position of `key` to `out` (cleared first).
    fn position(&self, key: Key<'_>, out: &mut Vec<u8>);

    /// Removes about `limit` entries at most, calling `f` with each value. Returns `true` when
    /// nothing is left. The caller guarantees that no other thread writes to the index any more.
    /// The reaper uses this.
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool;

    /// The number of entries. Some indexes count them leaf by leaf, in O(n). Exact if no other
    /// thread writes.
    fn len(&self) -> usize;

    /// Whether there is no entry.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory of the index in bytes, including the index itself.
    fn memory(&self) -> usize;

    /// Statistics of the index.
    fn stats(&self) -> Stats;

    /// The number of entries at which the index is full. `None` if it has no limit, like the
    /// indexes of this crate. The caller checks it before it inserts: the index itself refuses
    /// nothing.
    fn limit(&self) -> Option<usize> {
        None
    }

    /// Called when the user's table is fixed, and when it is no longer fixed. The indexes of this
    /// crate ignore it.
    fn freeze(&self, _on: bool) {}
}

/// Implements [`Unique::step`] by a scan.
pub(crate) fn step_by_scan<U: Unique + ?Sized>(
    index: &U,
    guard: &Guard,
    key: Option<Key<'_>>,
    direction: Direction,
    batch: &mut Batch,
) -> bool {
    // One entry suffices. Restore the caller's hint at the end.
    let want = std::mem::replace(&mut batch.want, 1);
    let found = key.is_some_and(|key| index.contains(guard, key));
    match key {
        Some(key) => with_scratch(|position| {
            index.position(key, position);
            // Start strictly behind the key, so that its own entry isn't found again.
            index.scan(guard, Start::Past(position), direction, batch);
        }),
        None => {
            index.scan(guard, Start::Edge, direction, batch);
            // There may be leaves without entries before the one that was read.
            batch.seen = None;
        }
    }
    batch.want = want;
    found
}

/// Implements [`Multi::step`] by a scan.
pub(crate) fn step_keys_by_scan<M: Multi + ?Sized>(
    index: &M,
    guard: &Guard,
    key: Option<Key<'_>>,
    batch: &mut Batch,
) -> bool {
    let want = std::mem::replace(&mut batch.want, 1);
    let found = key.is_some_and(|key| index.contains(guard, key));
    match key {
        Some(key) => with_scratch(|position| {
            // Start behind all values of the key, however many there are.
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
}

/// An index with any number of values per key, in the order of insertion. In a scan, the entries of
/// a key are adjacent, in that order. The key of an entry in a `Batch` is the key alone.
/// Consistency is that of `Unique`. `get` sees all values of a key at one instant.
pub trait Multi: Send + Sync {
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

    /// Like `Unique::scan`, for single entries: it may see only a part of the changes of an update.
    /// `Batch::resume` may be between two values of one key.
    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch);

    /// Fills `batch`, which is cleared first, with the first entry of the next key behind `key`.
    /// `key` need not be in the index. Without a `key`, it is the first entry of all. Otherwise
    /// like `Unique::step`, forward.
    fn step(&self, guard: &Guard, key: Option<Key<'_>>, batch: &mut Batch) -> bool {
        step_keys_by_scan(self, guard, key, batch)
    }

    /// Like `Unique::unchanged`, but only for the keys of a batch: their objects may have changed.
    fn unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        let _ = (guard, key, seen);
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
    /// the key in a [`Unique`] of the same order.
    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }

    /// Converts a position to bytes that compare in the order of the scan.
    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }

    /// See `Unique::free_some`.
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool;

    /// The number of values. Some indexes count them leaf by leaf, in O(n). Exact if no other
    /// thread writes.
    fn len(&self) -> usize;

    /// Whether there are no values.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory of the index in bytes, including the index itself.
    fn memory(&self) -> usize;

    /// Statistics of the index.
    fn stats(&self) -> Stats;

    /// The number of objects at which the index is full. `None` if it has no limit, like the
    /// indexes of this crate. The caller checks it before it inserts: the index itself refuses
    /// nothing.
    fn limit(&self) -> Option<usize> {
        None
    }

    /// Called when the user's table is fixed, and when it is no longer fixed. The indexes of this
    /// crate ignore it.
    fn freeze(&self, _on: bool) {}
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Objects may be as long as memory; offsets of 32 bits once began anew behind four gibibytes.
    #[test]
    #[cfg_attr(miri, ignore = "Miri keeps each byte")]
    fn entries_far_behind_others_are_where_they_were_put() {
        const FAR: usize = 5 << 30;
        const ROOM: usize = 64;
        if Vec::<u8>::new().try_reserve_exact(FAR + ROOM).is_err() {
            // A system without so many addresses has no such objects.
            return;
        }
        let mut batch = Batch {
            // Zeros that nobody looks at take no memory.
            bytes: vec![0; FAR + ROOM],
            ..Batch::default()
        };
        batch.bytes.truncate(FAR);
        batch.push(b"key", b"value");
        batch.push(b"other", b"far");
        assert_eq!((batch.key(0), batch.value(0)), (&b"key"[..], &b"value"[..]));
        assert_eq!((batch.key(1), batch.value(1)), (&b"other"[..], &b"far"[..]));
    }
}

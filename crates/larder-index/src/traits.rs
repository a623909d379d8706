//! The two kinds of index and what passes between an index and its user.
//!
//! Keys and values are bytes; an index knows nothing of terms. Keys of one index must be
//! **prefix-free** (no key is a proper prefix of another). A hash-ordered index is given the key's
//! 64-bit hash by its user, who seeds it.
//!
//! ```text
//!  Unique   at most one value under a key     HashOrder, KeyOrder
//!  Multi    any number, in order of arrival   Bag
//!
//!  scan     start ─→ Batch { entries, resume } ─→ scan from resume ─→ … ─→ Batch { done }
//! ```
//!
//! Invariants that each index keeps:
//! 1. An operation, but for `free_some`, takes effect at one instant between its call and its
//!    return. A scan does so once for each batch.
//! 2. The batches of a scan have each entry that was there all the time exactly once.
//! 3. A function that a write is given is called under the lock of the entry, once: it must be
//!    short and must not call the index.
//! 4. The guard that an operation is given is pinned throughout: what it read stays alive.
//!
//! Default methods are what an index may leave out: each does the same by way of others, with more
//! work, or is a hint that does nothing.

use crate::ranked::Ranked;
use crate::scratch::with_scratch;
use crate::values::Values;
use crossbeam_epoch::Guard;
use std::ops::Bound;

/// A key as bytes, with its hash. `hash` is read by hash-ordered indexes alone; it must be a
/// function of `bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key's bytes.
    pub bytes: &'a [u8],
    /// A seeded hash of `bytes`.
    pub hash: u64,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending positions.
    Forward,
    /// Descending positions.
    Backward,
}

/// Where a scan begins. Positions are opaque runs of bytes that compare as the scan goes: for key
/// order the key itself, for hash order the top 48 bits of the hash (6 bytes, big endian) and then
/// the key. Use `position`, not this knowledge, to make one.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// At the first entry of the direction.
    Edge,
    /// At the position, that entry included if it exists.
    At(&'a [u8]),
    /// Past the position (strictly after it when going forward, strictly before it when going
    /// backward).
    Past(&'a [u8]),
}

/// What `Unique::update` does with the entry.
#[derive(Clone, Copy, Debug)]
pub enum Change<'v> {
    /// Leave it as it is (absent stays absent).
    Keep,
    /// Store this value, which was there before the call.
    Put(&'v [u8]),
    /// Store what the closure wrote to its scratch buffer.
    PutScratch,
    /// Remove the entry.
    Remove,
}

/// What a scan notes of where it read, for [`Unique::unchanged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number of the index, of which no other of this process has the same.
    pub(crate) index: u64,
    /// The version of the leaf.
    pub(crate) version: u64,
}

/// A consistent copy of some neighbouring entries, in scan order, taken at one instant from one
/// leaf. Reusable: `clear` keeps its memory. Key and value of an entry lie in one buffer.
#[derive(Debug)]
pub struct Batch {
    /// All bytes of all entries.
    pub bytes: Vec<u8>,
    /// For each entry: start of key, start of value, end of value, in `bytes`.
    pub entries: Vec<(usize, usize, usize)>,
    /// The position from which `Start::At` (forward) or `Start::Past` (backward) takes up the scan
    /// after this batch; empty at the end.
    pub resume: Vec<u8>,
    /// The scan has no more entries after this batch.
    pub done: bool,
    /// A hint of the caller's: no more than this many entries are of use (0: any number). An index
    /// may give more, never none for it.
    pub want: usize,
    /// A hint of the caller's: the entries may come in any order, as long as all of a scan's
    /// batches are used up. An index may ignore it.
    pub any_order: bool,
    /// A hint of the caller's: what lies beyond this key, in the direction of the scan, is of no
    /// use. A scan that leaves it out is `done` with it. An index may ignore it.
    pub until: Bound<Vec<u8>>,
    /// A hint of the caller's: of several values under a key the first alone is of use. An index
    /// may ignore it.
    pub firsts: bool,
    /// The entries came in any order: they are all that lies between where the scan stood and
    /// `resume` (the end, if it is `done`).
    pub unordered: bool,
    /// Where the entries were read, if the index can tell whether they have changed since.
    pub seen: Option<Seen>,
    /// Where an index sorts what it found: of no use to others.
    pub order: Vec<u64>,
    /// Where an index of lists has what it makes entries of: of no use to others.
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
    /// Empties the batch, keeping its memory and what the caller wants.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.resume.clear();
        self.done = false;
        self.unordered = false;
        self.seen = None;
    }
    /// The most entries that are of use to the caller.
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
    /// Whether there is no entry.
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
    /// Key and value of entry `i`.
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

/// Bytes of a hash in a position.
pub(crate) const HASH: usize = 6;

/// Figures of an index, for `info` and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Leaves in use.
    pub leaves: usize,
    /// Inner nodes in use.
    pub inner_nodes: usize,
    /// Levels above the leaves.
    pub depth: usize,
    /// Leaf splits since creation.
    pub splits: u64,
    /// Leaf merges since creation.
    pub merges: u64,
    /// Times a writer found its leaf locked.
    pub contended: u64,
    /// Figures that not every index has, by their names.
    pub more: Vec<(&'static str, u64)>,
}

/// What [`Unique::update`] calls with the value under the key and an empty scratch buffer.
pub type Updater<'f, 'v> = dyn FnMut(Option<&[u8]>, &mut Vec<u8>) -> Change<'v> + 'f;

/// What [`Unique::put`] and [`Unique::remove`] ask, with the value under the key, before they
/// change anything.
pub type Predicate<'f> = dyn FnMut(Option<&[u8]>) -> bool + 'f;

/// Bytes of a value that [`Unique::get_short`] has room for.
pub const SHORT: usize = 64;

/// What [`Unique::get_short`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// There is no value under the key.
    Absent,
    /// A value of so many bytes, which were copied.
    Short(usize),
    /// A value longer than [`SHORT`]. It was copied only if there was another place for it.
    Long,
}

/// Keys that [`Unique::get_short_many`] looks for at a time, at most.
pub const TOGETHER: usize = 32;

/// What [`Unique::get_short_many`] found, key by key.
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
    /// What was found of key `i`, and its value if that is short, with anything behind it.
    ///
    /// # Panics
    /// Panics if `i` is not below [`TOGETHER`].
    #[inline]
    pub fn get(&self, i: usize) -> (Lookup, &[u8; SHORT]) {
        let (got, value) = &self.found[i];
        (*got, value)
    }

    /// Has each of the keys, of which at most [`TOGETHER`] are looked at, and what belongs to it,
    /// seen by `look`.
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

/// What was under the key before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// The predicate refused: nothing was changed.
    Refused,
    /// There was no value.
    Absent,
    /// There was a value.
    Present,
}

impl Previous {
    /// As it is said by an entry's being there.
    #[inline]
    pub(crate) fn of(present: bool) -> Previous {
        if present {
            Previous::Present
        } else {
            Previous::Absent
        }
    }
}

/// An index with at most one value under a key. Every operation but `free_some` is linearizable and
/// may be called from any number of threads; none blocks for longer than another takes to change
/// one leaf.
pub trait Unique: Send + Sync {
    /// Whether positions are keys (ordered) or hashes and keys.
    fn is_ordered(&self) -> bool;

    /// Copies the value under `key` to the end of `out`; false if there is none. Takes no lock.
    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool;

    /// Whether there is a value under `key`. Takes no lock.
    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool;

    /// Whether there was no entry at an instant. False also where one look doesn't tell.
    fn is_seen_empty(&self, _guard: &Guard) -> bool {
        false
    }

    /// Asks the processor to bring what an operation on each of the keys will touch near, so that
    /// the misses of many keys overlap. A hint: it changes nothing and may do nothing. Best with 8
    /// to 64 keys.
    fn prefetch(&self, _guard: &Guard, _keys: &[Key<'_>]) {}

    /// Calls `f` exactly once, with the value under `key` (None if absent) and an empty scratch
    /// buffer, while the entry is locked, and does what it answers. `f` must be short and must not
    /// call the index. Returns whether the index changed.
    fn update<'v>(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_, 'v>) -> bool;

    /// As `get`, for values that are probably short: they are copied to the front of `out`, whose
    /// other bytes may then be anything. One that is not takes the place of what is in `long`, if
    /// that is there.
    fn get_short(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        // `get` appends to a buffer, so the value's length is known before any of it is given.
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

    /// As `get_short` of each key in turn, of at most [`TOGETHER`]. With `far`, the memory of all
    /// of them is prefetched first, so that the waits for it overlap.
    fn get_short_many(&self, guard: &Guard, keys: &[Key<'_>], far: bool, out: &mut Shorts) {
        if far {
            self.prefetch(guard, keys);
        }
        out.fill(keys.iter(), |&key, value| {
            self.get_short(guard, key, value, None)
        });
    }

    /// Stores a value if `predicate`, called exactly once with the value under the key (None if
    /// absent) while the entry is locked, consents. The same as an `update` that answers `Put` or
    /// `Keep`, with less to do. `predicate` must be short and must not call the index.
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

    /// Removes the entry under the key, if there is one and `predicate` consents, which is called
    /// as by `put`: also when there is none. The same as an `update` that answers `Remove` or
    /// `Keep`, with less to do.
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

    /// Removes the entries at these places, which ascend, of a batch that a `scan` gave unordered,
    /// in one change. `key` is the key of one of them. `predicate` is called once, under the lock,
    /// before anything is changed. False, and nothing was done, if the index has changed there
    /// since, can't tell, or `predicate` does not consent.
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

    /// As `update`, with a scratch buffer of the caller's, which is cleared first: nobody has to
    /// look for one.
    fn update_with<'v>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        scratch: &mut Vec<u8>,
        f: &mut Updater<'_, 'v>,
    ) -> bool {
        scratch.clear();
        // `update` stores what is in its own buffer, so a new value goes there.
        self.update(guard, key, &mut |old, own| {
            let change = f(old, scratch);
            if let Change::PutScratch = change {
                own.extend_from_slice(scratch);
            }
            change
        })
    }

    /// Frees what writes have left to be freed when the thread holds no lock; see
    /// [`unique_under_locks`](crate::unique_under_locks).
    fn free_large(&self, _guard: &Guard) {}

    /// Fills `batch` (cleared first) with the next entries from `start` in `direction`: at least
    /// one unless the scan is at its end, and at most a leaf's worth, all read at one instant.
    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch);

    /// Whether all entries of a batch of a `scan` are what the index has there, still or again:
    /// those that `seen` came with, of which `key` is one. No entry lies between any two neighbours
    /// of them, then. False if the index can't tell. Linearisation point: the load of the leaf's
    /// version.
    fn unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        let _ = (guard, key, seen);
        false
    }

    /// Fills `batch` (cleared first) with the entry next to `key`, which need not be there, in that
    /// direction; for no key with the first entry of the direction. At the end the batch stays
    /// empty and is `done`. Its `resume` is of no use. Its `seen`, if there is one and no `key`,
    /// also says that the entry is the first for as long as it is `unchanged`. Returns whether
    /// there is a value under `key`, as of some instant during the call. O(1) (ordered: O(log n)).
    fn step(
        &self,
        guard: &Guard,
        key: Option<Key<'_>>,
        direction: Direction,
        batch: &mut Batch,
    ) -> bool {
        step_by_scan(self, guard, key, direction, batch)
    }

    /// Fills `batch` (cleared first) with a sample of the entries, in any order: at least as many
    /// as it wants, where the places that are looked at have so many. Each is read at an instant.
    ///
    /// Which places that are is up to `place`, a fraction of 2⁶⁴: all from 0 to 2⁶⁴ - 1 together
    /// are the whole index. An index that can't tell gives its first entries.
    fn sample(&self, guard: &Guard, _place: u64, batch: &mut Batch) {
        self.scan(guard, Start::Edge, Direction::Forward, batch);
    }

    /// The index, if it answers questions about ranks.
    fn ranked(&self) -> Option<&dyn Ranked> {
        None
    }

    /// Writes the position of `key` to `out` (cleared first).
    fn position(&self, key: Key<'_>, out: &mut Vec<u8>);

    /// Removes some entries for good, at most about `limit`, calling `f` with each value; true when
    /// nothing is left. The caller guarantees that nobody else writes the index any more. Used by
    /// the reaper.
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool;

    /// Entries, which may be counted leaf by leaf: O(n). Exact when nobody writes.
    fn len(&self) -> usize;

    /// Whether there is no entry.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the index holds, itself included.
    fn memory(&self) -> usize;

    /// Figures of the structure.
    fn stats(&self) -> Stats;

    /// Objects at which the index is full; none if it never is, as those of this crate. The caller
    /// looks at it before it inserts: the index itself refuses nothing.
    fn limit(&self) -> Option<usize> {
        None
    }

    /// The user's table is fixed from now on (or is not any more). For indexes that care: those of
    /// this crate don't.
    fn freeze(&self, _on: bool) {}
}

/// As [`Unique::step`], by a scan.
pub(crate) fn step_by_scan<U: Unique + ?Sized>(
    index: &U,
    guard: &Guard,
    key: Option<Key<'_>>,
    direction: Direction,
    batch: &mut Batch,
) -> bool {
    // One entry is enough; the caller's own wish comes back at the end.
    let want = std::mem::replace(&mut batch.want, 1);
    let found = key.is_some_and(|key| index.contains(guard, key));
    match key {
        Some(key) => with_scratch(|position| {
            index.position(key, position);
            // Strictly behind the key, so its own entry isn't found again.
            index.scan(guard, Start::Past(position), direction, batch);
        }),
        None => {
            index.scan(guard, Start::Edge, direction, batch);
            // Leaves without an entry may lie before the one that was read.
            batch.seen = None;
        }
    }
    batch.want = want;
    found
}

/// As [`Multi::step`], by a scan.
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
            // Behind all values of the key, however many there are.
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

/// A hash of values by which a `Multi` finds those that its user takes for the same: they have the
/// same hash.
pub type ObjectHash = fn(&[u8]) -> u64;

/// The objects under one key of a `Multi`, in order of arrival, locked against other writers.
///
/// `same`, below, answers whether a value is the same as one that the caller has in mind, `value`;
/// it holds for no value whose [`ObjectHash`] is another.
pub trait Objects {
    /// How many there are.
    fn count(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.count() == 0
    }
    /// Calls `f` with each in order of arrival, until it answers false.
    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool);
    /// Calls `f` with the number of each and its value, in order of arrival. Numbers ascend, and an
    /// object keeps its own.
    fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
        self.each(&mut |ordinal, value| {
            f(ordinal as u64, value);
            true
        });
    }
    /// Says that a change follows. From here on a reader of the key waits until the change is made,
    /// or sees what the key had before it.
    fn begin_change(&mut self) {}
    /// Whether there is one that is the same.
    fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let _ = value;
        let mut found = false;
        self.each(&mut |_, other| {
            found = same(other);
            !found
        });
        found
    }
    /// Adds one at the end.
    fn push(&mut self, value: &[u8]);
    /// Removes those for which `f` answers true; returns how many.
    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize;
    /// Removes all, and calls `f` with each in order of arrival; returns how many.
    fn remove_all(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        self.remove_if(&mut |value| {
            f(value);
            true
        })
    }
    /// Removes all that are the same; returns how many. `same` is called once with each that goes,
    /// among others.
    fn remove_same(&mut self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        let _ = value;
        self.remove_if(same)
    }
    /// Replaces the value of the object with this ordinal (as given by `each`). Several in
    /// ascending order are one walk.
    fn replace(&mut self, ordinal: usize, value: &[u8]);
}

/// An index with any number of values under a key, kept in order of arrival. Scans see the entries
/// of one key one after the other, in that order; an entry's `Batch` key is the key alone.
/// Consistency as for `Unique`; `get` sees all values of the key at one instant.
pub trait Multi: Send + Sync {
    /// Appends each value under `key` to `values`, in order of arrival, all as of one instant;
    /// returns how many. Takes no lock when the key has few.
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize;

    /// As `read`: calls `f` with each value.
    fn get(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&[u8])) -> usize {
        let mut values = Values::default();
        self.read(guard, key, &mut values);
        values.iter().for_each(f);
        values.len()
    }

    /// Whether there is a value under `key`.
    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool;

    /// As `Unique::prefetch`.
    fn prefetch(&self, _guard: &Guard, _keys: &[Key<'_>]) {}

    /// Calls `f` once with the objects under `key`, locked; changes made through it become visible
    /// to `get` all at once. `f` must not call this or any other `Multi`: locks are shared between
    /// indexes.
    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects));

    /// As `Unique::scan`, entry by entry: it may see some of an update's changes without the
    /// others. `Batch::resume` may fall between two values of one key.
    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch);

    /// Fills `batch` (cleared first) with the first entry of the key behind `key`, which need not
    /// be there; for no key with the first entry of all. Otherwise as `Unique::step`, forward.
    fn step(&self, guard: &Guard, key: Option<Key<'_>>, batch: &mut Batch) -> bool {
        step_keys_by_scan(self, guard, key, batch)
    }

    /// As `Unique::unchanged`, of the keys of a batch: their objects may have changed.
    fn unchanged(&self, guard: &Guard, key: Key<'_>, seen: Seen) -> bool {
        let _ = (guard, key, seen);
        false
    }

    /// Writes a position to `out` at which (`Start::At`, forward) the first value of `key` would be
    /// found.
    fn first_position(&self, key: Key<'_>, out: &mut Vec<u8>);

    /// Writes a position to `out` past which (`Start::Past`, forward) the first value of the next
    /// key would be found.
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

    /// The part of a position that all positions of its key begin with: what a [`Unique`] of the
    /// same order has for a position of the key.
    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }

    /// A position as bytes that compare as the scan goes, with those of entries and of others.
    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }

    /// As `Unique::free_some`.
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool;

    /// Values, which may be counted leaf by leaf: O(n). Exact when nobody writes.
    fn len(&self) -> usize;

    /// Whether there is no value.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the index holds, itself included.
    fn memory(&self) -> usize;

    /// Figures of the structure.
    fn stats(&self) -> Stats;

    /// Objects at which the index is full; none if it never is, as those of this crate. The caller
    /// looks at it before it inserts: the index itself refuses nothing.
    fn limit(&self) -> Option<usize> {
        None
    }

    /// The user's table is fixed from now on (or is not any more). For indexes that care: those of
    /// this crate don't.
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

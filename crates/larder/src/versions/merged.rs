//! An index merged with one that overrides it: the view of a snapshot or of a transaction.
//!
//! ```text
//!  base        a 1   c 3   d 4   f 6        the objects as they are now
//!  overrides         c 2   d –   e 5        an undo index, as of the snapshot's number
//!  merged      a 1   c 2   e 5   f 6
//! ```
//!
//! Both indexes have the same order, so a scan merges two scans.
//!
//! S4: the base is read before the overrides. A write stores the override of the old object before
//! its change becomes visible in the base.

use super::checkpoints::Checkpoints;
use super::history::{History, TableSnapshot};
use super::own_writes::Writes;
use super::undo::{self, BagObjects, Override};
use super::undo_index::with_record;
use crate::delegate::{delegate_order, delegate_positions};
use crate::index::TableIndex;
use crate::keys;
use crate::resume_point::ResumePoint;
use larder_index::{
    Batch, Chains, Container, Direction, Guard, Key, Lookup, Multi, Objects, Ranked, Start, Stats,
    Unique, Updater, Values, SHORT_VALUE,
};
use larder_term::hash::Seed;
use std::sync::Arc;

/// The entries that override an index.
pub(crate) struct Overrides {
    source: Source,
    /// The snapshot's number: the undo records are read as of this time.
    number: u64,
    /// The seed of the table's hashes.
    seed: Seed,
    /// Whether positions in the index are keys, without a hash in front.
    pub(super) ordered: bool,
    /// Known ranks in the merged order. A change of the overrides shifts those above it.
    pub(super) checkpoints: Arc<Checkpoints>,
}

/// A key, and its hash if that is known.
type HashedKey<'k> = (Key<'k>, Option<u64>);

/// Where the overrides are stored.
enum Source {
    /// In the undo index of a snapshot. This keeps the snapshot alive, unless the caller does.
    Undo {
        history: Arc<History>,
        _snapshot: Option<TableSnapshot>,
    },
    /// In an index of their own: the writes of a transaction.
    Writes(Arc<Writes>),
}

impl Overrides {
    /// The overrides that yield the view of a snapshot.
    pub(crate) fn of_snapshot(snapshot: TableSnapshot, seed: Seed) -> Self {
        let (history, number) = (Arc::clone(&snapshot.history), snapshot.number());
        Overrides {
            source: Source::Undo {
                history: Arc::clone(&history),
                _snapshot: Some(snapshot),
            },
            ..Self::of_history(history, number, seed)
        }
    }

    /// The same, for the snapshot with this number, which the caller keeps alive.
    pub(crate) fn of_history(history: Arc<History>, number: u64, seed: Seed) -> Self {
        Overrides {
            ordered: history.store().index.is_ordered(),
            source: Source::Undo {
                history,
                _snapshot: None,
            },
            number,
            seed,
            checkpoints: Arc::default(),
        }
    }

    /// The writes of a transaction, all of which count. The transaction shifts the checkpoints
    /// above each of its writes.
    pub(super) fn of_writes(
        writes: Arc<Writes>,
        seed: Seed,
        checkpoints: Arc<Checkpoints>,
    ) -> Self {
        Overrides {
            ordered: writes.is_ordered(),
            source: Source::Writes(writes),
            number: 0,
            seed,
            checkpoints,
        }
    }

    /// The index of the overrides, if there is one.
    #[inline]
    pub(super) fn index(&self) -> Option<&dyn Unique> {
        match &self.source {
            Source::Undo { history, .. } => history.undo(),
            Source::Writes(writes) => Some(&**writes as &dyn Unique),
        }
    }

    /// The overrides, if they are the writes of a transaction.
    pub(super) fn own_writes(&self) -> Option<&Writes> {
        match &self.source {
            Source::Writes(writes) => Some(writes),
            Source::Undo { .. } => None,
        }
    }

    /// The index of the overrides, if it is one of chains.
    #[inline]
    pub(super) fn chains(&self) -> Option<&Chains> {
        match &self.source {
            Source::Undo { history, .. } => history.chains(),
            Source::Writes(_) => None,
        }
    }

    /// The override that a record of this index contains, if it contains one for this snapshot.
    #[inline]
    pub(super) fn read<'r>(&self, record: &'r [u8]) -> Option<Override<'r>> {
        undo::as_of(record, self.number)
    }

    /// Whether a record contains an override for this snapshot.
    #[inline]
    pub(super) fn has_override(&self, record: &[u8]) -> bool {
        undo::has_version(record, self.number)
    }

    /// Prefetches the override of a key, if there may be one. Called before the base is read, so
    /// that the cache misses of both overlap. Returns the key for `with`.
    #[inline]
    fn prefetch<'k>(&self, guard: &Guard, key: Key<'k>) -> HashedKey<'k> {
        let hash = match &self.source {
            Source::Undo { history, .. } => history.prefetch(guard, key),
            // They are few, and this thread has written them.
            Source::Writes(_) => None,
        };
        (key, hash)
    }

    /// Calls `f` with the override of a key, if there is one. The key is the result of `prefetch`.
    #[inline]
    fn with<R>(
        &self,
        guard: &Guard,
        (key, hash): HashedKey<'_>,
        f: impl FnOnce(Option<Override<'_>>) -> R,
    ) -> R {
        // The filter is looked at again: the key may have changed since `prefetch`.
        let index = match &self.source {
            Source::Undo { history, .. } => match hash {
                Some(hash) => history.undo_of_hash(hash),
                None => history.undo_of(key),
            },
            Source::Writes(writes) => Some(&**writes as &dyn Unique),
        };
        let Some(index) = index else {
            return f(None);
        };
        // Most records are short, as they have one version of a small object.
        let mut short = [0; SHORT_VALUE];
        match index.get_into(guard, key, &mut short, None) {
            Lookup::Absent => f(None),
            Lookup::Short(len) => f(self.read(&short[..len])),
            // Long records are read into a buffer of the thread's.
            Lookup::Long => with_record(|record| {
                let there = index.get(guard, key, record);
                f(there.then(|| self.read(record)).flatten())
            }),
        }
    }

    pub(super) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        keys::with_hash(&self.seed, self.ordered, bytes)
    }

    /// The hash of a key.
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        self.seed.hash(key)
    }
}

/// An index and its overrides.
pub(crate) struct Merged<I: ?Sized> {
    pub(super) base: Arc<I>,
    pub(super) overrides: Overrides,
}

/// The merged view of an index and its overrides.
pub(crate) fn merge(base: TableIndex, overrides: Overrides) -> TableIndex {
    match base {
        TableIndex::Unique(base) => TableIndex::Unique(Arc::new(Merged { base, overrides })),
        TableIndex::Multi(base) => TableIndex::Multi(Arc::new(Merged { base, overrides })),
    }
}

/// What a merge needs of either kind of index. The methods that are here are those of an index with
/// at most one entry under a key: its positions are those of keys.
pub(crate) trait MergeInput: Send + Sync {
    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    );
    /// The position of entry `i`, whose key is `key`.
    fn entry_position(&self, _batch: &Batch, _i: usize, key: Key<'_>, out: &mut Vec<u8>) {
        self.key_start(key, out);
    }
    /// What the positions of all entries of a key begin with.
    fn key_start(&self, key: Key<'_>, out: &mut Vec<u8>);
    /// The prefix that the positions of all entries of one key share.
    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }
    /// A position as bytes whose order is that of the scan.
    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        position
    }
    /// The position from which a scan continues after all entries of a key.
    fn resume_after(&self, key: Key<'_>, direction: Direction, out: &mut Vec<u8>);
    /// Appends the entries that override a key, in the direction of the scan.
    fn push(&self, key: &[u8], value: Override<'_>, direction: Direction, batch: &mut Batch);
    /// Whether a key has at most one entry.
    #[inline]
    fn has_one_each(&self) -> bool {
        true
    }
}

impl MergeInput for dyn Unique {
    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        Unique::scan(self, guard, start, direction, batch);
    }

    fn key_start(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.position(key, out);
    }

    fn resume_after(&self, key: Key<'_>, direction: Direction, out: &mut Vec<u8>) {
        self.position(key, out);
        // No key is a prefix of another, so the key with a zero byte appended lies after the key
        // and before the next one.
        if direction == Direction::Forward {
            out.push(0);
        }
    }

    fn push(&self, key: &[u8], value: Override<'_>, _: Direction, batch: &mut Batch) {
        if let Override::Value(value) = value {
            batch.push(key, value);
        }
    }
}

impl MergeInput for dyn Multi {
    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        Multi::scan(self, guard, start, direction, batch);
    }

    fn entry_position(&self, batch: &Batch, i: usize, _: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        Multi::entry_position(self, batch, i, out);
    }

    fn key_start(&self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        self.first_position(key, out);
        out.truncate(Multi::key_position(self, out).len());
    }

    fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        Multi::key_position(self, position)
    }

    fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
        Multi::comparable(self, position)
    }

    fn resume_after(&self, key: Key<'_>, direction: Direction, out: &mut Vec<u8>) {
        out.clear();
        // After all objects of the key: after the last one forward, before the first one backward.
        match direction {
            Direction::Forward => self.last_position(key, out),
            Direction::Backward => self.first_position(key, out),
        }
    }

    fn push(&self, key: &[u8], value: Override<'_>, direction: Direction, batch: &mut Batch) {
        let mut push = |(number, value): (u64, &[u8])| self.push_entry(batch, key, value, number);
        match direction {
            Direction::Forward => BagObjects::of(value).for_each(push),
            // The list of an override is in order of arrival, which a scan backward reverses.
            Direction::Backward => {
                let mut objects: Vec<_> = BagObjects::of(value).collect();
                objects.reverse();
                objects.into_iter().for_each(&mut push);
            }
        }
    }

    #[inline]
    fn has_one_each(&self) -> bool {
        false
    }
}

impl<I: MergeInput + ?Sized> Merged<I> {
    /// Counts the entries by a scan.
    fn count(&self) -> usize {
        let (guard, forward) = (larder_index::pin(), Direction::Forward);
        // The order doesn't matter for a number. Batches in any order are copied as they are.
        let mut batch = Batch::default().in_any_order();
        let (mut resume, mut sum) = (ResumePoint::Begin, 0);
        while resume != ResumePoint::End {
            let start = resume.start(Start::Edge, forward);
            self.scan_merged(&guard, start, forward, &mut batch);
            sum += batch.len();
            resume.move_past(&mut batch);
        }
        sum
    }
}

impl Unique for Merged<dyn Unique> {
    delegate_order!(base);

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        let hashed = self.overrides.prefetch(guard, key);
        // The order matters (S4).
        let there = self.base.get(guard, key, out);
        self.overrides.with(guard, hashed, |value| match value {
            None => there,
            Some(Override::Absent) => {
                out.truncate(from);
                false
            }
            Some(Override::Value(value)) => {
                out.truncate(from);
                out.extend_from_slice(value);
                true
            }
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        let hashed = self.overrides.prefetch(guard, key);
        // The base first, as in `get`.
        let there = self.base.contains(guard, key);
        self.overrides.with(guard, hashed, |value| match value {
            None => there,
            Some(value) => value != Override::Absent,
        })
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        // There are few overrides, so only the base is prefetched.
        self.base.prefetch(guard, keys);
    }

    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        let hashed = self.overrides.prefetch(guard, key);
        // Read the base first, and the overrides last (S4): a write stores its version before it
        // changes the base. So a base value that is too new is overridden.
        let base = self.base.get_into(guard, key, out, long.as_deref_mut());
        self.overrides.with(guard, hashed, |value| match value {
            None => base,
            Some(Override::Absent) => Lookup::Absent,
            Some(Override::Value(value)) => match out.get_mut(..value.len()) {
                Some(to) => {
                    to.copy_from_slice(value);
                    Lookup::Short(value.len())
                }
                None => {
                    // The value is too long for `out`. The caller may want it anyway.
                    if let Some(long) = long {
                        long.clear();
                        long.extend_from_slice(value);
                    }
                    Lookup::Long
                }
            },
        })
    }

    /// Never called: a snapshot's table is read-only.
    fn update(&self, _: &Guard, _: Key<'_>, _: &mut Updater<'_>) -> bool {
        debug_assert!(false, "a snapshot is written");
        false
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        self.scan_merged(guard, start, direction, batch);
    }

    fn ranked(&self) -> Option<&dyn Ranked> {
        // The view has ranks if its base has.
        self.base.ranked().map(|_| self as &dyn Ranked)
    }
}

impl Multi for Merged<dyn Multi> {
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        let before = values.len();
        let hashed = self.overrides.prefetch(guard, key);
        self.base.read(guard, key, values);
        self.overrides.with(guard, hashed, |value| {
            // The override lists all objects of the key, and replaces those of the base.
            if let Some(list) = value {
                values.truncate(before);
                BagObjects::of(list).for_each(|(_, value)| values.push(value));
            }
            values.len() - before
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        // The base's `contains` doesn't wait for a writer in the middle of a change. A read does.
        self.read(guard, key, &mut Values::default()) > 0
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        self.base.prefetch(guard, keys);
    }

    /// Never called: a snapshot's table is read-only.
    fn update(&self, _: &Guard, _: Key<'_>, _: &mut dyn FnMut(&mut dyn Objects)) {
        debug_assert!(false, "a snapshot is written");
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        self.scan_merged(guard, start, direction, batch);
    }

    fn scan_key<'g>(&'g self, guard: &'g Guard, key: Key<'_>, batch: &mut Batch<'g>) -> bool {
        let hashed = self.overrides.prefetch(guard, key);
        // The base first, as in `get`.
        if !self.base.scan_key(guard, key, batch) {
            return false;
        }
        self.overrides.with(guard, hashed, |value| {
            if let Some(value) = value {
                batch.clear();
                self.base.push(key.bytes, value, Direction::Forward, batch);
            }
        });
        true
    }

    delegate_positions!(base);
}

impl<I: MergeInput + ?Sized> Container for Merged<I> {
    /// The objects are others'.
    fn free_some(&self, _: &Guard, _: usize, _: &mut dyn FnMut(&[u8])) -> bool {
        true
    }

    fn len(&self) -> usize {
        self.count()
    }

    fn memory(&self) -> usize {
        size_of::<Self>()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

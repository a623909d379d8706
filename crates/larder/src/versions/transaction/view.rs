//! The index of a transaction's view of a table: the table as of the transaction's snapshot, with
//! the transaction's own writes over it.
//!
//! ```text
//!  own writes       an index of undo records: the value that the transaction has written to a key
//!  snapshot         the table as of the transaction's snapshot
//! ```
//!
//! Own writes are overrides, like the undo records of a snapshot (`merged`), with a number that
//! every reader sees. Reads are recorded in the read set. A write of a key also reads it.
//!
//! Counts of handles: each own write owns one count of each handle in its value. When a write
//! replaces a value, the view's table releases the counts of the replaced value. If that value is
//! the snapshot's, its counts belong to the snapshot, so the write retains them first.
//!
//! Several threads may write to a view. A write reads, decides and stores under one lock,
//! `writing`, so it replaces what it has read, and the counts of a value are released once.

use super::super::checkpoints::Checkpoints;
use super::super::differences::Differences;
use super::super::history::{History, TableSnapshot};
use super::super::lifetimes::ViewLifetimes;
use super::super::merged::{self, Overrides};
use super::super::own_writes::{OwnWrite, Writes};
use super::super::undo::{self, BagObjects, Override};
use super::reads::Reads;
use crate::bounds::Bounded;
use crate::delegate::{delegate_order, delegate_positions};
use crate::index::TableIndex;
use crate::indexes::EntriesRead;
use crate::raw;
use crate::reclaim::reaper;
use larder_index::sync::Mutex;
use larder_index::{
    Batch, Change, Container, Counted, Direction, Guard, Key, Lookup, Multi, Objects, Predicate,
    Previous, Ranked, Start, Stats, Unique, Updater, Values, SHORT_VALUE,
};
use larder_term::hash::Seed;
use std::cell::OnceCell;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The thread that drops a working set of at most this number of keys frees it.
const FREED_INLINE: usize = 256;
/// The number of keys that are freed in one go otherwise.
const FREED_TOGETHER: usize = 64;

/// The reads and writes of a transaction in one table.
pub(super) struct WorkingSet {
    pub(super) history: Arc<History>,
    pub(super) number: u64,
    /// The snapshot, until the transaction ends. `None` if the transaction has locked its keys.
    pub(super) snapshot: Mutex<Option<TableSnapshot>>,
    /// Undo records of the written keys.
    pub(super) writes: Arc<Writes>,
    /// The number of writes.
    count: AtomicU64,
    /// Held by a write from its read to its end. Taken before the locks of `writes` and `reads`.
    writing: Mutex<()>,
    /// The read set.
    pub(super) reads: Mutex<Reads>,
    /// The snapshot's objects.
    below: TableIndex,
    /// What the transaction sees: own writes over the snapshot.
    seen: TableIndex,
    /// Ranks that have been counted in the view.
    checkpoints: Arc<Checkpoints>,
    /// Whether a key has at most one object.
    unique: bool,
    /// Whether reads must be recorded, because they may change before the commit.
    notes_reads: bool,
}

/// The written keys differ from the snapshot.
impl Differences for WorkingSet {
    fn changed(&self) -> Option<&dyn Unique> {
        Some(&*self.writes)
    }

    fn about(&self) -> usize {
        self.writes.len()
    }

    fn table_size(&self) -> usize {
        self.history.store().size()
    }

    fn unnoted(&self) -> Option<&TableIndex> {
        Some(&self.seen)
    }

    fn writes(&self) -> u64 {
        // Ordering: Acquire, as in `write`.
        self.count.load(Ordering::Acquire)
    }

    fn note_entries(&self, read: EntriesRead) {
        if self.notes_reads {
            self.reads.lock().entries(read);
        }
    }
}

impl WorkingSet {
    /// An empty working set over these objects. `snapshot` is `None` if the transaction has locked
    /// its keys.
    fn new(
        history: Arc<History>,
        snapshot: Option<TableSnapshot>,
        objects: TableIndex,
        seed: &Seed,
    ) -> Self {
        let index = &history.store().index;
        let writes = Arc::new(Writes::new(index.is_ordered()));
        let checkpoints = Arc::default();
        // Own writes are an index like any other, which overrides what the transaction sees of the
        // table.
        let (overrides, known) = (Arc::clone(&writes), Arc::clone(&checkpoints));
        let overrides = Overrides::of_writes(overrides, seed.clone(), known);
        WorkingSet {
            seen: merged::merge(objects.share(), overrides),
            below: objects,
            writes,
            unique: index.is_unique(),
            // Without a snapshot, the transaction reads the tables themselves: its keys are locked.
            number: snapshot.as_ref().map_or(u64::MAX, TableSnapshot::number),
            notes_reads: snapshot.is_some(),
            snapshot: Mutex::new(snapshot),
            count: AtomicU64::new(0),
            writing: Mutex::default(),
            reads: Mutex::default(),
            checkpoints,
            history,
        }
    }

    /// The lifetimes of the objects, if the table is bounded.
    pub(super) fn lifetimes(&self, bounded: Option<Arc<Bounded>>) -> Option<ViewLifetimes> {
        let writes = || Some(Arc::clone(&self.writes));
        bounded.map(|bounded| ViewLifetimes::new(bounded, writes()))
    }

    /// Records a write. The caller tells whether there was an object under the key, and whether
    /// the transaction has written the key before, and whether the write adds an object.
    fn write(
        &self,
        key: Key<'_>,
        value: Override<'_>,
        (was_there, is_own): (bool, bool),
        adds: bool,
    ) {
        let change = i64::from(value != Override::Absent) - i64::from(was_there);
        let replaces = was_there && !is_own;
        self.writes
            .put(key, self.history.hash(key), value, (replaces, adds));
        // Only an ordered index has checkpoints, and its positions are its keys.
        if change != 0 {
            self.checkpoints.shift_above(key.bytes, change);
        }
        // Ordering: Release, pairs with `writes`: a reader that sees the count sees the write.
        self.count.fetch_add(1, Ordering::Release);
    }

    /// The objects that the transaction has written to a bag's key, with their numbers.
    fn own_list(&self, key: Key<'_>) -> Vec<u8> {
        self.writes
            .with(key, |write| match write.map(OwnWrite::value) {
                Some(Override::Value(list)) => list.to_vec(),
                _ => Vec::new(),
            })
    }

    /// Adds an object after those that the transaction has written to a bag's key, and returns its
    /// number. `None` if there are none.
    fn append(&self, key: Key<'_>, value: &[u8]) -> Option<u64> {
        let number = self.writes.append(key, value)?;
        // Ordering: Release, as in `write`.
        self.count.fetch_add(1, Ordering::Release);
        Some(number)
    }

    /// Calls `f` with the value that the transaction has written to a key; `None` if it hasn't. A
    /// written key counts as read, so such a read isn't recorded.
    fn own_value<R>(&self, key: Key<'_>, f: impl FnOnce(Override<'_>) -> R) -> Option<R> {
        self.writes
            .with(key, |write| write.map(|write| f(write.value())))
    }

    /// Whether the transaction has written a key.
    fn has_written(&self, key: Key<'_>) -> bool {
        self.writes.with(key, |write| write.is_some())
    }

    /// See `EngineTransaction::keys_to_validate`.
    pub(super) fn keys_to_validate(&self) -> usize {
        /// The usual size of a key with its version.
        const RECORD: usize = 64;
        let reads = self.reads.lock();
        let changed = match reads.is_wide() {
            true => self.history.undo_bytes() / RECORD,
            false => 0,
        };
        reads.count() + changed
    }

    /// Records a read of all keys.
    fn note_all(&self) {
        self.reads.lock().range(None, None, Direction::Forward, 0);
    }

    /// Records a read of a key.
    #[inline]
    fn note_key(&self, key: Key<'_>) {
        if self.notes_reads {
            let hash = self.history.hash(key);
            self.reads.lock().key(key.bytes, hash);
        }
    }

    /// Records the range that a scan has read: from its start to where it continues or to `end`,
    /// whichever comes first. If there is neither, it has read all the rest.
    fn note_scan<'p>(
        &self,
        start: Start<'p>,
        end: Option<&'p [u8]>,
        direction: Direction,
        batch: &'p Batch,
        key_position: impl Fn(&'p [u8]) -> &'p [u8],
    ) {
        // Positions of a bag have the number of an object after the key. The read set has whole
        // keys.
        let from = match start {
            Start::Edge => None,
            Start::At(position) | Start::Past(position) => Some(key_position(position)),
        };
        // The scan has read up to where it would continue.
        let next = (!batch.done).then(|| key_position(&batch.resume));
        let to = match (next, end, direction) {
            (Some(next), Some(end), Direction::Forward) => Some(next.min(end)),
            (Some(next), Some(end), Direction::Backward) => Some(next.max(end)),
            _ => next.or(end),
        };
        let passed = batch.len() + batch.skipped;
        self.reads.lock().range(from, to, direction, passed);
    }
}

impl Drop for WorkingSet {
    fn drop(&mut self) {
        /// The usual size of a key with what was written.
        const RECORD: usize = 64;
        let unique = self.unique;
        let mut writes = self.writes.take();
        let mut keys = self.reads.lock().take_keys();
        let count = writes.len() + keys.len();
        // A commit has copied the values into the tables, with their own counts. So release ours in
        // any case.
        let mut free = move || {
            let mut freed = 0;
            for write in writes.by_ref().take(FREED_TOGETHER) {
                undo::each_value(unique, write.value(), &mut raw::release_value);
                freed += 1;
            }
            freed += keys.by_ref().take(FREED_TOGETHER - freed).count();
            freed < FREED_TOGETHER
        };
        // The last reference may go anywhere, such as in the destructor of a host's resource. If
        // there is much, the reaper frees it bit by bit.
        if count <= FREED_INLINE {
            while !free() {}
        } else {
            reaper::bits(RECORD * count, free);
        }
    }
}

/// The index of a view.
struct ViewIndex<I: ?Sized> {
    set: Arc<WorkingSet>,
    /// The snapshot's objects.
    below: Arc<I>,
    /// What the transaction sees: own writes over the snapshot.
    seen: Arc<I>,
}

/// Makes the index of a view over a snapshot, and its working set.
/// If the table is bounded, also returns its objects as of the snapshot's time.
pub(super) fn view(
    snapshot: TableSnapshot,
    seed: &Seed,
) -> (TableIndex, Arc<WorkingSet>, Option<Arc<Bounded>>) {
    let history = Arc::clone(&snapshot.history);
    let below = Overrides::of_history(Arc::clone(&history), snapshot.number(), seed.clone());
    let objects = merged::merge(history.store().objects().index.share(), below);
    let (objects, bounded) = history.store().as_of(objects, snapshot.time());
    let (index, set) = with_reads(WorkingSet::new(history, Some(snapshot), objects, seed));
    (index, set, bounded)
}

/// Makes the index of a view over the current objects, and its working set. The caller has locked
/// the keys that it will use. What the view reads moves no deadline, and is no use of a key.
pub(super) fn present(history: Arc<History>, seed: &Seed) -> (TableIndex, Arc<WorkingSet>) {
    let store = history.store();
    let objects = match &store.bounded {
        Some(bounded) => TableIndex::Unique(Arc::new(bounded.unrecorded())),
        None => store.index.share(),
    };
    with_reads(WorkingSet::new(history, None, objects, seed))
}

/// Makes the index of a view, which shows what the transaction sees, and records what is read.
fn with_reads(set: WorkingSet) -> (TableIndex, Arc<WorkingSet>) {
    let shared = Arc::new(set);
    let set = Arc::clone(&shared);
    let index = match (&shared.below, &shared.seen) {
        (TableIndex::Unique(below), TableIndex::Unique(seen)) => {
            let (below, seen) = (Arc::clone(below), Arc::clone(seen));
            TableIndex::Unique(Arc::new(ViewIndex { set, below, seen }))
        }
        (TableIndex::Multi(below), TableIndex::Multi(seen)) => {
            let (below, seen) = (Arc::clone(below), Arc::clone(seen));
            TableIndex::Multi(Arc::new(ViewIndex { set, below, seen }))
        }
        _ => unreachable!("a merged index is of the kind of its base"),
    };
    (index, shared)
}

impl<I: ?Sized> ViewIndex<I> {
    /// Whether the transaction sees an object under a key. `is_below` tells it of the snapshot.
    fn has_object(&self, key: Key<'_>, is_below: impl FnOnce() -> bool) -> bool {
        let own = self.set.own_value(key, |value| value != Override::Absent);
        own.unwrap_or_else(|| {
            self.set.note_key(key);
            is_below()
        })
    }
}

impl ViewIndex<dyn Unique> {
    /// Replaces the value under a key by what `f` returns for the present one, unless that is
    /// `None`. Returns whether it did.
    fn replace<'v>(
        &self,
        guard: &Guard,
        key: Key<'_>,
        f: impl FnOnce(Option<&[u8]>) -> Option<Override<'v>>,
    ) -> bool {
        let _writing = self.set.writing.lock();
        let (mut short, mut long) = ([0; SHORT_VALUE], Vec::new());
        let own = self.set.writes.value_into(key, &mut short, Some(&mut long));
        // A written key counts as read. If it isn't written after all, or `f` panics, the read is
        // recorded.
        let mut read = UnlessWritten {
            set: &self.set,
            key,
            is_written: own.is_some(),
        };
        let mut below = || self.below.get_into(guard, key, &mut short, Some(&mut long));
        let old = match own.unwrap_or_else(&mut below) {
            Lookup::Absent => None,
            Lookup::Short(len) => Some(&short[..len]),
            Lookup::Long => Some(&long[..]),
        };
        let Some(new) = f(old) else {
            return false;
        };
        // The caller will release the counts of the old value. If that is the snapshot's, retain
        // them first.
        if let (Some(old), None) = (old, own) {
            raw::retain_value(old);
        }
        let before = (old.is_some(), own.is_some());
        self.set.write(key, new, before, old.is_none());
        read.is_written = true;
        true
    }
}

/// The read of a key for a write. Records it when dropped, unless the key was written.
struct UnlessWritten<'s> {
    set: &'s WorkingSet,
    key: Key<'s>,
    is_written: bool,
}

impl Drop for UnlessWritten<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            self.set.note_key(self.key);
        }
    }
}

impl Unique for ViewIndex<dyn Unique> {
    delegate_order!(seen);

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let own = self.set.own_value(key, |value| match value {
            Override::Absent => false,
            Override::Value(value) => {
                out.extend_from_slice(value);
                true
            }
        });
        own.unwrap_or_else(|| {
            self.set.note_key(key);
            self.below.get(guard, key, out)
        })
    }

    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        let mut long = long;
        if let Some(own) = self.set.writes.value_into(key, out, long.as_deref_mut()) {
            return own;
        }
        // Recorded before it is read. A key that is recorded and not read does no harm.
        self.set.note_key(key);
        self.below.get_into(guard, key, out, long)
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.has_object(key, || self.below.contains(guard, key))
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        let mut scratch = Vec::new();
        self.replace(guard, key, |old| {
            let change = f(old, &mut scratch).whole(old, &mut scratch);
            match change {
                Change::Keep => None,
                Change::Remove if old.is_none() => None,
                _ => {
                    let new = change.value(&scratch);
                    Some(new.map_or(Override::Absent, Override::Value))
                }
            }
        })
    }

    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let mut was = Previous::Refused;
        self.replace(guard, key, |old| {
            predicate(old).then(|| {
                was = Previous::of(old.is_some());
                Override::Value(value)
            })
        });
        was
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        let scan = |start: Start<'_>, batch: &mut Batch<'g>| {
            self.seen.scan(guard, start, direction, batch);
        };
        let position = |batch: &Batch<'g>, position: &mut Vec<u8>| {
            let first = self.set.history.key(batch.key(0));
            self.seen.position(first, position);
        };
        self.set.scan_from(start, direction, batch, scan, position);
        // The caller uses nothing beyond `until` (`Batch::until`), so nothing beyond it was read.
        // The end itself counts as read, even if it is excluded.
        let end = match &batch.until {
            Bound::Included(end) | Bound::Excluded(end) => Some(&end[..]),
            Bound::Unbounded => None,
        };
        self.set
            .note_scan(start, end, direction, batch, |position| position);
    }

    fn ranked(&self) -> Option<&dyn Ranked> {
        self.seen.ranked().map(|_| self as &dyn Ranked)
    }
}

/// Counting a range reads all of it.
impl Ranked for ViewIndex<dyn Unique> {
    fn count_between(
        &self,
        guard: &Guard,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        work: &mut usize,
    ) -> Option<Counted> {
        let counted = self.seen.ranked()?.count_between(guard, low, high, work)?;
        // A count depends on every key in the range, so the range counts as read.
        let passed = counted.entries as usize;
        let mut reads = self.set.reads.lock();
        reads.range(low, high, Direction::Forward, passed);
        Some(counted)
    }

    fn nth<'g>(
        &'g self,
        guard: &'g Guard,
        n: u64,
        direction: Direction,
        work: &mut usize,
        batch: &mut Batch<'g>,
    ) -> Option<bool> {
        let there = self.seen.ranked()?.nth(guard, n, direction, work, batch)?;
        // All keys from the edge to the n-th one have been counted.
        let to = there.then(|| batch.key(0));
        self.set.reads.lock().range(None, to, direction, 0);
        Some(there)
    }
}

/// The objects under a key of a view, as a transaction changes them. They are read when they are
/// first needed: to add one after those that the transaction has written, they needn't be.
struct ViewObjects<'v> {
    view: &'v ViewIndex<dyn Multi>,
    guard: &'v Guard,
    key: Key<'v>,
    /// The objects with their numbers, as a version has them.
    list: OnceCell<Vec<u8>>,
    /// The number of the next one, once they have changed.
    next: u64,
    changed: bool,
    /// Whether one was added to the list.
    added: bool,
    /// Whether they are the snapshot's, and not the transaction's own. The first change then
    /// retains their handles.
    below: bool,
}

impl ViewObjects<'_> {
    fn objects(&self) -> BagObjects<'_> {
        let list = self.list.get_or_init(|| match self.below {
            true => self.view.list_below(self.guard, self.key),
            false => self.view.set.own_list(self.key),
        });
        BagObjects::of(Override::Value(list))
    }

    /// Called before each change, except for an append to the objects that the transaction has
    /// stored.
    fn begin(&mut self) {
        if self.changed {
            return;
        }
        let (mut next, below) = (0, self.below);
        for (number, value) in self.objects() {
            next = number + 1;
            if below {
                raw::retain_value(value);
            }
        }
        (self.next, self.changed) = (next, true);
    }
}

impl Objects for ViewObjects<'_> {
    fn count(&self) -> usize {
        self.objects().count()
    }

    fn is_empty(&self) -> bool {
        self.objects().next().is_none()
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        for (ordinal, (_, value)) in self.objects().enumerate() {
            if !f(ordinal, value) {
                return;
            }
        }
    }

    fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
        self.objects().for_each(|(number, value)| f(number, value));
    }

    fn push(&mut self, value: &[u8]) {
        let is_own = !self.changed && !self.below;
        let appended = is_own.then(|| self.view.set.append(self.key, value));
        let number = appended.flatten().unwrap_or_else(|| {
            self.begin();
            self.added = true;
            self.next += 1;
            self.next - 1
        });
        if let Some(list) = self.list.get_mut() {
            undo::push_object(number, value, list);
        }
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        self.begin();
        let (mut kept, mut removed) = (Vec::new(), 0);
        for (number, value) in self.objects() {
            if f(value) {
                removed += 1;
            } else {
                undo::push_object(number, value, &mut kept);
            }
        }
        self.list = OnceCell::from(kept);
        removed
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        // `replace_each` doesn't use the old value.
        let unused: &[u8] = &[];
        self.replace_each(&[(ordinal, unused, value)]);
    }

    fn replace_each(&mut self, changes: &[(usize, &[u8], &[u8])]) {
        self.begin();
        let (mut list, mut changes) = (Vec::new(), changes.iter().peekable());
        for (ordinal, (number, old)) in self.objects().enumerate() {
            let change = changes.next_if(|change| change.0 == ordinal);
            let value = change.map_or(old, |&(_, _, new)| new);
            undo::push_object(number, value, &mut list);
        }
        self.list = OnceCell::from(list);
    }
}

impl ViewIndex<dyn Multi> {
    /// The snapshot's objects under a key, with their numbers.
    fn list_below(&self, guard: &Guard, key: Key<'_>) -> Vec<u8> {
        let mut list = Vec::new();
        let (mut batch, mut from) = (Batch::default(), Vec::new());
        let push = |batch: &Batch<'_>, i, list: &mut Vec<u8>| {
            undo::push_object(self.below.entry_number(batch, i), batch.value(i), list);
        };
        // Mostly they are few, and are read alone.
        if self.below.scan_key(guard, key, &mut batch) {
            (0..batch.len()).for_each(|i| push(&batch, i, &mut list));
            return list;
        }
        self.below.first_position(key, &mut from);
        loop {
            self.below
                .scan(guard, Start::At(&from), Direction::Forward, &mut batch);
            for i in 0..batch.len() {
                // After the objects of the key. The scan has no upper bound.
                if batch.key(i) != key.bytes {
                    return list;
                }
                push(&batch, i, &mut list);
            }
            if batch.done {
                return list;
            }
            std::mem::swap(&mut from, &mut batch.resume);
        }
    }
}

impl Multi for ViewIndex<dyn Multi> {
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        let own = self.set.own_value(key, |value| {
            let objects = BagObjects::of(value);
            objects.map(|(_, object)| values.push(object)).count()
        });
        own.unwrap_or_else(|| {
            self.set.note_key(key);
            self.below.read(guard, key, values)
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.has_object(key, || self.below.contains(guard, key))
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        let _writing = self.set.writing.lock();
        // `below` says that the objects there are still those of the snapshot.
        let below = !self.set.has_written(key);
        // As in `replace`.
        let mut read = UnlessWritten {
            set: &self.set,
            key,
            is_written: !below,
        };
        let mut objects = ViewObjects {
            view: self,
            guard,
            key,
            list: OnceCell::new(),
            next: 0,
            changed: false,
            added: false,
            below,
        };
        f(&mut objects);
        if !objects.changed {
            return;
        }
        // A key without objects has none in the table after the commit.
        let list = objects.list.take().unwrap_or_default();
        let value = match list.is_empty() {
            true => Override::Absent,
            false => Override::Value(&list),
        };
        // Bags have no ranks, so it doesn't matter what was there.
        self.set.write(key, value, (true, !below), objects.added);
        read.is_written = true;
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        let scan = |start: Start<'_>, batch: &mut Batch<'g>| {
            self.seen.scan(guard, start, direction, batch);
        };
        let position = |batch: &Batch<'g>, position: &mut Vec<u8>| {
            self.seen.entry_position(batch, 0, position);
        };
        self.set.scan_from(start, direction, batch, scan, position);
        self.set
            .note_scan(start, None, direction, batch, |position| {
                self.seen.key_position(position)
            });
    }

    fn scan_key<'g>(&'g self, guard: &'g Guard, key: Key<'_>, batch: &mut Batch<'g>) -> bool {
        // The transaction sees the key as the table has it. Its commit checks the key.
        if !self.set.has_written(key) {
            self.set.note_key(key);
            return self.below.scan_key(guard, key, batch);
        }
        self.seen.scan_key(guard, key, batch)
    }

    delegate_positions!(seen);
}

impl<I: Container + ?Sized> Container for ViewIndex<I> {
    /// As of `Unique`.
    fn free_some(&self, _: &Guard, _: usize, _: &mut dyn FnMut(&[u8])) -> bool {
        true
    }

    fn len(&self) -> usize {
        self.set.note_all();
        self.seen.len()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.set.writes.memory()
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

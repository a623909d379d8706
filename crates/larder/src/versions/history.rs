//! The history of a store: the values that its keys had when snapshots were taken.
//!
//! # Definitions
//!
//! - *Live snapshot*: one that has been taken and not been released.
//! - *Pending snapshot*: one that is being taken, and whose number isn't known yet.
//! - *Undo index*: undo records under keys, in the order of the store's own index. In hash order it
//!   is an index of chains (`larder_index::Chains`), in key order a B+-tree.
//!
//! # Invariants (docs/design.md §5.5)
//!
//! * S1: If there is a live or pending snapshot with r < s ≤ c, where r is the number of the key's
//!   newest version, a write with number c adds a version before it can be seen.
//! * S2: So a snapshot s finds its value in the version with the least number that is not less than
//!   s, or, if there is none, in the store.
//! * S5: A version is dropped only if no live or pending snapshot finds its value there (`live`).
//! * S6: The mark of an entry of the store's index is 0 or the number of a snapshot. If that is a
//!   live snapshot of this history, the number of the key's newest version is not less. The same
//!   holds for the mark in a thread's note (`removed_key`).
//! * S7: Each version owns one count of each handle in its value.
//! * S8: The number of a key's newest version, read without the lock of the entry, is a lower
//!   bound.
//! * S9: A write that has put a version reads the clock again. The write and its version then get
//!   the number that the clock shows.
//! * **S10** Under the lock of `live`, `newest` and `oldest` agree with it. A pending snapshot is
//!   the newest.
//!
//! Concerning S6: marks are read and set under the lock of the entry, by a write that has found or
//! put such a version. An index forgets the mark of an entry that is removed. A live snapshot keeps
//! the version (S5). A number is drawn once, for snapshots of one history of each table. So no
//! other history of the index has a snapshot with it. Thus a write that finds the number of the
//! newest snapshot as the mark has nothing to put, and needs no look at the undo index. It compares
//! for equality: the mark of an earlier history would be less, but the version that it stands for
//! is gone.
//!
//! Concerning S9: a write puts no version if the newest one suffices (r ≥ s, or r = c). An earlier
//! write of the key has put that one, and has read the clock again. It was over before this write
//! read the clock. So if its number is not less than the commit's, neither is this write's.
//!
//! A version whose number is about to grow does no harm. Suppose that it is less than s and becomes
//! s or more. Then the write has held its entry's lock since before the cut of the snapshot s. A
//! reader of that snapshot waits for this lock, and looks for versions afterwards.
//!
//! Locks: `live` comes after the lock of any leaf. Nobody pins an epoch while holding `live`, since
//! a pin may run deferred calls, and one of those may release a snapshot.

use super::changed_object::ChangedObject;
use super::clock;
use super::feed::{DeferredWork, TableFeed};
use super::key_locks::{AllLock, KeyLock};
use super::live::{Live, Registered, SnapshotNumbers, PENDING};
use super::undo::{self, OldValue, Override, Versions};
use super::undo_index::{with_record, UndoIndex};
use crate::indexes::Indexes;
use crate::keys;
use crate::objects::BaseStore;
use crate::raw;
use crate::reclaim::{reaper, Reaped};
use crossbeam_utils::CachePadded;
use larder_index::sync::{each_thread, planted, point, Fault, Mutex};
use larder_index::{
    Chains, Change, Guard, HeldFlushes, Hint, Key, Lookup, ReadyMark, Unique, SHORT_VALUE,
};
use larder_term::blob::Handles;
use larder_term::hash::Seed;
use larder_term::object;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// An undo index is large if it has more bytes than a quarter of the table's. That figure is raised
/// to the first of these, or lowered to the second. So is one whose versions lead to more bytes of
/// binaries and of elements out of line than the second. A table that stays watched without a
/// snapshot gets a new history in place of a large one.
const LEAST_LARGE: usize = 64 << 10;
const MOST_LARGE: usize = 16 << 20;

/// An undo index whose keys are walked by look-ups in secondary indexes is large from this number
/// of bytes on: each of these look-ups takes about a microsecond for each of some 600 keys.
const WALKED_LARGE: usize = 16 << 10;

/// An undo index of at most this number of bytes is freed by the thread that drops it.
const FREE_INLINE_BYTES: usize = 4096;

each_thread! {
    /// Whether the thread's last write beside a snapshot has found the snapshot's mark, or was
    /// refused. The next write probably finds it, too. A hint.
    static LAST_WRITE_FOUND_MARK: Cell<bool> = const { Cell::new(false) };
}

/// What a write has read before it preserves the value that it replaces.
#[derive(Clone, Copy)]
pub(crate) struct WriteNumbers<'a> {
    /// The write's number, read off the clock under the lock of its entry.
    pub(crate) number: u64,
    /// A lower bound of the number of the key's newest version: the result of
    /// `read_newest_version`.
    pub(crate) version: u64,
    /// Where the undo index has the place of the key's first version.
    pub(crate) place: &'a Hint<'a>,
}

/// What is freed after a write of the undo index has released its locks: the handles of versions
/// that were dropped, and large garbage of the undo index.
#[derive(Default)]
pub(crate) struct Garbage(Handles);

/// The table of a history.
pub(super) trait WatchedTable: Send + Sync {
    /// Detaches the history from the table, if the table still has it and no batch holds the latch.
    /// A table that nobody follows and no commit writes to becomes a plain one. Any other gets a
    /// new history, if this one is large. Returns whether the table no longer leads to this
    /// history.
    fn unwatch(&self, history: &History, is_followed: bool, guard: &Guard) -> bool;
}

/// The shared state of a table's snapshots.
pub(crate) struct History {
    /// The current objects.
    store: BaseStore,
    /// The undo index; unset before the first version.
    undo: OnceLock<UndoIndex>,
    /// The seed of the hashes of keys. They are used for the undo index, the filter and the key
    /// locks; the latter two also in an ordered_set.
    seed: Seed,
    /// What each snapshot writes. It is apart from what is only read, and from the counts of
    /// references to the history.
    snapshots: CachePadded<Snapshots>,
    /// Whether commits write to the table. A hint: it may be set later than they begin.
    has_commits: AtomicBool,
    /// Whether a look-up by a secondary index has walked the keys that have versions. A hint.
    pub(super) is_walked: AtomicBool,
    /// Whether all writes take key locks. Shared with the histories that replace this one.
    pub(super) all_lock: Arc<AllLock>,
    /// The table. It goes back to its plain store when its last snapshot is released, nobody
    /// follows its feed, and no commits write to it.
    table: Weak<dyn WatchedTable>,
    /// The table's feed.
    feed: Arc<TableFeed>,
    /// The number of this history's store in the feed.
    store_number: u64,
}

/// The snapshots of a history.
struct Snapshots {
    /// The number of the newest live or pending snapshot; 0 if there is none.
    newest: AtomicU64,
    /// A lower bound of the numbers of all live and pending snapshots.
    oldest: AtomicU64,
    live: Mutex<Live>,
}

impl History {
    /// A new history of a table's store.
    pub(super) fn new(
        store: BaseStore,
        seed: Seed,
        table: Weak<dyn WatchedTable>,
        feed: Arc<TableFeed>,
    ) -> Self {
        // If the table has another store by now, the caller discards this history.
        let store_number = feed.store_number();
        Self::with_store_number(store, seed, table, feed, store_number, Arc::default())
    }

    /// A new history of another store of the same table, which has this number in the feed.
    fn of_other_store(&self, store: BaseStore, store_number: u64) -> Self {
        let (table, feed) = (Weak::clone(&self.table), Arc::clone(&self.feed));
        let (seed, all_lock) = (self.seed.clone(), Arc::clone(&self.all_lock));
        Self::with_store_number(store, seed, table, feed, store_number, all_lock)
    }

    fn with_store_number(
        store: BaseStore,
        seed: Seed,
        table: Weak<dyn WatchedTable>,
        feed: Arc<TableFeed>,
        store_number: u64,
        all_lock: Arc<AllLock>,
    ) -> Self {
        History {
            store,
            undo: OnceLock::new(),
            seed,
            snapshots: CachePadded::new(Snapshots {
                newest: AtomicU64::new(0),
                oldest: AtomicU64::new(PENDING),
                live: Mutex::default(),
            }),
            has_commits: AtomicBool::new(false),
            is_walked: AtomicBool::new(false),
            all_lock,
            table,
            feed,
            store_number,
        }
    }

    /// A new history of the same objects.
    pub(super) fn restarted(&self) -> Self {
        self.of_other_store(self.store.share(), self.store_number)
    }

    /// Replaces the table's store by an empty one with these objects, by calling `put`. If somebody
    /// follows the table, or if it `has_key_locks`, the new store is watched, too: `put` gets its
    /// history.
    pub(crate) fn swap_store<R>(
        &self,
        fresh: BaseStore,
        has_key_locks: bool,
        put: impl FnOnce(Option<Arc<History>>) -> Result<R, ()>,
    ) -> Result<R, ()> {
        self.feed.swapping(|store_number, is_followed| {
            // A plain store suffices if nobody needs versions or events.
            if !has_key_locks && !is_followed {
                return put(None);
            }
            // The new store has a history of its own, and the same feed.
            put(Some(Arc::new(self.of_other_store(fresh, store_number))))
        })
    }

    /// The table's feed.
    pub(crate) fn feed(&self) -> &Arc<TableFeed> {
        &self.feed
    }

    /// Pushes the changes of a write with this number to the feed. Called after `preserve`, under
    /// the lock of the entry.
    #[inline]
    pub(super) fn push_events(
        &self,
        number: u64,
        changes: SmallVec<[ChangedObject; 1]>,
        deferred: &mut DeferredWork,
    ) {
        self.feed.push(self.store_number, number, changes, deferred);
    }

    /// The current objects.
    pub(crate) fn store(&self) -> &BaseStore {
        &self.store
    }

    /// A key with its hash.
    pub(super) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        keys::with_hash(&self.seed, self.store.index.is_ordered(), bytes)
    }

    /// Whether a key with this hash has changed since the snapshot with this number.
    pub(super) fn has_changed(
        &self,
        guard: &Guard,
        (key, hash): (Key<'_>, u64),
        number: u64,
    ) -> bool {
        self.undo_of_hash(hash).is_some_and(|undo| {
            with_record(|record| undo.get(guard, key, record) && undo::newest(record) >= number)
        })
    }

    /// Whether the undo index takes much memory.
    pub(super) fn is_large(&self) -> bool {
        // Ordering: Relaxed, a hint.
        let most = match self.is_walked.load(Ordering::Relaxed) {
            true => WALKED_LARGE,
            false => (self.store.memory() / 4).clamp(LEAST_LARGE, MOST_LARGE),
        };
        let outside = self.undo.get().map_or(0, UndoIndex::outside);
        self.undo_bytes() > most || outside > MOST_LARGE
    }

    /// Whether the table is bounded.
    pub(super) fn is_bounded(&self) -> bool {
        self.store.is_bounded()
    }

    /// A key with this hash, as the index takes it.
    #[inline]
    pub(super) fn hashed_key<'k>(&self, bytes: &'k [u8], hash: u64) -> Key<'k> {
        let hash = if self.store.index.is_ordered() {
            0
        } else {
            hash
        };
        Key { bytes, hash }
    }

    /// The lock of a key.
    #[inline]
    pub(super) fn key_lock(&self, key: Key<'_>) -> KeyLock {
        KeyLock::of(self.hash(key))
    }

    /// The undo index, if there are any versions.
    #[inline]
    pub(crate) fn undo(&self) -> Option<&dyn Unique> {
        self.undo.get().map(|undo| &*undo.index)
    }

    /// The undo index of an unordered table, if there are any versions.
    #[inline]
    pub(crate) fn chains(&self) -> Option<&Chains> {
        self.undo.get()?.chains.as_deref()
    }

    /// The undo index, if a key may have a version there.
    #[inline]
    pub(crate) fn undo_of(&self, key: Key<'_>) -> Option<&dyn Unique> {
        self.undo.get()?.for_hash(self.hash(key))
    }

    /// Prefetches the record that a key may have. Returns the key's hash, if there are versions.
    #[inline]
    pub(super) fn prefetch(&self, guard: &Guard, key: Key<'_>) -> Option<u64> {
        let undo = self.undo.get()?;
        let hash = self.hash(key);
        if let Some(index) = undo.for_hash(hash) {
            index.prefetch_entry(guard, key);
        }
        Some(hash)
    }

    /// As `undo_of`, by the result of `prefetch`.
    #[inline]
    pub(super) fn undo_of_hash(&self, hash: u64) -> Option<&dyn Unique> {
        self.undo.get()?.for_hash(hash)
    }

    /// The hash of a key, also of an ordered_set.
    #[inline]
    pub(super) fn hash(&self, key: Key<'_>) -> u64 {
        keys::hash_of(&self.seed, self.store.index.is_ordered(), key)
    }

    /// The memory of the undo index.
    pub(crate) fn undo_bytes(&self) -> usize {
        self.undo.get().map_or(0, UndoIndex::memory)
    }

    /// The number of live and pending snapshots.
    pub(crate) fn snapshot_count(&self) -> usize {
        self.snapshots.live.lock().count()
    }

    /// Registers a pending snapshot. `None` if the history is retired.
    fn register(&self) -> Option<Registered> {
        self.register_in(&mut self.snapshots.live.lock())
    }

    fn register_in(&self, live: &mut Live) -> Option<Registered> {
        if live.is_retired {
            return None;
        }
        // The snapshot's number will be drawn later, so it is at least what the clock shows now.
        // From here on no version is dropped that the snapshot may need.
        let pending = Registered::Pending(clock::now());
        live.add(pending);
        self.publish_bounds(live);
        Some(pending)
    }

    /// Sets the number of a pending snapshot.
    fn assign_number(&self, pending: Registered, number: u64) -> Registered {
        self.assign_number_in(&mut self.snapshots.live.lock(), pending, number)
    }

    fn assign_number_in(&self, live: &mut Live, pending: Registered, number: u64) -> Registered {
        let registered = Registered::Live(number);
        live.remove(pending);
        live.add(registered);
        self.publish_bounds(live);
        registered
    }

    /// Notes that commits write to the table.
    pub(super) fn note_commits(&self) {
        // Ordering: Relaxed, both; a hint. It is rarely stored to, so that the line stays shared.
        if !self.has_commits.load(Ordering::Relaxed) {
            self.has_commits.store(true, Ordering::Relaxed);
        }
    }

    /// Removes a snapshot that is released, or that wasn't taken after all.
    fn release(&self, snapshot: Registered) {
        let guard = larder_index::pin();
        // A flush may run destructors of a host, so none is made before the locks are released.
        let _held = HeldFlushes::begin(&guard);
        let mut live = self.snapshots.live.lock();
        live.remove(snapshot);
        self.publish_bounds(&live);
        self.unwatch_if_idle_in(&mut live, &guard);
    }

    /// Called when the last follower was removed.
    pub(crate) fn unwatch_if_idle(&self, guard: &Guard) {
        let _held = HeldFlushes::begin(guard);
        self.unwatch_if_idle_in(&mut self.snapshots.live.lock(), guard);
    }

    /// Lets the table go back to its plain store if there are neither snapshots nor followers.
    fn unwatch_if_idle_in(&self, live: &mut Live, guard: &Guard) {
        // Another snapshot needs the versions.
        if live.count() > 0 || live.is_retired {
            return;
        }
        // The table would stay watched with this history (see `WatchedTable::unwatch`).
        // Ordering: Relaxed, a hint.
        if self.has_commits.load(Ordering::Relaxed) && !self.is_large() {
            return;
        }
        live.is_retired = match self.table.upgrade() {
            Some(table) => self
                .feed
                .with_followed(|is_followed| table.unwatch(self, is_followed, guard)),
            None => true,
        };
    }

    /// Updates `newest` and `oldest` (S10).
    fn publish_bounds(&self, live: &Live) {
        point();
        // Ordering: SeqCst. Both are stored before the number of a new snapshot is drawn, so a
        // write whose clock is past that number sees them. Between the two stores `oldest` may be
        // too great. Then writes drop versions that were put before the number was drawn. Those
        // have lesser numbers, so the snapshot doesn't need them.
        self.snapshots.newest.store(live.newest(), Ordering::SeqCst);
        point();
        self.snapshots.oldest.store(live.oldest(), Ordering::SeqCst);
    }

    /// Reads the newest version of a key that is about to be written, before the key's entry is
    /// locked. This brings the record into the cache, so that the lock is held for a shorter time.
    /// Returns a lower bound of the newest version's number (S8). If the key has no version, writes
    /// to `place`, which is the default, where its first one will be put.
    #[inline(always)]
    pub(crate) fn read_newest_version<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        place: &mut Hint<'g>,
    ) -> u64 {
        // Ordering: Relaxed; whether there is a snapshot is looked at again under the lock.
        let newest = self.snapshots.newest.load(Ordering::Relaxed);
        if newest == 0 {
            return 0;
        }
        // 0 is always a lower bound. If the entry isn't marked after all, the record is read under
        // the lock.
        if LAST_WRITE_FOUND_MARK.with(Cell::get) || self.was_removed(key, newest) {
            return 0;
        }
        // Assume that the write will find the mark. If it doesn't, `preserve` sets this to `false`.
        LAST_WRITE_FOUND_MARK.with(|marked| marked.set(true));
        self.fetch_newest_version(guard, key, place)
    }

    /// The slow path of `read_newest_version`, while there are snapshots.
    #[inline(never)]
    fn fetch_newest_version<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        place: &mut Hint<'g>,
    ) -> u64 {
        // No write has kept a version yet.
        let Some(undo) = self.undo.get() else {
            return 0;
        };
        let hash = self.hash(key);
        // The filter has no false negatives. So the key has no version, and its record will be
        // inserted: fetch its place.
        if !undo.filter.may_have(hash) {
            match &undo.chains {
                Some(chains) => chains.prefetch_place(hash),
                None => *place = undo.index.prefetch_entry(guard, key),
            }
            return 0;
        }
        // Prefetch the key in the store, too, so that the cache misses of both indexes overlap.
        if undo.chains.is_some() {
            self.store.index.prefetch(guard, &[key]);
        }
        let mut short = [0; SHORT_VALUE];
        match undo.index.get_into(guard, key, &mut short, None) {
            Lookup::Short(len) => undo::newest(&short[..len]),
            // 0 is always a lower bound. A long record is read under the lock.
            Lookup::Absent | Lookup::Long => 0,
        }
    }

    /// Adds a version of the key if a snapshot needs one (S1). The labels in parentheses are the
    /// steps of a write of a watched table, docs/design.md §5.5. Called under the lock of the
    /// entry, before it is changed. Returns the write's number from here on.
    ///
    /// `mark` is the mark of the entry, and is set if it can be (S6). `old` is the value that the
    /// version has. `garbage` is set if the undo index may be written to.
    #[inline(always)]
    pub(crate) fn preserve(
        &self,
        guard: &Guard,
        key: Key<'_>,
        numbers: WriteNumbers<'_>,
        mark: &mut u64,
        garbage: &mut Option<Garbage>,
        old: OldValue<'_>,
    ) -> u64 {
        point();
        // (sw1) The clock has been read. Read the number of the newest snapshot.
        // Ordering: SeqCst, as in `publish_bounds`. If a write sees no snapshot here, it has held
        // its lock since before a later one was registered. The readers of that snapshot wait for
        // the lock, and the write is part of the snapshot.
        let newest = match self.snapshots.newest.load(Ordering::SeqCst) {
            PENDING if planted(Fault::LostVersion) => 0,
            newest => newest,
        };
        // If there is no snapshot, `newest` is 0, and nothing has to be done.
        if newest == 0 {
            return numbers.number;
        }
        // An earlier write has put a version for the newest snapshot (S6).
        if *mark == 0 && self.was_removed(key, newest) {
            *mark = newest;
            return numbers.number;
        }
        let is_marked = *mark == newest;
        LAST_WRITE_FOUND_MARK.with(|marked| marked.set(is_marked));
        if is_marked {
            return numbers.number;
        }
        let now = self.add_version(newest, numbers, guard, key, garbage, old);
        // (sw5) Set the mark. The caller makes the change.
        if now.version >= newest {
            *mark = newest;
        }
        now.number
    }

    /// The mark of entries that a write changes without calling `preserve`: it has nothing to put,
    /// and nobody to tell. The mark is compared under the lock of the entry, before it is changed.
    ///
    /// It is the number of the newest snapshot. So the key has a version that is not older (S6). No
    /// other write of the key has changed that since the mark was read, as it would need the lock.
    /// The snapshots before the newest one find that version or one before it.
    ///
    /// The number of such a write is the clock at the load of `newest`. If a snapshot is registered
    /// after that, its number is greater, so the write is part of it. If a follower is added after
    /// the load of the count, its events begin after this write. `newest` is loaded before the
    /// number of followers. Other writes have the same order: `preserve`, then `is_followed`.
    #[inline(always)]
    pub(super) fn preserved_mark(&self) -> ReadyMark<'_> {
        if planted(Fault::LostVersion) {
            return ReadyMark::none();
        }
        ReadyMark::new(&self.snapshots.newest, self.feed.follower_count())
    }

    /// Whether an entry has the `preserved_mark`.
    #[inline(always)]
    pub(super) fn is_preserved(&self, mark: u64) -> bool {
        self.preserved_mark().is(mark)
    }

    /// Makes the undo index, or returns the one that another writer has made meanwhile.
    #[cold]
    fn make_undo(&self) -> &UndoIndex {
        // Make it before it is set, so that no other writer waits for its construction.
        let mut made = Some(UndoIndex::new(&self.store));
        self.undo.get_or_init(|| {
            made.take()
                .unwrap_or_else(|| unreachable!("it is taken once"))
        })
    }

    /// The slow path of `preserve`: there is a snapshot, and the entry doesn't have its mark.
    /// Returns the numbers of the write and of the newest version from here on.
    #[inline(never)]
    fn add_version<'a>(
        &self,
        newest: u64,
        numbers: WriteNumbers<'a>,
        guard: &Guard,
        key: Key<'_>,
        garbage: &mut Option<Garbage>,
        old: OldValue<'_>,
    ) -> WriteNumbers<'a> {
        let number = numbers.number;
        // (sw2) If the newest version is as new as the newest snapshot, or as this write, it
        // serves.
        if numbers.version >= newest.min(number) {
            return numbers;
        }
        let undo = self.undo.get().unwrap_or_else(|| self.make_undo());
        // (sw3) The filter says that this is the first version of the key: put a record with it.
        if !undo.filter.set(self.hash(key)) {
            old.with(|old| {
                undo.add_outside(old);
                undo.put_first(guard, key, (number, old), numbers.place);
            });
            return Self::renumber_if_clock_advanced(undo, guard, key, numbers);
        }
        // Otherwise make a new record: the new version, and then those that are still needed.
        let garbage = garbage.get_or_insert_default();
        let mut version = 0;
        let mut add = |record: Option<&[u8]>, scratch: &mut Vec<u8>| {
            let record = record.unwrap_or_default();
            version = undo::newest(record);
            // The lower bound was too low: the newest version serves after all.
            if version >= newest.min(number) {
                return Change::Keep;
            }
            old.with(|old| {
                undo.add_outside(old);
                undo::push(number, old, scratch);
            });
            // Drop the versions that no snapshot can need any more (S5).
            let snapshots = self.snapshots_with(record);
            let mut versions = Versions::of(record).peekable();
            while let Some((version_number, value)) = versions.next() {
                let before = versions.peek().map_or(0, |&(number, _)| number);
                if snapshots.need(before, version_number) {
                    undo::push(version_number, value, scratch);
                } else {
                    undo.subtract_outside(value);
                    self.values(value, &mut |value| {
                        object::note_handles(value, &mut garbage.0);
                    });
                }
            }
            Change::Put
        };
        if with_record(|scratch| undo.index.update_with(guard, key, scratch, &mut add)) {
            return Self::renumber_if_clock_advanced(undo, guard, key, numbers);
        }
        WriteNumbers { version, ..numbers }
    }

    /// The snapshots that may need versions of this record, to which a write adds one. Called under
    /// the lock of the entry, after the clock was read.
    fn snapshots_with(&self, record: &[u8]) -> SnapshotNumbers {
        // Ordering: SeqCst, as in `publish_bounds`. If the write has read a clock that is past a
        // snapshot's number, it sees here that the snapshot is registered.
        let oldest = self.snapshots.oldest.load(Ordering::SeqCst);
        // Of several versions, some may be those of snapshots that have ended.
        match Versions::of(record).nth(1) {
            Some((number, _)) if number >= oldest => self.snapshots.live.lock().numbers(),
            _ => SnapshotNumbers::at_least(oldest),
        }
    }

    /// (sw4) Reads the clock again after a version with this number was put (S9). If the clock has
    /// advanced, gives the version the new number. Returns the numbers of both.
    fn renumber_if_clock_advanced<'a>(
        undo: &UndoIndex,
        guard: &Guard,
        key: Key<'_>,
        numbers: WriteNumbers<'a>,
    ) -> WriteNumbers<'a> {
        let number = numbers.number;
        let now = clock::of_kept_write();
        // The clock has advanced between the first look and the put. A snapshot in between needs
        // the version under the later number.
        let mut version = number;
        if now != number && !planted(Fault::OneLook) {
            version = now;
            with_record(|scratch| {
                undo.index
                    .update_with(guard, key, scratch, &mut |record, scratch| {
                        scratch.extend_from_slice(record.unwrap_or_default());
                        undo::renumber(now, scratch);
                        Change::Put
                    });
            });
        }
        // Both have one number.
        WriteNumbers {
            number: version,
            version,
            ..numbers
        }
    }

    /// Ends a write of the undo index after it has released its locks: puts the handles of dropped
    /// versions on the deferred release list, and frees large garbage of the undo index.
    pub(crate) fn end_write(&self, guard: &Guard, Garbage(dropped): Garbage) {
        if !dropped.is_empty() {
            reaper::release_later(guard, |list| raw::own_counts(dropped, list));
        }
        if let Some(undo) = self.undo() {
            undo.flush_postponed(guard);
        }
    }

    /// Calls `f` with the value of each object in a version.
    pub(super) fn values(&self, version: Override<'_>, f: &mut dyn FnMut(&[u8])) {
        undo::each_value(self.store.index.is_unique(), version, f);
    }
}

impl Drop for History {
    fn drop(&mut self) {
        // If the store was replaced, its objects were kept for the snapshots until now.
        let objects = self.store.objects();
        if objects.is_last() && objects.memory() > FREE_INLINE_BYTES {
            reaper::free_unread(objects.share());
        }
        // A reader of the versions holds the history, so there are no readers any more.
        let Some(undo) = self.undo.take() else {
            return;
        };
        // Small histories are freed at once. For large ones the reaper does it bit by bit.
        let unique = self.store.index.is_unique();
        let bytes = undo.index.memory();
        let free = move || {
            undo.index
                .free_some(&larder_index::pin(), 64, &mut |record| {
                    for (_, version) in Versions::of(record) {
                        undo::each_value(unique, version, &mut raw::release_value);
                    }
                })
        };
        if bytes <= FREE_INLINE_BYTES {
            while !free() {}
        } else {
            reaper::bits(bytes, free);
        }
    }
}

/// A snapshot of one table: its history and its number. It is released when dropped.
pub(crate) struct TableSnapshot {
    pub(crate) history: Arc<History>,
    registered: Registered,
    /// The time of the snapshot, for a bounded table. Objects that have expired by then are not
    /// part of it.
    time: u64,
    /// The table's secondary indexes, once the cut is done.
    pub(super) indexes: Option<Arc<Indexes>>,
}

impl TableSnapshot {
    /// Begins to take a snapshot. From here on writes preserve old values. `None` if the history is
    /// over.
    pub(crate) fn pending(history: Arc<History>) -> Option<TableSnapshot> {
        let registered = history.register()?;
        Some(TableSnapshot {
            history,
            registered,
            time: 0,
            indexes: None,
        })
    }

    /// Takes a snapshot of one table: registers it, draws its number, which `draw` returns with the
    /// time of the cut, and sets it, all under one lock. `None` if the history is over.
    pub(crate) fn taken(
        history: Arc<History>,
        draw: impl FnOnce() -> (u64, u64),
    ) -> Option<TableSnapshot> {
        let mut live = history.snapshots.live.lock();
        let pending = history.register_in(&mut live)?;
        let (number, time) = draw();
        let registered = history.assign_number_in(&mut live, pending, number);
        drop(live);
        Some(TableSnapshot {
            history,
            registered,
            time,
            indexes: None,
        })
    }

    /// Sets the number that was drawn at the cut, and the time of the cut.
    pub(crate) fn assign_number(&mut self, number: u64, time: u64) {
        self.time = time;
        self.registered = self.history.assign_number(self.registered, number);
    }

    /// The time at which it was taken.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// The snapshot's number.
    pub(crate) fn number(&self) -> u64 {
        self.registered.number()
    }
}

impl Drop for TableSnapshot {
    fn drop(&mut self) {
        self.history.release(self.registered);
    }
}

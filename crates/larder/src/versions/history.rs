//! The history of a store: what was under its keys when snapshots were taken.
//!
//! # Definitions
//!
//! - *Live snapshot*: one that has been taken and not released. *Pending*: one that is being taken,
//!   whose number is not known yet.
//! - *Undo index*: undo records under keys, in the order of the store's own index.
//!
//! # Invariants
//!
//! 1. Let a write have number c, and let r be the number of the newest version of its key. If there
//!    is a live or pending snapshot with r < s ≤ c, the write adds a version with number c before
//!    it can be seen. So each snapshot finds what it saw: in the version with the least number that
//!    is not less than its own, or, if there is none, in the store.
//! 2. A version is dropped only if no live or pending snapshot can have a number as small as its
//!    own.
//! 3. Each version owns one count of each handle in its value.
//! 4. `newest` and `oldest` are those of `live`, for whoever has its lock. A pending snapshot is
//!    the newest.
//! 5. The versions of a key are written under the lock of its entry, and only become more; their
//!    numbers only grow. So the number of the newest, read before, is a lower bound.
//! 6. The clock is read again when a version was put, and write and version get the number that it
//!    shows then, before the change can be seen. So if a commit has drawn a number, and then finds
//!    no version of a write that its snapshot doesn't have, the write's number is not less than the
//!    commit's. The writes of a commit or of a list keep their number.
//!
//! A version whose number is about to grow misleads nobody. Let the number be less than s, and
//! become s or more. Then the write had its entry's lock before the cut of the snapshot s. Whoever
//! reads the entry for that snapshot waits for the lock, and looks at versions afterwards.
//!
//! To 6: a write that puts no version has found one that serves (r ≥ s, or r = c). An earlier write
//! of the key has put it, for which (6) holds, and was over when the clock was read for this one.
//!
//! Locks: `live` after any leaf's. Nobody pins an epoch while it holds `live`, as a pin may run
//! deferred calls, and one of those may release a snapshot.

use super::clock;
use super::feed::{self, Aftermath, Feed};
use super::filter::Filter;
use super::key_locks::KeyLock;
use super::undo::{self, Listed, Override, Versions};
use crate::index::Index;
use crate::raw;
use crate::reclaim::reaper;
use crate::store::{Layers, Store};
use crate::table::Table;
use larder_index::sync::{planted, point, Fault, Mutex};
use larder_index::{with_spare, Change, Guard, Key, Lookup, Unique, SHORT};
use larder_term::blob::Handles;
use larder_term::hash::Seed;
use larder_term::object;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The number of a pending snapshot.
const PENDING: u64 = u64::MAX;

/// Where commits write, an undo index of more bytes than this goes when no snapshot needs it.
const LARGE: usize = 1 << 16;

/// An undo index of at most this many bytes is freed by whoever drops it.
const SMALL: usize = 4096;

thread_local! {
    static RECORD: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// Calls `f` with an empty buffer of the thread's.
pub(super) fn with_record<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let is_small = |record: &Vec<u8>| record.capacity() <= SMALL;
    with_spare(&RECORD, is_small, |record| {
        record.clear();
        f(record)
    })
}

/// Undo records, and which keys have none.
struct Undo {
    index: Arc<dyn Unique>,
    filter: Filter,
}

/// What a table's snapshots share.
pub(crate) struct History {
    /// The objects as they are now.
    store: Store,
    /// None before the first version.
    undo: OnceLock<Undo>,
    /// How keys are hashed: for the undo index, and, in an ordered_set too, for the filter and the
    /// key locks.
    seed: Seed,
    /// The newest live or pending snapshot's number; 0 if there is none.
    newest: AtomicU64,
    /// The oldest live snapshot's.
    oldest: AtomicU64,
    live: Mutex<Live>,
    /// The table, which goes back to the plain store when its last snapshot is released and nobody
    /// follows its feed.
    pub(super) table: Weak<Table>,
    /// The table's.
    feed: Arc<Feed>,
    /// By which the feed knows the writers of this history's store.
    nth: u64,
}

/// A live snapshot's number, or a pending one's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Registered {
    /// `PENDING` while it is being taken.
    number: u64,
    /// The number, or one that it will not be less than.
    at_least: u64,
}

/// Under the lock of a history.
#[derive(Default)]
struct Live {
    snapshots: Vec<Registered>,
    /// The table has gone back to its plain store: nobody takes a snapshot of this one any more.
    over: bool,
}

impl History {
    /// A history that begins now, of a table's store.
    pub(crate) fn new(store: Store, table: &Arc<Table>) -> Self {
        let feed = Arc::clone(table.feed());
        // The store was loaded before: if the table has another by now, this history isn't used.
        let nth = feed.store();
        Self::begin(
            store,
            table.seed.clone(),
            Arc::downgrade(table),
            (feed, nth),
        )
    }

    /// A history that begins now, of a store of the same table. The feed knows its writers by this
    /// number.
    fn anew(&self, store: Store, nth: u64) -> Self {
        let (table, feed) = (Weak::clone(&self.table), Arc::clone(&self.feed));
        Self::begin(store, self.seed.clone(), table, (feed, nth))
    }

    fn begin(store: Store, seed: Seed, table: Weak<Table>, (feed, nth): (Arc<Feed>, u64)) -> Self {
        History {
            store,
            undo: OnceLock::new(),
            seed,
            newest: AtomicU64::new(0),
            oldest: AtomicU64::new(PENDING),
            live: Mutex::default(),
            table,
            feed,
            nth,
        }
    }

    /// A history of the same objects, which begins now.
    pub(super) fn begin_anew(&self) -> Self {
        self.anew(self.store.plain(), self.nth)
    }

    /// Puts an empty store in the place of the table's, whose history this is, by way of `put`. If
    /// somebody follows the table, or with `locks`, the new one is watched, too.
    pub(crate) fn swap_store<R>(
        &self,
        fresh: Store,
        locks: bool,
        put: impl FnOnce(Store) -> Result<R, ()>,
    ) -> Result<R, ()> {
        self.feed.swapping(|nth, is_followed| {
            if !locks && !is_followed {
                return put(fresh);
            }
            let history = Arc::new(self.anew(fresh.plain(), nth));
            put(fresh.through(Layers {
                history: Some(history),
                locks,
                ..fresh.layers().clone()
            }))
        })
    }

    /// The table's feed.
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Tells what a write with this number changes, if somebody follows the table. Called after
    /// `preserve`, under the lock of the entry.
    #[inline]
    pub(super) fn tell(
        &self,
        number: u64,
        changes: SmallVec<[feed::Change; 1]>,
        aftermath: &mut Aftermath,
    ) {
        self.feed.push((self.nth, number), changes, aftermath);
    }

    /// The objects as they are now.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// A key with its hash.
    pub(super) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        let hash = if self.store.index.is_ordered() {
            0
        } else {
            self.seed.hash(bytes)
        };
        Key { bytes, hash }
    }

    /// Whether a key has changed since the snapshot with this number.
    pub(super) fn has_changed(&self, guard: &Guard, key: Key<'_>, number: u64) -> bool {
        self.undo_of(key).is_some_and(|undo| {
            with_record(|record| undo.get(guard, key, record) && undo::newest(record) >= number)
        })
    }

    /// Whether what is kept takes much memory.
    pub(super) fn is_large(&self) -> bool {
        self.kept() > LARGE
    }

    /// The lock of a key.
    #[inline]
    pub(super) fn key_lock(&self, key: Key<'_>) -> KeyLock {
        KeyLock::of(self.hash(key))
    }

    /// The undo index, if there is a version.
    #[inline]
    pub(crate) fn undo(&self) -> Option<&dyn Unique> {
        self.undo.get().map(|undo| &*undo.index)
    }

    /// The undo index, if a key may have a version there.
    #[inline]
    pub(crate) fn undo_of(&self, key: Key<'_>) -> Option<&dyn Unique> {
        let undo = self.undo.get()?;
        undo.filter.may_have(self.hash(key)).then_some(&*undo.index)
    }

    /// A hash of a key, also of one of an ordered_set.
    #[inline]
    fn hash(&self, key: Key<'_>) -> u64 {
        if self.store.index.is_ordered() {
            self.seed.hash(key.bytes)
        } else {
            key.hash
        }
    }

    /// Bytes that are kept for snapshots.
    pub(crate) fn kept(&self) -> usize {
        self.undo
            .get()
            .map_or(0, |undo| undo.index.memory() + undo.filter.memory())
    }

    /// How many snapshots are live or pending.
    pub(crate) fn snapshots(&self) -> usize {
        self.live.lock().snapshots.len()
    }

    /// Registers a pending snapshot. None if the history is over.
    fn register(&self) -> Option<Registered> {
        let mut live = self.live.lock();
        if live.over {
            return None;
        }
        // From now on no version is dropped that it may need: its number is drawn later.
        let pending = Registered {
            number: PENDING,
            at_least: clock::now(),
        };
        live.snapshots.push(pending);
        self.note(&live);
        Some(pending)
    }

    /// A pending snapshot has its number.
    fn settle(&self, pending: Registered, number: u64) -> Registered {
        let settled = Registered {
            number,
            at_least: number,
        };
        let mut live = self.live.lock();
        if let Some(own) = live.snapshots.iter_mut().find(|own| **own == pending) {
            *own = settled;
        }
        self.note(&live);
        settled
    }

    /// A snapshot is released, or was not taken after all.
    fn release(&self, snapshot: Registered) {
        let guard = larder_index::pin();
        let mut live = self.live.lock();
        if let Some(i) = live.snapshots.iter().position(|&own| own == snapshot) {
            live.snapshots.swap_remove(i);
        }
        self.note(&live);
        self.unwatch_if_idle(&mut live, &guard);
    }

    /// The last follower has gone.
    pub(super) fn end_if_idle(&self, guard: &Guard) {
        self.unwatch_if_idle(&mut self.live.lock(), guard);
    }

    /// Has the table go back to its plain store if there is no snapshot and nobody follows.
    fn unwatch_if_idle(&self, live: &mut Live, guard: &Guard) {
        if !live.snapshots.is_empty() || live.over {
            return;
        }
        live.over = match self.table.upgrade() {
            Some(table) => self
                .feed
                .with_followed(|is_followed| table.unwatch(self, is_followed, guard)),
            None => true,
        };
    }

    /// Invariant 4.
    fn note(&self, live: &Live) {
        let numbers = live.snapshots.iter().map(|own| own.number);
        let bounds = live.snapshots.iter().map(|own| own.at_least);
        point();
        // Ordering: SeqCst. `newest` is set before the clock is moved on, and a write reads it
        // under its leaf's lock (see `clock`). `oldest` only lags behind what could be dropped.
        self.newest
            .store(numbers.max().unwrap_or(0), Ordering::SeqCst);
        self.oldest
            .store(bounds.min().unwrap_or(PENDING), Ordering::SeqCst);
    }

    /// Looks at the versions of a key that is about to be written, before its entry is locked: so
    /// that what is looked at then is near. A lower bound of the number of the newest.
    #[inline]
    pub(crate) fn look_ahead(&self, guard: &Guard, key: Key<'_>) -> u64 {
        // Ordering: Relaxed; whether there is a snapshot is looked at again under the lock.
        if self.newest.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.newest_version(guard, key)
    }

    fn newest_version(&self, guard: &Guard, key: Key<'_>) -> u64 {
        let Some(undo) = self.undo.get() else {
            return 0;
        };
        let hash = self.hash(key);
        if !undo.filter.may_have(hash) {
            if !self.store.index.is_ordered() {
                undo.index.prefetch(guard, &[key]);
            }
            return 0;
        }
        if !self.store.index.is_ordered() {
            // The waits for both indexes' memory overlap.
            self.store.index.prefetch(guard, &[key]);
        }
        let mut short = [0; SHORT];
        match undo.index.get_short(guard, key, &mut short, None) {
            Lookup::Short(len) => undo::newest(&short[..len]),
            // A long record is looked at under the lock.
            Lookup::Absent | Lookup::Long => 0,
        }
    }

    /// Adds a version under the key if a snapshot needs one (invariant 1). Called under the lock of
    /// the entry, before it is changed. `number` was read under the lock, before; `ahead` is what
    /// `look_ahead` said. `write` appends the version with the number it is given. The handles of
    /// versions that nobody needs any more go to `dropped`. The write's number from here on.
    #[inline]
    pub(crate) fn preserve(
        &self,
        guard: &Guard,
        key: Key<'_>,
        (number, ahead): (u64, u64),
        dropped: &mut Handles,
        write: &mut dyn FnMut(u64, &mut Vec<u8>),
    ) -> u64 {
        point();
        // Ordering: SeqCst, as in `note`. A write that sees no snapshot has had its lock since
        // before one was pending, so that snapshot's readers wait for the lock, and it is part of
        // what they see.
        let newest = match self.newest.load(Ordering::SeqCst) {
            PENDING if planted(Fault::LostVersion) => 0,
            newest => newest,
        };
        // Invariant 5: of no snapshot, `newest` is 0.
        if ahead < newest.min(number) {
            return self.preserve_for((newest, number), guard, key, dropped, write);
        }
        number
    }

    /// Makes the undo index, or finds the one that another writer has made meanwhile.
    #[cold]
    fn make_undo(&self) -> &Undo {
        // Made before it is set, so that nobody waits for it.
        let mut made = Some(Undo {
            index: Index::keyed_under_locks(self.store.index.is_ordered(), &self.seed),
            filter: Filter::new(self.store.count.get()),
        });
        self.undo.get_or_init(|| {
            made.take()
                .unwrap_or_else(|| unreachable!("it is taken once"))
        })
    }

    fn preserve_for(
        &self,
        (newest, number): (u64, u64),
        guard: &Guard,
        key: Key<'_>,
        dropped: &mut Handles,
        write: &mut dyn FnMut(u64, &mut Vec<u8>),
    ) -> u64 {
        let undo = self.undo.get().unwrap_or_else(|| self.make_undo());
        if !undo.filter.set(self.hash(key)) {
            // The key's first version.
            with_record(|record| {
                write(number, record);
                undo.index.put(guard, key, record, &mut |_| true);
            });
            return Self::look_again(undo, guard, key, number);
        }
        let mut add = |record: Option<&[u8]>, scratch: &mut Vec<u8>| {
            let record = record.unwrap_or_default();
            if undo::newest(record) >= newest.min(number) {
                return Change::Keep;
            }
            write(number, scratch);
            // Ordering: SeqCst, as in `note`: whoever reads the clock behind a snapshot's number
            // reads here that the snapshot is registered.
            let oldest = self.oldest.load(Ordering::SeqCst);
            for (own, value) in Versions::of(record) {
                if own >= oldest {
                    undo::push(own, value, scratch);
                } else {
                    self.values(value, &mut |value| object::note_handles(value, dropped));
                }
            }
            Change::PutScratch
        };
        if with_record(|scratch| undo.index.update_with(guard, key, scratch, &mut add)) {
            return Self::look_again(undo, guard, key, number);
        }
        number
    }

    /// Reads the clock again, as a version with this number was put (invariant 6). If it was moved
    /// on, the version gets the number that it shows now.
    fn look_again(undo: &Undo, guard: &Guard, key: Key<'_>, number: u64) -> u64 {
        let now = clock::of_kept_write();
        if now != number && !planted(Fault::OneLook) {
            with_record(|scratch| {
                undo.index
                    .update_with(guard, key, scratch, &mut |record, scratch| {
                        scratch.extend_from_slice(record.unwrap_or_default());
                        undo::renumber(now, scratch);
                        Change::PutScratch
                    });
            });
            return now;
        }
        number
    }

    /// Ends a write, when its locks are free: gives back the counts of versions that were dropped,
    /// once no reader looks at them, and frees what is large.
    #[inline]
    pub(crate) fn end_write(&self, guard: &Guard, dropped: Handles) {
        if !dropped.is_empty() {
            reaper::release_later(guard, |list| raw::own_counts(dropped, list));
        }
        if let Some(undo) = self.undo() {
            undo.free_large(guard);
        }
    }

    /// Calls `f` with each object's value in a version.
    pub(super) fn values(&self, version: Override<'_>, f: &mut dyn FnMut(&[u8])) {
        each_value(self.store.index.is_unique(), version, f);
    }
}

/// Calls `f` with each object's value in a version of a set or ordered_set (`unique`) or of a bag.
pub(super) fn each_value(unique: bool, version: Override<'_>, f: &mut dyn FnMut(&[u8])) {
    match version {
        Override::Absent => {}
        Override::Value(value) if unique => f(value),
        list @ Override::Value(_) => Listed::of(list).for_each(|(_, value)| f(value)),
    }
}

impl Drop for History {
    fn drop(&mut self) {
        // The table was emptied or deleted: its objects went on for the snapshots.
        if self.store.is_last() && self.store.memory() > SMALL {
            reaper::free_unread(self.store.plain());
        }
        // Whoever could read the versions held the history, or has gone.
        let Some(undo) = self.undo.take() else {
            return;
        };
        let unique = self.store.index.is_unique();
        let bytes = undo.index.memory();
        let free = move || {
            undo.index
                .free_some(&larder_index::pin(), 64, &mut |record| {
                    for (_, version) in Versions::of(record) {
                        each_value(unique, version, &mut raw::release_value);
                    }
                })
        };
        if bytes <= SMALL {
            while !free() {}
        } else {
            reaper::bits(bytes, free);
        }
    }
}

/// A snapshot of one table: its history, and its number. Released when dropped.
pub(crate) struct Snapshot {
    pub(crate) history: Arc<History>,
    registered: Registered,
    /// The time, of a bounded table: what is expired then is not part of it.
    time: u64,
}

impl Snapshot {
    /// Begins to take a snapshot. From here on writes keep what they change. None if the history is
    /// over.
    pub(crate) fn pending(history: Arc<History>) -> Option<Snapshot> {
        let registered = history.register()?;
        Some(Snapshot {
            history,
            registered,
            time: 0,
        })
    }

    /// The snapshot is of the moment at which this number was drawn.
    pub(crate) fn settle(&mut self, number: u64, time: u64) {
        self.time = time;
        self.registered = self.history.settle(self.registered, number);
    }

    /// The time at which it was taken.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// The snapshot's number.
    pub(crate) fn number(&self) -> u64 {
        self.registered.number
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.history.release(self.registered);
    }
}

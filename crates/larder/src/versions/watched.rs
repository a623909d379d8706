//! The index of a table that has snapshots or subscribers. It is a layer over the plain index that
//! preserves the values that writes replace, and tells subscribers about changes.
//!
//! ```text
//!  plain     table → store ──────────────────────────────→ index
//!  watched   table → store → WatchedIndex → History → objects → the same index
//!                                             └→ undo index
//! ```
//!
//! Steps of a write:
//!
//! 1. Take the key's lock, if commits write to the table. If there is a snapshot, read the number
//!    of the key's newest version (`History::read_newest_version`). This fetches the undo record
//!    into the cache before the leaf is locked. The number is a lower bound from then on.
//! 2. Lock the entry's leaf, and call the write's own closure. It revalidates the state word and
//!    decides.
//! 3. If it makes a change, preserve the old value in the undo index (sw1 to sw5) and tell the
//!    followers, still under the leaf's lock. Then make the change. So a reader of a snapshot that
//!    sees the change also finds the value from before.
//! 4. The leaf is unlocked. Free dropped versions and wake followers. Then release the key's lock.
//!
//! Step 3 reads three things, in this order. A subscription that begins with a snapshot does the
//! reverse, so no change is missed between the two (FD3 of `feed`):
//!
//! ```text
//!        a write, under the leaf's lock               a subscription with a snapshot
//!  3a    read the clock: the write's number           add the follower
//!  3b    look for snapshots: preserve the old value   register the snapshot
//!  3c    look for followers: push the events          increment the clock
//! ```
//!
//! A table becomes watched, and plain again, by an exchange of its state word. A write that began
//! before and has not revalidated yet restarts. A write that has revalidated holds the lock of its
//! leaf, and is part of every snapshot that is taken after the exchange (see `history`).

use super::changed_object::{Cause, ChangedObject};
use super::clock;
use super::feed::DeferredWork;
use super::history::{Garbage, History, WriteNumbers};
use super::key_locks::WriteLock;
use super::undo::OldValue;
use crate::bounds::{object_of, take_cause, ChangeCause};
use crate::delegate::{delegate_container, delegate_multi, delegate_unique};
use crate::index::TableIndex;
use crate::noted::{NotedObjects, Notes};
use larder_index::sync::{planted, Fault};
use larder_index::{
    Batch, Change, Container, Guard, HeldFlushes, Hint, Key, Lookup, Multi, Objects, Predicate,
    Preparation, Previous, ReadyMark, ShortValues, Unique, Updater, Values, SHORT_VALUE,
};
use smallvec::{smallvec, SmallVec};
use std::sync::Arc;

/// The index of a watched table.
struct WatchedIndex<I: ?Sized> {
    index: Arc<I>,
    history: Arc<History>,
    /// Whether commits write to the table, so that operations on one key use the key's lock (see
    /// `key_locks`).
    locks: bool,
    /// Whether values have stamps (see `bounds`).
    bounded: bool,
}

/// Makes a watched index over the index of a history's objects. `locks` says whether operations on
/// one key use the key's lock.
pub(crate) fn wrap_watched(index: TableIndex, history: &Arc<History>, locks: bool) -> TableIndex {
    let history = Arc::clone(history);
    let bounded = history.is_bounded();
    match index {
        TableIndex::Unique(index) => TableIndex::Unique(Arc::new(WatchedIndex {
            index,
            history,
            locks,
            bounded,
        })),
        TableIndex::Multi(index) => TableIndex::Multi(Arc::new(WatchedIndex {
            index,
            history,
            locks,
            bounded,
        })),
    }
}

impl<I: ?Sized> WatchedIndex<I> {
    /// Takes the lock of a key that is about to be written, if keys have locks. While it is held,
    /// flushes are held back: they may run destructors of a host, which may use this key.
    #[inline(always)]
    fn lock<'g>(&self, guard: &'g Guard, key: Key<'_>) -> Option<(WriteLock, HeldFlushes<'g>)> {
        self.locks.then(|| self.lock_key(guard, key))
    }

    /// The slow path of `lock`, which may wait.
    #[inline(never)]
    fn lock_key<'g>(&self, guard: &'g Guard, key: Key<'_>) -> (WriteLock, HeldFlushes<'g>) {
        let held = HeldFlushes::begin(guard);
        // The lock is dropped first.
        (self.history.key_lock(key).write(), held)
    }

    /// Reads a key, and repeats the read if a commit is writing the key.
    #[inline]
    fn retry_while_committing<R>(&self, key: Key<'_>, mut read: impl FnMut() -> R) -> R {
        loop {
            let result = read();
            if !self.locks {
                return result;
            }
            // Check the lock after the read. If a commit holds it, the read may have seen the
            // commit's write of this key, while other keys are not written yet.
            let lock = self.history.key_lock(key);
            if !lock.is_committing() || planted(Fault::HalfCommit) {
                return result;
            }
            lock.wait_for_commit();
        }
    }
}

/// The state of a write, and what it has to do after the leaf is unlocked.
struct PendingEffects<'h> {
    /// The result of `History::read_newest_version`.
    version_bound: u64,
    /// Where the undo index has the place of the key's first version.
    place: &'h Hint<'h>,
    /// The clock before the lock was taken; only for a planted fault.
    early: u64,
    /// What is freed after the unlock.
    garbage: Option<Garbage>,
    /// Followers to be woken up, and events that were dropped.
    feed: Option<DeferredWork>,
}

impl<'h> PendingEffects<'h> {
    /// The state of a write of this key that begins now. `place` is the default.
    #[inline]
    fn begin(
        history: &'h History,
        guard: &'h Guard,
        key: Key<'_>,
        place: &'h mut Hint<'h>,
    ) -> Self {
        PendingEffects {
            version_bound: history.read_newest_version(guard, key, place),
            place,
            early: match planted(Fault::EarlyClock) {
                true => clock::of_write(),
                false => 0,
            },
            garbage: None,
            feed: None,
        }
    }

    /// Step 3a: reads the clock, under the lock of the leaf.
    #[inline(always)]
    fn write_numbers(&self) -> WriteNumbers<'h> {
        WriteNumbers {
            number: match planted(Fault::EarlyClock) {
                true => self.early,
                false => clock::of_write(),
            },
            version: self.version_bound,
            place: self.place,
        }
    }

    /// Step 4, after the leaf is unlocked. The key's lock is still held.
    #[inline(always)]
    fn finish(self, history: &History, guard: &Guard) {
        if self.garbage.is_some() || self.feed.is_some() {
            self.finish_effects(history, guard);
        }
    }

    /// The slow path of `finish`.
    #[inline(never)]
    fn finish_effects(self, history: &History, guard: &Guard) {
        if let Some(garbage) = self.garbage {
            history.end_write(guard, garbage);
        }
        if let Some(feed) = self.feed {
            history.feed().wake_followers(feed);
        }
    }
}

/// The values under a key before and after a change. `None` if there is none.
#[derive(Clone, Copy)]
struct OldAndNew<'v> {
    old: Option<&'v [u8]>,
    new: Option<&'v [u8]>,
}

impl WatchedIndex<dyn Unique> {
    /// Step 3: preserves the old value of a key that is about to change, and tells the followers
    /// about the change. Called under the leaf's lock, with the mark of the entry.
    #[inline(always)]
    fn change(
        &self,
        guard: &Guard,
        key: &Key<'_>,
        values: OldAndNew<'_>,
        mark: &mut u64,
        after: &mut PendingEffects<'_>,
    ) {
        // Mostly an earlier write of the key has preserved its value.
        if !self.bounded && self.history.is_preserved(*mark) {
            if values.new.is_none() {
                self.history.note_removed(*key, *mark);
            }
            return;
        }
        self.preserve(guard, key, values, mark, after);
    }

    /// The slow path of `change`: steps 3a to 3c.
    #[inline(never)]
    fn preserve(
        &self,
        guard: &Guard,
        key: &Key<'_>,
        values: OldAndNew<'_>,
        mark: &mut u64,
        after: &mut PendingEffects<'_>,
    ) {
        let key = *key;
        // The layer above has set the cause, if the object was expired or evicted.
        let cause = match self.bounded {
            true => take_cause(),
            false => ChangeCause::Program,
        };
        let followed = || self.history.feed().is_followed();
        let early = planted(Fault::EarlyLook).then(followed);
        // (3a) The clock.
        let numbers = after.write_numbers();
        // (3b) The snapshots. If one needs the old value, the write gets a new number (S9).
        let (old, garbage) = (OldValue::Object(values.old), &mut after.garbage);
        let history = &self.history;
        let number = history.preserve(guard, key, numbers, mark, garbage, old);
        if values.new.is_none() {
            history.note_removed(key, *mark);
        }
        // (3c) The followers.
        if early.unwrap_or_else(followed) {
            self.push_events(number, key, values, cause, &mut after.feed);
        }
    }

    /// Tells the followers about a change with this number.
    #[cold]
    fn push_events(
        &self,
        number: u64,
        key: Key<'_>,
        values: OldAndNew<'_>,
        cause: ChangeCause,
        feed: &mut Option<DeferredWork>,
    ) {
        let changes = self.events_of(key, values, cause);
        self.history
            .push_events(number, changes, feed.get_or_insert_default());
    }

    /// The changes that followers are notified of.
    #[inline]
    fn events_of(
        &self,
        key: Key<'_>,
        values: OldAndNew<'_>,
        cause: ChangeCause,
    ) -> SmallVec<[ChangedObject; 1]> {
        let OldAndNew { old, new } = values;
        if !self.bounded {
            return smallvec![ChangedObject::new(key.bytes, old, new)];
        }
        let (old, new) = (old.map(object_of), new.map(object_of));
        match cause {
            // A write or a removal by the program.
            ChangeCause::Program => smallvec![ChangedObject::new(key.bytes, old, new)],
            // Only the deadline has changed.
            ChangeCause::DeadlineMoved => SmallVec::new(),
            ChangeCause::Evicted => {
                smallvec![ChangedObject::new(key.bytes, old, new).with_cause(Cause::Evicted)]
            }
            // The old object was expired. If a new one replaces it, that is an insert.
            ChangeCause::Expired => {
                let expired = ChangedObject::new(key.bytes, old, None).with_cause(Cause::Expired);
                let mut changes: SmallVec<[ChangedObject; 1]> = smallvec![expired];
                if new.is_some() {
                    changes.push(ChangedObject::new(key.bytes, None, new));
                }
                changes
            }
        }
    }
}

impl Unique for WatchedIndex<dyn Unique> {
    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        self.retry_while_committing(key, || {
            out.truncate(from);
            self.index.get(guard, key, out)
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.retry_while_committing(key, || self.index.contains(guard, key))
    }

    fn get_into(
        &self,
        guard: &Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        mut long: Option<&mut Vec<u8>>,
    ) -> Lookup {
        // Wait for a commit that is writing the key, if there is one.
        self.retry_while_committing(key, || {
            self.index.get_into(guard, key, out, long.as_deref_mut())
        })
    }

    fn get_or_lend<'g>(
        &'g self,
        guard: &'g Guard,
        key: Key<'_>,
        out: &mut [u8; SHORT_VALUE],
        long: &mut Vec<u8>,
        lent: &mut Option<&'g [u8]>,
    ) -> Lookup {
        self.retry_while_committing(key, || self.index.get_or_lend(guard, key, out, long, lent))
    }

    fn get_many(
        &self,
        guard: &Guard,
        keys: &[Key<'_>],
        prefetch_first: bool,
        out: &mut ShortValues,
    ) {
        loop {
            // Read first, and check the key locks afterwards. If a commit holds one, it may have
            // written some of the keys and not others. Wait for it, and read all again.
            self.index.get_many(guard, keys, prefetch_first, out);
            if !self.locks {
                return;
            }
            let mut locks = keys.iter().map(|&key| self.history.key_lock(key));
            match locks.find(|lock| lock.is_committing()) {
                None => return,
                Some(lock) => lock.wait_for_commit(),
            }
        }
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        // The key's lock, if commits write to the table. It is taken before the lock of the entry.
        let _lock = self.lock(guard, key);
        let mut place = Hint::default();
        let mut after = PendingEffects::begin(&self.history, guard, key, &mut place);
        let changed = self
            .index
            .update_marked(guard, key, &mut |old, scratch, mark| {
                let edit = f(old, scratch).whole(old, scratch);
                if let Change::Keep = edit {
                    return edit;
                }
                let new = edit.value(scratch);
                // Preserve the old version before the change can be seen.
                if old.is_some() || new.is_some() {
                    self.change(guard, &key, OldAndNew { old, new }, mark, &mut after);
                }
                edit
            });
        // No lock of the entry is held any more. Wake followers, and free what was dropped.
        after.finish(&self.history, guard);
        changed
    }

    fn put(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        if planted(Fault::LateVersion) {
            return self.put_late(guard, key, value, predicate);
        }
        // Step 1. The lock is held until the write is finished.
        let _lock = self.lock(guard, key);
        let mut place = Hint::default();
        let mut after = PendingEffects::begin(&self.history, guard, key, &mut place);
        // Steps 2 and 3. A refused write changes nothing, and keeps no version. Mostly an earlier
        // write of the key has preserved its value, and the index finds the entry ready.
        let mut preparation = Preparation {
            ready: match self.bounded {
                true => ReadyMark::none(),
                false => self.history.preserved_mark(),
            },
            prepare: &mut |old, mark| {
                let new = Some(value);
                self.preserve(guard, &key, OldAndNew { old, new }, mark, &mut after);
            },
        };
        let was = (self.index).put_marked(guard, key, value, predicate, &mut preparation);
        after.finish(&self.history, guard);
        was
    }

    fn remove(
        &self,
        guard: &Guard,
        key: Key<'_>,
        predicate: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Previous {
        // Step 1, as in `put`.
        let _lock = self.lock(guard, key);
        let mut place = Hint::default();
        let mut after = PendingEffects::begin(&self.history, guard, key, &mut place);
        // Steps 2 and 3, under the lock of the entry.
        let was = self.index.remove_marked(guard, key, &mut |old, mut mark| {
            let removes = predicate(old);
            if removes {
                let values = OldAndNew {
                    old: Some(old),
                    new: None,
                };
                self.change(guard, &key, values, &mut mark, &mut after);
            }
            removes
        });
        // The entry's lock is released. Wake followers, and free what was dropped.
        after.finish(&self.history, guard);
        was
    }

    delegate_unique!(index);
}

/// What changes the objects under a key of a bag. The first change preserves all of them.
struct BagWrite<'a> {
    history: &'a History,
    guard: &'a Guard,
    key: Key<'a>,
    /// The result of `History::read_newest_version`.
    version_bound: u64,
    /// The mark of the key's entry.
    mark: &'a mut u64,
    garbage: &'a mut Option<Garbage>,
    /// The write's number, after its first change.
    number: Option<u64>,
    /// Its changes, if the table has followers.
    changes: Option<SmallVec<[ChangedObject; 1]>>,
}

impl BagWrite<'_> {
    /// Ends the write: tells the followers about the changes. Called under the entry's lock.
    fn finish(self, objects: &dyn Objects, deferred: &mut Option<DeferredWork>) {
        if self.number.is_some() && objects.is_empty() {
            self.history.note_removed(self.key, *self.mark);
        }
        if let (Some(number), Some(changes)) = (self.number, self.changes) {
            let deferred = deferred.get_or_insert_default();
            self.history.push_events(number, changes, deferred);
        }
    }
}

impl Notes for BagWrite<'_> {
    /// Step 3 of the first change: preserves all objects of the key, before anything is changed.
    /// The events are pushed by `finish`.
    fn begin(&mut self, objects: &mut dyn Objects) {
        if self.number.is_some() {
            return;
        }
        // Make the stripe's seqlock odd before the clock is read. So a reader of a snapshot
        // with a greater number waits for the change.
        objects.begin_change();
        let history = self.history;
        let followed = || history.feed().is_followed();
        let early = planted(Fault::EarlyLook).then(followed);
        // (3a) The clock.
        let number = clock::of_write();
        // Mostly an earlier write of the key has preserved its objects.
        if history.is_preserved(*self.mark) {
            self.number = Some(number);
            return;
        }
        let numbers = WriteNumbers {
            number,
            version: self.version_bound,
            // Only an ordered index uses it.
            place: &Hint::default(),
        };
        // (3b) The snapshots. All objects of the key become one version, whichever of them changes.
        let (old, garbage) = (OldValue::Objects(objects), &mut *self.garbage);
        let number = history.preserve(self.guard, self.key, numbers, self.mark, garbage, old);
        self.number = Some(number);
        // (3c) The followers.
        if early.unwrap_or_else(followed) {
            self.changes = Some(SmallVec::new());
        }
    }

    /// Records a change, if the table has followers.
    fn note(&mut self, old: Option<&[u8]>, new: Option<&[u8]>) {
        if let Some(changes) = &mut self.changes {
            changes.push(ChangedObject::new(self.key.bytes, old, new));
        }
    }
}

impl Multi for WatchedIndex<dyn Multi> {
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        let before = values.len();
        self.retry_while_committing(key, || {
            values.truncate(before);
            self.index.read(guard, key, values)
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.retry_while_committing(key, || self.index.contains(guard, key))
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        let _lock = self.lock(guard, key);
        let mut place = Hint::default();
        let mut after = PendingEffects::begin(&self.history, guard, key, &mut place);
        self.index.update_marked(guard, key, &mut |objects, mark| {
            // The wrapper preserves all objects before the first change that `f` makes.
            let notes = BagWrite {
                history: &self.history,
                guard,
                key,
                version_bound: after.version_bound,
                mark,
                garbage: &mut after.garbage,
                number: None,
                changes: None,
            };
            let mut noted = NotedObjects { objects, notes };
            f(&mut noted);
            // All changes of the key are one group of events.
            noted.notes.finish(noted.objects, &mut after.feed);
        });
        after.finish(&self.history, guard);
    }

    fn scan_key<'g>(&'g self, guard: &'g Guard, key: Key<'_>, batch: &mut Batch<'g>) -> bool {
        self.retry_while_committing(key, || self.index.scan_key(guard, key, batch))
    }

    delegate_multi!(index);
}

impl<I: Container + ?Sized> Container for WatchedIndex<I> {
    /// As of `Unique`.
    fn free_some(&self, _: &Guard, _: usize, _: &mut dyn FnMut(&[u8])) -> bool {
        true
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + size_of::<History>() + self.index.memory() + self.history.undo_bytes()
    }

    delegate_container!(index);
}

impl WatchedIndex<dyn Unique> {
    /// A planted fault: a `put` that keeps the version after its change. A snapshot that is read in
    /// between finds neither the old value nor a version.
    fn put_late(
        &self,
        guard: &Guard,
        key: Key<'_>,
        value: &[u8],
        predicate: &mut Predicate<'_>,
    ) -> Previous {
        let _lock = self.lock(guard, key);
        let mut place = Hint::default();
        let mut after = PendingEffects::begin(&self.history, guard, key, &mut place);
        let mut late = None;
        let was = self.index.put(guard, key, value, &mut |old| {
            let puts = predicate(old);
            late = puts.then(|| old.map(<[u8]>::to_vec));
            puts
        });
        if let Some(old) = late {
            let values = OldAndNew {
                old: old.as_deref(),
                new: Some(value),
            };
            self.change(guard, &key, values, &mut 0, &mut after);
        }
        after.finish(&self.history, guard);
        was
    }
}

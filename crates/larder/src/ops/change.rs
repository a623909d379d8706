//! Changes of a table: of one entry, or of the objects of one key, under the leaf's lock.
//!
//! Every change of objects under their keys goes through one of these functions. They do the
//! bookkeeping that every change needs.
//!
//! | function | index | changes |
//! |---|---|---|
//! | `put_one`, `remove_one` | set, ordered_set | one entry, in a way that is known beforehand |
//! | `change_one` | set, ordered_set | one entry, in a way that depends on its value |
//! | `remove_scanned` | all | entries that a scan has read, if their leaf hasn't changed since |
//! | `change_many`, `change_present`, `change_absent` | bag, duplicate_bag | the objects of one key |
//!
//! # Steps
//!
//! 1. *Revalidate*, under the leaf's lock. If the store was replaced, the latch acquired or the
//!    table deleted since the operation began, the change isn't made, and the caller restarts. The
//!    change may also be refused, because the table is full or by a unique index.
//! 2. *Retain*: increment the counts of the new value's handles, before the value can be seen.
//! 3. *Remember* a removed key, if the table is fixed, before anybody can see that it is removed.
//!    The key of a bag is remembered before its lock is released; a thread that looks for the key
//!    waits for that lock.
//! 4. *Account*, without the lock: count the objects, and put the handles of the old value on the
//!    deferred release list, until no reader can be copying them.
//!
//! Linearisation point: that of the index's write (docs/design.md §4.2). Steps 1 to 3 come before
//! it, step 4 after it.
//!
//! # Invariants
//!
//! * **W1** A value in the index owns one count of each of its handles, from before it can be seen
//!   until every reader that could see it has unpinned.
//! * **W2** If another thread acquires the latch or replaces the store between (1) and the
//!   linearisation point, it waits for this leaf's lock before it reads the leaf.

use super::begin::{fence_after_lock, Intent, Operation};
use super::refusal::{check_room_and_claim, Written};
use crate::change_stamp::WalkStamp;
use crate::error::Error;
use crate::indexes::{taken, Claimed};
use crate::raw;
use crate::read_ahead::Cursors;
use crate::reclaim::reaper;
use crate::table::EngineTable;
use larder_index::sync::yield_now;
use larder_index::{Batch, Change, Guard, Hint, Key, Multi, Objects, Previous, Unique};
use larder_term::blob::Handles;
use larder_term::object::{self, ObjectRef};

/// A value that a set or ordered_set is to store.
#[derive(Clone, Copy)]
pub(crate) struct NewValue<'v> {
    bytes: &'v [u8],
    /// Whether the counts of its handles were given: the table takes them over when it stores the
    /// value. Otherwise it adds counts of its own.
    is_given: bool,
}

impl<'v> NewValue<'v> {
    /// The value of an object.
    #[inline(always)]
    pub(crate) fn of(object: &ObjectRef<'v>) -> Self {
        NewValue {
            bytes: object.value(),
            is_given: object.is_given(),
        }
    }

    /// A value whose counts were not given.
    #[inline(always)]
    pub(crate) fn copied(bytes: &'v [u8]) -> Self {
        NewValue {
            bytes,
            is_given: false,
        }
    }
}

/// How a value is stored.
pub(crate) enum Put<'h> {
    /// Whether there is a value under the key or not.
    Any,
    /// Only if there is none. A key that is there isn't locked, if the index can tell without a
    /// lock, and nothing is revalidated: the operation is a read then.
    New,
    /// Where the value under the key was found.
    At(&'h Hint<'h>),
}

/// A change of an entry.
pub(crate) struct Edit {
    pub(crate) change: Change,
    /// The new value has the same handles as the old one, each as often, so no count changes.
    pub(crate) same_handles: bool,
}

impl From<Change> for Edit {
    #[inline]
    fn from(change: Change) -> Self {
        Edit {
            change,
            same_handles: false,
        }
    }
}

/// The buffer for the new value of a change, and whether the change concerns absent keys.
pub(crate) enum EditBuffer<'b> {
    /// A buffer of the index.
    Own,
    /// This buffer. The change concerns only a key that is present; an absent one isn't locked.
    OfPresent(&'b mut Vec<u8>),
}

/// Handles of old values. Their counts are released when no reader can be copying them any more. If
/// an index panics, the handles are leaked.
#[derive(Default)]
struct OldHandles(Handles);

impl OldHandles {
    /// Adds the handles of a value that is about to be removed.
    #[inline]
    fn note(&mut self, value: &[u8]) {
        if raw::has_handles(value) {
            self.keep(value);
        }
    }

    /// Wraps a predicate: adds the handles of the values that it picks.
    #[inline]
    fn noting<'a>(
        &'a mut self,
        mut picks: impl FnMut(&[u8]) -> bool + 'a,
    ) -> impl FnMut(&[u8]) -> bool + 'a {
        move |value| {
            // The handles of a value that goes are released when no reader is left.
            let goes = picks(value);
            if goes {
                self.note(value);
            }
            goes
        }
    }

    #[cold]
    fn keep(&mut self, value: &[u8]) {
        object::note_handles(value, &mut self.0);
    }

    /// Releases the handles after all readers that are pinned now. Their values are in no leaf any
    /// more.
    // Takes a reference, since moving `self` would copy room for four handles, and mostly there are
    // none.
    #[inline]
    fn release(&mut self, op: &Operation<'_>) {
        if !self.0.is_empty() {
            self.release_later(op);
        }
    }

    #[cold]
    fn release_later(&mut self, op: &Operation<'_>) {
        let handles = std::mem::take(&mut self.0);
        reaper::release_later(op.guard, |list| raw::own_counts(handles, list));
    }
}

/// A change of an entry of a set or ordered_set, which is decided under the leaf's lock.
// The index gets a closure that refers to this alone: with a reference to each part, each would be
// stored before the call, and loaded twice within it.
struct EntryChange<'d, F, N> {
    target: (&'d EngineTable, &'d Operation<'d>, Key<'d>, &'d dyn Unique),
    f: F,
    note: N,
    outcome: Result<Written, Error>,
    old_handles: OldHandles,
    /// By how much the number of objects changes.
    delta: i64,
}

impl<F, N> EntryChange<'_, F, N>
where
    F: FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<Edit, Error>,
    N: FnMut(),
{
    /// (1) to (3) The change that the index is to make.
    #[inline(always)]
    fn decide(&mut self, old: Option<&[u8]>, scratch: &mut Vec<u8>) -> Change {
        let (table, op, ..) = self.target;
        // (1) The leaf is locked until the index has made the change. If the state word has
        // changed since the operation began, change nothing.
        if !table.revalidate(op) {
            self.outcome = Ok(Written::Stale);
            return Change::Keep;
        }
        let edit = match (self.f)(old, scratch) {
            Ok(edit) => edit,
            Err(error) => {
                self.outcome = Err(error);
                return Change::Keep;
            }
        };
        match edit.change {
            // A part of the value that is there, which neither can be refused nor changes a count.
            Change::Splice(_) if edit.same_handles && !op.store.may_refuse() => {
                (self.note)();
                edit.change
            }
            _ => self.prepare(old, edit, scratch),
        }
    }

    /// (2), (3) Prepares a change that may be refused, or changes counts. Returns the change that
    /// the index is to make.
    // Not inlined, so that its variables don't take the registers of `f`.
    #[inline(never)]
    fn prepare(&mut self, old: Option<&[u8]>, edit: Edit, scratch: &mut Vec<u8>) -> Change {
        let (table, op, key, ix) = self.target;
        let Edit {
            mut change,
            same_handles,
        } = edit;
        // The table may be full, or another row may have the value in a unique index. Nothing
        // has been changed yet, so the change can still be refused.
        if op.store.may_refuse() {
            change = change.whole(old, scratch);
            let refused = change
                .value(scratch)
                .and_then(|new| check_room_and_claim(table, op, key, old, new, Some(ix)));
            if let Some(refused) = refused {
                self.outcome = Ok(refused);
                return Change::Keep;
            }
        }
        // (2), (3) The index makes the change when this returns. Before that, retain the handles
        // of the new value, or remember the key that is removed.
        match change {
            Change::Keep => return change,
            Change::Remove if old.is_some() => table.note_removal(key),
            Change::Remove => {}
            _ if same_handles => {}
            _ => {
                change = change.whole(old, scratch);
                change
                    .value(scratch)
                    .into_iter()
                    .for_each(raw::retain_value);
            }
        }
        (self.note)();
        // Collect the handles of the old value. They can't be released yet: readers may be
        // copying the value without a lock.
        let stays = !matches!(change, Change::Remove);
        self.delta = i64::from(stays) - i64::from(old.is_some());
        if let (Some(old), false) = (old, same_handles) {
            self.old_handles.note(old);
        }
        change
    }
}

impl EngineTable {
    /// Changes an entry of a set or ordered_set as `f` decides. `f` is called under the lock, with
    /// the value and an empty buffer. It may be called again after `Stale`.
    #[inline]
    pub(crate) fn change_one(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        key: Key<'_>,
        spare: EditBuffer<'_>,
        f: impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<Edit, Error>,
    ) -> Result<Written, Error> {
        self.change_one_noting(op, ix, key, spare, f, || {})
    }

    /// Like `change_one`. Calls `note` under the lock, when it is certain that there is a change.
    #[inline(always)]
    pub(crate) fn change_one_noting(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        key: Key<'_>,
        spare: EditBuffer<'_>,
        f: impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<Edit, Error>,
        note: impl FnMut(),
    ) -> Result<Written, Error> {
        let mut change = EntryChange {
            target: (self, op, key, ix),
            f,
            note,
            outcome: Ok(Written::Done),
            old_handles: OldHandles::default(),
            delta: 0,
        };
        let mut decide = |old: Option<&[u8]>, scratch: &mut Vec<u8>| change.decide(old, scratch);
        match spare {
            EditBuffer::Own => ix.update(op.guard, key, &mut decide),
            EditBuffer::OfPresent(spare) => ix.update_present(op.guard, key, spare, &mut decide),
        };
        // (4) The leaf is unlocked, and the change has taken effect, if there was one.
        op.store.count().add(change.delta);
        change.old_handles.release(op);
        change.outcome
    }

    /// Stores a value in a set or ordered_set, if `predicate` agrees. The predicate is called under
    /// the lock, with the value under the key. Returns whether there was one.
    #[inline]
    pub(crate) fn put_one(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        key: Key<'_>,
        value: NewValue<'_>,
        predicate: impl FnMut(Option<&[u8]>) -> bool,
    ) -> (Written, Previous) {
        self.put_by(op, ix, key, value, Put::Any, predicate)
    }

    /// Like `put_one`, in one of several ways.
    #[inline(always)]
    pub(crate) fn put_by(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        key: Key<'_>,
        value: NewValue<'_>,
        mode: Put<'_>,
        mut predicate: impl FnMut(Option<&[u8]>) -> bool,
    ) -> (Written, Previous) {
        let mut written = Written::Done;
        let mut old_handles = OldHandles::default();
        let mut decide = |old: Option<&[u8]>| {
            // The leaf is locked, and `old` lies in it. If the closure returns `false`, the index
            // changes nothing.
            // (1) Check that no batch has begun, and that the table was neither emptied nor deleted
            // since the operation began.
            if !self.revalidate(op) {
                written = Written::Stale;
                return false;
            }
            if !predicate(old) {
                return false;
            }
            if op.store.may_refuse() {
                let refused = check_room_and_claim(self, op, key, old, value.bytes, Some(ix));
                if let Some(refused) = refused {
                    written = refused;
                    return false;
                }
            }
            // (2) Retain the handles of the new value. If the counts were given, the table owns
            // them from the unlock on.
            if !value.is_given {
                raw::retain_value(value.bytes);
            }
            // The old value is overwritten when the closure returns. Readers that have pinned
            // before may still copy its handles.
            if let Some(old) = old {
                old_handles.note(old);
            }
            true
        };
        let was = match mode {
            Put::Any => ix.put(op.guard, key, value.bytes, &mut decide),
            Put::New => ix.put_new(op.guard, key, value.bytes, &mut decide),
            Put::At(hint) => ix.put_with_hint(op.guard, key, value.bytes, hint, &mut decide),
        };
        // (4) The leaf is unlocked. After `Refused` nothing was changed, and `old_handles` is
        // empty.
        if was == Previous::Absent {
            op.store.count().add(1);
        }
        old_handles.release(op);
        (written, was)
    }

    /// Removes the entry under a key of a set or ordered_set, if there is one and `predicate`
    /// agrees. The predicate is called under the lock. Returns whether there was an entry.
    ///
    /// An absent key isn't locked, if the index can tell without a lock, and nothing is
    /// revalidated: the operation is a read then.
    #[inline]
    pub(crate) fn remove_one(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        key: Key<'_>,
        mut predicate: impl FnMut(&[u8]) -> bool,
    ) -> (Written, Previous) {
        let mut written = Written::Done;
        let mut old_handles = OldHandles::default();
        let was = ix.remove(op.guard, key, &mut |old| {
            // (1) If the state word has changed since the operation began, change nothing.
            if !self.revalidate(op) {
                written = Written::Stale;
                return false;
            }
            if !predicate(old) {
                return false;
            }
            // (3) Remember the key. A thread that finds it missing has seen the version that the
            // unlock stores, so it finds it remembered.
            self.note_removal(key);
            old_handles.note(old);
            true
        });
        // (4) The leaf is unlocked, and the entry is removed.
        if was == Previous::Present {
            op.store.count().add(-1);
        }
        old_handles.release(op);
        (written, was)
    }

    /// Removes the chosen entries of a batch in one change, if the leaf that they were read from
    /// hasn't changed since. Otherwise returns `false`, and changes nothing.
    pub(crate) fn remove_scanned(&self, op: &Operation<'_>, batch: &Batch, chosen: &[u32]) -> bool {
        let Some(&first) = chosen.first() else {
            return true;
        };
        let key = |i: u32| self.key(batch.key(i as usize));
        let mut old_handles = OldHandles::default();
        // A batch is of one leaf, which the first key leads to.
        let index = &op.store.index;
        let done = index.remove_scanned(op.guard, key(first), (batch, chosen), &mut || {
            // The leaf is locked, and its version is the one that the scan has read. So its entries
            // are those of the batch.
            // (1) If the state word has changed since the scan began, change nothing.
            if !self.revalidate(op) {
                return false;
            }
            // (3) Remember the removed keys.
            if self.fixation.is_fixed() {
                chosen.iter().for_each(|&i| self.note_removal(key(i)));
            }
            let values = chosen.iter().map(|&i| batch.value(i as usize));
            values.for_each(|value| old_handles.note(value));
            true
        });
        // (4) The leaf is unlocked, and the entries are removed.
        if done {
            op.store.count().add(-(chosen.len() as i64));
        }
        old_handles.release(op);
        done
    }

    /// Changes the objects under one key of a bag or duplicate_bag as `f` decides. `f` is called
    /// under the lock, and may be called again after `Stale`.
    #[inline]
    pub(crate) fn change_many(
        &self,
        op: &Operation<'_>,
        ix: &dyn Multi,
        key: Key<'_>,
        f: impl FnMut(&mut ValueList<'_>) -> Result<(), Error>,
    ) -> Result<Written, Error> {
        self.change_objects(op, key, f, |change| ix.update(op.guard, key, change))
    }

    /// Like `change_many`, but `f` is only called if there are objects under the key. An absent key
    /// isn't locked (see `remove_one`).
    #[inline]
    pub(crate) fn change_present(
        &self,
        op: &Operation<'_>,
        ix: &dyn Multi,
        key: Key<'_>,
        f: impl FnMut(&mut ValueList<'_>) -> Result<(), Error>,
    ) -> Result<Written, Error> {
        self.change_objects(op, key, f, |change| {
            ix.update_present(op.guard, key, change)
        })
    }

    /// Like `change_many`, but `f` is only called if there are no objects under the key. A key that
    /// is there isn't locked (see `Put::New`).
    #[inline]
    pub(crate) fn change_absent(
        &self,
        op: &Operation<'_>,
        ix: &dyn Multi,
        key: Key<'_>,
        f: impl FnMut(&mut ValueList<'_>) -> Result<(), Error>,
    ) -> Result<Written, Error> {
        self.change_objects(op, key, f, |change| ix.update_absent(op.guard, key, change))
    }

    /// `change_many`, `change_present` or `change_absent`: `update` makes a change under the key.
    #[inline(always)]
    fn change_objects(
        &self,
        op: &Operation<'_>,
        key: Key<'_>,
        f: impl FnMut(&mut ValueList<'_>) -> Result<(), Error>,
        update: impl FnOnce(&mut dyn FnMut(&mut dyn Objects)),
    ) -> Result<Written, Error> {
        let mut change = ObjectsChange {
            target: (self, op, key),
            f,
            outcome: Ok(Written::Done),
            is_locked: false,
            effects: Effects::default(),
        };
        update(&mut |objects| change.make(objects));
        // Without a lock, there was nothing to change.
        if change.is_locked {
            // (4) The lock is released.
            op.store.count().add(change.effects.delta);
            change.effects.old_handles.release(op);
            // Scans of a bag wait for no lock. A reader may have armed the change stamp after
            // `revalidate` and read before the change. So count the change once more.
            fence_after_lock();
            self.changes.note();
        }
        change.outcome
    }

    /// Step 3: remembers a key that is about to be removed, if the table is fixed. Called under the
    /// leaf's lock.
    #[inline]
    fn note_removal(&self, key: Key<'_>) {
        if self.fixation.is_fixed() && !self.kind().is_ordered() {
            self.fixation.remember(key.bytes);
        }
    }

    /// Runs a write under a key, and restarts it if the state word has changed meanwhile.
    #[inline]
    pub(crate) fn writing_under<R>(
        &self,
        guard: &Guard,
        key: &[u8],
        f: impl FnMut(&Operation<'_>) -> Result<(Written, R), Error>,
    ) -> Result<R, Error> {
        self.writing(guard, key, None, f)
    }

    /// Like `writing_under`, for a write that removes nothing. If a walk of this thread has just
    /// passed the key, what it has read ahead stays valid. `f` calls `Operation::inserts` if the
    /// key is absent.
    #[inline]
    pub(crate) fn writing_beside_walks<R>(
        &self,
        cursors: Cursors<'_>,
        guard: &Guard,
        key: &[u8],
        f: impl FnMut(&Operation<'_>) -> Result<(Written, R), Error>,
    ) -> Result<R, Error> {
        let before = self.stamp_of_walk(&cursors, key);
        let walk = WalkStamp::new(before);
        let result = self.writing(guard, key, Some(&walk), f);
        if before.is_some() {
            self.keep_walking(cursors, key, before, walk.get());
        }
        result
    }

    /// The loop around every write of one key. `f` makes one attempt. If the attempt was `Stale`,
    /// or was refused for a reason that can be removed, the loop begins the write anew. `walk` is
    /// [`Operation::walk`].
    #[inline]
    fn writing<R>(
        &self,
        guard: &Guard,
        key: &[u8],
        walk: Option<&WalkStamp>,
        mut f: impl FnMut(&Operation<'_>) -> Result<(Written, R), Error>,
    ) -> Result<R, Error> {
        let mut last = None;
        loop {
            // Load the current state word. If the last attempt failed to revalidate, it has changed
            // nothing. This either begins with the new store, or returns the reason for an error.
            let mut op = self.begin_on(guard, key, Intent::Write)?;
            op.walk = walk;
            let (written, result) = f(&op)?;
            if let Written::Done = written {
                if op.store.has_limit() {
                    self.evict_after(guard, 1);
                }
                return Ok(result);
            }
            self.prepare_retry(&op, written, &mut last)?;
        }
    }

    /// Does what a write that wasn't made needs before it is made again, or returns its error.
    #[cold]
    #[inline(never)]
    fn prepare_retry(
        &self,
        op: &Operation<'_>,
        written: Written,
        last: &mut Option<u64>,
    ) -> Result<(), Error> {
        match written {
            // Remove expired objects, or return the error.
            Written::Full => self.expire_for_write(op, Some(last))?,
            // Remove the row that has the value if it has expired, give up an index that is being
            // built, or return the error.
            Written::Taken => self.free_taken_value(op)?,
            // Another thread holds the latch or a claim, and will release it soon.
            Written::Stale => yield_now(),
            Written::Done => {}
        }
        Ok(())
    }

    /// Removes the row that has a value in a unique index, if it has expired, or gives up an index
    /// that is being built. Otherwise returns the error of the write that was refused.
    #[cold]
    pub(crate) fn free_taken_value(&self, op: &Operation<'_>) -> Result<(), Error> {
        let index = taken();
        let is_free = match self.free_holder(op) {
            None | Some(Previous::Refused) => op.give_up(index),
            // It is gone now.
            Some(_) => true,
        };
        is_free.then_some(()).ok_or(Error::NotUnique(index.into()))
    }

    /// The error of a write for which there is no room.
    #[cold]
    pub(crate) fn full(&self, op: &Operation<'_>) -> Error {
        let (name, limit) = (&self.options().structure, op.store.limit());
        // A table with limits says which one is reached. A structure of a fixed size says so
        // itself.
        Error::Full(match op.store.quota() {
            Some(quota) => quota.full(op.store.size()).into(),
            None => format!(
                "the table is full: its structure, '{name}', was made for {limit} objects and does \
                 not grow"
            )
            .into(),
        })
    }
}

/// A change of the objects of a key, which is decided under the lock. The index gets a closure that
/// refers to this alone (see `EntryChange`).
struct ObjectsChange<'d, F> {
    target: (&'d EngineTable, &'d Operation<'d>, Key<'d>),
    f: F,
    outcome: Result<Written, Error>,
    is_locked: bool,
    effects: Effects,
}

/// What a change of a key's objects brings about.
#[derive(Default)]
struct Effects {
    old_handles: OldHandles,
    /// By how much the number of objects changes.
    delta: i64,
    /// Why a change was not made.
    refused: Option<Written>,
}

impl<F> ObjectsChange<'_, F>
where
    F: FnMut(&mut ValueList<'_>) -> Result<(), Error>,
{
    /// (1) to (3) Makes the change.
    #[inline(always)]
    fn make(&mut self, objects: &mut dyn Objects) {
        let (table, op, key) = self.target;
        self.is_locked = true;
        // (1) The lock is that of the leaf, or of the stripe if the key has many objects. Readers
        // only wait for a stripe whose version is odd, which `begin_change` makes it. This comes
        // before the state word is loaded. So a thread that exchanges the word after our load, and
        // then reads the key, waits for this change.
        objects.begin_change();
        if !table.revalidate(op) {
            self.outcome = Ok(Written::Stale);
            return;
        }
        let mut values = ValueList {
            objects,
            effects: &mut self.effects,
            target: self.target,
        };
        if let Err(error) = (self.f)(&mut values) {
            self.outcome = Err(error);
        } else if let Some(refused) = self.effects.refused.take() {
            self.outcome = Ok(refused);
        }
        // (3) Remember the key if its last object was removed. The lock is still held.
        if self.effects.delta < 0 && table.fixation.is_fixed() && objects.is_empty() {
            table.note_removal(key);
        }
    }
}

/// The objects under one key, with the bookkeeping of changes.
pub(crate) struct ValueList<'o> {
    objects: &'o mut dyn Objects,
    effects: &'o mut Effects,
    target: (&'o EngineTable, &'o Operation<'o>, Key<'o>),
}

impl ValueList<'_> {
    /// Whether an object is equal to `value` by `same`.
    #[inline]
    pub(crate) fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.objects.find(value, same)
    }

    /// Calls `f` with each object, in order of arrival, until it returns `false`.
    pub(crate) fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        self.objects.each(f);
    }

    /// Calls `f` with the number and the value of each object, in order of arrival.
    pub(crate) fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
        self.objects.each_numbered(f);
    }

    /// Adds an object, if there is room. Otherwise the change is refused.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: &[u8]) {
        let (table, op, key) = self.target;
        // Refused once, refused for the rest: the caller repeats the whole change, or fails.
        if op.store.may_refuse() {
            let refused = &mut self.effects.refused;
            if refused.is_none() {
                *refused = check_room_and_claim(table, op, key, None, value, None);
            }
            if refused.is_some() {
                return;
            }
        }
        // (2) Retain the handles before the object can be seen.
        raw::retain_value(value);
        self.objects.push(value);
        self.effects.delta += 1;
    }

    /// Removes the objects that `f` picks, and returns their number.
    #[inline]
    pub(crate) fn remove_if(&mut self, f: impl FnMut(&[u8]) -> bool) -> usize {
        let removed = (self.objects).remove_if(&mut self.effects.old_handles.noting(f));
        self.effects.delta -= removed as i64;
        removed
    }

    /// Removes all objects, and calls `f` with each, in order of arrival. Returns their number.
    #[inline]
    pub(crate) fn remove_all(&mut self, mut f: impl FnMut(&[u8])) -> usize {
        let old_handles = &mut self.effects.old_handles;
        // The handles are noted before `f` sees the value, which the index then frees.
        let removed = self.objects.remove_all(&mut |value| {
            old_handles.note(value);
            f(value);
        });
        self.effects.delta -= removed as i64;
        removed
    }

    /// Removes the objects that are equal to `value` by `same`, and returns their number.
    #[inline]
    pub(crate) fn remove_same(
        &mut self,
        value: &[u8],
        mut same: impl FnMut(&[u8]) -> bool,
    ) -> usize {
        // A layer that keeps versions takes the call for a change, and so does a view.
        let (_, op, _) = self.target;
        if !op.store.is_bare() && !self.objects.find(value, &mut same) {
            return 0;
        }
        let old_handles = &mut self.effects.old_handles;
        let removed = (self.objects).remove_same(value, &mut old_handles.noting(same));
        self.effects.delta -= removed as i64;
        removed
    }

    /// Replaces objects. Each change has the ordinal of an object, its old value and its new one.
    /// Either all changes are made, or the change is refused.
    pub(crate) fn replace_each(&mut self, changes: &[(usize, &[u8], &[u8])]) {
        let (table, op, key) = self.target;
        if let Some(indexes) = op.store.unique_indexes() {
            let mut claimed = Claimed::begin(indexes);
            let mut each = changes.iter();
            // Claim all values before the first object is changed. If one is taken, nothing has to
            // be undone but the claims.
            let made = each
                .try_for_each(|(_, old, new)| claimed.claim(op.guard, key.bytes, Some(old), new));
            if let Err(why) = claimed.keep_if(op.guard, made, || table.revalidate(op)) {
                self.effects.refused = Some(why.into());
                return;
            }
        }
        for &(_, old, new) in changes {
            raw::retain_value(new);
            self.effects.old_handles.note(old);
        }
        self.objects.replace_each(changes);
    }
}

//! How a table is written: one entry, or the objects of one key, under the leaf's lock.
//!
//! Every change of a table is a *commit*: a call of one of the functions below, which do what every
//! change has to.
//!
//! | function | index | changes |
//! |---|---|---|
//! | `put_one`, `remove_one` | set, ordered_set | one entry, in a way that is known beforehand |
//! | `change_one` | set, ordered_set | one entry, as what is there decides |
//! | `remove_read` | set | some entries that a scan read, if their leaf is as it was |
//! | `change_many` | bag, duplicate_bag | the objects of one key |
//!
//! # Steps
//!
//! 1. *Revalidate*, under the leaf's lock: a store that was replaced, a latch that was acquired and
//!    a table that died are seen there. Then the change is not made, and the caller begins anew. A
//!    structure that is full, and a unique index, may refuse it.
//! 2. *Retain*: take counts for the handles of what is stored, before it can be seen.
//! 3. *Remember* a key that goes, if the table is fixed, before it can be seen to be gone. A bag's
//!    key is remembered before its lock is given back; a thread that looks for it waits for that.
//! 4. *Settle up*, without the lock: count the objects, and leave the handles of what was there to
//!    be released once no reader can be copying it.
//!
//! Linearisation point of a change: the store with which the index unlocks the leaf. What is done
//! in (1) to (3) comes before it, (4) after it.
//!
//! # Invariants
//!
//! 1. A value in the index owns one count of each of its handles, from before it can be seen until
//!    every reader that could see it is gone.
//! 2. Between (1) and the linearisation point nobody acquires the latch or replaces the store
//!    without waiting for this leaf's lock before it looks at the leaf.

use super::begin::{after_lock, Admission, Intent, Operation};
use crate::bounds::{object_of, Bounded};
use crate::error::Error;
use crate::indexes::{note_taken, taken, Claimed, Refused};
use crate::raw;
use crate::reclaim::reaper;
use crate::table::Table;
use larder_index::sync::give_way;
use larder_index::{Batch, Change, Guard, Key, Multi, Objects, Previous, Unique};
use larder_term::blob::Handles;
use larder_term::object;
use std::sync::Arc;

/// What became of a change.
pub(crate) enum Written {
    /// It was made, or there was nothing to do.
    Done,
    /// The state word had changed: begin again.
    Moved,
    /// It was refused: there is no room for it.
    Full,
    /// It was refused: another row has its value in a unique index (`indexes::taken`).
    Taken,
}

/// What a change makes of an entry.
pub(crate) struct Edit<'v> {
    pub(crate) change: Change<'v>,
    /// The new value has the handles of the old one, each as often: the counts stay as they are.
    pub(crate) same_handles: bool,
}

impl<'v> From<Change<'v>> for Edit<'v> {
    #[inline]
    fn from(change: Change<'v>) -> Self {
        Edit {
            change,
            same_handles: false,
        }
    }
}

/// Handles of old values, whose counts are released when no reader copies them any more. If an
/// index panics they are forgotten, and leak what they refer to.
#[derive(Default)]
struct Garbage(Handles);

impl Garbage {
    /// Adds the handles of a value that is about to go.
    #[inline]
    fn note(&mut self, value: &[u8]) {
        if raw::has_handles(value) {
            self.keep(value);
        }
    }

    /// The same choice of values, which adds the handles of those that it picks.
    fn noting<'a>(
        &'a mut self,
        picks: &'a mut dyn FnMut(&[u8]) -> bool,
    ) -> impl FnMut(&[u8]) -> bool + 'a {
        move |value| {
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

    /// Releases them when every reader of now is gone. The values are in no leaf any more.
    // By reference: to move it is to copy room for four handles, where mostly there are none.
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

impl Table {
    /// Changes the entry of a set or ordered_set. `f` sees the value and an empty buffer (`spare`,
    /// if there is one), under the lock, and decides; it may be called again after `Moved`.
    #[inline]
    pub(crate) fn change_one<'v>(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        key: Key<'_>,
        spare: Option<&mut Vec<u8>>,
        f: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<Edit<'v>, Error>,
    ) -> Result<Written, Error> {
        let mut outcome = Ok(Written::Done);
        let mut garbage = Garbage::default();
        let mut delta = 0;
        let mut decide = |old: Option<&[u8]>, scratch: &mut Vec<u8>| {
            // (1) From here to the end of the closure the leaf is locked, and the table is as it
            // was when the operation began.
            if !self.revalidate(op) {
                outcome = Ok(Written::Moved);
                return Change::Keep;
            }
            let Edit {
                change,
                same_handles,
            } = match f(old, scratch) {
                Ok(edit) => edit,
                Err(error) => {
                    outcome = Err(error);
                    return Change::Keep;
                }
            };
            // Nothing was changed yet: what follows may still refuse.
            if op.store.may_refuse() {
                let new = match change {
                    Change::Put(value) => Some(value),
                    Change::PutScratch => Some(&scratch[..]),
                    Change::Keep | Change::Remove => None,
                };
                let has_stamps = is_below(op, ix);
                let refused = new.and_then(|new| refuses(self, op, (key, old, new), has_stamps));
                if let Some(refused) = refused {
                    outcome = Ok(refused);
                    return Change::Keep;
                }
            }
            // (2), (3) The index makes the change as soon as the closure has returned.
            match change {
                Change::Keep => return change,
                Change::Put(_) | Change::PutScratch if same_handles => {}
                Change::Put(value) => raw::retain_value(value),
                Change::PutScratch => raw::retain_value(scratch),
                Change::Remove if old.is_some() => self.note_removal(key),
                Change::Remove => {}
            }
            // The old value's handles are only noted: readers may be copying it without the lock.
            let stays = !matches!(change, Change::Remove);
            delta = i64::from(stays) - i64::from(old.is_some());
            if let (Some(old), false) = (old, same_handles) {
                garbage.note(old);
            }
            change
        };
        match spare {
            Some(spare) => ix.update_with(op.guard, key, spare, &mut decide),
            None => ix.update(op.guard, key, &mut decide),
        };
        // (4) The leaf is unlocked: the change has taken effect, if there was one.
        op.store.count.add(delta);
        garbage.release(op);
        outcome
    }

    /// Stores a value in a set or ordered_set, if `predicate` consents, which sees what is under
    /// the key, under the lock; gives what was there. If the counts of the value's handles are
    /// `given`, the table has them once the value is stored.
    #[inline]
    pub(crate) fn put_one(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        key: Key<'_>,
        (value, given): (&[u8], bool),
        mut predicate: impl FnMut(Option<&[u8]>) -> bool,
    ) -> (Written, Previous) {
        let mut written = Written::Done;
        let mut garbage = Garbage::default();
        let was = ix.put(op.guard, key, value, &mut |old| {
            // The leaf is locked, and `old` lies in it. If the closure says false the index
            // changes nothing.
            // (1) No batch, no other store, no end of the table since the operation began.
            if !self.revalidate(op) {
                written = Written::Moved;
                return false;
            }
            if !predicate(old) {
                return false;
            }
            if op.store.may_refuse() {
                if let Some(refused) = refuses(self, op, (key, old, value), is_below(op, ix)) {
                    written = refused;
                    return false;
                }
            }
            // (2) Given counts become the table's with the store that unlocks the leaf.
            if !given {
                raw::retain_value(value);
            }
            // The old value goes when the closure returns; its handles may still be copied by
            // readers that pinned before.
            if let Some(old) = old {
                garbage.note(old);
            }
            true
        });
        // (4) The value is in its leaf, unlocked. `Refused` left all as it was: nothing was noted.
        if was == Previous::Absent {
            op.store.count.add(1);
        }
        garbage.release(op);
        (written, was)
    }

    /// Removes the entry under a key of a set or ordered_set, if there is one and `predicate`
    /// consents, as of `put_one`; gives what was there.
    #[inline]
    pub(crate) fn remove_one(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        key: Key<'_>,
        mut predicate: impl FnMut(&[u8]) -> bool,
    ) -> (Written, Previous) {
        let mut written = Written::Done;
        let mut garbage = Garbage::default();
        let was = ix.remove(op.guard, key, &mut |old| {
            // (1)
            if !self.revalidate(op) {
                written = Written::Moved;
                return false;
            }
            let Some(old) = old.filter(|old| predicate(old)) else {
                return false;
            };
            // (3) A thread that finds the key gone waited for this lock, and finds it remembered.
            self.note_removal(key);
            garbage.note(old);
            true
        });
        // (4) The entry is out of its leaf, unlocked.
        if was == Previous::Present {
            op.store.count.add(-1);
        }
        garbage.release(op);
        (written, was)
    }

    /// Removes the entries at these places of a batch without order, in one change, if none of its
    /// leaf's has changed since. False, and nothing was done, otherwise.
    pub(crate) fn remove_read(
        &self,
        op: &Operation<'_>,
        ix: &dyn Unique,
        batch: &Batch,
        chosen: &[u32],
    ) -> bool {
        let Some(&first) = chosen.first() else {
            return true;
        };
        let key = |i: u32| self.key(batch.key(i as usize));
        let mut garbage = Garbage::default();
        // All of them lie in one leaf, the one that the first key leads to.
        let done = ix.remove_read(op.guard, key(first), (batch, chosen), &mut || {
            // The leaf is locked, and its version is the one that the scan read: the entries lie
            // where the batch says.
            // (1)
            if !self.revalidate(op) {
                return false;
            }
            // (3)
            if self.fixation.is_fixed() {
                chosen.iter().for_each(|&i| self.note_removal(key(i)));
            }
            let values = chosen.iter().map(|&i| batch.value(i as usize));
            values.for_each(|value| garbage.note(value));
            true
        });
        // (4)
        if done {
            op.store.count.add(-(chosen.len() as i64));
        }
        garbage.release(op);
        done
    }

    /// Changes the objects under one key of a bag or duplicate_bag. As `change_one`.
    pub(crate) fn change_many(
        &self,
        op: &Operation<'_>,
        ix: &dyn Multi,
        key: Key<'_>,
        f: &mut dyn FnMut(&mut ValueList<'_>) -> Result<(), Error>,
    ) -> Result<Written, Error> {
        let mut outcome = Ok(Written::Done);
        let mut garbage = Garbage::default();
        let mut delta = 0;
        ix.update(op.guard, key, &mut |objects| {
            // (1) The lock is that of the key: of its leaf while it has few objects, else its
            // stripe. Readers wait for a stripe only once a change is said to follow. It is said
            // before the state word is loaded: whoever exchanges the word and then reads the key
            // reads what this write makes of it.
            objects.begin_change();
            if !self.revalidate(op) {
                outcome = Ok(Written::Moved);
                return;
            }
            let mut values = ValueList {
                objects,
                garbage: &mut garbage,
                delta: 0,
                place: (self, op, key),
                refused: None,
            };
            if let Err(error) = f(&mut values) {
                outcome = Err(error);
            } else if let Some(refused) = values.refused {
                outcome = Ok(refused);
            }
            delta = values.delta;
            // (3) Once its last object is out, before the lock is given back.
            if delta < 0 && objects.is_empty() {
                self.note_removal(key);
            }
        });
        // (4)
        op.store.count.add(delta);
        garbage.release(op);
        // A bag's scans wait for no lock. A reader that armed the change stamp after `revalidate`
        // and read before the change has its stamp ended here.
        after_lock();
        self.changes.note();
        outcome
    }

    /// Remembers a key that is about to go, under the leaf's lock.
    #[inline]
    fn note_removal(&self, key: Key<'_>) {
        if self.fixation.is_fixed() && !self.kind().is_ordered() {
            self.fixation.remember(key.bytes);
        }
    }

    /// Runs a write under a key until the state word did not change under it.
    #[inline]
    pub(crate) fn writing_under<R>(
        &self,
        guard: &Guard,
        key: &[u8],
        mut f: impl FnMut(&Operation<'_>) -> Result<(Written, R), Error>,
    ) -> Result<R, Error> {
        loop {
            // A write that met another store, a latch or the table's end has changed nothing: it
            // begins with the state word as it is now, or learns why it can't.
            let op = self.begin_on(guard, key, Intent::Write)?;
            match f(&op)? {
                (Written::Done, result) => {
                    if op.store.has_limit() {
                        self.evict_after(guard, 1);
                    }
                    return Ok(result);
                }
                (Written::Full, _) => self.make_room(&op)?,
                (Written::Taken, _) => self.unless_freed(&op)?,
                // What it met, a latch or another's claim, is given back soon.
                (Written::Moved, _) => give_way(),
            }
        }
    }

    /// What is said when a unique index has a value, unless the row that had it was expired.
    #[cold]
    pub(crate) fn unless_freed(&self, op: &Operation<'_>) -> Result<(), Error> {
        match self.free_holder(op) {
            None | Some(Previous::Refused) => Err(taken()),
            // It is gone now.
            Some(_) => Ok(()),
        }
    }

    /// What is said when there is no room.
    #[cold]
    pub(crate) fn full(&self, op: &Operation<'_>) -> Error {
        let (name, limit) = (&self.options().structure, op.store.limit());
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

/// Whether an index of an operation's table is the one below its bounds.
fn is_below(op: &Operation<'_>, ix: &dyn Unique) -> bool {
    let is_own = |bounded: &Arc<Bounded>| std::ptr::addr_eq(ix, &**bounded.below());
    op.store.bounded().is_some_and(is_own)
}

/// Why a store refuses a row in place of another, or beside those of a bag's key. If it doesn't, it
/// has claimed the row's values of unique indexes. `has_stamps`: the rows are those below the
/// table's bounds.
#[cold]
fn refuses(
    table: &Table,
    op: &Operation<'_>,
    (key, old, new): (Key<'_>, Option<&[u8]>, &[u8]),
    has_stamps: bool,
) -> Option<Written> {
    if op.store.has_limit() && op.refuses(key, old, new) {
        return Some(Written::Full);
    }
    // A batch and a commit have claimed the values of all their rows.
    if matches!(op.admission, Admission::BATCH | Admission::COMMIT) {
        return None;
    }
    let indexes = op.store.layers().indexes.as_ref()?;
    let row = |value| match has_stamps {
        true => object_of(value),
        false => value,
    };
    let claim = (key.bytes, old.map(row), row(new));
    let claimed = indexes.claim(op.guard, claim, || table.revalidate(op));
    claimed.err().map(Written::from)
}

impl From<Refused> for Written {
    fn from(why: Refused) -> Self {
        match why {
            Refused::Taken(index) => {
                note_taken(index);
                Written::Taken
            }
            // It begins anew, and sees what has become of the other claim.
            Refused::Unsettled => Written::Moved,
        }
    }
}

/// The objects under one key, with the bookkeeping of changes.
pub(crate) struct ValueList<'o> {
    objects: &'o mut dyn Objects,
    garbage: &'o mut Garbage,
    delta: i64,
    place: (&'o Table, &'o Operation<'o>, Key<'o>),
    /// Why a change was not made.
    refused: Option<Written>,
}

impl ValueList<'_> {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether one is the same as `value`, as `same` says.
    pub(crate) fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.objects.find(value, same)
    }

    /// Calls `f` with each, in order of arrival, until it answers false.
    pub(crate) fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        self.objects.each(f);
    }

    /// Calls `f` with the number and the value of each, in order of arrival.
    pub(crate) fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
        self.objects.each_numbered(f);
    }

    /// Adds one, if there is room; otherwise the change is refused.
    pub(crate) fn push(&mut self, value: &[u8]) {
        let (table, op, key) = self.place;
        if op.store.may_refuse() {
            if self.refused.is_none() {
                self.refused = refuses(table, op, (key, None, value), false);
            }
            if self.refused.is_some() {
                return;
            }
        }
        // (2)
        raw::retain_value(value);
        self.objects.push(value);
        self.delta += 1;
    }

    /// Removes those that `f` picks; gives how many.
    pub(crate) fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        let gone = self.objects.remove_if(&mut self.garbage.noting(f));
        self.delta -= gone as i64;
        gone
    }

    /// Removes all, and calls `f` with each, in order of arrival; gives how many.
    pub(crate) fn remove_all(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        let garbage = &mut *self.garbage;
        let gone = self.objects.remove_all(&mut |value| {
            garbage.note(value);
            f(value);
        });
        self.delta -= gone as i64;
        gone
    }

    /// Removes those that are the same as `value`, as `same` says; gives how many.
    pub(crate) fn remove_same(
        &mut self,
        value: &[u8],
        same: &mut dyn FnMut(&[u8]) -> bool,
    ) -> usize {
        let gone = self
            .objects
            .remove_same(value, &mut self.garbage.noting(same));
        self.delta -= gone as i64;
        gone
    }

    /// Replaces some, by their ordinals: each old value by a new one. All or none.
    pub(crate) fn replace_each(&mut self, changes: &[(usize, &[u8], &[u8])]) {
        let (table, op, key) = self.place;
        if let Some(indexes) = op.store.unique_indexes() {
            let mut claimed = Claimed::begin(indexes);
            let mut each = changes.iter();
            let made = each
                .try_for_each(|(_, old, new)| claimed.claim(op.guard, key.bytes, Some(old), new));
            let kept = made.and_then(|()| claimed.keep_if(|| table.revalidate(op)));
            if let Err(why) = kept {
                self.refused = Some(why.into());
                return;
            }
        }
        for &(ordinal, old, new) in changes {
            self.replace(ordinal, old, new);
        }
    }

    /// Replaces the one with this ordinal, whose value is `old`.
    fn replace(&mut self, ordinal: usize, old: &[u8], new: &[u8]) {
        raw::retain_value(new);
        self.garbage.note(old);
        self.objects.replace(ordinal, new);
    }
}

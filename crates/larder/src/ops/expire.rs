//! Lifetimes in bounded tables: inserts with a lifetime of their own, the remaining lifetime of an
//! object, and the removal of expired objects (steps 2 and 3 of `bounds`).
//!
//! Linearisation point: the store with which the index unlocks the leaf. The operations work below
//! the table's bounds, on values with stamps, by `EngineTable::remove_one` and
//! `EngineTable::change_one`.

use super::begin::{Intent, Operation};
use super::change::{Edit, EditBuffer, Written};
use crate::bounds::{
    take_cause, timers, weight_of_stamped, Bounded, ChangeCause, ObjectTimes, Quota, TimerAction,
    TurnResult, NEVER,
};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::TableIndex;
use crate::indexes::{take_holder, Holder};
use crate::local::{with_local, Local};
use crate::options::Bounds;
use crate::table::EngineTable;
use crate::versions::{GivenLifetime, ViewLifetimes};
use larder_index::{Change, Guard, Key, Previous};
use larder_term::object::{ObjectBuf, ObjectRef};
use std::collections::BTreeSet;

/// The remaining lifetime of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLeft {
    /// There is no object.
    Absent,
    /// The object expires in this number of milliseconds.
    Ms(u64),
    /// The object doesn't expire.
    Unlimited,
}

/// Where an operation finds the lifetimes of objects.
enum Lifetimes<'g> {
    /// In the stamps of a bounded table.
    Table(&'g Bounded),
    /// In a view of one.
    View(&'g ViewLifetimes),
}

impl EngineTable {
    /// The lifetimes of an operation's table.
    fn lifetimes<'g>(op: &Operation<'g>) -> Result<Lifetimes<'g>, Error> {
        let of_table = op.store.bounded().map(|bounded| Lifetimes::Table(bounded));
        let found = of_table.or_else(|| op.store.lifetimes().map(Lifetimes::View));
        found.ok_or(Error::Unbounded)
    }

    /// Inserts an object like `insert`, with a lifetime in milliseconds in place of the table's
    /// `ttl`. With `None`, the object doesn't expire. The table's `idle` applies to it as to
    /// others. In a transaction, the lifetime begins at the commit.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Unbounded` if the table has no bounds.
    pub fn insert_with(
        &self,
        who: OwnerId,
        object: &ObjectBuf,
        ttl: Option<u64>,
    ) -> Result<(), Error> {
        with_local(|local| self.insert_with_in(local, who, object.borrow(), ttl))
    }

    /// Like `insert_with`, for hosts. The table takes counts of its own for handles.
    ///
    /// # Errors
    /// As `insert_with`.
    pub fn insert_with_in(
        &self,
        local: &mut Local,
        who: impl Who,
        object: ObjectRef<'_>,
        ttl: Option<u64>,
    ) -> Result<(), Error> {
        self.may_write(who)?;
        let (key, value) = (self.key(object.key()), object.value());
        self.writing_under(&local.pin(), key.bytes, |op| {
            let written = match Self::lifetimes(op)? {
                Lifetimes::Table(bounded) => self.put_for(op, bounded, key, value, ttl)?,
                Lifetimes::View(view) => self.change_view(op, view, key, ttl, Some(value))?.0,
            };
            Ok((written, ()))
        })
    }

    /// Sets the remaining lifetime, in milliseconds, of the object under an index key. With `None`,
    /// the object doesn't expire. In a transaction, the lifetime begins at the commit. Returns
    /// whether there is such an object. Feeds get no event for this.
    ///
    /// # Errors
    /// As `insert_with`.
    pub fn expire(&self, who: OwnerId, key: &[u8], ttl: Option<u64>) -> Result<bool, Error> {
        with_local(|local| self.expire_in(local, who, key, ttl))
    }

    /// Like `expire`, for hosts.
    ///
    /// # Errors
    /// As `insert_with`.
    pub fn expire_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ttl: Option<u64>,
    ) -> Result<bool, Error> {
        self.may_write(who)?;
        let key = self.key(key);
        self.writing_under(&local.pin(), key.bytes, |op| match Self::lifetimes(op)? {
            Lifetimes::Table(bounded) => self.move_deadline(op, bounded, key, ttl),
            Lifetimes::View(view) => self.change_view(op, view, key, ttl, None),
        })
    }

    /// Applies the lifetime that a transaction has given the object under a key, and the object, if
    /// it has written that, too.
    pub(crate) fn apply_lifetime(
        &self,
        op: &Operation<'_>,
        key: Key<'_>,
        value: &[u8],
        given: GivenLifetime,
    ) -> Result<(), Error> {
        let bounded = op.store.bounded().ok_or(Error::Unbounded)?;
        match given.is_alone {
            true => self.move_deadline(op, bounded, key, given.ttl).map(|_| ()),
            false => self.put_for(op, bounded, key, value, given.ttl).map(|_| ()),
        }
    }

    /// Stores an object with a lifetime, below the table's bounds.
    fn put_for(
        &self,
        op: &Operation<'_>,
        bounded: &Bounded,
        key: Key<'_>,
        object: &[u8],
        ttl: Option<u64>,
    ) -> Result<Written, Error> {
        let (mut arm, mut growth) = Default::default();
        // Write below `Bounded`, which would give the object the table's own lifetime.
        let written = self.change_one_noting(
            op,
            &**bounded.below(),
            key,
            EditBuffer::Own,
            &mut |value, scratch| {
                let now = bounded.now();
                let old = value.map(ObjectTimes::of);
                let stamp;
                (stamp, arm) = bounded.layer().stamp(now, old, Some(ttl.unwrap_or(NEVER)));
                scratch.extend_from_slice(object);
                stamp.push(scratch);
                // An expired object counts as absent for the number of objects, but not for the
                // weight.
                if let Some(quota) = bounded.layer().quota() {
                    let is_new = old.is_none_or(|old| old.is_expired(now));
                    growth = quota.growth(key.bytes, value, object, is_new);
                }
                // Followers get two events then: the old object has expired, and the new one was
                // inserted.
                if old.is_some_and(|old| old.is_expired(now)) {
                    bounded.set_cause(ChangeCause::Expired);
                }
                Ok(Change::Put.into())
            },
            || bounded.record_use(op.guard, key),
        )?;
        if let Written::Done = written {
            bounded.after_write(op.guard, key, arm, growth);
        } else {
            // Nothing was changed, so the recorded kind of change was not read.
            take_cause();
        }
        Ok(written)
    }

    /// Moves the deadline of the object under a key, below the table's bounds. Also returns whether
    /// there is an object.
    fn move_deadline(
        &self,
        op: &Operation<'_>,
        bounded: &Bounded,
        key: Key<'_>,
        ttl: Option<u64>,
    ) -> Result<(Written, bool), Error> {
        let (mut arm, mut there) = Default::default();
        let written = self.change_one_noting(
            op,
            &**bounded.below(),
            key,
            EditBuffer::Own,
            &mut |old, scratch| {
                let now = bounded.now();
                // An expired object stays expired.
                let live = old.filter(|old| !ObjectTimes::of(old).is_expired(now));
                there = live.is_some();
                let Some(old) = live else {
                    return Ok(Change::Keep.into());
                };
                let (ttl, was) = (Some(ttl.unwrap_or(NEVER)), Some(ObjectTimes::of(old)));
                let stamp;
                (stamp, arm) = bounded.layer().stamp(now, was, ttl);
                // Only the stamp changes. So no event is pushed, and the object's handles keep
                // their counts.
                bounded.set_cause(ChangeCause::DeadlineMoved);
                Ok(Edit {
                    change: stamp.replace(old, scratch),
                    same_handles: true,
                })
            },
            // This is a write, so it counts as a use of the key.
            || bounded.record_use(op.guard, key),
        )?;
        // The wheel's lock is never taken under that of an entry.
        bounded.layer().arm(key.bytes, arm);
        Ok((written, there))
    }

    /// Gives the object under a key of a transaction's view a lifetime. Stores `new`, or the object
    /// that is there, if there is one. Also returns whether there is an object.
    fn change_view(
        &self,
        op: &Operation<'_>,
        view: &ViewLifetimes,
        key: Key<'_>,
        ttl: Option<u64>,
        new: Option<&[u8]>,
    ) -> Result<(Written, bool), Error> {
        let TableIndex::Unique(ix) = &op.store.index else {
            return Err(Error::Unbounded);
        };
        let mut is_there = false;
        let written = self.change_one_noting(
            op,
            &**ix,
            key,
            EditBuffer::Own,
            &mut |old, scratch| {
                let object = new.or(old);
                is_there = object.is_some();
                scratch.extend_from_slice(object.unwrap_or_default());
                Ok(if is_there { Change::Put } else { Change::Keep }.into())
            },
            // The write follows, under the same lock.
            || {
                view.announce(GivenLifetime {
                    ttl,
                    is_alone: new.is_none(),
                });
            },
        )?;
        Ok((written, is_there))
    }

    /// Returns the remaining lifetime of the object under an index key. This doesn't count as a
    /// read of it. In a view, it is the lifetime as of the view's instant.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`; `Unbounded` if the table has no bounds.
    pub fn time_left(&self, who: impl Who, key: &[u8]) -> Result<TimeLeft, Error> {
        self.may_read(who)?;
        let guard = larder_index::pin();
        let op = self.begin_on(&guard, key, Intent::Read)?;
        let key = self.key(key);
        let (now, deadline) = match Self::lifetimes(&op)? {
            Lifetimes::Table(bounded) => {
                // Below the bounds, an expired object still exists like any other. Its deadline
                // decides here.
                let now = bounded.now();
                let mut value = Vec::new();
                let there = bounded.below().get(&guard, key, &mut value);
                let deadline = there.then(|| ObjectTimes::of(&value).deadline);
                (now, deadline.filter(|deadline| *deadline > now))
            }
            // A transaction reads the key, so that its commit checks it.
            Lifetimes::View(view) if op.store.index.contains(&guard, key) => {
                (view.now(), view.deadline(&guard, key))
            }
            Lifetimes::View(_) => return Ok(TimeLeft::Absent),
        };
        Ok(match deadline {
            None => TimeLeft::Absent,
            Some(NEVER) => TimeLeft::Unlimited,
            // A transaction sees what it has written, also if that is to expire at once.
            Some(deadline) => TimeLeft::Ms(deadline.saturating_sub(now)),
        })
    }

    /// The table's bounds, if it is bounded; `None` for a view.
    pub fn bounds(&self) -> Option<Bounds> {
        let guard = larder_index::pin();
        let layer = self.store(&guard)?.layer()?;
        Some(layer.bounds())
    }

    /// Sets the bounds of a bounded table. They apply to objects written from now on. Existing
    /// objects keep their lifetimes.
    ///
    /// # Errors
    /// `NoTable`, `NotOwner`; `Unbounded` if the table was created without bounds, `Unlimited` for
    /// limits if the table was created without limits; `BadOption` for a limit of 0; `ReadOnly` for
    /// a snapshot, `View` in a transaction.
    pub fn set_bounds(&self, who: OwnerId, bounds: &Bounds) -> Result<(), Error> {
        // Only the owner may change options, as for any table.
        if self.owner() != who {
            return Err(Error::NotOwner);
        }
        // Invalid limits are refused before anything is set.
        bounds.limits.map_or(Ok(()), |limits| limits.check())?;
        let guard = larder_index::pin();
        let store = self.store(&guard).ok_or(Error::NoTable)?;
        let layer = store.layer().ok_or_else(|| {
            let view = self.view.as_ref();
            view.map_or(Error::Unbounded, |view| view.why_fixed())
        })?;
        // A table without limits keeps no heat of its objects, and can't begin to.
        if bounds.limits.is_some() && layer.quota().is_none() {
            return Err(Error::Unlimited);
        }
        layer.set(bounds);
        Ok(())
    }

    /// The size in bytes of the objects of a table with limits, as `max_memory` counts it; `None`
    /// for other tables. O(1).
    pub fn weight(&self) -> Option<usize> {
        let guard = larder_index::pin();
        self.store(&guard)?.quota().map(Quota::weight)
    }

    /// Removes expired objects, about as many as have two kilobytes of keys. Returns how many
    /// timers were processed, and whether more may be due. The library does this by itself, on a
    /// thread of its own.
    ///
    /// # Errors
    /// `NoTable`; `Busy` while a list is being inserted. The timers that were not processed stay
    /// due.
    pub fn remove_expired(&self) -> Result<(usize, bool), Error> {
        let guard = larder_index::pin();
        let store = self.store(&guard).ok_or(Error::NoTable)?;
        let Some(layer) = store.layer() else {
            return Ok((0, false));
        };
        // One chunk of timers. The caller repeats, and rests in between.
        let (turned, _in_hand) = layer.turn(layer.now());
        let chunk = match turned {
            TurnResult::Due(chunk) => chunk,
            TurnResult::Done => return Ok((0, false)),
            TurnResult::Stopped => return Ok((0, true)),
        };
        let (mut looked, mut result) = (0, Ok(()));
        for (time, key) in timers(&chunk) {
            result = result.and_then(|()| self.timer_due(&guard, time, key));
            match result {
                Ok(()) => looked += 1,
                // Make the rest due again at once.
                Err(_) => layer.push(time, key),
            }
        }
        result.map(|()| (looked, true))
    }

    /// Drops some timers of objects that are gone, if they are the majority: the timer of an object
    /// that was deleted or evicted stays in the wheel otherwise until its time comes. Returns
    /// whether there may be more of them.
    pub(crate) fn drop_stale_timers(&self, guard: &Guard) -> bool {
        let Some(store) = self.store(guard) else {
            return false;
        };
        let Some(bounded) = store.bounded() else {
            return false;
        };
        let layer = bounded.layer();
        if !layer.has_stale_timers(store.size()) {
            return false;
        }
        let Some((chunk, _in_hand)) = layer.sweep() else {
            // The end of a round. The next one begins at once, if there are still too many.
            return true;
        };
        let (mut value, mut passed) = (Vec::new(), BTreeSet::new());
        // A timer that isn't its object's own now never becomes so again: whoever arms an object
        // with a time adds a timer for it after that.
        for (time, key) in timers(&chunk) {
            value.clear();
            let is_there = bounded.stored(guard, self.key(key), &mut value);
            let is_own = is_there && ObjectTimes::of(&value).armed == time;
            // A key that was written again and again within a millisecond has equal timers.
            if is_own && passed.insert((time, key)) {
                layer.push(time, key);
            }
        }
        true
    }

    /// If the row that has the value of a unique index which the thread could not claim is expired,
    /// removes it. Returns what was there; `Absent` also for a row without the value, and `Refused`
    /// if the row is not expired. `None` for a table without bounds.
    #[cold]
    pub(crate) fn free_holder(&self, op: &Operation<'_>) -> Option<Previous> {
        let holder = take_holder()?;
        self.free(op, &holder)
    }

    /// As `free_holder`, for a holder that was taken.
    #[cold]
    pub(crate) fn free(&self, op: &Operation<'_>, holder: &Holder) -> Option<Previous> {
        let was = self.free_expired(op, &holder.key)?;
        let indexes = op.store.layers().indexes.as_ref()?;
        // A row that lives may have replaced the expired one, and have another value.
        let has_value = was != Previous::Refused || indexes.has(op.guard, holder);
        Some(if has_value { was } else { Previous::Absent })
    }

    /// Removes the row under a key if it is expired, like its timer would. Returns the same as
    /// `free_holder`.
    fn free_expired(&self, op: &Operation<'_>, key: &[u8]) -> Option<Previous> {
        let bounded = op.store.bounded()?;
        // Decide under the lock: the row may have been replaced by one that lives.
        let mut freed = 0;
        let (written, was) = self.remove_one(op, &**bounded.below(), self.key(key), |value| {
            freed = weight_of_stamped(key, value);
            let is_expired = ObjectTimes::of(value).is_expired(bounded.now());
            if is_expired {
                bounded.set_cause(ChangeCause::Expired);
            }
            is_expired
        });
        // As in `timer_due`.
        if let (Previous::Present, Some(quota)) = (was, bounded.layer().quota()) {
            quota.add_weight(-freed);
        }
        Some(match written {
            // The operation starts again in any case.
            Written::Stale => Previous::Absent,
            _ => was,
        })
    }

    /// Steps 2 and 3.
    fn timer_due(&self, guard: &Guard, time: u64, key: &[u8]) -> Result<(), Error> {
        let key = self.key(key);
        self.writing_under(guard, key.bytes, |op| {
            let Some(bounded) = op.store.bounded() else {
                return Ok((Written::Done, ()));
            };
            // (2) Decide under the lock of the entry. A write may have moved the deadline, or
            // replaced the object by one with another timer.
            let (mut again, mut freed) = (false, 0);
            let (written, was) =
                self.remove_one(op, &**bounded.below(), key, |value| {
                    match bounded
                        .layer()
                        .timer_action(bounded.now(), time, ObjectTimes::of(value))
                    {
                        TimerAction::Nothing => false,
                        TimerAction::Rearm(..) => {
                            again = true;
                            false
                        }
                        TimerAction::Remove => {
                            bounded.set_cause(ChangeCause::Expired);
                            freed = weight_of_stamped(key.bytes, value);
                            true
                        }
                    }
                });
            // The weight is reduced after the removal. Until then it is too high, never too low.
            if let (Previous::Present, Some(quota)) = (was, bounded.layer().quota()) {
                quota.add_weight(-freed);
            }
            // (3) The deadline is later.
            debug_assert!(!again || was == Previous::Refused);
            if again && matches!(written, Written::Done) {
                bounded.rearm(op.guard, key, time);
            }
            Ok((written, ()))
        })
    }
}

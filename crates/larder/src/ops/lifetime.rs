//! Lifetimes in bounded tables: inserts with a lifetime of their own, and the remaining lifetime of
//! an object.
//!
//! Linearisation point: the store with which the index unlocks the leaf. The operations work below
//! the table's bounds, on values with stamps, by `EngineTable::change_one`.

use super::begin::{Intent, Operation};
use super::change::{Edit, EditBuffer};
use super::refusal::Written;
use crate::bounds::{Bounded, ChangeCause, ObjectTimes, Quota, NEVER};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::index::TableIndex;
use crate::local::{with_local, Local};
use crate::options::Bounds;
use crate::table::EngineTable;
use crate::versions::{GivenLifetime, ViewLifetimes};
use larder_index::{Change, Key};
use larder_term::object::{ObjectBuf, ObjectRef};
use std::cell::Cell;

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
                // The deadline is stored with the object.
                Lifetimes::Table(bounded) => {
                    let lifetime = Some(ttl.unwrap_or(NEVER));
                    self.put_for(op, bounded, key, value, lifetime, None)?
                }
                // The transaction records the lifetime. The commit gives the object its deadline.
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

    /// Makes a commit's write of a key of a bounded table: stores `value`, with the lifetime that
    /// the transaction gives it, if there is one, or deletes the object. `saw` says whether the
    /// transaction has seen an object under the key.
    ///
    /// An object that the transaction has seen counts as there, also if it has expired since.
    /// Nobody has removed it, because the transaction was validated. So its deletion leaves a
    /// version, as any other does, and another transaction that has seen it is lost. Followers are
    /// told what the transaction has done to it, and not that it has expired.
    pub(crate) fn apply_bounded(
        &self,
        op: &Operation<'_>,
        bounded: &Bounded,
        key: Key<'_>,
        value: Option<&[u8]>,
        given: Option<GivenLifetime>,
        saw: bool,
    ) -> Result<(), Error> {
        match (value, given) {
            (None, _) => {
                // An object that it hasn't seen was expired.
                let cause = match saw {
                    true => ChangeCause::Program,
                    false => ChangeCause::Expired,
                };
                self.remove_below(op, bounded, key, |_| Some(cause));
                Ok(())
            }
            (Some(value), Some(given)) if given.is_alone => {
                let (_, is_live) = self.move_deadline(op, bounded, key, given.ttl)?;
                if !is_live {
                    // Others may have found it absent since. So it is written anew, which leaves a
                    // version for snapshots.
                    let lifetime = Some(given.ttl.unwrap_or(NEVER));
                    self.put_for(op, bounded, key, value, lifetime, Some(saw))?;
                }
                Ok(())
            }
            (Some(value), given) => {
                let lifetime = given.map(|given| given.ttl.unwrap_or(NEVER));
                self.put_for(op, bounded, key, value, lifetime, Some(saw))
                    .map(drop)
            }
        }
    }

    /// Stores an object below the table's bounds, with a lifetime, or with that of the table.
    /// An object that is there is expired if the caller hasn't seen it, as `saw` says; without
    /// `saw`, if its time is over.
    fn put_for(
        &self,
        op: &Operation<'_>,
        bounded: &Bounded,
        key: Key<'_>,
        object: &[u8],
        lifetime: Option<u64>,
        saw: Option<bool>,
    ) -> Result<Written, Error> {
        let (mut arm, mut growth) = Default::default();
        let written = self.change_below(op, bounded, key, |now, value, scratch| {
            let old = value.map(ObjectTimes::of);
            let stamp;
            (stamp, arm) = bounded.layer().stamp(now, old, lifetime);
            scratch.extend_from_slice(object);
            stamp.push(scratch);
            // An expired object counts as absent for the number of objects, but not for the
            // weight.
            let is_expired = |old: ObjectTimes| saw.map_or(old.is_expired(now), |saw| !saw);
            let replaces_expired = old.is_some_and(is_expired);
            if let Some(quota) = bounded.layer().quota() {
                growth = quota.growth(key.bytes, value, object, old.is_none() || replaces_expired);
            }
            // Followers get two events then: the old object has expired, and the new one was
            // inserted.
            let cause = match replaces_expired {
                true => ChangeCause::Expired,
                false => ChangeCause::Program,
            };
            (Change::Put.into(), cause)
        })?;
        if let Written::Done = written {
            bounded.after_write(op.guard, key, arm, growth);
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
        let written = self.change_below(op, bounded, key, |now, old, scratch| {
            // An expired object stays expired.
            let live = old.filter(|old| !ObjectTimes::of(old).is_expired(now));
            there = live.is_some();
            // Only the stamp changes. So no event is pushed, and the object's handles keep their
            // counts.
            let change = live.map_or(Change::Keep, |old| {
                let (ttl, was) = (Some(ttl.unwrap_or(NEVER)), Some(ObjectTimes::of(old)));
                let stamp;
                (stamp, arm) = bounded.layer().stamp(now, was, ttl);
                stamp.replace(old, scratch)
            });
            let edit = Edit {
                change,
                same_handles: true,
            };
            (edit, ChangeCause::DeadlineMoved)
        })?;
        if let Written::Done = written {
            // The wheel's lock is never taken under that of an entry.
            bounded.layer().arm(key.bytes, arm);
        }
        Ok((written, there))
    }

    /// Changes the value with a stamp under a key, below the table's bounds, which would give an
    /// object the table's own lifetime. `f` is called under the lock, with the time, the value and
    /// an empty buffer. It returns the change and its cause. A change counts as a use of the key.
    #[inline]
    fn change_below(
        &self,
        op: &Operation<'_>,
        bounded: &Bounded,
        key: Key<'_>,
        mut f: impl FnMut(u64, Option<&[u8]>, &mut Vec<u8>) -> (Edit, ChangeCause),
    ) -> Result<Written, Error> {
        let cause = Cell::new(ChangeCause::Program);
        self.change_one_noting(
            op,
            &**bounded.below(),
            key,
            EditBuffer::Own,
            |old, scratch| {
                let (edit, why) = f(bounded.now(), old, scratch);
                cause.set(why);
                Ok(edit)
            },
            || {
                // The change is certain. The index below takes the cause when it is made. A change
                // that is refused sets none, which the thread's next change would take.
                bounded.set_cause(cause.get());
                bounded.record_use(op.guard, key);
            },
        )
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
            // The object that gets the lifetime: the new one, or else the one that is there.
            |old, scratch| {
                let object = new.or(old);
                is_there = object.is_some();
                scratch.extend_from_slice(object.unwrap_or_default());
                Ok(if is_there { Change::Put } else { Change::Keep }.into())
            },
            // Tell the view the lifetime of the write that follows, under the same lock.
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
                let times = bounded.committed_times(&guard, key);
                let deadline = times.map(|times| times.deadline);
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
    /// `NoTable`, `NotOwner`; `Unlimited` for limits if the table was created without limits,
    /// `Unbounded` for lifetimes alone if it was created without bounds; `BadOption` for a limit of
    /// 0; `ReadOnly` for a snapshot, `View` in a transaction.
    pub fn set_bounds(&self, who: OwnerId, bounds: &Bounds) -> Result<(), Error> {
        // Only the owner may change options, as for any table.
        if self.owner() != who {
            return Err(Error::NotOwner);
        }
        // Invalid limits are refused before anything is set.
        bounds.limits.map_or(Ok(()), |limits| limits.check())?;
        let guard = larder_index::pin();
        let store = self.store(&guard).ok_or(Error::NoTable)?;
        let layer = store.layer().ok_or_else(|| match &self.view {
            Some(view) => view.why_fixed(),
            // What would help is said: a table that was made with a lifetime has no limits either.
            None if bounds.limits.is_some() => Error::Unlimited,
            None => Error::Unbounded,
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Event, Index, Larder, Table};
    use crate::bounds::{advance_clock, now};
    use larder_term::{term, Term};
    use std::time::{Duration, Instant};

    /// Moves the deadline of the object 1 as if it were earlier.
    fn move_at(t: &Table, time: u64) -> (Written, bool) {
        let (engine, guard) = (t.engine_table(), larder_index::pin());
        let mut key = Vec::new();
        engine.encode_key(term!(1).as_ref(), &mut key);
        let op = engine.begin_on(&guard, &key, Intent::Write).unwrap();
        let bounded = op.store.bounded().unwrap().at(time);
        let moved = engine.move_deadline(&op, &bounded, engine.key(&key), None);
        moved.unwrap()
    }

    /// An object expires between the look at its deadline and the claim of its values. Another one
    /// has its value then: when the index was added, the first object was expired, and passed over.
    #[test]
    fn a_move_that_is_refused_does_not_hide_the_next_change() {
        let is_refused = || {
            let builder = Larder::new().table("t").ttl(Duration::from_secs(1));
            let t = builder.create().unwrap();
            let before = now();
            t.insert(&term!({1, 7})).unwrap();
            t.insert_with(&term!({2, 7}), None).unwrap();
            let mut feed = t.subscribe().unwrap();
            advance_clock(2_000);
            t.add_index(&Index::element("v", 2).unique()).unwrap();
            let (written, is_there) = move_at(&t, before);
            t.insert(&term!({3, 8})).unwrap();
            let commits = std::iter::from_fn(|| feed.try_recv());
            let mut events = commits.flat_map(|commit| commit.events);
            assert!(events.any(|event| event == Event::Insert(term!({3, 8}))));
            is_there && matches!(written, Written::Taken)
        };
        // The library may have removed the object before.
        assert!((0..1_000).any(|_| is_refused()));
    }

    /// The times lie after the object, which isn't copied.
    #[test]
    fn the_time_left_of_a_long_object_is_found_in_no_time() {
        let ttl = Duration::from_secs(1_000);
        let t = Larder::new().table("t").ttl(ttl).create().unwrap();
        let long = Term::list((0..8_000_000).map(|_| Term::from(7)));
        t.insert(&Term::tuple([Term::from(1), long])).unwrap();
        let times = (0..50).map(|_| {
            let begun = Instant::now();
            let left = t.time_left(&term!(1)).unwrap();
            assert!(matches!(left, TimeLeft::Ms(ms) if ms > 0));
            begun.elapsed()
        });
        assert!(times.min().unwrap() < Duration::from_micros(200));
    }
}

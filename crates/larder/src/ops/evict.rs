//! Evictions from tables with limits, and refusals if the table doesn't evict (see
//! `bounds::quota`).
//!
//! # Steps
//!
//! 1. A write is made as in any table. With `Evict::None` it is refused before that, if it would
//!    exceed a limit.
//! 2. After the write, without a lock, the thread evicts objects while there are too many. A write
//!    of one key, or a commit, evicts at most [`MAX_EXTRA_EVICTIONS`] more than it has written, so
//!    that no call pays for everything that is left. A list evicts in slices (`ListJob::evict`).
//! 3. *Choose* a victim: a key, with its heat and a fingerprint of its object.
//! 4. Lock the entry of the victim. If the object is still the one that was chosen, and the key
//!    wasn't used since, remove it. Otherwise choose again. The removal is a commit like any other:
//!    snapshots keep the object, feeds get an event, and transactions that have read it lose.
//! 5. Objects may be left: because of the bound in (2), because eight chosen ones in a row were
//!    used meanwhile, because a list was being inserted, or because `select_replace` has made
//!    objects larger, which evicts nothing. The next write evicts them, or the expirer.
//!
//! Linearisation point of an eviction: that of a delete. It is a change of its own.
//!
//! So between two calls of one thread a table doesn't exceed its limits. But there may be one
//! object more for each other thread that is inserting, and the objects of a list or a transaction
//! while that call is running.

use super::begin::{Intent, Operation};
use super::commit::Written;
use crate::bounds::{
    object_of, weight_of_stamped, Bounded, ChangeCause, ObjectTimes, Quota, SpaceNeeded, Victim,
};
use crate::error::Error;
use crate::store::Store;
use crate::table::EngineTable;
use larder_index::{Guard, Previous};

/// The maximum number of objects that a write evicts in addition to the number that it has written.
/// It bounds the time that a write takes for the surplus of others.
const MAX_EXTRA_EVICTIONS: usize = 256;
/// The number of successive choices that may become invalid.
const CHOICES: usize = 8;
/// The number of invalid choices after which the remaining candidates, which are as old, are
/// dropped.
const STALE: usize = 4;

impl EngineTable {
    /// (2) Called after this number of objects was written.
    #[cold]
    pub(crate) fn evict_after(&self, guard: &Guard, written: usize) {
        self.evict_surplus(guard, written + MAX_EXTRA_EVICTIONS);
    }

    /// Evicts objects while there are too many, at most this number. Returns how many were evicted.
    pub(crate) fn evict_surplus(&self, guard: &Guard, most: usize) -> usize {
        let mut gone = 0;
        while gone < most {
            // The store is loaded in each round, since it may be replaced, or the table dropped.
            let Some(store) = self.store(guard) else {
                break;
            };
            let Some((bounded, quota)) = limited(store) else {
                break;
            };
            // Nothing more to evict, or no victim found.
            if !quota.has_surplus(store.size()) || !self.evict_one(guard, store, bounded, quota) {
                break;
            }
            gone += 1;
        }
        gone
    }

    /// Whether there are too many objects.
    pub(crate) fn has_surplus(&self, guard: &Guard) -> bool {
        let store = self.store(guard);
        store.is_some_and(|store| {
            limited(store).is_some_and(|(_, quota)| quota.has_surplus(store.size()))
        })
    }

    /// Removes expired objects of a table that refuses writes when it is full. The write is then
    /// repeated.
    ///
    /// # Errors
    /// `Full` if no object is expired.
    #[cold]
    pub(super) fn make_room(&self, op: &Operation<'_>) -> Result<(), Error> {
        if let Some((bounded, _)) = limited(op.store) {
            // Each round removes a chunk of expired objects, until one of them makes the
            // difference.
            while bounded.has_due() {
                let before = op.store.size();
                let (_, more) = self.remove_expired()?;
                if op.store.size() < before {
                    // The write begins again, with the object's room free.
                    return Ok(());
                }
                if !more {
                    break;
                }
            }
        }
        Err(self.full(op))
    }

    /// Evicts one object. Returns whether it did.
    fn evict_one(&self, guard: &Guard, store: &Store, bounded: &Bounded, quota: &Quota) -> bool {
        let mut spoiled = 0;
        while spoiled < CHOICES {
            // (3) If there is none, the table is empty.
            let Some(victim) = bounded.choose(guard, quota, store.size()) else {
                return false;
            };
            match self.evict(guard, &victim, quota) {
                Ok(Previous::Present) => return true,
                // It is gone already. There are as many choices as this as there were removals.
                Ok(Previous::Absent) => {}
                // It was used or written since the choice. Choose again.
                Ok(Previous::Refused) => {
                    spoiled += 1;
                    if spoiled == STALE {
                        quota.forget_candidates();
                    }
                }
                // (5) A list is being inserted, or the table was dropped.
                Err(_) => return false,
            }
        }
        false
    }

    /// (4) Removes a victim that this quota has chosen.
    fn evict(&self, guard: &Guard, victim: &Victim, by: &Quota) -> Result<Previous, Error> {
        let key = self.key_with(&victim.key, victim.hash);
        loop {
            let op = self.begin_on(guard, key.bytes, Intent::Write)?;
            // If the table was emptied since, the victim wasn't chosen among its present objects.
            let same = limited(op.store).filter(|(_, quota)| std::ptr::eq(*quota, by));
            let Some((bounded, quota)) = same else {
                return Ok(Previous::Refused);
            };
            // Called under the lock of the entry. The index below `Bounded` also shows expired
            // objects. These are removed, too, but they aren't evictions.
            let (mut freed, mut evicted) = (0, false);
            let (written, was) = self.remove_one(&op, &**bounded.below(), key, |value| {
                let expired = ObjectTimes::of(value).is_expired(bounded.write_time());
                if !expired && quota.is_fresher(victim, value) {
                    return false;
                }
                evicted = !expired;
                bounded.set_cause(if expired {
                    ChangeCause::Expired
                } else {
                    ChangeCause::Evicted
                });
                freed = weight_of_stamped(key.bytes, value);
                true
            });
            // The state word has changed since `begin_on`, and nothing was removed. Start again.
            if let Written::Stale = written {
                continue;
            }
            // The removal bypasses `Bounded`, which otherwise counts weights (see
            // `bounds::quota`).
            if was == Previous::Present {
                quota.weigh(-freed);
                if evicted {
                    quota.note_eviction();
                }
            }
            return Ok(was);
        }
    }

    /// Whether there is room for what one commit writes: keys, each with its new object, or `None`
    /// for one that is deleted. Always true if the table evicts.
    ///
    /// # Errors
    /// `NoTable`, `Busy`.
    pub(crate) fn has_room<'k>(
        &self,
        guard: &Guard,
        rows: impl Iterator<Item = (&'k [u8], Option<&'k [u8]>)>,
    ) -> Result<bool, Error> {
        let store = self.begin(guard)?.store;
        // Most tables refuse nothing, and need no sum.
        let limits = limited(store).filter(|(_, quota)| quota.refuses_some());
        let Some((bounded, _)) = limits else {
            return Ok(true);
        };
        // Sum what all new objects need, less what goes for them. An expired object still takes its
        // room, so it is read, too.
        let (mut need, mut old) = (SpaceNeeded::default(), Vec::new());
        for (key, new) in rows {
            old.clear();
            let key = self.key(key);
            let is_there = bounded.stored(guard, key, &mut old);
            need += store.need(key, is_there.then(|| object_of(&old)), new);
        }
        Ok(!store.refuses(need))
    }

    /// Removes expired objects, if the table was found full. See `make_room`.
    ///
    /// # Errors
    /// `NoTable`, `Busy`; `Full` if no object is expired.
    #[cold]
    pub(crate) fn remove_for_room(&self, guard: &Guard) -> Result<(), Error> {
        self.make_room(&self.begin(guard)?)
    }

    /// Removes some of the expired objects, if the table has no room for `more` objects and evicts
    /// nothing. Returns whether it has removed some: there may be further ones then. While a list
    /// is being inserted, it removes nothing.
    pub(crate) fn removes_for(&self, guard: &Guard, more: usize) -> bool {
        self.store(guard).is_some_and(|store| {
            limited(store).is_some_and(|(bounded, _)| !store.takes(more) && bounded.has_due())
                && self.remove_expired().is_ok_and(|(gone, _)| gone > 0)
        })
    }
}

/// The quota of a store, if it has limits.
fn limited(store: &Store) -> Option<(&Bounded, &Quota)> {
    let bounded = store.bounded()?;
    Some((bounded, bounded.layer().quota()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Larder;
    use crate::Evict;
    use larder_term::term;

    /// Also if the value is the same. With `sieve` all rows are in use.
    #[test]
    fn what_was_written_since_the_choice_is_not_evicted() {
        for evict in [Evict::Lru, Evict::TinyLfu, Evict::Sieve] {
            let builder = Larder::new().table("t").max_size(8).evict(evict);
            let table = builder.create().unwrap();
            let rows: Vec<_> = (0..8).map(|key| term!({(key), 0})).collect();
            rows.iter().for_each(|row| table.insert(row).unwrap());
            if evict == Evict::Sieve {
                (0..8).for_each(|key| assert_eq!(table.lookup(&term!((key))).unwrap().len(), 1));
            }
            let (engine, guard) = (table.engine_table(), larder_index::pin());
            let (bounded, quota) = limited(engine.store(&guard).unwrap()).unwrap();
            let choose = || bounded.choose(&guard, quota, 8).unwrap();
            let victim = choose();
            // One of them is the victim.
            rows.iter().for_each(|row| table.insert(row).unwrap());
            let remove = |victim| engine.evict(&guard, &victim, quota).unwrap();
            assert_eq!(remove(victim), Previous::Refused, "{evict:?}");
            assert_eq!(remove(choose()), Previous::Present);
        }
    }
}

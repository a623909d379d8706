//! What a table with limits has too much: some of its objects are evicted, or no more are let in
//! (see `bounds::quota`).
//!
//! # Steps
//!
//! 1. A write is made as in any table. With `Evict::None` it is refused before, if it would exceed
//!    a limit.
//! 2. Afterwards, without a lock, the thread that has written evicts objects while there are too
//!    many: some more than it has written at most, so that no call pays for all that is left.
//! 3. *Choose* a victim: a key, with its heat and a print of its object.
//! 4. Under the lock of its entry: the object is removed, if it is the one that was chosen and
//!    nobody has met it since. Else there is another choice. This is a commit as any removal is:
//!    snapshots keep the object, feeds tell it, and transactions that read it lose.
//! 5. What is left, as others were fresher or a list was being inserted, the next write evicts, or
//!    the expirer.
//!
//! Linearisation point of an eviction: as of a delete. It is a change of its own.
//!
//! So between two calls of one thread a table has no more than its limits say. There may be one
//! object more for each other thread that is inserting, and the objects of a list or a transaction
//! while that call is under way.

use super::begin::{Intent, Operation};
use super::commit::Written;
use crate::bounds::{weight_of_stamped, Bounded, Gone, Quota, Stamp, Victim};
use crate::error::Error;
use crate::index::Index;
use crate::store::Store;
use crate::table::Table;
use larder_index::{Guard, Previous};

/// Objects that a write evicts at most, besides as many as it has written: about a quarter of a
/// millisecond.
const MOST: usize = 256;
/// Choices that others may spoil, one after the other.
const CHOICES: usize = 8;
/// Spoiled choices after which the candidates that are left, which are as old, are forgotten.
const STALE: usize = 4;

impl Table {
    /// (2) After so many objects were written.
    #[cold]
    pub(crate) fn evict_after(&self, guard: &Guard, written: usize) {
        self.evict_surplus(guard, written + MOST);
    }

    /// Evicts objects while there are too many, so many at most; how many went.
    pub(crate) fn evict_surplus(&self, guard: &Guard, most: usize) -> usize {
        let mut gone = 0;
        while gone < most {
            let Some(store) = self.store(guard) else {
                break;
            };
            let Some((bounded, quota)) = limited(store) else {
                break;
            };
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

    /// Removes what is expired, of a table that refuses what it has no room for: then the write
    /// begins again.
    ///
    /// # Errors
    /// `Full` if there is nothing expired.
    #[cold]
    pub(super) fn make_room(&self, op: &Operation<'_>) -> Result<(), Error> {
        if let Some((bounded, _)) = limited(op.store) {
            while bounded.has_due() {
                let before = op.store.size();
                let (_, more) = self.remove_expired()?;
                if op.store.size() < before {
                    return Ok(());
                }
                if !more {
                    break;
                }
            }
        }
        Err(self.full(op))
    }

    /// Whether one went.
    fn evict_one(&self, guard: &Guard, store: &Store, bounded: &Bounded, quota: &Quota) -> bool {
        for spoiled in 0..CHOICES {
            if spoiled == STALE {
                quota.forget_candidates();
            }
            // (3)
            let Some(victim) = bounded.choose(guard, quota, store.size()) else {
                return false;
            };
            match self.evict(guard, &victim, quota) {
                Ok(Previous::Present) => return true,
                Ok(_) => {}
                // (5) A list is being inserted, or the table is gone.
                Err(_) => return false,
            }
        }
        false
    }

    /// (4) Of a victim that this quota has chosen.
    fn evict(&self, guard: &Guard, victim: &Victim, by: &Quota) -> Result<Previous, Error> {
        let key = self.key(&victim.key);
        loop {
            let op = self.begin_on(guard, key.bytes, Intent::Write)?;
            // If the table was emptied since, what it has now was not chosen.
            let same = limited(op.store).filter(|(_, quota)| std::ptr::eq(*quota, by));
            let Some((bounded, quota)) = same else {
                return Ok(Previous::Absent);
            };
            let (mut freed, mut evicted) = (0, false);
            let (written, was) = self.remove_one(&op, &**bounded.below(), key, |value| {
                let expired = Stamp::of(value).is_expired(bounded.now());
                if !expired && quota.is_fresher(victim, value) {
                    return false;
                }
                evicted = !expired;
                bounded.tell(if expired {
                    Gone::Expired
                } else {
                    Gone::Evicted
                });
                freed = weight_of_stamped(key.bytes, value);
                true
            });
            if let Written::Moved = written {
                continue;
            }
            if was == Previous::Present {
                quota.weigh(-freed);
                if evicted {
                    quota.note_eviction();
                }
            }
            return Ok(was);
        }
    }

    /// Asks whether there is room for what is new of some keys and values, which one commit writes.
    ///
    /// # Errors
    /// `NoTable`, `Busy`; `Full` if there is none, of a table that evicts nothing.
    pub(crate) fn ask_for_room<'k>(
        &self,
        guard: &Guard,
        objects: impl Iterator<Item = (&'k [u8], &'k [u8])>,
    ) -> Result<(), Error> {
        let op = self.begin(guard)?;
        let store = op.store;
        // Below the locks of keys, which the commit may hold.
        let below = store.history().map_or(store, |history| history.store());
        let Index::Unique(index) = &below.index else {
            return Ok(());
        };
        if !store.quota().is_some_and(Quota::refuses_some) {
            return Ok(());
        }
        let (mut more, mut old) = ((0, 0), Vec::new());
        for (key, value) in objects {
            old.clear();
            let key = self.key(key);
            let there = index.get(guard, key, &mut old);
            let need = store.need(key, there.then_some(&old), value);
            more = (more.0 + need.0, more.1 + need.1);
        }
        match store.refuses(more) {
            true => Err(self.full(&op)),
            false => Ok(()),
        }
    }
}

/// The limits of a store, if it has some.
fn limited(store: &Store) -> Option<(&Bounded, &Quota)> {
    let bounded = store.bounded()?;
    Some((bounded, bounded.layer().quota()?))
}

//! Evictions from tables with limits, and refusals if the table doesn't evict (see
//! `bounds::quota`).
//!
//! # Steps (docs/design.md §5.9.4)
//!
//! * ev1: A write is made as in any table. With `Evict::None` it is refused before that, if it
//!   would exceed a limit.
//! * ev2: After the write, without a lock, the thread evicts objects while there are too many. A
//!   write of one key, or a commit, evicts at most [`MAX_EXTRA_EVICTIONS`] more than it has
//!   written, so that no call pays for everything that is left. A list evicts in slices
//!   (`ListJob::evict`).
//! * ev3: *Choose* a victim: a key, with its heat and a fingerprint of its object.
//! * ev4: Lock the entry of the victim. If the object is still the one that was chosen, and the key
//!   wasn't used since, remove it. Otherwise choose again. The removal is a commit like any other:
//!   snapshots keep the object, feeds get an event, and transactions that have read it lose.
//! * ev5: More objects than the limits allow may be left, for one of four reasons: the bound in
//!   ev2; eight victims in a row were used after they were chosen; a list was being inserted;
//!   `select_replace`, which evicts nothing, has made objects larger. The next write evicts them,
//!   or the expirer does. Several writers may evict at the same time. The expirer evicts an object
//!   only while no writer does, and a writer waits for that.
//!
//! Linearisation point of an eviction: that of a delete. It is a change of its own.
//!
//! So between two calls of one thread a table doesn't exceed its limits. But there may be one
//! object more for each other thread that is inserting, and the objects of a list or a transaction
//! while that call is running.

use super::begin::{Intent, Operation};
use super::refusal::Written;
use crate::bounds::{object_of, Bounded, ChangeCause, ObjectTimes, Quota, SpaceNeeded, Victim};
use crate::error::Error;
use crate::store::Store;
use crate::table::EngineTable;
use larder_index::sync::yield_now;
use larder_index::{Guard, Previous};

/// The maximum number of objects that a write evicts in addition to the number that it has written.
/// It bounds the time that a write takes for the surplus of others.
const MAX_EXTRA_EVICTIONS: usize = 256;
/// The maximum number of chunks of timers that a write to a full table processes in one call.
const MAX_TIMER_CHUNKS: u32 = 16;
/// The number of successive choices that may become invalid.
const CHOICES: usize = 8;
/// The number of invalid choices after which the remaining candidates, which are as old, are
/// dropped.
const STALE: usize = 4;

impl EngineTable {
    /// (ev2) Called after this number of objects was written.
    #[cold]
    pub(crate) fn evict_after(&self, guard: &Guard, written: usize) {
        self.evict_surplus(guard, written + MAX_EXTRA_EVICTIONS);
    }

    /// Evicts objects while there are too many, at most this number. Returns how many were evicted.
    pub(crate) fn evict_surplus(&self, guard: &Guard, most: usize) -> usize {
        self.evict_under(guard, most, |quota| Some(quota.evicting()))
    }

    /// As `evict_surplus`, for the expirer: only while no writer evicts.
    pub(crate) fn evict_left(&self, guard: &Guard, most: usize) -> usize {
        let store = self.store(guard);
        if let Some((store, (_, quota))) = store.and_then(|store| Some((store, limited(store)?))) {
            quota.fit(guard, store.size());
        }
        self.evict_under(guard, most, Quota::evicting_alone)
    }

    /// Evicts objects one by one, at most `most`. Each is evicted while the result of `exclude` is
    /// held, which excludes the expirer or the writers. Ends if the result is `None`.
    fn evict_under<'g, G>(
        &'g self,
        guard: &'g Guard,
        most: usize,
        exclude: impl Fn(&'g Quota) -> Option<G>,
    ) -> usize {
        let mut removed = 0;
        while removed < most {
            // The store is loaded in each round, since it may be replaced, or the table dropped.
            let Some(store) = self.store(guard) else {
                break;
            };
            let Some((bounded, quota)) = limited(store) else {
                break;
            };
            // Before the look for a surplus: nobody that this excludes evicts for the same one.
            let Some(_excluded) = exclude(quota) else {
                break;
            };
            // Nothing more to evict, or no victim found.
            if !quota.has_surplus(store.size()) || !self.evict_one(guard, store, bounded, quota) {
                break;
            }
            removed += 1;
        }
        removed
    }

    /// Whether there are too many objects.
    pub(crate) fn has_surplus(&self, guard: &Guard) -> bool {
        let store = self.store(guard);
        store.is_some_and(|store| {
            limited(store).is_some_and(|(_, quota)| quota.has_surplus(store.size()))
        })
    }

    /// Removes expired objects of a table that refuses writes when it is full, for a write that was
    /// refused. The caller then repeats the write.
    ///
    /// `last` is the number of chunks of timers that were processed when this write was refused the
    /// last time. `None` says that the write isn't to be repeated only because other threads have
    /// removed objects.
    ///
    /// # Errors
    /// `Full` if no object is expired; `Busy` if more timers are due than one call processes, or if
    /// another thread is processing some.
    #[cold]
    pub(crate) fn expire_for_write(
        &self,
        op: &Operation<'_>,
        last: Option<&mut Option<u64>>,
    ) -> Result<(), Error> {
        if let Some((bounded, _)) = limited(op.store) {
            // Each round removes a chunk of expired objects, until one of them makes the
            // difference.
            let mut chunks = 0..MAX_TIMER_CHUNKS;
            while bounded.has_due() {
                // Timers of objects that were used since remove nothing, and there may be any
                // number of them. The write is repeated.
                chunks.next().ok_or(Error::Busy)?;
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
            // Another thread may have taken timers out of the wheel, whose objects it is about to
            // remove. Or it has removed some since the write was refused, which is repeated then.
            let chunks = bounded.layer().chunks_processed().ok_or(Error::Busy)?;
            if let Some(last) = last.filter(|_| bounded.layer().has_deadlines()) {
                if last.replace(chunks) != Some(chunks) {
                    return Ok(());
                }
            }
        }
        Err(self.full(op))
    }

    /// Evicts one object. Returns whether it did.
    fn evict_one(&self, guard: &Guard, store: &Store, bounded: &Bounded, quota: &Quota) -> bool {
        let mut spoiled = 0;
        while spoiled < CHOICES {
            // (ev3) If there is none, the table is empty.
            let Some(victim) = bounded.choose(guard, quota, store.size()) else {
                return false;
            };
            let was = self.evict(guard, &victim, quota);
            if was.is_ok() {
                quota.settle_victim(&victim);
            }
            match was {
                Ok(Previous::Present) => return true,
                // It is removed already. There are as many choices as this as there were removals.
                Ok(Previous::Absent) => {}
                // It was used or written since the choice. Choose again.
                Ok(Previous::Refused) => {
                    spoiled += 1;
                    if spoiled == STALE {
                        quota.forget_candidates();
                    }
                }
                // (ev5) A list is being inserted, or the table was dropped.
                Err(_) => return false,
            }
        }
        false
    }

    /// (ev4) Removes a victim that this quota has chosen.
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
            let mut evicted = false;
            let (written, was) = self.remove_below(&op, bounded, key, |value| {
                let expired = ObjectTimes::of(value).is_expired(bounded.write_time());
                if !expired && quota.is_fresher(guard, victim, value) {
                    return None;
                }
                evicted = !expired;
                Some(match expired {
                    true => ChangeCause::Expired,
                    false => ChangeCause::Evicted,
                })
            });
            // The state word has changed since `begin_on`, and nothing was removed. Start again.
            if let Written::Stale = written {
                continue;
            }
            if evicted && was == Previous::Present {
                quota.note_eviction();
            }
            return Ok(was);
        }
    }

    /// Whether there is room for what one commit writes: keys, each with its new object, or `None`
    /// for one that is deleted. Always true if the table evicts.
    ///
    /// # Errors
    /// `NoTable`, `Busy`.
    pub(crate) fn has_capacity<'k>(
        &self,
        guard: &Guard,
        rows: impl Iterator<Item = (&'k [u8], Option<&'k [u8]>)>,
    ) -> Result<bool, Error> {
        let store = self.begin(guard)?.store;
        // Most tables refuse nothing, and need no sum.
        let limits = limited(store).filter(|(_, quota)| quota.refuses_when_full());
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

    /// Like `expire_for_write`, for a commit.
    ///
    /// # Errors
    /// `NoTable`, `Busy`; `Full` if no object is expired.
    #[cold]
    pub(crate) fn expire_for_commit(&self, guard: &Guard) -> Result<(), Error> {
        self.expire_for_write(&self.begin(guard)?, None)
    }

    /// Removes some expired objects before a list of `more` objects is inserted, if the table has
    /// no room for them. Returns how many timers it has processed; 0 if another thread is
    /// processing some. Returns `None` if the table has room, or if no timer is due. While another
    /// list is being inserted, it removes nothing.
    pub(crate) fn expire_for_list(&self, guard: &Guard, more: usize) -> Option<usize> {
        let store = self.store(guard)?;
        let (bounded, _) = limited(store)?;
        if store.has_capacity_for(more) {
            return None;
        }
        if !bounded.has_due() {
            // Another thread may be about to remove objects, whose timers it has taken out of the
            // wheel.
            let waits = bounded.layer().chunks_processed().is_none();
            return waits.then(|| {
                yield_now();
                0
            });
        }
        // The wheel may have to be turned again before there are any.
        let (removed, _) = self.remove_expired().ok()?;
        Some(removed)
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
    use crate::api::{Index, Larder, Operations, Table};
    use crate::local::with_local;
    use crate::ops::Decision;
    use crate::{Bounds, Evict, Limits};
    use larder_term::object::ObjectBuf;
    use larder_term::{term, Atom, Term};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    fn table(evict: Evict, most: usize) -> Table {
        let builder = Larder::new().table("t").max_size(most).evict(evict);
        builder.create().unwrap()
    }

    fn row(key: i64, value: i64) -> Term {
        term!({(key), (value)})
    }

    /// Also if the value is the same. With `sieve` all rows are in use.
    #[test]
    fn what_was_written_since_the_choice_is_not_evicted() {
        for evict in [Evict::Lru, Evict::TinyLfu, Evict::Sieve] {
            let table = table(evict, 8);
            let rows: Vec<_> = (0..8).map(|key| row(key, 0)).collect();
            rows.iter().for_each(|row| table.insert(row).unwrap());
            if evict == Evict::Sieve {
                (0..8).for_each(|key| assert_eq!(table.lookup(&term!((key))).unwrap().len(), 1));
            }
            let (engine, guard) = (table.engine_table(), larder_index::pin());
            let (bounded, quota) = limited(engine.store(&guard).unwrap()).unwrap();
            let choose = || bounded.choose(&guard, quota, 8).unwrap();
            let remove = |victim: &Victim| engine.evict(&guard, victim, quota).unwrap();
            let write = || rows.iter().for_each(|row| table.insert(row).unwrap());
            let victim = choose();
            // One of them is the victim.
            write();
            assert_eq!(remove(&victim), Previous::Refused, "{evict:?}");
            assert_eq!(remove(&choose()), Previous::Present);
        }
    }

    /// Of one surplus, a writer and the expirer evict one object, not one each.
    #[test]
    fn the_expirer_evicts_nothing_beside_a_writer() {
        for (evict, most) in [(Evict::Lru, 1), (Evict::TinyLfu, 3), (Evict::Sieve, 2)] {
            let table = table(evict, most);
            (0..most as i64).for_each(|key| table.insert(&row(-1 - key, 0)).unwrap());
            let (engine, is_over) = (table.engine_table(), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // Ordering: Relaxed; the flag orders nothing.
                    while !is_over.load(Ordering::Relaxed) {
                        engine.evict_left(&larder_index::pin(), 32);
                    }
                });
                let sizes = (0..5_000).map(|key| {
                    table.insert(&row(key, 0)).unwrap();
                    table.len()
                });
                let wrong = sizes.filter(|&size| size != most).count();
                // Ordering: Relaxed, as above.
                is_over.store(true, Ordering::Relaxed);
                assert_eq!(wrong, 0, "{evict:?}");
            });
            // While a writer evicts, the expirer doesn't. Later it does.
            let guard = larder_index::pin();
            let (_, quota) = limited(engine.store(&guard).unwrap()).unwrap();
            let excluded = quota.evicting();
            let limits = Limits {
                max_size: Some(1),
                max_memory: None,
                evict,
            };
            let bounds = Bounds {
                limits: Some(limits),
                ..Bounds::default()
            };
            table.set_bounds(&bounds).unwrap();
            assert_eq!(engine.evict_left(&guard, 32), 0);
            assert_eq!(table.len(), most);
            drop(excluded);
            while engine.has_surplus(&guard) {
                engine.evict_left(&guard, 32);
            }
            assert_eq!(table.len(), 1);
        }
    }

    /// A victim of `tinylfu` is from a sample, or has left the window. The write adds one to an
    /// even count, so halved ones don't show it.
    #[test]
    fn what_was_written_beside_a_halving_of_counts_is_not_evicted() {
        let all = [false, true].map(|halves| [(false, halves), (true, halves)]);
        for (is_from_window, halves) in all.into_iter().flatten() {
            let table = table(Evict::TinyLfu, 800);
            let rows: Vec<_> = (0..800).map(|key| row(key, 0)).collect();
            rows.iter().for_each(|row| table.insert(row).unwrap());
            // Until the table was half full no uses were counted.
            (0..500).for_each(|key| drop(table.lookup(&term!((key))).unwrap()));
            let (engine, guard) = (table.engine_table(), larder_index::pin());
            let (bounded, quota) = limited(engine.store(&guard).unwrap()).unwrap();
            quota.halve_counts();
            // When the window has no more keys than it may, the victim is one of a sample.
            let victim = loop {
                let victim = bounded.choose(&guard, quota, 800).unwrap();
                if victim.is_from_window() == is_from_window {
                    break victim;
                }
            };
            let key = engine.key_with(&victim.key, victim.hash);
            let was = quota.heat_of(key);
            let is_its = |row: &&Term| {
                let mut object = ObjectBuf::new();
                engine.encode_object(row.as_ref(), &mut object).unwrap();
                object.key() == &victim.key[..]
            };
            table.insert(rows.iter().find(is_its).unwrap()).unwrap();
            if halves {
                quota.halve_counts();
            }
            assert_eq!(quota.heat_of(key) <= was, halves);
            let evict = || engine.evict(&guard, &victim, quota).unwrap();
            assert_eq!(evict(), Previous::Refused, "{is_from_window}, {halves}");
        }
    }

    /// A use is a lookup by key that finds the object, or a write that is made.
    #[test]
    fn each_operation_counts_as_one_use_or_as_none() {
        let builder = Larder::new().table("t").max_size(16);
        let unique = Index::element("v", 2).unique();
        let builder = builder.evict(Evict::TinyLfu).index(unique);
        let t = &builder.create().unwrap();
        (0..10).for_each(|key| t.insert(&row(key, key)).unwrap());
        let engine = t.engine_table();
        let mut key = Vec::new();
        engine.encode_key(term!(1).as_ref(), &mut key);
        let heat = || {
            let guard = larder_index::pin();
            let (_, quota) = limited(engine.store(&guard).unwrap()).unwrap();
            quota.heat_of(engine.key(&key))
        };
        let counts = |name: &str, uses: u32, operation: &dyn Fn()| {
            let before = heat();
            operation();
            assert_eq!(heat() - before, uses, "{name}");
            // Counts end at 15.
            let guard = larder_index::pin();
            let (_, quota) = limited(engine.store(&guard).unwrap()).unwrap();
            (0..3).for_each(|_| quota.halve_counts());
        };
        let compute = |f: &mut dyn FnMut(bool, &mut ObjectBuf) -> Decision| {
            with_local(|local| {
                let me = t.larder().owner();
                engine.compute_in(local, me, &key, |old, out| Ok(f(old.is_some(), out)))
            })
        };
        let put = |value: i64, out: &mut ObjectBuf| {
            engine.encode_object(row(1, value).as_ref(), out).unwrap();
            Decision::Put
        };
        let transaction = |row: &Term| t.larder().transaction(&[t], |views| views[0].insert(row));
        // Row 2 has the value 2.
        let [mine, taken] = [row(1, 11), row(1, 2)];
        counts("lookup", 1, &|| drop(t.lookup(&term!(1)).unwrap()));
        counts("member", 0, &|| assert!(t.contains(&term!(1)).unwrap()));
        counts("insert", 1, &|| t.insert(&mine).unwrap());
        counts("refused insert", 0, &|| drop(t.insert(&taken).unwrap_err()));
        counts("insert_new", 0, &|| assert!(!t.insert_new(&mine).unwrap()));
        let life = Some(Duration::from_secs(1000));
        counts("insert/3", 1, &|| t.insert_with(&mine, life).unwrap());
        counts("refused insert/3", 0, &|| {
            drop(t.insert_with(&taken, life).unwrap_err());
        });
        counts("expire", 1, &|| assert!(t.expire(&term!(1), None).unwrap()));
        counts("list", 1, &|| {
            t.insert_all(std::slice::from_ref(&mine)).unwrap()
        });
        counts("list of another value", 1, &|| {
            t.insert_all(&[row(1, 12), row(3, 13)]).unwrap();
        });
        counts("refused list", 0, &|| {
            drop(t.insert_all(&[mine.clone(), row(3, 2)]).unwrap_err());
        });
        counts("compute that keeps", 1, &|| {
            compute(&mut |_, _| Decision::Keep).unwrap();
        });
        counts("compute", 1, &|| {
            compute(&mut |_, out| put(14, out)).unwrap()
        });
        counts("refused compute", 0, &|| {
            drop(compute(&mut |_, out| put(2, out)).unwrap_err());
        });
        counts("compute that begins again, and a write", 2, &|| {
            let mut tries = 0;
            let again = &mut |_, out: &mut ObjectBuf| {
                tries += 1;
                if tries == 1 {
                    t.insert(&row(1, 15)).unwrap();
                }
                put(16, out)
            };
            compute(again).unwrap();
            assert_eq!(tries, 2);
        });
        counts("commit", 1, &|| transaction(&row(1, 17)).unwrap());
        counts("refused commit", 0, &|| {
            drop(transaction(&taken).unwrap_err())
        });
        // What reads more than one key is no lookup, however the rows are found.
        #[cfg(feature = "matchspec")]
        for spec in [
            "[{{'_',17},[],['$_']}]",
            "[{{1,'_'},[],['$_']},{{100,'_'},[],['$_']}]",
        ] {
            counts(spec, 0, &|| assert_eq!(t.select(spec).unwrap().len(), 1));
        }
        // What the operations of a list read is no use, whether or not they write.
        let list = |uses, list: Operations<'_>, end: Result<Option<usize>, Error>| {
            let list = Cell::new(Some(list));
            counts("operations", uses, &|| {
                assert_eq!(list.take().unwrap().commit(), end);
            });
        };
        let begin = || t.larder().operations();
        list(1, begin().insert(t, &mine), Ok(None));
        list(1, begin().add(t, &term!(1), 2, 10), Ok(None));
        list(0, begin().delete_object(t, &mine), Ok(None));
        list(0, begin().insert_new(t, &mine), Ok(Some(1)));
        let fails = begin().update(t, &term!(1), 2, &term!(22));
        list(0, fails.insert_new(t, &mine), Ok(Some(2)));
        list(
            0,
            begin().insert(t, &taken),
            Err(Error::NotUnique(Atom::new("v").into())),
        );
    }
}

//! Fixation: which owners have fixed a table, since when, and which keys were deleted meanwhile.
//!
//! None of Larder's traversals needs a fixed table. Fixation serves two promises of `ets`. `info`
//! reports who has fixed the table. And in an unordered table `next/2` continues from a key that
//! was deleted while the table was fixed, but refuses a key that never existed. So deleted keys are
//! recorded while the table is fixed: one by one, or as the whole store that `delete_all_objects`
//! has replaced.
//!
//! # Invariants
//!
//! * **FX1** The flag is set if and only if an owner has fixed the table.
//! * **FX2** If a key was deleted since the table was fixed, and is found to be absent, it is
//!   recorded.
//!
//! Concerning FX2: a deletion loads the flag, and records its key, under the lock of the leaf,
//! before the deletion can be seen. A thread that fixes the table sets the flag, and reads leaves
//! afterwards. So there are two cases. The thread waits for the leaf, and sees that the key was
//! gone before the table was fixed. Or the deletion sees the flag. (The orderings are the same as
//! in `batch`.)

use crate::ids::OwnerId;
use crate::raw::Retired;
use crate::reclaim::reaper;
use crate::store::Store;
use larder_index::sync::atomic::{fence, AtomicBool, Ordering};
use larder_index::sync::Mutex;
use larder_index::{Guard, Key};
use std::collections::{BTreeMap, HashSet};

/// A time on both clocks of the host. The engine only stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FixTime {
    /// The host's time of day, in nanoseconds.
    pub system_ns: i64,
    /// The host's steady clock, in nanoseconds.
    pub monotonic_ns: i64,
}

/// The fixation of a table, as `info` reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// When the table was first fixed, by any owner.
    pub since: FixTime,
    /// The owners, in the order of their numbers, and how often each has fixed the table.
    pub by: Vec<(OwnerId, usize)>,
}

/// Keys, in sets each of which has room for four times as many as the one before. A set that is
/// full stays as it is: if it grew, one call would move all its keys.
#[derive(Default)]
struct Keys(Vec<HashSet<Box<[u8]>>>);

impl Keys {
    /// The capacity of the first set.
    const FIRST: usize = 224;

    fn len(&self) -> usize {
        self.0.iter().map(HashSet::len).sum()
    }

    fn contains(&self, key: &[u8]) -> bool {
        // The last set has most of the keys.
        self.0.iter().rev().any(|set| set.contains(key))
    }

    fn insert(&mut self, key: &[u8]) {
        // Search first, so that a key that is inserted and deleted repeatedly is copied once.
        if self.contains(key) {
            return;
        }
        match self.0.last_mut() {
            Some(set) if set.len() < set.capacity() => {
                set.insert(key.into());
            }
            full => {
                let capacity = full.map_or(Self::FIRST, |set| 4 * set.capacity());
                let mut set = HashSet::with_capacity(capacity);
                set.insert(key.into());
                self.0.push(set);
            }
        }
    }
}

/// The state of a fixed table.
struct State {
    since: FixTime,
    /// The owners, of which there may be many, and how often each has fixed the table.
    by: BTreeMap<OwnerId, usize>,
    deleted: Keys,
    aside: Vec<Retired<Store>>,
}

/// The fixation of one table.
#[derive(Default)]
pub(crate) struct Fixation {
    flag: AtomicBool,
    state: Mutex<Option<Box<State>>>,
}

impl Fixation {
    /// Whether any owner has fixed the table.
    pub(crate) fn is_fixed(&self) -> bool {
        // Ordering: SeqCst, against the store in `fix` (see the module).
        self.flag.load(Ordering::SeqCst)
    }

    /// Fixes the table once more for `who`. Returns whether it is the owner's first fixation.
    pub(crate) fn fix(&self, who: OwnerId, now: FixTime) -> bool {
        let mut state = self.state.lock();
        // The first fixation starts the record. Keys that were deleted before are not part of it.
        let state = state.get_or_insert_with(|| {
            Box::new(State {
                since: now,
                by: BTreeMap::new(),
                deleted: Keys::default(),
                aside: Vec::new(),
            })
        });
        // Ordering: SeqCst (see the module).
        self.flag.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // An owner may fix a table several times. It has to release it as often.
        let times = state.by.entry(who).or_default();
        *times += 1;
        *times == 1
    }

    /// Undoes one fixation of `who`, or all of them. Returns whether the owner has none left.
    pub(crate) fn unfix(&self, who: OwnerId, all: bool) -> bool {
        let mut slot = self.state.lock();
        let Some(state) = slot.as_mut() else {
            return true;
        };
        let by = &mut state.by;
        let Some(times) = by.get_mut(&who) else {
            return true;
        };
        // Fixations of an owner are counted. The last `unfix`, or the end of the owner, removes the
        // owner.
        *times -= 1;
        if !all && *times > 0 {
            return false;
        }
        by.remove(&who);
        if by.is_empty() {
            // Ordering: SeqCst, as in `fix`.
            self.flag.store(false, Ordering::SeqCst);
            // Flag and state change under the same lock (FX1). The record may be large, so it is
            // freed without the lock.
            let state = slot.take();
            drop(slot);
            Self::clear(state);
        }
        true
    }

    /// Ends all fixations of a dropped table, which nobody can fix any more. Returns the owners
    /// that had fixed it.
    pub(crate) fn end(&self) -> Vec<OwnerId> {
        // Nobody has fixed it (FX1).
        if !self.is_fixed() {
            return Vec::new();
        }
        // Ordering: SeqCst, as in `fix`.
        self.flag.store(false, Ordering::SeqCst);
        let state = self.state.lock().take();
        let by = state
            .as_ref()
            .map_or_else(Vec::new, |s| s.by.keys().copied().collect());
        Self::clear(state);
        by
    }

    fn clear(state: Option<Box<State>>) {
        let Some(state) = state else { return };
        let State { deleted, aside, .. } = *state;
        if !aside.is_empty() {
            let guard = larder_index::pin();
            aside
                .into_iter()
                .for_each(|store| reaper::free(store, &guard));
        }
        // Each key is an allocation of its own. If there are many, let the reaper free them, 64 at
        // a time.
        if deleted.len() > 1000 {
            let bytes = deleted.len() * 64;
            let mut keys = deleted.0.into_iter().flatten();
            reaper::bits(bytes, move || keys.by_ref().take(64).count() < 64);
        }
    }

    /// Records a deleted key, if the table is fixed.
    pub(crate) fn remember(&self, key: &[u8]) {
        if let Some(state) = self.state.lock().as_mut() {
            state.deleted.insert(key);
        }
    }

    /// Calls `swap`, which replaces the table's store and returns the old one. If the table is
    /// fixed, keeps the old store, and returns `None`. Otherwise returns it. The lock is held
    /// meanwhile, so that no thread finds a key removed from the table before it can be found here.
    /// If `swap` fails, so does this.
    pub(crate) fn swapping<E>(
        &self,
        swap: impl FnOnce() -> Result<Option<Retired<Store>>, E>,
    ) -> Result<Option<Retired<Store>>, E> {
        let mut state = self.state.lock();
        // A thread that asks whether a key was deleted waits for this lock. It then finds the old
        // store here, or the swap hasn't been made.
        let mut old = swap()?;
        if let Some(state) = state.as_mut() {
            state.aside.extend(old.take());
        }
        Ok(old)
    }

    /// Whether the key was deleted since the table was fixed.
    pub(crate) fn was_deleted(&self, guard: &Guard, key: Key<'_>) -> bool {
        // The guard keeps the stores alive, even if the table is unfixed after the lock is
        // released.
        let mut aside = Vec::new();
        if let Some(state) = self.state.lock().as_ref() {
            aside.extend(state.aside.iter().map(|store| store.share(guard)));
        }
        // Read the stores without the lock, since a writer that holds a leaf of such a store may be
        // waiting for it. Read the record last. Two kinds of writers may just have removed the key:
        // such a writer, and one of a bag that hasn't recorded the key yet, for which `contains`
        // waits. Both record it before the key is found to be absent.
        aside.iter().any(|store| has_key(store, guard, key)) || self.remembers(key)
    }

    fn remembers(&self, key: Key<'_>) -> bool {
        let state = self.state.lock();
        state
            .as_ref()
            .is_some_and(|s| s.deleted.contains(key.bytes))
    }

    /// The owners that have fixed the table.
    pub(crate) fn report(&self) -> Option<Fixed> {
        self.state.lock().as_ref().map(|s| Fixed {
            since: s.since,
            by: s.by.iter().map(|(id, times)| (*id, *times)).collect(),
        })
    }
}

/// Whether a store that was replaced has the key. Nobody removes what expires in it, so an object
/// that is expired counts, too.
fn has_key(store: &Store, guard: &Guard, key: Key<'_>) -> bool {
    match store.bounded() {
        Some(bounded) => bounded.committed_times(guard, key).is_some(),
        None => store.index.contains(guard, key),
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;

    /// Tens of thousands of owners fix one table, and unfix it in the order in which they came.
    #[test]
    fn many_owners_may_fix_a_table() {
        let (fixation, now) = (Fixation::default(), FixTime::default());
        let owners = || (1..=100_000).map(OwnerId::from_raw);
        let begun = std::time::Instant::now();
        assert!(owners().all(|owner| fixation.fix(owner, now)));
        assert!(!fixation.fix(OwnerId::from_raw(7), now));
        let fixed = fixation.report().unwrap();
        assert_eq!(fixed.by.len(), 100_000);
        assert_eq!(fixed.by[6], (OwnerId::from_raw(7), 2));
        assert!(!fixation.unfix(OwnerId::from_raw(7), false));
        assert!(owners().all(|owner| fixation.unfix(owner, true)));
        assert!(!fixation.is_fixed());
        assert!(begun.elapsed() < std::time::Duration::from_secs(2));
    }

    /// A set that is full isn't made larger, so no call moves the keys that are there.
    #[test]
    fn recorded_keys_stay_where_they_are() {
        let (mut keys, mut rooms) = (Keys::default(), Vec::<usize>::new());
        for n in 0..100_000u32 {
            keys.insert(&n.to_be_bytes());
            keys.insert(&(n / 2).to_be_bytes());
            let now: Vec<_> = keys.0.iter().map(HashSet::capacity).collect();
            assert!(now.starts_with(&rooms) && now.len() <= rooms.len() + 1);
            rooms = now;
        }
        assert_eq!(keys.len(), 100_000);
        assert!((0..100_000u32).all(|n| keys.contains(&n.to_be_bytes())));
        assert!(!keys.contains(&100_000u32.to_be_bytes()) && rooms.len() < 7);
    }
}

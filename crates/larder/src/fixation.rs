//! Fixation: who fixed a table, since when, and which keys were deleted meanwhile.
//!
//! No traversal of Larder's needs a fixed table. Two promises remain: `info` says who fixed the
//! table, and `next/2` on an unordered table continues from a key that was deleted since the table
//! was fixed, where it refuses a key that never was. So deleted keys are remembered while the table
//! is fixed: one by one, or as the whole index that `delete_all_objects` put aside.
//!
//! # Invariants
//!
//! 1. The flag is set if and only if somebody has the table fixed.
//! 2. A key that was deleted since the table was fixed, and is found gone, is remembered.
//!
//! For (2) a deletion looks at the flag, and remembers its key, under the leaf's lock before the
//! deletion can be seen. Whoever fixes the table sets the flag and reads leaves afterwards. So
//! either it waits for the leaf and sees the key gone before it was fixed, or the deletion sees the
//! flag (see `batch` for the orderings, which are the same).

use crate::ids::OwnerId;
use crate::raw::Retired;
use crate::reclaim::reaper;
use crate::store::Store;
use larder_index::sync::atomic::{fence, AtomicBool, Ordering};
use larder_index::sync::Mutex;
use larder_index::{Guard, Key};
use std::collections::HashSet;

/// A moment, by the two clocks of the host. The engine only keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FixTime {
    /// The host's time of day, in nanoseconds.
    pub system_ns: i64,
    /// The host's steady clock, in nanoseconds.
    pub monotonic_ns: i64,
}

/// Who has fixed a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Since when it has been fixed by somebody.
    pub since: FixTime,
    /// Who, and how many times each.
    pub by: Vec<(OwnerId, usize)>,
}

/// What is kept while a table is fixed.
struct State {
    fixed: Fixed,
    deleted: HashSet<Box<[u8]>>,
    aside: Vec<Retired<Store>>,
}

/// The fixation of one table.
#[derive(Default)]
pub(crate) struct Fixation {
    flag: AtomicBool,
    state: Mutex<Option<Box<State>>>,
}

impl Fixation {
    /// Whether somebody has the table fixed.
    pub(crate) fn is_fixed(&self) -> bool {
        // Ordering: SeqCst, against the store in `fix` (see the module).
        self.flag.load(Ordering::SeqCst)
    }

    /// Fixes the table once more for `who`; true if it is the first time for them.
    pub(crate) fn fix(&self, who: OwnerId, now: FixTime) -> bool {
        let mut state = self.state.lock();
        // The first to fix the table begins what is remembered: keys that were deleted before are
        // none of it.
        let state = state.get_or_insert_with(|| {
            Box::new(State {
                fixed: Fixed {
                    since: now,
                    by: Vec::new(),
                },
                deleted: HashSet::new(),
                aside: Vec::new(),
            })
        });
        // Ordering: SeqCst (see the module).
        self.flag.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let by = &mut state.fixed.by;
        match by.iter_mut().find(|(id, _)| *id == who) {
            Some((_, times)) => {
                *times += 1;
                false
            }
            None => {
                by.push((who, 1));
                true
            }
        }
    }

    /// Takes back one fixation of `who`'s, or all; true if they have none any more.
    pub(crate) fn unfix(&self, who: OwnerId, all: bool) -> bool {
        let mut slot = self.state.lock();
        let Some(state) = slot.as_mut() else {
            return true;
        };
        let by = &mut state.fixed.by;
        let Some(i) = by.iter().position(|(id, _)| *id == who) else {
            return true;
        };
        // Fixations of one owner are counted: the last `unfix`, or the owner's end, takes the owner
        // off.
        by[i].1 -= 1;
        if !all && by[i].1 > 0 {
            return false;
        }
        by.remove(i);
        if by.is_empty() {
            // Ordering: SeqCst, as in `fix`.
            self.flag.store(false, Ordering::SeqCst);
            // Flag and state go under one lock (invariant 1). What was remembered may be much: it
            // is freed without the lock.
            let state = slot.take();
            drop(slot);
            Self::clear(state);
        }
        true
    }

    /// Forgets everything: the table is gone. Gives those who had it fixed.
    pub(crate) fn end(&self) -> Vec<OwnerId> {
        // Ordering: SeqCst, as in `fix`.
        self.flag.store(false, Ordering::SeqCst);
        let state = self.state.lock().take();
        let by = state
            .as_ref()
            .map_or_else(Vec::new, |s| s.fixed.by.iter().map(|(id, _)| *id).collect());
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
        // A key is a block of its own: many are left to the reaper, 64 for each of its bits.
        if deleted.len() > 1000 {
            let bytes = deleted.len() * 64;
            let mut keys = deleted.into_iter();
            reaper::bits(bytes, move || keys.by_ref().take(64).count() < 64);
        }
    }

    /// Remembers a deleted key, if the table is fixed.
    pub(crate) fn remember(&self, key: &[u8]) {
        if let Some(state) = self.state.lock().as_mut() {
            // Looked for first, so that a key that comes and goes is copied once.
            if !state.deleted.contains(key) {
                state.deleted.insert(key.into());
            }
        }
    }

    /// Runs `swap`, which takes a store out of use and gives it, and keeps that store aside if the
    /// table is fixed; gives it back otherwise. Under the lock, so that nobody finds a key gone
    /// from the table before it is found here.
    pub(crate) fn swapping(
        &self,
        swap: impl FnOnce() -> Option<Retired<Store>>,
    ) -> Option<Retired<Store>> {
        let mut state = self.state.lock();
        // Whoever asks whether a key was deleted waits for this lock, and then finds the old store
        // here, or the swap not made.
        let old = swap()?;
        match state.as_mut() {
            Some(state) => {
                state.aside.push(old);
                None
            }
            None => Some(old),
        }
    }

    /// Whether the key was deleted since the table was fixed.
    pub(crate) fn was_deleted(&self, guard: &Guard, key: Key<'_>) -> bool {
        // The guard keeps what is borrowed here, even if the table is released as soon as the lock
        // is given back.
        let mut aside = Vec::new();
        if let Some(state) = self.state.lock().as_ref() {
            aside.extend(state.aside.iter().map(|store| store.share(guard)));
        }
        // Not under the lock: a writer that holds a leaf of such a store may be waiting for it.
        // What is remembered comes last: such a writer, and one of a bag that has taken the key out
        // and not yet remembered it, which `contains` waits for, does so before the key is found
        // gone.
        aside.iter().any(|store| store.index.contains(guard, key)) || self.remembers(key)
    }

    fn remembers(&self, key: Key<'_>) -> bool {
        let state = self.state.lock();
        state
            .as_ref()
            .is_some_and(|s| s.deleted.contains(key.bytes))
    }

    /// Who has the table fixed.
    pub(crate) fn report(&self) -> Option<Fixed> {
        self.state.lock().as_ref().map(|s| s.fixed.clone())
    }
}

//! How often the entries of an index have changed, counted by their values.
//!
//! A transaction that has looked into an index asks at its commit whether a look would find the
//! same entries. It can't compare the entries: one may have come before the commit and gone again
//! behind it.
//!
//! # Steps
//!
//! 1. A reader takes the count of the value, or of all values, and then reads the entries.
//! 2. A writer changes an entry, and counts the value; then it unlocks the row.
//! 3. At the commit, the reader waits until nobody holds the lock of a row that has changed, and
//!    compares the count (`Reads::entries_hold`).
//!
//! # Invariants
//!
//! 1. A change that is counted in (1) is seen by the reading that follows.
//! 2. A change that the reading has missed is counted in (3), if its writer was waited for.
//!
//! Values share the counts, so a count may say more than there was; never less.

use larder_index::sync::atomic::{AtomicU64, Ordering};
use larder_index::sync::{planted, Fault};
use larder_term::hash::Seed;
use std::sync::Arc;

/// A power of two.
const COUNTS: usize = 64;

/// The counts of one index.
pub(crate) struct EntryChanges {
    counts: [AtomicU64; COUNTS],
    seed: Seed,
}

impl EntryChanges {
    pub(super) fn new(seed: &Seed) -> Self {
        EntryChanges {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            seed: seed.clone(),
        }
    }

    fn place(&self, value: &[u8]) -> usize {
        self.seed.hash(value) as usize % COUNTS
    }

    /// (2) An entry of this value was changed.
    pub(super) fn note(&self, value: &[u8]) {
        if planted(Fault::UncountedEntry) {
            return;
        }
        // Ordering: Release, pairs with `count`: who reads this count sees the entry as it is now
        // (invariant 1).
        self.counts[self.place(value)].fetch_add(1, Ordering::Release);
    }

    /// The changes of the values in a place, or of all.
    fn count(&self, place: Option<usize>) -> u64 {
        // Ordering: Acquire, pairs with `note`. For invariant 2 the lock of the row is what orders.
        let count = |count: &AtomicU64| count.load(Ordering::Acquire);
        match place {
            Some(place) => count(&self.counts[place]),
            // Not of one instant; but each count only grows, so a sum that is the same says that
            // all of them are.
            None => self.counts.iter().map(count).sum(),
        }
    }
}

/// What a reader has seen of the changes of an index, before it read entries.
pub(crate) struct EntriesRead {
    changes: Arc<EntryChanges>,
    /// Where the value is counted that was read; None if it was a range of values.
    place: Option<usize>,
    count: u64,
}

impl EntriesRead {
    /// (1) Entries of this value are read next; or for None, of any.
    pub(super) fn begin(changes: &Arc<EntryChanges>, value: Option<&[u8]>) -> Self {
        let place = value.map(|value| changes.place(value));
        EntriesRead {
            count: changes.count(place),
            changes: Arc::clone(changes),
            place,
        }
    }

    /// Whether another reads all of this, too.
    pub(crate) fn is_within(&self, other: &EntriesRead) -> bool {
        self.is_of(&other.changes) && (other.place.is_none() || other.place == self.place)
    }

    /// Whether it is of the index whose changes these are.
    pub(crate) fn is_of(&self, changes: &Arc<EntryChanges>) -> bool {
        Arc::ptr_eq(&self.changes, changes)
    }

    /// (3) Whether nothing was counted since.
    pub(crate) fn holds(&self) -> bool {
        self.changes.count(self.place) == self.count
    }
}
